"""Files give the panel that a frame of the same rows gives, parquet read some rows at a time."""

import sys
from itertools import pairwise
from pathlib import Path
from tempfile import mkdtemp
from unittest import mock

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tsrnn.data import _files, read_panel

FOLDER = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def long(lengths=(5, 3, 4), *, names="abc", freq="D", tz=None):
    """Return a long frame of series of some lengths, sorted by series."""
    draw = np.random.default_rng(len(lengths))
    parts = [
        pd.DataFrame({
            "unique_id": [name] * n,
            "ds": pd.date_range("2020-03-01", periods=n, freq=freq, tz=tz),
            "y": draw.normal(size=n),
        })
        for name, n in zip(names, lengths, strict=True)
    ]  # fmt: skip
    return pd.concat(parts, ignore_index=True)


def to_polars(frame):
    """Return a pandas frame as a polars one, from its values alone."""
    columns = {}
    for name, column in frame.items():
        if isinstance(column.dtype, pd.DatetimeTZDtype):
            utc = pl.Series(column.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy())
            zone = str(column.dt.tz)
            columns[name] = utc.dt.replace_time_zone("UTC").dt.convert_time_zone(zone)
        else:
            plain = column.dtype.kind in "iufbM"
            columns[name] = column.to_numpy() if plain else column.astype(object).tolist()
    return pl.DataFrame(columns)


def write(folder, frame, cuts=()):
    """Write the rows of a frame to files of a folder, cut at some rows."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = to_polars(frame)
    for i, (low, high) in enumerate(pairwise([0, *cuts, len(frame)])):
        rows[low:high].write_parquet(folder / f"{i:03d}.parquet")
    return folder


def same(actual, expected):
    """Compare panels, their arrays with their dtypes."""
    for name in ("values", "indptr", "times", "exog"):
        ours, theirs = getattr(actual, name), getattr(expected, name)
        np.testing.assert_array_equal(ours, theirs)
        assert ours.dtype == theirs.dtype
    pd.testing.assert_index_equal(actual.ids, expected.ids)
    assert actual.exog_names == expected.exog_names
    assert actual.layout == expected.layout


def told(error, data, *parts, **options):
    with pytest.raises(error) as caught:
        read_panel(data, **options)
    for part in parts:
        assert part in str(caught.value)


class TestSamePanel:
    @pytest.mark.slow
    @given(
        lengths=st.lists(st.integers(2, 9), min_size=1, max_size=4),
        seed=st.integers(0, 99),
        at_once=st.integers(1, 12),
        n_files=st.integers(1, 4),
        data=st.data(),
    )
    @FOLDER
    def test_rows_interleaved_over_files(self, tmp_path, lengths, seed, at_once, n_files, data):
        frame = long(lengths, names="abcd"[: len(lengths)])
        # Series in any order among each other, each in its own order of time.
        draw = np.random.default_rng(seed)
        owners = draw.permutation(frame["unique_id"].to_numpy())
        place = {name: iter(rows) for name, rows in frame.groupby("unique_id").indices.items()}
        frame = frame.iloc[[next(place[name]) for name in owners]]
        cuts = data.draw(st.lists(st.integers(0, len(frame)), min_size=n_files - 1,
                                  max_size=n_files - 1).map(sorted))  # fmt: skip
        folder = write(Path(mkdtemp(dir=tmp_path)), frame, cuts)
        with mock.patch.object(_files, "ROWS_AT_ONCE", at_once):
            same(read_panel(folder, freq="D"), read_panel(frame, freq="D"))

    @pytest.mark.parametrize(
        "change",
        [
            pytest.param({"unique_id": lambda f: f["unique_id"].map(ord)}, id="integer ids"),
            pytest.param(
                {"unique_id": lambda f: f["unique_id"].map(ord).astype("int16")}, id="short ids"
            ),
            pytest.param({"ds": lambda f: np.tile(np.arange(6), 2)}, id="integer times"),
            pytest.param({"y": lambda f: np.arange(12)}, id="integer target"),
            pytest.param({"y": lambda f: f["y"].astype("float32")}, id="float32"),
            pytest.param(
                {"x": lambda f: f["y"] > 0, "w": lambda f: np.arange(12, dtype="int8")},
                id="exogenous columns",
            ),
        ],
    )
    def test_columns_of_all_types(self, tmp_path, change):
        frame = long((6, 6), names="ba").assign(**change)
        with mock.patch.object(_files, "ROWS_AT_ONCE", 5):
            same(read_panel(write(tmp_path, frame)), read_panel(frame))

    @pytest.mark.parametrize("tz", ["UTC", "Europe/Berlin"])
    def test_time_zones(self, tmp_path, tz):
        frame = long((40, 30), names="ab", freq="D", tz=tz)  # clocks change within
        same(read_panel(write(tmp_path, frame)), read_panel(frame))

    def test_one_series_without_ids(self, tmp_path):
        frame = long((9,), names="a").drop(columns="unique_id")
        panel = read_panel(write(tmp_path, frame) / "000.parquet")
        same(panel, read_panel(frame))
        assert panel.layout.id_col is None

    def test_a_file_by_name_or_path(self, tmp_path):
        frame = long()
        file = write(tmp_path / "a [b]*", frame) / "000.parquet"
        for data in (file, str(file), file.parent, str(file.parent)):
            same(read_panel(data), read_panel(frame))

    def test_names_and_treatment_of_missing_values(self, tmp_path):
        frame = long((8, 8), names="ab").rename(columns={"unique_id": "shop", "ds": "day"})
        frame["sales"], frame.loc[[3, 12], "sales"] = frame.pop("y"), np.nan
        frame = frame.drop(index=5)
        options = {"id_col": "shop", "time_col": "day", "target": "sales"}
        folder = write(tmp_path, frame, [7])
        for missing in ("interpolate", "keep"):
            ours = read_panel(folder, missing=missing, **options)
            same(ours, read_panel(frame, missing=missing, **options))

    def test_folders_that_name_a_column(self, tmp_path):
        frame = long((5, 5), names="ab")
        for name, part in frame.groupby("unique_id"):
            write(tmp_path / f"unique_id={name}", part.drop(columns="unique_id"))
        same(read_panel(tmp_path), read_panel(frame))

    def test_categories_of_polars(self, tmp_path):
        frame = long()
        columns = to_polars(frame).with_columns(pl.col("unique_id").cast(pl.Categorical))
        columns.write_parquet(tmp_path / "a.parquet")
        same(read_panel(tmp_path), read_panel(frame))

    def test_dates_come_back_as_timestamps(self, tmp_path):
        frame = to_polars(long()).with_columns(pl.col("ds").cast(pl.Date))
        frame.write_parquet(tmp_path / "a.parquet")
        panel, expected = read_panel(tmp_path), read_panel(long())
        np.testing.assert_array_equal(panel.times, expected.times)
        np.testing.assert_array_equal(panel.values, expected.values)
        assert (panel.layout.backend, panel.layout.time_dtype) == ("pandas", "date")

    def test_the_shape_fitted_to(self, tmp_path):
        frame = long((6, 6), names="ab").assign(x=1.0)
        layout = read_panel(frame).layout
        folder = write(tmp_path, frame)
        same(read_panel(folder, layout=layout, exog=("x",)), read_panel(frame))
        told(ValueError, folder, "missing 'w'", layout=layout, exog=("w",))
        wide = read_panel(frame.pivot(index="ds", columns="unique_id", values="y")).layout
        told(ValueError, folder, "frame must be wide", layout=wide)


class TestCsv:
    """CSV files are read as the frame that they were written from, but ids are text."""

    def test_a_file_a_folder_and_a_pattern(self, tmp_path):
        frame = long()
        frame[:5].to_csv(tmp_path / "a.csv", index=False)
        frame[5:].to_csv(tmp_path / "b.csv.gz", index=False)
        (tmp_path / "_aside.csv").write_text("x")
        for data in (tmp_path, str(tmp_path / "*.csv*")):
            same(read_panel(data), read_panel(frame))
        frame.to_csv(tmp_path / "all.txt", index=False)
        same(read_panel(tmp_path / "all.txt"), read_panel(frame))

    def test_parquet_without_a_suffix(self, tmp_path):
        file = write(tmp_path, long()) / "000.parquet"
        same(read_panel(file.rename(tmp_path / "data")), read_panel(long()))

    def test_ids_are_text_steps_are_numbers_and_fields_are_missing(self, tmp_path):
        (tmp_path / "a.csv").write_text("unique_id,ds,y\n007,1999,1\n007,2000,NA\n007,2001,3\n")
        panel = read_panel(tmp_path / "a.csv", missing="interpolate")
        assert (panel.ids.tolist(), panel.freq, panel.values.ravel().tolist()) == (
            ["007"],
            1,
            [1.0, 2.0, 3.0],
        )

    def test_a_wide_file_and_more_of_it(self, tmp_path):
        frame = long().pivot(index="ds", columns="unique_id", values="y").ffill()
        frame.to_csv(tmp_path / "a.csv")
        panel = read_panel(tmp_path / "a.csv", time_col="ds", target=list("abc"))
        np.testing.assert_array_equal(panel.values, frame.to_numpy())
        months = frame.rename_axis("day")
        months.to_csv(tmp_path / "b.csv")
        panel = read_panel(tmp_path / "b.csv")
        assert (panel.layout.kind, panel.layout.time_col) == ("wide", "day")
        same(read_panel(tmp_path / "b.csv", layout=panel.layout), panel)

    def test_errors(self, tmp_path):
        long().to_csv(tmp_path / "a.csv", index=False)
        long().to_csv(tmp_path / "b.csv", index=False, sep=";")
        parts = "parted by ';'", "pd.read_csv(..., sep=';')"
        told(ValueError, tmp_path / "b.csv", *parts, strict=True)
        long().rename(columns={"y": "z"}).to_csv(tmp_path / "b.csv", index=False)
        told(ValueError, tmp_path, "b.csv must have the columns of", "a.csv")
        write(tmp_path, long())
        told(ValueError, tmp_path, "files must all be parquet, or all be CSV")
        (tmp_path / "c.csv").write_text("")
        told(ValueError, tmp_path / "c.csv", "c.csv must hold a table; it is empty")


class TestErrors:
    def test_no_such_file(self, tmp_path):
        told(FileNotFoundError, tmp_path / "none.parquet", "no parquet or CSV file is at", "Give")

    def test_folder_without_files(self, tmp_path):
        (tmp_path / "a.txt").write_text("y")
        told(FileNotFoundError, tmp_path, "no parquet or CSV file is at", str(tmp_path))

    def test_no_parquet_file(self, tmp_path):
        (tmp_path / "a.parquet").write_text("unique_id,ds,y")
        told(ValueError, tmp_path / "a.parquet", "a.parquet cannot be read as parquet")
        told(ValueError, tmp_path, "a.parquet cannot be read as parquet", "of one kind")

    def test_files_that_differ(self, tmp_path):
        write(tmp_path, long())
        to_polars(long().rename(columns={"y": "z"})).write_parquet(tmp_path / "b.parquet")
        told(
            ValueError,
            tmp_path,
            "must be files of one kind with the same columns of the same types",
        )

    def test_without_polars(self, tmp_path, monkeypatch):
        folder = write(tmp_path, long())

        monkeypatch.setitem(sys.modules, "polars", None)
        told(ImportError, folder, "pip install 'tsrnn[parquet]'")

    @pytest.mark.parametrize("at_once", [2, 100])
    def test_are_those_of_a_frame(self, tmp_path, monkeypatch, at_once):
        monkeypatch.setattr(_files, "ROWS_AT_ONCE", at_once)
        frame = long()
        nameless = frame["unique_id"].astype(object).where(frame.index != 7, None)
        cases = [
            (ValueError, frame.rename(columns={"ds": "t"}), "needs the time column 'ds'"),
            (ValueError, frame.rename(columns={"y": "z"}), "the target 'y' is not a column"),
            (TypeError, frame.assign(y=["a"] * 12), "the target 'y' must be numeric"),
            (TypeError, frame.assign(y=[True] * 12), "the target 'y' must be numeric"),
            (TypeError, frame.assign(note=frame["ds"]), "columns besides targets must be"),
            (TypeError, frame.assign(ds=np.arange(12.0)), "must hold datetimes"),
            (ValueError, frame.iloc[:0], "must have rows; it is empty"),
            (ValueError, frame.drop(index=2), "without gaps", "series 'a': 1 row"),
            (ValueError, pd.concat([frame, frame]), "duplicated are", "series 'b': 3 rows"),
            (ValueError, frame.assign(unique_id=nameless), "missing, at row 7"),
            (ValueError, frame.assign(ds=frame["ds"].where(frame.index != 9)), "(NaT) at row"),
        ]
        for i, (error, data, *parts) in enumerate(cases):
            told(error, write(tmp_path / str(i), data), *parts)

    def test_rows_are_counted_from_a_row_that_is_named(self, tmp_path, monkeypatch):
        monkeypatch.setattr(_files, "ROWS_AT_ONCE", 4)
        frame = long()
        frame.loc[9, "ds"] = pd.NaT
        told(ValueError, write(tmp_path, frame), "after the first 8 rows: ", "(NaT) at row 1")

    @pytest.mark.parametrize(
        ("late", "message"),
        [
            ("2001Q{}", "after the first 4 rows they are period"),
            ("2001-01-0{} 00:00+02:00", r"\(UTC\+02:00\), before .*\(no zone\)"),
        ],
    )
    def test_texts_of_another_form_after_some_rows(self, tmp_path, monkeypatch, late, message):
        monkeypatch.setattr(_files, "ROWS_AT_ONCE", 4)
        times = [f"2000-01-0{i}" for i in range(1, 5)] + [late.format(i) for i in range(1, 5)]
        frame = pd.DataFrame({"unique_id": "a", "ds": times, "y": 1.0})
        with pytest.raises(ValueError, match=message):
            read_panel(write(tmp_path, frame))


def test_never_more_than_some_rows_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(_files, "ROWS_AT_ONCE", 10)
    sizes, read_table = [], _files.read_table

    def watched(piece, *names, **options):
        sizes.append(len(piece))
        return read_table(piece, *names, **options)

    monkeypatch.setattr(_files, "read_table", watched)
    read_panel(write(tmp_path, long((50, 33), names="ab"), [21, 60]))
    assert max(sizes) == 10
    assert sum(sizes) == 83
