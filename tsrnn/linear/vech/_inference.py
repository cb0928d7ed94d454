"""Covariance of estimates on the boundary of the positive semidefinite coefficients."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.linalg

from tsrnn.linear._estimates import Estimates
from tsrnn.linear._inference import covariance
from tsrnn.linear.vech._canonical import free_factors, parts, plain
from tsrnn.linear.vech._specification import Specification

_NULL = 1e-9  # singular value, relative, of a direction that does not move the coefficients


def face_covariance(
    spec: Specification, estimates: Estimates, factors: np.ndarray, kind: str
) -> np.ndarray:
    """Covariance (k, k) of the natural parameters of one unit, given the ranks of its factors.

    A matrix of coefficients that is singular moves only along matrices of its rank: the
    covariance of its factors, without the rows that are zero, carried over by the delta method.

    Parameters
    ----------
    spec : Specification
    estimates : Estimates
        Of one unit, in natural parameters.
    factors : array of shape (kf,)
        The coordinates of estimation.
    kind : str
        As of `covariance`.
    """
    jacobian, bends, free = _map(spec, estimates, factors)
    along = _directions(jacobian[free])
    moves = jacobian[free].T @ along  # of natural parameters, a column a direction
    inside = along.T @ bends[np.ix_(free, free)] @ along
    d = along.shape[1]

    information = estimates.information
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


def _map(
    spec: Specification, estimates: Estimates, factors: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Derivatives of natural parameters by factors, what their bends add, and free factors."""
    m = len(spec.mean_names)
    ends = np.cumsum([m, *(block.size for block in spec.natural.blocks)])
    slopes = np.split(estimates.gradient[0], ends[:-1])[1:]
    fixed = np.split(estimates.fixed[0], ends[:-1])[1:]
    jacobians, bends = [np.eye(m)], [np.zeros((m, m))]
    free = [np.ones(m, dtype=bool)]
    for (block, part), block_to, slope, held in zip(
        parts(spec, factors), plain(spec), slopes, fixed, strict=True
    ):
        jacobians.append(block_to.params(block.jacobian(part)))
        bends.append(block.second(block_to.weights(slope)))
        free.append(free_factors(block, part) & ~held.all())
    return scipy.linalg.block_diag(*jacobians), scipy.linalg.block_diag(*bends), np.hstack(free)


def _directions(jacobian: np.ndarray) -> np.ndarray:
    """Directions (kf, d) of factors that move the coefficients at all."""
    by_factor = np.sqrt((jacobian**2).sum(1))
    by_factor = np.where(by_factor > 0, by_factor, 1.0)
    scaled = jacobian / by_factor[:, None]
    to = np.sqrt((scaled**2).sum(0))
    left, values, _ = np.linalg.svd(scaled / np.where(to > 0, to, 1.0), full_matrices=False)
    return left[:, values > _NULL * values[0]] / by_factor[:, None]
