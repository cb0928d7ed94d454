"""What is known of a data set, and the one shape in which every loader returns it."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

IRREGULAR = "irregular"


@dataclass(frozen=True)
class Record:
    """Facts about one data set.

    Parameters
    ----------
    name : str
        Name of the data set; its loader is ``load_<name>`` unless `loader` says otherwise.
    title : str
        One line saying what was measured, where and when.
    units : dict of str to str, or str
        Unit of every column, in the order of the columns; one string where all columns share it.
    frequency : str
        pandas alias of the spacing of the rows, or ``"irregular"``.
    source : str
        Who published the numbers, and the work to cite.
    license : str
        Terms as the distributor states them.
    shipped_by : str
        Package that carries the file, or ``"download"``.
    rows, columns : int
        Size of the frame.
    notes : str
        What a user has to know before modelling.
    loader : str
        Name of the function, where it is not ``load_<name>``.
    """

    name: str
    title: str
    units: Mapping[str, str] | str
    frequency: str
    source: str
    license: str
    shipped_by: str
    rows: int
    columns: int
    notes: str = ""
    loader: str = ""

    def attrs(self, columns: pd.Index) -> dict[Hashable, Any]:
        """Return the facts that travel with a frame of these columns in ``frame.attrs``."""
        units = dict.fromkeys(columns, self.units) if isinstance(self.units, str) else self.units
        return {
            "name": self.name,
            "title": self.title,
            "units": dict(units),
            "frequency": self.frequency,
            "source": self.source,
            "license": self.license,
            "notes": self.notes,
        }


def tidy(record: Record, frame: pd.DataFrame) -> pd.DataFrame:
    """Return the columns named in the record as float64 on a ``ds`` index, with its attrs.

    Parameters
    ----------
    record : Record
        Facts about the data.
    frame : DataFrame, shape (rows, >= columns)
        The numbers, indexed by time; columns that the record does not name are left out.

    Returns
    -------
    DataFrame, shape (rows, columns)

    Raises
    ------
    ValueError
        If the index does not have the frequency that the record states.
    """
    names = frame.columns if isinstance(record.units, str) else list(record.units)
    # One resolution whatever the pandas version, so that frames can be compared and joined.
    index = pd.DatetimeIndex(frame.index, name="ds").as_unit("ns")
    if record.frequency != IRREGULAR:
        index = pd.DatetimeIndex(index, freq=record.frequency)
    tidied = frame[names].astype("float64").set_axis(index, axis="index")
    tidied.columns.name = None
    tidied.attrs = record.attrs(tidied.columns)
    return tidied


def month_starts(year: ArrayLike, month: ArrayLike = 1) -> pd.DatetimeIndex:
    """Return the first day of each month; `year` and `month` (1 to 12) are whole numbers."""
    months = (np.asarray(year, dtype="int64") - 1970) * 12 + np.asarray(month, dtype="int64") - 1
    return pd.DatetimeIndex(months.astype("datetime64[M]").astype("datetime64[s]"))


def quarter_starts(frame: pd.DataFrame) -> pd.DatetimeIndex:
    """Return the first day of each quarter named by the columns ``year`` and ``quarter``."""
    return month_starts(frame["year"], 3 * frame["quarter"] - 2)
