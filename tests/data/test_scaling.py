import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsrnn.data import Scaler

panels = st.tuples(
    st.lists(st.integers(1, 8), min_size=1, max_size=5),
    st.integers(1, 3),
    st.integers(0, 2**32 - 1),
    st.floats(-1e6, 1e6),
    st.floats(1e-6, 1e6),
)


def draw(lengths, n, seed, location, scale):
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    values = np.random.default_rng(seed).normal(location, scale, (indptr[-1], n))
    return values, indptr


@given(panels)
def test_moments_are_those_of_each_series(panel):
    values, indptr = draw(*panel)
    scaler = Scaler.fit(values, indptr)
    for i, rows in enumerate(np.split(values, indptr[1:-1])):
        np.testing.assert_allclose(scaler.location[i], rows.mean(0), rtol=1e-10)
        expected = rows.std(0) if len(rows) > 1 else np.ones(values.shape[1])
        np.testing.assert_allclose(scaler.scale[i], expected, rtol=1e-6)


@given(panels, st.booleans())
def test_inverse_undoes_transform(panel, pooled):
    values, indptr = draw(*panel)
    scaler = Scaler.fit(values, indptr, pooled=pooled)
    back = scaler.inverse(scaler.transform(values, indptr), indptr)
    np.testing.assert_allclose(back, values, rtol=1e-13, atol=1e-13 * np.abs(values).max())


def test_pooled_is_one_series():
    values, indptr = draw([3, 4, 2], 2, 0, 5.0, 3.0)
    scaler = Scaler.fit(values, indptr, pooled=True)
    np.testing.assert_allclose(scaler.location, values.mean(0, keepdims=True))
    np.testing.assert_allclose(scaler.scale, values.std(0, keepdims=True))
    np.testing.assert_allclose(scaler.transform(values).std(0), 1.0)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e9 + 0.1, -7.3e-12])
def test_a_constant_series_gets_scale_one(value):
    values = np.full((1013, 1), value)
    scaler = Scaler.fit(values, np.array([0, 13, 1013]))
    np.testing.assert_array_equal(scaler.scale, 1.0)
    np.testing.assert_array_equal(scaler.transform(values, np.array([0, 13, 1013])), 0.0)


def test_forecasts_of_each_series_and_of_some():
    values, indptr = draw([3, 4, 2], 2, 0, 5.0, 3.0)
    scaler = Scaler.fit(values, indptr)
    forecasts = np.random.default_rng(1).normal(size=(3, 6, 2))
    out = scaler.inverse(forecasts)
    for i in range(3):
        np.testing.assert_allclose(out[i], forecasts[i] * scaler.scale[i] + scaler.location[i])
    some = scaler.inverse(forecasts[[2, 0, 2, 1]], series=[2, 0, 2, 1])
    np.testing.assert_array_equal(some, out[[2, 0, 2, 1]])


def test_state_as_arrays_or_lists():
    values, indptr = draw([3, 4], 2, 0, 5.0, 3.0)
    scaler = Scaler.fit(values, indptr)
    state = scaler.to_dict()
    for again in (state, {key: value.tolist() for key, value in state.items()}):
        copy = Scaler.from_dict(again)
        np.testing.assert_array_equal(
            copy.transform(values, indptr), scaler.transform(values, indptr)
        )
        assert copy.pooled is False


def test_shapes_that_do_not_fit():
    values, indptr = draw([3, 4], 2, 0, 0.0, 1.0)
    scaler = Scaler.fit(values, indptr)
    with pytest.raises(ValueError, match="7 entries in their first axis, but 2"):
        scaler.transform(values)
    with pytest.raises(ValueError, match="must have 2 columns"):
        scaler.transform(values[:, :1], indptr)
    with pytest.raises(ValueError, match="either indptr or series"):
        scaler.transform(values, indptr, series=[0])
    for wrong in ([0, 3], [0, 3, 3, 7], [1, 7], [0]):
        with pytest.raises(ValueError, match="indptr must rise from 0"):
            Scaler.fit(values, np.array(wrong))
