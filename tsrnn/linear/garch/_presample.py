"""The variance before the first observation, and the memory that follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tsrnn.linear.garch._model import Model
from tsrnn.linear.garch._sample import Sample

INITIAL_VARIANCES = ("backcast", "sample", "fcp", "unconditional", "tsp")
MOVING = ("fcp", "tsp")  # with the parameters of the mean
N_BACKCAST, _DECAY = 75, 0.94


class Quantity(NamedTuple):
    """A quantity of N units with derivatives by their k parameters, None where it has none."""

    value: np.ndarray
    slope: np.ndarray | None = None
    bend: np.ndarray | None = None


class Initial(NamedTuple):
    """Memory before the first observation, with the derivatives that are not zero."""

    value: np.ndarray  # (N, n_memory)
    first: dict[tuple[int, int], np.ndarray]
    second: dict[tuple[int, int, int], np.ndarray]


@dataclass(frozen=True)
class Presample:
    r"""Presample variance of N units by name.

    ========================= ========================================================
    "backcast"                :math:`\sum_t w_t e_t^2` over the first 75 residuals at the
                              starting values, :math:`w_t \propto 0.94^t`, as in arch
    "sample"                  mean of :math:`e_t^2` at the starting values
    "fcp"                     mean of :math:`e_t^2` at the current mean (Fiorentini,
                              Calzolari and Panattoni, 1996)
    "unconditional"           what the current parameters imply
    "tsp"                     as "fcp", after residuals of zero; for logarithms
    ========================= ========================================================

    A recursion of logarithms starts from the logarithm of the first three, and from the
    unconditional mean of log h.

    Parameters
    ----------
    model : Model
    kind : str
    fixed : ndarray of shape (N,)
        The variance, for a kind that does not move with the parameters.
    moments : ndarray of shape (N, 1 + k_mean, 1 + k_mean)
        Means of products of y and the regressors of the mean, for "fcp".
    """

    model: Model
    kind: str
    fixed: np.ndarray
    moments: np.ndarray

    def select(self, units: np.ndarray) -> Presample:
        """That of some units."""
        return Presample(self.model, self.kind, self.fixed[units], self.moments[units])

    def variance(self, params: np.ndarray) -> Quantity:
        """Presample h, or log h, at parameters (N, k)."""
        if self.kind == "unconditional":
            return _unconditional(self.model, params)
        h = self._mean_square(params) if self.kind in MOVING else Quantity(self.fixed)
        return _log(h) if self.model.vol.log else h

    def _mean_square(self, params: np.ndarray) -> Quantity:
        """Mean squared residual, quadratic in the parameters of the mean."""
        n, k = params.shape
        part = self.model.mean_part
        weights = np.concatenate([np.ones((n, 1)), -params[:, part]], 1)
        product = np.einsum("nij,nj->ni", self.moments, weights)
        slope, bend = np.zeros((n, k)), np.zeros((n, k, k))
        slope[:, part] = -2 * product[:, 1:]
        bend[:, part, part] = 2 * self.moments[:, 1:, 1:]
        return Quantity((weights * product).sum(1), slope, bend)

    def memory(self, params: np.ndarray, order: int) -> Initial:
        """Memory before the first observation and its derivatives up to an order."""
        model, before, moving = self.model, self.variance(params), self._moving()
        value = np.zeros((len(params), model.n_memory))
        first: dict[tuple[int, int], np.ndarray] = {}
        second: dict[tuple[int, int, int], np.ndarray] = {}
        for j in range(model.n_vol):
            field, weight = model.mean.n_ma + j, persistence_weights(model, j)
            own = shock_weights(model, j)
            own[model.omega] = j == 0
            part = _product(params, weight, own, before)
            value[:, field] = part.value
            if order > 0 and part.slope is not None:
                touched = np.flatnonzero((weight != 0) | (own != 0) | moving)
                first |= {(field, int(a)): part.slope[:, a] for a in touched}
            if order > 1 and part.bend is not None:
                pairs = _pairs(weight, moving)
                second |= {(field, a, b): part.bend[:, a, b] for a, b in pairs}
        return Initial(value, first, second)

    def _moving(self) -> np.ndarray:
        """Whether the presample variance moves with each parameter, shape (k,)."""
        model = self.model
        moving = np.zeros(len(model.names), dtype=bool)
        if self.kind in MOVING:
            moving[model.mean_part] = True
        elif self.kind == "unconditional":
            moving = persistence_weights(model) != 0
            moving[model.omega] = True
        return moving


def _product(params: np.ndarray, weight: np.ndarray, own: np.ndarray, before: Quantity) -> Quantity:
    """A linear function of the parameters times a quantity, and one more linear function."""
    share = params @ weight
    value, slope = share * before.value + params @ own, before.value[:, None] * weight + own
    if before.slope is None or before.bend is None:
        return Quantity(value, slope)
    crossed = weight[:, None] * before.slope[:, None, :]
    bend = crossed + crossed.swapaxes(1, 2) + share[:, None, None] * before.bend
    return Quantity(value, slope + share[:, None] * before.slope, bend)


def _pairs(weight: np.ndarray, moving: np.ndarray) -> list[tuple[int, int]]:
    """Pairs of parameters by which weight times presample variance has a second derivative."""
    touched = np.flatnonzero((weight != 0) | moving).tolist()
    return [(a, b) for a in touched for b in touched if a <= b and (moving[a] or moving[b])]


def presample_of(
    model: Model, sample: Sample, kind: str | float, first: np.ndarray, variance: np.ndarray
) -> Presample:
    """Set up the presample variance of standardised units.

    `first` (N, at most 75) are residuals at the starting values, `variance` (N,) is the mean
    square of all of them.
    """
    if not isinstance(kind, str):
        kind, fixed = "fixed", float(kind) / sample.scale**2
    else:
        fixed = backcast(first**2, sample.n_obs) if kind == "backcast" else variance
    moments = mean_moments(model, sample) if kind in MOVING else np.zeros((len(sample.n_obs), 1, 1))
    return Presample(model, kind, fixed, moments)


def backcast(squares: np.ndarray, n_obs: np.ndarray) -> np.ndarray:
    """Exponentially weighted mean of the first squared residuals."""
    most = squares.shape[1]
    weights = np.where(np.arange(most) < n_obs[:, None], _DECAY ** np.arange(most), 0.0)
    return (weights * squares).sum(1) / weights.sum(1)


def mean_moments(model: Model, sample: Sample) -> np.ndarray:
    """Means of products of y, the constant and the lags of y, as they stand in the equation."""
    observed = sample.observed.astype(float)
    columns = [sample.inputs[..., 0], *[observed] * model.mean.constant]
    columns += [sample.inputs[..., 1 + i] for i in range(len(model.mean.lags))]
    columns = [column * observed for column in columns] if model.padded else columns
    return products_of(columns) / sample.n_obs[:, None, None]


def products_of(columns: list[np.ndarray]) -> np.ndarray:
    """Sums over time of products of variables (N, T), shape (N, m, m)."""
    result = np.empty((len(columns[0]), len(columns), len(columns)))
    for i, one in enumerate(columns):
        for j, other in enumerate(columns[: i + 1]):
            result[:, i, j] = result[:, j, i] = np.einsum("nt,nt->n", one, other)
    return result


def persistence_weights(model: Model, first: int = 0) -> np.ndarray:
    """Weights (k,) whose product with the parameters is the persistence, from a lag on."""
    weight = np.zeros(len(model.names))
    for s, expected in enumerate(model.vol.expected):
        weight[model.shock_coefficients(s)][first:] = expected
    weight[model.beta][first:] = 1.0
    return weight


def shock_weights(model: Model, first: int) -> np.ndarray:
    """Weights (k,) whose product with the parameters is what presample shocks add, from a lag on.

    None where they stand at their expectation, which is zero for a logarithm.
    """
    weight = np.zeros(len(model.names))
    for s, shock in enumerate(model.vol.before):
        weight[model.shock_coefficients(s)][first:] = shock
    return weight


def _unconditional(model: Model, params: np.ndarray) -> Quantity:
    r""":math:`\omega / (1 - P)`; NaN where the persistence P is not below one."""
    weight = persistence_weights(model)
    slack = 1 - params @ weight
    slack = np.where(slack > 0, slack, np.nan)
    unit = np.zeros(params.shape[1])
    unit[model.omega] = 1.0
    value = params[:, model.omega] / slack
    slope = (unit + value[:, None] * weight) / slack[:, None]
    crossed = slope[:, :, None] * weight
    return Quantity(value, slope, (crossed + crossed.swapaxes(1, 2)) / slack[:, None, None])


def _log(h: Quantity) -> Quantity:
    value = np.log(h.value)
    if h.slope is None or h.bend is None:
        return Quantity(value)
    slope = h.slope / h.value[:, None]
    bend = h.bend / h.value[:, None, None] - slope[:, :, None] * slope[:, None, :]
    return Quantity(value, slope, bend)
