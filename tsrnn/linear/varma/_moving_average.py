"""The filter Theta(L)^{-1}, the recurrence in which all of VARMA runs."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from scipy.linalg import lapack

from tsrnn.kernels import Cell, recurrence

# Lanes of one unit up to which the system of equations that the recurrence solves goes to LAPACK:
# a call costs a third of one of `recurrence` there, which is most of what a single fit waits for.
_FEW = 64


class _Step:
    """``e_t = u_t - Theta_1 e_{t-1} - ... - Theta_q e_{t-q}``, newest first in the state."""

    def __init__(self, n: int, q: int) -> None:
        self._n, self._q = n, q

    def __call__(self, state, inputs, params):  # type: ignore[no-untyped-def]
        n, width = self._n, self._n * self._q
        new = []
        for i in range(n):
            value = inputs[i]
            for weight, old in zip(params[i * width : (i + 1) * width], state, strict=True):
                value = value - weight * old
            new.append(value)
        return (*new, *state[: width - n])


@cache
def _cell(n: int, q: int) -> Cell:
    return Cell(f"vma_{n}_{q}", n * q, n, n * n * q, _Step(n, q), outputs=n)


def filtered(ma: np.ndarray, forcing: np.ndarray) -> np.ndarray:
    """Residuals of moving averages, from zero.

    Parameters
    ----------
    ma : array of shape (U, q, n, n)
    forcing : array of shape (T, n, U, lanes)

    Returns
    -------
    array of shape (T, n, U, lanes)
    """
    units, q, _, _ = ma.shape
    if q == 0:
        return forcing
    if units == 1 and forcing.shape[3] <= _FEW:
        return _solved(ma[0], forcing)
    return _run(ma, forcing)


def filtered_backwards(ma: np.ndarray, forcing: np.ndarray) -> np.ndarray:
    """The adjoint filter: `filtered` with transposed matrices and time reversed."""
    return filtered(ma.swapaxes(2, 3), np.ascontiguousarray(forcing[::-1]))[::-1]


def _run(ma: np.ndarray, forcing: np.ndarray) -> np.ndarray:
    """Units and lanes side by side in the recurrence."""
    units, q, n, _ = ma.shape
    steps, _, _, lanes = forcing.shape
    weights = np.repeat(ma.transpose(2, 1, 3, 0).reshape(n * q * n, units), lanes, 1)
    inputs = torch.from_numpy(forcing.reshape(1, steps, n, units * lanes))
    with torch.no_grad():
        states, _ = recurrence(_cell(n, q), inputs, torch.from_numpy(weights), outputs_only=True)
    return states.numpy().reshape(forcing.shape)


def _solved(ma: np.ndarray, forcing: np.ndarray) -> np.ndarray:
    """The recurrence of one unit as a banded triangular system of equations."""
    q, n, _ = ma.shape
    steps, _, _, lanes = forcing.shape
    below = np.zeros((n, n * (q + 1)))  # entries under the diagonal, a row a target
    column = np.arange(n)
    for lag in range(1, q + 1):
        below[column, lag * n + column[:, None] - column] = ma[lag - 1]
    band = np.broadcast_to(below, (steps, *below.shape)).reshape(-1, below.shape[1]).T
    solution, failed = lapack.dtbtrs(band, forcing.reshape(steps * n, lanes), uplo="L", diag="U")
    if failed:
        raise ValueError(f"LAPACK's dtbtrs refused its argument number {-failed}")
    return np.ascontiguousarray(solution).reshape(forcing.shape)
