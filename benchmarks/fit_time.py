"""Where the time of a fit to a monthly series of 200 points goes, and of 200 fits in one.

Series by series with `per_series=True`, beside fits one by one; then the mean over 25 series.

Each part is timed where it happens, by a stopwatch around a function, private ones too. What a
trainer takes beyond the task that it runs is Lightning's. The first fit in a process also loads
torch's and Lightning's code: `import_time.py`.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict

import numpy as np
import pandas as pd
from _timing import print_machine, print_table

REPEATS = 5
LIGHTNING_AT_MOST = 0.1  # of a small fit
SAME_FORECASTS = 0.02  # deviations of a series: what some hundred steps make of rounding


def monthly_series(n: int = 200, seed: int = 0) -> pd.Series:
    """Trend, season and noise; of other seeds than 0 other ones, the noise correlated."""
    rng = np.random.default_rng(seed)
    t = np.arange(n)
    slope, season, decay = (0.5, 20.0, 0.0) if seed == 0 else rng.uniform([0, 0, 0], [1, 20, 0.9])
    noise = 3 * rng.normal(size=n)
    for i in range(1, n):
        noise[i] += decay * noise[i - 1]
    values = 100 + slope * t + season * np.sin(2 * np.pi * t / 12) + noise
    return pd.Series(values, index=pd.date_range("2000-01", periods=n, freq="MS"), name="y")


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
    """Seconds by part of a fit without and with a second training on all rows."""
    import torch

    from tsrnn import ParaRNNForecaster, training
    from tsrnn.forecasters import _fit, _training
    from tsrnn.training import _lightning

    series = monthly_series()
    ParaRNNForecaster(prior=None, random_state=0).fit(series)  # loads and compiles everything
    watch = Stopwatch()
    watch.wrap(ParaRNNForecaster, "_read_training", "reading")
    watch.wrap(_fit, "choose_linear_paths", "linear path")
    watch.wrap(_training, "fit_linear_paths", "linear path")
    watch.wrap(_training._TrainingLoss, "__call__", "forward")
    watch.wrap(torch.Tensor, "backward", "backward")
    watch.wrap(_lightning, "_clip_gradient", "optimiser")
    watch.wrap(_lightning, "_step", "optimiser")
    watch.wrap(_training._Validation, "__call__", "validation")
    watch.wrap(_fit, "ValidationErrors", "intervals")
    watch.wrap(_fit, "calibrate", "intervals")
    watch.wrap(_lightning.Task, "training_step", "epochs")
    watch.wrap(training, "train", "training")
    start = time.perf_counter()
    epochs = 0
    for _ in range(REPEATS):
        epochs = len(ParaRNNForecaster(prior=None, random_state=0).fit(series).history_)
    total = (time.perf_counter() - start) / REPEATS
    parts = {label: seconds / REPEATS for label, seconds in watch.seconds.items()}
    train, of_epochs = parts.pop("training"), parts.pop("epochs")
    of_start = parts["validation"] / (epochs + 1)  # validated before the first epoch
    steps = sum(parts[name] for name in ("forward", "backward", "optimiser", "validation"))
    parts["batches and bookkeeping"] = of_epochs - steps + of_start
    parts["Lightning"] = train - of_epochs - of_start
    parts["the rest"] = total - train - sum(
        parts[name] for name in ("reading", "linear path", "intervals")
    )  # fmt: skip
    print(f"fit of 200 points: {total:.2f} s, {epochs} epochs\n")
    return parts | {"all": total}


def split_by_series(count: int = 200, alone: int = 5) -> None:
    """Print the parts of a fit of a network a series, and of a few of these series one by one.

    Raises
    ------
    AssertionError
        If forecasts of the two are not the same.
    """
    from tsrnn import ParaRNNForecaster, training
    from tsrnn.forecasters import _fit, _recurrent, _training

    series = [monthly_series(seed=seed) for seed in range(1, count + 1)]
    frame = pd.concat(series, keys=range(count), names=["unique_id", "ds"]).reset_index()
    watch = Stopwatch()
    watch.wrap(ParaRNNForecaster, "_read_training", "reading")
    watch.wrap(_fit, "choose_linear_paths", "linear paths chosen")
    watch.wrap(_recurrent, "prepare_all", "preparation")
    watch.wrap(_training, "fit_linear_paths", "linear paths estimated")
    watch.wrap(_training, "networks_of", "networks at their start")
    watch.wrap(_training, "train_replicates", "training")
    watch.wrap(_training, "train_replicates_for", "training")
    watch.wrap(training, "train", "training")  # those that no other has the shape of
    watch.wrap(training, "train_for", "training")
    watch.wrap(_fit.Preparation, "finished", "intervals, states")
    columns = {}
    for label, fits in (
        ("together", lambda: [ParaRNNForecaster(random_state=0, per_series=True).fit(frame)]),
        (
            "one by one",
            lambda: [ParaRNNForecaster(prior=None, random_state=0).fit(y) for y in series[:alone]],
        ),
    ):
        watch.seconds.clear()
        start = time.perf_counter()
        fitted = fits()
        parts = dict(watch.seconds)
        parts["all"] = time.perf_counter() - start
        parts["preparation"] -= parts["linear paths chosen"]
        parts["networks at their start"] -= parts["linear paths estimated"]
        n = count if label == "together" else alone
        columns[label] = {name: 1e3 * seconds / n for name, seconds in parts.items()}
        forecasts = [np.asarray(model.predict()["ParaRNN"] if n == count else model.predict())
                     for model in fitted]  # fmt: skip
        if label == "together":
            together = forecasts[0].reshape(count, -1)
    for ours, theirs, y in zip(together, forecasts, series, strict=False):
        difference = np.abs(ours - theirs.ravel()).max() / y.std()
        assert difference < SAME_FORECASTS, f"forecasts differ by {difference:.2g} deviations"
    names = [*(name for name in columns["together"] if name != "all"), "all"]
    rows = [
        [name, *(f"{of.get(name, 0.0):.2f}" if name in of else "" for of in columns.values())]
        for name in names
    ]
    print(f"\n{count} series of 200 points, milliseconds a series\n")
    print_table(["part", "together", f"{alone} one by one"], rows)


def single_fits(count: int = 25) -> list[float]:
    """Seconds of a fit each to monthly series of 50 to 150 rows, one by one."""
    from tsrnn import ParaRNNForecaster

    seconds = []
    for seed in range(1, count + 1):
        series = monthly_series(int(np.random.default_rng(seed).integers(50, 151)), seed)
        start = time.perf_counter()
        ParaRNNForecaster(prior=None, random_state=0).fit(series)
        seconds.append(time.perf_counter() - start)
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--series", type=int, help="only fit so many series at once")
    series = parser.parse_args().series
    print_machine()
    if series:
        split_by_series(series)
        return
    parts = split_of_a_fit()
    total = parts["all"]
    rows = [[name, f"{s:.3f}", f"{100 * s / total:.0f} %"] for name, s in parts.items()]
    print_table(["part", "seconds", "share"], rows)
    split_by_series()
    seconds = single_fits()
    print(
        f"\n{len(seconds)} monthly series of 50 to 150 rows, each by itself: mean "
        f"{np.mean(seconds):.2f} s, longest {max(seconds):.2f} s"
    )
    share = parts["Lightning"] / total
    assert share < LIGHTNING_AT_MOST, f"Lightning takes {100 * share:.0f} percent of a small fit"


if __name__ == "__main__":
    main()
