"""Columns of a file as timestamps and numbers, or an error that names the row."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
import pandas as pd

__all__ = ["check_numbers", "parse_times"]

INTEGER = r"[+-]?\d{1,18}"


def parse_times(column: pd.Series, path: str, time_format: str | None) -> pd.Series:
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
    times = _datetimes(known, path, time_format)
    wrong = np.flatnonzero(times.isna())
    if len(wrong):
        raise ValueError(
            f"the column {column.name!r} of {path} must hold {_dates(time_format)}; row "
            f"{known.index[wrong[0]] + 1} has {known.iloc[wrong[0]]!r}. Say how dates are written "
            "by --time-format, such as %d.%m.%Y, or name another column by --time-col"
        )
    return times.reindex(column.index)


def check_numbers(table: pd.DataFrame, path: str, others: Collection[Any]) -> None:
    """Refuse text in all columns but some.

    Raises
    ------
    ValueError
        Naming column, row and text.
    """
    for name in table.columns.difference(list(others), sort=False):
        column = table[name]
        if not _is_text(column):
            continue
        wrong = np.flatnonzero(pd.to_numeric(column, errors="coerce").isna() & column.notna())
        if len(wrong):
            raise ValueError(
                f"the column {name!r} of {path} must hold numbers; row {wrong[0] + 1} of the data "
                f"has {column.iloc[wrong[0]]!r}. Mend it, leave the column out by --drop {name}, "
                "or name it by --id-col if it holds ids"
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
        return "dates as in ISO 8601, such as 2024-01-31 or 2024-01-31T12:00, or whole numbers"
    return f"dates like {time_format!r}"


def _is_text(column: pd.Series) -> bool:
    return column.dtype == object or isinstance(column.dtype, pd.StringDtype)
