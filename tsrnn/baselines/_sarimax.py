"""Seasonal ARIMA with regressors, of statsmodels: of given orders, and of chosen ones."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from statsmodels.tsa.seasonal import STL
from statsmodels.tsa.statespace import sarimax
from statsmodels.tsa.stattools import kpss

from tsrnn.baselines._file import MOST_LAGS
from tsrnn.baselines._fitted import count, counts
from tsrnn.baselines._rows import season_steps
from tsrnn.baselines._statespace import (
    StandardizedForecaster,
    StateSpaceForecaster,
    StateSpaceModel,
)
from tsrnn.baselines._unit import Rows, UnitEstimates
from tsrnn.contract import (
    Arguments,
    FittedData,
    Kind,
    choice,
    flag,
    integer,
    listed,
    one_of,
    positive_integer,
    recorded,
    with_shared_arguments,
)

TRENDS = ("n", "c", "t", "ct")
CRITERIA = ("aic", "bic", "aicc")
STRONG = 0.64  # seasonal strength from which a seasonal difference is taken
SIGNIFICANT = 0.05  # of the KPSS test
SMOOTHED_SEASONS = 11  # seasonal smoother of STL, as in R's forecast package
MOST_DIFFERENCES = 2

Order = tuple[int, ...]


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
    missing : {"auto", "error", "interpolate", "keep"}
        "keep" leaves missing values of targets out of the likelihood.
    known_ahead : str or list of str, optional
        Exogenous columns are regressors; to forecast, name all.
    **shared
        As in all forecasters.

    Notes
    -----
    Parameters are estimated at `fit`; forecasts run the Kalman filter at these over the rows
    seen, or given to `predict`. Rows are numbered on the calendar from the first one fitted to.
    Intervals are normal, take the parameters as known, and hold if the model is right.

    Statsmodels' prior and optimiser depend on the unit of the data. It is given targets and
    regressors divided by their standard deviations at `fit`, and targets less their first value
    where they are differenced, or less their mean where there is a constant. Parameters, criteria
    and forecasts are in the unit of the data; the scale is in `spec_`.

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

    def _model(self, arguments: Arguments, data: FittedData) -> SARIMAXModel:
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
            standardize=flag("standardize", arguments.standardize),
        )


@dataclass(frozen=True)
class SARIMAXModel(StateSpaceModel):
    """Seasonal ARIMA model of given orders."""

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

    def is_diffuse(self, spec: dict[str, Any]) -> bool:
        return self.order[1] + self.seasonal_order[1] > 0

    def has_intercept(self, spec: dict[str, Any]) -> bool:
        return "c" in self.trend and not self.is_diffuse(spec)

    def fewest(self, rows: Rows) -> int:
        (p, d, q), (P, D, Q, s) = self.order, self.seasonal_order
        n_params = p + q + P + Q + len(self.trend.replace("n", "")) + rows.n_exog + 1
        return n_params + d + D * s + 2

    def orders(self, fitted: UnitEstimates) -> str:
        return self.name

    @property
    def name(self) -> str:
        """Orders as they are written, (p, d, q)(P, D, Q)[s]."""
        seasonal, season = self.seasonal_order[:3], self.seasonal_order[3]
        return f"{self.order}{seasonal}[{season}]" if any(seasonal) else f"{self.order}"


@with_shared_arguments
class StatsmodelsAutoARIMA(StandardizedForecaster):
    r"""Seasonal ARIMA with regressors, orders chosen for each series by an information criterion.

    .. math::

        y_t = x_t'\beta + u_t, \qquad
        \phi(B) \Phi(B^s) (1 - B)^d (1 - B^s)^D u_t = c + \theta(B) \Theta(B^s) e_t,
        \qquad e_t \sim N(0, \sigma^2)

    First D, then d are chosen by tests where they are not given, then p, q, P and Q among
    all up to the largest ones; of equal values the smaller model is taken. Estimated by
    statsmodels' SARIMAX. There is a constant c where d + D is at most 1.

    Parameters
    ----------
    season_length : int, optional
        Steps s of a season, 1 for none. By frequency where it is None; series too short for the
        largest seasonal orders are then without a season, and `messages_` say so.
    max_p, max_q : int, default 2
    max_P, max_Q : int, default 1
    d, D : int, optional
        Numbers of differences. By default D is 1 where the seasonal strength of an STL
        decomposition exceeds 0.64, and d is the number of differences, d + D at most 2, after which
        the KPSS test at 5 percent accepts stationarity.
    criterion : {"aicc", "aic", "bic"}
    max_iter : int, default 50
        Iterations of the optimiser for one model.
    missing : {"auto", "error", "interpolate", "keep"}
        "keep" leaves missing values of targets out of the likelihood; the tests close up the
        gaps.
    known_ahead : str or list of str, optional
        Exogenous columns are regressors; to forecast, name all. The tests look at what least
        squares on them leave.
    **shared
        As in all forecasters.

    Notes
    -----
    Intervals ignore that the orders were chosen. The orders are in `spec_`. See `SARIMAX` for
    how forecasts are made, and how data are scaled.

    References
    ----------
    Hyndman, R. J., Khandakar, Y. (2008). Automatic time series forecasting: the forecast package
    for R. Journal of Statistical Software 27(3).
    Wang, X., Smith, K., Hyndman, R. (2006). Characteristic-based clustering for time series data.
    Data Mining and Knowledge Discovery 13, 335-364.

    Examples
    --------
    >>> from tsrnn.baselines import StatsmodelsAutoARIMA
    >>> from tsrnn.datasets import load_nile
    >>> model = StatsmodelsAutoARIMA(max_p=1, max_q=1).fit(load_nile())
    >>> model.spec_["volume"]["order"]
    [1, 1, 1]
    """

    column_name: ClassVar[str] = "StatsmodelsAutoARIMA"
    takes_exog: ClassVar[bool] = True
    legal_missing: ClassVar[tuple[str, ...]] = ("auto", "error", "interpolate", "keep")

    def __init__(
        self,
        season_length: int | None = None,
        max_p: int = 2,
        max_q: int = 2,
        max_P: int = 1,
        max_Q: int = 1,
        d: int | None = None,
        D: int | None = None,
        criterion: str = "aicc",
        max_iter: int = 50,
        **shared: Any,
    ) -> None:
        super().__init__(**shared)
        self.season_length = season_length
        self.max_p = max_p
        self.max_q = max_q
        self.max_P = max_P
        self.max_Q = max_Q
        self.d = d
        self.D = D
        self.criterion = criterion
        self.max_iter = max_iter

    def _model(self, arguments: Arguments, data: FittedData) -> ARIMASearch:
        largest = {n: count(n, getattr(arguments, n)) for n in ("max_p", "max_q", "max_P", "max_Q")}
        d, D = (count(name, getattr(arguments, name), optional=True) for name in ("d", "D"))
        season = season_steps(arguments.season_length, data)
        return ARIMASearch(
            d,
            D,
            tuple(largest.values()),
            choice("criterion", arguments.criterion, CRITERIA),
            positive_integer("max_iter", arguments.max_iter),
            standardize=flag("standardize", arguments.standardize),
            season=season,
            implied=arguments.season_length is None and season > 1,
        )


@dataclass(frozen=True)
class ARIMASearch(StateSpaceModel):
    """Seasonal ARIMA model whose orders are chosen."""

    d: int | None
    D: int | None
    largest: tuple[int, ...]  # p, q, P, Q
    criterion: str
    max_iter: int = 50

    def model(self, spec: dict[str, Any]) -> SARIMAXModel:
        """Model of the orders of a spec."""
        return SARIMAXModel(tuple(spec["order"]), tuple(spec["seasonal_order"]), spec["trend"])

    def build(self, rows: Rows, spec: dict[str, Any]) -> Any:
        return self.model(spec).build(rows, {})

    def choices(self) -> dict[str, Kind]:
        orders: dict[str, Kind] = {
            "order": listed(integer(0, MOST_LAGS), 3),
            "seasonal_order": listed(integer(0, MOST_LAGS), 4),
            "trend": one_of("c", "n"),
        }
        return super().choices() | orders

    def n_states(self, rows: Rows, spec: dict[str, Any]) -> int:
        return self.model(spec).n_states(rows, {})

    def is_diffuse(self, spec: dict[str, Any]) -> bool:
        return self.model(spec).is_diffuse({})

    def has_intercept(self, spec: dict[str, Any]) -> bool:
        return self.model(spec).has_intercept({})

    def fewest(self, rows: Rows) -> int:
        p, q, P, Q = self.largest
        d, D = (1 if number is None else number for number in (self.d, self.D))
        fewest = p + q + d + rows.n_exog + 6
        return fewest if self.season < 2 else fewest + P + Q + (max(P, Q, 1) + D) * self.season

    def choose(self, rows: Rows) -> dict[str, Any]:
        best, lowest, reason = None, np.inf, ""
        # recorded() drops warnings of rejected models; warning filters would act on all threads.
        with recorded():
            for spec in self.candidates(rows):
                try:
                    value = self.value(rows, spec)
                except (ValueError, np.linalg.LinAlgError) as error:
                    reason = f"{self.model(spec).name}: {error}"
                    continue
                if value < lowest:
                    best, lowest = spec, value
        if best is None:
            raise ValueError(f"none of the orders could be fitted; the last, {reason}")
        return best

    def candidates(self, rows: Rows) -> list[dict[str, Any]]:
        """Specs to choose among, small orders first."""
        d, D = self.differences(rows)
        trend = "c" if d + D < MOST_DIFFERENCES else "n"
        p, q, P, Q = self.largest if self.season > 1 else (*self.largest[:2], 0, 0)
        lags = itertools.product(*(range(n + 1) for n in (p, q, P, Q)))
        return [
            {
                "order": [a, d, b],
                "seasonal_order": [A, D, B, self.season if A or D or B else 0],
                "trend": trend,
            }
            for a, b, A, B in sorted(lags, key=lambda order: (sum(order), order))
        ]

    def value(self, rows: Rows, spec: dict[str, Any]) -> float:
        """The criterion of one model of scaled rows."""
        results = self.fit(rows, self.with_origin(rows, spec))
        value = float(getattr(results, self.criterion))
        if not np.isfinite(value):
            raise ValueError(f"its {self.criterion} is {value}")
        return value

    def differences(self, rows: Rows) -> tuple[int, int]:
        """Numbers of differences d and D, by tests where they are not given."""
        y = without_regressors(rows)
        D = self.D
        if D is None:
            D = int(self.season > 1 and seasonal_strength(y, self.season) > STRONG)
        for _ in range(D if self.season > 1 else 0):
            y = y[self.season :] - y[: -self.season]
        d = n_differences(y, max(0, MOST_DIFFERENCES - D)) if self.d is None else self.d
        return d, D if self.season > 1 else 0

    def orders(self, fitted: UnitEstimates) -> str:
        return "" if fitted.reason else self.model(fitted.spec).name


def without_regressors(rows: Rows) -> np.ndarray:
    """Residuals (T,) of a series by least squares on a constant and its regressors."""
    y = rows.y[np.isfinite(rows.y)]
    if rows.exog is None:
        return y
    X = np.column_stack([np.ones(len(y)), rows.exog[np.isfinite(rows.y)]])
    return y - X @ np.linalg.lstsq(X, y, rcond=None)[0]


def seasonal_strength(y: np.ndarray, season: int) -> float:
    """1 - Var(remainder) / Var(season + remainder) of an STL decomposition, at least 0.

    0 for a series of less than two seasons.
    """
    if len(y) < 2 * season + 1:
        return 0.0
    parts = STL(y, period=season, seasonal=SMOOTHED_SEASONS).fit()
    whole = np.var(parts.seasonal + parts.resid)
    return max(0.0, 1 - np.var(parts.resid) / whole) if whole > 0 else 0.0


def n_differences(y: np.ndarray, most: int) -> int:
    """Differences until the KPSS test accepts stationarity around a level."""
    for d in range(most):
        if np.ptp(y) == 0 or kpss(y, regression="c", nlags="auto")[1] >= SIGNIFICANT:
            return d
        y = np.diff(y)
    return most
