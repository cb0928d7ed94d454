"""Training and fine-tuning of the prior network."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from tsrnn.prior._examples import ADAPTING_STEPS, PANEL_RATE, Batch, TrainingExamples
from tsrnn.prior._forward import PROBABILITIES
from tsrnn.prior._network import PriorNetwork

LARGEST_LOSS = 30.0  # beyond, losses grow at a tenth of the rate: such series are badly scaled
BATCH_SIZE = 32  # series


def loss(network: PriorNetwork, batch: Batch) -> Tensor:
    """Pinball loss of all quantiles plus the absolute error of the median, in units of MASE."""
    forecast = network(*batch.inputs)
    probabilities = torch.tensor(PROBABILITIES, dtype=torch.float32)[:, None]
    known = torch.isfinite(batch.actual)
    actual = torch.where(known, batch.actual, forecast.median.detach())
    beyond = actual[:, None] - forecast.quantiles
    pinball = 2 * torch.maximum(probabilities * beyond, (probabilities - 1) * beyond)
    losses = pinball.mean(1) + (actual - forecast.median).abs()
    losses = losses * batch.weight[:, None]
    losses = torch.where(losses > LARGEST_LOSS, 0.9 * LARGEST_LOSS + 0.1 * losses, losses)
    return torch.where(known, losses, 0.0).sum() / known.sum()


def train_network(
    network: PriorNetwork,
    draw: Callable[[int], Sequence[TrainingExamples]],
    *,
    epochs: int,
    learning_rate: float = 2e-3,
    weight_decay: float = 0.02,
    batch_size: int = BATCH_SIZE,
    seed: int = 0,
    checkpoint: Path | None = None,
    report: Callable[[Mapping[str, float]], None] | None = None,
) -> PriorNetwork:
    """Train a network, from a checkpoint if its file exists.

    Parameters
    ----------
    network : PriorNetwork
    draw : callable
        Function ``draw(epoch)`` that returns the examples of an epoch.
    epochs : int
    learning_rate, weight_decay : float
        Arguments of AdamW; the rate decays to zero by half a cosine.
    batch_size : int
        Series of a step.
    seed : int
    checkpoint : Path, optional
        File of weights, optimiser and epoch, written after each epoch.
    report : callable, optional
        Function called after each epoch with its number and mean loss.

    Returns
    -------
    PriorNetwork
        The given network, trained in place.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.prior import PriorNetwork, SeriesPrior, make_examples, train_network
    >>> series = list(SeriesPrior().sample(8, 30, 1, 0))
    >>> examples = make_examples(series, 1, np.random.default_rng(0))
    >>> losses = []
    >>> network = PriorNetwork(hidden_size=4, n_layers=1, width=8)
    >>> network = train_network(network, lambda _: [examples], epochs=3, report=losses.append)
    >>> [epoch["epoch"] for epoch in losses]
    [0, 1, 2]
    """
    optimiser = torch.optim.AdamW(network.parameters(), lr=learning_rate, weight_decay=weight_decay)
    first = 0
    if checkpoint is not None and checkpoint.exists():
        saved = torch.load(checkpoint, weights_only=True)
        network.load_state_dict(saved["network"])
        optimiser.load_state_dict(saved["optimiser"])
        first = saved["epoch"] + 1
    for epoch in range(first, epochs):
        rng = np.random.default_rng([seed, epoch])
        batches = []
        for examples in draw(epoch):
            # Series of similar lengths share a batch, so that little is padding.
            lengths = examples.rows[examples.indptr[1:] - 1]
            order = np.argsort(lengths + 12 * rng.random(len(lengths)))
            ends = range(batch_size, len(order), batch_size)
            batches += [(examples, part) for part in np.split(order, ends)]
        rng.shuffle(batches)  # type: ignore[arg-type]
        total = 0.0
        for number, (examples, part) in enumerate(batches):
            done = (epoch + number / len(batches)) / epochs
            warm = min(1.0, (epoch * len(batches) + number + 1) / 50)  # AdamW's moments start at 0
            rate = learning_rate * warm * half_cosine(done)
            total += take_step(network, optimiser, examples.select(part), rate)
        if checkpoint is not None:
            state = {"network": network.state_dict(), "optimiser": optimiser.state_dict()}
            partial = checkpoint.with_suffix(".partial")
            torch.save(state | {"epoch": epoch}, partial)
            partial.replace(checkpoint)  # atomic: an interrupt leaves the last whole file
        if report is not None:
            report({"epoch": epoch, "loss": total / len(batches)})
    return network.eval()


def half_cosine(done: float) -> float:
    """Factor of the learning rate after a share `done` of the training."""
    return 0.5 * (1 + math.cos(math.pi * done))


def take_step(
    network: PriorNetwork, optimiser: torch.optim.Optimizer, batch: Batch, learning_rate: float
) -> float:
    """Take a step of the optimiser and return the loss before it."""
    for group in optimiser.param_groups:
        group["lr"] = learning_rate
    optimiser.zero_grad()
    value = loss(network, batch)
    value.backward()
    torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
    optimiser.step()
    return float(value.detach())


def adapt_network(
    network: PriorNetwork, examples: TrainingExamples, learning_rate: float = PANEL_RATE
) -> PriorNetwork:
    """Fine-tune a copy of a network in a few small steps.

    A step of Adam moves a weight by hardly more than the learning rate, so `ADAPTING_STEPS` steps
    act as a prior centred at the pretrained weights. The seed of the batches is fixed and dropout
    is off: the same examples give the same network.

    Parameters
    ----------
    network : PriorNetwork
        Pretrained network, left unchanged.
    examples : TrainingExamples
    learning_rate : float
        Rate of the first step, which decays to zero by half a cosine.

    Returns
    -------
    PriorNetwork
        Fine-tuned copy.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.prior import SeriesPrior, adapt_network, make_examples, trained_prior
    >>> series = list(SeriesPrior().sample(40, 30, 1, 0))
    >>> examples = make_examples(series, 1, np.random.default_rng(0))
    >>> network = trained_prior().network
    >>> adapt_network(network, examples) is network
    False
    """
    rng, waiting = np.random.default_rng(0), np.empty(0, int)
    size = min(BATCH_SIZE, len(examples))
    with torch.inference_mode(False), torch.enable_grad():  # a caller may have turned them off
        adapted = copy.deepcopy(network).eval().requires_grad_(True)
        optimiser = torch.optim.Adam(adapted.parameters())
        for step in range(ADAPTING_STEPS):
            if len(waiting) < size:
                waiting = rng.permutation(len(examples))
            chosen, waiting = np.sort(waiting[:size]), waiting[size:]
            rate = learning_rate * half_cosine(step / ADAPTING_STEPS)
            take_step(adapted, optimiser, examples.select(chosen), rate)
        return adapted.requires_grad_(False)
