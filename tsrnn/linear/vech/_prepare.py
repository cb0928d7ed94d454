"""Preparation of a series: regression of the mean, unit variances, checks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tsrnn.data import quote
from tsrnn.linear._mean import regression
from tsrnn.linear._multivariate import collinear, too_few
from tsrnn.linear.vech._specification import Specification
from tsrnn.linear.vech._structure import Structure, vech


@dataclass(frozen=True, eq=False)
class Sample:
    """Data of one series."""

    response: np.ndarray  # (T, n)
    regressors: np.ndarray  # (T, r)
    presample: np.ndarray  # s, (N,): vech(e e') and h before the first observation

    @property
    def n_mean(self) -> int:
        """Number of coefficients of the mean."""
        return self.response.shape[1] * self.regressors.shape[1]


class Prepared(NamedTuple):
    """Series scaled so that least-squares residuals and regressors have mean square one."""

    sample: Sample
    coefficients: np.ndarray  # (n, r), of least squares
    scale: np.ndarray  # (n,), scale of each variable
    regressor_scale: np.ndarray  # (r,)
    beta: np.ndarray  # (n, rank), cointegrating vectors on the scale of the data

    def units(self, structure: Structure) -> np.ndarray:
        """Factors (k,) that convert parameters to the scale of the data."""
        mean = self.scale[:, None] / self.regressor_scale
        return np.concatenate([mean.ravel(), np.exp(structure.units @ np.log(self.scale))])

    @property
    def presample(self) -> np.ndarray:
        """vech(e e') before the first observation, on the scale of the data."""
        return self.sample.presample * vech(np.outer(self.scale, self.scale))

    @property
    def shift(self) -> float:
        """Term that converts the log-likelihood to the scale of the data."""
        return -len(self.sample.response) * float(np.log(self.scale).sum())


def prepare(spec: Specification, values: np.ndarray, beta: np.ndarray | None = None) -> Prepared:
    """Prepare a series (T, n), with given or estimated cointegrating vectors."""
    if not np.isfinite(values).all():
        raise ValueError("values must be finite; there are infinite or missing ones")
    for name, column in zip(spec.targets, values.T, strict=True):
        if len(column) > 1 and np.ptp(column) == 0:
            raise ValueError(f"{quote(name)} is constant. Drop it")
    mean = regression(spec.mean, values, beta)
    errors = mean.residuals
    scale = np.sqrt((errors**2).mean(0))
    if (scale == 0).any():
        raise ValueError(
            f"the mean leaves no residual of {quote(spec.targets[int(np.argmin(scale))])}. Drop it"
        )
    errors = errors / scale
    second_moments = errors.T @ errors / len(errors)
    names = collinear(second_moments, spec.targets)
    if names:
        raise ValueError(f"{names} are perfectly collinear. Drop one of them")
    regressor_scale = np.sqrt((mean.regressors**2).mean(0))
    response, regressors = mean.response / scale, mean.regressors / regressor_scale
    sample = Sample(response, regressors, vech(second_moments))
    coefficients = mean.coefficients * regressor_scale / scale[:, None]
    return Prepared(sample, coefficients, scale, regressor_scale, mean.beta)


def check_size(spec: Specification, steps: int) -> None:
    """Raise a ValueError if rows are too few to estimate."""
    reason = too_few(steps, spec.n, spec.n_params)
    if reason:
        raise ValueError(f"{reason}, or a simpler structure")
    least = max(spec.p, spec.q) + spec.n + 1
    if steps < least:
        raise ValueError(
            f"{spec.n} variables and these lags need at least {least} rows after those that the "
            f"mean takes; there are {steps}. Take fewer lags or a longer series"
        )
