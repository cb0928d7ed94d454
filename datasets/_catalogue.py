"""Catalogue of data sets: the records of `catalogue.toml`, and the common shape of their frames."""

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import pandas as pd

IRREGULAR = "irregular"


@dataclass(frozen=True)
class Record:
    """Facts about a data set, for its loader and its documentation; see `catalogue.toml`."""

    name: str
    title: str
    units: Mapping[str, str] | str
    frequency: str
    source: str
    shipped_by: str
    rows: int
    columns: int = 1
    license: str = "not stated"
    notes: str = ""
    loader: str = ""
    subject: str = ""
    remarks: str = ""
    example: str = ""


_TABLE = tomllib.loads(Path(__file__).with_name("catalogue.toml").read_text("utf-8"))
RECORDS = {name: Record(name, **facts) for name, facts in _TABLE.items()}


def list_datasets() -> pd.DataFrame:
    """Return a table of all data sets that are frames, without reading them.

    Returns
    -------
    DataFrame
        One row per data set, indexed by ``name``: ``loader`` (name of the function), ``title``,
        ``frequency`` (pandas alias, or ``"irregular"``), ``rows``, ``columns``, ``shipped_by``
        (``"statsmodels"``, ``"arch"``, ``"download"``, or ``"data_home"`` for files of the user)
        and ``license``.

    Examples
    --------
    >>> from tsrnn.datasets import list_datasets
    >>> list_datasets().loc["co2", "loader"]
    'load_co2'
    >>> monthly = list_datasets().query("frequency == 'MS'")
    """
    table = pd.DataFrame([asdict(record) for record in RECORDS.values()]).set_index("name")
    table["loader"] = table["loader"].where(table["loader"] != "", "load_" + table.index)
    return table[["loader", "title", "frequency", "rows", "columns", "shipped_by", "license"]]


def tidy(record: Record, frame: pd.DataFrame) -> pd.DataFrame:
    """Return the columns of the record as float64 on an index ``ds``, with attrs."""
    names = frame.columns if isinstance(record.units, str) else list(record.units)
    # The default resolution depends on the version of pandas: nanoseconds throughout.
    index = pd.DatetimeIndex(frame.index, name="ds").as_unit("ns")
    if record.frequency != IRREGULAR:
        index = pd.DatetimeIndex(index, freq=record.frequency)
    tidied = frame[names].astype("float64").set_axis(index, axis="index")
    tidied.columns.name = None
    units = dict.fromkeys(names, record.units) if isinstance(record.units, str) else record.units
    facts = ("name", "title", "units", "frequency", "source", "license", "notes")
    tidied.attrs.update({name: getattr(record, name) for name in facts}, units=dict(units))
    return tidied
