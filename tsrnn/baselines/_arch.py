"""Volatility models, of arch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from arch import arch_model

from tsrnn.baselines._fitted import UnitForecaster, count, is_count
from tsrnn.baselines._unit import Ahead, Rows, Unit, UnitEstimates, UnitModel
from tsrnn.contract import (
    Arguments,
    FittedData,
    Kind,
    choice,
    flag,
    number,
    positive,
    positive_integer,
    record,
    seed_of,
    with_shared_arguments,
)
from tsrnn.data import quote

MEANS = ("Constant", "Zero", "AR", "HAR", "LS", "ARX", "HARX")
WITH_REGRESSORS = ("LS", "ARX", "HARX")
WITH_LAGS = ("AR", "ARX", "HAR", "HARX")
VOLATILITIES = ("GARCH", "ARCH", "EGARCH", "FIGARCH", "APARCH", "HARCH")
DISTRIBUTIONS = ("normal", "t", "skewt", "ged")


@dataclass(frozen=True)
class VolatilityModel(UnitModel):
    """Mean, volatility process and distribution of arch."""

    of_variance: ClassVar[bool] = True

    mean: str
    lags: int | tuple[int, ...]
    vol: str
    p: int
    o: int
    q: int
    power: float
    dist: str
    rescale: bool
    n_simulations: int
    seed: int

    def build(self, rows: Rows, scale: float = 1.0, rescale: bool = False) -> Any:
        """Arch's model of the rows."""
        model = arch_model(
            scale * rows.y,
            rows.exog,
            mean=self.mean,  # type: ignore[arg-type]
            lags=list(self.lags) if isinstance(self.lags, tuple) else self.lags,
            vol=self.vol,  # type: ignore[arg-type]
            p=self.p,
            o=self.o,
            q=self.q,
            power=self.power,
            dist=self.dist,  # type: ignore[arg-type]
            rescale=rescale or None,
        )
        # arch simulates by the generator of the distribution, which is otherwise not seeded
        model.distribution = type(model.distribution)(seed=np.random.default_rng(self.seed))
        return model

    def fewest(self, rows: Rows) -> int:
        lags = max(self.lags) if isinstance(self.lags, tuple) else self.lags
        return 2 * lags + rows.n_exog + self.p + self.o + self.q + 10

    def spec_kind(self, rows: Rows) -> Kind:
        return record({"scale": positive})

    def legal_names(self, spec: dict[str, Any], rows: Rows) -> list[tuple[str, ...]]:
        model = self.build(rows)
        parts = model, model.volatility, model.distribution
        return [tuple(name for part in parts for name in part.parameter_names())]

    def estimate(self, rows: Rows) -> UnitEstimates:
        results = self.build(rows, rescale=self.rescale).fit(disp="off")
        return UnitEstimates(
            tuple(results.params.index),
            results.params.to_numpy(),
            {"scale": float(results.scale)},
            loglik=float(results.loglikelihood),
            aic=float(results.aic),
            bic=float(results.bic),
            converged=results.convergence_flag == 0,
        )

    def ahead(self, unit: Unit, h: int, levels: Sequence[float]) -> Ahead:
        params, scale = unit.fitted.params, unit.fitted.spec["scale"]
        model, forecast = self.forecast(unit, h, simulated=bool(levels))
        mean = forecast.mean.to_numpy()[-1] / scale
        if not levels:
            return Ahead(mean, {})
        error = np.sqrt(forecast.variance.to_numpy()[-1]) / scale
        shape = params[len(params) - model.distribution.num_params :]
        ends = {}
        for level in levels:
            low, high = model.distribution.ppf([0.5 - level / 200, 0.5 + level / 200], shape)
            ends[level] = mean + low * error, mean + high * error
        return Ahead(mean, ends)

    def variance(self, unit: Unit, h: int, of: str) -> np.ndarray:
        """Forecasts (h,) of the variance of the residuals, or of the errors of forecasts."""
        _, forecast = self.forecast(unit, h, simulated=True)
        variance = forecast.residual_variance if of == "residual" else forecast.variance
        return variance.to_numpy()[-1] / unit.fitted.spec["scale"] ** 2

    def forecast(self, unit: Unit, h: int, simulated: bool) -> tuple[Any, Any]:
        """Arch's model and its forecasts.

        Variances are simulated where they have no closed form, if they are asked for.
        """
        method = "analytic" if h == 1 or self.closed else "simulation"
        return self.ahead_by(method, unit, h, self.n_simulations if simulated else 1)

    def ahead_by(self, method: str, unit: Unit, h: int, n: int) -> tuple[Any, Any]:
        """Arch's model and its forecasts by a method, from n simulations."""
        fitted, rows, future = unit
        model = self.build(rows, fitted.spec["scale"])
        x = {} if future is None else {"x": future.T[:, None]}
        results = model.fix(fitted.params)
        return model, results.forecast(horizon=h, method=method, simulations=n, **x)

    def paths(self, unit: Unit, h: int, n: int, seed: int) -> np.ndarray:
        _, forecast = replace(self, seed=seed).ahead_by("simulation", unit, h, n)
        return forecast.simulations.values[-1] / unit.fitted.spec["scale"]

    @property
    def closed(self) -> bool:
        """True if variances beyond the first step have a closed form."""
        if self.vol in ("EGARCH", "APARCH"):
            return False
        return self.power == 2.0 or self.vol in ("HARCH", "ARCH")

    def page(self, fitted: UnitEstimates, rows: Rows) -> str:
        model = self.build(rows, fitted.spec["scale"])
        # only a fit has standard errors; started at the optimum it stays there
        results = model.fit(disp="off", starting_values=fitted.params, show_warning=False)
        return str(results.summary())

    def orders(self, fitted: UnitEstimates) -> str:
        return f"{self.mean}-{self.vol}({self.p}, {self.o}, {self.q}), {self.dist}"


@with_shared_arguments
class ArchModel(UnitForecaster):
    r"""A mean with conditional variance, by maximum likelihood: models of arch.

    .. math::

        y_t = \mu_t + \epsilon_t, \qquad \epsilon_t = \sigma_t e_t, \qquad
        \sigma_t^2 = \omega + \sum_{i=1}^p \alpha_i \epsilon_{t-i}^2 +
        \sum_{i=1}^o \gamma_i \epsilon_{t-i}^2 1_{\epsilon_{t-i} < 0} +
        \sum_{i=1}^q \beta_i \sigma_{t-i}^2

    for the default volatility, with :math:`e_t` of mean 0 and variance 1. `predict` gives the mean,
    `predict_variance` the variance of :math:`\epsilon_t`, arch's ``residual_variance``, or with
    ``of="forecast"`` that of the error of the forecast of y, arch's ``variance``. Every series and
    target is fitted by itself. `tsrnn.linear.GARCH` fits thousands of series in one batch.

    Parameters
    ----------
    mean : {"Constant", "Zero", "AR", "HAR", "LS", "ARX", "HARX"}
        "LS", "ARX" and "HARX" have the exogenous columns as regressors.
    lags : int or list of int, default 0
        Lags of the autoregressive means; horizons such as [1, 5, 22] for "HAR" and "HARX".
    vol : {"GARCH", "ARCH", "EGARCH", "FIGARCH", "APARCH", "HARCH"}
    p, o, q : int, default 1, 0, 1
        Orders of the symmetric, asymmetric and lagged volatility part.
    power : float, default 2.0
        Power of absolute residuals in "GARCH" and "FIGARCH".
    dist : {"normal", "t", "skewt", "ged"}
    rescale : bool, default False
        Whether arch may scale a series for the optimiser. Parameters then refer to the scaled
        series, by the factor in `spec_`; forecasts are in the unit of the data.
    n_simulations : int, default 1000
        Paths averaged for variances without a closed form: beyond the first step of "EGARCH",
        "APARCH" and powers other than 2. They are drawn by `random_state`.
    known_ahead : str or list of str, optional
        Exogenous columns are regressors, of the means that have them; to forecast, name all.
    **shared
        As in all forecasters.

    Notes
    -----
    Parameters are estimated at `fit`; forecasts run the model at these over the rows seen, its
    variance backcast from the first of them. Intervals have quantiles of `dist` about the mean:
    they take the parameters as known and hold for the first step, if the model is right, and are
    approximate beyond, where the distribution is a mixture. A series that cannot be fitted is
    named in a warning; its forecasts are NaN.

    References
    ----------
    Bollerslev, T. (1986). Generalized autoregressive conditional heteroskedasticity. Journal of
    Econometrics 31, 307-327.
    Sheppard, K. arch. doi:10.5281/zenodo.593254.

    Examples
    --------
    >>> from tsrnn.baselines import ArchModel
    >>> from tsrnn.datasets import load_sp500
    >>> returns = 100 * load_sp500()["Adj Close"].pct_change()[-1000:].reset_index(drop=True)
    >>> model = ArchModel(o=1, dist="t").fit(returns)
    >>> list(model.params_)
    ['mu', 'omega', 'alpha[1]', 'gamma[1]', 'beta[1]', 'nu']
    >>> model.predict_variance(h=5).shape
    (5,)
    """

    column_name: ClassVar[str] = "ArchModel"
    takes_exog: ClassVar[bool] = True
    offers: ClassVar[frozenset[str]] = UnitForecaster.offers | {"predict_variance"}

    def __init__(
        self,
        mean: str = "Constant",
        lags: int | Sequence[int] = 0,
        vol: str = "GARCH",
        p: int = 1,
        o: int = 0,
        q: int = 1,
        power: float = 2.0,
        dist: str = "normal",
        rescale: bool = False,
        n_simulations: int = 1000,
        **shared: Any,
    ) -> None:
        super().__init__(**shared)
        self.mean = mean
        self.lags = lags
        self.vol = vol
        self.p = p
        self.o = o
        self.q = q
        self.power = power
        self.dist = dist
        self.rescale = rescale
        self.n_simulations = n_simulations

    def _model(self, arguments: Arguments, data: FittedData) -> VolatilityModel:
        mean = choice("mean", arguments.mean, MEANS)
        orders = {name: count(name, getattr(arguments, name)) for name in ("p", "o", "q")}
        if bool(data.exog_names) != (mean in WITH_REGRESSORS):
            raise ValueError(
                f"mean must be one of {WITH_REGRESSORS} for data with exogenous columns and of the "
                f"others for data without; got {mean!r} and the columns "
                f"{quote(list(data.exog_names))}"
            )
        return VolatilityModel(
            mean=mean,
            lags=mean_lags(arguments.lags, mean),
            vol=choice("vol", arguments.vol, VOLATILITIES),
            power=number("power", arguments.power, lowest=0, open_=True),
            dist=choice("dist", arguments.dist, DISTRIBUTIONS),
            rescale=flag("rescale", arguments.rescale),
            n_simulations=positive_integer("n_simulations", arguments.n_simulations),
            seed=seed_of(arguments.random_state),
            **orders,
        )


def mean_lags(value: Any, mean: str) -> int | tuple[int, ...]:
    """Lags of a mean, checked."""
    listed = isinstance(value, Sequence) and not isinstance(value, str)
    if not all(is_count(lag) for lag in (value if listed else [value])):
        raise ValueError(f"lags must be an integer of at least 0 or a list; got {quote(value)}")
    lags = tuple(value) if listed else value
    if bool(lags) != (mean in WITH_LAGS):
        raise ValueError(
            f"lags are of the means {WITH_LAGS}, which need at least one; got mean={mean!r} "
            f"and lags={value!r}"
        )
    return lags
