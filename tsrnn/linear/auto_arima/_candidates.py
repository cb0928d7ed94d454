"""Criteria of candidate models of many series: exact likelihoods of lanes of any orders."""

from __future__ import annotations

from functools import partial
from itertools import count
from typing import NamedTuple

import numpy as np

from tsrnn.linear._optimise import Evaluation, Objective, maximise_together
from tsrnn.linear.arma._polynomials import inverse_roots
from tsrnn.linear.arma._quasi_newton import climb
from tsrnn.linear.arma._seasonal import Lanes
from tsrnn.linear.arma._specification import Form
from tsrnn.linear.auto_arima._differences import lagged_difference
from tsrnn.linear.auto_arima._likelihood import Likelihood
from tsrnn.linear.auto_arima._orders import Pair, criterion_values

ROUGH = 1e-3  # decrement: log-likelihoods to 1e-3 for a choice
CONDITIONAL = 6  # iterations of conditional least squares, from which exact climbs start
MOST = 40  # iterations: climbs to roots that cancel, or to the unit circle, take more than 20
PATIENCE = 10  # iterations before a candidate that stays behind the best model is given up
SAFETY = 2.0  # times what the next step promises is what a climb may yet rise
# Modulus of the smallest root of the autoregression of a model that is taken, as in R's forecast. A
# root of the moving average may be on the unit circle, where the likelihood often is highest.
OUTSIDE = 1.01
_NEW = 0.02  # coefficient that a start gives to a lag: of zeros on both sides nothing can be told
_COLLINEAR = 1e-10  # of the size of regressors: what rounding leaves of a part by itself
_NOTHING = 1e-12  # spread, relative to the size, that rounding leaves of a constant series


class Series(NamedTuple):
    """Series differenced, scaled and freed from regressors, for `Lanes`.

    Attributes
    ----------
    u : ndarray of shape (T, S)
        0 after the end of a series.
    X : ndarray of shape (T, 1 + m, S) or (T, 1, 1)
        A constant and the regressors, orthogonal to each other.
    n_obs : integer ndarray of shape (S,)
    scale : ndarray of shape (S,)
    slopes : ndarray of shape (S, m)
        Coefficients of the columns of X by least squares, which were taken off.
    transform : ndarray of shape (S, m, m)
        From these coefficients to those of the regressors; NaN where these are collinear.
    period : int
    """

    u: np.ndarray
    X: np.ndarray
    n_obs: np.ndarray
    scale: np.ndarray
    slopes: np.ndarray
    transform: np.ndarray
    period: int


def differences(
    values: np.ndarray, exog: np.ndarray | None, d: np.ndarray, D: np.ndarray, period: int
) -> tuple[np.ndarray, np.ndarray | None]:
    """Series (N, T) and columns (N, T, m) differenced d and D times, NaN in the first rows."""
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
    """Series (N, T) differenced d and D times; complete up to their ends, then NaN.

    The scale of a series whose differences do not vary is 0.
    """
    u, X = differences(values, exog, d, D, period)
    # What differences leave begins `lost` rows after the first.
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
        # Regressors that do not vary are those of a constant.
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
    """Models of some series, fitted when their criteria are asked for.

    Parameters
    ----------
    series : Series
    kind : {"aicc", "aic", "bic"}
    longest : int
        Highest of the orders p and q.
    """

    def __init__(self, series: Series, kind: str, longest: int) -> None:
        self.series, self.kind, self.longest = series, kind, longest
        self.params: list[dict[tuple[int, int], float]] = [{} for _ in series.n_obs]
        self.fresh = np.ones(len(series.n_obs), bool)  # without a model before this call
        self.best = np.full(len(series.n_obs), np.inf)
        self.mean = series.u.sum(0) / np.maximum(series.n_obs, 1)

    def __call__(self, pairs: list[Pair]) -> np.ndarray:
        """Criteria of pairs of a series and an order.

        Infinite where a series is too short, or the autoregression close to a unit root.
        """
        values = np.empty(len(pairs))
        self.fresh = np.array([not params for params in self.params])
        seasons = np.array([max(order.P, order.Q) for _, order in pairs])
        # The state is as long as the longest lag: models without a season are not to pay for it.
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
        # A climb may lead to the unit circle though there is a higher optimum elsewhere: from small
        # coefficients these climb once more, those that are on the circle of the moving average
        # because the best model so far, from which they began, was there.
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
        """Parameters and criteria at the optima that starts of some lanes lead to."""
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

        # Far from an optimum steps of Gauss and Newton's method rise more than those whose
        # curvature a quasi-Newton method learns on the way.
        objective = Objective(partial(_evaluated, likelihood, numbers), start)
        (ends,) = maximise_together(
            [objective], scoring=MOST, newton=0.0, tol=ROUGH, max_iter=MOST, give_up=give_up
        )
        values = criteria(np.arange(len(numbers)), ends.value)
        values[smallest_root(lanes.form, ends.params, moving_average=False) < OUTSIDE] = np.inf
        return ends.params, values

    def lanes(self, pairs: list[Pair]) -> Lanes:
        """Lanes of pairs, with room for the highest of their orders."""
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
        """Parameters of the best model of a series so far, or by conditional least squares."""
        form, free, series = lanes.form, lanes.free, lanes.series
        start = self._first(lanes)
        known = ~self.fresh[series]
        fresh = np.flatnonzero(~known)
        if len(fresh):
            evaluate = partial(_conditional, lanes, fresh)
            start[fresh] = climb(evaluate, start[fresh], tol=ROUGH, max_iter=CONDITIONAL).params
        names = _places(form)
        for place in np.flatnonzero(known):
            for name, value in self.params[series[place]].items():
                j = names.get(name, -1)
                if j >= 0 and free[place, j]:
                    start[place, j] = value
        return start

    def _first(self, lanes: Lanes) -> np.ndarray:
        """Small coefficients and the mean of each series."""
        form, free = lanes.form, lanes.free
        mean, *lags = form.parts(np.full(form.n_params, _NEW))
        mean[:], lags[1], lags[3] = 0.0, -lags[1], -lags[3]  # no roots in common on both sides
        start = np.where(free, np.concatenate([mean, *lags]), 0.0)
        start[:, 0] = np.where(free[:, 0], self.mean[lanes.series], 0.0)
        return start


def _conditional(
    lanes: Lanes, numbers: np.ndarray, params: np.ndarray, units: np.ndarray
) -> Evaluation:
    return lanes.conditional(params, numbers[units])


def _evaluated(
    likelihood: Likelihood,
    numbers: np.ndarray,
    params: np.ndarray,
    units: np.ndarray,
    exact: bool,
) -> Evaluation:
    """Evaluation of the lanes with some numbers; the curvature is an information throughout."""
    return likelihood.evaluate(params, numbers[units])


def _places(form: Form) -> dict[tuple[int, int], int]:
    """Places of the parameters by kind, 0 of the mean, and lag."""
    counts = (form.n_mean, form.p, form.q, form.P, form.Q)
    pairs = [(kind, lag) for kind, count in enumerate(counts) for lag in range(count)]
    return {pair: place for place, pair in enumerate(pairs)}


def smallest_root(
    form: Form, params: np.ndarray, autoregression: bool = True, moving_average: bool = True
) -> np.ndarray:
    """Modulus (N,) of the root next to the unit circle, of a moving average made invertible."""
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
