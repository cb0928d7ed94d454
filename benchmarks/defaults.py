"""The default beside its parts and its peers, on every collection that is at hand.

A row for each collection and forecaster is printed as it comes and appended to ``--results``;
``--print-only`` prints the table of the documentation from there. Collections and what is forecast
of each stand in `_forecast_tasks.py`. Defaults are developed on ``--part validation`` and judged by
``--part test``. Each row comes from a process of its own, which ends after ``--timeout`` seconds of
the processor.

MASE, the Winkler score of intervals of 80 percent and the check loss are over the mean absolute
error of the seasonal naive forecast in the training rows. The check loss is twice its mean over the
nine deciles, which is near the CRPS. All measures are means over the origins of a series, then over
series. Coverage is of the first, middle and last third of the steps. OWA is beside Naive2 on the
same rows. Seconds are of the processor, after a first small fit that compiles; predict is of all
origins. Memory is the highest of the process.

The networks of the package were trained on M1, M3, hourly and yearly series of M4: "default" is by
those never shown M1 and M3 there, all else that is pretrained has an advantage on these.

Models of statsforecast (``pip install statsforecast``) are fitted at each origin to the last 1,000
rows, in which missing values are interpolated. A series that they refuse has the forecast of their
SeasonalNaive. Series that a forecaster of this package refuses are left out. Both are counted.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import re
import resource
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from _forecast_tasks import COLLECTIONS, COUNTS, PARTS, SHORT, Task, read_tasks
from _runs import (
    add_run_options,
    append_run,
    circumstances,
    none_if_not_finite,
    read_runs,
    replace_each,
)
from _timing import highest_bytes, option_parser, print_table, read_options

from tsrnn import ParaRNNForecaster
from tsrnn.baselines import Naive2, SeasonalNaive
from tsrnn.contract import Forecaster
from tsrnn.evaluation import Combination

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
LEVELS = [80, 60, 40, 20]  # whose ends and the point forecast are the deciles
DECILES = np.arange(1, 10) / 10
POINT = 4
ENDS = [f"-lo-{level}" for level in LEVELS] + [""] + [f"-hi-{level}" for level in LEVELS[::-1]]
PEER_ROWS = 1000
WARM_UP = 100  # rows of the first fit
HUNG = 20  # timeouts after which a process is ended that waits for something


class Windows(NamedTuple):
    """Forecasts from one origin each.

    Attributes
    ----------
    series : ndarray of shape (W,)
        Names of the series.
    actual : ndarray of shape (W, h)
    deciles : ndarray of shape (W, 9, h)
        The point forecast in the middle.
    """

    series: np.ndarray
    actual: np.ndarray
    deciles: np.ndarray


class Run(NamedTuple):
    """Forecasts of a task, seconds to fit and to predict, and how many series were refused."""

    windows: Windows
    fit: float
    predict: float
    stand_ins: int = 0


Forecasting = Callable[[Task], Run]


def season_argument(task: Task) -> int | None:
    """Season that numbered rows do not tell."""
    return task.season if pd.api.types.is_integer_dtype(task.train["ds"]) else None


def default(task: Task) -> Forecaster:
    prior = task.prior or "auto"
    return ParaRNNForecaster(
        task.h, prior=prior, season_length=season_argument(task), random_state=0
    )


def network(prior: str | None) -> Callable[[Task], Forecaster]:
    return lambda task: ParaRNNForecaster(
        task.h, prior=prior, season_length=season_argument(task), random_state=0
    )


def fitted(make: Callable[[Task], Forecaster]) -> Forecasting:
    """Forecasts of a forecaster of tsrnn, fitted once for all origins."""

    def forecast(task: Task) -> Run:
        start = time.process_time()
        model = make(task).fit(task.train)
        fit = time.process_time()
        one_origin = len(task.future) == task.h * len(task.ids)
        if one_origin:
            frame = model.predict(task.h, level=LEVELS)
        else:
            frame = model.predict_rolling(task.future, task.h, task.step, level=LEVELS)
        return Run(windows(frame, task), fit - start, time.process_time() - fit)

    return forecast


def windows(frame: pd.DataFrame, task: Task) -> Windows:
    """Windows of the frame of forecasts, h rows an origin."""
    keys = ["unique_id", "ds"]
    rows = frame[keys].merge(task.future, "left", keys)
    name = frame.columns[3 if "cutoff" in frame else 2]
    values = frame[[name + end for end in ENDS]].to_numpy(float)
    return Windows(
        frame["unique_id"].to_numpy()[:: task.h],
        rows["y"].to_numpy(float).reshape(-1, task.h),
        values.reshape(-1, task.h, len(ENDS)).swapaxes(1, 2),
    )


def peer_deciles(name: str, known: np.ndarray, task: Task) -> np.ndarray:
    """Deciles (9, h) of a model of statsforecast fitted to the rows of a series."""
    from statsforecast import models

    if name == "MSTL":
        # Without a season there is nothing to decompose: AutoETS forecasts its trend.
        model = models.MSTL(task.season) if task.season > 1 else models.AutoETS()
    else:
        model = getattr(models, name)(season_length=min(task.season, len(known)))
    ahead = model.forecast(known, task.h, level=LEVELS)
    return np.array([ahead[end.removeprefix("-") or "mean"] for end in ENDS])


def peer(*names: str) -> Forecasting:
    """Medians of the forecasts of models of statsforecast, fitted at each origin."""

    def forecast(task: Task) -> Run:
        start, refused = time.process_time(), set()
        series, actual, medians = [], [], []
        future = dict(list(task.future.groupby("unique_id")["y"]))
        for series_id, rows in task.train.groupby("unique_id")["y"]:
            y = np.r_[rows.to_numpy(), future[series_id].to_numpy()]
            for origin in range(len(rows), len(y) - task.h + 1, task.step):
                known = pd.Series(y[max(origin - PEER_ROWS, 0) : origin])
                known = known.interpolate(limit_direction="both").to_numpy()
                members = []
                for name in names:
                    try:
                        values = peer_deciles(name, known, task)
                        if not np.isfinite(values).all():
                            raise FloatingPointError("forecasts are not finite")
                    except ImportError:
                        raise
                    # Its models raise errors of their own kinds, down to plain Exception.
                    except Exception:
                        refused.add(series_id)
                        values = peer_deciles("SeasonalNaive", known, task)
                    members.append(values)
                series.append(series_id)
                actual.append(y[origin : origin + task.h])
                medians.append(np.median(members, axis=0))
        result = Windows(np.array(series), np.array(actual), np.array(medians))
        return Run(result, 0.0, time.process_time() - start, len(refused))

    return forecast


PEERS = ("AutoETS", "AutoARIMA", "AutoCES", "DynamicOptimizedTheta")
FORECASTERS: dict[str, Forecasting] = {
    "default": fitted(default),
    "prior": fitted(network("only")),
    "trained": fitted(network(None)),
    "SeasonalNaive": fitted(lambda t: SeasonalNaive(season_length=t.season, horizon=t.h)),
    "recurrent combination": fitted(
        lambda t: Combination.recurrent(season_argument(t), horizon=t.h)
    ),
    "classical median": fitted(lambda t: Combination.classical(season_argument(t), horizon=t.h)),
    "statsforecast median": peer(*PEERS),
    **{f"statsforecast {name}": peer(name) for name in (*PEERS, "MSTL")},
}
naive2 = fitted(lambda t: Naive2(season_length=t.season, horizon=t.h))


def scales(task: Task) -> dict[str, float]:
    """Mean absolute error of the seasonal naive forecast in the training rows, by series."""

    def scale(y: np.ndarray) -> float:
        lag = task.season if len(y) > task.season + 1 else 1
        changes = np.abs(y[lag:] - y[:-lag])
        return float(np.nanmean(changes)) if np.isfinite(changes).any() else math.nan

    return {name: scale(y.to_numpy(float)) for name, y in task.train.groupby("unique_id")["y"]}


def measures(given: Windows, scale: dict[str, float]) -> pd.DataFrame:
    """Measures by window; NaN where no value is known or the series has no scale."""
    divisor = np.array([scale[name] for name in given.series])
    divisor[divisor == 0] = math.nan
    y, point = given.actual, given.deciles[:, POINT]
    low, high = given.deciles[:, 0], given.deciles[:, -1]
    error, beyond = np.abs(y - point), y[:, None] - given.deciles
    p = DECILES[:, None]
    check = 2 * np.maximum(p * beyond, (p - 1) * beyond).mean(axis=1)
    # 2 / alpha of Winkler's penalty, where 80 percent are to be covered.
    winkler = high - low + 10 * (np.maximum(low - y, 0) + np.maximum(y - high, 0))
    covered = np.where(np.isnan(y), math.nan, (low <= y) & (y <= high))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # means of windows without a known value
        thirds = [np.nanmean(part, axis=1) for part in np.array_split(100 * covered, 3, axis=1)]
        return pd.DataFrame(
            {
                "MASE": np.nanmean(error, axis=1) / divisor,
                "sMAPE": 200 * np.nanmean(error / (np.abs(y) + np.abs(point)), axis=1),
                "first": thirds[0],
                "middle": thirds[1],
                "last": thirds[2],
                "Winkler": np.nanmean(winkler, axis=1) / divisor,
                "check": np.nanmean(check, axis=1) / divisor,
            }
        )


def series_means(task: Task, run: Run) -> pd.DataFrame:
    """Measures by series, means over origins."""
    return measures(run.windows, scales(task)).groupby(run.windows.series).mean()


def judge(tasks: list[Task], forecast: Forecasting, owa: bool) -> dict[str, Any]:
    """Measures of a forecaster on the tasks of a collection."""
    first = tasks[0].select(tasks[0].ids[:1])
    train, future = first.train[-max(WARM_UP, 3 * first.h) :], first.future[: first.h]
    small = first._replace(train=train, future=future, step=first.h)
    refusals: list[str] = []
    try:
        forecast(small)
    except ValueError as error:
        refusals.append(f"warm-up: {error}")
    tables, references, lost, stand_ins, fit, predict = [], [], 0, 0, 0.0, 0.0
    for task in tasks:
        try:
            run = forecast(task)
        except ValueError as error:
            refusals.append(f"{task.ids[0]}: {error}")
            lost += len(task.ids)
            continue
        fit, predict, stand_ins = fit + run.fit, predict + run.predict, stand_ins + run.stand_ins
        tables.append(series_means(task, run))
        if owa:
            references.append(series_means(task, naive2(task)))
    if not tables:
        raise ValueError(refusals[-1])
    table = pd.concat(tables)
    known = table.dropna(subset="MASE")
    lost += len(table) - len(known)
    result: dict[str, Any] = {"series": sum(len(task.ids) for task in tasks)}
    result["rows"] = median_rows(tasks)
    result |= known.mean().to_dict()
    if owa:
        reference = pd.concat(references).loc[known.index].mean()
        result["OWA"] = float((known.mean() / reference)[["sMAPE", "MASE"]].mean())
    result |= {
        "fit": fit, "predict": predict, "ms_a_series": 1e3 * (fit + predict) / result["series"],
        "memory_mb": highest_bytes() / 1e6, "lost": lost, "stand_ins": stand_ins,
        "refusals": refusals[:3],
    }  # fmt: skip
    return result


def median_rows(tasks: list[Task]) -> float:
    sizes = pd.concat([task.train.groupby("unique_id").size() for task in tasks])
    return float(sizes.median())


def run_job(options: argparse.Namespace) -> None:
    """Print the measures of one forecaster on one collection, as JSON."""
    # Of the processor: what else runs on the machine ends no job.
    seconds = math.ceil(options.timeout)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
    (collection,), (name,) = options.collections, options.forecasters
    warnings.simplefilter("ignore")  # about single series, of which there are thousands
    tasks = read_tasks(collection, options.data, options.part, options.limit)
    result = judge(tasks, FORECASTERS[name], collection.startswith("m4"))
    print(json.dumps(replace_each(result, none_if_not_finite)))


def job(options: argparse.Namespace, collection: str, forecaster: str) -> dict[str, Any]:
    """Measures from a process of its own, or the reason why there are none."""
    command = [sys.executable, __file__, collection, "--forecasters", forecaster, "--job"]
    command += ["--data", str(options.data), "--part", options.part]
    command += ["--timeout", str(options.timeout)]
    command += ["--limit", str(options.limit)] if options.limit else []
    timed_out = {"error": f"timed out after {options.timeout:g} s"}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=HUNG * options.timeout, check=False,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return timed_out
    if done.returncode == -signal.SIGXCPU:
        return timed_out
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines or not lines[-1].startswith("{"):
        text = (
            done.stderr.strip() or done.stdout.strip() or f"exit {done.returncode}"
        ).splitlines()
        return {"error": text[-1]}
    return json.loads(lines[-1])


COLUMNS = {
    "series": "{:.0f}", "rows": "{:.0f}", "MASE": "{:.3f}", "OWA": "{:.3f}", "first": "{:.0f}",
    "middle": "{:.0f}", "last": "{:.0f}", "Winkler": "{:.2f}", "check": "{:.3f}", "fit": "{:.1f}",
    "predict": "{:.1f}", "ms_a_series": "{:.0f}", "memory_mb": "{:.0f}", "lost": "{:.0f}",
    "stand_ins": "{:.0f}",
}  # fmt: skip
TITLES = {
    "first": "covers at 80: first", "Winkler": "Winkler 80", "check": "check loss", "fit": "fit s",
    "predict": "predict s", "ms_a_series": "ms a series", "memory_mb": "MB",
    "stand_ins": "stand-ins",
}  # fmt: skip


def cells(row: dict[str, Any]) -> Iterator[str]:
    """Cells of a row of the table."""
    yield from (row["collection"], row["forecaster"])
    if "error" in row:
        yield row["error"]
        return
    for name, shape in COLUMNS.items():
        value = row.get(name)
        yield "" if value is None else shape.format(value)


def print_summary(options: argparse.Namespace) -> None:
    """The default beside its parts and the best model of statsforecast, a row a collection."""
    table: dict[str, dict[str, dict[str, Any]]] = {}
    for run in read_runs(options.results):
        key, result = run["key"], run["result"]
        chosen = key["collection"] in (options.collections or [key["collection"]])
        same = (key["part"], key["limit"]) == (options.part, options.limit)
        if chosen and same and "error" not in result:
            table.setdefault(key["collection"], {})[key["forecaster"]] = result
    rows: list[list[object]] = []
    for collection, results in table.items():
        peers = [name for name in results if name.startswith("statsforecast ")]
        best = min(peers, key=lambda name: results[name]["MASE"], default="")
        winkler = min((results[name]["Winkler"] for name in peers), default=None)
        shown = ["default", "prior", "trained", best, "SeasonalNaive"]
        mase = [f"{results[name]['MASE']:.3f}" if name in results else "" for name in shown]
        mase[3] += re.sub("statsforecast|DynamicOptimized|Auto", "", best)
        first = results["default"]
        rows.append([
            collection, first["series"], f"{first['rows']:.0f}", *mase,
            " ".join(f"{first[part]:.0f}" for part in ("first", "middle", "last")),
            *(f"{results[name]['Winkler']:.2f}" for name in shown[:2]),
            "" if winkler is None else f"{winkler:.2f}", f"{first['ms_a_series'] / 1e3:.2f}",
        ])  # fmt: skip
    header = ["", "series", "rows", "default", "prior network", "trained", "statsforecast",
              "seasonal naive", "covers", "Winkler: default", "prior network", "statsforecast",
              "seconds a series"]  # fmt: skip
    print_table(header, rows)


def main() -> None:
    parser = option_parser(__doc__)
    known = [*COLLECTIONS, *COUNTS, *SHORT]
    parser.add_argument("collections", nargs="*", help="names, by default all: " + ", ".join(known))
    parser.add_argument("--forecasters", nargs="+", choices=FORECASTERS, default=[*FORECASTERS])
    parser.add_argument("--part", choices=PARTS, default=PARTS[0])
    parser.add_argument("--counts", action="store_true", help="simulated counts alone")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the files")
    parser.add_argument("--limit", type=int, help="series of a collection, by default all")
    parser.add_argument(
        "--timeout", type=float, default=300, help="seconds of a row, of the processor"
    )
    add_run_options(parser, "defaults")
    parser.add_argument("--job", action="store_true", help=argparse.SUPPRESS)
    options = read_options(
        parser, collections=["shipped"], forecasters=["SeasonalNaive"], limit=1, results=None
    )
    if unknown := {name for name in options.collections if name.partition("@")[0]
                   not in COLLECTIONS | COUNTS}:  # fmt: skip
        parser.error(f"collections are {', '.join(known)}, or name@rows; got {sorted(unknown)}")
    if options.job:
        run_job(options)
        return
    if options.print_only:
        print_summary(options)
        return
    print(circumstances(), f"part: {options.part}", sep="\n", flush=True)
    print(" | ".join(["collection", "forecaster", *(TITLES.get(name, name) for name in COLUMNS)]))
    chosen = options.collections or ([*COUNTS] if options.counts else [*COLLECTIONS, *SHORT])
    start = time.monotonic()
    for collection, forecaster in itertools.product(chosen, options.forecasters):
        if time.monotonic() - start > 60 * options.minutes:
            return
        key = {"collection": collection, "forecaster": forecaster, "part": options.part,
               "limit": options.limit}  # fmt: skip
        result = job(options, collection, forecaster)
        print(" | ".join(cells(key | result)), flush=True)
        if options.results is not None:
            append_run(options.results, key, result)


if __name__ == "__main__":
    main()
