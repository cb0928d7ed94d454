"""The reference and the dense recurrence against torch.nn.RNN and plain matrix products."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tsrnn.kernels import cells, recurrence

SIGMA = {"tanh": torch.tanh, "relu": torch.relu, "identity": lambda x: x}


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("nonlinearity", ["tanh", "relu"])
def test_one_block_is_the_recurrent_network_of_torch(nonlinearity, assert_close):
    d, inputs, initial, weights = 4, normal(3, 6, 4), normal(3, 4, seed=1), normal(4, 4, seed=2)
    rnn = torch.nn.RNN(d, d, nonlinearity=nonlinearity, bias=False, batch_first=True).double()
    with torch.no_grad():
        rnn.weight_ih_l0.copy_(torch.eye(d))
        rnn.weight_hh_l0.copy_(weights)
    expected, last = rnn(inputs, initial[None])
    for engine in ("reference", "sequential"):
        states, final = recurrence(
            cells.para_rnn(d, nonlinearity),
            inputs[..., None],
            weights.reshape(-1, 1),
            initial[..., None],
            engine=engine,
        )
        assert_close(states[..., 0], expected.detach())
        assert_close(final[..., 0], last[0].detach())


def block_diagonal(inputs, weights, initial, sigma):
    """Run one dense network on features ordered block by block: (B, T, d, K) and (d, d, K)."""
    matrix = torch.block_diag(*weights.permute(2, 0, 1))
    state = initial.mT.flatten(1)
    states = []
    for u in inputs.mT.flatten(2).unbind(1):
        state = sigma(state @ matrix.T + u)
        states.append(state)
    return torch.stack(states, 1).unflatten(2, initial.mT.shape[1:]).mT


@settings(deadline=None, max_examples=40)
@given(
    d=st.integers(1, 5),
    units=st.integers(1, 6),
    batch=st.integers(1, 4),
    steps=st.integers(1, 7),
    nonlinearity=st.sampled_from(sorted(SIGMA)),
)
def test_blocks_are_a_network_with_a_block_diagonal_matrix(
    d, units, batch, steps, nonlinearity, assert_close
):
    inputs, weights = normal(batch, steps, d, units), normal(d, d, units, seed=1) / d
    initial = normal(batch, d, units, seed=2)
    expected = block_diagonal(inputs, weights, initial, SIGMA[nonlinearity])
    cell = cells.para_rnn(d, nonlinearity)
    states, final = recurrence(cell, inputs, weights.flatten(0, 1), initial, engine="reference")
    assert_close(states, expected)
    assert_close(final, expected[:, -1])


@pytest.mark.parametrize("nonlinearity", sorted(SIGMA))
@pytest.mark.parametrize("lengths", [None, [5, 0, 2]])
def test_dense_agrees_with_the_compiled_blocks(nonlinearity, lengths, assert_close):
    shapes = ((3, 5, 4, 6), (4, 4, 6), (3, 4, 6))
    inputs, weights, initial = (
        normal(*shape, seed=i).div(2).requires_grad_() for i, shape in enumerate(shapes)
    )
    cotangents = [normal(3, 5, 4, 6, seed=3), normal(3, 4, 6, seed=4)]
    cell = cells.para_rnn(4, nonlinearity)
    got, expected = (
        recurrence(cell, inputs, weights.flatten(0, 1), initial, lengths, engine)
        for engine in ("dense", "sequential")
    )
    leaves = [inputs, weights, initial]
    for value, other in zip(
        (*got, *torch.autograd.grad(got, leaves, cotangents)),
        (*expected, *torch.autograd.grad(expected, leaves, cotangents)),
        strict=True,
    ):
        assert_close(value.detach(), other.detach())


def test_dense_ignores_what_padding_holds():
    inputs, weights, initial = (
        normal(2, 3, 9, 2).requires_grad_(), normal(9, 9, 2).requires_grad_(), normal(2, 9, 2)
    )  # fmt: skip
    poisoned = inputs.detach().clone()
    poisoned[1, 1:] = float("nan")
    results = []
    for given_ in (inputs, poisoned.requires_grad_()):
        cell = cells.para_rnn(9)
        states, final = recurrence(cell, given_, weights.flatten(0, 1), initial, [3, 1])
        loss = states.sum() + final.square().sum()
        results.append([states, final, *torch.autograd.grad(loss, [given_, weights])])
    for value, expected in zip(*results, strict=True):
        assert torch.equal(value, expected)
