"""Starting values: Hannan and Rissanen's regression on autocovariances."""

from __future__ import annotations

from functools import cache, partial

import numpy as np

from tsrnn.kernels import Cell, Lanes, sums
from tsrnn.linear.arma._cells import Fields, as_tensor, detrended, mul, named_cell
from tsrnn.linear.arma._polynomials import (
    from_partial,
    partial_autocorrelations,
    reflected,
    with_inverse_root,
)
from tsrnn.linear.arma._prepare import Prepared
from tsrnn.linear.arma._specification import Form

_ANGLES = np.pi * np.arange(1, 8) / 8  # of pairs of roots
_MOST = 0.97  # partial autocorrelation of a start

Roots = tuple[complex, ...]


def sample_autocovariances(prepared: Prepared, lanes: Lanes) -> np.ndarray:
    """Sums of u_t u_{t-k}, shape (lags, N), of least-squares residuals u.

    Lags are as many as a long autoregression and the moving average need.
    """
    form, mean, n_rows = prepared.form, prepared.mean, prepared.inputs.shape[1]
    p, q = form.p, form.q
    # A long autoregression grows with the length so that its errors approach the innovations.
    long_order = min(max(p + q + 4, round(2 * n_rows ** (1 / 3))), n_rows - 1 - q)
    n_lags = long_order + q
    if prepared.noise is not None:
        form, lanes, mean = Form(0, 0), Lanes(prepared.noise), mean[:, :0]
    cell = _lagged_products_cell(form, n_lags)
    params = np.zeros((lanes.n, form.n_params))  # the cell reads the mean's only
    params[:, : form.n_mean] = mean
    zero = np.zeros((lanes.n, n_lags))
    return sums(cell, lanes, params, zero, terms=cell.field_names[0][n_lags:], order=0).value


@cache
def _lagged_products_cell(form: Form, n_lags: int) -> Cell:
    state = (*(f"u{k}" for k in range(1, n_lags + 1)), *(f"c{k}" for k in range(n_lags + 1)))
    step = partial(_lagged_products_step, form, n_lags)
    return named_cell(f"arma_lags_{form.label}_{n_lags}", step, state, form.inputs, form.params)


def _lagged_products_step(
    form: Form, n_lags: int, state: Fields, inputs: Fields, params: Fields
) -> Fields:
    lags = state[:n_lags]
    u = detrended(form, inputs, params[: form.n_mean])
    u = mul(inputs[-1] if form.masked else 1, u)
    moved = [u, *lags][:n_lags]
    return tuple(as_tensor(x, u) for x in (*moved, u * u, *(u * lag for lag in lags)))


def hannan_rissanen(gamma: np.ndarray, p: int, q: int) -> np.ndarray:
    r"""Estimate phi and theta, (N, p + q), from autocovariances (L + q + 1, N).

    A long autoregression of order L gives innovations :math:`\varepsilon`. The coefficients are
    those of the regression of :math:`u_t` on :math:`u_{t-1}, \dots, u_{t-p}, \varepsilon_{t-1},
    \dots, \varepsilon_{t-q}` (Hannan and Rissanen, 1982), whose moments follow from the
    autocovariances, moved into the stationary and invertible region.
    """
    gamma = gamma / gamma[0]
    if q == 0:
        phi, theta = _levinson(gamma[: p + 1])[0], gamma[:0]
    else:
        a, variance = _levinson(gamma[: len(gamma) - q])
        moments = _moments(gamma, a, variance, p, q)
        solution = np.linalg.solve(*moments)[..., 0].T
        phi, theta = solution[:p], solution[p:]
    return np.concatenate([_inside(phi), -_inside(-theta)]).T


def _levinson(gamma: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Autoregression (L, N) with the given autocovariances, and its innovation variance."""
    phi, variance = gamma[:0], gamma[0].copy()
    for k in range(1, len(gamma)):
        pacf = (gamma[k] - (phi * gamma[k - 1 : 0 : -1]).sum(0)) / variance
        pacf = np.clip(pacf, -0.999, 0.999)  # missing values can break definiteness
        phi = np.concatenate([phi - pacf * phi[::-1], pacf[None]])
        variance = variance * (1 - pacf**2)
    return phi, variance


def _moments(
    gamma: np.ndarray, a: np.ndarray, variance: np.ndarray, p: int, q: int
) -> tuple[np.ndarray, np.ndarray]:
    """Normal equations of the second regression, (N, p + q, p + q) and (N, p + q, 1)."""
    n = a.shape[1]

    def cross(k: int) -> np.ndarray:
        """Covariance of u_t and eps_{t-k}; none with later innovations."""
        if k < 0:
            return np.zeros(n)
        return gamma[k] - (a * gamma[k + 1 : k + 1 + len(a)]).sum(0)

    matrix, right = np.zeros((n, p + q, p + q)), np.zeros((n, p + q, 1))
    for i in range(p):
        right[:, i, 0] = gamma[i + 1]
        for j in range(p):
            matrix[:, i, j] = gamma[abs(i - j)]
        for j in range(q):
            matrix[:, i, p + j] = matrix[:, p + j, i] = cross(j - i)
    for j in range(q):
        matrix[:, p + j, p + j] = variance
        right[:, p + j, 0] = cross(j + 1)
    matrix[:, range(p + q), range(p + q)] *= 1 + 1e-6  # common roots make it singular
    return matrix, right


def _inside(phi: np.ndarray) -> np.ndarray:
    """Move coefficients of an AR into the stationary region."""
    pacf = partial_autocorrelations(reflected(phi)[0])
    return from_partial(np.clip(np.nan_to_num(pacf), -_MOST, _MOST))


def further_starts(gamma: np.ndarray, p: int, q: int) -> list[np.ndarray]:
    """Starts near other maxima that likelihoods of ARMA models are known to have.

    They are a moving average with a root close to the unit circle, and models of lower order with
    a nearly common factor on both sides: a real root near 1 or -1, or a pair of roots at several
    angles.
    """
    factors: list[tuple[Roots, Roots]] = []  # inverse roots of the AR and of the MA
    for sign in (-1.0, 1.0):
        if q:
            factors.append(((), (0.95 * sign,)))
        if p and q:
            factors += [((0.8 * sign,), (0.5 * sign,)), ((0.7 * sign,), (0.99 * sign,))]
    for angle in _ANGLES:
        turn = complex(np.cos(angle), np.sin(angle))
        if q >= 2:
            factors.append(((), _pair(0.95 * turn)))
        if p >= 2 and q >= 2:
            factors.append((_pair(0.8 * turn), _pair(0.98 * turn)))
    starts = []
    for ar, ma in factors:
        lower = hannan_rissanen(gamma, p - len(ar), q - len(ma))
        phi, theta = lower[:, : p - len(ar)].T, lower[:, p - len(ar) :].T
        starts.append(np.concatenate([_times(phi, ar), -_times(-theta, ma)]).T)
    return starts


def _pair(root: complex) -> Roots:
    return root, root.conjugate()


def _times(phi: np.ndarray, roots: Roots) -> np.ndarray:
    """Multiply a polynomial by factors with inverse roots whose product is real."""
    for root in roots:
        phi = with_inverse_root(phi, root)
    return phi.real


def drawn_starts(n: int, p: int, q: int, count: int) -> list[np.ndarray]:
    """Random starts (n, p + q); every unit and every fit has the same ones."""
    rng, starts = np.random.default_rng(0), []
    for _ in range(count):
        phi, theta = (from_partial(rng.uniform(-_MOST, _MOST, (m, 1))) for m in (p, q))
        starts.append(np.tile(np.concatenate([phi, -theta])[:, 0], (n, 1)))
    return starts
