"""Structural time series, of statsmodels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from statsmodels.tsa.statespace import structural

from tsrnn.baselines._rows import season_steps
from tsrnn.baselines._statespace import LONGEST, StateSpaceForecaster, StateSpaceModel
from tsrnn.baselines._unit import Rows, UnitEstimates
from tsrnn.contract import (
    Arguments,
    FittedData,
    choice,
    flag,
    positive_integer,
    with_shared_arguments,
)

WITHOUT_LEVEL = "irregular"
LEVELS = (
    WITHOUT_LEVEL,
    "fixed intercept",
    "deterministic constant",
    "local level",
    "random walk",
    "fixed slope",
    "deterministic trend",
    "local linear deterministic trend",
    "random walk with drift",
    "local linear trend",
    "smooth trend",
    "random trend",
)


@dataclass(frozen=True)
class Components(StateSpaceModel):
    """Sum of unobserved components."""

    level: str
    stochastic_seasonal: bool
    cycle: bool
    stochastic_cycle: bool
    damped_cycle: bool
    autoregressive: int | None
    max_iter: int = 50
    longest: ClassVar[float] = LONGEST

    @property
    def seasonal(self) -> int | None:
        """Steps of the season, if there is one."""
        return self.season if self.season > 1 else None

    def build(self, rows: Rows, spec: dict[str, Any]) -> Any:
        return structural.UnobservedComponents(
            rows.y,
            self.level,
            exog=rows.exog,
            seasonal=self.seasonal,
            stochastic_seasonal=self.stochastic_seasonal,
            cycle=self.cycle,
            stochastic_cycle=self.stochastic_cycle,
            damped_cycle=self.damped_cycle,
            autoregressive=self.autoregressive,
        )

    def n_states(self, rows: Rows, spec: dict[str, Any]) -> int:
        return 6 + (self.seasonal or 0) + (self.autoregressive or 0)

    def is_diffuse(self, spec: dict[str, Any]) -> bool:
        return self.level != WITHOUT_LEVEL

    def fewest(self, rows: Rows) -> int:
        seasons = (self.seasonal or 0) * (1 + self.implied)  # an implied one must be seen twice
        return 6 + seasons + 6 * self.cycle + 2 * (self.autoregressive or 0) + rows.n_exog

    def orders(self, fitted: UnitEstimates) -> str:
        seasonal = f", season {self.seasonal}" if self.seasonal else ""
        cycle = ", cycle" if self.cycle else ""
        ar = f", AR({self.autoregressive})" if self.autoregressive else ""
        return self.level + seasonal + cycle + ar


@with_shared_arguments
class UnobservedComponents(StateSpaceForecaster):
    r"""Structural time series by maximum likelihood: statsmodels' UnobservedComponents.

    .. math::

        y_t = \mu_t + \gamma_t + c_t + x_t'\beta + \varepsilon_t

    with a level :math:`\mu_t`, which may have a slope, a season :math:`\gamma_t`, a cycle
    :math:`c_t` and an irregular part, for example the local linear trend

    .. math::

        \mu_{t+1} = \mu_t + \nu_t + \eta_t, \qquad \nu_{t+1} = \nu_t + \zeta_t

    with independent normal disturbances. Every series and target is fitted by itself.

    Parameters
    ----------
    level : str, default "local level"
        One of statsmodels' names: "irregular", "fixed intercept", "deterministic constant",
        "local level", "random walk", "fixed slope", "deterministic trend", "local linear
        deterministic trend", "random walk with drift", "local linear trend", "smooth trend",
        "random trend".
    seasonal : int, "auto" or None, default "auto"
        Steps of a season; None for no season. "auto" takes the season of the frequency, and leaves
        it out, and says so in `messages_`, for series of less than two seasons and six rows, and
        where it has more than 24 steps: each step is a state.
    stochastic_seasonal : bool, default True
    cycle, stochastic_cycle, damped_cycle : bool, default False
    autoregressive : int, optional
        Order of an autoregression among the components.
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
    seen, from a diffuse state. Intervals are normal, take the parameters as known, and hold if the
    model is right. A series that cannot be fitted is named in a warning; its forecasts are NaN.

    Statsmodels' prior and optimiser depend on the unit of the data. It is given targets and
    regressors divided by their standard deviations at `fit`, and targets less their first value
    where there is a level. Parameters, criteria and forecasts are in the unit of the data;
    the scale is in `spec_`.

    References
    ----------
    Harvey, A. C. (1989). Forecasting, Structural Time Series Models and the Kalman Filter.

    Examples
    --------
    >>> from tsrnn.baselines import UnobservedComponents
    >>> from tsrnn.datasets import load_nile
    >>> model = UnobservedComponents(level="local level").fit(load_nile())
    >>> list(model.params_)
    ['sigma2.irregular', 'sigma2.level']
    >>> model.predict(3).shape
    (3, 1)
    """

    column_name: ClassVar[str] = "UnobservedComponents"

    def __init__(
        self,
        level: str = "local level",
        seasonal: int | str | None = "auto",
        stochastic_seasonal: bool = True,
        cycle: bool = False,
        stochastic_cycle: bool = False,
        damped_cycle: bool = False,
        autoregressive: int | None = None,
        max_iter: int = 50,
        **shared: Any,
    ) -> None:
        super().__init__(**shared)
        self.level = level
        self.seasonal = seasonal
        self.stochastic_seasonal = stochastic_seasonal
        self.cycle = cycle
        self.stochastic_cycle = stochastic_cycle
        self.damped_cycle = damped_cycle
        self.autoregressive = autoregressive
        self.max_iter = max_iter

    def _model(self, arguments: Arguments, data: FittedData) -> Components:
        seasonal, ar = arguments.seasonal, arguments.autoregressive
        implied = isinstance(seasonal, str) and choice("seasonal", seasonal, ("auto",)) == "auto"
        if implied:
            season = season_steps(None, data)
        else:
            season = 1 if seasonal is None else positive_integer("seasonal", seasonal)
        ar = None if ar is None else positive_integer("autoregressive", ar)
        if season == 1 and not (implied or seasonal is None):
            raise ValueError('seasonal must be a season of at least 2 steps, "auto" or None; got 1')
        cycle = flag("cycle", arguments.cycle)
        for name in ("stochastic_cycle", "damped_cycle"):
            if flag(name, getattr(arguments, name)) and not cycle:
                raise ValueError(f"{name}=True needs a cycle; got cycle=False")
        return Components(
            level=choice("level", arguments.level, LEVELS),
            stochastic_seasonal=flag("stochastic_seasonal", arguments.stochastic_seasonal),
            cycle=cycle,
            stochastic_cycle=arguments.stochastic_cycle,
            damped_cycle=arguments.damped_cycle,
            autoregressive=ar,
            max_iter=positive_integer("max_iter", arguments.max_iter),
            standardize=flag("standardize", arguments.standardize),
            season=season,
            implied=implied and season > 1,
        )
