r"""Likelihoods of many seasonal ARMA models in one batch, with different series and orders.

A lane is a series with an order: :math:`\phi(B) \Phi(B^m) u_t = \theta(B) \Theta(B^m) e_t` for
complete differenced series, which are stationary around their mean and regressors. All lanes have
room for the highest orders; a mask marks the parameters of each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from tsrnn.linear._as_rnn import padded
from tsrnn.linear._estimates import PERFECT
from tsrnn.linear._optimise import Evaluation
from tsrnn.linear.arma._fast_filter import adjoint, innovations
from tsrnn.linear.arma._polynomials import is_stable
from tsrnn.linear.arma._specification import Form

Array = np.ndarray

TOGETHER = 8192  # elements of the states of all lanes of a call, which stay in the first cache
SLOPES = 2**21  # floats of the slopes of a call: 16 MB
_MANY = 4  # lags from which one sum over all of them is faster than a loop


def multiplied(form: Form, params: Array) -> tuple[Array, Array]:
    """Coefficients (r, N) of the multiplied polynomials; phi has no rows without autoregression."""
    _, ar, ma, seasonal_ar, seasonal_ma = form.parts(params.T)
    phi = _product(ar, seasonal_ar, form.m, form.r, -1.0)
    theta = _product(ma, seasonal_ma, form.m, form.r, 1.0)
    return phi if form.p or form.P else phi[:0], theta


def _product(lags: Array, seasonal: Array, m: int, r: int, sign: float) -> Array:
    """Multiply lag polynomials in B and B^m, shape (r, N); `sign` is -1 for an AR."""
    result = np.zeros((r, lags.shape[1]), dtype=lags.dtype)
    result[: len(lags)] = lags
    for j, coefficient in enumerate(seasonal, 1):
        result[m * j - 1] += coefficient
        result[m * j : m * j + len(lags)] += sign * lags * coefficient
    return result


def factor_derivatives(form: Form, params: Array, d_phi: Array, d_theta: Array) -> Array:
    """Derivatives (N, k) by the parameters, from derivatives by the multiplied coefficients."""
    _, ar, ma, seasonal_ar, seasonal_ma = form.parts(params.T)
    result = np.zeros_like(params)
    _, *targets = form.parts(result.T)
    for lags, seasonal, d, d_lags, d_seasonal, sign in (
        (ar, seasonal_ar, d_phi, targets[0], targets[2], -1.0),
        (ma, seasonal_ma, d_theta, targets[1], targets[3], 1.0),
    ):
        d_lags += d[: len(lags)]
        for j, coefficient in enumerate(seasonal, 1):
            crossed = d[form.m * j : form.m * j + len(lags)]
            d_lags += sign * coefficient * crossed
            d_seasonal[j - 1] = d[form.m * j - 1] + sign * (lags * crossed).sum(0)
    return result


@dataclass(frozen=True, eq=False)
class Lanes:
    """Series and orders of N lanes."""

    form: Form  # the highest orders
    u: Array  # (T, S), series, 0 after their ends
    X: Array  # (T, n_mean, S) or (T, n_mean, 1), columns of constant and regressors
    n_obs: Array  # (S,), rows of each series
    series: Array  # (N,), series of each lane
    free: Array  # (N, k), mask of the parameters of a lane
    kept: list[Array] = field(default_factory=list)  # buffer of `innovations`

    def observed(self, lanes: Array) -> tuple[Array, Array, Array | None, Array]:
        """Series (T, n), columns of the mean, mask (T, n) of rows or None, lengths (n,)."""
        series = self.series[lanes]
        n_obs = self.n_obs[series]
        T = int(n_obs.max())
        X = self.X[:T] if self.X.shape[2] == 1 else self.X[:T, :, series]
        within = None if (n_obs == T).all() else np.arange(T)[:, None] < n_obs
        return self.u[:T, series], X, within, n_obs

    def exact(
        self, params: Array, lanes: Array, newton: bool = False, sigma2: Array | None = None
    ) -> Evaluation:
        """Exact log-likelihood with sigma2 concentrated out or given, gradient and information.

        The information is asymptotic, with innovations as they are after many rows.
        """
        result = Evaluation(
            np.empty(len(lanes)), np.empty(params.shape), np.empty((*params.shape, params.shape[1]))
        )
        # Lanes with the same longest lags run together, with states of that length. For few lanes
        # one call is faster than several.
        longest = self.longest[lanes]
        if len(lanes) * self.form.r <= TOGETHER:
            longest = np.broadcast_to(longest.max(0), longest.shape)
        lengths, groups = np.unique(longest, axis=0, return_inverse=True)
        for number, (p, q) in enumerate(lengths):
            members = np.flatnonzero(groups == number)
            step = max(TOGETHER // max(p, q, 1), 1)
            for i in range(0, len(members), step):
                part = members[i : i + step]
                given = None if sigma2 is None else sigma2[part]
                with np.errstate(all="ignore"):  # rounding may leave a lane without likelihood
                    block = self._exact(params[part], lanes[part], (p, q), given)
                for target, values in zip(result, block, strict=True):
                    target[part] = values
        return result

    @cached_property
    def longest(self) -> Array:
        """Longest lags of the multiplied polynomials of each lane, (N, 2)."""
        form = self.form
        _, p, q, P, Q = (part.sum(0) for part in form.parts(self.free.T))
        return np.stack([p + form.m * P, q + form.m * Q], axis=1)

    def _exact(
        self, params: Array, lanes: Array, longest: tuple[int, int], given: Array | None
    ) -> Evaluation:
        form = self.form
        y, X, within, n_obs = self.observed(lanes)
        usable = stationary(form, params)
        params = np.where(usable[:, None], params, 0.0)
        u = y - np.einsum("tmn,nm->tn", X, params[:, : form.n_mean])
        phi, theta = multiplied(form, params)
        r = max(*longest, 1)
        phi, theta = phi[: r if longest[0] else 0], theta[:r]
        size = 2 * (len(u) + 1) * theta.size
        if not self.kept or len(self.kept[0]) < size:
            self.kept[:] = [np.empty(size)]
        path = innovations(phi, theta, u, self.kept[0])
        weight = 1.0 if within is None else within
        ratio = weight * path.v / path.F
        S, D = (ratio * path.v).sum(0), (weight * np.log(path.F)).sum(0)
        usable &= np.isfinite(S) & np.isfinite(D) & (PERFECT * n_obs < S)
        sigma2 = np.where(usable, S / n_obs, 1.0) if given is None else given
        value = -0.5 * (n_obs * np.log(2 * math.pi * sigma2) + S / sigma2 + D)
        d_v, d_F = -ratio / sigma2, 0.5 * (ratio**2 / sigma2 - weight / path.F)
        d_phi, d_theta, d_u = adjoint(phi, theta, u, path, d_v, d_F)
        d_phi, d_theta = padded(d_phi, form.r), padded(d_theta, form.r)
        gradient = factor_derivatives(form, params, d_phi, d_theta)
        gradient[:, : form.n_mean] = -np.einsum("tmn,tn->nm", X, d_u)
        # After many rows innovations have variance sigma2 and depend on the whole past.
        J = slopes(form, params, path.v, X)
        information = products_of(J if within is None else J * within[:, None])
        information /= sigma2[:, None, None]
        return self._masked(value, gradient, information, usable, lanes)

    def conditional(
        self, params: Array, lanes: Array, newton: bool = False, sigma2: Array | None = None
    ) -> Evaluation:
        """Log-likelihood from a presample of zero, gradient and information, as in `exact`."""
        step = max(SLOPES // (len(self.u) * max(params.shape[1], 1)), 1)
        blocks = [
            self._conditional(
                params[i : i + step],
                lanes[i : i + step],
                None if sigma2 is None else sigma2[i : i + step],
            )
            for i in range(0, len(lanes), step)
        ]
        return Evaluation(*(np.concatenate(part) for part in zip(*blocks, strict=True)))

    def _conditional(self, params: Array, lanes: Array, sigma2: Array | None) -> Evaluation:
        form = self.form
        y, X, within, n_obs = self.observed(lanes)
        usable = stationary(form, params) & invertible(form, params)
        params = np.where(usable[:, None], params, 0.0)
        u = y - np.einsum("tmn,nm->tn", X, params[:, : form.n_mean])
        e, J = residuals(form, params, u, X)
        if within is not None:
            e, J = e * within, J * within[:, None]
        S = np.einsum("tn,tn->n", e, e)
        usable &= np.isfinite(S) & (PERFECT * n_obs < S)
        if sigma2 is None:
            sigma2 = np.where(usable, S / n_obs, 1.0)
        value = -0.5 * (n_obs * np.log(2 * math.pi * sigma2) + S / sigma2)
        gradient = -np.einsum("tkn,tn->nk", J, e) / sigma2[:, None]
        information = products_of(J) / sigma2[:, None, None]
        return self._masked(value, gradient, information, usable, lanes)

    def _masked(
        self, value: Array, gradient: Array, information: Array, usable: Array, lanes: Array
    ) -> Evaluation:
        """Mask an evaluation, so that a search leaves parameters that a lane does not have."""
        free = self.free[lanes] & usable[:, None]
        value = np.where(usable, value, -np.inf)
        gradient = np.where(free, gradient, 0.0)
        both = free[:, :, None] & free[:, None, :]
        curvature = np.where(both, information, 0.0)
        k = free.shape[1]
        curvature[:, range(k), range(k)] += ~free
        return Evaluation(value, gradient, curvature)


def stationary(form: Form, params: Array) -> Array:
    """Mask (N,) of lanes with a stationary autoregression, in both factors."""
    _, ar, _, seasonal_ar, _ = form.parts(params.T)
    return is_stable(ar) & is_stable(seasonal_ar)


def invertible(form: Form, params: Array) -> Array:
    """Mask (N,) of lanes with an invertible moving average, in both factors."""
    _, _, ma, _, seasonal_ma = form.parts(params.T)
    return is_stable(-ma) & is_stable(-seasonal_ma)


def _filtered(x: Array, lags: Array, step: int) -> Array:
    """Apply an AR with coefficients (lags, N), `step` rows apart, to x (T, ..., N)."""
    result = x.copy()
    for j, coefficient in enumerate(lags, 1):
        result[step * j :] -= coefficient * x[: len(x) - step * j]
    return result


def _divide(x: Array, theta: Array, step: int) -> None:
    """Divide x (T, ..., N) by 1 + theta_1 B^step + ... in place; theta has shape (lags, N)."""
    T, lags = len(x), len(theta)
    if not lags:
        return
    if lags >= _MANY:
        _divide_by_many(x, theta, step)
        return
    spare = np.empty_like(x[:step])
    for t in range(step, T, step):  # rows less than `step` apart are independent
        now = x[t : t + step]
        room = spare[: len(now)]
        for j in range(1, min(lags, t // step) + 1):
            before = t - step * j
            now -= np.multiply(x[before : before + len(now)], theta[j - 1], out=room)


def _divide_by_many(x: Array, theta: Array, step: int) -> None:
    """Divide as `_divide`, with all lags of a row in three array operations."""
    T, lags = len(x), len(theta)
    spare = np.empty((lags, step, *x.shape[1:]), dtype=x.dtype)
    # Blocks of rows are in time order, so that lags are reversed.
    backwards = theta[::-1].reshape(lags, *(1,) * (x.ndim - 1), x.shape[-1])
    for t in range(step, T, step):
        count, end = min(lags, t // step), min(t + step, T)
        before = x[t - step * count : t].reshape(count, step, *x.shape[1:])
        room = np.multiply(before, backwards[lags - count :], out=spare[:count])
        x[t:end] -= np.add.reduce(room)[: end - t]


def residuals(form: Form, params: Array, u: Array, X: Array) -> tuple[Array, Array]:
    """Innovations (T, N) from a presample of zero, and their slopes (T, k, N)."""
    _, ar, ma, seasonal_ar, seasonal_ma = form.parts(params.T)
    e = _filtered(_filtered(u, ar, 1), seasonal_ar, form.m)
    _divide(e, seasonal_ma, form.m)
    _divide(e, ma, 1)
    return e, slopes(form, params, e, X)


def slopes(form: Form, params: Array, e: Array, X: Array) -> Array:
    """Derivatives (T, k, N) of innovations e from a presample of zero.

    The derivative by a lag's coefficient is minus lagged e divided by the polynomial of the
    coefficient; by the mean, minus the columns X filtered like u.
    """
    _, ar, ma, seasonal_ar, seasonal_ma = form.parts(params.T)
    T, n = e.shape
    J = np.zeros((T, params.shape[1], n), dtype=e.dtype)
    mean, *targets = form.parts(J.swapaxes(0, 1))
    for lags, step, target in (
        (-ar, 1, targets[0]),
        (ma, 1, targets[1]),
        (-seasonal_ar, form.m, targets[2]),
        (seasonal_ma, form.m, targets[3]),
    ):
        if not len(lags):
            continue
        z = -e
        _divide(z, lags, step)
        for j in range(1, len(lags) + 1):
            target[j - 1, step * j :] = z[: max(T - step * j, 0)]
    for i in range(form.n_mean):
        x = np.broadcast_to(-X[:, i], (T, n)).astype(e.dtype)
        x = _filtered(_filtered(x, ar, 1), seasonal_ar, form.m)
        _divide(x, seasonal_ma, form.m)
        _divide(x, ma, 1)
        mean[i] = x
    return J


def products_of(J: Array) -> Array:
    """Sums over time (N, k, k) of products of slopes J (T, k, N)."""
    k, n = J.shape[1:]
    result = np.empty((n, k, k))
    for i in range(k):
        for j in range(i + 1):
            result[:, i, j] = result[:, j, i] = np.einsum("tn,tn->n", J[:, i], J[:, j])
    return result
