"""Log-likelihoods of many ARMA units at once, with exact derivatives."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tsrnn.kernels import Lanes, Running, sums
from tsrnn.linear._optimise import Evaluation
from tsrnn.linear.arma._filter_cell import filter_cell
from tsrnn.linear.arma._form import Form
from tsrnn.linear.arma._parts import (
    Parts,
    parts_by_filter,
    parts_by_sums,
    presample,
    with_differences,
)
from tsrnn.linear.arma._polynomials import is_stable

# The exact likelihood is level across the edge of the invertible region, so that an optimum on
# it can be approached from both sides; beyond, sums grow with the length of the series.
OVERSHOOT = 2.0
PERFECT = 1e-25  # mean square error of scaled rows that is rounding: no bound to the likelihood
LARGEST = 4  # dimension of a state whose second derivatives are compiled: code grows as its square


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
        self._gaps, self._running = gaps, Running(lanes)

    def select(self, units: np.ndarray) -> Likelihood:
        """That of some units, which may be named more than once."""
        lanes, n_obs = self.lanes.select(units), self.n_obs[units]
        return Likelihood(self.form, lanes, n_obs, exact=self.exact, gaps=self._gaps)

    def evaluate(self, params: np.ndarray, units: np.ndarray, exact: bool) -> Evaluation:
        """Log-likelihood with sigma2 concentrated out, for `maximise`."""
        usable = admissible(self.form, params, self.exact, self.lanes.blocks.shape[1])
        parts = self.parts(np.where(usable[:, None], params, 0.0), units, 2 if exact else 1)
        assert parts.gradient is not None  # by its order
        n = self.n_obs[units]
        (S, D), (dS, dD) = parts.value, parts.gradient
        usable &= PERFECT * n < S
        sigma2 = np.where(usable, S / n, 1.0)
        value = -0.5 * (n * (np.log(2 * math.pi * sigma2) + 1) + D)
        value[~usable] = -np.inf
        gradient = -0.5 * (dS / sigma2[:, None] + dD)
        return Evaluation(value, gradient, _concentrated_curvature(parts, sigma2, n))

    def moments(
        self, params: np.ndarray, sigma2: np.ndarray | None = None
    ) -> tuple[np.ndarray, Moments]:
        """Sigma2, by default that of the highest likelihood, and what inference needs."""
        parts = self.parts(params, np.arange(len(params)), 2)
        sigma2 = parts.value[0] / self.n_obs if sigma2 is None else sigma2
        initial, slopes, _ = presample(self.form, self.exact, params, 1)
        made = sums(
            filter_cell(self.form, certain=not self.exact),
            self.lanes,
            np.column_stack([params, sigma2]),
            initial,
            terms=("l",),
            products=(("l", None), ("e", "w_e"), ("v", "w_v")),
            order=1,
            d_initial=slopes,
        )
        assert made.gradient is not None  # by its order
        assert made.products is not None
        opg, squares, spreads = made.products
        hessian = _joint_hessian(parts, sigma2, self.n_obs)
        return sigma2, Moments(made.value[0], made.gradient[0], hessian, opg, squares + spreads)

    def parts(self, params: np.ndarray, units: np.ndarray, order: int) -> Parts:
        """S and D of some units with derivatives up to an order."""
        lanes, places = self._running.covering(units)
        full = np.zeros((lanes.n, params.shape[1]))
        full[places] = params
        made = parts_by_filter if self._gaps or self.form.d else parts_by_sums
        if order == 2 and self.form.dimension > LARGEST:
            parts = with_differences(made, self.form, self.exact, lanes, full)
        else:
            parts = made(self.form, self.exact, lanes, full, order)
        return parts if len(places) == lanes.n else parts.select(places)


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


def _concentrated_curvature(parts: Parts, sigma2: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Minus the Hessian if there is one, else the information that the filter gives.

    Series that are not filtered leave out what F tells, which is little.
    """
    assert parts.gradient is not None  # by its order
    (dS, dD), scale = parts.gradient, sigma2[:, None, None]
    if parts.hessian is None:
        assert parts.squares is not None
        curvature = parts.squares / scale
        if parts.spreads is not None:
            curvature += parts.spreads - _outer(dD) / (2 * n[:, None, None])
        return curvature
    bent = parts.hessian[0] / scale - _outer(dS / sigma2[:, None]) / n[:, None, None]
    return 0.5 * (bent + parts.hessian[1])


def _joint_hessian(parts: Parts, sigma2: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Hessian of the log-likelihood in the parameters and sigma2."""
    assert parts.gradient is not None  # by its order
    assert parts.hessian is not None
    k = parts.gradient.shape[2]
    hessian = np.empty((len(n), k + 1, k + 1))
    hessian[:, :k, :k] = -0.5 * (parts.hessian[0] / sigma2[:, None, None] + parts.hessian[1])
    cross = 0.5 * parts.gradient[0] / sigma2[:, None] ** 2
    hessian[:, :k, k] = hessian[:, k, :k] = cross
    hessian[:, k, k] = (0.5 * n - parts.value[0] / sigma2) / sigma2**2
    return hessian


def _outer(a: np.ndarray) -> np.ndarray:
    return a[:, :, None] * a[:, None, :]
