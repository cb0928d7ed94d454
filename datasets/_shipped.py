"""Loaders of data sets that ship with statsmodels and arch, without download."""

import inspect
import itertools
import textwrap
from collections.abc import Callable
from importlib import import_module
from importlib.resources import files

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from tsrnn.datasets._catalogue import IRREGULAR, RECORDS, Record, tidy

INDEX = {
    "W-SAT": "Saturdays",
    "YS": "years stamped on 1 January",
    "QS": "quarters stamped on their first day",
    "MS": "months stamped on their first day",
    "B": "all weekdays",
    IRREGULAR: "trading days",
}


def _loader(name: str) -> Callable[[], pd.DataFrame]:
    """Return the loader of a data set, documented by its record."""
    record = RECORDS[name]

    def load() -> pd.DataFrame:
        frame = _shipped_table(record)
        return tidy(record, _ARRANGED[name](frame) if name in _ARRANGED else frame)

    load.__name__ = load.__qualname__ = f"load_{name}"
    load.__doc__ = _documentation(record)
    return load


def _documentation(record: Record) -> str:
    """Return the docstring of a loader."""
    units = record.units
    if isinstance(units, str):
        columns = f"A column a country, {units}"
    else:
        # Consecutive columns with the same unit are listed together.
        groups = [(unit, list(names)) for unit, names in itertools.groupby(units, units.get)]
        texts = [f"{', '.join(f'``{name}``' for name in names)} ({unit})" for unit, names in groups]
        columns = f"Column{'s' if len(units) > 1 else ''} {', '.join(texts)}"
    spacing = "" if record.frequency == IRREGULAR else f" (``{record.frequency}``)"
    returns = f"{columns}; index ``ds``, {INDEX[record.frequency]}{spacing}."
    complete = "" if "NaN" in record.notes else "No value is missing."
    origin = f"Source: {record.source}. Licence: {record.license}."
    notes = " ".join(filter(None, [complete, record.notes, record.remarks, origin]))
    return f"""Load the {record.subject}.

    Returns
    -------
    DataFrame, shape ({record.rows}, {record.columns})
{textwrap.fill(returns, 96, initial_indent=" " * 8, subsequent_indent=" " * 8)}

    Notes
    -----
{textwrap.fill(notes, 96, initial_indent=" " * 4, subsequent_indent=" " * 4)}

    Examples
    --------
    >>> from tsrnn.datasets import load_{record.name}
{textwrap.indent(inspect.cleandoc(record.example), " " * 4)}
    """


def _shipped_table(record: Record) -> pd.DataFrame:
    """Return the table as shipped by the library."""
    if record.shipped_by == "statsmodels":
        return import_module(f"statsmodels.datasets.{record.name}").load_pandas().data
    if record.name == "frenchdata":
        # The loader of arch reads stamps such as 192607 as nanoseconds since 1970.
        with (files("arch.data.frenchdata") / "frenchdata.csv.gz").open("rb") as file:
            return pd.read_csv(file, index_col="Date", compression="gzip")
    module = "default" if record.name == "corporate_yields" else record.name
    return import_module(f"arch.data.{module}").load()


def _month_starts(year: ArrayLike, month: ArrayLike = 1) -> pd.DatetimeIndex:
    """Return the first day of each month, given integers `year` and `month` (1 to 12)."""
    months = (np.asarray(year, dtype="int64") - 1970) * 12 + np.asarray(month, dtype="int64") - 1
    return pd.DatetimeIndex(months.astype("datetime64[M]").astype("datetime64[s]"))


def _by_quarter(frame: pd.DataFrame) -> pd.DataFrame:
    """Index a frame by the quarters in its columns ``year`` and ``quarter``."""
    return frame.set_axis(_month_starts(frame["year"], 3 * frame["quarter"] - 2))


def _elnino(frame: pd.DataFrame) -> pd.DataFrame:
    """Convert a table of years in rows and months in columns to one column."""
    years = frame.set_index("YEAR")
    index = _month_starts(np.repeat(years.index, 12), np.tile(np.arange(1, 13), len(years)))
    return pd.DataFrame({"temperature": years.to_numpy().ravel()}, index=index)


def _fertility(frame: pd.DataFrame) -> pd.DataFrame:
    """Convert a table of countries in rows and years in columns to a column per country."""
    years = frame.set_index("Country Name").filter(regex=r"^\d{4}$").T
    return years.set_axis(_month_starts(years.index.astype("int64")))


def _crude(frame: pd.DataFrame) -> pd.DataFrame:
    stamps = pd.DatetimeIndex(frame.index)
    return frame.set_axis(_month_starts(stamps.year, stamps.month))


# Name -> function that gives the shipped table its time index and the names of the record.
_ARRANGED: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "sunspots": lambda f: f.set_axis(_month_starts(f["YEAR"])).rename(
        columns={"SUNACTIVITY": "sunspots"}
    ),
    "nile": lambda f: f.set_axis(_month_starts(f["year"])),
    "macrodata": _by_quarter,
    "interest_inflation": _by_quarter,
    "elec_equip": lambda f: f.rename(columns={"STS.M.I7.W.TOVT.NS0016.4.000": "turnover"}),
    "elnino": _elnino,
    "fertility": _fertility,
    "wti": lambda f: f.rename(columns={"DCOILWTICO": "wti"}),
    "core_cpi": lambda f: f.rename(columns={"CPILFESL": "core_cpi"}),
    "crude": _crude,
    "frenchdata": lambda f: f.set_axis(_month_starts(f.index // 100, f.index % 100)),
}

load_co2 = _loader("co2")
load_sunspots = _loader("sunspots")
load_nile = _loader("nile")
load_macrodata = _loader("macrodata")
load_interest_inflation = _loader("interest_inflation")
load_danish_data = _loader("danish_data")
load_elec_equip = _loader("elec_equip")
load_elnino = _loader("elnino")
load_fertility = _loader("fertility")
load_sp500 = _loader("sp500")
load_nasdaq = _loader("nasdaq")
load_vix = _loader("vix")
load_wti = _loader("wti")
load_core_cpi = _loader("core_cpi")
load_crude = _loader("crude")
load_corporate_yields = _loader("corporate_yields")
load_frenchdata = _loader("frenchdata")
