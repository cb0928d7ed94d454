"""Trading days: rows as they are observed, against rows that are counted."""

import io

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pandas.tseries.holiday import USFederalHolidayCalendar
from pandas.tseries.offsets import CustomBusinessDay

import tsrnn
from tsrnn import ARMA, DCC, GARCH, ParaRNNForecaster, backtest
from tsrnn.baselines import Naive
from tsrnn.data import panel_frame, past_times, read_panel, steps_between

OPEN = CustomBusinessDay(calendar=USFederalHolidayCalendar())
DAYS = pd.DatetimeIndex(pd.date_range("2021-01-04", "2023-06-30", freq=OPEN).to_numpy())
RETURNS = pd.Series(np.random.default_rng(0).standard_t(5, len(DAYS)), DAYS, name="return")
COUNTED = RETURNS.reset_index(drop=True)
PAST, LATER = RETURNS[:-30], RETURNS[-30:]  # two days are closed within the later rows


def two(series):
    return pd.DataFrame({"a": series, "b": series + np.cos(np.arange(len(series)))})


MODELS = {
    "GARCH": (GARCH, lambda series: series),
    "ARMA": (lambda: ARMA((1, 0), trend="ct"), lambda series: series),
    "DCC": (DCC, two),
    "ParaRNN": (lambda: ParaRNNForecaster(5, prior="only", season_length=1), lambda series: series),
    "Naive": (Naive, lambda series: series),
}


@pytest.mark.parametrize("name", MODELS)
def test_as_rows_that_are_counted(name):
    make, frame = MODELS[name]
    dated, counted = make().fit(frame(PAST)), make().fit(frame(COUNTED[:-30]))
    np.testing.assert_allclose(dated.predict(5), counted.predict(5), rtol=1e-12)
    assert dated.freq_ == "C"
    assert "trading days" in dated.data_summary_.notes[0]
    dated.update(frame(LATER))
    counted.update(frame(COUNTED[-30:]))
    np.testing.assert_allclose(dated.predict(5), counted.predict(5), rtol=1e-12)
    assert dated.predict(2).index.tolist() == [*pd.to_datetime(["2023-07-03", "2023-07-04"])]


def test_dates_of_rows_are_known_after_an_update():
    model = ARMA((1, 0)).fit(PAST).update(LATER)
    layout, last = model.fitted_.data.layout, model.state_.last_times
    np.testing.assert_array_equal(past_times(last, len(DAYS), layout.grid)[0], DAYS)
    times = DAYS.as_unit("ns").to_numpy()
    np.testing.assert_array_equal(
        steps_between(times[:1].repeat(len(times)), times, layout.grid), range(len(times))
    )


def test_a_file_remembers_closed_days():
    file = io.BytesIO()
    model = GARCH().fit(PAST)
    model.save(file)
    file.seek(0)
    again = tsrnn.load(file)
    assert again.fitted_.data.layout == model.fitted_.data.layout
    assert again.data_summary_.notes == model.data_summary_.notes
    pd.testing.assert_series_equal(again.update(LATER).predict(3), model.update(LATER).predict(3))


def test_days_of_a_panel_are_closed_if_no_series_has_them():
    halted = RETURNS.drop(RETURNS.index[100])
    long = pd.concat(
        [part.rename("y").rename_axis("ds").reset_index().assign(unique_id=name)
         for name, part in (("a", RETURNS), ("b", halted))]
    )  # fmt: skip
    with pytest.warns(UserWarning, match="1 row was missing at freq='C' and inserted"):
        panel = read_panel(long, missing="auto")
    assert panel.lengths.tolist() == [len(DAYS)] * 2
    assert np.isnan(panel.series(1)[100, 0])


def test_columns_ahead_say_which_days_are_open():
    frame = RETURNS.to_frame().assign(x=1.0 * (DAYS.dayofweek == 0))
    end = frame.index.get_loc(pd.Timestamp("2023-05-26")) + 1  # before Memorial Day
    model = ARMA((1, 0), target="return", known_ahead="x").fit(frame[:end])
    ahead = model.predict(3, X_future=frame[["x"]][end:])
    assert ahead.index.tolist() == DAYS[end : end + 3].tolist()


def test_a_backtest_has_the_dates_of_the_data():
    frame = backtest({"naive": Naive(), "garch": GARCH()}, RETURNS[-300:], h=5, n_windows=4)
    assert frame["ds"].tolist() == DAYS[-20:].tolist()
    assert frame.notna().all(axis=None)


def test_explicit_frequencies():
    with pytest.warns(UserWarning, match="rows were missing at freq='B' and inserted"):
        inserted = read_panel(RETURNS, freq="B", missing="auto")
    assert len(inserted.values) == len(pd.bdate_range(DAYS[0], DAYS[-1]))
    kept = read_panel(RETURNS, freq="C")
    pd.testing.assert_series_equal(panel_frame(kept), RETURNS, check_freq=False)
    with pytest.raises(ValueError, match=r"lie from Monday to Friday; not so do 1 row"):
        read_panel(pd.Series([1.0, 2.0], pd.to_datetime(["2024-01-05", "2024-01-06"])), freq="C")
    with pytest.raises(ValueError, match="without gaps at freq='B'"):
        read_panel(RETURNS)


def test_long_gaps_are_no_closed_days():
    with pytest.warns(UserWarning, match="inserted without values"):
        panel = read_panel(RETURNS.drop(RETURNS.index[200:220]), missing="auto")
    assert panel.freq == "B"


def test_rows_before_the_last_one_are_refused():
    with pytest.raises(ValueError, match="must begin at"):
        GARCH().fit(PAST).update(PAST[-3:])


@given(st.sets(st.integers(1, 98), max_size=7), st.integers(1, 30))
def test_numbers_of_days_and_days_of_numbers(closed, h):
    days = pd.bdate_range("2020-01-01", periods=100).delete(sorted(closed))
    panel = read_panel(pd.Series(1.0 * np.arange(len(days)), days), freq="C")
    grid, times = panel.layout.grid, panel.times
    assert len(panel.layout.closed) == len(closed)
    np.testing.assert_array_equal(np.diff(grid.numbers(times, None)), 1)
    steps = np.arange(len(times) + h)
    ahead = grid.advance(times[:1], steps, None)
    np.testing.assert_array_equal(ahead[: len(times)], times)
    np.testing.assert_array_equal(
        ahead[len(times) :], pd.bdate_range(times[-1], periods=h + 1)[1:].to_numpy()
    )
