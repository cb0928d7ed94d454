"""The vech network against plain loops, autograd, the direct BEKK form and univariate GARCH."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tsrnn.linear.vech._likelihood import exact, expected, forward, gradient, scores, sensitivities
from tsrnn.linear.vech._prepare import Sample
from tsrnn.linear.vech._structure import (
    STRUCTURES,
    coefficients,
    factors,
    natural,
    pairs,
    sandwich,
    unvech,
    vech,
)

CASES = [
    ("full", 2, 1, 1),
    ("full", 3, 1, 1),
    ("full", 2, 2, 0),
    ("diagonal", 3, 1, 2),
    ("scalar", 3, 2, 1),
    ("bekk", 2, 1, 1),
    ("bekk", 3, 2, 2),
    ("bekk", 1, 1, 1),
]


def sample_of(n, steps=40, r=2, seed=0):
    rng = np.random.default_rng(seed)
    regressors = np.column_stack([np.ones(steps), rng.standard_normal(steps)])[:, :r]
    return Sample(rng.standard_normal((steps, n)), regressors, vech(np.eye(n) + 0.2))


def params_of(structure, sample, seed=1):
    """Parameters at which H is definite and the recursion stable."""
    rng = np.random.default_rng(seed)
    n, lags = structure.n, len(structure.theta) + len(structure.phi)
    parts = [0.1 * rng.standard_normal(sample.n_mean)]
    for block in structure.blocks:
        part = 0.3 * rng.standard_normal(block.size) / lags / n
        if block is structure.intercept:
            part = part + np.eye(n)[np.tril_indices(n)]
        parts.append(part)
    return np.concatenate(parts)


def natural_params(structure, target, sample, params):
    """Parameters in natural coordinates that have the same coefficients."""
    coefs = coefficients(structure, sample.n_mean, params)
    values = [*([] if coefs.intercept is None else [coefs.intercept]), *coefs.theta, *coefs.phi]
    parts = [b.params(value) for b, value in zip(target.blocks, values, strict=True)]
    return np.concatenate([coefs.mean.ravel(), *parts])


def loop(structure, sample, params):
    """Log-density of every observation, one step and one matrix at a time, in torch."""
    n, N = structure.n, len(sample.presample)
    arrays = (sample.response, sample.regressors, sample.presample)
    response, regressors, s = (torch.from_numpy(array) for array in arrays)
    mean, *parts = torch.split(params, [sample.n_mean, *(b.size for b in structure.blocks)])
    values = [tensor_of(b, part) for b, part in zip(structure.blocks, parts, strict=True)]
    intercept = None if structure.intercept is None else values.pop(0)
    theta, phi = values[: len(structure.theta)], values[len(structure.theta) :]
    if intercept is None:
        intercept = s - sum(matrix @ s for matrix in values)
    rows, columns = pairs(n)
    where = np.zeros((n, n), dtype=int)
    where[rows, columns] = where[columns, rows] = np.arange(N)
    past_x, past_h = [s] * len(theta), [s] * len(phi)
    densities = []
    for y, x in zip(response, regressors, strict=True):
        h = intercept + sum(m @ old for m, old in zip(theta, past_x, strict=True))
        h = h + sum(m @ old for m, old in zip(phi, past_h, strict=True))
        e = y - mean.reshape(n, -1) @ x
        H = h[where]
        quadratic = e @ torch.linalg.solve(H, e)
        densities.append(-0.5 * (n * np.log(2 * np.pi) + torch.logdet(H) + quadratic))
        past_x = [e[rows] * e[columns], *past_x][: len(theta)]
        past_h = [h, *past_h][: len(phi)]
    return torch.stack(densities)


def tensor_of(block, params):
    """The coefficients of a block as torch knows them, exact up to second order."""
    here = params.detach().numpy()
    moved = params - params.detach()
    slopes = torch.from_numpy(block.jacobian(here))
    out = slopes.shape[1:]
    value = torch.from_numpy(np.asarray(block.value(here))) + torch.tensordot(moved, slopes, 1)
    units = torch.eye(int(np.prod(out)), dtype=torch.float64).reshape(-1, *out)
    bends = torch.stack([torch.from_numpy(block.second(one.numpy())) for one in units])
    return value + (0.5 * (moved @ bends @ moved)).reshape(out)


@pytest.mark.parametrize("targeting", [False, True])
@pytest.mark.parametrize("coordinates", [factors, natural])
@pytest.mark.parametrize(("kind", "n", "p", "q"), CASES)
def test_likelihood_and_derivatives_are_those_of_the_loop(kind, n, p, q, coordinates, targeting):
    sample = sample_of(n, steps=6)
    structure = factors(kind, n, p, q, targeting)
    params = params_of(structure, sample)
    if coordinates is natural and kind != "bekk":
        target = natural(kind, n, p, q, targeting)
        params = natural_params(structure, target, sample, params)
        structure = target
    run = forward(structure, sample, params)
    dens = run.density()
    sens = sensitivities(structure, sample, run)

    def total(x):
        return loop(structure, sample, x).sum()

    theta = torch.tensor(params, requires_grad=True)
    by_time = loop(structure, sample, theta)
    np.testing.assert_allclose(dens.value, by_time.detach(), rtol=0, atol=1e-10)
    (slope,) = torch.autograd.grad(by_time.sum(), theta, retain_graph=True)
    np.testing.assert_allclose(gradient(sample, dens, sens), slope, rtol=1e-9, atol=1e-9)
    (last,) = torch.autograd.grad(by_time[-1], theta)
    by_observation = scores(sample, dens, sens)
    np.testing.assert_allclose(by_observation[-1], last, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(by_observation.sum(0), slope, rtol=1e-9, atol=1e-9)
    along = np.random.default_rng(2).standard_normal(len(params))
    _, product = torch.autograd.functional.hvp(total, torch.tensor(params), torch.tensor(along))
    ours = -exact(structure, sample, run, dens, sens)
    np.testing.assert_array_equal(ours, ours.T)
    np.testing.assert_allclose(ours @ along, product, rtol=1e-8, atol=1e-7)


@settings(max_examples=20, deadline=None)
@given(kind=st.sampled_from(STRUCTURES), n=st.integers(1, 3), seed=st.integers(0, 10**6))
def test_derivatives_of_coefficients(kind, n, seed):
    """A block is quadratic: its expansion of second order is exact."""
    rng = np.random.default_rng(seed)
    for coordinates in (factors, natural):
        for block in coordinates(kind, n, 1, 1, False).blocks:
            here, step = rng.standard_normal((2, block.size))
            weights = rng.standard_normal(block.value(here).shape)
            change = ((block.value(here + step) - block.value(here)) * weights).sum()
            first = (np.tensordot(step, block.jacobian(here), 1) * weights).sum()
            second = step @ block.second(weights) @ step / 2
            np.testing.assert_allclose(change, first + second, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n", [2, 3])
def test_expected_information_is_the_mean_of_the_curvature(n):
    """Over errors whose second moments are those of the last covariance."""
    structure = factors("bekk", n, 1, 1, False)
    sample = sample_of(n, steps=1, r=0)
    params = params_of(structure, sample)
    factor = np.linalg.cholesky(unvech(forward(structure, sample, params).states[:, 0]))
    draws = np.sqrt(n) * np.concatenate([np.eye(n), -np.eye(n)]) @ factor.T
    total = []
    for e in draws:
        one = Sample(e[None], sample.regressors, sample.presample)
        run = forward(structure, one, params)
        dens, sens = run.density(), sensitivities(structure, one, run)
        total.append(exact(structure, one, run, dens, sens) + bend(structure, run, dens))
    np.testing.assert_allclose(np.mean(total, 0), expected(one, dens, sens), atol=1e-10)


def bend(structure, run, dens):
    """Second derivatives of coefficients, which the last score multiplies."""
    pasts = [None, *run.past_squares, *run.past_states]
    by_h = dens.by_h[:, 0]
    weights = [by_h if past is None else np.outer(by_h, past[0]) for past in pasts]
    sizes = [block.size for block in structure.blocks]
    matrix = np.zeros((sum(sizes), sum(sizes)))
    begin = 0
    for block, weight in zip(structure.blocks, weights, strict=True):
        matrix[begin : begin + block.size, begin : begin + block.size] = block.second(weight)
        begin += block.size
    return matrix


def value_of(structure, sample, params):
    return forward(structure, sample, params).density().value.sum()


@settings(max_examples=20, deadline=None)
@given(n=st.integers(1, 4), steps=st.integers(1, 60), seed=st.integers(0, 10**6))
def test_bekk_through_the_vech_form_is_the_direct_bekk(n, steps, seed):
    """H_t = C C' + A' e e' A + G' H G, by matrices."""
    sample = sample_of(n, steps, seed=seed)
    structure = factors("bekk", n, 1, 1, False)
    params = params_of(structure, sample, seed)
    ours = value_of(structure, sample, params)
    B, C, A, G = np.split(params, np.cumsum([sample.n_mean, n * (n + 1) // 2, n * n]))
    lower = np.zeros((n, n))
    lower[np.tril_indices(n)] = C
    A, G = A.reshape(n, n), G.reshape(n, n)
    errors = sample.response - sample.regressors @ B.reshape(n, -1).T
    H = outer = unvech(sample.presample)
    direct = 0.0
    for e in errors:
        H = lower @ lower.T + A.T @ outer @ A + G.T @ H @ G
        quadratic = e @ np.linalg.solve(H, e)
        direct -= 0.5 * (n * np.log(2 * np.pi) + np.linalg.slogdet(H)[1] + quadratic)
        outer = np.outer(e, e)
    assert abs(ours - direct) < 1e-9 * max(1.0, abs(direct))


@settings(max_examples=20, deadline=None)
@given(n=st.integers(1, 5), seed=st.integers(0, 10**6))
def test_sandwiches_are_kronecker_products(n, seed):
    rng = np.random.default_rng(seed)
    A, B, X = rng.standard_normal((3, n, n))
    X = X + X.T
    product = A.T @ X @ B
    np.testing.assert_allclose(
        sandwich(A, B) @ vech(X), vech((product + product.T) / 2), atol=1e-10
    )
    rows, columns = pairs(n)
    D = np.zeros((n * n, len(rows)))
    for a, (i, j) in enumerate(zip(rows, columns, strict=True)):
        D[i * n + j, a] = D[j * n + i, a] = 1
    np.testing.assert_allclose(sandwich(A, A), np.linalg.pinv(D) @ np.kron(A.T, A.T) @ D,
                               atol=1e-10)  # fmt: skip
    np.testing.assert_array_equal(unvech(vech(X)), X)


@pytest.mark.parametrize("kind", STRUCTURES)
def test_names_are_as_many_as_parameters(kind):
    for coordinates in (factors, natural):
        for targeting in (False, True):
            structure = coordinates(kind, 3, 2, 1, targeting)
            assert len(structure.names) == len(set(structure.names)) == structure.size
    assert natural("bekk", 2, 1, 1, False).names == (
        "C[1,1]", "C[2,1]", "C[2,2]", "A1[1,1]", "A1[1,2]", "A1[2,1]", "A1[2,2]",
        "G1[1,1]", "G1[1,2]", "G1[2,1]", "G1[2,2]",
    )  # fmt: skip
