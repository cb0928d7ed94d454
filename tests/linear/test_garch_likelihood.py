"""The log-likelihood of GARCH models and its derivatives, against arch, loops and integrals."""

import math

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tsrnn.kernels import Lanes, recurrence
from tsrnn.linear.garch._density import DENSITIES, Normal, Student
from tsrnn.linear.garch._filter import Past, VarianceState, filter_garch, initial_state
from tsrnn.linear.garch._fit import garch_at
from tsrnn.linear.garch._forecast import simulate_garch
from tsrnn.linear.garch._likelihood import Likelihood
from tsrnn.linear.garch._prepare import presample_of, sample_of, spread_of, to_user
from tsrnn.linear.garch._specification import Model, UnivariateMean
from tsrnn.linear.garch._start import mean_start
from tsrnn.linear.garch._volatility import VOLATILITIES

from .references import arch_model

MEANS = {
    "Zero": UnivariateMean(False),
    "Constant": UnivariateMean(True),
    "AR": UnivariateMean(True, (1, 3)),
}
ARMA = UnivariateMean(True, (1, 2), 2)
NU = 6.5
SHOCKS = {
    "garch": [0.1], "gjr": [0.05, 0.08], "egarch": [0.15, -0.06], "avgarch": [0.1],
    "tgarch": [0.05, 0.08],
}  # fmt: skip


def model_of(vol="garch", density="normal", mean=MEANS["Constant"], p=1, q=1, padded=False):
    return Model(mean, VOLATILITIES[vol], DENSITIES[density], p, q, padded)


def params_of(model, scale=1.0):
    """Parameters inside every bound, for series of a variance near `scale`."""
    p, q = model.p, model.q
    mean = [0.05 * math.sqrt(scale)] * model.mean.constant
    mean += [0.1, -0.05][: len(model.mean.lags)] + [0.2, 0.1][: model.mean.n_ma]
    shocks = SHOCKS[model.vol.name]
    spread = [s / (i + 1) for s in shocks for i in range(p)]
    spread += [0.75 / (i + 1) / 1.5 ** (q - 1) for i in range(q)]
    persistence = sum(0.75 / (i + 1) / 1.5 ** (q - 1) for i in range(q))
    omega = (1 - persistence) * math.log(scale) if model.vol.log else 0.1 * scale**model.vol.power
    return np.array([*mean, omega, *spread, *[NU] * len(model.density.names)])


def series(n=300, seed=0, scale=1.0):
    generator = np.random.default_rng(seed)
    return math.sqrt(scale) * generator.standard_t(6, n) * np.exp(0.2 * np.sin(np.arange(n) / 20))


SHAPES = [("Constant", order) for order in [(1, 1), (2, 1), (1, 2), (2, 0)]]
SHAPES += [("Zero", (1, 1)), ("AR", (1, 1))]


@pytest.mark.parametrize(("mean", "order"), SHAPES)
@pytest.mark.parametrize("density", DENSITIES)
@pytest.mark.parametrize("vol", VOLATILITIES)
def test_likelihood_equals_that_of_arch(vol, density, mean, order):
    y, model = series(scale=4.0), model_of(vol, density, MEANS[mean], *order)
    params, lengths, whole = params_of(model, 4.0), np.array([len(y)]), np.array([0])
    sample = sample_of(model, y[None], lengths, spread_of(y[None], lengths))
    start = mean_start(model, sample)
    presample = presample_of(model, sample, "backcast", start.first, start.variance)
    likelihood = Likelihood(model, Lanes(sample.inputs), sample.n_obs, presample)
    matrix, offset = to_user(model, sample.centre, sample.scale)
    inside = np.linalg.solve(matrix, (params - offset)[..., None])[..., 0]
    loglik = likelihood.values(inside, whole) - sample.n_obs * np.log(sample.scale)
    oracle = arch_model(y, model).fix(params)
    np.testing.assert_allclose(loglik[0], oracle.loglikelihood, rtol=0, atol=1e-9)
    before = presample.fixed * sample.scale**2
    e, h = filter_garch(model, params[None], Past(before), y[None], lengths)
    np.testing.assert_allclose(e[0], oracle.resid, atol=1e-12)
    np.testing.assert_allclose(np.sqrt(h[0]), oracle.conditional_volatility, rtol=1e-12)


def test_names_are_those_of_arch():
    y = pd.Series(series(), name="y")
    for vol in VOLATILITIES:
        for density in DENSITIES:
            model = model_of(vol, density, MEANS["AR"], 2, 1)
            oracle = arch_model(y, model).fix(params_of(model))
            assert list(model.names) == list(oracle.params.index)


def loop(model, params, y, presample):
    """Sum of log-densities in torch, time step by time step, lag by lag as it is written."""
    c, phi, theta = (
        params[: model.mean.constant],
        params[model.mean.constant : model.mean.constant + len(model.mean.lags)],
        params[model.omega - model.mean.n_ma : model.omega],
    )
    omega, beta, shape = params[model.omega], params[model.beta], params[model.shape_part]
    coefficients = [params[model.shock_coefficients(s)] for s in range(len(model.vol.coefficients))]
    e, g, shocks, total = [], [], [], 0.0
    presample, z = presample
    before = {0: torch.log(presample), 0.5: torch.sqrt(presample), 1: presample}[model.vol.power]
    known = None if z is None else [z.abs() - math.sqrt(2 / math.pi), z]
    for t in range(model.mean.n_dropped, len(y)):
        mean = sum(c) + sum(a * y[t - lag] for a, lag in zip(phi, model.mean.lags, strict=True))
        mean = mean + sum(b * e[-j - 1] for j, b in enumerate(theta) if j < len(e))
        e.append(y[t] - mean)
        now = omega
        for i in range(model.p):
            expected = known or [w * before for w in model.vol.expected]
            past = shocks[-i - 1] if i < len(shocks) else expected
            now = now + sum(a[i] * s for a, s in zip(coefficients, past, strict=True))
        for j in range(model.q):
            now = now + beta[j] * (g[-j - 1] if j < len(g) else before)
        g.append(now)
        h = {0: torch.exp(now), 0.5: now**2, 1: now}[model.vol.power]
        if model.vol.log:
            z = e[-1] / torch.sqrt(h)
            shocks.append([z.abs() - math.sqrt(2 / math.pi), z])
        else:
            size = e[-1].abs() ** (2 * model.vol.power)
            shocks.append([size, size * (e[-1] < 0)][: len(coefficients)])
        if model.density.names:
            scale = torch.sqrt(h * (shape[0] - 2) / shape[0])
            density = torch.distributions.StudentT(shape[0], torch.zeros_like(h), scale)
        else:
            density = torch.distributions.Normal(torch.zeros_like(h), torch.sqrt(h))
        total = total + density.log_prob(e[-1])
    return total


def mean_size(shape):
    """Expectation of the absolute value of a normal number or a t of variance one, in torch."""
    if not len(shape):
        return math.sqrt(2 / math.pi)
    log_ratio = torch.lgamma((shape - 1) / 2) - torch.lgamma(shape / 2)
    return torch.sqrt((shape - 2) / math.pi) * torch.exp(log_ratio)


def presample_loop(model, kind, params, y, fixed):
    """Presample variance, and the standardised residual of "tsp", by their definitions."""
    if kind == "unconditional":
        weights = np.zeros(len(model.names))
        for s, expected in enumerate(model.vol.expected):
            weights[model.shock_coefficients(s)] = expected
        weights = torch.tensor(weights)
        if model.vol.power == 0.5:
            weights = weights * mean_size(params[model.shape_part])
        weights[model.beta] = 1.0
        level = params[model.omega] / (1 - (params * weights).sum())
        return {0: torch.exp(level), 0.5: level**2, 1: level}[model.vol.power], None
    if kind in ("fcp", "tsp"):
        mean, part, e = model.mean, params[model.mean_part], []
        slopes, theta = part[mean.constant :], part[len(part) - mean.n_ma :]
        for t in range(mean.n_dropped, len(y)):
            now = y[t] - sum(part[: mean.constant])
            now = now - sum(a * y[t - lag] for a, lag in zip(slopes, mean.lags, strict=False))
            e.append(now - sum(b * e[-j - 1] for j, b in enumerate(theta) if j < len(e)))
        e = torch.stack(e)
        square = (e**2).mean()
        return square, e.mean() / torch.sqrt(square) if kind == "tsp" else None
    return torch.tensor(fixed), None


CASES = [
    *((vol, density, "Constant", "backcast") for vol in VOLATILITIES for density in DENSITIES),
    *((vol, "normal", "Constant", "fcp") for vol in VOLATILITIES),
    *((vol, "t", "Constant", "unconditional") for vol in VOLATILITIES),
    ("garch", "normal", "Zero", "sample"),
    ("gjr", "t", "AR", "fcp"),
    ("garch", "normal", "Zero", "fcp"),
    ("egarch", "normal", "Zero", "tsp"),
    ("egarch", "t", "AR", "tsp"),
    ("egarch", "normal", "AR", 2.0),
    ("tgarch", "t", "AR", 2.0),
]


def derivatives(model, params, y, kind, y_lengths=None):
    lengths = np.full(len(y), y.shape[1]) if y_lengths is None else y_lengths
    return garch_at(model, y, lengths, np.tile(params, (len(y), 1)), kind)


@pytest.mark.few("garch", "gjr-t-AR-fcp", "egarch-t-AR-tsp", "tgarch-t-Constant-backcast")
@pytest.mark.parametrize(("vol", "density", "mean", "kind"), CASES)
def test_derivatives_equal_those_of_a_loop(vol, density, mean, kind):
    model, y = model_of(vol, density, MEANS[mean]), series(24)
    check_derivatives(model, y, kind)


@pytest.mark.few("garch-order0-backcast", "gjr-order2-backcast")
@pytest.mark.parametrize(
    ("vol", "order", "kind"),
    [
        ("garch", (2, 1), "backcast"), ("gjr", (1, 2), "fcp"), ("gjr", (2, 0), "backcast"),
        ("egarch", (2, 1), "tsp"), ("egarch", (1, 2), "fcp"), ("tgarch", (2, 2), "fcp"),
    ],
)  # fmt: skip
def test_derivatives_of_higher_orders_and_arma_means(vol, order, kind):
    check_derivatives(model_of(vol, "normal", ARMA, *order), series(20), kind)


def check_derivatives(model, y, kind):
    params = params_of(model)
    found = derivatives(model, params, y[None], kind)
    tensor = torch.from_numpy(y)

    def value(theta):
        fixed = found.presample[0]
        return loop(model, theta, tensor, presample_loop(model, kind, theta, tensor, fixed))

    theta = torch.tensor(params, requires_grad=True)
    expected = value(theta)
    (gradient,) = torch.autograd.grad(expected, theta)
    hessian = torch.autograd.functional.hessian(value, torch.tensor(params))
    at = found.estimates
    np.testing.assert_allclose(at.loglik[0], expected.item(), rtol=1e-12)
    scale = np.abs(hessian.numpy()).max()
    np.testing.assert_allclose(at.gradient[0], gradient.numpy(), atol=1e-11 * scale)
    np.testing.assert_allclose(at.hessian[0], hessian.numpy(), atol=1e-11 * scale)


@pytest.mark.parametrize("density", DENSITIES)
def test_outer_products_are_those_of_scores_by_time(density):
    model, y = model_of("gjr", density), series(30)
    params, lengths = params_of(model), np.arange(1, 31)
    whole = derivatives(model, params, y[None], 1.3).estimates
    # The score of step t is what the gradient gains from rows 1..t-1 to 1..t.
    padded = model_of("gjr", density, padded=True)
    rows = np.tile(y, (30, 1))
    gradients = derivatives(padded, params, rows, 1.3, lengths).estimates.gradient
    scores = np.diff(gradients, axis=0, prepend=0.0)
    np.testing.assert_allclose(whole.opg[0], scores.T @ scores, rtol=1e-9)


@given(data=st.data())
@settings(max_examples=10, deadline=None)
def test_padded_series_have_the_likelihood_of_whole_ones(data):
    vol = data.draw(st.sampled_from(sorted(VOLATILITIES)))
    lengths = np.array(data.draw(st.lists(st.integers(4, 40), min_size=1, max_size=20)))
    y = np.stack([series(40, seed) for seed in range(len(lengths))])
    padded = model_of(vol, "t", UnivariateMean(True, (1,)), padded=True)
    params = params_of(padded)
    hidden = np.where(np.arange(40) < lengths[:, None], y, 1e6)
    found = derivatives(padded, params, hidden, "backcast", lengths).estimates
    whole = model_of(vol, "t", UnivariateMean(True, (1,)))
    for i, n in enumerate(lengths):
        alone = derivatives(whole, params, y[i : i + 1, :n], "backcast").estimates
        for name in ("loglik", "gradient", "hessian", "opg", "information"):
            a, b = getattr(found, name)[i], getattr(alone, name)[0]
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9 * np.abs(b).max())


def test_the_cell_runs_on_the_engines_of_recurrences(assert_close):
    for vol in VOLATILITIES:
        model = model_of(vol, "t", ARMA, 2, 2)
        inputs = torch.from_numpy(series(50 * 3 * 4).reshape(1, 50, 3, 4))
        params = torch.from_numpy(np.tile(params_of(model)[:, None], 4))
        initial = torch.full((1, model.cell.n, 4), 0.5, dtype=torch.float64)
        fast, _ = recurrence(model.cell, inputs, params, initial)
        slow, _ = recurrence(model.cell, inputs, params, initial, engine="reference")
        assert_close(fast, slow, roundings=1e4)


@pytest.mark.parametrize("nu", [2.3, 4.0, 9.0, 100.0])
def test_information_of_a_students_t_is_its_integral(nu):
    u = (np.arange(20_000) + 0.5) / 20_000
    z = torch.from_numpy(np.tan(np.pi * (u - 0.5)))
    weights = np.pi * (1 + z.numpy() ** 2) / len(u)
    at = torch.tensor([0.0, 0.0, nu], dtype=torch.float64).repeat(len(z), 1).requires_grad_()
    location, log_h, shape = at.unbind(1)
    value = Student().log_kernel((z - location) ** 2 * torch.exp(-log_h), log_h, (shape,))
    value = value + torch.lgamma((shape + 1) / 2) - torch.lgamma(shape / 2)
    value = value - 0.5 * torch.log(math.pi * (shape - 2))
    scores = torch.autograd.grad(value.sum(), at)[0].numpy()
    density = np.exp(value.detach().numpy())
    moments = scores.T @ (scores * (weights * density)[:, None])
    expected = [moments[0, 0], moments[1, 1], moments[1, 2], moments[2, 2]]
    found = [part[0] for part in Student().information(np.array([[nu]]))]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("density", [Normal(), Student()])
def test_moments_and_quantiles_of_densities(density):
    shape = np.full((1, len(density.names)), 7.0)
    z = density.draw(np.random.default_rng(0), (400_000,), shape)[0]
    assert abs(z.var() - 1) < 0.02
    size = density.mean_size(shape)
    assert abs(np.abs(z).mean() - size.value[0]) < 5e-3
    theta = torch.tensor(shape[0], requires_grad=True)
    if density.names:
        (slope,) = torch.autograd.grad(mean_size(theta), theta, create_graph=True)
        np.testing.assert_allclose(size.slope, slope.item(), rtol=1e-12)
        (bend,) = torch.autograd.grad(slope, theta)
        # the trigamma function of torch has some nine digits
        np.testing.assert_allclose(size.bend, bend.item(), rtol=1e-8)
    np.testing.assert_allclose(size.value, float(mean_size(theta)), rtol=1e-14)
    assert abs(np.mean(z < density.quantile(0.9, shape)[0]) - 0.9) < 3e-3
    expected = {"normal": 3.0, "t": 3 + 6 / 3}[density.name]
    np.testing.assert_allclose(density.kurtosis(shape), expected)


def test_the_fourth_moment_of_a_students_t_needs_four_degrees_of_freedom():
    assert np.isinf(Student().kurtosis(np.array([[4.0]])))[0]


@pytest.mark.parametrize("vol", VOLATILITIES)
@pytest.mark.parametrize("density", DENSITIES)
def test_information_is_the_expected_outer_product_of_scores(vol, density):
    """Over many simulated series, both matrices have the same mean."""
    model = model_of(vol, density)
    params = np.tile(params_of(model), (4000, 1))
    begin = initial_state(model, params, Past(np.ones(4000)))
    z = model.density.draw(np.random.default_rng(1), (60, 1), params[:, model.shape_part])
    y = simulate_garch(model, params, VarianceState(begin, np.empty((4000, 0))), z).y[..., 0]
    found = garch_at(model, y, np.full(4000, 60), params, 1.0).estimates
    root = np.sqrt(np.diagonal(found.information.mean(0)))
    np.testing.assert_allclose(
        found.opg.mean(0) / np.outer(root, root),
        found.information.mean(0) / np.outer(root, root),
        atol=0.06,
    )


def test_scoring_and_exact_evaluations_have_the_same_value_and_slope():
    model, y = model_of("gjr", "t", MEANS["AR"]), np.stack([series(90, s) for s in range(20)])
    sample = sample_of(model, y, np.full(20, 90), spread_of(y, np.full(20, 90)))
    start = mean_start(model, sample)
    presample = presample_of(model, sample, "fcp", start.first, start.variance)
    likelihood = Likelihood(model, Lanes(sample.inputs), sample.n_obs, presample)
    params, units = np.tile(params_of(model), (5, 1)), np.array([3, 4, 9, 15, 19])
    exact = likelihood.evaluate(params, units, True)
    scoring = likelihood.evaluate(params, units, False)
    np.testing.assert_allclose(exact.value, scoring.value, rtol=1e-13)
    np.testing.assert_allclose(exact.gradient, scoring.gradient, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(exact.value, likelihood.values(params, units), rtol=1e-13)


@pytest.mark.parametrize("vol", VOLATILITIES)
@pytest.mark.parametrize("mean", MEANS)
def test_the_presample_of_the_sample_is_the_mean_square_of_least_squares(vol, mean):
    model, y = model_of(vol, mean=MEANS[mean]), series(60, scale=3.0)
    first = model.mean.n_dropped
    columns = [np.ones(60 - first)] * model.mean.constant
    columns += [y[first - lag : 60 - lag] for lag in model.mean.lags]
    x = np.stack(columns, 1) if columns else np.zeros((60, 0))
    e = y[first:] - x @ np.linalg.lstsq(x, y[first:], rcond=None)[0]
    for kind, expected in (("sample", (e**2).mean()), (2.5, 2.5)):
        found = derivatives(model, params_of(model, 3.0), y[None], kind).presample
        np.testing.assert_allclose(found, expected, rtol=1e-12)
