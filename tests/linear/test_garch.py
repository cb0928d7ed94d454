"""GARCH behind the forecaster contract: forecasts against arch, updates, files, refusals."""

import math

import arch
import numpy as np
import pandas as pd
import pytest
from scipy import integrate, stats

from tsrnn.contract import read_file
from tsrnn.linear.garch import GARCH
from tsrnn.linear.garch._density import DENSITIES, Student
from tsrnn.linear.garch._filter import Past, VarianceState, initial_state
from tsrnn.linear.garch._forecast import simulate_garch
from tsrnn.linear.garch._inference import half_life, second_moment_root, unconditional_variance
from tsrnn.linear.garch._specification import Model, UnivariateMean, persistence
from tsrnn.linear.garch._volatility import VOLATILITIES

from .references import arch_model

DAYS = pd.bdate_range("2015-01-01", periods=900)


@pytest.fixture(scope="module")
def returns():
    """Return a Series of daily returns with leverage and an autocorrelation."""
    model = GARCH(mean="ar", vol="gjr", random_state=3)
    drawn = model.simulate(900, params=[0.05, 0.2, 0.1, 0.05, 0.1, 0.8])
    return drawn["y"].set_axis(DAYS).rename("r")


@pytest.fixture(scope="module")
def long(returns):
    """Return a long frame of three series of unequal lengths and scales."""
    parts = [
        pd.DataFrame({"unique_id": name, "ds": DAYS[:n], "y": scale * returns.to_numpy()[-n:]})
        for name, scale, n in (("a", 1.0, 900), ("b", 0.01, 500), ("c", 30.0, 700))
    ]
    return pd.concat(parts, ignore_index=True)


def oracle_of(y, model):
    """Arch's model at our estimates."""
    return arch_model(y, model.fitted_.family.model).fix(model.params_.iloc[0].to_numpy())


@pytest.mark.few("garch-order0", "garch-order1-ar", "gjr-order3")
@pytest.mark.parametrize("mean", ["constant", "zero", "ar"])
@pytest.mark.parametrize(
    ("vol", "order"), [("garch", (1, 1)), ("garch", (2, 2)), ("gjr", (1, 1)), ("gjr", (1, 0))]
)
def test_forecasts_equal_those_of_arch(returns, vol, order, mean):
    model = GARCH(order, mean, vol=vol).fit(returns)
    oracle = oracle_of(returns, model).forecast(horizon=7)
    np.testing.assert_allclose(model.predict(7), oracle.mean.iloc[-1], rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(model.predict_variance(7), oracle.residual_variance.iloc[-1])
    # arch's `variance` is that of the forecast error, which analytic intervals are made of.
    analytic = GARCH(order, mean, vol=vol, intervals="analytic").fit(returns)
    table = analytic.predict(7, level=90)
    half = (table["r-hi-90"] - table["r-lo-90"]) / 2 / stats.norm.ppf(0.95)
    np.testing.assert_allclose(half**2, oracle.variance.iloc[-1])


def test_one_step_of_an_egarch_equals_that_of_arch(returns):
    model = GARCH(vol="egarch", distribution="t").fit(returns)
    oracle = oracle_of(returns, model)
    expected = oracle.forecast(horizon=1).variance.iloc[-1]
    np.testing.assert_allclose(model.predict_variance(1), expected)
    np.testing.assert_allclose(model.loglik_, oracle.loglikelihood, atol=1e-9)
    np.testing.assert_allclose(model.conditional_volatility(), oracle.conditional_volatility)
    np.testing.assert_allclose(model.residuals(standardized=True), oracle.std_resid)


def test_simulated_variances_converge_to_the_analytic_ones(returns):
    model = GARCH(vol="gjr", n_simulations=40_000, random_state=0).fit(returns)
    exact = model.predict_variance(5)
    for method in ("simulation", "bootstrap"):
        made = model.predict_variance(5, method=method)
        np.testing.assert_allclose(made, exact, rtol=0.03)
        pd.testing.assert_series_equal(made, model.predict_variance(5, method=method))


def test_simulated_variances_of_an_egarch_converge_to_those_of_arch(returns):
    model = GARCH(vol="egarch", n_simulations=100_000, random_state=0).fit(returns)
    draw = np.random.default_rng(0).standard_normal
    expected = oracle_of(returns, model).forecast(
        horizon=4, method="simulation", simulations=100_000, rng=draw
    )
    np.testing.assert_allclose(model.predict_variance(4), expected.variance.iloc[-1], rtol=0.01)


@pytest.mark.parametrize("distribution", ["normal", "t"])
def test_intervals_cover_what_the_model_draws(distribution):
    params = [0.0, 0.1, 0.15, 0.8, *[6.0] * (distribution == "t")]
    model = GARCH(distribution=distribution, random_state=1, n_simulations=4000)
    y = model.simulate(300, params)
    model.filter(y, params)
    table = model.predict(8, level=[50, 90])
    # Many futures of the same past: its last state, then fresh draws.
    rng = np.random.default_rng(9)
    paths = model.fitted_.simulate(model.state_, 8, 20_000, None, rng)[:, 0, :, 0].T
    for level in (50, 90):
        low, high = (table[f"y-{end}-{level}"].to_numpy()[:, None] for end in ("lo", "hi"))
        covered = ((paths > low) & (paths < high)).mean(1)
        assert abs(covered[0] - level / 100) < 0.01
        assert np.abs(covered - level / 100).max() < 0.025


def test_updates_equal_a_filter_over_all_rows(returns, long):
    for kwargs in ({"mean": "ar", "mean_order": [1, 3], "vol": "gjr"}, {"mean": "arma"}):
        model = GARCH(**kwargs).fit(returns[:700])
        whole = GARCH(initial_variance=float(model.fitted_.constants["presample"][0]), **kwargs)
        whole.filter(returns, model.params_)
        for part in (returns[700:701], returns[701:900]):
            model.update(part)
        pd.testing.assert_series_equal(model.predict(4), whole.predict(4), rtol=1e-10)
        pd.testing.assert_series_equal(
            model.predict_variance(4), whole.predict_variance(4), rtol=1e-10
        )
    model = GARCH().fit(long)
    rows = pd.DataFrame(
        {"unique_id": ["b", "c", "c"], "ds": [DAYS[500], DAYS[700], DAYS[701]], "y": [0.0, 1.0, 5]}
    )
    before = model.predict_variance(2)
    after = model.update(rows).predict_variance(2)
    a = before["unique_id"] == "a"
    pd.testing.assert_frame_equal(after[a], before[a])
    h = before.query("unique_id == 'b'")["variance"].iloc[0]
    omega, alpha, beta = model.params_.loc["b", ["omega", "alpha[1]", "beta[1]"]]
    e = 0.0 - model.params_.loc["b", "mu"]
    expected = omega + alpha * e**2 + beta * h
    np.testing.assert_allclose(after.query("unique_id == 'b'")["variance"].iloc[0], expected)


def test_a_panel_is_its_series_one_by_one(long):
    model = GARCH(distribution="t", random_state=0, n_simulations=200).fit(long)
    for name, rows in long.groupby("unique_id"):
        alone = GARCH(distribution="t", random_state=0, n_simulations=200).fit(rows)
        np.testing.assert_allclose(model.params_.loc[name], alone.params_.iloc[0], rtol=1e-5)
        pd.testing.assert_frame_equal(
            model.predict(3, level=80).query("unique_id == @name").reset_index(drop=True),
            alone.predict(3, level=80),
            rtol=1e-5, atol=1e-6,
        )  # fmt: skip
        own = model.conditional_volatility().query("unique_id == @name")
        np.testing.assert_allclose(
            own["volatility"], alone.conditional_volatility()["volatility"], rtol=1e-5
        )


def test_other_data_are_forecast_with_the_same_parameters(returns):
    model = GARCH(mean="ar").fit(returns[:600])
    rows = returns[500:]
    made = model.predict(rows, h=2)
    # The presample variance of the fit is forgotten after four hundred rows.
    other = GARCH(mean="ar").filter(rows, model.params_)
    pd.testing.assert_series_equal(made, other.predict(2), rtol=1e-8)
    with pytest.raises(ValueError, match="at least 3 rows"):
        GARCH(mean="ar", mean_order=3).fit(returns).predict(returns[:2], h=2)
    with pytest.raises(ValueError, match="at least 4 rows"):
        GARCH(mean="ar", mean_order=3).filter(returns[:3], [0.0, 0, 0, 0, 1, 0.1, 0.8])


def test_filter_gives_the_likelihood_at_given_parameters(returns):
    fitted = GARCH().fit(returns)
    given = GARCH().filter(returns, fitted.params_)
    np.testing.assert_allclose(given.loglik_, fitted.loglik_, rtol=1e-13)
    assert given.bse_.isna().all(axis=None)
    with pytest.raises(ValueError, match="positive, finite variances"):
        GARCH().filter(returns, {"mu": 0, "omega": -5.0, "alpha[1]": 0.1, "beta[1]": 0.8})


def test_news_impact_and_derived_quantities(returns):
    model = GARCH(vol="gjr").fit(returns)
    omega, alpha, gamma, beta = model.params_.iloc[0, 1:]
    rest = omega / (1 - alpha - gamma / 2 - beta)
    np.testing.assert_allclose(model.unconditional_variance_, rest)
    np.testing.assert_allclose(model.persistence_, alpha + gamma / 2 + beta)
    np.testing.assert_allclose(model.half_life_, math.log(0.5) / math.log(alpha + gamma / 2 + beta))
    curve = model.news_impact([-2.0, 1.0])["r"]
    expected = omega + beta * rest + np.array([(alpha + gamma) * 4 * rest, alpha * rest])
    np.testing.assert_allclose(curve, expected)
    text = str(model.summary())
    for word in ("GJR-GARCH(1, 1)", "Persistence", "Half-life", "alpha[1]", "backcast"):
        assert word in text


def test_a_saved_model_goes_on_as_before(returns, tmp_path):
    model = GARCH(mean="arma", vol="egarch", distribution="t", random_state=0).fit(returns[:400])
    model.save(tmp_path / "model")
    header, arrays = read_file(tmp_path / "model")
    again = GARCH._restore(header, arrays)
    pd.testing.assert_frame_equal(model.predict(3, level=90), again.predict(3, level=90))
    pd.testing.assert_frame_equal(model.params_, again.params_)
    pd.testing.assert_series_equal(
        model.update(returns[400:410]).predict_variance(2),
        again.update(returns[400:410]).predict_variance(2),
    )


def test_one_bad_series_does_not_cost_the_others(long):
    bad = pd.DataFrame({"unique_id": "z", "ds": DAYS[:50], "y": 3.0})
    with pytest.warns(UserWarning, match="'z'.*constant"):
        model = GARCH(random_state=0, distribution="t").fit(pd.concat([long, bad]))
    assert model.params_.loc["z"].isna().all()
    assert not model.converged_["z"]
    good = model.predict(3, level=90).set_index("unique_id")
    assert good.drop("z").notna().all(axis=None)
    assert good.loc["z", ["GARCH"]].isna().all(axis=None)
    assert model.predict_variance(2, method="bootstrap")["variance"].notna().sum() == 6
    assert model.simulate(5).notna().all().sum() == 3
    model.update(pd.DataFrame({"unique_id": ["z", "a"], "ds": [DAYS[50], DAYS[-1] + DAYS.freq],
                               "y": [1.0, 0.5]}))  # fmt: skip
    with pytest.raises(ValueError, match="no series could be fitted.*constant"):
        GARCH().fit(bad)


def test_wide_frames_give_a_unit_a_column(returns):
    wide = pd.DataFrame({"a": returns, "b": returns[::-1].to_numpy() * 5})
    model = GARCH(random_state=0).fit(wide)
    assert list(model.params_.index) == ["a", "b"]
    assert list(model.predict(2).columns) == ["a", "b"]
    assert list(model.simulate(4).columns) == ["a", "b"]
    alone = GARCH().fit(wide["b"])
    np.testing.assert_allclose(model.params_.loc["b"], alone.params_.iloc[0], rtol=1e-6)
    assert len(model.diagnostics()) == 2


@pytest.mark.parametrize(
    ("kwargs", "match"),
    [
        ({"order": (0, 1)}, "p >= 1"),
        ({"order": 1}, "order must be two integers"),
        ({"mean": "var"}, "mean must be one of"),
        ({"mean_order": 2}, "has no order"),
        ({"mean": "arma", "mean_order": (1, 0)}, "q >= 1"),
        ({"mean": "ar", "mean_order": [3, 1]}, "rising lags"),
        ({"vol": "figarch"}, "vol must be one of"),
        ({"distribution": "ged"}, "distribution must be one of"),
        ({"initial_variance": "zero"}, "initial_variance must be one of"),
        ({"initial_variance": -1.0}, "initial_variance must be a number greater than 0"),
        ({"cov_type": "hac"}, "cov_type must be one of"),
        ({"missing": "keep", "mean": "ar"}, "missing='keep' needs mean="),
    ],
)
def test_arguments_are_refused_with_what_is_legal(returns, kwargs, match):
    with pytest.raises(ValueError, match=match):
        GARCH(**kwargs).fit(returns)


def test_calls_are_refused_with_what_to_do(returns):
    model = GARCH(vol="egarch", intervals="analytic", random_state=0).fit(returns)
    with pytest.raises(ValueError, match="no analytic forecasts"):
        model.predict(3, level=90)
    assert model.predict(1, level=90).notna().all(axis=None)
    with pytest.raises(ValueError, match="no analytic forecasts"):
        model.predict_variance(3, method="analytic")
    with pytest.raises(ValueError, match="method must be one of"):
        model.predict_variance(3, method="exact")
    with pytest.raises(ValueError, match="initial_variance must be a number"):
        GARCH().simulate(10, [0.0, 0.1, 0.2, 0.8])
    assert len(GARCH(initial_variance=1.0).simulate(10, [0.0, 0.1, 0.2, 0.8])) == 10
    for params in ([0, -0.1, 0.1, 0.8, 8], [0, 0.1, -0.3, 0.8, 8], [0, 0.1, 0.1, 0.8, 2.0]):
        with pytest.raises(ValueError, match="positive, finite variances; those of unit 0"):
            GARCH(distribution="t").simulate(50, params, random_state=0)
    with pytest.raises(ValueError, match="takes no exogenous"):
        GARCH(target="r").fit(pd.DataFrame({"r": returns, "x": returns}))


def test_moments_against_closed_forms():
    garch = Model(UnivariateMean(False), VOLATILITIES["garch"], DENSITIES["normal"], 1, 1)
    params = np.array([[0.1, 0.2, 0.7], [0.1, 0.6, 0.3]])
    alpha, beta = params[:, 1], params[:, 2]
    np.testing.assert_allclose(persistence(garch, params), alpha + beta)
    np.testing.assert_allclose(
        second_moment_root(garch, params), (alpha + beta) ** 2 + 2 * alpha**2
    )
    gjr = Model(UnivariateMean(False), VOLATILITIES["gjr"], DENSITIES["t"], 1, 1)
    params = np.array([[0.1, 0.05, 0.1, 0.8, 6.0], [0.1, 0.05, 0.1, 0.8, 3.9]])
    kurtosis = Student().kurtosis(params[:1, 4:])[0]
    expected = 0.8**2 + 0.8 * (0.1 + 0.1) + kurtosis * (0.05**2 + 0.05 * 0.1 + 0.1**2 / 2)
    np.testing.assert_allclose(second_moment_root(gjr, params), [expected, np.inf])
    second = Model(UnivariateMean(False), VOLATILITIES["garch"], DENSITIES["normal"], 2, 1)
    params = np.array([[0.1, 0.1, 0.0, 0.8], [0.1, 0.0, 0.15, 0.8]])
    assert half_life(second, params)[0] == pytest.approx(math.log(0.5) / math.log(0.9))
    h = np.array([0.0, 1.0])  # impulse responses of expected variances of the second
    for _ in range(400):
        h = np.append(h, 0.8 * h[-1] + 0.15 * h[-2])
    ratio = h[-1] / h[-2]
    assert half_life(second, params)[1] == pytest.approx(math.log(0.5) / math.log(ratio))


def test_moments_of_a_second_order_model_are_those_of_simulations():
    model = Model(UnivariateMean(False), VOLATILITIES["garch"], DENSITIES["normal"], 2, 1)
    params = np.tile([0.2, 0.15, 0.1, 0.4], (20_000, 1))
    resting = np.full(20_000, 0.2 / 0.35)
    begin = VarianceState(initial_state(model, params, Past(resting)), np.empty((20_000, 0)))
    z = np.random.default_rng(0).standard_normal((20_000, 60, 1))
    found = simulate_garch(model, params, begin, z)
    np.testing.assert_allclose(
        found.y[:, -1].var(), unconditional_variance(model, params[:1])[0], rtol=0.03
    )
    # E h_t^2 approaches its limit by the root to the power of t.
    second = (found.variance[:, :, 0] ** 2).mean(0)
    root = second_moment_root(model, params[:1])[0]
    gap = second[-1] - second[:6]
    assert (gap[1:] / gap[:-1]).mean() == pytest.approx(root, abs=0.1)


def test_unconditional_variance_of_a_normal_egarch_is_that_of_its_integral():
    model = Model(UnivariateMean(False), VOLATILITIES["egarch"], DENSITIES["normal"], 1, 1)
    omega, alpha, gamma, beta = params = [0.05, 0.2, -0.1, 0.9]
    log_variance = omega / (1 - beta)
    for i in range(400):
        a, b = alpha * beta**i, gamma * beta**i
        moment, _ = integrate.quad(
            lambda z, a=a, b=b: math.exp(
                a * (abs(z) - math.sqrt(2 / math.pi)) + b * z - z * z / 2
            ) / math.sqrt(2 * math.pi), -12, 12, points=[0.0],
        )  # fmt: skip
        log_variance += math.log(moment)
    found = unconditional_variance(model, np.array([params]))
    np.testing.assert_allclose(found, math.exp(log_variance), rtol=1e-7)
    student = Model(UnivariateMean(False), VOLATILITIES["egarch"], DENSITIES["t"], 1, 1)
    assert np.isinf(unconditional_variance(student, np.array([[*params, 8.0]])))[0]


def test_prices_are_told_from_returns():
    returns = pd.Series(np.random.default_rng(0).normal(size=600))
    prices = 100 * np.exp(0.01 * returns.cumsum())
    assert "Give returns, such as 100 * np" in GARCH().fit(prices).messages_.iloc[0][-1]
    for model, series in ((GARCH(mean="ar"), prices), (GARCH(), returns)):
        assert not any("prices" in one for one in model.fit(series).messages_.iloc[0])


def test_no_persistence_is_shown_where_shocks_have_no_effect():
    noise = pd.Series(np.random.default_rng(3).normal(size=80))
    page = str(GARCH().fit(noise).summary())
    assert "none: no effect of shocks" in page
    assert "Half-life" not in page


@pytest.mark.parametrize(
    ("mean", "vol", "method"),
    [("zero", "garch", "auto"), ("constant", "gjr", "auto"), ("ar", "garch", "auto"),
     ("ar", "tgarch", "auto"), ("ar", "egarch", "simulation")],
)  # fmt: skip
def test_variances_of_residuals_and_of_forecasts_are_those_of_arch(returns, mean, vol, method):
    lags = {"mean_order": [1, 3]} if mean == "ar" else {}
    theirs = arch.arch_model(
        returns + 0.6 * returns.shift(fill_value=0), mean={"ar": "AR"}.get(mean, mean.title()),
        lags=[1, 3] if lags else None, vol="EGARCH" if vol == "egarch" else "GARCH", p=1,
        o=int(vol in ("gjr", "tgarch", "egarch")), q=1, power=1.0 if vol == "tgarch" else 2.0,
        rescale=False,
    )  # fmt: skip
    shocks = [0.05, 0.08] if vol in ("gjr", "tgarch") else [0.1, -0.05][: 1 + (vol == "egarch")]
    location = {"zero": [], "constant": [0.1], "ar": [0.1, 0.5, 0.2]}[mean]
    params = [*location, 0.1, *shocks, 0.8]
    model = GARCH(mean=mean, vol=vol, n_simulations=20_000, random_state=0, **lags)
    model.filter(returns + 0.6 * returns.shift(fill_value=0), params)
    # arch has no closed form for a power of one.
    by = "analytic" if vol in ("garch", "gjr") else "simulation"
    rng = np.random.RandomState(0)
    ahead = theirs.fix(params).forecast(
        horizon=4, method=by, simulations=20_000,
        rng=(lambda size: rng.standard_normal(size)) if by == "simulation" else None,
    )  # fmt: skip
    close = {"rtol": 1e-10 if by == "analytic" else 0.05}
    residual, forecast = (model.predict_variance(4, method=method, of=of)
                          for of in ("residual", "forecast"))  # fmt: skip
    np.testing.assert_allclose(residual, ahead.residual_variance.iloc[0], **close)
    np.testing.assert_allclose(forecast, ahead.variance.iloc[0], **close)
    assert (forecast.iloc[-1] > 1.2 * residual.iloc[-1]) == (mean == "ar")


def test_the_variance_of_a_forecast_is_that_of_simulated_paths(returns):
    model = GARCH(mean="arma", random_state=0).filter(returns, [0.1, 0.5, 0.3, 0.1, 0.1, 0.8])
    paths = model.sample_paths(20_000, h=4).iloc[:, -1].to_numpy().reshape(20_000, 4)
    np.testing.assert_allclose(model.predict_variance(4, of="forecast"), paths.var(0), rtol=0.05)
    with pytest.raises(ValueError, match="of must be one of"):
        model.predict_variance(2, of="level")
