"""Backtests: what fifty windows of a network cost, and a panel of hourly series.

``windows``: a ParaRNN over 50 windows with ``refit=False``, beside one fit and one predict on the
rows before the first of them; the forecasts are compared with those of `predict_rolling`.
``panel``: seasonal naive, Theta of statsmodels and ParaRNN on the hourly series of the M4
competition (simulated ones if they are not there) in three windows of 48 hours, with the measures
of `compare`.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _timing import peak_bytes, print_machine, print_table, read_options

from tsrnn import ParaRNNForecaster, backtest, compare, datasets
from tsrnn.baselines import SeasonalNaive, StatsmodelsTheta

M4 = Path(__file__).resolve().parents[2] / "shared" / "data" / "m4" / "Hourly-train.csv.gz"
HOURLY, DAY, AHEAD = 400, 24, 48


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    made = work()
    return time.perf_counter() - start, made


def windows(n: int, **arguments: Any) -> None:
    y = datasets.load_elnino()["temperature"]
    h = 12
    first = len(y) - h - (n - 1)

    def model() -> ParaRNNForecaster:
        return ParaRNNForecaster(horizon=h, random_state=0, **arguments)

    model().fit(y.iloc[:first]).predict(h, level=80)  # imports and kernels
    once, fitted = timed(lambda: model().fit(y.iloc[:first]))
    predicted, _ = timed(lambda: fitted.predict(h, level=80))
    whole, frame = timed(lambda: backtest(model(), y, h, n, step_size=1, refit=False, level=80))
    rolled = fitted.predict_rolling(y.iloc[first:], h=h, level=80)
    gap = np.abs(frame["ParaRNN"].to_numpy() - rolled["temperature"].to_numpy()).max()
    assert gap < 1e-3, f"forecasts differ from predict_rolling by {gap:.1e}"
    print(
        f"\n{n} windows of {h} months, refit=False; largest difference to predict_rolling {gap:.0e}"
    )
    print_table(
        ("fit, s", "predict, s", "backtest, s", "times fit and predict"),
        [(f"{once:.2f}", f"{predicted:.3f}", f"{whole:.2f}", f"{whole / (once + predicted):.2f}")],
    )


def hourly_series() -> tuple[str, pd.DataFrame]:
    """The first series of M4 Hourly in a long frame, or simulated ones."""
    if M4.is_file():
        table = pd.read_csv(M4, index_col=0).iloc[:HOURLY].copy()
        long = table.reset_index(names="unique_id").melt("unique_id", value_name="y").dropna()
        long["ds"] = long["variable"].str[1:].astype(int)
        long = long.sort_values(["unique_id", "ds"])
        return "M4 Hourly", long[["unique_id", "ds", "y"]].reset_index(drop=True)
    t, rng = np.arange(700), np.random.default_rng(0)
    level = rng.uniform(10, 1000, (HOURLY, 1))
    y = level * (2 + np.sin(2 * np.pi * t / DAY) + 0.2 * rng.normal(size=(HOURLY, 700)))
    return "simulated", pd.DataFrame(
        {"unique_id": np.repeat(np.arange(HOURLY), 700), "ds": np.tile(t, HOURLY), "y": y.ravel()}
    )


def panel() -> None:
    name, long = hourly_series()
    hours = pd.Timestamp("2020-01-01") + pd.to_timedelta(long["ds"], unit="h")
    long = long.assign(ds=hours)
    models = {
        "seasonal naive": SeasonalNaive(),
        "StatsmodelsTheta": StatsmodelsTheta(n_jobs=os.cpu_count()),
        "ParaRNN": ParaRNNForecaster(horizon=AHEAD, use_boxcox="log", loss="mae", random_state=0),
    }
    rows, frames = [], []
    for label, model in models.items():
        made: list[pd.DataFrame] = []

        def run(model: Any = model, label: str = label, made: list = made) -> None:
            made.append(backtest({label: model}, long, AHEAD, 3, refit=False, level=80))

        start = time.perf_counter()
        peak = peak_bytes(run)
        rows.append((label, f"{time.perf_counter() - start:.1f}", f"{peak / 2**20:.0f}"))
        frames.append(made[0])
    print(f"\n{long['unique_id'].nunique()} hourly series ({name}), 3 windows of {AHEAD} hours")
    print_table(("model", "backtest, s", "memory above the data at most, MiB"), rows)
    frame = frames[0]
    for other in frames[1:]:
        frame = frame.join(other.drop(columns=["unique_id", "ds", "cutoff", "y"]))
    frame.attrs = frames[0].attrs
    seconds, result = timed(lambda: compare(frame))
    print(f"\ncompare: {seconds:.1f} s\n{result.summary()}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="*", default=["windows", "panel"])
    options = read_options(parser, what=["windows"])
    warnings.filterwarnings("ignore", module="lightning")
    print_machine()
    if "windows" in options.what:
        windows(3, max_epochs=2) if options.smoke else windows(50)
    if "panel" in options.what:
        panel()
