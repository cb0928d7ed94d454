"""The surrogate of equation (6) against the network that it stands for."""

import copy

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from tsrnn.erm import nearest_block_diagonal, surrogate_network
from tsrnn.layers import LEM, ParaRNN, RecurrentNetwork

TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-3}


def para(hidden=8, block_size=None, layers=1, dtype=torch.float64, seed=0, **options):
    torch.manual_seed(seed)
    options = {"nonlinearity": "identity"} | options
    return ParaRNN(3, hidden, block_size or hidden, layers, dtype=dtype, **options)


def inputs(dtype=torch.float64, steps=15, width=3):
    generator = torch.Generator().manual_seed(1)
    return torch.randn(4, steps, width, generator=generator, dtype=dtype)


def gap(network, surrogate, x):
    """Largest difference of the outputs, relative to the largest output."""
    with torch.no_grad():
        expected, actual = network(x)[0], surrogate(x)[0]
    assert actual.shape == expected.shape
    assert actual.dtype == expected.dtype
    return float((actual - expected).abs().max() / expected.abs().max())


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("size", [2, 4, 8])
def test_identity_networks_are_equal(dtype, layers, size):
    network = para(layers=layers, dtype=dtype)
    surrogate = surrogate_network(network, size)
    assert surrogate.rnn.block_size == size
    assert surrogate.rnn.num_layers == layers
    assert gap(network, surrogate, inputs(dtype)) < TOLERANCE[dtype]


@settings(deadline=None, max_examples=25)
@given(
    st.sampled_from([(4, 1), (4, 2), (4, 4), (12, 3), (12, 4), (12, 6), (12, 12)]),
    st.sampled_from([2, 4]),
    st.integers(1, 3),
    st.booleans(),
    st.integers(0, 1000),
)
def test_networks_of_any_block_size_are_equal(sizes, size, layers, bias, seed):
    network = para(*sizes, layers, seed=seed, bias=bias)
    surrogate = surrogate_network(network, size)
    assert surrogate.rnn.bias == bias
    assert gap(network, surrogate, inputs()) < 1e-7


@pytest.mark.parametrize("aggregation", ["linear", "ffn"])
@pytest.mark.parametrize("input_size", [None, 5])
def test_networks_with_maps_around_are_equal(aggregation, input_size):
    network = RecurrentNetwork(
        para(layers=2), 2, aggregation=aggregation, ffn_size=7, input_size=input_size
    ).double()
    surrogate = surrogate_network(network)
    assert gap(network, surrogate, inputs(width=input_size or 3)) < TOLERANCE[torch.float64]
    assert surrogate.aggregation == aggregation
    if aggregation == "linear":
        states, _ = surrogate.run(inputs(width=input_size or 3))
        total = surrogate.contributions(states).sum(-2) + surrogate.constant()
        torch.testing.assert_close(total, surrogate.head(states))


def test_the_state_of_the_surrogate_is_that_of_the_network_in_the_basis_b():
    network = para()
    surrogate = surrogate_network(network)
    basis = surrogate.output.weight
    start = torch.randn(1, 4, 8, dtype=torch.float64)
    x = inputs()
    expected, last = network(x, start)
    actual, surrogate_last = surrogate(x, torch.linalg.solve(basis, start.mT).mT)
    torch.testing.assert_close(actual, expected, rtol=1e-8, atol=1e-9)
    torch.testing.assert_close(surrogate_last @ basis.T, last, rtol=1e-8, atol=1e-9)


def loop(rnn, x, scale):
    """Equation (6) written as a loop over numpy matrices, one layer of a torch.nn.RNN."""
    form = nearest_block_diagonal(rnn.weight_hh_l0.detach().numpy())
    B, W_h = form.transformation.copy(), np.zeros((6, 6))
    for k, block in enumerate(form.blocks):
        pair = slice(2 * k, 2 * k + 2)
        W_h[pair, pair] = block
        B[:, pair] *= scale * np.linalg.svd(np.linalg.inv(form.transformation)[pair])[1][0]
    W_x = np.linalg.inv(B) @ rnn.weight_ih_l0.detach().numpy()
    b = np.linalg.inv(B) @ (rnn.bias_ih_l0 + rnn.bias_hh_l0).detach().numpy()
    outputs = []
    for sequence in x.numpy():
        h = np.zeros(len(B))
        for x_t in sequence:
            h = np.tanh(W_h @ h + W_x @ x_t + b)
            outputs.append(B @ h)
    return np.array(outputs).reshape(*x.shape[:2], -1)


@pytest.mark.parametrize("scale", [1.0, 3.0])
def test_surrogate_of_a_torch_network_is_equation_6(scale):
    torch.manual_seed(3)
    rnn = nn.RNN(3, 6, batch_first=True).double()
    x = inputs()
    actual = surrogate_network(rnn, scale=scale)(x)[0].detach().numpy()
    np.testing.assert_allclose(actual, loop(rnn, x, scale), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("layers", [1, 2])
def test_tanh_networks_are_equal_in_the_limit_of_small_states(layers):
    """tanh(z) = z + O(z^3): the relative gap falls as the square of the scale of the inputs."""
    torch.manual_seed(4)
    rnn = nn.RNN(3, 6, layers, batch_first=True, bias=False).double()
    surrogate = surrogate_network(rnn)
    gaps = [gap(rnn, surrogate, scale * inputs()) for scale in (1e-1, 1e-2, 1e-3)]
    assert gaps[1] < 0.02 * gaps[0]
    assert gaps[2] < 0.02 * gaps[1]
    assert gap(rnn, surrogate, inputs()) > 1e-6


def test_a_large_scale_leaves_tanh_out():
    network = para(nonlinearity="tanh", layers=2)
    linear = para(nonlinearity="identity", layers=2)
    linear.load_state_dict(network.state_dict())
    assert gap(linear, surrogate_network(network, scale=1e6), inputs()) < 1e-7
    assert gap(linear, surrogate_network(network), inputs()) > 1e-2


def test_scale_does_not_matter_where_the_nonlinearity_is_homogeneous():
    for nonlinearity in ("relu", "identity"):
        network = para(nonlinearity=nonlinearity, layers=2)
        one, other = surrogate_network(network), surrogate_network(network, scale=8.0)
        torch.testing.assert_close(other(inputs())[0], one(inputs())[0])


@pytest.mark.parametrize("scale", [0.0, -1.0, float("inf")])
def test_scale_must_be_positive(scale):
    with pytest.raises(ValueError, match="scale must be a number greater than 0"):
        surrogate_network(para(), scale=scale)


def test_states_of_a_block_are_no_larger_than_those_of_the_network():
    """Rows of the inverse of B of a block have norm one: a map of states that does not enlarge."""
    surrogate = surrogate_network(para(16))
    inverse = torch.linalg.inv(surrogate.output.weight).detach()
    norms = torch.linalg.matrix_norm(inverse.unflatten(0, (2, 8)).movedim(1, 0), ord=2)
    torch.testing.assert_close(norms, torch.ones(8, dtype=torch.float64))


@pytest.mark.parametrize("nonlinearity", ["tanh", "relu"])
def test_torch_and_own_layers_have_the_same_surrogate(nonlinearity):
    torch.manual_seed(5)
    rnn = nn.RNN(3, 6, 2, batch_first=True, nonlinearity=nonlinearity).double()
    own = ParaRNN(3, 6, 6, 2, nonlinearity=nonlinearity, dtype=torch.float64)
    with torch.no_grad():
        for layer in range(2):
            projection, recurrent, bias = own.weights(layer)
            projection.copy_(getattr(rnn, f"weight_ih_l{layer}"))
            recurrent.copy_(getattr(rnn, f"weight_hh_l{layer}")[..., None])
            bias.copy_(getattr(rnn, f"bias_ih_l{layer}") + getattr(rnn, f"bias_hh_l{layer}"))
    x = inputs()
    torch.testing.assert_close(own(x)[0], rnn(x)[0])
    of_torch, of_own = surrogate_network(rnn), surrogate_network(own)
    assert of_torch.rnn.nonlinearity == nonlinearity
    torch.testing.assert_close(of_torch(x)[0], of_own(x)[0])


@pytest.mark.parametrize("nonlinearity", ["tanh", "relu", "identity"])
def test_a_network_of_such_blocks_is_its_own_surrogate(nonlinearity):
    network = para(8, 2, 2, nonlinearity=nonlinearity)
    surrogate = surrogate_network(network, 2)
    for mine, theirs in zip(surrogate.rnn.parameters(), network.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=0)
    assert gap(network, surrogate, inputs()) < 1e-14


def test_defective_recurrent_matrices():
    """The gap of an identity network is bounded by the distance of its recurrent matrix."""
    network = para()
    with torch.no_grad():
        matrix = 0.5 * torch.eye(8) + torch.diag(torch.ones(7), 1)
        network.weight_hh_l0.copy_(matrix.double()[..., None])
    surrogate = surrogate_network(network)
    assert 0 < gap(network, surrogate, inputs()) < 1e-3


def test_blocks_of_one():
    """Eigenvalues must be real: exact for a symmetric recurrent matrix."""
    network = para()
    with torch.no_grad():
        matrix = network.weight_hh_l0[..., 0]
        network.weight_hh_l0.copy_((matrix + matrix.T)[..., None] / 2)
    surrogate = surrogate_network(network, 1)
    assert surrogate.rnn.n_blocks == 8
    assert gap(network, surrogate, inputs()) < 1e-9


def test_the_surrogate_is_a_network_of_its_own():
    torch.manual_seed(6)
    network = nn.RNN(3, 6, 2, batch_first=True, dropout=0.3).eval()
    kept, state = copy.deepcopy(network.state_dict()), torch.get_rng_state()
    surrogate = surrogate_network(network)
    assert torch.equal(torch.get_rng_state(), state)
    assert not surrogate.training
    assert surrogate.rnn.dropout == 0.3
    assert surrogate.rnn.weight_hh_l0.dtype == torch.float32
    surrogate(inputs(torch.float32))[0].sum().backward()
    assert all(p.grad is not None for p in surrogate.parameters())
    with torch.no_grad():
        for parameter in surrogate.parameters():
            parameter.zero_()
    for name, value in network.state_dict().items():
        torch.testing.assert_close(value, kept[name], rtol=0, atol=0)


@pytest.mark.parametrize(
    ("network", "error", "message"),
    [
        (nn.RNN(3, 4), ValueError, "batch_first=False, bidirectional=False"),
        (nn.RNN(3, 4, batch_first=True, bidirectional=True), ValueError, "bidirectional=True"),
        (nn.LSTM(3, 4, batch_first=True), TypeError, "got LSTM"),
        (ParaRNN(3, 4, cell="gru"), TypeError, "ParaRNN with cell"),
        (RecurrentNetwork(LEM(3, 4), 2), TypeError, "got LEM"),
        ("network", TypeError, "got str"),
    ],
)
def test_other_networks_are_refused(network, error, message):
    with pytest.raises(error, match=message):
        surrogate_network(network)


def test_block_sizes_that_do_not_divide_are_refused():
    with pytest.raises(ValueError, match=r"one of \[1, 2, 6\]; got 4"):
        surrogate_network(para(6), 4)
