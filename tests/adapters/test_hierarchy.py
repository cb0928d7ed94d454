"""Reconciled forecasts add up, and are those of the closed forms."""

from __future__ import annotations

import importlib

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from tsrnn import ARMA, ETS, GARCH, Croston
from tsrnn.baselines import Mean, Naive
from tsrnn.contract import IntervalWarning
from tsrnn.hierarchy import INTERVALS, METHODS, reconcile

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


@pytest.mark.parametrize("method", sorted(set(METHODS) - {"top_down"}))
def test_normal_intervals_have_the_reconciled_variance(base, method):
    """Widths of 80 and of 95 percent by S P W P' S', W with the forecaster's variances."""
    forecasts, errors = base
    S = summing()
    weights = {
        "ols": np.eye(9),
        "wls_struct": np.diag(S.sum(1)),
        "wls_var": np.diag((errors**2).mean(1)),
        "mint_cov": np.cov(errors),
        "mint_shrink": shrunk(errors),
    }
    P = np.hstack([np.zeros((6, 3)), np.eye(6)])
    if method != "bottom_up":
        inverse = np.linalg.inv(weights[method])
        P = np.linalg.solve(S.T @ inverse @ S, S.T @ inverse)
    half = (matrix(forecasts, "ARMA-hi-80", 3) - matrix(forecasts, "ARMA-lo-80", 3)) / 2
    deviation = half / norm.ppf(0.9)
    model = ARMA(order=(1, 0), parameter_uncertainty=False)
    got = reconcile(model, stores(), SPEC, h=3, level=[80, 95.0], method=method)
    names = [f"ARMA-{end}-{level}" for level in (80, 95) for end in ("lo", "hi")]
    assert list(got.columns) == ["unique_id", "ds", "ARMA", *names]
    assert "Reconciled, intervals by normality" in got.attrs["guarantee"]
    for step in range(3):
        W = np.corrcoef(errors) * np.outer(deviation[:, step], deviation[:, step])
        root = np.sqrt(np.diag(S @ P @ W @ P.T @ S.T))
        for level in (80, 95):
            ends = [matrix(got, f"ARMA-{end}-{level}", 3)[:, step] for end in ("lo", "hi")]
            width = 2 * norm.ppf(0.5 + level / 200) * root
            np.testing.assert_allclose(ends[1] - ends[0], width, rtol=1e-5)


def noise(n, correlation, walk=False, seed=0):
    """Four stores of two regions with standard normal errors, or walks of them, and their frame."""
    rng = np.random.default_rng(seed)
    sigma = np.full((4, 4), correlation) + (1 - correlation) * np.eye(4)
    sigma *= np.outer([1, 2, 1, 3], [1, 2, 1, 3])
    y = rng.multivariate_normal(np.zeros(4), sigma, n)
    names = {"country": "all", "region": np.tile([*"aabb"], n), "store": np.tile([*"xyxy"], n)}
    frame = pd.DataFrame(names | {"ds": np.repeat(np.arange(n), 4)})
    return frame.assign(y=(20 + (y.cumsum(axis=0) if walk else y)).ravel()), sigma


FOUR = np.vstack([np.ones(4), np.kron(np.eye(2), np.ones(2)), np.eye(4)])
KINDS = [(m, k) for m in METHODS for k in INTERVALS if (m, k) != ("top_down", "normality")]


@pytest.mark.few("ols-normality", "bottom_up-bootstrap")
@pytest.mark.parametrize("correlation", [0.0, 0.6])
@pytest.mark.parametrize(("method", "kind"), KINDS)
def test_intervals_have_the_known_width_and_cover(method, kind, correlation):
    """Forecasts are means, whose errors add up: of every method those of the sums themselves."""
    n = 400
    frame, sigma = noise(n, correlation)
    got = reconcile(Mean(), frame, SPEC, h=1, level=80, method=method, intervals=kind)
    lower, upper = (matrix(got, f"Mean-{end}-80", 1)[:, 0] for end in ("lo", "hi"))
    deviation = np.sqrt(np.diag(FOUR @ sigma @ FOUR.T))
    # Four standard errors of a deviation, or of a quantile, from the rows that estimate it.
    allowed = 4 / np.sqrt(2 * n) if kind == "normality" else 4 * 1.3 / np.sqrt(n / 3)
    np.testing.assert_allclose((upper - lower) / 2 / norm.ppf(0.9), deviation, rtol=allowed)
    draws = np.random.default_rng(1).multivariate_normal(np.full(4, 20), sigma, 5000) @ FOUR.T
    shares = ((lower <= draws) & (draws <= upper)).mean(axis=0)
    np.testing.assert_allclose(shares, 0.8, atol=0.08)


@pytest.mark.few("top_down", "mint_cov")
@pytest.mark.parametrize(("method", "kind"), KINDS)
def test_intervals_cover_where_forecasts_do_not_add_up(method, kind):
    """Stores of different autoregressions, whose sums are none of order one.

    Shares of draws of the next row, whose law given the past is known, over five pasts.
    """
    shares, phi = [], np.array([0.9, 0.0, -0.5, 0.5])
    for seed in range(5):
        frame, sigma = noise(150, 0.3, seed=seed)
        y = frame["y"].to_numpy().reshape(-1, 4) - 20
        for row in range(1, len(y)):
            y[row] += phi * y[row - 1]
        given = {"level": 80, "method": method, "intervals": kind}
        got = reconcile(ARMA(order=(1, 0)), frame.assign(y=y.ravel() + 50), SPEC, h=1, **given)
        shocks = np.random.default_rng(seed).multivariate_normal(np.zeros(4), sigma, 2000)
        values = (50 + phi * y[-1] + shocks) @ FOUR.T
        lower, upper = (matrix(got, f"ARMA-{end}-80", 1)[:, 0] for end in ("lo", "hi"))
        shares.append(((lower <= values) & (values <= upper)).mean(axis=0))
    np.testing.assert_allclose(np.mean(shares, axis=0), 0.8, atol=0.07)


@pytest.mark.parametrize("kind", INTERVALS)
@pytest.mark.parametrize("method", ["bottom_up", "ols", "wls_var", "mint_cov", "mint_shrink"])
def test_intervals_grow_with_the_step(method, kind):
    """Of random walks: the width of h steps is that of one, times the root of h."""
    frame, sigma = noise(400, 0.3, walk=True)
    got = reconcile(Naive(), frame, SPEC, h=4, level=80, method=method, intervals=kind)
    width = matrix(got, "Naive-hi-80", 4) - matrix(got, "Naive-lo-80", 4)
    np.testing.assert_allclose(
        width / width[:, :1], np.tile(np.sqrt([1, 2, 3, 4]), (7, 1)), rtol=0.02
    )
    deviation = np.sqrt(np.diag(FOUR @ sigma @ FOUR.T))
    np.testing.assert_allclose(width[:, 0] / 2 / norm.ppf(0.9), deviation, rtol=0.2)


def test_covariances_are_kept_where_errors_add_up():
    """Errors of means add up exactly, so that C W C' is singular; its rounding is no weight."""
    frame, _ = noise(60, 0.5)
    got = reconcile(Mean(), frame, SPEC, h=1, level=80, method="mint_cov")
    y = frame["y"].to_numpy().reshape(60, 4)
    # Errors of one step of the last third, each forecast by the mean of the rows before.
    errors = [row - y[:i].mean(axis=0) for i, row in enumerate(y) if i >= 40]
    width = (got["Mean-hi-80"] - got["Mean-lo-80"]).to_numpy()
    W = np.corrcoef(np.array(errors).T) * np.outer(width[3:], width[3:])
    np.testing.assert_allclose(width, np.sqrt(np.diag(FOUR @ W @ FOUR.T)), rtol=1e-6)
    bottom = frame.assign(unique_id=frame["region"] + frame["store"])
    alone = Mean().fit(bottom[["unique_id", "ds", "y"]]).predict(h=1, level=80)
    np.testing.assert_allclose(width[3:], alone["Mean-hi-80"] - alone["Mean-lo-80"], rtol=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_methods_are_those_of_hierarchicalforecast(method):
    """Under other names: of integers, and without slashes."""
    from hierarchicalforecast.methods import BottomUp, MinTrace, TopDown

    theirs = {"bottom_up": BottomUp, "top_down": lambda: TopDown("forecast_proportions")}
    reconciler = theirs.get(method, lambda: MinTrace(method))()
    got, wanted = (
        reconcile(ARMA(order=(1, 0)), stores(), SPEC, h=2, method=one)
        for one in (method, reconciler)
    )
    pd.testing.assert_frame_equal(got, wanted, rtol=1e-5)


def test_intervals_of_a_reconciler_are_those_of_its_name():
    from hierarchicalforecast.methods import MinTrace, MinTraceSparse

    given = {"forecaster": Mean(), "df": noise(90, 0.3)[0], "spec": SPEC, "h": 1, "level": 80}
    wanted = reconcile(method="ols", **given)
    for reconciler in (MinTrace("ols"), MinTraceSparse("ols")):
        for kind in INTERVALS:
            got = reconcile(method=reconciler, intervals=kind, **given)
            same = (
                wanted if kind == "normality" else reconcile(method="ols", intervals=kind, **given)
            )
            pd.testing.assert_frame_equal(got, same, rtol=1e-5)


@pytest.mark.parametrize("kind", INTERVALS)
@pytest.mark.parametrize(
    "name", ["average", "proportion", "forecast", "middle", "erm", "nonnegative"]
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_intervals_that_would_leave_out_errors_are_refused(name, kind):
    """Errors of shares, of an estimated P or a constraint: point forecasts only."""
    from hierarchicalforecast import methods

    reconciler = {
        "average": lambda: methods.TopDown("average_proportions"),
        "proportion": lambda: methods.TopDown("proportion_averages"),
        "forecast": lambda: methods.TopDown("forecast_proportions"),
        "middle": lambda: methods.MiddleOut("country/region", "average_proportions"),
        "erm": lambda: methods.ERM("closed"),
        "nonnegative": lambda: methods.MinTrace("ols", nonnegative=True),
    }[name]()
    frame, _ = noise(60, 0.0)
    if name == "nonnegative":  # and a store whose forecast would be below zero
        frame["y"] -= np.where(frame["store"] == "x", 21, 0)
    given = {"forecaster": Mean(), "df": frame, "spec": SPEC, "h": 1, "method": reconciler}
    values = matrix(reconcile(**given), "Mean", 1)
    np.testing.assert_allclose(values, FOUR @ values[3:], rtol=1e-6)
    with pytest.raises(ValueError, match=r"has no intervals: they need.*Leave out level"):
        reconcile(level=80, intervals=kind, **given)


@pytest.mark.parametrize("method", METHODS)
def test_a_group_of_one_is_its_series(method):
    """A region with one store: the same series twice, whose covariance is singular."""
    frame = stores()
    frame = frame[(frame["region"] == "a") | (frame["store"] == "x")]
    got = reconcile(ARMA(order=(1, 0)), frame, SPEC, h=2, method=method)
    values = {name: part["ARMA"].to_numpy() for name, part in got.groupby("unique_id")}
    np.testing.assert_allclose(values["all/b"], values["all/b/x"], rtol=1e-9)
    np.testing.assert_allclose(values["all"], values["all/a"] + values["all/b"], rtol=1e-9)


@pytest.mark.parametrize("kind", INTERVALS)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.filterwarnings("ignore:intervals of 'all/a/x' have no width")
def test_a_series_without_errors_keeps_its_forecast(method, kind):
    """A closed store: no variance, and no share of what the others do not explain."""
    frame, _ = noise(90, 0.3)
    closed = (frame["region"] == "a") & (frame["store"] == "x")
    frame["y"] = frame["y"].where(~closed, 0.0)
    level = None if (method, kind) == ("top_down", "normality") else 80
    got = reconcile(Mean(), frame, SPEC, h=1, level=level, method=method, intervals=kind)
    store = got.set_index("unique_id").loc["all/a/x"]
    assert store["Mean"] == pytest.approx(0.0, abs=1e-9)
    if level and method not in ("ols", "wls_struct"):  # which share the errors of others
        assert store["Mean-hi-80"] - store["Mean-lo-80"] == pytest.approx(0.0, abs=1e-9)
    if level:
        assert np.isfinite(got.filter(like="Mean").to_numpy(float)).all()


@pytest.mark.parametrize("method", ["ols", "wls_struct"])
def test_a_constant_whose_sums_cancel_has_intervals_without_width(method):
    """The variance of a store that its own sum leaves alone is rounding, of either sign."""
    for seed in range(6):
        noise_of = np.random.default_rng(seed).normal
        values = {"a": noise_of(size=40), "b": np.full(40, 5.0), "c": noise_of(size=40)}
        parts = [
            pd.DataFrame({"group": "ac"["c" in s], "store": s, "ds": range(40), "y": y})
            for s, y in values.items()
        ]
        spec = [["group"], ["group", "store"]]
        model = ETS("add", "none", "none")
        with pytest.warns(IntervalWarning, match="intervals of 'a/b' have no width"):
            got = reconcile(model, pd.concat(parts), spec, h=1, level=80, method=method)
        still = got.set_index("unique_id").loc["a/b", ["ETS", "ETS-lo-80", "ETS-hi-80"]]
        np.testing.assert_allclose(still.astype(float), 5.0, rtol=1e-12)


NAMES = {
    "slash": ["Food/Drinks", "Food", "/", "a/"],
    "quotes": ["'", '"', "\\", "`"],
    "newline": ["a\nb", "a\tb", "\n", " "],
    "letters": ["Größe", "שלום", "😀", "e\u0301"],
    "long": ["x" * 5000, "x" * 5001, "y", ""],
    "numbers": [1, 2.5, -3, 10**20],
}


@pytest.mark.parametrize("method", ["top_down", "mint_shrink"])
@pytest.mark.parametrize("kind", sorted(NAMES))
def test_names_are_whatever_they_are(kind, method):
    frame, _ = noise(60, 0.3)
    first, second, *last = NAMES[kind]
    odd = frame.assign(
        region=pd.Series([[first, second][r == "b"] for r in frame["region"]], dtype=object),
        store=pd.Series([last[s == "y"] for s in frame["store"]], dtype=object),
    )  # fmt: skip
    given = {"forecaster": Mean(), "spec": SPEC, "h": 1, "method": method}
    got, wanted = (
        reconcile(df=df, **given).sort_values("Mean").reset_index(drop=True) for df in (odd, frame)
    )
    np.testing.assert_allclose(got["Mean"], wanted["Mean"], rtol=1e-9)
    assert set(got["unique_id"]) >= {"all", f"all/{first}", f"all/{first}/{last[0]}"}


def test_times_are_as_they_came():
    frame, _ = noise(60, 0.3)
    for times in (pd.date_range("2024-01-31", periods=60, freq="D", tz="Europe/Rome"),
                  pd.period_range("2020-01", periods=60, freq="M")):  # fmt: skip
        got = reconcile(ARMA(order=(1, 0)), frame.assign(ds=times[frame["ds"]]), SPEC, h=1)
        assert got["ds"].dtype == times.dtype
        assert got["ds"].iloc[0] == times[-1] + times.freq


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
        (lambda d: d.drop(columns="region"), {},
         "spec must name columns of df; it names 'region', and df has .*'store'.* Correct spec"),
        (lambda d: d, {"spec": [["contry"], ["country", "region"]]}, "it names 'contry', and df"),
        (lambda d: d.drop(columns="ds"), {}, "must have the column 'ds' of time_col.* Give time_"),
        (lambda d: d.drop(columns="y"), {}, "must have the column 'y' of target.* Give target"),
        (lambda d: d, {"method": "mint"}, "method must be one of"),
        (lambda d: d, {"intervals": "normal"}, "intervals must be one of"),
        (lambda d: d, {"spec": ["country"]}, "spec must be lists of columns"),
        (lambda d: d, {"spec": [["kind"], ["country", "region"]]}, r"it lacks \['kind'\]"),
        (lambda d: d, {"method": "top_down", "level": 80}, "Pass intervals='bootstrap'"),
        (lambda d: d, {"method": "top_down", "spec": GROUPED}, "'all/a' lies in 'all/x' and in"),
        (lambda d: d, {"spec": [*SPEC[1:], SPEC[0]]}, "must be the last and have all columns"),
        (lambda d: d, {"spec": [SPEC[2], SPEC[2]]}, "each column of a level, and each level, once"),
        (lambda d: d, {"level": 99.9, "intervals": "bootstrap"}, "at 1999 times at least"),
        (lambda d: d.assign(y=np.inf), {}, "column 'y' must be finite"),
        (lambda d: d[:0], {}, "df must have rows"),
        (lambda d: pd.concat([d, d["y"]], axis=1), {}, "once, for levels, times and target"),
        (lambda d: d[d["ds"] < "2024-01-07"], {"method": "mint_cov", "spec": GROUPED},
         "more times than there are sums, 6, and there are 6"),
        (lambda d: d.assign(region=d["kind"], kind=d["region"].replace("a", "x")),
         {"spec": GROUPED}, "two would be 'all/x'"),
        (lambda d: d, {"forecaster": ARMA(target=["y", "z"])}, "is of one target"),
        (lambda d: d.assign(y=np.where(d["store"] == "x", 0, d["y"])),
         {"forecaster": GARCH()}, "'all/a/x' has none, as GARCH could not be fitted"),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:.*units could not be fitted")
def test_refusals_say_what_was_required(change, arguments, message):
    given = {"forecaster": ARMA(order=(1, 0)), "spec": SPEC, "h": 1} | arguments
    with pytest.raises(ValueError, match=message):
        reconcile(df=change(stores()), **given)


def test_types_are_refused():
    with pytest.raises(TypeError, match="df must be a pandas frame in long form; got dict"):
        reconcile(ARMA(), {"y": [1.0]}, SPEC)
    with pytest.raises(TypeError, match=r"got ndarray\. Give a row for each .*'region': \.\.\., "):
        reconcile(ARMA(), np.zeros((3, 2)), SPEC)
    with pytest.raises(TypeError, match="forecaster must be a forecaster of tsrnn"):
        reconcile("ARMA", stores(), SPEC)
    with pytest.raises(TypeError, match="the target 'y' must be numeric.*such as '1' at row 0"):
        reconcile(ARMA(), stores().assign(y="1"), SPEC)
    times = stores()["ds"].astype(object).where(lambda t: t.index % 60 > 0, 3)
    with pytest.raises(TypeError, match="must have times of one type.*pandas.to_datetime"):
        reconcile(ARMA(), stores().assign(ds=times), SPEC)
