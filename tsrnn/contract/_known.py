"""Exogenous columns whose future is known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tsrnn.data import Panel


def known_columns(known_ahead: Any, panel: Panel) -> list[Any]:
    """The argument `known_ahead` as a list of exogenous columns of the panel.

    Raises
    ------
    TypeError, ValueError
        If it is no such list, or names other columns.
    """
    given = [] if known_ahead is None else known_ahead
    known = [given] if isinstance(given, str | int) and not isinstance(given, bool) else given
    if not isinstance(known, Sequence):
        raise TypeError(f"known_ahead must be a column name or a list of them; got {given!r}")
    absent = [name for name in known if name not in panel.exog_names]
    if absent:
        there = f"which are {list(panel.exog_names)}" if panel.exog_names else "which has none"
        raise ValueError(
            f"known_ahead must name exogenous columns of the data, {there}; got {absent}. "
            "Columns besides the targets are exogenous"
        )
    return list(known)


def known_values(panel: Panel, names: Sequence[Any], h: int) -> np.ndarray:
    """Columns of a panel as (S, h, n), the last row repeated after a series' end."""
    columns = [panel.exog_names.index(name) for name in names]
    rows = panel.indptr[:-1, None] + np.arange(h)
    return panel.exog[np.minimum(rows, panel.indptr[1:, None] - 1)][..., columns]
