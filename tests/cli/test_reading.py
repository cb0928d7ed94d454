"""Which files are long and which wide, and what their fields are read as."""

import bz2
import gzip
import lzma
import os
import re
import threading

import numpy as np
import pandas as pd
import pytest

from tsrnn import ParaRNNForecaster
from tsrnn.cli._options import csv_format
from tsrnn.cli._source import Shape, Source, shape_of
from tsrnn.data import read_panel


@pytest.mark.parametrize(
    ("columns", "options", "shape"),
    [
        (["unique_id", "ds", "y"], {}, Shape("ds", "unique_id", False)),
        (["y", "x", "ds"], {}, Shape("ds", None, False)),
        (["ds", "a", "b"], {}, Shape("ds", None, True)),
        (["a", "ds", "b"], {}, Shape("ds", None, True)),
        (["date", "y"], {}, Shape("date", None, True, guessed=True)),
        (["date", "a"], {"wide": True}, Shape("date", None, True)),
        (["a", "date"], {"time_col": "date"}, Shape("date", None, True)),
        (["date", "y"], {"time_col": "date"}, Shape("date", None, False)),
        (["ds", "a"], {"target": ["a"]}, Shape("ds", None, False)),
        (["date", "a"], {"target": ["a"]}, Shape("date", None, True, guessed=True)),
        (["ds", "y", "shop"], {"id_col": "shop"}, Shape("ds", "shop", False)),
        (["ds", "y"], {"wide": True}, Shape("ds", None, True)),
    ],
)
def test_the_shape_follows_from_columns_and_options(columns, options, shape):
    assert shape_of("file", columns, **options) == shape


def test_a_target_of_a_wide_file_has_the_other_columns_beside_it(answer, tmp_path):
    """As in Python, where target= needs no time_col= either."""
    rows = [f"2024-01-{day:02d},{day},{day % 5}\n" for day in range(1, 31)]
    (tmp_path / "sales.csv").write_text("date,sales,price\n" + "".join(rows))
    answer("forecast sales.csv --target sales --h 2 --out wide.csv")
    forecast = ParaRNNForecaster(target="sales").fit(tmp_path / "sales.csv").predict(2)
    wide = pd.read_csv(tmp_path / "wide.csv", parse_dates=["date"])
    pd.testing.assert_frame_equal(wide, forecast, check_dtype=False)


@pytest.fixture
def read(tmp_path):
    """Read a text as CSV under some options."""

    def run(text, **options):
        (tmp_path / "data.csv").write_text(text, encoding="utf-8")
        return Source(**options).read(str(tmp_path / "data.csv"))[0]

    return run


def test_ids_are_text_and_not_missing(read):
    frame = read("unique_id,ds,y\n007,2024-01-01,1\nNA,2024-01-01,NA\nnull,2024-01-01,null\n")
    assert frame["unique_id"].tolist() == ["007", "NA", "null"]
    assert frame["y"].isna().tolist() == [False, True, True]


def test_an_empty_id_is_missing(read):
    assert read("unique_id,ds,y\n,2024-01-01,1\na,2024-01-01,2\n")["unique_id"].isna()[0]


@pytest.mark.parametrize(
    ("texts", "time_format", "first"),
    [
        (["2024-01-31", "2024-02-29"], None, "2024-01-31"),
        (["2024-01", "2024-02"], None, "2024-01-01"),
        (["2024-01-01 10:00", "2024-01-01T11:00:00"], None, "2024-01-01 10:00"),
        (["31.01.2024", "29.02.2024"], "%d.%m.%Y", "2024-01-31"),
        (["20240131", "20240229"], "%Y%m%d", "2024-01-31"),
        (["01.2024", "02.2024"], "%m.%Y", "2024-01-01"),
    ],
)
def test_dates(read, texts, time_format, first):
    frame = read(f"ds,y\n{texts[0]},1\n{texts[1]},2\n", time_format=time_format)
    assert frame["ds"][0] == pd.Timestamp(first)


def test_an_offset_is_a_zone(read):
    frame = read("ds,y\n2024-01-01T00:00+01:00,1\n2024-01-01T01:00+01:00,2\n")
    assert frame["ds"][0] == pd.Timestamp("2023-12-31 23:00", tz="UTC")


def test_whole_numbers_are_steps(read):
    frame = read("ds,y\n1998,1\n1999,2\n")
    assert frame["ds"].dtype == np.int64
    assert frame["ds"].tolist() == [1998, 1999]


def test_a_wide_file_has_time_in_the_index(read):
    frame = read("month,a,b\n2024-01-01,1,2\n2024-02-01,3,4.5\n")
    assert frame.index.name == "month"
    assert frame["b"].tolist() == [2.0, 4.5]


def test_the_first_column_without_a_name_is_time(read):
    months = pd.date_range("2024-01-01", periods=2, freq="MS")
    frame = read(pd.DataFrame({"a": [1.0, 2.0]}, months).to_csv())
    assert frame.index.name == "ds"
    assert frame.index.tolist() == months.tolist()


def test_wide_takes_whole_numbers_in_the_first_column(read):
    assert read("year,a\n1998,1\n1999,2\n", wide=True).index.tolist() == [1998, 1999]


def test_other_separators_and_byte_order_marks(read):
    frame = read("\ufeffds;y\n2024-01-01;1\n2024-01-02;2\n", sep=";")
    assert list(frame.columns) == ["ds", "y"]
    sep, _ = csv_format("\\t", ".")  # as it is written in a shell
    assert read("ds\ty\n2024-01-01\t1\n2024-01-02\t2\n", sep=sep)["y"].tolist() == [1, 2]


def test_text_that_is_dropped_need_not_be_numbers(read):
    frame = read("ds,y,note\n2024-01-01,1,a\n2024-01-02,2,b\n", drop=["note"])
    assert list(frame.columns) == ["ds", "y"]


def test_a_compressed_file(tmp_path):
    with gzip.open(tmp_path / "data.csv.gz", "wt") as file:
        file.write("ds,y\n2024-01-01,1\n2024-01-02,2\n")
    assert Source().read(str(tmp_path / "data.csv.gz"))[0]["y"].tolist() == [1, 2]


class TestSeveralFiles:
    """A folder or a pattern is read as one table."""

    @pytest.fixture
    def folder(self, tmp_path):
        (tmp_path / "sales").mkdir()
        for name, rows in (("a", "a,2024-01-01,1\na,2024-01-02,2\n"), ("b", "b,2024-01-01,x\n")):
            (tmp_path / "sales" / f"{name}.csv").write_text(f"unique_id,ds,y\n{rows}")
        return tmp_path / "sales"

    def test_is_read(self, folder):
        (folder / "b.csv").write_text("unique_id,ds,y\nb,2024-01-01,4\n")
        for path in (folder, folder / "*.csv"):
            frame, _ = Source().read(str(path))
            assert frame["unique_id"].tolist() == ["a", "a", "b"]
            assert frame["y"].tolist() == [1, 2, 4]

    def test_a_field_is_named_by_its_file(self, folder):
        with pytest.raises(ValueError, match=r"'x' in line 2 of .*b\.csv"):
            Source().read(str(folder))

    def test_none_is_written_over(self, folder, refused):
        message = refused(f"forecast {folder} --model naive --h 1 --out {folder / 'a.csv'}")
        assert "DATA" in message


def test_a_pipe_of_the_shell_is_read_once(tmp_path, read):
    """Such as that of ``<(zcat data.csv.gz)``, which cannot be opened again."""
    if not hasattr(os, "mkfifo"):
        pytest.skip("this system has no named pipes")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=("ds,y\n2024-01-01,1\n2024-01-02,2\n",))
    writer.start()
    frame = Source().read(str(pipe))[0]
    writer.join()
    assert frame["y"].tolist() == [1, 2]


def test_a_parquet_file_is_the_frame(tmp_path):
    polars = pytest.importorskip("polars", reason="parquet is written by polars")
    times = pd.date_range("2024-01-01", periods=2, freq="h", tz="Europe/Berlin")
    plain = polars.Series(times.tz_convert("UTC").tz_localize(None).to_numpy())
    zoned = plain.dt.replace_time_zone("UTC").dt.convert_time_zone("Europe/Berlin")
    polars.DataFrame({"unique_id": [1, 1], "ds": zoned, "y": [0.5, None]}).write_parquet(
        tmp_path / "data.parquet"
    )
    frame = Source().read(str(tmp_path / "data.parquet"))[0]
    assert frame["ds"].tolist() == times.tolist()
    assert frame["unique_id"].dtype == np.int64
    assert frame["y"].isna().tolist() == [False, True]


def test_a_file_that_is_found_to_be_wide_is_said_to_be(tsrnn, files):
    done = tsrnn("forecast macro.csv --model naive --h 1")
    assert done.stderr == "macro.csv is read as wide: time in 'ds', variables 'infl', 'unemp'\n"
    assert tsrnn("forecast macro.csv --model naive --h 1 --wide").stderr == ""


class TestOtherCountries:
    """CSV with semicolons, decimal commas and encodings of their own."""

    LINES = "\n\nfiliale;ds;größe\nMünchen;2024-01-31;1,5\nMünchen;2024-02-29;2,25\n"

    @pytest.fixture
    def european(self):
        return Source(id_col="filiale", target=["größe"], sep=";", decimal=",", encoding="cp1252")

    def test_are_read(self, european, tmp_path):
        (tmp_path / "data.csv").write_bytes(self.LINES.encode("cp1252"))
        frame, _ = european.read(str(tmp_path / "data.csv"))
        assert frame["filiale"].tolist() == ["München"] * 2
        assert frame["größe"].tolist() == [1.5, 2.25]

    @pytest.mark.parametrize("suffix", ["", ".gz", ".xz", ".bz2"])
    def test_a_total_is_named_by_its_line(self, european, tmp_path, suffix):
        pack = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress}
        for line, part in (
            ("Summe;Total;3,75\nMünchen;2024-03-31;1,5\n", "'Total' in line 6. Drop these"),
            ("München;2024-03-31;unklar\n", "'unklar' in line 6"),
        ):
            content = pack[suffix]((self.LINES + line).encode("cp1252"))
            (tmp_path / f"data.csv{suffix}").write_bytes(content)
            with pytest.raises(ValueError, match=re.escape(part)):
                european.read(str(tmp_path / f"data.csv{suffix}"))

    def test_of_a_wide_file_too(self, read):
        text = 'month,a\n2024-01-01,1\n"2024-02-01",2\n2024-03-01,3\n\nTotal,6\n2024-04-01,4\n'
        with pytest.raises(ValueError, match="'Total' in line 6"):
            read(text)

    def test_another_encoding_is_asked_for(self, read, tmp_path):
        (tmp_path / "latin.csv").write_bytes(self.LINES.encode("cp1252"))
        with pytest.raises(ValueError, match="Name its encoding by --encoding, such as cp1252"):
            Source(sep=";", strict=True).read(str(tmp_path / "latin.csv"))
        with pytest.raises(ValueError, match="--encoding must name an encoding"):
            Source(encoding="klingon").read(str(tmp_path / "latin.csv"))

    def test_quarters_of_statistical_offices(self, read):
        frame = read("time,a\n2024-Q1,1\n2024-Q2,2\n2024-Q3,3\n")
        assert read_panel(frame).freq == "Q-DEC"


EUROPEAN = "ds;y\n2024-01-01;1,5\n2024-02-01;\n2024-03-01;2,5\n"
OPTIONS = "--sep ; --decimal , --missing interpolate"


def test_commands_read_them(table, document, tmp_path):
    done = table(f"forecast - --model drift --h 1 {OPTIONS}", EUROPEAN)
    assert done["Drift"].tolist() == [3.0]
    rows = [f"2024-{m:02d}-01;{m},5\n" for m in range(1, 13)]
    compared = document(
        f"compare - --model naive,drift --h 1 --windows 3 --json {OPTIONS}",
        "ds;y\n" + "".join(rows),
    )
    assert compared["models"] == ["drift", "naive"]


def test_batches_read_them(answer, tmp_path):
    pytest.importorskip("polars", reason="batches are read by polars")
    lines = [f"{name};2024-{m:02d}-01;{m},5\n" for name in "ab" for m in range(1, 13) if m != 5]
    (tmp_path / "sales.csv").write_text("unique_id;ds;y\n" + "".join(lines))
    answer(f"batch sales.csv --model drift --h 1 --out out {OPTIONS}")
    import polars

    found = polars.read_parquet(tmp_path / "out" / "forecasts")
    np.testing.assert_allclose(found["Drift"], [13.5, 13.5])


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ("--sep , --decimal ,", "cannot separate fields and decimals both"),
        ("--sep ;;", "';;' must be one character"),
        ("--set missing=keep", "missing has an option of its own: --missing"),
    ],
)
@pytest.mark.parametrize("command", ["forecast -", "compare - --h 1", "batch x.csv --out out"])
def test_marks_that_cannot_be(misused, command, options, part):
    assert part in misused(f"{command} --model naive {options}", EUROPEAN)
