"""Coordinates in which what the parameters must satisfy is a box."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tsrnn.linear._optimise import Evaluation
from tsrnn.linear.garch._model import Model
from tsrnn.linear.garch._presample import persistence_weights

SMALLEST_OMEGA = 1e-8  # of the variance of the series, as in arch
LARGEST_LOG_BETA = 1 - 1e-8
NU = (2.05, 500.0)  # as in arch


@dataclass(frozen=True)
class Coordinates:
    r"""Natural parameters :math:`\theta = A c + b`, with nu the inverse of its coordinate.

    Leverage is estimated as alpha and alpha + gamma, both not negative; nu as 1/nu, in which
    the likelihood is closer to a parabola.

    Parameters
    ----------
    matrix : ndarray of shape (k, d)
    offset : ndarray of shape (k,)
    inverted : slice
        Where nu stands among natural parameters.
    lower, upper : ndarray of shape (d,)
    kept : integer ndarray of shape (d,)
        Natural parameter that each coordinate belongs to.
    implied : ndarray of shape (1 + d,), optional
        Constant and weights that give, on the face of stationarity, the coordinate that the
        others imply.
    """

    matrix: np.ndarray
    offset: np.ndarray
    inverted: slice
    lower: np.ndarray
    upper: np.ndarray
    kept: np.ndarray
    implied: np.ndarray | None = None

    def natural(self, coordinates: np.ndarray) -> np.ndarray:
        """Natural parameters (n, k) of coordinates (n, d)."""
        params = coordinates @ self.matrix.T + self.offset
        params[:, self.inverted] = 1 / params[:, self.inverted]
        return params

    def of(self, params: np.ndarray) -> np.ndarray:
        """Coordinates (n, d) of natural parameters (n, k), in the box."""
        linear = params - self.offset
        linear[:, self.inverted] = 1 / params[:, self.inverted]
        return np.clip(linear @ np.linalg.pinv(self.matrix).T, self.lower, self.upper)

    def jacobian(self, params: np.ndarray) -> np.ndarray:
        """Derivatives (n, k, d) of natural parameters."""
        result = np.tile(self.matrix, (len(params), 1, 1))
        nu = params[:, self.inverted]
        result[:, self.inverted] *= -(nu**2)[:, :, None]
        return result

    def pulled(self, params: np.ndarray, at: Evaluation, exact: bool) -> Evaluation:
        """Carry an evaluation by natural parameters over to these coordinates."""
        jacobian = self.jacobian(params)
        with np.errstate(invalid="ignore", over="ignore"):  # where values are not finite either
            curvature = jacobian.swapaxes(1, 2) @ at.curvature @ jacobian
            if exact and self.inverted.stop > self.inverted.start:
                rows = self.matrix[self.inverted]
                bend = 2 * params[:, self.inverted] ** 3 * at.gradient[:, self.inverted]
                curvature -= np.einsum("ns,si,sj->nij", bend, rows, rows)
            gradient = np.einsum("nk,nkd->nd", at.gradient, jacobian)
        return Evaluation(at.value, gradient, curvature)


def box(model: Model) -> Coordinates:
    """Coordinates of a model."""
    k = len(model.names)
    matrix = np.eye(k)
    lower, upper = np.full(k, -np.inf), np.full(k, np.inf)
    if model.vol.log:
        if model.q == 1:
            lower[model.beta], upper[model.beta] = -LARGEST_LOG_BETA, LARGEST_LOG_BETA
    else:
        lower[model.vol_part] = 0.0
        lower[model.omega] = SMALLEST_OMEGA
        upper[model.beta] = 1.0
        alpha = model.shock_coefficients(0)
        for s in range(1, len(model.vol.coefficients)):
            leverage = model.shock_coefficients(s)
            matrix[leverage, alpha] = -np.eye(model.p)
    shape = model.shape_part
    lower[shape], upper[shape] = 1 / NU[1], 1 / NU[0]
    return Coordinates(matrix, np.zeros(k), shape, lower, upper, np.arange(k))


def face(model: Model, whole: Coordinates, dropped: int) -> Coordinates:
    """Coordinates on the face of stationarity, where the persistence is one."""
    weight = whole.matrix.T @ persistence_weights(model)
    kept = np.arange(len(weight)) != dropped
    inside = np.eye(len(weight))[:, kept]
    inside[dropped] = -weight[kept] / weight[dropped]
    offset = np.zeros(len(weight))
    offset[dropped] = 1 / weight[dropped]
    return replace(
        whole,
        matrix=whole.matrix @ inside,
        offset=whole.matrix @ offset,
        lower=whole.lower[kept],
        upper=whole.upper[kept],
        kept=whole.kept[kept],
        implied=np.r_[offset[dropped], inside[dropped]],
    )


def admissible(model: Model, coordinates: Coordinates, values: np.ndarray) -> np.ndarray:
    """Whether coordinates (n, d) satisfy what the box does not say."""
    if coordinates.implied is not None:
        return coordinates.implied[0] + values @ coordinates.implied[1:] >= 0
    if model.vol.log and model.q > 1:
        return spectral_radius(coordinates.natural(values)[:, model.beta]) < 1
    return np.ones(len(values), dtype=bool)


def spectral_radius(coefficients: np.ndarray) -> np.ndarray:
    """Largest modulus (n,) of roots of a linear recursion with coefficients (n, q)."""
    n, q = coefficients.shape
    if q == 0:
        return np.zeros(n)
    companion = np.tile(np.eye(q, k=-1), (n, 1, 1))
    companion[:, 0] = coefficients
    return np.abs(np.linalg.eigvals(companion)).max(1)
