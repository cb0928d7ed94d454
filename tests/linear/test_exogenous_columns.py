"""Exogenous columns of ETS, Theta, CES and AutoARIMA: slow filters, statsmodels, and truth."""

from __future__ import annotations

import copy
import functools
import itertools
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy.optimize import minimize

from tsrnn import CES, ETS, AutoARIMA, Combination, Theta
from tsrnn.batch import forecast_batches
from tsrnn.evaluation import backtest
from tsrnn.plotting import plot_components

PERIOD, AHEAD = 4, 5
SLOPES = np.array([2.0, -1.5])
MODELS = {
    "ETS(A, N, N)": ETS("add", "none", "none"),
    "ETS(A, Ad, A)": ETS("add", "add", "add", damped=True, season_length=PERIOD),
    "ETS(M, A, N)": ETS("mul", "add", "none", damped=False),
    "ETS(M, N, A)": ETS("mul", "none", "add", season_length=PERIOD),
    "ETS(M, N, M)": ETS("mul", "none", "mul", season_length=PERIOD),
    "ETS(M, M, N)": ETS("mul", "mul", "none", damped=False, n_simulations=2000),
    "ETS, chosen": ETS(season_length=PERIOD),
    "ETS, heuristic": ETS("add", "add", "none", damped=False, initialization="heuristic"),
    "ETS, admissible": ETS("add", "none", "add", season_length=PERIOD, bounds="admissible"),
    "Theta": Theta(seasonal="none"),
    "Theta, seasonal": Theta(seasonal="add", season_length=PERIOD),
    "Theta, factors": Theta(seasonal="mul", season_length=PERIOD),
    "Theta, one line": Theta(theta=2, dynamic=False, seasonal="none"),
    "Theta, level": Theta(dynamic=False, initialization="estimated", seasonal="none"),
    "CES, chosen": CES(season_length=PERIOD),
    **{f"CES({kind})": CES(kind, PERIOD) for kind in ("simple", "partial", "full")},
    "AutoARIMA": AutoARIMA(max_p=1, max_q=1, max_P=0, max_Q=0, season_length=1),
}
# Models of which adding a multiple of the columns to the series changes the coefficients alone.
LINEAR = [
    name for name in MODELS
    if not name.startswith(("ETS(M", "ETS, chosen")) and name != "Theta, factors"
]  # fmt: skip
EXPONENTIAL = [name for name in MODELS if name != "AutoARIMA"]


def frame(seed=0, n=80, level=50.0, slopes=SLOPES, missing=0):
    """Return a wide frame of a walk with a season, noise and two columns."""
    rng = np.random.default_rng(seed)
    x = rng.normal([5.0, 0.0], size=(n, 2))
    e = rng.normal(size=n)
    walk = level + np.r_[0.0, 0.3 * e[:-1].cumsum()]
    season = np.resize([1.0, -0.5, 0.3, -0.8], n)
    y = walk + season + (x - [5.0, 0.0]) @ slopes + e
    y[5 : 5 + missing] = np.nan
    days = pd.date_range("2020-01-01", periods=n)
    return pd.DataFrame({"y": y, "a": x[:, 0], "b": x[:, 1]}, days)


def make(name, **arguments):
    given = {"target": "y", "known_ahead": ["a", "b"], "horizon": AHEAD, "random_state": 0}
    return type(MODELS[name])(**(MODELS[name].get_params() | given | arguments))


def parts(data):
    """Return training rows, the rows after, and the columns of these."""
    past, later = data.iloc[:-AHEAD], data.iloc[-AHEAD:]
    return past, later, later.drop(columns="y")


@functools.cache
def fitted(name):
    """Return a model of the training rows of `frame(7)`; no test changes it."""
    return make(name).fit(parts(frame(7))[0])


@functools.cache
def fitted_with_gaps(name, missing):
    """Return a short series with missing rows and a model of it; no test changes them."""
    data = frame(1, n=60, missing=missing)
    return data, make(name, missing="keep").fit(data)


def own_params(model):
    """Return the estimates without those of the columns."""
    return model.params_.drop(columns=["a", "b"]).iloc[0]


def columns_effect(model, past, data):
    """Return (x - mean of the training rows)' beta for the rows of some data."""
    away = data[["a", "b"]] - past[["a", "b"]][past["y"].notna()].mean()
    return away.to_numpy() @ model.params_[["a", "b"]].iloc[0].to_numpy()


# Slow filters.


def slow_ets(error, trend, seasonal, params, slopes, data, period=PERIOD):
    """Return the log-likelihood of a model of a series, row by row as the equations say."""
    smoothing, (level, growth) = params, (params["level"], params.get("trend", 0.0))
    if trend == "mul":
        growth = params["trend"]
    season = [params.get(f"season[{i}]", 0.0) for i in range(1, period)]
    season.append((period if seasonal == "mul" else 0.0) - sum(season))
    x = data[["a", "b"]] - data[["a", "b"]][data["y"].notna()].mean()
    loglik, effects = 0.0, (x.to_numpy() @ slopes).tolist()
    for t, (y, effect) in enumerate(zip(data["y"].tolist(), effects, strict=True)):
        s, phi = season[t % period], smoothing.get("phi", 1.0)
        q = level * growth**phi if trend == "mul" else level + phi * growth
        state = {"none": q, "add": q + s, "mul": q * s}[seasonal]
        mu = state + effect
        scale = mu if error == "mul" else 1.0
        r = 0.0 if np.isnan(y) else y - mu
        if not np.isnan(y):
            if not scale > 0:
                return -np.inf
            variance = params["sigma2"] * scale**2
            loglik -= 0.5 * (np.log(2 * np.pi * variance) + r**2 / variance)
        by_level = r / s if seasonal == "mul" else r
        beta = smoothing.get("beta", 0.0) * (by_level / level if trend == "mul" else by_level)
        level, growth = (
            q + smoothing["alpha"] * by_level,
            (growth**phi + beta if trend == "mul" else phi * growth + beta),
        )
        share = r / q if seasonal == "mul" else r
        season[t % period] = s + smoothing.get("gamma", 0.0) * share
    return loglik


def slow_theta(dynamic, alpha, theta, level, sigma2, z):
    """Return the log-likelihood of a theta model of a series without a season."""
    n, loglik = len(z), 0.0
    level = z[0] / theta if level is None else level
    for t in range(1, n + 1):
        rows = np.arange(1, t if dynamic else n + 1)
        A, B = 0.0, 0.0
        if len(rows) == 1:
            A = z[0]
        elif len(rows) > 1:
            B, A = np.polyfit(rows, z[rows - 1], 1)
        left = (1 - alpha) ** t
        ahead = (1 - alpha) ** (t - 1) * A + (1 - left) / alpha * B
        e = z[t - 1] - level - (1 - 1 / theta) * ahead
        level = level + alpha * (z[t - 1] - level)
        if t > 3:
            loglik -= 0.5 * (np.log(2 * np.pi * sigma2) + e**2 / sigma2)
    return loglik


SLOW = {
    "ETS(A, N, N)": ("add", "none", "none"),
    "ETS(A, Ad, A)": ("add", "add", "add"),
    "ETS(M, A, N)": ("mul", "add", "none"),
    "ETS(M, N, A)": ("mul", "none", "add"),
    "ETS(M, N, M)": ("mul", "none", "mul"),
    "ETS(M, M, N)": ("mul", "mul", "none"),
}


@pytest.mark.parametrize("missing", [0, 3])
@pytest.mark.parametrize("name", SLOW)
class TestSlowFilterOfETS:
    def loglik(self, name, data, names, values):
        params = dict(zip(names, np.asarray(values).tolist(), strict=True))
        slopes = np.array([params.pop("a"), params.pop("b")])
        return slow_ets(*SLOW[name], params, slopes, data)

    @pytest.mark.few(
        "ETS(A, N, N)", "ETS(M, A, N)-0", "ETS(M, N, A)-3", "ETS(A, Ad, A)-3", "ETS(M, N, M)-0"
    )
    def test_has_the_same_likelihood(self, name, missing):
        data, model = fitted_with_gaps(name, missing)
        params = model.params_.iloc[0]
        slow = self.loglik(name, data, params.index, params)
        np.testing.assert_allclose(model.loglik_.item(), slow, rtol=1e-9)

    @pytest.mark.few("ETS(A, N, N)", "ETS(M, A, N)-0", "ETS(M, N, A)-3")
    def test_has_the_same_derivatives(self, name, missing):
        data, model = fitted_with_gaps(name, missing)
        params = model.params_.iloc[0]
        size = np.maximum(np.abs(params), 0.1 if "ETS(A" in name else 1e-2).to_numpy() * 1e-3
        size[-1] = params.iloc[-1] * 1e-3
        if "ETS(M, M" in name:  # the log-likelihood of growth is narrow
            size = size / 10

        def numerical(i, j):
            value = 0.0
            for one, other in itertools.product((1, -1), repeat=2):
                moved = params.to_numpy().copy()
                moved[i] += one * size[i]
                moved[j] += other * size[j]
                value += one * other * self.loglik(name, data, params.index, moved)
            return value / (4 * size[i] * size[j])

        expected = np.zeros((len(size), len(size)))
        for i, j in itertools.combinations_with_replacement(range(len(size)), 2):
            expected[i, j] = expected[j, i] = numerical(i, j)
        inner = ~model.estimates_.fixed[0]
        scale = np.sqrt(np.abs(np.outer(np.diag(expected), np.diag(expected))))
        difference = (model.estimates_.hessian[0] - expected) / scale
        assert inner[[list(params.index).index(name) for name in "ab"]].all()
        np.testing.assert_allclose(difference[np.ix_(inner, inner)], 0, atol=5e-3)
        gradient = model.estimates_.gradient[0] / np.sqrt(np.abs(np.diag(expected)))
        np.testing.assert_allclose(gradient[inner], 0, atol=1e-3)

    @pytest.mark.few("ETS(A, N, N)-0", "ETS(M, A, N)-3", "ETS(M, M, N)-0")
    def test_no_other_search_comes_higher(self, name, missing):
        data, model = fitted_with_gaps(name, missing)
        params = model.params_.iloc[0]
        inner = np.flatnonzero(~model.estimates_.fixed[0])
        size = np.maximum(np.abs(params.to_numpy()), 1e-3)

        def negative(moves):
            values = params.to_numpy().copy()
            values[inner] += size[inner] * moves
            if values[-1] <= 0 or not 0 < values[0] < 1:
                return np.inf
            with np.errstate(all="ignore"):
                value = self.loglik(name, data, params.index, values)
            return -value if np.isfinite(value) else np.inf

        start = np.random.default_rng(0).normal(0, 0.01, len(inner))
        end = minimize(negative, start, method="Nelder-Mead", options={"maxfev": 1500})
        assert -end.fun <= model.loglik_.item() + 1e-4


@pytest.mark.parametrize("name", ["Theta", "Theta, one line", "Theta, level"])
def test_slow_filter_of_theta(name):
    data = frame(2, n=60)
    model = make(name).fit(data)
    params, arguments = model.params_.iloc[0], model.get_params()

    def loglik(values):
        at = dict(zip(params.index, values, strict=True))
        effect = (data[["a", "b"]] - data[["a", "b"]].mean()) @ [at["a"], at["b"]]
        z = (data["y"] - effect).to_numpy()
        theta = at.get("theta", arguments["theta"])
        return slow_theta(
            arguments["dynamic"], at["alpha"], theta, at.get("level"), at["sigma2"], z
        )

    np.testing.assert_allclose(model.loglik_.item(), loglik(params.to_numpy()), rtol=1e-8)
    inner = np.flatnonzero(~model.estimates_.fixed[0])
    size = 1e-3 * np.maximum(np.abs(params.to_numpy()), 0.1)
    for i, j in itertools.product(inner, repeat=2):
        value = 0.0
        for one, other in itertools.product((1, -1), repeat=2):
            moved = params.to_numpy().copy()
            moved[i] += one * size[i]
            moved[j] += other * size[j]
            value += one * other * loglik(moved)
        found = model.estimates_.hessian[0]
        scale = np.sqrt(found[i, i] * found[j, j])
        np.testing.assert_allclose(
            value / (4 * size[i] * size[j]) / scale, found[i, j] / scale, atol=5e-3
        )
    found = model.estimates_
    np.testing.assert_allclose(found.gradient[0, inner] / np.sqrt(-np.diag(
        found.hessian[0])[inner]), 0, atol=1e-4)  # fmt: skip


@pytest.mark.few(
    "ETS(A, N, N)", "ETS, heuristic", "Theta", "Theta, seasonal", "CES(simple)", "CES(partial)"
)
@pytest.mark.parametrize(
    "name",
    [
        name
        for name in EXPONENTIAL
        # parameters are given for one model; errors of others are relative to the whole mean
        if name not in ("Theta, factors", "ETS, chosen") and not name.startswith("ETS(M")
    ],
)
def test_with_coefficients_given_it_is_the_model_of_the_rest(name):
    """The likelihood is that of the series less x'beta, unless errors are relative to its mean."""
    data = frame(3)
    model = make(name).fit(data)
    arguments = MODELS[name].get_params() | {"target": "y"}
    if name == "CES, chosen":
        arguments["seasonal"] = model.models_.item()[4:-1]
    rest = (data["y"] - columns_effect(model, data, data)).to_frame()
    of_rest = type(model)(**arguments)
    params = own_params(model)[list(of_rest.fit(rest).params_.columns)]
    given = of_rest.filter(rest, params)
    # Turns end before the season of theta is that of the last coefficients to all digits.
    np.testing.assert_allclose(given.loglik_.item(), model.loglik_.item(), rtol=1e-6)
    again = make(name, **({"seasonal": arguments["seasonal"]} if "seasonal" in arguments else {}))
    filtered = again.filter(data, model.params_[[*params.index[:-1], "a", "b", "sigma2"]])
    np.testing.assert_allclose(filtered.loglik_.item(), given.loglik_.item(), rtol=1e-8)
    ahead = frame(4).iloc[:AHEAD]
    ahead.index = pd.date_range(data.index[-1] + pd.Timedelta(days=1), periods=AHEAD)
    expected = given.predict(h=AHEAD)["y"].to_numpy() + columns_effect(model, data, ahead)
    forecasts = model.predict(X_future=ahead[["a", "b"]])["y"]
    np.testing.assert_allclose(forecasts, expected, rtol=1e-5)


@pytest.mark.few("CES(simple)")
@pytest.mark.parametrize("name", ["CES, chosen", "CES(simple)", "CES(partial)", "CES(full)"])
def test_derivatives_of_ces(name):
    data = frame(5)
    model = make(name).fit(data)
    title = model.models_.item()[4:-1]
    params = model.params_.iloc[0]
    again = make(name, seasonal=title)
    names = [*again.fit(data).params_.columns]
    params = params[names]

    fixed = dict(zip(model.params_.columns, model.estimates_.fixed[0], strict=True))
    inner = [i for i, name in enumerate(names) if not fixed[name]]
    places = [model.params_.columns.get_loc(name) for name in names]
    found = model.estimates_.hessian[0][np.ix_(places, places)]
    size = 0.02 / np.sqrt(np.maximum(-np.diag(found), 1e-12))
    assert {names[i] for i in inner} >= {"a", "b"}
    np.testing.assert_allclose(found, found.T, rtol=1e-9, atol=1e-9)
    pairs = [*itertools.combinations_with_replacement(inner, 2)]
    signs = np.array([*itertools.product((1, -1), repeat=2)])
    moved = np.tile(params.to_numpy(), (len(pairs), len(signs), 1))
    for (i, j), points in zip(pairs, moved, strict=True):
        points[:, i] += signs[:, 0] * size[i]
        points[:, j] += signs[:, 1] * size[j]
    # The same rows at every point: a panel is quicker than as many series by themselves.
    moved = pd.DataFrame(moved.reshape(-1, len(names)), columns=names)
    moved.index = [f"s{i:03d}" for i in range(len(moved))]
    rows = data.reset_index(names="ds")
    panel = pd.concat([rows] * len(moved)).assign(unique_id=np.repeat(moved.index, len(rows)))
    logliks = again.filter(panel, moved).loglik_[moved.index].to_numpy().reshape(-1, len(signs))
    for (i, j), value in zip(pairs, logliks @ signs.prod(1), strict=True):
        scale = np.sqrt(found[i, i] * found[j, j])
        np.testing.assert_allclose(
            value / (4 * size[i] * size[j]) / scale, found[i, j] / scale, atol=1e-2
        )


# Other programs, and truth.


def test_simple_exponential_smoothing_is_an_arima_with_regressors():
    data = frame(6, n=600)
    data["y"] -= np.resize([1.0, -0.5, 0.3, -0.8], len(data))
    model = make("ETS(A, N, N)").fit(data)
    other = sm.tsa.SARIMAX(data["y"], data[["a", "b"]], order=(0, 1, 1)).fit(disp=0, cov_type="oim")
    params, errors = model.params_.iloc[0], model.bse_.iloc[0]
    for name in "ab":
        assert abs(params[name] - other.params[name]) < 0.05 * errors[name]
        np.testing.assert_allclose(errors[name], other.bse[name], rtol=0.05)
    np.testing.assert_allclose(params["alpha"] - 1, other.params["ma.L1"], atol=0.02)
    ahead = other.forecast(AHEAD, exog=data[["a", "b"]].iloc[:AHEAD])
    future = data[["a", "b"]].iloc[:AHEAD].set_index(ahead.index)
    np.testing.assert_allclose(model.predict(X_future=future)["y"], ahead, atol=0.02)


@pytest.mark.few("ETS(A, N, N)", "ETS(M, N, M)", "Theta, seasonal")
@pytest.mark.parametrize(
    "name", ["ETS(A, N, N)", "ETS(M, N, A)", "ETS(M, N, M)", "Theta, seasonal", "CES(partial)"]
)
def test_coefficients_are_recovered(name):
    """Errors over standard errors are standard normal, of 40 series with two columns each."""
    series = [frame(100 + i, n=120).reset_index(names="ds") for i in range(40)]
    panel = pd.concat([one.assign(unique_id=f"s{i:02d}") for i, one in enumerate(series)])
    model = make(name).fit(panel)
    z = ((model.params_[["a", "b"]] - SLOPES) / model.bse_[["a", "b"]]).to_numpy()
    assert np.isfinite(z).all()
    # Standard errors of the mean and of the deviation of 80 numbers: 0.11 and 0.08.
    assert np.abs(z.mean()) < 0.4
    assert 0.7 < z.std() < 1.35
    assert (np.abs(z) < 3).mean() > 0.95


@pytest.mark.few(
    "ETS(A, N, N)", "ETS, heuristic", "Theta", "Theta, seasonal", "CES(simple)", "AutoARIMA"
)
@pytest.mark.parametrize("name", LINEAR)
def test_what_is_added_to_the_series_is_added_to_the_coefficients(name):
    past, _, future = parts(frame(7))
    b = np.array([3.0, -7.0])
    # CES is no model of differences: a shift of the series is another series to it.
    away = past[["a", "b"]] - past[["a", "b"]].mean()
    moved = past.assign(y=past["y"] + away @ b)
    one, other = fitted(name), make(name).fit(moved)
    np.testing.assert_allclose(other.loglik_.item(), one.loglik_.item(), atol=1e-4)
    difference = (other.params_ - one.params_)[["a", "b"]].iloc[0]
    np.testing.assert_allclose(difference, b, atol=1e-3)
    away = future - past[["a", "b"]].mean()
    expected = one.predict(X_future=future)["y"] + away @ b
    np.testing.assert_allclose(other.predict(X_future=future)["y"], expected, atol=1e-2)


@pytest.mark.few(
    "ETS(A, N, N)",
    "ETS(M, A, N)",
    "ETS, chosen",
    "Theta",
    "Theta, factors",
    "CES(simple)",
    "AutoARIMA",
)
@pytest.mark.parametrize("name", MODELS)
def test_units_of_columns_do_not_matter(name):
    past, _, future = parts(frame(7))

    def turned(data):
        return data.assign(a=1e3 * data["a"] - 2e4, b=1e-2 * data["b"] + 1)

    one, other = fitted(name), make(name).fit(turned(past))
    np.testing.assert_allclose(other.loglik_.item(), one.loglik_.item(), atol=2e-3)
    forecasts = one.predict(X_future=future, level=80)
    np.testing.assert_allclose(
        other.predict(X_future=turned(future), level=80), forecasts, rtol=2e-3
    )


def test_criteria_count_coefficients():
    data = frame(9)
    for name in ("ETS(A, N, N)", "CES(partial)", "Theta"):
        model = make(name).fit(data)
        without = make(name, known_ahead=None).fit(data[["y"]])
        count = model.estimates_.n_params
        other = without.estimates_.n_params
        other = [len(without.estimates_.names)] if other is None else other
        assert count[0] == other[0] + 2
        aic = 2 * count[0] - 2 * model.loglik_.item()
        np.testing.assert_allclose(model.aic_.item(), aic)


def test_likelihood_ratio_of_a_column():
    data = frame(10, n=150, slopes=np.array([2.0, 0.0]))
    for name in ("ETS(A, N, N)", "CES(partial)", "Theta"):
        large = make(name).fit(data)
        small = make(name, known_ahead="a").fit(data[["y", "a"]])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            test = large.lr_test(small).iloc[0]
        assert test["df"] == 1
        wald = large.wald_test("b")["statistic"].item()
        np.testing.assert_allclose(test["statistic"], wald, atol=0.2 * max(1, wald))


# What the contract promises.


@pytest.mark.parametrize("name", MODELS)
class TestGoingOn:
    @pytest.mark.few(
        "ETS(A, N, N)", "ETS(M, A, N)", "Theta", "Theta, factors", "CES(simple)", "AutoARIMA"
    )
    def test_update_is_the_filter_of_all_rows(self, name):
        data = frame(7)
        _, later, future = parts(data)
        model = copy.deepcopy(fitted(name))
        ahead = future.set_index(future.index + pd.Timedelta(days=AHEAD))
        expected = model.predict(data, X_future=ahead)
        found = model.update(later).predict(X_future=ahead)
        np.testing.assert_allclose(found, expected, rtol=1e-9)

    @pytest.mark.few(
        "ETS(A, N, N)", "ETS(M, A, N)", "Theta", "Theta, factors", "CES(simple)", "AutoARIMA"
    )
    def test_rolling_forecasts_use_the_columns_of_their_rows(self, name):
        _, later, future = parts(frame(7))
        model = fitted(name)
        rolled = copy.deepcopy(model).predict_rolling(later, h=1)
        expected = [
            make_state(model, later, t).predict(X_future=future.iloc[t : t + 1], h=1)["y"].iloc[0]
            for t in range(AHEAD)
        ]
        np.testing.assert_allclose(rolled["y"].to_numpy()[:AHEAD], expected, rtol=1e-9)

    @pytest.mark.few(
        "ETS(A, N, N)", "ETS(M, A, N)", "Theta", "Theta, factors", "CES(simple)", "AutoARIMA"
    )
    def test_paths_are_around_the_forecast(self, name):
        past, _, future = parts(frame(13))
        model = make(name, parameter_uncertainty=False).fit(past)
        paths = model.sample_paths(n=4000, X_future=future)
        forecast = model.predict(X_future=future, level=68.27)
        values = paths["y"].to_numpy().reshape(4000, AHEAD)
        width = (forecast["y-hi-68.27"] - forecast["y"]).to_numpy()
        np.testing.assert_allclose(values.mean(0), forecast["y"], atol=0.1 * width.max())
        np.testing.assert_allclose(values.std(0), width, rtol=0.1)

    @pytest.mark.few(
        "ETS(A, N, N)", "ETS(M, A, N)", "Theta", "Theta, factors", "CES(simple)", "AutoARIMA"
    )
    def test_fitted_values_and_residuals(self, name):
        past, _, _ = parts(frame(14))
        model = make(name).fit(past)
        values, resid = model.fittedvalues()["y"], model.residuals()["y"]
        inside = np.isfinite(values)
        np.testing.assert_allclose((values + resid)[inside], past["y"][inside], rtol=1e-9)
        assert resid[inside][5:].std() < 1.6  # noise of one; the columns alone have 2.5


def make_state(model, later, t):
    """Return a copy of a model after the first t of some later rows."""
    copied = copy.deepcopy(model)
    return copied.update(later.iloc[:t]) if t else copied


@pytest.mark.few("ETS, chosen", "Theta, seasonal")
@pytest.mark.parametrize("name", ["ETS, chosen", "Theta, seasonal", "CES, chosen"])
def test_a_series_is_the_same_in_a_panel(name):
    lengths = [60, 45, 60]
    series = [frame(200 + i, n=n).reset_index(names="ds") for i, n in enumerate(lengths)]
    panel = pd.concat([one.assign(unique_id=f"s{i}") for i, one in enumerate(series)])
    model = make(name).fit(panel)
    for i, one in enumerate(series):
        alone = make(name).fit(one.assign(unique_id=f"s{i}"))
        np.testing.assert_allclose(
            alone.params_.loc[f"s{i}"], model.params_.loc[f"s{i}"], atol=1e-5
        )


@pytest.mark.parametrize("name", ["ETS(M, N, N)", "Theta", "CES(partial)"])
def test_backtests(name):
    model = make(name, horizon=3) if name in MODELS else ETS(
        "mul", "none", "none", target="y", known_ahead=["a", "b"], horizon=3
    )  # fmt: skip
    result = backtest({"model": model}, frame(15, n=60), h=3, n_windows=3, refit=False)
    error = (result["model"] - result["y"]).abs()
    assert error.mean() < 2.0  # noise of one and the walk; columns unseen add 2.5


# Columns that have no coefficient.


@pytest.mark.parametrize(
    "name", ["ETS(A, N, N)", "ETS, chosen", "Theta", "CES, chosen", "AutoARIMA"]
)
class TestColumnsLeftOut:
    def data(self):
        data = frame(16)
        return data.assign(c=3.3, d=2 * data["a"] - data["b"], e=1e6 + 0 * data["a"])

    @pytest.mark.few("ETS(A, N, N)", "Theta", "AutoARIMA")
    def test_are_named(self, name):
        past, _, future = parts(self.data())
        with (
            pytest.warns(UserWarning, match="Left out: 'd', constant or collinear"),
            pytest.warns(UserWarning, match="left out: the columns 'c', 'e', constant in the rows"),
        ):
            model = make(name, known_ahead=[*"abcde"]).fit(past)
        expected = make(name).fit(past[["y", "a", "b"]])
        assert (model.params_["d"] == 0).all()
        assert model.bse_["d"].isna().all()
        assert {*model.params_.columns}.isdisjoint("ce")
        found = model.predict(X_future=future, level=80)
        other = expected.predict(X_future=future[["a", "b"]], level=80)
        np.testing.assert_allclose(found, other, rtol=1e-6)
        assert "Left out: 'd'" in str(model.summary()).replace("\n    ", " ")
        # A column that begins to vary has no effect: none is known.
        varied = model.predict(X_future=future.assign(c=np.arange(5.0), e=0.0), level=80)
        np.testing.assert_allclose(varied, found, rtol=1e-12)

    @pytest.mark.few("ETS(A, N, N)", "Theta", "AutoARIMA")
    def test_of_some_series(self, name):
        one, other = (self.data().drop(columns=["d", "e"]).reset_index(names="ds") for _ in "ab")
        panel = pd.concat(
            [one.assign(unique_id="u"), other.assign(unique_id="v", c=other["a"] ** 2)]
        )
        with pytest.warns(UserWarning, match="left out of 1 of 2 units, 'u'"):
            model = make(name, known_ahead=[*"abc"]).fit(panel)
        assert model.params_.loc["u", "c"] == 0
        assert model.params_.loc["v", "c"] != 0
        assert np.isnan(model.bse_.loc["u", "c"])
        assert model.bse_.loc["v", "c"] > 0

    @pytest.mark.few("ETS(A, N, N)", "Theta", "CES, chosen")
    def test_all_of_them(self, name):
        data = frame(17)[["y"]].assign(c=3.3)
        with pytest.warns(UserWarning, match="left out: the column 'c', constant"):
            model = make(name, known_ahead="c").fit(data)
        without = make(name, known_ahead=None).fit(data[["y"]])
        np.testing.assert_allclose(model.loglik_.item(), without.loglik_.item(), rtol=1e-9)
        np.testing.assert_allclose(model.aic_.item(), without.aic_.item(), rtol=1e-9)


class TestColumnsThatComponentsExplain:
    def test_a_line_beside_a_trend(self):
        data = frame(18).assign(t=np.arange(80.0))
        with pytest.warns(UserWarning, match="Left out: 't'"):
            ETS("add", "add", "none", damped=False, target="y", known_ahead=[*"abt"]).fit(data)

    def test_a_line_where_a_trend_may_be_chosen(self):
        data = frame(18).assign(t=np.arange(80.0))
        with pytest.warns(UserWarning, match="Left out: 't'"):
            model = ETS(target="y", known_ahead=[*"abt"], season_length=1).fit(data)
        without = ETS(target="y", known_ahead=[*"ab"], season_length=1).fit(data.drop(columns="t"))
        pd.testing.assert_frame_equal(model.candidates_, without.candidates_)
        model = ETS(target="y", known_ahead=[*"abt"], trend="none", season_length=1).fit(data)
        assert model.bse_["t"].item() > 0

    @pytest.mark.few("True")
    @pytest.mark.parametrize("explicit", [True, False])
    def test_dummies_beside_a_season(self, explicit):
        data = frame(18)
        for i in range(1, PERIOD):
            data[f"d{i}"] = 1.0 * (np.arange(80) % PERIOD == i)
        names = [*"ab", "d1", "d2", "d3"]
        models = (
            ETS("add", "none", "add", season_length=PERIOD),
            CES("partial", PERIOD),
            Theta(seasonal="add", season_length=PERIOD),
        )
        if not explicit:
            models = ETS(season_length=PERIOD), CES(season_length=PERIOD)
        for model in models:
            with pytest.warns(UserWarning, match="Left out: 'd1', 'd2', 'd3'"):
                model.set_params(target="y", known_ahead=names).fit(data)
            assert (model.params_[["d1", "d2", "d3"]] == 0).all(axis=None)
        short = data.iloc[:8]  # too short for a season
        model = CES(season_length=PERIOD, target="y", known_ahead=["d1"]).fit(short[["y", "d1"]])
        assert model.params_["d1"].item() != 0


# Bad input.


@pytest.mark.parametrize("name", ["ETS, chosen", "Theta", "CES, chosen"])
class TestRefusals:
    @pytest.mark.few("ETS, chosen", "Theta")
    def test_futures(self, name):
        past, _, future = parts(frame(19))
        model = make(name).fit(past)
        for X, words in (
            (future.iloc[:-1], "must cover the 5 steps"),
            (future[["a"]], "missing 'b'"),
            (future.assign(a=np.inf), "must have no missing or infinite values"),
            (future.assign(a=np.nan), "must have no missing or infinite values"),
            (None, "X_future"),
        ):
            with pytest.raises((TypeError, ValueError), match=words):
                model.predict(X_future=X)

    def test_columns_of_training_rows(self, name):
        past, _, _ = parts(frame(19))
        for value, words in ((np.inf, "must be finite"), (np.nan, "must have no missing values")):
            bad = past.copy()
            bad.iloc[3, 1] = value
            with pytest.raises(ValueError, match=words):
                make(name, missing="error").fit(bad)

    def test_more_columns_than_rows(self, name):
        rng = np.random.default_rng(0)
        names = [f"x{i}" for i in range(30)]
        wide = pd.DataFrame(rng.normal(size=(20, 30)), columns=names).assign(y=rng.normal(size=20))
        with pytest.raises(ValueError, match="need more observations than columns"):
            make(name, known_ahead=names).fit(wide)

    @pytest.mark.few("ETS, chosen", "Theta")
    def test_columns_not_known_ahead(self, name):
        past, _, _ = parts(frame(19))
        model = make(name, known_ahead=None).fit(past)
        with pytest.raises(ValueError, match=r"Construct with known_ahead=\['a', 'b'\]"):
            model.predict()

    def test_names_of_parameters(self, name):
        past, _, _ = parts(frame(19))
        taken = past.rename(columns={"a": "sigma2"})
        with pytest.raises(ValueError, match=r"must not be named as the parameters.*\['sigma2'\]"):
            make(name, known_ahead=["sigma2", "b"]).fit(taken)


def test_seasons_that_multiply_by_what_columns_leave():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=80)
    x = np.resize([40.0, 0.0, 0.0, 0.0], 80) + noise
    data = pd.DataFrame({"y": 20 + noise + 0.1 * rng.normal(size=80), "x": x})
    model = Theta(seasonal="mul", season_length=PERIOD, target="y", known_ahead="x")
    two = pd.concat([data.assign(unique_id="u"), data.assign(unique_id="v", x=noise)])
    two = two.assign(ds=[*range(80)] * 2)
    with pytest.warns(UserWarning, match="positive indices; of the series less"):
        model.fit(two)
    assert model.params_.isna().all(axis=1).tolist() == [True, False]
    with pytest.raises(ValueError, match="positive indices; of the series less"):
        model.fit(data)


@pytest.mark.few("ETS(A, N, N)", "ETS(M, N, M)", "Theta", "CES(simple)", "AutoARIMA")
@pytest.mark.parametrize("name", MODELS)
def test_a_series_that_columns_explain_wholly(name):
    past, _, future = parts(frame(20))
    exact = past.assign(y=100 + past[["a", "b"]] @ SLOPES)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = make(name).fit(exact)
        forecasts = model.predict(X_future=future)["y"]
    np.testing.assert_allclose(forecasts, 100 + future @ SLOPES, rtol=1e-4)


@pytest.mark.slow
def test_the_classical_combination_takes_columns():
    past, _, future = parts(frame(21, n=45))
    model = Combination.classical(
        season_length=PERIOD, target="y", known_ahead=["a", "b"], horizon=AHEAD
    ).fit(past)
    assert [*model.forecasters_] == ["ETS", "Theta", "CES", "AutoARIMA"]
    forecasts = [
        type(member)(season_length=PERIOD, target="y", known_ahead=["a", "b"], horizon=AHEAD)
        .fit(past)
        .predict(X_future=future)["y"]
        for member in model.forecasters_.values()
    ]
    np.testing.assert_allclose(
        model.predict(X_future=future)["y"], np.median(forecasts, 0), rtol=1e-9
    )


@pytest.mark.few("ETS(A, N, N)", "ETS(M, N, M)", "ETS, chosen")
@pytest.mark.parametrize("name", [name for name in MODELS if name.startswith("ETS")])
def test_components_make_up_the_fitted_values(name):
    past, _, _ = parts(frame(7))
    model = fitted(name)
    table = model.components()
    effects = columns_effect(model, past, past)
    np.testing.assert_allclose(table["regression"], effects, rtol=1e-9)
    axes = plot_components(table)
    assert axes[-1].get_ylabel() == "Regression"
    np.testing.assert_allclose(axes[-1].get_lines()[0].get_ydata(), effects, rtol=1e-9)
    plt.close(axes[0].figure)


def test_several_targets_have_coefficients_of_their_own():
    data = frame(23)
    data["z"] = frame(24)["y"].to_numpy() - 3 * data["a"]
    past, future = data[:-AHEAD], data[-AHEAD:][["a", "b"]]
    for name in ("ETS(M, N, A)", "Theta, factors", "CES(full)"):
        both = make(name, target=["y", "z"]).fit(past)
        forecasts = both.predict(X_future=future, level=80)
        for target in ("y", "z"):
            one = make(name, target=target).fit(past[[target, "a", "b"]])
            expected = one.predict(X_future=future, level=80)
            np.testing.assert_allclose(forecasts[expected.columns], expected, rtol=1e-6)


@pytest.mark.slow
def test_conformal_intervals_and_batches(tmp_path):
    series = [frame(30 + i, n=60).reset_index(names="ds") for i in range(3)]
    panel = pd.concat([one.assign(unique_id=f"s{i}") for i, one in enumerate(series)])
    late = panel.groupby("unique_id").cumcount(ascending=False) < AHEAD
    past, future = panel[~late], panel[late].drop(columns="y")
    for name in ("ETS, chosen", "Theta", "CES(partial)"):
        model = make(name, intervals="conformal").fit(past)
        widths = model.predict(X_future=future, level=80)
        assert (widths.iloc[:, 4] > widths.iloc[:, 3]).all()
        run = forecast_batches(past, make(name), out=tmp_path / name, X_future=future)
        expected = make(name).fit(past).predict(X_future=future)
        column = expected.columns[-1]
        found = run.forecasts().sort_values(["unique_id", "ds"])[column]
        np.testing.assert_allclose(found, expected[column], rtol=1e-6)
