"""Dates without being named: which column holds them, and text that means one date or several."""

from datetime import timedelta, timezone

import numpy as np
import pandas as pd
import polars as pl
import pytest

from tsrnn.data import future_times, panel_frame, read_panel, write_frame

MONTHS = pd.date_range("2020-01-01", periods=24, freq="MS")
QUARTERS = pd.period_range("2018Q1", periods=24, freq="Q")
HOURS = pd.date_range("2024-03-01", periods=24, freq="h")

ONE_MEANING = {
    "days": (MONTHS, MONTHS.strftime("%Y-%m-%d")),
    "days, slashes": (MONTHS, MONTHS.strftime("%Y/%m/%d")),
    "months": (MONTHS, MONTHS.strftime("%Y-%m")),
    "months, M": (MONTHS, MONTHS.strftime("%YM%m")),
    "quarters": (QUARTERS, QUARTERS.astype(str)),
    "quarters, hyphen": (QUARTERS, QUARTERS.strftime("%Y-Q%q")),
    "minutes": (HOURS, HOURS.strftime("%Y-%m-%d %H:%M")),
    "seconds": (HOURS, HOURS.strftime("%Y-%m-%dT%H:%M:%S")),
    "offset": (HOURS.tz_localize("UTC"), HOURS.strftime("%Y-%m-%dT%H:%MZ")),
    "blanks": (MONTHS, " " + MONTHS.strftime("%Y-%m ")),
}


def dated(times, **others):
    """A frame as read from CSV: its time in a column, rows counted."""
    return pd.DataFrame({"when": times, "sales": np.arange(24.0) ** 2, **others})


def refused(frame, *parts, error=ValueError, **options):
    with pytest.raises(error) as caught:
        read_panel(frame, **options)
    for part in parts:
        assert part in str(caught.value)


@pytest.mark.parametrize("form", ONE_MEANING)
@pytest.mark.parametrize("dtype", ["object", "string"])
def test_text_of_one_meaning(form, dtype):
    times, texts = ONE_MEANING[form]
    texts = pd.array(list(texts), dtype=dtype)
    expected = read_panel(pd.Series(np.arange(24.0) ** 2, times))
    for frame in (
        dated(texts),
        dated(texts).set_index("when"),
        dated(texts).set_index("when")["sales"],
        dated(texts).rename(columns={"when": "ds", "sales": "y"}),
    ):
        panel = read_panel(frame)
        np.testing.assert_array_equal(panel.times, expected.times)
        assert (panel.freq, panel.layout.time_kind) == (expected.freq, expected.layout.time_kind)
        assert panel.layout.tz == expected.layout.tz


@pytest.mark.parametrize("kind", ["datetimes", "periods", "text", "polars", "polars dates"])
def test_the_only_dates_of_a_frame_are_its_time(kind):
    times, column = {"datetimes": (MONTHS, MONTHS), "periods": (QUARTERS, QUARTERS)}.get(
        kind, (MONTHS, MONTHS.strftime("%Y-%m-%d"))
    )
    frame = dated(column, price=1.0)
    if kind.startswith("polars"):
        frame = pl.DataFrame({name: frame[name].tolist() for name in frame})
        if kind == "polars dates":
            frame = frame.with_columns(pl.col("when").str.to_date())
    panel = read_panel(frame)
    index = read_panel(dated(times, price=1.0).set_index("when"))
    np.testing.assert_array_equal(panel.values, index.values)
    np.testing.assert_array_equal(panel.times, index.times)
    assert (panel.target_names, panel.layout.kind) == (("sales", "price"), "wide")
    made = write_frame(panel.layout, panel.ids, future_times(panel, 2), {"": np.zeros((1, 2, 2))})
    assert type(made) is type(frame)
    assert list(made.columns) == ["when", "sales", "price"]
    again = read_panel(panel_frame(panel), layout=panel.layout)
    np.testing.assert_array_equal(again.times, panel.times)


def test_rows_left_out_of_a_counted_index_are_no_time():
    frame = dated(MONTHS)
    assert read_panel(frame[4:]).layout.time_col == "when"


class TestDoubt:
    @pytest.mark.parametrize(
        ("text", "first", "second"),
        [
            ("%m/%d/%Y", "%d/%m/%Y", "%m/%d/%Y"),
            ("%m/%d/%y", "%d/%m/%y", "%m/%d/%y"),
            ("%d-%m-%Y %H:%M", "%d-%m-%Y %H:%M", "%m-%d-%Y %H:%M"),
        ],
    )
    def test_order_of_day_and_month(self, text, first, second):
        frame = dated(MONTHS.strftime(text))[:9]
        refused(frame, "no row says which", f"format={first!r} or {second!r}")
        refused(frame.set_index("when"), "no row says which")
        # the advice is one that works
        frame["when"] = pd.to_datetime(frame["when"], format=text)
        np.testing.assert_array_equal(read_panel(frame).times, MONTHS[:9].as_unit("ns"))

    def test_two_columns_of_dates(self):
        frame = dated(MONTHS, paid=MONTHS)
        refused(frame, "dates are in 'when', 'paid'", "df.drop(columns=['paid'])")
        assert read_panel(frame.drop(columns=["paid"])).layout.time_col == "when"

    def test_an_index_of_its_own(self):
        refused(dated(MONTHS).set_index(MONTHS), "'when'", "reset_index(drop=True)")
        refused(dated(MONTHS).rename_axis("year"), "'when'", "df.drop(columns='when')")

    def test_ids(self):
        frame = dated(MONTHS, store="a")
        refused(frame, "not so 'store'", "id_col='store', time_col='when', target='sales'")
        panel = read_panel(frame, id_col="store", time_col="when", target="sales")
        assert panel.layout.kind == "long"

    def test_a_long_frame_whose_time_is_not_named(self):
        refused(dated(MONTHS, unique_id=1), "dates are in 'when'", "time_col='when'")
        refused(dated(MONTHS), "time_col='day' is no column", "time_col='when'", time_col="day")

    def test_numbers_as_text(self):
        refused(dated(MONTHS, price="1,5"), "'price'", "'1,5'", 'decimal=","', strict=True)
        totals = dated(MONTHS, price=["1.5"] * 23 + ["Total"])
        refused(totals, "'price'", "'Total'", "drop rows", strict=True)
        refused(totals, "'price'", "'Total' in row 23", "drop them")

    def test_nothing_to_forecast(self):
        refused(dated(MONTHS)[["when"]], "the dates in 'when' alone. Add one.")


class TestNoDates:
    @pytest.mark.parametrize("wrong", ["Total", "2021-13", "2021-01-05", "5"])
    def test_rows_that_hold_none_are_named(self, wrong):
        texts = list(MONTHS.strftime("%Y-%m"))
        texts[20] = wrong
        refused(dated(texts), "the column 'when'", f"{wrong!r} in row 20", "Drop these rows")

    def test_days_that_no_month_has(self):
        refused(dated(MONTHS.strftime("%Y-%m-31")), "'2020-02-31' in row 1")

    def test_offsets_that_differ(self):
        zoned = pd.date_range("2020-03-29", periods=24, freq="h", tz="Europe/Berlin")
        refused(dated(zoned.astype(str)), "one offset from UTC", "utc=True", strict=True)

    def test_missing_texts(self):
        texts = [None, *MONTHS.strftime("%Y-%m")[1:]]
        refused(dated(texts), "no missing timestamps", "row 0")

    @pytest.mark.parametrize("text", ["first of Jan", "20201331", "1", "12:30", "day one"])
    def test_other_text_is_refused(self, text):
        frame = dated([text] * 24).set_index("when")
        refused(frame, "must hold datetimes", repr(text), "pd.to_datetime", error=TypeError)


def test_a_zone_without_a_name_is_refused():
    times = HOURS.tz_localize(timezone(timedelta(hours=1), "winter"))
    refused(dated(times), "time zone with a name", "'winter'", "Use tz_convert")
    assert read_panel(dated(times.tz_convert("Europe/Berlin"))).layout.tz == "Europe/Berlin"


def test_new_frames_have_their_dates_in_the_same_place():
    frame = dated(MONTHS)
    column, index = read_panel(frame), read_panel(frame.set_index("when"))
    assert read_panel(frame.iloc[:, ::-1], layout=column.layout).layout == column.layout
    refused(frame.set_index("when"), "time in the column 'when'", layout=column.layout)
    refused(frame, "must be wide (time in the index)", "in the column 'when'", layout=index.layout)


class TestYears:
    frame = pd.DataFrame({"year": range(1990, 2000), "gdp": np.arange(10.0)})

    def test_in_a_column_of_this_name_are_the_time(self):
        panel = read_panel(self.frame)
        assert panel.layout.time_col == "year"
        assert panel.notes == ("The column 'year' counts time.",)
        assert panel.times.tolist() == [*range(1990, 2000)]

    @pytest.mark.parametrize(("name", "strict"), [("year", True), ("people", False)])
    def test_are_otherwise_no_variable(self, name, strict):
        frame = self.frame.rename(columns={"year": name})
        refused(frame, f"has years in the column {name!r}. Use df.set_index", strict=strict)

    def test_in_the_index_are_read(self):
        assert read_panel(self.frame.set_index("year")).values.shape == (10, 1)

    @pytest.mark.parametrize("moved", [-1900, 300])
    def test_other_counts_are_a_variable_by_another_name(self, moved):
        frame = self.frame.assign(year=self.frame["year"] + moved)
        refused(frame, "counts its rows, and numbers in 'year' are not read")
        assert read_panel(frame.rename(columns={"year": "age"})).values.shape == (10, 2)


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize(
    ("names", "columns"),
    [
        ("'Date'", {"Date": [31012024, 29022024, 31032024]}),  # the day first, without its zero
        ("'date'", {"date": [452, 459, 470]}),
        ("'year', 'month'", {"year": [2024] * 3, "month": [1, 2, 3]}),
        ("'Year'", {"Year": [2020, 2022, 2024]}),
        ("'week'", {"week": [202351, 202352, 202401]}),
    ],
)
def test_numbers_called_after_time_are_no_variables(names, columns, strict):
    frame = pd.DataFrame({**columns, "y": range(3)})
    with pytest.raises(ValueError, match=f"counts its rows, and numbers in {names} are not read"):
        read_panel(frame, strict=strict)


def test_parts_of_dates_may_be_regressors():
    frame = pd.DataFrame({"year": [2024] * 3, "month": [1, 2, 3], "y": range(3)})
    assert read_panel(frame, target="y").exog_names == ("year", "month")
