"""Dates written as text: read where every text has one meaning, refused where one has two."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd

from tsrnn.data._text import listed, quote

__all__ = ["is_text", "looks_like_dates", "read_dates"]

_CLOCK = r"([T ]\d{1,2}:\d{2}(:\d{2}([.]\d{1,9})?)?\s?(Z|[+-]\d{2}(:?\d{2})?)?)?"
# The year comes first, so that nothing but month and day can follow.
FORMS = {
    "days": re.compile(rf"\d{{4}}([-/])\d{{1,2}}\1\d{{1,2}}{_CLOCK}"),
    "months": re.compile(r"\d{4}(-|M)(0[1-9]|1[0-2])"),
    "quarters": re.compile(r"\d{4}-?Q[1-4]"),
}
# Day and month could stand either way, and years of two digits in any century.
AMBIGUOUS = re.compile(rf"\d{{1,2}}([-/.])\d{{1,2}}\1(\d{{4}}|\d{{2}}){_CLOCK}")


def is_text(column: pd.Index | pd.Series) -> bool:
    """Whether all values that are not missing are text, and some are there."""
    if isinstance(column.dtype, pd.StringDtype):
        return bool(column.notna().any())
    if column.dtype != object:
        return False
    known = column.dropna()
    return len(known) > 0 and all(isinstance(value, str) for value in known)


def looks_like_dates(column: pd.Index | pd.Series) -> bool:
    """Whether the column is text and more than half of it is written like dates."""
    return is_text(column) and _share(_texts(column)) > 0.5


def read_dates(column: pd.Index, what: str) -> pd.Index:
    """Read text as dates; what is not written like dates comes back as it is.

    Parameters
    ----------
    column : pandas.Index
        Years first, as in ISO 8601: days ("2020-01-31", with or without a time of day and an
        offset from UTC), months ("2020-01", "2020M01") or quarters ("2020Q1"), of one form
        throughout. Missing texts are missing dates.
    what : str
        How messages call it, such as "the column 'ds'".

    Returns
    -------
    pandas.Index
        DatetimeIndex, of months the first days; PeriodIndex of quarters.

    Raises
    ------
    ValueError
        If day and month could be meant either way, forms or offsets differ, or a text is no date.
    """
    if not looks_like_dates(column):
        return column
    texts = _texts(column)
    twofold = [text for text in texts if AMBIGUOUS.fullmatch(text)]
    if twofold:
        raise ValueError(
            f"{what} must hold dates of one meaning; {quote(twofold[0])} could begin with the day "
            "or with the month. Convert it before, saying which: pd.to_datetime(..., "
            f'format="{_guess(twofold, "%d", "%m")}") if the day is first, '
            f'format="{_guess(twofold, "%m", "%d")}" if the month is.'
        )
    counts = {name: [t for t in texts if form.fullmatch(t)] for name, form in FORMS.items()}
    name, members = max(counts.items(), key=lambda item: len(item[1]))
    if len(members) < len(texts):
        wrong = ~_stripped(column).isin(members) & column.notna()
        raise _no_date(column, wrong, what, like=members[0])
    if name == "quarters":
        return pd.PeriodIndex(_stripped(column).str.replace("-", ""), freq="Q")
    try:
        times: Any = pd.to_datetime(
            _stripped(column).str.replace("M", "-"), format="ISO8601", errors="coerce"
        )
    except ValueError:
        times = None  # offsets from UTC differ
    if not isinstance(times, pd.DatetimeIndex):
        raise ValueError(
            f"{what} must hold timestamps of one offset from UTC; it has several. Convert it "
            "before: pd.to_datetime(..., utc=True).dt.tz_convert(zone)."
        )
    wrong = times.isna() & column.notna()
    if wrong.any():
        raise _no_date(column, wrong, what, like="2020-02-29")
    return times


def _no_date(column: pd.Index, wrong: np.ndarray, what: str, *, like: str) -> ValueError:
    """Error that names the first rows that hold no date."""
    rows = np.flatnonzero(np.asarray(wrong))
    shown = listed([f"{quote(column[row])} in row {row}" for row in rows], 3)
    return ValueError(
        f"{what} must hold dates in every row, written like {quote(like)}; no such date is "
        f"{shown}. Drop these rows, or correct them."
    )


def _stripped(column: pd.Index) -> pd.Index:
    """The texts without the blanks around them, missing ones as they are."""
    return column.str.strip()


def _texts(column: pd.Index | pd.Series) -> list[str]:
    """Different texts, blanks around them left out."""
    return [str(text).strip() for text in pd.unique(column.dropna())]


def _share(texts: list[str]) -> float:
    forms = (*FORMS.values(), AMBIGUOUS)
    return sum(any(form.fullmatch(text) for form in forms) for text in texts) / max(len(texts), 1)


def _guess(texts: list[str], first: str, second: str) -> str:
    """The format of strptime with which texts of two meanings would be read."""
    match = AMBIGUOUS.fullmatch(texts[0])
    assert match is not None
    year = "%Y" if len(match[2]) == 4 else "%y"
    clock = "" if match[3] is None else " %H:%M:%S" if match[4] else " %H:%M"
    return f"{first}{match[1]}{second}{match[1]}{year}{clock}"
