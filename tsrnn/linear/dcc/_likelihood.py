"""Dynamic conditional correlations of standardised residuals, and their log-likelihood."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from tsrnn.linear.dcc._filter import filtered, lagged
from tsrnn.linear.dcc._tensor_jets import TensorJet


class Paths(NamedTuple):
    """What the recursion gives, with derivatives by the parameters.

    Attributes
    ----------
    target : TensorJet of shape (U, 1, n, n)
        S, the matrix that Q returns to.
    q : TensorJet of shape (U, T, n, n)
    driver : TensorJet of shape (U, T, 1, n)
        u, whose outer products drive Q: z, or z* of the corrected model.
    """

    target: TensorJet
    q: TensorJet
    driver: TensorJet


def paths(
    z: Tensor,
    observed: Tensor,
    a: list[TensorJet],
    b: list[TensorJet],
    *,
    corrected: bool,
    target: Tensor | None = None,
    shift: Tensor | None = None,
) -> Paths:
    r"""Run the recursion of DCC (Engle 2002) or cDCC (Aielli 2013); of CCC without a.

    .. math::
        Q_t = (1 - \sum a_i - \sum b_j) S + \sum_i a_i u_{t-i} u_{t-i}' + \sum_j b_j Q_{t-j}

    with u = z, or :math:`u_t = \operatorname{diag}(Q_t)^{1/2} z_t` if corrected; before the
    first observation both :math:`u u'` and Q are S. S is the mean of :math:`u u'` rescaled to a
    unit diagonal.

    Parameters
    ----------
    z : Tensor of shape (U, T, n)
        Standardised residuals; zero after the end of a series.
    observed : boolean Tensor of shape (U, T)
    a, b : lists of TensorJets of shape (U, 1, 1, 1)
    corrected : bool
    target : Tensor of shape (U, 1, n, n), optional
        S, in place of the estimate.
    shift : Tensor of shape (U, 1, n, n), optional
        Added to the mean of :math:`u u'`: to differentiate by the moment that it estimates.
    """
    row = z[:, :, None, :]
    driver = TensorJet(row) * _scale(row, a, b) if corrected else TensorJet(row)
    outer = driver.map(lambda x: x.transpose(-1, -2)) * driver
    s = _target(outer, observed, shift) if target is None else TensorJet(target)
    if not a:
        return Paths(s, s.map(lambda x: x.expand(-1, z.shape[1], -1, -1)), driver)
    q = s + filtered(_weighted(a, outer - s), b)
    return Paths(s, q, driver)


def _target(outer: TensorJet, observed: Tensor, shift: Tensor | None) -> TensorJet:
    counts = observed.to(outer.value.dtype)
    weights = (counts / counts.sum(1, keepdim=True))[:, :, None, None]
    moment = outer.map(lambda x: (x * weights).sum(-3, keepdim=True))
    return normalised(moment if shift is None else moment + TensorJet(shift))


def _scale(row: Tensor, a: list[TensorJet], b: list[TensorJet]) -> TensorJet:
    r"""Roots of the diagonal of Q in the corrected model, (U, T, 1, n).

    It follows :math:`q_t = 1 - \sum a_i - \sum b_j + \sum_i a_i z_{t-i}^2 q_{t-i} +
    \sum_j b_j q_{t-j}` by itself, here as the deviation from 1.
    """
    square = row**2
    none = TensorJet(torch.zeros(()))
    coefficients = []
    for lag in range(1, max(len(a), len(b)) + 1):
        c = a[lag - 1] * TensorJet(lagged(square, lag)) if lag <= len(a) else none
        coefficients.append(c + b[lag - 1] if lag <= len(b) else c)
    deviation = filtered(_weighted(a, TensorJet(square - 1)), coefficients)
    return TensorJet(1 + deviation.value, deviation.first, deviation.second).power(0.5)


def _weighted(a: list[TensorJet], x: TensorJet) -> TensorJet:
    """Sum over lags of a_i x_{t-i}."""
    total = a[0] * x.map(lambda part: lagged(part, 1))
    for lag, weight in enumerate(a[1:], 2):
        total = total + weight * x.map(lambda part, lag=lag: lagged(part, lag))  # type: ignore[misc]
    return total


def normalised(matrix: TensorJet) -> TensorJet:
    """Scale to a unit diagonal."""
    scale = diagonal_of(matrix).power(-0.5)
    return scale.map(lambda x: x.transpose(-1, -2)) * matrix * scale


def density(result: Paths, z: Tensor, observed: Tensor) -> TensorJet:
    r"""Log-likelihood that correlations add, by observation, (U, T); zero where not observed.

    .. math::
        -\tfrac12 (\log |R_t| + z_t' R_t^{-1} z_t - z_t' z_t) =
        -\tfrac12 (\log |Q_t| - \sum_i \log q_{ii,t} + u_t' Q_t^{-1} u_t - z_t' z_t)

    with :math:`u_t = \operatorname{diag}(Q_t)^{1/2} z_t`. NaN where Q is not positive definite.
    """
    diagonal = diagonal_of(result.q)
    u = diagonal.power(0.5) * TensorJet(z[:, :, None, :])
    scale = diagonal.log().map(lambda x: 0.5 * x.sum((-1, -2)))
    terms = _gaussian(result.q, u.map(lambda x: x[..., 0, :])) + scale
    terms = terms + TensorJet(0.5 * (z**2).sum(-1))
    return terms.map(lambda x: torch.where(observed, x, 0.0))


def diagonal_of(matrix: TensorJet) -> TensorJet:
    """Diagonals as rows (..., 1, n)."""
    return matrix.map(lambda x: torch.diagonal(x, dim1=-2, dim2=-1)[..., None, :])


def _gaussian(q: TensorJet, u: TensorJet) -> TensorJet:
    """Minus half of log|Q| + u' Q^-1 u, (U, T)."""
    factor, failed = torch.linalg.cholesky_ex(q.value)
    inverse = torch.linalg.inv_ex(q.value)[0]
    w = _apply(inverse, u.value)
    log_det = 2 * torch.diagonal(factor, dim1=-2, dim2=-1).log().sum(-1)
    value = torch.where(failed == 0, -0.5 * (log_det + (w * u.value).sum(-1)), torch.nan)
    if q.first is None or u.first is None:
        return TensorJet(value)
    slope = -0.5 * (inverse - w[..., :, None] * w[..., None, :])
    turned = inverse @ q.first
    # The solution w = Q^-1 u moves by Q^-1 (u_i - Q_i w).
    force = u.first - _apply(q.first, w)
    moved = _apply(inverse, force)
    first = (slope * q.first).sum((-1, -2)) - (w * u.first).sum(-1)
    flat = turned.flatten(-2), turned.transpose(-1, -2).flatten(-2)
    second = 0.5 * (flat[0][:, None] * flat[1]).sum(-1) - (force[:, None] * moved).sum(-1)
    if q.second is not None:
        second = second + (slope * q.second).sum((-1, -2))
    if u.second is not None:
        second = second - (w * u.second).sum(-1)
    return TensorJet(value, first, second)


def _apply(matrix: Tensor, vector: Tensor) -> Tensor:
    return (matrix @ vector[..., None])[..., 0]
