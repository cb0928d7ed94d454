"""Nuisance functions: regressions on the history and their out-of-block residuals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import nnls
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from tsrnn.erm import BlockedKFold, cross_validated_risk

PENALTIES = np.logspace(-2, 4, 13)  # of ridge regression, from none to nearly constant predictions
SUM_WEIGHT = 1e4  # weight of the equation "weights sum to 1" in nnls, whose rows have variance one


def default_models() -> list[BaseEstimator]:
    """Ridge regression and gradient boosted trees, to be stacked.

    The trees' settings had the least bias of the coefficient, not the least error, among those
    tried. Ridge regression can follow persistent series, which trees cannot.
    """
    trees = GradientBoostingRegressor(
        n_estimators=60, learning_rate=0.15, max_depth=2, subsample=0.5
    )
    return [make_pipeline(StandardScaler(), RidgeCV(PENALTIES)), trees]


@dataclass(frozen=True, eq=False)
class CrossFit:
    """Residuals of targets on the history, out of block, or in sample without blocks."""

    residuals: np.ndarray  # (N, k)
    inflation: np.ndarray  # (k,), N / (N - df) with each nuisance's effective df; 1 without blocks


def cross_fit(
    model: Any,
    windows: np.ndarray,
    targets: np.ndarray,
    *,
    n_folds: int,
    gap: int,
    random_state: int,
    n_jobs: int | None,
) -> CrossFit:
    r"""Residuals of targets (N, k) as in `left_out_residuals`, with degrees of freedom.

    Nuisance errors increase the variance of the estimate by about the share df / N, as df
    regressors do in least squares. By the optimism of the in-sample error (Efron 2004), mean
    squared errors in and out of the sample are :math:`\sigma^2 (1 \mp \mathrm{df} / N)`, so that

    .. math:: \frac{N}{N - \mathrm{df}} = \frac12 \Big(1 +
        \frac{\mathrm{mse}_{out}}{\mathrm{mse}_{in}}\Big).
    """
    models = model if isinstance(model, list | tuple) else [model]
    if n_folds == 1 and len(models) > 1:
        raise ValueError(
            "n_folds=1, residuals within the sample, takes one model, of a fixed dimension; got "
            f"{len(models)}. Name a model such as LinearRegression(), or take n_folds=5"
        )
    n, k = targets.shape
    outside, within = np.empty((len(models), n, k)), np.empty((len(models), n, k))
    for i, candidate in enumerate(models):
        samples = windows if takes_sequences(candidate) else windows.reshape(n, -1)
        estimator = seeded(candidate, random_state)
        if n_folds == 1:
            for j, target in enumerate(targets.T):
                fitted = clone(estimator).fit(samples, target)
                within[i, :, j] = _errors(target, fitted.predict(samples))
            continue
        # Stack each target twice: blocks are left out of the first copy, and the second copy is
        # predicted from the whole first copy. One call then trains the networks of all fits side by
        # side. The "loss" is the error itself.
        cv, all_rows = [], np.arange(n)
        for start in range(0, 2 * n * k, 2 * n):
            blocks = BlockedKFold(n_folds, h=gap).split(all_rows)
            cv += [(start + train, start + test) for train, test in blocks]
            cv.append((start + all_rows, start + n + all_rows))
        risk = cross_validated_risk(
            estimator, np.concatenate([samples] * (2 * k)), np.tile(targets.T, 2).ravel(),
            cv=cv, loss=_errors, n_jobs=n_jobs,
        )  # fmt: skip
        outside[i], within[i] = risk.losses.reshape(k, 2, n).transpose(1, 2, 0)
    if n_folds == 1:
        return CrossFit(within[0], np.ones(k))
    # Weights sum to 1: the weighted residual is the residual of the weighted prediction.
    weights = np.column_stack([stacking_weights(outside[:, :, j]) for j in range(k)])
    residuals = np.einsum("ij,inj->nj", weights, outside)
    inside = np.einsum("ij,inj->nj", weights, within)
    mse_out, mse_in = ((errors**2).mean(axis=0) for errors in (residuals, inside))
    # An interpolating model has no in-sample error, and the factor is not defined.
    ratio = np.divide(mse_out, mse_in, out=np.ones(k), where=mse_in > 0)
    # An early-stopped network may be better out of sample by chance; df is not negative.
    return CrossFit(residuals, np.maximum(1.0, (1 + ratio) / 2))


def left_out_residuals(
    model: Any,
    windows: np.ndarray,
    target: np.ndarray,
    *,
    n_folds: int = 5,
    gap: int = 0,
    random_state: int = 0,
    n_jobs: int | None = None,
) -> np.ndarray:
    r"""Residuals (N,) of a regression on windows (N, p, d), without the row's block and neighbours.

    .. math:: r_t = z_t - \hat m^{(-k(t))}(W_t),

    where :math:`\hat m^{(-k)}` is fitted to the samples more than `gap` away from block k of
    `n_folds` contiguous blocks (hv-blocks, Racine 2000). Predictions of several models are combined
    by non-negative weights with sum 1, estimated once over all blocks by least squares:
    short-stacking (Ahrens et al. 2025). One fold fits all samples: in-sample residuals.

    A `tsrnn.erm.ParaRNNRegressor`, or a pipeline or search around it, takes windows as sequences,
    and its fits are trained side by side; other models take a table. `random_state` is the seed of
    models whose own is None.

    Ahrens, A., Hansen, C. B., Schaffer, M. E. and Wiemann, T. (2025). Model averaging and double
    machine learning. Journal of Applied Econometrics 40(3), 249-269.

    Racine, J. (2000). Consistent cross-validatory model-selection for dependent data: hv-block
    cross-validation. Journal of Econometrics 99(1), 39-61.
    """
    fit = cross_fit(
        model, windows, np.asarray(target, float)[:, None], n_folds=n_folds, gap=gap,
        random_state=random_state, n_jobs=n_jobs,
    )  # fmt: skip
    return fit.residuals[:, 0]


def stacking_weights(residuals: np.ndarray) -> np.ndarray:
    """Non-negative weights with sum 1 that minimise the squared error of residuals (models, N)."""
    if len(residuals) == 1:
        return np.ones(1)
    matrix = residuals.T
    matrix = matrix / np.sqrt((matrix**2).mean())
    system = np.vstack([matrix, np.full(matrix.shape[1], SUM_WEIGHT)])
    weights, _ = nnls(system, np.append(np.zeros(len(matrix)), SUM_WEIGHT))
    return np.asarray(weights / weights.sum())


def takes_sequences(model: Any) -> bool:
    """Return True if a model takes windows (N, p, d), as estimators of `tsrnn.erm` do."""
    while True:  # unwrap pipelines and searches
        if isinstance(model, Pipeline):
            model = model.steps[-1][1]
        elif hasattr(model, "get_params") and hasattr(getattr(model, "estimator", None), "fit"):
            model = model.estimator
        else:
            break
    # By name of the module, so that a linear model does not load torch.
    return any(cls.__module__.startswith("tsrnn.erm.") for cls in type(model).__mro__)


def seeded(model: Any, random_state: int) -> Any:
    """Clone a model with its random states of None set to `random_state`."""
    fresh = clone(model)
    params = fresh.get_params(deep=True)
    free = [
        name
        for name, value in params.items()
        if name.rpartition("__")[2] == "random_state" and value is None
    ]
    return fresh.set_params(**dict.fromkeys(free, random_state))


def checked_model(model: Any) -> Any:
    """Check a model or list of models; None gives the default models."""
    if model is None:
        return default_models()
    models = model if isinstance(model, list | tuple) else [model]
    for candidate in models:
        if not (hasattr(candidate, "fit") and hasattr(candidate, "get_params")) or isinstance(
            candidate, type
        ):
            raise TypeError(
                "model must be a regressor with scikit-learn's fit, predict and get_params, a list "
                f"of them, or None; got {candidate!r}"
            )
    if not models:
        raise ValueError("model must not be an empty list; None takes ridge and boosted trees")
    return model


def _errors(target: np.ndarray, prediction: np.ndarray) -> np.ndarray:
    prediction = np.asarray(prediction, float)
    errors: np.ndarray = target - prediction.reshape(target.shape)
    return errors
