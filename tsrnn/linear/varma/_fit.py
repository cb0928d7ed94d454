"""Maximum likelihood of VARMA models of many units: standardise, start, search, report."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from tsrnn.linear._estimates import Deferred, Estimates
from tsrnn.linear._multivariate import spectral_radius
from tsrnn.linear._optimise import Evaluation, Optimum, maximise
from tsrnn.linear.varma._filter import predictions, standardised_errors
from tsrnn.linear.varma._inference import (
    EDGE,
    Identification,
    identification,
    judge,
    outer_products,
)
from tsrnn.linear.varma._likelihood import evaluate, evaluate_portion, linearised, portions
from tsrnn.linear.varma._prepare import Sample, Scaling, collinear_targets, fit_scaling, unusable
from tsrnn.linear.varma._specification import Coefficients, Shape
from tsrnn.linear.varma._system import root_bound

# Further starts: factors of the autoregressive and of the moving average coefficients.
_FURTHER = ((0.5, 0.5), (0.2, 1.0), (0.5, -0.5), (1.0, 0.2))
_SLOW = 8  # a search with more iterations may have met several maxima
_SAME = 1e-4  # log-likelihoods this close belong to one maximum
_INSIDE = 0.7  # beyond this modulus of a moving-average root, another maximum may be higher
_LARGE, _MOST_NESTED = 40, 9  # more parameters, or nested models, are not searched in full
# Sizes of a lag of the autoregression (0 keeps the start) and of the moving average: roots close to
# the unit circle, and factors of both sides that nearly cancel.
_FACTORS = ((0.0, 0.9), (0.8, 0.5), (0.7, 0.97))
_DRAWN = 8  # random starts
# Moduli of the roots of a nearly cancelling factor, in the autoregression and the moving average: a
# peak or a dip of the spectrum.
_MODULI = ((0.97, 0.85), (0.85, 0.97), (0.92, 0.99))
_FREQUENCIES = np.linspace(0, np.pi, 25)  # of these roots
_BANDWIDTH = np.pi / 20  # of the spectrum that gives their directions
_FACTORS_TRIED = 8  # starts with such a factor
_FLATTEST = 0.01  # ratio of axes below which an ellipse is a line, not a plane
_LONG_CLIMBS, _LONG_ITER = 4, 300  # ends that continue along a ridge by Newton's method, iterations
# Squared distance in standard errors at which the last Newton step is taken without evaluation: the
# step squares the distance.
_TOLERANCE = 1e-8
_RIDGE = 1e-10  # relative; keeps a regression with too many columns solvable
_LARGEST_ROOT = 0.97  # of starting values


class Standardised(NamedTuple):
    """Batch of units, standardised."""

    units: np.ndarray  # (U,) numbers
    scaling: Scaling
    sample: Sample  # standardised
    presample: np.ndarray  # (U, n), on the scale of the data
    start: np.ndarray = np.empty(0)  # (U, k) standardised; empty with given parameters


def standardised(
    sample: Sample, targets: list[str], exog: list[str]
) -> tuple[Standardised | None, dict[int, str]]:
    """Standardise units and find starting values; with reasons for refusals."""
    reasons = unusable(sample, targets, exog)
    units = np.array([i for i in range(len(sample.y)) if i not in reasons], int)
    if not len(units):
        return None, reasons
    usable = sample.select(units)
    scaling = fit_scaling(usable)
    standard = scaling.standardised(usable)
    first, spread = starting_values(standard)
    # Collinear targets show in the residuals of the long regression.
    refused = collinear_targets(spread, targets)
    reasons |= {int(units[i]): reason for i, reason in refused.items()}
    kept = np.array([i for i in range(len(units)) if i not in refused], int)
    if not len(kept):
        return None, reasons
    chosen = scaling.select(kept), standard.select(kept), usable.presample[kept], first[kept]
    return Standardised(units[kept], *chosen), reasons


def estimates_of(sample: Standardised, names: tuple[str, ...], ends: Search) -> Estimates:
    """Estimates on the scale of the data at the ends of searches, with derivatives on demand."""
    standard, shape = sample.sample, sample.sample.shape
    natural = sample.scaling.natural(shape, ends.params)
    n_obs = standard.n_obs
    fixed, messages = judge(shape, natural, n_obs, ends.identification)
    for i in np.flatnonzero(ends.agreement < ends.starts):
        messages[i].append(
            f"The likelihood has several maxima: {ends.agreement[i]} of {ends.starts[i]} "
            "searches ended at the highest."
        )
    for i in np.flatnonzero(~ends.converged):
        messages[i].append("The likelihood was not maximised to tolerance.")
    curvature: Any = Deferred(_derivatives, standard, sample.scaling, ends.params)
    products: Any = Deferred(_outer_products, standard, sample.scaling, ends.params)
    return Estimates(
        names=names,
        params=natural,
        loglik=ends.value - sample.scaling.log_scale(standard),
        n_obs=n_obs,
        gradient=curvature,
        hessian=curvature,
        opg=products,
        information=products,
        iterations=ends.iterations,
        converged=ends.converged,
        fixed=fixed,
        messages=tuple(tuple(lines) for lines in messages),
        starts=ends.starts,
        agreement=ends.agreement,
    )


def _derivatives(sample: Sample, scaling: Scaling, params: np.ndarray) -> dict[str, np.ndarray]:
    """Gradient and Hessian on the scale of the data, at standardised parameters (U, k)."""
    units = portions(sample, np.arange(len(params)))
    parts = [evaluate_portion(linearised(params[i], sample.select(i)), exact=True) for i in units]
    order = np.concatenate(units).argsort()
    back = np.linalg.inv(scaling.jacobian(sample.shape))
    gradient, curvature = (
        np.concatenate([getattr(part, name) for part in parts])[order]
        for name in ("gradient", "curvature")
    )
    transposed = back.swapaxes(1, 2)
    gradient = (transposed @ gradient[..., None])[..., 0]
    return {"gradient": gradient, "hessian": -(transposed @ curvature @ back)}


def _outer_products(sample: Sample, scaling: Scaling, params: np.ndarray) -> dict[str, np.ndarray]:
    """Outer products of scores and information, as in `_derivatives`."""
    units = portions(sample, np.arange(len(params)), by_row=True)
    parts = [outer_products(linearised(params[i], sample.select(i))) for i in units]
    order = np.concatenate(units).argsort()
    back = np.linalg.inv(scaling.jacobian(sample.shape))
    return {
        name: back.swapaxes(1, 2)
        @ np.concatenate([getattr(part, name) for part in parts])[order]
        @ back
        for name in ("opg", "information")
    }


class Search(NamedTuple):
    """Highest ends of the searches of U units."""

    params: np.ndarray  # (U, k)
    value: np.ndarray  # (U,), log-likelihood
    iterations: np.ndarray  # (U,), of the highest search
    converged: np.ndarray  # (U,)
    starts: np.ndarray  # (U,), number of searches
    agreement: np.ndarray  # (U,), number of searches that ended at the maximum
    identification: Identification | None = None  # at the ends, if known


def search(sample: Sample, first: np.ndarray, searches: int, progress: str = "") -> Search:
    """Maximise from starting values (U, k); `progress` labels a progress bar, empty for none.

    Likelihoods with a moving average have several maxima. An end is doubtful if its search was
    slow or did not converge, or if it is near the edge of invertibility or common factors. Then
    further searches, `searches` in all, begin at weaker and stronger coefficients. Models that are
    not large also begin at the optima of nested models, in the corners of the invertible region,
    with nearly cancelling factors and at random. The highest end is taken.
    """
    shape = sample.shape
    best = _maximise(sample, first, progress)
    starts, agreement = np.ones((2, len(first)), int)
    doubtful, judged = np.empty(0, int), None
    radius = spectral_radius(shape.unpack(best.params).ma)
    if shape.q:  # only moving averages have several maxima
        doubts = ~best.converged | (best.iterations > _SLOW) | (radius > _INSIDE)
        if shape.p:
            judged = identification(shape, shape.unpack(best.params), sample.n_obs)
            doubts |= ~judged.identified
        doubtful = np.flatnonzero(doubts)
    if len(doubtful) and searches > 1:
        part = sample.select(doubtful)
        label = f"{progress}, further starts" if progress else ""
        known: dict[tuple[int, int], np.ndarray] = {}
        if shape.k <= _LARGE:  # small models first: their optima are starts of larger ones
            for p, q in _nested_orders(shape.p, shape.q):
                inner = _with_shape(part, replace(shape, p=p, q=q))
                begun = _further_starts(inner, starting_values(inner)[0], known, searches)
                known[p, q] = _highest_end(inner, begun, label)[0].params
        begun = _further_starts(part, first[doubtful], known, searches)
        begun[0] = best.params[doubtful]  # the end of the first search
        others, values = _highest_end(part, begun, label)
        starts[doubtful] = len(values)
        agreement[doubtful] = np.maximum((values > values.max(0) - _SAME).sum(0), 1)
        for whole, ends in zip(best, others, strict=True):
            whole[doubtful] = ends
        radius, judged = spectral_radius(shape.unpack(best.params).ma), None
    converged = best.converged & (radius < 1 + EDGE)
    # Add the rise of the last Newton step by its quadratic approximation.
    value = best.value + np.where(best.converged, best.decrement / 2, 0.0)
    return Search(best.params, value, best.iterations, converged, starts, agreement, judged)


def _nested_orders(p: int, q: int) -> list[tuple[int, int]]:
    """Orders of nested models, smallest first; if there are many, only those with a lag less."""
    orders = [(i, j) for i in range(p + 1) for j in range(q + 1) if i + j]
    if len(orders) > _MOST_NESTED:
        orders = [(p, 0), (0, q), (p - 1, q), (p, q - 1), (p, q)]
    return sorted(set(orders), key=sum)[:-1]


def _with_shape(sample: Sample, shape: Shape) -> Sample:
    return Sample(shape, sample.y, sample.design, sample.presample, sample.rows)


def _further_starts(
    sample: Sample, first: np.ndarray, known: dict[tuple[int, int], np.ndarray], searches: int
) -> list[np.ndarray]:
    """Starts (U, k): the first one, nested optima, corners, then scaled coefficients."""
    shape, begun = sample.shape, [first]
    if not shape.q:  # an autoregression has one maximum
        return begun
    for (p, q), params in known.items():
        if shape.p - p + shape.q - q == 1 and p <= shape.p and q <= shape.q:
            begun.append(_embedded(shape, replace(shape, p=p, q=q), params))
    if shape.k <= _LARGE:
        begun += _corners(shape, first)
        if shape.p:
            inner = _with_shape(sample, replace(shape, p=shape.p - 1, q=shape.q - 1))
            orders = inner.shape.p, inner.shape.q
            optimum = known[orders] if orders in known else starting_values(inner)[0]
            begun += _nearly_cancelling(sample, inner, optimum)
    for ar, ma in _FURTHER[: searches - 1]:
        begun.append(first.copy())
        begun[-1][:, shape.at_ar] *= ar
        begun[-1][:, shape.at_ma] *= ma
    return begun


def _corners(shape: Shape, first: np.ndarray) -> list[np.ndarray]:
    """Starts with roots close to the unit circle, with nearly common factors, and at random."""
    begun = []
    # Positive and negative real roots of each target, or imaginary ones of pairs of targets.
    corners = [np.diag(signs) for signs in product((1.0, -1.0), repeat=shape.n)]
    pair = np.kron(np.eye(shape.n // 2), [[0.0, 1.0], [-1.0, 0.0]])
    corners += [pair, -pair] if shape.n % 2 == 0 else []
    for (ar, ma), corner in product(_FACTORS, corners):
        if ar and not shape.p:
            continue
        begun.append(first.copy())
        for at, size in ((shape.at_ar, ar), (shape.at_ma, -ma)):
            if size:
                begun[-1][:, at] = 0.0
                begun[-1][:, at[:, 0]] = size * corner
    rng = np.random.default_rng(0)  # the same in every fit
    for _ in range(_DRAWN):
        begun.append(first.copy())
        for at, sign in ((shape.at_ar, 1), (shape.at_ma, -1)):
            lags = _stable(rng.uniform(-1, 1, (1, at.shape[1], shape.n, shape.n)))
            begun[-1][:, at] = sign * lags.swapaxes(1, 2)
    return begun


def _nearly_cancelling(sample: Sample, inner: Sample, params: np.ndarray) -> list[np.ndarray]:
    """Starts (U, k): optimum of a lag less on both sides, times a nearly cancelling factor.

    If the factor cancels, the likelihood is that of the smaller model. Beside this ridge it has
    maxima at many frequencies of the factor's roots, as a periodogram has peaks. They lie in the
    direction of the residuals' largest power if the autoregression's root is closer to the unit
    circle, and of their smallest power if the moving average's is.
    """
    shape, small = sample.shape, inner.shape.unpack(params)
    rotations = np.concatenate(_rotations(inner, small), 1)  # (U, F, n, n), peaks, then dips
    units, count = rotations.shape[:2]
    starts = np.empty((len(_MODULI), units, count, shape.k))
    value = np.empty(starts.shape[:3])
    lanes = sample.select(np.repeat(np.arange(units), count))
    n, p, q = shape.n, shape.p, shape.q
    for place, height, (size_ar, size_ma) in zip(starts, value, _MODULI, strict=True):
        left = np.eye(n) - size_ar * rotations
        ar, ma = (np.zeros((units, count, lags + 1, n, n)) for lags in (p, q))
        # The exact factor is left of both polynomials. Right of the moving average it is the same
        # only if the two commute, as with one lag, and close enough for a start.
        ar[:, :, 1:-1] = -small.ar[:, None]
        ma[:, :, 1:-1] = small.ma[:, None]
        ar[:, :, 0] = ma[:, :, 0] = np.eye(n)
        ar[:, :, 1:] -= size_ar * rotations[:, :, None] @ ar[:, :, :-1].copy()
        ma[:, :, 1:] -= size_ma * ma[:, :, :-1].copy() @ rotations[:, :, None]
        parts = left @ small.design[:, None], -ar[:, :, 1:], ma[:, :, 1:]
        chol = np.repeat(small.chol[:, None], count, 1)
        params = shape.pack(
            Coefficients(*(part.reshape(-1, *part.shape[2:]) for part in (*parts, chol)))
        )
        place[:] = params.reshape(units, count, -1)
        height[:] = evaluate(params, lanes, exact=False).value.reshape(units, count)
    # Peaks over the frequency at the best modulus of each, then the highest other frequencies.
    value = np.nan_to_num(value, nan=-np.inf)
    size, profile = value.argmax(0), value.max(0).reshape(units, 2, -1)
    padded = np.pad(profile, ((0, 0), (0, 0), (1, 1)), constant_values=-np.inf)
    peak = (profile >= padded[..., :-2]) & (profile >= padded[..., 2:])
    rank = np.where(peak, profile, profile - 1e6).reshape(units, -1)
    order = np.argsort(-rank, axis=1, kind="stable")[:, :_FACTORS_TRIED].T
    unit = np.arange(units)
    return [starts[size[unit, j], unit, j] for j in order]


def _rotations(sample: Sample, at: Coefficients) -> list[np.ndarray]:
    """Rotations (U, F, n, n) of a plane by each frequency, of largest and of smallest power."""
    steps = sample.y.shape[1]
    if sample.shape.lags:
        errors = standardised_errors(sample, predictions(at, sample))
    else:
        errors = sample.y - sample.design @ at.design.swapaxes(1, 2)
        errors = np.linalg.solve(at.chol[:, None], errors[..., None])[..., 0]
    power = np.fft.fft(np.where(np.isfinite(errors), errors, 0.0), axis=1)
    distance = _FREQUENCIES[:, None] - 2 * np.pi * np.arange(steps) / steps
    distance = (distance + np.pi) % (2 * np.pi) - np.pi
    weight = np.exp(-0.5 * (distance / _BANDWIDTH) ** 2)
    spectrum = np.einsum("ft,uti,utj->ufij", weight, power, power.conj(), optimize=True)
    vectors = np.linalg.eigh(spectrum)[1]
    cos, sin = np.cos(_FREQUENCIES), np.sin(_FREQUENCIES)
    rotation = np.stack([np.stack([cos, sin], 1), np.stack([-sin, cos], 1)], 1)
    # Right eigenvectors of the largest power on the scale of y, left ones of the smallest.
    most = at.chol[:, None] @ vectors[..., -1:]
    least = np.linalg.solve(at.chol.swapaxes(1, 2)[:, None], vectors[..., :1]).conj()
    result = []
    for vector in (most, least):
        plane = np.concatenate([vector.real, vector.imag], -1)
        # At frequencies zero and pi the plane is a line.
        result.append(plane @ rotation @ np.linalg.pinv(plane, rcond=_FLATTEST))
    return [result[0], result[1].swapaxes(2, 3)]


def _embedded(shape: Shape, smaller: Shape, params: np.ndarray) -> np.ndarray:
    """Parameters of a larger model from a nested one, with zeros for further lags."""
    inner = smaller.unpack(params)
    more = [np.zeros((len(params), lags, shape.n, shape.n))
            for lags in (shape.p - smaller.p, shape.q - smaller.q)]  # fmt: skip
    ar, ma = (np.concatenate(part, 1) for part in ((inner.ar, more[0]), (inner.ma, more[1])))
    return shape.pack(Coefficients(inner.design, ar, ma, inner.chol))


def _highest_end(sample: Sample, begun: list[np.ndarray], label: str) -> tuple[Optimum, np.ndarray]:
    """Highest ends of searches from several starts, and values (count, U) of all ends.

    A value is -inf if the moving average is not invertible: a search may cross the unit circle, but
    must not end beyond it.
    """
    units, count = np.arange(len(begun[0])), len(begun)
    ends = _maximise(sample.select(np.tile(units, count)), np.concatenate(begun), label)

    def values() -> np.ndarray:
        radius = spectral_radius(sample.shape.unpack(ends.params).ma)
        return np.where(radius < 1 + EDGE, ends.value, -np.inf).reshape(count, -1)

    # Ridges of nearly cancelling factors are long and rise slowly: if the highest end has not
    # converged, the highest few continue.
    reached = values()
    first = np.argsort(-reached, axis=0, kind="stable")[:_LONG_CLIMBS] * len(units) + units
    lanes = first[:, ~ends.converged[first[0]] & np.isfinite(reached).any(0)].ravel()
    lanes = lanes[~ends.converged[lanes]]
    if len(lanes):
        longer = _maximise(
            sample.select(lanes % len(units)), ends.params[lanes], label, scoring=0,
            max_iter=_LONG_ITER,
        )  # fmt: skip
        for whole, part in zip(ends, longer, strict=True):
            whole[lanes] = part
        reached = values()
    best = reached.argmax(0) * len(units) + units
    return Optimum(*(part[best] for part in ends)), reached


def _maximise(
    sample: Sample, first: np.ndarray, progress: str, scoring: int = 20, max_iter: int = 100
) -> Optimum:
    def objective(params: np.ndarray, units: np.ndarray, exact: bool) -> Evaluation:
        return evaluate(params, sample.select(units), exact)

    return maximise(
        objective, first, tol=_TOLERANCE, progress=progress, scoring=scoring, max_iter=max_iter
    )


def starting_values(sample: Sample) -> tuple[np.ndarray, np.ndarray]:
    """Starting values (U, k) and covariances (U, n, n) of long-regression residuals.

    The regressions of Hannan and Rissanen (1982): residuals of a long vector autoregression stand
    for innovations in the regression of the series on lags of both. Missing values are
    interpolated. The covariance is singular if a series is a combination of others and the past.
    """
    shape, steps = sample.shape, np.arange(sample.y.shape[1])
    n, p, q = shape.n, shape.p, shape.q
    y = _interpolated(sample)
    skipped = p
    if q:  # the long autoregression has more lags for longer series, as rows allow
        shortest = int(sample.rows.min())
        wanted = shape.lags + int(np.ceil(shortest ** (1 / 3)))
        skipped = max(1, min(wanted, (shortest // 2 - shape.n_design) // (n + 1)))
    long_rows = sample.inside & (steps >= skipped)  # those with all lags
    long = np.concatenate([sample.design, _lagged(y, skipped)], 2)
    _, errors = _least_squares(y, long, long_rows)
    rows = sample.inside & (steps >= (skipped + q if q else p))
    lags = [_lagged(y, p)] + ([_lagged(errors, q)] if q else [])
    coefficients, residuals = _least_squares(y, np.concatenate([sample.design, *lags], 2), rows)
    design, ar, ma = np.split(coefficients, np.cumsum([shape.n_design, n * p]), 1)
    ar, ma = (_stable(_blocks(stacked, n)) for stacked in (ar, -ma))
    spread = _mean_square(residuals, rows)
    # A ridge gives singular covariances a factor; their units are refused later.
    size = np.einsum("uii->u", spread)[:, None, None] / n
    factor = np.linalg.cholesky(spread + (1e-9 * size + 1e-12) * np.eye(n))
    first = Coefficients(design.swapaxes(1, 2), ar, -ma, factor)
    return shape.pack(first), _mean_square(errors, long_rows)


def _interpolated(sample: Sample) -> np.ndarray:
    """Interpolate missing values linearly; zero after the end."""
    y = sample.filled.copy()
    rows = np.arange(y.shape[1])
    for unit in np.flatnonzero(sample.n_missing):
        for i in range(y.shape[2]):
            known = sample.seen[unit, :, i]
            if known.any():
                filled = np.interp(rows, rows[known], sample.y[unit, known, i])
                y[unit, :, i] = np.where(sample.inside[unit], filled, 0.0)
    return y


def _lagged(series: np.ndarray, lags: int) -> np.ndarray:
    """Lags 1 to `lags` side by side, (U, T, lags * n), zero before the first row."""
    units, steps, n = series.shape
    result = np.zeros((units, steps, lags, n))
    for i in range(1, lags + 1):
        result[:, i:, i - 1] = series[:, : steps - i]
    return result.reshape(units, steps, lags * n)


def _least_squares(y: np.ndarray, X: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients (U, columns, n) and residuals (U, T, n), zero in unused rows."""
    X, y = (np.where(rows[..., None], a, 0.0) for a in (X, y))
    moments = X.swapaxes(1, 2) @ X
    diagonal = np.einsum("uii->ui", moments)
    diagonal += _RIDGE * diagonal.max(1, keepdims=True, initial=1.0)
    coefficients = np.linalg.solve(moments, X.swapaxes(1, 2) @ y)
    return coefficients, y - X @ coefficients


def _blocks(stacked: np.ndarray, n: int) -> np.ndarray:
    """Coefficient matrices (U, lags, n, n) of a regression on stacked lags."""
    units, rows, _ = stacked.shape
    return stacked.reshape(units, rows // n, n, n).swapaxes(2, 3)


def _stable(lags: np.ndarray) -> np.ndarray:
    """Shrink all roots in proportion if the largest is too large."""
    if (root_bound(lags) < _LARGEST_ROOT).all():
        return lags
    shrink = np.minimum(1.0, _LARGEST_ROOT / np.maximum(spectral_radius(lags), 1e-300))
    powers = shrink[:, None] ** np.arange(1, lags.shape[1] + 1)
    return lags * powers[..., None, None]


def _mean_square(errors: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Covariances (U, n, n) of errors, which are zero in unused rows."""
    return errors.swapaxes(1, 2) @ errors / np.maximum(rows.sum(1), 1)[:, None, None]
