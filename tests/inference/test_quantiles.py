"""ConditionalQuantiles: calibration by its definition, coverage, and refusals."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression, QuantileRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tsrnn.inference import ConditionalQuantiles


def autoregression(n=400, seed=0):
    """Values whose spread depends on the one before."""
    rng, y = np.random.default_rng(seed), np.zeros(n)
    for t in range(1, n):
        y[t] = 0.6 * y[t - 1] + (0.5 + 0.5 * abs(y[t - 1])) * rng.normal()
    return pd.Series(y, pd.date_range("2000-01-01", periods=n, freq="D"), name="y")


@pytest.mark.parametrize("level", [0.1, 0.5, 0.9])
def test_the_shift_is_the_quantile_of_errors_in_blocks_left_out(level):
    y = autoregression(204)
    model = ConditionalQuantiles(DummyRegressor(), quantiles=[level], n_lags=4, n_folds=2, gap=10)
    shift = model.fit(y).shifts_.iloc[0]
    target = y.to_numpy()[4:]
    errors = np.sort(np.r_[target[:100] - target[110:].mean(), target[100:] - target[:90].mean()])
    rank = {0.1: 20, 0.5: 100, 0.9: 181}[level]  # (n + 1) tau = 20.1, 100.5, 180.9
    assert_allclose(shift, errors[rank - 1], rtol=1e-12)
    assert_allclose(model.predict().iloc[0, 0], target.mean() + shift)


@pytest.mark.parametrize("horizon", [1, 3])
def test_forecasts_are_of_the_row_that_many_periods_ahead(horizon):
    steps = pd.Series(np.arange(60.0) ** 1.5, name="y")
    rows = np.column_stack([np.arange(60.0)])
    model = ConditionalQuantiles(
        LinearRegression(), quantiles=[0.5], horizon=horizon, n_lags=1, calibrate=False
    ).fit(pd.Series(rows[:, 0], steps.index, name="y"))
    forecast = model.predict(pd.Series([70.0, 80.0], [5, 6], name="y"))
    assert_allclose(forecast[0.5], [70 + horizon, 80 + horizon])
    assert list(forecast.index) == [5, 6]
    assert_allclose(model.predict()[0.5], 59 + horizon)


@pytest.mark.few("QuantileRegressor(alpha=0)", "LinearRegression()")
@pytest.mark.parametrize(
    "model",
    [
        None,
        QuantileRegressor(alpha=0),
        make_pipeline(StandardScaler(), QuantileRegressor(alpha=0)),
        GradientBoostingRegressor(loss="quantile", n_estimators=30),
        HistGradientBoostingRegressor(loss="quantile", quantile=0.5, max_iter=30),
        LinearRegression(),
    ],
    ids=str,
)
def test_coverage_of_later_values(model):
    y = autoregression(1400)
    fit = ConditionalQuantiles(
        model, quantiles=[0.1, 0.5, 0.9], n_lags=2, random_state=0
    ).fit(y[:800])  # fmt: skip
    ahead = fit.predict(y[798:-1])
    assert len(ahead) == 600
    share = (y[800:].to_numpy()[:, None] <= ahead[:600].to_numpy()[:, :]).mean(axis=0)
    # Two standard errors of 600 values, and some for the calibration on 800 dependent ones.
    assert_allclose(share, [0.1, 0.5, 0.9], atol=0.06)
    assert (ahead.diff(axis=1).iloc[:, 1:] >= 0).all(axis=None)


def test_networks_shift_the_mean():
    from tsrnn import ParaRNNRegressor

    y = autoregression(200)
    model = ConditionalQuantiles(
        ParaRNNRegressor(4, max_epochs=2), quantiles=[0.1, 0.9], n_lags=3, random_state=0
    )
    ahead = model.fit(y).predict(y)
    distance = ahead[0.9] - ahead[0.1]
    assert_allclose(distance, distance.iloc[0], rtol=1e-5)
    assert ahead.equals(model.fit(y).predict(y))


REFUSED = {
    "few rows": ({"quantiles": [0.001, 0.5]}, 300, ValueError, r"at least \d+ rows"),
    "order": ({"quantiles": [0.5, 0.1]}, 300, ValueError, "increase"),
    "range": ({"quantiles": [0, 0.5]}, 300, ValueError, "between 0 and 1"),
    "words": ({"quantiles": "wide"}, 300, TypeError, "numbers between"),
    "folds": ({"n_folds": 1}, 300, ValueError, "n_folds"),
    "several": ({"model": [LinearRegression()]}, 300, TypeError, "one regressor"),
    "horizon": ({"horizon": 0}, 300, ValueError, "horizon"),
    "short": ({}, 10, ValueError, "rows are needed"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_estimated_is_refused_by_name(case):
    arguments, n, error, text = REFUSED[case]
    with pytest.raises(error, match=text):
        ConditionalQuantiles(**{"model": LinearRegression(), **arguments}).fit(autoregression(n))


def test_a_forecast_needs_the_columns_of_the_fit():
    model = ConditionalQuantiles(LinearRegression(), n_lags=2).fit(autoregression())
    with pytest.raises(ValueError, match="those of the fit"):
        model.predict(autoregression().rename("z"))
    with pytest.raises(ValueError, match="at least 2 rows"):
        model.predict(autoregression()[:1])


def test_far_quantiles_of_few_rows_are_refused():
    y = np.random.default_rng(0).normal(size=200)
    with pytest.raises(ValueError, match="calibrated with at least 999 rows"):
        ConditionalQuantiles(quantiles=[0.001, 0.999]).fit(y)
