"""Labels of any type in messages, warnings and summaries: shown as they are read, counted right."""

import warnings

import numpy as np
import pandas as pd
import pytest

from tsrnn.baselines import VAR, ArchModel, Drift, Naive, SeasonalNaive, StatsmodelsTheta
from tsrnn.data import quote
from tsrnn.evaluation import Combination, backtest, compare
from tsrnn.linear import ARMA, ETS

from .asking import check_words

DAYS = pd.date_range("2024-01-01", periods=40)
# Two labels of each type, and how the first is shown.
LABELS = {
    "int": ((1, 2), "1"),
    "int64": (tuple(np.array([1, 2])), "1"),
    "float": ((0.5, 1.5), "0.5"),
    "text": (("a", "b"), "'a'"),
    "bytes": ((b"a", b"b"), "b'a'"),
    "timestamp": (tuple(pd.to_datetime(["2024-01-31", "2024-02-29"])), "2024-01-31"),
    "datetime64": (tuple(np.array(["2024-01-31", "2024-02-29"], "M8[s]")), "2024-01-31"),
    "period": (tuple(pd.period_range("2024-01", periods=2, freq="M")), "2024-01"),
    "timedelta": (tuple(pd.to_timedelta(["1h", "2h"])), "0 days 01:00:00"),
    "tuple": ((("a", np.int64(1)), ("a", np.int64(2))), "('a', 1)"),
    "boolean": ((True, False), "True"),
}


@pytest.mark.parametrize("kind", LABELS)
def test_quote(kind):
    (first, _), shown = LABELS[kind]
    assert quote(first) == shown
    assert quote([first]) == f"[{shown}]"


def long(labels, **columns):
    rng = np.random.default_rng(0)
    both = [label for label in labels for _ in DAYS]
    ids = np.empty(len(both), object)
    ids[:] = both
    column = pd.Series(ids) if isinstance(labels[0], tuple) else pd.Series(both)
    values = rng.normal(size=len(both))
    return pd.DataFrame({"unique_id": column, "ds": [*DAYS, *DAYS], "y": values, **columns})


def damaged(frame, rows, value):
    return frame.assign(y=frame["y"].where(~np.isin(np.arange(len(frame)), rows), value))


def told(call):
    """All that a call says: warnings, the error, or the answer as text."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            texts = [str(call())]
        except (TypeError, ValueError, RuntimeError) as error:
            texts = [str(error), *getattr(error, "__notes__", ())]
    return [*texts, *(str(warning.message) for warning in caught)]


@pytest.mark.parametrize("kind", LABELS)
def test_messages_and_summaries(kind):
    labels, shown = LABELS[kind]
    frame = long(labels)
    flat = damaged(frame, np.arange(40), 3.0)
    missing = damaged(frame, [5, 6], np.nan)
    short = frame.drop(index=range(3, 40))
    arma = ARMA(order=(1, 0)).fit(frame)
    new = frame.assign(ds=frame["ds"] + pd.Timedelta(days=90))
    calls = {
        "missing values": lambda: Drift(missing="error").fit(missing),
        "gaps": lambda: Drift(missing="error").fit(frame.drop(index=[5, 6])),
        "rows twice": lambda: Drift().fit(pd.concat([frame, frame[:3]])),
        "frequencies": lambda: Drift().fit(frame.drop(index=range(1, 40, 2))),
        "no width": lambda: Naive().fit(flat).predict(2, level=80),
        "unknown id": lambda: arma.predict(2, ids=["none of them"]),
        "id twice": lambda: arma.predict(2, ids=[labels[0], labels[0]]),
        "later rows": lambda: arma.update(new),
        "too short": lambda: SeasonalNaive(season_length=7).fit(short).predict(2),
        "constant": lambda: ARMA(order=(1, 0)).fit(flat).summary(),
        "not positive": lambda: ETS("mul", "none", "none").fit(frame),
        "one unit": lambda: arma.summary(unit="none of them"),
        "summary": lambda: arma.summary(unit=labels[0]),
        "set aside": lambda: backtest(Drift(), missing, h=2, n_windows=2),
        "compared": lambda: compare(backtest([Drift(), Naive()], frame, h=2, n_windows=3)),
    }
    assert "Log Likelihood" in str(calls["summary"]())
    assert StatsmodelsTheta().fit(frame).summary(unit=labels[1]).text
    said = {name: told(call) for name, call in calls.items()}
    for texts in said.values():
        for text in texts:
            check_words(text)
    for name in ("missing values", "gaps", "rows twice", "no width", "later rows"):
        assert any(shown in text for text in said[name]), said[name]


@pytest.mark.parametrize("shape", ["wide", "long"])
def test_a_combination_counts_the_series_of_a_frame(shape):
    """Columns of a wide frame are series like others."""
    rng = np.random.default_rng(0)
    data = pd.DataFrame(rng.normal(size=(40, 3)).cumsum(0), DAYS, columns=["a", "b", "c"])
    data["b"] = 3.0
    if shape == "long":
        data = data.rename_axis("ds").reset_index().melt("ds", var_name="unique_id", value_name="y")
    members = {"arch": ArchModel(), "naive": Naive()}
    with pytest.warns(UserWarning, match="ArchModel could not fit 1 of 3 units, 'b'"):
        model = Combination(members, weights=[0.5, 0.5], horizon=2).fit(data)
    with pytest.warns(
        UserWarning, match="^1 of 3 series, the first 'b', are not forecast by 'arch'"
    ):
        model.predict()


class Mislabelled:
    """Model that forecasts the first series and day whatever it was asked for."""

    def __init__(self, column, label):
        self.column, self.label = column, label

    def get_params(self, deep=True):
        return {"column": self.column, "label": self.label}

    def set_params(self, **params):
        return self

    def fit(self, df):
        return self

    def predict(self, X, h=1, level=None):
        frame = Drift().fit(X).predict(h)
        values = np.empty(len(frame), object)
        values[:] = [self.label] * len(frame)
        return frame.assign(**{self.column: values})


@pytest.mark.parametrize("kind", ["int64", "timestamp", "tuple", "text"])
def test_a_forecast_of_another_series_is_named(kind):
    (first, second), shown = LABELS[kind]
    model = Mislabelled("unique_id", first)
    (text, *_) = told(lambda: backtest(model, long((second, second))[:40], h=2, n_windows=2))
    check_words(text)
    assert f"forecasts are of other series than asked for: {shown} in place of " in text


def test_a_forecast_of_another_time_is_named():
    model = Mislabelled("ds", pd.Timestamp("2024-01-01"))
    (text, *_) = told(lambda: backtest(model, long((1, 1))[:40], h=2, n_windows=2))
    check_words(text)
    assert "timestamps than asked for: 2024-01-01 in place of 2024-02-06 in row 0" in text


INTEGER_COLUMNS = {
    "infinite": lambda y: Drift().fit(y.mask(y == y.iloc[5, 0], np.inf)),
    "missing": lambda y: Drift(missing="error").fit(y.mask(y == y.iloc[5, 0])),
    "support": lambda y: Drift(support="nonnegative").fit(y - 100),
    "exogenous": lambda y: Drift(target=2).fit(y),
    "ahead": lambda y: ARMA(order=(1, 0), target=2, known_ahead=[1]).fit(y).predict(2),
    "twice": lambda y: Drift(target=[1, 1]).fit(y),
    "alone": lambda y: VAR(target=1).fit(y),
    "member": lambda y: Combination({"a": ARMA((1, 0), known_ahead=[1])}, target=2).fit(y),
}


@pytest.mark.parametrize("call", INTEGER_COLUMNS.values(), ids=INTEGER_COLUMNS)
@pytest.mark.parametrize("dtype", [object, "int64"])
def test_columns_with_integer_names(call, dtype):
    columns = pd.Index([1, 2], dtype=dtype)
    y = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 2)), DAYS, columns)
    texts = told(lambda: call(y))
    assert any("1" in text for text in texts)
    for text in texts:
        check_words(text)


def test_a_trial_of_single_series_warns_of_none():
    """A member that fails on one series is tried on others alone, which says nothing of the fit."""
    frame = long(("a", "b"))
    frame = frame.assign(y=frame["y"].where(frame["unique_id"] == "a", np.nan))

    texts = told(lambda: Combination({"arch": ArchModel(), "naive": Naive()}, horizon=2).fit(frame))
    assert not any("1 of 1" in text for text in texts)
