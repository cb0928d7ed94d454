"""Samples that are no array, list or frame, and columns of frames that hold no numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.typing import DataFrameGroupBy, SeriesGroupBy


def check_is_table(values: Any, what: str) -> None:
    """Refuse what has samples, but not as rows that can be counted.

    Parameters
    ----------
    values : object
    what : str
        How messages call it, such as "sample_weight".

    Raises
    ------
    TypeError
        If it is a generator, a lazy frame, or the groups of a frame.
    ValueError
        If columns of a frame share a name.
    """
    lazy = hasattr(values, "collect")
    if lazy or isinstance(values, Iterator | DataFrameGroupBy | SeriesGroupBy):
        instead = "Call its collect()" if lazy else "Give a list of what it iterates over"
        raise TypeError(
            f"{what} must be an array, a list or a frame; got a {type(values).__name__}. {instead}"
        )
    if isinstance(values, pd.DataFrame) and not values.columns.is_unique:
        twice = values.columns[values.columns.duplicated()][0]
        raise ValueError(
            f"{what} must have columns of different names; {twice!r} is there more than once. "
            "Rename one, or drop it"
        )


def check_columns_are_numbers(frame: Any, what: str) -> None:
    """Refuse text, dates and other things in a column of a pandas or polars frame.

    Parameters
    ----------
    frame : object
        Anything else than a frame passes.
    what : str
        How messages call it, such as "X".

    Raises
    ------
    ValueError
        Naming the first such column and one of its values.
    """
    if isinstance(frame, pd.Series):
        frame = frame.to_frame()
    if not hasattr(frame, "columns"):
        return
    for j, name in enumerate(frame.columns):
        column = frame.iloc[:, j] if hasattr(frame, "iloc") else frame[:, j]
        odd = _no_number(column)
        if odd is not None:
            raise ValueError(
                f"{what} must hold numbers; its column {name!r} (dtype {column.dtype}) holds "
                f"{str(odd)!r}. Convert the column, or drop it"
            )


def _no_number(column: Any) -> Any:
    """A value of a column that is no real number; None if all are, or are missing."""
    array = np.asarray(column)
    if array.dtype.kind in "SUMmV":
        return array.ravel()[0] if array.size else None
    if array.dtype.kind != "O":
        return None
    return next((value for value in array if not _passes(value)), None)


def _passes(value: Any) -> bool:
    """Whether it is a number, or complex or missing, of which others speak."""
    if isinstance(value, complex) or (pd.api.types.is_scalar(value) and pd.isna(value)):
        return True
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True
