"""Layers on every engine that runs their cell: the same outputs, states and gradients."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tsrnn.kernels import Cell
from tsrnn.layers import (
    LEM,
    LRU,
    BlockRecurrentAttention,
    LayerChoice,
    NewtonBlocks,
    NewtonGRU,
    NewtonLSTM,
    ParaRNN,
    with_engine,
)

TIME_PARALLEL = ("shooting", "newton")


def _erf(state, inputs, params):
    return (torch.erf(params[0] * state[0] + inputs[0]),)


def _oscillator(state, inputs, params):
    y, z = state
    z = torch.sigmoid(inputs[1]) * z + torch.tanh(inputs[0] + params[0] * y)
    return z / (1 + z * z), z


OSCILLATOR = Cell("oscillator", n=2, m=2, p=1, step=_oscillator, outputs=1)
UNROLLED = ("sequential", *TIME_PARALLEL, "dense")
LAYERS = {
    "rnn": (lambda **kw: ParaRNN(2, 4, 2, 2, **kw), UNROLLED),
    "linear": (lambda **kw: ParaRNN(2, 4, nonlinearity="identity", **kw), (*UNROLLED, "scan")),
    "gru": (lambda **kw: ParaRNN(2, 4, cell="gru", **kw), UNROLLED),
    "lstm": (lambda **kw: ParaRNN(2, 6, 3, cell="lstm", **kw), UNROLLED),
    "large": (lambda **kw: ParaRNN(2, 12, 12, **kw), ("newton", "dense")),
    "user's": (lambda **kw: ParaRNN(2, 4, cell=OSCILLATOR, **kw), ("sequential", *TIME_PARALLEL)),
    "lem": (lambda **kw: LEM(2, 4, 2, block_size=2, **kw), UNROLLED),
    "full lem": (lambda **kw: LEM(2, 10, **kw), ("newton", "dense")),
    "lru": (lambda **kw: LRU(2, 4, 2, **kw), ("sequential", *TIME_PARALLEL, "scan")),
    "newton-gru": (lambda **kw: NewtonGRU(2, 4, **kw), UNROLLED),
    "newton-lstm": (lambda **kw: NewtonLSTM(2, 4, block_size=2, **kw), UNROLLED),
    "blocks": (lambda **kw: NewtonBlocks(2, 4, **kw), UNROLLED),
}
CASES = [(name, engine) for name, (_, engines) in LAYERS.items() for engine in engines]
DTYPES = [torch.float32, torch.float64]


def twins(name, engine, dtype):
    """Return a layer on an engine, and the same layer as a loop in torch."""
    make, _ = LAYERS[name]
    layer, loop = (make(engine=each, dtype=dtype) for each in (engine, "reference"))
    assert (layer.engine, loop.engine) == (engine, "reference")
    loop.load_state_dict(layer.state_dict())
    return layer, loop


def run(layer, x, hx, lengths):
    """Return outputs, the last state, and gradients of inputs, state and parameters."""
    x, hx = x.clone().requires_grad_(), hx.clone().requires_grad_()
    output, last = layer(x, hx, lengths)
    leaves = [x, hx, *layer.parameters()]
    weights = torch.linspace(-1, 1, output.numel(), dtype=x.dtype).view_as(output)
    return (
        output.detach(),
        last.detach(),
        *torch.autograd.grad((output * weights).sum() + last.square().sum(), leaves),
    )


@pytest.mark.few("sequential-torch.float64", "newton-torch.float32")
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(("name", "engine"), CASES)
def test_engines_agree_to_rounding(name, engine, dtype, assert_close):
    generator = torch.Generator().manual_seed(0)
    torch.manual_seed(0)
    layer, loop = twins(name, engine, dtype)
    x = torch.randn(3, 150, 2, generator=generator, dtype=dtype)
    hx = 0.3 * torch.randn(layer.num_layers, 3, layer.state_size, generator=generator, dtype=dtype)
    lengths = torch.tensor([150, 0, 70])
    for ours, expected in zip(run(layer, x, hx, lengths), run(loop, x, hx, lengths), strict=True):
        assert_close(ours, expected, 2**9)


@pytest.mark.few("sequential", "shooting", "dense")
@pytest.mark.parametrize(("name", "engine"), CASES)
@given(steps=st.integers(2, 40), data=st.data())
@settings(max_examples=5, deadline=None)
def test_a_sequence_may_be_cut_anywhere(name, engine, assert_close, steps, data):
    cut = data.draw(st.integers(1, steps - 1))
    torch.manual_seed(1)
    layer, loop = twins(name, engine, torch.float64)
    x = torch.randn(2, steps, 2, dtype=torch.float64)
    with torch.no_grad():
        first, state = layer(x[:, :cut])
        second, state = layer(x[:, cut:], state)
        output, last = loop(x)
    assert_close(torch.cat([first, second], 1), output, 2**9)
    assert_close(state, last, 2**9)


def test_a_cell_without_compiled_form_runs_as_a_loop():
    layer = ParaRNN(2, 3, cell=Cell("erf", n=1, m=1, p=1, step=_erf), engine="reference")
    layer.prepare()
    assert layer(torch.ones(1, 4, 2))[0].abs().max() > 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ParaRNN(2, 4, engine="fast"), "engine must be one of .*'newton', 'dense'.*'fast'"),
        (lambda: ParaRNN(2, 4, engine=None), "engine must be one of .* got None"),
        (lambda: ParaRNN(2, 4, cell="lstm", engine="scan"), "cell='lstm' is not. Use .*'shooting'"),
        (lambda: ParaRNN(2, 4, cell=OSCILLATOR, engine="dense"), "cell 'oscillator' has none. Use"),
        (lambda: ParaRNN(2, 9, 9, engine="shooting"), "of cell='rnn' are larger. Use .*'dense'"),
        (lambda: LEM(2, 9, engine="sequential"), "of cell='lem' are larger. Use engine='dense'"),
        (lambda: LRU(2, 4, engine="dense"), "cell='lru' has none. Use engine='sequential'"),
        (lambda: NewtonGRU(2, 4, engine="scan"), "cell='newton-gru' is not"),
        (lambda: NewtonLSTM(2, 4, engine="scan"), "cell='newton-lstm' is not"),
        (lambda: NewtonBlocks(2, 4, engine="scan"), "cell='newton-gru' is not"),
        (
            lambda: BlockRecurrentAttention(2, 4, engine="newton"),
            "engine must be 'auto' for cell='attention', which runs in torch.* got 'newton'. Leave",
        ),
    ],
)
def test_engines_that_a_cell_has_not(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_layers_without_engines(monkeypatch):
    class Plain(LRU):
        def __init__(self, input_size, hidden_size, num_layers=1):
            super().__init__(input_size, hidden_size, num_layers)

    monkeypatch.setitem(with_engine.__globals__["LAYERS"], "Plain", Plain)
    choice = LayerChoice("Plain", {})
    assert with_engine(choice, "auto") is choice
    with pytest.raises(ValueError, match="engine is no choice of the layers Plain; got 'scan'"):
        with_engine(choice, "scan")
