"""GARCH(1,1) fits beside the package arch: ten thousand series, and one.

Series of the length of the DM/GBP benchmark, 1974, are simulated from GARCH(1,1) with a constant
mean. Both sides start from the same backcast and have the same likelihood; log-likelihoods of the
sample that arch fits are compared in the same run. Ours includes gradient, Hessian, outer product
of scores and information matrix; arch's its standard errors, which it computes when asked. Ours is
`GARCH().fit`, of a frame with a column a series; arch gets an array at a time.
"""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
from _timing import median_ms, option_parser, print_machine, print_table, read_options
from arch import arch_model

from tsrnn.data import read_panel
from tsrnn.linear import GARCH

TRUE = np.array([0.03, 0.05, 0.08, 0.88])


def simulated(n: int, steps: int) -> pd.DataFrame:
    rows = pd.DataFrame(np.random.default_rng(0).standard_normal((20, n)))
    return GARCH().filter(rows, TRUE).simulate(steps, burn=0, random_state=0)


def ours(frame: pd.DataFrame) -> GARCH:
    return GARCH().fit(frame)


def theirs(y: np.ndarray) -> float:
    result = arch_model(y, rescale=False).fit(disp="off", show_warning=False)
    result.std_err  # noqa: B018
    return float(result.loglikelihood)


def main() -> None:
    parser = option_parser(__doc__)
    parser.add_argument("--series", type=int, default=10_000)
    parser.add_argument("--sample", type=int, default=100, help="series that arch fits")
    parser.add_argument("--steps", type=int, default=1974)
    arguments = read_options(parser, series=20, sample=2, steps=300)
    print_machine()
    n = arguments.series
    y = simulated(n, arguments.steps)
    ours(y.iloc[:, :20])  # compile
    start = time.perf_counter()
    batch = ours(y)
    each_ms = 1e3 * (time.perf_counter() - start) / n
    start = time.perf_counter()
    read_panel(y)
    reading_ms = 1e3 * (time.perf_counter() - start) / n
    sample = y.iloc[:, : arguments.sample].to_numpy().T.copy()
    start = time.perf_counter()
    oracle = np.array([theirs(row) for row in sample])
    arch_ms = 1e3 * (time.perf_counter() - start) / len(sample)
    ahead = batch.loglik_.to_numpy()[: len(sample)] - oracle
    assert ahead.min() > -1e-6, f"arch's likelihood is higher by {-ahead.min():.2e}"
    first = y.iloc[:, 0]
    one = median_ms(lambda: ours(first), 15, warm_up=3)
    one_arch = median_ms(lambda: theirs(sample[0]), 15, warm_up=3)
    rows = [
        [f"{n} at once", f"{each_ms:.3f}", f"{each_ms - reading_ms:.3f}", f"{arch_ms:.1f}",
         f"{arch_ms / each_ms:.0f}"],
        ["one", f"{one:.1f}", "", f"{one_arch:.1f}", f"{one_arch / one:.1f}"],
    ]  # fmt: skip
    print_table(["fits", "ours, ms a series", "without reading", "arch, ms", "times faster"], rows)
    print(f"log-likelihood, ours less arch's: {ahead.min():.1e} to {ahead.max():.1e}; "
          f"converged {batch.converged_.sum()} of {n}")  # fmt: skip


if __name__ == "__main__":
    main()
