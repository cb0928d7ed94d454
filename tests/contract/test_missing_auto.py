"""missing="auto": skipped where a model can, interpolated with a warning elsewhere."""

import warnings

import numpy as np
import pandas as pd
import pytest

from tsrnn import (
    ARMA,
    CES,
    DCC,
    ETS,
    GARCH,
    VARMA,
    VECMGARCH,
    AutoARIMA,
    Combination,
    ParaRNNForecaster,
    Theta,
)  # fmt: skip
from tsrnn.baselines import SARIMAX, VAR, Drift, Naive

MONTHS = pd.date_range("2018-01-01", periods=72, freq="MS")
RNG = np.random.default_rng(0)
WHOLE = pd.DataFrame(10 + np.sin(np.arange(72) / 2)[:, None] + RNG.normal(0, 0.2, (72, 2)),
                     MONTHS, ["a", "b"])  # fmt: skip
GAPS = WHOLE.copy()
GAPS.iloc[[10, 11, 40], 0] = np.nan
GAPS.iloc[30, 1] = np.nan
TRAINED = {"prior": None, "max_epochs": 1, "hidden_size": 4, "random_state": 0}
SKIP = {
    "ParaRNN": lambda **options: ParaRNNForecaster(6, **options),
    "ARMA": lambda **options: ARMA((1, 0), **options),
    "AutoARIMA": lambda **options: AutoARIMA(max_p=1, max_q=1, **options),
    "ETS": ETS, "Theta": Theta, "CES": CES,
    "GARCH": lambda **options: GARCH(random_state=0, **options),
    "VARMA": lambda **options: VARMA((1, 0), **options), "DCC": DCC,
    "SARIMAX": lambda **options: SARIMAX((1, 0, 0), **options),
    "Combination": lambda **options: Combination({"a": ARMA((1, 0)), "e": ETS()}, **options),
}  # fmt: skip
INTERPOLATE = {
    "Naive": Naive, "Drift": Drift,
    "GARCH with lags": lambda **options: GARCH(mean="ar", **options),
    "DCC with lags": lambda **options: DCC(mean="var", **options), "VECMGARCH": VECMGARCH,
    "conditional": lambda **options: ARMA((1, 0), likelihood="conditional", **options),
    "trained": lambda **options: ParaRNNForecaster(6, **TRAINED, **options),
    "VAR": lambda **options: VAR(1, **options),
    "conditional VARMA": lambda **options: VARMA((1, 0), likelihood="conditional", **options),
    "mixed": lambda **options: Combination({"a": ARMA((1, 0)), "n": Naive()}, **options),
}  # fmt: skip


@pytest.mark.few("ParaRNN", "ARMA", "Theta", "GARCH", "SARIMAX", "VARMA")
@pytest.mark.parametrize("name", SKIP)
def test_skipped_as_by_keep(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        model = SKIP[name]().fit(GAPS)
    expected = SKIP[name](missing="keep").fit(GAPS).predict(3)
    np.testing.assert_array_equal(model.predict(3), expected)
    assert [note.partition(":")[0] for note in model.data_summary_.notes] == [
        "3 values of the column 'a' are missing", "1 value of the column 'b' is missing",
    ]  # fmt: skip


@pytest.mark.few("Naive", "GARCH with lags", "conditional", "trained", "VAR", "mixed")
@pytest.mark.parametrize("name", INTERPOLATE)
def test_interpolated_with_a_warning(name):
    with pytest.warns(UserWarning, match="no place for missing values: 4 missing values are inter"):
        model = INTERPOLATE[name]().fit(GAPS)
    expected = INTERPOLATE[name](missing="interpolate").fit(GAPS).predict(3)
    np.testing.assert_array_equal(model.predict(3), expected)
    assert "interpolated linearly" in model.data_summary_.notes[-1]


@pytest.mark.parametrize("name", [*SKIP, *INTERPOLATE])
def test_refused_where_asked(name):
    make = SKIP.get(name) or INTERPOLATE[name]
    with pytest.raises(ValueError, match=r"no missing values \(NaN\)"):
        make(missing="error").fit(GAPS)


@pytest.mark.parametrize("name", ["ARMA", "GARCH", "ParaRNN", "ETS"])
def test_rows_that_are_missing_are_inserted_with_a_warning(name):
    make, series = SKIP.get(name) or INTERPOLATE[name], WHOLE["a"]
    lacking = series.drop(series.index[[20, 50]])
    with pytest.warns(UserWarning, match="2 rows were missing at freq='MS' and inserted without"):
        model = make().fit(lacking)
    reindexed = lacking.reindex(MONTHS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = make().fit(reindexed)
    np.testing.assert_array_equal(model.predict(3), expected.predict(3))


@pytest.mark.few
@pytest.mark.parametrize("name", SKIP)
def test_columns_of_unequal_spans(name):
    spans = WHOLE.copy()
    spans.iloc[:15, 0] = np.nan
    spans.iloc[-7:, 1] = np.nan
    forecasts = SKIP[name]().fit(spans).predict(3)
    assert forecasts.index[0] == MONTHS[-1] + pd.DateOffset(months=1)
    assert forecasts.notna().all(axis=None)
    if name not in ("VARMA", "DCC"):  # which estimate columns together
        alone = SKIP[name]().fit(spans[["a"]].dropna()).predict(3)
        np.testing.assert_allclose(forecasts["a"], alone["a"], rtol=TOLERANCE.get(name, 1e-8))


# A search of statsmodels ends elsewhere within its tolerance.
TOLERANCE = {"SARIMAX": 1e-6, "ARMA": 1e-6, "AutoARIMA": 1e-6}
CUTS = (1, 7, 13)  # less than a season, and more


@pytest.mark.few(
    "ParaRNN-7", "ARMA-7", "ETS-7", "Theta-7", "GARCH-7", "VARMA-7", "DCC-7", "SARIMAX-7"
)
@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("name", SKIP)
def test_rows_before_the_first_value_change_nothing(name, cut):
    series = GAPS.copy()
    series.iloc[:cut] = np.nan
    whole, later = SKIP[name]().fit(series), SKIP[name]().fit(series.iloc[cut:])
    np.testing.assert_allclose(whole.predict(4), later.predict(4), rtol=TOLERANCE.get(name, 1e-8))


@pytest.mark.few("ParaRNN", "ARMA", "ETS", "Theta", "GARCH", "VARMA", "SARIMAX")
@pytest.mark.parametrize("k", [1, 4])
@pytest.mark.parametrize("name", SKIP)
def test_missing_rows_at_the_end_are_further_steps(name, k):
    """Of the dynamic theta model its line is through fewer rows: see the page on missing values."""
    ended = GAPS.reindex(pd.date_range(MONTHS[0], periods=72 + k, freq="MS"))
    expected = SKIP[name]().fit(GAPS).predict(k + 3).iloc[k:]
    rtol = 1e-3 if name == "Theta" else TOLERANCE.get(name, 1e-8)
    np.testing.assert_allclose(SKIP[name]().fit(ended).predict(3), expected, rtol=rtol)


def test_rows_at_the_ends_are_left_out_with_a_warning():
    spans = WHOLE.copy()
    spans.iloc[:15, 0] = np.nan
    spans.iloc[-7:, 1] = np.nan
    with pytest.warns(UserWarning, match="22 rows at the ends of series are left out, and forec"):
        model = Naive().fit(spans)
    assert model.predict(1).index[0] == MONTHS[-7]
    with pytest.raises(ValueError, match="have values at no common time"):
        Naive().fit(pd.DataFrame({"a": [1.0, 2.0, np.nan], "b": [np.nan, np.nan, 3.0]}))


def test_new_rows_must_not_begin_or_end_with_a_gap_where_they_are_interpolated():
    model = Naive().fit(WHOLE[:60])
    later = WHOLE[60:].copy()
    later.iloc[0, 0] = np.nan
    with pytest.raises(ValueError, match="missing at the first or last row"):
        model.update(later)
    kept = ARMA((1, 0)).fit(WHOLE[:60]).update(later)
    expected = ARMA((1, 0), missing="keep").fit(WHOLE[:60]).update(later)
    np.testing.assert_array_equal(kept.predict(2), expected.predict(2))


def test_a_series_without_a_value_is_refused():
    with pytest.raises(ValueError, match=r"must hold values; all are missing \(NaN\)"):
        ARMA((1, 0)).fit(WHOLE.assign(b=np.nan))


def test_a_trained_network_interpolates_later_gaps():
    long = pd.Series(np.sin(np.arange(450.0)) + RNG.normal(0, 0.1, 450), name="y")
    model = ParaRNNForecaster(3, max_epochs=1, hidden_size=4, random_state=0).fit(long)
    gap = long.copy()
    gap[440] = np.nan
    with pytest.warns(UserWarning, match="no place for missing values"):
        forecasts = model.predict(gap, 2)
    assert forecasts.notna().all()


def test_known_values_that_are_left_out_are_named():
    days = pd.date_range("2024-01-01", periods=8)
    ragged = pd.DataFrame(
        {"a": np.arange(8.0), "b": [1.0, 2, 3, 4, 5, np.nan, np.nan, np.nan]}, days
    )
    with pytest.warns(UserWarning, match="known values of the column 'a', which a long frame"):
        Naive().fit(ragged)
