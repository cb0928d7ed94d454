"""ETTh1 and ETTm1: defaults and the paper's settings at the horizons of its Table S.4.

The first twelve months train, four validate, four test; test windows start at every row; errors
are on the scale standardised by the training part. ``--reading all`` forecasts all seven
variables, ``--reading OT`` the oil temperature from all of them: the caption of the table says
the first, the text the second. ``--data-home`` names a folder with the files.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
from _timing import print_machine, print_table

from tsrnn import ParaRNNForecaster
from tsrnn.datasets import load_ett

LOCAL_COPY = Path(__file__).resolve().parents[2] / "shared" / "data" / "ett"
PER_DAY = {"ETTh1": 24, "ETTm1": 96}
HORIZONS = {"ETTh1": (24, 48, 168, 336), "ETTm1": (24, 48, 96, 288)}
# Table S.4 of Cai et al. (2026), ParaRNN.
PUBLISHED = {
    "ETTh1": dict(zip(HORIZONS["ETTh1"], (0.547, 0.525, 0.747, 0.900), strict=True)),
    "ETTm1": dict(zip(HORIZONS["ETTm1"], (0.766, 0.924, 0.519, 0.654), strict=True)),
}
PAPER = {"preset": "paper"}
VANILLA = {"block_size": 128}  # one block of all units
CASES = {
    "linear path alone": {"max_epochs": 1, "learning_rate": 1e-12},
    "default": {},
    "ensemble of 3": {"n_estimators": 3},
    "ParaRNN": PAPER,
    "ParaLSTM": PAPER | {"cell": "lstm"},
    "ParaGRU": PAPER | {"cell": "gru"},
    "RNN": PAPER | VANILLA,
    "LSTM": PAPER | VANILLA | {"cell": "lstm"},
    "GRU": PAPER | VANILLA | {"cell": "gru"},
    "ParaRNN, standardised only": PAPER | {"local_level": False},
}


class Result:
    """Test errors, validation error and seconds of one fit."""

    def __init__(self, data: pd.DataFrame, name: str, horizon: int, seed: int, reading: str,
                 arguments: dict) -> None:  # fmt: skip
        month = 30 * PER_DAY[name]
        known, test = data.iloc[: 16 * month], data.iloc[16 * month : 20 * month]
        targets = list(data) if reading == "all" else [reading]
        start = time.perf_counter()
        model = ParaRNNForecaster(
            horizon=horizon, val_size=4 * month, random_state=seed, target=targets, **arguments
        ).fit(known)
        forecasts = model.predict_rolling(test).drop(columns="cutoff")
        self.seconds = time.perf_counter() - start
        scale = data.iloc[: 12 * month].std(ddof=0)
        error = ((forecasts - test.loc[forecasts.index, targets]) / scale[targets]).to_numpy()
        assert len(error) == (4 * month - horizon + 1) * horizon
        self.mse, self.mae = float(np.mean(error**2)), float(np.abs(error).mean())
        self.validation = min(epoch["val_loss"] for epoch in model.history_)
        self.epochs = len(model.history_)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-home", default=LOCAL_COPY if LOCAL_COPY.is_dir() else None)
    parser.add_argument("--data", choices=HORIZONS, default="ETTh1")
    parser.add_argument("--horizons", type=int, nargs="+")
    parser.add_argument("--reading", choices=["all", "OT"], default="all")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument(
        "--cases", nargs="+", choices=CASES, default=["linear path alone", "default"]
    )
    options = parser.parse_args()
    data = load_ett(options.data, data_home=options.data_home)
    print_machine()
    rows = []
    for horizon in options.horizons or HORIZONS[options.data]:
        published = PUBLISHED[options.data].get(horizon, "")
        for case in options.cases:
            seeds = range(1 if case == "linear path alone" else options.seeds)
            results = []
            for seed in seeds:
                found = Result(data, options.data, horizon, seed, options.reading, CASES[case])
                results.append(
                    (found.mse, found.mae, found.validation, found.seconds, found.epochs)
                )
                print(horizon, case, seed, *results[-1], file=sys.stderr, flush=True)
            mean, spread = np.mean(results, 0), np.std(results, 0)
            rows.append(
                [horizon, case, f"{mean[0]:.4f} ({spread[0]:.4f})", f"{mean[1]:.4f}",
                 f"{mean[2]:.4f}", f"{mean[3]:.0f}", f"{mean[4]:.0f}", published]
            )  # fmt: skip
    print(f"{options.data}, {options.reading}, {options.seeds} seeds")
    print_table(
        ["horizon", "settings", "test MSE (sd)", "test MAE", "validation", "seconds", "epochs",
         "published ParaRNN"], rows
    )  # fmt: skip


if __name__ == "__main__":
    main()
