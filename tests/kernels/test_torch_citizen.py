"""The operators of the library under torch's own checks, its compiler and its fake tensors."""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from tsrnn.kernels import cells, projected_recurrence, recurrence
from tsrnn.kernels._autograd import run

ENGINES = ("sequential", "shooting", "newton")


def leaves_of(cell, draw):
    return [t.requires_grad_() for t in draw(cell, 3, 9, 5)[:3]]


@pytest.mark.few("shooting-lengths1", "newton-None", "sequential-lengths1")
@pytest.mark.parametrize("lengths", [None, [9, 0, 4]])
@pytest.mark.parametrize("engine", ENGINES)
def test_torch_finds_nothing_wrong_with_the_operator(engine, lengths, draw):
    cell = cells.para_gru(2)
    given = None if lengths is None else torch.tensor(lengths)
    arguments = (*leaves_of(cell, draw), given, cell.key, engine)
    results = torch.library.opcheck(torch.ops.tsrnn.recurrence.default, arguments)
    assert set(results.values()) == {"SUCCESS"}


def test_nor_with_that_of_the_backward_pass(draw):
    cell = cells.para_rnn(2)
    inputs, params, initial, g_states, g_final = draw(cell)
    states, _ = recurrence(cell, inputs, params, initial)
    arguments = (inputs, params, initial, None, states, g_states, g_final, cell.key, "sequential")
    torch.library.opcheck(torch.ops.tsrnn.recurrence_backward.default, arguments)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("lengths", [None, [9, 0, 4]])
def test_compiled_without_a_break(backend, lengths, draw, assert_close):
    cell = cells.newton_lstm()
    leaves = leaves_of(cell, draw)
    given = None if lengths is None else torch.tensor(lengths)

    def loss(inputs, params, initial):
        states, final = recurrence(cell, 2 * inputs, params, initial, lengths=given)
        return states.square().sum() + final.sin().sum()

    compiled = torch.compile(loss, backend=backend, fullgraph=True)
    expected = torch.autograd.grad(loss(*leaves), leaves)
    for value, wanted in zip(torch.autograd.grad(compiled(*leaves), leaves), expected, strict=True):
        assert_close(value, wanted)


def test_compiled_for_any_number_of_steps(draw, assert_close):
    cell = cells.para_rnn(2)
    compiled = torch.compile(
        lambda *args: recurrence(cell, *args)[0].sum(), backend="aot_eager", dynamic=True
    )
    torch._dynamo.reset()
    for steps in (5, 6, 7):
        problem = draw(cell, steps=steps)[:3]
        with torch._dynamo.config.patch(error_on_recompile=steps > 5):
            assert_close(compiled(*problem), recurrence(cell, *problem)[0].sum())


def test_a_compiled_projection(draw, assert_close):
    cell = cells.para_gru(2)
    _, params, initial, *_ = draw(cell, 3, 9, 5)
    x, weight = torch.randn(3, 9, 2, dtype=torch.float64), torch.randn(30, 2, dtype=torch.float64)
    weight.requires_grad_()

    def loss(weight):
        return projected_recurrence(cell, x, weight, None, params, initial)[0].square().sum()

    compiled = torch.compile(loss, backend="aot_eager", fullgraph=True)
    expected = torch.autograd.grad(loss(weight), weight)[0]
    assert_close(torch.autograd.grad(compiled(weight), weight)[0], expected)


def test_wrong_lengths_are_refused_by_compiled_code_too(draw):
    cell = cells.para_rnn(2)
    problem = draw(cell)[:3]
    compiled = torch.compile(
        lambda *args: recurrence(cell, *args[:3], lengths=args[3])[0],
        backend="eager",
        fullgraph=True,
    )
    with pytest.raises(ValueError, match="between 0 and T=5; got 6 for sequence 1"):
        compiled(*problem, torch.tensor([5, 6, 0]))


def test_fake_tensors_have_the_shapes_of_real_ones(draw):
    cell = cells.para_lstm(2)
    problem = draw(cell)[:3]
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        fake = [mode.from_tensor(t) for t in problem]
        states, final, convergence = run("sequential", cell.key, *fake, None, cell.n)
    expected = run("sequential", cell.key, *problem, None, cell.n)
    assert states.shape == expected[0].shape
    assert final.shape == expected[1].shape
    assert convergence.fell_back.dtype == torch.bool


def test_the_caller_may_be_anywhere(draw):
    """Default dtype and device of the caller change nothing."""
    cell = cells.lem()
    problem = draw(cell)[:3]
    expected = recurrence(cell, *problem)[0]
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.equal(recurrence(cell, *problem)[0], expected)
    finally:
        torch.set_default_dtype(torch.float32)
