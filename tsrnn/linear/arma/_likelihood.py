"""Log-likelihoods of many ARMA units at once, with exact derivatives."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tsrnn.kernels import Lanes, Running, sums
from tsrnn.linear._optimise import Evaluation
from tsrnn.linear.arma._filter_cell import filter_cell
from tsrnn.linear.arma._form import Form, lower_triangle
from tsrnn.linear.arma._polynomials import is_stable
from tsrnn.linear.arma._sum_cells import closing_cell, presample_cell, residual_cell, sum_names

# The exact likelihood is level across the edge of the invertible region, so that an optimum on
# it can be approached from both sides; beyond, sums grow with the length of the series.
OVERSHOOT = 2.0


class Parts(NamedTuple):
    """S and D of -2 l = n log(2 pi sigma2) + D + S / sigma2, and their derivatives.

    Attributes
    ----------
    value : array of shape (2, N)
    gradient : array of shape (2, N, k)
    hessian : array of shape (2, N, k, k) or None
    squares : array of shape (N, k, k) or None
        Sum over time of e' e'^T / F, with e' the gradient of an innovation.
    spreads : array of shape (N, k, k) or None
        Sum over time of F' F'^T / (2 F^2).
    """

    value: np.ndarray
    gradient: np.ndarray
    hessian: np.ndarray | None = None
    squares: np.ndarray | None = None
    spreads: np.ndarray | None = None


class Moments(NamedTuple):
    """Log-likelihood in all parameters, sigma2 the last.

    Attributes
    ----------
    value : array of shape (N,)
    gradient : array of shape (N, k)
    hessian, opg, information : arrays of shape (N, k, k)
    """

    value: np.ndarray
    gradient: np.ndarray
    hessian: np.ndarray
    opg: np.ndarray
    information: np.ndarray


class Likelihood:
    """Likelihood of N series that are prepared.

    Parameters
    ----------
    form : Form
    lanes : Lanes
        The inputs of the form's cells, with numbers in place of missing values.
    n_obs : array of shape (N,)
    exact : bool
        Else from a state that is zero before the first row.
    gaps : bool
        Whether rows are masked that others follow.
    """

    def __init__(
        self, form: Form, lanes: Lanes, n_obs: np.ndarray, *, exact: bool, gaps: bool
    ) -> None:
        self.form, self.lanes, self.n_obs, self.exact = form, lanes, n_obs, exact
        self._gaps, self._filters = gaps, gaps or form.d > 0
        self._running = Running(lanes)

    def select(self, units: np.ndarray) -> Likelihood:
        """That of some units, which may be named more than once."""
        lanes, n_obs = self.lanes.select(units), self.n_obs[units]
        return Likelihood(self.form, lanes, n_obs, exact=self.exact, gaps=self._gaps)

    def admissible(self, params: np.ndarray) -> np.ndarray:
        """Whether all roots are where they must be, shape (n,)."""
        return admissible(self.form, params, self.exact, self.lanes.blocks.shape[1])

    def evaluate(self, params: np.ndarray, units: np.ndarray, exact: bool) -> Evaluation:
        """Log-likelihood with sigma2 concentrated out, for `maximise`."""
        usable = self.admissible(params)
        parts = self.parts(np.where(usable[:, None], params, 0.0), units, 2 if exact else 1)
        n = self.n_obs[units]
        (S, D), (dS, dD) = parts.value, parts.gradient
        sigma2 = S / n
        value = -0.5 * (n * (np.log(2 * math.pi * sigma2) + 1) + D)
        value[~usable] = -np.inf
        gradient = -0.5 * (dS / sigma2[:, None] + dD)
        return Evaluation(value, gradient, _concentrated_curvature(parts, sigma2, n))

    def values(self, params: np.ndarray, units: np.ndarray) -> np.ndarray:
        """Concentrated log-likelihoods (n,), without derivatives."""
        usable = self.admissible(params)
        parts = self.parts(np.where(usable[:, None], params, 0.0), units, 0)
        n = self.n_obs[units]
        value = -0.5 * (n * (np.log(2 * math.pi * parts.value[0] / n) + 1) + parts.value[1])
        return np.where(usable, value, -np.inf)

    def moments(
        self, params: np.ndarray, sigma2: np.ndarray | None = None
    ) -> tuple[np.ndarray, Moments]:
        """Sigma2, by default that of the highest likelihood, and what inference needs."""
        parts = self.parts(params, np.arange(len(params)), 2)
        sigma2 = parts.value[0] / self.n_obs if sigma2 is None else sigma2
        hessian = _joint_hessian(parts, sigma2, self.n_obs)
        joint = np.column_stack([params, sigma2])
        initial, slopes, _ = self._presample(params, 1)
        made = sums(
            filter_cell(self.form, certain=not self.exact),
            self.lanes,
            joint,
            initial,
            terms=("l",),
            products=(("l", None), ("e", "w_e"), ("v", "w_v")),
            order=1,
            d_initial=slopes,
        )
        opg, squares, spreads = made.products
        return sigma2, Moments(made.value[0], made.gradient[0], hessian, opg, squares + spreads)

    def parts(self, params: np.ndarray, units: np.ndarray, order: int) -> Parts:
        """S and D of some units with derivatives up to an order."""
        lanes, places = self._running.covering(units)
        full = np.zeros((lanes.n, params.shape[1]))
        full[places] = params
        made = self._by_filter if self._filters else self._by_sums
        parts = made(lanes, full, order)
        if len(places) == lanes.n:
            return parts
        value, gradient, hessian, squares, spreads = parts
        return Parts(
            value[:, places],
            gradient if gradient is None else gradient[:, places],
            hessian if hessian is None else hessian[:, places],
            squares if squares is None else squares[places],
            spreads if spreads is None else spreads[places],
        )

    def _by_sums(self, lanes: Lanes, params: np.ndarray, order: int) -> Parts:
        form = self.form
        initial = np.zeros((lanes.n, form.p + form.q + form.r * self.exact))
        if self.exact:
            initial[:, form.p + form.q] = 1.0
        names = sum_names(form) if self.exact else sum_names(form)[:1]
        made = sums(
            residual_cell(form, conditional=not self.exact),
            lanes,
            params,
            initial,
            terms=names,
            products=(("e", "weight"),) if order == 1 else (),
            order=order,
        )
        squares = made.products[0] if order == 1 else None
        if not self.exact:
            return _without_determinant(made.value, made.gradient, made.hessian, squares)
        first, second = self._slopes_of_sums(made.gradient, made.hessian)
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

    def _by_filter(self, lanes: Lanes, params: np.ndarray, order: int) -> Parts:
        initial, first, second = self._presample(params, order)
        made = sums(
            filter_cell(self.form, certain=not self.exact),
            lanes,
            np.column_stack([params, np.ones(lanes.n)]),
            initial,
            terms=("square", "log_f"),
            products=(("e", "w_e"), ("v", "w_v")) if order == 1 else (),
            order=order,
            d_initial=first,
            dd_initial=second,
        )
        k = self.form.n_params
        squares, spreads = made.products[:, :, :k, :k] if order == 1 else (None, None)
        return Parts(
            made.value,
            made.gradient[:, :, :k] if order > 0 else None,
            made.hessian[:, :, :k, :k] if order > 1 else None,
            squares,
            spreads,
        )

    def _presample(self, params: np.ndarray, order: int) -> tuple[np.ndarray, dict, dict]:
        """Memory of the filter before the first row, and its derivatives."""
        form, n = self.form, len(params)
        if not self.exact:
            return np.zeros((n, form.dimension)), {}, {}
        names = presample_cell(form).field_names[0]
        made = sums(
            presample_cell(form), _one_step(n), params, np.zeros((n, 0)), terms=names, order=order
        )
        triangle = lower_triangle(form.dimension)
        fields = [form.dimension + triangle.index((form.d + i, form.d + j))
                  for i, j in lower_triangle(form.r)]  # fmt: skip
        initial = np.zeros((n, form.dimension + len(triangle)))
        initial[:, fields] = made.value.T
        own = range(form.n_mean, form.n_params)
        first, second = {}, {}
        for k, field in enumerate(fields):
            if order > 0:
                first |= {(field, i): made.gradient[k, :, i] for i in own}
            if order > 1:
                second |= {(field, i, j): made.hessian[k, :, i, j]
                           for i in own for j in own if i <= j}  # fmt: skip
        return initial, first, second

    def _slopes_of_sums(
        self, gradient: np.ndarray | None, hessian: np.ndarray | None
    ) -> tuple[dict, dict]:
        """Derivatives of the sums as those of the memory of the closing step."""
        form = self.form
        first, second = {}, {}
        for field in range(len(sum_names(form))):
            from_ = 0 if field <= form.r else form.n_mean + form.p  # M depends on theta alone
            own = range(from_, form.n_params)
            if gradient is not None:
                first |= {(field, i): gradient[field, :, i] for i in own}
            if hessian is not None:
                second |= {(field, i, j): hessian[field, :, i, j]
                           for i in own for j in own if i <= j}  # fmt: skip
        return first, second


def admissible(form: Form, params: np.ndarray, exact: bool, n_rows: int = 0) -> np.ndarray:
    """Whether all roots are where they must be, shape (n,).

    Those of theta not inside the unit circle, or for the exact likelihood of so many rows not
    far inside; for the exact likelihood those of phi outside.
    """
    first, second = form.n_mean, form.n_mean + form.p
    radius = 1 + (OVERSHOOT / n_rows if exact and n_rows else 1e-6)
    shrinkage = radius ** -np.arange(1.0, form.q + 1)
    fine = is_stable(-params.T[second : second + form.q] * shrinkage[:, None])
    return fine & is_stable(params.T[first:second]) if exact else fine


def _one_step(n: int) -> Lanes:
    return Lanes(np.zeros((n, 1, 1)))


def _without_determinant(value, gradient, hessian, squares) -> Parts:
    """Parts of a likelihood whose D is zero."""

    def with_zero(array: np.ndarray | None) -> np.ndarray | None:
        return None if array is None else np.concatenate([array, np.zeros_like(array)])

    return Parts(with_zero(value), with_zero(gradient), with_zero(hessian), squares)


def _concentrated_curvature(parts: Parts, sigma2: np.ndarray, n: np.ndarray) -> np.ndarray:
    (dS, dD), scale = parts.gradient, sigma2[:, None, None]
    if parts.hessian is None:
        curvature = parts.squares / scale
        if parts.spreads is not None:
            curvature += parts.spreads - _outer(dD, dD) / (2 * n[:, None, None])
        return curvature
    slope = dS / sigma2[:, None]
    bent = parts.hessian[0] / scale - _outer(slope, slope) / n[:, None, None]
    return 0.5 * (bent + parts.hessian[1])


def _joint_hessian(parts: Parts, sigma2: np.ndarray, n: np.ndarray) -> np.ndarray:
    k = parts.gradient.shape[2]
    hessian = np.empty((len(n), k + 1, k + 1))
    hessian[:, :k, :k] = -0.5 * (parts.hessian[0] / sigma2[:, None, None] + parts.hessian[1])
    cross = 0.5 * parts.gradient[0] / sigma2[:, None] ** 2
    hessian[:, :k, k] = hessian[:, k, :k] = cross
    hessian[:, k, k] = (0.5 * n - parts.value[0] / sigma2) / sigma2**2
    return hessian


def _outer(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a[:, :, None] * b[:, None, :]
