"""Vector autoregression by least squares, of statsmodels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from statsmodels.tsa.vector_ar import var_model

from tsrnn.baselines._fitted import FittedForecaster
from tsrnn.baselines._sarimax import is_count
from tsrnn.baselines._unit import Ahead, Fitted, Rows, UnitModel, moving_errors, normal
from tsrnn.contract import (
    Kind,
    choice,
    integer,
    one_of,
    positive_integer,
    record,
    with_shared_arguments,
)

CRITERIA = ("aic", "bic", "hqic", "fpe")
TRENDS = ("n", "c", "ct", "ctt")
DETERMINISTIC = {"n": (), "c": ("const",), "ct": ("const", "trend")}
DETERMINISTIC["ctt"] = (*DETERMINISTIC["ct"], "trend_squared")


@dataclass(frozen=True)
class Autoregression(UnitModel):
    """A vector autoregression of given or chosen order."""

    lags: int | None
    criterion: str
    max_lags: int | None
    trend: str

    def n_regressors(self, rows: Rows) -> int:
        """Regressors of an equation beside the lags."""
        return len(DETERMINISTIC[self.trend]) + (0 if rows.exog is None else rows.exog.shape[1])

    def spec_kind(self, rows: Rows) -> Kind:
        lags = integer(0, len(rows.y)) if self.lags is None else one_of(self.lags)
        return record({"lags": lags})

    def legal_names(self, spec: dict[str, Any], rows: Rows) -> list[tuple[str, ...]]:
        return [self.names(rows, spec["lags"])]

    def fewest(self, rows: Rows) -> int:
        lags = 1 if self.lags is None else self.lags
        k = rows.y.shape[1]
        return lags + k * lags + self.n_regressors(rows) + k

    def n_lags(self, rows: Rows) -> int:
        """The order, chosen where it is not given among those that can be estimated."""
        if self.lags is not None:
            return self.lags
        n, k = rows.y.shape
        most = round(12 * (n / 100) ** 0.25) if self.max_lags is None else self.max_lags
        most = min(most, (n - self.n_regressors(rows) - k) // (1 + k))
        orders = var_model.VAR(rows.y, rows.exog).select_order(most, trend=self.trend)
        return int(orders.selected_orders[self.criterion])

    def estimate(self, rows: Rows) -> Fitted:
        lags = self.n_lags(rows)
        results = var_model.VAR(rows.y, rows.exog).fit(lags, trend=self.trend)
        coefficients, covariance = np.asarray(results.params), np.asarray(results.sigma_u)
        return Fitted(
            self.names(rows, lags),
            np.r_[coefficients.T.ravel(), covariance[np.tril_indices(len(covariance))]],
            {"lags": lags},
            loglik=float(results.llf),
            aic=float(results.aic),
            bic=float(results.bic),
        )

    def names(self, rows: Rows, lags: int) -> tuple[str, ...]:
        """Names of the coefficients, equation by equation, and of the covariances."""
        numbers = range(1, rows.y.shape[1] + 1)
        n_exog = 0 if rows.exog is None else rows.exog.shape[1]
        regressors = [*DETERMINISTIC[self.trend], *(f"x{i}" for i in range(1, n_exog + 1))]
        regressors += [f"L{lag}.y{i}" for lag in range(1, lags + 1) for i in numbers]
        own = [f"y{i}.{name}" for i in numbers for name in regressors]
        return (*own, *(f"cov.y{i}.y{j}" for i in numbers for j in range(1, i + 1)))

    def ahead(
        self, fitted: Fitted, rows: Rows, future: np.ndarray | None, h: int, levels: Sequence[float]
    ) -> Ahead:
        mean, moving, covariance = self.moments(fitted, rows, future, h)
        variance = np.diagonal(var_model.forecast_cov(moving, covariance, h), axis1=1, axis2=2)
        return normal(mean, np.sqrt(variance), levels)

    def paths(
        self, fitted: Fitted, rows: Rows, future: np.ndarray | None, h: int, n: int, seed: int
    ) -> np.ndarray:
        mean, moving, covariance = self.moments(fitted, rows, future, h)
        return mean + moving_errors(moving[:h], covariance, n, np.random.default_rng(seed))

    def moments(
        self, fitted: Fitted, rows: Rows, future: np.ndarray | None, h: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Forecasts (h, k), the moving average (h + 1, k, k), covariance of the innovations."""
        lags, k = fitted.spec["lags"], rows.y.shape[1]
        if len(rows.y) < lags:
            raise ValueError(f"forecasts need {lags} rows; there are {len(rows.y)}")
        coefficients, covariance = split(fitted.params, k)
        n = self.n_regressors(rows)
        regressors = self.regressors(rows, future, h)
        lagged = coefficients[n:].reshape(lags, k, k).swapaxes(1, 2)
        last = rows.y[len(rows.y) - lags :]
        mean = var_model.forecast(last, lagged, regressors @ coefficients[:n], h)
        return mean, var_model.ma_rep(lagged, h), covariance

    def regressors(self, rows: Rows, future: np.ndarray | None, h: int) -> np.ndarray:
        """Deterministic terms and exogenous columns (h, n) of the steps ahead."""
        number = rows.offset + len(rows.y) + np.arange(1.0, h + 1)
        powers = [number**i for i in range(len(DETERMINISTIC[self.trend]))]
        return np.column_stack([np.empty((h, 0)), *powers, *([] if future is None else [future])])

    def page(self, fitted: Fitted, rows: Rows) -> str:
        model = var_model.VAR(rows.y, rows.exog)
        return str(model.fit(fitted.spec["lags"], trend=self.trend).summary())

    def orders(self, fitted: Fitted) -> str:
        return "" if fitted.reason else f"VAR({fitted.spec['lags']})"


def split(params: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients (n, k) and covariance matrix (k, k)."""
    n_cov = k * (k + 1) // 2
    covariance = np.zeros((k, k))
    covariance[np.tril_indices(k)] = params[-n_cov:]
    covariance += np.tril(covariance, -1).T
    return params[:-n_cov].reshape(k, -1).T, covariance


@with_shared_arguments
class VAR(FittedForecaster):
    r"""Vector autoregression by least squares: statsmodels' VAR.

    .. math::

        y_t = c + \delta t + B x_t + A_1 y_{t-1} + \dots + A_p y_{t-p} + u_t, \qquad
        \operatorname{Cov}(u_t) = \Sigma

    for all targets of a series together. The equations are numbered y1, y2, ... in the order of
    the targets.

    Parameters
    ----------
    lags : int, optional
        Order p; chosen by `criterion` for each series where it is None.
    criterion : {"aic", "bic", "hqic", "fpe"}
        What chooses the order.
    max_lags : int, optional
        The largest order to choose; by default 12 (T / 100)^(1/4) rounded. Orders that leave
        too few rows to estimate from are not tried.
    trend : {"c", "n", "ct", "ctt"}
        Constant, and the number of the row from 1 and its square.
    n_jobs : int, default 1
        Processes that share the series; -1 takes all cores.
    random_state, verbose
        As in all forecasters.
    horizon, target, known_ahead, static, calendar, id_col, time_col, freq, missing
        As in all forecasters. Exogenous columns are regressors; to forecast, name them all in
        `known_ahead`.

    Notes
    -----
    Rows are numbered on the calendar from the first one fitted to. Intervals are normal, with
    statsmodels' forecast covariances, in which the parameters are known and :math:`\Sigma` is
    divided by its degrees of freedom. A series that cannot be fitted is named in a warning; its
    forecasts are NaN.

    References
    ----------
    Lütkepohl, H. (2005). New Introduction to Multiple Time Series Analysis, chapters 2 to 4.

    Examples
    --------
    >>> from tsrnn.baselines import VAR
    >>> from tsrnn.datasets import load_macrodata
    >>> rates = load_macrodata()[["infl", "unemp"]]
    >>> model = VAR(lags=2).fit(rates)
    >>> model.predict(h=4).shape
    (4, 2)
    """

    column_name: ClassVar[str] = "VAR"
    multivariate: ClassVar[bool] = True
    least_targets: ClassVar[int] = 2
    takes_exog: ClassVar[bool] = True

    def __init__(
        self,
        lags: int | None = None,
        criterion: str = "aic",
        max_lags: int | None = None,
        trend: str = "c",
        **shared: Any,
    ) -> None:
        super().__init__(**shared)
        self.lags = lags
        self.criterion = criterion
        self.max_lags = max_lags
        self.trend = trend

    def _model(self) -> Autoregression:
        arguments = self.arguments_
        lags, most = arguments.lags, arguments.max_lags
        trend = choice("trend", arguments.trend, TRENDS)
        if lags is not None and not is_count(lags):
            raise ValueError(f"lags must be an integer of at least 0, or None; got {lags!r}")
        if lags == 0 and trend == "n":
            raise ValueError("lags=0 needs a trend; got trend='n'")
        most = None if most is None else positive_integer("max_lags", most)
        criterion = choice("criterion", arguments.criterion, CRITERIA)
        return Autoregression(lags, criterion, most, trend)
