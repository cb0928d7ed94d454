"""Small systems, one by one and together, against numpy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tsrnn.linear._optimise import solve_positive


def draw(n, k, seed):
    generator = np.random.default_rng(seed)
    roots = generator.normal(size=(n, k, k + 2))
    matrices = roots @ roots.swapaxes(1, 2) / k
    return matrices, generator.normal(size=(n, k))


@settings(max_examples=30, deadline=None)
@given(n=st.integers(1, 60), k=st.integers(1, 9), seed=st.integers(0, 5))
def test_solutions(n, k, seed):
    matrices, right = draw(n, k, seed)
    before = matrices.copy()
    found, failed = solve_positive(matrices, right)
    np.testing.assert_array_equal(matrices, before)
    good = np.linalg.cond(matrices) < 1e6
    assert not failed[good].any()
    expected = np.linalg.solve(matrices, right[..., None])[..., 0]
    np.testing.assert_allclose(found[good], expected[good], rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("n", [3, 60])
def test_what_is_not_positive_definite_is_told_and_alone(n):
    matrices, right = draw(n, 4, 0)
    alone = solve_positive(matrices, right)[0]
    matrices[0, 3, 3] = -1.0
    matrices[1] = 1.0
    matrices[2] = np.nan
    found, failed = solve_positive(matrices, right)
    np.testing.assert_array_equal(failed, np.arange(n) < 3)
    np.testing.assert_array_equal(found[3:], alone[3:])
