r"""Stacking: forecasts of several fitted models, weighed by their errors on rolling origins.

A model that is fitted to the rows before a validation part forecasts it from rolling origins.
With the forecasts :math:`\hat y_i` of all candidates from these origins, weights w on the simplex
have the mean absolute error, over the scale s of each series,

.. math:: L(w) = \operatorname{mean} \frac{|y - \sum_i w_i \hat y_i|}{s},

and those used are the mean of the posterior :math:`p(w) \propto L(w)^{-m}` of errors with Laplace's
distribution, m of which are independent, with equal prior probability of all weights: near equal
where errors are few or candidates alike, near zero for a candidate that is clearly worse.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Self

import numpy as np
import pandas as pd

from tsrnn.contract import (
    MOST_STEPS,
    Arguments,
    DamagedFileError,
    FittedData,
    FittedModel,
    Kind,
    Origins,
    Summary,
    anything,
    by_name,
    check_arrays,
    integer,
    level_name,
    listed,
    naive_errors,
    record,
    refuse,
)
from tsrnn.data import Layout, Panel, quoted
from tsrnn.forecasters._prior import FittedPrior
from tsrnn.forecasters._repeated import repeated
from tsrnn.forecasters._validation_part import independent_errors
from tsrnn.interpret import WIDTH, section, two_columns, wrapped
from tsrnn.models import model_class
from tsrnn.prior import OWN_PRIOR, by_step, evenly, step_factors

MOST_SERIES = 50  # of a panel that candidates are judged on: they share the shocks of their time
MOST_ORIGINS = 100  # of all series, from which candidates are judged
PARTS = {1: 1, 2: 40, 3: 20, 4: 12, 5: 10, 6: 8}  # of the simplex, by the number of candidates
LEAST_WEIGHT = 0.05  # a candidate with less is left out
JUDGED = 80  # percent, of the intervals whose widths are corrected
TINY = 1e-300  # keeps logarithms finite
PRIOR, ADAPTED, TRAINED = "prior network", "adapted prior network", "trained network"
CLASSICAL = ("ETS", "Theta", "CES")  # classes of forecasters that a thorough search tries, too
COLUMNS = ("weight", "error", "seconds")  # of the table of candidates
# Fields of a file.
FITTED: dict[str, Kind] = {
    "parts": by_name(by_name(anything)),
    "candidates": by_name(listed(anything)),
    "horizon": integer(1, MOST_STEPS),
    "n_origins": integer(1, 10**6),
    "width_steps": integer(1, MOST_STEPS),
}
GUARANTEE = (
    "Intervals: quantiles of {parts}, averaged with their weights, wider or narrower by step "
    "by the errors of rolling forecasts from {n} origins in the last rows, which no part was "
    "fitted to, against ten errors. They cover with the stated probability as far as later errors "
    "are like these; nothing is guaranteed. See a backtest for coverage on these data."
)


def classical(name: str, horizon: int, season_length: int | None) -> Any:
    """Classical forecaster with the horizon and season of a stacked one."""
    return model_class(name)(horizon=horizon, season_length=season_length)


def interval_names(level: float) -> tuple[str, str]:
    """Names of the ends of an interval in forecasts by name."""
    name = level_name(level)
    return f"-lo-{name}", f"-hi-{name}"


@dataclass(frozen=True, eq=False)
class StackedState:
    """States of all parts of a stacked forecast; the series are the same in each.

    Attributes
    ----------
    parts : tuple of states

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

    @property
    def ids(self) -> pd.Index:
        """Names of the series, (S,)."""
        return self.parts[0].ids

    @property
    def last_times(self) -> np.ndarray:
        """Last times of the series, (S,)."""
        return self.parts[0].last_times

    @property
    def n_rows(self) -> np.ndarray:
        """Rows seen of the series, (S,)."""
        return self.parts[0].n_rows

    @property
    def target_scale(self) -> np.ndarray:
        """Standard deviation of each target in the rows fitted to, (S, C)."""
        return self.parts[0].target_scale

    def select(self, series: np.ndarray) -> StackedState:
        """State of the series of these numbers, in that order."""
        return StackedState(tuple(part.select(series) for part in self.parts))

    def replaced(self, series: np.ndarray, new: StackedState) -> StackedState:
        """Copy in which the series of these numbers are those of `new`."""
        pairs = zip(self.parts, new.parts, strict=True)
        return StackedState(tuple(part.replaced(series, other) for part, other in pairs))


def rows_for(part: FittedModel[Any], panel: Panel, state: Any = None) -> Panel:
    """Rows as a part reads them: a trained network has no place for missing values.

    `state` is its state before these rows, None at the begin.
    """
    if isinstance(part, FittedPrior) or part.arguments.class_name in CLASSICAL:
        return panel
    network: Any = part
    past = None if state is None else state.tail
    return repeated(panel, longest_season(network.settings), past)


def longest_season(settings: Any) -> int:
    """Longest season of which a window of the network has all rows, 1 for none."""
    return max((k for k in settings.seasons if k <= settings.input_size), default=1)


@dataclass(frozen=True, eq=False)
class FittedStacked(FittedModel[StackedState]):
    """Fitted models whose forecasts are averaged with weights.

    Quantiles of one probability are averaged, and intervals widened or narrowed by step.

    Attributes
    ----------
    parts : dict of str to FittedModel
        `FittedPrior` under "prior network" or "adapted prior network", `FittedNetworks` under
        "trained network", and of a thorough search those of classical forecasters under the names
        of their classes.
    weights : ndarray of shape (K,)
        Of the parts; they sum to one.
    widths : ndarray of shape (n,)
        Factors of the half widths by step; steps beyond the last known one reuse it.
    candidates : DataFrame
        A row a candidate, those without weight among them: ``weight``, ``error`` (mean absolute
        error on the rolling origins over that of the seasonal naive method) and ``seconds``.
    n_origins : int
        Rolling origins, of all series, that the errors are of.

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

    parts: dict[str, FittedModel[Any]]
    weights: np.ndarray
    widths: np.ndarray
    candidates: pd.DataFrame
    n_origins: int

    @property
    def first(self) -> FittedModel[Any]:
        """Part with the largest weight."""
        return list(self.parts.values())[int(self.weights.argmax())]

    @property
    def arguments(self) -> Arguments:  # type: ignore[override]
        """Constructor arguments of the fit."""
        return self.first.arguments

    @property
    def data(self) -> FittedData:  # type: ignore[override]
        """Series and columns of the data fitted to."""
        return self.first.data

    @property
    def horizon(self) -> int:  # type: ignore[override]
        """Steps of a forecast where none are asked for."""
        return self.first.horizon

    @property
    def guarantee(self) -> str:
        """Guarantee of the intervals."""
        return GUARANTEE.format(n=self.n_origins, parts=quoted(list(self.parts)))

    def with_layout(self, layout: Layout) -> Self:
        """Same models of data with another layout, which knows the times of further rows."""
        parts = {name: part.with_layout(layout) for name, part in self.parts.items()}
        return replace(self, parts=parts)

    def filter(self, panel: Panel, seen: StackedState | None = None) -> StackedState:
        """State after the rows of a panel; `seen` is the state of the series fitted to."""
        states = []
        for place, (name, part) in enumerate(self.parts.items()):
            known: Any = () if seen is None or name in CLASSICAL else (seen.parts[place],)
            states.append(part.filter(rows_for(part, panel), *known))
        return StackedState(tuple(states))

    def advance(self, state: StackedState, panel: Panel) -> StackedState:
        """State after further rows of all series, in the same order."""
        pairs = zip(self.parts.values(), state.parts, strict=True)
        return StackedState(
            tuple(part.advance(past, rows_for(part, panel, past)) for part, past in pairs)
        )

    def forecast(
        self, state: StackedState, h: int, levels: list[float], future: np.ndarray | None
    ) -> dict[str, np.ndarray]:
        """Forecasts (S, h, C) and their intervals, under the names of `FittedModel`."""
        pairs = zip(self.parts.values(), state.parts, strict=True)
        return self.averaged([part.forecast(past, h, levels, future) for part, past in pairs])

    def rolling(
        self, state: StackedState, panel: Panel, origins: Origins, h: int, levels: list[float]
    ) -> dict[str, np.ndarray]:
        """Forecasts (n, h, C) from n origins within a panel that follows `state`."""
        pairs = zip(self.parts.values(), state.parts, strict=True)
        forecasts = [
            part.rolling(past, rows_for(part, panel, past), origins, h, levels)
            for part, past in pairs
        ]
        return self.averaged(forecasts)

    def averaged(self, forecasts: Sequence[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
        """Weighted means of forecasts (n, h, C) of the parts, their ends moved by `widths`."""
        means = {
            name: sum(w * part[name] for w, part in zip(self.weights, forecasts, strict=True))
            for name in forecasts[0]
        }
        factor = by_step(self.widths, means[""].shape[1])[:, None]
        return {
            name: ends if name == "" else means[""] + factor * (ends - means[""])
            for name, ends in means.items()
        }

    def simulate(
        self,
        state: StackedState,
        h: int,
        n: int,
        future: np.ndarray | None,
        rng: np.random.Generator,
    ) -> np.ndarray:
        """Draw paths (n, S, h, C): those of a part, moved to the centre and width of all.

        Of the part with the largest weight among those that can simulate.
        """
        able = [hasattr(part, "simulate") for part in self.parts.values()]
        place = int(np.where(able, self.weights, -1).argmax())
        part: Any = list(self.parts.values())[place]
        past, low, high = state.parts[place], *interval_names(JUDGED)
        paths = part.simulate(past, h, n, future, rng)
        alone = part.forecast(past, h, [JUDGED], future)
        stacked = self.forecast(state, h, [JUDGED], future)
        width = alone[high] - alone[low]
        ratio = (stacked[high] - stacked[low]) / np.where(width > 0, width, 1.0)
        return stacked[""] + ratio * (paths - alone[""])

    def contributions(
        self, state: StackedState, future: np.ndarray | None
    ) -> dict[str, np.ndarray]:
        """Weighted additive parts (S, h, C) of each model's forecast, under its name."""
        shares = {}
        for (name, part), past, weight in zip(
            self.parts.items(), state.parts, self.weights, strict=True
        ):
            if name in CLASSICAL:
                shares[name] = weight * part.forecast(past, self.horizon, [], future)[""]
                continue
            split: Any = part
            for of_part, values in split.contributions(past, future).items():
                shares[f"{name}: {of_part}"] = weight * values
        return shares

    def to_file(self, state: StackedState) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """JSON values and arrays of a file; `stacked_from_file` is the inverse."""
        arrays = {"stacking.weights": self.weights, "stacking.widths": self.widths}
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
            "horizon": self.horizon,
            "n_origins": self.n_origins,
            "width_steps": len(self.widths),
        }
        return header, arrays


@dataclass(frozen=True, eq=False)
class ValidationPart:
    """Rows on which candidates are judged, and the origins that they are forecast from.

    Attributes
    ----------
    before, after : Panel
        Rows of some series up to their validation part, and the part.
    origins : Origins
        Within `after`.
    horizon : int
    actual : ndarray of shape (n, h, C)
    scale : ndarray of shape (n, 1, C)
        Mean absolute seasonal difference of the series of each origin before its validation part;
        NaN of series that do not vary.
    n_errors : float
        Independent forecasts of a horizon that all count as, see `independent_errors`.
    """

    before: Panel
    after: Panel
    origins: Origins
    horizon: int
    actual: np.ndarray
    scale: np.ndarray
    n_errors: float

    @classmethod
    def of(cls, panel: Panel, starts: np.ndarray, horizon: int, season: int) -> ValidationPart:
        """Validation part of the rows from `starts` (S,) on, of series evenly chosen.

        Origins are spread over the part; of many series a few origins each.
        """
        validated = np.flatnonzero(panel.lengths - starts >= horizon)
        chosen = validated[evenly(len(validated), MOST_SERIES)]
        mask = np.isin(np.arange(panel.n_series), chosen)
        selected, starts = panel.select(mask), starts[chosen]
        before = selected.between(np.zeros_like(starts), starts)
        after = selected.between(starts, selected.lengths)
        each = max(1, MOST_ORIGINS // (len(chosen) * panel.values.shape[1]))
        # Steps of another length than the season: every origin at its own phase.
        step = max(1, int((after.lengths.max() - horizon) // each))
        step += step % season == 0 and season > 1
        origins = Origins.of(after, horizon, step)
        actual = after.values[origins.first[:, None] + np.arange(horizon)]
        naive = naive_errors(before, season)
        scale = np.where(naive > 0, naive, np.nan)[origins.series][:, None]
        n_targets = panel.values.shape[1]
        n_errors = independent_errors(panel.lengths, n_targets, horizon)
        n_errors = min(n_errors, len(origins.series) * n_targets)
        return cls(before, after, origins, horizon, actual, scale, n_errors)

    def forecasts(self, fitted: FittedModel[Any]) -> dict[str, np.ndarray]:
        """Forecasts (n, h, C) of a model fitted to the rows before, with intervals of 80 percent.

        Under the names of `FittedModel`.
        """
        state = fitted.filter(rows_for(fitted, self.before))
        after = rows_for(fitted, self.after, state)
        return fitted.rolling(state, after, self.origins, self.horizon, [JUDGED])

    def error(self, forecasts: dict[str, np.ndarray]) -> float:
        """Mean absolute error over that of the seasonal naive method."""
        return float(np.nanmean(np.abs(self.actual - forecasts[""]) / self.scale))

    def weights(self, candidates: Sequence[dict[str, np.ndarray]]) -> np.ndarray:
        """Posterior mean weights (K,) of the candidates; those of less than 0.05 are 0."""
        count, parts = len(candidates), PARTS[len(candidates)]
        grid = product(range(parts + 1), repeat=count)
        simplex = np.array([w for w in grid if sum(w) == parts]) / parts
        errors = np.stack([(self.actual - each[""]) / self.scale for each in candidates])
        errors = errors[:, np.isfinite(errors).all(0)]  # (K, N)
        losses = np.array([np.abs(w @ errors).mean() for w in simplex])
        log_density = -self.n_errors * np.log(np.maximum(losses, TINY))
        density = np.exp(log_density - log_density.max())
        weights = density @ simplex / density.sum()
        weights[weights < LEAST_WEIGHT] = 0.0
        return weights / weights.sum()

    def widths(self, forecasts: dict[str, np.ndarray]) -> np.ndarray:
        """Factors (h,) of the widths by step, by the errors of these forecasts.

        Series of a panel share the shocks of their time, so that their errors count as those of a
        series; and as these may be rare, the widths as they are count as much as the errors, and
        for ten errors more.
        """
        low, high = interval_names(JUDGED)
        error = self.actual - forecasts[""]
        half = np.abs(np.where(error > 0, forecasts[high], forecasts[low]) - forecasts[""])
        scores = np.abs(error) / np.where(half > 0, half, np.nan)
        by_origin = scores.swapaxes(1, 2).reshape(-1, self.horizon)
        n_units = self.after.n_series * self.actual.shape[2]
        total = self.n_errors / np.sqrt(n_units)
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
    parts : dict of str to Summary
        Of the parts that forecast, by name.
    notes : list of str
    """

    title: str
    composition: str
    facts: dict[str, object]
    candidates: pd.DataFrame
    parts: dict[str, Any]
    notes: list[str]

    def as_text(self) -> str:
        """Page as it is printed: what forecasts, then the page of the part of most weight."""
        table = self.candidates.rename_axis("candidate").reset_index()
        heaviest = str(self.candidates["weight"].idxmax())
        shown = {
            "weight": "{:.2f}".format,
            "error": "{:.3f}".format,
            "seconds": "{:.1f}".format,
        }
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


def composition_of(fitted: FittedStacked) -> str:
    """Sentence that says what forecasts."""
    order = np.argsort(-fitted.weights, kind="stable")
    names = list(fitted.parts)
    shares = [f"{names[i]} ({fitted.weights[i]:.2f})" for i in order]
    return f"Forecasts: {', '.join(shares)}; weights by the errors of rolling forecasts."


def summarise_stacked(
    fitted: FittedStacked, state: StackedState, parts: dict[str, Any]
) -> StackedSummary:
    """Build the summary of a stacked forecast, from the summaries of its parts."""
    facts: dict[str, object] = {
        "Series": len(state.ids),
        "Rows": int(state.n_rows.sum()),
        "Targets": fitted.data.n_targets,
        "Frequency": fitted.data.freq,
        "Horizon": fitted.horizon,
        "Rolling origins": fitted.n_origins,
    }
    notes = [
        "Error: mean absolute error on the rolling origins over that of the seasonal naive method "
        "before them. Seconds: of the fit and its forecasts there. Candidates without a weight "
        "forecast nothing; one without an error was given up before it was trained.",
        fitted.guarantee,
    ]
    title = f"{fitted.arguments.class_name} Results"
    return StackedSummary(title, composition_of(fitted), facts, fitted.candidates, parts, notes)


def stacked_from_file(
    header: dict[str, Any],
    arrays: dict[str, np.ndarray],
    read: Callable[[str, dict[str, Any], dict[str, np.ndarray]], tuple[FittedModel[Any], Any]],
) -> tuple[FittedStacked, StackedState]:
    """Stacked forecast and state that `FittedStacked.to_file` wrote, each part by `read`.

    Raises
    ------
    DamagedFileError
        With the part, and its field or array that is not as it was written.
    """
    record(FITTED)(header, "fitted")
    names, table = list(header["parts"]), header["candidates"]
    if not set(names) <= set(table) or any(len(row) != len(COLUMNS) for row in table.values()):
        raise refuse("fitted.candidates", f"a row of {COLUMNS} for each part", list(table))
    parts: list[dict[str, np.ndarray]] = [{} for _ in names]
    numbers = {}
    for key, array in arrays.items():
        place, slash, name = key.partition("/")
        if not slash:
            numbers[key] = array
        elif not (place.isdecimal() and place.isascii() and int(place) < len(names)):
            raise refuse("the arrays", f"those of {len(names)} parts", key)
        else:
            parts[int(place)][name] = array
    shapes: dict[str, tuple[str, tuple[int, ...]]] = {
        "stacking.weights": ("float64", (len(names),)),
        "stacking.widths": ("float64", (header["width_steps"],)),
    }
    check_arrays(numbers, shapes)
    pairs = []
    for name, of_part in zip(names, parts, strict=True):
        try:
            pairs.append(read(name, header["parts"][name], of_part))
        except DamagedFileError as error:
            raise DamagedFileError(f"the {name}: {error}") from error
    candidates = pd.DataFrame(table.values(), index=list(table), columns=list(COLUMNS), dtype=float)
    fitted = FittedStacked(
        {name: part for name, (part, _) in zip(names, pairs, strict=True)},
        numbers["stacking.weights"], numbers["stacking.widths"], candidates, header["n_origins"],
    )  # fmt: skip
    return fitted, StackedState(tuple(state for _, state in pairs))
