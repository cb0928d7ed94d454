"""The profile likelihood of an ARMA(1, 1) and the search on a grid of it."""

import numpy as np
import pandas as pd
import pytest

from tsrnn.linear import ARMA
from tsrnn.linear.arma._fit import samples
from tsrnn.linear.arma._profile import Products, loglik_at, products_along
from tsrnn.linear.arma._specification import Specification


@pytest.mark.parametrize("trend", ["c", "n"])
def test_it_is_the_exact_likelihood_where_the_mean_maximises_it(trend):
    rng, n = np.random.default_rng(3), 20
    y = rng.normal(size=(n, 80))
    y[5, 60:] = np.nan  # a shorter series
    ((sample, _),) = samples(Specification(1, 0, 1, trend, True), np.arange(n), y, None)
    likelihood, form = sample.likelihood, sample.prepared.form
    phi, theta = rng.uniform(-0.99, 0.99, n), rng.uniform(-1, 1, n)
    n_obs, roots = likelihood.n_obs, np.repeat(-theta[:, None], n, 1)  # a row for each
    products = Products(*map(np.diagonal, products_along(form, likelihood.lanes, n_obs, roots)))
    value, mean = loglik_at(form.constant, products, phi, -theta, n_obs)
    params = np.column_stack([*[mean] * (trend == "c"), phi, theta])
    exact = likelihood.evaluate(params, np.arange(n), False)
    constant = 0.5 * n_obs * (np.log(n_obs / (2 * np.pi)) - 1)
    np.testing.assert_allclose(value + constant, exact.value, rtol=1e-12)
    if trend == "c":
        np.testing.assert_allclose(exact.gradient[:, 0], 0, atol=1e-10)


@pytest.mark.few("-0.95-40")
@pytest.mark.parametrize("rows", [40, 300])
@pytest.mark.parametrize("theta", [0.0, -0.95])
def test_no_search_from_many_starts_finds_more(theta, rows):
    errors = np.random.default_rng(rows).normal(size=(rows + 1, 100))
    series = pd.DataFrame(errors[1:] + theta * errors[:-1])
    model = ARMA((1, 1)).fit(series)
    gain = model.loglik_ - ARMA((1, 1), n_starts=12).fit(series).loglik_
    assert (gain > -1e-6).all()
    assert model.starts_.mean() < 1.5  # what cannot be the highest is not climbed from


def test_a_mean_that_alternates_is_the_limit_of_both_roots():
    rng = np.random.default_rng(1)
    y = rng.normal(size=(100, 30)) + np.where(np.arange(100) % 2, 0.6, -0.6)[:, None]
    model, noise = (ARMA(order).fit(pd.DataFrame(y)) for order in ((1, 1), (0, 0)))
    mean = (np.where(np.arange(100) % 2, 1, -1) @ y) / 100
    # Of a random size: the likelihood of a fixed one less what its integration costs at most.
    fixed = -50 * np.log1p(-(mean**2) / y.var(0))
    assert (model.loglik_ - noise.loglik_ > fixed - 0.5 * np.log(100 * 0.6**2) - 3).all()
