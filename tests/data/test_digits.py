"""Dates in digits alone, such as 20240131, 202401 or 20241: dates where no row contradicts."""

import datetime
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tsrnn
from tsrnn.baselines import Drift
from tsrnn.batch import forecast_batches
from tsrnn.data import (
    are_dates,
    calendar_features,
    future_times,
    panel_frame,
    read_panel,
    write_stamps,
)
from tsrnn.evaluation import backtest
from tsrnn.linear import ARMA

# Form -> how strftime writes it, and frequencies of dates that it can write.
FORMS = {
    "YYYYMMDD": ("%Y%m%d", ("D", "2D", "B", "W-SUN", "MS", "ME", "QE-DEC", "YS-JAN")),
    "YYYYDDD": ("%Y%j", ("D", "W-TUE")),
    "YYYYMM": ("%Y%m", ("MS", "2MS", "QS-FEB", "YS-JUN")),
    "YYYYQ": (None, ("QS-OCT", "YS-APR")),
    "YYYYMMDDHH": ("%Y%m%d%H", ("h", "6h", "D")),
    "YYYYMMDDHHMM": ("%Y%m%d%H%M", ("15min", "h")),
    "YYYYMMDDHHMMSS": ("%Y%m%d%H%M%S", ("s", "min")),
}
MONTHS = [202201 + 100 * (i // 12) + i % 12 for i in range(36)]


def digits(times, form):
    """Dates as pandas writes them, in whole numbers."""
    written = FORMS[form][0]
    if written is None:
        return (10 * times.year + times.quarter).to_numpy(np.int64)
    return times.strftime(written).astype("int64").to_numpy()


def series(times):
    return pd.Series(np.arange(float(len(times))), pd.Index(times))


@st.composite
def dated(draw):
    form = draw(st.sampled_from(sorted(FORMS)))
    freq = draw(st.sampled_from(FORMS[form][1]))
    start = draw(st.datetimes(datetime.datetime(1680, 1, 1), datetime.datetime(2200, 1, 1)))
    times = pd.date_range(pd.Timestamp(start).floor("D"), periods=draw(st.integers(8, 40)) + 5,
                          freq=freq, unit="ns")  # fmt: skip
    types = ["int64", "float64", "Int64"] + (["int32"] if len(form) < 9 else [])
    return form, times, draw(st.sampled_from(types))


@settings(max_examples=150, deadline=None)
@given(dated())
def test_digits_are_read_as_the_dates_that_they_write(case):
    form, times, dtype = case
    numbers = pd.Index(pd.array(digits(times, form), dtype=dtype))
    expected = read_panel(series(pd.DatetimeIndex(times[:-5], freq=None)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that a few months could be steps
        panel = read_panel(series(numbers[:-5]))
    np.testing.assert_array_equal(panel.times, expected.times)
    assert (panel.freq, panel.layout.time_kind) == (expected.freq, "datetime")
    # they come back as they came, and so do those of the steps ahead
    assert panel_frame(panel).index.tolist() == numbers[:-5].tolist()
    ahead = write_stamps(future_times(panel, 5)[0], panel.layout)
    assert ahead.tolist() == numbers[-5:].tolist()
    assert ahead.dtype == numbers.dtype.name.lower()
    assert are_dates(numbers)


def is_date(number):
    """Whether strptime reads a number as a date of a form."""
    text = str(number)
    if len(text) == 5:
        return text[4] in "1234" and 1678 <= int(text[:4]) <= 2261
    written = {4: "%Y", **{len(form): pattern for form, (pattern, _) in FORMS.items()}}
    try:
        date = datetime.datetime.strptime(text, written[len(text)])
    except (KeyError, ValueError):
        return False
    return date.strftime(written[len(text)]) == text and 1678 <= date.year <= 2261


@st.composite
def counters(draw):
    form = draw(st.sampled_from(["", "YYYY", *sorted(FORMS)]))
    n = draw(st.integers(3, 60))
    step = draw(st.sampled_from((1, 1, 1, 2, 7, 100)))
    first = draw(st.integers(1, 10**9))
    if form:  # so that some of them are dates
        year = draw(st.integers(1650, 2270))
        first = int(
            f"{year}{draw(st.integers(0, 10 ** (len(form) - 4) - 1)):0{len(form) - 4}d}"[
                : len(form)
            ]
        )
        if draw(st.booleans()):
            first = int(f"{year}010101010101"[: len(form)])
    return first + step * np.arange(n), step


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(counters())
def test_numbers_that_rise_evenly(case):
    """Steps if so few are dates that none is meant, dates if all are, and a refusal in between."""
    numbers, step = case
    alike = len(str(numbers[0])) == len(str(numbers[-1])) and len(str(numbers[0])) > 4
    share = np.mean([alike and is_date(number) for number in numbers])
    counted = read_panel(series(numbers), freq=step)
    assert future_times(counted, 1)[0, 0] == numbers[-1] + step
    told = ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            panel = read_panel(series(numbers))
    except ValueError as error:
        told = str(error)
    if not told:
        assert panel.layout.time_kind == ("datetime" if share == 1 else "integer")
        assert share == 1 or share <= 0.5
    elif share < 1:  # dates of no frequency are refused as such
        assert share > 0.5 or "weeks of years" in told
        assert f"give freq={step} to count steps" in told.lower()


@pytest.mark.parametrize(
    ("numbers", "ahead"),
    [
        (range(20240101, 20240132), 20240201),
        (range(202401, 202413), 202501),
        (MONTHS, 202501),
        ([20241, 20242, 20243, 20244], 20251),
        ([20241, 20242, 20243, 20244, 20251], 20252),
        (range(1990, 2024), 2024),
        ([202001, 202101, 202201], 202301),
        ([2024364, 2024365, 2024366], 2025001),
        ([20240131, 20240229, 20240331], 20240430),
        (range(24), 24),
        (range(1, 25), 25),
        (range(1000, 1101), 1101),
        (range(10001, 10101), 10101),
        (range(202410, 202416), 202416),
        (range(20001, 20101), 20101),
    ],
)
@pytest.mark.filterwarnings("ignore:the index, .* is read as dates")
def test_what_follows(numbers, ahead):
    assert Drift().fit(series(numbers)).predict(1).index.tolist() == [ahead]


def test_a_guess_is_said():
    with pytest.warns(UserWarning, match=r"read as dates \(YYYYMM\). Give freq=1 if .* freq='MS'"):
        read_panel(series(range(202401, 202413)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_panel(series(range(202401, 202413)), freq="MS").freq == "MS"
        assert read_panel(series(range(202401, 202413)), freq=1).layout.time_kind == "integer"
        read_panel(series(MONTHS))
        read_panel(series(range(20240101, 20240132)))


@pytest.mark.parametrize(
    ("numbers", "told"),
    [
        ([*range(202401, 202413), 202413], "no date is 202413. Give freq=1 to count steps"),
        ([20240130, 20240131, 20240132], "no date is 20240132. Give freq=1"),
        (range(202401, 202453), "weeks of years"),
        ([202451, 202452, 202501, 202502], "weeks of years"),
    ],
)
@pytest.mark.parametrize("dtype", ["int64", "float64"])
def test_two_readings_are_refused(numbers, told, dtype):
    with pytest.raises(ValueError, match=told):
        read_panel(series(np.array(numbers, dtype)))


@pytest.mark.parametrize(
    ("numbers", "freq", "told"),
    [
        (range(202411, 202414), "MS", "no such date is 202413 in row 2"),
        (range(24), "MS", "does not fit integer timestamps"),
        (MONTHS, "ME", "does not fit dates written as YYYYMM"),
        (MONTHS, "D", "does not fit dates written as YYYYMM"),
        (range(20240101, 20240111), "h", "does not fit dates written as YYYYMMDD"),
        ([20241, 20242, 20243], "MS", "multiple of 'QS'"),
    ],
)
def test_frequencies_that_do_not_go_with_them(numbers, freq, told):
    with pytest.raises(ValueError, match=told):
        read_panel(series(numbers), freq=freq)


def test_years():
    years = list(range(1990, 2024))
    for dtype in ("int16", "int64", "float64"):
        panel = read_panel(series(np.array(years, dtype)), freq="YS")
        assert (panel.freq, panel.layout.time_dtype) == ("YS-JAN", f"YYYY[{dtype}]")
        assert write_stamps(future_times(panel, 1)[0], panel.layout).tolist() == [2024]
    assert read_panel(series(np.array(years, float))).freq == "YS-JAN"
    assert read_panel(series(list(map(str, years)))).layout.time_dtype == "datetime64[ns]"


def test_floats_that_are_no_dates():
    with pytest.raises(TypeError, match=r"astype\('int64'\) if they count steps"):
        read_panel(series(np.arange(20.0)))
    with pytest.raises(ValueError, match="float32 holds exactly"):
        read_panel(series(np.array(range(20240101, 20240111), "float32")))


@pytest.mark.parametrize("form", sorted(FORMS))
def test_text_comes_back_as_timestamps_or_periods(form):
    times = pd.date_range("2023-01-01", periods=9, freq=FORMS[form][1][0])
    panel = read_panel(series(pd.Index(digits(times, form)).astype(str)))
    if form == "YYYYQ":
        assert write_stamps(panel.times, panel.layout).equals(times.to_period("Q"))
    else:
        np.testing.assert_array_equal(panel.times, times.as_unit("ns"))


def long(**columns):
    frame = pd.DataFrame({"unique_id": np.repeat(["a", "b"], len(MONTHS)), "ds": MONTHS * 2})
    return frame.assign(y=np.tile(np.arange(len(MONTHS)) ** 1.5, 2), **columns)


@pytest.mark.parametrize("dtype", ["int64", "float64"])
@pytest.mark.parametrize("door", ["wide", "pandas", "polars", "csv", "parquet", "folder"])
def test_frames_and_files(door, dtype, tmp_path):
    frame = long()
    frame["ds"] = frame["ds"].astype(dtype)
    if door == "wide":
        data = frame.pivot(index="ds", columns="unique_id", values="y")
    elif door == "pandas":
        data = frame.sample(frac=1, random_state=0).sort_values("ds", kind="stable")
    elif door == "polars":
        data = pl.DataFrame(frame.to_dict("list"))
    elif door == "folder":
        data = tmp_path
        for name, part in frame.groupby("unique_id"):
            pl.DataFrame(part.to_dict("list")).write_parquet(tmp_path / f"{name}.parquet")
    else:
        data = tmp_path / f"data.{door}"
        if door == "csv":
            frame.to_csv(data, index=False)
        else:
            pl.DataFrame(frame.to_dict("list")).write_parquet(data)
    made = Drift().fit(data).predict(2)
    times = made.index if door == "wide" else made["ds"]
    assert times.to_list() == [202501, 202502] * (1 if door == "wide" else 2)
    assert str(times.dtype).lower() == dtype


@pytest.mark.parametrize("dtype", ["int64", "float64"])
def test_a_column_of_them_is_no_variable(dtype):
    frame = pd.DataFrame({"month": np.array(MONTHS, dtype), "sales": np.arange(36.0)})
    with pytest.raises(ValueError, match=r"dates \(YYYYMM\) in the column 'month'. Use df.set_ind"):
        read_panel(frame, strict=True)
    assert read_panel(frame).layout.time_col == "month"
    assert read_panel(frame.set_index("month")).freq == "MS"
    with pytest.raises(ValueError, match="counts its rows, and numbers in 'month' are not read"):
        read_panel(frame.assign(month=frame["month"][::-1].to_numpy()))
    text = frame.assign(month=frame["month"].astype("int64").astype(str))
    assert read_panel(text).layout.time_col == "month"


def test_later_frames(tmp_path):
    """`X_future`, `update`, `score`, new frames, files and plots read and write the same form."""
    frame = long(x=1.0)
    frame["x"] = np.sin(np.arange(len(frame)))
    new = pd.DataFrame({"unique_id": ["a", "b"], "ds": 202501, "y": 3.0, "x": 0.5})
    ahead = new.drop(columns="y")
    model = ARMA(order=(1, 0), known_ahead=["x"]).fit(frame)
    made = model.predict(1, X_future=ahead)
    assert made["ds"].tolist() == [202501, 202501]
    model.save(tmp_path / "model")
    loaded = tsrnn.load(tmp_path / "model")
    assert loaded.predict(1, X_future=ahead).equals(made)
    for times in (pd.Timestamp("2025-01-01"), "202501", "2025-01", 202501.0):
        assert model.predict(1, X_future=ahead.assign(ds=times)).equals(made)
    assert model.predict(frame, h=1, X_future=ahead).equals(made)
    assert np.isfinite(model.score(new))
    with pytest.raises(ValueError, match="written like 202401; no such date is 202513 in row 0"):
        model.update(new.assign(ds=202513))
    with pytest.raises(ValueError, match="must begin at 202501, one step .* begin at 202503"):
        model.update(new.assign(ds=202503))
    model.update(new)
    assert model.predict(1, X_future=ahead.assign(ds=202502))["ds"].tolist() == [202502] * 2


def test_backtests_and_batches(tmp_path):
    frame = long()
    made = backtest(Drift(), frame, h=2, n_windows=2)
    assert made["cutoff"].unique().tolist() == [202408, 202410]
    assert made["ds"].unique().tolist() == [202409, 202410, 202411, 202412]
    frame.to_csv(tmp_path / "data.csv", index=False)
    for i, source in enumerate((frame, tmp_path / "data.csv")):
        forecast_batches(source, Drift(), 2, out=tmp_path / str(i), rows_per_batch=40)
        made = pl.read_parquet(tmp_path / str(i) / "forecasts" / "*.parquet")
        assert made["ds"].to_list() == [202501, 202502] * 2


def test_gaps_and_messages_name_them_as_written():
    times = [*MONTHS[:5], *MONTHS[6:]]
    with pytest.raises(ValueError, match="1 missing after 1 row at 202205"):
        read_panel(series(times))
    assert read_panel(series(times), missing="interpolate").lengths.tolist() == [36]


def test_their_calendar_is_that_of_dates():
    assert calendar_features(True, read_panel(series(MONTHS)).layout) == ("month",)
