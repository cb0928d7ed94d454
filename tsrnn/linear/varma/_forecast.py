"""VARMA forecasts and theory: moments and errors ahead, impulse responses, simulation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from tsrnn.linear._inference import delta_method
from tsrnn.linear._multivariate import draw_normal
from tsrnn.linear.varma._filter import State, first_state
from tsrnn.linear.varma._prepare import Sample, offsets, trend_of
from tsrnn.linear.varma._specification import Shape
from tsrnn.linear.varma._system import System, system


class Forecast(NamedTuple):
    """Means (U, h, n) and covariances (U, h, n, n) of the next rows."""

    mean: np.ndarray
    cov: np.ndarray


def forecast_moments(matrices: System, state: State, effect: np.ndarray) -> Forecast:
    """Forecasts as many steps ahead as there are rows of `effect`, w_t of shape (U, h, n).

    The Kalman filter over rows of missing values.
    """
    T, K, sigma = matrices
    units, h, n = effect.shape
    shocks = K @ sigma @ K.swapaxes(1, 2)
    mean, cov = state.mean.copy(), state.cov
    result = Forecast(np.empty((units, h, n)), np.empty((units, h, n, n)))
    for k in range(h):
        mean[:, :n] += effect[:, k]
        result.mean[:, k] = mean[:, :n]
        result.cov[:, k] = cov[:, :n, :n] + sigma
        mean = (T @ mean[..., None])[..., 0]
        cov = T @ cov @ T.swapaxes(1, 2) + shocks
    return result


def draw_errors(
    matrices: System, cov: np.ndarray, shape: tuple[int, int], generator: np.random.Generator
) -> np.ndarray:
    """Draw errors (U, n, h, paths) of forecasts of all steps, for shape = (h, paths).

    Parameters
    ----------
    matrices : System
    cov : array of shape (U, d, d)
        Of the state after the last row.
    shape : tuple of int
    generator : numpy.random.Generator
    """
    T, K, sigma = matrices
    (h, paths), (units, n) = shape, sigma.shape[:2]
    state = draw_normal(cov, generator.standard_normal((*cov.shape[:2], paths)))
    errors = np.empty((units, n, h, paths))
    for k in range(h):
        shocks = draw_normal(sigma, generator.standard_normal((units, n, paths)))
        errors[:, :, k] = state[:, :n] + shocks
        state = T @ state + K @ shocks
    return errors


def responses(shape: Shape, params: np.ndarray, h: int, orthogonalised: bool) -> np.ndarray:
    """Responses (U, h + 1, n, n) of target i to a shock to j, after 0, 1, ..., h steps."""
    with torch.no_grad():
        values = _response_function(shape, h, orthogonalised)(torch.tensor(params)).numpy()
    return values.reshape(-1, h + 1, shape.n, shape.n)


def response_errors(
    shape: Shape, params: np.ndarray, cov: np.ndarray, h: int, orthogonalised: bool
) -> np.ndarray:
    """Standard errors (U, h + 1, n, n) of the responses by the delta method."""
    _, spread = delta_method(_response_function(shape, h, orthogonalised), params, cov)
    variances = np.diagonal(spread, axis1=1, axis2=2)
    return np.sqrt(variances).reshape(-1, h + 1, shape.n, shape.n)


def _response_function(shape: Shape, h: int, orthogonalised: bool) -> Callable[[Tensor], Tensor]:
    """Psi_k = Theta_k + Phi_1 Psi_{k-1} + ... + Phi_p Psi_{k-p}, flat, from parameters (U, k)."""

    def function(theta: Tensor) -> Tensor:
        ar, ma = theta[:, shape.at_ar], theta[:, shape.at_ma]
        psi = [torch.eye(shape.n, dtype=theta.dtype).expand(len(theta), -1, -1)]
        for k in range(1, h + 1):
            terms = [ar[:, :, i] @ psi[k - 1 - i] for i in range(min(k, shape.p))]
            if k <= shape.q:
                terms.append(ma[:, :, k - 1])
            psi.append(sum(terms, torch.zeros_like(psi[0])))
        result = torch.stack(psi, 1)
        if orthogonalised:
            chol = torch.zeros_like(psi[0])
            rows, columns = (torch.from_numpy(part) for part in shape.triangle)
            entries = theta[:, torch.from_numpy(shape.at_chol)]
            chol = chol.index_put((torch.arange(len(theta))[:, None], rows, columns), entries)
            result = result @ chol[:, None]
        return result.flatten(1)

    return function


def simulate_paths(
    shape: Shape, params: np.ndarray, steps: int, generator: np.random.Generator
) -> np.ndarray:
    """Gaussian paths (U, steps, n), their first state a stationary draw.

    Parameters
    ----------
    shape : Shape
        Without exogenous columns.
    params : array of shape (U, k)
        Of stationary models.
    steps : int
    generator : numpy.random.Generator
    """
    shape = replace(shape, exact=True)
    coefficients, units, n = shape.unpack(params), len(params), shape.n
    T, K, _ = system(shape, coefficients)
    design = trend_of(shape, np.zeros(units, int), max(steps, 2))
    nothing = np.full((units, steps, n), np.nan)
    rows = np.full(units, steps)
    first = first_state(coefficients, Sample(shape, nothing, design, np.zeros((units, n)), rows))
    effect = offsets(shape, design, coefficients.design)
    z = generator.standard_normal((units, shape.d, 1))
    state = first.mean + draw_normal(first.cov, z)[..., 0]
    shocks = generator.standard_normal((units, steps, n)) @ coefficients.chol.swapaxes(1, 2)
    y = np.empty_like(nothing)
    for t in range(steps):
        state[:, :n] += effect[:, t]
        y[:, t] = state[:, :n] + shocks[:, t]
        state = (T @ state[..., None] + K @ shocks[:, t, :, None])[..., 0]
    return y
