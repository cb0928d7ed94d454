"""Training of a network that reads a sequence and answers after its last step.

The answer is a class, by cross-entropy and accuracy, or numbers, by squared error and its root.
`train` is a plain loop: Adam, a schedule of its rate, gradients clipped by their norm, and a
record of the course by epoch and time of the processor::

    network = RecurrentNetwork(ParaRNN(1, 128, num_layers=2), 10, aggregation="ffn")
    network.reset_parameters(torch.Generator().manual_seed(0))
    parts = {"train": (x, y), "validation": (x_v, y_v), "test": (x_t, y_t)}
    result = train(network, parts, Recipe(rate=0.002, minutes=8), seed=0)
    result["test"], result["best_epoch"], result["course"]

Sequences are a tensor (N, T, d), a list of arrays (T_i, d), padded batch by batch, or an object
with a length whose items at a tensor of rows are a tensor (B, T, d), which can draw noise when it
is asked. Labels are integers (N,), targets are floats (N, d_out): their type decides. The result
is of plain values, fit for `_runs.py`. Test data are read once, with the weights that were best on
the validation part; the time of that does not count. A run that diverged has no scores.
"""

from __future__ import annotations

import copy
import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from tsrnn.layers import RecurrentNetwork
from tsrnn.training import parameter_groups

LARGEST_LOSS = 1e4  # of a network that has exploded, where numbers are still finite


class Drawn(Protocol):
    """Sequences that are made when they are asked for."""

    def __len__(self) -> int: ...

    def __getitem__(self, rows: Tensor) -> Tensor: ...


Sequences = Tensor | Drawn | list[np.ndarray]
Part = tuple[Sequences, Tensor]


@dataclass(frozen=True)
class Recipe:
    """How a network is trained.

    `stalled` is the number of epochs without a better validation loss after which the rate is
    halved, None for never; training ends below `last_rate`. `drops` are epochs after which the
    rate is divided by ten. Gradients are clipped at `clip_norm`, infinite for not at all. An epoch
    is validated `evaluations` times. Training ends after `epochs`, or `minutes` of the processor
    by thread, validation among them. With `slow`, recurrent matrices that start without expansion
    move at a tenth of the rate, as in the fits of the package.
    """

    rate: float = 0.002
    batch_size: int = 64
    clip_norm: float = 1.0
    stalled: int | None = 3
    last_rate: float = 1e-6
    drops: tuple[int, ...] = ()
    epochs: int = 800
    evaluations: int = 1
    minutes: float = math.inf
    slow: bool = False


def read_batch(sequences: Sequences, rows: Tensor) -> tuple[Tensor, Tensor | None]:
    """Sequences of these rows (B, T, d), and their lengths (B,) if these differ."""
    if not isinstance(sequences, list):
        return sequences[rows], None
    parts = [torch.as_tensor(sequences[i], dtype=torch.float32) for i in rows.tolist()]
    lengths = torch.tensor([len(part) for part in parts])
    return nn.utils.rnn.pad_sequence(parts, batch_first=True), lengths


def answers(network: RecurrentNetwork, x: Tensor, lengths: Tensor | None = None) -> Tensor:
    """Outputs after the last step of each sequence, (B, d_out)."""
    _, h_n = network.run(x, None, lengths)
    return network.head(network.outputs(h_n[-1]))


def loss_of(outputs: Tensor, y: Tensor, reduction: str = "mean") -> Tensor:
    """Cross-entropy of labels, squared error of targets."""
    if y.is_floating_point():
        return nn.functional.mse_loss(outputs, y, reduction=reduction)
    return nn.functional.cross_entropy(outputs, y, reduction=reduction)


@torch.no_grad()
def evaluate(network: RecurrentNetwork, part: Part, batch_size: int = 500) -> tuple[float, float]:
    """Loss and score of a part: accuracy in percent, or the root of the mean squared error."""
    sequences, y = part
    network.eval()
    loss, right = 0.0, 0
    for rows in torch.arange(len(y)).split(batch_size):
        outputs = answers(network, *read_batch(sequences, rows))
        loss += loss_of(outputs, y[rows], "sum").item()
        right += 0 if y.is_floating_point() else int((outputs.argmax(1) == y[rows]).sum())
    network.train()
    loss /= y.numel()
    return loss, math.sqrt(loss) if y.is_floating_point() else 100 * right / len(y)


def seconds() -> float:
    """Of the processor, by thread, so that other work on the machine does not count."""
    return time.process_time() / torch.get_num_threads()


class Rate:
    """Rate of an optimiser over its course."""

    def __init__(self, optimiser: torch.optim.Optimizer, recipe: Recipe) -> None:
        self.groups, self.drops, self.epoch = optimiser.param_groups, recipe.drops, 0
        self.plateau = None
        if recipe.stalled is not None:
            patience = recipe.stalled * recipe.evaluations - 1
            self.plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(
                optimiser, factor=0.5, patience=patience
            )

    @property
    def value(self) -> float:
        """Rate of the next step."""
        return self.groups[0]["lr"]

    def end_validation(self, loss: float) -> None:
        """Halve the rate if the loss has stalled."""
        if self.plateau is not None:
            self.plateau.step(loss)

    def end_epoch(self) -> None:
        """Divide the rate by ten if it is time."""
        self.epoch += 1
        for group in self.groups if self.epoch in self.drops else []:
            group["lr"] /= 10


def batches(
    n: int, recipe: Recipe, generator: torch.Generator
) -> Iterator[tuple[Tensor, bool, bool]]:
    """Rows of each batch, whether to validate after it, and whether it ends an epoch."""
    for _ in range(recipe.epochs):
        order = torch.randperm(n, generator=generator).split(recipe.batch_size)
        parts = range(1, recipe.evaluations + 1)
        last = {math.ceil(len(order) * i / recipe.evaluations) for i in parts}
        for number, rows in enumerate(order, 1):
            yield rows, number in last, number == len(order)


def train(
    network: RecurrentNetwork,
    parts: Mapping[str, Part],
    recipe: Recipe,
    *,
    seed: int = 0,
    watch: Callable[[nn.Module, int], None] | None = None,
) -> dict[str, Any]:
    """Train on "train", choose by "validation", and score "test".

    `watch` gets the network and the epoch, at the start and after each whole epoch. A network
    whose loss is no longer finite, or beyond 1e4, ends there: "diverged" is true, and "validation",
    "test" and "test_loss" are None.
    """
    sequences, y = parts["train"]
    slow = network.recurrent_parameters() if recipe.slow else []
    groups = parameter_groups(network, slow, recipe.rate, weight_decay=0.0)
    optimiser = torch.optim.Adam(groups)
    rate = Rate(optimiser, recipe)
    sign = -1 if y.is_floating_point() else 1  # of a score that is better when greater
    best: dict[str, Any] = {"epoch": 0.0, "score": -math.inf,
                            "state": copy.deepcopy(network.state_dict())}  # fmt: skip
    course: list[dict[str, float]] = []
    losses: list[float] = []
    start, training, seen, diverged = seconds(), 0.0, 0, False
    if watch is not None:
        watch(network, 0)
    for rows, validates, ends in batches(len(y), recipe, torch.Generator().manual_seed(seed)):
        begun = seconds()
        optimiser.zero_grad()
        loss = loss_of(answers(network, *read_batch(sequences, rows)), y[rows])
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), recipe.clip_norm)
        optimiser.step()
        losses.append(loss.item())
        training += seconds() - begun
        seen += len(rows)
        late = seconds() - start > 60 * recipe.minutes
        if not losses[-1] < LARGEST_LOSS:
            diverged = True
            break
        if validates or late:
            validation, score = evaluate(network, parts["validation"])
            course.append({
                "epoch": round(seen / len(y), 3), "minutes": round((seconds() - start) / 60, 3),
                "training_loss": float(np.mean(losses)), "validation_loss": validation,
                "validation": score, "rate": rate.value,
            })  # fmt: skip
            print(course[-1], file=sys.stderr, flush=True)
            losses = []
            if sign * score > best["score"]:
                best = {"epoch": course[-1]["epoch"], "score": sign * score,
                        "state": copy.deepcopy(network.state_dict())}  # fmt: skip
            rate.end_validation(validation)
        if ends:
            rate.end_epoch()
            if watch is not None:
                watch(network, rate.epoch)
        if late or rate.value < recipe.last_rate:
            break
    minutes = (seconds() - start) / 60
    network.load_state_dict(best["state"])
    scores: dict[str, float | None] = {"validation": None, "test": None, "test_loss": None}
    if not diverged:
        test_loss, test = evaluate(network, parts["test"])
        scores = {"validation": sign * best["score"], "test": test, "test_loss": test_loss}
    return {
        "parameters": sum(p.numel() for p in network.parameters()),
        "epochs": round(seen / len(y), 3), "minutes": round(minutes, 2),
        "sequences_a_second": round(seen / max(training, 1e-9), 1), "best_epoch": best["epoch"],
        **scores, "diverged": diverged, "course": course,
    }  # fmt: skip
