"""LEM on the FitzHugh-Nagumo system (Rusch et al. 2022: Tables 4 and 9, Figures 4 and 6).

One step ahead forecasts of v, 16 units, 128 trajectories to train and to validate, 1024 to test,
batches of 32, Adam, 400 epochs; the test error belongs to the epoch with the least validation
error and is the root mean squared error over all steps and trajectories, which is what the
authors' code prints as L2 error (of its last 128 trajectories). Experiments, chosen by name:

- ``table-4``: LEM and the LSTM at the settings of the paper, three seeds.
- ``code``: LEM at these settings as the authors' code starts it, where the paper is silent: the
  readout's weights are drawn from N(0, 2 / 16), and the bias of a gate is the sum of two
  parameters, so that it starts wider and moves twice as fast. Three seeds, and their data.
- ``search``: LEM by learning rate, as a random search over it would see it.
- ``table-9``: LEM without multiscale, every time step dt, by dt; the best once more as "code".
- ``figure-4``: LEM with dt = 2, whose learned time steps are counted.
- ``figure-6``: time steps clipped to [2^-i, 1], i = 0 to 7. (The paper: on Google12.)

The data "as published" are solved trajectory by trajectory at SciPy's default tolerance, as the
authors do; those trajectories are 0.04 off the solution. Runs are kept.
"""

from __future__ import annotations

import argparse
import copy
import functools
import math
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from _runs import Key, kept_results, read_run_options, run_all
from _timing import option_parser, print_table
from scipy.integrate import solve_ivp
from torch import Tensor, nn

from tsrnn.datasets import fitzhugh_nagumo
from tsrnn.interpret import time_steps
from tsrnn.layers import LEM, ParaRNN

Data = tuple[Tensor, Tensor]
PARTS = {"train": 128, "validation": 128, "test": 1024}
UNITS, BATCH, RATE = 16, 32, 9.04e-3
MODELS: dict[str, Callable[[Key], nn.Module]] = {
    "LEM": lambda key: LEM(1, UNITS, dt=key["dt"], min_step=key["min_step"]),
    "LSTM": lambda _: ParaRNN(1, UNITS, UNITS, cell="lstm", init="uniform"),
    "torch.nn.LSTM": lambda _: nn.LSTM(1, UNITS, batch_first=True),
}
EDGES = [0.0, *(2 * 2 ** (-k / 2) for k in range(16, -1, -1))]  # of one width as logarithms


def run_key(seed: int = 0, **settings: Any) -> Key:
    """Key of a run, by what differs from the settings of the paper."""
    standard = {"model": "LEM", "dt": 1.0, "min_step": 0.0, "lr": RATE, "start": "ours",
                "data": "ours", "epochs": 400}  # fmt: skip
    return standard | settings | {"seed": seed}


EXPERIMENTS: dict[str, list[Key]] = {
    "table-4": [
        run_key(seed, model=model) for model in ("LEM", "torch.nn.LSTM") for seed in range(3)
    ],
    "code": [
        run_key(seed, start="code", data=data)
        for data in ("ours", "published")
        for seed in range(3)
    ],
    "search": [run_key(lr=lr) for lr in (5e-3, RATE, 1.5e-2, 2e-2, 3e-2)],
    "table-9": [
        run_key(dt=dt, min_step=dt, start=start)
        for start, steps in (("ours", (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 1.5)), ("code", (1.0,)))
        for dt in steps
    ],
    "figure-4": [run_key(seed, dt=2.0) for seed in range(3)],
    "figure-6": [run_key(min_step=2.0**-i) for i in range(8)],
}
PUBLISHED = {"LEM": "0.2", "LSTM": "1.2", "torch.nn.LSTM": "1.2"}  # Table 4


class Network(nn.Module):
    """A recurrent layer and a linear map of its outputs."""

    def __init__(self, recurrent: nn.Module) -> None:
        super().__init__()
        self.recurrent = recurrent
        self.head = nn.Linear(int(recurrent.hidden_size), 1)

    def forward(self, x: Tensor) -> Tensor:
        """Values (B, T, 1) at every step."""
        return self.head(self.recurrent(x)[0])


def count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def as_published(n: int, generator: np.random.Generator) -> np.ndarray:
    """Trajectories of v and w (n, 1001, 2) as the authors' code computes them."""

    def rates(_: float, state: np.ndarray) -> list[float]:
        v, w = state
        return [v - v**3 / 3 - w + 0.5, 0.02 * (v + 0.7 - 0.8 * w)]

    times, starts = np.linspace(0, 400, 1001), generator.uniform(-1, 1, n)
    return np.stack([solve_ivp(rates, (0, 400), [c, 0.0], t_eval=times).y.T for c in starts])


@functools.lru_cache(maxsize=1)
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
def rmse(network: Network, data: Data) -> float:
    return float((network(data[0]) - data[1]).square().mean().sqrt())


@torch.no_grad()
def start_as_code(network: Network) -> list[dict[str, Any]]:
    """Start of the authors' code; groups of parameters with factors of the learning rate.

    Two biases with one sum have the same gradients, so that Adam moves each by the same step and
    their sum by two.
    """
    nn.init.kaiming_normal_(network.head.weight)
    bias = network.recurrent.bias_l0
    bias += torch.empty_like(bias).uniform_(-(UNITS**-0.5), UNITS**-0.5)
    others = [p for p in network.parameters() if p is not bias]
    return [{"params": others, "factor": 1.0}, {"params": [bias], "factor": 2.0}]


def train(key: Key) -> dict[str, Any]:
    """One run: errors times 100 at the best epoch, and the quantiles of the learned time steps."""
    data = oscillations(key["seed"], key["data"] == "published")
    torch.manual_seed(key["seed"])
    network = Network(MODELS[key["model"]](key))
    groups = [{"params": list(network.parameters()), "factor": 1.0}]
    if key["start"] == "code":
        groups = start_as_code(network)
    optimiser = torch.optim.Adam(
        [{"params": group["params"], "lr": group["factor"] * key["lr"]} for group in groups]
    )
    x, y = data["train"]
    best, best_error, best_epoch = network, math.inf, 0
    begun = time.process_time()
    for epoch in range(1, key["epochs"] + 1):
        for rows in torch.randperm(len(x)).split(BATCH):
            optimiser.zero_grad()
            (network(x[rows]) - y[rows]).square().mean().backward()
            optimiser.step()
        error = rmse(network, data["validation"])
        if error < best_error:
            best, best_error, best_epoch = copy.deepcopy(network), error, epoch
        if epoch % 50 == 0:
            print(*key.values(), epoch, f"{100 * error:.3f}", file=sys.stderr, flush=True)
    result = {
        "parameters": count(network.recurrent),
        "best_epoch": best_epoch,
        "validation": round(100 * best_error, 4),
        "test": round(100 * rmse(best, data["test"]), 4),
        "minutes": round((time.process_time() - begun) / 60, 2),
    }
    if key["model"] == "LEM":
        steps = time_steps(best.recurrent, data["test"][0][:128])[0]
        result["time_steps"] = {
            name: [int(n) for n in np.histogram(part.numpy(), EDGES)[0]]
            for name, part in zip("zy", steps, strict=True)
        }
    return result


def print_runs(keys: list[Key], options: argparse.Namespace) -> None:
    """Table of the runs that are there."""
    rows: list[list[object]] = []
    for key, result in kept_results(options, keys):
        rows.append([key["model"], key["dt"], key["min_step"], key["lr"], key["start"],
                     key["data"], key["seed"], result["parameters"], result["best_epoch"],
                     f"{result['validation']:.3f}", f"{result['test']:.3f}",
                     PUBLISHED[key["model"]], f"{result['minutes']:.1f}"])  # fmt: skip
    header = ["model", "dt", "least step", "learning rate", "start", "data", "seed", "parameters",
              "best epoch", "validation", "test", "Table 4", "minutes"]  # fmt: skip
    print("\nFitzHugh-Nagumo: errors of v one step ahead, times 100\n")
    print_table(header, rows)


def print_time_steps(key: Key, options: argparse.Namespace) -> None:
    """Counts of Figure 4."""
    for _, result in kept_results(options, [key]):
        counts = [np.array(result["time_steps"][name]) for name in "zy"]
        rows = [
            [f"{low:.3f} to {high:.3f}", *(f"{100 * c[i] / c.sum():.1f}" for c in counts)]
            for i, (low, high) in enumerate(pairwise(EDGES))
        ]
        print(f"\nLearned time steps, dt={key['dt']:g}: percent of all steps and units\n")
        print_table(["time step", "of z", "of y"], rows)


def main() -> None:
    parser = option_parser(__doc__)
    parser.add_argument("experiments", nargs="*", default=["table-4"], metavar="experiment",
                        help=", ".join(EXPERIMENTS))  # fmt: skip
    parser.add_argument("--epochs", type=int, default=400)
    options = read_run_options(parser, "lem")
    # With "choices", argparse of Python 3.11 refuses a default in a list.
    if wrong := sorted(set(options.experiments) - set(EXPERIMENTS)):
        parser.error(f"experiments are {', '.join(EXPERIMENTS)}; got {', '.join(wrong)}")
    epochs = {"epochs": options.epochs}
    keys = [key | epochs for name in options.experiments for key in EXPERIMENTS[name]]
    run_all(options, keys, train)
    print_runs(keys, options)
    if "figure-4" in options.experiments:
        print_time_steps(EXPERIMENTS["figure-4"][0] | epochs, options)


if __name__ == "__main__":
    main()
