"""Refits of an estimator: to resampled blocks of samples, or from other random starts."""

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
    """Estimator fitted to all data and refits of it, for bands around its functionals.

    Attributes
    ----------
    estimator : estimator
        Fitted to all samples; curves are of it.
    members : tuple of estimators
        The refits; bands are of them.
    method : str
        "block bootstrap" or "deep ensemble".
    guarantee : str
        Meaning of bands of the members, and its limits; in short up to the first semicolon.

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

    Each refit takes :math:`\lceil N / b \rceil` circular blocks of b samples, with starts
    :math:`s_1, s_2, \dots` drawn at random from 0, ..., N - 1,

    .. math::

        (s_i, s_i + 1, \dots, s_i + b - 1) \bmod N,

    and of them together the first N. With b = 1 it is the ordinary bootstrap of independent
    samples. Samples that depend on each other, such as overlapping windows of one series, must
    stand in the order of time and b must exceed the range of the dependence: windows of T steps
    that start one step apart share values over T samples.

    Parameters
    ----------
    estimator : estimator
        With scikit-learn's `fit`, `predict` and `get_params`. It is not changed. If it is fitted
        already it is taken to be so to X and z; otherwise a clone is fitted.
    X : array of shape (N, T, d_in) or (N, T), DataFrame, or list of N arrays (T_i, d_in)
        Samples of sequences.
    z : array of shape (N,) or (N, n_outputs)
        Responses.
    n_estimators : int, default 50
        Refits, at least 2. A band of 90 percent needs 19 at least, one of 95 percent 39.
    block_length : int, default 1
        b, from 1 to N // 2.
    random_state : int, numpy random generator or None
        Of blocks and, where the estimator or a part of it has a parameter `random_state`, of
        each refit; also of the fit to all samples if that parameter is None.
    n_jobs : int, optional
        Processes, as in scikit-learn; -1 for all cores. Each has one thread. Refits that are
        trained side by side are so within each.

    Returns
    -------
    Refits

    Raises
    ------
    ValueError
        If there are too few samples, as many responses as samples are not given, or an argument
        is out of range.
    TypeError
        If a count is not a whole number.

    Notes
    -----
    Percentiles of the members are pointwise bands for the sampling variability of the fitted
    curve, valid in the limit of many samples if the estimator is smooth enough in the data. The
    bias of regularisation and of approximation is not in them. Members that differ in their
    random state also carry the variability of training. A class that is not in a resample has
    probability 0 from that member.

    A resample holds some samples more than once. Where `fit` takes `sample_weight` they are given
    once, in their order, with their number as weight, so that none can be in the training and in
    the validation part of an estimator that stops early. Others are given the copies.

    Refits of a `ParaRNNRegressor` or `ParaRNNClassifier` are trained side by side in one pass, as
    many as are small enough together, with the numbers of fits one by one to rounding. Those with
    callbacks, dropout, a cell of your own or a device other than the CPU are fitted one by one, as
    are other estimators. A note of an error names the refit that raised it.

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

    They differ in the start and the order of training. The spread of the members shows how far
    the fit depends on them; it is no statement on the sampling error and covers nothing with a
    known probability.

    Members are trained side by side as in `block_bootstrap`. scikit-learn's ``GridSearchCV`` over
    values of `random_state` fits one clone after the other.

    Parameters
    ----------
    estimator, X, z, n_jobs
        As in `block_bootstrap`; the estimator has a parameter `random_state` of its own or of a
        part.
    n_estimators : int, default 10
        Refits, at least 2.
    random_state : int, numpy random generator or None
        Source of the random states of the refits; also of that of the fit to all samples if the
        estimator's own is None.

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
    """Number of samples, and that of refits."""
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
    """Estimator with members fitted to rows of the samples; the first seed is of the estimator."""
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
    """Rows of the samples: if `weighted` repeated ones once, with their number as weight."""
    if not weighted:
        return take(X, rows), take(z, rows), None
    # No sample can then be in the training and in the validation part of the estimator.
    distinct, counts = np.unique(rows, return_counts=True)
    weights = None if (counts == 1).all() else counts.astype(float)
    return take(X, distinct), take(z, distinct), weights


def _itself(estimator: Any) -> Any:
    return estimator


def _seeded(estimator: Any, seed: np.random.SeedSequence, *, keep: bool = False) -> Any:
    """Clone with random states from a seed; those that are not None stay if `keep`."""
    fresh = unfitted(estimator)
    values = fresh.get_params(deep=True)
    names = [name for name in seed_names(fresh) if not (keep and values[name] is not None)]
    # Half of the range, as scikit-learn takes seeds below 2^31 everywhere.
    states = seed.generate_state(len(names), np.uint32) >> 1
    fresh.set_params(**{name: int(state) for name, state in zip(names, states, strict=True)})
    return fresh
