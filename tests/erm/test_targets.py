"""Reading y and weights: of samples, of steps, and errors that say which."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import DataConversionWarning

from tsrnn.erm import ParaRNNClassifier, ParaRNNRegressor
from tsrnn.erm._sequences import read_sequences
from tsrnn.erm._targets import read_targets, read_weights

RNG = np.random.default_rng(1)
LENGTHS = (3, 1, 4, 1, 5, 9, 2, 6)
RAGGED = [RNG.normal(size=(n, 2)) for n in LENGTHS]
ARRAY = RNG.normal(size=(8, 3, 2))
STEPS = [RNG.normal(size=n) for n in LENGTHS]
Z = RNG.normal(size=8)
SMALL = {"hidden_size": 4, "max_epochs": 1, "random_state": 0}


def sequences_of(X):
    return read_sequences(X, "ParaRNNRegressor")


def fit(X, y, weight=None, **params):
    return ParaRNNRegressor(**SMALL | params).fit(X, y, weight)


def classify(X, y, weight=None, **params):
    return ParaRNNClassifier(**SMALL | params).fit(X, y, weight)


class TestTargetsOfSamples:
    @pytest.mark.parametrize(
        "form",
        [
            list,
            tuple,
            np.asarray,
            torch.tensor,
            pl.Series,
            lambda z: z.astype(object),
            lambda z: pd.Series(z, index=range(50, 58)),
        ],
    )
    def test_any_form_is_the_same(self, form):
        found = read_targets(form(Z), sequences_of(ARRAY), False)
        assert_array_equal(found.astype(float), Z)
        assert_array_equal(fit(ARRAY, form(Z)).predict(ARRAY), fit(ARRAY, Z).predict(ARRAY))

    @pytest.mark.parametrize("shape", [(8,), (8, 1), (8, 3)])
    def test_predictions_have_the_shape_of_targets(self, shape):
        assert fit(ARRAY, RNG.normal(size=shape)).predict(ARRAY).shape == shape

    def test_columns_of_a_frame_are_outputs(self):
        two = np.column_stack([Z, -Z])
        found = fit(ARRAY, pd.DataFrame(two, columns=["a", "b"])).predict(ARRAY)
        assert_array_equal(found, fit(ARRAY, two).predict(ARRAY))

    @pytest.mark.parametrize(
        ("y", "error", "message"),
        [
            (None, ValueError, "requires y to be passed, but the target y is None"),
            (3.0, TypeError, "at least 1 dimension"),
            (Z[:5], ValueError, r"inconsistent numbers of samples: \[8, 5\]"),
            (np.zeros((8, 2, 2)), ValueError, r"\(N, k\).*\(8, 2, 2\).*set many_to_many=True"),
            (STEPS, ValueError, "samples of different lengths.*set many_to_many=True"),
            (np.zeros((8, 0)), ValueError, r"0 feature\(s\)"),
            (["1.5"] * 8, ValueError, "y must hold numbers; got <U3"),
            (np.array(["x"] * 8, object), ValueError, "y must hold numbers; could not convert"),
            (np.zeros(8, "M8[s]"), ValueError, "y must hold numbers; got datetime64"),
            (Z * 1j, ValueError, "Complex data not supported"),
            (np.where(np.arange(8) == 5, np.nan, Z), ValueError, "NaN: 1 targets.*at sample 5. Dr"),
            (np.where(np.arange(8) > 5, np.inf, Z), ValueError, "infinity: 2 .*at sample 6. Dr"),
        ],
    )
    def test_what_is_no_target_is_refused(self, y, error, message):
        with pytest.raises(error, match=message):
            fit(ARRAY, y)


class TestTargetsOfSteps:
    @pytest.mark.parametrize(
        "form",
        [
            list,
            tuple,
            lambda y: [part.tolist() for part in y],
            lambda y: [torch.tensor(part) for part in y],
            lambda y: [pd.Series(part, index=range(9, 9 + len(part))) for part in y],
            lambda y: [pl.Series(part) for part in y],
            lambda y: pd.Series(y, index=range(10, 18)),
        ],
    )
    def test_any_form_of_a_list_is_the_same(self, form):
        found = read_targets(form(STEPS), sequences_of(RAGGED), True)
        assert_array_equal(found, np.concatenate(STEPS))

    @pytest.mark.parametrize(
        "form", [np.asarray, np.asfortranarray, torch.tensor, pd.DataFrame, np.ndarray.tolist]
    )
    def test_rows_of_a_table_are_samples(self, form):
        y = RNG.normal(size=(8, 3))
        found = read_targets(form(y), sequences_of(ARRAY), True)
        assert_array_equal(found, y.ravel())

    def test_rows_of_a_polars_frame_are_samples(self):
        y = RNG.normal(size=(8, 3))
        found = read_targets(pl.DataFrame(y), sequences_of(ARRAY), True)
        assert_array_equal(found, y.ravel())

    @given(lengths=st.lists(st.integers(1, 4), min_size=1, max_size=4), k=st.integers(1, 3))
    @settings(max_examples=40, deadline=None)
    def test_steps_lie_one_sample_below_the_other(self, lengths, k):
        y = [np.arange(n * k).reshape(n, k) + 100 * i for i, n in enumerate(lengths)]
        found = read_targets(y, sequences_of([np.ones((n, 2)) for n in lengths]), True)
        assert_array_equal(found, np.concatenate(y))

    @pytest.mark.parametrize(
        ("y", "message"),
        [
            (3.0, "inconsistent numbers of samples"),
            (STEPS[:3], r"inconsistent numbers of samples: \[8, 3\]"),
            (Z, r"one target per step.*for sample 0 it must have shape \(3,\), got \(\)"),
            ([*STEPS[:7], np.zeros(7)], r"for sample 7 it must have shape \(6,\), got \(7,\)"),
            (
                [np.zeros((n, 1 + i % 2)) for i, n in enumerate(LENGTHS)],
                r"sample 1 it must have shape \(1, 1\), got \(1, 2\)",
            ),
            ([*STEPS[:7], [[1, 2], [3]]], "those of sample 7 differ in length"),
            (
                [*STEPS[:4], [0, 0, np.nan, 0, 0], *STEPS[5:]],
                "sample 4, step 2. Drop these samples, or give these steps a weight of 0",
            ),
        ],
    )
    def test_what_does_not_match_the_steps_is_named(self, y, message):
        with pytest.raises(ValueError, match=message):
            fit(RAGGED, y, many_to_many=True)


class TestLabels:
    @pytest.mark.parametrize(
        ("labels", "error", "message"),
        [
            (Z, ValueError, "Unknown label type: continuous"),
            (np.zeros(8, int), ValueError, r"at least 2 classes; got 1 class: \[0\]"),
            (np.array(["a", None] * 4, object), ValueError, "4 are missing, the first at sample 1"),
            (
                np.array(["a", np.nan] * 4, object),
                ValueError,
                "a label everywhere; 4 are missing, the first at sample 1. Drop these samples$",
            ),
            ([0, 1, np.nan, 0, 0, 1, 1, 1], ValueError, "NaN: 1 targets .* at sample 2"),
            (np.array([["a", "b"]] * 8), ValueError, "should be a 1d array"),
        ],
    )
    def test_what_is_no_label_is_refused(self, labels, error, message):
        with pytest.raises(error, match=message):
            classify(ARRAY, labels)

    def test_a_missing_label_of_a_step_is_named(self):
        y = [np.array(["a", "b"] * n, dtype=object)[:n] for n in LENGTHS]
        y[4][3] = None
        with pytest.raises(ValueError, match="at sample 4, step 3.*a weight of 0 and any label"):
            classify(RAGGED, y, many_to_many=True)

    def test_a_column_of_labels_warns_as_in_scikit_learn(self):
        with pytest.warns(DataConversionWarning):
            classify(ARRAY, np.array([["a"], ["b"]] * 4))


class TestWeights:
    @pytest.mark.parametrize(
        "form",
        [np.asarray, list, lambda w: pd.Series(w, index=range(5, 13)), pl.Series, torch.tensor],
    )
    @pytest.mark.parametrize("many", [False, True])
    def test_any_form_of_weights_of_samples(self, form, many):
        given_weights = np.arange(1.0, 9.0)
        found = read_weights(form(given_weights), sequences_of(RAGGED), many)
        expected = np.repeat(given_weights, LENGTHS) if many else given_weights
        assert_array_equal(found / found.max(), expected / 8)

    @pytest.mark.parametrize("form", [np.asarray, pd.DataFrame, torch.tensor, np.ndarray.tolist])
    def test_any_form_of_weights_of_steps(self, form):
        weights = np.arange(24.0).reshape(8, 3)
        found = read_weights(form(weights), sequences_of(ARRAY), True)
        assert_array_equal(found / found.max(), weights.ravel() / 23)

    @pytest.mark.parametrize("many", [False, True])
    def test_a_number_is_the_weight_of_all(self, many):
        y = STEPS if many else Z
        found = fit(RAGGED, y, 2.5, many_to_many=many).predict(RAGGED)
        expected = fit(RAGGED, y, many_to_many=many).predict(RAGGED)
        assert_allclose(np.hstack(found), np.hstack(expected), rtol=1e-6)

    @pytest.mark.parametrize("unit", [1e-320, 1e-300, 1e300, 1e308])
    def test_the_unit_of_weights_does_not_matter(self, unit):
        weights = np.array([1.0, 0, 1, 1, 0, 1, 1, 1])
        assert_array_equal(
            fit(ARRAY, Z, weights * unit).predict(ARRAY), fit(ARRAY, Z, weights).predict(ARRAY)
        )

    @pytest.mark.parametrize("many", [False, True])
    @pytest.mark.parametrize(
        ("weights", "message"),
        [
            (-np.ones(8), "Negative values"),
            (np.zeros(8), "at least one"),
            (np.ones(5), "sample_weight.shape|inconsistent"),
            ([], r"0 sample\(s\)"),
            (np.full(8, np.nan), "NaN"),
        ],
    )
    def test_weights_that_are_none_are_refused(self, weights, message, many):
        with pytest.raises(ValueError, match=message):
            fit(RAGGED, STEPS if many else Z, weights, many_to_many=many)

    @pytest.mark.parametrize(
        ("value", "message"),
        [
            (-1.0, r"not negative; at sample 4, step 2 it is -1\.0"),
            (np.nan, "at sample 4, step 2 it is nan"),
            (np.inf, "at sample 4, step 2 it is inf"),
        ],
    )
    def test_a_weight_of_a_step_that_is_none_is_named(self, value, message):
        weights = [np.ones(n) for n in LENGTHS]
        weights[4][2] = value
        with pytest.raises(ValueError, match=message):
            fit(RAGGED, STEPS, weights, many_to_many=True)

    def test_weights_of_steps_must_match_the_steps(self):
        weights = [np.ones(n) for n in LENGTHS]
        weights[3] = np.ones(2)
        with pytest.raises(ValueError, match=r"for sample 3 it must have shape \(1,\), got \(2,\)"):
            fit(RAGGED, STEPS, weights, many_to_many=True)

    def test_weights_of_steps_are_for_targets_of_steps(self):
        with pytest.raises(ValueError, match="must be 1D array or scalar, got 2D array"):
            fit(ARRAY, Z, np.ones((8, 3)))
