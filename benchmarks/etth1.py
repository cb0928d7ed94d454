"""ETTh1, all seven variables, horizon 24: defaults and the paper's settings.

The first 8640 hours train, 2880 validate, 2880 test; test windows start at every hour; errors
are on the scale standardised by the training part. ``--data-home`` names a folder with
ETTh1.csv or ETTh1.csv.gz; without it the file is downloaded once.
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

TRAIN, VALIDATION, TEST, HORIZON = 8640, 2880, 2880, 24
LOCAL_COPY = Path(__file__).resolve().parents[2] / "shared" / "data" / "ett"
CASES = {
    "default": {},
    "paper": {"preset": "paper"},
    "paper, standardised only": {"preset": "paper", "local_level": False},
}


def evaluate(data: pd.DataFrame, seed: int, arguments: dict) -> tuple[float, float, float, int]:
    """Test MSE and MAE on the standardised scale, seconds of fit and forecasts, epochs."""
    known, test = data.iloc[: TRAIN + VALIDATION], data.iloc[TRAIN + VALIDATION :]
    start = time.perf_counter()
    model = ParaRNNForecaster(
        horizon=HORIZON, val_size=VALIDATION, random_state=seed, **arguments
    ).fit(known)
    forecasts = model.predict_rolling(test)
    seconds = time.perf_counter() - start
    actual = test.loc[forecasts.index]
    scale = data.iloc[:TRAIN].std(ddof=0)
    error = (forecasts.drop(columns="cutoff") - actual) / scale
    assert len(error) == (TEST - HORIZON + 1) * HORIZON
    return (
        float(np.mean(error.to_numpy() ** 2)),
        float(error.abs().to_numpy().mean()),
        seconds,
        len(model.history_),
    )


def ridge_only(data: pd.DataFrame) -> tuple[float, float, float, int]:
    """The linear path alone: a learning rate that moves nothing."""
    return evaluate(data, 0, {"max_epochs": 1, "learning_rate": 1e-12})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-home", default=LOCAL_COPY if LOCAL_COPY.is_dir() else None)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--cases", nargs="+", default=["default", "paper"], choices=CASES)
    options = parser.parse_args()
    data = load_ett("ETTh1", data_home=options.data_home).iloc[: TRAIN + VALIDATION + TEST]
    print_machine()
    mse, mae, seconds, epochs = ridge_only(data)
    rows = [["linear path alone", "", f"{mse:.4f}", f"{mae:.4f}", f"{seconds:.0f}", epochs]]
    for name in options.cases:
        results = []
        for seed in range(options.seeds):
            results.append(evaluate(data, seed, CASES[name]))
            mse, mae, seconds, epochs = results[-1]
            rows.append([name, seed, f"{mse:.4f}", f"{mae:.4f}", f"{seconds:.0f}", epochs])
            print(*rows[-1], file=sys.stderr, flush=True)  # a case can take minutes
        mean, spread = np.mean(results, 0), np.std(results, 0)
        cells = [f"{m:.4f} ({d:.4f})" for m, d in zip(mean[:2], spread[:2], strict=True)]
        rows.append([name, "mean (sd)", *cells, f"{mean[2]:.0f}", f"{mean[3]:.0f}"])
    print_table(["settings", "seed", "test MSE", "test MAE", "seconds", "epochs"], rows)


if __name__ == "__main__":
    main()
