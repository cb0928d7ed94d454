"""Estimation in two steps: variances equation by equation, then the correlations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from tsrnn.linear._estimates import Estimates
from tsrnn.linear._multivariate import collinear, scaled_to_unit_diagonal, too_few
from tsrnn.linear._optimise import Evaluation, maximise
from tsrnn.linear.dcc._inference import estimates_of, estimates_without_errors
from tsrnn.linear.dcc._likelihood import (
    constants,
    correlation_density,
    correlation_logliks,
    evaluate_correlations,
    run_correlations,
)
from tsrnn.linear.dcc._prepare import Design, design_of
from tsrnn.linear.dcc._specification import FirstStep, Order, Specification, check_admissible
from tsrnn.linear.garch._filter import filter_garch
from tsrnn.linear.garch._fit import Fit as VarianceFit
from tsrnn.linear.garch._fit import fit_garch, garch_at

# Sums of a and of b to start from, those of daily returns first; the best of them is taken.
_STARTS = ((0.02, 0.96), (0.04, 0.9), (0.08, 0.85), (0.02, 0.7), (0.1, 0.5), (0.05, 0.1))
_DECAYS = (0.0, 0.3, 0.6, 0.8, 0.9, 0.95, 0.98)
_NEAR_FACE = 1e-3  # sum below one from which the face of a sum of one is searched too
_ROUNDING = 1e-12  # relative gain that is no more than rounding


class Fit(NamedTuple):
    """Estimates of S series and presample variances (S, n)."""

    estimates: Estimates
    presample: np.ndarray


@dataclass(frozen=True)
class Equations:
    """Parameters of the first step of S series, its residuals and variances.

    Parameters
    ----------
    coefficients : array of shape (S, n, r)
        Of the mean.
    variance : array of shape (S, n, k)
        Parameters of the variance.
    presample : array of shape (S, n)
        Variance before the first observation.
    e, h : arrays of shape (S, T, n)
        Residuals, zero after the end of a series, and variances, one there.
    estimates : Estimates of S n units
        Of the univariate models.
    """

    coefficients: np.ndarray
    variance: np.ndarray
    presample: np.ndarray
    e: np.ndarray
    h: np.ndarray
    estimates: Estimates

    @property
    def z(self) -> np.ndarray:
        """Standardised residuals, (S, T, n)."""
        return self.e / np.sqrt(self.h)

    def select(self, series: np.ndarray) -> Equations:
        """Equations of some series, by number."""
        n = self.variance.shape[1]
        units = (series[:, None] * n + np.arange(n)).ravel()
        names = [name for name in self.__dataclass_fields__ if name != "estimates"]
        arrays = {name: getattr(self, name)[series] for name in names}
        return replace(self, **arrays, estimates=self.estimates.select(units))


class CorrelationOptima(NamedTuple):
    """Correlation parameters of S series at the maximum of their likelihood.

    Attributes
    ----------
    params : array of shape (S, p + q)
    value : array of shape (S,)
        Log-likelihood that correlations add.
    gradient : array of shape (S, p + q)
    iterations, converged : arrays of shape (S,)
    at_bound : boolean array of shape (S, p + q)
        Held at zero by the bound.
    integrated : boolean array of shape (S,)
        Held at a sum of one; the last parameter follows from the others.
    """

    params: np.ndarray
    value: np.ndarray
    gradient: np.ndarray
    iterations: np.ndarray
    converged: np.ndarray
    at_bound: np.ndarray
    integrated: np.ndarray

    def or_higher(self, other: CorrelationOptima) -> CorrelationOptima:
        """Optima, replaced by those of `other` where these are higher by more than rounding."""
        least = np.where(np.isnan(self.value), -np.inf, self.value)
        higher = other.value > least + _ROUNDING * (1 + np.abs(other.value))
        return CorrelationOptima(*(
            np.where(higher.reshape(-1, *(1,) * (a.ndim - 1)), b, a)
            for a, b in zip(self, other, strict=True)
        ))  # fmt: skip


def fit_dcc(spec: Specification, series: Sequence[np.ndarray], verbose: int = 0) -> Fit:
    """Estimate all parameters of series (T_i, n); those that cannot be used say why."""
    usable, data, reasons = design_of(spec.step.mean, series)
    reasons = {i: f"{reason}." for i, reason in reasons.items()}
    short = [too_few(rows, spec.n, len(spec.names)) for rows in data.lengths]
    reasons |= {int(i): f"{why}." for i, why in zip(usable, short, strict=True) if why}
    enough = np.flatnonzero([not why for why in short])
    usable, data = usable[enough], data.select(enough)
    estimates = estimates_without_errors(
        spec, np.empty((0, len(spec.names))), np.empty(0), np.empty(0, dtype=np.int64)
    )
    presample = np.full((len(series), spec.n), np.nan)
    if len(usable):
        equations = fit_equations(spec.step, data, spec.initial_variance, spec.stationary)
        lost = _refusals(spec, data, equations)
        reasons |= {int(usable[i]): reason for i, reason in lost.items()}
        kept = np.setdiff1d(np.arange(len(usable)), list(lost))
        usable, data = usable[kept], data.select(kept)
    if len(usable):
        equations = equations.select(kept)
        optima = fit_correlations(spec.order, equations.z, data.observed, verbose)
        estimates = estimates_of(spec, data, equations, optima, verbose)
        estimates = estimates.with_held(spec.relation_names, spec.step.mean.elements(data.beta))
        presample[usable] = equations.presample
    return Fit(estimates.placed(len(series), usable, reasons), presample)


def dcc_at(spec: Specification, series: Sequence[np.ndarray], params: np.ndarray) -> Fit:
    """Likelihood of series (T_i, n) at parameters (S, K) in the place of a fit.

    Raises
    ------
    ValueError
        If a series is too short, or parameters are not admissible.
    """
    parts = spec.parts(params)
    _, data, reasons = design_of(spec.step.mean, series, parts.beta)
    if reasons:
        raise ValueError(next(iter(reasons.values())))
    check_admissible(parts)
    first = np.concatenate([parts.coefficients, parts.variance], 2)
    with np.errstate(invalid="ignore", divide="ignore"):
        equations = equations_at(spec.step, data, first, spec.initial_variance)
        z, observed = torch.from_numpy(equations.z), torch.from_numpy(data.observed)
        path = run_correlations(
            z, observed, constants(parts.a), constants(parts.b), corrected=spec.order.corrected,
            target=torch.from_numpy(parts.target)[:, None],
        )  # fmt: skip
        loglik = equations.estimates.loglik.reshape(len(params), spec.n).sum(1)
        loglik = loglik + correlation_density(path, z, observed).value.sum(1).numpy()
    if not np.isfinite(loglik).all():
        bad = int(np.flatnonzero(~np.isfinite(loglik))[0])
        raise ValueError(f"params must give positive, finite variances; those of unit {bad} do not")
    estimates = estimates_without_errors(spec, params, loglik, data.lengths)
    return Fit(estimates, equations.presample)


def fit_equations(
    step: FirstStep, data: Design, initial_variance: str | float, stationary: bool
) -> Equations:
    """Estimate all variances, and constant means, in one batch."""
    coefficients = np.zeros_like(data.coefficients) if step.joint else data.coefficients
    model = step.model(data.ragged, with_mean=True)
    fitted = fit_garch(model, *data.residuals(coefficients), initial_variance, stationary)
    return _equations_of(step, data, fitted)


def equations_at(
    step: FirstStep, data: Design, params: np.ndarray, initial_variance: str | float
) -> Equations:
    """Equations at parameters (S, n, r + k) in the place of a fit."""
    r = data.coefficients.shape[2]
    coefficients = np.zeros_like(data.coefficients) if step.joint else params[:, :, :r]
    y, lengths = data.residuals(coefficients)
    univariate = (params if step.joint else params[:, :, r:]).reshape(len(y), -1)
    model = step.model(data.ragged, with_mean=True)
    fitted = garch_at(model, y, lengths, univariate, initial_variance)
    return _equations_of(step, replace(data, coefficients=params[:, :, :r]), fitted)


def _equations_of(step: FirstStep, data: Design, fitted: VarianceFit) -> Equations:
    s, _, n = data.response.shape
    params = fitted.estimates.params.reshape(s, n, -1)
    coefficients, variance = data.coefficients, params
    if step.joint:
        coefficients, variance = params[:, :, :1], params[:, :, 1:]
    presample = fitted.presample.reshape(s, n)
    y, lengths = data.residuals(coefficients)
    rows = variance.reshape(len(y), -1), presample.reshape(-1)
    e, h = filter_garch(step.model(data.ragged), *rows, y, lengths)
    e, h = data.by_series(e, fill=0.0), data.by_series(h, fill=1.0)
    return Equations(coefficients, variance, presample, e, h, fitted.estimates)


def _refusals(spec: Specification, data: Design, equations: Equations) -> dict[int, str]:
    """Reasons why the first step of some series is not enough to go on."""
    lost, n = {}, spec.n
    for i, rows in enumerate(data.lengths):
        units = equations.estimates.select(np.arange(i * n, (i + 1) * n))
        bad = np.flatnonzero(~units.fitted)
        if len(bad):
            why = (*units.messages[bad[0]], "no admissible parameters were found")[0]
            lost[i] = f"column {spec.targets[bad[0]]!r}: {why}. Mend the column or drop it."
        elif rows <= n:
            lost[i] = f"{n} variables need more than {n} rows after lags; got {rows}."
        else:
            z = equations.z[i, :rows]
            if names := collinear(scaled_to_unit_diagonal(z.T @ z), spec.targets):
                lost[i] = (
                    f"the columns {names} are collinear: after scaling by their volatility, one is "
                    "a linear combination of the others. Drop one of them."
                )
    return lost


def fit_correlations(
    order: Order, z: np.ndarray, observed: np.ndarray, verbose: int = 0
) -> CorrelationOptima:
    """Fit to standardised residuals (S, T, n), zero where not observed (S, T)."""
    data, seen = torch.from_numpy(z), torch.from_numpy(observed)
    constant = _constant_correlations(order, data, seen)
    if order.p == 0:
        return constant
    progress = f"correlations of {z.shape[2]} targets" if verbose else ""
    sums = [[a / order.p] * order.p + [b / order.q for _ in range(order.q)] for a, b in _STARTS]
    tried = np.array(
        [correlation_logliks(order, data, seen, np.tile(start, (len(z), 1))) for start in sums]
    )
    best = np.where(np.isnan(tried), -np.inf, tried).argmax(0)
    optima = _search(order, data, seen, np.array(sums)[best], progress)
    # At a = 0 the slope by b is zero: a search that ends there is begun elsewhere once more.
    flat = np.flatnonzero(~optima.params[:, : order.p].any(1))
    if len(flat):
        start = _start_off_zero(order, data[flat], seen[flat])
        second = _search(order, data[flat], seen[flat], start, progress)
        for array, values in zip(optima, second, strict=True):
            array[flat] = values
    return constant.or_higher(optima)


def _constant_correlations(order: Order, z: Tensor, observed: Tensor) -> CorrelationOptima:
    """Constant correlations, at a = 0 with b that is not identified."""
    s, k = len(z), order.p + order.q
    zero = np.zeros((s, k))
    if k:
        at = evaluate_correlations(order, z, observed, zero)
        value, gradient = at.value, at.gradient
    else:
        value, gradient = correlation_logliks(order, z, observed, zero), zero
    bound = np.tile(np.arange(k) < order.p, (s, 1))
    yes = np.ones(s, dtype=bool)
    return CorrelationOptima(zero, value, gradient, np.zeros(s, np.int64), yes, bound, ~yes)


def _start_off_zero(order: Order, z: Tensor, observed: Tensor) -> np.ndarray:
    """Starts (S, k) of series whose a went to zero: where the likelihood rises with a, if it does.

    At a = 0 all b have the same likelihood but not the same slope.
    """
    best, start = np.full(len(z), -np.inf), np.zeros((len(z), order.p + order.q))
    for b in _DECAYS if order.q else (0.0,):
        params = np.zeros_like(start)
        params[:, order.p :] = b / max(order.q, 1)
        at = evaluate_correlations(order, z, observed, params)
        slope = at.gradient[:, : order.p].sum(1)
        bend = at.curvature[:, : order.p, : order.p].sum((1, 2))
        most = 0.5 * (1 - b) / order.p  # half way to a sum of one
        step = np.clip(np.where(bend > 0, slope / np.where(bend > 0, bend, 1.0), most), 0.0, most)
        better = slope * step > best
        params[:, : order.p] = step[:, None]
        best = np.where(better, slope * step, best)
        start[better] = params[better]
    return start


def _search(
    order: Order, z: Tensor, observed: Tensor, start: np.ndarray, progress: str
) -> CorrelationOptima:
    """Climb from starts (S, k), and on the face where a and b sum to one, if the end is near."""

    def evaluate(params: np.ndarray, series: np.ndarray, exact: bool) -> Evaluation:
        at = evaluate_correlations(order, z[series], observed[series], params)
        return at._replace(value=np.where(params.sum(1) <= 1, at.value, -np.inf))

    best = maximise(evaluate, start, lower=0.0, upper=1.0, scoring=0, progress=progress)
    optima = CorrelationOptima(*best[:3], *best[4:], np.zeros(len(start), dtype=bool))
    near = np.flatnonzero(optima.params.sum(1) > 1 - _NEAR_FACE)
    if not len(near):
        return optima
    k = order.p + order.q
    # The last parameter is one minus the others.
    inside, offset = np.vstack([np.eye(k - 1), -np.ones(k - 1)]), np.eye(k)[-1]

    def on_face(free: np.ndarray, series: np.ndarray, exact: bool) -> Evaluation:
        params = free @ inside.T + offset
        at = evaluate_correlations(order, z[near[series]], observed[near[series]], params)
        value = np.where(params[:, -1] >= 0, at.value, -np.inf)
        return Evaluation(value, at.gradient @ inside, inside.T @ at.curvature @ inside)

    best = maximise(on_face, optima.params[near, :-1], lower=0.0, upper=1.0, scoring=0)
    face = CorrelationOptima(*(array.copy() for array in optima))
    face.params[near] = best.params @ inside.T + offset
    face.value[near], face.converged[near] = best.value, best.converged
    face.gradient[near] = 0.0
    face.gradient[near, :-1] = best.gradient
    face.iterations[near] += best.iterations
    face.at_bound[near] = np.hstack([best.at_bound, np.zeros((len(near), 1), dtype=bool)])
    face.integrated[near] = True
    return optima.or_higher(face)
