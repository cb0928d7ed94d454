"""Coverage of 80 and 95 percent intervals by step: simulated AR(1), ETTh1 and M4 hourly.

Shares of the values that came within their intervals, over all series and origins of a part that
neither trained nor validated. ``--shared`` names the folder with the data of the other two.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from _timing import print_machine, print_table
from m4 import ARGUMENTS, long_frame, ragged

from tsrnn import ParaRNNForecaster
from tsrnn.datasets import load_ett

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
LEVELS = [80, 95]
Covered = dict[int, np.ndarray]  # share by step, for each level


def rolling_coverage(model: ParaRNNForecaster, test: pd.DataFrame) -> Covered:
    """Of a fitted model on rows of a wide frame that follow."""
    found = model.predict_rolling(test, level=LEVELS)
    names = list(test)
    actual = test.loc[found.index, names].to_numpy()
    return {
        level: by_step(
            (found[[f"{n}-lo-{level}" for n in names]].to_numpy() <= actual)
            & (actual <= found[[f"{n}-hi-{level}" for n in names]].to_numpy()),
            model.horizon_,
        )
        for level in LEVELS
    }


def by_step(covered: np.ndarray, horizon: int) -> np.ndarray:
    """Mean of rows (origins * horizon, ...) for each step."""
    return covered.reshape(-1, horizon, *covered.shape[1:]).mean(0).reshape(horizon, -1).mean(1)


def autoregressions() -> Covered:
    """Fifty AR(1) of 600 rows, the last 200 held out, six steps."""
    draw, y = np.random.default_rng(0), np.zeros((700, 50))
    noise = draw.normal(size=y.shape)
    for t in range(1, len(y)):
        y[t] = 0.8 * y[t - 1] + noise[t]
    frame = pd.DataFrame(y[100:], columns=[f"y{i}" for i in range(50)])
    model = ParaRNNForecaster(horizon=6, prior=None, random_state=0).fit(frame[:400])
    return rolling_coverage(model, frame[400:])


def ett(shared: Path) -> Covered:
    """ETTh1, all variables, 24 steps, split as in ett.py."""
    data, month = load_ett("ETTh1", data_home=shared / "ett"), 720
    model = ParaRNNForecaster(horizon=24, prior=None, val_size=4 * month, random_state=0)
    model.fit(data[: 16 * month])
    return rolling_coverage(model, data[16 * month : 20 * month])


def m4_hourly(shared: Path) -> Covered:
    """M4 hourly, 48 steps from one origin of 414 series, settings as in m4.py."""
    train = ragged(shared / "m4" / "Hourly-train.csv.gz", 0)
    test = ragged(shared / "m4" / "Hourly-test.csv.gz", 0)
    model = ParaRNNForecaster(horizon=48, random_state=0, **ARGUMENTS["hourly"])
    found = model.fit(long_frame(train, "h")).predict(48, level=LEVELS)
    actual = np.concatenate([test[name] for name in found["unique_id"].unique()])
    return {
        level: by_step(
            (found[f"{model.column_name}-lo-{level}"] <= actual).to_numpy()
            & (actual <= found[f"{model.column_name}-hi-{level}"]).to_numpy(),
            48,
        )
        for level in LEVELS
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shared", type=Path, default=SHARED)
    options = parser.parse_args()
    print_machine()
    cases = {"AR(1)": autoregressions}
    if options.shared.is_dir():
        cases |= {
            "ETTh1": lambda: ett(options.shared),
            "M4 hourly": lambda: m4_hourly(options.shared),
        }
    rows = []
    for name, run in cases.items():
        for level, share in run().items():
            percent, h = 100 * share, len(share)
            steps = [percent[i - 1] for i in (1, max(1, h // 4), h // 2, h)]
            print(name, level, np.round(percent, 1), file=sys.stderr, flush=True)
            rows.append([name, level, *(f"{p:.1f}" for p in steps), f"{percent.mean():.1f}",
                         f"{percent.min():.1f} to {percent.max():.1f}"])  # fmt: skip
    print_table(["data", "level", "step 1", "h/4", "h/2", "h", "mean of steps", "all steps"], rows)


if __name__ == "__main__":
    main()
