"""Training of forecasting models: linear path in closed form, then all parameters by gradient."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from tsrnn.contract import check_fits
from tsrnn.data import order_of_series
from tsrnn.forecasters._distribution import Distribution
from tsrnn.forecasters._factors import copy_linear_path, fit_factors, with_path
from tsrnn.forecasters._linear_path import fit_linear_paths
from tsrnn.forecasters._model import ForecastModel
from tsrnn.forecasters._segments import (
    Batch,
    ConcatenatedUnits,
    Origins,
    Segments,
    StepData,
    losses,
)
from tsrnn.forecasters._settings import Settings
from tsrnn.forecasters._state import run_filter
from tsrnn.forecasters._units import Units, full_origins, regression_origins, some_units
from tsrnn.layers import shapes_only
from tsrnn.training import (
    Processes,
    TrainedReplicate,
    parameter_groups,
    train_replicates,
    train_replicates_for,
)

# Origins of a training segment after its warm-up: more share the cost of the warm-up, fewer make
# more segments, in random order.
FORECASTS_OF_A_SEGMENT = 192
LEAST_WARM_UP = 8  # rows: the state starts from zero, however short the window is
VALIDATION_POSITIONS = 100_000  # forecasts: enough to tell epochs apart
ROWS_OF_START = 20_000  # enough to estimate the spread of errors
AT_ONCE = 256  # networks trained side by side, to share the overhead of a step
POSITIONS_IN_CACHE = 2**13  # rows of 64 float32 states that fit in the caches
LEAST_AT_ONCE = 8  # networks: beyond the caches, sharing the overhead still pays
POSITIONS_AT_ONCE = 2**16  # rows of all networks: some hundred megabytes
WARM_WINDOWS = 4  # warm-up before the validation part, in windows
WIDTH_COUNTED = 64  # layer width, over the block size, of the networks whose parameters are counted


@dataclass
class Estimate:
    """Trained networks of a fit, with the history of their training.

    `start` is the model before training, common to all networks: local level and linear path. The
    best epoch of a member is 0 if that is the start.
    """

    start: ForecastModel
    members: list[ForecastModel] = field(default_factory=list)
    history: list[dict[str, float]] = field(default_factory=list)
    best_epochs: list[int] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Training:
    """Training data and options of a fit.

    Attributes
    ----------
    units : Units
        Units in float64.
    split : integer Tensor of shape (U,)
        First row of the validation part of each unit.
    make, make_by_target : callable
        Returns an empty model of one network; of a single target, for the linear path that factors
        are added to.
    linear_path : dict
        Form of the linear path; empty without one.
    start : ForecastModel, optional
        Model whose linear path is estimated from the rows before `split`, if known already.
    where : str
        Prefix of messages that names the series, if there are several fits.
    """

    units: Units
    split: Tensor
    settings: Settings
    make: Callable[[], ForecastModel]
    linear_path: dict[str, Any]
    generators: list[torch.Generator]
    start: ForecastModel | None = None
    make_by_target: Callable[[], ForecastModel] | None = None
    device: str = "cpu"
    processes: Processes = field(default_factory=Processes)
    callbacks: Sequence[Any] = ()
    verbose: int = 0
    where: str = ""

    @cached_property
    def single(self) -> Units:
        """Units in float32, with autocorrelations for the linear path."""
        units, settings = self.units.to(torch.float32), self.settings
        if not settings.linear_path or settings.network is False:
            return units
        return units.with_strength(settings.varying_seasons, by_target=settings.factor)

    @cached_property
    def order(self) -> Tensor:
        """Order of the units for random draws, which does not depend on the order of the frame."""
        return torch.from_numpy(
            order_of_series(self.units.values.numpy(), self.units.indptr.numpy())
        )

    @property
    def alone(self) -> bool:
        """True if networks are trained one by one by Lightning: callbacks, processes, devices."""
        return bool(self.processes.start or self.callbacks or self.device != "cpu")

    def networks(self, ends: Tensor) -> list[Network]:
        """Draw initial networks to train on the rows before `ends`, without the linear path."""
        models = [self.make() for _ in self.generators]
        for model, generator in zip(models, self.generators, strict=True):
            # With outputs of zero, training starts from the local level and the linear path.
            zero = self.settings.local_level or self.settings.linear_path
            model.reset_parameters(generator, zero_output=zero)
        return [Network(self, m, ends, g) for m, g in zip(models, self.generators, strict=True)]

    @torch.no_grad()
    def start_distribution(self, model: ForecastModel, ends: Tensor) -> None:
        """Initialise learned distributions with the errors of the linear path.

        Origins have whole windows, or lie in the second half of a short unit: the local spread of
        a few rows is too small.
        """
        units, h = self.units, model.horizon
        for head in cast("Iterable[Distribution]", model.distributions):
            longer_half = (ends - units.starts - h).clamp(min=0) // 2
            begin = units.starts + longer_half.clamp(max=units.window - 1)
            rows, starts = full_origins(begin, ends, h, units.starts, most=ROWS_OF_START)
            target, _ = model.targets(units, rows, rows + h + 1)
            error = target - model.linear_forecasts(units.at(rows, starts))[1]
            spread = units.spread[rows][:, None]
            varies = (spread > 0).expand_as(error)
            squares = torch.where(varies, error / spread, 0.0).square().sum(0)
            count = varies.sum(0)
            head.start(torch.where(count > 0, squares / count.clamp(min=1), 1.0).sqrt())


@dataclass(frozen=True, eq=False)
class Network:
    """Network to be trained on the rows of each unit before `ends`, shape (U,)."""

    training: Training
    model: ForecastModel
    ends: Tensor
    generator: torch.Generator

    @cached_property
    def units(self) -> Units:
        """Units in float32, with the forecasts of the linear path if it is not trained."""
        single = self.training.single
        return with_path(self.model, single) if self.training.settings.factor else single

    def segments(self, offset: int = 0) -> Segments:
        """Batches of an epoch; the rows of the units begin at `offset`."""
        settings = self.training.settings
        return Segments(
            self.training.units.starts + offset,
            self.ends + offset,
            order=self.training.order,
            warm_up=max(settings.input_size, LEAST_WARM_UP),
            length=max(FORECASTS_OF_A_SEGMENT, settings.horizon),
            batch_size=settings.batch_size,
            generator=self.generator,
        )

    def held_out(self) -> Batch:
        """Batch of the validation part, preceded by warm-up rows."""
        training = self.training
        begin, first = validation_rows(training.units, training.split, training.settings)
        return Batch.between(begin, first, training.units)

    def groups(self) -> list[dict[str, Any]]:
        """Parameter groups of the optimiser."""
        # A low rate for the linear path, which starts at its optimum, and recurrent matrices.
        model, settings = self.model, self.training.settings
        slow = [*model.network.recurrent_parameters(), *model.linear_parameters()]
        return parameter_groups(model, slow, settings.learning_rate, settings.weight_decay)

    def options(self) -> dict[str, Any]:
        """Arguments common to `train` and `train_for`."""
        training = self.training
        return {
            "loss": _TrainingLoss(self.model, self.units, training.settings.loss),
            "groups": self.groups(),
            "device": training.device,
            "processes": training.processes,
            "callbacks": training.callbacks,
            "verbose": training.verbose,
        }

    @property
    def shape(self) -> tuple[Any, ...]:
        """Key that is equal for networks that can be trained side by side."""
        settings, parameters = self.training.settings, self.model.named_parameters()
        shapes = tuple((name, tuple(p.shape)) for name, p in parameters)
        window = settings.input_size, settings.local_level
        return shapes, window, settings.horizon, settings.loss

    @property
    def positions(self) -> int:
        """Rows of a pass over a batch or the validation part, the larger of both."""
        return max(self.segments().positions, self.held_out().rows.numel())


def networks_of(trainings: Sequence[Training], ends: Sequence[Tensor]) -> list[list[Network]]:
    """Initial networks of each fit, with linear paths estimated from the rows before `ends`."""
    fits = [training.networks(last) for training, last in zip(trainings, ends, strict=True)]
    unknown = []
    for number, (training, networks) in enumerate(zip(trainings, fits, strict=True)):
        if training.start is not None and ends[number] is training.split:
            copy_linear_path([n.model for n in networks], training.start)
        else:
            unknown.append((training, networks, ends[number]))
    if unknown and trainings[0].settings.linear_path:
        models, units, origins = [], [], []
        for training, networks, last in unknown:
            members, of_fit = [n.model for n in networks], training.units
            if training.settings.factor:  # first the path of each target by itself
                assert training.make_by_target is not None
                members, last = [training.make_by_target()], of_fit.bounds_by_target(last)
                of_fit = of_fit.by_target()
            models.append(members)
            units.append(of_fit)
            origins.append(regression_origins(of_fit, last, training.settings.horizon))
        forms, season = [t.linear_path for t, *_ in unknown], trainings[0].settings.season
        fit_linear_paths(models, units, origins, season, forms)
        for (training, networks, last), (single, *_) in zip(unknown, models, strict=True):
            if training.settings.factor:
                members = [n.model for n in networks]
                fit_factors(members, single, training.units, last, training.linear_path)
    for training, networks in zip(trainings, fits, strict=True):
        for n in networks:
            training.start_distribution(n.model, n.ends)
    return fits


def estimate(trainings: Sequence[Training]) -> list[Estimate]:
    """Train on the rows of each unit before `split`, and validate on the rows after it.

    Networks of equal shape are trained side by side, also of different fits. The results equal
    training one by one to rounding.
    """
    fits = networks_of(trainings, [training.split for training in trainings])
    estimates = [Estimate(copy.deepcopy(networks[0].model)) for networks in fits]
    results: dict[int, tuple[list[dict[str, float]], int]] = {}
    wanted = trainings[0].settings.network is not False
    for group, at_once in _groups([n for networks in fits for n in networks if wanted]):
        settings = group[0].training.settings
        course: dict[str, Any] = {
            "max_epochs": settings.max_epochs, "patience": settings.patience,
        }  # fmt: skip
        if at_once == 1:
            from tsrnn.training import train  # Lightning is slow to load and only trains

            for n in group:
                with _named(n):
                    validate = ValidationLoss(n.model, n.units, n.training.split, settings)
                    results[id(n)] = train(
                        n.model, n.segments(), validate=validate, **course, **n.options()
                    )
            continue
        side_by_side = SideBySide(group, at_once)
        held_out = [n.held_out().moved(offset) for n, offset in side_by_side.placed]
        trained = train_replicates(
            held_out=held_out, validate=side_by_side.loss, **course, **side_by_side.options
        )
        for n, result in side_by_side.checked(trained):
            results[id(n)] = result.history, result.best_epoch
    for of_fit, networks in zip(estimates, fits, strict=True):
        for number, n in enumerate(networks, 1):
            history, best_epoch = results.get(id(n), ([], 0))  # epoch 0 if none was trained
            numbered = {"network": number} if len(networks) > 1 else {}
            of_fit.members.append(n.model)
            of_fit.history += [numbered | epoch for epoch in history]
            of_fit.best_epochs.append(best_epoch)
    return estimates


def estimate_on_all(
    trainings: Sequence[Training], before: Sequence[Estimate]
) -> list[list[ForecastModel]]:
    """Retrain on all rows, for the best number of epochs `before` and at the same rates."""
    networks: list[Network] = []
    rates, members = {}, []
    fits = networks_of(trainings, [training.units.indptr[1:] for training in trainings])
    for of_training, of_fit in zip(fits, before, strict=True):
        for number, (n, best) in enumerate(zip(of_training, of_fit.best_epochs, strict=True), 1):
            epochs = [e for e in of_fit.history if e.get("network", 1) == number][:best]
            rates[id(n)] = [epoch["learning_rate"] for epoch in epochs]
        networks += of_training
        members.append([n.model for n in of_training])
    moving = [n for n in networks if rates[id(n)]]  # others stay at the start
    moving.sort(key=lambda n: -len(rates[id(n)]))  # longest first, so that none is last alone
    for group, at_once in _groups(moving):
        if at_once == 1:
            from tsrnn.training import train_for

            for n in group:
                with _named(n):
                    train_for(n.model, n.segments(), rates=rates[id(n)], **n.options())
            continue
        side_by_side = SideBySide(group, at_once)
        planned = [rates[id(n)] for n in group]
        trained = train_replicates_for(rates=planned, **side_by_side.options)
        list(side_by_side.checked(trained))
    return members


def _groups(networks: Sequence[Network]) -> Iterator[tuple[list[Network], int]]:
    """Groups of networks of equal shape, each with the number of networks to train at once."""
    by_shape: dict[Any, list[Network]] = {}
    for n in networks:
        by_shape.setdefault(id(n) if n.training.alone else n.shape, []).append(n)
    for group in by_shape.values():
        group[0].model.network.prepare(verbose=bool(group[0].training.verbose))
        if len(group) == 1:
            yield group, 1
            continue
        # Networks of similar length side by side, as all are padded to the longest.
        size = {id(n): n.positions for n in group}
        group.sort(key=lambda n: size[id(n)])
        longest = size[id(group[-1])]
        in_cache = max(LEAST_AT_ONCE, POSITIONS_IN_CACHE // longest)
        yield group, max(1, min(AT_ONCE, in_cache, POSITIONS_AT_ONCE // longest))


class SideBySide:
    """Networks of equal shape, trained in passes of `at_once`.

    They are `placed` with the offset of their units in the concatenated rows; `options` are
    arguments common to `train_replicates` and `train_replicates_for`.
    """

    def __init__(self, networks: list[Network], at_once: int) -> None:
        by_training = {id(n.training): n for n in networks}  # networks of a fit share its units
        trainings = [n.training for n in by_training.values()]
        joined = ConcatenatedUnits(networks[0].model, [n.units for n in by_training.values()])
        first = {id(t): row for t, row in zip(trainings, joined.offsets, strict=True)}
        self.placed = [(n, first[id(n.training)]) for n in networks]
        self._model, self._loss = networks[0].model, trainings[0].settings.loss
        self.options: dict[str, Any] = {
            "models": [n.model for n in networks],
            "epochs": [n.segments(offset) for n, offset in self.placed],
            "groups": [n.groups() for n in networks],
            "loss": self.loss,
            "collate": joined.collate,
            "stacked": joined.stacked,
            "at_once": at_once,
            "verbose": trainings[0].verbose,
        }

    def loss(self, data: StepData) -> Tensor:
        """Mean loss of a batch, for each replicate."""
        return data.loss(self._model, self._loss)

    def checked(
        self, trained: Sequence[TrainedReplicate]
    ) -> Iterator[tuple[Network, TrainedReplicate]]:
        """Networks with their training results; raises the first failure."""
        for (n, _), result in zip(self.placed, trained, strict=True):
            with _named(n):
                if result.failure is not None:
                    raise result.failure
            yield n, result


@contextmanager
def _named(network: Network) -> Iterator[None]:
    """Add the name of the series to the message of a failure."""
    try:
        yield
    except FloatingPointError as error:
        if not network.training.where:
            raise
        raise FloatingPointError(f"{network.training.where}{error}") from None


class _TrainingLoss:
    """Mean loss over all known targets of a batch."""

    def __init__(self, model: ForecastModel, units: Units, loss: str) -> None:
        self._model, self._units, self._loss = model, units, loss
        self._rows: Tensor | None = None

    def __call__(self, batch: Batch) -> Tensor:
        if batch.rows is not self._rows:  # cached, as short series repeat the same batch
            # Moved here and not before: the device is known only in the process that trains.
            self._units = self._units.to(torch.float32, batch.rows.device)
            self._data = StepData.of(self._model, self._units, batch)
            self._rows = batch.rows
        return self._data.loss(self._model, self._loss)


def validation_rows(units: Units, split: Tensor, settings: Settings) -> tuple[Tensor, Tensor]:
    """First row to run over and first origin of each unit, both (U,), for a subset of the units.

    Units that are not chosen have no rows: both values are their ends.
    """
    ends = units.indptr[1:]
    chosen = some_units(split, ends, VALIDATION_POSITIONS)
    # A warm-up approximates the state, as filtering the whole past in each epoch would be slow.
    warm = split - 1 - max(WARM_WINDOWS * settings.input_size, 256)
    begin = torch.where(chosen, torch.maximum(warm, units.starts), ends)
    return begin, torch.where(chosen, split - 1, ends)


class ValidationLoss:
    """Mean loss of all forecasts of validation targets, for a fixed subset of many units."""

    def __init__(
        self, model: ForecastModel, units: Units, split: Tensor, settings: Settings
    ) -> None:
        self._model, self._units, self._loss = model, units, settings.loss
        self._ends = units.indptr[1:]
        self._begin, self._first = validation_rows(units, split, settings)
        # Origins are cached if they are no more than the origins of a training step.
        rows = int((self._ends - self._first).sum())
        self._few = rows <= settings.batch_size * FORECASTS_OF_A_SEGMENT
        self._gathered: dict[int, Origins] = {}  # by their first row

    def __call__(self) -> float:
        model, units = self._model, self._units
        total, count = 0.0, 0.0

        def visit(rows: Tensor, unit: Tensor, states: Tensor) -> None:
            nonlocal total, count
            origins = self._gathered.get(int(rows[0]))
            if origins is None:
                origins = Origins.of(model, units, rows, units.starts[unit], self._ends[unit])
                if self._few:
                    self._gathered[int(rows[0])] = origins
            size = losses(model, self._loss, origins, states)
            total += float(torch.where(origins.known, size, 0.0).sum())
            count += float(origins.known.sum()) * model.n_targets

        device = next(model.parameters()).device
        # On the CPU, as all forecasts: the epoch is chosen by the numbers that will be used.
        run_filter(model.cpu(), units, self._first, begin=self._begin, visit=visit)
        model.to(device)
        return total / max(count, 1.0)


def check_model_size(settings: Settings, n_targets: int, n_exog: int, known: list[int]) -> None:
    """Raise if training would exceed the memory of this machine."""
    inputs = (n_targets if settings.joint else 1), n_exog, known
    count = _parameter_count(settings, *inputs)
    rows = settings.input_size + FORECASTS_OF_A_SEGMENT
    states = float(settings.batch_size) * rows * settings.hidden_size * settings.n_layers
    lags = (
        (((1 if settings.factor else inputs[0]) + n_exog - len(known)) * settings.input_size) ** 2.0
        if settings.linear_path
        else 0.0
    )
    # float32: value, gradient and two moments of each parameter, states with what their gradients
    # need, and the kept networks; float64: moments of the lags and their eigenvectors
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
    """Count the parameters of one network by extrapolation from small ones without storage.

    The count is linear in the number of layers and quadratic in the layer width, so that one and
    two layers and three widths determine it.
    """

    def count(hidden_size: int, n_layers: int) -> float:
        small = replace(settings, hidden_size=hidden_size, n_layers=n_layers, n_estimators=1)
        with shapes_only():
            model = ForecastModel(small, n_targets, n_exog, known)
        return float(sum(parameter.numel() for parameter in model.parameters()))

    sizes, heads = (settings.options.get(name) or 1 for name in ("block_size", "n_heads"))
    blocks = sum(sizes) if isinstance(sizes, list) else sizes  # blocks of several sizes repeat
    unit = math.lcm(WIDTH_COUNTED * blocks, heads)  # blocks and heads must divide the layer width
    widths = (1, 2, 3) if settings.hidden_size > 3 * unit else (settings.hidden_size / unit,)
    counts = ([count(round(unit * width), n) for width in widths] for n in (1, 2))
    width = settings.hidden_size / unit
    first, second = (
        values[0] if len(values) == 1 else float(np.polyval(np.polyfit(widths, values, 2), width))
        for values in counts
    )
    return first + (second - first) * (settings.n_layers - 1.0)
