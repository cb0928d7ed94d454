"""The linear recurrent unit against its equations in complex numbers, step by step."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kstest

from tests.layers.test_recurrent import normal
from tsrnn.interpret import recurrence_features
from tsrnn.layers import LRU


def layer(*args, **kwargs):
    torch.manual_seed(0)
    return LRU(*args, **{"dtype": torch.float64, **kwargs})


def loop(lru, x, hx):
    """Equation (2) with gamma, the readout and the perceptron, one step after the other."""
    final, n = [], lru.state_units
    for i in range(lru.num_layers):
        value = {name: getattr(lru, f"{name}_l{i}") for name in
                 ("nu_log", "theta_log", "gamma_log", "B", "C", "D")}  # fmt: skip
        eigenvalue = torch.exp(torch.complex(-value["nu_log"].exp(), value["theta_log"].exp()))
        B = torch.complex(value["B"][:n], value["B"][n:])
        C = torch.complex(value["C"][:, :n], -value["C"][:, n:])
        state, outputs = torch.complex(hx[i][:, :n], hx[i][:, n : 2 * n]), []
        for k in range(x.shape[1]):
            drive = (B @ x[:, k].to(B.dtype).T).T * value["gamma_log"].exp()
            state = eigenvalue * state + drive
            y = (state @ C.T).real + x[:, k] @ value["D"].T
            if lru.widths:
                linear = [part for part in lru.mlps[i] if isinstance(part, torch.nn.Linear)]
                for part in linear[:-1]:
                    y = torch.clamp(y @ part.weight.T + part.bias, min=0)
                y = y @ linear[-1].weight.T + linear[-1].bias
            outputs.append(y)
        x = torch.stack(outputs, 1)
        final.append(torch.cat([state.real, state.imag, y], -1))
    return x, torch.stack(final)


def gradients(lru, run, x, hx):
    """Outputs, final state and all gradients of one run."""
    x, hx = x.clone().requires_grad_(), hx.clone().requires_grad_()
    output, h_n = run(x, hx)
    loss = (output * normal(*output.shape, seed=5)).sum() + (h_n * normal(*h_n.shape, seed=6)).sum()
    given = [x, hx, *lru.parameters()]
    return [output, h_n, *torch.autograd.grad(loss, given, allow_unused=True)]


@settings(deadline=None, max_examples=30)
@given(
    sizes=st.tuples(st.integers(1, 3), st.integers(1, 9), st.integers(1, 5)),
    units=st.none() | st.integers(1, 6),
    num_layers=st.integers(1, 3),
    steps=st.integers(1, 8),
    mlp=st.sampled_from([True, False, 3, (4, 2)]),
    trainable=st.booleans(),
)
def test_it_is_the_loop_of_the_paper(sizes, units, num_layers, steps, mlp, trainable, assert_close):
    batch, inputs, hidden = sizes
    lru = layer(inputs, hidden, num_layers, state_units=units, mlp=mlp,
                trainable_recurrence=trainable)  # fmt: skip
    x, hx = normal(batch, steps, inputs), normal(num_layers, batch, lru.state_size, seed=1)
    actual = gradients(lru, lru, x, hx)
    expected = gradients(lru, lambda x, hx: loop(lru, x, hx), x, hx)
    for one, other in zip(actual, expected, strict=True):
        # What no output depends on has the gradient zero here and none there.
        other = torch.zeros_like(one) if other is None else other
        assert_close(one.detach(), other.detach(), 512)


def test_a_long_batch_and_a_single_sequence(assert_close):
    lru = layer(2, 6, 2, state_units=4, r_min=0.9)
    x = normal(1, 700, 2)
    output, h_n = lru(x[0])
    assert output.shape == (700, 6)
    expected, last = loop(lru, x, lru.initial_state(1))
    assert_close(output.detach(), expected[0].detach(), 4096)
    assert_close(h_n.detach(), last[:, 0].detach(), 4096)


def test_the_linear_layer_is_a_convolution_with_powers(assert_close):
    lru = layer(1, 3, mlp=False, state_units=4, r_min=0.5)
    impulse = torch.zeros(1, 12, 1, dtype=torch.float64)
    impulse[0, 0] = 1.0
    response = lru(impulse)[0][0].detach()
    (eigenvalue,) = lru.eigenvalues()
    powers = eigenvalue ** torch.arange(12)[:, None]
    C = torch.complex(*lru.C_l0.detach().unflatten(1, (2, -1)).unbind(1)).conj()
    kernel = ((powers * lru.input_weights()[:, 0]) @ C.T).real
    kernel[0] += lru.D_l0.detach()[:, 0]
    assert_close(response, kernel)


def test_gradients_against_finite_differences():
    lru = layer(2, 3, 2, state_units=2)
    x = normal(2, 4, 2).requires_grad_()
    hx = normal(2, 2, lru.state_size, seed=1).requires_grad_()
    assert torch.autograd.gradcheck(lambda x, hx: lru(x, hx, [4, 2]), (x, hx))


@pytest.mark.parametrize("ring", [(0.0, 1.0, 2 * math.pi), (0.4, 0.8, 1.0), (0.99, 1.0, 3.0)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_eigenvalues_are_uniform_on_the_ring(ring, dtype):
    r_min, r_max, max_phase = ring
    lru = LRU(1, 1, state_units=4000, r_min=r_min, r_max=r_max, max_phase=max_phase, dtype=dtype)
    lru.reset_parameters(torch.Generator().manual_seed(0))
    nu, angle = lru.nu_log_l0.detach().double().exp(), lru.theta_log_l0.detach().double().exp()
    area = (torch.exp(-2 * nu) - r_min**2) / (r_max**2 - r_min**2)
    for uniform in (area, angle / max_phase):
        assert kstest(uniform.numpy(), "uniform").pvalue > 0.01
    assert abs(np.corrcoef(area, angle)[0, 1]) < 0.05
    gamma = lru.gamma_log_l0.detach().exp()
    torch.testing.assert_close(gamma.double(), torch.sqrt(-torch.expm1(-2 * nu)), rtol=1e-5, atol=0)
    assert all(torch.isfinite(p).all() for p in lru.parameters())


def test_states_have_the_variance_of_white_inputs():
    lru = layer(3, 4, mlp=False, state_units=400, r_max=0.95, dtype=torch.float32)
    x = torch.randn(200, 100, 3, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        state = lru(x)[1][0, :, :800]
    assert state.square().sum(1).mean() / 400 == pytest.approx(1.0, abs=0.1)


def test_a_random_recurrence_is_no_parameter():
    lru, trained = layer(2, 4, 2, trainable_recurrence=False), layer(2, 4, 2)
    names = {f"{name}_l{i}" for name in ("nu_log", "theta_log", "gamma_log", "B") for i in (0, 1)}
    assert dict(lru.named_buffers()).keys() == names
    assert dict(trained.named_parameters()).keys() == dict(lru.named_parameters()).keys() | names
    assert lru.state_dict().keys() == trained.state_dict().keys()
    assert lru.recurrent_parameters() == []
    assert [p.shape for p in trained.recurrent_parameters()] == [(4,)] * 6
    x = normal(3, 5, 2)
    assert torch.equal(lru(x)[0], trained(x)[0])


def test_recurrent_blocks_are_the_eigenvalues():
    lru = layer(2, 6, 2, state_units=5)
    for blocks, eigenvalue in zip(lru.recurrent_blocks(), lru.eigenvalues(), strict=True):
        assert blocks.shape == (5, 2, 2)
        assert not blocks.requires_grad
        assert not eigenvalue.requires_grad
        for block, value in zip(blocks, eigenvalue, strict=True):
            torch.testing.assert_close(
                torch.linalg.eigvals(block).imag.abs(), value.imag.abs().expand(2)
            )
            torch.testing.assert_close(torch.linalg.eigvals(block).real, value.real.expand(2))
    assert len(lru.matrix_names) == 1


def test_recurrence_features_are_read_from_the_eigenvalues():
    lru = layer(2, 6, 2, state_units=5)
    features = recurrence_features(lru)
    eigenvalues = torch.cat(lru.eigenvalues()).numpy()
    assert len(features) == 10
    assert set(features["type"]) == {"C-1"}
    np.testing.assert_allclose(features["modulus"], np.abs(eigenvalues), rtol=1e-12)
    np.testing.assert_allclose(features["angle"], np.abs(np.angle(eigenvalues)), rtol=1e-9)
    nu = torch.cat([lru.nu_log_l0, lru.nu_log_l1]).detach().exp().numpy()
    np.testing.assert_allclose(features["half_life"], np.log(2) / nu, rtol=1e-9)


def test_it_learns_what_it_can_represent():
    """A sum of damped waves of the input, from data."""
    torch.manual_seed(0)
    x = torch.randn(8, 40, 1)
    teacher, lru = (
        LRU(1, 1, state_units=2, r_min=0.5, mlp=False),
        LRU(1, 1, state_units=6, mlp=False),
    )
    with torch.no_grad():
        y = teacher(x)[0]
    optimiser = torch.optim.Adam(lru.parameters(), lr=0.05)
    for _ in range(120):
        optimiser.zero_grad()
        loss = (lru(x)[0] - y).square().mean()
        loss.backward()
        optimiser.step()
    assert loss < 1e-2 * y.var()


def test_sizes_are_shown():
    assert "2, 6, state_units=3, num_layers=1" in repr(layer(2, 6, state_units=3))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"state_units": 0}, "state_units must be a positive integer; got 0"),
        ({"mlp": (4, 0)}, r"or a list of widths, positive integers; got \(4, 0\)"),
        ({"mlp": "big"}, "mlp must be True, False, a width .* got 'big'"),
        ({"r_min": 0.9, "r_max": 0.5}, r"r_min <= r_max.*got r_min=0\.9, r_max=0\.5"),
        ({"r_min": -0.1}, r"got r_min=-0\.1"),
        ({"r_max": 1.1}, r"got r_min=0\.0, r_max=1\.1"),
        ({"r_min": 1.0}, "not both 1"),
        ({"r_max": 0.0}, "not both 0"),
        ({"r_max": float("nan")}, "r_max=nan"),
        ({"max_phase": 0.0}, r"max_phase must lie in \(0, 2 pi\]; got 0\.0"),
        ({"max_phase": 6.3}, r"got 6\.3"),
    ],
)
def test_errors_of_the_constructor(arguments, message):
    with pytest.raises(ValueError, match=message):
        LRU(**({"input_size": 2, "hidden_size": 4} | arguments))


def with_ones(lru):
    """The layer of the inputs (1, u) with B of equation (15): row 0 reads 1, the others u."""
    plain = layer(1 + lru.input_size, lru.hidden_size, lru.num_layers, mlp=lru.widths or False,
                  state_units=lru.state_units)  # fmt: skip
    values = {name: value.clone() for name, value in lru.state_dict().items()}
    B = torch.zeros(2, lru.state_units, 1 + lru.input_size, dtype=torch.float64)
    B[0, 0, 0] = 1
    B[:, 1:, 1:] = values["B_l0"].view(2, lru.state_units - 1, lru.input_size)
    values["B_l0"] = B.flatten(0, 1)
    values["D_l0"] = torch.nn.functional.pad(values["D_l0"], (1, 0))
    plain.load_state_dict(values)
    return plain


@settings(deadline=None, max_examples=20)
@given(
    sizes=st.tuples(st.integers(1, 3), st.integers(1, 12), st.integers(1, 5)),
    units=st.integers(2, 5),
    num_layers=st.integers(1, 3),
    steps=st.integers(1, 8),
    trainable=st.booleans(),
    data=st.data(),
)
def test_a_constant_input_is_an_input_of_ones(
    sizes, units, num_layers, steps, trainable, data, assert_close
):
    batch, inputs, hidden = sizes
    lru = layer(inputs, hidden, num_layers, state_units=units, constant_input=True,
                trainable_recurrence=trainable)  # fmt: skip
    assert lru.state_size == 2 * units + hidden
    plain = with_ones(lru)
    x, hx = normal(batch, steps, inputs), normal(num_layers, batch, lru.state_size, seed=1)
    lengths = data.draw(st.lists(st.integers(0, steps), min_size=batch, max_size=batch))
    both = torch.cat([torch.ones_like(x[..., :1]), x], -1)
    for given_lengths in (None, lengths):
        output, h_n = lru(x, hx, given_lengths)
        expected, last = plain(both, hx, given_lengths)
        assert_close(output.detach(), expected.detach(), 512)
        assert_close(h_n.detach(), last.detach(), 512)
    loss, other = lru(x, hx)[0].square().sum(), plain(both, hx)[0].square().sum()
    names = [name for name, _ in lru.named_parameters() if name not in ("B_l0", "D_l0")]
    one = torch.autograd.grad(loss, [lru.get_parameter(name) for name in names], allow_unused=True)
    two = torch.autograd.grad(
        other, [plain.get_parameter(name) for name in names], allow_unused=True
    )
    for left, right in zip(one, two, strict=True):
        if right is not None:
            assert_close(left, right, 4096)


def test_a_constant_input_tells_time():
    lru = layer(2, 3, 2, state_units=4, r_min=0.5, constant_input=True)
    x = normal(2, 9, 2)
    output, h_n = lru(x)
    eigenvalue, gamma = lru.eigenvalues()[0][0], lru.gamma_log_l0[0].detach().exp()
    expected = gamma * (eigenvalue**9 - 1) / (eigenvalue - 1)  # equation (20)
    known = torch.complex(h_n[0, :, 0], h_n[0, :, 4]).detach()
    torch.testing.assert_close(known, expected.expand(2))
    assert not lru.input_weights()[0].any()
    assert not torch.equal(lru.outputs(lru(x[:, :1])[1][-1]), output[:, -1])


def test_without_inputs_for_the_state_a_constant_is_refused():
    with pytest.raises(ValueError, match="state_units must be at least 2 .* got 1"):
        layer(2, 4, state_units=1, constant_input=True)
    with pytest.raises(TypeError, match="constant_input must be either True or False; got 1"):
        layer(2, 4, constant_input=1)
