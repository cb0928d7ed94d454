"""Structural models: forecasts and likelihoods as of an explicit joint distribution, and laws."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import t as student_t

from tsrnn.prior import SEASONS, TRENDS, structural_evidence

H = 7
FIRST_LEVEL, DEGREES, FIRST_SCALE = 1e4, 1.0, 0.1


def series(n_rows, seed=0):
    rng = np.random.default_rng(seed)
    season = 8 * np.sin(np.pi * np.arange(n_rows) / 2)
    return 200 + season + rng.standard_normal(n_rows).cumsum() + rng.standard_normal(n_rows)


def evidence_of(values, season_length, rows=None, h=H):
    """Evidence of one series at some rows, the last by default."""
    values = np.atleast_2d(np.asarray(values, float))
    origins = np.zeros(values.shape, bool)
    origins[:, [values.shape[1] - 1] if rows is None else rows] = True
    lengths = np.full(len(values), values.shape[1])
    return structural_evidence(values, lengths, origins, season_length, h)


def covariance(trend, season, season_length, n_rows):
    """Covariances of the first rows over the variance of the noise, innovation by innovation."""
    d = 3 + season_length
    transition = np.eye(d)
    transition[0, 1] = transition[1, 1] = trend.damping
    transition[2, 2] = trend.memory
    first = [FIRST_LEVEL, trend.growth, trend.cycle / (1 - trend.memory**2)]
    first += [season.size] * season_length
    innovation = [trend.level, trend.slope, trend.cycle]
    innovation += [season.change / season_length] * season_length
    observed = np.zeros((n_rows, d))
    observed[:, [0, 2]] = 1
    observed[np.arange(n_rows), 3 + np.arange(n_rows) % season_length] = 1
    # What a shock of row s adds to row t: observed[t] A^(t - s) shock.
    powers = [np.linalg.matrix_power(transition, k) for k in range(n_rows)]
    total = trend.noise * np.eye(n_rows)
    for s in range(n_rows):
        reach = np.array([observed[t] @ powers[t - s] * (t >= s) for t in range(n_rows)])
        total += reach @ np.diag(first if s == 0 else innovation) @ reach.T
    return total


def expected(values, trend, season, season_length, rows=None):
    """Mean, scale (h,) of the rows after the last one and log density of all after the second.

    `rows` are the numbers of the observed rows, by default all.
    """
    n = len(values)
    rows = np.arange(n) if rows is None else rows
    places = np.r_[rows, rows[-1] + 1 + np.arange(H)]
    joint = covariance(trend, season, season_length, places[-1] + 1)[np.ix_(places, places)]
    error = values - values[0]  # the first level is near the first row

    def conditional(at):
        """Mean and covariance of the rows from `at` on, given those before."""
        past, cross = joint[:at, :at], joint[at:, :at]
        mean = values[0] + cross @ np.linalg.solve(past, error[:at])
        return mean, joint[at:, at:] - cross @ np.linalg.solve(past, cross.T)

    squares, density = 0.0, 0.0
    for t in range(1, n):
        mean, variance = (moment.flat[0] for moment in conditional(t))
        if t > 1:
            degrees = DEGREES + t - 1
            scale = np.sqrt((squares + first_square(values[:t])) * variance / degrees)
            density += student_t(degrees, mean, scale).logpdf(values[t])
        squares += (values[t] - mean) ** 2 / variance
    mean, ahead = conditional(n)
    square = (squares + first_square(values)) / (DEGREES + n - 1)
    return mean, np.sqrt(square * np.diag(ahead)), density


def first_square(values):
    return DEGREES * (FIRST_SCALE * np.abs(np.diff(values)).mean()) ** 2


@pytest.mark.few("1")
@pytest.mark.parametrize("season_length", [1, 2, 4, 12])
def test_forecasts_and_likelihoods_are_those_of_the_joint_distribution(season_length):
    values = series(19)
    evidence = evidence_of(values, season_length)
    change = np.abs(np.diff(values)).mean()
    np.testing.assert_allclose((evidence.last[0], evidence.scale[0]), (values[-1], change))
    seasons = SEASONS if season_length > 1 else SEASONS[:1]
    models = list(itertools.product(TRENDS, seasons))
    forecasts, deviations, likelihoods = [], [], []
    for logarithms in (False, True):
        rows = np.log(values) if logarithms else values
        for trend, season in models:
            mean, scale, likelihood = expected(rows, trend, season, season_length)
            if logarithms:
                mean = np.exp(mean)  # the median
                scale = mean * np.minimum(scale, 2)
                likelihood -= rows[2:].sum()
            forecasts.append((mean - values[-1]) / change)
            deviations.append(scale / change)
            likelihoods.append(likelihood)
    np.testing.assert_allclose(evidence.log_evidence[0, -1], max(likelihoods), rtol=1e-7)
    likelihoods = np.array(likelihoods) - max(likelihoods)
    np.testing.assert_allclose(evidence.log_likelihood[0], likelihoods, rtol=1e-7, atol=1e-7)
    # No forecast of this series is so far away that it is cut.
    np.testing.assert_allclose(evidence.forecasts[0], forecasts, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(evidence.deviations[0], deviations, rtol=1e-7)


@pytest.mark.few("1", "missing3-4")
@pytest.mark.parametrize("season_length", [1, 4])
@pytest.mark.parametrize("missing", [[1], [4, 5, 6, 11], [0, 1, 8, 16], list(range(1, 17, 2))])
def test_missing_rows_are_integrated_out(season_length, missing):
    rows = np.setdiff1d(np.arange(19), missing)
    values = series(19)
    gappy = np.where(np.isin(np.arange(19), rows), values, np.nan)
    evidence = evidence_of(gappy, season_length)
    change = np.abs(np.diff(values[rows])).mean()
    np.testing.assert_allclose((evidence.last[0], evidence.scale[0]), (values[-1], change))
    seasons = SEASONS if season_length > 1 else SEASONS[:1]
    models = [
        expected(values[rows], trend, season, season_length, rows - rows[0])
        for trend, season in itertools.product(TRENDS, seasons)
    ]
    mean, scale, likelihood = (np.array(part) for part in zip(*models, strict=True))
    n = len(models)
    ours = evidence.log_likelihood[0, :n]
    np.testing.assert_allclose(ours - ours[0], likelihood - likelihood[0], rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(evidence.forecasts[0, :n], (mean - values[-1]) / change, rtol=1e-7)
    np.testing.assert_allclose(evidence.deviations[0, :n], scale / change, rtol=1e-7)


def test_series_with_and_without_missing_rows_are_those_alone():
    values = np.stack([series(30, seed) for seed in range(4)])
    values[1, 7] = values[3, [7, 12, 13]] = np.nan
    lengths, origins = np.array([30, 30, 21, 30]), np.zeros((4, 30), bool)
    origins[[0, 1, 2, 3], [29, 20, 20, 29]] = origins[1, 29] = True
    together = structural_evidence(values, lengths, origins, 4, H)
    ends = origins.sum(1).cumsum()
    for i, length in enumerate(lengths):
        one = slice(i, i + 1)
        alone = structural_evidence(values[one, :length], lengths[one], origins[one, :length], 4, H)
        part = slice(ends[i] - origins[i].sum(), ends[i])
        for name in alone._fields[1:-1]:
            np.testing.assert_allclose(getattr(together, name)[part], getattr(alone, name))
        seen = np.isfinite(values[i, :length]).sum()
        np.testing.assert_array_equal(together.features[i, :seen], alone.features[0, :seen])


@pytest.mark.parametrize("ahead", [210.0, 0.0, -3.0, 1e5])
def test_nothing_depends_on_later_rows(ahead):
    values = series(20)
    one, other = (evidence_of(np.r_[values, end, end], 4, [15]) for end in (values[-1], ahead))
    np.testing.assert_array_equal(one.features[:, :20], other.features[:, :20])
    assert not np.allclose(one.features[:, 20:], other.features[:, 20:])
    for name in one._fields[1:-1]:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


@pytest.mark.parametrize("factor", [2.0**-40, 1 / 3, 1e5])
def test_a_unit_changes_nothing(factor):
    values = series(40)
    one, other = (evidence_of(v, 4, [20, 39]) for v in (values, factor * values))
    for name in ("features", "forecasts", "deviations", "log_likelihood"):
        np.testing.assert_allclose(
            getattr(one, name), getattr(other, name), rtol=1e-6, atol=1e-5, err_msg=name
        )
    np.testing.assert_allclose(other.last, factor * one.last)
    np.testing.assert_allclose(other.scale, factor * one.scale)


@pytest.mark.parametrize("level", [300, -300])
def test_a_level_does_not_change_models_of_the_data(level):
    values = series(40)
    one, other = (evidence_of(v, 4) for v in (values, values + level))
    n_models = len(TRENDS) * len(SEASONS)
    for name in ("forecasts", "deviations"):
        parts = (getattr(evidence, name)[:, :n_models] for evidence in (one, other))
        np.testing.assert_allclose(*parts, rtol=1e-8, atol=1e-8)
    ranks = (evidence.log_likelihood[0, :n_models] for evidence in (one, other))
    np.testing.assert_allclose(*(rank - rank.max() for rank in ranks), atol=1e-7)


def test_series_together_are_each_alone():
    parts = [series(n, seed) for seed, n in enumerate([40, 3, 25, 12])]
    lengths = np.array([len(part) for part in parts])
    values, origins = np.full((4, 40), 7.0), np.zeros((4, 40), bool)
    for i, part in enumerate(parts):
        values[i, : len(part)] = part
        origins[i, [1, len(part) - 1]] = True
    together = structural_evidence(values, lengths, origins, 4, H)
    for i, part in enumerate(parts):
        alone = evidence_of(part, 4, [1, len(part) - 1])
        rows = slice(2 * i, 2 * i + 2)
        np.testing.assert_allclose(together.features[i, : len(part)], alone.features[0], atol=1e-6)
        for name in alone._fields[1:-1]:
            np.testing.assert_allclose(
                getattr(together, name)[rows], getattr(alone, name), rtol=1e-9, atol=1e-9
            )


def test_series_that_are_not_positive_have_no_models_of_logarithms():
    evidence = evidence_of(series(20) - 200, 4)
    n_models = len(TRENDS) * len(SEASONS)
    assert (evidence.log_likelihood[:, n_models:] == -np.inf).all()
    assert np.isfinite(evidence.log_likelihood[:, :n_models]).all()
    assert np.isfinite(evidence.forecasts).all()


@settings(max_examples=60, deadline=None)
@given(
    values=st.lists(st.one_of(st.just(0.0), st.floats(-1e3, 1e3)), min_size=2, max_size=40),
    season_length=st.integers(1, 14),
    level=st.sampled_from([0.0, 1.0, 1e6]),
)
def test_evidence_of_any_rows_is_finite(values, season_length, level):
    evidence = evidence_of(np.array(values) + level, season_length, h=3)
    for name in ("features", "forecasts", "deviations", "last", "scale", "season_scale"):
        assert np.isfinite(getattr(evidence, name)).all(), name
    assert evidence.log_likelihood.max() == 0
    assert (evidence.deviations > 0).all()
    assert (evidence.scale > 0).all()
