"""The network of the prior: quantiles, its file, and its training on simulated series."""

import copy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file
from scipy.stats import norm

from tsrnn.prior import (
    PRIOR_CELLS,
    PROBABILITIES,
    Forecasts,
    PriorNetwork,
    SeriesPrior,
    TrainedPrior,
    make_examples,
    structural_evidence,
    train_network,
    trained_combiner,
    trained_prior,
)
from tsrnn.prior._file import _shipped

SIZE = {"hidden_size": 4, "n_layers": 1, "width": 8}
ROWS = SeriesPrior().sample(6, 25, 4, 1)
LENGTHS = np.array([25, 3, 12, 25, 18, 7])


def new_network(seed=0, noise=0.0):
    torch.manual_seed(seed)
    network = PriorNetwork(**SIZE)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter += noise * torch.randn_like(parameter)
    return network.eval().requires_grad_(False)


def prior_of(network):
    return replace(TrainedPrior.of(network, SIZE, "Of a test."), autoregression=False)


def simulated(n_series=24, seed=0):
    series = list(SeriesPrior().sample(n_series, 40, 4, seed))
    return make_examples(series, 4, np.random.default_rng(seed), origins=3)


@pytest.mark.parametrize("season_length", [1, 4])
def test_an_untrained_network_weighs_by_the_posterior_to_a_power(season_length):
    prior = prior_of(new_network())
    forecasts = prior.forecast(ROWS, np.full(6, 25), season_length, 5)
    origins = np.zeros(ROWS.shape, bool)
    origins[:, -1] = True
    evidence = structural_evidence(ROWS, np.full(6, 25), origins, season_length, 5)
    weights = np.exp(np.exp(-1.2) * evidence.log_likelihood)
    weights = (weights / weights.sum(1, keepdims=True))[..., None]
    mean = (weights * evidence.forecasts).sum(1)
    spread = evidence.deviations**2 + (evidence.forecasts - mean[:, None]) ** 2
    deviation = np.sqrt((weights * spread).sum(1) + 1e-4)
    at = [
        evidence.last[:, None] + evidence.scale[:, None] * (mean + score * deviation)
        for score in norm.ppf(PROBABILITIES)
    ]
    np.testing.assert_allclose(forecasts.median, at[7], rtol=1e-6)
    # Past errors widen all intervals of a series by one factor.
    offsets, expected = (q - at[7][:, None] for q in (forecasts.quantiles, np.stack(at, 1)))
    factor = offsets[:, -1:, :1] / expected[:, -1:, :1]
    assert (factor > 0.5).all()
    assert (factor < 2).all()
    # A start of softplus is rounded to four digits.
    tolerance = 1e-3 * evidence.scale.max()
    np.testing.assert_allclose(offsets, factor * expected, atol=tolerance, rtol=1e-3)
    np.testing.assert_allclose(forecasts.weights, weights[..., 0].mean(0), atol=1e-6)
    assert list(forecasts.weights.index) == prior.names(season_length)


@pytest.mark.parametrize("h", [1, 2, 9, 200])
@pytest.mark.parametrize("season_length", [1, 12])
def test_quantiles_do_not_cross_at_any_horizon(h, season_length):
    for prior in (trained_prior(), prior_of(new_network(noise=0.5))):
        forecasts = prior.forecast(ROWS, LENGTHS, season_length, h)
        assert forecasts.quantiles.shape == (6, len(PROBABILITIES), h)
        assert (np.diff(forecasts.quantiles, axis=1) >= 0).all()
        np.testing.assert_allclose(forecasts.median, forecasts.quantiles[:, 7], rtol=1e-9)


def test_a_shorter_horizon_is_the_first_part_of_a_longer_one():
    long, short = (trained_prior().forecast(ROWS, LENGTHS, 4, h) for h in (12, 3))
    np.testing.assert_allclose(short.quantiles, long.quantiles[:, :, :3], rtol=1e-9)


def test_a_unit_is_forecast_as_alone():
    together = trained_prior().forecast(ROWS, LENGTHS, 4, 6)
    for i, n in enumerate(LENGTHS):
        alone = trained_prior().forecast(ROWS[[i], :n], LENGTHS[[i]], 4, 6)
        np.testing.assert_allclose(together.quantiles[i], alone.quantiles[0], rtol=1e-6)


@pytest.mark.parametrize("factor", [2.0**-30, 0.1, 1e100, 1e-100])
def test_forecasts_have_the_unit_of_the_data(factor):
    one, other = (trained_prior().forecast(c * ROWS, LENGTHS, 4, 6) for c in (1, factor))
    np.testing.assert_allclose(other.quantiles, factor * one.quantiles, rtol=1e-5)


def test_quantiles_of_a_normal_distribution_are_at_any_probability():
    known = norm.ppf(PROBABILITIES)[None, :, None]
    forecasts = Forecasts(np.zeros((1, 1)), known, None, None)
    asked = [1e-4, 0.005, 0.05, 0.31, 0.5, 0.62, 0.9, 0.9999]
    np.testing.assert_allclose(forecasts.at(asked)[0, :, 0], norm.ppf(asked), atol=1e-12)
    ranks = np.array(asked)[:, None, None]
    np.testing.assert_allclose(forecasts.at_ranks(ranks)[:, 0, 0], norm.ppf(asked), atol=1e-12)


ANY = st.one_of(
    st.just(0.0),
    st.integers(-5, 5).map(float),
    st.floats(-1e3, 1e3),
    st.floats(1e-300, 1e-290),
    st.floats(1e285, 1e290),
)


@settings(max_examples=50, deadline=None)
@given(
    values=st.lists(ANY, min_size=3, max_size=60),
    season_length=st.one_of(st.integers(1, 14), st.sampled_from([24, 52, 60])),
    h=st.integers(1, 4),
)
def test_forecasts_of_any_rows_are_finite_and_in_order(values, season_length, h):
    values = np.array([values])
    forecasts = trained_prior().forecast(values, np.array([values.size]), season_length, h)
    assert np.isfinite(forecasts.quantiles).all()
    assert np.isfinite(forecasts.median).all()
    assert (np.diff(forecasts.quantiles, axis=1) >= 0).all()


@settings(max_examples=20, deadline=None)
@given(value=ANY, n_rows=st.integers(3, 40), season_length=st.integers(1, 13))
def test_a_constant_is_forecast_without_width(value, n_rows, season_length):
    rows = np.full((1, n_rows), value)
    forecasts = trained_prior().forecast(rows, np.array([n_rows]), season_length, 3)
    np.testing.assert_array_equal(forecasts.quantiles, np.full((1, 15, 3), value))
    np.testing.assert_array_equal(forecasts.median, np.full((1, 3), value))


def test_a_file_that_is_written_anew_is_read_anew(tmp_path):
    path = tmp_path / "mine.safetensors"
    for noise in (0.3, 0.6):
        prior = prior_of(new_network(noise=noise))
        prior.save(path)
        for name, value in trained_prior(path).network.state_dict().items():
            assert torch.equal(value, prior.network.state_dict()[name])


class TestCells:
    """Networks whose recurrence is of another cell."""

    @pytest.fixture(params=PRIOR_CELLS)
    def prior(self, request):
        torch.manual_seed(0)
        size = SIZE | {"cell": request.param}
        network = PriorNetwork(**size)
        with torch.no_grad():
            for parameter in network.parameters():
                parameter += 0.3 * torch.randn_like(parameter)
        return TrainedPrior.of(network.eval().requires_grad_(False), size, "Of a test.")

    def test_each_reads_rows_up_to_the_origin_alone(self, prior):
        rows = np.array([20.0, 22, 21, 25, 27, 26, 30])
        whole = prior.forecast(rows[None, :5], np.array([5]), 1, 3)
        padded = np.stack([np.resize(rows[:5], 7), rows])
        beside = prior.forecast(padded, np.array([5, 7]), 1, 3)
        np.testing.assert_allclose(beside.quantiles[:1], whole.quantiles, rtol=1e-10)
        assert not np.allclose(beside.state[0, -4:], beside.state[1, -4:])

    def test_forecasts_have_the_unit_of_the_data(self, prior):
        plain, scaled = (prior.forecast(k * ROWS, LENGTHS, 4, 3).quantiles for k in (1.0, 1e6))
        np.testing.assert_allclose(scaled, 1e6 * plain, rtol=1e-7)

    @pytest.mark.parametrize("kind", [Path, str])
    def test_a_file_has_the_network(self, prior, kind, tmp_path):
        prior.save(tmp_path / "mine.safetensors")
        read = trained_prior(kind(tmp_path / "mine.safetensors"))
        assert (read.cell, read.size) == (prior.cell, prior.size)
        assert read.description == "Of a test."
        expected, got = (p.forecast(ROWS, LENGTHS, 4, 3).quantiles for p in (prior, read))
        np.testing.assert_allclose(got, expected, rtol=1e-12)

    @pytest.mark.few("rnn", "lru")
    def test_each_learns(self, prior):
        examples, losses = simulated(), []
        train_network(
            PriorNetwork(**prior.size), lambda _: [examples], epochs=8, batch_size=8,
            learning_rate=1e-2, report=losses.append,
        )  # fmt: skip
        assert losses[-1]["loss"] < losses[0]["loss"]

    @pytest.mark.parametrize("cell", PRIOR_CELLS)
    def test_the_package_has_a_network_of_each(self, cell):
        prior = trained_prior(cell=cell)
        assert prior.cell == prior.network.cell == cell
        assert prior.network.state_size == trained_prior().network.state_size
        assert 30_000 < prior.n_parameters < 40_000
        assert "M3" in prior.description

    def test_networks_of_files_without_a_cell_have_the_first(self, tmp_path):
        prior = prior_of(new_network())
        prior.save(tmp_path / "mine.safetensors")
        assert trained_prior(tmp_path / "mine.safetensors", cell="lem").cell == "rnn"
        names = [name for name in prior.network.state_dict() if name.startswith("rnn.")]
        assert "rnn.weight_hh_l0" in names

    @pytest.mark.parametrize("cell", ["gru", "", None])
    def test_there_are_no_others(self, cell):
        with pytest.raises(ValueError, match="'newton-lstm'.*; got"):
            PriorNetwork(cell=cell)
        with pytest.raises(ValueError, match="'newton-lstm'.*; got"):
            trained_prior(cell=cell)


def test_what_is_no_prior_network_is_named(tmp_path):
    path = tmp_path / "other"
    with pytest.raises(FileNotFoundError, match=r"no file .*other.*TrainedPrior\.save"):
        trained_prior(path)
    weights = new_network().state_dict()
    good = {"size": '{"hidden_size": 4, "n_layers": 1, "width": 8}', "description": "x"}
    for header in ({}, good | {"size": "{"}, good | {"size": "[]"}, good | {"size": '{"a": 1}'}):
        save_file(weights, path, header)
        with pytest.raises(ValueError, match="other' is no prior network"):
            trained_prior(path)
    save_file({"x": torch.zeros(2)}, path, good)
    with pytest.raises(ValueError, match="other' is no prior network"):
        trained_prior(path)
    path.write_text("text")
    with pytest.raises(ValueError, match="other' is no prior network"):
        trained_prior(path)


def trained(epochs, seed=0, **options):
    losses, examples = [], simulated()
    network = new_network().requires_grad_(True)
    train_network(
        network, lambda _: [examples], epochs=epochs, batch_size=8, seed=seed,
        learning_rate=1e-2, report=losses.append, **options,
    )  # fmt: skip
    return network.state_dict(), [epoch["loss"] for epoch in losses]


def same_weights(one, other):
    return all(torch.equal(value, other[name]) for name, value in one.items())


def test_training_lowers_the_loss_and_follows_from_the_seed():
    weights, losses = trained(8)
    assert losses[-1] < 0.99 * losses[0]
    assert same_weights(weights, trained(8)[0])
    assert not same_weights(weights, trained(8, seed=1)[0])


def test_training_goes_on_from_a_checkpoint_to_the_same_weights(tmp_path):
    whole, losses = trained(4)

    def draw(epoch):
        if epoch == 2:
            raise KeyboardInterrupt
        return [simulated()]

    path = tmp_path / "checkpoint"
    options = {"epochs": 4, "batch_size": 8, "learning_rate": 1e-2, "checkpoint": path}
    with pytest.raises(KeyboardInterrupt):
        train_network(new_network().requires_grad_(True), draw, **options)
    resumed, rest = trained(4, checkpoint=path)
    assert same_weights(resumed, whole)
    assert rest == losses[2:]


def test_examples_are_origins_and_the_rows_that_followed():
    series = [100 + np.arange(30.0), np.full(30, 5.0), 50 + np.arange(12.0) % 3]
    examples = make_examples(series, 1, np.random.default_rng(0), origins=4)
    assert len(examples) == 2  # a constant says nothing
    assert examples.indptr.tolist() == [0, 4, 8]
    # A line that rises by its mean change is k mean changes higher after k rows.
    ahead = examples.actual[:4]
    steps = np.broadcast_to(np.arange(1.0, 9.0), ahead.shape)
    known = np.isfinite(ahead)
    np.testing.assert_allclose(ahead[known], steps[known], rtol=1e-5)
    assert (known.sum(1) == np.minimum(29 - examples.rows[:4], 8)).all()


def test_a_copy_of_a_prior_forecasts_the_same():
    prior = trained_prior()
    ours, copied = (p.forecast(ROWS, LENGTHS, 4, 3) for p in (prior, copy.deepcopy(prior)))
    np.testing.assert_array_equal(copied.quantiles, ours.quantiles)


@pytest.mark.parametrize("read", [trained_prior, trained_combiner])
def test_reading_what_was_trained_draws_nothing(read):
    _shipped.cache_clear()  # as in a new process
    before = torch.get_rng_state()
    read()
    assert torch.equal(torch.get_rng_state(), before)
