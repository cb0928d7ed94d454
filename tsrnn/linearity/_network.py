"""Small recurrent networks beside an ARMA, fitted to many series in one batch by least squares."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import NamedTuple

import numpy as np

from tsrnn.linearity._block import block_states, draw_blocks
from tsrnn.linearity._null import lagged
from tsrnn.linearity._regression import orthonormal

CANDIDATES = 50  # draws of new states; the best are starts
ITERATIONS = 50  # most of a fit, the same for the data and simulated series
LANES = 400  # fits of a batch; larger batches are slower, by their memory
FIRST_DAMPING, LEAST_DAMPING, MOST_DAMPING = 1e-2, 1e-8, 1e6
SMALL_DECREASE = 1e-4  # relative, of the sum of squares: 0.02 of a likelihood ratio at n = 200


@dataclass(frozen=True)
class Network:
    r"""Network of K blocks of d states, with n_inputs lags, beside an ARMA(p, q) with constant.

    .. math:: m_t = c + \sum_i \phi_i y_{t-i} + \sum_j \theta_j e_{t-j} + \sum_k \gamma_k' h_{k,t},
        \qquad h_{k,t} = \tanh(W_k h_{k,t-1} + U_k x_t + b_k)
    """

    p: int
    q: int
    n_inputs: int
    blocks: int
    block_size: int

    @cached_property
    def states(self) -> list[tuple[int, int]]:
        """Block and number within it of each state."""
        return list(product(range(self.blocks), range(self.block_size)))

    @cached_property
    def recurrent(self) -> list[tuple[int, int]]:
        """Free places in the recurrent matrix of all states, which are within blocks."""
        d = range(len(self.states))
        return [(i, j) for i, j in product(d, d) if self.states[i][0] == self.states[j][0]]

    @cached_property
    def keys(self) -> list[tuple]:
        """Keys of the parameters, which are the same in nested networks."""
        states = self.states
        return [
            ("c",),
            *(("ar", i) for i in range(self.p)),
            *(("ma", j) for j in range(self.q)),
            *(("W", states[i], states[j]) for i, j in self.recurrent),
            *(("U", state, i) for state in states for i in range(self.n_inputs)),
            *(("b", state) for state in states),
            *(("gamma", state) for state in states),
        ]

    def parts(self, params: np.ndarray) -> Parts:
        """Parameters (k, N) by their kind."""
        d, L = len(self.states), self.n_inputs
        sizes = 1, self.p, self.q, len(self.recurrent), d * L, d
        const, ar, ma, free, U, b, gamma = np.split(params, np.cumsum(sizes))
        W = np.zeros((d, d, params.shape[1]))
        for place, value in zip(self.recurrent, free, strict=True):
            W[place] = value
        return Parts(const[0], ar, ma, W, U.reshape(d, L, params.shape[1]), b, gamma)


class Parts(NamedTuple):
    """Parameters of N networks by their kind, networks last."""

    const: np.ndarray
    ar: np.ndarray
    ma: np.ndarray
    recurrent: np.ndarray
    weights: np.ndarray
    bias: np.ndarray
    gamma: np.ndarray


def residuals_and_jacobian(
    network: Network, params: np.ndarray, y: np.ndarray, first: int
) -> tuple[np.ndarray, np.ndarray]:
    r"""Residuals (n, N) and derivatives (n, k, N) of the forecasts, forward in time.

    .. math:: \partial h_t = (1 - h_t^2) \odot
        (W \partial h_{t-1} + (\partial W) h_{t-1} + (\partial U) x_t + \partial b)

    Parameters have shape (k, N), series (T, N). Row `first` has the first residual; states and
    residuals are zero before it.
    """
    const, ar, ma, W, U, b, gamma = network.parts(params)
    n, N = len(y) - first, y.shape[1]
    d, L, q = len(b), network.n_inputs, network.q
    e = y[first:] - const
    J = np.empty((n, len(params), N))
    J[:, 0] = 1.0
    for i in range(network.p):
        J[:, 1 + i] = y[first - 1 - i : len(y) - 1 - i]
        e -= ar[i] * J[:, 1 + i]
    start = 1 + network.p + q
    if d:
        x = np.stack([y[first - 1 - i : len(y) - 1 - i] for i in range(L)], axis=1)
        # Row of each parameter in W, U and b, and the state that a weight of W multiplies.
        rows = np.array(
            [i for i, _ in network.recurrent] + list(np.repeat(range(d), L)) + [*range(d)]
        )
        source = np.array([j for _, j in network.recurrent])
        within = (rows == np.arange(d)[:, None])[:, :, None].astype(float)
        n_free, n_state = len(source), len(rows)
        h, sensitivity = np.zeros((d, N)), np.zeros((d, n_state, N))
        value = np.ones((n_state, N))
        drive = np.einsum("ilN,tlN->tiN", U, x) + b
        for t in range(n):
            value[:n_free] = h[source]
            value[n_free : n_free + d * L] = np.tile(x[t], (d, 1))
            step, moved = drive[t], within * value
            for j in range(d):
                step = step + W[:, j] * h[j]
                moved += W[:, j, None] * sensitivity[j]
            h = np.tanh(step)
            sensitivity = moved
            sensitivity *= (1 - h * h)[:, None]
            J[t, start : start + n_state] = (gamma[:, None] * sensitivity).sum(0)
            J[t, start + n_state :] = h
        e -= (gamma * J[:, start + n_state :]).sum(1)
    for t in range(n if q else 0):
        for j in range(1, q + 1):
            known = t >= j
            e[t] -= ma[j - 1] * e[t - j] if known else 0.0
            J[t, start - q + j - 1] = e[t - j] if known else 0.0
        for j in range(1, min(q, t) + 1):
            J[t] -= ma[j - 1] * J[t - j]
    return e, J


class Fits(NamedTuple):
    """Fits of N networks."""

    params: np.ndarray  # (k, N)
    sse: np.ndarray  # (N,)
    converged: np.ndarray  # (N,)


def fit(network: Network, start: np.ndarray, y: np.ndarray, first: int) -> Fits:
    """Least squares from starts (k, N) by the Levenberg-Marquardt method, each fit by itself.

    A step is taken only if the sum of squares falls, so that no end is worse than its start.
    """
    params, N = start.copy(), start.shape[1]
    sse, converged = np.empty(N), np.zeros(N, bool)
    for lanes in np.split(np.arange(N), range(LANES, N, LANES)):
        damping = np.full(len(lanes), FIRST_DAMPING)
        A, g, sse[lanes] = _normal_equations(network, params[:, lanes], y[:, lanes], first)
        for _ in range(ITERATIONS):
            if not len(lanes):
                break
            sizes = np.einsum("nii->ni", A)
            # Weights of a state with zero gamma have no derivative; the floor keeps them in place.
            floor = 1e-10 * sizes.max(1, keepdims=True)
            lhs = A + (damping[:, None] * sizes + floor)[:, :, None] * np.eye(A.shape[1])
            trial = params[:, lanes] + np.linalg.solve(lhs, g[..., None])[..., 0].T
            A_new, g_new, sse_new = _normal_equations(network, trial, y[:, lanes], first)
            better = sse_new < sse[lanes]  # False for NaN
            decrease = np.where(better, 1 - sse_new / sse[lanes], np.inf)
            params[:, lanes[better]], sse[lanes[better]] = trial[:, better], sse_new[better]
            A[better], g[better] = A_new[better], g_new[better]
            done = (decrease < SMALL_DECREASE) | (damping > MOST_DAMPING)
            converged[lanes[done]] = True
            damping = np.where(better, np.maximum(damping / 10, LEAST_DAMPING), damping * 8)
            lanes, damping, A, g = lanes[~done], damping[~done], A[~done], g[~done]
    return Fits(params, sse, converged)


def _normal_equations(
    network: Network, params: np.ndarray, y: np.ndarray, first: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """J'J (N, k, k), J'e (N, k) and e'e (N,); NaN if states or sums overflow."""
    with np.errstate(over="ignore", invalid="ignore"):
        e, J = residuals_and_jacobian(network, params, y, first)
        J = np.ascontiguousarray(J.transpose(2, 0, 1))
        A, g = J.swapaxes(1, 2) @ J, (e.T[:, None] @ J)[:, 0]
        finite = np.isfinite(A).all((1, 2)) & np.isfinite(g).all(1)
        return A, g, np.where(finite, (e * e).sum(0), np.nan)


def grow(
    small: Network,
    fits: Fits,
    large: Network,
    y: np.ndarray,
    first: int,
    n_starts: int,
    rng: np.random.Generator,
) -> Fits:
    """Fit a larger network to columns (T, M) from the fits of a smaller one.

    New states start with zero weight in the mean, so that every start has the sum of squares of the
    smaller network. Their inputs and recurrences are the `n_starts` of all draws with
    the largest score statistics. The best end is returned.
    """
    M = y.shape[1]
    start = np.zeros((len(large.keys), M))
    places = [large.keys.index(key) for key in small.keys]
    start[places] = fits.params
    e, J = residuals_and_jacobian(small, fits.params, y, first)
    inputs = lagged(y, large.n_inputs)[first - large.n_inputs :].swapaxes(0, 1)
    added = [state for state in large.states if state not in small.states]
    groups = [[s for s in added if s[0] == block] for block in sorted({s[0] for s in added})]
    draws = [draw_blocks(CANDIDATES, len(group), large.n_inputs, rng) for group in groups]
    states = np.concatenate([block_states(inputs, blocks) for blocks in draws], axis=-1)
    ma = small.parts(fits.params).ma
    for t in range(len(states) if small.q else 0):
        for j in range(1, min(small.q, t) + 1):
            states[t] -= ma[j - 1][:, None, None] * states[t - j]
    chosen = np.empty((M, n_starts), int)
    for i in range(M):
        Z = orthonormal(J[:, :, i])
        left = states[:, i].reshape(len(e), -1)
        left = (left - Z @ (Z.T @ left)).T.reshape(CANDIDATES, -1, len(e))
        V, s = left @ left.swapaxes(1, 2), left @ (e[:, i] - Z @ (Z.T @ e[:, i]))
        V += (1e-8 * np.trace(V, axis1=1, axis2=2)[:, None, None] + 1e-12) * np.eye(V.shape[1])
        statistic = (s * np.linalg.solve(V, s[..., None])[..., 0]).sum(1)
        chosen[i] = np.argsort(-statistic)[:n_starts]
    starts = np.repeat(start, n_starts, axis=1)
    numbers = chosen.ravel()
    for group, blocks in zip(groups, draws, strict=True):
        for c, state in enumerate(group):
            for j, other in enumerate(group):
                place = large.keys.index(("W", state, other))
                starts[place] = blocks.recurrent[numbers, c, j]
            for j in range(large.n_inputs):
                starts[large.keys.index(("U", state, j))] = blocks.weights[numbers, c, j]
            starts[large.keys.index(("b", state))] = blocks.bias[numbers, c]
    ends = fit(large, starts, np.repeat(y, n_starts, axis=1), first)
    best = np.argmin(ends.sse.reshape(M, n_starts), axis=1) + n_starts * np.arange(M)
    return Fits(ends.params[:, best], ends.sse[best], ends.converged[best])


def simulate(network: Network, params: np.ndarray, y: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """Simulate series (T, B) of a network (k,) with errors (n, B), after first rows of y (T,)."""
    const, ar, ma, W, U, b, gamma = network.parts(params[:, None])
    (n, B), T = errors.shape, len(y)
    first = T - n
    series = np.repeat(y[:, None], B, axis=1)
    h = np.zeros((len(b), B))
    for t in range(first, T):
        mean = const + errors[t - first]
        for i in range(network.p):
            mean = mean + ar[i] * series[t - 1 - i]
        for j in range(1, min(network.q, t - first) + 1):
            mean = mean + ma[j - 1] * errors[t - first - j]
        if len(b):
            x = series[t - network.n_inputs : t][::-1]
            h = np.tanh(W[..., 0] @ h + U[..., 0] @ x + b)
            mean = mean + (gamma * h).sum(0)
        series[t] = mean
    return series
