"""Maximum likelihood of VARMA models for many units: standardise, start, search, report."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tsrnn.linear._estimates import Estimates
from tsrnn.linear._optimise import Evaluation, Optimum, maximise
from tsrnn.linear.varma._inference import (
    EDGE,
    OuterProducts,
    identification,
    judge,
    outer_products,
)
from tsrnn.linear.varma._likelihood import (
    evaluate,
    evaluate_portion,
    linearised,
    portions,
)
from tsrnn.linear.varma._prepare import (
    Sample,
    Scaling,
    collinear_targets,
    fit_scaling,
    unusable,
)
from tsrnn.linear.varma._start import starting_values
from tsrnn.linear.varma._system import spectral_radius

# Further starts: factors of the autoregressive and of the moving average coefficients.
_FURTHER = ((0.5, 0.5), (0.2, 1.0), (0.5, -0.5), (1.0, 0.2))
_SLOW = 8  # iterations of a search that meets nothing but one maximum
_SAME = 1e-4  # log-likelihoods that count as one
# Squared distance in standard errors from which the last step of Newton's method is taken.
_TOLERANCE = 1e-9


class Standardised(NamedTuple):
    """Units that are fitted together.

    Attributes
    ----------
    units : integer array of shape (U,)
        Their numbers.
    sample : Sample
        In the units of the data.
    scaling : Scaling
    start : array of shape (U, k)
        Starting values in standard units; empty where parameters are given.
    """

    units: np.ndarray
    sample: Sample
    scaling: Scaling
    start: np.ndarray = np.empty(0)

    @property
    def standard(self) -> Sample:
        """Sample in standard units."""
        return self.scaling.standardised(self.sample)


def standardised(sample: Sample, targets: list[str]) -> tuple[Standardised | None, dict[int, str]]:
    """Units that can be fitted, with starting values, and the reason for each that cannot."""
    reasons = unusable(sample, targets)
    units = np.array([i for i in range(len(sample.y)) if i not in reasons], int)
    if not len(units):
        return None, reasons
    usable = sample.select(units)
    scaling = fit_scaling(usable)
    first, spread = starting_values(scaling.standardised(usable))
    # Targets that determine each other are seen in the residuals of the long regression.
    refused = collinear_targets(spread, targets)
    reasons |= {int(units[i]): reason for i, reason in refused.items()}
    kept = np.array([i for i in range(len(units)) if i not in refused], int)
    if not len(kept):
        return None, reasons
    chosen = usable.select(kept), scaling.select(kept), first[kept]
    return Standardised(units[kept], *chosen), reasons


def estimates_of(
    sample: Sample, scaling: Scaling, names: tuple[str, ...], ends: Search
) -> Estimates:
    """Estimates in the units of the data from the ends of searches in standard units."""
    shape, params = sample.shape, ends.params
    standard = scaling.standardised(sample)
    n_units, k = params.shape
    last = Evaluation(np.empty(n_units), np.empty((n_units, k)), np.empty((n_units, k, k)))
    products = OuterProducts(*(np.empty((n_units, k, k)) for _ in range(2)))
    for units in portions(standard, np.arange(n_units), by_row=True):
        at = linearised(params[units], standard.select(units))
        parts = *evaluate_portion(at, exact=True), *outer_products(at)
        for whole, part in zip((*last, *products), parts, strict=True):
            whole[units] = part
    back = np.linalg.inv(scaling.jacobian(shape))
    turned = back.swapaxes(1, 2)
    natural = scaling.natural(shape, params)
    fixed, messages = judge(shape, natural, sample.n_obs)
    for i in np.flatnonzero(ends.agreement < ends.starts):
        messages[i].append(
            f"The likelihood has several maxima: {ends.agreement[i]} of {ends.starts[i]} "
            "searches ended at the highest."
        )
    for i in np.flatnonzero(~ends.converged):
        messages[i].append("The likelihood was not maximised to tolerance.")
    return Estimates(
        names=names,
        params=natural,
        loglik=last.value - scaling.log_scale(sample),
        n_obs=sample.n_obs,
        gradient=(turned @ last.gradient[..., None])[..., 0],
        hessian=-(turned @ last.curvature @ back),
        opg=turned @ products.opg @ back,
        information=turned @ products.information @ back,
        iterations=ends.iterations,
        converged=ends.converged,
        fixed=fixed,
        messages=tuple(tuple(lines) for lines in messages),
        starts=ends.starts,
        agreement=ends.agreement,
    )


class Search(NamedTuple):
    """Ends of the searches for U units.

    Attributes
    ----------
    params : array of shape (U, k)
    iterations : integer array of shape (U,)
        Of the search that won.
    converged : boolean array of shape (U,)
    starts, agreement : integer arrays of shape (U,)
        Searches, and how many of them ended at the maximum.
    """

    params: np.ndarray
    iterations: np.ndarray
    converged: np.ndarray
    starts: np.ndarray
    agreement: np.ndarray


def search(sample: Sample, first: np.ndarray, searches: int, progress: str = "") -> Search:
    """Maximise from starting values (U, k); `progress` labels the bar, if there is to be one.

    Likelihoods with a moving average have several maxima. A search that is slow, does not
    converge, or ends at the edge of invertibility or where factors cancel is doubted: others
    begin elsewhere, `searches` in all, and the highest end counts.
    """
    shape = sample.shape
    best = _maximise(sample, first, progress)
    starts, agreement = np.ones((2, len(first)), int)
    doubtful = np.flatnonzero(_is_doubtful(sample, best)) if shape.q else np.empty(0, int)
    factors = _FURTHER[: searches - 1]
    if len(doubtful) and factors:
        further = np.tile(first[doubtful], (len(factors), 1, 1))
        for begun, (ar, ma) in zip(further, factors, strict=True):
            begun[:, shape.at_ar] *= ar
            begun[:, shape.at_ma] *= ma
        repeated = sample.select(np.tile(doubtful, len(factors)))
        label = f"{progress}, further starts" if progress else ""
        others = _maximise(repeated, np.concatenate(further), label)
        values = np.vstack([best.value[doubtful], others.value.reshape(len(factors), -1)])
        starts[doubtful] = len(values)
        agreement[doubtful] = (values > values.max(0) - _SAME).sum(0)
        winner = values.argmax(0), np.arange(len(doubtful))
        for whole, part in zip(best, others, strict=True):
            ends = part.reshape(len(factors), -1, *whole.shape[1:])
            whole[doubtful] = np.concatenate([whole[doubtful][None], ends])[winner]
    # An end beyond the unit circle is no estimate, though the search may cross it.
    invertible = spectral_radius(shape.unpack(best.params).ma) < 1 + EDGE
    return Search(best.params, best.iterations, best.converged & invertible, starts, agreement)


def _maximise(sample: Sample, first: np.ndarray, progress: str) -> Optimum:
    def objective(params: np.ndarray, units: np.ndarray, exact: bool) -> Evaluation:
        return evaluate(params, sample.select(units), exact)

    return maximise(objective, first, tol=_TOLERANCE, progress=progress)


def _is_doubtful(sample: Sample, best: Optimum) -> np.ndarray:
    coefficients = sample.shape.unpack(best.params)
    doubts = ~best.converged | (best.iterations > _SLOW)
    doubts |= spectral_radius(coefficients.ma) > 1 - EDGE
    if sample.shape.p:
        doubts |= ~identification(sample.shape, coefficients, sample.rows).identified
    return doubts
