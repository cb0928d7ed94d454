r"""Log-likelihoods of exponential smoothing of many series at once, with scores and information.

Observations are normal around their means :math:`\mu_t`, with variance :math:`\sigma^2` or, of
multiplicative errors, :math:`\sigma^2 \mu_t^2`: with errors :math:`e_t`, which are relative then,

.. math::
    \ell = -\tfrac12 \sum_t \Big( \log 2 \pi \sigma^2 + \frac{e_t^2}{\sigma^2} \Big)
           - \sum_t \log \mu_t

where the last sum is of multiplicative errors only. The information is approximately
:math:`\sum_t \dot e_t \dot e_t' / \sigma^2` in the derivatives of the errors. Multiplicative errors
add the information of the scale, :math:`2 \sum_t g_t g_t'` with :math:`g_t = \dot \mu_t / \mu_t`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from tsrnn.kernels import Paths, path_products, paths
from tsrnn.linear._estimates import PERFECT
from tsrnn.linear._optimise import Evaluation, differenced_hessian
from tsrnn.linear.ets._cells import season_cell
from tsrnn.linear.ets._specification import SMOOTHING, Recursion

AT_ONCE = 2048  # models whose paths are in memory at once
_NEAR = 1e-6  # step of the forward differences in the Hessian of Newton's method


class Moments(NamedTuple):
    """Derivatives of the log-likelihood in all parameters, sigma2 the last."""

    gradient: np.ndarray  # (N, k)
    opg: np.ndarray  # (N, k, k)
    information: np.ndarray  # (N, k, k)


class Likelihood:
    """Likelihood of models of one recursion, each for one of the `series` (N,).

    Rows (S, T) or (S, T, 1 + k) are series scaled to size one, then exogenous columns; NaN where
    missing and after the end. `relative` (N,) marks models with multiplicative errors.
    """

    def __init__(
        self, recursion: Recursion, rows: np.ndarray, series: np.ndarray, relative: np.ndarray
    ) -> None:
        values = rows if rows.ndim == 2 else rows[:, :, 0]
        n, length = values.shape
        steps = -(-length // recursion.period)
        padded_values = np.full((n, steps * recursion.period), np.nan)
        padded_values[:, :length] = values
        self._rows = padded_values.reshape(n, steps, recursion.period)
        if recursion.columns:
            columns = np.zeros((n, steps * recursion.period, len(recursion.columns)))
            columns[:, :length] = rows[:, :, 1:]
            columns = columns.reshape(n, steps, -1)
            self._rows = np.concatenate([self._rows, columns], 2)
        self._series, self._relative = series, relative
        seen = np.isfinite(values)
        self.n_obs = seen.sum(1)[series]
        # Steps of each series to its last observation.
        self._steps = -(-(length - seen[:, ::-1].argmax(1)) // recursion.period)
        self.recursion = recursion
        # One cell serves all choices of the same number of columns.
        numbered = tuple(range(len(recursion.columns)))
        self._cell = season_cell(recursion._replace(columns=numbered))
        every = np.eye(len(recursion.names))
        of_cell, of_states = recursion.split(every, slope=True)
        # The kind of errors and the sum of logarithms are not differentiated. All models share the
        # directions; a Hessian adds a moved copy for each smoothing parameter.
        most = len(series) * (1 + len(SMOOTHING))
        kind, slopes = np.zeros((len(every), 1)), every[:, recursion.slopes]
        padded = np.concatenate([of_cell, kind, slopes], 1), np.pad(of_states, ((0, 0), (0, 1)))
        self._directions = [np.broadcast_to(each, (most, *each.shape)) for each in padded]

    def evaluate(self, params: np.ndarray, units: np.ndarray, exact: bool) -> Evaluation:
        """Log-likelihood with sigma2 concentrated out, for `maximise`.

        The search takes beta / alpha and gamma / (1 - alpha), whose bounds do not depend on alpha.
        The Hessian comes from differences of gradients towards the inside of the bounds.
        """
        if not exact:
            return self._evaluated(params, units)
        # Means are linear in additive states, and nearly so in others: the information differs from
        # the Hessian only in rows and columns of smoothing parameters. A free parameter never has
        # the neutral value, which lies outside the bounds.
        n, smoothing = len(units), len(SMOOTHING)
        free = params[:, :smoothing] != self.recursion.neutral[:smoothing]
        of, number = np.nonzero(free)
        moved, place = params[of], (np.arange(len(of)), number)
        # Towards the middle of the interval of a smoothing parameter.
        step = np.where(moved[place] > 0.5, -_NEAR, _NEAR)
        moved[place] += step
        together = np.concatenate([params, moved]), np.concatenate([units, units[of]])
        every = self._evaluated(*together)
        evaluation = Evaluation(*(part[:n] for part in every))
        bent = (evaluation.gradient[of] - every.gradient[n:]) / step[:, None]
        for j in range(smoothing):
            rows = np.flatnonzero(free[:, j])
            evaluation.curvature[rows, :, j] = evaluation.curvature[rows, j] = bent[number == j]
        return evaluation

    def _evaluated(self, params: np.ndarray, units: np.ndarray) -> Evaluation:
        n, k = self.n_obs[units], params.shape[1]
        fields = tuple(f"e{i}" for i in range(self.recursion.period))
        smoothing, initial, directions, of_states = self._cell_parameters(
            to_natural(params), units, derivatives=True
        )
        # Directions of the parameters of the search, by the chain rule.
        directions = directions.copy()
        alpha, beta, gamma = params[:, :3].T
        directions[:, 0, 1], directions[:, 0, 2] = beta, -gamma
        directions[:, 1, 1], directions[:, 2, 2] = alpha, 1 - alpha
        products, memory = path_products(
            self._cell, self._rows, smoothing, initial, directions, of_states, fields=fields,
            series=self._series[units], lengths=self._steps,
        )  # fmt: skip
        square, log_scale = products[:, k, k], memory[:, -1]
        usable = np.isfinite(square) & np.isfinite(log_scale[:, k]) & (PERFECT * n < square)
        variance = np.where(usable, square / n, 1.0)
        value = -0.5 * n * (np.log(2 * math.pi * variance) + 1) - log_scale[:, k]
        value[~usable] = -np.inf
        weight = (1 / variance)[:, None]
        gradient = -weight * products[:, k, :k] - log_scale[:, :k]
        return Evaluation(value, gradient, weight[:, None] * products[:, :k, :k])

    def values(
        self, params: np.ndarray, sigma2: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Maximising sigma2 (N,) at natural parameters unless given, and the log-likelihood.

        `PERFECT` is the floor of sigma2.
        """
        errors, log_scale = self._errors(params, np.arange(len(params)), derivatives=False)
        square = errors.square().sum((1, 2)).numpy()
        sigma2 = np.maximum(square / self.n_obs, PERFECT) if sigma2 is None else sigma2
        value = -0.5 * (self.n_obs * np.log(2 * math.pi * sigma2) + square / sigma2)
        return sigma2, value - log_scale[:, 0]

    def moments(self, params: np.ndarray, sigma2: np.ndarray) -> Moments:
        """Moments at natural parameters (N, k)."""
        parts = []
        for begin in range(0, len(params), AT_ONCE):
            units = np.arange(begin, min(begin + AT_ONCE, len(params)))
            parts.append(self._moments(params[units], sigma2[units], units))
        return Moments(*map(np.concatenate, zip(*parts, strict=True)))

    def _moments(
        self, params: np.ndarray, sigma2: np.ndarray, units: np.ndarray
    ) -> tuple[np.ndarray, ...]:
        n, k = self.n_obs[units], params.shape[1]
        table, _ = self._errors(params, units, derivatives=True)
        values = self._rows[self._series[units], :, : self.recursion.period]
        seen = torch.from_numpy(np.isfinite(values)).flatten(1)
        e, de = table[:, :, k], table[:, :, :k]
        variance = torch.from_numpy(sigma2)[:, None]
        # Relative errors have de = -(1 + e) g.
        relative = torch.from_numpy(self._relative[units])[:, None]
        g = de * torch.where(relative, -1 / (1 + e), 0.0)[:, :, None]
        scores = -de * (e / variance)[:, :, None] - g
        spread = torch.where(seen, e.square() / variance - 1, 0.0) / (2 * variance)
        scores = torch.cat([scores, spread[:, :, None]], 2)
        means = torch.where(relative[:, :, None], g, -de)
        information = np.zeros((len(params), k + 1, k + 1))
        inner = torch.bmm(means.transpose(1, 2), means).numpy()
        information[:, :k, :k] = (1 / sigma2 + 2 * self._relative[units])[:, None, None] * inner
        information[:, k, k] = n / (2 * sigma2**2)
        cross = g.sum(1).numpy() / sigma2[:, None]
        information[:, :k, k] = information[:, k, :k] = cross
        opg = torch.bmm(scores.transpose(1, 2), scores).numpy()
        return scores.sum(1).numpy(), opg, information

    def hessian(self, params: np.ndarray, sigma2: np.ndarray, free: np.ndarray) -> np.ndarray:
        """Second derivatives (N, k + 1, k + 1) in the free parameters and sigma2."""
        at = np.column_stack([params, sigma2])
        hessian = np.zeros((*at.shape, at.shape[1]))
        columns = [*np.flatnonzero(free), at.shape[1] - 1]
        hessian[:, :, columns] = differenced_hessian(
            lambda moved: self.moments(moved[:, :-1], moved[:, -1]).gradient, at, columns
        )
        return (hessian + hessian.swapaxes(1, 2)) / 2

    def means(self, params: np.ndarray) -> np.ndarray:
        """Means (N, T) of the rows at natural parameters."""
        fields = tuple(f"mu{i}" for i in range(self.recursion.period))
        table = self._paths(params, np.arange(len(params)), fields, derivatives=False).fields
        return table.reshape(len(params), -1)

    def _errors(
        self, params: np.ndarray, units: np.ndarray, derivatives: bool
    ) -> tuple[Tensor, np.ndarray]:
        """Derivatives of the errors, then the errors, (n, T, k + 1); the same of sums of log mu."""
        fields = tuple(f"e{i}" for i in range(self.recursion.period))
        table, memory = self._paths(params, units, fields, derivatives)
        return torch.from_numpy(table.reshape(len(units), -1, table.shape[3])), memory[:, -1]

    def _paths(
        self, params: np.ndarray, units: np.ndarray, fields: tuple[str, ...], derivatives: bool
    ) -> Paths:
        at = self._cell_parameters(params, units, derivatives)
        return paths(self._cell, self._rows[self._series[units]], *at, fields=fields)

    def _cell_parameters(
        self, params: np.ndarray, units: np.ndarray, derivatives: bool
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Parameters and initial memory of the cell, and their derivatives, shared by all units."""
        n = len(params)
        smoothing, states = self.recursion.split(params)
        initial = np.zeros((n, states.shape[1] + 1))
        initial[:, :-1] = states
        slopes = params[:, self.recursion.slopes]
        of_cell = np.column_stack([smoothing, self._relative[units], slopes])
        along, of_states = self._directions
        if not derivatives:
            along, of_states = along[:, :0], of_states[:, :0]
        return of_cell, initial, along[:n], of_states[:n]


def to_natural(params: np.ndarray) -> np.ndarray:
    """Natural parameters (N, k) from those of the search."""
    alpha, beta, gamma = params[:, :3].T
    natural = params.copy()
    natural[:, 1], natural[:, 2] = beta * alpha, gamma * (1 - alpha)
    return natural
