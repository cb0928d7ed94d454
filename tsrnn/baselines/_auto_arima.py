"""Seasonal ARIMA with orders chosen by an information criterion."""

from __future__ import annotations

import itertools
import warnings
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from statsmodels.tsa.seasonal import STL
from statsmodels.tsa.stattools import kpss

from tsrnn.baselines._sarimax import SARIMAXModel, is_count, sarimax_name
from tsrnn.baselines._standardized import StandardizedForecaster
from tsrnn.baselines._statespace import StateSpaceModel
from tsrnn.baselines._stored import MOST_LAGS
from tsrnn.baselines._unit import Fitted, Rows
from tsrnn.contract import (
    Kind,
    choice,
    integer,
    listed,
    one_of,
    positive_integer,
    with_shared_arguments,
)

CRITERIA = ("aic", "bic", "aicc")
STRONG = 0.64  # seasonal strength from which a seasonal difference is taken
SIGNIFICANT = 0.05  # of the KPSS test
SMOOTHED_SEASONS = 11  # of STL, as in R's forecast package
MOST_DIFFERENCES = 2


@dataclass(frozen=True)
class ARIMASearch(StateSpaceModel):
    """A seasonal ARIMA model of which the orders are chosen."""

    season: int
    d: int | None
    D: int | None
    largest: tuple[int, int, int, int]  # p, q, P, Q
    criterion: str
    max_iter: int = 50

    def build(self, rows: Rows, spec: dict[str, Any]) -> Any:
        model = SARIMAXModel(tuple(spec["order"]), tuple(spec["seasonal_order"]), spec["trend"])
        return model.build(rows, {})

    def choices(self) -> dict[str, Kind]:
        orders: dict[str, Kind] = {
            "order": listed(integer(0, MOST_LAGS), 3),
            "seasonal_order": listed(integer(0, MOST_LAGS), 4),
            "trend": one_of("c", "n"),
        }
        return super().choices() | orders

    def n_states(self, rows: Rows, spec: dict[str, Any]) -> int:
        model = SARIMAXModel(tuple(spec["order"]), tuple(spec["seasonal_order"]), spec["trend"])
        return model.n_states(rows, {})

    def floats(self, spec: dict[str, Any]) -> bool:
        return spec["order"][1] + spec["seasonal_order"][1] > 0

    def centres(self, spec: dict[str, Any]) -> bool:
        return spec["trend"] == "c" and not self.floats(spec)

    def fewest(self, rows: Rows) -> int:
        p, q, P, Q = self.largest
        d, D = (1 if given is None else given for given in (self.d, self.D))
        n_exog = 0 if rows.exog is None else rows.exog.shape[1]
        if self.season < 2:
            return p + q + d + n_exog + 6
        return p + q + d + n_exog + P + Q + (max(P, Q, 1) + D) * self.season + 6

    def seasonless(self) -> ARIMASearch | None:
        return replace(self, season=1, implied=False) if self.implied else None

    def choose(self, rows: Rows) -> dict[str, Any]:
        best, lowest, reason = None, np.inf, ""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the models that are not chosen
            for spec in self.candidates(rows):
                try:
                    value = self.value(rows, spec)
                except (ValueError, np.linalg.LinAlgError) as error:
                    reason = f"{self.name(spec)}: {error}"
                    continue
                if value < lowest:
                    best, lowest = spec, value
        if best is None:
            raise ValueError(f"none of the orders could be fitted; the last, {reason}")
        return best

    def candidates(self, rows: Rows) -> list[dict[str, Any]]:
        """The models to choose among, small orders first."""
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
        """The criterion of one model of scaled rows.

        Raises
        ------
        ValueError, LinAlgError
            If it cannot be fitted.
        """
        results = self.fit(rows, self.placed(rows, spec))
        found = float(getattr(results, self.criterion))
        if not np.isfinite(found):
            raise ValueError(f"its {self.criterion} is {found}")
        return found

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

    def orders(self, fitted: Fitted) -> str:
        return "" if fitted.reason else self.name(fitted.spec)

    def name(self, spec: dict[str, Any]) -> str:
        """The orders in a spec as they are written."""
        return sarimax_name(tuple(spec["order"]), tuple(spec["seasonal_order"]))


def without_regressors(rows: Rows) -> np.ndarray:
    """What least squares leave of a series (T,) beside a constant and its regressors."""
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


@with_shared_arguments
class AutoARIMA(StandardizedForecaster):
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
    standardize : bool, default True
        Whether statsmodels is given the data in units of their standard deviations, as its result
        depends on the unit. With False numbers are those of a direct call on the same data.
    n_jobs : int, default 1
        Processes that share the series; -1 takes all cores.
    missing : {"error", "interpolate", "keep"}
        "keep" leaves missing values of targets out of the likelihood; the tests close up the
        gaps.
    horizon, target, known_ahead, static, calendar, id_col, time_col, freq, random_state, verbose
        As in all forecasters. Exogenous columns are regressors; to forecast, name them all in
        `known_ahead`. The tests look at what least squares on them leave.

    Notes
    -----
    Intervals do not know that the orders were chosen. The orders are in `spec_`. See `SARIMAX` for
    how forecasts are made, and how data are scaled.

    References
    ----------
    Hyndman, R. J., Khandakar, Y. (2008). Automatic time series forecasting: the forecast package
    for R. Journal of Statistical Software 27(3).
    Wang, X., Smith, K., Hyndman, R. (2006). Characteristic-based clustering for time series data.
    Data Mining and Knowledge Discovery 13, 335-364.

    Examples
    --------
    >>> from tsrnn.baselines import AutoARIMA
    >>> from tsrnn.datasets import load_nile
    >>> model = AutoARIMA(max_p=1, max_q=1).fit(load_nile())
    >>> model.spec_["volume"]["order"]
    [1, 1, 1]
    """

    column_name: ClassVar[str] = "AutoARIMA"
    takes_exog: ClassVar[bool] = True
    legal_missing: ClassVar[tuple[str, ...]] = ("error", "interpolate", "keep")

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

    def _settings(self) -> ARIMASearch:
        arguments = self.arguments_
        names = ("max_p", "max_q", "max_P", "max_Q", "d", "D")
        for name in names:
            value = getattr(arguments, name)
            if not (is_count(value) or (name in "dD" and value is None)):
                raise ValueError(f"{name} must be an integer of at least 0; got {value!r}")
        season = self._season(arguments.season_length)
        return ARIMASearch(
            season,
            arguments.d,
            arguments.D,
            (arguments.max_p, arguments.max_q, arguments.max_P, arguments.max_Q),
            choice("criterion", arguments.criterion, CRITERIA),
            positive_integer("max_iter", arguments.max_iter),
            implied=arguments.season_length is None and season > 1,
        )
