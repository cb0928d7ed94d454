"""Maximum likelihood for many ARMA units at once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tsrnn.kernels import Lanes
from tsrnn.linear._estimates import Estimates
from tsrnn.linear.arma._likelihood import Likelihood, Moments
from tsrnn.linear.arma._messages import judge
from tsrnn.linear.arma._prepare import Prepared, has_gaps, prepare, trend_and_regressors
from tsrnn.linear.arma._search import search
from tsrnn.linear.arma._specification import Specification


def fit_units(
    spec: Specification,
    y: np.ndarray,
    exog: np.ndarray | None = None,
    given: np.ndarray | None = None,
    n_starts: int | None = None,
) -> Estimates:
    """Fit every row of y, or evaluate its likelihood at given parameters.

    Parameters
    ----------
    spec : Specification
    y : array of shape (N, T)
        NaN where missing and after the end of a series.
    exog : array of shape (N, T, m), optional
    given : array of shape (N, k), optional
        Parameters not to be estimated.
    n_starts : int, optional
        Starts of every unit, besides the optima of nested models; by default as many as needed.

    Returns
    -------
    Estimates
        NaN and a message for a unit that could not be fitted.
    """
    X = trend_and_regressors(spec, y.shape[1], exog)
    gaps = has_gaps(np.isfinite(y))
    reasons: dict[int, str] = {}
    parts: list[tuple[np.ndarray, Estimates]] = []
    for with_gaps in (False, True):
        which = np.flatnonzero(gaps == with_gaps)
        if not len(which):
            continue
        whole = len(which) == len(y)
        own = X if len(X) == 1 or whole else X[which]
        prepared, kept, refused = prepare(spec, y if whole else y[which], own, with_gaps)
        reasons |= {int(which[i]): reason for i, reason in refused.items()}
        if prepared is not None:
            units = which[kept]
            at = None if given is None else given[units]
            parts.append((units, _estimated(spec, prepared, at, n_starts)))
    if not parts:
        return _nothing(spec.names, len(y), reasons)
    order = np.concatenate([which for which, _ in parts])
    return joined([own for _, own in parts]).placed(len(y), order, reasons)


def joined(parts: list[Estimates]) -> Estimates:
    """Estimates of units one after the other."""

    def stack(name: str) -> np.ndarray:
        return np.concatenate([getattr(part, name) for part in parts])

    return Estimates(
        names=parts[0].names,
        params=stack("params"),
        loglik=stack("loglik"),
        n_obs=stack("n_obs"),
        gradient=stack("gradient"),
        hessian=stack("hessian"),
        opg=stack("opg"),
        information=stack("information"),
        iterations=stack("iterations"),
        converged=stack("converged"),
        fixed=stack("fixed"),
        messages=tuple(own for part in parts for own in part.messages),
        starts=stack("starts"),
        agreement=stack("agreement"),
    )


def _nothing(names: tuple[str, ...], n_units: int, reasons: dict[int, str]) -> Estimates:
    k = len(names)
    empty, square = np.zeros((0, k)), np.zeros((0, k, k))
    none = Estimates(
        names=names,
        params=empty,
        loglik=np.zeros(0),
        n_obs=np.zeros(0, dtype=np.int64),
        gradient=empty,
        hessian=square,
        opg=square,
        information=square,
        iterations=np.zeros(0, dtype=np.int64),
        converged=np.zeros(0, dtype=bool),
        fixed=np.zeros((0, k), dtype=bool),
        messages=(),
        starts=np.zeros(0, dtype=np.int64),
        agreement=np.zeros(0, dtype=np.int64),
    )
    return none.placed(n_units, np.zeros(0, dtype=np.int64), reasons)


def _estimated(
    spec: Specification, prepared: Prepared, given: np.ndarray | None, n_starts: int | None
) -> Estimates:
    form, n_obs = prepared.form, prepared.n_obs
    likelihood = Likelihood(
        form, Lanes(prepared.inputs), n_obs, exact=spec.exact, gaps=prepared.gaps
    )
    if given is not None:
        inner, n = _inner(prepared, given), len(n_obs)
        _, moments = likelihood.moments(inner[:, :-1], inner[:, -1])
        nothing, all_ = np.zeros(n, dtype=np.int64), np.ones(inner.shape, dtype=bool)
        made = _in_user_units(spec, prepared, inner, moments, nothing, all_[:, 0], all_, ((),) * n)
        return replace(made, starts=nothing, agreement=nothing)
    found = search(prepared, likelihood, n_starts)
    best = found.best
    sigma2, moments = likelihood.moments(best.params)
    fixed, messages = judge(form, best, found.lower, n_obs)
    made = _in_user_units(
        spec,
        prepared,
        np.column_stack([best.params, sigma2]),
        moments,
        best.iterations,
        best.converged,
        np.column_stack([fixed, np.zeros(len(fixed), dtype=bool)]),
        tuple(tuple(own) for own in messages),
    )
    return replace(made, starts=found.starts, agreement=found.agreement)


def _inner(prepared: Prepared, params: np.ndarray) -> np.ndarray:
    """Parameters in the units of prepared series."""
    m, inner = prepared.form.n_mean, params.copy()
    moved = (params[:, :m] - prepared.shift)[:, :, None]
    inner[:, :m] = np.linalg.solve(prepared.jacobian, moved)[:, :, 0]
    inner[:, -1] /= prepared.scale**2
    return inner


def _in_user_units(
    spec: Specification,
    prepared: Prepared,
    inner: np.ndarray,
    moments: Moments,
    iterations: np.ndarray,
    converged: np.ndarray,
    fixed: np.ndarray,
    messages: tuple[tuple[str, ...], ...],
) -> Estimates:
    """Estimates from inner parameters (N, k) and moments there."""
    m = prepared.form.n_mean
    n, k = inner.shape
    params, back = inner.copy(), np.broadcast_to(np.eye(k), (n, k, k)).copy()
    params[:, :m] = prepared.shift + (prepared.jacobian @ inner[:, :m, None])[:, :, 0]
    params[:, -1] *= prepared.scale**2
    back[:, :m, :m] = np.linalg.inv(prepared.jacobian)
    back[:, -1, -1] = prepared.scale**-2

    def moved(matrix: np.ndarray) -> np.ndarray:
        return back.swapaxes(1, 2) @ matrix @ back

    return Estimates(
        names=spec.names,
        params=params,
        loglik=moments.value - prepared.n_obs * np.log(prepared.scale),
        n_obs=prepared.n_obs,
        gradient=(moments.gradient[:, None] @ back)[:, 0],
        hessian=moved(moments.hessian),
        opg=moved(moments.opg),
        information=moved(moments.information),
        iterations=iterations,
        converged=converged,
        fixed=fixed,
        messages=messages,
    )
