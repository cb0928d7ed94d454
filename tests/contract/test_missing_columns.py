"""Exogenous columns that leave no row to fit to, as all classes that keep missing values say it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tsrnn import ARMA, CES, ETS, VARMA, AutoARIMA, ParaRNNForecaster, Theta
from tsrnn.baselines import SARIMAX, VARMAX, StatsmodelsAutoARIMA, UnobservedComponents

MAKERS = {
    "ARMA": ARMA, "AutoARIMA": AutoARIMA, "CES": CES, "ETS": ETS, "SARIMAX": SARIMAX,
    "StatsmodelsAutoARIMA": StatsmodelsAutoARIMA, "Theta": Theta,
    "UnobservedComponents": UnobservedComponents, "VARMA": VARMA, "VARMAX": VARMAX,
}  # fmt: skip


def frame(seed=0):
    rng = np.random.default_rng(seed)
    index = pd.date_range("2020", periods=40, freq="QS", name="ds")
    return pd.DataFrame(rng.normal(size=(40, 4)), index, ["y", "z", "x", "gone"])


def long(frames):
    rows = [part.reset_index().assign(unique_id=name) for name, part in frames.items()]
    return pd.concat(rows, ignore_index=True)


def model(name):
    target = ["y", "z"] if name.startswith("VARMA") else "y"
    return MAKERS[name](missing="keep", target=target, known_ahead=["x", "gone"])


@pytest.mark.parametrize("name", MAKERS)
class TestColumnsWithoutValues:
    def test_is_named(self, name):
        data = frame().assign(gone=np.nan)
        match = r"^all values of the column 'gone' are missing \(NaN\). Drop the column$"
        with pytest.raises(ValueError, match=match):
            model(name).fit(data)
        with pytest.raises(ValueError, match=r"^series 'a': all values of the column 'gone'"):
            model(name).fit(long({"a": data, "b": data}))

    def test_columns_that_never_meet(self, name):
        data = frame()
        data.loc[data.index[::2], "x"], data.loc[data.index[1::2], "gone"] = np.nan, np.nan
        match = r"^no row has a target and values of all columns .*'x', 'gone'. Drop a column, or"
        with pytest.raises(ValueError, match=match):
            model(name).fit(data)


@pytest.mark.filterwarnings("ignore:1 of 2 units could not be fitted")
def test_of_one_series_of_a_panel():
    """The others are fitted as they are alone."""
    data = long({"a": frame().assign(gone=np.nan), "b": frame(1)})
    with pytest.warns(UserWarning, match="1 of 2 series have no row to fit to, 'a': of the first"):
        both = ARMA(missing="keep", known_ahead=["x", "z", "gone"]).fit(data)
    alone = ARMA(missing="keep", known_ahead=["x", "z", "gone"]).fit(data[data.unique_id == "b"])
    np.testing.assert_allclose(both.params_.loc["b"], alone.params_.loc["b"])
    assert both.params_.loc["a"].isna().all()


def test_rows_that_come_later_may_lack_a_column():
    data = frame()
    fitted = ARMA(missing="keep", target="y", known_ahead=["z", "x", "gone"]).fit(data[:-1])
    fitted.update(data[-1:].assign(gone=np.nan))
    future = data[-1:].drop(columns="y").shift(freq="QS")
    assert np.isfinite(fitted.predict(1, X_future=future)["y"]).all()


def test_a_column_without_values_has_no_effect_beside_the_prior_network():
    data = frame().assign(gone=np.nan)
    forecaster = ParaRNNForecaster(1, missing="keep", target="y", known_ahead=["x", "gone"])
    with pytest.warns(UserWarning, match=r"columns \['gone'\] are missing in too many rows"):
        forecaster.fit(data[["y", "x", "gone"]])


@pytest.mark.parametrize(
    ("maker", "message"),
    [
        (lambda: ARMA(target="y", known_ahead="x"), "the regressor 'x' does not vary"),
        (
            lambda: VARMA(target=["y", "z"], known_ahead="x"),
            "the exogenous column 'x' does not vary",
        ),
    ],
    ids=["ARMA", "VARMA"],
)
def test_a_column_that_is_constant_in_a_series_is_named_with_the_series(maker, message):
    """The others are fitted; the warning names the series, the message the column."""
    data = long({"a": frame(), "b": frame(1).assign(x=0.1)}).drop(columns="gone")
    with pytest.warns(UserWarning, match=f"1 of 2 units could not be fitted, 'b'.*{message}"):
        model = maker().fit(data)
    assert model.messages_["b"][0].endswith(
        "Leave it out, or fit this series by itself without it."
    )
    assert model.params_.loc["a"].notna().all()


def test_a_target_that_is_constant_in_a_series_is_named_with_the_series():
    data = long({"a": frame(), "b": frame(1).assign(z=0.1)})
    with pytest.warns(UserWarning, match=r"'b'.*the target 'z' does not vary. Leave it out"):
        model = VARMA(target=["y", "z"]).fit(data[["unique_id", "ds", "y", "z"]])
    assert model.params_.loc["b"].isna().all()
