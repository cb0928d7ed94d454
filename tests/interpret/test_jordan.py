"""The Jordan structure that recurrence_features finds, against matrices of known structure."""

import functools
from collections import Counter

import numpy as np
import pytest
import sympy
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.linalg import block_diag, hadamard

from tsrnn.interpret import jordan_block, recurrence_features

N_EXACT = 20

# Moduli and angles so far apart that no rounding takes one for another.
EIGENVALUES = [(0.95, 0.0), (0.6, 0.0), (0.9, np.pi), (0.5, np.pi), (0.9, 0.4), (0.8, 1.5)]
EIGENVALUES += [(0.7, 2.5), (0.0, 0.0)]


def build(parts):
    return block_diag(*(jordan_block(*part) for part in parts))


def basis(d, seed, condition=10.0):
    rng = np.random.default_rng(seed)
    left, right = (np.linalg.qr(rng.normal(size=(d, d)))[0] for _ in range(2))
    return left @ np.diag(np.geomspace(1.0, condition, d)) @ right


def similar(matrix, seed, condition=10.0):
    change = basis(len(matrix), seed, condition)
    return change @ matrix @ np.linalg.inv(change)


def name(modulus, angle, order):
    if modulus == 0:
        return ("zero", order)
    return ("R" if angle in (0.0, np.pi) else "C", order)


def types(features):
    kinds = features.type.str.split("-").str[0]
    return Counter(zip(kinds, features.order, strict=True))


def sizes(features):
    return features.order * np.where(features.type.str.startswith("C"), 2, 1)


parts_strategy = st.lists(
    st.tuples(st.sampled_from(EIGENVALUES), st.integers(1, 3)), min_size=1, max_size=4
).map(lambda parts: [(modulus, angle, order) for (modulus, angle), order in parts])


@settings(max_examples=80, deadline=None)
@given(parts_strategy, st.integers(0, 10_000))
@example([(0.9, 0.0, 2), (0.7, 1.0, 2), (0.5, np.pi, 4), (0.0, 0.0, 2), (0.0, 0.0, 1)], 0)
def test_known_structure_is_recovered_from_similar_matrices(parts, seed):
    matrix = build(parts)
    features = recurrence_features(similar(matrix, seed))
    assert types(features) == Counter(name(*part) for part in parts)
    found = np.sort_complex(features.modulus * np.exp(1j * features.angle.fillna(0.0)))
    np.testing.assert_allclose(
        found, np.sort_complex([m * np.exp(1j * a) for m, a, _ in parts]), atol=1e-9
    )


@pytest.mark.parametrize("order", [1, 2, 3, 4, 5, 6])
def test_high_orders_survive_the_spread_of_their_eigenvalues(order):
    matrix = similar(build([(0.9, 0.0, order), (0.5, 1.0, 1)]), seed=order)
    spread = np.ptp(np.abs(np.sort(np.abs(np.linalg.eigvals(matrix)))[-order:]))
    assert order < 3 or spread > 1e-8  # the distances alone would tell a wrong story
    assert types(recurrence_features(matrix)) == Counter({("R", order): 1, ("C", 1): 1})


@pytest.mark.parametrize(
    "parts", [[(0.9, 0.0, 2)], [(0.9, 0.7, 2)], [(0.0, 0.0, 2), (0.8, 0.0, 1)]]
)
def test_float32_matrices_are_judged_by_their_own_precision(parts):
    weights = similar(build(parts), seed=1).astype(np.float32)
    assert types(recurrence_features(weights)) == Counter(name(*part) for part in parts)
    strict = recurrence_features(weights.astype(float))  # read as exact, rounding splits it
    assert types(strict) != types(recurrence_features(weights))


def integer_matrix(seed):
    """Similar by a unimodular matrix to a block triangular one with Gaussian integers."""
    rng = np.random.default_rng(seed)
    pieces = [[[a]] for a in rng.integers(-1, 2, size=2)]
    pair = np.array([[1, 1], [-1, 1]]) * rng.choice([-1, 1])
    pieces += [pair] * int(rng.integers(0, 3))
    core = block_diag(*pieces)
    block = np.repeat(np.arange(len(pieces)), [len(p) for p in pieces])
    core = core + rng.integers(-1, 2, size=core.shape) * (block[:, None] < block[None, :])
    d = len(core)
    lower = np.tril(rng.integers(-1, 2, size=(d, d)), -1) + np.eye(d, dtype=int)
    inverse = np.rint(np.linalg.inv(lower)).astype(int)
    return lower @ core @ inverse


@functools.cache
def sympy_types(seed):
    matrix = sympy.Matrix(integer_matrix(seed).tolist())
    form = matrix.jordan_form(calc_transform=False)
    found = Counter()
    start = 0
    for i in range(form.rows):
        if i + 1 == form.rows or form[i, i + 1] == 0:
            value, order = complex(form[i, i]), i + 1 - start
            kind = "zero" if value == 0 else "R" if value.imag == 0 else "C"
            found[kind, order] += value.imag >= 0
            start = i + 1
    return +found


@pytest.mark.few("1", "2", "3", "4", "5")
@pytest.mark.parametrize("seed", range(N_EXACT))
def test_agrees_with_exact_jordan_forms_of_integer_matrices(seed):
    assert types(recurrence_features(integer_matrix(seed))) == sympy_types(seed)


def test_exact_jordan_forms_cover_defective_and_zero_eigenvalues():
    seen = sum((sympy_types(seed) for seed in range(N_EXACT)), Counter())
    assert {("R", 2), ("C", 1), ("C", 2), ("zero", 1), ("zero", 2)} <= set(seen)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 6).flatmap(
        lambda d: arrays(float, (d, d), elements=st.sampled_from([0.0, 1.0, -1.0, 0.5, 1e-9, 0.3]))
        | arrays(float, (d, d), elements=st.floats(-1e3, 1e3, allow_subnormal=False))
    )
)
def test_sizes_sum_to_the_dimension(matrix):
    assert sizes(recurrence_features(matrix)).sum() == len(matrix)


@settings(max_examples=30, deadline=None)
@given(parts_strategy, st.integers(0, 10_000))
def test_similarity_and_transposition_change_no_feature(parts, seed):
    matrix = similar(build(parts), seed, condition=3.0)
    found = types(recurrence_features(matrix))
    assert found == types(recurrence_features(matrix.T))
    assert found == types(recurrence_features(similar(matrix, seed + 1, condition=3.0)))


@pytest.mark.parametrize("scale", [1e-200, 1e-3, 1e3, 1e200])
def test_scaling_a_matrix_scales_the_moduli_only(scale):
    matrix = similar(build([(0.9, 0.0, 2), (0.8, 1.0, 1), (0.0, 0.0, 1)]), seed=2)
    plain, scaled = recurrence_features(matrix), recurrence_features(scale * matrix)
    assert list(plain.type) == list(scaled.type)
    np.testing.assert_allclose(scaled.modulus, scale * plain.modulus, rtol=1e-12)


def test_a_multiple_of_the_identity_has_simple_features():
    turned = similar(0.7 * np.eye(8), seed=3)
    assert types(recurrence_features(turned)) == Counter({("R", 1): 8})


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("d", [2, 5, 16, 64])
def test_random_matrices_have_first_order_features_only(d, dtype):
    rng = np.random.default_rng(d)
    for _ in range(4):
        weights = rng.normal(size=(d, d)) / np.sqrt(d)
        assert set(recurrence_features(weights.astype(dtype)).order) == {1}


def test_close_but_distinct_eigenvalues_stay_distinct():
    features = recurrence_features(np.diag([0.5, 0.5 + 1e-9, 0.9]))
    assert types(features) == Counter({("R", 1): 3})
    assert features.modulus.nunique() == 3


def test_an_orthogonal_matrix_lies_on_the_unit_circle():
    features = recurrence_features(hadamard(4) / 2)
    np.testing.assert_allclose(features.modulus, 1.0)
    assert np.isinf(features.half_life).all()


def assert_closed_form_agrees(matrix):
    """The closed form of 2 x 2 matrices, and the general route of one beside a far eigenvalue."""
    tol, far = 10 * np.sqrt(2) * np.finfo(float).eps, 8.0
    closed = recurrence_features(matrix, tol=tol)
    # delta is relative to the norm, which the eigenvalue beside it decides.
    relative = tol * np.linalg.norm(matrix, 2) / far
    general = recurrence_features(block_diag(matrix, far), tol=relative)
    general = general[general.modulus < far]
    assert sorted(closed.type) == sorted(general.type)
    kinds = ["order", "modulus", "angle"]
    closed, general = (f.fillna(0.0).sort_values(kinds)[kinds] for f in (closed, general))
    values = [f.modulus * np.exp(1j * f.angle) for f in (closed, general)]
    for part in (np.real, np.imag):
        np.testing.assert_allclose(*(np.sort(part(v)) for v in values), atol=1e-7)
    np.testing.assert_array_equal(np.sort(closed.order), np.sort(general.order))


@settings(max_examples=150, deadline=None)
@given(arrays(float, (2, 2), elements=st.integers(-4, 4).map(lambda i: i / 4)))
@example(np.array([[0.9, 1.0], [0.0, 0.9]]))
@example(np.array([[1.0, -1.0], [1.0, -1.0]]))
@example(np.array([[0.0, 1.0], [-1.0, 0.0]]))
def test_closed_form_of_2x2_blocks_agrees_with_the_general_route(matrix):
    assert_closed_form_agrees(matrix)


@pytest.mark.parametrize("seed", range(20))
def test_closed_form_agrees_on_random_and_on_defective_blocks(seed):
    assert_closed_form_agrees(np.random.default_rng(seed).normal(size=(2, 2)))
    assert_closed_form_agrees(similar(jordan_block(0.8, order=2), seed, condition=3.0))


def test_a_stack_gives_each_block_the_features_it_has_alone():
    rng = np.random.default_rng(0)
    for d in (1, 2, 3):
        stack = rng.normal(size=(20, d, d))
        whole = recurrence_features(stack)
        assert sorted(set(whole.block)) == list(range(1, 21))
        for k, matrix in enumerate(stack, start=1):
            alone = recurrence_features(matrix)
            here = whole[whole.block == k]
            np.testing.assert_array_equal(here.modulus, alone.modulus)
            assert list(here.type) == list(alone.type)


def test_eigenvalues_of_a_large_stack_are_those_of_numpy():
    stack = np.random.default_rng(5).normal(size=(5000, 2, 2))
    features = recurrence_features(stack)
    found = (features.modulus * np.exp(1j * features.angle)).to_numpy()
    pairs = (features.type == "C-1").to_numpy()
    expected = np.linalg.eigvals(stack).astype(complex).ravel()
    every = np.concatenate([found, found[pairs].conj()])
    np.testing.assert_allclose(np.sort(np.abs(every)), np.sort(np.abs(expected)), atol=1e-12)
    np.testing.assert_allclose(np.sort(every.real), np.sort(expected.real), atol=1e-12)
