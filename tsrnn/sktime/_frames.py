"""Containers of sktime as long frames of tsrnn, and forecasts back."""

from __future__ import annotations

import numpy as np
import pandas as pd

ID, TIME = "sktime instance", "sktime time"


def instances(y: pd.DataFrame) -> tuple[np.ndarray, pd.Index | None, list[str]]:
    """Series of sktime data, told apart by the levels of the index before the last.

    Returns
    -------
    codes : ndarray of shape (n,)
        Number of the series of each row.
    labels : pandas.Index of shape (S,), or None
        Of the series; None where the index has one level, of one series.
    names : list of str
        Labels as text, the ids of the long frame; columns of the one series that has no label.
    """
    if not isinstance(y.index, pd.MultiIndex):
        return np.zeros(len(y), np.intp), None, [", ".join(map(str, y.columns))]
    series = y.index.droplevel(-1)
    labels = series.drop_duplicates()
    return labels.get_indexer(series), labels, [str(label) for label in labels]


def to_long(y: pd.DataFrame, X: pd.DataFrame | None = None) -> pd.DataFrame:
    """Rows of y, beside them those of X at the same index, as a long frame.

    Raises
    ------
    ValueError
        If X lacks rows of y.
    """
    data = y if X is None else pd.concat([y, _rows_of(X, y)], axis=1)
    codes, _, names = instances(y)
    frame = data.reset_index(drop=True)
    frame.insert(0, TIME, y.index.get_level_values(-1))
    frame.insert(0, ID, np.array(names, dtype=object)[codes])
    return frame


def future_long(X: pd.DataFrame, y: pd.DataFrame) -> pd.DataFrame:
    """Rows of X as a long frame, series named as those of y."""
    frame = to_long(X.set_axis(exog_names(X, y), axis=1))
    return frame if isinstance(X.index, pd.MultiIndex) else frame.assign(**{ID: instances(y)[2][0]})


def exog_names(X: pd.DataFrame, y: pd.DataFrame) -> list:
    """Names of the columns of X beside those of y; sktime lets both have the same."""
    return [f"X[{name!r}]" if name in y.columns else name for name in X.columns]


def _rows_of(X: pd.DataFrame, y: pd.DataFrame) -> pd.DataFrame:
    lacking = y.index.difference(X.index)
    if len(lacking):
        raise ValueError(
            f"X must have a row for every row of y; {len(lacking)} are missing, the first at "
            f"{lacking[0]}. Add them"
        )
    return X.loc[y.index].set_axis(exog_names(X, y), axis=1)


def rows_at(frame: pd.DataFrame, y: pd.DataFrame, times: pd.Index) -> pd.DataFrame:
    """Rows of a long frame at some times of every series of y, indexed as sktime wants them.

    Raises
    ------
    ValueError
        If a row is not there.
    """
    _, labels, names = instances(y)
    wanted = pd.MultiIndex.from_product([names, times])
    found = pd.MultiIndex.from_arrays([frame[ID], pd.Index(frame[TIME])]).get_indexer(wanted)
    if np.any(found < 0):
        name, time = wanted[int(np.argmax(found < 0))]
        raise ValueError(
            f"fh must name times of the data or steps after them; there is none at {time} of the "
            f"series {name!r}"
        )
    rows = frame.iloc[found].drop(columns=[ID, TIME])
    return rows.set_axis(times if labels is None else _product(labels, times, y), axis=0)


def _product(labels: pd.Index, times: pd.Index, y: pd.DataFrame) -> pd.MultiIndex:
    """Every label with every time, under the names of the levels of y."""
    n, k = len(labels), len(times)
    parts = [labels.get_level_values(i).repeat(k) for i in range(labels.nlevels)]
    last = times.take(np.tile(np.arange(k), n))
    return pd.MultiIndex.from_arrays([*parts, last], names=y.index.names)
