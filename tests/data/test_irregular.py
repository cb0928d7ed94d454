"""Irregular rows: a row is a step, as rows that are counted, and dates are labels of the rows."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsrnn import ARMA, DCC, ETS, GARCH, Combination, ParaRNNForecaster, backtest
from tsrnn.baselines import ArchModel, Drift, Naive
from tsrnn.data import panel_frame, read_panel, to_polars

mpl.use("agg")
RNG = np.random.default_rng(0)
TIMES = pd.DatetimeIndex(
    np.datetime64("2024-01-01", "ns") + np.cumsum(RNG.integers(1, 10**14, 200)), name="ds"
)
RETURNS = pd.Series(RNG.standard_t(5, 200), TIMES, name="return")
COUNTED = RETURNS.reset_index(drop=True)
PAST, LATER = RETURNS[:-20], RETURNS[-20:]


def two(series):
    return pd.DataFrame({"a": series, "b": series + np.cos(np.arange(len(series)))})


def same(series):
    return series


MODELS = {
    "GARCH": (lambda **freq: GARCH(random_state=0, **freq), same),
    "ArchModel": (lambda **freq: ArchModel(random_state=0, **freq), same),
    "ARMA": (lambda **freq: ARMA((1, 0), trend="ct", **freq), same),
    "ETS": (ETS, same),
    "DCC": (DCC, two),
    "ParaRNN": (lambda **freq: ParaRNNForecaster(5, prior="only", **freq), same),
    "Drift": (Drift, same),
    "Combination": (
        lambda **freq: Combination({"drift": Drift(), "ar": ARMA((1, 0))}, horizon=5, **freq),
        same,
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_as_rows_that_are_counted(name, reloaded):
    make, frame = MODELS[name]
    dated = make(freq="irregular").fit(frame(PAST))
    counted = make().fit(frame(COUNTED[:-20]))
    assert dated.freq_ == "irregular"
    ahead = dated.predict(5, level=80)
    np.testing.assert_allclose(ahead, counted.predict(5, level=80), rtol=1e-12)
    assert ahead.index.tolist() == [1, 2, 3, 4, 5]
    rolling = dated.predict_rolling(frame(LATER), h=2)
    expected = counted.predict_rolling(frame(COUNTED[-20:]), h=2)
    numbers = [column for column in rolling if column not in ("cutoff", "ds")]
    np.testing.assert_allclose(rolling[numbers], expected[numbers], rtol=1e-12)
    assert rolling["cutoff"].iloc[0] == PAST.index[-1]
    dated.update(frame(LATER))
    counted.update(frame(COUNTED[-20:]))
    np.testing.assert_allclose(dated.predict(5), counted.predict(5), rtol=1e-12)
    again = reloaded(dated)
    np.testing.assert_array_equal(again.predict(5), dated.predict(5))
    assert again.fitted_.data.layout == dated.fitted_.data.layout


def test_dates_are_labels_of_the_rows_fitted_to():
    model = GARCH(freq="irregular").fit(RETURNS)
    assert model.conditional_volatility().index.equals(TIMES)
    assert model.predict_variance(3).index.tolist() == [1, 2, 3]
    rows = panel_frame(read_panel(RETURNS, freq="irregular"))
    pd.testing.assert_series_equal(rows, RETURNS, check_names=False)


def test_columns_ahead_have_the_dates():
    frame = RETURNS.to_frame().assign(x=np.arange(200) % 7)
    model = ARMA((1, 0), target="return", known_ahead="x", freq="irregular").fit(frame[:-20])
    ahead = model.predict(4, X_future=frame[["x"]][-20:])
    assert ahead.index.tolist() == TIMES[-20:-16].tolist()
    with pytest.raises(ValueError, match="must cover the 4 steps after the data; missing are 4 at"):
        model.predict(4, X_future=frame[["x"]][-2:])


def test_a_backtest_has_the_dates_of_the_data():
    models = {"garch": GARCH(freq="irregular"), "drift": Drift(freq="irregular")}
    frame = backtest(models, RETURNS, h=5, n_windows=4)
    assert frame["ds"].tolist() == TIMES[-20:].tolist()
    assert frame.notna().all(axis=None)


def test_series_at_common_times():
    long = pd.concat(
        [RETURNS[:n].rename("y").reset_index().assign(unique_id=name)
         for name, n in (("a", 200), ("b", 190))]
    )  # fmt: skip
    model = Drift(freq="irregular").fit(long)
    assert model.predict(2)["ds"].tolist() == [1, 2, 1, 2]
    aligned = model.predict(2, align=True)
    ahead = model.predict(12, ids="b").tail(2)["Drift"]
    np.testing.assert_allclose(aligned["Drift"].iloc[2:], ahead)
    assert Drift(freq="irregular").fit(to_polars(long)).predict(2)["ds"].to_list() == [1, 2, 1, 2]
    long["ds"] += pd.to_timedelta((long["unique_id"] == "b").astype(int), "s")
    with pytest.raises(ValueError, match="series 'a': irregular rows .* must be at common times"):
        Drift(freq="irregular").fit(long)


def test_the_refusal_of_irregular_times_names_the_way():
    with pytest.raises(ValueError, match="freq='irregular', which takes rows as they come"):
        GARCH().fit(RETURNS)


@pytest.mark.parametrize("argument", [{"calendar": True}, {"holidays": "US"}])
def test_what_needs_regular_times_says_so(argument):
    (name,) = argument
    with pytest.raises(ValueError, match=f"{name} needs? steps of one length"):
        ARMA(freq="irregular", **argument).fit(RETURNS)


def test_rows_that_do_not_follow_are_refused():
    model = ARMA((1, 0), freq="irregular").fit(PAST)
    with pytest.raises(ValueError, match="new rows must come after the last known row"):
        model.update(PAST[-3:])
    with pytest.raises(ValueError, match="unknown is the row at .* Take later rows in by update"):
        model.predict(RETURNS, 2)


def test_integers_have_steps_already():
    with pytest.raises(ValueError, match="freq='irregular' does not fit integer timestamps"):
        Naive(freq="irregular").fit(COUNTED)


def test_a_picture_has_an_axis_of_steps():
    (ax,) = Drift(freq="irregular").fit(RETURNS).plot(3, last=10)
    drawn = np.concatenate([line.get_xdata() for line in ax.get_lines()])
    assert drawn.min() == -9
    assert drawn.max() == 3


@given(st.lists(st.integers(1, 10**15), min_size=2, max_size=20), st.integers(1, 5))
def test_any_gaps(gaps, h):
    times = pd.DatetimeIndex(np.datetime64("1970-01-01", "ns") + np.cumsum(gaps))
    model = Naive(freq="irregular").fit(pd.Series(1.0 * np.arange(len(gaps)), times))
    ahead = model.predict(h)
    assert ahead.tolist() == [len(gaps) - 1.0] * h
    assert ahead.index.tolist() == list(range(1, h + 1))


def test_times_before_1970_are_no_steps():
    times = pd.to_datetime(["1950-01-01", "1950-01-03", "1950-01-04"])
    panel = read_panel(pd.Series([1.0, 2.0, 3.0], times), freq="irregular")
    assert panel_frame(panel).index.tolist() == times.tolist()
    with pytest.raises(ValueError, match="go back in 1 row at 1950-01-02"):
        read_panel(pd.Series(range(4), times.append(pd.to_datetime(["1950-01-02"]))))
