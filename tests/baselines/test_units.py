"""What is forecast does not depend on the unit of the data, and is told in that unit."""

import re
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from statsmodels.tsa.exponential_smoothing.ets import ETSModel
from statsmodels.tsa.forecasting.theta import ThetaModel
from statsmodels.tsa.statespace import sarimax, structural, varmax

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

pytestmark = pytest.mark.filterwarnings("ignore:.*came with warnings:UserWarning")

# Scaled rows differ in the last digit, after which an optimiser stops elsewhere.
EXACT, NEAR, FLAT = 1e-9, 2e-6, 1e-3
FACTORS = (1e-6, 1e-3, 1e4, 1e7)
BASELINES = {
    "AR with constant": (SARIMAX(trend="c"), EXACT),
    "ARIMA": (SARIMAX((1, 1, 1)), NEAR),
    "airline": (SARIMAX((0, 1, 1), (0, 1, 1, 12)), FLAT),
    "StatsmodelsAutoARIMA": (StatsmodelsAutoARIMA(1, max_p=1, max_q=1), FLAT),
    "local level": (UnobservedComponents(seasonal=None), EXACT),
    "structural": (UnobservedComponents("local linear trend", seasonal=12), FLAT),
    "smoothing": (StatsmodelsETS(seasonal=None), EXACT),
    "Holt": (StatsmodelsETS(trend="add", seasonal=None), NEAR),
    "Holt-Winters": (StatsmodelsETS("mul", "add", seasonal="mul", random_state=0), FLAT),
    "StatsmodelsTheta": (StatsmodelsTheta(), NEAR),
    "additive StatsmodelsTheta": (StatsmodelsTheta(method="additive"), NEAR),
    "GARCH": (ArchModel(mean="AR", lags=1, rescale=True), FLAT),
    "Naive": (Naive(), EXACT),
    "Naive2": (Naive2(), EXACT),
    "SeasonalNaive": (SeasonalNaive(), EXACT),
    "Drift": (Drift(), EXACT),
    "Mean": (Mean(), EXACT),
}
SEVERAL = {
    "VAR": (VAR(2), EXACT),
    "VARMA": (VARMAX(), NEAR),
    "moving average": (VARMAX((0, 1), error_cov_type="diagonal"), NEAR),
    "VECM": (VECM(rank=1), 1e-8),
}


@pytest.fixture(scope="module")
def walk():
    """Return a monthly random walk with a season around 100."""
    steps = np.arange(96)
    noise = np.random.default_rng(0).normal(size=96).cumsum()
    values = 100 + noise + 3 * np.sin(2 * np.pi * steps / 12)
    return pd.Series(values, pd.date_range("2015-01-01", periods=96, freq="MS"), name="y")


def assert_near(actual, expected, rtol):
    """Compare numbers to a part of the spread of all of them."""
    actual, expected = np.asarray(actual, float), np.asarray(expected, float)
    assert np.isfinite(expected).all()
    np.testing.assert_allclose(actual, expected, rtol=0, atol=rtol * np.abs(expected).max())


def ahead(model, y):
    return model.fit(y).predict(6, level=80)


@pytest.mark.few(
    "AR with constant", "ARIMA", "local level", "smoothing", "Holt-Winters", "StatsmodelsTheta",
    "GARCH", "Naive", "Naive2", "SeasonalNaive", "Drift", "Mean",
)  # fmt: skip
@pytest.mark.parametrize("name", BASELINES)
def test_forecasts_are_in_any_unit(name, walk):
    model, rtol = BASELINES[name]
    expected = ahead(model, walk)
    for k in FACTORS:
        assert_near(ahead(model, walk * k) / k, expected, rtol)


@pytest.mark.parametrize("name", SEVERAL)
def test_forecasts_of_several_targets_are_in_any_unit(name, pair):
    model, rtol = SEVERAL[name]
    expected = ahead(model, pair)
    for k in FACTORS:
        assert_near(ahead(model, pair * k) / k, expected, rtol)


def test_targets_of_a_vector_have_units_of_their_own(pair):
    model = VARMAX((1, 0))
    expected = ahead(model, pair)
    found = ahead(model, pair * [1e-4, 1e5])
    for name, k in (("u", 1e-4), ("v", 1e5)):
        columns = [column for column in expected if column.startswith(name)]
        assert_near(found[columns] / k, expected[columns], NEAR)


@pytest.mark.few("model0", "model1", "model2")
@pytest.mark.parametrize(
    "model",
    [
        UnobservedComponents(seasonal=None),
        SARIMAX((1, 1, 1)),
        SARIMAX(trend="c"),
        SARIMAX((1, 0, 1), (1, 0, 0, 12), trend="ct"),
        StatsmodelsAutoARIMA(1, max_p=1, max_q=1, d=0),
    ],
)
def test_a_shift_moves_forecasts(walk, model):
    assert_near(ahead(model, walk + 1e6) - 1e6, ahead(model, walk), NEAR)


@pytest.mark.parametrize("k", [1e-6, 1e-3, 1e5])
def test_regressors_are_in_any_unit(exog, k):
    frame = exog[exog["unique_id"] == "a"]
    times = pd.date_range(frame["ds"].iloc[-1], periods=7, freq="MS")[1:]
    future = pd.DataFrame({"unique_id": "a", "ds": times, "x": np.arange(6.0)})
    for model in (
        SARIMAX(trend="c", known_ahead="x"),
        UnobservedComponents(seasonal=None, known_ahead="x"),
    ):
        forecasts, coefficients = [], []
        for unit in (1.0, k):
            model.fit(frame.assign(x=unit * frame["x"]))
            given = future.assign(x=unit * future["x"])
            forecasts.append(model.predict(6, X_future=given)[model.column_name])
            coefficients.append(unit * model.params_.filter(like="x1").iloc[0, 0])
        assert_near(*forecasts, NEAR)
        assert coefficients[1] == pytest.approx(coefficients[0], rel=1e-6)


def test_rows_of_an_update_are_in_the_unit_of_the_fit(walk):
    model = UnobservedComponents(seasonal=None)
    expected = model.fit(walk[:60]).update(walk[60:]).predict(6, level=80)
    other = model.fit(1e5 * walk[:60]).update(1e5 * walk[60:]).predict(6, level=80)
    assert_near(other / 1e5, expected, NEAR)


@pytest.mark.parametrize(
    ("model", "build"),
    [
        (SARIMAX((1, 0, 0)), partial(sarimax.SARIMAX, order=(1, 0, 0))),
        (SARIMAX((0, 1, 1)), partial(sarimax.SARIMAX, order=(0, 1, 1))),
        (
            UnobservedComponents(seasonal=None),
            partial(structural.UnobservedComponents, level="local level"),
        ),
        (StatsmodelsETS(seasonal=None), ETSModel),
        (
            StatsmodelsTheta(deseasonalize=False),
            partial(ThetaModel, period=12, deseasonalize=False),
        ),
    ],
)
def test_well_scaled_rows_are_forecast_as_by_the_library(walk, model, build):
    y = (walk - walk.mean()) / (1.1 * walk.std())
    options = {} if isinstance(model, StatsmodelsTheta) else {"disp": False}
    results = build(y.to_numpy()).fit(**options)
    assert_near(model.fit(y).predict(6), results.forecast(6), 1e-5)


class TestToldInTheUnitOfTheData:
    def evaluated(self, model, direct):
        """Compare criteria with those of a model of statsmodels at the parameters told."""
        results = direct.smooth(model.params_.iloc[0].to_numpy())
        told = [getattr(model, f"{name}_").iloc[0] for name in ("loglik", "aic", "bic")]
        np.testing.assert_allclose(told, [results.llf, results.aic, results.bic], rtol=1e-8)

    def test_of_regressors(self, exog):
        frame = exog[exog["unique_id"] == "a"].copy()
        frame["y"] *= 40
        model = SARIMAX((1, 0, 1), (1, 0, 0, 12), trend="ct").fit(frame)
        direct = sarimax.SARIMAX(
            frame["y"].to_numpy(), frame[["x"]].to_numpy(), (1, 0, 1), (1, 0, 0, 12), "ct"
        )
        self.evaluated(model, direct)
        assert model.params_.iloc[0]["x1"] == pytest.approx(160, rel=0.1)

    @pytest.mark.few("order1-unstructured", "order2-diagonal")
    @pytest.mark.parametrize("covariance", ["unstructured", "diagonal"])
    @pytest.mark.parametrize("order", [(1, 0), (2, 0), (0, 1)])
    def test_of_vectors(self, pair, order, covariance):
        frame = pair * [30, 0.02]
        given = {"error_cov_type": covariance, "measurement_error": order == (1, 0)}
        direct = varmax.VARMAX(frame.to_numpy(), order=order, trend="c", **given)
        self.evaluated(VARMAX(order, **given).fit(frame), direct)

    @pytest.mark.parametrize("kinds", [("add", "add", "add"), ("mul", "add", "mul")])
    def test_of_smoothing(self, walk, kinds):
        error, trend, seasonal = kinds
        model = StatsmodelsETS(error, trend, seasonal=seasonal).fit(7 * walk)
        direct = ETSModel(7 * walk.to_numpy(), error, trend, seasonal=seasonal, seasonal_periods=12)
        params = model.params_.iloc[0].to_numpy()
        results = direct.smooth(params[:-1])
        assert model.loglik_.iloc[0] == pytest.approx(results.llf, rel=1e-9)
        assert params[-1] == pytest.approx(results.mse, rel=1e-8)

    @pytest.mark.parametrize(
        "model", [UnobservedComponents(seasonal=None), SARIMAX((0, 1, 1), trend="c")]
    )
    def test_of_diffuse_levels(self, walk, model):
        one = model.fit(walk)
        loglik, params = one.loglik_["y"], one.params_.loc["y"]
        two = model.fit(1e3 * walk)
        n_counted = len(walk) - 1
        assert two.loglik_["y"] == pytest.approx(loglik - n_counted * np.log(1e3), rel=1e-7)
        assert two.aic_["y"] == pytest.approx(2 * len(params) - 2 * two.loglik_["y"])
        powers = [2 if "sigma2" in own else int(own == "intercept") for own in params.index]
        expected = params * 1e3 ** np.array(powers)
        pd.testing.assert_series_equal(two.params_.loc["y"], expected, rtol=1e-3)

    @pytest.mark.parametrize("k", [1e-5, 1.0, 1e4])
    def test_pages_have_the_same_numbers(self, walk, k):
        for model in (UnobservedComponents(seasonal=None), SARIMAX((1, 1, 1))):
            page = str(model.fit(k * walk).summary())
            loglik = float(re.search(r"Log Likelihood +(\S+)", page)[1])
            assert loglik == pytest.approx(model.loglik_["y"], abs=6e-4)
            z = float(re.search(r"^sigma2\S*\s+\S+\s+\S+\s+(\S+)", page, re.MULTILINE)[1])
            same = str(model.fit(walk).summary())
            expected = re.search(r"^sigma2\S*\s+\S+\s+\S+\s+(\S+)", same, re.MULTILINE)[1]
            assert z == pytest.approx(float(expected), abs=2e-3)

    def test_the_scale_is_kept(self, walk, pair):
        assert SARIMAX((1, 1, 1)).fit(walk).spec_["y"]["scale"] == walk.std(ddof=0)
        np.testing.assert_allclose(
            VARMAX().fit(pair).spec_.iloc[0]["scale"], pair.std(ddof=0).to_numpy()
        )


def test_no_warning_of_numbers(walk):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for k in FACTORS:
            SARIMAX((1, 1, 1)).fit(walk * k).predict(3)
