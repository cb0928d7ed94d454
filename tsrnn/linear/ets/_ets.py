"""Exponential smoothing: the family of models among which one is chosen, and its estimator."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtri

from tsrnn.contract import (
    Arguments,
    FittedData,
    choice,
    flag,
    positive_integer,
    seed_of,
    unit_index,
    with_intervals,
    with_shared_arguments,
)
from tsrnn.data import Panel, quote
from tsrnn.linear._arguments import check_season, season_length
from tsrnn.linear._as_rnn import Recursion as LinearRecursion
from tsrnn.linear._estimates import Estimates
from tsrnn.linear._family import (
    Ahead,
    Arrays,
    CannotFitError,
    Family,
    Units,
    raise_if_given,
    variance_factor,
)
from tsrnn.linear._hypotheses import Restriction
from tsrnn.linear._regressors import (
    centre_of,
    centre_shapes,
    check_names,
    effects_ahead,
    with_regressors,
    without_columns,
)
from tsrnn.linear._samples import Sample
from tsrnn.linear.arma._prepare import first_rows, from_row, rows_of, unit_data
from tsrnn.linear.ets._fit import given, inferred, parts, samples
from tsrnn.linear.ets._forecast import after_rows, expected, simulated, states_by_row, variances
from tsrnn.linear.ets._likelihood import Likelihood
from tsrnn.linear.ets._reduced_form import is_admissible, linear_recursion
from tsrnn.linear.ets._region import search_within
from tsrnn.linear.ets._results import ETSResults
from tsrnn.linear.ets._search import Search, exact_fits, search
from tsrnn.linear.ets._specification import (
    KINDS,
    SIGMA2,
    Components,
    candidates,
    column_name,
    placed,
    union_names,
    with_columns,
)
from tsrnn.linear.ets._start import REGIONS, starting_states

LONGEST_SEASON = 24  # rows, each with an estimated state
DECOMPOSED = (
    "Initial states are those of a decomposition: no standard errors, no count by criteria."
)
NO_LIMIT = "on the boundary, where initial states of the component are not told from others"
_NUMBERS = 2**20  # in the paths of a batch: arrays of a step fit into the second cache


@dataclass(frozen=True)
class ETSFamily(Family):
    """Models of exponential smoothing; each unit, a target of a series, takes the best."""

    models: tuple[Components, ...]
    n_targets: int = 1
    n_simulations: int = 2000  # paths per unit, for intervals without a known variance
    random_state: Any = None  # seed of these paths
    region: str = REGIONS[0]  # of the smoothing parameters
    decomposed: bool = False  # initial states come from a decomposition, not estimated
    left_out: int = 0  # rows of the season of the frequency if it is too long, else 0
    regressors: tuple[str, ...] = ()  # exogenous columns, shared by all models

    guarantee: ClassVar[str] = (
        "Asymptotic, the model and its parameters taken as known. Holds if the model is right and "
        "its errors are normal."
    )

    @property
    def names(self) -> tuple[str, ...]:
        return (*self._named(union_names(self.models)), SIGMA2)

    @property
    def title(self) -> str:
        return self.models[0].title if len(self.models) == 1 else "ETS"

    @property
    def conventions(self) -> dict[str, str]:
        start = "by decomposition" if self.decomposed else "estimated"
        return {"Initial states": start, "Region": self.region}

    @property
    def period(self) -> int:
        """Rows of a season; 1 without one."""
        return max(model.period for model in self.models)

    @property
    def state_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"memory": (self.n_targets, 2 + self.period * (self.period > 1))}

    @property
    def constant_shapes(self) -> dict[str, tuple[int, ...]]:
        models = {"aicc": (self.n_targets, len(self.models))}
        shapes = {"model": (self.n_targets,), "spread": (self.n_targets,), **models}
        return shapes | centre_shapes(self.n_targets, self.regressors)

    def prepare(
        self, panel: Panel, given: np.ndarray | None
    ) -> Iterator[tuple[Sample | None, dict[int, str]]]:
        return raise_if_given(samples(self.models, panel, given is not None), panel, given)

    def search(self, sample: Sample, verbose: int) -> Search:
        models = with_columns(self.models, sample.kept)
        ends = exact_fits(models, sample)
        varies = np.flatnonzero(np.isinf(ends.aicc).all(1))
        if not len(varies):
            return ends
        rest = sample.select(varies)
        try:
            with np.errstate(invalid="ignore"):  # a model may reach an exact fit in a race
                if self.region == "admissible" or self.decomposed:
                    optima = search_within(models, rest, self.region, decomposed=self.decomposed)
                else:
                    optima = search(models, rest, self.region)
        except CannotFitError:
            if len(varies) == len(sample.units):
                raise
            return ends
        for whole, part in zip(ends, optima, strict=True):
            if whole is not None:
                whole[varies] = part
        return ends

    def given(self, sample: Sample, params: np.ndarray) -> Search:
        if len(self.models) > 1:
            raise ValueError(
                "parameters are those of one model; got 'auto' for a component. Name error, trend, "
                "damped and seasonal"
            )
        model, loglik = self.models[0], np.full(len(params), -np.inf)
        ends = given(self.models, sample, params, np.zeros(len(params), np.int64))
        full = placed(model, union_names(self.models), params)
        fine = (params[:, -1] > 0) & (full[:, 3] > 0)
        fine &= (full[:, 4] > 0) | (not model.positive)
        if model.linear:
            fine &= is_admissible(model, full)
        with np.errstate(all="ignore"):  # refused parameters may overflow
            for part in parts(self.models, sample, ends, union_names(self.models)):
                loglik[part.units] = part.value
        for i in np.flatnonzero(~(fine & np.isfinite(loglik))):
            shown = dict(zip(self.names, params[i].tolist(), strict=True))
            raise ValueError(
                f"params of {model.title} must have sigma2 and phi above zero, smoothing "
                "parameters at which it forgets the past and, where it has products, states and "
                f"means above zero; {shown} have not"
            )
        return ends

    def infer(self, sample: Sample, optimum: Search) -> tuple[Estimates, Arrays]:
        n_obs = np.isfinite(sample.values).sum(1)
        estimates = inferred(self.models, sample, optimum, self.region, decomposed=self.decomposed)
        spread = np.ones(len(n_obs))
        if optimum.sigma2 is None and estimates.n_params is not None:
            spread = variance_factor(n_obs, estimates.n_params - 1)
        model = optimum.model.astype(float)
        constants = {"model": model, "aicc": optimum.aicc, "spread": spread}
        estimates = with_regressors(
            estimates, self.names, self.regressors, sample.kept, "others, or a trend or season,"
        )
        return estimates, constants | centre_of(sample.columns)

    def filter(self, panel: Panel, units: Units, steps: np.ndarray) -> Arrays:
        state = np.full((len(units.params), self.state_shapes["memory"][1]), np.nan)
        for model, numbers, params, _ in self.groups(units):
            values, _ = self._values(panel, units, model, numbers)
            lead = first_rows(values)
            values = from_row(values, lead)
            first = self._first_states(model, params, values, steps[numbers // self.n_targets])
            lengths = panel.lengths[numbers // self.n_targets] - lead
            after = after_rows(model.recursion, params[:, :4], first, values, lengths)
            state[numbers, : after.shape[1]] = after
            state[numbers, after.shape[1] :] = 0.0
        return {"memory": state.reshape(panel.n_series, self.n_targets, -1)}

    def advance(self, state: Arrays, panel: Panel, units: Units, steps: np.ndarray) -> Arrays:
        before = state["memory"]
        after = before.reshape(len(units.params), -1).copy()
        for model, numbers, params, _ in self.groups(units):
            numbers = numbers[panel.lengths[numbers // self.n_targets] > 0]
            if not len(numbers):
                continue
            values, _ = self._values(panel, units, model, numbers)
            lengths, size = panel.lengths[numbers // self.n_targets], model.recursion.n_states
            chosen = np.isin(self._numbers_of(units, model), numbers)
            after[numbers, :size] = after_rows(
                model.recursion, params[chosen, :4], after[numbers, :size], values, lengths
            )
        return {"memory": after.reshape(before.shape)}

    def variance_correction(self, constants: Arrays) -> np.ndarray:
        return constants["spread"]

    def forecast(self, state: Arrays, units: Units, ahead: Ahead, levels: list[float]) -> Arrays:
        h, memory = ahead.h, state["memory"].reshape(len(units.params), -1)
        forecasts = {
            name: np.full((len(memory), h), np.nan)
            for name in with_intervals(np.zeros(0), dict.fromkeys(levels, np.zeros(0)))
        }
        for model, numbers, params, sigma2 in self.groups(units):
            states = memory[numbers, : model.recursion.n_states]
            sigma2 = sigma2 * units.constants["spread"][numbers]
            effects = effects_ahead(units, ahead, numbers, self.n_targets, self._places)
            means, widths = expected(model.recursion, params[:, :4], states, h) + effects, {}
            if levels and model.linear:
                spread = np.sqrt(variances(model, params[:, :4], sigma2, means))
                widths = {level: ndtri(0.5 + level / 200) * spread for level in levels}
            elif levels:
                widths = self._simulated(model, params, sigma2, states, means, effects, levels)
            for name, values in with_intervals(means, widths).items():
                forecasts[name][numbers] = values
        shape = len(ahead.steps), self.n_targets, h
        return {name: part.reshape(shape).swapaxes(1, 2) for name, part in forecasts.items()}

    def _simulated(
        self,
        model: Components,
        params: np.ndarray,
        sigma2: np.ndarray,
        states: np.ndarray,
        means: np.ndarray,
        effects: np.ndarray,
        levels: list[float],
    ) -> dict[float, tuple[np.ndarray, np.ndarray]]:
        """Ends of intervals less the means: quantiles of paths from common shocks."""
        h, n = means.shape[1], self.n_simulations
        half = np.random.default_rng(seed_of(self.random_state)).standard_normal((1, h, -(-n // 2)))
        z = np.concatenate([half, -half], 2)[:, :, :n]  # antithetic: less error at the same cost
        shares = [0.5 + sign * level / 200 for level in levels for sign in (-1, 1)]
        ends = np.empty((len(shares), *means.shape))
        at_once = max(1, _NUMBERS // (h * n))
        for begin in range(0, len(means), at_once):
            part = slice(begin, begin + at_once)
            paths = simulated(model, params[part, :4], sigma2[part], states[part], z, effects[part])
            paths.sort(axis=2)  # ten times faster than `np.quantile`
            for i, share in enumerate(shares):
                before, weight = divmod(share * (n - 1), 1)
                of_path = int(before), min(int(before) + 1, n - 1)
                low, high = (paths[:, :, place] for place in of_path)
                ends[i, part] = low + weight * (high - low)
        # The first step has normal errors: its quantiles need no paths.
        root = np.sqrt(sigma2) * (np.abs(means[:, 0]) if model.error == "mul" else 1.0)
        ends[:, :, 0] = means[:, 0] + ndtri(shares)[:, None] * root
        ends -= means
        return {level: (ends[2 * i], ends[2 * i + 1]) for i, level in enumerate(levels)}

    def simulate(
        self, state: Arrays, units: Units, ahead: Ahead, n: int, rng: np.random.Generator
    ) -> np.ndarray:
        memory = state["memory"].reshape(len(units.params), -1)
        z = rng.standard_normal((len(memory), ahead.h, n))
        paths = np.full(z.shape, np.nan)
        for model, numbers, params, sigma2 in self.groups(units):
            states = memory[numbers, : model.recursion.n_states]
            sigma2 = sigma2 * units.constants["spread"][numbers]
            effects = effects_ahead(units, ahead, numbers, self.n_targets, self._places)
            paths[numbers] = simulated(model, params[:, :4], sigma2, states, z[numbers], effects)
        return paths.reshape(-1, self.n_targets, ahead.h, n).transpose(3, 0, 2, 1)

    def in_sample(
        self, panel: Panel, units: Units, steps: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        fitted, scaled = [], []
        for model, numbers, params, sigma2 in self.groups(units):
            given, effects = self._values(panel, units, model, numbers)
            lead = first_rows(given)
            values = from_row(given, lead)
            first = self._first_states(model, params, values, steps[numbers // self.n_targets])
            recursion = model.recursion._replace(columns=())
            likelihood = Likelihood(
                recursion, values, np.arange(len(values)), np.zeros(len(values), bool)
            )
            at = params[:, : len(recursion.names)].copy()
            at[:, 4:] = first[:, : at.shape[1] - 4]
            means = from_row(likelihood.means(at)[:, : values.shape[1]], -lead)
            means, values = means + effects, given + effects
            relative = np.abs(means) if model.error == "mul" else 1.0
            fitted.append((numbers, means))
            # Residuals of an exact fit have no scale.
            spread = np.sqrt(np.where(sigma2 > 0, sigma2, np.nan))[:, None]
            scaled.append((numbers, (values - means) / (relative * spread)))
        return rows_of(panel, fitted), rows_of(panel, scaled)

    def components(self, panel: Panel, units: Units, steps: np.ndarray) -> Arrays:
        """Level, trend and season (rows, C) after every row; NaN where a unit has none.

        With exogenous columns, "regression" is their effect.
        """
        parts: dict[str, list[tuple[np.ndarray, np.ndarray]]]
        parts = {"level": [], "trend": [], "season": []}
        if self.regressors:
            parts["regression"] = []
        for model, numbers, params, _ in self.groups(units):
            values, effects = self._values(panel, units, model, numbers)
            lead = first_rows(values)
            values = from_row(values, lead)
            first = self._first_states(model, params, values, steps[numbers // self.n_targets])
            if self.regressors:
                parts["regression"].append((numbers, effects))
            rows = states_by_row(model.recursion, params[:, :4], first, values)
            states = np.stack([np.stack([row[0], row[1], row[-1]]) for row in rows], 2)
            states = np.stack([from_row(part, -lead) for part in states])
            parts["level"].append((numbers, states[0]))
            if model.trend != "none":
                parts["trend"].append((numbers, states[1]))
            if model.seasonal != "none":
                parts["season"].append((numbers, states[2]))
        return {name: rows_of(panel, part) for name, part in parts.items()}

    def recursion(self, params: np.ndarray, constants: Arrays) -> LinearRecursion:
        model = self.models[int(constants["model"])]
        if not model.linear:
            raise ValueError(
                f"{model.title} multiplies components: its recursion is not linear. Take trend and "
                "seasonal 'none' or 'add'"
            )
        full = placed(model, union_names(self.models), params[None])
        return linear_recursion(model, full[0])

    def notes(self) -> list[str]:
        lines = [DECOMPOSED] if self.decomposed else []
        if self.left_out:
            lines.append(
                f"The season of {self.left_out} rows is left out, as each of them has a state. "
                f"season_length={self.left_out} takes it in."
            )
        return lines

    def names_of(self, constants: Arrays) -> tuple[str, ...]:
        number = constants["model"]
        if not np.isfinite(number):
            return self.names
        return (*self._named(self.models[int(number)].names), SIGMA2)

    def restriction_to(self, smaller: Family, params: np.ndarray) -> Restriction | None:
        if not isinstance(smaller, ETSFamily) or len(self.models) > 1 or len(smaller.models) > 1:
            return None
        model, small = self.models[0], smaller.models[0]
        parts = ("trend", "seasonal")
        kinds = all(getattr(small, part) in ("none", getattr(model, part)) for part in parts)
        nested = kinds and small.error == model.error and small.damped <= model.damped
        if not nested or not set(smaller.regressors) <= set(self.regressors):
            return None
        same = replace(small, columns=()) == replace(model, columns=())
        return Restriction() if same and self.regressors else Restriction(reason=NO_LIMIT)

    def facts(self, params: np.ndarray, constants: Arrays) -> dict[str, object]:
        if not np.isfinite(params).all():
            return {}
        facts: dict[str, object] = {}
        if len(self.models) > 1:
            number, tried = int(constants["model"]), int(np.isfinite(constants["aicc"]).sum())
            facts = {"Chosen": self.models[number].title, "of": f"{tried} by AICc"}
        return facts

    def groups(
        self, units: Units
    ) -> Iterator[tuple[Components, np.ndarray, np.ndarray, np.ndarray]]:
        """Yield each model with its unit numbers, all parameters (n, k), and sigma2 (n,)."""
        names = union_names(self.models)
        for model in self.models:
            numbers = self._numbers_of(units, model)
            if len(numbers):
                params = units.params[numbers]
                yield model, numbers, placed(model, names, params), params[:, -1]

    @property
    def _places(self) -> list[int]:
        """Positions of the coefficients of exogenous columns among the parameters."""
        names = union_names(self.models)
        return [names.index(column_name(place)) for place in range(len(self.regressors))]

    def _named(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Replace positional names of coefficients by the names of the columns."""
        given = {column_name(place): name for place, name in enumerate(self.regressors)}
        return tuple(given.get(name, name) for name in names)

    def _values(
        self, panel: Panel, units: Units, model: Components, numbers: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Values (n, T) of units less the effects of exogenous columns, and these effects.

        A ValueError refuses values that are not positive where the model needs it.
        """
        values, _ = unit_data(panel, numbers)
        if model.positive and (values <= 0).any():
            bad = int((values <= 0).any(1).argmax())
            label = unit_index(panel.layout, panel.ids, multivariate=False)[numbers[bad]]
            raise ValueError(
                f"{model.title} of {quote(label)} needs positive values; the lowest of these rows "
                f"is {np.nanmin(values[bad]):g}. Fit a model with additive components to the series"
            )
        return without_columns(panel, units, numbers, self._places)

    def _numbers_of(self, units: Units, model: Components) -> np.ndarray:
        """Numbers of the units with a model."""
        fitted = units.fitted
        return fitted[units.constants["model"][fitted] == self.models.index(model)]

    def _first_states(
        self, model: Components, params: np.ndarray, values: np.ndarray, steps: np.ndarray
    ) -> np.ndarray:
        """States before the first rows: estimated, or decomposed if the rows start elsewhere."""
        _, states = model.recursion.split(params)
        elsewhere = np.flatnonzero(steps != 0)
        if len(elsewhere):
            states = states.copy()
            states[elsewhere] = starting_states(model, values[elsewhere])
        return states


@with_shared_arguments
class ETS(ETSResults):
    r"""Exponential smoothing as an innovations state-space model, one series or many.

    .. math::

        y_t = \mu_t + e_t \quad \text{or} \quad y_t = \mu_t (1 + e_t), \qquad
        e_t \sim N(0, \sigma^2)

    whose mean has a level, a trend and a season, each additive or multiplicative (Hyndman et al.,
    2008). Where they are added, with :math:`q_t = l_{t-1} + \phi b_{t-1}` and
    :math:`r_t = y_t - \mu_t`,

    .. math::

        \mu_t = q_t + s_{t-m}, \quad l_t = q_t + \alpha r_t, \quad
        b_t = \phi b_{t-1} + \beta r_t, \quad s_t = s_{t-m} + \gamma r_t

    The default chooses by the corrected information criterion of Akaike among the models that R's
    ``forecast`` chooses among, for each series and target by itself.

    Parameters
    ----------
    error : {"auto", "add", "mul"}
    trend, seasonal : {"auto", "none", "add", "mul"}
        "auto" never takes a multiplicative trend. It tries a season of up to 24 rows if the series
        has two of them; "add" and "mul" insist. Multiplicative models need positive data, and a
        choice leaves them out for other series.
    damped : bool, optional
        Whether the trend is damped; by default both are tried.
    season_length : int, optional
        Rows of a season; by frequency where it is None, 1 for none.
    bounds : {"slow", "usual", "admissible"}
        Region of the smoothing parameters. "usual", that of R and statsmodels, is
        :math:`0 < \alpha < 1`, :math:`0 < \beta < \alpha`, :math:`0 < \gamma < 1 - \alpha`;
        "slow" adds :math:`\beta < \alpha / 10`, so that the trend does not follow the last few
        rows, which forecasts short series better; "admissible" is the whole region where forecasts
        forget the past, for models without products. Always :math:`0.8 \le \phi \le 0.98`.
    initialization : {"estimated", "heuristic"}
        States before the first row: estimated with the other parameters, or fixed by a
        decomposition and not counted by the criteria.
    n_simulations : int, default 2000
        Paths whose quantiles are the intervals of models with a multiplicative trend or season,
        which have no known variance.
    cov_type : str, default "hessian"
        Kind of standard errors: "hessian", "opg", "information", "robust" or
        "bollerslev-wooldridge".
    missing : {"auto", "error", "interpolate", "keep"}
        "keep" leaves missing values out of the likelihood.
    parameter_uncertainty, outliers, intervals
        As in `ARMA`.
    horizon, id_col, time_col, freq, strict, support, random_state, verbose
        As in all linear models.
    target, known_ahead, static, calendar, holidays
        As in all linear models. Exogenous columns are regressors; to forecast, name them all in
        `known_ahead`.

    Notes
    -----
    Exogenous columns :math:`x_t` enter the measurement (Hyndman et al., 2008, chapter 9),

    .. math:: \mu_t = \hat n_t + (x_t - \bar x)' \beta

    with the mean :math:`\hat n_t` from the states, :math:`q_t + s_{t-m}` or :math:`q_t s_{t-m}`,
    and the means :math:`\bar x` of the columns over the rows fitted to: a shift of a column changes
    no model, and the level refers to average columns. Multiplicative errors are relative to the
    whole mean :math:`\mu_t`. The coefficients :math:`\beta` are estimated with the other parameters
    and counted by the criteria; all models of a choice have them. Columns that are constant or
    collinear in the rows fitted to are left out with a warning. So are a line or a seasonal dummy
    that the trend or season of a candidate model spans: ``trend="none"`` and ``seasonal="none"``
    keep them.

    Criteria count smoothing parameters, initial states and :math:`\sigma^2`, as R does.
    `candidates_` has the corrected criterion of all models. The update of a multiplicative season
    divides by :math:`q_t`, as in Hyndman et al. and R; statsmodels divides by :math:`l_t`.

    Intervals are normal if trend and season are additive, else quantiles of simulated paths. They
    take the chosen model as known, and hold if it is right.

    `to_rnn` returns a model without products as a linear recurrent network. A season of m rows
    appears in `tsrnn.recurrence_features` as waves on the unit circle.

    References
    ----------
    Hyndman, R. J., Koehler, A. B., Ord, J. K., Snyder, R. D. (2008). Forecasting with
    Exponential Smoothing.

    Examples
    --------
    >>> from tsrnn.linear import ETS
    >>> from tsrnn.datasets import load_nile
    >>> model = ETS().fit(load_nile())
    >>> model.models_.tolist()
    ['ETS(M, N, N)']
    """

    column_name: ClassVar[str] = "ETS"
    family_class: ClassVar[type[Family]] = ETSFamily
    takes_exog: ClassVar[bool] = True
    legal_missing: ClassVar[tuple[str, ...]] = ("auto", "error", "interpolate", "keep")

    def __init__(
        self,
        error: str = "auto",
        trend: str = "auto",
        seasonal: str = "auto",
        damped: bool | None = None,
        season_length: int | None = None,
        bounds: str = REGIONS[0],
        initialization: str = "estimated",
        n_simulations: int = 2000,
        **shared: Any,
    ) -> None:
        super().__init__(**shared)
        self.error = error
        self.trend = trend
        self.seasonal = seasonal
        self.damped = damped
        self.season_length = season_length
        self.bounds = bounds
        self.initialization = initialization
        self.n_simulations = n_simulations

    def _family(self, arguments: Arguments, data: FittedData) -> ETSFamily:
        error = choice("error", arguments.error, ("auto", *KINDS[1:]))
        trend = choice("trend", arguments.trend, ("auto", *KINDS))
        seasonal = choice("seasonal", arguments.seasonal, ("auto", *KINDS))
        damped = None if arguments.damped is None else flag("damped", arguments.damped)
        length, left_out = arguments.season_length, 0
        period = season_length(length, data)
        if length is None and period > LONGEST_SEASON:
            period, left_out = 1, period
        if trend == "none" and damped:
            raise ValueError("damped=True needs a trend; got trend='none'")
        if seasonal in ("add", "mul"):
            check_season(seasonal, period, length, data)
        region = choice("bounds", arguments.bounds, REGIONS)
        start = choice("initialization", arguments.initialization, ("estimated", "heuristic"))
        models = candidates(error, trend, damped, seasonal, period)
        if region == "admissible":  # the region of models that multiply components is not known
            models = tuple(model for model in models if model.linear)
        if not models:
            raise ValueError(
                "bounds='admissible' is known of trends and seasons that are added; got "
                f"trend={trend!r}, seasonal={seasonal!r}. Take bounds='usual'"
            )
        n_simulations = positive_integer("n_simulations", arguments.n_simulations)
        columns = check_names(data.exog_names, [*union_names(models), SIGMA2])
        return ETSFamily(
            with_columns(models, tuple(range(len(columns)))), data.n_targets, n_simulations,
            arguments.random_state, region, start == "heuristic", left_out, columns,
        )  # fmt: skip
