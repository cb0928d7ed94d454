r"""Whether the coefficients of a VARMA model can be told from its impulse responses.

Coefficients with the same responses :math:`\Psi_k` differ by :math:`(D, M)` with
:math:`D(L) \Psi(L) = M(L)`, D of lags 1 to p and M of lags 1 to q: no such D exists if and only
if the p n rows of the Hankel matrix

.. math:: H = (\Psi_{q + j - i})_{i = 1..p,\; j = 1, 2, \dots}

are linearly independent. For p = q = 1 its block column is
:math:`(\Phi + \Theta), \Phi (\Phi + \Theta), \dots`: the network
h_t = (-Theta) h_{t-1} + (Phi + Theta) y_{t-1} is then of minimal size.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import chdtri

from tsrnn.linear.varma._shape import Coefficients, Shape
from tsrnn.linear.varma._system import System, roots, system

_COLUMNS = 24  # block columns of the Hankel matrix beyond those that algebra needs
_CONFIDENCE = 0.95


class Identification(NamedTuple):
    """How well the coefficients of U units are identified.

    Attributes
    ----------
    singular_values : array of shape (U, p n)
        Of the Hankel matrix of impulse responses in units of the innovations, largest first.
    ar_root, ma_root : complex arrays of shape (U,)
        The inverse roots of the two polynomials that are closest to each other.
    identified : boolean array of shape (U,)
        Whether the smallest singular value can be told from zero.
    threshold : array of shape (U,)
        What it is compared with.
    """

    singular_values: np.ndarray
    ar_root: np.ndarray
    ma_root: np.ndarray
    identified: np.ndarray
    threshold: np.ndarray


def responses(matrices: System, n: int, count: int) -> np.ndarray:
    """Impulse responses Psi_0 = I, Psi_1, ..., (U, count, n, n)."""
    result = np.zeros((len(matrices.K), count, n, n))
    result[:, 0] = np.eye(n)
    state = matrices.K
    for k in range(1, count):
        result[:, k] = state[:, :n]
        state = matrices.T @ state
    return result


def identification(shape: Shape, coefficients: Coefficients, n_obs: np.ndarray) -> Identification:
    r"""Singular values and common roots of units with p > 0 and q > 0.

    A singular value :math:`\sigma` counts as zero while :math:`T \sigma^2` is below the 95%
    quantile of the chi-square distribution with 2 n degrees of freedom, the number of
    parameters that a state less takes away: a rough likelihood-ratio test of a smaller model.
    """
    n, p, q = shape.n, shape.p, shape.q
    width = n * shape.lags + _COLUMNS
    psi = responses(system(shape, coefficients), n, width + q + 1)
    chol = coefficients.chol[:, None]
    psi = np.linalg.solve(chol, psi @ chol)
    padded = np.concatenate([np.zeros((len(psi), p, n, n)), psi], 1)
    lag = q + np.arange(1, width + 1) - np.arange(1, p + 1)[:, None]
    hankel = padded[:, p + lag].transpose(0, 1, 3, 2, 4).reshape(len(psi), p * n, width * n)
    values = np.linalg.svd(hankel, compute_uv=False)
    ar, ma = roots(coefficients.ar), roots(-coefficients.ma)
    apart = np.abs(ar[:, :, None] - ma[:, None, :]).reshape(len(psi), -1)
    closest = apart.argmin(1)
    unit = np.arange(len(psi))
    threshold = np.sqrt(chdtri(2 * n, 1 - _CONFIDENCE) / n_obs)
    return Identification(
        values,
        ar[unit, closest // ma.shape[1]],
        ma[unit, closest % ma.shape[1]],
        values[:, -1] > threshold,
        threshold,
    )


def verdicts(
    shape: Shape, params: np.ndarray, n_obs: np.ndarray
) -> tuple[np.ndarray, list[tuple[str, ...]]]:
    """Parameters (U, k) that have no standard error, and warnings of each unit."""
    fixed = np.zeros(params.shape, bool)
    if not (shape.p and shape.q):
        return fixed, [()] * len(params)
    found = identification(shape, shape.unpack(params), n_obs)
    lost = ~found.identified
    fixed[:, : shape.n_mean] = lost[:, None]
    return fixed, [(_words(found, i),) for i in range(len(params))]


def _words(found: Identification, i: int) -> str:
    facts = (
        f"smallest singular value of the impulse responses' Hankel matrix "
        f"{found.singular_values[i, -1]:.3g}, closest inverse roots {_number(found.ar_root[i])} "
        f"(AR) and {_number(found.ma_root[i])} (MA)"
    )
    if found.identified[i]:
        return f"A VARMA model is identified only if no AR and MA factors cancel: {facts}."
    return (
        f"AR and MA factors nearly cancel and the coefficients are not identified: {facts}; "
        f"below {found.threshold[i]:.3g} the singular value cannot be told from zero. No standard "
        "errors are given for the mean; take smaller orders."
    )


def _number(value: complex) -> str:
    return f"{value.real:.3g}" if abs(value.imag) < 1e-9 else f"{value:.3g}"
