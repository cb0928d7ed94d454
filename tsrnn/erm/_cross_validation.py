"""Cross-validation: the risk of an estimator, and folds of samples in time order."""

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
        An integer gives contiguous folds in the order of the samples, or for one label per
        sample and the losses "log_loss" and "zero_one" stratified ones. Series in time order need
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
    estimator = clone(estimator)  # whose loss is the one of the next fit
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
    lags = checked_held_out_lags(lags, folds)  # before any fit
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
        repeated = np.flatnonzero(times_held_out > 1)
        raise ValueError(
            f"cv must hold out every sample at most once; {len(repeated)} are held out more "
            f"often in {len(folds)} folds. Average the risks of repeated splits, each computed on "
            "its own."
        )
    return folds


def _is_vector(z: Any) -> bool:
    """Whether there is one label per sample."""
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
    """Number of autocovariances as an int; above 0 only if the held-out samples are neighbours."""
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
    """Losses of the held-out samples."""
    return sample_losses(fitted, take(X, test), take(z, test), loss)


def pooled_risk(
    folds: Sequence[FoldRows],
    losses: Sequence[np.ndarray],
    weights: np.ndarray | None,
    name: str,
    lags: int,
) -> Risk:
    """Risk of the losses of all folds, in the order of the samples.

    `losses` are of the held-out samples of each fold, `weights` of all samples, `name` of the loss.
    """
    held_out = np.concatenate([test for _, test in folds])
    order = np.argsort(held_out)
    rows = held_out[order]
    kept = None if weights is None else weights[rows]
    sizes = [(len(train), test) for train, test in folds]
    return risk_of(np.concatenate(losses)[order], kept, name, lags, sizes)


class BlockedKFold(BaseCrossValidator):
    r"""Folds that are blocks of neighbours, without the samples close to them in training.

    Samples 0 to N - 1 in time order are cut into contiguous blocks, of sizes that differ by 1 at
    most, the longer ones first. For the test block :math:`\{a, \dots, b - 1\}` the training part
    is

    .. math:: \{i : i < a - h\} \cup \{i : i \geq b + h\},

    so that training and test samples are more than h apart. Training samples lie on both sides of
    the block: this is for stationary series whose dependence dies out, not an imitation of
    forecasting, which scikit-learn's `TimeSeriesSplit` is.

    Parameters
    ----------
    n_splits : int, default 5
        Number of blocks, at least 2. With as many as samples and h > 0 this is h-block
        cross-validation, and leave-one-out with h = 0.
    h : int, default 0
        Samples left out on either side of a block, at least 0: beyond the lag at which samples
        depend on each other. Windows of T steps that start at every step overlap up to lag
        T - 1; where the target is the step after a window, take T.

    Raises
    ------
    TypeError, ValueError
        If an argument is no whole number of the range above; in `split`, if there are fewer
        samples than blocks, or h leaves no training sample for some block.

    Notes
    -----
    The models are fitted to fewer samples than there are, the fewer the larger h; the term by
    which Burman, Chow and Nolan correct the risk for that is not added. The hv-block
    cross-validation of Racine has a block of 2v + 1 samples around every single sample, so that
    blocks overlap; here they do not.

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
        """Positions of the training and of the test samples, block by block.

        Parameters
        ----------
        X : array of shape (N, ...), or list of N sequences
            In time order.
        y : array or list of N targets, optional
            Only counted.
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
        # A block leaves the longer of its two sides to train on, less h samples beside it.
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
        """Number of blocks; the arguments are ignored."""
        return self.n_splits


def _whole_number(name: str, value: Any, least: int) -> int:
    message = f"{name} must be an integer of at least {least}; got {value!r}"
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(message)
    if value < least:
        raise ValueError(message)
    return int(value)
