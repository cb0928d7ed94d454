"""Minimisation of the empirical risk over networks: a whole fit, or one epoch more."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tsrnn.contract import Arguments, seed_of
from tsrnn.erm._function import Course, FittedFunction
from tsrnn.erm._resampling import named
from tsrnn.erm._sequences import read_sequences
from tsrnn.erm._settings import Settings, settings_of
from tsrnn.erm._targets import Targets, read_targets, read_weights
from tsrnn.erm._training import (
    EmpiricalRisk,
    NumberedEpoch,
    PooledData,
    RiskOfSamples,
    SampleEpoch,
    Samples,
    TrainingData,
    constant_risk,
    hold_out,
)
from tsrnn.training import parameter_groups, train_replicates

NUMBERS_TOGETHER = 16_000_000  # states in a batch of jointly trained networks: 64 MB in float32
SHARE_NUMBERS = 20_000  # size of the inputs on which shares of blocks are computed
# Arguments that define the weights and the reading of samples, which `partial_fit` continues: they
# must not change. Learning rates, losses and others may change from call to call.
OF_THE_NETWORK = (
    "hidden_size", "cell", "block_size", "n_layers", "nonlinearity", "n_states", "window",
    "n_heads", "engine", "layer_options",
    "aggregation", "input_projection", "many_to_many", "pooling", "standardize",
)  # fmt: skip


def minimise_risk(
    model: str, kind: type[Targets], arguments: Arguments, X: Any, y: Any, sample_weight: Any
) -> FittedFunction:
    """Return the function fitted to samples, with arguments as in `fit` of an estimator.

    `model` is the name of the estimator's class, for messages; `kind` is the class of its targets.
    """
    return _trained(RandomStart.of(model, kind, arguments, X, y, sample_weight))


def minimise_risks(
    model: str,
    kind: type[Targets],
    arguments: Sequence[Arguments],
    samples: Sequence[Callable[[], tuple[Any, Any, Any]]],
    names: Sequence[str],
) -> list[FittedFunction]:
    """Return the functions of many fits, each equal to `minimise_risk` up to rounding.

    Networks of one shape are trained in one pass, as many as memory allows. Each fit has arguments,
    without callbacks and dropout; a function that returns X, y and sample weights; and a name,
    which is added to its errors.
    """
    functions: list[FittedFunction] = []
    while len(functions) < len(names):
        first = len(functions)
        starts: list[RandomStart] = []
        # Keep the samples of one pass at a time in memory.
        while first + len(starts) < len(names) and len(starts) < _most_together(starts):
            i = first + len(starts)
            with named(names[i]):
                starts.append(RandomStart.of(model, kind, arguments[i], *samples[i]()))
        alike: list[list[int]] = []
        for i, start in enumerate(starts):
            group = next((g for g in alike if starts[g[0]].is_like(start)), None)
            if group is None:
                alike.append([i])
            else:
                group.append(i)
        trained: dict[int, FittedFunction] = {}
        for group in alike:
            chosen = [starts[i] for i in group], [names[first + i] for i in group]
            trained |= zip(group, _trained_together(*chosen), strict=True)
        functions += [trained[i] for i in range(len(starts))]
    return functions


@dataclass(frozen=True, eq=False)
class RandomStart:
    """Fit before training: a network at its random start, with training and held-out samples.

    `samples` are in the units of the user, `data` in the scales of the network, which are computed
    on the training samples. `chosen` and `held_out` are positions of training and held-out samples.
    """

    settings: Settings
    function: FittedFunction
    samples: Samples
    data: TrainingData
    chosen: Tensor
    held_out: Tensor
    generator: torch.Generator

    @classmethod
    def of(
        cls, model: str, kind: type[Targets], arguments: Arguments, X: Any, y: Any, weight: Any
    ) -> RandomStart:
        """Return the start of a fit with the arguments and samples of an estimator."""
        settings = settings_of(arguments.as_dict())
        targets, samples = _read(model, kind, settings, X, y, weight)
        generator = torch.Generator().manual_seed(seed_of(arguments.random_state))
        counted = samples.counted()
        strata = None
        if targets.classes is not None and not settings.many_to_many:
            strata = samples.targets[counted.numpy()]
        chosen, held_out = hold_out(counted, settings, strata, generator)
        # Scales from the training part only, so that held-out samples stand for new ones.
        training = samples.part(chosen)
        function = _random_start(model, arguments, targets, training, settings, generator)
        data = function.training_data(samples)
        return cls(settings, function, samples, data, chosen, held_out, generator)

    @property
    def judged(self) -> Tensor:
        """Positions of the samples whose risk selects the epoch."""
        return self.held_out if len(self.held_out) else self.chosen

    @property
    def shape(self) -> tuple[int, int]:
        """Number of inputs and outputs of the network."""
        return self.function.inputs.n_inputs, self.function.targets.n_outputs

    def is_like(self, other: RandomStart) -> bool:
        """Return True if settings and shape of the network are equal."""
        return self.settings == other.settings and self.shape == other.shape

    def epoch(self, number: int | None = None) -> SampleEpoch:
        """Return epochs of the training part; `number` is the position among many networks."""
        parts = self.data, self.chosen, self.settings.batch_size, self.generator
        return SampleEpoch(*parts) if number is None else NumberedEpoch(number, *parts)

    def loss(self) -> EmpiricalRisk:
        """Return the risk that training minimises."""
        return EmpiricalRisk(self.function.network, self.settings.loss, self.function.reading)

    def validation(self) -> RiskOfSamples:
        """Return the risk that selects the epoch."""
        function = self.function
        return RiskOfSamples(
            function.network, self.data, self.judged, self.settings.loss, function.reading,
            function.bounds,
        )  # fmt: skip

    def groups(self) -> list[dict[str, Any]]:
        """Return the parameter groups of the optimiser."""
        settings = self.settings
        return parameter_groups(
            self.function.network, [], settings.learning_rate, settings.weight_decay
        )

    def course(self) -> dict[str, Any]:
        """Return the arguments of the training loop."""
        settings = self.settings
        return {
            "max_epochs": settings.max_epochs,
            "patience": settings.patience if settings.early_stopping else None,
            "device": settings.device,
            "verbose": settings.verbose,
        }

    def trained(self, history: Sequence[dict[str, float]], best_epoch: int) -> FittedFunction:
        """Return the function of the trained network, with its risk."""
        self.function.network.eval()
        data, loss, skill = self.data, self.settings.loss, None
        if len(self.held_out) and best_epoch:  # a random start has learned nothing
            # Skill is the reduction of the risk relative to the best constant.
            constant = constant_risk(data, self.chosen, self.held_out, loss)
            if constant > 0:
                skill = 1 - history[best_epoch - 1]["val_loss"] / constant
        course = Course(
            len(self.chosen), len(self.held_out), tuple(history), best_epoch,
            int(data.lengths.max()), skill,
        )  # fmt: skip
        parts = {"training": self.samples.part(self.chosen)}
        if len(self.held_out):
            parts["validation"] = self.samples.part(self.held_out)
        return self.function.judged(course, data.sample(SHARE_NUMBERS), loss, **parts)


def _trained(start: RandomStart) -> FittedFunction:
    """Train one start and return its function."""
    from tsrnn.training import train  # Lightning is slow to load

    with _seeded_dropout(start.generator, start.settings.device):
        history, best_epoch = train(
            start.function.network, start.epoch(), loss=start.loss(), validate=start.validation(),
            groups=start.groups(), callbacks=start.settings.callbacks, **start.course(),
        )  # fmt: skip
    return start.trained(history, best_epoch)


def _trained_together(starts: Sequence[RandomStart], names: Sequence[str]) -> list[FittedFunction]:
    """Train starts of equal settings and shape in one pass, and return their functions."""
    if len(starts) == 1:
        with named(names[0]):
            return [_trained(starts[0])]
    bounds = [start.function.bounds for start in starts]
    stacked = starts[0].function.network.takes_replicates and starts[0].settings.device == "cpu"
    data = PooledData([start.data for start in starts], bounds, stacked)
    results = train_replicates(
        [start.function.network for start in starts],
        [start.epoch(number) for number, start in enumerate(starts)],
        loss=starts[0].loss(),
        validate=starts[0].validation().of_batch,
        held_out=[(number, start.judged) for number, start in enumerate(starts)],
        groups=[start.groups() for start in starts],
        collate=data.batch,
        stacked=stacked,
        **starts[0].course(),
    )
    functions = []
    for start, name, (history, best_epoch, failure) in zip(starts, names, results, strict=True):
        with named(name):
            if failure is not None:
                raise failure
            functions.append(start.trained(history, best_epoch))
    return functions


def _most_together(starts: Sequence[RandomStart]) -> int:
    """Return the number of networks per pass, judged by the first one; at least 1."""
    if not starts:
        return 1
    start, settings = starts[0], starts[0].settings
    steps, longest = len(start.data.values), int(start.data.lengths.max())
    samples = max(min(start.epoch().batch_size, len(start.chosen)), len(start.judged))
    states = samples * longest * settings.hidden_size * settings.n_layers
    return max(1, NUMBERS_TOGETHER // max(states, steps * start.shape[0]))


@contextmanager
def _seeded_dropout(generator: torch.Generator, device: str) -> Iterator[None]:
    """Seed torch's global generators for a training on a device, and restore them."""
    # Dropout of torch uses the global generator of its device.
    cuda = range(torch.cuda.device_count()) if device.startswith("cuda") else ()
    with torch.random.fork_rng(devices=cuda):
        # torch.manual_seed would also seed other devices, which a CPU fit does not restore.
        seeding = torch.default_generator if device == "cpu" else torch
        seeding.manual_seed(generator.initial_seed())
        yield


def take_epoch(
    model: str,
    kind: type[Targets],
    arguments: Arguments,
    before: FittedFunction | None,
    X: Any,
    y: Any,
    sample_weight: Any,
    classes: np.ndarray | None = None,
) -> FittedFunction:
    """Return the function after one more epoch, from the one before or from a random start.

    `classes` are all labels, by default those of y.
    """
    from tsrnn.training import train_for

    given = arguments.as_dict()
    fitted = given if before is None else before.arguments.as_dict()
    for name in OF_THE_NETWORK:
        if given[name] is not fitted[name] and given[name] != fitted[name]:
            raise ValueError(
                f"partial_fit needs the arguments of the fit; {name} was {fitted[name]!r} "
                f"and is now {given[name]!r}. Set it back, or fit again"
            )
    settings = settings_of(given)
    targets, samples = _read(model, kind, settings, X, y, sample_weight, before, classes)
    # The seed depends on the samples seen: the order differs between calls, not between runs.
    seed = seed_of(arguments.random_state) + (0 if before is None else before.course.n_train)
    generator = torch.Generator().manual_seed(seed % 2**63)
    counted = samples.counted()
    training = samples.part(counted)
    if before is None:
        function = _random_start(model, arguments, targets, training, settings, generator)
    else:
        # Copy network and moments, since other estimators may share the function before.
        network = copy.deepcopy(before.network)
        function = replace(before, arguments=arguments, network=network)
    data, network, course = function.training_data(samples), function.network, function.course
    with _seeded_dropout(generator, settings.device):
        moments = train_for(
            network.train(),
            SampleEpoch(data, counted, settings.batch_size, generator, least_steps=1),
            loss=EmpiricalRisk(network, settings.loss, function.reading),
            groups=parameter_groups(network, [], settings.learning_rate, settings.weight_decay),
            rates=[settings.learning_rate],
            device=settings.device,
            callbacks=settings.callbacks,
            verbose=settings.verbose,
            moments=copy.deepcopy(course.moments),
        )
    network.eval()
    # History and held-out part of an earlier fit do not describe this network.
    course = Course(
        n_train=course.n_train + len(counted),
        sample_length=int(data.lengths.max()),
        moments=moments,
    )
    return function.judged(course, data.sample(SHARE_NUMBERS), settings.loss, training=training)


def _read(
    model: str,
    kind: type[Targets],
    settings: Settings,
    X: Any,
    y: Any,
    sample_weight: Any,
    before: FittedFunction | None = None,
    classes: np.ndarray | None = None,
) -> tuple[Targets, Samples]:
    """Return the encoding of targets, from `before` or else from y, and the samples."""
    many = settings.many_to_many
    sequences = read_sequences(X, model, None if before is None else before.inputs)
    y = read_targets(y, sequences, many)
    targets: Targets
    if before is None:
        targets, values = kind.of(y, sequences, many, classes)
    else:
        targets, values = before.targets, before.targets.read(y, sequences, many)
    return targets, Samples(sequences, values, read_weights(sample_weight, sequences, many), many)


def _random_start(
    model: str,
    arguments: Arguments,
    targets: Targets,
    training: Samples,
    settings: Settings,
    generator: torch.Generator,
) -> FittedFunction:
    """Return the function of a network at its random start, with scales of the training part."""
    input_scaler = None
    if settings.standardize:
        targets = targets.standardised(training.targets, training.weights)
        input_scaler = training.input_scaler()
    inputs = training.sequences.inputs
    network = settings.network(inputs.n_inputs, targets.n_outputs)
    network.prepare(verbose=bool(settings.verbose))
    network.reset_parameters(generator)
    return FittedFunction(model, arguments, inputs, input_scaler, targets, network)
