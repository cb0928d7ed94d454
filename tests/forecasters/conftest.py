"""Simulated data, forecasters in small settings, and what compares their frames."""

import copy
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest

from tsrnn import Combination, LEMForecaster, LRUForecaster, NewtonForecaster, ParaRNNForecaster
from tsrnn.baselines import (
    SARIMAX,
    VAR,
    VARMAX,
    VECM,
    ArchModel,
    Drift,
    Mean,
    Naive,
    Naive2,
    SeasonalNaive,
    StatsmodelsAutoARIMA,
    StatsmodelsETS,
    StatsmodelsTheta,
    UnobservedComponents,
)
from tsrnn.linear import ARMA, CCC, CES, DCC, ETS, GARCH, VARMA, VECMGARCH, Theta

SMALL = {
    "horizon": 6,
    "input_size": 12,
    "hidden_size": 8,
    "n_layers": 1,
    "max_epochs": 2,
    "refit": False,
    "random_state": 0,
}


class Entry(NamedTuple):
    """A forecaster in settings that fit in a moment, and where its promises end.

    All have horizon=6. The contract is run on single series and panels, of two targets where
    the settings name them.
    """

    cls: type
    settings: dict
    fewest: int  # rows of a series
    too_short: str  # what is said of fewer
    new_series: bool = True  # whether several fitted series forecast one never seen
    exogenous: bool = True
    draws: bool = True  # whether a fit depends on random_state
    other_layers: bool = False  # whether it is ParaRNN's class but for the layers
    at_top: bool = True  # whether `tsrnn` has its name
    goes_on: bool = True  # whether its own forecasts, taken as data, would change none of it
    equivariant: bool = True  # whether forecasts move with location and scale

    @property
    def n_targets(self):
        return len(self.settings.get("target", "y"))


BOTH = {"horizon": 6, "target": ["y", "z"]}
OWN = {"new_series": False, "draws": False}  # each series has parameters of its own

BASELINE = {"exogenous": False, "draws": False, "at_top": False}
OWN_BASELINE = OWN | {"at_top": False}

# The contract runs over every one.
FORECASTERS = {
    "ParaRNN": Entry(
        ParaRNNForecaster, SMALL, fewest=18, too_short="needs at least 18 rows for horizon=6"
    ),
    **{
        name: Entry(
            cls,
            SMALL | {"max_epochs": 1} | changes,
            fewest=18,
            too_short="needs at least 18 rows for horizon=6",
            other_layers=True,
        )
        for name, cls, changes in (
            ("LEM", LEMForecaster, {}),
            ("LRU", LRUForecaster, {}),
            # At few units torch's silu rounds a value by its place: the last ones of a tensor,
            # fewer than a vector register holds, go through another code.
            ("Newton", NewtonForecaster, {"hidden_size": 48}),
            ("Attention", ParaRNNForecaster, {"cell": "attention"}),
        )
    },
    "ARMA": Entry(
        ARMA,
        {"order": (1, 0), "horizon": 6},
        fewest=5,
        too_short="need at least 5 observations",
        **OWN,
    ),
    "ETS": Entry(
        ETS,
        {"error": "add", "trend": "none", "seasonal": "none", "horizon": 6},
        fewest=5,
        too_short="needs at least 5 observations",
        **OWN,
    ),
    "CES": Entry(
        CES,
        {"seasonal": "none", "horizon": 6},
        fewest=7,
        too_short="needs at least 7 observations",
        equivariant=False,  # forecasts of a shifted series are not shifted
        **OWN,
    ),
    "Theta": Entry(
        Theta,
        {"theta": 2, "dynamic": False, "seasonal": "none", "horizon": 6},
        fewest=5,
        too_short="needs at least 2 values after the first 3 rows",
        goes_on=False,  # the line ends where the rows fitted to do
        **OWN,
    ),
    "GARCH": Entry(
        GARCH,
        {"mean": "ar", "horizon": 6, "random_state": 0},
        fewest=7,
        too_short="need more than 6 observations",
        exogenous=False,
        **OWN,
    ),
    "VARMA": Entry(VARMA, BOTH, fewest=8, too_short="need at least 8 observed rows", **OWN),
    "CCC": Entry(CCC, BOTH, fewest=9, too_short="need at least 18 values", exogenous=False, **OWN),
    "DCC": Entry(DCC, BOTH, fewest=11, too_short="need at least 22 values", exogenous=False, **OWN),
    "VECMGARCH": Entry(
        VECMGARCH,
        BOTH | {"structure": "scalar", "targeting": True, "n_starts": 1, "random_state": 0},
        fewest=4,
        too_short="at least 4 rows",
        exogenous=False,
        **OWN,
    ),
    "Naive": Entry(Naive, {"horizon": 6}, fewest=2, too_short="needs at least 2 rows", **BASELINE),
    "SeasonalNaive": Entry(
        SeasonalNaive,
        {"horizon": 6, "season_length": 2},
        fewest=3,
        too_short="needs at least 3 rows",
        **BASELINE,
    ),
    "Drift": Entry(Drift, {"horizon": 6}, fewest=3, too_short="needs at least 3 rows", **BASELINE),
    "Mean": Entry(Mean, {"horizon": 6}, fewest=2, too_short="needs at least 2 rows", **BASELINE),
    "Naive2": Entry(
        Naive2,
        {"horizon": 6},
        fewest=2,
        too_short="needs at least 2 rows",
        goes_on=False,  # seasonal indices are those of all rows
        equivariant=False,  # they are factors
        **BASELINE,
    ),
    "SARIMAX": Entry(
        SARIMAX,
        {"horizon": 6, "trend": "c"},
        fewest=5,
        too_short="needs at least 5 rows",
        **OWN_BASELINE,
    ),
    "StatsmodelsETS": Entry(
        StatsmodelsETS,
        {"horizon": 6, "trend": "add"},
        fewest=10,
        too_short="needs at least 10 rows",
        exogenous=False,
        **OWN_BASELINE,
    ),
    "StatsmodelsTheta": Entry(
        StatsmodelsTheta,
        {"horizon": 6, "season_length": 1},
        fewest=6,
        too_short="needs at least 6 rows",
        exogenous=False,
        goes_on=False,  # the slope of the line is fixed, that of the forecasts half of it
        **OWN_BASELINE,
    ),
    "StatsmodelsAutoARIMA": Entry(
        StatsmodelsAutoARIMA,
        {"horizon": 6, "season_length": 1, "max_p": 1, "max_q": 1, "d": 0},
        fewest=8,
        too_short="needs at least 8 rows",
        **OWN_BASELINE,
    ),
    "UnobservedComponents": Entry(
        UnobservedComponents,
        {"horizon": 6, "level": "local linear trend", "max_iter": 300},
        fewest=6,
        too_short="needs at least 6 rows",
        **OWN_BASELINE,
    ),
    "ArchModel": Entry(
        ArchModel,
        {"horizon": 6, "mean": "AR", "lags": 1, "rescale": True},
        fewest=14,
        too_short="needs at least 14 rows",
        exogenous=False,
        **OWN_BASELINE,
    ),
    "Combination": Entry(
        Combination,
        {"horizon": 6, "forecasters": {"ar": ARMA(order=(1, 0)), "walk": Drift()}},
        fewest=3,  # of the drift, which forecasts alone then
        too_short="needs at least 3 rows",
        exogenous=False,
        goes_on=False,  # a member would take the forecasts of the others for data
        **OWN,
    ),
    "VAR": Entry(VAR, BOTH, fewest=6, too_short="needs at least 6 rows", **OWN_BASELINE),
    "VARMAX": Entry(VARMAX, BOTH, fewest=11, too_short="needs at least 11 rows", **OWN_BASELINE),
    "VECM": Entry(
        VECM, BOTH, fewest=13, too_short="needs at least 13 rows", exogenous=False, **OWN_BASELINE
    ),
}


def pytest_generate_tests(metafunc):
    """Run over the forecasters of one target.

    A module that says `MULTIVARIATE_TOO` gets those of several, one that says `EVERY_NETWORK`
    those that differ from ParaRNN's in their layers only. A test marked `where` runs over the
    forecasters that meet its condition.
    """
    if "forecaster" in metafunc.fixturenames:
        several = getattr(metafunc.module, "MULTIVARIATE_TOO", False)
        every = getattr(metafunc.module, "EVERY_NETWORK", False)
        names = [
            name
            for name, entry in FORECASTERS.items()
            if (several or entry.n_targets == 1) and (every or not entry.other_layers)
            if all(mark.args[0](entry) for mark in metafunc.definition.iter_markers("where"))
        ]
        metafunc.parametrize("forecaster", names, indirect=True, scope="session")


@pytest.fixture(scope="session")
def forecaster(request):
    """Return the name of a forecaster among `FORECASTERS`."""
    return request.param


@pytest.fixture(scope="session")
def entry(forecaster):
    return FORECASTERS[forecaster]


@pytest.fixture(scope="session")
def column(forecaster):
    """Return the column of a forecaster's forecasts in a long frame of one target."""
    return FORECASTERS[forecaster].cls.column_name


@pytest.fixture(scope="session")
def columns(column, entry):
    """Return the columns of a forecaster's forecasts in a long frame."""
    return [column] if entry.n_targets == 1 else entry.settings["target"]


@pytest.fixture(scope="session")
def make(entry):
    """Return a constructor with small settings; keywords replace some of them."""
    return lambda **changes: entry.cls(**(entry.settings | changes))


FITS = {}  # by forecaster and frame, over all modules


@pytest.fixture(scope="session")
def fitted_to(forecaster, make, single, data):
    """Return a function of "single" or "data": a copy of one fit to it that all tests share."""
    frames = {"single": single, "data": data}

    def fitted(name):
        if (forecaster, name) not in FITS:
            FITS[forecaster, name] = make().fit(frames[name])
        return copy.copy(FITS[forecaster, name])

    return fitted


@pytest.fixture(scope="session")
def small():
    """Return a constructor of a small ParaRNNForecaster."""
    return lambda **changes: ParaRNNForecaster(**(SMALL | changes))


@pytest.fixture(scope="session")
def wave():
    """Return a monthly Series: a season, a trend and noise."""
    return monthly(96, seed=1)


@pytest.fixture(scope="session")
def panel():
    """Return a long frame of monthly series "a", "b", "c" of unequal lengths and scales."""
    return long_panel()


@pytest.fixture(scope="session")
def single(wave, entry):
    """Return `wave` with as many targets as a forecaster takes."""
    return wave if entry.n_targets == 1 else pd.DataFrame({"y": wave, "z": monthly(96, seed=9)})


@pytest.fixture(scope="session")
def data(panel, entry):
    """Return `panel` with as many targets as a forecaster takes."""
    if entry.n_targets == 1:
        return panel
    scales = panel.groupby("unique_id")["y"].transform("mean")
    return panel.assign(z=scales * np.random.default_rng(6).normal(2, 1, len(panel)))


@pytest.fixture(scope="session")
def wide():
    """Return a wide frame of three monthly columns."""
    columns = {name: monthly(90, seed) for seed, name in enumerate("uvw")}
    return pd.DataFrame(columns)


@pytest.fixture(scope="session")
def exog():
    """Return a long frame with a column `x` known ahead and a column `z` of history only."""
    frame = long_panel()
    draw = np.random.default_rng(5)
    frame["x"], frame["z"] = draw.normal(size=(2, len(frame)))
    frame["y"] += 3 * frame["x"]
    return frame


@pytest.fixture(scope="session")
def cut():
    """Return a function that splits a frame before the last n rows of every series."""

    def split(frame, n):
        if "unique_id" not in frame:
            return frame.iloc[:-n], frame.iloc[-n:]
        groups = frame.groupby("unique_id", sort=False)
        late = groups.cumcount(ascending=False) < n
        return frame[~late], frame[late]

    return split


@pytest.fixture(scope="session")
def same():
    """Compare frames: equal in shape, labels and dtypes, and in numbers up to `rtol`."""

    def check(actual, expected, rtol=1e-6):
        assert type(actual) is type(expected)
        compare = pd.testing.assert_frame_equal
        if isinstance(actual, pd.Series):
            compare = pd.testing.assert_series_equal
        compare(actual, expected, rtol=rtol, atol=0, check_freq=False)

    return check


def monthly(n, seed):
    draw = np.random.default_rng(seed)
    steps = np.arange(n)
    values = 50 + 0.1 * steps + 5 * np.sin(2 * np.pi * steps / 12) + draw.normal(size=n)
    return pd.Series(values, pd.date_range("2015-01-01", periods=n, freq="MS"), name="y")


def long_panel():
    parts = [
        pd.DataFrame({"unique_id": name, "ds": series.index, "y": scale * series.to_numpy()})
        for name, scale, series in (
            ("a", 1.0, monthly(70, 2)),
            ("b", 100.0, monthly(60, 3)),
            ("c", 0.01, monthly(82, 4)),
        )
    ]
    return pd.concat(parts, ignore_index=True)
