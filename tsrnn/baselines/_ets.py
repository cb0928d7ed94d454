"""Exponential smoothing as a state-space model, of statsmodels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from statsmodels.tsa.exponential_smoothing.ets import ETSModel, ETSResults

from tsrnn.baselines._rows import season_steps
from tsrnn.baselines._statespace import LONGEST, ScaledModel, StandardizedForecaster, fitted_of
from tsrnn.baselines._unit import Ahead, Rows, Unit, UnitEstimates, normal
from tsrnn.contract import (
    Arguments,
    FittedData,
    choice,
    flag,
    positive_integer,
    seed_of,
    with_shared_arguments,
)
from tsrnn.data import quote

KINDS = ("add", "mul")
SIGMA2, SEASONAL = "sigma2", "initial_seasonal"
VARIANCES_KNOWN = ("ANN", "AAN", "AAdN", "ANA", "AAA", "AAdA")  # linear recursions


@dataclass(frozen=True)
class SmoothingModel(ScaledModel):
    """Exponential smoothing of given components."""

    error: str
    trend: str | None
    damped_trend: bool
    seasonal: str | None
    n_simulations: int
    seed: int
    longest: ClassVar[float] = LONGEST

    def build(self, rows: Rows, start: str = "estimated") -> Any:
        """Statsmodels' model of the rows."""
        return ETSModel(
            rows.y,
            self.error,
            self.trend,
            self.damped_trend,
            self.seasonal,
            self.season if self.seasonal else None,
            initialization_method=start,
        )

    def legal_names(self, spec: dict[str, Any], rows: Rows) -> list[tuple[str, ...]]:
        return [(*self.build(rows).param_names, SIGMA2)]

    def fewest(self, rows: Rows) -> int:
        return max(10, 2 * self.season + 2 if self.seasonal else 0)

    def seasonless(self) -> Self | None:
        return replace(self, seasonal=None, implied=False) if self.implied else None

    def solve(self, rows: Rows) -> tuple[UnitEstimates, int]:
        results = self.build(rows).fit(disp=False)
        fitted = fitted_of(results, {})
        params = np.append(fitted.params, results.mse)
        return replace(fitted, names=(*fitted.names, SIGMA2), params=params), 0

    def run(self, unit: Unit, h: int, levels: Sequence[float]) -> Ahead:
        results = self.smoothed(unit)
        mean = np.asarray(results.forecast(h))
        if not levels:
            return Ahead(mean, {})
        sigma = float(np.sqrt(unit.fitted.params[-1]))
        if results.model.short_name in VARIANCES_KNOWN:
            relative = results._relative_forecast_variance(np.arange(1, h + 1))
            return normal(mean, sigma * np.sqrt(relative), levels)
        # All units get the same errors, so that equal series have equal intervals.
        errors = np.random.default_rng(self.seed).normal(size=(h, self.n_simulations))
        paths = simulated(results, sigma * errors)
        ends = {
            level: tuple(np.quantile(paths, [0.5 - level / 200, 0.5 + level / 200], axis=1))
            for level in levels
        }
        return Ahead(mean, ends)

    def factors(self, fitted: UnitEstimates, scale: Any) -> np.ndarray:
        kinds = {"initial_level": "add", "initial_trend": self.trend, SEASONAL: self.seasonal}
        powers = [float(kinds.get(name.partition(".")[0]) == "add") for name in fitted.names]
        return scale ** np.array([*powers[:-1], 2.0 if self.error == "add" else 0.0])

    def smoothed(self, unit: Unit) -> Any:
        """Statsmodels' results of the rows at the smoothing parameters.

        Initial states are the estimated ones if the rows begin where those of the fit did, else
        statsmodels' heuristic ones.
        """
        fitted, rows, _ = unit
        params = fitted.params[:-1]
        model = self.build(rows, "heuristic" if rows.offset else "estimated")
        if rows.offset:
            n = len([name for name in fitted.names if name.startswith(("smoothing", "damping"))])
            params = np.append(params[:n], model.start_params[n:])
        return Smoothed(model, params, model.smooth(params, return_raw=True))

    def draw(
        self, unit: Unit, shape: tuple[int, int], generator: np.random.Generator
    ) -> np.ndarray:
        errors = np.sqrt(unit.fitted.params[-1]) * generator.standard_normal(shape[::-1])
        return simulated(self.smoothed(unit), errors).T

    def page(self, fitted: UnitEstimates, rows: Rows) -> str:
        return str(self.build(rows).smooth(fitted.params[:-1]).summary())

    def orders(self, fitted: UnitEstimates) -> str:
        trend = (self.trend or "n")[0].upper() + "d" * self.damped_trend
        return f"ETS({self.error[0].upper()},{trend},{(self.seasonal or 'n')[0].upper()})"


class Smoothed(ETSResults):
    """Statsmodels' results without standard errors, whose Hessian takes 300 passes over rows."""

    cov_params_approx = np.empty((0, 0))


def simulated(results: Any, errors: np.ndarray) -> np.ndarray:
    """Paths (h, n) of statsmodels' results under errors (h, n)."""
    h, n = errors.shape
    paths = results.simulate(h, anchor="end", repetitions=n, random_errors=errors)
    return np.asarray(paths).reshape(h, n)


@with_shared_arguments
class StatsmodelsETS(StandardizedForecaster):
    r"""Exponential smoothing as a state-space model: statsmodels' ETSModel.

    .. math::

        y_t = \hat y_{t|t-1} + e_t \quad\text{or}\quad y_t = \hat y_{t|t-1} (1 + e_t), \qquad
        \hat y_{t|t-1} = (l_{t-1} \circ \phi b_{t-1}) \circ s_{t-m}, \qquad
        e_t \sim N(0, \sigma^2)

    with additive or multiplicative errors, a level l, a trend b with damping
    :math:`\phi`, and seasonal states s; smoothing parameters and initial states by maximum
    likelihood. The default is simple exponential smoothing with the season that the frequency
    implies; Holt's method has ``trend="add"`` and ``seasonal=None``, Holt and Winters'
    ``trend="add"``. Every series and target is fitted by itself.

    Parameters
    ----------
    error : {"add", "mul"}
    trend : {"add", "mul"}, optional
        None leaves the component out.
    damped_trend : bool
    seasonal : {"auto", "add", "mul"}, optional
        "auto", the default, is "add" where there is a season, with the `season_length` given or
        that of the frequency. A season of the frequency is left out, and `messages_` say so, for
        series of less than two seasons and two rows, and where it has more than 24 steps, each of
        which is a state to be estimated. None leaves the component out.
    season_length : int, optional
        Steps m of a season; by frequency where it is None, 1 for none.
    n_simulations : int, default 1000
        Paths whose quantiles are the intervals of models with a multiplicative part, which have no
        known variance. They are drawn by `random_state`, at `predict`.
    **shared
        As in all forecasters.

    Notes
    -----
    Parameters and initial states are estimated at `fit`, which needs 10 rows, with a season two
    seasons and two rows; multiplicative parts need positive values. Forecasts run the recursion
    over the rows seen; given rows that begin elsewhere than those fitted to, from statsmodels'
    heuristic initial states. :math:`\sigma^2` is the mean of the squared residuals at `fit`;
    intervals take the parameters as known and hold if the model is right.

    Statsmodels is given targets divided by their standard deviation at `fit`, on which its
    optimiser depends; parameters, criteria and forecasts are in the unit of the data. The
    scale is in `spec_`.

    A series that cannot be fitted is named in a warning; its forecasts are NaN.

    References
    ----------
    Hyndman, R. J., Koehler, A. B., Ord, J. K., Snyder, R. D. (2008). Forecasting with
    Exponential Smoothing.

    Examples
    --------
    >>> from tsrnn.baselines import StatsmodelsETS
    >>> from tsrnn.datasets import load_nile
    >>> model = StatsmodelsETS(trend="add", damped_trend=True).fit(load_nile())
    >>> model.predict(2, level=[80]).columns.tolist()
    ['volume', 'volume-lo-80', 'volume-hi-80']
    >>> bool(0 < model.params_["smoothing_level"].iloc[0] < 1)
    True
    """

    column_name: ClassVar[str] = "StatsmodelsETS"

    def __init__(
        self,
        error: str = "add",
        trend: str | None = None,
        damped_trend: bool = False,
        seasonal: str | None = "auto",
        season_length: int | None = None,
        n_simulations: int = 1000,
        **shared: Any,
    ) -> None:
        super().__init__(**shared)
        self.error = error
        self.trend = trend
        self.damped_trend = damped_trend
        self.seasonal = seasonal
        self.season_length = season_length
        self.n_simulations = n_simulations

    def _model(self, arguments: Arguments, data: FittedData) -> SmoothingModel:
        season = season_steps(arguments.season_length, data)
        seasonal = arguments.seasonal
        if seasonal is not None and choice("seasonal", seasonal, ("auto", *KINDS)) == "auto":
            seasonal = "add" if season > 1 else None
        implied = arguments.seasonal == "auto" and arguments.season_length is None and season > 1
        trend = None if arguments.trend is None else choice("trend", arguments.trend, KINDS)
        if seasonal and season < 2:
            raise ValueError(
                "a seasonal component needs season_length of at least 2; "
                f"got {quote(arguments.season_length)} and the frequency {data.freq!r}"
            )
        if flag("damped_trend", arguments.damped_trend) and trend is None:
            raise ValueError("damped_trend=True needs a trend; got trend=None")
        return SmoothingModel(
            choice("error", arguments.error, KINDS),
            trend,
            bool(arguments.damped_trend),
            seasonal,
            positive_integer("n_simulations", arguments.n_simulations),
            seed_of(arguments.random_state),
            standardize=flag("standardize", arguments.standardize),
            season=season,
            implied=implied,
        )
