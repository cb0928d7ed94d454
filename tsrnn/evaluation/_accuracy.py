"""Accuracy of forecasts against the values that came: measures without tests."""

from __future__ import annotations

from typing import Any

import pandas as pd

from tsrnn.contract import choice
from tsrnn.data import quote
from tsrnn.evaluation._forecasts import common_rows, lay_out
from tsrnn.evaluation._measures import measure
from tsrnn.evaluation._scale import read_scale

KEYS = ["unique_id", "ds"]


def accuracy(
    forecasts: pd.DataFrame,
    actual: pd.DataFrame,
    *,
    train: pd.DataFrame | None = None,
    season_length: int | None = None,
    by: str = "model",
    owa_benchmark: str = "Naive2",
) -> pd.DataFrame:
    """Measure forecasts from one origin of each series, of one model or several.

    The measures are those of `compare`, on the rows that all models forecast; forecasts from
    several origins are for `compare`, which tests the differences as well.

    Parameters
    ----------
    forecasts : DataFrame
        Long, as `predict` gives it: ``unique_id, ds``, a column of point forecasts for each
        model and of intervals ``name-lo-80, name-hi-80``. Frames of several models are merged
        on ``unique_id, ds``.
    actual : DataFrame
        Long, with ``unique_id, ds, y``; rows that were not forecast are not used.
    train : DataFrame, optional
        Rows ``unique_id, ds, y`` before the forecasts, for MASE, RMSSE, OWA and MSIS.
    season_length : int, optional
        Rows of a season, with `train`; 1 where there is none.
    by : {"model", "step", "series"}
        A row a model, or one for each step or series and model.
    owa_benchmark : str, default "Naive2"
        Model whose sMAPE and MASE are 1 in OWA.

    Returns
    -------
    DataFrame
        A column a measure, models in the order of RMSSE, of RMSE without `train`.
        ``attrs["notes"]`` says what was left out, and why.

    Raises
    ------
    TypeError, ValueError
        If a frame or an argument is not as described; the message says what to do.

    Notes
    -----
    Measures of a model are means over series of the measure of each. MASE is the mean absolute
    error over that of the seasonal naive forecast in `train`; ``MSIS-95`` is the interval
    (Winkler) score over the same, as in the M4 competition; sMAPE is in percent.

    Examples
    --------
    >>> from tsrnn.baselines import Drift, Naive
    >>> from tsrnn.datasets import load_nile
    >>> from tsrnn.evaluation import accuracy
    >>> flow = load_nile().rename_axis("ds").reset_index().assign(unique_id="Nile")
    >>> flow = flow.rename(columns={"volume": "y"})
    >>> train, test = flow[:-10], flow[-10:]
    >>> made = Naive().fit(train).predict(10).merge(Drift().fit(train).predict(10))
    >>> table = accuracy(made, test, train=train, season_length=1)
    >>> table["MASE"].round(2).tolist()
    [0.97, 0.94]
    """
    by = choice("by", by, ("model", "step", "series"))
    for name, frame in (("forecasts", forecasts), ("actual", actual)):
        _check_long(name, frame)
    if "y" not in actual.columns or "y" in forecasts.columns:
        raise ValueError(
            "actual values must stand in column 'y' of actual, and nowhere in forecasts, where "
            "columns are named after models; got the columns "
            f"{quote(list(actual.columns))} and {quote(list(forecasts.columns))}"
        )
    frame = forecasts.merge(actual[[*KEYS, "y"]], how="left", on=KEYS, validate="one_to_one")
    first = frame.groupby("unique_id", sort=False)["ds"].transform("min")
    # Times count by their order alone. The cutoff is the place before the first forecast.
    times = [frame["ds"], first]
    if train is not None:
        _check_long("train", train)
        begin = train["unique_id"].map(frame.groupby("unique_id", sort=False)["ds"].min())
        train = train[train["ds"] < begin]
        times.append(train["ds"])
    place = pd.Series(pd.concat(times, ignore_index=True).rank(method="dense"))
    n = len(frame)
    frame = frame.assign(ds=place[:n].to_numpy(), cutoff=place[n : 2 * n].to_numpy() - 0.5)
    if train is not None:
        train = train.assign(ds=place[2 * n :].to_numpy())
    laid, notes = common_rows(lay_out(frame), {})
    scale, unscaled = read_scale(frame, laid, {}, train, season_length, "mean", "squared")
    sort_by = "RMSE" if scale is None else "RMSSE"
    tables = measure(laid, scale, "mean", owa_benchmark, sort_by)
    table = {"model": tables.accuracy, "step": tables.by_step, "series": tables.by_series}[by]
    table.attrs["notes"] = notes + unscaled + tables.notes
    return table


def _check_long(name: str, frame: Any) -> None:
    if not isinstance(frame, pd.DataFrame) or not set(KEYS) <= set(frame.columns):
        columns = list(map(str, frame.columns)) if isinstance(frame, pd.DataFrame) else None
        raise TypeError(
            f"{name} must be a long pandas DataFrame with the columns unique_id and ds; got "
            f"{f'the columns {columns}' if columns else type(frame).__name__}. Rename them, or "
            "reset_index() and assign(unique_id=...) where there is one series"
        )
