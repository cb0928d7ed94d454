"""Partial gradients against differences and equation (45), orders in dt, growth with the length."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tsrnn.interpret import gradient_bound, gradient_growth, partial_gradients
from tsrnn.layers import LEM


def layer(*args, seed=0, scale=0.4, **kwargs):
    lem = LEM(*args, dtype=torch.float64, engine="dense", **kwargs)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in lem.parameters():
            parameter.normal_(0.0, scale, generator=generator)
    return lem


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def step(lem, state, u, weights):
    """Equation (3), states y, z (d,)."""
    y, z = state
    V, W, b = weights
    V, b = V.unflatten(0, (4, -1)), b.unflatten(0, (4, -1))
    pre = V @ u + b
    fast = lem.dt * torch.sigmoid(pre[0] + W[0] @ y)
    slow = lem.dt * torch.sigmoid(pre[1] + W[1] @ y)
    z = (1 - fast) * z + fast * torch.tanh(pre[2] + W[2] @ y)
    return (1 - slow) * y + slow * torch.tanh(pre[3] + W[3] @ z), z


def weights_of(lem):
    return lem.weight_ih_l0.detach(), lem.weight_hh_l0.detach()[..., 0], lem.bias_l0.detach()


def partials_by_copies(lem, x, target):
    """Gradients by copies of the parameters, one a step: a list of (V, W, b) gradients."""
    copies = [tuple(w.clone().requires_grad_() for w in weights_of(lem)) for _ in range(len(x))]
    state = (torch.zeros(lem.hidden_size).double(),) * 2
    for u, weights in zip(x, copies, strict=True):
        state = step(lem, state, u, weights)
    loss = (state[0] - target).square().sum() / 2
    flat = torch.autograd.grad(loss, [w for weights in copies for w in weights])
    return [flat[i : i + 3] for i in range(0, len(flat), 3)]


@pytest.mark.parametrize("num_layers", [1, 2])
def test_partial_gradients_are_gradients_by_a_copy_of_the_parameters_at_each_step(num_layers):
    lem = layer(2, 6, num_layers, dt=0.3)
    x, target = normal(7, 2), normal(6, seed=1)
    table = partial_gradients(lem, x, target)
    assert list(table["step"][:7]) == list(range(1, 8))
    if num_layers == 2:  # the last layer, by itself
        first, last = layer(2, 6, dt=0.3), layer(6, 6, dt=0.3)
        for lower in (first, last):
            number = 0 if lower is first else 1
            lower.load_state_dict(
                {f"{name}_l0": lem.get_parameter(f"{name}_l{number}")
                 for name in ("weight_ih", "weight_hh", "bias")}
            )  # fmt: skip
        lem, x = last, first(x)[0].detach()
    for k, gradients in enumerate(partials_by_copies(lem, x, target), start=1):
        for letter, gradient in zip("VWb", gradients, strict=True):
            for kind, part in zip("12zy", gradient.unflatten(0, (4, -1)) if letter != "W"
                                  else gradient, strict=True):  # fmt: skip
                row = table[(table["parameter"] == f"{letter}_{kind}") & (table["step"] == k)]
                assert row["actual"].item() == pytest.approx(part.abs().max().item(), rel=1e-9)


def test_the_last_partial_gradient_of_one_sequence_is_all_of_it_after_one_step():
    lem = layer(1, 6, dt=0.5, block_size=2)
    x, target = normal(4, 1, 1), normal(4, 6, seed=1)
    table = partial_gradients(lem, x, target).set_index("parameter")
    whole = gradient_bound(lem, x, target)
    np.testing.assert_allclose(table.loc[whole.index, "actual"], whole["actual"], rtol=1e-10)
    np.testing.assert_allclose(table["leading"], table["actual"], rtol=1e-12)
    assert (table["remainder"] <= 1e-15).all()


@settings(deadline=None, max_examples=15)
@given(
    block_size=st.sampled_from([6, 2]),
    dt=st.sampled_from([0.1, 1.0]),
    scale=st.sampled_from([0.05, 0.5, 5.0]),
    steps=st.integers(1, 12),
    bias=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_partial_gradients_stay_below_their_bounds(block_size, dt, scale, steps, bias, seed):
    lem = layer(2, 6, dt=dt, block_size=block_size, bias=bias, scale=scale, seed=seed)
    x, target = 3 * normal(2, steps, 2, seed=seed), normal(2, 6, seed=seed + 1)
    table = partial_gradients(lem, x, target)
    assert len(table) == steps * (12 if bias else 8)
    assert (table["actual"] <= table["bound"] * (1 + 1e-12)).all()
    # Bounds of a parameter, but for the factor of early states, add up to that of the whole.
    whole = gradient_bound(lem, x, target)["bound"]
    sums = table.groupby("parameter")["bound"].sum()[whole.index]
    assert (sums <= whole * (1 + 1e-9)).all()
    of_inputs = [name for name in whole.index if name.startswith("V")]
    np.testing.assert_allclose(sums[of_inputs], whole[of_inputs], rtol=1e-9)


def equation_45(lem, x, target, k, sign):
    """First two powers of dt of (45) for W_y (d, d), the last sum with `sign`."""
    V, W, b = weights_of(lem)
    d = lem.hidden_size
    V, b = V.unflatten(0, (4, d)), b.unflatten(0, (4, d))
    state, B, D, ys, zs = (torch.zeros(d).double(),) * 2, [], [], [], []
    for u in x:
        ys.append(state[0])
        B.append(W[1] @ state[0] + V[1] @ u + b[1])
        state = step(lem, state, u, weights_of(lem))
        D.append(W[3] @ state[1] + V[3] @ u + b[3])
        zs.append(state[1])
    error = state[0] - target
    s = torch.sigmoid
    direct = s(B[k]) / torch.cosh(D[k]) ** 2
    by_gate, by_decay = torch.zeros(d).double(), torch.zeros(d).double()
    for later in range(k + 1, len(x)):
        slope = s(B[later]) * (1 - s(B[later])) * (torch.tanh(D[later]) - ys[later])
        by_gate += (error * slope) @ W[1]
        by_decay += s(B[later]) * error
    bracket = lem.dt * error + lem.dt**2 * (by_gate + sign * by_decay)
    return (direct * bracket)[:, None] * zs[k]


def test_equation_45_has_the_sign_of_equation_50():
    x, target, k = normal(6, 2), normal(5, seed=1), 1
    errors = {1.0: [], -1.0: []}
    steps = np.array([0.1, 0.05, 0.025])
    for dt in steps:
        lem = layer(2, 5, dt=float(dt))
        exact = partials_by_copies(lem, x, target)[k][1][3]
        for sign, values in errors.items():
            values.append((exact - equation_45(lem, x, target, k, sign)).abs().max().item())
        table = partial_gradients(lem, x, target)
        row = table[(table["parameter"] == "W_y") & (table["step"] == k + 1)]
        assert row["remainder"].item() < 2 * errors[-1.0][-1]
    orders = {s: np.polyfit(np.log(steps), np.log(v), 1)[0] for s, v in errors.items()}
    # z_k has a power of dt of its own: the remainder is dt^3 times it, dt^2 with the other sign.
    assert orders[-1.0] == pytest.approx(4, abs=0.25)
    assert orders[1.0] == pytest.approx(3, abs=0.25)


def fitted_orders(steps, place):
    """Orders in dt of partial gradients at a step k of n, (n, k) = place(dt), inputs constant."""
    u, target = normal(1, 2), torch.ones(6).double()
    values = []
    for dt in steps:
        n, k = place(dt)
        table = partial_gradients(layer(2, 6, dt=dt), u.expand(n, 2).contiguous(), target)
        values.append(table[table["step"] == k].set_index("parameter")["actual"])
    return {
        name: np.polyfit(np.log(steps), np.log([v[name] for v in values]), 1)[0]
        for name in values[0].index
    }


def test_orders_in_dt_of_proposition_4_3():
    steps = [0.004, 0.002, 0.001]
    early = fitted_orders(steps, lambda _: (10, 2))
    # Below dt^(3/2) where states multiply, but of the order dt^2; above it where none does.
    assert early["W_y"] == pytest.approx(2, abs=0.05)
    assert early["b_y"] == pytest.approx(1, abs=0.05)
    assert early["V_y"] == pytest.approx(1, abs=0.05)
    later = fitted_orders(steps, lambda dt: (round(1 / dt), round(0.2 / dt)))
    assert later["W_y"] == pytest.approx(1, abs=0.05)
    assert later["b_y"] == pytest.approx(1, abs=0.05)


def test_early_steps_do_not_vanish_where_dt_is_small():
    u, target = normal(1, 2), torch.ones(6).double()
    spreads = {}
    for dt, n in ((1.0, 100), (0.01, 100), (0.0025, 400)):
        table = partial_gradients(layer(2, 6, dt=dt), u.expand(n, 2).contiguous(), target)
        values = table[table["parameter"] == "b_y"]["actual"]
        spreads[dt] = values.max() / values.min()
    assert spreads[1.0] > 1e3  # decays like a power of n - k
    assert spreads[0.01] < 3
    assert spreads[0.0025] == pytest.approx(spreads[0.01], rel=0.05)  # t_n = 1 decides, not n


def test_gradients_by_length_where_the_time_step_is_its_inverse():
    lem, x = layer(2, 6, dt=0.7), normal(2, 80, 2)
    table = gradient_growth(lem, x, [0.5, 1.0], [10, 20, 40, 80], torch.ones(2, 6).double())
    assert (table["actual"] <= table["bound"]).all()
    np.testing.assert_allclose(table["dt"], table["length"] ** -table["exponent"])
    orders = table.attrs["orders"]
    assert orders[1.0]["printed"] == pytest.approx(0, abs=1e-12)
    assert orders[0.5]["printed"] == pytest.approx(1, abs=0.02)  # 2 (1 - s), for large n
    assert abs(orders[1.0]["actual"]) < 0.3
    row = table[(table["exponent"] == 1.0) & (table["length"] == 20)]
    same = layer(2, 6, dt=0.05)
    direct = gradient_bound(same, x[:, :20], torch.ones(2, 6).double())
    assert row["actual"].item() == pytest.approx(direct["actual"].max(), rel=1e-12)
    assert row["bound"].item() == pytest.approx(direct["bound"].max(), rel=1e-12)
    assert not table["condition"].any()
    assert lem.dt == 0.7


def test_gradients_may_grow_faster_than_remark_e_1():
    # At the unstable state zero, W_z = W_y = 8: rates of 3.5 a unit of time, t_n = sqrt(n).
    lem = layer(1, 1, scale=0.0)
    with torch.no_grad():
        lem.weight_hh_l0[2:] = 8.0
    x = torch.zeros(1600, 1).double()
    table = gradient_growth(lem, x, [0.5], [100, 400, 1600], torch.ones(1).double())
    growth = np.diff(np.log(table["actual"])) / np.diff(table["t_n"])
    np.testing.assert_allclose(growth, 3.5, rtol=0.2)
    assert table.attrs["orders"][0.5]["actual"] > 20
    assert not table["condition"].any()
    assert (table["actual"] > table["printed"]).all()
    assert (table["actual"] <= table["bound"]).all()


def test_the_condition_holds_for_small_weights_and_times():
    table = gradient_growth(layer(1, 3, scale=0.0), torch.ones(8, 1).double(), [0.9, 1.0])
    assert list(table["length"]) == [1, 2, 4, 8] * 2
    assert table[table["exponent"] == 1.0]["condition"].all()
    assert (table["actual"] <= table["printed"])[table["condition"]].all()


def test_arguments_are_checked():
    lem, x = layer(1, 2), torch.zeros(3, 1).double()
    for exponents in ([], [1.5], [-0.1], [float("nan")], "a", 0.5, None):
        with pytest.raises(ValueError, match="exponents must be a sequence of numbers from 0 to 1"):
            gradient_growth(lem, x, exponents)
    for lengths in ([], [0], [4], "a", 2):
        with pytest.raises(ValueError, match="lengths must be a sequence of numbers from 1 to 3"):
            gradient_growth(lem, x, lengths=lengths)
    with pytest.raises(ValueError, match="lengths must be integers"):
        gradient_growth(lem, x, lengths=[1.5])
    for function in (partial_gradients, gradient_growth):
        with pytest.raises(TypeError, match=r"must be a tsrnn\.layers\.LEM, .*; got GRU"):
            function(torch.nn.GRU(1, 1), x)
        with pytest.raises(ValueError, match=r"target must have shape \(1, 2\).*got \(1, 3\)"):
            function(lem, x, target=torch.zeros(3).double())
        with pytest.raises(TypeError, match=r"x must be a torch\.Tensor; got list"):
            function(lem, [[1.0]])
    with pytest.raises(ValueError, match=r"dt of at most 1; this layer has dt=1\.5"):
        partial_gradients(layer(1, 2, dt=1.5), x)


@pytest.mark.parametrize("function", [partial_gradients, gradient_growth])
def test_inputs_that_are_not_finite_are_refused(function):
    x = torch.ones(10, 1)
    x[3] = torch.nan
    with pytest.raises(ValueError, match="x must be finite"):
        function(LEM(1, 4), x)


def test_lengths_that_come_twice_count_once():
    table = gradient_growth(LEM(1, 4), torch.ones(10, 1), exponents=[1.0], lengths=[10, 5, 5])
    assert list(table["length"]) == [5, 10]
