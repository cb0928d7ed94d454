"""Table S.4 of Cai et al. (2026): ETT and Weather, the defaults and the paper's settings.

The first twelve months of ETT train, four validate, four test, a month being 30 days; of Weather
28, 10 and 10 calendar months. Test windows start at every row; errors are on the scale standardised
by the training part. ``--readings all`` forecasts all variables, ``target`` one of them, the oil
temperature or the wet bulb temperature, from all: the caption of the table says the first, the text
the second. Runs are kept in the table ``--results`` and not made again. ``--print-only`` runs
nothing; ``--wide`` prints MSE (MAE) with a column for each case.

``BRT`` and ``ParaBRT`` have the sizes of Table S.1 (512 wide, 128 states, 8 heads, 3 to 5
layers); a window is the shortest of which the table's number of blocks holds `BRT_INPUT` steps, as
the length of the paper's inputs is not known. ``small BRT`` and ``small ParaBRT`` are 64 wide, with
16 states, 4 heads and windows of 16 steps.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import math
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _runs import Key, kept_results, read_result, read_run_options, run_all
from _timing import option_parser, print_table

from tsrnn import ParaRNNForecaster, recurrence_features
from tsrnn.datasets import load_ett, load_wth

LOCAL_COPY = Path(__file__).resolve().parents[2] / "shared" / "data"
TARGETS = {"ETTh1": "OT", "ETTh2": "OT", "ETTm1": "OT", "WTH": "WetBulbCelsius"}
PARTS = {  # rows that train, validate and test
    "ETTh1": (8640, 2880, 2880),
    "ETTh2": (8640, 2880, 2880),
    "ETTm1": (34560, 11520, 11520),
    "WTH": (20424, 7296, 7344),
}
# Test MSE and MAE. The paper's table has 228 in place of 288, which stands in its Table S.1.
MODELS = ("RNN", "ParaRNN", "LSTM", "ParaLSTM", "GRU", "ParaGRU", "BRT", "ParaBRT")
PUBLISHED = {
    ("ETTh1", 24): (0.548, 0.530, 0.547, 0.522, 0.642, 0.602, 0.621, 0.580,
                    0.513, 0.527, 0.484, 0.504, 0.520, 0.506, 0.503, 0.496),
    ("ETTh1", 48): (0.527, 0.519, 0.525, 0.521, 0.598, 0.577, 0.616, 0.595,
                    0.523, 0.526, 0.529, 0.522, 0.533, 0.518, 0.537, 0.522),
    ("ETTh1", 168): (0.752, 0.662, 0.747, 0.648, 0.974, 0.774, 0.909, 0.739,
                     0.794, 0.684, 0.764, 0.666, 0.799, 0.675, 0.800, 0.671),
    ("ETTh1", 336): (0.989, 0.790, 0.900, 0.755, 1.120, 0.841, 0.925, 0.761,
                     0.967, 0.789, 0.950, 0.785, 1.004, 0.790, 1.003, 0.793),
    ("ETTh2", 24): (0.595, 0.598, 0.550, 0.569, 0.966, 0.786, 0.804, 0.719,
                    0.614, 0.633, 0.516, 0.549, 0.954, 0.778, 0.891, 0.758),
    ("ETTh2", 48): (1.144, 0.852, 1.025, 0.826, 1.437, 0.953, 1.322, 0.949,
                    1.149, 0.868, 1.119, 0.873, 1.466, 0.987, 1.374, 0.956),
    ("ETTh2", 168): (4.599, 1.787, 3.325, 1.519, 3.428, 1.578, 3.399, 1.515,
                     3.347, 1.542, 2.478, 1.239, 2.852, 1.311, 2.873, 1.310),
    ("ETTh2", 336): (3.576, 1.618, 2.772, 1.420, 3.025, 1.523, 2.856, 1.445,
                     2.598, 1.375, 2.354, 1.278, 2.550, 1.239, 2.599, 1.271),
    ("ETTm1", 24): (0.780, 0.581, 0.766, 0.577, 0.814, 0.624, 0.756, 0.582,
                    0.753, 0.585, 0.674, 0.557, 0.778, 0.601, 0.745, 0.585),
    ("ETTm1", 48): (0.972, 0.698, 0.924, 0.697, 0.968, 0.719, 0.968, 0.699,
                    0.768, 0.623, 0.744, 0.602, 0.581, 0.554, 0.578, 0.554),
    ("ETTm1", 96): (0.570, 0.548, 0.519, 0.509, 0.605, 0.570, 0.535, 0.526,
                    0.510, 0.529, 0.428, 0.458, 0.869, 0.739, 0.786, 0.694),
    ("ETTm1", 288): (0.684, 0.623, 0.654, 0.607, 0.965, 0.788, 0.770, 0.679,
                     0.770, 0.691, 0.739, 0.671, 1.034, 0.821, 1.043, 0.819),
    ("WTH", 24): (0.365, 0.411, 0.368, 0.411, 0.376, 0.420, 0.374, 0.417,
                  0.360, 0.407, 0.360, 0.403, 0.384, 0.428, 0.384, 0.428),
    ("WTH", 48): (0.479, 0.492, 0.481, 0.492, 0.489, 0.499, 0.484, 0.494,
                  0.468, 0.484, 0.464, 0.484, 0.486, 0.497, 0.486, 0.498),
    ("WTH", 168): (0.569, 0.558, 0.564, 0.556, 0.570, 0.558, 0.571, 0.559,
                   0.549, 0.546, 0.556, 0.552, 0.742, 0.641, 0.750, 0.645),
    ("WTH", 336): (0.582, 0.565, 0.583, 0.567, 0.583, 0.565, 0.586, 0.566,
                   0.580, 0.563, 0.583, 0.565, 0.842, 0.694, 0.829, 0.686),
}  # fmt: skip
# Layers and recurrent blocks of BRT and ParaBRT, Table S.1.
TABLE_S1 = {
    ("ETTh1", 24): (3, 2), ("ETTh1", 48): (3, 2), ("ETTh1", 168): (3, 3), ("ETTh1", 336): (3, 4),
    ("ETTh2", 24): (3, 2), ("ETTh2", 48): (3, 2), ("ETTh2", 168): (5, 3), ("ETTh2", 336): (5, 3),
    ("ETTm1", 24): (3, 2), ("ETTm1", 48): (3, 2), ("ETTm1", 96): (3, 3), ("ETTm1", 288): (3, 3),
    ("WTH", 24): (3, 2), ("WTH", 48): (3, 2), ("WTH", 168): (5, 2), ("WTH", 336): (5, 2),
}  # fmt: skip
BRT_INPUT = 168  # steps of an input of BRT, a week of hours
PAPER: dict[str, Any] = {"preset": "paper"}
VANILLA = {"block_size": 128}  # one block of all units
BRT = PAPER | {"cell": "attention", "hidden_size": 512, "n_states": 128, "n_heads": 8}
SMALL_BRT = PAPER | {"cell": "attention", "hidden_size": 64}
CASES: dict[str, dict[str, Any]] = {
    "linear path alone": {"network": False},
    "default": {},
    "ParaRNN": PAPER,
    "RNN": PAPER | VANILLA,
    "ParaGRU": PAPER | {"cell": "gru"},
    "GRU": PAPER | VANILLA | {"cell": "gru"},
    "ParaLSTM": PAPER | {"cell": "lstm"},
    "LSTM": PAPER | VANILLA | {"cell": "lstm"},
    "ParaBRT": BRT,
    "BRT": BRT | {"block_size": 512},
    "small ParaBRT": SMALL_BRT,
    "small BRT": SMALL_BRT | {"block_size": 64},
}
TRIALS: dict[str, dict[str, Any]] = {  # what the paper leaves open
    "ParaRNN, stable": PAPER | {"init": "stable"},
    "ParaRNN, standardised only": PAPER | {"local_level": False},
}
READINGS = ("all", "target")


@functools.cache
def load(name: str, folder: Path | None) -> pd.DataFrame:
    """Data set by its name in the table."""
    if name == "WTH":
        return load_wth(data_home=folder / "weather" if folder else ".")
    return load_ett(name, data_home=folder / "ett" if folder else None)


def settings(key: Key) -> dict[str, Any]:
    """Arguments of the forecaster of a run."""
    arguments = dict((CASES | TRIALS)[key["case"]])
    if key["case"] in ("BRT", "ParaBRT"):
        layers, blocks = TABLE_S1[key["data"], key["horizon"]]
        arguments |= {"n_layers": layers, "window": math.ceil(BRT_INPUT / blocks)}
    return arguments


def run(key: Key, data: pd.DataFrame) -> dict[str, Any]:
    """Errors on the test part, error on the validation part and seconds of one fit."""
    training, validation, test_rows = PARTS[key["data"]]
    known = data.iloc[: training + validation]
    test = data.iloc[len(known) : len(known) + test_rows]
    targets = list(data) if key["reading"] == "all" else [TARGETS[key["data"]]]
    start = time.perf_counter()
    model = ParaRNNForecaster(
        horizon=key["horizon"], val_size=validation, random_state=key["seed"], target=targets,
        **settings(key),
    ).fit(known)  # fmt: skip
    fitted = time.perf_counter()
    forecasts = model.predict_rolling(test).drop(columns="cutoff")
    scale = data.iloc[:training].std(ddof=0)
    error = ((forecasts - test.loc[forecasts.index, targets]) / scale[targets]).to_numpy()
    assert len(error) == (test_rows - key["horizon"] + 1) * key["horizon"]
    # Of all recurrent matrices, as in Figure 1(b).
    types = recurrence_features(model)["type"].value_counts() if model.network_active_ else None
    return {
        "mse": float(np.mean(error**2)),
        "mae": float(np.abs(error).mean()),
        "validation": min((epoch["val_loss"] for epoch in model.history_), default=math.nan),
        "epochs": len(model.history_),
        "fit_seconds": round(fitted - start, 1),
        "forecast_seconds": round(time.perf_counter() - fitted, 1),
        "types": {} if types is None else types.to_dict(),
    }


def keys_of(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Runs that are asked for, those of a seed and a case one after the other."""
    return [
        {"data": data, "reading": reading, "horizon": horizon, "case": case, "seed": seed}
        for seed, reading, case, (data, horizon) in itertools.product(
            options.seeds, options.readings, options.cases, PUBLISHED
        )
        if data in options.data
        and (options.horizons is None or horizon in options.horizons)
        and (seed == 0 or case != "linear path alone")  # which draws nothing
    ]


def print_wide(runs: pd.DataFrame, cases: list[str]) -> None:
    """MSE (MAE) by case, means over seeds; then published values, the best or each model's."""
    means = runs.groupby(["reading", "data", "horizon", "case"], sort=False)[["mse", "mae"]].mean()
    names = [case.removeprefix("small ") for case in cases]
    as_published = set(names) <= set(MODELS)
    header = ["data", "horizon", *cases, *([] if as_published else ["best published"])]
    rows: list[list[object]] = []
    for reading, data, horizon in dict.fromkeys(key[:3] for key in means.index):
        cells = [
            f"{means.mse[key]:.4f} ({means.mae[key]:.3f})" if key in means.index else ""
            for case in cases
            if (key := (reading, data, horizon, case))
        ]
        published = PUBLISHED[data, horizon]
        mse, mae = published[::2], published[1::2]
        if not as_published:
            best = MODELS[int(np.argmin(mse))]
            cells.append(f"{min(mse):.3f}, {best} ({min(mae):.3f})" if reading == "all" else "")
        rows.append([data, horizon, *cells])
        if as_published:
            pairs = [(mse[i], mae[i]) for i in map(MODELS.index, names)]
            rows.append(["published", horizon, *(f"{a:.3f} ({b:.3f})" for a, b in pairs)])
    print_table(header, rows)


def summary(runs: pd.DataFrame) -> list[list[object]]:
    """Rows of the long table: means over the seeds that were run, beside the paper's numbers."""
    rows = []
    for group, part in runs.groupby(["reading", "data", "horizon", "case"], sort=False):
        reading, data, horizon, case = group
        spread = f" ({part['mse'].std():.4f})" if len(part) > 1 else ""
        types = Counter[str]()
        for counts in part["types"]:
            types.update(counts)
        shares = [f"{name} {count / types.total():.0%}" for name, count in types.most_common(3)]
        theirs = PUBLISHED[data, horizon]
        place = 2 * MODELS.index(case) if case in MODELS else None
        best = f"{min(theirs[::2]):.3f}", f"{min(theirs[1::2]):.3f}"  # of all eight models
        published = best if place is None else (theirs[place], theirs[place + 1])
        rows.append(
            [reading, data, horizon, case, len(part), f"{part['mse'].mean():.4f}{spread}",
             f"{part['mae'].mean():.4f}", *published, f"{part['fit_seconds'].mean():.0f}",
             f"{part['epochs'].mean():.0f}", " ".join(shares)]
        )  # fmt: skip
    return rows


def loadable(keys: list[dict[str, Any]], options: argparse.Namespace) -> list[dict[str, Any]]:
    """Runs that are missing and whose data are there; those of other data are skipped."""
    missing = [key for key in keys if read_result(options.results, key) is None]
    absent = set()
    for name in dict.fromkeys(key["data"] for key in missing):
        try:
            load(name, options.data_home)
        except OSError as error:  # no file, or no network
            print(f"{name} skipped: {error}")
            absent.add(name)
    return [key for key in missing if key["data"] not in absent]


def main() -> None:
    parser = option_parser(__doc__)
    parser.add_argument("--data-home", type=Path, help="folder with ett/ and weather/",
                        default=LOCAL_COPY if LOCAL_COPY.is_dir() else None)  # fmt: skip
    parser.add_argument("--data", nargs="+", choices=PARTS, default=["ETTh1"])
    parser.add_argument("--horizons", type=int, nargs="+", help="all four of each by default")
    parser.add_argument("--readings", nargs="+", choices=READINGS, default=["all"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--cases", nargs="+", choices=[*CASES, *TRIALS],
                        default=["linear path alone", "default"])  # fmt: skip
    parser.add_argument("--wide", action="store_true", help="a column for each case")
    options = read_run_options(parser, "table_s4", threads=None)
    horizons = sorted({horizon for data, horizon in PUBLISHED if data in options.data})
    if not set(options.horizons or []) <= set(horizons):
        parser.error(
            f"--horizons of {', '.join(options.data)} are {horizons}; got {options.horizons}"
        )
    keys = keys_of(options)
    if not options.print_only:
        run_all(options, loadable(keys, options),
                lambda key: run(key, load(key["data"], options.data_home)))  # fmt: skip
    empty: dict[str, Any] = {"types": {}}
    runs = pd.DataFrame([key | empty | result for key, result in kept_results(options, keys)])
    if runs.empty:
        return
    if options.wide:
        print_wide(runs, options.cases)
        return
    print_table(
        ["reading", "data", "horizon", "settings", "seeds", "test MSE (sd)", "test MAE",
         "published MSE", "MAE", "fit, s", "epochs", "types of features"],
        summary(runs),
    )  # fmt: skip


if __name__ == "__main__":
    main()
