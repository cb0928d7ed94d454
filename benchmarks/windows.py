"""Segments against windows: ETTh1, all seven variables, horizon 24, the same model and seconds.

(a) Segments: the state warms up over `input_size` rows, then 192 rows forecast in one pass.
(b) Windows: each forecast has its own `input_size` rows, read from a state of zeros. Seconds are
those of training steps; the error is that of the validation part at its best epoch. Windows take
the place of the private `Segments`.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any
from unittest import mock

import lightning.pytorch as pl
from _timing import print_machine, print_table, read_options

from tsrnn import ParaRNNForecaster
from tsrnn.datasets import load_ett
from tsrnn.forecasters import _training
from tsrnn.forecasters._segments import Segments

TRAIN, VALIDATION, HORIZON = 8640, 2880, 24
LOCAL_COPY = Path(__file__).resolve().parents[2] / "shared" / "data" / "ett"
MODELS = {"default": {}, "network alone": {"linear_path": False}}


class Windows(Segments):
    """Segments of which the last row alone forecasts."""

    def __init__(self, starts: Any, ends: Any, *, warm_up: int, length: int, **others: Any) -> None:
        super().__init__(starts, ends, warm_up=warm_up - 1, length=1, **others)


class Budget(pl.Callback):
    """Count forecasts and stop after some seconds of training steps."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.spent, self.forecasts, self._start = seconds, 0.0, 0, 0.0

    def on_train_batch_start(self, *_: Any) -> None:
        """Take the time."""
        self._start = time.perf_counter()

    def on_train_batch_end(self, trainer: Any, task: Any, outputs: Any, batch: Any, _: int) -> None:
        """Add the seconds and forecasts of the step."""
        self.spent += time.perf_counter() - self._start
        self.forecasts += int((batch.lengths - batch.first).sum())
        trainer.should_stop = trainer.should_stop or self.spent >= self.seconds


def measure(
    data: Any, kind: type[Segments], batch_size: int, seconds: float, **model: Any
) -> list[str]:
    """A row of the table, from the number of epochs on."""
    budget = Budget(seconds)
    forecaster = ParaRNNForecaster(
        horizon=HORIZON, val_size=VALIDATION, batch_size=batch_size, max_epochs=10_000,
        patience=10_000, refit=False, callbacks=[budget], random_state=0, **model,
    )  # fmt: skip
    with mock.patch.object(_training, "Segments", kind):
        forecaster.fit(data)
    error = min(epoch["val_loss"] for epoch in forecaster.history_)
    return [
        f"{batch_size}", f"{len(forecaster.history_)}", f"{budget.spent:.0f}",
        f"{budget.forecasts / budget.spent:,.0f}", f"{error:.4f}",
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-home", default=LOCAL_COPY if LOCAL_COPY.is_dir() else None)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=MODELS)
    options = read_options(parser, seconds=0.5, models=["network alone"])
    data = load_ett("ETTh1", data_home=options.data_home).iloc[: TRAIN + VALIDATION]
    print_machine()
    rows = []
    for name in options.models:
        for label, kind, batch_size in (
            ("segments", Segments, 32), ("windows", Windows, 32), ("windows", Windows, 1024),
        ):  # fmt: skip
            found = measure(data, kind, batch_size, options.seconds, **MODELS[name])
            rows.append([name, label, *found])
    header = ["model", "trained on", "batch", "epochs", "seconds", "forecasts a second"]
    print_table([*header, "validation error"], rows)


if __name__ == "__main__":
    main()
