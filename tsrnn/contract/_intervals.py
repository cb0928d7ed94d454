"""Levels of prediction intervals and the names of their columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def check_levels(level: Any) -> list[float]:
    """Levels as a list of percentages.

    Parameters
    ----------
    level : number, list of numbers or None
        The argument of `predict`.

    Returns
    -------
    list of float
        Empty for None.

    Raises
    ------
    TypeError, ValueError
        If a level is not a number between 0 and 100.

    Examples
    --------
    >>> from tsrnn.contract import check_levels
    >>> check_levels(None), check_levels(80), check_levels([80, 99.5])
    ([], [80], [80, 99.5])
    """
    if level is None:
        return []
    levels = list(level) if isinstance(level, Sequence | np.ndarray | set) else [level]
    for value in levels:
        if isinstance(value, bool | str) or not isinstance(value, int | float | np.number):
            raise TypeError(f"level must be percentages such as level=[80, 95]; got {level!r}")
        if not 0 < value < 100:
            raise ValueError(f"level must lie strictly between 0 and 100 percent; got {value!r}")
        if value < 1:
            raise ValueError(
                f"level is in percent; for a coverage of {value:g} write {100 * value:g}"
            )
    return levels


def level_name(level: float) -> str:
    """A level as it stands in a column's name: an integer where it is one.

    Parameters
    ----------
    level : float
        In percent.

    Returns
    -------
    str

    Examples
    --------
    >>> from tsrnn.contract import level_name
    >>> level_name(80.0), level_name(99.5)
    ('80', '99.5')
    """
    return str(int(level)) if level == int(level) else str(float(level))


def with_intervals(
    point: np.ndarray, widths: dict[float, np.ndarray] | dict[float, tuple[np.ndarray, np.ndarray]]
) -> dict[str, np.ndarray]:
    """Point forecasts and intervals under the suffixes of their columns.

    Parameters
    ----------
    point : ndarray
    widths : dict
        By level, half the width of an interval around the point, or what is to be added to the
        point for its two ends. Of shapes that go with that of the point.

    Returns
    -------
    dict of ndarray
        "" is the point; then "-lo-80" and "-hi-80" for each level.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.contract import with_intervals
    >>> with_intervals(np.array([10.0]), {80: np.array([2.0])})
    {'': array([10.]), '-lo-80': array([8.]), '-hi-80': array([12.])}
    """
    forecasts = {"": point}
    for level, width in widths.items():
        lower, upper = width if isinstance(width, tuple) else (-width, width)
        forecasts[f"-lo-{level_name(level)}"] = point + lower
        forecasts[f"-hi-{level_name(level)}"] = point + upper
    return forecasts
