"""Refits: which samples and seeds they are given, and how far they agree with closed forms."""

import os
import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import LinearRegression, Ridge, SGDRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_info

from tsrnn.erm import block_bootstrap, deep_ensemble


class Recorder(RegressorMixin, BaseEstimator):
    """Keeps what it was fitted to."""

    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self, X, z):
        self.X_, self.z_ = X, np.asarray(z)
        return self


def thread_counter():
    """An estimator that other processes get by value: they cannot import this file."""

    class Threads(BaseEstimator):
        def fit(self, X, z):
            self.threads_ = {pool["num_threads"] for pool in threadpool_info()}
            self.process_ = os.getpid()
            return self

    return Threads()


class Mean(RegressorMixin, BaseEstimator):
    def fit(self, X, z):
        self.mean_ = np.mean(z)
        return self


def numbered(n):
    return np.arange(n, dtype=float)[:, None], np.arange(n)


class TestResampling:
    @given(n=st.integers(2, 40), data=st.data(), seed=st.integers(0, 10**6))
    @settings(max_examples=35, deadline=None)
    def test_rows_are_circular_blocks_of_consecutive_samples(self, n, data, seed):
        length = data.draw(st.integers(1, n // 2))
        X, z = numbered(n)
        refits = block_bootstrap(
            Recorder(), X, z, n_estimators=2, block_length=length, random_state=seed
        )
        for member in refits.members:
            rows = member.z_
            np.testing.assert_array_equal(member.X_[:, 0], rows)
            assert len(rows) == n
            inside = np.arange(1, n) % length != 0
            np.testing.assert_array_equal(np.diff(rows)[inside] % n, 1)

    def test_each_sample_is_drawn_alike_often(self):
        X, z = numbered(10)
        refits = block_bootstrap(Recorder(), X, z, n_estimators=500, block_length=3, random_state=0)
        counts = np.bincount(np.concatenate([member.z_ for member in refits.members]))
        assert np.all(np.abs(counts - 500) < 5 * np.sqrt(500 * 3))

    @pytest.mark.parametrize("block", [1, 5, 20])
    def test_the_variance_of_a_mean_is_that_of_circular_blocks(self, block):
        """Of blocks that fill the sample: sum of circular autocovariances with Bartlett weights."""
        n, n_estimators = 100, 3000
        noise = np.random.default_rng(1).normal(size=n + 4)
        z = np.convolve(noise, np.ones(5), mode="valid")
        centred = z - z.mean()
        lags = np.arange(1, block)
        covariances = np.array([centred @ np.roll(centred, -k) / n for k in lags])
        exact = (centred @ centred / n + 2 * np.sum((1 - lags / block) * covariances)) / n
        refits = block_bootstrap(
            Mean(), z, z, n_estimators=n_estimators, block_length=block, random_state=0
        )
        found = np.var([member.mean_ for member in refits.members], ddof=1)
        assert abs(found / exact - 1) < 4.5 * np.sqrt(2 / n_estimators)

    @pytest.mark.parametrize(("block", "share"), [(1, 0.2), (20, 0.85)])
    def test_blocks_catch_the_variance_of_a_mean_of_dependent_samples(self, block, share):
        """Moving sums of five: 25 / n in truth, of which Bartlett weights and centring see 85%."""
        rng, n = np.random.default_rng(1), 300
        found = []
        for _ in range(25):
            z = np.convolve(rng.normal(size=n + 4), np.ones(5), mode="valid")
            refits = block_bootstrap(
                Mean(), z, z, n_estimators=60, block_length=block, random_state=rng
            )
            found.append(np.var([member.mean_ for member in refits.members], ddof=1))
        error = np.std(found) / np.sqrt(len(found))
        assert abs(np.mean(found) - share * 25 / n) < 4 * error
        assert error < 0.2 * share * 25 / n

    def test_lists_and_frames_stay_what_they_are(self):
        lists = [np.full((2 + i % 3, 1), float(i)) for i in range(9)]
        frame = pd.DataFrame({"a": np.arange(9.0)})
        for X in (lists, frame):
            refits = block_bootstrap(Recorder(), X, pd.Series(range(9)), n_estimators=2)
            assert all(type(member.X_) is type(X) for member in refits.members)
        member = block_bootstrap(Recorder(), lists, list(range(9)), n_estimators=2).members[0]
        assert [int(part[0, 0]) for part in member.X_] == list(member.z_)


class TestSeeds:
    def test_the_same_seed_gives_the_same_members_in_any_number_of_processes(self):
        X, z = numbered(30)
        model = SGDRegressor(max_iter=5, tol=None, eta0=1e-4)
        one, two, other = (
            block_bootstrap(model, X, z, n_estimators=3, random_state=seed, n_jobs=n_jobs)
            for seed, n_jobs in [(3, None), (3, 2), (4, None)]
        )
        for a, b, c in zip(one.members, two.members, other.members, strict=True):
            np.testing.assert_array_equal(a.coef_, b.coef_)
            assert a.random_state == b.random_state != c.random_state
            assert a.coef_ != c.coef_

    def test_other_processes_have_one_thread_each(self, monkeypatch):
        monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
        X, z = numbered(8)
        refits = block_bootstrap(thread_counter(), X, z, n_estimators=2, n_jobs=2)
        assert all(member.threads_ == {1} for member in refits.members)
        assert os.getpid() not in {member.process_ for member in refits.members}

    def test_more_members_begin_with_the_same_ones(self):
        X, z = numbered(30)
        few, many = (
            block_bootstrap(Recorder(), X, z, n_estimators=n, random_state=3) for n in (2, 6)
        )
        for a, b in zip(few.members, many.members[:2], strict=True):
            np.testing.assert_array_equal(a.z_, b.z_)

    def test_ensembles_see_all_samples_and_differ_in_their_seeds_only(self):
        X, z = numbered(12)
        refits = deep_ensemble(Recorder(random_state=5), X, z, n_estimators=6, random_state=0)
        assert len({member.random_state for member in refits.members}) == 6
        for member in refits.members:
            np.testing.assert_array_equal(member.X_, X)
            np.testing.assert_array_equal(member.z_, z)

    def test_seeds_of_parts_are_set_too(self):
        X, z = numbered(30)
        pipeline = make_pipeline(StandardScaler(), SGDRegressor(max_iter=5, tol=None))
        refits = deep_ensemble(pipeline, X, z, n_estimators=3, random_state=0)
        assert len({member[-1].random_state for member in refits.members}) == 3
        assert pipeline[-1].random_state is None

    def test_an_estimator_without_a_seed_makes_no_ensemble(self):
        with pytest.raises(ValueError, match="LinearRegression has none. block_bootstrap takes"):
            deep_ensemble(LinearRegression(), *numbered(9))

    def test_the_fit_to_all_samples_keeps_a_seed_it_has(self):
        X, z = numbered(9)
        assert deep_ensemble(Recorder(7), X, z, n_estimators=2).estimator.random_state == 7
        seeds = {
            deep_ensemble(Recorder(), X, z, n_estimators=2, random_state=1).estimator.random_state
            for _ in range(2)
        }
        assert len(seeds) == 1
        assert None not in seeds


class TestEstimator:
    def test_a_fitted_one_is_taken_as_it_is_and_another_is_left_alone(self):
        X, z = numbered(9)
        fitted = LinearRegression().fit(X, z)
        assert block_bootstrap(fitted, X, z, n_estimators=2).estimator is fitted
        fresh = LinearRegression()
        check_is_fitted(block_bootstrap(fresh, X, z, n_estimators=2).estimator)
        assert not hasattr(fresh, "coef_")

    def test_refits_are_frozen_and_can_be_stored(self):
        refits = block_bootstrap(LinearRegression(), *numbered(9), n_estimators=3, block_length=2)
        assert refits.method == "block bootstrap"
        assert "3 block bootstrap refits (block length 2): pointwise and asy" in refits.guarantee
        assert "not simultaneous" in refits.guarantee
        assert len(pickle.loads(pickle.dumps(refits)).members) == 3
        with pytest.raises(FrozenInstanceError):
            refits.method = "other"

    def test_an_ensemble_says_that_it_guarantees_nothing(self):
        refits = deep_ensemble(Recorder(), *numbered(9), n_estimators=3)
        assert "no coverage guarantee" in refits.guarantee

    @pytest.mark.parametrize("n_jobs", [None, 2])
    def test_errors_of_members_are_not_swallowed(self, n_jobs):
        def only_distinct(X):
            if len(np.unique(X)) < len(X):
                raise ArithmeticError("a sample came twice")
            return X

        model = make_pipeline(FunctionTransformer(only_distinct), LinearRegression())
        with pytest.raises(ArithmeticError, match="a sample came twice"):
            block_bootstrap(model, *numbered(20), n_estimators=3, n_jobs=n_jobs)


class TestRefusals:
    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            ({"n_estimators": 1}, ValueError, "n_estimators must be at least 2"),
            ({"n_estimators": 2.0}, TypeError, "n_estimators must be a positive integer"),
            ({"block_length": 0}, ValueError, "block_length must be a positive"),
            ({"block_length": 5}, ValueError, "between 1 and 4, half of the 9 samples.*got 5"),
            ({"random_state": "x"}, TypeError, "random_state"),
            ({"n_jobs": 0}, ValueError, "n_jobs must be a number of processes"),
            ({"n_jobs": 1.5}, TypeError, "n_jobs must be a number of processes"),
        ],
    )
    def test_bad_arguments(self, arguments, error, message):
        with pytest.raises(error, match=message):
            block_bootstrap(LinearRegression(), *numbered(9), **arguments)

    def test_samples_and_responses_must_agree(self):
        X, z = numbered(9)
        with pytest.raises(ValueError, match="X has 9 and z has 8"):
            deep_ensemble(Recorder(), X, z[:8])
        with pytest.raises(ValueError, match="at least 2 samples; got 1"):
            block_bootstrap(Recorder(), X[:1], z[:1])


def test_no_sample_is_in_two_parts_of_a_member():
    """Repeated samples come once, with their number as weight, where fit takes weights."""

    class Recording(Ridge):
        def fit(self, X, y, sample_weight=None):
            self.rows_, self.weights_ = X[:, 0], sample_weight
            return super().fit(X, y, sample_weight)

    X = np.arange(30.0)[:, None]
    refits = block_bootstrap(
        Recording(), X, X[:, 0], n_estimators=3, block_length=4, random_state=0
    )
    for member in refits.members:
        assert (np.diff(member.rows_) > 0).all()
        assert member.weights_.sum() == 30
