"""States and forecasts of VARMA models against statsmodels' Kalman filter and plain loops."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtri
from statsmodels.tsa.statespace.varmax import VARMAX

from tsrnn.linear.varma import VARMA
from tsrnn.linear.varma._filter import predictions, state_after
from tsrnn.linear.varma._prepare import Sample
from tsrnn.linear.varma._specification import Coefficients, Shape

pytestmark = pytest.mark.filterwarnings("ignore:Estimation of VARMA")

INDEX = pd.date_range("2000-01-01", periods=90, freq="MS")
CASES = [
    ((1, 1), "c", 0, 2),
    ((2, 1), "n", 0, 2),
    ((1, 2), "ct", 0, 2),
    ((2, 0), "ct", 1, 3),
    ((0, 2), "c", 2, 2),
    ((1, 1), "n", 1, 3),
]


def tamed(matrices):
    """Return coefficients by lag, made smaller where their recursion has a root above 0.9."""
    lags, n = matrices.shape[:2]
    if not lags:
        return matrices
    companion = np.eye(lags * n, k=-n)
    companion[:n] = np.hstack(list(matrices))
    factor = min(1.0, 0.9 / np.abs(np.linalg.eigvals(companion)).max())
    return matrices * factor ** np.arange(1, lags + 1)[:, None, None]


def params_of(order, trend, n_exog, n, seed=0):
    """Return shape and parameters of a stationary, invertible model."""
    rng = np.random.default_rng(seed)
    shape = Shape(n, *order, trend, n_exog, exact=True)
    ar, ma = (0.4 * rng.standard_normal((lags, n, n)) / max(lags, 1) for lags in order)
    ar += 0.2 * np.eye(n)
    ar, ma = tamed(ar), tamed(ma)
    design = rng.standard_normal((n, shape.n_design))
    if trend == "ct":
        design[:, 1] /= 20
    chol = np.tril(0.3 * rng.standard_normal((n, n))) + np.eye(n)
    return shape, shape.pack(Coefficients(design[None], ar[None], ma[None], chol[None]))[0]


def data(n, n_exog, rows=90, seed=1, missing=False):
    rng = np.random.default_rng(seed)
    y = rng.standard_normal((rows, n)).cumsum(0) / 4 + rng.standard_normal((rows, n)) + 3
    if missing:
        y[10] = np.nan
        y[50:53, 0] = np.nan
        y[-1, 1] = np.nan
    x = rng.standard_normal((rows, n_exog))
    names = list("abc")[:n]
    frame = pd.DataFrame(np.hstack([y, x]), index=INDEX[:rows], columns=names + ["u", "v"][:n_exog])
    return frame, names, list(frame.columns[n:])


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize(("order", "trend", "n_exog", "n"), CASES)
def test_filter_and_predict_are_those_of_varmax(order, trend, n_exog, n, missing):
    frame, names, exog = data(n, n_exog, missing=missing)
    _, params = params_of(order, trend, n_exog, n)
    past, future = frame.iloc[:80], frame[exog].iloc[80:85]
    varmax = VARMAX(past[names], exog=past[exog] if exog else None, order=order, trend=trend)
    varmax.ssm.tolerance = 0  # statsmodels takes its filter for converged too early otherwise
    oracle = varmax.filter(params)
    ahead = oracle.get_forecast(5, exog=future if exog else None)
    model = VARMA(
        order, trend, missing="keep", target=names, known_ahead=exog or None, support="real"
    )
    model.filter(past, params)
    assert list(model.params_.columns) == list(oracle.model.param_names)
    found = model.predict(5, level=90, X_future=future if exog else None)
    np.testing.assert_allclose(found[names], ahead.predicted_mean, rtol=0, atol=1e-8)
    for name, errors in zip(names, ahead.se_mean.to_numpy().T, strict=True):
        half = (found[f"{name}-hi-90"] - found[f"{name}-lo-90"]) / 2
        np.testing.assert_allclose(half, ndtri(0.95) * errors, rtol=0, atol=1e-8)
    np.testing.assert_allclose(model.loglik_.iloc[0], oracle.llf, rtol=1e-9)
    np.testing.assert_allclose(model.fittedvalues(), oracle.fittedvalues, rtol=0, atol=1e-8)
    scaled = oracle.filter_results.standardized_forecasts_error.T
    np.testing.assert_allclose(
        model.residuals(standardized=True), np.where(past[names].isna(), np.nan, scaled), atol=1e-8
    )


@pytest.mark.parametrize("likelihood", ["exact", "conditional"])
@pytest.mark.parametrize(("order", "trend", "n_exog", "n"), CASES)
def test_update_is_running_over_all_rows(order, trend, n_exog, n, likelihood):
    frame, names, exog = data(n, n_exog)
    _, params = params_of(order, trend, n_exog, n)
    future = {"X_future": frame[exog].iloc[85:]} if exog else {}
    model = VARMA(order, trend, likelihood, target=names, known_ahead=exog or None, support="real")
    model.filter(frame.iloc[:60], params)
    whole = model.predict(frame.iloc[:85], h=4, level=80, **future)
    model.update(frame.iloc[60:61]).update(frame.iloc[61:85])
    pd.testing.assert_frame_equal(model.predict(4, level=80, **future), whole, rtol=1e-9)


@pytest.mark.parametrize("trend", ["n", "c", "ct"])
@pytest.mark.parametrize("rows", [1, 2])
def test_update_of_a_state_after_few_rows(trend, rows):
    frame, params = data(2, 0)[0], params_of((1, 1), trend, 0, 2)[1]
    whole = VARMA((1, 1), trend, support="real").filter(frame[:9], params)
    few = VARMA((1, 1), trend, support="real").filter(frame[:rows], params).update(frame[rows:9])
    np.testing.assert_allclose(few.predict(h=3), whole.predict(h=3), rtol=1e-9)


def test_update_takes_missing_values():
    frame, _, _ = data(2, 0, missing=True)
    _, params = params_of((1, 1), "c", 0, 2)
    model = VARMA((1, 1), missing="keep", support="real").filter(frame.iloc[:45], params)
    whole = model.predict(frame, h=4, level=80)
    model.update(frame.iloc[45:51]).update(frame.iloc[51:52]).update(frame.iloc[52:])
    pd.testing.assert_frame_equal(model.predict(4, level=80), whole, rtol=1e-9)


@pytest.mark.parametrize("trend", ["n", "c", "ct"])
@pytest.mark.parametrize("order", [(1, 1), (2, 1), (1, 3), (0, 1), (2, 0)])
@pytest.mark.parametrize("n", [2, 3])
def test_conditional_predictions_are_those_of_the_obvious_loop(order, trend, n):
    frame, _, _ = data(n, 0)
    shape, params = params_of(order, trend, 0, n)
    design, ar, ma, _ = (part[0] for part in shape.unpack(params[None]))
    y, (p, q) = frame.to_numpy(), order
    t = np.arange(1, len(y) + 1)
    before = np.zeros(n)
    if trend == "c":
        before = y.mean(0)
    if trend == "ct":
        before = np.polynomial.polynomial.polyfit(t, y, 1)[0]
    past, errors, expected = [before] * p, [np.zeros(n)] * q, []
    for row, time in zip(y, t, strict=True):
        mean = design @ np.array([1.0, time])[: design.shape[1]]
        mean = mean + sum((ar[i] @ past[i] for i in range(p)), np.zeros(n))
        mean = mean + sum((ma[j] @ errors[j] for j in range(q)), np.zeros(n))
        expected.append(mean)
        past, errors = [row, *past][:p], [row - mean, *errors][:q]
    model = VARMA(order, trend, "conditional", support="real").filter(frame, params)
    np.testing.assert_allclose(model.fittedvalues(), expected, rtol=0, atol=1e-10)
    ahead = design @ np.array([1.0, len(y) + 1])[: design.shape[1]]
    ahead = ahead + sum((ar[i] @ past[i] for i in range(p)), np.zeros(n))
    ahead = ahead + sum((ma[j] @ errors[j] for j in range(q)), np.zeros(n))
    np.testing.assert_allclose(model.predict(1).to_numpy()[0], ahead, rtol=0, atol=1e-10)


@settings(deadline=None, max_examples=40)
@given(
    n=st.integers(2, 3),
    order=st.tuples(st.integers(0, 3), st.integers(0, 2)).filter(any),
    trend=st.sampled_from(["n", "c", "ct"]),
    exact=st.booleans(),
    rows=st.lists(st.integers(1, 30), min_size=1, max_size=4),
    seed=st.integers(0, 100),
)
def test_the_state_in_closed_form_is_that_of_the_kalman_filter(n, order, trend, exact, rows, seed):
    shape, params = params_of(order, trend, 0, n, seed)
    shape = Shape(n, *order, trend, 0, exact)
    rng, steps = np.random.default_rng(seed), max(rows)
    design = np.stack([np.ones(steps), np.arange(1.0, steps + 1)], 1)[:, : shape.n_trend]
    units = len(rows)
    sample = Sample(
        shape,
        rng.standard_normal((units, steps, n)),
        np.tile(design, (units, 1, 1)),
        rng.standard_normal((units, n)),
        np.array(rows),
    )
    coefficients = shape.unpack(np.tile(params, (units, 1)))
    found = state_after(coefficients, sample)
    expected = predictions(coefficients, sample).state
    np.testing.assert_allclose(found.mean, expected.mean, atol=1e-8)
    np.testing.assert_allclose(found.cov, expected.cov, atol=1e-8)


def test_series_of_unequal_lengths_are_as_if_alone():
    _, params = params_of((2, 1), "ct", 0, 2)
    parts = []
    for i, rows in enumerate((90, 40, 2)):
        part, names, _ = data(2, 0, rows=rows, seed=i)
        parts.append(part.assign(unique_id=f"s{i}", ds=part.index))
    options = {"target": names, "freq": "MS"}
    together = VARMA((2, 1), "ct", **options, support="real").filter(pd.concat(parts), params)
    found, fitted = together.predict(3, level=80), together.residuals()
    for i, part in enumerate(parts):
        alone = VARMA((2, 1), "ct", **options, support="real").filter(part, params)
        own = found[found["unique_id"] == f"s{i}"].reset_index(drop=True)
        pd.testing.assert_frame_equal(own, alone.predict(3, level=80), rtol=1e-10)
        own = fitted[fitted["unique_id"] == f"s{i}"].reset_index(drop=True)
        pd.testing.assert_frame_equal(own, alone.residuals(), rtol=1e-10)
    two = found[found["unique_id"].isin(["s0", "s1"])].reset_index(drop=True)
    pd.testing.assert_frame_equal(together.predict(pd.concat(parts[:2]), 3, level=80), two)


def test_forecast_covariance_is_that_of_the_intervals_and_grows_to_the_stationary_one():
    frame, _, _ = data(2, 0)
    shape, params = params_of((1, 1), "c", 0, 2)
    model = VARMA((1, 1)).filter(frame, params)
    table = model.forecast_covariance(200)
    assert list(table.columns) == ["time", "first", "second", "covariance"]
    found = table["covariance"].to_numpy().reshape(200, 3)
    intervals = model.predict(200, level=80)
    for column, name in ((0, "a"), (2, "b")):
        half = intervals[f"{name}-hi-80"] - intervals[name]
        np.testing.assert_allclose(half, ndtri(0.9) * np.sqrt(found[:, column]), rtol=1e-10)
    coefficients = shape.unpack(params[None])
    psi, total = np.eye(2), np.zeros((2, 2))
    sigma = coefficients.chol[0] @ coefficients.chol[0].T
    for k in range(300):
        total += psi @ sigma @ psi.T
        psi = coefficients.ar[0, 0] @ psi + (coefficients.ma[0, 0] if k == 0 else 0)
    np.testing.assert_allclose(found[-1], total[[0, 0, 1], [0, 1, 1]], rtol=1e-8)


def test_exogenous_columns_must_be_known_ahead_to_forecast():
    frame, names, exog = data(2, 2)
    _, params = params_of((1, 0), "c", 2, 2)
    model = VARMA((1, 0), target=names, known_ahead="v").filter(frame, params)
    future = frame[exog].iloc[:3].set_index(pd.date_range("2007-07-01", periods=3, freq="MS"))
    with pytest.raises(ValueError, match=r"not known ahead are \['u'\]"):
        model.predict(3, X_future=future[["v"]])
    swapped = VARMA((1, 0), target=names, known_ahead=["v", "u"]).filter(frame, params)
    straight = VARMA((1, 0), target=names, known_ahead=exog).filter(frame, params)
    pd.testing.assert_frame_equal(
        swapped.predict(3, X_future=future), straight.predict(3, X_future=future)
    )
