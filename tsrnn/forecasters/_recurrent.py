"""Forecasters whose model is a recurrent network: fit, state and forecasts on panels."""

from __future__ import annotations

import copy
import os
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from tsrnn.data import Panel, write_frame
from tsrnn.forecasters._base import Forecaster, with_intervals
from tsrnn.forecasters._contributions import additive_parts
from tsrnn.forecasters._evaluation import ValidationErrors
from tsrnn.forecasters._filter import run_filter
from tsrnn.forecasters._fit import estimate
from tsrnn.forecasters._intervals import calibrate, check_levels, extend
from tsrnn.forecasters._memory import Memory, Scaling, fit_scaling, standardise, tails
from tsrnn.forecasters._model import ForecastModel, Parts, empty_model
from tsrnn.forecasters._settings import Settings, positive_integer, settings_for
from tsrnn.forecasters._shares import SHARE_ROWS, SHARE_UNITS, block_shares
from tsrnn.forecasters._storage import save
from tsrnn.forecasters._summary import Summary, summarise
from tsrnn.forecasters._units import Units, make_units


class RecurrentForecaster(Forecaster):
    """Base of the forecasters with a recurrent network; not to be used by itself."""

    def _fit_panel(self, panel: Panel) -> Memory:
        params = self.get_params(deep=False)
        settings = settings_for(params, panel)
        device = checked_device(params["device"])
        generator = torch.Generator().manual_seed(_seed(params["random_state"]))
        scaling = fit_scaling(panel, panel.lengths - settings.val_size)
        units = _units_of(standardise(panel, scaling), panel.indptr, scaling, settings)
        split = units.indptr[1:] - settings.val_size
        known = [panel.exog_names.index(name) for name in self.known_ahead_]
        model = empty_model(settings, len(panel.target_names), len(panel.exog_names), known)
        result = estimate(
            model, units, split, settings, generator=generator, device=device,
            callbacks=params["callbacks"] or (), verbose=params["verbose"],
        )  # fmt: skip
        model.eval()
        self._set_model(settings, model)
        self.history_, self.best_epoch_ = result.history, result.best_epoch
        self.linear_path_ = result.linear_path
        errors = ValidationErrors(model, units.to(torch.float32), split, settings.season)
        self.validation_ = errors.table()
        self.calibration_ = calibrate(errors.scaled, settings.intervals)
        self.sample_ = _sample_inputs(units)
        return Memory(
            panel.ids, panel.last_times, panel.lengths, scaling,
            tails(panel, settings.input_size), errors.state,
        )  # fmt: skip

    def _set_model(self, settings: Settings, model: ForecastModel) -> None:
        self.settings_, self.model_ = settings, model
        self.network_, self.horizon_ = model.network, settings.horizon

    def _memory_of(self, panel: Panel) -> Memory:
        scaling = self._scaling_of(panel)
        units = _units_of(standardise(panel, scaling), panel.indptr, scaling, self.settings_)
        state, _ = run_filter(self.model_, units.to(torch.float32), units.indptr[1:])
        return Memory(
            panel.ids, panel.last_times, panel.lengths, scaling,
            tails(panel, self.settings_.input_size), state,
        )  # fmt: skip

    def _scaling_of(self, panel: Panel) -> Scaling:
        """Scaling as fitted for known series, by their own rows for new ones."""
        known = self.memory_.scaling
        fresh = fit_scaling(panel, panel.lengths, known.exog)
        which = self.memory_.ids.get_indexer(panel.ids)
        for new, old in (
            (fresh.target.location, known.target.location),
            (fresh.target.scale, known.target.scale),
            (fresh.constant, known.constant),
        ):
            new[which >= 0] = old[which[which >= 0]]
        return fresh

    def _advance(self, memory: Memory, panel: Panel) -> Memory:
        units, begin = self._continued(memory, panel)
        state, _ = run_filter(
            self.model_, units.to(torch.float32), units.indptr[1:], memory.state, begin=begin
        )
        rows = np.hstack([panel.values, panel.exog])
        joined = [
            np.vstack([old, rows[lo:hi]])[-self.settings_.input_size :]
            for old, lo, hi in zip(memory.tail, panel.indptr[:-1], panel.indptr[1:], strict=True)
        ]
        return Memory(
            memory.ids, panel.last_times, memory.n_rows + panel.lengths, memory.scaling,
            joined, state,
        )  # fmt: skip

    def _continued(self, memory: Memory, panel: Panel | None) -> tuple[Units, Tensor]:
        """Units of remembered and new rows, and the first new row of each."""
        tail = memory.tail
        if panel is not None:
            rows = np.hstack([panel.values, panel.exog])
            tail = [
                np.vstack([old, rows[lo:hi]])
                for old, lo, hi in zip(tail, panel.indptr[:-1], panel.indptr[1:], strict=True)
            ]
        indptr = np.concatenate([[0], np.cumsum([len(part) for part in tail])])
        values = memory.scaling.transform(np.vstack(tail), indptr)
        units = _units_of(values, indptr, memory.scaling, self.settings_)
        past = torch.as_tensor([len(part) for part in memory.tail])
        return units, units.starts + past.repeat_interleave(len(units) // len(memory.ids))

    def _parts(self, memory: Memory, future: np.ndarray | None) -> tuple[Parts, Tensor, Tensor]:
        """Parts of the standardised forecasts of all units in float64, their spread and states."""
        units, _ = self._continued(memory, None)
        model = self._double_model()
        rows = units.indptr[1:] - 1
        states = memory.state[-1].double()
        ahead = None
        if future is not None:
            ahead = self._standard_future(memory, future, len(units))
        with torch.no_grad():
            parts = model.parts(units, rows, units.starts, states, ahead)
        return parts, units.spread[rows], states

    def _double_model(self) -> ForecastModel:
        return copy.deepcopy(self.model_).double()

    def _standard_future(self, memory: Memory, future: np.ndarray, n_units: int) -> Tensor:
        """Known futures (S, h, n) standardised, cut or filled to the horizon, for every unit."""
        exog = memory.scaling.exog
        columns = [i - self.model_.n_targets for i in self.model_.known]
        values = (future - exog.location[0, columns]) / exog.scale[0, columns]
        steps = np.minimum(np.arange(self.horizon_), future.shape[1] - 1)
        ahead = torch.as_tensor(values[:, steps])
        return ahead.repeat_interleave(n_units // len(memory.ids), 0)

    def _forecast(
        self, memory: Memory, h: int, levels: list[float], future: np.ndarray | None
    ) -> dict[str, np.ndarray]:
        widths = self._half_widths(memory, h, levels)
        blocks = []
        for done in range(0, h, self.horizon_):
            ahead = None if future is None else future[:, done : done + self.horizon_]
            parts, _, _ = self._parts(memory, ahead)
            point = self._in_data_units(parts.total().numpy(), memory)
            blocks.append(point[:, : h - done])
            if done + self.horizon_ < h:
                memory = self._advance(memory, self._as_rows(memory, point, ahead))
        return with_intervals(np.concatenate(blocks, 1), widths)

    def _half_widths(self, memory: Memory, h: int, levels: list[float]) -> dict[float, np.ndarray]:
        if not levels:
            return {}
        units, _ = self._continued(memory, None)
        spread = units.spread[units.indptr[1:] - 1].numpy()[:, None, :]
        which = self._unit_numbers(memory)
        scale = memory.scaling.target.scale[:, None, :]
        halves = {}
        for level in levels:
            widths = extend(self.calibration_.half_widths(level, which), h) * spread
            halves[level] = self._by_series(widths, len(memory.ids)) * scale
        return halves

    def _unit_numbers(self, memory: Memory) -> np.ndarray:
        """Numbers of the memory's units among those fitted to; -1 for new series."""
        series = self.memory_.ids.get_indexer(memory.ids)
        per_series = memory.state.shape[1] // len(memory.ids)
        numbers = series[:, None] * per_series + np.arange(per_series)
        return np.where(series[:, None] < 0, -1, numbers).ravel()

    def _by_series(self, values: np.ndarray, n_series: int) -> np.ndarray:
        """From units (U, h, C') to series (S, h, C)."""
        if self.settings_.joint:
            return values
        return np.moveaxis(values[..., 0].reshape(n_series, -1, values.shape[1]), 1, 2)

    def _in_data_units(self, values: np.ndarray, memory: Memory) -> np.ndarray:
        return memory.scaling.target.inverse(self._by_series(values, len(memory.ids)))

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
        h = self.horizon_ if h is None else positive_integer("h", h)
        if h > self.horizon_:
            raise ValueError(
                f"predict_rolling needs h of at most the fitted horizon, {self.horizon_}; got {h}. "
                "Fit with a larger horizon"
            )
        step = positive_integer("step_size", step_size)
        levels = check_levels(level)
        panel = self._read(df)
        memory = self.memory_.select(self._check_follows(panel))
        if panel.lengths.min() < h:
            short = panel.ids[int(np.argmin(panel.lengths))]
            raise ValueError(
                f"every series needs at least h={h} new rows; series {short!r} has "
                f"{panel.lengths.min()}"
            )
        counts = (panel.lengths - h) // step + 1
        points, spreads = self._rolling(memory, panel, h, step, counts)
        owner = np.repeat(np.arange(len(memory.ids)), counts)
        scale = memory.scaling.target.scale[owner][:, None]
        widths = {}
        for wanted in levels:
            half = self.calibration_.half_widths(wanted, self._unit_numbers(memory))[:, :h]
            widths[wanted] = self._by_series(half, len(memory.ids))[owner] * spreads * scale
        point = memory.scaling.target.inverse(points, series=owner)
        ordinal = np.concatenate([np.arange(n) for n in counts])
        cutoffs = np.concatenate([
            np.concatenate([[last], panel.times[lo:hi]])[np.arange(n) * step]
            for last, lo, hi, n in zip(
                memory.last_times, panel.indptr[:-1], panel.indptr[1:], counts, strict=True
            )
        ])  # fmt: skip
        rows = panel.indptr[:-1][owner] + ordinal * step
        times = panel.times[rows[:, None] + np.arange(h)]
        return write_frame(
            self._panel_shape[0], memory.ids[owner], times, with_intervals(point, widths),
            model=self.column_name, cutoffs=cutoffs,
        )  # fmt: skip

    def _rolling(
        self, memory: Memory, panel: Panel, h: int, step: int, counts: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Standardised forecasts (n, h, C) of all origins and their spread (n, 1, C)."""
        units, begin = self._continued(memory, panel)
        units = units.to(torch.float32)
        model, n_units = self.model_, len(units)
        per_series = n_units // len(memory.ids)
        n_origins = torch.as_tensor(np.repeat(counts, per_series))
        place = n_origins.cumsum(0) - n_origins
        total = int(n_origins.sum())
        points = torch.empty(total, h, model.n_targets, dtype=torch.float64)
        spreads = torch.empty(total, 1, model.n_targets, dtype=torch.float64)

        def visit(rows: Tensor, unit: Tensor, states: Tensor) -> None:
            origin = rows - begin[unit] + 1
            wanted = (origin % step == 0) & (origin // step < n_origins[unit])
            rows, unit, states = rows[wanted], unit[wanted], states[wanted]
            forecast = model.parts(units, rows, units.starts[unit], states).total()
            at = place[unit] + origin[wanted] // step
            points[at] = forecast[:, :h].double()
            spreads[at] = units.spread[rows][:, None].double()

        with torch.no_grad():
            visit(begin - 1, torch.arange(n_units), memory.state[-1])
            run_filter(model, units, begin, memory.state, begin=begin, visit=visit)
        if self.settings_.joint or per_series == 1:
            return points.numpy(), spreads.numpy()
        # Units are series by series, target by target: gather the targets of an origin.
        order = np.concatenate([
            (first + np.arange(n)[:, None] + np.arange(per_series) * n)
            for first, n in zip(place[::per_series].tolist(), counts, strict=True)
        ])  # fmt: skip
        return (
            np.moveaxis(points[..., 0].numpy()[order], 1, 2),
            np.moveaxis(spreads[..., 0].numpy()[order], 1, 2),
        )

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
        parts, spread, states = self._parts(memory, future)
        with torch.no_grad():
            named = additive_parts(self._double_model(), parts, spread, states)
        target = memory.scaling.target
        columns = {}
        for name, part in named.items():
            values = self._by_series(part.numpy(), len(memory.ids)) * target.scale[:, None]
            if name == "level":
                values = values + target.location[:, None]
            columns[name] = np.moveaxis(values, 2, 1).ravel()
        names = self._panel_shape[0].target_names
        index = pd.MultiIndex.from_product(
            [memory.ids, names, range(1, self.horizon_ + 1)],
            names=[self.id_col, "target", "step"],
        )
        if len(memory.ids) * len(names) == 1:
            index = index.get_level_values("step")
        return pd.DataFrame(columns, index=index)

    def summary(self) -> Summary:
        """What was fitted, how well, and its recurrence features; print the result."""
        check_is_fitted(self, "memory_")
        return summarise(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted forecaster to a file that `tsrnn.load` reads.

        The file holds parameters, state and the last rows of every series, as
        safetensors with a JSON header. It appears in one step: a file of that name is
        whole or untouched. `callbacks` are not kept.

        Raises
        ------
        TypeError
            If an argument or a series id is no JSON value.
        """
        check_is_fitted(self, "memory_")
        save(self, path)

    def block_shares_(self) -> list[np.ndarray]:
        """Share of the network's output variance by block, an array a layer.

        Judged on the last rows of the data fitted to; see `tsrnn.recurrence_features`.
        """
        check_is_fitted(self, "memory_")
        return [share.numpy() for share in block_shares(self.network_, self.sample_)]


def checked_device(device: Any) -> str:
    """Name of a device that is there.

    Raises
    ------
    ValueError
        If torch does not know it or it is not on this machine.
    """
    try:
        kind = torch.device(device).type
    except (RuntimeError, TypeError) as error:
        raise ValueError(
            f"device must be a torch device such as 'cpu' or 'cuda'; got {device!r}"
        ) from error
    if kind == "cuda" and not torch.cuda.is_available():
        raise ValueError("device='cuda' needs a CUDA device and torch built for it; use 'cpu'")
    if kind not in ("cpu", "cuda", "mps"):
        raise ValueError(f"device must be 'cpu', 'cuda' or 'mps'; got {device!r}")
    return str(device)


def _units_of(
    values: np.ndarray, indptr: np.ndarray, scaling: Scaling, settings: Settings
) -> Units:
    """Units of forecasting from standardised rows (N, C + E): series, or their single targets."""
    n_targets = scaling.constant.shape[1]
    constant = scaling.constant
    if not settings.joint and n_targets > 1:
        lengths = np.diff(indptr)
        unit_lengths = np.repeat(lengths, n_targets)
        unit_starts = np.repeat(indptr[:-1], n_targets)
        indptr = np.concatenate([[0], np.cumsum(unit_lengths)])
        rows = np.arange(indptr[-1]) + np.repeat(unit_starts - indptr[:-1], unit_lengths)
        target = np.repeat(np.tile(np.arange(n_targets), len(lengths)), unit_lengths)
        values = np.column_stack([values[rows, target], values[rows, n_targets:]])
        constant = constant.reshape(-1, 1)
    return make_units(
        values,
        indptr,
        window=settings.input_size,
        n_targets=n_targets if settings.joint else 1,
        constant=constant,
        local_level=settings.local_level,
    )


def _sample_inputs(units: Units) -> Tensor:
    """Network inputs of the last rows of some units, for judging blocks: (B, T, C + E)."""
    length = min(int(units.lengths.min()), SHARE_ROWS)
    every = max(1, -(-len(units) // SHARE_UNITS))
    rows = units.indptr[1:][::every, None] + torch.arange(-length, 0)
    return units.inputs(rows).to(torch.float32)


def _seed(random_state: Any) -> int:
    if random_state is None:
        return int(np.random.default_rng().integers(2**31))
    if isinstance(random_state, np.random.Generator | np.random.RandomState):
        draw = getattr(random_state, "integers", None) or random_state.randint
        return int(draw(2**31 - 1))
    if isinstance(random_state, bool) or not isinstance(random_state, int | np.integer):
        raise TypeError(
            f"random_state must be an integer, a numpy random generator or None; got {random_state!r}"
        )
    return int(random_state)
