"""Both steps put together: estimates of many series."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from tqdm import tqdm

from tsrnn.linear._estimates import Estimates
from tsrnn.linear._multivariate import collinear, too_few
from tsrnn.linear.dcc._equations import (
    Design,
    Equations,
    design,
    fit_equations,
)
from tsrnn.linear.dcc._fit import Found, Order, fit
from tsrnn.linear.dcc._inference import Matrices, Unit, two_step
from tsrnn.linear.dcc._likelihood import paths
from tsrnn.linear.dcc._messages import judged
from tsrnn.linear.dcc._simulate import scaled_to_unit_diagonal
from tsrnn.linear.dcc._specification import Specification
from tsrnn.linear.dcc._tensor_jets import constants


class Fit(NamedTuple):
    """Estimates of S series and presample variances (S, n)."""

    estimates: Estimates
    presample: np.ndarray


def fit_series(spec: Specification, series: Sequence[np.ndarray], verbose: int = 0) -> Fit:
    """Estimate all parameters of series (T_i, n); those that cannot be used say why."""
    which, data, reasons = design(spec.step.mean, series)
    reasons = {i: f"{reason}." for i, reason in reasons.items()}
    short = [too_few(rows, spec.n, len(spec.names)) for rows in data.lengths]
    reasons |= {int(i): f"{why}." for i, why in zip(which, short, strict=True) if why}
    enough = np.flatnonzero([not why for why in short])
    which, data = which[enough], data.select(enough)
    if not len(which):
        return _nothing(spec, len(series), reasons)
    equations, lost = _first_step(spec, data)
    kept = np.setdiff1d(np.arange(len(which)), list(lost))
    reasons |= {int(which[i]): reason for i, reason in lost.items()}
    if not len(kept):
        return _nothing(spec, len(series), reasons)
    which, data, equations = which[kept], data.select(kept), equations.select(kept)
    found = fit(spec.order, equations.z, data.observed, verbose)
    some = _estimates(spec, data, equations, found, verbose)
    some = some.with_held(spec.relation_names, spec.step.mean.elements(data.beta))
    return _placed(len(series), which, some, reasons, equations.presample)


def _nothing(spec: Specification, n_units: int, reasons: dict[int, str]) -> Fit:
    """No estimate of any series."""
    none = np.empty(0)
    params = np.empty((0, len(spec.names)))
    estimates = not_estimated(spec, params, none, none.astype(np.int64))
    which, presample = none.astype(np.int64), np.empty((0, spec.n))
    return _placed(n_units, which, estimates, reasons, presample)


def not_estimated(
    spec: Specification, params: np.ndarray, loglik: np.ndarray, n_obs: np.ndarray
) -> Estimates:
    """Parameters (S, K) that no standard error belongs to."""
    s, k = params.shape
    none = np.zeros(s, np.int64)
    return Estimates(
        names=spec.names, params=params, loglik=loglik, n_obs=n_obs,
        gradient=np.zeros((s, k)), hessian=np.zeros((s, k, k)), opg=np.zeros((s, k, k)),
        information=None, iterations=none, converged=none == 0,
        fixed=np.ones((s, k), dtype=bool), messages=((),) * s,
    )  # fmt: skip


def _first_step(spec: Specification, data: Design) -> tuple[Equations, dict[int, str]]:
    """Equations of all series, and why some of them are not enough to go on."""
    equations = fit_equations(spec.step, data, spec.initial_variance, spec.stationary)
    lost = {}
    for i in range(len(data.lengths)):
        own = equations.estimates.select(np.arange(i * spec.n, (i + 1) * spec.n))
        bad = np.flatnonzero(~own.fitted)
        if len(bad):
            why = (*own.messages[bad[0]], "no admissible parameters were found")[0]
            lost[i] = f"column {spec.targets[bad[0]]!r}: {why}. Mend the column or drop it."
        else:
            reason = _collinearity(spec, equations.z[i, : data.lengths[i]])
            lost |= {i: reason} if reason else {}
    return equations, lost


def _collinearity(spec: Specification, z: np.ndarray) -> str:
    """What is wrong with the correlations of standardised residuals (T, n); empty if nothing."""
    rows, n = z.shape
    if rows <= n:
        return f"{n} variables need more than {n} rows after lags; got {rows}."
    names = collinear(scaled_to_unit_diagonal(z.T @ z), spec.targets)
    if not names:
        return ""
    return (
        f"the columns {names} are collinear: after scaling by their volatility, one is a linear "
        "combination of the others. Drop one of them."
    )


def _estimates(
    spec: Specification, data: Design, equations: Equations, found: Found, verbose: int
) -> Estimates:
    s, n, k = len(data.lengths), spec.n, len(spec.own_names)
    univariate = equations.estimates
    fixed, messages = judged(spec.order, spec.targets, univariate, found)
    target = _moment(spec.order, equations.z, data, found.params)
    n_rho = len(spec.pairs[0])
    first = np.concatenate([equations.coefficients, equations.variance], 2).reshape(s, -1)
    params = np.hstack([first, target[:, *spec.pairs], found.params])
    fixed_all = np.hstack([
        _with_means(spec, univariate.fixed, s),
        np.repeat(found.integrated[:, None], n_rho, 1),
        fixed,
    ])  # fmt: skip
    matrices = [
        two_step(spec.step, spec.order, _unit(data, equations, found, fixed, i))
        for i in tqdm(range(s), "standard errors", disable=not verbose, leave=False)
    ]
    hessian, opg = _as_sandwich(matrices, k)
    gradient = np.zeros((s, k))
    gradient[:, k - found.params.shape[1] :] = found.gradient
    gradient[:, : first.shape[1]] = _with_means(spec, univariate.gradient, s)
    return Estimates(
        names=spec.own_names,
        params=params,
        loglik=univariate.loglik.reshape(s, n).sum(1) + found.value,
        n_obs=data.lengths,
        gradient=gradient,
        hessian=hessian,
        opg=opg,
        information=None,
        iterations=univariate.iterations.reshape(s, n).sum(1) + found.iterations,
        converged=univariate.converged.reshape(s, n).all(1) & found.converged,
        fixed=fixed_all,
        messages=messages,
    )


def _as_sandwich(matrices: list[Matrices], k: int) -> tuple[np.ndarray, np.ndarray]:
    """Matrices H and B of which the sandwich is the covariance V of all steps: B = H V H."""
    hessian = np.array([m.hessian for m in matrices]).reshape(-1, k, k)
    covariance = np.array([m.covariance for m in matrices]).reshape(-1, k, k)
    return hessian, hessian @ covariance @ hessian


def _unit(data: Design, equations: Equations, found: Found, fixed: np.ndarray, i: int) -> Unit:
    n = data.response.shape[2]
    rows, own = slice(0, data.lengths[i]), slice(i * n, (i + 1) * n)
    return Unit(
        regressors=data.regressors[i, rows],
        e=equations.e[i, rows].T,
        h=equations.h[i, rows].T,
        variance=equations.variance[i],
        presample=equations.presample[i],
        hessians=equations.estimates.hessian[own],
        fixed=equations.estimates.fixed[own],
        correlation=found.params[i],
        correlation_fixed=fixed[i],
        integrated=bool(found.integrated[i]),
    )


def _with_means(spec: Specification, values: np.ndarray, s: int) -> np.ndarray:
    """Values (S n, k) of the univariate models as (S, n (r + k)), zero for least squares."""
    by_equation = values.reshape(s, spec.n, -1)
    if not spec.step.joint:
        by_mean = np.zeros((s, spec.n, spec.n_mean), dtype=values.dtype)
        by_equation = np.concatenate([by_mean, by_equation], 2)
    return by_equation.reshape(s, -1)


def _moment(order: Order, z: np.ndarray, data: Design, params: np.ndarray) -> np.ndarray:
    """S of each series, (S, n, n)."""
    jets = constants(params)
    made = paths(
        torch.from_numpy(z), torch.from_numpy(data.observed), jets[: order.p], jets[order.p :],
        corrected=order.corrected,
    )  # fmt: skip
    return made.target.value[:, 0].numpy()


def _placed(
    n_units: int,
    which: np.ndarray,
    some: Estimates,
    reasons: dict[int, str],
    presample: np.ndarray,
) -> Fit:
    """As units of all series, NaN where there is no fit."""
    whole = np.full((n_units, *presample.shape[1:]), np.nan)
    whole[which] = presample
    return Fit(some.placed(n_units, which, reasons), whole)
