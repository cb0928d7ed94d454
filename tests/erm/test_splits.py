"""Blocks of neighbours as folds, with gaps."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score

from tsrnn.erm import BlockedKFold

SETTINGS = st.tuples(st.integers(2, 12), st.integers(0, 15), st.integers(2, 60))


def folds_of(n, n_splits, h):
    return list(BlockedKFold(n_splits, h=h).split(np.zeros((n, 1))))


def possible(n, n_splits, h):
    """Whether every block leaves training samples, from the definition."""
    blocks = np.array_split(np.arange(n), n_splits)
    return all(
        any(min(abs(i - j) for j in block) > h for i in range(n) if i not in block)
        for block in blocks
    )


@given(SETTINGS)
def test_blocks_partition_the_samples_and_only_neighbours_are_left_out(setting):
    n_splits, h, n = setting
    if n < n_splits or not possible(n, n_splits, h):
        with pytest.raises(ValueError, match="h must be at most|n_splits must be at most"):
            folds_of(n, n_splits, h)
        return
    folds = folds_of(n, n_splits, h)
    assert len(folds) == n_splits
    np.testing.assert_array_equal(np.concatenate([test for _, test in folds]), np.arange(n))
    sizes = [len(test) for _, test in folds]
    assert max(sizes) - min(sizes) <= 1
    for train, test in folds:
        np.testing.assert_array_equal(test, np.arange(test[0], test[-1] + 1))
        distance = np.abs(np.arange(n)[:, None] - test).min(axis=1)
        np.testing.assert_array_equal(train, np.flatnonzero(distance > h))


@given(st.integers(2, 12), st.integers(2, 60))
def test_the_error_names_the_largest_gap_that_works(n_splits, n):
    if n < n_splits:
        return
    with pytest.raises(ValueError, match="must be at most") as error:
        folds_of(n, n_splits, n)
    largest = int(str(error.value).split("at most ")[1].split()[0])
    assert possible(n, n_splits, largest)
    assert not possible(n, n_splits, largest + 1)
    assert all(len(train) for train, _ in folds_of(n, n_splits, largest))


@pytest.mark.parametrize("n", [10, 23])
def test_without_a_gap_it_is_scikit_learns_kfold(n):
    X = np.zeros((n, 3, 2))
    for ours, theirs in zip(BlockedKFold(4).split(X), KFold(4).split(X), strict=True):
        np.testing.assert_array_equal(ours[0], theirs[0])
        np.testing.assert_array_equal(ours[1], theirs[1])


def test_as_many_blocks_as_samples_is_h_block():
    for i, (train, test) in enumerate(folds_of(11, 11, 2)):
        assert test.tolist() == [i]
        assert train.tolist() == [j for j in range(11) if abs(i - j) > 2]


def test_lists_of_sequences_are_split():
    folds = list(BlockedKFold(2, h=1).split([np.zeros((t, 2)) for t in (3, 1, 4, 1, 5, 9)]))
    assert [test.tolist() for _, test in folds] == [[0, 1, 2], [3, 4, 5]]
    assert [train.tolist() for train, _ in folds] == [[4, 5], [0, 1]]


def test_it_works_in_scikit_learn():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = X[:, 0] + rng.normal(size=60)
    cv = BlockedKFold(4, h=3)
    by_hand = [Ridge().fit(X[a], y[a]).score(X[b], y[b]) for a, b in cv.split(X)]
    np.testing.assert_allclose(cross_val_score(Ridge(), X, y, cv=cv), by_hand)
    search = GridSearchCV(Ridge(), {"alpha": [0.1, 10.0]}, cv=cv).fit(X, y)
    assert search.n_splits_ == cv.get_n_splits(X, y) == 4


def test_it_is_copied_and_printed():
    cv = BlockedKFold(3, h=2)
    assert repr(cv) == "BlockedKFold(h=2, n_splits=3)"
    for copy in (pickle.loads(pickle.dumps(cv)), clone(cv, safe=False)):
        assert (copy.n_splits, copy.h) == (3, 2)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"n_splits": 1}, ValueError),
        ({"n_splits": 2.0}, TypeError),
        ({"n_splits": True}, TypeError),
        ({"h": -1}, ValueError),
        ({"h": 0.5}, TypeError),
    ],
)
def test_arguments_out_of_range_are_refused(arguments, error):
    with pytest.raises(error, match=next(iter(arguments))):
        BlockedKFold(**arguments)


def test_numbers_of_samples_must_agree():
    with pytest.raises(ValueError, match="got 6 and 5"):
        list(BlockedKFold(2).split(np.zeros(6), np.zeros(5)))
