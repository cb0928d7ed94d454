"""Levels of prediction intervals and the names of their columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from tsrnn.contract._fitted_data import unit_index
from tsrnn.contract._support import Limits, within_supports
from tsrnn.contract._warnings import IntervalWarning
from tsrnn.data import Layout, quote, quote_series, warn_user

NAMES_SHOWN = 3
ROUNDING = 2.0**-46  # relative width that rounding of a few sums can cause


def check_levels(level: Any) -> list[float]:
    """Return the argument `level` as a list of percentages between 0 and 100, empty for None."""
    if level is None:
        return []
    levels = list(np.atleast_1d(level)) if isinstance(level, np.ndarray) else level
    levels = list(levels) if isinstance(levels, Sequence | set) else [level]
    for value in levels:
        if isinstance(value, bool | str) or not isinstance(
            value, int | float | np.integer | np.floating
        ):
            raise TypeError(f"level must be percentages such as level=[80, 95]; got {quote(level)}")
        if not 0 < value < 100:
            raise ValueError(
                f"level must lie strictly between 0 and 100 percent; got {quote(value)}"
            )
        if value < 1:  # most likely meant as a share
            raise ValueError(
                f"level is in percent; for a coverage of {value:g} write {100 * value:g}"
            )
    return [value.item() if isinstance(value, np.generic) else value for value in levels]


def level_name(level: float) -> str:
    """Return a level in percent for the name of a column, without decimals if whole."""
    return str(int(level)) if level == int(level) else str(float(level))


def forecast_suffixes(levels: Sequence[float]) -> list[str]:
    """Return the suffixes of forecast columns: "" for the point, then two for each level."""
    ends = (f"-{side}-{level_name(level)}" for level in levels for side in ("lo", "hi"))
    return ["", *ends]


def with_intervals(
    point: np.ndarray, widths: dict[float, np.ndarray] | dict[float, tuple[np.ndarray, np.ndarray]]
) -> dict[str, np.ndarray]:
    """Return point forecasts "" and the ends of intervals, "-lo-80" and "-hi-80", by suffix.

    `widths` has the half width by level, or a pair of offsets of the two ends from the point; they
    broadcast against the point.
    """
    forecasts = {"": point}
    for level, width in widths.items():
        lower, upper = width if isinstance(width, tuple) else (-width, width)
        forecasts[f"-lo-{level_name(level)}"] = point + lower
        forecasts[f"-hi-{level_name(level)}"] = point + upper
    return forecasts


def apply_limits(
    forecasts: dict[str, np.ndarray],
    levels: Sequence[float],
    limits: Limits,
    layout: Layout,
    ids: pd.Index,
) -> dict[str, np.ndarray]:
    """Cut forecasts to their supports, and widen intervals to zero where coverage requires it.

    An interval without a value of probability P has coverage at most 1 - P. If the share of zeros
    in a series exceeds 1 - p, as in intermittent demand, intervals of level p are widened to
    contain zero. Neither widening nor cutting to the support lowers coverage.

    Forecasts are the result of `with_intervals`, of shape (S, h, C); ids may repeat. An
    `IntervalWarning` tells that an interval was widened, has zero width, or contains no possible
    value.
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
        # 1e-9 for the rounding of 1 - level / 100: a share of exactly that size may be excluded.
        without_zero = ((low > 0) | (high < 0)) & (zeros > 1 - level / 100 + 1e-9)[:, None]
        inside[ends[0]] = np.where(without_zero, np.minimum(low, 0.0), low)
        inside[ends[1]] = np.where(without_zero, np.maximum(high, 0.0), high)
        widened |= without_zero.any(1)
        # Widths of the model before cutting and rounding, which may rightly give a point. [0, 0]
        # below the mean is right too, if the probability of zero reaches the level.
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
    """Return the first of the chosen targets (S, C), quoted."""
    if layout.id_col is None:  # rows of rolling forecasts are origins of the only series
        ids, chosen = ids[:1], np.atleast_2d(chosen.any(0))
    labels = unit_index(layout, ids, multivariate=False)[chosen.ravel()].unique()
    shown = quote_series(labels, NAMES_SHOWN)
    return shown if len(labels) <= NAMES_SHOWN else f"{len(labels)} series, {shown},"
