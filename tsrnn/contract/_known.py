"""Exogenous columns whose future is known: given, constant within a series, or a calendar."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from tsrnn.contract._warnings import warn_user
from tsrnn.data import Panel, calendar_columns, calendar_names, cycle_steps


def known_columns(given: Any, panel: Panel, argument: str = "known_ahead") -> list[Any]:
    """The argument `known_ahead`, or `static`, as a list of exogenous columns of the panel.

    Raises
    ------
    TypeError, ValueError
        If it is no such list, or names other columns.
    """
    given = [] if given is None else given
    known = [given] if isinstance(given, str | int) and not isinstance(given, bool) else given
    if not isinstance(known, Sequence):
        raise TypeError(f"{argument} must be a column name or a list of them; got {given!r}")
    absent = [name for name in known if name not in panel.exog_names]
    if absent:
        there = f"which are {list(panel.exog_names)}" if panel.exog_names else "which has none"
        raise ValueError(
            f"{argument} must name exogenous columns of the data, {there}; got {absent}. "
            "Columns besides the targets are exogenous"
        )
    return list(known)


def static_values(panel: Panel, names: Sequence[Any]) -> np.ndarray:
    """Values (S, n) of columns that are constant within each series.

    Raises
    ------
    ValueError
        If one is not, naming column, series and rows.
    """
    columns = [panel.exog_names.index(name) for name in names]
    first = panel.exog[panel.indptr[:-1]][:, columns]
    varies = panel.exog[:, columns] != np.repeat(first, panel.lengths, 0)
    for j, name in enumerate(names):
        rows = np.flatnonzero(varies[:, j])
        if len(rows):
            i = int(panel.axis.codes[rows[0]])
            own = rows[panel.axis.codes[rows] == i]
            raise ValueError(
                f"{panel.axis.where(i)}the static column {name!r} must be constant within the "
                f"series; it begins with {first[i, j]:g} and is {panel.exog[own[0], columns[j]]:g} "
                f"at {panel.axis.show(own[:1])}. Correct it, or leave it out of static"
            )
    return first


def check_static_unchanged(
    panel: Panel, names: Sequence[Any], ids: pd.Index, before: np.ndarray
) -> None:
    """Refuse new rows whose static columns differ from those of their series before.

    Raises
    ------
    ValueError
        Naming series, column and both values.
    """
    now = static_values(panel, names)
    old = before[ids.get_indexer(panel.ids)]
    wrong = np.argwhere(now != old)
    if len(wrong):
        i, j = wrong[0]
        raise ValueError(
            f"{panel.axis.where(i)}the static column {names[j]!r} must be what it was, "
            f"{old[i, j]:g}; new rows have {now[i, j]:g}. Correct it, or fit again"
        )


def with_calendar(panel: Panel, features: Sequence[str]) -> Panel:
    """The panel with the columns of cycles of the calendar behind its exogenous ones.

    Raises
    ------
    ValueError
        If a column of the data has the name of one of them.
    """
    names = calendar_names(features, panel.layout)
    if not names:
        return panel
    taken = [name for name in names if name in (*panel.exog_names, *panel.target_names)]
    if taken:
        raise ValueError(
            f"the calendar makes columns {', '.join(names)}; the data have {taken} already. Drop "
            "or rename them"
        )
    columns = calendar_columns(panel.times, features, panel.layout)
    exog = np.column_stack([panel.exog, columns])
    return replace(panel, exog=exog, exog_names=(*panel.exog_names, *names))


def warn_of_short_calendar(panel: Panel, features: Sequence[str]) -> None:
    """Say that no series covers a whole cycle, so that its effect is that of a trend."""
    for name in features:
        steps = cycle_steps(name, panel.layout)
        if panel.lengths.max() < steps:
            warn_user(
                f"calendar={name!r} has a cycle of {steps:.0f} rows, of which the longest series "
                f"has {panel.lengths.max()}: what it repeats cannot be told from a trend. Leave "
                "it out, or give more rows"
            )


def known_values(panel: Panel, names: Sequence[Any], h: int) -> np.ndarray:
    """Columns of a panel as (S, h, n), the last row repeated after a series' end."""
    columns = [panel.exog_names.index(name) for name in names]
    rows = panel.indptr[:-1, None] + np.arange(h)
    return panel.exog[np.minimum(rows, panel.indptr[1:, None] - 1)][..., columns]
