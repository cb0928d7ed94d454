"""The network of a combination: its start, weights that sum to one, scales, files."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from tsrnn.prior import COMBINED, CombinerNetwork, TrainedCombiner, trained_combiner, trained_prior

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


@pytest.fixture(scope="module")
def prior():
    return prior_forecasts(histories())


def test_the_start_is_the_mean_where_all_agree(prior):
    combined = untrained().combine(prior, members(prior, size=0.0), SEASON)
    np.testing.assert_allclose(combined.weights, 0.2)
    np.testing.assert_allclose(combined.quantiles, prior.quantiles, rtol=1e-9)


def test_the_start_leaves_out_a_forecast_far_from_the_others(prior):
    forecasts = members(prior, size=0.1)
    forecasts[:, 2] += 1000
    combined = untrained().combine(prior, forecasts, SEASON)
    assert (combined.weights[:, 2] < 0.01).all()


@pytest.fixture(scope="module", params=[untrained, trained_combiner])
def combine(request):
    return partial(request.param().combine, season_length=SEASON)


@pytest.fixture(scope="module")
def combined(combine, prior):
    return combine(prior, members(prior))


class TestCombinations:
    def test_lie_between_the_forecasts(self, combined, prior):
        np.testing.assert_allclose(combined.weights.sum(1), 1.0)
        five = np.concatenate([members(prior), prior.median[:, None]], 1)
        assert (combined.median >= five.min(1)).all()
        assert (combined.median <= five.max(1)).all()
        assert (np.diff(combined.quantiles, axis=1) > 0).all()
        np.testing.assert_allclose(combined.at([0.5])[:, 0], combined.median)

    def test_scale_with_the_data(self, combine, combined, prior):
        other = combine(prior_forecasts(1024 * histories()), 1024 * members(prior))
        np.testing.assert_allclose(other.median, 1024 * combined.median, rtol=1e-9)
        np.testing.assert_allclose(other.quantiles, 1024 * combined.quantiles, rtol=1e-9)

    def test_of_a_unit_are_those_of_it_alone(self, combine, combined, prior):
        alone = combine(prior_forecasts(histories()[2:3]), members(prior)[2:3])
        np.testing.assert_allclose(alone.median, combined.median[2:3], rtol=1e-9)

    def test_do_not_depend_on_the_steps_that_follow(self, combine, combined, prior):
        shorter = replace(prior, median=prior.median[:, :2], quantiles=prior.quantiles[..., :2])
        fewer = combine(shorter, members(prior)[..., :2])
        np.testing.assert_allclose(fewer.median, combined.median[:, :2], rtol=1e-9)

    def test_do_without_a_model_that_has_no_forecast(self, combine, prior):
        forecasts = members(prior)
        forecasts[0, 1] = forecasts[1] = np.nan
        combined = combine(prior, forecasts)
        assert (combined.weights[0, 1] == 0).all()
        np.testing.assert_allclose(combined.weights.sum(1), 1.0)
        np.testing.assert_allclose(combined.median[1], prior.median[1], rtol=1e-12)

    def test_of_constant_series(self, combine):
        constant = prior_forecasts(np.full((2, 20), [[7.0], [0.0]]))
        combined = combine(constant, members(constant, size=0.0))
        np.testing.assert_allclose(combined.median, [[7.0] * H, [0.0] * H])
        assert np.isfinite(combined.quantiles).all()


def test_files(tmp_path, prior):
    path = tmp_path / "combiner.safetensors"
    combiner = trained_combiner()
    combiner.save(path)
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
