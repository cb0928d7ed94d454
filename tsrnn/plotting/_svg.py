"""A figure as text that a page can hold."""

from __future__ import annotations

import io
import warnings
from typing import Any

__all__ = ["figure_svg"]


def figure_svg(axes: Any) -> str:
    """Write the figure of some axes as SVG and close it.

    Letters are drawn as shapes, so that it looks the same everywhere; the same figure gives the
    same text. Letters that the font lacks are boxes, without a warning.

    Parameters
    ----------
    axes : matplotlib Axes or array of them

    Returns
    -------
    str

    Examples
    --------
    >>> import pandas as pd
    >>> from tsrnn.plotting import figure_svg, plot_correlations
    >>> frame = pd.DataFrame({"ds": [1, 2], "first": "a", "second": "b", "correlation": [0.1, 0.3]})
    >>> "<svg" in figure_svg(plot_correlations(frame))
    True
    """
    import matplotlib as mpl
    import matplotlib.pyplot as plt
    import numpy as np

    figure = np.ravel(axes)[0].figure
    text = io.StringIO()
    settings: dict[Any, Any] = {"svg.fonttype": "path", "svg.hashsalt": "tsrnn"}
    with mpl.rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph .* missing from", UserWarning)
        figure.savefig(text, format="svg", metadata={"Date": None}, bbox_inches="tight")
    plt.close(figure)
    return text.getvalue()
