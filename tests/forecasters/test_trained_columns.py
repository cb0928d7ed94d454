"""Columns beside networks that are trained on the series: their effects are taken out before."""

import numpy as np
import pandas as pd
import pytest

from tsrnn import LEMForecaster, LRUForecaster, ParaRNNForecaster, load
from tsrnn.contract import DamagedFileError, read_file, write_file
from tsrnn.export import export_torch
from tsrnn.forecasters import FittedNetworks, FittedWithColumns, NewtonForecaster, StateWithColumns

H, ROWS = 4, 90
SMALL = {"hidden_size": 4, "n_layers": 1, "max_epochs": 2, "random_state": 0}
CLASSES = [ParaRNNForecaster, LEMForecaster, LRUForecaster, NewtonForecaster]


def weekly(seed=0, name=None, factor=False):
    """Return a wandering level with the effect of a price; `noise` has none."""
    rng = np.random.default_rng(seed)
    price, noise = rng.normal(size=(2, ROWS))
    wander = 0.2 * rng.normal(size=ROWS).cumsum() + 0.3 * rng.normal(size=ROWS)
    y = np.exp(3 - 0.5 * price + 0.1 * wander) if factor else 20 - 3 * price + wander
    weeks = pd.date_range("2020", periods=ROWS, freq="W", name="ds")
    df = pd.DataFrame({"y": y, "price": price, "noise": noise}, weeks)
    return df if name is None else df.reset_index().assign(unique_id=name)


FRAME, FACTOR = weekly(), weekly(factor=True)
PAST, LATER = FRAME[: -2 * H], FRAME[-2 * H :]
PANEL = pd.concat([weekly(seed, f"s{seed}") for seed in range(3)], ignore_index=True)
KNOWN = ["price", "noise"]


def make(cls=LRUForecaster, **changes):
    return cls(H, **SMALL | {"target": "y", "known_ahead": KNOWN} | changes)


def rows(first, last, frame=PANEL):
    """Return rows of each series by number, from `first` to before `last`."""
    return frame[frame.groupby("unique_id").cumcount().between(first, last - 1)]


@pytest.fixture(scope="module")
def model():
    return make().fit(PAST)


@pytest.mark.parametrize("name", ["linear path", "known ahead", "network", "constant", "block 1"])
def test_a_column_named_as_a_part_is_told_apart(name):
    changed = FRAME.rename(columns={"price": name})
    model = make(known_ahead=[name, "noise"]).fit(changed[: -2 * H])
    ahead = changed[[name, "noise"]][-2 * H : -H]
    parts = model.contributions(X_future=ahead)
    assert f"{name} (column)" in parts
    np.testing.assert_allclose(parts.sum(axis=1), model.predict(X_future=ahead)["y"])


@pytest.fixture(scope="module")
def of_panel():
    return make(target=None).fit(rows(0, ROWS - 2 * H))


@pytest.mark.parametrize("cls", CLASSES)
def test_a_square_is_learned_by_every_class(cls):
    rng = np.random.default_rng(1)
    x = rng.normal(size=200)
    df = pd.DataFrame({"y": x**2 + 0.5 * rng.normal(size=200), "x": x})
    model = make(cls, known_ahead="x").fit(df[:-H])
    forecast = model.predict(X_future=df[["x"]][-H:])["y"]
    assert np.abs(forecast - x[-H:] ** 2).max() < 0.4
    assert isinstance(model.fitted_, FittedWithColumns)
    assert isinstance(model.state_, StateWithColumns)


def test_forecasts_are_those_of_what_a_linear_effect_leaves():
    chosen = {"effects": {"price": "linear", "noise": "none"}, "season_length": 1}
    model = make(ParaRNNForecaster, **chosen).fit(PAST)
    effects = model.summary().effects
    assert effects["effect of"].tolist() == ["price"]
    slope = effects["coef"].item()
    assert slope == pytest.approx(-3, abs=0.3)
    location = model.fitted_.regression.effects.location.item()
    left = PAST.assign(y=PAST["y"] - slope * (PAST["price"] - location))
    plain = make(ParaRNNForecaster, effects=dict.fromkeys(KNOWN, "none"), season_length=1).fit(left)
    assert isinstance(plain.fitted_, FittedNetworks)
    ahead = LATER[KNOWN][:H]
    expected = plain.predict(X_future=ahead)["y"] + slope * (ahead["price"] - location)
    np.testing.assert_allclose(model.predict(X_future=ahead)["y"], expected, rtol=1e-5)


def test_contributions_sum_to_the_forecast(model):
    ahead = LATER[KNOWN][:H]
    parts = model.contributions(X_future=ahead)
    assert {"level", "price"} <= {*parts.columns}
    np.testing.assert_allclose(parts.sum(axis=1), model.predict(X_future=ahead)["y"], rtol=1e-6)


@pytest.mark.parametrize("use_boxcox", ["log", 0.5])
def test_effects_on_transformed_series_are_factors(use_boxcox):
    model = make(use_boxcox=use_boxcox).fit(FACTOR[:-H])
    assert model.fitted_.regression.effects.logarithms
    ahead = FACTOR[KNOWN][-H:]
    forecast = model.predict(X_future=ahead, level=80)
    assert np.abs(np.log(forecast["y"] / FACTOR["y"][-H:])).max() < 0.2
    assert (forecast > 0).all(axis=None)
    y = forecast["y"].to_numpy()
    transformed = np.log(y) if use_boxcox == "log" else 2 * (np.sqrt(y) - 1)
    parts = model.contributions(X_future=ahead).sum(axis=1)
    np.testing.assert_allclose(parts, transformed, rtol=1e-6)


def test_updates_rows_and_files_lead_to_one_forecast(model, tmp_path):
    model.save(tmp_path / "model.tsrnn")
    loaded = load(tmp_path / "model.tsrnn")
    ahead = LATER[KNOWN][:H]
    expected = model.predict(X_future=ahead, level=[80])
    pd.testing.assert_frame_equal(loaded.predict(X_future=ahead, level=[80]), expected)
    loaded.update(LATER[:1]).update(LATER[1:H])
    ahead = LATER[KNOWN][H:]
    updated = loaded.predict(X_future=ahead, level=[80])
    filtered = model.predict(FRAME[:-H], X_future=ahead, level=[80])
    pd.testing.assert_frame_equal(updated, filtered, rtol=1e-5)
    rolled = model.predict_rolling(LATER, h=2, level=[80]).iloc[2 * H : 2 * H + 2]
    names = ["y", "y-lo-80", "y-hi-80"]
    np.testing.assert_allclose(rolled[names], updated[:2], rtol=1e-5)


def test_all_origins_of_a_panel_in_one_pass(of_panel):
    rolled = of_panel.predict_rolling(rows(ROWS - 2 * H, ROWS), h=H, level=[80])
    for cut in (0, 3):
        before = rows(0, ROWS - 2 * H + cut)
        begin = ROWS - 2 * H + cut
        ahead = rows(begin, begin + H).drop(columns="y")
        expected = of_panel.predict(before, h=H, X_future=ahead, level=[80])
        part = rolled[rolled["cutoff"] == before["ds"].max()].reset_index(drop=True)
        pd.testing.assert_frame_equal(part[expected.columns], expected, rtol=1e-5)


def test_new_series_have_the_effects_of_the_panel(of_panel):
    new = weekly(7, "new")
    ahead = new[-H:].drop(columns="y")
    raised = ahead.assign(price=ahead["price"] + 1)
    known, more = (of_panel.predict(new[:-H], h=H, X_future=x)["LRU"] for x in (ahead, raised))
    assert (more - known).mean() == pytest.approx(-3, abs=0.8)


def test_a_frame_without_ids_is_the_series_fitted_where_it_holds_its_last_row(model):
    ahead = LATER[KNOWN][:H]
    usual = model.predict(X_future=ahead)
    again = model.predict(PAST[10:], h=H, X_future=ahead)
    pd.testing.assert_frame_equal(again, usual, rtol=1e-2)
    other = model.predict(PAST.assign(y=PAST["y"] * 100), h=H, X_future=ahead)["y"]
    assert (other > 1000).all()


def test_networks_by_series(tmp_path):
    model = make(target=None, per_series=True).fit(rows(0, ROWS - H))
    ahead = rows(ROWS - H, ROWS).drop(columns="y")
    forecast = model.predict(X_future=ahead, level=[80])
    of_one = ahead["unique_id"] == "s1"
    alone = model.for_series("s1").predict(X_future=ahead[of_one], level=[80])
    np.testing.assert_allclose(
        forecast[forecast["unique_id"] == "s1"].iloc[:, 2:], alone.iloc[:, 2:]
    )
    assert not model.for_series("s1").summary().effects.empty
    assert len(model.summary().table) == 3
    model.save(tmp_path / "model.tsrnn")
    loaded = load(tmp_path / "model.tsrnn").predict(X_future=ahead, level=[80])
    pd.testing.assert_frame_equal(loaded, forecast)


def test_coefficients_widen_intervals_and_paths_far_from_the_data(model):
    near = pd.DataFrame(0.0, LATER.index[:H], KNOWN)
    far = near.assign(price=-200.0)  # which raises sales: no end is cut at zero
    widths, spreads = [], []
    for ahead in (near, far):
        forecast = model.predict(X_future=ahead, level=80)
        widths.append((forecast["y-hi-80"] - forecast["y-lo-80"]).to_numpy())
        paths = model.sample_paths(n=400, X_future=ahead, random_state=0)
        spreads.append(paths.groupby(level=-1)["y"].std().to_numpy())
    error = model.summary().effects["std err"][0]
    assert widths[1].min() > 1.5 * widths[0].max()
    np.testing.assert_allclose(widths[1], 2 * 1.2816 * 200 * error, rtol=0.25)
    assert np.median(spreads[1] / spreads[0]) > 1.5


def test_columns_without_an_effect_leave_the_network_alone():
    rng = np.random.default_rng(3)
    df = PAST.assign(y=rng.normal(size=len(PAST)).cumsum(), noise=rng.normal(size=len(PAST)))
    model = make(known_ahead="noise").fit(df[["y", "noise"]])
    assert isinstance(model.fitted_, FittedNetworks)
    assert model.summary().effects is None


def test_columns_of_history_are_left_to_the_network():
    model = make(known_ahead="price").fit(PAST)
    assert [term.column for term in model.fitted_.regression.effects.terms] == [0]
    ahead = LATER[["price"]][:H]
    other = PAST.assign(noise=-PAST["noise"])
    first, second = (model.predict(df, h=H, X_future=ahead)["y"] for df in (PAST, other))
    assert not np.allclose(first, second, rtol=1e-9)
    with pytest.raises(ValueError, match="not known ahead by itself"):
        make(known_ahead="price", effects={"noise": "lagged"}).fit(PAST)


def test_programs_are_of_networks_alone(model, tmp_path):
    with pytest.raises(ValueError, match="regression before it.*'price': 'none'"):
        export_torch(model, tmp_path / "program.pt2")


@pytest.mark.parametrize(
    ("name", "value"), [("scale", 0.0), ("coefficient", np.nan), ("last", None), ("unit", 7)]
)
def test_changed_arrays_are_refused(model, name, value, tmp_path):
    model.save(tmp_path / "model.tsrnn")
    header, arrays = read_file(tmp_path / "model.tsrnn")
    key = f"columns.{name}"
    if value is None:
        del arrays[key]
    else:
        arrays[key] = np.full_like(arrays[key], value)
    write_file(tmp_path / "model.tsrnn", header, arrays)
    with pytest.raises(DamagedFileError, match=name):
        load(tmp_path / "model.tsrnn")


def test_effects_without_their_fields_are_refused(model, tmp_path):
    model.save(tmp_path / "model.tsrnn")
    header, arrays = read_file(tmp_path / "model.tsrnn")
    del header["fitted"]["terms"]
    write_file(tmp_path / "model.tsrnn", header, arrays)
    with pytest.raises(DamagedFileError, match="terms"):
        load(tmp_path / "model.tsrnn")


def test_effects_are_curves_of_the_regression(model):
    curve = model.effect_curves().query("column == 'price' and kind == 'curve'")
    slopes = curve["effect"].diff() / curve["at"].diff()
    coef = model.summary().effects.set_index("effect of").loc["price", "coef"]
    np.testing.assert_allclose(slopes.dropna(), coef)
    alone = make(per_series=True, target=None).fit(rows(0, ROWS - 2 * H))
    with pytest.raises(ValueError, match=r"Take those of for_series"):
        alone.effect_curves()
    assert len(alone.for_series("s0").effect_curves())
