"""LEMs with the weights of the proofs against direct simulations, with errors and bounds."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tsrnn.interpret import (
    TanhMap,
    lem_of_fast_slow_ode,
    lem_of_multiscale_system,
    lem_of_system,
    lem_of_two_scale_system,
)


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def random_map(size, sizes, width, inputs=2, seed=0, gain=0.7):
    return TanhMap(
        gain * normal(size, width, seed=seed) / width**0.5,
        [normal(width, d, seed=seed + 1 + i) / d**0.5 for i, d in enumerate(sizes)],
        normal(width, inputs, seed=seed + 50) if inputs else None,
        0.3 * normal(width, seed=seed + 60),
    )


def value(f, *states, u):
    """W tanh(sum W_i h_i + V u + b) by numpy."""
    total = f.bias.numpy() if f.bias is not None else 0.0
    total = total + sum(m.numpy() @ h for m, h in zip(f.states, states, strict=True))
    if f.inputs is not None:
        total = total + f.inputs.numpy() @ u
    return f.output.numpy() @ np.tanh(total)


def direct(f, output, u):
    """Equation (8)."""
    phi, outputs = np.zeros(f.output.shape[0]), []
    for u_n in u.numpy():
        phi = value(f, phi, u=u_n)
        outputs.append(phi if output is None else value(output, phi, u=u_n))
    return torch.as_tensor(np.array(outputs))


def distance(system, expected, u):
    return (system.outputs(u) - expected).norm(dim=1).max().item()


@pytest.mark.parametrize("width", [2, 7])
@pytest.mark.parametrize("outer", [0, 5])
def test_a_system_is_reproduced(width, outer):
    f = random_map(3, [3], width)
    output = random_map(4, [3], outer, inputs=0, seed=9) if outer else None
    u = normal(60, 2, seed=3)
    expected = direct(f, output, u)
    system = lem_of_system(f, output)
    torch.testing.assert_close(system.simulate(u), expected, rtol=0, atol=1e-13)
    assert distance(system, expected, u) < 1e-7
    assert system.layer.dt == 1
    assert system.layer.hidden_size == max(width, 3 + outer)
    assert system.outputs(u).shape == (60, 4 if outer else 3)
    # An error of the square of the scale, which is none of the construction itself.
    errors = [distance(lem_of_system(f, output, scale=c), expected, u) for c in (0.1, 0.01)]
    assert math.log10(errors[0] / errors[1]) == pytest.approx(2, abs=0.2)


def test_the_weights_are_those_of_equation_72():
    f = TanhMap(*(normal(3, 3, seed=i) if i != 1 else [normal(3, 3, seed=1)] for i in range(3)),
                bias=normal(3, seed=4))  # fmt: skip
    output = TanhMap(normal(2, 3, seed=5), [normal(3, 3, seed=6)], bias=normal(3, seed=7))
    system = lem_of_system(f, output, scale=0.01)
    W, b = system.layer.weight_hh_l0[..., 0], system.layer.bias_l0.unflatten(0, (4, 6))
    V = system.layer.weight_ih_l0.unflatten(0, (4, 6))
    zero = torch.zeros(3, 3).double()
    assert not torch.cat([W[:2].flatten(), V[:2].flatten(), V[3].flatten()]).any()
    assert torch.equal(torch.sigmoid(b[:2]), torch.ones(2, 6).double())
    torch.testing.assert_close(W[2], torch.cat(
        [torch.cat([f.states[0] / 0.01, zero], 1), torch.zeros(3, 6).double()]))  # fmt: skip
    torch.testing.assert_close(W[3], torch.cat(
        [torch.cat([0.01 * f.output, zero], 1),
         torch.cat([output.states[0] @ f.output, zero], 1)]))  # fmt: skip
    torch.testing.assert_close(V[2], torch.cat([f.inputs, zero]))
    torch.testing.assert_close(b[2], torch.cat([f.bias, zero[0]]))
    torch.testing.assert_close(b[3], torch.cat([zero[0], output.bias]))
    torch.testing.assert_close(system.readout, torch.cat([zero[:2], output.output], 1))


@settings(deadline=None, max_examples=15)
@given(
    seed=st.integers(0, 500), scale=st.sampled_from([1e-1, 1e-2]), gain=st.sampled_from([0.3, 2])
)
def test_errors_stay_below_the_bounds_of_the_proofs(seed, scale, gain):
    u = normal(12, 2, seed=seed)
    f = random_map(3, [3], 5, seed=seed, gain=gain)
    table = lem_of_system(f, scale=scale).errors(u)
    assert list(table["step"]) == list(range(1, 13))
    assert (table["error"] <= table["bound"] + 1e-13).all()
    f = random_map(2, [2, 1], 4, seed=seed, gain=gain)
    g = random_map(1, [2, 1], 3, seed=seed + 7, gain=gain)
    for tau in (1.0, 0.1, 0.01):
        table = lem_of_two_scale_system(f, g, tau, scale=scale).errors(u)
        assert (table["error"] <= table["bound"] + 1e-13).all()
        assert (table["error"] < 10 * scale**2 / tau).all() or gain > 1


def test_the_bound_is_equation_58():
    f = TanhMap(2.0 * torch.eye(2).double(), [0.25 * torch.eye(2).double()])
    table = lem_of_system(f, scale=0.01).errors(torch.zeros(3, 1).double())
    epsilon = 2**0.5 * 0.01**2 * 2.0**3 / 3
    np.testing.assert_allclose(table["bound"], 2 * epsilon * np.array([1, 1.5, 1.75]))


def test_a_function_that_is_no_network_is_approximated_as_the_proof_does():
    """Logistic growth with noise, by a network with random hidden units."""

    def truth(phi, u):
        return 0.8 * phi * (1 - phi) + 0.1 * np.sin(3 * u) + 0.2

    generator = np.random.default_rng(0)
    points = generator.uniform(-1, 1, (3000, 2))
    inner = generator.normal(size=(2, 60)) * 1.5
    shift = generator.normal(size=60)
    hidden = np.tanh(points @ inner + shift)
    outer = np.linalg.lstsq(hidden, truth(*points.T), rcond=1e-10)[0]
    f = TanhMap(
        torch.as_tensor(outer[None]), [torch.as_tensor(inner[:1].T)],
        torch.as_tensor(inner[1:].T), torch.as_tensor(shift),
    )  # fmt: skip
    epsilon = np.abs(hidden @ outer - truth(*points.T)).max()
    u = generator.uniform(-1, 1, 200)
    phi, path = 0.0, []
    for u_n in u:
        path.append(phi := truth(phi, u_n))
    assert max(abs(phi) for phi in path) < 1
    outputs = lem_of_system(f).outputs(torch.as_tensor(u[:, None]))[:, 0].numpy()
    lipschitz = 0.8 * (1 - 2 * min(path))  # of the logistic map along the path
    assert np.abs(outputs - path).max() < 2 * epsilon / (1 - lipschitz) + 1e-7
    assert np.abs(outputs - path).max() < 1e-3 < np.std(path) / 10


@pytest.mark.parametrize("tau", [1.0, 0.1, 1e-4])
def test_two_scales_are_reproduced(tau):
    f, g = random_map(2, [2, 3], 5), random_map(3, [2, 3], 4, seed=20)
    u = normal(80, 2, seed=3)
    phi, psi, outputs = np.zeros(2), np.zeros(3), []
    for u_n in u.numpy():
        phi = value(f, phi, psi, u=u_n)
        psi = tau * value(g, phi, psi, u=u_n)
        outputs.append(psi)
    expected = torch.as_tensor(np.array(outputs))
    system = lem_of_two_scale_system(f, g, tau)
    assert distance(system, expected, u) < 1e-7 * expected.norm(dim=1).max()
    gates = torch.sigmoid(system.layer.bias_l0.unflatten(0, (4, -1))[:2])
    assert torch.equal(gates[0], torch.ones_like(gates[0]))
    torch.testing.assert_close(gates[1, :7], torch.full((7,), tau).double())  # (92)
    assert torch.equal(gates[1, 7:], torch.ones_like(gates[1, 7:]))


def test_the_size_does_not_depend_on_the_time_scale_but_weights_do():
    f, g = random_map(2, [2, 2], 3), random_map(2, [2, 2], 3, seed=20)
    systems = [lem_of_two_scale_system(f, g, tau) for tau in (0.5, 1e-3, 1e-6)]
    assert {s.layer.hidden_size for s in systems} == {7}
    assert not torch.equal(systems[0].layer.bias_l0, systems[1].layer.bias_l0)
    largest = [s.readout.abs().max().item() for s in systems]
    np.testing.assert_allclose(largest, [1e4, 999e4, 999999e4])  # (1 / tau - 1) / scale


def test_r_scales_are_reproduced():
    taus, sizes = [1e-3, 0.05, 1.0], [1, 3, 2]
    maps = [random_map(d, sizes, 4 + d, seed=70 + 10 * d) for d in sizes]
    u = normal(80, 2, seed=3)
    phi, outputs = [np.zeros(d) for d in sizes], []
    for u_n in u.numpy():
        phi = [tau * value(f, *phi, u=u_n) for tau, f in zip(taus, maps, strict=True)]
        outputs.append(np.concatenate(phi))
    system = lem_of_multiscale_system(maps, taus)
    expected = torch.as_tensor(np.array(outputs))
    assert distance(system, expected, u) < 1e-7
    assert (system.outputs(u)[:, 0] - expected[:, 0]).abs().max() < 1e-10  # of the size 1e-3
    other = lem_of_multiscale_system(maps, [1e-6, 1e-3, 0.5])
    assert other.layer.hidden_size == system.layer.hidden_size
    assert np.isnan(system.errors(u)["bound"]).all()


def test_a_fast_slow_equation_is_solved_with_steps_that_do_not_know_its_scale():
    # phi' = (tanh(psi) - phi) / tau, psi' = -phi: psi' = -tanh(psi) in the limit, from sinh.
    unit = torch.ones(1, 1).double()
    f = TanhMap(unit, [unit])
    # -phi and the input by identity networks of the scale 0.01.
    g = TanhMap(
        torch.tensor([[-100.0, 100.0]]).double(),
        [0.01 * torch.eye(2).double()[:, :1], torch.zeros(2, 1).double()],
        0.01 * torch.eye(2).double()[:, 1:],
    )
    u = torch.zeros(400, 1).double()
    u[0] = 100.0  # takes psi from zero to tanh(1) in the first step
    system = lem_of_fast_slow_ode(f, g, step=0.01, micro_step=0.5, micro_steps=10)
    phi, psi, path = 0.0, 0.0, []
    for u_n in u[:, 0].tolist():
        for _ in range(10):
            phi += 0.5 * (math.tanh(psi) - phi)
        psi += 0.01 * (-math.tanh(0.01 * phi) + math.tanh(0.01 * u_n)) / 0.01
        path.append([phi, psi])
    expected = torch.as_tensor(path, dtype=torch.float64)
    assert distance(system, expected, u) < 1e-6
    torch.testing.assert_close(system.simulate(u), expected, rtol=0, atol=1e-9)
    start = expected[0, 1].item()
    exact = np.arcsinh(np.sinh(start) * np.exp(-0.01 * np.arange(400)))
    assert np.abs(system.outputs(u)[:, 1].numpy() - exact).max() < 0.01  # of the order of the step


def test_gates_of_a_fast_slow_equation():
    f, g = random_map(1, [1], 2, inputs=0), random_map(1, [1, 1], 3, inputs=0, seed=9)
    layer = lem_of_fast_slow_ode(f, g, step=0.2, micro_step=0.3, micro_steps=4).layer
    gates = torch.sigmoid(layer.bias_l0.unflatten(0, (4, -1))[:2])
    torch.testing.assert_close(gates[0, :2], torch.full((2,), 1 - 0.7**4).double())
    torch.testing.assert_close(gates[1, :4], torch.full((4,), 0.2).double())


def test_arguments_are_checked():
    f = random_map(2, [2], 3)
    for make in (lambda: lem_of_system(torch.tanh), lambda: lem_of_multiscale_system([1.0], [1.0])):
        with pytest.raises(TypeError, match=r"maps must be tsrnn\.interpret\.TanhMap; got"):
            make()
    for bad, error, message in (
        ([[0.0, 0.0]], TypeError, "u must be a torch.Tensor; got list"),
        (torch.zeros(2, 3, 2).double(), ValueError, r"u must have shape \(T, 2\).*\(2, 3, 2\)"),
        (torch.zeros(3, 1).double(), ValueError, r"one sequence; got \(3, 1\)"),
        (torch.zeros(3, 2), ValueError, "dtype"),
    ):
        with pytest.raises(error, match=message):
            lem_of_system(f).errors(bad)
    with pytest.raises(ValueError, match="u must be given, 2 inputs of the map"):
        f(torch.zeros(2).double())
    with pytest.raises(ValueError, match="at least one TanhMap"):
        lem_of_multiscale_system([], [])
    with pytest.raises(ValueError, match=r"must read states of the sizes \[2, 2\]; got .*\[2\]"):
        lem_of_two_scale_system(f, f, 0.5)
    for bad in (0, -1.0, 2.0, float("nan"), "a", None, True):
        with pytest.raises(ValueError, match="scale must lie above 0 and be at most 1; got"):
            lem_of_system(f, scale=bad)
    both = random_map(2, [2, 2], 3)
    with pytest.raises(ValueError, match="tau must lie above 0"):
        lem_of_two_scale_system(both, both, 0.0)
    with pytest.raises(ValueError, match="inputs of one size; got \\[1, 2\\]"):
        lem_of_two_scale_system(both, random_map(2, [2, 2], 3, inputs=1), 0.5)
    with pytest.raises(ValueError, match="taus must be 1 numbers, one for every map; got 2"):
        lem_of_multiscale_system([f], [0.1, 1.0])
    with pytest.raises(ValueError, match="micro_steps must be a positive integer; got 0"):
        lem_of_fast_slow_ode(f, both, 0.1, 0.1, 0)


@pytest.mark.parametrize(
    ("weights", "error", "message"),
    [
        ({"output": [[1.0]]}, TypeError, "output must be a torch.Tensor; got list"),
        ({"output": torch.ones(1, 3)}, ValueError, r"dtype torch.float64 .* got \(1, 3\), .*32"),
        ({"output": normal(3)}, ValueError, r"shape \(any, any\); got \(3,\)"),
        ({"states": []}, TypeError, "states must be a sequence of matrices"),
        ({"states": normal(3, 2)}, TypeError, "states must be a sequence of matrices.*Tensor"),
        ({"states": [normal(2, 2)]}, ValueError, r"states\[0\] must .*\(3, any\); got \(2, 2\)"),
        ({"inputs": normal(2, 2)}, ValueError, r"inputs must .*\(3, any\); got \(2, 2\)"),
        ({"bias": normal(2)}, ValueError, r"bias must .*\(3\); got \(2,\)"),
        ({"bias": torch.full((3,), math.nan).double()}, ValueError, "bias must be finite"),
    ],
)
def test_weights_are_checked(weights, error, message):
    with pytest.raises(error, match=message):
        TanhMap(**({"output": normal(2, 3), "states": [normal(3, 2)]} | weights))


def test_steps_too_small_for_a_number_and_a_map_alone_are_refused():
    f, both = random_map(1, [1], 2), random_map(1, [1, 1], 2)
    with pytest.raises(ValueError, match="micro_step must be large enough"):
        lem_of_fast_slow_ode(f, both, 0.1, 1e-17, 2)
    with pytest.raises(TypeError, match="maps must be a sequence of TanhMap"):
        lem_of_multiscale_system(f, [0.1])
