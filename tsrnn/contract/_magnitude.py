"""Sizes of values whose powers float64 can hold."""

from __future__ import annotations

import numpy as np

from tsrnn.data import Panel

LARGEST, LEAST = 1e70, 1e-70  # their fourth powers, and sums of these, are numbers of float64


def check_not_too_large(panel: Panel, largest: float = LARGEST) -> None:
    """Refuse values whose differences, squares or fourth powers would overflow.

    Parameters
    ----------
    panel : Panel
    largest : float
        By default that of models that sum fourth powers.

    Raises
    ------
    ValueError
        Naming column, series and rows.

    Examples
    --------
    >>> import pandas as pd
    >>> from tsrnn.contract import check_not_too_large
    >>> from tsrnn.data import read_panel
    >>> y = pd.Series([1.0, 2.0, 1e200], pd.date_range("2024-01-01", periods=3), name="y")
    >>> check_not_too_large(read_panel(y[:2]))
    >>> check_not_too_large(read_panel(y))
    Traceback (most recent call last):
        ...
    ValueError: values of the column 'y' must be at most 1e+70 in size...
    """
    for name, column in _columns(panel):
        with np.errstate(invalid="ignore"):
            rows = np.flatnonzero(np.abs(column) > largest)
        if len(rows):
            raise ValueError(
                f"values of the column {name!r} must be at most {largest:g} in size, so that no "
                f"result overflows; larger are {panel.axis.describe(rows)}, the first "
                f"{column[rows[0]]:.3g}. Divide the column by a constant, or replace these values"
            )


def check_not_too_small(panel: Panel) -> None:
    """Refuse series whose values are not 0 but all so small that their squares would be.

    Parameters
    ----------
    panel : Panel

    Raises
    ------
    ValueError
        Naming column and series.
    """
    for name, column in _columns(panel):
        size = np.where(np.isnan(column), 0.0, np.abs(column))
        largest = np.maximum.reduceat(size, panel.indptr[:-1])
        small = np.flatnonzero((largest > 0) & (largest < LEAST))
        if len(small):
            i = small[0]
            more = f" So it is in {len(small) - 1} more series." if len(small) > 1 else ""
            raise ValueError(
                f"{panel.axis.where(i)}values of the column {name!r} must reach {LEAST:g} in size "
                f"or be 0, so that their squares are not lost; the largest is {largest[i]:.3g}. "
                f"Multiply the column by a constant.{more}"
            )


def _columns(panel: Panel) -> list[tuple[object, np.ndarray]]:
    """Names and values of all columns."""
    names = (*panel.target_names, *panel.exog_names)
    return list(zip(names, [*panel.values.T, *panel.exog.T], strict=True))
