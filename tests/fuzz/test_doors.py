"""Every door to an outside library: what it cannot do is refused in the package's words.

Frames that libraries stumble over go through each: constant, singular and short ones, ones near the
limits of floats, and series and columns of odd names. TSRNN_FUZZ=1 takes all of them to each door.
"""

import os
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LinearRegression

from tsrnn import ARMA, hierarchy, preprocessing
from tsrnn.baselines import (
    SARIMAX,
    VAR,
    VARMAX,
    VECM,
    ArchModel,
    Drift,
    Mean,
    Naive,
    StatsmodelsAutoARIMA,
    StatsmodelsETS,
    StatsmodelsTheta,
    UnobservedComponents,
)
from tsrnn.batch import forecast_batches
from tsrnn.contract import DM_VARIANCES
from tsrnn.evaluation import accuracy, backtest, compare, diagnose
from tsrnn.inference import LocalProjections, PartiallyLinear
from tsrnn.linearity import linearity_tests
from tsrnn.tuning import objective

from .asking import RefusalError, ask
from .frames import IDS
from .values import SHAPES

ROWS = 36
SHORT = (1, 2, 3, 5, 8)
VALUES = (
    "constant", "zeros", "hair", "line", "one", "alternating", "flat then jump", "largest", "tiny",
)  # fmt: skip
NAMES = {kind: names for kind, names in IDS.items() if all(isinstance(name, str) for name in names)}
NAMES |= {
    "slashes": ("Food/Drinks", "Food", "/"),
    "numbers": (3, 1, 2),
    "braces": ("{}", "%s", "$x$"),
}
KINDS = [
    *VALUES, "copies", "one constant",
    *(f"short {n}" for n in SHORT), *(f"names {k}" for k in NAMES),
]  # fmt: skip
SPEC = [["all"], ["all", "region"], ["all", "region", "store"]]


def columns_of(kind):
    """Three series side by side, (n, 3), and their names."""
    rng = np.random.default_rng(0)
    noise, names = 5 + rng.normal(size=(ROWS, 3)), ("a", "b", "c")
    if kind.startswith("short "):
        return noise[: int(kind.removeprefix("short "))], names
    if kind.startswith("names "):
        return noise, NAMES[kind.removeprefix("names ")]
    if kind == "copies":
        return np.repeat(noise[:, :1], 3, axis=1), names
    if kind == "one constant":
        return noise * [0, 1, 1], names
    return np.repeat(SHAPES[kind](rng, ROWS)[:, None], 3, axis=1), names


class Data:
    """The same three series in all shapes that a door takes."""

    def __init__(self, kind):
        values, names = columns_of(kind)
        days = pd.date_range("2024-01-01", periods=len(values))
        self.wide = pd.DataFrame(values, days, pd.Index(list(names), dtype=object))
        self.long = pd.DataFrame(
            {
                "unique_id": [name for name in names for _ in days],
                "ds": np.tile(days, 3),
                "y": values.T.ravel(),
            }
        )
        late = self.long["ds"] >= days[2 * len(days) // 3]
        self.early, self.late = self.long[~late], self.long[late]
        self.tree = self.long.rename(columns={"unique_id": "store"}).assign(
            all="all", region=[names[name == names[0]] for name in self.long["unique_id"]]
        )


def reconciled(model=None, **arguments):
    given = {"h": 1, "level": 80} | arguments
    return lambda data: hierarchy.reconcile(model or Mean(), data.tree, SPEC, **given)


def reconciled_by(name, **arguments):
    """By a reconciler of hierarchicalforecast."""

    def call(data):
        methods = pytest.importorskip("hierarchicalforecast.methods")
        return reconciled(level=None, method=getattr(methods, name)(**arguments))(data)

    return call


def lived(make, frame="long"):
    """A forecaster that is fitted, forecasts and prints its page."""

    def call(data):
        model = make().fit(getattr(data, frame))
        page = str(model.summary()) if hasattr(model, "summary") else ""
        return model.predict(2, level=80), page

    return call


def measured(data):
    forecasts = Mean().fit(data.early).predict(data.late["ds"].nunique(), level=80)
    return accuracy(forecasts, data.late, train=data.early, season_length=1)


def backtested(data):
    models = {"naive": Naive(), "mean": Mean(), "drift": Drift()}
    return backtest(models, data.long, h=1, n_windows=5, level=[80])


def compared(data):
    forecasts = backtested(data)
    given = {"over": "time", "n_boot": 10}
    return [str(compare(forecasts, dm_variance=name, **given)) for name in DM_VARIANCES]


def tuned(data):
    optuna = pytest.importorskip("optuna")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(objective(ARMA(), data.long, h=1, n_windows=1), n_trials=1)
    return study.best_value


def filed(ending):
    """From a file, which polars reads, to files of forecasts."""

    def call(data):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"rows.{ending}"
            rows = pl.DataFrame({name: data.long[name].to_list() for name in data.long})
            getattr(rows, f"write_{ending}")(path)
            return forecast_batches(path, Mean(), h=1, out=Path(folder) / "out").n_failed

    return call


def by_column(call):
    """A function of one series, of each."""
    return lambda data: [call(data.wide.iloc[:, i]) for i in range(3)]


def regressed(model):
    return lambda data: model.fit(data.wide.iloc[:, 0], data.wide.iloc[:, 1])


DOORS = {
    **{f"reconcile, {m}": reconciled(method=m, intervals="bootstrap") for m in hierarchy.METHODS},
    "reconcile, normality": reconciled(),
    "reconcile, ARMA": reconciled(ARMA(order=(1, 0)), level=None),
    "reconcile, MinTrace": reconciled_by("MinTrace", method="mint_shrink"),
    "reconcile, ERM": reconciled_by("ERM", method="closed"),
    "reconcile, TopDown": reconciled_by("TopDown", method="average_proportions"),
    "reconcile, nonnegative": reconciled_by("MinTrace", method="ols", nonnegative=True),
    "SARIMAX": lived(lambda: SARIMAX(order=(1, 0, 0), max_iter=20)),
    "SARIMAX, wide": lived(lambda: SARIMAX(order=(1, 0, 0), max_iter=20), "wide"),
    "StatsmodelsETS": lived(StatsmodelsETS),
    "StatsmodelsTheta": lived(lambda: StatsmodelsTheta(season_length=3)),
    "StatsmodelsAutoARIMA": lived(lambda: StatsmodelsAutoARIMA(max_p=1, max_q=0)),
    "UnobservedComponents": lived(lambda: UnobservedComponents(max_iter=20)),
    "ArchModel": lived(ArchModel),
    "VAR": lived(lambda: VAR(lags=1), "wide"),
    "VARMAX": lived(lambda: VARMAX(max_iter=5), "wide"),
    "VECM": lived(VECM, "wide"),
    "accuracy": measured,
    "compare": compared,
    "diagnose": lambda data: str(diagnose(backtested(data))),
    "diagnose, ARMA": lambda data: str(diagnose(ARMA(order=(1, 0)).fit(data.early), data.late)),
    "adf": by_column(preprocessing.adf),
    "adf, differences": by_column(lambda y: preprocessing.ndiffs(y, test="adf")),
    "kpss": by_column(preprocessing.kpss),
    "ndiffs": by_column(preprocessing.ndiffs),
    "decompose": by_column(lambda y: preprocessing.decompose(y, 4)),
    "seasonal strength": by_column(lambda y: preprocessing.seasonal_strength(y, 4)),
    "boxcox": by_column(preprocessing.boxcox_lambda),
    "linearity": by_column(lambda y: linearity_tests(y, n_bootstrap=9)),
    "partially linear": regressed(PartiallyLinear(LinearRegression(), n_lags=1)),
    "local projections": regressed(LocalProjections("ols", horizons=2, n_lags=1)),
    "tuning": tuned,
    "csv": filed("csv"),
    "parquet": filed("parquet"),
}
FINE, NO_TEXT = "names letters", "names surrogate"  # the second of which no file can hold
SHARE = 4  # of the frames one in so many, others for each door, unless all are asked for
SLOW = {"StatsmodelsAutoARIMA", "tuning"}  # seconds for all frames: one in sixteen of them


@pytest.mark.few("csv", "diagnose", "reconcile, ERM", "compare")
@pytest.mark.parametrize("door", DOORS)
def test_a_door_answers_or_refuses_with_advice(door):
    every = 1 if os.environ.get("TSRNN_FUZZ") else SHARE**2 if door in SLOW else SHARE
    kinds = {FINE, *KINDS[list(DOORS).index(door) % every :: every]}
    answered, wrong = set(), []
    for kind in sorted(kinds - ({NO_TEXT} if door in ("csv", "parquet") else set())):
        try:
            ask(DOORS[door], Data(kind))
            answered.add(kind)
        except RefusalError:
            continue
        except (AssertionError, pytest.fail.Exception) as error:
            wrong.append(f"{kind}: {error}")
    assert not wrong, "\n".join(wrong)
    assert FINE in answered
