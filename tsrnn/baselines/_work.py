"""Work on many units: in processes, with a bar, with what a library warns of collected."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed, parallel_config
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from tsrnn.baselines._unit import SEASONLESS, Ahead, Fitted, Rows, UnitModel
from tsrnn.contract import recorded


def each(
    function: Callable[..., Any],
    tasks: Sequence[tuple],
    n_jobs: int | None,
    verbose: int,
    name: str,
) -> list[Any]:
    """Results of a function for arguments of each task, in order.

    In other processes unless `n_jobs` is 1 or None. Matrix products have one thread, here as
    there: small ones are faster so, and an optimiser ends at the same numbers.
    """
    shown = {"total": len(tasks), "desc": name, "disable": not verbose, "leave": False}
    if n_jobs in (1, None) or len(tasks) < 2:
        with threadpool_limits(1):
            return list(tqdm((function(*task) for task in tasks), **shown))
    with parallel_config(backend="loky", inner_max_num_threads=1):
        parallel = Parallel(n_jobs=n_jobs, return_as="generator")
        results: Iterable[Any] = parallel(delayed(function)(*task) for task in tasks)
        return list(tqdm(results, **shown))


def estimated(model: UnitModel, rows: Rows) -> Fitted:
    """Estimates of a unit, or the reason why there are none."""
    left_out, plain = model.season_left_out(rows), model.seasonless()
    if left_out and plain is not None:
        fitted = estimated(plain, rows)
        spec = fitted.spec | {SEASONLESS: True}
        return replace(fitted, spec=spec, messages=(left_out, *fitted.messages))
    reason = (plain or model).refusal(rows)
    if reason:
        return Fitted(reason=reason, n_rows=len(rows.y), converged=False)
    texts: list[str] = []
    try:
        with recorded() as texts:
            fitted = model.estimate(rows)
        if not np.isfinite(fitted.params).all():
            reason = "gives parameters that are not finite"
    except Exception as error:  # of whatever kind the library raises
        reason = f"cannot be fitted: {type(error).__name__}: {error}"
    if reason:
        return Fitted(reason=reason, n_rows=len(rows.y), converged=False, messages=(*texts, reason))
    return replace(fitted, n_rows=len(rows.y), messages=(*texts, *fitted.messages))


def attempt(
    question: str,
    model: UnitModel,
    fitted: Fitted,
    rows: Rows,
    future: np.ndarray | None,
    *arguments: Any,
) -> tuple[Any, list[str], str]:
    """Ask a model about a unit, by the name of its method.

    Returns
    -------
    answer : object
        None if there is none.
    texts : list of str
        What the library warned of.
    reason : str
        Why there is no answer; empty if there is.
    """
    texts: list[str] = []
    try:
        with recorded() as texts:
            answer = getattr(model.of(fitted), question)(fitted, rows, future, *arguments)
    except Exception as error:  # of whatever kind the library raises
        return None, texts, f"{type(error).__name__}: {error}"
    if not is_finite(answer):
        return None, texts, "numbers that are not finite"
    return answer, texts, ""


def is_finite(answer: Ahead | np.ndarray) -> bool:
    """Whether all numbers of an answer are finite."""
    if isinstance(answer, np.ndarray):
        return bool(np.isfinite(answer).all())
    parts = [answer.mean, *(end for ends in answer.ends.values() for end in ends)]
    return all(bool(np.isfinite(part).all()) for part in parts)
