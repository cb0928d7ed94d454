"""Stacked forecasts of long series with columns that are known ahead."""

import copy

import numpy as np
import pandas as pd
import pytest

from tsrnn import ParaRNNForecaster, load
from tsrnn.contract import DamagedFileError, read_file, write_file
from tsrnn.forecasters import FittedPrior, FittedStacked, FittedWithColumns

ROWS, LATER, H = 470, 40, 7


def daily(seed=0):
    """Return daily sales with a week, a price that drives them, and a column of noise."""
    rng, t = np.random.default_rng(seed), np.arange(ROWS + LATER)
    price = 0.3 * rng.standard_normal(ROWS + LATER).cumsum()
    sales = 50 - 3 * price + 5 * np.sin(2 * np.pi * t / 7) + rng.standard_normal(ROWS + LATER)
    index = pd.date_range("2021-03-01", periods=ROWS + LATER, name="ds")
    return pd.DataFrame({"sales": sales, "price": price}, index)


FRAME = daily()
PAST, NEXT = FRAME[:ROWS], FRAME[ROWS:]
AHEAD = NEXT[["price"]]


@pytest.fixture(scope="module")
def fitted():
    return ParaRNNForecaster(H, target="sales", known_ahead="price", random_state=0).fit(PAST)


@pytest.fixture
def model(fitted):
    return copy.deepcopy(fitted)


def test_a_network_behind_the_effects_is_among_the_parts(fitted):
    assert isinstance(fitted.fitted_, FittedStacked)
    assert isinstance(fitted.fitted_.parts["trained network"], FittedWithColumns)
    assert isinstance(fitted.fitted_.parts["prior network"], FittedPrior)


def test_forecasts_are_weighted_means_within_the_ends_of_the_prior_network(fitted):
    found = fitted.predict(level=80, X_future=AHEAD[:H])
    parts = {
        name: part.predict(level=80, X_future=AHEAD[:H]) for name, part in fitted.parts_.items()
    }
    weights = fitted.fitted_.weights
    mean = sum(w * part["sales"] for w, part in zip(weights, parts.values(), strict=True))
    np.testing.assert_allclose(found["sales"], mean, rtol=1e-12)
    prior = parts["prior network"]
    for end in ("sales-lo-80", "sales-hi-80"):
        np.testing.assert_allclose(found[end] - found["sales"], prior[end] - prior["sales"])
    assert "prior network, moved" in fitted.interval_guarantee_


@pytest.mark.parametrize("gaps", [False, True])
def test_updates_are_a_forecast_from_all_rows(model, gaps):
    rows = NEXT[:20].copy()
    if gaps:
        rows.iloc[[3, 19], 0] = np.nan
        rows.iloc[5, 1] = np.nan
    ahead = AHEAD[20 : 20 + H]
    expected = model.predict(pd.concat([PAST, rows]), level=80, X_future=ahead)
    for k in range(0, 20, 5):
        model.update(rows[k : k + 5])
    found = model.predict(level=80, X_future=ahead)
    assert np.isfinite(found).all(axis=None)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_rolling_forecasts_are_those_of_updates(model):
    found = model.predict_rolling(NEXT, step_size=11, level=80)
    found = found.set_index("cutoff").drop(columns="ds", errors="ignore")
    for k in range(0, LATER - H + 1, 11):
        if k:
            model.update(NEXT[k - 11 : k])
        expected = model.predict(level=80, X_future=AHEAD[k : k + H])
        cutoff = FRAME.index[ROWS + k - 1]
        np.testing.assert_allclose(found.loc[cutoff], expected, rtol=1e-6)


def test_of_a_file_they_are_the_same(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    later = [
        copy.deepcopy(each).update(NEXT[:9]).predict(level=[50, 80], X_future=AHEAD[9 : 9 + H])
        for each in (fitted, loaded)
    ]
    pd.testing.assert_frame_equal(*later)
    assert loaded.interval_guarantee_ == fitted.interval_guarantee_


def test_a_file_without_the_prior_network_is_refused(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    header, arrays = read_file(tmp_path / "model")
    of_fit = header["fitted"]
    _, *others = of_fit["parts"]
    of_fit["parts"] = {name: of_fit["parts"][name] for name in others}
    weights = np.full(len(others), 1 / len(others))
    for row in of_fit["candidates"].values():
        row[0] = 0.0
    for name in others:
        of_fit["candidates"][name][0] = 1 / len(others)
    kept = {"stacking.weights": weights}
    for name, array in arrays.items():
        number, slash, key = name.partition("/")
        if not slash:
            kept.setdefault(name, array)
        elif number != "0":
            kept[f"{int(number) - 1}/{key}"] = array
    write_file(tmp_path / "model", header, kept)
    with pytest.raises(DamagedFileError, match="'prior network', whose intervals"):
        load(tmp_path / "model")


def test_contributions_sum_to_the_forecast(fitted):
    parts = fitted.contributions(X_future=AHEAD[:H])
    assert {"prior network: price", "trained network: price"} <= set(parts.columns)
    forecast = fitted.predict(X_future=AHEAD[:H])["sales"]
    np.testing.assert_allclose(parts.sum(axis=1), forecast, rtol=1e-9)


def test_effects_are_those_of_the_heaviest_part(fitted):
    effects = fitted.summary().effects
    price = effects[effects["effect of"] == "price"]
    assert price["coef"].item() == pytest.approx(-3, abs=0.2)
    curve = fitted.effect_curves().query("kind == 'curve' and column == 'price'")
    slope = curve["effect"].diff() / curve["at"].diff()
    assert slope.iloc[-1] == pytest.approx(-3, abs=0.2)
    assert "price" in str(fitted.summary())


def test_paths_are_as_wide_as_the_intervals(fitted):
    paths = fitted.sample_paths(1500, X_future=AHEAD[:H], random_state=0)
    forecast = fitted.predict(level=80, X_future=AHEAD[:H])
    ends = paths.groupby("ds")["sales"].quantile([0.1, 0.9]).unstack()
    ratio = (ends[0.9] - ends[0.1]).to_numpy() / (
        forecast["sales-hi-80"] - forecast["sales-lo-80"]
    ).to_numpy()
    assert ((ratio > 0.8) & (ratio < 1.25)).all()


def test_columns_not_known_ahead_leave_the_prior_network_alone():
    model = ParaRNNForecaster(H, target="sales", random_state=0).fit(PAST)
    assert isinstance(model.fitted_, FittedPrior)


def test_they_are_nearer_than_without_the_column(fitted):
    actual = NEXT["sales"][:H]
    alone = ParaRNNForecaster(H, random_state=0).fit(PAST[["sales"]]).predict()["sales"]
    error = np.abs(fitted.predict(X_future=AHEAD[:H])["sales"] - actual).mean()
    assert error < np.abs(alone - actual).mean()
