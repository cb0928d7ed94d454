"""The likelihood of VARMA models and its derivatives, against VARMAX and a plain Kalman filter."""

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal
from statsmodels.tsa.statespace.varmax import VARMAX

from tsrnn.linear import VARMA
from tsrnn.linear.varma._inference import innovations, outer_products, scores
from tsrnn.linear.varma._likelihood import admissible, evaluate, linearised
from tsrnn.linear.varma._prepare import Sample
from tsrnn.linear.varma._residuals import Filter, columns
from tsrnn.linear.varma._specification import TRENDS, Coefficients, Shape

pytestmark = pytest.mark.filterwarnings("ignore:Estimation of VARMA")


def problem(n, p, q, trend="c", n_exog=0, *, exact=True, rows=30, missing=0.0, seed=0):
    """Admissible parameters and a sample of one unit that they need not fit."""
    rng = np.random.default_rng(seed)
    shape = Shape(n, p, q, trend, n_exog, exact)
    params = rng.normal(0, 0.3 / np.sqrt(n * max(p, q)), shape.k)
    params[shape.n_mean :] += np.eye(n)[np.tril_indices(n)]
    y, x = rng.normal(1, 1, (rows, n)), rng.normal(size=(rows, n_exog))
    y[rng.random(y.shape) < missing] = np.nan
    design = np.hstack([np.ones((rows, 1)), np.arange(1.0, rows + 1)[:, None]])
    design = np.hstack([design[:, : shape.n_trend], x])
    sample = Sample(shape, y[None], design[None], np.zeros((1, n)), np.array([rows]))
    assert admissible(shape, params[None], sample.rows).all()
    return shape, params, sample


def plain_filter(shape, theta, sample):
    """Errors and covariances of each row's observed targets: the obvious loop, in torch.

    The state is (y_t, ..., y_{t-r+1}, e_t, ..., e_{t-r+1}), r = max(p, q).
    """
    n, lags = shape.n, max(shape.p, shape.q)
    B, ar = theta[shape.at_design], theta[shape.at_ar].reshape(n, -1)
    ma = theta[shape.at_ma].reshape(n, -1)
    L = torch.zeros(n, n, dtype=theta.dtype)
    L[np.tril_indices(n)] = theta[shape.n_mean :]
    size = 2 * lags * n
    T, R = torch.zeros(size, size, dtype=theta.dtype), torch.zeros(size, n, dtype=theta.dtype)
    T[:n, : ar.shape[1]], T[:n, lags * n : lags * n + ma.shape[1]] = ar, ma
    for block in (0, lags * n):
        below = torch.arange(block + n, block + lags * n)
        T[below, below - n] = 1.0
        R[block : block + n] = torch.eye(n, dtype=theta.dtype)
    design = torch.tensor(sample.design[0])
    Q = R @ L @ L.T @ R.T
    offset = torch.nn.functional.pad(design @ B.T, (0, size - n))
    if shape.exact:
        mean = torch.linalg.solve(torch.eye(size, dtype=theta.dtype) - T, offset[1])
        kron = torch.eye(size**2, dtype=theta.dtype) - torch.kron(T, T)
        cov = torch.linalg.solve(kron, Q.flatten()).reshape(size, size)
    else:
        mean, cov = offset[0], Q
    errors, covs = [], []
    for t, row in enumerate(sample.y[0]):
        seen = torch.from_numpy(np.flatnonzero(np.isfinite(row)))
        errors.append(torch.tensor(row)[seen] - mean[seen])
        F = cov[seen][:, seen]
        covs.append(F)
        gain = torch.linalg.solve(F, cov[seen]).T
        mean, cov = mean + gain @ errors[-1], cov - gain @ cov[seen]
        mean, cov = T @ mean, T @ cov @ T.T + Q
        mean = mean + offset[min(t + 1, len(offset) - 1)]
    return errors, covs


def plain_contributions(shape, theta, sample):
    return torch.stack(
        [
            -0.5 * (len(v) * np.log(2 * np.pi) + torch.logdet(F) + v @ torch.linalg.solve(F, v))
            if len(v)
            else 0 * theta.sum()
            for v, F in zip(*plain_filter(shape, theta, sample), strict=True)
        ]
    )


CASES = [
    (2, 1, 1, "c", 0, 0.0),
    (2, 2, 1, "n", 0, 0.0),
    (3, 1, 2, "ct", 1, 0.0),
    (2, 0, 2, "c", 0, 0.0),
    (3, 2, 0, "c", 0, 0.0),
    (2, 1, 1, "ct", 2, 0.2),
    (3, 2, 1, "c", 0, 0.3),
]


@pytest.mark.parametrize(("n", "p", "q", "trend", "n_exog", "missing"), CASES)
def test_exact_loglik_is_that_of_varmax(n, p, q, trend, n_exog, missing):
    shape, params, sample = problem(n, p, q, trend, n_exog, rows=60, missing=missing)
    exog = sample.design[0, :, shape.n_trend :] if n_exog else None
    varmax = VARMAX(sample.y[0], exog=exog, order=(p, q), trend=trend)
    varmax.ssm.tolerance = 0  # no steady state before its time
    targets, regressors = [f"y{i + 1}" for i in range(n)], varmax.exog_names or []
    assert shape.names(targets, list(regressors)) == tuple(varmax.param_names)
    value = evaluate(params[None], sample, exact=False).value[0]
    np.testing.assert_allclose(value, varmax.loglike(params), rtol=1e-9)


@pytest.mark.parametrize(("n", "p", "q"), [(2, 1, 1), (2, 3, 3), (3, 1, 2), (3, 2, 1), (2, 0, 1)])
def test_zero_start_predictions_are_those_of_varmax(n, p, q):
    shape, params, sample = problem(n, p, q, exact=False, rows=80)
    coefficients = shape.unpack(params[None])
    E = columns(coefficients, sample, Filter(coefficients, 80))[:, :, 0, 0]
    ours = sample.y[0] - E @ coefficients.chol[0].T
    varmax = VARMAX(sample.y[0], order=(p, q))
    varmax.update(params)
    shocks = varmax["selection"] @ varmax["state_cov"] @ varmax["selection"].T
    varmax.initialize_known(varmax["state_intercept"].ravel(), shocks)
    varmax.ssm.tolerance = 0
    np.testing.assert_allclose(ours, varmax.ssm.filter().forecasts.T, atol=1e-10)


@pytest.mark.few("2-1-1-c-0-0.0", "3-2-1-c-0-0.3-True", "3-1-2-ct-1-0.0-True")
@pytest.mark.parametrize(
    ("n", "p", "q", "trend", "n_exog", "missing", "exact"),
    [(*case, True) for case in CASES] + [(*case, False) for case in CASES if not case[-1]],
)
def test_derivatives_are_those_of_autograd(n, p, q, trend, n_exog, missing, exact):
    shape, params, sample = problem(n, p, q, trend, n_exog, exact=exact, rows=9, missing=missing)
    theta = torch.tensor(params)

    def plain(theta):
        return plain_contributions(shape, theta, sample)

    by_row = torch.autograd.functional.jacobian(plain, theta).numpy()
    hessian = torch.autograd.functional.hessian(lambda x: plain(x).sum(), theta).numpy()
    found = evaluate(params[None], sample, exact=True)
    np.testing.assert_allclose(found.value[0], float(plain(theta).sum()), rtol=1e-12)
    np.testing.assert_allclose(found.gradient[0], by_row.sum(0), atol=1e-9 * abs(by_row).max())
    np.testing.assert_allclose(-found.curvature[0], hessian, atol=1e-9 * abs(hessian).max())
    ours = scores(innovations(linearised(params[None], sample)))[0]
    np.testing.assert_allclose(ours, by_row, atol=1e-9 * abs(by_row).max())


@pytest.mark.slow
def test_scores_with_gaps_are_exact_after_many_rows():
    """Rounding of the filter's covariance must not grow where the state comes to be known."""
    shape, params, sample = problem(2, 1, 2, rows=80, missing=0.08)
    ar, ma = [0.87, 0.6, -0.8, 0.41], [-0.07, -0.2, -0.13, -0.07, -0.01, 0.22, 0.25, -0.05]
    params = np.array([1.0, 1.0, *ar, *ma, 1.0, 0.0, 0.9])
    theta = torch.tensor(params)

    def plain(theta):
        return plain_contributions(shape, theta, sample)

    expected = torch.autograd.functional.jacobian(plain, theta).numpy()
    found = scores(innovations(linearised(params[None], sample)))[0]
    np.testing.assert_allclose(found, expected, atol=1e-9 * abs(expected).max())


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_information_is_that_of_the_innovations(missing):
    shape, params, sample = problem(2, 1, 1, rows=8, missing=missing)
    theta = torch.tensor(params)

    def parts(theta):
        errors, covs = plain_filter(shape, theta, sample)
        return tuple(errors) + tuple(covs)

    values, slopes = parts(theta), torch.autograd.functional.jacobian(parts, theta)
    rows, expected = len(values) // 2, torch.zeros(shape.k, shape.k, dtype=torch.float64)
    for t in range(rows):
        F, dv, dF = values[rows + t], slopes[t], slopes[rows + t]
        if len(dv):
            inverse = torch.linalg.inv(F)
            expected += torch.einsum("ik,ij,jl->kl", dv, inverse, dv)
            expected += torch.einsum("ab,bck,cd,dal->kl", inverse, dF, inverse, dF) / 2
    found = outer_products(linearised(params[None], sample)).information[0]
    np.testing.assert_allclose(found, expected, atol=1e-9 * float(expected.abs().max()))


@settings(max_examples=25, deadline=None)
@given(
    n=st.integers(1, 3),
    p=st.integers(0, 2),
    q=st.integers(0, 3),
    trend=st.sampled_from(list(TRENDS)),
    rows=st.integers(4, 12),
    exact=st.booleans(),
    missing=st.sampled_from([0.0, 0.5]),
    seed=st.integers(0, 10**6),
)
def test_any_shape_has_the_likelihood_of_the_plain_filter(
    n, p, q, trend, rows, exact, missing, seed
):
    if p + q == 0 or (missing and not exact):
        return
    shape, params, sample = problem(
        n, p, q, trend, exact=exact, rows=rows, missing=missing, seed=seed
    )
    with torch.no_grad():
        expected = float(plain_contributions(shape, torch.tensor(params), sample).sum())
    found = evaluate(params[None], sample, exact=False)
    np.testing.assert_allclose(found.value[0], expected, rtol=1e-9, atol=1e-9)
    again = evaluate(params[None], sample, exact=True)
    np.testing.assert_allclose(again.value[0], found.value[0], rtol=1e-12)


@pytest.mark.parametrize("exact", [True, False])
def test_units_of_unequal_lengths_are_as_if_alone(exact):
    shape, first, whole = problem(2, 1, 1, rows=40, exact=exact)
    _, second, _ = problem(2, 1, 1, exact=exact, seed=5)
    y = np.concatenate([whole.y, whole.y[:, ::-1]])
    y[1, 25:] = np.nan
    both = Sample(shape, y, np.ones((2, 40, 1)), np.zeros((2, 2)), np.array([40, 25]))
    params = np.stack([first, second])
    together = evaluate(params, both, exact=True)
    products = outer_products(linearised(params, both))
    for i, rows in enumerate(both.rows):
        own = both.select(np.array([i]))
        assert own.y.shape == (1, rows, 2)
        for ours, alone in zip(together, evaluate(params[i : i + 1], own, exact=True), strict=True):
            np.testing.assert_allclose(ours[i], alone[0], rtol=1e-9, atol=1e-9)
        alone = outer_products(linearised(params[i : i + 1], own))
        for ours, one in zip(products, alone, strict=True):
            np.testing.assert_allclose(ours[i], one[0], rtol=1e-9, atol=1e-9)


def test_inadmissible_units_are_marked_and_cost_no_other():
    shape, params, sample = problem(2, 1, 1)
    bad = np.tile(params, (4, 1))
    bad[1, shape.at_ma[:, 0]] = -1.2 * np.eye(2)
    bad[2, shape.at_ar[:, 0]] = 1.01 * np.eye(2)
    bad[3, shape.n_mean] = -1.0
    four = Sample(shape, *(np.tile(a, (4, 1, 1)) for a in (sample.y, sample.design)),
                  np.zeros((4, 2)), np.full(4, 30))  # fmt: skip
    values = evaluate(bad, four, exact=False).value
    assert np.isneginf(values[1:]).all()
    alone = evaluate(params[None], sample, exact=False).value[0]
    np.testing.assert_allclose(values[0], alone)
    free = Shape(2, 1, 1, "c", 0, exact=False)
    assert admissible(free, bad, four.rows).tolist() == [True, False, True, False]


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 3), st.integers(1, 3), st.integers(1, 9), st.integers(1, 4))
def test_both_filters_agree_with_a_loop(n, q, steps, lanes):
    rng = np.random.default_rng(n + 10 * q + 100 * steps)
    ma, forcing = rng.normal(0, 0.3, (1, q, n, n)), rng.normal(size=(steps, n, 1, lanes))
    chol = np.tril(rng.normal(size=(1, n, n)), -1) + rng.uniform(0.5, 2, n) * np.eye(n)
    expected = np.zeros((steps + q, n, lanes))
    for t in range(steps):
        past = sum(ma[0, j] @ expected[q + t - 1 - j] for j in range(q))
        expected[q + t] = forcing[t, :, 0] - past
    expected = np.linalg.solve(chol, expected[q:])
    coefficients = Coefficients(np.empty((2, n, 0)), np.empty((2, 0, n, n)), *(ma, chol))
    one = Filter(coefficients, steps)
    two = Filter(Coefficients(*(np.repeat(part[:1], 2, 0) for part in coefficients)), steps)
    both = np.repeat(forcing, 2, 2)
    for found in (one.run(forcing), two.run(both)[:, :, :1], two.run(both)[:, :, 1:]):
        np.testing.assert_allclose(found[:, :, 0], expected, atol=1e-12)
    # The transposed map is that of the transposed matrix.
    other = rng.normal(size=forcing.shape)
    product = np.einsum("tnul,tnul->l", other, one.run(forcing))
    for found in (one.run_back(other), two.run_back(np.repeat(other, 2, 2))[:, :, 1:]):
        back = np.einsum("tnul,tnul->l", found, forcing)
        np.testing.assert_allclose(back, product, atol=1e-11)


@pytest.mark.parametrize(("p", "q"), [(1, 0), (0, 1), (1, 1), (2, 1)])
@pytest.mark.parametrize("trend", ["n", "c"])
def test_the_presample_is_stationary_or_known(p, q, trend):
    """Joint normal density of all rows, or a loop from no innovations and the mean."""
    rng, n, T = np.random.default_rng(p + 2 * q), 2, 12
    y = 3 + rng.standard_normal((T, n))
    ar, ma = (0.3 * rng.uniform(-1, 1, (lags, n, n)) for lags in (p, q))
    intercept = np.array([1.0, -0.5]) if trend == "c" else np.zeros(n)
    chol = np.array([[1.2, 0.0], [0.4, 0.9]])
    sigma = chol @ chol.T
    psi = [np.eye(n)]
    for j in range(1, 200):
        psi.append(ma[j - 1] if j <= q else np.zeros((n, n)))
        psi[j] = psi[j] + sum(ar[i] @ psi[j - 1 - i] for i in range(min(p, j)))
    gamma = [sum(psi[j + k] @ sigma @ psi[j].T for j in range(200 - k)) for k in range(T)]
    cov = np.block([[gamma[s - t] if s >= t else gamma[t - s].T for t in range(T)]
                    for s in range(T)])  # fmt: skip
    mean = np.tile(np.linalg.solve(np.eye(n) - ar.sum(0), intercept), T)
    exact = multivariate_normal(mean, cov).logpdf(y.ravel())
    before = y.mean(0) if trend == "c" else np.zeros(n)
    rows, e, conditional = [before] * p + list(y), [np.zeros(n)] * q, 0.0
    for t in range(T):
        expected = intercept + sum(ar[i] @ rows[p + t - 1 - i] for i in range(p))
        expected = expected + sum(ma[j] @ e[q + t - 1 - j] for j in range(q))
        e.append(y[t] - expected)
        conditional += multivariate_normal(np.zeros(n), sigma).logpdf(e[-1])
    lags = [part.transpose(1, 0, 2).ravel() for part in (ar, ma)]
    params = np.concatenate([*([intercept] if trend == "c" else []), *lags, [1.2, 0.4, 0.9]])
    frame = pd.DataFrame(y, columns=["a", "b"])
    for likelihood, value in (("exact", exact), ("conditional", conditional)):
        model = VARMA((p, q), trend, likelihood).filter(frame, params)
        np.testing.assert_allclose(model.loglik_.iloc[0], value, rtol=1e-10)
    varmax = VARMAX(frame, order=(p, q), trend=trend)
    varmax.ssm.tolerance = 0
    np.testing.assert_allclose(varmax.loglike(params), exact, rtol=1e-10)
