"""Starting values: Hannan and Rissanen's regression on autocovariances."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from tsrnn.kernels import Cell, Fields, Lanes, sums
from tsrnn.linear.arma._entries import as_tensor, mul
from tsrnn.linear.arma._filter_cell import detrended
from tsrnn.linear.arma._form import Form
from tsrnn.linear.arma._polynomials import (
    from_partial,
    partial_autocorrelations,
    reflected,
    with_inverse_root,
)

_ANGLES = np.pi * np.arange(1, 8) / 8  # of pairs of roots
_MOST = 0.97  # partial autocorrelation of a start


def autocovariances(form: Form, lanes: Lanes, mean: np.ndarray, n_lags: int) -> np.ndarray:
    """Sums of u_t u_{t-k} for k = 0, ..., n_lags, shape (n_lags + 1, N).

    Parameters
    ----------
    form : Form
    lanes : Lanes
        Of the form's inputs.
    mean : array of shape (N, m)
        Coefficients of the mean; the other parameters do not matter.
    n_lags : int
    """
    cell = _lagged_products(form, n_lags)
    params = np.zeros((lanes.n, form.n_params))
    params[:, : form.n_mean] = mean
    zero = np.zeros((lanes.n, n_lags))
    return sums(cell, lanes, params, zero, terms=cell.field_names[0][n_lags:], order=0).value


def hannan_rissanen(gamma: np.ndarray, p: int, q: int) -> np.ndarray:
    r"""Estimate phi and theta from autocovariances.

    A long autoregression gives innovations :math:`\varepsilon`; the coefficients are those of
    :math:`u_t` on :math:`u_{t-1}, \dots, u_{t-p}, \varepsilon_{t-1}, \dots,
    \varepsilon_{t-q}` (Hannan and Rissanen, 1982), all of whose moments follow from
    autocovariances. They are moved into the stationary and invertible region.

    Parameters
    ----------
    gamma : array of shape (L + q + 1, N)
        Autocovariances, with a long autoregression of order L.
    p, q : int

    Returns
    -------
    array of shape (N, p + q)
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


def further_starts(gamma: np.ndarray, p: int, q: int) -> list[np.ndarray]:
    """Starts near other maxima, of the kinds that likelihoods of ARMA models are known to have.

    A moving average with a root close to the unit circle, and models of lower order with a
    factor on both sides that almost cancels: a real root at the positive and the negative end,
    or a pair of roots at several angles.

    Parameters
    ----------
    gamma, p, q :
        As for `hannan_rissanen`.

    Returns
    -------
    list of arrays of shape (N, p + q)
    """
    starts = []
    for ar, ma in _factors(p, q):
        lower = hannan_rissanen(gamma, p - len(ar), q - len(ma))
        phi, theta = lower[:, : p - len(ar)].T, lower[:, p - len(ar) :].T
        starts.append(np.concatenate([_times(phi, ar), -_times(-theta, ma)]).T)
    return starts


def drawn_starts(n: int, p: int, q: int, count: int) -> list[np.ndarray]:
    """Starts (n, p + q) drawn at random, the same for all units and in every fit."""
    rng, starts = np.random.default_rng(0), []
    for _ in range(count):
        phi, theta = (from_partial(rng.uniform(-_MOST, _MOST, (m, 1))) for m in (p, q))
        starts.append(np.tile(np.concatenate([phi, -theta])[:, 0], (n, 1)))
    return starts


def _factors(p: int, q: int) -> list[tuple[tuple[complex, ...], tuple[complex, ...]]]:
    """Inverse roots of the AR and of the MA that starts of order (p, q) have besides."""
    found: list[tuple[tuple[complex, ...], tuple[complex, ...]]] = []
    for sign in (-1.0, 1.0):
        if q:
            found.append(((), (0.95 * sign,)))
        if p and q:
            found += [((0.8 * sign,), (0.5 * sign,)), ((0.7 * sign,), (0.99 * sign,))]
    for angle in _ANGLES:
        turn = complex(np.cos(angle), np.sin(angle))
        if q >= 2:
            found.append(((), _pair(0.95 * turn)))
        if p >= 2 and q >= 2:
            found.append((_pair(0.8 * turn), _pair(0.98 * turn)))
    return found


def _pair(root: complex) -> tuple[complex, complex]:
    return root, root.conjugate()


def _times(phi: np.ndarray, roots: tuple[complex, ...]) -> np.ndarray:
    """Coefficients of a polynomial with further inverse roots, whose product is real."""
    for root in roots:
        phi = with_inverse_root(phi, root)
    return phi.real


def long_order(n_rows: int, p: int, q: int) -> int:
    """Order of the long autoregression."""
    return min(max(p + q + 4, round(2 * n_rows ** (1 / 3))), n_rows - 1 - q)


@cache
def _lagged_products(form: Form, n_lags: int) -> Cell:
    state = (*(f"u{k}" for k in range(1, n_lags + 1)), *(f"c{k}" for k in range(n_lags + 1)))
    return Cell(
        f"arma_lags_{form.label}_{n_lags}",
        len(state),
        len(form.inputs),
        form.n_params,
        _Lags(form, n_lags),
        names=(state, form.inputs, form.params),
    )


@dataclass(frozen=True)
class _Lags:
    form: Form
    n_lags: int

    def __call__(self, state: Fields, inputs: Fields, params: Fields) -> Fields:
        lags = state[: self.n_lags]
        u = detrended(self.form, inputs, params[: self.form.n_mean])
        u = mul(inputs[-1] if self.form.masked else 1, u)
        moved = [u, *lags][: self.n_lags]
        return tuple(as_tensor(x, u) for x in (*moved, u * u, *(u * lag for lag in lags)))


def _levinson(gamma: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Autoregression (L, N) with the given autocovariances, and its innovation variance."""
    phi, variance = gamma[:0], gamma[0].copy()
    for k in range(1, len(gamma)):
        partial = (gamma[k] - (phi * gamma[k - 1 : 0 : -1]).sum(0)) / variance
        partial = np.clip(partial, -0.999, 0.999)  # missing values can break definiteness
        phi = np.concatenate([phi - partial * phi[::-1], partial[None]])
        variance = variance * (1 - partial**2)
    return phi, variance


def _moments(
    gamma: np.ndarray, a: np.ndarray, variance: np.ndarray, p: int, q: int
) -> tuple[np.ndarray, np.ndarray]:
    """Normal equations of the second regression, (N, p + q, p + q) and (N, p + q, 1)."""
    n = a.shape[1]

    def cross(k: int) -> np.ndarray:
        """Covariance of u_t and eps_{t-k}; none with innovations to come."""
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
    matrix[:, range(p + q), range(p + q)] *= 1 + 1e-6  # common roots leave it singular
    return matrix, right


def _inside(phi: np.ndarray) -> np.ndarray:
    """Coefficients of an AR, moved to where it is stationary."""
    partial = partial_autocorrelations(reflected(phi)[0])
    return from_partial(np.clip(np.nan_to_num(partial), -_MOST, _MOST))
