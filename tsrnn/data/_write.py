"""From forecasts to a frame in the shape of the data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd

from tsrnn.data._alias import parse_freq
from tsrnn.data._grid import Tick
from tsrnn.data._layout import Layout, Name
from tsrnn.data._stamps import write_stamps

__all__ = ["in_library", "write_frame"]


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
        A Series for a Series and the point forecast alone. Long frames have ids and timestamps
        in front and a new index.

    Raises
    ------
    ValueError
        If shapes do not fit.
    """
    names = layout.target_names if target_names is None else tuple(target_names)
    _check_shapes(len(ids), times, forecasts, len(names), layout, cutoffs)
    columns = _forecast_columns(layout, forecasts, names, model)
    stamps = write_stamps(times.ravel(), layout)
    if cutoffs is not None:
        known = write_stamps(np.repeat(cutoffs, times.shape[1]), layout)
        columns = {"cutoff": known, **columns}
    if layout.kind == "long":
        return _long(layout, pd.Index(ids).repeat(times.shape[1]), stamps, columns)
    index = _with_freq(stamps, layout) if cutoffs is None else stamps
    index = index.rename(layout.index_name)
    if layout.kind == "series" and list(forecasts) == [""] and cutoffs is None:
        return pd.Series(next(iter(columns.values())), index=index, name=layout.series_name)
    return pd.DataFrame(columns, index=index)


def in_library(frame: pd.DataFrame, layout: Layout) -> Any:
    """Give a frame back in the library of the data.

    Parameters
    ----------
    frame : DataFrame
        If the data came from polars, long, as `write_frame` gives it for pandas.
    layout : Layout

    Returns
    -------
    pandas.DataFrame or polars.DataFrame
    """
    if layout.backend == "pandas":
        return frame
    data = {str(name): _plain(pd.Index(column)) for name, column in frame.items()}
    return _restore_times(nw.from_dict(data, backend="polars"), layout).to_native()


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
    return {
        base if key == "" else f"{base}{key}": forecast[:, :, j].ravel()
        for j, base in enumerate(bases)
        for key, forecast in forecasts.items()
    }


def _long(layout: Layout, ids: pd.Index, stamps: pd.Index, columns: dict[Name, Any]) -> Any:
    front: dict[Name, Any] = {} if layout.id_col is None else {layout.id_col: ids}
    front[str(layout.time_col)] = stamps
    return in_library(pd.DataFrame(front | columns), layout)


def _plain(column: pd.Index) -> np.ndarray | list[Any]:
    """Return a column as polars takes it: timestamps in UTC, text as a list."""
    if isinstance(column, pd.DatetimeIndex):
        utc = column if column.tz is None else column.tz_convert("UTC").tz_localize(None)
        return utc.to_numpy()
    array = np.asarray(column)
    return array if array.dtype.kind in "iufb" else array.tolist()


def _restore_times(frame: nw.DataFrame[Any], layout: Layout) -> nw.DataFrame[Any]:
    """Give the timestamps of a polars frame back their zone, or make them dates."""
    names = [name for name in (layout.time_col, "cutoff") if name in frame.columns]
    if layout.time_dtype == "date":
        return frame.with_columns(nw.col(*names).cast(nw.Date))
    if layout.tz is None:
        return frame
    times = nw.col(*names).dt.replace_time_zone("UTC").dt.convert_time_zone(layout.tz)
    return frame.with_columns(times)


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
