"""Sequential images: MNIST pixel by pixel, in order and permuted, and CIFAR-10 in two ways.

Section 6.3, supplements D.2 and D.3 and Table 1(b)-(d) of Cai et al. (2026), Table 1 and appendix A
of Rusch et al. (2022). Tasks: ``smnist`` and ``psmnist``, 784 pixels in order or in one fixed
random order; ``cifar``, 1024 pixels with three colours; ``noisy_cifar``, 32 rows of 96 numbers,
then noise up to 1000 steps. The class is read after the last step.

``--recipe paper``: two recurrent layers (three for ``cifar``) of 128 units; blocks of two and a
feedforward network that aggregates them, or one matrix and neither; transformers of Table S.1 with
256 units, 8 heads, 32 states and two windows. Adam from a rate of 0.002, halved when the
validation loss stalls, until 1e-6 or 800 epochs; 3,000 images validate. LEM has one layer of 128
units, the rate, batch size and dt of its Table 8, 100 epochs and 20 at a tenth of the rate; "LEM,
code", and that of blocks, has rate and dt of the code published with it, where they differ. The
papers leave open: batches of Cai et al. (64 here), epochs without improvement before the rate is
halved (3), clipping (at norm 1), scaling of pixels (to [0, 1], as in the code of LEM), the noise
(one piece for all images, as in that code; ``--noise each`` draws one for each image), and the
start of the RNN (``--starts`` has others).

``--recipe small``, the default: one layer of 64 units, transformers of 32 units, two layers and
windows of T / 14 steps, so that two cores see some epochs. ``--minutes-each`` ends a training
wherever it stands, in time of the processor by thread, validation among it. Results are kept, see
``_runs.py``; the table has the accuracy of the best validation, and the course of it by minutes.

``--plot DIR`` draws Figure 3, types of recurrence features against epochs, from ``--starts``
uniform, identity and blocks (R-4 and C-2). ``--check`` compares blocks with one matrix of them.

CIFAR-10 is read by `load_cifar10` from ``--data-home``/cifar10, or else from a sample of JPEG
conversions, 1,000 images of each class to train (of which 60 validate) and 200 to test, whose
pixels differ from the published ones: its numbers are marked "sample".
"""

from __future__ import annotations

import argparse
import io
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from _classify import Part, Recipe, train
from _recurrences import full_matrices
from _runs import kept_results, read_run_options, run_all
from _timing import option_parser, print_table
from torch import Tensor, nn

from tsrnn.datasets import (
    LabelledImages,
    RNNProcess,
    load_cifar10,
    load_mnist,
    noise_padded,
    pixel_sequences,
)
from tsrnn.interpret import recurrence_features
from tsrnn.layers import LEM, BlockRecurrentAttention, ParaRNN, Recurrent, RecurrentNetwork
from tsrnn.plotting import plot_feature_history

LOCAL_COPY = Path(__file__).resolve().parents[2] / "shared" / "data"
SAMPLE = "cifar10_sample.npz"
CLASSES, VALIDATION, ORDER = 10, 3_000, 0  # the last: random state of the order of pixels
# Steps, inputs, recurrent layers, layers of transformers; batch, rate and dt of LEM.
TASKS = {
    "smnist": (784, 1, 2, 3, 128, 1.8e-3, 0.21),
    "psmnist": (784, 1, 2, 3, 128, 3.5e-3, 1.9),
    "cifar": (1024, 3, 3, 4, 128, 1.8e-3, 0.21),  # LEM is of no paper here: as smnist
    "noisy_cifar": (1000, 96, 2, 4, 120, 1.8e-3, 0.95),
}
CELLS = {"RNN": "rnn", "GRU": "gru", "LSTM": "lstm"}
# Cell, and whether its matrices are blocks of two, by name.
GATED = {
    f"{chrono}{blocks}{name}": (cell, bool(blocks))
    for chrono, blocks, (name, cell) in product(("", "chrono-"), ("", "Para"), CELLS.items())
    if not (chrono and cell == "rnn")
}
LEMS: dict[str, int | None] = {"LEM": None, "LEM, code": None, "LEM, blocks of 4": 4}
# Rate and dt that the code published with LEM has in place of those of Table 8.
LEM_CODE = {"psmnist": (7.3e-3, 0.31), "noisy_cifar": (3.22e-3, 0.44)}
BRTS = {"BRT": False, "ParaBRT": True}
MODELS = (*GATED, *LEMS, *BRTS)
STARTS = ("uniform", "stable", "orthogonal", "identity", "blocks")
# Accuracy in percent: Table 1(b)-(d) of Cai et al., Table 1 of Rusch et al. (one layer).
CAI = {
    "psmnist": {"RNN": 90.31, "ParaRNN": 93.93, "LSTM": 94.20, "ParaLSTM": 94.10, "GRU": 94.44,
                "ParaGRU": 94.67, "BRT": 97.87, "ParaBRT": 97.90},
    "cifar": {"RNN": 31.80, "ParaRNN": 36.37, "LSTM": 66.35, "ParaLSTM": 66.40, "GRU": 70.61,
              "ParaGRU": 70.06, "BRT": 74.01, "ParaBRT": 74.06},
    "noisy_cifar": {"chrono-LSTM": 56.71, "chrono-ParaLSTM": 57.07, "chrono-GRU": 52.90,
                    "chrono-ParaGRU": 53.40, "BRT": 68.85, "ParaBRT": 68.91},
}  # fmt: skip
RUSCH = {
    "smnist": {"GRU": 99.1, "LSTM": 98.9, "chrono-LSTM": 98.9, "LEM": 99.5},
    "psmnist": {"GRU": 94.1, "LSTM": 92.9, "chrono-LSTM": 94.6, "LEM": 96.6},
    "noisy_cifar": {"GRU": 43.8, "LSTM": 11.6, "chrono-LSTM": 55.9, "LEM": 60.5},
}


def make(model: str, task: str, recipe: str, start: str, seed: int) -> RecurrentNetwork:
    """Network of a model for a task."""
    steps, inputs, layers, transformers, _, _, dt = TASKS[task]
    paper = recipe == "paper"
    units, layers = (128, layers) if paper else (64, 1)
    aggregation = "linear"
    rnn: Recurrent
    if model in LEMS:
        dt = dt if model == "LEM" else LEM_CODE.get(task, (0, dt))[1]
        rnn = LEM(inputs, units, dt=dt, block_size=LEMS[model])
    elif model in BRTS:
        units, depth, windows = (256, transformers, 2) if paper else (32, 2, 14)
        rnn = BlockRecurrentAttention(
            inputs, units, depth, block_size=2 if BRTS[model] else units,
            n_states=32 if paper else 8, n_heads=8 if paper else 2, window=-(-steps // windows),
        )  # fmt: skip
    else:
        cell, blocks = GATED[model]
        chrono = {"init": "chrono", "chrono_length": steps}
        init = chrono if model.startswith("chrono") else {"init": start}
        if start == "blocks":
            init = {"init": "uniform"}
        rnn = ParaRNN(inputs, units, 2 if blocks else units, layers, cell=cell, **init)
        aggregation = "ffn" if blocks else "linear"
    network = RecurrentNetwork(rnn, CLASSES, aggregation=aggregation)
    network.reset_parameters(torch.Generator().manual_seed(seed))
    if start == "blocks":
        set_matrices(network, seed)
    network.prepare()
    return network


def has_blocks(model: str) -> bool:
    """True if recurrent matrices are blocks, for which there is no start "blocks"."""
    return model in GATED and GATED[model][1]


def default_start(model: str) -> str:
    """Start of recurrent matrices: orthogonal for the RNN, which is lost from torch's start."""
    if model not in GATED or model.startswith("chrono"):
        return "default"
    return "orthogonal" if model == "RNN" else "stable" if has_blocks(model) else "uniform"


@torch.no_grad()
def set_matrices(network: RecurrentNetwork, seed: int) -> None:
    """Recurrent matrices of a direct sum of R-4 and C-2 blocks, as in supplement A."""
    size = network.hidden_size
    matrix = RNNProcess.noisy_jordan_state(size, random_state=seed).recurrent_matrix
    for parameter in network.rnn.parameters():
        if parameter.ndim >= 3:  # (d, d, 1), or (matrices, d, d, 1)
            parameter.copy_(torch.tensor(matrix)[..., None].expand_as(parameter))


@torch.no_grad()
def with_one_matrix(network: RecurrentNetwork, cell: str) -> RecurrentNetwork:
    """The same network, its blocks laid into full recurrent matrices."""
    rnn = network.rnn
    size = rnn.hidden_size
    whole = RecurrentNetwork(
        ParaRNN(rnn.input_size, size, size, rnn.num_layers, cell=cell), CLASSES, aggregation="ffn"
    )
    values = network.state_dict()
    for layer in range(rnn.num_layers):
        name = f"rnn.weight_hh_l{layer}"
        values[name] = full_matrices(values[name])[..., None]
    whole.load_state_dict(values)
    return whole


def check_same(x: Tensor, task: str, recipe: str) -> None:
    """Blocks, and one matrix of them, have the same outputs."""
    for model in ("ParaRNN", "ParaGRU", "ParaLSTM"):
        network = make(model, task, recipe, "stable", 0)
        with torch.no_grad():
            ours, theirs = network(x)[0], with_one_matrix(network, GATED[model][0])(x)[0]
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)
        print(f"largest difference of {model} to one matrix of its blocks: "
              f"{(ours - theirs).abs().max():.1e}")  # fmt: skip


class NoisyRows:
    """Noise-padded images, made batch by batch: all of CIFAR-10 at once has 19 GB."""

    def __init__(self, images: np.ndarray, length: int, shared: bool, seed: int) -> None:
        self.images, self.length, self.shared, self.seed = images, length, shared, seed

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, rows: Tensor) -> Tensor:
        """Sequences (B, T, 96); an image has the same noise in every epoch."""
        if self.shared:
            images = self.images[rows.numpy()]  # a tensor of one row would drop an axis
            x = noise_padded(images, self.length, random_state=self.seed, shared=True)
            return torch.from_numpy(x)
        draws = ((row, np.random.default_rng((self.seed, row))) for row in rows.tolist())
        x = [noise_padded(self.images[[row]], self.length, random_state=g) for row, g in draws]
        return torch.from_numpy(np.concatenate(x))


def read_sample(path: Path) -> dict[str, LabelledImages]:
    """Images of CIFAR-10 that are kept as JPEG."""
    from PIL import Image

    parts = {}
    with np.load(path) as file:
        for part in ("train", "test"):
            ends = file[f"{part}_end"]
            content = file[f"{part}_jpeg"].tobytes()
            pieces = [content[a:b] for a, b in zip([0, *ends[:-1]], ends, strict=True)]
            images = np.stack([np.asarray(Image.open(io.BytesIO(piece))) for piece in pieces])
            labels = file[f"{part}_label"].astype(np.int64)
            parts[part] = LabelledImages(
                "CIFAR-10 sample, JPEG", images, labels, tuple("0123456789")
            )
    return parts


def read_images(task: str, home: Path) -> tuple[str, dict[str, LabelledImages]]:
    """What the images are, and both parts of them."""
    if task in ("smnist", "psmnist"):
        return "full", {
            part: load_mnist(part, data_home=home / "mnist") for part in ("train", "test")
        }
    try:
        parts = {part: load_cifar10(part, data_home=home / "cifar10") for part in ("train", "test")}
        return "full", parts
    except FileNotFoundError:
        if not (home / "cifar10" / SAMPLE).is_file():
            raise
        return "sample", read_sample(home / "cifar10" / SAMPLE)


def make_parts(task: str, images: dict[str, LabelledImages], noise: str) -> dict[str, Part]:
    """Sequences and labels to train, validate and test."""
    train_images, labels = images["train"].images, images["train"].labels
    count = min(VALIDATION, 3 * len(labels) // 50)  # 47 to 3, as of all images
    # At random, as the test images of the sample are class after class.
    order = np.random.default_rng(ORDER).permutation(len(labels))
    pieces = {
        "train": (train_images[order[:-count]], labels[order[:-count]]),
        "validation": (train_images[order[-count:]], labels[order[-count:]]),
        "test": (images["test"].images, images["test"].labels),
    }
    parts: dict[str, Part] = {}
    for number, (part, (pixels, y)) in enumerate(pieces.items()):
        x: Tensor | NoisyRows
        if task == "noisy_cifar":
            shared = noise == "shared"
            x = NoisyRows(pixels, TASKS[task][0], shared, seed=0 if shared else number)
        else:
            x = torch.from_numpy(pixel_sequences(pixels, ORDER if task == "psmnist" else None))
        parts[part] = (x, torch.from_numpy(y))
    return parts


def recipe_of(key: dict[str, Any]) -> Recipe:
    """Training of a run: that of Cai et al., or of LEM."""
    _, _, _, _, batch, rate, _ = TASKS[key["task"]]
    slow = key.get("slow", False)
    recipe = Recipe(minutes=key["minutes"] or float("inf"), clip_norm=key["clip"], slow=slow)
    if key["model"] in LEMS:
        rate = rate if key["model"] == "LEM" else LEM_CODE.get(key["task"], (rate, 0))[0]
        recipe = replace(
            recipe, rate=rate, batch_size=batch, stalled=None, epochs=120, drops=(100,)
        )
    if key["recipe"] == "small":
        recipe = replace(recipe, evaluations=4)
    return recipe if key["rate"] is None else replace(recipe, rate=key["rate"])


class Histories:
    """Recurrence features at the start and after each epoch, for `plot_feature_history`."""

    def __init__(self) -> None:
        self.tables: list[pd.DataFrame] = []

    def __call__(self, network: nn.Module, epoch: int) -> None:
        """Read the recurrent layers of a network."""
        self.tables.append(recurrence_features(network.rnn).assign(training=1, epoch=epoch))

    def counts(self) -> list[dict[str, int]]:
        """Features of each type by epoch, all matrices together."""
        return [table["type"].value_counts().sort_index().to_dict() for table in self.tables]

    def draw(self, file: Path) -> None:
        """Write the figure, if there are epochs."""
        if len(self.tables) > 1:
            file.parent.mkdir(parents=True, exist_ok=True)
            frame = pd.concat(self.tables, ignore_index=True)
            plot_feature_history(frame)[0, 0].figure.savefig(file, dpi=150)


def make_runner(options: argparse.Namespace, data: dict[str, Any]) -> Callable[..., dict[str, Any]]:
    """Function that makes a run; sequences of a task are made once."""
    known: dict[str, dict[str, Part]] = {}

    def run(key: dict[str, Any]) -> dict[str, Any]:
        task = key["task"]
        if task not in known:
            known.clear()
            known[task] = make_parts(task, data[task][1], options.noise)
        network = make(key["model"], task, key["recipe"], key["start"], key["seed"])
        histories = Histories() if options.plot and key["model"] in GATED else None
        result = train(network, known[task], recipe_of(key), seed=key["seed"], watch=histories)
        if histories is not None:
            name = f"{task}_{key['model']}_{key['start']}.png"
            histories.draw(options.plot / name)
            result["types"] = histories.counts()
        return result

    return run


def keys_of(options: argparse.Namespace, kinds: dict[str, str]) -> Iterator[dict[str, Any]]:
    for task, seed, model in product(options.tasks, range(options.seeds), options.models):
        start = default_start(model)
        starts = options.starts if options.starts and start != "default" else [start]
        starts = [start for start in starts if start != "blocks" or not has_blocks(model)]
        for start, rate in product(starts, options.rates):
            key = {"task": task, "data": kinds[task], "recipe": options.recipe,
                   "model": model, "start": start, "rate": rate, "clip": options.clip,
                   "minutes": options.minutes_each, "seed": seed}  # fmt: skip
            noise = {"noise": options.noise} if task == "noisy_cifar" else {}
            yield key | noise | ({"slow": True} if options.slow and model in GATED else {})


def print_results(options: argparse.Namespace, kinds: dict[str, str]) -> None:
    """Print the accuracy by task beside the papers', and its course by minutes."""
    for task in options.tasks:
        rows, courses, types = [], [], []
        keys = (key for key in keys_of(options, kinds) if key["task"] == task)
        for key, result in kept_results(options, keys):
            name = [key["model"], key["start"], f"{recipe_of(key).rate:g}", key["seed"]]
            course = result["course"]
            scores = [f"{result[part]:.2f}" for part in ("validation", "test")]
            scores = ["diverged"] * 2 if result["diverged"] else scores
            theirs = [table.get(task, {}).get(key["model"], "") for table in (CAI, RUSCH)]
            rows.append([*name, result["parameters"], f"{result['epochs']:.2f}",
                         f"{result['minutes']:.1f}", f"{result['sequences_a_second']:.0f}",
                         *scores, *theirs])  # fmt: skip
            best = [max((c["validation"] for c in course if c["minutes"] <= m), default=None)
                    for m in options.course]  # fmt: skip
            courses.append([*name, *("" if b is None else f"{b:.1f}" for b in best),
                            f"{course[-1]['validation']:.1f}" if course else ""])  # fmt: skip
            for epoch, counts in enumerate(result.get("types", [])):
                total = sum(counts.values())
                shares = ", ".join(f"{t} {100 * n / total:.0f}" for t, n in counts.items())
                types.append([*name, epoch, shares])
        if not rows:
            print(f"\n{task}: no runs of these yet")
            continue
        name = ["model", "start", "rate", "seed"]
        print(f"\n{task}, {kinds[task]} data, recipe {options.recipe}, at most "
              f"{options.minutes_each or 'all'} minutes: accuracy in percent\n")  # fmt: skip
        print_table([*name, "parameters", "epochs", "minutes", "images a second", "validation",
                     "test", "Cai et al.", "Rusch et al."], rows)  # fmt: skip
        print("\nbest validation accuracy by minutes of one core, and the last one\n")
        print_table([*name, *(f"{m:g}" for m in options.course), "last"], courses)
        if types:
            print("\nrecurrence features of each type in percent\n")
            print_table([*name, "epoch", "features"], types)


def main() -> None:
    parser = option_parser(__doc__)
    parser.add_argument("--data-home", type=Path, default=LOCAL_COPY,
                        help="folder with mnist/ and cifar10/")  # fmt: skip
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=["psmnist"])
    parser.add_argument("--models", nargs="+", choices=MODELS,
                        default=["RNN", "ParaRNN", "GRU", "ParaGRU", "LEM", "ParaBRT"])  # fmt: skip
    parser.add_argument("--recipe", choices=("small", "paper"), default="small")
    parser.add_argument("--starts", nargs="+", choices=STARTS, help="of matrices without chrono")
    parser.add_argument("--rates", nargs="+", type=float, default=[None])
    parser.add_argument("--clip", type=float, default=1.0)
    parser.add_argument("--slow", action="store_true",
                        help="recurrent matrices at a tenth of the rate")  # fmt: skip
    parser.add_argument("--noise", choices=("shared", "each"), default="shared")
    parser.add_argument("--minutes-each", type=float, help="of a training; none by default")
    parser.add_argument("--course", nargs="+", type=float, default=[1, 2, 4, 6])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--plot", type=Path, help="folder for the figures of runs that are made")
    options = read_run_options(parser, "images")
    if "blocks" in (options.starts or []) and (wrong := list(filter(has_blocks, options.models))):
        print(f"start blocks skipped for {', '.join(wrong)}, whose matrices are blocks")
    data: dict[str, Any] = {}
    for task in [] if options.print_only else options.tasks:
        try:
            data[task] = read_images(task, options.data_home)
        except FileNotFoundError as error:
            print(f"{task} skipped: {error}")
    kinds = {task: "full" if "mnist" in task else "sample" for task in options.tasks}
    kinds |= {task: kind for task, (kind, _) in data.items()}
    if options.check:
        for task in data:
            parts = make_parts(task, data[task][1], options.noise)
            check_same(parts["test"][0][torch.arange(64)], task, options.recipe)
        return
    keys = (key for key in keys_of(options, kinds) if key["task"] in data)
    run_all(options, keys, make_runner(options, data))
    print_results(options, kinds)


if __name__ == "__main__":
    main()
