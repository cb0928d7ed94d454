"""Seasonal ARMA against statsmodels and the multivariate normal distribution, written out."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.linalg import toeplitz
from scipy.signal import lfilter
from scipy.stats import multivariate_normal
from statsmodels.tsa.statespace.sarimax import SARIMAX

import tsrnn
from tsrnn.linear import ARMA
from tsrnn.linear.arma import _seasonal_fit
from tsrnn.linear.arma._fast_filter import solution
from tsrnn.linear.arma._seasonal import Lanes, _divide
from tsrnn.linear.arma._seasonal_fit import SeasonalLikelihood, climb_inside
from tsrnn.linear.arma._specification import Form

from .examples import AIRLINE

Y = np.log(AIRLINE)
MONTHS = pd.date_range("1949-01", periods=len(Y), freq="MS")
AIRLINE_ORDER = {"order": (0, 1, 1), "seasonal_order": (0, 1, 1, 12)}
ORDERS = [
    ((0, 1, 1), (0, 1, 1, 12)),
    ((2, 1, 0), (1, 1, 0, 12)),
    ((1, 0, 1), (1, 1, 1, 12)),
    ((1, 0, 0), (1, 0, 0, 12)),
    ((0, 0, 2), (0, 0, 2, 12)),
    ((3, 0, 2), (2, 0, 2, 4)),
    ((2, 1, 2), (2, 1, 1, 4)),
    ((0, 2, 1), (0, 1, 1, 4)),
    ((0, 0, 0), (0, 2, 1, 4)),
    ((1, 0, 1), (2, 0, 1, 2)),
    ((1, 1, 1), (1, 0, 1, 52)),
]
# What two differences and a seasonal one sum up to has a covariance that is too large to factor.
WRITTEN_OUT = [orders for orders in ORDERS[:-1] if orders[0][1] < 2]


def frame(values, **columns):
    return pd.DataFrame({"y": values, **columns}, index=MONTHS[: len(values)])


def oracle(y, exog=None, simple_differencing=True, **orders):
    """Model of statsmodels whose filter does not stop at a tolerance."""
    model = SARIMAX(y, exog, simple_differencing=simple_differencing, **orders)
    model.ssm.tolerance = 0
    return model


def parameters(model, seed=0):
    """Small coefficients of a model's orders, in the order of its names."""
    (p, _, q), (P, _, Q, _) = model.order, model.seasonal_order
    rng = np.random.default_rng(seed)
    return np.append(rng.uniform(-0.35, 0.35, p + q + P + Q), 0.01)


def autocovariances(phi, theta, n):
    """Autocovariances of an ARMA with coefficients of multiplied polynomials, by its weights."""
    psi = lfilter(np.r_[1, theta], np.r_[1, -phi], np.eye(1, 6000)[0])
    return np.array([psi[: len(psi) - k] @ psi[k:] for k in range(n)])


def multiplied(first, second, m, sign):
    seasonal = np.zeros(m * len(second) + 1)
    seasonal[::m] = np.r_[1, sign * second]
    return sign * np.convolve(np.r_[1, sign * first], seasonal)[1:]


def dense_loglik(y, model, params):
    """Log-likelihood of what is observed, given the first rows that differencing takes."""
    (p, d, q), (P, D, Q, m) = model.order, model.seasonal_order
    ar, ma, sar, sma, (sigma2,) = np.split(params, np.cumsum([p, q, P, Q]))
    lost, T = d + m * D, len(y)
    gamma = autocovariances(multiplied(ar, sar, m, -1), multiplied(ma, sma, m, 1), T - lost)
    steps = np.eye(T)
    for lag in (1,) * d + (m,) * D:
        steps = steps[lag:] - steps[:-lag]
    first, later = steps[:, :lost], np.linalg.inv(steps[:, lost:])
    seen = np.isfinite(y[lost:])
    mean = -later @ (first @ y[:lost])
    cov = sigma2 * later @ toeplitz(gamma) @ later.T
    cov = cov[np.ix_(seen, seen)]
    return multivariate_normal.logpdf(y[lost:][seen], mean[seen], cov, allow_singular=True)


def filtered(order, seasonal, y=Y, **arguments):
    """Model without a mean filtered at small coefficients, and these."""
    model = ARMA(order, "n", seasonal_order=seasonal, **arguments)
    params = parameters(model)
    return model.filter(frame(y), params), params


@pytest.fixture(scope="module")
def airline():
    return ARMA(**AIRLINE_ORDER).fit(frame(Y))


class TestLikelihood:
    """Values and derivatives at given parameters."""

    @pytest.mark.parametrize(("order", "seasonal"), ORDERS)
    def test_statsmodels(self, order, seasonal):
        fitted, params = filtered(order, seasonal, support="real")
        there = oracle(Y, order=order, seasonal_order=seasonal)
        assert fitted.loglik_.iloc[0] == pytest.approx(there.loglike(params), abs=1e-8)
        assert list(fitted.params_.columns) == there.param_names

    @pytest.mark.parametrize(("order", "seasonal"), ORDERS[:4])
    def test_statsmodels_regressors(self, order, seasonal):
        x, differenced = np.random.default_rng(1).normal(size=len(Y)), order[1] + seasonal[1]
        columns = np.column_stack([np.ones((len(Y), 0 if differenced else 1)), x])
        model = ARMA(order, seasonal_order=seasonal, target="y", known_ahead="x")
        params = np.r_[[0.3] * columns.shape[1], parameters(model)]
        fitted = model.filter(frame(Y, x=x), params)
        there = oracle(Y, columns, order=order, seasonal_order=seasonal)
        assert fitted.loglik_.iloc[0] == pytest.approx(there.loglike(params), abs=1e-8)

    def test_drift(self):
        """The slope of a trend is that of its seasonal differences over a season."""
        orders = {"order": (1, 0, 0), "seasonal_order": (0, 1, 1, 12)}
        model = ARMA(trend="t", **orders)
        params = np.r_[0.01, parameters(model)]
        there = oracle(Y, np.arange(1.0, len(Y) + 1), **orders).loglike(params)
        assert model.filter(frame(Y), params).loglik_.iloc[0] == pytest.approx(there, abs=1e-8)

    @pytest.mark.few("gaps0", "gaps1", "gaps2", "gaps4-order2")
    @pytest.mark.parametrize(("order", "seasonal"), WRITTEN_OUT)
    @pytest.mark.parametrize("gaps", [[], [40, 41, 60, 75, 143], [1], [0, 1, 3], [1, 5, 60, 143]])
    def test_written_out(self, order, seasonal, gaps):
        """The likelihood is that of the rows from the first d + m D observations in a row on."""
        y = Y.copy()
        y[gaps] = np.nan
        fitted, params = filtered(order, seasonal, y, missing="keep" if gaps else "error")
        lost = order[1] + seasonal[1] * seasonal[3]
        runs = [i for i in range(len(y)) if np.isfinite(y[i : i + lost]).all()]
        begin = runs[0] if lost else np.flatnonzero(np.isfinite(y))[0]
        expected = dense_loglik(y[begin:], fitted, params)
        assert fitted.loglik_.iloc[0] == pytest.approx(expected, abs=1e-7)
        if not gaps:
            return
        left_out = np.isfinite(y[:begin]).sum()
        told = any(f"before them: {left_out}" in text for text in fitted.messages_.iloc[0])
        assert told == (left_out > 0)
        errors = fitted.residuals().to_numpy().ravel()
        used = np.isfinite(y) & (np.arange(len(y)) >= begin + lost)
        np.testing.assert_array_equal(np.isfinite(errors), used)
        later, _ = filtered(order, seasonal, y[begin:], missing="keep")
        np.testing.assert_allclose(fitted.predict(5), later.predict(5), rtol=0, atol=1e-10)

    @pytest.mark.few("order0", "order1-seasonal1-exact-True", "order2-seasonal2-conditional-False")
    @pytest.mark.parametrize(
        ("likelihood", "gaps"), [("exact", False), ("exact", True), ("conditional", False)]
    )
    @pytest.mark.parametrize(
        ("order", "seasonal"), [ORDERS[0], ((1, 0, 1), (1, 0, 1, 4)), ((2, 1, 0), (1, 1, 1, 4))]
    )
    def test_derivatives(self, order, seasonal, likelihood, gaps):
        y = Y.copy()
        y[[30, 50]] = np.nan if gaps else y[[30, 50]]
        missing = "keep" if gaps else "error"
        model = ARMA(order, None, likelihood, seasonal_order=seasonal, missing=missing)
        const = [5.0] if order[1] + seasonal[1] == 0 else []
        params = np.r_[const, parameters(model)]

        def estimates(params):
            return model.filter(frame(y), params).estimates_

        middle, h = estimates(params), 1e-5
        for i in range(len(params)):
            step = h * (params[i] if i == len(params) - 1 else 1.0) * np.eye(len(params))[i]
            up, down = estimates(params + step), estimates(params - step)
            slope = (up.loglik - down.loglik)[0] / (2 * step[i])
            bend = (up.gradient - down.gradient)[0] / (2 * step[i])
            assert middle.gradient[0, i] == pytest.approx(slope, rel=1e-5, abs=1e-4)
            scale = np.sqrt(np.abs(np.diag(middle.hessian[0]) * middle.hessian[0, i, i]))
            np.testing.assert_allclose(middle.hessian[0, i] / scale, bend / scale, atol=1e-5)

    def test_a_singular_start_leaves_other_lanes(self):
        A, b = np.random.default_rng(0).normal(size=(4, 3, 3)), np.ones((4, 3, 2))
        A[2, 1] = 0.0
        x = solution(A, b)
        assert np.isnan(x).all((1, 2)).tolist() == [False, False, True, False]
        np.testing.assert_allclose((A @ x)[[0, 1, 3]], 1.0, rtol=1e-9)

    def test_lanes_of_any_order(self):
        """Orders of a batch are those of models by themselves."""
        w = np.diff(Y)[12:] - np.diff(Y)[:-12]
        scale, orders = w.std(), np.array([(0, 1, 0, 1), (2, 0, 1, 0), (1, 1, 0, 1)])
        series = np.zeros(3, dtype=int)
        form = Form(2, 1, P=1, Q=1, m=12)
        free = np.array([[0, 0, 1, 0, 1], [1, 1, 0, 1, 0], [1, 0, 1, 0, 1]], dtype=bool)
        none = np.zeros((len(w), 0, 1))
        lanes = Lanes(form, w[:, None] / scale, none, np.array([len(w)]), series, free)
        # At zero the gradients by both sides are the same.
        start = np.where(free, 0.1, 0.0)
        best = climb_inside(lanes.exact, form, free, start)
        assert (best.params[~lanes.free] == 0).all()
        for value, (p, q, P, Q) in zip(best.value, orders, strict=True):
            alone = ARMA((p, 1, q), seasonal_order=(P, 1, Q, 12)).fit(frame(Y))
            expected = alone.loglik_.iloc[0] + len(w) * np.log(scale)
            assert value == pytest.approx(expected, abs=1e-8)


class TestFit:
    """Optima."""

    def test_airline(self, airline):
        model = airline
        assert model.params_.iloc[0, :2].tolist() == pytest.approx([-0.4018, -0.5569], abs=1e-4)
        assert model.loglik_.iloc[0] == pytest.approx(244.6965, abs=1e-4)
        there = oracle(Y, **AIRLINE_ORDER)
        hessian = there.nobs * there.hessian(model.params_.to_numpy()[0])
        errors = np.sqrt(np.diag(-np.linalg.inv(hessian)))
        np.testing.assert_allclose(model.bse_.to_numpy()[0], errors, rtol=1e-4)
        assert "ma.S.L12" in str(model.summary())

    @pytest.mark.few("order0", "order2")
    @pytest.mark.parametrize(("order", "seasonal"), [ORDERS[i] for i in (1, 2, 3, 4, 6)])
    def test_as_high_as_statsmodels(self, order, seasonal):
        model = ARMA(order, seasonal_order=seasonal).fit(frame(Y))
        trend = None if order[1] + seasonal[1] else "c"
        there = SARIMAX(Y, None, order, seasonal, trend, simple_differencing=True)
        assert model.loglik_.iloc[0] > there.fit(disp=False, maxiter=500).llf - 1e-4

    def test_panel(self):
        """Series of a panel, of several lengths, are fitted as each by itself."""
        parts = [Y, Y[:100], Y[20:90] + 1]
        long = pd.concat(
            pd.DataFrame({"unique_id": i, "ds": MONTHS[: len(y)], "y": y})
            for i, y in enumerate(parts)
        )
        model = ARMA((1, 1, 1), seasonal_order=(0, 1, 1, 12))
        together = model.fit(long).params_.to_numpy()
        for row, y in zip(together, parts, strict=True):
            alone = ARMA((1, 1, 1), seasonal_order=(0, 1, 1, 12)).fit(frame(y))
            np.testing.assert_allclose(row, alone.params_.to_numpy()[0], atol=1e-5)

    def test_missing_kept(self):
        y = Y.copy()
        y[[50, 90]] = np.nan
        model = ARMA(**AIRLINE_ORDER, missing="keep").fit(frame(y))
        params = model.params_.to_numpy()[0]
        top = dense_loglik(y, model, params)
        assert model.loglik_.iloc[0] == pytest.approx(top, abs=1e-7)
        for i in range(3):
            for factor in (0.95, 1.05):
                moved = params.copy()
                moved[i] *= factor
                assert dense_loglik(y, model, moved) < top

    def test_no_lags(self):
        """Seasonal differences alone: the mean square of what they leave."""
        model = ARMA((0, 0, 0), seasonal_order=(0, 1, 0, 12)).fit(frame(Y))
        differences = Y[12:] - Y[:-12]
        assert model.params_.to_numpy().item() == pytest.approx((differences**2).mean())
        np.testing.assert_allclose(model.predict(h=12)["y"], Y[-12:])

    @pytest.mark.slow
    def test_starts(self):
        model = ARMA((1, 0, 1), seasonal_order=(1, 0, 1, 12), n_starts=5).fit(frame(np.diff(Y)))
        assert model.starts_.iloc[0] >= 5
        assert 1 <= model.agreement_.iloc[0] <= 5
        plain = ARMA((1, 0, 1), seasonal_order=(1, 0, 1, 12)).fit(frame(np.diff(Y)))
        assert plain.loglik_.iloc[0] == pytest.approx(model.loglik_.iloc[0], abs=1e-4)

    @pytest.mark.few("error")
    @pytest.mark.parametrize("missing", ["error", "keep"])
    def test_bad_series(self, missing, airline):
        """Series that cannot be fitted are named, and the others are as without them."""
        season = np.tile(np.arange(12.0), 12)
        panel = pd.DataFrame(
            {
                "good": Y, "constant": 1.0, "zero": 0.0, "season": season,
                "large": 1e12 * np.exp(Y), "outlier": np.where(np.arange(144) == 70, 1e6, Y),
                "intermittent": np.where(np.arange(144) % 17 == 0, 1.0, 0.0),
            },
            index=MONTHS,
        )  # fmt: skip
        panel["short"] = np.where(np.arange(144) < 12, Y, np.nan)
        if missing == "error":
            panel = panel.drop(columns="short")
        model = ARMA(**AIRLINE_ORDER, missing=missing)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*could not be fitted.*", UserWarning)
            model.fit(panel)
        fitted = model.params_.notna().all(axis=1)
        assert set(fitted.index[~fitted]) == {"short"} & set(panel)
        for name in ("constant", "zero", "season"):
            assert "exactly" in model.messages_[name][0]
            np.testing.assert_allclose(model.predict(12)[name], panel[name].iloc[-12:], atol=1e-9)
        good = model.params_.loc["good"]
        np.testing.assert_allclose(good, airline.params_.iloc[0], rtol=1e-5, atol=1e-6)

    def test_lr_test(self, airline):
        large, other = (
            ARMA(order, seasonal_order=(0, 1, 1, 12)).fit(frame(Y))
            for order in ((1, 1, 1), (1, 1, 0))
        )
        assert large.lr_test(airline)["df"].iloc[0] == 1
        with pytest.raises(ValueError, match="nested"):
            other.lr_test(airline)


class TestForecasts:
    """Forecasts, states and responses at given parameters."""

    @pytest.mark.few("order1", "order2", "order3", "order4")
    @pytest.mark.parametrize(("order", "seasonal"), ORDERS[:-1])
    def test_statsmodels(self, order, seasonal):
        fitted, params = filtered(order, seasonal, support="real")
        forecasts = fitted.predict(h=30, level=95)
        there = oracle(Y, simple_differencing=False, order=order, seasonal_order=seasonal)
        ahead = there.smooth(params).get_forecast(30)
        np.testing.assert_allclose(forecasts["y"], ahead.predicted_mean, atol=1e-7)
        half = (forecasts["y-hi-95"] - forecasts["y-lo-95"]) / 2 / 1.959963984540054
        np.testing.assert_allclose(half, ahead.se_mean, atol=1e-7)

    def test_regressors(self):
        rng = np.random.default_rng(2)
        x = rng.normal(size=len(Y) + 5)
        model = ARMA(**AIRLINE_ORDER, target="y", known_ahead="x")
        params = np.r_[0.02, -0.4, -0.5, 0.0013]
        later = pd.date_range(MONTHS[-1], periods=6, freq="MS")[1:]
        future = pd.DataFrame({"x": x[len(Y) :]}, index=later)
        forecasts = model.filter(frame(Y, x=x[: len(Y)]), params).predict(h=5, X_future=future)
        there = oracle(Y, x[: len(Y)], False, **AIRLINE_ORDER).smooth(params)
        expected = there.forecast(5, exog=x[len(Y) :, None])
        np.testing.assert_allclose(forecasts["y"], expected, atol=1e-7)

    def test_update(self):
        """Rows taken in later are as those of the fit, also after gaps."""
        y = Y.copy()
        y[[70, 120, 121]] = np.nan
        settings = {"seasonal_order": (0, 1, 1, 12), "missing": "keep"}
        params = np.r_[0.4, -0.5, -0.6, 0.01]
        whole = ARMA((1, 0, 1), "n", **settings).filter(frame(y), params).predict(h=15, level=80)
        part = ARMA((1, 0, 1), "n", **settings).filter(frame(y).iloc[:100], params)
        np.testing.assert_allclose(part.update(frame(y).iloc[100:]).predict(h=15, level=80), whole)

    def test_in_sample(self):
        model = ARMA(**AIRLINE_ORDER)
        params = np.r_[-0.4, -0.55, 0.0013]
        residuals = model.filter(frame(Y), params).residuals().to_numpy()[13:, 0]
        there = oracle(Y, **AIRLINE_ORDER).smooth(params)
        np.testing.assert_allclose(residuals, there.resid, atol=1e-8)

    def test_responses(self):
        """Standard errors by the delta method, derivatives by differences."""
        model = ARMA((1, 1, 1), seasonal_order=(1, 0, 1, 4)).fit(frame(Y))
        responses = model.impulse_responses(20)
        params, cov = model.params_.to_numpy()[0], model.cov_params().to_numpy()

        def by_filter(params):
            phi = multiplied(params[:1], params[2:3], 4, -1)
            theta = multiplied(params[1:2], params[3:4], 4, 1)
            return lfilter(np.r_[1, theta], np.convolve(np.r_[1, -phi], [1, -1]), np.eye(1, 21)[0])

        np.testing.assert_allclose(responses["response"], by_filter(params), atol=1e-10)
        steps = 1e-6 * np.eye(5)
        slopes = np.stack([(by_filter(params + s) - by_filter(params - s)) / 2e-6 for s in steps])
        errors = np.sqrt(np.einsum("ih,ij,jh->h", slopes, cov, slopes))
        np.testing.assert_allclose(responses["std_err"], errors, rtol=1e-5, atol=1e-8)

    def test_autocovariances(self):
        model = ARMA((1, 1, 0), seasonal_order=(1, 1, 1, 12))
        params = np.r_[0.3, 0.4, -0.5, 2.0]
        gamma = model.filter(frame(Y), params).autocovariances(40).iloc[:, 0]
        phi = multiplied(params[:1], params[1:2], 12, -1)
        theta = multiplied(np.zeros(0), params[2:3], 12, 1)
        np.testing.assert_allclose(gamma, 2 * autocovariances(phi, theta, 41), atol=1e-8)

    @pytest.mark.slow
    def test_simulation(self):
        """Autocovariances of a long path, whose start is stationary."""
        model = ARMA((1, 0), seasonal_order=(0, 0, 1, 4))
        params = {"const": 3.0, "ar.L1": 0.5, "ma.S.L4": 0.4, "sigma2": 1.0}
        paths = np.stack([model.simulate(5, params, random_state=i)["y"] for i in range(1500)])
        gamma = autocovariances(np.array([0.5]), np.array([0, 0, 0, 0.4]), 5)
        assert paths.mean() == pytest.approx(3, abs=0.1)
        np.testing.assert_allclose(np.cov(paths.T), toeplitz(gamma), atol=0.2)

    def test_network(self):
        """The recurrent layer's output is the one-step forecasts."""
        model = ARMA((1, 1, 1), None, "conditional", seasonal_order=(1, 1, 1, 12))
        values = np.append(np.zeros(25), Y - Y[0])  # a network starts from zeros
        index = pd.date_range("1946-12", periods=len(values), freq="MS")
        data = pd.DataFrame({"y": values}, index=index)
        model.filter(data, np.r_[0.2, -0.5, 0.1, -0.6, 0.001])
        layer = model.to_rnn()
        assert layer.hidden_size == 26
        import torch

        with torch.no_grad():
            out, _ = layer(torch.tensor(values)[None, :, None], model.rnn_start())
        fitted = (data["y"] - model.residuals()["y"]).to_numpy()[25:]
        np.testing.assert_allclose(out[0, 24:-1, 0], fitted, atol=1e-9)

    def test_season_on_the_circle(self, airline):
        """The recurrence of the airline model has the twelve roots of a season."""
        (blocks,) = airline.recurrent_blocks()
        modulus = np.abs(np.linalg.eigvals(blocks["AR"][0]))
        np.testing.assert_allclose(modulus, 1, atol=1e-6)
        assert len(tsrnn.recurrence_features(airline))
        roots = airline.roots()
        assert len(roots) == 13
        np.testing.assert_allclose(roots["modulus"].to_numpy()[1:] ** -12, 0.5569, atol=1e-3)


class TestArguments:
    """What is refused, and how."""

    @pytest.mark.parametrize(
        ("arguments", "n", "gaps", "error", "text"),
        [
            ({"seasonal_order": (1, 1, 1)}, 144, [], TypeError, "must be"),
            ({"seasonal_order": (1, 1, -1, 12)}, 144, [], ValueError, "at least 0"),
            ({"seasonal_order": (1, 1, 1, 1)}, 144, [], ValueError, "a season of m"),
            ({"seasonal_order": (2, 1, 1, 200)}, 144, [], ValueError, "lags up to 250"),
            ({"trend": "t"}, 144, [], ValueError, "which differencing removes"),
            ({}, 20, [], ValueError, r"need at least 27 observations; the series has 20"),
            ({"missing": "keep"}, 144, range(0, 144, 12), ValueError,
             "begins at 13 observations in a row, which this"),
            ({"missing": "keep"}, 134, range(0, 110, 12), ValueError,
             "the series has 25 from the first 13 in a row on"),
        ],
    )  # fmt: skip
    def test_refusals(self, arguments, n, gaps, error, text):
        y = Y[:n].copy()
        y[list(gaps)] = np.nan
        with pytest.raises(error, match=text):
            ARMA(**AIRLINE_ORDER | arguments).fit(frame(y))

    def test_nothing_seasonal(self):
        plain = ARMA((1, 1)).fit(frame(np.diff(Y)))
        same = ARMA((1, 1), seasonal_order=(0, 0, 0, 12)).fit(frame(np.diff(Y)))
        np.testing.assert_array_equal(plain.params_, same.params_)


@pytest.mark.parametrize(("lags", "step"), [(1, 1), (3, 1), (4, 1), (12, 1), (5, 4), (4, 7)])
def test_division_by_a_polynomial_of_many_lags(lags, step):
    rng = np.random.default_rng(lags)
    x, theta = rng.normal(size=(30, 2, 3)), 0.1 * rng.normal(size=(lags, 3))
    divided = x.copy()
    _divide(divided, theta, step)
    for lane in range(3):
        polynomial = np.zeros(1 + step * lags)
        polynomial[0], polynomial[step::step] = 1.0, theta[:, lane]
        expected = lfilter([1.0], polynomial, x[:, :, lane], axis=0)
        np.testing.assert_allclose(divided[:, :, lane], expected, rtol=1e-12, atol=1e-12)


def test_derivatives_with_gaps_take_two_filters_whatever_the_lags(monkeypatch):
    filters, slopes, kalman = [], [], _seasonal_fit.kalman
    of_likelihood = SeasonalLikelihood.slopes
    monkeypatch.setattr(_seasonal_fit, "kalman", lambda *given: filters.append(1) or kalman(*given))
    monkeypatch.setattr(
        SeasonalLikelihood, "slopes", lambda *given: slopes.append(1) or of_likelihood(*given)
    )
    y = Y.copy()
    y[[30, 31, 70]] = np.nan
    ARMA((2, 1, 1), seasonal_order=(1, 0, 0, 4), missing="keep").fit(frame(y))
    assert slopes
    assert len(filters) <= 2 * len(slopes)
