"""Missing rows and values: refused, interpolated between known ones, or kept."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from tsrnn.data._axis import Axis, check_few_missing, check_gaps, is_regular, positions
from tsrnn.data._faults import MissingValuesWarning, quote, quoted, warn_user
from tsrnn.data._frequency import Grid
from tsrnn.data._panel import Name, Panel

TREATMENTS = ("auto", "error", "interpolate", "keep")


def complete(
    axis: Axis,
    grid: Grid,
    data: np.ndarray,
    names: Sequence[Name],
    missing: str,
    fixed: bool = False,
    labels: Collection[Name] = (),
) -> tuple[Axis, np.ndarray, list[str]]:
    """Check that rows and values are complete, or complete them as `missing` says.

    `data` (N, n) are targets and exogenous columns. `fixed` marks the frequency of data fitted
    to. Columns named in `labels` are dummies, which are never interpolated. Returned are the axis
    and data with inserted rows, and notes of "auto".
    """
    offsets = None if is_regular(axis, grid) else positions(axis, grid, fixed)
    keeps = missing in ("auto", "keep")
    sound = ~np.isinf(data) if missing == "keep" else np.isfinite(data)
    if not sound.all():  # one pass over all values is faster than one for each column
        for j in np.flatnonzero(~sound.all(axis=0)).tolist():
            # Rows after a fit may hold no value at all: filters skip them.
            later = fixed and missing == "auto"
            _check_column(data[:, j], names[j], axis, "keep" if later else missing)
    elif offsets is None and missing != "keep":
        return axis, data, []
    notes = [] if missing != "auto" else _missing_values(axis, data, names)
    if offsets is not None and missing == "error":
        check_gaps(axis, grid, offsets)
    elif offsets is not None:
        lengths = offsets[axis.indptr[1:] - 1] + 1
        check_few_missing(axis, grid, lengths)
        n_missing = int(lengths.sum()) - len(axis.times)
        if missing == "auto" and n_missing:
            inserted = _missing_rows(axis, grid, offsets, n_missing)
            notes.insert(0, inserted)
            warn_user(inserted.removesuffix("."), MissingValuesWarning)
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        steps = np.arange(indptr[-1]) - np.repeat(indptr[:-1], lengths)
        firsts = np.repeat(axis.times[axis.indptr[:-1]], lengths)
        rows = indptr[axis.codes] + offsets
        axis = replace(axis, times=grid.advance(firsts, steps, axis.tz), indptr=indptr)
        whole = np.full((len(axis.times), data.shape[1]), np.nan)
        whole[rows] = data
        data = whole
    if not keeps:
        _check_labels(data, names, labels, axis)
        # One call for all series: `_check_column` ensures values in the first and last row of
        # each, so that nothing is interpolated across series.
        fill(data)
    return axis, data, notes


def fill(data: np.ndarray) -> None:
    """Fill missing values of each column linearly in the row number, in place."""
    for j in np.flatnonzero(np.isnan(data).any(axis=0)).tolist():
        unknown = np.isnan(data[:, j])
        known = np.flatnonzero(~unknown)
        data[unknown, j] = np.interp(np.flatnonzero(unknown), known, data[known, j])


def _check_labels(
    data: np.ndarray, names: Sequence[Name], labels: Collection[Name], axis: Axis
) -> None:
    """Refuse missing labels, which cannot be interpolated."""
    for j in np.flatnonzero(np.isnan(data).any(axis=0)).tolist():
        if names[j] in labels:
            rows = np.flatnonzero(np.isnan(data[:, j]))
            raise ValueError(
                f"the column {quote(names[j])} holds labels, which must be known where missing "
                f"values are interpolated: between two labels there is none; missing are "
                f"{axis.describe(rows)}. Fill in a level such as 'missing'"
            )


def _missing_rows(axis: Axis, grid: Grid, offsets: np.ndarray, n_missing: int) -> str:
    """Return a sentence on inserted rows."""
    before = axis.inner[axis.steps(offsets) > 1] - 1
    rows = "1 row was" if n_missing == 1 else f"{n_missing:,} rows were"
    return (
        f"{rows} missing at freq={grid.alias!r} and inserted without values, after "
        f"{axis.describe(before)}."
    )


def _missing_values(axis: Axis, data: np.ndarray, names: Sequence[Name]) -> list[str]:
    """Return a sentence on the missing values of each column."""
    notes = []
    for j in np.flatnonzero(np.isnan(data).any(axis=0)).tolist():
        rows = np.flatnonzero(np.isnan(data[:, j]))
        missing = _counted(len(rows), "value", f" of the column {quote(names[j])}")
        notes.append(f"{missing} missing: {axis.describe(rows)}.")
    return notes


def without_gaps(panel: Panel, cut: bool) -> tuple[Panel, str]:
    """Interpolate missing values of a panel linearly; return a sentence on what was filled.

    If `cut`, rows at both ends of a series are dropped until every column has a known value at or
    before the first row, and at or after the last; otherwise such rows are refused. A column
    without a value in a series, and a label missing between others, are refused too. The sentence
    is empty if nothing was missing.
    """
    data = np.concatenate([panel.values, panel.exog], 1)
    unknown = np.isnan(data)
    if not unknown.any():
        return panel, ""
    names = (*panel.target_names, *panel.exog_names)
    for j in np.flatnonzero(unknown.any(axis=0)).tolist():
        _check_column(data[:, j], names[j], panel.axis, "auto" if cut else "interpolate")
    starts, ends = np.zeros_like(panel.lengths), panel.lengths.copy()
    gaps = np.flatnonzero(np.add.reduceat(unknown.any(1), panel.indptr[:-1]))
    for i in gaps.tolist() if cut else ():
        known = ~unknown[panel.indptr[i] : panel.indptr[i + 1]]
        starts[i] = known.argmax(0).max()
        ends[i] = len(known) - known[::-1].argmax(0).max()
        if starts[i] >= ends[i]:
            raise ValueError(
                f"{panel.axis.where(i)}the columns {quoted(names)} have values at no common time, "
                "which a model without a place for missing values needs. Fit models to columns "
                "alone, or drop those that are short"
            )
    lengths = panel.lengths
    n_cut = int((lengths - (ends - starts)).sum())
    panel = panel.between(starts, ends)
    data = np.concatenate([panel.values, panel.exog], 1)
    lost = np.flatnonzero((~unknown).sum(0) > (~np.isnan(data)).sum(0))
    coded: dict[Name, Name] = {
        name: each.column for each in panel.layout.categories for name in each.names
    }
    _check_labels(data, [coded.get(name, name) for name in names], {*coded.values()}, panel.axis)
    n_filled = int(np.isnan(data).sum())
    fill(data)
    n = len(panel.target_names)
    parts = []
    if n_filled:
        parts.append(_counted(n_filled, "missing value") + " interpolated linearly")
    if n_cut:
        place = " at the ends of series"
        onwards = ", and forecasts go on from there" if (ends < lengths).any() else ""
        parts.append(f"{_counted(n_cut, 'row', place)} left out{onwards}")
    if len(lost):
        columns = f"column{'s' * (len(lost) > 1)} {quoted(names[j] for j in lost)}"
        parts.append(
            f"with them go known values of the {columns}, which a long frame of series, each with "
            "an end of its own, would keep"
        )
    panel = replace(
        panel, values=np.ascontiguousarray(data[:, :n]), exog=np.ascontiguousarray(data[:, n:])
    )
    return panel, "; ".join(parts)


def _counted(count: int, noun: str, place: str = "") -> str:
    """Return "1 noun is" or "n nouns are", with `place` after the noun."""
    return f"1 {noun}{place} is" if count == 1 else f"{count:,} {noun}s{place} are"


def _check_column(column: np.ndarray, name: Name, axis: Axis, missing: str) -> None:
    """Refuse infinite values, and missing ones that `missing` neither keeps nor fills."""
    infinite = np.flatnonzero(np.isinf(column))
    if len(infinite):
        raise ValueError(
            f"the column {quote(name)} must be finite; infinite are {axis.describe(infinite)}. "
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
            f"the column {quote(name)}{whose}{more} must hold values; all are missing (NaN). "
            f"Give values, or drop the {'series' if axis.named else 'column'}."
        )
    if missing == "auto":
        return
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
            f"the column {quote(name)} must have no missing values (NaN); missing are "
            f"{axis.describe(np.flatnonzero(unknown))}. {advice}"
        )
    if len(rows):
        raise ValueError(
            f"the column {quote(name)} is missing at the first or last row of a series "
            f'({axis.describe(rows)}), and missing="interpolate" fills only between known '
            "values. Drop leading and trailing rows without values, or fill them in."
        )
