"""Forecasts of the series of one frame: those that cannot be forecast do not stop the others."""

from __future__ import annotations

from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

from tsrnn.batch._request import Request, make_request
from tsrnn.batch._rows import FrameRows
from tsrnn.contract import last_step, recorded
from tsrnn.data import tell_apart

__all__ = ["Answer", "Problem", "answer_frame", "forecast_frame"]


class Problem(NamedTuple):
    """What is to be said of a series.

    Parameters
    ----------
    unique_id : str, int or None
        None if it is said of the whole frame.
    kind : {"error", "warning"}
        Whether there is no forecast, or one to be looked at.
    message : str
    """

    unique_id: Any
    kind: str
    message: str


class Answer(NamedTuple):
    """Forecasts of a frame and what went wrong.

    Parameters
    ----------
    forecasts : DataFrame or None
        In the library of the data; None if no series could be forecast.
    problems : list of Problem

    Examples
    --------
    See `forecast_frame`.

    >>> from tsrnn.batch import Answer
    >>> Answer._fields
    ('forecasts', 'problems')
    """

    forecasts: Any
    problems: list[Problem]


def forecast_frame(
    frame: Any, model: Any, h: int | None = None, level: Any = None, *, X_future: Any = None
) -> Answer:
    """Forecast the series of a long frame; one that fails does not stop the others.

    Without side effects and with arguments that can be pickled, so that engines such as Ray and
    Spark can run it on groups of series.

    Parameters
    ----------
    frame : pandas.DataFrame or polars.DataFrame
        Long, with an id column.
    model : forecaster
        Fitted, and then used as it is; or one with parameters for each series, which is fitted
        to these series.
    h : int, optional
        Steps to forecast; the model's horizon by default.
    level : float or list of float, optional
        Coverage of prediction intervals in percent.
    X_future : frame, optional
        Columns known ahead, of at least these series.

    Returns
    -------
    Answer
        ``forecasts``, a frame, and ``problems``: for each series that has no forecast an error,
        and a warning for each whose estimation has not converged.

    Raises
    ------
    TypeError, ValueError
        If an argument cannot be used, or the frame is not long.

    Notes
    -----
    The series are forecast together. Where that fails, halves of them are, and so on, until the
    series at fault are alone.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from tsrnn import ARMA
    >>> from tsrnn.batch import forecast_frame
    >>> y = np.random.default_rng(0).normal(size=(3, 50))
    >>> y[1, 7] = np.nan
    >>> days = pd.date_range("2024-01-01", periods=50)
    >>> frame = pd.DataFrame(
    ...     {"unique_id": np.repeat(["a", "b", "c"], 50), "ds": np.tile(days, 3), "y": y.ravel()}
    ... )
    >>> answer = forecast_frame(frame, ARMA(order=(1, 0), missing="error"), h=5)
    >>> answer.forecasts["unique_id"].unique().tolist()
    ['a', 'c']
    >>> [(problem.unique_id, problem.kind) for problem in answer.problems]
    [('b', 'error')]
    """
    request = make_request(model, h, level, X_future)
    rows = FrameRows(frame, request.id_col, request.columns)
    future = None
    if X_future is not None:
        future = FrameRows(X_future, request.id_col, request.future_columns)
    return answer_frame(rows, request, future)


def answer_frame(rows: FrameRows, request: Request, future: FrameRows | None) -> Answer:
    """As `forecast_frame`, with arguments checked."""
    with recorded():  # what they say of series is said in the problems
        parts, problems = _answers(rows, request, future)
    whole = nw.concat([nw.from_native(part) for part in parts]).to_native() if parts else None
    return Answer(whole, problems)


def _answers(
    rows: FrameRows, request: Request, future: FrameRows | None
) -> tuple[list[Any], list[Problem]]:
    def attempt(ids: list[Any]) -> tuple[list[Any], list[Problem]]:
        ahead = [] if future is None else [one for one in ids if one in future]
        known = future.part(ahead)() if future is not None and ahead else None
        made, model = request.ask(rows.part(ids)(), known)
        return _checked(made, model, request.id_col, ids)

    answers, faults = tell_apart(rows.ids, attempt)
    parts = [part for own, _ in answers for part in own]
    problems = [problem for _, own in answers for problem in own]
    problems += [
        Problem(one, "error", " ".join(f"{type(error).__name__}: {error}".split()))
        for one, error in faults.items()
    ]
    place = {one: i for i, one in enumerate(rows.ids)}
    return parts, sorted(problems, key=lambda problem: place.get(problem.unique_id, len(place)))


def _checked(made: Any, model: Any, id_col: str, ids: list[Any]) -> tuple[list[Any], list[Problem]]:
    """Forecasts without the series that have none, and what is said of series."""
    frame = nw.from_native(made, eager_only=True)
    numbers = [name for name, dtype in frame.schema.items() if name != id_col and dtype.is_float()]
    finite = np.isfinite(frame.select(numbers).to_numpy()).all(axis=1)
    names = np.asarray(frame[id_col].to_list(), dtype=object)
    told, loose = _messages(last_step(model))
    found = set(names)
    lost = dict.fromkeys(names[~finite], "the forecast is not finite")
    lost |= dict.fromkeys([one for one in ids if one not in found], "there is no forecast")
    problems = [Problem(one, "error", told.get(one) or why) for one, why in lost.items()]
    problems += [
        Problem(one, "warning", f"not converged: {told.get(one) or 'see the model'}")
        for one in loose
        if one not in lost
    ]
    kept = np.array([one not in lost for one in names], bool)
    parts = [frame.filter(kept.tolist()).to_native()] if kept.any() else []
    return parts, problems


def _messages(model: Any) -> tuple[dict[Any, str], list[Any]]:
    """What a model says of each series, and the series whose estimation has not converged."""
    messages = getattr(model, "messages_", None)
    if messages is None:
        return {}, []
    labels = messages.index.get_level_values(0).tolist()
    told: dict[Any, str] = {}
    for label, texts in zip(labels, messages, strict=True):
        if texts:
            told[label] = " ".join([*([told[label]] if label in told else []), *texts])
    unmet = ~np.asarray(model.converged_, bool)
    return told, list(dict.fromkeys(np.asarray(labels, dtype=object)[unmet].tolist()))
