"""Intermittent demand: the family of Croston's method, its variants and TSB, and estimators."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tsrnn.contract import (
    Arguments,
    FittedData,
    choice,
    number,
    with_intervals,
    with_shared_arguments,
)
from tsrnn.data import Panel
from tsrnn.linear._base import LinearForecaster
from tsrnn.linear._estimates import Estimates
from tsrnn.linear._family import Ahead, Arrays, Family, Units, raise_if_given
from tsrnn.linear.arma._prepare import rows_of, unit_data
from tsrnn.linear.intermittent._fit import Ends, Sample, first_states, inferred, samples, search
from tsrnn.linear.intermittent._forecast import probabilities, quantiles, shapes_ahead, simulated
from tsrnn.linear.intermittent._likelihood import expected, first_memory, memory_after
from tsrnn.linear.intermittent._recursion import CERTAIN

TITLES = {"croston": "Croston", "sba": "Croston, SBA", "sbj": "Croston, SBJ", "tsb": "TSB"}
STATES = ("mean", "first", "estimated")


@dataclass(frozen=True)
class IntermittentFamily(Family):
    """One method for intermittent demand; a unit is a target of a series."""

    method: str  # a key of TITLES
    initial: str = "mean"  # of STATES
    alpha: float | None = None  # given smoothing parameters; None if estimated
    beta: float | None = None
    n_targets: int = 1

    guarantee: ClassVar[str] = (
        "The parameters taken as known. Holds if demand occurs independently with the estimated "
        "probability and its sizes are gamma distributed around their level. An interval from "
        "zero leaves out an upper tail only, and so covers more than its level says."
    )

    @property
    def names(self) -> tuple[str, ...]:
        pace = "probability" if self.method == "tsb" else "interval"
        return "alpha", "beta", "size", pace, "shape"

    @property
    def title(self) -> str:
        return TITLES[self.method]

    @property
    def state_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"memory": (self.n_targets, 2 if self.method == "tsb" else 3)}

    @property
    def conventions(self) -> dict[str, str]:
        return {"Likelihood": "Bernoulli and gamma", "Initial States": self.initial}

    def prepare(
        self, panel: Panel, given: np.ndarray | None
    ) -> Iterator[tuple[Sample | None, dict[int, str]]]:
        return raise_if_given(samples(panel), panel, given)

    def search(self, sample: Sample, verbose: int) -> Ends:
        return search(self.method, self.initial, (self.alpha, self.beta), sample)

    def given(self, sample: Sample, params: np.ndarray) -> Ends:
        highest = np.array([1.0, 1.0, np.inf, 1.0 if self.method == "tsb" else np.inf, np.inf])
        lowest = np.array([0.0, 0.0, 0.0, 0.0 if self.method == "tsb" else 1.0, 0.0])
        legal = (params >= lowest) & (params <= highest) & ((params > 0) | ~np.isinf(highest))
        if not legal.all():
            i, j = np.argwhere(~legal)[0]
            bound = f"of at least {lowest[j]:g}" if lowest[j] else "positive"
            if np.isfinite(highest[j]):
                bound = "from 0 to 1"
            raise ValueError(f"{self.names[j]} must be {bound}; got {params[i, j]:g}")
        inner = params.copy()
        inner[:, 2] /= sample.scale
        n = len(params)
        return Ends(inner, np.zeros(n, int), np.ones(n, bool), np.zeros(params.shape, bool))

    def infer(self, sample: Sample, optimum: Ends) -> tuple[Estimates, Arrays]:
        by_rule = self.initial != "estimated"
        imposed = [self.alpha is not None, self.beta is not None, by_rule, by_rule, False]
        return inferred(self.method, self.names, np.array(imposed), sample, optimum), {}

    def filter(self, panel: Panel, units: Units, steps: np.ndarray) -> Arrays:
        memory = np.full((len(units.params), self.state_shapes["memory"][1]), np.nan)
        numbers = units.fitted
        if len(numbers):
            values, _ = unit_data(panel, numbers)
            params = self._from_first(units.params[numbers], values, steps, numbers)
            first = first_memory(self.method, params)
            memory[numbers] = memory_after(self.method, params[:, :4], first, values)
        return {"memory": memory.reshape(panel.n_series, self.n_targets, -1)}

    def _from_first(
        self, params: np.ndarray, values: np.ndarray, steps: np.ndarray, numbers: np.ndarray
    ) -> np.ndarray:
        """Parameters with first states: as fitted, or by rule if the rows start elsewhere."""
        elsewhere = np.flatnonzero(steps[numbers // self.n_targets] != 0)
        if len(elsewhere):
            params = params.copy()
            states = first_states(self.method, values[elsewhere], self.initial)
            known = np.isfinite(states)
            params[elsewhere, 2:4] = np.where(known, states, params[elsewhere, 2:4])
        return params

    def advance(self, state: Arrays, panel: Panel, units: Units, steps: np.ndarray) -> Arrays:
        before = state["memory"]
        memory = before.reshape(len(units.params), -1).copy()
        numbers = units.fitted[panel.lengths[units.fitted // self.n_targets] > 0]
        if len(numbers):
            values, _ = unit_data(panel, numbers)
            params = units.params[numbers, :4]
            memory[numbers] = memory_after(self.method, params, memory[numbers], values)
        return {"memory": memory.reshape(before.shape)}

    def forecast(self, state: Arrays, units: Units, ahead: Ahead, levels: list[float]) -> Arrays:
        h, memory = ahead.h, state["memory"].reshape(len(units.params), -1)
        forecasts = {
            name: np.full((len(memory), h), np.nan)
            for name in with_intervals(np.zeros(0), dict.fromkeys(levels, np.zeros(0)))
        }
        numbers = units.fitted
        params, size = units.params[numbers], memory[numbers, 0]
        chance = probabilities(self.method, params, memory[numbers])
        mean = np.repeat((chance * size)[:, None], h, 1)
        shapes = shapes_ahead(params, chance, h) if levels else mean
        widths = {
            level: tuple(
                quantiles(0.5 + sign * level / 200, size, chance, shapes) - mean
                for sign in (-1, 1)
            )
            for level in levels
        }  # fmt: skip
        for name, values in with_intervals(mean, widths).items():  # type: ignore[arg-type]
            forecasts[name][numbers] = np.maximum(values, 0.0)  # rounding may go below zero
        shape = len(ahead.steps), self.n_targets, h
        return {name: part.reshape(shape).swapaxes(1, 2) for name, part in forecasts.items()}

    def simulate(
        self, state: Arrays, units: Units, ahead: Ahead, n: int, rng: np.random.Generator
    ) -> np.ndarray:
        memory = state["memory"].reshape(len(units.params), -1)
        paths, numbers = np.full((len(memory), ahead.h, n), np.nan), units.fitted
        paths[numbers] = simulated(
            self.method, units.params[numbers], memory[numbers], ahead.h, n, rng
        )
        return paths.reshape(-1, self.n_targets, ahead.h, n).transpose(3, 0, 2, 1)

    def in_sample(
        self, panel: Panel, units: Units, steps: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        numbers = units.fitted
        values, _ = unit_data(panel, numbers)
        params = self._from_first(units.params[numbers], values, steps, numbers)
        table = expected(self.method, params[:, :4], values)[..., 0]
        level, chance = np.moveaxis(table, 2, 0)
        mean = level * chance
        inside = np.clip(chance, CERTAIN, 1 - CERTAIN)  # as in the likelihood
        variance = inside * level**2 * (1 + 1 / params[:, 4, None] - inside)
        # Without demand there is no size, and residuals have no scale.
        scaled = (values - mean) / np.sqrt(np.where(variance > 0, variance, np.nan))
        return rows_of(panel, [(numbers, mean)]), rows_of(panel, [(numbers, scaled)])


class _Intermittent(LinearForecaster):
    """Base of the estimators; subclasses define `_method`."""

    family_class: ClassVar[type[Family]] = IntermittentFamily
    legal_missing: ClassVar[tuple[str, ...]] = ("auto", "error", "interpolate", "keep")

    @abstractmethod
    def _method(self, arguments: Arguments) -> str:
        """Recursion of the family, by its key in TITLES."""

    def _family(self, arguments: Arguments, data: FittedData) -> IntermittentFamily:
        alpha, beta = (
            None if value is None else number(name, value, lowest=0, open_=False, highest=1)
            for name, value in (("alpha", arguments.alpha), ("beta", arguments.beta))
        )
        initial = choice("initial", arguments.initial, STATES)
        return IntermittentFamily(self._method(arguments), initial, alpha, beta, data.n_targets)


@with_shared_arguments
class Croston(_Intermittent):
    r"""Croston's method for intermittent demand, with bias corrections, many series at once.

    Each demand updates the smoothed size and interval between demands. The forecast of all rows
    ahead is their ratio:

    .. math::

        z_t = z_{t-1} + \alpha (y_t - z_{t-1}), \qquad p_t = p_{t-1} + \beta (q_t - p_{t-1}),
        \qquad \hat y_{t+h} = c \, z_t / p_t

    with the rows :math:`q_t` since the last demand. c is 1 (Croston, 1972), :math:`1 - \beta / 2`
    (Syntetos and Boylan, 2005), or :math:`1 - \beta / (2 - \beta)` (Shale, Boylan and Johnston,
    2006): the mean of :math:`1 / p_t` is above the probability of demand.

    Parameters
    ----------
    variant : {"croston", "sba", "sbj"}
        Correction c.
    alpha, beta : float, optional
        Smoothing parameters of sizes and of intervals, from 0 to 1; estimated by default.
    initial : {"mean", "first", "estimated"}
        States before the first row: the mean size, and rows over demands; the first size and
        interval, as in statsforecast; or estimated.
    missing : {"auto", "error", "interpolate", "keep"}
        "keep" skips missing rows.
    intervals : {"model", "conformal"}
        Those of the model, or conformal ones, by errors of rolling forecasts of the last rows.
    cov_type, horizon, target, known_ahead, static, calendar, holidays, id_col, time_col, freq
        As in all linear models. Exogenous columns are refused.
    strict, support, random_state, verbose
        As in all linear models.

    Notes
    -----
    In the likelihood, demand occurs with probability :math:`c / p_{t-1}`, and sizes are gamma
    distributed with mean :math:`z_{t-1}` and an estimated shape. The maximum in alpha does not
    depend on the shape. Missing rows are skipped and do not count in intervals. A series without
    demand has forecast zero; if demand comes later, alpha and beta are 0.1 unless given.

    Intervals are quantiles of this distribution with the probability fixed at :math:`c / p_t`: no
    model has both flat forecasts of this form and intervals that continue to be smoothed (Shenstone
    and Hyndman, 2005). The variance of sizes grows with the variance of their level. If the lower
    end is zero, an interval of 95 percent leaves out the upper 2.5 percent only. Forecasts change
    only with a demand: after many zeros they do not fall, as those of `TSB` do.

    References
    ----------
    Croston, J. D. (1972). Forecasting and stock control for intermittent demands. Operational
    Research Quarterly.
    Syntetos, A. A., Boylan, J. E. (2005). The accuracy of intermittent demand estimates.
    International Journal of Forecasting.
    Shale, E. A., Boylan, J. E., Johnston, F. R. (2006). Forecasting for intermittent demand: the
    estimation of an unbiased average. Journal of the Operational Research Society.
    Shenstone, L., Hyndman, R. J. (2005). Stochastic models underlying Croston's method for
    intermittent demand forecasting. Journal of Forecasting.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from tsrnn.linear import Croston
    >>> demand = pd.Series([0, 2, 0, 0, 3, 0, 1, 0, 0, 0, 4, 0.0], name="parts")
    >>> model = Croston("sba", alpha=0.1, beta=0.1, initial="first").fit(demand)
    >>> model.predict(h=1).round(3).tolist()
    [0.913]
    """

    column_name: ClassVar[str] = "Croston"

    def __init__(
        self,
        variant: str = "croston",
        alpha: float | None = None,
        beta: float | None = None,
        initial: str = "mean",
        **shared: Any,
    ) -> None:
        super().__init__(**shared)
        self.variant = variant
        self.alpha = alpha
        self.beta = beta
        self.initial = initial

    def _method(self, arguments: Arguments) -> str:
        return choice("variant", arguments.variant, ("croston", "sba", "sbj"))


@with_shared_arguments
class TSB(_Intermittent):
    r"""Method of Teunter, Syntetos and Babai for intermittent demand, many series at once.

    Each demand updates the smoothed size, and every row the probability of demand:

    .. math::

        z_t = z_{t-1} + \alpha (y_t - z_{t-1}) \text{ where } y_t > 0, \qquad
        d_t = d_{t-1} + \beta (1[y_t > 0] - d_{t-1}), \qquad \hat y_{t+h} = d_t z_t

    so that forecasts fall while there is no demand.

    Parameters
    ----------
    alpha, beta : float, optional
        Smoothing parameters of sizes and of the probability, from 0 to 1; estimated by default.
    initial : {"mean", "first", "estimated"}
        States before the first row: the mean size and the share of rows with a demand; the first
        size, and one or zero for a first row with or without demand, as in statsforecast; or
        estimated.
    missing, intervals
        As in `Croston`.
    cov_type, horizon, target, known_ahead, static, calendar, holidays, id_col, time_col, freq
        As in all linear models. Exogenous columns are refused.
    strict, support, random_state, verbose
        As in all linear models.

    Notes
    -----
    In the likelihood, demand occurs with probability :math:`d_{t-1}`, and sizes are gamma
    distributed with mean :math:`z_{t-1}` and an estimated shape. Forecasts are its means, with
    probability :math:`d_t` at all steps ahead. Intervals are quantiles of this distribution, exact
    one step ahead. Missing rows, series without demand and the level of intervals are as in
    `Croston`.

    References
    ----------
    Teunter, R. H., Syntetos, A. A., Babai, M. Z. (2011). Intermittent demand: linking forecasting
    to inventory obsolescence. European Journal of Operational Research.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from tsrnn.linear import TSB
    >>> demand = pd.Series([0, 2, 0, 0, 3, 0, 1, 0, 0, 0, 4, 0.0], name="parts")
    >>> TSB(alpha=0.1, beta=0.1).fit(demand).predict(h=1).round(3).tolist()
    [0.821]
    """

    column_name: ClassVar[str] = "TSB"

    def __init__(
        self,
        alpha: float | None = None,
        beta: float | None = None,
        initial: str = "mean",
        **shared: Any,
    ) -> None:
        super().__init__(**shared)
        self.alpha = alpha
        self.beta = beta
        self.initial = initial

    def _method(self, arguments: Arguments) -> str:
        return "tsb"
