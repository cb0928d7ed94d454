"""Run a model with given parameters over data: correlations, and the state at the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch

from tsrnn.linear._matrices import Path
from tsrnn.linear._mean import residuals
from tsrnn.linear._multivariate import scaled_to_unit_diagonal
from tsrnn.linear.dcc._equations import level_forms
from tsrnn.linear.dcc._likelihood import paths
from tsrnn.linear.dcc._simulate import Walk
from tsrnn.linear.dcc._specification import Parts, Specification
from tsrnn.linear.dcc._tensor_jets import constants
from tsrnn.linear.garch import _filter as garch


class State(NamedTuple):
    """What S series carry on from their last row.

    Attributes
    ----------
    history : array of shape (S, m, n)
        The last m rows.
    variance : array of shape (S, n, fields)
        Memory of the variances' recursions; its first field is the variance to come.
    outer : array of shape (S, p, n, n)
        Last outer products that drive Q, the latest first.
    q : array of shape (S, max(q, 1), n, n)
        Q to come and those before, the latest first.
    """

    history: np.ndarray
    variance: np.ndarray
    outer: np.ndarray
    q: np.ndarray


def run(
    spec: Specification,
    parts: Parts,
    presample: np.ndarray,
    series: Sequence[np.ndarray],
) -> tuple[list[Path], State]:
    """Run over series (T_i, n) of at least the longest lag, from the start."""
    n, m = spec.n, spec.step.mean.n_lags
    intercepts, lags = level_forms(spec.step.mean, parts.coefficients, parts.beta)
    errors = [residuals(y, c, a) for y, c, a in zip(series, intercepts, lags, strict=True)]
    lengths = np.array([len(e) for e in errors])
    longest = int(lengths.max())
    e = np.zeros((len(series), longest + 1, n))  # one row more, for the Q that comes next
    for row, own in zip(e, errors, strict=True):
        row[: len(own)] = own
    units, own = e[:, :-1].swapaxes(1, 2).reshape(-1, longest), np.repeat(lengths, n)
    model = spec.step.model(padded=len(np.unique(lengths)) > 1)
    rows = parts.variance.reshape(len(units), -1), presample.reshape(-1)
    h = np.ones_like(e)
    if longest:
        found = garch.run(model, *rows, units, own)[1]
        h[:, :-1] = np.where(np.isnan(found), 1.0, found).reshape(len(e), n, -1).swapaxes(1, 2)
    memory = garch.begin(model, *rows, units, own).memory.reshape(len(e), n, -1)
    q, driver = _correlate(spec, parts, e / np.sqrt(h), lengths)
    done = [
        Path(e[i, :end], covariances_of(h[i, :end], scaled_to_unit_diagonal(q[i, :end])))
        for i, end in enumerate(lengths)
    ]
    outer_tail, q_tail = _tails(spec, parts.target, driver, q, lengths)
    history = np.array([y[len(y) - m :] for y in series]).reshape(len(e), m, n)
    return done, State(history, memory, outer_tail, q_tail)


def covariances_of(variance: np.ndarray, correlation: np.ndarray) -> np.ndarray:
    """Covariance matrices (..., n, n) of variances (..., n) and correlations (..., n, n)."""
    root = np.sqrt(variance)
    return root[..., :, None] * correlation * root[..., None, :]


def _correlate(
    spec: Specification, parts: Parts, z: np.ndarray, lengths: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Q (S, T + 1, n, n) and what drives it (S, T + 1, n)."""
    observed = np.arange(z.shape[1]) < lengths[:, None]
    jets = constants(parts.a), constants(parts.b)
    made = paths(
        torch.from_numpy(z), torch.from_numpy(observed), *jets,
        corrected=spec.order.corrected, target=torch.from_numpy(parts.target)[:, None],
    )  # fmt: skip
    return made.q.value.numpy(), made.driver.value[:, :, 0].numpy()


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


def walk_of(spec: Specification, parts: Parts, state: State) -> Walk:
    """The recursion of correlations from a state on."""
    return Walk(parts.target, parts.a, parts.b, spec.order.corrected, state.outer, state.q)


def advance(spec: Specification, parts: Parts, state: State, values: np.ndarray) -> State:
    """State after further rows (S, T, n), all of one length."""
    n = spec.n
    intercepts, lags = level_forms(spec.step.mean, parts.coefficients, parts.beta)
    whole = np.concatenate([state.history, values], 1)
    errors = np.array([residuals(y, c, a) for y, c, a in zip(whole, intercepts, lags, strict=True)])
    model, walk = spec.step.model(), walk_of(spec, parts, state)
    rows = parts.variance.reshape(-1, parts.variance.shape[2])
    memory = state.variance.reshape(len(rows), -1)
    for t in range(values.shape[1]):
        e = errors[:, t].reshape(-1, 1)
        walk.step((e[:, 0] / np.sqrt(memory[:, 0])).reshape(-1, n))
        own = garch.State(memory, np.empty((len(rows), 0)))
        memory = garch.advance(model, rows, own, e, np.ones(len(rows), dtype=np.int64)).memory
    history = whole[:, whole.shape[1] - state.history.shape[1] :]
    return State(history, memory.reshape(state.variance.shape), walk.outer, walk.q)
