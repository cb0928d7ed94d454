r"""Exact derivatives of the log-likelihood, from sensitivities and adjoints of the states.

Sensitivities of h_t to the parameters run on the same network, a sequence a parameter. With the
derivatives of the density they give scores and the expected information. Adjoints
:math:`\lambda_t` of h_t, by the transposed network backward in time, complete the Hessian: h is
bilinear in (Theta, vech(e e')) and in (Phi, h), and vech(e e') is quadratic in the mean.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tsrnn.linear.vech._density import Density, curvature, information, square_slopes, symmetric
from tsrnn.linear.vech._likelihood import Forward, Sample
from tsrnn.linear.vech._recursion import adjoints, lagged, states
from tsrnn.linear.vech._structure import Structure


class Sensitivities(NamedTuple):
    """Derivatives with respect to the k parameters, those of the mean first.

    Attributes
    ----------
    states : array of shape (T, N, k)
        Of h.
    squares : array of shape (T, N, n r)
        Of vech(e e'), which depends on the mean alone.
    jacobians : list of arrays
        Of the coefficients of every block.
    """

    states: np.ndarray
    squares: np.ndarray
    jacobians: list[np.ndarray]


def sensitivities(structure: Structure, sample: Sample, run: Forward) -> Sensitivities:
    """Run the network once more, a sequence a parameter."""
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
    """What the coefficients of every block multiply; None for a constant."""
    first: list[np.ndarray | None] = [] if run.coefs.intercept is None else [None]
    return [*first, *run.past_squares, *run.past_states]


def scores(sample: Sample, dens: Density, sens: Sensitivities) -> np.ndarray:
    """Derivative of every observation's log-density, (T, k)."""
    result = np.einsum("tak,at->tk", sens.states, dens.by_h)
    direct = np.einsum("it,tm->tim", dens.scaled, sample.regressors)
    result[:, : sample.n_mean] += direct.reshape(len(result), -1)
    return result


def gradient(sample: Sample, dens: Density, sens: Sensitivities) -> np.ndarray:
    """Sum of the scores, (k,)."""
    by_h = np.ascontiguousarray(dens.by_h.T).ravel()
    result = by_h @ sens.states.reshape(len(by_h), -1)
    result[: sample.n_mean] += (dens.scaled @ sample.regressors).ravel()
    return result


def expected(sample: Sample, dens: Density, sens: Sensitivities) -> np.ndarray:
    """Expected information (k, k), conditional on the past at every time."""
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
        through = symmetric(_square_adjoints(run, by_state).T)
        matrix[:m, :m] += _outer(dens.precision - through, sample.regressors)
        weights = np.einsum("ait,tm->taim", cross, sample.regressors)
        rows = weights.reshape(-1, m).T @ sens.states.reshape(len(weights) * len(by_h), -1)
        _add(matrix, 0, -rows)
    _add_bends(matrix, structure, run, by_state, m)
    _add_products(matrix, structure, by_state, sens, m)
    return (matrix + matrix.T) / 2


def _square_adjoints(run: Forward, by_state: np.ndarray) -> np.ndarray:
    """Derivative of the log-likelihood with respect to vech(e e') through later h, (T, N)."""
    turned = by_state[::-1]
    parts = [lagged(turned, i) @ matrix for i, matrix in enumerate(run.coefs.theta, start=1)]
    return np.sum(parts, axis=0)[::-1]


def _add_bends(matrix: np.ndarray, structure: Structure, run: Forward, by_state: np.ndarray,
               begin: int) -> None:  # fmt: skip
    """Second derivatives of the coefficients themselves."""
    for block, past in zip(structure.blocks, _pasts(run), strict=True):
        weight = by_state.sum(0) if past is None else by_state.T @ past
        end = begin + block.size
        matrix[begin:end, begin:end] -= block.second(weight)
        begin = end


def _add_products(matrix: np.ndarray, structure: Structure, by_state: np.ndarray,
                  sens: Sensitivities, begin: int) -> None:  # fmt: skip
    """Theta times the moving squares, Phi times the moving states."""
    p, q = len(structure.theta), len(structure.phi)
    constants = len(structure.blocks) - p - q
    begin += sum(block.size for block in structure.blocks[:constants])
    lags = [*range(1, p + 1), *range(1, q + 1)]
    for place, (lag, jacobian) in enumerate(zip(lags, sens.jacobians[constants:], strict=True)):
        moving = sens.squares if place < p else sens.states
        steps, size, lanes = moving.shape
        late = by_state[lag:].T @ moving[: steps - lag].reshape(steps - lag, size * lanes)
        _add(matrix, begin, -jacobian.reshape(len(jacobian), -1) @ late.reshape(size * size, lanes))
        begin += len(jacobian)


def _add(matrix: np.ndarray, begin: int, rows: np.ndarray) -> None:
    """Add a product of derivatives: rows that begin there, and the same as columns."""
    height, width = rows.shape
    matrix[begin : begin + height, :width] += rows
    matrix[:width, begin : begin + height] += rows.T


def _quadratic(moving: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Sum over time of S' W S for S (T, N, k) and W (N, N, T)."""
    k = moving.shape[2]
    weighted = np.ascontiguousarray(weights.transpose(2, 0, 1)) @ moving
    return moving.reshape(-1, k).T @ weighted.reshape(-1, k)


def _outer(weights: np.ndarray, regressors: np.ndarray) -> np.ndarray:
    """Sum over time of W x x' for W (n, n, T), by coefficients of the mean."""
    size = len(weights) * regressors.shape[1]
    sums = np.einsum("ijt,tm->imjt", weights, regressors) @ regressors
    return sums.reshape(size, size)
