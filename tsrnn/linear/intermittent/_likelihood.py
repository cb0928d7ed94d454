r"""Likelihood of intermittent demand of many series at once, with all derivatives.

Demand occurs with probability :math:`\pi_t`, and its size is gamma distributed with mean
:math:`z_{t-1}` and shape :math:`k`:

.. math::
    \ell = \sum_{t: y_t > 0} \log \pi_t + \sum_{t: y_t = 0} \log (1 - \pi_t) + n (k \log k -
           \log \Gamma(k)) + (k - 1) \sum_{t: y_t > 0} \log y_t - k \sum_{t: y_t > 0} \Big(
           \log z_{t-1} + \frac{y_t}{z_{t-1}} \Big)

with n demands. The maximising level does not depend on the shape, which is estimated after it.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln, polygamma, psi

from tsrnn.kernels import Lanes, Running, Sums, paths, sums
from tsrnn.linear._optimise import Evaluation
from tsrnn.linear.intermittent._recursion import CERTAIN, PARAMS, demand_cell

LARGEST_SHAPE = 1e6  # sizes vary by a thousandth; forecasts treat them as equal
AT_ONCE = 256  # series whose derivatives fit into the cache
_START = {(0, 2): 1.0, (1, 3): 1.0}  # derivatives of the first states by their parameters
_TERMS = ("occurrence", "misfit")


def first_memory(method: str, params: np.ndarray) -> np.ndarray:
    """States (N, 2 or 3) before the first row, from parameters (N, 4 or more)."""
    states = params[:, 2:4]
    return states if method == "tsb" else np.column_stack([states, np.zeros(len(states))])


class Likelihood:
    """Likelihood of one method, for series (N, T); NaN where missing and after the end."""

    def __init__(self, method: str, values: np.ndarray) -> None:
        self._method, self._cell, self._values = method, demand_cell(method), values
        self._lanes = Lanes(values)
        self._running = Running(self._lanes)
        demand = values > 0
        self.n_demands = demand.sum(1)
        self.log_sizes = np.log(np.where(demand, values, 1.0)).sum(1)

    def _sums(self, lanes: Lanes, params: np.ndarray, order: int) -> Sums:
        return sums(
            self._cell, lanes, params, first_memory(self._method, params), terms=_TERMS,
            order=order, d_initial={key: np.full(lanes.n, slope) for key, slope in _START.items()},
        )  # fmt: skip

    def terms(self, params: np.ndarray) -> np.ndarray:
        """Sums (2, N) of log-probabilities and of misfits at parameters (N, 4)."""
        return self._sums(self._lanes, params, 0).value

    def evaluate(self, params: np.ndarray, units: np.ndarray, exact: bool) -> Evaluation:
        """Log-likelihood at shape one without constants, for `maximise`."""
        lanes, places = self._running.covering(units)
        whole = np.broadcast_to(params[:1], (lanes.n, params.shape[1])).copy()
        whole[places] = params
        result = self._sums(lanes, whole, 2)
        assert result.gradient is not None  # of order 2
        assert result.hessian is not None
        value, gradient = result.value[0] - result.value[1], result.gradient[0] - result.gradient[1]
        curvature = result.hessian[1] - result.hessian[0]
        return Evaluation(value[places], gradient[places], curvature[places])

    def shape(self, params: np.ndarray) -> np.ndarray:
        r"""Maximising shape (N,): solve :math:`\log k - \psi(k) = D` by Newton's method."""
        misfit = self.terms(params)[1]
        mean = (misfit - self.log_sizes) / np.maximum(self.n_demands, 1)
        gap = np.maximum(mean - 1, 0.5 / LARGEST_SHAPE)
        # Minka's (2002) start and step, in 1 / k: four steps are exact to rounding.
        k = (3 - gap + np.sqrt((gap - 3) ** 2 + 24 * gap)) / (12 * gap)
        for _ in range(6):
            slope = k**2 * (1 / k - polygamma(1, k))
            k = 1 / (1 / k + (np.log(k) - psi(k) - gap) / slope)
        return np.minimum(k, LARGEST_SHAPE)

    def values(self, params: np.ndarray, shape: np.ndarray) -> np.ndarray:
        """Log-likelihood (N,)."""
        occurrence, misfit = self.terms(params)
        n, k = self.n_demands, shape
        constant = n * (k * np.log(k) - gammaln(k)) + (k - 1) * self.log_sizes
        return occurrence + constant - k * misfit

    def hessian(self, params: np.ndarray, shape: np.ndarray) -> np.ndarray:
        """Second derivatives (N, 5, 5), the shape last."""
        result = self._sums(self._lanes, params, 2)
        assert result.gradient is not None  # of order 2
        assert result.hessian is not None
        n = len(PARAMS)
        hessian = np.zeros((len(params), n + 1, n + 1))
        hessian[:, :n, :n] = result.hessian[0] - shape[:, None, None] * result.hessian[1]
        hessian[:, :n, n] = hessian[:, n, :n] = -result.gradient[1]
        hessian[:, n, n] = self.n_demands * (1 / shape - polygamma(1, shape))
        return hessian

    def moments(
        self, params: np.ndarray, shape: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Gradient (N, 5), outer products of scores and information (N, 5, 5).

        The information is expected over occurrence at every row, and over sizes given the demands.
        """
        n = len(PARAMS)
        gradient = np.zeros((len(params), n + 1))
        opg, information = np.zeros((2, len(params), n + 1, n + 1))
        for begin in range(0, len(params), AT_ONCE):
            part = slice(begin, begin + AT_ONCE)
            table = expected(self._method, params[part], self._values[part], derivatives=True)
            y, k = self._values[part], shape[part, None]
            seen, demand = np.isfinite(y)[..., None], (y > 0)[..., None]
            slopes, (level, chance) = table[..., :n], np.moveaxis(table[..., n], 2, 0)
            free = seen & ((chance > CERTAIN) & (chance < 1 - CERTAIN))[..., None]
            chance = np.where(free[..., 0], chance, 0.5)
            spread = np.sqrt(chance * (1 - chance))[..., None]
            of_chance = np.where(free, slopes[:, :, 1], 0.0) / spread
            surprise = (demand[..., 0] - chance)[..., None] / spread
            of_level = np.where(demand, slopes[:, :, 0] / level[..., None], 0.0)
            ratio = np.where(demand[..., 0], y / level, 1.0)
            scores = np.zeros((*y.shape, n + 1))
            scores[..., :n] = surprise * of_chance + (k * (ratio - 1))[..., None] * of_level
            of_shape = np.log(k) + 1 - psi(k) + np.log(np.where(demand[..., 0], ratio, 1.0)) - ratio
            scores[..., n] = np.where(demand[..., 0], of_shape, 0.0)
            gradient[part] = scores.sum(1)
            opg[part] = scores.swapaxes(1, 2) @ scores
            information[part, :n, :n] = of_chance.swapaxes(1, 2) @ of_chance + k[..., None] * (
                of_level.swapaxes(1, 2) @ of_level
            )
        information[:, n, n] = self.n_demands * (polygamma(1, shape) - 1 / shape)
        return gradient, opg, information


def expected(
    method: str, params: np.ndarray, values: np.ndarray, derivatives: bool = False
) -> np.ndarray:
    """Level of sizes and probability of demand ahead of rows (N, T).

    Shape (N, T, 2, 1); with derivatives by the parameters (N, 4), which come first, (N, T, 2, 5).
    """
    n, first = len(PARAMS), first_memory(method, params)
    directions = n if derivatives else 0
    d_params = np.tile(np.eye(n)[:directions], (len(values), 1, 1))
    d_initial = np.zeros((len(values), directions, first.shape[1]))
    if derivatives:
        for state, parameter in _START:
            d_initial[:, parameter, state] = 1.0
    return paths(
        demand_cell(method), values[..., None], np.ascontiguousarray(params), first,
        d_params, d_initial, fields=("level", "probability"),
    ).fields  # fmt: skip


def memory_after(
    method: str, params: np.ndarray, memory: np.ndarray, values: np.ndarray
) -> np.ndarray:
    """States (N, 2 or 3) after rows (N, T), NaN where missing or after the end of a series."""
    result = sums(
        demand_cell(method), Lanes(values), np.ascontiguousarray(params), memory, terms=(), order=0
    )
    return result.memory.T.copy()
