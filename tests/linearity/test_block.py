"""Score test of a block against a loop over draws, and the likelihood ratio of networks."""

import numpy as np
import pytest
import statsmodels.api as sm
import torch

from tsrnn.datasets import threshold_autoregression
from tsrnn.layers import ParaRNN
from tsrnn.linearity import block_test, nested_test


@pytest.fixture(scope="module")
def y():
    return threshold_autoregression(120, random_state=0, below=0.6, above=0.1)[0]


def drawn_blocks(seed, n, d, L):
    """Draw blocks in the order in which the test does."""
    rng = np.random.default_rng(seed)
    directions = rng.normal(size=(n, d, L))
    directions /= np.linalg.norm(directions, axis=-1, keepdims=True)
    scale = np.exp(rng.uniform(np.log(0.5), np.log(3.0), (n, d)))
    bias = scale * rng.uniform(-1.5, 1.5, (n, d))
    turns = np.linalg.qr(rng.normal(size=(n, d, d)))[0]
    radius = rng.uniform(0, 0.95, (n, 1, 1)) * rng.choice([-1.0, 1.0], (n, 1, 1))
    return radius * turns, scale[..., None] * directions, bias, rng


@pytest.mark.parametrize("d", [1, 2, 3])
def test_statistics_and_wild_bootstrap_are_those_of_a_loop(y, d):
    p, R, B, n = 2, 5, 19, len(y) - 2
    W, U, b, rng = drawn_blocks(11, R, d, p)
    scaled = (y - y.mean()) / y.std(ddof=1)
    x = np.column_stack([scaled[p - i : len(y) - i] for i in range(1, p + 1)])
    X = sm.add_constant(x)
    e = sm.OLS(scaled[p:], X).fit().resid
    signs = rng.integers(0, 2, (n, B)) * 2.0 - 1.0
    # The layer of the package is the reference for the states: a block a draw.
    layer = ParaRNN(p, R * d, block_size=d, dtype=torch.float64)
    with torch.no_grad():
        layer.weight_ih_l0.copy_(torch.tensor(U.transpose(1, 0, 2).reshape(R * d, p)))
        layer.weight_hh_l0.copy_(torch.tensor(W.transpose(1, 2, 0)))
        layer.bias_l0.copy_(torch.tensor(b.T.reshape(-1)))
        states = layer(torch.tensor(x)[None])[0][0].numpy().reshape(n, d, R)
    observed, drawn = np.empty(R), np.empty((R, B))
    for r in range(R):
        left = np.column_stack([sm.OLS(h, X).fit().resid for h in states[:, :, r].T])
        inverse = np.linalg.inv((left * e[:, None] ** 2).T @ left)
        observed[r] = e @ left @ inverse @ left.T @ e
        for i in range(B):
            s = left.T @ (signs[:, i] * e)
            drawn[r, i] = s @ inverse @ s
    forms = {
        "exp": lambda lm: np.log(np.exp(lm / 2).mean(0)),
        "sup": lambda lm: lm.max(0),
        "ave": lambda lm: lm.mean(0),
    }
    table = block_test(y, p, block_size=d, n_blocks=R, n_bootstrap=B, random_state=11).table
    for name, form in forms.items():
        assert table.loc[name, "statistic"] == pytest.approx(form(observed), rel=1e-5)
        p_value = (1 + (form(drawn) >= form(observed)).sum()) / (B + 1)
        assert table.loc[name, "p_value"] == pytest.approx(p_value)


def test_forms_differ_in_the_row_that_is_the_result(y):
    results = {form: block_test(y, 1, form=form, random_state=0) for form in ("exp", "sup", "ave")}
    for form, result in results.items():
        assert result.p_value == result.table.loc[form, "p_value"]


@pytest.mark.parametrize("order", [(1, 0), (1, 1)])
def test_recursive_bootstrap_has_the_same_statistic(y, order):
    options = {"order": order, "n_blocks": 20, "n_bootstrap": 39, "random_state": 0}
    wild, recursive = (block_test(y, bootstrap=kind, **options) for kind in ("wild", "recursive"))
    np.testing.assert_array_equal(wild.table["statistic"], recursive.table["statistic"])
    # Of 39 draws p-values have a standard error of 0.08 at most.
    assert abs(wild.p_value - recursive.p_value) < 0.3


@pytest.mark.slow
def test_size_of_the_wild_bootstrap():
    rng, rejected = np.random.default_rng(0), 0
    for seed in range(200):
        noise = rng.normal(size=131)
        for t in range(1, 131):
            noise[t] += 0.6 * noise[t - 1]
        rejected += (
            block_test(noise, 1, n_blocks=50, n_bootstrap=99, random_state=seed).p_value <= 0.05
        )
    assert 2 <= rejected <= 21  # 10 expected; outside 0.1 percent on either side


def test_likelihood_ratio_is_never_negative_and_seeds_settle_it():
    rng = np.random.default_rng(0)
    options = {"lags": 1, "n_bootstrap": 9, "n_starts": 1, "random_state": 0}
    for _ in range(3):
        noise = rng.normal(size=60)
        result = nested_test(noise, block_size=1, **options)
        assert result.statistic >= 0
        assert nested_test(noise, block_size=1, **options).p_value == result.p_value


def test_likelihood_ratio_is_that_of_least_squares(y):
    # Of one block of one state, whose local optima scipy finds from several starts. Some have a
    # state that changes its sign in every row, which is not where contractions lead.
    from scipy.optimize import least_squares

    scaled = (y - y.mean()) / y.std(ddof=1)
    X = sm.add_constant(scaled[:-1])
    target = scaled[1:]

    def residuals(params):
        w, u, b = params[2:5]
        h, states = 0.0, np.empty(len(target))
        for t in range(len(target)):
            h = np.tanh(w * h + u * X[t, 1] + b)
            states[t] = h
        return target - X @ params[:2] - params[5] * states

    small = sm.OLS(target, X).fit()
    rng = np.random.default_rng(0)
    starts = [np.r_[small.params, 0.5 * rng.normal(size=3), 0.1] for _ in range(8)]
    ends = [least_squares(residuals, start, max_nfev=60) for start in starts]
    ratios = [len(target) * np.log(small.ssr / (2 * end.cost)) for end in ends if end.x[2] > -1]
    result = nested_test(y, 1, block_size=1, n_bootstrap=1, n_starts=10, random_state=0)
    assert result.statistic == pytest.approx(max(ratios), abs=0.05)
    assert result.p_value in (0.5, 1.0)


@pytest.mark.few("sizes1")
@pytest.mark.parametrize(
    "sizes",
    [
        {"null_blocks": 1},
        {"null_blocks": 1, "null_block_size": 1, "block_size": 2},
        {"null_blocks": 1, "null_block_size": 1, "blocks": 2, "block_size": 2},
    ],
)
def test_networks_are_nested(y, sizes):
    options = {"n_bootstrap": 4, "n_starts": 1, "random_state": 0}
    result = nested_test(y, 1, **sizes, **options)
    assert result.statistic >= 0
    assert "1 block of size" in result.null


def test_moving_average_in_the_networks(y):
    result = nested_test(y, order=(1, 1), block_size=1, n_bootstrap=4, n_starts=1, random_state=0)
    assert result.model == "ARMA(1, 1)"
    assert result.statistic > 0
