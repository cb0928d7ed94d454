"""Risk of an estimator by cross-validation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import check_cv
from sklearn.utils.validation import has_fit_parameter

from tsrnn.erm._losses import Loss, checked_loss, loss_name, own_loss, sample_losses
from tsrnn.erm._risk import Risk, checked_lags, checked_weights, risk_of
from tsrnn.erm._samples import count, take
from tsrnn.erm._workers import in_workers

__all__ = [
    "FoldRows",
    "checked_folds",
    "checked_held_out_lags",
    "cross_validated_risk",
    "pooled_risk",
]

FoldRows = tuple[np.ndarray, np.ndarray]  # positions of training and of held-out samples


def cross_validated_risk(
    estimator: Any,
    X: Any,
    z: Any,
    *,
    cv: Any = 5,
    loss: Loss | None = None,
    sample_weight: Any = None,
    lags: int = 0,
    n_jobs: int | None = None,
) -> Risk:
    r"""Mean loss of samples under clones of an estimator that were fitted without them.

    .. math:: \frac{1}{N} \sum_{i=1}^N \ell(\hat f^{(-k(i))}(X_i), z_i),

    with :math:`\hat f^{(-k)}` fitted to the training part of fold k and k(i) the fold that holds
    out sample i.

    It estimates the average risk of the estimator over training samples of the size of those
    parts, which is mostly a little more than that of N, and not the risk of the one that is
    fitted to these N (Bates, Hastie and Tibshirani, 2024).

    The standard error is the naive one: it takes the losses as independent, or correlated up to
    `lags`. But losses held out together share a fitted clone, and folds share training samples.
    No unbiased estimate of the variance exists (Bengio and Grandvalet, 2004), and intervals from
    this one are too short.

    Parameters
    ----------
    estimator : estimator
        Cloned; need not be fitted and is left as it is.
    X, z
        As in `empirical_risk`.
    cv : int, splitter or iterable of (train, test), default 5
        An integer gives contiguous folds in the order of the samples, or for one label a sample
        and the losses "log_loss" and "zero_one" stratified ones. Series in time order need
        `BlockedKFold` with a gap. No sample may be held out twice; those that never are, are left
        out of the risk.
    loss : str or callable, optional
        As in `empirical_risk`.
    sample_weight : array_like of shape (N,), optional
        Given to `fit`, and weights of the losses.
    lags : int, default 0
        As in `empirical_risk`; the held-out samples must then be neighbours.
    n_jobs : int, optional
        Processes, one thread each; -1 for all cores. In this process by default.

    Returns
    -------
    Risk
        With `folds`.

    Raises
    ------
    ValueError, TypeError
        As in `empirical_risk`; if a sample is held out twice or while trained on; if `fit` takes no
        sample weights and there are some.

    References
    ----------
    Bates, S., Hastie, T. and Tibshirani, R. (2024). Cross-validation: what does it estimate and
    how well does it do it? Journal of the American Statistical Association 119(546), 1434-1445.

    Bengio, Y. and Grandvalet, Y. (2004). No unbiased estimator of the variance of K-fold
    cross-validation. Journal of Machine Learning Research 5, 1089-1105.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from tsrnn.erm import cross_validated_risk
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 2))
    >>> z = X @ [1.0, -1.0] + rng.normal(size=100)
    >>> risk = cross_validated_risk(LinearRegression(), X, z)
    >>> round(risk.value, 3), round(risk.std_error, 3)
    (1.315, 0.217)
    >>> [fold.n_train for fold in risk.folds]
    [80, 80, 80, 80, 80]
    """
    loss = checked_loss(own_loss(estimator) if loss is None else loss)
    n = count(X)
    if count(z) != n:
        raise ValueError(f"X and z must have as many samples; got {n} and {count(z)}")
    weights = checked_weights(sample_weight, n)
    if weights is not None and not has_fit_parameter(estimator, "sample_weight"):
        raise TypeError(
            f"fit of {type(estimator).__name__} takes no sample_weight; leave sample_weight out"
        )
    folds = checked_folds(cv, X, z, loss)
    lags = checked_held_out_lags(lags, folds)  # before any fit
    tasks = [(clone(estimator), X, z, weights, *fold, loss) for fold in folds]
    held_out = in_workers(_held_out, tasks, n_jobs)
    return pooled_risk(folds, held_out, weights, loss_name(loss), lags)


def pooled_risk(
    folds: Sequence[FoldRows],
    losses: Sequence[np.ndarray],
    weights: np.ndarray | None,
    name: str,
    lags: int,
) -> Risk:
    """Risk of the losses of all folds, in the order of the samples.

    Parameters
    ----------
    folds : sequence of (train, test)
        As `checked_folds` gives them.
    losses : sequence of ndarray
        Of the held-out samples of each fold.
    weights : ndarray of shape (N,) or None
        Of all samples.
    name : str
        Of the loss.
    lags : int
    """
    held_out = np.concatenate([test for _, test in folds])
    order = np.argsort(held_out)
    rows = held_out[order]
    kept = None if weights is None else weights[rows]
    sizes = [(len(train), test) for train, test in folds]
    return risk_of(np.concatenate(losses)[order], kept, name, lags, sizes)


def checked_held_out_lags(lags: Any, folds: Sequence[FoldRows]) -> int:
    """`lags` as an int; above 0 only if the held-out samples are neighbours."""
    rows = np.sort(np.concatenate([test for _, test in folds]))
    lags = checked_lags(lags, len(rows))
    if lags and rows[-1] - rows[0] + 1 != len(rows):
        raise ValueError(
            "lags above 0 need held-out samples without gaps between them; "
            f"{rows[-1] - rows[0] + 1 - len(rows)} samples in between are never held out"
        )
    return lags


def _held_out(
    estimator: Any,
    X: Any,
    z: Any,
    weights: np.ndarray | None,
    train: np.ndarray,
    test: np.ndarray,
    loss: Loss,
) -> np.ndarray:
    given = {} if weights is None else {"sample_weight": weights[train]}
    estimator.fit(take(X, train), take(z, train), **given)
    return sample_losses(estimator, take(X, test), take(z, test), loss)


def checked_folds(cv: Any, X: Any, z: Any, loss: Loss) -> list[FoldRows]:
    """Training and held-out rows of each fold, disjoint."""
    stratified = loss in ("log_loss", "zero_one") and _is_vector(z)
    splitter = check_cv(cv, z if stratified else None, classifier=stratified)
    folds = [(_positions(a, count(X)), _positions(b, count(X))) for a, b in splitter.split(X, z)]
    times_held_out = np.zeros(count(X), int)
    for k, (train, test) in enumerate(folds):
        np.add.at(times_held_out, test, 1)
        if not len(train) or not len(test):
            raise ValueError(f"fold {k} has {len(train)} training and {len(test)} test samples")
        both = np.intersect1d(train, test)
        if len(both):
            raise ValueError(f"fold {k} holds out samples that it trains on: {both[:5].tolist()}")
    if not folds or times_held_out.max() > 1:
        twice = np.flatnonzero(times_held_out > 1)
        raise ValueError(
            f"cv must hold out every sample at most once; {len(twice)} are held out more often in "
            f"{len(folds)} folds. Average the risks of repeated splits, each computed on its own."
        )
    return folds


def _positions(rows: Any, n: int) -> np.ndarray:
    rows = np.asarray(rows)
    if rows.dtype == bool and rows.shape == (n,):
        return np.flatnonzero(rows)
    if not len(rows):
        return np.zeros(0, int)
    if rows.dtype.kind not in "iu" or rows.ndim != 1 or rows.min() < 0 or rows.max() >= n:
        raise ValueError(f"cv must give positions from 0 to {n - 1}; got {rows}")
    return rows


def _is_vector(z: Any) -> bool:
    """Whether there is one label a sample."""
    if isinstance(z, list | tuple):
        return not any(np.ndim(value) for value in z)
    return np.ndim(z) == 1 and not any(np.ndim(value) for value in np.asarray(z))
