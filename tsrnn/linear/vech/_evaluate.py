"""What optimiser and inference ask for at given parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tsrnn.linear._optimise import Evaluation
from tsrnn.linear.vech._derivatives import exact, expected, gradient, scores, sensitivities
from tsrnn.linear.vech._likelihood import Coefficients, Sample, forward
from tsrnn.linear.vech._recursion import companion
from tsrnn.linear.vech._structure import Structure


class Derivatives(NamedTuple):
    """The log-likelihood of one series at some parameters.

    Attributes
    ----------
    value : float
    gradient : array of shape (k,)
    hessian, opg, information : array of shape (k, k)
        Second derivatives, sum of outer products of scores, expected information.
    """

    value: float
    gradient: np.ndarray
    hessian: np.ndarray
    opg: np.ndarray
    information: np.ndarray


def derivatives(structure: Structure, sample: Sample, params: np.ndarray) -> Derivatives | None:
    """Everything that inference needs; None where a covariance is not definite."""
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


def evaluation(
    structure: Structure, sample: Sample, stationary: bool
) -> Callable[[np.ndarray, np.ndarray, bool], Evaluation]:
    """`evaluate` of `maximise` for lanes that are several starts of one series."""

    def evaluate(params: np.ndarray, lanes: np.ndarray, newton: bool) -> Evaluation:
        n, k = params.shape
        result = Evaluation(np.full(n, -np.inf), np.zeros((n, k)), np.zeros((n, k, k)))
        # A trial far away may overflow: it is not finite then, and refused.
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            for i in range(n):
                _fill(result, i, structure, sample, params[i], newton, stationary)
        return result

    return evaluate


def _fill(result: Evaluation, i: int, structure: Structure, sample: Sample, params: np.ndarray,
          newton: bool, stationary: bool) -> None:  # fmt: skip
    run = forward(structure, sample, params)
    dens = None if stationary and persistence(run.coefs) >= 1 else run.density()
    if dens is None:
        return
    sens = sensitivities(structure, sample, run)
    result.value[i] = dens.value.sum()
    result.gradient[i] = gradient(sample, dens, sens)
    result.curvature[i] = (
        exact(structure, sample, run, dens, sens) if newton else expected(sample, dens, sens)
    )


def persistence(coefs: Coefficients) -> float:
    """Spectral radius of the recursion of expected covariances: stationary below one."""
    return float(np.abs(np.linalg.eigvals(companion(expectation(coefs)))).max())


def expectation(coefs: Coefficients) -> list[np.ndarray]:
    """Theta_i + Phi_i by lag: what takes expected covariances one step on."""
    order = max(len(coefs.theta), len(coefs.phi))
    sums = [np.zeros_like(coefs.theta[0]) for _ in range(order)]
    for matrices in (coefs.theta, coefs.phi):
        for total, matrix in zip(sums, matrices, strict=False):
            total += matrix
    return sums
