"""Rows from which on the prior network is adapted to a series, and a network is trained on it.

Windows of n rows, of series that the prior network was never shown, are forecast by a
`ParaRNNForecaster` that trains a network for each (``prior=None``), by the prior network as it was
trained (``prior="only"``), and by the same adapted to the window. MASE, means over windows, how
often the adapted network is better than the one that is trained, and how many values its intervals
of 80 and 95 percent cover, a tenth wider as of a single series. Monthly are the temperatures of
the eastern Pacific; hourly series are those of ETTh1 and of the weather at one place, daily ones
exchange rates, from the files of a folder. None of them is in the collections that the prior
network learned from, nor in those by which it is judged.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from _timing import option_parser, print_table

from tsrnn import ParaRNNForecaster
from tsrnn.datasets import load_elnino
from tsrnn.prior import (
    IN_SAMPLE_WIDTH,
    PANEL_RATE,
    PAST_ROWS,
    SERIES_RATE,
    trained_prior,
    window_rows,
)

ROWS = (120, 200, 300, 400, 800, 1600)
WINDOWS = 10
H = {"MS": 18, "h": 24, "D": 14}
SEASON = {"MS": 12, "h": 24, "D": 1}


def series(folder: Path) -> Iterator[tuple[str, str, list[np.ndarray]]]:
    """Names, frequencies and values of long series."""
    yield "El Niño, monthly", "MS", [load_elnino()["temperature"].to_numpy(float)]
    etth1 = pd.read_csv(folder / "ett" / "ETTh1.csv.gz")
    yield "ETTh1, hourly", "h", [etth1[name].to_numpy(float) for name in etth1.columns[1:]]
    weather = pd.read_csv(folder / "weather" / "WTH.csv.gz")
    names = ("DryBulbCelsius", "RelativeHumidity", "WindSpeed", "StationPressure")
    yield "weather, hourly", "h", [weather[name].to_numpy(float) for name in names]
    rates = pd.read_csv(folder / "exchange_rate" / "exchange_rate.csv.gz")
    yield "exchange rates, daily", "D", [rates[name].to_numpy(float) for name in rates.columns[1:]]


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


def forecasts(past: np.ndarray, freq: str, h: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Forecasts of the h rows after a window, NaN of a network for which it is too short.

    With the ends (4, h) of the intervals of the adapted network.
    """
    times = pd.date_range("2000-01-01", periods=len(past), freq=freq)
    frame, season = pd.Series(past, times, name="y"), SEASON[freq]

    def fitted(prior: str | None) -> np.ndarray:
        model = ParaRNNForecaster(h, prior=prior, season_length=season, random_state=0)
        try:
            return model.fit(frame).predict().to_numpy().ravel()
        except ValueError:
            return np.full(h, np.nan)

    rate = SERIES_RATE if season > 1 else PANEL_RATE
    adapted = trained_prior().adapted_to([past], season, rate)
    rows = past[-window_rows(season) :]
    wider = np.full(PAST_ROWS, IN_SAMPLE_WIDTH)
    made = adapted.forecast(rows[None], np.array([len(rows)]), season, h, wider)
    points = {"trained": fitted(None), "prior": fitted("only"), "adapted": made.median[0]}
    return points, made.at([0.1, 0.9, 0.025, 0.975])[0]


def main() -> None:
    parser = option_parser(__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--rows", type=int, nargs="+", default=ROWS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # about intervals that are not asked for
    header = ["series", "rows", "windows", "trained", "prior", "adapted", "adapted is better, %",
              "covers at 80", "covers at 95"]  # fmt: skip
    table = []
    for name, freq, values in series(options.data):
        rng, h, season = np.random.default_rng(0), H[freq], SEASON[freq]
        for n in options.rows:
            drawn = windows(values, n, h, rng)
            if not drawn:
                continue
            scores: dict[str, list[float]] = {}
            inside = []
            for past, coming in drawn:
                lag = season if n > 2 * season else 1
                scale = np.abs(past[lag:] - past[:-lag]).mean()
                points, (low, high, lowest, highest) = forecasts(past, freq, h)
                pairs = ((low, high), (lowest, highest))
                inside.append([((coming >= a) & (coming <= b)).mean() for a, b in pairs])
                for label, forecast in points.items():
                    error = float(np.abs(forecast - coming).mean() / scale)
                    scores.setdefault(label, []).append(error)
            better = np.mean(np.array(scores["adapted"]) < np.array(scores["trained"]))
            means = [f"{np.mean(each):.3f}" for each in scores.values()]
            covers = [f"{100 * share:.1f}" for share in np.mean(inside, 0)]
            table.append([name, str(n), str(len(drawn)), *means, f"{100 * better:.0f}", *covers])
            print(*table[-1], flush=True)
    print_table(header, table)


if __name__ == "__main__":
    main()
