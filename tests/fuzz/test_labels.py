"""Labels of any type in messages, warnings and summaries: shown as they are read, counted right."""

import warnings

import numpy as np
import pandas as pd
import pytest

from tsrnn.baselines import ArchModel, Drift, Naive, SeasonalNaive, StatsmodelsTheta
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
