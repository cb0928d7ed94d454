"""The two sums that a likelihood is made of, with derivatives, of many units at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from tsrnn.kernels import Lanes, Sums, sums
from tsrnn.linear.arma._filter_cell import filter_cell
from tsrnn.linear.arma._form import Form, lower_triangle
from tsrnn.linear.arma._sum_cells import closing_cell, presample_cell, residual_cell, sum_names

First = dict[tuple[int, int], np.ndarray]
Second = dict[tuple[int, int, int], np.ndarray]

_STEP = 1e-4  # in parameters, of series of variance one


class Parts(NamedTuple):
    """S and D of -2 l = n log(2 pi sigma2) + D + S / sigma2, and their derivatives.

    Attributes
    ----------
    value : array of shape (2, N)
    gradient : array of shape (2, N, k) or None
    hessian : array of shape (2, N, k, k) or None
    squares : array of shape (N, k, k) or None
        With gradients only: sum over time of g g' / F, g the gradient of an innovation.
    spreads : array of shape (N, k, k) or None
        With gradients only, from the filter: sum over time of g g' / (2 F^2), g that of F.
    """

    value: np.ndarray
    gradient: np.ndarray | None = None
    hessian: np.ndarray | None = None
    squares: np.ndarray | None = None
    spreads: np.ndarray | None = None

    def select(self, places: np.ndarray) -> Parts:
        """Those of some units."""
        value, gradient, hessian, squares, spreads = self
        return Parts(
            value[:, places],
            None if gradient is None else gradient[:, places],
            None if hessian is None else hessian[:, places],
            None if squares is None else squares[places],
            None if spreads is None else spreads[places],
        )


def parts_by_sums(form: Form, exact: bool, lanes: Lanes, params: np.ndarray, order: int) -> Parts:
    """Parts of series without gaps: no filter runs.

    Parameters
    ----------
    form : Form
        With d = 0.
    exact : bool
    lanes : Lanes
        Inputs of N series.
    params : array of shape (N, k)
    order : {0, 1, 2}
        Highest derivative.
    """
    initial = np.zeros((lanes.n, form.p + form.q + form.r * exact))
    initial[:, form.p + form.q :][:, :1] = 1.0  # h, where there is one
    made = sums(
        residual_cell(form, conditional=not exact),
        lanes,
        params,
        initial,
        terms=sum_names(form) if exact else sum_names(form)[:1],
        products=(("e", "weight"),) if order == 1 else (),
        order=order,
    )
    squares = None if made.products is None else made.products[0]
    if not exact:
        value = np.concatenate([made.value, np.zeros_like(made.value)])
        return Parts(value, _and_zero(made.gradient), _and_zero(made.hessian), squares)
    n_coupled = 1 + form.r  # squares and b; M depends on theta alone
    starts = [0] * n_coupled + [form.n_mean + form.p] * (len(sum_names(form)) - n_coupled)
    first, second = _as_initial(made, range(len(starts)), starts)
    closed = sums(
        closing_cell(form),
        _one_step(lanes.n),
        params,
        np.ascontiguousarray(made.value.T),
        terms=("S", "D"),
        order=order,
        d_initial=first,
        dd_initial=second,
    )
    return Parts(closed.value, closed.gradient, closed.hessian, squares)


def parts_by_filter(form: Form, exact: bool, lanes: Lanes, params: np.ndarray, order: int) -> Parts:
    """Parts of any series; parameters as for `parts_by_sums`."""
    k = form.n_params
    initial, first, second = presample(form, exact, params, order)
    made = sums(
        filter_cell(form, certain=not exact),
        lanes,
        np.column_stack([params, np.ones(lanes.n)]),
        initial,
        terms=("square", "log_f"),
        products=(("e", "w_e"), ("v", "w_v")) if order == 1 else (),
        order=order,
        d_initial=first,
        dd_initial=second,
    )
    parts = Parts(
        made.value,
        None if made.gradient is None else made.gradient[:, :, :k],
        None if made.hessian is None else made.hessian[:, :, :k, :k],
    )
    if made.products is None:
        return parts
    squares, spreads = made.products[:, :, :k, :k]
    return parts._replace(squares=squares, spreads=spreads)


def with_differences(
    made: Callable[..., Parts], form: Form, exact: bool, lanes: Lanes, params: np.ndarray
) -> Parts:
    """Parts whose second derivatives are differences of exact gradients, of fourth order.

    They have some ten digits. Parameters are as for `made`, one of the two above.
    """
    columns = []
    for j in range(params.shape[1]):
        slopes = []
        for steps in (1, -1, 2, -2):
            moved = params.copy()
            moved[:, j] += steps * _STEP
            gradient = made(form, exact, lanes, moved, 1).gradient
            assert gradient is not None  # by its order
            slopes.append(gradient)
        columns.append((8 * (slopes[0] - slopes[1]) - (slopes[2] - slopes[3])) / (12 * _STEP))
    hessian = np.stack(columns, axis=-1)
    parts = made(form, exact, lanes, params, 1)
    return Parts(parts.value, parts.gradient, (hessian + hessian.swapaxes(2, 3)) / 2)


def presample(
    form: Form, exact: bool, params: np.ndarray, order: int
) -> tuple[np.ndarray, First, Second]:
    """Memory of the filter before the first row, (N, fields), and its derivatives."""
    n = len(params)
    if not exact:
        return np.zeros((n, form.dimension)), {}, {}
    cell = presample_cell(form)
    made = sums(
        cell, _one_step(n), params, np.zeros((n, 0)), terms=cell.field_names[0], order=order
    )
    triangle = lower_triangle(form.dimension)
    fields = [
        form.dimension + triangle.index((form.d + i, form.d + j)) for i, j in lower_triangle(form.r)
    ]
    initial = np.zeros((n, form.dimension + len(triangle)))
    initial[:, fields] = made.value.T
    return initial, *_as_initial(made, fields, [form.n_mean] * len(fields))


def _as_initial(made: Sums, fields: Sequence[int], starts: Sequence[int]) -> tuple[First, Second]:
    """Derivatives of sums as those of the memory in which they are put.

    The sum in each of the `fields` depends on the parameters from its start on.
    """
    first: First = {}
    second: Second = {}
    for term, (field, start) in enumerate(zip(fields, starts, strict=True)):
        if made.gradient is None:
            continue
        own = range(start, made.gradient.shape[2])
        first |= {(field, i): made.gradient[term, :, i] for i in own}
        if made.hessian is not None:
            pairs = [(i, j) for i in own for j in own if i <= j]
            second |= {(field, i, j): made.hessian[term, :, i, j] for i, j in pairs}
    return first, second


def _one_step(n: int) -> Lanes:
    """For cells that take one step and no input."""
    return Lanes(np.zeros((n, 1, 1)))


def _and_zero(part: np.ndarray | None) -> np.ndarray | None:
    """Of S, and zero for D."""
    return None if part is None else np.concatenate([part, np.zeros_like(part)])
