"""Forecasters whose model is a recurrent network: fit, state and forecasts on panels."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from tsrnn.data import Panel
from tsrnn.forecasters._base import Forecaster, with_intervals
from tsrnn.forecasters._evaluation import ValidationErrors
from tsrnn.forecasters._filter import run_filter
from tsrnn.forecasters._fit import estimate
from tsrnn.forecasters._intervals import calibrate, extend
from tsrnn.forecasters._memory import Memory, Scaling, fit_scaling, standardise, tails
from tsrnn.forecasters._model import ForecastModel, Parts
from tsrnn.forecasters._settings import Settings, settings_for
from tsrnn.forecasters._shares import SHARE_ROWS, SHARE_UNITS, block_shares
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
        model = copy.deepcopy(self.model_).double()
        rows = units.indptr[1:] - 1
        states = memory.state[-1].double()
        ahead = None
        if future is not None:
            ahead = self._standard_future(memory, future, len(units))
        with torch.no_grad():
            parts = model.parts(units, rows, units.starts, states, ahead)
        return parts, units.spread[rows], states

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

    def block_shares_(self) -> list[np.ndarray]:
        """Share of the network's output variance by block, an array a layer.

        Judged on the last rows of the data fitted to; see `tsrnn.recurrence_features`.
        """
        check_is_fitted(self, "memory_")
        return [share.numpy() for share in block_shares(self.network_, self.sample_)]


def empty_model(
    settings: Settings, n_targets: int, n_exog: int, known: list[int]
) -> ForecastModel:
    """A model without values, made without drawing from torch's global generator."""
    with torch.device("meta"):
        model = ForecastModel(settings, n_targets if settings.joint else 1, n_exog, known)
    return model.to_empty(device="cpu")


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
        raise ValueError(f"device must be a torch device such as 'cpu' or 'cuda'; got {device!r}") from error
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
