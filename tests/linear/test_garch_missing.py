"""Missing returns in GARCH models: shocks at their expectation, nothing in the likelihood."""

import functools
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from tsrnn import GARCH, load
from tsrnn.linear.garch._density import DENSITIES

VOLATILITIES = ("garch", "gjr", "egarch", "avgarch", "tgarch")
PARAMS = {
    "garch": [0.1, 0.1, 0.8], "gjr": [0.1, 0.06, 0.1, 0.8], "egarch": [0.01, 0.2, -0.1, 0.95],
    "avgarch": [0.1, 0.1, 0.8], "tgarch": [0.1, 0.06, 0.1, 0.8],
}  # fmt: skip
BEFORE = 1.3  # variance before the first row


def density_of(nu):
    """Density of variance one."""
    if nu is None:
        return stats.norm()
    return stats.t(nu, scale=np.sqrt((nu - 2) / nu))


@functools.cache
def expected_size(nu):
    """Integral of |z| over the density."""
    half = integrate.quad(lambda z: z * density_of(nu).pdf(z), 0, np.inf)[0]
    return 2 * half


def loop(vol, params, nu, y):
    """Log-likelihood and variances, an expectation in place of what a missing value would add."""
    mu, omega, alpha, *gamma, beta = params
    gamma, size, root = (gamma or [0.0])[0], expected_size(nu), np.sqrt(2 / np.pi)
    total, variances, observed = 0.0, [], []
    transform = {"garch": 1, "gjr": 1, "egarch": 0}.get(vol, 0.5)
    g = np.log(BEFORE) if transform == 0 else BEFORE**transform
    expected = {1: (1, 0.5), 0.5: (size, size / 2)}.get(transform)
    # Before the first row shocks of logarithms are zero, others as of a residual of that variance.
    before = (0.0, 0.0) if transform == 0 else (g, 0.5 * g)
    g = omega + alpha * before[0] + gamma * before[1] + beta * g
    for value in y:
        h = np.exp(g) if transform == 0 else g ** (1 / transform)
        variances.append(h)
        e, sigma = value - mu, np.sqrt(h)
        if np.isnan(value):
            shocks = (size - root, 0.0) if transform == 0 else (expected[0] * g, expected[1] * g)
        else:
            total -= np.log(sigma)
            observed.append(e / sigma)
            if transform == 0:
                shocks = abs(e / sigma) - root, e / sigma
            else:
                shocks = abs(e) ** (2 * transform), abs(e) ** (2 * transform) * (e < 0)
        g = omega + alpha * shocks[0] + gamma * shocks[1] + beta * g
    return total + density_of(nu).logpdf(observed).sum(), np.array(variances)


def returns(n, seed=0, share=0.2):
    """Returns of a volatility that changes, and the same with missing values."""
    rng = np.random.default_rng(seed)
    whole = rng.standard_t(7, n) * np.exp(0.4 * np.sin(np.arange(n) / 20)) + 0.1
    return whole, np.where(rng.random(n) < share, np.nan, whole)


@pytest.mark.parametrize("distribution", ["normal", "t"])
@pytest.mark.parametrize("vol", VOLATILITIES)
class TestAgainstALoop:
    def model(self, vol, distribution, y, params=None):
        nu = 6.0 if distribution == "t" else None
        params = [0.05, *PARAMS[vol]] if params is None else params
        given = [*params, *([nu] if nu else [])]
        model = GARCH(vol=vol, distribution=distribution, initial_variance=BEFORE)
        return model.filter(pd.Series(y, name="y"), given), params, nu

    @pytest.mark.few("garch-normal", "gjr-t", "egarch-t", "avgarch-normal", "tgarch-normal")
    def test_likelihood_and_variances(self, vol, distribution):
        y = returns(300)[1]
        y[0], y[-2:] = 0.3, np.nan
        model, params, nu = self.model(vol, distribution, y)
        loglik, variances = loop(vol, params, nu, y)
        np.testing.assert_allclose(model.loglik_.iloc[0], loglik, rtol=1e-12)
        np.testing.assert_allclose(model.conditional_volatility() ** 2, variances, rtol=1e-10)
        assert model.nobs_.iloc[0] == np.isfinite(y).sum()

    @pytest.mark.few("garch-normal", "gjr-t", "egarch-t")
    def test_gradient(self, vol, distribution):
        y = returns(200)[1]
        y[0] = 0.3
        model, params, nu = self.model(vol, distribution, y)
        whole = np.array([*params, *([nu] if nu else [])])

        def value(at):
            return loop(vol, at[: len(params)], at[-1] if nu else None, y)[0]

        steps = 1e-5 * np.eye(len(whole))
        slopes = [(value(whole + step) - value(whole - step)) / 2e-5 for step in steps]
        np.testing.assert_allclose(model.estimates_.gradient[0], slopes, rtol=1e-5, atol=1e-4)


@pytest.mark.few("garch", "gjr", "avgarch")
@pytest.mark.filterwarnings("ignore:the likelihood of:UserWarning")  # ends on kinks of an EGARCH
@pytest.mark.parametrize("vol", VOLATILITIES)
def test_rows_before_the_first_value_change_nothing(vol):
    y = pd.Series(returns(400)[1], name="y")
    y.iloc[:30] = np.nan
    other = pd.Series(returns(400, seed=1)[1], name="other")
    both = GARCH(vol=vol).fit(pd.concat([y, other], axis=1))
    alone = GARCH(vol=vol).fit(y.loc[y.first_valid_index() :].reset_index(drop=True))
    np.testing.assert_allclose(both.params_.loc["y"], alone.params_.iloc[0], rtol=1e-8)
    first = y.first_valid_index()
    volatility = both.conditional_volatility()["y"]
    assert volatility[:first].isna().all()
    np.testing.assert_allclose(volatility[first:], alone.conditional_volatility(), rtol=1e-8)
    np.testing.assert_allclose(both.predict_variance(1)["y"], alone.predict_variance(1), rtol=1e-8)


@pytest.mark.parametrize("vol", ["garch", "gjr"])
@pytest.mark.parametrize("k", [1, 4])
def test_missing_rows_at_the_end_are_further_steps(vol, k):
    y = pd.Series(returns(400)[0], name="y")
    ended = pd.concat([y, pd.Series(np.nan, range(400, 400 + k), name="y")])
    short, long = GARCH(vol=vol).fit(y), GARCH(vol=vol).fit(ended)
    np.testing.assert_allclose(long.params_, short.params_, rtol=1e-10)
    assert long.loglik_.iloc[0] == pytest.approx(short.loglik_.iloc[0], rel=1e-13)
    expected = short.predict_variance(k + 3).iloc[k:]
    pd.testing.assert_series_equal(long.predict_variance(3), expected, check_freq=False)
    updated = short.update(ended[400:])
    np.testing.assert_allclose(updated.predict_variance(3), expected, rtol=1e-12)


def test_complete_series_beside_one_with_gaps_are_fitted_as_alone():
    whole, gaps = returns(500)
    together = GARCH().fit(pd.DataFrame({"whole": whole, "gaps": gaps}))
    for name, values in (("whole", whole), ("gaps", gaps)):
        alone = GARCH().fit(pd.Series(values, name=name))
        np.testing.assert_allclose(together.params_.loc[name], alone.params_.iloc[0], rtol=1e-8)
        np.testing.assert_allclose(together.bse_.loc[name], alone.bse_.iloc[0], rtol=1e-6)


@given(
    seen=st.lists(st.booleans(), min_size=120, max_size=120),
    cut=st.integers(20, 119),
    vol=st.sampled_from(VOLATILITIES),
)
@settings(max_examples=25, deadline=None)
def test_updates_lead_to_the_state_of_the_whole(seen, cut, vol):
    y = returns(120)[0]
    y[20:] = np.where(seen[20:], y[20:], np.nan)
    y = pd.Series(y, name="y")
    params = [0.05, *PARAMS[vol]]
    model = GARCH(vol=vol, initial_variance=BEFORE)
    whole = model.filter(y, params)
    updated = GARCH(vol=vol, initial_variance=BEFORE).filter(y[:cut], params).update(y[cut:])
    np.testing.assert_allclose(updated.predict_variance(1), whole.predict_variance(1), rtol=1e-12)


def test_results_and_the_file(tmp_path):
    y = pd.Series(returns(300)[1], pd.date_range("2024", periods=300), name="y")
    y.iloc[0] = 0.3
    model = GARCH(horizon=3, random_state=0).fit(y)
    assert model.nobs_.iloc[0] == y.notna().sum()
    residuals, missing = model.residuals(), y.isna()
    assert residuals[missing].isna().all()
    assert residuals[~missing].notna().all()
    np.testing.assert_allclose(
        model.fittedvalues()[missing], model.params_["mu"].iloc[0], rtol=1e-12
    )
    bootstrap = model.predict_variance(2, method="bootstrap")
    assert np.isfinite(bootstrap).all()
    model.save(tmp_path / "model")
    pd.testing.assert_frame_equal(
        load(tmp_path / "model").predict(level=90), model.predict(level=90)
    )


@pytest.mark.parametrize("mean", ["ar", "arma"])
def test_means_with_lags_have_no_place_for_missing_values(mean):
    y = pd.Series(returns(300)[1], name="y")
    with pytest.raises(ValueError, match=r"missing='keep' needs mean='constant' or 'zero'"):
        GARCH(mean=mean, missing="keep").fit(y)
    y.iloc[[0, -1]] = 0.1
    with pytest.warns(UserWarning, match="no place for missing values"):
        model = GARCH(mean=mean).fit(y)
    assert model.converged_.all()


def test_too_few_values_are_counted_without_the_missing_ones():
    y = pd.DataFrame({"y": returns(60)[0], "short": np.nan})
    y.loc[[0, 20, 59], "short"] = 1.0, 2.0, -1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = GARCH().fit(y)
    assert "the series has 3" in model.messages_["short"][0]


def test_estimates_are_nearly_unbiased_and_interpolated_ones_are_not():
    """A fifth of the values missing; the rule of expectations is not the exact likelihood."""
    truth, rng = np.array([0.1, 0.1, 0.8]), np.random.default_rng(1)
    series, n = 40, 5000
    e, h, y = np.zeros(series), np.ones(series), np.empty((n, series))
    for t in range(-200, n):
        h = truth[0] + truth[1] * e**2 + truth[2] * h
        e = np.sqrt(h) * rng.standard_normal(series)
        y[max(t, 0)] = e
    gaps = pd.DataFrame(y).add_prefix("y").mask(rng.random(y.shape) < 0.2)
    gaps.iloc[[0, -1]] = y[[0, -1]]
    bias = {
        missing: GARCH(mean="zero", missing=missing).fit(gaps).params_.mean() - truth
        for missing in ("keep", "interpolate")
    }
    assert np.abs(bias["keep"]).max() < 0.02
    assert (np.abs(bias["interpolate"]) > 5 * np.abs(bias["keep"])).all()


@pytest.mark.parametrize("nu", [2.05, 2.5, 4.0, 30.0, 500.0])
def test_the_expected_size_of_a_kernel_is_the_integral(nu):
    density = DENSITIES["t"]
    size = density.mean_size_at((torch.tensor(nu, dtype=torch.float64),)).item()
    np.testing.assert_allclose(size, density.mean_size(np.array([[nu]])).value[0], rtol=1e-13)
    if nu > 3:  # the tail is too heavy for quadrature below
        np.testing.assert_allclose(size, expected_size(nu), rtol=1e-8)
