"""What is to be known of an estimate besides its numbers."""

from __future__ import annotations

import numpy as np

from tsrnn.linear.vech._canonical import natural, ranks
from tsrnn.linear.vech._evaluate import persistence
from tsrnn.linear.vech._likelihood import coefficients
from tsrnn.linear.vech._specification import Specification


def messages(
    spec: Specification, params: np.ndarray, converged: bool, starts: int, agreement: int
) -> tuple[str, ...]:
    """Warnings in words on factors."""
    words = [*_of_search(spec, converged, starts, agreement), *_of_ranks(spec, params)]
    return (*words, *of_persistence(spec, natural(spec, params)))


def of_persistence(spec: Specification, params: np.ndarray) -> list[str]:
    """Whether the covariances come back to a mean, at natural parameters."""
    radius = persistence(coefficients(spec.natural, len(spec.mean_names), params))
    if radius < 1:
        return []
    return [
        f"The spectral radius of Theta + Phi is {radius:.4f}, not below one: the covariance is "
        "not stationary, and its forecasts do not settle."
    ]


def _of_search(spec: Specification, converged: bool, starts: int, agreement: int) -> list[str]:
    words = []
    if not converged:
        end = ": it may have ended at the limit of stationarity" if spec.stationary else ""
        words.append(f"The search for the optimum did not converge{end}.")
    if starts > 1 and agreement == 1:
        words.append(
            f"Only one of {starts} starts reached the best optimum: there may be a better "
            "one. Take more by n_starts."
        )
    return words


def _of_ranks(spec: Specification, params: np.ndarray) -> list[str]:
    words = []
    names = [f"Theta_{i + 1}" for i in range(spec.p)] + [f"Phi_{j + 1}" for j in range(spec.q)]
    found = ranks(spec, params)
    full = {"full": spec.n**2, "diagonal": spec.n}.get(spec.kind, 1)
    for name, rank in zip(names, found, strict=True):
        if rank == 0:
            words.append(f"{name} is zero, on the boundary of its parameters: no standard errors.")
        elif rank < full:
            words.append(
                f"{name} is on the boundary of the positive semidefinite ones, with rank {rank} "
                f"of {full}: standard errors are those of models of this rank. They hold if the "
                "true rank is the same; estimates are not normal if it is lower. The gradient "
                "beyond the boundary is not zero."
            )
    if not any(found[: spec.p]) and spec.q:
        words.append("Without Theta the coefficients Phi are not identified, and are put at zero.")
    return words
