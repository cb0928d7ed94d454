"""Learned time steps against the equations, and the propositions on random and trained layers."""

import copy

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tsrnn.interpret import gradient_bound, hidden_state_bound, time_scales, time_steps
from tsrnn.layers import LEM, ParaRNN


def layer(*args, seed=0, scale=1.0, **kwargs):
    lem = LEM(*args, dtype=torch.float64, **kwargs)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in lem.parameters():
            parameter.normal_(0.0, scale, generator=generator)
    return lem


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def full(weight):
    """Matrix (d, d) of blocks (d_s, d_s, K), whose unit i of block k is number i * K + k."""
    size, _, count = weight.shape
    matrix = weight.new_zeros(size, count, size, count)
    units = torch.arange(count)
    matrix[:, units, :, units] = weight.permute(2, 0, 1)
    return matrix.reshape(size * count, size * count)


@torch.no_grad()
def time_steps_by_loop(lem, x, hx):
    """Equation (3), all time steps (layers, 2, B, T, d)."""
    taken = []
    for i in range(lem.num_layers):
        V_1, V_2, V_z, V_y = getattr(lem, f"weight_ih_l{i}").chunk(4)
        W_1, W_2, W_z, W_y = (full(w) for w in getattr(lem, f"weight_hh_l{i}"))
        b_1, b_2, b_z, b_y = getattr(lem, f"bias_l{i}").chunk(4) if lem.bias else (0, 0, 0, 0)
        y, z = hx[i].chunk(2, -1)
        outputs, steps = [], []
        for u in x.unbind(1):
            step = lem.dt * torch.sigmoid(y @ W_1.T + u @ V_1.T + b_1)
            step_bar = lem.dt * torch.sigmoid(y @ W_2.T + u @ V_2.T + b_2)
            z = (1 - step) * z + step * torch.tanh(y @ W_z.T + u @ V_z.T + b_z)
            y = (1 - step_bar) * y + step_bar * torch.tanh(z @ W_y.T + u @ V_y.T + b_y)
            steps.append(torch.stack([step, step_bar]))
            outputs.append(y)
        taken.append(torch.stack(steps, 2))
        x = torch.stack(outputs, 1)
    return torch.stack(taken)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("block_size", [None, 2])
def test_time_steps_are_those_of_equation_3(block_size, bias, assert_close):
    lem = layer(3, 10, 2, dt=1.5, block_size=block_size, bias=bias)
    x, hx = normal(4, 7, 3), normal(2, 4, 20, seed=1)
    assert_close(time_steps(lem, x, hx), time_steps_by_loop(lem, x, hx), 1024)
    from_zero = time_steps_by_loop(lem, x, torch.zeros_like(hx))
    assert_close(time_steps(lem, x), from_zero, 1024)
    assert_close(time_steps(lem, x[2]), from_zero[:, :, 2], 1024)
    assert_close(time_steps(lem, x[2], hx[:, 2]), time_steps(lem, x, hx)[:, :, 2], 1024)


def test_time_steps_draw_nothing():
    lem, before = layer(3, 10, 2, dropout=0.5), torch.get_rng_state()
    time_steps(lem.train(), normal(2, 5, 3))
    assert torch.equal(torch.get_rng_state(), before)


def test_time_steps_leave_dropout_out_and_need_no_gradient(assert_close):
    lem = layer(3, 10, 2, dt=1.5, dropout=0.5)
    steps = time_steps(lem, normal(4, 7, 3))
    assert not steps.requires_grad
    assert_close(steps, time_steps(copy.deepcopy(lem).eval(), normal(4, 7, 3)), 1024)


def test_time_steps_after_the_end_are_missing(assert_close):
    lem = layer(3, 10, 2, dt=1.5)
    x = normal(3, 7, 3)
    whole = time_steps(lem, x)
    x[1, 4:] = torch.nan
    steps = time_steps(lem, x, lengths=[7, 4, 0])
    assert steps[:, :, 1, 4:].isnan().all()
    assert steps[:, :, 2].isnan().all()
    assert_close(steps[:, :, 0], whole[:, :, 0], 1024)
    assert_close(steps[:, :, 1, :4], whole[:, :, 1, :4], 1024)


def test_time_scales_are_quantiles_with_a_unit():
    lem = layer(3, 10, 2, dt=1.5)
    x = normal(4, 50, 3)
    steps = time_steps(lem, x)
    table = time_scales(lem, x, freq="15min", quantiles=[0.1, 0.5])
    assert table.attrs == {"time_unit": "minutes", "time_step": 15.0}
    assert len(table) == 2 * 2 * 10 * 2
    for row in table.itertuples():
        values = steps[row.layer - 1, "zy".index(row.state), :, :, row.unit - 1]
        assert row.time_step == pytest.approx(np.quantile(values.numpy(), row.quantile), rel=1e-12)
        assert row.time_scale == pytest.approx(15 / row.time_step, rel=1e-12)
    assert time_scales(lem, x).attrs == {"time_unit": "steps", "time_step": 1.0}


def test_time_scales_leave_padding_out():
    lem = layer(3, 10, dt=1.5)
    x = normal(2, 50, 3)
    padded = x.clone()
    padded[1] = torch.nan
    table = time_scales(lem, padded, lengths=[50, 0])
    # a product of matrices rounds by their number of rows
    pd.testing.assert_frame_equal(table, time_scales(lem, x[:1]), rtol=1e-12)


def test_the_time_scale_is_the_mean_age_of_what_a_state_holds():
    lem = LEM(1, 1, dt=0.4, dtype=torch.float64)
    with torch.no_grad():
        for parameter in lem.parameters():
            parameter.zero_()
        lem.bias_l0[0] = -1.0
        lem.weight_ih_l0[2] = 1e-6  # the target of z is x, nearly
    (scale,) = time_scales(lem, torch.zeros(1, 1).double(), quantiles=[0.5])["time_scale"][:1]
    impulse = torch.zeros(1, 2000, 1, dtype=torch.float64)
    impulse[0, 0] = 1.0
    weights = []  # of an input j steps ago in z
    for steps in range(1, 300):
        weights.append(lem(impulse[:, :steps])[1][0, 0, 1].item() / 1e-6)
    weights = np.array(weights)
    assert weights.sum() == pytest.approx(1.0, rel=1e-6)
    assert (weights * np.arange(1, 300)).sum() == pytest.approx(scale, rel=1e-4)


def assert_holds(table):
    """Up to rounding."""
    assert (table["actual"] <= table["bound"] * (1 + 1e-12)).all(), table


sizes = st.sampled_from([(10, None), (6, 2)])


@settings(deadline=None, max_examples=30)
@given(
    size=sizes,
    num_layers=st.integers(1, 2),
    dt=st.sampled_from([0.1, 1.0]),
    scale=st.sampled_from([0.1, 1.0, 30.0]),
    steps=st.integers(1, 40),
    seed=st.integers(0, 1000),
)
def test_hidden_states_stay_below_proposition_4_1(size, num_layers, dt, scale, steps, seed):
    hidden, block_size = size
    lem = layer(2, hidden, num_layers, dt=dt, block_size=block_size, scale=scale, seed=seed)
    x = scale * normal(3, steps, 2, seed=seed)
    table = hidden_state_bound(lem, x)
    assert len(table) == num_layers * steps
    assert_holds(table)
    _, h_n = lem(x)
    last = table[table["step"] == steps]["actual"]
    np.testing.assert_allclose(last, h_n.detach().abs().amax((1, 2)), rtol=1e-12)
    t_n = steps * dt
    expected = min(1.0, (1 + dt) / (2 - dt) ** 0.5 * t_n**0.5)
    assert table["bound"].iloc[-1] == pytest.approx(expected, rel=1e-12)


def test_a_unit_can_reach_what_the_notes_of_the_bound_say():
    dt = 0.1
    lem = layer(1, 2, dt=dt, scale=0.0)
    with torch.no_grad():
        lem.bias_l0.fill_(1000.0)  # the largest steps, towards 1
    table = hidden_state_bound(lem, torch.zeros(60, 1).double())
    np.testing.assert_allclose(table["actual"], 1 - (1 - dt) ** table["step"], rtol=1e-12)
    assert_holds(table)


@settings(deadline=None, max_examples=40)
@given(
    size=sizes,
    num_layers=st.integers(1, 2),
    dt=st.sampled_from([0.1, 1.0]),
    scale=st.sampled_from([0.05, 0.5, 5.0]),
    steps=st.integers(1, 12),
    target=st.sampled_from([0.0, 1.0, 50.0]),
    bias=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_gradients_stay_below_the_corrected_proposition_4_2(
    size, num_layers, dt, scale, steps, target, bias, seed
):
    hidden, block_size = size
    lem = layer(
        2, hidden, num_layers, dt=dt, block_size=block_size, bias=bias, scale=scale, seed=seed
    )
    x = 3 * normal(2, steps, 2, seed=seed)
    table = gradient_bound(lem, x, target * normal(2, hidden, seed=seed + 1))
    assert len(table) == (12 if bias else 8)
    assert_holds(table)


def test_actual_gradients_are_those_of_the_loss(assert_close):
    lem = layer(2, 6, dt=0.1, block_size=2, scale=0.5)
    x, target = normal(3, 9, 2), normal(3, 6, seed=1)
    table = gradient_bound(lem, x, target)
    largest = dict.fromkeys(table.index, 0.0)
    for sequence, goal in zip(x, target, strict=True):
        lem.zero_grad()
        (0.5 * (lem(sequence)[0][-1] - goal).square().sum()).backward()
        for letter, name in (("W", "hh"), ("V", "ih"), ("b", None)):
            grad = (lem.bias_l0 if name is None else getattr(lem, f"weight_{name}_l0")).grad
            for kind, part in zip("12zy", grad.chunk(4), strict=True):
                key = f"{letter}_{kind}"
                largest[key] = max(largest[key], part.abs().max().item())
    np.testing.assert_allclose(table["actual"], list(largest.values()), rtol=1e-9)


def test_constants_of_the_gradient_bound():
    lem = layer(1, 2, dt=0.1, scale=0.0)
    with torch.no_grad():
        lem.weight_hh_l0[2, 0, :, 0] = torch.tensor([0.25, -0.5])  # row of W_z: norm 0.75
    x = torch.tensor([[4.0], [-2.0], [1.0]]).double()
    table = gradient_bound(lem, x, torch.tensor([3.0, -2.0]).double())
    gamma = 2 * 1.75 * 3.25
    assert table.attrs == {"eta": 0.75, "gamma": gamma, "t_n": pytest.approx(0.3)}
    total = sum(0.1 * (1 + gamma * 0.1 / 2) ** (3 - k) for k in (1, 2, 3))
    assert table.loc["W_z", "bound"] == pytest.approx(2 * (1 + 3) * total)
    assert table.loc["b_1", "bound"] == table.loc["W_z", "bound"]
    assert table.loc["V_1", "bound"] == pytest.approx(4 * table.loc["W_z", "bound"])
    holds = all((1 + gamma * 0.1 / 2) ** m <= 1 + gamma * m * 0.1 for m in (1, 2))
    assert holds
    np.testing.assert_allclose(table["printed"], (1 + 3) * (0.3 + gamma * 0.3**2))


@pytest.mark.parametrize("steps", [1, 2, 7, 8, 9, 10, 11, 12, 40])
def test_the_printed_bound_is_given_where_its_condition_holds(steps):
    lem = layer(1, 2, dt=0.1, scale=0.0)
    table = gradient_bound(lem, torch.zeros(steps, 1).double())
    half = table.attrs["gamma"] * lem.dt / 2
    holds = all((1 + half) ** m <= 1 + 2 * half * m for m in range(1, steps))
    assert table["printed"].notna().all() == holds
    assert table["printed"].isna().all() != holds
    assert holds or steps > 7
    assert not holds or steps < 40


def test_proposition_4_2_as_printed_forgets_that_losses_of_units_add_up():
    # All units follow unit 0, whose bias therefore moves every term of the loss.
    d, steps = 128, 45
    lem = layer(1, d, dt=0.01, scale=0.0)
    with torch.no_grad():
        lem.bias_l0[: 2 * d] = 1000.0  # the largest steps
        lem.weight_hh_l0[3, :, 0, 0] = 1 / 3
    table = gradient_bound(lem, torch.zeros(steps, 1).double(), torch.full((d,), 1e3).double())
    assert table.loc["b_z", "actual"] > 2 * table.loc["b_z", "printed"]
    assert_holds(table)
    assert table.loc["b_z", "actual"] > table.loc["b_z", "bound"] / 100


def test_proposition_4_2_as_printed_forgets_that_inputs_can_be_large():
    lem = layer(1, 2, dt=0.1, scale=0.0)
    table = gradient_bound(lem, torch.full((1, 1), 100.0).double(), torch.ones(2).double())
    assert table.loc["V_y", "actual"] > 10 * table.loc["V_y", "printed"]
    assert_holds(table)


def test_bounds_hold_on_a_trained_layer():
    torch.manual_seed(0)
    lem = LEM(1, 10, dt=0.1, dtype=torch.float64)
    head = torch.nn.Linear(10, 1, dtype=torch.float64)
    optimiser = torch.optim.Adam([*lem.parameters(), *head.parameters()], lr=0.02)
    x = torch.sin(torch.linspace(0, 20, 81, dtype=torch.float64))[None, :, None]
    losses = []
    for _ in range(60):
        optimiser.zero_grad()
        loss = (head(lem(x[:, :-1])[0]) - x[:, 1:]).square().mean()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.1 * losses[0]
    assert_holds(hidden_state_bound(lem, x))
    assert_holds(gradient_bound(lem, x, torch.ones(1, 10).double()))


def test_a_bound_too_large_for_a_number_is_infinite():
    table = gradient_bound(layer(1, 2, scale=3.0), normal(2000, 1))
    assert np.isinf(table["bound"]).all()
    assert table["printed"].isna().all()


@pytest.mark.parametrize("function", [time_steps, time_scales, hidden_state_bound, gradient_bound])
def test_other_layers_are_refused(function):
    with pytest.raises(TypeError, match=r"must be a tsrnn\.layers\.LEM, .*; got ParaRNN"):
        function(ParaRNN(1, 2), torch.zeros(3, 1))
    with pytest.raises(ValueError, match=r"x must have shape \(B, T, 1\)"):
        function(layer(1, 2), torch.zeros(3, 2).double())


@pytest.mark.parametrize("function", [hidden_state_bound, gradient_bound])
def test_propositions_need_time_steps_of_at_most_1(function):
    with pytest.raises(ValueError, match=r"dt of at most 1; this layer has dt=1\.5"):
        function(layer(1, 2, dt=1.5), torch.zeros(3, 1).double())


def test_arguments_are_checked():
    lem, x = layer(1, 2), torch.zeros(3, 1).double()
    with pytest.raises(ValueError, match=r"target must have shape \(1, 2\).*got \(1, 3\)"):
        gradient_bound(lem, x, torch.zeros(3))
    for quantiles in ([1.5], [], 0.5, [float("nan")], "a", ["a"], None, object()):
        with pytest.raises(ValueError, match="between 0 and 1"):
            time_scales(lem, x, quantiles=quantiles)
    with pytest.raises(ValueError, match="`freq` must be"):
        time_scales(lem, x, freq="SMS")
    with pytest.raises(TypeError, match="target must be a torch.Tensor; got list"):
        gradient_bound(lem, x, [0.0, 0.0])
    for function in (time_steps, time_scales):
        with pytest.raises(TypeError, match="hx must be a torch.Tensor; got ndarray"):
            function(lem, x, np.zeros((1, 4)))


@pytest.mark.parametrize("function", [time_steps, time_scales, hidden_state_bound, gradient_bound])
@pytest.mark.parametrize(
    ("x", "error", "message"),
    [
        (pd.DataFrame({"y": [1.0]}), TypeError, r"DataFrame\. .*as_tensor\(x\.to_numpy\(\), dtype"),
        ([[1.0]], TypeError, r"torch\.Tensor; got list\. .*\(x, dtype=torch\.float64\)"),
        (np.zeros((3, 1), "f"), TypeError, "x must be a torch.Tensor; got ndarray"),
        (None, TypeError, "x, the inputs to run over, must be given with a layer"),
        (torch.zeros(3).double(), ValueError, r"x must have shape \(B, T, 1\) .* got \(3,\)"),
        (torch.zeros(0, 1).double(), ValueError, r"T >= 1; got \(0, 1\)"),
        (torch.zeros(3, 1), ValueError, "the layer, torch.float64 on cpu; got torch.float32"),
    ],
)
def test_inputs_are_checked(function, x, error, message):
    with pytest.raises(error, match=message):
        function(layer(1, 2), x)
