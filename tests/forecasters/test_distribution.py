"""Learned distributions: their losses, quantiles and coverage; networks averaged; the refit."""

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats

from tsrnn import ParaRNNForecaster, load
from tsrnn.forecasters import HEADS

LEVELS = [50, 80, 95]
SIDE = (0.6, 0.7, 0.8, 0.9, 0.95, 0.975, 0.995)  # probabilities learned above the median
GRID = np.array([*(1 - p for p in reversed(SIDE)), 0.5, *SIDE])


def head(name, size=None, seed=0):
    """Return a head with shapes that depend on the state."""
    made = HEADS[name](4, 3, 2).double()
    made.start(torch.full((3, 2), 0.7) if size is None else size)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        made.map.weight.normal_(generator=generator)
    return made


def draws(*shape, seed=1):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


class TestHeads:
    @pytest.mark.parametrize("name", HEADS)
    def test_the_start_is_as_large_as_it_is_told(self, name):
        size = torch.tensor([[0.1, 0.3], [0.5, 0.7], [0.9, 1.1]], dtype=torch.float64)
        made = HEADS[name](4, 3, 2).double()
        made.start(size)
        shape = made(draws(5, 4))
        p = (stats.norm.cdf(1), stats.norm.cdf(-1))
        found = made.quantiles(shape, p).detach().numpy()
        if name == "quantile":
            expected = np.stack([size.numpy(), -size.numpy()], -1)
            np.testing.assert_allclose(found, np.broadcast_to(expected, found.shape), rtol=0.02)
        else:
            scale = size.numpy() * np.sqrt(6 / 8)
            expected = scale[..., None] * stats.t.ppf(p, 8)
            np.testing.assert_allclose(found, np.broadcast_to(expected, found.shape), rtol=1e-3)

    def test_quantiles_do_not_cross_and_are_those_learned(self):
        made = head("quantile")
        shape = made(draws(50, 4))
        found = made.quantiles(shape, GRID.tolist())
        assert (found.diff(dim=-1) > 0).all()
        torch.testing.assert_close(found[..., len(SIDE)], torch.zeros_like(found[..., 0]))
        torch.testing.assert_close(found, made._offsets(shape))

    def test_the_check_loss_is_that_of_each_quantile(self):
        made, error, spread = head("quantile"), draws(6, 3, 2), draws(6, 1, 2, seed=2).abs()
        shape = made(draws(6, 4, seed=3))
        ends = (made.quantiles(shape, GRID.tolist()) * spread[..., None]).detach().numpy()
        e = error.numpy()[..., None] - ends
        expected = 2 * np.mean(np.where(e > 0, GRID * e, (GRID - 1) * e), -1)
        np.testing.assert_allclose(made.loss(error, spread, shape).detach(), expected)

    def test_the_likelihood_is_that_of_scipy(self):
        made, error, spread = head("student-t"), draws(6, 3, 2), draws(6, 1, 2, seed=2).abs()
        shape = made(draws(6, 4, seed=3))
        scale, degrees = (part.detach().numpy() for part in made._parameters_of(shape))
        expected = -stats.t.logpdf(error.numpy(), degrees, scale=scale * spread.numpy())
        np.testing.assert_allclose(made.loss(error, spread, shape).detach(), expected, rtol=1e-12)
        found = made.quantiles(shape, [0.1, 0.9]).detach().numpy()
        np.testing.assert_allclose(found[..., 1], stats.t.ppf(0.9, degrees, scale=scale))
        np.testing.assert_allclose(found[..., 0], -found[..., 1])

    @pytest.mark.parametrize("name", HEADS)
    def test_gradients(self, name):
        made, error, spread = head(name), draws(2, 3, 2), draws(2, 1, 2, seed=2).abs()
        states = draws(2, 4, seed=3).requires_grad_()
        assert torch.autograd.gradcheck(lambda s: made.loss(error, spread, made(s)), states)

    def test_levels_beyond_those_learned_are_refused(self):
        with pytest.raises(ValueError, match="levels up to 99; got 99.9"):
            head("quantile").quantiles(torch.zeros(1, 3, 2, 14), [0.9995])

    def test_skewed_errors_are_learned(self):
        """The check loss finds the quantiles of an exponential distribution."""
        made = HEADS["quantile"](1, 1, 1).double()
        made.start(torch.ones(1, 1))
        error = torch.as_tensor(np.random.default_rng(0).exponential(size=(4000, 1, 1)))
        error = error - np.log(2)  # the median at zero
        optimiser = torch.optim.Adam(made.parameters(), 0.05)
        states = torch.zeros(1, 1, dtype=torch.float64)
        for _ in range(400):
            optimiser.zero_grad()
            made.loss(error, torch.ones(1), made(states)).mean().backward()
            optimiser.step()
        found = made.quantiles(made(states), [0.05, 0.2, 0.8, 0.95]).detach().numpy().ravel()
        expected = stats.expon.ppf([0.05, 0.2, 0.8, 0.95]) - np.log(2)
        np.testing.assert_allclose(found, expected, atol=0.08)

    def test_degrees_of_freedom_are_learned(self):
        made = HEADS["student-t"](1, 1, 1).double()
        made.start(torch.ones(1, 1))
        error = torch.as_tensor(stats.t.rvs(4, size=(6000, 1, 1), random_state=1))
        optimiser = torch.optim.Adam(made.parameters(), 0.05)
        states = torch.zeros(1, 1, dtype=torch.float64)
        for _ in range(300):
            optimiser.zero_grad()
            made.loss(error, torch.ones(1), made(states)).mean().backward()
            optimiser.step()
        scale, degrees = made._parameters_of(made(states))
        assert scale.item() == pytest.approx(1, abs=0.06)
        assert degrees.item() == pytest.approx(4, abs=0.8)


@pytest.fixture(scope="module")
def skewed():
    """Return a daily series with skewed errors."""
    draw = np.random.default_rng(3).exponential(size=700) - 1
    y = np.zeros(700)
    for t in range(1, 700):
        y[t] = 0.7 * y[t - 1] + draw[t]
    return pd.Series(y, index=pd.date_range("2000-01-01", periods=700, freq="D"), name="y")


def settings(**changes):
    small = {"horizon": 4, "input_size": 12, "hidden_size": 8, "n_layers": 1, "max_epochs": 3}
    return ParaRNNForecaster(**(small | {"random_state": 0, "refit": False} | changes))


BEYOND = pytest.mark.filterwarnings("ignore:intervals are calibrated for 4 steps")


@BEYOND
@pytest.mark.parametrize("intervals", HEADS)
class TestForecasters:
    def test_intervals_are_nested_and_survive_a_file(self, skewed, intervals, tmp_path):
        model = settings(intervals=intervals).fit(skewed)
        frame = model.predict(7, level=LEVELS)  # beyond the horizon too
        for inner, outer in ((50, 80), (80, 95)):
            assert (frame[f"y-lo-{inner}"] > frame[f"y-lo-{outer}"]).all()
            assert (frame[f"y-hi-{inner}"] < frame[f"y-hi-{outer}"]).all()
        model.save(tmp_path / "m")
        again = load(tmp_path / "m")
        pd.testing.assert_frame_equal(again.predict(7, level=LEVELS), frame)
        text = " ".join(str(model.summary()).split())
        assert "no guarantee" in text

    def test_rolling_forecasts_are_those_after_an_update(self, skewed, intervals):
        model = settings(intervals=intervals).fit(skewed.iloc[:600])
        rolled = model.predict_rolling(skewed.iloc[600:610], level=90)
        model.update(skewed.iloc[600:604])
        alone = model.predict(level=90)
        last = rolled[rolled["cutoff"] == skewed.index[603]].drop(columns="cutoff")
        pd.testing.assert_frame_equal(last, alone, check_freq=False, rtol=1e-4)

    def test_the_loss_is_their_own(self, skewed, intervals):
        with pytest.raises(ValueError, match="learns by a loss of its own; got loss='mae'"):
            settings(intervals=intervals, loss="mae").fit(skewed)


@pytest.mark.slow
def test_a_learned_distribution_is_skewed_where_errors_are(skewed):
    frame = settings(intervals="quantile", max_epochs=20).fit(skewed).predict(1, level=95)
    row = frame.iloc[0]
    assert row["y-hi-95"] - row["y"] > 1.3 * (row["y"] - row["y-lo-95"])


@BEYOND
class TestEnsemble:
    def test_it_is_the_mean_of_its_networks(self, skewed):
        model = settings(n_estimators=3, network=True).fit(skewed)
        assert {entry["network"] for entry in model.history_} == {1, 2, 3}
        network, x = model.network_, torch.randn(2, 9, 1)
        each = torch.stack([member(x)[0] for member in network.networks])
        torch.testing.assert_close(network(x)[0], each.mean(0))
        assert each.std(0).max() > 0
        parts = model.contributions()
        assert sum(name.startswith("block") for name in parts) == 3 * 4
        np.testing.assert_allclose(parts.sum(axis=1), model.predict(4), atol=1e-9)

    def test_it_is_saved_and_updated(self, skewed, tmp_path):
        model = settings(n_estimators=2, intervals="student-t").fit(skewed.iloc[:600])
        model.save(tmp_path / "m")
        again = load(tmp_path / "m").update(skewed.iloc[600:620])
        model.update(skewed.iloc[600:620])
        pd.testing.assert_frame_equal(again.predict(6, level=90), model.predict(6, level=90))

    def test_the_first_network_is_the_one_trained_alone(self, skewed):
        alone, both = settings().fit(skewed), settings(n_estimators=2).fit(skewed)
        first = both.network_.networks[0].state_dict()
        for name, value in alone.network_.state_dict().items():
            torch.testing.assert_close(value, first[name])  # which runs beside the other


class TestRefit:
    def test_the_last_rows_count(self, skewed):
        """Rows of the validation part change the network only if it is trained on them."""
        changed = skewed.copy()
        changed.iloc[-100:-50] = changed.iloc[-100:-50][::-1].to_numpy()
        kept = settings(refit=True, max_epochs=1).fit(skewed).model_.state_dict()
        other = settings(refit=True, max_epochs=1).fit(changed).model_.state_dict()
        assert any(not torch.equal(kept[name], other[name]) for name in kept)

    def test_errors_and_epochs_are_those_of_the_validated_fit(self, skewed):
        once, again = settings().fit(skewed), settings(refit=True).fit(skewed)
        assert again.best_epoch_ == once.best_epoch_
        pd.testing.assert_frame_equal(again.validation_, once.validation_)
        np.testing.assert_array_equal(again.calibration_.errors, once.calibration_.errors)
        assert not np.allclose(again.predict(4), once.predict(4))

    def test_without_a_good_epoch_the_linear_path_alone_is_refitted(self, skewed):
        model = settings(refit=True, learning_rate=1e-12, max_epochs=1).fit(skewed)
        assert np.isfinite(model.predict(4)).all()


def test_a_loss_that_is_not_finite_stops_with_advice(skewed):
    with pytest.raises(FloatingPointError, match=r"diverged.*epoch 1 .*learning_rate=1e\+30"):
        settings(learning_rate=1e30, nonlinearity="identity").fit(skewed)


class TestStart:
    """Before a step of training the distribution is that of the linear path's errors."""

    @pytest.fixture
    def season(self):
        noise = 0.3 * np.random.default_rng(0).normal(size=900)
        index = pd.date_range("1950-01-01", periods=900, freq="MS")
        return pd.DataFrame({"y": np.sin(np.arange(900) * np.pi / 6) + noise}, index=index)

    @pytest.mark.parametrize("intervals", HEADS)
    def test_it_covers(self, small, season, intervals):
        model = small(intervals=intervals, learning_rate=1e-12, input_size=36).fit(season[:500])
        rolled = model.predict_rolling(season[500:], level=80)
        y = season["y"].loc[rolled.index]
        assert abs(y.between(rolled["y-lo-80"], rolled["y-hi-80"]).mean() - 0.8) < 0.06

    @pytest.mark.parametrize("intervals", HEADS)
    def test_a_constant_has_no_width(self, small, season, intervals):
        for frame in (season * 0 + 3, season.assign(k=3.0)):
            model = small(intervals=intervals, multivariate="joint").fit(frame[:200])
            found = model.predict(level=80).iloc[:, -3:]
            assert (found.to_numpy() == 3).all()

    def test_a_constant_series_does_not_narrow_those_of_others(self, season):
        head = HEADS["student-t"](4, 3, 1).double()
        shape = torch.zeros(5, 3, 1, 2, dtype=torch.float64)
        error, spread = draws(5, 3, 1), torch.ones(5, 1, 1, dtype=torch.float64)
        spread[2] = 0
        loss = head.loss(error * spread, spread, shape)
        assert (loss[2] == 0).all()
        assert (loss[[0, 1, 3, 4]] != 0).all()
