"""From where the search ended to the parameters that are reported."""

from __future__ import annotations

import numpy as np

from tsrnn.linear.vech._blocks import Linear, Quadratic
from tsrnn.linear.vech._likelihood import coefficients
from tsrnn.linear.vech._specification import Specification

ZERO = 1e-5  # size of a factor's row, for variables of unit variance, that has gone to zero


def canonical(spec: Specification, params: np.ndarray) -> np.ndarray:
    """The same factors with rows that have gone to zero at zero, and one choice of signs.

    Every A, G and column of C may change its sign: its first element that is not zero is
    positive, for a BEKK the first diagonal element.
    """
    params = params.copy()
    for block, part in parts(spec, params):
        for k in range(block.terms[-1] + 1):
            row = part[block.terms == k]
            if np.abs(row).max() < ZERO:
                row = np.zeros_like(row)
            lead = row[np.argmax(row != 0)]
            part[block.terms == k] = -row if lead < 0 else row
    return params


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
    return [
        len(np.unique(block.terms[part != 0]))
        for block, part in parts(spec, params)[not spec.targeting :]
    ]


def fixed(spec: Specification, params: np.ndarray) -> np.ndarray:
    """Natural parameters that are zero on the boundary or not identified, (k,)."""
    found = ranks(spec, params)
    zero = [rank == 0 for rank in found]
    if all(zero[: spec.p]):
        zero = [True] * len(zero)  # without Theta nothing moves, and any Phi does as well
    sizes = [block.size for block in spec.natural.blocks]
    flags = [*([False] * (not spec.targeting)), *zero]
    mean = np.zeros(len(spec.mean_names), dtype=bool)
    return np.concatenate([mean, np.repeat(flags, sizes)])
