"""ARMA forecasts and theory: moments and errors ahead, responses, autocovariances, simulation."""

from __future__ import annotations

import numpy as np

from tsrnn.linear._family import Ahead
from tsrnn.linear._multivariate import draw_normal
from tsrnn.linear.arma._cells import (
    Matrix,
    add,
    dot,
    observation,
    product,
    stationary_variance,
    symmetric,
    system,
)
from tsrnn.linear.arma._filter import filter_form, inputs_of, trend_of
from tsrnn.linear.arma._polynomials import psi_weight_derivatives, psi_weights
from tsrnn.linear.arma._specification import Specification


def forecast_moments(
    spec: Specification,
    params: np.ndarray,
    state: np.ndarray,
    ahead: Ahead,
) -> tuple[np.ndarray, np.ndarray]:
    r"""Means and variances of the next h values, each (n, h).

    .. math:: \hat y_{t+k} = x_{t+k}'\beta + Z T^{k-1} a_{t+1}, \qquad
              V_{t+k} = \sigma^2 (Z P_{t+k} Z' + 1), \quad P_{t+k+1} = T P_{t+k} T' + K K'

    Parameters
    ----------
    spec : Specification
    params : array of shape (n, k)
    state : array of shape (n, fields)
    ahead : Ahead
        Of n units.
    """
    h = ahead.h
    form = filter_form(spec)
    _, phi, theta = form.split(tuple(params.T))
    (T, K), Z, n = system(form, phi, theta), observation(form), form.dimension
    a, P = list(state.T[:n]), symmetric(n, state.T[n:])
    across = [list(column) for column in zip(*T, strict=True)]
    mean, variance = np.empty((len(params), h)), np.empty((len(params), h))
    for k in range(h):
        mean[:, k] = dot(Z, a)
        variance[:, k] = add(dot(Z, [dot(row, Z) for row in P]), 1)
        a = [dot(row, a) for row in T]
        TPT = product(product(T, P), across)
        P = [[add(TPT[i][j], K[i] * K[j]) for j in range(n)] for i in range(n)]
    inputs = inputs_of(spec, np.zeros((len(params), h)), ahead.exog, ahead.steps)
    return mean + trend_of(form, params, inputs), variance * params[:, -1:]


def draw_errors(
    spec: Specification,
    params: np.ndarray,
    state: np.ndarray,
    shape: tuple[int, int],
    rng: np.random.Generator,
) -> np.ndarray:
    """Errors (n, h, paths) of forecasts of all steps, for shape = (h, paths).

    Deviations of the state from its mean are drawn with their variance after the last row, which is
    zero unless rows are missing or few.

    Parameters
    ----------
    spec : Specification
    params : array of shape (n, k)
    state : array of shape (n, fields)
    shape : tuple of int
    rng : numpy.random.Generator
    """
    form, (h, paths), n = filter_form(spec), shape, len(params)
    _, phi, theta = form.split(tuple(params.T[:, :, None]))
    (T, K), Z = system(form, phi, theta), observation(form)
    P = _stacked(symmetric(form.dimension, state.T[form.dimension :]), n)
    fields = list(draw_normal(P, rng.standard_normal((n, form.dimension, paths))).swapaxes(0, 1))
    e, errors = rng.standard_normal((n, h, paths)), np.empty((n, h, paths))
    for k in range(h):
        errors[:, k] = dot(Z, fields) + e[:, k]
        fields = [dot(row, fields) + gain * e[:, k] for row, gain in zip(T, K, strict=True)]
    return errors * np.sqrt(params[:, -1])[:, None, None]


def responses_with_errors(
    spec: Specification, params: np.ndarray, covariance: np.ndarray, h: int
) -> tuple[np.ndarray, np.ndarray]:
    """Responses of y to an innovation of one, and their standard errors, (n, h + 1).

    Parameters
    ----------
    spec : Specification
    params : array of shape (n, k)
    covariance : array of shape (n, k, k)
        Of the parameters.
    h : int
        Last step after the innovation.
    """
    arma = slice(spec.n_mean, spec.n_mean + spec.p + spec.q)
    phi, theta = params.T[arma][: spec.p], params.T[arma][spec.p :]
    psi = psi_weights(phi, theta, h)
    slopes = psi_weight_derivatives(phi, theta, h)
    for _ in range(spec.d):
        psi, slopes = psi.cumsum(0), slopes.cumsum(1)
    inner = covariance[:, arma, arma]
    variance = np.einsum("ahn,nab,bhn->nh", slopes, inner, slopes)
    return psi.T, np.sqrt(variance)


def model_autocovariances(spec: Specification, params: np.ndarray, n_lags: int) -> np.ndarray:
    r"""Autocovariances of u for lags 0 to n_lags, (n, n_lags + 1).

    .. math:: \gamma_0 = \sigma^2 (P_{00} + 1), \quad \gamma_k = \sigma^2 Z T^{k-1} G,
              \quad G = T P Z' + K

    Parameters
    ----------
    spec : Specification
        With d = 0.
    params : array of shape (n, k)
    n_lags : int
    """
    form = filter_form(spec)
    _, phi, theta = form.split(tuple(params.T))
    T, K = system(form, phi, theta)
    column = [row[0] for row in stationary_variance(phi, theta)]
    G = [dot(row, column) + k for row, k in zip(T, K, strict=True)]
    gamma = np.zeros((len(params), n_lags + 1))
    gamma[:, 0] = column[0] + 1
    for k in range(1, n_lags + 1):
        gamma[:, k] = G[0]
        G = [dot(row, G) for row in T]
    return gamma * params[:, -1:]


def simulate_paths(
    spec: Specification,
    params: np.ndarray,
    n_rows: int,
    rng: np.random.Generator,
    exog: np.ndarray | None = None,
) -> np.ndarray:
    """Gaussian paths (n, n_rows), from levels of zero and the presample of the likelihood.

    Parameters
    ----------
    spec : Specification
    params : array of shape (n, k)
    n_rows : int
    rng : numpy.random.Generator
    exog : array of shape (n, n_rows, m), optional
    """
    form, n = filter_form(spec), len(params)
    _, phi, theta = form.split(tuple(params.T))
    (T, K), Z = system(form, phi, theta), observation(form)
    state = list(np.zeros((form.dimension, n)))
    if spec.exact:
        P = _stacked(stationary_variance(phi, theta), n)
        state[spec.d :] = draw_normal(P, rng.standard_normal((n, form.r, 1)))[:, :, 0].T
    e = rng.standard_normal((n_rows, n))
    u = np.empty((n_rows, n))
    for t in range(n_rows):
        u[t] = dot(Z, state) + e[t]
        state = [dot(row, state) + k * e[t] for row, k in zip(T, K, strict=True)]
    inputs = inputs_of(spec, np.zeros((n, n_rows)), exog, np.zeros(n))
    return u.T * np.sqrt(params[:, -1:]) + trend_of(form, params, inputs)


def _stacked(matrix: Matrix, n: int) -> np.ndarray:
    """Array (n, d, d) of a matrix whose entries are arrays (n,) or numbers."""
    return np.stack([np.stack([np.zeros(n) + x for x in row], -1) for row in matrix], 1)
