r"""Log-likelihoods of complex exponential smoothing of many series at once, with derivatives.

.. math:: \ell = -\tfrac12 \sum_t \Big( \log 2 \pi \sigma^2 + \frac{e_t^2}{\sigma^2} \Big)

over the rows that are observed, from states before the first row that are backcast. Derivatives are
of all runs, those that backcast too.

All of it is linear in the rows: errors of :math:`y_t - x_t'\beta` are those of y less those of the
exogenous columns times their coefficients, which at given smoothing parameters are least squares of
these errors, an innovations regression.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from tsrnn.linear._estimates import PERFECT
from tsrnn.linear._optimise import Evaluation
from tsrnn.linear.ces._filter import backcast, last_rows, rough_states, run, season_rows
from tsrnn.linear.ces._specification import Components, bounds, to_natural

AT_ONCE = 256  # series whose derivatives stay in the cache
_NEAR = 1e-6  # of forward differences, of which Newton's steps are made
_STEP = 1e-4  # of differences in smoothing parameters


class Likelihood:
    """Likelihood of one model for some series.

    Parameters
    ----------
    model : Components
    rows : array of shape (S, T) or (S, T, 1 + m)
        Series scaled to a size of one; NaN where nothing is observed, and after the end. Behind
        them exogenous columns.
    series : integer array of shape (N,)
        Series of each of N sets of parameters, by number.
    """

    def __init__(self, model: Components, rows: np.ndarray, series: np.ndarray) -> None:
        self._model, self._series = model, series
        values = rows if rows.ndim == 2 else rows[:, :, 0]
        lengths = last_rows(values)
        self._rows, self._rough = season_rows(model, values, lengths), rough_states(model, values)
        self.n_obs = np.isfinite(values).sum(1)[series]
        self._columns: list[tuple[np.ndarray, np.ndarray]] = []
        for j in range(1, 1 if rows.ndim == 2 else rows.shape[2]):
            column = np.where(np.isfinite(values), rows[:, :, j], np.nan)
            self._columns.append((season_rows(model, column, lengths), rough_states(model, column)))

    def evaluate(self, params: np.ndarray, units: np.ndarray, exact: bool) -> Evaluation:
        """Log-likelihood with sigma2 concentrated out at parameters of the search.

        The Hessian is of differences of gradients, towards the middle of the bounds. Errors are
        linear in the coefficients of columns: there the information is the Hessian.
        """
        parts = []
        for begin in range(0, len(units), AT_ONCE):
            part = slice(begin, begin + AT_ONCE)
            parts.append(self._evaluated(params[part], units[part]))
        evaluation = Evaluation(*map(np.concatenate, zip(*parts, strict=True)))
        if not exact:
            return evaluation
        middle, columns = bounds(self._model).mean(0), []
        k = len(middle)
        for j in range(k):
            moved = params.copy()
            step = np.where(params[:, j] > middle[j], -_NEAR, _NEAR)
            moved[:, j] += step
            slope = self.evaluate(moved, units, False).gradient - evaluation.gradient
            columns.append(-slope / step[:, None])
        curvature = evaluation.curvature.copy()
        curvature[:, :, :k] = np.stack(columns, 2)
        curvature[:, :k, k:] = curvature[:, k:, :k].swapaxes(1, 2)
        return evaluation._replace(curvature=(curvature + curvature.swapaxes(1, 2)) / 2)

    def _evaluated(self, params: np.ndarray, units: np.ndarray) -> tuple[np.ndarray, ...]:
        smoothing = params[:, : len(self._model.names)]
        natural, slopes = to_natural(self._model, smoothing)
        natural = np.column_stack([natural, params[:, smoothing.shape[1] :]])
        errors, _ = self._errors(natural, slopes, units)
        n, k = self.n_obs[units], params.shape[1]
        products = torch.bmm(errors.transpose(1, 2), errors).numpy()
        square = products[:, k, k]
        usable = np.isfinite(square) & (PERFECT * n < square)
        variance = np.where(usable, square / n, 1.0)
        value = -0.5 * n * (np.log(2 * math.pi * variance) + 1)
        value[~usable] = -np.inf
        weight = (1 / variance)[:, None]
        gradient = -weight * products[:, k, :k]
        return value, gradient, weight[:, None] * products[:, :k, :k]

    def values(
        self, params: np.ndarray, sigma2: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Best sigma2 (N,) at parameters (N, 4 + m) unless given, log-likelihood, initial states.

        A sigma2 that is rounding is `PERFECT` in its place.
        """
        n = len(params)
        errors, states = self._errors(params, np.zeros((n, 0, 4)), np.arange(n))
        square = errors.square().sum((1, 2)).numpy()
        sigma2 = np.maximum(square / self.n_obs, PERFECT) if sigma2 is None else sigma2
        value = -0.5 * (self.n_obs * np.log(2 * math.pi * sigma2) + square / sigma2)
        return sigma2, value, states

    def moments(self, params: np.ndarray, sigma2: np.ndarray) -> tuple[np.ndarray, ...]:
        """Gradient (N, k + 1), outer products of scores, information at (N, 4 + m) and sigma2."""
        n, k = len(params), len(self._model.names)
        slopes = np.broadcast_to(np.eye(k, 4), (n, k, 4))
        k += len(self._columns)
        table, _ = self._errors(params, slopes, np.arange(n))
        seen = torch.from_numpy(np.isfinite(self._rows[self._series])).flatten(1)
        e, de = table[:, :, k], table[:, :, :k]
        variance = torch.from_numpy(sigma2)[:, None]
        spread = torch.where(seen, e.square() / variance - 1, 0.0) / (2 * variance)
        scores = torch.cat([-de * (e / variance)[:, :, None], spread[:, :, None]], 2)
        information = np.zeros((n, k + 1, k + 1))
        information[:, :k, :k] = torch.bmm(de.transpose(1, 2), de).numpy() / sigma2[:, None, None]
        information[:, k, k] = self.n_obs / (2 * sigma2**2)
        opg = torch.bmm(scores.transpose(1, 2), scores).numpy()
        return scores.sum(1).numpy(), opg, information

    def hessian(self, params: np.ndarray, sigma2: np.ndarray) -> np.ndarray:
        """Second derivatives (N, k + 1, k + 1): differences of gradients, of some ten digits."""
        at = np.column_stack([params, sigma2])
        last = at.shape[1] - 1
        columns = [*range(len(self._model.names)), *range(4, last), last]
        hessian = np.zeros((len(at), len(columns), len(columns)))
        for j, column in enumerate(columns):
            size = _STEP * (sigma2 if column == last else np.maximum(np.abs(at[:, column]), 0.1))
            slopes = []
            for steps in (1, -1, 2, -2):
                moved = at.copy()
                moved[:, column] += steps * size
                slopes.append(self.moments(moved[:, :-1], moved[:, -1])[0])
            difference = 8 * (slopes[0] - slopes[1]) - (slopes[2] - slopes[3])
            hessian[:, :, j] = difference / (12 * size[:, None])
        return (hessian + hessian.swapaxes(1, 2)) / 2

    def _errors(
        self, params: np.ndarray, slopes: np.ndarray, units: np.ndarray
    ) -> tuple[Tensor, np.ndarray]:
        """Derivatives of the errors, then the errors, (n, T, d + 1), and states before them.

        Derivatives in the smoothing parameters with `slopes` and, if there are any, behind them
        those in the coefficients of the columns.
        """
        series = self._series[units]
        rows, rough = self._rows[series], self._rough[series]
        smoothing, nothing = np.ascontiguousarray(params[:, :4]), slopes[:, :0]
        along = []
        for j, (of_column, rough_column) in enumerate(self._columns):
            slope, column, start = params[:, 4 + j], of_column[series], rough_column[series]
            # Infinite where there is no row, NaN where there is no value, in y as in the column.
            finite = np.where(np.isfinite(column), column, 0.0)
            rows = rows - slope[:, None, None] * finite
            rough = rough - slope[:, None] * start
            if slopes.shape[1]:
                along.append(-self._run(column, smoothing, start, nothing)[0])
        table, states = self._run(rows, smoothing, rough, slopes)
        if along:
            table = np.concatenate([table[:, :, :-1], *along, table[:, :, -1:]], 2)
        return torch.from_numpy(table), states

    def _run(
        self, rows: np.ndarray, params: np.ndarray, rough: np.ndarray, slopes: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Derivatives of the errors, then the errors (n, T, d + 1); states before them."""
        states = backcast(self._model, rows, params, rough, slopes)
        table = run(self._model, rows, params, states, slopes, field="e").fields
        return table.reshape(len(params), -1, slopes.shape[1] + 1), states[:, :, -1]

    def regressed(self, params: np.ndarray) -> np.ndarray:
        """Smoothing parameters (N, 4) with the coefficients (N, 4 + m) of least squares there."""
        if not self._columns:
            return params
        nothing = np.zeros((len(params), 0, 4))
        y, *columns = (
            self._run(rows[self._series], params, rough[self._series], nothing)[0][:, :, 0]
            for rows, rough in ((self._rows, self._rough), *self._columns)
        )
        X = np.stack(columns, 2)
        across = X.swapaxes(1, 2)
        slopes = (np.linalg.pinv(across @ X) @ (across @ y[:, :, None]))[:, :, 0]
        return np.column_stack([params, slopes])
