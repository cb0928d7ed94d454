"""Vector autoregression by least squares and vector ARMA by likelihood, of statsmodels."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from statsmodels.tsa.statespace import varmax
from statsmodels.tsa.vector_ar import var_model

from tsrnn.baselines._fitted import UnitForecaster, count, counts
from tsrnn.baselines._sarimax import TRENDS
from tsrnn.baselines._statespace import StateSpaceForecaster, StateSpaceModel
from tsrnn.baselines._unit import Ahead, Rows, Unit, UnitEstimates, UnitModel, normal
from tsrnn.contract import (
    Arguments,
    FittedData,
    Kind,
    choice,
    flag,
    integer,
    one_of,
    positive_integer,
    record,
    with_shared_arguments,
)
from tsrnn.data import quote

CRITERIA = ("aic", "bic", "hqic", "fpe")
DETERMINISTIC = {"n": (), "c": ("const",), "ct": ("const", "trend")}
DETERMINISTIC["ctt"] = (*DETERMINISTIC["ct"], "trend_squared")
SQUARED = ("sigma2.", "measurement_variance.")  # prefixes of variances
COVARIANCES = ("unstructured", "diagonal")


@with_shared_arguments
class VAR(UnitForecaster):
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
        Criterion that chooses the order.
    max_lags : int, optional
        The largest order to choose; by default 12 (T / 100)^(1/4) rounded. Orders that leave
        too few rows to estimate from are not tried.
    trend : {"c", "n", "ct", "ctt"}
        Constant, and the number of the row from 1 and its square.
    known_ahead : str or list of str, optional
        Exogenous columns are regressors; to forecast, name all.
    **shared
        As in all forecasters.

    Notes
    -----
    Rows are numbered on the calendar from the first one fitted to. Intervals are normal, with
    statsmodels' forecast covariances: they take the parameters as known, and divide by degrees of
    freedom in :math:`\Sigma`. A series that cannot be fitted is named in a warning; its
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

    def _model(self, arguments: Arguments, data: FittedData) -> Autoregression:
        most = arguments.max_lags
        trend = choice("trend", arguments.trend, tuple(DETERMINISTIC))
        lags = count("lags", arguments.lags, optional=True)
        if lags == 0 and trend == "n":
            raise ValueError("lags=0 needs a trend; got trend='n'")
        most = None if most is None else positive_integer("max_lags", most)
        criterion = choice("criterion", arguments.criterion, CRITERIA)
        return Autoregression(lags, criterion, most, trend)


class VectorModel(UnitModel):
    """Model of all targets together that forecasts by its moving average of innovations."""

    multivariate: ClassVar[bool] = True

    @abstractmethod
    def moments(self, unit: Unit, h: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Forecasts (h, k), the moving average (h + 1, k, k), covariance of the innovations."""

    def ahead(self, unit: Unit, h: int, levels: Sequence[float]) -> Ahead:
        mean, moving, covariance = self.moments(unit, h)
        variance = np.diagonal(var_model.forecast_cov(moving, covariance, h), axis1=1, axis2=2)
        return normal(mean, np.sqrt(variance), levels)

    def paths(self, unit: Unit, h: int, n: int, seed: int) -> np.ndarray:
        r"""Forecasts plus errors :math:`\sum_{i<k} \Psi_i e_{k-i}` of normal innovations e."""
        mean, moving, covariance = self.moments(unit, h)
        generator = np.random.default_rng(seed)
        e = generator.multivariate_normal(np.zeros(len(covariance)), covariance, (n, h))
        errors = np.zeros_like(e)
        for i, weight in enumerate(moving[:h]):
            errors[:, i:] += e[:, : h - i] @ weight.T
        return mean + errors


@dataclass(frozen=True)
class Autoregression(VectorModel):
    """Vector autoregression of given or chosen order."""

    lags: int | None
    criterion: str
    max_lags: int | None
    trend: str

    def n_regressors(self, rows: Rows) -> int:
        """Regressors of an equation beside the lags."""
        return len(DETERMINISTIC[self.trend]) + rows.n_exog

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
        """Order, chosen among those that can be estimated where it is not given."""
        if self.lags is not None:
            return self.lags
        n, k = rows.y.shape
        most = round(12 * (n / 100) ** 0.25) if self.max_lags is None else self.max_lags
        # Lags cost a row each at the start and k coefficients an equation.
        most = min(most, (n - self.n_regressors(rows) - k) // (1 + k))
        orders = var_model.VAR(rows.y, rows.exog).select_order(most, trend=self.trend)
        return int(orders.selected_orders[self.criterion])

    def estimate(self, rows: Rows) -> UnitEstimates:
        lags = self.n_lags(rows)
        results = var_model.VAR(rows.y, rows.exog).fit(lags, trend=self.trend)
        coefficients, covariance = np.asarray(results.params), np.asarray(results.sigma_u)
        return UnitEstimates(
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
        regressors = [*DETERMINISTIC[self.trend], *(f"x{i + 1}" for i in range(rows.n_exog))]
        regressors += [f"L{lag}.y{i}" for lag in range(1, lags + 1) for i in numbers]
        coefficients = [f"y{i}.{name}" for i in numbers for name in regressors]
        return (*coefficients, *(f"cov.y{i}.y{j}" for i in numbers for j in range(1, i + 1)))

    def moments(self, unit: Unit, h: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        fitted, rows, future = unit
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
        row = rows.offset + len(rows.y) + np.arange(1.0, h + 1)  # from 1 on, at the first fitted to
        powers = [row**i for i in range(len(DETERMINISTIC[self.trend]))]
        return np.column_stack([np.empty((h, 0)), *powers, *([] if future is None else [future])])

    def page(self, fitted: UnitEstimates, rows: Rows) -> str:
        model = var_model.VAR(rows.y, rows.exog)
        return str(model.fit(fitted.spec["lags"], trend=self.trend).summary())

    def orders(self, fitted: UnitEstimates) -> str:
        return "" if fitted.reason else f"VAR({fitted.spec['lags']})"


def split(params: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients (n, k) and covariance matrix (k, k)."""
    n_cov = k * (k + 1) // 2
    covariance = np.zeros((k, k))
    covariance[np.tril_indices(k)] = params[-n_cov:]
    covariance += np.tril(covariance, -1).T
    return params[:-n_cov].reshape(k, -1).T, covariance


@with_shared_arguments
class VARMAX(StateSpaceForecaster):
    r"""Vector ARMA with regressors by maximum likelihood: statsmodels' VARMAX.

    .. math::

        y_t = A(t) + \Phi_1 y_{t-1} + \dots + \Phi_p y_{t-p} + B x_t + e_t +
        \Theta_1 e_{t-1} + \dots + \Theta_q e_{t-q}, \qquad e_t \sim N(0, \Sigma)

    for all targets of a series together.

    Parameters
    ----------
    order : tuple of int, default (1, 0)
        (p, q). With both above 0 the parameters are not identified without restrictions.
    trend : {"c", "n", "t", "ct"}
    error_cov_type : {"unstructured", "diagonal"}
    measurement_error : bool, default False
    max_iter : int, default 200
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
    seen. Rows are numbered on the calendar from the first one fitted to. Intervals are normal, take
    the parameters as known, and hold if the model is right. A series that cannot be fitted is
    named in a warning; its forecasts are NaN. `VAR` estimates q = 0 by least squares, in a moment.

    Statsmodels is given targets and regressors divided by their standard deviations at `fit`;
    parameters, criteria and forecasts are in the unit of the data. The scale is in `spec_`.

    References
    ----------
    Lütkepohl, H. (2005). New Introduction to Multiple Time Series Analysis, chapters 11 and 12.

    Examples
    --------
    >>> from tsrnn.baselines import VARMAX
    >>> from tsrnn.datasets import load_macrodata
    >>> rates = load_macrodata()[["infl", "unemp"]]
    >>> model = VARMAX(order=(1, 0)).fit(rates)
    >>> model.predict(h=4).shape
    (4, 2)
    """

    column_name: ClassVar[str] = "VARMAX"

    def __init__(
        self,
        order: Sequence[int] = (1, 0),
        trend: str = "c",
        error_cov_type: str = "unstructured",
        measurement_error: bool = False,
        max_iter: int = 200,
        **shared: Any,
    ) -> None:
        super().__init__(**shared)
        self.order = order
        self.trend = trend
        self.error_cov_type = error_cov_type
        self.measurement_error = measurement_error
        self.max_iter = max_iter

    def _model(self, arguments: Arguments, data: FittedData) -> VARMAXModel:
        order = counts("order", arguments.order, "(p, q)", 2)
        if not any(order):
            raise ValueError(f"order=(p, q) needs a lag of either; got {quote(arguments.order)}")
        return VARMAXModel(
            order,
            choice("trend", arguments.trend, TRENDS),
            choice("error_cov_type", arguments.error_cov_type, COVARIANCES),
            flag("measurement_error", arguments.measurement_error),
            positive_integer("max_iter", arguments.max_iter),
            standardize=flag("standardize", arguments.standardize),
        )


@dataclass(frozen=True)
class VARMAXModel(StateSpaceModel):
    """Vector ARMA model of given orders."""

    multivariate: ClassVar[bool] = True
    order: tuple[int, ...]
    trend: str
    error_cov_type: str
    measurement_error: bool
    max_iter: int = 50

    def build(self, rows: Rows, spec: dict[str, Any]) -> Any:
        return varmax.VARMAX(
            rows.y,
            rows.exog,
            order=self.order,
            trend=self.trend,
            error_cov_type=self.error_cov_type,
            measurement_error=self.measurement_error,
            trend_offset=1 + rows.offset,
        )

    def n_states(self, rows: Rows, spec: dict[str, Any]) -> int:
        return int(rows.y.shape[1]) * (sum(self.order) + 1)

    def fewest(self, rows: Rows) -> int:
        k = rows.y.shape[1]
        return 2 * k * sum(self.order) + len(self.trend) + rows.n_exog + k + 4

    def factors(self, fitted: UnitEstimates, scale: Any) -> np.ndarray:
        return np.array([factor(name, scale) for name in fitted.names])

    def orders(self, fitted: UnitEstimates) -> str:
        return f"VARMA{self.order}"


def factor(name: str, scale: np.ndarray) -> float:
    """Factor of a parameter when the targets are multiplied by `scale` (C,).

    Names end in the target of the equation; those of lags have the lagged target before it.
    """
    target = float(scale[int(name.rpartition(".y")[2]) - 1])
    lagged = re.match(r"L\d+\.(?:e\()?y(\d+)", name)
    if lagged:
        return target / float(scale[int(lagged[1]) - 1])
    return target**2 if name.startswith(SQUARED) else target
