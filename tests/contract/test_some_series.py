"""Forecasts of some series: those that they have among all, at the cost of these alone."""

import numpy as np
import pandas as pd
import pytest

from tsrnn import ARMA, CCC, GARCH
from tsrnn.baselines import Drift, Naive
from tsrnn.data import to_polars
from tsrnn.evaluation import Combination

DAYS = pd.date_range("2024-01-01", periods=40)


def panel(names, seed=0):
    """Random walks of different lengths, one a name."""
    rng = np.random.default_rng(seed)
    parts = [
        pd.DataFrame({"unique_id": name, "ds": DAYS[i:], "y": rng.normal(size=40 - i).cumsum()})
        for i, name in enumerate(names)
    ]
    return pd.concat(parts, ignore_index=True)


def rows_of(table, names):
    """Rows of the series of these names, in that order."""
    parts = [table[table["unique_id"] == name] for name in names]
    return pd.concat(parts, ignore_index=True)


def same(some, expected):
    assert some.attrs == expected.attrs
    pd.testing.assert_frame_equal(some, expected, rtol=1e-9)


@pytest.fixture
def calls(monkeypatch):
    """Numbers of series of the states that `Naive` and `Drift` forecast from."""
    counts = []
    for cls in {type(Naive().fit(panel("a")).fitted_), type(Drift().fit(panel("a")).fitted_)}:
        forecast = cls.forecast

        def counted(self, state, *others, forecast=forecast):
            counts.append(len(state.ids))
            return forecast(self, state, *others)

        monkeypatch.setattr(cls, "forecast", counted)
    return counts


@pytest.mark.where.with_args(lambda example: example.is_forecaster)
@pytest.mark.few
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_they_are_forecast_as_among_all(original, example, contract):
    past, names = example.training[0], list(original.state_.ids[::-1])
    for model in (original, contract.loaded(original)):
        every = model.predict(h=2, level=[80, 95], **example.ahead(2))
        for asked in (names, names[:1]):
            some = model.predict(h=2, level=[80, 95], ids=asked, **example.ahead(2))
            same(some, with_attrs(rows_of(every, asked), every))
        after = model.predict(past, h=2, ids=names[:1], **example.ahead(2))
        whole = model.predict(past, h=2, **example.ahead(2))
        same(after, with_attrs(rows_of(whole, names[:1]), whole))


def with_attrs(table, other):
    table.attrs = dict(other.attrs)
    return table


def test_only_their_future_is_needed_and_read():
    data = panel("abc").assign(x=np.arange(117) % 5)
    model = ARMA(order=(1, 0), known_ahead="x").fit(data)
    future = pd.DataFrame({"unique_id": "b", "ds": DAYS[-1:] + pd.Timedelta("1D"), "x": 3.0})
    assert len(model.predict(h=1, X_future=future, ids=["b"])) == 1
    with pytest.raises(ValueError, match="missing are series 'c'"):
        model.predict(h=1, X_future=future, ids=["c", "b"])


@pytest.mark.parametrize("ids", ["b", ["b"], ("b",), {"b"}, pd.Index(["b"]), pd.Series(["b"])])
def test_one_id_or_several_of_any_kind(ids):
    model = Naive().fit(panel("abc"))
    same(model.predict(2, ids=ids), rows_of(model.predict(2), ["b"]))


def test_of_many_series_as_many_are_forecast_as_asked_for(calls):
    names = [f"s{i}" for i in range(300)]
    data = panel(["a"]).assign(unique_id=names[0])
    data = pd.concat([data.assign(unique_id=name) for name in names], ignore_index=True)
    pair = Combination({"walk": Naive(), "drift": Drift()}, horizon=2)
    for model in (Naive(), pair):
        model.fit(data)
        calls.clear()
        model.predict(2, ids=["s7", "s3", "s299"])
        assert set(calls) == {3}


def test_after_an_update_of_one_series():
    data = panel("abc")
    model, late = Naive().fit(data), data[-1:].assign(ds=DAYS[-1:] + pd.Timedelta("1D"), y=7.0)
    assert model.update(late).predict(1, ids=["c", "a"])["Naive"].tolist() == [7.0, data["y"][39]]


def test_in_polars():
    pytest.importorskip("polars")
    model = Naive().fit(to_polars(panel("abc")))
    assert model.predict(2, ids=["c", "a"])["unique_id"].to_list() == ["c", "c", "a", "a"]


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (["a", "x", "y"], "ids must be ids among the 3 there are, 'a', 'b', 'c'; got 'x', 'y'"),
        (list("xyzuvw"), "got 'x', 'y', 'z', 'u' and 2 more"),
        ([["a"]], r"got \['a'\]"),
        (1, "got 1"),
        ([], r"got \[\]"),
        (["a", "b", "a"], "ids must name each series once; 'a' is named twice"),
    ],
)
def test_ids_are_checked(ids, message):
    model = Naive().fit(panel("abc"))
    for X in (None, panel("abc")):
        with pytest.raises(ValueError, match=message):
            model.predict(X, h=1, ids=ids)


def test_a_tuple_is_one_id_if_a_series_has_it():
    long = panel("abc")
    long["unique_id"] = [(name, 1) for name in long["unique_id"]]
    model = Naive().fit(long)
    same(model.predict(2, ids=("b", 1)), model.predict(2, ids=[("b", 1)]))
    assert len(model.predict(2, ids=(("b", 1), ("a", 1)))) == 4


@pytest.mark.parametrize("model", [ARMA(order=(1, 0)), CCC()])
def test_columns_of_a_wide_frame_are_no_series(model):
    rng = np.random.default_rng(0)
    wide = pd.DataFrame(rng.normal(size=(300, 2)), columns=["a", "b"])
    with pytest.raises(ValueError, match=r"got ids='a' .* columns of the forecasts.*\['a', 'b'\]"):
        model.fit(wide).predict(1, ids="a")


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_paths_and_variances_of_some_series():
    model = GARCH(random_state=0).fit(panel("abc"))
    variance = model.predict_variance(h=3)
    same(model.predict_variance(h=3, ids=["c", "a"]), rows_of(variance, ["c", "a"]))
    drawn = model.predict_variance(h=2, method="bootstrap", ids="b")
    assert drawn["unique_id"].tolist() == ["b", "b"]
    paths = model.sample_paths(5, h=2, ids=["c", "a"])
    assert paths["unique_id"].unique().tolist() == ["c", "a"]
    assert len(paths) == 5 * 2 * 2
