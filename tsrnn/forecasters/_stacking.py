r"""Stacking: forecasts of several fitted models, weighted by their errors on rolling origins.

Each candidate is fitted to the rows before a validation part and forecasts it from rolling origins.
Weights w on the simplex have the mean absolute error

.. math:: L(w) = \operatorname{mean} \frac{|y - \sum_i w_i \hat y_i|}{s}

of the combined forecasts, with the scale s of each series. The weights used are the mean of the
posterior :math:`p(w) \propto w_1^2 L(w)^{-m}` for m independent errors with Laplace's
distribution. The first candidate is the pretrained network without adaptation. It has most of the
weight if errors are few, and little if another candidate is clearly better.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import numpy as np
import pandas as pd

from tsrnn.contract import (
    MOST_STEPS,
    DamagedFileError,
    FittedModel,
    Kind,
    Origins,
    Summary,
    Support,
    anything,
    arrays_by_part,
    by_name,
    check_arrays,
    forecast_suffixes,
    integer,
    listed,
    naive_errors,
    real,
    record,
    refuse,
)
from tsrnn.data import Layout, Panel, order_of_series, quote, quoted
from tsrnn.forecasters._forecast_part import ForecastPart, PartOfParts, StateOfParts
from tsrnn.forecasters._prior import FittedPrior, forecast_together, rolling_together
from tsrnn.forecasters._tracked_widths import TrackedWidths
from tsrnn.forecasters._validation_part import FEWEST_ROWS, independent_horizons
from tsrnn.interpret import WIDTH, ForecastPaths, section, two_columns, wrapped
from tsrnn.prior import OWN_PRIOR, by_step, evenly, step_factors

if TYPE_CHECKING:
    from tsrnn.forecasters._columns import FittedColumns
    from tsrnn.forecasters._fitted import FittedNetworks
    from tsrnn.forecasters._prior import PriorState
    from tsrnn.forecasters._recurrent import RecurrentForecaster
    from tsrnn.forecasters._stability import FeatureStability

MOST_SERIES = 50  # validated in a panel: more add little, as series share the shocks of their time
MOST_ORIGINS = 100  # validated in all series together
PARTS = 20  # grid of the simplex: weights are multiples of 1 / PARTS
ERRORS_OF_A_HORIZON = 8.0  # independent errors that the dependent steps of one horizon count as
FOR_THE_PRIOR = 2.0  # prior pseudo-errors in favour of the pretrained network without adaptation
TRACKED = "stacking.tracked."  # prefix of arrays in a file
LEAST_WEIGHT = 0.05  # candidates below it are dropped, which saves their fit to all rows
FARTHEST = 3.0  # limit of the distance of forecasts, in multiples of the largest when validated
JUDGED = 80  # percent, level of the intervals whose widths are corrected
WIDEST_TAIL = 4.0  # largest factor by which paths are stretched beyond the ends of an interval
TINY = 1e-300  # keeps logarithms finite
Result = TypeVar("Result")
PRIOR, ADAPTED, TRAINED = "prior network", "adapted prior network", "trained network"
COLUMNS = ("weight", "error", "seconds")  # of the table of candidates
# Fields of a file.
FITTED: dict[str, Kind] = {
    "parts": by_name(by_name(anything)),
    "candidates": by_name(listed(anything)),
    "n_origins": integer(1, 10**6),
    "width_steps": integer(1, MOST_STEPS),
    "farthest": real,
}
GUARANTEE = (
    "Intervals: quantiles of {parts}, averaged with their weights, then widened or narrowed by "
    "step by the errors of rolling forecasts of the last rows, from {n} origins, by fits to the "
    "rows before; the epoch of a trained network and the weights are chosen by the same rows. The "
    "widths as they were count for ten errors. They cover with the stated probability as far as "
    "later errors are like these. Rows that come later move the widths of their series, so that "
    "in the long run intervals of 80 percent miss a fifth of them, whatever the errors are, if the "
    "factor stays between 1/4 and 4; nothing more is guaranteed. See a backtest for coverage."
)
GUARANTEE_WITH_COLUMNS = (
    "Intervals: those of the prior network, moved with its median to the weighted forecast. "
)


@dataclass(frozen=True, eq=False)
class StackedState(StateOfParts):
    """States of all parts of a stacked forecast, each with the same series.

    Attributes
    ----------
    parts : tuple of states
    widths : TrackedWidths
        Changes of the interval widths by the errors since the fit.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from tsrnn import LRUForecaster
    >>> wave = pd.Series(np.sin(np.arange(900)) + np.arange(900) / 300)
    >>> len(LRUForecaster(4).fit(wave).state_.ids)
    1
    """

    parts: tuple[Any, ...]
    widths: TrackedWidths

    @property
    def _by_series(self) -> tuple[Any, ...]:
        return self.parts[:1]

    @property
    def target_scale(self) -> np.ndarray:
        """Standard deviation of each target in the rows fitted to, shape (S, C)."""
        return self.parts[0].target_scale

    def select(self, series: np.ndarray) -> StackedState:
        """Select series by position."""
        parts = tuple(part.select(series) for part in self.parts)
        return StackedState(parts, self.widths.select(series))

    def replaced(self, series: np.ndarray, new: StackedState) -> StackedState:
        """Replace the series at some positions by the series of `new`."""
        pairs = zip(self.parts, new.parts, strict=True)
        parts = tuple(part.replaced(series, other) for part, other in pairs)
        return StackedState(parts, self.widths.replaced(series, new.widths))


def evaluate_parts(
    parts: Sequence[Any],
    states: Sequence[Any],
    pretrained: Callable[[list[FittedPrior], Any], Sequence[Result]],
    trained: Callable[[Any, Any], Result],
) -> list[Result]:
    """Evaluate all parts: pretrained networks in one call, by the state they share, others singly.

    Results have the order of the parts.
    """
    networks = [number for number, part in enumerate(parts) if part.shares_state]
    results: dict[int, Result] = {}
    if networks:
        together = pretrained([parts[number] for number in networks], states[networks[0]])
        results = dict(zip(networks, together, strict=True))
    return [
        results[number] if number in results else trained(part, state)
        for number, (part, state) in enumerate(zip(parts, states, strict=True))
    ]


def rolling_parts(
    parts: Sequence[Any],
    states: Sequence[Any],
    panel: Panel,
    origins: Origins,
    h: int,
    levels: list[float],
) -> list[dict[str, np.ndarray]]:
    """Rolling forecasts of each part; see `FittedModel.rolling`."""
    return evaluate_parts(
        parts,
        states,
        lambda networks, past: rolling_together(networks, past, panel, origins, h, levels),
        lambda part, past: part.rolling(past, part.readable(panel, past), origins, h, levels),
    )


def widened(forecasts: dict[str, np.ndarray], factor: np.ndarray) -> dict[str, np.ndarray]:
    """Widen the intervals of forecasts by a factor that broadcasts against shape (n, h, C)."""
    point = forecasts[""]
    return {
        name: ends if name == "" else point + factor * (ends - point)
        for name, ends in forecasts.items()
    }


def departure(
    forecasts: dict[str, np.ndarray], others: dict[str, np.ndarray], scale: np.ndarray
) -> np.ndarray:
    """Largest distance of two forecasts over the steps, (n, 1, C), in units of `scale` (n, C)."""
    away = np.abs(forecasts[""] - others[""]).max(1, keepdims=True)
    return away / scale[:, None]


@dataclass(frozen=True, eq=False)
class FittedStacked(PartOfParts[StackedState]):
    """Weighted average of the forecasts of fitted models.

    Quantiles are averaged probability by probability; interval widths are corrected by step.

    Attributes
    ----------
    parts : dict of str to FittedModel
        `FittedPrior` under "prior network" or "adapted prior network", `FittedNetworks` under
        "trained network".
    weights : ndarray of shape (K,)
        Weights of the parts, with sum one.
    widths : ndarray of shape (n,)
        Factors of the half widths by step; steps beyond the last known one reuse it.
    candidates : DataFrame
        A row for each candidate, with or without weight: ``weight``, ``error`` (mean absolute
        error on the rolling origins over that of the seasonal naive method) and ``seconds``.
    n_origins : int
        Number of rolling origins in all series together.
    fitted_until : integer ndarray of shape (S,)
        Last times of the series fitted to, in the unit of `Panel.times`.
    farthest : float
        Largest distance between the trained and the pretrained network, in standard deviations of
        a series; beyond it the trained network has weight zero. Three times the largest distance on
        the rolling origins, at least three.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from tsrnn import LRUForecaster
    >>> wave = pd.Series(np.sin(np.arange(900)) + np.arange(900) / 300)
    >>> fitted = LRUForecaster(4).fit(wave).fitted_
    >>> bool(np.isclose(fitted.weights.sum(), 1))
    True
    """

    skips_missing: ClassVar[bool] = True
    parts: dict[str, Any]
    weights: np.ndarray
    widths: np.ndarray
    candidates: pd.DataFrame
    n_origins: int
    fitted_until: np.ndarray
    farthest: float

    @property
    def first(self) -> Any:
        """Part of largest weight, which draws the paths."""
        return list(self.parts.values())[int(self.weights.argmax())]

    @property
    def regression(self) -> FittedColumns | None:
        """Regression on columns of the heaviest part that has one; None without any."""
        parts = list(self.parts.values())
        regressions = [parts[i].regression for i in np.argsort(-self.weights, kind="stable")]
        return next((part for part in regressions if part is not None), None)

    @property
    def trained(self) -> FittedNetworks:
        """Trained networks among the parts."""
        return self.parts.get(TRAINED, self.first).trained

    @property
    def network_active(self) -> bool:
        """True if a network of any part contributes."""
        return any(part.network_active for part in self.parts.values())

    @property
    def inactive_networks(self) -> dict[int, str]:
        """Reason by inactive trained network, with the weights of the other parts."""
        others = dict(zip(self.parts, self.weights.tolist(), strict=True))
        weight = others.pop(TRAINED, 0.0)
        beside = f". This is the {TRAINED} alone, with weight {weight:.2f} in the forecast"
        if others:
            named = " and ".join(f"the {name} ({share:.2f})" for name, share in others.items())
            beside += f" beside {named}"
        return {number: why + beside for number, why in super().inactive_networks.items()}

    def pretrained(self, state: StackedState) -> tuple[FittedPrior, PriorState] | None:
        """First pretrained network among the parts, and its state."""
        each = zip(self.parts.values(), state.parts, strict=True)
        alone = (part.pretrained(of_part) for part, of_part in each)
        return next((pair for pair in alone if pair is not None), None)

    def parts_of(self, state: StackedState) -> dict[str, tuple[ForecastPart[Any], Any]]:
        """Weighted parts by name, each with its state."""
        pairs = zip(self.parts.items(), state.parts, strict=True)
        return {name: (part, of_part) for (name, part), of_part in pairs}

    def forecast_paths(self, state: StackedState, at: str) -> ForecastPaths:
        """Forecast paths of the part of largest weight."""
        return self.first.forecast_paths(state.parts[int(self.weights.argmax())], at)

    def summarise(
        self, forecaster: RecurrentForecaster, stability: FeatureStability | None
    ) -> StackedSummary:
        """Summary of the weights, followed by the part of largest weight."""
        if stability is not None:
            raise ValueError(
                "stability describes one network; several models forecast here. Take the summary "
                "of one of parts_"
            )
        pages = {name: part.summary() for name, part in forecaster.parts_.items()}
        return summarise_stacked(self, forecaster.state_, pages)

    def program(self) -> FittedNetworks:
        """Refuse: several models forecast."""
        advice = (
            f"Export the {TRAINED} alone, model.parts_[{quote(TRAINED)}]"
            if TRAINED in self.parts
            else "Fit with prior=None to train a network alone"
        )
        raise ValueError(
            f"a program has one network; {quoted(list(self.parts))} forecast together here. "
            f"{advice}, or keep all by save and tsrnn.load"
        )

    @property
    def point(self) -> str:
        """Statistic that the point forecast estimates."""
        points = {part.point for part in self.parts.values()}
        return points.pop() if len(points) == 1 else "average of the parts"

    @property
    def guarantee(self) -> str:
        """Guarantee of the intervals."""
        if self.has_columns:
            return GUARANTEE_WITH_COLUMNS + self.parts[PRIOR].guarantee
        return GUARANTEE.format(n=self.n_origins, parts=quoted(list(self.parts)))

    @property
    def has_columns(self) -> bool:
        """True if there are columns beside the targets; all are known ahead.

        The intervals then come from the pretrained network and are shifted to the forecast. Their
        widths do not follow later errors, since `update` does not know the columns ahead.
        """
        return bool(self.data.exog_names)

    def with_layout(self, layout: Layout) -> Self:
        """Replace the layout of the data."""
        parts = {name: part.with_layout(layout) for name, part in self.parts.items()}
        return replace(self, parts=parts)

    def with_supports(self, supports: tuple[Support, ...]) -> Self:
        """Replace the supports of the targets."""
        parts = {name: part.with_supports(supports) for name, part in self.parts.items()}
        return replace(self, parts=parts)

    def begin(self, parts: Sequence[Any]) -> StackedState:
        """Combine the states of all parts, with the interval widths of the fit."""
        shape = len(parts[0].ids), self.horizon, self.data.n_targets
        return StackedState(tuple(parts), TrackedWidths.begin(*shape))

    def filter(self, panel: Panel, seen: StackedState | None = None) -> StackedState:
        """State after the rows of a panel; `seen` is the state of the series fitted to.

        Rows after the fit update the widths of series that have enough rows before it.
        """
        parts = list(self.parts.values())
        known = [None] * len(parts) if seen is None else seen.parts
        states = evaluate_parts(
            parts,
            known,
            lambda networks, _: [networks[0].filter(panel)] * len(networks),
            lambda part, past: part.filter(part.readable(panel), past),
        )
        state, earlier = self.begin(states), self.rows_of_fit(panel)
        if self.has_columns:
            return state
        observed = [
            np.isfinite(panel.series(i)[:n]).sum(0).min() for i, n in enumerate(earlier.tolist())
        ]
        tracked = (np.array(observed) >= FEWEST_ROWS) & (earlier < panel.lengths)
        if not tracked.any():
            return state
        series, earlier = panel.select(tracked), earlier[tracked]
        before = series.between(np.zeros_like(earlier), earlier)
        after = series.between(earlier, series.lengths)
        begun = evaluate_parts(
            parts,
            states,
            lambda networks, _: [networks[0].filter(before)] * len(networks),
            lambda part, past: part.filter_series(part.readable(before), past.fitted[tracked]),
        )
        widths = self.tracked(self.begin(begun), after)
        return replace(state, widths=state.widths.replaced(np.flatnonzero(tracked), widths))

    def rows_of_fit(self, panel: Panel) -> np.ndarray:
        """Rows of each series up to the end of the fit, (S,); new series use the latest end."""
        known = self.data.ids.get_indexer(panel.ids)
        until = np.where(known >= 0, self.fitted_until[known], self.fitted_until.max())
        earlier = panel.times.astype(np.int64) <= np.repeat(until, panel.lengths)
        return np.add.reduceat(earlier, panel.indptr[:-1], dtype=np.int64)

    def advance(self, state: StackedState, panel: Panel) -> StackedState:
        """Append rows to all series, given in the same order."""
        parts = evaluate_parts(
            list(self.parts.values()),
            state.parts,
            lambda networks, past: [networks[0].advance(past, panel)] * len(networks),
            lambda part, past: part.advance(past, part.readable(panel, past)),
        )
        widths = state.widths if self.has_columns else self.tracked(state, panel)
        return StackedState(tuple(parts), widths)

    def forecast(
        self, state: StackedState, h: int, levels: list[float], future: np.ndarray | None
    ) -> dict[str, np.ndarray]:
        """Forecasts (S, h, C) and their intervals, under the names of `FittedModel`."""
        parts = evaluate_parts(
            list(self.parts.values()),
            state.parts,
            lambda networks, past: forecast_together(networks, past, h, levels, future),
            lambda part, past: part.forecast(past, h, levels, future),
        )
        forecasts = self.averaged(parts, state.target_scale)
        return widened(forecasts, state.widths.factors[:, None])

    def rolling(
        self, state: StackedState, panel: Panel, origins: Origins, h: int, levels: list[float]
    ) -> dict[str, np.ndarray]:
        """Forecasts (n, h, C) from n origins within a panel that follows `state`."""
        parts, scale = list(self.parts.values()), state.target_scale
        if self.has_columns or not levels:
            forecasts = rolling_parts(parts, state.parts, panel, origins, h, levels)
            return self.averaged(forecasts, scale[origins.series])
        # The widths are updated by forecasts from other origins: evaluate both sets in one pass.
        tracked = state.widths.origins(panel)
        every, places, followed = origins.union(tracked, panel)
        steps, names = max(h, self.horizon), forecast_suffixes(levels)
        levels_read = sorted({*levels, JUDGED})
        together = rolling_parts(parts, state.parts, panel, every, steps, levels_read)
        forecasts = [{name: part[name][places, :h] for name in names} for part in together]
        of_tracked = [
            {name: part[name][followed, : self.horizon] for name in forecast_suffixes([JUDGED])}
            for part in together
        ]
        _, factors = state.widths.after(
            panel, *self.averaged(of_tracked, scale[tracked.series]).values()
        )
        means = self.averaged(forecasts, scale[origins.series])
        return widened(means, factors[origins.first][:, None])

    def tracked(self, state: StackedState, panel: Panel) -> TrackedWidths:
        """Widths updated by the errors of further rows of all series."""
        origins, shape = state.widths.origins(panel), (0, self.horizon, self.data.n_targets)
        ends: Sequence[np.ndarray] = [np.empty(shape)] * 3
        if len(origins.series):
            forecasts = rolling_parts(
                list(self.parts.values()), state.parts, panel, origins, self.horizon, [JUDGED]
            )
            averaged = self.averaged(forecasts, state.target_scale[origins.series])
            ends = [averaged[name] for name in forecast_suffixes([JUDGED])]
        return state.widths.after(panel, *ends)[0]

    def averaged(
        self, forecasts: Sequence[dict[str, np.ndarray]], scale: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Weighted mean of the parts' forecasts, shape (n, h, C), with corrected intervals.

        With columns, the intervals come from the pretrained network, shifted to the mean.

        `scale`, shape (n, C), are the standard deviations of the targets.
        """
        weights = self.trusted(forecasts, scale)
        means = {
            name: sum(w * part[name] for w, part in zip(weights, forecasts, strict=True))
            for name in forecasts[0]
        }
        if self.has_columns:
            prior = forecasts[list(self.parts).index(PRIOR)]
            return {name: means[""] + (ends - prior[""]) for name, ends in prior.items()}
        return widened(means, by_step(self.widths, means[""].shape[1])[:, None])

    def trusted(self, forecasts: Sequence[dict[str, np.ndarray]], scale: np.ndarray) -> np.ndarray:
        """Weights of the forecasts, (K, n, 1, C); zero for trained networks beyond `farthest`.

        A trained network reads gross errors as data; the pretrained network skips them.
        """
        weights = np.broadcast_to(
            self.weights[:, None, None, None], (len(forecasts), *scale[:, None].shape)
        ).copy()
        names = list(self.parts)
        if TRAINED in names and len(names) > 1:
            place = names.index(TRAINED)
            away = departure(forecasts[place], forecasts[0], scale)
            weights[place][away > self.farthest] = 0.0
        return weights / weights.sum(0)

    def simulate(
        self,
        state: StackedState,
        h: int,
        n: int,
        future: np.ndarray | None,
        rng: np.random.Generator,
    ) -> np.ndarray:
        """Draw paths, shape (n, S, h, C), of the heaviest part, moved to the stacked interval."""
        place, part = int(self.weights.argmax()), self.first
        past, (_, low, high) = state.parts[place], forecast_suffixes([JUDGED])
        paths = part.simulate(past, h, n, future, rng)
        alone = part.forecast(past, h, [JUDGED], future)
        stacked = self.forecast(state, h, [JUDGED], future)
        width = alone[high] - alone[low]
        ratio = np.ones_like(width)
        np.divide(stacked[high] - stacked[low], width, out=ratio, where=width > 0)
        inside = np.clip(paths, alone[low], alone[high])
        # A series that is constant between jumps can have an interval of width near zero, so that
        # `ratio` is huge: tails beyond the ends are stretched by a bounded factor.
        beyond = np.minimum(ratio, WIDEST_TAIL) * (paths - inside)
        return stacked[""] + ratio * (inside - alone[""]) + beyond

    def contributions(
        self, state: StackedState, future: np.ndarray | None
    ) -> dict[str, np.ndarray]:
        """Weighted additive parts, shape (S, h, C), by "model: part"."""
        forecasts = evaluate_parts(
            list(self.parts.values()),
            state.parts,
            lambda networks, past: forecast_together(networks, past, self.horizon, [], future),
            lambda part, past: part.forecast(past, self.horizon, [], future),
        )
        weights, shares = self.trusted(forecasts, state.target_scale), {}
        for (name, part), past, weight in zip(
            self.parts.items(), state.parts, weights, strict=True
        ):
            for of_part, values in part.contributions(past, future).items():
                shares[f"{name}: {of_part}"] = weight * values
        return shares

    def to_file(self, state: StackedState) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """JSON values and arrays of a file; `stacked_from_file` is the inverse."""
        arrays = {"stacking.weights": self.weights, "stacking.widths": self.widths}
        arrays["stacking.fitted_until"] = self.fitted_until
        arrays |= {TRACKED + name: array for name, array in vars(state.widths).items()}
        headers = {}
        for place, ((name, part), past) in enumerate(
            zip(self.parts.items(), state.parts, strict=True)
        ):
            headers[name], of_part = part.to_file(past)
            arrays |= {f"{place}/{key}": array for key, array in of_part.items()}
        table = self.candidates
        header = {
            "parts": headers,
            "candidates": {str(name): row.tolist() for name, row in table.iterrows()},
            "n_origins": self.n_origins,
            "width_steps": len(self.widths),
            "farthest": self.farthest,
        }
        return header, arrays


@dataclass(frozen=True, eq=False)
class ValidationPart:
    """Validation rows of the candidates and rolling origins within them.

    Attributes
    ----------
    before, after : Panel
        Rows of the validated series before the validation part, and in it; `origins` lie in these.
    actual : ndarray of shape (n, h, C)
        Observations; NaN if missing.
    scale : ndarray of shape (n, 1, C)
        Mean absolute seasonal difference of the series of each origin, over the rows before the
        validation part; NaN for constant series.
    n_horizons : float
        Effective number of independent forecasts, see `independent_horizons`.
    """

    before: Panel
    after: Panel
    origins: Origins
    horizon: int
    actual: np.ndarray
    scale: np.ndarray
    n_horizons: float

    @classmethod
    def of(cls, panel: Panel, starts: np.ndarray, horizon: int, season: int) -> ValidationPart:
        """Select series evenly, and origins evenly over their rows from `starts`, shape (S,), on.

        The more series, the fewer origins each.
        """
        order = order_of_series(panel.values, panel.indptr)
        validated = order[(panel.lengths - starts >= horizon)[order]]
        chosen = np.sort(validated[evenly(len(validated), MOST_SERIES)])
        mask = np.isin(np.arange(panel.n_series), chosen)
        selected, starts = panel.select(mask), starts[chosen]
        before = selected.between(np.zeros_like(starts), starts)
        after = selected.between(starts, selected.lengths)
        each = max(1, MOST_ORIGINS // (len(chosen) * panel.values.shape[1]))
        # No multiple of the season between origins, so that they begin at different phases.
        step = math.ceil((after.lengths.max() - horizon + 1) / each)
        step += step % season == 0 and season > 1
        origins = Origins.of(after, horizon, step)
        actual = after.values[origins.first[:, None] + np.arange(horizon)]
        naive = naive_errors(before, season)
        scale = np.where(naive > 0, naive, np.nan)[origins.series][:, None]
        n_horizons = independent_horizons(panel.lengths, horizon)
        return cls(before, after, origins, horizon, actual, scale, n_horizons)

    def forecasts(self, fitted: Sequence[FittedModel[Any]]) -> list[dict[str, np.ndarray]]:
        """Rolling forecasts, (n, h, C), of models fitted to `before`, with 80 percent intervals."""
        states = evaluate_parts(
            fitted,
            fitted,
            lambda networks, _: [networks[0].filter(self.before)] * len(networks),
            lambda part, _: part.filter(part.readable(self.before)),
        )
        return rolling_parts(fitted, states, self.after, self.origins, self.horizon, [JUDGED])

    def error(self, forecasts: dict[str, np.ndarray]) -> float:
        """Mean absolute error divided by the error of the seasonal naive method."""
        return float(np.nanmean(np.abs(self.actual - forecasts[""]) / self.scale))

    def weights(
        self, candidates: Sequence[dict[str, np.ndarray]], least: float = 0.0
    ) -> np.ndarray:
        """Posterior mean weights of the candidates, shape (K,); weights below 0.05 become 0.

        The first candidate, the pretrained network without adaptation, has at least weight `least`.
        """
        grid = product(range(PARTS + 1), repeat=len(candidates))
        simplex = np.array([w for w in grid if sum(w) == PARTS]) / PARTS
        errors = np.stack([(self.actual - each[""]) / self.scale for each in candidates])
        errors = errors[:, np.isfinite(errors).all(0)]  # (K, N)
        losses = np.array([np.abs(w @ errors).mean() for w in simplex])
        m = ERRORS_OF_A_HORIZON * self.n_horizons
        log_density = -m * np.log(np.maximum(losses, TINY))
        log_density += FOR_THE_PRIOR * np.log(np.maximum(simplex[:, 0], TINY))
        density = np.exp(log_density - log_density.max())
        weights = density @ simplex / density.sum()
        weights[weights < LEAST_WEIGHT] = 0.0
        weights /= weights.sum()
        if weights[0] < least:
            weights[1:] *= (1 - least) / weights[1:].sum()
            weights[0] = least
        return weights

    def widths(self, forecasts: dict[str, np.ndarray]) -> np.ndarray:
        """Width factors by step, shape (h,), from the errors of these forecasts.

        The series of a panel share the shocks of their time, so all their errors count as the
        errors of one series. As shocks may be rare, the factor 1 counts as ten errors in a single
        series, and in a panel as ten more than there are errors.
        """
        _, low, high = forecast_suffixes([JUDGED])
        error = self.actual - forecasts[""]
        half = np.abs(np.where(error > 0, forecasts[high], forecasts[low]) - forecasts[""])
        scores = np.abs(error) / np.where(half > 0, half, np.nan)
        by_origin = scores.swapaxes(1, 2).reshape(-1, self.horizon)
        total, n_units = self.n_horizons, self.after.n_series * self.actual.shape[2]
        prior = OWN_PRIOR + total * (n_units > 1)
        return step_factors(by_origin, total / len(by_origin), prior)


@dataclass(frozen=True, eq=False, repr=False)
class StackedSummary(Summary):
    """Text and tables of a stacked forecast; print it.

    Attributes
    ----------
    title, composition : str
    facts : dict
    candidates : DataFrame
        See `FittedStacked`.
    effects : DataFrame or None
        Effects of columns in the heaviest part that has them; None without columns.
    parts : dict of str to Summary
        Summaries of the weighted parts, by name.
    notes : list of str
    """

    title: str
    composition: str
    facts: dict[str, object]
    candidates: pd.DataFrame
    effects: pd.DataFrame | None
    parts: dict[str, Any]
    notes: list[str]

    def as_text(self) -> str:
        """Page as it is printed, followed by the page of the heaviest part."""
        table = self.candidates.rename_axis("candidate").reset_index()
        heaviest = str(self.candidates["weight"].idxmax())
        shown = {"weight": "{:.2f}".format, "error": "{:.3f}".format, "seconds": "{:.1f}".format}
        parts = [
            self.title.center(WIDTH).rstrip(),
            "=" * WIDTH,
            wrapped(self.composition, indent=0),
            "-" * WIDTH,
            two_columns(self.facts),
            section("What was tried, and what forecasts"),
            table.to_string(index=False, formatters=shown),
            "=" * WIDTH,
            *[wrapped(f"[{i}] {note}") for i, note in enumerate(self.notes, 1)],
            "",
            str(self.parts[heaviest]),
        ]
        return "\n".join(parts)


def summarise_stacked(
    fitted: FittedStacked, state: StackedState, parts: dict[str, Any]
) -> StackedSummary:
    """Summarise a stacked forecast, given the summaries of its parts."""
    factors, names = state.widths.factors, list(fitted.parts)
    order = np.argsort(-fitted.weights, kind="stable")
    shares = ", ".join(f"{names[i]} ({fitted.weights[i]:.2f})" for i in order)
    composition = f"Forecasts: {shares}; weights by the errors of rolling forecasts."
    facts: dict[str, object] = {
        "Series": len(state.ids),
        "Rows": int(state.n_rows.sum()),
        "Targets": fitted.data.n_targets,
        "Frequency": fitted.data.freq,
        "Horizon": fitted.horizon,
        "Rolling origins": fitted.n_origins,
    }
    if not fitted.has_columns:
        facts["Widths since fit"] = f"{factors.min():.2f} to {factors.max():.2f}"
    notes = [
        "Error: mean absolute error on the rolling origins over that of the seasonal naive method "
        "before them. Seconds: of the fit and its forecasts there; what both pretrained networks "
        "forecast from counts for the first of them. Candidates without a weight "
        "forecast nothing; one without an error was given up before it was trained.",
        fitted.guarantee,
    ]
    title = f"{fitted.arguments.class_name} Results"
    effects = None if fitted.regression is None else fitted.regression.table()
    return StackedSummary(title, composition, facts, fitted.candidates, effects, parts, notes)


def check_parts(header: dict[str, Any]) -> None:
    """Raise `DamagedFileError` unless the candidates and parts are legal."""
    names, table = list(header["parts"]), header["candidates"]
    legal = set(names) <= set(table) <= {PRIOR, ADAPTED, TRAINED}
    if not legal or any(len(row) != len(COLUMNS) for row in table.values()):
        raise refuse("fitted.candidates", f"a row of {COLUMNS} for each part", list(table))
    for name, row in table.items():
        if not all(isinstance(number, float) for number in row):
            raise refuse(f"fitted.candidates.{name}", "numbers with a decimal point", row)
    for name, part in header["parts"].items():
        if "parts" in part:
            raise refuse(f"fitted.parts.{name}", "a model, not several", list(part))


def stacked_from_file(
    header: dict[str, Any],
    arrays: dict[str, np.ndarray],
    read: Callable[[dict[str, Any], dict[str, np.ndarray]], tuple[Any, Any]],
) -> tuple[FittedStacked, StackedState]:
    """Read the stacked forecast and state that `FittedStacked.to_file` wrote; parts by `read`."""
    record(FITTED)(header, "fitted")
    names, table = list(header["parts"]), header["candidates"]
    check_parts(header)
    if not header["farthest"] > 0:
        raise refuse("fitted.farthest", "positive", header["farthest"])
    parts, numbers = arrays_by_part(arrays, len(names), "parts")
    pairs = []
    for name, of_part in zip(names, parts, strict=True):
        try:
            pairs.append(read(header["parts"][name], of_part))
        except DamagedFileError as error:
            raise DamagedFileError(f"the {name}: {error}") from error
    horizons = [part.horizon for part, _ in pairs]
    if len(set(horizons)) != 1:
        raise refuse("fitted.parts", "of the same horizon", horizons)
    positive: dict[str, tuple[str, tuple[int, ...]]] = {
        "stacking.weights": ("float64", (len(names),)),
        "stacking.widths": ("float64", (header["width_steps"],)),
    }
    first, state = pairs[0]
    if first.data.exog_names and PRIOR not in names:
        raise refuse("fitted.parts", f"with {PRIOR!r}, whose intervals are taken", names)
    tracked = TrackedWidths.begin(len(state.ids), first.horizon, first.data.n_targets)
    shapes = {TRACKED + name: (str(a.dtype), a.shape) for name, a in vars(tracked).items()}
    shapes["stacking.fitted_until"] = "int64", (len(state.ids),)
    check_arrays(numbers, positive | shapes, positive=list(positive))
    weights = numbers["stacking.weights"]
    if not math.isclose(weights.sum(), 1.0, rel_tol=1e-6):
        raise refuse("stacking.weights", "of sum 1", weights.tolist())
    if weights.tolist() != [table[name][0] for name in names]:
        raise refuse("stacking.weights", "those of the candidates", weights.tolist())
    tracked = TrackedWidths(**{name: numbers[TRACKED + name] for name in vars(tracked)})
    tracked.check()
    candidates = pd.DataFrame(table.values(), index=list(table), columns=list(COLUMNS), dtype=float)
    fitted = FittedStacked(
        {name: part for name, (part, _) in zip(names, pairs, strict=True)},
        weights,
        numbers["stacking.widths"],
        candidates,
        header["n_origins"],
        numbers["stacking.fitted_until"],
        header["farthest"],
    )
    return fitted, StackedState(tuple(state for _, state in pairs), tracked)
