"""CCC and DCC: estimates, forecasts, frames, bad input."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from arch import arch_model
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, chi2
from statsmodels.tsa.vector_ar.var_model import VARProcess

from tsrnn.linear.dcc import CCC, DCC
from tsrnn.linear.dcc._dcc import constancy_statistic
from tsrnn.linear.dcc._filter import Walk
from tsrnn.linear.dcc._fit import fit_correlations
from tsrnn.linear.dcc._likelihood import evaluate_correlations
from tsrnn.linear.dcc._specification import Order
from tsrnn.linear.garch import GARCH

from .references import dcc_returns, long_of, matrices_of


@pytest.fixture(scope="module")
def data():
    return dcc_returns()


@pytest.fixture(scope="module")
def dcc(data):
    return DCC(horizon=4, random_state=0).fit(data)


@pytest.fixture(scope="module")
def ccc(data):
    return CCC(horizon=4, random_state=0).fit(data)


class TestEstimates:
    @pytest.mark.parametrize("vol", ["garch", "gjr"])
    def test_variances_are_those_of_arch(self, data, vol):
        fitted = CCC(vol=vol).fit(data)
        loglik = 0.0
        for name in data:
            oracle = arch_model(
                data[name], vol="GARCH", p=1, o=int(vol == "gjr"), q=1, rescale=False
            ).fit(disp="off", tol=1e-12)
            loglik += oracle.loglikelihood
            ours = fitted.params_[[c for c in fitted.params_ if c.endswith(f".{name}")][:4]]
            assert ours.iloc[0].to_numpy()[[0, 1, 2]] == pytest.approx(
                oracle.params.to_numpy()[[0, 1, 2]], abs=2e-3
            )
        garch = GARCH(vol=vol).fit(data)
        assert garch.loglik_.sum() >= loglik - 1e-6
        z = garch.residuals(standardized=True).to_numpy()
        r = (z.T @ z) / np.sqrt(np.outer((z**2).sum(0), (z**2).sum(0)))
        inside = np.einsum("ti,ij,tj", z, np.linalg.inv(r) - np.eye(3), z)
        added = -0.5 * (len(z) * np.linalg.slogdet(r)[1] + inside)
        assert fitted.loglik_.iloc[0] == pytest.approx(garch.loglik_.sum() + added, abs=1e-8)
        rho = fitted.params_[["rho.y0.y1", "rho.y0.y2", "rho.y1.y2"]].iloc[0]
        np.testing.assert_allclose(rho, r[np.triu_indices(3, 1)], rtol=1e-10)

    def test_standard_errors_of_the_equations_are_those_of_garch(self, data, dcc):
        for cov_type in ("robust", "hessian"):
            alone = GARCH(cov_type=cov_type).fit(data).bse_.loc["y1"]
            together = np.sqrt(np.diag(dcc.cov_params(cov_type=cov_type)))
            np.testing.assert_allclose(together[4:8], alone, rtol=1e-6)

    def test_a_gradient_of_zero_and_the_larger_model(self, ccc, dcc):
        assert dcc.converged_.all()
        assert np.abs(dcc.estimates_.gradient[:, -2:]).max() < 1e-3
        test = dcc.lr_test(ccc)
        assert test["df"].iloc[0] == 2
        assert test["statistic"].iloc[0] > 10

    @pytest.mark.parametrize("corrected", [False, True])
    def test_any_order_of_the_columns(self, corrected):
        frame = dcc_returns(400)
        one = DCC(corrected=corrected).fit(frame)
        other = DCC(corrected=corrected).fit(frame[["y2", "y0", "y1"]])
        for fitted, mirrored in ((one.params_, other.params_), (one.bse_, other.bse_)):
            for name in ("a[1]", "b[1]", "beta[1].y1"):
                assert fitted[name].iloc[0] == pytest.approx(mirrored[name].iloc[0], rel=1e-5)
        assert one.params_["rho.y0.y2"].iloc[0] == pytest.approx(
            other.params_["rho.y2.y0"].iloc[0], rel=1e-5
        )
        assert one.loglik_.iloc[0] == pytest.approx(other.loglik_.iloc[0], abs=1e-7)

    @pytest.mark.parametrize("size", [1e-4, 1e4])
    def test_any_unit_of_measurement(self, dcc, data, size):
        other = DCC().fit(data * [size, 1.0, 1 / size])
        for name in ("a[1]", "b[1]", "rho.y0.y1"):
            assert other.params_[name].iloc[0] == pytest.approx(dcc.params_[name].iloc[0], rel=1e-5)
            assert other.bse_[name].iloc[0] == pytest.approx(dcc.bse_[name].iloc[0], rel=1e-4)
        assert other.loglik_.iloc[0] == pytest.approx(dcc.loglik_.iloc[0], abs=1e-6)

    @pytest.mark.few("2-False")
    @pytest.mark.parametrize("corrected", [False, True])
    @pytest.mark.parametrize("n", [2, 5])
    def test_parameters_of_simulated_series_are_recovered(self, corrected, n):
        u, steps = 24 // n, 800
        s = np.tile(0.5 + 0.5 * np.eye(n), (u, 1, 1))
        shocks = np.random.default_rng(3).standard_normal((u, steps, n))
        a, b = np.full((u, 1), 0.06), np.full((u, 1), 0.88)
        z = Walk(s, a, b, corrected).draw(shocks)
        found = fit_correlations(Order(1, 1, corrected), z, np.ones((u, steps), dtype=bool))
        assert found.converged.all()
        mean, error = found.params.mean(0), found.params.std(0) / np.sqrt(u)
        assert (np.abs(mean - [0.06, 0.88]) < 4 * error + [0.003, 0.03]).all()

    @pytest.mark.slow
    def test_more_lags_contain_fewer(self, data):
        small = DCC().fit(data)
        for order in ((2, 1), (1, 2)):
            large = DCC(order=order).fit(data)
            assert large.loglik_.iloc[0] >= small.loglik_.iloc[0] - 1e-7
            assert large.converged_.all()
        assert DCC(order=(1, 0)).fit(data).loglik_.iloc[0] <= small.loglik_.iloc[0]

    def test_errors_of_constant_correlations(self):
        """With variances all but known, those of normal theory: (1 - rho^2) / sqrt(T)."""
        rho, steps = 0.5, 20_000
        z = (
            np.random.default_rng(1).standard_normal((steps, 2))
            @ np.linalg.cholesky(np.array([[1, rho], [rho, 1]])).T
        )
        fitted = CCC(order=(1, 0), mean="zero").fit(pd.DataFrame(z, columns=["a", "b"]))
        error = fitted.bse_["rho.a.b"].iloc[0]
        assert error == pytest.approx((1 - rho**2) / np.sqrt(steps), rel=0.03)


class TestBoundary:
    def test_constant_correlations_leave_b_unidentified(self):
        frame = dcc_returns(500, n=2, a=0.0, b=0.0, seed=3)
        fitted, constant = DCC().fit(frame), CCC().fit(frame)
        assert fitted.params_["a[1]"].iloc[0] == 0.0
        assert fitted.bse_[["a[1]", "b[1]"]].isna().all(axis=None)
        assert "b is not identified" in " ".join(fitted.messages_.iloc[0])
        assert fitted.loglik_.iloc[0] == pytest.approx(constant.loglik_.iloc[0], abs=1e-9)
        np.testing.assert_allclose(fitted.bse_["rho.y0.y1"], constant.bse_["rho.y0.y1"], rtol=1e-6)

    @pytest.mark.slow
    def test_a_sum_of_one_is_imposed(self):
        generator, u, steps = np.random.default_rng(0), 40, 120
        s, a, b = np.tile(np.eye(2), (u, 1, 1)), np.full((u, 1), 0.1), np.full((u, 1), 0.9)
        z = Walk(s, a, b, False).draw(generator.standard_normal((u, steps, 2)))
        order, observed = Order(1, 1, False), np.ones((u, steps), dtype=bool)
        found = fit_correlations(order, z, observed)
        assert found.converged.all()
        assert found.integrated.any()
        import torch

        for i in np.flatnonzero(found.integrated):
            at = found.params[i]
            assert at.sum() == pytest.approx(1.0, abs=1e-14)
            values, seen = torch.from_numpy(z[i : i + 1]), torch.from_numpy(observed[i : i + 1])
            gradient = evaluate_correlations(order, values, seen, at[None]).gradient[0]
            assert gradient[0] == pytest.approx(gradient[1], abs=1e-4)  # none along the face
            assert gradient.sum() > 0
        frame = pd.DataFrame(z[np.flatnonzero(found.integrated)[0]], columns=["u", "v"])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            fitted = DCC(garch_order=(1, 0), mean="zero").fit(frame)
        if fitted.params_[["a[1]", "b[1]"]].sum(axis=1).iloc[0] == pytest.approx(1.0, abs=1e-12):
            assert fitted.bse_[["b[1]", "rho.u.v"]].isna().all(axis=None)
            assert fitted.bse_["a[1]"].iloc[0] > 0


class TestForecasts:
    def test_of_variances_are_those_of_garch(self, data, dcc):
        expected = GARCH().fit(data).predict_variance(4)
        ours = dcc.predict_covariances(4)
        own = ours[ours["first"] == ours["second"]].pivot(
            index="time", columns="first", values="covariance"
        )
        np.testing.assert_allclose(own.to_numpy(), expected.to_numpy(), rtol=1e-6)

    @pytest.mark.parametrize("corrected", [False, True])
    def test_of_correlations_follow_the_recursion(self, data, corrected):
        model = DCC(corrected=corrected).fit(data)
        a, b = model.params_[["a[1]", "b[1]"]].iloc[0]
        spec = model.fitted_.family.spec
        s = spec.parts(model.estimates_.params).target[0]
        e = data.to_numpy() - model.fittedvalues().to_numpy()
        h = np.diagonal(matrices_of(model.covariances(), "covariance", 3), axis1=1, axis2=2)
        z = e / np.sqrt(h)
        q = s.copy()
        for row in z:
            u = np.sqrt(np.diag(q)) * row if corrected else row
            q = (1 - a - b) * s + a * np.outer(u, u) + b * q
        ours = model.predict_correlations(3)["correlation"].to_numpy().reshape(3, 3)
        for k in range(3):
            r = q / np.sqrt(np.outer(np.diag(q), np.diag(q)))
            np.testing.assert_allclose(ours[k], r[np.triu_indices(3, 1)], rtol=1e-10)
            q = (1 - a - b) * s + (a + b) * q

    def test_of_a_var_have_the_mse_of_statsmodels(self, data):
        model = CCC(order=(1, 0), mean="var").fit(data)
        params = model.params_.copy()
        params[[c for c in params if c.startswith("alpha")]] = 0.0
        fixed = CCC(order=(1, 0), mean="var").filter(data, params)
        parts = fixed.fitted_.family.spec.parts(fixed.estimates_.params)
        sigma = np.diag(np.sqrt(parts.variance[0, :, 0]))
        intercept, lag = parts.coefficients[0][:, 0], parts.coefficients[0][:, 1:]
        covariance = sigma @ parts.target[0] @ sigma
        process = VARProcess(lag[None], np.zeros((3, 1)), covariance)
        mse = process.mse(5)
        forecast = fixed.predict(h=5, level=95)
        width = (
            forecast[[f"y{i}-hi-95" for i in range(3)]].to_numpy()
            - forecast[[f"y{i}" for i in range(3)]].to_numpy()
        )
        expected = 1.959963984540054 * np.sqrt(np.diagonal(mse, axis1=1, axis2=2))
        np.testing.assert_allclose(width, expected, rtol=1e-9)
        ours = fixed.predict_covariances(5, of="forecast")["covariance"].to_numpy().reshape(5, 6)
        np.testing.assert_allclose(ours, mse[(slice(None), *np.triu_indices(3))], rtol=1e-9)
        mean, last = [], data.to_numpy()[-1]
        for _ in range(5):
            last = intercept + lag @ last
            mean.append(last)
        np.testing.assert_allclose(forecast[["y0", "y1", "y2"]].to_numpy(), mean, rtol=1e-8)

    @pytest.mark.few("order0-var")
    @pytest.mark.parametrize("mean", ["constant", "var", "vecm"])
    @pytest.mark.parametrize("order", [(1, 1), (2, 2)])
    def test_update_is_the_run_over_all_rows(self, data, mean, order):
        frame = data.cumsum() if mean == "vecm" else data
        model = DCC(order=order, mean=mean, garch_order=(2, 2)).fit(frame.iloc[:-7])
        whole = model.predict(frame, h=3, level=90)
        correlations = model.predict_correlations(3, frame)
        model.update(frame.iloc[-7:-2]).update(frame.iloc[-2:])
        pd.testing.assert_frame_equal(model.predict(h=3, level=90), whole, rtol=1e-9)
        pd.testing.assert_frame_equal(model.predict_correlations(3), correlations, rtol=1e-9)

    def test_simulated_series_have_the_moments_of_the_model(self, dcc):
        drawn = dcc.simulate(5_000)
        rho = dcc.params_["rho.y0.y1"].iloc[0]
        assert drawn.corr().loc["y0", "y1"] == pytest.approx(rho, abs=0.08)
        pd.testing.assert_frame_equal(dcc.simulate(20), dcc.simulate(20))


class TestFrames:
    def test_of_a_panel_with_bad_series(self, data):
        bad = {
            "constant": data.assign(y1=1.0),
            "collinear": data.assign(y2=3 * data["y0"]),
            "short": data.iloc[:4],
        }
        good = {"one": data, "two": dcc_returns(300, seed=9)}
        frame = long_of({"one": good["one"], **bad, "two": good["two"]})
        columns = ["y0", "y1", "y2"]
        with pytest.warns(UserWarning, match="3 of 5 units could not be fitted"):
            fitted = DCC(target=columns).fit(frame)
        said = fitted.messages_.map(" ".join)
        assert "column 'y1'" in said["constant"]
        assert "constant" in said["constant"]
        assert "['y0', 'y2'] are collinear" in said["collinear"]
        assert "column 'y0'" in said["short"] or "rows" in said["short"]
        for name, own in good.items():
            alone = DCC().fit(own)
            np.testing.assert_allclose(fitted.params_.loc[name], alone.params_.iloc[0], rtol=1e-6)
            np.testing.assert_allclose(fitted.bse_.loc[name], alone.bse_.iloc[0], rtol=1e-5)
        forecast = fitted.predict(h=2, level=80).set_index("unique_id")
        assert forecast.loc[["constant", "collinear", "short"], columns].isna().all(axis=None)
        assert forecast.loc[["one", "two"]].notna().all(axis=None)
        residuals = fitted.residuals(standardized=True).set_index("unique_id")
        assert residuals.loc["constant", columns].isna().all(axis=None)
        assert len(fitted.correlations()["unique_id"].unique()) == 2
        assert fitted.constant_correlation_test()["statistic"].notna().sum() == 2
        assert "5" in str(fitted.summary())

    def test_correlations_are_tidy(self, data, dcc):
        tidy = dcc.correlations()
        assert tidy.columns.tolist() == ["time", "first", "second", "correlation"]
        assert len(tidy) == 3 * len(data)
        assert tidy["correlation"].abs().max() < 1
        assert (tidy["time"].iloc[:3] == data.index[0]).all()
        covariances = dcc.covariances()
        assert len(covariances) == 6 * len(data)
        recent = dcc.correlations(data.iloc[-50:])
        assert len(recent) == 150
        long = long_of({"s": data})
        polars = pl.DataFrame({name: long[name].tolist() for name in long})
        fitted = DCC(target=["y0", "y1", "y2"]).fit(polars)
        own = fitted.correlations()
        assert own.columns == ["unique_id", "ds", "first", "second", "correlation"]
        np.testing.assert_allclose(own["correlation"], tidy["correlation"], rtol=1e-6)

    def test_residuals_are_white(self, data, dcc):
        scaled = dcc.residuals(standardized=True).to_numpy()
        np.testing.assert_allclose(scaled.T @ scaled / len(scaled), np.eye(3), atol=0.03)
        covariance = matrices_of(dcc.covariances(), "covariance", 3)
        e = dcc.residuals().to_numpy()
        inside = np.einsum("ti,tij,tj->t", e, np.linalg.inv(covariance), e)
        np.testing.assert_allclose((scaled**2).sum(1), inside, rtol=1e-9)
        loglik = -0.5 * (3 * np.log(2 * np.pi) + np.linalg.slogdet(covariance)[1] + inside)
        assert loglik.sum() == pytest.approx(dcc.loglik_.iloc[0], abs=1e-8)

    def test_summary_says_what_the_errors_are(self, dcc):
        text = str(dcc.summary())
        for part in ("DCC(1, 1)", "GARCH(1, 1)", "rho.y0.y1", "all steps", "backcast"):
            assert part in text


class TestConstancy:
    @pytest.mark.parametrize("lags", [1, 5])
    def test_size(self, lags):
        """Rejections at the nominal 5 percent, within the 99.9 percent bounds of a binomial."""
        generator, n = np.random.default_rng(lags), 2000
        mixing = np.linalg.cholesky(0.5 + 0.5 * np.eye(3)).T
        null = [
            constancy_statistic(generator.standard_normal((300, 3)) @ mixing, lags)
            for _ in range(n)
        ]
        low, high = binom.ppf([0.0005, 0.9995], n, 0.05)
        assert low <= (chi2.sf(null, lags) < 0.05).sum() <= high

    def test_degrees_of_freedom_are_the_lags(self, ccc):
        found = ccc.constant_correlation_test(lags=3).iloc[0]
        assert found["df"] == 3
        assert found["p_value"] == chi2.sf(found["statistic"], 3)

    def test_power(self):
        generator, lags = np.random.default_rng(0), 3
        u, steps = 10, 800
        s, a, b = np.tile(np.eye(3), (u, 1, 1)), np.full((u, 1), 0.12), np.full((u, 1), 0.8)
        z = Walk(s, a, b, False).draw(generator.standard_normal((u, steps, 3)))
        assert np.median([constancy_statistic(own, lags) for own in z]) > 15

    def test_equals_a_regression_of_statsmodels(self):
        import statsmodels.api as sm

        z = np.random.default_rng(0).standard_normal((150, 2)) @ np.array([[1, 0.3], [0, 2.0]])
        c = np.sqrt((z**2).mean(0))
        values, vectors = np.linalg.eigh((z / c).T @ (z / c) / len(z))
        white = (z / c) @ vectors @ np.diag(values**-0.5) @ vectors.T
        y = white[:, 0] * white[:, 1]
        x = np.column_stack([np.ones(148), y[1:-1], y[:-2]])
        ols = sm.OLS(y[2:], x).fit()
        expected = ols.params @ x.T @ x @ ols.params / ols.mse_resid
        assert constancy_statistic(z, 2) == pytest.approx(expected, rel=1e-10)


class TestErrors:
    @pytest.mark.parametrize(
        ("arguments", "text"),
        [
            ({"order": (0, 1)}, "p >= 1"),
            ({"order": 1}, "order must be two integers"),
            ({"garch_order": (0, 1)}, "p >= 1"),
            ({"vol": "egarch"}, "vol must be one of"),
            ({"mean": "ar"}, "mean"),
            ({"initial_variance": "fcp"}, "initial_variance must be one of"),
            ({"initial_variance": -1.0}, "initial_variance must be a number greater than 0"),
            ({"cov_type": "opg"}, "cov_type must be one of"),
        ],
    )
    def test_of_arguments(self, data, arguments, text):
        with pytest.raises(ValueError, match=text):
            DCC(**arguments).fit(data)

    @pytest.mark.parametrize(
        ("change", "text"),
        [
            ({"a[1]": 0.2, "b[1]": 0.9}, "a and b must not be negative"),
            ({"rho.y0.y1": 0.99, "rho.y0.y2": -0.99}, "positive definite"),
            ({"omega.y0": -1.0}, "positive, finite variances"),
        ],
    )
    def test_of_given_parameters(self, data, dcc, change, text):
        params = dcc.params_.iloc[0].copy()
        for name, value in change.items():
            params[name] = value
        with pytest.raises(ValueError, match=text):
            DCC().filter(data, params)

    @pytest.mark.parametrize(
        ("model", "change", "text"),
        [
            (CCC(), lambda y: y[["y0"]], "at least two targets"),
            (DCC(), lambda y: y.assign(y2=y["y1"] * -2), "collinear"),
            (CCC(), lambda y: y.assign(y1=1.0), r"'y1': [^.]* is constant\. Drop it\.$"),
            (DCC(), lambda y: y.iloc[:10, :2], "11 parameters .* 22 values; there are 10"),
            (CCC((200, 1)), lambda y: y.iloc[:300, :2], "407 parameters need at least 814 values"),
        ],
        ids=["one column", "collinear", "constant", "few rows", "many lags"],
    )
    def test_of_data(self, data, model, change, text):
        with pytest.raises(ValueError, match=text):
            model.fit(change(data))

    def test_of_a_series_that_was_not_fitted(self, data):
        frame = long_of({"good": data[:300], "bad": data[:300].assign(y1=1.0)})
        with pytest.warns(UserWarning, match=r"'bad'.* constant\. Drop it\. The parameters"):
            fitted = CCC(target=["y0", "y1", "y2"]).fit(frame)
        bad = frame[frame["unique_id"] == "bad"]
        assert fitted.predict(bad, h=2)[["y0", "y1", "y2"]].isna().all(axis=None)
        assert "constant" in str(fitted.summary("bad"))
        with pytest.raises(ValueError, match=r"none of the series 'bad' could be fitted"):
            fitted.correlations(bad)

    def test_of_simulation(self, ccc):
        for burn in (-1, 1.5, "long"):
            with pytest.raises(ValueError, match="burn must be an integer of at least 0; got"):
                ccc.simulate(3, burn=burn)
        with pytest.raises(ValueError, match="positive definite"):
            ccc.simulate(3, params=ccc.params_.assign(**{"rho.y0.y1": 1.5}))
        for omega in (-1.0, 0.0):
            with pytest.raises(ValueError, match="to simulate"):
                ccc.simulate(3, params=ccc.params_.assign(**{"omega.y0": omega}))

    def test_orders_are_numbers_of_any_integer_type(self, data):
        order = (np.int64(1), np.int32(0))
        assert CCC(order=order).fit(data[["y0", "y1"]]).params_.shape[1] == 7

    def test_of_another_covariance(self, dcc):
        for call in (dcc.cov_params, dcc.summary, dcc.conf_int):
            with pytest.raises(ValueError, match="cov_type must be one of"):
                call(cov_type="information")


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(
    n=st.integers(2, 4),
    steps=st.integers(30, 90),
    seed=st.integers(0, 10_000),
    corrected=st.booleans(),
)
def test_any_small_sample_ends_in_estimates(n, steps, seed, corrected):
    z = np.random.default_rng(seed).standard_normal((2, steps, n))
    found = fit_correlations(Order(1, 1, corrected), z, np.ones((2, steps), dtype=bool))
    assert found.converged.all()
    assert (found.params >= 0).all()
    assert (found.params.sum(1) <= 1 + 1e-12).all()
    constant = fit_correlations(Order(0, 0, False), z, np.ones((2, steps), dtype=bool))
    assert (found.value >= constant.value - 1e-9).all()
