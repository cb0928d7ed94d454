"""Frames and files read into panels, and forecasts written, beside what pandas itself needs.

Each is timed with memory that the process has used before, and with fresh memory: results kept
while the next is made, as a program that goes on with them does.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
from _timing import median_ms, option_parser, peak_bytes, print_machine, print_table, read_options
from utilsforecast.processing import process_df

from tsrnn.data import Panel, future_times, panel_frame, read_panel, to_polars, write_frame

S, T = 10_000, 300
many, ROWS = 100_000, 200
REPEATS = 3
Work = Callable[[], Any]


def data(S: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The same series as a wide and as a long frame."""
    values = np.random.default_rng(0).normal(size=(T, S))
    days = pd.date_range("2000-01-01", periods=T, unit="ns")
    names = [f"id_{i:06d}" for i in range(S)]
    long = {"unique_id": np.repeat(names, T), "ds": np.tile(days, S), "y": values.T.ravel()}
    return pd.DataFrame(values, days, names), pd.DataFrame(long)


def times(work: Work) -> tuple[float, float]:
    """Median milliseconds with memory used before, and with fresh memory."""
    kept: list[Any] = []
    return median_ms(work, REPEATS), median_ms(lambda: kept.append(work()), REPEATS, 0)


def pivoted(long: pd.DataFrame) -> np.ndarray:
    """Values (S, T) of a long frame by pandas."""
    return long.pivot(index="ds", columns="unique_id", values="y").to_numpy().T


def grouped(long: Any) -> np.ndarray:
    """Values (S, T) of a long frame by utilsforecast, in the order of the ids."""
    return process_df(long, "unique_id", "ds", "y").data.reshape(-1, T)


def values(panel: Panel) -> np.ndarray:
    """Values (S, T) of a panel, series in the order of their ids."""
    if panel.n_series == 1:
        return panel.values.T
    lengths = int(panel.lengths[0])
    return panel.values.reshape(-1, lengths)[np.argsort(panel.ids.to_numpy())]


def frames(S: int) -> None:
    """Reading frames."""
    wide, long = data(S)
    separate = pd.DataFrame({name: wide[name].copy() for name in wide})
    by_time = long.sort_values("ds", kind="stable", ignore_index=True)
    numbered = long.assign(unique_id=np.repeat(np.arange(S), T))
    table, wide_table = to_polars(long), to_polars(wide.reset_index(names="day"))

    def copied(frame: pd.DataFrame) -> Work:
        return lambda: np.array(frame.to_numpy())

    cases: dict[str, tuple[Any, str, Work]] = {
        "wide, one block": (wide, "a copy", copied(wide)),
        "wide, a block a column": (separate, "to_numpy", copied(separate)),
        "wide, polars": (wide_table, "to_numpy", lambda: wide_table.drop("day").to_numpy()),
        "long, text ids": (long, "pivot", lambda: pivoted(long)),
        "long, text ids, by time": (by_time, "pivot", lambda: pivoted(by_time)),
        "long, text as objects": (
            long.astype({"unique_id": object}), "factorize",
            lambda: pd.factorize(long["unique_id"].to_numpy(object)),
        ),
        "long, numbers as ids": (numbered, "pivot", lambda: pivoted(numbered)),
        "long, utilsforecast": (long, "process_df", lambda: grouped(long)),
        "long, polars": (table, "process_df", lambda: grouped(table)),
    }  # fmt: skip
    rows = []
    for name, (frame, peer, work) in cases.items():
        expected = np.asarray(wide).T if peer == "factorize" else np.asarray(work())
        expected = expected.T if name.startswith("wide") else expected
        np.testing.assert_array_equal(values(read_panel(frame)), expected)
        ours, theirs = times(lambda frame=frame: read_panel(frame)), times(work)
        rows.append((name, *(f"{ms:.0f}" for ms in ours), peer, *(f"{ms:.0f}" for ms in theirs)))
    print(f"\n{S:,} series of {T} rows read, milliseconds")
    print_table(("frame", "read_panel", "fresh memory", "beside it", "ms", "fresh memory"), rows)


def files(many: int) -> None:
    """Reading a parquet file of very many series."""
    days = np.tile(pd.date_range("2000-01-01", periods=ROWS).to_numpy(), many)
    ids = np.repeat([f"id_{i:06d}" for i in range(many)], ROWS)
    y = np.random.default_rng(1).normal(size=many * ROWS)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "long.parquet")
        pl.DataFrame({"unique_id": ids, "ds": days, "y": y}).write_parquet(path)
        del ids, days

        def pivot() -> np.ndarray:
            return pivoted(pl.read_parquet(path).to_pandas(use_pyarrow_extension_array=False))

        rows = []
        works: dict[str, Work] = {"read_panel": lambda: read_panel(path)}
        works["polars alone, a frame"] = lambda: pl.read_parquet(path)
        try:
            works["pandas, and pivot"] = pivot
            np.testing.assert_array_equal(values(read_panel(path)).ravel(), pivot().ravel())
        except ImportError:  # pyarrow
            del works["pandas, and pivot"]
            np.testing.assert_array_equal(values(read_panel(path)).ravel(), y)
        for name, work in works.items():
            seconds, peak = median_ms(work, 1, 0) / 1e3, peak_bytes(work) / 2**30
            rows.append((name, f"{seconds:.1f}", f"{peak:.2f}"))
    print(f"\nparquet file of {many:,} series of {ROWS} rows")
    print_table(("", "seconds", "memory, GiB"), rows)


def written(panel: Panel) -> dict[str, Work]:
    """Ways to write forecasts of 12 steps, and the panel itself."""
    ahead, shape = future_times(panel, 12), (panel.n_series, 12, len(panel.target_names))
    rng = np.random.default_rng(2)
    given = {key: rng.normal(size=shape) for key in ("", "-lo-80", "-hi-80")}
    point = {"": given[""]}
    return {
        "forecasts of 12 steps": lambda: write_frame(panel.layout, panel.ids, ahead, point),
        "with an interval": lambda: write_frame(panel.layout, panel.ids, ahead, given),
        "panel_frame": lambda: panel_frame(panel),
    }


def forecasts(S: int) -> None:
    """Writing forecasts, and panels as frames."""
    wide, long = data(S)
    rows = []
    for name, frame in {"wide": wide, "long": long, "long, polars": to_polars(long)}.items():
        for what, work in written(read_panel(frame)).items():
            rows.append((name, what, *(f"{ms:.1f}" for ms in times(work))))
    print(f"\n{S:,} series written, milliseconds")
    print_table(("frame", "what", "ms", "fresh memory"), rows)


def main() -> None:
    parser = option_parser(__doc__)
    parser.add_argument("--series", type=int, default=10_000)
    parser.add_argument("--many", type=int, default=100_000, help="series of the file")
    options = read_options(parser, series=50, many=100)
    print_machine()
    frames(options.series)
    forecasts(options.series)
    files(options.many)


if __name__ == "__main__":
    main()
