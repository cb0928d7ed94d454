"""Files as people write them give the same panel in Python and on the command line, or an error.

`files/index.json` says of each file what it holds: shape, first and last time, first values,
frequency, ids, and words of its notes or of the error.
"""

import csv
import io
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from tsrnn.cli import app
from tsrnn.data import CsvFormat, DataFiles, read_panel

FILES = Path(__file__).parent / "files"
INDEX = json.loads((FILES / "index.json").read_text(encoding="utf-8"))
NAMES = [*INDEX]
ANSWERED = [name for name in NAMES if INDEX[name]["outcome"] == "answered"]
REFUSED = [name for name in NAMES if INDEX[name]["outcome"] == "refused"]


def read(name, **options):
    return read_panel(FILES / name, missing="auto", **INDEX[name].get("options", {}), **options)


def forecast(name, *options):
    """Run the command line on a file."""
    columns = INDEX[name].get("options", {})
    flags = {f"--{name}".replace("_", "-"): value for name, value in columns.items()}
    given = [part for flag in flags.items() for part in flag]
    model = INDEX[name].get("model", ["--model", "naive"])
    arguments = ["forecast", str(FILES / name), *model, "--h", "1", *given, *options]
    return CliRunner().invoke(app, arguments, catch_exceptions=False)


def test_every_file_is_in_the_index():
    assert sorted(INDEX) == sorted(path.name for path in FILES.iterdir() if path.stem != "index")
    assert len(INDEX) >= 36


@pytest.mark.parametrize("name", ANSWERED)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_is_read(name):
    expected, panel = INDEX[name], read(name)
    assert list(panel.values.shape) == expected["shape"]
    assert panel.freq == expected["freq"]
    if "ids" in expected:
        assert panel.ids.tolist() == expected["ids"]
    for time, row in (("first", 0), ("last", -1)):
        if time in expected:
            times = panel.times
            if panel.layout.time_kind == "period":
                freq = panel.layout.time_dtype[len("period[") : -1]
                times = pd.PeriodIndex.from_ordinals(times, freq=freq).to_timestamp().to_numpy()
            assert times[row].astype("datetime64[D]") == np.datetime64(expected[time])
    if "head" in expected:
        flat = panel.values.ravel()[: len(expected["head"])]
        np.testing.assert_allclose(flat, expected["head"], rtol=1e-15)
    assert int(np.isnan(panel.values).sum()) == expected.get("n_missing", 0)
    assert list(panel.exog_names) == expected.get("exog", [])
    notes = " ".join(panel.notes)
    for word in expected.get("note", []):
        assert word in notes
    if expected.get("note") == []:
        assert notes == ""


@pytest.mark.parametrize("name", ANSWERED)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_is_read_on_the_command_line(name):
    expected, done = INDEX[name], forecast(name)
    assert done.exit_code == 0, done.stderr
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    panel = read(name)
    assert len(rows) == panel.n_series
    if "ids" in expected:
        ids = expected.get("options", {}).get("id_col", "unique_id")
        assert [row[ids] for row in rows] == expected["ids"]
    for word in expected.get("note_cli", expected.get("note", [])):
        assert word in done.stderr
    lines = done.stderr.splitlines()
    assert len(lines) == len(set(lines))
    assert forecast(name, "--quiet").stderr == ""


@pytest.mark.parametrize("name", REFUSED)
def test_is_refused(name):
    with pytest.raises((ValueError, TypeError)) as caught:
        read(name)
    for word in INDEX[name]["error"]:
        assert word in str(caught.value)


@pytest.mark.parametrize("name", REFUSED)
def test_is_refused_on_the_command_line(name):
    done = forecast(name)
    assert (done.exit_code, done.stdout) == (1, "")
    assert "Traceback" not in done.stderr
    for word in INDEX[name]["error_cli"]:
        assert word in done.stderr


# What is said of a file itself; other notes are on series and columns.
OF_FILES = re.compile(
    "Fields are separated|above the header|below the table|No header|without (a name|any value)|"
    "Rows are (years|series)|text is read as|of the column .* missing value"
)


@pytest.mark.parametrize("name", ANSWERED)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_strict_refuses_what_has_a_note(name):
    files = DataFiles.find(FILES / name, CsvFormat(strict=True))
    if any(OF_FILES.search(note) for note in read(name).notes):
        with pytest.raises(ValueError, match=r"strict=True|encoding|sep|named|columns|CSV"):
            files.read()
        done = forecast(name, "--strict")
        assert done.exit_code == 1
    else:
        assert len(files.read()) > 0


TITLES = st.text("abc dé:.", min_size=1, max_size=12).filter(lambda text: text.strip(" .:"))


@settings(max_examples=150, deadline=None)
@given(
    columns=st.lists(
        st.lists(st.integers(-999, 999).map(lambda n: n / 4), min_size=3, max_size=12),
        min_size=1,
        max_size=4,
    ).map(lambda columns: [column[: min(map(len, columns))] for column in columns]),
    sep=st.sampled_from(",;\t|"),
    titles=st.lists(TITLES, max_size=3),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
    trailing=st.integers(0, 2),
    newline=st.sampled_from(["\n", "\r\n"]),
    blank=st.booleans(),
    source=st.sampled_from(["", "Source: the office", "Total"]),
)
def test_a_table_is_read_back(
    columns, sep, titles, quoting, encoding, trailing, newline, blank, source
):
    names = [f"a{sep}{place}" for place in range(len(columns))]  # quoted, as they hold separators
    days = pd.date_range("2024-01-30", periods=len(columns[0])).strftime("%Y-%m-%d")
    text = io.StringIO()
    writer = csv.writer(text, delimiter=sep, quoting=quoting, lineterminator=newline)
    for title in titles:
        text.write(title + sep * (len(columns) if trailing else 0) + newline)
    text.write(newline if blank else "")
    padding = sep * trailing
    for row in [["day", *names], *zip(days, *columns, strict=True)]:
        line = io.StringIO()
        csv.writer(line, delimiter=sep, quoting=quoting, lineterminator="").writerow(row)
        text.write(line.getvalue() + padding + newline)
    text.write(newline if blank else "")
    if source == "Total":
        writer.writerow(["Total", *map(sum, columns)] + [""] * trailing)
    elif source:
        text.write(source + newline)
    content = text.getvalue().encode(encoding)
    files = DataFiles([Path("stdin")], "csv", content=content)
    frame = files.read("day")
    assert frame.columns.tolist() == ["day", *names]
    assert frame["day"].tolist() == days.tolist()
    np.testing.assert_array_equal(frame[names].to_numpy(float), np.transpose(columns))
    assert ("above the header" in " ".join(files.notes)) == bool(titles)
    assert ("below the table" in " ".join(files.notes)) == bool(source)


@pytest.mark.parametrize("sep", [",", ";", "\t"])
def test_a_large_file_is_read_from_both_ends(tmp_path, sep):
    """A total far below what is looked at first; quotes over lines at the cut."""
    rows = [f'"shop\n{i % 7}"{sep}{2000 + i // 365}-01-01{sep}{i}' for i in range(20_000)]
    text = "\n".join(
        ["A title", f"unique_id{sep}ds{sep}y", *rows, f"Total{sep}{sep}5", "Source: x"]
    )
    assert len(text) > 4 * 2**16
    (tmp_path / "a.csv").write_text(text)
    files = DataFiles.find(tmp_path / "a.csv")
    frame = files.read("ds", "unique_id")
    assert len(frame) == 20_000
    assert frame["y"].tolist() == list(range(20_000))
    assert any("2 lines are left out below" in note for note in files.notes)
    assert files.place(19_999) == f"line {2 + 2 * 20_000}"


def test_encodings_that_are_given_win(tmp_path):
    (tmp_path / "a.csv").write_bytes("ds,ä\n2024-01-01,1\n2024-01-02,2\n".encode("latin-1"))
    named = DataFiles.find(tmp_path / "a.csv", CsvFormat(encoding="cp1250"))
    assert (named.columns, named.notes) == (["ds", "ä"], ())


def test_several_files_say_a_note_once(tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text(
            f"unique_id;ds;y\n{name};2024-01-01;1\n{name};2024-01-02;2\n"
        )
    assert read_panel(tmp_path).notes == ("Fields are separated by ';'.",)
    (tmp_path / "c.csv").write_text("unique_id,ds,y\nc,2024-01-01,1\nc,2024-01-02,2\n")
    (note,) = read_panel(tmp_path).notes
    assert note.startswith("2 files, such as ")
    assert "a.csv: Fields are separated by ';'." in note


@pytest.mark.parametrize(
    "titles",
    [
        "Report,2024-01-31\n",
        "Sales, by month\nUnit,EUR\n\n",
        "Sales of 2023\n",
        '"Sales, by month, of\nall shops"\n',
        "Unit,\n",
    ],
)
def test_titles_that_look_like_rows(titles):
    text = f"{titles}ds,y\n2024-01-01,5\n2024-01-02,6\n"
    files = DataFiles([Path("stdin")], "csv", content=text.encode())
    assert files.columns == ["ds", "y"]
    assert files.read("ds")["y"].tolist() == [5, 6]
    assert "above the header" in " ".join(files.notes)


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        (",0\n2024-01-01,1\n2024-01-02,2\n", ["ds", "0"]),
        ("ds,1,2\n2024-01-01,1,5\n2024-01-02,2,6\n", ["ds", "1", "2"]),
        ("ds,2021,2022\n2024-01-01,1,5\n2024-01-02,2,6\n", ["ds", "2021", "2022"]),
        ("lag1,lag2\n0.1,0.2\n0.3,0.4\n", ["lag1", "lag2"]),
        ("store,a,b\nX,1,2\nY,3,3.5\nZ,1.5,2\n", ["store", "a", "b"]),
        ("ds,y\r2024-01-01,5\r2024-01-02,6\r", ["ds", "y"]),
        ("ds,weather\n2024-01-01,sun\n2024-01-02,rain\n", ["ds", "weather"]),
    ],
)
def test_headers_that_look_like_rows(text, columns):
    files = DataFiles([Path("stdin")], "csv", content=text.encode())
    assert files.columns == columns
    assert len(files.read()) == len(text.split()) - 1
    assert files.notes == ()


@pytest.mark.parametrize(
    ("numbers", "texts"),
    [
        (["1.234", "500", "12.500"], True),
        (["1.234", "500", "12.5"], False),
        (["1234", "500"], False),
        (["0.5", "1.25"], False),
    ],
)
@pytest.mark.parametrize("sep", [";", "\t", "|", ","])
def test_thousands_are_left_as_text(numbers, texts, sep):
    """Where nothing in the file says whether a point stands before decimals."""
    rows = "".join(f"2024-01-{day:02d}{sep}{text}\n" for day, text in enumerate(numbers, 1))
    files = DataFiles([Path("stdin")], "csv", content=f"ds{sep}y\n{rows}".encode())
    column = files.read("ds")["y"]
    assert (column.dtype.kind in "if") is not (texts and sep != ",")
    if texts and sep != ",":
        assert column.tolist() == numbers


PARTS = {
    12: ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"],
    4: ["Q1", "Q2", "Q3", "Q4"],
}


@pytest.mark.parametrize("n_parts", PARTS)
@pytest.mark.parametrize("years", [[2019, 2020, 2021], [2021, 2020, 2019]])
@pytest.mark.parametrize("below", [False, True])
def test_months_in_rows_and_years_in_columns(n_parts, years, below):
    y = np.arange(3.0 * n_parts).reshape(3, n_parts)
    table = pd.DataFrame(y, [2019, 2020, 2021], PARTS[n_parts]).T[years].rename_axis("part")
    if below:
        table.loc["Total"] = table.sum()
    text = table.to_csv() + ("Source: the office\n" if below else "")
    files = DataFiles([Path("stdin")], "csv", content=text.encode())
    frame = files.read()
    assert files.columns == ["ds", "y"]
    assert frame["y"].astype(float).tolist() == y.ravel().tolist()
    expected = pd.period_range("2019", "2021-12", freq="M" if n_parts == 12 else "Q")
    assert pd.PeriodIndex(frame["ds"], freq=expected.freq).equals(expected)
    assert ("rows of totals, 'Total'" in " ".join(files.notes)) == below


@pytest.mark.parametrize("row", ["whole,2,3,4", "Subtotal,5,6,7"])
def test_rows_of_other_names_are_series(row):
    rows = [f"{month},1,2,3" for month in PARTS[12]]
    text = "\n".join(["month,2019,2020,2021", *rows[:9], row, *rows[9:]])
    files = DataFiles([Path("stdin")], "csv", content=text.encode())
    assert files.columns == ["unique_id", "ds", "y"]
    assert files.read()["unique_id"].nunique() == 13


@pytest.mark.parametrize("first", range(1, 13))
def test_years_that_begin_within_one_are_refused(first):
    """The months behind December could be of the year in the row, or of the year after."""
    months = PARTS[12][first - 1 :] + PARTS[12][: first - 1]
    text = "Year," + ",".join(months) + "".join(f"\n{year}" + ",1" * 12 for year in (2019, 2020))
    files = DataFiles([Path("stdin")], "csv", content=text.encode())
    if first == 1:
        assert len(files.read()) == 24
    else:
        with pytest.raises(ValueError, match=f"from '{months[0]}' to '{months[-1]}'"):
            files.read()


def test_one_column_counts_its_rows(tmp_path):
    (tmp_path / "a.csv").write_text("Some title\ny\n3\n1\n4\n1\n")
    panel = read_panel(tmp_path / "a.csv")
    assert panel.values.ravel().tolist() == [3.0, 1.0, 4.0, 1.0]
    assert panel.layout.time_kind == "integer"


def test_dates_as_columns_beside_a_total(tmp_path):
    rows = "store;01.01.2024;02.01.2024;03.01.2024;Total\nA;1,5;2;3;6,5\nB;4;5;6;15\n"
    (tmp_path / "a.csv").write_text(rows)
    panel = read_panel(tmp_path / "a.csv")
    assert panel.values.ravel().tolist() == [1.5, 2, 3, 4, 5, 6]
    assert panel.ids.tolist() == ["A", "B"]


@pytest.mark.parametrize("ids", [["1", "2"], ["100234", "100240"]])
def test_years_as_columns_beside_ids_that_are_numbers(tmp_path, ids):
    rows = "".join(f"{name},{10 * i},{10 * i + 1},{10 * i + 2}\n" for i, name in enumerate(ids))
    (tmp_path / "a.csv").write_text(f"store,2021,2022,2023\n{rows}")
    panel = read_panel(tmp_path / "a.csv")
    assert panel.ids.tolist() == ids
    assert panel.values.ravel().tolist() == [0, 1, 2, 10, 11, 12]
    (tmp_path / "a.csv").write_text("step,2021,2022,2023\n2019,1,2,3\n2020,1,2,3\n")
    assert read_panel(tmp_path / "a.csv").target_names == ("2021", "2022", "2023")
