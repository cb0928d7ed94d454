r"""Log-likelihoods of complex exponential smoothing of many series at once, with derivatives.

.. math:: \ell = -\tfrac12 \sum_t \Big( \log 2 \pi \sigma^2 + \frac{e_t^2}{\sigma^2} \Big)

over the rows that are observed, from states before the first row that are backcast. Derivatives are
of all runs, those that backcast too.
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
    values : array of shape (S, T)
        Series scaled to a size of one; NaN where nothing is observed, and after the end.
    series : integer array of shape (N,)
        Series of each of N sets of parameters, by number.
    """

    def __init__(self, model: Components, values: np.ndarray, series: np.ndarray) -> None:
        self._model, self._series = model, series
        self._rows = season_rows(model, values, last_rows(values))
        self._rough = rough_states(model, values)
        self.n_obs = np.isfinite(values).sum(1)[series]

    def evaluate(self, params: np.ndarray, units: np.ndarray, exact: bool) -> Evaluation:
        """Log-likelihood with sigma2 concentrated out at parameters of the search.

        The Hessian is of differences of gradients, towards the middle of the bounds.
        """
        parts = []
        for begin in range(0, len(units), AT_ONCE):
            part = slice(begin, begin + AT_ONCE)
            parts.append(self._evaluated(params[part], units[part]))
        evaluation = Evaluation(*map(np.concatenate, zip(*parts, strict=True)))
        if not exact:
            return evaluation
        middle, columns = bounds(self._model).mean(0), []
        for j in range(params.shape[1]):
            moved = params.copy()
            step = np.where(params[:, j] > middle[j], -_NEAR, _NEAR)
            moved[:, j] += step
            slope = self.evaluate(moved, units, False).gradient - evaluation.gradient
            columns.append(-slope / step[:, None])
        curvature = np.stack(columns, 2)
        return evaluation._replace(curvature=(curvature + curvature.swapaxes(1, 2)) / 2)

    def _evaluated(self, params: np.ndarray, units: np.ndarray) -> tuple[np.ndarray, ...]:
        natural, slopes = to_natural(self._model, params)
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
        """Best sigma2 (N,) at parameters (N, 4) unless given, log-likelihood, initial states.

        A sigma2 that is rounding is `PERFECT` in its place.
        """
        n = len(params)
        errors, states = self._errors(params, np.zeros((n, 0, 4)), np.arange(n))
        square = errors.square().sum((1, 2)).numpy()
        sigma2 = np.maximum(square / self.n_obs, PERFECT) if sigma2 is None else sigma2
        value = -0.5 * (self.n_obs * np.log(2 * math.pi * sigma2) + square / sigma2)
        return sigma2, value, states

    def moments(self, params: np.ndarray, sigma2: np.ndarray) -> tuple[np.ndarray, ...]:
        """Gradient (N, k + 1), outer products of scores and information at (N, 4) and sigma2."""
        n, k = len(params), len(self._model.names)
        slopes = np.broadcast_to(np.eye(k, 4), (n, k, 4))
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
        k = len(self._model.names)
        at = np.column_stack([params, sigma2])
        hessian = np.zeros((len(at), k + 1, k + 1))
        for j, column in enumerate([*range(k), 4]):
            size = _STEP * (sigma2 if column == 4 else np.maximum(np.abs(at[:, column]), 0.1))
            slopes = []
            for steps in (1, -1, 2, -2):
                moved = at.copy()
                moved[:, column] += steps * size
                slopes.append(self.moments(moved[:, :4], moved[:, 4])[0])
            difference = 8 * (slopes[0] - slopes[1]) - (slopes[2] - slopes[3])
            hessian[:, :, j] = difference / (12 * size[:, None])
        return (hessian + hessian.swapaxes(1, 2)) / 2

    def _errors(
        self, params: np.ndarray, slopes: np.ndarray, units: np.ndarray
    ) -> tuple[Tensor, np.ndarray]:
        """Derivatives of the errors, then the errors, (n, T, d + 1), and states before them."""
        series = self._series[units]
        rows = self._rows[series]
        states = backcast(self._model, rows, params, self._rough[series], slopes)
        table = run(self._model, rows, params, states, slopes, field="e").fields
        shape = len(units), -1, slopes.shape[1] + 1
        return torch.from_numpy(table.reshape(shape)), states[:, :, -1]
