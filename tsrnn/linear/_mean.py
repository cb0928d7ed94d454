"""Means of multivariate models, linear in predetermined regressors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy.linalg

from tsrnn.contract import choice
from tsrnn.data import quote

KINDS = ("zero", "constant", "var", "vecm")


@dataclass(frozen=True)
class Mean:
    """Conditional mean :math:`E[r_t | past] = B x_t`.

    ============ =================== ==========================================================
    kind         response r_t        regressors x_t
    ============ =================== ==========================================================
    "zero"       y_t                 none
    "constant"   y_t                 1
    "var"        y_t                 1, y_{t-1}, ..., y_{t-order}
    "vecm"       y_t - y_{t-1}       1, beta' y_{t-1}, lagged differences up to `order`
    ============ =================== ==========================================================
    """

    kind: str
    order: int = 1  # lags of a "var", at least 1; lagged differences of a "vecm", at least 0
    rank: int = 1  # cointegrating relations of a "vecm", between 1 and n - 1

    def __post_init__(self) -> None:
        choice("mean", self.kind, KINDS)
        for name, value, least in (
            ("mean_order", self.order, int(self.kind == "var")),
            ("coint_rank", self.rank, 1),
        ):
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
                raise ValueError(
                    f"{name} of mean={self.kind!r} must be an integer of at least {least}; "
                    f"got {quote(value)}"
                )

    @property
    def n_lags(self) -> int:
        """Lags of the level y in the mean, which the likelihood loses as rows."""
        return {"zero": 0, "constant": 0, "var": self.order, "vecm": self.order + 1}[self.kind]

    @property
    def n_relations(self) -> int:
        """Cointegrating relations."""
        return self.rank if self.kind == "vecm" else 0

    def names(self, targets: Sequence[object]) -> tuple[str, ...]:
        """Names of the coefficients, equation by equation, as in statsmodels' VARMAX.

        ``L1.a.b`` is the effect of the first lag of a on b, ``L1.D.a.b`` that of its
        difference, ``alpha.ec1.b`` that of the first cointegrating relation.
        """
        return tuple(
            f"{term}.{name}" for name in targets for term in self._regressor_names(targets)
        )

    def relation_names(self, targets: Sequence[object]) -> tuple[str, ...]:
        """Names of the free elements of beta, relation by relation.

        ``beta.ec1.b`` is the coefficient of b in the first relation, in which the first target has
        coefficient one.
        """
        others = list(targets)[self.n_relations :]
        return tuple(f"beta.ec{i + 1}.{name}" for i in range(self.n_relations) for name in others)

    def relations(self, elements: np.ndarray, n: int) -> np.ndarray:
        """Cointegrating vectors (..., n, rank) from their free elements; the first rows are I."""
        rank, lead = self.n_relations, elements.shape[:-1]
        beta = np.empty((*lead, n, rank))
        beta[..., :rank, :] = np.eye(n, rank)[:rank]
        beta[..., rank:, :] = elements.reshape(*lead, rank, max(n - rank, 0)).swapaxes(-1, -2)
        return beta

    def elements(self, beta: np.ndarray) -> np.ndarray:
        """Free elements of cointegrating vectors, the inverse of `relations`."""
        rest = beta[..., self.n_relations :, :].swapaxes(-1, -2)
        return rest.reshape(*rest.shape[:-2], rest.shape[-1] * rest.shape[-2])

    def notes(self, targets: Sequence[object]) -> list[str]:
        """Note on the estimate of beta, for a summary."""
        if not self.n_relations:
            return []
        first = list(targets)[: self.n_relations]
        ones = ", ".join(f"{name} has one in ec{i + 1}" for i, name in enumerate(first))
        zeros = " and zero in the others" if self.n_relations > 1 else ""
        return [
            f"beta: cointegrating vectors, of which {ones}{zeros}. They are estimated first, by "
            "Johansen's reduced-rank regression with a constant outside the relations, and held in "
            "the estimate of all other parameters, as they converge faster: they have no standard "
            "errors here."
        ]

    def _regressor_names(self, targets: Sequence[object]) -> list[str]:
        lags = [(i, name) for i in range(1, self.order + 1) for name in targets]
        if self.kind == "zero":
            return []
        if self.kind == "constant":
            return ["intercept"]
        if self.kind == "var":
            return ["intercept", *(f"L{i}.{name}" for i, name in lags)]
        relations = [f"alpha.ec{i + 1}" for i in range(self.rank)]
        return ["intercept", *relations, *(f"L{i}.D.{name}" for i, name in lags)]


class MeanSpecification:
    """Base of the specifications of multivariate models: targets, their mean, parameters by name.

    The cointegrating vectors of the mean are the last parameters.
    """

    if TYPE_CHECKING:  # fields or properties of the subclass

        @property
        def targets(self) -> tuple[object, ...]:
            """Names of the n variables."""

        @property
        def mean(self) -> Mean:
            """Mean of all variables."""

        @property
        def own_names(self) -> tuple[str, ...]:
            """Names of all parameters except the cointegrating vectors, those of the mean first."""

    @property
    def n(self) -> int:
        """Number of variables."""
        return len(self.targets)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all parameters."""
        return (*self.own_names, *self.relation_names)

    @property
    def relation_names(self) -> tuple[str, ...]:
        """Names of the elements of the cointegrating vectors."""
        return self.mean.relation_names(self.targets)


@dataclass(frozen=True, eq=False)
class Regression:
    """Mean of one series of n variables as a linear regression."""

    response: np.ndarray  # (T', n)
    regressors: np.ndarray  # (T', r)
    coefficients: np.ndarray  # (n, r), B by ordinary least squares
    beta: np.ndarray  # (n, rank), cointegrating vectors of a "vecm", the first rows I

    @property
    def residuals(self) -> np.ndarray:
        """Residuals of the least squares, (T', n)."""
        return self.response - self.regressors @ self.coefficients.T


def regression(mean: Mean, values: np.ndarray, beta: np.ndarray | None = None) -> Regression:
    """Response, regressors and least squares of a series (T, n).

    Cointegrating vectors (n, rank) are estimated unless given. Too few rows and collinear
    regressors are refused.
    """
    rows, n = values.shape
    if rows < n * mean.n_lags + n + 2:
        raise ValueError(
            f"a mean of {mean.n_lags} lags of {n} variables needs at least "
            f"{n * mean.n_lags + n + 2} rows; got {rows}"
        )
    if mean.kind != "vecm":
        beta = np.zeros((n, 0))
    elif beta is None:
        beta = johansen(values, mean.order, mean.rank)
    response, regressors = _design(mean, values, beta)
    if mean.n_lags == 0 and np.isnan(values).any():
        seen = np.isfinite(values)
        means = np.where(seen, values, 0.0).sum(0) / np.maximum(seen.sum(0), 1)
        return Regression(response, regressors, means[:, None][:, : regressors.shape[1]], beta)
    scale = np.sqrt((regressors**2).mean(0))
    if np.linalg.matrix_rank(regressors / np.where(scale > 0, scale, 1.0)) < regressors.shape[1]:
        raise ValueError(
            f"the regressors of mean={mean.kind!r} are collinear: a variable is constant, or a "
            "linear combination of others. Drop it"
        )
    solution = np.linalg.lstsq(regressors / scale, response, rcond=None)[0].T / scale
    return Regression(response, regressors, solution, beta)


def _design(mean: Mean, values: np.ndarray, beta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    rows = len(values)
    ones = np.ones((rows - mean.n_lags, 1))
    if mean.kind == "zero":
        return values, ones[:, :0]
    if mean.kind == "constant":
        return values, ones
    if mean.kind == "var":
        lagged = [values[mean.order - i : rows - i] for i in range(1, mean.order + 1)]
        return values[mean.order :], np.hstack([ones, *lagged])
    change, level, short = differences(values, mean.order)
    return change, np.hstack([ones, level @ beta, short])


def level_form(
    mean: Mean, coefficients: np.ndarray, beta: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    r"""The mean as :math:`\mu_t = c + \sum_i A_i y_{t-i}`: c (n,), A (n_lags, n, n)."""
    n = len(coefficients)
    if mean.kind == "zero":
        return np.zeros(n), np.zeros((0, n, n))
    intercept, rest = coefficients[:, 0], coefficients[:, 1:]
    if mean.kind != "vecm":
        return intercept, rest.reshape(n, mean.n_lags, n).swapaxes(0, 1)
    alpha, short = rest[:, : beta.shape[1]], rest[:, beta.shape[1] :]
    gammas = short.reshape(n, mean.order, n).swapaxes(0, 1)
    lags = np.zeros((mean.n_lags, n, n))
    lags[0] = np.eye(n) + alpha @ beta.T
    lags[:-1] += gammas
    lags[1:] -= gammas
    return intercept, lags


def residuals(values: np.ndarray, intercept: np.ndarray, lags: np.ndarray) -> np.ndarray:
    """Errors (T - m, n) of a series (T, n) whose first m rows are history."""
    rows, m = len(values), len(lags)
    errors = values[m:] - intercept
    for i, matrix in enumerate(lags, start=1):
        errors = errors - values[m - i : rows - i] @ matrix.T
    return errors


def paths(
    history: np.ndarray, intercept: np.ndarray, lags: np.ndarray, errors: np.ndarray
) -> np.ndarray:
    """Values (..., h, n) after a history (..., m, n), oldest row first, under errors (..., h, n).

    Zero errors give the forecasts of the mean.
    """
    m, steps = lags.shape[-3], errors.shape[-2]
    values = np.concatenate([history, errors], axis=-2)
    for t in range(m, m + steps):
        values[..., t, :] += intercept
        for i in range(m):
            values[..., t, :] += (lags[..., i, :, :] @ values[..., t - 1 - i, :, None])[..., 0]
    return values[..., m:, :]


def responses(lags: np.ndarray, h: int) -> np.ndarray:
    r"""Moving-average weights :math:`\Psi_0 = I, \Psi_k = \sum_i A_i \Psi_{k-i}`, (..., h, n, n).

    :math:`\Psi_k` is the response of y_{t+k} to an error at t; lags have shape (..., m, n, n).
    """
    *lead, m, n, _ = lags.shape
    weights = np.zeros((*lead, h, n, n))
    weights[..., 0, :, :] = np.eye(n)
    for k in range(1, h):
        for i in range(min(m, k)):
            weights[..., k, :, :] += lags[..., i, :, :] @ weights[..., k - 1 - i, :, :]
    return weights


def accumulated(lags: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    r"""Covariances :math:`\sum_{j<k} \Psi_j H_{T+k-j} \Psi_j'` of forecasts k steps ahead.

    Lags have shape (S, m, n, n), covariances of the error of each step (S, h, n, n).
    """
    weights = responses(lags, covariance.shape[1])
    total = np.empty_like(covariance)
    for k in range(covariance.shape[1]):
        psi = weights[:, : k + 1]
        total[:, k] = (psi @ covariance[:, k::-1] @ psi.swapaxes(-1, -2)).sum(1)
    return total


def differences(values: np.ndarray, order: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Differences, lagged levels, and `order` lagged differences side by side."""
    change = np.diff(values, axis=0)
    rows = len(change)
    lagged = [change[order - i : rows - i] for i in range(1, order + 1)]
    short = np.hstack([np.zeros((rows - order, 0)), *lagged])
    return change[order:], values[order:-1], short


def johansen(values: np.ndarray, order: int, rank: int) -> np.ndarray:
    r"""Cointegrating vectors (n, rank) by reduced-rank regression (Johansen, 1988).

    The eigenvectors of :math:`S_{10} S_{00}^{-1} S_{01} v = \lambda S_{11} v` with the largest
    eigenvalues, where S are moments of differences (0) and lagged levels (1), after
    constants and `order` lagged differences are partialled out. The first `rank` rows are the
    identity.
    """
    n = values.shape[1]
    if not 1 <= rank < n:
        raise ValueError(
            f"coint_rank must lie between 1 and {n - 1} for {n} variables; got {rank}. With rank 0 "
            'take mean="var" of differences, with full rank mean="var" of levels'
        )
    scale = values.std(0)
    scale = np.where(scale > 0, scale, 1.0)
    change, level, short = differences(values / scale, order)
    others = np.hstack([np.ones((len(change), 1)), short])
    r0, r1 = (part - others @ np.linalg.lstsq(others, part, rcond=None)[0]
              for part in (change, level))  # fmt: skip
    s00, s01, s11 = r0.T @ r0, r0.T @ r1, r1.T @ r1
    try:
        _, vectors = scipy.linalg.eigh(s01.T @ np.linalg.solve(s00, s01), s11)
    except np.linalg.LinAlgError:
        raise ValueError(
            "the cointegrating relations cannot be estimated: a variable is constant, or a linear "
            "combination of others. Drop it"
        ) from None
    beta = vectors[:, : -rank - 1 : -1] / scale[:, None]
    return beta @ np.linalg.inv(beta[:rank])
