"""From a panel back to a frame in the shape of the data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from tsrnn.data._layout import Name
from tsrnn.data._panel import Panel
from tsrnn.data._stamps import write_stamps

__all__ = ["panel_frame"]


def panel_frame(panel: Panel, columns: Sequence[Name] | None = None) -> pd.DataFrame | pd.Series:
    """Write the rows of a panel as `read_panel` would read them.

    Parameters
    ----------
    panel : Panel
    columns : sequence of str or int, optional
        Some of the exogenous columns alone, as `X_future` holds them; by default the targets
        and all exogenous columns.

    Returns
    -------
    pandas.Series or pandas.DataFrame
        Of the kind of the layout, of pandas whatever the library of the data was. Rows that
        were missing are there, their targets NaN.

    Examples
    --------
    >>> from tsrnn.data import panel_frame, read_panel
    >>> from tsrnn.datasets import load_nile
    >>> panel_frame(read_panel(load_nile())).equals(load_nile())
    True
    """
    layout, stamps = panel.layout, write_stamps(panel.times, panel.layout)
    if layout.kind == "series" and columns is None:
        return pd.Series(panel.values[:, 0], index=stamps, name=layout.series_name)
    data: dict[Name, Any] = {}
    if layout.id_col is not None:
        data[layout.id_col] = panel.ids.repeat(panel.lengths)
    if layout.time_col is not None:
        data[layout.time_col] = stamps
    if columns is None:
        data |= zip(panel.target_names, panel.values.T, strict=True)
    exog = dict(zip(panel.exog_names, panel.exog.T, strict=True))
    data |= {name: exog[name] for name in (panel.exog_names if columns is None else columns)}
    index = None if layout.time_col is not None else stamps.rename(layout.index_name)
    return pd.DataFrame(data, index=index)
