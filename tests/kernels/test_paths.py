"""Paths of a recurrence and their derivatives, against autograd through a plain loop."""

import math
import re

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.test_sums import by_loop
from tsrnn.kernels import Cell, path_products, paths, variants


def garch_step(state, inputs, params):
    h, e2 = state[:2]
    mu, omega, alpha, beta = params
    h = omega + alpha * e2 + beta * h
    e = inputs[0] - mu
    return h, e * e, -0.5 * (math.log(2 * math.pi) + h.log() + e * e / h), e


GARCH = Cell(
    "garch_of_paths", 4, 1, 4, garch_step,
    names=(("h", "e2", "l", "e"), ("y",), ("mu", "omega", "alpha", "beta")),
)  # fmt: skip


def many_step(state, inputs, params):
    """Two states, two inputs, and rows that are missing."""
    x, z = state[:2]
    (u, v), (a, b, c) = inputs, params
    residual = torch.where(u == u, u - x, 0.0)
    new_x = torch.tanh(a * x) + b * residual / (2 + z * z)
    new_z = z + torch.exp(-c * c) * residual + 0.1 * v * torch.sin(x)
    return new_x, new_z, residual * c, new_x * new_z


MANY = Cell(
    "many_of_paths", 4, 2, 3, many_step,
    names=(("x", "z", "r", "p"), ("u", "v"), ("a", "b", "c")),
)  # fmt: skip


def draw(cell, n, steps, k, seed=0):
    """Inputs, parameters, initial memory and directions in both."""
    rng, q = np.random.default_rng(seed), 2
    inputs = rng.normal(size=(n, steps, cell.m))
    params, initial = rng.uniform(0.1, 0.8, (n, cell.p)), rng.uniform(0.5, 1.5, (n, q))
    return inputs, params, initial, rng.normal(size=(n, k, cell.p)), rng.normal(size=(n, k, q))


def check(cell, arrays, fields, rtol=1e-11):
    """Compare fields and memory and their derivatives with those of torch."""
    result, names = paths(cell, *arrays, fields=fields), cell.field_names[0]
    n, steps, _ = arrays[0].shape
    k = arrays[3].shape[1]
    assert result.fields.shape == (n, steps, len(fields), k + 1)
    places = [names.index(name) for name in fields]
    close = lambda ours, expected: np.testing.assert_allclose(ours, expected, rtol, rtol)  # noqa: E731
    for i, (rows, params, initial, d_params, d_initial) in enumerate(zip(*arrays, strict=True)):
        of_loop = lambda w, h: by_loop(cell, torch.tensor(rows), w, h)  # noqa: B023, E731
        at = torch.tensor(params), torch.tensor(initial)
        table = of_loop(*at).numpy()
        close(result.fields[i, :, :, k], table[:, places])
        close(result.memory[i, :, k], table[-1, :2])
        for j in range(k):
            along = torch.tensor(d_params[j]), torch.tensor(d_initial[j])
            _, slope = torch.autograd.functional.jvp(of_loop, at, along)
            close(result.fields[i, :, :, j], slope.numpy()[:, places])
            close(result.memory[i, :, j], slope.numpy()[-1, :2])


@pytest.mark.few("8-7-13", "3-33-9", "17-1-40", "1-16-5", "3-16-5", "8-1-40")
@pytest.mark.parametrize(("n", "steps"), [(1, 1), (1, 40), (7, 13), (16, 5), (33, 9)])
@pytest.mark.parametrize("k", [0, 1, 3, 8, 17])
def test_values_and_derivatives_of_a_likelihood(n, steps, k):
    check(GARCH, draw(GARCH, n, steps, k), ["l", "h"])


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(n=st.integers(1, 9), steps=st.integers(1, 30), k=st.integers(0, 9), seed=st.integers(0, 9))
def test_many_operations_with_gaps(n, steps, k, seed):
    arrays = draw(MANY, n, steps, k, seed)
    arrays[0][:, :, 0][np.random.default_rng(seed).random((n, steps)) < 0.3] = np.nan
    check(MANY, arrays, ["p", "r", "x"], 1e-9)


def test_differences_of_paths_are_the_derivatives():
    inputs, params, initial, d_params, d_initial = draw(GARCH, 5, 20, 2)
    slope = paths(GARCH, inputs, params, initial, d_params, d_initial, fields=["h"]).fields
    for j in range(2):
        ahead, behind = (
            paths(
                GARCH, inputs, params + s * d_params[:, j], initial + s * d_initial[:, j],
                np.zeros((5, 0, 4)), np.zeros((5, 0, 2)), fields=["h"],
            ).fields[..., 0]
            for s in (1e-6, -1e-6)
        )  # fmt: skip
        np.testing.assert_allclose(slope[..., j], (ahead - behind) / 2e-6, rtol=1e-6, atol=1e-8)


def test_each_series_is_by_itself():
    arrays = draw(MANY, 9, 11, 3)
    whole = paths(MANY, *arrays, fields=["p"]).fields
    for i in range(9):
        alone = paths(MANY, *(array[i : i + 1] for array in arrays), fields=["p"]).fields
        np.testing.assert_array_equal(alone[0], whole[i])


def test_arrays_in_any_order_of_memory():
    arrays = draw(MANY, 4, 6, 2)
    expected = paths(MANY, *arrays, fields=["p"])
    strange = [np.asfortranarray(array) for array in arrays]
    strange[0] = np.repeat(arrays[0], 2, axis=1)[:, ::2]
    for ours, right in zip(paths(MANY, *strange, fields=["p"]), expected, strict=True):
        np.testing.assert_array_equal(ours, right)


def test_products_of_rows_of_unequal_lengths():
    inputs, params, initial, d_params, d_initial = draw(MANY, 7, 12, 3)
    lengths, series = np.array([12, 5, 1, 9, 12, 3, 7]), np.array([3, 0, 6, 1, 1, 5, 2])
    d_initial = np.broadcast_to(d_initial[:1], d_initial.shape)  # those of all series
    result = path_products(
        MANY, inputs, params, initial, d_params, d_initial, fields=["p", "r"], series=series,
        lengths=lengths,
    )  # fmt: skip
    for i, row in enumerate(series):
        one = inputs[row : row + 1, : lengths[row]]
        others = (array[i : i + 1] for array in (params, initial, d_params, d_initial))
        alone = paths(MANY, one, *others, fields=["p", "r"])
        table = alone.fields.reshape(-1, 4)
        np.testing.assert_allclose(result.products[i], table.T @ table, rtol=1e-12)
        np.testing.assert_allclose(result.memory[i], alone.memory[0], rtol=1e-12)


class TestRefusals:
    def test_an_unknown_field(self):
        with pytest.raises(ValueError, match="'loglik' must be a state field of cell"):
            paths(GARCH, *draw(GARCH, 1, 4, 1), fields=["loglik"])

    @pytest.mark.parametrize("place", range(5))
    def test_shapes(self, place):
        arrays = list(draw(GARCH, 3, 4, 2))
        for wrong in (arrays[place][..., :-1], arrays[place].ravel()):
            given = [*arrays[:place], wrong, *arrays[place + 1 :]]
            with pytest.raises(ValueError, match=r"of cell .* must have shape \("):
                paths(GARCH, *given, fields=["l"])
        given = [*arrays[:place], arrays[place][:-1], *arrays[place + 1 :]]
        with pytest.raises(ValueError, match="must have shape"):
            paths(GARCH, *given, fields=["l"])

    @pytest.mark.parametrize("place", range(5))
    @pytest.mark.parametrize("dtype", [np.float32, np.int64])
    def test_other_dtypes(self, place, dtype):
        arrays = list(draw(GARCH, 3, 4, 2))
        arrays[place] = arrays[place].astype(dtype)
        message = f"must be an array of float64; got {np.dtype(dtype)}"
        with pytest.raises(TypeError, match=re.escape(message)):
            paths(GARCH, *arrays, fields=["l"])

    def test_what_is_no_array(self):
        arrays = draw(GARCH, 1, 4, 1)
        with pytest.raises(TypeError, match="must be an array of float64; got list"):
            paths(GARCH, arrays[0].tolist(), *arrays[1:], fields=["l"])


def decay_step(state, inputs, params):
    """An output, and two states of which it is made."""
    _, x, z = state
    (u, v), (a, b) = inputs, params
    new_x = a * x + u * torch.sqrt(1 + b * b)
    return new_x * z, new_x, z + b * v


SHARED = Cell("variants_of_paths", 3, 2, 2, decay_step, shared=True, outputs=1)


class TestVariants:
    @pytest.mark.parametrize("width", [1, 4, 9])
    def test_each_is_the_plain_loop_over_its_rows(self, width):
        rng, lengths = np.random.default_rng(0), np.array([7, 5, 1])
        inputs = rng.normal(size=(3, 7, 2))
        params, initial = rng.normal(size=(3, 2, width)), rng.normal(size=(3, 3, width))
        outputs, final = variants(SHARED, inputs, params, initial, lengths)
        assert outputs.shape == (3, 7, 1, width)
        for i, n in enumerate(lengths):
            for k in range(width):
                at = torch.tensor(params[i, :, k]), torch.tensor(initial[i, :, k])
                table = by_loop(SHARED, torch.tensor(inputs[i, :n]), *at).numpy()
                np.testing.assert_allclose(outputs[i, :n, 0, k], table[:, 0], 1e-12, 1e-12)
                np.testing.assert_allclose(final[i, :, k], table[-1], 1e-12, 1e-12)
            assert (outputs[i, n:] == 0).all()

    def test_inputs_that_are_not_shared_and_other_shapes_are_refused(self):
        rows, ones, lengths = np.ones((3, 7, 2)), np.ones((3, 2, 4)), np.full(3, 7)
        with pytest.raises(ValueError, match="must be shared"):
            variants(MANY, rows, np.ones((3, 3, 4)), np.ones((3, 4, 4)), lengths)
        with pytest.raises(ValueError, match="of shapes"):
            variants(SHARED, rows, ones, ones, lengths)
