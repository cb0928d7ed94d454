"""From forecasts to a frame in the shape of the data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd

from tsrnn.data._alias import parse_freq
from tsrnn.data._grid import Tick
from tsrnn.data._layout import Layout, Name
from tsrnn.data._libraries import to_polars
from tsrnn.data._stamps import write_stamps
from tsrnn.data._text import quoted

__all__ = ["in_library", "write_frame", "write_paths"]


def write_frame(
    layout: Layout,
    ids: Any,
    times: np.ndarray,
    forecasts: Mapping[str, np.ndarray],
    *,
    target_names: tuple[Name, ...] | None = None,
    model: str = "ParaRNN",
    cutoffs: np.ndarray | None = None,
) -> Any:
    """Give forecasts back in the shape of the data.

    Parameters
    ----------
    layout : Layout
        Layout of the data.
    ids : array_like, shape (S,)
        Id of each forecast; may repeat where there are cutoffs.
    times : ndarray, shape (S, h)
        Of the kind of `Panel.times`.
    forecasts : mapping of str to ndarray, each of shape (S, h, n_targets)
        "" is the point forecast; the others ("-lo-80", "-hi-80") are suffixes of its column.
    target_names : tuple of str or int, optional
        By default those of the layout.
    model : str
        Name of the forecast column of a long frame with one target, and of an unnamed Series
        with intervals.
    cutoffs : ndarray, shape (S,), optional
        Last time known to each forecast: a column "cutoff" before the forecasts. A wide frame
        then holds the forecasts of all cutoffs one below the other.

    Returns
    -------
    pandas.Series, pandas.DataFrame or polars.DataFrame
        A Series for a Series and the point forecast alone. Frames with time in a column have
        ids and timestamps in front and a new index.

    Raises
    ------
    ValueError
        If shapes do not fit.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from tsrnn.data import future_times, read_panel, write_frame
    >>> y = pd.Series([1.0, 2.0, 3.0], pd.RangeIndex(3), name="sales")
    >>> panel = read_panel(y)
    >>> forecasts = {"": np.array([[[4.0], [5.0]]])}
    >>> write_frame(panel.layout, panel.ids, future_times(panel, 2), forecasts)
    3    4.0
    4    5.0
    Name: sales, dtype: float64
    """
    names = layout.target_names if target_names is None else tuple(target_names)
    _check_shapes(len(ids), times, forecasts, len(names), layout, cutoffs)
    columns = _forecast_columns(layout, forecasts, names, model)
    stamps = write_stamps(times.ravel(), layout)
    if cutoffs is not None:
        known = write_stamps(np.repeat(cutoffs, times.shape[1]), layout)
        columns = _joined({"cutoff": known}, columns)
    if layout.time_col is not None:
        return _with_keys(layout, pd.Index(ids).repeat(times.shape[1]), stamps, columns)
    index = _with_freq(stamps, layout) if cutoffs is None else stamps
    index = index.rename(layout.index_name)
    if layout.kind == "series" and list(forecasts) == [""] and cutoffs is None:
        return pd.Series(next(iter(columns.values())), index=index, name=layout.series_name)
    return pd.DataFrame(columns, index=index)


def write_paths(
    layout: Layout, ids: Any, times: np.ndarray, paths: np.ndarray, *, model: str = "ParaRNN"
) -> Any:
    """Give paths of forecasts back in the shape of the data, one below the other.

    Parameters
    ----------
    layout : Layout
        Layout of the data.
    ids : array_like, shape (S,)
    times : ndarray, shape (S, h)
        Of the kind of `Panel.times`.
    paths : ndarray, shape (n, S, h, n_targets)
    model : str
        Name of the column of a long frame with one target.

    Returns
    -------
    pandas.DataFrame or polars.DataFrame
        Of each path as `write_frame` gives it, with a column "path" from 1 to n before the values.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from tsrnn.data import future_times, read_panel, write_paths
    >>> panel = read_panel(pd.Series([1.0, 2.0], pd.RangeIndex(2), name="sales"))
    >>> times = future_times(panel, 1)
    >>> write_paths(panel.layout, panel.ids, times, np.array([3.0, 4.0]).reshape(2, 1, 1, 1))
       path  sales
    2     1    3.0
    2     2    4.0
    """
    n, n_series, h, n_targets = paths.shape
    in_pandas = replace(layout, backend="pandas")
    first = write_frame(in_pandas, ids, times, {"": paths[0]}, model=model)
    first = first.to_frame() if isinstance(first, pd.Series) else first
    frame = first.iloc[np.tile(np.arange(n_series * h), n)].copy()
    for j, name in enumerate(frame.columns[-n_targets:]):
        frame[name] = paths[..., j].ravel()
    number = np.repeat(np.arange(1, n + 1), n_series * h)
    frame.insert(len(frame.columns) - n_targets, "path", number)
    return in_library(
        frame.reset_index(drop=True) if layout.time_col is not None else frame, layout
    )


def in_library(frame: pd.DataFrame, layout: Layout) -> Any:
    """Give a frame back in the library of the data.

    Parameters
    ----------
    frame : DataFrame
        If the data came from polars, with its timestamps in a column, as `write_frame` gives it
        for pandas.
    layout : Layout

    Returns
    -------
    pandas.DataFrame or polars.DataFrame

    Examples
    --------
    >>> from tsrnn.data import in_library, panel_frame, read_panel
    >>> from tsrnn.datasets import load_nile
    >>> panel = read_panel(load_nile())
    >>> in_library(panel_frame(panel), panel.layout).equals(load_nile())
    True
    """
    if layout.backend == "pandas":
        return frame
    made = to_polars(frame)
    if layout.time_dtype != "date":
        return made
    dates = [name for name in (str(layout.time_col), "cutoff") if name in frame.columns]
    return nw.from_native(made).with_columns(nw.col(*dates).cast(nw.Date)).to_native()


def _check_shapes(
    n_series: int,
    times: np.ndarray,
    forecasts: Mapping[str, np.ndarray],
    n_targets: int,
    layout: Layout,
    cutoffs: np.ndarray | None,
) -> None:
    if times.ndim != 2 or len(times) != n_series:
        raise ValueError(f"times must have shape ({n_series}, h); got {times.shape}.")
    for key, forecast in forecasts.items():
        if forecast.shape != (*times.shape, n_targets):
            raise ValueError(
                f"forecasts[{key!r}] must have shape {(*times.shape, n_targets)} (series, h, "
                f"targets); got {forecast.shape}."
            )
    if cutoffs is not None and cutoffs.shape != (n_series,):
        raise ValueError(f"cutoffs must have shape ({n_series},); got {cutoffs.shape}.")
    if layout.kind != "long" and cutoffs is None and n_series != 1:
        raise ValueError(f"a {layout.kind} layout has one series; got {n_series}. Give cutoffs.")


def _forecast_columns(
    layout: Layout, forecasts: Mapping[str, np.ndarray], names: tuple[Name, ...], model: str
) -> dict[Name, Any]:
    """Return the columns of forecasts, target by target."""
    alone = layout.kind == "long" and len(names) == 1
    unnamed = layout.kind == "series" and layout.series_name is None
    bases = (model,) if alone or unnamed else names
    return _joined(
        *(
            {base if key == "" else f"{base}{key}": forecast[:, :, j].ravel()}
            for j, base in enumerate(bases)
            for key, forecast in forecasts.items()
        )
    )


def _joined(*parts: dict[Name, Any]) -> dict[Name, Any]:
    """Columns side by side, each with a name of its own."""
    names = [name for part in parts for name in part]
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise ValueError(
            f"columns of the forecasts must have names of their own; there would be more than one "
            f"{quoted(repeated)}, as a column of the data has that name. Rename it and fit again."
        )
    return {name: column for part in parts for name, column in part.items()}


def _with_keys(layout: Layout, ids: pd.Index, stamps: pd.Index, columns: dict[Name, Any]) -> Any:
    """Ids, if there are any, and timestamps as columns in front of the others."""
    assert layout.time_col is not None
    front: dict[Name, Any] = {} if layout.id_col is None else {layout.id_col: ids}
    front = _joined(front, {layout.time_col: stamps})
    return in_library(pd.DataFrame(_joined(front, columns)), layout)


def _with_freq(stamps: pd.Index, layout: Layout) -> pd.Index:
    """Return a DatetimeIndex with its frequency set, where pandas can hold it.

    pandas has no daily index over a midnight that a change of clocks leaves out.
    """
    if not isinstance(stamps, pd.DatetimeIndex):
        return stamps
    wall = stamps.tz_localize(None)
    fixed = isinstance(parse_freq(layout.freq), Tick)
    if fixed or len(set(wall.time)) == 1:
        return pd.DatetimeIndex(stamps, freq=str(layout.freq))
    return stamps
