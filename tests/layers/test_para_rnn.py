"""The layer against torch.nn.RNN, its options and its errors."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.layers.test_recurrent import normal
from tsrnn.layers import ParaRNN

NONLINEARITIES = ("tanh", "relu")


def layer(*args, **kwargs):
    torch.manual_seed(0)
    return ParaRNN(*args, dtype=torch.float64, **kwargs)


def by_block(features, block_size):
    """Features (..., i * K + k) in the order of blocks, (..., k * d_s + i)."""
    return features.unflatten(-1, (block_size, -1)).mT.flatten(-2)


def torch_rnn(rnn):
    """torch.nn.RNN with block-diagonal matrices that computes the same, block by block."""
    d = rnn.block_size
    twin = torch.nn.RNN(
        rnn.input_size,
        rnn.hidden_size,
        rnn.num_layers,
        nonlinearity=rnn.nonlinearity,
        bias=rnn.bias,
        batch_first=True,
        dtype=torch.float64,
    )
    for i in range(rnn.num_layers):
        weight_ih = by_block(getattr(rnn, f"weight_ih_l{i}").T, d).T
        values = {
            "weight_ih": weight_ih if i == 0 else by_block(weight_ih, d),
            "weight_hh": torch.block_diag(*getattr(rnn, f"weight_hh_l{i}").permute(2, 0, 1)),
        }
        if rnn.bias:
            bias = getattr(rnn, f"bias_l{i}")
            values |= {"bias_ih": by_block(bias, d), "bias_hh": torch.zeros_like(bias)}
        for name, value in values.items():
            getattr(twin, f"{name}_l{i}").data.copy_(value.detach())
    return twin


def gradients_of_twin(rnn, twin):
    """Gradients of the twin in the shapes and the order of the layer's parameters."""
    d, n = rnn.block_size, rnn.n_blocks
    by_field = torch.arange(n * d).view(n, d).T.flatten()  # inverse of by_block
    for i in range(rnn.num_layers):
        weight_ih = getattr(twin, f"weight_ih_l{i}").grad[by_field]
        full = getattr(twin, f"weight_hh_l{i}").grad.view(n, d, n, d)
        yield f"weight_ih_l{i}", weight_ih if i == 0 else weight_ih[:, by_field]
        yield f"weight_hh_l{i}", torch.stack([full[k, :, k] for k in range(n)], -1)
        if rnn.bias:
            yield f"bias_l{i}", getattr(twin, f"bias_ih_l{i}").grad[by_field]


def check_against_torch(rnn, x, hx, assert_close):
    twin, d = torch_rnn(rnn), rnn.block_size
    output, h_n = rnn(x, hx)
    expected, last = twin(x, None if hx is None else by_block(hx, d))
    assert_close(by_block(output, d).detach(), expected.detach(), 256)
    assert_close(by_block(h_n, d).detach(), last.detach(), 256)
    g_output, g_last = normal(*output.shape, seed=5), normal(*h_n.shape, seed=6)
    ((output * g_output).sum() + (h_n * g_last).sum()).backward()
    ((expected * by_block(g_output, d)).sum() + (last * by_block(g_last, d)).sum()).backward()
    wanted = dict(gradients_of_twin(rnn, twin))
    assert set(wanted) == set(dict(rnn.named_parameters()))
    for name, parameter in rnn.named_parameters():
        assert_close(parameter.grad, wanted[name], 256)


@pytest.mark.parametrize("num_layers", [1, 2, 3])
@pytest.mark.parametrize("size", [4, 16])
@pytest.mark.parametrize("nonlinearity", NONLINEARITIES)
def test_one_block_is_the_network_of_torch(nonlinearity, size, num_layers, assert_close):
    rnn = layer(3, size, size, num_layers, nonlinearity=nonlinearity, init="uniform")
    # One block: features are in the same order, and so are all shapes but one axis.
    for i in range(num_layers):
        assert getattr(rnn, f"weight_hh_l{i}").shape == (size, size, 1)
    x, hx = normal(2, 7, 3), normal(num_layers, 2, size, seed=1)
    check_against_torch(rnn, x, None, assert_close)
    rnn.zero_grad()
    check_against_torch(rnn, x, hx, assert_close)
    rnn.zero_grad()
    check_against_torch(rnn, x[0], hx[:, 0], assert_close)


@settings(deadline=None, max_examples=25)
@given(
    block_size=st.sampled_from([1, 2, 3, 4, 9]),
    n_blocks=st.integers(1, 5),
    num_layers=st.integers(1, 3),
    bias=st.booleans(),
    nonlinearity=st.sampled_from(NONLINEARITIES),
    with_state=st.booleans(),
)
def test_blocks_are_the_network_of_torch_with_block_diagonal_matrices(
    block_size, n_blocks, num_layers, bias, nonlinearity, with_state, assert_close
):
    size = block_size * n_blocks
    rnn = layer(2, size, block_size, num_layers, nonlinearity=nonlinearity, bias=bias)
    hx = normal(num_layers, 3, size, seed=1) if with_state else None
    check_against_torch(rnn, normal(3, 6, 2), hx, assert_close)


def test_the_identity_is_a_linear_recurrence(assert_close):
    rnn = layer(1, 4, 2, nonlinearity="identity", bias=False)
    impulse = torch.zeros(1, 6, 1, dtype=torch.float64)
    impulse[0, 0] = 1.0
    output, _ = rnn(impulse)
    (matrices,) = rnn.recurrent_blocks()
    state = rnn.weight_ih_l0.detach().view(2, 2).T[..., None]
    for t in range(6):
        assert_close(output[0, t].detach().view(2, 2).T[..., None], state)
        state = matrices @ state


def test_dropout_is_between_layers():
    x, rnn = normal(3, 5, 2), layer(2, 8, 2, 2, dropout=0.5)
    torch.manual_seed(1)
    output, h_n = rnn(x)
    torch.manual_seed(1)
    first, last = rnn.run_layer(0, x, None)
    second, _ = rnn.run_layer(1, torch.nn.functional.dropout(first, 0.5), None)
    assert torch.equal(output, second)
    assert torch.equal(h_n[0], last)


def test_recurrent_blocks():
    rnn = layer(2, 6, 2, 2)
    blocks = rnn.recurrent_blocks()
    assert [tuple(b.shape) for b in blocks] == [(3, 2, 2)] * 2
    for k in range(3):
        assert torch.equal(blocks[1][k], rnn.weight_hh_l1[:, :, k])
    assert not any(b.requires_grad for b in blocks)


def test_sizes_are_shown():
    assert repr(layer(2, 6, 3)) == "ParaRNN(2, 6, block_size=3, num_layers=1, nonlinearity='tanh')"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"nonlinearity": "sin"}, "nonlinearity must be one of .*; got 'sin'"),
        ({"init": "zero"}, "init must be one of .*; got 'zero'"),
    ],
)
def test_errors_of_the_constructor(arguments, message):
    with pytest.raises(ValueError, match=message):
        ParaRNN(**({"input_size": 2, "hidden_size": 4} | arguments))
