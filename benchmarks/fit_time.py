"""Where the time of a fit to a monthly series of 200 points goes.

Each part is timed where it happens: the linear path, the model's forward and backward passes, the
optimiser, validation, calibration; what is left of the trainer's time is Lightning's. Parts are
private functions, which a stopwatch wraps. The first fit in a process also loads torch's and
Lightning's code.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections import defaultdict
from importlib import import_module

import numpy as np
import pandas as pd
from _timing import print_machine, print_table

REPEATS = 5


def monthly_series() -> pd.Series:
    rng = np.random.default_rng(0)
    t = np.arange(200)
    values = 100 + 0.5 * t + 20 * np.sin(2 * np.pi * t / 12) + 3 * rng.normal(size=200)
    return pd.Series(values, index=pd.date_range("2000-01", periods=200, freq="MS"), name="y")


class Stopwatch:
    """Adds up the time spent in wrapped functions."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)

    def wrap(self, owner: object, attribute: str, label: str) -> None:
        """Time every call of ``owner.attribute`` under `label`."""
        original = getattr(owner, attribute)

        def timed(*args: object, **kwargs: object) -> object:
            start = time.perf_counter()
            try:
                return original(*args, **kwargs)
            finally:
                self.seconds[label] += time.perf_counter() - start

        setattr(owner, attribute, timed)


def split_of_a_fit() -> dict[str, float]:
    import torch

    from tsrnn import ParaRNNForecaster, training
    from tsrnn.forecasters import _recurrent, _training

    series = monthly_series()
    ParaRNNForecaster(refit=False, random_state=0).fit(series)  # loads and compiles everything
    watch = Stopwatch()
    watch.wrap(_recurrent, "choose_linear_path", "choice of the linear path")
    watch.wrap(_training, "fit_linear_path", "linear path")
    watch.wrap(_training._TrainingLoss, "__call__", "forward passes")
    watch.wrap(torch.Tensor, "backward", "backward passes")
    watch.wrap(import_module("torch.optim.adam"), "adam", "optimiser")
    watch.wrap(_training._Validation, "__call__", "validation")
    watch.wrap(_recurrent, "ValidationErrors", "calibration and final state")
    watch.wrap(training, "train", "training in all")
    start = time.perf_counter()
    epochs = 0
    for _ in range(REPEATS):
        epochs = len(ParaRNNForecaster(refit=False, random_state=0).fit(series).history_)
    total = (time.perf_counter() - start) / REPEATS
    parts = {label: seconds / REPEATS for label, seconds in watch.seconds.items()}
    in_all = parts.pop("training in all")
    inside = ("forward passes", "backward passes", "optimiser", "validation")
    parts["Lightning and the rest of training"] = in_all - sum(parts[name] for name in inside)
    parts["data gate, scaling and the rest"] = (
        total - in_all - parts["linear path"] - parts["calibration and final state"]
    )
    print(f"fit of 200 points: {total:.2f} s, {epochs} epochs\n")
    return parts | {"all": total}


def first_fit() -> float:
    """Seconds of a whole process that fits once, imports included."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); from fit_time import monthly_series; "
        "from tsrnn import ParaRNNForecaster; "
        "ParaRNNForecaster(refit=False, random_state=0).fit(monthly_series()).predict()"
    )
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code, sys.path[0]], check=True)
    return time.perf_counter() - start


def main() -> None:
    print_machine()
    parts = split_of_a_fit()
    total = parts["all"]
    rows = [[name, f"{s:.3f}", f"{100 * s / total:.0f} %"] for name, s in parts.items()]
    print_table(["part", "seconds", "share"], rows)
    print(f"\na new process that imports, fits and predicts: {first_fit():.1f} s")


if __name__ == "__main__":
    main()
