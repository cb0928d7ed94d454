"""Components of the prior network's forecasts against filters of single models."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from statsmodels.tsa.statespace.structural import UnobservedComponents

from tsrnn.prior import (
    SEASONS,
    TRENDS,
    PriorNetwork,
    TrainedPrior,
    structural_components,
    trained_prior,
)

LEVEL, TREND, CYCLE, SEASON = range(4)


def single_model(trend, season=0, scale=0):
    """Return a prior network that gives one structural model all the weight, and no shift."""
    size = {"hidden_size": 2, "n_layers": 1, "width": 4}
    network = PriorNetwork(**size)
    with torch.no_grad():
        network.common[scale, trend, season] = 1e6
    return replace(TrainedPrior.of(network, size, "A test."), autoregression=False)


def kalman(rows, trend, season, season_length, h):
    """Filter of one model by the textbook: means and covariances (d,), (d, d) after every row."""
    size = 3 + season_length
    move = np.eye(size)
    move[0, 1] = move[1, 1] = trend.damping
    move[2, 2] = trend.memory
    innovation = [trend.level, trend.slope, trend.cycle] + [season.change / season_length] * (
        size - 3
    )
    first = [1e4, trend.growth, trend.cycle / (1 - trend.memory**2)] + [season.size] * (size - 3)
    mean, covariance, squares = np.zeros(size), np.diag(first), 0.0
    means, covariances = [], []
    for t, value in enumerate([*rows, *[np.nan] * h]):
        if t:
            mean, covariance = move @ mean, move @ covariance @ move.T + np.diag(innovation)
        z = np.zeros(size)
        z[[0, 2, 3 + t % season_length]] = 1.0
        if np.isfinite(value):
            variance = z @ covariance @ z + trend.noise
            error = value - z @ mean
            mean = mean + covariance @ z / variance * error
            covariance = covariance - np.outer(covariance @ z, covariance @ z) / variance
            squares += error**2 / variance if t else 0.0
        means.append(mean)
        covariances.append(covariance)
    seen = rows[np.isfinite(rows)]
    change = np.abs(np.diff(seen)).mean()
    noise = (squares + (0.1 * change) ** 2) / len(seen)
    return np.array(means), noise * np.array(covariances)


def series(n_rows, season_length, seed=0):
    rng = np.random.default_rng(seed)
    season = np.resize(3 * rng.standard_normal(season_length), n_rows) * (season_length > 1)
    return 60 + rng.standard_normal(n_rows).cumsum() + season + rng.standard_normal(n_rows)


def expected_components(rows, trend, season, season_length, h):
    """Components and standard errors by the textbook filter, the season centred."""
    means, covariances = kalman(rows - rows[0], trend, season, season_length, h)
    n_rows = len(means)
    places = 3 + np.arange(n_rows) % season_length
    loadings = np.zeros((4, n_rows, 3 + season_length))
    loadings[LEVEL, :, 0] = loadings[TREND, :, 1] = loadings[CYCLE, :, 2] = 1.0
    loadings[LEVEL, :, 3:] = 1 / season_length
    loadings[SEASON, :, 3:] = -1 / season_length
    loadings[SEASON, np.arange(n_rows), places] += 1.0
    states = np.einsum("ctd,td->tc", loadings, means)
    variances = np.einsum("ctd,tde,cte->tc", loadings, covariances, loadings)
    return states + np.array([rows[0], 0, 0, 0]), np.sqrt(np.maximum(variances, 0))


@pytest.mark.parametrize("missing", [(), (5, 6, 30)])
@pytest.mark.parametrize("season_length", [1, 4])
@pytest.mark.parametrize("number", [0, 5, 15, 18, 23])
def test_one_model_is_its_kalman_filter(number, season_length, missing):
    kind, h = 3 if season_length > 1 else 0, 7
    rows = series(41, season_length)
    rows[list(missing)] = np.nan
    prior = single_model(number, kind)
    result = structural_components(prior, rows[None], np.array([41]), season_length, h)
    trend, season = TRENDS[number], SEASONS[kind]
    states, errors = expected_components(rows, trend, season, season_length, h)
    np.testing.assert_allclose(result.states[0], states, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(result.errors[0], errors, rtol=1e-6, atol=1e-6)
    grown = np.stack([states[40, LEVEL] + 0 * states[41:, 0], states[41:, 0] - states[40, 0]], -1)
    np.testing.assert_allclose(result.parts[0, :, :2], grown, atol=1e-6)
    np.testing.assert_allclose(result.network, 0, atol=1e-6)


def test_a_local_level_is_that_of_statsmodels():
    rows, trend = series(80, 1), TRENDS[2]
    model = UnobservedComponents(rows, "local level")
    _, noise = kalman(rows - rows[0], trend, SEASONS[0], 1, 1)
    scale = noise[-2][0, 0] / kalman_gain(trend, 80)
    model.ssm.initialize_known(rows[:1], np.array([[1e4 * scale]]))
    filtered = model.smooth([scale, trend.level * scale]).level
    result = structural_components(single_model(2), rows[None], np.array([80]), 1, 1)
    np.testing.assert_allclose(result.states[0, :80, LEVEL], filtered.filtered, rtol=1e-8)
    np.testing.assert_allclose(result.errors[0, :80, LEVEL] ** 2, filtered.filtered_cov, rtol=1e-6)


def kalman_gain(trend, n_rows):
    """Variance of the level after n rows over that of the noise."""
    variance = 1e4
    for t in range(n_rows):
        variance += trend.level if t else 0.0
        variance -= variance**2 / (variance + 1)
    return variance


def test_a_model_of_logarithms_has_a_season_in_proportion_to_the_level():
    rng = np.random.default_rng(1)
    t = np.arange(96)
    factors = np.array([0.8, 1.3, 1.1, 0.8])
    rows = 100 * 1.02**t * factors[t % 4] * np.exp(0.01 * rng.standard_normal(96))
    number = [trend.name for trend in TRENDS].index("level 0.3, drift")
    prior = single_model(number, 4, scale=1)
    result = structural_components(prior, rows[None], np.array([96]), 4, 8)
    level, trend, cycle, season = result.states[0].T
    assert not cycle.any()
    np.testing.assert_allclose((season / level)[-8:], np.tile(factors - 1, 2), atol=0.02)
    np.testing.assert_allclose((trend / level)[40:], 0.02, atol=0.004)
    logs = expected_components(np.log(rows), TRENDS[number], SEASONS[4], 4, 8)[0]
    fit = np.exp(logs[:, LEVEL] + logs[:, SEASON])
    np.testing.assert_allclose(level + season, fit, rtol=1e-6)


@pytest.mark.parametrize("season_length", [1, 4, 12])
def test_parts_add_up_to_the_forecast(season_length):
    prior, h = trained_prior(), 14
    rows = np.stack([series(70, season_length, seed) for seed in range(5)])
    rows[1] -= 70  # not positive: without logarithms
    rows[2] = 8.0
    rows[3, :30] *= 1e6
    rows[4, [0, 9, 20, 68, 69]] = np.nan
    lengths = np.array([70, 60, 70, 66, 70])
    result = structural_components(prior, rows, lengths, season_length, h)
    median = prior.forecast(rows, lengths, season_length, h).median
    total = result.parts.sum(-1) + result.network
    np.testing.assert_allclose(total, median, rtol=1e-9)
    np.testing.assert_allclose(result.states[2, :84, LEVEL], 8.0, rtol=1e-14)
    for unit, length in enumerate(lengths):
        of_unit = result.states[unit]
        assert np.isfinite(of_unit[unit == 4 : length + h]).all()
        assert np.isnan(of_unit[length + h :]).all()
        level = of_unit[length : length + h, LEVEL]
        np.testing.assert_allclose(level, result.parts[unit, :, :2].sum(-1))
        alone = structural_components(
            prior, rows[unit : unit + 1, :length], lengths[unit : unit + 1], season_length, h
        )
        scale = np.nanmax(np.abs(rows[unit]))
        np.testing.assert_allclose(
            alone.states[0] / scale, of_unit[: length + h] / scale, atol=1e-9
        )


def test_the_network_shifts_what_structural_models_say():
    rows = series(60, 4)[None]
    result = structural_components(trained_prior(), rows, np.array([60]), 4, 8)
    deviation = result.errors[0, 60:, LEVEL]
    assert result.network.any()
    assert (np.abs(result.network[0]) < 2 * deviation).all()


def test_a_season_has_mean_zero_over_a_season():
    rows = series(120, 12)[None]
    result = structural_components(trained_prior(), rows, np.array([120]), 12, 12)
    season = result.states[0, :, SEASON]
    assert np.abs(season[108:].reshape(2, 12).mean(1)).max() < 0.05 * season[108:].std()
    true = rows[0, 60:] - np.convolve(rows[0], np.ones(12) / 12, "same")[60:]
    assert np.corrcoef(season[60:114], true[:54])[0, 1] > 0.8


def test_errors_hold_what_the_rows_do_not_tell():
    rng = np.random.default_rng(0)
    level = 50 + rng.standard_normal((40, 90)).cumsum(1)
    rows = level + rng.standard_normal((40, 90))
    result = structural_components(trained_prior(), rows[:, :80], np.full(40, 80), 1, 10)
    score = (level - result.states[..., LEVEL]) / result.errors[..., LEVEL]
    assert 0.6 < score[:, 40:80].std() < 1.3
    assert 0.6 < score[:, 80:].std() < 1.4
    assert (np.diff(result.errors[:, 80:, LEVEL].mean(0)) > 0).all()


def test_units_apart_have_the_components_of_units_together(monkeypatch):
    rows = np.stack([series(60, 12, seed) for seed in range(3)])
    prior, lengths = trained_prior(), np.array([60, 50, 60])
    together = structural_components(prior, rows, lengths, 12, 5)
    monkeypatch.setattr("tsrnn.prior._components.AT_ONCE", 1)
    apart = structural_components(prior, rows, lengths, 12, 5)
    for name in ("states", "errors", "parts", "network"):
        np.testing.assert_allclose(getattr(apart, name), getattr(together, name), rtol=1e-9)
