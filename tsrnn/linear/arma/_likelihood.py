"""Log-likelihoods of many ARMA units in one batch, with exact derivatives.

-2 l = n log(2 pi sigma2) + D + S / sigma2 with a sum of squares S and a log-determinant D. Both
come from the filter or, for series without gaps, from sums that need no filter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from tsrnn.kernels import Lanes, Running, Sums, sums
from tsrnn.linear._estimates import PERFECT
from tsrnn.linear._optimise import Evaluation
from tsrnn.linear.arma._cells import (
    closing_cell,
    filter_cell,
    presample_cell,
    residual_cell,
    sum_names,
)
from tsrnn.linear.arma._polynomials import is_stable
from tsrnn.linear.arma._specification import Form, lower_triangle

# The exact likelihood is flat across the edge of the invertible region: a search may approach an
# optimum there from both sides. Far beyond the edge, sums grow exponentially with the rows.
OVERSHOOT = 2.0
LARGEST = 4  # largest state with compiled second derivatives: code grows with its square
_STEP = 1e-4  # of numerical differences, in parameters of standardised series

First = dict[tuple[int, int], np.ndarray]
Second = dict[tuple[int, int, int], np.ndarray]


class Moments(NamedTuple):
    """Log-likelihood and derivatives in all parameters, sigma2 last."""

    value: np.ndarray  # (N,)
    gradient: np.ndarray  # (N, k)
    hessian: np.ndarray  # (N, k, k), as the following
    opg: np.ndarray
    information: np.ndarray


class Likelihood:
    """Likelihood of N prepared series, exact or conditional on a state of zero before the data.

    `lanes` are inputs of the form's cells, finite also where values are missing. With `gaps`,
    missing rows precede observed ones.
    """

    def __init__(
        self, form: Form, lanes: Lanes, n_obs: np.ndarray, *, exact: bool, gaps: bool
    ) -> None:
        self.form, self.lanes, self.n_obs, self.exact = form, lanes, n_obs, exact
        # Scoring and Newton's method run on different units, each with its own packed lanes.
        self._gaps, self._running = gaps, (Running(lanes), Running(lanes))

    def select(self, units: np.ndarray) -> Likelihood:
        """Likelihood of the given units, which may repeat."""
        lanes, n_obs = self.lanes.select(units), self.n_obs[units]
        return Likelihood(self.form, lanes, n_obs, exact=self.exact, gaps=self._gaps)

    def evaluate(self, params: np.ndarray, units: np.ndarray, exact: bool) -> Evaluation:
        """Log-likelihood with sigma2 concentrated out, for `maximise`."""
        usable = admissible(self.form, params, self.exact, self.lanes.blocks.shape[1])
        parts = self.parts(np.where(usable[:, None], params, 0.0), units, 2 if exact else 1)
        assert parts.gradient is not None  # of order 1 or 2
        n = self.n_obs[units]
        (S, D), (dS, dD) = parts.value, parts.gradient
        usable &= PERFECT * n < S
        sigma2 = np.where(usable, S / n, 1.0)
        value = -0.5 * (n * (np.log(2 * math.pi * sigma2) + 1) + D)
        value[~usable] = -np.inf
        gradient = -0.5 * (dS / sigma2[:, None] + dD)
        if parts.hessian is not None:
            bent = parts.hessian[0] / sigma2[:, None, None]
            bent = bent - _outer(dS / sigma2[:, None]) / n[:, None, None]
            return Evaluation(value, gradient, 0.5 * (bent + parts.hessian[1]))
        # Expected information; without a filter the part by F is left out, which is small.
        assert parts.squares is not None
        curvature = parts.squares / sigma2[:, None, None]
        if parts.spreads is not None:
            curvature += parts.spreads - _outer(dD) / (2 * n[:, None, None])
        return Evaluation(value, gradient, curvature)

    def moments(
        self, params: np.ndarray, sigma2: np.ndarray | None = None
    ) -> tuple[np.ndarray, Moments]:
        """Sigma2, given or the maximum likelihood estimate, and the moments there."""
        parts = self.parts(params, np.arange(len(params)), 2)
        if sigma2 is None:  # a perfect fit leaves rounding, possibly negative
            sigma2 = np.maximum(parts.value[0] / self.n_obs, PERFECT)
        initial, slopes, _ = presample(self.form, self.exact, params, 1)
        scores = sums(
            filter_cell(self.form, certain=not self.exact),
            self.lanes,
            np.column_stack([params, sigma2]),
            initial,
            terms=("l",),
            products=(("l", None), ("e", "w_e"), ("v", "w_v")),
            order=1,
            d_initial=slopes,
        )
        assert parts.gradient is not None
        assert parts.hessian is not None
        assert scores.gradient is not None
        assert scores.products is not None
        opg, squares, spreads = scores.products
        k = params.shape[1]
        hessian = np.empty((len(params), k + 1, k + 1))
        hessian[:, :k, :k] = -0.5 * (parts.hessian[0] / sigma2[:, None, None] + parts.hessian[1])
        cross = 0.5 * parts.gradient[0] / sigma2[:, None] ** 2
        hessian[:, :k, k] = hessian[:, k, :k] = cross
        hessian[:, k, k] = (0.5 * self.n_obs - parts.value[0] / sigma2) / sigma2**2
        moments = Moments(scores.value[0], scores.gradient[0], hessian, opg, squares + spreads)
        return sigma2, moments

    def parts(self, params: np.ndarray, units: np.ndarray, order: int) -> Parts:
        """S and D of the given units with derivatives up to an order."""
        lanes, places = self._running[order == 2].covering(units)
        full = np.zeros((lanes.n, params.shape[1]))
        full[places] = params
        method = parts_by_filter if self._gaps or self.form.d else parts_by_sums
        if order == 2 and self.form.dimension > LARGEST:
            parts = with_differences(method, self.form, self.exact, lanes, full)
        else:
            parts = method(self.form, self.exact, lanes, full, order)
        return parts if len(places) == lanes.n else parts.select(places)


def admissible(form: Form, params: np.ndarray, exact: bool, n_rows: int = 0) -> np.ndarray:
    """Mask (n,) of parameters whose roots are admissible.

    Roots of theta must not be inside the unit circle, with the exact likelihood of `n_rows` rows
    not far inside. With the exact likelihood, roots of phi must be outside.
    """
    first, second = form.n_mean, form.n_mean + form.p
    radius = 1 + (OVERSHOOT / n_rows if exact and n_rows else 1e-6)  # 1e-6: rounding of a root
    shrinkage = radius ** -np.arange(1.0, form.q + 1)
    fine = is_stable(-params.T[second : second + form.q] * shrinkage[:, None])
    return fine & is_stable(params.T[first:second]) if exact else fine


class Parts(NamedTuple):
    """S and D and their derivatives.

    Of order 1 only, `squares` (N, k, k) are sums over time of g g' / F with the gradient g of an
    innovation; `spreads` (N, k, k), from the filter, of g g' / (2 F^2) with the gradient g of F.
    """

    value: np.ndarray  # (2, N)
    gradient: np.ndarray | None = None  # (2, N, k)
    hessian: np.ndarray | None = None  # (2, N, k, k)
    squares: np.ndarray | None = None
    spreads: np.ndarray | None = None

    def select(self, places: np.ndarray) -> Parts:
        """Parts of the given units."""
        derivatives = (None if part is None else part[:, places] for part in self[1:3])
        products = (None if part is None else part[places] for part in self[3:])
        return Parts(self.value[:, places], *derivatives, *products)


def parts_by_sums(form: Form, exact: bool, lanes: Lanes, params: np.ndarray, order: int) -> Parts:
    """Parts of series without gaps and d = 0, without a filter, up to an order of derivatives."""
    initial = np.zeros((lanes.n, form.p + form.q + form.r * exact))
    initial[:, form.p + form.q :][:, :1] = 1.0  # h begins at (1, 0, ...), if exact
    names = sum_names(form)
    totals = sums(
        residual_cell(form, conditional=not exact),
        lanes,
        params,
        initial,
        terms=names if exact else names[:1],
        products=(("e", "weight"),) if order == 1 else (),
        order=order,
    )
    squares = None if totals.products is None else totals.products[0]
    if not exact:  # the first state is known, and D is zero
        value = np.concatenate([totals.value, np.zeros_like(totals.value)])
        return Parts(value, _and_zero(totals.gradient), _and_zero(totals.hessian), squares)
    n_coupled = 1 + form.r  # squares and b depend on all parameters, M on theta only
    starts = [0] * n_coupled + [form.n_mean + form.p] * (len(names) - n_coupled)
    first, second = _as_initial(totals, range(len(starts)), starts)
    closed = sums(
        closing_cell(form),
        _one_step(lanes.n),
        params,
        np.ascontiguousarray(totals.value.T),
        terms=("S", "D"),
        order=order,
        d_initial=first,
        dd_initial=second,
    )
    return Parts(closed.value, closed.gradient, closed.hessian, squares)


def parts_by_filter(form: Form, exact: bool, lanes: Lanes, params: np.ndarray, order: int) -> Parts:
    """Parts of any series by the filter; arguments as in `parts_by_sums`."""
    k = form.n_params
    initial, first, second = presample(form, exact, params, order)
    totals = sums(
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
        totals.value,
        None if totals.gradient is None else totals.gradient[:, :, :k],
        None if totals.hessian is None else totals.hessian[:, :, :k, :k],
    )
    if totals.products is None:
        return parts
    squares, spreads = totals.products[:, :, :k, :k]
    return parts._replace(squares=squares, spreads=spreads)


def with_differences(
    method: Callable[..., Parts], form: Form, exact: bool, lanes: Lanes, params: np.ndarray
) -> Parts:
    """Parts with second derivatives as differences of exact gradients, accurate to ten digits.

    `method` is `parts_by_sums` or `parts_by_filter`.
    """
    columns = []
    for j in range(params.shape[1]):
        slopes = []
        for steps in (1, -1, 2, -2):
            moved = params.copy()
            moved[:, j] += steps * _STEP
            gradient = method(form, exact, lanes, moved, 1).gradient
            assert gradient is not None
            slopes.append(gradient)
        columns.append((8 * (slopes[0] - slopes[1]) - (slopes[2] - slopes[3])) / (12 * _STEP))
    hessian = np.stack(columns, axis=-1)
    parts = method(form, exact, lanes, params, 1)
    return Parts(parts.value, parts.gradient, (hessian + hessian.swapaxes(2, 3)) / 2)


def presample(
    form: Form, exact: bool, params: np.ndarray, order: int
) -> tuple[np.ndarray, First, Second]:
    """State (N, fields) of the filter before the first row, and its derivatives."""
    n = len(params)
    if not exact:
        return np.zeros((n, form.dimension)), {}, {}
    cell = presample_cell(form)
    totals = sums(
        cell, _one_step(n), params, np.zeros((n, 0)), terms=cell.field_names[0], order=order
    )
    triangle = lower_triangle(form.dimension)
    fields = [
        form.dimension + triangle.index((form.d + i, form.d + j)) for i, j in lower_triangle(form.r)
    ]
    initial = np.zeros((n, form.dimension + len(triangle)))
    initial[:, fields] = totals.value.T
    return initial, *_as_initial(totals, fields, [form.n_mean] * len(fields))


def _as_initial(totals: Sums, fields: Sequence[int], starts: Sequence[int]) -> tuple[First, Second]:
    """Derivatives of sums, arranged as derivatives of the initial state that holds them.

    The sum in each of the `fields` depends on the parameters from its start on.
    """
    first: First = {}
    second: Second = {}
    for term, (field, start) in enumerate(zip(fields, starts, strict=True)):
        if totals.gradient is None:
            continue
        numbers = range(start, totals.gradient.shape[2])
        first |= {(field, i): totals.gradient[term, :, i] for i in numbers}
        if totals.hessian is not None:
            pairs = [(i, j) for i in numbers for j in numbers if i <= j]
            second |= {(field, i, j): totals.hessian[term, :, i, j] for i, j in pairs}
    return first, second


def _one_step(n: int) -> Lanes:
    """Lanes for cells with one step and no input."""
    return Lanes(np.zeros((n, 1, 1)))


def _and_zero(part: np.ndarray | None) -> np.ndarray | None:
    """Derivatives of S, with zeros for D."""
    return None if part is None else np.concatenate([part, np.zeros_like(part)])


def _outer(a: np.ndarray) -> np.ndarray:
    return a[:, :, None] * a[:, None, :]
