"""Columns of a frame that hold no numbers, said by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd


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
