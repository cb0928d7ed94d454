"""VARMA specification: orders, trend and likelihood, names and places of parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from tsrnn.contract import choice
from tsrnn.data import quote
from tsrnn.linear._arguments import order_of

TRENDS = {"n": (), "c": ("intercept",), "ct": ("intercept", "drift")}
LIKELIHOODS = ("exact", "conditional")


@dataclass(frozen=True)
class Shape:
    """Orders and dimensions of a model, with parameters in the order of statsmodels' VARMAX."""

    n: int  # targets
    p: int  # lags of the series
    q: int  # lags of the innovations
    trend: str  # one of `TRENDS`
    n_exog: int
    exact: bool  # the state before the first row is a stationary draw, else zero

    @cached_property
    def n_trend(self) -> int:
        """Number of trend columns."""
        return len(TRENDS[self.trend])

    @cached_property
    def n_design(self) -> int:
        """Number of trend and exogenous columns."""
        return self.n_trend + self.n_exog

    @cached_property
    def lags(self) -> int:
        """Number of blocks of the state, max(p, q)."""
        return max(self.p, self.q)

    @cached_property
    def d(self) -> int:
        """Dimension of the state."""
        return self.n * self.lags

    @cached_property
    def n_mean(self) -> int:
        """Number of parameters of the conditional mean, which precede the covariance's."""
        return self.n * (self.n_design + self.n * (self.p + self.q))

    @cached_property
    def k(self) -> int:
        """Number of parameters."""
        return self.n_mean + self.n * (self.n + 1) // 2

    @cached_property
    def at_ar(self) -> np.ndarray:
        """Positions of the autoregressive coefficients, (n, p, n): equation, lag, variable."""
        return self._positions(self.n * self.n_trend, self.p)

    @cached_property
    def at_ma(self) -> np.ndarray:
        """Positions of the moving-average coefficients, (n, q, n)."""
        return self._positions(self.n * (self.n_trend + self.n * self.p), self.q)

    @cached_property
    def at_design(self) -> np.ndarray:
        """Positions of the coefficients of trend and exogenous columns, (n, n_design)."""
        n, first = self.n, self.n_mean - self.n * self.n_exog
        trend = np.arange(n * self.n_trend).reshape(n, self.n_trend)
        exog = first + np.arange(n * self.n_exog).reshape(n, self.n_exog)
        return np.hstack([trend, exog])

    @cached_property
    def at_mean(self) -> np.ndarray:
        """Positions of all coefficients of an equation, (n, n_design + n p + n q)."""
        lags = (at.reshape(self.n, -1) for at in (self.at_ar, self.at_ma))
        return np.hstack([self.at_design, *lags])

    @cached_property
    def at_chol(self) -> np.ndarray:
        """Positions of the lower triangle of the covariance's factor, row by row."""
        return np.arange(self.n_mean, self.k)

    @cached_property
    def triangle(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows and columns of the entries of the covariance's factor."""
        return np.tril_indices(self.n)

    @cached_property
    def on_diagonal(self) -> np.ndarray:
        """Places of the factor's diagonal among its entries."""
        return np.flatnonzero(self.triangle[0] == self.triangle[1])

    def _positions(self, first: int, lags: int) -> np.ndarray:
        return first + np.arange(self.n * lags * self.n).reshape(self.n, lags, self.n)

    def unpack(self, params: np.ndarray) -> Coefficients:
        """Matrices from parameters (U, k)."""
        n, units = self.n, len(params)
        chol = np.zeros((units, n, n))
        chol[:, *self.triangle] = params[:, self.n_mean :]
        mean = params[:, self.at_mean]  # fancy indexing only once: it dominates small models
        ma = self.n_design + n * self.p
        return Coefficients(
            mean[..., : self.n_design],
            mean[..., self.n_design : ma].reshape(units, n, self.p, n).swapaxes(1, 2),
            mean[..., ma:].reshape(units, n, self.q, n).swapaxes(1, 2),
            chol,
        )

    def pack(self, coefficients: Coefficients) -> np.ndarray:
        """Parameters (U, k) from matrices, the inverse of `unpack`."""
        params = np.empty((len(coefficients.chol), self.k))
        params[:, self.at_design] = coefficients.design
        params[:, self.at_ar] = coefficients.ar.swapaxes(1, 2)
        params[:, self.at_ma] = coefficients.ma.swapaxes(1, 2)
        params[:, self.at_chol] = coefficients.chol[:, *self.triangle]
        return params

    def names(self, targets: list[str], exog: list[str]) -> tuple[str, ...]:
        """Names of the parameters, as statsmodels' VARMAX spells them."""
        by_lag = [
            [
                pattern.format(lag=lag, cause=cause, effect=effect)
                for effect in targets
                for lag in range(1, lags + 1)
                for cause in targets
            ]
            for pattern, lags in (
                ("L{lag}.{cause}.{effect}", self.p),
                ("L{lag}.e({cause}).{effect}", self.q),
            )
        ]
        rows, columns = self.triangle
        return (
            *(f"{term}.{y}" for y in targets for term in TRENDS[self.trend]),
            *by_lag[0],
            *by_lag[1],
            *(f"beta.{x}.{y}" for y in targets for x in exog),
            *(
                f"sqrt.var.{targets[i]}" if i == j else f"sqrt.cov.{targets[j]}.{targets[i]}"
                for i, j in zip(rows, columns, strict=True)
            ),
        )


def shape_of(
    order: Any, trend: Any, likelihood: Any, targets: Sequence[object], n_exog: int
) -> Shape:
    """Check the constructor's arguments and make the shape for the columns of the data."""
    p, q = order_of("order", order, "p lags of y and q of the innovations", least=(0, 0))
    if len(targets) < 2:
        raise ValueError(
            f"VARMA needs at least two targets; got one, {quote(targets[0])}. Take "
            f"ARMA(order={(p, 0, q)}) for it, or name more targets"
        )
    trend = choice("trend", trend, tuple(TRENDS))
    exact = choice("likelihood", likelihood, LIKELIHOODS) == "exact"
    return Shape(len(targets), p, q, trend, n_exog, exact)


class Coefficients(NamedTuple):
    """Parameters of U units as matrices."""

    design: np.ndarray  # (U, n, n_design), of trend and exogenous columns
    ar: np.ndarray  # (U, p, n, n)
    ma: np.ndarray  # (U, q, n, n)
    chol: np.ndarray  # (U, n, n), lower triangular factor of the innovations' covariance
