"""Odd frames: any mixture of stamps, values, ids and names, in pandas and in polars."""

import datetime
import decimal
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
from hypothesis import strategies as st

from .stamps import stamps
from .values import columns

LATER = 2  # rows of each series that come after the fit
LENGTHS = (30, 20, 40, 60, 14, 25, 35, 11, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
NAMES = ("y", "x", "", " ", "Größe", "שלום", "😀", "a\nb", 0, 7, "y-lo-80", "cutoff", "ds2")
WRONG_NAMES = (("a", "b"), None, 1.5, float("nan"), True, pd.Timestamp("2024"), b"y")
IDS = {
    "letters": ("a", "b", "c"),
    "unicode": ("é", "é", "שלום"),
    "invisible": ("a", "a\u200b", "👩‍👩‍👧"),
    "blank": ("", " ", "\n"),
    "quotes": ("'", '"', "\\"),
    "surrogate": ("\ud800", "b", "c"),
    "zero byte": ("a\0b", "a", "\0"),
    "long": ("a" * 5000, "b" * 5000, "c"),
    "integers": (3, 1, 2),
    "negative": (-1, 0, 2**62),
    "big": (2**63, 2**64 - 1, 5),
    "bigger": (2**70, 1, 2),
    "types": (1, "1", 2),
    "alike": (1, True, 1.0),
    "floats": (0.5, 1.5, -0.0),
    "not a number": (float("nan"), 1.0, 2.0),
    "infinite": (float("inf"), 1.0, 2.0),
    "none": (None, "a", "b"),
    "tuples": (("a", 1), ("a", 2), ("b", 1)),
    "lists": (["a"], ["b"], ["c"]),
    "booleans": (True, False, True),
    "times": tuple(pd.date_range("2024-01-01", periods=3)),
    "dates": tuple(datetime.date(2024, 1, day) for day in (1, 2, 3)),
    "decimals": tuple(decimal.Decimal(text) for text in ("1.0", "1.5", "2")),
    "bytes": (b"a", b"b", b"c"),
    "complex": (1j, 2j, 3j),
    "periods": tuple(pd.period_range("2024-01", periods=3, freq="M")),
}
SIMPLE_IDS = ("letters", "integers", "unicode")


class Case(NamedTuple):
    """A frame to fit to, and rows that follow it."""

    first: Any
    later: Any

    def whole(self):
        """Both, one below the other."""
        both = [self.first, self.later]
        return pl.concat(both) if isinstance(self.first, pl.DataFrame) else pd.concat(both)


@st.composite
def cases(draw, lengths=LENGTHS):
    """A case, most often of one oddity or none."""
    n = draw(st.sampled_from(lengths)) + LATER
    kind = draw(st.sampled_from(("series", "wide", "wide", "long", "long", "long", "polars")))
    odd = draw(st.integers(0, 3)) == 3
    make = {"series": one_series, "wide": wide}.get(kind, long)
    frame, late = make(draw, n, odd)
    frame, late = broken(draw, frame, late) if draw(st.integers(0, 4)) == 4 else (frame, late)
    if kind == "polars":
        frame = in_polars(draw, frame)
        return Case(frame.filter(~late), frame.filter(late))
    return Case(frame[~late], frame[late])


def one_series(draw, n, odd):
    column = draw(columns(n, odd))
    column.index = draw(stamps(n))
    name = draw(st.sampled_from(NAMES + WRONG_NAMES)) if odd else "y"
    try:
        column.name = name
    except TypeError:
        column.name = "y"
    return column, np.arange(n) >= n - LATER


def wide(draw, n, odd):
    count = draw(st.sampled_from((1, 1, 2, 3, 0, 12) if odd else (1, 1, 2, 3)))
    parts = [draw(columns(n, odd)).to_numpy(copy=True) for _ in range(count)]
    parts = [_extension(part) for part in parts]
    frame = pd.DataFrame(dict(enumerate(parts)), index=draw(stamps(n)))
    frame.columns = names(draw, count) if odd else [f"y{i}" for i in range(count)]
    return frame, np.arange(n) >= n - LATER


def _extension(part):
    return part if part.dtype != object else pd.Series(part, dtype=object).array


def names(draw, count):
    """Column names: unusual, wrong, repeated or of two levels."""
    kind = draw(st.sampled_from(("unusual", "unusual", "wrong", "repeated", "levels")))
    if kind == "levels":
        return pd.MultiIndex.from_tuples([("a", i) for i in range(count)], names=["p", "q"])
    if kind == "repeated":
        return ["y"] * count
    pool = NAMES + WRONG_NAMES if kind == "wrong" else NAMES
    picked = draw(st.lists(st.sampled_from(range(len(pool))), min_size=count, max_size=count))
    index = np.empty(count, object)
    index[:] = [pool[i] for i in picked]
    return pd.Index(index, tupleize_cols=False)


def long(draw, n, odd):
    n_series = draw(st.sampled_from((1, 1, 2, 3)))
    shorter = draw(st.sampled_from((0, 0, 0, 1, 3, n)))
    lengths = [max(n - i * shorter, LATER) for i in range(n_series)]
    codes = np.repeat(np.arange(n_series), lengths)
    late = np.concatenate([np.arange(length) >= length - LATER for length in lengths])
    differ = odd and draw(st.integers(0, 3)) == 3
    own = [draw(stamps(n)).to_flat_index() for _ in range(n_series if differ else 1)]
    own *= 1 if differ else n_series
    times = [index[len(index) - length :] for index, length in zip(own, lengths, strict=True)]
    frame = pd.DataFrame({"ds": one_below_the_other(times)})
    frame.insert(0, "unique_id", ids(draw, codes, odd))
    for name in ("y", "x")[: draw(st.sampled_from((1, 1, 1, 2)))]:
        frame[name] = draw(columns(len(frame), odd))
    if odd and draw(st.integers(0, 5)) == 5:
        frame = frame.drop(columns=draw(st.sampled_from(("unique_id", "y", "ds"))))
    return frame, late


def one_below_the_other(times):
    """Timestamps of all series as a column, of objects where they are of different kinds."""
    if len({str(index.dtype) for index in times}) == 1:
        return pd.Series(times[0].append(times[1:]))
    return pd.Series([time for index in times for time in index.astype(object)], dtype=object)


def ids(draw, codes, odd):
    labels = IDS[draw(st.sampled_from(sorted(IDS) if odd else SIMPLE_IDS))]
    column = pd.Series([labels[code] for code in codes], dtype=object)
    form = draw(st.sampled_from(("inferred", "inferred", "object", "category", "string")))
    if form == "object":
        return column
    try:
        inferred = pd.Series(column.tolist())
        dtype = {"category": "category", "string": "string"}.get(form)
        return inferred if dtype is None else inferred.astype(dtype)
    except (TypeError, ValueError, OverflowError, UnicodeEncodeError):
        return column


def broken(draw, frame, late):
    """Rows out of order, repeated or left out."""
    n = len(frame)
    if n < 3:
        return frame, late
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rows = {
        "shuffled": lambda: rng.permutation(n),
        "backwards": lambda: np.arange(n)[::-1],
        "repeated": lambda: np.sort(np.append(np.arange(n), rng.integers(0, n))),
        "gap": lambda: np.delete(np.arange(n), rng.integers(0, n)),
        "gaps": lambda: np.flatnonzero(rng.random(n) < 0.6),
        "interleaved": lambda: np.argsort(np.arange(n) % 7, kind="stable"),
        "far": lambda: np.append(np.arange(n // 2), n - 1),
    }[draw(st.sampled_from(("shuffled", "backwards", "repeated", "gap", "gap", "gaps", "far")))]()
    return frame.iloc[rows], late[rows]


def in_polars(draw, frame):
    """The frame in polars, perhaps with columns that only polars has."""
    data = {str(name): as_polars(frame.iloc[:, i]) for i, name in enumerate(frame.columns)}
    made = pl.DataFrame(data)
    kind = draw(st.sampled_from(("", "", "", "date", "decimal", "null", "list", "struct", "cat")))
    n = len(made)
    if kind == "date" and isinstance(made.schema.get("ds"), pl.Datetime):
        return made.with_columns(pl.col("ds").dt.date())
    if kind == "decimal":
        return made.with_columns(y=pl.Series(range(n)).cast(pl.Decimal(20, 2)))
    if kind == "null":
        return made.with_columns(x=pl.Series([None] * n, dtype=pl.Null))
    if kind in ("list", "struct"):
        item = [1.0] if kind == "list" else {"a": 1}
        name = draw(st.sampled_from(("y", "x", "unique_id", "ds")))
        return made.with_columns(pl.Series(name, [item] * n))
    if kind == "cat" and made.schema.get("unique_id") == pl.String:
        return made.with_columns(pl.col("unique_id").cast(pl.Categorical))
    return made


def as_polars(column):
    """A column in polars, as objects where polars has no such type."""
    if isinstance(column.dtype, pd.DatetimeTZDtype):
        utc = _known(column.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy())
        zone = str(column.dt.tz)
        if "/" in zone or zone == "UTC":
            return pl.Series(utc).dt.replace_time_zone("UTC").dt.convert_time_zone(zone)
        return pl.Series(utc)
    if column.dtype.kind in "iufbM" and isinstance(column.dtype, np.dtype):
        return pl.Series(_known(column.to_numpy()))
    values = [None if pd.api.types.is_scalar(v) and pd.isna(v) else v for v in column.tolist()]
    try:
        return pl.Series(values)
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError, UnicodeEncodeError):
        return pl.Series([repr(value) for value in values])


def _known(array):
    """With a dtype that polars has."""
    other = {"float16": "float32", "datetime64[s]": "datetime64[ms]"}.get(str(array.dtype))
    return array if other is None else array.astype(other)
