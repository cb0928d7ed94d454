"""Models of counts: closed forms, an explicit loop, distributions that agree with each other."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import comb
from scipy.stats import betabinom, chisquare, nbinom, norm, poisson

from tsrnn.prior import (
    CountForecasts,
    CountHyper,
    CountModel,
    count_forecasts,
    count_hyper,
    count_models,
)

MEAN, SHAPE = 2.0, 0.8  # of the first level
BETA = np.array([0.7, 1.9])
IMPOSSIBLE = 1e-300
H = 4


def lengths_of(values):
    return np.full(len(values), values.shape[1])


def hyper_of(season_length=1, model=None, pace=None):
    """Hyperprior with even weights, or with that of a single model and pace."""
    n = len(count_models(season_length))
    weights, paces = np.full(n, 1 / n), np.full(4, 1 / 4)
    if model is not None:
        weights = np.where(np.arange(n) == model, 1.0, IMPOSSIBLE)
    if pace is not None:
        paces = np.where(np.arange(4) == pace, 1.0, IMPOSSIBLE)
    gamma = np.array([MEAN, SHAPE])
    return CountHyper(gamma, gamma, BETA, weights, paces)


def mixed_counts(n_series=5, n_rows=40, seed=0):
    """Counts of means from 0.4 to 8, zero-inflated."""
    rng = np.random.default_rng(seed)
    mean = np.geomspace(0.4, 8, n_series)[:, None]
    return rng.poisson(mean, (n_series, n_rows)) * (rng.random((n_series, n_rows)) < 0.8) * 1.0


@pytest.fixture(scope="module")
def forecasts():
    values = mixed_counts()
    values[2, 7:11] = np.nan
    return count_forecasts(values, np.array([40, 30, 40, 35, 40]), 4, H)


def reference(values, model, season_length=1, waves=None):
    """Log evidence of a model and its negative binomials at H steps, by the equations, in a loop.

    Each state is a dict of moments; sums are written out, not taken by matrices.
    """
    waves = np.ones((season_length, 1)) if waves is None else waves
    d = waves.shape[1]
    state = [np.log(MEAN)] + [0.0] * (d - 1)
    cov = [[0.0] * d for _ in range(d)]
    for i in range(d):
        cov[i][i] = model.season if i else 1 / SHAPE
    evidence, steps = 0.0, []
    for t in range(len(values) + H):
        if t:
            cov[0][0] += model.change
        x = waves[t % season_length]
        with_log = [sum(cov[i][j] * x[j] for j in range(d)) for i in range(d)]
        q = sum(with_log[i] * x[i] for i in range(d))
        m = np.exp(sum(state[i] * x[i] for i in range(d)))
        size = 1 / ((1 + model.dispersion) * (1 + q) - 1)
        if t >= len(values):
            steps.append((m, size, 1 / q))
            continue
        y = values[t]
        if np.isnan(y):
            continue
        evidence += nbinom.logpmf(y, size, size / (size + m))
        kappa = 1 / (1 + m * model.dispersion)
        # Gamma of shape 1 / q and rate 1 / (q m), updated by kappa counts of exposure one.
        shape, rate = 1 / q + kappa * y, 1 / (q * m) + kappa
        shift, lost = np.log(shape / rate) - np.log(m), q - 1 / shape
        for i in range(d):
            state[i] += with_log[i] * shift / q
            for j in range(d):
                cov[i][j] -= with_log[i] * with_log[j] / q**2 * lost
    return evidence, np.array(steps).T


class TestFilter:
    def test_constant_mean_is_the_posterior_of_gamma_and_poisson(self):
        values = np.random.default_rng(1).poisson(1.3, (1, 25)).astype(float)
        model = count_forecasts(values, lengths_of(values), 1, H, hyper_of(model=0))
        shape, rate = SHAPE + values.sum(), SHAPE / MEAN + 25
        law = nbinom(shape, rate / (rate + 1))
        np.testing.assert_allclose(model.pmf(12), np.tile(law.pmf(np.arange(12)), (1, H, 1)))
        np.testing.assert_allclose(model.mean, law.mean())
        # Marginal probability of all rows, not of each given those before.
        marginal = nbinom(SHAPE, SHAPE / MEAN / (SHAPE / MEAN + 25)).logpmf(values.sum())
        total = values.sum()
        ways = poisson.logpmf(values, 1.0).sum() - poisson.logpmf(total, 25.0)
        np.testing.assert_allclose(model.log_evidence, marginal + ways)

    @pytest.mark.parametrize("number", range(30), ids=lambda j: count_models(1)[j].name)
    def test_levels_are_filtered_as_by_hand(self, number):
        values = mixed_counts(n_rows=20)
        values[1, [0, 5, 6]] = np.nan
        model = count_models(1)[number]
        batch = count_forecasts(values, lengths_of(values), 1, H, hyper_of(model=number))
        for u, row in enumerate(values):
            evidence, (mean, size, shape) = reference(row, model)
            np.testing.assert_allclose(batch.log_evidence[u], evidence, rtol=1e-9)
            np.testing.assert_allclose(batch.component_mean[u, number], mean, rtol=1e-9)
            np.testing.assert_allclose(batch.component_size[u, number], size, rtol=1e-9)
            np.testing.assert_allclose(batch.component_shape[u, number], shape, rtol=1e-9)

    @pytest.mark.few("4", "7", "0.0-12")
    @pytest.mark.parametrize("season_length", [2, 3, 4, 7, 12, 24])
    @pytest.mark.parametrize("decay", [0.0, 1.0])
    def test_seasons_are_filtered_as_by_hand(self, season_length, decay):
        values = mixed_counts(2, 3 * season_length)
        values[0, 1] = np.nan
        models = count_models(season_length)
        frequencies = np.arange(1, min(season_length // 2, 6) + 1)
        scale = frequencies**-decay / np.sqrt((frequencies ** (-2 * decay)).sum())
        angle = 2 * np.pi * np.outer(np.arange(season_length), frequencies) / season_length
        waves = np.concatenate([np.cos(angle) * scale, np.sin(angle) * scale], 1)
        waves = waves[:, np.abs(waves).max(0) > 1e-9]
        waves = np.concatenate([np.ones((season_length, 1)), waves], 1)
        for number, model in enumerate(models):
            if not model.season or model.decay != decay or not model.change:
                continue
            batch = count_forecasts(
                values, lengths_of(values), season_length, H, hyper_of(season_length, number)
            )
            for u, row in enumerate(values):
                evidence, (mean, size, _) = reference(row, model, season_length, waves)
                np.testing.assert_allclose(batch.log_evidence[u], evidence, rtol=1e-8)
                np.testing.assert_allclose(batch.component_mean[u, number], mean, rtol=1e-8)
                np.testing.assert_allclose(batch.component_size[u, number], size, rtol=1e-8)

    def test_season_is_near_the_exact_posterior(self):
        """A season of two rows has two parameters: their posterior is summed on a grid."""
        rng, models = np.random.default_rng(3), count_models(2)
        number = next(j for j, m in enumerate(models) if m.season == 1.0 and not m.decay)
        values = rng.poisson(np.tile([2.0, 6.0], 25))[None].astype(float)
        model = count_forecasts(values, lengths_of(values), 2, 2, hyper_of(2, number))
        level, wave = np.meshgrid(np.linspace(-1, 3, 401), np.linspace(-2, 2, 401), indexing="ij")
        log = norm.logpdf(level, np.log(MEAN), SHAPE**-0.5) + norm.logpdf(wave)
        for place, sign in enumerate((1, -1)):
            mu = np.exp(level + sign * wave)
            log += values[0, place::2].sum() * np.log(mu) - 25 * mu
        weights = np.exp(log - log.max())
        weights /= weights.sum()
        for place, sign in enumerate((1, -1)):
            mu = np.exp(level + sign * wave)
            exact = [(weights * poisson.pmf(k, mu)).sum() for k in range(15)]
            np.testing.assert_allclose(model.pmf(15)[0, place], exact, atol=0.003)

    def test_hurdle_is_beta_occurrence_and_filtered_sizes(self):
        values = mixed_counts(n_rows=30)
        values[0, 3] = np.nan
        models = count_models(1)
        number = next(j for j, m in enumerate(models) if m.hurdle)
        batch = count_forecasts(values, lengths_of(values), 1, H, hyper_of(model=number, pace=0))
        for u, row in enumerate(values):
            rows, demands = (~np.isnan(row)).sum(), (row > 0).sum()
            sizes = np.where(row > 0, row - 1, np.nan)
            evidence, (mean, size, _) = reference(sizes, models[number])
            # The beta-binomial distribution is that of all orders of the occurrences.
            occurs = betabinom(rows, *BETA).logpmf(demands) - np.log(comb(rows, demands))
            np.testing.assert_allclose(batch.log_evidence[u], evidence + occurs, rtol=1e-9)
            demand = (BETA[0] + demands) / (BETA.sum() + rows)
            np.testing.assert_allclose(batch.demand[u], demand)
            np.testing.assert_allclose(batch.probability_of_zero[u], 1 - demand)
            law = nbinom(size, size / (size + mean))
            sizes = [demand * law.pmf(k) for k in range(5)]
            np.testing.assert_allclose(batch.pmf(6)[u, :, 1:].T, sizes)

    def test_probability_of_demand_follows_the_last_rows(self):
        values = np.r_[np.ones(30), np.zeros(10)][None]
        models = count_models(1)
        number = next(j for j, m in enumerate(models) if m.hurdle)
        demand = [
            count_forecasts(values, lengths_of(values), 1, 1, hyper_of(model=number, pace=k)).demand
            for k in range(4)
        ]
        assert (np.diff(np.ravel(demand)) < 0).all()
        assert demand[0] > 0.6
        assert demand[3] < 0.3


class TestMissingRows:
    def test_say_nothing_of_a_constant_mean(self):
        values = mixed_counts(n_rows=12)
        gaps = np.insert(values, [0, 4, 4, 12], np.nan, axis=1)
        constant = [j for j, m in enumerate(count_models(1)) if not m.change]
        full, sparse = (count_forecasts(v, lengths_of(v), 1, H, hyper_of()) for v in (values, gaps))
        np.testing.assert_allclose(
            full.component_mean[:, constant], sparse.component_mean[:, constant]
        )

    def test_after_the_end_are_no_rows(self):
        values, lengths = mixed_counts(), np.array([40, 17, 3, 1, 0])
        hyper = hyper_of(4)
        together = count_forecasts(values, lengths, 4, H, hyper)
        for u, n in enumerate(lengths):
            alone = count_forecasts(values[u : u + 1, :n], np.array([n]), 4, H, hyper)
            np.testing.assert_allclose(together.pmf(50)[u], alone.pmf(50)[0], rtol=1e-10)

    def test_forecast_of_a_series_does_not_depend_on_the_panel(self):
        values = mixed_counts(40)
        hyper = count_hyper(values, lengths_of(values), 12)
        panel = count_forecasts(values, lengths_of(values), 12, H, hyper)
        alone = count_forecasts(values[7:8], np.array([40]), 12, H, hyper)
        np.testing.assert_allclose(panel.pmf(60)[7], alone.pmf(60)[0], rtol=1e-10)


class TestDistribution:
    def test_probabilities_sum_to_one_with_the_mean(self, forecasts):
        pmf = forecasts.pmf(3000)
        np.testing.assert_allclose(pmf.sum(-1), 1, atol=1e-5)
        # Tails of the dispersed models fall slowly.
        np.testing.assert_allclose(pmf @ np.arange(3000), forecasts.mean, rtol=1e-3)

    def test_log_probability_and_distribution_function(self, forecasts):
        pmf = forecasts.pmf(80)
        np.testing.assert_allclose(forecasts.probability_of_zero, pmf[..., 0])
        for k in (0, 1, 2, 17, 79):
            values = np.full((5, H), float(k))
            np.testing.assert_allclose(forecasts.log_probability(values), np.log(pmf[..., k]))
            np.testing.assert_allclose(forecasts.cdf(values), pmf[..., : k + 1].sum(-1), atol=1e-7)
        assert (forecasts.cdf(np.full((5, H), -1.0)) == 0).all()
        values[0, 0] = np.nan
        assert np.isnan(forecasts.log_probability(values)).sum() == 1

    def test_quantiles_are_the_smallest_counts_that_reach(self, forecasts):
        levels = [0.025, 0.1, 0.5, 0.9, 0.975]
        below = forecasts.pmf(400).cumsum(-1)
        expected = [(below < p).sum(-1) for p in levels]
        np.testing.assert_array_equal(forecasts.quantile(levels).swapaxes(0, 1), expected)

    @pytest.mark.parametrize("mean", [20.0, 90.0, 300.0, 700.0, 1e6])
    def test_quantiles_of_large_counts(self, mean):
        values = np.random.default_rng(0).poisson(mean, (2, 40)).astype(float)
        values[1] = mixed_counts()[0]
        large = count_forecasts(values, lengths_of(values), 1, 2, hyper_of())
        levels = np.array([0.05, 0.5, 0.99])
        quantiles = large.quantile(levels)
        for k, p in enumerate(levels):
            assert (large.cdf(quantiles[:, k]) >= p - 1e-9).all()
            assert (large.cdf(quantiles[:, k] - 1) < p + 1e-9).all()
        np.testing.assert_allclose(quantiles[0, 1], mean, rtol=3 / mean**0.5)

    def test_quantiles_beyond_whole_floats_end(self):
        values = 1e12 * (np.arange(40.0)[None] % 2)
        large = count_forecasts(values, lengths_of(values), 1, 1)
        far = replace(large, component_mean=1e6 * large.component_mean)
        quantiles = far.quantile([0.1, 0.5, 0.99])[0, :, 0]
        assert (np.diff(quantiles) >= 0).all()
        assert 2**53 < quantiles[2] < 1e21

    def test_counts_that_are_too_large_are_refused(self):
        with pytest.raises(ValueError, match="whole numbers from 0 to 1e.12, or NaN; got 1e.16"):
            count_forecasts(np.array([[0, 1e16, 3]]), np.array([3]), 1, 1)

    @pytest.mark.few("0-3")
    @pytest.mark.parametrize("step", [0, H - 1])
    @pytest.mark.parametrize("series", [0, 2])
    def test_frequencies_of_paths(self, forecasts, step, series):
        n = 40_000
        paths = forecasts.sample(n, np.random.default_rng(5))
        assert paths.shape == (n, 5, H)
        pmf = forecasts.pmf(200)[series, step]
        cells = int((n * pmf > 20).sum())  # from zero on, as the distributions here fall
        drawn = np.bincount(paths[:, series, step].astype(int), minlength=cells)
        observed = np.r_[drawn[:cells], drawn[cells:].sum()]
        expected = n * np.r_[pmf[:cells], 1 - pmf[:cells].sum()]
        assert chisquare(observed, expected).pvalue > 1e-3

    @pytest.mark.parametrize("hurdle", [False, True])
    def test_paths_share_their_level(self, hurdle):
        """After few rows the level is hardly known: steps of a path are alike."""
        models = count_models(1)
        number = next(j for j, m in enumerate(models) if m.hurdle == hurdle and not m.change)
        values = np.array([[6.0, 0.0]])
        model = count_forecasts(values, np.array([2]), 1, 2, hyper_of(model=number))
        paths = model.sample(40_000, np.random.default_rng(0))[:, 0]
        first, second = paths.T
        if not hurdle:
            # Covariance of the steps is the variance of the level.
            level = model.component_mean[0, number, 0] ** 2 / model.component_shape[0, number, 0]
            np.testing.assert_allclose(np.cov(first, second)[0, 1], level, rtol=0.1)
        assert np.corrcoef(first, second)[0, 1] > 0.1

    @pytest.mark.parametrize("levels", [0.5, [0.0], [1.0], [[0.5]], [np.nan]])
    def test_probabilities_are_checked(self, forecasts, levels):
        with pytest.raises(ValueError, match="between 0 and 1; got"):
            forecasts.quantile(levels)

    def test_weights_name_the_models(self, forecasts):
        weights = forecasts.weights
        assert weights.is_monotonic_decreasing
        assert weights.index.is_unique
        np.testing.assert_allclose(weights.sum(), 1)
        assert set(weights.index) == {model.name for model in count_models(4)}


def simulated_panel(kind, n_series=60, n_rows=60):
    rng = np.random.default_rng(8)
    mean = np.exp(0.5 * rng.standard_normal((n_series, 1))) * np.ones(n_rows) * 4
    if kind == "season":
        mean = mean * np.exp(0.7 * np.sin(2 * np.pi * np.arange(n_rows) / 12))
    if kind == "moving":
        mean = mean * np.exp(0.1 * rng.standard_normal(mean.shape).cumsum(1))
    if kind == "dispersed":
        mean = mean * rng.standard_gamma(1.0, mean.shape)
    values = rng.poisson(mean).astype(float)
    return values * (rng.random(mean.shape) < 0.6) if kind == "hurdle" else values


class TestHyper:
    @pytest.mark.parametrize(
        ("kind", "is_true"),
        [
            ("Poisson", lambda m: m.name == "Poisson"),
            ("season", lambda m: m.season > 0 and m.dispersion == 0),
            ("moving", lambda m: m.change > 0 and not m.hurdle),
            ("dispersed", lambda m: m.dispersion >= 0.5 and not m.hurdle),
            ("hurdle", lambda m: m.hurdle),
        ],
    )
    def test_models_of_a_panel_are_likely(self, kind, is_true):
        values = simulated_panel(kind)
        hyper = count_hyper(values, lengths_of(values), 12)
        np.testing.assert_allclose(hyper.weights.sum(), 1)
        np.testing.assert_allclose(hyper.occurrence_weights.sum(), 1)
        likely = [is_true(model) for model in count_models(12)]
        before = count_hyper(values[:0], np.zeros(0, int), 12).weights[likely].sum()
        assert hyper.weights[likely].sum() > max(0.5, 1.5 * before)

    def test_series_unlike_the_panel_are_not_drawn_to_it(self):
        rng = np.random.default_rng(0)
        panel = rng.poisson(0.5, (200, 60)).astype(float)
        hyper = count_hyper(panel, lengths_of(panel), 1)
        unlike = rng.poisson([[900.0]], (1, 30)).astype(float)
        forecasts = count_forecasts(unlike, lengths_of(unlike), 1, 1, hyper)
        np.testing.assert_allclose(forecasts.mean, 900, rtol=0.05)
        np.testing.assert_allclose(forecasts.quantile([0.1, 0.9])[0, :, 0], [860, 940], rtol=0.05)

    def test_moments_of_the_levels(self):
        rng = np.random.default_rng(0)
        levels = rng.gamma(2.0, 1.5, (3000, 1))
        values = rng.poisson(levels, (3000, 30)).astype(float)
        mean, shape = count_hyper(values, lengths_of(values), 1).level
        np.testing.assert_allclose([mean, shape], [3, 2], rtol=0.1)

    def test_moments_of_the_occurrence(self):
        rng = np.random.default_rng(0)
        share = rng.beta(1.5, 3.0, (3000, 1))
        values = (rng.random((3000, 30)) < share).astype(float)
        np.testing.assert_allclose(
            count_hyper(values, lengths_of(values), 1).occurrence, [1.5, 3.0], rtol=0.1
        )

    def test_hyper_of_another_season_is_refused(self):
        values = mixed_counts()
        hyper = count_hyper(values, lengths_of(values), 1)
        with pytest.raises(ValueError, match="63 models of season length 12; got 39"):
            count_forecasts(values, lengths_of(values), 12, 1, hyper)

    @pytest.mark.parametrize("value", [-1.0, 0.5, np.inf])
    @pytest.mark.parametrize("function", [count_hyper, lambda *args: count_forecasts(*args, 1)])
    def test_values_that_are_no_counts_are_refused(self, function, value):
        values = mixed_counts()
        values[3, 4] = value
        with pytest.raises(ValueError, match=f"got {value:g} in row 4 of series 3"):
            function(values, lengths_of(values), 1)


@pytest.mark.parametrize("kind", ["Poisson", "season", "moving", "dispersed", "hurdle"])
def test_better_than_the_empirical_distribution(kind):
    values = simulated_panel(kind)
    rows, ahead = values[:, :-6], values[:, -6:]
    forecasts = count_forecasts(rows, lengths_of(rows), 12, 6)
    k = np.arange(400)
    reached = ahead[..., None] <= k
    scores = [
        ((below - reached) ** 2).sum(-1).mean()
        for below in (forecasts.pmf(400).cumsum(-1), (rows[:, None, :, None] <= k).mean(2))
    ]
    assert scores[0] < scores[1]


@settings(max_examples=30, deadline=None)
@given(
    st.integers(1, 4), st.integers(0, 9), st.sampled_from([1, 2, 5, 12]),
    st.sampled_from([0.0, 0.1, 3.0, 1e3, 1e6]), st.integers(0, 2**31),
)  # fmt: skip
def test_any_counts_have_forecasts(n_series, n_rows, season_length, mean, seed):
    rng = np.random.default_rng(seed)
    values = rng.poisson(mean, (n_series, n_rows)).astype(float)
    values[rng.random(values.shape) < 0.2] = np.nan
    lengths = rng.integers(0, n_rows + 1, n_series)
    forecasts = count_forecasts(values, lengths, season_length, 3)
    assert isinstance(forecasts, CountForecasts)
    assert all(isinstance(model, CountModel) for model in forecasts.models)
    quantiles = forecasts.quantile([0.1, 0.5, 0.9])
    assert quantiles.shape == (n_series, 3, 3)
    assert (quantiles % 1 == 0).all()
    assert (np.diff(quantiles, axis=1) >= 0).all()
    assert np.isfinite(forecasts.mean).all()
    assert np.isfinite(forecasts.log_probability(quantiles[:, 1])).all()
    np.testing.assert_allclose(forecasts.component_weights.sum(1), 1)
    assert (forecasts.sample(2, rng) >= 0).all()
