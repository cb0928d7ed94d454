"""Recursion of correlations at given parameters: filter, forecasts and draws from a state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tsrnn.data import quote
from tsrnn.linear._matrices import Forecast, Path
from tsrnn.linear._mean import accumulated, residuals
from tsrnn.linear._mean import paths as mean_paths
from tsrnn.linear._multivariate import scaled_to_unit_diagonal
from tsrnn.linear.dcc._likelihood import correlations_at
from tsrnn.linear.dcc._specification import Parts, Specification, check_admissible
from tsrnn.linear.garch._filter import (
    Past,
    VarianceState,
    advance_garch,
    begin_garch,
    filter_garch,
    initial_state,
)
from tsrnn.linear.garch._forecast import expected_variance, simulate_garch
from tsrnn.linear.garch._inference import resting_variance
from tsrnn.linear.garch._prepare import from_first_value, shifted_back


class CorrelationState(NamedTuple):
    """State of S series after their last row."""

    history: np.ndarray  # (S, m, n), the last m rows
    variance: np.ndarray  # (S, n, fields), the first field is the next variance
    outer: np.ndarray  # (S, p, n, n), outer products that drive Q, latest first
    q: np.ndarray  # (S, max(q, 1), n, n), the next Q and its predecessors, latest first

    def select(self, series: np.ndarray) -> CorrelationState:
        """State of the given series."""
        return CorrelationState(*(part[series] for part in self))

    @property
    def variances(self) -> VarianceState:
        """State of the S n univariate models."""
        variance = self.variance.reshape(-1, self.variance.shape[2])
        return VarianceState(variance, np.empty((len(variance), 0)))


def filter_dcc(
    spec: Specification, parts: Parts, presample: np.ndarray, series: Sequence[np.ndarray]
) -> tuple[list[Path], CorrelationState]:
    """Filter series (T_i, n), which are at least as long as the longest lag, from the start."""
    n, m = spec.n, spec.mean.n_lags
    intercepts, lags = spec.level_forms(parts)
    errors = [residuals(y, c, a) for y, c, a in zip(series, intercepts, lags, strict=True)]
    lengths = np.array([len(e) for e in errors])
    longest = int(lengths.max())
    e = np.zeros((len(series), longest + 1, n))  # with a row for the next Q
    for row, values in zip(e, errors, strict=True):
        row[: len(values)] = values
    units = e[:, :-1].swapaxes(1, 2).reshape(len(e) * n, longest)
    unit_lengths = np.repeat(lengths, n)
    model = spec.step.model(padded=len(np.unique(lengths)) > 1, gaps=bool(np.isnan(e).any()))
    rows = parts.variance_rows, Past(presample.reshape(-1))
    h = np.ones_like(e)
    if longest:
        variance = filter_garch(model, *rows, *from_first_value(units, unit_lengths))[1]
        variance = shifted_back(variance, units, unit_lengths)
        variance = np.where(np.isnan(variance), 1.0, variance)
        h[:, :-1] = variance.reshape(len(e), n, -1).swapaxes(1, 2)
    begun = begin_garch(model, *rows, *from_first_value(units, unit_lengths))
    variance_state = begun.memory.reshape(len(e), n, -1)
    observed = np.arange(longest + 1) < lengths[:, None]
    path = correlations_at(parts, spec.order, e / np.sqrt(h), observed)
    q, driver = path.q.value.numpy(), path.driver.value[:, :, 0].numpy()
    paths = [
        Path(e[i, :end], covariances_of(h[i, :end], scaled_to_unit_diagonal(q[i, :end])))
        for i, end in enumerate(lengths)
    ]
    # Outer products and Q before the first row are S.
    outer = np.repeat(parts.target[:, None], spec.order.p, 1)
    last = np.repeat(parts.target[:, None], max(spec.order.q, 1), 1)
    for i, end in enumerate(lengths):
        for lag in range(min(outer.shape[1], end)):
            row = end - 1 - lag
            missing = np.isnan(e[i, row]).any()
            outer[i, lag] = q[i, row] if missing else np.outer(driver[i, row], driver[i, row])
        for lag in range(min(last.shape[1], end + 1)):
            last[i, lag] = q[i, end - lag]
    history = np.array([y[len(y) - m :] for y in series]).reshape(len(e), m, n)
    return paths, CorrelationState(history, variance_state, outer, last)


def covariances_of(variance: np.ndarray, correlation: np.ndarray) -> np.ndarray:
    """Covariance matrices (..., n, n) from variances (..., n) and correlations (..., n, n)."""
    root = np.sqrt(variance)
    return root[..., :, None] * correlation * root[..., None, :]


def advance_dcc(
    spec: Specification, parts: Parts, state: CorrelationState, values: np.ndarray
) -> CorrelationState:
    """State after further rows (S, T, n), all of one length."""
    n = spec.n
    intercepts, lags = spec.level_forms(parts)
    whole = np.concatenate([state.history, values], 1)
    errors = np.array([residuals(y, c, a) for y, c, a in zip(whole, intercepts, lags, strict=True)])
    model = spec.step.model(gaps=bool(np.isnan(errors).any()))
    walk = walk_of(spec, parts, state)
    rows, variances = parts.variance_rows, state.variances
    lengths = np.ones(len(rows), dtype=np.int64)
    for t in range(values.shape[1]):
        e = errors[:, t].reshape(-1, 1)
        walk.step((e[:, 0] / np.sqrt(variances.memory[:, 0])).reshape(-1, n))
        variances = advance_garch(model, rows, variances, e, lengths)
    history = whole[:, whole.shape[1] - state.history.shape[1] :]
    variance = variances.memory.reshape(state.variance.shape)
    return CorrelationState(history, variance, walk.outer, walk.q)


def walk_of(spec: Specification, parts: Parts, state: CorrelationState) -> Walk:
    """Recursion of correlations from a state on."""
    return Walk(parts.target, parts.a, parts.b, spec.order.corrected, state.outer, state.q)


def forecast_dcc(spec: Specification, parts: Parts, state: CorrelationState, h: int) -> Forecast:
    r"""Forecast h steps.

    Expected variances are exact. :math:`E Q_{T+k}` follows the recursion of Q with
    :math:`E[u u'] \approx E[Q]`, which is exact for the corrected model. Its correlations
    approximate :math:`E R_{T+k}` from the second step on (Engle and Sheppard 2001).
    """
    s, n = len(state.history), spec.n
    intercept, lags = spec.level_forms(parts)
    mean = mean_paths(state.history, intercept, lags, np.zeros((s, h, n)))
    variance = expected_variance(spec.step.model(), parts.variance_rows, state.variances, h)
    variance = variance.reshape(s, n, h).swapaxes(1, 2)
    walk, correlation = walk_of(spec, parts, state), np.empty((s, h, n, n))
    for k in range(h):
        correlation[:, k] = walk.correlation
        walk.expect()
    covariance = covariances_of(variance, correlation)
    return Forecast(mean, covariance, accumulated(lags, covariance))


def draw_dcc(
    spec: Specification, parts: Parts, rows: tuple[int, int], generator: np.random.Generator
) -> np.ndarray:
    """Draw S series, shape (n, S, variables), after a burn-in; `rows` are n and burn."""
    check_admissible(parts)
    steps, (s, n) = sum(rows), parts.variance.shape[:2]
    walk = Walk(parts.target, parts.a, parts.b, spec.order.corrected)
    z = walk.draw(generator.standard_normal((s, steps, n)))
    model, variance = spec.step.model(), parts.variance_rows
    start = resting_variance(model, variance)
    if not np.isfinite(start).all():
        raise ValueError(
            "to simulate, the persistence of every variance must be below one; that of "
            f"{quote(spec.targets[int(np.flatnonzero(~np.isfinite(start))[0]) % n])} is not"
        )
    state = VarianceState(initial_state(model, variance, Past(start)), np.empty((s * n, 0)))
    by_unit = z.swapaxes(1, 2).reshape(s * n, steps, 1)
    drawn = simulate_garch(model, variance, state, by_unit)
    if not (np.isfinite(drawn.variance) & (drawn.variance > 0)).all():
        raise ValueError(
            "to simulate, params must give positive, finite variances; omega must be positive, "
            "alpha and beta must not be negative"
        )
    errors = drawn.y.reshape(s, n, steps).swapaxes(1, 2)
    intercepts, lags = spec.level_forms(parts)
    history = np.zeros((s, lags.shape[1], n))
    return mean_paths(history, intercepts, lags, errors)[:, rows[1] :].swapaxes(0, 1)


def draw_ahead(
    spec: Specification, parts: Parts, state: CorrelationState, shocks: np.ndarray
) -> np.ndarray:
    """Draw paths (S, paths, h, variables) after a state, from shocks of variance one."""
    s, paths, h, n = shocks.shape
    lanes = np.repeat(np.arange(s), paths)
    walk = walk_of(spec, parts.select(lanes), state.select(lanes))
    z = walk.draw(shocks.reshape(s * paths, h, n))
    by_unit = z.reshape(s, paths, h, n).transpose(0, 3, 2, 1).reshape(s * n, h, paths)
    errors = simulate_garch(spec.step.model(), parts.variance_rows, state.variances, by_unit).y
    errors = errors.reshape(s, n, h, paths).transpose(0, 3, 2, 1)
    intercepts, lags = spec.level_forms(parts)
    history = np.broadcast_to(state.history[:, None], (s, paths, *state.history.shape[1:]))
    return mean_paths(history, intercepts[:, None], lags[:, None], errors)


class Walk:
    """Recursion of Q step by step, of U units, from S (U, n, n) or from a state.

    Coefficients are a (U, p) and b (U, q); `outer` and `q` are fields of a `CorrelationState`.
    """

    def __init__(
        self,
        target: np.ndarray,
        a: np.ndarray,
        b: np.ndarray,
        corrected: bool,
        outer: np.ndarray | None = None,
        q: np.ndarray | None = None,
    ) -> None:
        self._target, self._a, self._b, self._corrected = target, a, b, corrected
        lags = a.shape[1], max(b.shape[1], 1)
        self.outer, self.q = (
            np.repeat(target[:, None], lag, 1) if state is None else state.copy()
            for state, lag in zip((outer, q), lags, strict=True)
        )

    @property
    def correlation(self) -> np.ndarray:
        """Correlations (U, n, n) of the next step."""
        return scaled_to_unit_diagonal(self.q[:, 0])

    def step(self, z: np.ndarray) -> None:
        """Advance by standardised residuals (U, n); with a NaN, Q replaces their outer product."""
        u = z
        if self._corrected:
            u = np.sqrt(np.diagonal(self.q[:, 0], axis1=1, axis2=2)) * z
        outer = u[:, :, None] * u[:, None, :]
        missing = np.isnan(z).any(1)[:, None, None]
        self._advance(np.where(missing, self.q[:, 0], outer))

    def draw(self, shocks: np.ndarray) -> np.ndarray:
        r"""Draw standardised residuals :math:`z_t = R_t^{1/2} \epsilon_t`, (U, T, n), and advance.

        `shocks` are independent innovations (U, T, n) of variance one.
        """
        z = np.empty_like(shocks)
        for t in range(shocks.shape[1]):
            root = np.linalg.cholesky(self.correlation)
            z[:, t] = (root @ shocks[:, t, :, None])[..., 0]
            self.step(z[:, t])
        return z

    def expect(self) -> None:
        """Advance with Q in place of the outer product: the step of a forecast."""
        self._advance(self.q[:, 0])

    def _advance(self, outer: np.ndarray) -> None:
        if not self._a.shape[1]:
            return
        self.outer = np.concatenate([outer[:, None], self.outer[:, :-1]], 1)
        target = self._target[:, None]
        new = self._target + (self._a[:, :, None, None] * (self.outer - target)).sum(1)
        if self._b.shape[1]:
            new = new + (self._b[:, :, None, None] * (self.q - target)).sum(1)
        self.q = np.concatenate([new[:, None], self.q[:, :-1]], 1)
