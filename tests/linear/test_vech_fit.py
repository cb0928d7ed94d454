"""The optimum: recovered parameters, units, order of the series, structures, bad input."""

import re
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest

from tsrnn.data import read_panel
from tsrnn.linear._fitted import estimate
from tsrnn.linear._inference import covariance
from tsrnn.linear._mean import Mean
from tsrnn.linear.vech._filter import CovarianceState, draw_vech
from tsrnn.linear.vech._inference import canonical, face_covariance, natural_params, ranks
from tsrnn.linear.vech._likelihood import derivatives
from tsrnn.linear.vech._prepare import Sample
from tsrnn.linear.vech._specification import Model, Specification
from tsrnn.linear.vech._structure import pairs, unvech
from tsrnn.linear.vech._vecm_garch import VECHFamily

A = np.array([[0.35, 0.05], [-0.05, 0.3]])
G = np.array([[0.88, 0.02], [0.0, 0.9]])
C = np.array([[0.3, 0.0], [0.1, 0.25]])
TRUE = np.concatenate([C[np.tril_indices(2)], A.ravel(), G.ravel()])


def spec_of(kind="bekk", n=2, order=(1, 1), mean="zero", targeting=False, starts=2, **more):
    targets = tuple("abcde"[:n])
    return Specification(kind, *order, targeting, Mean(mean, **more), targets, False, starts)


def simulated(spec, params, steps, seed):
    N = len(pairs(spec.n)[0])
    model = spec.model(params, np.zeros(N))
    eye = np.eye(spec.n)[pairs(spec.n)]
    state = CovarianceState(
        np.zeros((0, spec.n)), np.tile(eye, (spec.p, 1)), np.tile(eye, (spec.q, 1))
    )
    innovations = np.random.default_rng(seed).standard_normal((steps + 200, spec.n))
    return draw_vech(model, state, innovations)[200:]


def panel_of(series):
    parts = [pd.DataFrame({"unique_id": i, "ds": range(len(y))}) for i, y in enumerate(series)]
    panel = read_panel(pd.concat(parts).assign(y=0.0))
    return replace(panel, values=np.vstack(series))


def fit(spec, *series):
    """Return estimates and constants of some series."""
    return estimate(VECHFamily(spec), panel_of(series))


def evaluate(spec, series, params):
    """Return estimates at given parameters, a row a series."""
    return estimate(VECHFamily(spec), panel_of(series), params)[0]


@pytest.fixture(scope="module")
def returns():
    return simulated(spec_of(), TRUE, 1000, 0)


@pytest.fixture(scope="module")
def bekk(returns):
    return fit(spec_of(), returns)


@pytest.fixture(scope="module")
def structures(returns):
    """Return a function from a structure to its fit from one start, which is done once."""
    return cache(lambda kind: fit(spec_of(kind, starts=1), returns))


@pytest.mark.slow
def test_bekk_is_recovered(bekk):
    estimates, _ = bekk
    assert estimates.converged.all()
    # Two, and the optimum of the diagonal BEKK.
    assert estimates.starts == estimates.agreement == [3]
    errors = np.sqrt(np.diagonal(covariance(estimates, "hessian")[0]))
    assert np.all(np.abs(estimates.params[0] - TRUE) < 4 * errors)
    assert np.all(errors < 0.2)


def test_kinds_of_errors_agree_where_the_model_is_right():
    estimates, _ = fit(spec_of(starts=1), simulated(spec_of(), TRUE, 5_000, 1))
    errors = np.sqrt(np.diagonal(covariance(estimates, "hessian")[0]))
    assert np.all(np.abs(estimates.params[0] - TRUE) < 4 * errors)
    for kind in ("opg", "information", "robust", "bollerslev-wooldridge"):
        other = np.sqrt(np.diagonal(covariance(estimates, kind)[0]))
        np.testing.assert_allclose(other, errors, rtol=0.25)


def test_the_gradient_vanishes_at_the_optimum(bekk, returns):
    best, _ = bekk
    given = evaluate(spec_of(), [returns], best.params)
    np.testing.assert_allclose(given.gradient, 0.0, atol=1e-6)
    np.testing.assert_allclose(given.loglik, best.loglik, rtol=1e-13)
    step = 1e-4
    for j in range(len(TRUE)):
        moved = np.repeat(best.params, 2, 0)
        moved[:, j] += [step, -step]
        both = evaluate(spec_of(), [returns, returns], moved)
        assert (both.loglik < best.loglik).all()
        slope = (both.gradient[0] - both.gradient[1]) / (2 * step)
        np.testing.assert_allclose(slope, best.hessian[0, j], rtol=1e-4, atol=1e-2)


@pytest.mark.few("scalar")
@pytest.mark.parametrize("unit", [1e-3, 1e3])
@pytest.mark.parametrize("kind", ["bekk", "scalar"])
def test_units_do_not_matter(returns, kind, unit):
    spec = spec_of(kind, mean="constant", starts=1)
    one, other = fit(spec, returns)[0], fit(spec, returns * [unit, 1.0])[0]
    shift = len(returns) * np.log(unit)
    np.testing.assert_allclose(other.loglik + shift, one.loglik, rtol=1e-12)
    if kind == "bekk":
        names = spec.names
        powers = {"intercept.a": 1, "C[1,1]": 1, "A1[1,2]": -1, "A1[2,1]": 1, "A1[1,1]": 0}
    else:
        names, powers = spec.names, {"b[1,1]": 2, "b[2,1]": 1, "b[2,2]": 0, "theta1": 0}
    for name, power in powers.items():
        j = names.index(name)
        factor = unit**power
        np.testing.assert_allclose(other.params[0, j], one.params[0, j] * factor, rtol=1e-6)
        errors = [np.sqrt(covariance(e, "robust")[0, j, j]) for e in (one, other)]
        np.testing.assert_allclose(errors[1], errors[0] * factor, rtol=1e-6)


def test_order_of_the_series_does_not_matter(bekk, returns):
    best, (turned, _) = bekk[0], fit(spec_of(), returns[:, ::-1])
    np.testing.assert_allclose(turned.loglik, best.loglik, rtol=1e-12)
    ours, others = (e.params[0][-8:].reshape(2, 2, 2) for e in (best, turned))
    np.testing.assert_allclose(np.abs(others[:, ::-1, ::-1]), np.abs(ours), rtol=1e-5, atol=1e-7)


@pytest.mark.slow
def test_larger_structures_fit_better(structures, bekk):
    values = [structures(kind)[0] for kind in ("scalar", "diagonal", "full")]
    assert all(e.converged.all() for e in values)
    scalar, diagonal, full = (e.loglik[0] for e in values)
    assert scalar <= diagonal + 1e-8
    assert diagonal <= full + 1e-8
    assert bekk[0].loglik[0] <= full + 1e-8


@pytest.mark.parametrize("targeting", [False, True])
def test_one_series_is_garch(targeting):
    """All structures are the same GARCH(1, 1), whose optimum arch finds."""
    arch = pytest.importorskip("arch")
    rng = np.random.default_rng(5)
    y, h = np.zeros(800), 1.0
    for t in range(800):
        h = 0.1 + (0.1 * y[t - 1] ** 2 if t else 0.1) + 0.8 * h
        y[t] = np.sqrt(h) * rng.standard_normal()
    found = [fit(spec_of(kind, 1, targeting=targeting), y[:, None])[0]
             for kind in ("scalar", "diagonal", "full")]  # fmt: skip
    for estimates in found[1:]:
        np.testing.assert_allclose(estimates.params, found[0].params, rtol=1e-6)
        np.testing.assert_allclose(estimates.hessian, found[0].hessian, rtol=1e-6)
    if targeting:
        return
    model = arch.arch_model(y, mean="Zero", rescale=False)
    oracle = model.fit(disp="off", backcast=np.mean(y**2), tol=1e-13)
    np.testing.assert_allclose(found[0].loglik, oracle.loglikelihood, rtol=1e-9)
    np.testing.assert_allclose(found[0].params[0], oracle.params, rtol=1e-4)


@pytest.mark.parametrize("kind", ["diagonal", "full"])
def test_errors_on_the_boundary_are_those_of_the_rank(structures, kind):
    """A diagonal model of rank one is a diagonal BEKK; its errors by the delta method."""
    spec = spec_of(kind, starts=1)
    estimates, constants = structures(kind)
    factors = constants["factors"][0]
    low = ranks(spec, factors)
    assert any("on the boundary" in words for words in estimates.messages[0])
    for cov_kind in ("hessian", "robust"):
        cov = face_covariance(spec, estimates, factors, cov_kind)
        roots = np.linalg.eigvalsh((cov + cov.T) / 2)
        assert np.isfinite(cov).all()
        assert roots[0] > -1e-8 * roots[-1]
    if kind == "diagonal" and low == [1, 1]:
        # theta_21^2 = theta_11 theta_22 holds to first order along every direction.
        b = estimates.params[0]
        slope = np.array([0, 0, 0, b[5], -2 * b[4], b[3], 0, 0, 0])
        assert slope @ cov @ slope < 1e-12


def test_an_interior_optimum_has_the_usual_errors():
    """Where no row of the factors is zero, the face is the whole space."""
    spec = spec_of("diagonal", starts=1)
    theta = np.array([0.10, 0.05, 0.10])
    phi = np.array([0.80, 0.70, 0.80])
    y = simulated(spec, np.concatenate([[0.1, 0.05, 0.1], theta, phi]), 4000, 3)
    estimates, constants = fit(spec, y)
    assert ranks(spec, constants["factors"][0]) == [2, 2]
    usual = covariance(estimates, "robust")[0]
    face = face_covariance(spec, estimates, constants["factors"][0], "robust")
    np.testing.assert_allclose(face, usual, rtol=1e-4, atol=1e-9)


def test_without_arch_effects_phi_has_no_error():
    """Theta at zero leaves Phi without a meaning: the covariance is constant."""
    y = np.random.default_rng(3).uniform(-1, 1, (400, 2))
    y *= 1 + 0.3 * (np.arange(400) % 2)[:, None]  # neighbours of large squares are small ones
    spec = spec_of("scalar")
    estimates, _ = fit(spec, y)
    assert estimates.converged.all()
    np.testing.assert_allclose(unvech(estimates.params[0, :3]), y.T @ y / 400, rtol=1e-7)
    np.testing.assert_array_equal(estimates.params[0, 3:], 0.0)
    assert list(estimates.fixed[0]) == [False, False, False, True, True]
    assert any("not identified" in words for words in estimates.messages[0])


def test_signs_are_the_same_from_every_start():
    spec = spec_of(mean="constant")
    params = np.concatenate([[0.1, 0.2], TRUE])
    flipped = params.copy()
    flipped[[2, 3]] *= -1  # first column of C
    flipped[5:9] *= -1
    np.testing.assert_array_equal(canonical(spec, flipped), params)
    assert natural_params(spec, params) is params


@pytest.mark.parametrize("kind", ["scalar", "bekk"])
def test_targeting_hits_its_target(returns, kind):
    spec = spec_of(kind, targeting=True, starts=1)
    estimates, constants = fit(spec, returns)
    model = spec.model(estimates.params[0], constants["presample"][0])
    stationary = np.linalg.solve(np.eye(3) - model.theta.sum(0) - model.phi.sum(0), model.constant)
    covariance_ = returns.T @ returns / len(returns)
    np.testing.assert_allclose(unvech(stationary), covariance_, rtol=1e-9)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda y: np.column_stack([y[:, 0], 2 * y[:, 0]]), r"\['a', 'b'\] are perfectly collin"),
        (lambda y: np.column_stack([y[:, 0], np.ones(len(y))]), "'b' is constant"),
        (lambda y: y[:8], "11 parameters need at least 22 values; there are 8 rows of 2"),
        (lambda y: np.where(np.arange(len(y))[:, None] == 3, np.inf, y), "must be finite"),
    ],
)
def test_a_bad_series_does_not_cost_the_others(returns, structures, spoil, message):
    spec = spec_of("bekk", starts=1)
    with pytest.raises(ValueError, match=message):
        fit(spec, spoil(returns))
    estimates, _ = fit(spec, spoil(returns), returns)
    assert re.search(message, estimates.messages[0][0])
    assert list(estimates.fitted) == [False, True]
    assert np.isnan(estimates.params[0]).all()
    np.testing.assert_allclose(estimates.loglik[1], structures("bekk")[0].loglik[0])


@pytest.mark.slow
def test_higher_orders_converge(returns):
    for order in ((2, 1), (1, 0), (1, 2)):
        estimates, _ = fit(spec_of("bekk", order=order, starts=1), returns[:300])
        assert estimates.converged.all()
        assert estimates.names[-1] == f"{'AG'[order[1] > 0]}{max(order[1], 1)}[2,2]"


def test_a_model_that_is_not_stationary_says_so(returns):
    spec = spec_of("scalar")
    given = evaluate(spec, [returns], np.array([[0.1, 0.0, 0.1, 0.2, 0.85]]))
    assert "1.0500, not below one" in given.messages[0][0]
    radius = Specification(**{**vars(spec), "stationary": True})
    noise = simulated(spec, np.array([0.01, 0.0, 0.01, 0.15, 0.845]), 600, 2)
    params = fit(radius, noise)[0].params[0]
    assert params[-2:].sum() < 1


def test_derivatives_are_none_where_covariances_are_not_definite():
    spec = spec_of("scalar")
    sample = Sample(np.zeros((3, 2)), np.zeros((3, 0)), np.array([1.0, 0.0, 1.0]))
    assert derivatives(spec.natural, sample, np.array([1.0, 2.0, 1.0, 0.0, 0.0])) is None
    model = Model(np.zeros(2), np.zeros((0, 2, 2)), np.array([1.0, 2.0, 1.0]),
                  np.zeros((1, 3, 3)), np.zeros((0, 3, 3)))  # fmt: skip
    state = CovarianceState(np.zeros((0, 2)), np.zeros((1, 3)), np.zeros((0, 3)))
    with pytest.raises(ValueError, match="not positive definite after 0 steps"):
        draw_vech(model, state, np.ones((2, 2)))
