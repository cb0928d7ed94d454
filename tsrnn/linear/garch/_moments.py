"""Persistence, half-life, unconditional variance and fourth moment of fitted models."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from tsrnn.linear.garch._model import Model
from tsrnn.linear.garch._presample import persistence_weights
from tsrnn.linear.garch._vol_egarch import MEAN_SIZE

_ROUNDING = 1e-12  # a persistence held at one may be so far below it
_FAR = 10_000  # lags after which a stationary logarithm of the variance has forgotten


def persistence(model: Model, params: np.ndarray) -> np.ndarray:
    r""":math:`\sum_i (\alpha_i + \gamma_i / 2) + \sum_j \beta_j`, of logarithms
    :math:`\sum_j \beta_j`; parameters (N, k) to (N,)."""  # noqa: D205, D209
    return params @ persistence_weights(model)


def half_life(model: Model, params: np.ndarray) -> np.ndarray:
    r"""Steps :math:`\log(1/2) / \log \rho` in which half a deviation of the variance is gone.

    :math:`\rho` is the largest root of the recursion of its forecasts, the persistence for
    orders (1, 1); inf from one on, NaN at zero or below.
    """
    rho = np.abs(np.linalg.eigvals(transition(model, params)[0])).max(1)
    with np.errstate(divide="ignore", invalid="ignore"):
        steps = np.log(0.5) / np.log(rho)
    return np.where(rho > 1 - _ROUNDING, np.inf, np.where(rho > 0, steps, np.nan))


def unconditional_variance(model: Model, params: np.ndarray) -> np.ndarray:
    r"""Variance of the residual, inf where there is none.

    :math:`\omega / (1 - P)` with the persistence P. For logarithms and normal innovations, with
    :math:`\psi_i` the weights of past shocks in :math:`\log h_t`,
    :math:`\prod_i E \exp(\psi_i' s_{t-i})` times what omega gives; for Student's t, inf.
    """
    if not model.vol.log:
        resting = resting_variance(model, params)
        return np.where(np.isnan(resting), np.inf, resting)
    if model.density.names:
        return np.full(len(params), np.inf)
    return np.array([_exponential(model, row) for row in params])


def resting_variance(model: Model, params: np.ndarray) -> np.ndarray:
    """Variance (N,) at which the recursion stays without news; NaN where there is none."""
    slack = 1 - persistence(model, params)
    level = params[:, model.omega] / np.where(slack > _ROUNDING, slack, np.nan)
    return np.exp(level) if model.vol.log else level


def _exponential(model: Model, row: np.ndarray) -> float:
    """Unconditional variance of a normal EGARCH."""
    moves = transition(model, row[None])[0][0]
    if np.abs(np.linalg.eigvals(moves)).max() >= 1:
        return np.inf
    part = [row[model.shock_coefficients(s)] for s in range(2)]
    state = np.zeros((model.n_vol, 2))
    state[: model.p] = np.stack(part, 1)
    log_variance = row[model.omega] / (1 - row[model.beta].sum())
    for _ in range(_FAR):
        a, b = state[0]
        log_variance += _log_moment(a, b)
        state = moves @ state
        if np.abs(state).max() < 1e-17:
            break
    return float(np.exp(log_variance))


def _log_moment(a: float, b: float) -> float:
    r""":math:`\log E \exp(a (|z| - \sqrt{2/\pi}) + b z)` of a standard normal z."""
    both = (a + b) ** 2 / 2 + np.log(ndtr(a + b)), (a - b) ** 2 / 2 + np.log(ndtr(a - b))
    return float(np.logaddexp(*both) - a * MEAN_SIZE)


def fourth_moment_root(model: Model, params: np.ndarray) -> np.ndarray:
    r"""Largest root of the recursion of :math:`E h_t^2`, shape (N,): below one, and only then,
    :math:`E e_t^4` is finite. NaN for a recursion of logarithms.

    With :math:`s_{t+1} = A_t s_t + \omega` the companion form of the variance, it is that of
    :math:`E[A_t \otimes A_t]`; for GARCH(1,1), :math:`(\alpha + \beta)^2 + (\kappa - 1)
    \alpha^2` with the kurtosis :math:`\kappa` of the innovations.
    """  # noqa: D205
    if model.vol.log:
        return np.full(len(params), np.nan)
    kurtosis = model.density.kurtosis(params[:, model.shape_part])
    finite = np.isfinite(kurtosis)
    mean, news = transition(model, params)
    second = _kron(mean, mean)
    for s, weight in enumerate(model.vol.expected):
        for r, other in enumerate(model.vol.expected):
            # Shocks are z² h, or that where z < 0: products of two have half the moments then.
            joint = np.where(finite, kurtosis, 0.0) * min(weight, other) - weight * other
            second = second + joint[:, None, None] * _kron(news[s], news[r])
    root = np.abs(np.linalg.eigvals(second)).max(1)
    moved = (params[:, model.omega + 1 : model.beta.start] != 0).any(1)
    return np.where(finite | ~moved, root, np.inf)


def transition(model: Model, params: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
    """Expected transition (N, r, r) of the memory of the variance, and what each shock adds."""
    n, r = len(params), model.n_vol
    mean = np.tile(np.eye(r, k=1), (n, 1, 1))
    mean[:, : model.q, 0] += params[:, model.beta]
    news = []
    for s, expected in enumerate(model.vol.expected):
        matrix = np.zeros((n, r, r))
        matrix[:, : model.p, 0] = params[:, model.shock_coefficients(s)]
        mean += expected * matrix
        news.append(matrix)
    return mean, news


def _kron(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    n, r, _ = a.shape
    return np.einsum("nij,nkl->nikjl", a, b).reshape(n, r * r, r * r)
