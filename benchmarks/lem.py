"""LEM on the FitzHugh-Nagumo system and the adding problem (Rusch et al. 2022, Section 5).

``--fhn``, the default: one step ahead forecasts of v, 16 units, 128 trajectories to train and to
validate, 1024 to test, batches of 32, Adam, 400 epochs; the test error belongs to the epoch with
the least validation error and is the root mean squared error over all steps and trajectories,
which is what the authors' code prints as L2 error. The learned time steps of the run with
``dt=2`` are counted as in Figure 4. ``--published-data`` solves the system trajectory by
trajectory at SciPy's default tolerance, as the authors' code does; those trajectories are 0.04
off the solution.

``--adding``: batches of 50 new sequences, Adam, mean squared error on 1000 test sequences every
100 steps until it is below ``--goal``. LEM has dt = 1 / sqrt(N) (B.1), the LSTM chrono
initialisation with T_max = N, ParaLSTM and ParaGRU blocks of 2.
"""

from __future__ import annotations

import argparse
import copy
import sys
import time
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import torch
from _timing import print_machine, print_table
from scipy.integrate import solve_ivp
from torch import Tensor, nn

from tsrnn.datasets import adding_problem, fitzhugh_nagumo
from tsrnn.interpret import time_steps
from tsrnn.layers import LEM, ParaRNN

Data = tuple[Tensor, Tensor]
PARTS = {"train": 128, "validation": 128, "test": 1024}
UNITS, BATCH = 16, 32
OSCILLATORS: dict[str, Callable[[], nn.Module]] = {
    "LEM": lambda: LEM(1, UNITS),
    "LEM, dt=2": lambda: LEM(1, UNITS, dt=2.0),
    "torch.nn.LSTM": lambda: nn.LSTM(1, UNITS, batch_first=True),
    "LSTM of tsrnn": lambda: ParaRNN(1, UNITS, UNITS, cell="lstm", init="uniform"),
}
TABLE_4 = {"LEM": "0.2", "torch.nn.LSTM": "1.2", "LSTM of tsrnn": "1.2"}
EDGES = [0.0, *(2 * 2 ** (-k / 2) for k in range(16, -1, -1))]  # of one width as logarithms


class Network(nn.Module):
    """A recurrent layer and a linear map of its outputs."""

    def __init__(self, recurrent: nn.Module) -> None:
        super().__init__()
        self.recurrent = recurrent
        self.head = nn.Linear(int(recurrent.hidden_size), 1)

    def forward(self, x: Tensor) -> Tensor:
        """Values (B, T, 1) at every step."""
        return self.head(self.recurrent(x)[0])

    def at_end(self, x: Tensor) -> Tensor:
        """Values (B,) at the last step."""
        return self.head(self.recurrent(x)[0][:, -1])[:, 0]


def count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def as_published(n: int, generator: np.random.Generator) -> np.ndarray:
    """Trajectories of v and w (n, 1001, 2) as the authors' code computes them."""

    def rates(_: float, state: np.ndarray) -> list[float]:
        v, w = state
        return [v - v**3 / 3 - w + 0.5, 0.02 * (v + 0.7 - 0.8 * w)]

    times, starts = np.linspace(0, 400, 1001), generator.uniform(-1, 1, n)
    return np.stack([solve_ivp(rates, (0, 400), [c, 0.0], t_eval=times).y.T for c in starts])


def oscillations(seed: int, published: bool) -> dict[str, Data]:
    """Values of v and the next ones, (n, 1000, 1) each, of every part."""
    generator = np.random.default_rng(seed)
    parts = {}
    for name, n in PARTS.items():
        states = (
            as_published(n, generator) if published else fitzhugh_nagumo(n, random_state=generator)
        )
        v = torch.as_tensor(states[..., :1], dtype=torch.float32)
        parts[name] = v[:, :-1], v[:, 1:]
    return parts


@torch.no_grad()
def sum_error(network: Network, data: Data) -> float:
    """Mean squared error at the end, in parts as states are large."""
    parts = zip(data[0].split(100), data[1].split(100), strict=True)
    return sum(float((network.at_end(x) - y).square().sum()) for x, y in parts) / len(data[1])


@torch.no_grad()
def rmse(network: Network, data: Data) -> float:
    return float((network(data[0]) - data[1]).square().mean().sqrt())


def train_oscillator(
    name: str, data: dict[str, Data], seed: int, lr: float, epochs: int
) -> tuple[Network, float, float, int]:
    """The network of the best epoch, its validation and test error, and the epoch."""
    torch.manual_seed(seed)
    network = Network(OSCILLATORS[name]())
    optimiser = torch.optim.Adam(network.parameters(), lr=lr)
    x, y = data["train"]
    best, best_error, best_epoch = network, float("inf"), 0
    for epoch in range(1, epochs + 1):
        for rows in torch.randperm(len(x)).split(BATCH):
            optimiser.zero_grad()
            (network(x[rows]) - y[rows]).square().mean().backward()
            optimiser.step()
        error = rmse(network, data["validation"])
        if error < best_error:
            best, best_error, best_epoch = copy.deepcopy(network), error, epoch
    return best, best_error, rmse(best, data["test"]), best_epoch


def check_lstms_agree() -> None:
    """The two LSTMs of the comparison are the same model."""
    ours, theirs = (OSCILLATORS[name]() for name in ("LSTM of tsrnn", "torch.nn.LSTM"))
    with torch.no_grad():
        theirs.weight_ih_l0.copy_(ours.weight_ih_l0)
        theirs.weight_hh_l0.copy_(ours.weight_hh_l0.reshape(4 * UNITS, UNITS))
        theirs.bias_ih_l0.copy_(ours.bias_l0)
        theirs.bias_hh_l0.zero_()
    x = torch.randn(2, 50, 1)
    torch.testing.assert_close(ours(x)[0], theirs(x)[0])


def fhn(options: argparse.Namespace) -> None:
    check_lstms_agree()
    rows: list[list[object]] = []
    for seed in range(options.seeds):
        data = oscillations(seed, options.published_data)
        for name in options.models or OSCILLATORS:
            for lr in options.lr or [9.04e-3]:
                start = time.perf_counter()
                network, validation, test, epoch = train_oscillator(
                    name, data, seed, lr, options.epochs
                )
                seconds = time.perf_counter() - start
                rows.append([name, count(network.recurrent), lr, seed, epoch,
                             f"{100 * validation:.3f}", f"{100 * test:.3f}",
                             TABLE_4.get(name, ""), f"{seconds:.0f}"])  # fmt: skip
                print(*rows[-1], file=sys.stderr, flush=True)
                if name == "LEM, dt=2" and not seed:
                    print_time_steps(network, data["test"][0][:128])
    print("\nFitzHugh-Nagumo: errors of v one step ahead, times 100\n")
    header = ["model", "parameters", "learning rate", "seed", "best epoch", "validation", "test",
              "Table 4", "seconds"]  # fmt: skip
    print_table(header, rows)


@torch.no_grad()
def print_time_steps(network: Network, x: Tensor) -> None:
    """Counts of Figure 4."""
    steps = time_steps(network.recurrent, x)[0]
    counts = [np.histogram(part.numpy(), EDGES)[0] for part in steps]
    rows = [
        [f"{low:.3f} to {high:.3f}", *(f"{100 * c[i] / c.sum():.1f}" for c in counts)]
        for i, (low, high) in enumerate(pairwise(EDGES))
    ]
    print("\nLearned time steps, dt=2: percent of all steps and units\n")
    print_table(["time step", "of z", "of y"], rows)


ADDERS: dict[str, Callable[[int, int], nn.Module]] = {
    "LEM": lambda hidden, length: LEM(2, hidden, dt=length**-0.5),
    "LEM, blocks of 4": lambda hidden, length: LEM(2, hidden, dt=length**-0.5, block_size=4),
    "chrono-LSTM": lambda hidden, length: ParaRNN(
        2, hidden, hidden, cell="lstm", init="chrono", chrono_length=length
    ),
    "ParaLSTM": lambda hidden, _: ParaRNN(2, hidden, cell="lstm"),
    "ParaGRU": lambda hidden, _: ParaRNN(2, hidden, cell="gru"),
}


def sums(n: int, length: int, generator: np.random.Generator) -> Data:
    x, y = adding_problem(n, length, generator)
    return torch.as_tensor(x, dtype=torch.float32), torch.as_tensor(y, dtype=torch.float32)


def train_adder(
    name: str, seed: int, lr: float, options: argparse.Namespace
) -> tuple[Network, int, float, float]:
    """The network, steps and minutes taken, and the last test error."""
    torch.manual_seed(seed)
    generator = np.random.default_rng(seed)
    network = Network(ADDERS[name](options.hidden, options.length))
    optimiser = torch.optim.Adam(network.parameters(), lr=lr)
    test = sums(1000, options.length, generator)
    start = time.perf_counter()
    for step in range(1, options.steps + 1):
        x, y = sums(50, options.length, generator)
        optimiser.zero_grad()
        (network.at_end(x) - y).square().mean().backward()
        optimiser.step()
        minutes = (time.perf_counter() - start) / 60
        late = minutes > options.minutes
        if step % 100 == 0 or step == options.steps or late:
            error = sum_error(network, test)
            print(name, lr, seed, step, f"{minutes:.1f} min", f"{error:.6f}", file=sys.stderr,
                  flush=True)  # fmt: skip
            if error < options.goal or late:
                break
    return network, step, minutes, error


def adding(options: argparse.Namespace) -> None:
    rows: list[list[object]] = []
    for seed in range(options.seeds):
        for name in options.models or ADDERS:
            for lr in options.lr or [2.6e-3]:
                network, steps, minutes, error = train_adder(name, seed, lr, options)
                rows.append([name, options.hidden, count(network), lr, seed, steps,
                             f"{minutes:.1f}", f"{error:.6f}"])  # fmt: skip
    print(f"\nAdding problem, N = {options.length}; the constant 1 has 0.167\n")
    header = ["model", "units", "parameters", "learning rate", "seed", "steps", "minutes",
              "test MSE"]  # fmt: skip
    print_table(header, rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--fhn", action="store_true")
    parser.add_argument("--adding", action="store_true")
    parser.add_argument("--models", nargs="+", choices=[*OSCILLATORS, *ADDERS])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--lr", type=float, nargs="+")
    parser.add_argument("--threads", type=int, help="of torch; its own choice by default")
    parser.add_argument("--epochs", type=int, default=400, help="of --fhn")
    parser.add_argument("--published-data", action="store_true", help="of --fhn")
    parser.add_argument("--length", type=int, default=2000, help="of --adding")
    parser.add_argument("--hidden", type=int, default=128, help="of --adding")
    parser.add_argument("--steps", type=int, default=10_000, help="of --adding, at most")
    parser.add_argument("--minutes", type=float, default=60.0, help="of --adding, at most")
    parser.add_argument("--goal", type=float, default=1e-3, help="of --adding")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    print_machine()
    if options.fhn or not options.adding:
        fhn(options)
    if options.adding:
        adding(options)


if __name__ == "__main__":
    main()
