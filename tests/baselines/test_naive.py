"""Naive methods: their formulae, and what the M4 competition published of them."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t as student
from statsmodels.tsa.seasonal import seasonal_decompose
from statsmodels.tsa.stattools import acf

from tsrnn.baselines import Drift, Mean, Naive, Naive2, SeasonalNaive

M4 = Path(__file__).parents[2].parent / "shared" / "data" / "m4"


def naive(y, h):
    sigma = np.sqrt(np.sum(np.diff(y) ** 2) / (len(y) - 1))
    return np.full(len(h), y[-1]), sigma * np.sqrt(h)


def seasonal_naive(y, h, m=12):
    sigma = np.sqrt(np.sum((y[m:] - y[:-m]) ** 2) / (len(y) - m))
    k = (h - 1) // m
    return y[len(y) - 1 + h - m * (k + 1)], sigma * np.sqrt(k + 1)


def drift(y, h):
    slope = (y[-1] - y[0]) / (len(y) - 1)
    sigma = np.sqrt(np.sum((np.diff(y) - slope) ** 2) / (len(y) - 2))
    return y[-1] + h * slope, sigma * np.sqrt(h * (1 + h / (len(y) - 1)))


def mean(y, h):
    error = y.std(ddof=1) * np.sqrt(1 + 1 / len(y))
    return np.full(len(h), y.mean()), np.full(len(h), error)


def naive2(y, h, m=12):
    r = acf(y, nlags=m, fft=False)[1:]
    found = abs(r[-1]) > 1.645 * np.sqrt((1 + 2 * np.sum(r[:-1] ** 2)) / len(y))
    if not (found and len(y) >= 3 * m):
        return naive(y, h)
    seasonal = seasonal_decompose(y, "multiplicative", period=m).seasonal
    point, error = naive(y / seasonal, h)
    ahead = seasonal[(len(y) + h - 1) % m]
    return ahead * point, ahead * error


# With the rows less the degrees of freedom of residuals, by which Student's t is exact.
METHODS = {
    "Naive": (Naive, naive, 1),
    "SeasonalNaive": (SeasonalNaive, seasonal_naive, 12),
    "Drift": (Drift, drift, 2),
    "Mean": (Mean, mean, 1),
    "Naive2": (Naive2, naive2, 1),
}


@pytest.fixture(params=METHODS)
def method(request):
    return METHODS[request.param]


class TestFormulae:
    def check(self, model, frame, close):
        _, formula, lost = METHODS[model.column_name]
        h = np.arange(1, 31)
        forecast = model.predict(30, level=[80, 95])
        for name, own in forecast.groupby("unique_id"):
            y = frame.loc[frame["unique_id"] == name, "y"].to_numpy()
            point, error = formula(y, h)
            close(own[model.column_name], point, rtol=1e-10)
            for level in (80, 95):
                q = student.ppf(0.5 + level / 200, len(y) - lost)
                close(own[f"{model.column_name}-lo-{level}"], point - q * error, rtol=1e-10)
                close(own[f"{model.column_name}-hi-{level}"], point + q * error, rtol=1e-10)

    def test_of_a_panel(self, method, panel, close):
        self.check(method[0]().fit(panel), panel, close)

    def test_after_an_update(self, method, panel, close):
        late = panel.groupby("unique_id").cumcount(ascending=False) < 7
        self.check(method[0]().fit(panel[~late]).update(panel[late]), panel, close)

    def test_of_several_targets(self, method, wave, close):
        cls, formula, _ = method
        frame = pd.DataFrame({"u": wave, "v": 3 * wave[::-1].to_numpy()})
        forecast = cls().fit(frame).predict(5)
        for name in "uv":
            close(forecast[name], formula(frame[name].to_numpy(), np.arange(1, 6))[0], rtol=1e-10)


class TestSeason:
    def test_of_the_frequency(self, wave):
        assert SeasonalNaive().fit(wave).season_ == 12
        assert SeasonalNaive(season_length=4).fit(wave).season_ == 4

    def test_not_a_length(self, wave):
        for value, error in ((0, ValueError), (2.5, TypeError)):
            with pytest.raises(error, match="season_length must be a positive integer"):
                SeasonalNaive(season_length=value).fit(wave)

    def test_none_is_found_in_noise_or_short_or_negative_series(self, wave):
        index = pd.date_range("2020-01-01", periods=120, freq="MS")
        noise = pd.Series(50 + np.random.default_rng(0).normal(size=120), index)
        for series in (noise, wave.iloc[:35], wave - 50):
            expected = Naive().fit(series).predict(12)
            np.testing.assert_array_equal(Naive2().fit(series).predict(12), expected)
        adjusted = Naive2().fit(wave).predict(12)
        assert adjusted.std() > 1

    def test_a_long_one_is_beyond_the_autocorrelations_of_the_test(self):
        steps = np.arange(3 * 40)  # 10 log10(120) is 20.8
        series = pd.Series(5 + np.sin(2 * np.pi * steps / 40), steps)
        forecast = Naive2(season_length=40).fit(series).predict(3)
        assert (forecast == series.iloc[-1]).all()


class TestShortSeries:
    def test_are_named_and_the_others_go_on(self, panel):
        short = panel[(panel["unique_id"] != "b") | (panel.groupby("unique_id").cumcount() < 9)]
        with pytest.warns(UserWarning, match=r"at least 13 rows.*'b' has 9.*1 of 3"):
            model = SeasonalNaive().fit(short)
        forecast = model.predict(4).set_index("unique_id")["SeasonalNaive"]
        assert forecast["b"].isna().all()
        expected = SeasonalNaive().fit(panel).predict(4).set_index("unique_id")["SeasonalNaive"]
        pd.testing.assert_series_equal(forecast[["a", "c"]], expected[["a", "c"]])

    def test_a_constant_series_has_no_width(self):
        series = pd.Series(3.0, pd.date_range("2020-01-01", periods=30))
        forecast = Naive().fit(series).predict(2, level=80)
        np.testing.assert_array_equal(forecast, 3.0)


@pytest.fixture(scope="module")
def m4():
    if not M4.is_dir():
        pytest.skip(f"the M4 data are not at {M4}")
    train, test = (ragged(M4 / f"Hourly-{part}.csv.gz") for part in ("train", "test"))
    published = pd.read_csv(M4 / "published_scores_by_frequency.csv.gz", index_col="method")
    return train, test, published


def ragged(path):
    lines = pd.read_csv(path, sep="\0", dtype=str).iloc[:, 0]
    cells = (line.replace('"', "").rstrip(",").split(",") for line in lines)
    return {name: np.array(values, float) for name, *values in cells}


@pytest.fixture(scope="module")
def scores(m4):
    """Return sMAPE and MASE of M4 Hourly by method."""
    train, test, _ = m4
    lengths = [len(y) for y in train.values()]
    times = pd.date_range("2000-01-01", periods=max(lengths), freq="h")
    frame = pd.DataFrame(
        {
            "unique_id": np.repeat(list(train), lengths),
            "ds": times[np.concatenate([np.arange(n) for n in lengths])],
            "y": np.concatenate(list(train.values())),
        }
    )
    actual = np.stack([test[name] for name in train])
    scale = np.array([np.abs(y[24:] - y[:-24]).mean() for y in train.values()])

    def score(cls):
        forecast = cls().fit(frame).predict(48)[cls.column_name].to_numpy().reshape(-1, 48)
        error = np.abs(actual - forecast)
        smape = 200 * (error / (np.abs(actual) + np.abs(forecast))).mean()
        return smape, (error.mean(1) / scale).mean()

    return {cls.__name__: score(cls) for cls in (Naive, SeasonalNaive, Naive2)}


class TestM4Hourly:
    @pytest.mark.parametrize(
        ("name", "row"), [("Naive", "Naive"), ("SeasonalNaive", "sNaive"), ("Naive2", "Naive2")]
    )
    def test_published_errors(self, scores, m4, name, row):
        expected = m4[2].loc[row, ["sMAPE_Hourly", "MASE_Hourly"]].to_numpy(float)
        np.testing.assert_allclose(scores[name], expected, rtol=0, atol=6e-4)

    def test_naive2_has_an_owa_of_one(self, scores, m4):
        naive2 = m4[2].loc["Naive2", ["sMAPE_Hourly", "MASE_Hourly"]].to_numpy(float)
        assert np.mean(scores["Naive2"] / naive2) == pytest.approx(1, abs=5e-4)


class TestPaths:
    def test_targets_are_drawn_independently(self):
        """Of few errors, a draw of the variance that targets shared would couple their sizes."""
        frame = pd.DataFrame(
            np.random.default_rng(0).normal(size=(4, 2)).cumsum(0), columns=["a", "b"]
        )
        paths = Drift().fit(frame).sample_paths(4000, h=1, random_state=1)[["a", "b"]]
        sizes = np.log((paths - paths.median()).abs())
        assert abs(np.corrcoef(sizes.T)[0, 1]) < 0.06

    @pytest.mark.filterwarnings("error::RuntimeWarning")
    def test_of_a_series_of_one_row_are_missing(self):
        days = pd.date_range("2020-01-01", periods=9)
        ids, times = [*"aaaaaaaaa", "b"], [*days, days[0]]
        frame = pd.DataFrame({"unique_id": ids, "ds": times, "y": np.arange(10.0) ** 2})
        with pytest.warns(UserWarning, match="'b' has 1"):
            model = Drift().fit(frame)
        paths = model.sample_paths(3, h=2, random_state=0)
        assert paths["Drift"].isna().equals(paths["unique_id"] == "b")


class TestRows:
    def test_a_single_series_has_no_name(self):
        with pytest.raises(ValueError, match="rows of a series; the series has 1"):
            Naive(freq="D").fit(pd.Series([1.0], pd.date_range("2020-01-01", periods=1)))

    def test_some_series_are_replaced_and_selected(self):
        def state(start, first, lengths):
            ids = np.repeat(list("abcd"), lengths)
            times = np.concatenate([pd.date_range(first, periods=n) for n in lengths])
            values = start + np.arange(float(len(ids)))
            return Naive().fit(pd.DataFrame({"unique_id": ids, "ds": times, "y": values})).state_

        old, new = state(0, "2020-01-01", [3, 5, 2, 4]), state(100, "2020-03-01", [6, 2, 7, 3])
        which = np.array([3, 1])
        made = old.replaced(which, new.select(which))
        for i in range(4):
            source = new if i in which else old
            np.testing.assert_array_equal(made.values[made.rows(i)], source.values[source.rows(i)])
            for name in ("first_times", "last_times", "target_scale"):
                np.testing.assert_array_equal(getattr(made, name)[i], getattr(source, name)[i])
            assert made.exog[made.rows(i)].shape == (source.lengths[i], 0)
        assert made.indptr.dtype == old.indptr.dtype
        np.testing.assert_array_equal(made.lengths, [3, 2, 2, 3])
        np.testing.assert_array_equal(
            old.select(which).values[:, 0], [*range(10, 14), *range(3, 8)]
        )
