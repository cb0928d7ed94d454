"""Scale of a series: mean differences of its seasonal naive forecast before the first cutoff."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from pandas.api.types import is_any_real_numeric_dtype

from tsrnn.contract import positive_integer
from tsrnn.data import quote
from tsrnn.evaluation._forecasts import Forecasts, list_names

NO_SCALE = (
    "MASE, RMSSE and OWA are left out: they need the rows before the first cutoff, train=, and "
    "season_length=."
)

NONE_VARIES = (
    "MASE, RMSSE and OWA are left out: no series has rows before the first cutoff whose seasonal "
    "differences are not zero."
)


class Scale(NamedTuple):
    """Mean absolute and mean squared seasonal differences, shape (S,); NaN if unknown or zero.

    Units are those of errors and squared errors; for variances, of variances and their squares.
    """

    mae: np.ndarray
    mse: np.ndarray


def read_scale(
    frame: pd.DataFrame,
    forecasts: Forecasts,
    facts: dict[str, Any],
    train: Any,
    season_length: Any,
    kind: str,
    loss: str,
) -> tuple[Scale | None, list[str]]:
    """Scale of each series: from `train`, else from the backtest; None without either.

    A backtest of variances keeps the scale of the levels, whose mean squared difference is in units
    of variances. `train` has actual values like those of the frame. Notes say which measures and
    series are left out for lack of a scale.
    """
    season = None if season_length is None else positive_integer("season_length", season_length)
    stored, stored_season = facts.get("scale"), facts.get("season_length")
    if train is not None:
        season = season or stored_season
        if season is None:
            raise ValueError("with train=, season_length= must be given; 1 where there is none")
        table = _scale_of_train(frame, train, int(season))
        if kind == "variance" and (train["y"] < 0).any():
            raise ValueError(
                "train must have actual values of variances, as frame has, such as squared "
                "returns; some of its column 'y' are negative"
            )
    elif stored is not None:
        if season is not None and stored_season is not None and season != stored_season:
            raise ValueError(
                f"season_length must be that of the backtest, {stored_season}, whose scales the "
                f"frame carries; got {season}. Give the rows before the first cutoff as train= for "
                "another"
            )
        table = pd.DataFrame(stored).set_index("unique_id")[["mae", "mse"]]
        if facts.get("kind") == "variance":
            table = table.assign(mae=table["mse"], mse=table["mse"] ** 2)
    else:
        return None, [NO_SCALE] if kind == "mean" else []
    values = np.array(table.reindex(forecasts.ids), dtype=float)
    bad = ~((values > 0) & np.isfinite(values)).all(axis=1)
    values[bad] = np.nan
    compared = np.unique(forecasts.series)
    lacking = compared[bad[compared]]
    if len(lacking) == len(compared):
        return None, [NONE_VARIES] if kind == "mean" else []
    notes = [_note_lacking(forecasts, lacking, kind, loss)] if len(lacking) else []
    return Scale(*values.T), notes


def _note_lacking(forecasts: Forecasts, lacking: np.ndarray, kind: str, loss: str) -> str:
    """Note on measures and tests that leave out series without a scale."""
    n, rest = forecasts.n_series, forecasts.n_series - len(lacking)
    tests = "encompassing" if loss == "qlike" else "the tests and the ranks"
    scaled = f"MASE, RMSSE and OWA, and of {tests}" if kind == "mean" else tests
    others = f" The other measures are of all {n} series, these of {rest}."
    return (
        f"{len(lacking)} series without a positive scale before the first cutoff left out of "
        f"{scaled}, whose errors are scaled: {list_names(forecasts.ids[lacking])}."
        f"{others if kind == 'mean' else ''}"
    )


def _scale_of_train(frame: pd.DataFrame, train: Any, season: int) -> pd.DataFrame:
    """Scales of the rows up to the first cutoff of each series."""
    from utilsforecast.losses import mae, mse

    rows = rows_before(frame, train)
    naive = rows.groupby("unique_id", sort=False)["y"].shift(season)
    rows = rows.assign(naive=naive).dropna()
    measures = {"mae": mae, "mse": mse}
    return pd.DataFrame({k: f(rows, ["naive"]).set_index("unique_id")["naive"]
                         for k, f in measures.items()})  # fmt: skip


def rows_before(frame: pd.DataFrame, train: Any) -> pd.DataFrame:
    """Rows of `train` up to the first cutoff of each series, in the order of time.

    TypeError or ValueError if `train` is not as `compare` takes it.
    """
    _check_train(train)
    first = frame.groupby("unique_id", sort=False)["cutoff"].min()
    rows = train[["unique_id", "ds", "y"]].sort_values(["unique_id", "ds"], kind="stable")
    try:
        early = rows["ds"] <= rows["unique_id"].map(first)
    except TypeError as error:
        raise TypeError(
            "train must have times in column 'ds' that compare with those of the frame, of its "
            f"time zone: {rows['ds'].dtype} with {first.dtype}. Convert one of them"
        ) from error
    return rows[early.to_numpy(dtype=bool)]


def _check_train(train: Any) -> None:
    if not isinstance(train, pd.DataFrame):
        raise TypeError(
            "train must be a long pandas DataFrame with columns unique_id, ds, y; got "
            f"{type(train).__name__}"
        )
    missing = [name for name in ("unique_id", "ds", "y") if name not in train.columns]
    if missing:
        raise ValueError(
            f"train must have the columns unique_id, ds, y; it lacks {missing} and has "
            f"{quote(list(train.columns))}"
        )
    if not train.columns.is_unique:
        raise ValueError(f"train must have each column once; it has {quote(list(train.columns))}")
    if not is_any_real_numeric_dtype(train["y"]):
        raise TypeError(f"column 'y' of train must be numbers; its dtype is {train['y'].dtype}")
    if train.duplicated(["unique_id", "ds"]).any():
        raise ValueError("train must have each unique_id and ds once; some rows are repeated")
