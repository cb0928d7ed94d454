"""The work on one partition: a function of its arguments that leaves two files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from threadpoolctl import threadpool_limits

from tsrnn.batch._files import polars
from tsrnn.batch._folder import Counts, Folder, problem_frame
from tsrnn.batch._forecast_frame import Answer, Problem, answer_frame
from tsrnn.batch._request import Request
from tsrnn.batch._rows import FrameRows
from tsrnn.batch._source import Partition
from tsrnn.contract import last_step, level_name
from tsrnn.data import to_polars

__all__ = ["work"]


def work(
    partition: Partition, request: Request, future: Any, folder: Folder, alone: bool
) -> Counts:
    """Forecast a partition and keep the results.

    Parameters
    ----------
    partition : Partition
    request : Request
    future : callable or None
        Gives the rows of the steps ahead.
    folder : Folder
    alone : bool
        Whether no other partition is worked on, so that all threads may be used.

    Returns
    -------
    Counts
    """
    frame = partition.read()
    if alone:
        answer, n_series = _answer(frame, request, future)
    else:
        with _one_thread():
            answer, n_series = _answer(frame, request, future)
    shape = to_polars(frame[:1])
    forecasts = _empty(shape, request) if answer.forecasts is None else to_polars(answer.forecasts)
    known = request.id_col in shape.columns
    id_dtype = shape.schema[request.id_col] if known else polars().String
    failed = sum(problem.kind == "error" for problem in answer.problems)
    counts = Counts(n_series, failed, partition.digest)
    folder.write(partition.number, forecasts, problem_frame(answer.problems, id_dtype), counts)
    return counts


def _answer(frame: Any, request: Request, future: Any) -> tuple[Answer, int]:
    """Forecasts of a frame with the number of its series; a frame that is none has problems."""
    try:
        rows = FrameRows(frame, request.id_col, request.columns)
        known = None
        if future is not None:
            known = FrameRows(future(), request.id_col, request.future_columns)
    except (TypeError, ValueError) as error:
        return Answer(None, [Problem(None, "error", f"{type(error).__name__}: {error}")]), 0
    return answer_frame(rows.frame, request, known), len(rows.ids)


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


@contextmanager
def _one_thread() -> Iterator[None]:
    """One thread for matrix products and kernels, as workers share the cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        torch.set_num_threads(before)
