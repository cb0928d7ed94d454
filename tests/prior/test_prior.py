"""The mixture: shares, layers, redraws, frames, arguments that cannot be used."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tsrnn
from tsrnn.baselines import Naive
from tsrnn.data import read_panel
from tsrnn.prior import COMPONENTS, SeriesPrior, ets, random_walk


def fives(rng, n_series, n_rows, season_length):
    return np.full((n_series, n_rows), 5.5)


def lines(rng, n_series, n_rows, season_length):
    return np.arange(n_rows) + rng.random((n_series, 1))


def sometimes_infinite(rng, n_series, n_rows, season_length):
    values = lines(rng, n_series, n_rows, season_length)
    values[rng.random(n_series) < 0.5, -1] = np.inf
    return values


def never_finite(rng, n_series, n_rows, season_length):
    return np.full((n_series, n_rows), np.nan)


def without_large_values(rng, values, season_length):
    return np.where(values > 5, np.nan, values)


def transposed(rng, n_series, n_rows, season_length):
    return np.ones((n_rows, n_series))


@settings(max_examples=40, deadline=None)
@given(
    n_series=st.integers(1, 30),
    n_rows=st.integers(2, 130),
    season_length=st.sampled_from([1, 2, 4, 5, 7, 12, 24, 52, 96, 365]),
    seed=st.integers(0, 2**31),
)
def test_series_are_finite_and_given_by_the_seed(n_series, n_rows, season_length, seed):
    values = SeriesPrior().sample(n_series, n_rows, season_length, seed)
    assert (values.shape, values.dtype) == ((n_series, n_rows), np.float64)
    assert np.isfinite(values).all()
    again = SeriesPrior().sample(n_series, n_rows, season_length, seed)
    np.testing.assert_array_equal(values, again)


def test_another_seed_gives_other_series():
    prior = SeriesPrior()
    assert not np.array_equal(prior.sample(5, 20), prior.sample(5, 20, random_state=1))


def test_a_generator_is_drawn_from():
    generator = np.random.default_rng(0)
    first, second = (SeriesPrior().sample(5, 20, random_state=generator) for _ in range(2))
    assert not np.array_equal(first, second)


def test_series_of_four_hundred_rows():
    assert np.isfinite(SeriesPrior().sample(60, 400, 24)).all()


@pytest.mark.slow
def test_many_series_are_drawn_in_parts():
    values = SeriesPrior().sample(25_000, 12, 4)
    assert len(np.unique(values, axis=0)) > 0.99 * len(values)


def test_most_series_are_positive_and_vary():
    values = SeriesPrior().sample(3000, 60, 12)
    assert 0.9 < (values > 0).all(1).mean() < 1
    assert (np.ptp(values, axis=1) > 0).mean() > 0.999


@pytest.mark.parametrize(
    ("components", "weights"),
    [
        ([fives, "random_walk"], [3, 1]),
        (["random_walk", fives], {"random_walk": 1, "fives": 3}),
        ({"a": random_walk, "b": fives}, {"b": 0.75, "a": 0.25}),
    ],
)
def test_weights_are_shares_of_components(components, weights):
    values = SeriesPrior(components, weights, layers=()).sample(4000, 10)
    constant = (values == 5.5).all(1)
    assert constant.mean() == pytest.approx(0.75, abs=0.03)
    # Components are mixed, not one after the other.
    assert constant[:1000].mean() == pytest.approx(0.75, abs=0.06)


def test_components_have_equal_shares_without_weights():
    values = SeriesPrior([fives, lines], layers=()).sample(4000, 10)
    assert (values == 5.5).all(1).mean() == pytest.approx(0.5, abs=0.03)


def test_default_shares_add_up_to_one():
    assert sum(share for _, share in COMPONENTS.values()) == pytest.approx(1)


def test_layers_change_series_in_their_order():
    layers = (lambda rng, values, m: values + 1, lambda rng, values, m: 10 * values)
    values = SeriesPrior([fives], layers=layers).sample(3, 4)
    np.testing.assert_array_equal(values, np.full((3, 4), 65.0))


def test_counts_pass_the_layers():
    values = SeriesPrior(["counts", "intermittent"]).sample(300, 40, 12)
    assert (values % 1 == 0).all()


def test_series_that_are_not_finite_are_drawn_again():
    values = SeriesPrior([sometimes_infinite], layers=()).sample(500, 6)
    assert np.isfinite(values).all()
    assert len(np.unique(values[:, 0])) == 500


def test_seasons_are_mixed_by_their_shares():
    def length(rng, n_series, n_rows, season_length):
        return np.full((n_series, n_rows), season_length + 0.5)

    values = SeriesPrior([length], layers=()).sample(4000, 3, {12: 3, 4: 1})
    assert set(np.unique(values)) == {4.5, 12.5}
    assert (values[:500] == 12.5).mean() == pytest.approx(0.75, abs=0.06)


@pytest.mark.parametrize("freq", ["MS", "QS", "YS", "D", "h", 1, 5])
def test_a_frame_has_series_of_unequal_lengths_that_end_together(freq):
    frame = SeriesPrior().sample_frame(40, (8, 30), freq)
    rows = frame.groupby("unique_id").size()
    assert len(rows) == 40
    assert 8 <= rows.min() < rows.max() <= 30
    assert frame.groupby("unique_id")["ds"].last().nunique() == 1
    panel = read_panel(frame)
    assert panel.lengths.tolist() == rows.tolist()
    assert np.isfinite(frame["y"]).all()


def test_lengths_can_be_given():
    given = [9, 30, 8, 12, 12]
    frame = SeriesPrior().sample_frame(5, given)
    assert frame.groupby("unique_id").size().tolist() == given
    assert (SeriesPrior().sample_frame(4, 10).groupby("unique_id").size() == 10).all()


def test_the_frequency_of_a_frame_gives_its_season():
    def season(rng, n_series, n_rows, season_length):
        return np.full((n_series, n_rows), season_length + 0.5)

    prior = SeriesPrior([season], layers=())
    assert (prior.sample_frame(3, 10, "QS")["y"] == 4.5).all()
    assert (prior.sample_frame(3, 10, "QS", season_length=2)["y"] == 2.5).all()


def test_forecasters_take_a_frame():
    frame = SeriesPrior().sample_frame(6, (20, 40), "MS")
    forecasts = Naive(horizon=3).fit(frame).predict()
    assert len(forecasts) == 18


@pytest.mark.slow
def test_a_network_is_trained_on_a_frame():
    frame = SeriesPrior().sample_frame(30, (40, 60), "MS")
    model = tsrnn.ParaRNNForecaster(horizon=6, max_epochs=2).fit(frame)
    assert isinstance(model.predict(), pd.DataFrame)


@pytest.mark.parametrize(
    ("arguments", "call", "error", "message"),
    [
        ({"components": ["arima"]}, (2, 9), ValueError, "has the names .*'ets'.*'arima'"),
        ({"components": [3]}, (2, 9), TypeError, r"functions component\(rng, .* got 3"),
        ({"components": []}, (2, 9), ValueError, "at least one component"),
        ({"components": [ets, ets]}, (2, 9), ValueError, "'ets' twice"),
        ({"weights": [1, 2]}, (2, 9), ValueError, "weights needs 15 finite numbers"),
        ({"weights": {"ets": 1}}, (2, 9), ValueError, "weights needs the names"),
        ({"components": ["ets"], "weights": [-1]}, (2, 9), ValueError, "at least 0"),
        ({"components": ["ets"], "weights": [0]}, (2, 9), ValueError, "positive sum"),
        (
            {"components": [transposed]},
            (2, 9),
            ValueError,
            r"'transposed' must .* \(2, 9\).*\(9, 2\)",
        ),
        ({"components": [never_finite]}, (2, 9), ValueError, "'never_finite' gave values"),
        (
            {"components": [fives], "layers": [without_large_values]},
            (2, 9),
            ValueError,
            "layers must .* finite",
        ),
        ({}, (0, 9), ValueError, "n_series"),
        ({}, (2, 1), ValueError, "n_rows must be at least 2"),
        ({}, (2, 2.5), TypeError, "n_rows"),
        ({}, (2, 9, 0), ValueError, "season_length"),
        ({}, (2, 9, {}), ValueError, "season_length"),
        ({}, (2, 9, {12: -1}), ValueError, "season_length needs 1 finite"),
        ({}, (2, 9, 1, "a"), TypeError, "random_state"),
    ],
)
def test_an_argument_that_cannot_be_used_is_named(arguments, call, error, message):
    with pytest.raises(error, match=message):
        SeriesPrior(**arguments).sample(*call)


@pytest.mark.parametrize(
    ("lengths", "message"),
    [
        (1, "at least 2"),
        ((9, 8), "least before the most"),
        ([9, 8], "each of the 5 series; got 2"),
        (2.5, "integer"),
        ("a", "integer"),
    ],
)
def test_lengths_that_cannot_be_used_are_named(lengths, message):
    with pytest.raises(ValueError, match=message):
        SeriesPrior().sample_frame(5, lengths)


def test_a_prior_is_equal_to_its_copy_and_frozen():
    assert SeriesPrior() == SeriesPrior()
    with pytest.raises(AttributeError):
        SeriesPrior().layers = ()
