"""Nonlinear autoregressions: against Gaussian process regression, and mixed with the network."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import t as student_t
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct

from tsrnn import ParaRNNForecaster, load
from tsrnn.datasets import bilinear, henon_map, logistic_map, threshold_autoregression
from tsrnn.prior import (
    AUTOREGRESSION_ROWS,
    Autoregression,
    SeriesPrior,
    autoregress,
    structural_components,
    trained_prior,
    window_rows,
)
from tsrnn.prior import _autoregression as autoregression

H = 6
DEGREES = 4.0
MODELS = [
    Autoregression((1, 2), None, 0.3),
    Autoregression((1,), 0.5, 3e-2),
    Autoregression((1, 2, 3, 4), 2.0, 1e-3),
    Autoregression((1, 2, 4, 5), 1.0, 0.3),
]


def henon(n, noise=0.05):
    return henon_map(n, 0, noise=noise)[0]


def frame(rows, begin=0):
    return pd.DataFrame({"y": rows}, pd.RangeIndex(begin, begin + len(rows)))


def only(monkeypatch, model):
    """Make one model the only choice."""
    monkeypatch.setattr(autoregression, "lag_choices", lambda season_length, n_rows: [model.lags])
    monkeypatch.setattr(autoregression, "LENGTH_SCALES", (model.length_scale,))
    monkeypatch.setattr(autoregression, "NOISES", (model.noise,))
    monkeypatch.setattr(autoregression, "START", model.length_scale)


def regression(model):
    """Gaussian process of scikit-learn with the covariance of a model."""
    kernel = ConstantKernel(1.0, "fixed") + DotProduct(0.0, "fixed")
    if model.length_scale is not None:
        kernel += RBF(model.length_scale * np.sqrt(len(model.lags)), "fixed")
    return GaussianProcessRegressor(kernel, alpha=model.noise, optimizer=None)


def standardised(rows, model):
    """Standardised rows, the inputs (n, p) of each from the eighth on, and its number."""
    scaled = (rows - rows.mean()) / rows.std()
    first = max(8, *model.lags)
    numbers = np.arange(first, len(rows) + 1)
    return scaled, scaled[numbers[:, None] - np.array(model.lags)], numbers


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_forecasts_of_a_step_are_those_of_gaussian_process_regression(monkeypatch, model):
    only(monkeypatch, model)
    monkeypatch.setattr(autoregression, "LITTLE_NOISE", 0.0)  # nothing is iterated
    rows = henon(60)
    scaled, inputs, numbers = standardised(rows, model)
    result = autoregress(rows, 1, H)
    for k in range(1, H + 1):
        known = numbers + k - 1 < len(rows)
        gaussian = regression(model).fit(inputs[known], scaled[numbers[known] + k - 1])
        mean, deviation = gaussian.predict(inputs[-1:], return_std=True)
        covariances = gaussian.kernel_(inputs[known]) + model.noise * np.eye(known.sum())
        target = scaled[numbers[known] + k - 1]
        square = DEGREES + target @ np.linalg.solve(covariances, target)
        scale = square / (DEGREES + known.sum())
        expected = np.sqrt(scale * (deviation[0] ** 2 + model.noise))
        np.testing.assert_allclose(result.mean[k - 1], rows.mean() + rows.std() * mean[0])
        np.testing.assert_allclose(result.deviation[k - 1], rows.std() * expected, rtol=1e-6)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_densities_are_those_of_each_row_given_the_rows_before(monkeypatch, model):
    only(monkeypatch, model)
    rows = henon(40)
    scaled, inputs, numbers = standardised(rows, model)
    density = autoregress(rows, 1, H).log_density
    assert np.isnan(density[: numbers[0]]).all()
    for i in (0, 1, 7, len(rows) - numbers[0] - 1):
        target = scaled[numbers[:i]]
        if i:
            gaussian = regression(model).fit(inputs[:i], target)
            mean, deviation = (part[0] for part in gaussian.predict(inputs[i : i + 1], True))
            covariances = gaussian.kernel_(inputs[:i]) + model.noise * np.eye(i)
            square = DEGREES + target @ np.linalg.solve(covariances, target)
        else:
            kernel = regression(model).kernel
            mean, deviation, square = 0.0, np.sqrt(kernel(inputs[:1])[0, 0]), DEGREES
        scale = np.sqrt(square / (DEGREES + i) * (deviation**2 + model.noise))
        expected = student_t(DEGREES + i, mean, scale).logpdf(scaled[numbers[i]])
        np.testing.assert_allclose(density[numbers[i]] + np.log(rows.std()), expected, rtol=1e-6)


def test_a_linear_path_has_the_variances_of_an_autoregression(monkeypatch):
    # Of a linear function, with hardly any doubt of it, psi weights give the variances.
    model = Autoregression((1, 2), None, 1e-5)
    only(monkeypatch, model)
    monkeypatch.setattr(autoregression, "LITTLE_NOISE", np.inf)
    rng = np.random.default_rng(0)
    rows = np.zeros(256)
    for i in range(2, 256):
        rows[i] = 1.6 * rows[i - 1] - 0.9 * rows[i - 2] + 0.001 * rng.standard_normal()
    result = autoregress(rows, 1, H)
    psi = [1.0, 1.6]
    for _ in range(H - 2):
        psi.append(1.6 * psi[-1] - 0.9 * psi[-2])
    expected = np.sqrt(np.cumsum(np.square(psi)))
    np.testing.assert_allclose(result.deviation / result.deviation[0], expected, rtol=0.15)


@pytest.mark.parametrize("length_scale", [None, 1.0])
def test_errors_along_a_path_move_as_differences_of_paths_do(length_scale):
    model = Autoregression((1, 2), length_scale, 1e-3)
    rows = henon(80, 0.0)
    series = autoregression._Series.of(rows, 1, 4)
    fit = series.fit(model)
    path, deviation = autoregression.iterate(fit, model, series.rows, series.origins[:-1], 4)

    def moved(step, by):
        """Path whose row at `step` is moved."""
        known = np.append(series.rows, path[: step + 1])
        known[-1] += by
        later, _ = autoregression.iterate(fit, model, known, series.origins[:-1], 3 - step)
        return later

    arriving = deviation[0] ** 2
    slope = (moved(0, 1e-6) - moved(0, -1e-6))[0] / 2e-6
    _, alone = autoregression.iterate(
        fit, model, np.append(series.rows, path[:1]), series.origins[:-1], 1
    )
    np.testing.assert_allclose(deviation[1] ** 2, slope**2 * arriving + alone[0] ** 2, rtol=1e-5)


@pytest.mark.parametrize(
    ("rows", "most"),
    [
        (logistic_map(121, 0, noise=0.0)[0], 0.02),
        (henon(121, 0.0), 0.02),
        (np.sin(np.arange(121.0) * 0.7) + np.cos(np.arange(121.0) * 1.3), 0.01),
    ],
    ids=["logistic map", "map of Hénon", "two waves"],
)
def test_maps_are_forecast_from_a_hundred_rows(rows, most):
    result = autoregress(rows[:120], 1, 1)
    assert abs(result.mean[0] - rows[120]) < most * rows.std()
    assert result.deviation[0] < 2 * most * rows.std()
    forecasts = trained_prior().forecast(rows[None, 8:120], np.array([112]), 1, 1)
    assert abs(forecasts.median[0, 0] - rows[120]) < most * rows.std()
    share = forecasts.weights[[name for name in forecasts.weights.index if "regression" in name]]
    assert share.sum() > 0.95
    np.testing.assert_allclose(forecasts.weights.sum(), 1.0)


@pytest.mark.slow
def test_intervals_of_systems_with_noise_cover():
    covered = []
    for seed in range(40):
        for system in (threshold_autoregression, bilinear):
            rows = system(206, seed)[0]
            drawn = trained_prior().forecast(
                rows[None, 88:200], np.array([112]), 1, 6, earlier=rows[None, :88]
            )
            low, high = drawn.at([0.1, 0.9])[0]
            covered.append((low <= rows[200:]) & (rows[200:] <= high))
    assert 0.7 < np.mean(covered) < 0.9


def test_series_of_structural_models_are_left_to_the_network():
    season = SeriesPrior(["structural"]).sample(30, 100, 12, 0)
    prior = trained_prior()
    lengths = np.full(30, 100)
    with_them = prior.forecast(season, lengths, 12, 12)
    alone = replace(prior, autoregression=False).forecast(season, lengths, 12, 12)
    share = with_them.weights[[name for name in with_them.weights.index if "regression" in name]]
    assert share.sum() < 0.4
    width = np.ptp(alone.at([0.1, 0.9]), 1)
    assert np.median(np.abs(with_them.median - alone.median) / width) < 0.1


@pytest.mark.parametrize("factor", [2.0**-30, 1 / 3, -5.0, 1e8])
@pytest.mark.parametrize("level", [0.0, 10.0])
def test_units_and_levels_change_nothing(factor, level):
    rows = henon(100)
    one, other = autoregress(rows, 1, H), autoregress(factor * (rows + level), 1, H)
    np.testing.assert_allclose(other.mean, factor * (one.mean + level), rtol=1e-6)
    np.testing.assert_allclose(other.deviation, abs(factor) * one.deviation, rtol=1e-5)
    np.testing.assert_allclose(
        other.log_density, one.log_density - np.log(abs(factor)), rtol=1e-5, atol=1e-5
    )
    assert other.best == one.best


def test_rows_after_a_gap_are_not_regressed_on():
    rows = henon(120, 0.0)
    complete = autoregress(rows[:100], 1, H)
    rows[[30, 61, 62]] = np.nan
    result = autoregress(rows[:100], 1, H)
    assert len(result.log_density) == 97
    # The longest lag of any choice is eight rows.
    missing = np.isnan(result.log_density)
    assert missing.sum() == 8 + 8 + 8  # the first, and those after either gap
    assert result.deviation[0] < 2 * complete.deviation[0]
    assert abs(result.mean[0] - rows[100]) < 0.05 * np.nanstd(rows)
    rows[::5] = np.nan
    assert autoregress(rows, 1, H) is None
    padded, bare = np.append(np.full(200, np.nan), henon(100)), henon(100)
    np.testing.assert_array_equal(autoregress(padded, 1, H).mean, autoregress(bare, 1, H).mean)


def test_a_gap_does_not_reward_a_walk_for_what_bridges_it():
    rng = np.random.default_rng(0)
    gains = []
    for _ in range(12):
        rows = rng.standard_normal(150).cumsum()
        alone = autoregress(rows, 1, 1)
        rows[rng.choice(np.arange(20, 140), 6, False)] = np.nan
        gaps = autoregress(rows, 1, 1)
        gains.append(np.nanmean(gaps.log_density) - np.nanmean(alone.log_density))
    assert abs(np.mean(gains)) < 0.05


@pytest.mark.parametrize("season_length", [1, 2, 4, 5, 12])
def test_no_lag_is_taken_twice(season_length):
    for lags in autoregression.lag_choices(season_length, 200):
        assert lags == tuple(sorted(set(lags)))


def test_a_path_goes_on_where_few_rows_follow():
    t = np.arange(450)
    rows = 3 * np.sin(2 * np.pi * t / 17) + 0.05 * np.random.default_rng(0).standard_normal(450)
    drawn = trained_prior().forecast(rows[None, 138:250], np.array([112]), 1, 200)
    np.testing.assert_allclose(drawn.median[0], rows[250:], atol=1.0)
    low, high = drawn.at([0.1, 0.9])[0]
    assert (high - low)[96] < 2 * (high - low)[95]


@pytest.mark.parametrize(
    "call", [(np.ones((5, 1)), 1, 2), (np.ones(30), 0, 2), (np.ones(30), 1, 0)]
)
def test_what_cannot_be_used_is_refused(call):
    with pytest.raises((TypeError, ValueError), match="must"):
        autoregress(*call)


@pytest.mark.parametrize(
    "rows", [np.full(50, 3.0), henon(19), np.full(30, np.nan), np.array([]), np.array([1.0])]
)
def test_little_to_regress_on_gives_nothing(rows):
    assert autoregress(rows, 1, 3) is None


def test_a_search_that_is_hopeless_ends_at_once():
    rows = henon(100)
    far_better = 1e4 * np.arange(100.0)
    assert autoregress(rows, 1, H, far_better) is None
    assert autoregress(rows, 1, H, -far_better) is not None


@settings(max_examples=40, deadline=None)
@given(
    data=st.data(),
    n_rows=st.integers(3, 60),
    season_length=st.sampled_from([1, 2, 4, 7, 12]),
    h=st.integers(1, 30),
)
def test_any_rows_are_forecast_by_finite_quantiles_in_order(data, n_rows, season_length, h):
    values = st.floats(-1e6, 1e6, allow_subnormal=False) | st.integers(-3, 3).map(float)
    rows = np.array(data.draw(st.lists(values, min_size=n_rows, max_size=n_rows)))
    forecasts = trained_prior().forecast(rows[None], np.array([n_rows]), season_length, h)
    assert np.isfinite(forecasts.quantiles).all()
    tolerance = 1e-9 * max(1.0, np.abs(rows).max())
    assert (np.diff(forecasts.quantiles, axis=1) >= -tolerance).all()
    np.testing.assert_allclose(forecasts.weights.sum(), 1.0)


class TestForecaster:
    """Autoregressions behind the forecaster: earlier rows, files, components, summaries."""

    @pytest.fixture(scope="class")
    def rows(self):
        return henon(230)

    @pytest.fixture(scope="class")
    def model(self, rows):
        return ParaRNNForecaster(H).fit(frame(rows[:220]))

    def test_earlier_rows_are_read(self, model, rows):
        state = model.state_
        window = window_rows(1)
        np.testing.assert_array_equal(state.tail[0, :, 0], rows[220 - window : 220])
        n_earlier = AUTOREGRESSION_ROWS - window
        np.testing.assert_array_equal(
            state.earlier[0, :, 0],
            np.append(np.full(n_earlier - 220 + window, np.nan), rows[: 220 - window]),
        )
        alone = ParaRNNForecaster(H).fit(frame(rows[220 - window : 220]))
        assert not np.allclose(model.predict(), alone.predict())

    def test_update_reads_what_a_fit_reads(self, rows):
        shorter = ParaRNNForecaster(H).fit(frame(rows[:150]))
        longer = ParaRNNForecaster(H).fit(frame(rows[:220]))
        shorter.update(frame(rows[150:220], 150))
        np.testing.assert_array_equal(shorter.state_.earlier, longer.state_.earlier)
        np.testing.assert_array_equal(np.asarray(shorter.predict()), np.asarray(longer.predict()))

    @pytest.mark.parametrize("size", [10.0, 1e3, 1e200])
    def test_a_gross_error_spoils_nothing_on_either_side_of_the_window(self, size):
        rows = henon(300, 0.0)
        clean = ParaRNNForecaster(H, prior="only").fit(frame(rows)).predict()
        border = 300 - window_rows(1)
        for row in (border - 30, border - 1, border, border + 40):
            changed = rows.copy()
            changed[row] = size
            forecast = ParaRNNForecaster(H, prior="only").fit(frame(changed)).predict()
            distance = np.abs(forecast["y"] - clean["y"]).to_numpy()
            assert (distance[:3] < 0.1 * rows.std()).all(), row

    def test_weights_of_two_futures_sum_to_one(self):
        rows = henon(300, 0.0)
        rows[-1] = 1e3
        weights = ParaRNNForecaster(H, prior="only").fit(frame(rows)).summary().weights
        np.testing.assert_allclose(weights.sum(), 1.0)
        assert weights.notna().all()

    def test_the_notes_say_what_is_estimated(self, model):
        text = " ".join(str(model.summary()).split())
        assert "autoregressions are estimated from these" in text
        assert "Autoregressions: " in text

    def test_a_file_keeps_them(self, model, tmp_path):
        model.save(tmp_path / "model.tsrnn")
        read = load(tmp_path / "model.tsrnn")
        np.testing.assert_array_equal(np.asarray(read.predict(9)), np.asarray(model.predict(9)))

    def test_the_summary_names_them(self, model):
        assert "nonlinear autoregression of lags 1, 2" in str(model.summary())

    def test_parts_add_up_to_the_forecast(self, model):
        parts = model.contributions()
        np.testing.assert_allclose(parts.sum(axis=1), np.ravel(model.predict()))
        state = model.state_
        rows, counts = state.last_rows
        components = structural_components(
            model.fitted_.prior, rows, counts, 1, H, state.earlier_rows
        )
        total = components.parts.sum(-1) + components.network
        np.testing.assert_allclose(total.ravel(), np.ravel(model.predict()))
