r"""Log-likelihood of the vech model of one series, a linear network, with exact derivatives.

.. math::
    e_t = r_t - B x_t, \quad
    h_t = b + \sum_i \Theta_i vech(e_{t-i} e_{t-i}') + \sum_j \Phi_j h_{t-j}

with presample values of vech(e e') and h at s, the mean of vech(e e') of least squares.

Sensitivities of h_t to the parameters run on the same network, with a sequence for each
parameter. With the derivatives of the density they give scores and the expected information.
Adjoints :math:`\lambda_t` of h_t, by the transposed network backward in time, complete the
Hessian: h is bilinear in (Theta, vech(e e')) and in (Phi, h), and vech(e e') is quadratic in the
mean.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from tsrnn.kernels import cells, recurrence
from tsrnn.linear._estimates import Derivatives
from tsrnn.linear._multivariate import companion
from tsrnn.linear._optimise import Evaluation
from tsrnn.linear.vech._density import (
    Density,
    curvature,
    gaussian_density,
    information,
    square_slopes,
    squares,
    symmetric,
)
from tsrnn.linear.vech._prepare import Sample
from tsrnn.linear.vech._specification import Model
from tsrnn.linear.vech._structure import Coefficients, Structure, coefficients

_UNROLLED = 8  # largest dimension whose recurrence is compiled element by element


def evaluation(
    structure: Structure, sample: Sample, stationary: bool
) -> Callable[[np.ndarray, np.ndarray, bool], Evaluation]:
    """Function `evaluate` for `maximise`, with a lane for each start of one series."""

    def evaluate(params: np.ndarray, lanes: np.ndarray, newton: bool) -> Evaluation:
        n, k = params.shape
        result = Evaluation(np.full(n, -np.inf), np.zeros((n, k)), np.zeros((n, k, k)))
        # A distant trial may overflow: its value is not finite then, and refused.
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            for i in range(n):
                run = forward(structure, sample, params[i])
                dens = None if stationary and persistence(run.coefs) >= 1 else run.density()
                if dens is None:
                    continue
                sens = sensitivities(structure, sample, run)
                result.value[i] = dens.value.sum()
                result.gradient[i] = gradient(sample, dens, sens)
                if newton:
                    result.curvature[i] = exact(structure, sample, run, dens, sens)
                else:
                    result.curvature[i] = expected(sample, dens, sens)
        return result

    return evaluate


def logliks(structure: Structure, sample: Sample, params: np.ndarray) -> np.ndarray:
    """Log-likelihoods (n,) at parameters (n, k); -inf if a covariance is not definite."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        densities = [forward(structure, sample, row).density() for row in params]
    return np.array([-np.inf if dens is None else dens.value.sum() for dens in densities])


def derivatives(structure: Structure, sample: Sample, params: np.ndarray) -> Derivatives | None:
    """Log-likelihood with all matrices of inference; None if a covariance is not definite."""
    run = forward(structure, sample, params)
    dens = run.density()
    if dens is None:
        return None
    sens = sensitivities(structure, sample, run)
    by_time = scores(sample, dens, sens)
    return Derivatives(
        float(dens.value.sum()),
        by_time.sum(0),
        -exact(structure, sample, run, dens, sens),
        by_time.T @ by_time,
        expected(sample, dens, sens),
    )


def persistence(coefs: Coefficients | Model) -> float:
    """Spectral radius of the recursion of expected covariances: stationary below one."""
    return float(np.abs(np.linalg.eigvals(forecast_companion(coefs.theta, coefs.phi))).max())


def forecast_companion(
    theta: Sequence[np.ndarray] | np.ndarray, phi: Sequence[np.ndarray] | np.ndarray
) -> np.ndarray:
    """Companion matrix of Theta_i + Phi_i, the transition of expected covariances."""
    sums = np.zeros((max(len(theta), len(phi)), *theta[0].shape))
    for matrices in (theta, phi):
        for total, matrix in zip(sums, matrices, strict=False):
            total += matrix
    return companion(sums[None])[0]


@dataclass(frozen=True, eq=False)
class Forward:
    """Forward pass of the network over a series."""

    coefs: Coefficients
    errors: np.ndarray  # (n, T)
    states: np.ndarray  # h, (N, T)
    past_squares: list[np.ndarray]  # inputs (T, N) of Theta_i: vech(e e') by lag, minus a target
    past_states: list[np.ndarray]  # inputs (T, N) of Phi_j: h by lag, minus a target

    def density(self) -> Density | None:
        """Log-density of the errors; None unless all covariances are positive definite."""
        return gaussian_density(self.errors, self.states)


def forward(structure: Structure, sample: Sample, params: np.ndarray) -> Forward:
    """Run the network forward at parameters (k,)."""
    coefs = coefficients(structure, sample.n_mean, params)
    errors = sample.response - sample.regressors @ coefs.mean.T
    errors = np.ascontiguousarray(errors.T)
    # With targeting the network runs in deviations from s, without a constant.
    centre = sample.presample if coefs.intercept is None else np.zeros_like(sample.presample)
    start = sample.presample - centre
    deviations = squares(errors).T - centre
    past_squares = [lagged(deviations, i + 1, start) for i in range(len(coefs.theta))]
    inputs = np.zeros_like(deviations) if coefs.intercept is None else coefs.intercept
    for past, matrix in zip(past_squares, coefs.theta, strict=True):
        inputs = inputs + past @ matrix.T
    before = np.tile(start, (len(coefs.phi), 1))
    path = states(coefs.phi, inputs[..., None], before)[..., 0]
    past_states = [lagged(path, j + 1, start) for j in range(len(coefs.phi))]
    whole = np.ascontiguousarray((path + centre).T)
    return Forward(coefs, errors, whole, past_squares, past_states)


class Sensitivities(NamedTuple):
    """Derivatives by the k parameters, which begin with the mean's."""

    states: np.ndarray  # of h, (T, N, k)
    squares: np.ndarray  # of vech(e e') by the mean's parameters, (T, N, n r)
    jacobians: list[np.ndarray]  # of the coefficients, block by block


def sensitivities(structure: Structure, sample: Sample, run: Forward) -> Sensitivities:
    """Run the network on derivatives, with a sequence for each parameter."""
    steps, (size, m) = len(sample.response), (len(run.states), sample.n_mean)
    slopes = square_slopes(run.errors)
    squares = -np.einsum("ait,tm->taim", slopes, sample.regressors).reshape(steps, size, m)
    pairs = zip(structure.blocks, run.coefs.parts, strict=True)
    jacobians = [block.jacobian(part) for block, part in pairs]
    inputs = np.zeros((steps, size, m + structure.size))
    for i, matrix in enumerate(run.coefs.theta, start=1):
        inputs[..., :m] += lagged(matrix @ squares, i)
    begin = m
    for past, jacobian in zip(_pasts(run), jacobians, strict=True):
        end = begin + len(jacobian)
        if past is None:
            inputs[..., begin:end] = jacobian.T
        else:
            flat = np.moveaxis(jacobian, 0, -1).swapaxes(0, 1).reshape(size, -1)
            inputs[..., begin:end] = (past @ flat).reshape(steps, size, -1)
        begin = end
    return Sensitivities(states(run.coefs.phi, inputs), squares, jacobians)


def _pasts(run: Forward) -> list[np.ndarray | None]:
    """Inputs that the coefficients of each block multiply; None for the constant."""
    first: list[np.ndarray | None] = [] if run.coefs.intercept is None else [None]
    return [*first, *run.past_squares, *run.past_states]


def scores(sample: Sample, dens: Density, sens: Sensitivities) -> np.ndarray:
    """Derivatives (T, k) of the log-density of each observation."""
    result = np.einsum("tak,at->tk", sens.states, dens.by_h)
    direct = np.einsum("it,tm->tim", dens.scaled, sample.regressors)
    result[:, : sample.n_mean] += direct.reshape(len(result), -1)
    return result


def gradient(sample: Sample, dens: Density, sens: Sensitivities) -> np.ndarray:
    """Sum (k,) of the scores."""
    by_h = np.ascontiguousarray(dens.by_h.T).ravel()
    result = by_h @ sens.states.reshape(len(by_h), -1)
    result[: sample.n_mean] += (dens.scaled @ sample.regressors).ravel()
    return result


def expected(sample: Sample, dens: Density, sens: Sensitivities) -> np.ndarray:
    """Expected information (k, k), each observation given its past."""
    matrix = _quadratic(sens.states, information(dens.precision))
    if m := sample.n_mean:
        matrix[:m, :m] += _outer(dens.precision, sample.regressors)
    return matrix


def exact(
    structure: Structure, sample: Sample, run: Forward, dens: Density, sens: Sensitivities
) -> np.ndarray:
    """Minus the Hessian (k, k)."""
    by_h, cross = curvature(dens)
    by_state = adjoints(run.coefs.phi, dens.by_h.T)
    matrix = _quadratic(sens.states, by_h)
    m = sample.n_mean
    if m:
        # vech(e e') acts on the likelihood through later h.
        reverse = by_state[::-1]
        late = [lagged(reverse, i) @ matrix for i, matrix in enumerate(run.coefs.theta, start=1)]
        through = symmetric(np.sum(late, axis=0)[::-1].T)
        matrix[:m, :m] += _outer(dens.precision - through, sample.regressors)
        weights = np.einsum("ait,tm->taim", cross, sample.regressors)
        rows = weights.reshape(-1, m).T @ sens.states.reshape(len(weights) * len(by_h), -1)
        _add(matrix, 0, -rows)
    # Second derivatives of the coefficients.
    begin = m
    for block, past in zip(structure.blocks, _pasts(run), strict=True):
        weight = by_state.sum(0) if past is None else by_state.T @ past
        end = begin + block.size
        matrix[begin:end, begin:end] -= block.second(weight)
        begin = end
    # Cross derivatives: Theta multiplies squares, Phi multiplies states, and both vary.
    p, q = len(structure.theta), len(structure.phi)
    constants = len(structure.blocks) - p - q
    begin = m + sum(block.size for block in structure.blocks[:constants])
    lags = [*range(1, p + 1), *range(1, q + 1)]
    for place, (lag, jacobian) in enumerate(zip(lags, sens.jacobians[constants:], strict=True)):
        moving = sens.squares if place < p else sens.states
        steps, size, lanes = moving.shape
        late = by_state[lag:].T @ moving[: steps - lag].reshape(steps - lag, size * lanes)
        _add(matrix, begin, -jacobian.reshape(len(jacobian), -1) @ late.reshape(size * size, lanes))
        begin += len(jacobian)
    return (matrix + matrix.T) / 2


def _add(matrix: np.ndarray, begin: int, rows: np.ndarray) -> None:
    """Add rows from row `begin` on, and their transpose as columns, in place."""
    height, width = rows.shape
    matrix[begin : begin + height, :width] += rows
    matrix[:width, begin : begin + height] += rows.T


def _quadratic(moving: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Sum over time of S' W S for S (T, N, k) and W (N, N, T)."""
    k = moving.shape[2]
    weighted = np.ascontiguousarray(weights.transpose(2, 0, 1)) @ moving
    return moving.reshape(-1, k).T @ weighted.reshape(-1, k)


def _outer(weights: np.ndarray, regressors: np.ndarray) -> np.ndarray:
    """Sum over time of the Kronecker products of W (n, n, T) and x x', by the mean's parameters."""
    size = len(weights) * regressors.shape[1]
    sums = np.einsum("ijt,tm->imjt", weights, regressors) @ regressors
    return sums.reshape(size, size)


def states(
    weights: list[np.ndarray], inputs: np.ndarray, before: np.ndarray | None = None
) -> np.ndarray:
    r"""Run :math:`h_t = u_t + \sum_j W_j h_{t-j}` on k sequences u (T, N, k) in one batch.

    Presample states `before` (q, N), latest first, are zero by default.
    """
    q = len(weights)
    if q == 0:
        return inputs
    steps, size, lanes = inputs.shape
    fields = inputs
    if q > 1:
        fields = np.zeros((steps, q * size, lanes))
        fields[:, :size] = inputs
    initial = np.zeros((q * size, lanes))
    if before is not None:
        initial += before.reshape(-1, 1)
    matrix = companion(np.array(weights)[None])[0]
    if q * size <= _UNROLLED:  # sequences are the units of one layer
        params = np.repeat(matrix.reshape(-1, 1), lanes, 1)
        return _run(matrix, fields[None], params, initial[None])[0].numpy()[:, :size]
    # Sequences are a batch, with a matrix product at each step.
    batch, params = fields.transpose(2, 0, 1)[..., None], matrix.reshape(-1, 1)
    result = _run(matrix, batch, params, initial.T[..., None])
    return result[..., 0].permute(1, 2, 0).contiguous().numpy()[:, :size]


def _run(matrix: np.ndarray, fields: np.ndarray, params: np.ndarray, initial: np.ndarray) -> Tensor:
    inputs, weights, start = (
        torch.from_numpy(np.ascontiguousarray(array)) for array in (fields, params, initial)
    )
    return recurrence(cells.linear(len(matrix)), inputs, weights, start)[0]


def adjoints(weights: list[np.ndarray], gradient: np.ndarray) -> np.ndarray:
    r"""Run :math:`\lambda_t = g_t + \sum_j W_j' \lambda_{t+j}` backward over (T, N)."""
    reverse = states([matrix.T for matrix in weights], gradient[::-1, :, None].copy())
    return reverse[::-1, :, 0]


def lagged(sequence: np.ndarray, lag: int, before: np.ndarray | float = 0.0) -> np.ndarray:
    """Lag a sequence (T, ...) by `lag` steps, with `before` in front."""
    result = np.empty_like(sequence)
    result[:lag] = before
    result[lag:] = sequence[: len(sequence) - lag]
    return result
