"""Seasons that the frequency implies: taken by default, left out where rows are too few."""

import numpy as np
import pandas as pd
import pytest

from tsrnn import backtest
from tsrnn.baselines import (
    SeasonalNaive,
    StatsmodelsAutoARIMA,
    StatsmodelsETS,
    StatsmodelsTheta,
    UnobservedComponents,
)
from tsrnn.datasets import load_co2, load_elec_equip, load_elnino
from tsrnn.storage import load

SEASONAL = {
    "StatsmodelsETS": (StatsmodelsETS(), StatsmodelsETS(seasonal=None), 26),
    "Components": (UnobservedComponents(), UnobservedComponents(seasonal=None), 30),
    "StatsmodelsTheta": (StatsmodelsTheta(), StatsmodelsTheta(season_length=1), 24),
    "StatsmodelsAutoARIMA": (
        StatsmodelsAutoARIMA(max_p=0, max_q=0, max_Q=0, d=0, D=0),
        StatsmodelsAutoARIMA(1, max_p=0, max_q=0, max_Q=0, d=0, D=0),
        19,
    ),
}


@pytest.fixture(params=SEASONAL)
def case(request):
    return SEASONAL[request.param]


def monthly(rows):
    steps = np.arange(rows)
    values = 50 + 8 * np.sin(np.pi * steps / 6) + np.random.default_rng(0).normal(size=rows)
    return pd.Series(values, pd.date_range("2015-01-01", periods=rows, freq="MS"), name="y")


@pytest.mark.filterwarnings("ignore:.*came with warnings:UserWarning")
def test_too_few_rows_for_the_season_are_without_it_and_told(case, tmp_path):
    model, plain, least = case
    short, enough = monthly(least - 1), monthly(least)
    with pytest.warns(UserWarning, match=f"no season: it needs at least {least} rows; there are"):
        model.fit(short)
    told = f"no season: it needs at least {least} rows; there are {least - 1}"
    assert model.messages_["y"][0] == told
    plain.fit(short)
    pd.testing.assert_frame_equal(model.params_, plain.params_)
    pd.testing.assert_frame_equal(model.predict(5, level=80), plain.predict(5, level=80))
    assert model.summary() is not None
    model.save(tmp_path / "m.tsrnn")
    later = monthly(least + 12)[least - 1 :]  # with more rows the parameters are those of the fit
    pd.testing.assert_series_equal(
        load(tmp_path / "m.tsrnn").update(later).predict(5), plain.update(later).predict(5)
    )
    assert told not in model.fit(enough).messages_["y"]


@pytest.mark.filterwarnings("ignore:.*came with warnings:UserWarning")
def test_a_short_series_of_a_panel_costs_the_others_no_season():
    parts = {"long": monthly(60), "short": monthly(20)}
    frame = pd.concat(
        pd.DataFrame({"unique_id": name, "ds": own.index, "y": own.to_numpy()})
        for name, own in parts.items()
    )
    model = StatsmodelsETS().fit(frame)
    names = model.params_.loc["long"].dropna().index
    assert names.str.startswith("initial_seasonal").sum() == 12
    assert not model.params_.loc["short"].dropna().index.str.contains("seasonal").any()
    pd.testing.assert_series_equal(
        model.params_.loc["long"],
        StatsmodelsETS().fit(parts["long"]).params_.loc["y"],
        check_names=False,
    )
    for kind in ("ETS(A,N,A)", "ETS(A,N,N)"):
        assert kind in str(model.summary())


def test_a_season_asked_for_is_not_left_out():
    for model in (
        StatsmodelsETS(seasonal="add"),
        StatsmodelsETS(season_length=12),
        UnobservedComponents(seasonal=20),
    ):
        with pytest.raises(ValueError, match="needs at least 26 rows"):
            model.fit(monthly(20))


@pytest.mark.parametrize("model", [StatsmodelsETS(), UnobservedComponents()], ids=str)
def test_long_seasons_are_taken_only_when_asked_for(model):
    weeks = pd.Series(
        np.random.default_rng(0).normal(size=150),
        pd.date_range("2015-01-04", periods=150, freq="W"), name="y",
    )  # fmt: skip
    with pytest.warns(UserWarning, match="that of the frequency has 52 steps, and more than 24"):
        model.fit(weeks)
    assert not any("seasonal" in name for name in model.params_)


@pytest.mark.few("StatsmodelsETS()")
@pytest.mark.parametrize("load_data", [load_elec_equip, load_elnino, load_co2])
@pytest.mark.parametrize("model", [StatsmodelsETS(), UnobservedComponents()], ids=str)
@pytest.mark.filterwarnings("ignore:.*came with warnings:UserWarning")
def test_defaults_beat_the_same_without_a_season_by_far(model, load_data):
    data = load_data()
    series = (data.iloc[:, 0] if isinstance(data, pd.DataFrame) else data).rename("y")
    series = series.resample("MS").mean().interpolate().iloc[-180:]
    plain = type(model)(seasonal=None)
    models = {"default": model, "plain": plain, "naive": SeasonalNaive()}
    frame = backtest(models, series, h=12, n_windows=2, step_size=12)
    error = {name: (frame[name] - frame["y"]).abs().mean() for name in models}
    assert error["default"] < 0.75 * error["plain"]
    assert error["default"] < 1.25 * error["naive"]
