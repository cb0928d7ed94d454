"""Lag polynomials of ARMA models against their roots, statsmodels and differences."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.tsa.arima_process import arma2ma, arma_acovf

from tsrnn.linear.arma._polynomials import (
    from_inverse_roots,
    from_partial,
    inverse_roots,
    is_stable,
    partial_autocorrelations,
    psi_weight_derivatives,
    psi_weights,
    reflected,
    with_inverse_root,
)

coefficients = st.lists(
    st.lists(st.floats(-2, 2), min_size=4, max_size=4), min_size=1, max_size=4
).map(np.array)


@settings(max_examples=60, deadline=None)
@given(phi=coefficients)
def test_stable_is_all_roots_outside_the_unit_circle(phi):
    modulus = np.abs(inverse_roots(phi)).max(0)
    clear = np.abs(modulus - 1) > 1e-6
    np.testing.assert_array_equal(is_stable(phi)[clear], (modulus < 1)[clear])


@settings(max_examples=40, deadline=None)
@given(partial=coefficients.map(lambda x: x * 0.49))
def test_partial_autocorrelations_and_back(partial):
    phi = from_partial(partial)
    assert is_stable(phi).all()
    np.testing.assert_allclose(partial_autocorrelations(phi), partial, rtol=0, atol=1e-8)


@settings(max_examples=40, deadline=None)
@given(phi=coefficients)
def test_inverse_roots_and_back(phi):
    back = from_inverse_roots(inverse_roots(phi))
    np.testing.assert_allclose(back, phi, rtol=0, atol=1e-8 * (1 + np.abs(phi).max()))


def test_of_no_lags():
    none = np.zeros((0, 3))
    assert is_stable(none).all()
    assert inverse_roots(none).shape == reflected(none)[0].shape == (0, 3)


@pytest.mark.parametrize("theta", [[2.5], [0.3, 1.7], [-0.9, 1.4, 0.8], [0.4, 0.2]])
def test_reflection_keeps_the_autocovariances(theta):
    theta = np.array(theta)
    phi, factor = reflected(-theta[:, None])
    assert is_stable(phi).all()
    expected = arma_acovf([1.0], np.append(1.0, theta), 6)
    actual = factor[0] * arma_acovf([1.0], np.append(1.0, -phi[:, 0]), 6)
    np.testing.assert_allclose(actual, expected, rtol=1e-10, atol=1e-12)


def test_with_inverse_root_adds_it():
    phi = from_inverse_roots(np.array([[0.5], [-0.2]], dtype=complex))
    roots = inverse_roots(with_inverse_root(phi, 0.9))[:, 0]
    np.testing.assert_allclose(np.sort(roots.real), [-0.2, 0.5, 0.9], rtol=0, atol=1e-12)


@pytest.mark.parametrize(("p", "q", "h"), [(1, 1, 10), (2, 1, 5), (0, 2, 4), (3, 0, 12), (3, 3, 2)])
def test_impulse_responses_and_their_derivatives(p, q, h):
    rng = np.random.default_rng(p + 10 * q)
    phi = from_partial(rng.uniform(-0.8, 0.8, (p, 3)))
    theta = rng.uniform(-0.8, 0.8, (q, 3))
    psi = psi_weights(phi, theta, h)
    for i in range(3):
        expected = arma2ma(np.append(1, -phi[:, i]), np.append(1, theta[:, i]), h + 1)
        np.testing.assert_allclose(psi[:, i], expected, rtol=1e-12, atol=1e-12)
    slopes, step = psi_weight_derivatives(phi, theta, h), 1e-6
    for a in range(p + q):
        up, down = np.concatenate([phi, theta]), np.concatenate([phi, theta])
        up[a] += step
        down[a] -= step
        difference = psi_weights(up[:p], up[p:], h) - psi_weights(down[:p], down[p:], h)
        np.testing.assert_allclose(slopes[a], difference / (2 * step), rtol=0, atol=1e-7)
