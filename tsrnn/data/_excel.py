"""Sheets of Excel files as CSV."""

from __future__ import annotations

import csv
import datetime
import io
import zipfile
from pathlib import Path
from typing import Any

import pandas as pd

EXCEL = (".xlsx", ".xlsm", ".xls")


def sheet_text(path: Path) -> tuple[bytes, list[str]]:
    """Return the first sheet with a table as CSV, and a note if the file has several sheets."""
    try:
        sheets = pd.read_excel(path, sheet_name=None, header=None, dtype=object)
    except ImportError as error:
        raise ImportError(
            "Excel files are read by openpyxl, which is not installed. Run pip install "
            "'tsrnn[excel]', or save the sheet as CSV"
        ) from error
    except (ValueError, KeyError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} cannot be read as an Excel file: {error}") from error
    for name, sheet in sheets.items():
        if sheet.notna().any(axis=1).sum() > 1:
            notes = [f"Of {len(sheets)} sheets {name!r} is read."] if len(sheets) > 1 else []
            text = io.StringIO()
            rows = sheet.itertuples(index=False)
            csv.writer(text).writerows([_field(cell) for cell in row] for row in rows)
            return text.getvalue().encode(), notes
    raise ValueError(f"{path} must hold a table; its sheets are {list(sheets)}, all without rows")


def _field(cell: Any) -> str:
    """Return the text of a cell, dates in ISO 8601 and without a time at midnight."""
    if cell is None or pd.isna(cell):
        return ""
    if isinstance(cell, datetime.datetime) and cell.time() == datetime.time():
        return cell.date().isoformat()
    return str(cell)
