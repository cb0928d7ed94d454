"""Fits of ARMA models: statsmodels' optima, batches, units, boundaries, bad series."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.signal import lfilter
from statsmodels.tsa.arima.model import ARIMA

from tsrnn import ARMA
from tsrnn.datasets import load_fertility
from tsrnn.linear._inference import covariance

MIXED = (1, 1)


def simulated(params, n, n_rows, seed=0):
    """ARMA(1, 1) with a constant, long past its beginning."""
    const, phi, theta, sigma2 = params
    e = np.random.default_rng(seed).normal(0, sigma2**0.5, (n, n_rows + 200))
    return const + lfilter([1, theta], [1, -phi], e)[:, 200:]


def statsmodels_fit(y, order, trend, exog=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ARIMA(y, exog=exog, order=order, trend=trend).fit()


@pytest.mark.parametrize(("p", "q"), [(1, 1), (0, 2), (2, 1)])
def test_optimum_is_not_below_that_of_statsmodels(p, q, fit_arma):
    rng = np.random.default_rng(p + 10 * q)
    polynomials = [[np.poly(rng.uniform(-0.9, 0.9, lags)) for lags in (q, p)] for _ in range(4)]
    y = np.array([3 + lfilter(ma, ar, rng.normal(size=290))[200:] for ma, ar in polynomials])
    ours = fit_arma((p, q), "c", y)
    assert ours.converged.all()
    for i in range(4):
        assert (np.abs(np.roots([1, *-ours.params[i, 1 : 1 + p]])) < 1).all()
        theirs = statsmodels_fit(y[i], (p, 0, q), "c")
        assert ours.loglik[i] > theirs.llf - 1e-6
        inner = np.abs(ours.params[i] - theirs.params) < 1e-3  # the same maximum
        if inner.all():
            cov = covariance(ours.select(np.array([i])), "opg")[0]
            if np.isfinite(cov).all():
                np.testing.assert_allclose(cov, theirs.cov_params(), rtol=0.05, atol=1e-4)


@pytest.mark.few("Angola", "Armenia")
@pytest.mark.parametrize(
    ("country", "order"),
    [
        ("Angola", (0, 1, 2)),  # maxima side by side along the unit circle
        ("Armenia", (0, 1, 2)),
        ("Other small states", (0, 1, 2)),
        ("Iceland", (2, 1, 2)),  # pairs of roots that almost cancel
        ("Sweden", (2, 1, 2)),
    ],
)
def test_likelihoods_with_several_maxima(country, order, fit_arma):
    y = load_fertility()[country].dropna().to_numpy()
    found = fit_arma(order, "n", y[None])
    model = ARIMA(np.diff(y), order=(order[0], 0, order[2]), trend="n")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        params = model.fit().params
    model.ssm.tolerance = 0
    assert found.loglik[0] > model.loglike(params) - 1e-6


def test_a_long_autoregression_is_not_below_that_of_statsmodels(fit_arma):
    y = simulated([0, 0.6, 0, 1], 1, 120, seed=3)
    ours = fit_arma((6, 0), "c", y)
    assert ours.converged[0]
    theirs = statsmodels_fit(y[0], (6, 0, 0), "c")
    assert ours.loglik[0] > theirs.llf - 1e-6
    hessian = theirs.model.hessian(ours.params[0], method="approx", approx_centered=True)
    np.testing.assert_allclose(ours.hessian[0], hessian * 120, rtol=1e-2, atol=1.0)


@pytest.mark.parametrize(("order", "likelihood"), [
    ((0, 0), "exact"), ((0, 1, 0), "exact"), ((0, 2, 0), "exact"), ((0, 1, 0), "conditional"),
])  # fmt: skip
@pytest.mark.parametrize("n", [1, 30])
def test_models_of_a_variance_alone(order, likelihood, n):
    y = np.random.default_rng(0).normal(size=(60, n)).cumsum(0)
    model = ARMA(order=order, trend="n", likelihood=likelihood).fit(pd.DataFrame(y))
    d = order[1] if len(order) == 3 else 0
    change = np.diff(y, n=d, axis=0)
    np.testing.assert_allclose(model.params_["sigma2"], (change**2).mean(0))
    assert model.converged_.all()
    errors = model.params_["sigma2"] * np.sqrt(2 / len(change))
    np.testing.assert_allclose(model.bse_["sigma2"], errors)
    if d < 2:
        np.testing.assert_allclose(model.predict(2), np.tile(d * y[-1], (2, 1)), atol=1e-12)
    theirs = ARIMA(change[:, 0], order=(0, 0, 0), trend="n").fit()
    assert model.loglik_.iloc[0] == pytest.approx(theirs.llf, rel=1e-9)


def test_gradient_is_zero_at_the_optimum(fit_arma):
    y = simulated([2.0, 0.6, 0.3, 1.0], 20, 150)
    ours = fit_arma(MIXED, "c", y)
    errors = np.sqrt(np.diagonal(covariance(ours, "hessian"), axis1=1, axis2=2))
    assert (np.abs(ours.gradient * errors) < 1e-6).all()


@pytest.mark.parametrize("trend", ["n", "ct"])
def test_batch_equals_single(trend, fit_arma):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(5, 80, 1)) + 10
    y = simulated([2.0, 0.6, 0.3, 1.0], 5, 80) + 3 * x[:, :, 0]
    y[1, 60:] = np.nan  # ends earlier
    y[3, [10, 30, 31]] = np.nan
    batch = fit_arma(MIXED, trend, y, x)
    for i in range(5):
        end = 60 if i == 1 else 80
        single = fit_arma(MIXED, trend, y[i : i + 1, :end], x[i : i + 1, :end])
        for name in ("params", "loglik", "hessian", "opg"):
            ours, expected = getattr(batch, name)[i], getattr(single, name)[0]
            digits = {"rtol": 1e-6, "atol": 1e-8 * np.abs(expected).max()}
            np.testing.assert_allclose(ours, expected, **digits)


@pytest.mark.parametrize("d", [0, 1])
def test_units_of_the_data_do_not_matter(d, fit_arma):
    rng = np.random.default_rng(2)
    x = rng.normal(size=(1, 120, 1))
    y = simulated([2.0, 0.6, 0.3, 1.0], 1, 120) + x[:, :, 0]
    y = y.cumsum(1) if d else y
    model = (1, d, 1), "t" if d else "c"
    one, scaled = fit_arma(*model, y, x), fit_arma(*model, 1e6 * y, 1e-4 * x)
    factors = np.array([1e6, 1e10, 1, 1, 1e12])
    np.testing.assert_allclose(scaled.params[0], one.params[0] * factors, rtol=1e-6)
    expected = one.loglik - one.n_obs * np.log(1e6)
    np.testing.assert_allclose(scaled.loglik, expected, rtol=1e-10)
    cov = covariance(one, "robust")[0] * np.outer(factors, factors)
    np.testing.assert_allclose(covariance(scaled, "robust")[0], cov, rtol=1e-5)


def test_regression_on_large_and_nearly_collinear_columns(fit_arma):
    rng = np.random.default_rng(3)
    year = np.arange(1900.0, 2020.0)
    x = np.column_stack([year, year + 0.01 * rng.normal(size=120)])[None]
    u = simulated([0.0, 0.5, 0.3, 1.0], 1, 120)
    y = u + x @ np.array([3.0, -2.0]) + 1e4
    ours = fit_arma(MIXED, "c", y, x)
    assert ours.converged[0]
    model = ARIMA(y[0], exog=x[0], order=(1, 0, 1))
    np.testing.assert_allclose(model.loglike(ours.params[0]), ours.loglik[0], rtol=0, atol=1e-6)


def test_gaps_of_a_differenced_series_are_no_gaps_where_all_is_seen(fit_arma):
    y = simulated([0.3, 0.5, 0.3, 1.0], 2, 100).cumsum(1)
    late = np.concatenate([np.full((2, 3), np.nan), y], axis=1)  # begins later, no value lost
    whole, begun = (fit_arma((1, 1, 1), "t", part) for part in (y, late))
    np.testing.assert_array_equal(begun.n_obs, whole.n_obs)
    np.testing.assert_allclose(begun.loglik, whole.loglik, rtol=1e-9)
    np.testing.assert_allclose(begun.params, whole.params, rtol=1e-5, atol=1e-7)


def test_conditional_pure_autoregression_is_least_squares(fit_arma):
    y = np.random.default_rng(4).normal(size=(3, 60))
    ours = fit_arma((2, 0), "n", y, exact=False)
    for i in range(3):
        past = np.concatenate([[0, 0], y[i]])
        X = np.column_stack([past[1:-1], past[:-2]])
        beta, square = np.linalg.lstsq(X, y[i], rcond=None)[:2]
        np.testing.assert_allclose(ours.params[i], [*beta, square[0] / 60], rtol=1e-7)


class TestWarnings:
    def test_of_a_root_on_the_unit_circle(self, fit_arma):
        y = np.diff(np.random.default_rng(5).normal(size=(30, 61)))  # an MA with the root 1
        ours = fit_arma((0, 1), "n", y)
        on_edge = ours.params[:, 0] < -1 + 1e-6
        assert on_edge.mean() > 0.3
        assert (ours.params[:, 0] >= -1 - 1e-9).all()
        np.testing.assert_array_equal(ours.fixed[:, 0], on_edge)
        assert not ours.fixed[:, 1].any()
        for i in np.flatnonzero(on_edge):
            assert "boundary" in ours.messages[i][0]

    @pytest.mark.parametrize(
        ("order", "trend", "integrated", "words"),
        [(MIXED, "c", False, "dentified"), ((1, 0), "n", True, "unit root")],
    )
    def test_of_roots(self, order, trend, integrated, words, fit_arma):
        y = np.random.default_rng(6).normal(size=(40, 200))
        ours = fit_arma(order, trend, y.cumsum(1) if integrated else y)
        assert np.mean([any(words in text for text in texts) for texts in ours.messages]) > 0.5

    def test_are_none_where_roots_are_far_apart(self, fit_arma):
        assert not any(fit_arma(MIXED, "c", simulated([0, 0.7, 0.5, 1], 20, 300)).messages)


class TestBadSeries:
    def test_cost_no_other(self, fit_arma):
        y = simulated([2.0, 0.6, 0.3, 1.0], 9, 60)
        good = fit_arma(MIXED, "c", y[[0, 8]])
        y[1] = 5.1
        y[2, :6], y[2, 20:] = np.nan, np.nan
        y[2, 6:20] = 5.1
        y[3, 4:] = np.nan
        y[4] = np.nan
        y[5, 20:-1] = np.nan
        y[6] = 1e9
        ours = fit_arma(MIXED, "c", y)
        np.testing.assert_array_equal(
            ours.fitted, [True, True, True, False, False, True, True, True, True]
        )
        assert not ours.converged[~ours.fitted].any()
        np.testing.assert_allclose(ours.params[[0, 8]], good.params, rtol=1e-7)
        for i, text in {1: "exactly", 2: "exactly", 3: "has 4", 4: "has 0", 6: "exactly"}.items():
            assert text in ours.messages[i][0]
        constant = [[5.1, 0, 0, 0], [5.1, 0, 0, 0], [1e9, 0, 0, 0]]
        np.testing.assert_allclose(ours.params[[1, 2, 6]], constant, rtol=1e-15)

    def test_collinear_regressors(self, fit_arma):
        rng = np.random.default_rng(8)
        x = rng.normal(size=(2, 50, 2))
        x[0, :, 1] = 3 * x[0, :, 0] + 1
        ours = fit_arma((1, 0), "c", rng.normal(size=(2, 50)), x)
        np.testing.assert_array_equal(ours.fitted, [False, True])
        assert "collinear" in ours.messages[0][0]

    @pytest.mark.parametrize(
        ("y", "message"),
        [
            (np.ones((2, 3)), "no series could be fitted; series 0, 1: .* the series has 3"),
            (np.where(np.arange(50) == 3, np.inf, np.ones((2, 50))), "must be finite; infinite"),
        ],
    )
    def test_refusals(self, y, message, fit_arma):
        with pytest.raises(ValueError, match=message):
            fit_arma(MIXED, "c", y)

    def test_explained_without_error(self, fit_arma):
        x = np.random.default_rng(9).normal(size=(1, 50, 1))
        ours = fit_arma((1, 0), "c", 2 * x[:, :, 0] + 7, x)
        np.testing.assert_allclose(ours.params[0], [7, 2, 0, 0], atol=1e-12)
        assert "exactly" in ours.messages[0][0]

    def test_two_differences_of_a_series_that_begins_with_a_gap(self, fit_arma):
        y = np.random.default_rng(10).normal(size=(2, 50)).cumsum(1).cumsum(1)
        y[0, 1], y[1, 4] = np.nan, np.nan
        ours = fit_arma((0, 2, 1), "n", y)
        assert ours.fitted.all()
        assert "left out before them: 1" in ours.messages[0][0]
        assert ours.messages[1] == ()
        alone = fit_arma((0, 2, 1), "n", y[:1, 2:])
        np.testing.assert_allclose(ours.params[0], alone.params[0], rtol=1e-6)
        assert ours.n_obs.tolist() == [46, 47]

    def test_infinite_values(self, fit_arma):
        y = np.ones((2, 50)).cumsum(1)
        y[1, 3] = np.inf
        with pytest.raises(ValueError, match="must be finite; infinite"):
            fit_arma(MIXED, "c", y)


def test_intervals_cover(fit_arma):
    n = 400
    y = simulated([1.0, 0.6, 0.3, 2.0], n, 200, seed=11)
    ours = fit_arma(MIXED, "c", y)
    assert ours.converged.all()
    errors = np.sqrt(np.diagonal(covariance(ours, "hessian"), axis1=1, axis2=2))
    z = (ours.params - [1.0, 0.6, 0.3, 2.0]) / errors
    coverage = (np.abs(z) < 1.96).mean(0)
    assert (coverage > 0.95 - 4 * np.sqrt(0.95 * 0.05 / n)).all()
    assert (np.abs(z.mean(0)) < 0.35).all()
