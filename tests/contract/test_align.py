"""Forecasts of the steps after the last time of a panel whose series end at different times."""

import numpy as np
import pandas as pd
import pytest

from tsrnn import ARMA
from tsrnn.baselines import Drift, Naive

DAYS = pd.date_range("2024-01-01", periods=40)
LAGS = {"a": 0, "b": 3, "c": 7}


def panel():
    """Random walks that end at different times."""
    rng = np.random.default_rng(0)
    parts = [
        pd.DataFrame({"unique_id": name, "ds": DAYS[: 40 - lag], "y": rng.normal(size=40 - lag)})
        for name, lag in LAGS.items()
    ]
    frame = pd.concat(parts, ignore_index=True)
    return frame.assign(y=frame.groupby("unique_id")["y"].cumsum())


def rows_of(table, name):
    return table[table["unique_id"] == name].reset_index(drop=True)


@pytest.mark.where.with_args(lambda example: example.is_forecaster)
@pytest.mark.few
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_every_forecaster_goes_on_to_the_common_steps(original, example, contract):
    past = example.training[0]
    ends = past.groupby("unique_id")["ds"].max()
    lags = (ends.max() - ends).dt.days
    ahead = example.ahead(2 + int(lags.max()))
    for X in (None, past):
        aligned = original.predict(X, h=2, level=[80, 95], align=True, **ahead)
        assert aligned.attrs == original.predict(X, h=2, level=[80, 95], **ahead).attrs
        assert aligned.groupby("unique_id")["ds"].agg(["min", "max"]).nunique().tolist() == [1, 1]
        for name, lag in lags.items():
            alone = original.predict(X, h=2 + int(lag), level=[80, 95], ids=[name], **ahead)
            expected = alone.tail(2).reset_index(drop=True)
            pd.testing.assert_frame_equal(rows_of(aligned, name), expected, rtol=1e-9)


def test_series_that_end_together_are_forecast_as_without():
    frame = panel()
    frame = frame[frame["ds"] < DAYS[33]]
    model = Drift().fit(frame)
    pd.testing.assert_frame_equal(model.predict(4, align=True), model.predict(4))
    assert model.data_summary_.notes == ()


def test_some_series_end_where_all_do():
    model = Drift().fit(panel())
    every = model.predict(4, level=80, align=True)
    some = model.predict(4, level=80, ids=["c", "b"], align=True)
    expected = pd.concat([rows_of(every, "c"), rows_of(every, "b")], ignore_index=True)
    pd.testing.assert_frame_equal(some, expected)
    assert every["ds"].unique().tolist() == [*pd.date_range(DAYS[-1], periods=5)[1:]]


def test_a_note_says_which_series_end_before():
    (note,) = Naive().fit(panel()).data_summary_.notes
    assert "2 of 3 series end before 2024-02-09, 'c' by 7 steps" in note
    assert "predict(align=True)" in note


def test_columns_ahead_begin_after_the_end_of_each():
    frame = panel()
    frame["x"] = np.arange(len(frame)) % 5
    model = ARMA((1, 0), known_ahead="x").fit(frame)
    days = pd.date_range(DAYS[30], DAYS[-1] + pd.Timedelta("2D"))
    parts = [pd.DataFrame({"unique_id": name, "ds": days, "x": 1.0}) for name in LAGS]
    future = pd.concat(parts, ignore_index=True)
    assert len(model.predict(2, X_future=future, align=True)) == 6
    short = future[(future["unique_id"] != "c") | (future["ds"] > DAYS[34])]
    with pytest.raises(ValueError, match="cover the 9 steps.*series 'c': 2 at 2024-02-03"):
        model.predict(2, X_future=short, align=True)


def test_a_series_that_ended_years_ago_is_forecast_for_years():
    frame = panel()
    late = frame[frame["unique_id"] == "b"]
    late = late.assign(unique_id="z", ds=late["ds"] + pd.Timedelta(3652, "D"))
    model = Naive().fit(pd.concat([frame, late]))
    days = model.predict(2, align=True).groupby("unique_id")["ds"].agg(["min", "max"])
    assert days.nunique().tolist() == [1, 1]
    assert days["min"].iloc[0] == late["ds"].max() + pd.Timedelta(1, "D")


def test_align_is_a_truth_value():
    with pytest.raises((TypeError, ValueError), match="align"):
        Naive().fit(panel()).predict(2, align="yes")
