r"""Theta models of series with exogenous columns: all parameters climb together.

Given the weights of line and level, errors are linear in the rows: the errors of
:math:`y_t - x_t'\beta` are the errors of y less the errors of the columns times :math:`\beta`. An
innovations regression, least squares of errors on errors, gives :math:`\beta`. From there a
Gauss-Newton search runs over alpha, :math:`w = 1 / \theta`, :math:`\lambda = \ell_0 - w z_1`, which
is bounded as without columns, and :math:`\beta`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tsrnn.kernels import paths
from tsrnn.linear._estimates import PERFECT
from tsrnn.linear._optimise import Evaluation, Optimum, differenced_hessian, maximise
from tsrnn.linear.theta._cells import GIVEN, STATE, row_cell
from tsrnn.linear.theta._likelihood import ALPHA, THETA, Moments, beginning, lines, with_ends

TOLERANCE = 1e-10  # decrement: 1e-5 standard errors
SCORING, MOST = 20, 60  # Gauss-Newton iterations, and iterations in all
AT_ONCE = 512  # series whose derivatives fit into the cache
_NEAR = 1e-6  # step of the forward differences in the Hessian of Newton's method
_LAMBDA, _ALPHA, _W, _SLOPES = 0, 1, 2, 3  # positions among the parameters of the search
_LEVEL = STATE.index("level")


class Ends(NamedTuple):
    """Optima of the search for N series."""

    params: np.ndarray  # (N, 3), level, alpha and theta
    slopes: np.ndarray  # (N, k)
    best: Optimum  # in the parameters of the search


class Regression:
    """Likelihood of N series (N, T) with exogenous columns (N, T, k).

    Other arguments are as in `Likelihood`.
    """

    def __init__(
        self,
        values: np.ndarray,
        columns: np.ndarray,
        dynamic: bool,
        theta: float | None,
        estimated: bool,
    ) -> None:
        self.values, self._dynamic, self._theta = values, dynamic, theta
        self._estimated = estimated
        seen = np.isfinite(values)
        # Columns are missing where y is: both go through the same filter.
        self.columns = np.where(seen[:, :, None], columns, np.nan)
        self.n_obs = (seen & (np.arange(values.shape[1]) >= GIVEN)).sum(1)

    def rest(self, slopes: np.ndarray, units: np.ndarray | None = None) -> np.ndarray:
        """Values (n, T) less the effects of the columns."""
        units = np.arange(len(self.values)) if units is None else units
        return self.values[units] - np.einsum("ntk,nk->nt", self.columns[units], slopes)

    def regressed(self, params: np.ndarray) -> np.ndarray:
        """Coefficients (N, k) of least squares at level, alpha and theta (N, 3)."""
        units, weight = np.arange(len(params)), 1 / params[:, 2]
        search = np.column_stack([
            params[:, 0] - weight * self.values[:, 0], params[:, 1], weight,
            np.zeros((len(params), self.columns.shape[2])),
        ])  # fmt: skip
        errors, slopes = self._errors(search, units, follows=True)
        X, across = -slopes[:, :, _SLOPES:], -slopes[:, :, _SLOPES:].swapaxes(1, 2)
        return (np.linalg.pinv(across @ X) @ (across @ errors[:, :, None]))[:, :, 0]

    def climb(self, params: np.ndarray, slopes: np.ndarray) -> Ends:
        """Highest optima from level, alpha and theta (N, 3) and coefficients (N, k)."""
        first = self.rest(slopes)[:, 0]
        weight = 1 / params[:, 2]
        start = np.column_stack([params[:, 0] - weight * first, params[:, 1], weight, slopes])
        lower, upper = np.full((2, *start.shape), np.inf)
        lower *= -1
        # The first mean is no further from the first value than the farthest value.
        reach = np.nanmax(np.abs(self.values - self.values[:, :1]), 1) * self._estimated
        lower[:, _LAMBDA], upper[:, _LAMBDA] = -reach, reach
        lower[:, _ALPHA], upper[:, _ALPHA] = ALPHA
        least, most = (THETA[0], THETA[1]) if self._theta is None else (self._theta,) * 2
        lower[:, _W], upper[:, _W] = 1 / most, 1 / least
        best = maximise(
            self.evaluate, start, lower=lower, upper=upper, scoring=SCORING, tol=TOLERANCE,
            max_iter=MOST,
        )  # fmt: skip
        at, slopes = best.params, best.params[:, _SLOPES:]
        level = at[:, _LAMBDA] + at[:, _W] * self.rest(slopes)[:, 0]
        return Ends(np.stack([level, at[:, _ALPHA], 1 / at[:, _W]], 1), slopes, best)

    def evaluate(self, params: np.ndarray, units: np.ndarray, exact: bool) -> Evaluation:
        """Log-likelihood with sigma2 concentrated out, for `maximise`.

        The Hessian uses differences of gradients in alpha and w; errors are linear in the rest.
        """
        parts = [
            self._evaluated(params[begin : begin + AT_ONCE], units[begin : begin + AT_ONCE])
            for begin in range(0, len(units), AT_ONCE)
        ]
        evaluation = Evaluation(*map(np.concatenate, zip(*parts, strict=True)))
        if not exact:
            return evaluation
        curvature = evaluation.curvature.copy()
        for j in (_ALPHA, _W) if self._theta is None else (_ALPHA,):
            moved = params.copy()
            step = np.where(params[:, j] > 0.5, -_NEAR, _NEAR)  # towards the middle
            moved[:, j] += step
            slope = self.evaluate(moved, units, False).gradient - evaluation.gradient
            curvature[:, :, j] = curvature[:, j] = -slope / step[:, None]
        return evaluation._replace(curvature=curvature)

    def _evaluated(self, params: np.ndarray, units: np.ndarray) -> tuple[np.ndarray, ...]:
        e, de = self._errors(params, units, follows=True)
        n, across = self.n_obs[units], de.swapaxes(1, 2)
        square = (e**2).sum(1)
        usable = np.isfinite(square) & (square > PERFECT * n)
        variance = np.where(usable, square / n, 1.0)
        value = np.where(usable, -0.5 * n * (np.log(2 * math.pi * variance) + 1), -np.inf)
        gradient = -(across @ e[:, :, None])[:, :, 0] / variance[:, None]
        return value, gradient, across @ de / variance[:, None, None]

    def moments(self, params: np.ndarray, slopes: np.ndarray, sigma2: np.ndarray) -> Moments:
        """Derivatives by level, alpha and theta (N, 3), slopes (N, k) and sigma2 (N,).

        A level that is not estimated moves with theta and the slopes.
        """
        at = np.column_stack([params, slopes, sigma2])
        gradient, opg, information = self._scores(at)
        hessian = differenced_hessian(lambda moved: self._scores(moved)[0], at, range(at.shape[1]))
        return Moments(gradient, (hessian + hessian.swapaxes(1, 2)) / 2, opg, information)

    def _scores(self, at: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Gradient, outer products of scores and information at natural parameters."""
        units, sigma2 = np.arange(len(at)), at[:, -1, None]
        follows, weight = not self._estimated, 1 / at[:, 2]
        first = self.rest(at[:, _SLOPES:-1])[:, 0]
        level = np.zeros(len(at)) if follows else at[:, 0] - weight * first
        search = np.column_stack([level, at[:, 1], weight, at[:, _SLOPES:-1]])
        e, de = self._errors(search, units, follows=follows)
        # By theta = 1 / w; a level that is not estimated is no parameter.
        de[:, :, _W] *= -(weight**2)[:, None]
        if follows:
            de[:, :, _LAMBDA] = 0.0
        counted = np.isfinite(self.values) & (np.arange(self.values.shape[1]) >= GIVEN)
        spread = np.where(counted, e**2 / sigma2 - 1, 0.0) / (2 * sigma2)
        scores = np.concatenate([-de * (e / sigma2)[:, :, None], spread[:, :, None]], 2)
        information = np.zeros((len(at), at.shape[1], at.shape[1]))
        information[:, :-1, :-1] = de.swapaxes(1, 2) @ de / sigma2[:, :, None]
        information[:, -1, -1] = self.n_obs / (2 * at[:, -1] ** 2)
        return scores.sum(1), scores.swapaxes(1, 2) @ scores, information

    def _errors(
        self, params: np.ndarray, units: np.ndarray, *, follows: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """Errors (n, T) and their derivatives (n, T, 3 + k) at parameters of the search.

        With `follows` the level before the first row moves with w and the slopes.
        """
        weight, slopes = params[:, _W], params[:, _SLOPES:]
        rest = self.rest(slopes, units)
        cell = np.column_stack([np.zeros(len(params)), params[:, _ALPHA], 1 / weight])
        d_cell, d_initial = np.zeros((len(params), 3, 3)), np.zeros((len(params), 3, len(STATE)))
        d_initial[:, _LAMBDA, _LEVEL] = 1.0
        d_cell[:, _ALPHA, 1], d_cell[:, _W, 2] = 1.0, -1 / weight**2
        if follows:
            d_initial[:, _W, _LEVEL] = rest[:, 0]
        level = params[:, _LAMBDA] + weight * rest[:, 0]
        table = self._filtered(rest, cell, level, d_cell, d_initial)
        none, derivatives = np.zeros((len(params), 0, 3)), [table[:, :, :3]]
        for column in np.moveaxis(self.columns[units], 2, 0):
            start = weight * column[:, 0] * follows
            unmoved = np.zeros((len(params), 0, len(STATE)))
            derivatives.append(-self._filtered(column, cell, start, none, unmoved))
        return table[:, :, 3], np.concatenate(derivatives, 2)

    def _filtered(
        self,
        rows: np.ndarray,
        cell: np.ndarray,
        level: np.ndarray,
        d_cell: np.ndarray,
        d_initial: np.ndarray,
    ) -> np.ndarray:
        """Derivatives of the errors of rows (n, T), then the errors, (n, T, d + 1)."""
        line = None
        if not self._dynamic:
            line = np.stack([part[:, -1] for part in lines(rows)], 1)
        inputs = np.ascontiguousarray(with_ends(rows))
        first = beginning(level, line)
        table = paths(
            row_cell(self._dynamic), inputs, cell, first, d_cell, d_initial, fields=("error",)
        )
        return table.fields[:, :, 0]
