"""Bounds, sizes, rates and orders against the formulas of the paper, written out once more."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath.ctx_mp import MPContext

from tsrnn.erm import (
    Bound,
    approximation_bound,
    estimation_bound,
    layer_complexity,
    log_covering_number,
    minimax_rate,
    network_schedule,
    network_size,
    prediction_bound,
    probability_real_spectrum,
    rate_exponent,
)

mp = MPContext()
mp.dps = 40
mpf = mp.mpf

betas = st.floats(0.05, 6.0)
few = st.integers(1, 4)
factors = st.integers(1, 10**6)


def ceil_log2(x):
    """Smallest m with 2^m >= x."""
    power = 0
    while 2**power < x:
        power += 1
    return power


def width_of(beta, d_in, T, J, d_out):
    f = math.floor(beta)
    return (
        76 * (f + 1) ** 2 * 3 ** (d_in * T) * d_in ** (f + 2) * d_out * T ** (f + 1)
        * J * ceil_log2(8 * J)
    )  # fmt: skip


def depth_of(beta, d_in, T, I):  # noqa: E741
    return 42 * (math.floor(beta) + 1) ** 2 * I * ceil_log2(8 * I) + 6 * d_in * T


def theorem_3(beta, d_in, T, J, I, U):  # noqa: E741
    f, D, b = math.floor(beta), mpf(d_in * T), mpf(beta)
    power = f + max(b, mpf(1)) / 2
    return 19 * mpf(U) * (f + 1) ** 2 * D**power * mpf(J * I) ** (-2 * b / D)


def stochastic(n, d, L, U, C):
    return mpf(C) * mpf(U) ** 5 * mp.log(n) ** 5 / n * d**2 * L**2 * mp.log(max(d, L))


def close(log_value, exact):
    return log_value == pytest.approx(float(mp.log(exact)), rel=1e-12, abs=1e-11)


@settings(deadline=None)
@given(betas, few, few, factors, factors, few, st.sampled_from([1, 2, 4, 6]))
def test_width_and_depth_are_those_of_theorem_3(beta, d_in, T, J, I, d_out, d_s):  # noqa: E741
    size = network_size(beta, d_in, T, J, I, d_out=d_out, block_size=d_s)
    printed = width_of(beta, d_in, T, J, d_out) + d_s
    assert size.depth == depth_of(beta, d_in, T, I)
    assert size.width % d_s == 0
    assert printed <= size.width < printed + d_s


@settings(deadline=None)
@given(betas, few, few, st.integers(1, 500), st.integers(1, 500), few)
def test_the_size_suffices_for_the_construction_of_the_proof(beta, d_in, T, J, I, d_out):  # noqa: E741
    """Corollary 3.1 of Jiao et al. (2023), made recurrent by Proposition C.1 (i)."""
    f, D = math.floor(beta), d_in * T
    feedforward = 38 * (f + 1) ** 2 * 3**D * D ** (f + 1) * J * ceil_log2(8 * J) * d_out
    layers = 21 * (f + 1) ** 2 * I * ceil_log2(8 * I) + 2 * D
    size = network_size(beta, d_in, T, J, I, d_out=d_out)
    assert size.width >= (d_in + 1) * feedforward + 2
    assert size.depth >= 2 * (T + layers - 1)


@settings(deadline=None)
@given(betas, few, st.integers(1, 200), factors, factors, st.floats(1e-3, 1e3))
def test_right_side_of_theorem_3(beta, d_in, T, J, I, U):  # noqa: E741
    bound = approximation_bound(beta, d_in, T, J, I, bound=U)
    assert close(bound.log_value, theorem_3(beta, d_in, T, J, I, U))
    assert bound.holds
    assert not bound.constants


@settings(deadline=None)
@given(
    st.integers(2, 10**40), st.integers(2, 10**9), st.integers(1, 10**6), st.floats(0.1, 50),
    st.floats(0, 1e6), st.floats(1e-3, 1e3),
)  # fmt: skip
def test_right_side_and_conditions_of_theorem_4(n, d, L, U, excess, C):
    bound = estimation_bound(n, d, L, U, approximation=excess, constant=C)
    assert close(bound.log_value, stochastic(n, d, L, U, C) + mpf(excess) / 2)
    needed = d**2 * L**2 * mp.log(max(d, L))
    assert bound.holds == (U >= 1 and n >= needed)
    assert bound.constants == {"C": C}


def test_the_error_of_theorem_3_enters_theorem_4_squared():
    sup = approximation_bound(1.5, 1, 2, 50, 50)
    bound = estimation_bound(1000, 4, 2, approximation=sup)
    exact = float(theorem_3(1.5, 1, 2, 50, 50, 1) ** 2 / 2)
    assert math.exp(bound.log_terms["approximation"]) == pytest.approx(exact, rel=1e-12)
    with pytest.raises(ValueError, match="Theorem 4"):
        estimation_bound(1000, 4, 2, approximation=bound)


@settings(deadline=None)
@given(
    st.integers(2, 10**40), betas, few, few, st.integers(1, 500), st.integers(1, 500),
    st.floats(0.5, 50), st.floats(1e-3, 1e3), st.sampled_from([2, 4]),
)  # fmt: skip
def test_equation_10(n, beta, d_in, T, J, I, U, C, d_s):  # noqa: E741
    bound = prediction_bound(n, beta, d_in, T, J, I, bound=U, block_size=d_s, constant=C)
    d = -(-(width_of(beta, d_in, T, J, 1) + d_s) // d_s) * d_s
    L = depth_of(beta, d_in, T, I)
    approximation = theorem_3(beta, d_in, T, J, I, U) ** 2 / 361 * 542
    assert close(bound.log_terms["approximation"], approximation)
    assert close(bound.log_value, stochastic(n, d, L, U, C) + approximation)
    assert bound.holds == (U >= 1 and n >= d**2 * L**2 * mp.log(max(d, L)))


def test_the_paper_has_even_block_sizes():
    assert prediction_bound(10**14, 1.0, 1, 1, 1, 1, block_size=2).holds
    odd = prediction_bound(10**14, 1.0, 1, 1, 1, 1, block_size=3)
    assert not odd.conditions["d_s is even"]
    assert not odd.holds


def test_542_is_three_halves_of_the_square_of_19_rounded_up():
    """Theorem 5 is Theorem 4 with the square of Theorem 3 one and a half times."""
    assert math.ceil(Fraction(3, 2) * 19**2) == 542
    sup = approximation_bound(0.7, 2, 3, 9, 11)
    five = prediction_bound(10**9, 0.7, 2, 3, 9, 11)
    ratio = math.exp(five.log_terms["approximation"] - 2 * sup.log_value)
    assert ratio == pytest.approx(542 / 361, rel=1e-12)


def test_long_sequences_do_not_overflow():
    size = network_size(2.5, 10, 1000, 7, 3)
    assert size.width == 76 * 9 * 3**10000 * 10**4 * 1000**3 * 7 * 6 + 2
    assert "10^4" in repr(size)
    bound = prediction_bound(10**6, 2.5, 10, 1000, 7, 3)
    d, L = size.width, size.depth
    exact = stochastic(10**6, d, L, 1, 1) + theorem_3(2.5, 10, 1000, 7, 3, 1) ** 2 / 361 * 542
    assert close(bound.log_value, exact)
    assert bound.value == math.inf
    assert not bound.holds
    assert "10^" in str(bound)
    assert "NOT met" in str(bound)
    met = prediction_bound(10**10_000, 2.5, 10, 1000, 7, 3)
    assert met.holds


def test_a_bound_says_which_constants_were_taken():
    bound = estimation_bound(100, 4, 2, constant=2.5)
    assert "C=2.5 taken" in repr(bound)
    assert "constant not given by the theorem: C, taken as 2.5" in str(bound)
    assert "sub-exponential" in str(bound)


@settings(deadline=None)
@given(st.lists(st.floats(-600, 600), max_size=6))
def test_a_bound_is_the_sum_of_its_terms(logs):
    exact = mp.fsum(mp.exp(mpf(log)) for log in logs)
    bound = Bound("Theorem 0", "error", {str(i): log for i, log in enumerate(logs)})
    assert bound.log_value == pytest.approx(float(mp.log(exact)) if logs else -math.inf, abs=1e-12)


def test_a_sum_of_nothing_but_zeros_is_zero():
    bound = Bound("Theorem 4", "error", {"a": -math.inf, "b": -math.inf})
    assert bound.value == 0.0
    assert estimation_bound(10, 1, 1).value == 0.0


@settings(deadline=None)
@given(
    st.integers(2, 10**30), st.floats(1e-12, 1.9), st.integers(2, 10**6), st.integers(1, 10**4),
    st.floats(1, 100), st.floats(0.01, 100),
)  # fmt: skip
def test_covering_number(n, delta, d, L, U, C):
    bound = log_covering_number(n, delta, d, L, U, constant=C)
    exact = mpf(C) * d**2 * L**2 * mp.log(max(d, L)) * mp.log(n * mpf(U) / mpf(delta))
    assert close(bound.log_value, exact)
    assert bound.holds == (n >= d**2 * L**2 * mp.log(max(d, L)))


def test_covering_refuses_radii_beyond_the_lemma():
    with pytest.raises(ValueError, match="radius must lie below n"):
        log_covering_number(10, 30.0, 4, 2, bound=2.0)


@settings(deadline=None)
@given(betas, few, st.integers(1, 50), st.integers(2, 10**9))
def test_rate(beta, d_in, T, n):
    exponent = 2 * beta / (d_in * T + 2 * beta)
    assert rate_exponent(beta, d_in, T) == pytest.approx(exponent, rel=1e-14)
    assert minimax_rate(n, beta, d_in, T) == pytest.approx(n**-exponent, rel=1e-12)
    with_log = n**-exponent * math.log(n) ** 10
    assert minimax_rate(n, beta, d_in, T, log_factor=True) == pytest.approx(with_log, rel=1e-11)
    log = minimax_rate(n, beta, d_in, T, log=True)
    assert log == pytest.approx(-exponent * math.log(n), rel=1e-12, abs=1e-12)


@settings(deadline=None)
@given(betas, few, few, st.floats(0, 1), st.integers(2, 10**60))
def test_schedule(beta, d_in, T, part, n):
    D = d_in * T
    most = D / (2 * D + 4 * beta)
    eta = part * most
    size = network_schedule(n, beta, d_in, T, eta, depth_scale=3.0, block_size=4)
    width = mpf(n) ** mpf(eta) * mp.log(n)
    depth = 3 * mpf(n) ** (mpf(most) - mpf(eta)) * mp.log(n)
    assert size.width % 4 == 0
    assert width * (1 - 1e-9) <= size.width <= width * (1 + 1e-9) + 5
    assert depth * (1 - 1e-9) <= size.depth <= depth * (1 + 1e-9) + 1


@pytest.mark.parametrize("eta_part", [0.0, 0.5, 1.0])
def test_the_schedule_attains_the_rate(eta_part):
    """With d and L of the schedule the bound divided by N^-rate (log N)^10 does not grow.

    The approximation term takes J I of the order d L / (log N)^2, as in the proof.
    """
    beta, D = 1.5, 3
    eta = eta_part * D / (2 * D + 4 * beta)
    ratios = []
    for digits in (20, 60, 200, 600):
        n = 10**digits
        size = network_schedule(n, beta, 1, D, eta)
        log_ji = size.log_width + size.log_depth - 2 * math.log(math.log(n))
        stochastic_part = estimation_bound(n, size.width, size.depth).log_value
        log_bound = np.logaddexp(stochastic_part, -4 * beta / D * log_ji)
        ratios.append(log_bound - minimax_rate(n, beta, 1, D, log_factor=True, log=True))
    assert np.all(np.diff(ratios) <= 1e-3)


def test_eta_outside_its_range_is_refused():
    with pytest.raises(ValueError, match=r"eta must lie from 0 to .* = 0\.25; got 0\.3"):
        network_schedule(100, 1.0, 1, 2, 0.3)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: network_size(0.0, 1, 1, 1, 1), ValueError, "beta"),
        (lambda: network_size(1.0, 1, 1, 0, 1), ValueError, "width_factor"),
        (lambda: network_size(1.0, 1, 1, 1, 2.5), TypeError, "depth_factor"),
        (lambda: approximation_bound(1.0, 1, 1, 1, 1, bound=-1), ValueError, "bound"),
        (lambda: estimation_bound(1, 4, 2), ValueError, "n must be at least 2"),
        (lambda: estimation_bound(10, 4, 2, constant=0), ValueError, "constant"),
        (lambda: estimation_bound(10, 4, 2, approximation=-1), ValueError, "approximation"),
        (lambda: layer_complexity(10, 2), ValueError, "hidden_size"),
        (lambda: layer_complexity(10, 2, 8, block_sizes=[4, 4]), ValueError, "either"),
        (lambda: layer_complexity(10, 2, 9), ValueError, "divide"),
        (lambda: layer_complexity(10, 2, block_sizes=[]), ValueError, "at least one"),
        (lambda: probability_real_spectrum(0), ValueError, "d must be"),
    ],
)
def test_errors_name_the_argument(call, error, message):
    with pytest.raises(error, match=message):
        call()


def count_forward(T, d_in, sizes):
    """Multiplications on the longest branch, T steps, and of the aggregation of one step."""
    rows = max(sizes)
    steps = sum(1 for _ in range(T) for _ in range(rows) for _ in range(rows + d_in))
    return steps + sum(sizes) ** 2


@settings(deadline=None)
@given(st.integers(1, 6), st.integers(1, 4), st.lists(st.integers(1, 5), min_size=1, max_size=4))
def test_operations_of_theorem_2(T, d_in, sizes):
    cost = layer_complexity(T, d_in, block_sizes=sizes)
    assert cost.forward == count_forward(T, d_in, sizes)
    d, most = sum(sizes), max(sizes)
    products = sum(most**3 for t in range(T) for _ in range(T))
    assert cost.backward == products + d * most**3
    dense = layer_complexity(T, d_in, d, d)
    assert cost.dense_forward == dense.forward - d**2 == T * d * (d + d_in)
    assert cost.dense_backward == dense.backward - d**4 == T**2 * d**3


def test_equal_blocks_may_be_given_by_their_size():
    assert layer_complexity(50, 3, 12, 4) == layer_complexity(50, 3, block_sizes=[4, 4, 4])


@pytest.mark.parametrize("d", [2, 3, 4])
def test_probability_of_real_eigenvalues_against_simulation(d):
    n = 40_000
    draws = np.random.default_rng(d).normal(size=(n, d, d))
    share = np.mean(np.all(np.linalg.eigvals(draws).imag == 0, axis=1))
    p = probability_real_spectrum(d)
    assert abs(share - p) < 4 * math.sqrt(p * (1 - p) / n)


def test_probability_of_real_eigenvalues_of_large_matrices():
    assert probability_real_spectrum(1) == 1.0
    assert probability_real_spectrum(128) == 0.0
    log = probability_real_spectrum(128, log=True)
    assert log == pytest.approx(-128 * 127 / 4 * math.log(2), rel=1e-14)
    assert probability_real_spectrum(66) > 0.0
    assert probability_real_spectrum(67) == 0.0
