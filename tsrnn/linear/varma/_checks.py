"""Data that a VARMA model cannot be fitted to, and ends of a search to be wary of, in words."""

from __future__ import annotations

import numpy as np

from tsrnn.linear.varma._sample import Sample
from tsrnn.linear.varma._search import EDGE, Found
from tsrnn.linear.varma._shape import Shape
from tsrnn.linear.varma._system import spectral_radius

# Eigenvalue of a correlation matrix, or of one of regressors, that counts as zero.
_ZERO = 1e-10
_NO_ERROR = 1e-7  # standard deviation of innovations, that of the series being one
_INVOLVED = 0.05  # loading on an eigenvector from which a series is named


def unusable(sample: Sample, targets: list[str]) -> dict[int, str]:
    """Why units cannot be fitted, by their numbers."""
    reasons, shape = {}, sample.shape
    for unit in range(len(sample.y)):
        rows = int(sample.rows[unit])
        reason = _reason(shape, sample.y[unit, :rows], sample.design[unit, :rows], targets)
        if reason:
            reasons[unit] = reason
    return reasons


def _reason(shape: Shape, y: np.ndarray, design: np.ndarray, targets: list[str]) -> str:
    seen = np.isfinite(y)
    observed = int(seen.any(1).sum())
    slopes = shape.n_design + shape.n * (shape.p + shape.q)  # of an equation
    # With no more rows than coefficients and targets some combination of the targets is fitted
    # without error, and the likelihood has no maximum.
    needed = max(2 * shape.lags + shape.k // shape.n + 2, shape.lags + slopes + shape.n + 1)
    if observed < needed:
        return (
            f"{shape.k} parameters of {shape.n} targets need at least {needed} observed rows; got "
            f"{observed}. Take a smaller order, fewer targets or a longer series."
        )
    for i, name in enumerate(targets):
        values = y[seen[:, i], i]
        if len(values) < 2 or np.ptp(values) == 0:
            what = "does not vary" if len(values) else "has no value"
            return f"the target {name!r} {what}. Leave it out."
    if not shape.exact and not seen.all():
        return (
            f"the conditional likelihood needs every value; {int((~seen).sum())} are missing. "
            "Take likelihood='exact', or fill them."
        )
    return _collinear_design(shape, design)


def _collinear_design(shape: Shape, design: np.ndarray) -> str:
    centred = design[:, min(1, shape.n_trend) :]
    if shape.n_trend:
        centred = centred - centred.mean(0)
    size = np.sqrt((centred**2).mean(0))
    if not len(size):
        return ""
    scaled = centred / np.where(size > 0, size, 1.0)
    if np.linalg.eigvalsh(scaled.T @ scaled / len(scaled))[0] > _ZERO:
        return ""
    return (
        "the exogenous columns are perfectly collinear, with each other or with the trend. "
        "Leave one out."
    )


def collinear(spread: np.ndarray, targets: list[str]) -> dict[int, str]:
    """Why units cannot be fitted, from covariances (U, n, n) of innovations in standard units."""
    size = np.sqrt(np.diagonal(spread, axis1=1, axis2=2))
    exact = size < _NO_ERROR
    scale = np.where(exact, 1.0, size)
    values, vectors = np.linalg.eigh(spread / (scale[:, :, None] * scale[:, None, :]))
    reasons = {}
    for unit in np.flatnonzero(exact.any(1) | (values[:, 0] < _ZERO)):
        if exact[unit].any():
            name = targets[int(exact[unit].argmax())]
            reasons[int(unit)] = (
                f"the target {name!r} is a function of the past without error. Leave it out."
            )
            continue
        involved = np.flatnonzero(np.abs(vectors[unit, :, 0]) > _INVOLVED)
        reasons[int(unit)] = (
            f"the targets {', '.join(repr(targets[i]) for i in involved)} are perfectly collinear "
            "given the past: one of them is a combination of the others. Leave one out."
        )
    return reasons


def at_the_edge(
    shape: Shape, params: np.ndarray, found: Found
) -> tuple[np.ndarray, list[tuple[str, ...]]]:
    """Parameters (U, k) without a normal limit, and warnings of each unit."""
    coefficients = shape.unpack(params)
    ar, ma = spectral_radius(coefficients.ar), spectral_radius(coefficients.ma)
    fixed = np.zeros(params.shape, bool)
    fixed[:, shape.at_ma] = (ma > 1 - EDGE)[:, None, None, None]
    return fixed, [_warnings(ar[i], ma[i], found, i) for i in range(len(params))]


def _warnings(ar: float, ma: float, found: Found, i: int) -> tuple[str, ...]:
    result = []
    if ar > 1 - EDGE:
        result.append(
            f"The largest autoregressive root has modulus {ar:.4f}: the series is not stationary, "
            "and normal standard errors do not hold."
        )
    if ma > 1 - EDGE:
        result.append(
            f"The largest moving-average root has modulus {ma:.4f}, the edge of invertibility: "
            "its coefficients have no normal limit and no standard errors."
        )
    if found.agreeing[i] < found.searches[i]:
        result.append(
            f"The likelihood has several maxima: {found.agreeing[i]} of {found.searches[i]} "
            "searches ended at the highest."
        )
    if not found.converged[i]:
        result.append("The likelihood was not maximised to tolerance.")
    return tuple(result)
