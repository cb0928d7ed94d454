"""Intermittent demand against a plain loop, statsforecast, differences, and simulation."""

from __future__ import annotations

import math
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.stats import gamma

from tsrnn.contract import IntervalWarning
from tsrnn.linear import TSB, Croston, demand_classes

METHODS = ("croston", "sba", "sbj", "tsb")
PARTS = [0, 2, 0, 0, 3, 0, 1, 0, 0, 0, 4, 0.0, 0, 5, 1, 0, 0, 2, 0, 0]


def model_of(method, **arguments):
    return TSB(**arguments) if method == "tsb" else Croston(method, **arguments)


def frame(series):
    """Series one below the other in a long frame."""
    parts = [
        pd.DataFrame({"unique_id": f"s{i}", "ds": np.arange(len(y)), "y": y})
        for i, y in enumerate(series)
    ]
    return pd.concat(parts, ignore_index=True)


def simulated(method, rows, rng, alpha=0.1, beta=0.1, size=5.0, pace=None, shape=2.0):
    """Draw from the model, by a loop."""
    tsb = method == "tsb"  # whose probability comes to zero or one in the end
    beta = beta / 4 if tsb else beta
    pace = (0.3 if tsb else 3.0) if pace is None else pace
    wait, values = 0, np.zeros(rows)
    for t in range(rows):
        occurs = rng.random() < chance_of(method, pace, beta)
        wait += 1
        if occurs:
            values[t] = size * rng.gamma(shape) / shape
            size += alpha * (values[t] - size)
        if tsb:
            pace += beta * (occurs - pace)
        elif occurs:
            pace += beta * (wait - pace)
            wait = 0
    return values


def chance_of(method, pace, beta):
    factor = {"croston": 1, "sba": 1 - beta / 2, "sbj": 1 - beta / (2 - beta), "tsb": 1}[method]
    return pace if method == "tsb" else factor / pace


def by_loop(method, y, params):
    """Forecasts of every row and of the next one, and the log-likelihood, by the equations."""
    alpha, beta, size, pace, k = params
    wait, loglik, forecasts = 0, 0.0, []
    for value in y:
        chance = chance_of(method, pace, beta)
        forecasts.append(chance * size)
        if math.isnan(value):
            continue
        inside = min(max(chance, 1e-6), 1 - 1e-6)
        wait += 1
        if value > 0:
            loglik += math.log(inside) + gamma.logpdf(value, k, scale=size / k)
            size += alpha * (value - size)
        else:
            loglik += math.log(1 - inside)
        if method == "tsb":
            pace += beta * ((value > 0) - pace)
        elif value > 0:
            pace, wait = pace + beta * (wait - pace), 0
    return np.array(forecasts), chance_of(method, pace, beta) * size, loglik


def point(forecast):
    """Numbers of a forecast without intervals."""
    return np.asarray(forecast, float).ravel()


def y_of(values, index=None):
    return pd.Series(values, index, name="y")


def parameters(method, beta=0.15):
    pace = {"probability": 0.4} if method == "tsb" else {"interval": 2.5}
    return {"alpha": 0.2, "beta": beta, "size": 2.0, **pace, "shape": 3.0}


rows = st.lists(
    st.one_of(st.just(0.0), st.floats(0.1, 50.0), st.just(float("nan"))), min_size=8, max_size=40
).filter(lambda y: sum(v > 0 for v in y) >= 2)


@pytest.mark.few("sbj", "tsb")
@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=30, deadline=None)
@given(y=rows, alpha=st.floats(0, 1), beta=st.floats(0, 0.99))
def test_given_parameters_follow_the_equations(method, y, alpha, beta):
    """`filter` has the likelihood, fitted values and forecast of a plain loop, gaps left out."""
    params = parameters(method, beta) | {"alpha": alpha}
    fitted, ahead, loglik = by_loop(method, y, params.values())
    model = model_of(method, missing="keep").filter(y_of(y), params)
    np.testing.assert_allclose(model.loglik_.iloc[0], loglik, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(model.fittedvalues().to_numpy().ravel(), fitted, rtol=1e-12)
    np.testing.assert_allclose(point(model.predict(h=3)), [ahead] * 3, rtol=1e-12)


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (Croston(alpha=0.1, beta=0.1, initial="first"), 0.9984275969369067),
        (Croston("sba", alpha=0.1, beta=0.1, initial="first"), 0.9485062170900613),
        (Croston("croston", 0.10000000000032039, 0.11038287486471468, "first"), 0.9895347046367462),
        (TSB(alpha=0.2, beta=0.15, initial="first"), 0.7370695242722234),
    ],
)
def test_forecasts_are_those_of_statsforecast(model, expected):
    """Numbers of CrostonClassic, CrostonSBA, CrostonOptimized and TSB of statsforecast 2.1.1."""
    forecast = point(model.fit(y_of(PARTS)).predict(h=1))
    np.testing.assert_allclose(forecast, expected, rtol=1e-12)


@pytest.mark.few("mean-croston", "first-sbj", "estimated-tsb")
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("initial", ["mean", "first", "estimated"])
def test_the_optimum_is_that_of_many_starts(method, initial):
    """No start of a general optimiser over the likelihood of the loop comes higher."""
    rng = np.random.default_rng(len(method))
    for _ in range(2):
        y = simulated(method, 60, rng, alpha=0.3, beta=0.2)
        model = model_of(method, initial=initial).fit(y_of(y))
        params, best = model.params_.iloc[0].to_numpy(), model.loglik_.iloc[0]
        np.testing.assert_allclose(by_loop(method, y, params)[2], best, rtol=1e-9)
        assert model.converged_.all()
        count, seen = (y > 0).sum(), len(y)
        if initial == "mean":
            share = count / seen
            expected = [y[y > 0].mean(), share if method == "tsb" else 1 / share]
            np.testing.assert_allclose(params[2:4], expected)
        elif initial == "first":
            at = int((y > 0).argmax())
            np.testing.assert_allclose(params[2:4], [y[at], at == 0 if method == "tsb" else at + 1])
        pace = (1 / seen, 1.0) if method == "tsb" else (1.0, float(seen))
        bounds = [(0, 1), (0, 1), (y[y > 0].min(), y.max()), pace, (0.05, 1e6)]
        if initial != "estimated":
            bounds[2:4] = [(value, value) for value in params[2:4]]
        for a, b in [(0.05, 0.3), (0.3, 0.05), (0.8, 0.8)]:
            start = np.array([a, b, *params[2:]])
            end = minimize(lambda p, y=y: -by_loop(method, y, p)[2], start, bounds=bounds)
            assert -end.fun <= best + 1e-5


@pytest.mark.few("sba")
@pytest.mark.parametrize("method", METHODS)
def test_derivatives_are_those_of_the_likelihood(method):
    """Gradient, Hessian and outer products of scores by differences of the loop."""
    y = simulated(method, 50, np.random.default_rng(1))
    params = np.array([*parameters(method).values()])
    estimates = model_of(method).filter(y_of(y), params).estimates_

    def terms(at):
        return np.diff([by_loop(method, y[:t], at)[2] for t in range(len(y) + 1)])

    def scores(at):
        steps = np.eye(5) * 1e-5
        return np.stack([(terms(at + s) - terms(at - s)) / 2e-5 for s in steps], 1)

    slopes = scores(params)
    np.testing.assert_allclose(estimates.gradient[0], slopes.sum(0), rtol=1e-6, atol=1e-5)
    np.testing.assert_allclose(estimates.opg[0], slopes.T @ slopes, rtol=1e-5, atol=1e-5)
    bent = [
        (scores(params + step).sum(0) - scores(params - step).sum(0)) / 2e-3
        for step in np.eye(5) * 1e-3
    ]
    np.testing.assert_allclose(estimates.hessian[0], bent, rtol=2e-3, atol=2e-2)


@pytest.mark.parametrize("method", METHODS)
def test_information_is_the_mean_of_the_curvature(method):
    """Of many rows the expected information and the outer products of scores are close."""
    y = simulated(method, 4000, np.random.default_rng(2), alpha=0.05, beta=0.05)
    pace = 0.3 if method == "tsb" else 3.0
    model = model_of(method, cov_type="information").filter(
        y_of(y), [0.05, 0.05 / 4 if method == "tsb" else 0.05, 5.0, pace, 2.0]
    )
    at = np.ix_([0, 1, 4], [0, 1, 4])
    information, opg = model.estimates_.information[0][at], model.estimates_.opg[0][at]
    np.testing.assert_allclose(np.diag(opg), np.diag(information), rtol=0.35)


@pytest.mark.parametrize("method", METHODS)
def test_rows_taken_in_one_by_one_are_a_fit_of_all(method):
    """`update` row by row has the forecasts of a filter over everything, to the last bit."""
    rng = np.random.default_rng(3)
    series = [simulated(method, 40, rng) for _ in range(3)]
    whole = frame(series)
    early = whole[whole.ds < 25].reset_index(drop=True)
    model = model_of(method).fit(early)
    filtered = model_of(method).filter(whole, model.params_).predict(h=4, level=80)
    for t in range(25, 40):
        model.update(whole[whole.ds == t].reset_index(drop=True))
    pd.testing.assert_frame_equal(model.predict(h=4, level=80), filtered, check_exact=True)


def test_some_series_cannot_be_fitted_and_the_others_are():
    """Every reason names what was required and what came; forecasts of the others are there."""
    bad = [*PARTS[:19], -1.0]
    good = [simulated("tsb", 20 + i, np.random.default_rng(i), size=9.0) for i in range(60)]
    data = frame([bad, *good])
    for model in (Croston(), TSB()):
        with pytest.warns(UserWarning, match="1 of 61 units could not be fitted"):
            model.fit(data)
        reason = model.messages_.iloc[0][0]
        assert "demand must not be negative; the lowest value is -1" in reason
        forecasts = model.predict(h=1)[model.column_name]
        assert forecasts.iloc[:1].isna().all()
        assert np.isfinite(forecasts.iloc[1:]).all()
        alone = type(model)().fit(frame(good[:1])).predict(h=1)[model.column_name]
        np.testing.assert_allclose(forecasts.iloc[1], alone.iloc[0], rtol=1e-9)
    with pytest.raises(ValueError, match="no series could be fitted"):
        TSB().fit(y_of(bad))
    with pytest.raises(ValueError, match="'y' cannot be filtered: demand must not be negative"):
        TSB().filter(y_of(bad), parameters("tsb"))


@pytest.mark.parametrize("initial", ["mean", "first", "estimated"])
@pytest.mark.parametrize("cls", [Croston, TSB])
def test_a_series_with_no_demand_or_one(cls, initial):
    """Nothing is forecast of a series without demand, until there is one; of one, its share."""
    series = y_of([0.0] * 20)
    model = cls(initial=initial, random_state=0).fit(series)
    assert "no demand" in model.messages_.iloc[0][0].lower()
    with pytest.warns(IntervalWarning, match="no width"):
        forecast = model.predict(h=3, level=[80])
    assert (forecast == 0).all(axis=None)
    assert (model.sample_paths(5, h=2)["y"] == 0).all()
    assert np.isfinite(model.loglik_.item())
    assert (model.fittedvalues() == 0).all()
    assert str(model.summary())
    later = y_of([6.0, 0.0, 5.0], index=range(20, 23))
    assert point(model.update(later).predict(h=1)).item() > 0
    one = y_of([0, 0, 3.0] + [0.0] * 17)
    forecast = point(cls(initial=initial).fit(one).predict(h=2))
    assert ((forecast >= 0) & (forecast <= 3.0)).all(axis=None)
    if cls is Croston and initial == "mean":
        np.testing.assert_allclose(forecast, 3 / 20)


def test_equal_demands_and_demand_in_every_row():
    """Sizes that do not vary and rows without a zero are forecast, with a note."""
    ones = y_of([0, 1, 0, 0, 1, 0, 1, 0.0] * 5)
    model = TSB().fit(ones)
    assert "All demands are equal" in " ".join(model.messages_.iloc[0])
    np.testing.assert_allclose(model.predict(h=1, level=95)["y-hi-95"], 1, atol=0.01)
    constant = y_of([7.0] * 20)
    for model in (Croston(), TSB(), Croston("sbj")):
        np.testing.assert_allclose(point(model.fit(constant).predict(h=2)), 7, rtol=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_intervals_are_quantiles_of_paths(method):
    """Analytic intervals of one and of several steps agree with simulated paths."""
    y = simulated(method, 120, np.random.default_rng(7), alpha=0.2)
    model = model_of(method, alpha=0.2, beta=0.1, random_state=0).fit(y_of(y))
    forecast = model.predict(h=8, level=[60, 95])
    values = model.sample_paths(40_000, h=8)["y"].to_numpy().reshape(40_000, 8)
    for level in (60, 95):
        for end, share in (("lo", 0.5 - level / 200), ("hi", 0.5 + level / 200)):
            below = (values <= forecast[f"y-{end}-{level}"].to_numpy()).mean(0)
            zero = (values == 0).mean(0)
            expected = np.where(forecast[f"y-{end}-{level}"] > 0, share, zero)
            assert (np.abs(below - expected) < 0.008).all(), (level, end, below, expected)
    np.testing.assert_allclose(values.mean(0), forecast["y"], rtol=0.05)


@pytest.mark.few("sbj", "tsb")
@pytest.mark.parametrize("method", METHODS)
def test_intervals_cover(method):
    """Of many series of the model 95 percent intervals cover at least as often, at every step."""
    rng, n, h = np.random.default_rng(11), 600, 6
    series = [simulated(method, 100 + h, rng, alpha=0.05, beta=0.05) for _ in range(n)]
    early, late = frame([y[:-h] for y in series]), np.stack([y[-h:] for y in series])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IntervalWarning)
        model = model_of(method).fit(early)
        forecast = model.predict(h=h, level=[80, 95])
    name = model.column_name
    for level, least in ((80, 0.80), (95, 0.95)):
        low, high = (
            forecast[f"{name}-{end}-{level}"].to_numpy().reshape(n, h) for end in ("lo", "hi")
        )
        assert (low >= 0).all()
        covered = ((late >= low) & (late <= high)).mean(0)
        above = (late > high).mean()
        assert (covered > least - 0.02).all()
        assert abs(above - (1 - level / 100) / 2) < 0.02


def test_an_interval_of_zero_alone_is_no_lack_of_width():
    """Where no demand is more probable than the level, [0, 0] comes without a warning."""
    y = y_of(([0.0] * 19 + [3.0] + [0.0] * 19 + [5.0]) * 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error", IntervalWarning)
        forecast = TSB().fit(y).predict(h=2, level=60)
    assert (forecast["y"] > 0).all()
    assert (forecast[["y-lo-60", "y-hi-60"]] == 0).all(axis=None)
    paths = TSB(random_state=0).fit(y).sample_paths(100, h=3)
    assert (paths["y"] == 0).mean() > 0.8


def test_forecasts_after_a_long_silence():
    """TSB falls while there is no demand, Croston's method does not."""
    y = y_of(PARTS * 3 + [0.0] * 40)
    tsb, croston = (point(m(alpha=0.1, beta=0.1).fit(y).predict(h=1))[0] for m in (TSB, Croston))
    before = Croston(alpha=0.1, beta=0.1, initial="estimated").filter(
        y[:-40], Croston(alpha=0.1, beta=0.1).fit(y).params_
    )
    np.testing.assert_allclose(croston, point(before.predict(h=1))[0])
    assert tsb < 0.1 * croston
    assert "covers more than its level" in TSB().fit(y).fitted_.guarantee


def test_other_rows_begin_with_states_of_their_own():
    """Rows that begin elsewhere start by the rule; without a demand, from the fitted start."""
    y = y_of(PARTS * 2)
    model = Croston(alpha=0.1, beta=0.1, initial="first").fit(y)
    direct = Croston(alpha=0.1, beta=0.1, initial="first").fit(y[13:].reset_index(drop=True))
    np.testing.assert_allclose(point(model.predict(y[13:], h=1)), point(direct.predict(h=1)))
    silent = y_of([0.0, 0.0], index=[50, 51])
    start = model.params_.iloc[0]
    np.testing.assert_allclose(point(model.predict(silent, h=1)), start["size"] / start["interval"])


@pytest.mark.parametrize(
    ("model", "params", "message"),
    [
        (Croston("crost"), None, "variant must be one of"),
        (Croston(alpha=1.5), None, "alpha must be a number of at most 1; got 1.5"),
        (TSB(beta=-0.1), None, "beta must be a number of at least 0; got -0.1"),
        (TSB(initial="naive"), None, "initial must be one of"),
        (TSB(), parameters("tsb") | {"alpha": 1.2}, "alpha must be"),
        (TSB(), parameters("tsb") | {"probability": -0.1}, "probability must be"),
        (Croston("sba"), parameters("sba") | {"interval": 0.5}, "interval must be"),
        (Croston("sba"), parameters("sba") | {"size": 0.0}, "size must be"),
        (TSB(), parameters("tsb") | {"shape": -1.0}, "shape must be"),
    ],
)
def test_refusals(model, params, message):
    """Arguments say what is legal; parameters that no demand can have are refused by name."""
    with pytest.raises(ValueError, match=message):
        model.fit(y_of(PARTS)) if params is None else model.filter(y_of(PARTS), params)


def test_a_fit_of_unequal_series_computes_no_derivatives(monkeypatch):
    """Matrices of standard errors are computed when they are asked for."""
    calls = []
    from tsrnn.linear.intermittent import _fit

    function = _fit._derivatives
    unequal = frame([PARTS * 2, PARTS, PARTS * 3])
    pickle.loads(pickle.dumps(TSB().fit(unequal)))
    monkeypatch.setattr(_fit, "_derivatives", lambda *a: calls.append(1) or function(*a))
    model = TSB().fit(unequal)
    model.predict(h=2, level=80)
    assert not calls
    alone = TSB().fit(y_of(PARTS)).bse_
    np.testing.assert_allclose(model.bse_.loc["s1"], alone.iloc[0])
    assert len(calls) == 2


def test_residuals_are_standardised_by_the_model():
    """Those of the model have variance one; a probability of zero leaves them finite."""
    y = y_of(simulated("tsb", 3000, np.random.default_rng(8), beta=0.01))
    scaled = TSB().fit(y).residuals(standardized=True)
    np.testing.assert_allclose(np.std(np.asarray(scaled)), 1, atol=0.1)
    first = TSB(initial="first").fit(y_of(PARTS * 2))
    assert np.isfinite(np.asarray(first.residuals(standardized=True))).all()
    assert len(first.diagnostics()) == 1


def test_standard_errors_are_those_of_what_was_estimated():
    """Given parameters and states by rule have none; the criteria count what is of the data."""
    y = y_of(simulated("tsb", 200, np.random.default_rng(5), beta=0.2))
    free = TSB(initial="estimated").fit(y)
    assert free.bse_.notna().sum().sum() >= 3
    given = TSB(alpha=0.1, initial="mean").fit(y)
    assert given.bse_[["alpha", "size", "probability"]].isna().all(axis=None)
    np.testing.assert_allclose(given.aic_, 2 * 4 - 2 * given.loglik_)
    np.testing.assert_allclose(free.aic_, 2 * 5 - 2 * free.loglik_)
    assert "Bernoulli and gamma" in str(free.summary())


def test_demand_is_classified():
    """Classes and numbers by hand, borders included; missing rows are not counted."""
    wide = pd.DataFrame({
        "smooth": [5, 4, 6, 5, 5.0, 5], "erratic": [1, 9, 1, 1, 12, 1.0],
        "intermittent": [0, 4, 0, 4, 0, 4.0], "lumpy": [0, 1, 0, 0, 9, 0.0],
        "none": np.zeros(6), "gaps": [np.nan, 4, np.nan, 4, 4, 4],
    })  # fmt: skip
    table = demand_classes(wide, missing="keep")
    assert table["demand_class"].tolist() == [*wide.columns[:5], "smooth"]
    np.testing.assert_allclose(table.loc["lumpy", ["adi", "cv2"]].astype(float), [3, 16 / 25])
    assert table.loc["gaps", "adi"] == 1
    assert table.loc["none", "adi"] == np.inf
    border = y_of([4.0] * 25 + [0.0] * 8)
    assert demand_classes(border)["demand_class"].tolist() == ["intermittent"]  # ADI is 1.32
    long = frame([PARTS, [1.0, 1.0]])
    assert demand_classes(long).index.tolist() == ["s0", "s1"]
    with pytest.raises(ValueError, match="that of 's1' has -1"):
        demand_classes(frame([PARTS, [1.0, -1.0]]))


@settings(max_examples=15, deadline=None)
@given(y=rows, scale=st.floats(1e-6, 1e6))
def test_forecasts_have_the_units_of_the_data(y, scale):
    """Series times a number give parameters times that number, or the same."""
    series = pd.Series(y, name="y")
    for method in ("sba", "tsb"):
        one, other = (
            model_of(method, missing="keep").fit(s) for s in (series, pd.Series(series * scale))
        )
        units = [1, 1, scale, 1, 1]
        np.testing.assert_allclose(
            other.params_.iloc[0, :4], (one.params_.iloc[0] * units).iloc[:4], rtol=1e-5, atol=1e-6
        )
        np.testing.assert_allclose(other.predict(h=1), one.predict(h=1) * scale, rtol=1e-4)
