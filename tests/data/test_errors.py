"""Every refusal says what was required, what came and what to do."""

import re
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest

from tsrnn.batch import forecast_batches
from tsrnn.data import read_future, read_panel
from tsrnn.linear import ARMA, ETS

DAYS = pd.date_range("2020-01-01", periods=6)


def long(**changes):
    """Return series "a" and "b" of three days each."""
    columns = {"unique_id": list("aaabbb"), "ds": [*DAYS[:3], *DAYS[:3]], "y": np.arange(6.0)}
    return pd.DataFrame(columns | changes)


def wide(**changes):
    return pd.DataFrame({"a": np.arange(6.0), "b": np.ones(6), **changes}, index=DAYS)


def at(rows, value):
    y = np.arange(6.0)
    y[rows] = value
    return y


def stamps(*days):
    return [pd.Timestamp(2020, 1, day) for day in days]


def told(error, data, *parts, **options):
    with pytest.raises(error) as caught:
        read_panel(data, **options)
    for part in parts:
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("data", "came"),
    [
        (None, "NoneType"),
        ({"y": [1]}, "got dict"),
        (long().groupby("unique_id"), "DataFrameGroupBy"),
        (pl.DataFrame({"ds": [1]}).lazy(), "LazyFrame. Call .collect()"),
        (pl.Series([1.0]), "polars"),
    ],
)
def test_what_is_no_frame(data, came):
    told(TypeError, data, "must be a pandas Series or DataFrame", came)


@pytest.mark.parametrize(("data", "came"), [(np.zeros(3), "numpy.ndarray"), ([1, 2], "got list")])
def test_arrays_are_no_frames_where_reading_is_strict(data, came):
    told(TypeError, data, "must be a pandas Series or DataFrame", came, strict=True)


NUMBERS = np.random.default_rng(0).normal(size=(30, 2))


@pytest.mark.parametrize(
    ("values", "kind"),
    [(NUMBERS[:, 0], "Series"), (NUMBERS[:, 0].tolist(), "Series"), (NUMBERS, "DataFrame")],
)
def test_a_bare_array_is_told_how_to_be_wrapped(values, kind):
    with pytest.raises(TypeError) as caught:
        ETS(strict=True).fit(values)
    text = str(caught.value)
    forms = re.findall(rf"pd\.{kind}\(values(?:, pd\.date_range\(.*?\))?\)", text)
    assert len(forms) == 2
    for form in forms:  # what is advised is taken
        panel = read_panel(eval(form, {"pd": pd, "values": values, "len": len}))
        np.testing.assert_array_equal(panel.values[:, 0], NUMBERS[:, 0])


def test_an_array_for_x_future_is_named(tmp_path):
    frame = pd.DataFrame({"y": NUMBERS[:, 0], "x": NUMBERS[:, 1]})
    model = ARMA((1, 0), target="y", known_ahead=["x"]).fit(frame)
    with pytest.raises(TypeError, match=r"X_future must be .* got numpy\.ndarray\. Wrap it"):
        model.predict(2, X_future=NUMBERS[:2])


@pytest.mark.parametrize("source", [NUMBERS, NUMBERS[:, 0], NUMBERS[:, 0].tolist()])
def test_an_array_for_a_long_frame(source, tmp_path):
    with pytest.raises(TypeError, match=r"source must be .* Give a row .*'unique_id': "):
        forecast_batches(source, ARMA((1, 0)), h=1, out=tmp_path / "out")


def spoiled(values):
    """Return a long frame with the target of one row replaced by text or objects."""
    return long(y=pd.Series(values, dtype=object))


BARE = long().drop(columns="y")
ALONE = BARE.drop(columns="unique_id").iloc[:3]
TEXT = [f"1.03{i},5" for i in range(6)]
AS_TEXT = "written as text, such as '1.030,5' at row 0", 'pd.read_csv(..., decimal=","'
FIVE = ["1", "2", None, "five", "5", "6"]
BESIDE = long(region=list("nnnsss"), price=1.0, when=DAYS)
UV = long(u=1.0, v=2.0)
TWICE = long(ds=[*stamps(1, 2, 3), *stamps(1, 2, 2)])
GAP = long(ds=[*stamps(1, 2, 3), *stamps(1, 2, 5)])
HOLES = long(y=at([1, 4], np.nan))
WEEKDAYS = pd.Series(1.0, pd.bdate_range("2023-12-18", periods=20).delete(5))
YEAR_3000 = pd.DatetimeIndex(np.array(["3000-01-01", "3000-02-01"], "datetime64[s]"))
BERLIN = pd.date_range("2020-01-01", periods=4, tz="Europe/Berlin")
LEVELS = pd.MultiIndex.from_tuples([("u", "a"), ("u", "b")])
MANY = pd.DataFrame({"unique_id": range(20), "ds": 0, "y": np.inf})
STRICT = {"strict": True}
FILL = {"missing": "interpolate"}
# Frame, parts of the message, and arguments; by default a ValueError.
SHAPES = [
    *(
        (frame, "must have rows", "Give one with rows")
        for frame in (pd.DataFrame(), pd.DataFrame({"y": []}), pd.Series([]))
    ),
    (long().iloc[:0], "must have rows; it is empty"),
    (wide()["a"].iloc[:0], "must have rows; it is empty"),
    (pl.DataFrame({"ds": [], "y": []}), "must have rows; it is empty"),
    (pd.DataFrame(index=DAYS), "must have columns; it has none"),
    (pd.concat([wide(), wide()[["b"]]], axis=1), "column names must be unique; duplicated are 'b'"),
    (wide().set_axis(LEVELS, axis=1), "columns must have one level", "MultiIndex of 2"),
    (TypeError, long().set_index(["unique_id", "ds"]), "one level", "reset_index()"),
    *(
        (wide().set_axis(["a", name], axis=1), "Rename it")
        for name in (("a", "b"), 1.5, None, True)
    ),
    (wide().rename_axis(index=2.5), "strings or integers; got 2.5 (float)"),
]
NESTED = [(pl.List(pl.Float64), [1.0]), (pl.Struct({"a": pl.Int64}), {"a": 1})]
CELLS = pd.DataFrame({"ds": [1, 2], "y": [np.ones(2), np.ones(2)]})
LISTS = pl.DataFrame({"unique_id": [[1.0]] * 3, "ds": [1, 2, 3], "y": [1.0, 2.0, 3.0]})
COLUMNS = [
    *(
        (TypeError, pl.DataFrame({"ds": [1, 2], "y": pl.Series([item] * 2, dtype=dtype)}),
         "the target 'y' must be numeric", "Convert")
        for dtype, item in NESTED
    ),
    (TypeError, CELLS, "the target 'y' must be", "[1. 1.] at row 0, ndarray"),
    (TypeError, LISTS, "the column 'unique_id' must hold text", "Convert"),
    (long(), "'z' is not a column", "'y'", {"target": "z"}),
    (wide(), "'z' is not a column", "'a', 'b'", {"target": ["a", "z"]}),
    (wide()["a"], "'z' is not a column", "'a'", {"target": "z"}),
    (BARE, "there is no other column than 'unique_id', 'ds'. Add it."),
    (ALONE, "'y' is not a column; there is no other column than 'ds'. Add it."),
    (long().rename(columns={"y": "sales"}), "'y' is not", "'sales'", "target"),
    *((wide(), "target must name columns, each once", {"target": t}) for t in ([], ["a", "a"])),
    *(
        (wide(), "target must name columns", "Give a name", {"target": target})
        for target in (1.5, [["a"]], [None], {"a": 1.0}.values())
    ),
    (long().rename(columns={"ds": "day"}), "needs the time column 'ds'", "'day'", "time_col"),
    (pl.DataFrame({"y": [1.0]}), "needs the time column 'ds'"),
    *(
        (TypeError, frame, "the target 'y' must be numeric", came, "Convert it")
        for frame, came in (
            (long(y=list("uvwxyz")), "'u' at row 0, str"),
            (long(y=[1j] * 6), "complex128"),
            (long(y=DAYS), "datetime64"),
            (long(y=DAYS - DAYS[0]), "timedelta64"),
            (spoiled([1.0, np.nan, "2", "n/a", "x", 3]), "'n/a' at row 3, str"),
            (spoiled([None, 1.5, Decimal(1), 1j, 3, 4]), "1j at row 3, complex"),
            (long(y=[True] * 6), "dtype bool"),
        )
    ),
    (TypeError, long(y=TEXT), "target 'y' must be numeric", *AS_TEXT, STRICT),
    (TypeError, wide(b=TEXT).rename_axis("ds"), "'b' must be", *AS_TEXT, STRICT),
    (TypeError, long(x=TEXT), "'x' holds numbers", *AS_TEXT, STRICT),
    (TypeError, long(y=FIVE), "such as 'five' at row 3", STRICT),
    (TypeError, long(y=pd.Series(FIVE, dtype="category")), "'five' at row 3"),
    (TypeError, long(x=FIVE), "'x' holds numbers", "'five' at row 3", STRICT),
    *(
        (frame, "must hold numbers in every row", "'five' in row 3")
        for frame in (long(y=FIVE), pl.DataFrame({"ds": range(6), "y": FIVE}), long(x=FIVE))
    ),
    (TypeError, BESIDE, "not so 'when' (dtype datetime64", "Drop them, or convert them"),
    (TypeError, BESIDE.drop(columns="when"), "not so 'region'", "drop_first", STRICT),
    (TypeError, wide(c="x"), "'c' holds labels, such as 'x' at row 0", "by target"),
    (long(x=list("uvwxyz")), "'x' has 6 in 6 rows, such as 'u', 'v', 'w'"),
    (UV, "must be 'u', 'w'", "missing 'w'", "not needed 'v'", {"exog": ("u", "w")}),
    (UV, "must be none", "not needed 'u', 'v'", {"exog": ()}),
    (wide(), "missing 'c'", {"target": ["a", "b"], "exog": ("c",)}),
]  # fmt: skip
WRAPPING = [(2**64 - 40, "uint64"), (2**63 - 40, "int64"), (-(2**63), "int64")]
TIMES = [
    *(
        (pd.Series(range(4), np.array([first + i for i in range(4)], dtype)),
         "up to 2**61 in size", "Subtract")
        for first, dtype in WRAPPING
    ),
    *(  # costs no memory
        (pd.Series(range(7), [0, 1, 2, 3, 4, 5, last]), "of which 7 came", "Check its timestamps",
         {"missing": missing})
        for last in (10**9, 2**60)
        for missing in ("interpolate", "keep")
    ),
    (long(ds=["1 May 2020", "2 May 2020", "3 May 2020"] * 2), "the column 'ds'", "'1 May 2020'",
     "pd.to_dateti", STRICT),
    (TypeError, wide().set_axis(list("uvwxyz")), "the index of a frame", "pd.to_datetime"),
    (TypeError, long(ds=[0.0, 1.0, 2.0] * 2), "dtype float64", "astype('int64')"),
    (long(ds=[*DAYS[:5], pd.NaT]), "'ds'", "1 are missing (NaT) at row 5"),
    (wide().set_axis([*DAYS[:4], pd.NaT, pd.NaT]), "2 are missing", "row 4, 5"),
    (TWICE, "duplicated are series 'b': 1 row at 2020-01-02", "aggregate"),
    (long().drop(columns="unique_id"), "duplicated are 3 rows at 2020-01-01",
     "name their column by id_col"),
    (long(ds=[*stamps(1, 2, 3), *stamps(3, 1, 2)]), "go back in series 'b': 1 row at 2020-01-01",
     "Sort by"),
    (wide()[::-1], "must increase", "5 rows at 2020-01-05", "sort_index", STRICT),
    (long(unique_id=["a", "a", "a", None, "b", np.nan]), "'unique_id'",
     "2 ids are missing, at row 3, 5"),
    (GAP, "freq='D'", "2 missing after series 'b': 1 row at 2020-01-02", 'missing="interpolate"'),
    (WEEKDAYS, "freq='B'", "1 missing after 1 row at 2023-12-22", "integer index",
     "Reindex to business days"),
    (pd.Series([1.0, 2.0], YEAR_3000), "between the years 1678 and 2261"),
]  # fmt: skip
VALUES = [
    (HOLES, "'y' must have no missing", "series 'a': 1 row at 2020-01-02"),
    (HOLES, "series 'b': 1 row at 2020-01-02", 'missing="interpolate"'),
    (wide(b=at([1, 2, 3, 4], np.nan)), "4 rows at 2020-01-02", "and 1 more"),
    (long(x=at([1], np.nan)), "the column 'x' must have no missing"),
    *(
        case
        for missing in ({"missing": "error"}, FILL)
        for case in (
            (wide(b=np.nan), "'b' must hold values; all are missing", missing),
            (long(y=at([3, 4, 5], np.nan)), "'y' of series 'b' must hold values", missing),
        )
    ),
    *(
        (long(y=at([row], np.nan)), "first or last row", f"series {series!r}", FILL)
        for row, series in ((0, "a"), (2, "a"), (3, "b"), (5, "b"))
    ),
    *(
        (long(**{name: at([4], value)}), f"{name!r} must be finite; infinite are series 'b': 1 row "
         "at 2020-01-02", {"missing": missing})
        for missing in ("error", "interpolate", "keep")
        for name, value in (("y", -np.inf), ("x", np.inf))
    ),
    (MANY, "series 2: 1 row at 0; and 17 more series", {"freq": 1}),
    (pd.Series([1.0, np.nan, 2.0, 3.0], BERLIN), "1 row at 2020-01-02 00:00:00+01:00"),
    (long(), "('auto', 'error', 'interpolate', 'keep'); got 'drop'", {"missing": "drop"}),
]  # fmt: skip
MONTHLY = wide().set_axis(pd.date_range("2020-01-01", periods=6, freq="MS"))
OF_MONTHS, OF_QUARTERS = (
    wide().set_axis(pd.period_range("2020-01", periods=6, freq=freq)) for freq in "MQ"
)
# Frames in another form than the frame fitted to.
OTHERS = [
    (wide(), long(), "must be long with the id column"),
    (long(), wide(), "frame must be wide", "got long"),
    (wide(), wide()["a"], "must be series"),
    (long(), long().iloc[:3].drop(columns="unique_id"), "without an id column"),
    (wide()[["a"]], wide(), "'b' is not a column"),
    (wide().reset_index(drop=True), wide(), "timestamps must be datetime"),
    (wide().tz_localize("UTC"), wide(), "time zone must be none; got UTC"),
    (OF_QUARTERS, OF_MONTHS, "period[M]", "asfreq"),
    (MONTHLY, wide(), "one step of freq='D' apart"),
    (MONTHLY, wide(), "'D'; got 'MS'", {"freq": "MS"}),
]


def words_of(case):
    """Return the first words of a message, which name the case."""
    return next(part for part in case if isinstance(part, str))


@pytest.mark.parametrize("case", SHAPES + COLUMNS + TIMES + VALUES, ids=words_of)
def test_a_frame_is_refused_by_what_is_wrong(case):
    error, data, *parts = case if isinstance(case[0], type) else (ValueError, *case)
    options = parts.pop() if isinstance(parts[-1], dict) else {}
    told(error, data, *parts, **options)


@pytest.mark.parametrize("case", OTHERS, ids=words_of)
def test_a_frame_unlike_the_fitted_is_refused(case):
    data, fitted, *parts = case
    options = parts.pop() if isinstance(parts[-1], dict) else {}
    told(ValueError, data, *parts, layout=read_panel(fitted).layout, **options)


class TestFuture:
    def future(self, **changes):
        columns = {"unique_id": list("aabb"), "ds": stamps(4, 5, 4, 5), "x": np.arange(4.0)}
        return pd.DataFrame(columns | changes)

    def refused(self, future, *parts, error=ValueError, data=None, columns=("x",)):
        panel = read_panel(long(x=0.0) if data is None else data)
        with pytest.raises(error) as caught:
            read_future(future, panel=panel, h=2, columns=columns)
        for part in parts:
            assert part in str(caught.value)

    def test_rows(self):
        self.refused(self.future().iloc[[0, 1, 2]], "series 'b': 1 at 2020-01-05", "smaller h")
        self.refused(self.future().iloc[:2], "cover the 2 steps", "series 'b': 2 at 2020-01-04")
        twice = pd.concat([self.future(), self.future().iloc[[1]]])
        self.refused(twice, "repeated are series 'a': 1 at 2020-01-05")

    def test_columns(self):
        self.refused(self.future(z=1.0), "must be 'x'; not needed 'z'. Drop these columns")
        self.refused(self.future(), "must be 'w', 'x'; missing 'w'. Add", columns=("w", "x"))
        self.refused(self.future(), "must be none; not needed 'x'", columns=())

    def test_values(self):
        future = self.future(x=[0.0, np.nan, 1.0, np.inf])
        self.refused(future, "'x' of X_future", "series 'a': 1 at 2020-01-05; series 'b'")
        self.refused(self.future(x=list("uvwx")), "'x' must be numeric", error=TypeError)

    def test_kind(self):
        self.refused(wide(), "must be long", "got wide")
        self.refused(None, "got NoneType", error=TypeError)

    def test_needs_a_panel_or_its_parts(self):
        with pytest.raises(ValueError, match="needs panel, or all of"):
            read_future(self.future(), h=2, columns=("x",), ids=["a"])


@pytest.mark.parametrize("names", [("Year", "Month"), ("Jahr", "Monat"), ("YEAR", "month")])
def test_years_and_months_in_two_columns(names):
    year, month = names
    frame = pd.DataFrame({year: [2001] * 12, month: range(1, 13), "y": np.arange(12.0)})
    with pytest.raises(ValueError, match=f"in '{year}', '{month}' are not read as") as caught:
        read_panel(frame)
    call = str(caught.value).partition("Join them: ")[2].partition(";")[0]
    panel = read_panel(eval(call, {"df": frame}))
    assert panel.freq == "MS"
    np.testing.assert_array_equal(panel.values.ravel(), frame["y"])
    dated = frame.set_axis(pd.date_range("2001-01-01", periods=12, freq="MS"))
    assert read_panel(dated).layout.target_names == (year, month, "y")
