"""Resampling: rows of samples, clones, random states and processes."""

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
    """Return the number of samples in an array, a frame or a list of sequences."""
    shape = getattr(samples, "shape", None)
    return len(samples) if shape is None else int(shape[0])


def take(samples: Any, rows: Any) -> Any:
    """Select samples by position, as an array, a frame or a list like the input."""
    rows = np.asarray(rows)
    if hasattr(samples, "iloc"):
        return samples.iloc[rows]
    if hasattr(samples, "shape"):
        return samples[rows]
    return [samples[row] for row in rows]


def unfitted(estimator: Any) -> Any:
    """Return an unfitted clone, with the arguments of the fit if the estimator records them."""
    arguments = getattr(estimator, "arguments_", None)
    if isinstance(arguments, Arguments):
        estimator = type(estimator)(**arguments.as_dict())
    return clone(estimator)


def seed_names(estimator: Any) -> list[str]:
    """Return the names of all parameters `random_state` of an estimator and its parts."""
    names = estimator.get_params(deep=True)
    return sorted(name for name in names if name.rpartition("__")[2] == "random_state")


class Refit(NamedTuple):
    """Clone of `estimator` to be fitted; its `name`, such as "fold 2 of 5", stands in errors.

    `samples` returns X, z and the sample weights or None. `result` maps the fitted estimator to
    the result of the refit, so that fits leave memory when the result is a few numbers.
    """

    name: str
    estimator: Any
    samples: Callable[[], tuple[Any, Any, Any]]
    result: Callable[[Any], Any]


def results_of(refits: Sequence[Refit], n_jobs: Any) -> list[Any]:
    """Return the results of refits, in order, from processes of one thread each.

    Each process trains the networks of one class in one pass if it can.
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
    """Return the result of a single refit."""
    X, z, weights = refit.samples()
    weighted = {} if weights is None else {"sample_weight": weights}
    with named(refit.name):
        return refit.result(clone(refit.estimator).fit(X, z, **weighted))


def _results(refits: Sequence[Refit]) -> list[Any]:
    """Return the results of refits, with networks trained in one pass."""
    names, given, samples, results = zip(*refits, strict=True)
    estimators = [clone(estimator) for estimator in given]
    type(estimators[0])._fit_together(estimators, samples, names)
    return [result(fitted) for result, fitted in zip(results, estimators, strict=True)]


@contextmanager
def named(fit: str) -> Iterator[None]:
    """Add the name of a fit to its errors."""
    try:
        yield
    except Exception as error:
        error.add_note(f"raised by {fit}")
        raise


def in_workers(
    function: Callable[..., Any], tasks: Sequence[tuple], n_jobs: Any, progress: str | None = None
) -> list[Any]:
    """Return `function(*task)` for each task, in order, from processes of one thread each.

    If `n_jobs` is None or 1, this process is used. `progress` is the text of a progress bar.
    """
    jobs = job_count(n_jobs) or 1
    shown: dict[str, Any] = {"total": len(tasks), "desc": progress, "disable": progress is None}
    if jobs == 1:
        return list(tqdm((function(*task) for task in tasks), leave=False, **shown))
    with parallel_config(backend="loky", inner_max_num_threads=1):
        workers = Parallel(n_jobs=jobs, return_as="generator")
        results = workers(delayed(function)(*task) for task in tasks)
        return list(tqdm(results, leave=False, **shown))
