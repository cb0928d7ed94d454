"""Log-likelihood of dynamic conditional correlations, with derivatives by their parameters.

A correlation recursion has two to four parameters and thousands of outputs: forward derivatives
cost less than adjoint ones, and also give the scores of every observation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from tsrnn.kernels import Cell, recurrence
from tsrnn.linear._optimise import Evaluation
from tsrnn.linear.dcc._specification import Order, Parts
from tsrnn.linear.garch._prepare import chunks

_NUMBERS = 2**18  # floats of a chunk's matrices over time: 2 MB, which stay in the cache


def evaluate_correlations(
    order: Order, z: Tensor, observed: Tensor, params: np.ndarray
) -> Evaluation:
    """Log-likelihood, gradient and minus the exact Hessian at parameters (U, k)."""
    parts = [
        _terms(order, z[part], observed[part], variables(torch.from_numpy(params[part])))
        for part in chunks(len(z), z.shape[1] * z.shape[2] ** 2, _NUMBERS)
    ]
    sums = [[p.sum(-1).numpy() for p in jet.parts] for jet in parts]  # type: ignore[union-attr]
    value, first, second = (np.concatenate(part, -1) for part in zip(*sums, strict=True))
    return Evaluation(value, first.T, -second.transpose(2, 0, 1))


def correlation_logliks(
    order: Order, z: Tensor, observed: Tensor, params: np.ndarray
) -> np.ndarray:
    """Log-likelihoods (U,) without derivatives."""
    sums = []
    for part in chunks(len(z), z.shape[1] * z.shape[2] ** 2, _NUMBERS):
        jets = constants(params[part])
        sums.append(_terms(order, z[part], observed[part], jets).value.sum(-1).numpy())
    return np.concatenate(sums)


def _terms(order: Order, z: Tensor, observed: Tensor, params: list[TensorJet]) -> TensorJet:
    """Correlations' part of the log-likelihood, by observation (U, T)."""
    a, b = params[: order.p], params[order.p :]
    path = run_correlations(z, observed, a, b, corrected=order.corrected)
    return correlation_density(path, z, observed)


class CorrelationPath(NamedTuple):
    """Q and its driver, with derivatives by the parameters."""

    target: TensorJet  # S, the mean to which Q reverts, (U, 1, n, n)
    q: TensorJet  # (U, T, n, n)
    driver: TensorJet  # u, whose outer products drive Q: z, or z* if corrected, (U, T, 1, n)


def run_correlations(
    z: Tensor,
    observed: Tensor,
    a: list[TensorJet],
    b: list[TensorJet],
    *,
    corrected: bool,
    target: Tensor | None = None,
    shift: Tensor | None = None,
) -> CorrelationPath:
    r"""Run the recursion of DCC (Engle 2002) or cDCC (Aielli 2013); without a, of CCC.

    .. math::
        Q_t = (1 - \sum a_i - \sum b_j) S + \sum_i a_i u_{t-i} u_{t-i}' + \sum_j b_j Q_{t-j}

    with u = z, or :math:`u_t = \operatorname{diag}(Q_t)^{1/2} z_t` if corrected; before the
    first observation :math:`u u'` and Q are S. S is the mean of :math:`u u'` rescaled to a unit
    diagonal, or the `target` (U, 1, n, n). Residuals z (U, T, n) are zero after the end of a
    series, NaN if missing; a and b have shape (U, 1, 1, 1). A `shift` (U, 1, n, n) is added to the
    mean of :math:`u u'`, to differentiate by it.

    In a row with a missing value, Q replaces :math:`u u'`; in the corrected model it is the
    expectation given the past. S is the mean over the other rows. Unlike the expectation given the
    rest of the row, this is linear in Q, and Q stays positive definite.
    """
    row, missing = z[:, :, None, :], torch.isnan(z).any(-1)
    gaps = bool(missing.any())
    if gaps:
        row, observed = torch.nan_to_num(row), observed & ~missing
    square = torch.where(missing[:, :, None, None], 1.0, row**2) if gaps else row**2
    driver = TensorJet(row) * _scale(square, a, b) if corrected else TensorJet(row)
    outer = driver.map(lambda x: x.transpose(-1, -2)) * driver
    s = _target(outer, observed, shift) if target is None else TensorJet(target)
    if not a:
        return CorrelationPath(s, s.map(lambda x: x.expand(-1, z.shape[1], -1, -1)), driver)
    if not gaps:
        return CorrelationPath(s, s + filtered(_weighted(a, outer - s), b), driver)
    # Where Q replaces the outer product, its lags have the sum of both coefficients.
    known = (~missing).to(z.dtype)[:, :, None, None]
    source = _weighted(a, (outer - s) * TensorJet(known))
    return CorrelationPath(s, s + filtered(source, with_shares(1 - known, a, b)), driver)


def correlations_at(
    parts: Parts, order: Order, z: np.ndarray, observed: np.ndarray
) -> CorrelationPath:
    """Run the recursion at given parameters, which include the correlations S."""
    target = torch.from_numpy(parts.target)[:, None]
    return run_correlations(
        torch.from_numpy(z), torch.from_numpy(observed), constants(parts.a), constants(parts.b),
        corrected=order.corrected, target=target,
    )  # fmt: skip


def _target(outer: TensorJet, observed: Tensor, shift: Tensor | None) -> TensorJet:
    counts = observed.to(outer.value.dtype)
    weights = (counts / counts.sum(1, keepdim=True))[:, :, None, None]
    moment = outer.map(lambda x: (x * weights).sum(-3, keepdim=True))
    return normalised(moment if shift is None else moment + TensorJet(shift))


def _scale(square: Tensor, a: list[TensorJet], b: list[TensorJet]) -> TensorJet:
    r"""Roots of the diagonal of Q in the corrected model, shape (U, T, 1, n).

    `square` (U, T, 1, n) are squared residuals. The diagonal has a recursion without the other
    elements, :math:`q_t = 1 - \sum a_i - \sum b_j + \sum_i a_i z_{t-i}^2 q_{t-i} +
    \sum_j b_j q_{t-j}`, which runs here in deviations from 1.
    """
    deviation = filtered(_weighted(a, TensorJet(square - 1)), with_shares(square, a, b))
    return TensorJet(1 + deviation.value, deviation.first, deviation.second).power(0.5)


def with_shares(share: Tensor, a: list[TensorJet], b: list[TensorJet]) -> list[TensorJet]:
    """Coefficients of the lags of Q, :math:`a_i s_{t-i} + b_i` with shares s (U, T, 1, 1 or n)."""
    none = TensorJet(torch.zeros(()))
    coefficients = []
    for lag in range(1, max(len(a), len(b)) + 1):
        c = a[lag - 1] * TensorJet(lagged(share, lag)) if lag <= len(a) else none
        coefficients.append(c + b[lag - 1] if lag <= len(b) else c)
    return coefficients


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


def correlation_density(result: CorrelationPath, z: Tensor, observed: Tensor) -> TensorJet:
    r"""Correlations' part of the log-likelihood, by observation, (U, T); zero if not observed.

    .. math::
        -\tfrac12 (\log |R_t| + z_t' R_t^{-1} z_t - z_t' z_t) =
        -\tfrac12 (\log |Q_t| - \sum_i \log q_{ii,t} + u_t' Q_t^{-1} u_t - z_t' z_t)

    with :math:`u_t = \operatorname{diag}(Q_t)^{1/2} z_t`. NaN if Q is not positive definite. The
    likelihood of a row with missing values is that of its observed values.
    """
    q, seen = result.q, ~torch.isnan(z)
    if not seen.all():
        # A missing value counts as an independent zero of variance one, which adds no term.
        here = seen.to(z.dtype)
        q = q * TensorJet(here[..., :, None] * here[..., None, :])
        q, z = q + TensorJet(torch.diag_embed(1 - here)), torch.nan_to_num(z)
    diagonal = diagonal_of(q)
    u = diagonal.power(0.5) * TensorJet(z[:, :, None, :])
    scale = diagonal.log().map(lambda x: 0.5 * x.sum((-1, -2)))
    terms = _gaussian(q, u.map(lambda x: x[..., 0, :])) + scale
    terms = terms + TensorJet(0.5 * (z**2).sum(-1))
    return terms.map(lambda x: torch.where(observed, x, 0.0))


def diagonal_of(matrix: TensorJet) -> TensorJet:
    """Diagonals as rows (..., 1, n)."""
    return matrix.map(lambda x: torch.diagonal(x, dim1=-2, dim2=-1)[..., None, :])


def _gaussian(q: TensorJet, u: TensorJet) -> TensorJet:
    """Minus half of log|Q| + u' Q^-1 u, (U, T)."""
    # No exceptions: a matrix that is not definite makes only its observation NaN.
    factor, failed = torch.linalg.cholesky_ex(q.value)
    inverse = torch.linalg.inv_ex(q.value)[0]
    w = _apply(inverse, u.value)
    log_det = 2 * torch.diagonal(factor, dim1=-2, dim2=-1).log().sum(-1)
    value = torch.where(failed == 0, -0.5 * (log_det + (w * u.value).sum(-1)), torch.nan)
    if q.first is None or u.first is None:
        return TensorJet(value)
    slope = -0.5 * (inverse - w[..., :, None] * w[..., None, :])
    rotated = inverse @ q.first
    # The derivative of w = Q^-1 u is Q^-1 (u_i - Q_i w).
    force = u.first - _apply(q.first, w)
    moved = _apply(inverse, force)
    first = (slope * q.first).sum((-1, -2)) - (w * u.first).sum(-1)
    flat = rotated.flatten(-2), rotated.transpose(-1, -2).flatten(-2)
    second = 0.5 * (flat[0][:, None] * flat[1]).sum(-1) - (force[:, None] * moved).sum(-1)
    if q.second is not None:
        second = second + (slope * q.second).sum((-1, -2))
    if u.second is not None:
        second = second - (w * u.second).sum(-1)
    return TensorJet(value, first, second)


def _apply(matrix: Tensor, vector: Tensor) -> Tensor:
    return (matrix @ vector[..., None])[..., 0]


def filtered(source: TensorJet, coefficients: Sequence[TensorJet]) -> TensorJet:
    """Filter with derivatives, which follow the same recurrence with other sources."""
    if not coefficients:
        return source
    fixed = [c.value for c in coefficients]
    value = linear_filter(source.value, fixed)
    first = second = None
    changes = [c.first for c in coefficients]
    if source.first is not None or any(change is not None for change in changes):
        terms = [
            change * lagged(value, j) for j, change in enumerate(changes, 1) if change is not None
        ]
        first = linear_filter(_total(source.first, terms), fixed)
        terms = []
        for j, c in enumerate(coefficients, 1):
            if c.first is not None:
                cross = c.first[:, None] * lagged(first, j)[None]
                terms.append(cross + cross.transpose(0, 1))
            if c.second is not None:
                terms.append(c.second * lagged(value, j))
        if terms or source.second is not None:
            second = linear_filter(_total(source.second, terms), fixed)
    return TensorJet(value, first, second)


def _total(source: Tensor | None, terms: list[Tensor]) -> Tensor:
    terms = terms if source is None else [source, *terms]
    return sum(terms[1:], start=terms[0])


def linear_filter(source: Tensor, coefficients: Sequence[Tensor]) -> Tensor:
    r"""Run :math:`x_t = u_t + c_{1t} x_{t-1} + \dots` from zero, with sources u (..., U, T, r, s).

    The coefficients of each lag broadcast to (U, T, r, s).
    """
    if not coefficients:
        return source
    units, steps, r, s = source.shape[-4:]
    lanes = source.reshape(-1, units, steps, r * s).permute(1, 2, 0, 3)
    copies = lanes.shape[2]
    inputs = [lanes.reshape(units, steps, -1)]
    for c in coefficients:
        lags = c.expand(units, steps, r, s).reshape(units, steps, 1, r * s)
        inputs.append(lags.expand(-1, -1, copies, -1).reshape(units, steps, -1))
    params = source.new_zeros(0, copies * r * s)
    states, _ = recurrence(
        _filter_cell(len(coefficients)), torch.stack(inputs, 2), params, outputs_only=True
    )
    return states.reshape(units, steps, copies, r * s).permute(2, 0, 1, 3).reshape(source.shape)


@cache
def _filter_cell(lags: int) -> Cell:
    """``x_t = u_t + c_1t x_{t-1} + ... + c_rt x_{t-r}`` with the coefficients as inputs."""

    def step(
        state: tuple[Tensor, ...], inputs: tuple[Tensor, ...], params: tuple[Tensor, ...]
    ) -> tuple[Tensor, ...]:
        new, *coefficients = inputs
        for coefficient, past in zip(coefficients, state, strict=True):
            new = new + coefficient * past
        return (new, *state[:-1])

    return Cell(f"filter-{lags}", n=lags, m=1 + lags, p=0, step=step, outputs=1)


def lagged(x: Tensor, lag: int) -> Tensor:
    """Lag time, the third axis from the end, with zeros in front."""
    shifted = torch.zeros_like(x)
    if lag < x.shape[-3]:
        shifted[..., lag:, :, :] = x[..., :-lag, :, :]
    return shifted


@dataclass(frozen=True, eq=False)
class TensorJet:
    """Tensor with derivatives by k parameters; None if all are zero."""

    value: Tensor  # (...)
    first: Tensor | None = None  # (k, ...)
    second: Tensor | None = None  # (k, k, ...)

    def __add__(self, other: TensorJet) -> TensorJet:
        return TensorJet(
            self.value + other.value, _sum(self.first, other.first), _sum(self.second, other.second)
        )

    def __sub__(self, other: TensorJet) -> TensorJet:
        return self + other.map(torch.neg)

    def __mul__(self, other: TensorJet) -> TensorJet:
        cross = _outer(self.first, other.first)
        return TensorJet(
            self.value * other.value,
            _sum(_times(self.first, other.value), _times(other.first, self.value)),
            _sum(
                _sum(_times(self.second, other.value), _times(other.second, self.value)),
                None if cross is None else cross + cross.transpose(0, 1),
            ),
        )

    def map(self, linear: Callable[[Tensor], Tensor]) -> TensorJet:
        """Apply a linear function of the last dimensions."""
        value, *derivatives = self.parts
        return TensorJet(linear(value), *(None if d is None else linear(d) for d in derivatives))

    def power(self, exponent: float) -> TensorJet:
        """Raise to a power, element by element."""
        x, e = self.value, exponent
        slope = e * x ** (e - 1)
        bend = _times(_outer(self.first, self.first), e * (e - 1) * x ** (e - 2))
        return TensorJet(x**e, _times(self.first, slope), _sum(_times(self.second, slope), bend))

    def log(self) -> TensorJet:
        """Natural logarithm, element by element."""
        x = self.value
        bend = _times(_outer(self.first, self.first), -(x**-2))
        return TensorJet(x.log(), _times(self.first, 1 / x), _sum(_times(self.second, 1 / x), bend))

    @property
    def parts(self) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """Value and derivatives."""
        return self.value, self.first, self.second


def variables(params: Tensor) -> list[TensorJet]:
    """Parameters (U, k) as k jets of shape (U, 1, 1, 1), each with its unit derivative."""
    units, k = params.shape
    unit_vectors = torch.eye(k, dtype=params.dtype)[:, :, None, None, None, None]
    return [
        TensorJet(params[:, i, None, None, None], unit_vectors[i].expand(k, units, 1, 1, 1))
        for i in range(k)
    ]


def constants(params: np.ndarray) -> list[TensorJet]:
    """Parameters (U, k) as k jets of shape (U, 1, 1, 1) without derivatives."""
    return [
        TensorJet(column) for column in torch.from_numpy(params)[:, :, None, None, None].unbind(1)
    ]


def _sum(a: Tensor | None, b: Tensor | None) -> Tensor | None:
    if a is None or b is None:
        return b if a is None else a
    return a + b


def _times(derivative: Tensor | None, factor: Tensor) -> Tensor | None:
    return None if derivative is None else derivative * factor


def _outer(a: Tensor | None, b: Tensor | None) -> Tensor | None:
    return None if a is None or b is None else a[:, None] * b[None]
