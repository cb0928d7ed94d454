"""Estimate a forecasting model: linear path in closed form, then everything by gradient."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import torch
from torch import Tensor

from tsrnn.forecasters._distribution import Distribution
from tsrnn.forecasters._filter import run_filter
from tsrnn.forecasters._linear_path import fit_linear_path
from tsrnn.forecasters._loss import losses
from tsrnn.forecasters._model import FORECASTS_OF_A_SEGMENT, ForecastModel
from tsrnn.forecasters._origins import full_origins, regression_origins, some_units
from tsrnn.forecasters._segments import Batch, Segments
from tsrnn.forecasters._settings import Settings
from tsrnn.forecasters._units import Units
from tsrnn.training import Processes, parameter_groups

VALIDATION_POSITIONS = 100_000
ROWS_OF_START = 20_000
WARM_WINDOWS = 4  # windows of warm-up before the validation part while training


@dataclass
class Estimate:
    """What a fit leaves: networks trained by themselves, and how training went.

    Attributes
    ----------
    start : ForecastModel
        The model before training, the same but for the networks: local level and linear path.
    members : list of ForecastModel
    history : list of dict
    best_epochs : list of int
        By member; 0 is the start.
    """

    start: ForecastModel
    members: list[ForecastModel] = field(default_factory=list)
    history: list[dict[str, float]] = field(default_factory=list)
    best_epochs: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Training:
    """The data of a fit and how to train on them.

    Attributes
    ----------
    units : Units
        In float64.
    split : integer Tensor of shape (U,)
        First row of the validation part of each unit.
    settings : Settings
    make : callable
        Makes an empty model of one network.
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

        settings = self.settings
        units = self.units.to(torch.float32)
        for number in range(1, settings.n_estimators + 1):
            model = self._started(self.split)
            if number == 1:
                found = Estimate(copy.deepcopy(model))
            history, best_epoch = train(
                model,
                self._segments(self.split),
                loss=_TrainingLoss(model, units, settings.loss),
                validate=_Validation(model, units, self.split, settings),
                groups=_groups(model, settings),
                max_epochs=settings.max_epochs,
                patience=settings.patience,
                device=self.device,
                processes=self.processes,
                callbacks=self.callbacks,
                verbose=self.verbose,
            )
            numbered = {"network": number} if settings.n_estimators > 1 else {}
            found.members.append(model)
            found.history += [numbered | epoch for epoch in history]
            found.best_epochs.append(best_epoch)
        return found

    def estimate_on_all(self, before: Estimate) -> list[ForecastModel]:
        """Train anew on all rows, as many epochs at the same rates as were best before."""
        from tsrnn.training import train_for

        members: list[ForecastModel] = []
        units = self.units.to(torch.float32)
        for number, best_epoch in enumerate(before.best_epochs, start=1):
            model = self._started(self.units.indptr[1:])
            own = [e for e in before.history if e.get("network", 1) == number]
            train_for(
                model,
                self._segments(self.units.indptr[1:]),
                loss=_TrainingLoss(model, units, self.settings.loss),
                groups=_groups(model, self.settings),
                rates=[epoch["learning_rate"] for epoch in own[:best_epoch]],
                device=self.device,
                processes=self.processes,
                callbacks=self.callbacks,
                verbose=self.verbose,
            )
            members.append(model)
        return members

    def _started(self, ends: Tensor) -> ForecastModel:
        """A model before the optimiser's first step, from the rows of each unit before `ends`."""
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
            error = target - model.without_network(units, rows, starts)
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
            warm_up=max(settings.input_size, 8),
            length=max(FORECASTS_OF_A_SEGMENT, settings.horizon),
            batch_size=settings.batch_size,
            generator=self.generator,
        )


def _groups(model: ForecastModel, settings: Settings) -> list[dict[str, Any]]:
    """The linear path starts at its optimum and moves slowly, as recurrent matrices do."""
    slow = [*model.network.recurrent_parameters(), *model.linear_parameters()]
    return parameter_groups(model, slow, settings.learning_rate, settings.weight_decay)


class _TrainingLoss:
    """Mean loss over all known targets of the rows of a batch that forecast."""

    def __init__(self, model: ForecastModel, units: Units, loss: str) -> None:
        self._model, self._units, self._loss = model, units, loss

    def __call__(self, batch: Batch) -> Tensor:
        self._units = self._units.to(torch.float32, batch.rows.device)  # of the process that trains
        model, units = self._model, self._units
        x = units.inputs(batch.rows)
        states, _ = model.network.run(x, lengths=batch.lengths)
        first = int(batch.first.min())
        rows = batch.rows[:, first:]
        starts = batch.starts[:, None].expand_as(rows)
        ends = batch.ends[:, None].expand_as(rows)
        size, known = losses(model, self._loss, units, rows, starts, ends, states[:, first:])
        position = torch.arange(first, batch.rows.shape[1], device=rows.device)
        counts = (position >= batch.first[:, None]) & (position < batch.lengths[:, None])
        weight = (known & counts[..., None, None]).to(size.dtype)
        return (weight * size).sum() / (weight.sum() * model.n_targets).clamp(min=1)


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
        warm = split - 1 - max(WARM_WINDOWS * settings.input_size, 256)
        self._begin = torch.where(chosen, torch.maximum(warm, units.starts), self._ends)

    def __call__(self) -> float:
        model, units = self._model, self._units
        total, count = 0.0, 0.0

        def visit(rows: Tensor, unit: Tensor, states: Tensor) -> None:
            nonlocal total, count
            starts, ends = units.starts[unit], self._ends[unit]
            size, known = losses(model, self._loss, units, rows, starts, ends, states)
            total += float(torch.where(known, size, 0.0).sum())
            count += float(known.sum()) * model.n_targets

        device = next(model.parameters()).device
        run_filter(model.cpu(), units, self._first, begin=self._begin, visit=visit)
        model.to(device)
        return total / max(count, 1.0)
