"""Static columns of a panel, on which the effects of columns depend."""

import numpy as np
import pandas as pd
import pytest

from tsrnn import LRUForecaster, ParaRNNForecaster, load
from tsrnn.contract import read_file, write_file

H, DAYS = 6, 48
KEYS = ["unique_id", "ds"]


def shops(n_shops, slope=1.5, seed=0):
    """Shops whose sales rise in a promotion by 2, and by `slope` for one more of z."""
    rng, days = np.random.default_rng(seed), pd.date_range("2022-01-01", periods=DAYS, freq="D")
    parts = []
    for number in range(n_shops):
        z, effect = rng.normal(), 0.3 * rng.normal()
        x = (rng.random(DAYS) < 0.2).astype(float)
        x[-H:] = [0, 1, 1, 0, 1, 0]
        y = 20 + rng.normal(0, 2) + (2 + slope * z + effect) * x + rng.normal(size=DAYS)
        parts.append(pd.DataFrame({"unique_id": f"s{number}", "ds": days, "y": y, "x": x, "z": z,
                                   "w": rng.normal()}))  # fmt: skip
    return pd.concat(parts, ignore_index=True)


ALL = shops(80)
NEW = ALL["unique_id"].isin([f"s{number}" for number in range(60, 80)])
LAST = ALL["ds"] > ALL["ds"].max() - pd.Timedelta(days=H)
PLAN = ALL.loc[NEW & LAST, [*KEYS, "x"]]


def fitted(static, **options):
    columns = [*KEYS, "y", "x", *static]
    # Static columns leave the prior network alone, so that the others are of it alone, too.
    options = {"prior": "only"} | options
    return ParaRNNForecaster(H, known_ahead="x", static=static or None, **options).fit(
        ALL.loc[~NEW & ~LAST, columns]
    )


def forecast(model, rows=DAYS):
    past = ALL.loc[NEW & ~LAST, [*KEYS, "y", "x", *model.static_]]
    past = past.groupby("unique_id").tail(rows)
    return model.predict(X=past, h=H, X_future=PLAN, level=80)


@pytest.fixture(scope="module")
def with_z():
    return fitted(["z"])


@pytest.fixture(scope="module")
def without():
    return fitted([])


def errors(forecasts):
    joined = ALL[NEW & LAST].merge(forecasts, on=KEYS)
    return (joined["y"] - joined["ParaRNN"]).abs()[joined["x"] == 1].mean()


# The mean change of a new series, in whose multiples effects may be, is rough in few rows.
@pytest.mark.parametrize(("rows", "most"), [(8, 0.95), (DAYS, 0.85)])
def test_new_series_have_the_effects_of_their_static_columns(with_z, without, rows, most):
    assert errors(forecast(with_z, rows)) < most * errors(forecast(without, rows))


@pytest.mark.slow
def test_an_irrelevant_static_column_costs_nothing(without):
    pd.testing.assert_frame_equal(forecast(fitted(["w"])), forecast(without))


def test_named_none_a_static_column_is_left_out(without):
    left_out = fitted(["z"], effects={"z": "none"})
    pd.testing.assert_frame_equal(forecast(left_out), forecast(without))


def test_a_missing_static_value_is_that_of_the_mean_series(tmp_path):
    mean = float(
        ALL.loc[~NEW & (ALL["unique_id"] != "s7")].groupby("unique_id")["z"].first().mean()
    )
    lacking = ALL.assign(z=ALL["z"].where(ALL["unique_id"] != "s7"))[[*KEYS, "y", "x", "z"]]
    model = ParaRNNForecaster(H, known_ahead="x", static="z", missing="keep")
    model.fit(lacking.loc[~NEW & ~LAST])
    model.save(tmp_path / "model")
    model = load(tmp_path / "model")
    past = ALL.loc[NEW & ~LAST, [*KEYS, "y", "x"]]
    absent, known = (
        model.predict(X=past.assign(z=value), h=H, X_future=PLAN)["ParaRNN"]
        for value in (np.nan, mean)
    )
    np.testing.assert_allclose(absent, known, rtol=1e-9)
    later = lacking.loc[~NEW & LAST]
    plan = later[[*KEYS, "x"]].assign(ds=later["ds"] + pd.Timedelta(days=H))
    assert np.isfinite(model.update(later).predict(X_future=plan)["ParaRNN"]).all()


def test_summary_says_how_effects_vary(with_z):
    effects = with_z.summary().effects
    assert effects["effect of"].tolist() == ["x", "x by z"]
    assert abs(effects["coef"][1] / 1.5 - 1) < 0.35
    assert "x by z" in str(with_z.summary())
    assert "one more of the static column" in str(with_z.summary())


def test_units_of_target_and_static_column_do_not_matter(with_z):
    scaled = ALL.assign(y=1e3 * ALL["y"], z=50 - 1e4 * ALL["z"])
    model = ParaRNNForecaster(H, known_ahead="x", static="z")
    model.fit(scaled.loc[~NEW & ~LAST].drop(columns="w"))
    past = scaled.loc[NEW & ~LAST].drop(columns="w")
    other = model.predict(X=past, h=H, X_future=PLAN)["ParaRNN"] / 1e3
    np.testing.assert_allclose(other, forecast(with_z)["ParaRNN"], rtol=1e-4)


@pytest.mark.parametrize("unit", ["same", "own"])
def test_new_series_have_effects_on_the_scale_on_which_series_are_alike(unit):
    rng, days = np.random.default_rng(0), pd.date_range("2022-01-01", periods=60, freq="D")
    parts = []
    for number in range(40):
        # The last shop's sales change ten times as much.
        size = 10.0 if number == 39 else np.exp(rng.normal(0, 0.7))
        x = (rng.random(60) < 0.2).astype(float)
        effect = (2 + 0.2 * rng.normal()) * (1.0 if unit == "same" else size) * x
        y = 100 * np.exp(rng.normal(0, 0.5)) + size * rng.normal(size=60) + effect
        parts.append(pd.DataFrame({"unique_id": f"s{number}", "ds": days, "y": y, "x": x}))
    model = ParaRNNForecaster(1, known_ahead="x").fit(pd.concat(parts[:-1]))
    assert model.fitted_.regression.effects.alike == {"same": "units", "own": "changes"}[unit]
    ahead = pd.DataFrame({"unique_id": "s39", "ds": [days[-1] + pd.Timedelta(days=1)]})
    with_x, without_x = (
        model.predict(X=parts[-1], h=1, X_future=ahead.assign(x=x))["ParaRNN"].item()
        for x in (1.0, 0.0)
    )
    assert abs((with_x - without_x) / {"same": 2.0, "own": 20.0}[unit] - 1) < 0.25


def test_files_forecast_alike(with_z, tmp_path):
    with_z.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    pd.testing.assert_frame_equal(forecast(loaded), forecast(with_z))
    pd.testing.assert_frame_equal(loaded.summary().effects, with_z.summary().effects)


@pytest.mark.parametrize("products", [[[1, 0]], [[0, 1]], [[0, 0], [0, 0]], [], [[0]]])
def test_changed_products_are_refused(with_z, products, tmp_path):
    with_z.save(tmp_path / "model")
    header, arrays = read_file(tmp_path / "model")
    header["fitted"]["panel"]["products"] = products
    write_file(tmp_path / "model", header, arrays)
    with pytest.raises(ValueError, match=r"fitted\.panel\.products"):
        load(tmp_path / "model")


@pytest.mark.slow
def test_trained_networks_have_the_same_effects(with_z, tmp_path):
    frame = ALL.loc[~NEW & ~LAST, [*KEYS, "y", "x", "z"]]
    model = LRUForecaster(H, known_ahead="x", static="z", max_epochs=1, random_state=0).fit(frame)
    pd.testing.assert_frame_equal(model.summary().effects, with_z.summary().effects)
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    np.testing.assert_allclose(
        forecast(loaded).iloc[:, 2], forecast(model).iloc[:, 2], rtol=1e-6
    )  # fmt: skip


def test_updates_are_longer_histories():
    model = fitted(["z"])
    past = ALL.loc[~NEW & ~LAST, [*KEYS, "y", "x", "z"]]
    later = ALL.loc[~NEW & LAST, [*KEYS, "y", "x", "z"]]
    plan = later[[*KEYS, "x"]].assign(ds=later["ds"] + pd.Timedelta(days=H))
    whole = model.predict(X=pd.concat([past, later]), h=H, X_future=plan)
    joined = model.update(later).predict(X_future=plan).merge(whole, on=KEYS)
    np.testing.assert_allclose(joined["ParaRNN_x"], joined["ParaRNN_y"], rtol=1e-6)
