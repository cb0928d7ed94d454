"""The network of a combination: its start, weights that sum to one, scales, files."""

import numpy as np
import pytest

from tsrnn.prior import (
    COMBINED,
    CombinerNetwork,
    TrainedCombiner,
    trained_combiner,
    trained_prior,
)

SEASON, H = 4, 6


def histories(n=5, length=40, seed=0):
    rng = np.random.default_rng(seed)
    return 50 + rng.normal(size=(n, length)).cumsum(1) + 3 * np.sin(np.arange(length) * np.pi / 2)


def prior_forecasts(values, h=H):
    lengths = np.full(len(values), values.shape[1])
    return trained_prior().forecast(values, lengths, SEASON, h)


def members(prior, seed=1, size=2.0):
    shape = len(prior.median), len(COMBINED), prior.median.shape[1]
    return prior.median[:, None] + size * np.random.default_rng(seed).normal(size=shape)


def untrained():
    size = {"state_size": trained_prior().network.state_size}
    return TrainedCombiner.of(CombinerNetwork(**size).eval(), size, "not trained")


class TestStart:
    def test_is_the_mean_where_all_agree(self):
        prior = prior_forecasts(histories())
        combined = untrained().combine(prior, members(prior, size=0.0), SEASON)
        np.testing.assert_allclose(combined.weights, 0.2)
        np.testing.assert_allclose(combined.quantiles, prior.quantiles, rtol=1e-9)

    def test_leaves_out_a_forecast_far_from_the_others(self):
        prior = prior_forecasts(histories())
        forecasts = members(prior, size=0.1)
        forecasts[:, 2] += 1000
        combined = untrained().combine(prior, forecasts, SEASON)
        assert (combined.weights[:, 2] < 0.01).all()


@pytest.mark.parametrize("combiner", [untrained, trained_combiner])
class TestCombinations:
    def test_lie_between_the_forecasts(self, combiner):
        prior = prior_forecasts(histories())
        forecasts = members(prior)
        combined = combiner().combine(prior, forecasts, SEASON)
        np.testing.assert_allclose(combined.weights.sum(1), 1.0)
        five = np.concatenate([forecasts, prior.median[:, None]], 1)
        assert (combined.median >= five.min(1)).all()
        assert (combined.median <= five.max(1)).all()
        assert (np.diff(combined.quantiles, axis=1) > 0).all()
        np.testing.assert_allclose(combined.at([0.5])[:, 0], combined.median)

    def test_scale_with_the_data(self, combiner):
        values = histories()
        prior, larger = prior_forecasts(values), prior_forecasts(1024 * values)
        forecasts = members(prior)
        combined = combiner().combine(prior, forecasts, SEASON)
        other = combiner().combine(larger, 1024 * forecasts, SEASON)
        np.testing.assert_allclose(other.median, 1024 * combined.median, rtol=1e-9)
        np.testing.assert_allclose(other.quantiles, 1024 * combined.quantiles, rtol=1e-9)

    def test_of_a_unit_are_those_of_it_alone(self, combiner):
        prior = prior_forecasts(histories())
        forecasts = members(prior)
        combined = combiner().combine(prior, forecasts, SEASON)
        alone = combiner().combine(prior_forecasts(histories()[2:3]), forecasts[2:3], SEASON)
        np.testing.assert_allclose(alone.median, combined.median[2:3], rtol=1e-9)

    def test_do_not_depend_on_the_steps_that_follow(self, combiner):
        prior = prior_forecasts(histories())
        forecasts = members(prior)
        combined = combiner().combine(prior, forecasts, SEASON)
        fewer = combiner().combine(
            type(prior)(prior.median[:, :2], prior.quantiles[..., :2], prior.weights, prior.state),
            forecasts[..., :2],
            SEASON,
        )
        np.testing.assert_allclose(fewer.median, combined.median[:, :2], rtol=1e-9)

    def test_do_without_a_model_that_has_no_forecast(self, combiner):
        prior = prior_forecasts(histories())
        forecasts = members(prior)
        forecasts[0, 1] = np.nan
        forecasts[1] = np.nan
        combined = combiner().combine(prior, forecasts, SEASON)
        assert (combined.weights[0, 1] == 0).all()
        np.testing.assert_allclose(combined.weights.sum(1), 1.0)
        np.testing.assert_allclose(combined.median[1], prior.median[1], rtol=1e-12)

    def test_of_constant_series(self, combiner):
        prior = prior_forecasts(np.full((2, 20), [[7.0], [0.0]]))
        combined = combiner().combine(prior, members(prior, size=0.0), SEASON)
        np.testing.assert_allclose(combined.median, [[7.0] * H, [0.0] * H])
        assert np.isfinite(combined.quantiles).all()


def test_files(tmp_path):
    path = tmp_path / "combiner.safetensors"
    combiner = trained_combiner()
    combiner.save(path)
    prior = prior_forecasts(histories())
    made, again = (
        each.combine(prior, members(prior), SEASON) for each in (combiner, trained_combiner(path))
    )
    np.testing.assert_array_equal(again.quantiles, made.quantiles)
    header, arrays = combiner.to_file()
    shapes = {name: (str(array.dtype), array.shape) for name, array in arrays.items()}
    assert shapes == TrainedCombiner.shapes(header["size"])
    kept = TrainedCombiner.from_file(header, arrays).combine(prior, members(prior), SEASON)
    np.testing.assert_array_equal(kept.quantiles, made.quantiles)
    trained_prior().save(tmp_path / "prior.safetensors")
    with pytest.raises((ValueError, TypeError, RuntimeError)):
        trained_combiner(tmp_path / "prior.safetensors")
