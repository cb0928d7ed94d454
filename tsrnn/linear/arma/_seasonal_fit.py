"""Maximum likelihood for many seasonal ARMA at once."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tsrnn.linear._optimise import AGREE, Evaluation, Optimum, maximise
from tsrnn.linear.arma._fast_filter import innovations
from tsrnn.linear.arma._likelihood import Moments
from tsrnn.linear.arma._polynomials import from_partial, partial_autocorrelations, reflected
from tsrnn.linear.arma._prepare import Prepared
from tsrnn.linear.arma._quasi_newton import climb
from tsrnn.linear.arma._seasonal import (
    PERFECT,
    SLOPES,
    Lanes,
    multiplied,
    residuals,
    stationary,
)
from tsrnn.linear.arma._seasonal_filter import kalman, stationary_variance, whole
from tsrnn.linear.arma._specification import Form, Specification

_COMPLEX = 1e-30  # imaginary step: derivatives without differences, exact to rounding
_STEP = 1e-5  # of differences of exact gradients, in parameters of series of variance one
_START = 0.1  # of every coefficient: where all are zero those of both sides have one gradient
_SIGNS = (1, -1, 1, -1)  # of phi, theta, Phi and Theta as coefficients of an AR
_FURTHEST = 9.0  # coordinate: 3e-8 from the circle, beyond which rounding is all that changes
_MOST = 0.95  # partial autocorrelation of a start
_STARTS, _CLIMBED = 8, 3  # climbs of the exact likelihood, and those that go on after a few steps
_FEW = 12  # steps before that: values at the conditional ends say little of where climbs lead
_SAME = 1e-3  # difference of log-likelihoods at ends of one optimum
# First coefficients of phi, theta, Phi, Theta: of one start, and of 54 others those that together
# lead to the highest ends of most quarterly and monthly series of M3.
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
_TOGETHER = 2**19  # elements of the variances that are updated together


class SeasonalLikelihood:
    """Likelihood of N prepared series; it has what `Likelihood` has.

    Parameters
    ----------
    spec : Specification
    prepared : Prepared
    """

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
        """Log-likelihood of some units with sigma2 concentrated out, and its derivatives."""
        if self.gaps:
            return self._by_paths(params, units)
        method = self.lanes.exact if self.spec.exact else self.lanes.conditional
        return method(params, units)

    def path(self, params: np.ndarray, units: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Innovations and their variances (T, n), in units of sigma2, at real or complex params."""
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
        n_together = max(_TOGETHER // self.form.r**2, 1) if self.gaps else 512
        for i in range(0, len(units), n_together):
            together = units[i : i + n_together]
            values = self.path(params[i : i + n_together], together)
            slopes = np.empty((2, len(values[0]), k, len(together)))
            for j in range(k):
                moved = params[i : i + n_together].astype(complex)
                moved[:, j] += 1j * _COMPLEX
                for target, part in zip(slopes, self.path(moved, together), strict=True):
                    target[:, j] = part.imag / _COMPLEX
            parts.append((*values, *slopes))
        v, F, dv, dF = (np.concatenate(part, axis=-1) for part in zip(*parts, strict=True))
        return v, F, dv, dF

    def moments(
        self, params: np.ndarray, sigma2: np.ndarray | None = None
    ) -> tuple[np.ndarray, Moments]:
        """Sigma2, by default that of the highest likelihood, and the moments there."""
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
        # Derivatives of log(variance) and of v by all parameters, sigma2 the last.
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
        """Evaluation by derivatives of the path of the filter."""
        usable = stationary(self.form, params)
        v, F, dv, dF = self.slopes(np.where(usable[:, None], params, 0.0), units)
        weight, n_obs = self.seen[:, units], self.n_obs[units]
        with np.errstate(all="ignore"):  # of series that rounding leaves no likelihood
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


def fit_lanes(
    lanes: Lanes,
    start: np.ndarray | None = None,
    *,
    exact: bool = True,
    tol: float = 1e-12,
    max_iter: int = 200,
) -> Optimum:
    """Maximum likelihood estimates of all lanes, series and orders, in one batch.

    Parameters
    ----------
    lanes : Lanes
    start : array of shape (N, k), optional
        Parameters to begin with: the optimum of a neighbouring order, say.
    exact : bool, default True
        Whether to go on to the exact likelihood; else estimates and values are those from a
        presample of zero, the conditional sum of squares: some 5 times as fast.
    tol : float
        Squared gradient in standard errors at which a lane has converged: 1e-4 leaves the
        log-likelihood lower by as much at most.
    max_iter : int
        Few lanes take more than 20 iterations: those whose roots cancel, or tend to the circle.

    Returns
    -------
    Optimum
        Parameters that a lane does not have are 0, or what they were at the start.
    """
    if start is None or not exact:
        if start is None:
            start = np.where(lanes.free, _START, 0.0)
            start[:, : lanes.form.n_mean] = 0.0
        # What the exact likelihood begins with need not be an optimum.
        slack, most = (1e-2, 12) if exact else (tol, min(max_iter, 60))
        conditional = maximise(
            lanes.conditional, start, scoring=most, newton=0.0, tol=slack, max_iter=most
        )
        if not exact:
            return conditional
        start = inside(lanes.form, conditional.params)
    return climb_inside(lanes.exact, lanes.form, lanes.free, start, tol=tol, max_iter=max_iter)


def climb_inside(
    evaluate: Callable[[np.ndarray, np.ndarray], Evaluation],
    form: Form,
    free: np.ndarray,
    start: np.ndarray,
    *,
    tol: float = 1e-12,
    max_iter: int = 200,
) -> Optimum:
    """Climb in the coordinates of the partial autocorrelations of all factors.

    These are hyperbolic tangents of the coordinates, so that all of them are stationary and
    invertible, and a likelihood that is highest next to the unit circle, as of a season that does
    not change, is a slope that becomes level, not an edge. Arguments are those of `climb`, and
    the parameters (N, k) that a lane has; of the ends the gradient is by coordinates.
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
        lags[:] = np.arctanh(partial_autocorrelations(sign * lags))
    best = climb(at, x, tol=tol, max_iter=max_iter)
    return best._replace(params=params_of(best.params))


def inside(form: Form, params: np.ndarray) -> np.ndarray:
    """Parameters (N, k) with the roots of all factors off the unit circle.

    There a sum of squares may be least, but an exact likelihood is zero, or its slope is.
    """
    result = params.copy()
    for lags, sign in zip(form.parts(result.T)[1:], _SIGNS, strict=True):
        partial = partial_autocorrelations(sign * lags)
        outside = ~(np.abs(partial) < _MOST).all(0)
        partial = np.clip(np.nan_to_num(partial[:, outside]), -_MOST, _MOST)
        lags[:, outside] = sign * from_partial(partial)
    return result


def seasonal_optimum(
    prepared: Prepared, likelihood: SeasonalLikelihood, n_starts: int | None = None
) -> tuple[Optimum, np.ndarray, np.ndarray]:
    """Highest likelihood of prepared series, starts (N,) tried, and those that agree (N,).

    From the conditional optima that several starts lead to; without `n_starts` from one alone
    where no polynomial has a partner that it could nearly cancel, else from the most likely ones.
    """
    form, n = prepared.form, len(prepared.n_obs)
    lanes = _of_differences(prepared) if likelihood.gaps else likelihood.lanes
    plain = not ((form.p and form.q) or (form.P and form.Q))
    count = (1 if plain else _CLIMBED) if n_starts is None else n_starts
    starts = _starts(form, n, 1 if n_starts is None and plain else max(count, _STARTS))
    every = np.tile(np.arange(n), len(starts))
    many = Lanes(lanes.form, lanes.u, lanes.X, lanes.n_obs, every, lanes.free[every])
    stack = np.concatenate(starts)[:, form.n_mean - lanes.form.n_mean :]
    if likelihood.spec.exact:
        ends = inside(lanes.form, fit_lanes(many, stack, exact=False, tol=1e-2, max_iter=12).params)
    else:
        ends = fit_lanes(many, stack, exact=False).params
    if likelihood.gaps:
        ends = np.column_stack([np.tile(prepared.mean, (len(starts), 1)), ends])
    if len(starts) > count:
        begun = _climbed(likelihood, ends, every, max_iter=_FEW)
        ends, reached = begun.params, begun.value.reshape(len(starts), n)
        order = np.argsort(-reached, axis=0)
        reached = np.take_along_axis(reached, order, 0)
        reached[1:][reached[:-1] - reached[1:] < _SAME] = -np.inf  # one end of several starts
        order = np.take_along_axis(order, np.argsort(-reached, axis=0, kind="stable"), 0)[:count]
        ends = ends.reshape(len(starts), n, -1)[order, np.arange(n)].reshape(count * n, -1)
    tried = _climbed(likelihood, ends, np.tile(np.arange(n), count))
    values = tried.value.reshape(count, n)
    best = values.argmax(0) * n + np.arange(n)
    agreement = (values > values.max(0) - AGREE).sum(0)
    return Optimum(*(part[best] for part in tried)), np.full(n, count), agreement


def _climbed(
    likelihood: SeasonalLikelihood, start: np.ndarray, units: np.ndarray, max_iter: int = 200
) -> Optimum:
    """Ends of climbs of the likelihoods of units (N,) from parameters (N, k)."""
    return climb_inside(
        lambda params, rows: likelihood.evaluate(params, units[rows]),
        likelihood.form,
        np.ones(start.shape, dtype=bool),
        start,
        max_iter=max_iter,
    )


def _of_differences(prepared: Prepared) -> Lanes:
    """Lanes of series with gaps: their differences, zero where one is missing."""
    form = prepared.form
    noise = prepared.inputs[:, :, 0] if prepared.noise is None else prepared.noise
    plain, n = Form(form.p, form.q, P=form.P, Q=form.Q, m=form.m), len(noise)
    free, T = np.ones((n, plain.n_params), dtype=bool), noise.shape[1]
    zero = np.zeros((T, 0, 1))
    return Lanes(plain, np.ascontiguousarray(noise.T), zero, np.full(n, T), np.arange(n), free)


def _starts(form: Form, n: int, count: int) -> list[np.ndarray]:
    """Starts (n, k): one of small coefficients, or several strong ones, then random."""
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
    """Parameters (N, k) with both factors of the moving average invertible."""
    result = params.copy()
    for theta in form.parts(result.T)[2::2]:
        theta[:] = -reflected(-theta)[0]
    return result
