"""Draws of whole series: correlated shocks, variances, means."""

from __future__ import annotations

import numpy as np

from tsrnn.linear._mean import paths as mean_paths
from tsrnn.linear.dcc._equations import level_forms
from tsrnn.linear.dcc._given import check_admissible
from tsrnn.linear.dcc._simulate import simulate_correlated
from tsrnn.linear.dcc._specification import Parts, Specification
from tsrnn.linear.dcc._state import State, walk_of
from tsrnn.linear.garch._filter import State as VarianceState
from tsrnn.linear.garch._filter import initial_memory
from tsrnn.linear.garch._moments import resting_variance
from tsrnn.linear.garch._simulate import simulate


def draw(
    spec: Specification,
    parts: Parts,
    rows: tuple[int, int],
    generator: np.random.Generator,
) -> np.ndarray:
    """Draw S series (n, S, variables) after a burn-in, rows = (n, burn).

    Raises
    ------
    ValueError
        If parameters are not admissible, or a variance has no resting point to start from.
    """
    check_admissible(parts)
    steps, (s, n) = sum(rows), parts.variance.shape[:2]
    shocks = generator.standard_normal((s, steps, n))
    z, _ = simulate_correlated(
        parts.target, parts.a, parts.b, corrected=spec.order.corrected, shocks=shocks
    )
    model, variance = spec.step.model(), parts.variance.reshape(s * n, -1)
    start = resting_variance(model, variance)
    if not np.isfinite(start).all():
        raise ValueError(
            "to simulate, the persistence of every variance must be below one; that of "
            f"{spec.targets[int(np.flatnonzero(~np.isfinite(start))[0]) % n]!r} is not"
        )
    state = VarianceState(initial_memory(model, variance, start), np.empty((s * n, 0)))
    by_unit = z.swapaxes(1, 2).reshape(s * n, steps, 1)
    errors = simulate(model, variance, state, by_unit).y.reshape(s, n, steps).swapaxes(1, 2)
    if not np.isfinite(errors).all():
        raise ValueError(
            "to simulate, params must give positive, finite variances; omega must be positive, "
            "alpha and beta must not be negative"
        )
    intercepts, lags = level_forms(spec.step.mean, parts.coefficients, parts.beta)
    history = np.zeros((s, lags.shape[1], n))
    return mean_paths(history, intercepts, lags, errors)[:, rows[1] :].swapaxes(0, 1)


def draw_ahead(
    spec: Specification,
    parts: Parts,
    state: State,
    shocks: np.ndarray,
) -> np.ndarray:
    """Draw what follows a state, (S, paths, h, variables).

    Parameters
    ----------
    spec : Specification
    parts : Parts
        Of S series.
    state : State
    shocks : array of shape (S, paths, h, variables)
        Independent innovations of variance one.
    """
    s, paths, h, n = shocks.shape
    lanes = Parts(*(np.repeat(part, paths, 0) for part in parts))
    walk = walk_of(spec, lanes, State(*(np.repeat(part, paths, 0) for part in state)))
    z = np.empty((s * paths, h, n))
    for k in range(h):
        root = np.linalg.cholesky(walk.correlation)
        z[:, k] = (root @ shocks[:, :, k].reshape(-1, n, 1))[..., 0]
        walk.step(z[:, k])
    rows = parts.variance.reshape(s * n, -1)
    before = VarianceState(state.variance.reshape(s * n, -1), np.empty((s * n, 0)))
    by_unit = z.reshape(s, paths, h, n).transpose(0, 3, 2, 1).reshape(s * n, h, paths)
    errors = simulate(spec.step.model(), rows, before, by_unit).y
    errors = errors.reshape(s, n, h, paths).transpose(0, 3, 2, 1)
    intercepts, lags = level_forms(spec.step.mean, parts.coefficients, parts.beta)
    history = np.broadcast_to(state.history[:, None], (s, paths, *state.history.shape[1:]))
    return mean_paths(history, intercepts[:, None], lags[:, None], errors)
