"""Many series from parquet files to forecasts in files: seconds, memory, workers, by size.

Monthly ARMA series of 200 rows, 12 steps ahead, from files of 5,000 series. Each job runs in a
process of its own, whose peak memory counts everything: the interpreter, the libraries, a
partition. At the smallest size the forecasts are checked against one call of the model on a frame
of all series, and workers against each other byte for byte.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from _timing import highest_bytes, option_parser, print_machine, print_table, read_options

from tsrnn import ARMA, ParaRNNForecaster, load
from tsrnn.baselines import StatsmodelsETS
from tsrnn.batch import forecast_batches

ROWS, HORIZON, SERIES_A_FILE = 200, 12, 5000


def write_panel(folder: Path, n_series: int) -> None:
    """Paths of (1 - 0.7 L) y = (1 + 0.3 L) e around 10, some thousand series a file."""
    folder.mkdir()
    months = np.arange("2005-01", np.datetime64("2005-01") + ROWS, dtype="datetime64[M]")
    for first in range(0, n_series, SERIES_A_FILE):
        n = min(SERIES_A_FILE, n_series - first)
        noise = np.random.default_rng(first).standard_normal((50 + ROWS, n))
        y = np.zeros_like(noise)
        for t in range(1, len(y)):
            y[t] = 0.7 * y[t - 1] + noise[t] + 0.3 * noise[t - 1]
        columns = {
            "unique_id": np.repeat([f"series {first + i:06d}" for i in range(n)], ROWS),
            "ds": np.tile(months.astype("datetime64[us]"), n),
            "y": 10 + y[50:].T.ravel(),
        }
        pl.DataFrame(columns).write_parquet(folder / f"part-{first:06d}.parquet")


def model_of(job: str, folder: Path) -> Any:
    """The model of a job; the network is fitted once, before."""
    if job == "ParaRNN":
        return load(folder / "network.tsrnn")
    return {
        "ARMA": ARMA(order=(1, 1)),
        "StatsmodelsETS": StatsmodelsETS(trend="add", season_length=1),
    }[job]


def run_job(job: str, source: Path, out: Path, n_jobs: int | None, rows: int) -> None:
    """Do a job in this process and print its seconds and peak memory as JSON."""
    said: dict[str, float] = {}
    if job != "nothing":
        start = time.perf_counter()
        options = {} if rows == 0 else {"rows_per_batch": rows}
        run = forecast_batches(
            source, model_of(job, source.parent), h=HORIZON, out=out, n_jobs=n_jobs, **options
        )
        said = {"seconds": time.perf_counter() - start, "failed": run.n_failed}
        assert len(run.forecasts("polars")) == HORIZON * (run.n_series - run.n_failed)
    print(json.dumps(said | {"peak": highest_bytes() / 1e9}))


def apart(job: str, source: Path, out: Path, n_jobs: int | None = None, rows: int = 0) -> dict:
    """Do a job in a process of its own; with one thread, if workers are counted."""
    arguments = [job, str(source), str(out), str(n_jobs or 0), str(rows)]
    command = [sys.executable, __file__, "--job", *arguments]
    threads = {"OMP_NUM_THREADS": "1"} if n_jobs else {}
    done = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, check=True, env=os.environ | threads
    )
    return json.loads(done.stdout.splitlines()[-1])


def fit_network(folder: Path, source: Path, n_series: int) -> float:
    """Fit the network to a sample of the series; returns the seconds."""
    first = pl.read_parquet(sorted(source.glob("*.parquet"))[0])
    sample = first[: n_series * ROWS]
    start = time.perf_counter()
    model = ParaRNNForecaster(horizon=HORIZON, max_epochs=5, random_state=0).fit(sample)
    seconds = time.perf_counter() - start
    model.save(folder / "network.tsrnn")
    return seconds


def check(folder: Path, source: Path, job: str) -> float:
    """Largest difference between the files of a run and one call of the model."""
    frame = pl.read_parquet(source / "*.parquet")
    model = model_of(job, folder)
    once = model.fit(frame).predict(HORIZON) if job == "ARMA" else model.predict(frame, h=HORIZON)
    files = folder / f"{job} {frame['unique_id'].n_unique()}" / "forecasts" / "*.parquet"
    kept = pl.read_parquet(files)
    assert (kept["unique_id"] == once["unique_id"]).all()
    return float((kept[job] - once[job]).abs().max() / once[job].std())


def main() -> None:
    parser = option_parser(__doc__)
    parser.add_argument("--series", type=int, nargs="*", default=[1_000, 10_000, 100_000])
    parser.add_argument("--sample", type=int, default=2_000, help="series a network is fitted to")
    parser.add_argument("--workers-series", type=int, default=6_000)
    parser.add_argument("--job", nargs=5, help=argparse.SUPPRESS)
    options = read_options(parser, series=[50], sample=50, workers_series=0)
    if options.job:
        job, source, out, n_jobs, rows = options.job
        run_job(job, Path(source), Path(out), int(n_jobs) or None, int(rows))
        return
    print_machine()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if options.series:
            growth(folder, options.series, options.sample)
        if options.workers_series:
            workers(folder, options.workers_series)


def growth(folder: Path, sizes: list[int], sample: int) -> None:
    """Seconds and memory against the number of series."""
    rows = []
    for n in sizes:
        source = folder / f"source {n}"
        write_panel(source, n)
        if n == sizes[0]:
            largest = source if n >= sample else folder / "sample"
            if n < sample:
                write_panel(largest, sample)
            seconds = fit_network(folder, largest, sample)
            print(f"ParaRNN fitted once to {sample} series: {seconds:.1f} s\n")
        for job in ("ARMA", "ParaRNN"):
            said = apart(job, source, folder / f"{job} {n}")
            rows.append([f"{n:,}", job, f"{said['seconds']:.1f}",
                         f"{1e3 * said['seconds'] / n:.2f}", f"{said['peak']:.2f}",
                         said["failed"]])  # fmt: skip
            if n == sizes[0]:
                difference = check(folder, source, job)
                print(f"{job}: differs from one call by {difference:.1e} standard deviations")
                assert difference < 1e-4
    nothing = apart("nothing", folder, folder)["peak"]
    print(f"\nAn interpreter that has loaded the package: {nothing:.2f} GB\n")
    print_table(["series", "model", "s", "ms a series", "peak GB", "failed"], rows)


def workers(folder: Path, n: int) -> None:
    """One worker against two, each with one thread, on models fitted to each series."""
    rows = []
    for job, count in (("StatsmodelsETS", n), ("ARMA", 20 * n)):
        source = folder / f"workers {job}"
        write_panel(source, count)
        size = ROWS * count // 16
        outs = [folder / f"{job} {name}" for name in ("threads", "one", "two")]
        threads = apart(job, source, outs[0], None, size)["seconds"]
        one, two = (apart(job, source, outs[k], k, size)["seconds"] for k in (1, 2))
        for path in sorted((outs[1] / "forecasts").iterdir()):
            assert path.read_bytes() == (outs[2] / "forecasts" / path.name).read_bytes()
        shown = [f"{seconds:.1f}" for seconds in (threads, one, two)]
        rows.append([job, f"{count:,}", *shown, f"{one / two:.2f}"])
    print("\nModels fitted to each series; two processes: forecasts the same byte for byte\n")
    head = ["model", "series", "two threads, s", "one process, s", "two processes, s", "ratio"]
    print_table(head, rows)


if __name__ == "__main__":
    main()
