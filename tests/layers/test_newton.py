"""NewtonGRU, NewtonLSTM and their block against loops written from Danieli et al. (2025)."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import linear, silu

from tests.layers.test_recurrent import normal
from tsrnn.layers import NewtonBlocks, NewtonGRU, NewtonLSTM

PLAIN = (NewtonGRU, NewtonLSTM)
CELLS = ("newton-gru", "newton-lstm")
EVERY = {
    "gru": lambda **kwargs: NewtonGRU(2, 6, 2, **kwargs),
    "lstm": lambda **kwargs: NewtonLSTM(2, 6, 2, **kwargs),
    "lstm in blocks": lambda **kwargs: NewtonLSTM(2, 6, 2, block_size=2, **kwargs),
    "gru block": lambda **kwargs: NewtonBlocks(2, 6, 2, cell="newton-gru", n_heads=3, **kwargs),
    "lstm block": lambda **kwargs: NewtonBlocks(
        2, 6, 2, cell="newton-lstm", expansion=2, n_heads=2, conv_size=3, mlp_size=5, **kwargs
    ),
    "no convolution": lambda **kwargs: NewtonBlocks(2, 4, 1, conv_size=1, **kwargs),
}


def gru_step(h, u, a):
    """Equation (7a) with (9) on projected inputs u = (u_z, u_r, u_c), each (B, d)."""
    z, r = torch.sigmoid(a[0] * h + u[0]), torch.sigmoid(a[1] * h + u[1])
    c = torch.tanh(a[2] * (h * r) + u[2])
    return (1 - z) * h + z * c


def lstm_step(h, c, u, matrices, peepholes):
    """Equation (7b) on projected inputs u = (u_f, u_z, u_o) and full matrices A_f, A_z, A_o."""
    (A_f, A_z, A_o), (C_f, C_o) = matrices, peepholes
    f = torch.sigmoid(h @ A_f.T + u[0] + C_f * c)
    z = torch.tanh(h @ A_z.T + u[1])
    c = f * c + (1 - f) * z
    o = torch.sigmoid(h @ A_o.T + u[2] + C_o * c)
    return o * torch.tanh(c), c


def dense_parameters(params, block_size):
    """Full matrices (3, d, d) and peepholes (2, d) of the parameters (p, K) of an LSTM."""
    n = params.shape[1]
    blocks = params[: 3 * block_size**2].view(3, block_size, block_size, n)
    full = torch.einsum("vijk,kl->vikjl", blocks, torch.eye(n, dtype=params.dtype))
    return full.flatten(3).flatten(1, 2), params[3 * block_size**2 :].view(2, -1)


def scan(kind, u, params, state, block_size=1):
    """Recurrence over projected inputs (B, T, 3, d) in a loop: outputs (B, T, d), last state."""
    outputs = []
    for t in range(u.shape[1]):
        step = u[:, t].unbind(1)
        if kind == "gru":
            h = state = gru_step(state, step, params.view(3, -1))
        else:
            h, c = lstm_step(*state.chunk(2, -1), step, *dense_parameters(params, block_size))
            state = torch.cat([h, c], -1)
        outputs.append(h)
    return torch.stack(outputs, 1), state


def stack_loop(rnn, x, hx):
    """What NewtonGRU and NewtonLSTM should compute."""
    kind, last = "gru" if isinstance(rnn, NewtonGRU) else "lstm", []
    for layer in range(rnn.num_layers):
        weight, params, bias = rnn.weights(layer)
        u = linear(x, weight, bias).unflatten(-1, (3, -1))
        x, state = scan(kind, u, params.flatten(0, -2), hx[layer], rnn.block_size)
        last.append(state)
    return x, torch.stack(last)


def norm(x, scale):
    return x / (x.square().mean(-1, keepdim=True) + 1e-5).sqrt() * scale


def block_loop(blocks, x, hx):
    """What NewtonBlocks should compute: the equations of its docstring, step by step."""
    kind = "gru" if blocks.cell.n == 1 else "lstm"
    stream, last = linear(x, blocks.input.weight, blocks.input.bias), []
    for layer in range(blocks.num_layers):
        mixer, mlp = blocks.mixers[layer], blocks.mlps[layer]
        units, taps = blocks.units, mixer.conv.weight.shape[-1]
        start = hx[layer][:, blocks.hidden_size :][:, : blocks.cell.n * units]
        past = hx[layer][:, blocks.hidden_size + blocks.cell.n * units :]
        u, gate = linear(norm(stream, mixer.before.weight), mixer.inwards.weight).chunk(2, -1)
        seen = [*past.unflatten(-1, (taps - 1, units)).unbind(1)] if taps > 1 else []
        seen += [*u.unbind(1)]
        kernel = mixer.conv.weight[:, 0]  # its last tap belongs to the present
        v = silu(
            torch.stack(
                [
                    mixer.conv.bias
                    + sum(kernel[:, taps - 1 - j] * seen[t + taps - 1 - j] for j in range(taps))
                    for t in range(x.shape[1])
                ],
                1,
            )
        )
        size = mixer.weight.shape[-1]
        parts = [
            torch.cat(
                [linear(head, w) for head, w in zip(v.split(size, -1), heads, strict=True)], -1
            )
            for heads in mixer.weight
        ]
        h, state = scan(kind, torch.stack(parts, 2) + mixer.bias, mixer.params, start)
        y = (h + mixer.skip * v) * silu(gate)
        stream = stream + linear(norm(y, mixer.gated.weight), mixer.outwards.weight)
        a, b = linear(norm(stream, mlp.before.weight), mlp.inwards.weight).chunk(2, -1)
        stream = stream + linear(silu(a) * b, mlp.outwards.weight)
        if layer == blocks.num_layers - 1:
            stream = norm(stream, blocks.norm.weight)
        kept = torch.cat(seen[len(seen) - taps + 1 :], -1) if taps > 1 else past
        last.append(torch.cat([stream[:, -1], state, kept], -1))
    return stream, torch.stack(last)


def scrambled(module):
    """The module with parameters none of which is zero or one."""
    generator = torch.Generator().manual_seed(1)
    for parameter in module.parameters():
        parameter.data.add_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
    return module


def check_against_loop(module, batch, steps, assert_close):
    scrambled(module)
    loop = block_loop if isinstance(module, NewtonBlocks) else stack_loop
    results = []
    for run in (module, lambda x, hx: loop(module, x, hx)):
        x = normal(batch, steps, module.input_size).requires_grad_()
        hx = normal(module.num_layers, batch, module.state_size, seed=1).requires_grad_()
        module.zero_grad()
        output, h_n = run(x, hx)
        weighted = (output * normal(*output.shape, seed=2)).sum()
        (weighted + (h_n * normal(*h_n.shape, seed=3)).sum()).backward()
        gradients = [x.grad, hx.grad, *(p.grad for p in module.parameters())]
        results.append([output.detach(), h_n.detach(), *gradients])
    for actual, expected in zip(*results, strict=True):
        assert_close(actual, expected, 4096)


@pytest.mark.parametrize("name", EVERY)
def test_values_and_all_gradients_are_those_of_a_loop(name, assert_close):
    torch.manual_seed(0)
    check_against_loop(EVERY[name](dtype=torch.float64), 3, 7, assert_close)


@settings(deadline=None, max_examples=8)
@given(
    cell=st.sampled_from(CELLS),
    n_heads=st.integers(1, 3),
    expansion=st.integers(1, 2),
    conv_size=st.integers(1, 5),
    layers=st.integers(1, 3),
    steps=st.integers(1, 6),
)
def test_blocks_of_any_shape_are_those_of_a_loop(
    cell, n_heads, expansion, conv_size, layers, steps, assert_close
):
    blocks = NewtonBlocks(
        2, 6, layers, cell=cell, n_heads=n_heads, expansion=expansion, conv_size=conv_size,
        dtype=torch.float64,
    )  # fmt: skip
    check_against_loop(blocks, 2, steps, assert_close)


@pytest.mark.parametrize("kind", PLAIN)
def test_without_bias(kind, assert_close):
    rnn = kind(2, 4, bias=False, dtype=torch.float64)
    assert [name for name, _ in rnn.named_parameters()] == ["weight_ih_l0", "weight_hh_l0"]
    check_against_loop(rnn, 2, 5, assert_close)


@pytest.mark.parametrize("kind", PLAIN)
def test_the_draw_of_the_paper(kind):
    rnn = kind(48, 400, 2, dtype=torch.float64)
    for layer, width in enumerate((48, 400)):
        weight, params, bias = rnn.weights(layer)
        assert weight.abs().max() <= math.sqrt(3 / width)
        assert abs(weight.std() * math.sqrt(width) - 1) < 0.02
        assert abs(params.std() * math.sqrt(400) - 1) < 0.1
        assert not bias.any()
    assert rnn.recurrent_parameters() == []


@pytest.mark.parametrize("kind", PLAIN)
def test_the_stable_draw_is_of_contractions(kind):
    rnn = kind(2, 200, init="stable", dtype=torch.float64)
    (matrices,) = rnn.recurrent_blocks()
    for matrix in matrices.values():
        assert matrix.shape == (200, 1, 1)
        assert matrix.abs().max() < 1
        assert matrix.abs().max() > 0.9
    assert len(rnn.recurrent_parameters()) == 1


def test_the_draw_of_a_block():
    blocks = NewtonBlocks(64, 64, 3, n_heads=4, dtype=torch.float64)
    for layer, (mixer, mlp) in enumerate(zip(blocks.mixers, blocks.mlps, strict=True), 1):
        assert mixer.weight.abs().max() <= math.sqrt(3 / 16)
        assert abs(mixer.params.std() * 8 - 1) < 0.25
        for part in (mixer, mlp):
            for linear_, scale in ((part.inwards, 1.0), (part.outwards, (2 * layer) ** -0.5)):
                scaled = linear_.weight * math.sqrt(linear_.in_features) / scale
                assert abs(scaled.std() - 0.987) < 0.03  # of a normal cut at three deviations
                assert scaled.abs().max() <= 3


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize(
    ("millions", "layers", "heads", "width", "mlp"),
    [
        (406, 24, 4, 1024, 2816),
        (1420, 24, 4, 2048, 5632),
        (2900, 32, 2, 2560, 6912),
        (6760, 32, 4, 4096, 11008),
    ],
)
def test_parameters_are_as_many_as_in_table_4(cell, millions, layers, heads, width, mlp):
    tokens = 50_432  # of the tokenizer of DCLM
    blocks = NewtonBlocks(
        tokens, width, layers, cell=cell, n_heads=heads, mlp_size=mlp, device="meta"
    )
    count = sum(p.numel() for p in blocks.parameters()) + tokens * width  # and the output
    assert round(count / 1e6, 3 - len(str(millions))) == millions


@pytest.mark.parametrize("cell", CELLS)
def test_the_matrices_of_a_block_can_be_read(cell):
    blocks = NewtonBlocks(2, 6, 3, cell=cell)
    assert blocks.matrix_names == tuple(
        f"A_{gate}" for gate in ("zrc" if cell == "newton-gru" else "fzo")
    )
    for layer, matrices in enumerate(blocks.recurrent_blocks()):
        assert tuple(matrices) == blocks.matrix_names
        for i, matrix in enumerate(matrices.values()):
            assert torch.equal(matrix[:, 0, 0], blocks.mixers[layer].params[i])


def test_one_gru_is_the_diagonal_gru_of_torch(assert_close):
    """torch gates the old state with its z and applies r after the product: equal if diagonal."""
    rnn = scrambled(NewtonGRU(3, 4, dtype=torch.float64))
    twin = torch.nn.GRU(3, 4, batch_first=True, dtype=torch.float64)
    weight, params, bias = (w.detach() for w in rnn.weights(0))
    (B_z, B_r, B_c), (a_z, a_r, a_c), (b_z, b_r, b_c) = (
        weight.chunk(3), params.view(3, 4), bias.chunk(3)
    )  # fmt: skip
    twin.weight_ih_l0.data.copy_(torch.cat([B_r, -B_z, B_c]))
    twin.weight_hh_l0.data.copy_(torch.cat([a_r.diag(), -a_z.diag(), a_c.diag()]))
    twin.bias_ih_l0.data.copy_(torch.cat([b_r, -b_z, b_c]))
    twin.bias_hh_l0.data.zero_()
    x = normal(2, 9, 3)
    assert_close(rnn(x)[0].detach(), twin(x)[0].detach(), 256)


def test_sizes_are_shown():
    assert repr(NewtonGRU(2, 6)) == "NewtonGRU(2, 6, num_layers=1)"
    assert repr(NewtonLSTM(2, 6, 2)) == "NewtonLSTM(2, 6, num_layers=2, block_size=1)"
    assert repr(NewtonBlocks(2, 6)).startswith("NewtonBlocks(\n  2, 6, cell='para_gru_1'")


@pytest.mark.parametrize(
    ("kind", "arguments", "message"),
    [
        (NewtonGRU, {"init": "zero"}, r"init must be one of \('paper', 'stable'\); got 'zero'"),
        (
            NewtonBlocks,
            {"cell": "rnn"},
            r"cell of NewtonBlocks must be one of \('newton-gru', 'newton-lstm'\); got 'rnn'",
        ),
        (NewtonBlocks, {"n_heads": 3}, "n_heads must divide the width .* = 4; got n_heads=3"),
        (NewtonBlocks, {"conv_size": 0}, "conv_size must be a positive integer; got 0"),
        (NewtonBlocks, {"mlp_size": 1.5}, r"mlp_size must be a positive integer; got 1\.5"),
    ],
)
def test_errors_of_the_constructor(kind, arguments, message):
    with pytest.raises(ValueError, match=message):
        kind(**({"input_size": 2, "hidden_size": 4} | arguments))


LIMITED = {
    "gru": lambda **kwargs: NewtonGRU(2, 6, 2, **kwargs),
    "lstm": lambda **kwargs: NewtonLSTM(2, 6, 2, **kwargs),
    "gru block": lambda **kwargs: NewtonBlocks(2, 6, 2, n_heads=3, **kwargs),
    "lstm block": lambda **kwargs: NewtonBlocks(2, 6, 1, cell="newton-lstm", **kwargs),
}


def recurrent_leaves(module):
    """Recurrent parameters as an optimiser sees them."""
    if isinstance(module, NewtonBlocks):
        return [mixer.params for mixer in module.mixers]
    return [module.get_parameter(f"weight_hh_l{layer}") for layer in range(module.num_layers)]


def limited_and_clipped(name, limit):
    """A module with a limit, and the same one without, its parameters clipped by hand."""
    module, twin = (
        LIMITED[name](dtype=torch.float64, max_recurrent=limit),
        LIMITED[name](dtype=torch.float64),
    )
    for i, leaf in enumerate(recurrent_leaves(module)):
        leaf.data.copy_(2 * limit * normal(*leaf.shape, seed=i).clamp(-3, 3))
    twin.load_state_dict(module.state_dict())
    for leaf in recurrent_leaves(twin):
        leaf.data.clamp_(-limit, limit)
    return module, twin


@pytest.mark.parametrize("limit", [0.5, 0.9])
@pytest.mark.parametrize("name", LIMITED)
def test_recurrent_parameters_are_clipped(name, limit):
    module, twin = limited_and_clipped(name, limit)
    x = normal(3, 15, 2)
    output, last = module(x)
    expected, expected_last = twin(x)
    assert torch.equal(output, expected)
    assert torch.equal(last, expected_last)
    with torch.no_grad():
        assert torch.equal(module(x)[0], twin(x)[0])
    for matrices, theirs in zip(module.recurrent_blocks(), twin.recurrent_blocks(), strict=True):
        assert all(torch.equal(matrices[name], theirs[name]) for name in theirs)
        assert max(matrix.abs().max() for matrix in matrices.values()) == limit
    unlimited = LIMITED[name](dtype=torch.float64)
    unlimited.load_state_dict(module.state_dict())  # the limit is no weight
    assert not torch.equal(unlimited(x)[0], output)


@pytest.mark.parametrize("name", LIMITED)
def test_gradients_stop_where_a_step_would_leave_the_bounds(name):
    limit, x = 0.5, normal(3, 15, 2)
    module, twin = limited_and_clipped(name, limit)
    gradients = [
        torch.autograd.grad(each(x)[0].square().sum(), list(each.parameters()))
        for each in (module, twin)
    ]
    recurrent = {id(leaf) for leaf in recurrent_leaves(module)}
    stopped = 0
    for leaf, ours, full in zip(module.parameters(), *gradients, strict=True):
        leaves = (leaf.abs() >= limit) & (leaf * full < 0) & (id(leaf) in recurrent)
        torch.testing.assert_close(ours, full.masked_fill(leaves, 0))
        stopped += int(leaves.sum())
    assert stopped > 0


@pytest.mark.parametrize("name", ["gru", "lstm block"])
def test_training_keeps_to_the_bounds_and_comes_back(name):
    """Gradient steps with a limit are projected ones: the first of each leaves by one at most."""
    torch.manual_seed(0)
    module = LIMITED[name](dtype=torch.float64, max_recurrent=0.3)
    optimiser = torch.optim.SGD(recurrent_leaves(module), lr=0.02)
    x, weights, paths = normal(4, 30, 2), normal(4, 30, 6, seed=1), []
    for sign in [1] * 40 + [-1] * 40:  # pushed out, then in
        loss = sign * (weights * module(x)[0]).sum()
        optimiser.zero_grad()
        loss.backward()
        steps = [0.02 * leaf.grad.abs().max() for leaf in recurrent_leaves(module)]
        optimiser.step()
        for leaf, step in zip(recurrent_leaves(module), steps, strict=True):
            assert leaf.abs().max() <= max(0.3 + step, paths[-1][0] if paths else 3.0)
        blocks = module.recurrent_blocks()
        assert max(m.abs().max() for layer in blocks for m in layer.values()) <= 0.3
        first = recurrent_leaves(module)[0]
        paths.append((max(leaf.abs().max() for leaf in recurrent_leaves(module)), first.clone()))
    at_bound = paths[39][1].abs() >= 0.3
    assert at_bound.any()
    assert (paths[-1][1].abs() < 0.3)[at_bound].any()


def test_limits_run_under_vmap_and_have_second_derivatives():
    module, _ = limited_and_clipped("gru", 0.5)
    x = normal(2, 9, 2)

    def outputs(weights):
        return torch.func.functional_call(module, weights, (x,))[0]

    sets = {name: torch.stack([w, 0.7 * w]).detach() for name, w in module.named_parameters()}
    leaves = {name: w.clone().requires_grad_() for name, w in sets.items()}
    both = torch.vmap(outputs)(leaves)
    each = torch.stack([outputs({name: w[i] for name, w in leaves.items()}) for i in range(2)])
    torch.testing.assert_close(both, each)
    for ours, expected in zip(
        torch.autograd.grad(both.square().sum(), list(leaves.values())),
        torch.autograd.grad(each.square().sum(), list(leaves.values())),
        strict=True,
    ):
        torch.testing.assert_close(ours, expected)
    (leaf,) = recurrent_leaves(module)[:1]
    (slope,) = torch.autograd.grad(module(x)[0].square().sum(), leaf, create_graph=True)
    assert torch.autograd.grad(slope.square().sum(), leaf)[0].isfinite().all()


@pytest.mark.parametrize("value", [0, -1.0, math.nan, math.inf, "0.5", True, [0.5]])
@pytest.mark.parametrize("kind", [NewtonGRU, NewtonLSTM, NewtonBlocks])
def test_limits_that_are_none(kind, value):
    with pytest.raises(ValueError, match="max_recurrent must be a positive number or None; got"):
        kind(2, 4, max_recurrent=value)


def test_blocks_of_an_lstm_have_no_diagonals_to_bound():
    with pytest.raises(ValueError, match="max_recurrent=0.5 with block_size=2. Leave it out"):
        NewtonLSTM(2, 4, block_size=2, max_recurrent=0.5)


@pytest.mark.parametrize("limit", [0.1, 0.5, 0.9])
def test_a_limit_bounds_the_jacobian_of_a_gru(limit):
    """|J - (1 - z)| <= m / 2 + z m (1 + m / 4) where states lie in (-1, 1), from equation (8a)."""
    rnn = NewtonGRU(2, 64, max_recurrent=limit, dtype=torch.float64)
    rnn.weight_hh_l0.data.copy_(3 * normal(3, 1, 1, 64))
    weight, params, bias = (w.detach() for w in rnn.weights(0))
    h = normal(200, 64, seed=1).tanh().requires_grad_()
    u = linear(3 * normal(200, 2, seed=2), weight, bias).unflatten(-1, (3, -1)).unbind(1)
    new = gru_step(h, u, params.view(3, -1))
    (jacobian,) = torch.autograd.grad(new.sum(), h)
    z = torch.sigmoid(params.view(3, -1)[0] * h + u[0])
    bound = limit / 2 + z * limit * (1 + limit / 4)
    assert ((jacobian - (1 - z)).abs() <= bound).all()
    assert ((jacobian - (1 - z)).abs() > 0.5 * bound).any()


@pytest.mark.parametrize("init", ["paper", "stable"])
@pytest.mark.parametrize("layer", [NewtonGRU, NewtonLSTM])
def test_parameters_are_drawn_within_their_bounds(layer, init):
    drawn = layer(3, 16, init=init, max_recurrent=0.1)
    assert drawn.weight_hh_l0.abs().max() <= 0.1
    assert (drawn.weight_hh_l0.abs() == 0.1).any()


def test_blocks_draw_parameters_within_their_bounds():
    blocks = NewtonBlocks(3, 16, max_recurrent=0.1)
    assert all(mixer.params.abs().max() <= 0.1 for mixer in blocks.mixers)
