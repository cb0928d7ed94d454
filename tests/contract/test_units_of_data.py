"""Forecasts have the units of the data: those of y + c are c higher, those of a y are a times."""

import warnings

import numpy as np
import pandas as pd
import pytest

from tsrnn import baselines, linear
from tsrnn.contract import clone
from tsrnn.evaluation import Combination

OFFSETS = (0.0, 20.0, 1e4, 1e6, 1e8)
SCALES = (1e-6, 1e-3, 1e3, 1e6)
M, ROWS = 4, 48
PAIR = {"target": ["y", "z"]}
FREE = {"random_state": 0}
SEASONS, BOTH = ("none", "simple", "partial", "full"), (True, False)

# Models of any level and any unit.
LEVEL = {
    "ARMA": linear.ARMA((1, 1)),
    "ARIMA": linear.ARMA((1, 1, 1)),
    "ARIMA, drift": linear.ARMA((0, 1, 1), trend="t"),
    "ARIMA, seasonal": linear.ARMA((1, 0, 0), seasonal_order=(0, 1, 1, M)),
    "AutoARIMA": linear.AutoARIMA(season_length=M),
    "GARCH": linear.GARCH(),
    "VARMA": linear.VARMA((1, 0), **PAIR),
    "CCC": linear.CCC(order=(1, 0), **PAIR),
    "DCC": linear.DCC(garch_order=(1, 0), **PAIR),
    "ETS": linear.ETS("add", "none", "none"),
    "ETS, trend": linear.ETS("add", "add", "none", damped=False),
    "ETS, damped": linear.ETS("add", "add", "none", damped=True, bounds="usual"),
    "ETS, season": linear.ETS("add", "add", "add", damped=False, season_length=M),
    "ETS, admissible": linear.ETS("add", "add", "none", damped=False, bounds="admissible"),
    "ETS, decomposed": linear.ETS("add", "add", "none", damped=False, initialization="heuristic"),
    "Theta": linear.Theta(seasonal="add", season_length=M),
    "Theta, estimated": linear.Theta(seasonal="none", initialization="estimated"),
    "Theta, one line": linear.Theta(2, dynamic=False, seasonal="add", season_length=M),
    "Naive": baselines.Naive(),
    "SeasonalNaive": baselines.SeasonalNaive(season_length=M),
    "Drift": baselines.Drift(),
    "Mean": baselines.Mean(),
    "SARIMAX": baselines.SARIMAX(trend="c"),
    "StatsmodelsAutoARIMA": baselines.StatsmodelsAutoARIMA(season_length=1, max_p=1, max_q=0, d=1),
    "Combination": Combination([baselines.Drift(), linear.ARMA((1, 0))]),
}
# Models of any unit for which zero means something, and why.
UNIT = {
    "ETS, relative errors": (linear.ETS("mul", "add", "none", damped=False), "errors are relative"),
    "ETS, product": (
        linear.ETS("mul", "none", "mul", season_length=M, **FREE),
        "a season multiplies",
    ),
    "CES": (linear.CES(season_length=M), "forecasts return to zero"),
    "Croston": (linear.Croston("sba"), "zeros are rows without demand"),
    "TSB": (linear.TSB(), "zeros are rows without demand"),
    "Naive2": (baselines.Naive2(season_length=M), "a season multiplies"),
    "Theta, product": (linear.Theta(seasonal="mul", season_length=M), "a season multiplies"),
    "ARMA, no constant": (linear.ARMA((1, 0), trend="n"), "the mean is zero"),
    "StatsmodelsTheta": (baselines.StatsmodelsTheta(season_length=M), "a season multiplies"),
    "StatsmodelsETS": (
        baselines.StatsmodelsETS(trend="add"),
        "its optimiser ends where levels lead it",
    ),
    "VAR": (
        baselines.VAR(lags=1, **PAIR),
        "least squares of raw rows beside a constant lose digits",
    ),
}
# Models that promise neither, and why.
NEITHER = {
    baselines.ArchModel: "an optimiser from one start ends elsewhere",
    baselines.UnobservedComponents: "an optimiser from one start ends elsewhere",
    baselines.VARMAX: "an optimiser from one start ends elsewhere",
    baselines.VECM: "statsmodels estimates from products of the raw data",
    linear.VECMGARCH: "starts are drawn, and a search of many parameters ends where they lead",
}


def test_every_classical_model_is_named(contract):
    named = {type(model) for model in LEVEL.values()}
    named |= {type(model) for model, _ in UNIT.values()} | set(NEITHER)
    assert contract.classical <= named


def series():
    """Two targets whose numbers are multiples of 1/64: levels are added without rounding."""
    rng, t = np.random.default_rng(3), np.arange(ROWS)
    noise = rng.normal(size=(2, ROWS))
    y = 60 + 0.4 * t + 4 * np.cos(np.pi * t / 2) + noise[0].cumsum() + noise[1]
    z = 30 + 0.8 * noise[0].cumsum() + rng.normal(size=ROWS)
    return np.round(64 * np.stack([y, z])) / 64


def check(model, transforms):
    """Check forecasts and intervals of series a y + c, all in one frame, for pairs (a, c)."""
    names = ["y", "z"] if "target" in model.get_params() and model.target else ["y"]
    values = dict(zip(names, series(), strict=False))
    parts = [
        pd.DataFrame(
            {"unique_id": f"{i:02}", "ds": pd.date_range("2010", periods=ROWS, freq="QS")}
            | {name: a * column + c for name, column in values.items()}
        )
        for i, (a, c) in enumerate(transforms)
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        table = model.fit(pd.concat(parts)).predict(h=5, level=[80])
    forecasts = [rows.iloc[:, 2:].to_numpy(float) for _, rows in table.groupby("unique_id")]
    spread = values["y"].std()
    for (a, c), found in zip(transforms, forecasts, strict=True):
        assert np.isfinite(found).all()
        message = f"{a:g} y + {c:g}"
        # A row of 1e8 has eight digits behind the point.
        np.testing.assert_allclose(
            (found - c) / a, forecasts[0], rtol=0, atol=2e-5 * spread, err_msg=message
        )


@pytest.mark.few(
    "ARIMA, seasonal", "ETS, damped", "ETS", "DCC", "SARIMAX", "GARCH", "CCC", "ETS, trend"
)
@pytest.mark.parametrize("name", LEVEL)
def test_level_and_unit(name):
    pairs = [(1.0, c) for c in OFFSETS] + [(a, 0.0) for a in SCALES]
    check(LEVEL[name], pairs)


@pytest.mark.parametrize("name", UNIT)
def test_unit(name):
    check(UNIT[name][0], [(a, 0.0) for a in (1.0, *SCALES)])


@pytest.mark.parametrize("a", [*SCALES, 1e9])
@pytest.mark.parametrize(
    "model",
    [
        linear.ETS(season_length=1, **FREE),
        linear.ETS(season_length=M, n_simulations=50, **FREE),
        *(linear.CES(seasonal, season_length=M) for seasonal in SEASONS),
        *(linear.Theta(2, season_length=M, dynamic=d, initialization="estimated") for d in BOTH),
    ],
    ids=str,
)
def test_the_loglikelihood_moves_by_the_unit_alone(model, a):
    """The density of a y is that of y divided by a, so that the same model is chosen."""
    y = pd.Series(series()[0], pd.date_range("2010", periods=ROWS, freq="QS"), name="y")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        base, scaled = (clone(model).fit(values) for values in (y, a * y))
    if hasattr(base, "models_"):
        assert scaled.models_.item() == base.models_.item()
    expected = base.loglik_ - base.nobs_ * np.log(a)
    np.testing.assert_allclose(scaled.loglik_, expected, rtol=0, atol=1e-5)
