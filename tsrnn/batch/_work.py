"""The work on one partition: a function of its arguments that leaves two files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from threadpoolctl import threadpool_limits

from tsrnn.batch._files import polars
from tsrnn.batch._folder import Counts, Folder, problem_frame
from tsrnn.batch._forecast_frame import Answer, Problem, answer_frame
from tsrnn.batch._request import Request, check_zone
from tsrnn.batch._rows import FrameRows
from tsrnn.batch._source import Partition
from tsrnn.contract import last_step, level_name
from tsrnn.data import to_polars

__all__ = ["one_thread", "work"]


def work(
    partition: Partition, request: Request, future: Any, folder: Folder, caller: int
) -> Counts:
    """Forecast a partition and keep the results.

    Parameters
    ----------
    partition : Partition
    request : Request
    future : callable or None
        Gives the rows of the steps ahead.
    folder : Folder
    caller : int
        Number of the process that asks; another one works with one thread.

    Returns
    -------
    Counts
    """
    frame = partition.read()
    check_zone(frame, partition.number, request)
    with nullcontext() if os.getpid() == caller else one_thread():
        answer, n_series = _answer(frame, request, future)
    front = [name for name in (request.id_col, request.time_col) if name in frame.columns]
    shape = to_polars(frame[front][:1])
    forecasts = _empty(shape, request) if answer.forecasts is None else to_polars(answer.forecasts)
    if answer.forecasts is not None:  # of text, say, that was read as times of a zone
        check_zone(forecasts, partition.number, request)
    known = request.id_col in shape.columns
    id_dtype = shape.schema[request.id_col] if known else polars().String
    failed = sum(one.kind == "error" and one.unique_id is not None for one in answer.problems)
    counts = Counts(n_series, failed, int(n_series == 0), partition.digest)
    folder.write(
        partition.number,
        _in_microseconds(forecasts),
        problem_frame(answer.problems, id_dtype),
        counts,
    )
    return counts


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread for matrix products and kernels, as workers share the cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        torch.set_num_threads(before)


def _answer(frame: Any, request: Request, future: Any) -> tuple[Answer, int]:
    """Forecasts of a frame with the number of its series; one that cannot be read has a problem."""
    try:
        rows = FrameRows(frame, request.id_col, request.columns)
    except (TypeError, ValueError) as error:
        return Answer(None, [Problem(None, "error", f"{type(error).__name__}: {error}")]), 0
    known = None
    if future is not None:
        known = FrameRows(future(), request.id_col, request.future_columns)
    return answer_frame(rows, request, known), len(rows.ids)


def _in_microseconds(forecasts: Any) -> Any:
    """Forecasts with timestamps of one unit, as frames of one run may differ in it."""
    pl = polars()
    times = [name for name, dtype in forecasts.schema.items() if isinstance(dtype, pl.Datetime)]
    return forecasts.with_columns(pl.col(times).dt.cast_time_unit("us")) if times else forecasts


def _empty(shape: Any, request: Request) -> Any:
    """No forecasts, in the columns that there would have been."""
    pl = polars()
    front = {name: shape.schema.get(name, pl.String) for name in (request.id_col, request.time_col)}
    names = [str(name) for name in request.targets]
    if len(names) == 1:
        final = last_step(request.model)
        names = [str(getattr(final, "column_name", type(final).__name__))]
    ends = [f"-{end}-{level_name(level)}" for level in request.levels for end in ("lo", "hi")]
    numbers = {f"{name}{end}": pl.Float64 for name in names for end in ("", *ends)}
    return pl.DataFrame(schema=front | numbers)
