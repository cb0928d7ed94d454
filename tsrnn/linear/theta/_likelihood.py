r"""Log-likelihood of the theta model of many series, all but alpha concentrated out.

At a given :math:`\alpha` errors are linear in two numbers. With values less the first,
:math:`z_t = y_t - y_1`, which reduces rounding,

.. math:: e_t = z_t - s_{t-1} - \lambda h_t - c g_t, \qquad c = 1 - 1 / \theta, \qquad
          \lambda = \ell_0 - (1 - c) y_1

where s smooths z from zero, h is the weight of the start and g the part of the line of z. The
minimum of the sum of squares :math:`S(\alpha, b)` over :math:`b = (\lambda, c)`, c within its
bounds, has a closed form, and so have the derivatives of the minimum: b is fixed in the first and
moves in the second,

.. math:: S' = \frac{\partial S}{\partial \alpha}, \qquad
          S'' = \frac{\partial^2 S}{\partial \alpha^2}
                - \frac{\partial^2 S}{\partial \alpha \partial b'}
                  \Big( \frac{\partial^2 S}{\partial b \partial b'} \Big)^{-1}
                  \frac{\partial^2 S}{\partial b \partial \alpha}

A level that is not estimated is :math:`y_1 / \theta`, where :math:`\lambda = 0`. An estimated level
has :math:`|\lambda| \le \max_t |z_t|`: the first mean is no further from the first value than the
farthest value. Without this bound a large alpha leaves it undetermined, as errors begin in the
fourth row, where the weight of the start is :math:`(1 - \alpha)^3`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tsrnn.kernels import Lanes, Running, sums
from tsrnn.linear._estimates import PERFECT
from tsrnn.linear._optimise import Evaluation
from tsrnn.linear.theta._cells import GIVEN, PRODUCTS, STATE, product_cell, row_cell

ALPHA, THETA = (0.1, 0.99), (1.0, 1e10)  # bounds of Fiorucci et al. (2016)
_ROUNDING = 1e-14  # share of the squared values below which a sum of squares is rounding
_NODES = 24  # of the grid of alpha
_TOGETHER = 2048  # fewest lanes of a call, to amortise its overhead
_FLAT = 1e-12  # residual share of a regressor's squares that counts as collinear

Evaluate = Callable[[np.ndarray, np.ndarray, bool], Evaluation]


class Best(NamedTuple):
    """Least-squares lambda and c at some alpha, for N series."""

    start: np.ndarray  # lambda
    share: np.ndarray  # c
    square: np.ndarray  # sum of squares
    limited: np.ndarray  # lambda is on a bound
    bounded: np.ndarray  # the share is on a bound
    identified: np.ndarray  # the share is identified


class Likelihood:
    """Likelihood of N series, adjusted and scaled, beginning with a value.

    Values (N, T) are NaN where missing and after the end. Without `theta` it is estimated; with
    `estimated`, so is the level before the first row.
    """

    def __init__(
        self, values: np.ndarray, dynamic: bool, theta: float | None, estimated: bool
    ) -> None:
        counted = np.isfinite(values) & (np.arange(values.shape[1]) >= GIVEN)
        self.n_obs, self.first, self._estimated = counted.sum(1), values[:, 0], estimated
        z = values - values[:, :1]
        A, B = lines(z)
        self.line = np.stack([A[:, -1] + self.first, B[:, -1]], 1)
        if dynamic:  # the line of a row runs through earlier rows
            A, B = (np.pad(part[:, :-1], ((0, 0), (1, 0))) for part in (A, B))
        else:
            A, B = (np.broadcast_to(part[:, -1:], values.shape) for part in (A, B))
        self._lanes = Lanes(np.stack([z, A, B, counted], 2))
        low, high = THETA if theta is None else (theta, theta)
        self._bounds = 1 - 1 / low, 1 - 1 / high
        self._floor = np.maximum(_ROUNDING * np.nansum(z**2, 1), PERFECT * self.n_obs)
        self._reach = np.nanmax(np.abs(z), 1)

    def grid(self) -> tuple[np.ndarray, np.ndarray]:
        """Nodes of alpha (nodes,), and log-likelihoods (nodes, N) there."""
        nodes, n = np.linspace(*ALPHA, _NODES), len(self.n_obs)
        at_once = min(_NODES, max(1, _TOGETHER // n))
        lanes = self._lanes
        if at_once > 1:
            lanes = lanes.select(np.tile(np.arange(n), at_once))
        values = []
        for begin in range(0, _NODES, at_once):
            # The last call repeats the last node, so that all calls have one size.
            part = nodes[np.minimum(np.arange(begin, begin + at_once), _NODES - 1)]
            products = _products(lanes, np.repeat(part, n), 0)[0]
            best = self._best(products.reshape(-1, at_once, n), self._reach)
            values.append(_loglik(best.square, self._floor, self.n_obs))
        return nodes, np.concatenate(values)[:_NODES]

    def search_in(self, series: np.ndarray) -> Evaluate:
        """Function of alpha (n, 1) for `maximise`, with a search for each entry of `series`."""
        running = Running(self._lanes.select(series))

        def evaluate(params: np.ndarray, units: np.ndarray, exact: bool) -> Evaluation:
            lanes, places = running.covering(units)
            alpha = np.full(lanes.n, ALPHA[0])
            alpha[places] = params[:, 0]
            jet = [part[:, places] for part in _products(lanes, alpha, 2)]
            return self._evaluation(jet, series[units])

        return evaluate

    def best(self, alpha: np.ndarray) -> Best:
        """Least squares at alpha (N,)."""
        return self._best(_products(self._lanes, alpha, 0)[0], self._reach)

    def _best(self, products: np.ndarray, reach: np.ndarray) -> Best:
        """Least squares of products (6, ..., N), lambda and the share within their bounds."""
        _, ly, gy, ll, lg, gg = products
        low, high = self._bounds
        across, along = gg, gy
        if self._estimated:
            ll = np.where(ll > 0, ll, 1.0)
            across, along = gg - lg**2 / ll, gy - lg * ly / ll
        identified = across > _FLAT * gg
        free = np.where(identified, along / np.where(identified, across, 1.0), 0.5)
        share = np.clip(free, low, high)
        start, limited = np.zeros_like(share), np.zeros(share.shape, bool)
        if self._estimated:
            start = (ly - lg * share) / ll
            # The minimum over the share is convex in lambda: beyond a bound it lies on the bound.
            limited = np.abs(start) > reach
            start = np.clip(start, -reach, reach)
            of_share = (gy - lg * start) / np.where(gg > 0, gg, 1.0)
            free = np.where(limited, np.where(gg > 0, of_share, 0.5), free)
            share = np.clip(free, low, high)
            identified = np.where(limited, gg > 0, identified)
        bounded = (free <= low) | (free >= high)
        return Best(start, share, _square(products, start, share), limited, bounded, identified)

    def _evaluation(self, jet: list[np.ndarray], series: np.ndarray) -> Evaluation:
        """Log-likelihood with derivatives by alpha, from products (6, n) and derivatives."""
        (_, _, _, ll, lg, gg), slopes, bends = jet
        n, floor = self.n_obs[series], self._floor[series]
        start, share, square, limited, bounded, identified = self._best(jet[0], self._reach[series])
        # Half the derivatives by alpha of the gradients in the share and in lambda.
        _, d_ly, d_gy, d_ll, d_lg, d_gg = slopes
        of_share, across = start * d_lg + share * d_gg - d_gy, gg
        bend = _square(bends, start, share)
        if self._estimated:
            ll = np.where(ll > 0, ll, 1.0)
            of_start = np.where(limited, 0.0, start * d_ll + share * d_lg - d_ly)
            bend = bend - 2 * of_start**2 / ll
            of_share = of_share - lg / ll * of_start
            across = np.where(limited, gg, gg - lg**2 / ll)
        follows = identified & ~bounded
        bend = bend - 2 * np.where(follows, of_share**2 / np.where(follows, across, 1.0), 0.0)
        usable = square > floor
        safe = np.where(usable, square, 1.0)
        slope = np.where(usable, _square(slopes, start, share) / safe, 0.0)
        curvature = 0.5 * n * np.where(usable, bend / safe - slope**2, 1.0)
        return Evaluation(
            _loglik(square, floor, n), (-0.5 * n * slope)[:, None], curvature[:, None, None]
        )


def _square(products: np.ndarray, start: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Sum of squares at lambda and c; given derivatives of the products, its derivative."""
    yy, ly, gy, ll, lg, gg = products
    inner = start * (start * ll - 2 * ly) + share * (share * gg - 2 * gy)
    return yy + inner + 2 * start * share * lg


def _loglik(square: np.ndarray, floor: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Log-likelihood with sigma2 concentrated out, constant below the rounding of squares."""
    return -0.5 * n * (np.log(2 * math.pi * np.maximum(square, floor) / n) + 1)


def _products(lanes: Lanes, alpha: np.ndarray, order: int) -> tuple[np.ndarray, ...]:
    """Products (6, N) at alpha (N,), and their derivatives up to an order."""
    first = np.tile([0.0, 1.0, 0.0, 1.0], (lanes.n, 1))
    totals = sums(product_cell(), lanes, alpha[:, None], first, terms=PRODUCTS, order=order)
    if totals.gradient is None or totals.hessian is None:
        return (totals.value,)
    return totals.value, totals.gradient[:, :, 0], totals.hessian[:, :, 0, 0]


def lines(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Least-squares lines A + B t through the rows 1, ..., t of series (N, T), for each t.

    Returns the values A at time 0 and the slopes B, each (N, T). Missing rows are left out.
    """
    seen, first = np.isfinite(values), values[:, :1]
    # Times and values are taken from the first row, as sums of large squares would cancel.
    t = np.where(seen, np.arange(values.shape[1], dtype=float), 0.0)
    z = np.where(seen, values - first, 0.0)
    count, sum_t, sum_z = seen.cumsum(1), t.cumsum(1), z.cumsum(1)
    spread = (t * t).cumsum(1) - sum_t**2 / count
    cross = (t * z).cumsum(1) - sum_t * sum_z / count
    B = np.where(count > 1, cross / np.where(count > 1, spread, 1.0), 0.0)
    return first + (sum_z - B * sum_t) / count - B, B


def beginning(level: np.ndarray, line: np.ndarray | None) -> np.ndarray:
    """States (N, 8) before the first row; a model that is not dynamic has a `line` (N, 2)."""
    state = np.zeros((len(level), len(STATE)))
    state[:, 1], state[:, 2] = level, 1.0
    if line is not None:  # its mean at time 0 is A
        state[:, 5], state[:, 7] = line.T
    return state


def with_ends(values: np.ndarray, lengths: np.ndarray | None = None) -> np.ndarray:
    """Inputs (N, T, 2) of the cell of a row, for series of `lengths` (N,), by default whole."""
    lengths = np.full(len(values), values.shape[1]) if lengths is None else lengths
    return np.stack([values, np.arange(values.shape[1]) < lengths[:, None]], 2)


class Moments(NamedTuple):
    """Derivatives of the log-likelihood by level, alpha, theta and sigma2."""

    gradient: np.ndarray  # (N, 4)
    hessian: np.ndarray  # (N, 4, 4), as the following
    opg: np.ndarray
    information: np.ndarray


def squares(values: np.ndarray, params: np.ndarray, line: np.ndarray | None) -> np.ndarray:
    """Sums of squared errors (N,) at level, alpha and theta (N, 3)."""
    lanes = Lanes(with_ends(values))
    first = beginning(params[:, 0], line)
    cell = row_cell(line is None)
    return sums(cell, lanes, params, first, terms=("square_error",), order=0).value[0]


def moments(
    values: np.ndarray,
    params: np.ndarray,
    line: np.ndarray | None,
    sigma2: np.ndarray,
    estimated: bool,
) -> Moments:
    """Exact derivatives at level, alpha and theta (N, 3) and sigma2 (N,).

    A level that is not `estimated` moves with theta.
    """
    lanes = Lanes(with_ends(values))
    level, theta = STATE.index("level"), params[:, 2]
    d_initial, dd_initial = {(level, 0): np.ones(len(params))}, {}
    if not estimated:
        d_initial[level, 2] = -values[:, 0] / theta**2
        dd_initial[level, 2, 2] = 2 * values[:, 0] / theta**3
    totals = sums(
        row_cell(line is None), lanes, params, beginning(params[:, 0], line),
        terms=("square_error", "fourth_power"),
        products=(("error", None), ("square_error", None)),
        d_initial=d_initial, dd_initial=dd_initial,
    )  # fmt: skip
    assert totals.gradient is not None
    assert totals.hessian is not None
    assert totals.products is not None
    n = (np.isfinite(values) & (np.arange(values.shape[1]) >= GIVEN)).sum(1)
    (square, fourth), (slope, slope_of_fourth) = totals.value, totals.gradient
    gradient, (hessian, opg, information) = np.empty((len(n), 4)), np.zeros((3, len(n), 4, 4))
    variance, by_matrix = sigma2[:, None], sigma2[:, None, None]
    gradient[:, :3] = -slope / (2 * variance)
    gradient[:, 3] = (square / sigma2 - n) / (2 * sigma2)
    hessian[:, :3, :3] = -totals.hessian[0] / (2 * by_matrix)
    hessian[:, :3, 3] = hessian[:, 3, :3] = slope / (2 * variance**2)
    hessian[:, 3, 3] = (n / 2 - square / sigma2) / sigma2**2
    information[:, :3, :3] = totals.products[0] / by_matrix
    information[:, 3, 3] = n / (2 * sigma2**2)
    # Scores are -e de / sigma2, and (e^2 / sigma2 - 1) / (2 sigma2) for the variance.
    opg[:, :3, :3] = totals.products[1] / (4 * by_matrix**2)
    opg[:, :3, 3] = opg[:, 3, :3] = (slope - slope_of_fourth / (2 * variance)) / (4 * variance**2)
    opg[:, 3, 3] = (fourth / sigma2**2 - 2 * square / sigma2 + n) / (4 * sigma2**2)
    return Moments(gradient, hessian, opg, information)
