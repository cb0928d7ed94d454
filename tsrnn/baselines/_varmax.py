"""Vector ARMA with regressors, of statsmodels."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from statsmodels.tsa.statespace import varmax

from tsrnn.baselines._sarimax import TRENDS, counts
from tsrnn.baselines._statespace import StateSpaceForecaster, StateSpaceModel
from tsrnn.baselines._unit import Fitted, Rows
from tsrnn.contract import choice, flag, positive_integer, with_shared_arguments

SQUARED = ("sigma2.", "measurement_variance.")  # names of variances begin so
COVARIANCES = ("unstructured", "diagonal")


@dataclass(frozen=True)
class VARMAXModel(StateSpaceModel):
    """A vector ARMA model of given orders."""

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
        n_exog = 0 if rows.exog is None else rows.exog.shape[1]
        k = rows.y.shape[1]
        return 2 * k * sum(self.order) + len(self.trend) + n_exog + k + 4

    def factors(self, fitted: Fitted, scale: Any) -> np.ndarray:
        return np.array([factor(name, scale) for name in fitted.names])

    def orders(self, fitted: Fitted) -> str:
        return f"VARMA{self.order}"


def factor(name: str, scale: np.ndarray) -> float:
    """What a parameter is multiplied by when the targets are by `scale` (C,).

    Names end in the target of the equation; those of lags have the lagged target before it.
    """
    own = float(scale[int(name.rpartition(".y")[2]) - 1])
    lagged = re.match(r"L\d+\.(?:e\()?y(\d+)", name)
    if lagged:
        return own / float(scale[int(lagged[1]) - 1])
    return own**2 if name.startswith(SQUARED) else own


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
    seen. Rows are numbered on the calendar from the first one fitted to. Intervals are normal, take
    the parameters as known, and hold if the model is right. A series that cannot be fitted is
    named in a warning; its forecasts are NaN. `VAR` estimates q = 0 by least squares, in a moment.

    Statsmodels is given targets and regressors divided by their standard deviations at `fit`;
    parameters, criteria and forecasts are told in the unit of the data. The scale is in `spec_`.

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
    multivariate: ClassVar[bool] = True
    least_targets: ClassVar[int] = 2
    takes_exog: ClassVar[bool] = True
    legal_missing: ClassVar[tuple[str, ...]] = ("error", "interpolate", "keep")

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

    def _settings(self) -> VARMAXModel:
        arguments = self.arguments_
        order = counts("order", arguments.order, "(p, q)", 2)
        if not any(order):
            raise ValueError(f"order=(p, q) needs a lag of either; got {arguments.order!r}")
        return VARMAXModel(
            order,
            choice("trend", arguments.trend, TRENDS),
            choice("error_cov_type", arguments.error_cov_type, COVARIANCES),
            flag("measurement_error", arguments.measurement_error),
            positive_integer("max_iter", arguments.max_iter),
        )
