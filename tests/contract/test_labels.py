"""Columns of labels as regressors: the models of their dummies, in every way to them."""

import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.pipeline import make_pipeline

from tsrnn import (
    ARMA,
    CES,
    ETS,
    VARMA,
    AutoARIMA,
    LRUForecaster,
    ParaRNNForecaster,
    Theta,
    backtest,
)
from tsrnn.baselines import SARIMAX, Naive, UnobservedComponents
from tsrnn.batch import forecast_batches
from tsrnn.data import MissingValuesWarning, read_panel
from tsrnn.evaluation import Combination

N, H = 90, 4
LEVELS = ["cloud", "rain", "sun"]
DUMMIES = ["weather[T.rain]", "weather[T.sun]"]
NETWORK = {"horizon": H, "hidden_size": 4, "max_epochs": 1, "random_state": 0}


def combination(known_ahead):
    members = [ARMA(order=(1, 0), known_ahead=known_ahead), ETS(known_ahead=known_ahead)]
    return Combination(members, horizon=H, known_ahead=known_ahead)


MODELS = {
    "ARMA": lambda **kw: ARMA(order=(1, 0), **kw),
    "AutoARIMA": AutoARIMA,
    "ETS": ETS,
    "Theta": Theta,
    "CES": CES,
    "SARIMAX": lambda **kw: SARIMAX(order=(1, 0, 0), **kw),
    "UnobservedComponents": UnobservedComponents,
    "LRUForecaster": lambda **kw: LRUForecaster(**NETWORK, **kw),
    "ParaRNNForecaster": lambda **kw: ParaRNNForecaster(**NETWORK, prior=None, **kw),
    "prior": lambda **kw: ParaRNNForecaster(horizon=H, **kw),
    "Combination": combination,
}


def long(ids="a"):
    """Return series of N rows to fit to and 2 H rows after them, one below the other."""
    rng = np.random.default_rng(3)
    parts = []
    for name in ids:
        weather = rng.choice(LEVELS, N + 2 * H)
        price = rng.normal(size=len(weather))
        mean = 20 + 2 * price + pd.Series(weather).map({"cloud": 0, "rain": -3, "sun": 4})
        days = pd.date_range("2024-01-01", periods=len(weather))
        columns = {"ds": days, "y": mean + rng.normal(size=len(weather)) / 3}
        columns |= {"weather": weather, "price": price}
        parts.append(pd.DataFrame({"unique_id": name} | columns))
    return pd.concat(parts, ignore_index=True)


def with_dummies(frame):
    """Return the frame with dummies made by hand in the place of the labels."""
    coded = pd.get_dummies(frame, columns=["weather"], drop_first=True, dtype=float)
    coded = coded.rename(
        columns=lambda name: name.replace("weather_", "weather[T.")
        + "]" * name.startswith("weather_")
    )
    place = frame.columns.get_loc("weather")
    order = [*frame.columns[:place], *DUMMIES, *frame.columns[place + 1 :]]
    return coded[order]


def rows(frame, start, end):
    return frame.groupby("unique_id").nth(slice(start, end)).reset_index(drop=True)


def ahead(frame, start):
    return rows(frame, start, start + H).drop(columns="y")


def equal(left, right):
    pd.testing.assert_frame_equal(left, right, rtol=0, atol=0)


@pytest.fixture
def pair():
    frame = long("ab")
    return frame, with_dummies(frame)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore")
class TestModels:
    @pytest.mark.few("ARMA", "ETS", "ParaRNNForecaster", "SARIMAX")
    def test_are_those_of_dummies(self, name, pair, reloaded):
        labels, dummies = pair
        model = MODELS[name](known_ahead=["weather", "price"]).fit(rows(labels, 0, N))
        other = MODELS[name](known_ahead=[*DUMMIES, "price"]).fit(rows(dummies, 0, N))
        assert model.known_ahead_ == ["weather", "price"]
        assert model.n_features_in_ == 3
        assert model.data_summary_.exog_names == ("weather", "price")
        assert model.data_summary_.notes == (
            "The column 'weather' holds labels, of which 'cloud' is the reference; 'rain', 'sun' "
            "enter as 'weather[T.rain]', 'weather[T.sun]', zero or one.",
        )
        expected = other.predict(H, level=80, X_future=ahead(dummies, N))
        equal(model.predict(H, level=80, X_future=ahead(labels, N)), expected)
        loaded = reloaded(model)
        equal(loaded.predict(H, level=80, X_future=ahead(labels, N)), expected)
        later = ahead(labels, N + H), ahead(dummies, N + H)
        other.update(rows(dummies, N, N + H))
        expected = other.predict(H, X_future=later[1])
        for each in (model, loaded):
            each.update(rows(labels, N, N + H))
            equal(each.predict(H, X_future=later[0]), expected)
        whole = rows(labels, 10, N + H), rows(dummies, 10, N + H)
        equal(
            model.predict(whole[0], H, X_future=later[0]),
            other.predict(whole[1], H, X_future=later[1]),
        )

    @pytest.mark.few(
        "ARMA", "AutoARIMA", "Theta", "UnobservedComponents", "ParaRNNForecaster", "prior"
    )
    def test_unknown_level(self, name):
        frame = long()
        model = MODELS[name](known_ahead=["weather", "price"]).fit(rows(frame, 0, N))
        message = (
            r"the column 'weather'( of X_future)? must have the levels of the data fitted to, "
            r"'cloud', 'rain', 'sun'; got 'snow', first at row \d+\. Correct the label, or fit "
            "again to rows that have it"
        )
        with pytest.raises(ValueError, match=message):
            model.predict(H, X_future=ahead(frame, N).assign(weather="snow"))
        with pytest.raises(ValueError, match=message):
            model.update(rows(frame, N, N + H).assign(weather=["rain", "snow", "sun", "sun"]))


@pytest.mark.filterwarnings("ignore")
class TestShapes:
    def models(self):
        return ARMA(order=(1, 0), target="y", known_ahead=["weather", "price"]), ARMA(
            order=(1, 0), target="y", known_ahead=[*DUMMIES, "price"]
        )

    def test_estimates(self, pair):
        model, other = self.models()
        model.fit(rows(pair[0], 0, N))
        other.fit(rows(pair[1], 0, N))
        equal(model.params_, other.params_)
        assert model.loglik_.equals(other.loglik_)
        assert {*DUMMIES} < {*model.params_.columns, *model.params_.index}
        assert "weather[T.rain]" in str(model.summary())

    @pytest.mark.parametrize("column", [False, True])
    def test_wide_frames(self, column):
        labels = long().drop(columns="unique_id").rename(columns={"ds": "day"})
        dummies = with_dummies(labels)
        if not column:
            labels, dummies = labels.set_index("day"), dummies.set_index("day")
        model, other = self.models()
        forecast = model.fit(labels[:N]).predict(H, X_future=labels[N : N + H].drop(columns="y"))
        equal(
            forecast,
            other.fit(dummies[:N]).predict(H, X_future=dummies[N : N + H].drop(columns="y")),
        )

    def test_several_targets(self):
        labels = long().drop(columns="unique_id").set_index("ds")
        dummies = with_dummies(labels)
        forecasts = [
            VARMA(order=(1, 0), target=["y", "price"], known_ahead=known)
            .fit(frame[:N])
            .predict(H, X_future=frame[known][N : N + H])
            for frame, known in ((labels, ["weather"]), (dummies, DUMMIES))
        ]
        equal(*forecasts)

    def test_polars_and_files(self, pair, tmp_path):
        labels, dummies = pair
        expected = self.models()[1].fit(rows(dummies, 0, N)).predict(H, X_future=ahead(dummies, N))
        parts = [rows(labels, 0, N), ahead(labels, N)]
        of_polars = [pl.DataFrame({k: part[k].tolist() for k in part}) for part in parts]
        for kind in (pl.String, pl.Categorical, pl.Enum(LEVELS)):
            past, future = (part.with_columns(pl.col("weather").cast(kind)) for part in of_polars)
            forecast = self.models()[0].fit(past).predict(H, X_future=future)
            np.testing.assert_allclose(forecast["ARMA"], expected["ARMA"], rtol=1e-12)
            past.write_parquet(tmp_path / "past.parquet")
            forecast = self.models()[0].fit(tmp_path / "past.parquet").predict(H, X_future=parts[1])
            np.testing.assert_allclose(forecast["ARMA"], expected["ARMA"], rtol=1e-12)
        parts[0].to_csv(tmp_path / "past.csv", index=False)
        forecast = self.models()[0].fit(tmp_path / "past.csv").predict(H, X_future=parts[1])
        np.testing.assert_allclose(forecast["ARMA"], expected["ARMA"], rtol=1e-12)

    def test_labels_of_parquet_read_in_parts(self, tmp_path, monkeypatch):
        monkeypatch.setattr("tsrnn.data._files.ROWS_AT_ONCE", 7)
        weather = [None] * 8 + ["sun", "cloud"] * 8 + ["rain"] * 8
        frame = pl.DataFrame({"ds": range(32), "y": [0.0] * 32, "weather": weather})
        frame.write_parquet(tmp_path / "a.parquet")
        panel = read_panel(tmp_path / "a.parquet", missing="keep")
        np.testing.assert_array_equal(panel.exog, read_panel(frame, missing="keep").exog)
        assert panel.exog_names == tuple(DUMMIES)
        assert np.isnan(panel.exog[:8]).all()

    def test_backtests(self, pair):
        labels, dummies = pair
        # the first fold lacks a level, which comes in the steps ahead of later ones
        first = labels["ds"] < pd.Timestamp("2024-03-01")
        labels = labels.assign(
            weather=labels["weather"].mask(first & labels["weather"].eq("sun"), "rain")
        )
        dummies = with_dummies(labels)
        model, other = self.models()
        arguments = {"h": 2, "n_windows": 12, "step_size": 4}
        pd.testing.assert_frame_equal(
            backtest(model, labels, **arguments), backtest(other, dummies, **arguments), rtol=1e-9
        )

    def test_pipelines(self, pair):
        labels, dummies = pair
        model, other = map(make_pipeline, self.models())
        model.fit(rows(labels, 0, N))
        other.fit(rows(dummies, 0, N))
        forecast = model.predict(rows(labels, 0, N), h=H, X_future=ahead(labels, N))
        equal(forecast, other.predict(rows(dummies, 0, N), h=H, X_future=ahead(dummies, N)))

    @pytest.mark.parametrize("fitted", [False, True])
    @pytest.mark.parametrize("kind", ["frame", "parquet", "csv"])
    def test_batches(self, pair, tmp_path, fitted, kind):
        labels, _ = pair
        past, future = rows(labels, 0, N), ahead(labels, N)
        model = self.models()[0]
        expected = model.fit(past).predict(H, X_future=future)
        source = past, future
        if kind == "parquet":
            source = tmp_path / "past.parquet", tmp_path / "future.parquet"
            for part, path in zip((past, future), source, strict=True):
                pl.DataFrame({k: part[k].tolist() for k in part}).write_parquet(path)
        if kind == "csv":
            source = tmp_path / "past.csv", tmp_path / "future.csv"
            past.to_csv(source[0], index=False)
            future.to_csv(source[1], index=False)
        request = model if fitted else self.models()[0]
        run = forecast_batches(source[0], request, H, out=tmp_path / "out", X_future=source[1])
        assert run.n_failed == 0
        np.testing.assert_allclose(run.forecasts()["ARMA"], expected["ARMA"], rtol=1e-9)


class TestLevels:
    def test_categorical_has_its_own_order(self):
        frame = long()
        frame["weather"] = pd.Categorical(frame["weather"], ["snow", "sun", "rain", "cloud"])
        model = ARMA(order=(1, 0), known_ahead=["weather", "price"]).fit(frame)
        assert model.fitted_.data.exog_names == ("weather[T.rain]", "weather[T.cloud]", "price")
        (note,) = model.data_summary_.notes
        assert note.endswith(" No row has 'snow': the effect is that of the reference.")
        future = (
            frame[-H:].drop(columns="y").assign(ds=frame["ds"].iloc[-H:] + pd.Timedelta(H, "D"))
        )
        equal(
            model.predict(H, X_future=future.assign(weather="snow")),
            model.predict(H, X_future=future.assign(weather="sun")),
        )

    def test_categories_that_are_numbers(self):
        frame = long().assign(weather=lambda df: df["weather"].map(LEVELS.index).astype("category"))
        model = ARMA(order=(1, 0), known_ahead=["weather", "price"]).fit(frame[:N])
        assert model.fitted_.data.exog_names == ("weather[T.1]", "weather[T.2]", "price")
        future = frame[N : N + H].drop(columns="y")
        expected = model.predict(H, X_future=future)
        for dtype in (int, float, str):
            equal(model.predict(H, X_future=future.astype({"weather": dtype})), expected)

    def test_missing_labels(self):
        frame = long()
        frame.loc[5, "weather"] = None
        message = "the column 'weather' must have no missing values"
        with pytest.raises(ValueError, match=message):
            ARMA(known_ahead=["weather", "price"], missing="error").fit(frame)
        future = long()[N : N + H].drop(columns="y").assign(weather=["rain", None, "sun", "sun"])
        model = ARMA(known_ahead=["weather", "price"]).fit(long()[:N])
        with pytest.raises(ValueError, match="'weather' of X_future must have no missing"):
            model.predict(H, X_future=future)

    @pytest.mark.parametrize("missing", ["auto", "interpolate"])
    def test_missing_labels_are_not_interpolated(self, missing):
        """Between rain and sun there is no label; a level of its own is the remedy."""
        frame = long()
        frame.loc[[5, 6], "weather"] = None
        model = ARMA(
            (1, 0), known_ahead=["weather"], missing=missing,
            likelihood="conditional" if missing == "auto" else "exact",
        )  # fmt: skip
        match = "column 'weather' holds labels, which must be known .*2 rows at 2024-01-06"
        with pytest.raises(ValueError, match=match):
            model.fit(frame)
        filled = frame.fillna({"weather": "missing"})
        assert "weather[T.missing]" in model.fit(filled).params_.columns
        inserted = long().drop(index=[5, 6])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MissingValuesWarning)
            with pytest.raises(ValueError, match=match):
                model.fit(inserted)

    def test_missing_labels_are_skipped_where_missing_values_are(self):
        frame = long()
        frame.loc[[5, 6], "weather"] = None
        model = ARMA((1, 0), known_ahead=["weather"]).fit(frame)
        assert model.nobs_.iloc[0] == len(frame) - 2

    def test_too_many_levels(self):
        frame = long().assign(weather=lambda df: [f"note {i}" for i in range(len(df))])
        with pytest.raises(ValueError, match="at most 50 levels") as caught:
            ARMA(known_ahead=["weather", "price"]).fit(frame)
        assert str(caught.value) == (
            "a column of labels must have at most 50 levels, and two rows a level on average; "
            "'weather' has 98 in 98 rows, such as 'note 0', 'note 1', 'note 10'. If it names "
            "series, give id_col='weather'; if it is free text or a date, drop it; otherwise join "
            "rare levels to one, such as 'other'"
        )

    def test_strict(self):
        with pytest.raises(TypeError) as caught:
            ARMA(known_ahead=["weather", "price"], strict=True).fit(long())
        assert "not so 'weather' (dtype" in str(caught.value)
        assert "pd.get_dummies(df, columns=['weather'], drop_first=True" in str(caught.value)

    def test_a_column_of_the_name_of_a_dummy(self):
        frame = long().rename(columns={"price": "weather[T.sun]"})
        with pytest.raises(ValueError, match=r"there are others of the name 'weather\[T.sun\]'"):
            ARMA(known_ahead=["weather"]).fit(frame)

    def test_classes_without_columns_name_the_column(self):
        with pytest.raises(
            ValueError, match=r"takes no exogenous columns; got \['price', 'weather'\]"
        ):
            Naive().fit(long().assign(weather="sun"))


@pytest.mark.few("ARMA", "ETS", "prior", "Combination")
@pytest.mark.filterwarnings("ignore:UnobservedComponents|IntervalWarning")
@pytest.mark.parametrize("name", MODELS)
def test_constant_columns_are_left_out(name, reloaded):
    frame = long().drop(columns="weather")
    known = ["price", "open", "place"]
    more = frame.assign(open=1.0, place="north")
    with pytest.warns(UserWarning, match="left out: the columns 'open', 'place', constant in") as w:
        model = MODELS[name](known_ahead=known).fit(more[:N])
    assert sum("left out: the" in str(each.message) for each in w) == 1
    assert model.data_summary_.notes[-1] == (
        "Left out: the columns 'open', 'place', constant in the rows fitted to, so that no effect "
        "can be estimated."
    )
    assert model.known_ahead_ == ["price"]
    other = MODELS[name](known_ahead=["price"]).fit(frame[:N])
    future = frame[N : N + H].drop(columns="y")
    expected = other.predict(H, X_future=future)
    equal(model.predict(H, X_future=future), expected)
    equal(model.predict(H, X_future=future.assign(open=0.0, place="south")), expected)
    later = frame[N : N + H]
    other.update(later)
    future = frame[N + H : N + 2 * H].drop(columns="y")
    expected = other.predict(H, X_future=future)
    equal(reloaded(model).update(later).predict(H, X_future=future), expected)
    model.update(later.assign(open=[0.0, 1.0, 0.0, 2.0], place="south"))
    equal(model.predict(H, X_future=future), expected)
    all_left_out = frame.drop(columns="price").assign(open=1.0)
    with pytest.warns(UserWarning, match="left out: the column 'open'"):
        model = MODELS[name](known_ahead="open").fit(all_left_out[:N])
    assert model.known_ahead_ == []
    equal(model.predict(H, X_future=all_left_out[N : N + H].drop(columns="y")), model.predict(H))


class TestDependentColumns:
    @pytest.mark.parametrize(
        ("columns", "fault"),
        [
            ({"same": lambda df: df["price"]}, "the regressors ['price', 'same'] are collinear"),
            (
                {"a": lambda df: np.arange(len(df)) % 3, "b": lambda df: 2 * df["price"] - df["a"]},
                "the regressors ['price', 'a', 'b'] are collinear",
            ),
        ],
    )
    def test_are_named(self, columns, fault):
        frame = long().drop(columns="weather").assign(**columns)
        with pytest.raises(ValueError, match="over the observations of the series") as caught:
            ARMA(order=(1, 0), known_ahead=["price", *columns]).fit(frame)
        assert fault in str(caught.value)

    def test_constant_in_a_series(self):
        frame = long("ab").drop(columns="weather")
        frame["open"] = np.where(frame["unique_id"] == "a", 1.0, np.arange(len(frame)) % 3)
        model = ARMA(order=(1, 0), known_ahead=["price", "open"])
        with pytest.warns(UserWarning, match="the regressor 'open' does not vary over the obs"):
            model.fit(frame)
        assert model.params_.loc["a"].isna().all()
        assert model.params_.loc["b"].notna().all()
        with pytest.warns(UserWarning, match="left out of 1 of 2 units, 'a'"):
            model = ETS(known_ahead=["price", "open"]).fit(frame)
        assert model.params_.loc["a", "open"] == 0


class TestObjectsOfNumbers:
    @pytest.mark.parametrize(
        "numbers",
        [
            lambda x: [Decimal(float(v)) for v in x],
            lambda x: [Fraction(v) for v in x],
            lambda x: pd.Series(x, dtype=object),
            lambda x: pd.array(x, dtype="Float64"),
            lambda x: pd.array(x, dtype="float32").astype("Float32"),
        ],
    )
    @pytest.mark.parametrize("column", ["y", "price"])
    def test_are_numbers(self, numbers, column):
        frame = long().drop(columns=["weather", "unique_id"])
        frame[column] = frame[column].astype("float32").astype(float)  # exact in every type
        expected = ARMA(order=(1, 0), known_ahead="price").fit(frame[:N])
        given = frame.assign(**{column: numbers(frame[column].to_numpy())})
        model = ARMA(order=(1, 0), known_ahead="price").fit(given[:N])
        futures = [data[N : N + H].drop(columns="y") for data in (frame, given)]
        equal(model.predict(H, X_future=futures[1]), expected.predict(H, X_future=futures[0]))
        equal(model.update(given[N : N + H]).params_, expected.params_)

    @pytest.mark.parametrize("dtype", ["int8", "Int8", "uint16", "bool", "boolean", "object"])
    def test_small_types(self, dtype):
        frame = long().drop(columns=["weather", "unique_id"])
        frame["price"] = np.arange(len(frame)) % 2
        expected = ARMA(order=(1, 0), known_ahead="price").fit(frame[:N])
        model = ARMA(order=(1, 0), known_ahead="price")
        values = frame["price"].astype(bool) if dtype == "object" else frame["price"]
        given = frame.assign(price=values.astype(dtype))
        equal(model.fit(given[:N]).params_, expected.params_)

    def test_missing_among_objects(self):
        frame = pd.DataFrame({"ds": range(4), "y": [Decimal("1.5"), None, 2, np.nan]})
        panel = read_panel(frame, missing="keep")
        np.testing.assert_array_equal(panel.values.ravel(), [1.5, np.nan, 2.0, np.nan])
