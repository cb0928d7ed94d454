"""Training of a forecasting model: linear path in closed form, then everything by gradient."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor

from tsrnn.contract import check_fits
from tsrnn.forecasters._distribution import Distribution
from tsrnn.forecasters._linear_path import fit_linear_path
from tsrnn.forecasters._model import ForecastModel
from tsrnn.forecasters._settings import Settings
from tsrnn.forecasters._state import run_filter
from tsrnn.forecasters._units import Units, Windows, full_origins, regression_origins, some_units
from tsrnn.layers import shapes_only
from tsrnn.training import Epoch, Processes, parameter_groups

# Rows of a training segment behind those that warm it up, all of which forecast: more of them share
# the cost of the warm-up, fewer make more segments, which are drawn in any order.
FORECASTS_OF_A_SEGMENT = 192
LEAST_WARM_UP = 8  # a state that starts from zero sees a few rows, however short the window is
LEAST_STEPS = 20  # optimiser steps an epoch, so that a short series is not an epoch of one
MOST_STEPS = 200  # so that on many rows as well epochs are validated in good time
VALIDATION_POSITIONS = 100_000  # forecasts are enough to tell epochs apart
ROWS_OF_START = 20_000  # are enough for the spread of errors
WARM_WINDOWS = 4  # windows of warm-up before the validation part while training
WIDTH_COUNTED = 64  # layer width, over the block size, of networks whose parameters are counted


@dataclass
class Estimate:
    """Networks trained one by one, and the course of their training.

    Attributes
    ----------
    start : ForecastModel
        Model before training: local level and linear path, the same for all networks.
    members : list of ForecastModel
    history : list of dict
    best_epochs : list of int
        By member; 0 is the start.
    """

    start: ForecastModel
    members: list[ForecastModel] = field(default_factory=list)
    history: list[dict[str, float]] = field(default_factory=list)
    best_epochs: list[int] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Training:
    """Data of a fit and the way to train on them.

    Attributes
    ----------
    units : Units
        In float64.
    split : integer Tensor of shape (U,)
        First row of the validation part of each unit.
    settings : Settings
    make : callable
        Returns an empty model of one network.
    linear_path : dict
        Form of the linear path, if there is one.
    generator : torch.Generator
    device : str
    processes : Processes
    callbacks : sequence of lightning callbacks
    verbose : int
    """

    units: Units
    split: Tensor
    settings: Settings
    make: Callable[[], ForecastModel]
    linear_path: dict[str, Any]
    generator: torch.Generator
    device: str = "cpu"
    processes: Processes = field(default_factory=Processes)
    callbacks: Sequence[Any] = ()
    verbose: int = 0

    def estimate(self) -> Estimate:
        """Train on the rows of each unit before `split`, validated on those after."""
        from tsrnn.training import train  # Lightning is slow to load and only trains

        settings, units = self.settings, self.units.to(torch.float32)
        for number in range(1, settings.n_estimators + 1):
            model = self._started(self.split)
            if number == 1:
                estimate = Estimate(copy.deepcopy(model))
            history, best_epoch = train(
                model,
                self._segments(self.split),
                validate=_Validation(model, units, self.split, settings),
                max_epochs=settings.max_epochs,
                patience=settings.patience,
                **self._options(model, units),
            )
            numbered = {"network": number} if settings.n_estimators > 1 else {}
            estimate.members.append(model)
            estimate.history += [numbered | epoch for epoch in history]
            estimate.best_epochs.append(best_epoch)
        return estimate

    def estimate_on_all(self, before: Estimate) -> list[ForecastModel]:
        """Train anew on all rows, as many epochs at the same rates as were best before."""
        from tsrnn.training import train_for

        members: list[ForecastModel] = []
        units = self.units.to(torch.float32)
        for number, best_epoch in enumerate(before.best_epochs, start=1):
            model = self._started(self.units.indptr[1:])
            epochs = [e for e in before.history if e.get("network", 1) == number][:best_epoch]
            train_for(
                model,
                self._segments(self.units.indptr[1:]),
                rates=[epoch["learning_rate"] for epoch in epochs],
                **self._options(model, units),
            )
            members.append(model)
        return members

    def _options(self, model: ForecastModel, units: Units) -> dict[str, Any]:
        """Arguments that training with and without validation share."""
        settings = self.settings
        # The linear path starts at its optimum and moves slowly, as recurrent matrices do.
        slow = [*model.network.recurrent_parameters(), *model.linear_parameters()]
        return {
            "loss": _TrainingLoss(model, units, settings.loss),
            "groups": parameter_groups(model, slow, settings.learning_rate, settings.weight_decay),
            "device": self.device,
            "processes": self.processes,
            "callbacks": self.callbacks,
            "verbose": self.verbose,
        }

    def _started(self, ends: Tensor) -> ForecastModel:
        """Model before the optimiser's first step, from the rows of each unit before `ends`."""
        model, settings = self.make(), self.settings
        model.network.prepare(verbose=bool(self.verbose))
        # A network of zeros leaves the local level and the linear path as the start.
        zero = settings.local_level or settings.linear_path
        model.reset_parameters(self.generator, zero_output=zero)
        if model.linear is not None:
            origins = regression_origins(self.units, ends, model.horizon)
            fit_linear_path(model, self.units, origins, settings.season, self.linear_path)
        self._start_distribution(model, ends)
        return model

    @torch.no_grad()
    def _start_distribution(self, model: ForecastModel, ends: Tensor) -> None:
        """Begin with errors as large as those of the local level and the linear path.

        From whole windows, or the longer half of those of a unit: the spread of a few rows is
        too small.
        """
        units, h = self.units, model.horizon
        for head in cast("Iterable[Distribution]", model.distributions):
            longer_half = (ends - units.starts - h).clamp(min=0) // 2
            begin = units.starts + longer_half.clamp(max=units.window - 1)
            rows, starts = full_origins(begin, ends, h, units.starts, most=ROWS_OF_START)
            target, _ = model.targets(units, rows, rows + h + 1)
            error = target - model.without_network(units.at(rows, starts))
            spread = units.spread[rows][:, None]
            varies = (spread > 0).expand_as(error)
            squares = torch.where(varies, error / spread, 0.0).square().sum(0)
            count = varies.sum(0)
            head.start(torch.where(count > 0, squares / count.clamp(min=1), 1.0).sqrt())

    def _segments(self, ends: Tensor) -> Segments:
        settings = self.settings
        return Segments(
            self.units.starts,
            ends,
            warm_up=max(settings.input_size, LEAST_WARM_UP),
            length=max(FORECASTS_OF_A_SEGMENT, settings.horizon),
            batch_size=settings.batch_size,
            generator=self.generator,
        )


class _TrainingLoss:
    """Mean loss over all known targets of the rows of a batch that forecast."""

    def __init__(self, model: ForecastModel, units: Units, loss: str) -> None:
        self._model, self._units, self._loss = model, units, loss
        self._rows: Tensor | None = None

    def __call__(self, batch: Batch) -> Tensor:
        if batch.rows is not self._rows:
            self._gather(batch)
        states, _ = self._model.network.run(self._x, lengths=self._lengths)
        size = losses(self._model, self._loss, self._origins, states[:, self._first :])
        return (self._weight * size).sum() / self._count

    def _gather(self, batch: Batch) -> None:
        """Everything of a batch but what is estimated, kept for steps on the same one."""
        # Once, in the process that trains: its device is known there alone.
        self._units = self._units.to(torch.float32, batch.rows.device)
        model, units = self._model, self._units
        self._x, self._first = units.inputs(batch.rows), int(batch.first.min())
        length = batch.rows.shape[1]
        whole = bool((batch.lengths == length).all())  # without padding there is less to do
        self._lengths = None if whole else batch.lengths
        rows = batch.rows[:, self._first :]
        starts, ends = (part[:, None].expand_as(rows) for part in (batch.starts, batch.ends))
        self._origins = Origins.of(model, units, rows, starts, ends)
        position = torch.arange(self._first, length, device=rows.device)
        counts = (position >= batch.first[:, None]) & (position < batch.lengths[:, None])
        self._weight = (self._origins.known & counts[..., None, None]).to(self._x.dtype)
        self._count = (self._weight.sum() * model.n_targets).clamp(min=1)
        self._rows = batch.rows


class _Validation:
    """Mean loss of all forecasts of validation targets, on a fixed subset of many units."""

    def __init__(
        self, model: ForecastModel, units: Units, split: Tensor, settings: Settings
    ) -> None:
        self._model, self._units, self._loss = model, units, settings.loss
        self._ends = units.indptr[1:]
        chosen = some_units(split, self._ends, VALIDATION_POSITIONS)
        # Units that are not chosen have no rows to run over.
        self._first = torch.where(chosen, split - 1, self._ends)
        # These rows stand for the whole past, which would be filtered anew in every epoch.
        warm = split - 1 - max(WARM_WINDOWS * settings.input_size, 256)
        self._begin = torch.where(chosen, torch.maximum(warm, units.starts), self._ends)

    def __call__(self) -> float:
        model, units = self._model, self._units
        total, count = 0.0, 0.0

        def visit(rows: Tensor, unit: Tensor, states: Tensor) -> None:
            nonlocal total, count
            origins = Origins.of(model, units, rows, units.starts[unit], self._ends[unit])
            size = losses(model, self._loss, origins, states)
            total += float(torch.where(origins.known, size, 0.0).sum())
            count += float(origins.known.sum()) * model.n_targets

        device = next(model.parameters()).device
        # On the CPU, as every forecast is: what validates best is what will be used.
        run_filter(model.cpu(), units, self._first, begin=self._begin, visit=visit)
        model.to(device)
        return total / max(count, 1.0)


class Origins(NamedTuple):
    """Rows to forecast from: all that forecasts and their losses need beside what is estimated.

    Attributes
    ----------
    windows : Windows
    design : Tensor of shape (..., p) or None
        Regressors of the linear path, if the model has one.
    future : Tensor of shape (..., h, n_known) or None
        Columns known ahead, if there are any.
    target : Tensor of shape (..., h, C)
    known : boolean Tensor of shape (..., h, 1)
        Whether forecasts have a target.
    """

    windows: Windows
    design: Tensor | None
    future: Tensor | None
    target: Tensor
    known: Tensor

    @classmethod
    def of(
        cls, model: ForecastModel, units: Units, rows: Tensor, starts: Tensor, ends: Tensor
    ) -> Origins:
        """Gather from units.

        Parameters
        ----------
        model : ForecastModel
        units : Units
        rows, starts, ends : integer Tensors of one shape
            Rows to forecast from, the first row of the unit of each, and the row from which on
            values are not to be used.
        """
        windows = units.at(rows, starts)
        design = None if model.linear is None else model.design(windows)
        return cls(
            windows, design, model.columns_ahead(units, rows), *model.targets(units, rows, ends)
        )


def losses(model: ForecastModel, loss: str, origins: Origins, states: Tensor) -> Tensor:
    """Loss (..., h, C) of every forecast, on the standardised scale.

    Parameters
    ----------
    model : ForecastModel
    loss : {"mse", "mae", "quantile", "student-t"}
    origins : Origins
    states : Tensor of shape (..., hidden_size)
        Outputs of the last layer after the rows to forecast from.
    """
    windows, design, future, target, _ = origins
    error = target - model.parts(windows, states, future, design).total()
    if loss == "mse":
        return error.square()
    if loss == "mae":
        return error.abs()
    return model.distribution_loss(error, windows.spread[..., None, :], states)


class Batch(NamedTuple):
    """Segments of one training step.

    Attributes
    ----------
    rows : integer Tensor of shape (B, L)
        Rows of the units, the last one repeated after a segment's end.
    lengths : integer Tensor of shape (B,)
    starts : integer Tensor of shape (B,)
        First row of the unit of each segment.
    first : integer Tensor of shape (B,)
        Position in the segment from which rows forecast.
    ends : integer Tensor of shape (B,)
        Row after the unit's training part: targets lie before it.
    """

    rows: Tensor
    lengths: Tensor
    starts: Tensor
    first: Tensor
    ends: Tensor


class Segments(Epoch):
    """Epoch of batches of segments: the state warms up, then every row forecasts.

    Segments are drawn anew each time it is iterated. A row forecasts about once an epoch, more
    often where that would be fewer than `LEAST_STEPS` steps, less where it would be more than
    `MOST_STEPS`. The first rows of a unit, `warm_up` of them or two thirds of a short one, do
    not: their past is too short.

    Parameters
    ----------
    starts, ends : integer Tensors of shape (U,)
        Training part of each unit.
    warm_up : int
        Rows that only warm the state up, where a segment does not begin with its unit.
    length : int
        Rows of a segment that forecast.
    batch_size : int
    generator : torch.Generator
    """

    def __init__(
        self,
        starts: Tensor,
        ends: Tensor,
        *,
        warm_up: int,
        length: int,
        batch_size: int,
        generator: torch.Generator,
    ) -> None:
        self.starts, self.ends = starts, ends
        self.warm_up, self.length = warm_up, length
        self.batch_size, self.generator = batch_size, generator
        usable = (ends - starts - 1).clamp(min=0)
        self._whole = usable <= warm_up + length  # short units are one segment each
        long_count = torch.ceil((usable - warm_up).clamp(min=1) / length).long()
        self.counts = torch.where(self._whole, 1, long_count)
        # Short units that fit in one batch are the same in every step, in any order.
        count = len(starts)
        same = count <= batch_size and bool(self._whole.all())
        self._same = self._batch(torch.arange(count), torch.zeros(count)) if same else None

    def __len__(self) -> int:
        steps = -(-int(self.counts.sum()) // self.batch_size)
        return min(max(steps, LEAST_STEPS), MOST_STEPS)

    def batches(self) -> Iterator[Batch]:
        """Batches without end, in passes over all segments."""
        plan = torch.arange(len(self.starts)).repeat_interleave(self.counts)
        while True:
            order = torch.randperm(len(plan), generator=self.generator)
            for units in plan[order].split(self.batch_size):
                draw = torch.rand(len(units), generator=self.generator)
                yield self._batch(units, draw) if self._same is None else self._same

    def _batch(self, units: Tensor, draw: Tensor) -> Batch:
        """Segments of some units, at places that uniform numbers draw."""
        usable = self.ends[units] - self.starts[units] - 1
        whole = self._whole[units]
        length = torch.where(whole, usable, self.warm_up + self.length)
        room = usable - length
        # Offsets beyond both ends, moved to them, let every row be drawn equally often.
        beyond = torch.where(whole, 0, self.length - 1)
        offset = (draw * (room + 2 * beyond + 1)).long() - beyond
        offset = torch.minimum(offset.clamp(min=0), room)
        # The beginning of a unit warms up for less: short series need every row they have.
        first = torch.where(
            whole, torch.minimum(2 * usable // 3, torch.tensor(self.warm_up)), self.warm_up
        )
        begin = self.starts[units] + offset
        steps = torch.arange(int(length.max()))
        rows = begin[:, None] + torch.minimum(steps, length[:, None] - 1)
        return Batch(rows, length, self.starts[units], first, self.ends[units])


def check_model_size(settings: Settings, n_targets: int, n_exog: int, known: list[int]) -> None:
    """Refuse a model that this machine has no memory to train.

    Raises
    ------
    ValueError
        With the sizes that were asked for.
    """
    inputs = (n_targets if settings.joint else 1), n_exog, known
    count = _parameter_count(settings, *inputs)
    rows = settings.input_size + FORECASTS_OF_A_SEGMENT
    states = float(settings.batch_size) * rows * settings.hidden_size * settings.n_layers
    lags = ((inputs[0] + n_exog) * settings.input_size) ** 2.0 if settings.linear_path else 0.0
    # float32: value, gradient and two moments of a parameter, states with what their gradients
    # need, networks that are kept; float64: moments of the lags and their eigenvectors
    n_bytes = 4 * ((4 + settings.n_estimators) * count + 3 * states) + 8 * 3 * lags
    sizes = ("input_size", "hidden_size", "n_layers", "horizon", "batch_size", "n_estimators")
    check_fits(
        f"training a network of {count:.3g} parameters "
        f"({', '.join(f'{name}={getattr(settings, name)}' for name in sizes)})",
        n_bytes,
        "Take smaller sizes; by default hidden_size=64 and n_layers=2, and input_size is chosen "
        "from the data",
    )


def _parameter_count(settings: Settings, n_targets: int, n_exog: int, known: list[int]) -> float:
    """Parameters of one network, counted on small ones that hold none.

    Their number is linear in the layers and quadratic in the layer width, so that those of one
    and two layers and of three widths give it for all.
    """

    def count(hidden_size: int, n_layers: int) -> float:
        small = replace(settings, hidden_size=hidden_size, n_layers=n_layers, n_estimators=1)
        with shapes_only():
            model = ForecastModel(small, n_targets, n_exog, known)
        return float(sum(parameter.numel() for parameter in model.parameters()))

    blocks, heads = (int(settings.options.get(name) or 1) for name in ("block_size", "n_heads"))
    unit = math.lcm(WIDTH_COUNTED * blocks, heads)  # heads divide the layer width, as blocks do
    widths = (1, 2, 3) if settings.hidden_size > 3 * unit else (settings.hidden_size / unit,)
    counts = ([count(round(unit * width), n) for width in widths] for n in (1, 2))
    width = settings.hidden_size / unit
    first, second = (
        values[0] if len(values) == 1 else float(np.polyval(np.polyfit(widths, values, 2), width))
        for values in counts
    )
    return first + (second - first) * (settings.n_layers - 1.0)
