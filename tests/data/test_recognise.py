"""Text of frames as dates and numbers: pandas' own readers with a format are the reference."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tsrnn import ARMA, load
from tsrnn.data import Layout, Written, month_number, read_future, read_panel, recognise

DAYS = pd.date_range("2024-01-20", periods=30)
MONTHS = pd.date_range("2019-11-01", periods=30, freq="MS")
QUARTERS = pd.period_range("2018Q3", periods=30, freq="Q")
HOURS = pd.date_range("2024-03-01", periods=30, freq="h")

LATER = HOURS + pd.Timedelta("20D")
WEEKS = pd.date_range("2024-01-01", periods=30, freq="W-MON")

FORMS = {
    "31.12.2024": (DAYS, DAYS.strftime("%d.%m.%Y")),
    "31/12/2024": (DAYS, DAYS.strftime("%d/%m/%Y")),
    "12/31/2024": (DAYS, DAYS.strftime("%m/%d/%Y")),
    "31.12.24": (DAYS, DAYS.strftime("%d.%m.%y")),
    "1/5/2024": (DAYS, [f"{day.month}/{day.day}/{day.year}" for day in DAYS]),
    "2024.12.31": (DAYS, DAYS.strftime("%Y.%m.%d")),
    "31 Dec 2024": (DAYS, DAYS.strftime("%d %b %Y")),
    "31-Dec-24": (DAYS, DAYS.strftime("%d-%b-%y")),
    "Dec 31, 2024": (DAYS, DAYS.strftime("%b %d, %Y")),
    "Tuesday, 31 December 2024": (DAYS, DAYS.strftime("%A, %d %B %Y")),
    "months, 1/11/2019": (MONTHS, MONTHS.strftime("%d/%m/%Y")),
    "Nov 2019": (MONTHS, MONTHS.strftime("%b %Y")),
    "November 2019": (MONTHS, MONTHS.strftime("%B %Y")),
    "Nov-19": (MONTHS, MONTHS.strftime("%b-%y")),
    "2019 Nov": (MONTHS, MONTHS.strftime("%Y %b")),
    "11/2019": (MONTHS, MONTHS.strftime("%m/%Y")),
    "2019/11": (MONTHS, MONTHS.strftime("%Y/%m")),
    "2019m11": (MONTHS, [f"{month.year}m{month.month}" for month in MONTHS]),
    "2019-9": (MONTHS, [f"{month.year}-{month.month}" for month in MONTHS]),
    "Q3 2018": (QUARTERS, QUARTERS.strftime("Q%q %Y")),
    "2018 Q3": (QUARTERS, QUARTERS.strftime("%Y Q%q")),
    "2018-Q3": (QUARTERS, QUARTERS.strftime("%Y-Q%q")),
    "3Q18": (QUARTERS, [f"{quarter.quarter}Q{quarter.year % 100}" for quarter in QUARTERS]),
    "1.3.2024 13:00": (HOURS, HOURS.strftime("%d.%m.%Y %H:%M")),
    "03/21/2024 1:00 PM": (LATER, LATER.strftime("%m/%d/%Y %I:%M %p")),
    "2024-W01": (WEEKS, WEEKS.strftime("%G-W%V")),
}


def dated(texts, y=None):
    return pd.DataFrame({"when": list(texts), "y": np.arange(30.0) if y is None else y})


@pytest.mark.parametrize("form", FORMS)
def test_dates(form):
    times, texts = FORMS[form]
    expected = read_panel(pd.Series(np.arange(30.0), times))
    for frame in (
        dated(texts),
        pl.DataFrame(dated(texts).to_dict("list")),
        dated(texts).set_index("when"),
        dated(texts).set_index("when")["y"],
        dated(texts).rename(columns={"when": "ds"}),
    ):
        panel = read_panel(frame)
        np.testing.assert_array_equal(panel.times, expected.times)
        assert (panel.freq, panel.layout.time_kind) == (expected.freq, expected.layout.time_kind)
        if form != "2018-Q3":  # as in ISO 8601
            assert "is read as" in panel.notes[0]
    if form not in ("2018-Q3", "2019-9"):
        with pytest.raises((ValueError, TypeError), match="year first|must hold datetimes"):
            read_panel(dated(texts), strict=True)


@settings(max_examples=50, deadline=None)
@given(
    first=st.dates(pd.Timestamp("1970-01-01").date(), pd.Timestamp("2060-01-01").date()),
    form=st.sampled_from(["%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%m-%d-%y", "%d %b %Y", "%b %d, %Y"]),
    n=st.integers(2, 40),
)
def test_a_reading_is_that_of_pandas_or_none(first, form, n):
    """Dates of a known format are never read as others, whatever days the rows happen to have."""
    days = pd.date_range(first, periods=n)
    frame = pd.DataFrame({"ds": days.strftime(form), "y": 1.0})
    open_order = form[:3] in ("%d/", "%m/", "%m-") and (n < 12 or "%y" in form)
    try:
        read = recognise(frame, time="ds").frame["ds"]
    except ValueError as error:
        if not open_order or "no row says which" not in str(error):
            raise
        return
    np.testing.assert_array_equal(read, days)


@pytest.mark.parametrize("form", ["{}/{:02}", "{}-{:02}"])
@pytest.mark.parametrize("first", [1985, 1996, 2001, 2008])
def test_pairs_of_years_are_no_months(form, first):
    """Seasons such as 2001/02 are a year each; as months they would be thirteen apart."""
    pairs = [form.format(year, (year + 1) % 100) for year in range(first, first + 4)]
    with pytest.raises(ValueError, match=f"'{pairs[0]}' could be a month or a year"):
        read_panel(pd.DataFrame({"ds": pairs, "y": np.arange(4.0)}))


@pytest.mark.parametrize("months", [["2001-02"], ["2001-02", "2001-03", "2002-03"]])
def test_months_that_are_no_pairs_of_years(months):
    frame = pd.DataFrame({"ds": months, "y": 1.0})
    read = recognise(frame, time="ds").frame["ds"]
    assert read.tolist() == pd.to_datetime(months).tolist()


@pytest.mark.parametrize(
    ("texts", "parts"),
    [
        (["01/02/2020", "02/02/2020"], ("2020-02-01 (day, month, year) or 2020-01-02",)),
        (["13/01/2020", "01/14/2020"], ("'01/14/2020' in row 1",)),
        (["13.01.2020", "01.14.2020"], ("'01.14.2020' in row 1",)),
        (["31.02.2020", "01.03.2020"], ("'31.02.2020' in row 0",)),
        (["20/01/15", "20/01/16"], ("(year, month, day)", "'%d/%m/%y' or '%y/%m/%d'")),
        (["Jan 2020", "total", "Mar 2020"], ("'total' in row 1",)),
        (["2020-01-01 00:00+01:00", "2020-01-01 01:00"], ("some have none",)),
    ],
)
def test_dates_of_no_or_two_meanings(texts, parts):
    with pytest.raises(ValueError, match="the column 'ds' must hold") as caught:
        read_panel(pd.DataFrame({"ds": texts, "y": np.arange(float(len(texts)))}))
    for part in parts:
        assert part in str(caught.value)


def test_points_are_behind_the_day_unless_a_row_contradicts():
    for texts, order in (
        (["01.02.2020", "02.02.2020"], "DMY"),
        (["12.30.2020", "12.31.2020"], "MDY"),
    ):
        assert recognise(pd.DataFrame({"ds": texts})).written.date_order == order


def test_seasons_over_two_years_in_a_regressor_are_labels():
    labels = pd.DataFrame({"ds": DAYS[:4], "y": range(4), "x": ["2019/20", "2020/21"] * 2})
    assert read_panel(labels).exog_names == ("x[T.2020/21]",)


class TestZones:
    @pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Australia/Sydney"])
    def test_offsets_of_daylight_saving(self, zone):
        times = pd.date_range("2020-01-01", periods=400, freq="D", tz=zone)
        panel = read_panel(pd.Series(np.arange(400.0), times.astype(str)))
        np.testing.assert_array_equal(panel.times, times.as_unit("ns").asi8.view("M8[ns]"))
        assert (panel.layout.tz, panel.freq) == (zone, "D")
        assert zone in panel.notes[0]
        # one offset is read in the zone fitted to
        later = pd.Series([1.0], [str(times[-1] + pd.Timedelta("1D"))])
        assert read_panel(later, layout=panel.layout).layout.tz == zone

    @pytest.mark.parametrize(
        ("offsets", "tz"),
        [(["Z", "+00:00", "+00"], "UTC"), (["+01:00", "+0100", "+01"], "UTC+01:00")],
    )
    def test_of_several_spellings(self, offsets, tz):
        texts = [f"2024-01-0{day}T00:00{offset}" for day, offset in enumerate(offsets, 1)]
        for strict in (True, False):
            panel = read_panel(pd.DataFrame({"ds": texts, "y": range(3)}), strict=strict)
            assert (panel.layout.tz, panel.notes) == (tz, ())

    def test_of_no_common_zone(self):
        texts = ["2020-01-01 00:00-03:00", "2020-01-01 06:00+02:00", "2020-01-01 02:00-03:00"]
        with pytest.warns(UserWarning, match="no common zone: times are shown in UTC"):
            panel = read_panel(pd.Series([1.0, 2.0, 3.0], texts))
        assert panel.layout.tz == "UTC"


class TestNumbers:
    @pytest.mark.parametrize(
        ("texts", "expected", "decimal"),
        [
            (["1.234,5", "950,0"], [1234.5, 950], ","),
            (["1,234.5", "950"], [1234.5, 950], "."),
            (["1,234,567", "9"], [1234567, 9], "."),
            (["12,34,567", "9"], [1234567, 9], "."),
            (["0,123", "1,456"], [0.123, 1.456], ","),
            (["1 234,5", "2"], [1234.5, 2], ","),
            (["1\u202f234,5", "2"], [1234.5, 2], ","),
            (["1'234.5", "3"], [1234.5, 3], "."),
            (["€ 12", "€ 1.200,5"], [12, 1200.5], ","),
            (["$1,234.56", "-$5.10"], [1234.56, -5.1], "."),
            (["12 EUR", "13 EUR"], [12, 13], None),
            (["12 %", "15%"], [12, 15], None),
            (["(1,234.50)", "2.0"], [-1234.5, 2], "."),
            (["\u22123,5", "2,1"], [-3.5, 2.1], ","),
            (["12-", "3.5"], [-12, 3.5], "."),
            (["1e5", "2.5E-3"], [1e5, 2.5e-3], "."),
            (["1", "-", "3"], [1, np.nan, 3], None),
            (["1,5", "..", "n/a", "3", "4"], [1.5, np.nan, np.nan, 3, 4], ","),
        ],
    )
    def test_of_one_meaning(self, texts, expected, decimal):
        result = recognise(pd.DataFrame({"y": texts}))
        np.testing.assert_array_equal(result.frame["y"], expected)
        assert result.written == Written(decimal=decimal)
        assert "'y'" in result.notes[0]

    @pytest.mark.parametrize(
        "texts",
        [
            ["007", "012"],
            ["A1", "A2"],
            ["10Y", "5Y"],
            ["12M", "3M"],  # maturities
            ["1.2M", "3"],
            ["12 kg", "3 t"],
            ["low", "1"],
        ],
    )
    def test_labels_stay(self, texts):
        assert recognise(pd.DataFrame({"y": texts})).frame["y"].tolist() == texts

    @pytest.mark.parametrize(
        ("texts", "expected"),
        [
            (["12.5M", "900.00K", "1.2B", "-"], [12.5e6, 9e5, 1.2e9, np.nan]),
            (["6.7M", "0.3M", "10M"], [6_700_000, 300_000, 10_000_000]),
            (["12,5M", "1.250,5K"], [12.5e6, 1_250_500]),
            (["($1.5M)", "$2.5K"], [-1.5e6, 2500]),
        ],
    )
    def test_thousands_millions_and_billions(self, texts, expected):
        result = recognise(pd.DataFrame({"volume": texts}))
        np.testing.assert_array_equal(result.frame["volume"], expected)
        assert "of the column 'volume' is read as" in result.notes[0]

    def test_millions_of_two_meanings(self):
        with pytest.raises(ValueError, match="12500000 with a decimal point and 12500000000"):
            recognise(pd.DataFrame({"volume": ["12.500M", "1.250M"]}))

    def test_whole_numbers_are_integers(self):
        assert recognise(pd.DataFrame({"y": ["1", "-2"]})).frame["y"].dtype == "int64"

    def test_of_two_meanings(self):
        for texts in (["1,234", "2,345"], ["1.234 €", "2.345 €"]):
            with pytest.raises(ValueError, match=r"1234 with|1.234 with a decimal point"):
                recognise(pd.DataFrame({"y": texts}))
        # a column beside it, or the data fitted to, decides
        beside = recognise(pd.DataFrame({"y": ["1,234", "2,345"], "x": ["1,5", "2"]}))
        assert beside.frame["y"].tolist() == [1.234, 2.345]
        known = recognise(pd.DataFrame({"y": ["1,234"]}), written=Written(decimal="."))
        assert known.frame["y"].tolist() == [1234]

    def test_of_a_program_or_of_a_file(self):
        frame = pd.DataFrame({"y": ["1.234", "2.345"]})
        assert recognise(frame).frame["y"].tolist() == [1.234, 2.345]
        with pytest.raises(ValueError, match="no row says which"):
            recognise(frame, place="line {}".format)
        # beside 1.234 a program writes 950.000, and 950 alone where points part thousands
        with pytest.raises(ValueError, match="'1.234' is 1.234 with a decimal point and 1234"):
            recognise(pd.DataFrame({"y": ["1.234", "950"]}))

    def test_more_digits_than_an_integer_has(self):
        digits = ["12345678901234567890", "3", "4"]
        assert recognise(pd.DataFrame({"y": digits})).frame["y"].tolist() == [*map(float, digits)]

    @pytest.mark.parametrize("texts", [["١", "٢", "٣"], ["１", "２", "３"]])
    def test_digits_of_other_scripts_are_text(self, texts):
        assert recognise(pd.DataFrame({"y": texts})).frame["y"].tolist() == texts

    def test_marks_that_contradict(self):
        with pytest.raises(
            ValueError, match=r"a point in '1,234.5' in row 1, a comma in '1.234,5' in row 0"
        ):
            recognise(pd.DataFrame({"y": ["1.234,5", "1,234.5"]}))

    def test_a_row_without_a_number(self):
        frame = pd.DataFrame({"y": ["1,5", "2,5", "total", "3,5"]})
        with pytest.raises(ValueError, match="no number is 'total' in row 2. Correct"):
            recognise(frame)
        with pytest.raises(ValueError, match="'total' in line 12"):
            recognise(frame, place=lambda row: f"line {row + 10}")

    @settings(max_examples=60, deadline=None)
    @given(
        values=st.lists(
            st.floats(-1e9, 1e9).map(lambda value: round(value, 2)), min_size=1, max_size=20
        ),
        marks=st.sampled_from([".,", ",.", ", ", ".'", ".", ","]),
    )
    def test_a_reading_is_the_number_or_none(self, values, marks):
        decimal, thousands = marks[0], marks[1:]
        swap = str.maketrans({",": thousands or None, ".": decimal})
        texts = [f"{value:,.2f}".translate(swap) for value in values]
        read = recognise(pd.DataFrame({"y": texts}), place=str).frame["y"]
        np.testing.assert_array_equal(read, values)


class TestSerialDays:
    @pytest.mark.parametrize(
        ("times", "name"),
        [(MONTHS, "ds"), (MONTHS - pd.Timedelta("1D"), "ds"), (DAYS, "Date"), (DAYS, "Datum")],
    )
    def test_of_spreadsheets(self, times, name):
        days = (times - pd.Timestamp("1899-12-30")).days
        panel = read_panel(pd.DataFrame({name: days, "y": np.arange(30.0)}))
        np.testing.assert_array_equal(panel.times, times.as_unit("ns"))
        assert "serial day" in panel.notes[0]
        later = pd.DataFrame({name: [days[-1] + 1], "y": 0.0})
        if name != "ds":
            again = read_panel(later, layout=panel.layout)
            assert again.times[0] == times[-1] + pd.Timedelta("1D")

    @pytest.mark.parametrize(
        ("numbers", "name"),
        [
            (np.arange(43831, 43861), "ds"),  # steps
            (np.arange(100, 130), "date"),
            (np.arange(43831, 43891, 2), "date"),
            ([10 * year + quarter for year in range(2016, 2024) for quarter in (1, 2, 3, 4)], "ds"),
        ],
    )
    def test_other_numbers_stay(self, numbers, name):
        frame = pd.DataFrame({name: numbers, "y": 1.0})
        assert recognise(frame, time=name).notes == ()

    def test_beside_a_column_of_times_are_numbers(self):
        frame = pd.DataFrame({"ds": DAYS[:3], "y": range(3), "days open": [30000, 30001, 30002]})
        np.testing.assert_array_equal(read_panel(frame).exog[:, 0], [30000, 30001, 30002])


class TestLaterFrames:
    def data(self):
        days = pd.date_range("2024-01-20", periods=40)
        y = np.round(np.random.default_rng(0).normal(size=40).cumsum() + 1500, 3)
        text = [f"{value:,.3f}".translate(str.maketrans(",.", ".,")) for value in y]
        return pd.DataFrame({"ds": days.strftime("%d/%m/%Y"), "y": text}), pd.Series(y, days)

    def test_are_read_like_the_first(self, tmp_path):
        written, plain = self.data()
        model = ARMA(order=(1, 0)).fit(written[:30])
        reference = ARMA(order=(1, 0)).fit(plain[:30]).update(plain[30:])
        assert "is read as" in "\n".join(model.data_summary_.notes)
        model.save(tmp_path / "model.tsrnn")
        for each in (model, load(tmp_path / "model.tsrnn")):
            # 01/03/2024 and 1.500 could be read in two ways alone
            for row in range(30, 40):
                each.update(written[row : row + 1])
            ahead = each.predict(3)
            expected = reference.predict(3)
            np.testing.assert_allclose(ahead["ARMA"], expected, rtol=1e-12)
            assert ahead["ds"].tolist() == expected.index.tolist()

    def test_contradicting_the_first(self):
        model = ARMA(order=(1, 0)).fit(self.data()[0])
        with pytest.raises(ValueError, match="no such date is '02/29/2024'"):
            model.update(pd.DataFrame({"ds": ["02/29/2024"], "y": ["1,5"]}))

    def test_columns_ahead(self):
        written, _ = self.data()
        frame = written.assign(x=written["y"].to_numpy())
        panel = read_panel(frame[:30])
        ahead = read_future(
            pd.DataFrame({"ds": ["19/02/2024"], "x": ["1.234"]}), h=1, columns=["x"], panel=panel
        )
        assert ahead.ravel().tolist() == [1234.0]

    def test_strict_stays(self):
        written, plain = self.data()
        model = ARMA(order=(1, 0), strict=True).fit(
            plain.rename_axis("ds").rename("y").reset_index()
        )
        assert model.fitted_.data.layout.strict
        with pytest.raises(ValueError, match="strict=True"):
            model.update(written[:1])

    def test_the_layout_holds_how_text_is_written(self):
        layout = read_panel(self.data()[0]).layout
        assert (layout.date_order, layout.decimal, layout.strict) == ("DMY", ",", False)
        assert Layout.from_dict(layout.to_dict()) == layout
        for field, value in {"date_order": "YMD", "decimal": ";", "strict": 1}.items():
            with pytest.raises(ValueError, match=field):
                Layout.from_dict(layout.to_dict() | {field: value})


@pytest.mark.parametrize("interleaved", [False, True])
def test_rows_from_the_newest_to_the_oldest(interleaved):
    frame = pd.DataFrame(
        {"unique_id": ["b"] * 3 + ["a"] * 2 + ["c"], "ds": [1, 2, 3, 2, 3, 1], "y": np.arange(6.0)}
    )
    downloaded = frame[::-1]
    if interleaved:
        downloaded = frame.sort_values(["ds", "unique_id"], ascending=[False, True])
    panel, expected = read_panel(downloaded), read_panel(frame)
    assert "newest to the oldest" in panel.notes[0]
    assert expected.notes == ()
    for series in "abc":
        ours, theirs = panel.select([series]), expected.select([series])
        np.testing.assert_array_equal(ours.times, theirs.times)
        np.testing.assert_array_equal(ours.values, theirs.values)


def test_some_series_from_the_newest_to_the_oldest():
    frame = pd.DataFrame({"unique_id": list("aaabbb"), "ds": [1, 2, 3] * 2, "y": np.arange(6.0)})
    panel, expected = read_panel(frame.iloc[[0, 1, 2, 5, 4, 3]]), read_panel(frame)
    np.testing.assert_array_equal(panel.values, expected.values)
    assert panel.notes[0].startswith("Rows of series 'b' go from the newest")


@pytest.mark.parametrize("freq", ["D", "MS", "W-SUN", "2h", "B", pd.offsets.CustomBusinessDay()])
def test_the_frequency_that_they_carry(freq):
    series = pd.Series(np.arange(9.0), pd.date_range("2024-01-01", periods=9, freq=freq))
    panel, expected = read_panel(series[::-1]), read_panel(series)
    assert panel.layout == expected.layout
    np.testing.assert_array_equal(panel.values, expected.values)


def test_parquet_in_parts(tmp_path, monkeypatch):
    """What the first rows show holds for all."""
    from tsrnn.data import _files

    monkeypatch.setattr(_files, "ROWS_AT_ONCE", 15)
    days = pd.date_range("2024-01-20", periods=30)
    text = [f"{i}.000,5" for i in range(1, 16)] + [f"{i}.000" for i in range(16, 31)]
    frame = pl.DataFrame({"ds": days.strftime("%d/%m/%Y").tolist(), "y": text})
    frame.write_parquet(tmp_path / "a.parquet")
    panel = read_panel(tmp_path / "a.parquet")
    np.testing.assert_array_equal(panel.times, days.as_unit("ns"))
    assert panel.values[-1, 0] == 30000
    assert len(panel.notes) == 2


def test_names_of_months():
    names = pd.date_range("2024-01-01", periods=12, freq="MS")
    assert [month_number(name) for name in names.strftime("%B")] == [*range(1, 13)]
    assert [month_number(name) for name in names.strftime("%b.")] == [*range(1, 13)]
    assert month_number("März") == 3
    assert month_number("Monday") is None
