"""The likelihood at parameters that are given."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from tsrnn.linear.dcc._equations import Design, Equations, design, equations_at
from tsrnn.linear.dcc._estimate import Fit, not_estimated
from tsrnn.linear.dcc._fit import Order
from tsrnn.linear.dcc._likelihood import density, paths
from tsrnn.linear.dcc._specification import Parts, Specification
from tsrnn.linear.dcc._tensor_jets import constants


def at_given(spec: Specification, series: Sequence[np.ndarray], params: np.ndarray) -> Fit:
    """Likelihood of series (T_i, n) at parameters (S, K) in the place of a fit.

    Raises
    ------
    ValueError
        If a series is too short, or parameters are not admissible.
    """
    parts = spec.parts(params)
    _, data, reasons = design(spec.step.mean, series, parts.beta)
    if reasons:
        raise ValueError(next(iter(reasons.values())))
    check_admissible(parts)
    own = np.concatenate([parts.coefficients, parts.variance], 2)
    with np.errstate(invalid="ignore", divide="ignore"):
        equations = equations_at(spec.step, data, own, spec.initial_variance)
        loglik = _loglik_of(equations) + _correlation_loglik(spec.order, parts, equations.z, data)
    if not np.isfinite(loglik).all():
        bad = int(np.flatnonzero(~np.isfinite(loglik))[0])
        raise ValueError(f"params must give positive, finite variances; those of unit {bad} do not")
    estimates = not_estimated(spec, params, loglik, data.lengths)
    return Fit(estimates, equations.presample)


def _loglik_of(equations: Equations) -> np.ndarray:
    s, n = equations.variance.shape[:2]
    return equations.estimates.loglik.reshape(s, n).sum(1)


def _correlation_loglik(order: Order, parts: Parts, z: np.ndarray, data: Design) -> np.ndarray:
    values = torch.from_numpy(z)
    observed = torch.from_numpy(data.observed)
    jets = constants(parts.a), constants(parts.b)
    target = torch.from_numpy(parts.target)[:, None]
    made = paths(values, observed, *jets, corrected=order.corrected, target=target)
    return density(made, values, observed).value.sum(1).numpy()


def check_admissible(parts: Parts) -> None:
    """Refuse correlation parameters outside their bounds."""
    dynamic = np.hstack([parts.a, parts.b])
    if (dynamic < 0).any() or (dynamic.sum(1) > 1).any():
        raise ValueError(
            f"a and b must not be negative and sum to at most one; got {dynamic.tolist()}"
        )
    if not (np.linalg.eigvalsh(parts.target)[:, 0] > 0).all():
        raise ValueError("the correlations rho must make a positive definite matrix; they do not")
