"""A few rows at a time: what is taken a short way is what the long way gives."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tsrnn.data import future_times, read_panel, write_frame
from tsrnn.data._frequency import Stretch, parse_freq

FREQS = ["MS", "ME", "QS-JAN", "YE-DEC", "W-SUN", "D", "2D", "B", "h", "15min", "BME", "BQS-JAN"]


def dates(freq, periods, start="2019-05-04"):
    return pd.date_range(start, periods=periods, freq=freq).as_unit("ns")


class TestStretch:
    @settings(max_examples=60, deadline=None)
    @given(
        freq=st.sampled_from(FREQS),
        starts=st.lists(st.integers(0, 100), min_size=1, max_size=6),
        h=st.sampled_from([1, 12, 255, 256, 400]),
    )
    def test_is_the_calendar(self, freq, starts, h):
        whole, stretch = dates(freq, 501, "1690-05-04"), Stretch(freq)
        for start in starts:
            ahead = stretch.after(whole.to_numpy()[start : start + 1], h)
            expected = whole[start + 1 : start + 1 + h]
            np.testing.assert_array_equal(ahead, expected.to_numpy())
            index = stretch.index(ahead)
            pd.testing.assert_index_equal(index, expected)
            assert index.freq == expected.freq

    def test_last_times_off_the_calendar(self):
        last = np.array(["2024-01-17"], "datetime64[ns]")
        stretch, grid = Stretch("MS"), parse_freq("MS")
        expected = grid.advance(last, np.arange(1, 4), None)
        np.testing.assert_array_equal(stretch.after(last, 3), expected)
        assert stretch.index(expected).freqstr == "MS"

    def test_other_timestamps_have_no_index(self):
        stretch = Stretch("MS")
        ahead = stretch.after(np.array(["2024-01-01"], "datetime64[ns]"), 3)
        assert stretch.index(ahead + np.timedelta64(1, "h")) is None
        assert stretch.index(ahead[::2]) is None

    def test_close_to_the_end_of_the_calendar(self):
        years = pd.Series(np.arange(50.0), dates("YS", 50, "2200-01-01"))
        panel = read_panel(years)
        forecast = {"": np.zeros((1, 10, 1))}
        out = write_frame(panel.layout, panel.ids, future_times(panel, 10), forecast)
        pd.testing.assert_index_equal(out.index, dates("YS", 10, "2250-01-01"), exact="equiv")
        assert out.index.freqstr == "YS-JAN"
        with pytest.raises(ValueError, match="between the years 1678 and 2261"):
            future_times(panel, 14)

    def test_what_is_given_can_be_changed(self):
        panel = read_panel(pd.Series(np.arange(5.0), dates("MS", 5)))
        times = future_times(panel, 3)
        kept = times.copy()
        times += np.timedelta64(1, "D")
        np.testing.assert_array_equal(future_times(panel, 3), kept)
        out = write_frame(panel.layout, panel.ids, kept, {"": np.zeros((1, 3, 1))})
        out.index.name = "month"
        out.index.freq = None
        again = write_frame(panel.layout, panel.ids, kept, {"": np.zeros((1, 3, 1))})
        assert again.index.name is None
        assert again.index.freqstr == "MS"

    def test_labels_are_not_shared(self):
        panel = read_panel(pd.DataFrame({"y": range(5), "z": range(5)}, dates("MS", 5)))
        ahead = future_times(panel, 2), {"": np.zeros((1, 2, 2))}
        out = write_frame(panel.layout, panel.ids, *ahead)
        out.columns.name = "variable"
        assert write_frame(panel.layout, panel.ids, *ahead).columns.name is None


class TestNumbers:
    ROWS = (1, 40)  # few and many

    @pytest.mark.parametrize(
        "column",
        [
            np.arange(40),
            np.arange(40, dtype="uint8"),
            np.arange(40, dtype="float32") / 3,
            2**62 + np.arange(40),
            pd.array(range(40), dtype="Int64"),
            pd.array(range(40), dtype="Float32"),
        ],
        ids=["int", "uint8", "float32", "large", "Int64", "Float32"],
    )
    def test_few_rows_are_read_as_many(self, column):
        frame = pd.DataFrame({"y": column, "z": np.arange(40.0)}, dates("MS", 40))
        whole = read_panel(frame).values
        for i in range(3):
            row = read_panel(frame[i : i + 1], freq="MS").values
            np.testing.assert_array_equal(row, whole[i : i + 1])

    @pytest.mark.parametrize(
        "column",
        [
            pd.Categorical(range(40)),
            np.arange(40) > 3,
            np.arange(40) * 1j,
            [f"step {i}" for i in range(40)],
            pd.array(np.arange(40) > 3, dtype="boolean"),
            pd.to_timedelta(np.arange(40), "D"),
        ],
        ids=["category", "bool", "complex", "text", "boolean", "timedelta"],
    )
    @pytest.mark.parametrize("others", [{}, {"z": np.arange(40.0)}], ids=["alone", "beside"])
    def test_few_rows_are_refused_as_many(self, column, others):
        frame = pd.DataFrame({"y": column} | others, dates("MS", 40))
        said = []
        for rows in self.ROWS:
            with pytest.raises(TypeError, match="must be numeric|holds labels") as refused:
                read_panel(frame[:rows], freq="MS")
            said.append(str(refused.value).partition("(such as")[0])
        assert said[0] == said[1]

    @pytest.mark.parametrize("ids", [["a"], [3], [2.5], pd.Categorical(["a"])], ids=repr)
    def test_the_id_of_one_row(self, ids):
        frame = pd.DataFrame({"unique_id": ids, "ds": dates("MS", 1), "y": [1.0]})
        twice = pd.concat([frame, frame.assign(ds=dates("MS", 2)[1:])])
        one, two = (read_panel(rows, freq="MS").ids for rows in (frame, twice))
        pd.testing.assert_index_equal(one, two)

    def test_a_missing_id_of_one_row(self):
        frame = pd.DataFrame({"unique_id": [None], "ds": dates("MS", 1), "y": [1.0]})
        with pytest.raises(ValueError, match="must name a series in each row; 1 ids are missing"):
            read_panel(frame, freq="MS")
