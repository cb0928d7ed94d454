"""Gross errors and level shifts: against a regression on all innovations, and where they are."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp, softmax
from scipy.stats import norm

from tsrnn.prior import (
    PROBABILITIES,
    Outliers,
    find_outliers,
    skip_errors,
    trained_prior,
    without_errors,
)


def monthly(rng, n_rows=96, noise=1.0):
    season = 10 * np.sin(2 * np.pi * np.arange(n_rows) / 12)
    return 100 + 0.1 * np.arange(n_rows) + season + noise * rng.normal(size=n_rows)


def outliers_of(rows, season_length=12):
    rows = np.asarray(rows, float)
    return find_outliers(rows[None], np.array([len(rows)]), season_length)


@pytest.mark.parametrize("season_length", [1, 12])
@pytest.mark.parametrize("row", [0, 1, 5, 50, 94, 95])
@pytest.mark.parametrize("size", [-15.0, 15.0, 900.0, 1e12, 1e200])
def test_planted_errors_are_found_with_their_size(season_length, row, size):
    rng = np.random.default_rng(row)
    rows = monthly(rng) if season_length == 12 else 100 + rng.normal(size=96)
    rows[row] += size
    outliers = outliers_of(rows, season_length)
    assert outliers.row.tolist() == [row]
    assert not outliers.shift.any()
    assert outliers.size == pytest.approx([size], rel=0.25)
    assert (outliers.probability > 0.5).all()


@pytest.mark.parametrize("size", [-20.0, 20.0])
@pytest.mark.parametrize("row", [20, 60, 85, 93])
def test_levels_that_stay_are_shifts_and_stand(size, row):
    rows = monthly(np.random.default_rng(row))
    rows[row:] += size
    outliers = outliers_of(rows)
    assert (outliers.row.tolist(), outliers.shift.tolist()) == ([row], [True])
    assert outliers.size == pytest.approx([size], rel=0.25)
    np.testing.assert_array_equal(without_errors(rows[None], outliers), rows[None])


def test_several_errors_are_found_and_left_out():
    rows = monthly(np.random.default_rng(0), 120)
    rows[[20, 21, 70]] += [30.0, -25.0, 40.0]
    outliers = outliers_of(rows)
    assert sorted(outliers.row.tolist()) == [20, 21, 70]
    cleaned = without_errors(rows[None], outliers)
    assert np.flatnonzero(np.isnan(cleaned[0])).tolist() == [20, 21, 70]
    assert np.isfinite(rows).all()  # a copy


def test_clean_series_have_hardly_any():
    rng = np.random.default_rng(0)
    rows = np.stack([monthly(rng) for _ in range(200)])
    outliers = find_outliers(rows, np.full(200, 96), 12)
    assert len(outliers.row) < 4  # of 19,200 rows


@pytest.mark.parametrize(
    "rows",
    [
        np.full(40, 7.0),
        np.r_[np.zeros(35), 9.0, np.zeros(14)],  # a demand among zeros
        np.random.default_rng(0).poisson(0.2, 60).astype(float),
        np.arange(11.0),
        np.random.default_rng(0).normal(size=100) + 20 * (np.arange(100) % 9 == 4),
    ],
    ids=["constant", "one demand", "intermittent", "short", "often"],
)
def test_series_without_a_scale_or_with_many_have_none(rows):
    assert len(outliers_of(rows, 1).row) == 0


def test_sizes_and_odds_are_those_of_a_regression_on_innovations():
    """The gain of the first outlier, by dense least squares on filtered dummy columns."""
    from tsrnn.prior._outliers import PRIOR_ODDS, SLAB
    from tsrnn.prior._structural import structural_filter, structural_models

    rng = np.random.default_rng(3)
    rows = 5 * rng.normal(size=40) - 50  # not positive: one scale
    rows[17] += 60.0
    outliers = outliers_of(rows, 1)
    change = np.median(np.abs(np.diff(rows)))
    lane = (rows - np.median(rows)) / change
    models = structural_models(1).seen
    kalman = structural_filter(1, np.arange(40)).of(models)
    filtered, _ = kalman.innovations(np.stack([lane, np.eye(40)[17]]))
    known = (0.1 * np.median(np.abs(np.diff(lane)))) ** 2
    evidence, coefficients, plain_evidence = [], [], []
    for model in range(len(models)):
        y, x = filtered[0, :, model], filtered[1, :, model]
        # Marginal likelihood of y ~ N(0, sigma^2 (I + tau x x')), sigma integrated out.
        covariance = np.eye(40) + SLAB * np.outer(x, x)
        quadratic = y @ np.linalg.solve(covariance, y) + known
        plain = y @ y + known
        _, logdet = np.linalg.slogdet(covariance)
        weight = np.log(kalman.weight[:40, model]).sum()
        plain_evidence.append(weight - 0.5 * 41 * np.log(plain))
        evidence.append(weight - 0.5 * logdet - 0.5 * 41 * np.log(quadratic))
        coefficients.append(x @ y / (x @ x) * change)
    # The mean of tempered likelihoods over models, with the pulse and without.
    odds = 2 * (logsumexp(0.5 * np.array(evidence)) - logsumexp(0.5 * np.array(plain_evidence)))
    probability = 1 / (1 + np.exp(PRIOR_ODDS - odds))
    assert outliers.probability[0] == pytest.approx(probability, rel=1e-9)
    assert outliers.size[0] == pytest.approx(softmax(0.5 * np.array(evidence)) @ coefficients)


@pytest.mark.parametrize(("season_length", "n_rows"), [(52, 40), (52, 80), (24, 40), (12, 18)])
@pytest.mark.parametrize("size", [40.0, 300.0, 1e5])
def test_errors_of_rows_without_others_of_their_season_are_found(season_length, n_rows, size):
    rng = np.random.default_rng(0)
    for row in range(0, n_rows, 4):
        rows = 100 + 2 * rng.normal(size=n_rows)
        rows[row] += size
        outliers = outliers_of(rows, season_length)
        assert outliers.row[~outliers.shift].tolist() == [row]
        assert outliers.size[~outliers.shift] == pytest.approx([size], abs=12)


def test_panels_are_judged_series_by_series():
    rng = np.random.default_rng(0)
    values = 10 + rng.normal(size=(120, 2))
    values[[30, 95], [1, 0]] = 200.0
    cleaned, outliers = skip_errors(values, np.array([0, 60, 120]), 1)
    assert np.argwhere(np.isnan(cleaned)).tolist() == [[30, 1], [95, 0]]
    assert (outliers.series.tolist(), outliers.row.tolist()) == ([1, 2], [30, 35])


def test_missing_rows_are_stepped_over():
    rows = monthly(np.random.default_rng(1))
    rows[50] += 40.0
    rows[[3, 49, 51, 80, 81]] = np.nan
    outliers = outliers_of(rows)
    assert outliers.row.tolist() == [50]
    assert outliers.errors_at_end(rows[None], np.array([96]))[0].size == 0


def test_the_last_observed_row_may_be_one():
    rows = monthly(np.random.default_rng(1))
    rows[93] += 40.0
    rows[94:] = np.nan
    outliers = outliers_of(rows)
    series, row, _ = outliers.errors_at_end(rows[None], np.array([96]))
    assert (series.tolist(), row.tolist()) == ([0], [93])


def test_long_series_are_judged_in_stretches():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=1500).cumsum() + 1000
    places = [0, 199, 202, 400, 777, 1099, 1499]
    rows[places] += 50.0
    outliers = outliers_of(rows, 1)
    assert sorted(outliers.row[~outliers.shift].tolist()) == places


@settings(max_examples=60, deadline=None)
@given(
    values=st.lists(
        st.one_of(st.floats(-1e9, 1e9), st.just(0.0), st.just(float("nan"))),
        min_size=1,
        max_size=60,
    ),
    season_length=st.sampled_from([1, 4, 12]),
)
def test_any_series_is_answered(values, season_length):
    outliers = outliers_of(values, season_length)
    assert isinstance(outliers, Outliers)
    assert np.isfinite(outliers.size).all()
    assert ((outliers.probability > 0) & (outliers.probability <= 1)).all()
    assert np.isfinite(np.array(values)[outliers.row]).all()
    assert len(outliers.row) <= max(1, 0.05 * len(values) + 1)


@pytest.mark.parametrize("unit", [1e-8, 1e8])
def test_outliers_do_not_depend_on_units(unit):
    rows = monthly(np.random.default_rng(2))
    rows[40] += 30.0
    one, other = outliers_of(rows), outliers_of(unit * rows)
    np.testing.assert_array_equal(one.row, other.row)
    np.testing.assert_allclose(other.size, unit * one.size, rtol=1e-6)


def test_mixtures_have_the_quantiles_of_their_distribution():
    prior = trained_prior()
    rows = monthly(np.random.default_rng(0))[None]
    low = prior.forecast(rows, np.array([96]), 12, 3)
    high = prior.forecast(rows + 40, np.array([96]), 12, 3)
    mixed = low.mixed(high, np.array([0]), np.array([0.6]))
    scores = norm.ppf(PROBABILITIES.astype(float))

    def probability(forecasts, value, step):
        return norm.cdf(np.interp(value, forecasts.quantiles[0, :, step], scores))

    for step in range(3):
        for number in range(2, 13):  # those between the outer ones of both
            value = mixed.quantiles[0, number, step]
            total = 0.6 * probability(low, value, step) + 0.4 * probability(high, value, step)
            assert total == pytest.approx(PROBABILITIES[number], abs=0.02)
    assert (np.diff(mixed.quantiles, axis=1) >= 0).all()
    assert mixed.weights.sum() == pytest.approx(1)


def test_a_series_has_its_outliers_in_any_company():
    rng = np.random.default_rng(3)
    values = 50 + rng.normal(size=(60, 50)).cumsum(1)
    place = rng.integers(0, 50, (60, 2))
    values[np.arange(60)[:, None], place] += rng.choice([0.0, 30.0, -200.0], (60, 2))
    values[rng.random(values.shape) < 0.01] = np.nan
    lengths = rng.integers(5, 51, 60)
    together = find_outliers(values, lengths, season_length=4)
    apart = [find_outliers(values[[i]], lengths[[i]], season_length=4) for i in range(60)]
    assert len(together.row) > 20
    assert together.series.tolist() == [i for i in range(60) for _ in apart[i].row]
    for field in ("row", "shift", "size", "probability"):
        of_each = np.concatenate([getattr(outliers, field) for outliers in apart])
        np.testing.assert_allclose(getattr(together, field), of_each, rtol=1e-9)
