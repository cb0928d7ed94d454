"""Timestamps of pandas turned into numbers and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import pandas as pd

from tsrnn.data._dates import read_dates
from tsrnn.data._layout import Layout
from tsrnn.data._text import listed

__all__ = ["Stamps", "period_freq", "period_step", "periods", "read_stamps", "write_stamps"]

MOST = 2**61  # size of an integer timestamp

TimeKind: TypeAlias = Literal["datetime", "period", "integer"]


@dataclass(frozen=True, eq=False)
class Stamps:
    """Timestamps as numbers.

    Parameters
    ----------
    values : ndarray, shape (N,)
        datetime64[ns], in UTC if there is a zone; int64 ordinals of periods; int64 integers.
    kind : {"datetime", "period", "integer"}
    dtype : str
        See `Layout.time_dtype`.
    tz : str or None
    freq : str or int or None
        The frequency that the timestamps carry, if any.
    """

    values: np.ndarray
    kind: TimeKind
    dtype: str
    tz: str | None = None
    freq: str | int | None = None


def read_stamps(times: pd.Index, what: str, *, is_date: bool = False) -> Stamps:
    """Read an index of timestamps.

    Parameters
    ----------
    times : pandas.Index
    what : str
        How messages call it, such as "the column 'ds'".
    is_date : bool
        Whether they were dates without a time of day (polars Date).

    Raises
    ------
    TypeError
        If they are neither datetimes nor periods nor integers, nor text that means dates.
    ValueError
        If some are missing or out of range, or are text that could mean several dates.
    """
    if isinstance(times, pd.MultiIndex):
        raise TypeError(
            f"{what} must have one level; got a MultiIndex of {times.nlevels}. Use reset_index() "
            "and name the columns by id_col and time_col."
        )
    _check_present(times, what)
    times = read_dates(times, what)
    if isinstance(times, pd.PeriodIndex):
        return Stamps(times.asi8, "period", str(times.dtype), freq=times.freqstr)
    if isinstance(times, pd.DatetimeIndex):
        return _read_datetimes(times, what, is_date)
    if pd.api.types.is_integer_dtype(times.dtype):
        _check_integers(times, what)
        values = times.to_numpy(dtype=np.int64)
        step = times.step if isinstance(times, pd.RangeIndex) and times.step > 0 else None
        return Stamps(values, "integer", str(times.dtype).lower(), freq=step)
    raise TypeError(
        f"{what} must hold datetimes, periods or integers; got dtype {times.dtype} "
        f"({listed(map(repr, times[:2]))}). {_advice(times)}"
    )


def write_stamps(times: np.ndarray, layout: Layout) -> pd.Index:
    """Turn times as a panel holds them back into the timestamps of a layout.

    Parameters
    ----------
    times : ndarray, shape (N,)
        Of the kind of `Panel.times`.
    layout : Layout

    Returns
    -------
    pandas.DatetimeIndex, pandas.PeriodIndex or pandas.Index of integers

    Examples
    --------
    >>> from tsrnn.data import read_panel, write_stamps
    >>> from tsrnn.datasets import load_nile
    >>> panel = read_panel(load_nile())
    >>> write_stamps(panel.times, panel.layout).equals(load_nile().index)
    True
    """
    if layout.time_kind == "period":
        return periods(times, period_freq(layout.time_dtype))
    if layout.time_kind == "integer":
        return pd.Index(times, dtype=_integer_dtype(times, layout.time_dtype))
    index = pd.DatetimeIndex(times.astype("datetime64[ns]"))
    unit = "us" if layout.time_dtype == "date" else layout.time_dtype[len("datetime64[") : -1]
    index = index.as_unit(unit)  # type: ignore[arg-type]
    return index if layout.tz is None else index.tz_localize("UTC").tz_convert(layout.tz)


def periods(ordinals: np.ndarray, freq: str | None) -> pd.PeriodIndex:
    """Return the periods of some ordinals."""
    return pd.PeriodIndex.from_ordinals(ordinals, freq=freq)  # type: ignore[attr-defined]


def period_freq(dtype: str) -> str | None:
    """Return the frequency in "period[M]", None for other dtypes."""
    return dtype[len("period[") : -1] if dtype.startswith("period[") else None


def period_step(freq: str) -> int:
    """Return the multiple in front of a frequency of periods, the step of their ordinals."""
    digits = freq[: len(freq) - len(freq.lstrip("0123456789"))]
    return int(digits or 1)


def _check_present(times: pd.Index, what: str) -> None:
    rows = np.flatnonzero(np.asarray(times.isna()))
    if len(rows):
        raise ValueError(
            f"{what} must have no missing timestamps; {len(rows)} are missing (NaT) at row "
            f"{listed(rows, 3)}. Drop these rows or fill in their timestamps."
        )


def _check_integers(times: pd.Index, what: str) -> None:
    """Refuse integers whose differences would not fit 64 bits."""
    if len(times) and (times.max() > MOST or times.min() < -MOST):
        raise ValueError(
            f"{what} must hold integers up to 2**61 in size, so that steps can be counted in 64 "
            f"bits; got {times.min()} to {times.max()}. Subtract a constant."
        )


def _read_datetimes(times: pd.DatetimeIndex, what: str, is_date: bool) -> Stamps:
    utc = times if times.tz is None else times.tz_convert("UTC").tz_localize(None)
    try:
        values = utc.as_unit("ns").to_numpy()
    except pd.errors.OutOfBoundsDatetime as error:
        raise ValueError(
            f"{what} must lie between the years 1678 and 2261; got {times.min()} to "
            f"{times.max()}. Use periods (to_period) or an integer index."
        ) from error
    dtype = "date" if is_date else f"datetime64[{times.unit}]"
    tz = None if times.tz is None else str(times.tz)
    return Stamps(values, "datetime", dtype, tz, times.freqstr)


def _integer_dtype(times: np.ndarray, dtype: str) -> str:
    """Return the dtype that was read, or int64 where the timestamps have outgrown it."""
    bounds = np.iinfo(dtype)
    fits = times.size == 0 or (times.min() >= bounds.min and times.max() <= bounds.max)
    return dtype if fits else "int64"


def _advice(times: pd.Index) -> str:
    if pd.api.types.is_numeric_dtype(times.dtype):
        return "Use astype('int64') if they are whole numbers."
    return "Convert them by pd.to_datetime, with the format they are written in."
