"""Seasonal ARIMA with regressors, of statsmodels."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from statsmodels.tsa.statespace import sarimax

from tsrnn.baselines._statespace import StateSpaceForecaster, StateSpaceModel
from tsrnn.baselines._unit import Fitted, Rows
from tsrnn.contract import choice, flag, positive_integer, with_shared_arguments

TRENDS = ("n", "c", "t", "ct")
Order = tuple[int, ...]


@dataclass(frozen=True)
class SARIMAXModel(StateSpaceModel):
    """A seasonal ARIMA model of given orders."""

    order: Order
    seasonal_order: Order = (0, 0, 0, 0)
    trend: str = "n"
    enforce_stationarity: bool = True
    enforce_invertibility: bool = True
    max_iter: int = 50

    def build(self, rows: Rows, spec: dict[str, Any]) -> Any:
        return sarimax.SARIMAX(
            rows.y,
            rows.exog,
            order=self.order,
            seasonal_order=self.seasonal_order,
            trend=self.trend,
            enforce_stationarity=self.enforce_stationarity,
            enforce_invertibility=self.enforce_invertibility,
            trend_offset=1 + rows.offset,
        )

    def n_states(self, rows: Rows, spec: dict[str, Any]) -> int:
        (p, d, q), (P, D, Q, s) = self.order, self.seasonal_order
        return max(p + P * s, q + Q * s + 1) + d + D * s

    def floats(self, spec: dict[str, Any]) -> bool:
        return self.order[1] + self.seasonal_order[1] > 0

    def centres(self, spec: dict[str, Any]) -> bool:
        return "c" in self.trend and not self.floats(spec)

    def fewest(self, rows: Rows) -> int:
        (p, d, q), (P, D, Q, s) = self.order, self.seasonal_order
        n_exog = 0 if rows.exog is None else rows.exog.shape[1]
        n_params = p + q + P + Q + len(self.trend.replace("n", "")) + n_exog + 1
        return n_params + d + D * s + 2

    def orders(self, fitted: Fitted) -> str:
        return sarimax_name(self.order, self.seasonal_order)


@with_shared_arguments
class SARIMAX(StateSpaceForecaster):
    r"""Seasonal ARIMA with regressors by maximum likelihood: statsmodels' SARIMAX.

    .. math::

        y_t = x_t'\beta + u_t, \qquad
        \phi(B) \Phi(B^s) (1 - B)^d (1 - B^s)^D u_t = A(t) + \theta(B) \Theta(B^s) e_t,
        \qquad e_t \sim N(0, \sigma^2)

    with the polynomials :math:`\phi, \theta, \Phi, \Theta` of the orders p, q, P, Q, and the
    trend A(t). Every series and target is fitted by itself.

    Parameters
    ----------
    order : tuple of int, default (1, 0, 0)
        (p, d, q).
    seasonal_order : tuple of int, optional
        (P, D, Q, s), with s steps in a season.
    trend : {"n", "c", "t", "ct"}, optional
        Nothing, a constant, a slope in the number of the row from 1, or both; "n" by default.
    enforce_stationarity, enforce_invertibility : bool
        Whether the polynomials are restricted so.
    max_iter : int, default 50
        Iterations of the optimiser.
    standardize : bool, default True
        Whether statsmodels is given the data in units of their standard deviations, as its result
        depends on the unit. With False numbers are those of a direct call on the same data.
    n_jobs : int, default 1
        Processes that share the series; -1 takes all cores.
    missing : {"error", "interpolate", "keep"}
        "keep" leaves missing values of targets out of the likelihood.
    horizon, target, known_ahead, static, calendar, id_col, time_col, freq, random_state, verbose
        As in all forecasters. Exogenous columns are regressors; to forecast, name them all in
        `known_ahead`.

    Notes
    -----
    Parameters are estimated at `fit`; forecasts run the Kalman filter at these over the rows
    seen, or given to `predict`. Rows are numbered on the calendar from the first one fitted to.
    Intervals are normal, take the parameters as known, and hold if the model is right.

    Statsmodels' prior and optimiser depend on the unit of the data. It is given targets and
    regressors divided by their standard deviations at `fit`, and targets less their first value
    where they are differenced, or less their mean where there is a constant. Parameters, criteria
    and forecasts are told in the unit of the data; the scale is in `spec_`.

    A series that cannot be fitted is named in a warning; its forecasts are NaN.

    References
    ----------
    Durbin, J., Koopman, S. J. (2012). Time Series Analysis by State Space Methods, 2nd ed.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from tsrnn.baselines import SARIMAX
    >>> days = pd.date_range("2024-01-01", periods=100)
    >>> series = pd.Series(np.random.default_rng(0).normal(size=100), days, name="y")
    >>> list(SARIMAX(order=(1, 0, 0)).fit(series).params_)
    ['ar.L1', 'sigma2']
    """

    column_name: ClassVar[str] = "SARIMAX"
    takes_exog: ClassVar[bool] = True
    legal_missing: ClassVar[tuple[str, ...]] = ("error", "interpolate", "keep")

    def __init__(
        self,
        order: Sequence[int] = (1, 0, 0),
        seasonal_order: Sequence[int] | None = None,
        trend: str | None = None,
        enforce_stationarity: bool = True,
        enforce_invertibility: bool = True,
        max_iter: int = 50,
        **shared: Any,
    ) -> None:
        super().__init__(**shared)
        self.order = order
        self.seasonal_order = seasonal_order
        self.trend = trend
        self.enforce_stationarity = enforce_stationarity
        self.enforce_invertibility = enforce_invertibility
        self.max_iter = max_iter

    def _settings(self) -> SARIMAXModel:
        arguments = self.arguments_
        seasonal = (0, 0, 0, 0) if arguments.seasonal_order is None else arguments.seasonal_order
        seasonal = counts("seasonal_order", seasonal, "(P, D, Q, s)", 4)
        if any(seasonal[:3]) and seasonal[3] < 2:
            raise ValueError(
                f"seasonal_order=(P, D, Q, s) needs a season s of at least 2; got {seasonal}"
            )
        return SARIMAXModel(
            counts("order", arguments.order, "(p, d, q)", 3),
            seasonal,
            "n" if arguments.trend is None else choice("trend", arguments.trend, TRENDS),
            flag("enforce_stationarity", arguments.enforce_stationarity),
            flag("enforce_invertibility", arguments.enforce_invertibility),
            positive_integer("max_iter", arguments.max_iter),
        )


def counts(name: str, value: Any, what: str, n: int) -> Order:
    """An argument of n integers of at least 0, or an error that says `what` they are."""
    listed = isinstance(value, Sequence) and not isinstance(value, str) and len(value) == n
    if not listed or not all(is_count(item) for item in value):
        raise ValueError(f"{name} must be {n} integers {what} of at least 0; got {value!r}")
    return tuple(int(item) for item in value)


def is_count(value: Any) -> bool:
    """Whether a value is an integer of at least 0."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool) and int(value) >= 0


def sarimax_name(order: Order, seasonal_order: Order) -> str:
    """Orders as they are written, (p, d, q)(P, D, Q)[s]."""
    seasonal = f"{seasonal_order[:3]}[{seasonal_order[3]}]" if any(seasonal_order[:3]) else ""
    return f"{order}{seasonal}"
