"""Minimisation of the empirical risk over networks: a whole fit, or one epoch more."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from tsrnn.contract import Arguments, seed_of
from tsrnn.erm._function import Course, FittedFunction
from tsrnn.erm._sequences import read_sequences
from tsrnn.erm._settings import Settings, settings_of
from tsrnn.erm._targets import Targets, read_targets, read_weights
from tsrnn.erm._training import (
    EmpiricalRisk,
    RiskOfSamples,
    SampleEpoch,
    Samples,
    constant_risk,
    hold_out,
)
from tsrnn.training import parameter_groups

SHARE_NUMBERS = 20_000  # of the inputs that blocks are judged by
# Arguments that say what the weights are and how samples are read: `partial_fit` goes on with both,
# so that these stay as they were. Rates, losses and the like may change from call to call.
OF_THE_NETWORK = (
    "hidden_size", "cell", "block_size", "n_layers", "nonlinearity", "n_states", "window",
    "n_heads", "engine", "layer_options",
    "aggregation", "input_projection", "many_to_many", "pooling", "standardize",
)  # fmt: skip


def minimise_risk(
    model: str, kind: type[Targets], arguments: Arguments, X: Any, y: Any, sample_weight: Any
) -> FittedFunction:
    """Fitted function from samples, given as to `fit` of an estimator.

    `model` is the class of the estimator, for messages, and `kind` that of its targets.
    """
    from tsrnn.training import train  # Lightning is slow to load

    settings = settings_of(arguments.as_dict())
    targets, samples = _read(model, kind, settings, X, y, sample_weight)
    generator = torch.Generator().manual_seed(seed_of(arguments.random_state))
    counted = samples.counted()
    strata = None
    if targets.classes is not None and not settings.many_to_many:
        strata = samples.targets[counted.numpy()]
    chosen, held_out = hold_out(counted, settings, strata, generator)
    training = samples.part(chosen)
    # Scales are those of the training part: held-out samples are as new as those to come.
    function = _random_start(model, arguments, targets, training, settings, generator)
    data, network, loss = function.training_data(samples), function.network, settings.loss
    judged = held_out if len(held_out) else chosen
    with _seeded_dropout(generator, settings.device):
        history, best_epoch = train(
            network,
            SampleEpoch(data, chosen, settings.batch_size, generator),
            loss=EmpiricalRisk(network, loss, function.reading),
            validate=RiskOfSamples(network, data, judged, loss, function.reading, function.bounds),
            groups=parameter_groups(network, [], settings.learning_rate, settings.weight_decay),
            max_epochs=settings.max_epochs,
            patience=settings.patience if settings.early_stopping else None,
            device=settings.device,
            callbacks=settings.callbacks,
            verbose=settings.verbose,
        )
    network.eval()
    skill = None
    if len(held_out) and best_epoch:  # a random start has learned nothing, whatever its risk
        # The network is judged by what it takes off the risk of the best constant.
        constant = constant_risk(data, chosen, held_out, loss)
        if constant > 0:
            skill = 1 - history[best_epoch - 1]["val_loss"] / constant
    longest = int(data.lengths.max())
    course = Course(len(chosen), len(held_out), tuple(history), best_epoch, longest, skill)
    parts = {"training": training}
    if len(held_out):
        parts["validation"] = samples.part(held_out)
    return function.judged(course, data.sample(SHARE_NUMBERS), loss, **parts)


@contextmanager
def _seeded_dropout(generator: torch.Generator, device: str) -> Iterator[None]:
    """Seed torch's global generators for a training on a device, and leave them as they were."""
    # torch's dropout takes no generator of one's own, and draws on the device it runs on.
    cuda = range(torch.cuda.device_count()) if device.startswith("cuda") else ()
    with torch.random.fork_rng(devices=cuda):
        # torch.manual_seed seeds the generators of all devices, of which a CPU fit restores none.
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
    """Fitted function after one epoch more, from the one before or from a random start.

    `classes` are all that there will be; those of y by default.
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
    # Another order of the samples at each call, and the same ones in another run.
    seed = seed_of(arguments.random_state) + (0 if before is None else before.course.n_train)
    generator = torch.Generator().manual_seed(seed % 2**63)
    counted = samples.counted()
    training = samples.part(counted)
    if before is None:
        function = _random_start(model, arguments, targets, training, settings, generator)
    else:
        # Copies, here and of the moments: other estimators may have the function before.
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
    # Neither the history of a fit nor its held-out part describes this network any more.
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
    """Targets as those before or, without them, learned from y; and the samples."""
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
    """Network at a random start, with the scales of the training part."""
    input_scaler = None
    if settings.standardize:
        targets = targets.standardised(training.targets, training.weights)
        input_scaler = training.input_scaler()
    inputs = training.sequences.inputs
    network = settings.network(inputs.n_inputs, targets.n_outputs)
    network.prepare(verbose=bool(settings.verbose))
    network.reset_parameters(generator)
    return FittedFunction(model, arguments, inputs, input_scaler, targets, network)
