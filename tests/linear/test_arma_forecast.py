"""Forecasts of ARMA models at given parameters against statsmodels' state space models."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from statsmodels.tsa.statespace.sarimax import SARIMAX

from tsrnn.linear.arma import ARMA

T, H = 60, 8
STAMPS = pd.date_range("2000-01-01", periods=T + H, freq="MS")
VALUES = {"const": 5.0, "drift": 0.1, "a": 0.7, "b": -0.3, "sigma2": 1.7}
PHI, THETA = [0.5, 0.2, -0.1], [0.4, 0.3, 0.2]
TRENDS = {0: ("n", "c", "t", "ct"), 1: ("n", "t"), 2: ("n",)}
NONE = []
SOME = [15, 16, 30, 31, 32, 50, T - 1]


@pytest.fixture(scope="module")
def values():
    rng = np.random.default_rng(0)
    return 5 + 0.3 * np.cumsum(rng.normal(size=T)) + rng.normal(size=T)


@pytest.fixture(scope="module")
def regressors():
    draw = np.random.default_rng(1).normal(size=(T + H, 2))
    return pd.DataFrame(draw, index=STAMPS, columns=["a", "b"])


def filtered(order, trend, values, X=None, **arguments):
    """The model at parameters that are given, these, and what trend and regressors add."""
    frame = pd.DataFrame({"y": values}, index=STAMPS[: len(values)])
    p, _, q = order
    names = [name for name in ("const", "drift") if name[0].replace("d", "t") in trend]
    if X is not None:
        frame = frame.join(X)
        arguments["known_ahead"] = list(X.columns[::-1])
        names += list(X)
    made = {name: VALUES[name] for name in names}
    made |= {f"ar.L{i + 1}": PHI[i] for i in range(p)}
    made |= {f"ma.L{i + 1}": THETA[i] for i in range(q)}
    made["sigma2"] = VALUES["sigma2"]
    model = ARMA(order, trend, target="y", freq="MS", **arguments, support="real").filter(
        frame, made
    )
    columns = {"const": np.ones(T + H), "drift": np.arange(1.0, T + H + 1)}
    columns |= {} if X is None else {name: X[name].to_numpy() for name in X}
    mean = sum((made[name] * columns[name] for name in names), np.zeros(T + H))
    return model, [*PHI[:p], *THETA[:q], VALUES["sigma2"]], mean


def ends(forecast):
    """Point forecasts, and standard errors from an interval of 90 percent."""
    values = forecast.to_numpy()
    return values[:, 0], (values[:, 2] - values[:, 1]) / (2 * norm.ppf(0.95))


@pytest.mark.few("whole-order1", "gaps-order2", "late-order0")
@pytest.mark.parametrize("order", [(1, 0, 0), (2, 0, 1), (3, 0, 3), (1, 1, 1), (0, 2, 2)])
@pytest.mark.parametrize("gaps", [NONE, SOME, [0, 1, *SOME]], ids=["whole", "gaps", "late"])
@pytest.mark.parametrize("exog", [False, True], ids=["", "exog"])
def test_are_those_of_statsmodels(values, regressors, order, gaps, exog):
    y = values.copy()
    y[gaps] = np.nan
    X = regressors if exog else None
    for trend in TRENDS[order[1]]:
        model, params, mean = filtered(order, trend, y, X, missing="keep" if gaps else "error")
        oracle = SARIMAX(y - mean[:T], order=order, use_exact_diffuse=True).filter(params)
        expected = oracle.get_forecast(H)
        future = None if X is None else X[T:].rename_axis(None)
        point, error = ends(model.predict(h=H, level=90, X_future=future))
        np.testing.assert_allclose(point, expected.predicted_mean + mean[T:], rtol=0, atol=2e-8)
        np.testing.assert_allclose(error, expected.se_mean, rtol=0, atol=2e-8)
        residuals = model.residuals().to_numpy().ravel()
        scaled = model.residuals(standardized=True).to_numpy().ravel()
        used = np.isfinite(residuals)
        start = (2 if 0 in gaps else 0) + order[1]
        assert np.array_equal(used, np.isfinite(y) & (np.arange(T) >= start))
        errors = oracle.forecasts_error[0]
        np.testing.assert_allclose(residuals[used], errors[used], rtol=0, atol=1e-7)
        roots = np.sqrt(oracle.forecasts_error_cov[0, 0])
        np.testing.assert_allclose(scaled[used], (errors / roots)[used], rtol=0, atol=1e-7)


@pytest.mark.parametrize("order", [(1, 0, 1), (3, 0, 2), (0, 0, 3), (2, 1, 2)])
def test_from_a_state_of_zero(values, order):
    p, d, q = order
    model, params, _ = filtered(order, "n", values, likelihood="conditional")
    w = np.diff(values, d)
    oracle = SARIMAX(w, order=(p, 0, q))
    oracle.update(np.array(params))
    R, Q = oracle.ssm["selection"], oracle.ssm["state_cov"]
    oracle.ssm.initialize_known(np.zeros(oracle.k_states), R @ Q @ R.T)
    # The state before the first row is zero: the network started at zero, here as a loop.
    u, e = np.zeros(len(w) + 3), np.zeros(len(w) + 3)
    for t in range(len(w)):
        u[t + 3] = w[t]
        past = sum(PHI[i] * u[t + 2 - i] for i in range(p))
        e[t + 3] = w[t] - past - sum(THETA[j] * e[t + 2 - j] for j in range(q))
    residuals = model.residuals().to_numpy().ravel()
    np.testing.assert_allclose(residuals[d:], e[3:], rtol=0, atol=1e-11)
    errors = oracle.filter(params).forecasts_error[0]
    np.testing.assert_allclose(residuals[d:], errors, rtol=0, atol=1e-10)
    scaled = model.residuals(standardized=True).to_numpy().ravel()
    np.testing.assert_allclose(scaled[d:], e[3:] / np.sqrt(1.7), rtol=0, atol=1e-11)
    # The innovation of the last row is known, so that variances are those of psi weights.
    psi = model.impulse_responses(H)["response"].to_numpy()[:H]
    _, error = ends(model.predict(h=H, level=90))
    np.testing.assert_allclose(error, np.sqrt(1.7 * np.cumsum(psi**2)), rtol=1e-10)


@pytest.mark.parametrize("order", [(2, 0, 1), (1, 1, 1), (0, 2, 2)])
@pytest.mark.parametrize("n", [1, 7])
def test_an_update_is_a_longer_history(values, regressors, order, n):
    trend = "ct" if order[1] == 0 else TRENDS[order[1]][-1]
    y = values.copy()
    y[SOME] = np.nan
    whole = filtered(order, trend, y, regressors, missing="keep")[0]
    model = filtered(order, trend, y[: T - n], regressors, missing="keep")[0]
    rows = pd.DataFrame({"y": y[T - n :]}, index=STAMPS[T - n : T]).join(regressors)
    model.update(rows)
    after = [m.predict(h=H, level=90, X_future=regressors[T:]) for m in (model, whole)]
    np.testing.assert_allclose(after[0], after[1], rtol=1e-9)


def test_series_of_unequal_lengths_are_those_alone(values):
    lengths = {"long": T, "short": 20, "middle": 41}
    frame = pd.concat([
        pd.DataFrame({"unique_id": name, "ds": STAMPS[:n], "y": values[:n]})
        for name, n in lengths.items()
    ])  # fmt: skip
    params = [0.1, 0.5, 0.4, 1.7]
    both = ARMA((1, 1, 1), "t").filter(frame, params)
    for name, n in lengths.items():
        alone = ARMA((1, 1, 1), "t").filter(pd.Series(values[:n], STAMPS[:n]), params)
        own = both.predict(h=H, level=80).set_index("unique_id").loc[name].iloc[:, 1:]
        np.testing.assert_allclose(own, alone.predict(h=H, level=80), rtol=1e-12)


def test_rows_are_counted_on_the_calendar(values):
    y = pd.Series(values, STAMPS[:T], name="y")
    model = ARMA((1, 0), "ct", support="real").filter(y, [1.0, 0.1, 0.5, 1.7])
    # An AR(1) forgets what was before its last row.
    np.testing.assert_allclose(model.predict(y[20:], h=H), model.predict(h=H), rtol=1e-12)
    fitted = model.fittedvalues(df=y[20:]).to_numpy()[1:]
    np.testing.assert_allclose(fitted, model.fittedvalues().to_numpy()[21:], rtol=1e-12)
