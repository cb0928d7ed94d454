"""Networks and linear paths on nonlinear processes whose best forecast is known.

Mean squared errors one step ahead after the data, over that of the conditional mean: 1 is the best
there can be. Means over replications. Of observed maps the best forecast from the rows is not
known; their ratio is to the noise. Columns: the linear path alone, the default, a network in any
case, and variants of it. With ``--gains`` the networks of series that are linear, nearly and not
are held against the linear path, by the statistic of their gain on the validation part.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from _timing import option_parser, print_machine, read_options

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
CASES: dict[str, dict[str, Any]] = {
    "linear path": {"network": False},
    "default": {},
    "always a network": {"network": True},
    "always a local level": {"local_level": True},
    'init="uniform"': {"init": "uniform"},
    'cell="gru"': {"cell": "gru"},
    'loss="mae"': {"loss": "mae"},
}


def daily(y: np.ndarray) -> pd.Series:
    """Values as a series of days."""
    return pd.Series(y, pd.date_range("2000", periods=len(y), freq="D"), name="y")


def fitted(y: np.ndarray, rows: int, arguments: dict[str, Any]) -> ParaRNNForecaster:
    """Forecaster fitted to the first rows."""
    fixed: dict[str, Any] = {"prior": None, "season_length": 1, "random_state": 0}
    return ParaRNNForecaster(1, **fixed, **arguments).fit(daily(y)[:rows])


def squared_error(model: ParaRNNForecaster, y: np.ndarray, rows: int) -> float:
    """Mean squared error one step ahead after these rows."""
    forecast = model.predict_rolling(daily(y)[rows:])["y"].to_numpy()
    return float(np.mean((forecast - y[rows:]) ** 2))


def ratio(y: np.ndarray, mean: np.ndarray, rows: int, arguments: dict[str, Any]) -> float:
    """Mean squared error after the data over that of the conditional mean."""
    error = squared_error(fitted(y, rows, arguments), y, rows)
    return error / float(np.mean((y - mean)[rows:] ** 2))


def gains(rows: int, per_process: int) -> None:
    """Errors of networks against the linear path, by the statistic of their gain."""
    found = []
    for name in ("AR(1)", "Markov switching", "smooth transition"):
        for i in range(per_process):
            y, _ = PROCESSES[name](rows + 3000, 100 + i)
            fits = [fitted(y, rows, {"network": network}) for network in (True, False)]
            errors = [squared_error(model, y, rows) for model in fits]
            test = fits[0].fitted_.trained.tests.loc[("all", "model")]
            found.append((fits[0].best_epoch_, test["statistic"], errors[0] / errors[1] - 1))
    table = pd.DataFrame(found, columns=["epoch", "statistic", "error"])
    print_row(["statistic", "networks", "error afterwards"])
    print_row(["---", "---:", "---:"])
    none = table["epoch"] == 0
    print_row(["epoch 0 was best", none.sum(), f"{table['error'][none].mean():+.1%}"])
    for low, high in ((0.0, 0.5), (0.5, 1.0), (1.0, 2.0), (2.0, np.inf)):
        part = table["error"][~none & table["statistic"].between(low, high, inclusive="left")]
        print_row([f"{low:g} to {high:g}", len(part), f"{part.mean():+.1%}"])


def print_row(cells: list[object]) -> None:
    """Row of a table, as it comes."""
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def main() -> None:
    parser = option_parser(__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[1000, 2000, 8000])
    parser.add_argument("--replications", type=int, default=3)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES)[:4])
    parser.add_argument("--processes", nargs="+", choices=PROCESSES, default=list(PROCESSES))
    parser.add_argument("--gains", type=int, help="errors by the statistic, of so many series")
    options = read_options(
        parser, rows=[200], replications=1, cases=list(CASES)[:1], processes=list(PROCESSES)[:1]
    )
    warnings.simplefilter("ignore")
    print_machine()
    if options.gains:
        gains(1000, options.gains)
        return
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
