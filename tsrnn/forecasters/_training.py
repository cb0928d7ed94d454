"""Training of a forecasting model: linear path in closed form, then everything by gradient."""

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
from tsrnn.forecasters._segments import Batch, Joined, Origins, Segments, StepData, losses
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

# Rows of a training segment behind those that warm it up, all of which forecast: more of them share
# the cost of the warm-up, fewer make more segments, which are drawn in any order.
FORECASTS_OF_A_SEGMENT = 192
LEAST_WARM_UP = 8  # a state that starts from zero sees a few rows, however short the window is
VALIDATION_POSITIONS = 100_000  # forecasts are enough to tell epochs apart
ROWS_OF_START = 20_000  # are enough for the spread of errors
AT_ONCE = 256  # networks side by side: they share the overhead of a step
POSITIONS_IN_CACHE = 2**13  # rows of all of them, of 64 float32 states: so many stay in the caches
LEAST_AT_ONCE = 8  # of networks whose rows do not, still share the overhead
POSITIONS_AT_ONCE = 2**16  # at most: some hundred megabytes
WARM_WINDOWS = 4  # windows of warm-up before the validation part while training
WIDTH_COUNTED = 64  # layer width, over the block size, of networks whose parameters are counted


@dataclass
class Estimate:
    """Networks of a fit, and the course of their training.

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
    generators : list of torch.Generator
        Source of what each network draws.
    start : ForecastModel, optional
        Model with the linear path estimated from the rows before `split`, where it is known.
    make_own : callable, optional
        Returns an empty model of a single target, whose linear path is that of each beside factors.
    device : str
    processes : Processes
    callbacks : sequence of lightning callbacks
    verbose : int
    where : str
        Name of the series before messages, where there are several fits.
    """

    units: Units
    split: Tensor
    settings: Settings
    make: Callable[[], ForecastModel]
    linear_path: dict[str, Any]
    generators: list[torch.Generator]
    start: ForecastModel | None = None
    make_own: Callable[[], ForecastModel] | None = None
    device: str = "cpu"
    processes: Processes = field(default_factory=Processes)
    callbacks: Sequence[Any] = ()
    verbose: int = 0
    where: str = ""

    @cached_property
    def single(self) -> Units:
        """Units in float32, of which a linear path knows the autocorrelations."""
        units, settings = self.units.to(torch.float32), self.settings
        if not settings.linear_path or settings.network is False:
            return units
        return units.with_strength(settings.varying_seasons, by_target=settings.factor)

    @cached_property
    def order(self) -> Tensor:
        """Order of the units for the draws of training, whatever the order of the frame."""
        return torch.from_numpy(
            order_of_series(self.units.values.numpy(), self.units.indptr.numpy())
        )

    @property
    def alone(self) -> bool:
        """True with callbacks, several processes or another device, which Lightning serves."""
        return bool(self.processes.start or self.callbacks or self.device != "cpu")

    def networks(self, ends: Tensor) -> list[Network]:
        """Networks before the optimiser's first step, to train on the rows before `ends`.

        Beside what is fitted to these rows, see `networks_of`.
        """
        models = [self.make() for _ in self.generators]
        for model, generator in zip(models, self.generators, strict=True):
            # A network of zeros leaves the local level and the linear path as the start.
            zero = self.settings.local_level or self.settings.linear_path
            model.reset_parameters(generator, zero_output=zero)
        return [Network(self, m, ends, g) for m, g in zip(models, self.generators, strict=True)]

    @torch.no_grad()
    def start_distribution(self, model: ForecastModel, ends: Tensor) -> None:
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
            error = target - model.linear_forecasts(units.at(rows, starts))[1]
            spread = units.spread[rows][:, None]
            varies = (spread > 0).expand_as(error)
            squares = torch.where(varies, error / spread, 0.0).square().sum(0)
            count = varies.sum(0)
            head.start(torch.where(count > 0, squares / count.clamp(min=1), 1.0).sqrt())


@dataclass(frozen=True, eq=False)
class Network:
    """A network that is to be trained.

    Attributes
    ----------
    training : Training
        Of the fit that it belongs to.
    model : ForecastModel
    ends : integer Tensor of shape (U,)
        End of the rows of each unit to train on.
    generator : torch.Generator
    """

    training: Training
    model: ForecastModel
    ends: Tensor
    generator: torch.Generator

    @cached_property
    def units(self) -> Units:
        """Float32 units, with the forecasts of a linear path that is not trained."""
        single = self.training.single
        return with_path(self.model, single) if self.training.settings.factor else single

    def segments(self, offset: int = 0) -> Segments:
        """Batches of an epoch, of units whose rows begin at `offset`."""
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
        """Rows of the validation part, after those that warm the state up."""
        training = self.training
        begin, first = validation_rows(training.units, training.split, training.settings)
        return Batch.between(begin, first, training.units)

    def groups(self) -> list[dict[str, Any]]:
        """Parameter groups of the optimiser."""
        # The linear path starts at its optimum and moves slowly, as recurrent matrices do.
        model, settings = self.model, self.training.settings
        slow = [*model.network.recurrent_parameters(), *model.linear_parameters()]
        return parameter_groups(model, slow, settings.learning_rate, settings.weight_decay)

    def options(self) -> dict[str, Any]:
        """Arguments that training alone with and without validation share."""
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
        """Everything in which networks that are trained side by side agree."""
        settings, parameters = self.training.settings, self.model.named_parameters()
        shapes = tuple((name, tuple(p.shape)) for name, p in parameters)
        window = settings.input_size, settings.local_level
        return shapes, window, settings.horizon, settings.loss

    @property
    def positions(self) -> int:
        """Rows that a pass over a batch or the validation part runs over."""
        return max(self.segments().positions, self.held_out().rows.numel())


def networks_of(trainings: Sequence[Training], ends: Sequence[Tensor]) -> list[list[Network]]:
    """Networks of each fit as they start, to train on the rows of each unit before its end."""
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
            if training.settings.factor:  # the path of each target first, by itself
                assert training.make_own is not None
                members, last = [training.make_own()], of_fit.bounds_by_target(last)
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
    """Train on the rows of each unit before `split`, validated on those after.

    Networks of one shape, of one fit or of many, are trained side by side; the numbers are those
    of training one by one, to rounding.
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
                    validate = _Validation(n.model, n.units, n.training.split, n.training.settings)
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
            history, best_epoch = results.get(id(n), ([], 0))  # without a network, the start
            numbered = {"network": number} if len(networks) > 1 else {}
            of_fit.members.append(n.model)
            of_fit.history += [numbered | epoch for epoch in history]
            of_fit.best_epochs.append(best_epoch)
    return estimates


def estimate_on_all(
    trainings: Sequence[Training], before: Sequence[Estimate]
) -> list[list[ForecastModel]]:
    """Train anew on all rows, as many epochs at the same rates as were best before."""
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
    moving.sort(
        key=lambda n: -len(rates[id(n)])
    )  # the longest first: they are not alone at the end
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
    """Networks that can be trained side by side, and how many at once; alone where that is 1."""
    by_shape: dict[Any, list[Network]] = {}
    for n in networks:
        by_shape.setdefault(id(n) if n.training.alone else n.shape, []).append(n)
    for group in by_shape.values():
        group[0].model.network.prepare(verbose=bool(group[0].training.verbose))
        if len(group) == 1:
            yield group, 1
            continue
        # Those of similar length side by side: the longest is what all are padded to.
        size = {id(n): n.positions for n in group}
        group.sort(key=lambda n: size[id(n)])
        longest = size[id(group[-1])]
        in_cache = max(LEAST_AT_ONCE, POSITIONS_IN_CACHE // longest)
        yield group, max(1, min(AT_ONCE, in_cache, POSITIONS_AT_ONCE // longest))


class SideBySide:
    """Networks of one shape, trained in passes of `at_once`.

    Parameters
    ----------
    networks : list of Network
    at_once : int

    Attributes
    ----------
    placed : list of (Network, int)
        Each with the first row of its units among those of all.
    options : dict
        Arguments that training with and without validation share.
    """

    def __init__(self, networks: list[Network], at_once: int) -> None:
        by_training = {id(n.training): n for n in networks}  # whose members share their path
        trainings = [n.training for n in by_training.values()]
        joined = Joined(networks[0].model, [n.units for n in by_training.values()])
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
        """Mean loss of the batch of a replicate, or of each."""
        return data.loss(self._model, self._loss)

    def checked(
        self, trained: Sequence[TrainedReplicate]
    ) -> Iterator[tuple[Network, TrainedReplicate]]:
        """Networks with the course of their training, none of which has failed."""
        for (n, _), result in zip(self.placed, trained, strict=True):
            with _named(n):
                if result.failure is not None:
                    raise result.failure
            yield n, result


@contextmanager
def _named(network: Network) -> Iterator[None]:
    """Failures of a training, with the series whose network it is."""
    try:
        yield
    except FloatingPointError as error:
        if not network.training.where:
            raise
        raise FloatingPointError(f"{network.training.where}{error}") from None


class _TrainingLoss:
    """Mean loss over all known targets of the rows of a batch that forecast."""

    def __init__(self, model: ForecastModel, units: Units, loss: str) -> None:
        self._model, self._units, self._loss = model, units, loss
        self._rows: Tensor | None = None

    def __call__(self, batch: Batch) -> Tensor:
        if batch.rows is not self._rows:  # kept for steps on the same batch
            # Once, in the process that trains: its device is known there alone.
            self._units = self._units.to(torch.float32, batch.rows.device)
            self._data = StepData.of(self._model, self._units, batch)
            self._rows = batch.rows
        return self._data.loss(self._model, self._loss)


def validation_rows(units: Units, split: Tensor, settings: Settings) -> tuple[Tensor, Tensor]:
    """First rows (U,) to run over and to forecast from, on a fixed subset of many units.

    Units that are not chosen have no rows to run over: both are their ends.
    """
    ends = units.indptr[1:]
    chosen = some_units(split, ends, VALIDATION_POSITIONS)
    # These rows stand for the whole past, which would be filtered anew in every epoch.
    warm = split - 1 - max(WARM_WINDOWS * settings.input_size, 256)
    begin = torch.where(chosen, torch.maximum(warm, units.starts), ends)
    return begin, torch.where(chosen, split - 1, ends)


class _Validation:
    """Mean loss of all forecasts of validation targets, on a fixed subset of many units."""

    def __init__(
        self, model: ForecastModel, units: Units, split: Tensor, settings: Settings
    ) -> None:
        self._model, self._units, self._loss = model, units, settings.loss
        self._ends = units.indptr[1:]
        self._begin, self._first = validation_rows(units, split, settings)
        # Few origins, as many as those of a training step, are gathered once.
        rows = int((self._ends - self._first).sum())
        self._few = rows <= settings.batch_size * FORECASTS_OF_A_SEGMENT
        self._gathered: dict[int, Origins] = {}  # by the first row

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
        # On the CPU, as every forecast is: what validates best is what will be used.
        run_filter(model.cpu(), units, self._first, begin=self._begin, visit=visit)
        model.to(device)
        return total / max(count, 1.0)


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
    lags = (
        (((1 if settings.factor else inputs[0]) + n_exog - len(known)) * settings.input_size) ** 2.0
        if settings.linear_path
        else 0.0
    )
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

    sizes, heads = (settings.options.get(name) or 1 for name in ("block_size", "n_heads"))
    blocks = sum(sizes) if isinstance(sizes, list) else sizes  # of several sizes that they fill
    unit = math.lcm(WIDTH_COUNTED * blocks, heads)  # heads divide the layer width, as blocks do
    widths = (1, 2, 3) if settings.hidden_size > 3 * unit else (settings.hidden_size / unit,)
    counts = ([count(round(unit * width), n) for width in widths] for n in (1, 2))
    width = settings.hidden_size / unit
    first, second = (
        values[0] if len(values) == 1 else float(np.polyval(np.polyfit(widths, values, 2), width))
        for values in counts
    )
    return first + (second - first) * (settings.n_layers - 1.0)
