"""Forecast a source partition by partition."""

from __future__ import annotations

import hashlib
import os
import pickle
import re
import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from importlib.metadata import version
from typing import Any

import joblib
from tqdm import tqdm

from tsrnn.batch._files import files_of, polars
from tsrnn.batch._folder import Counts, Folder
from tsrnn.batch._frequency import common_freq
from tsrnn.batch._request import Request, make_request, zone_of
from tsrnn.batch._run import BatchRun
from tsrnn.batch._source import Partition, Source, open_future, open_source
from tsrnn.batch._work import one_thread, work
from tsrnn.contract import Forecaster, flag, job_count, last_step, positive_integer, verbosity

__all__ = ["forecast_batches"]


def forecast_batches(
    source: Any,
    model: Any,
    h: int | None = None,
    level: Any = None,
    *,
    out: Any,
    X_future: Any = None,
    n_jobs: int | None = None,
    rows_per_batch: int = 2**20,
    overwrite: bool = False,
    sep: str = ",",
    decimal: str = ".",
    verbose: int = 0,
) -> BatchRun:
    """Forecast many series, partition by partition, into a folder of parquet files.

    A series that cannot be forecast is put down with the reason and does not stop the others. A
    run that was interrupted, by whatever, goes on where it was when it is called again.

    Parameters
    ----------
    source : DataFrame, iterator of DataFrame, or path
        Long data of pandas or polars: a frame; frames, each of whole series; or the path of a
        parquet or CSV file, of a folder of them, or a pattern such as ``"sales/*.parquet"``.
        Rows of a series may be in several files. Ids in CSV files are text as it stands, or
        whole numbers if those fitted to are.
    model : forecaster
        Fitted: it forecasts all series, as ``model.predict(series)`` does. Not fitted: a model
        with parameters for each series, such as `ARMA`, which is fitted to each.
    h : int, optional
        Steps to forecast; the model's horizon by default.
    level : float or list of float, optional
        Coverage of prediction intervals in percent.
    out : path
        Folder of the results, made if it is not there: ``forecasts/part-*.parquet``,
        ``errors/part-*.parquet``, and ``_SUCCESS`` when all are there.
    X_future : DataFrame or path, optional
        Columns known ahead, for the h steps after each series.
    n_jobs : int, optional
        Processes that work on partitions at the same time, with one thread each; -1 for one a
        core. By default this process, with all its threads, or what `joblib.parallel_config`
        says: with ``parallel_config("dask")`` the workers of a cluster, which must see `out` and
        the files under the same paths.
    rows_per_batch : int
        Rows of a partition, as far as series are not longer. It bounds the memory, which is that
        of one partition a process and of the ids of all series.
    overwrite : bool
        Whether to replace a run of something else that is in `out`. One of the same thing goes
        on, unless the source is an iterator.
    sep, decimal : str
        Separator of fields and decimal mark of CSV files, a character each.
    verbose : int
        1 shows a progress bar.

    Returns
    -------
    BatchRun
        Counts, and the results as frames.

    Raises
    ------
    ImportError
        If polars, which reads and writes the files, is not installed.
    FileNotFoundError
        If there are no such files.
    TypeError, ValueError
        If an argument cannot be used, columns are missing, or `out` holds something else: before
        a partition is begun. If an iterator gives no frames, or a series twice, or a partition has
        timestamps of another time zone than the first: where it does.

    Notes
    -----
    Partitions of files and frames are cut before the first is begun, so that they are the same
    in the run that goes on. Each leaves its errors, then its forecasts, each file in one step. A
    plan in the folder tells whether source, model and arguments are the same; where they are not,
    the run is refused. Of an iterator, the frames are read again and compared by checksum.

    All series have the frequency of the model, or, where it has none, the most common one of the
    first fifty. A partition reads the files that its series are in, which is quick where files
    hold series, and slow where each holds a day of all series. Only one run at a time may work on
    a folder.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np, pandas as pd
    >>> from tsrnn import ARMA
    >>> from tsrnn.batch import forecast_batches
    >>> y = np.random.default_rng(0).normal(size=(20, 60))
    >>> frame = pd.DataFrame({
    ...     "unique_id": np.repeat([f"s{i}" for i in range(20)], 60),
    ...     "ds": np.tile(pd.date_range("2024-01-01", periods=60), 20),
    ...     "y": y.ravel(),
    ... })
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = forecast_batches(frame, ARMA(order=(1, 0)), h=3, out=folder, rows_per_batch=300)
    ...     forecasts = run.forecasts()
    >>> run.n_partitions, run.n_failed, forecasts.shape
    (4, 0, (60, 3))
    """
    start = time.perf_counter()
    polars()  # said before any work, if it is missing
    verbosity(verbose)
    n_jobs, overwrite = job_count(n_jobs), flag("overwrite", overwrite)
    request = make_request(model, h, level, X_future, (sep, decimal))
    rows_per_batch = positive_integer("rows_per_batch", rows_per_batch)
    opened = open_source(source, request, rows_per_batch)
    future, opened = open_future(X_future, opened, request)
    request = replace(request, texts=opened.texts, future_texts=opened.future_texts)
    final = last_step(model)
    if not request.fitted and isinstance(final, Forecaster) and final.freq is None:
        request = request.with_freq(common_freq(opened.first(), request))
    request = replace(request, zone=zone_of(opened.first(), request.time_col))
    folder = Folder(out)
    paths = [given for given in (source, X_future) if isinstance(given, str | os.PathLike)]
    folder.check_apart(file for path in paths for file in files_of(path))
    folder.begin(_plan(request, opened, rows_per_batch), overwrite)
    counts = list(_results(opened, request, future, folder, n_jobs, verbose))
    folder.finish(len(counts))
    done = [one for one, _ in counts]
    return BatchRun(
        path=folder.path,
        n_series=sum(one.series for one in done),
        n_failed=sum(one.failed for one in done),
        n_unread=sum(one.unread for one in done),
        n_partitions=len(done),
        n_resumed=sum(before for _, before in counts),
        seconds=time.perf_counter() - start,
    )


def _results(
    opened: Source, request: Request, future: Any, folder: Folder, n_jobs: Any, verbose: int
) -> Iterator[tuple[Counts, bool]]:
    """Counts of each partition, and whether an earlier run has finished it."""
    parallel = joblib.Parallel(n_jobs=n_jobs, return_as="generator_unordered")
    several = joblib.effective_n_jobs(n_jobs) != 1
    n_series = None if opened.ids is None else len(opened.ids)
    bar = tqdm(total=n_series, desc="forecast", unit="series", disable=not verbose)
    finished: list[Counts] = []
    failure: list[BaseException] = []

    def tasks() -> Iterator[Any]:
        for partition in opened.partitions:
            known = _known(partition, folder)
            if known is None:
                ahead = _ahead(future, partition)
                yield joblib.delayed(work)(partition, request, ahead, folder, os.getpid())
            else:
                finished.append(known)
                bar.update(known.series)

    with bar, one_thread() if several else nullcontext():
        for counts in parallel(_guarded(tasks(), failure)):
            bar.update(counts.series)
            yield counts, False
        if failure:
            raise failure[0]
        yield from ((counts, True) for counts in finished)


def _guarded(tasks: Iterator[Any], failure: list[BaseException]) -> Iterator[Any]:
    """Tasks up to an error, which is kept: joblib draws them in a thread that would lose it."""
    try:
        yield from tasks
    except Exception as error:
        failure.append(error)


def _known(partition: Partition, folder: Folder) -> Counts | None:
    counts = folder.counts(partition.number)
    if counts is not None and counts.digest != partition.digest:
        raise ValueError(
            f"partition {partition.number} in {str(folder.path)!r} is of other rows than the "
            "iterator gives now. Name another folder, or replace the run by overwrite=True"
        )
    return counts


def _ahead(future: Any, partition: Partition) -> Any:
    """A function that gives the rows of the steps ahead of a partition; None if there are none."""
    names = [] if future is None else [name for name in partition.ids or [] if name in future]
    return future.part(names) if names else None


def _plan(request: Request, opened: Source, rows_per_batch: int) -> dict[str, Any]:
    """What a run is of, as JSON values."""
    return {
        "version": version("tsrnn"),
        "source": opened.told,
        "model": _digest(request),
        "h": request.h,
        "level": request.levels,
        "rows_per_batch": rows_per_batch,
        "n_partitions": opened.n_partitions,
    }


def _digest(request: Request) -> str:
    """Checksum of the model: of what its file would hold, or of its class and arguments."""
    model = request.model
    if request.fitted:
        return joblib.hash(list(model._parts()) if isinstance(model, Forecaster) else model)
    try:
        return joblib.hash((type(model), model.get_params(deep=False)))
    except (pickle.PicklingError, AttributeError, TypeError):  # a function without a name
        arguments = sorted(model.get_params(deep=True).items())
        shown = re.sub(r" at 0x[0-9a-fA-F]+", "", repr((type(model), arguments)))
        return hashlib.sha256(shown.encode()).hexdigest()
