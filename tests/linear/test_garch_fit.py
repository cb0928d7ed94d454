"""Fits of GARCH models: published digits, arch's optima, batches, boundaries, bad series."""

from pathlib import Path

import numpy as np
import pytest

from tsrnn.linear._inference import covariance
from tsrnn.linear.garch import _likelihood
from tsrnn.linear.garch._density import DENSITIES
from tsrnn.linear.garch._filter import resting_state
from tsrnn.linear.garch._fit import fit_garch, garch_at, problems
from tsrnn.linear.garch._forecast import simulate_garch
from tsrnn.linear.garch._inference import resting_variance
from tsrnn.linear.garch._prepare import Sample
from tsrnn.linear.garch._specification import Model, UnivariateMean
from tsrnn.linear.garch._volatility import VOLATILITIES

from .references import arch_model

MARKS = Path(__file__).parents[2].parent / "shared/data/finance/dem2gbp.csv.gz"
TRUE = {
    "garch": [0.05, 0.1, 0.08, 0.85],
    "gjr": [0.05, 0.1, 0.04, 0.1, 0.83],
    "egarch": [0.05, 0.02, 0.15, -0.08, 0.95],
    "avgarch": [0.05, 0.1, 0.1, 0.85],
    "tgarch": [0.05, 0.1, 0.05, 0.1, 0.83],
}


def model_of(vol="garch", density="normal", mean=True, p=1, q=1, lags=(), n_ma=0, padded=False):
    return Model(
        UnivariateMean(mean, lags, n_ma), VOLATILITIES[vol], DENSITIES[density], p, q, padded
    )


def simulated(model, params, n, steps, seed=0):
    """Series (n, steps) of a model."""
    rows = np.tile(np.array(params, float), (n, 1))
    begin = resting_state(model, rows, resting_variance(model, rows))
    z = model.density.draw(np.random.default_rng(seed), (steps + 200, 1), rows[:, model.shape_part])
    return simulate_garch(model, rows, begin, z).y[:, 200:, 0]


def fitted(model, y, initial="backcast", stationary=True):
    return fit_garch(model, y, np.full(len(y), y.shape[1]), initial, stationary).estimates


def arch_fit(y, model):
    return arch_model(y, model).fit(disp="off", show_warning=False, tol=1e-10)


@pytest.mark.skipif(not MARKS.exists(), reason="needs the returns of Bollerslev and Ghysels")
def test_published_digits_of_fiorentini_calzolari_and_panattoni():
    found = fitted(model_of(), np.loadtxt(MARKS, skiprows=1)[None], "fcp")
    expected = [-0.006190408379994, 0.0107613978518, 0.153134061820, 0.805973670305]
    np.testing.assert_allclose(found.params[0], expected, rtol=2e-11)
    # By Newton's method in arithmetic of 30 digits.
    optimum = [-0.006190408379937541, 0.01076139785181782, 0.153134061820467, 0.8059736703053702]
    np.testing.assert_allclose(found.params[0], optimum, rtol=1e-12)
    np.testing.assert_allclose(found.loglik[0], -1106.607881041288, rtol=1e-14)
    published = {
        "hessian": [0.00846212, 0.00285271, 0.0265228, 0.0335527],
        "opg": [0.00843359, 0.00132298, 0.0139738, 0.0165604],
        "information": [0.0083762856, 0.00192880806, 0.019401186, 0.0218398722],
        "bollerslev-wooldridge": [0.008730924687, 0.00312363751, 0.027321934, 0.030150886],
        "robust": [0.0091893540, 0.006493186, 0.053531703, 0.07246145],
    }
    for kind, errors in published.items():
        made = np.sqrt(np.diagonal(covariance(found, kind)[0]))
        np.testing.assert_allclose(made, errors, rtol=4e-6 if kind in ("hessian", "opg") else 3e-8)


@pytest.mark.few("garch-t", "gjr-normal", "egarch-normal", "avgarch-normal")
@pytest.mark.parametrize("density", DENSITIES)
@pytest.mark.parametrize("vol", VOLATILITIES)
def test_optima_are_not_below_those_of_arch(vol, density):
    model = model_of(vol, density)
    y = simulated(model, [*TRUE[vol], *[5.0] * (density == "t")], 4, 600)
    found = fitted(model, y)
    assert found.converged.all()
    for i, own in enumerate(y):
        # Where a recursion is so explosive that arch bounds its variances, its value is another.
        assert found.loglik[i] > arch_fit(own, model).loglikelihood - 1e-6


@pytest.mark.slow
def test_optima_of_short_series_are_not_below_those_of_arch():
    y = simulated(model_of(), TRUE["garch"], 30, 120, seed=3)
    found = fitted(model_of(), y)
    oracle = np.array([arch_fit(own, model_of()).loglikelihood for own in y])
    assert (found.loglik > oracle - 1e-6).all()
    assert found.converged.all()
    assert found.fixed.any()  # so short that some end on bounds


@pytest.mark.slow
def test_a_batch_is_its_series_one_by_one():
    model, padded = model_of("gjr", "t"), model_of("gjr", "t", padded=True)
    y = simulated(model, [*TRUE["gjr"], 6.0], 5, 400)
    lengths = np.array([400, 300, 250, 400, 201])
    batch = fit_garch(padded, y, lengths, "backcast", True)
    for i, n in enumerate(lengths):
        alone = fit_garch(model, y[i : i + 1, :n], lengths[i : i + 1], "backcast", True)
        for name in ("params", "loglik", "hessian", "opg", "information"):
            a, b = getattr(batch.estimates, name)[i], getattr(alone.estimates, name)[0]
            np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-7 * np.abs(b).max())
        assert batch.estimates.messages[i] == alone.estimates.messages[0]


@pytest.mark.few("garch", "egarch", "avgarch")
@pytest.mark.parametrize("vol", VOLATILITIES)
def test_units_do_not_change_the_fit(vol):
    model = model_of(vol)
    y = simulated(model, TRUE[vol], 3, 500)
    plain, scaled = fitted(model, y), fitted(model, 1e-5 * y + 3e-3)
    np.testing.assert_allclose(scaled.loglik, plain.loglik + 500 * np.log(1e5), rtol=1e-9)
    np.testing.assert_allclose(scaled.params[:, 2:], plain.params[:, 2:], rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(scaled.params[:, 0], 3e-3 + 1e-5 * plain.params[:, 0], rtol=1e-6)
    ratio = np.diagonal(covariance(scaled, "robust")[:, 2:, 2:], axis1=1, axis2=2)
    expected = np.diagonal(covariance(plain, "robust")[:, 2:, 2:], axis1=1, axis2=2)
    np.testing.assert_allclose(ratio, expected, rtol=1e-4)


def test_bad_series_are_flagged_alone():
    model = model_of(padded=True)
    y = simulated(model_of(), TRUE["garch"], 6, 300)
    y[1], y[2, 5], y[3], lengths = 7.0, np.inf, np.nan, np.array([300, 300, 300, 300, 4, 300])
    found = fit_garch(model, y, lengths, "backcast", True)
    np.testing.assert_array_equal(found.estimates.fitted, [1, 0, 0, 0, 0, 1])
    said = [own[0] if own else "" for own in found.estimates.messages]
    assert "constant" in said[1]
    assert "finite" in said[2]
    assert "finite" in said[3]
    assert "more than 4 observations" in said[4]
    alone = fitted(model_of(), y[[0, 5]])
    np.testing.assert_allclose(found.estimates.loglik[[0, 5]], alone.loglik, rtol=1e-10)
    np.testing.assert_array_equal(np.isnan(found.presample), ~found.estimates.fitted)


def test_no_series_that_can_be_fitted_gives_no_parameters():
    found = fit_garch(model_of(), np.ones((2, 50)), np.array([50, 50]), "backcast", True)
    assert not found.estimates.fitted.any()


def test_white_noise_has_no_effect_of_shocks_and_no_identified_beta():
    y = np.random.default_rng(0).normal(size=(40, 100))
    found = fitted(model_of(), y)
    flat = found.params[:, 2] == 0
    assert flat.any()
    assert found.fixed[flat][:, 1:].all()
    assert all("not identified" in " ".join(found.messages[i]) for i in np.flatnonzero(flat))
    assert not found.fixed[:, 0].any()


def test_persistence_is_held_at_one_where_the_likelihood_rises_beyond():
    y = np.cumsum(np.random.default_rng(1).normal(size=(6, 400)) ** 3, 1) * 0.01
    y = np.exp(y - y.mean(1, keepdims=True)) * np.random.default_rng(2).normal(size=y.shape)
    model = model_of("gjr")
    free, held = fitted(model, y, stationary=False), fitted(model, y)
    weight = np.array([0, 0, 1, 0.5, 1])
    beyond = free.params @ weight > 1
    assert beyond.any()
    np.testing.assert_allclose(held.params[beyond] @ weight, 1.0, atol=1e-12)
    assert (held.loglik[beyond] <= free.loglik[beyond] + 1e-9).all()
    np.testing.assert_allclose(held.loglik[~beyond], free.loglik[~beyond])
    for i in np.flatnonzero(beyond):
        assert held.fixed[i].any()
        assert any("imposed" in message for message in held.messages[i])
        oracle = arch_fit(y[i], model)
        if oracle.params @ weight <= 1 + 1e-12:  # arch may end a little outside
            assert held.loglik[i] > oracle.loglikelihood - 1e-6
        # Along the face the slope is zero; the covariance is that of what is free there.
        free_slope = np.where(held.fixed[i], 0.0, held.gradient[i])
        step = np.sqrt(np.diagonal(np.nan_to_num(covariance(held, "hessian")[i])))
        assert np.abs(free_slope * step).max() < 1e-4


def test_covariance_on_the_face_is_that_of_the_reduced_likelihood():
    y = simulated(model_of(), [0.0, 0.05, 0.15, 0.8499], 12, 300, seed=5)
    found = fitted(model_of(), y)
    units = [i for i in range(12) if found.fixed[i].any() and found.params[i, 2] > 0]
    i = units[0]
    assert any("imposed" in message for message in found.messages[i])
    free = np.flatnonzero(~found.fixed[i])

    def value(step):
        theta = found.params[i].copy()
        theta[free] += step
        theta[3] = 1 - theta[2]
        return garch_at(model_of(), y[i : i + 1], np.array([300]), theta[None], "backcast")

    h = 1e-4 * np.abs(found.params[i, free])
    for j in range(len(free)):
        step = np.zeros(len(free))
        step[j] = h[j]
        at = [value(s).estimates.loglik[0] for s in (-step, 0 * step, step)]
        second = (at[0] - 2 * at[1] + at[2]) / h[j] ** 2
        np.testing.assert_allclose(found.hessian[i][free[j], free[j]], second, rtol=1e-3)


@pytest.mark.few("garch-normal-1-1")
@pytest.mark.parametrize(
    ("vol", "density", "p", "q"),
    [("garch", "normal", 1, 1), ("gjr", "t", 1, 1), ("egarch", "normal", 1, 1),
     ("garch", "normal", 2, 1)],
)  # fmt: skip
def test_parameters_of_simulated_series_are_recovered(vol, density, p, q):
    true = [*TRUE[vol], *[6.0] * (density == "t")]
    if p == 2:
        true = [0.05, 0.1, 0.08, 0.06, 0.8]
    model = model_of(vol, density, p=p, q=q)
    found = fitted(model, simulated(model, true, 200, 2000))
    errors = np.sqrt(np.diagonal(covariance(found, "robust"), axis1=1, axis2=2))
    inside = ~np.isnan(errors).any(1)
    assert inside.mean() > 0.85
    z = ((found.params - true) / errors)[inside]
    # Means of about 200 z-values have a standard deviation of 0.07; the estimators are biased
    # by some part of a standard error in series of this length.
    assert np.abs(np.median(z, 0)).max() < 0.45
    covered = (np.abs(z) < 1.96).mean(0)
    assert covered.min() > 0.85
    assert covered.max() < 0.995


@pytest.mark.slow
def test_arma_means_are_recovered():
    model = model_of(lags=(1,), n_ma=1)
    true = [0.1, 0.7, -0.3, 0.1, 0.1, 0.8]
    found = fitted(model, simulated(model, true, 100, 1500))
    errors = np.sqrt(np.diagonal(covariance(found, "robust"), axis1=1, axis2=2))
    z = (found.params - true) / errors
    assert np.abs(np.nanmedian(z, 0)).max() < 0.6
    assert found.converged.mean() > 0.95


def test_optimum_does_not_depend_on_where_lanes_stand():
    y = simulated(model_of(), TRUE["garch"], 37, 250)
    found, turned = fitted(model_of(), y), fitted(model_of(), y[::-1].copy())
    np.testing.assert_allclose(turned.loglik[::-1], found.loglik, rtol=1e-12)


def test_the_first_autocorrelation_is_that_of_the_rows_there_are():
    rng, n = np.random.default_rng(0), np.array([50, 30, 41])
    y = 3 + rng.normal(size=(3, 50)).cumsum(1)  # rows from n on are of no series
    found = Sample(y[:, :, None], n, n, np.zeros(3), np.ones(3)).first_autocorrelation()
    for i, rows in enumerate(n):
        centred = y[i, :rows] - y[i, :rows].mean()
        assert found[i] == pytest.approx(centred[1:] @ centred[:-1] / (centred @ centred))
    single = Sample(y[:1, :, None], np.array([1]), np.array([1]), np.zeros(1), np.ones(1))
    assert single.first_autocorrelation() == 0.0


class TestFewerLags:
    """Models with fewer lags are the largest one at zeros, and share what is compiled of it."""

    @pytest.mark.few("lags0-garch", "lags1", "lags3-egarch")
    @pytest.mark.parametrize("vol", TRUE)
    @pytest.mark.parametrize("lags", [(1, 0), (1, 1), (2, 1), (3, 1)])
    def test_the_likelihood_is_that_of_the_smaller_model(self, vol, lags):
        y = simulated(model_of(vol), TRUE[vol], 2, 60)
        small = model_of(vol, "t", p=lags[0], q=lags[1])
        own, whole = (
            next(
                problem
                for problem, _ in problems(model, y, np.full(2, 60), "backcast", True)
                if problem is not None
            )
            for model in (small, model_of(vol, "t", p=3, q=2))
        )
        params = np.full((2, len(small.names)), 0.05)
        params[:, small.omega], params[:, small.shape_part] = 0.3, 8.0
        units = np.arange(2)
        expected, restricted = own.likelihood(small), whole.likelihood(small)
        np.testing.assert_allclose(
            restricted.values(params, units), expected.values(params, units), rtol=1e-12
        )
        for exact in (False, True):
            ours = restricted.select(units[::-1]).evaluate(params, units, exact)
            for part, theirs in zip(ours, expected.evaluate(params, units, exact), strict=True):
                np.testing.assert_allclose(part[::-1], theirs, rtol=1e-8, atol=1e-8)

        ours, theirs = restricted.curvatures(params), expected.curvatures(params)
        for name in ours._fields:
            np.testing.assert_allclose(
                getattr(ours, name), getattr(theirs, name), rtol=1e-8, atol=1e-8, err_msg=name
            )

    def test_a_search_compiles_one_cell(self, monkeypatch):
        cells, sums = set(), _likelihood.sums
        monkeypatch.setattr(
            _likelihood, "sums", lambda cell, *a, **k: cells.add(cell.name) or sums(cell, *a, **k)
        )
        model = model_of(p=2, q=2)
        assert fitted(model, simulated(model_of(), TRUE["garch"], 1, 40)).fitted.all()
        assert cells == {model.cell.name}
