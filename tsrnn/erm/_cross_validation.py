"""Cross-validated risk of an estimator, and folds of samples in time order."""

from __future__ import annotations

import numbers
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import BaseCrossValidator, check_cv
from sklearn.utils.validation import has_fit_parameter

from tsrnn.erm._losses import Loss, checked_loss, default_loss, loss_name, sample_losses
from tsrnn.erm._resampling import Refit, count, results_of, take
from tsrnn.erm._risk import Risk, checked_lags, checked_weights, risk_of

__all__ = [
    "BlockedKFold",
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
    r"""Return the mean loss of held-out samples under clones of an estimator.

    .. math:: \frac{1}{N} \sum_{i=1}^N \ell(\hat f^{(-k(i))}(X_i), z_i),

    where :math:`\hat f^{(-k)}` is fitted to the training part of fold k, and fold k(i) holds out
    sample i.

    It estimates the risk of the estimator averaged over training samples of the size of the
    training parts, mostly slightly above the risk for N samples. It does not estimate the risk of
    the fit to these N samples (Bates, Hastie and Tibshirani, 2024).

    The standard error assumes independent losses, or correlation up to `lags`. In fact, losses of a
    fold share a fitted clone, and folds share training samples. No unbiased estimator of the
    variance exists (Bengio and Grandvalet, 2004), and intervals from this one are too short.

    Parameters
    ----------
    estimator : estimator
        Estimator to clone, fitted or not.
    X, z
        As in `empirical_risk`.
    cv : int, splitter or iterable of (train, test), default 5
        An integer gives contiguous folds in the order of the samples, or stratified folds for one
        label per sample and the losses "log_loss" and "zero_one". Series in time order need
        `BlockedKFold` with a gap. A sample may be held out at most once; samples never held out do
        not enter the risk.
    loss : str or callable, optional
        As in `empirical_risk`.
    sample_weight : array_like of shape (N,), optional
        Weights for `fit` and of the losses.
    lags : int, default 0
        As in `empirical_risk`; if above 0, the held-out samples must be consecutive.
    n_jobs : int, optional
        Number of processes of one thread each; -1 for all cores. By default this process.

    Returns
    -------
    Risk
        Risk with `folds`.

    Raises
    ------
    ValueError, TypeError
        As in `empirical_risk`; or if a sample is held out twice or in its training part, or if
        `fit` accepts no sample weights and some are given.

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
    estimator = clone(estimator)  # the default loss is that of the next fit, not of the last
    loss = checked_loss(default_loss(estimator) if loss is None else loss)
    n = count(X)
    if count(z) != n:
        raise ValueError(f"X and z must have as many samples; got {n} and {count(z)}")
    weights = checked_weights(sample_weight, n)
    if weights is not None and not has_fit_parameter(estimator, "sample_weight"):
        raise TypeError(
            f"fit of {type(estimator).__name__} takes no sample_weight; leave sample_weight out"
        )
    folds = checked_folds(cv, X, z, loss)
    lags = checked_held_out_lags(lags, folds)  # raise before the work of fitting
    refits = [
        Refit(
            f"the fit without fold {k} of {len(folds)}",
            clone(estimator),
            partial(_training_part, X, z, weights, train),
            partial(_held_out, X, z, test, loss),
        )
        for k, (train, test) in enumerate(folds, 1)
    ]
    held_out = results_of(refits, n_jobs)
    return pooled_risk(folds, held_out, weights, loss_name(loss), lags)


def checked_folds(cv: Any, X: Any, z: Any, loss: Loss) -> list[FoldRows]:
    """Return the training and held-out rows of each fold, checked to be disjoint."""
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
        repeated = np.flatnonzero(times_held_out > 1)
        raise ValueError(
            f"cv must hold out every sample at most once; {len(repeated)} are held out more "
            f"often in {len(folds)} folds. Average the risks of repeated splits, each computed on "
            "its own."
        )
    return folds


def _is_vector(z: Any) -> bool:
    """Return True if there is one label per sample."""
    if isinstance(z, list | tuple):
        return not any(np.ndim(value) for value in z)
    return np.ndim(z) == 1 and not any(np.ndim(value) for value in np.asarray(z))


def _positions(rows: Any, n: int) -> np.ndarray:
    rows = np.asarray(rows)
    if rows.dtype == bool and rows.shape == (n,):
        return np.flatnonzero(rows)
    if not len(rows):
        return np.zeros(0, int)
    if rows.dtype.kind not in "iu" or rows.ndim != 1 or rows.min() < 0 or rows.max() >= n:
        raise ValueError(f"cv must give positions from 0 to {n - 1}; got {rows}")
    return rows


def checked_held_out_lags(lags: Any, folds: Sequence[FoldRows]) -> int:
    """Return the checked number of autocovariances; above 0, held-out samples are consecutive."""
    rows = np.sort(np.concatenate([test for _, test in folds]))
    lags = checked_lags(lags, len(rows))
    if lags and rows[-1] - rows[0] + 1 != len(rows):
        raise ValueError(
            "lags above 0 need held-out samples without gaps between them; "
            f"{rows[-1] - rows[0] + 1 - len(rows)} samples in between are never held out"
        )
    return lags


def _training_part(
    X: Any, z: Any, weights: np.ndarray | None, train: np.ndarray
) -> tuple[Any, Any, np.ndarray | None]:
    return take(X, train), take(z, train), None if weights is None else weights[train]


def _held_out(X: Any, z: Any, test: np.ndarray, loss: Loss, fitted: Any) -> np.ndarray:
    """Return the losses of the held-out samples."""
    return sample_losses(fitted, take(X, test), take(z, test), loss)


def pooled_risk(
    folds: Sequence[FoldRows],
    losses: Sequence[np.ndarray],
    weights: np.ndarray | None,
    name: str,
    lags: int,
) -> Risk:
    """Return the risk of all folds, with losses in the order of the samples.

    `losses` are by fold, `weights` by sample; `name` is the name of the loss.
    """
    held_out = np.concatenate([test for _, test in folds])
    order = np.argsort(held_out)
    rows = held_out[order]
    kept = None if weights is None else weights[rows]
    sizes = [(len(train), test) for train, test in folds]
    return risk_of(np.concatenate(losses)[order], kept, name, lags, sizes)


class BlockedKFold(BaseCrossValidator):
    r"""Contiguous folds with a gap between training and test samples.

    Samples 0 to N - 1 in time order are split into contiguous blocks. Sizes differ by at most 1,
    and longer blocks come first. For the test block :math:`\{a, \dots, b - 1\}` the training part
    is

    .. math:: \{i : i < a - h\} \cup \{i : i \geq b + h\},

    so that training and test samples are more than h apart. Training samples lie on both sides of
    the block, which suits stationary series with decaying dependence. scikit-learn's
    `TimeSeriesSplit` imitates forecasting instead.

    Parameters
    ----------
    n_splits : int, default 5
        Number of blocks, at least 2. With N blocks this is h-block cross-validation, and
        leave-one-out for h = 0.
    h : int, default 0
        Samples dropped on either side of a block, at least 0; choose the lag beyond which samples
        are independent. Windows of T steps that start at every step overlap up to lag T - 1; if
        the target is the step after a window, take T.

    Raises
    ------
    TypeError, ValueError
        If an argument is no integer in its range; in `split`, if there are fewer samples than
        blocks, or h leaves no training sample for a block.

    Notes
    -----
    Larger h means smaller training parts; the correction of Burman, Chow and Nolan for this is not
    applied. Racine's hv-block cross-validation has a block of 2v + 1 samples around every sample,
    so that blocks overlap; here they do not.

    References
    ----------
    Burman, P., Chow, E. and Nolan, D. (1994). A cross-validatory method for dependent data.
    Biometrika 81(2), 351-358.

    Racine, J. (2000). Consistent cross-validatory model-selection for dependent data: hv-block
    cross-validation. Journal of Econometrics 99(1), 39-61.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.erm import BlockedKFold
    >>> for train, test in BlockedKFold(3, h=1).split(np.zeros((9, 2))):
    ...     print(train, test)
    [4 5 6 7 8] [0 1 2]
    [0 1 7 8] [3 4 5]
    [0 1 2 3 4] [6 7 8]
    """

    def __init__(self, n_splits: int = 5, *, h: int = 0) -> None:
        self.n_splits = _whole_number("n_splits", n_splits, 2)
        self.h = _whole_number("h", h, 0)

    def split(
        self, X: Any, y: Any = None, groups: Any = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield positions of training and test samples, block by block.

        Parameters
        ----------
        X : array of shape (N, ...), or list of N sequences
            Samples in time order.
        y : array or list of N targets, optional
            Targets; only their number is checked.
        groups : object, optional
            Ignored.

        Yields
        ------
        train, test : int ndarray
        """
        n = count(X)
        if y is not None and count(y) != n:
            raise ValueError(f"X and y must have as many samples; got {n} and {count(y)}")
        positions = np.arange(n)
        if n < self.n_splits:
            raise ValueError(
                f"n_splits must be at most the number of samples, {n}; got {self.n_splits}"
            )
        sizes = np.full(self.n_splits, n // self.n_splits)
        sizes[: n % self.n_splits] += 1
        edges = np.concatenate([[0], np.cumsum(sizes)])
        # The longer side of a block, less h samples, must not be empty.
        largest = int(np.maximum(edges[:-1], n - edges[1:]).min()) - 1
        if self.h > largest:
            raise ValueError(
                f"h must be at most {largest} for {n} samples in {self.n_splits} blocks, or a "
                f"block has no training samples left; got {self.h}"
            )
        for start, stop in pairwise(edges):
            near = (positions >= start - self.h) & (positions < stop + self.h)
            yield positions[~near], positions[start:stop]

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of blocks; arguments are ignored."""
        return self.n_splits


def _whole_number(name: str, value: Any, least: int) -> int:
    message = f"{name} must be an integer of at least {least}; got {value!r}"
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(message)
    if value < least:
        raise ValueError(message)
    return int(value)
