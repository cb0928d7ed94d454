"""VARMA beside statsmodels' VARMAX: one fit, and a panel of them.

``python benchmarks/varma.py`` fits VARMA(1, 1) to two series of 200 rows, the exact likelihood of
both, and compares the optima in the same run: ours must not be lower by more than 1e-6. A fit here
leaves standard errors to the first question for them, one of VARMAX computes them: one fit is timed
without them on both sides, and with them.
"""

from __future__ import annotations

import time
import warnings
from functools import partial

import numpy as np
import pandas as pd
from _timing import median_ms, option_parser, print_machine, print_table, read_options
from statsmodels.tsa.statespace.varmax import VARMAX
from threadpoolctl import threadpool_limits

from tsrnn.linear import VARMA

ROWS, SERIES, BY_VARMAX = 200, 100, 5
AR = np.array([[0.6, 0.2], [-0.1, 0.4]])
MA = np.array([[0.4, -0.1], [0.2, 0.3]])
CHOL = np.array([[1.0, 0.0], [0.5, 0.8]])


def simulate(seed: int) -> pd.DataFrame:
    """Two series of a VARMA(1, 1) with a constant."""
    shocks = np.random.default_rng(seed).standard_normal((ROWS + 200, 2)) @ CHOL.T
    y = np.zeros_like(shocks)
    for t in range(1, len(y)):
        y[t] = [1.0, -2.0] + AR @ y[t - 1] + shocks[t] + MA @ shocks[t - 1]
    return pd.DataFrame(y[200:], columns=["a", "b"])


def statsmodels_fit(frame: pd.DataFrame, **options: str) -> float:
    """Log-likelihood where VARMAX ends; its small matrices are fastest with one thread."""
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        return float(VARMAX(frame, order=(1, 1)).fit(disp=False, maxiter=500, **options).llf)


def fit_and_ask(frame: pd.DataFrame, errors: bool) -> object:
    """Fit, with or without standard errors."""
    model = VARMA(order=(1, 1)).fit(frame)
    return model.bse_ if errors else model


def single() -> list[list[object]]:
    frame = simulate(0)
    model = VARMA(order=(1, 1)).fit(frame)
    gain = model.loglik_.iloc[0] - statsmodels_fit(frame)
    assert gain > -1e-6, f"VARMAX's optimum is higher by {-gain:.2e}"
    rows: list[list[object]] = []
    cases: list[tuple[str, bool, dict[str, str]]] = [
        ("one", False, {"cov_type": "none"}),
        ("one, with standard errors", True, {}),
    ]
    for label, ask, options in cases:
        ours = median_ms(partial(fit_and_ask, frame, ask), 100)
        theirs = median_ms(partial(statsmodels_fit, frame, **options), 5, warm_up=0)
        ratio = f"{theirs / ours:.1f}"
        rows.append([label, f"{ours:.2f}", f"{theirs:.0f}", ratio, f"{gain:.1e}"])
    return rows


def panel() -> list[object]:
    frames = [simulate(seed) for seed in range(SERIES)]
    long = pd.concat([f.assign(unique_id=i, ds=np.arange(ROWS)) for i, f in enumerate(frames)])
    model = VARMA(order=(1, 1), target=["a", "b"], freq=1)
    ours = median_ms(lambda: model.fit(long), 3) / SERIES
    start = time.perf_counter()
    optima = [statsmodels_fit(frame) for frame in frames[:BY_VARMAX]]
    theirs = 1e3 * (time.perf_counter() - start) / BY_VARMAX
    gain = (model.loglik_.to_numpy()[:BY_VARMAX] - optima).min()
    assert gain > -1e-6, f"VARMAX's optimum is higher by {-gain:.2e}"
    print(f"panel: {int(model.converged_.sum())} of {SERIES} converged")
    return [f"panel of {SERIES}", f"{ours:.2f}", f"{theirs:.0f}", f"{theirs / ours:.1f}",
            f"{gain:.1e}"]  # fmt: skip


def main() -> None:
    options = read_options(option_parser(__doc__))
    print_machine()
    print(f"VARMA(1, 1), 2 series of {ROWS} rows, exact likelihood; ms a fit\n")
    rows = single() if options.smoke else [*single(), panel()]
    header = ["fits", "tsrnn ms", "VARMAX ms", "ratio", "lowest gain in log-likelihood"]
    print_table(header, rows)


if __name__ == "__main__":
    main()
