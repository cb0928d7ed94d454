"""ParaRNN beside the networks of neuralforecast, all with their defaults: seconds and errors.

A collection of monthly series of 200 rows, 12 steps ahead, forecast by one network for all of
them, and one of the series by itself. neuralforecast is not among what this package is developed
with: install it for this script. Its input size, which has no default, is two seasons.
"""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
from _timing import option_parser, print_machine, print_table, read_options
from fit_time import monthly_series

from tsrnn import ParaRNNForecaster
from tsrnn.baselines import SeasonalNaive

ROWS, HORIZON, SEASON = 200, 12, 12
Forecast = Callable[[pd.DataFrame], tuple[float, float, pd.DataFrame]]


def collection(n_series: int) -> pd.DataFrame:
    """Series with a trend, a season and noise, which differ in all of them."""
    parts = [monthly_series(ROWS + HORIZON, seed) for seed in range(1, n_series + 1)]
    return pd.DataFrame(
        {
            "unique_id": np.repeat([f"id_{i:04d}" for i in range(n_series)], ROWS + HORIZON),
            "ds": np.tile(parts[0].index, n_series),
            "y": np.concatenate([part.to_numpy() for part in parts]),
        }
    )


def ours(make: Callable[[], Any]) -> Forecast:
    """Seconds of fit and of predict of a forecaster, and its forecasts."""

    def forecast(train: pd.DataFrame) -> tuple[float, float, pd.DataFrame]:
        start = time.perf_counter()
        model = make().fit(train)
        fitted = time.perf_counter()
        frame = model.predict(HORIZON)
        return fitted - start, time.perf_counter() - fitted, frame

    return forecast


def theirs(name: str, **options: Any) -> Forecast:
    """The same of a network of neuralforecast."""

    def forecast(train: pd.DataFrame) -> tuple[float, float, pd.DataFrame]:
        import neuralforecast.models
        from neuralforecast import NeuralForecast

        quiet = {"enable_progress_bar": False, "logger": False, "enable_model_summary": False}
        network = getattr(neuralforecast.models, name)(
            h=HORIZON, input_size=2 * SEASON, random_seed=1, alias="y", **quiet, **options
        )
        model = NeuralForecast([network], freq="MS")
        start = time.perf_counter()
        model.fit(train)
        fitted = time.perf_counter()
        frame = model.predict()
        return fitted - start, time.perf_counter() - fitted, frame

    return forecast


def measure(frame: pd.DataFrame, methods: dict[str, Forecast]) -> None:
    """Print the table of one collection."""
    last = frame.groupby("unique_id", sort=False).cumcount() >= ROWS
    train, test = frame[~last], frame[last]
    keys = ["unique_id", "ds"]
    rows = []
    for name, forecast in methods.items():
        fitting, predicting, forecasts = forecast(train)
        named = forecasts.rename(columns={forecasts.columns[-1]: "forecast"})
        joined = test.merge(named, on=keys)
        assert len(joined) == len(test), "both forecast the same rows"
        error = (joined["y"] - joined["forecast"]).abs().mean()
        rows.append((name, f"{fitting:.2f}", f"{predicting:.3f}", f"{error:.2f}"))
    print(f"\n{frame['unique_id'].nunique():,} series of {ROWS} rows")
    print_table(("", "fit s", "predict s", "mean absolute error"), rows)


def main() -> None:
    parser = option_parser(__doc__)
    parser.add_argument("--series", type=int, nargs="+", default=[1, 1000])
    parser.add_argument("--models", nargs="*", default=["NHITS", "LSTM", "DLinear"])
    arguments = read_options(parser, series=[1])
    warnings.filterwarnings("ignore", module="neuralforecast|pytorch_lightning")
    logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
    print_machine()
    if find_spec("neuralforecast") is None:
        print("skipped: pip install neuralforecast")
        return
    forecaster = ours(lambda: ParaRNNForecaster(horizon=HORIZON, prior=None, random_state=0))
    few = collection(1)  # loads and compiles what first fits need
    for forecast in (forecaster, *(theirs(name, max_steps=2) for name in arguments.models)):
        forecast(few)
    methods = {"SeasonalNaive": ours(SeasonalNaive), "ParaRNNForecaster": forecaster}
    methods |= {f"neuralforecast, {name}": theirs(name) for name in arguments.models}
    for n_series in arguments.series:
        measure(collection(n_series), methods)


if __name__ == "__main__":
    main()
