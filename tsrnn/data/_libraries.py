"""Frames of one library as frames of the other, without pyarrow."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd

__all__ = ["pandas_column", "to_pandas", "to_polars"]


def to_pandas(frame: Any) -> pd.DataFrame:
    """Give a polars or pandas frame as one of pandas.

    Parameters
    ----------
    frame : polars.DataFrame or pandas.DataFrame

    Returns
    -------
    pandas.DataFrame
        The frame itself, if it is one of pandas.

    Examples
    --------
    >>> import pandas as pd
    >>> from tsrnn.data import to_pandas, to_polars
    >>> frame = pd.DataFrame({"unique_id": ["a", "b"], "y": [1.0, 2.0]})
    >>> to_pandas(to_polars(frame)).equals(frame)
    True
    """
    if isinstance(frame, pd.DataFrame):
        return frame
    source = nw.from_native(frame, eager_only=True)
    return pd.DataFrame({name: pandas_column(source[name]) for name in source.columns})


def to_polars(frame: Any) -> Any:
    """Give a pandas or polars frame as one of polars.

    Parameters
    ----------
    frame : pandas.DataFrame or polars.DataFrame
        Its index is left out.

    Returns
    -------
    polars.DataFrame
        Timestamps keep their zone, periods become the timestamps at which they begin.

    Raises
    ------
    ImportError
        If polars is not installed.
    TypeError
        If a column holds values of several types.
    ValueError
        If two columns have the same name as text.

    Examples
    --------
    >>> import pandas as pd
    >>> from tsrnn.data import to_polars
    >>> months = pd.period_range("2024-01", periods=2, freq="M")
    >>> to_polars(pd.DataFrame({"ds": months, "y": [1.0, 2.0]})).shape
    (2, 2)
    """
    if not isinstance(frame, pd.DataFrame):
        return frame
    names = [str(name) for name in frame.columns]
    if len(set(names)) < len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise ValueError(
            f"columns must differ in their names; named twice are {twice}. Rename them"
        )
    columns = {str(name): _values(pd.Index(column)) for name, column in frame.items()}
    try:
        made = nw.from_dict(columns, backend="polars")
    except ModuleNotFoundError as error:
        raise ImportError(
            "polars is needed and not installed. Run pip install 'tsrnn[polars]'"
        ) from error
    except TypeError as error:
        raise TypeError(
            f"a column of polars holds values of one type, a column of this frame does not: "
            f"{error}. Convert it, for example by astype('str')"
        ) from error
    zones = {str(name): str(column.dt.tz) for name, column in frame.items() if _has_zone(column)}
    for name, zone in zones.items():
        utc = nw.col(name).dt.replace_time_zone("UTC")
        try:
            made = made.with_columns(utc.dt.convert_time_zone(zone))
        except Exception as error:  # of polars' own, whose zones are those of a database
            raise ValueError(
                f"columns of polars hold times of the zones of the tz database, such as "
                f"'Europe/Berlin'; the column {name!r} has {zone}. Convert it, for example by "
                "dt.tz_convert('UTC')"
            ) from error
    return made.to_native()


def pandas_column(column: nw.Series[Any]) -> pd.Series:
    """Give a column of polars as one of pandas."""
    if column.dtype == nw.Boolean and column.null_count() > 0:
        column = column.cast(nw.Float64)
    if column.dtype.is_nested() or column.dtype in (nw.Object, nw.Int128, nw.UInt128):
        return pd.Series(column.to_list(), dtype=object)
    tz = getattr(column.dtype, "time_zone", None)
    series: Any = pd.Series(column.to_numpy())
    return series if tz is None else series.dt.tz_localize("UTC").dt.tz_convert(tz)


def _has_zone(column: pd.Series) -> bool:
    return isinstance(column.dtype, pd.DatetimeTZDtype)


def _values(column: pd.Index) -> np.ndarray | list[Any]:
    """Return a column as polars takes it: timestamps in UTC, text as a list."""
    if isinstance(column, pd.PeriodIndex):
        column = column.to_timestamp()
    if isinstance(column, pd.DatetimeIndex):
        utc = column if column.tz is None else column.tz_convert("UTC").tz_localize(None)
        return (utc.as_unit("ms") if utc.unit == "s" else utc).to_numpy()
    array = np.asarray(column)
    if array.dtype.kind in "iufb":
        return array
    return column.astype(object).where(column.notna(), None).tolist()
