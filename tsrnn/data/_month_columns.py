"""Tables with months, quarters or dates as columns, converted to long tables."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Literal

import numpy as np
import pandas as pd

from tsrnn.data._faults import quote
from tsrnn.data._month_names import month_number
from tsrnn.data._text_table import TOTALS, is_time
from tsrnn.data._written_dates import names_time

YEAR = re.compile(r"(1[5-9]|20|21)\d{2}")
PERIODS = re.compile(  # names of columns that are a time
    r"\d{4}([-/.]|M)(0?[1-9]|1[0-2])([-/.]\d{1,2})?|(0?[1-9]|1[0-2])([-/.])\d{4}|\d{4}-?Q[1-4]"
    r"|Q[1-4][-/ ]?\d{4}|\d{1,2}([-/.])\d{1,2}\6\d{2,4}|(1[5-9]|20|21)\d{2}",
    re.IGNORECASE,
)
YEARLY = re.compile(r"(the )?(year|annual|jahr|année|año|anno|ano|jaar)\b.*", re.IGNORECASE)


@dataclass(frozen=True)
class Spread:
    """Columns of a table that hold one variable at several times.

    `kind` says what rows are. `times` maps each column to its time: a month or quarter for rows of
    "years", a year for rows of "months" or quarters, a full date for rows of "series". `ignored`
    names columns of totals; for "months", rows of totals.
    """

    kind: Literal["years", "months", "series"]
    index: str
    times: dict[str, str]
    ignored: list[str]

    @property
    def columns(self) -> list[str]:
        """Columns of the long table."""
        return ["unique_id", "ds", "y"] if self.kind == "series" else ["ds", "y"]

    @property
    def notes(self) -> list[str]:
        """Sentences on the reading of the table."""
        names = list(self.times)
        shown = f"{quote(names[0])} to {quote(names[-1])}"
        if self.kind == "months":
            of_columns = f"months or quarters and the columns {shown} years"
        else:
            of_columns = f"{self.kind} and the columns {shown} times"
        notes = [f"Rows are {of_columns}; they are read as columns {', '.join(self.columns)}."]
        if self.ignored:
            where = "rows" if self.kind == "months" else "columns"
            notes.append(f"Left out: {where} of totals, {', '.join(map(quote, self.ignored))}.")
        return notes

    def as_long(self, table: pd.DataFrame) -> tuple[pd.DataFrame, np.ndarray]:
        """Return a long table in the order of time, and the source row of each of its rows.

        Empty cells at both ends of a series are dropped.
        """
        index = table[self.index].str.strip()
        if self.kind == "years":
            self._check_order([self.times[name] for name in table.columns if name in self.times])
        if index.isna().any() or index.duplicated().any():
            wrong = index[index.isna() | index.duplicated()].iloc[0]
            raise ValueError(
                f"must name a {NOUNS[self.kind]} in each row of the "
                f"column {self.index!r}, and each once; got {quote(wrong)}. Correct the row"
            )
        n_rows, n_times = len(table), len(self.times)
        rows, cells = np.repeat(np.arange(n_rows), n_times), np.tile(np.arange(n_times), n_rows)
        values = table[list(self.times)].to_numpy(dtype=object).ravel()
        parts = np.array(list(self.times.values()), dtype=object)[cells]
        names = index.to_numpy(dtype=object)[rows]
        long = pd.DataFrame({"unique_id": names, "ds": parts, "y": values})
        if self.kind == "years":
            order = np.lexsort([cells, index.astype(int).to_numpy()[rows]])
            rows, long = rows[order], long.iloc[order]
            long["ds"] = long.pop("unique_id") + long["ds"]
            long.insert(0, "unique_id", "")
        elif self.kind == "months":
            long["ds"] += long["unique_id"].map(_part_of_year)
            long["unique_id"] = ""
            long = long[~np.isin(names, self.ignored)].sort_values("ds")
            rows = rows[long.index]
        known = long["y"].notna().to_numpy()
        inside = known.copy()
        for places in pd.Series(np.arange(len(long))).groupby(long["unique_id"].to_numpy()):
            numbers = places[1].to_numpy()
            full = np.flatnonzero(known[numbers])
            if len(full):
                inside[numbers[full[0] : full[-1] + 1]] = True
        long = long[inside].reset_index(drop=True)
        return long[self.columns], rows[inside]

    def _check_order(self, parts: list[str]) -> None:
        """Refuse columns from April to March: the last ones may belong to the next year."""
        if parts in (sorted(parts), sorted(parts, reverse=True)):
            return
        names = {part: name for name, part in self.times.items()}
        raise ValueError(
            f"must have the months or quarters of a year in the order of the calendar; from "
            f"{quote(names[parts[0]])} to {quote(names[parts[-1]])} the last ones could be of the "
            "year after. Put the columns in order, or write a row for each time"
        )


def find_spread(names: Sequence[str], first: Sequence[str]) -> Spread | None:
    """Return the times in the columns of a table, None if columns are no times.

    `first` holds fields of the first column.
    """
    if len(names) < 4 or any(not name for name in names[1:]) or len(set(names)) < len(names):
        return None
    ignored = [name for name in names[1:] if TOTALS.fullmatch(name) or YEARLY.fullmatch(name)]
    others = [name for name in names[1:] if name not in ignored]
    fields = [field.strip() for field in first if field.strip()]
    if fields and all(YEAR.fullmatch(field) for field in fields):
        parts = [_part_of_year(name) for name in others]
        if len(set(parts)) == len(parts) and {*parts} in (MONTHS, QUARTERS):
            return Spread(
                "years",
                names[0],
                dict(sorted(zip(others, parts, strict=True), key=itemgetter(1))),
                ignored,
            )
    if len(others) > 1 and all(YEAR.fullmatch(name) for name in others):
        parts = [_part_of_year(field) for field in fields]
        n = next((n for n in (12, 4) if {*parts[:n]} in (MONTHS, QUARTERS)), 0)
        totals = [field for field in fields[n:] if TOTALS.fullmatch(field)]
        if n and not {*parts[n:]} & (MONTHS | QUARTERS):  # other rows below are footnotes
            return Spread("months", names[0], {name: name for name in others}, totals)
    times = [_is_date(name) for name in others]
    years = all(YEAR.fullmatch(name) for name in others)
    steps = years and names_time(names[0])
    # A first column of numbers holds ids, unless its name or the header says time.
    dated = [
        field
        for field in filter(is_time, fields)
        if not field.isdecimal() or steps or (years and YEAR.fullmatch(field))
    ]
    if len(others) > 2 and all(times) and fields and not dated:
        return Spread("series", names[0], {name: name for name in others}, ignored)
    return None


NOUNS = {"years": "year", "months": "month or quarter", "series": "series"}
MONTHS = {f"-{month:02d}" for month in range(1, 13)}
QUARTERS = {f"Q{quarter}" for quarter in range(1, 5)}


def _part_of_year(name: str) -> str:
    """Return the month "-01" or quarter "Q1" that a name denotes; other names unchanged."""
    quarter = re.fullmatch(r"(?:Q(?:uarter|uartal)?\.? ?([1-4])|([1-4])\. ?Quartal|T([1-4]))", name)
    if quarter is not None:
        return "Q" + next(filter(None, quarter.groups()))
    number = int(name) if name.isdecimal() else month_number(name)
    return name if number is None else f"-{number:02d}"


def _is_date(name: str) -> bool:
    if PERIODS.fullmatch(name):
        return True
    words = re.findall(r"[^\W\d_]+", name)
    month = len(words) == 1 and month_number(words[0]) is not None
    return month and re.search(r"\d{2}", name) is not None
