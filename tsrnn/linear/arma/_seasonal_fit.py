"""Maximum likelihood of many seasonal ARMA models in one batch."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import NamedTuple

import numpy as np

from tsrnn.linear._estimates import PERFECT
from tsrnn.linear._optimise import AGREE, Evaluation, Optimum, maximise
from tsrnn.linear.arma._fast_filter import innovations
from tsrnn.linear.arma._likelihood import Moments
from tsrnn.linear.arma._polynomials import (
    from_partial,
    inverse_roots,
    partial_autocorrelations,
    reflected,
)
from tsrnn.linear.arma._prepare import Prepared
from tsrnn.linear.arma._quasi_newton import climb
from tsrnn.linear.arma._seasonal import SLOPES, Lanes, multiplied, residuals, stationary
from tsrnn.linear.arma._seasonal_filter import kalman, stationary_variance, whole
from tsrnn.linear.arma._specification import Form, Specification

_COMPLEX = 1e-30  # imaginary step of complex-step derivatives, exact to rounding
_STEP = 1e-5  # of differences of exact gradients, in parameters of standardised series
_SIGNS = (1, -1, 1, -1)  # of phi, theta, Phi and Theta as coefficients of an AR
_FURTHEST = 9.0  # coordinate 3e-8 from the circle, beyond which only rounding changes
_MOST = 0.95  # largest partial autocorrelation of a start
_STARTS, _CLIMBED = 8, 3  # starts of the exact likelihood, and how many continue after _FEW steps
_FEW = 12  # conditional values do not predict which climb ends highest: take a few exact steps
_SAME = 1e-3  # log-likelihoods this close belong to one optimum
# First coefficients of phi, theta, Phi, Theta. Of 54 candidates, _STRENGTHS together lead to the
# highest ends of most quarterly and monthly series of M3.
_SMALL = (0.1, 0.1, 0.1, 0.1)
_STRENGTHS = (
    (0.9, -0.2, 0.8, -0.5),
    (-0.8, 0.9, -0.8, 0.6),
    (0.8, -0.4, 0.9, -0.93),
    (0.8, -0.4, -0.8, 0.6),
    (0.3, -0.94, -0.3, 0.1),
    (0.3, -0.94, 0.9, -0.93),
    (-0.7, 0.5, 0.1, 0.1),
    (0.9, -0.2, 0.1, -0.6),
)
_OF_NESTED = 2  # strong starts of each nested model
_BRIEF, _LONG = 40, 120  # iterations of one climb of many, and of the highest one
_MOST_NESTED = 49  # up to this many, as of orders (6, 6), all nested models are fitted
_SIMPLE = 3  # lags in all; models of more have second maxima for all roots
_EDGE = 0.8  # beyond this modulus of a moving-average root, another maximum may be higher
_CORNER = 0.8  # absolute partial autocorrelation in a corner
_MOST_CORNERS = 4  # lags of a moving average that take both signs
_ROUNDING = 1e-9  # log-likelihoods this close are the same
_TOGETHER = 2**19  # elements of the variance matrices of a chunk


class SeasonalLikelihood:
    """Likelihood of N prepared series, with the methods of `Likelihood`."""

    def __init__(self, spec: Specification, prepared: Prepared) -> None:
        self.spec, self.form, self.n_obs = spec, prepared.form, prepared.n_obs
        self.gaps, form = prepared.gaps, prepared.form
        inputs = prepared.inputs.transpose(1, 2, 0)
        T, _, n = inputs.shape
        self.seen = inputs[:, -1] > 0 if form.masked else np.ones((T, n), dtype=bool)
        X = inputs[:, 1 : 1 + form.n_regressors]
        if not form.n_regressors:
            X = np.ones((T, form.n_mean, 1))
        elif form.constant:
            X = np.append(np.ones((T, 1, n)), X, axis=1)
        every, free = np.arange(n), np.ones((n, form.n_params), dtype=bool)
        self.lanes = Lanes(form, np.array(inputs[:, 0]), X, self.n_obs, every, free)

    def evaluate(self, params: np.ndarray, units: np.ndarray, newton: bool = False) -> Evaluation:
        """Log-likelihood of the given units with sigma2 concentrated out, and its derivatives."""
        if self.gaps:
            return self._by_paths(params, units)
        method = self.lanes.exact if self.spec.exact else self.lanes.conditional
        return method(params, units)

    def path(self, params: np.ndarray, units: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Innovations and their variances over sigma2, each (T, n), at real or complex params."""
        lanes, form, n = self.lanes, self.form, len(units)
        X = lanes.X if lanes.X.shape[2] == 1 else lanes.X[:, :, units]
        u = lanes.u[:, units] - np.einsum("tmn,nm->tn", X, params[:, : form.n_mean])
        if not self.spec.exact:
            e = residuals(form, params, u, X)[0]
            return e, np.ones_like(e)
        phi, theta = multiplied(form, params)
        if not self.gaps:
            path = innovations(phi, theta, u)
            return path.v, path.F
        first = stationary_variance(phi if len(phi) else np.zeros_like(theta), theta)
        phi, theta = whole(self.spec, np.column_stack([params, np.ones(n)]))
        r, s = len(theta), first.shape[1]
        P = np.zeros((n, r, r), dtype=first.dtype)
        P[:, :s, :s] = first
        v, F, _, _ = kalman(phi, theta, u, self.seen[:, units], np.zeros((r, n)), P)
        return v, F

    def slopes(
        self, params: np.ndarray, units: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Innovations and variances (T, n), and derivatives of both (T, k, n)."""
        k, parts = params.shape[1], []
        most = max(_TOGETHER // self.form.r**2, 1) if self.gaps else 512
        n_together = max(most // max(k, 1), 1)
        for i in range(0, len(units), n_together):
            together = units[i : i + n_together]
            values = self.path(params[i : i + n_together], together)
            slopes = np.zeros((2, len(values[0]), k, len(together)))
            if k:
                # One call for all parameters, each moved separately: a path is a loop over time.
                moved = np.tile(params[i : i + n_together].astype(complex), (k, 1, 1))
                moved[np.arange(k), :, np.arange(k)] += 1j * _COMPLEX
                changed = self.path(moved.reshape(-1, k), np.tile(together, k))
                for target, part in zip(slopes, changed, strict=True):
                    target[:] = part.imag.reshape(target.shape) / _COMPLEX
            parts.append((*values, *slopes))
        v, F, dv, dF = (np.concatenate(part, axis=-1) for part in zip(*parts, strict=True))
        return v, F, dv, dF

    def moments(
        self, params: np.ndarray, sigma2: np.ndarray | None = None
    ) -> tuple[np.ndarray, Moments]:
        """Sigma2, given or the maximum likelihood estimate, and the moments there."""
        step, parts = max(SLOPES // (len(self.seen) * (params.shape[1] + 1)), 1), []
        for i in range(0, len(params), step):
            units = np.arange(len(params))[i : i + step]
            given = None if sigma2 is None else sigma2[units]
            variance, moments = self._moments(params[units], units, given)
            parts.append((variance, *moments))
        variance, *joint = (np.concatenate(part) for part in zip(*parts, strict=True))
        return variance, Moments(*joint)

    def _moments(
        self, params: np.ndarray, units: np.ndarray, sigma2: np.ndarray | None
    ) -> tuple[np.ndarray, Moments]:
        (n, k), n_obs = params.shape, self.n_obs[units]
        v, F, dv, dF = self.slopes(params, units)
        weight = self.seen[:, units].astype(float)
        S = (weight * v**2 / F).sum(0)
        if sigma2 is None:
            sigma2 = np.maximum(S / n_obs, PERFECT)
        variance = F * sigma2
        density = np.log(2 * math.pi * variance) + v**2 / variance
        # Derivatives of log(variance) and of v by all parameters, sigma2 last.
        d_log = np.append(dF / F[:, None], np.broadcast_to(1 / sigma2, F[:, None].shape), axis=1)
        dv = np.append(dv, np.zeros_like(F)[:, None], axis=1)
        scores = 0.5 * (v**2 / variance - 1)[:, None] * d_log - (v / variance)[:, None] * dv
        scores *= weight[:, None]
        gradient = scores.sum(0).T
        opg = np.einsum("tin,tjn->nij", scores, scores, optimize=True)
        information = np.einsum(
            "tin,tjn->nij", dv, dv * (weight / variance)[:, None], optimize=True
        )
        information += 0.5 * np.einsum(
            "tin,tjn->nij", d_log, d_log * weight[:, None], optimize=True
        )
        hessian = np.empty((n, k + 1, k + 1))
        for j in range(k):
            ends = []
            for sign in (1, -1):
                moved = params.copy()
                moved[:, j] += sign * _STEP
                ends.append(self._scores(moved, units, sigma2))
            hessian[:, :k, j] = (ends[0] - ends[1]) / (2 * _STEP)
        hessian[:, :k, :k] = (hessian[:, :k, :k] + hessian[:, :k, :k].swapaxes(1, 2)) / 2
        dS = ((2 * weight * v / F)[:, None] * dv[:, :k]).sum(0)
        dS -= ((weight * v**2 / F**2)[:, None] * dF).sum(0)
        hessian[:, :k, k] = hessian[:, k, :k] = 0.5 * dS.T / sigma2[:, None] ** 2
        hessian[:, k, k] = (0.5 * n_obs - S / sigma2) / sigma2**2
        value = -0.5 * (weight * density).sum(0)
        return sigma2, Moments(value, gradient, hessian, opg, information)

    def _scores(self, params: np.ndarray, units: np.ndarray, sigma2: np.ndarray) -> np.ndarray:
        """Gradients (n, k) at given sigma2."""
        if not self.gaps:
            method = self.lanes.exact if self.spec.exact else self.lanes.conditional
            return method(params, units, sigma2=sigma2).gradient
        v, F, dv, dF = self.slopes(params, units)
        weight, square = self.seen[:, units], v**2 / (F * sigma2)
        by_F, by_v = 0.5 * weight * (square - 1) / F, weight * -v / (F * sigma2)
        return np.einsum("tn,tkn->nk", by_F, dF) + np.einsum("tn,tkn->nk", by_v, dv)

    def _by_paths(self, params: np.ndarray, units: np.ndarray) -> Evaluation:
        """Evaluate by derivatives of the filter's path, for series with gaps."""
        usable = stationary(self.form, params)
        v, F, dv, dF = self.slopes(np.where(usable[:, None], params, 0.0), units)
        weight, n_obs = self.seen[:, units], self.n_obs[units]
        with np.errstate(all="ignore"):  # rounding may leave a series without likelihood
            ratio = weight * v / F
            S, D = (ratio * v).sum(0), (weight * np.log(F)).sum(0)
        usable &= np.isfinite(S) & np.isfinite(D) & (PERFECT * n_obs < S)
        sigma2 = np.where(usable, S / n_obs, 1.0)
        value = np.where(usable, -0.5 * (n_obs * (np.log(2 * math.pi * sigma2) + 1) + D), -np.inf)
        by_F = 0.5 * (ratio**2 / sigma2 - weight / F)
        gradient = np.einsum("tn,tkn->nk", by_F, dF) - np.einsum("tn,tkn->nk", ratio / sigma2, dv)
        information = np.einsum("tin,tjn->nij", dv, dv * (weight / (F * sigma2))[:, None])
        relative = dF * (weight / F)[:, None]
        information += 0.5 * np.einsum("tin,tjn->nij", relative, relative)
        return Evaluation(value, gradient, information)


def climb_inside(
    evaluate: Callable[[np.ndarray, np.ndarray], Evaluation],
    form: Form,
    free: np.ndarray,
    start: np.ndarray,
    *,
    tol: float = 1e-12,
    max_iter: int = 200,
) -> Optimum:
    """Climb in coordinates whose hyperbolic tangents are partial autocorrelations of all factors.

    All coordinates are stationary and invertible. If the likelihood is highest next to the unit
    circle, as with a constant season, it levels off there instead of ending at an edge. Arguments
    are those of `climb`, and the mask `free` (N, k) of a lane's parameters. The gradient of the
    optimum is by coordinates.
    """

    def params_of(x: np.ndarray) -> np.ndarray:
        params = x.copy()
        for lags, sign in zip(form.parts(params.T)[1:], _SIGNS, strict=True):
            far = np.abs(lags.real) > _FURTHEST
            lags[:] = np.tanh(np.where(far, _FURTHEST * np.sign(lags.real), lags))
            lags[:] = sign * from_partial(lags)
        return params

    def at(x: np.ndarray, lanes: np.ndarray) -> Evaluation:
        ends, k = evaluate(params_of(x), lanes), x.shape[1]
        J = np.tile(np.eye(k), (len(x), 1, 1))
        for number in range(form.n_mean, k):
            moved = x.astype(complex)
            moved[:, number] += 1j * _COMPLEX
            J[:, :, number] = params_of(moved).imag / _COMPLEX
        J = np.where(free[lanes][:, None], J, np.eye(k))
        gradient = np.einsum("nij,ni->nj", J, ends.gradient)
        return Evaluation(ends.value, gradient, J.swapaxes(1, 2) @ ends.curvature @ J)

    x = start.copy()
    for lags, sign in zip(form.parts(x.T)[1:], _SIGNS, strict=True):
        # Rounding may put a start on the circle or slightly beyond.
        edge = np.tanh(_FURTHEST)
        lags[:] = np.arctanh(np.clip(partial_autocorrelations(sign * lags), -edge, edge))
    best = climb(at, x, tol=tol, max_iter=max_iter)
    return best._replace(params=params_of(best.params))


def inside(form: Form, params: np.ndarray) -> np.ndarray:
    """Move roots of all factors in parameters (N, k) away from the unit circle.

    A sum of squares may be smallest on it, where the exact likelihood or its gradient is zero.
    """
    result = params.copy()
    for lags, sign in zip(form.parts(result.T)[1:], _SIGNS, strict=True):
        partial = partial_autocorrelations(sign * lags)
        outside = ~(np.abs(partial) < _MOST).all(0)
        partial = np.clip(np.nan_to_num(partial[:, outside]), -_MOST, _MOST)
        lags[:, outside] = sign * from_partial(partial)
    return result


class Ends(NamedTuple):
    """Ends of the searches for N series."""

    best: Optimum
    starts: np.ndarray  # (N,) number of starts of the model itself
    agreement: np.ndarray  # (N,) number of starts that came close to the highest end
    lower: np.ndarray  # (N,) log-likelihood with a lag less on both sides; NaN if not searched


def seasonal_optimum(
    prepared: Prepared, likelihood: SeasonalLikelihood, n_starts: int | None = None
) -> Ends:
    """Highest likelihood of prepared series, from starts of all kinds if the optimum is doubtful.

    The first starts are conditional optima. Without `n_starts` there is one, unless the model has
    polynomials that may nearly cancel: then the most likely of several. If there may be higher
    maxima, further starts are the optima of nested models and the corners of the invertible region.
    """
    form, n = prepared.form, len(prepared.n_obs)
    every = np.arange(n)
    plain = not ((form.p and form.q) or (form.P and form.Q))
    count = (1 if plain else _CLIMBED) if n_starts is None else n_starts
    strong = _starts(form, n, 1 if n_starts is None and plain else max(count, _STARTS))
    free = np.ones((len(strong) * n, form.n_params), dtype=bool)
    ends = _conditional_ends(prepared, likelihood, np.tile(every, len(strong)), strong, free)
    if len(strong) > count:
        begun = _climbed(likelihood, ends, np.tile(every, len(strong)), free, max_iter=_FEW)
        ends, reached = begun.params, begun.value.reshape(len(strong), n)
        order = np.argsort(-reached, axis=0)
        reached = np.take_along_axis(reached, order, 0)
        reached[1:][reached[:-1] - reached[1:] < _SAME] = -np.inf  # one end of several starts
        order = np.take_along_axis(order, np.argsort(-reached, axis=0, kind="stable"), 0)[:count]
        ends = ends.reshape(len(strong), n, -1)[order, every].reshape(count * n, -1)
    tried = _climbed(likelihood, ends, np.tile(every, count), free[: count * n], max_iter=_BRIEF)
    values = list(tried.value.reshape(count, n))
    best = _highest(tried, n)
    lower = np.full(n, np.nan)
    units = every if n_starts is not None else _doubtful(form, best, np.stack(values))
    if len(units) and (form.q or form.Q):
        nested = _nested_optima(prepared, likelihood, units)
        lags = form.p, form.q, form.P, form.Q
        one_less = [(*lags[:i], lag - 1, *lags[i + 1 :]) for i, lag in enumerate(lags) if lag]
        starts = [nested[order].params for order in one_less]
        starts += [_highest_below(nested, lags).params, *_corners(form, best.params[units])]
        many = np.tile(units, len(starts))
        more = _climbed(
            likelihood, np.concatenate(starts), many, free[:1].repeat(len(many), 0), max_iter=_BRIEF
        )
        for value in more.value.reshape(len(starts), len(units)):
            values.append(np.full(n, -np.inf))
            values[-1][units] = value
        _keep_higher(best, units, _highest(more, len(units)))
        if form.p and form.q:
            lower[units] = nested[form.p - 1, form.q - 1, form.P, form.Q].value
    loose = np.flatnonzero(~best.converged)
    if len(loose):
        end = _climbed(likelihood, best.params[loose], loose, free[: len(loose)], max_iter=_LONG)
        for whole_part, part in zip(best, end, strict=True):
            whole_part[loose] = part
    ends_of = np.stack(values)
    agreement = np.maximum((ends_of > best.value - AGREE).sum(0), 1)
    return Ends(best, np.isfinite(ends_of).sum(0), agreement, lower)


def _doubtful(form: Form, best: Optimum, values: np.ndarray) -> np.ndarray:
    """Series that may have a higher maximum than the best of the ends' values (count, N)."""
    doubt = ~best.converged | (values.max(0) - values.min(0) > AGREE)
    doubt |= np.full(len(doubt), sum((form.p, form.q, form.P, form.Q)) > _SIMPLE)
    _, _, ma, _, seasonal_ma = form.parts(best.params.T)
    for theta in (ma, seasonal_ma):
        # With two lags or more, several corners have maxima.
        doubt |= len(theta) > 1
        doubt |= (np.abs(inverse_roots(-theta)) > _EDGE).any(0)
    return np.flatnonzero(doubt)


def _nested_optima(
    prepared: Prepared, likelihood: SeasonalLikelihood, units: np.ndarray
) -> dict[tuple[int, ...], Optimum]:
    """Optima of all nested models by orders (p, q, P, Q), in the larger model's parameters."""
    form, n = prepared.form, len(units)
    orders = _nested_orders((form.p, form.q, form.P, form.Q))
    free = np.stack([_free(form, order) for order in orders])
    # All models in one batch, from a few starts each.
    strong = _starts(form, n, _OF_NESTED)
    many, masks = np.tile(units, len(orders) * len(strong)), free.repeat(len(strong) * n, 0)
    start = [np.where(mask, begin, 0.0) for mask in free for begin in strong]
    begun = _conditional_ends(prepared, likelihood, many, start, masks)
    ends = _climbed(likelihood, begun, many, masks, max_iter=_BRIEF)
    size, optima = len(strong) * n, {}
    for i, order in enumerate(orders):
        part = Optimum(*(values[i * size : (i + 1) * size] for values in ends))
        optima[order] = _highest(part, n)
    # If a model nested in one of these is higher, climb from its optimum, too.
    below = {order: _highest_below(optima, order) for order in orders[1:]}
    rows = {order: np.flatnonzero(below[order].value > optima[order].value + _SAME)
            for order in below}  # fmt: skip
    rows = {order: higher for order, higher in rows.items() if len(higher)}
    if rows:
        above = np.concatenate([below[order].params[higher] for order, higher in rows.items()])
        masks = np.concatenate([
            _free(form, order)[None].repeat(len(higher), 0) for order, higher in rows.items()
        ])  # fmt: skip
        many = np.concatenate([units[higher] for higher in rows.values()])
        ends, at = _climbed(likelihood, above, many, masks, max_iter=_BRIEF), 0
        for order, higher in rows.items():
            part = Optimum(*(values[at : at + len(higher)] for values in ends))
            _keep_higher(optima[order], higher, part)
            at += len(higher)
    return optima


def _nested_orders(lags: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Orders of nested models, smallest first.

    Of very many models, those without one lag, or without any lag, of one or more kinds.
    """
    each: list[tuple[int, ...]] = list(product(*(range(most + 1) for most in lags)))
    if len(each) > _MOST_NESTED:
        one_less = product(*({max(most - 1, 0), most} for most in lags))
        each = list({*one_less, *product(*({0, most} for most in lags))})
    return sorted(each, key=lambda order: (sum(order), order))[:-1]


def _highest_below(optima: dict[tuple[int, ...], Optimum], order: tuple[int, ...]) -> Optimum:
    """Highest optimum of the models nested in an order, for each series."""
    inner = [
        end for lags, end in optima.items() if lags != order and np.less_equal(lags, order).all()
    ]
    together = Optimum(*(np.concatenate(part) for part in zip(*inner, strict=True)))
    return _highest(together, len(inner[0].value))


def _free(form: Form, order: tuple[int, ...]) -> np.ndarray:
    """Mask (k,) of the parameters that a nested model has."""
    mask = np.ones(form.n_params, dtype=bool)
    for part, count in zip(form.parts(mask)[1:], order, strict=True):
        part[count:] = False
    return mask


def _corners(form: Form, params: np.ndarray) -> list[np.ndarray]:
    """Parameters (n, k) with the moving averages in each corner of the invertible region.

    All partial autocorrelations are large in a corner; their signs make roots real or complex,
    positive or negative. Other parameters stay, moved off the edge.
    """
    starts = []
    for place in (2, 4):
        theta = form.parts(params.T)[place]
        if len(theta) > _MOST_CORNERS:  # only the first lags of a long moving average
            signs = [np.append(first, np.full(len(theta) - _MOST_CORNERS, 0.1))
                     for first in product((_CORNER, -_CORNER), repeat=_MOST_CORNERS)]  # fmt: skip
        else:
            signs = [np.array(each) for each in product((_CORNER, -_CORNER), repeat=len(theta))]
        for partial in signs if len(theta) else []:
            start = inside(form, params)
            form.parts(start.T)[place][:] = -from_partial(np.tile(partial[:, None], len(params)))
            starts.append(start)
    return starts


def _highest(ends: Optimum, n: int) -> Optimum:
    """Highest of several ends of each of n series; the first of equal ends."""
    values = ends.value.reshape(-1, n)
    best = values.argmax(0) * n + np.arange(n)
    return Optimum(*(part[best] for part in ends))


def _keep_higher(best: Optimum, units: np.ndarray, other: Optimum) -> None:
    """Replace optima by ends that are higher beyond rounding, in place."""
    better = other.value > best.value[units] + _ROUNDING
    for whole_part, part in zip(best, other, strict=True):
        whole_part[units[better]] = part[better]


def _conditional_ends(
    prepared: Prepared,
    likelihood: SeasonalLikelihood,
    units: np.ndarray,
    starts: list[np.ndarray],
    free: np.ndarray,
) -> np.ndarray:
    """Parameters (N, k) close to conditional optima, from starts of the series `units` (N,)."""
    form = prepared.form
    lanes = _of_differences(prepared) if likelihood.gaps else likelihood.lanes
    first = form.n_mean - lanes.form.n_mean
    many = Lanes(lanes.form, lanes.u, lanes.X, lanes.n_obs, units, free[:, first:])
    # Strong coefficients of several lags need not be stationary together.
    stack = inside(lanes.form, np.concatenate(starts)[:, first:])
    # A start of the exact likelihood need not be a conditional optimum.
    tol, most = (1e-2, 12) if likelihood.spec.exact else (1e-12, 60)
    ends = maximise(
        many.conditional, stack, scoring=most, newton=0.0, tol=tol, max_iter=most
    ).params
    if likelihood.spec.exact:
        ends = inside(lanes.form, ends)
    if likelihood.gaps:
        ends = np.column_stack([prepared.mean[units], ends])
    return ends


def _climbed(
    likelihood: SeasonalLikelihood,
    start: np.ndarray,
    units: np.ndarray,
    free: np.ndarray,
    max_iter: int = 200,
) -> Optimum:
    """Climb the likelihoods of units (N,) from parameters (N, k), in the `free` ones."""

    def evaluate(params: np.ndarray, rows: np.ndarray) -> Evaluation:
        value, gradient, information = likelihood.evaluate(params, units[rows])
        mask = free[rows]
        if mask.all():
            return Evaluation(value, gradient, information)
        both = mask[:, :, None] & mask[:, None]
        information = np.where(both, information, np.eye(mask.shape[1]))
        return Evaluation(value, np.where(mask, gradient, 0.0), information)

    return climb_inside(evaluate, likelihood.form, free, start, max_iter=max_iter)


def _of_differences(prepared: Prepared) -> Lanes:
    """Lanes of differences of series with gaps, zero where missing."""
    form = prepared.form
    noise = prepared.inputs[:, :, 0] if prepared.noise is None else prepared.noise
    plain, n = Form(form.p, form.q, P=form.P, Q=form.Q, m=form.m), len(noise)
    free, T = np.ones((n, plain.n_params), dtype=bool), noise.shape[1]
    zero = np.zeros((T, 0, 1))
    return Lanes(plain, np.ascontiguousarray(noise.T), zero, np.full(n, T), np.arange(n), free)


def _starts(form: Form, n: int, count: int) -> list[np.ndarray]:
    """Starts (n, k): a single weak one, or several strong ones, then random ones."""
    starts = []
    for ar, ma, seasonal_ar, seasonal_ma in (_SMALL,) if count == 1 else _STRENGTHS[:count]:
        start = np.zeros((n, form.n_params))
        _, *factors = form.parts(start.T)
        for lags, first in zip(factors, (ar, ma, seasonal_ar, seasonal_ma), strict=True):
            lags[:1], lags[1:] = first, 0.1
        starts.append(start)
    for draw in range(count - len(starts)):
        rng, start = np.random.default_rng(draw), np.zeros((n, form.n_params))
        for lags, sign in zip(form.parts(start.T)[1:], _SIGNS, strict=True):
            lags[:] = sign * from_partial(rng.uniform(-_MOST, _MOST, (len(lags), 1)))
        starts.append(start)
    return starts


def mirrored(form: Form, params: np.ndarray) -> np.ndarray:
    """Reflect roots in parameters (N, k), so that both moving-average factors are invertible."""
    result = params.copy()
    for theta in form.parts(result.T)[2::2]:
        theta[:] = -reflected(-theta)[0]
    return result
