"""Resampling: rows of samples, clones and their random states, processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from joblib import Parallel, delayed, parallel_config
from sklearn.base import clone
from tqdm import tqdm

from tsrnn.contract import Arguments, job_count

__all__ = ["count", "in_workers", "seed_names", "take", "unfitted"]


def count(samples: Any) -> int:
    """Number of samples in an array, a frame or a list of sequences."""
    shape = getattr(samples, "shape", None)
    return len(samples) if shape is None else int(shape[0])


def take(samples: Any, rows: Any) -> Any:
    """Samples at some positions: of an array an array, of a frame a frame, else a list."""
    rows = np.asarray(rows)
    if hasattr(samples, "iloc"):
        return samples.iloc[rows]
    if hasattr(samples, "shape"):
        return samples[rows]
    return [samples[row] for row in rows]


def unfitted(estimator: Any) -> Any:
    """Clone with the arguments of the fit, where the estimator has a record of them."""
    arguments = getattr(estimator, "arguments_", None)
    if isinstance(arguments, Arguments):
        estimator = type(estimator)(**arguments.as_dict())
    return clone(estimator)


def seed_names(estimator: Any) -> list[str]:
    """Names of the parameters `random_state` of an estimator and of its parts."""
    names = estimator.get_params(deep=True)
    return sorted(name for name in names if name.rpartition("__")[2] == "random_state")


def in_workers(
    function: Callable[..., Any],
    tasks: Sequence[tuple],
    n_jobs: Any,
    progress: str | None = None,
) -> list[Any]:
    """Results for the arguments of each task, in order; in processes of one thread each.

    In this process if `n_jobs` is None or 1. `progress` are words before a progress bar.
    """
    jobs = job_count(n_jobs) or 1
    shown: dict[str, Any] = {"total": len(tasks), "desc": progress, "disable": progress is None}
    if jobs == 1:
        return list(tqdm((function(*task) for task in tasks), leave=False, **shown))
    with parallel_config(backend="loky", inner_max_num_threads=1):
        workers = Parallel(n_jobs=jobs, return_as="generator")
        results = workers(delayed(function)(*task) for task in tasks)
        return list(tqdm(results, leave=False, **shown))
