"""Plot of conditional correlations over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from tsrnn.plotting._style import GREY, colour, legend_beside, new_axes, place_on_axis, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_VALUES = ("correlation", "covariance")


def plot_correlations(frame: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw the correlations or covariances of pairs over time.

    Parameters
    ----------
    frame : DataFrame
        Result of ``correlations()`` or ``covariances()`` of a fitted multivariate GARCH model for
        one series: a column of times, ``first``, ``second`` and the value. Select rows to draw
        some pairs only.
    ax : matplotlib Axes, optional
        Axes to draw on; a new figure by default.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        If the frame has other columns, no rows, or several series.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from tsrnn import DCC
    >>> from tsrnn.plotting import plot_correlations
    >>> returns = pd.DataFrame(np.random.default_rng(0).normal(size=(500, 2)), columns=["a", "b"])
    >>> model = DCC(garch_order=(1, 0)).fit(returns)
    >>> plot_correlations(model.correlations()).get_ylabel()
    'Correlation'
    """
    time, value = _columns(frame)
    given = ax is not None
    ax = new_axes(ax, 10.0, 3.8)
    if value == "correlation":
        ax.axhline(0, color=GREY, linewidth=0.6)
    for i, (pair, rows) in enumerate(frame.groupby(["first", "second"], sort=False)):
        x = place_on_axis(ax, pd.Index(rows[time], name=time))
        style: dict[str, Any] = {"color": colour(i), "linewidth": 1.0}
        ax.plot(x, rows[value].to_numpy(), label=", ".join(map(str, pair)), **style)
    ax.set_ylabel(value.capitalize())
    ax.margins(x=0)
    tidy(ax)
    legend_beside(ax, inside=given)
    return ax


def _columns(frame: pd.DataFrame) -> tuple[str, str]:
    """Names of the time column and of the value column."""
    names = [str(name) for name in getattr(frame, "columns", [])]
    if len(names) < 4 or names[-3:-1] != ["first", "second"] or names[-1] not in _VALUES:
        raise ValueError(
            "the frame must be what correlations() or covariances() gives: a column of times, "
            f"first, second, and correlation or covariance; got {names or type(frame).__name__}"
        )
    if frame.empty:
        raise ValueError("there is nothing to draw: the frame has no rows")
    if frame.duplicated([names[-4], "first", "second"]).any():
        raise ValueError("the frame holds several series; select the rows of one")
    return names[-4], names[-1]
