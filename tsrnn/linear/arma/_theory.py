"""What the parameters of an ARMA imply: responses, autocovariances, paths."""

from __future__ import annotations

import numpy as np

from tsrnn.linear._multivariate import draw_normal
from tsrnn.linear.arma._entries import dot
from tsrnn.linear.arma._filter_cell import observation, system
from tsrnn.linear.arma._polynomials import impulse_response_derivatives, impulse_responses
from tsrnn.linear.arma._specification import Specification
from tsrnn.linear.arma._state import filter_form, inputs_of, trend_of
from tsrnn.linear.arma._stationary import stationary_variance


def responses(
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
    own = slice(spec.n_mean, spec.n_mean + spec.p + spec.q)
    phi, theta = params.T[own][: spec.p], params.T[own][spec.p :]
    psi = impulse_responses(phi, theta, h)
    slopes = impulse_response_derivatives(phi, theta, h)
    for _ in range(spec.d):
        psi, slopes = psi.cumsum(0), slopes.cumsum(1)
    inner = covariance[:, own, own]
    variance = np.einsum("ahn,nab,bhn->nh", slopes, inner, slopes)
    return psi.T, np.sqrt(variance)


def autocovariances(spec: Specification, params: np.ndarray, n_lags: int) -> np.ndarray:
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


def simulate(
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
    state: list[np.ndarray] = [np.zeros(n) for _ in range(spec.d)]
    if spec.exact:
        state += list(_draw_state(form.r, stationary_variance(phi, theta), n, rng))
    else:
        state += [np.zeros(n) for _ in range(form.r)]
    e = rng.standard_normal((n_rows, n))
    u = np.empty((n_rows, n))
    for t in range(n_rows):
        u[t] = dot(Z, state) + e[t]
        state = [dot(row, state) + k * e[t] for row, k in zip(T, K, strict=True)]
    inputs = inputs_of(spec, np.zeros((n, n_rows)), exog, np.zeros(n))
    return u.T * np.sqrt(params[:, -1:]) + trend_of(form, params, inputs)


def _draw_state(r: int, P: list, n: int, rng: np.random.Generator) -> np.ndarray:
    matrix = np.zeros((n, r, r))
    for i in range(r):
        for j in range(r):
            matrix[:, i, j] = P[i][j]
    return draw_normal(matrix, rng.standard_normal((n, r, 1)))[:, :, 0].T
