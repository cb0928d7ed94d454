"""The likelihood of ARMA models beside statsmodels, dense matrices and plain loops."""

import numpy as np
import pytest
import scipy.special
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import solve_discrete_lyapunov
from statsmodels.tsa.arima.model import ARIMA
from statsmodels.tsa.statespace.sarimax import SARIMAX

from tsrnn.kernels import Lanes, recurrence
from tsrnn.linear.arma._cells import filter_cell, stationary_variance
from tsrnn.linear.arma._filter import filter_start, innovations
from tsrnn.linear.arma._likelihood import Likelihood, parts_by_sums, with_differences
from tsrnn.linear.arma._polynomials import from_partial
from tsrnn.linear.arma._specification import Form, Specification

ORDERS = [(0, 0), (1, 0), (0, 1), (1, 1), (2, 1), (1, 3), (3, 2), (3, 3)]


def admissible_params(p, q, n, rng):
    """Coefficients (n, p + q) inside the stationary and invertible region."""
    phi = from_partial(rng.uniform(-0.8, 0.8, (p, n)))
    theta = -from_partial(rng.uniform(-0.8, 0.8, (q, n)))
    return np.concatenate([phi, theta]).T


def loop_loglik(y, phi, theta, sigma2, certain=False):
    """Gaussian log-likelihood of an ARMA by the filter, one series, plain torch."""
    r = max(len(phi), len(theta), 1)
    zero = torch.zeros(r, dtype=torch.float64)
    f, t = zero.clone(), zero.clone()
    f[: len(phi)], t[: len(theta)] = phi, theta
    T = torch.diag(torch.ones(r - 1, dtype=torch.float64), 1)
    T[:, 0] = f
    K, a = f + t, zero
    P = torch.zeros(r, r, dtype=torch.float64)
    if not certain:
        eye = torch.eye(r * r, dtype=torch.float64)
        right = torch.outer(K, K).reshape(-1)
        P = torch.linalg.solve(eye - torch.kron(T, T), right).reshape(r, r)
    terms = []
    for value in y:
        e, F = value - a[0], P[0, 0] + 1
        G = T @ P[:, 0] + K
        terms.append(-0.5 * (torch.log(2 * torch.pi * sigma2 * F) + e**2 / (F * sigma2)))
        a = T @ a + G / F * e
        P = T @ P @ T.T + torch.outer(K, K) - torch.outer(G, G) / F
    return torch.stack(terms)


def dense_loglik(spec, params, y, X):
    """Log-likelihood of what is seen of y, given its first d values, by one large matrix."""
    n, d, past = len(y), spec.d, 150  # a past so long that the start is forgotten
    phi, theta = params[spec.n_mean :][: spec.p], params[spec.n_mean + spec.p : -1]
    weights = np.eye(n + past)
    for t in range(2, n + past):
        weights[t, t - 1 - np.arange(len(theta))] += theta
        weights[t] += phi @ weights[t - 1 - np.arange(len(phi))]
    S = weights[past:] @ weights[past:].T
    S[:d], S[:, :d] = 0.0, 0.0  # differences begin after the first d values
    sums = np.linalg.matrix_power(np.tril(np.ones((n, n))), d)
    S = sums @ S @ sums.T
    u, start = y - X @ params[: spec.n_mean], np.zeros(n)
    for i in range(d):  # the polynomial through the first d values, in Newton's form
        start += np.diff(u[:d], i)[0] * scipy.special.binom(np.arange(n), i)
    seen = np.isfinite(u) & (np.arange(n) >= d)
    S, e = params[-1] * S[np.ix_(seen, seen)], (u - start)[seen]
    logdet = np.linalg.slogdet(S)[1]
    return -0.5 * (len(e) * np.log(2 * np.pi) + logdet + e @ np.linalg.solve(S, e))


class TestStationaryVariance:
    @pytest.mark.parametrize(("p", "q"), [*ORDERS, (6, 2), (2, 6)])
    def test_solves_the_lyapunov_equation(self, p, q):
        rng = np.random.default_rng(p + 10 * q)
        params = admissible_params(p, q, 5, rng)
        P = stationary_variance(tuple(params.T[:p]), tuple(params.T[p:]))
        r = max(p, q, 1)
        for i in range(5):
            T, K = np.eye(r, k=1), np.zeros(r)
            T[:p, 0] = K[:p] = params[i, :p]
            K[:q] += params[i, p:]
            expected = solve_discrete_lyapunov(T, np.outer(K, K))
            actual = [[np.broadcast_to(x, 5)[i] for x in row] for row in P]
            np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-11)


class TestZeroStart:
    @pytest.mark.parametrize(("p", "q"), ORDERS[1:])
    def test_states_of_the_network_are_predictions_of_statsmodels(self, p, q, fit_arma):
        rng = np.random.default_rng(p + 10 * q)
        params, y = admissible_params(p, q, 1, rng)[0], rng.normal(size=80)
        model = SARIMAX(y, order=(p, 0, q))
        full = np.append(params, 1.3)
        model.update(full)
        r = max(p, q + 1)
        R = model.ssm["selection"]
        model.ssm.initialize_known(np.zeros(r), 1.3 * R @ R.T)
        expected = model.ssm.filter()
        cell = filter_cell(Form(p, q), certain=True)
        states, _ = recurrence(
            cell, torch.from_numpy(y)[None, :, None, None], torch.from_numpy(full)[:, None]
        )
        predictions = np.append(0.0, states[0, :-1, 0, 0].numpy())
        np.testing.assert_allclose(predictions, expected.forecasts[0], rtol=0, atol=1e-10)
        e = states[0, :, cell.field_names[0].index("e"), 0].numpy()
        np.testing.assert_allclose(e, expected.forecasts_error[0], rtol=0, atol=1e-10)
        fitted = fit_arma((p, q), "n", y[None], given=full[None], exact=False)
        np.testing.assert_allclose(fitted.loglik[0], model.ssm.loglike(), rtol=0, atol=1e-8)

    def test_is_the_recurrence_of_the_paper(self):
        y = np.random.default_rng(0).normal(size=50)
        phi, theta = 0.7, 0.4
        W_h, W_x = -theta, phi + theta
        h = [0.0]
        for value in y[:-1]:
            h.append(W_h * h[-1] + W_x * value)
        spec = Specification(1, 0, 1, "n", exact=False)
        params = np.array([[phi, theta, 1.0]])
        e, v = innovations(spec, params, filter_start(spec, params, y[None], None, np.zeros(1)), 50)
        np.testing.assert_allclose(e[0], y - h, rtol=0, atol=1e-13)
        np.testing.assert_array_equal(v, 1.0)


class TestExact:
    @pytest.mark.parametrize("missing", [False, True])
    @pytest.mark.parametrize(
        ("order", "trend", "n_exog"),
        [
            ((1, 0, 1), "c", 0),
            ((1, 0, 1), "ct", 2),
            ((2, 0, 1), "t", 1),
            ((3, 0, 3), "n", 0),
            ((0, 0, 2), "c", 0),
            ((0, 0, 0), "ct", 1),
        ],
    )
    def test_equals_statsmodels(self, order, trend, n_exog, missing, fit_arma):
        rng = np.random.default_rng(1)
        p, _, q = order
        y, X = rng.normal(size=(3, 70)) + 4, rng.normal(size=(3, 70, n_exog)) + 2
        if missing:
            y[0, 20:24], y[1, :3], y[2, [5, 40, 41, 69]] = np.nan, np.nan, np.nan
        n_mean = n_exog + {"n": 0, "c": 1, "t": 1, "ct": 2}[trend]
        params = np.column_stack(
            [rng.normal(size=(3, n_mean)), admissible_params(p, q, 3, rng), [0.8, 1.0, 2.0]]
        )
        ours = fit_arma(order, trend, y, X, given=params)
        for i in range(3):
            model = ARIMA(y[i], exog=X[i] if n_exog else None, order=order, trend=trend)
            model.ssm.tolerance = 0  # else it takes the variance as settled before it is
            np.testing.assert_allclose(ours.loglik[i], model.loglike(params[i]), rtol=0, atol=1e-8)

    @pytest.mark.parametrize(("d", "trend"), [(0, "c"), (1, "n"), (1, "t"), (2, "n")])
    @pytest.mark.parametrize("gaps", [False, True])
    def test_equals_a_dense_normal_density(self, d, trend, gaps, fit_arma):
        rng = np.random.default_rng(3)
        y = rng.normal(size=40)
        for _ in range(d):
            y = y.cumsum()
        if gaps:
            y[[7, 8, 20, 39]] = np.nan
        x = rng.normal(size=(40, 1))
        spec = Specification(2, d, 1, trend, exact=True, regressors=("x",))
        columns = {"n": [], "c": [np.ones(40)], "t": [np.arange(1.0, 41)]}[trend]
        X = np.column_stack([*columns, x])
        params = np.array([*([0.4] if columns else []), 0.7, 0.5, -0.3, 0.4, 1.5])
        ours = fit_arma((2, d, 1), trend, y[None], x, given=params[None])
        expected = dense_loglik(spec, params, y, X)
        np.testing.assert_allclose(ours.loglik[0], expected, rtol=0, atol=10.0 ** (d - 8))

    @settings(max_examples=15, deadline=None)
    @given(
        order=st.sampled_from([(1, 1), (0, 2), (2, 1)]),
        n_rows=st.integers(12, 40),
        seed=st.integers(0, 1000),
        hidden=st.lists(st.integers(0, 39), max_size=6),
    )
    def test_equals_statsmodels_for_any_pattern_of_missing_values(
        self, order, n_rows, seed, hidden, fit_arma
    ):
        (p, q), rng = order, np.random.default_rng(seed)
        y = rng.normal(size=n_rows)
        y[[i for i in hidden if i < n_rows]] = np.nan
        params = np.column_stack([[[0.2]], admissible_params(p, q, 1, rng), [[1.1]]])
        if np.isfinite(y).sum() < p + q + 2 + max(p, q) + 1:
            with pytest.raises(ValueError, match="0 cannot be filtered: .* need at least"):
                fit_arma((p, q), "c", y[None], given=params)
            return
        ours = fit_arma((p, q), "c", y[None], given=params)
        expected = ARIMA(y, order=(p, 0, q)).loglike(params[0])
        np.testing.assert_allclose(ours.loglik[0], expected, rtol=0, atol=1e-8)

    @pytest.mark.parametrize(("d", "trend"), [(1, "n"), (1, "t"), (2, "n")])
    def test_of_differences_equals_simple_differencing(self, d, trend, fit_arma):
        rng = np.random.default_rng(2)
        y = rng.normal(size=(1, 80)).cumsum(1)
        X = rng.normal(size=(80, 1)).cumsum(0)
        params = np.array([[*([0.3] if trend == "t" else []), 0.5, 0.4, 0.3, 1.2]])
        exog = np.column_stack([np.arange(1.0, 81), X]) if trend == "t" else X
        model = SARIMAX(y[0], exog=exog, order=(1, d, 1), simple_differencing=True)
        ours = fit_arma((1, d, 1), trend, y, X, given=params)
        np.testing.assert_allclose(ours.loglik[0], model.loglike(params[0]), rtol=0, atol=1e-8)
        assert ours.n_obs[0] == 80 - d


class TestDerivatives:
    @pytest.mark.few("1-1-True", "2-0-False")
    @pytest.mark.parametrize("exact", [True, False])
    @pytest.mark.parametrize(("p", "q"), [(1, 1), (2, 1), (0, 2), (2, 0)])
    def test_equal_autograd_of_a_plain_loop(self, p, q, exact, fit_arma):
        rng = np.random.default_rng(4)
        y = rng.normal(size=(2, 25)) + 1
        params = np.column_stack([[0.5, 1.5], admissible_params(p, q, 2, rng), [0.9, 1.4]])
        ours = fit_arma((p, q), "c", y, given=params, exact=exact)
        for i in range(2):

            def terms(x, i=i):
                return loop_loglik(
                    torch.from_numpy(y[i]) - x[0], x[1 : 1 + p], x[1 + p : -1], x[-1], not exact
                )

            x = torch.from_numpy(params[i])
            scores = torch.autograd.functional.jacobian(terms, x).numpy()
            hessian = torch.autograd.functional.hessian(lambda x: terms(x).sum(), x).numpy()
            close = {"rtol": 1e-9, "atol": 1e-9}
            np.testing.assert_allclose(ours.loglik[i], terms(x).sum().item(), **close)
            np.testing.assert_allclose(ours.gradient[i], scores.sum(0), **close)
            np.testing.assert_allclose(ours.opg[i], scores.T @ scores, **close)
            np.testing.assert_allclose(ours.hessian[i], hessian, **close)

    def test_information_is_minus_the_mean_hessian(self, fit_arma):
        rng = np.random.default_rng(5)
        e = rng.normal(size=(4000, 41))
        y = 1 + e[:, 1:] + 0.6 * e[:, :-1]
        ours = fit_arma((0, 1), "c", y, given=np.tile([1.0, 0.6, 1.0], (4000, 1)))
        spread = ours.hessian.std(0) / np.sqrt(4000)
        np.testing.assert_array_less(
            np.abs((ours.information + ours.hessian).mean(0)), 4 * spread + 1e-9
        )

    @pytest.mark.parametrize(("p", "q"), ORDERS)
    def test_by_sums_of_squares_equal_those_of_the_filter(self, p, q):
        rng = np.random.default_rng(6)
        form = Form(p, q, 1, True, masked=True)
        inputs = rng.normal(size=(5, 30, 3))
        inputs[:, :, -1] = 1.0
        inputs[3:, -8:, -1] = 0.0  # shorter series
        params = np.column_stack([rng.normal(size=(5, 2)), admissible_params(p, q, 5, rng)])
        parts = [
            Likelihood(form, Lanes(inputs), inputs[:, :, -1].sum(1), exact=True, gaps=gaps).parts(
                params, np.arange(5), 2
            )
            for gaps in (False, True)
        ]
        for ours, expected in list(zip(*parts, strict=True))[:3]:
            np.testing.assert_allclose(ours, expected, rtol=1e-8, atol=1e-8)

    @pytest.mark.parametrize("exact", [True, False])
    def test_by_differences_equal_those_that_are_compiled(self, exact):
        rng = np.random.default_rng(8)
        form, inputs = Form(2, 1, 0, True), Lanes(rng.normal(size=(4, 50, 1)))
        params = np.column_stack([rng.normal(size=4), admissible_params(2, 1, 4, rng)])
        expected = parts_by_sums(form, exact, inputs, params, 2)
        ours = with_differences(parts_by_sums, form, exact, inputs, params)
        for actual, wanted in zip(ours[:3], expected[:3], strict=True):
            np.testing.assert_allclose(actual, wanted, rtol=1e-8, atol=1e-7)

    def test_on_and_across_the_edge_of_the_invertible_region(self):
        rng = np.random.default_rng(7)
        form, inputs = Form(0, 1), rng.normal(size=(3, 60, 1))
        params = np.array([[0.99], [1.0], [1 / 0.99]])
        parts = [
            Likelihood(form, Lanes(inputs[[0, 0, 0]]), np.full(3, 60), exact=True, gaps=gaps)
            for gaps in (False, True)
        ]
        values = [one.evaluate(params, np.arange(3), True) for one in parts]
        for ours, expected in zip(*values, strict=True):
            np.testing.assert_allclose(ours, expected, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(values[0].value[0], values[0].value[2], rtol=1e-12)
        np.testing.assert_allclose(values[0].gradient[1], 0.0, atol=1e-9)
