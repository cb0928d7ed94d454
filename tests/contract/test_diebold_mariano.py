"""The test of Diebold and Mariano against its published forms and other programs."""

import numpy as np
import pytest
from scipy import stats
from statsmodels.tsa.stattools import diebold_mariano_test

from tsrnn.contract import DM_VARIANCES, diebold_mariano, newey_west_lags


def walk_losses(seed, n=40, h=2):
    """Difference of squared errors of two forecasts h steps ahead of random walks."""
    walks = np.random.default_rng(seed).normal(size=(2, n + h)).cumsum(axis=1)
    first, second = (walks[:, h:] - walks[:, :-h]) ** 2
    return first - second


def dm_test_of_r(d, h, estimator="acf"):
    """``dm.test`` of the R package forecast, line by line, of differences of losses."""
    n = len(d)
    centred = d - d.mean()
    d_cov = [sum(centred[k + i] * centred[i] for i in range(n - k)) / n for k in range(h)]
    if estimator == "acf" or h == 1:
        d_var = sum([d_cov[0], *(2 * c for c in d_cov[1:])]) / n
    else:
        d_var = (d_cov[0] + sum(2 * (1 - k / h) * d_cov[k] for k in range(1, h))) / n
    if d_var <= 0:
        return None
    k = ((n + 1 - 2 * h + (h / n) * (h - 1)) / n) ** 0.5
    statistic = d.mean() / d_var**0.5 * k
    return statistic, 2 * stats.t.cdf(-abs(statistic), n - 1)


@pytest.mark.parametrize("h", [1, 2, 4, 12])
@pytest.mark.parametrize("n", [20, 41, 200])
def test_default_is_the_published_test(n, h):
    tested = 0
    for seed in range(5):
        d = walk_losses(seed, n, h)
        wanted, got = dm_test_of_r(d, h), diebold_mariano(d, h - 1)
        if wanted is None:
            assert got.variance == "bartlett"
            assert got == diebold_mariano(d, h - 1, "bartlett")
        else:
            assert got[:2] == pytest.approx(wanted, rel=1e-9)
            assert (got.variance, got.bandwidth) == ("rectangular", h - 1)
            tested += 1
    assert tested


def test_bias_of_the_published_variance_is_taken_away():
    """Its mean over c^2 is the variance of the mean of a moving average of order h - 1."""
    n, h = 40, 2
    shocks = np.random.default_rng(0).normal(size=(4000, n + h - 1))
    d = sum(shocks[:, k : n + k] for k in range(h))
    tests = [diebold_mariano(row, h - 1) for row in d]
    assert all(test.variance == "rectangular" for test in tests)
    estimates = [(row.mean() / test.statistic) ** 2 for row, test in zip(d, tests, strict=True)]
    true = (n * h + 2 * (n - 1)) / n**2  # of h = 2 shocks in each of n sums
    assert np.mean(estimates) == pytest.approx(true, rel=0.02)  # without c, 7 percent less


def test_a_variance_that_is_not_positive_is_reported():
    d = np.tile([1.0, -1.0], 10) + 0.1
    test = diebold_mariano(d, 1)
    assert (test.variance, test.bandwidth) == ("bartlett", newey_west_lags(1, 20))
    assert test == diebold_mariano(d, 1, "bartlett")


@pytest.mark.parametrize("overlap", [0, 1, 3, 11])
def test_bartlett_is_that_of_statsmodels(overlap):
    first, second = np.random.default_rng(overlap).normal(size=(2, 120)).cumsum(1) ** 2
    lags = newey_west_lags(overlap, 120)
    theirs = diebold_mariano_test(
        np.zeros(120), first, second, criterion=lambda _, loss: loss, lags=lags,
        horizon=overlap + 1, harvey_adj=True,
    )  # fmt: skip
    got = diebold_mariano(first - second, overlap, "bartlett")
    assert got[:2] == pytest.approx((float(theirs.statistic), float(theirs.pvalue)))
    assert got.bandwidth == lags


@pytest.mark.parametrize("variance", ["rectangular", "bartlett"])
def test_without_overlap_it_is_the_t_test_of_a_mean(variance):
    d = np.random.default_rng(0).normal(0.3, 1.0, 30)
    wanted = stats.ttest_1samp(d, 0.0)
    assert diebold_mariano(d, 0, variance)[:2] == pytest.approx((wanted.statistic, wanted.pvalue))


def test_cosines_are_the_published_sums():
    """Lazarus et al. (2018): B = 0.41 T^(2/3) cosines, t of B degrees of freedom."""
    d = walk_losses(3, 100, 4)
    n, count = 100, 8  # 0.41 * 100^(2/3) = 8.83
    sums = [
        np.sqrt(2 / n) * sum(d[t - 1] * np.cos(np.pi * j * (t - 0.5) / n) for t in range(1, n + 1))
        for j in range(1, count + 1)
    ]
    statistic = d.mean() / np.sqrt(sum(x**2 for x in sums) / count / n)
    wanted = (statistic, 2 * stats.t.sf(abs(statistic), count))
    got = diebold_mariano(d, 3, "cosines")
    assert got[:2] == pytest.approx(wanted)
    assert got[2:] == ("cosines", count)


@pytest.mark.parametrize("variance", DM_VARIANCES)
def test_units_do_not_matter_and_the_sign_is_that_of_the_mean(variance):
    d = walk_losses(0)
    one, other = diebold_mariano(d, 1, variance), diebold_mariano(-1e-9 * d, 1, variance)
    assert other.statistic == pytest.approx(-one.statistic)
    assert other.p_value == pytest.approx(one.p_value)
    assert np.sign(one.statistic) == np.sign(d.mean())
    assert np.isnan(diebold_mariano(np.ones(20), 1, variance).p_value)
