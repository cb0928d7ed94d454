"""Standardised data and what it does to parameters: an affine map, so that nothing is lost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tsrnn.linear.varma._sample import Sample
from tsrnn.linear.varma._shape import Coefficients, Shape


@dataclass(frozen=True)
class Scaling:
    """How the series of U units are standardised.

    With a constant in the model, series and regressors are centred, else only divided.

    Parameters
    ----------
    location, scale : arrays of shape (U, n)
        Of the targets.
    design : array of shape (U, n_design, n_design)
        Maps rows of the design to standardised ones.
    """

    location: np.ndarray
    scale: np.ndarray
    design: np.ndarray

    @property
    def parts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Location, scale and design."""
        return self.location, self.scale, self.design

    def standardised(self, sample: Sample) -> Sample:
        """The sample in standard units."""
        y = (sample.y - self.location[:, None]) / self.scale[:, None]
        design = sample.design @ self.design.swapaxes(1, 2)
        presample = (sample.presample - self.location) / self.scale
        return Sample(sample.shape, y, design, presample, sample.rows)

    def natural(self, shape: Shape, params: np.ndarray) -> np.ndarray:
        """Parameters (U, k) in the units of the data from those in standard units."""
        standard = shape.unpack(params)
        s = self.scale
        ratio = (s[:, :, None] / s[:, None, :])[:, None]
        ar = standard.ar * ratio
        design = s[:, :, None] * standard.design @ self.design
        if shape.n_trend:
            design[..., 0] += self._level(ar)
        return shape.pack(
            Coefficients(design, ar, standard.ma * ratio, s[:, :, None] * standard.chol)
        )

    def standard(self, shape: Shape, params: np.ndarray) -> np.ndarray:
        """The inverse of `natural`."""
        natural = shape.unpack(params)
        s = self.scale
        ratio = (s[:, :, None] / s[:, None, :])[:, None]
        design = natural.design.copy()
        if shape.n_trend:
            design[..., 0] -= self._level(natural.ar)
        design = np.linalg.solve(self.design.swapaxes(1, 2), design.swapaxes(1, 2))
        return shape.pack(
            Coefficients(
                design.swapaxes(1, 2) / s[:, :, None],
                natural.ar / ratio,
                natural.ma / ratio,
                natural.chol / s[:, :, None],
            )
        )

    def jacobian(self, shape: Shape) -> np.ndarray:
        """Derivative (U, k, k) of `natural`, which is affine."""
        units, k = len(self.scale), shape.k
        each = Scaling(*(np.repeat(a, k + 1, 0) for a in self.parts))
        ends = each.natural(shape, np.tile(np.eye(k + 1, k), (units, 1)))
        ends = ends.reshape(units, k + 1, k)
        return (ends[:, :k] - ends[:, k:]).swapaxes(1, 2)

    def log_scale(self, sample: Sample) -> np.ndarray:
        """What the log-likelihood in standard units is too large by, (U,)."""
        return (sample.seen.sum(1) * np.log(self.scale)).sum(1)

    def _level(self, ar: np.ndarray) -> np.ndarray:
        """(I - Phi_1 - ...) location, (U, n)."""
        return self.location - (ar.sum(1) @ self.location[..., None])[..., 0]


def fit_scaling(sample: Sample) -> Scaling:
    """Moments of the series that are there; those of a series without spread are 0 and 1."""
    shape, units = sample.shape, len(sample.y)
    location, scale = _moments(sample.y, sample.seen, centred=shape.n_trend > 0)
    design = np.tile(np.eye(shape.n_design), (units, 1, 1))
    first = min(1, shape.n_trend)
    columns = sample.design[..., first:]
    inside = np.broadcast_to(sample.inside[..., None], columns.shape)
    centre, spread = _moments(columns, inside, centred=shape.n_trend > 0)
    diagonal = np.arange(first, shape.n_design)
    design[:, diagonal, diagonal] = 1 / spread
    if shape.n_trend:
        design[:, diagonal, 0] = -centre / spread
    return Scaling(location, scale, design)


def _moments(
    values: np.ndarray, seen: np.ndarray, *, centred: bool
) -> tuple[np.ndarray, np.ndarray]:
    counts = np.maximum(seen.sum(1), 1)
    mean = np.where(seen, values, 0.0).sum(1) / counts
    deviations = np.where(seen, values - mean[:, None], 0.0)
    spread = np.sqrt((deviations**2).sum(1) / counts)
    spread = np.where(spread > 0, spread, 1.0)
    return (mean if centred else np.zeros_like(mean)), spread
