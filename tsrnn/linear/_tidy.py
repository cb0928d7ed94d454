"""Matrices over time as tidy frames."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from tsrnn.data import Layout, write_frame


def tidy(
    layout: Layout,
    ids: pd.Index,
    times: np.ndarray,
    matrices: np.ndarray,
    name: str,
    *,
    diagonal: bool,
) -> pd.DataFrame:
    """A row a time and pair of targets: ids where there are some, time, first, second, value.

    Parameters
    ----------
    layout : Layout
    ids : pandas.Index of shape (rows,)
    times : array of shape (rows,)
    matrices : array of shape (rows, n, n)
    name : str
        Column of the values.
    diagonal : bool
        Whether pairs of a target with itself are there.
    """
    keys = _keys(layout, ids, times)
    rows, columns = np.triu_indices(matrices.shape[-1], 0 if diagonal else 1)
    repeated = keys.loc[keys.index.repeat(len(rows))].reset_index(drop=True)
    targets = np.array(layout.target_names, dtype=object)
    repeated["first"] = np.tile(targets[rows], len(keys))
    repeated["second"] = np.tile(targets[columns], len(keys))
    repeated[name] = matrices[:, rows, columns].ravel()
    return repeated


def _keys(layout: Layout, ids: pd.Index, times: np.ndarray) -> pd.DataFrame:
    """Ids and timestamps as in the data, a row each; pandas for every data."""
    as_pandas = replace(layout, backend="pandas")
    if layout.kind == "long":
        frame = write_frame(
            as_pandas, ids, times[:, None], {"": np.zeros((len(times), 1, 1))},
            target_names=("",),
        )  # fmt: skip
        return frame.iloc[:, :-1]
    frame = write_frame(
        as_pandas, ids[:1], times[None], {"": np.zeros((1, len(times), 1))}, target_names=("",)
    )
    if layout.time_col is not None:
        return frame.iloc[:, :-1]
    name = "time" if layout.index_name is None else layout.index_name
    return frame.index.to_frame(index=False, name=name)
