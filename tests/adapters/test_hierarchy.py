"""Reconciled forecasts add up, and are those of the closed forms."""

from __future__ import annotations

import importlib

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from tsrnn import ARMA, Croston
from tsrnn.baselines import Naive
from tsrnn.hierarchy import METHODS, reconcile

SPEC = [["country"], ["country", "region"], ["country", "region", "store"]]
GROUPED = [["country"], ["country", "kind"], ["country", "region"], ["country", "region", "kind"]]


@pytest.fixture(autouse=True)
def library():
    """The library; beside an old dask without pyarrow it is there, but cannot be imported."""
    try:
        return importlib.import_module("hierarchicalforecast.core")
    except ImportError as error:
        pytest.skip(f"the extra hierarchy: {error}")


def stores(n=60, seed=0):
    """Six stores of two regions whose errors have a part in common."""
    rng = np.random.default_rng(seed)
    common, parts = rng.normal(size=n), []
    for region in "ab":
        for store in "xyz":
            y = 20 + np.cumsum(0.1 * rng.normal(size=n)) + common + rng.normal(size=n)
            days = pd.date_range("2024-01-01", periods=n)
            keys = {"country": "all", "region": region, "store": store, "kind": store}
            parts.append(pd.DataFrame({**keys, "ds": days, "y": y}))
    return pd.concat(parts, ignore_index=True)


def summing():
    """Summing matrix of `SPEC`, in the order of names."""
    return np.vstack([np.ones(6), np.kron(np.eye(2), np.ones(3)), np.eye(6)])


def matrix(frame, column, h):
    return frame[column].to_numpy().reshape(-1, h)


@pytest.fixture(scope="module")
def base():
    """Series of all levels, forecasts and one-step errors of each."""
    df, parts = stores(), []
    for columns in SPEC:
        level = df.groupby([*columns, "ds"], as_index=False)["y"].sum()
        level["unique_id"] = level[columns].agg("/".join, axis=1)
        parts.append(level[["unique_id", "ds", "y"]])
    data = pd.concat(parts, ignore_index=True)
    model = ARMA(order=(1, 0), parameter_uncertainty=False).fit(data)  # normal intervals
    forecasts = model.predict(h=3, level=[80])
    errors = model.residuals()["residual"].to_numpy().reshape(9, -1)
    return forecasts, errors


@pytest.mark.parametrize("method", METHODS)
def test_forecasts_add_up(method):
    """The sums hold at every level and step, of a tree."""
    forecasts = reconcile(ARMA(order=(1, 0)), stores(), SPEC, h=3, method=method)
    assert list(forecasts.columns) == ["unique_id", "ds", "ARMA"]
    assert forecasts["unique_id"].iloc[[0, 3, 9]].tolist() == ["all", "all/a", "all/a/x"]
    values = matrix(forecasts, "ARMA", 3)
    np.testing.assert_allclose(values, summing() @ values[3:], rtol=1e-10, atol=1e-8)


def test_a_grouped_structure_adds_up():
    """Levels that cross each other are sums, too."""
    forecasts = reconcile(ARMA(order=(1, 0)), stores(), GROUPED, h=2)
    by_name = {name: part["ARMA"].to_numpy() for name, part in forecasts.groupby("unique_id")}
    lowest = {name: y for name, y in by_name.items() if name.count("/") == 2}
    for name, values in by_name.items():
        parts = set(name.split("/"))
        total = sum(y for bottom, y in lowest.items() if parts <= set(bottom.split("/")))
        np.testing.assert_allclose(values, total, rtol=1e-10)


@pytest.mark.parametrize("method", ["bottom_up", "ols", "wls_struct", "wls_var", "mint_cov"])
def test_means_are_those_of_the_closed_form(base, method):
    """S P y with the matrices written out."""
    forecasts, errors = base
    S, y = summing(), matrix(forecasts, "ARMA", 3)
    weights = {
        "ols": np.eye(9),
        "wls_struct": np.diag(S.sum(1)),
        "wls_var": np.diag((errors**2).mean(1)),
        "mint_cov": np.cov(errors),
    }
    if method == "bottom_up":
        expected = S @ y[3:]
    else:
        inverse = np.linalg.inv(weights[method])
        expected = S @ np.linalg.solve(S.T @ inverse @ S, S.T @ inverse @ y)
    got = reconcile(ARMA(order=(1, 0)), stores(), SPEC, h=3, method=method)
    np.testing.assert_allclose(matrix(got, "ARMA", 3), expected, rtol=1e-6)


def shrunk(errors):
    """Covariance with correlations shrunk to zero (Schäfer and Strimmer, 2005)."""
    n = errors.shape[1]
    centred = errors - errors.mean(1, keepdims=True)
    covariance = centred @ centred.T / (n - 1)
    z = centred / np.sqrt(np.diag(covariance))[:, None]
    products = z[:, None] * z[None]
    spread = ((products - products.mean(2, keepdims=True)) ** 2).sum(2) * n / (n - 1) ** 3
    correlation = z @ z.T / (n - 1)
    away = ~np.eye(len(z), dtype=bool)
    share = min(1.0, spread[away].sum() / (correlation[away] ** 2).sum())
    return np.where(away, (1 - share) * covariance, covariance)


def test_shrinkage_is_near_its_closed_form(base):
    """The default method, its covariance by the formula of the paper."""
    forecasts, errors = base
    S, y = summing(), matrix(forecasts, "ARMA", 3)
    inverse = np.linalg.inv(shrunk(errors))
    expected = S @ np.linalg.solve(S.T @ inverse @ S, S.T @ inverse @ y)
    got = matrix(reconcile(ARMA(order=(1, 0)), stores(), SPEC, h=3), "ARMA", 3)
    np.testing.assert_allclose(got, expected, rtol=2e-4)


def test_normal_intervals_have_the_reconciled_variance(base):
    """Widths of 80 and of 95 percent by S P W P' S', W with the forecaster's variances."""
    forecasts, errors = base
    S = summing()
    correlation = np.corrcoef(errors)
    inverse = np.linalg.inv(np.cov(errors))
    P = np.linalg.solve(S.T @ inverse @ S, S.T @ inverse)
    half = (matrix(forecasts, "ARMA-hi-80", 3) - matrix(forecasts, "ARMA-lo-80", 3)) / 2
    deviation = half / norm.ppf(0.9)
    model = ARMA(order=(1, 0), parameter_uncertainty=False)
    got = reconcile(model, stores(), SPEC, h=3, level=[80, 95.0], method="mint_cov")
    names = [f"ARMA-{end}-{level}" for level in (80, 95) for end in ("lo", "hi")]
    assert list(got.columns) == ["unique_id", "ds", "ARMA", *names]
    assert "Reconciled, intervals by normality" in got.attrs["guarantee"]
    for step in range(3):
        W = correlation * np.outer(deviation[:, step], deviation[:, step])
        root = np.sqrt(np.diag(S @ P @ W @ P.T @ S.T))
        for level in (80, 95):
            ends = [matrix(got, f"ARMA-{end}-{level}", 3)[:, step] for end in ("lo", "hi")]
            width = 2 * norm.ppf(0.5 + level / 200) * root
            np.testing.assert_allclose(ends[1] - ends[0], width, rtol=1e-5)


def test_drawn_intervals_surround_the_forecasts():
    """They are of a width like that of the normal ones, and the same for a seed."""
    arguments = {"h": 2, "level": 80, "random_state": 1}
    drawn, again = (
        reconcile(ARMA(order=(1, 0)), stores(), SPEC, intervals="bootstrap", **arguments)
        for _ in range(2)
    )
    normal = reconcile(ARMA(order=(1, 0)), stores(), SPEC, **arguments)
    pd.testing.assert_frame_equal(drawn, again)
    ratio = (drawn["ARMA-hi-80"] - drawn["ARMA-lo-80"]) / (
        normal["ARMA-hi-80"] - normal["ARMA-lo-80"]
    )
    assert ratio.between(0.6, 1.6).all()


def test_intervals_cover():
    """Of many hierarchies the default intervals of 80 percent cover about as often, at the top."""
    covered = []
    for seed in range(60):
        df = stores(61, seed)
        early, last = df[df["ds"] < df["ds"].max()], df[df["ds"] == df["ds"].max()]
        got = reconcile(ARMA(order=(1, 0)), early, SPEC, h=1, level=80)
        values = summing() @ last["y"].to_numpy()
        covered.append((got["ARMA-lo-80"] <= values) & (values <= got["ARMA-hi-80"]))
    share = np.mean(covered, axis=0)
    assert 0.68 < share[0] < 0.92
    assert 0.74 < share[3:].mean() < 0.86


def test_names_and_models_are_the_users():
    """Other column names, models without fitted values, a reconciler of the library's own."""
    from hierarchicalforecast.methods import MinTrace

    df = stores().rename(columns={"ds": "day", "y": "sales", "store": "unique_id"})
    spec = [["country"], ["country", "region", "unique_id"]]
    names = {"id_col": "series", "time_col": "day", "target": "sales"}
    got = reconcile(Naive(**names), df, spec, h=1, method="wls_struct", level=80)
    assert list(got.columns[:3]) == ["series", "day", Naive.column_name]
    assert len(got) == 7
    nonnegative = MinTrace(method="ols", nonnegative=True)
    demand = stores().assign(y=lambda d: (d["y"] - 20).clip(lower=0))
    forecasts = reconcile(Croston(), demand, SPEC, h=2, method=nonnegative)
    values = matrix(forecasts, "Croston", 2)
    np.testing.assert_allclose(values, summing() @ values[3:], rtol=1e-6, atol=1e-6)


def test_a_forecaster_stays_as_it_is():
    model = ARMA(order=(1, 0))
    df = stores()
    before = df.copy()
    reconcile(model, df, SPEC, h=1)
    assert not hasattr(model, "fitted_")
    pd.testing.assert_frame_equal(df, before)


@pytest.mark.parametrize(
    ("change", "arguments", "message"),
    [
        (lambda d: d[1:], {}, r"at each of the 60 times.*\('all', 'a', 'x'\) has 59 rows"),
        (lambda d: d.assign(y=d["y"].where(d.index != 3)), {}, "column 'y' must have no missing"),
        (lambda d: d.drop(columns="region"), {}, r"df must have the columns \['region'\]"),
        (lambda d: d, {"method": "mint"}, "method must be one of"),
        (lambda d: d, {"intervals": "normal"}, "intervals must be one of"),
        (lambda d: d, {"spec": ["country"]}, "spec must be lists of columns"),
        (lambda d: d, {"spec": [["kind"], ["country", "region"]]}, r"it lacks \['kind'\]"),
        (lambda d: d, {"forecaster": Naive()}, "Naive does not have. Take method='wls_struct'"),
        (lambda d: d, {"forecaster": ARMA(target=["y", "z"])}, "is of one target"),
        (lambda d: d.assign(y=np.where(d["store"] == "x", 0, d["y"])),
         {"forecaster": Croston()}, "'all/a/x' has none, as Croston could not be fitted"),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:.*units could not be fitted")
def test_refusals_say_what_was_required(change, arguments, message):
    given = {"forecaster": ARMA(order=(1, 0)), "spec": SPEC, "h": 1} | arguments
    with pytest.raises(ValueError, match=message):
        reconcile(df=change(stores()), **given)


def test_another_frame_is_refused():
    with pytest.raises(TypeError, match="df must be a pandas frame in long form; got dict"):
        reconcile(ARMA(), {"y": [1.0]}, SPEC)
