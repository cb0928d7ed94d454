"""Very long sequences: LEM, LSTM, RNN and GRU beside their block twins.

Tables 2, 3, 5 and 10 and Figure 2 of Rusch et al. (2022), and Table 1(e) of Cai et al. (2026).
``--data`` names the sequences:

``eigenworms``, ``heart_rate`` and ``google12`` are those of the papers, read from ``--data-home``
and trained at the settings of Table 8 and appendix A of Rusch et al.: Adam, no clipping, the epoch
of the best validation score. Table 8 has settings of LEM alone; the others take the same ones.
Cai et al. give sizes (two layers of 32; transformers of Table S.1) and leave rate, batches and
epochs of EigenWorms open. A transformer of their size reads EigenWorms in 18 windows of 1000 steps;
"small" ones have 32 units, 4 heads, 8 states and windows of 64.

``ACSF1``, ``OSULeaf`` and ``BasicMotions`` are problems of the same archive, in place of EigenWorms
where that is absent: pooled, split 70/15/15 and trained at its settings.

``events`` and ``waves`` are generated, 259 sequences of ``--steps`` steps of 6 channels in 5
classes, split as EigenWorms. All channels are white noise of standard deviation 0.3. In ``events``
there are bumps of 3 besides, each for 1/200 of the length, at random places of the whole: 8 in the
channel of the class, 4 in each other of the first five. In ``waves`` every channel has a sine of
amplitude 1 and random phase, of 2, 4, 8, 16 or 32 periods in the whole length: the class.

``--time`` measures the seconds of an epoch of EigenWorms, of the processor by thread: 181
sequences of 17,984 steps in batches of 8, forward and backward, from ``--repeats`` batches. Those
of transformers are of 1 sequence, times 8: more would not fit into memory.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from _classify import Part, Recipe, answers, loss_of, seconds, train
from _runs import kept_results, read_run_options, run_all
from _timing import option_parser, print_table

from tsrnn.datasets import (
    LabelledSequences,
    load_eigenworms,
    load_google12,
    load_heart_rate,
    read_ts,
)
from tsrnn.layers import LEM, BlockRecurrentAttention, ParaRNN, Recurrent, RecurrentNetwork

LOCAL_COPY = Path(__file__).resolve().parents[2] / "shared" / "data" / "uea_ucr"
STAND_INS = ("ACSF1", "OSULeaf", "BasicMotions")
GENERATED = ("events", "waves")
PERIODS = (2, 4, 8, 16, 32)
CASES, WORM_STEPS, CHANNELS = 259, 17_984, 6
DT_SWEEP = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001)


class Task(NamedTuple):
    """Settings of Table 8 and appendix A, and published results by model."""

    units: int
    dt: float
    recipe: Recipe
    published: dict[str, str]


WORMS = Recipe(rate=2.3e-3, batch_size=8, clip_norm=float("inf"), stalled=None, epochs=50)
HEALTH = Recipe(rate=1.56e-3, batch_size=32, clip_norm=float("inf"), stalled=None,
                epochs=500, drops=(250,))  # fmt: skip
WORDS = Recipe(rate=8.9e-4, batch_size=100, clip_norm=float("inf"), stalled=None,
               epochs=60, drops=(50,))  # fmt: skip
TASKS = {
    "eigenworms": Task(32, 1.6e-3, WORMS, {
        "LEM": "92.3", "LEM, dt=1": "57.9", "LEM, dt=1, chrono": "88.2", "LSTM": "38.5",
        "chrono-LSTM": "82.6", "RNN x 2": "43.33", "ParaRNN x 2": "43.59", "LSTM x 2": "42.82",
        "ParaLSTM x 2": "43.59", "GRU x 2": "42.82", "ParaGRU x 2": "43.33", "BRT": "58.40",
        "ParaBRT": "60.97",
    }),
    "heart_rate": Task(128, 0.19, HEALTH, {"LEM": "0.85", "LSTM": "9.93", "chrono-LSTM": "3.31"}),
    "google12": Task(128, 1.0, WORDS, {"LEM": "95.7", "LSTM": "94.9", "GRU": "95.2",
                                       "RNN": "73.4"}),
}  # fmt: skip
# Networks: cell, layers, initialisation, aggregation; blocks of 2 or the ordinary network.
NETWORKS = {
    "RNN": ("rnn", 1, "uniform", False), "GRU": ("gru", 1, "uniform", False),
    "LSTM": ("lstm", 1, "uniform", False), "chrono-LSTM": ("lstm", 1, "chrono", False),
    "ParaLSTM": ("lstm", 1, "stable", True), "chrono-ParaLSTM": ("lstm", 1, "chrono", True),
    "RNN x 2": ("rnn", 2, "uniform", False), "ParaRNN x 2": ("rnn", 2, "stable", True),
    "LSTM x 2": ("lstm", 2, "uniform", False), "ParaLSTM x 2": ("lstm", 2, "stable", True),
    "GRU x 2": ("gru", 2, "uniform", False), "ParaGRU x 2": ("gru", 2, "stable", True),
    "RNN x 2, stable start": ("rnn", 2, "stable", False),
    "LSTM x 2, stable start": ("lstm", 2, "stable", False),
    "GRU x 2, stable start": ("gru", 2, "stable", False),
}  # fmt: skip
LEMS: dict[str, dict[str, Any]] = {
    "LEM": {}, "LEM, blocks of 4": {"block_size": 4}, "LEM, blocks of 2": {"block_size": 2},
    "LEM, dt=1": {"dt": 1.0}, "LEM, dt=1, chrono": {"dt": 1.0, "init": "chrono"},
}  # fmt: skip
# Transformers: blocks of the states, width, heads, states, window.
TRANSFORMERS = {
    "BRT, small": (None, 32, 4, 8, 64), "ParaBRT, small": (2, 32, 4, 8, 64),
    "BRT": (None, 256, 8, 32, None), "ParaBRT": (2, 256, 8, 32, None),
}  # fmt: skip
MODELS = (*LEMS, *NETWORKS, *TRANSFORMERS)
TABLE_10 = ("LSTM", "chrono-LSTM", "LEM, dt=1", "LEM, dt=1, chrono", "LEM")


def make_network(
    model: str, task: Task, dt: float | None, inputs: int, outputs: int, steps: int, seed: int
) -> RecurrentNetwork:
    """Network of a model, its parameters drawn."""
    rnn: Recurrent
    aggregation = "linear"
    if model in LEMS:
        options = {"dt": task.dt if dt is None else dt} | LEMS[model]
        if options.get("init") == "chrono":
            options["chrono_length"] = steps
        rnn = LEM(inputs, task.units, **options)
    elif model in NETWORKS:
        cell, layers, init, blocks = NETWORKS[model]
        rnn = ParaRNN(
            inputs, task.units, 2 if blocks else task.units, layers, cell=cell, init=init,
            chrono_length=steps if init == "chrono" else None,
        )  # fmt: skip
        aggregation = "fc" if blocks else "linear"
    else:
        block, width, heads, states, window = TRANSFORMERS[model]
        rnn = BlockRecurrentAttention(
            inputs, width, 4, block_size=block, n_states=states, n_heads=heads,
            window=-(-steps // 18) if window is None else window, recurrent_layer="all",
        )  # fmt: skip
    network = RecurrentNetwork(rnn, outputs, aggregation=aggregation)
    network.reset_parameters(torch.Generator().manual_seed(seed))
    network.prepare()
    return network


def generate(name: str, steps: int, seed: int) -> LabelledSequences:
    """Sequences whose classes need the whole length; see above."""
    generator = np.random.default_rng(seed)
    X = 0.3 * generator.standard_normal((CASES, steps, CHANNELS))
    y = generator.integers(5, size=CASES)
    if name == "events":
        width = steps // 200
        for i, label in enumerate(y):
            for channel in range(5):
                for start in generator.integers(steps - width, size=8 if channel == label else 4):
                    X[i, start : start + width, channel] += 3
    else:
        turns = np.array(PERIODS)[y][:, None, None] * np.arange(steps)[:, None] / steps
        X += np.sin(2 * np.pi * (turns + generator.uniform(size=(CASES, 1, CHANNELS))))
    return LabelledSequences(name, X, y.astype(str), tuple("01234"))


def split(data: LabelledSequences, seed: int) -> dict[str, LabelledSequences]:
    """Cases at random in parts of 70, 15 and 15 percent."""
    n = len(data.X)
    order = np.random.default_rng(seed).permutation(n)
    train, validation = round(0.7 * n), (n - round(0.7 * n)) // 2
    places = np.split(order, [train, train + validation])
    return {
        part: LabelledSequences(data.name, data.X[rows], data.y[rows], data.labels)
        for part, rows in zip(("train", "validation", "test"), places, strict=True)
    }


def load(name: str, folder: Path, steps: int, split_seed: int) -> dict[str, LabelledSequences]:
    if name in GENERATED:
        return split(generate(name, steps, split_seed), split_seed)
    if name in STAND_INS:
        files = [read_ts(folder / f"{name}_{part}.ts.gz") for part in ("TRAIN", "TEST")]
        X, y = (np.concatenate([getattr(file, field) for file in files]) for field in "Xy")
        return split(LabelledSequences(name, X, y, files[0].labels), split_seed)
    loader: Callable[..., dict[str, LabelledSequences]] = {
        "eigenworms": load_eigenworms, "heart_rate": load_heart_rate, "google12": load_google12,
    }[name]  # fmt: skip
    seed = {} if name == "google12" else {"random_state": split_seed}
    return loader(data_home=folder, **seed)


def as_tensors(data: LabelledSequences) -> Part:
    """Sequences (N, T, d), and numbers of classes (N,) or targets (N, 1)."""
    x = torch.as_tensor(data.X, dtype=torch.float32)
    if not data.labels:
        return x, torch.as_tensor(data.y, dtype=torch.float32)[:, None]
    return x, torch.tensor([data.labels.index(label) for label in data.y])


def make_runner(options: argparse.Namespace) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Function that makes a run; sequences are read once, when they are first needed."""
    known: dict[str, LabelledSequences] = {}

    def run(key: dict[str, Any]) -> dict[str, Any]:
        if not known:
            known.update(load(key["data"], options.data_home, options.steps, 1234))
        parts = {part: as_tensors(data) for part, data in known.items()}
        task = TASKS.get(key["data"], TASKS["eigenworms"])
        _, steps, inputs = parts["train"][0].shape
        outputs = max(1, len(known["train"].labels))
        network = make_network(key["model"], task, key["dt"], inputs, outputs, steps, key["seed"])
        recipe = vars(task.recipe) | {"epochs": key["epochs"], "minutes": key["minutes"]}
        result = train(network, parts, Recipe(**recipe), seed=key["seed"])
        majority = [np.unique(known[p].y, return_counts=True)[1].max() / len(known[p].y)
                    for p in ("train", "test")]  # fmt: skip
        result["course"] = [{name: round(value, 5) for name, value in row.items()}
                            for row in result["course"]]  # fmt: skip
        return {"steps": steps, "largest_class": [round(100 * m, 1) for m in majority]} | result

    return run


def keys_of(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    task = TASKS.get(options.data, TASKS["eigenworms"])
    for seed in range(options.seeds):
        for model in options.models:
            for dt in options.dt if model in LEMS and "dt" not in LEMS[model] else [None]:
                key = {"data": options.data, "model": model, "dt": dt,
                       "epochs": options.epochs or task.recipe.epochs,
                       "minutes": options.minutes_each, "seed": seed}  # fmt: skip
                yield key | ({"steps": options.steps} if options.data in GENERATED else {})


def print_results(options: argparse.Namespace) -> None:
    """Print a row a model and time step: mean and standard deviation over the seeds made."""
    runs: dict[tuple[str, Any], list[dict[str, Any]]] = {}
    for key, result in kept_results(options, keys_of(options)):
        runs.setdefault((key["model"], key["dt"]), []).append(result)
    if not runs:
        print("no runs of these yet")
        return
    first = next(iter(runs.values()))[0]
    print(f"\n{options.data}: {first['steps']} steps; the largest class has "
          f"{first['largest_class'][0]} % of the training and {first['largest_class'][1]} % of the "
          "test part\n")  # fmt: skip
    task = TASKS.get(options.data, TASKS["eigenworms"])
    rows = []
    for (model, dt), results in runs.items():
        tests = [r["test"] for r in results if not r["diverged"]]
        mean = f"{statistics.mean(tests):.1f}" if tests else "diverged"
        spread = f" ± {statistics.stdev(tests):.1f}" if len(tests) > 1 else ""
        best = statistics.mean(r["best_epoch"] for r in results)
        epochs = statistics.mean(r["epochs"] for r in results)
        minutes = statistics.mean(r["minutes"] for r in results)
        shown = task.dt if dt is None and model in LEMS else dt
        shown = LEMS.get(model, {}).get("dt", shown)
        published = task.published.get(model, "") if dt in (None, task.dt) else ""
        rows.append([model, "" if shown is None else f"{shown:g}", results[0]["parameters"],
                     len(results), f"{mean}{spread}", f"{best:.0f}",
                     f"{epochs:.0f}", f"{minutes:.2f}", f"{60 * minutes / epochs:.1f}",
                     sum(r["diverged"] for r in results), published])  # fmt: skip
    published = "published" if options.data in TASKS else "published, EigenWorms"
    score = "test RMSE" if options.data == "heart_rate" else "test accuracy (%)"
    print_table(["model", "dt", "parameters", "seeds", score, "best epoch", "epochs", "minutes",
                 "seconds an epoch", "diverged", published], rows)  # fmt: skip


def time_epochs(options: argparse.Namespace) -> None:
    """Measure and print the seconds of an epoch of EigenWorms."""
    task = TASKS["eigenworms"]
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(8, WORM_STEPS, CHANNELS, generator=generator)
    y = torch.randint(5, (8,), generator=generator)

    def run(key: dict[str, Any]) -> dict[str, Any]:
        network = make_network(key["model"], task, None, CHANNELS, 5, WORM_STEPS, 0)
        size = 1 if key["model"] in TRANSFORMERS else 8
        times = []
        for _ in range(options.repeats + 1):
            start = seconds()
            loss_of(answers(network, x[:size]), y[:size]).backward()
            times.append(8 / size * (seconds() - start))
        parameters = sum(p.numel() for p in network.parameters())
        return {"parameters": parameters, "seconds_a_batch": statistics.median(times[1:])}

    keys = [
        {"data": "time", "model": model, "steps": WORM_STEPS, "repeats": options.repeats}
        for model in options.models
    ]
    run_all(options, keys, run)
    batches = -(-181 // 8)
    results = {key["model"]: result for key, result in kept_results(options, keys)}
    rows = []
    for model, result in results.items():
        second = result["seconds_a_batch"]
        ratio = f"{second / results['LEM']['seconds_a_batch']:.2f}" if "LEM" in results else ""
        rows.append([model, result["parameters"], f"{second:.3f}", f"{batches * second:.1f}",
                     ratio])  # fmt: skip
    print(f"\nSeconds of the processor by thread, {WORM_STEPS} steps, batches of 8\n")
    print_table(["model", "parameters", "seconds a batch", "seconds an epoch", "of LEM's"], rows)


def main() -> None:
    parser = option_parser(__doc__)
    parser.add_argument("--data", choices=[*TASKS, *STAND_INS, *GENERATED], default="eigenworms")
    parser.add_argument("--data-home", type=Path, default=LOCAL_COPY)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS[:-2]),
                        help="by default all but the transformers of the paper's size")  # fmt: skip
    parser.add_argument("--table-10", action="store_true", help="models of that table")
    parser.add_argument("--dt", nargs="+", type=float, default=[None], help="of LEM; of the task")
    parser.add_argument("--figure-2", action="store_true", help="LEM at several dt")
    parser.add_argument("--time", action="store_true")
    parser.add_argument("--repeats", type=int, default=5, help="of --time")
    parser.add_argument("--steps", type=int, default=WORM_STEPS, help="of generated sequences")
    parser.add_argument("--epochs", type=int, help="of the papers by default")
    parser.add_argument("--seeds", type=int, default=1, help="5 and 10 in the papers")
    parser.add_argument("--minutes-each", type=float, default=600.0, help="of a training")
    options = read_run_options(parser, "long_sequences")
    if options.time:
        time_epochs(options)
        return
    if options.table_10:
        options.models = list(TABLE_10)
    if options.figure_2:
        options.models, options.dt = ["LEM"], list(DT_SWEEP)
    try:
        run_all(options, keys_of(options), make_runner(options))
    except FileNotFoundError as error:
        print(f"skipped: {error}\nrun --data events, waves or ACSF1 in its place")
    print_results(options)


if __name__ == "__main__":
    main()
