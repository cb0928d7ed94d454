"""The class ARMA: fits in frames, dynamics, refusals, and how it reads as a recurrence."""

import copy

import numpy as np
import pandas as pd
import pytest
from statsmodels.tsa.arima.model import ARIMA
from statsmodels.tsa.arima_process import ArmaProcess, arma_acovf

from tsrnn.contract import IntervalWarning
from tsrnn.interpret import recurrence_features
from tsrnn.linear.arma import ARMA

PARAMS = {"const": 2.0, "ar.L1": 1.2, "ar.L2": -0.5, "ma.L1": 0.4, "sigma2": 1.7}


@pytest.fixture(scope="module")
def series():
    made = ARMA((2, 1), random_state=0).simulate(200, PARAMS)["y"]
    return made.set_axis(pd.date_range("2000-01-01", periods=200, freq="MS"))


@pytest.fixture(scope="module")
def given(series):
    return ARMA((2, 1)).filter(series, PARAMS)


@pytest.fixture(scope="module")
def fitted(series):
    return ARMA((2, 1)).fit(series)


def test_a_fit_is_that_of_statsmodels(fitted, series):
    oracle = ARIMA(series.to_numpy(), order=(2, 0, 1)).fit(
        method_kwargs={"maxiter": 500, "pgtol": 1e-9, "factr": 10}
    )
    assert fitted.params_.columns.tolist() == oracle.model.param_names
    assert fitted.loglik_["y"] >= oracle.llf - 1e-6
    np.testing.assert_allclose(fitted.params_.loc["y"], oracle.params, atol=2e-3)
    assert fitted.nobs_["y"] == 200
    assert "ARMA(2, 1)" in str(fitted.summary())


def test_a_unit_that_cannot_be_fitted_costs_no_other(series):
    frame = pd.DataFrame({"good": series, "bad": np.nan})
    frame.iloc[:3, 1] = [1.0, 3.0, 2.0]
    with pytest.warns(UserWarning, match="1 of 2 units could not be fitted"):
        model = ARMA((1, 1, 1), missing="keep").fit(frame)
    alone = ARMA((1, 1, 1)).fit(frame[["good"]])
    for method in ("predict", "residuals", "fittedvalues"):
        both, own = getattr(model, method)(), getattr(alone, method)()
        np.testing.assert_allclose(both["good"], own.to_numpy().ravel(), rtol=1e-6, atol=1e-8)
        assert both["bad"].isna().all()
    assert model.roots().loc["bad"].isna().all(axis=None)
    assert model.simulate(5)["bad"].isna().all()
    assert model.recurrent_blocks()[0]["AR"].shape == (1, 1, 1)


@pytest.mark.few("model0", "model1", "model2", "model3")
@pytest.mark.parametrize("missing", ["error", "keep"])
@pytest.mark.parametrize(
    ("model", "values"),
    [
        (ARMA((1, 1)), np.full(30, 5.0)),
        (ARMA((1, 1, 1)), np.full(30, 5.0)),
        (ARMA((0, 1, 1), trend="t"), 3 - 0.1 * np.arange(30)),
        (ARMA((1, 0), trend="ct"), 3 - 0.1 * np.arange(30)),
        (ARMA((0, 1, 1), seasonal_order=(0, 1, 1, 4)), np.tile([4.0, 1.0, 7.0, 2.0], 8)[:30]),
    ],
)
def test_a_series_that_the_mean_fits_exactly(model, values, missing, series):
    """It is continued, without error, beside a series that is fitted as it is alone."""
    seen = values.copy()
    if missing == "keep":
        seen[[7, 20]] = np.nan
    frame = pd.DataFrame({"other": series[:26], "exact": seen[:26]})
    model.set_params(missing=missing).fit(frame)
    with pytest.warns(IntervalWarning, match="'exact' have no width"):
        forecast = model.predict(4, level=[80])
    np.testing.assert_allclose(forecast["exact"], values[26:], rtol=1e-9)
    np.testing.assert_allclose(forecast["exact-hi-80"], values[26:], rtol=1e-9)
    assert "exactly" in model.messages_["exact"][0]
    assert model.bse_.loc["exact"].isna().all()
    assert np.isfinite(model.loglik_["exact"])
    assert str(model.summary("exact"))
    alone = copy.deepcopy(model).fit(frame[["other"]])
    np.testing.assert_allclose(model.params_.loc["other"], alone.params_.iloc[0], rtol=1e-6)
    filtered = model.filter(frame, model.params_.assign(sigma2=1.0))
    np.testing.assert_allclose(filtered.predict(4)["exact"], values[26:], rtol=1e-9)


class TestDynamics:
    def test_responses(self, given, fitted):
        process = ArmaProcess([1, -1.2, 0.5], [1, 0.4])
        response = given.impulse_responses(12)["response"]
        np.testing.assert_allclose(response, process.impulse_response(13), rtol=1e-12)
        bands = fitted.impulse_responses(1, level=90).loc["y"]
        cov = fitted.cov_params().loc[["ar.L1", "ma.L1"], ["ar.L1", "ma.L1"]]
        error = np.sqrt(cov.to_numpy().sum())  # psi_1 = phi_1 + theta_1
        assert bands.loc[1, "std_err"] == pytest.approx(error, rel=1e-9)
        assert bands.loc[1, "upper"] == pytest.approx(
            bands.loc[1, "response"] + 1.6448536269514722 * error
        )

    def test_responses_of_an_integrated_series(self, series):
        model = ARMA((1, 2, 0)).filter(series, [0.5, 1.0])
        expected = np.cumsum(np.cumsum(0.5 ** np.arange(6)))
        np.testing.assert_allclose(model.impulse_responses(5)["response"], expected)

    def test_autocovariances(self, given):
        expected = arma_acovf([1, -1.2, 0.5], [1, 0.4], 9, sigma2=1.7)
        np.testing.assert_allclose(given.autocovariances(8)["y"], expected, rtol=1e-10)

    def test_autocovariances_of_differences(self):
        series = pd.Series(np.random.default_rng(0).normal(size=40).cumsum(), name="y")
        model = ARMA(order=(1, 1, 0), trend="n").filter(series, {"ar.L1": 0.5, "sigma2": 3.0})
        np.testing.assert_allclose(model.autocovariances(3)["y"], 3 / 0.75 * 0.5 ** np.arange(4))

    def test_roots(self, given):
        roots = given.roots().loc["y"]
        angle, modulus = np.arccos(0.6 / np.sqrt(0.5)), 1 / np.sqrt(0.5)
        for name in ("AR.1", "AR.2"):
            assert roots.loc[name, "modulus"] == pytest.approx(modulus)
            assert roots.loc[name, "period"] == pytest.approx(2 * np.pi / angle)
            assert roots.loc[name, "half_life"] == pytest.approx(np.log(2) / np.log(modulus))
        assert roots.loc["MA.1", "real"] == pytest.approx(-2.5)
        assert roots.loc["MA.1", "period"] == 2

    def test_roots_at_the_edges(self, series):
        roots = ARMA((2, 1)).filter(series, [0.0, 0.5, 0.0, 1.0, 1.0]).roots().loc["y"]
        assert np.isinf(roots.loc["AR.2", "modulus"])
        assert roots.loc["AR.2", "half_life"] == 0
        assert np.isnan(roots.loc["AR.2", "period"])
        assert np.isinf(roots.loc["MA.1", "half_life"])

    def test_simulated_series_have_the_autocovariances(self):
        y = ARMA((1, 1), random_state=1).simulate(100_000, [3.0, 0.6, 0.4, 2.0])["y"]
        expected = arma_acovf([1, -0.6], [1, 0.4], 3, sigma2=2.0)
        assert y.mean() == pytest.approx(3.0, abs=0.05)
        for lag in range(3):
            assert y.cov(y.shift(lag)) == pytest.approx(expected[lag], abs=0.15)  # 4 sigma

    def test_as_recurrence_features(self, given):
        found = recurrence_features(given)
        wave = found[found["matrix"] == "AR"].iloc[0]
        assert wave["period"] == pytest.approx(2 * np.pi / np.arccos(0.6 / np.sqrt(0.5)))
        assert wave["half_life"] == pytest.approx(np.log(0.5) / np.log(np.sqrt(0.5)))
        memory = found[found["matrix"] == "MA"].iloc[0]
        assert memory["modulus"] == pytest.approx(0.4)
        assert memory["period"] == 2  # the root of 1 + 0.4 z is negative

    def test_an_order_of_zero_has_none(self, series):
        (blocks,) = ARMA((1, 0)).filter(series, [0.0, 0.5, 1.0]).recurrent_blocks()
        assert list(blocks) == ["AR"]
        with pytest.raises(ValueError, match="white noise and has no recurrence"):
            ARMA((0, 0)).fit(series).recurrent_blocks()


@pytest.mark.parametrize(
    ("arguments", "params", "message"),
    [
        ({"order": (1, 1, 1), "trend": "c"}, None, "differencing removes"),
        ({"order": (1, 2, 1), "trend": "t"}, None, "differencing removes"),
        ({"order": (1, 1, 1), "trend": "ct"}, None, "differencing removes"),
        ({"order": (1, -1)}, None, "integers of at least 0"),
        ({"order": (13, 0)}, None, "up to 12 lags"),
        ({"order": (0, 7)}, None, "a moving average up to 6"),
        ({"order": 2}, None, "order must be"),
        ({"order": (1, 1), "trend": "linear"}, None, "trend must be"),
        ({"likelihood": "css"}, None, "likelihood must be"),
        ({"likelihood": "conditional", "missing": "keep"}, None, "needs likelihood='exact'"),
        ({"horizon": 0}, None, "horizon must be"),
        ({}, [0.0, 1.1, 0.0, 1.0], "params must have"),
        ({}, [0.0, 0.5, 0.0, -1.0], "params must have"),
    ],
)
def test_refusals(series, arguments, params, message):
    model = ARMA(**arguments)
    with pytest.raises((TypeError, ValueError), match=message):
        model.fit(series) if params is None else model.filter(series, params)


def test_forecasts_need_the_future_of_regressors(series):
    frame = pd.DataFrame({"y": series, "x": np.arange(200.0) % 7})
    model = ARMA((1, 0), target="y").fit(frame)
    with pytest.raises(ValueError, match="not known ahead are \\['x'\\]"):
        model.predict(3)


def test_exact_loglik_of_given_parameters(given, series):
    oracle = ARIMA(series.to_numpy(), order=(2, 0, 1))
    assert given.loglik_["y"] == pytest.approx(oracle.loglike(list(PARAMS.values())), rel=1e-11)
    assert given.bse_.isna().all(axis=None)
