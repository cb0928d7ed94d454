"""Correlations and their derivatives against plain loops and autograd."""

import numpy as np
import pytest
import torch

from tsrnn.linear.dcc._likelihood import (
    CorrelationPath,
    TensorJet,
    correlation_density,
    normalised,
    run_correlations,
    variables,
)


def draw(units, steps, n, seed=0):
    generator = torch.Generator().manual_seed(seed)
    mix = torch.randn(units, n, n, generator=generator, dtype=torch.float64)
    z = torch.randn(units, steps, n, generator=generator, dtype=torch.float64) @ mix
    return z / z.std(1, keepdim=True)


def loop(z, a, b, corrected):
    """Correlations (T, n, n) of one series, one step after the other."""
    steps, n = z.shape
    p, q = len(a), len(b)
    rest = 1 - sum(a) - sum(b)
    if corrected:
        square, d = z**2, []
        for t in range(steps):
            new = rest * torch.ones(n, dtype=z.dtype)
            for i in range(1, p + 1):
                new = new + a[i - 1] * (square[t - i] * d[t - i] if t >= i else 1.0)
            for j in range(1, q + 1):
                new = new + b[j - 1] * (d[t - j] if t >= j else 1.0)
            d.append(new)
        u = torch.stack(d).sqrt() * z
    else:
        u = z
    target = u.T @ u / steps
    target = target / torch.outer(target.diagonal().sqrt(), target.diagonal().sqrt())
    path = []
    for t in range(steps):
        new = rest * target
        for i in range(1, p + 1):
            new = new + a[i - 1] * (torch.outer(u[t - i], u[t - i]) if t >= i else target)
        for j in range(1, q + 1):
            new = new + b[j - 1] * (path[t - j] if t >= j else target)
        path.append(new)
    return torch.stack([m / torch.outer(m.diagonal().sqrt(), m.diagonal().sqrt()) for m in path])


def loop_terms(z, params, p, corrected):
    r = loop(z, params[:p], params[p:], corrected)
    inside = torch.einsum("ti,tij,tj->t", z, torch.linalg.inv(r), z)
    return -0.5 * (torch.logdet(r) + inside - (z**2).sum(1))


ORDERS = [(1, 1), (2, 1), (1, 2), (2, 2), (1, 0), (2, 0)]
PARAMS = {1: [0.06], 2: [0.05, 0.03]}


def params_of(order):
    p, q = order
    return torch.tensor(PARAMS[p] + [[], [0.9], [0.5, 0.3]][q], dtype=torch.float64)


@pytest.mark.parametrize("corrected", [False, True])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("n", [2, 5])
def test_correlations_equal_the_loop(order, corrected, n):
    z, params = draw(3, 60, n), params_of(order)
    p = order[0]
    jets = variables(params.expand(3, -1))
    result = run_correlations(
        z, torch.ones(3, 60, dtype=bool), jets[:p], jets[p:], corrected=corrected
    )
    correlations = normalised(result.q).value
    for unit in range(3):
        expected = loop(z[unit], params[:p], params[p:], corrected)
        assert (correlations[unit] - expected).abs().max() < 1e-12


@pytest.mark.few("order1-False", "order3-True", "order4-True")
@pytest.mark.parametrize("corrected", [False, True])
@pytest.mark.parametrize("order", ORDERS)
def test_derivatives_equal_those_of_the_loop(order, corrected):
    z, params = draw(2, 16, 3), params_of(order)
    p = order[0]
    jets = variables(params.expand(2, -1))
    observed = torch.ones(2, 16, dtype=bool)
    terms = correlation_density(
        run_correlations(z, observed, jets[:p], jets[p:], corrected=corrected), z, observed
    )
    for unit in range(2):

        def value(theta, unit=unit):
            return loop_terms(z[unit], theta, p, corrected)

        torch.testing.assert_close(terms.value[unit], value(params), rtol=1e-11, atol=1e-11)
        scores = torch.autograd.functional.jacobian(value, params)
        torch.testing.assert_close(terms.first[:, unit].T, scores, rtol=1e-10, atol=1e-10)
        hessian = torch.autograd.functional.hessian(lambda t: value(t).sum(), params)
        ours = terms.second[:, :, unit].sum(-1)
        torch.testing.assert_close(ours, hessian, rtol=1e-10, atol=1e-8)


def test_rows_after_the_end_change_nothing():
    z, params = draw(1, 50, 3), params_of((1, 1)).expand(1, -1)
    padded = torch.cat([z, torch.zeros(1, 20, 3, dtype=z.dtype)], 1)
    observed = torch.arange(70)[None] < 50
    jets = variables(params)
    for corrected in (False, True):
        whole = run_correlations(z, observed[:, :50], jets[:1], jets[1:], corrected=corrected)
        with_rest = run_correlations(padded, observed, jets[:1], jets[1:], corrected=corrected)
        short = correlation_density(whole, z, observed[:, :50])
        long = correlation_density(with_rest, padded, observed)
        for one, other in zip(short.parts, long.parts, strict=True):
            torch.testing.assert_close(other[..., :50], one, rtol=1e-12, atol=1e-12)
            assert (other[..., 50:] == 0).all()


def test_the_corrected_recursion_has_the_diagonal_of_its_scale():
    z, params = draw(2, 80, 4), params_of((1, 1)).expand(2, -1)
    jets = variables(params)
    result = run_correlations(z, torch.ones(2, 80, dtype=bool), jets[:1], jets[1:], corrected=True)
    scale = result.driver.value[:, :, 0] / z
    diagonal = torch.diagonal(result.q.value, dim1=-2, dim2=-1)
    torch.testing.assert_close(diagonal.sqrt(), scale, rtol=1e-12, atol=1e-12)


def test_a_matrix_that_is_not_positive_definite_gives_nan():
    q = TensorJet(torch.tensor([[1.0, 1.5], [1.5, 1.0]], dtype=torch.float64)[None, None])
    z = torch.ones(1, 1, 2, dtype=torch.float64)
    terms = correlation_density(
        CorrelationPath(q, q, TensorJet(z[:, :, None])), z, torch.ones(1, 1, dtype=bool)
    )
    assert np.isnan(terms.value.item())
