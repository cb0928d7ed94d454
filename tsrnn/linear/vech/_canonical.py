"""From where the search ended to the parameters that are reported."""

from __future__ import annotations

import numpy as np

from tsrnn.linear.vech._blocks import Linear, Quadratic
from tsrnn.linear.vech._likelihood import coefficients
from tsrnn.linear.vech._specification import Specification

ZERO = 1e-5  # size of a factor's row, for variables of unit variance, that has gone to zero


def canonical(spec: Specification, params: np.ndarray) -> np.ndarray:
    """The same factors with what has gone to zero at zero, and one choice of signs.

    Gone to zero are rows of a factor, and in "full" and "diagonal" an element in all rows: both
    lie on the boundary of the positive semidefinite coefficients. Every A, G and column of C may
    change its sign: its first element that is not zero is positive, for a BEKK the first diagonal
    element. A singular CC' has the C with as many zero columns as ranks are missing.
    """
    params = params.copy()
    for number, (block, part) in enumerate(parts(spec, params)):
        constant = number == 0 and not spec.targeting
        if constant:
            part[:] = _of_rank(part, spec.n)
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


def _of_rank(lower: np.ndarray, n: int) -> np.ndarray:
    """Lower triangle of C, by rows, with whole columns at zero where CC' is singular."""
    rows, columns = np.tril_indices(n)
    if np.abs(lower[rows == columns]).min() >= ZERO:
        return lower
    factor = np.zeros((n, n))
    factor[rows, columns] = lower
    rest, result = factor @ factor.T, np.zeros((n, n))
    for k in range(n):
        # What is left of a semidefinite matrix has a row of zeros where its diagonal is zero.
        if rest[k, k] >= ZERO**2:
            result[k:, k] = rest[k:, k] / np.sqrt(rest[k, k])
            rest = rest - np.outer(result[:, k], result[:, k])
    return result[rows, columns]


def parts(spec: Specification, params: np.ndarray) -> list[tuple[Quadratic, np.ndarray]]:
    """Blocks of the factors and views of their parameters."""
    blocks = [block for block in spec.factors.blocks if isinstance(block, Quadratic)]
    ends = np.cumsum([len(spec.mean_names), *(block.size for block in blocks)])
    return list(zip(blocks, np.split(params, ends[:-1])[1:], strict=True))


def natural(spec: Specification, params: np.ndarray) -> np.ndarray:
    """Natural parameters of factors."""
    if spec.kind == "bekk":
        return params
    m = len(spec.mean_names)
    coefs = coefficients(spec.factors, m, params)
    values = [*([] if coefs.intercept is None else [coefs.intercept]), *coefs.theta, *coefs.phi]
    found = [block.params(value) for block, value in zip(plain(spec), values, strict=True)]
    return np.concatenate([params[:m], *found])


def plain(spec: Specification) -> list[Linear]:
    """Blocks of the natural coordinates, where these are coefficients."""
    return [block for block in spec.natural.blocks if isinstance(block, Linear)]


def ranks(spec: Specification, params: np.ndarray) -> list[int]:
    """Rank of the factor of every Theta and Phi: rows that are not zero."""
    return [rank_of(block, part) for block, part in parts(spec, params)[not spec.targeting :]]


def constant_rank(spec: Specification, params: np.ndarray) -> int:
    """Rank of the constant covariance CC'; that of the target where there is one."""
    return spec.n if spec.targeting else rank_of(*parts(spec, params)[0])


def on_face(spec: Specification, params: np.ndarray) -> bool:
    """Whether natural parameters are coefficients of which some matrix is singular.

    In the scalar Theta and Phi, and in A and G, nothing is but what is zero altogether.
    """
    if spec.kind == "bekk":
        return False
    full = {"full": spec.n**2, "diagonal": spec.n, "scalar": 0}[spec.kind]
    return constant_rank(spec, params) < spec.n or min(ranks(spec, params)) < full


def rank_of(block: Quadratic, part: np.ndarray) -> int:
    """Rows of a factor that are not zero."""
    return len(np.unique(block.terms[part != 0]))


def free_factors(block: Quadratic, part: np.ndarray) -> np.ndarray:
    """Elements of a factor that move along matrices of its rank, (size,)."""
    rows = np.isin(block.terms, block.terms[part != 0])
    return rows & np.isin(block.members, block.members[part != 0])


def fixed(spec: Specification, params: np.ndarray) -> np.ndarray:
    """Natural parameters that are zero on the boundary or not identified, (k,).

    On the boundary are the zero columns of the C of a BEKK, and coefficients that are zero and
    that no factor of the same rank moves.
    """
    flags = [np.zeros(len(spec.mean_names), dtype=bool)]
    without_theta = not any(ranks(spec, params)[: spec.p])
    for number, (block, part) in enumerate(parts(spec, params)):
        constant = number == 0 and not spec.targeting
        free = free_factors(block, part)
        if spec.kind == "bekk":
            held = ~free if constant else np.full(block.size, not free.any())
        else:
            own = spec.natural.blocks[number]
            assert isinstance(own, Linear)  # of all kinds but the BEKK
            jacobian = block.jacobian(part)
            jacobian[~free] = 0.0
            held = np.asarray(~own.params(jacobian).any(0))
        if without_theta and not constant:
            held = np.ones_like(held)  # without Theta nothing moves, and any Phi does as well
        flags.append(held)
    return np.concatenate(flags)
