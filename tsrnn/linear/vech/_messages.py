"""What is to be known of an estimate besides its numbers."""

from __future__ import annotations

import numpy as np

from tsrnn.linear.vech._canonical import constant_rank, fixed, natural, ranks
from tsrnn.linear.vech._evaluate import persistence
from tsrnn.linear.vech._likelihood import coefficients
from tsrnn.linear.vech._specification import Specification

NEAR_LIMIT = 1e-3  # distance from one of a spectral radius that the search may not pass


def messages(
    spec: Specification, params: np.ndarray, converged: bool, starts: int, agreement: int
) -> tuple[str, ...]:
    """Warnings in words on factors."""
    words = [
        *_of_search(at_limit(spec, params, converged), converged, starts, agreement),
        *_of_constant(spec, params),
        *_of_ranks(spec, params),
    ]
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


def at_limit(spec: Specification, params: np.ndarray, converged: bool) -> bool:
    """Whether a search for factors ended where Theta + Phi must stay stationary."""
    if not spec.stationary or converged:
        return False
    coefs = coefficients(spec.factors, len(spec.mean_names), params)
    return persistence(coefs) > 1 - NEAR_LIMIT


def _of_search(at_limit: bool, converged: bool, starts: int, agreement: int) -> list[str]:
    words = []
    if at_limit:
        words.append(
            "The search ended at the limit of stationarity, beyond which the likelihood rises: "
            "Theta and Phi have no standard errors, and those of the other parameters are with "
            "them held."
        )
    elif not converged:
        words.append("The search for the optimum did not converge.")
    if starts > 1 and agreement == 1:
        words.append(
            f"Only one of {starts} starts reached the best optimum: there may be a better "
            "one. Take more by n_starts."
        )
    return words


def _of_constant(spec: Specification, params: np.ndarray) -> list[str]:
    rank = constant_rank(spec, params)
    if rank == spec.n:
        return []
    if spec.kind != "bekk":
        none = " The constant is zero: no standard errors." if rank == 0 else ""
        return [
            f"The constant b is on the boundary of the positive semidefinite matrices, with rank "
            f"{rank} of {spec.n}: standard errors are those of models of this rank.{none}"
        ]
    zero = [name for name, held in zip(spec.own_names, fixed(spec, params), strict=True)
            if held and name.startswith("C[")]  # fmt: skip
    return [
        f"{', '.join(zero)} {'is' if len(zero) == 1 else 'are'} zero, as CC' is on the boundary of "
        f"the positive semidefinite matrices, with rank {rank} of {spec.n}: no standard errors "
        "and intervals there. Those of the other parameters are with them held at zero."
    ]


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
