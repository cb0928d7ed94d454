"""Forecasters whose model is a recurrent network: fit, state and forecasts on panels."""

from __future__ import annotations

import copy
from abc import abstractmethod
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from tsrnn.contract import (
    Forecaster,
    check_levels,
    positive_integer,
    seed_of,
    warn_user,
    with_intervals,
)
from tsrnn.data import Panel, future_times, write_frame
from tsrnn.forecasters._arguments import checked_device
from tsrnn.forecasters._contributions import additive_parts, contribution_frame
from tsrnn.forecasters._distribution import HEADS
from tsrnn.forecasters._evaluation import ValidationErrors
from tsrnn.forecasters._filter import run_filter
from tsrnn.forecasters._fit import Training
from tsrnn.forecasters._intervals import calibrate, growth_beyond, learned_bounds
from tsrnn.forecasters._layers import LayerChoice
from tsrnn.forecasters._mapping import (
    by_series,
    continued_units,
    fitted_units,
    known_series,
    units_of,
)
from tsrnn.forecasters._memory import (
    Memory,
    Scaling,
    fit_scaling,
    joined_tails,
    standardise,
    tails,
)
from tsrnn.forecasters._model import ForecastModel, Parts, empty_model
from tsrnn.forecasters._rolling import origins_of, rolling_forecasts
from tsrnn.forecasters._sample_paths import drawn_errors, learned_errors
from tsrnn.forecasters._settings import Presets, Settings, resolve, settings_for
from tsrnn.forecasters._shared import SharedArguments
from tsrnn.forecasters._shares import SHARE_ROWS, SHARE_UNITS, block_shares
from tsrnn.forecasters._stored import arrays_of, header_of, revive, revived_memory
from tsrnn.forecasters._subset import subset
from tsrnn.forecasters._summary import Summary, summarise
from tsrnn.forecasters._units import Units
from tsrnn.layers import CellStack, Ensemble


class RecurrentForecaster(SharedArguments, Forecaster[Memory]):
    """Base of the forecasters with a recurrent network; not to be used by itself.

    A subclass says what its layers are (`_layer`) and which defaults differ (`presets`).
    """

    not_saved = ("callbacks",)
    presets: ClassVar[Presets] = {}

    @abstractmethod
    def _layer(self, filled: dict[str, Any]) -> LayerChoice:
        """The layers that the arguments, filled from the preset, describe."""

    def _fit_panel(self, panel: Panel) -> Memory:
        params = self.get_params(deep=False)
        filled = resolve(params, self.presets)
        settings = settings_for(filled, self._layer(filled), panel)
        device = checked_device(params["device"])
        generator = torch.Generator().manual_seed(seed_of(params["random_state"]))
        scaling = fit_scaling(panel, panel.lengths - settings.val_size)
        units = units_of(standardise(panel, scaling), panel.indptr, scaling, settings)
        split = units.indptr[1:] - settings.val_size
        known = [panel.exog_names.index(name) for name in self.known_ahead_]
        sizes = len(panel.target_names), len(panel.exog_names), known
        one, callbacks = replace(settings, n_estimators=1), params["callbacks"]
        training = Training(
            units, split, settings, lambda: empty_model(one, *sizes), generator, device,
            () if callbacks is None else callbacks, params["verbose"],
        )  # fmt: skip
        found, values = training.estimate(), units.to(torch.float32)
        model = ForecastModel.merged(found.members, lambda: empty_model(settings, *sizes)).eval()
        errors = ValidationErrors(model, values, split, settings.season)
        state = errors.state
        if settings.refit:
            again = training.estimate_on_all(found)
            model = ForecastModel.merged(again, lambda: empty_model(settings, *sizes)).eval()
            state = run_filter(model, values, values.indptr[1:])
        self._set_model(settings, model)
        self.history_, self.best_epoch_ = found.history, max(found.best_epochs)
        self.linear_path_ = found.linear_path
        self.validation_ = errors.table()
        self.calibration_ = calibrate(errors.scaled, settings.intervals)
        self.sample_ = _sample_inputs(units)
        return Memory(
            panel.ids, panel.last_times, panel.lengths, scaling,
            tails(panel, settings.input_size), state,
        )  # fmt: skip

    def _set_model(self, settings: Settings, model: ForecastModel) -> None:
        self.settings_, self.model_ = settings, model
        self.network_, self.horizon_ = model.network, settings.horizon

    def _memory_of(self, panel: Panel) -> Memory:
        scaling = self._scaling_of(panel)
        units = units_of(standardise(panel, scaling), panel.indptr, scaling, self.settings_)
        state = run_filter(self.model_, units.to(torch.float32), units.indptr[1:])
        return Memory(
            panel.ids, panel.last_times, panel.lengths, scaling,
            tails(panel, self.settings_.input_size), state,
        )  # fmt: skip

    def _scaling_of(self, panel: Panel) -> Scaling:
        """Scaling as fitted for known series, by their own rows for new ones."""
        known = self.memory_.scaling
        fresh = fit_scaling(panel, panel.lengths, known.exog)
        which = known_series(self.memory_, panel)
        for new, old in (
            (fresh.target.location, known.target.location),
            (fresh.target.scale, known.target.scale),
            (fresh.constant, known.constant),
        ):
            new[which >= 0] = old[which[which >= 0]]
        return fresh

    def _advance(self, memory: Memory, panel: Panel) -> Memory:
        units, begin = continued_units(memory, panel, self.settings_)
        state = run_filter(
            self.model_, units.to(torch.float32), units.indptr[1:], memory.state, begin=begin
        )
        tail = [rows[-self.settings_.input_size :].copy() for rows in joined_tails(memory, panel)]
        n_rows = memory.n_rows + panel.lengths
        return Memory(memory.ids, panel.last_times, n_rows, memory.scaling, tail, state)

    def _parts(
        self, model: ForecastModel, memory: Memory, future: np.ndarray | None
    ) -> tuple[Parts, Tensor, Tensor]:
        """Parts of the standardised forecasts of all units, their spread and states.

        `model` is a copy in float64, so that the parts sum to the forecast to rounding.
        """
        units, _ = continued_units(memory, None, self.settings_)
        rows = units.indptr[1:] - 1
        states = model.network.outputs(memory.state[-1].double())
        ahead = None
        if future is not None:
            ahead = self._standard_future(memory, future)
        with torch.no_grad():
            parts = model.parts(units, rows, units.starts, states, ahead)
        return parts, units.spread[rows], states

    def _double_model(self) -> ForecastModel:
        return copy.deepcopy(self.model_).double()

    def _standard_future(self, memory: Memory, future: np.ndarray) -> Tensor:
        """Known futures (S, h, n) standardised, cut or filled to the horizon, for every unit."""
        exog = memory.scaling.exog
        columns = [i - self.model_.n_targets for i in self.model_.known]
        values = (future - exog.location[0, columns]) / exog.scale[0, columns]
        steps = np.minimum(np.arange(self.horizon_), future.shape[1] - 1)
        ahead = torch.as_tensor(values[:, steps])
        return ahead.repeat_interleave(memory.units_per_series, 0)

    def _forecast(
        self, memory: Memory, h: int, levels: list[float], future: np.ndarray | None
    ) -> dict[str, np.ndarray]:
        widths = self._bounds(memory, h, levels)
        blocks, model = [], self._double_model()
        for done in range(0, h, self.horizon_):
            ahead = None if future is None else future[:, done : done + self.horizon_]
            parts, _, _ = self._parts(model, memory, ahead)
            point = self._in_data_units(parts.total().numpy(), memory)
            blocks.append(point[:, : h - done])
            if done + self.horizon_ < h:
                memory = self._advance(memory, self._as_rows(memory, point, ahead))
        return with_intervals(np.concatenate(blocks, 1), widths)

    def _bounds(
        self, memory: Memory, h: int, levels: list[float]
    ) -> dict[float, tuple[np.ndarray, np.ndarray]]:
        """Ends of the intervals (S, h, C) less the point, by level, in data units."""
        if not levels:
            return {}
        units, _ = continued_units(memory, None, self.settings_)
        last = units.spread[units.indptr[1:] - 1].numpy()[:, None]
        spread = by_series(last, len(memory.ids)) * memory.scaling.target.scale[:, None]
        self._warn_without_spread(memory, spread)
        scale = growth_beyond(self.horizon_, h)[:, None] * spread
        steps = np.minimum(np.arange(h), self.horizon_ - 1)
        states = self.model_.network.outputs(memory.state[-1])
        return {
            level: (lower[:, steps] * scale, upper[:, steps] * scale)
            for level, (lower, upper) in self._scaled_bounds(memory, levels, states).items()
        }

    def _warn_without_spread(self, memory: Memory, spread: np.ndarray) -> None:
        """Say which series, not seen by fit, do not vary and so get intervals without width."""
        new = self.memory_.ids.get_indexer(memory.ids) < 0
        flat = memory.ids[new & (spread == 0).any((1, 2))]
        if len(flat):
            warn_user(
                f"{len(flat)} new series do not vary in the rows given, such as {flat[0]!r}: "
                "their intervals have no width. Give more rows"
            )

    def _scaled_bounds(
        self, memory: Memory, levels: list[float], states: Tensor
    ) -> dict[float, tuple[np.ndarray, np.ndarray]]:
        """Ends (S, horizon, C) by level, in units of the local spread."""
        if self.settings_.intervals in HEADS:
            ends = learned_bounds(self.model_, states, levels)
        else:
            which = fitted_units(memory, self.memory_)
            widths = {level: self.calibration_.half_widths(level, which) for level in levels}
            ends = {level: (-width, width) for level, width in widths.items()}
        n = len(memory.ids)
        return {
            level: (by_series(low, n), by_series(high, n)) for level, (low, high) in ends.items()
        }

    def _in_data_units(self, values: np.ndarray, memory: Memory) -> np.ndarray:
        return memory.scaling.target.inverse(by_series(values, len(memory.ids)))

    def _as_rows(self, memory: Memory, point: np.ndarray, known: np.ndarray | None) -> Panel:
        """Forecasts as rows to go on from; what is not known ahead stays as it was last."""
        layout, exog_names = self._panel_shape
        n_series, h, n_targets = point.shape
        last = np.stack([part[-1, n_targets:] for part in memory.tail])
        exog = np.repeat(last[:, None], h, 1)
        if known is not None:
            columns = [i - self.model_.n_targets for i in self.model_.known]
            exog[..., columns] = known[:, :h]
        return Panel(
            values=point.reshape(-1, n_targets),
            indptr=np.arange(n_series + 1) * h,
            ids=memory.ids,
            times=np.repeat(memory.last_times, h),
            exog=exog.reshape(n_series * h, -1),
            exog_names=exog_names,
            layout=layout,
        )

    def predict_rolling(
        self, df: Any, h: int | None = None, step_size: int = 1, level: Any = None
    ) -> Any:
        """Forecast from many origins in one pass, without fitting again.

        The rows of `df` follow the data. The first origin is the last row known, then
        every `step_size`-th row of `df`, as long as h rows of `df` follow: the rolling
        evaluation of a model that is estimated once. The forecaster itself is left as
        it is. Columns of `known_ahead` are taken from `df`.

        Parameters
        ----------
        df : frame
            Rows that follow the last ones known, of some or all series.
        h : int, optional
            Number of steps, at most `horizon_`, which is the default.
        step_size : int, default 1
            Rows from one origin to the next.
        level : float or list of float, optional
            Coverage of prediction intervals in percent.

        Returns
        -------
        frame
            As `predict` gives it, with a column ``cutoff``: the last time known.

        Raises
        ------
        ValueError
            If h exceeds `horizon_` or a series has fewer than h new rows.
        """
        check_is_fitted(self, "memory_")
        h = self._within_horizon("predict_rolling", h)
        step = positive_integer("step_size", step_size)
        levels = check_levels(level)
        panel = self._read(df)
        memory = self.memory_.select(self._check_follows(panel))
        origins = origins_of(panel, h, step)
        units, begin = continued_units(memory, panel, self.settings_)
        found = rolling_forecasts(
            self.model_, memory, units.to(torch.float32), begin, origins, h,
            levels if self.settings_.intervals in HEADS else [],
        )  # fmt: skip
        scaling = memory.scaling.target
        spreads = found.spreads * scaling.scale[origins.series][:, None]
        ends = found.bounds
        if levels and not ends:
            states = self.model_.network.outputs(memory.state[-1])
            ends = {
                level: (lower[origins.series, :h], upper[origins.series, :h])
                for level, (lower, upper) in self._scaled_bounds(memory, levels, states).items()
            }
        widths = {
            level: (lower * spreads, upper * spreads) for level, (lower, upper) in ends.items()
        }
        return write_frame(
            self._panel_shape[0],
            memory.ids[origins.series],
            origins.times(panel, h),
            with_intervals(scaling.inverse(found.points, series=origins.series), widths),
            model=self.column_name,
            cutoffs=origins.cutoffs(panel, memory.last_times),
        )

    def _within_horizon(self, what: str, h: int | None) -> int:
        h = self.horizon_ if h is None else positive_integer("h", h)
        if h > self.horizon_:
            raise ValueError(
                f"{what} needs h of at most the fitted horizon, {self.horizon_}; got {h}. "
                "Fit with a larger horizon"
            )
        return h

    def sample_paths(
        self, n: int = 100, h: int | None = None, X: Any = None, X_future: Any = None
    ) -> pd.DataFrame:
        """Draw whole trajectories from the distribution of the forecasts.

        A path is the forecast plus the errors of all steps that one origin of the validation part
        had, scaled by the local spread: errors of different steps go together as they did there.
        Where a distribution is learned, errors are its quantiles at the ranks of those. Targets
        that are forecast independently are drawn independently. Paths have the guarantee of the
        intervals, step by step.

        Parameters
        ----------
        n : int, default 100
            Paths of every series.
        h : int, optional
            Number of steps, at most `horizon_`, which is the default.
        X, X_future : frame, optional
            As in `predict`.

        Returns
        -------
        DataFrame
            As `predict` gives it, with a column ``path`` from 1 to n, path by path. The draws
            are those of `random_state`.

        Raises
        ------
        ValueError
            If h exceeds `horizon_`, or no origin of the validation part has errors of all steps.
        """
        check_is_fitted(self, "memory_")
        n, h = positive_integer("n", n), self._within_horizon("sample_paths", h)
        memory = self.memory_ if X is None else self._memory_of(self._read(X))
        future = self._read_future(X_future, memory, h)
        rng = np.random.default_rng(seed_of(self.random_state))
        parts, spread, states = self._parts(self._double_model(), memory, future)
        errors = drawn_errors(self.calibration_, fitted_units(memory, self.memory_), n, rng)
        if self.settings_.intervals in HEADS:
            errors = learned_errors(self.model_, states.float(), errors, self.calibration_)
        paths = parts.total()[:, None].numpy() + spread.numpy()[:, None, None] * errors
        layout = replace(self._panel_shape[0], backend="pandas")
        times = future_times((memory.last_times, self.freq_), h, tz=layout.tz)
        frames = []
        for number in range(n):
            values = self._in_data_units(paths[:, number], memory)[:, :h]
            frame = write_frame(layout, memory.ids, times, {"": values}, model=self.column_name)
            frame = frame.to_frame() if isinstance(frame, pd.Series) else frame
            frame.insert(len(frame.columns) - values.shape[2], "path", number + 1)
            frames.append(frame)
        return pd.concat(frames, ignore_index=layout.kind == "long")

    def contributions(self, X: Any = None, X_future: Any = None) -> pd.DataFrame:
        r"""Additive parts of the forecasts of the next `horizon_` steps.

        The local level, the linear path, columns known ahead, each block of the last
        layer (the equation after (7) of Cai et al., 2026) and the constant, in the
        units of the data. They sum to `predict` to rounding.

        Parameters
        ----------
        X : frame, optional
            Data to forecast after, as in `predict`.
        X_future : frame, optional
            As in `predict`.

        Returns
        -------
        DataFrame
            A row a series, target and step (index levels `unique_id`, `target`,
            `step`; only `step` for one target of one series), a column a part.

        Raises
        ------
        ValueError
            If the aggregation is not linear.
        """
        check_is_fitted(self, "memory_")
        memory = self.memory_ if X is None else self._memory_of(self._read(X))
        future = self._read_future(X_future, memory, self.horizon_)
        model = self._double_model()
        named = additive_parts(model, *self._parts(model, memory, future))
        return contribution_frame(named, memory, self._panel_shape[0].target_names, self.id_col)

    def summary(self) -> Summary:
        """What was fitted, how well, and its recurrence features; print the result."""
        check_is_fitted(self, "memory_")
        return summarise(self)

    def _header(self) -> dict[str, Any]:
        return header_of(self)

    def _arrays(self) -> dict[str, np.ndarray]:
        return arrays_of(self)

    def _revive(
        self,
        header: dict[str, Any],
        arrays: dict[str, np.ndarray],
        ids: pd.Index,
        last_times: np.ndarray,
    ) -> Memory:
        revive(self, header, arrays)
        return revived_memory(arrays, ids, last_times)

    def block_shares_(self) -> list[np.ndarray] | None:
        """Share of the network's output variance by block, an array a layer.

        Judged on the last rows of the data fitted to; see `tsrnn.recurrence_features`. None
        where the layers have no blocks.
        """
        check_is_fitted(self, "memory_")
        network = self.network_
        members = network.networks if isinstance(network, Ensemble) else [network]
        if not all(isinstance(member.rnn, CellStack) for member in members):
            return None
        return [share.numpy() for member in members for share in block_shares(member, self.sample_)]


def _sample_inputs(units: Units) -> Tensor:
    """Network inputs of the last rows of some units, for judging blocks: (B, T, C + E)."""
    length = min(int(units.lengths.min()), SHARE_ROWS)
    chosen = subset(len(units), SHARE_UNITS)
    rows = units.indptr[1:][chosen, None] + torch.arange(-length, 0)
    return units.inputs(rows).to(torch.float32)
