"""Filter: correlations of data at given parameters, and the state at the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tsrnn.linear._matrices import Path
from tsrnn.linear._mean import residuals
from tsrnn.linear._multivariate import scaled_to_unit_diagonal
from tsrnn.linear.dcc._likelihood import correlations_at
from tsrnn.linear.dcc._specification import Parts, Specification
from tsrnn.linear.garch._filter import (
    VarianceState,
    advance_garch,
    begin_garch,
    filter_garch,
)


class CorrelationState(NamedTuple):
    """State of S series after their last row.

    Attributes
    ----------
    history : array of shape (S, m, n)
        The last m rows.
    variance : array of shape (S, n, fields)
        Of the variances' recursions; its first field is the variance to come.
    outer : array of shape (S, p, n, n)
        Last outer products that drive Q, the latest first.
    q : array of shape (S, max(q, 1), n, n)
        Q to come and those before, the latest first.
    """

    history: np.ndarray
    variance: np.ndarray
    outer: np.ndarray
    q: np.ndarray

    def select(self, series: np.ndarray) -> CorrelationState:
        """State of some series, by number."""
        return CorrelationState(*(part[series] for part in self))

    @property
    def variances(self) -> VarianceState:
        """State of the S n univariate models."""
        variance = self.variance.reshape(-1, self.variance.shape[2])
        return VarianceState(variance, np.empty((len(variance), 0)))


def filter_dcc(
    spec: Specification,
    parts: Parts,
    presample: np.ndarray,
    series: Sequence[np.ndarray],
) -> tuple[list[Path], CorrelationState]:
    """Run over series (T_i, n) of at least the longest lag, from the start."""
    n, m = spec.n, spec.step.mean.n_lags
    intercepts, lags = spec.level_forms(parts)
    errors = [residuals(y, c, a) for y, c, a in zip(series, intercepts, lags, strict=True)]
    lengths = np.array([len(e) for e in errors])
    longest = int(lengths.max())
    e = np.zeros((len(series), longest + 1, n))  # one row more, for the Q that comes next
    for row, values in zip(e, errors, strict=True):
        row[: len(values)] = values
    units = e[:, :-1].swapaxes(1, 2).reshape(len(e) * n, longest)
    unit_lengths = np.repeat(lengths, n)
    model = spec.step.model(padded=len(np.unique(lengths)) > 1)
    rows = parts.variance_rows, presample.reshape(-1)
    h = np.ones_like(e)
    if longest:
        variance = filter_garch(model, *rows, units, unit_lengths)[1]
        variance = np.where(np.isnan(variance), 1.0, variance)
        h[:, :-1] = variance.reshape(len(e), n, -1).swapaxes(1, 2)
    variance_state = begin_garch(model, *rows, units, unit_lengths).memory.reshape(len(e), n, -1)
    observed = np.arange(longest + 1) < lengths[:, None]
    path = correlations_at(parts, spec.order, e / np.sqrt(h), observed)
    q, driver = path.q.value.numpy(), path.driver.value[:, :, 0].numpy()
    paths = [
        Path(e[i, :end], covariances_of(h[i, :end], scaled_to_unit_diagonal(q[i, :end])))
        for i, end in enumerate(lengths)
    ]
    outer_tail, q_tail = _tails(spec, parts.target, driver, q, lengths)
    history = np.array([y[len(y) - m :] for y in series]).reshape(len(e), m, n)
    return paths, CorrelationState(history, variance_state, outer_tail, q_tail)


def _tails(
    spec: Specification, target: np.ndarray, driver: np.ndarray, q: np.ndarray, lengths: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Last outer products and Qs, S standing in for those before the first row."""
    s, n = len(target), spec.n
    outer = np.empty((s, spec.order.p, n, n))
    last = np.empty((s, max(spec.order.q, 1), n, n))
    for i, end in enumerate(lengths):
        for lag in range(outer.shape[1]):
            t = end - 1 - lag
            outer[i, lag] = np.outer(driver[i, t], driver[i, t]) if t >= 0 else target[i]
        for lag in range(last.shape[1]):
            last[i, lag] = q[i, end - lag] if end >= lag else target[i]
    return outer, last


def covariances_of(variance: np.ndarray, correlation: np.ndarray) -> np.ndarray:
    """Covariance matrices (..., n, n) of variances (..., n) and correlations (..., n, n)."""
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
    model, walk = spec.step.model(), walk_of(spec, parts, state)
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
    """The recursion of correlations from a state on."""
    return Walk(parts.target, parts.a, parts.b, spec.order.corrected, state.outer, state.q)


class Walk:
    """The recursion one step after the other, from its start or from a state.

    Parameters
    ----------
    target : array of shape (U, n, n)
    a, b : arrays of shape (U, p) and (U, q)
    corrected : bool
    outer : array of shape (U, p, n, n), optional
        Last outer products, the latest first; S by default.
    q : array of shape (U, max(q, 1), n, n), optional
        This Q and those before, the latest first; S by default.
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
        """Correlations (U, n, n) of the step that comes."""
        return scaled_to_unit_diagonal(self.q[:, 0])

    def step(self, z: np.ndarray) -> None:
        """Take in the standardised residuals (U, n) of that step."""
        u = z
        if self._corrected:
            u = np.sqrt(np.diagonal(self.q[:, 0], axis1=1, axis2=2)) * z
        self._advance(u[:, :, None] * u[:, None, :])

    def draw(self, shocks: np.ndarray) -> np.ndarray:
        r"""Go on by standardised residuals :math:`z_t = R_t^{1/2} \epsilon_t`, (U, T, n).

        `shocks` are independent innovations (U, T, n) of variance one.
        """
        z = np.empty_like(shocks)
        for t in range(shocks.shape[1]):
            root = np.linalg.cholesky(self.correlation)
            z[:, t] = (root @ shocks[:, t, :, None])[..., 0]
            self.step(z[:, t])
        return z

    def expect(self) -> None:
        """Go on as if the outer product were what Q says: the step of a forecast."""
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
