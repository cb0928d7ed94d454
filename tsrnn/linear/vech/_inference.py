"""Inference at optima: canonical factors, ranks, bounds, messages, covariance on a face."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.linalg

from tsrnn.linear._estimates import Estimates
from tsrnn.linear._inference import covariance
from tsrnn.linear.vech._likelihood import persistence
from tsrnn.linear.vech._specification import Specification
from tsrnn.linear.vech._structure import Linear, Quadratic, coefficients

ZERO = 1e-5  # a factor's row up to this size counts as zero, for variables of unit variance
NEAR_LIMIT = 1e-3  # distance of a spectral radius from one that counts as the limit
_NULL = 1e-9  # relative singular value of a direction that does not change the coefficients


def canonical(spec: Specification, params: np.ndarray) -> np.ndarray:
    """Canonical factors of the same coefficients: exact zeros, and one choice of signs.

    Small rows of a factor are set to zero, and in "full" and "diagonal" an element that is small
    in all rows: both lie on the boundary of the positive semidefinite coefficients. The sign of
    each A, G and column of C makes its first nonzero element positive. A singular CC' has a C
    with zero columns, one for each missing rank.
    """
    params = params.copy()
    for number, (block, part) in enumerate(factor_blocks(spec, params)):
        constant = number == 0 and not spec.targeting
        if constant:
            part[:] = _singular_factor(part, spec.n)
        elif spec.kind in ("full", "diagonal"):
            for element in np.unique(block.members):
                everywhere = block.members == element
                if np.sqrt((part[everywhere] ** 2).sum()) < ZERO:
                    part[everywhere] = 0.0
        for k in range(block.terms[-1] + 1):
            row = part[block.terms == k]
            if np.abs(row).max() < ZERO:
                row = np.zeros_like(row)
            lead = row[np.argmax(row != 0)]
            part[block.terms == k] = -row if lead < 0 else row
    return params


def _singular_factor(lower: np.ndarray, n: int) -> np.ndarray:
    """Lower triangle of C, by rows, with zero columns if CC' is singular."""
    rows, columns = np.tril_indices(n)
    if np.abs(lower[rows == columns]).min() >= ZERO:
        return lower
    factor = np.zeros((n, n))
    factor[rows, columns] = lower
    rest, result = factor @ factor.T, np.zeros((n, n))
    for k in range(n):
        # A semidefinite matrix with a zero on the diagonal has zeros in that row: skip it.
        if rest[k, k] >= ZERO**2:
            result[k:, k] = rest[k:, k] / np.sqrt(rest[k, k])
            rest = rest - np.outer(result[:, k], result[:, k])
    return result[rows, columns]


def factor_blocks(spec: Specification, params: np.ndarray) -> list[tuple[Quadratic, np.ndarray]]:
    """Blocks of the factors and views of their parameters."""
    blocks = [block for block in spec.factors.blocks if isinstance(block, Quadratic)]
    ends = np.cumsum([len(spec.mean_names), *(block.size for block in blocks)])
    return list(zip(blocks, np.split(params, ends[:-1])[1:], strict=True))


def natural_params(spec: Specification, params: np.ndarray) -> np.ndarray:
    """Natural parameters from factors."""
    if spec.kind == "bekk":
        return params
    m = len(spec.mean_names)
    coefs = coefficients(spec.factors, m, params)
    values = [*([] if coefs.intercept is None else [coefs.intercept]), *coefs.theta, *coefs.phi]
    blocks = zip(linear_blocks(spec), values, strict=True)
    return np.concatenate([params[:m], *(block.params(value) for block, value in blocks)])


def linear_blocks(spec: Specification) -> list[Linear]:
    """Blocks of natural parameters that are coefficients: all kinds except BEKK."""
    return [block for block in spec.natural.blocks if isinstance(block, Linear)]


def ranks(spec: Specification, params: np.ndarray) -> list[int]:
    """Rank of the factor of each Theta and Phi."""
    return [
        rank_of(block, part) for block, part in factor_blocks(spec, params)[not spec.targeting :]
    ]


def constant_rank(spec: Specification, params: np.ndarray) -> int:
    """Rank of the constant covariance CC'; n with targeting."""
    return spec.n if spec.targeting else rank_of(*factor_blocks(spec, params)[0])


def on_face(spec: Specification, params: np.ndarray) -> bool:
    """Return True if natural parameters are coefficients with a singular matrix.

    A scalar Theta or Phi, and A and G of a BEKK, are singular only if zero, which does not count.
    """
    if spec.kind == "bekk":
        return False
    full = {"full": spec.n**2, "diagonal": spec.n, "scalar": 0}[spec.kind]
    return constant_rank(spec, params) < spec.n or min(ranks(spec, params)) < full


def rank_of(block: Quadratic, part: np.ndarray) -> int:
    """Number of nonzero rows of a factor."""
    return len(np.unique(block.terms[part != 0]))


def free_factors(block: Quadratic, part: np.ndarray) -> np.ndarray:
    """Mask (size,) of the elements of a factor that vary among matrices of its rank."""
    rows = np.isin(block.terms, block.terms[part != 0])
    return rows & np.isin(block.members, block.members[part != 0])


def fixed(spec: Specification, params: np.ndarray) -> np.ndarray:
    """Mask (k,) of natural parameters that are zero on the boundary or not identified.

    On the boundary are zero columns of a BEKK's C, and coefficients that are zero for all factors
    of the same rank.
    """
    flags = [np.zeros(len(spec.mean_names), dtype=bool)]
    without_theta = not any(ranks(spec, params)[: spec.p])
    for number, (block, part) in enumerate(factor_blocks(spec, params)):
        constant = number == 0 and not spec.targeting
        free = free_factors(block, part)
        if spec.kind == "bekk":
            flag = ~free if constant else np.full(block.size, not free.any())
        else:
            jacobian = block.jacobian(part)
            jacobian[~free] = 0.0
            flag = np.asarray(~linear_blocks(spec)[number].params(jacobian).any(0))
        if without_theta and not constant:
            flag = np.ones_like(flag)  # without Theta the likelihood does not depend on Phi
        flags.append(flag)
    return np.concatenate(flags)


def messages(
    spec: Specification, params: np.ndarray, converged: bool, starts: int, agreement: int
) -> tuple[str, ...]:
    """Warnings about an optimum, at its factors."""
    words = []
    if at_limit(spec, params, converged):
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
    rank = constant_rank(spec, params)
    if rank < spec.n and spec.kind == "bekk":
        zero = [name for name, at_zero in zip(spec.own_names, fixed(spec, params), strict=True)
                if at_zero and name.startswith("C[")]  # fmt: skip
        words.append(
            f"{', '.join(zero)} {'is' if len(zero) == 1 else 'are'} zero, as CC' is on the "
            f"boundary of the positive semidefinite matrices, with rank {rank} of {spec.n}: no "
            "standard errors and intervals there. Those of the other parameters are with them "
            "held at zero."
        )
    elif rank < spec.n:
        words.append(
            "The constant b is on the boundary of the positive semidefinite matrices, with rank "
            f"{rank} of {spec.n}: standard errors are those of models of this rank."
            + " The constant is zero: no standard errors."
            * (rank == 0)
        )
    names = [f"Theta_{i + 1}" for i in range(spec.p)] + [f"Phi_{j + 1}" for j in range(spec.q)]
    factor_ranks = ranks(spec, params)
    full = {"full": spec.n**2, "diagonal": spec.n}.get(spec.kind, 1)
    for name, rank in zip(names, factor_ranks, strict=True):
        if rank == 0:
            words.append(f"{name} is zero, on the boundary of its parameters: no standard errors.")
        elif rank < full:
            words.append(
                f"{name} is on the boundary of the positive semidefinite ones, with rank {rank} "
                f"of {full}: standard errors are those of models of this rank. They hold if the "
                "true rank is the same; estimates are not normal if it is lower. The gradient "
                "beyond the boundary is not zero."
            )
    if not any(factor_ranks[: spec.p]) and spec.q:
        words.append("Without Theta the coefficients Phi are not identified, and are put at zero.")
    return (*words, *persistence_messages(spec, natural_params(spec, params)))


def persistence_messages(spec: Specification, params: np.ndarray) -> list[str]:
    """Warning if covariances do not revert to a mean, at natural parameters."""
    radius = persistence(coefficients(spec.natural, len(spec.mean_names), params))
    if radius < 1:
        return []
    return [
        f"The spectral radius of Theta + Phi is {radius:.4f}, not below one: the covariance is "
        "not stationary, and its forecasts do not settle."
    ]


def at_limit(spec: Specification, params: np.ndarray, converged: bool) -> bool:
    """Return True if a search for factors ended at the limit of stationarity."""
    if not spec.stationary or converged:
        return False
    coefs = coefficients(spec.factors, len(spec.mean_names), params)
    return persistence(coefs) > 1 - NEAR_LIMIT


def face_covariance(
    spec: Specification, estimates: Estimates, factors: np.ndarray, kind: str
) -> np.ndarray:
    """Covariance (k, k) of the natural parameters of one unit, given the ranks of its factors.

    A singular matrix of coefficients varies only among matrices of its rank. Its covariance
    follows by the delta method from that of its factors (kf,) without their zero rows.
    """
    m = len(spec.mean_names)
    ends = np.cumsum([m, *(block.size for block in spec.natural.blocks)])
    slopes = np.split(estimates.gradient[0], ends[:-1])[1:]
    fixed = np.split(estimates.fixed[0], ends[:-1])[1:]
    jacobians, curvatures = [np.eye(m)], [np.zeros((m, m))]
    moving = [np.ones(m, dtype=bool)]
    for (block, part), block_to, slope, flags in zip(
        factor_blocks(spec, factors), linear_blocks(spec), slopes, fixed, strict=True
    ):
        jacobians.append(block_to.params(block.jacobian(part)))
        curvatures.append(block.second(block_to.weights(slope)))
        moving.append(free_factors(block, part) & ~flags.all())
    free = np.hstack(moving)
    jacobian, bends = (
        scipy.linalg.block_diag(*jacobians)[free],
        scipy.linalg.block_diag(*curvatures),
    )
    along = _directions(jacobian)
    moves = jacobian.T @ along  # of natural parameters, a column for each direction
    # The map is not linear: with a nonzero gradient its second derivatives add curvature.
    inside = along.T @ bends[np.ix_(free, free)] @ along
    d, information = along.shape[1], estimates.information
    coordinates = replace(
        estimates,
        names=tuple(f"direction{i}" for i in range(d)),
        params=np.zeros((1, d)),
        gradient=estimates.gradient @ moves,
        hessian=moves.T @ estimates.hessian @ moves + inside,
        opg=moves.T @ estimates.opg @ moves,
        information=None if information is None else moves.T @ information @ moves,
        fixed=np.zeros((1, d), dtype=bool),
    )
    result = moves @ covariance(coordinates, kind)[0] @ moves.T
    result[estimates.fixed[0]] = result[:, estimates.fixed[0]] = np.nan
    return result


def _directions(jacobian: np.ndarray) -> np.ndarray:
    """Directions (kf, d) of factors that change the coefficients."""
    by_factor = np.sqrt((jacobian**2).sum(1))
    by_factor = np.where(by_factor > 0, by_factor, 1.0)
    scaled = jacobian / by_factor[:, None]
    to = np.sqrt((scaled**2).sum(0))
    left, values, _ = np.linalg.svd(scaled / np.where(to > 0, to, 1.0), full_matrices=False)
    return left[:, values > _NULL * values[0]] / by_factor[:, None]
