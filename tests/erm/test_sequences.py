"""Reading X: whatever it comes as, it is the same sequences, or an error that says where not."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from tsrnn.erm import ParaRNNRegressor
from tsrnn.erm._sequences import read_sequences

RNG = np.random.default_rng(0)
ARRAY = RNG.integers(-4, 5, size=(6, 3, 2)).astype(float)
TABLE = RNG.integers(-4, 5, size=(6, 4)).astype(float)
RAGGED = [RNG.integers(-4, 5, size=(n, 2)).astype(float) for n in (3, 1, 4, 1, 5, 9)]


def read(X):
    return read_sequences(X, "ParaRNNRegressor")


def small(**params):
    return ParaRNNRegressor(4, max_epochs=1, random_state=0, **params)


def frozen(array):
    array = array.copy()
    array.flags.writeable = False
    return array


def objects(items):
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array


class TestArrays:
    @pytest.mark.parametrize(
        "form",
        [
            lambda a: a.astype("f2"),
            lambda a: a.astype("i1"),
            lambda a: a.astype(object),
            np.asfortranarray,
            frozen,
            lambda a: np.repeat(a, 2, axis=1)[:, ::2],
            lambda a: a[::-1][::-1],
            torch.tensor,
            lambda a: torch.tensor(a).transpose(0, 1).contiguous().transpose(0, 1),
        ],
    )
    @pytest.mark.parametrize("array", [ARRAY, TABLE])
    def test_any_form_of_an_array_is_that_array(self, array, form):
        sequences = read(form(array))
        assert sequences.values.dtype == np.float64
        assert sequences.kind == ("array" if array.ndim == 3 else "table")
        assert_array_equal(sequences.values, array.reshape(len(sequences.values), -1))
        assert_array_equal(sequences.lengths, np.full(6, array.shape[1]))

    def test_booleans_are_0_and_1(self):
        assert_array_equal(read(ARRAY > 0).values, (ARRAY > 0).reshape(18, 2).astype(float))

    @pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
    def test_columns_of_a_frame_are_steps_and_keep_their_names(self, frame):
        X = frame(dict(zip("abcd", TABLE.T, strict=True)))
        model = small().fit(X, np.arange(6.0))
        assert_array_equal(model.feature_names_in_, list("abcd"))
        assert model.n_features_in_ == 4
        assert_array_equal(model.predict(X), small().fit(TABLE, np.arange(6.0)).predict(TABLE))
        other = frame(dict(zip("abdc", TABLE.T, strict=True)))
        with pytest.raises(ValueError, match="feature names should match"):
            model.predict(other)

    def test_reading_leaves_the_array_alone(self):
        X = ARRAY.copy()
        small().fit(X, np.arange(6.0)).predict(X)
        assert_array_equal(X, ARRAY)


class TestLists:
    @pytest.mark.parametrize(
        "form",
        [
            list,
            tuple,
            objects,
            lambda items: [frozen(item) for item in items],
            lambda items: [item.tolist() for item in items],
            lambda items: [np.asfortranarray(item) for item in items],
            lambda items: [item.astype("f2") for item in items],
            lambda items: [item.astype(object) for item in items],
            lambda items: [torch.tensor(item) for item in items],
            lambda items: [pd.DataFrame(item, columns=["u", "v"]) for item in items],
            lambda items: [pl.DataFrame({"u": item[:, 0], "v": item[:, 1]}) for item in items],
        ],
    )
    def test_any_form_of_a_list_is_those_sequences(self, form):
        sequences = read(form(RAGGED))
        assert sequences.kind == "list"
        assert_array_equal(sequences.values, np.concatenate(RAGGED))
        assert_array_equal(sequences.lengths, [3, 1, 4, 1, 5, 9])

    @given(lengths=st.lists(st.integers(1, 7), min_size=1, max_size=8), width=st.integers(1, 3))
    @settings(max_examples=50, deadline=None)
    def test_rows_know_their_place(self, lengths, width):
        X = [np.full((n, width), i) + np.arange(n)[:, None] / 10 for i, n in enumerate(lengths)]
        sequences = read(X)
        assert len(sequences) == len(lengths)
        assert sequences.inputs.n_inputs == width
        row = 0
        for i, n in enumerate(lengths):
            for t in range(n):
                assert sequences.place(row) == (i, t)
                assert sequences.values[row, 0] == X[i][t, 0]
                row += 1
        back = sequences.in_shape(sequences.values)
        for one, given_one in zip(back, X, strict=True):
            assert_array_equal(one, given_one)

    @pytest.mark.parametrize("form", [np.asarray, torch.tensor, pd.Series, pl.Series])
    def test_arrays_of_one_axis_are_sequences_also_if_as_long(self, form):
        sequences = read([form(row) for row in TABLE])
        assert sequences.kind == "list"
        assert_array_equal(sequences.values, TABLE.reshape(-1, 1))

    def test_lists_of_as_many_numbers_are_a_table_as_in_scikit_learn(self):
        sequences = read(TABLE.tolist())
        assert sequences.kind == "table"
        assert_array_equal(sequences.values, TABLE.reshape(-1, 1))

    def test_of_lists_of_numbers_of_other_lengths_each_is_a_sequence(self):
        sequences = read([[1, 2, 3], [4]])
        assert_array_equal(sequences.values, [[1], [2], [3], [4]])
        assert_array_equal(sequences.lengths, [3, 1])

    def test_a_fit_to_as_long_arrays_predicts_others(self):
        model = small().fit(list(TABLE), np.arange(6.0))
        longer = np.tile(TABLE[0], 3)
        alone = model.predict([longer])
        assert_allclose(model.predict([longer, TABLE[1]])[0], alone[0], rtol=1e-5)

    def test_reading_many_takes_time_in_proportion(self):
        X = [np.ones((1 + i % 3, 1)) for i in range(100_000)]
        sequences = read(X)
        assert len(sequences) == 100_000
        assert len(sequences.in_shape(sequences.values)) == 100_000


def inside(where, value):
    X = [item.copy() for item in RAGGED]
    sample, step, column = where
    X[sample][step, column] = value
    return X


def at(where, value, array=ARRAY):
    X = array.copy()
    X[where] = value
    return X


REFUSED = {
    "none": (None, "X must be a table.*got None"),
    "scalar": (3.0, "Expected 2D array, got scalar"),
    "dict": ({"a": 1}, "X must be a table.*got a dict"),
    "generator": ((row for row in RAGGED), "a list or a frame; got a generator. Give a list"),
    "one axis": (np.ones(6), "Expected 2D array, got 1D array"),
    "empty list": ([], "X must be.*got an empty list"),
    "no samples": (ARRAY[:0], r"Found array with 0 sample\(s\)"),
    "no steps": (ARRAY[:, :0], r"at least one step.*got shape \(6, 0, 2\)"),
    "no inputs": (ARRAY[..., :0], r"got shape \(6, 3, 0\)"),
    "no columns": (TABLE[:, :0], r"0 feature\(s\)"),
    "four axes": (ARRAY[None], r"X must be.*got shape \(1, 6, 3, 2\)"),
    "empty sequence": (
        [RAGGED[0], np.ones((0, 2))],
        r"at least one step and one input; sequence 1 has shape \(0, 2\)",
    ),
    "sequence without inputs": ([np.ones((2, 0))], r"sequence 0 has shape \(2, 0\)"),
    "other inputs": ([*RAGGED, np.ones((2, 3))], "sequence 0 has 2, sequence 6 has 3"),
    "ragged rows": ([[[1, 2], [3]], [[1, 2]]], "sequence 0 of X.*differ in length"),
    "numbers among sequences": ([1, [2, 3]], "X must be.*got a list of other things"),
    "sequences of three axes": ([np.ones((2, 2, 2)), np.ones((3, 2, 2))], "a list of other things"),
    "text": (np.full((6, 2), "1.5"), "X must hold numbers; got <U3"),
    "text in a list": ([["1", "2"], ["3"]], "sequence 0 of X must hold numbers"),
    "words": (["a", "b"], "X must hold numbers; got <U1"),
    "words among objects": (
        [np.array([1, "x"], dtype=object), np.ones(3)],
        "sequence 0 of X must hold numbers; could not convert",
    ),
    "dates": (np.zeros((6, 2), "M8[D]"), "X must hold numbers; got datetime64"),
    "spans in a list": (
        [np.ones(2), np.zeros(3, "m8[s]")],
        "sequence 1 of X must hold numbers; got timedelta64",
    ),
    "complex": (ARRAY * 1j, "Complex data not supported"),
    "complex in a list": ([np.ones(2), np.ones(3) * 1j], "sequence 1 of X has complex"),
    "masked": (np.ma.masked_array(ARRAY, ARRAY > 1), "X is masked"),
    "masked in a list": (
        [np.ones(2), np.ma.masked_array(np.ones(3), [0, 1, 0])],
        "sequence 1 of X is masked",
    ),
    "NaN": (
        at((4, 1, 1), np.nan),
        "Input X contains NaN: 1 values are not finite, the first at sample 4, step 1, input 1",
    ),
    "NaN of a table": (at((5, 2), np.nan, TABLE), "the first at sample 5, step 2, input 0"),
    "infinity": (
        inside((4, 3, 1), -np.inf),
        "Input X contains infinity.*sample 4, step 3, input 1",
    ),
    "None in a list": ([[None, 1], [2]], "Input X contains NaN.*sample 0, step 0"),
}


class TestRefusals:
    @pytest.mark.parametrize("name", REFUSED)
    def test_what_cannot_be_read_is_named(self, name):
        X, message = REFUSED[name]
        error = TypeError if name in ("none", "dict", "generator") else ValueError
        with pytest.raises(error, match=f"(?s){message}"):
            read(X)

    @given(
        sample=st.integers(0, 5), data=st.data(), value=st.sampled_from([np.nan, np.inf, -np.inf])
    )
    @settings(max_examples=30, deadline=None)
    def test_the_first_value_that_is_not_finite_is_named(self, sample, data, value):
        step = data.draw(st.integers(0, len(RAGGED[sample]) - 1))
        column = data.draw(st.integers(0, 1))
        with pytest.raises(
            ValueError, match=rf"sample {sample}, step {step}, input {column}\. Fill"
        ):
            read(inside((sample, step, column), value))

    def test_masked_arrays_with_nothing_masked_are_read(self):
        assert_array_equal(read(np.ma.masked_array(TABLE)).values, TABLE.reshape(-1, 1))

    def test_predictions_need_the_inputs_of_the_fit(self):
        model = small().fit(ARRAY, np.arange(6.0))
        for other, count in ((ARRAY[..., :1], 1), (TABLE, 1), ([np.ones((2, 3))], 3)):
            with pytest.raises(ValueError, match=f"X has {count} inputs per step.*expecting 2"):
                model.predict(other)

    def test_a_table_needs_the_columns_of_the_table_fitted_to(self):
        model = small().fit(TABLE, np.arange(6.0))
        with pytest.raises(ValueError, match="X has 3 features, but .* is expecting 4 features"):
            model.predict(TABLE[:, :3])
        assert model.predict(TABLE[:, :3, None]).shape == (6,)
        with pytest.raises(ValueError, match="X has 2 inputs per step.*expecting 1"):
            model.predict(ARRAY)

    def test_a_fit_to_sequences_of_one_input_takes_any_table(self):
        model = small().fit(TABLE[:, :, None], np.arange(6.0))
        assert_array_equal(model.predict(TABLE[:, :2]), model.predict(TABLE[:, :2, None]))


class TestMagnitudes:
    @pytest.mark.parametrize("unit", [1e-140, 1e-30, 1e30, 1e70])
    def test_the_unit_of_inputs_and_targets_does_not_matter(self, unit):
        y = np.arange(6.0)
        expected = small().fit(ARRAY, y).predict(ARRAY)
        found = small().fit(ARRAY * unit, y * unit).predict(ARRAY * unit)
        assert_allclose(found / unit, expected, rtol=1e-4)

    @pytest.mark.parametrize(("unit", "wrong"), [(1e300, "overflows"), (1e-300, "underflows")])
    @pytest.mark.parametrize("which", ["X", "y"])
    def test_units_beyond_squares_are_refused(self, unit, wrong, which):
        X, y = ARRAY, np.arange(6.0)
        X, y = (X * unit, y) if which == "X" else (X, y * unit)
        with pytest.raises(ValueError, match=rf"of {which} {wrong}.*Change its unit"):
            small().fit(X, y)

    @pytest.mark.parametrize("which", ["X", "y"])
    def test_numbers_beyond_float32_are_refused_where_nothing_is_standardised(self, which):
        X, y = at((2, 1, 0), 1e40), np.arange(6.0)
        X, y = (X, y) if which == "X" else (ARRAY, y * 1e39)
        with pytest.raises(ValueError, match=f"{which} is too large for the network"):
            small(standardize=False).fit(X, y)

    def test_a_new_sequence_far_from_those_of_the_fit_is_named(self):
        model = small().fit(ARRAY, np.arange(6.0))
        with pytest.raises(ValueError, match=r"at sample 2, step 1, input 0 it is 1e\+60"):
            model.predict(at((2, 1, 0), 1e60))

    def test_a_constant_input_does_nothing(self):
        with_constant = np.concatenate([ARRAY, np.full((6, 3, 1), 7.0)], axis=2)
        model = small().fit(with_constant, np.arange(6.0))
        assert np.isfinite(model.predict(with_constant)).all()
        assert model.input_scaler_.scale_[2] == 1.0
