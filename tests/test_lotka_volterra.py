"""The simulator against an ODE solver, the plain loop and what the equations keep."""

import doctest
import sys

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from tsrnn.datasets import lotka_volterra


def test_it_is_the_plain_loop():
    u, z = lotka_volterra(3, 50, dt=0.05, a=0.9, b=0.5, c=1.1, d=0.2, random_state=1)
    for row in range(3):
        z1, z2 = 1.0, 0.5
        for k in range(50):
            f1, f2 = z1 * (0.9 - 0.5 * z2), -z2 * (1.1 - 0.2 * z1) + u[row, k]
            z1, z2 = z1 + 0.05 * f1, z2 + 0.05 * f2
            np.testing.assert_allclose(z[row, k], [z1, z2], rtol=1e-12)


def error_against_solver(length):
    """Largest distance to the exact solution at the end of 8 units of time."""
    span = 8.0
    u, z = lotka_volterra(2, length, dt=span / length, random_state=0)
    angle = 2 * np.pi * 2 * np.arange(1, length + 1) / length
    basis = np.stack([np.ones(length), np.cos(angle)], 1)
    errors = []
    for row in range(2):
        mean, wave = np.linalg.lstsq(basis, u[row])[0]

        def slope(t, z, mean=mean, wave=wave):
            control = mean + wave * np.cos(2 * np.pi * 2 * t / span)
            return [z[0] * (1 - 0.6 * z[1]), -z[1] * (1 - 0.3 * z[0]) + control]

        exact = solve_ivp(slope, (0, span), [1.0, 0.5], rtol=1e-10, atol=1e-10).y[:, -1]
        errors.append(np.abs(z[row, -1] - exact).max())
    return max(errors)


def test_euler_steps_converge_to_the_solution_with_order_one():
    errors = [error_against_solver(length) for length in (1000, 2000, 4000)]
    ratios = np.divide(errors[:-1], errors[1:])
    assert errors[-1] < 0.02
    np.testing.assert_allclose(ratios, 2.0, atol=0.15)


def test_without_input_the_orbit_is_closed():
    _, z = lotka_volterra(1, 20_000, dt=5e-4, amplitude=0.0, random_state=0)
    z1, z2 = z[0].T
    kept = 0.3 * z1 - np.log(z1) + 0.6 * z2 - np.log(z2)
    assert np.ptp(kept) < 5e-3
    assert np.ptp(z1) > 5  # it is no fixed point


def test_inputs_lie_in_two_dimensions_and_are_not_negative():
    u, z = lotka_volterra(40, 128, amplitude=2.0, cycles=3, random_state=0)
    assert np.linalg.matrix_rank(u) == 2
    assert 0 <= u.min() < u.max() <= 4.0
    assert 0 <= u.mean(1).min() < u.mean(1).max() <= 2.0
    assert (z > 0).all()


def test_the_sample_follows_from_the_seed():
    first, again = (lotka_volterra(2, 20, random_state=3)[1] for _ in range(2))
    np.testing.assert_array_equal(first, again)
    generator = np.random.default_rng(3)
    np.testing.assert_array_equal(first, lotka_volterra(2, 20, random_state=generator)[1])
    assert not np.array_equal(first, lotka_volterra(2, 20, random_state=generator)[1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 0}, "n must be an integer of at least 1; got 0"),
        ({"length": 2.0}, r"length must be an integer of at least 1; got 2\.0"),
        ({"dt": 0.0}, r"dt must be a positive and finite number; got 0\.0"),
        ({"b": float("nan")}, "b must be a positive and finite number; got nan"),
        ({"initial": (1.0, -0.5)}, r"z2 must be a positive and finite number; got -0\.5"),
        ({"amplitude": -1.0}, r"amplitude must be finite and not negative; got -1\.0"),
        ({"amplitude": float("inf")}, "amplitude must be finite and not negative; got inf"),
        ({"cycles": float("nan")}, "cycles must be a finite number; got nan"),
        ({"a": "1"}, "a must be a positive and finite number; got '1'"),
        ({"n": True}, "n must be an integer of at least 1; got True"),
        ({"initial": (1.0, 1.0, 1.0)}, "initial must be two numbers"),
        ({"dt": 2.0}, r"dt=2\.0 are too long: trajectory 0 leaves .* Give a smaller dt"),
    ],
)
def test_errors(arguments, message):
    with pytest.raises(ValueError, match=message):
        lotka_volterra(**({"n": 1, "random_state": 0} | arguments))


def test_the_example_runs():
    assert doctest.testmod(sys.modules[lotka_volterra.__module__]).failed == 0
