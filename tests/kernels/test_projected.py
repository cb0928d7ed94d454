"""The input projection inside the kernel against the projection before it."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tsrnn.kernels import cells, projected_recurrence, recurrence
from tsrnn.kernels._projected import WIDEST_FUSED, with_projection
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
    shared = reference(with_projection(cell, 2, False), x, params, leaves["initial"], lengths)
    whole = projected_recurrence(
        cell, x, leaves["weight"], None, leaves["params"], leaves["initial"]
    )
    for actual, expected in zip(shared, whole, strict=True):
        assert_close(actual, expected)


def test_padding_is_not_read():
    cell = cells.para_rnn(2, "tanh")
    x, leaves, _ = draw_problem(cell, 1, 4, 3, 2, True, torch.float64)
    x[:, 2:] = float("nan")
    states, final = projected_recurrence(cell, x, lengths=[2], **leaves)
    assert torch.isfinite(final).all()
    assert not states[:, 2:].any()


def test_recurrence_refuses_a_cell_with_shared_inputs():
    cell = with_projection(cells.para_rnn(2, "tanh"), 3, True)
    with pytest.raises(ValueError, match="inputs that all units share"):
        recurrence(cell, torch.zeros(1, 2, 3, 4), torch.zeros(cell.p, 4))
