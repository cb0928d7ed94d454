"""Series of known countries, with their holidays: `columns.py`, section ``holidays``.

Series and rows that the columns of holidays were chosen on stand in `DEVELOPMENT`, others in
`HELD_OUT`, chosen by their descriptions before anything was fitted to them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from _column_series import read


class Dated(NamedTuple):
    """Series of a country, how many rows are forecast from origins `step` rows apart."""

    y: pd.Series
    country: str
    season: int
    h: int
    test: int
    step: int


def births(first: str, last: str, test: int) -> Dated:
    """Births in the United States by day."""
    data = read("mosaicData", "Birthdays")
    days = pd.to_datetime(data["date"]).dt.normalize()
    y = data.groupby(days)["births"].sum().sort_index().astype(float).asfreq("D")
    return Dated(y[first:last], "US", 7, 14, test, 5)


def cash(data_home: Path, test: int, rows: int) -> Dated:
    """Withdrawals from cash machines in England by day, the mean of 111."""
    frame = pd.read_csv(
        data_home / "nn5" / "nn5.csv.gz", parse_dates=["date"], index_col="date"
    ).asfreq("D")
    return Dated(frame.mean(axis=1)[:rows], "GB-ENG", 7, 14, test, 4)


def electricity() -> Dated:
    """Electricity demand of Victoria by day."""
    y = read("fpp2", "elecdaily")["Demand"].to_numpy(float)
    days = pd.date_range("2014-01-01", periods=len(y), freq="D")
    return Dated(pd.Series(y, days), "AU-VIC", 7, 14, 135, 2)


def flights() -> Dated:
    """Departures from New York by day."""
    data = read("nycflights13", "flights")
    days = pd.to_datetime(data[["year", "month", "day"]])
    y = days.value_counts().sort_index().astype(float).asfreq("D")
    return Dated(y, "US", 7, 14, 120, 2)


def regular(
    package: str, item: str, column: str, start: str, freq: str, country: str
) -> Callable[[], Dated]:
    """Reader of a series of months, quarters or weeks, of which the last 200 rows are taken."""
    season, h, test, step = {"M": (12, 12, 57, 5), "Q": (4, 8, 53, 5), "W": (52, 13, 104, 13)}[
        freq[0]
    ]

    def make() -> Dated:
        y = read(package, item)[column].to_numpy(float)
        index = pd.period_range(start, periods=len(y), freq=freq)
        return Dated(pd.Series(y, index)[-200 if season < 52 else -520 :], country, season, h, test,
                     step)  # fmt: skip

    return make


def readers(data_home: Path) -> tuple[dict[str, Callable[[], Dated]], ...]:
    """Series to choose on, and those held out."""
    development = {
        "births, 1985-86": lambda: births("1983", "1986", 730),
        "cash, to March 1998": lambda: cash(data_home, 194, 735),
        "electricity": electricity,
        "auscafe": regular("fpp2", "auscafe", "value", "1982-04", "M", "AU"),
        "debitcards": regular("fpp2", "debitcards", "value", "2000-01", "M", "IS"),
        "usmelec": regular("fpp2", "usmelec", "value", "1973-01", "M", "US"),
        "a10": regular("fpp2", "a10", "value", "1991-07", "M", "AU"),
        "h02": regular("fpp2", "h02", "value", "1991-07", "M", "AU"),
        "canadian_gas": regular("fpp3", "canadian_gas", "Volume", "1960-01", "M", "CA"),
        "ausbeer": regular("fpp2", "ausbeer", "value", "1956Q1", "Q", "AU"),
    }
    held_out = {
        "births, 1987-88": lambda: births("1985", "1988", 731),
        "cash, last 56 days": lambda: cash(data_home, 56, 791),
        "flights": flights,
        "qauselec": regular("fpp2", "qauselec", "value", "1956Q1", "Q", "AU"),
        "qcement": regular("fpp2", "qcement", "value", "1956Q1", "Q", "AU"),
        "UKDriverDeaths": regular("datasets", "UKDriverDeaths", "value", "1969-01", "M", "GB"),
        "gasoline": regular("fpp2", "gasoline", "value", "1991-02-04", "W-SUN", "US"),
    }
    return development, held_out


def near_holidays(y: pd.Series, country: str) -> np.ndarray:
    """Rows on public holidays and the days beside them; all rows of longer steps."""
    if not isinstance(y.index, pd.DatetimeIndex):
        return np.ones(len(y), bool)
    from holidays import country_holidays

    place, _, part = country.partition("-")
    known = country_holidays(place, subdiv=part or None, years=range(1960, 2030))
    days = y.index.normalize()
    beside = [days + pd.Timedelta(days=shift) for shift in (-1, 0, 1)]
    return np.any([[date in known for date in each.date] for each in beside], axis=0)
