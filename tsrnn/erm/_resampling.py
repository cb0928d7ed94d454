"""Resampling: rows of samples, clones and their random states, processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed, parallel_config
from sklearn.base import clone
from tqdm import tqdm

from tsrnn.contract import Arguments, job_count

__all__ = ["Refit", "count", "in_workers", "named", "results_of", "seed_names", "take", "unfitted"]


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


class Refit(NamedTuple):
    """One of many fits.

    Attributes
    ----------
    name : str
        For errors, such as "fold 2 of 5".
    estimator : estimator
        Cloned to be fitted, so that fits whose results are numbers do not stay in memory.
    samples : callable
        Gives X, z and the sample weights, which may be None.
    result : callable
        Result of the refit from the fitted estimator.
    """

    name: str
    estimator: Any
    samples: Callable[[], tuple[Any, Any, Any]]
    result: Callable[[Any], Any]


def results_of(refits: Sequence[Refit], n_jobs: Any) -> list[Any]:
    """Results of refits, in order; in processes of one thread each.

    Estimators of one class whose networks can be trained in one pass are, in each process.
    """
    jobs = job_count(n_jobs) or 1
    classes = {type(refit.estimator) for refit in refits}
    rules = [getattr(r.estimator, "_can_be_fitted_together", None) for r in refits]
    if len(classes) > 1 or not all(rule is not None and rule() for rule in rules):
        return in_workers(_result, [(refit,) for refit in refits], jobs)
    size = -(-len(refits) // jobs)
    parts = [(refits[i : i + size],) for i in range(0, len(refits), size)]
    return [result for results in in_workers(_results, parts, jobs) for result in results]


def _result(refit: Refit) -> Any:
    """Result of a refit by itself."""
    X, z, weights = refit.samples()
    weighted = {} if weights is None else {"sample_weight": weights}
    with named(refit.name):
        return refit.result(clone(refit.estimator).fit(X, z, **weighted))


def _results(refits: Sequence[Refit]) -> list[Any]:
    """Results of refits whose networks are trained in one pass."""
    names, given, samples, results = zip(*refits, strict=True)
    estimators = [clone(estimator) for estimator in given]
    type(estimators[0])._fit_together(estimators, samples, names)
    return [result(fitted) for result, fitted in zip(results, estimators, strict=True)]


@contextmanager
def named(fit: str) -> Iterator[None]:
    """Add the name of a fit to the errors that it raises."""
    try:
        yield
    except Exception as error:
        error.add_note(f"raised by {fit}")
        raise


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
