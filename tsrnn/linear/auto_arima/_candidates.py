"""Criteria of candidate models of many series, by exact likelihoods."""

from __future__ import annotations

from itertools import count
from typing import NamedTuple

import numpy as np

from tsrnn.linear._optimise import Objective, maximise_together
from tsrnn.linear.arma._polynomials import inverse_roots
from tsrnn.linear.arma._quasi_newton import climb
from tsrnn.linear.arma._seasonal import Lanes
from tsrnn.linear.arma._specification import Form
from tsrnn.linear.auto_arima._differences import lagged_difference
from tsrnn.linear.auto_arima._likelihood import Likelihood
from tsrnn.linear.auto_arima._orders import Pair, criterion_values

ROUGH = 1e-3  # decrement: log-likelihoods accurate to 1e-3 are enough for a choice
CONDITIONAL = 6  # iterations of conditional least squares, which start exact climbs
MOST = 40  # iterations: only climbs to common roots or to the unit circle take more than 20
PATIENCE = 10  # iterations before a candidate behind the best model is given up
SAFETY = 2.0  # a climb may still rise by this multiple of its predicted rise
# Smallest modulus of the autoregression's roots in a chosen model, as in R's forecast. Roots of the
# moving average may be on the unit circle, where the likelihood is often highest.
OUTSIDE = 1.01
_NEW = 0.02  # starting coefficient of a new lag: with zeros on both sides, gradients are equal
_COLLINEAR = 1e-10  # relative size that rounding leaves of a collinear regressor
_NOTHING = 1e-12  # relative deviation that rounding leaves of a constant series


class Series(NamedTuple):
    """Series for `Lanes`: differenced, scaled residuals of the regressors."""

    u: np.ndarray  # (T, S), 0 after the end of a series
    X: np.ndarray  # (T, 1 + m, S) or (T, 1, 1), a constant and orthogonalised regressors
    n_obs: np.ndarray  # (S,)
    scale: np.ndarray  # (S,)
    slopes: np.ndarray  # (S, m), least-squares coefficients of X, which u excludes
    transform: np.ndarray  # (S, m, m), from these to the regressors'; NaN if collinear
    period: int


def differences(
    values: np.ndarray, exog: np.ndarray | None, d: np.ndarray, D: np.ndarray, period: int
) -> tuple[np.ndarray, np.ndarray | None]:
    """Difference series (N, T) and columns (N, T, m) d and D times; NaN in the first rows."""
    u, X = values, exog
    for times, lag in ((D, period), (d, 1)):
        for time in range(1, int(times.max(initial=0)) + 1):
            chosen = times >= time
            u = np.where(chosen[:, None], lagged_difference(u, lag), u)
            if X is not None:
                X = np.where(chosen[:, None, None], lagged_difference(X, lag), X)
    return u, X


def differenced(
    values: np.ndarray, exog: np.ndarray | None, d: np.ndarray, D: np.ndarray, period: int
) -> Series:
    """Difference and scale series (N, T), which are complete up to their ends, then NaN.

    A series with constant differences has scale 0.
    """
    u, X = differences(values, exog, d, D, period)
    # Drop the first `lost` rows, which have no differences.
    lost = d + period * D
    rows = lost[:, None] + np.arange(max(u.shape[1] - int(lost.min(initial=0)), 1))
    inside = rows < u.shape[1]
    rows = np.minimum(rows, u.shape[1] - 1)
    u = np.where(inside, np.take_along_axis(u, rows, 1), np.nan)
    within = np.isfinite(u)
    n_obs, u = within.sum(1), np.where(within, u, 0.0)
    n, m = np.maximum(n_obs, 1), 0 if X is None else X.shape[2]
    columns = np.ones((u.shape[1], 1, 1))
    slopes, transform = np.zeros((len(u), m)), np.zeros((len(u), m, m))
    if X is not None:
        X = np.take_along_axis(X, rows[:, :, None], 1)
        X = np.where(within[:, :, None], X, 0.0)
        Q, R = np.linalg.qr(X)
        # Constant regressors are collinear with the constant.
        centre = np.where(within[:, :, None], X - (X.sum(1) / n[:, None])[:, None], 0.0)
        left = np.abs(np.einsum("nii->ni", np.linalg.qr(centre)[1]))
        size = np.sqrt((X**2).sum(1))
        singular = (left <= _COLLINEAR * size).any(1) | (n_obs <= m)
        R[singular] = np.eye(m)
        Q = Q * np.sqrt(n)[:, None, None]
        transform = np.linalg.inv(R) * np.sqrt(n)[:, None, None]
        transform[singular] = np.nan
        slopes = np.einsum("ntm,nt->nm", Q, u) / n[:, None]
        u = u - np.einsum("ntm,nm->nt", Q, slopes)
        columns = np.broadcast_to(columns, (len(columns), 1, len(u)))
        columns = np.concatenate([columns, Q.transpose(1, 2, 0)], 1)
    mean = u.sum(1) / n
    scale = np.sqrt((np.where(within, u - mean[:, None], 0.0) ** 2).sum(1) / n)
    scale[scale <= _NOTHING * np.nan_to_num(np.abs(values)).max(1, initial=0.0)] = 0.0
    u = u / np.where(scale, scale, 1.0)[:, None]
    return Series(np.ascontiguousarray(u.T), columns, n_obs, scale, slopes, transform, period)


class Candidates:
    """Models of series, fitted when their criteria are asked for.

    `kind` is the criterion, "aicc", "aic" or "bic"; `longest` bounds the orders p and q.
    """

    def __init__(self, series: Series, kind: str, longest: int) -> None:
        self.series, self.kind, self.longest = series, kind, longest
        self.params: list[dict[tuple[int, int], float]] = [{} for _ in series.n_obs]
        self.fresh = np.ones(len(series.n_obs), bool)  # had no model before this call
        self.best = np.full(len(series.n_obs), np.inf)
        self.mean = series.u.sum(0) / np.maximum(series.n_obs, 1)

    def __call__(self, pairs: list[Pair]) -> np.ndarray:
        """Criteria of pairs; infinite for a series too short, or an AR close to a unit root."""
        values = np.empty(len(pairs))
        self.fresh = np.array([not params for params in self.params])
        seasons = np.array([max(order.P, order.Q) for _, order in pairs])
        # The state is as long as the longest lag: group models by seasonal lags.
        for lags in np.unique(seasons):
            places = np.flatnonzero(seasons == lags)
            values[places] = self._fitted([pairs[place] for place in places])
        return values

    def _fitted(self, pairs: list[Pair]) -> np.ndarray:
        lanes = self.lanes(pairs)
        form, free, series = lanes.form, lanes.free, lanes.series
        likelihood = Likelihood(lanes, self.longest)
        start, every = self.starts(pairs, lanes), np.arange(len(pairs))
        params, result = self._optima(likelihood, start, every)
        np.minimum.at(self.best, series, result)
        # A climb may end on the unit circle although another optimum is higher: climb again from
        # small coefficients. The start may have been there already, as the best model so far.
        on_circle = smallest_root(form, params, autoregression=False) < OUTSIDE
        second = np.flatnonzero(~np.isfinite(result) & self.fresh[series] | on_circle)
        if len(second):
            others, values = self._optima(likelihood, self._first(lanes)[second], second)
            higher = values < result[second]
            params[second[higher]], result[second[higher]] = others[higher], values[higher]
            np.minimum.at(self.best, series, result)
        names = list(_places(form))
        for place in np.flatnonzero(result == self.best[series]):
            named = zip(names, params[place], free[place], strict=True)
            self.params[series[place]] = {name: value for name, value, here in named if here}
        return result

    def _optima(
        self, likelihood: Likelihood, start: np.ndarray, numbers: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Climb from starts of the given lanes; parameters and criteria at the optima."""
        lanes = likelihood.lanes
        series, free = lanes.series[numbers], lanes.free[numbers]
        n_params, n_obs = free.sum(1) + 1, self.series.n_obs[series]
        log_scale, steps = n_obs * np.log(self.series.scale[series]), count()

        def criteria(units: np.ndarray, value: np.ndarray) -> np.ndarray:
            loglik = value - log_scale[units]
            return criterion_values(self.kind, loglik, n_params[units], n_obs[units])

        def give_up(units: np.ndarray, value: np.ndarray, decrement: np.ndarray) -> np.ndarray:
            if next(steps) < PATIENCE:
                return np.zeros(len(units), bool)
            return criteria(units, value + SAFETY * decrement) > self.best[series[units]]

        # Far from an optimum, Gauss-Newton steps rise more than quasi-Newton steps.
        objective = Objective(
            lambda params, units, exact: likelihood.evaluate(params, numbers[units]), start
        )
        (ends,) = maximise_together(
            [objective], scoring=MOST, newton=0.0, tol=ROUGH, max_iter=MOST, give_up=give_up
        )
        values = criteria(np.arange(len(numbers)), ends.value)
        values[smallest_root(lanes.form, ends.params, moving_average=False) < OUTSIDE] = np.inf
        return ends.params, values

    def lanes(self, pairs: list[Pair]) -> Lanes:
        """Lanes of pairs, with room for their highest orders."""
        orders = np.array([order for _, order in pairs], dtype=np.int64)
        p, q, P, Q, _ = orders.max(0).tolist()
        m = self.series.X.shape[1] - 1
        form = Form(p, q, m, True, 0, False, P, Q, self.series.period)
        free = [orders[:, 4:] > 0, np.ones((len(pairs), m), bool)]
        free += [np.arange(most) < orders[:, k : k + 1] for k, most in enumerate((p, q, P, Q))]
        series = np.array([i for i, _ in pairs])
        u, X, n_obs = self.series[:3]
        return Lanes(form, u, X, n_obs, series, np.concatenate(free, 1))

    def starts(self, pairs: list[Pair], lanes: Lanes) -> np.ndarray:
        """Starts: the best model of a series so far, or conditional least squares."""
        form, free, series = lanes.form, lanes.free, lanes.series
        start = self._first(lanes)
        known = ~self.fresh[series]
        fresh = np.flatnonzero(~known)
        if len(fresh):
            start[fresh] = climb(
                lambda params, units: lanes.conditional(params, fresh[units]),
                start[fresh], tol=ROUGH, max_iter=CONDITIONAL,
            ).params  # fmt: skip
        names = _places(form)
        for place in np.flatnonzero(known):
            for name, value in self.params[series[place]].items():
                j = names.get(name, -1)
                if j >= 0 and free[place, j]:
                    start[place, j] = value
        return start

    def _first(self, lanes: Lanes) -> np.ndarray:
        """Starts of small coefficients and the mean of each series."""
        form, free = lanes.form, lanes.free
        mean, *lags = form.parts(np.full(form.n_params, _NEW))
        mean[:], lags[1], lags[3] = 0.0, -lags[1], -lags[3]  # without common roots
        start = np.where(free, np.concatenate([mean, *lags]), 0.0)
        start[:, 0] = np.where(free[:, 0], self.mean[lanes.series], 0.0)
        return start


def _places(form: Form) -> dict[tuple[int, int], int]:
    """Places of the parameters by kind (0 is the mean) and lag."""
    counts = (form.n_mean, form.p, form.q, form.P, form.Q)
    pairs = [(kind, lag) for kind, count in enumerate(counts) for lag in range(count)]
    return {pair: place for place, pair in enumerate(pairs)}


def smallest_root(
    form: Form, params: np.ndarray, autoregression: bool = True, moving_average: bool = True
) -> np.ndarray:
    """Smallest modulus (N,) of the roots, after reflection to the outside of the unit circle."""
    _, ar, ma, seasonal_ar, seasonal_ma = form.parts(params.T)
    factors = [(ar, 1), (seasonal_ar, form.m)] * autoregression
    factors += [(-ma, 1), (-seasonal_ma, form.m)] * moving_average
    smallest = np.full(len(params), np.inf)
    for lags, step in factors:
        if len(lags):
            inverse = np.abs(inverse_roots(np.nan_to_num(lags)))
            inverse = np.where(inverse > 1, 1 / np.maximum(inverse, 1e-300), inverse).max(0)
            with np.errstate(divide="ignore"):
                smallest = np.minimum(smallest, inverse ** (-1 / step))
    return smallest
