r"""Standard errors of all steps together (Engle and Sheppard 2001, Newey and McFadden 1994).

Every estimate is, up to smaller terms, its true value plus a sum over time of influences; those
of a later step contain those of the earlier ones. For a step with scores s(theta, nu) that takes
nu from before, with A the derivative of their sum by theta and C that by nu,

.. math:: \psi_{\theta, t} = - A^{-1} (s_t + C \psi_{\nu, t}),

and the covariance of everything is :math:`\sum_t \psi_t \psi_t'`: the sandwich of the block
triangular matrix of all steps.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from tsrnn.linear.dcc._equations import FirstStep
from tsrnn.linear.dcc._fit import Order
from tsrnn.linear.dcc._likelihood import density, paths
from tsrnn.linear.dcc._moment import normal_theory, own_moment, recolouring, scaled
from tsrnn.linear.dcc._sensitivities import Sensitivities, driver_sensitivities, sensitivities
from tsrnn.linear.dcc._tensor_jets import TensorJet, variables


class Unit(NamedTuple):
    """One fitted series without padding.

    Attributes
    ----------
    regressors : array of shape (T, r)
    e, h : arrays of shape (n, T)
    variance : array of shape (n, k)
    presample : array of shape (n,)
    hessians : array of shape (n, k or r + k, k or r + k)
        Of the univariate likelihoods; with the mean where that is estimated jointly.
    fixed : boolean array of that shape without the last axis
    correlation : array of shape (p + q,)
    correlation_fixed : boolean array of shape (p + q,)
    integrated : bool
        Whether the last of them follows from the others, all summing to one.
    """

    regressors: np.ndarray
    e: np.ndarray
    h: np.ndarray
    variance: np.ndarray
    presample: np.ndarray
    hessians: np.ndarray
    fixed: np.ndarray
    correlation: np.ndarray
    correlation_fixed: np.ndarray
    integrated: bool


class Matrices(NamedTuple):
    """What inference needs of one series, K parameters: first step, correlations, a and b.

    Attributes
    ----------
    hessian : array of shape (K, K)
        Block by block, as if earlier steps were known.
    covariance : array of shape (K, K)
        Of all steps together; zero for fixed parameters.
    """

    hessian: np.ndarray
    covariance: np.ndarray


class _Correlation(NamedTuple):
    """The correlation step and its derivatives.

    `by_z` (k, T, n) and `by_moment` (k, n, n) are those of the sum of the k scores, by the
    standardised residuals and by the moment that S estimates.
    """

    scores: np.ndarray  # (T, k)
    hessian: np.ndarray  # (k, k)
    by_z: np.ndarray
    by_moment: np.ndarray
    driver: np.ndarray  # (T, n)
    scale: np.ndarray  # (T, n), the driver is scale times z
    q: np.ndarray  # (T, n, n)
    moment: np.ndarray  # (n, n), mean of outer products of the driver
    moment_slope: np.ndarray  # (k, n, n), of that by the k parameters


def two_step(step: FirstStep, order: Order, unit: Unit) -> Matrices:
    """Matrices of one series."""
    sens = sensitivities(step, unit.regressors, unit.e, unit.h, unit.variance, unit.presample)
    blocks, first = zip(*(_equation(step, unit, sens, i) for i in range(len(unit.e))), strict=True)
    z = (unit.e / np.sqrt(unit.h)).T
    found = _correlation(order, z, unit.correlation)
    found = _on_face(found) if unit.integrated else found
    a, b = unit.correlation[: order.p], unit.correlation[order.p :]
    moment = own_moment(found.driver, found.q, found.moment, a, b)
    by_z = np.einsum("ktn,nmt->nkm", found.by_z, sens.z)
    inherited = sum(psi @ c.T for psi, c in zip(first, by_z, strict=True))
    inherited = inherited + np.einsum("tij,kij->tk", moment, found.by_moment)
    free = ~unit.correlation_fixed
    dynamic = _solved(found.hessian, found.scores + inherited, free)
    rho = _correlations(order, found, sens, first, moment, dynamic, (a, b), z.T)
    psi = np.hstack([*first, rho, dynamic])
    blocks = (*blocks, normal_theory(found.moment, len(z), recolouring(a, b)), found.hessian)
    return Matrices(_block_diagonal(blocks), psi.T @ psi)


def _equation(
    step: FirstStep, unit: Unit, sens: Sensitivities, i: int
) -> tuple[np.ndarray, np.ndarray]:
    """Hessian (m, m) and influences (T, m) of the m parameters of an equation."""
    scores, hessian, free = sens.scores[i].T, unit.hessians[i], ~unit.fixed[i]
    r = unit.regressors.shape[1]
    if step.joint or r == 0:
        return hessian, _solved(hessian, scores, free)
    x, e = unit.regressors, unit.e[i]
    inner = x.T @ x
    mean = np.linalg.solve(inner, (x * e[:, None]).T).T
    # The cross derivative by its expectation given the past, as in the information matrix.
    slopes = sens.h[i] / unit.h[i]
    cross = -0.5 * slopes[r:] @ slopes[:r].T
    variance = _solved(hessian, scores[:, r:] + mean @ cross.T, free)
    return _block_diagonal((-inner / (e**2).mean(), hessian)), np.hstack([mean, variance])


def _solved(hessian: np.ndarray, scores: np.ndarray, free: np.ndarray) -> np.ndarray:
    """Influences (T, k) from scores and what they inherit, zero for fixed parameters."""
    influences = np.zeros_like(scores)
    size = 1 / np.sqrt(np.abs(np.diagonal(hessian)[free]))  # parameters have units of their own
    inside = size[:, None] * hessian[np.ix_(free, free)] * size
    influences[:, free] = -np.linalg.solve(inside, size[:, None] * scores[:, free].T).T * size
    return influences


def _correlation(order: Order, z: np.ndarray, params: np.ndarray) -> _Correlation:
    n, k = z.shape[1], len(params)
    leaf = torch.tensor(z[None], requires_grad=True)
    shift = torch.zeros(1, 1, n, n, dtype=torch.float64, requires_grad=True)
    observed = torch.ones(1, len(z), dtype=torch.bool)
    jets = variables(torch.tensor(params[None])) if k else []
    result = paths(
        leaf, observed, jets[: order.p], jets[order.p :], corrected=order.corrected, shift=shift
    )
    terms = density(result, leaf, observed)
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
    driver = result.driver.value[0, :, 0].detach().numpy()
    q = result.q.value[0].detach().numpy()
    scale = np.sqrt(np.diagonal(q, axis1=1, axis2=2)) if order.corrected else np.ones_like(z)
    moment = driver.T @ driver / len(z)
    slope = _moment_slope(result.driver, k)
    return _Correlation(scores, hessian, by_z, by_moment, driver, scale, q, moment, slope)


def _on_face(found: _Correlation) -> _Correlation:
    """Derivatives along the face where the last parameter is one minus the others."""
    along = np.eye(len(found.hessian))
    along[-1] = -1.0
    along[:, -1] = 0.0
    return found._replace(
        scores=found.scores @ along,
        hessian=along.T @ found.hessian @ along,
        by_z=np.einsum("ki,ktn->itn", along, found.by_z),
        by_moment=np.einsum("ki,kmn->imn", along, found.by_moment),
        moment_slope=np.einsum("ki,kmn->imn", along, found.moment_slope),
    )


def _moment_slope(driver: TensorJet, k: int) -> np.ndarray:
    """Derivative (k, n, n) of the mean of outer products of the driver."""
    steps, n = driver.value.shape[1], driver.value.shape[3]
    if driver.first is None:
        return np.zeros((k, n, n))
    u, du = driver.value[0, :, 0].detach(), driver.first[:, 0, :, 0].detach()
    half = torch.einsum("ktn,tm->knm", du, u).numpy() / steps
    return half + half.swapaxes(1, 2)


def _correlations(
    order: Order,
    found: _Correlation,
    sens: Sensitivities,
    first: tuple[np.ndarray, ...],
    own: np.ndarray,
    dynamic: np.ndarray,
    coefficients: tuple[np.ndarray, np.ndarray],
    z: np.ndarray,
) -> np.ndarray:
    """Influences (T, pairs) on the off-diagonals of S."""
    du = sens.z
    if order.corrected:
        du = driver_sensitivities(sens.z, z, found.scale.T, *coefficients)
    inherited = np.zeros_like(own)
    for i, psi in enumerate(first):
        # Row i of the moment: the mean of u_i u_j moves with u_i; its diagonal twice.
        row = psi @ (du[i] @ found.driver / len(found.driver))
        inherited[:, i, :] += row
        inherited[:, :, i] += row
    inherited += np.einsum("tk,kij->tij", dynamic, found.moment_slope)
    return scaled(own + inherited, found.moment)


def _block_diagonal(blocks: tuple[np.ndarray, ...]) -> np.ndarray:
    size = sum(len(block) for block in blocks)
    whole, start = np.zeros((size, size)), 0
    for block in blocks:
        stop = start + len(block)
        whole[start:stop, start:stop] = block
        start = stop
    return whole
