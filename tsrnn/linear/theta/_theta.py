"""The theta method: the family of its models, and its estimator."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from tsrnn.contract import Arguments, FittedData, choice, flag, number, with_shared_arguments
from tsrnn.data import Panel, quote
from tsrnn.linear._arguments import MOST_LAGS, check_season, season_length
from tsrnn.linear._as_rnn import DifferenceEquation, Recursion
from tsrnn.linear._base import MeanForecaster
from tsrnn.linear._estimates import Estimates
from tsrnn.linear._family import Ahead, Arrays, Family, Units, normal_forecasts, raise_if_given
from tsrnn.linear._hypotheses import Restriction
from tsrnn.linear._regressors import (
    centre_of,
    centre_shapes,
    check_names,
    effects_ahead,
    with_regressors,
    without_columns,
)
from tsrnn.linear.arma._prepare import first_rows, from_row, rows_of
from tsrnn.linear.theta._cells import GIVEN, STATE
from tsrnn.linear.theta._fit import Choices, Sample, Search, given, inferred, samples, search
from tsrnn.linear.theta._forecast import after_rows, expected, means_of, simulated, variances
from tsrnn.linear.theta._likelihood import beginning
from tsrnn.linear.theta._season import LIMIT, Season

SEASONS = ("auto", "none", "add", "mul")
KINDS = ("none", "additive", "multiplicative")
NO_LIMIT = "what tells of the level before the first row does not grow with the series"


@dataclass(frozen=True)
class ThetaFamily(Family):
    """Theta models at given arguments; a unit is a target of a series."""

    choices: Choices
    n_targets: int = 1

    guarantee: ClassVar[str] = (
        "Asymptotic, the season and the parameters taken as known. Holds if the model is right "
        "and its errors are normal."
    )

    @property
    def names(self) -> tuple[str, ...]:
        return self.choices.names

    @property
    def title(self) -> str:
        theta = self.choices.theta
        kind = "optimised" if theta is None else "standard" if theta == 2 else f"theta = {theta:g}"
        return f"Theta ({'dynamic, ' * self.choices.dynamic}{kind})"

    @property
    def state_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"memory": (self.n_targets, len(STATE))}

    @property
    def constant_shapes(self) -> dict[str, tuple[int, ...]]:
        # start: first row with a value, level before it, A and B of the line through all rows.
        # season: kind, test statistic and indices. spread: variance of forecast errors over sigma2.
        return {
            "start": (self.n_targets, 4),
            "season": (self.n_targets, 2 + self.choices.period),
            "spread": (self.n_targets,),
        } | centre_shapes(self.n_targets, self.choices.regressors)

    @property
    def conventions(self) -> dict[str, str]:
        return {"Likelihood": f"adjusted, from row {GIVEN + 1}"}

    def prepare(
        self, panel: Panel, given: np.ndarray | None
    ) -> Iterator[tuple[Sample | None, dict[int, str]]]:
        return raise_if_given(samples(self.choices, panel, given), panel, given)

    def search(self, sample: Sample, verbose: int) -> Search:
        return search(self.choices, sample)

    def given(self, sample: Sample, params: np.ndarray) -> Search:
        return given(self.choices, sample, params)

    def infer(self, sample: Sample, optimum: Search) -> tuple[Estimates, Arrays]:
        estimates, constants = inferred(self.choices, sample, optimum)
        estimates = with_regressors(
            estimates, self.names, self.choices.regressors, sample.kept,
            "others, or with the season,",
        )  # fmt: skip
        return estimates, constants | centre_of(sample.columns)

    def filter(self, panel: Panel, units: Units, steps: np.ndarray) -> Arrays:
        nothing = np.zeros((panel.n_series, self.n_targets, len(STATE)))
        return self.advance({"memory": nothing}, panel, units, steps)

    def advance(self, state: Arrays, panel: Panel, units: Units, steps: np.ndarray) -> Arrays:
        before = state["memory"]
        memory = before.reshape(len(units.params), -1).copy()
        memory[np.isnan(units.params).any(1)] = np.nan
        lengths = np.repeat(panel.lengths, self.n_targets)
        numbers = units.fitted[lengths[units.fitted] > 0]
        if len(numbers):
            adjusted, first, _ = self._adjusted(panel, units, steps, numbers)
            # A series without values so far begins with its first value.
            fresh = memory[numbers, 0] == 0
            first = np.where(fresh, first, 0)
            values = from_row(adjusted, first)
            memory[numbers[fresh]] = self._beginning(
                units,
                numbers[fresh],
                values[fresh, 0],
                (steps[numbers // self.n_targets] + first)[fresh],
            )
            params, _ = self._params(units, numbers)
            left = np.where(fresh & np.isnan(values[:, 0]), 0, lengths[numbers] - first)
            memory[numbers] = after_rows(
                self.choices.dynamic, params, memory[numbers], values, left
            )
        return {"memory": memory.reshape(before.shape)}

    def variance_correction(self, constants: Arrays) -> np.ndarray:
        return constants["spread"]

    def forecast(self, state: Arrays, units: Units, ahead: Ahead, levels: list[float]) -> Arrays:
        numbers, memory = self._begun(state, units)
        params, sigma2 = self._params(units, numbers)
        terms, factors = self._season_ahead(units, ahead, numbers)
        mean, variance = np.full((2, len(units.params), ahead.h), np.nan)
        dynamic = self.choices.dynamic
        mean[numbers] = terms + factors * expected(dynamic, params, memory, ahead.h)
        mean[numbers] += self._effects_ahead(units, ahead, numbers)
        if levels:
            sigma2 = sigma2 * units.constants["spread"][numbers]
            variance[numbers] = factors**2 * variances(dynamic, params, sigma2, memory, ahead.h)
        shape = len(ahead.steps), self.n_targets, ahead.h
        mean, variance = (part.reshape(shape).swapaxes(1, 2) for part in (mean, variance))
        return normal_forecasts(mean, variance, levels)

    def simulate(
        self, state: Arrays, units: Units, ahead: Ahead, n: int, rng: np.random.Generator
    ) -> np.ndarray:
        numbers, memory = self._begun(state, units)
        params, sigma2 = self._params(units, numbers)
        terms, factors = self._season_ahead(units, ahead, numbers)
        drawn = np.full((len(units.params), ahead.h, n), np.nan)
        # Drawn for all units, so that a path does not depend on which series could be fitted.
        z = rng.standard_normal(drawn.shape)[numbers]
        sigma2 = sigma2 * units.constants["spread"][numbers]
        paths = simulated(self.choices.dynamic, params, sigma2, memory, z)
        drawn[numbers] = terms[:, :, None] + factors[:, :, None] * paths
        drawn[numbers] += self._effects_ahead(units, ahead, numbers)[:, :, None]
        return drawn.reshape(-1, self.n_targets, ahead.h, n).transpose(3, 0, 2, 1)

    def in_sample(
        self, panel: Panel, units: Units, steps: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        numbers = units.fitted
        if not len(numbers):
            return rows_of(panel, []), rows_of(panel, [])
        adjusted, first, effects = self._adjusted(panel, units, steps, numbers)
        values = from_row(adjusted, first)
        rows = steps[numbers // self.n_targets]
        params, sigma2 = self._params(units, numbers)
        states = self._beginning(units, numbers, values[:, 0], rows + first)
        means = from_row(means_of(self.choices.dynamic, params, states, values), -first)
        # Residuals of an exact fit have no scale.
        scaled = (adjusted - means) / np.sqrt(np.where(sigma2 > 0, sigma2, np.nan))[:, None]
        terms, factors = self._season(units, numbers).components(
            rows[:, None] + np.arange(means.shape[1])
        )
        fitted = terms + factors * means + effects
        return rows_of(panel, [(numbers, fitted)]), rows_of(panel, [(numbers, scaled)])

    def facts(self, params: np.ndarray, constants: Arrays) -> dict[str, object]:
        if not np.isfinite(params).all():
            return {}
        (kind, statistic), period = constants["season"][:2], self.choices.period
        facts: dict[str, object] = {"Season": KINDS[int(kind)]}
        if kind:
            facts["Season"] = f"{KINDS[int(kind)]}, {period} rows"
        if np.isfinite(statistic):
            facts["Test of the season"] = f"{statistic:.2f} (limit {LIMIT:.2f})"
        if not self.choices.estimated:
            facts["Level before"] = f"{constants['start'][1]:.6g}"
        return facts

    def notes(self) -> list[str]:
        if self.choices.seasonal == "none" or self.choices.period == 1:
            return []
        return ["The season is estimated before the likelihood, which is of the adjusted series."]

    def restriction_to(self, smaller: Family, params: np.ndarray) -> Restriction | None:
        if not isinstance(smaller, ThetaFamily):
            return None
        large, small = self.choices, smaller.choices
        alike = large._replace(theta=None, estimated=True, regressors=()) == small._replace(
            theta=None, estimated=True, regressors=()
        )
        if large.regressors != small.regressors:  # columns change the series that has the season
            fewer = set(small.regressors) < set(large.regressors) and large.period == 1
            same = large._replace(regressors=()) == small._replace(regressors=())
            return Restriction() if fewer and same else None
        if not alike or large.theta not in (None, small.theta) or small.estimated > large.estimated:
            return None
        if small.estimated < large.estimated:
            return Restriction(reason=NO_LIMIT)
        return Restriction(boundary=int(large.theta is None and small.theta == 1))

    def recursion(self, params: np.ndarray, constants: Arrays) -> Recursion:
        if self.choices.dynamic:
            raise ValueError(
                "the recursion of a dynamic theta model has coefficients that change from row to "
                "row; one with dynamic=False has a layer"
            )
        (level, alpha, theta), _ = self._natural(params, constants["start"][1])
        A, B = constants["start"][2:]
        drift, first = (1 - 1 / theta) * B, level + (1 - 1 / theta) * (A + B)
        # mu' = (1 - alpha) mu + alpha y + drift: simple exponential smoothing with drift.
        part = np.array([[[1 - alpha]]])
        equation = DifferenceEquation(part, 1 - part, np.array([drift]))
        return Recursion(equation, np.array([(first - drift) / (1 - alpha)]), np.zeros(1))

    def _natural(self, params: np.ndarray, level: Any) -> tuple[np.ndarray, np.ndarray]:
        """Level, alpha and theta (..., 3), and sigma2 (...), estimated or not."""
        full = np.empty((*params.shape[:-1], 4))
        full[..., 0], full[..., 2] = level, self.choices.theta
        full[..., self.choices.free] = params[..., self.choices.model_places]
        return full[..., :3], full[..., 3]

    def _params(self, units: Units, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self._natural(units.params[numbers], units.constants["start"][numbers, 1])

    def _season(self, units: Units, numbers: np.ndarray) -> Season:
        values = units.constants["season"][numbers]
        return Season(values[:, 0].astype(np.int64), values[:, 2:], values[:, 1])

    def _season_ahead(
        self, units: Units, ahead: Ahead, numbers: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        rows = ahead.steps[numbers // self.n_targets][:, None] + np.arange(ahead.h)
        return self._season(units, numbers).components(rows)

    def _adjusted(
        self, panel: Panel, units: Units, steps: np.ndarray, numbers: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Adjusted values (n, T) of units, their first rows with a value, and effects of columns.

        Effects of exogenous columns are subtracted before the adjustment.
        """
        values, effects = without_columns(panel, units, numbers, self.choices.slopes)
        rows = steps[numbers // self.n_targets][:, None] + np.arange(values.shape[1])
        terms, factors = self._season(units, numbers).components(rows)
        return (values - terms) / factors, first_rows(values), effects

    def _effects_ahead(self, units: Units, ahead: Ahead, numbers: np.ndarray) -> np.ndarray:
        return effects_ahead(units, ahead, numbers, self.n_targets, self.choices.slopes)

    def _beginning(
        self, units: Units, numbers: np.ndarray, first_values: np.ndarray, rows: np.ndarray
    ) -> np.ndarray:
        """States before the first values, in `rows` counted from the first row fitted to.

        If a series begins elsewhere than at the fit, the level starts as in a model that does not
        estimate it.
        """
        params, _ = self._params(units, numbers)
        first, _, A, B = units.constants["start"][numbers].T
        away = rows - first
        level = np.where(away == 0, params[:, 0], first_values / params[:, 2])
        line = None if self.choices.dynamic else np.stack([A + B * away, B], 1)
        return beginning(level, line)

    def _begun(self, state: Arrays, units: Units) -> tuple[np.ndarray, np.ndarray]:
        """Fitted units with a value so far, and their states."""
        memory = state["memory"].reshape(len(units.params), -1)
        numbers = units.fitted[memory[units.fitted, 0] > 0]
        return numbers, memory[numbers]


@with_shared_arguments
class Theta(MeanForecaster):
    r"""The theta method as an innovations state-space model, one series or many.

    .. math::

        y_t &= \mu_t + e_t, \qquad e_t \sim N(0, \sigma^2) \\
        \mu_t &= \ell_{t-1} + \Big(1 - \frac 1 \theta\Big) \Big((1-\alpha)^{t-1} A_{t-1}
            + \frac{1 - (1-\alpha)^t}{\alpha} B_{t-1}\Big), \qquad
        \ell_t = \ell_{t-1} + \alpha (y_t - \ell_{t-1})

    of the seasonally adjusted series, with the line :math:`A + B t` of least squares through the
    rows before t or, if not `dynamic`, through all of them (Fiorucci et al., 2016). The default is
    their dynamic optimised theta model; ``Theta(theta=2, dynamic=False)`` is the theta method of
    Assimakopoulos and Nikolopoulos (2000): exponential smoothing whose drift is half the slope of
    the line.

    Parameters
    ----------
    theta : float, optional
        Curvature of the theta line, at least 1; estimated by default.
    dynamic : bool, default True
        Whether the line is estimated anew with each row, forecast rows included.
    seasonal : {"auto", "none", "add", "mul"}
        Season removed before the fit and restored in forecasts, by classical decomposition. "auto"
        removes one if the autocorrelation at the seasonal lag is significant at 10 percent, in
        series of at least two seasons; it is multiplicative if all values are positive and no index
        is below 0.01.
    season_length : int, optional
        Rows of a season; by frequency where it is None, 1 for none.
    initialization : {"heuristic", "estimated"}
        Level before the first row: the first value over theta, so that the first mean is that
        value, or a parameter. Estimated, it explains little beyond the first row of the likelihood.
        The first mean is kept no further from the first value than the farthest value.
    parameter_uncertainty, outliers, intervals
        As in `ARMA`.
    cov_type, horizon, id_col, time_col, freq
        As in all linear models.
    missing, strict, support
        As in all linear models.
    target, known_ahead, static, calendar, holidays
        As in all linear models. Exogenous columns are regressors; to forecast, name them all in
        `known_ahead`.
    random_state, verbose
        As in all linear models.

    Notes
    -----
    As in Fiorucci et al. :math:`0.1 \le \alpha \le 0.99` and :math:`\theta \ge 1`, up to
    :math:`10^{10}`, where the whole line is added; the likelihood begins with the fourth row. It is
    maximised in closed form at a given :math:`\alpha`, and over :math:`\alpha` from a grid.

    A missing row moves the level as its forecast would, and does not enter the line.

    The season is estimated first: likelihood, criteria and intervals are of the adjusted series and
    ignore its uncertainty. Forecast variances are exact at known parameters, as the model is linear
    in its errors.

    Exogenous columns :math:`x_t` are taken out first: test, season and model are of
    :math:`n_t = y_t - (x_t - \bar x)' \beta`, with the means :math:`\bar x` of the columns over the
    rows fitted to. Given the season, errors of the adjusted series are linear in the rows, and
    :math:`\beta` is the regression of the errors of y on the errors of the columns. It is estimated
    jointly with the other parameters, and counted by the criteria. The season comes from
    :math:`n_t` at coefficients in seasonal differences, then twice at the estimates, in
    alternation. Columns that are constant, or collinear with others or with a requested season in
    the rows fitted to, are left out with a warning.

    References
    ----------
    Assimakopoulos, V., Nikolopoulos, K. (2000). The theta model. International Journal of
    Forecasting 16, 521-530.
    Fiorucci, J. A., Pellegrini, T. R., Louzada, F., Petropoulos, F., Koehler, A. B. (2016). Models
    for optimising the theta method and their relationship to state space models. International
    Journal of Forecasting 32, 1151-1161.

    Examples
    --------
    >>> from tsrnn.linear import Theta
    >>> from tsrnn.datasets import load_elec_equip
    >>> model = Theta().fit(load_elec_equip())
    >>> model.seasons_["kind"].tolist()
    ['multiplicative']
    """

    column_name: ClassVar[str] = "Theta"
    family_class: ClassVar[type[Family]] = ThetaFamily
    legal_missing: ClassVar[tuple[str, ...]] = ("auto", "error", "interpolate", "keep")
    takes_exog: ClassVar[bool] = True

    def __init__(
        self,
        theta: float | None = None,
        dynamic: bool = True,
        seasonal: str = "auto",
        season_length: int | None = None,
        initialization: str = "heuristic",
        **shared: Any,
    ) -> None:
        super().__init__(**shared)
        self.theta = theta
        self.dynamic = dynamic
        self.seasonal = seasonal
        self.season_length = season_length
        self.initialization = initialization

    @property
    def seasons_(self) -> pd.DataFrame:
        """Season of each unit: its kind, the statistic of its test, and the indices.

        Indices are numbered from the first row on; NaN without a season. The statistic is NaN
        without a test.
        """
        values = self.fitted_.constants["season"]
        kind = [KINDS[int(k)] if np.isfinite(k) else "" for k in values[:, 0]]
        indices = np.where(values[:, :1] > 0, values[:, 2:], np.nan)
        names = range(1, indices.shape[1] + 1)
        table = pd.DataFrame({"kind": kind, "statistic": values[:, 1]}, self.units_)
        return table.join(pd.DataFrame(indices, self.units_, names))

    def _family(self, arguments: Arguments, data: FittedData) -> ThetaFamily:
        seasonal = choice("seasonal", arguments.seasonal, SEASONS)
        initialization = choice(
            "initialization", arguments.initialization, ("heuristic", "estimated")
        )
        theta, length = arguments.theta, arguments.season_length
        if theta is not None:
            theta = number("theta", theta, lowest=1, open_=False)
        period = season_length(length, data)
        if length is not None and period > MOST_LAGS:
            raise ValueError(f"season_length must be at most {MOST_LAGS:,}; got {quote(length)}")
        if seasonal in ("add", "mul"):
            check_season(seasonal, period, length, data)
        period = 1 if seasonal == "none" else period
        dynamic = flag("dynamic", arguments.dynamic)
        choices = Choices(theta, dynamic, seasonal, period, initialization == "estimated")
        regressors = check_names(data.exog_names, choices.names)
        return ThetaFamily(choices._replace(regressors=regressors), data.n_targets)
