"""Levels of prediction intervals and the names of their columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from tsrnn.contract._fitted_data import unit_index
from tsrnn.contract._support import Limits, within_supports
from tsrnn.contract._warnings import IntervalWarning
from tsrnn.data import Layout, quote_series, warn_user

NAMES_SHOWN = 3
ROUNDING = 2.0**-46  # width, relative to the point, that is of rounding in a few sums


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
    levels = list(np.atleast_1d(level)) if isinstance(level, np.ndarray) else level
    levels = list(levels) if isinstance(levels, Sequence | set) else [level]
    for value in levels:
        if isinstance(value, bool | str) or not isinstance(
            value, int | float | np.integer | np.floating
        ):
            raise TypeError(f"level must be percentages such as level=[80, 95]; got {level!r}")
        if not 0 < value < 100:
            raise ValueError(f"level must lie strictly between 0 and 100 percent; got {value!r}")
        if value < 1:  # meant as a share: such intervals would miss 99 in 100
            raise ValueError(
                f"level is in percent; for a coverage of {value:g} write {100 * value:g}"
            )
    return [value.item() if isinstance(value, np.generic) else value for value in levels]


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


def forecast_suffixes(levels: Sequence[float]) -> list[str]:
    """Suffixes of the columns of a model's forecasts: "" of the point, then two of each interval.

    Parameters
    ----------
    levels : sequence of float
        In percent.

    Returns
    -------
    list of str

    Examples
    --------
    >>> from tsrnn.contract import forecast_suffixes
    >>> forecast_suffixes([80.0])
    ['', '-lo-80', '-hi-80']
    """
    ends = (f"-{side}-{level_name(level)}" for level in levels for side in ("lo", "hi"))
    return ["", *ends]


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


def honest_intervals(
    forecasts: dict[str, np.ndarray],
    levels: Sequence[float],
    limits: Limits,
    layout: Layout,
    ids: pd.Index,
) -> dict[str, np.ndarray]:
    """Forecasts in their support, intervals that contain zero where they must, with warnings.

    An interval that leaves out a value of probability P covers with probability 1 - P at most.
    Where zeros are more than 1 - p of the rows of a series, as in intermittent demand, an interval
    of level p is widened to zero. Widening keeps whatever coverage was guaranteed, and so does
    leaving out what the target cannot be.

    Parameters
    ----------
    forecasts : dict of ndarray of shape (S, h, C)
        As `with_intervals` gives them.
    levels : sequence of float
        In percent.
    limits : Limits
        Zeros in the history of each target, and its support.
    layout : Layout
    ids : pandas.Index of shape (S,)
        May repeat.

    Returns
    -------
    dict of ndarray

    Warns
    -----
    IntervalWarning
        If an interval was widened, has no width, or no value that the target can have.
    """
    zeros, supports = limits
    inside = within_supports(forecasts, supports)
    widened, flat, outside = (np.zeros(zeros.shape, bool) for _ in range(3))
    # An interval of a single whole number can be right; of other values it has probability 0.
    measured = np.array([not support.whole for support in supports])
    lower, upper = (np.array([getattr(s, end) for s in supports]) for end in ("lower", "upper"))
    for level in levels:
        ends = f"-lo-{level_name(level)}", f"-hi-{level_name(level)}"
        low, high = (inside[end] for end in ends)
        # 1 - level / 100 is rounded: a share of exactly that much may be left out
        without_zero = ((low > 0) | (high < 0)) & (zeros > 1 - level / 100 + 1e-9)[:, None]
        inside[ends[0]] = np.where(without_zero, np.minimum(low, 0.0), low)
        inside[ends[1]] = np.where(without_zero, np.maximum(high, 0.0), high)
        widened |= without_zero.any(1)
        # Judge the widths of the model: an interval that is cut or rounded to a point can be right.
        # Beside a mean above it, [0, 0] is right where a zero is as probable as the level says.
        (low, high), point = (forecasts[end] for end in ends), forecasts[""]
        room = ROUNDING * np.abs(point)
        still = (high - low <= room) & (np.abs(low - point) <= room) & ~without_zero
        flat |= still.any(1)
        outside |= (measured & ((high < lower) | (low > upper)) & ~without_zero).any(1)
    if widened.any():
        warn_user(
            f"intervals of {_listed(layout, ids, widened)} were widened to contain 0: more of "
            "the rows are zero than an interval of this level may leave out. They cover at least "
            "as often as their level says, if they did before, and with so many equal values more",
            IntervalWarning,
        )
    if flat.any():
        warn_user(
            f"intervals of {_listed(layout, ids, flat)} have no width: the forecast errors that "
            "they rest on are zero, as of a series that does not vary or repeats itself exactly. "
            "They guarantee nothing if the coming values differ. Give rows in which the series "
            "varies",
            IntervalWarning,
        )
    if outside.any():
        warn_user(
            f"intervals of {_listed(layout, ids, outside)} lie wholly outside the values that the "
            "data can have, and are cut to the bound: the model does not describe them so far "
            "ahead. Take a model of logarithms or shares, a smaller h, or support='real'",
            IntervalWarning,
        )
    return inside


def _listed(layout: Layout, ids: pd.Index, chosen: np.ndarray) -> str:
    """The first few of the targets (S, C) chosen, quoted."""
    if layout.id_col is None:  # rows of rolling forecasts are origins of the only series
        ids, chosen = ids[:1], np.atleast_2d(chosen.any(0))
    labels = unit_index(layout, ids, multivariate=False)[chosen.ravel()].unique()
    shown = quote_series(labels, NAMES_SHOWN)
    return shown if len(labels) <= NAMES_SHOWN else f"{len(labels)} series, {shown},"
