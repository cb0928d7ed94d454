"""Frames by unit, in the shape of the data, and of matrices over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from tsrnn.data import Layout, Panel, in_library, quote, row_keys, write_frame


def by_unit(index: pd.Index, names: Sequence[str], values: np.ndarray) -> pd.DataFrame:
    """Values (N, k) with a row a unit and a column a parameter."""
    return pd.DataFrame(values, index=index, columns=list(names), copy=True)


def by_parameter(
    index: pd.Index, names: Sequence[str], columns: Mapping[str, np.ndarray]
) -> pd.DataFrame:
    """Columns (N, k) or blocks of them with a row a unit and parameter."""
    n, k = len(index), len(names)
    rows = index.repeat(k)
    levels = [rows.get_level_values(i) for i in range(rows.nlevels)]
    keys = pd.MultiIndex.from_arrays([*levels, list(names) * n], names=[*index.names, "parameter"])
    return pd.DataFrame({key: value.ravel() for key, value in columns.items()}, index=keys)


def given_params(params: Any, index: pd.Index, names: Sequence[str]) -> np.ndarray:
    """Read parameters (N, k) of a user: by unit and name, or one set for all units.

    Rows of other units are ignored; missing, unknown and infinite parameters are refused.
    """
    n, k = len(index), len(names)
    if isinstance(params, pd.DataFrame):
        _check_names(params.columns, names)
        absent = index.difference(params.index)
        if len(absent):
            raise ValueError(
                f"params must have a row for every unit; missing is {quote(absent[0])}"
            )
        values = _float_array(params.loc[index, list(names)])
    elif isinstance(params, pd.Series | Mapping):
        _check_names(params.keys(), names)
        values = _float_array([params[name] for name in names])
    else:
        values = _float_array(params)
    if values.shape not in {(k,), (n, k)}:
        raise ValueError(
            f"params must be {k} values, {list(names)}, or {n} rows of them, a row a unit; got "
            f"shape {values.shape}"
        )
    values = np.array(np.broadcast_to(values, (n, k)))
    unknown = np.flatnonzero(~np.isfinite(values).all(1))
    if len(unknown):
        raise ValueError(
            f"params must be finite; those of {quote(index[unknown[0]])} are "
            f"{dict(zip(names, values[unknown[0]].tolist(), strict=True))}. Give all of them, or "
            "leave the series out"
        )
    return values


def _float_array(values: Any) -> np.ndarray:
    try:
        return np.asarray(values, float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"params must be numbers; got {values!r}") from error


def _check_names(came: Any, names: Sequence[str]) -> None:
    absent = [name for name in names if name not in came]
    unknown = [name for name in came if name not in names]
    if absent or unknown:
        raise ValueError(
            f"params must be named {list(names)}; missing are {quote(absent)}, unknown are "
            f"{quote(unknown)}"
        )


def in_shape_of_data(panel: Panel, values: np.ndarray, name: str) -> Any:
    """Values (rows, C) beside the timestamps of a panel, in the shape of its frame.

    `name` is the column of a long frame with one target.
    """
    layout = panel.layout
    if layout.kind == "long":
        ids = panel.ids.repeat(panel.lengths)
        return write_frame(layout, ids, panel.times[:, None], {"": values[:, None]}, model=name)
    return write_frame(layout, panel.ids, panel.times[None], {"": values[None]}, model=name)


def sample_text(layout: Layout, ids: pd.Index, first: Any, last: Any) -> tuple[str, str]:
    """First and last timestamp of a series as the user wrote them."""
    ends = Panel(
        values=np.empty((2, 0)),
        indptr=np.array([0, 2]),
        ids=ids,
        times=np.array([first, last]),
        exog=np.empty((2, 0)),
        exog_names=(),
        layout=layout,
    )
    return ends.axis.show(np.array([0])), ends.axis.show(np.array([1]))


def tidy(
    layout: Layout,
    ids: pd.Index,
    times: np.ndarray,
    matrices: np.ndarray,
    name: str,
    *,
    diagonal: bool,
) -> Any:
    """Long frame of matrices (rows, n, n): id, time, first, second, and the entry as `name`.

    It is in the library of the data. `diagonal` keeps pairs of a target with itself.
    """
    keys = row_keys(layout, ids, times)
    rows, columns = np.triu_indices(matrices.shape[-1], 0 if diagonal else 1)
    repeated = keys.loc[keys.index.repeat(len(rows))].reset_index(drop=True)
    targets = np.array(layout.target_names, dtype=object)
    repeated["first"] = np.tile(targets[rows], len(keys))
    repeated["second"] = np.tile(targets[columns], len(keys))
    repeated[name] = matrices[:, rows, columns].ravel()
    return in_library(repeated, layout)
