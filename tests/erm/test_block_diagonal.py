"""Block diagonal forms against the algebra they must satisfy and against known distances."""

import warnings

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.linalg import block_diag
from scipy.optimize import linear_sum_assignment, minimize

import tsrnn.erm.theory._block_diagonal as module
from tsrnn.erm import nearest_block_diagonal
from tsrnn.interpret import jordan_block

EPS = np.finfo(float).eps


def legal_sizes(d):
    return [s for s in range(1, d + 1) if d % s == 0 and (s in (1, d) or s % 2 == 0)]


def check(W, form, size, limit=1e6):
    """What holds of every form, whatever the matrix."""
    d = len(W)
    B = form.transformation
    assert form.blocks.shape == (d // size, size, size)
    assert form.blocks.dtype == B.dtype == np.float64
    assert form.condition == pytest.approx(np.linalg.cond(B), rel=1e-6)
    assert form.condition <= limit * (1 + 1e-6)
    product = B @ block_diag(*form.blocks) @ np.linalg.inv(B)
    norm = np.linalg.norm(W)
    rounding = 100 * d * EPS * form.condition * (norm + np.linalg.norm(form.blocks))
    assert np.linalg.norm(form.matrix() - product) <= rounding
    assert abs(form.distance - np.linalg.norm(W - product)) <= rounding
    assert form.relative_distance * norm == pytest.approx(form.distance, rel=1e-12, abs=1e-320)
    assert form.relative_distance <= 1 + 1e-12
    for block in B.T.reshape(-1, size, d):
        np.testing.assert_allclose(block @ block.T, np.eye(size), atol=1e-12)


def spectrum(form):
    return np.concatenate([np.linalg.eigvals(block) for block in form.blocks])


def spectral_gap(left, right):
    """Largest difference of two sets of eigenvalues, matched at best."""
    gaps = np.abs(left[:, None] - right[None, :])
    return gaps[linear_sum_assignment(gaps)].max()


@settings(deadline=None, max_examples=60)
@given(st.data(), st.integers(1, 12), st.integers(0, 2**32 - 1), st.sampled_from([1e-8, 1, 1e8]))
def test_random_matrices_are_similar_to_even_blocks(data, d, seed, scale):
    size = data.draw(st.sampled_from(legal_sizes(d)[1:] or [1]))
    W = scale * np.random.default_rng(seed).normal(size=(d, d))
    form = nearest_block_diagonal(W, size)
    check(W, form, size)
    assert form.relative_distance <= 100 * d * EPS * form.condition
    assert spectral_gap(spectrum(form), np.linalg.eigvals(W)) <= 1e-9 * form.condition * scale


@pytest.mark.parametrize("size", [2, 4, 8, 32, 64])
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_large_random_matrices(size, scale):
    W = scale * np.random.default_rng(size).normal(size=(64, 64))
    form = nearest_block_diagonal(W, size)
    check(W, form, size)
    assert form.relative_distance < 1e-12
    assert form.condition < 1e4
    assert spectral_gap(spectrum(form), np.linalg.eigvals(W)) < 1e-9 * scale


@settings(deadline=None, max_examples=60)
@given(
    st.data(),
    st.integers(1, 8).flatmap(
        lambda d: arrays(float, (d, d), elements=st.sampled_from([-2.0, -1.0, 0.0, 0.0, 0.5, 1.0]))
    ),
)
@example(None, np.zeros((4, 4)))
@example(None, np.eye(4, k=1))
@example(None, np.ones((6, 6)))
def test_any_matrix_has_a_form(data, W):
    """Small whole numbers: defective, nilpotent and rank-deficient matrices are frequent."""
    sizes = legal_sizes(len(W))
    for size in sizes if data is None else [data.draw(st.sampled_from(sizes))]:
        form = nearest_block_diagonal(W, size)
        check(W, form, size)
        if size > 1:
            assert form.relative_distance < 1e-5
        if size == 1:
            assert np.all(spectrum(form).imag == 0)


@pytest.mark.parametrize("scale", [1e-300, 1e-8, 1e8, 1e150])
@pytest.mark.parametrize("size", [1, 2, 4])
def test_scaling_a_matrix_scales_its_blocks(size, scale):
    W = np.random.default_rng(5).normal(size=(8, 8))
    scale = 2.0 ** np.round(np.log2(scale))
    one, other = nearest_block_diagonal(W, size), nearest_block_diagonal(scale * W, size)
    np.testing.assert_allclose(other.blocks, scale * one.blocks, rtol=1e-9)
    np.testing.assert_allclose(other.transformation, one.transformation, rtol=1e-9)
    assert other.relative_distance == pytest.approx(one.relative_distance, rel=1e-6)


JORDAN = {
    "R-4": jordan_block(0.5, order=4),
    "R-8": jordan_block(0.5, order=8),
    "nilpotent": jordan_block(0.0, order=8),
    "C-2": jordan_block(0.9, 1.0, order=2),
    "C-4": jordan_block(0.9, 1.0, order=4),
    "R-3 and R-5": block_diag(jordan_block(0.5, order=3), jordan_block(0.5, order=5)),
    "C-2 and R-4": block_diag(jordan_block(0.8, 0.5, order=2), jordan_block(0.3, np.pi, order=4)),
}


@pytest.mark.parametrize("name", JORDAN)
@pytest.mark.parametrize("similar", [False, True])
def test_defective_matrices_come_near_within_the_condition_number(name, similar):
    """The distance falls about as 1 / max_condition, as Gaussian regularisation promises."""
    W = JORDAN[name]
    if similar:
        V = np.random.default_rng(1).normal(size=W.shape)
        W = V @ W @ np.linalg.inv(V)
    distances = []
    for limit in (1e2, 1e4, 1e6):
        form = nearest_block_diagonal(W, 2, max_condition=limit)
        check(W, form, 2, limit)
        distances.append(form.relative_distance)
        assert form.relative_distance < 20 / limit
    if distances[-1] > 1e-12:
        assert distances[0] > distances[1] > distances[2]


def test_a_jordan_block_of_64():
    W = jordan_block(0.5, order=64)
    form = nearest_block_diagonal(W)
    check(W, form, 2)
    assert form.relative_distance < 1e-4


@pytest.mark.parametrize("rank", [1, 2, 3, 7])
def test_rank_deficient_matrices(rank):
    rng = np.random.default_rng(rank)
    W = rng.normal(size=(16, rank)) @ rng.normal(size=(rank, 16))
    form = nearest_block_diagonal(W)
    check(W, form, 2)
    assert form.relative_distance < 1e-13


def test_near_eigenvalues_share_a_block():
    """Two double defective eigenvalues: only blocks that hold each whole are exact."""
    V = np.random.default_rng(2).normal(size=(4, 4))
    W = V @ block_diag(jordan_block(0.5, order=2), jordan_block(0.9, order=2)) @ np.linalg.inv(V)
    form = nearest_block_diagonal(W)
    assert form.relative_distance < 1e-12
    means = sorted(np.trace(block) / 2 for block in form.blocks)
    np.testing.assert_allclose(means, [0.5, 0.9], atol=1e-10)


def test_larger_blocks_gather_near_eigenvalues():
    V = np.random.default_rng(3).normal(size=(8, 8))
    parts = [jordan_block(0.5, 1.0, order=2), jordan_block(0.7, np.pi, order=4)]
    W = V @ block_diag(*parts) @ np.linalg.inv(V)
    form = nearest_block_diagonal(W, 4)
    assert form.relative_distance < 1e-12
    found = sorted(np.trace(block) for block in form.blocks)
    np.testing.assert_allclose(found, sorted(np.trace(part) for part in parts), atol=1e-10)


def test_what_is_block_diagonal_comes_back():
    blocks = np.random.default_rng(4).normal(size=(3, 2, 2))
    blocks[1] = jordan_block(0.5, order=2)
    blocks[2] = blocks[1]
    form = nearest_block_diagonal(block_diag(*blocks), 2)
    np.testing.assert_array_equal(form.blocks, blocks)
    np.testing.assert_array_equal(form.transformation, np.eye(6))
    assert form.distance == 0.0
    assert form.condition == 1.0


def real_distance(W):
    """Distance to matrices with real eigenvalues, minimised over all orthogonal triangular forms.

    A 2 x 2 matrix has them if and only if a rotation makes it upper triangular.
    """
    c = np.linspace(0, np.pi, 200_001)
    lower = (
        -W[0, 0] * np.cos(c) * np.sin(c) - W[0, 1] * np.sin(c) ** 2
        + W[1, 0] * np.cos(c) ** 2 + W[1, 1] * np.cos(c) * np.sin(c)
    )  # fmt: skip
    return np.abs(lower).min()


@settings(deadline=None, max_examples=40)
@given(arrays(float, (2, 2), elements=st.floats(-5, 5).map(lambda x: round(x, 3))))
def test_distance_of_a_pair_to_diagonal_matrices(W):
    form = nearest_block_diagonal(W, 1)
    check(W, form, 1)
    limit = real_distance(W)
    scale = np.abs(W).max()
    assert limit - 1e-4 * scale <= form.distance <= limit + 2e-5 * scale


@pytest.mark.parametrize(("modulus", "angle"), [(1.0, 0.7), (0.3, 2.0), (2.0, np.pi / 2)])
def test_distance_of_a_damped_wave_is_its_imaginary_part(modulus, angle):
    form = nearest_block_diagonal(jordan_block(modulus, angle), 1)
    assert form.distance == pytest.approx(modulus * np.sin(angle), rel=1e-5)


def test_a_search_finds_no_nearer_matrix_for_one_pair():
    """Nelder-Mead over B and W~ of 2 x 2 comes no nearer than min(|b|, |c|)."""
    W = np.array([[0.4, 2.0], [-0.5, 0.4]])

    def distance(theta):
        B = theta[:4].reshape(2, 2)
        if np.linalg.cond(B) > 1e6:
            return 1e6
        return np.linalg.norm(W - B @ np.diag(theta[4:]) @ np.linalg.inv(B))

    rng = np.random.default_rng(0)
    options = {"maxiter": 4000, "maxfev": 4000}
    found = min(
        minimize(distance, rng.normal(size=6), method="Nelder-Mead", options=options).fun
        for _ in range(6)
    )
    assert nearest_block_diagonal(W, 1).distance == pytest.approx(0.5, abs=1e-5)
    assert 0.5 - 1e-6 < found < 0.6


def test_symmetric_matrices_are_orthogonally_diagonal():
    A = np.random.default_rng(6).normal(size=(12, 12))
    form = nearest_block_diagonal(A + A.T, 1)
    assert form.condition == pytest.approx(1.0, abs=1e-9)
    assert form.relative_distance < 1e-13
    np.testing.assert_allclose(
        np.sort(form.blocks.ravel()), np.linalg.eigvalsh(A + A.T), atol=1e-10
    )


def test_a_strict_limit_is_answered_with_an_orthogonal_form():
    W = np.random.default_rng(7).normal(size=(16, 16))
    for size in (1, 2, 4):
        form = nearest_block_diagonal(W, size, max_condition=1.01)
        check(W, form, size, 1.01)


def test_blocks_that_cannot_be_exchanged_are_disturbed(monkeypatch):
    """Where LAPACK refuses, the search goes on to a perturbation, or to the orthogonal form."""
    W = np.random.default_rng(8).normal(size=(8, 8))
    grouped, calls = module._grouped, []

    def refuse_once(T, Q, size):
        calls.append(size)
        return None if len(calls) == 1 else grouped(T, Q, size)

    monkeypatch.setattr(module, "_grouped", refuse_once)
    form = nearest_block_diagonal(W, 4)
    check(W, form, 4)
    assert form.relative_distance < 1e-12
    monkeypatch.setattr(module, "_grouped", lambda T, Q, size: None)
    form = nearest_block_diagonal(W, 4)
    check(W, form, 4)
    assert 0 < form.relative_distance < 1


def test_no_global_generator_is_used():
    np.random.seed(1)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    W = jordan_block(0.5, order=4)
    first, second = nearest_block_diagonal(W), nearest_block_diagonal(W)
    np.testing.assert_array_equal(first.transformation, second.transformation)
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002


def test_the_argument_is_left_as_it_was():
    W = np.asfortranarray(np.random.default_rng(9).normal(size=(8, 8)))
    kept = W.copy()
    for size in (1, 2, 4, 8):
        nearest_block_diagonal(W, size)
    np.testing.assert_array_equal(W, kept)


@pytest.mark.parametrize(
    ("matrix", "size", "error", "message"),
    [
        (np.zeros((2, 3)), 2, ValueError, r"square, of shape \(d, d\); got shape \(2, 3\)"),
        (np.zeros(4), 2, ValueError, "square"),
        (np.zeros((0, 0)), 2, ValueError, "square"),
        (np.array([[1.0, np.nan], [0.0, 1.0]]), 2, ValueError, "row 0, column 1"),
        (np.eye(2) * 1j, 2, TypeError, "real numbers"),
        (np.array([["a"]]), 1, TypeError, "real numbers"),
        (np.eye(6), 4, ValueError, r"one of \[1, 2, 6\]; got 4"),
        (np.eye(6), 3, ValueError, r"one of \[1, 2, 6\]; got 3"),
        (np.eye(5), 2, ValueError, r"one of \[1, 5\]; got 2"),
        (np.eye(4), 0, ValueError, "positive integer"),
        (np.eye(4), 2.0, TypeError, "positive integer"),
    ],
)
def test_errors_say_what_is_legal(matrix, size, error, message):
    with pytest.raises(error, match=message):
        nearest_block_diagonal(matrix, size)


@pytest.mark.parametrize("limit", [1.0, -3, np.nan, "1e6"])
def test_condition_number_must_be_above_one(limit):
    with pytest.raises(ValueError, match="max_condition must be a number greater than 1"):
        nearest_block_diagonal(np.eye(4), max_condition=limit)


def test_no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for size in (1, 2, 4):
            nearest_block_diagonal(np.triu(np.full((16, 16), 1e3), 1), size)
