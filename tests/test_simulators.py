"""Simulated sequences against their equations."""

import doctest
import importlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tsrnn.datasets import adding_problem, fitzhugh_nagumo


@settings(deadline=None, max_examples=50)
@given(n=st.integers(1, 20), length=st.integers(2, 30), seed=st.integers(0, 2**32))
def test_the_adding_problem_marks_a_number_in_each_half_and_adds_them(n, length, seed):
    x, y = adding_problem(n, length, seed)
    half = length // 2
    assert x.shape == (n, length, 2)
    for sequence, total in zip(x, y, strict=True):
        (marked,) = np.nonzero(sequence[:, 1])
        assert len(marked) == 2
        assert marked[0] < half <= marked[1]
        assert (sequence[marked, 1] == 1).all()
        assert total == sequence[marked[0], 0] + sequence[marked[1], 0]
    assert ((x[..., 0] >= 0) & (x[..., 0] < 1)).all()


def test_the_adding_problem_is_uniform():
    x, y = adding_problem(20_000, 7, 0)
    assert x[..., 0].mean() == pytest.approx(0.5, abs=0.005)
    assert y.mean() == pytest.approx(1.0, abs=0.02)
    assert y.var() == pytest.approx(1 / 6, abs=0.01)  # the paper's 0.167
    expected = [1 / 3] * 3 + [1 / 4] * 4
    np.testing.assert_allclose(x[..., 1].mean(0), expected, atol=0.02)


def rates(state, tau=0.02, i_ext=0.5, a=0.7, b=0.8):
    v, w = state
    return np.array([v - v**3 / 3 - w + i_ext, tau * (v + a - b * w)])


def runge_kutta(start, step, steps, **constants):
    """Classical method of order 4 with a fixed step."""
    states = [np.array(start)]
    for _ in range(steps):
        x = states[-1]
        k1 = rates(x, **constants)
        k2 = rates(x + step / 2 * k1, **constants)
        k3 = rates(x + step / 2 * k2, **constants)
        k4 = rates(x + step * k3, **constants)
        states.append(x + step / 6 * (k1 + 2 * k2 + 2 * k3 + k4))
    return np.array(states)


def test_fitzhugh_nagumo_solves_its_equation():
    states = fitzhugh_nagumo(3, 200, 0, t_end=80)
    assert states.shape == (3, 201, 2)
    for trajectory in states:
        expected = runge_kutta(trajectory[0], 0.02, 4000)[::20]
        np.testing.assert_allclose(trajectory, expected, atol=1e-5)


def test_fitzhugh_nagumo_takes_other_constants():
    constants = {"tau": 0.1, "i_ext": 0.2, "a": 0.5, "b": 0.6}
    (trajectory,) = fitzhugh_nagumo(1, 50, 1, t_end=20, **constants)
    expected = runge_kutta(trajectory[0], 0.02, 1000, **constants)[::20]
    np.testing.assert_allclose(trajectory, expected, atol=1e-6)


def test_fitzhugh_nagumo_starts_as_the_paper_says():
    first = fitzhugh_nagumo(500, 1, 0, t_end=1e-3)[:, 0]
    assert not first[:, 1].any()
    assert (np.abs(first[:, 0]) <= 1).all()
    assert first[:, 0].mean() == pytest.approx(0.0, abs=0.1)
    assert first[:, 0].var() == pytest.approx(1 / 3, abs=0.05)


def test_fitzhugh_nagumo_oscillates_on_two_scales():
    v = fitzhugh_nagumo(8, 1000, 0)[..., 0]
    change = np.abs(np.diff(v[:, 100:])).ravel()
    assert v.max() > 1.7
    assert v.min() < -1.7
    # It jumps in few steps, and creeps at a rate of about tau in most.
    assert (change > 0.2).mean() == pytest.approx(0.05, abs=0.03)
    assert np.median(change) < 0.02


@pytest.mark.parametrize("draw", [lambda r: adding_problem(4, 10, r)[0],
                                  lambda r: fitzhugh_nagumo(4, 5, r, t_end=1.0)])  # fmt: skip
def test_the_seed_decides_and_a_generator_goes_on(draw):
    assert np.array_equal(draw(3), draw(3))
    assert not np.array_equal(draw(3), draw(4))
    generator = np.random.default_rng(3)
    first, second = draw(generator), draw(generator)
    assert np.array_equal(first, draw(3))
    assert not np.array_equal(first, second)
    assert not np.array_equal(draw(None), draw(None))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: adding_problem(0, 10), "n must be an integer of at least 1; got 0"),
        (lambda: adding_problem(2, 1), "length must be an integer of at least 2; got 1"),
        (lambda: adding_problem(2, 10.0), r"length must be an integer.*got 10\.0"),
        (lambda: fitzhugh_nagumo(0), "n must be an integer of at least 1; got 0"),
        (lambda: fitzhugh_nagumo(1, 2.5), r"length must be an integer of at least 1; got 2\.5"),
        (lambda: fitzhugh_nagumo(1, t_end=0), "t_end must be a positive and finite number; got 0"),
        (lambda: fitzhugh_nagumo(1, tau=-1), "tau must be a positive and finite number; got -1"),
        (lambda: fitzhugh_nagumo(1, a=np.nan), "a must be a finite number; got nan"),
        (lambda: fitzhugh_nagumo(1, b=-1.0), r"b must not be negative.*got -1\.0"),
    ],
)
def test_what_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("module", ["_adding", "_dynamical_systems"])
def test_docstring_examples_run(module):
    failed, run = doctest.testmod(importlib.import_module(f"tsrnn.datasets.{module}"))
    assert run
    assert failed == 0
