"""Synthetic tasks of Table 1 of Danieli et al. (2025): state tracking and recall by one layer.

A model is an embedding, RMS normalisation, one recurrent layer of 64 units, RMS normalisation and
a linear layer, as in their appendix C.2. Layers are the diagonal GRU and LSTM by themselves and in
the block of appendix C.1 (ParaGRU, ParaLSTM), GRU and LSTM in 2 x 2 blocks and with full matrices,
and the LRU, whose recurrence is linear. Recurrent diagonals are clipped to 0.9, but not on parity,
and keep-n-th has sines and cosines of the position beside the tokens, as there.

Training asks for the answer at every step where a task has one, the test as the task does, at the
length of training and at twice it. `--recipe small` takes shorter sequences, each of them once, and
`--recipe medium` ten times as many; `--recipe paper` the lengths, numbers of samples and epochs,
batches and seeds of appendix C.2. The best seed counts, as there.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from _runs import Key, kept_results, read_run_options, run_all
from _timing import option_parser, print_table
from torch import Tensor, nn

from tsrnn.datasets import tasks
from tsrnn.layers import LRU, NewtonBlocks, NewtonGRU, NewtonLSTM, ParaRNN, Recurrent

SIZE, HEADS, LIMIT = 64, 4, 0.9
MODELS: dict[str, Callable[[float | None], Recurrent]] = {
    "GRU": lambda limit: NewtonGRU(SIZE, SIZE, max_recurrent=limit),
    "LSTM": lambda limit: NewtonLSTM(SIZE, SIZE, max_recurrent=limit),
    "GRU block": lambda limit: NewtonBlocks(SIZE, SIZE, 1, n_heads=HEADS, max_recurrent=limit),
    "LSTM block": lambda limit: NewtonBlocks(
        SIZE, SIZE, 1, cell="newton-lstm", n_heads=HEADS, max_recurrent=limit
    ),
    "GRU 2x2": lambda limit: ParaRNN(SIZE, SIZE, 2, cell="gru"),
    "LSTM 2x2": lambda limit: ParaRNN(SIZE, SIZE, 2, cell="lstm"),
    "GRU full": lambda limit: ParaRNN(SIZE, SIZE, SIZE, cell="gru"),
    "LSTM full": lambda limit: ParaRNN(SIZE, SIZE, SIZE, cell="lstm"),
    "LRU": lambda limit: LRU(SIZE, SIZE, 1, r_min=0.5),
}
EVERY = {"every_step": True}


@dataclass(frozen=True)
class Task:
    """A column of Table 1: how to draw it, lengths in both recipes, and the training set there."""

    draw: Callable[..., tasks.SyntheticTask]
    small: int
    paper: int
    many: bool  # a million sequences in batches of 512; else 10,000 in batches of 16
    training: dict[str, Any]  # options of training alone
    options: dict[str, Any]


TASKS: dict[str, Task] = {
    "keep 5th": Task(tasks.keep_nth, 40, 100, False, EVERY, {}),
    "parity": Task(tasks.parity, 40, 100, False, EVERY, {}),
    "MQAR": Task(tasks.mqar, 40, 100, False, {}, {}),
    "1 hop": Task(tasks.k_hop, 40, 100, False, {}, {}),
    "2 hops": Task(tasks.k_hop, 40, 100, False, {}, {"hops": 2, "vocabulary": 5}),
    "cycle": Task(tasks.cycle_navigation, 40, 100, True, EVERY, {}),
    "arithmetic": Task(tasks.modular_arithmetic, 20, 20, True, EVERY, {}),
    "copy": Task(tasks.copy_memory, 50, 50, True, {}, {}),
    "A5": Task(tasks.alternating_group, 20, 20, True, {}, {}),
}
# Rows of Table 1, percent, in the order of TASKS.
PAPER = {
    "LSTM (paper)": (100, 100, 100, 100, 100, 100, 100, 100, 100),
    "GRU (paper)": (100, 100, 100, 100, 100, 100, 100, 100, 100),
    "ParaLSTM (paper)": (100, 100, 100, 100, 100, 95, 94, 67, 38),
    "ParaGRU (paper)": (100, 100, 100, 100, 100, 97, 90, 63, 40),
    "Mamba2 (paper)": (1, 52, 100, 100, 98, 57, 44, 55, 36),
    "Transformer (paper)": (100, 53, 100, 82, 78, 100, 57, 100, 28),
}


@dataclass(frozen=True)
class Recipe:
    """Training: sequences, passes over them, batches, learning rate; test sequences and seeds."""

    samples: int
    epochs: int
    batch: int
    learning_rate: float
    test: int
    seeds: int


def recipe_of(name: str, task: Task) -> Recipe:
    """Settings of appendix C.2, or those of minutes: each sequence is seen once."""
    if name in STEPS:
        return Recipe(64 * STEPS[name], 1, 64, 3e-3, 2000, 1)
    if task.many:
        return Recipe(1_000_000, 1000, 512, 5e-4, 100_000, 3)
    return Recipe(10_000, 3000, 16, 5e-4, 100_000, 3)


STEPS = {"small": 1500, "medium": 15_000}  # minutes a run, and ten times as long
CHECK_EVERY, ENOUGH = 100, 0.9995  # batches; share of right answers at which training stops
TEST_BATCH, MOST_SEEDS = 500, 10


class Tagger(nn.Module):
    """Logits of the answer at every step."""

    def __init__(self, rnn: Recurrent, n_tokens: int, n_classes: int, positions: bool) -> None:
        super().__init__()
        size = rnn.hidden_size
        self.embedding = nn.Embedding(n_tokens, size)
        self.positions = positions
        self.before, self.rnn, self.after = nn.RMSNorm(size), rnn, nn.RMSNorm(size)
        self.output = nn.Linear(size, n_classes)

    def forward(self, tokens: Tensor) -> Tensor:
        """Tokens (B, T) to logits (B, T, n_classes)."""
        return self.output(self.after(self.rnn(self.inputs(tokens))[0]))

    def inputs(self, tokens: Tensor) -> Tensor:
        """Inputs (B, T, size) of the recurrent layer."""
        x = self.embedding(tokens)
        if self.positions:
            x = x + encoding(*x.shape[1:])
        return self.before(x)


def encoding(steps: int, size: int) -> Tensor:
    """Sines and cosines of the position, equation in section 3.5 of Vaswani et al. (2017)."""
    angles = torch.arange(steps)[:, None] / 10_000 ** (torch.arange(0, size, 2) / size)
    return torch.cat([angles.sin(), angles.cos()], 1)


def new_model(name: str, kind: str, seed: int) -> Tagger:
    """Model of a task before training."""
    shape = TASKS[name].draw(1, TASKS[name].small, **TASKS[name].options)
    torch.manual_seed(seed)
    # "Norm clipping was detrimental to the cells' ability to solve" parity.
    rnn = MODELS[kind](None if name == "parity" else LIMIT)
    return Tagger(rnn, shape.n_tokens, shape.n_classes, positions=name == "keep 5th")


def batches(data: tasks.SyntheticTask, recipe: Recipe, seed: int) -> Iterator[list[Tensor]]:
    """Tokens, targets and masks of all batches of all epochs, in random order."""
    rng = np.random.default_rng(seed)
    for _ in range(recipe.epochs):
        order = rng.permutation(len(data.tokens))
        for i in range(0, len(order) - recipe.batch + 1, recipe.batch):
            rows = order[i : i + recipe.batch]
            yield [torch.from_numpy(part[rows]) for part in data[:3]]


def train(model: Tagger, data: tasks.SyntheticTask, recipe: Recipe, seed: int) -> int:
    """Train until nearly all answers of 100 batches are right, or to the end; return the steps."""
    optimiser = torch.optim.AdamW(
        model.parameters(), lr=recipe.learning_rate, betas=(0.9, 0.999), weight_decay=1e-6
    )
    most = recipe.epochs * (len(data.tokens) // recipe.batch)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, most)
    right, step = 0.0, 0
    for tokens, targets, mask in batches(data, recipe, seed):
        step += 1
        logits = model(tokens)[mask]
        loss = nn.functional.cross_entropy(logits, targets[mask])
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        right += (logits.argmax(-1) == targets[mask]).double().mean().item() / CHECK_EVERY
        if step % CHECK_EVERY == 0:
            if step % 500 == 0 or right >= ENOUGH:
                print(f"  step {step} of {most}: loss {loss.item():.4f}, accuracy {right:.4f}",
                      file=sys.stderr, flush=True)  # fmt: skip
            if right >= ENOUGH:
                break
            right = 0.0
    return step


@torch.no_grad()
def accuracy(model: Tagger, data: tasks.SyntheticTask) -> float:
    """Share of right answers, percent."""
    model.eval()
    right = asked = 0
    for i in range(0, len(data.tokens), TEST_BATCH):
        part = [torch.from_numpy(each[i : i + TEST_BATCH]) for each in data[:3]]
        tokens, targets, mask = part
        right += int((model(tokens).argmax(-1) == targets)[mask].sum())
        asked += int(mask.sum())
    return 100 * right / asked


def run(key: Key) -> dict[str, Any]:
    """Train one model on one task and test it."""
    task = TASKS[key["task"]]
    recipe, seed = recipe_of(key["recipe"], task), key["seed"]
    length = task.small if key["recipe"] in STEPS else task.paper
    model = new_model(key["task"], key["model"], seed)
    start = time.perf_counter()
    options = task.options | task.training
    data = task.draw(recipe.samples, length, **options, random_state=2 * seed)
    steps = train(model, data, recipe, seed)
    minutes = (time.perf_counter() - start) / 60
    tests = [
        accuracy(
            model, task.draw(recipe.test, times * length, **task.options, random_state=2 * seed + 1)
        )
        for times in (1, 2)
    ]
    return {"length": length, "accuracy": tests[0], "at twice the length": tests[1],
            "steps": steps, "minutes": round(minutes, 2)}  # fmt: skip


def keys(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Runs that the options ask for."""
    return [
        {"recipe": options.recipe, "task": name, "model": kind, "seed": seed}
        for name in options.tasks
        for kind in options.models
        for seed in range(options.seeds or recipe_of(options.recipe, TASKS[name]).seeds)
    ]


def best(options: argparse.Namespace, name: str, kind: str, part: str) -> str:
    """Best seed of the runs that are there."""
    key = {"recipe": options.recipe, "task": name, "model": kind}
    kept = kept_results(options, (key | {"seed": seed} for seed in range(MOST_SEEDS)))
    values = [result[part] for _, result in kept]
    return f"{max(values):.0f}" if values else ""


def main() -> None:
    parser = option_parser(__doc__)
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=TASKS)
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=MODELS)
    parser.add_argument("--recipe", default="small", choices=(*STEPS, "paper"))
    parser.add_argument("--seeds", type=int, help="number of seeds; that of the recipe by default")
    options = read_run_options(parser, "tasks")
    run_all(options, keys(options), run)
    for part in ("accuracy", "at twice the length"):
        print(f"\n{part}, percent, recipe {options.recipe}\n")
        rows: list[list[object]] = [
            [kind, *(best(options, name, kind, part) for name in TASKS)] for kind in MODELS
        ]
        if part == "accuracy":
            rows += [[name, *row] for name, row in PAPER.items()]
            guess = (
                TASKS[name].draw(1, TASKS[name].small, **TASKS[name].options) for name in TASKS
            )
            rows.append(["1 / classes", *(f"{100 / each.n_classes:.0f}" for each in guess)])
        print_table(["model", *TASKS], rows)


if __name__ == "__main__":
    main()
