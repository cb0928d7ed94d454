"""Fitted networks, which forecast from the state of the series."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from tsrnn.contract import (
    Arguments,
    Calibration,
    FittedData,
    Origins,
    positive_integer,
    with_intervals,
)
from tsrnn.data import Panel
from tsrnn.forecasters._distribution import HEADS
from tsrnn.forecasters._forecast_part import ForecastPart
from tsrnn.forecasters._intervals import Ends, each_end, growth_beyond, learned_bounds
from tsrnn.forecasters._linearised import linear_paths
from tsrnn.forecasters._model import ForecastModel
from tsrnn.forecasters._repeated import repeated
from tsrnn.forecasters._scaling import FARTHEST, Scaling, fit_scaling, standardise, standardised
from tsrnn.forecasters._settings import Settings
from tsrnn.forecasters._state import RecurrentState, run_filter
from tsrnn.forecasters._step import Ahead, Step
from tsrnn.forecasters._units import Units, Windows, by_series, network_inputs, units_of
from tsrnn.interpret import ForecastPaths
from tsrnn.layers import check_saveable

if TYPE_CHECKING:
    from tsrnn.forecasters._recurrent import RecurrentForecaster
    from tsrnn.forecasters._stability import FeatureStability
    from tsrnn.forecasters._summary import NetworkSummary

GRID = np.linspace(0.005, 0.995, 100)  # probabilities at which learned quantiles are evaluated
WEIGHTS = "model."  # prefix of the network's parameters in a file


@dataclass(frozen=True, eq=False)
class FittedNetworks(ForecastPart[RecurrentState]):
    """Fitted recurrent networks, their linear path, scaling and intervals; never changed.

    Attributes
    ----------
    arguments : Arguments
    data : FittedData
    settings : Settings
        Resolved arguments.
    model : ForecastModel
        Model in eval mode.
    calibration : Calibration
        Validation errors, from which the intervals are computed.
    scaling : Scaling
        Scaling of the series fitted to.
    history : list of dict
        Losses and learning rate of every epoch.
    best_epochs : list of int
        Epoch whose parameters are kept, for each network; 0 is the start.
    linear_path : dict
        Form of the linear path; empty without one.
    validation : DataFrame
        Root mean squared error by step on the validation part, of the model and simpler forecasts.
    tests : DataFrame
        Tests of each part of the forecasts against the parts before it on the validation part,
        before a network was dropped.
    sample : Tensor of shape (B, T, C + E)
        Sample of inputs of the network, for the features of its blocks.
    sample_rows : Tensor of shape (B, T', C + E)
        Standardised last rows of the same units, for the features of whole forecasts.
    sample_length : int
        Rows of the longest series fitted to.

    Examples
    --------
    >>> from tsrnn import ParaRNNForecaster
    >>> from tsrnn.datasets import load_elec_equip
    >>> model = ParaRNNForecaster(horizon=12, hidden_size=4, max_epochs=1, refit=False)
    >>> fitted = model.fit(load_elec_equip()).fitted_
    >>> fitted.horizon, fitted.settings.layer, fitted.scaling.constant.tolist()
    (12, 'ParaRNN', [[False]])
    """

    arguments: Arguments
    data: FittedData
    settings: Settings
    model: ForecastModel
    calibration: Calibration
    scaling: Scaling
    history: list[dict[str, float]]
    best_epochs: list[int]
    linear_path: dict[str, Any]
    validation: pd.DataFrame
    tests: pd.DataFrame
    sample: Tensor
    sample_rows: Tensor
    sample_length: int

    @property
    def horizon(self) -> int:  # type: ignore[override]
        """Default number of forecast steps."""
        return self.settings.horizon

    @property
    def point(self) -> str:
        """Statistic that the point forecast estimates."""
        # The median is equivariant under the transformation of Box and Cox; the mean is not.
        squares = self.settings.loss == "mse" and self.settings.boxcox is None
        return "mean" if squares else "median"

    @property
    def guarantee(self) -> str:
        """Guarantee of the prediction intervals, and the assumptions behind it."""
        return self.calibration.guarantee

    def steps(self, method: str, h: int | None) -> int:
        """Number of steps of a method; `horizon` if `h` is None.

        Raises
        ------
        ValueError
            If paths are to be longer than the horizon, up to which their errors are known.
        """
        h = self.horizon if h is None else positive_integer("h", h)
        if method == "sample_paths" and h > self.horizon:
            raise ValueError(
                f"{method} needs h of at most the fitted horizon, {self.horizon}; got {h}. Fit "
                "with a larger horizon"
            )
        return h

    def filter(self, panel: Panel, seen: RecurrentState | None = None) -> RecurrentState:
        """State after the rows of a panel; new series are scaled by their own rows.

        Parameters
        ----------
        panel : Panel
        seen : RecurrentState, optional
            State of the series fitted to. A series without an id is then the series fitted to if
            it contains the last row seen, and new otherwise; without `seen` it is not new.
        """
        last = None
        if seen is not None:
            last = seen.last_times[0], seen.tail[0][-1, : panel.values.shape[1]]
        return self.filter_series(panel, fitted_series(self.data.ids, panel, last))

    def filter_series(self, panel: Panel, series: np.ndarray) -> RecurrentState:
        """State after the rows of a panel, given the position of each series in the fit.

        Position -1 is a new series, which is scaled by its own rows.
        """
        fitted, settings = self.scaling, self.settings
        scaling = fit_scaling(panel, panel.lengths, settings.season, fitted.boxcox, fitted.exog)
        scaling = scaling.replaced(series >= 0, fitted.select(series[series >= 0]))
        units = units_of(standardise(panel, scaling), panel.indptr, scaling, settings)
        hidden = run_filter(self.model, units.to(torch.float32), units.indptr[1:])
        return RecurrentState.after(panel, series, scaling, hidden, settings.input_size)

    def advance(self, state: RecurrentState, panel: Panel) -> RecurrentState:
        """Append rows to all series, given in the same order."""
        tail = [rows[-self.settings.input_size :].copy() for rows in state.rows_with(panel)]
        n_rows = state.n_rows + panel.lengths
        after = replace(state, last_times=panel.last_times, n_rows=n_rows, tail=tail)
        if len(panel.times) > len(state.ids):
            units, begin = self.units(state, panel)
            ends, single = units.indptr[1:], units.to(torch.float32)
            hidden = run_filter(self.model, single, ends, state.hidden, begin=begin)
        else:  # one row for each series: a single step of the network, which is faster
            with np.errstate(over="ignore"):
                rows, windows = self.last_rows(after)
            if (rows[:, -1].abs() > FARTHEST).any():
                standardise(panel, state.scaling)  # raises with the name of the column
            last = (part.float() for part in (rows[:, -1], windows.level, windows.spread))
            with torch.inference_mode():  # a fifth faster, as no derivatives are recorded
                hidden = self.step.advance(network_inputs(*last)[:, None], state.hidden)
            hidden = hidden.clone()  # no inference tensor, which derivatives could not use
            # Cache the window: a forecast from the same state most often follows.
            vars(self)["_latest"] = tail, (rows, windows)
        return replace(after, hidden=hidden)

    def units(self, state: RecurrentState, panel: Panel) -> tuple[Units, Tensor]:
        """Units of the rows kept in a state followed by the rows of a panel.

        Parameters
        ----------
        state : RecurrentState
        panel : Panel
            Further rows of all series, in the same order.

        Returns
        -------
        units : Units
        first : integer Tensor of shape (U,)
            First row of the panel in each unit.
        """
        standardise(panel, state.scaling)  # raises for values too far from the data fitted to
        rows = state.rows_with(panel)
        indptr = np.concatenate([[0], np.cumsum([len(part) for part in rows])])
        values = state.scaling.transform(np.vstack(rows), indptr)
        units = units_of(values, indptr, state.scaling, self.settings)
        past = torch.as_tensor([len(part) for part in state.tail])
        return units, units.starts + past.repeat_interleave(state.units_per_series)

    def last_rows(self, state: RecurrentState) -> tuple[Tensor, Windows]:
        """Standardised last rows of each unit, shape (U, W, c + E), and their windows."""
        tail, latest = vars(self).get("_latest", (None, None))
        if tail is state.tail:
            return latest
        width, scaling = self.settings.input_size, state.scaling
        n_series, n_targets = scaling.constant.shape
        rows = np.ones((n_series, width, state.tail[0].shape[1]))  # padding 1 has a logarithm
        for window, known in zip(rows, state.tail, strict=True):
            window[width - len(known) :] = known
        location, scale = scaling.target.location[:, None], scaling.target.scale[:, None]
        exog = np.concatenate([scaling.exog.location, scaling.exog.scale])
        rows = standardised(rows, location, scale, exog, scaling.boxcox)
        count = np.array([[len(known)] for known in state.tail])
        varies, groups = ~scaling.constant, state.units_per_series
        if groups > 1:  # each target is a unit, with all exogenous columns
            targets = rows[..., :n_targets].swapaxes(1, 2).reshape(-1, width, 1)
            rows = np.concatenate([targets, rows[..., n_targets:].repeat(groups, 0)], -1)
            count, varies = count.repeat(groups, 0), varies.reshape(-1, 1)
        last, varying = torch.from_numpy(rows), torch.from_numpy(varies).double()
        local_level = self.settings.local_level
        return last, Windows.of(last, torch.from_numpy(count), varying, local_level=local_level)

    @cached_property
    def step(self) -> Step:
        """Step of the model on tensors."""
        # No inference tensors, even if `predict` asks first: summaries differentiate through it.
        with torch.inference_mode(False):
            return Step(self.model, self.scaling)

    def __getstate__(self) -> dict[str, Any]:
        """Fields without cached properties, which copies and pickles recompute."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def ahead(self, state: RecurrentState, future: np.ndarray | None) -> Ahead:
        """Forecasts of the next horizon; `future`, (S, n, n_known), are columns known ahead."""
        known = None if future is None else torch.as_tensor(future, dtype=torch.float64)
        windows = self.last_rows(state)[1]
        with torch.inference_mode():
            return self.step.ahead(windows, state.hidden, known)

    def forecast(
        self, state: RecurrentState, h: int, levels: list[float], future: np.ndarray | None
    ) -> dict[str, np.ndarray]:
        """Forecasts, shape (S, h, C), and their intervals under the names of `FittedModel`.

        Beyond the horizon, forecasts continue from forecasts, and interval widths grow with the
        square root of the step.
        """
        ends = self._scaled_ends(state, levels, h)
        step, target, reached = self.step, state.scaling.target, state
        blocks: list[np.ndarray] = []
        for done in range(0, h, self.horizon):
            known = None if future is None else future[:, done : done + self.horizon]
            ahead = self.ahead(reached, known)
            total = ahead.parts.total().numpy()
            point = step.transformed(total, target.location, target.scale)
            if not done:
                spread = by_series(ahead.spread[:, None].numpy(), step.units_per_series)
                spread = spread * target.scale[:, None]
            blocks.append(point[:, : h - done])
            if done + self.horizon < h:
                rows = self._forecast_rows(reached, state.scaling.back(point), known)
                reached = self.advance(reached, rows)
        if levels:
            growth = growth_beyond(self.horizon, h)[:, None] * spread
            steps = np.minimum(np.arange(h), self.horizon - 1)
            ends = each_end(ends, lambda end: end[:, steps] * growth)
        forecasts = with_intervals(np.concatenate(blocks, 1), ends)
        return {name: state.scaling.back(values) for name, values in forecasts.items()}

    @torch.no_grad()
    def rolling(
        self, state: RecurrentState, panel: Panel, origins: Origins, h: int, levels: list[float]
    ) -> dict[str, np.ndarray]:
        """Forecasts, shape (n, h, C), from n origins within a panel after `state`.

        One pass over the panel up to the horizon. Beyond it, each origin continues separately.
        """
        if h > self.horizon:
            return super().rolling(state, panel, origins, h, levels)
        model, per_series = self.model, state.units_per_series
        double, begin = self.units(state, panel)
        units, learned = double.to(torch.float32), self.calibration.method in HEADS
        counts = torch.as_tensor(np.repeat(origins.counts, per_series))
        place = counts.cumsum(0) - counts  # position of the first origin of each unit
        points = np.full((int(counts.sum()), h, model.n_targets), np.nan)
        spreads = np.full_like(points[:, :1], np.nan)
        empty = {level: (points.copy(), points.copy()) for level in levels}
        ends = empty if learned else self._scaled_ends(state, levels, h)

        # Position of the origin after each row of the units; -1 for no origin.
        at_row = torch.full((len(units.values),), -1)
        of_unit = torch.as_tensor(origins.series * per_series)[:, None] + torch.arange(per_series)
        before = begin[of_unit] - 1 + torch.as_tensor(origins.offset)[:, None]
        at_row[before] = place[of_unit] + torch.as_tensor(origins.ordinal)[:, None]

        def visit(rows: Tensor, unit: Tensor, states: Tensor) -> None:
            is_origin = at_row[rows] >= 0
            rows, unit, states = rows[is_origin], unit[is_origin], states[is_origin]
            at = at_row[rows]
            points[at] = model.forecast(units, rows, units.starts[unit], states)[:, :h].numpy()
            spreads[at] = units.spread[rows][:, None].numpy()
            if learned:
                for level, bounds in learned_bounds(model, states, levels).items():
                    for end, bound in zip(ends[level], bounds, strict=True):
                        end[at] = bound[:, :h]

        # The first origin of each unit precedes its new rows.
        visit(begin - 1, torch.arange(len(units)), model.network.outputs(state.hidden[-1]))
        run_filter(model, units, begin, state.hidden, begin=begin, visit=visit)
        # Units are ordered by series, then target: gather the targets of each origin.
        order = place.numpy().reshape(-1, per_series)[origins.series] + origins.ordinal[:, None]

        def of_origins(values: np.ndarray) -> np.ndarray:
            """Rearrange values of units, (n C / c, h, c), by origin of series, (n, h, C)."""
            return values if per_series == 1 else np.moveaxis(values[..., 0][order], 1, 2)

        def of_series(end: np.ndarray) -> np.ndarray:
            return end[origins.series, :h]

        target = state.scaling.target
        scale, location = target.scale[origins.series], target.location[origins.series]
        spread = of_origins(spreads) * scale[:, None]
        ends = each_end(ends, of_origins if learned else of_series)
        point = of_origins(points) * scale[:, None] + location[:, None]
        forecasts = with_intervals(point, each_end(ends, lambda end: end * spread))
        return {name: state.scaling.back(values) for name, values in forecasts.items()}

    def simulate(
        self,
        state: RecurrentState,
        h: int,
        n: int,
        future: np.ndarray | None,
        rng: np.random.Generator,
    ) -> np.ndarray:
        """Draw paths, shape (n, S, h, C): the forecast plus validation errors drawn at random.

        Raises
        ------
        ValueError
            If the validation part has no origin with errors of all steps.
        """
        step, target, calibration = self.step, state.scaling.target, self.calibration
        ahead = self.ahead(state, future)
        if not len(calibration.complete):
            raise ValueError(
                "sample paths are made of validation errors of all steps from one origin; the "
                "validation part has none. Fit with a larger val_size"
            )
        # All steps of a path are errors from one origin, which preserves their dependence.
        errors = np.array([calibration.draw(unit, n, rng) for unit in state.fitted_units], float)
        if calibration.method in HEADS:
            errors = learned_errors(self.model, ahead.states.float(), errors, calibration)
        total, spread = ahead.parts.total()[:, None].numpy(), ahead.spread.numpy()[:, None, None]
        paths = np.moveaxis(total + spread * errors, 1, 0)
        transformed = [step.transformed(path, target.location, target.scale) for path in paths]
        return state.scaling.back(np.stack(transformed))[:, :, :h]

    def contributions(
        self, state: RecurrentState, future: np.ndarray | None
    ) -> dict[str, np.ndarray]:
        """Additive parts, (S, h, C), of the (transformed) forecasts of the next horizon, by name.

        A network is split by block if its head sums blocks. Networks whose best epoch is 0 are not
        split. If there is no other, "network" is one part, which is zero if the model starts from
        the local level or the linear path.
        """
        step, target = self.step, state.scaling.target
        parts, spread, states = self.ahead(state, future)
        model, network = step.model, step.model.network
        scale, shape = spread[:, None, :], (model.horizon, model.n_targets)
        named = {"level": parts.level}
        if model.linear is not None:
            named["linear path"] = parts.linear
        if len(model.futures):
            named["known ahead"] = parts.future
        if network.sums_blocks and any(self.best_epochs):
            blocks = network.contributions(states)  # (U, K, h C), ordered by network
            per_network = blocks.shape[1] // len(self.best_epochs)
            for k in range(blocks.shape[1]):
                if self.best_epochs[k // per_network]:
                    named[f"block {k + 1}"] = scale * blocks[:, k].unflatten(-1, shape)
            named["constant"] = scale * network.constant().unflatten(0, shape)
        else:
            named["network"] = scale * network.head(states).unflatten(-1, shape)
        scaled = {
            name: by_series(part.numpy(), step.units_per_series) * target.scale[:, None]
            for name, part in named.items()
        }
        return scaled | {"level": scaled["level"] + target.location[:, None]}

    @property
    def trained(self) -> FittedNetworks:
        """Return these networks."""
        return self

    def program(self) -> FittedNetworks:
        """Return these networks."""
        return self

    def readable(self, panel: Panel, state: RecurrentState | None = None) -> Panel:
        """Fill missing values with the value one season earlier."""
        return repeated(panel, self.settings.season, None if state is None else state.tail)

    def summarise(
        self, forecaster: RecurrentForecaster, stability: FeatureStability | None
    ) -> NetworkSummary:
        """Summary of a forecaster that holds these networks alone."""
        from tsrnn.forecasters._summary import summarise

        return summarise(self, forecaster, stability)

    def forecast_paths(self, state: RecurrentState, at: str) -> ForecastPaths:
        """Paths of the linearised forecasts along the sample rows.

        Raises
        ------
        ValueError
            If the model was loaded from a file without sample rows.
        """
        if not self.sample_rows.numel():
            raise ValueError(
                "the file of this forecaster was written by an earlier version, which kept no "
                "rows by which whole forecasts are judged. Fit it anew"
            )
        return linear_paths(
            self.step.model, self.sample_rows, self.settings, self.sample_length, at
        )

    def to_file(self, state: RecurrentState) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """JSON values and arrays of a file; `from_file` is the inverse.

        Raises
        ------
        TypeError
            If the cell is one of the user's own.
        """
        check_saveable(self.settings.options.get("cell"))
        header = {
            "settings": asdict(self.settings),
            "intervals": self.calibration.method,
            "pooled_units": self.calibration.n_pooled,
            "history": self.history,
            "best_epochs": self.best_epochs,
            "sample_length": self.sample_length,
            "linear_path": self.linear_path,
            "validation": self.validation.to_dict("list"),
            "tests": {
                "step": [str(step) for step, _ in self.tests.index],
                "part": [part for _, part in self.tests.index],
                **self.tests.to_dict("list"),
            },
        }
        scaling = self.scaling
        return header, {
            "n_rows": state.n_rows,
            "location": scaling.target.location,
            "scale": scaling.target.scale,
            "exog_location": scaling.exog.location,
            "exog_scale": scaling.exog.scale,
            "constant": scaling.constant,
            "deviation": scaling.deviation,
            "tail": np.vstack(state.tail),
            "tail_lengths": np.array([len(rows) for rows in state.tail]),
            **self.calibration.to_file(),
            "state": state.hidden.numpy(),
            "sample": self.sample.numpy(),
            "sample_rows": self.sample_rows.numpy(),
            **{WEIGHTS + name: p.numpy() for name, p in self.model.state_dict().items()},
        }

    def _scaled_ends(self, state: RecurrentState, levels: list[float], h: int) -> Ends:
        """Interval ends minus point forecast, over the local spread, shape (S, horizon, C)."""
        if self.calibration.method in HEADS:
            states = self.model.network.outputs(state.hidden[-1])
            ends = learned_bounds(self.model, states, levels)
        else:
            units = state.fitted_units
            widths = {level: self.calibration.half_widths(level, units, h) for level in levels}
            ends = {level: (-width, width) for level, width in widths.items()}
        return each_end(ends, lambda end: by_series(end, state.units_per_series))

    def _forecast_rows(
        self, state: RecurrentState, point: np.ndarray, known: np.ndarray | None
    ) -> Panel:
        """Panel of forecasts to continue from; columns not known ahead keep their last value."""
        n_series, h, n_targets = point.shape
        last = np.stack([rows[-1, n_targets:] for rows in state.tail])
        exog = np.repeat(last[:, None], h, 1)
        if known is not None:
            exog[..., [i - self.model.n_targets for i in self.model.known]] = known[:, :h]
        return Panel(
            values=point.reshape(-1, n_targets),
            indptr=np.arange(n_series + 1) * h,
            ids=state.ids,
            times=np.repeat(state.last_times, h),
            exog=exog.reshape(n_series * h, -1),
            exog_names=self.data.exog_names,
            layout=self.data.layout,
        )


def fitted_series(ids: pd.Index, panel: Panel, seen: tuple[Any, np.ndarray] | None) -> np.ndarray:
    """Positions of the series of a panel among the series fitted to, (S,); -1 for new series.

    A series without an id is the series fitted to if it contains the last row `seen`, a time and
    targets of shape (C,), and new otherwise. Without `seen` it is the series fitted to.
    """
    series = ids.get_indexer(panel.ids)
    if seen is not None and panel.layout.id_col is None:
        shared = panel.values[panel.times == seen[0]]
        if not (len(shared) and np.array_equal(shared[0], seen[1], equal_nan=True)):
            series = np.full_like(series, -1)
    return series


@torch.no_grad()
def learned_errors(
    model: ForecastModel, states: Tensor, drawn: np.ndarray, calibration: Calibration
) -> np.ndarray:
    """Errors of learned distributions at the ranks of drawn errors, shape (U, n, h, C).

    Each drawn error is converted to its rank among the validation errors of its step, and the rank
    to a quantile of the distribution learned for the current state.
    """
    learned = model.quantiles(states, GRID.tolist()).numpy()
    errors = np.empty_like(drawn)
    for k, c in np.ndindex(drawn.shape[2:]):
        observed = calibration.errors[..., k, c]
        known = np.sort(observed[np.isfinite(observed)])
        below = np.searchsorted(known, drawn[..., k, c], "left")
        upto = np.searchsorted(known, drawn[..., k, c], "right")
        # Mid-ranks, so that equal errors have equal ranks.
        ranks = (below + upto) / (2 * len(known))
        for i in range(len(drawn)):
            errors[i, :, k, c] = np.interp(ranks[i], GRID, learned[i, k, c])
    return errors
