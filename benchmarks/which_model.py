"""Seconds of a fit and a forecast, for each row of the page "Which model for my data?".

Every case is a call that a user would write, on data of the package or on simulated series, run
once in this process after the imports: fit, then `predict` with intervals of 80 percent.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from _timing import option_parser, print_machine, print_table, read_options

import tsrnn
from tsrnn.datasets import load_elec_equip, load_macrodata, load_sp500


def seasonal_panel(n_series: int, n_rows: int, freq: str, season: int, seed: int) -> pd.DataFrame:
    """Long frame of random walks with a season."""
    rng = np.random.default_rng(seed)
    wave = np.sin(2 * np.pi * np.arange(n_rows) / season) * rng.uniform(2, 5, (n_series, 1))
    y = 50 + wave + rng.normal(0, 0.3, (n_series, n_rows)).cumsum(1)
    y += rng.normal(0, 1, y.shape)
    times = pd.date_range("2015-01-01", periods=n_rows, freq=freq)
    ids = np.repeat([f"s{i}" for i in range(n_series)], n_rows)
    return pd.DataFrame({"unique_id": ids, "ds": np.tile(times, n_series), "y": y.ravel()})


def demand(n_series: int, n_rows: int, seed: int) -> pd.DataFrame:
    """Long frame of monthly counts, most of them zero."""
    rng = np.random.default_rng(seed)
    y = rng.poisson(rng.uniform(0.1, 1, (n_series, 1)), (n_series, n_rows)).astype(float)
    times = pd.date_range("2020-01-01", periods=n_rows, freq="MS")
    ids = np.repeat([f"part{i}" for i in range(n_series)], n_rows)
    return pd.DataFrame({"unique_id": ids, "ds": np.tile(times, n_series), "y": y.ravel()})


def hourly(n_rows: int, seed: int, with_column: bool = False) -> pd.DataFrame:
    """Hourly load with a day and a week, and the temperature that moves it."""
    rng = np.random.default_rng(seed)
    hours = np.arange(n_rows)
    heat = 15 - 10 * np.cos(2 * np.pi * hours / 8766) + rng.normal(0, 0.5, n_rows).cumsum() % 8
    load = 100 + 20 * np.sin(2 * np.pi * hours / 24) + 10 * (hours // 24 % 7 < 5)
    load = load + 0.08 * (heat - 18) ** 2 + rng.normal(0, 2, n_rows)
    times = pd.date_range("2022-01-01", periods=n_rows, freq="h")
    frame = pd.DataFrame({"load": load, "temperature": heat}, index=times)
    return frame if with_column else frame[["load"]]


def returns() -> pd.DataFrame:
    """Daily returns in percent."""
    return 100 * load_sp500()[["Adj Close"]].apply(np.log).diff().dropna()


def growth() -> pd.DataFrame:
    """Quarterly growth of three macroeconomic series, in percent."""
    series = load_macrodata()[["realgdp", "realcons", "realinv"]]
    return 100 * series.apply(np.log).diff().dropna()


CASES: dict[str, tuple[str, Callable[[], Any], Callable[[], Any]]] = {
    "one short series": (
        "ParaRNNForecaster()",
        lambda: load_elec_equip()[:120],
        lambda: tsrnn.ParaRNNForecaster(),
    ),
    "one short series, classical": (
        "Combination.classical()",
        lambda: load_elec_equip()[:120],
        lambda: tsrnn.Combination.classical(),
    ),
    "1,000 monthly series of ten years": (
        "ParaRNNForecaster()",
        lambda: seasonal_panel(1000, 120, "MS", 12, 0),
        lambda: tsrnn.ParaRNNForecaster(),
    ),
    "1,000 monthly series, the pretrained network alone": (
        'ParaRNNForecaster(prior="only")',
        lambda: seasonal_panel(1000, 120, "MS", 12, 0),
        lambda: tsrnn.ParaRNNForecaster(prior="only"),
    ),
    "1,000 monthly series, classical": (
        "Theta()",
        lambda: seasonal_panel(1000, 120, "MS", 12, 0),
        lambda: tsrnn.Theta(),
    ),
    "a year of hours": (
        "ParaRNNForecaster()",
        lambda: hourly(8760, 1),
        lambda: tsrnn.ParaRNNForecaster(),
    ),
    "a year of hours, temperature known ahead": (
        'ParaRNNForecaster(target="load", known_ahead="temperature")',
        lambda: hourly(8760 + 48, 1, with_column=True),
        lambda: tsrnn.ParaRNNForecaster(target="load", known_ahead="temperature"),
    ),
    "1,000 spare parts": (
        "ParaRNNForecaster()",
        lambda: demand(1000, 60, 2),
        lambda: tsrnn.ParaRNNForecaster(),
    ),
    "three macroeconomic series": (
        "VARMA(order=(2, 0))",
        growth,
        lambda: tsrnn.VARMA(order=(2, 0), target=["realgdp", "realcons", "realinv"]),
    ),
    "quarterly inflation, with standard errors": (
        "ARMA(order=(1, 1))",
        lambda: load_macrodata()[["infl"]],
        lambda: tsrnn.ARMA(order=(1, 1)),
    ),
    "volatility of daily returns": ("GARCH()", returns, lambda: tsrnn.GARCH(random_state=0)),
}


def timed(make_data: Callable[[], Any], make_model: Callable[[], Any], rows: int | None) -> float:
    """Seconds of a fit and a forecast with intervals."""
    frame, model = make_data(), make_model()
    if rows is not None:
        frame = frame.iloc[:rows]
    future = None
    if getattr(model, "known_ahead", None):
        frame, future = frame.iloc[:-48], frame.iloc[-48:][["temperature"]]
    start = time.perf_counter()
    fitted = model.fit(frame)
    fitted.predict(level=80) if future is None else fitted.predict(level=80, X_future=future)
    return time.perf_counter() - start


def main() -> None:
    parser = option_parser(__doc__)
    parser.add_argument("--rows", type=int, help="first rows of each frame alone")
    options = read_options(parser, rows=120)
    print_machine()
    table = [
        [data, f"`{call}`", f"{timed(make_data, make_model, options.rows):.2f}"]
        for data, (call, make_data, make_model) in CASES.items()
    ]
    print_table(["data", "model", "fit and forecast, s"], table)


if __name__ == "__main__":
    main()
