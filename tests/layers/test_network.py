"""The network against Algorithm 1 of Cai et al. (2026), written out by hand."""

import copy
import pickle

import pytest
import torch

from tsrnn.layers import ParaRNN, RecurrentNetwork

SIGMA = {"tanh": torch.tanh, "relu": torch.relu, "identity": lambda x: x}


def network(**kwargs):
    torch.manual_seed(0)
    outer = {k: kwargs.pop(k) for k in ("aggregation", "ffn_size") if k in kwargs}
    output_size = kwargs.pop("output_size", 4)
    projection = kwargs.pop("input_projection", False)
    layers = {"input_size": 8 if projection else 3, "hidden_size": 8, "num_layers": 2} | kwargs
    rnn = ParaRNN(**layers)
    net = RecurrentNetwork(rnn, output_size, input_size=3 if projection else None, **outer).double()
    with torch.no_grad():
        for parameter in net.parameters():  # no zero biases: everything counts
            parameter.add_(0.1 * torch.randn_like(parameter))
    return net


def data(*shape, seed=1):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def algorithm_1(rnn, x):
    """States of the last layer after each step; x (T, in), block k by block k."""
    below = x
    for layer in range(rnn.num_layers):
        weight_x = getattr(rnn, f"weight_ih_l{layer}").detach()
        weight_h = getattr(rnn, f"weight_hh_l{layer}").detach()
        bias = getattr(rnn, f"bias_l{layer}").detach()
        n, d, sigma = rnn.n_blocks, rnn.block_size, SIGMA[rnn.nonlinearity]
        states = torch.zeros(len(x), d, n, dtype=x.dtype)
        for k in range(n):
            rows = [i * n + k for i in range(d)]
            h = torch.zeros(d, dtype=x.dtype)
            for t in range(len(x)):
                h = sigma(weight_h[:, :, k] @ h + weight_x[rows] @ below[t] + bias[rows])
                states[t, :, k] = h
        below = states.flatten(1)
    return below


@pytest.mark.parametrize("nonlinearity", sorted(SIGMA))
@pytest.mark.parametrize("block_size", [1, 2, 4])
@pytest.mark.parametrize("input_projection", [False, True])
def test_linear_aggregation(input_projection, block_size, nonlinearity, assert_close):
    net = network(
        block_size=block_size, nonlinearity=nonlinearity, input_projection=input_projection
    )
    # The network holds Q W_f; split it: any invertible W_f with Q = (Q W_f) W_f^-1 is the same.
    w_f, c = data(8, 8, seed=2), net.output.bias.detach()
    q = net.output.weight.detach() @ torch.linalg.inv(w_f)
    for x in data(2, 5, 3):
        projected = x
        if input_projection:
            projected = x @ net.input.weight.detach().T + net.input.bias.detach()
        aggregated = algorithm_1(net.rnn, projected) @ w_f.T
        output, _ = net(x[None])
        assert_close(output[0].detach(), aggregated @ q.T + c, 4096)


def test_feedforward_aggregation(assert_close):
    net = network(aggregation="ffn", ffn_size=5)
    w_1, b_1, w_2, b_2 = (p.detach() for p in net.ffn.parameters())
    assert w_1.shape == (5, 8)
    (x,) = data(1, 5, 3)
    inner = (algorithm_1(net.rnn, x) @ w_1.T + b_1).clamp(min=0)
    expected = (inner @ w_2.T + b_2) @ net.output.weight.detach().T + net.output.bias.detach()
    assert_close(net(x[None])[0][0].detach(), expected, 256)


def test_a_fully_connected_layer_aggregates(assert_close):
    net = network(aggregation="fc")
    w, b = (p.detach() for p in net.ffn.parameters())
    assert w.shape == (8, 8)
    (x,) = data(1, 5, 3)
    inner = (algorithm_1(net.rnn, x) @ w.T + b).clamp(min=0)
    expected = inner @ net.output.weight.detach().T + net.output.bias.detach()
    assert_close(net(x[None])[0][0].detach(), expected, 256)


def test_the_inner_width_of_the_feedforward_network_is_four_times_the_states():
    assert network(aggregation="ffn").ffn[0].out_features == 32


@pytest.mark.parametrize("block_size", [1, 2, 4])
def test_contributions_and_the_constant_sum_to_the_output(block_size, assert_close):
    net = network(block_size=block_size)
    x = data(2, 5, 3)
    states, _ = net.rnn(x)
    parts = net.contributions(states)
    assert parts.shape == (2, 5, 8 // block_size, 4)
    assert_close((parts.sum(-2) + net.output.bias).detach(), net(x)[0].detach())


def test_a_contribution_is_that_of_its_block_alone(assert_close):
    net = network(block_size=2)
    states, _ = net.rnn(data(2, 5, 3))
    for k in range(4):
        alone = torch.zeros_like(states)
        alone[..., [k, 4 + k]] = states[..., [k, 4 + k]]
        expected = net.head(alone) - net.output.bias
        assert_close(net.contributions(states)[..., k, :].detach(), expected.detach())


@pytest.mark.parametrize("aggregation", ["fc", "ffn"])
def test_a_nonlinear_aggregation_has_no_contributions(aggregation):
    net = network(aggregation=aggregation)
    with pytest.raises(ValueError, match="contributions.*aggregation='linear' only"):
        net.contributions(data(5, 8))


@pytest.mark.parametrize("shape", [(2, 6, 3), (6, 3)])
def test_start(shape):
    net, x = network(), data(*shape)
    whole, h_n = net(x)
    for start in (0, 1, 5, 6, -1, -4):
        output, last = net(x, start=start)
        torch.testing.assert_close(output, whole[..., start:, :])
        assert torch.equal(last, h_n)


def test_the_state_is_carried_on(assert_close):
    net, x = network(), data(2, 6, 3)
    whole, last = net(x)
    first, middle = net(x[:, :4])
    second, end = net(x[:, 4:], middle)
    assert_close(torch.cat([first, second], 1).detach(), whole.detach())
    assert torch.equal(end, last)


def test_lengths(assert_close):
    net, x = network(), data(2, 6, 3)
    output, h_n = net(x, lengths=[6, 2])
    alone, last = net(x[1:, :2])
    assert_close(output[1:, :2].detach(), alone.detach())
    assert_close(h_n[:, 1:].detach(), last.detach())


@pytest.mark.parametrize("input_projection", [False, True])
def test_what_padding_holds_reaches_no_gradient(input_projection):
    net, x = network(input_projection=input_projection), data(2, 6, 3)
    gradients = []
    for padding in (0.0, float("nan")):
        x[1, 2:] = padding
        net.zero_grad()
        _, h_n = net(x, lengths=[6, 2])
        h_n.square().sum().backward()
        gradients.append([p.grad for p in net.parameters() if p.grad is not None])
    for one, other in zip(*gradients, strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("input_projection", [False, True])
def test_without_a_batch(input_projection):
    net, x = network(input_projection=input_projection), data(6, 3)
    output, h_n = net(x, lengths=[4])
    batched, last = net(x[None], lengths=[4])
    assert torch.equal(output, batched[0])
    assert torch.equal(h_n, last[:, 0])
    again, _ = net(x, h_n)
    assert torch.equal(again, net(x[None], last)[0][0])


@pytest.mark.parametrize("aggregation", ["linear", "fc", "ffn"])
def test_zero_output(aggregation):
    net = network(aggregation=aggregation)
    net.reset_parameters(torch.Generator().manual_seed(0), zero_output=True)
    output, h_n = net(data(2, 5, 3))
    assert not output.any()
    assert h_n.any()
    output.sum().backward()  # the output layer still learns
    assert net.output.bias.grad.any()


def test_recurrent_blocks_are_those_of_the_layers():
    net = network()
    for own, inner in zip(net.recurrent_blocks(), net.rnn.recurrent_blocks(), strict=True):
        assert own.shape == (4, 2, 2)
        assert torch.equal(own, inner)


@pytest.mark.parametrize("aggregation", ["linear", "fc", "ffn"])
@pytest.mark.parametrize("input_projection", [False, True])
def test_networks_can_be_saved_and_copied(aggregation, input_projection):
    net = network(aggregation=aggregation, input_projection=input_projection)
    x = data(2, 5, 3)
    loaded = network(aggregation=aggregation, input_projection=input_projection)
    loaded.reset_parameters()
    loaded.load_state_dict(net.state_dict())
    for other in (loaded, copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert torch.equal(other(x)[0], net(x)[0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"aggregation": "sum"}, "aggregation must be one of .*; got 'sum'"),
        ({"output_size": 0}, "output_size must be a positive integer; got 0"),
        ({"ffn_size": 0}, "ffn_size must be a positive integer; got 0"),
        ({"block_size": 3}, "multiple of block_size"),
        ({"nonlinearity": "sin"}, "nonlinearity must be one of"),
        ({"hidden_size": 0, "input_projection": True}, "hidden_size must be a positive"),
    ],
)
def test_errors(arguments, message):
    with pytest.raises(ValueError, match=message):
        network(**arguments)
