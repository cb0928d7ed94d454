"""Forecasts of a source, partition by partition, and the finished run."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import pickle
import re
import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import joblib
from tqdm import tqdm

from tsrnn.batch._folder import Counts, Folder
from tsrnn.batch._forecast_frame import one_thread, work
from tsrnn.batch._request import Request, make_request, zone_of
from tsrnn.batch._source import (
    Partition,
    Source,
    common_freq,
    csv_marks,
    find_files,
    open_future,
    open_source,
)
from tsrnn.contract import (
    Forecaster,
    choice,
    flag,
    job_count,
    last_step,
    positive_integer,
    verbosity,
)
from tsrnn.data import load_polars, to_pandas

__all__ = ["BatchRun", "forecast_batches"]


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
    sep: str | None = None,
    decimal: str | None = None,
    verbose: int = 0,
) -> BatchRun:
    """Forecast many series, partition by partition, into a folder of parquet files.

    A series that cannot be forecast is recorded with the reason and does not stop the others. An
    interrupted run resumes when it is called again.

    Parameters
    ----------
    source : DataFrame, iterator of DataFrame, or path
        Long data of pandas or polars: a frame; frames, each of whole series; or the path of a
        parquet or CSV file, of a folder of them, or a pattern such as ``"sales/*.parquet"``.
        Rows of a series may be in several files. Ids in CSV files are text as written, or whole
        numbers if the ids fitted to are.
    model : forecaster
        Fitted: it forecasts all series, as ``model.predict(series)`` does. Not fitted: a model
        with parameters for each series, such as `ARMA` or a network with ``per_series=True`` and
        a `horizon`, which is fitted to each.
    h : int, optional
        Steps to forecast; the model's horizon by default.
    level : float or list of float, optional
        Coverage of prediction intervals in percent.
    out : path
        Folder of the results, created if absent: ``forecasts/part-*.parquet``,
        ``errors/part-*.parquet``, and ``_SUCCESS`` when all are there.
    X_future : DataFrame or path, optional
        Columns known ahead, for the h steps after each series.
    n_jobs : int, optional
        Processes that work on partitions at the same time, with one thread each; -1 for one a
        core. By default this process, with all its threads, or what `joblib.parallel_config`
        says: with ``parallel_config("dask")`` the workers of a cluster, which must see `out` and
        the files under the same paths.
    rows_per_batch : int
        Most rows of a partition, unless a series is longer. Memory holds one partition per process,
        and the ids of all series.
    overwrite : bool
        Whether to replace a run with another plan in `out`. A run with the same plan is resumed,
        unless the source is an iterator.
    sep, decimal : str, optional
        Separator of fields and decimal mark of CSV files, a character each. By default they are
        detected in the first file; ambiguous numbers are refused.
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
        Before the first partition: if an argument cannot be used, columns are missing, or `out`
        holds something else. Later: if an iterator gives no frames, or a series twice, or a
        partition has another time zone than the first.

    Notes
    -----
    Partitions of files and frames are fixed before the first begins, so that a resumed run has the
    same ones. Each writes its errors, then its forecasts, each file in one step. A plan in the
    folder records source, model and arguments; a run with another plan is refused. Frames of an
    iterator are read again and compared by checksum.

    All series take the frequency of the model or, without one, the most frequent one of the first
    fifty. A partition reads the files of its series, which is fast if files hold series, and slow
    if each file holds a day of all series. Only one run at a time may use a folder.

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
    load_polars()  # raises before any work if it is missing
    verbosity(verbose)
    n_jobs, overwrite = job_count(n_jobs), flag("overwrite", overwrite)
    _check_workers(n_jobs)
    marks = csv_marks([source, X_future], sep, decimal)
    request = make_request(model, h, level, X_future, marks)
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
    folder.check_apart(file for path in paths for file in find_files(path, request).paths)
    folder.begin(_plan(request, opened, rows_per_batch), overwrite)
    counts = list(_results(opened, request, future, folder, n_jobs, verbose))
    folder.finish(len(counts))
    done = [partition for partition, _ in counts]
    return BatchRun(
        path=folder.path,
        n_series=sum(partition.series for partition in done),
        n_failed=sum(partition.failed for partition in done),
        n_unread=sum(partition.unread for partition in done),
        n_partitions=len(done),
        n_resumed=sum(before for _, before in counts),
        seconds=time.perf_counter() - start,
    )


def _check_workers(n_jobs: Any) -> None:
    """Refuse forked workers, where polars deadlocks."""
    backend, _ = joblib.parallel.get_active_backend()
    # Exact type: Ray's backend derives from it but does not fork.
    forks = (
        type(backend) is joblib.parallel.MultiprocessingBackend
        and (os.environ.get("JOBLIB_START_METHOD") or multiprocessing.get_start_method()) == "fork"
    )
    if forks and joblib.effective_n_jobs(n_jobs) != 1:
        raise ValueError(
            "the workers must not be forked, as those of joblib's backend 'multiprocessing' are: "
            "polars, which reads and writes the files, does not work in a fork. Use the backend "
            "'loky', joblib's own"
        )


def _results(
    opened: Source, request: Request, future: Any, folder: Folder, n_jobs: Any, verbose: int
) -> Iterator[tuple[Counts, bool]]:
    """Yield the counts of each partition, and whether an earlier run had finished it."""
    try:
        parallel = joblib.Parallel(n_jobs=n_jobs, return_as="generator_unordered")
    except ValueError:  # backends like Ray's return all results at the end
        parallel = joblib.Parallel(n_jobs=n_jobs)
    several = joblib.effective_n_jobs(n_jobs) != 1
    n_series = None if opened.ids is None else len(opened.ids)
    bar = tqdm(total=n_series, desc="forecast", unit="series", disable=not verbose)
    finished: list[Counts] = []
    failure: list[BaseException] = []

    def tasks() -> Iterator[Any]:
        for partition in opened.partitions:
            known = _known(partition, folder)
            if known is None:
                # series without rows ahead are left out
                ids = [] if future is None else [i for i in partition.ids or [] if i in future]
                ahead = future.part(ids) if ids else None
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
    """Yield tasks until an error, which is stored: joblib's thread would lose it."""
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


def _plan(request: Request, opened: Source, rows_per_batch: int) -> dict[str, Any]:
    """Return source, model and arguments of a run as JSON values."""
    return {
        "version": version("tsrnn"),
        "source": opened.fingerprint,
        "model": _digest(request),
        "h": request.h,
        "level": request.levels,
        "rows_per_batch": rows_per_batch,
        "n_partitions": opened.n_partitions,
    }


def _digest(request: Request) -> str:
    """Return a checksum of the model: of its file, or of its class and arguments."""
    model = request.model
    if request.fitted:
        return joblib.hash(list(model._to_file()) if isinstance(model, Forecaster) else model)
    try:
        return joblib.hash((type(model), model.get_params(deep=False)))
    except (pickle.PicklingError, AttributeError, TypeError):  # a function without a name
        arguments = sorted(model.get_params(deep=True).items())
        shown = re.sub(r" at 0x[0-9a-fA-F]+", "", repr((type(model), arguments)))
        return hashlib.sha256(shown.encode()).hexdigest()


@dataclass(frozen=True)
class BatchRun:
    """A finished run of `forecast_batches`; print it.

    Parameters
    ----------
    path : Path
        Folder of the run.
    n_series, n_failed : int
        Number of series, and of series without forecasts.
    n_unread : int
        Number of frames of an iterator that could not be read.
    n_partitions, n_resumed : int
        Number of partitions, and of partitions finished by an interrupted run.
    seconds : float
        Duration of this run.

    Examples
    --------
    See `forecast_batches`, which makes it.

    >>> from pathlib import Path
    >>> from tsrnn.batch import BatchRun
    >>> print(BatchRun(Path("night"), 1000, 2, 0, 5, 1, 3.2))
    1000 series in 5 partitions, 1 of them from before: 998 forecast, 2 failed; 3.2 s
    """

    path: Path
    n_series: int
    n_failed: int
    n_unread: int
    n_partitions: int
    n_resumed: int
    seconds: float

    def forecasts(self, library: str = "pandas") -> Any:
        """Return all forecasts as one long frame.

        Parameters
        ----------
        library : {"pandas", "polars"}
        """
        return self._read("forecasts", library)

    def errors(self, library: str = "pandas") -> Any:
        """Return the problems: ``unique_id``, ``kind`` ("error" or "warning") and ``message``.

        Parameters
        ----------
        library : {"pandas", "polars"}
        """
        return self._read("errors", library)

    def _read(self, folder: str, library: str) -> Any:
        choice("library", library, ("pandas", "polars"))
        files = sorted(
            (self.path / folder).glob("part-*.parquet"),
            key=lambda file: int(file.stem.removeprefix("part-")),
        )
        parts = [load_polars().read_parquet(file, glob=False) for file in files]
        parts = [part for part in parts if len(part)] or parts[:1]
        zones = {
            getattr(dtype, "time_zone", None)
            for part in parts
            for dtype in part.schema.values()
            if dtype.is_temporal()
        }
        if len(zones) > 1:
            named = " and ".join(sorted(zone or "none" for zone in zones))
            raise ValueError(
                f"the partitions in {str(self.path)!r} must have timestamps of one time zone; "
                f"they have {named}. Run again with data of one zone and overwrite=True"
            )
        frame = load_polars().concat(parts, how="vertical_relaxed")
        return frame if library == "polars" else to_pandas(frame)

    def __str__(self) -> str:
        before = f", {self.n_resumed} of them from before" if self.n_resumed else ""
        done = f"{self.n_series - self.n_failed} forecast, {self.n_failed} failed"
        if self.n_unread:
            done += f", {self.n_unread} frames not read"
        plural = "" if self.n_partitions == 1 else "s"
        many = f"{self.n_series} series in {self.n_partitions} partition{plural}"
        return f"{many}{before}: {done}; {self.seconds:.1f} s"
