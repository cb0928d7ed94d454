"""Inference at optima: estimates, bounds and identification, moments of the fitted models."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr

from tsrnn.linear._estimates import Estimates
from tsrnn.linear.garch._likelihood import Curvatures
from tsrnn.linear.garch._prepare import Sample, to_user
from tsrnn.linear.garch._specification import (
    NU,
    SMALLEST_OMEGA,
    Model,
    expected_params,
    persistence,
    persistence_with_derivatives,
)
from tsrnn.linear.garch._volatility import MEAN_SIZE

if TYPE_CHECKING:
    from tsrnn.linear.garch._fit import Optima

LIKE_LEVELS = 0.9  # first autocorrelation of prices or other levels; returns are close to zero
_NO_LIMIT = "its estimator has no normal limit there"
_ROUNDING = 1e-12  # a persistence held at one may fall short of it by this
_MOST_LAGS = 10_000  # of past shocks in the unconditional variance of an EGARCH
_FORGOTTEN = 1e-17  # weight of a past shock that no longer changes the logarithm of the variance


def estimates_of(model: Model, sample: Sample, optima: Optima, at: Curvatures) -> Estimates:
    """Estimates on the scale of the data, from optima of standardised series."""
    matrix, offset = to_user(model, sample.centre, sample.scale)
    params = np.einsum("nij,nj->ni", matrix, optima.params) + offset
    # Derivatives by free parameters of the data's scale, of parameters of standardised series.
    reduced = np.linalg.inv(matrix) @ reductions(model, optima)
    fixed, messages = fixed_and_messages(model, params, optima, sample.first_autocorrelation())
    transposed = reduced.swapaxes(1, 2)
    hessian = at.hessian - _curvature_of_the_face(model, optima, at.gradient)
    return Estimates(
        names=model.names,
        params=params,
        loglik=at.value - sample.n_obs * np.log(sample.scale),
        n_obs=sample.n_obs,
        gradient=np.einsum("nij,nj->ni", transposed, at.gradient),
        hessian=transposed @ hessian @ reduced,
        opg=transposed @ at.opg @ reduced,
        information=transposed @ at.information @ reduced,
        iterations=optima.iterations,
        converged=optima.converged,
        fixed=fixed,
        messages=messages,
        starts=optima.starts,
        agreement=optima.agreement,
    )


def reductions(model: Model, optima: Optima) -> np.ndarray:
    """Derivatives (N, k, k) of all parameters by the free ones.

    Gamma depends on alpha if alpha + gamma is held at zero, and a parameter of the variance on the
    others if the persistence is held at one.
    """
    n, k = optima.params.shape
    result = np.tile(np.eye(k), (n, 1, 1))
    alpha = np.arange(k)[model.shock_coefficients(0)]
    for s in range(1, 1 if model.vol.log else len(model.vol.coefficients)):
        for a, gamma in zip(alpha, np.arange(k)[model.shock_coefficients(s)], strict=True):
            at_bound = optima.at_bound[:, gamma]
            result[at_bound, gamma] = -np.eye(k)[a]
    units = np.flatnonzero(optima.dropped >= 0)
    _, slopes, _ = persistence_with_derivatives(model, optima.params[units])
    for i, weight in zip(units, slopes, strict=True):
        j = optima.dropped[i]
        result[i, j] = -(np.where(np.arange(k) == j, 0.0, weight) @ result[i]) / weight[j]
    return result


def _curvature_of_the_face(model: Model, optima: Optima, gradient: np.ndarray) -> np.ndarray:
    """Second derivative (N, k, k) of a persistence held at one, times its Lagrange multiplier."""
    n, k = optima.params.shape
    result, units = np.zeros((n, k, k)), np.flatnonzero(optima.dropped >= 0)
    _, slopes, bends = persistence_with_derivatives(model, optima.params[units])
    j = optima.dropped[units]
    multiplier = gradient[units, j] / slopes[np.arange(len(units)), j]
    result[units] = multiplier[:, None, None] * bends
    return result


def fixed_and_messages(
    model: Model, params: np.ndarray, optima: Optima, autocorrelation: np.ndarray
) -> tuple[np.ndarray, tuple[tuple[str, ...], ...]]:
    """Mask (N, k) of parameters without a standard error, and warnings by unit.

    `autocorrelation` (N,) is the first autocorrelation of each series.
    """
    fixed = optima.at_bound.copy()
    integrated = np.asarray(optima.dropped >= 0)
    fixed[np.flatnonzero(integrated), optima.dropped[integrated]] = True
    flat = np.asarray(~params[:, model.shock_part].any(1))
    fixed[flat, model.omega] = True
    fixed[flat, model.beta] = True
    moments = second_moment_root(model, params), persistence(model, params)
    like_levels = (autocorrelation > LIKE_LEVELS) & (not (model.mean.lags or model.mean.n_ma))
    # Most units have no messages: skip them without a loop.
    silent = optima.converged & ~(flat | integrated | optima.kinked | like_levels)
    silent &= ~optima.at_bound.any(1) & (moments[1] < 1) & (moments[0] < 1)
    if model.density.names:
        silent &= params[:, -1] > 4
    messages: list[list[str]] = [[] for _ in params]
    for i in range(len(params)) if model.vol.log else np.flatnonzero(~silent):
        texts = messages[i]
        texts += _bound_messages(model, optima.at_bound[i], params[i])
        if flat[i]:
            texts.append(
                "no effect of shocks on the variance: omega and beta are not identified apart"
            )
        if integrated[i]:
            name = model.names[optima.dropped[i]]
            texts.append(
                f"the likelihood rises beyond a persistence of one, which is imposed: {name} "
                "follows from the others, and there is no unconditional variance"
            )
        texts += _moment_messages(
            model, params[i], moments[0][i], moments[1][i], integrated[i] or flat[i]
        )
        if optima.kinked[i]:
            texts.append(
                "the likelihood has kinks in the mean, at each residual of zero, and its maximum "
                "is on one: the gradient is not zero there"
            )
        if like_levels[i]:
            texts.append(
                f"the series has a first autocorrelation of {autocorrelation[i]:.3f}, as prices "
                "and other levels, and the mean has no lags: the variance follows the level. Give "
                "returns, such as 100 * np.log(y).diff(), or mean='ar'"
            )
        if not optima.converged[i]:
            texts.append(f"the search did not converge in {optima.iterations[i]} iterations")
    return fixed, tuple(map(tuple, messages))


def _bound_messages(model: Model, at_bound: np.ndarray, params: np.ndarray) -> list[str]:
    texts = []
    for i in np.flatnonzero(at_bound):
        name = model.names[i]
        if name == "omega":
            unit = "standard deviation" if model.vol.root else "variance"
            what = f"is at its bound, {SMALLEST_OMEGA:g} of the {unit} of the series"
        elif name == "nu":
            end = NU[int(params[i] > sum(NU) / 2)]
            what = f"is at its bound, {end:g}"
        elif name.startswith("gamma"):
            what = f"is at its bound, minus {name.replace('gamma', 'alpha')}"
        else:
            what = f"is at its bound, {params[i]:.3g}"
        texts.append(f"{name} {what}: {_NO_LIMIT}")
    return texts


def _moment_messages(
    model: Model, params: np.ndarray, root: float, level: float, known: bool
) -> list[str]:
    texts = []
    if model.vol.log:
        if params[model.omega + 1] < 0:
            texts.append(
                f"alpha[1] is {params[model.omega + 1]:.3g}: with a negative one, variances far "
                "in the past need not be forgotten, and the likelihood may have many maxima"
            )
        if model.density.names:
            texts.append(
                "innovations with Student's t have no exponential moments: unless the effect of "
                "shocks is negative, the unconditional variance is infinite"
            )
        return texts
    if level >= 1 and not known:
        texts.append(f"the persistence is {level:.6g}: there is no unconditional variance")
    elif not root < 1 and not known and model.vol.root:
        texts.append(
            f"the persistence is {level:.6g}, but that of the square of the recursion is "
            f"{root:.6g}: there is no unconditional variance"
        )
    elif not root < 1 and not known:
        texts.append(
            "the fourth moment of the residuals is not finite: autocorrelations of squares and "
            "tests built on them have no usual limit"
        )
    if model.density.names and params[-1] <= 4:
        texts.append(
            f"nu is {params[-1]:.3g}: innovations have no fourth moment, which robust standard "
            "errors need"
        )
    return texts


def half_life(model: Model, params: np.ndarray) -> np.ndarray:
    r"""Steps :math:`\log(1/2) / \log \rho` (N,) in which a deviation of the variance halves.

    For other models, a deviation of the root or logarithm of the variance. :math:`\rho` is the
    largest root of the recursion of forecasts, the persistence for orders (1, 1). inf if it is one
    or more, NaN if zero.
    """
    rho = _largest_root(transition(model, params)[0])
    with np.errstate(divide="ignore", invalid="ignore"):
        steps = np.log(0.5) / np.log(rho)
    return np.where(rho > 1 - _ROUNDING, np.inf, np.where(rho > 0, steps, np.nan))


def unconditional_variance(model: Model, params: np.ndarray) -> np.ndarray:
    r"""Unconditional variance (N,) of the residual, inf if there is none.

    :math:`\omega / (1 - P)` with the persistence P. For roots, the limit of the second moments of
    the recursion. For logarithms and normal innovations,
    :math:`\exp(\omega / (1 - \sum_j \beta_j)) \prod_i E \exp(\psi_i' s_{t-i})` with the weights
    :math:`\psi_i` of past shocks in :math:`\log h_t`; for Student's t, inf.
    """
    if not model.vol.log:
        limit_of = _limit_of_squares if model.vol.root else resting_variance
        limit = limit_of(model, params)
        return np.where(np.isnan(limit), np.inf, limit)
    if model.density.names:
        return np.full(len(params), np.inf)
    return np.array([_exponential_variance(model, row) for row in params])


def resting_variance(model: Model, params: np.ndarray) -> np.ndarray:
    """Fixed point (N,) of the variance under expected shocks; NaN if there is none."""
    slack = 1 - persistence(model, params)
    level = params[:, model.omega] / np.where(slack > _ROUNDING, slack, np.nan)
    return model.vol.restored(level)


def _limit_of_squares(model: Model, params: np.ndarray) -> np.ndarray:
    r"""Limit (N,) of the second moment of the recursion, NaN if there is none.

    :math:`E s` and :math:`E[s \otimes s]` are the fixed points of the first and second moments of
    the companion form :math:`s_{t+1} = A_t s_t + \omega e_1`.
    """
    moves, limit = _second_moments(model, params), np.full(len(params), np.nan)
    fine = np.flatnonzero(_largest_root(moves) < 1)
    omega, mean, r = params[fine, model.omega], transition(model, params[fine])[0], model.n_vol
    unit = np.eye(r)[0]
    level = np.linalg.solve(np.eye(r) - mean, omega[:, None, None] * unit[:, None])
    carried = (mean @ level)[..., 0]
    constant = unit[:, None] * carried[:, None, :] + carried[:, :, None] * unit
    constant += omega[:, None, None] * np.outer(unit, unit)
    constant *= omega[:, None, None]
    second = np.linalg.solve(np.eye(r * r) - moves[fine], constant.reshape(-1, r * r, 1))
    limit[fine] = second[:, 0, 0]
    return limit


def _exponential_variance(model: Model, row: np.ndarray) -> float:
    """Unconditional variance of a normal EGARCH."""
    moves = transition(model, row[None])[0][0]
    if np.abs(np.linalg.eigvals(moves)).max() >= 1:
        return np.inf
    part = [row[model.shock_coefficients(s)] for s in range(2)]
    state = np.zeros((model.n_vol, 2))
    state[: model.p] = np.stack(part, 1)
    log_variance = row[model.omega] / (1 - row[model.beta].sum())
    for _ in range(_MOST_LAGS):
        a, b = state[0]
        log_variance += _log_moment(a, b)
        state = moves @ state
        if np.abs(state).max() < _FORGOTTEN:
            break
    return float(np.exp(log_variance))


def _log_moment(a: float, b: float) -> float:
    r""":math:`\log E \exp(a (|z| - \sqrt{2/\pi}) + b z)` of a standard normal z."""
    both = (a + b) ** 2 / 2 + np.log(ndtr(a + b)), (a - b) ** 2 / 2 + np.log(ndtr(a - b))
    return float(np.logaddexp(*both) - a * MEAN_SIZE)


def second_moment_root(model: Model, params: np.ndarray) -> np.ndarray:
    r"""Largest root (N,) of the recursion of :math:`E g_t^2`; NaN for logarithms.

    :math:`E e_t^4` is finite if and only if it is below one, with a recursion of roots
    :math:`E e_t^2`. It is the largest eigenvalue of :math:`E[A_t \otimes A_t]` with the companion
    form :math:`s_{t+1} = A_t s_t + \omega e_1`; for GARCH(1,1), :math:`(\alpha + \beta)^2 +
    (\kappa - 1) \alpha^2` with the kurtosis :math:`\kappa` of the innovations.
    """
    if model.vol.log:
        return np.full(len(params), np.nan)
    root, moved = _largest_root(_second_moments(model, params)), params[:, model.shock_part] != 0
    finite = np.isfinite(_mean_square_size(model, params))
    return np.where(finite | ~moved.any(1), root, np.inf)


def _second_moments(model: Model, params: np.ndarray) -> np.ndarray:
    """Expectation (N, r², r²) of the Kronecker product of the transition with itself."""
    (mean, news), joint = transition(model, params), shock_covariances(model, params)
    second = _kron(mean, mean)
    for s, t in np.ndindex(joint.shape[1:]):
        second = second + joint[:, s, t, None, None] * _kron(news[s], news[t])
    return second


def shock_covariances(model: Model, params: np.ndarray) -> np.ndarray:
    """Covariances (N, shocks, shocks) of shocks in units of g.

    An infinite second moment counts as 0; `second_moment_root` reports it.
    """
    square, size = _mean_square_size(model, params), np.ones(len(params))
    if model.vol.root:
        size = model.density.mean_size(params[:, model.shape_part]).value
    weight = np.array(model.vol.expected)
    # A shock is a power of |z|, or that power if z < 0, which halves its moments.
    joint = np.where(np.isfinite(square), square, 0.0)[:, None, None]
    expected = size[:, None] * weight
    joint = joint * np.minimum(weight[:, None], weight)
    return joint - expected[:, :, None] * expected[:, None, :]


def _mean_square_size(model: Model, params: np.ndarray) -> np.ndarray:
    """Expectation (N,) of a squared shock: of z⁴, or of z² with a recursion of roots."""
    if model.vol.root:
        return np.ones(len(params))
    return model.density.kurtosis(params[:, model.shape_part])


def _largest_root(matrices: np.ndarray) -> np.ndarray:
    return np.abs(np.linalg.eigvals(matrices)).max(1)


def transition(model: Model, params: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
    """Expected transition (N, r, r) of the variance's state, and the matrix of each shock."""
    n, r = len(params), model.n_vol
    mean = np.tile(np.eye(r, k=1), (n, 1, 1))
    mean[:, : model.q, 0] += params[:, model.beta]
    news = []
    by_size = expected_params(model, params)
    for s, expected in enumerate(model.vol.expected):
        matrix, coefficients = np.zeros((n, r, r)), model.shock_coefficients(s)
        matrix[:, : model.p, 0] = params[:, coefficients]
        mean[:, : model.p, 0] += expected * by_size[:, coefficients]
        news.append(matrix)
    return mean, news


def _kron(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    n, r, _ = a.shape
    return np.einsum("nij,nkl->nikjl", a, b).reshape(n, r * r, r * r)
