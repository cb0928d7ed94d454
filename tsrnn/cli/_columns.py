"""Columns of a file as timestamps and numbers, or an error that names the row."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Any

import numpy as np
import pandas as pd

__all__ = ["Place", "check_numbers", "mostly_dates", "parse_times"]

Place = Callable[[int], str]  # from the number of a row to where it stands in the file
GROUPED = re.compile(r"[-+]?\d[\d.,' ]*")  # a number with marks of another country
# Quarters and months as statistical offices write them; `read_panel` reads them.
PERIOD = r"\d{4}(-?Q[1-4]|M\d{2})"
INTEGER = r"[+-]?\d{1,18}"


def mostly_dates(column: pd.Series, time_format: str | None) -> bool:
    """Whether a column holds dates, if some of its fields, as of a total, may be other text."""
    if not _is_text(column):
        return column.dtype.kind == "M"
    known = column.dropna().astype(str).str.strip()
    if time_format is None and known.str.fullmatch(INTEGER).all():
        return False
    if time_format is None and known.str.fullmatch(PERIOD).all():
        return True
    try:
        times = _datetimes(known, "", time_format)
    except ValueError:
        return False
    return bool(times.notna().mean() > 0.5)


def parse_times(column: pd.Series, path: str, time_format: str | None, place: Place) -> pd.Series:
    """Text as datetimes, or as integers if all of it is; other columns as they are.

    Raises
    ------
    ValueError
        If a text is no date of the format, ISO 8601 by default, or offsets differ.
    """
    if not _is_text(column):
        return column
    known = column.dropna().astype(str).str.strip()
    if time_format is None and len(known) == len(column) and known.str.fullmatch(INTEGER).all():
        return known.astype("int64")
    if time_format is None and len(known) == len(column) and known.str.fullmatch(PERIOD).all():
        return known
    times = _datetimes(known, path, time_format)
    wrong = np.flatnonzero(times.isna())
    if len(wrong):
        advice = "Say how dates are written by --time-format, such as %d.%m.%Y, or name another "
        advice += "column by --time-col"
        if len(wrong) < len(known) / 2:
            advice = "Correct it, or take the line out of the file, if it is a total or a note"
        raise ValueError(
            f"the column {column.name!r} of {path} must hold {_dates(time_format)}; "
            f"{place(known.index[wrong[0]])} has {known.iloc[wrong[0]]!r}. {advice}"
        )
    return times.reindex(column.index)


def check_numbers(
    table: pd.DataFrame, path: str, others: Collection[Any], place: Place, decimal: str
) -> None:
    """Refuse text in all columns but some.

    Raises
    ------
    ValueError
        Naming column, place in the file and text.
    """
    for name in table.columns.difference(list(others), sort=False):
        column = table[name]
        if not _is_text(column):
            continue
        plain = column.astype("str").str.replace(decimal, ".", regex=False)
        wrong = np.flatnonzero(pd.to_numeric(plain, errors="coerce").isna() & column.notna())
        if len(wrong):
            text = str(column.iloc[wrong[0]])
            advice = (
                f"leave the column out by --drop {name}, or name it by --id-col if it holds ids"
            )
            if GROUPED.fullmatch(text):
                written = "say by --decimal and --sep how numbers are written, without a mark "
                advice = f"{written}between thousands; {advice}"
            raise ValueError(
                f"the column {name!r} of {path} must hold numbers; {place(int(wrong[0]))} has "
                f"{text!r}. Correct it, {advice}"
            )


def _datetimes(known: pd.Series, path: str, time_format: str | None) -> pd.Series:
    """Datetimes, NaT where a text is none."""
    try:
        times = pd.to_datetime(known, format=time_format or "ISO8601", errors="coerce")
    except ValueError as error:
        if time_format is not None and "timezone" not in str(error).lower():
            raise ValueError(f"--time-format {time_format!r} is not understood: {error}") from error
        times = known
    if not isinstance(times.dtype, np.dtype | pd.DatetimeTZDtype) or times.dtype.kind != "M":
        raise ValueError(
            f"the column {known.name!r} of {path} must hold timestamps of one offset from UTC; it "
            "has several. Write them all in UTC, or give parquet, which knows time zones"
        )
    return times


def _dates(time_format: str | None) -> str:
    if time_format is None:
        return (
            "dates as in ISO 8601, such as 2024-01-31 or 2024-01-31T12:00, quarters such as "
            "2024Q1, or whole numbers"
        )
    return f"dates like {time_format!r}"


def _is_text(column: pd.Series) -> bool:
    return column.dtype == object or isinstance(column.dtype, pd.StringDtype)
