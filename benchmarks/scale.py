"""Panels of many short series, read from parquet files: seconds and memory of each part.

Monthly series of 200 rows, 12 steps ahead, two epochs. Memory is how far each part rises above
where the process stood before it; the floor of a fit is value, level and spread of
every row in float64. At the smallest size the forecasts are checked against those from a frame.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np
import pandas as pd
import polars as pl
from _timing import peak_bytes, print_machine, print_table, read_options

from tsrnn import ParaRNNForecaster
from tsrnn.data import read_panel

ROWS, HORIZON, SERIES_A_FILE = 200, 12, 5000
Found = TypeVar("Found")


def write_panel(folder: Path, n_series: int) -> None:
    """Seasonal autoregressions, some thousand series a file."""
    for first in range(0, n_series, SERIES_A_FILE):
        names = [f"series {i:06d}" for i in range(first, min(first + SERIES_A_FILE, n_series))]
        months = pd.date_range("2005-01-01", periods=ROWS, freq="MS").to_numpy()
        columns = {
            "unique_id": pl.Series(names).gather(np.repeat(np.arange(len(names)), ROWS)),
            "ds": np.tile(months, len(names)),
            "y": seasonal(len(names), seed=first).ravel(),
        }
        pl.DataFrame(columns).write_parquet(folder / f"part-{first:06d}.parquet")


def seasonal(n_series: int, seed: int) -> np.ndarray:
    """Paths (n_series, ROWS) of (1 - 0.5 L)(1 - 0.4 L^12) y = e around 10."""
    warm_up = 48
    noise = np.random.default_rng(seed).standard_normal((warm_up + ROWS, n_series))
    y = np.zeros_like(noise)
    for t in range(13, len(y)):
        y[t] = 0.5 * y[t - 1] + 0.4 * y[t - 12] - 0.2 * y[t - 13] + noise[t]
    return 10 + y[warm_up:].T


def measured(work: Callable[[], Found]) -> tuple[Found, float, float]:
    """Result, seconds, and megabytes at the peak."""
    found: list[Found] = []
    start = time.perf_counter()
    peak = peak_bytes(lambda: found.append(work()))
    return found[0], time.perf_counter() - start, peak / 1e6


def forecaster() -> ParaRNNForecaster:
    return ParaRNNForecaster(horizon=HORIZON, max_epochs=2, refit=False, random_state=0)


def measure(folder: Path, n_series: int) -> list[str]:
    """A row of the table."""
    panel, *reading = measured(lambda: read_panel(folder))
    floor = 3 * 8 * len(panel.values) / 1e6
    del panel
    model, *fitting = measured(lambda: forecaster().fit(folder))
    _, *forecasting = measured(lambda: model.predict(HORIZON))
    cells = [f"{seconds:.1f}" for seconds, _ in (reading, fitting, forecasting)]
    cells += [f"{megabytes:.0f}" for _, megabytes in (reading, fitting, forecasting)]
    return [f"{n_series:,}", *cells, f"{floor:.0f}"]


def check(folder: Path) -> None:
    """Forecasts are those of the same rows in a frame."""
    frame = pl.read_parquet(folder / "*.parquet").to_dict(as_series=False)
    by_frame, by_path = (forecaster().fit(data).predict() for data in (pd.DataFrame(frame), folder))
    pd.testing.assert_frame_equal(by_path, by_frame, check_dtype=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--series", type=int, nargs="+", default=[1000, 10_000, 100_000])
    sizes = sorted(read_options(parser, series=[50]).series)
    print_machine()
    rows = []
    for n_series in sizes:
        with tempfile.TemporaryDirectory() as place:
            write_panel(Path(place), n_series)
            if n_series == sizes[0]:
                check(Path(place))  # also loads and compiles what the first fit needs
            rows.append(measure(Path(place), n_series))
    header = ["series", "read s", "fit s", "predict s", "read MB", "fit MB", "predict MB"]
    print_table([*header, "floor MB"], rows)


if __name__ == "__main__":
    main()
