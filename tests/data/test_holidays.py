"""Public holidays and working days against dates and counts by hand."""

import re
import sys
import time
import warnings

import numpy as np
import pandas as pd
import pytest

from tsrnn import ARMA, ParaRNNForecaster, backtest, load
from tsrnn.data import Holidays, load_holidays, read_panel


def frame_of(index, places, by_name=False):
    """Columns of holidays at the rows of an index."""
    panel = read_panel(pd.Series(np.arange(float(len(index))), index))
    holidays = Holidays.of(places, panel, by_name)
    values = holidays.values(panel.times, panel.layout)
    return pd.DataFrame(values, index, holidays.columns)


def days_of(place, year):
    """Columns of the days of a year."""
    return frame_of(pd.date_range(f"{year}-01-01", f"{year}-12-31", freq="D"), place)


@pytest.mark.parametrize(
    ("place", "date", "expected"),
    [
        ("DE", "2024-03-29", 1),  # Good Friday
        ("GB", "2024-03-29", 1),
        ("US", "2024-03-29", 0),
        ("GB", "2024-04-01", 0),  # Easter Monday, not in Scotland
        ("GB-ENG", "2024-04-01", 1),
        ("US", "2023-11-23", 1),  # Thanksgiving
        ("US", "2023-11-24", 0),
        ("DE-BW", "2024-05-30", 1),  # Corpus Christi
        ("DE-BE", "2024-05-30", 0),
        ("DE", "2024-10-03", 1),
        ("FR", "2024-07-14", 0),  # a Sunday
        ("US", "2021-07-05", 1),  # Independence Day on a Sunday, observed on Monday
        ("US", "2010-12-31", 1),  # New Year's Day of the next year on a Saturday
        ("JP", "2024-05-06", 1),  # Children's Day on a Sunday, observed on Monday
        ("US-CA", "2024-04-01", 1),  # Cesar Chavez Day, a Sunday, observed on Monday
        ("US", "2024-04-01", 0),
        ("US-MA", "2024-04-15", 1),  # Patriots' Day
        ("IL", "2024-06-12", 1),  # Shavuot, a Wednesday
    ],
)
def test_dates(place, date, expected):
    assert days_of(place, date[:4]).loc[date, "holiday"] == expected


def test_eves_and_days_after_are_working_days():
    columns = days_of("DE", 2024)
    one = {name: set(columns.index[columns[name] == 1].strftime("%m-%d")) for name in columns}
    assert one["holiday"] == {
        "01-01", "03-29", "04-01", "05-01", "05-09", "05-20", "10-03", "12-25", "12-26"
    }  # fmt: skip
    # Good Friday, Easter Monday and Whit Monday have a weekend on one side.
    assert one["holiday_eve"] == {"03-28", "04-30", "05-08", "10-02", "12-24", "12-31"}
    assert one["holiday_after"] == {"01-02", "04-02", "05-02", "05-10", "05-21", "10-04", "12-27"}


@pytest.mark.parametrize(
    ("place", "month", "expected"),
    [
        ("DE", "2024-05", 20),  # 23 weekdays less three holidays
        ("DE-BW", "2024-05", 19),
        ("DE", "2024-02", 21),
        ("US", "2023-11", 20),  # 22 less Veterans Day, observed on Friday 10, and Thanksgiving
        ("US", "2024-07", 22),
        ("GB", "2024-12", 20),
        ("AE", "2023-02", 20),
        ("CN", "2024-02", 18),  # 21 weekdays less six of the festival, and a Sunday worked twice
    ],
)
@pytest.mark.parametrize("freq", ["MS", "ME", "M"])
def test_working_days_of_months(place, month, expected, freq):
    start, end = f"{month[:4]}-01-01", f"{month[:4]}-12-31"
    period = freq == "M"
    index = (
        pd.period_range(start, end, freq="M") if period else pd.date_range(start, end, freq=freq)
    )
    columns = frame_of(index, place)
    assert list(columns) == ["workdays"]
    assert columns["workdays"].iloc[int(month[5:]) - 1] == expected


def test_working_days_of_longer_steps_are_sums():
    months = frame_of(pd.date_range("2019-01-01", "2024-12-01", freq="MS"), "FR")["workdays"]
    by_quarter = months.groupby(months.index.quarter + 4 * months.index.year).sum().to_numpy()
    for index in (
        pd.date_range("2019-01-01", "2024-12-01", freq="QS"),
        pd.date_range("2019-01-01", "2024-12-31", freq="QE"),
        pd.period_range("2019Q1", "2024Q4", freq="Q"),
    ):
        np.testing.assert_array_equal(frame_of(index, "FR")["workdays"], by_quarter)
    years = frame_of(pd.date_range("2019-01-01", "2024-01-01", freq="YS"), "FR")["workdays"]
    np.testing.assert_array_equal(years, months.groupby(months.index.year).sum())


@pytest.mark.parametrize(
    ("index", "weeks"),
    [
        # Weeks to which Thursday 9 May 2024 belongs, and the one before with 1 May.
        (pd.date_range("2024-04-29", periods=3, freq="W-MON"), [4, 4, 5]),
        (pd.date_range("2024-05-05", periods=3, freq="W-SUN"), [4, 4, 5]),
        (pd.date_range("2024-05-04", periods=3, freq="W-SAT"), [4, 4, 5]),
        (pd.period_range("2024-04-29", periods=3, freq="W-SUN"), [4, 4, 5]),
        (pd.date_range("2024-05-12", periods=3, freq="2W-SUN"), [8, 9, 10]),
    ],
)
def test_weeks_begin_on_mondays_and_end_on_other_days(index, weeks):
    assert frame_of(index, "DE")["workdays"].tolist() == weeks


def test_hours_are_of_the_local_date():
    utc = pd.date_range("2024-12-24 22:00", periods=30, freq="h", tz="UTC")
    berlin = frame_of(utc.tz_convert("Europe/Berlin"), "DE")["holiday"]
    assert berlin.tolist() == [0.0] + 29 * [1.0]
    assert frame_of(utc, "DE")["holiday"].tolist() == [0.0] * 2 + [1.0] * 28


def test_business_days_have_days():
    columns = frame_of(pd.bdate_range("2024-03-25", periods=8), "DE")
    assert columns["holiday"].tolist() == [0, 0, 0, 0, 1, 1, 0, 0]


def test_places_are_averaged():
    index = pd.date_range("2024-05-27", periods=7, freq="D")
    columns = frame_of(index, ["DE-BW", "DE-BE", "DE-BY"])
    assert columns.loc["2024-05-30"].tolist() == pytest.approx([2 / 3, 0, 0])
    assert columns.loc["2024-05-31"].tolist() == pytest.approx([0, 0, 2 / 3])


def test_names_are_those_of_the_rows():
    columns = frame_of(pd.date_range("2021-06-20", "2021-12-31", freq="D"), "US", by_name=True)
    named = {name.removeprefix("holiday: ") for name in columns} - {
        "holiday", "holiday_eve", "holiday_after"
    }  # fmt: skip
    assert named == {
        "Independence Day", "Labor Day", "Columbus Day", "Veterans Day", "Thanksgiving Day",
        "Christmas Day", "New Year's Day",
    }  # fmt: skip
    # Observed days are the holiday: Christmas 2021 was a Saturday, New Year of 2022, too.
    assert columns["holiday: Christmas Day"].idxmax() == pd.Timestamp("2021-12-24")
    assert columns["holiday: New Year's Day"].idxmax() == pd.Timestamp("2021-12-31")


def test_hourly_rows_are_fast():
    index = pd.date_range("2004-01-01", periods=35_000, freq="h")
    frame_of(index, "US", by_name=True)
    start = time.process_time()
    frame_of(index, "US", by_name=True)
    assert time.process_time() - start < 1


def demand(n=800):
    days = pd.date_range("2021-01-01", periods=n, freq="D")
    noise = np.random.default_rng(0).normal(0, 0.3, n)
    return pd.Series(20 - 5 * days_between(days) + noise, days, name="y")


def days_between(days):
    return frame_of(days, "US")["holiday"].to_numpy()


class TestForecasts:
    @pytest.mark.few("ARMA")
    @pytest.mark.parametrize(
        "make",
        [lambda **k: ARMA(order=(1, 0), **k), lambda **k: ParaRNNForecaster(60, **k)],
        ids=["ARMA", "prior network"],
    )
    def test_know_the_holidays_ahead(self, make, tmp_path):
        y = demand()
        train, test = y[:"2022-10-31"], y["2022-11-01":"2022-12-30"]
        model = make(holidays="US").fit(train)
        forecast = model.predict(60)
        for day in ("2022-11-11", "2022-11-24", "2022-12-26"):
            assert forecast[day] == pytest.approx(15, abs=0.5)
        assert np.abs(forecast - test).mean() < 0.4
        model.save(tmp_path / "model")
        loaded = load(tmp_path / "model")
        pd.testing.assert_series_equal(loaded.predict(60), forecast)
        after = [each.update(test).predict(7) for each in (model, loaded)]
        pd.testing.assert_series_equal(*after)

    def test_of_a_panel_whose_series_end_apart(self):
        y = demand()
        parts = {"a": y[:"2022-10-31"], "b": y[:"2022-06-30"]}
        frame = pd.concat(
            [rows.rename_axis("ds").reset_index().assign(unique_id=name)
             for name, rows in parts.items()]
        )  # fmt: skip
        forecast = ARMA(order=(1, 0), holidays="US").fit(frame).predict(30)
        low = forecast[forecast["ARMA"] < 17]
        assert set(zip(low["unique_id"], low["ds"].dt.strftime("%m-%d"), strict=True)) == {
            ("a", "11-11"), ("a", "11-24"), ("b", "07-04"),
        }  # fmt: skip

    def test_with_cycles_and_columns_of_the_user(self):
        frame = demand().to_frame().assign(x=np.random.default_rng(1).normal(size=800))
        model = ARMA(
            order=(1, 0), target="y", known_ahead="x", calendar="dayofweek", holidays="US"
        ).fit(frame[:-20])
        names = ["holiday", "holiday_eve", "holiday_after"]
        assert model.known_ahead_[0] == "x"
        assert model.known_ahead_[-3:] == names
        forecast = model.predict(20, X_future=frame[["x"]][-20:])
        assert np.isfinite(forecast.to_numpy()).all()
        tested = backtest({"model": model}, frame, h=7, n_windows=2)
        assert np.isfinite(tested["model"]).all()

    @pytest.mark.slow
    def test_each_holiday_has_an_effect_where_coefficients_are_shrunk(self):
        days = pd.date_range("2018-01-01", "2021-12-20", freq="D")
        columns = frame_of(days, "US", by_name=True)
        noise = np.random.default_rng(0).normal(0, 0.3, len(days))
        deep = columns["holiday: Christmas Day"] + columns["holiday: Thanksgiving Day"]
        y = (20 - 2 * columns["holiday"] - 6 * deep + noise).rename("y")
        model = ParaRNNForecaster(14, holidays="US").fit(y)
        assert model.predict(14)["2021-12-24"] == pytest.approx(12, abs=1)
        table = model.summary().effects.set_index("effect of")["coef"]
        assert table["holiday: Thanksgiving Day"] == pytest.approx(-6, abs=1)
        trained = ParaRNNForecaster(
            14, holidays="US", prior=None, max_epochs=1, random_state=0
        ).fit(y)
        assert trained.known_ahead_ == ["holiday", "holiday_eve", "holiday_after"]


class TestErrors:
    @pytest.mark.parametrize(
        ("holidays", "parts"),
        [
            ("us", "got 'us'. Did you mean 'US'?"),
            ("Germany", "Did you mean 'DE'?"),
            ("QQ", "ISO code, such as 'DE'"),
            ("QQ", "holidays.readthedocs.io lists them"),
            ("DE-BV", "of BB, BE, BW"),
            ("DE-Bayer", "Did you mean 'DE-Bayern'"),
            ("US-", "must name a subdivision of US"),
            (["DE", "DE"], "each place once"),
        ],
    )
    def test_unknown_places(self, holidays, parts):
        with pytest.raises(ValueError, match=re.escape(parts)):
            ARMA(order=(1, 0), holidays=holidays).fit(demand(60))

    @pytest.mark.parametrize("holidays", [3, [3], True])
    def test_other_types(self, holidays):
        with pytest.raises(TypeError, match="must be the code of a country"):
            ARMA(order=(1, 0), holidays=holidays).fit(demand(60))

    def test_integers(self):
        with pytest.raises(ValueError, match=r"holidays need dates; the timestamps are integers"):
            ARMA(order=(1, 0), holidays="DE").fit(demand(60).reset_index(drop=True))

    def test_a_column_of_the_same_name(self):
        frame = demand(60).to_frame().assign(holiday=0.0)
        with pytest.raises(ValueError, match="the data have .'holiday'. already"):
            ARMA(order=(1, 0), target="y", holidays="DE").fit(frame)

    def test_a_column_of_months_named_as_one_of_days(self):
        frame = demand(500).resample("MS").sum().to_frame()
        frame["holiday"] = np.random.default_rng(0).normal(size=len(frame))
        frame["y"] += 50 * frame["holiday"]
        model = ARMA(order=(1, 0), target="y", known_ahead="holiday", holidays="DE").fit(frame[:-2])
        assert model.known_ahead_ == ["holiday", "workdays"]
        one, two = (model.predict(h=2, X_future=frame[["holiday"]][-2:] + k) for k in (0, 1))
        assert ((two - one).abs() > 40).all(axis=None)

    def test_not_installed(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "holidays", None)
        y = pd.Series(np.arange(60.0), pd.date_range("2021-01-01", periods=60))
        with pytest.raises(ImportError, match=r"pip install 'tsrnn\[holidays\]'"):
            ARMA(order=(1, 0), holidays="DE").fit(y)

    def test_files_are_read_without_the_package(self, monkeypatch, tmp_path):
        ARMA(order=(1, 0), holidays="DE").fit(demand(400)).save(tmp_path / "model")
        monkeypatch.setitem(sys.modules, "holidays", None)
        loaded = load(tmp_path / "model")
        assert loaded.holidays == "DE"


KNOWN = load_holidays().country_holidays("DE")


class TestYearsThatAreNotKnown:
    """Rows fitted to and rows ahead are warned of them, always in the same words."""

    MATCH = (
        rf"^the package holidays \S+ knows those of DE from {KNOWN.start_year} to "
        rf"{KNOWN.end_year}; days of other years count as days without any"
    )

    def days(self, start, n_rows):
        rows = np.random.default_rng(0).normal(size=n_rows)
        return pd.Series(rows, pd.date_range(start, periods=n_rows, freq="D"), name="y")

    @pytest.mark.parametrize("start", [f"{KNOWN.start_year - 1}-10-01", f"{KNOWN.end_year}-05-01"])
    def test_of_the_rows_fitted_to(self, start):
        with pytest.warns(UserWarning, match=self.MATCH) as caught:
            ARMA(order=(1, 0), holidays="DE").fit(self.days(start, 700))
        assert len(caught) == 1

    def test_of_the_rows_ahead(self):
        days = self.days(f"{KNOWN.end_year}-01-01", 363)  # the last is 29 December
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = ARMA(order=(1, 0), holidays="DE").fit(days)
            model.predict(2)
        texts = []
        for h in (3, 30):
            with pytest.warns(UserWarning, match=self.MATCH) as caught:
                model.predict(h)
            texts += [str(warning.message) for warning in caught]
        assert len(texts) == 2
        assert texts[0] == texts[1]  # so that Python shows it once

    def test_of_rows_that_come_later(self):
        days = self.days(f"{KNOWN.end_year}-01-01", 370)
        model = ARMA(order=(1, 0), holidays="DE").fit(days[:360])
        with pytest.warns(UserWarning, match=self.MATCH):
            model.update(days[360:])
