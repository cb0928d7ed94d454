"""The fixed random subset."""

import torch

from tsrnn.forecasters._subset import subset


def test_all_where_there_are_few():
    assert subset(5, 7).tolist() == [0, 1, 2, 3, 4]


def test_is_fixed_ordered_and_without_repeats():
    chosen = subset(1000, 100)
    assert torch.equal(chosen, subset(1000, 100))
    assert (chosen.diff() > 0).all()


def test_does_not_follow_a_period():
    hours = torch.bincount(subset(24 * 1000, 1000) % 24, minlength=24)
    assert hours.min() > 15
    assert hours.max() < 80
