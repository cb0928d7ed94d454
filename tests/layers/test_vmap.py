"""Networks under torch.vmap: replicates in one pass against one after the other."""

import copy

import pytest
import torch
from torch.func import functional_call, stack_module_state

from tsrnn.kernels import Cell, cells, recurrence
from tsrnn.layers import (
    LEM,
    LRU,
    BlockRecurrentAttention,
    NewtonBlocks,
    NewtonGRU,
    NewtonLSTM,
    ParaRNN,
    RecurrentNetwork,
    UnequalParaRNN,
)


def _oscillator(state, inputs, params):
    y, z = state
    z = torch.sigmoid(inputs[1]) * z + torch.tanh(inputs[0] + params[0] * y)
    return z / (1 + z * z), z


LAYERS = {
    "rnn": lambda width, **kw: ParaRNN(width, 6, 2, 2, **kw),
    "identity": lambda width, **kw: ParaRNN(width, 6, nonlinearity="identity", **kw),
    "gru": lambda width, **kw: ParaRNN(width, 6, cell="gru", **kw),
    "lstm": lambda width, **kw: ParaRNN(width, 6, 3, cell="lstm", **kw),
    "large": lambda width, **kw: ParaRNN(width, 12, 12, **kw),
    "user's": lambda width, **kw: ParaRNN(
        width, 6, cell=Cell("oscillates", n=2, m=2, p=1, step=_oscillator, outputs=1), **kw
    ),
    "lem": lambda width, **kw: LEM(width, 6, 2, block_size=2, **kw),
    "full lem": lambda width, **kw: LEM(width, 10, **kw),
    "lru": lambda width, **kw: LRU(width, 6, 2, **kw),
    "frozen lru": lambda width, **kw: LRU(width, 6, trainable_recurrence=False, **kw),
    "timed lru": lambda width, **kw: LRU(width, 6, 2, constant_input=True, **kw),
    "unequal": lambda width, **kw: UnequalParaRNN(width, 6, (4, 2), 2, **kw),
    "newton-gru": lambda width, **kw: NewtonGRU(width, 6, **kw),
    "newton-lstm": lambda width, **kw: NewtonLSTM(width, 6, block_size=2, **kw),
    "blocks": lambda width, **kw: NewtonBlocks(width, 6, **kw),
    "attention": lambda width, **kw: BlockRecurrentAttention(
        width, 8, 2, n_states=3, window=4, n_heads=2, **kw
    ),
    "joint attention": lambda width, **kw: BlockRecurrentAttention(
        width, 8, 2, n_states=3, window=4, n_heads=2, update="joint", **kw
    ),
}
ENGINES = {  # "auto" of all layers, and each other engine of a layer that it runs
    "sequential": "gru", "scan": "identity", "shooting": "lstm", "newton": "rnn", "dense": "lem",
    "reference": "gru",
}  # fmt: skip
CASES = [(name, "auto") for name in LAYERS] + [(name, engine) for engine, name in ENGINES.items()]
R, B, T = 4, 3, 11


def networks(name, engine="auto", width=2, dtype=torch.float64):
    torch.manual_seed(0)
    make = LAYERS[name]
    return [RecurrentNetwork(make(width, engine=engine), 3).to(dtype) for _ in range(R)]


def in_one_pass(members, x, hx, lengths):
    """Return outputs and states of all members, and a function of their gradients."""
    params, buffers = stack_module_state(members)

    def of_one(params, buffers, x, hx, lengths):
        return functional_call(members[0], (params, buffers), (x, hx, lengths))

    def dim(tensor, axes):
        return 0 if tensor is not None and tensor.ndim > axes else None

    dims = (0, 0 if buffers else None, dim(x, 3), dim(hx, 3), dim(lengths, 1))
    return params, torch.vmap(of_one, in_dims=dims)(params, buffers, x, hx, lengths)


def check(members, x, hx, lengths, rounding):
    params, (outputs, states) = in_one_pass(members, x, hx, lengths)
    weight = torch.randn_like(outputs)
    inputs = [t for t in (x, hx) if t is not None and t.requires_grad]
    total = (outputs * weight).sum() + states.square().sum()
    gradients = torch.autograd.grad(
        total, [*params.values(), *inputs], materialize_grads=True, retain_graph=True
    )
    of_params = dict(zip(params, gradients, strict=False))
    sums = [torch.zeros_like(t) for t in inputs]
    for r, member in enumerate(members):
        u = x if x.ndim == 3 else x[r]
        h = hx if hx is None or hx.ndim == 3 else hx[r]
        steps = lengths if lengths is None or lengths.ndim == 1 else lengths[r]
        y, last = member(u, h, steps)
        torch.testing.assert_close(outputs[r], y, rtol=rounding, atol=rounding)
        torch.testing.assert_close(states[r], last, rtol=rounding, atol=rounding)
        names, leaves = zip(*member.named_parameters(), strict=True)
        loss = (y * weight[r]).sum() + last.square().sum()
        expected = torch.autograd.grad(loss, [*leaves, *inputs], materialize_grads=True)
        for name, g in zip(names, expected, strict=False):
            scale = 1 + float(g.abs().max())
            torch.testing.assert_close(
                of_params[name][r] / scale, g / scale, rtol=rounding, atol=rounding, msg=name
            )
        for total, g in zip(sums, expected[len(leaves) :], strict=True):
            total += g
    for g, total in zip(gradients[len(params) :], sums, strict=True):
        torch.testing.assert_close(g, total, rtol=10 * rounding, atol=10 * rounding)


@pytest.mark.few("dtype1-1e")
@pytest.mark.parametrize(("dtype", "rounding"), [(torch.float32, 2e-5), (torch.float64, 1e-12)])
@pytest.mark.parametrize("lengths", ["whole", "common", "own"])
@pytest.mark.parametrize(("name", "engine"), CASES, ids=lambda value: str(value))
def test_is_a_loop_over_networks(name, engine, lengths, dtype, rounding):
    members = networks(name, engine, dtype=dtype)
    generator = torch.Generator().manual_seed(1)
    steps = {
        "whole": None,
        "common": torch.tensor([T, 5, 0]),
        "own": torch.randint(0, T + 1, (R, B), generator=generator),
    }[lengths]
    x = torch.randn(R, B, T, 2, dtype=dtype, generator=generator)
    check(members, x, None, steps, rounding)


STACKED = [name for name in LAYERS if LAYERS[name](2).takes_replicates]


def test_layers_of_small_blocks_take_replicates():
    assert STACKED == [
        "rnn",
        "identity",
        "gru",
        "lstm",
        "user's",
        "lem",
        "unequal",
        "newton-gru",
        "newton-lstm",
    ]
    assert not LAYERS["rnn"](2, engine="newton").takes_replicates
    assert not LAYERS["rnn"](2).to(torch.bfloat16).takes_replicates


@pytest.mark.parametrize("lengths", [False, True], ids=["whole", "lengths"])
@pytest.mark.parametrize("width", [2, 9], ids=["fused", "projected"])
@pytest.mark.parametrize("name", STACKED)
def test_parameters_of_replicates_in_a_stack(name, width, lengths):
    """In a network with parameters of all, sequences of all one below the other."""
    members = [
        RecurrentNetwork(member.rnn, 3, aggregation="ffn", ffn_size=5).double()
        for member in networks(name, width=width)
    ]
    x = torch.randn(R * B, T, width, dtype=torch.float64)
    steps = torch.randint(1, T + 1, (R * B,)) if lengths else None
    expected = []
    for r, member in enumerate(members):
        own = slice(r * B, (r + 1) * B)
        output, last = member(x[own], lengths=None if steps is None else steps[own])
        loss = output.square().sum() + last.sin().sum()
        expected.append((output, last, torch.autograd.grad(loss, tuple(member.parameters()))))
    stacked = copy.deepcopy(members[0])
    parameters = {n: p.detach().requires_grad_() for n, p in stack_module_state(members)[0].items()}
    for path, tensor in parameters.items():
        owner, _, of_owner = path.rpartition(".")
        stacked.get_submodule(owner)._parameters[of_owner] = tensor
    output, last = stacked(x, lengths=steps)
    loss = output.square().sum() + last.sin().sum()
    gradients = torch.autograd.grad(loss, tuple(parameters.values()))
    outputs, states, of_members = zip(*expected, strict=True)
    torch.testing.assert_close(output, torch.cat(outputs))
    torch.testing.assert_close(last, torch.cat(states, 1))
    for gradient, of_each in zip(gradients, zip(*of_members, strict=True), strict=True):
        torch.testing.assert_close(gradient, torch.stack(of_each), rtol=1e-9, atol=1e-9)


@pytest.mark.few("lengths")
@pytest.mark.parametrize("lengths", [None, torch.tensor([T, 5, 0])], ids=["whole", "lengths"])
@pytest.mark.parametrize("width", [2, 9], ids=["fused", "projected"])
@pytest.mark.parametrize("name", LAYERS)
def test_arguments_that_replicates_share(name, width, lengths):
    members = networks(name, width=width)
    x = torch.randn(B, T, width, dtype=torch.float64, requires_grad=True)
    start = members[0].initial_state(B)
    if "attention" not in name:  # whose state begins with zeros or one that it has returned
        start = torch.rand_like(start).requires_grad_()
    check(members, x, start, lengths, 1e-12)


@pytest.mark.parametrize("engine", ["sequential", "newton"])
def test_replicates_of_replicates(engine):
    u = torch.randn(2, 3, B, T, 2, 4, dtype=torch.float64)
    w = torch.randn(2, 3, 4, 4, dtype=torch.float64)

    def states(u, w):
        return recurrence(cells.para_rnn(2), u, w, engine=engine)[0]

    nested = torch.vmap(torch.vmap(states))(u, w)
    loop = [states(u[i, j], w[i, j]) for i in range(2) for j in range(3)]
    torch.testing.assert_close(nested.flatten(0, 1), torch.stack(loop))
    shared = torch.vmap(lambda u: torch.vmap(states)(u, w[0]))(u)
    loop = [states(u[i, j], w[0, j]) for i in range(2) for j in range(3)]
    torch.testing.assert_close(shared.flatten(0, 1), torch.stack(loop))


def test_kernels_in_time_order_give_the_numbers_of_one_bit_by_bit():
    u, w = (torch.randn(R, *shape, requires_grad=True) for shape in ((B, T, 2, 5), (4, 5)))

    def run(u, w):
        return recurrence(cells.para_rnn(2), u, w)[0]

    states = torch.vmap(run)(u, w)
    gradients = torch.autograd.grad(states.square().sum(), (u, w))
    for r in range(R):
        of_one = run(u[r], w[r])
        assert torch.equal(states[r], of_one)
        expected = torch.autograd.grad(of_one.square().sum(), (u, w))
        assert all(torch.equal(a[r], b[r]) for a, b in zip(gradients, expected, strict=True))


@pytest.mark.parametrize("engine", ["sequential", "newton"])
def test_lengths_are_checked_in_all_replicates(engine):
    members = networks("rnn", engine)
    lengths = torch.full((R, B), T)
    lengths[2, 1] = T + 1
    with pytest.raises(ValueError, match=f"between 0 and T={T}; got {T + 1} for sequence 7"):
        in_one_pass(members, torch.zeros(R, B, T, 2, dtype=torch.float64), None, lengths)


def test_second_derivatives_are_refused():
    u = torch.randn(R, B, T, 2, 4, requires_grad=True)
    w = torch.randn(R, 4, 4, requires_grad=True)
    states = torch.vmap(lambda u, w: recurrence(cells.para_rnn(2), u, w)[0])(u, w)
    with pytest.raises(NotImplementedError, match="replicate by replicate"):
        torch.autograd.grad(states.square().sum(), w, create_graph=True)
