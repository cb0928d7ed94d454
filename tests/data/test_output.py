"""Writing: forecasts go back in the shape of the data."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tsrnn.data import future_times, panel_frame, read_future, read_panel, write_frame, write_paths

FREQS = ["MS", "ME", "QS-JAN", "YE-DEC", "W-SUN", "D", "B", "h", "15min", "2h", "BME"]


def values(index, *names):
    rng = np.random.default_rng(0)
    return pd.DataFrame({name: rng.normal(size=len(index)) for name in names}, index=index)


def forecast(data, h, *, level=False, **options):
    """Write the numbers 0, 1, 2, ... as the forecasts of a frame."""
    panel = read_panel(data, **options)
    shape = (panel.n_series, h, len(panel.target_names))
    point = np.arange(np.prod(shape), dtype=float).reshape(shape)
    out = {"": point}
    if level:
        out |= {"-lo-80": point - 1, "-hi-80": point + 1}
    return write_frame(panel.layout, panel.ids, future_times(panel, h), out)


indices = st.one_of(
    st.tuples(st.sampled_from(FREQS), st.sampled_from(["s", "us", "ns"])).map(
        lambda a: pd.date_range("2019-05-04", periods=40, freq=a[0], unit=a[1])
    ),
    st.sampled_from(["D", "h", "MS", "W-SUN"]).map(
        lambda freq: pd.date_range("2021-03-01", periods=40, freq=freq, tz="Europe/Berlin")
    ),
    st.sampled_from(["M", "Q-DEC", "Y-DEC", "D", "h", "2h"]).map(
        lambda freq: pd.period_range("2019-05-04", periods=40, freq=freq)
    ),
    st.tuples(st.integers(-9, 9), st.integers(1, 5)).map(
        lambda a: pd.RangeIndex(a[0], a[0] + 40 * a[1], a[1])
    ),
    st.sampled_from(["int8", "int32", "uint16"]).map(lambda d: pd.Index(np.arange(40, dtype=d))),
)


class TestWide:
    @settings(max_examples=60, deadline=None)
    @given(index=indices, n=st.integers(12, 35), name=st.sampled_from([None, "month"]))
    def test_the_index_goes_on(self, index, n, name):
        index = index.rename(name)
        frame = values(index, "a", "b")
        out = forecast(frame.iloc[:n], 40 - n)
        pd.testing.assert_index_equal(out.index, index[n:], exact="equiv")
        assert list(out.columns) == ["a", "b"]
        np.testing.assert_array_equal(out.to_numpy().ravel(), np.arange(2.0 * (40 - n)))
        if isinstance(index, pd.DatetimeIndex):
            assert out.index.freq == index.freq

    def test_intervals(self):
        frame = values(pd.date_range("2020", periods=5), "a", "b")
        out = forecast(frame, 3, level=True)
        assert list(out.columns) == ["a", "a-lo-80", "a-hi-80", "b", "b-lo-80", "b-hi-80"]
        np.testing.assert_array_equal(out["b"] - out["b-lo-80"], 1.0)

    @pytest.mark.parametrize("name", ["sales", 3, None])
    def test_series(self, name):
        series = pd.Series(np.arange(5.0), pd.date_range("2020", periods=5, name="day"), name=name)
        out = forecast(series, 3)
        expected = pd.date_range("2020-01-06", periods=3, name="day", unit=series.index.unit)
        pd.testing.assert_series_equal(out, pd.Series([0.0, 1.0, 2.0], expected, name=name))
        base = "ParaRNN" if name is None else name
        out = forecast(series, 3, level=True)
        assert list(out.columns) == [base, f"{base}-lo-80", f"{base}-hi-80"]

    def test_a_midnight_left_out_by_the_clocks(self):
        index = pd.date_range("2023-08-25", periods=5, freq="D", tz="America/Santiago")
        out = forecast(values(index, "a"), 6)
        assert out.index.freq is None
        assert str(out.index[-2]) == "2023-09-03 01:00:00-03:00"

    def test_only_targets_come_back(self):
        out = forecast(values(pd.date_range("2020", periods=5), "a", "b"), 2, target="b")
        assert list(out.columns) == ["b"]


def long_panel_frame(lengths, freq, ids, tz=None, unit="us"):
    parts = [
        pd.DataFrame(
            {
                "unique_id": ids[i],
                "ds": pd.date_range("2021-03-01", periods=n, freq=freq, tz=tz, unit=unit),
            }
        )
        for i, n in enumerate(lengths)
    ]
    frame = pd.concat(parts, ignore_index=True)
    return frame.assign(y=np.arange(len(frame)) ** 0.5)


def split(frame, h):
    """Cut the last h rows off each series."""
    last = frame.groupby("unique_id", sort=False).cumcount(ascending=False) < h
    return frame[~last], frame[last]


long_frames = st.builds(
    long_panel_frame,
    lengths=st.lists(st.integers(14, 24), min_size=1, max_size=6),
    freq=st.sampled_from(FREQS),
    ids=st.sampled_from([list("fbacde"), [5, 3, 9, 1, 0, 7], [0.5, 2.5, 1.5, 3.5, 9.5, 7.5]]),
    tz=st.sampled_from([None, "UTC", "Europe/Berlin"]),
    unit=st.sampled_from(["us", "ns"]),
)


class TestLong:
    @settings(max_examples=40, deadline=None)
    @given(frame=long_frames, h=st.integers(1, 4))
    def test_ids_and_times_go_on(self, frame, h):
        past, future = split(frame, h)
        out = forecast(past, h)
        keys = ["unique_id", "ds"]
        pd.testing.assert_frame_equal(out[keys], future[keys].reset_index(drop=True))
        assert list(out.columns) == [*keys, "ParaRNN"]
        np.testing.assert_array_equal(out["ParaRNN"], np.arange(len(out)))

    @settings(max_examples=40, deadline=None)
    @given(frame=long_frames, h=st.integers(1, 4))
    def test_polars_come_back_as_polars(self, frame, h):
        past, future = (to_polars(part) for part in split(frame, h))
        out = forecast(past, h)
        assert isinstance(out, pl.DataFrame)
        assert out.select("unique_id", "ds").equals(future.select("unique_id", "ds"))
        assert out.schema["ds"] == past.schema["ds"]
        np.testing.assert_array_equal(out["ParaRNN"], np.arange(out.height))

    def test_several_targets_and_intervals(self):
        frame = long_panel_frame([5, 4], "D", "ab").assign(z=1.0)
        out = forecast(frame, 2, level=True)
        assert list(out.columns[2:]) == ["ParaRNN", "ParaRNN-lo-80", "ParaRNN-hi-80"]
        out = forecast(frame, 2, target=["z", "y"], level=True)
        expected = ["z", "z-lo-80", "z-hi-80", "y", "y-lo-80", "y-hi-80"]
        assert list(out.columns) == ["unique_id", "ds", *expected]

    def test_one_series_without_ids(self):
        frame = (
            long_panel_frame([5], "D", "a").drop(columns="unique_id").rename(columns={"ds": "day"})
        )
        assert list(forecast(frame, 2, time_col="day").columns) == ["day", "ParaRNN"]

    def test_period_and_integer_columns(self):
        frame = long_panel_frame([5, 5], "MS", "ab")
        months = frame.assign(ds=frame["ds"].dt.to_period("M"))
        assert list(forecast(months, 1)["ds"]) == [pd.Period("2021-08", "M")] * 2
        numbers = frame.assign(ds=np.array([0, 2, 4, 6, 8] * 2, "int32"))
        out = forecast(numbers, 2)["ds"]
        assert (out.dtype, list(out)) == (np.dtype("int32"), [10, 12, 10, 12])
        numbers = frame.assign(ds=np.array([123, 124, 125, 126, 127] * 2, "int8"))
        assert list(forecast(numbers, 1)["ds"]) == [128, 128]

    def test_polars_dates_and_integers(self):
        days = pd.date_range("2020-01-01", periods=4).date
        out = forecast(pl.DataFrame({"ds": list(days), "y": [1.0] * 4}), 2)
        assert (out.columns, out.schema["ds"]) == (["ds", "ParaRNN"], pl.Date)
        assert str(out["ds"][1]) == "2020-01-06"
        frame = pl.DataFrame({"ds": pl.Series([1, 2, 3], dtype=pl.Int32), "y": [1.0] * 3})
        assert forecast(frame, 1)["ds"].to_list() == [4]


def to_polars(frame):
    """Convert without pyarrow."""
    out = {name: frame[name].to_list() for name in ("unique_id", "y")}
    times = frame["ds"]
    if times.dt.tz is None:
        return pl.DataFrame(out | {"ds": times.to_numpy()})
    utc = times.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy()
    zone = pl.col("ds").dt.replace_time_zone("UTC").dt.convert_time_zone(str(times.dt.tz))
    return pl.DataFrame(out | {"ds": utc}).with_columns(zone)


class TestCutoffs:
    def write(self, data, ids, n):
        panel = read_panel(data)
        cutoffs = np.array([panel.times[1], panel.times[2]] * n)
        times = np.stack([cutoffs + (panel.times[1] - panel.times[0]) * k for k in (1, 2)], 1)
        point = {"": np.zeros((len(cutoffs), 2, 1))}
        return write_frame(panel.layout, ids, times, point, cutoffs=cutoffs)

    def test_long(self):
        frame = long_panel_frame([5, 5], "D", "ab")
        out = self.write(frame, list("aabb"), 2)
        assert list(out.columns) == ["unique_id", "ds", "cutoff", "ParaRNN"]
        assert out["cutoff"].dtype == out["ds"].dtype == frame["ds"].dtype
        assert list(out["cutoff"].dt.day) == [2, 2, 3, 3] * 2
        assert list(out["ds"].dt.day) == [3, 4, 4, 5] * 2

    def test_polars(self):
        out = self.write(to_polars(long_panel_frame([5, 5], "D", "ab", tz="UTC")), list("aabb"), 2)
        assert out.schema["cutoff"] == out.schema["ds"] == pl.Datetime("us", "UTC")

    def test_wide_rows_lie_one_below_the_other(self):
        series = pd.Series(np.arange(5.0), pd.date_range("2020-01-01", periods=5), name="s")
        out = self.write(series, [0, 0], 1)
        assert list(out.columns) == ["cutoff", "s"]
        assert list(out.index.day) == [3, 4, 4, 5]


class TestWriteRefuses:
    def test_shapes(self):
        panel = read_panel(long_panel_frame([5, 5], "D", "ab"))
        times = future_times(panel, 3)
        with pytest.raises(ValueError, match=r"forecasts\['-lo-80'\] must have shape \(2, 3, 1\)"):
            write_frame(panel.layout, panel.ids, times, {"-lo-80": np.zeros((2, 3))})
        with pytest.raises(ValueError, match=r"times must have shape \(2, h\)"):
            write_frame(panel.layout, panel.ids, times[:1], {})
        point = {"": np.zeros((2, 3, 1))}
        with pytest.raises(ValueError, match=r"cutoffs must have shape \(2,\)"):
            write_frame(panel.layout, panel.ids, times, point, cutoffs=times)

    def test_a_wide_layout_has_one_series(self):
        panel = read_panel(values(pd.date_range("2020", periods=5), "a"))
        times = np.repeat(future_times(panel, 2), 2, axis=0)
        with pytest.raises(ValueError, match="a wide layout has one series; got 2"):
            write_frame(panel.layout, [0, 0], times, {"": np.zeros((2, 2, 1))})


class TestKnownAhead:
    def test_found_by_id_and_time_whatever_the_order(self):
        frame = long_panel_frame([9, 12, 7], "MS", "abc")
        frame = frame.assign(u=np.arange(28.0), v=np.arange(28) % 2 == 0)
        past, _ = split(frame, 3)
        calendar = frame.drop(columns="y").sample(frac=1, random_state=0)
        panel = read_panel(past)
        expected = frame.groupby("unique_id").tail(3)[["v", "u"]].to_numpy(float).reshape(3, 3, 2)
        for columns in (dict(panel=panel), parts(panel)):
            out = read_future(calendar, h=3, columns=("v", "u"), **columns)
            np.testing.assert_array_equal(out, expected)

    def test_series_that_end_at_different_times(self):
        frame = long_panel_frame([9, 12, 7], "D", "abc").assign(u=np.arange(28.0))
        past, future = split(frame, 3)
        extra = future.assign(unique_id="unknown")
        rows = pd.concat([extra, future]).drop(columns="y")
        out = read_future(rows, panel=read_panel(past), h=2, columns=["u"])
        np.testing.assert_array_equal(out[..., 0], [[6, 7], [18, 19], [25, 26]])

    def test_polars(self):
        frame = long_panel_frame([9, 12], "h", "ab", tz="Europe/Berlin")
        past, future = (to_polars(part) for part in split(frame, 3))
        past = past.with_columns(u=pl.col("y"))
        rows = future.select("unique_id", "ds", u="y").reverse()
        out = read_future(rows, panel=read_panel(past), h=3, columns=["u"])
        np.testing.assert_array_equal(out.ravel(), future["y"])

    @pytest.mark.parametrize("freq", ["MS", "D", "h"])
    def test_wide(self, freq):
        frame = values(pd.date_range("2020", periods=9, freq=freq), "a", "u", "v")
        panel = read_panel(frame.iloc[:6], target="a")
        out = read_future(frame.iloc[6:][["v", "u"]], panel=panel, h=3, columns=("u", "v"))
        np.testing.assert_array_equal(out[0], frame.iloc[6:][["u", "v"]])

    def test_no_columns(self):
        frame = long_panel_frame([9], "D", "a")
        past, future = split(frame, 2)
        out = read_future(future[["unique_id", "ds"]], panel=read_panel(past), h=2, columns=())
        assert out.shape == (1, 2, 0)


def parts(panel):
    names = ("ids", "last_times", "freq", "layout")
    return {name: getattr(panel, name) for name in names}


class TestPanelFrame:
    @settings(max_examples=60, deadline=None)
    @given(indices)
    def test_wide_frames_come_back(self, index):
        frame = values(index, "u", "v", "x")
        panel = read_panel(frame, target=["u", "v"])
        pd.testing.assert_frame_equal(panel_frame(panel), frame, check_freq=False)
        pd.testing.assert_frame_equal(panel_frame(panel, ["x"]), frame[["x"]], check_freq=False)
        one = frame["u"].rename("any")
        pd.testing.assert_series_equal(panel_frame(read_panel(one)), one, check_freq=False)

    @pytest.mark.parametrize("names", [("unique_id", "ds"), ("who", "when"), (None, "ds")])
    def test_long_frames_come_back(self, names):
        id_col, time_col = names
        parts = [
            values(pd.date_range("2020", periods=n, freq="D"), "y", "x").assign(key=key)
            for key, n in (("b", 5), ("a", 7))
        ]
        frame = pd.concat(parts if id_col else parts[:1]).rename_axis(time_col).reset_index()
        columns = [time_col, "y", "x"]
        if id_col:
            frame, columns = frame.rename(columns={"key": id_col}), [id_col, *columns]
        frame = frame[columns]
        panel = read_panel(frame, id_col=id_col or "unique_id", time_col=time_col)
        pd.testing.assert_frame_equal(panel_frame(panel), frame)
        expected = frame.drop(columns="y")
        pd.testing.assert_frame_equal(panel_frame(panel, ["x"]), expected)

    def test_missing_rows_are_there(self):
        frame = values(pd.date_range("2020", periods=6, freq="D"), "y")
        panel = read_panel(frame.drop(frame.index[2]), missing="keep")
        expected = frame.copy()
        expected.iloc[2] = np.nan
        pd.testing.assert_frame_equal(panel_frame(panel), expected, check_freq=False)

    def test_polars_comes_as_pandas(self):
        frame = pl.DataFrame({"ds": pd.date_range("2020", periods=4), "y": [1.0, 2.0, 3.0, 4.0]})
        assert isinstance(panel_frame(read_panel(frame)), pd.DataFrame)

    def test_is_a_copy(self):
        series = values(pd.date_range("2020", periods=4, freq="D"), "y")["y"]
        panel = read_panel(series)
        assert not np.shares_memory(panel_frame(panel).to_numpy(), panel.values)


@pytest.mark.parametrize("arguments", [{"id_col": "path"}, {"target": "path"}])
def test_a_column_of_the_data_called_path_is_refused(arguments):
    frame = pd.DataFrame({"path": [1.0, 2.0, 3.0], "ds": pd.date_range("2020", periods=3)})
    frame = frame.assign(path="a", y=1.0) if "id_col" in arguments else frame
    panel = read_panel(frame, **arguments)
    times = future_times(panel, 1)
    with pytest.raises(ValueError, match="more than one 'path', as a column of the data has"):
        write_paths(panel.layout, panel.ids, times, np.ones((2, 1, 1, 1)), model="path")
