"""Memory lengths and the inverse of the recurrence against known answers."""

import numpy as np
import pytest
import torch

from tsrnn.interpret import elapsed_steps, memory_lengths, reconstruct_input, recurrence_features
from tsrnn.layers import LRU, ParaRNN


def layer(*args, seed=0, **kwargs):
    torch.manual_seed(seed)
    return LRU(*args, **{"dtype": torch.float64, **kwargs})


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def with_eigenvalues(moduli, angles, **kwargs):
    lru = layer(1, 2, state_units=len(moduli), **kwargs)
    with torch.no_grad():
        lru.nu_log_l0.copy_(torch.tensor(-np.log(moduli)).log())
        lru.theta_log_l0.copy_(torch.tensor(angles).log())
    return lru


def with_roots_of_one(count):
    """Eigenvalues all around the circle, nearly on it, and B = (1, ..., 1)."""
    angles = 2 * np.pi * np.arange(1, count + 1) / count
    lru = with_eigenvalues(np.full(count, 1 - 1e-12), angles)
    with torch.no_grad():
        lru.gamma_log_l0.zero_()
        lru.B_l0.copy_(torch.cat([torch.ones(count, 1), torch.zeros(count, 1)]))
    return lru


def reconstructed(lru, x):
    with torch.no_grad():
        return reconstruct_input(lru, lru(x)[1], x.shape[-2])


def test_memory_is_the_number_of_steps_until_the_share_is_left():
    moduli, angles = [0.5, 0.9, 0.99, 0.1], [1.0, 2.0, 4.0, 0.25]
    table = memory_lengths(with_eigenvalues(moduli, angles), share=0.05)
    np.testing.assert_allclose(table["modulus"], moduli)
    np.testing.assert_allclose(table["angle"], [1.0, 2.0, 4.0 - 2 * np.pi, 0.25])
    np.testing.assert_allclose(table["half_life"], np.log(0.5) / np.log(moduli))
    np.testing.assert_allclose(table["period"], 2 * np.pi / table["angle"].abs())
    for modulus, memory in zip(moduli, table["memory"], strict=True):
        counted = next(k for k in range(1000) if modulus**k < 0.05)
        assert memory == counted
    assert table["unit"].tolist() == [1, 2, 3, 4]


def test_memory_has_the_layers_and_times_of_recurrence_features():
    lru = layer(2, 3, 2, state_units=4)
    table, features = memory_lengths(lru, freq="15min"), recurrence_features(lru, freq="15min")
    assert table["layer"].tolist() == features["layer"].tolist() == [1] * 4 + [2] * 4
    np.testing.assert_allclose(table["half_life"], features["half_life"], rtol=1e-9)
    np.testing.assert_allclose(table["period"], features["period"], rtol=1e-9)
    assert table.attrs == features.attrs == {"time_unit": "minutes", "time_step": 15.0}
    assert (table["memory"] % 15 == 0).all()


@pytest.mark.parametrize("nu_log", [-14.0, -30.0])
def test_a_modulus_that_rounds_to_one_keeps_its_memory(nu_log):
    lru = layer(1, 1, dtype=torch.float32)
    with torch.no_grad():
        lru.nu_log_l0.fill_(nu_log)
    (row,) = memory_lengths(lru).itertuples()
    assert row.modulus <= 1
    assert row.half_life == pytest.approx(np.log(2) * np.exp(-nu_log), rel=1e-9)
    assert row.memory == pytest.approx(np.log(100) * np.exp(-nu_log), rel=1e-6)


@pytest.mark.parametrize("channels", [1, 2, 3])
@pytest.mark.parametrize("num_layers", [1, 2])
def test_few_steps_are_read_back_exactly(channels, num_layers):
    lru = layer(channels, 4, num_layers, state_units=6, r_min=0.7)
    x = normal(3, 12 // channels, channels)  # as many unknowns as real numbers in the state
    found = reconstructed(lru, x)
    assert found.inputs.shape == x.shape
    np.testing.assert_allclose(found.inputs, x, atol=1e-13 * found.condition_number, rtol=0)
    one = reconstructed(lru, x[0])
    np.testing.assert_allclose(one.inputs, found.inputs[0], rtol=0, atol=1e-9)
    assert one.condition_number == found.condition_number < 1e7


def test_the_condition_number_is_that_of_the_response_to_impulses():
    lru, steps = layer(2, 3, state_units=8, r_min=0.8), 5
    impulses = torch.eye(2 * steps, dtype=torch.float64).view(-1, steps, 2)
    matrix = lru(impulses)[1][0, :, :16].detach().numpy().T
    found = reconstructed(lru, normal(1, steps, 2))
    assert found.condition_number == pytest.approx(np.linalg.cond(matrix), rel=1e-9)


def test_roots_of_one_have_the_condition_number_one():
    """Section 3.1: the matrix is then a discrete Fourier transform."""
    lru, x = with_roots_of_one(64), normal(2, 64, 1)
    found = reconstructed(lru, x)
    assert found.condition_number == pytest.approx(1.0, abs=1e-6)
    np.testing.assert_allclose(found.inputs, x, atol=1e-9, rtol=0)


def test_real_eigenvalues_are_worse_conditioned_the_more_there_are():
    """Section 3.1: exponentially, where complex ones need not be."""
    logs = []
    for count in (4, 6, 8):
        moduli = np.linspace(0.2, 0.95, count)
        angles = np.full(count, 2 * np.pi)
        found = reconstructed(with_eigenvalues(moduli, angles), normal(1, count, 1))
        logs.append(np.log10(found.condition_number))
    assert (np.diff(logs) > 1.0).all()
    assert logs[-1] > 6


def test_the_error_of_a_noisy_state_grows_with_the_condition_number():
    """Appendix E.1: r_min near 1 conditions well, and the error follows."""
    x, noise = normal(20, 48, 1), 1e-9 * normal(1, 20, 2 * 64, seed=1)
    conditions, errors = [], []
    for r_min in (0.2, 0.6, 0.9, 0.99):
        lru = layer(1, 1, state_units=64, r_min=r_min)
        state = lru(x)[1].detach()
        state[..., :128] += noise
        found = reconstruct_input(lru, state, 48)
        conditions.append(found.condition_number)
        errors.append(np.sqrt(np.mean((found.inputs - x.numpy()) ** 2)))
    assert (np.diff(conditions) < 0).all()
    assert (np.diff(errors) < 0).all()
    assert errors[0] > 100 * errors[-1]


def test_what_cannot_be_read_back_is_the_distant_past():
    lru, x = layer(1, 1, state_units=60, r_min=0.0, r_max=0.95), normal(50, 100, 1)
    found = reconstructed(lru, x)
    error = np.abs(found.inputs - x.numpy()).mean((0, 2))
    assert error[-10:].max() < 1e-3 < 0.3 < error[:30].min()
    assert found.condition_number > 1e12


def test_fewer_states_than_steps_do_not_determine_the_input_but_explain_the_state():
    lru, x = layer(1, 1, state_units=4, r_min=0.9), normal(2, 20, 1)
    found = reconstructed(lru, x)
    assert found.condition_number == np.inf
    assert np.linalg.norm(found.inputs) < np.linalg.norm(x)
    again = lru(torch.from_numpy(found.inputs))[1]
    np.testing.assert_allclose(again[..., :8].detach(), lru(x)[1][..., :8].detach(), atol=1e-10)


def test_single_precision_leaves_out_what_is_lost_in_rounding():
    double = layer(1, 1, state_units=40, r_min=0.3)
    single = LRU(1, 1, state_units=40, dtype=torch.float32)
    single.load_state_dict(double.state_dict())
    x = normal(4, 60, 1)
    error = np.abs(reconstructed(single, x.float()).inputs - x.numpy())[..., 0].mean(0)
    assert error.max() < 10  # the plain inverse would give 1e5 and more
    assert error[-5:].max() < 1e-2


def test_sparse_inputs_are_read_back_from_a_small_state():
    lru = layer(2, 1, state_units=12, r_min=0.95)
    basis = normal(8, 200, 2, seed=3).numpy()
    alpha = normal(5, 8, seed=4).numpy()
    x = np.einsum("bp,ptm->btm", alpha, basis)
    state = lru(torch.from_numpy(x))[1].detach()
    found = reconstruct_input(lru, state, 200, basis=basis)
    np.testing.assert_allclose(found.inputs, x, atol=1e-8)
    assert found.condition_number < 1e4
    assert reconstruct_input(lru, state, 200).condition_number == np.inf


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"steps": 0}, "steps must be a positive integer; got 0"),
        ({"steps": 2.0}, r"steps must be a positive integer; got 2\.0"),
        ({"state": torch.zeros(3, 10)}, r"\(2, B, 10\) or \(2, 10\).*got \(3, 10\)"),
        ({"state": torch.zeros(2, 1, 9)}, r"got \(2, 1, 9\)"),
        ({"basis": np.zeros((3, 4))}, r"basis must be numbers of shape \(P, 4, 2\).*got \(3, 4\)"),
        ({"basis": np.zeros((0, 4, 2))}, "P >= 1"),
        ({"basis": "a"}, r"basis must be numbers of shape \(P, 4, 2\) .* got 'a'"),
        ({"steps": True}, "steps must be a positive integer; got True"),
        ({"steps": None}, "steps must be a positive integer; got None"),
        ({"state": torch.zeros(2, 1, 10).int()}, "float32 or torch.float64; got torch.int32"),
    ],
)
def test_errors_of_a_reconstruction(arguments, message):
    lru = layer(2, 4, 2, state_units=3)
    given = {"layer": lru, "state": torch.zeros(2, 1, 10), "steps": 4} | arguments
    with pytest.raises(ValueError, match=message):
        reconstruct_input(**given)


def test_numpy_integers_are_integers():
    lru, x = layer(1, 2), normal(2, 4, 1)
    state = lru(x)[1].detach()
    found = reconstruct_input(lru, state, steps=np.int64(4))
    np.testing.assert_array_equal(found.inputs, reconstruct_input(lru, state, 4).inputs)
    assert memory_lengths(lru, freq=np.int32(5)).attrs["time_unit"] == "index units"


@pytest.mark.parametrize("state", [[1, 2], np.zeros((1, 6)), None])
def test_a_state_is_a_tensor(state):
    with pytest.raises(TypeError, match=r"^state.* must be .*; got (list|ndarray|None)\. "):
        reconstruct_input(layer(1, 2), state, 5)


@pytest.mark.parametrize("share", [0.0, 1.0, float("nan"), "a", None, True])
def test_a_share_lies_between_zero_and_one(share):
    with pytest.raises(ValueError, match="share must be a number between 0 and 1; got"):
        memory_lengths(layer(1, 2), share=share)


@pytest.mark.parametrize("call", [memory_lengths, lambda rnn: reconstruct_input(rnn, None, 2)])
def test_other_layers_are_refused(call):
    with pytest.raises(TypeError, match=r"must be a tsrnn\.layers\.LRU, .*; got ParaRNN"):
        call(ParaRNN(1, 2))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("r_min", [0.5, 0.9, 0.99, 0.9999])
def test_the_time_is_read_from_the_state_or_refused(r_min, dtype):
    """Equation (27): no number of steps but the right one, in parts of any length."""
    total = 0
    lru = layer(1, 2, state_units=3, r_min=r_min, constant_input=True, mlp=False, dtype=dtype)
    state = lru.initial_state(2)
    assert elapsed_steps(lru, state).tolist() == [0, 0]
    for steps in [1] * 15 + [7] * 10 + [61] * 10 + [997] * 5:
        with torch.no_grad():
            state = lru(normal(2, steps, 1, seed=steps).to(dtype), state)[1]
        total += steps
        try:
            read = elapsed_steps(lru, state)
        except ValueError:
            break
        assert read.tolist() == [total, total]
    else:
        total = np.inf
    assert total > {0.5: 15, 0.9: 60, 0.99: 500, 0.9999: 5000}[r_min]
    if np.isfinite(total):
        with pytest.raises(ValueError, match="rounding hides it, as the first eigenvalue"):
            elapsed_steps(lru, state)


def test_inputs_sparse_in_a_basis_are_read_back_with_the_time():
    """Proposition 7: of every k, with no access to it, B of equation (15), M inputs and R M + 1
    states, which are far fewer than the inputs.
    """
    M, R, P, L = 2, 8, 6, 120
    lru = layer(M, 1, state_units=R * M + 1, r_min=0.97, constant_input=True, mlp=False)
    with torch.no_grad():
        B = torch.zeros(2, R * M, M, dtype=torch.float64)
        for m in range(M):
            B[0, m * R : (m + 1) * R, m] = 1
        lru.B_l0.copy_(B.flatten(0, 1))
        lru.gamma_log_l0.zero_()
    basis, alpha = normal(P, L, M, seed=3).numpy(), normal(4, P, seed=4).numpy()
    u = np.einsum("bp,ptm->btm", alpha, basis)
    state = None
    for k in range(1, L + 1):
        with torch.no_grad():
            state = lru(torch.from_numpy(u[:, k - 1 : k]), state)[1]
        read = elapsed_steps(lru, state)
        assert read.tolist() == [k] * 4
        if k * M < P:  # the first inputs do not determine the coefficients, but are read back
            continue
        found = reconstruct_input(lru, state, basis=basis[:, :k])
        assert found.inputs.shape == (4, k, M)
        error = np.abs(found.inputs - u[:, :k]).max()
        assert error < 1e-12 * found.condition_number


def test_states_of_several_lengths_are_read_one_after_the_other():
    lru = layer(1, 2, state_units=6, r_min=0.9, constant_input=True)
    state = lru(normal(2, 5, 1), lengths=[5, 3])[1].detach()
    assert elapsed_steps(lru, state).tolist() == [5, 3]
    assert elapsed_steps(lru, state[:, 0]) == 5
    with pytest.raises(ValueError, match=r"sequences of one length .* got lengths \[3, 5\]"):
        reconstruct_input(lru, state)
    assert reconstruct_input(lru, state[:, 1]).inputs.shape == (3, 1)


def test_the_time_needs_a_constant_input():
    lru = layer(1, 2)
    with pytest.raises(ValueError, match="constant_input=False. Build it with"):
        elapsed_steps(lru, lru.initial_state(1))
    with pytest.raises(TypeError, match="LRU"):
        elapsed_steps(ParaRNN(1, 2), torch.zeros(1, 2))
