"""Cells of the catalogue against equations written down again, and against torch's layers."""

import pickle
from fractions import Fraction

import pytest
import torch
from torch import nn, sigmoid, tanh

from tsrnn.kernels import Cell, cells, recurrence
from tsrnn.kernels._trace import is_linear

D = 3  # block size
B, T, K = 2, 5, 4


def normal(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def run(cell, size):
    """Inputs (B, T, vectors, K, d), matrices (count, K, d, d), vectors, states, as they come."""
    u, w = normal(B, T, cell.m, K), 0.7 * normal(cell.p, K, seed=1)
    states, _ = recurrence(cell, u, w)
    count = len(cell.step.form.matrices)
    matrices = w[: count * size**2].view(count, size, size, K).permute(0, 3, 1, 2)
    vectors = w[count * size**2 :].view(-1, size, K).transpose(1, 2)
    split = [x.unflatten(2, (-1, size)).transpose(3, 4) for x in (u, states)]
    return split[0], matrices, vectors, split[1]


def times(matrix, vector):
    return torch.einsum("kij,bkj->bki", matrix, vector)


def loop(step, u, n_states):
    state, states = (torch.zeros(B, K, u.shape[-1], dtype=torch.float64),) * n_states, []
    for t in range(T):
        state = step(state, u[:, t].unbind(1))
        states.append(torch.stack(state, 1))
    return torch.stack(states, 1)


@pytest.mark.parametrize("nonlinearity", ["tanh", "relu", "identity"])
def test_para_rnn(nonlinearity, assert_close):
    u, (w,), _, states = run(cells.para_rnn(D, nonlinearity), D)
    sigma = {"tanh": tanh, "relu": torch.relu, "identity": lambda x: x}[nonlinearity]
    expected = loop(lambda h, x: (sigma(x[0] + times(w, h[0])),), u, 1)
    assert_close(states, expected, 1024)


@pytest.mark.parametrize("size", [1, D])
def test_para_lstm(size, assert_close):
    u, (wi, wf, wg, wo), _, states = run(cells.para_lstm(size), size)

    def step(state, x):
        h, c = state
        i, f, o = (sigmoid(x[k] + times(w, h)) for k, w in ((0, wi), (1, wf), (3, wo)))
        c = f * c + i * tanh(x[2] + times(wg, h))
        return o * tanh(c), c

    assert_close(states, loop(step, u, 2))


@pytest.mark.parametrize("size", [1, D])
def test_para_gru(size, assert_close):
    u, (az, ar, ac), _, states = run(cells.para_gru(size), size)

    def step(state, x):
        (h,) = state
        z, r = sigmoid(x[0] + times(az, h)), sigmoid(x[1] + times(ar, h))
        return ((1 - z) * h + z * tanh(x[2] + times(ac, r * h)),)

    assert_close(states, loop(step, u, 1))


@pytest.mark.parametrize("size", [1, 2])
def test_newton_lstm(size, assert_close):
    u, (af, az, ao), (cf, co), states = run(cells.newton_lstm(size), size)

    def step(state, x):
        h, c = state
        f = sigmoid(x[0] + times(af, h) + cf * c)
        c = f * c + (1 - f) * tanh(x[1] + times(az, h))
        return sigmoid(x[2] + times(ao, h) + co * c) * tanh(c), c

    assert_close(states, loop(step, u, 2))


@pytest.mark.parametrize(("size", "dt"), [(1, 1.0), (D, 0.2)])
def test_lem(size, dt, assert_close):
    u, (w1, w2, wz, wy), _, states = run(cells.lem(size, dt), size)

    def step(state, x):
        y, z = state
        fast, slow = (dt * sigmoid(x[k] + times(w, y)) for k, w in ((0, w1), (1, w2)))
        z = (1 - fast) * z + fast * tanh(x[2] + times(wz, y))
        return (1 - slow) * y + slow * tanh(x[3] + times(wy, z)), z

    assert_close(states, loop(step, u, 2))


def test_lru(assert_close):
    cell = cells.lru()
    u, w = normal(B, T, 2, K), 0.7 * normal(2, K, seed=1)
    states, _ = recurrence(cell, u, w)
    eigenvalue, inputs = torch.complex(*w), torch.complex(*u.unbind(2))
    powers = eigenvalue ** torch.arange(T)[:, None]  # (T, K)
    expected = torch.stack(
        [(powers[: t + 1].flip(0) * inputs[:, : t + 1]).sum(1) for t in range(T)], 1
    )
    assert_close(torch.complex(*states.unbind(2)).real, expected.real)
    assert_close(torch.complex(*states.unbind(2)).imag, expected.imag)


def block_diagonal(matrices):
    """(count, K, d, d) as (count * d * K, d * K), units ordered field by field."""
    count, units, d, _ = matrices.shape
    whole = matrices.new_zeros(count, d, units, d, units)
    for k in range(units):
        whole[:, :, k, :, k] = matrices[:, k]
    return whole.reshape(count * d * units, d * units)


def gate_inputs(u):
    """(B, T, vectors, K, d) as (B, T, vectors * d * K): what identity projections pass on."""
    return u.transpose(3, 4).flatten(2)


def torch_layer(kind, u, matrices):
    size = u.shape[3] * u.shape[4]
    layer = kind(u.shape[2] * size, size, batch_first=True, bias=False, dtype=torch.float64)
    with torch.no_grad():
        layer.weight_ih_l0.copy_(torch.eye(u.shape[2] * size))
        layer.weight_hh_l0.copy_(block_diagonal(matrices))
        return layer(gate_inputs(u))[0]


def test_para_lstm_is_the_layer_of_torch(assert_close):
    u, matrices, _, states = run(cells.para_lstm(D), D)
    hidden = states[:, :, 0].transpose(2, 3).flatten(2)
    assert_close(hidden, torch_layer(nn.LSTM, u, matrices))


def test_para_gru_with_the_reset_after_is_the_layer_of_torch(assert_close):
    u, (az, ar, ac), _, states = run(cells.para_gru(D, reset_after=True), D)
    hidden = states[:, :, 0].transpose(2, 3).flatten(2)
    theirs = torch.stack([u[:, :, 1], -u[:, :, 0], u[:, :, 2]], 2)
    assert_close(hidden, torch_layer(nn.GRU, theirs, torch.stack([ar, -az, ac])))


@pytest.mark.parametrize("d", [1, 2, 4])
def test_numbers_of_fields(d):
    table = {  # n, m, p, outputs
        cells.para_rnn(d): (d, d, d**2, d),
        cells.linear(d): (d, d, d**2, d),
        cells.para_gru(d): (d, 3 * d, 3 * d**2, d),
        cells.para_lstm(d): (2 * d, 4 * d, 4 * d**2, d),
        cells.lem(d): (2 * d, 4 * d, 4 * d**2, d),
        cells.newton_gru(): (1, 3, 3, 1),
        cells.newton_lstm(): (2, 3, 5, 1),
        cells.lru(): (2, 2, 2, 2),
    }
    for cell, expected in table.items():
        assert (cell.n, cell.m, cell.p, cell.n_outputs) == expected, cell.name


def test_which_cells_are_linear():
    linear = [cells.linear(2), cells.para_rnn(3, "identity"), cells.lru()]
    others = [cells.para_rnn(1), cells.para_rnn(2, "relu"), cells.para_gru(1), cells.lem()]
    assert all(map(is_linear, linear))
    assert not any(map(is_linear, others))
    gated = Cell("gated", 1, 2, 0, lambda h, u, w: (torch.sigmoid(u[0]) * h[0] + u[1],))
    assert is_linear(gated)  # its coefficient moves, but not with the state


def test_cells_are_made_once_and_can_be_pickled(cell):
    again = pickle.loads(pickle.dumps(cell))
    assert again == cell
    assert again.key == cell.key
    assert cells.para_lstm(2) is cells.para_lstm(2)


def test_names_of_fields():
    cell = cells.para_gru(2)
    state, inputs, params = cell.field_names
    assert state == ("h_0", "h_1")
    assert inputs == ("u_z_0", "u_z_1", "u_r_0", "u_r_1", "u_c_0", "u_c_1")
    assert params[:4] == ("A_z_0_0", "A_z_0_1", "A_z_1_0", "A_z_1_1")
    own = Cell("own", 1, 1, 2, lambda h, u, w: (w[0] * h[0] + w[1] * u[0],))
    assert own.field_names == (("h0",), ("u0",), ("w0", "w1"))


@pytest.mark.parametrize("size", [0, -1, 2.0, "2", True])
def test_illegal_block_sizes(size):
    with pytest.raises(ValueError, match=f"dimension must be a positive .*got {size!r}"):
        cells.linear(size)
    for make in (cells.para_rnn, cells.para_gru, cells.para_lstm, cells.lem):
        with pytest.raises(ValueError, match=f"block_size must be a positive .*got {size!r}"):
            make(size)


@pytest.mark.parametrize("dt", [0, -1.0, float("nan"), float("inf")])
def test_illegal_time_steps(dt):
    with pytest.raises(ValueError, match=f"dt must be a positive number; got {dt!r}"):
        cells.lem(1, dt)


def test_a_time_step_that_is_a_fraction():
    assert cells.lem(1, Fraction(1, 4)) == cells.lem(1, 0.25)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"outputs": 0}, "outputs of cell 'own' must be an integer between 1 and n=1; got 0"),
        ({"outputs": 2}, "got 2"),
        ({"outputs": 1.0}, r"got 1\.0"),
        ({"names": (("a",), (), ("b",))}, r"1 state fields, 1 input .*; got \(1, 0, 1\)"),
        ({"names": (("a",), ("a",), ("b",))}, "different identifiers; got 'a'"),
        ({"names": (("a b",), ("u",), ("w",))}, "different identifiers; got 'a b'"),
        ({"names": (("if",), ("u",), ("w",))}, "different identifiers; got 'if'"),
    ],
)
def test_illegal_outputs_and_names(arguments, message):
    with pytest.raises(ValueError, match=message):
        Cell("own", 1, 1, 1, lambda h, u, w: (w[0] * h[0] + u[0],), **arguments)
