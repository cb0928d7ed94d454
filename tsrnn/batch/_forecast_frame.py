"""Forecasts of the series of a frame or partition; failures do not stop other series."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import torch
from threadpoolctl import threadpool_limits

from tsrnn.batch._folder import Counts, Folder
from tsrnn.batch._request import Request, check_zone, make_request
from tsrnn.batch._rows import FrameRows
from tsrnn.batch._source import Partition
from tsrnn.contract import last_step, level_name, recorded
from tsrnn.data import MissingValuesWarning, load_polars, split_by_series, to_polars

__all__ = ["Answer", "forecast_frame", "one_thread", "work"]


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
        Fitted, and used unchanged; or unfitted with parameters for each series, and fitted to
        these series.
    h : int, optional
        Steps to forecast; the model's horizon by default.
    level : float or list of float, optional
        Coverage of prediction intervals in percent.
    X_future : frame, optional
        Columns known ahead, of at least these series.

    Returns
    -------
    Answer
        ``forecasts``, a frame, and ``problems``: an error for each series without a forecast, a
        warning for each series that has not converged, and warnings of inserted or interpolated
        rows.

    Raises
    ------
    TypeError, ValueError
        If an argument cannot be used, or the frame is not long.

    Notes
    -----
    The series are forecast jointly. If that fails, they are halved repeatedly until the failing
    series are alone.

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


class Problem(NamedTuple):
    """Warning or failure ("error": there is no forecast) recorded for one series.

    The id is None if it concerns the whole frame, or series of it together.
    """

    unique_id: Any
    kind: str
    message: str


def answer_frame(rows: FrameRows, request: Request, future: FrameRows | None) -> Answer:
    """Forecast a frame, with arguments checked."""

    def attempt(ids: list[Any]) -> tuple[list[Any], list[Problem]]:
        ahead = [] if future is None else [name for name in ids if name in future]
        known = future.part(ahead)() if future is not None and ahead else None
        with recorded(MissingValuesWarning) as texts:
            forecasts, model = request.ask(rows.part(ids)(), known)
        frames, problems = _checked(forecasts, model, request.id_col, ids)
        # Warnings count rows over all series of the call, so that only one series can be named.
        name = ids[0] if len(ids) == 1 else None
        return frames, [*problems, *(Problem(name, "warning", text) for text in texts)]

    with recorded():  # warnings on series are among the problems
        answers, faults = split_by_series(rows.ids, attempt)
    parts = [nw.from_native(part) for frames, _ in answers for part in frames]
    problems = [problem for _, recorded_problems in answers for problem in recorded_problems]
    problems += [
        Problem(name, "error", " ".join(f"{type(error).__name__}: {error}".split()))
        for name, error in faults.items()
    ]
    place = {name: i for i, name in enumerate(rows.ids)}
    problems.sort(key=lambda problem: place.get(problem.unique_id, len(place)))
    return Answer(nw.concat(parts).to_native() if parts else None, problems)


def _checked(
    forecasts: Any, model: Any, id_col: str, ids: list[Any]
) -> tuple[list[Any], list[Problem]]:
    """Return the forecasts without the series that have none, and the problems of series."""
    frame = nw.from_native(forecasts, eager_only=True)
    numbers = [name for name, dtype in frame.schema.items() if name != id_col and dtype.is_float()]
    finite = np.isfinite(frame.select(numbers).to_numpy()).all(axis=1)
    names = np.asarray(frame[id_col].to_list(), dtype=object)
    messages, loose = _messages(last_step(model))
    there = set(names)
    lost = dict.fromkeys(names[~finite], "the forecast is not finite")
    lost |= dict.fromkeys([name for name in ids if name not in there], "there is no forecast")
    problems = [Problem(name, "error", messages.get(name) or why) for name, why in lost.items()]
    problems += [
        Problem(name, "warning", f"not converged: {messages.get(name) or 'see the model'}")
        for name in loose
        if name not in lost
    ]
    kept = [name not in lost for name in names]
    return ([frame.filter(kept).to_native()] if any(kept) else []), problems


def _messages(model: Any) -> tuple[dict[Any, str], list[Any]]:
    """Return a model's messages by series, and the series whose estimation has not converged."""
    messages = getattr(model, "messages_", None)
    if messages is None:
        return {}, []
    labels = messages.index.get_level_values(0).tolist()
    by_series: dict[Any, list[str]] = {}
    for label, texts in zip(labels, messages, strict=True):
        by_series.setdefault(label, []).extend(texts)
    converged = getattr(model, "converged_", np.ones(len(labels), bool))
    loose = dict.fromkeys(np.asarray(labels, dtype=object)[~np.asarray(converged, bool)].tolist())
    return {label: " ".join(texts) for label, texts in by_series.items() if texts}, list(loose)


def work(
    partition: Partition, request: Request, future: Any, folder: Folder, caller: int
) -> Counts:
    """Forecast a partition, with the steps ahead that `future` returns, and keep the results.

    Any process but the `caller`, a process id, works with one thread.
    """
    frame, pl = partition.read(), load_polars()
    check_zone(frame, partition.number, request)
    answer, n_series = Answer(None, []), 0
    with nullcontext() if os.getpid() == caller else one_thread():
        try:
            rows = FrameRows(frame, request.id_col, request.columns)
        except (TypeError, ValueError) as error:  # of a frame that cannot be read
            answer.problems.append(Problem(None, "error", f"{type(error).__name__}: {error}"))
        else:
            known = None
            if future is not None:
                known = FrameRows(future(), request.id_col, request.future_columns)
            answer, n_series = answer_frame(rows, request, known), len(rows.ids)
    front = [name for name in (request.id_col, request.time_col) if name in frame.columns]
    shape = to_polars(frame[front][:1])
    if answer.forecasts is None:
        forecasts = _empty(shape, request)
    else:
        forecasts = to_polars(answer.forecasts)
        check_zone(forecasts, partition.number, request)  # text may parse to times with a zone
    # One unit for all partitions: polars' default, the microsecond.
    times = [name for name, dtype in forecasts.schema.items() if isinstance(dtype, pl.Datetime)]
    if times:
        forecasts = forecasts.with_columns(pl.col(times).dt.cast_time_unit("us"))
    # ids have the type they have in the data
    id_dtype = shape.schema.get(request.id_col, pl.String)
    dtypes = {"unique_id": id_dtype, "kind": pl.String, "message": pl.String}
    problems = {
        name: pl.Series([getattr(problem, name) for problem in answer.problems], dtype=dtype)
        for name, dtype in dtypes.items()
    }
    failed = sum(
        problem.kind == "error" and problem.unique_id is not None for problem in answer.problems
    )
    counts = Counts(n_series, failed, int(n_series == 0), partition.digest)
    folder.write(partition.number, forecasts, pl.DataFrame(problems), counts)
    return counts


@contextmanager
def one_thread() -> Iterator[None]:
    """Use one thread for matrix products and kernels, as workers share the cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        torch.set_num_threads(before)


def _empty(shape: Any, request: Request) -> Any:
    """Return an empty frame with the columns of the forecasts."""
    pl = load_polars()
    front = {name: shape.schema.get(name, pl.String) for name in (request.id_col, request.time_col)}
    names = [str(name) for name in request.targets]
    if len(names) == 1:
        final = last_step(request.model)
        names = [str(getattr(final, "column_name", type(final).__name__))]
    ends = [f"-{end}-{level_name(level)}" for level in request.levels for end in ("lo", "hi")]
    numbers = {f"{name}{end}": pl.Float64 for name in names for end in ("", *ends)}
    return pl.DataFrame(schema=front | numbers)
