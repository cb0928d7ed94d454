"""Excel files are read as the CSV that they would be saved as."""

import sys

import pandas as pd
import pytest

from tsrnn.data import DataFiles, read_panel

openpyxl = pytest.importorskip("openpyxl", reason="Excel files are read by openpyxl")


@pytest.fixture
def book(tmp_path):
    """Write sheets of rows to a file."""

    def write(**sheets):
        book = openpyxl.Workbook()
        book.remove(book.active)
        for name, rows in sheets.items():
            sheet = book.create_sheet(name)
            for row in rows:
                sheet.append(row)
        book.save(tmp_path / "book.xlsx")
        return tmp_path / "book.xlsx"

    return write


DAYS = pd.date_range("2024-01-30", periods=5)
ROWS = [["day", "visitors"], *([day.to_pydatetime(), i + 0.1] for i, day in enumerate(DAYS))]


def test_a_sheet_with_titles_and_a_total(book):
    path = book(a=[["Visitors", None], [None, None], *ROWS, ["Total", 10.5]])
    panel = read_panel(path)
    assert panel.values.ravel().tolist() == [0.1, 1.1, 2.1, 3.1, 4.1]
    assert (panel.freq, panel.layout.time_col) == ("D", "day")
    notes = " ".join(panel.notes)
    assert "above the header: 'Visitors'" in notes
    assert "below the table: 'Total 10.5'" in notes


def test_the_first_sheet_with_a_table(book):
    panel = read_panel(book(empty=[], title=[["Visitors"]], data=ROWS, more=ROWS))
    assert panel.notes == ("Of 4 sheets 'data' is read.",)
    with pytest.raises(ValueError, match="all without rows"):
        read_panel(book(empty=[]))


def test_times_of_day_and_months_as_columns(book):
    hours = pd.date_range("2024-01-30", periods=30, freq="h")
    path = book(a=[["ds", "y"], *([hour.to_pydatetime(), 1] for hour in hours)])
    assert read_panel(path).freq == "h"
    years = [
        [
            "Year",
            *["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"],
        ]
    ]
    years += [[2022, *range(12)], [2023, *range(12, 16)] + [None] * 8]
    panel = read_panel(book(a=years))
    assert panel.values.ravel().tolist() == list(range(16))
    assert panel.freq == "MS"


def test_what_is_no_book(tmp_path):
    (tmp_path / "a.xlsx").write_bytes(b"ds,y")
    with pytest.raises(ValueError, match="cannot be read as an Excel file"):
        read_panel(tmp_path / "a.xlsx")


def test_without_openpyxl(book, monkeypatch):
    path = book(a=ROWS)
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(ImportError, match=r"pip install 'tsrnn\[excel\]'"):
        read_panel(path)


def test_a_part_of_it_is_not_read(book):
    with pytest.raises(ValueError, match="must be a file of text to be read part by part"):
        DataFiles.find(book(a=ROWS)).plain_format()
