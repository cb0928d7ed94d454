"""The adding problem: test errors along training (Cai et al. 2026, D.6; Rusch et al. 2022, 5, B.1).

Three recipes, of one layer of 128 units, batches of 50 new sequences, mean squared error, Adam:

- ``cai``: T = 100 and 500, rate 0.002 divided by 10 every 20,000 iterations, 60,000 iterations,
  ten replicates (Figures D.2 to D.5). The batch size is not published.
- ``figure-1``: N = 2000, 5000 and 10,000 at the rate 0.0026 that Table 8 of Rusch et al. has for
  LEM, 30,000 iterations as the logs of their code. LEM has dt = 0.0242 at N = 10,000, as in
  Table 8, and 1 / sqrt(N) below.
- ``figure-3``: LEM with dt = 1 / sqrt(N) at N = 250, 500, 1000 and 2000, ten replicates.

Models of the papers have full matrices, which start as in torch; names with "Para" have blocks of 2
with the start of `tsrnn.layers`, "chrono" the biases of Tallec and Ollivier with T_max = N. The
input and forget gates of "dt-LSTM" are scaled by LEM's dt, appendix D of Rusch et al. "LRU"
has a network of 128 units at every step of the input too: what is linear up to its states cannot
multiply mark and number. "attention" has two layers, of which one is recurrent. The error of the
constant 1 is 0.167.

Runs are kept; ``--run-minutes`` ends it after so many processor
minutes of training, which belongs to its name. Times are of training alone, without the tests.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from _runs import Key, kept_results, read_run_options, run_all
from _timing import option_parser, print_table
from torch import Tensor, nn

from tsrnn.datasets import adding_problem
from tsrnn.kernels import MatrixForm
from tsrnn.layers import LEM, LRU, BlockRecurrentAttention, ParaRNN

UNITS, BATCH, TESTS = 128, 50, 1000
GOALS = (0.1, 0.01, 0.001)  # errors by which a course is read; a constant has 0.167


class WithEncoder(nn.Module):
    """Recurrent layer on the units of a perceptron of the inputs."""

    def __init__(self, layer: nn.Module, input_size: int, units: int) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(input_size, units), nn.ReLU())
        self.layer = layer

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Outputs (B, T, units) and the last state."""
        return self.layer(self.encoder(x))


def gated(cell: str, block_size: int | None, chrono: bool) -> Callable[[float, int], nn.Module]:
    """Layer of a cell: full matrices start as in torch, blocks as they do by default."""

    def make(_: float, length: int) -> nn.Module:
        if chrono:
            start: dict[str, Any] = {"init": "chrono", "chrono_length": float(length)}
        else:
            start = {} if block_size else {"init": "uniform"}
        return ParaRNN(2, UNITS, block_size or UNITS, cell=cell, **start)

    return make


@dataclass(frozen=True)
class ScaledLSTM:
    """Step of an LSTM with gates dt i and, in version 1, dt f, in version 2 (1 - dt) f."""

    version: int
    dt: float

    def __call__(self, states: Any, inputs: Any, matrices: Any, vectors: Any) -> tuple[Any, ...]:
        """States h, c after a step."""
        (h, c), (u_i, u_f, u_g, u_o), (W_i, W_f, W_g, W_o) = states, inputs, matrices
        kept = self.dt if self.version == 1 else 1 - self.dt
        c = kept * torch.sigmoid(u_f + W_f @ h) * c
        c = c + self.dt * torch.sigmoid(u_i + W_i @ h) * torch.tanh(u_g + W_g @ h)
        return torch.sigmoid(u_o + W_o @ h) * torch.tanh(c), c


def scaled_lstm(version: int) -> Callable[[float, int], nn.Module]:
    """Layer of the LSTM with scaled gates, full matrices."""

    def make(dt: float, _: int) -> nn.Module:
        form = MatrixForm(
            f"dt_lstm_{version}_{dt:g}", ("h", "c"), ("u_i", "u_f", "u_g", "u_o"),
            ("W_i", "W_f", "W_g", "W_o"), ScaledLSTM(version, dt),
        )  # fmt: skip
        return ParaRNN(2, UNITS, cell=form.block(UNITS), init="uniform")

    return make


MODELS: dict[str, Callable[[float, int], nn.Module]] = {
    "LSTM": gated("lstm", None, False),
    "ParaLSTM": gated("lstm", 2, False),
    "GRU": gated("gru", None, False),
    "ParaGRU": gated("gru", 2, False),
    "RNN": gated("rnn", None, False),
    "ParaRNN": gated("rnn", 2, False),
    "chrono-LSTM": gated("lstm", None, True),
    "chrono-ParaLSTM": gated("lstm", 2, True),
    "chrono-GRU": gated("gru", None, True),
    "chrono-ParaGRU": gated("gru", 2, True),
    "dt-LSTM v1": scaled_lstm(1),
    "dt-LSTM v2": scaled_lstm(2),
    "LEM": lambda dt, _: LEM(2, UNITS, dt=dt),
    "ParaLEM": lambda dt, _: LEM(2, UNITS, dt=dt, block_size=2),
    # At dt = 1, which is where the paper compares the start (Table 10).
    "chrono-LEM": lambda _, length: LEM(2, UNITS, init="chrono", chrono_length=float(length)),
    "chrono-ParaLEM": lambda _, length: LEM(
        2, UNITS, block_size=2, init="chrono", chrono_length=float(length)
    ),
    "LRU": lambda _, __: WithEncoder(LRU(UNITS, UNITS, r_min=0.9), 2, UNITS),
    "attention": lambda _, __: BlockRecurrentAttention(2, UNITS),
}


@dataclass(frozen=True)
class Recipe:
    """Settings of a paper; `minutes` of the key of a run may end it before its iterations."""

    lengths: tuple[int, ...]
    models: tuple[str, ...]
    lr: float
    iterations: int
    replicates: int
    decay_every: int | None = None


RECIPES = {
    "cai": Recipe((100, 500), ("LSTM", "ParaLSTM", "GRU", "ParaGRU"), 2e-3, 60_000, 10, 20_000),
    "figure-1": Recipe(
        (2000, 5000, 10_000),
        ("LEM", "ParaLEM", "LSTM", "ParaLSTM", "chrono-LSTM", "chrono-ParaLSTM"),
        2.6e-3,
        30_000,
        1,
    ),
    "figure-3": Recipe((250, 500, 1000, 2000), ("LEM", "ParaLEM"), 2.6e-3, 10_000, 10),
}


def largest_step(recipe: str, length: int) -> float:
    """Time step of LEM: of Table 8 where there is one, else 1 / sqrt(N)."""
    return 2.42e-2 if recipe == "figure-1" and length == 10_000 else length**-0.5


class Adder(nn.Module):
    """A recurrent layer and a linear map of its last output."""

    def __init__(self, recurrent: nn.Module) -> None:
        super().__init__()
        self.recurrent = recurrent
        self.head = nn.Linear(UNITS, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Sums (B,) of sequences (B, T, 2)."""
        return self.head(self.recurrent(x)[0][:, -1])[:, 0]


def sums(n: int, length: int, generator: np.random.Generator) -> tuple[Tensor, Tensor]:
    x, y = adding_problem(n, length, generator)
    return torch.as_tensor(x, dtype=torch.float32), torch.as_tensor(y, dtype=torch.float32)


@torch.no_grad()
def test_error(model: Adder, data: tuple[Tensor, Tensor]) -> float:
    """Mean squared error, in parts as states are large."""
    parts = zip(data[0].split(100), data[1].split(100), strict=True)
    return sum(float((model(x) - y).square().sum()) for x, y in parts) / len(data[1])


def train(key: Key) -> dict[str, Any]:
    """One run: lines of iteration, processor seconds of training and test error, and the last."""
    recipe, length = RECIPES[key["recipe"]], key["length"]
    torch.manual_seed(key["seed"])
    generator = np.random.default_rng(key["seed"])
    dt = largest_step(key["recipe"], length)
    model = Adder(MODELS[key["model"]](dt, length))
    optimiser = torch.optim.Adam(model.parameters(), lr=recipe.lr)
    test = sums(TESTS, length, generator)
    limit = math.inf if key["minutes"] is None else 60 * key["minutes"]
    every = recipe.iterations // 120  # a course of about as many points, and of early ones
    seconds, course = 0.0, []
    for iteration in range(1, recipe.iterations + 1):
        if recipe.decay_every and iteration > 1 and iteration % recipe.decay_every == 1:
            for group in optimiser.param_groups:
                group["lr"] /= 10
        x, y = sums(BATCH, length, generator)
        begun = time.process_time()
        optimiser.zero_grad()
        loss = (model(x) - y).square().mean()
        loss.backward()
        optimiser.step()
        seconds += time.process_time() - begun
        ends = iteration == recipe.iterations or seconds > limit or not torch.isfinite(loss)
        if iteration % (100 if iteration <= 1000 else every) == 0 or ends:
            course.append(f"{iteration} {seconds:.1f} {test_error(model, test):.6f}")
            print(*key.values(), course[-1], file=sys.stderr, flush=True)
        if ends:
            break
    return {"parameters": sum(p.numel() for p in model.parameters()), "iterations": iteration,
            "minutes": round(seconds / 60, 2), "mse": float(course[-1].split()[2]),
            "course": course}  # fmt: skip


def course_of(result: dict[str, Any]) -> np.ndarray:
    """Iterations, processor seconds and test errors of a run, a column each."""
    return np.array([line.split() for line in result["course"]], dtype=float)


def first_below(course: np.ndarray, goal: float) -> str:
    """Iteration and minutes at which a test error was first below a goal."""
    below = course[course[:, 2] < goal]
    return f"{below[0, 0]:.0f} ({below[0, 1] / 60:.1f})" if len(below) else ""


def print_runs(keys: list[Key], options: argparse.Namespace) -> None:
    """Table of the runs that are there."""
    rows: list[list[object]] = []
    for key, result in kept_results(options, keys):
        reached = [first_below(course_of(result), goal) for goal in GOALS]
        rows.append([key["length"], key["model"], result["parameters"], key["seed"],
                     result["iterations"], f"{result['minutes']:.1f}", f"{result['mse']:.6f}",
                     *reached])  # fmt: skip
    goals = [f"below {goal:g}: iteration (minutes)" for goal in GOALS]
    header = ["steps", "model", "parameters", "seed", "iterations", "minutes", "test MSE", *goals]
    print_table(header, rows)


def main() -> None:
    parser = option_parser(__doc__)
    parser.add_argument("--recipe", default="cai", choices=RECIPES)
    parser.add_argument("--models", nargs="+", choices=MODELS, help="of the recipe by default")
    parser.add_argument("--lengths", type=int, nargs="+", help="of the recipe by default")
    parser.add_argument("--seeds", type=int, nargs="+", help="0 to 9, or 0, by default")
    parser.add_argument("--run-minutes", type=float, help="of training in a run; all by default")
    options = read_run_options(parser, "adding")
    recipe = RECIPES[options.recipe]
    keys: list[Key] = [
        {"recipe": options.recipe, "length": length, "model": model, "seed": seed,
         "minutes": options.run_minutes}
        for length in options.lengths or recipe.lengths
        for seed in options.seeds or range(recipe.replicates)
        for model in options.models or recipe.models
    ]  # fmt: skip
    run_all(options, keys, train)
    print_runs(keys, options)


if __name__ == "__main__":
    main()
