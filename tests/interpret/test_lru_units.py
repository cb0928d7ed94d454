"""Numbers of states against roots of unity, brute force and the reconstruction itself."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tsrnn.interpret import choose_state_units, reconstruct_input
from tsrnn.layers import LRU


def test_roots_of_unity_have_the_condition_number_one():
    """Section 3.1: from N = length on; below the state does not determine the input."""
    choice = choose_state_units(24, roots_of_unity=True, units=[12, 23, 24, 36, 48])
    conditions = choice.table["condition_number"]
    assert np.isinf(conditions[[12, 23]]).all()
    np.testing.assert_allclose(conditions[[24, 36, 48]], 1, rtol=1e-12)
    assert choice.state_units == 24
    # The N-th roots cannot tell steps N apart: half the variance of each of two is lost.
    np.testing.assert_allclose(choice.table["error"][23], np.sqrt(1 / 24), rtol=1e-6)
    lost = choice.error_by_step.loc[23]
    np.testing.assert_allclose(lost[[1, 24]], np.sqrt(0.5), rtol=1e-6)
    assert lost[2:23].max() < 1e-6


@pytest.mark.slow
@settings(deadline=None, max_examples=15)
@given(
    length=st.integers(2, 12),
    count=st.integers(1, 10),
    n_functions=st.none() | st.integers(1, 5),
    r_min=st.sampled_from([0.0, 0.5, 0.9]),
    seed=st.integers(0, 5),
)
def test_errors_are_those_of_many_inputs(length, count, n_functions, r_min, seed):
    rng, noise = np.random.default_rng(seed), 1e-3
    basis = None if n_functions is None else rng.normal(size=(n_functions, length))
    choice = choose_state_units(
        length, basis=basis, units=[count], r_min=r_min, noise=noise, n_draws=1, random_state=seed
    )
    # The same draw of the layer, and its state with an error, inverted by numpy.
    lru = LRU(1, 1, state_units=count, r_min=r_min, mlp=False, dtype=torch.float64)
    lru.reset_parameters(torch.Generator().manual_seed(seed))
    powers = lru.eigenvalues()[0].numpy()[:, None] ** np.arange(length - 1, -1, -1)
    functions = np.eye(length) if basis is None else basis.T
    A = np.concatenate([powers.real, powers.imag]) @ functions
    alpha = rng.normal(size=(200_000, A.shape[1]))
    states = alpha @ A.T
    states += noise * np.sqrt(np.mean(A**2) * A.shape[1]) * rng.normal(size=states.shape)
    inverse = np.linalg.pinv(A, rcond=max(A.shape) * noise)
    error = (states @ inverse.T - alpha) @ functions.T
    size = np.mean(functions**2) * functions.shape[1]
    actual = np.sqrt(np.mean(error**2, 0) / size)
    np.testing.assert_allclose(choice.error_by_step.loc[count], actual, rtol=0.03, atol=1e-5)
    total = np.sqrt(np.mean(error**2) / size)
    np.testing.assert_allclose(choice.table["error"][count], total, rtol=0.03, atol=1e-5)
    values = np.linalg.svd(A, compute_uv=False)
    if 2 * count < A.shape[1]:
        assert choice.table["condition_number"][count] == np.inf
    elif values[0] / values[-1] < 1e10:
        np.testing.assert_allclose(
            choice.table["condition_number"][count], values[0] / values[-1], rtol=1e-6
        )


def test_the_choice_is_kept_by_layers_in_single_precision():
    """What is expected of the rounding of float32 is what reconstruct_input does with it."""
    choice = choose_state_units(40, r_min=0.95, tolerance=1e-3, random_state=0)
    x = torch.randn(50, 40, 1, generator=torch.Generator().manual_seed(1))
    errors = {}
    for count in choice.table.index:
        lru = LRU(1, 1, state_units=count, r_min=0.95, mlp=False)
        lru.reset_parameters(torch.Generator().manual_seed(2))
        with torch.no_grad():
            lru.gamma_log_l0.zero_()
            lru.B_l0.copy_(torch.arange(2 * count)[:, None] < count)
            read = reconstruct_input(lru, lru(x)[1], 40).inputs
        errors[count] = np.sqrt(np.mean((read - x.numpy()) ** 2) / np.mean(x.numpy() ** 2))
    assert errors[choice.state_units] < 1e-3 < errors[10]
    np.testing.assert_allclose(errors[10], choice.table["error"][10], rtol=0.1)


def test_more_states_and_larger_moduli_hold_more():
    """The pattern of Figure 4: errors fall in N and in r_min, and the past is lost first."""
    tables = {}
    for r_min in (0.0, 0.9, 0.99):
        choice = choose_state_units(64, r_min=r_min, units=[32, 64, 128], random_state=0)
        tables[r_min] = choice
        assert (np.diff(choice.table["error"]) < 0).all()
        assert (np.diff(choice.table["condition_number"][1:]) < 0).all()
    at_64 = [choice.table["error"][64] for choice in tables.values()]
    assert (np.diff(at_64) < 0).all()
    by_step = tables[0.0].error_by_step.loc[64]
    assert by_step[1:8].mean() > 0.3 > 1e-3 > by_step[60:].mean()


def test_functions_need_fewer_states():
    rng = np.random.default_rng(0)
    choice = choose_state_units(256, basis=rng.normal(size=(8, 256)), r_min=0.99, random_state=0)
    assert choice.table.index.tolist() == [2, 4, 8, 16]
    assert choice.state_units <= 16
    assert choose_state_units(256, r_min=0.99, units=16, random_state=0).state_units is None


def test_a_condition_number_may_be_asked_for():
    arguments = {"r_min": 0.9, "units": [16, 24, 32, 48, 64], "random_state": 0}
    free = choose_state_units(32, **arguments)
    bounded = choose_state_units(32, **arguments, max_condition=10.0)
    assert free.state_units < bounded.state_units
    assert bounded.table["condition_number"][bounded.state_units] <= 10


def test_draws_are_those_of_the_seed_and_nothing_is_drawn_globally():
    state = torch.get_rng_state()
    one = choose_state_units(16, units=[16], random_state=3)
    choose_state_units(16, units=[16], n_draws=1)
    assert torch.equal(torch.get_rng_state(), state)
    assert one.table.equals(choose_state_units(16, units=[16], random_state=3).table)
    assert not one.table.equals(choose_state_units(16, units=[16], random_state=4).table)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"length": 0}, "length must be a positive integer; got 0"),
        ({"units": [0]}, r"units must be positive integers, one at least; got \[0\]"),
        ({"units": []}, "one at least; got"),
        ({"units": "8"}, "units must be positive integers"),
        ({"n_draws": 1.5}, r"n_draws must be a positive integer; got 1\.5"),
        ({"noise": -1.0}, r"noise must be a number of at least 0; got -1\.0"),
        ({"tolerance": float("nan")}, "tolerance must be a number"),
        ({"max_condition": "10"}, "max_condition must be a number"),
        ({"basis": np.ones((2, 5))}, r"basis must be numbers of shape \(P, 8\).*got \(2, 5\)"),
        ({"basis": np.zeros((2, 8))}, "not all zero"),
        ({"basis": np.full((2, 8), np.nan)}, "finite numbers"),
        ({"r_min": 2.0}, "r_min and r_max"),
        ({"random_state": 1.5}, r"random_state must be an integer or None; got 1\.5"),
    ],
)
def test_what_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        choose_state_units(**{"length": 8} | arguments)
