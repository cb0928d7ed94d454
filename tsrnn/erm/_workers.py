"""Independent tasks in this process or in several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from joblib import Parallel, delayed, parallel_config
from tqdm import tqdm

from tsrnn.contract import job_count

__all__ = ["in_workers"]


def in_workers(
    function: Callable[..., Any],
    tasks: Sequence[tuple],
    n_jobs: Any,
    progress: str | None = None,
) -> list[Any]:
    """Results for the arguments of each task, in order; in processes of one thread each.

    Parameters
    ----------
    function : callable
    tasks : sequence of tuple
    n_jobs : int or None
        Processes, -1 for all cores; None or 1 to work in this process.
    progress : str, optional
        Words before a progress bar; none by default.

    Raises
    ------
    TypeError, ValueError
        If `n_jobs` is no such number.
    """
    jobs = job_count(n_jobs) or 1
    shown: dict[str, Any] = {"total": len(tasks), "desc": progress, "disable": progress is None}
    if jobs == 1:
        return list(tqdm((function(*task) for task in tasks), leave=False, **shown))
    with parallel_config(backend="loky", inner_max_num_threads=1):
        workers = Parallel(n_jobs=jobs, return_as="generator")
        results = workers(delayed(function)(*task) for task in tasks)
        return list(tqdm(results, leave=False, **shown))
