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


class TestShape:
    def test_empty(self):
        told(ValueError, long().iloc[:0], "must have rows; it is empty")
        told(ValueError, wide()["a"].iloc[:0], "must have rows; it is empty")
        told(ValueError, pl.DataFrame({"ds": [], "y": []}), "must have rows; it is empty")

    def test_no_columns(self):
        told(ValueError, pd.DataFrame(index=DAYS), "must have columns; it has none")

    def test_duplicated_names(self):
        frame = pd.concat([wide(), wide()[["b"]]], axis=1)
        told(ValueError, frame, "column names must be unique; duplicated are 'b'")

    def test_several_levels(self):
        frame = wide().set_axis(pd.MultiIndex.from_tuples([("u", "a"), ("u", "b")]), axis=1)
        told(ValueError, frame, "columns must have one level", "MultiIndex of 2")
        told(TypeError, long().set_index(["unique_id", "ds"]), "one level", "reset_index()")

    @pytest.mark.parametrize("name", [("a", "b"), 1.5, None, True])
    def test_names_of_other_types(self, name):
        told(ValueError, wide().set_axis(["a", name], axis=1), "Rename it")

    def test_name_of_the_index(self):
        told(ValueError, wide().rename_axis(index=2.5), "strings or integers; got 2.5 (float)")


class TestColumns:
    def test_target_not_found(self):
        told(ValueError, long(), "'z' is not a column", "'y'", target="z")
        told(ValueError, wide(), "'z' is not a column", "'a', 'b'", target=["a", "z"])
        told(ValueError, wide()["a"], "'z' is not a column", "'a'", target="z")
        bare = long().drop(columns="y")
        told(ValueError, bare, "there is no other column than 'unique_id', 'ds'. Add it.")
        alone = bare.drop(columns="unique_id").iloc[:3]
        told(ValueError, alone, "'y' is not a column; there is no other column than 'ds'. Add it.")
        told(ValueError, long().rename(columns={"y": "sales"}), "'y' is not", "'sales'", "target")

    @pytest.mark.parametrize("target", [[], ["a", "a"]])
    def test_target_names_no_column_or_one_twice(self, target):
        told(ValueError, wide(), "target must name columns, each once", target=target)

    def test_time_column_not_found(self):
        frame = long().rename(columns={"ds": "day"})
        told(ValueError, frame, "needs the time column 'ds'", "'day'", "time_col")
        told(ValueError, pl.DataFrame({"y": [1.0]}), "needs the time column 'ds'")

    @pytest.mark.parametrize(
        ("values", "came"),
        [
            (list("uvwxyz"), "'u' at row 0, str"),
            ([1j] * 6, "complex128"),
            (DAYS, "datetime64"),
            (DAYS - DAYS[0], "timedelta64"),
            (pd.Series([1.0, np.nan, "2", "n/a", "x", 3], dtype=object), "'n/a' at row 3, str"),
            (pd.Series([None, 1.5, Decimal(1), 1j, 3, 4], dtype=object), "1j at row 3, complex"),
            ([True] * 6, "dtype bool"),
        ],
    )
    def test_target_that_is_no_number(self, values, came):
        told(TypeError, long(y=values), "the target 'y' must be numeric", came, "Convert it")

    def test_numbers_written_as_text(self):
        text = [f"1.03{i},5" for i in range(6)]
        parts = "written as text, such as '1.030,5' at row 0", 'pd.read_csv(..., decimal=","'
        told(TypeError, long(y=text), "target 'y' must be numeric", *parts, strict=True)
        told(TypeError, wide(b=text).rename_axis("ds"), "'b' must be", *parts, strict=True)
        told(TypeError, long(x=text), "'x' holds numbers", *parts, strict=True)

    def test_text_among_numbers_is_cited_with_its_row(self):
        text = ["1", "2", None, "five", "5", "6"]
        told(TypeError, long(y=text), "such as 'five' at row 3", strict=True)
        told(TypeError, long(y=pd.Series(text, dtype="category")), "'five' at row 3")
        told(TypeError, long(x=text), "'x' holds numbers", "'five' at row 3", strict=True)
        for frame in (long(y=text), pl.DataFrame({"ds": range(6), "y": text}), long(x=text)):
            told(ValueError, frame, "must hold numbers in every row", "'five' in row 3")

    def test_text_beside_the_target(self):
        frame = long(region=list("nnnsss"), price=1.0, when=DAYS)
        told(TypeError, frame, "not so 'when' (dtype datetime64", "Drop them, or convert them")
        told(TypeError, frame.drop(columns="when"), "not so 'region'", "drop_first", strict=True)
        told(TypeError, wide(c="x"), "'c' holds labels, such as 'x' at row 0", "by target")
        told(ValueError, long(x=list("uvwxyz")), "'x' has 6 in 6 rows, such as 'u', 'v', 'w'")

    def test_exactly_the_exogenous_columns(self):
        frame = long(u=1.0, v=2.0)
        told(
            ValueError, frame, "must be 'u', 'w'", "missing 'w'", "not needed 'v'", exog=("u", "w")
        )
        told(ValueError, frame, "must be none", "not needed 'u', 'v'", exog=())
        told(ValueError, wide(), "missing 'c'", target=["a", "b"], exog=("c",))


class TestTimestamps:
    def test_text(self):
        frame = long(ds=["1 May 2020", "2 May 2020", "3 May 2020"] * 2)
        told(ValueError, frame, "the column 'ds'", "'1 May 2020'", "pd.to_dateti", strict=True)
        told(TypeError, wide().set_axis(list("uvwxyz")), "the index of a frame", "pd.to_datetime")

    def test_floats(self):
        told(TypeError, long(ds=[0.0, 1.0, 2.0] * 2), "dtype float64", "astype('int64')")

    def test_missing(self):
        told(ValueError, long(ds=[*DAYS[:5], pd.NaT]), "'ds'", "1 are missing (NaT) at row 5")
        told(ValueError, wide().set_axis([*DAYS[:4], pd.NaT, pd.NaT]), "2 are missing", "row 4, 5")

    def test_duplicated(self):
        frame = long(ds=[*stamps(1, 2, 3), *stamps(1, 2, 2)])
        told(ValueError, frame, "duplicated are series 'b': 1 row at 2020-01-02", "aggregate")

    def test_duplicated_since_ids_have_another_name(self):
        frame = long().rename(columns={"unique_id": "shop"}).drop(columns="shop")
        told(
            ValueError, frame, "duplicated are 3 rows at 2020-01-01", "name their column by id_col"
        )

    def test_unsorted(self):
        frame = long(ds=[*stamps(1, 2, 3), *stamps(3, 1, 2)])
        told(ValueError, frame, "go back in series 'b': 1 row at 2020-01-01", "Sort by")
        parts = "must increase", "5 rows at 2020-01-05", "sort_index"
        told(ValueError, wide()[::-1], *parts, strict=True)

    def test_missing_ids(self):
        frame = long(unique_id=["a", "a", "a", None, "b", np.nan])
        told(ValueError, frame, "'unique_id'", "2 ids are missing, at row 3, 5")

    def test_gap(self):
        frame = long(ds=[*stamps(1, 2, 3), *stamps(1, 2, 5)])
        told(ValueError, frame, "freq='D'", "2 missing after series 'b': 1 row at 2020-01-02")
        told(ValueError, frame, 'missing="interpolate"')

    def test_holidays(self):
        index = pd.bdate_range("2023-12-18", periods=20).delete(5)
        series = pd.Series(1.0, index=index)
        told(ValueError, series, "freq='B'", "1 missing after 1 row at 2023-12-22", "integer index")
        told(ValueError, series, "Reindex to business days")

    def test_out_of_range(self):
        index = pd.DatetimeIndex(np.array(["3000-01-01", "3000-02-01"], "datetime64[s]"))
        told(ValueError, pd.Series([1.0, 2.0], index=index), "between the years 1678 and 2261")


class TestValues:
    def test_missing(self):
        frame = long(y=at([1, 4], np.nan))
        told(ValueError, frame, "'y' must have no missing", "series 'a': 1 row at 2020-01-02")
        told(ValueError, frame, "series 'b': 1 row at 2020-01-02", 'missing="interpolate"')
        told(ValueError, wide(b=at([1, 2, 3, 4], np.nan)), "4 rows at 2020-01-02", "and 1 more")

    def test_missing_in_an_exogenous_column(self):
        told(ValueError, long(x=at([1], np.nan)), "the column 'x' must have no missing")

    @pytest.mark.parametrize("missing", ["error", "interpolate"])
    def test_all_missing(self, missing):
        told(ValueError, wide(b=np.nan), "'b' must hold values; all are missing", missing=missing)
        frame = long(y=at([3, 4, 5], np.nan))
        told(ValueError, frame, "'y' of series 'b' must hold values", missing=missing)

    @pytest.mark.parametrize("row", [0, 2, 3, 5])
    def test_ends_are_not_interpolated(self, row):
        frame = long(y=at([row], np.nan))
        series = "a" if row < 3 else "b"
        told(ValueError, frame, "first or last row", f"series {series!r}", missing="interpolate")

    @pytest.mark.parametrize("missing", ["error", "interpolate", "keep"])
    def test_infinite(self, missing):
        frame = long(y=at([4], -np.inf))
        part = "'y' must be finite; infinite are series 'b': 1 row at 2020-01-02"
        told(ValueError, frame, part, missing=missing)
        part = "'x' must be finite; infinite are series 'b'"
        told(ValueError, long(x=at([4], np.inf)), part, missing=missing)

    def test_many_series_are_cut_short(self):
        frame = pd.DataFrame({"unique_id": range(20), "ds": 0, "y": np.inf})
        told(ValueError, frame, "series 2: 1 row at 0; and 17 more series", freq=1)

    def test_zones_are_shown(self):
        index = pd.date_range("2020-01-01", periods=4, tz="Europe/Berlin")
        series = pd.Series([1.0, np.nan, 2.0, 3.0], index=index)
        told(ValueError, series, "1 row at 2020-01-02 00:00:00+01:00")


def test_missing_is_a_word_of_the_table():
    told(ValueError, long(), "('auto', 'error', 'interpolate', 'keep'); got 'drop'", missing="drop")


class TestLikeTheFitted:
    def layout(self, data, **options):
        return read_panel(data, **options).layout

    def test_kind(self):
        told(ValueError, wide(), "must be long with the id column", layout=self.layout(long()))
        told(ValueError, long(), "frame must be wide", "got long", layout=self.layout(wide()))
        told(ValueError, wide(), "must be series", layout=self.layout(wide()["a"]))
        alone = long().iloc[:3].drop(columns="unique_id")
        told(ValueError, long(), "without an id column", layout=self.layout(alone))

    def test_targets(self):
        told(ValueError, wide()[["a"]], "'b' is not a column", layout=self.layout(wide()))

    def test_timestamps(self):
        numbers = wide().reset_index(drop=True)
        told(ValueError, numbers, "timestamps must be datetime", layout=self.layout(wide()))
        zone = wide().tz_localize("UTC")
        told(ValueError, zone, "time zone must be none; got UTC", layout=self.layout(wide()))
        months = wide().set_axis(pd.period_range("2020-01", periods=6, freq="M"))
        quarters = wide().set_axis(pd.period_range("2020-01", periods=6, freq="Q"))
        told(ValueError, quarters, "period[M]", "asfreq", layout=self.layout(months))

    def test_frequency(self):
        monthly = wide().set_axis(pd.date_range("2020-01-01", periods=6, freq="MS"))
        told(ValueError, monthly, "one step of freq='D' apart", layout=self.layout(wide()))
        told(ValueError, monthly, "'D'; got 'MS'", layout=self.layout(wide()), freq="MS")


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
