"""Rows of series of a long frame that is in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd

__all__ = ["FrameRows", "Given", "check_columns", "check_ids"]


class FrameRows:
    """A long frame, and which of its rows are of which series.

    Parameters
    ----------
    frame : pandas.DataFrame or polars.DataFrame
    id_col : str
    columns : list, optional
        Columns to keep; all by default.

    Raises
    ------
    TypeError, ValueError
        If it is no such frame, is empty, a column is missing or ids are.
    """

    def __init__(self, frame: Any, id_col: str, columns: list[Any] | None = None) -> None:
        own = frame.columns if nw.dependencies.is_into_dataframe(frame) else None
        if own is None:
            raise TypeError(
                "series must come as a long pandas or polars DataFrame, a path, or an iterator of "
                f"frames; got {type(frame).__module__}.{type(frame).__qualname__}"
            )
        check_columns(list(own), [id_col] if columns is None else columns, id_col)
        self.frame = frame if columns is None else frame[columns]
        if len(frame) == 0:
            raise ValueError("the frame must have rows; it is empty")
        listed = nw.from_native(frame, eager_only=True)[id_col].to_list()
        codes, ids = pd.factorize(np.asarray(listed, dtype=object))
        check_ids(int((codes < 0).sum()), id_col)
        check_types(ids.tolist(), id_col)
        self.ids: list[Any] = ids.tolist()
        self.counts = np.bincount(codes, minlength=len(ids))
        self._order = np.argsort(codes, kind="stable")
        self._starts = np.concatenate([[0], np.cumsum(self.counts)])
        self._places = {name: place for place, name in enumerate(self.ids)}

    def __contains__(self, name: Any) -> bool:
        return name in self._places

    def part(self, ids: Sequence[Any]) -> Callable[[], Any]:
        """A function that gives the rows of some series, in their order."""
        if len(ids) == len(self.ids):
            return Given(self.frame)
        places = [self._places[name] for name in ids]
        spans = [self._order[self._starts[i] : self._starts[i + 1]] for i in places]
        rows = np.sort(np.concatenate(spans)) if spans else np.zeros(0, np.int64)
        pandas = isinstance(self.frame, pd.DataFrame)
        return Given(self.frame.iloc[rows] if pandas else self.frame[rows])


class Given:
    """A frame as a function, which workers can be sent."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    def __call__(self) -> Any:
        return self._frame


def check_columns(own: list[Any], needed: list[Any], id_col: str) -> None:
    """Refuse data in which a column that is needed is missing, or there twice.

    Raises
    ------
    ValueError
        Naming it.
    """
    missing = [name for name in needed if name not in own]
    if not missing:
        twice = [name for name in needed if own.count(name) > 1]
        if twice:
            raise ValueError(f"column names must be unique; twice there are {twice}. Rename one")
        return
    advice = "Name the columns by the model's id_col, time_col and target"
    if id_col in missing:
        advice += "; or melt a wide frame into a long one"
    raise ValueError(f"the data need the columns {missing}; theirs are {own}. {advice}")


def check_types(ids: list[Any], id_col: str) -> None:
    """Refuse ids of several types, which a column of a file cannot hold.

    Raises
    ------
    TypeError
        Naming the types.
    """
    types = sorted({type(name).__name__ for name in ids})
    if len(types) > 1:
        raise TypeError(
            f"the ids in {id_col!r} must be of one type; they are of {', '.join(types)}. Convert "
            "them, for example by astype(str)"
        )


def check_ids(n_missing: int, id_col: str) -> None:
    """Refuse rows without an id.

    Raises
    ------
    ValueError
        If there are any.
    """
    if n_missing:
        raise ValueError(
            f"the column {id_col!r} must name a series in each row; {n_missing} ids are missing. "
            "Fill them in or drop these rows"
        )
