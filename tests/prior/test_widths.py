"""Widths of the prior's intervals, by the errors of a unit and of its panel."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import halfnorm

from tsrnn.prior import PAST_ROWS, PROBABILITIES, SeriesPrior, trained_prior
from tsrnn.prior._widths import Scores, own_factors, panel_factors, past_origins

SIDE = halfnorm.ppf(0.8)


def panel(n_units, n_rows=40, season_length=4, seed=0):
    return SeriesPrior().sample(n_units, n_rows, season_length, seed)


def quantile(values, weights, prior):
    """80 percent point of weighted scores and of a half-normal distribution of weight `prior`."""
    grid = np.r_[np.sort(values), np.linspace(0, 12, 24001)[1:]]
    below = [(weights * (values <= x)).sum() for x in grid]
    share = (np.array(below) + prior * halfnorm.cdf(SIDE * grid)) / (weights.sum() + prior)
    return grid[share >= 0.8].min()


@pytest.fixture
def scores():
    rng = np.random.default_rng(3)
    values = np.abs(rng.standard_t(4, (5, 7, PAST_ROWS)))
    weights = np.minimum(2 / np.arange(1.0, PAST_ROWS + 1), 1) * (rng.random(values.shape) < 0.8)
    return Scores(values * (weights > 0), weights)


def test_a_unit_is_judged_by_all_its_errors_against_ten(scores):
    expected = [
        quantile(values.ravel(), weights.ravel() / PAST_ROWS, 10)
        for values, weights in zip(*scores, strict=True)
    ]
    np.testing.assert_allclose(own_factors(scores), expected, rtol=0.02)


@pytest.mark.slow
def test_a_panel_counts_as_much_as_the_learned_quantiles_at_most(scores):
    expected = [
        quantile(values.ravel(), 0.8 * weights.ravel(), 30 + 0.8 * weights.sum())
        for values, weights in zip(*(np.moveaxis(part, 2, 0) for part in scores), strict=True)
    ]
    np.testing.assert_allclose(panel_factors(scores), expected, rtol=0.02)


def test_without_errors_widths_are_as_learned():
    nothing = Scores(np.zeros((3, 7, PAST_ROWS)), np.zeros((3, 7, PAST_ROWS)))
    np.testing.assert_allclose(own_factors(nothing), 1)
    np.testing.assert_allclose(panel_factors(nothing), 1)


def test_one_unit_is_no_panel(scores):
    one = Scores(scores.values[:1], scores.weights[:1])
    np.testing.assert_allclose(panel_factors(one), 1)


def test_origins_are_the_last_row_and_every_second_before():
    origins = past_origins(np.zeros((3, 20)), np.array([3, 8, 20]), 3)
    assert [np.flatnonzero(row).tolist() for row in origins] == [
        [2], [3, 5, 7], [7, 9, 11, 13, 15, 17, 19],
    ]  # fmt: skip


@settings(max_examples=12, deadline=None)
@given(
    st.integers(1, 12), st.integers(3, 30), st.sampled_from([1, 4]), st.integers(0, 10**6),
    st.floats(0, 1),
)  # fmt: skip
def test_factors_of_any_panel_are_positive_and_of_no_order(n_units, n_rows, season, seed, zeros):
    rows = panel(n_units, n_rows, season, seed)
    rng = np.random.default_rng(seed)
    rows[rng.random(rows.shape) < zeros] = 0.0
    # Products that are new, as of the row `begins`, and others that are never sold.
    begins = rng.integers(0, n_rows + 1, n_units) * (rng.random(n_units) < 0.5)
    rows[np.arange(n_rows) < begins[:, None]] = 0.0
    lengths = np.random.default_rng(seed).integers(3, n_rows + 1, n_units)
    prior = trained_prior()
    widths = prior.panel_widths(rows, lengths, season)
    assert widths.shape == (PAST_ROWS,)
    assert np.isfinite(widths).all()
    assert (widths > 0.2).all()
    assert (widths < 5).all()
    order = np.random.default_rng(seed).permutation(n_units)
    again = prior.panel_widths(rows[order], lengths[order], season)
    np.testing.assert_allclose(again, widths, rtol=1e-9)


def test_a_panel_that_has_become_noisier_has_wider_intervals():
    rows = panel(60)
    scale = np.abs(np.diff(rows)).mean(1, keepdims=True)
    noise = np.random.default_rng(1).standard_normal((60, PAST_ROWS))
    noisier = rows.copy()
    noisier[:, -PAST_ROWS:] += 4 * scale * noise
    lengths = np.full(60, 40)
    calm, wild = (trained_prior().panel_widths(each, lengths, 4) for each in (rows, noisier))
    assert wild.min() > 1.1
    assert (wild > calm).all()


def test_widths_multiply_learned_quantiles():
    rows, lengths = panel(4), np.full(4, 3)  # too short to have errors of their own
    widths = np.linspace(1, 2, PAST_ROWS)
    plain = trained_prior().forecast(rows, lengths, 4, 14)
    wider = trained_prior().forecast(rows, lengths, 4, 14, widths)
    np.testing.assert_array_equal(plain.median, wider.median)
    factors = (wider.quantiles - wider.median[:, None]) / (
        plain.quantiles - plain.median[:, None] + (PROBABILITIES == 0.5)[:, None]
    )
    expected = np.broadcast_to(np.r_[widths, 2, 2], factors.shape)
    outer = PROBABILITIES != 0.5
    np.testing.assert_allclose(factors[:, outer], expected[:, outer])
