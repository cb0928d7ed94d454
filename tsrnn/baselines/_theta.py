"""The theta method, of statsmodels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.signal import lfilter
from statsmodels.tsa.forecasting.theta import ThetaModel, ThetaModelResults

from tsrnn.baselines._rows import season_steps
from tsrnn.baselines._statespace import ScaledModel, StandardizedForecaster
from tsrnn.baselines._unit import Ahead, Rows, Unit, UnitEstimates, normal
from tsrnn.contract import (
    Arguments,
    FittedData,
    Kind,
    choice,
    flag,
    number,
    one_of,
    with_shared_arguments,
)

METHODS = ("auto", "additive", "multiplicative")
NAMES = ("b0", "alpha", "sigma2")


@dataclass(frozen=True)
class TwoLines(ScaledModel):
    """The theta method with given settings."""

    deseasonalize: bool
    use_test: bool
    method: str
    theta: float

    @property
    def adjusts(self) -> bool:
        """True if a season is tested for."""
        return self.deseasonalize and self.season > 1

    def choices(self) -> dict[str, Kind]:
        return {"method": one_of("add", "mul")}

    def legal_names(self, spec: dict[str, Any], rows: Rows) -> list[tuple[str, ...]]:
        season = tuple(f"seasonal.{i + 1}" for i in range(self.season if self.adjusts else 0))
        return [NAMES, (*NAMES, *season)]

    def fewest(self, rows: Rows) -> int:
        return max(6, 2 * self.season if self.adjusts else 0)

    def solve(self, rows: Rows) -> tuple[UnitEstimates, int]:
        results = ThetaModel(
            rows.y,
            period=self.season,
            deseasonalize=self.adjusts,
            use_test=self.use_test,
            method=self.method,
        ).fit()
        indices = np.asarray(results._seasonal)
        names = (*NAMES, *(f"seasonal.{i}" for i in range(1, len(indices) + 1)))
        params = np.r_[np.asarray(results.params), results.sigma2, indices]
        return UnitEstimates(names, params, {"method": results.model.method[:3]}), 0

    def run(self, unit: Unit, h: int, levels: Sequence[float]) -> Ahead:
        results = self.results(unit.fitted, unit.rows)
        _, alpha, sigma2 = unit.fitted.params[:3]
        error = np.sqrt((1 + np.arange(h) * (1 + (alpha - 1) ** 2)) * sigma2)
        return normal(np.asarray(results.forecast(h, self.theta)), error, levels)

    def factors(self, fitted: UnitEstimates, scale: Any) -> np.ndarray:
        season = 1.0 if fitted.spec["method"] == "add" else 0.0
        return scale ** np.array([1.0, 0.0, 2.0] + [season] * (len(fitted.names) - len(NAMES)))

    def results(self, fitted: UnitEstimates, rows: Rows) -> ThetaModelResults:
        """Statsmodels' results of the rows at the parameters of `fitted`."""
        b0, alpha, sigma2 = fitted.params[:3]
        method = fitted.spec["method"]
        model = ThetaModel(rows.y, period=self.season, deseasonalize=self.adjusts, method=method)
        indices = np.roll(fitted.params[3:], -rows.offset)
        adjusted = rows.y
        if len(indices):
            along = np.resize(indices, len(rows.y))
            adjusted = rows.y / along if method == "mul" else rows.y - along
        level = smoothed_level(adjusted, alpha)
        return ThetaModelResults(b0, alpha, sigma2, level, indices, False, model)

    def page(self, fitted: UnitEstimates, rows: Rows) -> str:
        # Not statsmodels' page, which prints parameters under the names of others.
        seasonal = len(fitted.params) > len(NAMES)
        kind = {"add": "additive", "mul": "multiplicative"}[fitted.spec["method"]]
        facts = {
            "Observations": str(len(rows.y)),
            "Theta": f"{self.theta:g}",
            "Season": f"{self.season} steps" if seasonal else "none",
            "Decomposition": kind if seasonal else "none",
        }
        params = zip(fitted.names, fitted.params, strict=True)
        facts |= {name: f"{value:.6g}" for name, value in params}
        return "\n".join(f"{name:<24}{value:>16}" for name, value in facts.items())

    def orders(self, fitted: UnitEstimates) -> str:
        season = f", {fitted.spec['method']} season" if len(fitted.params) > len(NAMES) else ""
        return f"theta {self.theta:g}{season}" if not fitted.reason else ""


def smoothed_level(y: np.ndarray, alpha: float) -> float:
    """The last level of simple exponential smoothing that starts at the first value."""
    # initial state of the filter whose first output is y[0]
    return float(lfilter([alpha], [1, alpha - 1], y, zi=[(1 - alpha) * y[0]])[0][-1])


@with_shared_arguments
class StatsmodelsTheta(StandardizedForecaster):
    r"""The theta method: statsmodels' ThetaModel.

    .. math::

        \hat y_{T+h} = s_{T+h} \biggl\{ \frac{\theta-1}{\theta} \hat b_0 \Bigl[h - 1 +
        \frac{1}{\hat\alpha} - \frac{(1-\hat\alpha)^T}{\hat\alpha}\Bigr] + l_T \biggr\}

    with the slope :math:`\hat b_0` of a line through the seasonally adjusted series, the level
    l of its exponential smoothing with :math:`\hat\alpha`, and seasonal indices s, which are
    added where the decomposition is additive. Every series and target is fitted by itself.

    Parameters
    ----------
    season_length : int, optional
        Steps of a season. By frequency where it is None; series of less than two seasons are then
        not adjusted, and `messages_` say so.
    deseasonalize : bool, default True
        Whether to adjust where there is a season.
    use_test : bool, default True
        Whether a season must be significant at 10 percent to be adjusted for.
    method : {"auto", "additive", "multiplicative"}
        Decomposition; "auto" is multiplicative for positive series.
    theta : float, default 2.0
        Curvature of the second line, at least 1.
    **shared
        As in all forecasters.

    Notes
    -----
    Slope, smoothing parameter, indices and :math:`\sigma^2` are estimated at `fit`, which
    needs 6 rows and, to adjust, two seasons. Forecasts smooth the rows seen with these; indices
    follow the calendar. Updating with the model's forecasts does not continue them: their slope
    is only a part of b_0.

    Intervals are statsmodels': normal with the variance
    :math:`\sigma^2 (1 + (h-1)(1 + (\alpha-1)^2))`, where :math:`\sigma^2` comes from an
    ARIMA(0, 1, 1) with drift fitted to the series; they are rough for seasonally adjusted series.

    Statsmodels is given targets divided by their standard deviation at `fit`, on which its
    optimiser depends; parameters and forecasts are in the unit of the data. The scale is in
    `spec_`.

    A series that cannot be fitted is named in a warning; its forecasts are NaN.

    References
    ----------
    Assimakopoulos, V., Nikolopoulos, K. (2000). The theta model. International Journal of
    Forecasting 16, 521-530.
    Hyndman, R. J., Billah, B. (2003). Unmasking the theta method. International Journal of
    Forecasting 19, 287-290.

    Examples
    --------
    >>> from tsrnn.baselines import StatsmodelsTheta
    >>> from tsrnn.datasets import load_elec_equip
    >>> model = StatsmodelsTheta().fit(load_elec_equip())
    >>> model.predict(12, level=[90]).columns.tolist()
    ['turnover', 'turnover-lo-90', 'turnover-hi-90']
    """

    column_name: ClassVar[str] = "StatsmodelsTheta"
    # No paths match statsmodels' variances of single steps, which contradict its recursion.
    offers: ClassVar[frozenset[str]] = frozenset()

    def __init__(
        self,
        season_length: int | None = None,
        deseasonalize: bool = True,
        use_test: bool = True,
        method: str = "auto",
        theta: float = 2.0,
        **shared: Any,
    ) -> None:
        super().__init__(**shared)
        self.season_length = season_length
        self.deseasonalize = deseasonalize
        self.use_test = use_test
        self.method = method
        self.theta = theta

    def _model(self, arguments: Arguments, data: FittedData) -> TwoLines:
        season = season_steps(arguments.season_length, data)
        adjusts = flag("deseasonalize", arguments.deseasonalize)
        return TwoLines(
            adjusts,
            flag("use_test", arguments.use_test),
            choice("method", arguments.method, METHODS),
            number("theta", arguments.theta, lowest=1, open_=False),
            standardize=flag("standardize", arguments.standardize),
            season=season,
            implied=arguments.season_length is None and adjusts and season > 1,
        )
