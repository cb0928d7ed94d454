"""Parity, cycle navigation and keep-n-th: gated recurrences beside a linear one.

Table 1 of Danieli et al. (2025) at a size for two cores. A model is an embedding, RMS
normalisation, recurrent layers, RMS normalisation and a linear layer, as in their appendix C.2;
"GRU" and "LSTM" are the recurrence alone (their † columns), "GRU block" and "LSTM block" the
whole block. Every training batch is drawn anew. Training asks for the answer at every step, the
test after the last one, in sequences that are also longer than any in training. Keep-n-th takes
sines and cosines of the position beside the tokens, as there.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable

import torch
from _timing import print_machine, print_table
from torch import Tensor, nn

from tsrnn.datasets import tasks
from tsrnn.layers import LRU, NewtonBlocks, NewtonGRU, NewtonLSTM, Recurrent

MODELS: dict[str, Callable[[int, int], Recurrent]] = {
    "GRU": lambda size, layers: NewtonGRU(size, size, layers),
    "LSTM": lambda size, layers: NewtonLSTM(size, size, layers),
    "GRU block": lambda size, layers: NewtonBlocks(size, size, layers, n_heads=4),
    "LSTM block": lambda size, layers: NewtonBlocks(
        size, size, layers, cell="newton-lstm", n_heads=4
    ),
    "LRU": lambda size, layers: LRU(size, size, layers, r_min=0.5),
}
TASKS: dict[str, Callable[..., tasks.SyntheticTask]] = {
    "parity": tasks.parity,
    "cycle_navigation": tasks.cycle_navigation,
    "keep_nth": tasks.keep_nth,
}
BATCH, TEST, CHECK_EVERY, ENOUGH = 64, 1000, 100, 0.9995


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
        x = self.embedding(tokens)
        if self.positions:
            x = x + encoding(*x.shape[1:])
        return self.output(self.after(self.rnn(self.before(x))[0]))


def encoding(steps: int, size: int) -> Tensor:
    """Sines and cosines of the position, equation in section 3.5 of Vaswani et al. (2017)."""
    angles = torch.arange(steps)[:, None] / 10_000 ** (torch.arange(0, size, 2) / size)
    return torch.cat([angles.sin(), angles.cos()], 1)


def as_tensors(task: tasks.SyntheticTask) -> list[Tensor]:
    return [torch.from_numpy(part) for part in task[:3]]


@torch.no_grad()
def accuracy(model: Tagger, task: tasks.SyntheticTask) -> float:
    tokens, targets, mask = as_tensors(task)
    return (model(tokens).argmax(-1) == targets)[mask].double().mean().item()


def train(model: Tagger, name: str, length: int, steps: int, rate: float, seed: int) -> int:
    """Train until nearly all answers of 100 batches are right, or for `steps`; return the steps."""
    optimiser = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=1e-6)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    right = 0.0
    for step in range(1, steps + 1):
        task = TASKS[name](BATCH, length, every_step=True, random_state=seed_of(seed, step))
        tokens, targets, mask = as_tensors(task)
        logits = model(tokens)
        loss = nn.functional.cross_entropy(logits[mask], targets[mask])
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        right += (logits.argmax(-1) == targets)[mask].double().mean().item() / CHECK_EVERY
        if step % CHECK_EVERY == 0:
            print(f"  step {step}: loss {loss.item():.4f}, accuracy {right:.4f}", file=sys.stderr)
            if right >= ENOUGH:
                return step
            right = 0.0
    return steps


def seed_of(seed: int, step: int) -> int:
    return 1_000_000 * (seed + 1) + step


def row(name: str, kind: str, options: argparse.Namespace, seed: int) -> list[object]:
    """Train one model and test it at all lengths."""
    shape = TASKS[name](1, options.length)
    torch.manual_seed(seed)
    rnn = MODELS[kind](options.hidden_size, options.layers)
    model = Tagger(rnn, shape.n_tokens, shape.n_classes, positions=name == "keep_nth")
    start = time.perf_counter()
    steps = train(model, name, options.length, options.steps, options.learning_rate, seed)
    minutes = (time.perf_counter() - start) / 60
    tests = [
        100 * accuracy(model, TASKS[name](TEST, length, random_state=seed))
        for length in options.test_lengths
    ]
    cells = [f"{percent:.1f}" for percent in tests]
    return [name, kind, seed, *cells, f"{100 / shape.n_classes:.1f}", steps, f"{minutes:.1f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=TASKS)
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=MODELS)
    parser.add_argument("--length", type=int, default=40, help="of training sequences")
    parser.add_argument("--test-lengths", type=int, nargs="+", default=[40, 100, 256])
    parser.add_argument("--steps", type=int, default=2000, help="at most")
    parser.add_argument("--hidden-size", type=int, default=32)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--learning-rate", type=float, default=3e-3)
    parser.add_argument("--seeds", type=int, default=1)
    options = parser.parse_args()
    print_machine()
    print(f"training length {options.length}, {options.layers} layers of {options.hidden_size}, "
          f"batches of {BATCH}, AdamW, learning rate {options.learning_rate} falling as a cosine "
          f"over {options.steps} steps, {TEST} test sequences; accuracies in percent")  # fmt: skip
    rows = []
    for name in options.tasks:
        for kind in options.models:
            for seed in range(options.seeds):
                rows.append(row(name, kind, options, seed))
                print(*rows[-1], file=sys.stderr, flush=True)
    lengths = [f"length {length}" for length in options.test_lengths]
    print_table(["task", "model", "seed", *lengths, "guess", "steps", "minutes"], rows)


if __name__ == "__main__":
    main()
