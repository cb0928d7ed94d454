"""Covariances, tests and intervals against statsmodels' least squares and closed forms."""

from dataclasses import replace

import numpy as np
import pytest
import statsmodels.api as sm
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from tsrnn.linear._inference import (
    KINDS,
    confidence_intervals,
    covariance,
    criteria,
    delta_method,
    likelihood_ratio_test,
    linear_restrictions_test,
    no_covariance,
    standard_errors,
    z_values,
)

T = 90


@pytest.fixture(scope="module")
def X():
    draw = np.random.default_rng(1)
    return sm.add_constant(draw.normal(size=(T, 2)) * [1.0, 100.0])


@pytest.fixture(scope="module")
def y(X):
    draw = np.random.default_rng(2)
    noise = draw.standard_t(5, size=(3, T)) * (1 + X[:, 1] ** 2)
    return [[1.0], [100.0], [1e-4]] * (X @ [1.0, 2.0, -0.01] + noise)


@pytest.fixture(scope="module")
def estimates(ols_estimates, y, X):
    return ols_estimates(y, X)


@pytest.fixture(scope="module")
def oracles(y, X):
    return [sm.OLS(unit, X).fit() for unit in y]


class TestCovariance:
    @pytest.mark.parametrize("kind", ["hessian", "information"])
    def test_of_a_normal_regression_is_that_of_least_squares(self, estimates, oracles, kind):
        cov = covariance(estimates, kind)
        for unit, oracle in zip(cov, oracles, strict=True):
            expected = oracle.cov_params() * oracle.df_resid / T
            np.testing.assert_allclose(unit[:3, :3], expected, rtol=1e-9)
        variance = 2 * estimates.params[:, 3] ** 2 / T
        np.testing.assert_allclose(cov[:, 3, 3], variance, rtol=1e-9)

    def test_robust_is_hc0(self, estimates, oracles):
        errors = standard_errors(covariance(estimates, "robust"))
        for unit, oracle in zip(errors, oracles, strict=True):
            np.testing.assert_allclose(unit[:3], oracle.HC0_se, rtol=1e-9)

    def test_kinds_against_plain_inverses(self, estimates):
        off = np.sqrt(np.diagonal(estimates.opg, axis1=1, axis2=2)) * [0.3, -0.2, 0.1, 0.4]
        estimates = replace(estimates, gradient=off)  # as it is short of the optimum
        for i in range(3):
            H, B = -estimates.hessian[i], estimates.opg[i]
            inverse, information = np.linalg.inv(H), np.linalg.inv(estimates.information[i])
            g = estimates.gradient[i]
            centred = (B - np.outer(g, g) / T) * T / (T - 1)
            expected = {
                "hessian": inverse,
                "opg": np.linalg.inv(B),
                "information": information,
                "robust": inverse @ B @ inverse,
                "bollerslev-wooldridge": information @ B @ information,
                "arch-robust": inverse @ centred @ inverse,
            }
            assert set(expected) == set(KINDS)
            for kind, cov in expected.items():
                scale = np.sqrt(np.outer(np.diag(cov), np.diag(cov)))
                np.testing.assert_allclose(
                    covariance(estimates, kind)[i] / scale, cov / scale, atol=1e-9
                )

    @pytest.mark.parametrize("kind", KINDS)
    def test_fixed_parameters_are_taken_as_known(self, estimates, kind):
        fixed = np.zeros((3, 4), bool)
        fixed[1, 2] = True
        some = covariance(replace(estimates, fixed=fixed), kind)
        assert np.isnan(some[1, 2]).all()
        assert np.isnan(some[1, :, 2]).all()
        np.testing.assert_array_equal(some[0], covariance(estimates, kind)[0])
        keep = [0, 1, 3]
        reduced = replace(
            estimates,
            names=("a", "b", "c"),
            gradient=estimates.gradient[:, keep],
            hessian=estimates.hessian[:, keep][:, :, keep],
            opg=estimates.opg[:, keep][:, :, keep],
            information=estimates.information[:, keep][:, :, keep],
            fixed=fixed[:, keep],
        )
        np.testing.assert_allclose(
            some[1][np.ix_(keep, keep)], covariance(reduced, kind)[1], rtol=1e-9
        )

    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("fault", ["singular", "indefinite", "zero", "nan"])
    def test_a_bad_matrix_costs_only_its_unit(self, estimates, kind, fault):
        scale = np.sqrt(-estimates.hessian[1].diagonal())
        bad = {
            "singular": np.ones((4, 4)),
            "indefinite": np.eye(4) - 0.7,
            "zero": np.diag([1.0, 1.0, 0.0, 1.0]),
            "nan": np.full((4, 4), np.nan),
        }[fault] * np.outer(scale, scale)
        matrices = {}
        for name, sign in (("hessian", -1), ("opg", 1), ("information", 1)):
            matrices[name] = getattr(estimates, name).copy()
            matrices[name][1] = sign * bad
        broken = replace(estimates, **matrices)
        cov = covariance(broken, kind)
        assert np.isnan(cov[1]).all()
        np.testing.assert_array_equal(cov[[0, 2]], covariance(estimates, kind)[[0, 2]])
        assert no_covariance(broken, cov).tolist() == [False, True, False]

    @given(st.integers(-12, 12), st.integers(-12, 12))
    @settings(max_examples=20, deadline=None)
    def test_follows_the_units_of_the_parameters(self, estimates, one, other):
        scale = np.array([10.0**one, 1.0, 10.0**other, 1.0])
        outer = np.outer(scale, scale)
        moved = replace(estimates, hessian=estimates.hessian / outer, opg=estimates.opg / outer)
        cov = covariance(estimates, "robust") * outer
        np.testing.assert_allclose(covariance(moved, "robust"), cov, rtol=1e-6)

    def test_refusals(self, estimates):
        with pytest.raises(ValueError, match="cov_type must be one of .*got 'hc1'"):
            covariance(estimates, "hc1")
        bare = replace(estimates, information=None)
        for kind in ("information", "bollerslev-wooldridge"):
            with pytest.raises(ValueError, match="take 'hessian', 'opg' or 'robust'"):
                covariance(bare, kind)


class TestEstimates:
    def test_placed_and_selected_again(self, estimates):
        which = np.array([4, 0, 2])
        whole = estimates.placed(5, which, {1: "too short"})
        assert whole.fitted.tolist() == [True, False, True, False, True]
        assert whole.messages == ((), ("too short",), (), (), ())
        assert not whole.converged[[1, 3]].any()
        again = whole.select(which)
        for name in ("params", "loglik", "hessian", "opg", "information", "fixed"):
            np.testing.assert_array_equal(getattr(again, name), getattr(estimates, name))
        assert covariance(whole, "hessian").shape == (5, 4, 4)
        assert not no_covariance(whole, covariance(whole, "hessian")).any()


class TestNumbers:
    def test_criteria_are_those_of_statsmodels(self, estimates, oracles):
        made = criteria(estimates)
        for i, oracle in enumerate(oracles):
            k = 4  # statsmodels does not count sigma2
            assert made.aic[i] == pytest.approx(oracle.aic + 2, rel=1e-12)
            assert made.bic[i] == pytest.approx(oracle.bic + np.log(T), rel=1e-12)
            hannan = 2 * k * np.log(np.log(T)) - 2 * oracle.llf
            assert made.hqic[i] == pytest.approx(hannan, rel=1e-12)

    def test_z_values_and_intervals_are_those_of_statsmodels(self, estimates, y, X):
        errors = standard_errors(covariance(estimates, "robust"))
        z, p = z_values(estimates.params, errors)
        lower, upper = confidence_intervals(estimates.params, errors, 90)
        for i, unit in enumerate(y):
            oracle = sm.OLS(unit, X).fit(cov_type="HC0", use_t=False)
            np.testing.assert_allclose(z[i, :3], oracle.tvalues, rtol=1e-9)
            np.testing.assert_allclose(p[i, :3], oracle.pvalues, rtol=1e-8)
            ends = oracle.conf_int(alpha=0.1)
            np.testing.assert_allclose(np.array([lower[i], upper[i]])[:, :3].T, ends, rtol=1e-8)

    def test_p_values_of_large_ratios_do_not_vanish(self):
        _, p = z_values(np.array([[20.0, -20.0]]), np.ones((1, 2)))
        np.testing.assert_allclose(p, 2 * norm.sf(20.0), rtol=1e-12)


class TestTests:
    def test_wald_is_that_of_statsmodels(self, estimates, y, X):
        R, r = np.array([[0.0, 1.0, 0.0, 0.0], [1.0, 0.0, -30.0, 0.0]]), np.array([1.5, 0.2])
        made = linear_restrictions_test(estimates.params, covariance(estimates, "robust"), R, r)
        assert made.df == 2
        for i, unit in enumerate(y):
            oracle = sm.OLS(unit, X).fit(cov_type="HC0", use_t=False)
            expected = oracle.wald_test((R[:, :3], r), use_f=False, scalar=True)
            assert made.statistic[i] == pytest.approx(expected.statistic, rel=1e-8)
            assert made.p_value[i] == pytest.approx(expected.pvalue, rel=1e-6)

    def test_wald_has_no_answer_for_fixed_parameters(self, estimates):
        fixed = np.zeros((3, 4), bool)
        fixed[2, 1] = True
        cov = covariance(replace(estimates, fixed=fixed), "hessian")
        touched = linear_restrictions_test(estimates.params, cov, np.eye(4)[[1]], np.zeros(1))
        other = linear_restrictions_test(estimates.params, cov, np.eye(4)[[2]], np.zeros(1))
        assert np.isnan(touched.statistic).tolist() == [False, False, True]
        assert np.isfinite(other.statistic).all()

    def test_likelihood_ratio_is_that_of_statsmodels(self, ols_estimates, estimates, oracles, y, X):
        smaller = ols_estimates(y, X[:, :2])
        made = likelihood_ratio_test(smaller, estimates)
        assert made.df == 1
        for i, (unit, oracle) in enumerate(zip(y, oracles, strict=True)):
            statistic, p, df = oracle.compare_lr_test(sm.OLS(unit, X[:, :2]).fit())
            assert df == made.df
            assert made.statistic[i] == pytest.approx(statistic, rel=1e-8, abs=1e-9)
            assert made.p_value[i] == pytest.approx(p, rel=1e-8)


class TestDeltaMethod:
    def test_against_the_closed_form(self):
        params = np.array([[2.0, 3.0, 1.0], [0.5, -1.0, 7.0]])
        roots = np.random.default_rng(0).normal(size=(2, 3, 3))
        cov = roots @ roots.swapaxes(1, 2)
        values, made = delta_method(
            lambda t: torch.stack([t[:, 0] * t[:, 1], t[:, 2].exp()], 1), params, cov
        )
        np.testing.assert_allclose(values[:, 0], params[:, 0] * params[:, 1])
        for i, (a, b, c) in enumerate(params):
            jacobian = np.array([[b, a, 0.0], [0.0, 0.0, np.exp(c)]])
            np.testing.assert_allclose(made[i], jacobian @ cov[i] @ jacobian.T, rtol=1e-12)

    def test_what_depends_on_a_fixed_parameter_has_no_error(self):
        cov = np.full((1, 2, 2), np.nan)
        cov[0, 0, 0] = 4.0
        _, made = delta_method(
            lambda t: torch.stack([3 * t[:, 0], t.sum(1)], 1), np.ones((1, 2)), cov
        )
        assert made[0, 0, 0] == pytest.approx(36.0)
        assert np.isnan(made[0, 1]).all()
        assert np.isnan(made[0, :, 1]).all()

    def test_units_do_not_mix(self):
        params = np.array([[1.0], [np.nan], [2.0]])
        cov = np.ones((3, 1, 1))
        values, made = delta_method(lambda t: t**2, params, cov)
        np.testing.assert_array_equal(values[:, 0], [1.0, np.nan, 4.0])
        np.testing.assert_array_equal(made[:, 0, 0], [4.0, np.nan, 16.0])
