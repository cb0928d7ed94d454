"""The compiled engine against the loop in torch: states, final state and every gradient."""

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tsrnn.kernels import cells, recurrence

BLOCK_SIZES = (1, 2, 4, 8)
NONLINEARITIES = ("tanh", "relu", "identity")
DTYPES = (torch.float32, torch.float64)
# K: less than the lanes of a vector register, equal, one more, several tiles and a rest.
UNITS = (1, 3, 16, 17, 33)


@pytest.mark.few("dtype1")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("nonlinearity", NONLINEARITIES)
@pytest.mark.parametrize("block_size", BLOCK_SIZES)
def test_engines_agree(block_size, nonlinearity, dtype, draw, check):
    cell = cells.para_rnn(block_size, nonlinearity)
    for units, lengths in itertools.product(UNITS, (None, [7, 0, 1, 4])):
        problem = draw(cell, 4, 7, units, dtype, seed=units)
        check(cell, problem, "sequential", lengths, roundings=128)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_cell_of_the_catalogue(cell, dtype, draw, check):
    for units, lengths in ((17, None), (3, [6, 0, 3, 1])):
        problem = draw(cell, 4, 6, units, dtype)
        check(cell, problem, "sequential", lengths, roundings=128)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_single_step(dtype, draw, check):
    cell = cells.para_rnn(2)
    problem = draw(cell, 2, 1, 3, dtype)
    for lengths in (None, [1, 0]):
        check(cell, problem, "sequential", lengths, roundings=128)


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_engines_agree_on_any_shape(data, draw, check):
    batch, steps = data.draw(st.integers(0, 5)), data.draw(st.integers(1, 12))
    cell = cells.para_rnn(data.draw(st.sampled_from(BLOCK_SIZES)))
    lengths = data.draw(st.none() | st.lists(st.integers(0, steps), min_size=batch, max_size=batch))
    dtype, units = data.draw(st.sampled_from(DTYPES)), data.draw(st.integers(1, 40))
    problem = draw(cell, batch, steps, units, dtype, seed=data.draw(st.integers(0, 99)))
    check(cell, problem, "sequential", lengths, roundings=128)


@pytest.mark.parametrize("nonlinearity", NONLINEARITIES)
@pytest.mark.parametrize("block_size", [1, 2])
def test_gradients_are_those_of_finite_differences(block_size, nonlinearity, draw):
    cell = cells.para_rnn(block_size, nonlinearity)
    leaves = [t.requires_grad_() for t in draw(cell, 3, 4, 3)[:3]]
    lengths = torch.tensor([4, 0, 2])
    assert torch.autograd.gradcheck(
        lambda *args: recurrence(cell, *args, lengths=lengths, engine="sequential"), leaves
    )


def test_a_large_problem_is_spread_over_threads_and_agrees(draw, check):
    cell = cells.para_rnn(2)
    for batch, units in ((1, 300), (40, 9)):
        problem = draw(cell, batch, 120, units, torch.float32)
        check(cell, problem, "sequential", roundings=1024.0)


def test_expanded_gradients(draw, assert_close):
    cell = cells.para_rnn(2)
    inputs, params, initial, *_ = draw(cell)
    got = []
    for engine in ("reference", "sequential"):
        leaf = inputs.clone().requires_grad_()
        states, final = recurrence(cell, leaf, params, initial, engine=engine)
        (states.sum() + 2.0 * final.sum()).backward()  # cotangents of stride zero
        got.append(leaf.grad)
    assert_close(got[1], got[0])


@pytest.mark.parametrize("used", ["states", "final"])
def test_only_one_of_the_results_is_used(used, draw, assert_close):
    cell = cells.para_rnn(2)
    got = []
    for engine in ("reference", "sequential"):
        leaves = [t.clone().requires_grad_() for t in draw(cell)[:3]]
        states, final = recurrence(cell, *leaves, engine=engine)
        (states if used == "states" else final).square().sum().backward()
        got.append([t.grad for t in leaves])
    for value, expected in zip(got[1], got[0], strict=True):
        assert_close(value, expected)


@pytest.mark.parametrize("needed", [0, 1, 2])
def test_gradients_of_one_argument_alone(needed, draw, assert_close):
    cell = cells.para_rnn(4)
    got = []
    for engine in ("reference", "sequential"):
        leaves = [t.clone().requires_grad_(i == needed) for i, t in enumerate(draw(cell)[:3])]
        states, _ = recurrence(cell, *leaves, engine=engine)
        states.square().sum().backward()
        assert [t.grad is not None for t in leaves] == [i == needed for i in range(3)]
        got.append(leaves[needed].grad)
    assert_close(got[1], got[0])


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_without_gradients(mode, draw):
    cell = cells.para_rnn(2)
    leaves = [t.requires_grad_() for t in draw(cell)[:3]]
    with mode():
        states, final = recurrence(cell, *leaves)
    assert not states.requires_grad
    assert not final.requires_grad
    assert torch.equal(states, recurrence(cell, *leaves)[0])


def test_the_initial_state_is_zero_by_default(draw):
    cell = cells.para_rnn(2)
    inputs, params, initial, *_ = draw(cell)
    for engine in ("reference", "sequential"):
        states, final = recurrence(cell, inputs, params, engine=engine)
        with_zeros = recurrence(cell, inputs, params, torch.zeros_like(initial), engine=engine)
        assert torch.equal(states, with_zeros[0])
        assert torch.equal(final, states[:, -1])


def test_lengths_of_any_integer_type(draw):
    cell = cells.para_rnn(2)
    problem = draw(cell)[:3]
    expected = recurrence(cell, *problem, lengths=[5, 0, 2])[0]
    for dtype in (torch.uint8, torch.int32, torch.int64):
        lengths = torch.tensor([5, 0, 2], dtype=dtype)
        assert torch.equal(recurrence(cell, *problem, lengths=lengths)[0], expected)


def test_padding_is_zero_and_the_final_state_is_the_last_one(draw):
    cell = cells.para_rnn(2)
    inputs, params, initial, *_ = draw(cell, 3, 5)
    for engine in ("reference", "sequential"):
        states, final = recurrence(cell, inputs, params, initial, [5, 0, 2], engine=engine)
        assert not states[1].any()
        assert not states[2, 2:].any()
        assert torch.equal(final, torch.stack([states[0, 4], initial[1], states[2, 1]]))


def test_a_sequence_continues_from_its_final_state(draw, assert_close):
    cell = cells.para_rnn(4)
    inputs, params, initial, *_ = draw(cell, 2, 9)
    whole, final = recurrence(cell, inputs, params, initial)
    first, middle = recurrence(cell, inputs[:, :4], params, initial)
    second, last = recurrence(cell, inputs[:, 4:], params, middle)
    assert torch.equal(torch.cat([first, second], 1), whole)
    assert torch.equal(last, final)


def test_other_dtypes_take_the_reference(draw, assert_close):
    cell = cells.para_rnn(2)
    problem = [t.to(torch.bfloat16) for t in draw(cell)[:3]]
    states, _ = recurrence(cell, *problem)
    assert states.dtype == torch.bfloat16
    assert torch.equal(states, recurrence(cell, *problem, engine="reference")[0])
