"""Trading days: rows as they are observed, against rows that are counted."""

import sys
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pandas.tseries.holiday import USFederalHolidayCalendar
from pandas.tseries.offsets import CustomBusinessDay

from tsrnn import ARMA, DCC, GARCH, ParaRNNForecaster, backtest
from tsrnn.baselines import Mean, Naive, SeasonalNaive
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


def test_a_file_remembers_closed_days(reloaded):
    model = GARCH().fit(PAST)
    again = reloaded(model)
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


SUNDAY_TO_THURSDAY = CustomBusinessDay(
    weekmask="Sun Mon Tue Wed Thu", holidays=["2024-04-09", "2024-04-10", "2024-06-16"]
)
MASKS = {
    "Sunday to Thursday": "Sun Mon Tue Wed Thu",
    "Saturday to Wednesday": "Sat Sun Mon Tue Wed",
    "Monday to Saturday": "Mon Tue Wed Thu Fri Sat",
    "three days": "Mon Wed Fri",
    "two days": "Tue Fri",
}


def numbers(days):
    """Return a series of numbers on days, without the frequency of the index."""
    return pd.Series(np.random.default_rng(1).normal(size=len(days)), days.to_numpy(), name="y")


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("closed", [(), (20, 41)], ids=["no day closed", "two days closed"])
def test_weekmasks_are_recognised(name, closed):
    offset = CustomBusinessDay(weekmask=MASKS[name])
    days = pd.date_range("2024-01-01", periods=120, freq=offset)
    model = Naive().fit(numbers(days.delete(closed)))
    assert model.data_summary_.n_series == 1
    note = model.data_summary_.notes[0]
    mask = "".join("01"[int(day)] for day in offset.calendar.weekmask)
    assert f"weekmask '{mask}'" in note
    assert model.fitted_.data.layout.weekmask == mask
    ahead = model.predict(20).index
    assert ahead.equals(pd.date_range(days[-1], periods=21, freq=offset)[1:])
    model.update(numbers(pd.DatetimeIndex(ahead[3:8])))
    assert model.predict(1).index[0] == ahead[8]
    week = pd.date_range(ahead[8], periods=7)
    off = week[[not offset.is_on_offset(day) for day in week]]
    with pytest.raises(ValueError, match="trading days"):
        model.update(numbers(off[:1]))


def test_a_season_of_days_is_a_week():
    days = pd.date_range(
        "2024-01-01", periods=120, freq=CustomBusinessDay(weekmask=MASKS["two days"])
    )
    series = pd.Series(np.arange(120.0) % 2, days.to_numpy())
    assert SeasonalNaive().fit(series).predict(4).tolist() == [0, 1, 0, 1]


def test_few_weeks_do_not_show_a_weekmask():
    days = pd.date_range("2024-01-07", periods=12, freq=SUNDAY_TO_THURSDAY)
    with pytest.warns(UserWarning, match="missing at freq='D' and inserted"):
        assert read_panel(numbers(days), missing="auto").freq == "D"
    assert read_panel(numbers(days), freq="C").layout.weekmask == "1111001"


CUSTOM = {
    "holidays of a calendar": OPEN,
    "Sunday to Thursday": SUNDAY_TO_THURSDAY,
    "two days": CustomBusinessDay(weekmask="Tue Fri", holidays=["2024-05-03"]),
}


@pytest.mark.parametrize("name", CUSTOM)
@pytest.mark.parametrize("given", ["argument", "index"])
def test_custom_business_days_as_in_pandas(name, given, reloaded):
    offset = CUSTOM[name]
    days = pd.date_range("2024-01-01", periods=60, freq=offset)
    series = numbers(days)
    if given == "index":
        series.index = days
    model = ARMA((1, 0), freq=offset if given == "argument" else None).fit(series)
    ahead = model.predict(60)
    assert ahead.index.equals(pd.date_range(days[-1], periods=61, freq=offset)[1:])
    assert ahead.index.freq is not None
    assert model.data_summary_.notes == ()
    again = reloaded(model)
    pd.testing.assert_series_equal(again.predict(60), ahead)
    if given == "argument":
        assert again.freq == CustomBusinessDay(
            weekmask="".join("01"[int(day)] for day in offset.calendar.weekmask),
            holidays=offset.calendar.holidays.tolist(),
        )


def test_days_that_a_calendar_has_are_missing_where_they_have_no_row():
    days = pd.date_range("2024-01-01", periods=60, freq=SUNDAY_TO_THURSDAY)
    with pytest.warns(UserWarning, match="2 rows were missing at freq='C' and inserted"):
        panel = read_panel(numbers(days.delete([5, 30])), freq=SUNDAY_TO_THURSDAY, missing="auto")
    np.testing.assert_array_equal(panel.times, days.as_unit("ns").to_numpy())
    with pytest.raises(ValueError, match="without gaps at freq='C'; 1 missing after 1 row"):
        read_panel(numbers(days.delete(5)), freq=SUNDAY_TO_THURSDAY)
    model = Naive(freq=SUNDAY_TO_THURSDAY).fit(numbers(days))
    ahead = pd.date_range(days[-1], periods=3, freq=SUNDAY_TO_THURSDAY)[1:]
    with pytest.raises(ValueError, match="new rows must begin at"):
        model.update(numbers(ahead[1:]))


def test_rows_on_closed_days_are_named():
    days = pd.DatetimeIndex(["2024-04-08", "2024-04-09", "2024-04-11"])
    with pytest.raises(ValueError, match=r"on closed days lie 1 row at 2024-04-09"):
        read_panel(numbers(days), freq=SUNDAY_TO_THURSDAY)


def test_offsets_that_are_no_days():
    with pytest.raises(ValueError, match="n=1 without an offset; got n=2"):
        Naive(freq=CustomBusinessDay(2)).fit(PAST)


def test_a_backtest_keeps_a_calendar():
    days = pd.date_range("2024-01-01", periods=80, freq=SUNDAY_TO_THURSDAY)
    models = {"naive": Naive(freq=SUNDAY_TO_THURSDAY), "mean": Mean(freq=SUNDAY_TO_THURSDAY)}
    frame = backtest(models, numbers(days), h=5, n_windows=4)
    assert frame["ds"].tolist() == [*days[-20:]]


def test_columns_ahead_skip_a_day_between():
    frame = RETURNS.to_frame().assign(x=1.0)
    frame.iloc[::3, 1] = 0.0
    end = frame.index.get_loc(pd.Timestamp("2023-05-24")) + 1
    model = ARMA((1, 0), target="return", known_ahead="x").fit(frame[:end])
    ahead = model.predict(4, X_future=frame[["x"]][end:])
    assert ahead.index.equals(DAYS[end : end + 4])


exchange = pytest.mark.skipif(
    find_spec("exchange_calendars") is None, reason="exchange_calendars is not installed"
)


@pytest.mark.few("XSAU")
@exchange
@pytest.mark.parametrize("code", ["XNYS", "XLON", "XTKS", "XSAU"])
def test_sessions_of_an_exchange(code, reloaded):
    import exchange_calendars

    calendar = exchange_calendars.get_calendar(code, start="2022-01-03", end="2027-12-31")
    sessions = pd.DatetimeIndex(calendar.sessions.to_numpy())
    past, ahead = sessions[:500], sessions[500:900]
    model = Naive(freq=f"C-{code}").fit(numbers(past))
    assert model.freq_ == f"C-{code}"
    assert model.predict(400).index.equals(ahead)
    again = reloaded(model)
    pd.testing.assert_series_equal(again.predict(10), model.predict(10))
    assert again.update(numbers(ahead[:30])).predict(10).index.equals(ahead[30:40])
    closed = pd.date_range(past[0], past[-1]).difference(past)
    with pytest.raises(ValueError, match=f"on closed days lie 1 row at {closed[5].date()}"):
        Naive(freq=f"C-{code}").fit(numbers(past.append(closed[5:6]).sort_values()))
    with pytest.warns(UserWarning, match=f"1 row was missing at freq='C-{code}' and inserted"):
        read_panel(numbers(past.delete(7)), freq=f"C-{code}", missing="auto")


@exchange
def test_names_of_exchanges():
    assert Naive(freq="C-NYSE").fit(PAST[-5:-3]).freq_ == "C-XNYS"
    with pytest.raises(ValueError, match="must name an exchange that exchange_calendars knows"):
        Naive(freq="C-XXXX").fit(PAST)
    with pytest.raises(ValueError, match="Sessions of the exchange XNYS are freq='C-XNYS'"):
        Naive(freq="XNYS").fit(PAST)


@exchange
def test_sessions_have_an_end():
    model = Naive(freq="C-XNYS").fit(PAST[-5:-3])
    with pytest.raises(ValueError, match=r"known until 20\d\d-\d\d-\d\d; the horizon goes beyond"):
        model.predict(3000)
    with pytest.raises(ValueError, match="are known from"):
        model.predict(PAST[-8:-6], 2)


def test_without_the_package_of_calendars(monkeypatch):
    monkeypatch.setitem(sys.modules, "exchange_calendars", None)
    with pytest.raises(ImportError, match=r"tsrnn\[calendars\]"):
        Naive(freq="C-XNYS").fit(PAST)
