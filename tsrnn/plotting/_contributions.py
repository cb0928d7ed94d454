"""Plot of a forecast as the sum of its parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from pandas.api.types import is_datetime64_any_dtype, is_numeric_dtype

from tsrnn.data import quote
from tsrnn.plotting._style import (
    GREY,
    INK,
    PALE,
    PALETTE,
    checked_count,
    colour,
    legend_beside,
    new_axes,
    place_on_axis,
    tidy,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_TIME_NAMES = ("ds", "time", "step", "h", "horizon")
_NAMED_IN_BASE = 3


def plot_contributions(contributions: pd.DataFrame, ax: Axes | None = None, n: int = 6) -> Axes:
    """Draw a forecast as the stacked contributions of its parts.

    Constant parts, such as the level, form the base line. Positive contributions are stacked
    upwards from it, negative ones downwards. The line through the sums is the forecast.

    Parameters
    ----------
    contributions : DataFrame
        Parts of the forecast (columns) by step (rows), which sum to the forecast. Steps are the
        index, a column of timestamps, or a column named "step", "h" or "horizon".
    ax : matplotlib Axes, optional
        Axes to draw on; a new figure by default.
    n : int, default 6
        Number of varying parts with the largest mean absolute contributions that are drawn
        separately; the rest is summed.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    TypeError
        If `contributions` is no DataFrame.
    ValueError
        If it has no rows or parts, or a part has text, missing or infinite values, or `n` is not a
        positive whole number.

    Examples
    --------
    >>> import pandas as pd
    >>> from tsrnn.plotting import plot_contributions
    >>> parts = pd.DataFrame({"level": [10.0, 10.0], "block 1": [0.5, 0.4], "block 2": [-0.1, 0.2]})
    >>> ax = plot_contributions(parts.rename_axis("step"))
    >>> ax.get_xlabel()
    'Steps ahead'
    """
    parts = _checked_parts(contributions)
    base, varying = _split_base(parts)
    stack = _largest(varying, checked_count(n, "n"))
    given = ax is not None
    ax = new_axes(ax, 8.0, 3.8)
    x = place_on_axis(ax, parts.index)
    floor = 0.0 if base.empty else float(base.iloc[0].sum())
    total = parts.sum(axis=1).to_numpy()
    ax.plot(x, total, color=INK, linewidth=1.6, marker="o", markersize=2.8, label="forecast")
    _draw_stack(ax, x, stack, floor)
    label = None if base.empty else f"base: {_base_names(base)} ({floor:.4g})"
    ax.axhline(floor, label=label, color=GREY, linewidth=0.9, linestyle="--")
    zero = [str(name) for name in parts if (parts[name] == 0).all()]
    if zero and len(zero) <= _NAMED_IN_BASE:
        ax.plot([], [], " ", label=f"zero: {', '.join(zero)}")
    if not isinstance(parts.index, (pd.DatetimeIndex, pd.PeriodIndex)):
        ax.set_xlabel("Steps ahead")
    unit = contributions.attrs.get("units")
    ax.set_ylabel(f"Forecast ({unit})" if isinstance(unit, str) else "Forecast and its parts")
    tidy(ax)
    legend_beside(ax, inside=given)
    return ax


def _checked_parts(frame: Any) -> pd.DataFrame:
    """Validate the parts, and return float columns over an index of steps or times."""
    if not isinstance(frame, pd.DataFrame):
        raise TypeError(
            "`contributions` must be a DataFrame with a row a step and a column a part; "
            f"got {type(frame).__name__}."
        )
    # A column of times or steps moves into the index, times before steps.
    times = [name for name in frame if is_datetime64_any_dtype(frame[name])]
    times += [name for name in frame if name in _TIME_NAMES and name not in times]
    parts = frame.set_index(times[0]).drop(columns=times[1:]) if times else frame
    if parts.empty:
        raise ValueError(
            "`contributions` must have at least one row (a step) and one column (a part); "
            f"got {len(frame)} rows and the columns {quote(list(frame.columns))}."
        )
    texts = [name for name in parts if not is_numeric_dtype(parts[name])]
    if texts:
        raise ValueError(
            f"the columns of `contributions` must be numbers; {texts} are not. Select the rows "
            "of one series and drop columns that are no part of the forecast."
        )
    wrong = [name for name in parts if not np.isfinite(parts[name].astype(float)).all()]
    if wrong:
        raise ValueError(
            f"`contributions` must have no missing or infinite values; the parts {wrong} do."
        )
    return parts.astype(float)


def _split_base(parts: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Constant and varying parts; if none varies, all are treated as varying."""
    spread = parts.max() - parts.min()
    constant = spread <= 1e-9 * parts.abs().max()  # parts are sums with rounding errors
    if constant.all() or len(parts) == 1:
        return parts.iloc[:, :0], parts
    return parts.loc[:, constant], parts.loc[:, ~constant]


def _base_names(base: pd.DataFrame) -> str:
    """Names of the largest nonzero parts of the base."""
    sizes = base.iloc[0].abs().sort_values(ascending=False, kind="stable")
    names = [str(name) for name in sizes[sizes > 0].index] or ["zero"]
    if len(names) > _NAMED_IN_BASE + 1:
        names = [*names[:_NAMED_IN_BASE], f"{len(names) - _NAMED_IN_BASE} other parts"]
    return " + ".join(names)


def _largest(parts: pd.DataFrame, n: int) -> pd.DataFrame:
    """Largest parts by mean absolute contribution, and the sum of the rest."""
    by_size = parts.abs().mean().sort_values(ascending=False, kind="stable").index
    stack = parts[by_size[:n]]
    rest = by_size[n:]
    if len(rest) == 1:
        return parts[by_size]
    if len(rest):
        stack = stack.assign(**{f"{len(rest)} other parts": parts[rest].sum(axis=1)})
    return stack


def _draw_stack(ax: Axes, x: np.ndarray, stack: pd.DataFrame, floor: float) -> None:
    width = 0.86 * (np.diff(x).min() if len(x) > 1 else 1.0)
    up, down = np.full(len(x), floor), np.full(len(x), floor)
    for i, name in enumerate(stack):
        height = stack[name].to_numpy()
        bottom = np.where(height >= 0, up, down)
        style: dict[str, Any] = {"color": colour(i), "alpha": 1.0 if i < len(PALETTE) else 0.55}
        if str(name).endswith(" other parts"):
            style = {"color": PALE}
        ax.bar(x, height, width, bottom=bottom, label=str(name), **style)
        up, down = up + np.maximum(height, 0), down + np.minimum(height, 0)
