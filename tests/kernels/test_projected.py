"""The input projection inside the kernel against the projection before it."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tsrnn.kernels import cells, prepare_projected, projected_recurrence, recurrence
from tsrnn.kernels._cpu.time_order import kernel_of
from tsrnn.kernels._derived import with_projection
from tsrnn.kernels._problem import Problem
from tsrnn.kernels._projected import WIDEST_FUSED
from tsrnn.kernels._reference import reference


def draw_problem(cell, batch, steps, units, width, bias, dtype, seed=0):
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(shape, generator=generator, dtype=dtype)

    x = normal(batch, steps, width)
    leaves = {
        "weight": normal(cell.m * units, width),
        "bias": normal(cell.m * units) if bias else None,
        "params": normal(cell.p, units) * (0.8 / cell.n),
        "initial": normal(batch, cell.n, units),
    }
    cotangents = normal(batch, steps, cell.n, units), normal(batch, cell.n, units)
    return x, leaves, cotangents


def outcome(run, leaves, cotangents):
    leaves = {k: None if v is None else v.clone().requires_grad_() for k, v in leaves.items()}
    results = run(**leaves)
    given = [v for v in leaves.values() if v is not None]
    return [*results, *torch.autograd.grad(results, given, cotangents)]


def compare(assert_close, cell, x, leaves, cotangents, lengths):
    units = leaves["params"].shape[1]

    def fused(weight, bias, params, initial):
        return projected_recurrence(cell, x, weight, bias, params, initial, lengths)

    def before(weight, bias, params, initial):
        inputs = torch.nn.functional.linear(x, weight, bias).unflatten(-1, (cell.m, units))
        return recurrence(cell, inputs, params, initial, lengths, engine="reference")

    ours, oracle = (outcome(run, leaves, cotangents) for run in (fused, before))
    for actual, expected in zip(ours, oracle, strict=True):
        assert_close(actual, expected, roundings=256.0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("block_size", "nonlinearity"), [(1, "relu"), (2, "tanh"), (4, "tanh")])
def test_fused_equals_projection_and_reference(block_size, nonlinearity, bias, dtype, assert_close):
    cell = cells.para_rnn(block_size, nonlinearity)
    problem = draw_problem(cell, 4, 6, 19, 3, bias, dtype)
    compare(assert_close, cell, *problem, torch.tensor([6, 0, 1, 4]))


@settings(max_examples=25, deadline=None)
@given(
    st.integers(1, 4),
    st.integers(1, 7),
    st.integers(1, 40),
    st.sampled_from([1, 2, WIDEST_FUSED, WIDEST_FUSED + 1]),
)
def test_any_shape(assert_close, batch, steps, units, width):
    cell = cells.para_rnn(2, "tanh")
    problem = draw_problem(cell, batch, steps, units, width, True, torch.float64)
    compare(assert_close, cell, *problem, None)


def test_inputs_that_need_a_gradient_get_it():
    cell = cells.para_rnn(2, "tanh")
    x, leaves, _ = draw_problem(cell, 2, 3, 2, 2, True, torch.float64)

    def states(x, weight, bias, params, initial):
        return projected_recurrence(cell, x, weight, bias, params, initial)[0]

    given = [t.requires_grad_() for t in (x, *leaves.values())]
    assert torch.autograd.gradcheck(states, given)


def test_reference_runs_a_cell_with_shared_inputs(assert_close):
    cell = cells.para_rnn(2, "tanh")
    x, leaves, _ = draw_problem(cell, 2, 5, 3, 2, False, torch.float64)
    lengths = torch.full((2,), 5)
    rows = leaves["weight"].view(2, 3, 2).transpose(1, 2).reshape(4, 3)
    params = torch.cat([leaves["params"], rows])
    projected = with_projection(cell, 2, False)
    shared = reference(Problem(projected, x, params, leaves["initial"], lengths))
    whole = projected_recurrence(
        cell, x, leaves["weight"], None, leaves["params"], leaves["initial"]
    )
    for actual, expected in zip(shared, whole, strict=True):
        assert_close(actual, expected)


@pytest.mark.parametrize("width", [2, WIDEST_FUSED + 1])
def test_padding_is_not_read(width):
    cell = cells.para_rnn(2, "tanh")
    x, leaves, cotangents = draw_problem(cell, 2, 4, 3, width, True, torch.float64)

    def run(**leaves):
        return projected_recurrence(cell, x, lengths=[4, 2], **leaves)

    clean = outcome(run, leaves, cotangents)
    x[1, 2:] = float("nan")
    for actual, expected in zip(outcome(run, leaves, cotangents), clean, strict=True):
        assert torch.equal(actual, expected)


def legal_arguments(width):
    x, leaves, _ = draw_problem(cells.para_rnn(2), 3, 5, 4, width, True, torch.float32)
    return {"x": x} | leaves


@pytest.mark.parametrize("width", [2, WIDEST_FUSED + 1])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": lambda x: x[0]}, r"x must be .* of shape \(B, T, width\)"),
        ({"x": lambda x: x[:, :0]}, "T >= 1"),
        ({"x": lambda x: x.long()}, r"floating point numbers.*got torch\.int64"),
        ({"x": lambda x: x.double()}, r"params must have the dtype.*torch\.float64"),
        ({"weight": lambda w: w[:-1]}, r"weight .* must have shape \(8, "),
        ({"weight": lambda w: w.double()}, r"weight must have the dtype.*got torch\.float64"),
        ({"bias": lambda b: b[:-1]}, r"bias .* must have shape \(8,\)"),
        ({"params": lambda p: p[:-1]}, r"params .* must have shape \(4, 4\)"),
        ({"params": lambda p: p[:, :0]}, "K >= 1"),
        ({"initial": lambda h: h[:-1]}, r"initial .* must have shape \(3, 2, 4\)"),
        ({"initial": lambda h: h.double()}, r"initial must have the dtype"),
    ],
)
def test_errors(change, message, width):
    arguments = legal_arguments(width)
    arguments |= {name: function(arguments[name]) for name, function in change.items()}
    with pytest.raises(ValueError, match=message):
        projected_recurrence(cells.para_rnn(2), **arguments)


@pytest.mark.parametrize("width", [2, WIDEST_FUSED + 1])
def test_errors_of_lengths(width):
    for lengths, message in (([5, 6, 1], "got 6 for sequence 1"), ([5], "must be 3 integers")):
        with pytest.raises(ValueError, match=message):
            projected_recurrence(cells.para_rnn(2), **legal_arguments(width), lengths=lengths)


@pytest.mark.parametrize("width", [2, WIDEST_FUSED, WIDEST_FUSED + 1])
@pytest.mark.parametrize("bias", [True, False])
def test_nothing_is_left_to_compile_after_preparing(width, bias):
    cell = cells.para_rnn(2)
    x, leaves, _ = draw_problem(cell, 2, 3, 4, width, bias, torch.float32)
    kernel_of.cache_clear()
    prepare_projected(cell, width, bias, torch.float32)
    prepared = kernel_of.cache_info().misses
    for needs_gradient in (False, True):
        projected_recurrence(cell, x.requires_grad_(needs_gradient), **leaves)
    assert kernel_of.cache_info().misses == prepared


@pytest.mark.parametrize("size", [2, 9])
def test_preparing_refuses_other_dtypes(size):
    with pytest.raises(ValueError, match=r"must be torch\.float32 or torch\.float64; got"):
        prepare_projected(cells.para_rnn(size), 3, bias=True, dtype=torch.bfloat16)


def test_recurrence_refuses_a_cell_with_shared_inputs():
    cell = with_projection(cells.para_rnn(2, "tanh"), 3, True)
    with pytest.raises(ValueError, match="inputs that all units share"):
        recurrence(cell, torch.zeros(1, 2, 3, 4), torch.zeros(cell.p, 4))
