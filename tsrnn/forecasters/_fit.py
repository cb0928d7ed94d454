"""Estimate a forecasting model: linear path in closed form, then everything by gradient."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from tsrnn.forecasters._filter import run_filter
from tsrnn.forecasters._linear_path import fit_linear_path
from tsrnn.forecasters._model import ForecastModel
from tsrnn.forecasters._segments import Batch, Segments
from tsrnn.forecasters._settings import Settings
from tsrnn.forecasters._subset import subset
from tsrnn.forecasters._units import Units

FORECASTS_PER_SEGMENT = 192
VALIDATION_POSITIONS = 100_000
SLOW_RATE = 0.1
WARM_WINDOWS = 4  # windows of warm-up before the validation part while training


@dataclass
class Estimate:
    """What a fit leaves besides the model."""

    history: list[dict[str, float]] = field(default_factory=list)
    best_epoch: int = 0
    linear_path: dict[str, float | str] = field(default_factory=dict)


def estimate(
    model: ForecastModel,
    units: Units,
    split: Tensor,
    settings: Settings,
    *,
    generator: torch.Generator,
    device: str = "cpu",
    callbacks: Sequence[Any] = (),
    verbose: int = 0,
) -> Estimate:
    """Fit `model` in place to the rows of each unit before `split`, validated on those after.

    Parameters
    ----------
    model : ForecastModel
    units : Units
        In float64.
    split : integer Tensor of shape (U,)
        First row of the validation part of each unit.
    settings : Settings
    generator : torch.Generator
    device : str
    callbacks : sequence of lightning callbacks
    verbose : int
    """
    from tsrnn.forecasters._training import train  # Lightning is slow to load and only trains

    model.network.rnn.prepare(verbose=bool(verbose))
    # A network of zeros leaves the local level and the linear path as the start.
    model.reset_parameters(generator, zero_output=settings.local_level or settings.linear_path)
    result = Estimate()
    if model.linear is not None:
        train_rows = full_origins(units.starts, split, settings.horizon)
        held_rows = full_origins(split - 1, units.indptr[1:], settings.horizon, units.starts)
        result.linear_path = fit_linear_path(model, units, train_rows, held_rows, settings.season)
    network_units = units.to(torch.float32)
    segments = Segments(
        units.starts,
        split,
        warm_up=max(settings.input_size, 8),
        length=max(FORECASTS_PER_SEGMENT, settings.horizon),
        batch_size=settings.batch_size,
        generator=generator,
    )
    result.history, result.best_epoch = train(
        model,
        segments,
        loss=_TrainingLoss(model, network_units.to(torch.float32, device), settings.loss),
        validate=_Validation(model, network_units, split, settings),
        groups=_parameter_groups(model, settings),
        max_epochs=settings.max_epochs,
        patience=settings.patience,
        device=device,
        callbacks=callbacks,
        verbose=verbose,
    )
    return result


def _parameter_groups(model: ForecastModel, settings: Settings) -> list[dict[str, Any]]:
    """Parameters by how fast they move.

    The linear path starts at its optimum and moves slowly. So do recurrent matrices
    that start stable: else their eigenvalues are pushed out of the unit disk, which
    forecasts no better and cannot be read. Parameters of a cell without matrices move fast.
    """
    stable = settings.init == "stable" and bool(model.network.rnn.matrix_names)
    slow: list[Tensor] = []
    fast: list[Tensor] = []
    for name, parameter in model.named_parameters():
        recurrent = "weight_hh" in name and stable
        (slow if recurrent or parameter is model.linear else fast).append(parameter)
    return [
        {"params": fast, "lr": settings.learning_rate, "weight_decay": settings.weight_decay},
        {"params": slow, "lr": SLOW_RATE * settings.learning_rate, "weight_decay": 0.0},
    ]


def full_origins(
    begin: Tensor, ends: Tensor, horizon: int, starts: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Rows from `begin` on with all targets before `ends`, and the start of the unit of each."""
    counts = (ends - horizon - begin).clamp(min=0)
    offset = torch.arange(int(counts.sum())) - (counts.cumsum(0) - counts).repeat_interleave(counts)
    rows = begin.repeat_interleave(counts) + offset
    return rows, (begin if starts is None else starts).repeat_interleave(counts)


class _TrainingLoss:
    """Mean loss over all known targets of the rows of a batch that forecast."""

    def __init__(self, model: ForecastModel, units: Units, loss: str) -> None:
        self._model, self._units, self._loss = model, units, loss

    def __call__(self, batch: Batch) -> Tensor:
        model, units = self._model, self._units
        x = units.inputs(batch.rows)
        x = x if model.network.input is None else model.network.input(x)
        states, _ = model.network.rnn(x, lengths=batch.lengths)
        first = int(batch.first.min())
        rows = batch.rows[:, first:]
        starts = batch.starts[:, None].expand_as(rows)
        forecast = model.parts(units, rows, starts, states[:, first:]).total()
        target, known = model.targets(units, rows, batch.ends[:, None].expand_as(rows))
        position = torch.arange(first, batch.rows.shape[1], device=rows.device)
        counts = (position >= batch.first[:, None]) & (position < batch.lengths[:, None])
        weight = (known & counts[..., None, None]).to(forecast.dtype)
        error = forecast - target
        size = error.abs() if self._loss == "mae" else error.square()
        return (weight * size).sum() / (weight.sum() * model.n_targets).clamp(min=1)


class _Validation:
    """Mean loss of all forecasts of validation targets, on a fixed subset of many units."""

    def __init__(
        self, model: ForecastModel, units: Units, split: Tensor, settings: Settings
    ) -> None:
        self._model, self._units, self._absolute = model, units, settings.loss == "mae"
        self._ends = units.indptr[1:]
        positions = int((self._ends - split).sum())
        most = max(1, len(units) * VALIDATION_POSITIONS // positions)
        chosen = torch.zeros(len(units), dtype=torch.bool)
        chosen[subset(len(units), most)] = True
        # Units that are not chosen have no rows to run over.
        self._first = torch.where(chosen, split - 1, self._ends)
        warm = split - 1 - max(WARM_WINDOWS * settings.input_size, 256)
        self._begin = torch.where(chosen, torch.maximum(warm, units.starts), self._ends)

    def __call__(self) -> float:
        model, units = self._model, self._units
        total, count = 0.0, 0.0

        def visit(rows: Tensor, unit: Tensor, states: Tensor) -> None:
            nonlocal total, count
            forecast = model.parts(units, rows, units.starts[unit], states).total()
            target, known = model.targets(units, rows, self._ends[unit])
            error = torch.where(known, forecast - target, 0.0)
            total += float((error.abs() if self._absolute else error.square()).sum())
            count += float(known.sum()) * model.n_targets

        device = next(model.parameters()).device
        run_filter(model.cpu(), units, self._first, begin=self._begin, visit=visit)
        model.to(device)
        return total / max(count, 1.0)
