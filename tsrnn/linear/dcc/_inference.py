r"""Estimates of both steps, and standard errors that account for all of them.

An estimate is, up to smaller terms, the true value plus a sum over time of influences psi; the
influences of a later step contain those of earlier steps (Engle and Sheppard 2001, Newey and
McFadden 1994). A step with scores s(theta, nu) takes nu from an earlier step. With the derivatives
A by theta and C by nu of the sum of its scores,

.. math:: \psi_{\theta, t} = - A^{-1} (s_t + C \psi_{\nu, t}),

and the covariance of all estimates is :math:`\sum_t \psi_t \psi_t'`: the sandwich of the block
triangular matrix of all steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.linalg
import torch
from torch import Tensor

from tsrnn.linear._estimates import Estimates
from tsrnn.linear.dcc._equations import Sample
from tsrnn.linear.dcc._fit import CorrelationOptima
from tsrnn.linear.dcc._likelihood import (
    constants,
    correlation_density,
    correlations_at,
    lagged,
    linear_filter,
    run_correlations,
    variables,
    with_shares,
)
from tsrnn.linear.dcc._specification import FirstStep, Order, Specification

_INTEGRATED = 1e-6  # distance of the sum of a and b from one at which S is not identified
_NEARLY_INTEGRATED = 2e-3  # distance at which standard errors of S are unreliable


def estimates_of(spec: Specification, sample: Sample, optima: CorrelationOptima) -> Estimates:
    """Estimates of both steps, with matrices whose sandwich is the covariance of all steps."""
    design, equations = sample.design, sample.equations
    s, n, k = len(design.lengths), spec.n, len(spec.own_names)
    univariate = equations.estimates
    fixed, messages = fixed_and_messages(spec.order, spec.targets, univariate, optima)
    jets = constants(optima.params)
    path = run_correlations(
        torch.from_numpy(equations.z), torch.from_numpy(design.observed), jets[: spec.order.p],
        jets[spec.order.p :], corrected=spec.order.corrected,
    )  # fmt: skip
    target = path.target.value[:, 0].numpy()
    first = np.concatenate([equations.coefficients, equations.variance], 2).reshape(s, -1)
    params = np.hstack([first, target[:, *spec.pairs], optima.params])
    fixed_all = np.hstack([
        _with_means(spec, univariate.fixed, s),
        np.repeat(optima.integrated[:, None], len(spec.pairs[0]), 1),  # rho is not identified then
        fixed,
    ])  # fmt: skip
    hessian, covariance = np.zeros((s, k, k)), np.zeros((s, k, k))
    for i in range(s):
        hessian[i], covariance[i] = _two_step(spec, sample, optima, fixed[i], i)
    gradient = np.zeros((s, k))
    gradient[:, k - optima.params.shape[1] :] = optima.gradient
    gradient[:, : first.shape[1]] = _with_means(spec, univariate.gradient, s)
    estimates = Estimates(
        names=spec.own_names,
        params=params,
        loglik=univariate.loglik.reshape(s, n).sum(1) + optima.value,
        n_obs=design.n_obs,
        gradient=gradient,
        hessian=hessian,
        opg=hessian @ covariance @ hessian,  # so that the sandwich is `covariance`
        information=None,
        iterations=univariate.iterations.reshape(s, n).sum(1) + optima.iterations,
        converged=univariate.converged.reshape(s, n).all(1) & optima.converged,
        fixed=fixed_all,
        messages=messages,
    )
    return estimates.with_held(spec.relation_names, spec.mean.elements(design.beta))


def estimates_at(spec: Specification, sample: Sample, params: np.ndarray) -> Estimates:
    """Evaluate the likelihood at given parameters (S, K), without standard errors."""
    parts, equations, (s, k) = spec.parts(params), sample.equations, params.shape
    with np.errstate(invalid="ignore", divide="ignore"):
        z, observed = equations.z, sample.design.observed
        path = correlations_at(parts, spec.order, z, observed)
        added = correlation_density(path, torch.from_numpy(z), torch.from_numpy(observed))
        loglik = equations.estimates.loglik.reshape(s, spec.n).sum(1)
        loglik = loglik + added.value.sum(1).numpy()
    if not np.isfinite(loglik).all():
        bad = int(np.flatnonzero(~np.isfinite(loglik))[0])
        raise ValueError(f"params must give positive, finite variances; those of unit {bad} do not")
    zero, square = np.zeros(s, np.int64), np.zeros((s, k, k))
    return Estimates(
        names=spec.names, params=params, loglik=loglik, n_obs=sample.design.n_obs,
        gradient=np.zeros((s, k)), hessian=square, opg=square, information=None, iterations=zero,
        converged=zero == 0, fixed=np.ones((s, k), dtype=bool), messages=((),) * s,
    )  # fmt: skip


def _with_means(spec: Specification, values: np.ndarray, s: int) -> np.ndarray:
    """Reshape values (S n, k) by univariate model to (S, n (r + k)); zero for least squares."""
    by_equation = values.reshape(s, spec.n, -1)
    if not spec.step.joint:
        by_mean = np.zeros((s, spec.n, spec.n_mean), dtype=values.dtype)
        by_equation = np.concatenate([by_mean, by_equation], 2)
    return by_equation.reshape(s, -1)


def fixed_and_messages(
    order: Order, targets: Sequence[object], univariate: Estimates, optima: CorrelationOptima
) -> tuple[np.ndarray, tuple[tuple[str, ...], ...]]:
    """Mask (S, p + q) of a and b without a standard error, and warnings of all steps."""
    fixed = optima.at_bound.copy()
    constant = np.asarray(~optima.params[:, : order.p].any(axis=1) & (order.p > 0))
    fixed[constant] = True
    fixed[optima.integrated, -1:] = True
    messages = []
    n = len(targets)
    for i in range(len(fixed)):
        texts = [
            f"{target}: {message}"
            for j, target in enumerate(targets)
            for message in univariate.messages[i * n + j]
        ]
        if constant[i]:
            texts.append(
                "a is zero, on its bound: correlations are constant and b is not identified; "
                "neither has a standard error"
            )
        else:
            texts += [
                f"{name} is at its bound, {value:.3g}: its estimator has no normal limit there"
                for name, value, at_bound in zip(
                    order.names, optima.params[i], optima.at_bound[i], strict=True
                )
                if at_bound
            ]
        if optima.integrated[i]:
            texts.append(
                f"the likelihood rises up to a sum of a and b of one, which is imposed: "
                f"{order.names[-1]} follows from the others, and there are no unconditional "
                "correlations for rho to estimate"
            )
        elif (total := optima.params[i].sum()) > 1 - _NEARLY_INTEGRATED:
            texts.append(
                f"the sum of a and b is {total:.6g}: correlations hardly return to rho, whose "
                "standard errors are not to be relied on"
            )
        if not optima.converged[i]:
            count = optima.iterations[i]
            texts.append(f"the search for a and b did not converge in {count} iterations")
        messages.append(tuple(texts))
    return fixed, tuple(messages)


class _SecondStep(NamedTuple):
    """Scores of the correlation step and their derivatives."""

    scores: np.ndarray  # (T, k)
    hessian: np.ndarray  # (k, k)
    by_z: np.ndarray  # (k, T, n), derivatives of summed scores by the standardised residuals
    by_moment: np.ndarray  # (k, n, n), derivatives of summed scores by the moment
    driver: np.ndarray  # (T, n), zero in incomplete rows
    scale: np.ndarray  # (T, n), the driver is scale times z
    q: np.ndarray  # (T, n, n)
    moment: np.ndarray  # (n, n), mean of outer products of the driver, which gives S
    moment_slope: np.ndarray  # (k, n, n), derivatives of the moment by the k parameters
    complete: np.ndarray  # (T,), mask of rows without a missing value


def _two_step(
    spec: Specification, sample: Sample, optima: CorrelationOptima, fixed: np.ndarray, i: int
) -> tuple[np.ndarray, np.ndarray]:
    """Hessian and covariance (K, K) of the first step, the correlations, a and b of series i.

    The Hessian is block diagonal, as if earlier steps were known. The covariance accounts for all
    steps, by the influences psi of the observations; it is zero for fixed parameters.
    """
    order, equations, rows = spec.order, sample.equations, slice(0, sample.design.lengths[i])
    x, e, h = sample.design.regressors[i, rows], equations.e[i, rows].T, equations.h[i, rows].T
    variance, univariate = equations.variance[i], equations.estimates
    sens = sensitivities(spec.step, x, e, h, variance, equations.presample[i])
    blocks, first = [], []
    for j in range(spec.n):
        unit = i * spec.n + j
        block = univariate.hessian[unit], ~univariate.fixed[unit]
        joint = spec.step.joint or not x.shape[1]
        slopes = sens.h[j] / h[j]
        hessian, psi = _equation(joint, x, e[j], slopes, sens.scores[j].T, *block)
        blocks.append(hessian)
        first.append(psi)
    z, params = (e / np.sqrt(h)).T, optima.params[i]
    second = _second_step(order, z, params)
    second = _on_face(second) if optima.integrated[i] else second
    a, b = params[: order.p], params[order.p :]
    moment = _moment_influences(second, a, b)
    # Scores of a and b depend on the equations through z, and on the moment that gives S.
    by_z = np.einsum("ktn,nmt->nkm", second.by_z, sens.z)
    inherited = sum(psi @ c.T for psi, c in zip(first, by_z, strict=True))
    inherited = inherited + np.einsum("tij,kij->tk", moment, second.by_moment)
    dynamic = _influences(second.hessian, second.scores + inherited, ~fixed)
    rho = _rho_influences(order, second, sens, first, moment, dynamic, (a, b), z.T)
    psi = np.hstack([*first, rho, dynamic])
    n_complete = int(second.complete.sum())
    blocks += [_rho_hessian(second.moment, n_complete, _recolouring(a, b)), second.hessian]
    return scipy.linalg.block_diag(*blocks), psi.T @ psi


def _equation(
    joint: bool,
    x: np.ndarray,
    e: np.ndarray,
    slopes: np.ndarray,
    scores: np.ndarray,
    hessian: np.ndarray,
    free: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Hessian (m, m) and influences (T, m) of the m parameters of an equation.

    `slopes` (m, T) are derivatives of log h, `hessian` belongs to the univariate model.
    """
    if joint:
        return hessian, _influences(hessian, scores, free)
    r, inner = x.shape[1], x.T @ x
    mean = np.linalg.solve(inner, (x * e[:, None]).T).T
    # The expectation given the past replaces the cross derivative, as in the information matrix.
    cross = -0.5 * slopes[r:] @ slopes[:r].T
    variance = _influences(hessian, scores[:, r:] + mean @ cross.T, free)
    return scipy.linalg.block_diag(-inner / (e**2).mean(), hessian), np.hstack([mean, variance])


def _influences(hessian: np.ndarray, scores: np.ndarray, free: np.ndarray) -> np.ndarray:
    """Influences (T, k) from scores with inherited terms; zero for fixed parameters."""
    influences = np.zeros_like(scores)
    # Parameters differ in scale by orders of magnitude: solve with a unit diagonal.
    size = 1 / np.sqrt(np.abs(np.diagonal(hessian)[free]))
    inside = size[:, None] * hessian[np.ix_(free, free)] * size
    influences[:, free] = -np.linalg.solve(inside, size[:, None] * scores[:, free].T).T * size
    return influences


def _second_step(order: Order, z: np.ndarray, params: np.ndarray) -> _SecondStep:
    n, k = z.shape[1], len(params)
    leaf = torch.tensor(z[None], requires_grad=True)
    shift = torch.zeros(1, 1, n, n, dtype=torch.float64, requires_grad=True)
    observed = torch.ones(1, len(z), dtype=torch.bool)
    jets = variables(torch.tensor(params[None])) if k else []
    result = run_correlations(
        leaf, observed, jets[: order.p], jets[order.p :], corrected=order.corrected, shift=shift
    )
    terms = correlation_density(result, leaf, observed)
    by_z, by_moment = np.zeros((k, *z.shape)), np.zeros((k, n, n))
    scores, hessian = np.zeros((len(z), 0)), np.zeros((0, 0))
    if k:
        assert terms.first is not None
        assert terms.second is not None
        scores = terms.first[:, 0].T.detach().numpy()
        hessian = terms.second[:, :, 0].sum(-1).detach().numpy()
        for i in range(k):
            parts = torch.autograd.grad(terms.first[i].sum(), (leaf, shift), retain_graph=True)
            by_z[i], by_moment[i] = parts[0][0].numpy(), parts[1][0, 0].numpy()
    complete = ~np.isnan(z).any(1)
    n_complete, inside = complete.sum(), torch.from_numpy(complete)[:, None]
    driver = result.driver.value[0, :, 0].detach().numpy() * complete[:, None]
    q = result.q.value[0].detach().numpy()
    scale = np.sqrt(np.diagonal(q, axis1=1, axis2=2)) if order.corrected else np.ones_like(z)
    moment = driver.T @ driver / n_complete
    slope = np.zeros((k, n, n))
    if result.driver.first is not None:
        u, du = result.driver.value[0, :, 0].detach(), result.driver.first[:, 0, :, 0].detach()
        half = torch.einsum("ktn,tm->knm", du, u * inside).numpy() / n_complete
        slope = half + half.swapaxes(1, 2)
    return _SecondStep(scores, hessian, by_z, by_moment, driver, scale, q, moment, slope, complete)


def _on_face(second: _SecondStep) -> _SecondStep:
    """Project derivatives on the face where the last parameter is one minus the others."""
    along = np.eye(len(second.hessian))
    along[-1] = -1.0
    along[:, -1] = 0.0
    return second._replace(
        scores=second.scores @ along,
        hessian=along.T @ second.hessian @ along,
        by_z=np.einsum("ki,ktn->itn", along, second.by_z),
        by_moment=np.einsum("ki,kmn->imn", along, second.by_moment),
        moment_slope=np.einsum("ki,kmn->imn", along, second.moment_slope),
    )


def _rho_influences(
    order: Order,
    second: _SecondStep,
    sens: Sensitivities,
    first: Sequence[np.ndarray],
    by_moment: np.ndarray,
    dynamic: np.ndarray,
    coefficients: tuple[np.ndarray, np.ndarray],
    z: np.ndarray,
) -> np.ndarray:
    """Influences (T, pairs) on the off-diagonal elements of S."""
    du = sens.z
    if order.corrected:
        du = driver_sensitivities(sens.z, z, second.scale.T, *coefficients)
    inherited = np.zeros_like(by_moment)
    for i, psi in enumerate(first):
        # The moment of u_i u_j depends on u_i by row i and by column i.
        row = psi @ (du[i] @ second.driver / second.complete.sum())
        inherited[:, i, :] += row
        inherited[:, :, i] += row
    inherited += np.einsum("tk,kij->tij", dynamic, second.moment_slope)
    return _on_correlations(by_moment + inherited, second.moment)


def _moment_influences(second: _SecondStep, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    r"""Influences (T, n, n) of observations on the mean of :math:`u u'`, which gives S.

    The sum of the recursion over time is, up to its ends,
    :math:`\sum (u u' - S) = \kappa \sum (u u' - Q)` with kappa of `_recolouring`. The terms on the
    right are uncorrelated over time. The response of later Q to a row counts only in complete
    rows, so that a row before missing values has a smaller kappa.
    """
    driver, complete = second.driver, second.complete
    outer = driver[:, :, None] * driver[:, None, :]
    kappa = _recolouring(a, b)
    centre = second.moment if kappa == 1.0 else second.q
    weight = np.full(len(outer), kappa)
    if kappa != 1.0 and not complete.all():
        # Run backward in time, so that each row collects the response of incomplete later rows.
        # Rows after the last complete row count as rows after the end of the data.
        backward = complete[::-1]
        gaps = np.where(np.maximum.accumulate(backward), ~backward, False)
        lacking = torch.from_numpy(gaps.astype(float))[None, :, None, None]
        jets = [constants(part[None]) for part in (a, b)]
        source = torch.zeros_like(lacking)
        for lag, share in enumerate(jets[0], 1):
            source = source + share.value * lagged(lacking, lag)
        decays = [c.value for c in with_shares(torch.ones_like(lacking), *jets)]
        weight = weight - linear_filter(source, decays)[0, :, 0, 0].numpy()[::-1]
    return (outer - centre) * (weight * complete / complete.sum())[:, None, None]


def _recolouring(a: np.ndarray, b: np.ndarray) -> float:
    r""":math:`\kappa = (1 - \sum b_j) / (1 - \sum a_i - \sum b_j)`.

    It is 1 without dynamics, and if a and b sum to one, where S is not identified.
    """
    rest = 1 - a.sum() - b.sum()
    return 1.0 if not a.any() or rest <= _INTEGRATED else float((1 - b.sum()) / rest)


def _rho_hessian(moment: np.ndarray, steps: int, kappa: float) -> np.ndarray:
    """Minus the inverse covariance (pairs, pairs) of sample correlations of normal variables."""
    n = len(moment)
    root = np.sqrt(np.diagonal(moment))
    r = moment / np.outer(root, root)
    # Covariance of elements (i, j) and (k, l) of a sample covariance matrix of unit diagonal.
    spread = np.einsum("ik,jl->ijkl", r, r) + np.einsum("il,jk->ijkl", r, r)
    rows = _on_correlations(spread.reshape(n * n, n, n), r)
    whole = _on_correlations(rows.T.reshape(-1, n, n), r)
    return -np.linalg.inv(whole) * steps / kappa**2


def _on_correlations(influence: np.ndarray, moment: np.ndarray) -> np.ndarray:
    """Map influences (T, n, n) on the moment to influences (T, pairs) on correlations."""
    variances = np.diagonal(moment)
    root = np.sqrt(np.outer(variances, variances))
    relative = np.diagonal(influence, axis1=1, axis2=2) / variances
    both = relative[:, :, None] + relative[:, None, :]
    whole = influence / root - 0.5 * (moment / root) * both
    return whole[(slice(None), *np.triu_indices(len(moment), 1))]


class Sensitivities(NamedTuple):
    """Derivatives (n, r + k, T) by the parameters of mean and variance, equation by equation."""

    e: np.ndarray  # of residuals
    h: np.ndarray  # of variances
    z: np.ndarray  # of standardised residuals
    scores: np.ndarray  # of the normal log-likelihood, by observation


def sensitivities(
    step: FirstStep,
    regressors: np.ndarray,
    e: np.ndarray,
    h: np.ndarray,
    variance: np.ndarray,
    presample: np.ndarray,
) -> Sensitivities:
    """Derivatives of the equations: they follow the recursion of the variances with other inputs.

    `regressors` have shape (T, r), residuals `e` and variances `h` (n, T), parameters `variance`
    (n, k). Variances `presample` (n,) do not depend on the parameters.
    """
    (n, steps), r, seen = e.shape, regressors.shape[1], ~np.isnan(e)
    e = np.where(seen, e, 0.0)
    x = torch.from_numpy(regressors.T)[:, None].expand(r, n, steps)
    dh_by = _direct_effects(step, x, *map(torch.from_numpy, (e, h, variance, presample, seen)))
    betas = torch.from_numpy(variance[:, variance.shape[1] - step.q :])
    decays = [b[:, None, None, None] for b in betas.unbind(1)]
    if not seen.all():
        # Derivatives are zero before the first value. The expected shock of a missing value
        # depends on h, which adds to the coefficients of its lags.
        dh_by = dh_by * torch.from_numpy(np.maximum.accumulate(seen, 1))
        decays = _with_missing(step, decays, torch.from_numpy(variance), torch.from_numpy(~seen))
    dh = linear_filter(dh_by[..., None, None], decays)[..., 0, 0].transpose(0, 1).numpy()
    de = np.zeros_like(dh)
    de[:, :r] = -regressors.T
    e, h = e[:, None], h[:, None]
    there = seen[:, None]
    dz = (de / np.sqrt(h) - 0.5 * e / np.sqrt(h) * dh / h) * there
    scores = (-0.5 * (1 / h - (e / h) ** 2) * dh - e / h * de) * there
    return Sensitivities(de, dh, dz, scores)


def _with_missing(
    step: FirstStep, decays: list[Tensor], variance: Tensor, missing: Tensor
) -> list[Tensor]:
    """Coefficients (n, T, 1, 1) of the lags of h, including expected shocks of missing values."""
    result = []
    for lag in range(1, max(step.p, step.q) + 1):
        decay = decays[lag - 1] if lag <= step.q else torch.zeros_like(decays[0])
        if lag <= step.p:
            pairs = enumerate(step.model().vol.expected)
            share = sum(w * variance[:, s * step.p + lag - 1] for s, w in pairs)
            before = lagged(missing.to(variance.dtype)[..., None, None], lag)
            decay = decay + share[:, None, None, None] * before  # type: ignore[index]
        result.append(decay)
    return result


def _direct_effects(
    step: FirstStep,
    x: Tensor,
    e: Tensor,
    h: Tensor,
    variance: Tensor,
    presample: Tensor,
    seen: Tensor,
) -> Tensor:
    """Derivatives (r + k, n, T) of the variance by each parameter, with past variances fixed."""
    vol = step.model().vol
    shocks = vol.shocks(e, h)
    by_mean = torch.zeros_like(x)
    effects = [torch.ones_like(e)]
    for s, (shock, expected) in enumerate(zip(shocks, vol.expected, strict=True)):
        slope = torch.where(e == 0, 0.0, 2 * shock / e)  # a shock is e², or e² if e < 0
        shock = torch.where(seen, shock, expected * h)
        for i in range(1, step.p + 1):
            weight = variance[:, s * step.p + i, None]
            by_mean = by_mean - weight * _delayed(slope * x, i, torch.zeros(()))
            effects.append(_delayed(shock, i, expected * presample[:, None]))
    effects += [_delayed(h, j, presample[:, None]) for j in range(1, step.q + 1)]
    return torch.cat([by_mean, torch.stack(effects)])


def _delayed(x: Tensor, lag: int, before: Tensor) -> Tensor:
    """Lag the last axis, with `before` in front."""
    shifted = lagged(x[..., None, None], lag)[..., 0, 0]
    return torch.where(torch.arange(x.shape[-1]) < lag, before, shifted)


def driver_sensitivities(
    dz: np.ndarray, z: np.ndarray, scale: np.ndarray, a: np.ndarray, b: np.ndarray
) -> np.ndarray:
    r"""Derivatives (n, k, T) of :math:`z^*_t = \sqrt{q_t} z_t` of the corrected model.

    `dz` (n, k, T) are derivatives of z (n, T), `scale` (n, T) are roots of the diagonal of Q.
    """
    # A row with a missing value has squares of one, which are constants.
    missing = np.isnan(z).any(0)
    square, q = torch.from_numpy(np.where(missing, 1.0, z**2)), torch.from_numpy(scale**2)
    z = np.nan_to_num(z)
    moved = torch.from_numpy(2 * z[:, None] * dz * ~missing) * q[:, None]
    zero = torch.zeros(())
    source = sum(w * _delayed(moved, i, zero) for i, w in enumerate(a, 1))
    coefficients = []
    for lag in range(1, max(len(a), len(b)) + 1):
        c = torch.zeros_like(square)
        if lag <= len(a):
            c = c + a[lag - 1] * _delayed(square, lag, zero)
        if lag <= len(b):
            c = c + b[lag - 1]
        coefficients.append(c[..., None, None])
    assert isinstance(source, Tensor)
    dq = linear_filter(source.transpose(0, 1)[..., None, None], coefficients)
    by_z = dq[..., 0, 0].transpose(0, 1).numpy()
    scale = scale[:, None]
    return scale * dz + z[:, None] * by_z / (2 * scale)
