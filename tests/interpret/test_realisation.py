"""Realisations of impulse responses and of forecasts against recurrences with known roots."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tsrnn import ARMA, ParaRNNForecaster, forecast_features, recurrence_features
from tsrnn.datasets import load_elec_equip, load_elnino, load_nile, threshold_autoregression
from tsrnn.forecasters import feature_stability
from tsrnn.interpret import match_features, reading_of_forecasts, realise, realise_paths
from tsrnn.plotting import plot_features, plot_lag_curves


@pytest.fixture(autouse=True)
def _figures():
    yield
    plt.close("all")


moduli, periods = st.floats(0.5, 0.99), st.floats(2.5, 40.0)


def waves(pairs, n):
    j = np.arange(n)
    return sum(m**j * np.cos(2 * np.pi * j / p + i) for i, (m, p) in enumerate(pairs))


@settings(deadline=None, max_examples=40)
@given(modulus=moduli, period=periods, decay=st.floats(-0.9, 0.9))
def test_damped_waves_and_decays_are_realised(modulus, period, decay):
    response = waves([(modulus, period)], 60) + decay ** np.arange(60)
    realised = realise(response, order=3, tol=0.0)
    values, _ = realised.parts(1)
    root = modulus * np.exp(2j * np.pi / period)
    assert realised.error < 1e-10
    assert np.abs(values - root).min() < 1e-3
    assert np.abs(values - decay).min() < 1e-3


def test_the_order_is_that_of_the_response():
    response = waves([(0.95, 12.0), (0.9, 5.0)], 80)
    realised = realise(response, tol=1e-9)
    assert realised.order == 4
    assert np.linalg.matrix_rank(np.array([response[i : i + 40] for i in range(41)])) == 4


def test_parts_sum_to_what_is_realised():
    rng = np.random.default_rng(0)
    transition = np.array([[0.9, 0.2, 0.0], [-0.2, 0.9, 0.1], [0.0, 0.0, 0.5]])
    output, start = rng.normal(size=(2, 3)), rng.normal(size=(30, 3))
    powers = np.stack([output @ np.linalg.matrix_power(transition, k) for k in range(10)])
    paths = np.einsum("kcn,mn->mkc", powers, start)
    realised = realise_paths(paths, tol=1e-12)
    values, parts = realised.parts(10)
    np.testing.assert_allclose(parts.sum(0), paths, atol=1e-9)
    expected = np.linalg.eigvals(transition)
    np.testing.assert_allclose(
        np.sort_complex(values), np.sort_complex(expected[expected.imag >= 0]), atol=1e-9
    )


@pytest.mark.parametrize(
    ("response", "words"),
    [
        ([1.0, 0.5], "at least three"),
        ([0.0, 0.0, 0.0, 0.0], "not all zero"),
        ([1.0, np.nan, 0.2, 0.1], "finite"),
    ],
)
def test_what_cannot_be_realised_is_refused(response, words):
    with pytest.raises(ValueError, match=words):
        realise(response)


@pytest.mark.parametrize("order", [4, 0, 1.5, "2", True])
def test_an_order_beyond_the_paths_is_refused(order):
    with pytest.raises(ValueError, match="from 1 to 1"):
        realise(0.5 ** np.arange(9), order=order)


@pytest.fixture(scope="module")
def monthly():
    return ParaRNNForecaster(
        horizon=12, prior=None, hidden_size=8, max_epochs=2, refit=False, random_state=0
    ).fit(load_elnino())


def test_the_first_feature_of_monthly_temperatures_is_a_year(monthly):
    prior = ParaRNNForecaster(horizon=12).fit(load_elnino()[-240:])
    for model in (monthly, prior):
        features = forecast_features(model)
        assert features["type"][0] == "C-1"
        assert features["period"][0] == pytest.approx(12, abs=0.1)
        assert features["half_life"][0] > 100
        assert features["share"].sum() == pytest.approx(1)
        assert features.attrs["realisation_error"] <= 0.01


def test_the_mean_derivative_is_that_of_differences(monthly):
    from tsrnn.forecasters._linearised import mean_response

    fitted = monthly.fitted_
    model, of_fit = fitted.step.model, fitted.settings
    rows = fitted.sample_rows[:1, -2 * of_fit.input_size :].double()
    response, _ = mean_response(model, rows, of_fit)
    for lag in (1, 7, of_fit.input_size + 3):
        step = torch.zeros_like(rows)
        step[0, -lag, 0] = 1e-3
        up, down = (mean_response(model, rows + sign * step, of_fit)[1] for sign in (1, -1))
        slope = (up - down)[0, :, 0] / 2e-3
        np.testing.assert_allclose(response[:, -lag, 0, 0], slope, atol=2e-3)


def test_linearised_forecasts_are_those_of_the_linear_path():
    model = ParaRNNForecaster(
        horizon=12, prior=None, network=False, local_level=False, season_length=1
    ).fit(load_nile())
    assert forecast_features(model).attrs["linearisation_error"] < 1e-6


def test_features_of_an_autoregression_are_its_roots():
    rng = np.random.default_rng(0)
    y = np.zeros(8500)
    for t in range(2, len(y)):
        y[t] = 2 * 0.95 * np.cos(2 * np.pi / 12) * y[t - 1] - 0.95**2 * y[t - 2] + rng.normal()
    model = ParaRNNForecaster(horizon=12, prior=None, network=False).fit(pd.Series(y[500:]))
    features = forecast_features(model, order=2)
    assert features["modulus"][0] == pytest.approx(0.95, abs=0.02)
    assert features["period"][0] == pytest.approx(12, rel=0.03)


def test_where_a_realisation_is_poor_the_summary_says_so(monthly):
    poor = forecast_features(monthly, order=1)
    assert poor.attrs["realisation_error"] > 0.1
    assert "in part only" in reading_of_forecasts(poor)
    assert "in part only" not in str(monthly.summary())


def test_at_the_mean(monthly):
    assert np.isfinite(forecast_features(monthly, at="mean")["modulus"]).all()
    with pytest.raises(ValueError, match="at must be one of \\('data', 'mean'\\); got 'zero'"):
        forecast_features(monthly, at="zero")


@pytest.mark.parametrize("model", [np.eye(2), ParaRNNForecaster, ARMA(order=(1, 0))])
def test_models_without_such_features_are_refused(model):
    with pytest.raises(TypeError, match="recurrence_features reads matrices"):
        forecast_features(model)


def test_constant_series_have_no_features():
    index = pd.date_range("2000", periods=60, freq="MS")
    model = ParaRNNForecaster(horizon=3).fit(pd.Series(5.0, index))
    with pytest.raises(ValueError, match="do not vary"):
        forecast_features(model)
    assert model.summary().features is None


def test_panels_and_joint_targets_have_one_set():
    rng = np.random.default_rng(0)
    index = pd.date_range("2000", periods=120, freq="MS")
    frame = pd.DataFrame(rng.normal(size=(120, 2)).cumsum(0), index, ["a", "b"])
    small = {"hidden_size": 4, "max_epochs": 1, "refit": False, "prior": None}
    for multivariate in ("joint", "independent"):
        model = ParaRNNForecaster(horizon=6, multivariate=multivariate, **small).fit(frame)
        features = forecast_features(model)
        assert features["share"].sum() == pytest.approx(1)


def test_pictures_show_the_whole_forecast(monthly):
    texts = [text.get_text() for text in plot_features(monthly).texts]
    assert any("period 12" in text for text in texts)
    assert plot_lag_curves(monthly).get_xlabel() == "Lag (months)"


def test_exogenous_columns_are_no_nonlinearity():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 300))
    for t in range(1, 300):
        y[t] += 0.8 * y[t - 1] + 2 * x[t - 1]
    frame = pd.DataFrame({"y": y, "x": x}, pd.date_range("2000", periods=300, freq="D"))
    arguments = {"horizon": 3, "target": "y", "network": False, "local_level": False, "prior": None}
    for known in ({}, {"known_ahead": "x"}):
        features = forecast_features(ParaRNNForecaster(**arguments, **known).fit(frame))
        assert features.attrs["linearisation_error"] < 0.1


@pytest.mark.slow
def test_the_mean_has_an_error_of_its_own():
    y, _ = threshold_autoregression(1500, 0)
    series = pd.Series(y, pd.date_range("2000", periods=1500, freq="D"))
    arguments = {"horizon": 1, "season_length": 1, "random_state": 0, "max_epochs": 5}
    model = ParaRNNForecaster(network=True, **arguments).fit(series)
    errors = [
        forecast_features(model, at=at).attrs["linearisation_error"] for at in ("data", "mean")
    ]
    assert errors[0] > 0.01
    assert errors[1] > 0.01


def test_series_shorter_than_the_window():
    rng = np.random.default_rng(0)
    frame = pd.concat(
        pd.DataFrame({"unique_id": i, "ds": pd.date_range("2000", periods=n, freq="D"),
                      "y": rng.normal(size=n)})
        for i, n in enumerate((60, 12, 10, 11))
    )  # fmt: skip
    arguments = {"horizon": 2, "network": False, "input_size": 24, "prior": None}
    model = ParaRNNForecaster(**arguments).fit(frame)
    assert forecast_features(model)["share"].sum() == pytest.approx(1)
    assert "features in all" in str(model.summary())


class TestMatching:
    def test_a_feature_is_itself(self, monthly):
        features = forecast_features(monthly)
        shuffled = features.sample(frac=1, random_state=1)
        places = match_features(features, shuffled)
        assert (shuffled["modulus"].to_numpy()[places] == features["modulus"]).all()

    def test_the_share_decides_between_equals(self):
        first = recurrence_features([[0.9, 0.0], [0.0, 0.9]]).assign(share=[0.9, 0.1])
        assert match_features(first, first[::-1]).tolist() == [1, 0]

    def test_frames_of_other_kinds_are_refused(self):
        with pytest.raises(ValueError, match="lacks the columns"):
            match_features(pd.DataFrame({"a": [1]}), pd.DataFrame({"a": [1]}))


class TestStability:
    @pytest.mark.slow
    def test_a_season_returns_and_chance_does_not(self):
        months = load_elec_equip()
        small = {"hidden_size": 4, "max_epochs": 1, "refit": False, "random_state": 0}
        model = ParaRNNForecaster(horizon=6, prior=None, **small).fit(months)
        stability = feature_stability(model, months, n_refits=6)
        year = stability.features.query("11.5 < period < 12.5")
        assert year["returns"].max() > 0.6
        assert "returns" in str(model.summary(stability=stability))
        second = feature_stability(model, months, n_refits=6)
        pd.testing.assert_frame_equal(second.features, stability.features)

    def test_blocks_of_a_network(self):
        months = load_elec_equip()
        small = {"hidden_size": 4, "n_layers": 1, "max_epochs": 2, "refit": False}
        model = ParaRNNForecaster(
            horizon=6, prior=None, linear_path=False, random_state=0, **small
        ).fit(months)
        stability = feature_stability(model, months, n_refits=4, of="network")
        assert stability.features["returns"].between(0, 1).all()
        with pytest.raises(ValueError, match='of="forecast"'):
            model.summary(stability=stability)
        with pytest.raises(TypeError, match="feature_stability gave; got DataFrame"):
            model.summary(stability=stability.features)

    @pytest.mark.slow
    def test_refits_without_features_count(self):
        rng = np.random.default_rng(0)
        y = np.r_[np.zeros(250), rng.normal(size=50)]
        series = pd.Series(y, pd.date_range("2000", periods=300, freq="D"))
        stability = feature_stability(ParaRNNForecaster(horizon=3).fit(series), series, n_refits=5)
        assert stability.n_refits == 5
        assert stability.n_with_features < 5
        assert "have no features" in str(stability)

    def test_bad_arguments_are_refused(self):
        with pytest.raises(TypeError, match="recurrent network"):
            feature_stability(ARMA(order=(1, 0)), load_nile())
        model = ParaRNNForecaster(horizon=4).fit(load_nile())
        with pytest.raises(ValueError, match="n_refits"):
            feature_stability(model, load_nile(), n_refits=0)
        with pytest.raises(ValueError, match="share_of_rows"):
            feature_stability(model, load_nile(), share_of_rows=0.0)
