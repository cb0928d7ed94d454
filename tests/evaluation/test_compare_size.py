"""How often the tests reject a true hypothesis."""

import numpy as np
import pytest
from scipy import stats

from tsrnn.evaluation._losses import Observations
from tsrnn.evaluation._tests import pairwise_tests

PAIRS, LEVEL = 1000, 0.05
# Bounds that a correct test leaves with probability 0.001.
LOWEST, HIGHEST = stats.binom.ppf([0.0005, 0.9995], PAIRS, LEVEL) / PAIRS


def rejections(losses, overlap, variance="rectangular"):
    """Share of pairs that are told apart; losses (pairs, n, 2), each pair as if it were a step."""
    pairs, n, _ = losses.shape
    observations = Observations(
        "time", np.moveaxis(losses, 0, 2), np.full(pairs, overlap), np.arange(n)
    )
    return (pairwise_tests(observations, ["A", "B"], variance)["p_value"] < LEVEL).mean()


@pytest.mark.parametrize("n", [20, 200])
def test_one_step_has_its_size(n):
    errors = np.random.default_rng(n).normal(size=(PAIRS, n, 2))
    assert LOWEST <= rejections(errors**2, 0) <= HIGHEST


def test_means_over_correlated_series_have_their_size():
    rng = np.random.default_rng(1)
    common = rng.normal(size=(PAIRS, 50, 1, 2))
    errors = 2 * common + rng.normal(size=(PAIRS, 50, 8, 2))
    assert LOWEST <= rejections((errors**2).mean(axis=2), 0) <= HIGHEST


def test_independent_series_have_their_size():
    errors = np.random.default_rng(2).normal(size=(PAIRS, 40, 2))
    assert LOWEST <= rejections(np.abs(errors), 0) <= HIGHEST


@pytest.mark.parametrize(
    ("variance", "highest"), [("rectangular", 2 * LEVEL), ("cosines", HIGHEST)]
)
def test_overlapping_windows_reject_as_often_as_measured(variance, highest):
    """Of four steps every step: the excess that benchmarks/dm_size.py measures, and no more."""
    rng = np.random.default_rng(3)
    walk = rng.normal(size=(PAIRS, 204, 2)).cumsum(axis=1)
    errors = walk[:, 4:] - walk[:, :-4]
    assert LOWEST <= rejections(errors**2, 3, variance) <= highest


def test_a_difference_is_seen():
    errors = np.random.default_rng(4).normal(size=(50, 200, 2)) * [1.0, 1.5]
    assert rejections(errors**2, 0) > 0.95
