"""Networks and linear paths on nonlinear processes whose best forecast is known.

Mean squared errors one step ahead after the data, over that of the conditional mean: 1 is the best
there can be. Means over replications. Of observed maps the best forecast from the rows is not
known; their ratio is to the noise. Columns: the linear path alone, the default, a network in any
case, and variants of it.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd
from _timing import print_machine

from tsrnn import ParaRNNForecaster
from tsrnn.datasets import (
    arma_inputs,
    bilinear,
    henon_map,
    logistic_map,
    markov_switching,
    smooth_transition,
    threshold_autoregression,
)

TEST_ROWS = 5000


def autoregression(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """AR(1) with coefficient 0.6, of which no network can make more."""
    y = arma_inputs(1, n + 1, ar=0.6, ma=0.0, random_state=seed)[0, :, 0]
    return y[1:], 0.6 * y[:-1]


PROCESSES: dict[str, Callable[[int, int], tuple[np.ndarray, np.ndarray]]] = {
    "bilinear": bilinear,
    "threshold": threshold_autoregression,
    "smooth transition": smooth_transition,
    "Markov switching": markov_switching,
    "logistic map": logistic_map,
    "map of Hénon": henon_map,
    "AR(1)": autoregression,
}
CASES = {
    "linear path": {"network": False},
    "default": {},
    "always a network": {"network": True},
    "always a local level": {"local_level": True},
    'init="uniform"': {"init": "uniform"},
    'cell="gru"': {"cell": "gru"},
    'loss="mae"': {"loss": "mae"},
}


def ratio(y: np.ndarray, mean: np.ndarray, rows: int, arguments: dict[str, object]) -> float:
    """Mean squared error after the data over that of the conditional mean."""
    series = pd.Series(y, pd.date_range("2000", periods=len(y), freq="D"), name="y")
    model = ParaRNNForecaster(
        horizon=1, prior=None, season_length=1, random_state=0, **arguments
    ).fit(series[:rows])
    error = model.predict_rolling(series[rows:])["y"].to_numpy() - y[rows:]
    return float(np.mean(error**2) / np.mean((y - mean)[rows:] ** 2))


def print_row(cells: list[object]) -> None:
    """Row of a table, as it comes."""
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[1000, 2000, 8000])
    parser.add_argument("--replications", type=int, default=3)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES)[:4])
    parser.add_argument("--processes", nargs="+", choices=PROCESSES, default=list(PROCESSES))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print_machine()
    print_row(["process", "rows", *options.cases, "seconds"])
    print_row(["---:"] * (len(options.cases) + 3))
    for rows in options.rows:
        for name in options.processes:
            draws = [PROCESSES[name](rows + TEST_ROWS, 1 + i) for i in range(options.replications)]
            start = time.perf_counter()
            means = [
                np.mean([ratio(y, mean, rows, CASES[case]) for y, mean in draws])
                for case in options.cases
            ]
            seconds = time.perf_counter() - start
            print_row([name, rows, *(f"{value:.3f}" for value in means), f"{seconds:.0f}"])


if __name__ == "__main__":
    main()
