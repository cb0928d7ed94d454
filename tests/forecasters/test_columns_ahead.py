"""Columns whose future the package knows: of the calendar, constant in a series, left over."""

import itertools
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from holidays import country_holidays

from tsrnn import ARMA, Combination, backtest, load
from tsrnn.baselines import Drift
from tsrnn.batch import forecast_batches
from tsrnn.data import calendar_columns, calendar_features, calendar_names, read_panel

MULTIVARIATE_TOO = EVERY_NETWORK = True
EXOGENOUS = pytest.mark.where.with_args(lambda entry: entry.exogenous)
NOT_EXOGENOUS = pytest.mark.where.with_args(lambda entry: not entry.cls.takes_exog)
NETWORK = pytest.mark.where.with_args(lambda entry: "hidden_size" in entry.settings)


def by_hand(months):
    """Three waves over the months of a year, written out."""
    angle = 2 * np.pi * ((months.month.to_numpy() - 1) / 12)
    return {
        f"month_{name}{k}": wave(k * angle)
        for k in (1, 2, 3)
        for name, wave in (("sin", np.sin), ("cos", np.cos))
    }


def ahead(frame, names, h):
    """The h months after each series, with their columns."""
    last = frame.groupby("unique_id", sort=False)["ds"].max()
    parts = [
        pd.DataFrame({"unique_id": name, "ds": months} | by_hand(months))
        for name, end in last.items()
        for months in [pd.date_range(end, periods=h + 1, freq="MS")[1:]]
    ]
    return pd.concat(parts, ignore_index=True)[["unique_id", "ds", *names]]


class TestCalendar:
    @pytest.fixture(scope="class")
    def names(self):
        return list(by_hand(pd.DatetimeIndex(["2024-01-01"])))

    @EXOGENOUS
    @pytest.mark.few("ParaRNN", "ARMA", "ETS", "Theta", "VARMA", "SARIMAX")
    def test_is_the_frame_made_by_hand(self, make, entry, data, cut, names, same, tmp_path):
        hand = data.assign(**by_hand(pd.DatetimeIndex(data["ds"])))
        (old, new), (old_hand, new_hand) = cut(data, 8), cut(hand, 8)
        model = make(calendar="month").fit(old)
        known = make(known_ahead=names).fit(old_hand)
        assert model.known_ahead_ == names
        plan = ahead(old, names, 9)
        same(model.predict(9, level=80), known.predict(9, level=80, X_future=plan), rtol=0)
        same(model.predict(old, h=2), known.predict(old_hand, h=2, X_future=plan), rtol=0)
        assert model.score(new) == known.score(new_hand)
        model.save(tmp_path / "model.tsrnn")
        model = load(tmp_path / "model.tsrnn").update(new)
        plan = ahead(data, names, 3)
        same(model.predict(3), known.update(new_hand).predict(3, X_future=plan), rtol=0)

    @EXOGENOUS
    @pytest.mark.few("ParaRNN", "ARMA", "ETS", "VAR")
    def test_beside_columns_that_are_given(self, make, entry, data, names, same):
        frame = data.assign(x=np.random.default_rng(0).normal(size=len(data)))
        hand = frame.assign(**by_hand(pd.DatetimeIndex(data["ds"])))
        plan = ahead(data, names, 3).assign(x=1.0)
        model = make(calendar=["month"], known_ahead="x").fit(frame)
        known = make(known_ahead=["x", *names]).fit(hand)
        given = model.predict(3, X_future=plan[["unique_id", "ds", "x"]])
        same(given, known.predict(3, X_future=plan), rtol=0)

    @EXOGENOUS
    @pytest.mark.few("ParaRNN", "ARMA", "ETS", "CES", "VAR")
    def test_backtests(self, make, entry, single):
        hand = single.to_frame() if isinstance(single, pd.Series) else single
        target = list(hand.columns)
        hand = hand.assign(**by_hand(single.index))
        windows = {"h": 2, "n_windows": 2, "refit": False}
        names = list(by_hand(single.index))
        tested = backtest({"model": make(target=target, calendar="month")}, single, **windows)
        known = make(target=target, known_ahead=names)
        pd.testing.assert_frame_equal(tested, backtest({"model": known}, hand, **windows))

    @NOT_EXOGENOUS
    def test_is_refused_by_models_without_regressors(self, make, entry, single):
        with pytest.raises(ValueError, match=r"takes no exogenous columns.*such as ParaRNNForeca"):
            make(calendar=True).fit(single)


class TestHolidays:
    """Working days of months, counted by numpy."""

    @staticmethod
    def workdays(months):
        begin = pd.DatetimeIndex(months).to_numpy().astype("datetime64[M]")
        years = {*pd.DatetimeIndex(months).year}
        free = [np.datetime64(day) for day in country_holidays("US", years=years)]
        ends = begin.astype("datetime64[D]"), (begin + 1).astype("datetime64[D]")
        return np.busday_count(*ends, holidays=free).astype(float)

    @EXOGENOUS
    @pytest.mark.few("ParaRNN", "ARMA", "ETS", "CES", "VARMA")
    def test_are_the_frame_made_by_hand(self, make, entry, data, cut, same, tmp_path):
        frame = data.assign(x=np.random.default_rng(0).normal(size=len(data)))
        hand = frame.assign(workdays=self.workdays(frame["ds"]))
        (old, new), (old_hand, _) = cut(frame, 8), cut(hand, 8)
        model = make(holidays="US", known_ahead="x").fit(old)
        known = make(known_ahead=["x", "workdays"]).fit(old_hand)
        assert model.known_ahead_ == ["x", "workdays"]
        plan = ahead(old, [], 9).assign(x=1.0)
        whole = plan.assign(workdays=self.workdays(plan["ds"]))
        if "effects" not in model.get_params():  # those of a column that is given may be curved
            same(model.predict(9, X_future=plan), known.predict(9, X_future=whole), rtol=0)
        model.save(tmp_path / "model.tsrnn")
        loaded = load(tmp_path / "model.tsrnn")
        same(loaded.predict(9, X_future=plan), model.predict(9, X_future=plan), rtol=0)
        plan = ahead(frame, [], 3).assign(x=1.0)
        given = [each.update(new).predict(3, X_future=plan) for each in (loaded, model)]
        same(*given, rtol=0)

    @EXOGENOUS
    @pytest.mark.few("ParaRNN", "ARMA", "ETS", "CES", "VARMA", "Theta")
    def test_beside_the_calendar_need_not_be_given(self, make, entry, single):
        model = make(holidays=["US", "CA"], calendar=["month"]).fit(single)
        assert model.known_ahead_[-2:] == ["month_cos3", "workdays"]
        assert np.isfinite(model.predict(3).to_numpy()).all()

    @NOT_EXOGENOUS
    def test_are_refused_by_models_without_regressors(self, make, entry, single):
        with pytest.raises(ValueError, match=r"takes no exogenous columns, and so no holidays"):
            make(holidays="US").fit(single)


class TestCalendarOfACombination:
    def test_goes_to_the_members_that_take_it(self, wave, tmp_path):
        members = {"ar": ARMA(order=(1, 0)), "walk": Drift()}
        model = Combination(members, weights="inverse-error", horizon=4, calendar=True).fit(wave)
        alone = [
            ARMA(order=(1, 0), calendar=True).fit(wave).predict(4),
            Drift().fit(wave).predict(4),
        ]
        expected = sum(w * one for w, one in zip(model.weights_, alone, strict=True))
        np.testing.assert_allclose(model.predict(4), expected, rtol=1e-12)
        model.save(tmp_path / "model.tsrnn")
        pd.testing.assert_series_equal(load(tmp_path / "model.tsrnn").predict(4), model.predict(4))

    def test_members_have_none(self, wave):
        with pytest.raises(ValueError, match="Give it to the combination"):
            Combination({"ar": ARMA(calendar=True), "walk": Drift()}).fit(wave)


@pytest.mark.parametrize(
    ("calendar", "error", "parts"),
    [
        ("weekday", ValueError, "must name some of minute, hour, dayofweek"),
        ("months", ValueError, "did you mean 'month'?"),
        ("hour", ValueError, "'hour' does not vary from step to step of freq='MS'"),
        (["month", "month"], ValueError, "each cycle once"),
        (3, TypeError, "must be True or names"),
        ([3], TypeError, "must be True or names"),
    ],
)
def test_calendars_that_are_none(wave, calendar, error, parts):
    with pytest.raises(error, match=re.escape(parts)):
        ARMA(calendar=calendar).fit(wave)


def test_integers_have_no_calendar(wave):
    with pytest.raises(ValueError, match=r"needs dates; the timestamps are integers.*period_range"):
        ARMA(calendar=True).fit(wave.reset_index(drop=True))


def test_a_column_of_the_name_of_one_of_the_calendar(wave):
    frame = wave.to_frame().assign(month_sin1=np.arange(len(wave)) % 2)
    with pytest.raises(ValueError, match="the data have .'month_sin1'. already"):
        ARMA(calendar=True, target="y").fit(frame)


def test_less_than_a_cycle_is_warned_of(wave):
    with pytest.warns(UserWarning, match=r"a cycle of 12 rows, of which the longest series has 11"):
        ARMA(order=(0, 0), calendar=True, freq="MS").fit(wave[:11])


CYCLES = {
    "15min": ("hour", "dayofweek"),
    "h": ("hour", "dayofweek"),
    "D": ("dayofweek", "dayofyear"),
    "B": ("dayofweek", "dayofyear"),
    "W-WED": ("dayofyear",),
    "MS": ("month",),
    "2MS": ("month",),
    "QE-NOV": ("month",),
}


@pytest.mark.parametrize(
    ("form", "freq"),
    [
        *itertools.product(("datetimes", "zone"), CYCLES),
        *(("periods", freq) for freq in CYCLES if freq not in ("B", "2MS")),  # no such periods
    ],
)
def test_columns_tell_the_places_of_a_cycle_apart(form, freq):
    """No column is linear in the others, and places that come again have the same columns."""
    n = 200 if freq in ("MS", "2MS", "QE-NOV") else 3000
    index = pd.date_range("2021-01-01", periods=n, freq=freq)
    if form == "zone":
        index = index.tz_localize("Asia/Tokyo")
    if form == "periods":
        index = index.to_period()
    panel, features = read_panel(pd.Series(np.arange(float(n)), index)), CYCLES[freq]
    assert calendar_features(True, panel.layout) == features
    columns = calendar_columns(panel.times, features, panel.layout)
    names = calendar_names(features, panel.layout)
    assert columns.shape == (n, len(names))
    design = np.column_stack([np.ones(n), columns])
    assert np.linalg.matrix_rank(design, tol=1e-3 * n**0.5) == design.shape[1]


def test_hours_are_those_of_the_wall_clock():
    index = pd.date_range("2024-03-30", periods=72, freq="h", tz="Europe/Berlin")
    panel = read_panel(pd.Series(np.arange(72.0), index))
    found = calendar_columns(panel.times, ["hour"], panel.layout)
    np.testing.assert_allclose(found[:, 0], np.sin(2 * np.pi * index.hour / 24), atol=1e-12)


@pytest.fixture(scope="session")
def shops(panel):
    """The panel with the size of each shop, and a column known ahead."""
    draw = np.random.default_rng(8)
    size = panel["unique_id"].map({"a": 1.0, "b": 4.0, "c": 2.5})
    return panel.assign(size=size, x=draw.normal(size=len(panel)))


class TestStatic:
    @pytest.mark.where.with_args(lambda entry: "hidden_size" not in entry.settings)
    def test_models_of_single_series_name_those_that_take_it(self, make, data):
        frame = data.assign(size=1.0)
        with pytest.raises(ValueError, match="takes no static columns") as told:
            make(static="size").fit(frame)
        assert "ParaRNNForecaster" in str(told.value)
        assert "NewtonForecaster" in str(told.value)

    @pytest.fixture(scope="class")
    def network(self, make):
        return lambda **changes: make(known_ahead="x", **changes)

    @staticmethod
    def plan(frame, h):
        last = frame.groupby("unique_id", sort=False)["ds"].max()
        parts = [
            {"unique_id": name, "ds": pd.date_range(end, periods=h + 1, freq="MS")[1:], "x": 0.5}
            for name, end in last.items()
        ]
        return pd.concat(map(pd.DataFrame, parts), ignore_index=True)

    @pytest.fixture(scope="class")
    def early(self, network, shops, cut):
        """Return a forecaster that has not seen the last eight rows of each shop."""
        return network(static=["size"]).fit(cut(shops, 8)[0])

    @pytest.mark.few("ParaRNN")
    @NETWORK
    def test_need_not_be_given_for_the_steps_ahead(
        self, network, early, shops, cut, same, tmp_path
    ):
        (old, new), model = cut(shops, 8), early
        plain = network().fit(old)  # a column of history is held at its last value
        plan = self.plan(old, 9)
        same(model.predict(9, X_future=plan), plain.predict(9, X_future=plan), rtol=0)
        model.save(tmp_path / "model.tsrnn")
        loaded = load(tmp_path / "model.tsrnn")
        assert loaded.static_ == ["size"]
        plan = self.plan(shops, 3)
        after = loaded.update(new).predict(3, X_future=plan)
        same(after, plain.update(new).predict(3, X_future=plan), rtol=0)

    @NETWORK
    def test_matter_to_the_forecasts_and_come_with_new_series(self, early, shops):
        first = shops[shops["unique_id"] == "a"].assign(unique_id="new")
        plan = self.plan(first, 6)
        small, large = (
            early.predict(first.assign(size=size), h=6, X_future=plan).iloc[:, -1]
            for size in (1.0, 4.0)
        )
        assert np.isfinite(small).all()
        assert not np.allclose(small, large, rtol=1e-9)

    @NETWORK
    def test_must_be_constant(self, network, early, shops, cut):
        changed = shops.copy()
        changed.loc[75, "size"] = 9.0
        message = r"series 'b': the static column 'size' must be constant .* 4 and is 9 at 2015-06"
        with pytest.raises(ValueError, match=message):
            network(static="size").fit(changed)
        new = cut(shops, 8)[1]
        message = r"series 'a': the static column 'size' must be what it was, 1; new rows have 2"
        with pytest.raises(ValueError, match=message):
            early.update(new.assign(size=new["size"] + 1))
        with pytest.raises(ValueError, match="must be constant"):
            early.predict(changed, h=1, X_future=self.plan(changed, 1))


def test_a_column_is_static_or_known_ahead(small, shops):
    with pytest.raises(ValueError, match="either static or known_ahead"):
        small(static="size", known_ahead=["size", "x"]).fit(shops)


def test_a_frame_without_ids_has_no_static_columns(small, shops):
    frame = shops[shops["unique_id"] == "a"].drop(columns="unique_id")
    with pytest.raises(ValueError, match="tell series of a long frame apart"):
        small(static="size").fit(frame)


def test_static_labels(small, shops, same):
    frame = shops.assign(region=shops["unique_id"].map({"a": "n", "b": "s", "c": "n"}))
    with pytest.raises(TypeError, match=r"not so 'region'.*pd.get_dummies"):
        small(static=["size", "region"], strict=True).fit(frame)
    encoded = pd.get_dummies(frame, columns=["region"], drop_first=True, dtype=float)
    of_dummies = small(static=["size", "region_s"], known_ahead="x").fit(encoded)
    model = small(static=["size", "region"], known_ahead="x").fit(frame)
    assert model.static_ == ["size", "region"]
    plan = TestStatic.plan(frame, 3)
    same(model.predict(3, X_future=plan), of_dummies.predict(3, X_future=plan), rtol=0)


def test_batches_of_a_network(small, shops, tmp_path):
    model = small(static="size", calendar="month", known_ahead="x").fit(shops)
    plan = TestStatic.plan(shops, 3)
    frames = shops, plan
    for source, future in (frames, tuple(pl.from_dicts(f.to_dict("records")) for f in frames)):
        run = forecast_batches(
            source, model, h=3, out=tmp_path / str(type(source)), X_future=future, rows_per_batch=99
        )
        assert run.n_failed == 0
        expected = model.predict(3, X_future=plan)["ParaRNN"]
        found = run.forecasts()
        np.testing.assert_allclose(found["ParaRNN"], expected, rtol=1e-9)


def test_batches_of_a_classical_model(panel, tmp_path):
    model = ARMA(order=(1, 0), calendar=True)
    run = forecast_batches(panel, model, h=3, out=tmp_path / "out", rows_per_batch=99)
    expected = model.fit(panel).predict(3)["ARMA"]
    np.testing.assert_allclose(run.forecasts()["ARMA"], expected, rtol=1e-6)


class TestLeftOver:
    """Columns of the data in X_future that are not known ahead."""

    @EXOGENOUS
    @pytest.mark.few("ParaRNN", "ARMA", "ETS", "SARIMAX", "VAR")
    def test_are_not_used_with_a_warning(self, make, entry, data, same):
        model = make(known_ahead="x").fit(data.assign(x=1.0 * np.arange(len(data))))
        plan = TestStatic.plan(data, 3)
        of_pandas = plan.assign(y=np.nan)
        of_polars = pl.DataFrame({name: of_pandas[name].tolist() for name in of_pandas})
        for whole in (of_pandas, of_polars):
            with pytest.warns(UserWarning, match=r"not known ahead, \['y'\]: they are not used"):
                forecast = model.predict(3, X_future=whole)
            same(forecast, model.predict(3, X_future=plan), rtol=0)

    def test_columns_of_history_and_static_ones(self, small, shops, same):
        frame = shops.assign(z=np.arange(len(shops)) % 2)
        model = small(static="size", known_ahead="x").fit(frame)
        plan = TestStatic.plan(frame, 3)
        with pytest.warns(UserWarning, match=r"\['size', 'z'\]"):
            forecast = model.predict(3, X_future=plan.assign(size=1.0, z=5.0))
        same(forecast, model.predict(3, X_future=plan), rtol=0)

    def test_unknown_columns_are_refused(self, small, shops):
        model = small(static="size", known_ahead="x").fit(shops)
        with pytest.raises(ValueError, match="not needed 'price'"):
            model.predict(3, X_future=TestStatic.plan(shops, 3).assign(price=1.0))
