"""Lag curves against powers of the real Jordan block."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tsrnn.interpret import jordan_block, lag_curves, recurrence_features


@settings(max_examples=100, deadline=None)
@given(
    modulus=st.floats(0, 1.1),
    angle=st.sampled_from([0.0, np.pi]) | st.floats(0.01, 3.13),
    order=st.integers(1, 5),
)
def test_lag_curves_are_the_first_rows_of_the_powers(modulus, angle, order):
    block = jordan_block(modulus, angle, order)
    lags = np.arange(15)
    powers = np.stack([np.linalg.matrix_power(block, j) for j in lags])
    np.testing.assert_allclose(
        lag_curves(modulus, angle, order, lags), powers[:, 0], rtol=1e-10, atol=1e-12
    )


@pytest.mark.parametrize("angle", [0.0, np.pi, 0.7])
@pytest.mark.parametrize("order", [1, 2, 3])
def test_a_jordan_block_has_the_feature_it_was_built_from(angle, order):
    block = jordan_block(0.8, angle, order)
    (row,) = recurrence_features(block).itertuples()
    assert row.type == f"{'C' if angle == 0.7 else 'R'}-{order}"
    assert (row.modulus, row.angle) == pytest.approx((0.8, angle))
    assert len(block) == order * (2 if angle == 0.7 else 1)


def test_first_order_curves_are_those_of_the_literature():
    j = np.arange(20)
    np.testing.assert_allclose(lag_curves(0.9, 0.0, 1, j)[:, 0], 0.9**j)
    cos, sin = lag_curves(0.9, 0.3, 1, j).T
    np.testing.assert_allclose(cos, 0.9**j * np.cos(0.3 * j))
    np.testing.assert_allclose(sin, 0.9**j * np.sin(0.3 * j))


def test_the_impulse_response_of_the_linear_recurrence():
    block, last = jordan_block(0.9, 0.4, 2), np.array([0.0, 0.0, 1.0, 0.0])
    state, response = last, []
    for _ in range(12):
        response.append(state[0])
        state = block @ state
    np.testing.assert_allclose(lag_curves(0.9, 0.4, 2, np.arange(12))[:, 2], response, atol=1e-14)


def test_a_zero_eigenvalue_forgets_after_its_order():
    np.testing.assert_array_equal(lag_curves(0.0, np.nan, 3, np.arange(5)), np.eye(5, 3))


def test_long_lags_stay_finite():
    assert np.isfinite(lag_curves(0.99, 0.1, 4, [0, 10_000, 100_000])).all()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((-0.5, 0.0, 1), ValueError, "`modulus` must be finite and not negative; got -0.5"),
        ((np.nan, 0.0, 1), ValueError, "`modulus` must be finite"),
        ((0.5, 4.0, 1), ValueError, r"`angle` must be in \[0, pi\]"),
        ((0.5, np.nan, 1), ValueError, r"`angle` must be in \[0, pi\]"),
        ((0.5, 0.0, 0), ValueError, "`order` must be at least 1; got 0"),
        ((0.5, 0.0, 1.5), TypeError, "integer"),
    ],
)
def test_bad_features_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        jordan_block(*arguments)
    with pytest.raises(error, match=message):
        lag_curves(*arguments, [0, 1])


@pytest.mark.parametrize("lags", [3, [0.5], [-1], [[0, 1]], ["a"]])
def test_bad_lags_are_refused(lags):
    with pytest.raises(ValueError, match="`lags` must be a vector of whole numbers from 0 on"):
        lag_curves(0.5, 0.0, 1, lags)
