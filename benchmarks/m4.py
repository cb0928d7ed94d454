"""M4, hourly and yearly: one global model for all series, scored as the competition scored.

Errors are sMAPE and MASE over the 48 or 6 steps after each series, their averages over series
divided by those published for Naive2 and averaged: OWA (Makridakis, Spiliotis and Assimakopoulos,
2020). The scores of the naive forecasts are computed first and must equal the published ones.
``--data-home`` names a folder with the files of the competition.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
import pandas as pd
from _timing import print_machine, print_table, read_options

import tsrnn

LOCAL_COPY = Path(__file__).resolve().parents[2] / "shared" / "data" / "m4"
FILES = {
    "hourly": ("Hourly-train.csv.gz", "Hourly-test.csv.gz", 0),
    "yearly": ("Yearly-train_rebuilt.csv.gz", "Yearly-test.csv.gz", None),
}
FREQUENCY = {"hourly": "h", "yearly": "Y"}
SEASON = {"hourly": 24, "yearly": 1}
ARGUMENTS = {
    "hourly": {"use_boxcox": "log", "loss": "mae", "input_size": 336},
    "yearly": {"use_boxcox": "log", "loss": "mae", "input_size": 10},
}
SHOWN = ("Naive2", "sNaive", "Theta", "RNN", "118 (Smyl)")


def ragged(path: Path, header: int | None) -> dict[str, np.ndarray]:
    """Series by name from rows of unequal length."""
    lines = pd.read_csv(path, header=header, sep="\0", dtype=str).iloc[:, 0]
    cells = (line.replace('"', "").rstrip(",").split(",") for line in lines)
    return {name: np.array(values, float) for name, *values in cells}


def long_frame(series: dict[str, np.ndarray], freq: str) -> pd.DataFrame:
    """Series as a long frame; all begin on one day, as the competition gives no usable dates."""
    longest = max(map(len, series.values()))
    if freq == "Y":
        times = pd.period_range("1100", periods=longest, freq=freq)
    else:
        times = pd.date_range("2000-01-01", periods=longest, freq=freq)
    lengths = [len(values) for values in series.values()]
    return pd.DataFrame(
        {
            "unique_id": np.repeat(list(series), lengths),
            "ds": times[np.concatenate([np.arange(n) for n in lengths])],
            "y": np.concatenate(list(series.values())),
        }
    )


class Scores:
    """sMAPE in percent and MASE, averages over series, and OWA."""

    def __init__(self, train: dict[str, np.ndarray], test: dict[str, np.ndarray], which: str,
                 published: pd.DataFrame) -> None:  # fmt: skip
        m = SEASON[which]
        self.actual = np.stack([test[name] for name in train])
        self.scale = np.array([np.abs(y[m:] - y[:-m]).mean() for y in train.values()])
        column = which.capitalize()
        self.naive2 = published.loc["Naive2", [f"sMAPE_{column}", f"MASE_{column}"]].to_numpy(float)

    def __call__(self, forecast: np.ndarray) -> tuple[float, float, float]:
        """Of forecasts (S, h)."""
        error = np.abs(self.actual - forecast)
        smape = 200 * (error / (np.abs(self.actual) + np.abs(forecast))).mean()
        mase = (error.mean(1) / self.scale).mean()
        return smape, mase, float(np.mean([smape, mase] / self.naive2))


def check_naive(train: dict[str, np.ndarray], scores: Scores, which: str,
                published: pd.DataFrame) -> None:  # fmt: skip
    """The scores of the seasonal naive forecast are the published ones."""
    h, m, column = scores.actual.shape[1], SEASON[which], which.capitalize()
    forecast = np.stack([np.resize(y[-m:], h) for y in train.values()])
    found = scores(forecast)[:2]
    expected = published.loc["sNaive", [f"sMAPE_{column}", f"MASE_{column}"]].to_numpy(float)
    assert np.allclose(found, expected, atol=6e-4), (found, expected)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-home", type=Path, default=LOCAL_COPY)
    parser.add_argument("--frequency", choices=FILES, default="hourly")
    parser.add_argument(
        "--sample", type=int, help="take every n-th series so that this many remain"
    )
    parser.add_argument("--forecaster", default="ParaRNNForecaster")
    parser.add_argument(
        "--arguments", type=json.loads, default={}, help="JSON, beside the defaults"
    )
    parser.add_argument("--seeds", type=int, default=1)
    options = read_options(parser, sample=3, arguments={"max_epochs": 2})
    which, (train_file, test_file, header) = options.frequency, FILES[options.frequency]
    published = pd.read_csv(
        options.data_home / "published_scores_by_frequency.csv.gz", index_col="method"
    )
    train = ragged(options.data_home / train_file, header)
    test = ragged(options.data_home / test_file, 0)
    check_naive(train, Scores(train, test, which, published), which, published)
    if options.sample:
        chosen = np.linspace(0, len(train) - 1, options.sample).astype(int)
        train = {name: y for i, (name, y) in enumerate(train.items()) if i in set(chosen)}
    scores = Scores(train, test, which, published)
    frame, h = long_frame(train, FREQUENCY[which]), scores.actual.shape[1]
    print_machine()
    arguments = ARGUMENTS[which] | options.arguments
    print(f"{len(train)} series, {arguments}")
    rows = []
    for seed in range(options.seeds):
        model = getattr(tsrnn, options.forecaster)(horizon=h, random_state=seed, **arguments)
        start = time.perf_counter()
        forecast = model.fit(frame).predict(h)
        seconds = time.perf_counter() - start
        by_series = dict(list(forecast.groupby("unique_id")[model.column_name]))
        found = scores(np.stack([by_series[name].to_numpy() for name in train]))
        epochs = len(model.history_)
        rows.append(
            [options.forecaster, seed, *(f"{v:.3f}" for v in found), f"{seconds:.0f}", epochs]
        )
    column = which.capitalize()
    for name in SHOWN:
        cells = published.loc[name, [f"{score}_{column}" for score in ("sMAPE", "MASE", "OWA")]]
        rows.append([f"{name} (published)", "", *(f"{v:.3f}" for v in cells.astype(float)), "", ""])
    print_table(["model", "seed", "sMAPE", "MASE", "OWA", "seconds", "epochs"], rows)


if __name__ == "__main__":
    main()
