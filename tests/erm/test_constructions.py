"""Proposition C.1 and its lemmas as constructions, against the networks that they start from."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from tsrnn.erm import (
    ModifiedLayer,
    ModifiedParaRNN,
    as_feedforward,
    as_modified_para_rnn,
    as_para_rnn,
)
from tsrnn.layers import ParaRNN, RecurrentNetwork


def feedforward(*sizes, seed=0):
    parts = []
    for narrow, wide in itertools.pairwise(sizes):
        parts += [nn.Linear(narrow, wide, dtype=torch.float64), nn.ReLU()]
    network = nn.Sequential(*parts[:-1])
    generator = torch.Generator().manual_seed(seed)
    for parameter in network.parameters():
        nn.init.normal_(parameter, generator=generator)
    return network


def uniform(*shape, seed=0):
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def values(tensor):
    return tensor.detach().numpy()


def linear_maps(network):
    return [part for part in network if isinstance(part, nn.Linear)]


@settings(deadline=None, max_examples=25)
@given(
    d_in=st.integers(1, 3),
    length=st.integers(1, 5),
    hidden=st.lists(st.integers(1, 4), max_size=3),
    n_outputs=st.integers(1, 3),
    block_size=st.integers(2, 6),
    data=st.data(),
)
def test_a_feedforward_network_is_a_para_rnn(d_in, length, hidden, n_outputs, block_size, data):
    step = data.draw(st.integers(1, length))
    network = feedforward(d_in * step, *hidden, n_outputs)
    width, depth = (d_in + 1) * max(*hidden, n_outputs, 1), len(hidden) + 1
    x = uniform(8, length, d_in)
    expected = values(network(x[:, :step].flatten(1)))
    modified = as_modified_para_rnn(network, length, step)
    assert modified.input_map.shape == (width, d_in)
    assert len(modified.layers) == length + depth - 1
    scale = 1 + np.abs(expected).max()
    assert np.abs(modified(x.numpy())[:, step - 1] - expected).max() < 1e-11 * scale
    if width % block_size:
        return
    recurrent = as_para_rnn(network, length, step, block_size=block_size)
    rnn = recurrent.rnn
    assert (rnn.hidden_size, rnn.block_size) == (width + block_size, block_size)
    assert rnn.num_layers == 2 * (length + depth - 1)
    assert (rnn.nonlinearity, recurrent.aggregation) == ("relu", "fc")
    # P and Q of the class of section 4.1 have no constants.
    assert not recurrent.input.bias.any()
    assert not recurrent.output.bias.any()
    assert np.abs(values(recurrent(x)[0])[:, step - 1] - expected).max() < 1e-9 * scale


def test_corners_of_the_cube_count():
    network = feedforward(6, 3, 2, 1, seed=3)
    recurrent = as_para_rnn(network, length=3, block_size=3)
    corners = torch.tensor(list(itertools.product([0.0, 1.0], repeat=6)), dtype=torch.float64)
    actual = values(recurrent(corners.reshape(-1, 3, 2))[0])[:, -1]
    np.testing.assert_allclose(actual, values(network(corners)), atol=1e-10)


@pytest.mark.parametrize(
    ("length", "lowest", "highest"), [(4, 0.0, 1e-12), (8, 1e-10, 1e-7), (12, 1e-6, 1e-2)]
)
def test_sums_with_binomial_coefficients_cost_digits(length, lowest, highest):
    x, errors = uniform(50, length, 1), []
    for seed in range(3):
        network = feedforward(length, 4, 1, seed=seed)
        expected = values(network(x.flatten(1)))
        actual = values(as_para_rnn(network, length)(x)[0])[:, -1]
        errors.append(np.abs(actual - expected).max() / np.abs(expected).max())
    assert lowest <= max(errors) < highest


def modified_network(width, n_layers, block_size, seed=0):
    rng = np.random.default_rng(seed)
    mask = np.kron(np.eye(width // block_size), np.ones((block_size, block_size)))

    def layer(recurrent):
        W_h = 0.7 * rng.normal(size=(width, width)) * mask
        return ModifiedLayer(
            rng.normal(size=(width, width)), rng.normal(size=width), rng.random(width) < 0.5,
            W_h if recurrent else None,
        )  # fmt: skip

    return ModifiedParaRNN(
        rng.normal(size=(width, 2)), [layer(i != 1) for i in range(n_layers)], layer(False),
        rng.normal(size=(3, width)),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("width", "n_layers", "block_size"), [(4, 1, 2), (6, 3, 3), (8, 2, 4), (4, 2, 4)]
)
def test_a_para_rnn_activated_in_part_is_one_activated_throughout(width, n_layers, block_size):
    modified = modified_network(width, n_layers, block_size)
    recurrent = as_para_rnn(modified, length=6, block_size=block_size)
    assert recurrent.rnn.hidden_size == width + block_size
    assert recurrent.rnn.num_layers == 2 * n_layers
    x = uniform(20, 6, 2)
    expected = modified(x.numpy())  # at every step, from a state of zero
    actual = values(recurrent(x)[0])
    assert np.abs(actual - expected).max() < 1e-11 * np.abs(expected).max()


def test_the_modified_network_is_its_equation():
    modified = modified_network(4, 2, 2, seed=5)
    x = uniform(1, 3, 2).numpy()
    sequence = [modified.input_map @ x[0, t] for t in range(3)]
    for layer in [*modified.layers, modified.aggregation]:
        h, outputs = np.zeros(4), []
        for value in sequence:
            z = layer.projection @ value + layer.bias
            z = z if layer.recurrent is None else z + layer.recurrent @ h
            h = np.array([max(0, v) if on else v for v, on in zip(z, layer.active, strict=True)])
            outputs.append(h)
        sequence = outputs
    expected = [modified.output_map @ value for value in sequence]
    np.testing.assert_allclose(modified(x)[0], expected)


@settings(deadline=None, max_examples=20)
@given(
    d_in=st.integers(1, 3),
    blocks=st.integers(1, 3),
    block_size=st.integers(1, 3),
    n_layers=st.integers(1, 3),
    step=st.integers(1, 4),
    aggregation=st.sampled_from(["fc", "linear"]),
    projected=st.booleans(),
    bias=st.booleans(),
)
def test_a_para_rnn_is_a_feedforward_network(
    d_in, blocks, block_size, n_layers, step, aggregation, projected, bias
):
    d = blocks * block_size
    rnn = ParaRNN(2 if projected else d_in, d, block_size, n_layers, nonlinearity="relu", bias=bias)
    network = RecurrentNetwork(
        rnn, 2, aggregation=aggregation, input_size=d_in if projected else None
    ).double()
    generator = torch.Generator().manual_seed(1)
    for parameter in network.parameters():
        nn.init.normal_(parameter, generator=generator)
    flat = as_feedforward(network, step)
    maps = linear_maps(flat)
    assert len(maps) == (step + 1) * n_layers + 1 + (aggregation == "fc")
    assert max(part.out_features for part in maps[:-1]) <= (2 * step - 1) * d
    assert maps[0].in_features == step * d_in
    x = 3 * uniform(5, step + 2, d_in) - 1.5  # any inputs, not those of the cube alone
    expected = network(x)[0][:, step - 1]
    torch.testing.assert_close(flat(x[:, :step].flatten(1)), expected, rtol=1e-9, atol=1e-9)


def test_there_and_back():
    network = feedforward(4, 2, 1)
    flat = as_feedforward(as_para_rnn(network, length=2, block_size=2), step=2)
    x = uniform(30, 4)
    torch.testing.assert_close(flat(x), network(x), rtol=0, atol=1e-10)


def test_nothing_drawn_globally():
    network = feedforward(2, 2, 1)
    state = torch.random.get_rng_state()
    as_feedforward(as_para_rnn(network, length=2), step=2)
    assert torch.equal(torch.random.get_rng_state(), state)


LINEAR, SMALL = nn.Linear(4, 2), feedforward(4, 1)
ODD = nn.Sequential(LINEAR, nn.Tanh(), LINEAR), nn.Sequential(LINEAR, nn.ReLU())
RECURRENT = [
    RecurrentNetwork(ParaRNN(2, 4, nonlinearity=name), 1, aggregation="fc")
    for name in ("tanh", "relu")
]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: as_para_rnn(LINEAR, 2), TypeError, "Sequential of Linear and ReLU in turn"),
        (lambda: as_para_rnn(ODD[0], 2), TypeError, "Linear and ReLU in turn"),
        (lambda: as_para_rnn(ODD[1], 2), TypeError, "begins and ends with Linear"),
        (
            lambda: as_para_rnn(SMALL, 3, 3),
            ValueError,
            "divide the inputs of the network, 4; got 3",
        ),
        (lambda: as_para_rnn(SMALL, 3, 4), ValueError, "one of the 3 steps"),
        (lambda: as_para_rnn(SMALL, 0), ValueError, "length"),
        (lambda: as_para_rnn(SMALL, 4, block_size=1), ValueError, "at least 2"),
        (
            lambda: as_para_rnn(SMALL, 4, block_size=3),
            ValueError,
            "divide the 2 units of the modified ParaRNN; got 3",
        ),
        (
            lambda: as_para_rnn(modified_network(4, 1, 4), 3, block_size=2),
            ValueError,
            "must have blocks of block_size=2",
        ),
        (lambda: as_para_rnn(modified_network(4, 1, 2), 3, 2), ValueError, "Leave it out; got 2"),
        (lambda: as_feedforward(LINEAR, 2), TypeError, "around a ParaRNN; got Linear"),
        (lambda: as_feedforward(RECURRENT[0], 2), ValueError, "nonlinearity='tanh'"),
        (lambda: as_feedforward(RECURRENT[1], 0), ValueError, "step"),
    ],
)
def test_what_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("build", [as_para_rnn, as_modified_para_rnn])
def test_a_length_at_which_rounding_has_eaten_the_answer_is_refused(build):
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(24, 4), nn.ReLU(), nn.Linear(4, 1)).double()
    with pytest.raises(ValueError, match="length must be short enough .* got 24, with an error"):
        build(network, 24)


def test_maps_that_do_not_fit_each_other_are_refused():
    network = nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Linear(5, 1))
    with pytest.raises(ValueError, match="got 4 outputs and 5 inputs"):
        as_para_rnn(network, 3)
