r"""Seasonal ARMA at given parameters: filter, forecasts, responses, draws.

The counterpart of `_filter` with arrays in place of cells, as states are long. The state belongs to
the multiplied polynomials with differences, :math:`\phi(B) \Phi(B^m) (1 - B)^d (1 - B^m)^D`, in
innovation form: ``u_t = a_t[0] + e_t``, ``a_{t+1} = T a_t + K e_t`` with the companion matrix T.
"""

from __future__ import annotations

import numpy as np

from tsrnn.linear._family import Ahead
from tsrnn.linear._multivariate import draw_normal
from tsrnn.linear.arma._fast_filter import stationary_start
from tsrnn.linear.arma._filter import (
    FilterStart,
    at_observed,
    filter_form,
    from_first_run,
    inputs_of,
    trend_of,
)
from tsrnn.linear.arma._polynomials import integration, psi_weights
from tsrnn.linear.arma._seasonal import multiplied, slopes
from tsrnn.linear.arma._specification import Specification

_TOGETHER = 2**19  # elements of the variance matrices of a chunk, which stay in the cache
_SETTLED = 1e-17  # variance of a state, over sigma2, that counts as zero


def state_size(spec: Specification) -> int:
    """Number of the state's fields: the state and, with the exact likelihood, its variance."""
    r = dimension(spec)
    return r + (r * (r + 1) // 2 if spec.exact else 0)


def dimension(spec: Specification) -> int:
    """Dimension of the state of the multiplied polynomials with differences."""
    ar, ma = spec.p + spec.m * spec.P + spec.lost, spec.q + spec.m * spec.Q
    return max(ar, ma, 1)


def stationary_part(spec: Specification, params: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Phi and theta (r, N) of the differenced series."""
    form = filter_form(spec)
    phi, theta = multiplied(form, params[:, :-1])
    return (phi if len(phi) else np.zeros_like(theta)), theta


def whole(spec: Specification, params: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Phi and theta (dimension, N) of the series itself, with differences."""
    phi, theta = stationary_part(spec, params)
    r = dimension(spec)
    result = np.zeros((2, r, len(params)), dtype=params.dtype)
    result[1, : len(theta)] = theta
    first = spec.p + spec.m * spec.P
    result[0, :first] = phi[:first]
    for j, weight in enumerate(integration(spec.d, spec.D, spec.m), 1):
        result[0, j - 1] += weight
        result[0, j : j + first] -= weight * phi[:first]
    return result[0], result[1]


def stationary_variance(phi: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """Variance (N, r, r) of the state of a stationary ARMA (r, N) in units of sigma2."""
    r, n = theta.shape
    column = stationary_start(phi if phi.any() else phi[:0], theta)[0]
    later = np.append(column[1:], np.zeros((1, n)), axis=0)
    K = phi + theta
    P = np.zeros((r + 1, r + 1, n), dtype=K.dtype)
    for i in range(r - 1, -1, -1):  # P = T P T' + K K' by its diagonals
        P[i, :r] = P[i + 1, 1:] + phi[i] * (phi * column[0] + later) + later[i] * phi + K[i] * K
    return P[:r, :r].transpose(2, 0, 1)


def kalman(
    phi: np.ndarray,
    theta: np.ndarray,
    u: np.ndarray,
    seen: np.ndarray,
    a: np.ndarray,
    P: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]:
    """One-step errors and variances, each (T, N), and the last state (r, N) with its variance.

    Coefficients have shape (r, N), series (T, N). The first state a has variance P (N, r, r),
    None for zero. Rows that are not `seen` are predicted only.
    """
    K = phi + theta
    v, F = np.empty((2, *u.shape), dtype=np.result_type(K, a))
    shifted, factors, others = np.zeros_like(a, K.dtype), None, None
    if P is not None:
        n, r = P.shape[:2]
        factors, others = np.empty((2, n, r, 4), dtype=K.dtype)
        factors[..., 1], others[..., 0], factors[..., 2] = phi.T, phi.T, K.T
        others[..., 2] = K.T
        P, spare = P.astype(K.dtype), np.zeros((n, r, r), dtype=K.dtype)
    for t, (x, there) in enumerate(zip(u, seen, strict=True)):
        gain: np.ndarray = K
        F[t] = 1.0
        if P is not None:
            F[t] += P[:, 0, 0]
            shifted[:-1] = P[:, 1:, 0].T
            moved = phi * P[:, 0, 0] + shifted
            gain = moved + K
        v[t] = x - a[0]
        step = gain * np.where(there, v[t] / F[t], 0.0)
        step[:-1] += a[1:]
        a = step + phi * a[0]
        if P is not None and factors is not None and others is not None:
            # T P T' + K K' - G G' / F is P shifted up and left, plus four outer products.
            factors[..., 0], others[..., 1] = moved.T, shifted.T
            factors[..., 3], others[..., 3] = gain.T, (gain * np.where(there, -1 / F[t], 0.0)).T
            np.matmul(factors, others.swapaxes(1, 2), out=spare)
            spare[:, :-1, :-1] += P[:, 1:, 1:]
            P, spare = spare, P
            # Only every 8th row, as the check reads all of P.
            if t % 8 == 7 and np.abs(P).max() < _SETTLED and seen[t:].all():
                P = None
    if P is None and factors is not None:
        P = np.zeros((n, r, r), dtype=K.dtype)
    return v, F, a, P


def filter_start(
    spec: Specification,
    params: np.ndarray,
    y: np.ndarray,
    exog: np.ndarray | None,
    steps: np.ndarray,
) -> FilterStart:
    """Start of the filter, before the first row or after the first d + m D consecutive ones.

    Arguments as in `_filter`.
    """
    n = len(y)
    inputs = inputs_of(spec, y, exog, steps)
    before = np.zeros(n, dtype=np.int64)
    phi, theta = stationary_part(spec, params)
    r, lost = dimension(spec), spec.lost
    a = np.zeros((r, n))
    if lost:
        first, inputs, before = from_first_run(spec, inputs)
        u = (first[:, :, 0] - trend_of(filter_form(spec), params, first)).T
        # Contribution of the first rows to later ones without innovations, times phi.
        weights, levels = integration(spec.d, spec.D, spec.m), np.zeros((lost, n))
        for i in range(lost):
            levels[i] = weights[i:] @ u[::-1][: lost - i]
        a[:lost] = levels
        for i, coefficient in enumerate(phi[: spec.p + spec.m * spec.P], 1):
            a[i : i + lost] -= coefficient * levels
    state = [a.T]
    if spec.exact:
        P = np.zeros((n, r, r))
        s = len(theta)
        P[:, :s, :s] = stationary_variance(phi, theta)
        state.append(P[:, *np.tril_indices(r)])
    return FilterStart(inputs, np.concatenate(state, axis=1), before)


def last_state(
    spec: Specification,
    params: np.ndarray,
    inputs: np.ndarray,
    state: np.ndarray,
    lengths: np.ndarray,
) -> np.ndarray:
    """State (n, fields) after the last row of each series, which has `lengths` (n,) rows."""
    state = state.copy()
    for length in np.unique(lengths[lengths > 0]):
        units = np.flatnonzero(lengths == length)
        state[units] = _run(spec, params[units], inputs[units, :length], state[units])[2]
    return state


def innovations(
    spec: Specification, params: np.ndarray, start: FilterStart, n_rows: int
) -> tuple[np.ndarray, np.ndarray]:
    """One-step forecast errors and their variances, each (n, n_rows); NaN in rows without one."""
    v, F, _ = _run(spec, params, start.inputs, start.state)
    variance = F.T * params[:, -1:]
    return at_observed(start, v.T, n_rows), at_observed(start, variance, n_rows)


def _run(
    spec: Specification, params: np.ndarray, inputs: np.ndarray, state: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One-step errors and variances over sigma2, each (T, n), and the last state (n, fields)."""
    n, r = len(params), dimension(spec)
    phi, theta = whole(spec, params)
    u = (inputs[:, :, 0] - trend_of(filter_form(spec), params, inputs)).T
    seen = inputs[:, :, -1].T > 0
    v, F, after = np.empty_like(u), np.empty_like(u), np.empty_like(state)
    step = max(_TOGETHER // r**2, 1)
    for i in range(0, n, step):
        part = slice(i, i + step)
        a, P = unpacked(spec, state[part])
        v[:, part], F[:, part], a, P = kalman(
            phi[:, part], theta[:, part], u[:, part], seen[:, part], a.T, P
        )
        after[part, :r] = a.T
        if P is not None:
            after[part, r:] = P[:, *np.tril_indices(r)]
    return v, F, after


def unpacked(spec: Specification, state: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Split fields into the state (n, r) and its variance (n, r, r), None if it is zero."""
    r = dimension(spec)
    if not spec.exact:
        return state[:, :r], None
    P = np.empty((len(state), r, r))
    i, j = np.tril_indices(r)
    P[:, i, j] = P[:, j, i] = state[:, r:]
    return state[:, :r], P


def forecast_moments(
    spec: Specification, params: np.ndarray, state: np.ndarray, ahead: Ahead
) -> tuple[np.ndarray, np.ndarray]:
    """Means and variances of the next h values of n units, each (n, h)."""
    h = ahead.h
    phi, theta = whole(spec, params)
    a, P = unpacked(spec, state)
    mean = _carried(phi, a.T, h).T
    psi = psi_weights(phi, theta, h - 1)
    variance = (psi**2).cumsum(0).T
    if P is not None:
        to_rows = _weights_of_state(phi, h)
        variance = variance + np.einsum("hin,nij,hjn->nh", to_rows, P, to_rows, optimize=True)
    inputs = inputs_of(spec, np.zeros((len(params), h)), ahead.exog, ahead.steps)
    return mean + trend_of(filter_form(spec), params, inputs), variance * params[:, -1:]


def _carried(phi: np.ndarray, a: np.ndarray, h: int) -> np.ndarray:
    """Values (h, N) after a state (r, N) without innovations."""
    result = np.empty((h, a.shape[1]))
    for k in range(h):
        result[k] = a[0]
        after = phi * a[0]
        after[:-1] += a[1:]
        a = after
    return result


def _weights_of_state(phi: np.ndarray, h: int) -> np.ndarray:
    """Derivatives (h, r, N) of the next h values by the elements of the state."""
    impulse = psi_weights(phi, phi[:0], h - 1)
    result = np.zeros((h, *phi.shape))
    for i in range(min(len(phi), h)):
        result[i:, i] = impulse[: h - i]
    return result


def draw_errors(
    spec: Specification,
    params: np.ndarray,
    state: np.ndarray,
    shape: tuple[int, int],
    rng: np.random.Generator,
) -> np.ndarray:
    """Draw forecast errors (n, h, paths), for shape = (h, paths)."""
    (h, paths), n, r = shape, len(params), dimension(spec)
    phi, theta = whole(spec, params)
    P = unpacked(spec, state)[1]
    a = np.zeros((r, n, paths))
    if P is not None:
        a = draw_normal(P, rng.standard_normal((n, r, paths))).swapaxes(0, 1)
    e = rng.standard_normal((n, h, paths))
    errors = _with_innovations(phi[:, :, None], theta[:, :, None], a, e.swapaxes(0, 1))
    return errors.swapaxes(0, 1) * np.sqrt(params[:, -1])[:, None, None]


def _with_innovations(
    phi: np.ndarray, theta: np.ndarray, a: np.ndarray, e: np.ndarray
) -> np.ndarray:
    """Values (h, ...) after a state a (r, ...) with innovations e (h, ...)."""
    K, values = phi + theta, np.empty_like(e)
    for k, shock in enumerate(e):
        values[k] = a[0] + shock
        after = phi * a[0] + K * shock
        after[:-1] += a[1:]
        a = after
    return values


def responses_with_errors(
    spec: Specification, params: np.ndarray, covariance: np.ndarray, h: int
) -> tuple[np.ndarray, np.ndarray]:
    """Responses (n, h + 1) of y to an innovation of one, with standard errors (delta method)."""
    form = filter_form(spec)
    psi = psi_weights(*whole(spec, params), h)
    # Responses obey the recursion of innovations, and their derivatives have the opposite sign.
    d_psi = -slopes(form, params[:, :-1], psi, np.zeros((h + 1, form.n_mean, 1)))
    arma = slice(spec.n_mean, form.n_params)
    d_psi, inner = d_psi[:, arma], covariance[:, arma, arma]
    variance = np.einsum("han,nab,hbn->nh", d_psi, inner, d_psi)
    return psi.T, np.sqrt(variance)


def model_autocovariances(spec: Specification, params: np.ndarray, n_lags: int) -> np.ndarray:
    """Autocovariances of the differenced series for lags 0 to n_lags, (n, n_lags + 1)."""
    phi, theta = stationary_part(spec, params)
    column = stationary_start(phi if phi.any() else phi[:0], theta)[0]
    G = phi * (column[0] + 1) + theta
    G[:-1] += column[1:]
    gamma = np.append(column[:1] + 1, _carried(phi, G, n_lags), axis=0)
    return gamma.T * params[:, -1:]


def simulate_paths(
    spec: Specification,
    params: np.ndarray,
    n_rows: int,
    rng: np.random.Generator,
    exog: np.ndarray | None = None,
) -> np.ndarray:
    """Gaussian paths (n, n_rows), from levels of zero and the presample of the likelihood."""
    n, r = len(params), dimension(spec)
    phi, theta = stationary_part(spec, params)
    a = np.zeros((r, n))
    if spec.exact:
        P, s = stationary_variance(phi, theta), len(theta)
        a[:s] = draw_normal(P, rng.standard_normal((n, s, 1)))[:, :, 0].T
    e = rng.standard_normal((n_rows, n))
    u = _with_innovations(*whole(spec, params), a, e)
    inputs = inputs_of(spec, np.zeros((n, n_rows)), exog, np.zeros(n))
    return u.T * np.sqrt(params[:, -1:]) + trend_of(filter_form(spec), params, inputs)
