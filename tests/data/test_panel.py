"""Reading: what ends up in a panel."""

import dataclasses
import json
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

from tsrnn.data import Layout, check_continues, future_times, read_panel

ETTH1 = Path(__file__).parents[3] / "shared" / "data" / "ett" / "ETTh1.csv.gz"


def long(lengths, **columns):
    """Return daily series "a", "b", ... of given lengths with values 0, 1, 2, ..."""
    start = pd.Timestamp("2020-01-01")
    parts = [
        pd.DataFrame({"unique_id": "abcdefgh"[i], "ds": pd.date_range(start, periods=n)})
        for i, n in enumerate(lengths)
    ]
    frame = pd.concat(parts, ignore_index=True)
    return frame.assign(y=np.arange(len(frame), dtype=float), **columns)


def wide(n=6, **columns):
    index = pd.date_range("2020-01-01", periods=n, freq="MS", name="month")
    return pd.DataFrame({"a": np.arange(n), "b": np.arange(n) ** 2.0, **columns}, index=index)


class TestLong:
    def test_rows_sorted_by_series_in_order_of_appearance(self):
        frame = long([3, 4, 2]).sort_values("ds", kind="stable").iloc[[2, 0, 1, *range(3, 9)]]
        panel = read_panel(frame)
        assert list(panel.ids) == ["c", "a", "b"]
        np.testing.assert_array_equal(panel.lengths, [2, 3, 4])
        np.testing.assert_array_equal(panel.values[:, 0], [7, 8, 0, 1, 2, 3, 4, 5, 6])
        np.testing.assert_array_equal(panel.series(1)[:, 0], [0, 1, 2])
        assert panel.values.dtype == np.float64
        assert panel.indptr.dtype == np.int64

    def test_columns(self):
        frame = long([3], price=[1, 2, 3], holiday=[True, False, True])
        panel = read_panel(frame)
        assert (panel.target_names, panel.exog_names) == (("y",), ("price", "holiday"))
        np.testing.assert_array_equal(panel.exog, [[1, 1], [2, 0], [3, 1]])
        panel = read_panel(frame, target=["price", "y"])
        assert (panel.target_names, panel.exog_names) == (("price", "y"), ("holiday",))
        np.testing.assert_array_equal(panel.values, [[1, 0], [2, 1], [3, 2]])
        assert read_panel(frame, exog=("holiday", "price")).exog_names == ("holiday", "price")

    def test_other_names_and_no_ids(self):
        frame = long([3]).rename(columns={"unique_id": "shop", "ds": "day"})
        assert read_panel(frame, id_col="shop", time_col="day").layout.id_col == "shop"
        panel = read_panel(frame.drop(columns="shop"), time_col="day")
        assert (panel.n_series, panel.layout.id_col, panel.layout.time_col) == (1, None, "day")

    @pytest.mark.parametrize("ids", [[3, 3, 1, 1], [2.5, 2.5, 0.5, 0.5], list("bbaa")])
    def test_ids_keep_their_dtype_and_categories_become_values(self, ids):
        frame = long([2, 2]).assign(unique_id=ids)
        panel = read_panel(frame)
        expected = pd.Index([ids[0], ids[2]])
        pd.testing.assert_index_equal(panel.ids, expected, check_names=False)
        panel = read_panel(frame.astype({"unique_id": "category"}))
        pd.testing.assert_index_equal(panel.ids, expected, check_names=False)

    def test_the_index_of_a_long_frame_means_nothing(self):
        frame = long([3, 3])
        frame.index = pd.Index([7] * 6, name="anything")
        np.testing.assert_array_equal(read_panel(frame).values, read_panel(long([3, 3])).values)

    def test_many_series(self):
        n_series, n = 100_000, 10
        frame = pd.DataFrame(
            {
                "unique_id": np.tile(np.arange(n_series), n),
                "ds": np.repeat(pd.date_range("2020-01-31", periods=n, freq="ME"), n_series),
                "y": np.arange(n * n_series, dtype=np.float32),
            }
        )
        panel = read_panel(frame)
        assert (panel.n_series, panel.freq, panel.values.shape) == (n_series, "ME", (10**6, 1))
        np.testing.assert_array_equal(panel.series(7)[:, 0], 7 + n_series * np.arange(n))
        assert future_times(panel, 12).shape == (n_series, 12)


class TestWide:
    def test_frame(self):
        panel = read_panel(wide())
        assert (panel.target_names, panel.exog_names, panel.freq) == (("a", "b"), (), "MS")
        np.testing.assert_array_equal(panel.values[:, 1], np.arange(6.0) ** 2)
        panel = read_panel(wide(), target="b")
        assert (panel.target_names, panel.exog_names) == (("b",), ("a",))

    @pytest.mark.parametrize("name", ["sales", None, 3])
    def test_series(self, name):
        panel = read_panel(wide()["b"].rename(name))
        assert panel.target_names == ("y" if name is None else name,)
        assert panel.layout.series_name == name

    def test_columns_in_another_order(self):
        panel = read_panel(wide())
        again = read_panel(wide()[["b", "a"]], layout=panel.layout)
        np.testing.assert_array_equal(again.values, panel.values)

    def test_a_series_of_another_name_continues(self):
        layout = read_panel(wide()["b"]).layout
        assert read_panel(wide()["a"].rename("other"), layout=layout).target_names == ("b",)

    def test_a_column_picked_by_its_position(self):
        frame = pd.DataFrame(np.ones((5, 2)), columns=np.array([7, 8]))
        column = frame.iloc[:, 1].rename(np.int64(8))  # as versions of pandas name it
        panel = read_panel(column)
        assert panel.target_names == (8,)
        assert type(panel.layout.series_name) is int

    def test_integer_column_names(self):
        assert read_panel(wide().set_axis([0, 1], axis=1)).target_names == (0, 1)

    @pytest.mark.parametrize("dtype", ["float32", "int8", "Int64", "Float64", "uint16"])
    def test_numbers_become_float64(self, dtype):
        panel = read_panel(wide(5).astype(dtype))
        assert panel.values.dtype == np.float64
        np.testing.assert_array_equal(panel.values[:, 1], np.arange(5.0) ** 2)


class TestPolars:
    def test_is_read_as_pandas_is(self):
        frame = long([3, 4], price=np.arange(7), open=[True] * 7)
        panel, expected = read_panel(pl.from_dict(frame.to_dict("list"))), read_panel(frame)
        for name in ("values", "exog", "times", "indptr"):
            np.testing.assert_array_equal(getattr(panel, name), getattr(expected, name))
        assert list(panel.ids) == list(expected.ids)
        assert panel.layout.backend == "polars"

    def test_nulls_are_missing_values(self):
        frame = pl.DataFrame({"ds": [1, 2, 3], "y": [1, None, 3], "x": [True, None, False]})
        panel = read_panel(frame, missing="interpolate")
        np.testing.assert_array_equal(panel.values[:, 0], [1, 2, 3])
        np.testing.assert_array_equal(panel.exog[:, 0], [1, 0.5, 0])

    @pytest.mark.parametrize("dtype", [pl.Categorical, pl.Enum(["a", "b"]), pl.String])
    def test_ids(self, dtype):
        ids = pl.Series(["b", "b", "a", "a"], dtype=dtype)
        panel = read_panel(pl.DataFrame({"unique_id": ids, "ds": [1, 2, 1, 2], "y": [0.0] * 4}))
        assert list(panel.ids) == ["b", "a"]


class TestMissing:
    def test_interior_values_are_filled_linearly(self):
        y = [0, np.nan, np.nan, 3, 10, np.nan, 30]
        frame = long([4, 3]).assign(y=y, x=[0, 1, 2, 3, 4, np.nan, 6])
        panel = read_panel(frame, missing="interpolate")
        np.testing.assert_allclose(panel.values[:, 0], [0, 1, 2, 3, 10, 20, 30])
        np.testing.assert_allclose(panel.exog[:, 0], range(7))

    @pytest.mark.parametrize("freq", ["D", "B", "MS", "QE-DEC", "h", "W-TUE"])
    @pytest.mark.parametrize("tz", [None, "America/New_York"])
    def test_rows_are_inserted(self, freq, tz):
        index = pd.date_range("2021-02-01", periods=40, freq=freq, tz=tz)
        full = pd.Series(np.arange(40.0), index=index)
        kept = np.delete(np.arange(40), [3, 4, 20])
        holes = pd.DataFrame({"ds": index[kept], "y": full.to_numpy()[kept]})
        two = pd.concat([holes.assign(unique_id="p"), holes.assign(unique_id="q")])
        panel, expected = read_panel(two, missing="interpolate"), read_panel(full)
        assert panel.freq == freq
        for i in range(2):
            np.testing.assert_allclose(panel.series(i), expected.values)
        np.testing.assert_array_equal(panel.times, np.tile(expected.times, 2))

    def test_a_short_series_with_gaps_beside_long_ones(self):
        frame = long([9, 6]).drop(index=[10, 12, 13])  # of b, days 1, 3 and 6 are left
        panel = read_panel(frame, missing="interpolate")
        np.testing.assert_allclose(panel.values[:, 0], range(15))
        frame = frame.drop(index=[9])
        assert read_panel(frame, missing="interpolate").n_series == 2

    def test_rows_of_periods_and_integers_are_inserted(self):
        index = pd.PeriodIndex(["2020Q1", "2020Q2", "2021Q1"], freq="Q")
        panel = read_panel(pd.Series([0.0, 1.0, 4.0], index=index), missing="interpolate")
        np.testing.assert_allclose(panel.values[:, 0], range(5))
        series = pd.Series([0.0, 1.0, 2.0, 4.0], index=[0, 2, 4, 8])
        panel = read_panel(series, missing="interpolate")
        np.testing.assert_array_equal(panel.times, [0, 2, 4, 6, 8])

    def test_missing_values_are_kept_wherever_they_are(self):
        y = [np.nan, 1, np.nan, 3, np.nan, np.nan, np.nan]
        frame = long([4, 3]).assign(y=y, x=range(7))
        panel = read_panel(frame, missing="keep")
        np.testing.assert_array_equal(panel.values[:, 0], y)
        np.testing.assert_array_equal(panel.exog[:, 0], range(7))
        assert list(panel.lengths) == [4, 3]

    def test_rows_without_an_exogenous_value_have_no_target(self):
        frame = long([4, 3]).assign(x=[5, np.nan, 6, np.nan, np.nan, 7, np.nan], z=range(7))
        frame = frame.assign(y=np.arange(7.0))
        kept = read_panel(frame, missing="keep")
        np.testing.assert_array_equal(kept.exog[:, 0], frame["x"])
        panel = kept.complete_cases()
        np.testing.assert_array_equal(panel.values[:, 0], frame["y"].where(frame["x"].notna()))
        np.testing.assert_array_equal(panel.exog[:, 0], [5, 5, 6, 6, 0, 7, 7])
        np.testing.assert_array_equal(panel.exog[:, 1], range(7))

    def test_exogenous_values_of_inserted_rows_are_missing(self):
        frame = pd.DataFrame({"y": [1.0, 2, 3], "x": [4.0, 5, 6]}, [0, 1, 3])
        panel = read_panel(frame, target="y", missing="keep", freq=1)
        np.testing.assert_array_equal(panel.exog[:, 0], [4, 5, np.nan, 6])

    @pytest.mark.parametrize("freq", ["D", "B", "MS", "QE-DEC", "h"])
    @pytest.mark.parametrize("tz", [None, "America/New_York"])
    def test_rows_are_inserted_and_kept_missing(self, freq, tz):
        index = pd.date_range("2021-02-01", periods=40, freq=freq, tz=tz)
        full = pd.DataFrame(np.arange(80.0).reshape(40, 2), index, columns=["a", "b"])
        gone = [3, 4, 20]
        panel, expected = read_panel(full.drop(index[gone]), missing="keep"), read_panel(full)
        np.testing.assert_array_equal(panel.times, expected.times)
        assert np.isnan(panel.values[gone]).all()
        np.testing.assert_array_equal(
            np.delete(panel.values, gone, 0), np.delete(expected.values, gone, 0)
        )

    def test_what_is_complete_is_read_alike(self):
        frame = long([5, 3], x=np.arange(8.0))
        kept, read = read_panel(frame, missing="keep"), read_panel(frame)
        for name in ("values", "exog", "times", "indptr"):
            np.testing.assert_array_equal(getattr(kept, name), getattr(read, name))


class TestMemory:
    def test_the_frame_and_the_panel_are_apart(self):
        frame = pd.DataFrame({"y": np.arange(5.0)})
        panel = read_panel(frame)
        panel.values[0] = 99.0
        panel.times[0] = 99
        assert frame["y"].iloc[0] == 0.0
        assert frame.index[0] == 0

    def test_views(self):
        panel = read_panel(long([3, 3, 3]))
        assert np.shares_memory(panel.series(1), panel.values)
        neighbours = panel.select(["b", "c"])
        assert np.shares_memory(neighbours.values, panel.values)
        assert np.shares_memory(panel.tail(5).values, panel.values)


class TestParts:
    def test_tail(self):
        panel = read_panel(long([3, 1, 5])).tail(2)
        np.testing.assert_array_equal(panel.values[:, 0], [1, 2, 3, 7, 8])
        np.testing.assert_array_equal(panel.lengths, [2, 1, 2])
        assert panel.exog.shape == (5, 0)

    def test_select(self):
        panel = read_panel(long([3, 1, 5]))
        some = panel.select(["c", "a"])
        assert list(some.ids) == ["c", "a"]
        np.testing.assert_array_equal(some.values[:, 0], [4, 5, 6, 7, 8, 0, 1, 2])
        np.testing.assert_array_equal(some.last_times, panel.last_times[[2, 0]])
        same = panel.select(panel.lengths > 2)
        assert list(same.ids) == ["a", "c"]

    @pytest.mark.parametrize(
        ("which", "told"),
        [
            (["a", "z"], "unknown or repeated are 'z'"),
            (["a", "a"], "unknown or repeated are 'a'"),
            (np.array([True]), "one entry a series, 3"),
            (np.zeros(3, bool), "got none"),
        ],
    )
    def test_select_refuses(self, which, told):
        with pytest.raises(ValueError, match=told):
            read_panel(long([3, 1, 5])).select(which)

    def test_tail_refuses(self):
        with pytest.raises(ValueError, match="n must be at least 1; got 0"):
            read_panel(long([3])).tail(0)

    def test_pickle_and_frozen(self):
        panel = read_panel(long([3, 2]))
        again = pickle.loads(pickle.dumps(panel))
        np.testing.assert_array_equal(again.values, panel.values)
        with pytest.raises(dataclasses.FrozenInstanceError):
            panel.values = None


class TestBetween:
    def test_rows_of_each_series(self):
        panel = read_panel(long([5, 7]))
        part = panel.between(np.array([1, 0]), np.array([3, 7]))
        np.testing.assert_array_equal(part.lengths, [2, 7])
        np.testing.assert_array_equal(part.series(0), panel.series(0)[1:3])
        np.testing.assert_array_equal(part.series(1), panel.series(1))
        np.testing.assert_array_equal(part.times[:2], panel.times[1:3])

    @pytest.mark.parametrize(
        ("starts", "ends"), [((0, 0), (5, 8)), ((-1, 0), (2, 2)), ((2, 0), (2, 1))]
    )
    def test_rows_that_are_not_there(self, starts, ends):
        with pytest.raises(ValueError, match="rows must lie within"):
            read_panel(long([5, 7])).between(np.array(starts), np.array(ends))


class TestLayout:
    @pytest.mark.parametrize(
        "data", [long([3, 2]), wide(), wide()["a"], pl.from_dict(long([3]).to_dict("list"))]
    )
    def test_survives_json(self, data):
        layout = read_panel(data).layout
        assert Layout.from_dict(json.loads(json.dumps(layout.to_dict()))) == layout

    def test_unknown_fields(self):
        with pytest.raises(ValueError, match="a layout has the fields"):
            Layout.from_dict({"kind": "long"})

    def test_names_its_own_columns(self):
        frame = long([3]).rename(columns={"unique_id": "shop", "ds": "day"})
        layout = read_panel(frame, id_col="shop", time_col="day").layout
        assert read_panel(frame, layout=layout).layout == layout


class TestContinues:
    def test_new_rows_of_some_series(self):
        frame = long([4, 3])
        panel = read_panel(frame)
        rows = pd.DataFrame({"unique_id": ["b"], "ds": [pd.Timestamp("2020-01-04")], "y": [1.0]})
        new = read_panel(rows, layout=panel.layout)
        check_continues(new, panel.ids, panel.last_times, panel.freq)

    @pytest.mark.parametrize("day", ["2020-01-03", "2020-01-05"])
    def test_overlap_and_gap(self, day):
        panel = read_panel(long([4, 3]))
        rows = pd.DataFrame({"unique_id": ["b"], "ds": [pd.Timestamp(day)], "y": [1.0]})
        new = read_panel(rows, layout=panel.layout)
        told = rf"series 'b': new rows must begin at 2020-01-04.* they begin at {day}"
        with pytest.raises(ValueError, match=told):
            check_continues(new, panel.ids, panel.last_times, panel.freq)

    def test_unknown_series(self):
        panel = read_panel(long([4, 3]))
        with pytest.raises(ValueError, match="unknown are 'b'"):
            check_continues(panel, ["a"], panel.last_times[:1], panel.freq)

    def test_periods(self):
        index = pd.period_range("2020-01", periods=6, freq="M")
        series = pd.Series(np.arange(6.0), index=index)
        panel = read_panel(series[:3])
        new = read_panel(series[3:], layout=panel.layout)
        check_continues(new, panel.ids, panel.last_times, panel.freq)
        late = read_panel(series[4:], layout=panel.layout)
        with pytest.raises(ValueError, match=r"must begin at 2020-04.*they begin at 2020-05"):
            check_continues(late, panel.ids, panel.last_times, panel.freq)


@pytest.mark.skipif(not ETTH1.exists(), reason="needs shared/data/ett/ETTh1.csv.gz")
def test_hourly_transformer_data():
    frame = pd.read_csv(ETTH1, parse_dates=["date"])
    panel = read_panel(frame, target="OT", time_col="date")
    assert (panel.freq, panel.n_series, len(panel.exog_names)) == ("h", 1, 6)
    np.testing.assert_allclose(panel.values[:, 0], frame["OT"])
