"""The search for the highest maximum of the likelihood, of many units at once."""

from __future__ import annotations

import numpy as np

from tsrnn.kernels import Lanes
from tsrnn.linear._optimise import Optimum, maximise
from tsrnn.linear.arma._form import Form
from tsrnn.linear.arma._likelihood import Likelihood
from tsrnn.linear.arma._polynomials import from_inverse_roots, inverse_roots, is_stable, reflected
from tsrnn.linear.arma._prepare import Prepared
from tsrnn.linear.arma._start import autocovariances, further_starts, hannan_rissanen, long_order

# No second maximum was seen in simulations where roots of phi and theta are this far apart, in
# units of 1 / sqrt(n), those of theta not close to the unit circle, and the search was short.
_FAR, _EDGE, _SHORT = 8.0, 0.95, 20
_EDGE_OF_PAIRS = 0.7  # pairs of roots have maxima side by side further inside
_STEPS = (-6, -4, -2, 2, 4, 6)  # half-steps of the periodogram to both sides
_REAL = 1e-6  # imaginary part of a root that counts as real


def search(prepared: Prepared, likelihood: Likelihood) -> Optimum:
    """Maximise from one start, and from others where there may be other maxima.

    Parameters
    ----------
    prepared : Prepared
    likelihood : Likelihood
        Of these series.

    Returns
    -------
    Optimum
        In inner units, with roots of the moving average outside the unit circle or on it.
    """
    form = prepared.form
    gamma = _autocovariances(prepared, likelihood)
    start = np.column_stack([prepared.mean, hannan_rissanen(gamma, form.p, form.q)])
    best = _climb(likelihood, start)
    which = _doubtful(form, best, prepared.n_obs)
    if len(which) and form.q:
        others = further_starts(gamma[:, which], form.p, form.q)
        starts = [np.column_stack([prepared.mean[which], start]) for start in others]
        _try(best, which, likelihood, starts)
        _try(best, which, likelihood, [_on_circle(form, best.params[which])])
    if len(which) and form.q > 1:
        turned = [
            _turned(form, best.params[which], steps * np.pi / prepared.n_obs[which])
            for steps in _STEPS
        ]
        _try(best, which, likelihood, turned)
    return best._replace(params=_mirrored(form, best.params)[0])


def _autocovariances(prepared: Prepared, likelihood: Likelihood) -> np.ndarray:
    form, mean = prepared.form, prepared.mean
    n_lags = long_order(prepared.inputs.shape[1], form.p, form.q) + form.q
    if prepared.noise is None:
        return autocovariances(form, likelihood.lanes, mean, n_lags)
    return autocovariances(Form(0, 0), Lanes(prepared.noise), mean[:, :0], n_lags)


def _climb(likelihood: Likelihood, start: np.ndarray) -> Optimum:
    """Maximise; where the search has left the invertible region, go on from the mirrored point."""
    best = maximise(likelihood.evaluate, start)
    stuck = np.flatnonzero(~best.converged)
    mirrored, moved = _mirrored(likelihood.form, best.params[stuck])
    stuck = stuck[moved]
    if len(stuck):
        _take(best, stuck, maximise(likelihood.select(stuck).evaluate, mirrored[moved]))
    return best


def _try(
    best: Optimum, which: np.ndarray, likelihood: Likelihood, starts: list[np.ndarray]
) -> None:
    """Climb from other starts of some units, and put in place what ends higher."""
    n = len(which)
    ends = _climb(likelihood.select(np.tile(which, len(starts))), np.concatenate(starts))
    for i in range(len(starts)):
        _take(best, which, Optimum(*(part[i * n : (i + 1) * n] for part in ends)))


def _mirrored(form: Form, params: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Parameters with an invertible moving average, and whether they had not."""
    first = form.n_mean + form.p
    theta = -params[:, first : first + form.q].T
    inside = reflected(theta)[0]
    return np.column_stack([params[:, :first], -inside.T]), ~is_stable(theta)


def _doubtful(form: Form, best: Optimum, n_obs: np.ndarray) -> np.ndarray:
    """Units whose likelihood may have another maximum."""
    ma = inverse_roots(-best.params[:, form.n_mean + form.p :].T)
    edge = _EDGE if form.q < 2 else _EDGE_OF_PAIRS
    doubt = ~best.converged | (best.iterations > _SHORT) | (np.abs(ma) > edge).any(0)
    if form.p and form.q:
        gap = closest_roots(form, best.params)[0]
        doubt |= gap * np.sqrt(n_obs) < _FAR
    return np.flatnonzero(doubt)


def closest_roots(form: Form, params: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Distance of the closest inverse roots of phi and theta, and these roots, each (N,)."""
    first = form.n_mean + form.p
    ar = inverse_roots(params[:, form.n_mean : first].T)
    ma = inverse_roots(-params[:, first:].T)
    pairs = [(a, m) for a in ar for m in ma]
    distances = np.array([np.abs(a - m) for a, m in pairs])
    nearest, every = distances.argmin(0), np.arange(len(params))
    return (
        distances[nearest, every],
        np.array([a for a, _ in pairs])[nearest, every],
        np.array([m for _, m in pairs])[nearest, every],
    )


def _on_circle(form: Form, params: np.ndarray) -> np.ndarray:
    """Parameters with the largest root of the moving average moved to the unit circle."""
    first = form.n_mean + form.p
    roots = inverse_roots(-params[:, first:].T)
    modulus = np.abs(roots)
    largest = modulus.max(0)
    moved = np.where(modulus > 0.9 * largest, roots / np.maximum(modulus, 1e-9), roots)
    return np.column_stack([params[:, :first], -from_inverse_roots(moved).T])


def _turned(form: Form, params: np.ndarray, angle: np.ndarray) -> np.ndarray:
    """Parameters with the pairs of roots of the moving average turned by an angle (N,).

    Close to the unit circle the likelihood has a maximum every 2 pi / n or so along it, as a
    periodogram has.
    """
    first = form.n_mean + form.p
    roots = inverse_roots(-params[:, first:].T)
    turned = np.where(
        np.abs(roots.imag) > _REAL, roots * np.exp(1j * np.sign(roots.imag) * angle), roots
    )
    return np.column_stack([params[:, :first], -from_inverse_roots(turned).T])


def _take(best: Optimum, units: np.ndarray, other: Optimum) -> None:
    """Put what is better in place."""
    before = best.value[units]
    room = 1e-9 * np.abs(np.where(np.isfinite(before), before, 0.0))
    better = other.value > before + room
    better |= (other.value >= before) & other.converged & ~best.converged[units]
    for all_, new in zip(best, other, strict=True):
        all_[units[better]] = new[better]
