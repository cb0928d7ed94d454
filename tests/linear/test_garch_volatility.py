"""Recursions of the standard deviation: against arch, closed forms and simulations."""

import inspect
import math
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import integrate, stats

from tsrnn import DCC, GARCH, load
from tsrnn.linear._optimise import Evaluation
from tsrnn.linear.garch._density import DENSITIES
from tsrnn.linear.garch._filter import resting_state
from tsrnn.linear.garch._fit import garch_at
from tsrnn.linear.garch._forecast import expected_variance, simulate_garch
from tsrnn.linear.garch._inference import (
    half_life,
    resting_variance,
    second_moment_root,
    unconditional_variance,
)
from tsrnn.linear.garch._specification import Model, UnivariateMean, box, persistence
from tsrnn.linear.garch._volatility import VOLATILITIES

from .references import arch_model

TRUE = [0.05, 0.05, 0.1, 0.85]
INTEGRATED = [0.02, 0.15, 0.1, 0.87]


def model_of(density="normal", p=1, q=1, vol="tgarch", mean=False):
    return Model(UnivariateMean(mean), VOLATILITIES[vol], DENSITIES[density], p, q)


@pytest.fixture(scope="module")
def returns():
    """Return 3000 values of a TGARCH."""
    drawn = GARCH(mean="zero", vol="tgarch", random_state=1).simulate(3000, TRUE)
    return drawn["y"].rename("r")


@pytest.mark.parametrize("vol", ["egarch", "tgarch"])
class TestKinks:
    """Absolute residuals have a kink in the mean, whose second derivative is no function.

    What it adds to the Hessian is zero in expectation, as it multiplies scores of the variance.
    """

    params: ClassVar[dict[str, list[float]]] = {
        "egarch": [0.05, 0.0, 0.3, -0.1, 0.9], "tgarch": [0.05, 0.05, 0.1, 0.1, 0.85],
    }  # fmt: skip

    @pytest.mark.slow
    def test_the_hessian_without_them_is_the_curvature_of_the_likelihood(self, vol):
        model, truth = GARCH(vol=vol, random_state=0), self.params[vol]
        y = model.simulate(30_000, truth)["y"]
        step = 0.1  # of many residuals, so that kinks make a smooth sum
        moved = [truth, [truth[0] - step, *truth[1:]], [truth[0] + step, *truth[1:]]]
        at, below, above = (model.filter(y, params).estimates_ for params in moved)
        bend = (below.loglik + above.loglik - 2 * at.loglik) / step**2
        np.testing.assert_allclose(at.hessian[:, 0, 0], bend, rtol=0.05)

    @pytest.mark.slow
    def test_errors_of_the_mean_are_those_of_replications(self, vol):
        noise = pd.DataFrame(np.random.default_rng(0).standard_normal((30, 300)))
        model = GARCH(vol=vol).filter(noise, self.params[vol])
        fits = model.fit(model.simulate(400, random_state=1))
        errors = fits.bse_["mu"]
        assert errors.median() == pytest.approx(fits.params_["mu"].std(), rel=0.12)


@pytest.mark.few("normal-order0", "t-order1")
@pytest.mark.parametrize("mean", ["constant", "zero", "ar"])
@pytest.mark.parametrize("order", [(1, 1), (2, 1), (1, 2), (1, 0)])
@pytest.mark.parametrize("distribution", ["normal", "t"])
def test_log_likelihood_and_volatilities_are_those_of_arch(returns, distribution, order, mean):
    model = GARCH(order, mean, vol="tgarch", distribution=distribution)
    (p, q), shares = order, {1: [1.0], 2: [0.6, 0.4], 0: []}
    params = [0.1, 0.05][: {"zero": 0, "constant": 1, "ar": 2}[mean]]
    params += [0.08, *(0.06 * np.array(shares[p])), *(0.1 * np.array(shares[p]))]
    params += [*(0.8 * np.array(shares[q])), *[7.0] * (distribution == "t")]
    model.filter(returns, params)
    oracle = arch_model(returns.rename("y"), model.fitted_.family.model).fix(params)
    assert model.loglik_.iloc[0] == pytest.approx(oracle.loglikelihood, rel=1e-10)
    np.testing.assert_allclose(
        model.conditional_volatility(), oracle.conditional_volatility, rtol=1e-10
    )
    assert list(model.params_.columns) == list(oracle.params.index)


@pytest.mark.parametrize("vol", ["tgarch", "avgarch"])
@pytest.mark.parametrize("mean", ["zero", "constant"])
def test_estimates_and_standard_errors_are_those_of_arch(returns, mean, vol):
    model = GARCH(vol=vol, mean=mean, cov_type="arch-robust").fit(returns)
    oracle = arch_model(returns, model.fitted_.family.model).fit(disp="off", tol=1e-12)
    np.testing.assert_allclose(model.loglik_, oracle.loglikelihood, rtol=1e-12)
    np.testing.assert_allclose(model.params_.iloc[0], oracle.params, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(model.bse_.iloc[0], oracle.std_err, rtol=3e-4)


def test_simulated_forecasts_converge_to_those_of_arch(returns):
    model = GARCH(vol="tgarch", n_simulations=100_000, random_state=0).fit(returns)
    oracle = arch_model(returns, model.fitted_.family.model).fix(model.params_.iloc[0].to_numpy())
    draw = np.random.default_rng(0).standard_normal
    ahead = oracle.forecast(horizon=5, method="simulation", simulations=100_000, rng=draw)
    expected = ahead.variance.iloc[-1].to_numpy()
    for method, tolerance in (("analytic", 0.005), ("simulation", 0.01), ("bootstrap", 0.03)):
        found = model.predict_variance(5, method=method)
        np.testing.assert_allclose(found, expected, rtol=tolerance)
    paths = ahead.simulations.values[-1]
    table = model.predict(5, level=90)
    for end, share in (("lo", 5), ("hi", 95)):
        quantiles = np.percentile(paths, share, axis=0)
        np.testing.assert_allclose(table[f"r-{end}-90"], quantiles, rtol=0.02)


@pytest.mark.few("normal")
@pytest.mark.parametrize("density", DENSITIES)
@pytest.mark.parametrize(("p", "q"), [(1, 1), (2, 1), (1, 3), (2, 0)])
def test_expected_variances_are_means_of_paths(density, p, q):
    model, shape = model_of(density, p, q), [8.0] * (density == "t")
    row = np.array([0.1, *[0.08 / p] * p, *[0.1 / p] * p, *[0.7 / max(q, 1)] * q, *shape])
    params = row[None]
    begin = resting_state(model, params, np.array([4.0]))
    z = model.density.draw(np.random.default_rng(0), (6, 400_000), params[:, model.shape_part])
    made = simulate_garch(model, params, begin, z).variance.mean(2)
    np.testing.assert_allclose(expected_variance(model, params, begin, 6), made, rtol=4e-3)


@pytest.mark.parametrize("density", DENSITIES)
def test_moments_against_closed_forms(density):
    model, nu = model_of(density), 6.0
    omega, alpha, gamma, beta = TRUE
    params = np.array([[*TRUE, *[nu] * (density == "t")]])
    scale = math.sqrt((nu - 2) / nu)
    law = stats.norm() if density == "normal" else stats.t(nu, scale=scale)
    effect = lambda z: alpha * abs(z) + gamma * abs(z) * (z < 0) + beta  # noqa: E731
    first, second = (
        integrate.quad(lambda z, k=k: effect(z) ** k * law.pdf(z), -np.inf, 0)[0]
        + integrate.quad(lambda z, k=k: effect(z) ** k * law.pdf(z), 0, np.inf)[0]
        for k in (1, 2)
    )
    np.testing.assert_allclose(persistence(model, params), first, rtol=1e-8)
    np.testing.assert_allclose(half_life(model, params), math.log(0.5) / math.log(first), rtol=1e-7)
    np.testing.assert_allclose(second_moment_root(model, params), second, rtol=1e-8)
    np.testing.assert_allclose(resting_variance(model, params), (omega / (1 - first)) ** 2)
    expected = omega**2 * (1 + first) / ((1 - first) * (1 - second))
    np.testing.assert_allclose(unconditional_variance(model, params), expected, rtol=1e-7)


def test_unconditional_variance_is_the_limit_of_forecasts():
    model = model_of("t", 2, 3)
    params = np.array([[0.1, 0.04, 0.03, 0.05, 0.1, 0.3, 0.2, 0.2, 9.0]])
    begin = resting_state(model, params, np.array([0.01]))
    limit = expected_variance(model, params, begin, 3000)[0, -1]
    np.testing.assert_allclose(unconditional_variance(model, params), limit, rtol=1e-10)
    wild = np.array([[0.1, 0.0, 0.0, 0.9, 0.9, 0.1, 0.0, 0.0, 9.0]])
    assert persistence(model, wild)[0] < 1 < second_moment_root(model, wild)[0]
    assert np.isinf(unconditional_variance(model, wild))[0]


@pytest.mark.parametrize("density", DENSITIES)
def test_coordinates_have_the_derivatives_of_natural_parameters(density):
    """Of a function that is quadratic in natural parameters, against torch's derivatives."""
    model = model_of(density, 2, 1, mean=True)
    params = np.array([[0.1, 0.2, 0.05, 0.1, 0.02, 0.08, 0.7, *[5.0] * (density == "t")]])
    k, rng = params.shape[1], np.random.default_rng(0)
    slope, root = rng.normal(size=k), rng.normal(size=(k, k))
    bend = root @ root.T
    coordinates = box(model)
    at = coordinates.of(params)
    np.testing.assert_allclose(coordinates.natural(at), params, rtol=1e-14)

    def natural(values):
        linear = torch.from_numpy(coordinates.matrix) @ values
        shape = 1 / linear[model.shape_part]
        size = math.sqrt(2 / math.pi)
        if density == "t":
            ratio = torch.lgamma((shape - 1) / 2) - torch.lgamma(shape / 2)
            size = torch.sqrt((shape - 2) / math.pi) * torch.exp(ratio)
        shocks = linear[model.shock_part] / size
        first, last = model.shock_part.start, model.shock_part.stop
        beta = linear[last : model.shape_part.start]
        return torch.cat([linear[:first], shocks, beta, shape])

    def value(values):
        theta = natural(values)
        return torch.from_numpy(slope) @ theta + theta @ torch.from_numpy(bend) @ theta / 2

    evaluation = Evaluation(np.zeros(1), slope + params @ bend, -bend[None])
    found = coordinates.pulled(params, evaluation, exact=True)
    theta = torch.tensor(at[0], requires_grad=True)
    (gradient,) = torch.autograd.grad(value(theta), theta)
    hessian = torch.autograd.functional.hessian(value, torch.tensor(at[0]))
    np.testing.assert_allclose(found.gradient[0], gradient, rtol=1e-10)
    # the trigamma function of torch has some nine digits
    np.testing.assert_allclose(-found.curvature[0], hessian, rtol=1e-7, atol=1e-9)


@pytest.mark.few("normal")
@pytest.mark.parametrize("density", DENSITIES)
def test_persistence_is_held_at_one_by_the_moment_of_the_density(density):
    shape = [5.0] * (density == "t")
    drawn = [
        GARCH(
            mean="zero", vol="tgarch", distribution=density, initial_variance=1.0, random_state=i
        ).simulate(800, [*INTEGRATED, *shape], burn=0)["y"]
        for i in range(4)
    ]
    y = pd.concat(drawn, axis=1, keys=range(4))
    arguments = {"mean": "zero", "vol": "tgarch", "distribution": density, "cov_type": "hessian"}
    free, held = GARCH(stationary=False, **arguments).fit(y), GARCH(**arguments).fit(y)
    beyond = (free.persistence_ > 1).to_numpy()
    assert beyond.sum() >= 2
    np.testing.assert_allclose(held.persistence_[beyond], 1.0, rtol=0, atol=1e-12)
    np.testing.assert_allclose(held.loglik_[~beyond], free.loglik_[~beyond])
    assert (held.loglik_[beyond] < free.loglik_[beyond]).all()
    assert held.converged_.all()
    model, i = model_of(density), int(np.flatnonzero(beyond)[0])
    estimates, names = held.estimates_, list(held.params_.columns)
    dropped, loose = names.index("beta[1]"), np.flatnonzero(~estimates.fixed[i])
    assert dropped not in loose
    assert any("imposed" in text for text in estimates.messages[i])

    def value(step):
        """Log-likelihood where beta follows from the others, as the persistence stays at one."""
        theta = estimates.params[i].copy()
        theta[loose] += step
        theta[dropped] = 0.0
        theta[dropped] = 1 - persistence(model, theta[None])[0]
        rows = y[i].to_numpy(copy=True)[None]
        return garch_at(model, rows, np.array([800]), theta[None], "backcast").estimates.loglik[0]

    size = 1e-4 * np.abs(estimates.params[i, loose])
    for a in range(len(loose)):
        for b in range(a + 1):
            ea, eb = size[a] * np.eye(len(loose))[a], size[b] * np.eye(len(loose))[b]
            corners = value(ea + eb) - value(ea - eb) - value(eb - ea) + value(-ea - eb)
            second = corners / (4 * size[a] * size[b])
            found = estimates.hessian[i][loose[a], loose[b]]
            assert found == pytest.approx(second, rel=5e-3)
    simulated = held.simulate(5, burn=3, random_state=0)  # rests nowhere: from the presample
    assert np.isfinite(simulated).all(axis=None)


def test_the_network_and_the_file_are_those_of_the_recursion(returns, tmp_path):
    model = GARCH((2, 1), vol="tgarch", random_state=0).fit(returns[:500])
    e = torch.from_numpy(model.residuals().to_numpy(copy=True))
    inputs = torch.stack([e.abs(), torch.where(e < 0, -e, 0.0)], -1)[None]
    with torch.no_grad():
        states, _ = model.to_rnn()(inputs, model.rnn_start())
    expected = model.conditional_volatility().to_numpy()
    np.testing.assert_allclose(states[0, :-1, 0], expected[1:], rtol=1e-12)
    np.testing.assert_allclose(states[0, -1, 0], np.sqrt(model.predict_variance(1).iloc[0]))
    read = GARCH.from_rnn(model.to_rnn())
    np.testing.assert_allclose(read["gamma[2]"], model.params_["gamma[2]"].iloc[0], atol=1e-12)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    pd.testing.assert_frame_equal(again.predict(3, level=90), model.predict(3, level=90))
    whole = GARCH(
        (2, 1), vol="tgarch", initial_variance=float(model.fitted_.constants["presample"][0])
    )
    whole.filter(returns[:600], model.params_)
    again.update(returns[500:600])
    pd.testing.assert_series_equal(again.predict_variance(4), whole.predict_variance(4), rtol=1e-10)


def test_leverage_is_tested_against_absolute_values(returns):
    test = GARCH(vol="tgarch").fit(returns).lr_test(GARCH(vol="avgarch").fit(returns))
    assert test["df"].iloc[0] == 1
    assert test["p_value"].iloc[0] < 1e-6
    with pytest.raises(ValueError, match="nested"):
        GARCH(vol="tgarch").fit(returns).lr_test(GARCH(vol="garch").fit(returns))


def test_words_are_of_the_standard_deviation(returns):
    model = GARCH(vol="tgarch").fit(returns)
    page = str(model.summary())
    for text in ("TGARCH(1, 1), constant mean", "Persistence", "gamma[1]"):
        assert text in page
    curve = model.news_impact([-1.0, 0.0, 2.0])["r"]
    omega, alpha, gamma, beta = model.params_.iloc[0, 1:]
    rest = omega / (1 - model.persistence_.iloc[0])
    effects = np.array([(alpha + gamma) * 1.0, 0.0, alpha * 2.0])
    np.testing.assert_allclose(curve, (omega + (beta + effects) * rest) ** 2)
    blocks = model.recurrent_blocks()[0]
    np.testing.assert_allclose(blocks["variance"].ravel(), model.persistence_)
    np.testing.assert_allclose(blocks["beta"].ravel(), beta)


def test_an_entry_of_the_table_is_all_that_a_model_needs(returns, monkeypatch):
    monkeypatch.setitem(VOLATILITIES, "zakoian", replace(VOLATILITIES["tgarch"], name="zakoian"))
    found, expected = (GARCH(vol=vol).fit(returns[:800]) for vol in ("zakoian", "tgarch"))
    pd.testing.assert_frame_equal(found.params_, expected.params_)
    pd.testing.assert_series_equal(found.predict_variance(3), expected.predict_variance(3))


def test_an_entry_whose_moments_are_not_known_is_refused():
    with pytest.raises(ValueError, match="power must be 1, 0.5 or 0"):
        replace(VOLATILITIES["tgarch"], power=0.75)
    with pytest.raises(ValueError, match="expected must have a number for each"):
        replace(VOLATILITIES["tgarch"], expected=(1.0,))


@pytest.mark.parametrize(
    ("shocks", "came"), [(lambda e, h: (e * e,), "1 shocks"), (lambda e, h: e * e, "Tensor")]
)
def test_an_entry_without_a_shock_for_each_coefficient_is_refused(shocks, came):
    with pytest.raises(ValueError, match=rf"^shocks must return a tuple .*; got {came}$"):
        replace(VOLATILITIES["tgarch"], shocks=shocks)


def test_simulate_has_the_arguments_of_the_multivariate_models():
    expected = inspect.signature(DCC.simulate).parameters
    assert list(inspect.signature(GARCH.simulate).parameters) == list(expected)
