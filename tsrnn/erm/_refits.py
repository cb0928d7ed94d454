"""Refits of an estimator, to resampled blocks of samples or from other random states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from tsrnn.contract import positive_integer, seed_of
from tsrnn.erm._resampling import Refit, count, results_of, seed_names, take, unfitted

__all__ = ["Refits", "block_bootstrap", "deep_ensemble"]

_BOOTSTRAP = (
    "{n} block bootstrap refits (block length {block}): pointwise and asymptotic; their "
    "percentiles show the variability of the fitted curve that comes from sampling and training, "
    "need an estimator that is smooth enough in the data, do not contain the bias of "
    "regularisation and approximation, and are not simultaneous over the curve."
)
_ENSEMBLE = (
    "{n} refits from other random states: no coverage guarantee; the data are the same in all, so "
    "that they show the variability that comes from the start and the order of training and "
    "nothing of the sampling error."
)


@dataclass(frozen=True)
class Refits:
    """Estimator fitted to all data, and refits for bands around its functionals.

    Attributes
    ----------
    estimator : estimator
        Estimator fitted to all samples, for curves.
    members : tuple of estimators
        Refits, for bands.
    method : str
        "block bootstrap" or "deep ensemble".
    guarantee : str
        Meaning and limits of bands from the members; the part before the semicolon is a summary.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from tsrnn.erm import block_bootstrap
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> refits = block_bootstrap(LinearRegression(), X, X[:, -1], n_estimators=5, random_state=0)
    >>> refits.method, len(refits.members), refits.estimator.coef_.shape
    ('block bootstrap', 5, (3,))
    """

    estimator: Any
    members: tuple[Any, ...] = field(repr=False)
    method: str
    guarantee: str


def block_bootstrap(
    estimator: Any,
    X: Any,
    z: Any,
    *,
    n_estimators: int = 50,
    block_length: int = 1,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> Refits:
    r"""Refit an estimator to resampled blocks of consecutive samples.

    A resample joins :math:`\lceil N / b \rceil` circular blocks of b samples, with random starts
    :math:`s_1, s_2, \dots` in 0, ..., N - 1,

    .. math::

        (s_i, s_i + 1, \dots, s_i + b - 1) \bmod N,

    and keeps the first N samples. With b = 1 it is the ordinary bootstrap of independent samples.
    Dependent samples, such as overlapping windows of one series, must be in time order, and b must
    exceed the range of dependence: windows of T steps that start one step apart share values over T
    samples.

    Parameters
    ----------
    estimator : estimator
        Estimator with scikit-learn's `fit`, `predict` and `get_params`. If it is fitted, X and z
        must be its training samples; otherwise a clone is fitted.
    X : array of shape (N, T, d_in) or (N, T), DataFrame, or list of N arrays (T_i, d_in)
        Samples of sequences.
    z : array of shape (N,) or (N, n_outputs)
        Responses.
    n_estimators : int, default 50
        Number of refits, at least 2. A band of 90 percent needs at least 19, one of 95 percent 39.
    block_length : int, default 1
        Block length b, from 1 to N // 2.
    random_state : int, numpy random generator or None
        Source of the blocks and of every parameter `random_state` of the refits; also of the fit to
        all samples if that parameter is None.
    n_jobs : int, optional
        Number of processes of one thread each, as in scikit-learn; -1 for all cores. Joint training
        happens within each process.

    Returns
    -------
    Refits

    Raises
    ------
    ValueError
        If there are too few samples, X and z differ in length, or an argument is out of range.
    TypeError
        If a count is no integer.

    Notes
    -----
    Percentiles of the members are pointwise bands for the sampling variability of the fitted
    curve, valid asymptotically if the estimator is smooth enough in the data. They do not include
    the bias of regularisation and approximation. Members with different random states also vary by
    training. A member gives probability 0 to a class that its resample lacks.

    A resample repeats samples. If `fit` accepts `sample_weight`, distinct samples are passed once,
    in order, with their multiplicity as weight, so that none is in both the training and the
    validation part of an estimator with early stopping. Other estimators get the copies.

    Refits of a `ParaRNNRegressor` or `ParaRNNClassifier` are trained in one pass, as many as memory
    allows, and equal single fits up to rounding. Estimators with callbacks, dropout, a custom cell
    or another device than the CPU are fitted one by one, as are other classes. Errors have a note
    with the refit.

    References
    ----------
    Politis, D. N. and Romano, J. P. (1992). A circular block-resampling procedure for stationary
    data. In LePage, R. and Billard, L. (eds.), Exploring the Limits of Bootstrap, 263-270. Wiley.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from tsrnn.erm import block_bootstrap
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 3))
    >>> z = X @ [0.25, 0.5, 1.0] + 0.1 * rng.normal(size=200)
    >>> refits = block_bootstrap(LinearRegression(), X, z, n_estimators=19, random_state=0)
    >>> len(refits.members), refits.method
    (19, 'block bootstrap')
    """
    n_samples, n_estimators = _checked_counts(X, z, n_estimators)
    block = positive_integer("block_length", block_length)
    if block > n_samples // 2:
        raise ValueError(
            f"block_length must be between 1 and {n_samples // 2}, half of the {n_samples} "
            f"samples, so that a resample has at least two blocks; got {block}"
        )
    seeds = np.random.SeedSequence(seed_of(random_state)).spawn(n_estimators + 1)
    rows = []
    for seed in seeds[1:]:
        starts = np.random.default_rng(seed).integers(n_samples, size=-(-n_samples // block))
        blocks = starts[:, None] + np.arange(block)
        rows.append(blocks.ravel()[:n_samples] % n_samples)
    guarantee = _BOOTSTRAP.format(n=n_estimators, block=block)
    return _refitted(estimator, X, z, rows, seeds, n_jobs, "block bootstrap", guarantee)


def deep_ensemble(
    estimator: Any,
    X: Any,
    z: Any,
    *,
    n_estimators: int = 10,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> Refits:
    """Refit an estimator to the same samples from other random states.

    Members differ in the start and the order of training. Their spread shows how strongly the fit
    depends on both. It does not measure the sampling error and has no coverage guarantee.

    Members are trained together as in `block_bootstrap`. scikit-learn's ``GridSearchCV`` over
    values of `random_state` fits one clone after the other.

    Parameters
    ----------
    estimator, X, z, n_jobs
        As in `block_bootstrap`; the estimator or a part of it has a parameter `random_state`.
    n_estimators : int, default 10
        Number of refits, at least 2.
    random_state : int, numpy random generator or None
        Source of the random states of the refits; also of the fit to all samples if the estimator's
        own is None.

    Returns
    -------
    Refits

    Raises
    ------
    ValueError, TypeError
        If the estimator has no parameter `random_state`, or as in `block_bootstrap`.

    References
    ----------
    Lakshminarayanan, B., Pritzel, A. and Blundell, C. (2017). Simple and scalable predictive
    uncertainty estimation using deep ensembles. Advances in Neural Information Processing
    Systems 30.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import SGDRegressor
    >>> from tsrnn.erm import deep_ensemble
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 3))
    >>> refits = deep_ensemble(SGDRegressor(), X, X[:, -1], n_estimators=3, random_state=0)
    >>> len({member.random_state for member in refits.members})
    3
    """
    n_samples, n_estimators = _checked_counts(X, z, n_estimators)
    if not seed_names(estimator):
        raise ValueError(
            "deep_ensemble needs an estimator with a parameter random_state, by which its refits "
            f"differ; {type(estimator).__name__} has none. block_bootstrap takes any estimator."
        )
    seeds = np.random.SeedSequence(seed_of(random_state)).spawn(n_estimators + 1)
    rows = [np.arange(n_samples)] * n_estimators
    guarantee = _ENSEMBLE.format(n=n_estimators)
    return _refitted(estimator, X, z, rows, seeds, n_jobs, "deep ensemble", guarantee)


def _checked_counts(X: Any, z: Any, n_estimators: Any) -> tuple[int, int]:
    """Return the checked numbers of samples and of refits."""
    samples, responses = count(X), count(z)
    if samples != responses:
        raise ValueError(
            f"X and z must have as many samples; X has {samples} and z has {responses}."
        )
    if samples < 2:
        raise ValueError(f"refits need at least 2 samples; got {samples}.")
    members = positive_integer("n_estimators", n_estimators)
    if members < 2:
        raise ValueError("n_estimators must be at least 2, for a spread; got 1")
    return samples, members


def _refitted(
    estimator: Any,
    X: Any,
    z: Any,
    rows: Sequence[np.ndarray],
    seeds: Sequence[np.random.SeedSequence],
    n_jobs: Any,
    method: str,
    guarantee: str,
) -> Refits:
    """Return refits to rows of the samples; the first seed is for the fit to all samples."""
    whole = estimator
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        whole = _seeded(estimator, seeds[0], keep=True).fit(X, z)
    refits = [
        Refit(
            f"refit {i} of {len(rows)}",
            _seeded(estimator, seeds[i]),
            partial(_resample, X, z, of_refit, has_fit_parameter(estimator, "sample_weight")),
            _itself,
        )
        for i, of_refit in enumerate(rows, 1)
    ]
    return Refits(whole, tuple(results_of(refits, n_jobs)), method, guarantee)


def _resample(X: Any, z: Any, rows: np.ndarray, weighted: bool) -> tuple[Any, Any, Any]:
    """Return rows of the samples; if `weighted`, distinct ones with multiplicities as weights."""
    if not weighted:
        return take(X, rows), take(z, rows), None
    # Distinct samples cannot be in both the training and the validation part.
    distinct, counts = np.unique(rows, return_counts=True)
    weights = None if (counts == 1).all() else counts.astype(float)
    return take(X, distinct), take(z, distinct), weights


def _itself(estimator: Any) -> Any:
    return estimator


def _seeded(estimator: Any, seed: np.random.SeedSequence, *, keep: bool = False) -> Any:
    """Return a clone with random states from a seed; `keep` keeps those that are not None."""
    fresh = unfitted(estimator)
    values = fresh.get_params(deep=True)
    names = [name for name in seed_names(fresh) if not (keep and values[name] is not None)]
    # Half of the range, since all of scikit-learn accepts seeds below 2^31.
    states = seed.generate_state(len(names), np.uint32) >> 1
    fresh.set_params(**{name: int(state) for name, state in zip(names, states, strict=True)})
    return fresh
