"""Risk of an estimator on a sample, and the difference of two."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from tsrnn.erm._losses import Loss, checked_loss, default_loss, loss_name, sample_losses

__all__ = [
    "Fold",
    "Risk",
    "checked_lags",
    "checked_weights",
    "empirical_risk",
    "risk_of",
    "risk_of_predictions",
]


class Fold(NamedTuple):
    """A fold of a cross-validated risk.

    Attributes
    ----------
    risk : float
        Mean loss of the held-out samples.
    n_train : int
        Number of training samples.
    rows : tuple of int
        Positions of the held-out samples.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from tsrnn.erm import cross_validated_risk
    >>> X = np.random.default_rng(0).normal(size=(20, 2))
    >>> risk = cross_validated_risk(LinearRegression(), X, X[:, 0], cv=4)
    >>> fold = risk.folds[0]
    >>> fold.n_train, fold.rows
    (15, (0, 1, 2, 3, 4))
    """

    risk: float
    n_train: int
    rows: tuple[int, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Risk:
    r"""Mean loss of samples, returned by `empirical_risk` and `cross_validated_risk`.

    For losses :math:`\ell_i` and weights :math:`w_i`, 1 by default,

    .. math::

        \bar\ell = \frac{\sum_i w_i \ell_i}{\sum_i w_i}, \qquad
        \widehat{\mathrm{se}}^2 = \frac{N}{N - 1} \frac{1}{(\sum_i w_i)^2} \Big[ \sum_i u_i^2
        + 2 \sum_{j=1}^{m} \Big(1 - \frac{j}{m + 1}\Big) \sum_{i>j} u_i u_{i-j} \Big], \qquad
        u_i = w_i (\ell_i - \bar\ell).

    Without weights and with m = `lags` = 0, the standard error is :math:`s / \sqrt N`. With
    weights it linearises the ratio; with lags it is that of Newey and West.

    Attributes
    ----------
    value : float
        Mean loss, infinite if a loss is.
    std_error : float
        Standard error, NaN for one sample or an infinite value.
    n : int
        Number of samples N.
    loss : str
    losses : ndarray of shape (N,)
        Losses in the order of the samples, read-only.
    weights : ndarray of shape (N,) or None
    lags : int
        Number of autocovariances in the standard error; 0 assumes independent losses.
    folds : tuple of Fold
        Folds of a cross-validated risk, else empty.
    is_difference : bool
        True for a result of `minus`.

    References
    ----------
    Newey, W. K. and West, K. D. (1987). A simple, positive semi-definite, heteroskedasticity and
    autocorrelation consistent covariance matrix. Econometrica 55(3), 703-708.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from tsrnn.erm import empirical_risk
    >>> X = np.arange(4.0)[:, None]
    >>> line = LinearRegression().fit(X, X[:, 0])
    >>> risk = empirical_risk(line, X, X[:, 0] + [1, -1, 1, -1])
    >>> round(risk.value, 6), risk.n, risk.losses.shape
    (1.0, 4, (4,))
    """

    value: float
    std_error: float
    n: int
    loss: str
    losses: np.ndarray
    weights: np.ndarray | None = None
    lags: int = 0
    folds: tuple[Fold, ...] = ()
    is_difference: bool = False

    def minus(self, other: Risk) -> Risk:
        """Return the difference to another risk on the same samples.

        The standard error is that of paired differences of losses. It is mostly far smaller than
        that of either risk, because a hard sample is hard for both.

        Parameters
        ----------
        other : Risk
            Risk with the same loss, number of samples, weights and lags, and with the same folds
            if both are cross-validated.

        Returns
        -------
        Risk
            Difference, negative if this risk is smaller. If one of the two is cross-validated, the
            standard error is too small (see `cross_validated_risk`).

        Raises
        ------
        ValueError
            If the risks are of different samples, as far as is known, or not comparable.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.dummy import DummyRegressor
        >>> from sklearn.linear_model import LinearRegression
        >>> from tsrnn.erm import empirical_risk
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(200, 2))
        >>> z = X @ [0.5, 0.0] + rng.normal(size=200)
        >>> line, mean = (m.fit(X[:100], z[:100]) for m in (LinearRegression(), DummyRegressor()))
        >>> new = X[100:], z[100:]
        >>> empirical_risk(line, *new).minus(empirical_risk(mean, *new))
        Risk difference -0.0793 (std_error 0.107; squared_error, 100 samples, taken as independent)
        """
        if not isinstance(other, Risk):
            raise TypeError(f"other must be a Risk; got {type(other).__name__}")
        for what in ("loss", "n", "lags"):
            values = getattr(self, what), getattr(other, what)
            if values[0] != values[1]:
                raise ValueError(
                    f"both risks must have the same {what}; got {values[0]!r} and {values[1]!r}"
                )
        weights = [
            np.ones(risk.n) if risk.weights is None else risk.weights for risk in (self, other)
        ]
        if not np.array_equal(weights[0], weights[1]):
            raise ValueError("both risks must have the same weights; compute both with the same")
        if not (np.isfinite(self.losses).all() and np.isfinite(other.losses).all()):
            raise ValueError("infinite losses have no difference; one of the two risks has some")
        layouts = [[(fold.n_train, fold.rows) for fold in risk.folds] for risk in (self, other)]
        if self.folds and other.folds and layouts[0] != layouts[1]:
            raise ValueError(
                "both risks must be cross-validated on the same folds; give both the same cv, with "
                "a fixed random_state if it shuffles"
            )
        folds = self.folds or other.folds
        difference = risk_of(
            self.losses - other.losses,
            self.weights,
            self.loss,
            self.lags,
            [(fold.n_train, np.array(fold.rows)) for fold in folds],
        )
        return replace(difference, is_difference=True)

    def to_dict(self) -> dict[str, float | int | str]:
        """Return value, std_error, n, loss, lags and n_folds, a row of a table."""
        return {
            "value": self.value,
            "std_error": self.std_error,
            "n": self.n,
            "loss": self.loss,
            "lags": self.lags,
            "n_folds": len(self.folds),
        }

    def __repr__(self) -> str:
        name = "Cross-validated risk" if self.folds else "Risk"
        assumption = "taken as independent"
        if self.lags:
            assumption = f"in time order, correlated up to lag {self.lags}"
        if self.folds:
            assumption += f" although {len(self.folds)} folds share training samples"
        return (
            f"{name}{' difference' if self.is_difference else ''} {self.value:.3g} (std_error "
            f"{self.std_error:.3g}; {self.loss}, {self.n} "
            f"{'samples' if self.weights is None else 'weighted samples'}, {assumption})"
        )


def empirical_risk(
    estimator: Any,
    X: Any,
    z: Any,
    *,
    loss: Loss | None = None,
    sample_weight: Any = None,
    lags: int = 0,
) -> Risk:
    r"""Return the mean loss of a fitted estimator on a sample.

    .. math:: \mathcal R_N(f) = \frac{1}{N} \sum_{i=1}^N \ell(f(X_i), z_i).

    On new samples, independent of the training sample, this is the held-out risk, which is unbiased
    for the risk :math:`\mathcal R(\hat f)` of the fitted estimator. On the training sample it is
    the minimised :math:`\mathcal R_N(\hat f)`, which underestimates :math:`\mathcal R(\hat f)`,
    since these samples chose :math:`\hat f`. The standard error does not account for that optimism.

    Parameters
    ----------
    estimator : fitted estimator
        Estimator with `predict`; for "log_loss" with `predict_proba` and `classes_`.
    X : array of shape (N, ...), or list of N sequences
    z : array of shape (N,), (N, k), (N, T) or (N, T, k), or list of arrays (T_i,) or (T_i, k)
        Targets, one per step if the estimator predicts every step.
    loss : {"squared_error", "absolute_error", "log_loss", "zero_one"} or callable, optional
        By default "log_loss" for a classifier, else the estimator's own `loss` if it is one of
        these, else "squared_error". The loss of a sample is a mean over its outputs and steps, so
        that long sequences count as much as short ones. "log_loss" is minus the log probability of
        the label without clipping: a label of probability 0 has infinite loss. A callable maps z
        and the predictions to the N losses.
    sample_weight : array_like of shape (N,), optional
        Weights of the losses; only ratios matter. They are not counts of repeated samples.
    lags : int, default 0
        Number of autocovariances in the standard error, below N: 0 for independent samples, and at
        least the overlap for overlapping windows in time order.

    Returns
    -------
    Risk

    Raises
    ------
    ValueError, TypeError
        If arguments are inconsistent, a label is not in `classes_`, or a loss is NaN.

    References
    ----------
    Cai, Li, Huang and Li (2026), ParaRNN, Section 4.2, with the squared error.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from tsrnn.erm import empirical_risk
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2))
    >>> z = X @ [1.0, -1.0] + rng.normal(size=300)
    >>> model = LinearRegression().fit(X[:100], z[:100])
    >>> empirical_risk(model, X[100:], z[100:])
    Risk 0.796 (std_error 0.0837; squared_error, 200 samples, taken as independent)
    """
    loss = checked_loss(default_loss(estimator) if loss is None else loss)
    losses = sample_losses(estimator, X, z, loss)
    weights = checked_weights(sample_weight, len(losses))
    return risk_of(losses, weights, loss_name(loss), checked_lags(lags, len(losses)))


def risk_of_predictions(
    predictions: np.ndarray,
    y: np.ndarray,
    weights: np.ndarray | None,
    loss: str,
    lengths: np.ndarray | None,
) -> Risk:
    """Return the risk of predictions (n, k) of n samples, or of the n steps of all samples.

    For classes, predictions are probabilities and `y` positions. Targets of weight 0 are arbitrary.
    `lengths` are the steps of each sample if each step has a target; the standard error is over
    samples.
    """
    counted = np.ones(len(y), bool) if weights is None else weights > 0
    known, losses = _Predictions(predictions[counted]), np.zeros(len(y))
    losses[counted] = sample_losses(known, y[counted], y[counted], loss)
    if lengths is None:
        return risk_of(losses, weights, loss, 0)
    # Weight a sample by the sum of its steps' weights, so that the risk is the mean over all steps,
    # which training minimises.
    weights = np.ones(len(y)) if weights is None else weights
    starts = np.cumsum(lengths) - lengths
    totals = np.add.reduceat(weights, starts)
    return risk_of(np.add.reduceat(weights * losses, starts) / totals, totals, loss, 0)


class _Predictions:
    """Estimator that returns fixed predictions."""

    def __init__(self, values: np.ndarray) -> None:
        self.values, self.classes_ = values, np.arange(values.shape[1])

    def predict(self, _: Any) -> np.ndarray:
        return self.values

    predict_proba = predict


def risk_of(
    losses: np.ndarray,
    weights: np.ndarray | None,
    name: str,
    lags: int,
    folds: Sequence[tuple[int, np.ndarray]] = (),
) -> Risk:
    """Return the risk of losses; `folds` holds numbers of training samples and held-out rows."""
    value, std_error = _mean_and_error(losses, weights, lags)
    # `losses` only has held-out samples: convert positions of samples to positions of losses.
    rows = np.sort(np.concatenate([[], *(held_out for _, held_out in folds)]))
    means = [_mean(losses, weights, np.searchsorted(rows, held_out)) for _, held_out in folds]
    losses, weights = losses.copy(), None if weights is None else weights.copy()
    for values in (losses, weights):
        if values is not None:
            values.flags.writeable = False
    return Risk(
        value,
        std_error,
        len(losses),
        name,
        losses,
        weights,
        lags,
        tuple(
            Fold(mean, n_train, tuple(held_out.tolist()))
            for mean, (n_train, held_out) in zip(means, folds, strict=True)
        ),
    )


def _mean_and_error(
    losses: np.ndarray, weights: np.ndarray | None, lags: int
) -> tuple[float, float]:
    """Return mean loss and standard error, as in `Risk`."""
    w = np.ones(len(losses)) if weights is None else weights
    mean = _mean(losses, weights, np.arange(len(losses)))
    n = int(np.count_nonzero(w))
    if n < 2 or math.isinf(mean):
        return mean, math.nan
    # A loss of weight 0 may be infinite, and 0 times infinity is NaN.
    u = w * (np.where(w > 0, losses, mean) - mean)
    scale = float(np.abs(u).max()) or 1.0  # prevents overflow of squares
    u = u / scale
    total = float(u @ u)
    # Bartlett weights keep the sum nonnegative up to rounding.
    for lag in range(1, lags + 1):
        total += 2.0 * (1.0 - lag / (lags + 1)) * float(u[lag:] @ u[:-lag])
    return mean, scale * math.sqrt(max(total, 0.0) * n / (n - 1)) / float(w.sum())


def _mean(losses: np.ndarray, weights: np.ndarray | None, rows: np.ndarray) -> float:
    """Return the weighted mean of the losses at `rows`, NaN if their weights are 0."""
    if weights is None:
        return float(losses[rows].mean())
    rows = rows[weights[rows] > 0]
    if not len(rows):
        return math.nan
    return float(weights[rows] @ losses[rows] / weights[rows].sum())


def checked_weights(sample_weight: Any, n: int) -> np.ndarray | None:
    """Return checked weights of n samples, None if none are given."""
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, float)
    if weights.shape != (n,):
        raise ValueError(
            f"sample_weight must have shape ({n},), one per sample; got {weights.shape}"
        )
    if not np.isfinite(weights).all() or weights.min() < 0 or weights.max() == 0:
        raise ValueError(
            "sample_weight must be finite, not negative, and not 0 for all samples; got values "
            f"from {weights.min()} to {weights.max()}"
        )
    return weights


def checked_lags(lags: Any, n: int) -> int:
    """Return the number of autocovariances, checked to be below n."""
    if isinstance(lags, bool) or not isinstance(lags, int | np.integer):
        raise TypeError(f"lags must be an integer; got {lags!r}")
    if not 0 <= lags < n:
        raise ValueError(f"lags must lie between 0 and {n - 1} for {n} samples; got {lags}")
    return int(lags)
