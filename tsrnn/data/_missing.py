"""Missing rows and values: refused, interpolated between known ones, or kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tsrnn.data._axis import Axis, check_few_missing, check_gaps, is_regular, positions
from tsrnn.data._frequency import Grid
from tsrnn.data._panel import Name

__all__ = ["TREATMENTS", "complete"]

TREATMENTS = ("error", "interpolate", "keep")


def complete(
    axis: Axis,
    grid: Grid,
    data: np.ndarray,
    names: Sequence[Name],
    missing: str,
    fixed: bool = False,
) -> tuple[Axis, np.ndarray]:
    """Check that rows and values are complete, or complete them.

    `data` (N, n) are targets and exogenous columns; `fixed` says that the frequency is that of
    data fitted to. Unless missing rows are refused, the axis that comes back has them.
    """
    offsets = None if is_regular(axis, grid) else positions(axis, grid, fixed)
    sound = ~np.isinf(data) if missing == "keep" else np.isfinite(data)
    if not sound.all():  # of all values first: column by column takes longer
        for j in np.flatnonzero(~sound.all(axis=0)).tolist():
            _check_column(data[:, j], names[j], axis, missing)
    elif offsets is None and missing != "keep":
        return axis, data
    if offsets is not None and missing == "error":
        check_gaps(axis, grid, offsets)
    elif offsets is not None:
        lengths = offsets[axis.indptr[1:] - 1] + 1
        check_few_missing(axis, grid, lengths)
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        steps = np.arange(indptr[-1]) - np.repeat(indptr[:-1], lengths)
        firsts = np.repeat(axis.times[axis.indptr[:-1]], lengths)
        rows = indptr[axis.codes] + offsets
        axis = replace(axis, times=grid.advance(firsts, steps, axis.tz), indptr=indptr)
        whole = np.full((len(axis.times), data.shape[1]), np.nan)
        whole[rows] = data
        data = whole
    if missing == "keep":
        return axis, data
    # One line through all series: the first and the last row of each have values (see
    # `_check_column`), so that it fills nothing from one series to another.
    for j in np.flatnonzero(np.isnan(data).any(axis=0)).tolist():
        unknown = np.isnan(data[:, j])
        known = np.flatnonzero(~unknown)
        data[unknown, j] = np.interp(np.flatnonzero(unknown), known, data[known, j])
    return axis, data


def _check_column(column: np.ndarray, name: Name, axis: Axis, missing: str) -> None:
    """Refuse infinite values and, if they are not kept, missing ones that cannot be filled."""
    infinite = np.flatnonzero(np.isinf(column))
    if len(infinite):
        raise ValueError(
            f"the column {name!r} must be finite; infinite are {axis.describe(infinite)}. "
            "Replace these values."
        )
    unknown = np.isnan(column)
    if missing == "keep" or not unknown.any():
        return
    counts = np.add.reduceat(unknown, axis.indptr[:-1], dtype=np.int64)
    empty = np.flatnonzero(counts == axis.lengths)
    if len(empty):
        whose = f" of {axis.where(empty[0]).removesuffix(': ')}" if axis.named else ""
        more = f" (and of {len(empty) - 1} more series)" if len(empty) > 1 else ""
        raise ValueError(
            f"the column {name!r}{whose}{more} must hold values; all are missing (NaN). Drop the "
            f"{'series' if axis.named else 'column'}."
        )
    ends = np.union1d(axis.indptr[:-1], axis.indptr[1:] - 1)
    rows = ends[unknown[ends]]
    if missing == "error":
        advice = "Fill them in, or drop leading and trailing rows without values."
        if not len(rows):
            advice = (
                'Fill them in, or read with missing="interpolate", which fills those between known '
                "values linearly."
            )
        raise ValueError(
            f"the column {name!r} must have no missing values (NaN); missing are "
            f"{axis.describe(np.flatnonzero(unknown))}. {advice}"
        )
    if len(rows):
        raise ValueError(
            f"the column {name!r} is missing at the first or last row of a series "
            f'({axis.describe(rows)}), and missing="interpolate" fills only between known '
            "values. Drop leading and trailing rows without values, or fill them in."
        )
