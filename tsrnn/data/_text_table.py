"""Tables in text files: encoding, separator, header, and the lines around the table."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tsrnn.data._faults import quoted
from tsrnn.data._month_names import month_number
from tsrnn.data._written_numbers import MISSING_MARKS

SEPARATORS = ";\t|,"  # the least likely within a field first
SAMPLE = 2**15  # bytes at each end of a file in which header and footnotes are sought
SHOWN = 60  # characters of a line in a note
MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
# First words of lines of totals, sources and notes.
TOTALS = re.compile(
    r"\W*((grand |sub-?)?totals?|sum|sums|summen?|gesamt(summe)?|insgesamt|somme|suma|soma|totale|"
    r"totaux|totaal|som|mean|average|avg\.?|median|mittel(wert)?|durchschnitt|moyenne|media|"
    r"promedio|média|gemiddelde)\b.*",
    re.IGNORECASE | re.DOTALL,
)
SOURCES = re.compile(
    r"\W*(sources?|quellen?|fuentes?|fontes?|fonti|bron|notes?|nota|anmerkung(en)?|hinweise?|"
    r"remarks?|footnotes?|fußnoten?|stand|generated|exported|last updated?|copyright|©)\b.*",
    re.IGNORECASE | re.DOTALL,
)
_CURRENCY = r"([€$£¥]|EUR|USD|GBP|CHF|JPY|CNY|SEK|NOK|DKK|PLN|CZK|kr|Fr\.?)?"
NUMBER = re.compile(
    rf"[-+−(]?\s*{_CURRENCY}\s*[-+−]?\s*(\d[\d.,'’\s\u00a0\u202f]*|[.,]\d+)(e[-+]?\d+)?"
    rf"\s*%?{_CURRENCY}\s*\)?",
    re.IGNORECASE,
)
DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}([-/.]\d{1,4})?\b.*|\d{4}-?[QM]\d{1,2}", re.DOTALL)
DAYS = """mo monday mon montag lundi lun lunes lunedì segunda maandag tu tue tuesday di dienstag
mardi martes martedì ter terça dinsdag we wed wednesday mi mittwoch mer mercredi mié miércoles
mercoledì qua quarta woensdag th thu thursday do donnerstag jeu jeudi jue jueves gio giovedì qui
quinta donderdag fr fri friday freitag ven vendredi vie viernes venerdì sex sexta vrijdag sa sat
saturday samstag sam samedi sáb sábado sabato zaterdag so sun sunday sonntag dim dimanche dom
domingo domenica zondag"""
MARKS_OF_TIME = """q h m w t z s kw cw wk am pm utc gmt st nd rd th de er uhr fy quarter quartal
trimestre week woche"""
PARTS_OF_TIME = {*DAYS.split(), *MARKS_OF_TIME.split()}
QUARTERS = {"q", "quarter", "quartal", "trimestre"}  # a time with a single digit
PIECES = re.compile(r"\d+|[^\W\d_]+")


class Record(NamedTuple):
    """Fields of a row, its first character and its line, counted from 1."""

    start: int
    line: int
    fields: list[str]

    @property
    def text(self) -> str:
        """Fields that are not empty, as one text."""
        return " ".join(" ".join(filter(str.strip, self.fields)).split())


@dataclass(frozen=True)
class TextTable:
    """Position and columns of the table in a text.

    `names` has "" for columns without a name, as many as most rows have fields; `start` and `line`
    are the first byte of the rows and the number of lines before it; `sample` has the first rows.
    The separator of a table of one column is unknown: `separated` is False.
    """

    sep: str
    names: list[str]
    start: int
    line: int
    sample: list[Record]
    separated: bool
    notes: tuple[str, ...]

    @property
    def width(self) -> int:
        """Fields of a row."""
        return len(self.names)


def is_binary(content: bytes) -> bool:
    """Return True for zero bytes without a byte order mark, as in compressed files."""
    return b"\0" in content[:SAMPLE] and not any(map(content.startswith, MARKS))


def decode(content: bytes, encoding: str | None) -> tuple[bytes, list[str]]:
    """Convert a text to UTF-8 without a byte order mark; return notes on its encoding."""
    if encoding is None:
        mark = next((mark for mark in MARKS if content.startswith(mark)), b"")
        encoding = MARKS.get(mark, "utf-8")
        if encoding == "utf-16":
            text = content.decode(encoding)
            return text.encode(), [f"The text is read as {encoding}, as its first bytes say."]
        content = content.removeprefix(codecs.BOM_UTF8)
        try:
            content.decode()
        except UnicodeDecodeError as error:
            try:
                text = content.decode("cp1252")
            except UnicodeDecodeError:
                raise error from None
            return text.encode(), ["The text is read as cp1252, as it is no UTF-8."]
        return content, []
    text = content.decode("utf-8-sig" if codecs.lookup(encoding).name == "utf-8" else encoding)
    return text.encode(), []


def records(text: str, sep: str) -> Iterator[Record]:
    """Yield the rows of a text without blank lines, up to a fault of quoting."""
    starts = [0]

    def lines() -> Iterator[str]:
        for line in io.StringIO(text, newline=""):
            starts.append(starts[-1] + len(line))
            yield line

    reader, before = csv.reader(lines(), delimiter=sep), 0
    try:
        for fields in reader:
            if len(fields) > 1 or "".join(fields).strip():
                yield Record(starts[before], before + 1, fields)
            before = reader.line_num
    except csv.Error:
        return


def find_table(content: bytes, sep: str | None) -> TextTable:
    """Find the table in a text of UTF-8 by its first lines.

    The separator is the character that gives most rows the same number of fields. The header is the
    row before the first row of data. Messages lack the name of the file.
    """
    end = len(content)
    if end > SAMPLE:  # whole lines
        end = max(content.rfind(b"\n", 0, SAMPLE), content.rfind(b"\r", 0, SAMPLE)) + 1 or end
    head = content[:end].decode()
    mark, rows, width = _choose_separator(head, sep)
    if not rows:
        raise ValueError("must hold a table; it is empty")
    first = next(i for i, row in enumerate(rows) if len(row.fields) == width)
    while width > 1 and first + 1 < len(rows) and _is_title(rows[first].fields):
        first += 1  # a title, padded by separators
    header, above = _choose_header(rows, first, width)
    notes = []
    if mark != "," and sep is None and width > 1:
        notes.append(f"Fields are separated by {mark!r}.")
    titles = [row.text for row in rows[:above] if row.text]
    if titles:
        lines = "1 line is" if len(titles) == 1 else f"{len(titles)} lines are"
        notes.append(f"{lines} skipped above the header: {shown_lines(titles)}.")
    if header is None:
        names = ["ds", "y"] if width == 2 else ["y"] if width == 1 else []
        names = names or ["ds", *map(str, range(1, width))]
        notes.append(f"No header names the columns; they are called {quoted(names)}.")
        body = rows
    else:
        names = [field.strip() for field in rows[header].fields]
        names += [""] * (width - len(names))
        body = rows[header + 1 :]
        if header + 1 == len(rows):  # no rows of data
            return TextTable(mark, names, len(content), rows[header].line, [], width > 1, ())
    start = len(head[: body[0].start].encode())
    return TextTable(mark, names, start, body[0].line - 1, body, width > 1, tuple(notes))


def _choose_separator(head: str, sep: str | None) -> tuple[str, list[Record], int]:
    """Return the separator, the rows, and the most common number of fields."""
    best, chosen = 0, None
    for mark in SEPARATORS if sep is None else sep:
        rows = list(records(head, mark))
        counts = Counter(len(row.fields) for row in rows)
        counts.pop(1, None)
        width, n = max(counts.items(), key=lambda item: (item[1], item[0]), default=(1, 0))
        if n > best and 3 * n >= len(rows):
            best, chosen = n, (mark, rows, width)
    if chosen is None:
        mark = sep or ","
        # In a table of one column, the comma may be part of a field.
        return mark, list(records(head, mark)), 1
    return chosen


def _is_title(fields: Sequence[str]) -> bool:
    title = fields[0].strip()
    return bool(title) and not is_time(title) and not any(field.strip() for field in fields[1:])


def _choose_header(rows: list[Record], first: int, width: int) -> tuple[int | None, int]:
    """Return the row of the header (None if missing), and the number of lines above the table."""
    # A title may hold a date or a number; two rows in succession are data.
    full = (i for i in range(first, len(rows)) if len(rows[i].fields) == width)
    pairs = ((i, rows[i : i + 2]) for i in full)
    data = next((i for i, pair in pairs if all(is_data(row.fields) for row in pair)), len(rows))
    if width == 1:
        return (data - 1, data - 1) if data else (None, 0)
    # A title may have `width` fields by chance; from the header on, all rows have.
    narrow = [i for i in range(first, data) if len(rows[i].fields) != width]
    first = narrow[-1] + 1 if narrow and data < len(rows) else first
    filled = [any(_field(row, j) for row in rows[data : data + 100]) for j in range(width)]
    # A header names all columns with values, except perhaps the first.
    named = [
        i
        for i in range(first, data)
        if len(rows[i].fields) == width
        and all(_field(rows[i], j) or not filled[j] for j in range(1, width))
    ]
    words = [i for i in named[1:] if data < len(rows) and _holds_words(rows[i].fields)]
    if named:  # a title may fill all columns by chance: the last row of words is the header
        header = words[-1] if words else named[0]
        return header, header
    if data > first:
        return first, first  # CsvText refuses the column without a name
    if first == 0 and _is_start(rows[0].fields):
        return None, 0
    before = rows[first - 1] if first else rows[0]
    if first and len(before.fields) > 1 and not any(filled[len(before.fields) :]):
        return first - 1, first - 1
    if not first:
        raise ValueError(
            f"must name its columns in a header; line {before.line} holds data, "
            f"{shorten(before.text)}. Write names above, such as ds and y"
        )
    raise ValueError(
        f"must have a header with the {width} fields of its rows; line {before.line}, "
        f"{shorten(before.text)}, has {len(before.fields)}, and line {rows[first].line} below is "
        f"data, {shorten(rows[first].text)}. Name all columns, or quote fields that hold the "
        "separator"
    )


def _holds_words(fields: Sequence[str]) -> bool:
    """Return True if no field is a date or a number, and the first is not empty."""
    texts = [field.strip() for field in fields]
    readable = any(is_time(text) or is_number(text) for text in texts)
    return bool(texts[0]) and not readable


def _field(row: Record, place: int) -> str:
    return row.fields[place].strip() if place < len(row.fields) else ""


def is_number(text: str) -> bool:
    """Return True if a text looks like a number in any country."""
    return NUMBER.fullmatch(text.strip()) is not None


def is_time(text: str) -> bool:
    """Return True if a text can be a time: digits, names of months and days, clock marks."""
    pieces = PIECES.findall(text.lower())
    words = [piece for piece in pieces if not piece.isdecimal()]
    months = [word for word in words if month_number(word) is not None]
    n_digits = sum(len(piece) for piece in pieces) - sum(map(len, words))
    enough = 4 if words and not months and not QUARTERS.intersection(words) else 1  # x1: a name
    return n_digits >= enough and all(word in PARTS_OF_TIME or word in months for word in words)


def is_data(fields: Sequence[str]) -> bool:
    """Return True for a row of data, False for names, which may be dates after the first."""
    texts = [field.strip() for field in fields]
    if is_time(texts[0]) or is_number(texts[0]):
        return True
    others = [text for text in texts[1:] if text and not TOTALS.fullmatch(text)]
    forms = {re.sub(r"\d+", "9", text) for text in others}
    readable = [is_time(text) or is_number(text) for text in others]
    if not any(readable):
        return False
    # Names share one form and differ, Q1 to Q4 or 2020-01 to 2020-12; data do not.
    names = all(readable) and len(forms) == 1 and len(set(others)) == len(others) > 1
    dates = any(DATE.fullmatch(text) for text in others)
    return not names and (dates or any(is_number(t) and re.search("[.,]", t) for t in others))


def _is_start(fields: Sequence[str]) -> bool:
    """Return True for a time followed by numbers, the first row of a table without a header."""
    texts = [field.strip() for field in fields]
    others = all(not t or is_number(t) or t.upper() in MISSING_MARKS for t in texts[1:])
    if len(texts) == 1:
        return is_number(texts[0])
    if not others or not is_time(texts[0]):
        return False
    try:
        float(texts[0])
    except ValueError:
        return True
    return texts[0].isdecimal()  # 20240131 may be a time, 1.5 is a number


def footnotes(content: bytes, table: TextTable, time: int | None) -> tuple[int, list[str], int]:
    """Find the lines below a table in a text of UTF-8: footnotes, sources and totals.

    Returned are the end of the rows in bytes, the lines below that are not empty, and the number of
    lines with separators only. Rows with a time in the column `time` belong to the table.
    """
    start = table.start
    if len(content) - start > SAMPLE:
        start = _line_start(content, len(content) - SAMPLE, table.start)
    text = content[start:].decode()
    rows, lines, empty, end = list(records(text, table.sep)), [], 0, len(content)
    for row in reversed(rows):
        if not row.text:
            empty += 1
        elif _is_below(row, table, time):
            lines.append(row.text)
        else:
            break
        end = start + len(text[: row.start].encode())
    return end, lines[::-1], empty


def _line_start(content: bytes, place: int, least: int) -> int:
    """Return the first position from `place` on at which a row begins."""
    while True:
        place = content.find(b"\n", place) + 1
        if place == 0:
            return least
        if content.count(b'"', least, place) % 2 == 0:  # not within a quoted field
            return place


def _is_below(row: Record, table: TextTable, time: int | None) -> bool:
    texts = [text.strip() for text in row.fields]
    written = [text for text in texts if text]
    if time is None:  # rows are series, whose names may be any text
        return len(written) == 1 and bool(texts[0]) and table.width > 2
    here = texts[time] if time < len(texts) else ""
    if is_time(here):
        return False
    opening = here or written[0]
    if SOURCES.fullmatch(opening) or TOTALS.fullmatch(opening):
        return True
    if any(is_number(text) for text in texts[1:]) or not texts[0]:
        return False  # a row of values with a faulty time, which reading refuses
    marked = len(written) == 1 and not texts[0][0].isalnum()
    return bool(here) or len(texts) < table.width or marked


def shorten(text: str) -> str:
    """Return a text quoted, and shortened for a note."""
    return repr(text if len(text) <= SHOWN else text[: SHOWN - 3] + "...")


def shown_lines(lines: Sequence[str]) -> str:
    """Return the first lines, shortened for a note."""
    more = ", ..." if len(lines) > 3 else ""
    return ", ".join(map(shorten, lines[:3])) + more
