"""The theta models against plain loops, statsmodels, numbers of statsforecast, and simulation."""

from __future__ import annotations

import copy
import math

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.tsa.forecasting.theta import ThetaModel
from statsmodels.tsa.seasonal import seasonal_decompose
from statsmodels.tsa.stattools import acf

from tsrnn.contract import IntervalWarning
from tsrnn.linear import Theta

from .examples import AIRLINE
from .examples import seasonal as seasonal_series

AT = {"level": 30.0, "alpha": 0.35, "theta": 2.6, "sigma2": 1.4}
MODELS = [(True, None), (True, 2.0), (False, None), (False, 2.0)]


def monthly(n=48, seed=0, gaps=0):
    """Trend, season and noise, positive; some values missing, the first not."""
    y = seasonal_series(n, seed, m=12)
    rng = np.random.default_rng(seed)
    y.iloc[rng.choice(np.arange(1, n), gaps, replace=False)] = np.nan
    return y


def by_loop(y, level, alpha, theta, dynamic, h=0, shock=None):
    """Means of the rows and of h further ones by the equations of Fiorucci et al., written out.

    A missing value is its mean to the level; those ahead are to the line, too. `shock` is the row
    to which one is added.
    """
    y = np.concatenate([y, np.full(h, np.nan)])
    n, c, means = len(y) - h, 1 - 1 / theta, []
    times, known = list(np.flatnonzero(np.isfinite(y)) + 1), np.isfinite(y)
    fixed = np.polyfit(times, y[known], 1)[::-1]
    for t in range(1, len(y) + 1):
        if dynamic:
            before = [s for s in range(1, t) if known[s - 1]]
            line = (0.0, 0.0)
            if len(before) == 1:
                line = (y[before[0] - 1], 0.0)
            elif before:
                line = np.polyfit(before, y[np.array(before) - 1], 1)[::-1]
        else:
            line = fixed
        ahead = (1 - alpha) ** (t - 1) * line[0] + (1 - (1 - alpha) ** t) / alpha * line[1]
        mean = level + c * ahead
        value = y[t - 1] if np.isfinite(y[t - 1]) else mean
        if t > n:
            y[t - 1] = value = mean + (shock == t)
            known[t - 1] = True
        level += alpha * (value - level)
        means.append(mean)
    return np.array(means)


def loglik(errors, sigma2):
    errors = errors[3:][np.isfinite(errors[3:])]
    return -0.5 * np.sum(np.log(2 * math.pi * sigma2) + errors**2 / sigma2)


def plain(dynamic, theta=None, **arguments):
    """Model without a season whose level is a parameter."""
    defaults = {"seasonal": "none", "initialization": "estimated", "missing": "keep"}
    return Theta(theta, dynamic, **defaults | arguments)


def parameters(theta):
    return {name: value for name, value in AT.items() if name != "theta" or theta is None}


@pytest.mark.parametrize(("dynamic", "theta"), MODELS)
@given(n=st.integers(8, 60), seed=st.integers(0, 99), share=st.floats(0, 0.4))
@settings(max_examples=15, deadline=None)
def test_given_parameters_have_the_likelihood_of_the_equations(dynamic, theta, n, seed, share):
    """Log-likelihood, fitted values and forecasts are those of a plain loop, with gaps too."""
    y = monthly(n, seed, int(share * (n - 4)))
    if y[3:].count() < 5:
        return
    model = plain(dynamic, theta).filter(y, parameters(theta))
    means = by_loop(y.to_numpy(), AT["level"], AT["alpha"], theta or AT["theta"], dynamic, h=5)
    errors = y.to_numpy() - means[:n]
    np.testing.assert_allclose(model.loglik_.iloc[0], loglik(errors, AT["sigma2"]), rtol=1e-9)
    np.testing.assert_allclose(model.fittedvalues().to_numpy()[3:], means[3:n], rtol=1e-9)
    np.testing.assert_allclose(model.predict(5).to_numpy(), means[n:], rtol=1e-9)


def test_rows_before_the_first_value_do_not_count():
    """Leading gaps shift the rows, and the season stays that of the calendar."""
    y = monthly(60)
    late = y.copy()
    late.iloc[:5] = np.nan
    for arguments in ({"seasonal": "none"}, {"seasonal": "mul"}, {"dynamic": False}):
        short = Theta(missing="keep", **arguments).fit(y.iloc[5:])
        whole = Theta(missing="keep", **arguments).fit(late)
        pd.testing.assert_frame_equal(
            whole.params_.reset_index(drop=True), short.params_.reset_index(drop=True)
        )
        pd.testing.assert_series_equal(whole.predict(20), short.predict(20))
        np.testing.assert_allclose(whole.fittedvalues()[5:], short.fittedvalues())
        assert whole.fittedvalues()[:5].isna().all()


@pytest.mark.parametrize("initialization", ["estimated", "heuristic"])
@pytest.mark.parametrize(("dynamic", "theta"), MODELS)
def test_derivatives_are_those_of_the_likelihood(dynamic, theta, initialization):
    """Gradient, Hessian, scores and information against differences of a plain loop."""
    y, params = monthly(gaps=4), parameters(theta)
    if initialization == "heuristic":
        del params["level"]
    model = plain(dynamic, theta, initialization=initialization).filter(y, params)
    names = list(params)
    at = np.array([AT[name] for name in names])

    def errors(values):
        p = AT | {"theta": theta or AT["theta"]} | dict(zip(names, values, strict=True))
        if initialization == "heuristic":
            p["level"] = y.iloc[0] / p["theta"]
        e = y.to_numpy() - by_loop(y.to_numpy(), p["level"], p["alpha"], p["theta"], dynamic)
        return e[3:][np.isfinite(e[3:])], p["sigma2"]

    def terms(values):
        e, sigma2 = errors(values)
        return -0.5 * (np.log(2 * math.pi * sigma2) + e**2 / sigma2)

    def slopes(function, values):
        steps = np.diag(1e-5 * np.maximum(np.abs(values), 0.1))
        return np.array(
            [(function(values + s) - function(values - s)) / (2 * s.sum()) for s in steps]
        )

    scores = slopes(terms, at)
    hessian = slopes(lambda values: slopes(terms, values).sum(1), at)
    of_errors = slopes(lambda values: errors(values)[0], at)
    information = of_errors @ of_errors.T / AT["sigma2"]
    information[-1] = information[:, -1] = 0.0
    information[-1, -1] = scores.shape[1] / (2 * AT["sigma2"] ** 2)
    estimates = model.estimates_
    np.testing.assert_allclose(estimates.gradient[0], scores.sum(1), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(estimates.opg[0], scores @ scores.T, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(estimates.hessian[0], hessian, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(estimates.information[0], information, rtol=1e-6, atol=1e-6)


@pytest.mark.few("False-heuristic", "True-estimated")
@pytest.mark.parametrize("initialization", ["estimated", "heuristic"])
@pytest.mark.parametrize("dynamic", [True, False])
def test_no_point_of_a_grid_is_higher(dynamic, initialization):
    """The maximum is that of a grid of alphas with least squares in the rest, from plain loops."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.normal(size=(25, 8)).cumsum(0) + 50)
    frame.iloc[7, ::2] = np.nan
    model = Theta(dynamic=dynamic, initialization=initialization, missing="keep", freq=1).fit(frame)
    assert model.converged_.all()
    reached = model.loglik_.to_numpy()
    for number, (_, series) in enumerate(frame.items()):
        y = series.to_numpy()
        highest = -np.inf
        for alpha in np.linspace(0.1, 0.99, 30):
            base = y - by_loop(y, 0.0, alpha, 1.0, dynamic)
            of_level = y - by_loop(y, 1.0, alpha, 1.0, dynamic) - base
            of_line = 2 * (y - by_loop(y, 0.0, alpha, 2.0, dynamic) - base)
            base, of_level, of_line = (
                part[3:][np.isfinite(y[3:])] for part in (base, of_level, of_line)
            )
            for share in np.linspace(0, 1, 41):
                rest = base + share * of_line
                level = (1 - share) * y[0]
                if initialization == "estimated":  # the first mean is within reach of the values
                    best, reach = -(rest @ of_level) / (of_level @ of_level), np.abs(y - y[0])
                    level += np.clip(best - level, -np.nanmax(reach), np.nanmax(reach))
                error = rest + level * of_level
                value = -0.5 * len(error) * (np.log(2 * math.pi * np.mean(error**2)) + 1)
                highest = max(highest, value)
        assert reached[number] > highest - 1e-9 * abs(highest)


# Level, alpha and theta of statsforecast 2.1.1 and what it forecasts with them.
STATSFORECAST = {
    (False, 2.0): (27.31880537208198, 0.7539672851562504, 2.0, 440.9692, 429.2492, 448.5247),
    (False, None): (-215.29400465748614, 0.7156664372398441, 22.70488382725331,
                    442.9425, 432.231, 462.4023),
    (True, 2.0): (-254.68762894800898, 0.7715576171875065, 2.0, 440.7741, 429.0619, 448.3923),
    (True, None): (-363.30166262178375, 0.7247594168741598, 90.89199991973408,
                   442.9272, 432.2984, 463.4772),
}  # fmt: skip


@pytest.mark.parametrize(("dynamic", "theta"), MODELS)
def test_forecasts_are_those_of_statsforecast(dynamic, theta):
    """At its parameters to all digits printed; at ours to 1e-3, as its simplex ends early."""
    y = pd.Series(AIRLINE, pd.date_range("1949-01", periods=144, freq="MS"))
    level, alpha, curvature, *forecasts = STATSFORECAST[dynamic, theta]
    params = {"level": level, "alpha": alpha, "theta": curvature, "sigma2": 1.0}
    if theta is not None:
        del params["theta"]
    model = Theta(theta, dynamic, initialization="estimated")
    given_theirs = model.filter(y, params)
    assert given_theirs.seasons_["kind"].tolist() == ["multiplicative"]
    places = [0, 1, 11]
    np.testing.assert_allclose(given_theirs.predict(12).iloc[places], forecasts, atol=6e-5)
    theirs = given_theirs.loglik_.iloc[0]
    square = (theirs + 0.5 * 141 * np.log(2 * math.pi)) * -2
    model.fit(y)
    np.testing.assert_allclose(model.predict(12).iloc[places], forecasts, rtol=1e-3)
    assert model.params_["sigma2"].iloc[0] <= square / 141


def test_the_standard_model_is_that_of_statsmodels():
    """With its smoothing parameter, once the start has been forgotten."""
    y = monthly(150, 3)
    results = ThetaModel(y, period=12, method="mul").fit()
    alpha = float(results.params["alpha"])
    model = Theta(2.0, dynamic=False, seasonal="mul").filter(y, {"alpha": alpha, "sigma2": 1.0})
    np.testing.assert_allclose(model.predict(18), results.forecast(18, theta=2), rtol=1e-9)


@given(
    period=st.integers(2, 13), n=st.integers(0, 60), seed=st.integers(0, 99), product=st.booleans()
)
@settings(max_examples=40, deadline=None)
def test_the_season_is_that_of_statsmodels(period, n, seed, product):
    """Indices of the decomposition, and the statistic of the test."""
    n += 2 * period + 4
    rng = np.random.default_rng(seed)
    y = 20 + rng.normal(size=n).cumsum() % 7 + rng.normal(size=period)[np.arange(n) % period]
    kind = "mul" if product else "add"
    model = Theta(seasonal=kind, season_length=period, freq=1).fit(pd.Series(y))
    expected = seasonal_decompose(y, model=kind, period=period).seasonal[:period]
    indices = model.seasons_[list(range(1, period + 1))].to_numpy()[0]
    np.testing.assert_allclose(indices, expected, rtol=1e-10, atol=1e-12)
    tested = Theta(season_length=period, freq=1).fit(pd.Series(y)).seasons_.iloc[0]
    r = acf(y, nlags=period, fft=False)[1:]
    statistic = abs(r[-1]) / np.sqrt((1 + 2 * np.sum(r[:-1] ** 2)) / n)
    np.testing.assert_allclose(tested["statistic"], statistic, rtol=1e-10)
    assert (tested["kind"] != "none") == (statistic > 1.6448536269514722)


def test_a_gap_hardly_moves_the_season():
    """Values that are missing are bridged for the moving average alone."""
    y = monthly(96)
    gappy = y.copy()
    gappy.iloc[[20, 21, 50]] = np.nan
    whole, rest = (Theta(seasonal="add", missing="keep").fit(s).seasons_ for s in (y, gappy))
    places = list(range(1, 13))
    np.testing.assert_allclose(rest[places], whole[places], atol=0.5)


def test_a_season_that_cannot_multiply_is_added():
    """Where values are not positive, as statsforecast does."""
    y = monthly(60, 4) - 62 + 9 * np.cos(np.pi * np.arange(60) / 6)
    assert Theta().fit(y).seasons_["kind"].tolist() == ["additive"]


@pytest.mark.parametrize("seasonal", ["none", "add", "mul"])
@pytest.mark.parametrize("dynamic", [True, False])
def test_variances_are_exact(dynamic, seasonal):
    """Widths of intervals from the effects of errors in a plain loop, and by simulation."""
    y, h = monthly(40), 8
    model = Theta(dynamic=dynamic, seasonal=seasonal, random_state=0, parameter_uncertainty=False)
    model.fit(y)
    params, season = model.params_.iloc[0], model.seasons_.iloc[0]
    adjusted, ahead = y.to_numpy(), np.ones(h)
    if seasonal != "none":
        indices = season[list(range(1, 13))].to_numpy(float)
        along = indices[np.arange(40 + h) % 12]
        adjusted = adjusted / along[:40] if seasonal == "mul" else adjusted - along[:40]
        ahead = along[40:] if seasonal == "mul" else ahead
    at = adjusted[0] / params["theta"], params["alpha"], params["theta"], dynamic
    base = by_loop(adjusted, *at, h=h)[40:]
    effects = [by_loop(adjusted, *at, h=h, shock=40 + k)[40:] - base for k in range(1, h)]
    used = 2 + 2 * (not dynamic) + 11 * (seasonal != "none")
    sigma2 = params["sigma2"] * 37 / (37 - used)
    root = np.sqrt(sigma2 * (1 + np.square(effects).sum(0)))
    table = model.predict(h, level=[80])
    width = (table["y-hi-80"] - table["y-lo-80"]) / 2
    np.testing.assert_allclose(width, 1.2815515655446004 * root * np.abs(ahead), rtol=1e-7)
    if not dynamic:  # the textbook's variance
        alpha = params["alpha"]
        np.testing.assert_allclose(root**2, sigma2 * (1 + np.arange(h) * alpha**2), rtol=1e-7)
    drawn = model.sample_paths(20_000, h=h)["y"].to_numpy().reshape(-1, h)
    np.testing.assert_allclose(drawn.mean(0), table["y"], atol=0.1)
    np.testing.assert_allclose(drawn.std(0), root * np.abs(ahead), rtol=0.02)


@pytest.mark.parametrize(("dynamic", "theta"), MODELS)
@pytest.mark.parametrize("seasonal", ["none", "mul"])
def test_row_by_row_is_the_filter_of_all(dynamic, theta, seasonal):
    """Updates end where the filter of the longer series does, missing values among them."""
    y = monthly(80, gaps=6)
    model = Theta(theta, dynamic, seasonal, missing="keep").fit(y.iloc[:50])
    whole = copy.deepcopy(model).predict(y, h=5, level=[90])
    rows, block = copy.deepcopy(model), copy.deepcopy(model)
    for t in range(50, 80):
        rows.update(y.iloc[t : t + 1])
    block.update(y.iloc[50:63]).update(y.iloc[63:])
    pd.testing.assert_frame_equal(rows.predict(5, level=[90]), whole, rtol=1e-10)
    pd.testing.assert_frame_equal(block.predict(5, level=[90]), whole, rtol=1e-10)


def test_another_beginning_starts_anew():
    """Rows that begin later keep the season of the calendar and the static line."""
    y = monthly(80)
    for dynamic in (True, False):
        model = Theta(dynamic=dynamic).fit(y)
        late = model.predict(y.iloc[31:], h=12)
        np.testing.assert_allclose(late, model.predict(12), rtol=0.02)


@pytest.mark.parametrize("initialization", ["estimated", "heuristic"])
@pytest.mark.parametrize("dynamic", [True, False])
def test_a_straight_line_goes_on(dynamic, initialization):
    """Its variance is next to nothing, its forecasts are on the line."""
    y = pd.Series(3 + 2.0 * np.arange(40))
    model = Theta(dynamic=dynamic, initialization=initialization, freq=1).fit(y)
    assert model.converged_.all()
    np.testing.assert_allclose(model.predict(5), 83 + 2.0 * np.arange(5), rtol=1e-6)


@pytest.mark.parametrize("dynamic", [True, False])
def test_an_estimated_level_does_not_run_away(dynamic):
    """Where alpha is large hardly a row tells of the level: it stays within reach of the values."""
    rng = np.random.default_rng(0)
    rises = np.zeros((30, 6))
    for t in range(1, len(rises)):
        rises[t] = 0.8 * rises[t - 1] + rng.normal(size=6)
    frame = pd.DataFrame(100 + rises.cumsum(0))
    fits = {
        how: Theta(dynamic=dynamic, initialization=how, freq=1).fit(frame)
        for how in ("heuristic", "estimated")
    }
    params, y1 = fits["estimated"].params_, frame.iloc[0]
    reach = (frame - y1).abs().max()
    assert ((params["level"] - y1 / params["theta"]).abs() <= reach * (1 + 1e-9)).all()
    held = (params["level"] - y1 / params["theta"]).abs() > reach * (1 - 1e-9)
    assert (held & (params["alpha"] > 0.98)).sum() >= 2
    for name in held.index[held]:
        assert "On the boundary: level" in fits["estimated"].messages_[name][0]
        assert np.isnan(fits["estimated"].bse_.loc[name, "level"])
    # The level of the heuristic is one that may be estimated.
    gain = fits["estimated"].loglik_ - fits["heuristic"].loglik_
    assert (gain > -1e-8).all()
    assert (gain[params["alpha"] > 0.98] < 1.5).all()


def test_a_season_that_repeats_itself_is_forecast():
    season = np.array([2.0, 5, 1, 9, 8, 7, 6, 5, 4, 3, 4, 6])
    days = pd.date_range("2000-01", periods=36, freq="MS")
    model = Theta().fit(pd.Series(np.tile(season, 3), days))
    with pytest.warns(IntervalWarning, match="no width"):
        forecasts = model.predict(12, level=[90])
    np.testing.assert_allclose(forecasts.to_numpy(), np.tile(season[:, None], 3))
    assert "exactly" in model.messages_.iloc[0][0]


def test_small_noise_on_a_large_level():
    """Where rounding leaves squares of the values no digits, the optimum is that of the noise."""
    noise = pd.Series(np.random.default_rng(0).normal(size=60))
    for arguments in ({"initialization": "estimated"}, {"theta": 2.0}, {}):
        near, far = (Theta(freq=1, **arguments).fit(noise + shift) for shift in (0.0, 1e9))
        assert far.converged_.all()
        np.testing.assert_allclose(far.params_["sigma2"], near.params_["sigma2"], rtol=1e-5)
        np.testing.assert_allclose(far.predict(3) - 1e9, near.predict(3), atol=1e-4)


class TestBadSeries:
    """Series that cannot be fitted are named; the others go on as they do alone."""

    @pytest.mark.parametrize(
        ("values", "arguments", "reason"),
        [
            ([1.0, 3, 2, 4, 2], {}, "at least 3 values after the first 3 rows; the series has 2"),
            (np.arange(30.0) % 7 - 3, {"seasonal": "mul"}, "needs positive values"),
            (np.arange(20.0) % 7, {"seasonal": "add"}, "at least 24; the series has 20"),
        ],
    )
    def test_one_among_others(self, values, arguments, reason):
        days = pd.date_range("2000-01", periods=40, freq="MS")
        parts = [pd.DataFrame({"unique_id": "good", "ds": days, "y": monthly(40).to_numpy()})]
        bad = {"unique_id": "bad", "ds": days[: len(values)], "y": values}
        parts.append(pd.DataFrame(bad))
        with pytest.warns(UserWarning, match="1 of 2 units could not be fitted"):
            model = Theta(**arguments).fit(pd.concat(parts))
        assert reason in model.messages_["bad"][0]
        forecasts = model.predict(3).set_index("unique_id")["Theta"]
        assert forecasts["bad"].isna().all()
        assert model.predict(3, ids=["bad"])["Theta"].isna().all()
        assert model.residuals(df=pd.DataFrame(bad)).iloc[:, -1].isna().all()
        alone = Theta(**arguments).fit(parts[0]).predict(3)["Theta"]
        np.testing.assert_allclose(forecasts["good"], alone, rtol=1e-12)

    @pytest.mark.parametrize(
        ("arguments", "params", "error"),
        [
            ({"theta": 0.5}, None, "theta must be"),
            ({"seasonal": "yes"}, None, "seasonal must be"),
            ({"seasonal": "add", "season_length": 1}, None, "needs a season of at least two rows"),
            ({"initialization": "known"}, None, "initialization must be"),
            ({"dynamic": 1.0}, None, "dynamic must be"),
            ({}, [1.2, 2.0, 1.0], "alpha must be above 0"),
            ({}, [0.2, 0.0, 1.0], "theta must be at least 1"),
            ({}, [0.2, 2.0, -1.0], "sigma2 must be positive"),
        ],
    )
    def test_refusals(self, arguments, params, error):
        model = Theta(**arguments)
        with pytest.raises((TypeError, ValueError), match=error):
            model.fit(monthly()) if params is None else model.filter(monthly(), params)


@pytest.mark.parametrize("theta", [None, 2.0, 1.0])
def test_a_model_with_one_line_is_a_layer(theta):
    """The layer gives the fitted values: exponential smoothing with drift."""
    y = monthly(40, 5)
    model = Theta(theta, dynamic=False, seasonal="none").fit(y)
    with torch.no_grad():
        inputs = torch.tensor(y.to_numpy()[None, :, None])
        output, _ = model.to_rnn()(inputs, model.rnn_start())
    np.testing.assert_allclose(output[0, 2:-1, 0], model.fittedvalues()[3:], rtol=1e-10)
    np.testing.assert_allclose(output[0, -1, 0], model.predict(1).iloc[0], rtol=1e-10)


def test_a_dynamic_model_is_no_layer():
    with pytest.raises(ValueError, match="coefficients that change from row to row"):
        Theta().fit(monthly()).to_rnn()


def test_likelihood_ratio():
    """A given theta is nested in an estimated one; of the level no limit is known."""
    y = monthly(90, 3)
    large = Theta().fit(y)
    test = large.lr_test(Theta(theta=2.0).fit(y)).iloc[0]
    assert test["df"] == 1
    assert 0 <= test["p_value"] <= 1
    of_level = Theta(initialization="estimated").fit(y).lr_test(large).iloc[0]
    assert np.isnan(of_level["p_value"])
    with pytest.raises(ValueError, match="nested"):
        large.lr_test(Theta(dynamic=False, theta=2.0).fit(y))


def test_summary_names_season_and_bounds():
    """The page says how the season was decided on, and what lies on a bound."""
    y = monthly(90, 2)
    model = Theta().fit(y)
    page = str(model.summary())
    assert "multiplicative, 12 rows" in page
    assert "Test of the season" in page
    walk = pd.Series(np.random.default_rng(0).normal(size=60).cumsum())
    bounded = Theta(freq=1).fit(walk)
    assert bounded.params_["alpha"].iloc[0] == pytest.approx(0.99)
    assert "On the boundary: alpha" in bounded.messages_.iloc[0][0]
    assert np.isnan(bounded.bse_["alpha"].iloc[0])


@pytest.mark.parametrize("initialization", ["estimated", "heuristic"])
@given(seed=st.integers(0, 999), dynamic=st.booleans(), log_scale=st.floats(-6, 6))
@settings(max_examples=15, deadline=None)
def test_forecasts_scale_with_the_data(initialization, seed, dynamic, log_scale):
    """Forecasts and intervals of a multiple are multiples; the log-likelihood shifts."""
    y, scale = monthly(40, seed), 10**log_scale
    model = Theta(dynamic=dynamic, initialization=initialization)
    one, other = (copy.deepcopy(model).fit(series) for series in (y, y * scale))
    np.testing.assert_allclose(
        other.predict(6, level=[80]), one.predict(6, level=[80]) * scale, rtol=1e-6
    )
    shift = -one.nobs_.iloc[0] * np.log(scale)
    np.testing.assert_allclose(other.loglik_.iloc[0], one.loglik_.iloc[0] + shift, atol=1e-6)


@pytest.mark.slow
@given(seed=st.integers(0, 999), dynamic=st.booleans(), shift=st.floats(-40, 400))
@settings(max_examples=15, deadline=None)
def test_forecasts_shift_with_the_data(seed, dynamic, shift):
    """Without a season that multiplies."""
    y = monthly(40, seed)
    for arguments in ({"initialization": "estimated"}, {"theta": 3.0}, {}):
        model = Theta(dynamic=dynamic, seasonal="add", **arguments)
        one, other = (copy.deepcopy(model).fit(series) for series in (y, y + shift))
        np.testing.assert_allclose(
            other.predict(6, level=[80]), one.predict(6, level=[80]) + shift, atol=1e-4
        )
