r"""Likelihood of an ARMA(1, 1) on a grid, with the mean and sigma2 concentrated out.

Given theta, one pass over a series is enough for every phi. With the filtered series
:math:`z_t = y_t - \theta z_{t-1}`, constant :math:`x_t = 1 - \theta x_{t-1}` and first state
:math:`h_t = (-\theta)^{t-1}`, the innovations are

.. math:: e_t = (z_t - \phi z_{t-1}) - \mu (x_t - \phi x_{t-1}) - h_t a_1, \qquad
          a_1 \sim N(0, \sigma^2 P), \quad P = (\phi + \theta)^2 / (1 - \phi^2),

so that the exact likelihood follows from the products of :math:`z_t, z_{t-1}, x_t, x_{t-1}, h_t`.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import torch

from tsrnn.kernels import Cell, Lanes, sums
from tsrnn.linear.arma._cells import Fields, as_tensor, mul, named_cell
from tsrnn.linear.arma._specification import Form

# Nearly cancelling roots are bumps of the spectrum at frequency 0 or pi. The width of a bump is the
# distance of the roots from the circle; nodes are evenly spaced in its logarithm, as maxima are.
_WIDEST, _RATIO = 0.6, 1.5
_CENTRE = (-0.2, 0.0, 0.2)  # nodes further inside
_N_PHI = 9  # nodes of phi between a root of theta and either end
_INSIDE = 1 - 1e-9  # largest |phi| on the grid: at one the first state has no variance
_EDGE = 1e-10  # distance of phi from -1 at which the likelihood equals its limit
_PROMISING = 0.8  # a maximum this far below the highest node may be the highest between nodes
_LIKELY = 0.1  # the same after interpolation
_TOGETHER = 2048  # fewest lanes of a call
_MOST = 5  # maxima of a unit
_APART = 0.05  # step of numerical derivatives, in logits of phi
_FURTHEST = 1.0  # longest step in logits, about the distance of two nodes
_STEPS = 2  # steps of Newton's method in phi
_BESIDE = 0.2  # distance of a start from the circle, times n: all gradients vanish on the circle
_TINY = float(np.finfo(float).tiny)
_LOWEST = -1e300  # below every log-likelihood


class GridMaxima(NamedTuple):
    """Maxima on the grid, unit by unit, highest first."""

    units: np.ndarray  # (n,)
    rank: np.ndarray  # (n,), 0 for the highest maximum of a unit
    params: np.ndarray  # (n, k)


class Products(NamedTuple):
    """Sums over time of products of z, x and h; w and v are lagged z and x."""

    zz: Any
    wz: Any
    ww: Any
    xz: Any
    xw: Any
    vz: Any
    vw: Any
    hz: Any
    hw: Any
    xx: Any
    vx: Any
    vv: Any
    hx: Any
    hv: Any
    hh: Any


def grid_maxima(form: Form, lanes: Lanes, n_obs: np.ndarray) -> GridMaxima:
    """Highest local maxima of each unit along theta, with the best phi on either side of it."""
    roots = _roots(n_obs)
    products = products_along(form, lanes, n_obs, roots)
    value, phi = _best_phi(form, products, roots, n_obs)
    local = np.ones(value.shape, dtype=bool)
    local[:, 2:-1] &= value[:, 2:-1] >= value[:, 1:-2]
    local[:, 1:-2] &= value[:, 1:-2] >= value[:, 2:-1]
    local &= value > value.max((0, 1)) - _PROMISING
    # A maximum between the circle and the next node is found from one of the two.
    local[:, [0, -1]] &= ~local[:, [1, -2]]
    places = np.nonzero(local)
    units = places[2]
    estimate, params, reached = _between(form, products, roots, n_obs, phi, places)
    at_minus_one = Products(*(part[0] for part in products))
    limit, edge = _limit_at_minus_one(form.constant, at_minus_one, n_obs)
    # After interpolation between nodes, fewer maxima are competitive.
    highest = limit.copy()
    np.maximum.at(highest, units, reached)
    units = np.concatenate([units, np.arange(len(n_obs))])
    estimate, params = np.concatenate([estimate, limit]), np.concatenate([params, edge])
    kept = np.flatnonzero(estimate > highest[units] - _LIKELY)
    order = kept[np.lexsort((-estimate[kept], units[kept]))]
    units, params = units[order], params[order, not form.constant :]
    rank = np.arange(len(units)) - np.searchsorted(units, units)
    few = rank < _MOST
    return GridMaxima(units[few], rank[few], params[few])


def _roots(n_obs: np.ndarray) -> np.ndarray:
    """Nodes of the root of the moving average, (rows, N), from -1 to 1."""
    count = int(np.ceil(np.log(_WIDEST * n_obs.max()) / np.log(_RATIO))) + 1
    near = 1 - _WIDEST * (_WIDEST * n_obs) ** -np.linspace(0.0, 1.0, count)[:, None]
    near = np.concatenate([near, np.ones((1, len(n_obs)))])
    centre = np.repeat(np.array(_CENTRE)[:, None], len(n_obs), 1)
    return np.concatenate([-near[::-1], centre, near])


def products_along(form: Form, lanes: Lanes, n_obs: np.ndarray, roots: np.ndarray) -> Products:
    """Products at roots (rows, N) of the moving average; the roots depend on the length only."""
    result = np.empty((len(Products._fields), *roots.shape))
    ends = np.empty((2, *roots.shape))  # last x, and h a step later
    # Products without z are the same for all series of a length.
    lengths, first, place = np.unique(n_obs, return_index=True, return_inverse=True)
    for k, (length, unit) in enumerate(zip(lengths, first, strict=True)):
        h = roots[:, unit] ** np.arange(length)[:, None]
        x = np.cumsum(h, 0)
        pairs = ((x, x), (x[1:], x[:-1]), (x[:-1], x[:-1]), (h, x), (h[1:], x[:-1]), (h, h))
        units = slice(None) if len(lengths) == 1 else place == k
        for target, (a, b) in zip(result[-len(pairs) :], pairs, strict=True):
            target[:, units] = (a * b).sum(0)[:, None]
        ends[0][:, units], ends[1][:, units] = x[-1][:, None], (h[-1] * roots[:, unit])[:, None]
    cell, names = _products_cell(form), _products_cell(form).field_names[0][3:]
    blocks, units = _blocks_of_rows(*roots.shape)
    lanes = lanes if len(blocks) == len(roots) else lanes.select(units)
    zero = np.tile([0.0, 0.0, 1.0], (lanes.n, 1))
    for rows in blocks:
        theta, shape = -roots[rows].reshape(-1, 1), (-1, len(rows), len(n_obs))
        totals = sums(cell, lanes, theta, zero, terms=names, order=0)
        zz, wz, xz, xw, vz, hz = totals.value.reshape(shape)
        z, (x, h) = totals.memory.reshape(shape)[0], ends[:, rows]
        of_z = zz, wz, zz - z**2, xz, xw, vz, xz - x * z, hz, roots[rows] * hz - h * z
        for target, values in zip(result, of_z, strict=False):
            target[rows] = values
    return Products(*result)


def _blocks_of_rows(rows: int, n: int) -> tuple[list[np.ndarray], np.ndarray]:
    """Blocks of rows (count,) computed in one call, the last row repeated, and their units.

    Few units take many rows in a call, which amortises its overhead.
    """
    count = min(max(1, _TOGETHER // n), rows)
    blocks = [np.minimum(np.arange(i, i + count), rows - 1) for i in range(0, rows, count)]
    return blocks, np.tile(np.arange(n), count)


@cache
def _products_cell(form: Form) -> Cell:
    """Sums of the products of z; the memory is z, x and h, and z stays after the end."""
    state = ("z", "x", "h", "zz", "wz", "xz", "xw", "vz", "hz")
    step = partial(_products_step, form)
    return named_cell(f"arma_products_{form.label}", step, state, form.inputs, ("theta",))


def _products_step(form: Form, state: Fields, inputs: Fields, params: Fields) -> Fields:
    (w, v, h), (theta,) = state[:3], params
    z, x = inputs[0] - theta * w, 1 - theta * v
    weight = inputs[-1] if form.masked else 1
    pairs = ((z, z), (w, z), (x, z), (x, w), (v, z), (h, z))
    products = [mul(weight, a) * b for a, b in pairs]
    last = w + weight * (z - w) if form.masked else z
    return tuple(as_tensor(field, z) for field in (last, x, -theta * h, *products))


def profile(constant: bool, products: Products, phi: Any, shrinkage: Any) -> tuple[Any, Any]:
    """Mean that maximises the likelihood, and sum of squares there, of arrays or tensors.

    The shrinkage of the first state is P / (1 + P hh).
    """
    zz, wz, ww, xz, xw, vz, vw, hz, hw, xx, vx, vv, hx, hv, _ = products
    # Products of e without mean and first state, and of its regressors: the two.
    eh = hz - phi * hw
    square = zz - phi * (2 * wz - phi * ww) - shrinkage * eh * eh
    if not constant:
        return 0 * square, square
    ch = hx - phi * hv
    ec = xz - phi * (xw + vz - phi * vw) - shrinkage * eh * ch
    mean = ec / (xx - phi * (2 * vx - phi * vv) - shrinkage * ch * ch)
    return mean, square - mean * ec


def loglik_at(
    constant: bool, products: Products, phi: Any, root: Any, n_obs: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Log-likelihood up to a constant, and mean, at phi and roots of the moving average."""
    inside, first = 1 - phi * phi, (phi - root) ** 2
    determinant = inside + first * products.hh
    mean, square = profile(constant, products, phi, first / determinant)
    # A perfectly predicted series may have a sum of squares of zero or less, by rounding.
    value = n_obs * np.log(np.maximum(square, _TINY)) + np.log(determinant / inside)
    return -0.5 * value, mean


def _best_phi(
    form: Form, products: Products, roots: np.ndarray, n_obs: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Highest log-likelihoods and their phi, each (2, rows, N), below and above each root.

    Nodes are dense near the root, on the scale of the first impulse response's standard error, and
    near the unit circle. A further node is the least-squares estimate given mean and first state.
    """
    p = products
    width = np.stack([1 + roots, 1 - roots])
    room = np.where(width > 0, width, 1.0)
    nearest = np.minimum(0.5, (0.5 * np.sqrt((1 - roots**2) / n_obs) + 0.1 / n_obs) / room)
    furthest = np.minimum(0.5, 0.5 / (n_obs * room))
    odds = nearest / (1 - nearest)
    ratio = ((1 / furthest - 1) / odds) ** (1 / (_N_PHI - 1))
    wz, ww = p.wz - p.hw * p.hz / p.hh, p.ww - p.hw**2 / p.hh
    if form.constant:
        xz, xw, xx = p.xz - p.hx * p.hz / p.hh, p.xw - p.hx * p.hw / p.hh, p.xx - p.hx**2 / p.hh
        wz, ww = wz - xw * xz / xx, ww - xw**2 / xx
    least_squares = wz / ww
    blocks, units = _blocks_of_rows(*roots.shape)
    steps = np.zeros((len(units), 1 + _N_PHI, 1))
    steps[:, 0] = 1.0  # the first step evaluates least squares
    lanes, cell, n = Lanes(steps), _scan_cell(form.constant), n_obs[units]
    value, phi = np.empty((2, 2, *roots.shape))
    for rows in blocks:
        of_row = *p, roots, least_squares, *ratio
        columns = [*(part[rows].ravel() for part in of_row), n]
        before = np.full((6, len(n)), _LOWEST)
        before[4:] = odds[:, rows].reshape(2, -1)
        ends = sums(cell, lanes, np.array(columns).T, before.T, terms=(), order=0).memory
        ends = ends.reshape(6, len(rows), -1)
        value[:, rows], phi[:, rows] = ends[:2], ends[2:4]
    return value, phi


@cache
def _scan_cell(constant: bool) -> Cell:
    """Scan of nodes of phi on both sides of a root; the whole state is memory."""
    state = ("value_below", "value_above", "phi_below", "phi_above", "odds_below", "odds_above")
    params = (*Products._fields, "root", "least_squares", "ratio_below", "ratio_above", "n")
    name = f"arma_scan{'_c' * constant}"
    return named_cell(name, partial(_scan_step, constant), state, ("first",), params)


def _scan_step(constant: bool, state: Fields, inputs: Fields, params: Fields) -> Fields:
    products = Products(*params[:15])
    root, least_squares, *ratios, n = params[15:]
    first = inputs[0] > 0
    new = []
    for sign, value, phi, odds, ratio in zip(
        (-1.0, 1.0), state[:2], state[2:4], state[4:], ratios, strict=True
    ):
        node = root + (sign - root) * (odds / (1 + odds))
        beyond = sign * (least_squares - root) > 0
        trial = torch.where(first, torch.where(beyond, least_squares, root), node)
        trial = torch.where(
            trial > _INSIDE, _INSIDE, torch.where(trial < -_INSIDE, -_INSIDE, trial)
        )
        inside, square = 1 - trial * trial, (trial - root) * (trial - root)
        determinant = inside + square * products.hh
        rest = profile(constant, products, trial, square / determinant)[1]
        rest = torch.where(rest > _TINY, rest, _TINY)
        loglik = -0.5 * (n * torch.log(rest) + torch.log(determinant / inside))
        better = loglik > value
        new.append((
            torch.where(better, loglik, value), torch.where(better, trial, phi),
            torch.where(first, odds, odds * ratio),
        ))  # fmt: skip
    return tuple(field for pair in zip(*new, strict=True) for field in pair)


def _between(
    form: Form,
    products: Products,
    roots: np.ndarray,
    n_obs: np.ndarray,
    phi: np.ndarray,
    at: tuple[np.ndarray, ...],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Interpolate maxima around the highest nodes, given by side, row and unit, each (m,).

    Returns log-likelihoods of the parabolas' vertices, parameters (m, 3), and the highest
    log-likelihood computed around each.
    """
    (side, row, units), last = at, len(roots) - 1
    middle = np.clip(row, 1, last - 1)
    nodes = middle + np.array([-1, 0, 1])[:, None]
    root, sign, n = roots[nodes, units], 2.0 * side - 1, n_obs[units]
    around = Products(*(part[nodes, units] for part in products))
    value, logit, mean = _climb_phi(form.constant, around, phi[side, nodes, units], root, sign, n)
    # Near the circle the likelihood is an even function of the distance, as of log theta.
    circle = np.where(middle == 1, -1.0, np.where(middle == last - 1, 1.0, 0.0))
    with np.errstate(divide="ignore"):
        place = np.where(circle == 0, np.arctanh(root), (circle - root) ** 2)
    vertex, estimate, weights = _parabola(place, value)
    distance = np.maximum(np.sqrt(np.abs(vertex)), _BESIDE / n)
    best = np.where(circle == 0, np.tanh(vertex), circle * (1 - distance))
    logit = np.clip((weights * logit).sum(0), logit.min(0), logit.max(0))
    best_phi = np.clip(best + (sign - best) / (1 + np.exp(-logit)), -_INSIDE, _INSIDE)
    return estimate, np.column_stack([mean[1], best_phi, -best]), value.max(0)


def _climb_phi(
    constant: bool,
    products: Products,
    phi: np.ndarray,
    root: np.ndarray,
    sign: np.ndarray,
    n_obs: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Log-likelihoods, logits of phi and means after Newton steps, each (3, m).

    The logit is that of phi's share of the way from the root to -1 or 1, which is `sign`.
    """
    way = sign - root
    share = np.clip((phi - root) / np.where(way == 0, sign, way), 1e-12, 1 - 1e-12)
    logit = np.log(share / (1 - share))

    def at(logit: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        phi = np.clip(root + way / (1 + np.exp(-logit)), -_INSIDE, _INSIDE)
        return loglik_at(constant, products, phi, root, n_obs)

    for _ in range(_STEPS):
        below, level, above = (at(logit + step)[0] for step in (-_APART, 0.0, _APART))
        slope, bend = (above - below) / (2 * _APART), (2 * level - above - below) / _APART**2
        step = np.where(bend > 0, slope / np.where(bend > 0, bend, 1.0), np.sign(slope))
        logit = logit + np.clip(step, -_FURTHEST, _FURTHEST)
    value, mean = at(logit)
    return value, logit, mean


def _parabola(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Vertex of the parabola through three points (3, m), its value, and the points' weights."""
    first, second = np.diff(y, axis=0) / np.diff(x, axis=0)
    bend = (second - first) / (x[2] - x[0])
    top = np.take_along_axis(x, y.argmax(0)[None], 0)[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        vertex = np.where(bend < 0, (x[0] + x[1]) / 2 - first / (2 * bend), top)
    vertex = np.clip(vertex, x.min(0), x.max(0))
    weights = np.stack([
        (vertex - x[1]) * (vertex - x[2]) / ((x[0] - x[1]) * (x[0] - x[2])),
        (vertex - x[0]) * (vertex - x[2]) / ((x[1] - x[0]) * (x[1] - x[2])),
        (vertex - x[0]) * (vertex - x[1]) / ((x[2] - x[0]) * (x[2] - x[1])),
    ])  # fmt: skip
    return vertex, (weights * y).sum(0), weights


def _limit_at_minus_one(
    constant: bool, products: Products, n_obs: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Log-likelihoods (N,) and parameters (N, 3), mean, phi, theta, in the limit phi = -1.

    As both roots tend to -1, phi faster, P may tend to any number: the limit is an alternating mean
    of random size. The log-likelihood is -inf if that is no gain.
    """
    phi = np.full(len(n_obs), -1 + _EDGE)

    def at(P: np.ndarray | float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        determinant = 1 + P * products.hh
        mean, square = profile(constant, products, phi, P / determinant)
        rest = n_obs * np.log(np.maximum(square, _TINY)) + np.log(determinant)
        return mean, square, -0.5 * rest

    square = at(0.0)[1]
    explained = square - at(1e12 / n_obs)[1]
    # Share P M / (1 + P M) that minimises n log S + log(1 + P M).
    with np.errstate(divide="ignore", invalid="ignore"):  # nothing explained is no gain
        share = (n_obs * explained - square) / ((n_obs - 1) * explained)
    gain = (explained > 0) & (share > 0) & (share < 1)
    share = np.where(gain, share, 0.0)
    P = share / (1 - share) / products.hh
    mean, _, value = at(P)
    theta = -phi - np.sqrt(P * (1 - phi**2))
    return np.where(gain, value, -np.inf), np.column_stack([mean, phi, theta])
