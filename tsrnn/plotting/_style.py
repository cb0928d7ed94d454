"""Shared style of all plots: colours, axes, legends, SVG."""

from __future__ import annotations

import io
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from tsrnn.data import quote

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's palette for any colour vision, without yellow, which is too light.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
INK = "#222222"
GREY = "#8C8C8C"
PALE = "#C8C8C8"
SMALL = 9
DASHES = ("-", "--", ":")  # for more lines than colours
MARKERS = ("o", "s", "^")
BAND = 1.2816  # standard errors to either side in an 80 percent band


def colour(i: int) -> str:
    """Colour i of the palette, which is repeated."""
    return PALETTE[i % len(PALETTE)]


def line_style(i: int) -> dict[str, Any]:
    """Colour, dashes and marker of line i; dashes change when the colours repeat."""
    turn = i // len(PALETTE) % len(DASHES)
    return {"color": colour(i), "linestyle": DASHES[turn], "marker": MARKERS[turn]}


def shorten(name: Any, most: int) -> str:
    """Shorten a name to at most `most` letters."""
    text = str(name)
    return text if len(text) <= most else text[: most - 3] + "..."


def new_axes(ax: Axes | None, width: float, height: float) -> Axes:
    """Validate `ax`, or create the axes of a new figure with room for labels outside."""
    if ax is not None:
        if not hasattr(ax, "xaxis"):
            raise TypeError(f"ax must be the Axes of a matplotlib figure to draw on; got {ax!r}")
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def given_panels(ax: Any, count: int) -> np.ndarray:
    """Validate the axes that a user gave for `count` panels."""
    axes = np.ravel(np.asarray(ax, dtype=object))
    if len(axes) != count:
        raise ValueError(f"`ax` must be one axes a panel, {count}; got {len(axes)}")
    return np.array([new_axes(panel, 0, 0) for panel in axes], dtype=object)


def tidy(ax: Axes) -> None:
    """Remove spines and reduce ticks."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(GREY)
    ax.tick_params(color=GREY, labelsize=SMALL)


def whole_ticks(ax: Axes) -> None:
    """Put the ticks of the x axis at whole numbers."""
    from matplotlib.ticker import MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator(integer=True))


def legend_above(ax: Axes) -> None:
    """Put the legend in a row above the data."""
    count = len(ax.get_legend_handles_labels()[1])
    place: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0, 1.0), "ncols": count}
    ax.legend(**place, frameon=False, fontsize=SMALL, borderaxespad=0.3)


def legend_beside(ax: Axes, *, inside: bool) -> None:
    """Put the legend in a column to the right of the data, or inside a figure of the user."""
    if inside:
        ax.legend(loc="best", fontsize=SMALL - 1, framealpha=0.8, edgecolor="none")
    else:
        place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0)}
        ax.legend(**place, frameon=False, fontsize=SMALL, borderaxespad=0.0)


def place_on_axis(ax: Axes, index: pd.Index) -> np.ndarray:
    """Turn an index into positions on the x axis and label the axis to fit.

    Timestamps become matplotlib's days, periods the days of their start; numbers are unchanged.
    """
    if isinstance(index, pd.PeriodIndex):
        index = index.to_timestamp()
    if not isinstance(index, pd.DatetimeIndex):
        if len(index) and not pd.api.types.is_numeric_dtype(index.dtype):
            raise TypeError(
                f"times to draw must be timestamps, periods or numbers; got dtype {index.dtype}, "
                f"such as {quote(index[0])}. Convert them by pd.to_datetime"
            )
        ax.set_xlabel(str(index.name) if index.name is not None else "Time step")
        return index.to_numpy(dtype=float)
    from matplotlib import dates

    locator = dates.AutoDateLocator()
    ax.xaxis.set_major_locator(locator)
    ax.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))
    return np.asarray(dates.date2num(index.tz_localize(None).to_numpy()), dtype=float)


def checked_count(value: Any, name: str) -> int:
    """Validate a positive integer argument."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise ValueError(f"`{name}` must be a positive whole number; got {value!r}.")
    return int(value)


def figure_svg(axes: Any) -> str:
    """Write the figure of some axes as SVG and close it.

    Letters are drawn as paths, so that the picture does not depend on fonts, and equal figures give
    equal text. Letters missing from the font become boxes, without a warning.
    """
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    figure = np.ravel(axes)[0].figure
    text = io.StringIO()
    # A fixed salt for the ids and no date, so that equal figures give equal text.
    settings: dict[Any, Any] = {"svg.fonttype": "path", "svg.hashsalt": "tsrnn"}
    with mpl.rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph .* missing from", UserWarning)
        figure.savefig(text, format="svg", metadata={"Date": None}, bbox_inches="tight")
    plt.close(figure)
    return text.getvalue()
