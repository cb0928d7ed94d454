"""Missing and infinite values: refused, interpolated between known ones, or kept."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tsrnn.data._axis import Axis
from tsrnn.data._layout import Name

__all__ = ["check_complete", "check_finite", "check_infinite", "insert_rows", "interpolate"]


def check_finite(values: np.ndarray, names: Sequence[Name], axis: Axis, *, fill: bool) -> None:
    """Refuse infinite values and missing ones, except interior ones if `fill`.

    Parameters
    ----------
    values : ndarray, shape (N, n)
    names : sequence of str or int, length n
    axis : Axis
    fill : bool
        Whether interior missing values will be interpolated.

    Raises
    ------
    ValueError
        Naming column, series and rows.
    """
    for j, name in enumerate(names):
        column = values[:, j]
        _check_infinite(column, name, axis)
        missing = np.isnan(column)
        if missing.any():
            _check_missing(missing, name, axis, fill)


def check_infinite(values: np.ndarray, names: Sequence[Name], axis: Axis) -> None:
    """Refuse infinite values; missing ones pass.

    Raises
    ------
    ValueError
        Naming column, series and rows.
    """
    for j, name in enumerate(names):
        _check_infinite(values[:, j], name, axis)


def check_complete(values: np.ndarray, names: Sequence[Name], axis: Axis) -> None:
    """Refuse missing values of exogenous columns, where those of targets may be kept.

    Raises
    ------
    ValueError
        Naming column, series and rows.
    """
    for j, name in enumerate(names):
        rows = np.flatnonzero(np.isnan(values[:, j]))
        if len(rows):
            raise ValueError(
                f'missing="keep" keeps missing values of targets only; the exogenous column '
                f"{name!r} must have a value in every row, rows that had to be inserted "
                f"included; missing are {axis.describe(rows)}. Fill them in."
            )


def interpolate(values: np.ndarray) -> np.ndarray:
    """Fill missing values, shape (N, n), linearly in the row number, in place.

    The values at the first and the last row of each series are present, so that no line
    crosses from one series to another.
    """
    for column in values.T:
        missing = np.isnan(column)
        if missing.any():
            known = np.flatnonzero(~missing)
            column[missing] = np.interp(np.flatnonzero(missing), known, column[known])
    return values


def insert_rows(values: np.ndarray, rows: np.ndarray, n_rows: int) -> np.ndarray:
    """Return values, shape (N, n), at the given rows of n_rows, the others missing."""
    out = np.full((n_rows, values.shape[1]), np.nan)
    out[rows] = values
    return out


def _check_infinite(column: np.ndarray, name: Name, axis: Axis) -> None:
    infinite = np.flatnonzero(np.isinf(column))
    if len(infinite):
        raise ValueError(
            f"the column {name!r} must be finite; infinite are {axis.describe(infinite)}. "
            "Replace these values."
        )


def _check_missing(missing: np.ndarray, name: Name, axis: Axis, fill: bool) -> None:
    counts = np.add.reduceat(missing, axis.indptr[:-1], dtype=np.int64)
    empty = np.flatnonzero(counts == axis.lengths)
    if len(empty):
        whose = f" of {axis.where(empty[0]).removesuffix(': ')}" if axis.named else ""
        more = f" (and of {len(empty) - 1} more series)" if len(empty) > 1 else ""
        raise ValueError(
            f"the column {name!r}{whose}{more} must hold values; all are missing (NaN). Drop the "
            f"{'series' if axis.named else 'column'}."
        )
    if not fill:
        raise ValueError(
            f"the column {name!r} must have no missing values (NaN); missing are "
            f"{axis.describe(np.flatnonzero(missing))}. Fill them in, or read with "
            'missing="interpolate", which fills those between known values linearly.'
        )
    _check_ends(missing, name, axis)


def _check_ends(missing: np.ndarray, name: Name, axis: Axis) -> None:
    ends = np.union1d(axis.indptr[:-1], axis.indptr[1:] - 1)
    rows = ends[missing[ends]]
    if len(rows):
        raise ValueError(
            f"the column {name!r} is missing at the first or last row of a series "
            f'({axis.describe(rows)}), and missing="interpolate" fills only between known '
            "values. Drop leading and trailing rows without values, or fill them in."
        )
