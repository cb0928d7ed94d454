"""Forecasts of means, variances and correlations from a state, and draws of whole series."""

from __future__ import annotations

import numpy as np

from tsrnn.linear._matrices import Forecast
from tsrnn.linear._mean import accumulated
from tsrnn.linear._mean import paths as mean_paths
from tsrnn.linear.dcc._filter import CorrelationState, Walk, covariances_of, walk_of
from tsrnn.linear.dcc._specification import Parts, Specification, check_admissible
from tsrnn.linear.garch._filter import VarianceState, initial_state
from tsrnn.linear.garch._forecast import expected_variance, simulate_garch
from tsrnn.linear.garch._inference import resting_variance


def forecast_dcc(spec: Specification, parts: Parts, state: CorrelationState, h: int) -> Forecast:
    r"""Forecast h steps.

    Variances have exact expectations. :math:`E Q_{T+k}` follows its recursion with
    :math:`E[u u'] \approx E[Q]`, exactly so for the corrected model; taking its correlations for
    :math:`E R_{T+k}` is an approximation from the second step on (Engle and Sheppard 2001).
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
    walk = Walk(parts.target, parts.a, parts.b, spec.order.corrected)
    z = walk.draw(generator.standard_normal((s, steps, n)))
    model, variance = spec.step.model(), parts.variance_rows
    start = resting_variance(model, variance)
    if not np.isfinite(start).all():
        raise ValueError(
            "to simulate, the persistence of every variance must be below one; that of "
            f"{spec.targets[int(np.flatnonzero(~np.isfinite(start))[0]) % n]!r} is not"
        )
    state = VarianceState(initial_state(model, variance, start), np.empty((s * n, 0)))
    by_unit = z.swapaxes(1, 2).reshape(s * n, steps, 1)
    errors = simulate_garch(model, variance, state, by_unit).y.reshape(s, n, steps).swapaxes(1, 2)
    if not np.isfinite(errors).all():
        raise ValueError(
            "to simulate, params must give positive, finite variances; omega must be positive, "
            "alpha and beta must not be negative"
        )
    intercepts, lags = spec.level_forms(parts)
    history = np.zeros((s, lags.shape[1], n))
    return mean_paths(history, intercepts, lags, errors)[:, rows[1] :].swapaxes(0, 1)


def draw_ahead(
    spec: Specification, parts: Parts, state: CorrelationState, shocks: np.ndarray
) -> np.ndarray:
    """Draw what follows a state of S series, by shocks (S, paths, h, variables), in their shape.

    Shocks are independent innovations of variance one.
    """
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
