"""ARMA specification: orders, trend and likelihood, names and layout of parameters."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from tsrnn.contract import Arguments, choice
from tsrnn.data import quote

TRENDS = ("n", "c", "t", "ct")
LIKELIHOODS = ("exact", "conditional")
MOST_LAGS, MOST_MIXED = 12, 6  # beyond these, compiling the exact likelihood takes minutes
MOST_MULTIPLIED = 250  # lags of multiplied polynomials; a state's variance has their square in size

T = TypeVar("T")


@dataclass(frozen=True)
class Specification:
    """Orders, trend and likelihood of an ARMA with regressors."""

    p: int
    d: int
    q: int
    trend: str
    exact: bool  # the exact likelihood, else the conditional one
    regressors: tuple[str, ...] = ()
    P: int = 0  # seasonal lags and differences, m rows apart; 0 without a season
    D: int = 0
    Q: int = 0
    m: int = 0

    @property
    def constant(self) -> bool:
        """True if the mean of the differenced series is a parameter."""
        # A trend of slope b has differences b; seasonal ones are m b, which need a regressor.
        return ("c" if self.d == 0 else "t") in self.trend and self.d < 2 and not self.D

    @property
    def lost(self) -> int:
        """Observations lost by differencing."""
        return self.d + self.m * self.D

    @property
    def trend_names(self) -> tuple[str, ...]:
        """Names of the parameters of the trend."""
        return (
            *(["const"] if "c" in self.trend else []),
            *(["drift"] if "t" in self.trend else []),
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all parameters, as statsmodels spells them."""
        ar = (f"ar.L{i}" for i in range(1, self.p + 1))
        ma = (f"ma.L{i}" for i in range(1, self.q + 1))
        seasonal_ar = (f"ar.S.L{self.m * i}" for i in range(1, self.P + 1))
        seasonal_ma = (f"ma.S.L{self.m * i}" for i in range(1, self.Q + 1))
        lags = *ar, *ma, *seasonal_ar, *seasonal_ma
        return (*self.trend_names, *self.regressors, *lags, "sigma2")

    @property
    def n_mean(self) -> int:
        """Number of parameters of trend and regressors."""
        return len(self.trend_names) + len(self.regressors)

    @property
    def fewest(self) -> int:
        """Fewest observations of a series, including those lost by differencing.

        Two for each coefficient of a lag and one for each other parameter: estimating k parameters
        from n = 2 k observations triples the variance of a forecast, which is (n + k) / (n - k)
        times that of the innovations.
        """
        k, n_lags = len(self.names), self.p + self.q + self.P + self.Q
        # A seasonal lag cannot be estimated unless an observation has that lag.
        longest = max(self.p + self.m * self.P, self.q + self.m * self.Q)
        beyond_lags = k + (0 if self.m else max(self.p, self.q)) + 1
        return self.lost + max(k + n_lags, beyond_lags, longest + 1)


def arma_specification(
    arguments: Arguments, regressors: tuple[str | int, ...] = ()
) -> Specification:
    """Check the constructor's arguments and make the specification, with exogenous columns."""
    order, trend = _orders("order", arguments.order, ("(p, q)", "(p, d, q)")), arguments.trend
    p, d, q = order if len(order) == 3 else (order[0], 0, order[1])
    seasonal = arguments.seasonal_order
    P, D, Q, m = (0,) * 4 if seasonal is None else _seasonal_orders(seasonal)
    exact = choice("likelihood", arguments.likelihood, LIKELIHOODS) == "exact"
    most = MOST_MIXED if exact and q and not m else MOST_LAGS
    if max(p, q) > most:
        raise ValueError(
            f"order may have up to {MOST_LAGS} lags, and with the exact likelihood and a moving "
            f"average up to {MOST_MIXED}; got {quote(arguments.order)}. Take fewer lags, or "
            "likelihood='conditional' for long moving averages"
        )
    if (longest := max(p + d + m * (P + D), q + m * Q)) > MOST_MULTIPLIED:
        raise ValueError(
            f"order and seasonal_order may have lags up to {MOST_MULTIPLIED} when multiplied; got "
            f"{longest} of order={arguments.order!r}, seasonal_order={seasonal!r}. Take fewer "
            "seasonal lags, or model a long season by regressors: calendar or Fourier terms"
        )
    if arguments.missing == "keep" and not exact:
        raise ValueError(
            "missing='keep' needs likelihood='exact': the conditional one has no place for "
            "missing values. Take that, or missing='interpolate'"
        )
    if arguments.outliers is not None and not exact:
        raise ValueError(
            f"outliers={arguments.outliers!r} needs likelihood='exact': the conditional one has no "
            "place for missing values, which gross errors become. Take that, or outliers=None"
        )
    trend = ("n" if d + D else "c") if trend is None else choice("trend", trend, TRENDS)
    # Each difference, ordinary or seasonal, removes one degree of a polynomial trend.
    eliminated = [part for power, part in enumerate("ct") if part in trend and power < d + D]
    if eliminated:
        times = f"d + D = {d + D}" if m else f"d = {d}"
        raise ValueError(
            f"trend={trend!r} has terms of an order below {times}, which differencing removes; "
            f"take trend={'t' if d + D == 1 else 'n'!r} or 'n'"
        )
    names = tuple(str(name) for name in regressors)
    spec = Specification(p, d, q, trend, exact, names, P, D, Q, m)
    if len(set(spec.names)) < len(spec.names):
        raise ValueError(
            f"names of exogenous columns must differ from those of parameters; got {list(names)} "
            f"beside {[name for name in spec.names if name not in names]}. Rename the columns"
        )
    return spec


def _orders(name: str, order: object, forms: tuple[str, ...]) -> tuple[int, ...]:
    """Check an order against its legal forms, and return its integers."""
    lengths = [form.count(",") + 1 for form in forms]
    if not isinstance(order, Sequence) or isinstance(order, str) or len(order) not in lengths:
        raise TypeError(f"{name} must be {' or '.join(forms)}; got {quote(order)}")
    for value in order:
        if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 0:
            raise ValueError(f"{name} must be of integers of at least 0; got {quote(order)}")
    return tuple(int(value) for value in order)


def _seasonal_orders(order: object) -> tuple[int, ...]:
    """Check a seasonal order; P, D, Q and m, all 0 if the first three are 0."""
    P, D, Q, m = _orders("seasonal_order", order, ("(P, D, Q, m)",))
    if P + D + Q and m < 2:
        raise ValueError(
            f"seasonal_order=(P, D, Q, m) needs a season of m of at least 2 rows; got "
            f"{quote(order)}. Monthly data have m = 12, quarterly ones 4"
        )
    return (P, D, Q, m) if P + D + Q else (0,) * 4


@dataclass(frozen=True)
class Form:
    """Layout of the inputs, parameters and state of an ARMA cell."""

    p: int
    q: int
    n_regressors: int = 0  # inputs after y, each with a coefficient; a constant has no input
    constant: bool = False  # the first parameter is subtracted from every y
    d: int = 0  # order of integration, with levels in the state; 0 if differenced beforehand
    masked: bool = False  # the last input is 1 where y is observed, else 0
    P: int = 0  # seasonal lags of u and of e, m rows apart, which no cell has
    Q: int = 0
    m: int = 0

    @property
    def r(self) -> int:
        """Dimension of the ARMA's state, at least 1."""
        return max(self.p + self.m * self.P, self.q + self.m * self.Q, 1)

    @property
    def dimension(self) -> int:
        """Dimension of the state with levels."""
        return self.d + self.r

    @property
    def n_mean(self) -> int:
        """Number of parameters of the mean, which come first."""
        return self.constant + self.n_regressors

    @property
    def n_params(self) -> int:
        """Number of parameters without sigma2: mean, phi, theta, seasonal phi and theta."""
        return self.n_mean + self.p + self.q + self.P + self.Q

    @property
    def label(self) -> str:
        """Part of the names of cells."""
        mean = f"{self.n_regressors}{'c' * self.constant}{'m' * self.masked}"
        return f"{self.p}_{self.d}_{self.q}_{mean}"

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the inputs."""
        regressors = (f"x{i}" for i in range(self.n_regressors))
        return ("y", *regressors, *(["observed"] if self.masked else []))

    @property
    def params(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return (
            *(["const"] if self.constant else []),
            *(f"beta{i}" for i in range(self.n_regressors)),
            *(f"phi{i + 1}" for i in range(self.p)),
            *(f"theta{i + 1}" for i in range(self.q)),
        )

    def split(self, params: tuple[T, ...]) -> tuple[tuple[T, ...], tuple[T, ...], tuple[T, ...]]:
        """Coefficients of the mean, phi and theta."""
        first, second = self.n_mean, self.n_mean + self.p
        return params[:first], params[first:second], params[second : second + self.q]

    def parts(self, params: np.ndarray) -> list[np.ndarray]:
        """Split rows (k, ...) into coefficients of the mean, phi, theta, seasonal Phi and Theta."""
        return np.split(params, np.cumsum([self.n_mean, self.p, self.q, self.P]))


def lower_triangle(n: int) -> list[tuple[int, int]]:
    """Index pairs (i, j) with j <= i, row by row."""
    return [(i, j) for i in range(n) for j in range(i + 1)]
