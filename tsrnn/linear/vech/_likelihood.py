r"""The vech model of one series as a linear network, run at given parameters.

.. math::
    e_t = r_t - B x_t, \quad
    h_t = b + \sum_i \Theta_i vech(e_{t-i} e_{t-i}') + \sum_j \Phi_j h_{t-j}

with the presample values of vech(e e') and h at the mean s of vech(e e') of least squares.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tsrnn.linear.vech._density import Density, density, squares
from tsrnn.linear.vech._recursion import lagged, states
from tsrnn.linear.vech._structure import Structure


@dataclass(frozen=True)
class Sample:
    """Data of one series.

    Parameters
    ----------
    response : array of shape (T, n)
    regressors : array of shape (T, r)
    presample : array of shape (N,)
        s: vech(e e') and h before the first observation.
    """

    response: np.ndarray
    regressors: np.ndarray
    presample: np.ndarray

    @property
    def n_mean(self) -> int:
        """Number of coefficients of the mean."""
        return self.response.shape[1] * self.regressors.shape[1]


@dataclass(frozen=True)
class Coefficients:
    """The coefficients at some parameters, and their parameters block by block.

    Parameters
    ----------
    mean : array of shape (n, r)
    intercept : array of shape (N,) or None
    theta, phi : list of arrays (N, N)
    parts : list of arrays
        Parameters of every block of the structure.
    """

    mean: np.ndarray
    intercept: np.ndarray | None
    theta: list[np.ndarray]
    phi: list[np.ndarray]
    parts: list[np.ndarray]


def coefficients(structure: Structure, n_mean: int, params: np.ndarray) -> Coefficients:
    """Coefficients at parameters: those of the mean row by row, then those of the structure."""
    ends = np.cumsum([n_mean, *(block.size for block in structure.blocks)])
    mean, *parts = np.split(params, ends[:-1])
    values = [b.value(part) for b, part in zip(structure.blocks, parts, strict=True)]
    intercept = None if structure.intercept is None else values.pop(0)
    p = len(structure.theta)
    return Coefficients(mean.reshape(structure.n, -1), intercept, values[:p], values[p:], parts)


@dataclass(frozen=True)
class Forward:
    """The network run over a series.

    Parameters
    ----------
    coefs : Coefficients
    errors : array of shape (n, T)
    states : array of shape (N, T)
        h.
    past_squares, past_states : list of arrays (T, N)
        What Theta_i and Phi_j multiply: vech(e e') and h by lag, less s if that is the target.
    """

    coefs: Coefficients
    errors: np.ndarray
    states: np.ndarray
    past_squares: list[np.ndarray]
    past_states: list[np.ndarray]

    def density(self) -> Density | None:
        """Log-density of the errors; None unless all covariances are definite."""
        return density(self.errors, self.states)


def forward(structure: Structure, sample: Sample, params: np.ndarray) -> Forward:
    """Run the network at some parameters."""
    coefs = coefficients(structure, sample.n_mean, params)
    errors = sample.response - sample.regressors @ coefs.mean.T
    errors = np.ascontiguousarray(errors.T)
    # A targeted model is the same network in deviations from s, without a constant.
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
