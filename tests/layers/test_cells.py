"""Layers of gated cells and of a user's own: torch's layers as oracles, states, parameters."""

import pytest
import torch

from tests.layers.test_recurrent import normal
from tsrnn.kernels import Cell, cells
from tsrnn.layers import ParaRNN, RecurrentNetwork


def _leaky(state, inputs, params):
    y, z = state
    u, v = inputs
    z = torch.sigmoid(v) * z + torch.tanh(u + params[0] * y)
    return y + params[1] * z, z


def _min_gru(state, inputs, params):
    z = torch.sigmoid(inputs[0])
    return ((1 - z) * state[0] + z * inputs[1],)


LEAKY = Cell("leaky", n=2, m=2, p=2, step=_leaky, outputs=1)
MIN_GRU = Cell("min_gru", n=1, m=2, p=0, step=_min_gru)
EVERY = ["rnn", "gru", "lstm", LEAKY, MIN_GRU, cells.newton_lstm(2)]


def name_of(value):
    """Id of a parameter."""
    return value.name if isinstance(value, Cell) else None


def layer(*args, **kwargs):
    torch.manual_seed(0)
    return ParaRNN(*args, dtype=torch.float64, **kwargs)


def block_diagonal(matrix):
    """Matrix of all features from that of every block, (d, d, K); feature i K + k is state i."""
    size, _, count = matrix.shape
    full = matrix.new_zeros(size * count, size * count)
    for k in range(count):
        full[k::count, k::count] = matrix[:, :, k]
    return full


def of_blocks(full, size):
    """Inverse of `block_diagonal`."""
    count = len(full) // size
    return torch.stack([full[k::count, k::count] for k in range(count)], -1)


def gate_major(rnn, order, signs):
    """Parameters of torch's layer from those of a gated one, gate by gate in torch's order."""
    for i in range(rnn.num_layers):
        matrices = getattr(rnn, f"weight_hh_l{i}").detach()
        blocks = [s * block_diagonal(matrices[g]) for g, s in zip(order, signs, strict=True)]
        rows = {
            name: getattr(rnn, f"{name}_l{i}").detach().unflatten(0, (len(order), -1))
            for name in ("weight_ih", "bias")
        }
        gates = {
            name: torch.cat([s * part[g] for g, s in zip(order, signs, strict=True)])
            for name, part in rows.items()
        }
        yield {
            f"weight_ih_l{i}": gates["weight_ih"],
            f"weight_hh_l{i}": torch.cat(blocks),
            f"bias_ih_l{i}": gates["bias"],
            f"bias_hh_l{i}": torch.zeros_like(gates["bias"]),
        }


def check_gradients(rnn, twin, order, signs, assert_close):
    """Gradients of torch's layer, brought into the shapes and the order of ours."""
    back = [order.index(g) for g in range(len(order))]
    for i in range(rnn.num_layers):
        for ours, theirs in (("weight_ih", "weight_ih"), ("bias", "bias_ih")):
            parts = getattr(twin, f"{theirs}_l{i}").grad.chunk(len(order))
            wanted = torch.cat([signs[g] * parts[g] for g in back])
            assert_close(getattr(rnn, f"{ours}_l{i}").grad, wanted, 1024)
        full = getattr(twin, f"weight_hh_l{i}").grad.chunk(len(order))
        wanted = torch.stack([signs[g] * of_blocks(full[g], rnn.block_size) for g in back])
        assert_close(getattr(rnn, f"weight_hh_l{i}").grad, wanted, 1024)


@pytest.mark.parametrize("num_layers", [1, 2])
@pytest.mark.parametrize(("size", "block_size"), [(4, 1), (6, 2), (6, 3), (9, 9)])
def test_lstm_is_that_of_torch_with_block_diagonal_matrices(
    size, block_size, num_layers, assert_close
):
    order, signs = [0, 1, 2, 3], [1, 1, 1, 1]
    rnn = layer(3, size, block_size, num_layers, cell="lstm", init="uniform")
    twin = torch.nn.LSTM(3, size, num_layers, batch_first=True, dtype=torch.float64)
    for values in gate_major(rnn, order, signs):
        twin.load_state_dict(values, strict=False)
    x, hx = normal(3, 7, 3), normal(num_layers, 3, 2 * size, seed=1)
    output, h_n = rnn(x, hx)
    expected, (h, c) = twin(x, tuple(part.contiguous() for part in hx.chunk(2, -1)))
    assert_close(output.detach(), expected.detach(), 256)
    assert_close(h_n.detach(), torch.cat([h, c], -1).detach(), 256)
    g_output, g_last = normal(*output.shape, seed=5), normal(*h_n.shape, seed=6)
    ((output * g_output).sum() + (h_n * g_last).sum()).backward()
    ((expected * g_output).sum() + (torch.cat([h, c], -1) * g_last).sum()).backward()
    check_gradients(rnn, twin, order, signs, assert_close)


@pytest.mark.parametrize(("size", "block_size"), [(4, 1), (6, 2)])
def test_gru_that_resets_after_the_product_is_that_of_torch(size, block_size, assert_close):
    # torch's gates are r, z, n; its z gates the old state, ours the candidate: 1 - sigma(a) is
    # sigma(-a).
    order, signs = [1, 0, 2], [1, -1, 1]
    cell = cells.para_gru(block_size, reset_after=True)
    rnn = layer(3, size, num_layers=2, cell=cell, init="uniform")
    twin = torch.nn.GRU(3, size, 2, batch_first=True, dtype=torch.float64)
    for values in gate_major(rnn, order, signs):
        twin.load_state_dict(values, strict=False)
    x, hx = normal(3, 7, 3), normal(2, 3, size, seed=1)
    output, h_n = rnn(x, hx)
    expected, last = twin(x, hx)
    assert_close(output.detach(), expected.detach(), 256)
    assert_close(h_n.detach(), last.detach(), 256)
    g_output = normal(*output.shape, seed=5)
    (output * g_output).sum().backward()
    (expected * g_output).sum().backward()
    check_gradients(rnn, twin, order, signs, assert_close)


@pytest.mark.parametrize("block_size", [1, 2, 12])
def test_gru_is_the_equations_of_the_paper(block_size, assert_close):
    rnn = layer(3, 12, block_size, cell="gru")
    x, h = normal(2, 6, 3), normal(2, 12, seed=1)
    output, _ = rnn(x, h[None])
    a_z, a_r, a_c = (block_diagonal(m) for m in rnn.weight_hh_l0.detach())
    projected = torch.nn.functional.linear(x, rnn.weight_ih_l0, rnn.bias_l0).detach()
    for t in range(6):
        u_z, u_r, u_c = projected[:, t].chunk(3, -1)
        z, r = torch.sigmoid(h @ a_z.T + u_z), torch.sigmoid(h @ a_r.T + u_r)
        h = (1 - z) * h + z * torch.tanh((r * h) @ a_c.T + u_c)
        assert_close(output[:, t].detach(), h, 256)


def test_a_cell_of_ones_own_is_its_step(assert_close):
    rnn = layer(3, 4, num_layers=2, cell=LEAKY)
    x, hx = normal(2, 5, 3), normal(2, 2, 8, seed=1)
    output, h_n = rnn(x, hx)
    below = x
    for i in range(2):
        state, outputs = hx[i].chunk(2, -1), []
        weight_ih, bias = getattr(rnn, f"weight_ih_l{i}"), getattr(rnn, f"bias_l{i}")
        projected = torch.nn.functional.linear(below, weight_ih, bias)
        for t in range(5):
            state = _leaky(state, projected[:, t].chunk(2, -1), getattr(rnn, f"weight_hh_l{i}"))
            outputs.append(state[0])
        assert_close(h_n[i].detach(), torch.cat(state, -1).detach())
        below = torch.stack(outputs, 1)
    assert_close(output.detach(), below.detach())


@pytest.mark.parametrize("cell", EVERY, ids=name_of)
def test_sizes(cell):
    rnn = layer(3, 12, num_layers=2, cell=cell)
    assert rnn.n_blocks == 12 // rnn.cell.n_outputs
    assert rnn.state_size == rnn.cell.n * rnn.n_blocks
    two_fields = ("lstm", "leaky", "newton_lstm_2")
    assert rnn.state_size == (24 if (name_of(cell) or cell) in two_fields else 12)


@pytest.mark.parametrize("block_size", [1, 2, 12])
def test_names_and_cells_are_the_same(block_size):
    for name, cell in (("gru", cells.para_gru), ("lstm", cells.para_lstm), ("rnn", cells.para_rnn)):
        named, given = (
            layer(3, 12, block_size, cell=name), layer(3, 12, cell=cell(block_size))
        )  # fmt: skip
        for ours, theirs in zip(named.parameters(), given.parameters(), strict=True):
            assert torch.equal(ours, theirs)
        assert torch.equal(named(normal(2, 5, 3))[0], given(normal(2, 5, 3))[0])


@pytest.mark.parametrize("cell", ["gru", "lstm", cells.newton_lstm(2)], ids=name_of)
def test_every_matrix_starts_as_a_contraction(cell):
    rnn = layer(3, 40, 2, num_layers=2, cell=cell)
    for matrices in rnn.recurrent_blocks():
        for blocks in matrices.values():
            squared = blocks.square().sum((1, 2)) / 2  # r^2 as ||r Q||_F^2 = d_s r^2
            identity = torch.eye(2, dtype=torch.float64)
            torch.testing.assert_close(blocks.mT @ blocks, squared[:, None, None] * identity)
            assert 0 < squared.min() < squared.max() <= 1


def test_forget_gates_start_open_and_other_biases_at_zero():
    assert layer(3, 12, 2, cell="lstm").bias_l0.tolist() == [0.0] * 12 + [1.0] * 12 + [0.0] * 24
    assert layer(3, 4, cell=cells.newton_lstm(1)).bias_l0.tolist() == [1.0] * 4 + [0.0] * 8
    for cell in ("gru", LEAKY):
        assert not layer(3, 12, cell=cell).bias_l0.any()


def test_parameters_of_an_own_cell_start_small():
    rnn = layer(3, 3000, cell=LEAKY)
    assert rnn.weight_hh_l0.shape == (2, 3000)
    assert 0.99 * 2**-0.5 < rnn.weight_hh_l0.abs().max() < 2**-0.5
    assert 0.99 * 3**-0.5 < rnn.weight_ih_l0.abs().max() < 3**-0.5
    assert layer(3, 4, cell=MIN_GRU).weight_hh_l0.shape == (0, 4)


@pytest.mark.parametrize("cell", EVERY, ids=name_of)
def test_the_uniform_start(cell):
    rnn = layer(3, 400, num_layers=2, cell=cell, init="uniform")
    for name, parameter in rnn.named_parameters():
        bound = rnn.block_size**-0.5 if name.startswith("weight_hh") else 0.05
        assert (parameter.abs() <= bound).all(), name
        assert not parameter.numel() or parameter.abs().max() > 0.9 * bound, name


@pytest.mark.parametrize(
    ("cell", "names"),
    [
        ("gru", ["A_z", "A_r", "A_c"]),
        ("lstm", ["W_i", "W_f", "W_g", "W_o"]),
        (cells.newton_lstm(2), ["A_f", "A_z", "A_o"]),
    ],
    ids=name_of,
)
def test_recurrent_matrices_have_names(cell, names):
    rnn = layer(3, 6, num_layers=2, cell=cell)
    assert list(rnn.matrix_names) == names
    weight = rnn.weight_hh_l1.detach().flatten(0, -2)[: len(names) * 4].view(-1, 2, 2, 3)
    for i, (name, blocks) in enumerate(rnn.recurrent_blocks()[1].items()):
        assert name == names[i]
        for k in range(3):
            assert torch.equal(blocks[k], weight[i, :, :, k])


def test_a_cell_without_matrices_has_none_to_read():
    assert layer(3, 4, cell=LEAKY).matrix_names == ()
    with pytest.raises(ValueError, match="cell 'leaky' has no recurrent matrices"):
        layer(3, 4, cell=LEAKY).recurrent_blocks()


@pytest.mark.parametrize("cell", ["gru", "lstm", LEAKY], ids=name_of)
def test_a_network_around_a_cell(cell, assert_close):
    torch.manual_seed(0)
    net, x = RecurrentNetwork(ParaRNN(3, 8, num_layers=2, cell=cell), 4).double(), normal(2, 6, 3)
    output, h_n = net(x)
    assert h_n.shape == (2, 2, net.rnn.state_size)
    states, _ = net.rnn(x)
    parts = net.contributions(states)
    assert parts.shape == (2, 6, net.rnn.n_blocks, 4)
    assert_close((parts.sum(-2) + net.output.bias).detach(), output.detach())
    first, middle = net(x[:, :4])
    second, last = net(x[:, 4:], middle)
    assert_close(torch.cat([first, second], 1).detach(), output.detach())
    assert_close(last.detach(), h_n.detach())


@pytest.mark.parametrize("cell", ["lstm", LEAKY], ids=name_of)
def test_a_layer_compiles_as_one_graph(cell):
    rnn, x, hx = layer(3, 4, num_layers=2, cell=cell), normal(2, 5, 3), normal(2, 2, 8, seed=1)
    torch._dynamo.reset()
    compiled = torch.compile(rnn, backend="eager", fullgraph=True)
    for ours, expected in zip(compiled(x, hx), rnn(x, hx), strict=True):
        assert torch.equal(ours, expected)
        gradient, wanted = (
            torch.autograd.grad(t.square().sum(), rnn.weight_hh_l0, retain_graph=True)[0]
            for t in (ours, expected)
        )
        assert torch.equal(gradient, wanted)


def test_the_cell_is_shown():
    assert repr(layer(2, 6, 3, cell="gru")) == (
        "ParaRNN(2, 6, block_size=3, num_layers=1, cell='para_gru_3')"
    )
    assert "block_size=1, num_layers=1, cell='leaky')" in repr(layer(2, 6, cell=LEAKY))


SHARED = Cell("common", n=1, m=1, p=0, step=lambda h, u, w: (h[0] + u[0],), shared=True)
CLOCK = Cell("clock", n=1, m=0, p=0, step=lambda h, u, w: (h[0] + 1.0,))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"cell": "GRU"}, r"one of \('rnn', 'gru', 'lstm'\) or a tsrnn.kernels.Cell; got 'GRU'"),
        ({"cell": ["gru"]}, r"got \['gru'\]"),
        ({"cell": cells.para_gru}, "or a tsrnn.kernels.Cell; got <function para_gru"),
        ({"cell": "gru", "nonlinearity": "relu"}, "cell='rnn'.*'relu' with cell='gru'"),
        ({"cell": LEAKY, "nonlinearity": "relu"}, "cell='rnn'.*'relu' with cell='leaky'"),
        ({"cell": LEAKY, "block_size": 2}, "of cell 'leaky'.*outputs, 1; got 2. Leave it out"),
        ({"cell": cells.lem(3)}, "multiple of block_size; got hidden_size=4, block_size=3"),
        ({"cell": "lstm", "block_size": 3}, "multiple of block_size"),
        ({"cell": "gru", "block_size": 0}, "block_size must be a positive integer; got 0"),
        ({"cell": SHARED}, "'common' has m=1, shared=True"),
        ({"cell": CLOCK}, "must have inputs.*'clock' has m=0"),
    ],
)
def test_errors(arguments, message):
    with pytest.raises(ValueError, match=message):
        ParaRNN(2, 4, **arguments)
