"""Promises of `Recurrent` that every layer keeps: states, lengths, copies, draws and refusals."""

import copy
import pickle
from functools import partial

import pytest
import torch

from tsrnn.kernels import Cell, cells
from tsrnn.layers import (
    LEM,
    LRU,
    BlockRecurrentAttention,
    NewtonBlocks,
    NewtonGRU,
    NewtonLSTM,
    ParaRNN,
    Recurrent,
    UnequalParaRNN,
)


def _leaky(state, inputs, params):
    y, z = state
    u, v = inputs
    z = torch.sigmoid(v) * z + torch.tanh(u + params[0] * y)
    return y + params[1] * z, z


def _min_gru(state, inputs, params):
    z = torch.sigmoid(inputs[0])
    return ((1 - z) * state[0] + z * inputs[1],)


rnn = partial(ParaRNN, 2, 12, num_layers=2)
lem = partial(LEM, 2, 10, num_layers=2, dt=0.7)
lru = partial(LRU, 2, 6, num_layers=2)
blocks = partial(NewtonBlocks, 2, 6, num_layers=2)
attention = partial(BlockRecurrentAttention, 2, 8, num_layers=2, n_states=3, window=3, n_heads=2)
# Inputs are projected inside of the kernel, or, with 12 of them or large blocks, before it.
LAYERS = {
    "rnn": partial(rnn, block_size=2),
    "full rnn": partial(rnn, block_size=12),
    "wide rnn": partial(ParaRNN, 12, 12, num_layers=2, block_size=2),
    "wide full rnn": partial(ParaRNN, 12, 12, num_layers=2, block_size=12),
    "gru": partial(rnn, cell="gru"),
    "lstm": partial(rnn, cell="lstm"),
    "leaky": partial(rnn, cell=Cell("leaky", n=2, m=2, p=2, step=_leaky, outputs=1)),
    "minimal gru": partial(rnn, cell=Cell("min_gru", n=1, m=2, p=0, step=_min_gru)),
    "cell of two": partial(rnn, cell=cells.newton_lstm(2)),
    "unequal rnn": partial(UnequalParaRNN, 2, 8, (2, 4, 2), num_layers=2),
    "unequal lstm": partial(UnequalParaRNN, 2, 8, (2, 4, 2), num_layers=2, cell="lstm"),
    "lem": lem,
    "lem in blocks": partial(lem, block_size=2),
    "lem, chrono": partial(lem, init="chrono", chrono_length=50),
    "lru": lru,
    "lru without mlp": partial(lru, mlp=False),
    "wide lru": partial(LRU, 12, 6, num_layers=2, mlp=(4, 3)),
    "wide lru without mlp": partial(LRU, 12, 6, num_layers=2, mlp=False),
    "frozen lru": partial(lru, trainable_recurrence=False),
    "timed lru": partial(lru, state_units=4, constant_input=True),
    "newton-gru": partial(NewtonGRU, 2, 6, num_layers=2),
    "newton-lstm": partial(NewtonLSTM, 2, 6, num_layers=2),
    "newton-lstm in blocks": partial(NewtonLSTM, 2, 6, num_layers=2, block_size=2),
    "gru block": partial(blocks, n_heads=3),
    "lstm block": partial(
        blocks, cell="newton-lstm", expansion=2, n_heads=2, conv_size=3, mlp_size=5
    ),
    "no convolution": partial(NewtonBlocks, 2, 4, conv_size=1),
    "attention": partial(attention, block_size=2),
    "full attention": partial(attention, block_size=None),
    "joint attention": partial(attention, update="joint"),
}  # fmt: skip
LENGTHS = [6, 0, 1, 4]


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def drawn(name, seed=0, **options):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return LAYERS[name](**{"dtype": torch.float64} | options)


@pytest.fixture(params=LAYERS)
def name(request):
    return request.param


@pytest.fixture
def layer(name):
    """Layer without parameters that are zero or one, so that each counts."""
    layer, generator = drawn(name), torch.Generator().manual_seed(2)
    with torch.no_grad():
        for p in layer.parameters():
            p.add_(0.1 * torch.randn(p.shape, generator=generator, dtype=p.dtype))
    return layer


def carried(layer, batch):
    """State of sequences that have run for different numbers of steps."""
    x = normal(batch, 9, layer.input_size, seed=1)
    return layer(x, lengths=[5, 9, 0, 3][:batch])[1].detach()


def gradients(layer, output, h_n):
    loss = output.square().sum() + h_n.sum()
    return torch.autograd.grad(loss, list(layer.parameters()), materialize_grads=True)


def test_the_state_is_zero_at_first_and_has_the_last_output(layer):
    assert isinstance(layer, Recurrent)
    x, start = normal(3, 7, layer.input_size), layer.initial_state(3)
    assert start.shape == (layer.num_layers, 3, layer.state_size)
    assert start.dtype == torch.float64
    assert not start.any()
    output, h_n = layer(x)
    assert output.shape == (3, 7, layer.hidden_size)
    assert h_n.shape == start.shape
    assert torch.equal(layer(x, start)[0], output)
    assert torch.equal(layer.outputs(h_n[-1]), output[:, -1])


@pytest.mark.parametrize("cut", [1, 4, 8])
def test_two_parts_are_the_whole(name, layer, cut, assert_close):
    x, hx = normal(3, 9, layer.input_size), carried(layer, 3)
    with torch.no_grad():
        output, h_n = layer(x, hx)
        first, middle = layer(x[:, :cut], hx)
        second, last = layer(x[:, cut:], middle)
    assert_close(torch.cat([first, second], 1), output)
    assert_close(last, h_n)
    if name == "lem in blocks" and cut == 4:  # projected inside of the kernel: bit by bit
        assert torch.equal(torch.cat([first, second], 1), output)
        assert torch.equal(last, h_n)


def test_a_sequence_without_a_batch(layer, assert_close):
    x, hx = normal(3, 6, layer.input_size), carried(layer, 3)
    with torch.no_grad():
        output, h_n = layer(x, hx)
        alone, last = layer(x[1], hx[:, 1])
    assert_close(alone, output[1])
    assert_close(last, h_n[:, 1])


def test_no_sequences(layer):
    x = normal(0, 6, layer.input_size)
    for output, h_n in (layer(x), layer(x, lengths=[])):
        assert output.shape == (0, 6, layer.hidden_size)
        assert h_n.shape == (layer.num_layers, 0, layer.state_size)


def test_lengths(layer, assert_close):
    x, hx = normal(4, 6, layer.input_size), carried(layer, 4)
    output, h_n = layer(x, hx, LENGTHS)
    for i, length in enumerate(LENGTHS):
        assert not output[i, length:].any()
        if not length:
            assert torch.equal(h_n[:, i], hx[:, i])
            continue
        alone, last = layer(x[i, :length], hx[:, i])
        assert_close(output[i, :length].detach(), alone.detach())
        assert_close(h_n[:, i].detach(), last.detach())
        assert torch.equal(layer.outputs(h_n[-1, i]), output[i, length - 1])
    for dtype in (torch.int64, torch.int32, torch.uint8):
        assert torch.equal(layer(x, hx, torch.tensor(LENGTHS, dtype=dtype))[0], output)


def test_gradients_of_lengths_are_those_of_the_sequences_alone(layer, assert_close):
    x, hx = normal(4, 6, layer.input_size), carried(layer, 4)
    together = gradients(layer, *layer(x, hx, LENGTHS))
    parts = [
        gradients(layer, *layer(x[i, :length], hx[:, i]))
        for i, length in enumerate(LENGTHS)
        if length
    ]
    for gradient, alone in zip(together, zip(*parts, strict=True), strict=True):
        assert_close(gradient, sum(alone), 512)


def test_what_padding_holds_reaches_neither_output_nor_gradient(layer):
    results = []
    for padding in (0.0, torch.nan):
        x = normal(3, 8, layer.input_size)
        x[1, 4:] = x[2] = padding
        x.requires_grad_()
        output, h_n = layer(x, lengths=[8, 4, 0])
        (of_x,) = torch.autograd.grad(output.square().sum(), x, retain_graph=True)
        assert not of_x[1, 4:].any()
        assert not of_x[2].any()
        results.append([output, h_n, of_x, *gradients(layer, output, h_n)])
    for clean, padded in zip(*results, strict=True):
        assert torch.isfinite(padded).all()
        assert torch.equal(clean, padded)
    assert not h_n[:, 2].any()


def test_the_future_does_not_reach_the_past(layer):
    x = normal(1, 6, layer.input_size).requires_grad_()
    output, _ = layer(x)
    for t in range(6):
        (gradient,) = torch.autograd.grad(output[0, t].square().sum(), x, retain_graph=True)
        assert not gradient[0, t + 1 :].any()
        assert gradient[0, t].any()


def test_single_precision(name):
    layer = drawn(name)
    x, hx = normal(2, 12, layer.input_size), carried(layer, 2)
    single = copy.deepcopy(layer).float()
    output, h_n = single(x.float(), hx.float())
    assert output.dtype == h_n.dtype == single.initial_state(1).dtype == torch.float32
    atol = 1e-4 if "attention" in name else 7e-6
    for ours, expected in zip((output, h_n), layer(x, hx), strict=True):
        torch.testing.assert_close(ours.double(), expected, rtol=0, atol=atol)


def test_copies_compute_the_same(name, layer):
    x = normal(3, 5, layer.input_size)
    expected = layer(x)[0]
    loaded = drawn(name, seed=1)
    assert not torch.equal(loaded(x)[0], expected)
    loaded.load_state_dict(layer.state_dict())
    for other in (loaded, copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert torch.equal(other(x)[0], expected)


def test_building_on_the_meta_device_allocates_nothing(name, layer):
    with torch.device("meta"):
        inside = LAYERS[name]()
    for module in (inside, LAYERS[name](device="meta")):
        shapes = {key: value.shape for key, value in module.state_dict().items()}
        assert shapes == {key: value.shape for key, value in layer.state_dict().items()}
        assert all(value.is_meta for value in module.state_dict().values())


def test_parameters_are_drawn_from_the_generator_given(name):
    layers = [drawn(name, seed) for seed in (0, 1)]
    before, first = torch.get_rng_state(), layers[0].state_dict()
    first = {key: value.clone() for key, value in first.items()}
    for layer in layers:
        layer.reset_parameters(torch.Generator().manual_seed(7))
    assert torch.equal(torch.get_rng_state(), before)
    ours, theirs = (layer.state_dict() for layer in layers)
    assert all(torch.equal(value, theirs[key]) for key, value in ours.items())
    assert not all(torch.equal(value, first[key]) for key, value in ours.items())


@pytest.mark.parametrize("name", [name for name in LAYERS if LAYERS[name].func is not NewtonBlocks])
def test_dropout_acts_in_training_only(name):
    layer, plain = drawn(name, dropout=0.5, num_layers=2), drawn(name, num_layers=2)
    x = normal(3, 5, layer.input_size)
    assert not torch.equal(layer(x)[0], plain(x)[0])
    assert torch.equal(layer.eval()(x)[0], plain(x)[0])
    if "attention" not in name:  # which drops within its layers, others only between them
        single, plain = (drawn(name, dropout=p, num_layers=1) for p in (0.5, 0.0))
        assert torch.equal(single(x)[0], plain(x)[0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"input_size": 0}, "input_size must be a positive integer; got 0"),
        ({"hidden_size": 2.0}, r"hidden_size must be a positive integer; got 2\.0"),
        ({"hidden_size": -1}, "hidden_size must be a positive integer; got -1"),
        ({"num_layers": "1"}, "num_layers must be a positive integer; got '1'"),
        ({"num_layers": 1.0}, r"num_layers must be a positive integer; got 1\.0"),
    ],
)
@pytest.mark.parametrize(
    "kind", [BlockRecurrentAttention, LEM, LRU, NewtonBlocks, NewtonGRU, NewtonLSTM, ParaRNN]
)
def test_sizes_are_checked(kind, arguments, message):
    with pytest.raises(ValueError, match=message):
        kind(**{"input_size": 2, "hidden_size": 8} | arguments)
    if kind is not NewtonBlocks:
        with pytest.raises(ValueError, match=r"dropout must lie in \[0, 1\); got 1\.0"):
            kind(2, 8, dropout=1.0)


@pytest.mark.parametrize("block_size", [1, 2])
@pytest.mark.parametrize("kind", [ParaRNN, LEM, NewtonLSTM])
def test_blocks_fill_a_layer(kind, block_size):
    assert kind(2, 4, block_size=block_size).n_blocks == 4 // block_size
    with pytest.raises(ValueError, match="multiple of block_size; got hidden_size=4, block_size=3"):
        kind(2, 4, block_size=3)
    with pytest.raises(ValueError, match="block_size must be a positive integer; got 0"):
        kind(2, 4, block_size=0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"x": normal(3, 5, 1)}, r"x must have shape \(B, T, {m}\) or \(T, {m}\).*got \(3, 5, 1\)"),
        ({"x": normal(5)}, r"got \(5,\)"),
        ({"x": "none"}, "T >= 1"),
        ({"x": "single"}, r"x must have the dtype.*float64.*got torch\.float32"),
        ({"x": "meta"}, "x must have the .*device of the layer.*on meta"),
        ({"hx": "single"}, r"hx must have the dtype.*got torch\.float32"),
        ({"hx": normal(1, 2, 1)}, r"hx must have shape \({l}, 3, {n}\); got \(1, 2, 1\)"),
        ({"hx": normal(1, 3, 4)}, r"hx must have shape \({l}, 3, {n}\); got \(1, 3, 4\)"),
        ({"lengths": [1, 2, 6]}, "between 0 and T=5; got 6 for sequence 2"),
        ({"lengths": [1, 2]}, "lengths must be 3 integers"),
        ({"lengths": [1.0, 2.0, 3.0]}, r"integers.*got torch\.float32"),
    ],
)
def test_errors_of_a_call(layer, arguments, message):
    x = normal(3, 5, layer.input_size)
    inputs = {"none": x[:, :0], "single": x.float(), "meta": x.to("meta")}
    given = {"x": x} | arguments
    if isinstance(given["x"], str):
        given["x"] = inputs[given["x"]]
    if isinstance(given.get("hx"), str):
        given["hx"] = layer.initial_state(3).float()
    sizes = {"m": layer.input_size, "l": layer.num_layers, "n": layer.state_size}
    for key, size in sizes.items():
        message = message.replace(f"{{{key}}}", str(size))
    with pytest.raises(ValueError, match=message):
        layer(**given)
