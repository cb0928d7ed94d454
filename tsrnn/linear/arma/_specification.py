"""ARMA specification: orders, trend and likelihood, the names and the layout of parameters."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from tsrnn.contract import Arguments, choice

TRENDS = ("n", "c", "t", "ct")
LIKELIHOODS = ("exact", "conditional")
MOST_LAGS, MOST_MIXED = 12, 6  # beyond, compiling the exact likelihood takes minutes

T = TypeVar("T")


@dataclass(frozen=True)
class Specification:
    """Orders, trend and likelihood of an ARMA with regressors.

    Parameters
    ----------
    p, d, q : int
    trend : {"n", "c", "t", "ct"}
    exact : bool
        Whether the likelihood is the exact one.
    regressors : tuple of str
        Names of the exogenous columns.
    """

    p: int
    d: int
    q: int
    trend: str
    exact: bool
    regressors: tuple[str, ...] = ()

    @property
    def constant(self) -> bool:
        """Whether the differenced series have a free mean."""
        return ("c" if self.d == 0 else "t") in self.trend and self.d < 2

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
        return (*self.trend_names, *self.regressors, *ar, *ma, "sigma2")

    @property
    def n_mean(self) -> int:
        """Parameters of trend and regressors."""
        return len(self.trend_names) + len(self.regressors)

    @property
    def fewest(self) -> int:
        """Observations that a series must have, including those lost by differencing."""
        return self.d + len(self.names) + max(self.p, self.q) + 1


def arma_specification(
    arguments: Arguments, regressors: tuple[str | int, ...] = ()
) -> Specification:
    """Specification that the constructor's arguments describe, with exogenous columns."""
    order, trend = arguments.order, arguments.trend
    if not isinstance(order, Sequence) or isinstance(order, str) or len(order) not in (2, 3):
        raise TypeError(f"order must be (p, q) or (p, d, q); got {order!r}")
    for value in order:
        if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 0:
            raise ValueError(f"order must be of integers of at least 0; got {order!r}")
    p, d, q = (int(lags) for lags in ((order[0], 0, order[1]) if len(order) == 2 else order))
    exact = choice("likelihood", arguments.likelihood, LIKELIHOODS) == "exact"
    most = MOST_MIXED if exact and q else MOST_LAGS
    if max(p, q) > most:
        raise ValueError(
            f"order may have up to {MOST_LAGS} lags, and with the exact likelihood and a moving "
            f"average up to {MOST_MIXED}; got {order!r}. Take fewer lags, or "
            "likelihood='conditional' for long moving averages"
        )
    if arguments.missing == "keep" and not exact:
        raise ValueError(
            "missing='keep' needs likelihood='exact': the conditional one has no place for "
            "missing values. Take that, or missing='interpolate'"
        )
    trend = ("n" if d else "c") if trend is None else choice("trend", trend, TRENDS)
    # Differencing d times removes polynomials of a degree below d.
    eliminated = [part for power, part in enumerate("ct") if part in trend and power < d]
    if eliminated:
        raise ValueError(
            f"trend={trend!r} has terms of an order below d = {d}, which differencing removes; "
            f"take trend={'t' if d == 1 else 'n'!r} or 'n'"
        )
    names = tuple(str(name) for name in regressors)
    spec = Specification(p, d, q, trend, exact, names)
    if len(set(spec.names)) < len(spec.names):
        raise ValueError(
            f"names of exogenous columns must differ from those of parameters; got {list(names)} "
            f"beside {[name for name in spec.names if name not in names]}. Rename the columns"
        )
    return spec


@dataclass(frozen=True)
class Form:
    """Layout of the inputs, parameters and state of an ARMA cell.

    Parameters
    ----------
    p, q : int
        Lags of u and of e.
    n_regressors : int
        Inputs after y, each with a coefficient; the constant is not one of them.
    constant : bool
        Whether the first parameter is subtracted from every y.
    d : int
        Order of integration: levels carried in the state. 0 for series differenced beforehand.
    masked : bool
        Whether the last input is 1 where y was observed, else 0.
    """

    p: int
    q: int
    n_regressors: int = 0
    constant: bool = False
    d: int = 0
    masked: bool = False

    @property
    def r(self) -> int:
        """Dimension of the state of the ARMA, at least 1."""
        return max(self.p, self.q, 1)

    @property
    def dimension(self) -> int:
        """Dimension of the state with its levels."""
        return self.d + self.r

    @property
    def n_mean(self) -> int:
        """Parameters of the mean, which come first."""
        return self.constant + self.n_regressors

    @property
    def n_params(self) -> int:
        """Parameters besides sigma2: of the mean, phi, theta."""
        return self.n_mean + self.p + self.q

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


def lower_triangle(n: int) -> list[tuple[int, int]]:
    """Index pairs (i, j) with j <= i, row by row."""
    return [(i, j) for i in range(n) for j in range(i + 1)]
