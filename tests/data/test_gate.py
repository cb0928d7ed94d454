"""Thousands of columns and series: read all at once as they would be one by one."""

import re

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tsrnn.data import (
    future_times,
    panel_frame,
    read_future,
    read_panel,
    read_series,
    to_polars,
    write_frame,
    write_paths,
)

START = pd.Timestamp("2024-01-01")
DTYPES = (
    "float64", "float64", "float32", "float16", "int64", "int8", "uint64", "bool", "boolean",
    "Int64", "UInt8", "Float64", "object", "category", "complex128", "str", "Sparse[float64]",
)  # fmt: skip


@st.composite
def columns(draw, n):
    """A column of some dtype, perhaps with a missing or an infinite value."""
    dtype = draw(st.sampled_from(DTYPES))
    if dtype.lower() in ("int64", "uint64"):  # beyond 2**53 floats leave numbers out
        whole = st.integers(0 if dtype == "uint64" else -(2**62), 2**63 - 1)
        column = pd.Series(draw(st.lists(whole, min_size=n, max_size=n)), dtype=dtype)
    else:
        numbers = draw(st.lists(st.integers(0, 100), min_size=n, max_size=n))
        values = np.array(numbers) > 50 if "bool" in dtype else np.array(numbers) / 8
        column = pd.Series(values // 1 if "int" in dtype.lower() else values).astype(dtype)
    holes = dtype in ("float64", "float32", "Int64", "Float64", "boolean", "object")
    if holes and draw(st.integers(0, 3)) == 0:
        infinite = dtype.startswith("float") and draw(st.booleans())
        column[draw(st.integers(0, n - 1))] = np.inf if infinite else None
    return column


@st.composite
def wide_frames(draw):
    """Columns side by side: in blocks as they came, or put together."""
    n = draw(st.integers(3, 6))
    made = draw(st.lists(columns(n), min_size=1, max_size=8))
    frame = pd.DataFrame({f"y{i}": column for i, column in enumerate(made)})
    frame = frame.copy() if draw(st.booleans()) else frame  # a copy puts blocks together
    return frame.set_index(pd.date_range(START, periods=n))


def one_by_one(frame, missing):
    """Values of columns read alone; the first column of no numbers is refused before others."""
    read, refused = [], []
    for name in frame.columns:
        try:
            read.append(read_panel(frame[[name]], missing=missing).values)
        except (TypeError, ValueError) as error:
            refused.append(error)
    refused.sort(key=lambda error: not isinstance(error, TypeError))
    if refused:
        raise refused[0]
    return np.hstack(read)


def as_floats(column):
    """Numbers as Python rounds them; missing ones are NaN."""
    return [np.nan if pd.isna(value) else float(value) for value in column.tolist()]


def outcome(read):
    """What was read, bit for bit, or the type and the message of the error."""
    try:
        return read().tobytes()
    except (TypeError, ValueError) as error:
        # Columns of labels are refused before others, and named together.
        no_numbers = re.search("holds? labels|must be numeric", str(error))
        return type(error), "no numbers" if no_numbers else str(error)


class TestColumns:
    @pytest.mark.few("keep")
    @pytest.mark.parametrize("missing", ["error", "interpolate", "keep"])
    @settings(max_examples=40, deadline=None)
    @given(frame=wide_frames())
    def test_together_as_one_by_one(self, frame, missing):
        came = outcome(lambda: read_panel(frame, missing=missing).values)
        assert came == outcome(lambda: one_by_one(frame, missing))

    @settings(max_examples=40, deadline=None)
    @given(frame=wide_frames())
    def test_values_are_those_of_the_frame(self, frame):
        try:
            panel = read_panel(frame, missing="keep")
        except (TypeError, ValueError):
            return
        for j, name in enumerate(frame.columns):
            np.testing.assert_array_equal(panel.values[:, j], as_floats(frame[name]))

    @settings(max_examples=20, deadline=None)
    @given(frame=wide_frames())
    def test_some_of_them_in_another_order(self, frame):
        numbers = frame.select_dtypes(["number"]).dropna(axis=1).iloc[:, ::-1]
        if numbers.shape[1] < 2 or numbers.dtypes.map(lambda dtype: dtype.kind == "c").any():
            return

        def read():
            panel = read_panel(numbers, target=numbers.columns[0])
            return np.hstack([panel.values, panel.exog])

        assert outcome(read) == outcome(lambda: one_by_one(numbers, "error"))


def many(n_series=12, n=9, zone=None):
    """Series that begin on days of their own, one below the other."""
    days = pd.date_range(START, periods=n + 3, tz=zone)
    parts = [
        pd.DataFrame({"unique_id": f"s{i}", "ds": days[i % 3 : i % 3 + n], "y": i + np.arange(n)})
        for i in range(n_series)
    ]
    return pd.concat(parts, ignore_index=True)


FAULTS = {
    "none": lambda frame, at: frame,
    "gap": lambda frame, at: frame.drop(index=frame.index[at]),
    "repeated": lambda frame, at: frame.loc[frame.index.insert(at, frame.index[at])],
    "swapped": lambda frame, at: frame.iloc[[*range(at), at + 1, at, *range(at + 2, len(frame))]],
    "off the grid": lambda frame, at: frame.assign(
        ds=frame["ds"] + pd.to_timedelta((np.arange(len(frame)) == at).astype(int), "h")
    ),
    "infinite": lambda frame, at: frame.assign(
        y=frame["y"].astype(float).where(np.arange(len(frame)) != at, np.inf)
    ),
}


class TestSeries:
    @pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
    @pytest.mark.parametrize("fault", FAULTS)
    def test_message_is_that_of_a_frame_of_two_of_them(self, fault, zone):
        frame = FAULTS[fault](many(zone=zone), 5 * 9 + 4)
        two = frame[frame["unique_id"].isin(["s4", "s5"])]

        def read(rows):
            panel = read_panel(rows, freq="D")
            return panel.select(["s4", "s5"]).values

        assert outcome(lambda: read(frame)) == outcome(lambda: read(two))

    @pytest.mark.parametrize("dtype", [object, "str", "category", "string"])
    @pytest.mark.parametrize("order", ["series", "time", "random"])
    def test_ids_in_any_order(self, order, dtype):
        frame = many()
        by_time = frame.sort_values("ds", kind="stable")
        if order == "random":  # within a series in the order of time
            at = np.random.default_rng(0).permutation(frame["unique_id"])
            rows = {label: iter(part) for label, part in frame.groupby("unique_id").groups.items()}
            by_time = frame.loc[[next(rows[label]) for label in at]]
        came = frame if order == "series" else by_time
        panel = read_panel(came.astype({"unique_id": dtype}))
        assert panel.ids.tolist() == came["unique_id"].drop_duplicates().tolist()
        for i, label in enumerate(panel.ids):
            expected = came.loc[came["unique_id"] == label, "y"]
            np.testing.assert_array_equal(panel.series(i)[:, 0], expected)

    def test_ids_that_cannot_be_compared(self):
        frame = many(2).astype({"unique_id": object})
        frame["unique_id"] = [pd.NA if row == 3 else "a" for row in range(len(frame))]
        with pytest.raises(ValueError, match="1 ids are missing, at row 3"):
            read_panel(frame)

    def test_more_series_than_sixteen_bits_count(self):
        n = 2**16 + 7
        days = pd.date_range(START, periods=2)
        ids = np.tile(np.arange(n)[::-1], 2)
        frame = pd.DataFrame({"unique_id": ids, "ds": days.repeat(n), "y": np.arange(2 * n)})
        panel = read_panel(frame)
        np.testing.assert_array_equal(panel.ids, ids[:n])
        np.testing.assert_array_equal(panel.values.reshape(n, 2), np.arange(2 * n).reshape(2, n).T)

    @pytest.mark.parametrize("step", [1, 3])
    def test_one_at_fault_of_many(self, step):
        frame = many(20).iloc[::step]
        frame = frame.assign(y=frame["y"].astype(float).where(frame["unique_id"] != "s7", np.inf))
        panel, faults = read_series(frame.sort_values("ds", kind="stable"), freq=f"{step}D")
        assert [*faults] == ["s7"]
        assert panel.n_series == 19


class TestPolars:
    def test_columns_of_numbers_as_one_by_one(self):
        days = pd.date_range(START, periods=3).to_numpy()
        columns = {
            "a": [1.5, None, 3.0], "n": [1, 2, None], "b": [4.0, 5.0, 6.0],
            "day": days, "m": [2**60 + 1, 2, 3], "k": [3, 2, 2**62 + 1],
        }  # fmt: skip
        frame = pl.DataFrame(columns)
        panel = read_panel(frame, missing="keep")
        assert panel.target_names == ("a", "n", "b", "m", "k")
        for j, name in enumerate(panel.target_names):
            np.testing.assert_array_equal(panel.values[:, j], as_floats(pd.Series(columns[name])))

    @pytest.mark.parametrize("dtype", [pl.String, pl.Categorical])
    def test_text_ids(self, dtype):
        frame = many().sort_values("ds", kind="stable")
        table = to_polars(frame).with_columns(pl.col("unique_id").cast(dtype))
        panel, expected = read_panel(table), read_panel(frame)
        assert panel.ids.equals(expected.ids)
        np.testing.assert_array_equal(panel.values, expected.values)
        holed = table.with_columns(pl.when(pl.int_range(pl.len()) != 2).then(pl.col("unique_id")))
        with pytest.raises(ValueError, match="1 ids are missing, at row 2"):
            read_panel(holed.rename({"literal": "unique_id"}, strict=False))


@pytest.fixture
def counted(monkeypatch):
    """Counts of calls, by name of a method of pandas or narwhals."""
    counts = {}

    def count(owner, method):
        original, name = getattr(owner, method), f"{owner.__name__}.{method}"
        counts[name] = 0

        def call(*given, **named):
            counts[name] += 1
            return original(*given, **named)

        monkeypatch.setattr(owner, method, call)

    for owner, method in [(pd.DataFrame, "__getitem__"), (pd.Series, "__init__")]:
        count(owner, method)
    count(nw.Series, "to_numpy")
    return counts


N_COLUMNS, FEW = 400, 60


def wide_frame(n=8):
    values = np.random.default_rng(0).normal(size=(n, N_COLUMNS))
    names = [f"y{i}" for i in range(N_COLUMNS)]
    return pd.DataFrame(values, pd.date_range(START, periods=n), names)


class TestNothingColumnByColumn:
    @pytest.mark.parametrize("separate", [True, False])
    def test_read(self, counted, separate):
        frame = wide_frame()
        if separate:
            frame = pd.DataFrame({name: frame[name].copy() for name in frame})
        counted.update(dict.fromkeys(counted, 0))
        read_panel(frame)
        read_panel(frame, target="y0")
        assert max(counted.values()) < FEW

    def test_integers_beside_a_range(self, counted):
        read_panel(wide_frame().reset_index(drop=True).round().astype("int64"))
        assert max(counted.values()) < FEW

    def test_polars(self, counted):
        table = to_polars(wide_frame().reset_index(names="day"))
        panel = read_panel(table)
        forecasts = {"": np.ones((1, 2, N_COLUMNS))}
        write_frame(panel.layout, panel.ids, future_times(panel, 2), forecasts)
        assert max(counted.values()) < FEW

    def test_write(self, counted):
        panel = read_panel(wide_frame())
        times = future_times(panel, 2)
        forecasts = {key: np.ones((1, 2, N_COLUMNS)) for key in ("", "-lo-80", "-hi-80")}
        write_frame(panel.layout, panel.ids, times, forecasts)
        write_paths(panel.layout, panel.ids, times, np.ones((3, 1, 2, N_COLUMNS)))
        panel_frame(panel)
        assert max(counted.values()) < FEW

    def test_known_ahead(self, counted):
        frame = wide_frame(8)
        panel = read_panel(frame[:6], target="y0")
        counted.update(dict.fromkeys(counted, 0))
        future = read_future(
            frame[6:].drop(columns="y0"), h=2, columns=panel.exog_names, panel=panel
        )
        assert max(counted.values()) < FEW
        np.testing.assert_array_equal(future[0], frame.iloc[6:, 1:])


class TestNothingRowByRow:
    def test_zone_is_asked_about_different_timestamps(self, monkeypatch):
        lengths = []
        original = pd.DatetimeIndex.tz_localize

        def localize(self, zone, *given, **named):
            lengths.append(0 if zone is None else len(self))
            return original(self, zone, *given, **named)

        frame = many(zone="Europe/Berlin")
        monkeypatch.setattr(pd.DatetimeIndex, "tz_localize", localize)
        read_panel(frame)
        assert max(lengths) == frame["ds"].nunique() < len(frame) / 4

    @pytest.mark.parametrize("written", ["%Y-%m-%d", "%Y-%m"])
    def test_text_is_parsed_once_a_date(self, monkeypatch, written):
        lengths = []
        original = pd.to_datetime

        def parse(texts, *given, **named):
            lengths.append(len(texts))
            return original(texts, *given, **named)

        monkeypatch.setattr(pd, "to_datetime", parse)
        frame = pd.DataFrame({"unique_id": np.repeat([*"abcdef"], 2), "y": np.arange(12.0)})
        days = pd.DatetimeIndex(["2024-01-01", "2025-01-01"]).strftime(written)
        read_panel(frame.assign(ds=np.tile(days, 6)), freq="YS")
        assert lengths == [2]
