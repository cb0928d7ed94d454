"""Draws of whole series: correlated shocks, variances, means."""

from __future__ import annotations

import numpy as np

from tsrnn.linear._mean import paths
from tsrnn.linear.dcc._equations import level_forms
from tsrnn.linear.dcc._given import check_admissible
from tsrnn.linear.dcc._simulate import simulate_correlated
from tsrnn.linear.dcc._specification import Parts, Specification
from tsrnn.linear.garch._filter import State, initial_memory
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
    state = State(initial_memory(model, variance, start), np.empty((s * n, 0)))
    by_unit = z.swapaxes(1, 2).reshape(s * n, steps, 1)
    errors = simulate(model, variance, state, by_unit).y.reshape(s, n, steps).swapaxes(1, 2)
    if not np.isfinite(errors).all():
        raise ValueError(
            "to simulate, params must give positive, finite variances; omega must be positive, "
            "alpha and beta must not be negative"
        )
    intercepts, lags = level_forms(spec.step.mean, parts.coefficients, parts.beta)
    history = np.zeros((s, lags.shape[1], n))
    return paths(history, intercepts, lags, errors)[:, rows[1] :].swapaxes(0, 1)
