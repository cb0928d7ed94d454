r"""Log-likelihoods of complex exponential smoothing of many series at once, with derivatives.

.. math:: \ell = -\tfrac12 \sum_t \Big( \log 2 \pi \sigma^2 + \frac{e_t^2}{\sigma^2} \Big)

over the observed rows, from backcast states before the first row. Derivatives include the
backcasting runs.

Errors are linear in the rows: the errors of :math:`y_t - x_t'\beta` are the errors of y less the
errors of the exogenous columns times :math:`\beta`. At given smoothing parameters :math:`\beta` is
an innovations regression, least squares of errors on errors.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from tsrnn.linear._estimates import PERFECT
from tsrnn.linear._optimise import Evaluation, differenced_hessian
from tsrnn.linear._samples import rows_to_last_value
from tsrnn.linear.ces._filter import backcast, rough_states, run, season_rows
from tsrnn.linear.ces._specification import Components, bounds, to_natural

AT_ONCE = 256  # series whose derivatives fit into the cache
_NEAR = 1e-6  # step of the forward differences in the Hessian of Newton's method


class Likelihood:
    """Likelihood of one model for some series, whose numbers (N,) may repeat.

    Rows (S, T) or (S, T, 1 + m) are series scaled to size one, then exogenous columns; NaN where
    missing and after the end.
    """

    def __init__(self, model: Components, rows: np.ndarray, series: np.ndarray) -> None:
        self._model, self._series = model, series
        values = rows if rows.ndim == 2 else rows[:, :, 0]
        lengths = rows_to_last_value(values)
        self._rows, self._rough = season_rows(model, values, lengths), rough_states(model, values)
        self.n_obs = np.isfinite(values).sum(1)[series]
        # Columns are missing where y is: all go through the same filter.
        m = 0 if rows.ndim == 2 else rows.shape[2] - 1
        columns = [np.where(np.isfinite(values), rows[:, :, 1 + j], np.nan) for j in range(m)]
        tables = [season_rows(model, column, lengths) for column in columns]
        rough = [rough_states(model, column) for column in columns]
        self._n_columns = m
        if m:
            self._column_rows, self._column_rough = np.stack(tables, 1), np.stack(rough, 1)

    def evaluate(self, params: np.ndarray, units: np.ndarray, exact: bool) -> Evaluation:
        """Log-likelihood with sigma2 concentrated out at parameters of the search.

        The Hessian uses differences of gradients towards the middle of the bounds. Errors are
        linear in the coefficients of columns, where the information equals the Hessian.
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
        """Maximising sigma2 (N,) at parameters (N, 4 + m), log-likelihood, and initial states.

        sigma2 may be given. `PERFECT` is the floor of the estimate.
        """
        n = len(params)
        errors, states = self._errors(params, np.zeros((n, 0, 4)), np.arange(n))
        square = errors.square().sum((1, 2)).numpy()
        sigma2 = np.maximum(square / self.n_obs, PERFECT) if sigma2 is None else sigma2
        value = -0.5 * (self.n_obs * np.log(2 * math.pi * sigma2) + square / sigma2)
        return sigma2, value, states

    def moments(self, params: np.ndarray, sigma2: np.ndarray) -> tuple[np.ndarray, ...]:
        """Gradient (N, k + 1), outer products of scores, and information at (N, 4 + m), sigma2."""
        n, k = len(params), len(self._model.names)
        slopes = np.broadcast_to(np.eye(k, 4), (n, k, 4))
        k += self._n_columns
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
        """Second derivatives (N, k + 1, k + 1) in the parameters of the model and sigma2."""
        at = np.column_stack([params, sigma2])
        columns = [*range(len(self._model.names)), *range(4, at.shape[1])]
        hessian = differenced_hessian(
            lambda moved: self.moments(moved[:, :-1], moved[:, -1])[0], at, columns
        )
        return (hessian + hessian.swapaxes(1, 2)) / 2

    def _errors(
        self, params: np.ndarray, slopes: np.ndarray, units: np.ndarray
    ) -> tuple[Tensor, np.ndarray]:
        """Derivatives of the errors, then the errors, (n, T, d + 1), and states before the rows.

        Derivatives are along the `slopes` of smoothing parameters, then in the coefficients.
        """
        series = self._series[units]
        rows, rough = self._rows[series], self._rough[series]
        if not self._n_columns:
            return _as_tensor(self._run(rows, params, rough, slopes))
        smoothing, beta = np.ascontiguousarray(params[:, :4]), params[:, 4:]
        columns, starts = self._column_rows[series], self._column_rough[series]
        # Infinite beyond the last row and NaN where missing, in y as in the columns.
        rows = rows - np.einsum("nk,nksm->nsm", beta, np.where(np.isfinite(columns), columns, 0.0))
        table, states = self._run(
            rows, smoothing, rough - np.einsum("nk,nkq->nq", beta, starts), slopes
        )
        if slopes.shape[1]:
            along = -self._column_errors(smoothing, columns, starts)
            table = np.concatenate([table[:, :, :-1], along, table[:, :, -1:]], 2)
        return _as_tensor((table, states))

    def _column_errors(
        self, params: np.ndarray, columns: np.ndarray, starts: np.ndarray
    ) -> np.ndarray:
        """Errors (n, T, k) of the columns, filtered as series."""
        n, k = columns.shape[:2]
        repeated, nothing = np.repeat(params, k, 0), np.zeros((n * k, 0, 4))
        rows, rough = (part.reshape(n * k, *part.shape[2:]) for part in (columns, starts))
        table = self._run(rows, repeated, rough, nothing)[0]
        return table.reshape(n, k, -1).swapaxes(1, 2)

    def _run(
        self, rows: np.ndarray, params: np.ndarray, rough: np.ndarray, slopes: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Derivatives of the errors, then the errors, (n, T, d + 1); states before the rows."""
        states = backcast(self._model, rows, params, rough, slopes)
        table = run(self._model, rows, params, states, slopes, field="e").fields
        return table.reshape(len(params), -1, slopes.shape[1] + 1), states[:, :, -1]

    def regressed(self, params: np.ndarray) -> np.ndarray:
        """Append the least-squares coefficients of columns: parameters (N, 4 + m) from (N, 4)."""
        if not self._n_columns:
            return params
        series, nothing = self._series, np.zeros((len(params), 0, 4))
        y = self._run(self._rows[series], params, self._rough[series], nothing)[0]
        X = self._column_errors(params, self._column_rows[series], self._column_rough[series])
        across = X.swapaxes(1, 2)
        slopes = (np.linalg.pinv(across @ X) @ (across @ y))[:, :, 0]
        return np.column_stack([params, slopes])


def _as_tensor(errors: tuple[np.ndarray, np.ndarray]) -> tuple[Tensor, np.ndarray]:
    return torch.from_numpy(errors[0]), errors[1]
