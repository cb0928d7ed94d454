"""Nonlinear systems: the default from 200 rows, and networks trained on 200 and on 5,000.

Root mean squared error over the deviation of the system, 1, 2, 4 and 8 steps ahead, means over
origins, and the share of intervals of 80 percent that cover. The default reads the last 112 of the
200 rows; beside it are its network alone, without nonlinear autoregressions, a network trained on
the 200 rows of each origin, and one trained on 5,000 rows before all origins. No system is of the
families by which the weight of the autoregressions was estimated.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parent / "prior"))
from _systems import SCORED
from _timing import option_parser, print_machine, print_table, read_options

from tsrnn import ParaRNNForecaster
from tsrnn.prior import trained_prior, window_rows

STEPS = (1, 2, 4, 8)
ROWS, LONG_ROWS, BETWEEN = 200, 5000, 8
LEVEL = 80


def frame_of(rows: np.ndarray) -> pd.DataFrame:
    """Rows as the frame of a forecaster."""
    return pd.DataFrame({"y": rows})


def interval(forecast: pd.DataFrame) -> np.ndarray:
    """Median and ends (3, h) of the intervals of a forecast."""
    return forecast.to_numpy().T


def forecasts(values: np.ndarray, ends: np.ndarray) -> dict[str, np.ndarray]:
    """Median and ends (origins, 3, h) by method."""
    h = max(STEPS)
    drawn: dict[str, list[np.ndarray]] = {}
    long = ParaRNNForecaster(h, prior=None, random_state=0).fit(frame_of(values[:LONG_ROWS]))
    alone, window = replace(trained_prior(), autoregression=False), window_rows(1)
    for end in ends:
        rows = values[end - ROWS : end]
        default = ParaRNNForecaster(h).fit(frame_of(rows)).predict(level=[LEVEL])
        drawn.setdefault("default", []).append(interval(default))
        last = alone.forecast(rows[None, -window:], np.array([window]), 1, h)
        ends_of_level = last.at([0.5 - LEVEL / 200, 0.5 + LEVEL / 200])[0]
        drawn.setdefault("its network alone", []).append(np.vstack([last.median, ends_of_level]))
        own = ParaRNNForecaster(h, prior=None, random_state=0).fit(frame_of(rows))
        trained = interval(own.predict(level=[LEVEL]))
        drawn.setdefault("trained on 200 rows", []).append(trained)
        history = pd.DataFrame({"y": values[:end]})
        trained = interval(long.predict(X=history, level=[LEVEL]))
        drawn.setdefault("trained on 5,000 rows", []).append(trained)
    return {method: np.array(of_method) for method, of_method in drawn.items()}


def main() -> None:
    parser = option_parser(__doc__)
    parser.add_argument("--origins", type=int, default=26)
    parser.add_argument("--systems", nargs="+", default=list(SCORED), choices=list(SCORED))
    options = read_options(parser, origins=1, systems=["Hénon"])
    print_machine()
    warnings.simplefilter("ignore")
    rows = []
    steps = np.array(STEPS) - 1
    for name in options.systems:
        ends = LONG_ROWS + ROWS + BETWEEN * np.arange(options.origins)
        values = SCORED[name](np.random.default_rng(0), int(ends[-1]) + max(STEPS))
        actual = np.stack([values[end : end + max(STEPS)] for end in ends])
        for method, drawn in forecasts(values, ends).items():
            errors = np.sqrt(((drawn[:, 0] - actual) ** 2).mean(0))[steps] / values.std()
            covered = (drawn[:, 1] <= actual) & (actual <= drawn[:, 2])
            cells = [" ".join(f"{error:.3f}" for error in errors), f"{100 * covered.mean():.0f}"]
            rows.append([name, method, *cells])
            print(*rows[-1], sep=" | ", flush=True)
    print_table(["system", "method", f"steps {STEPS}", f"covers at {LEVEL}"], rows)


if __name__ == "__main__":
    main()
