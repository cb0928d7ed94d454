"""ETTh1 and ETTm1: defaults and the paper's settings at the horizons of its Table S.4.

The first twelve months train, four validate, four test; test windows start at every row; errors
are on the scale standardised by the training part. ``--reading all`` forecasts all seven
variables, ``--reading OT`` the oil temperature from all of them: the caption of the table says
the first, the text the second. ``--data-home`` names a folder with the files; ``--results`` one
that keeps every run, so that runs it holds are not made again.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _timing import print_machine, print_table

from tsrnn import ParaRNNForecaster
from tsrnn.datasets import load_ett

LOCAL_COPY = Path(__file__).resolve().parents[2] / "shared" / "data" / "ett"
PER_DAY = {"ETTh1": 24, "ETTm1": 96}
HORIZONS = {"ETTh1": (24, 48, 168, 336), "ETTm1": (24, 48, 96, 288)}
# Test MSE at these horizons, Table S.4 of Cai et al. (2026).
PUBLISHED = {
    "ETTh1": {
        "RNN": (0.548, 0.527, 0.752, 0.989),
        "ParaRNN": (0.547, 0.525, 0.747, 0.900),
        "LSTM": (0.642, 0.598, 0.974, 1.120),
        "ParaLSTM": (0.621, 0.616, 0.909, 0.925),
        "GRU": (0.513, 0.523, 0.794, 0.967),
        "ParaGRU": (0.484, 0.529, 0.764, 0.950),
    },
    "ETTm1": {
        "RNN": (0.780, 0.972, 0.570, 0.684),
        "ParaRNN": (0.766, 0.924, 0.519, 0.654),
        "LSTM": (0.814, 0.968, 0.605, 0.965),
        "ParaLSTM": (0.756, 0.968, 0.535, 0.770),
        "GRU": (0.753, 0.768, 0.510, 0.770),
        "ParaGRU": (0.674, 0.744, 0.428, 0.739),
    },
}
PAPER = {"preset": "paper"}
VANILLA = {"block_size": 128}  # one block of all units
CASES = {
    "linear path alone": {"max_epochs": 1, "learning_rate": 1e-12},
    "default": {},
    "ensemble of 3": {"n_estimators": 3},
    "ensemble of 5": {"n_estimators": 5},
    "mae": {"loss": "mae"},
    "mae, 96 hours": {"loss": "mae", "input_size": 96},
    "96 hours": {"input_size": 96},
    "168 hours": {"input_size": 168},
    "uniform": {"init": "uniform"},
    "uniform, 96 hours": {"init": "uniform", "input_size": 96},
    "gru": {"cell": "gru"},
    "no local level": {"local_level": False},
    "weight decay 0.1": {"weight_decay": 0.1},
    "rate 0.0003": {"learning_rate": 3e-4, "max_epochs": 60, "patience": 10},
    "one small layer": {"hidden_size": 16, "n_layers": 1},
    "no second training": {"refit": False},
    "no linear path": {"linear_path": False},
    "ParaRNN": PAPER,
    "ParaRNN, stable": PAPER | {"init": "stable"},
    "ParaLSTM": PAPER | {"cell": "lstm"},
    "ParaGRU": PAPER | {"cell": "gru"},
    "RNN": PAPER | VANILLA,
    "LSTM": PAPER | VANILLA | {"cell": "lstm"},
    "GRU": PAPER | VANILLA | {"cell": "gru"},
    "ParaRNN, standardised only": PAPER | {"local_level": False},
}


KEYS = ["data", "reading", "horizon", "case", "seed"]


def run(data: pd.DataFrame, key: dict[str, Any]) -> dict[str, Any]:
    """Errors on the test part, error on the validation part and seconds of one fit."""
    horizon, reading, month = key["horizon"], key["reading"], 30 * PER_DAY[key["data"]]
    known, test = data.iloc[: 16 * month], data.iloc[16 * month : 20 * month]
    targets = list(data) if reading == "all" else [reading]
    start = time.perf_counter()
    model = ParaRNNForecaster(
        horizon=horizon, val_size=4 * month, random_state=key["seed"], target=targets,
        **CASES[key["case"]],
    ).fit(known)  # fmt: skip
    forecasts = model.predict_rolling(test).drop(columns="cutoff")
    seconds = time.perf_counter() - start
    scale = data.iloc[: 12 * month].std(ddof=0)
    error = ((forecasts - test.loc[forecasts.index, targets]) / scale[targets]).to_numpy()
    assert len(error) == (4 * month - horizon + 1) * horizon
    return {
        "mse": np.mean(error**2),
        "mae": np.abs(error).mean(),
        "validation": min(epoch["val_loss"] for epoch in model.history_),
        "seconds": seconds,
        "epochs": len(model.history_),
    }


def results_of(keys: list[dict[str, Any]], data: pd.DataFrame, file: Path | None) -> pd.DataFrame:
    """Results of all runs, those made here kept in a file one by one."""
    kept = pd.read_csv(file) if file and file.exists() else pd.DataFrame(columns=KEYS)
    for key in keys:
        if (kept[KEYS] == pd.Series(key)).all(axis=1).any():
            continue
        row = pd.DataFrame([key | run(data, key)])
        print(*row.iloc[0], file=sys.stderr, flush=True)
        kept = row if kept.empty else pd.concat([kept, row], ignore_index=True)
        if file:
            kept.to_csv(file, index=False, float_format="%.6g")
    return pd.DataFrame(keys).merge(kept, on=KEYS)


def published(data: str, horizon: int, case: str) -> float | str:
    """Test MSE of Table S.4."""
    if case not in PUBLISHED[data] or horizon not in HORIZONS[data]:
        return ""
    return PUBLISHED[data][case][HORIZONS[data].index(horizon)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-home", default=LOCAL_COPY if LOCAL_COPY.is_dir() else None)
    parser.add_argument("--data", choices=HORIZONS, default="ETTh1")
    parser.add_argument("--horizons", type=int, nargs="+")
    parser.add_argument("--reading", choices=["all", "OT"], default="all")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--results", type=Path, help="CSV file that keeps every run")
    parser.add_argument(
        "--cases", nargs="+", choices=CASES, default=["linear path alone", "default"]
    )
    options = parser.parse_args()
    data = load_ett(options.data, data_home=options.data_home)
    print_machine()
    keys = [
        {"data": options.data, "reading": options.reading, "horizon": horizon, "case": case,
         "seed": seed}
        for seed in range(options.seeds)
        for case in options.cases
        for horizon in options.horizons or HORIZONS[options.data]
        if seed == 0 or case != "linear path alone"
    ]  # fmt: skip
    found = results_of(keys, data, options.results)
    rows = []
    for (horizon, case), runs in found.groupby(["horizon", "case"], sort=False):
        mean = runs.mean(numeric_only=True)
        spread = f" ({runs['mse'].std():.4f})" if len(runs) > 1 else ""
        rows.append(
            [horizon, case, len(runs), f"{mean['mse']:.4f}{spread}", f"{mean['mae']:.4f}",
             f"{mean['validation']:.4f}", f"{mean['seconds']:.0f}", f"{mean['epochs']:.0f}",
             published(options.data, horizon, case)]
        )  # fmt: skip
    print(f"{options.data}, {options.reading}")
    print_table(
        ["horizon", "settings", "seeds", "test MSE (sd)", "test MAE", "validation", "seconds",
         "epochs", "published"], rows
    )  # fmt: skip


if __name__ == "__main__":
    main()
