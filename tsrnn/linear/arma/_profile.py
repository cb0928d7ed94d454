r"""Likelihood of an ARMA(1, 1) all over its parameters, the mean and sigma2 concentrated out.

Given theta, one pass over a series is enough for every phi. With the filtered series
:math:`z_t = y_t - \theta z_{t-1}`, constant :math:`x_t = 1 - \theta x_{t-1}` and first state
:math:`h_t = (-\theta)^{t-1}`, the innovations are

.. math:: e_t = (z_t - \phi z_{t-1}) - \mu (x_t - \phi x_{t-1}) - h_t a_1, \qquad
          a_1 \sim N(0, \sigma^2 P), \quad P = (\phi + \theta)^2 / (1 - \phi^2),

so that the exact likelihood follows from the products of :math:`z_t, z_{t-1}, x_t, x_{t-1}, h_t`.
"""

from __future__ import annotations

from functools import cache, partial
from typing import NamedTuple

import numpy as np

from tsrnn.kernels import Cell, Lanes, sums
from tsrnn.linear.arma._cells import Fields, as_tensor, mul, named_cell
from tsrnn.linear.arma._specification import Form, lower_triangle

# Where roots nearly cancel, the likelihood is that of bumps of the spectrum at either end, whose
# width is the distance of the roots from the circle: maxima lie apart in its logarithm.
_WIDEST, _RATIO = 0.6, 1.5
_CENTRE = (-0.2, 0.0, 0.2)  # roots further inside
_N_PHI = 9  # between a root of theta and either end
_EDGE = 1e-10  # distance of phi from -1 where the likelihood is that of its limit
_AT_ONCE = 2**17  # numbers of a grid of some units: 1 MB, which a cache holds
_PROMISING = 0.8  # below the highest on the grid, of a maximum that may be the highest between
_MOST = 4  # maxima of a unit


class GridMaxima(NamedTuple):
    """Maxima on the grid, one of each unit and rank at most.

    Attributes
    ----------
    units : integer array of shape (n,)
    rank : integer array of shape (n,)
    params : array of shape (n, k)
    """

    units: np.ndarray
    rank: np.ndarray
    params: np.ndarray


def has_profile(form: Form, exact: bool, gaps: bool) -> bool:
    """Whether the likelihood is one that `grid_maxima` knows."""
    plain = form.p == form.q == 1 and form.d == form.n_regressors == 0
    return plain and exact and not gaps


def grid_maxima(form: Form, lanes: Lanes, n_obs: np.ndarray) -> GridMaxima:
    """Highest local maxima of each unit along theta, phi the best on a grid to either side."""
    count = int(np.ceil(np.log(_WIDEST * n_obs.max()) / np.log(_RATIO))) + 1
    near = 1 - _WIDEST * (_WIDEST * n_obs) ** -np.linspace(0.0, 1.0, count)[:, None]
    roots = np.concatenate([near, np.ones((1, lanes.n))])
    centre = np.repeat(np.array(_CENTRE)[:, None], lanes.n, 1)
    roots = np.concatenate([-roots[::-1], centre, roots])
    cell, initial = _products_cell(form), np.tile([0.0, 0.0, 1.0], (lanes.n, 1))
    names = cell.field_names[0][3:]
    gram = np.stack([
        sums(cell, lanes, -row[:, None], initial, terms=names, order=0).value for row in roots
    ])  # fmt: skip
    candidates: list[tuple[np.ndarray, int, np.ndarray]] = []
    size = max(1, _AT_ONCE // (2 * _N_PHI * len(roots)))
    for start in range(0, lanes.n, size):
        part = slice(start, start + size)
        root, n = roots[:, part], n_obs[part]
        phi = _phi_nodes(form, gram[:, :, part], root, n)
        value, mean, _ = _profile(form, gram[:, :, part], phi, -root, n)
        highest = value.argmax(1)[:, None]
        value, mean, phi = (
            np.take_along_axis(array, highest, 1)[:, 0] for array in (value, mean, phi)
        )
        # A maximum on the circle and one close to it are told apart by no grid: both are tried.
        local = np.ones(value.shape, dtype=bool)
        local[:, 2:-1] &= value[:, 2:-1] >= value[:, 1:-2]
        local[:, 1:-2] &= value[:, 1:-2] >= value[:, 2:-1]
        local &= value > value.max((0, 1)) - _PROMISING
        ranked = np.where(local, value, -np.inf).reshape(-1, value.shape[2])
        for rank in range(_MOST):
            place = ranked.argmax(0)
            left = np.flatnonzero(ranked[place, np.arange(len(place))] > -np.inf)
            side, j = np.divmod(place[left], len(root))
            ranked[place[left], left] = -np.inf
            columns = mean[side, j, left], phi[side, j, left], -root[j, left]
            candidates.append((start + left, rank, np.column_stack(columns)))
        limit, edge = _limit_at_minus_one(form, gram[0, :, part], n)
        left = np.flatnonzero(limit > value.max((0, 1)) - _PROMISING)
        candidates.append((start + left, _MOST, edge[left]))
    units = np.concatenate([part[0] for part in candidates])
    ranks = np.concatenate([np.full(len(part[0]), part[1]) for part in candidates])
    params = np.concatenate([part[2] for part in candidates])
    return GridMaxima(units, ranks, params[:, not form.constant :])


def _phi_nodes(form: Form, gram: np.ndarray, root: np.ndarray, n_obs: np.ndarray) -> np.ndarray:
    """Values of phi (2, nodes, theta, N) below and above roots (theta, N) of the MA.

    They are dense towards the root, where the standard error is that of the first impulse response,
    and towards the unit circle; one is that of least squares, mean and first state taken off.
    """
    _, wz, ww, xz, xw, xx, _, _, _, _, hz, hw, hx, _, hh = np.moveaxis(gram, 1, 0)
    wz, ww = wz - hw * hz / hh, ww - hw**2 / hh
    if form.constant:
        xz, xw, xx = xz - hx * hz / hh, xw - hx * hw / hh, xx - hx**2 / hh
        wz, ww = wz - xw * xz / xx, ww - xw**2 / xx
    least_squares = wz / ww
    width = np.stack([1 + root, 1 - root])
    room = np.where(width > 0, width, 1.0)
    low = np.log(np.minimum(0.5, (0.5 * np.sqrt((1 - root**2) / n_obs) + 0.1 / n_obs) / room))
    high = np.log(np.minimum(0.5, 0.5 / (n_obs * room)))
    low, high = low - np.log1p(-np.exp(low)), np.log1p(-np.exp(high)) - high  # logits
    share = np.linspace(0.0, 1.0, _N_PHI)[:, None, None]
    nodes = 1 / (1 + np.exp(-(low[:, None] + share * (high - low)[:, None])))
    sign = np.array([-1.0, 1.0])[:, None, None, None]
    nodes = root + sign * width[:, None] * nodes
    inside = np.stack([np.minimum(least_squares, root), np.maximum(least_squares, root)])
    nodes = np.concatenate([nodes, inside[:, None]], 1)
    return np.clip(nodes, -1 + 1e-9, 1 - 1e-9)


def _profile(
    form: Form,
    gram: np.ndarray,
    phi: np.ndarray,
    theta: np.ndarray,
    n_obs: np.ndarray,
    P: np.ndarray | float | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Log-likelihood but for a constant, mean and sum of squares, (..., theta, N).

    Of products (theta, 15, N); P is that of phi and theta unless given.
    """
    zz, wz, ww, xz, xw, xx, vz, vw, vx, vv, hz, hw, hx, hv, hh = np.moveaxis(gram, 1, 0)
    P = (phi + theta) ** 2 / (1 - phi**2) if P is None else P
    shrinkage = P / (1 + P * hh)
    # Of e without mean and first state, and of the two that it is regressed on.
    eh = hz - phi * hw
    square = zz - phi * (2 * wz - phi * ww) - shrinkage * eh**2
    mean = np.zeros_like(square)
    if form.constant:
        ch = hx - phi * hv
        ec = xz - phi * (xw + vz - phi * vw) - shrinkage * eh * ch
        mean = ec / (xx - phi * (2 * vx - phi * vv) - shrinkage * ch**2)
        square -= mean * ec
    tiny = np.finfo(float).tiny  # rounding may leave nothing of a series that is predicted exactly
    value = -0.5 * (n_obs * np.log(np.maximum(square, tiny)) + np.log1p(P * hh))
    return value, mean, square


def _limit_at_minus_one(
    form: Form, gram: np.ndarray, n_obs: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Log-likelihoods (N,) and parameters (N, 3) close to phi = -1, of products (15, N) there.

    As both roots tend to -1, phi the faster, P may tend to any number: the model is that of a mean
    which alternates, of random size. -inf where that is no gain; parameters are mean, phi, theta.
    """
    phi, theta = np.full(len(n_obs), -1 + _EDGE), np.ones((1, len(n_obs)))

    def profile(P: np.ndarray | float) -> tuple[np.ndarray, ...]:
        return tuple(part[0] for part in _profile(form, gram[None], phi, theta, n_obs, P))

    square = profile(0.0)[2]
    explained = square - profile(1e12 / n_obs)[2]
    # The share of it that the highest likelihood gives to the mean, of n log S + log(1 + P M).
    with np.errstate(divide="ignore", invalid="ignore"):  # of nothing explained: no gain
        share = (n_obs * explained - square) / ((n_obs - 1) * explained)
    gain = (explained > 0) & (share > 0) & (share < 1)
    share = np.where(gain, share, 0.0)
    P = share / (1 - share) / gram[-1]
    value, mean, _ = profile(P)
    theta = -phi - np.sqrt(P * (1 - phi**2))
    return np.where(gain, value, -np.inf), np.column_stack([mean, phi, theta])


@cache
def _products_cell(form: Form) -> Cell:
    """Sums of the products, by rows of the lower triangle; the memory is z, x, h."""
    names = (f"s{i}_{j}" for i, j in lower_triangle(5))
    name = f"arma_products_{form.label}"
    return named_cell(
        name, partial(_products_step, form), ("z", "x", "h", *names), form.inputs, ("theta",)
    )


def _products_step(form: Form, state: Fields, inputs: Fields, params: Fields) -> Fields:
    (z, x, h), (theta,) = state[:3], params
    now = inputs[0] - theta * z, 1 - theta * x
    columns = (now[0], z, now[1], x, h)
    weight = inputs[-1] if form.masked else 1
    products = [mul(weight, columns[i]) * columns[j] for i, j in lower_triangle(5)]
    return tuple(as_tensor(field, z) for field in (*now, -theta * h, *products))
