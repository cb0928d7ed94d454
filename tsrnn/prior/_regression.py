r"""Bayesian regression on columns, averaged over noise models with fixed variances.

.. math:: y_t = x_t' \beta + n_t, \qquad
    \beta \mid \sigma^2 \sim N(\mu, \sigma^2 \Lambda^{-1}), \qquad \sigma^2 \sim IG

The noise :math:`n_t` follows one of J models, whose gains do not depend on the data. The filter of
a model turns y and each column into innovations, and the coefficients come from a regression of
innovations on innovations, which needs sums over rows only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from scipy.special import gammaln

from tsrnn.prior._structural import DEGREES, FIRST_SCALE, structural_filter

FIRST_ROWS = 2  # rows that set the level and the noise of a structural model
TEMPERED = 0.5  # power of the likelihoods in weights: misspecified models are overconfident
SMALLEST = 1e-12  # information of a column over its largest under any model: below, rounding errors
LEAST_LEFT = 1e-10  # smallest residual share of the squares, so that exact relations are defined
TINY = 1e-300  # keeps logarithms and quotients of zeros finite
# AR(1) coefficients for long series. 1 would remove the level.
PERSISTENCE = (0.0, 0.5, 0.8, 0.9, 0.95, 0.98, 0.995)


@dataclass(frozen=True, eq=False)
class Moments:
    """Sufficient statistics of U units on C scales under J noise models.

    Cross products are of the standardised innovations of p columns, and of columns and target. The
    squares of the target include those of the noise prior.
    """

    information: np.ndarray  # (U, J, p, p)
    products: np.ndarray  # (U, C, J, p)
    squares: np.ndarray  # (U, C, J)
    constant: np.ndarray  # log likelihood without coefficients, (U, C, J)
    degrees: np.ndarray  # of freedom, (U,)

    @property
    def unit_information(self) -> np.ndarray:
        """Mean information of a row about each column, shape (U, J, p)."""
        diagonal = np.einsum("ujkk->ujk", self.information) / self.degrees[:, None, None]
        return np.maximum(diagonal, SMALLEST * diagonal.max(1, keepdims=True) + TINY)

    def columns(self, kept: np.ndarray) -> Moments:
        """Moments of the selected columns."""
        information = self.information[..., kept[:, None], kept]
        return replace(self, information=information, products=self.products[..., kept])

    def models(self, kept: np.ndarray) -> Moments:
        """Moments under the selected noise models."""
        return replace(
            self,
            information=self.information[:, kept],
            products=self.products[:, :, kept],
            squares=self.squares[..., kept],
            constant=self.constant[..., kept],
        )

    def scale(self, number: int) -> Moments:
        """Moments on one scale."""
        kept = slice(number, number + 1)
        return replace(
            self,
            products=self.products[:, kept],
            squares=self.squares[:, kept],
            constant=self.constant[:, kept],
        )

    def around(self, coefficient: np.ndarray) -> Moments:
        """Moments of the residuals of the targets, given coefficients (U, p)."""
        column = coefficient[:, None, :, None]
        explained = (self.information @ column)[..., 0]  # (U, J, p)
        products = self.products - explained[:, None]
        squares = self.squares - ((self.products + products) @ column)[..., 0]
        return replace(self, products=products, squares=np.maximum(squares, 0.0))


def structural_moments(
    targets: Sequence[np.ndarray],
    columns: Sequence[np.ndarray],
    jacobian: np.ndarray,
    season_length: int,
    models: np.ndarray | None = None,
) -> Moments:
    """Moments under the structural models of a season length, or those with the indices `models`.

    Targets (C, T) are a unit's rows on each scale, columns (p, T) its regressors; rows with a
    missing value are dropped. `jacobian` (U, C) is the log Jacobian of each scale, summed over the
    remaining rows.
    """
    longest = np.arange(max(target.shape[1] for target in targets))
    parts: list[tuple[np.ndarray, ...]] = []
    for target, column in zip(targets, columns, strict=True):
        lanes, n_scales = np.concatenate([target, column]), len(target)
        rows = np.flatnonzero(np.isfinite(lanes).all(0))
        lanes = lanes[:, rows] - lanes[:, rows[:1]]
        # Units without gaps share the filter of the longest one.
        has_gaps = len(rows) > 0 and rows[-1] - rows[0] >= len(rows)
        kalman = structural_filter(season_length, rows - rows[0] if has_gaps else longest)
        if models is not None:
            kalman = kalman.of(models)
        innovations, _ = kalman.innovations(np.ascontiguousarray(lanes))  # (lanes, T, J)
        weighted = np.ascontiguousarray(innovations[:, FIRST_ROWS:].transpose(2, 0, 1))
        cross = weighted @ weighted.swapaxes(1, 2)
        change = np.abs(np.diff(lanes[:n_scales])).sum(1) / max(len(rows) - 1, 1)
        known = np.repeat(DEGREES * (FIRST_SCALE * change[:, None]) ** 2, len(kalman.damping), 1)
        parts.append(
            (
                cross[:, n_scales:, n_scales:],
                cross[:, :n_scales, n_scales:].swapaxes(0, 1),
                np.einsum("jcc->cj", cross[:, :n_scales, :n_scales]) + known,
                _log_prior_of_noise(known) + np.log(kalman.weight[FIRST_ROWS : len(rows)]).sum(0),
                np.array(max(len(rows) - FIRST_ROWS, 1) + DEGREES),
            )
        )
    return _stacked(parts, jacobian)


def _stacked(parts: Sequence[tuple[np.ndarray, ...]], jacobian: np.ndarray) -> Moments:
    """Stack the sums of each unit."""
    information, products, squares, constant, degrees = (
        np.stack(part) for part in zip(*parts, strict=True)
    )
    return Moments(information, products, squares, jacobian[..., None] + constant, degrees)


def _log_prior_of_noise(known: np.ndarray) -> np.ndarray:
    """Normalisation of the noise prior with squares `known`, which differs between scales."""
    return 0.5 * DEGREES * np.log(np.maximum(known, TINY))


def autoregressive_moments(
    targets: Sequence[np.ndarray], columns: Sequence[np.ndarray], jacobian: np.ndarray
) -> Moments:
    """Moments of long series under AR(1) models around a mean.

    Arguments are as in `structural_moments`. Pairs of successive rows with a missing value are
    dropped.
    """
    parts: list[tuple[np.ndarray, ...]] = []
    rho = np.array(PERSISTENCE)[:, None, None]
    for target, column in zip(targets, columns, strict=True):
        rows = np.concatenate([target, column])
        count = np.isfinite(rows).sum(1, keepdims=True)
        rows = rows - np.nansum(rows, 1, keepdims=True) / np.maximum(count, 1)
        pairs = np.isfinite(rows[:, 1:]).all(0) & np.isfinite(rows[:, :-1]).all(0)
        now, before = rows[:, 1:][:, pairs], rows[:, :-1][:, pairs]
        # Three products give (a - rho b)(a - rho b)' for all rho.
        crossed = now @ before.T
        cross = now @ now.T - rho * (crossed + crossed.T) + rho**2 * (before @ before.T)
        n_scales = len(target)
        squares = np.einsum("jcc->cj", cross[:, :n_scales, :n_scales])
        change = np.abs(now - before)[:n_scales].sum(1) / max(pairs.sum(), 1)
        known = np.repeat(DEGREES * (FIRST_SCALE * change[:, None]) ** 2, len(rho), 1)
        parts.append(
            (
                cross[:, n_scales:, n_scales:],
                cross[:, :n_scales, n_scales:].swapaxes(0, 1),
                squares + known,
                _log_prior_of_noise(known),
                np.array(pairs.sum() + DEGREES),
            )
        )
    return _stacked(parts, jacobian)


def log_evidence(moments: Moments, strength: np.ndarray) -> np.ndarray:
    """Log marginal likelihood (U, C, J), with coefficients and noise integrated out.

    `strength` (p,) is the prior strength of each coefficient in rows, infinite to drop a column.
    """
    kept = np.flatnonzero(np.isfinite(strength))
    half = 0.5 * moments.degrees[:, None, None]
    constant = moments.constant + gammaln(half)
    squares = np.maximum(moments.squares, TINY)  # a constant has zero squares
    if not len(kept):
        return constant - half * np.log(squares)
    part, factor, solved = _solved(moments, strength, kept)
    prior = np.log(strength[kept] * part.unit_information).sum(-1)
    posterior = 2 * np.log(np.einsum("ujkk->ujk", factor)).sum(-1)
    left = squares - (part.products * solved).sum(-1)
    left = np.maximum(left, LEAST_LEFT * squares)
    return constant + 0.5 * (prior - posterior)[:, None] - half * np.log(left)


def _solved(
    moments: Moments, strength: np.ndarray, kept: np.ndarray
) -> tuple[Moments, np.ndarray, np.ndarray]:
    """Moments of the kept columns, Cholesky factor of the precision, coefficients (U, C, J, p)."""
    part = moments.columns(kept)
    precision = part.information.copy()
    diagonal = np.arange(len(kept))
    precision[..., diagonal, diagonal] += strength[kept] * part.unit_information
    factor = np.linalg.cholesky(precision)
    right = part.products.transpose(0, 2, 3, 1)  # (U, J, p, C)
    coefficient = np.linalg.solve(precision, right).transpose(0, 3, 1, 2)
    return part, factor, coefficient


def likeliest(moments: Moments, strength: np.ndarray) -> list[Moments]:
    """Moments of each unit under its likeliest noise model, by scale.

    They are divided by the residual variance, so that the noise has variance 1.
    """
    unit, kept = np.arange(len(moments.degrees)), np.flatnonzero(np.isfinite(strength))
    by_scale = []
    for scale, best in enumerate(log_evidence(moments, strength).argmax(-1).T):
        information = moments.information[unit, best]
        products, squares = moments.products[unit, scale, best], moments.squares[unit, scale, best]
        prior = np.zeros_like(information)
        prior[:, kept, kept] = strength[kept] * moments.unit_information[unit, best][:, kept]
        inside = np.ix_(unit, kept, kept)
        solved = np.linalg.solve((information + prior)[inside], products[:, kept, None])[..., 0]
        left = squares - (products[:, kept] * solved).sum(-1)
        variance = np.maximum(left, LEAST_LEFT * squares) / moments.degrees
        variance = np.where(squares > 0, variance, np.inf)  # a constant has no information
        logs = np.where(squares > 0, np.log(np.maximum(variance, TINY)), 0.0)
        constant = moments.constant[unit, scale, best] - 0.5 * moments.degrees * logs
        by_scale.append(
            Moments(
                (information / variance[:, None, None])[:, None],
                (products / variance[:, None])[:, None, None],
                (squares / variance)[:, None, None],
                constant[:, None, None],
                moments.degrees,
            )
        )
    return by_scale


def shared(units: Moments) -> Moments:
    """Sum the moments of `likeliest` over units that share their coefficients."""
    return Moments(*(getattr(units, each.name).sum(0, keepdims=True) for each in fields(units)))


def averaged(evidence: np.ndarray) -> np.ndarray:
    """Log of the mean over noise models of the likelihoods of `log_evidence`, shape (U, C)."""
    largest = evidence.max(-1, keepdims=True)
    return largest[..., 0] + np.log(np.exp(evidence - largest).mean(-1))


@dataclass(frozen=True, eq=False)
class Posterior:
    """Coefficients of U units, averaged over noise models."""

    coefficient: np.ndarray  # (U, p)
    covariance: np.ndarray  # (U, p, p)
    used: np.ndarray  # degrees of freedom of the coefficients, (U,)


def posterior(moments: Moments, strength: np.ndarray) -> Posterior:
    """Posterior of the coefficients on one scale, zero for dropped columns."""
    n_units, _, _, n_columns = moments.products.shape
    kept = np.flatnonzero(np.isfinite(strength))
    coefficient = np.zeros((n_units, n_columns))
    covariance, used = np.zeros((n_units, n_columns, n_columns)), np.zeros(n_units)
    if not len(kept):
        return Posterior(coefficient, covariance, used)
    evidence = log_evidence(moments, strength)[:, 0]
    weights = np.exp(TEMPERED * (evidence - evidence.max(1, keepdims=True)))
    weights /= weights.sum(1, keepdims=True)
    part, factor, solved = _solved(moments, strength, kept)
    by_model = solved[:, 0]  # (U, J, p)
    mean = np.einsum("uj,ujk->uk", weights, by_model)
    left = moments.squares[:, 0] - (part.products[:, 0] * by_model).sum(-1)
    left = np.maximum(left, LEAST_LEFT * moments.squares[:, 0]) / moments.degrees[:, None]
    root = np.linalg.inv(factor)
    inverse = root.swapaxes(-1, -2) @ root
    apart = by_model - mean[:, None]
    spread = np.einsum("uj,ujk,ujl->ukl", weights, apart, apart)
    coefficient[:, kept] = mean
    covariance[:, kept[:, None], kept] = np.einsum("uj,ujkl->ukl", weights * left, inverse) + spread
    used += np.einsum("uj,ujkl,ujlk->u", weights, inverse, part.information, optimize=True)
    return Posterior(coefficient, covariance, used)
