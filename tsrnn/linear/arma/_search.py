"""The search for the highest maximum of the likelihood, of many units at once."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import NamedTuple

import numpy as np

from tsrnn.kernels import Lanes
from tsrnn.linear._optimise import Optimum, agreement_of, maximise
from tsrnn.linear.arma._form import Form
from tsrnn.linear.arma._likelihood import Likelihood
from tsrnn.linear.arma._polynomials import from_inverse_roots, inverse_roots, is_stable, reflected
from tsrnn.linear.arma._prepare import Prepared
from tsrnn.linear.arma._start import (
    autocovariances,
    drawn_starts,
    further_starts,
    hannan_rissanen,
    long_order,
)

# No second maximum was seen in simulations where roots of phi and theta are this far apart, in
# units of 1 / sqrt(n), those of theta not close to the unit circle, and the search was short.
_FAR, _EDGE, _SHORT = 8.0, 0.95, 20
_EDGE_OF_PAIRS = 0.7  # pairs of roots have maxima side by side further inside
_LONG, _BRIEF = 100, 30  # iterations from the best start, and from each of many
_SIMPLE = 3  # lags on both sides; more have second maxima wherever roots are
_STEPS = (-6, -4, -2, 2, 4, 6)  # half-steps of the periodogram to both sides
_REAL = 1e-6  # imaginary part of a root that counts as real


class Search(NamedTuple):
    """Where the search for N units ended.

    Attributes
    ----------
    best : Optimum
        In inner units, with roots of the moving average outside the unit circle or on it.
    lower : array of shape (N,)
        Log-likelihood with one lag less on both sides; NaN where no roots of the two are close.
    starts, agreement : integer arrays of shape (N,)
        Starting values tried, and how many came close to the highest log-likelihood.
    """

    best: Optimum
    lower: np.ndarray
    starts: np.ndarray
    agreement: np.ndarray


def search(prepared: Prepared, likelihood: Likelihood, n_starts: int | None = None) -> Search:
    """Maximise from one start, and from others where there may be other maxima.

    Parameters
    ----------
    prepared : Prepared
    likelihood : Likelihood
        Of these series.
    n_starts : int, optional
        Starts of every series, besides the optima of nested models.
    """
    form, n_obs = prepared.form, prepared.n_obs
    gamma = _autocovariances(prepared, likelihood)
    start = np.column_stack([prepared.mean, hannan_rissanen(gamma, form.p, form.q)])
    best = _climb(likelihood, form, start)
    one = np.ones(len(n_obs), dtype=np.int64)
    ends = Search(best, np.full(len(n_obs), np.nan), one, one.copy())
    which = _doubtful(form, best, n_obs) if n_starts is None else np.arange(len(n_obs))
    if len(which) and form.q:
        some = likelihood if len(which) == len(n_obs) else likelihood.select(which)
        nested: dict[tuple[int, int], Search] = {}
        for p, q in _smaller_first(form):
            small, inner = replace(form, p=p, q=q), _nearest(nested, p, q)
            nested[p, q] = _from_all_starts(
                some, small, prepared.mean[which], gamma[:, which], inner, n_starts
            )
        _take(best, which, nested[form.p, form.q].best)
        ends.starts[which] = nested[form.p, form.q].starts
        ends.agreement[which] = nested[form.p, form.q].agreement
        if form.p:
            ends.lower[which] = nested[form.p - 1, form.q - 1].best.value
    return ends._replace(best=best._replace(params=_mirrored(form, best.params)[0]))


def _no_optimum(start: np.ndarray) -> Optimum:
    """What any end of a search is better than."""
    n, none = len(start), np.zeros(len(start))
    return Optimum(
        start.copy(), none - np.inf, np.zeros_like(start), none + np.inf,
        np.zeros(n, dtype=np.int64), none > 0, np.zeros(start.shape, dtype=bool),
    )  # fmt: skip


def _smaller_first(form: Form) -> list[tuple[int, int]]:
    """Orders of all models nested in one, and its own as the last."""
    return sorted(product(range(form.p + 1), range(form.q + 1)), key=sum)


def _nearest(nested: dict[tuple[int, int], Search], p: int, q: int) -> list[np.ndarray]:
    """Optima of the models with one lag less, as parameters of that of orders (p, q)."""
    starts = []
    if p:
        params = nested[p - 1, q].best.params
        starts.append(np.insert(params, params.shape[1] - q, 0.0, axis=1))
    if q:
        params = nested[p, q - 1].best.params
        starts.append(np.column_stack([params, np.zeros(len(params))]))
    return starts


def _from_all_starts(
    likelihood: Likelihood,
    form: Form,
    mean: np.ndarray,
    gamma: np.ndarray,
    inner: list[np.ndarray],
    n_starts: int | None,
) -> Search:
    """Highest end of climbs with the orders of `form`, from nested optima and other starts.

    The likelihood may be that of higher orders, whose last coefficients are then held at zero.
    """
    first = np.column_stack([mean, hannan_rissanen(gamma, form.p, form.q)])
    every = np.arange(len(mean))
    values: list[np.ndarray] = []
    best = _no_optimum(first)
    _try(best, every, likelihood, form, [first, *inner], values)
    which = _doubtful(form, best, likelihood.n_obs)
    others: list[np.ndarray] = []
    if n_starts is not None:
        which, others = every, further_starts(gamma, form.p, form.q)
        others = [*others, *drawn_starts(len(mean), form.p, form.q, n_starts - len(others))]
        others = others[: n_starts - 1]
    elif form.q and len(which):
        others = further_starts(gamma[:, which], form.p, form.q)
    starts = [np.column_stack([mean[which], start]) for start in others]
    _try(best, which, likelihood, form, starts, values)
    if form.q and len(which) and n_starts != 1:
        moved = [_on_circle(form, best.params[which])]
        if form.q > 1:
            angles = np.multiply.outer(_STEPS, np.pi / likelihood.n_obs[which])
            moved += [_turned(form, best.params[which], angle) for angle in angles]
        _try(best, which, likelihood, form, moved, values)
    loose = np.flatnonzero(~best.converged)
    if len(loose):
        _take(best, loose, _climb(likelihood.select(loose), form, best.params[loose]))
    ends = np.stack(values)
    starts_tried = np.isfinite(ends).sum(0)
    return Search(best, np.full(len(mean), np.nan), starts_tried, agreement_of(ends))


def _autocovariances(prepared: Prepared, likelihood: Likelihood) -> np.ndarray:
    form, mean = prepared.form, prepared.mean
    n_lags = long_order(prepared.inputs.shape[1], form.p, form.q) + form.q
    if prepared.noise is None:
        return autocovariances(form, likelihood.lanes, mean, n_lags)
    return autocovariances(Form(0, 0), Lanes(prepared.noise), mean[:, :0], n_lags)


def _maximise(
    likelihood: Likelihood, form: Form, start: np.ndarray, max_iter: int = _LONG
) -> Optimum:
    """Maximise by the parameters of `form`, those of higher orders held at zero."""
    whole = likelihood.form
    if form == whole:
        return maximise(likelihood.evaluate, start, max_iter=max_iter)
    free = np.zeros(whole.n_params, dtype=bool)
    free[: form.n_mean + form.p] = True
    free[whole.n_mean + whole.p :][: form.q] = True
    params, bound = np.zeros((len(start), whole.n_params)), np.where(free, np.inf, 0.0)
    params[:, free] = start
    end = maximise(likelihood.evaluate, params, lower=-bound, upper=bound, max_iter=max_iter)
    return end._replace(
        params=end.params[:, free], gradient=end.gradient[:, free], at_bound=end.at_bound[:, free]
    )


def _climb(likelihood: Likelihood, form: Form, start: np.ndarray, max_iter: int = _LONG) -> Optimum:
    """Maximise; where the search has left the invertible region, go on from the mirrored point."""
    best = _maximise(likelihood, form, start, max_iter)
    stuck = np.flatnonzero(~best.converged)
    mirrored, moved = _mirrored(form, best.params[stuck])
    stuck = stuck[moved]
    if len(stuck):
        again = _maximise(likelihood.select(stuck), form, mirrored[moved], max_iter)
        _take(best, stuck, again)
    return best


def _try(
    best: Optimum,
    which: np.ndarray,
    likelihood: Likelihood,
    form: Form,
    starts: list[np.ndarray],
    values: list[np.ndarray],
) -> None:
    """Climb from other starts of some units, note and put in place what ends higher."""
    n = len(which)
    if not (n and starts):
        return
    lanes = likelihood.select(np.tile(which, len(starts)))
    ends = _climb(lanes, form, np.concatenate(starts), _BRIEF)
    for i in range(len(starts)):
        end = Optimum(*(part[i * n : (i + 1) * n] for part in ends))
        reached = np.full(len(best.value), -np.inf)
        reached[which] = end.value
        values.append(reached)
        _take(best, which, end)


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
    doubt |= bool(form.q) and form.p + form.q > _SIMPLE
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
