"""Columns of numbers, and of what is none: sizes, dtypes, places that are missing."""

import datetime
import decimal

import numpy as np
import pandas as pd
from hypothesis import strategies as st

TINY, DENORMAL, HUGE = 1e-300, 5e-324, 1e300

SHAPES = {
    "noise": lambda rng, n: rng.normal(size=n),
    "walk": lambda rng, n: rng.normal(size=n).cumsum() + 50,
    "season": lambda rng, n: 10 + 3 * np.sin(np.arange(n)) + rng.normal(size=n),
    "line": lambda rng, n: np.arange(n) * 1.5,
    "growth": lambda rng, n: np.exp(np.arange(n) * 3.0),
    "constant": lambda rng, n: np.full(n, 7.1),
    "zeros": lambda rng, n: np.zeros(n),
    "minus zero": lambda rng, n: np.where(np.arange(n) % 2, 0.0, -0.0),
    "hair": lambda rng, n: np.where(np.arange(n) == n // 2, 1 + 1e-15, 1.0),
    "alternating": lambda rng, n: np.where(np.arange(n) % 2, 1.0, -1.0),
    "flat then jump": lambda rng, n: np.where(np.arange(n) < n - 2, 3.0, 1e6),
    "outlier": lambda rng, n: np.where(np.arange(n) == n // 3, 1e12, rng.normal(size=n)),
    "offset": lambda rng, n: 1e15 + rng.integers(0, 3, n),
    "beyond 2**53": lambda rng, n: 2.0**60 + rng.integers(0, 2**12, n),
    "huge": lambda rng, n: HUGE * rng.normal(size=n),
    "largest": lambda rng, n: np.where(np.arange(n) % 2, 1.7e308, -1.7e308),
    "large": lambda rng, n: 1e60 * rng.normal(size=n),
    "small": lambda rng, n: 1e-60 * rng.normal(size=n),
    "tiny": lambda rng, n: TINY * rng.normal(size=n),
    "denormal": lambda rng, n: DENORMAL * rng.integers(0, 9, n),
    "decay": lambda rng, n: np.exp(-30.0 * np.arange(n)),
    "wide": lambda rng, n: 10.0 ** rng.uniform(-60, 60, n),
    "one": lambda rng, n: (np.arange(n) == n // 2).astype(float),
    "counts": lambda rng, n: rng.poisson(2.0, n).astype(float),
}
OFTEN = ("noise", "walk", "season")
PLAIN = ("float64",) * 6 + ("float32", "float16", "int8", "int16", "int64", "uint8", "uint64")
NULLABLE = ("Int64", "Int8", "UInt16", "Float64", "Float32")


@st.composite
def columns(draw, n, odd=False):
    """A column of n values as a pandas Series; if `odd`, perhaps of no numbers."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = draw(st.sampled_from(sorted(SHAPES) if draw(st.booleans()) else OFTEN))
    values = SHAPES[shape](rng, n)
    if odd and draw(st.integers(0, 2)) == 2:
        return strange(draw, values)
    dtype = draw(st.sampled_from(PLAIN + NULLABLE))
    if dtype not in ("float64", "float32", "float16", "Float64", "Float32"):
        bounds = np.iinfo(dtype.lower())
        values = np.rint(10 * np.clip(values, bounds.min / 20, bounds.max / 20))
    with np.errstate(over="ignore", under="ignore"):
        column = pd.Series(values.astype(dtype.lower()))
    column = column.astype(dtype) if dtype in NULLABLE else column
    return holed(draw, column) if draw(st.integers(0, 7)) == 7 else column


def holed(draw, column):
    """With places missing or infinite."""
    n = len(column)
    rows = draw(st.sampled_from(([n // 2], [0], [n - 1], range(n), range(1, n - 1), [0, n - 1])))
    rows = [row for row in rows if 0 <= row < n]
    what = draw(st.sampled_from(("nan", "nan", "inf", "-inf", "none")))
    if what == "none" or column.dtype in NULLABLE:
        return column.astype("Float64").where(~np.isin(np.arange(n), rows))
    column = column.astype("float64")
    column.iloc[rows] = float(what)
    return column


def strange(draw, values):
    """What is no column of real numbers, or one in other clothes."""
    n = len(values)
    made = {
        "boolean": lambda: pd.Series(values > 0),
        "nullable boolean": lambda: pd.Series(values > 0).astype("boolean"),
        "decimal": lambda: pd.Series([decimal.Decimal(repr(float(v))) for v in values]),
        "text": lambda: pd.Series([f"{v:g}" for v in values]),
        "string": lambda: pd.Series([f"{v:g}" for v in values], dtype="string"),
        "words": lambda: pd.Series(["many"] * n),
        "none": lambda: pd.Series([None] * n),
        "object": lambda: pd.Series(list(values), dtype=object),
        "mixed": lambda: pd.Series([*values[: n // 2], *["?"] * (n - n // 2)], dtype=object),
        "with none": lambda: pd.Series([None, *values[1:]], dtype=object),
        "big integers": lambda: pd.Series([2**70 + i for i in range(n)], dtype=object),
        "complex": lambda: pd.Series(values + 1j),
        "category": lambda: pd.Series(pd.Categorical(np.arange(n) % 3)),
        "sparse": lambda: pd.Series(pd.arrays.SparseArray(values)),
        "timedelta": lambda: pd.Series(pd.to_timedelta(np.arange(n), unit="h")),
        "datetime": lambda: pd.Series(pd.date_range("2024-01-01", periods=n)),
        "date": lambda: pd.Series([datetime.date(2024, 1, 1)] * n),
        "list": lambda: pd.Series([[1.0, 2.0]] * n),
        "array": lambda: pd.Series([np.ones(2)] * n),
        "bytes": lambda: pd.Series([b"1"] * n),
    }
    return made[draw(st.sampled_from(sorted(made)))]()
