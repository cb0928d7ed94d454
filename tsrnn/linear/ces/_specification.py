"""Complex exponential smoothing: seasons of a model, its matrices, and its stable region."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

SEASONS = ("none", "simple", "partial", "full")
SMOOTHING = ("alpha0", "alpha1", "beta0", "beta1")
SIGMA2 = "sigma2"
_N_SMOOTHING = {"none": 2, "simple": 2, "partial": 3, "full": 4}
# Bounds of the search: share of the interval of a_0, a_1, and beta of a partial season.
_SHARE, _A1, _BETA = (1e-3, 0.995), (0.6, 1.3), (1e-4, 1.99)


class Components(NamedTuple):
    """Season of a model."""

    seasonal: str  # of SEASONS
    period: int  # rows of a season; 1 without one

    @property
    def title(self) -> str:
        """Name of the model, such as "CES(partial)"."""
        return f"CES({self.seasonal})"

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the smoothing parameters."""
        return SMOOTHING[: _N_SMOOTHING[self.seasonal]]

    @property
    def paired_season(self) -> bool:
        """True if every row of a season has a potential."""
        return self.seasonal in ("simple", "full")

    @property
    def n_level(self) -> int:
        """Number of states that every row updates: level and potential, unless season "simple"."""
        return 2 * (self.seasonal != "simple")

    @property
    def n_states(self) -> int:
        """Number of states: level, potential, the season from the next row on, its potentials."""
        return self.n_level + (1 + self.paired_season) * self.period * (self.seasonal != "none")

    @property
    def n_params(self) -> int:
        """Number of parameters for criteria: smoothing, sigma2, and backcast states.

        States count as a level, a potential and the season less its mean, or one for each row of a
        simple season. Potentials of a season, which backcasting ties to it, do not count.
        """
        initial = {"none": 2, "simple": self.period}.get(self.seasonal, self.period + 1)
        return len(self.names) + 1 + initial

    @property
    def fewest(self) -> int:
        """Fewest observations: the corrected criterion exists, and a season is seen twice."""
        return max(self.n_params + 2, 2 * self.period if self.seasonal != "none" else 0)

    def transition(self, params: np.ndarray) -> np.ndarray:
        """Transition matrices F (N, q, q) from smoothing parameters (N, 4)."""
        n, m, q = self.n_level, self.period, self.n_states
        matrices = np.zeros((len(params), q, q))
        if n:
            matrices[:, :2, :2] = _pair_matrix(params[:, :2])
        if self.seasonal == "none":
            return matrices
        for begin in range(n, q, m):
            matrices[:, range(begin, begin + m - 1), range(begin + 1, begin + m)] = 1.0
        if self.seasonal == "partial":
            matrices[:, n + m - 1, n] = 1.0
        else:
            last, first = [n + m - 1, n + 2 * m - 1], [n, n + m]
            pair = _pair_matrix(params[:, 2:] if n else params[:, :2])
            matrices[np.ix_(range(len(params)), last, first)] = pair
        return matrices

    def gain(self, params: np.ndarray) -> np.ndarray:
        """Changes g (N, q) of the states by a unit error."""
        n, m, (a0, a1, b0, b1) = self.n_level, self.period, params.T
        gain = np.zeros((len(params), self.n_states))
        if n:
            gain[:, 0], gain[:, 1] = a0 - a1, a0 + a1
        else:
            b0, b1 = a0, a1
        if self.seasonal == "partial":
            gain[:, n + m - 1] = b0
        elif self.paired_season:
            gain[:, n + m - 1], gain[:, n + 2 * m - 1] = b0 - b1, b0 + b1
        return gain

    @property
    def measurement(self) -> np.ndarray:
        """Weights w (q,) of the states in the mean of the next row."""
        weights = np.zeros(self.n_states)
        weights[0] = 1.0
        if self.seasonal in ("partial", "full"):
            weights[2] = 1.0
        return weights

    def discount(self, params: np.ndarray) -> np.ndarray:
        """Matrices D = F - g w' (N, q, q), by which initial states are forgotten."""
        return self.transition(params) - self.gain(params)[:, :, None] * self.measurement


def _pair_matrix(params: np.ndarray) -> np.ndarray:
    """Transition (N, 2, 2) of a pair with parameters (N, 2)."""
    a0, a1 = params.T
    ones = np.ones(len(params))
    return np.stack([np.column_stack([ones, a1 - 1]), np.column_stack([ones, 1 - a0])], 1)


def candidates(seasonal: str, period: int) -> tuple[Components, ...]:
    """Models to choose among: all if `seasonal` is "auto" and there is a season."""
    every = SEASONS if period > 1 else SEASONS[:1]
    kinds = every if seasonal == "auto" else (seasonal,)
    return tuple(Components(kind, period if kind != "none" else 1) for kind in kinds)


def bounds(model: Components) -> np.ndarray:
    """Bounds (2, k) of the parameters of the search, mapped to the stable region."""
    pair = [_SHARE, _A1]
    season = {"partial": [_BETA], "full": pair}.get(model.seasonal, [])
    return np.array([*pair, *season]).T


def to_natural(model: Components, params: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Smoothing parameters (N, 4) from those (N, k) of the search, and derivatives (N, k, 4).

    Row i of the derivatives is by parameter i of the search.
    """
    n, k = params.shape
    natural, slopes = np.zeros((n, 4)), np.zeros((n, k, 4))
    natural[:, :2], slopes[:, :2, :2] = _stable_pair(params[:, :2])
    if model.seasonal == "partial":
        natural[:, 2], slopes[:, 2, 2] = params[:, 2], 1.0
    elif model.seasonal == "full":
        natural[:, 2:], slopes[:, 2:, 2:] = _stable_pair(params[:, 2:])
    return natural, slopes


def _stable_pair(params: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    r"""Pairs (N, 2) in the stable region from a share and a_1, and derivatives (N, 2, 2).

    The discount matrix of a pair has the trace and the determinant

    .. math::
        \tau = 2 - 2 a_0 + a_1, \qquad d = (a_0 - \tfrac32)^2 + (a_1 - \tfrac12)^2 - \tfrac12

    and eigenvalues inside the unit circle where :math:`|\tau| - 1 < d < 1`: inside one circle and
    outside two. Near a_1 = 1, where most estimates lie, a_0 lies between

    .. math::
        \tfrac12 + \sqrt{\tfrac14 - (a_1 - 1)^2} \quad \text{and} \quad
        2 + \tfrac12 \tanh 4 (a_1 - 1)

    the first circle, and a curve that touches the other one there and stays inside the region. So
    the search is bounded by a box.
    """
    share, a1 = params.T
    away = a1 - 1
    root, bend = np.sqrt(0.25 - away**2), np.tanh(4 * away)
    low, high = 0.5 + root, 2 + bend / 2
    by_a1 = -away / root * (1 - share) + 2 * (1 - bend**2) * share
    slopes = np.zeros((len(params), 2, 2))
    slopes[:, 0, 0], slopes[:, 1, 0], slopes[:, 1, 1] = high - low, by_a1, 1.0
    return np.column_stack([low + share * (high - low), a1]), slopes
