"""LEM against a loop written from equation (3) of the paper, its options and its errors.

Beside the discrete equations stand the continuous ones, (1) and (2), and the two relatives of
appendices C and D: the Hodgkin-Huxley equations and the LSTM.
"""

from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from tests.layers.test_recurrent import normal
from tsrnn.interpret import time_steps
from tsrnn.layers import LEM, ParaRNN

MATRICES = ("W_1", "W_2", "W_z", "W_y")


def layer(*args, seed=0, dtype=torch.float64, **kwargs):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return LEM(*args, dtype=dtype, **kwargs)


def full(weight):
    """Matrix (d, d) of blocks (d_s, d_s, K), whose unit i of block k is number i * K + k."""
    size, _, count = weight.shape
    units = torch.arange(count)
    matrix = weight.new_zeros(size, count, size, count)
    matrix[:, units, :, units] = weight.permute(2, 0, 1)
    return matrix.reshape(size * count, size * count)


def loop(lem, x, hx):
    """Equation (3), layer by layer and step by step."""
    final = []
    for i in range(lem.num_layers):
        V_1, V_2, V_z, V_y = getattr(lem, f"weight_ih_l{i}").chunk(4)
        W_1, W_2, W_z, W_y = (full(w) for w in getattr(lem, f"weight_hh_l{i}"))
        b_1, b_2, b_z, b_y = getattr(lem, f"bias_l{i}").chunk(4) if lem.bias else (0, 0, 0, 0)
        y, z = hx[i].chunk(2, -1)
        outputs = []
        for u in x.unbind(1):
            step = lem.dt * torch.sigmoid(y @ W_1.T + u @ V_1.T + b_1)
            step_bar = lem.dt * torch.sigmoid(y @ W_2.T + u @ V_2.T + b_2)
            step, step_bar = (s.clamp(min=lem.min_step) for s in (step, step_bar))
            z = (1 - step) * z + step * torch.tanh(y @ W_z.T + u @ V_z.T + b_z)
            y = (1 - step_bar) * y + step_bar * torch.tanh(z @ W_y.T + u @ V_y.T + b_y)
            outputs.append(y)
        x = torch.stack(outputs, 1)
        final.append(torch.cat([y, z], -1))
    return x, torch.stack(final)


def with_gradients(run, lem, x, hx):
    """Output and last state, with gradients of a sum of both by everything that has one."""
    given = [x.clone().requires_grad_(), hx.clone().requires_grad_()]
    output, h_n = run(*given)
    pairs = (output, normal(*output.shape, seed=5)), (h_n, normal(*h_n.shape, seed=6))
    value = sum((tensor * weight).sum() for tensor, weight in pairs)
    return [output, h_n, *torch.autograd.grad(value, [*given, *lem.parameters()])]


# Few cells, as every block size and time step is one to compile; full matrices of up to 8 units
# are unrolled, which takes longer.
@settings(deadline=None, max_examples=15)
@given(
    cell=st.sampled_from([(10, None, 0.7), (10, 2, 0.7), (2, 1, 1.9)]),
    num_layers=st.integers(1, 3),
    input_size=st.sampled_from([2, 10]),
    batch=st.integers(1, 3),
    steps=st.integers(1, 6),
    bias=st.booleans(),
)
def test_it_is_equation_3(cell, num_layers, input_size, batch, steps, bias, assert_close):
    size, block_size, dt = cell
    lem = layer(input_size, size, num_layers, dt=dt, block_size=block_size, bias=bias)
    x, hx = normal(batch, steps, input_size), normal(num_layers, batch, 2 * size, seed=1)
    ours = with_gradients(lem, lem, x, hx)
    expected = with_gradients(partial(loop, lem), lem, x, hx)
    for one, other in zip(ours, expected, strict=True):
        assert_close(one.detach(), other.detach(), 512)


@pytest.mark.parametrize(("block_size", "min_step"), [(None, 0.5), (2, 0.5), (2, 0.7)])
def test_time_steps_are_clipped(block_size, min_step, assert_close):
    lem = layer(2, 10, 2, dt=0.7, block_size=block_size, min_step=min_step)
    with torch.no_grad():
        for parameter in lem.parameters():
            parameter.mul_(3.0)  # so that steps lie on both sides of the least
    x, hx = normal(3, 6, 2), normal(2, 3, 20, seed=1)
    ours = with_gradients(lem, lem, x, hx)
    expected = with_gradients(partial(loop, lem), lem, x, hx)
    for result, due in zip(ours, expected, strict=True):
        assert_close(result.detach(), due.detach(), 1024)
    steps = time_steps(lem, x, hx)
    assert steps.min() == min_step
    clipped = (steps == min_step).double().mean()
    assert clipped == 1 if min_step == 0.7 else 0.1 < clipped < 0.9


def test_fixed_time_steps_are_a_network_without_gates(assert_close):
    lem = layer(2, 10, dt=0.3, min_step=0.3)
    x = normal(3, 6, 2)
    (W_z, W_y), (V_z, V_y) = lem.weight_hh_l0[2:, ..., 0], lem.weight_ih_l0.chunk(4)[2:]
    b_z, b_y = lem.bias_l0.chunk(4)[2:]
    y = z = torch.zeros(3, 10).double()
    for u in x.unbind(1):
        z = 0.7 * z + 0.3 * torch.tanh(y @ W_z.T + u @ V_z.T + b_z)
        y = 0.7 * y + 0.3 * torch.tanh(z @ W_y.T + u @ V_y.T + b_y)
    output, _ = lem(x)
    assert_close(output[:, -1].detach(), y.detach())
    output.sum().backward()
    assert not lem.weight_hh_l0.grad[:2].any()
    assert not lem.bias_l0.grad[:20].any()
    assert lem.weight_hh_l0.grad[2:].all()


def weighted(lem, **weights):
    """Set weights (d, d), (d, in) or (d,) of the first layer by name, such as W_1; others stay."""
    with torch.no_grad():
        for name, value in weights.items():
            number = "12zy".index(name[-1])
            whole = {"W": lem.weight_hh_l0, "V": lem.weight_ih_l0, "b": lem.bias_l0}[name[0]]
            part = whole[number, ..., 0] if name[0] == "W" else whole.chunk(4)[number]
            part.copy_(torch.as_tensor(value))
    return lem


def ode_end(lem, u, rates, time):
    """States y and z at a time of equation (2), or of (1) with rates (tau_z, tau_y) of its own."""
    V, W = lem.weight_ih_l0.detach().numpy(), lem.weight_hh_l0.detach().numpy()[..., 0]
    b, d = lem.bias_l0.detach().numpy(), lem.hidden_size
    pre = (V @ u.numpy() + b).reshape(4, d)

    def derivative(_, state):
        y, z = state[:d], state[d:]
        tau_z, tau_y = rates or [1 / (1 + np.exp(-W[i] @ y - pre[i])) for i in range(2)]
        return np.concatenate(
            [tau_y * (np.tanh(W[3] @ z + pre[3]) - y), tau_z * (np.tanh(W[2] @ y + pre[2]) - z)]
        )

    return solve_ivp(derivative, (0, time), np.zeros(2 * d), rtol=1e-10, atol=1e-12).y[:, -1]


@pytest.mark.parametrize("rates", [None, (0.8, 0.05)])
def test_small_time_steps_solve_the_differential_equations(rates):
    u, time, errors = normal(2), 4.0, []
    for n in (100, 200, 400):
        lem = LEM(2, 6, dt=time / n, engine="dense", dtype=torch.float64)
        lem.reset_parameters(torch.Generator().manual_seed(0))
        if rates:  # gate 1 has the rate of z, the fast one, gate 2 that of y
            (b_1, b_2), zero = (np.log(r / (1 - r)) for r in rates), torch.zeros(6, 6).double()
            weighted(lem, W_1=zero, W_2=zero, V_1=zero[:, :2], V_2=zero[:, :2], b_1=b_1, b_2=b_2)
        _, state = lem(u.expand(n, 2).contiguous())
        exact = ode_end(lem, u, rates, time)
        errors.append(np.abs(state[0].detach().numpy() - exact).max())
    assert errors[-1] < 0.01
    np.testing.assert_allclose(np.array(errors[:-1]) / errors[1:], 2, rtol=0.05)  # first order


@pytest.mark.parametrize("identity", [True, False])
def test_it_is_an_lstm_with_coupled_gates_and_an_open_output(identity):
    """Appendix D, which needs the target of y to be tanh(z) as well, for h = o tanh(c)."""
    d, x = 5, normal(3, 12, 2)
    lstm = ParaRNN(2, d, d, cell="lstm", init="uniform", engine="dense", dtype=torch.float64)
    lstm.reset_parameters(torch.Generator().manual_seed(0))
    with torch.no_grad():  # gates i, f, g, o: f = 1 - i, o = 1
        for weight in (lstm.weight_hh_l0, *(w.view(4, d, -1) for w in
                                            (lstm.weight_ih_l0, lstm.bias_l0))):  # fmt: skip
            weight[1] = -weight[0]
            weight[3] = 0.0
        lstm.bias_l0[3 * d :] = 40.0
    W, (V_i, _, V_g, _) = lstm.weight_hh_l0[..., 0], lstm.weight_ih_l0.chunk(4)
    (b_i, _, b_g, _), zero = lstm.bias_l0.chunk(4), torch.zeros(d, d).double()
    lem = weighted(
        LEM(2, d, dt=1.0, engine="dense", dtype=torch.float64),
        W_1=W[0], V_1=V_i, b_1=b_i, W_z=W[2], V_z=V_g, b_z=b_g, W_2=zero, V_2=zero[:, :2],
        b_2=40.0, W_y=torch.eye(d).double() if identity else normal(d, d), V_y=zero[:, :2], b_y=0.0,
    )  # fmt: skip
    (h, of_lstm), (y, of_lem) = lstm(x), lem(x)
    assert torch.allclose(y, h, rtol=0, atol=1e-14) == identity
    # State h, c of the one and y, z of the other.
    assert torch.allclose(of_lem, of_lstm, rtol=0, atol=1e-14) == identity


def test_gates_of_hodgkin_and_huxley_relax_like_those_of_lem_but_currents_are_a_sum():
    """Equation (13): the rate of y is F(z) H(y) - G(y) y, of rank two over z and y together with 1.

    So it is for one unit of LEM. The voltage of Hodgkin and Huxley has two currents through gates,
    at potentials of their own, which (14) adds up in F and H; its rank is three.
    """
    lem = weighted(layer(1, 1, dt=1e-5, engine="dense"), W_y=1.3, b_y=0.2)
    z, y = np.linspace(0.1, 0.9, 7), np.linspace(-0.5, 0.5, 6)
    start = torch.as_tensor(np.stack(np.broadcast_arrays(y[None, :], z[:, None]), -1)).reshape(
        -1, 2
    )
    after = lem(torch.zeros(42, 1, 1).double(), start[None])[1][0]
    of_lem = ((after - start)[:, 0] / 1e-5).detach().numpy().reshape(7, 6)
    n, m, h = z, 0.2 + z**2, 1 - z  # any gates on a curve will do
    v = 100 * y[None, :]
    of_voltage = -(36 * n**4)[:, None] * (v + 77) - (120 * m**3 * h)[:, None] * (v - 50)
    of_voltage = of_voltage - 0.3 * (v + 54.4)
    for rates, rank in ((of_lem, 2), (of_voltage, 3)):
        scaled = np.column_stack([np.ones(7), rates / np.abs(rates).max()])
        assert np.linalg.matrix_rank(scaled, tol=1e-3) == rank


def test_recurrent_matrices_are_named_as_in_the_paper():
    lem = layer(2, 6, 2, block_size=3)
    assert (lem.state_size, lem.matrix_names) == (12, MATRICES)
    blocks = lem.recurrent_blocks()
    assert [tuple(layers) for layers in blocks] == [MATRICES] * 2
    for number, name in enumerate(MATRICES):
        assert blocks[1][name].shape == (2, 3, 3)
        for k in range(2):
            assert torch.equal(blocks[1][name][k], lem.weight_hh_l1[number, :, :, k])
    assert lem.recurrent_parameters() == []


def test_full_matrices_are_one_block():
    assert layer(2, 6).weight_hh_l0.shape == (4, 6, 6, 1)
    assert layer(2, 6, block_size=2).weight_hh_l0.shape == (4, 2, 2, 3)


def test_uniform_initialisation():
    lem = layer(40, 100, 2)
    for parameter in lem.parameters():
        assert parameter.abs().max() <= 0.1
        assert parameter.std().item() == pytest.approx(0.1 / 3**0.5, rel=0.1)
        assert abs(parameter.mean().item()) < 0.02


def test_sizes_are_shown():
    assert repr(layer(2, 6, dt=0.5)) == "LEM(2, 6, num_layers=1, dt=0.5)"
    assert repr(layer(2, 6, block_size=3)) == "LEM(2, 6, num_layers=1, dt=1, block_size=3)"
    assert repr(layer(2, 6, min_step=0.25)) == "LEM(2, 6, num_layers=1, dt=1, min_step=0.25)"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dt": 0.0}, r"dt must be a positive number; got 0\.0"),
        ({"dt": float("inf")}, "dt must be a positive number; got inf"),
        ({"min_step": 1.5}, r"min_step must lie between 0 and dt=1; got 1\.5"),
        ({"min_step": -0.1}, r"min_step must lie between 0 and dt=1; got -0\.1"),
        ({"min_step": "a"}, "min_step must lie between 0 and dt=1; got 'a'"),
        ({"init": "stable"}, "init must be one of .*; got 'stable'"),
        ({"init": "chrono"}, "needs chrono_length.*above 2 / dt = 2; got None"),
        ({"init": "chrono", "chrono_length": 2}, "above 2 / dt = 2; got 2"),
        ({"init": "chrono", "chrono_length": 20, "dt": 0.1}, "above 2 / dt = 20; got 20"),
        ({"init": "chrono", "chrono_length": float("inf")}, "got inf"),
        ({"init": "chrono", "chrono_length": 9, "bias": False}, "draws biases; got bias=False"),
        ({"chrono_length": 9}, "argument of init='chrono'; got 9 with init='uniform'"),
    ],
)
def test_errors_of_the_constructor(arguments, message):
    with pytest.raises(ValueError, match=message):
        LEM(**({"input_size": 2, "hidden_size": 4} | arguments))
