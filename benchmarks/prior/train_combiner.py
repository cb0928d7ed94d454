"""Training of the network of `Combination.recurrent`, and its scores on collections left out.

Reads the folder that ``classical_forecasts.py`` writes: histories from the training rows of M1, M3
and M4, what four classical models forecast from them, and the values that came. The forecasts of
the prior network are made here. Those of a collection that the prior network was trained on are too
good to learn weights from, so ``--held-out m1=FILE m3=FILE`` gives prior networks that were trained
without it. Weights are written to the package:

    python benchmarks/prior/train_combiner.py FOLDER --held-out m1=FILE m3=FILE

Scores leave each collection out, of the network and, where given, of the prior: ``--score`` trains
without M1, without M3 and on all for Tourism, and prints MASE, sMAPE and MAPE on their official
test parts. ``--validate`` prints them on the training origins of M1 and M3 in their place, by which
dropout, length and inputs were chosen. The bound of the weights, `MOST_CHANGE` of the network, was
set after weights without one had been seen to fail on Tourism.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from _timing import option_parser, print_table
from torch import Tensor

from tsrnn.prior import (
    PROBABILITIES,
    CombinerInputs,
    CombinerNetwork,
    Forecasts,
    TrainedCombiner,
    prior_deviation,
    trained_prior,
    window_rows,
)

TRAINED = ("m1_yearly", "m1_quarterly", "m1_monthly", "m3_yearly", "m3_quarterly", "m3_monthly",
           "m3_other", "m4_yearly", "m4_hourly")  # fmt: skip
SCORED = ("tourism_yearly", "tourism_quarterly", "tourism_monthly")
PACKAGE = Path(__file__).parents[2] / "tsrnn" / "prior" / "combiner.safetensors"
LARGEST_LOSS = 10.0  # in losses of the median of its group; beyond it a loss grows by a tenth
LARGEST_ERROR = 30.0  # MASE of a step as it counts in the mean of a group
DESCRIPTION = (
    "Trained on forecasts from origins within the training rows of M1, M3, yearly and hourly M4; "
    "no row of a test part was used."
)


@dataclass(frozen=True, eq=False)
class Group:
    """Forecasts from O origins of series of one frequency and the values that came."""

    name: str
    season: int
    prior: Forecasts
    forecasts: np.ndarray  # (O, 4, h)
    actual: np.ndarray
    scale: np.ndarray  # of MASE, (O,)

    @property
    def classical(self) -> np.ndarray:
        """Medians of the four."""
        return np.nanmedian(self.forecasts, 1)


def read(folder: Path, name: str, prior: Path | None) -> Group:
    """Origins of a file that have a scale, with the forecasts of a prior network."""
    with np.load(folder / f"{name}.npz") as file:
        data = dict(file)
    season, h = int(data["season"]), data["actual"].shape[1]
    series = [
        data["values"][first:last]
        for first, last in zip(data["indptr"], data["indptr"][1:], strict=False)
    ]
    window = window_rows(season)
    scale = np.zeros(len(series))
    rows, lengths = np.zeros((len(series), window)), np.zeros(len(series), int)
    for i, y in enumerate(series):
        lag = season if len(y) > season else 1
        scale[i] = np.abs(y[lag:] - y[:-lag]).mean()
        lengths[i] = min(len(y), window)
        rows[i, : lengths[i]] = y[-window:]
    kept = scale > 0
    made = trained_prior(prior).forecast(rows[kept, : lengths.max()], lengths[kept], season, h)
    members = data["forecasts"][kept, :4]
    return Group(name, season, made, members, data["actual"][kept], scale[kept])


@dataclass(frozen=True, eq=False)
class Tensors:
    """A group in standard deviations of the prior from its median."""

    inputs: CombinerInputs
    actual: Tensor  # (O, h)
    offsets: Tensor  # of the prior's quantiles, (O, 15, h)
    unit: Tensor  # of an error, in mean errors of the median of the classical models, (O, h)
    season: int

    @classmethod
    def of(cls, group: Group) -> Tensors:
        """Tensors of a group."""
        deviation, prior = prior_deviation(group.prior), group.prior
        errors = np.abs(group.actual - group.classical) / group.scale[:, None]
        level = np.nanmean(np.minimum(errors, LARGEST_ERROR))
        parts = (
            (group.actual - prior.median) / deviation,
            (prior.quantiles - prior.median[:, None]) / deviation[:, None],
            deviation / group.scale[:, None] / level,
        )
        state, distances, known = CombinerInputs.of(prior, group.forecasts)
        inputs = CombinerInputs(state.float(), distances.float(), known)
        actual, offsets, unit = (torch.from_numpy(part).float() for part in parts)
        return cls(inputs, actual, offsets, unit, group.season)

    def loss(self, network: CombinerNetwork, chosen: Tensor) -> Tensor:
        """Check loss of all quantiles and absolute error of the median."""
        inputs = CombinerInputs(*(part[chosen] for part in self.inputs))
        actual, answer = self.actual[chosen], network(inputs, self.season)
        median = (answer.weights * inputs.distances).sum(1)
        beyond = (actual - median)[:, None] - answer.factors * self.offsets[chosen]
        p = torch.tensor(PROBABILITIES, dtype=torch.float32)[:, None]
        check = 2 * torch.maximum(p * beyond, (p - 1) * beyond).mean(1)
        losses = (check + (actual - median).abs()) * self.unit[chosen]
        return torch.where(losses > LARGEST_LOSS, 0.9 * LARGEST_LOSS + 0.1 * losses, losses).mean()


def train(
    groups: list[Tensors],
    *,
    epochs: int = 8,
    batch: int = 128,
    learning_rate: float = 2e-3,
    weight_decay: float = 0.1,
    dropout: float = 0.5,
    seed: int = 0,
) -> CombinerNetwork:
    """Network trained on batches of one group each, as many as the root of its origins asks for."""
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    network = CombinerNetwork(groups[0].inputs.state.shape[1], dropout=dropout)
    optimiser = torch.optim.AdamW(network.parameters(), lr=learning_rate, weight_decay=weight_decay)
    sizes = np.array([len(group.actual) for group in groups])
    # The root: thousands of yearly series of M4 shall not outvote the others.
    shares = np.sqrt(sizes) / np.sqrt(sizes).sum()
    counts = np.maximum(np.round(sizes.sum() / batch * shares), 1).astype(int)
    plan = np.repeat(np.arange(len(groups)), counts)
    for epoch in range(epochs):
        for number, i in enumerate(rng.permutation(plan)):
            done = (epoch + number / len(plan)) / epochs
            for part in optimiser.param_groups:
                part["lr"] = learning_rate * 0.5 * (1 + math.cos(math.pi * done))
            chosen = rng.choice(sizes[i], min(batch, sizes[i]), replace=False)
            optimiser.zero_grad()
            groups[i].loss(network, torch.from_numpy(chosen)).backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimiser.step()
    return network.eval().requires_grad_(False)


def packed(network: CombinerNetwork) -> TrainedCombiner:
    """Network with the arguments that its file needs; dropout is of the training alone."""
    size = {"state_size": network.state_size, "width": network.width}
    return TrainedCombiner.of(network, size, DESCRIPTION)


def measures(group: Group, forecasts: np.ndarray) -> list[float]:
    """MASE, sMAPE and MAPE in percent, means over series; values of zero have no MAPE."""
    actual, error = group.actual, np.abs(group.actual - forecasts)
    with np.errstate(divide="ignore", invalid="ignore"):
        smape = 200 * error / (np.abs(actual) + np.abs(forecasts))
        mape = 100 * error / np.where(actual != 0, np.abs(actual), np.nan)
    mase = error.mean(1) / group.scale
    return [float(np.nanmean(np.nanmean(each, 1))) for each in (mase[:, None], smape, mape)]


def rows_of(group: Group, combiner: TrainedCombiner) -> dict[str, list[float]]:
    """Measures of the network's combination and of plain ones of the same forecasts."""
    made = combiner.combine(group.prior, group.forecasts, group.season)
    prior = group.prior.median
    five = np.concatenate([group.forecasts, prior[:, None]], 1)
    points = {
        "median of four": group.classical,
        "prior": prior,
        "mean of five": np.nanmean(five, 1),
        "median of five": np.nanmedian(five, 1),
        "half prior, half median": (group.classical + prior) / 2,
        "network": made.median,
    }
    result = {name: measures(group, point) for name, point in points.items()}
    for name, quantiles in (("prior", group.prior.quantiles), ("network", made.quantiles)):
        ends = ((quantiles[:, i], quantiles[:, -1 - i]) for i in (3, 1))  # 80 and 95 percent
        inside = [100 * float(np.mean((low <= group.actual) & (group.actual <= high)))
                  for low, high in ends]  # fmt: skip
        beyond = (group.actual[:, None] - quantiles) / group.scale[:, None, None]
        p = PROBABILITIES[:, None]
        check = 2 * np.maximum(p * beyond, (p - 1) * beyond).mean(1)
        result[name] += [*inside, float(np.minimum(check, LARGEST_ERROR).mean())]
    return result


def main() -> None:
    parser = option_parser(__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--prior", type=Path, help="prior network, by default the package's")
    parser.add_argument("--held-out", nargs="*", default=[], metavar="COLLECTION=FILE")
    parser.add_argument("--out", type=Path, default=PACKAGE)
    parser.add_argument(
        "--score", action="store_true", help="on test parts of collections left out"
    )
    parser.add_argument("--validate", action="store_true", help="on training origins left out")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    priors = {name: Path(file) for name, file in (each.split("=") for each in arguments.held_out)}

    def group_of(name: str) -> Group:
        collection = name.removeprefix("test_").split("_")[0]
        return read(arguments.folder, name, priors.get(collection, arguments.prior))

    groups = {name: group_of(name) for name in TRAINED}
    tensors = {name: Tensors.of(group) for name, group in groups.items()}

    def without(collection: str) -> TrainedCombiner:
        kept = [each for name, each in tensors.items() if not name.startswith(collection)]
        return packed(train(kept, seed=arguments.seed))

    combiner = without("none")
    combiner.save(arguments.out)
    if not (arguments.score or arguments.validate):
        return
    combiners = {"m1": without("m1"), "m3": without("m3"), "tourism": combiner}
    total: dict[str, dict[str, list[tuple[int, list[float]]]]] = {}
    for name in TRAINED[:7] + (SCORED if arguments.score else ()):
        collection = name.split("_")[0]
        group = group_of(f"test_{name}") if arguments.score else groups[name]
        rows = rows_of(group, combiners[collection])
        print(f"\n{name}, {len(group.actual)} series\n")
        print_table(
            ["", "MASE", "sMAPE", "MAPE", "covers 80", "covers 95", "check loss"],
            [[label, *(f"{x:.3f}" for x in row)] + [""] * (6 - len(row))
             for label, row in rows.items()],
        )  # fmt: skip
        for label, row in rows.items():
            total.setdefault(collection, {}).setdefault(label, []).append((len(group.actual), row))
    for collection, of_rows in total.items():
        print(f"\nall of {collection}\n")
        table = []
        for label, scored in of_rows.items():
            sizes, values = [n for n, _ in scored], [row[:3] for _, row in scored]
            table.append([label, *(f"{x:.3f}" for x in np.average(values, 0, sizes))])
        print_table(["", "MASE", "sMAPE", "MAPE"], table)


if __name__ == "__main__":
    main()
