"""Gross errors that classical models skip, against the same rows left out by hand."""

import io
import re

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp

from tsrnn import load
from tsrnn.contract import DamagedFileError, read_file, write_file
from tsrnn.linear import ARMA, CES, ETS, AutoARIMA, Theta

ROW = 60
MODELS = {
    "ARMA": ARMA(order=(1, 1)),
    "AutoARIMA": AutoARIMA(max_p=2, max_q=2, max_P=1, max_Q=1),
    "CES": CES(seasonal="none"),
    "ETS": ETS(error="add", trend="none", seasonal="none"),
    "Theta": Theta(),
}


def monthly(seed, n=108, level=50.0):
    """Return a monthly series: an AR(1) about a level."""
    noise, values = np.random.default_rng(seed).normal(size=n), np.zeros(n)
    for t in range(1, n):
        values[t] = 0.6 * values[t - 1] + noise[t]
    return pd.Series(level + values, pd.date_range("2010-01-01", periods=n, freq="MS"), name="y")


def changed(series, row=ROW, factor=10.0):
    """Return the series with one value times a factor."""
    series = series.copy()
    series.iloc[row] *= factor
    return series


def make(name, **arguments):
    model = MODELS[name]
    return type(model)(**(model.get_params() | arguments))


@pytest.fixture(params=MODELS)
def name(request):
    return request.param


class TestSkippedRows:
    @pytest.mark.few("ARMA", "CES-10.0", "ETS", "Theta")
    @pytest.mark.parametrize("factor", [10.0, -10.0, 1e12])
    def test_are_missing_ones(self, name, factor):
        y = monthly(0)
        skipping = make(name, outliers="pulse").fit(changed(y, factor=factor))
        missing = make(name, missing="keep").fit(changed(y, factor=np.nan))
        pd.testing.assert_frame_equal(skipping.params_, missing.params_)
        pd.testing.assert_series_equal(skipping.loglik_, missing.loglik_)
        assert skipping.nobs_.iloc[0] == missing.nobs_.iloc[0]
        forecasts = [model.predict(h=6, level=80) for model in (skipping, missing)]
        pd.testing.assert_frame_equal(*forecasts)
        residuals = skipping.residuals()
        assert np.isnan(residuals.iloc[ROW])
        pd.testing.assert_series_equal(residuals, missing.residuals())

    def test_are_listed(self, name):
        y = monthly(0)
        model = make(name, outliers="pulse").fit(changed(y))
        table = model.outliers_
        assert table["kind"].tolist() == ["error"]
        assert table.iloc[0, 0] == y.index[ROW]
        assert table["size"].iloc[0] == pytest.approx(9 * y.iloc[ROW], rel=0.02)
        assert table["probability"].iloc[0] > 0.999
        text = "1 row is a gross error and is skipped"
        assert any(text in message for message in model.messages_.iloc[0])
        page = " ".join(str(model.summary()).split())
        assert text in page
        assert re.search(r"Outliers .*2015-01-01 error", page)

    @pytest.mark.few("ARMA", "CES", "ETS", "Theta")
    def test_of_other_data_are_skipped_too(self, name):
        y, other = monthly(0), monthly(1)
        model = make(name, outliers="pulse").fit(y)
        keeping = make(name, missing="keep").fit(y)
        pd.testing.assert_series_equal(
            model.predict(changed(other, 90, 1e12), h=3),
            keeping.predict(changed(other, 90, np.nan), h=3),
        )
        pd.testing.assert_series_equal(
            model.residuals(df=changed(other, 90, 1e12)),
            keeping.residuals(df=changed(other, 90, np.nan)),
        )

    def test_new_rows_are_taken_as_they_are(self, name):
        y = monthly(0)
        new = changed(y[-6:], 2, 1.3)
        models = [
            make(name, outliers=outliers).fit(y[:-6]).update(new) for outliers in ("pulse", None)
        ]
        pd.testing.assert_series_equal(*(model.predict(h=3) for model in models))

    @pytest.mark.few("ARMA", "CES", "ETS", "Theta")
    def test_may_be_the_last_one(self, name):
        y = monthly(0)
        model = make(name, outliers="pulse").fit(changed(y, -1))
        missing = make(name, missing="keep").fit(changed(y, -1, np.nan))
        pd.testing.assert_series_equal(model.predict(h=3), missing.predict(h=3))

    @pytest.mark.few("ARMA", "CES", "ETS", "Theta")
    def test_need_no_complete_data(self, name):
        y = changed(monthly(0))
        y.iloc[20] = np.nan
        model = make(name, outliers="pulse", missing="keep").fit(y)
        missing = make(name, missing="keep").fit(changed(y, factor=np.nan))
        pd.testing.assert_series_equal(model.predict(h=3), missing.predict(h=3))
        with pytest.raises(ValueError, match="must have no missing values"):
            make(name, outliers="pulse", missing="error").fit(y)

    @pytest.mark.few("ARMA", "CES", "ETS", "Theta")
    def test_do_not_widen_conformal_intervals(self, name):
        y, arguments = monthly(0), {"intervals": "conformal", "horizon": 2}
        skipping = make(name, outliers="pulse", **arguments).fit(changed(y, 90, 1e12))
        missing = make(name, missing="keep", **arguments).fit(changed(y, 90, np.nan))
        pd.testing.assert_frame_equal(
            skipping.predict(level=80), missing.predict(level=80), rtol=1e-6
        )


class TestFlatPriorOfAPulse:
    def test_is_the_likelihood_without_the_row(self):
        """Integrate the likelihood over all values that the row could have."""
        y, params = monthly(2), {"const": 50.0, "ar.L1": 0.6, "ma.L1": 0.2, "sigma2": 1.3}
        grid = np.linspace(35, 65, 601)
        frame = pd.DataFrame({f"v{i}": y for i in range(len(grid))})
        frame.iloc[ROW] = grid
        of_values = ARMA(order=(1, 1)).filter(frame, params).loglik_
        integral = logsumexp(of_values) + np.log(grid[1] - grid[0])
        skipping = ARMA(order=(1, 1), outliers="pulse").filter(changed(y), params)
        assert skipping.loglik_.iloc[0] == pytest.approx(integral, abs=1e-8)

    def test_has_nearly_the_estimates_of_a_dummy(self, name):
        y = monthly(0)
        frame = pd.DataFrame({"y": changed(y), "dummy": np.arange(len(y)) == ROW}, dtype=float)
        dummy = make(name, target="y", known_ahead="dummy").fit(frame)
        skipping = make(name, outliers="pulse").fit(frame["y"])
        if name == "AutoARIMA":
            assert dummy.orders_.tolist() == skipping.orders_.tolist()
        # The level of ETS is that at the mean of the dummy.
        left = dummy.params_.drop(columns=["dummy", "sigma2", "level"], errors="ignore")
        # A maximum over the pulse is no integral, and no row whose error is zero.
        np.testing.assert_allclose(left, skipping.params_[left.columns], atol=0.005)
        future = pd.DataFrame({"dummy": 0.0}, pd.date_range("2019-01-01", periods=3, freq="MS"))
        forecast = dummy.predict(h=3, X_future=future)["y"]
        np.testing.assert_allclose(forecast, skipping.predict(h=3), rtol=1e-3)


class TestOtherRowsStay:
    def test_of_a_level_shift(self, name):
        y = monthly(0)
        y.iloc[70:] += 30.0
        models = [make(name, outliers=outliers).fit(y) for outliers in ("pulse", None)]
        pd.testing.assert_series_equal(*(model.predict(h=3) for model in models))
        assert models[0].outliers_["kind"].tolist() == ["shift"]
        assert models[0].messages_.tolist() == models[1].messages_.tolist()

    @pytest.mark.parametrize("name", ["ARMA", "ETS"])
    def test_of_a_season_that_the_model_leaves_out(self, name):
        """A peak in one week of each year is no error, though the model has no season."""
        weeks = pd.date_range("2015-01-04", periods=6 * 52, freq="W")
        y = pd.Series(np.random.default_rng(0).normal(50, 1, len(weeks)), weeks)
        y.iloc[50::52] += 20
        assert make(name, outliers="pulse").fit(y).outliers_.empty
        table = make(name, outliers="pulse").fit(changed(y, 100)).outliers_
        assert table["kind"].tolist() == ["error"]

    def test_without_the_argument(self, name):
        y = changed(monthly(0))
        plain, keeping = make(name).fit(y), make(name, missing="keep").fit(y)
        pd.testing.assert_frame_equal(plain.params_, keeping.params_)
        assert plain.outliers_.empty
        assert list(plain.outliers_.columns[-3:]) == ["kind", "size", "probability"]

    def test_of_a_clean_series(self, name):
        models = [make(name, outliers=outliers).fit(monthly(0)) for outliers in ("pulse", None)]
        pd.testing.assert_frame_equal(*(model.params_ for model in models))
        assert models[0].outliers_.empty


class TestFrames:
    def test_a_wide_frame_has_targets(self, name):
        frame = pd.DataFrame({"a": monthly(0), "b": changed(monthly(1), 40), "c": monthly(2)})
        model = make(name, outliers="pulse").fit(frame)
        table = model.outliers_
        assert table["target"].tolist() == ["b"]
        assert table.iloc[0, 0] == frame.index[40]
        alone = make(name, outliers="pulse").fit(frame["b"])
        np.testing.assert_allclose(model.predict(h=2)["b"], alone.predict(h=2), rtol=1e-6)
        assert len(model.summary("b").outliers) == 1
        assert model.summary("a").outliers.empty

    def test_a_panel_has_ids(self, name):
        parts = {"a": changed(monthly(0), 30), "b": monthly(1)[:70], "c": changed(monthly(2)[:90])}
        frame = pd.concat(
            [
                pd.DataFrame({"unique_id": key, "ds": part.index, "y": part.to_numpy()})
                for key, part in parts.items()
            ]
        )
        model = make(name, outliers="pulse").fit(frame)
        table = model.outliers_
        assert table["unique_id"].tolist() == ["a", "c"]
        assert table["ds"].tolist() == [parts["a"].index[30], parts["c"].index[ROW]]
        assert "2 units: 1 row is a gross error" in str(model.summary())
        forecasts = model.predict(h=2).set_index("unique_id")[model.column_name]
        alone = make(name, outliers="pulse").fit(parts["c"]).predict(h=2)
        np.testing.assert_allclose(forecasts["c"], alone, rtol=1e-5)

    def test_integers_count_rows(self):
        y = changed(monthly(0)).reset_index(drop=True)
        table = make("ARMA", outliers="pulse").fit(y).outliers_
        assert table.iloc[0, 0] == ROW


class TestFiles:
    def saved(self, model):
        file = io.BytesIO()
        model.save(file)
        file.seek(0)
        return file

    def test_hold_outliers(self, name):
        frame = pd.DataFrame({"a": monthly(0), "b": changed(monthly(1), 40)})
        model = make(name, outliers="pulse").fit(frame)
        loaded = load(self.saved(model))
        pd.testing.assert_frame_equal(loaded.outliers_, model.outliers_)
        pd.testing.assert_frame_equal(loaded.predict(frame, h=2), model.predict(h=2))

    @pytest.mark.parametrize(("array", "value"), [("series", 2), ("row", 108), ("row", -1)])
    def test_with_outliers_of_no_row_are_refused(self, array, value):
        frame = pd.DataFrame({"a": monthly(0), "b": changed(monthly(1), 40)})
        header, arrays = read_file(self.saved(make("ARMA", outliers="pulse").fit(frame)))
        arrays[f"outliers.{array}"] = np.array([value])
        file = io.BytesIO()
        write_file(file, header, arrays)
        file.seek(0)
        with pytest.raises(DamagedFileError, match=f"outliers.{array}"):
            load(file)

    def test_with_outliers_that_no_argument_asked_for_are_refused(self):
        header, arrays = read_file(self.saved(make("ARMA", outliers="pulse").fit(monthly(0))))
        header["params"]["outliers"] = None
        file = io.BytesIO()
        write_file(file, header, arrays)
        file.seek(0)
        with pytest.raises(DamagedFileError, match=r"params\.outliers"):
            load(file)


class TestLargeResiduals:
    @pytest.mark.parametrize("name", ["ARMA", "ETS", "CES"])
    def test_are_noted_with_row_and_size(self, name):
        y = changed(monthly(0), 90)
        model = make(name).fit(y)
        (note,) = (note for note in model.summary().notes if "standard deviations" in note)
        residual = model.residuals().iloc[90]
        assert f"the largest {residual:.4g} with" in note
        assert "(2017-07-01)" in note
        assert 'outliers="pulse"' in note
        assert model.residuals(standardized=True).abs().max() > 6

    def test_are_noted_once_for_many_units(self):
        frame = pd.DataFrame({"a": monthly(0), "b": changed(monthly(1), 40)})
        model = make("ARMA").fit(frame)
        (note,) = (note for note in model.summary().notes if "standard deviations" in note)
        assert "(2013-05-01, b)" in note
        assert not any("standard deviations" in note for note in model.summary("a").notes)

    def test_are_not_noted_where_there_are_none(self, name):
        for arguments, y in (({}, monthly(0)), ({"outliers": "pulse"}, changed(monthly(0)))):
            notes = make(name, **arguments).fit(y).summary().notes
            assert not any("standard deviations" in note for note in notes)


class TestRefusals:
    @pytest.mark.parametrize("value", ["step", True, 1])
    def test_of_an_illegal_value_name_the_legal_ones(self, name, value):
        with pytest.raises(ValueError, match='outliers must be "pulse" or None'):
            make(name, outliers=value).fit(monthly(0))

    def test_of_the_conditional_likelihood(self):
        with pytest.raises(ValueError, match="outliers='pulse' needs likelihood='exact'"):
            make("ARMA", outliers="pulse", likelihood="conditional").fit(monthly(0))
