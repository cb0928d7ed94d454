"""Components and effects of forecasters with the prior network: sums, regressions by hand."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

mpl.use("Agg")

import matplotlib.pyplot as plt

from tsrnn import ParaRNNForecaster, load
from tsrnn.datasets import load_elec_equip
from tsrnn.linear import ETS

H = 6


def monthly(n_rows=60, seed=0, name="s0"):
    """Level, season, the effect of a price now and a row later."""
    rng = np.random.default_rng(seed)
    t = np.arange(n_rows)
    price, noise = np.cumsum(rng.normal(size=n_rows)) / 2, rng.standard_normal(n_rows)
    late = np.concatenate([price[:1], price[:-1]])
    y = 50 + 4 * np.sin(2 * np.pi * t / 12) - 5 * price - 3 * late
    y += 0.5 * rng.standard_normal(n_rows).cumsum()
    ds = pd.date_range("2015", periods=n_rows, freq="MS")
    return pd.DataFrame({"unique_id": name, "ds": ds, "y": y, "price": price, "noise": noise})


FRAME = monthly().drop(columns="unique_id").set_index("ds")
PAST, LATER = FRAME[: -2 * H], FRAME[-2 * H :]
AHEAD = LATER[["price", "noise"]][:H]
PANEL = pd.concat([monthly(60 - 3 * seed, seed, f"s{seed}") for seed in range(4)])
KNOWN = ["price", "noise"]
STATES = ["level", "cycle", "season"]


@pytest.fixture(scope="module")
def model():
    return ParaRNNForecaster(H, target="y", known_ahead=KNOWN).fit(PAST)


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def panel_model(factors):
    df = PANEL.assign(y=np.exp(PANEL["y"] / 30)) if factors else PANEL
    past = df.groupby("unique_id").head(40)
    ahead = df.groupby("unique_id").nth(slice(40, 40 + H)).drop(columns="y")
    return ParaRNNForecaster(H, known_ahead=KNOWN).fit(past), past, ahead


def additive(frame):
    """Return the sum of the additive components of a frame, network included."""
    errors = [name for name in frame if str(name).endswith("-se")]
    others = ["unique_id", "ds", "time", "target", "data", "fit", "trend"]
    return frame.drop(columns=[*errors, *others], errors="ignore").sum(axis=1)


@pytest.mark.parametrize("factors", [False, True])
def test_components_add_up_to_data_and_forecast(factors):
    model, past, ahead = panel_model(factors)
    assert model.fitted_.regression.effects.logarithms == factors
    frame = model.components(X_future=ahead)
    np.testing.assert_allclose(additive(frame), frame["fit"], rtol=1e-9)
    seen = frame.dropna(subset="data")
    np.testing.assert_allclose(seen["data"], past.sort_values(["unique_id", "ds"])["y"])
    pd.testing.assert_series_equal(seen["ds"], past["ds"], check_index=False)
    forecast = model.predict(X_future=ahead)
    rows = frame[frame["data"].isna()]
    np.testing.assert_allclose(rows["fit"], forecast["ParaRNN"], rtol=1e-9)
    pd.testing.assert_series_equal(rows["ds"], forecast["ds"], check_index=False)
    parts = model.contributions(X_future=ahead)
    np.testing.assert_allclose(rows["level"], parts["level"] + parts["trend"])
    for name in ("cycle", "season", "network", "price"):
        np.testing.assert_allclose(rows[name], parts[name])


def test_effects_over_the_data_are_the_regression_by_hand(model):
    frame = model.components(X_future=AHEAD)
    table = model.summary().effects.set_index("effect of")
    rows = pd.concat([PAST, LATER[:H]])
    by_hand = 0.0
    for label, column in {"price": rows["price"], "price, lag 1": rows["price"].shift(1)}.items():
        column = column.bfill()  # as if the first row had always been there
        by_hand += table.loc[label, "coef"] * (column - column[: len(PAST)].mean())
    assert set(table.index) - {"noise"} == {"price", "price, lag 1"}
    np.testing.assert_allclose(frame["price"], by_hand, atol=1e-9)


def test_errors_ahead_are_those_of_the_coefficients(model):
    plain = ParaRNNForecaster(
        H, target="y", known_ahead=KNOWN, effects={"price": "linear", "noise": "none"}
    ).fit(PAST)
    row = plain.summary().effects.iloc[0]
    frame = plain.components(X_future=AHEAD)
    apart = np.abs(AHEAD["price"] - PAST["price"].mean())
    np.testing.assert_allclose(frame["price-se"][-H:], apart * row["std err"])
    assert frame["price-se"][:-H].isna().all()
    assert (frame[[f"{name}-se" for name in [*STATES, "trend"]]] > 0).all(axis=None)


def test_components_after_updates_and_files(model, tmp_path):
    whole = model.components(h=0, X=pd.concat([PAST, LATER[:3]]))
    model.save(tmp_path / "m.tsrnn")
    other = load(tmp_path / "m.tsrnn").update(LATER[:1]).update(LATER[1:3])
    pd.testing.assert_frame_equal(other.components(h=0), whole)
    pd.testing.assert_frame_equal(other.effect_curves(), model.effect_curves())


def test_long_series_have_the_rows_of_the_window():
    y = pd.Series(np.random.default_rng(0).normal(size=900), name="y")
    frame = ParaRNNForecaster(H, prior="only").fit(y).components()
    assert frame.iloc[:, 0].tolist() == list(range(900 - 112, 900 + H))
    np.testing.assert_array_equal(frame["data"][:-H], y[-112:])
    assert "season" not in frame


def test_components_of_columns_and_ids():
    wide = pd.DataFrame({"a": FRAME["y"], "b": 3 * FRAME["y"]})
    frame = ParaRNNForecaster(H).fit(wide).components()
    alone = ParaRNNForecaster(H).fit(wide["b"]).components()
    assert len(frame) == 2 * len(alone)
    of_b = frame[frame["target"] == "b"].drop(columns="target").reset_index(drop=True)
    pd.testing.assert_frame_equal(of_b, alone, check_exact=False, rtol=1e-6)
    model, _, ahead = panel_model(factors=False)
    whole = model.components(X_future=ahead)
    chosen = model.components(X_future=ahead, ids="s2")
    expected = whole[whole["unique_id"] == "s2"].reset_index(drop=True)
    pd.testing.assert_frame_equal(chosen, expected)


@pytest.mark.parametrize("factors", [False, True])
def test_missing_values(factors):
    df = FRAME.assign(y=np.exp(FRAME["y"] / 30)) if factors else FRAME
    past = df[: -2 * H].copy()
    past.iloc[[10, 11, 20, 47], 0] = np.nan
    past.iloc[30, 1] = np.nan
    model = ParaRNNForecaster(H, target="y", known_ahead=KNOWN, missing="keep").fit(past)
    frame = model.components(X_future=AHEAD).set_index("ds")
    assert "price" in frame
    seen, ahead = frame[: len(past)], frame[len(past) :]
    absent = past["y"].isna().to_numpy(copy=True)
    absent[[30, 31]] = True  # rows that need the missing price
    assert (seen["data"].isna() == absent).all()
    np.testing.assert_allclose(seen["data"][~absent], past["y"][~absent])
    np.testing.assert_allclose(ahead["fit"], model.predict(X_future=AHEAD)["y"])
    assert (seen["fit"].isna() == seen["price"].isna()).all()
    known = frame.dropna(subset="fit")
    np.testing.assert_allclose(additive(known), known["fit"])
    assert frame[STATES].notna().all(axis=None)
    axes = model.plot_components(X_future=AHEAD)
    (shaded,) = axes[0].patches
    assert round(shaded.get_width()) == (ahead.index[-1] - seen.index[-1]).days


INDEXES = {
    "hours over a change of clocks": pd.date_range(
        "2024-03-29", periods=60, freq="h", tz="Europe/Vienna"
    ),
    "periods": pd.period_range("2001-01", periods=60, freq="M"),
    "numbers": pd.RangeIndex(60),
    "business days": pd.date_range("2024-01-01", periods=60, freq="B"),
    "weeks": pd.date_range("2020-01-01", periods=60, freq="W-SUN"),
    "digits": pd.Index(pd.date_range("2024-01-01", periods=60).strftime("%Y%m%d").astype(int)),
}


@pytest.mark.parametrize("name", INDEXES)
def test_times_are_those_of_data_and_forecast(name):
    index = INDEXES[name]
    y = pd.Series(FRAME["y"].to_numpy(), index, name="y")
    model = ParaRNNForecaster(H).fit(y)
    times, forecast = pd.Index(model.components().iloc[:, 0]), model.predict()
    assert times[:-H].tolist() == index.tolist()
    assert times[-H:].tolist() == forecast.index.tolist()
    drawn = model.plot_components()[0].get_lines()[0].get_xdata()
    dates = name not in ("numbers",)
    assert (abs(drawn[0]) > 3000) == dates  # days since 1970


def test_a_forecaster_without_columns():
    model = ParaRNNForecaster(24).fit(load_elec_equip())
    parts = model.contributions()
    assert parts.columns.tolist() == ["level", "trend", "cycle", "season", "network"]
    np.testing.assert_allclose(parts.sum(axis=1), model.predict().iloc[:, 0], rtol=1e-12)
    assert abs(parts["season"][:12].mean()) < 0.02 * parts["season"].std()
    with pytest.raises(ValueError, match="columns with effects; this forecaster has none"):
        model.effect_curves()


@pytest.mark.parametrize("name", ["level", "season-se", "noise-se", "target", "level (column)"])
def test_a_column_named_as_a_component_is_told_apart(name):
    names = {"price": name}
    model = ParaRNNForecaster(H, target="y", known_ahead=[name, "noise"])
    model.fit(PAST.rename(columns=names))
    frame = model.components(X_future=AHEAD.rename(columns=names))
    np.testing.assert_allclose(additive(frame), frame["fit"])
    assert {"level", f"{name} (column)", f"{name} (column)-se"} <= set(frame)


def test_a_column_named_target_beside_several_targets():
    df = PAST.rename(columns={"price": "target"}).assign(z=2 * PAST["y"])
    model = ParaRNNForecaster(H, target=["y", "z"], known_ahead=["target", "noise"]).fit(df)
    frame = model.components(h=0)
    assert frame["target"].unique().tolist() == ["y", "z"]
    assert frame["target (column)"].notna().all()


def test_growth_without_weight_leaves_components_and_errors_finite(model):
    price = np.zeros(1000)
    times = pd.date_range(PAST.index[-1], periods=1001, freq="MS", name="ds")[1:]
    ahead = pd.DataFrame({"price": price, "noise": price}, times)
    last = model.components(h=1000, X_future=ahead).iloc[-1]
    width = model.predict(h=1000, X_future=ahead, level=80).iloc[-1]
    half = (width["y-hi-80"] - width["y-lo-80"]) / 2
    changes = PAST["y"].diff().abs().mean()
    assert abs(last["trend"]) < changes
    assert 0 < last["level-se"] < 20 * half


def test_curves_are_the_regression_by_hand(model):
    curves = model.effect_curves().set_index("column").loc["price"]
    table = model.summary().effects.set_index("effect of")
    now, late = table.loc["price", "coef"], table.loc["price, lag 1", "coef"]
    line = curves[curves["kind"] == "curve"]
    middle = PAST["price"].median()
    np.testing.assert_allclose(line["effect"], (now + late) * (line["at"] - middle), atol=1e-9)
    assert (line["at"].min(), line["at"].max()) == (PAST["price"].min(), PAST["price"].max())
    lags = curves[curves["kind"] == "lag"]
    np.testing.assert_allclose(lags["effect"], [now, late])
    errors = table.loc[["price", "price, lag 1"], "std err"]
    np.testing.assert_allclose(lags["se"], errors)
    sums = curves[curves["kind"] == "cumulated"]
    np.testing.assert_allclose(sums["effect"], [now, now + late])
    np.testing.assert_allclose(
        line["se"], sums["se"].iloc[-1] * np.abs(line["at"] - middle), atol=1e-9
    )
    marks = curves[curves["kind"] == "mark"]
    np.testing.assert_allclose(marks["at"], PAST["price"].quantile(np.arange(1, 20) / 20))


def test_factors_are_percents():
    model, *_ = panel_model(factors=True)
    curves = model.effect_curves()
    assert curves.attrs["units"] == "percent"
    table = model.summary().effects.set_index("effect of")["coef"]
    line = curves[(curves["kind"] == "curve") & (curves["column"] == "price")]
    slope = table[[label for label in table.index if label.startswith("price")]].sum()
    total = np.log1p(line["effect"] / 100)
    np.testing.assert_allclose(np.diff(total) / np.diff(line["at"]), slope, rtol=1e-6)


def test_curved_and_averaged_effects():
    rng = np.random.default_rng(0)
    heat, ads = rng.normal(size=(2, 300))
    stock = np.zeros(300)
    for t in range(1, 300):
        stock[t] = 0.6 * stock[t - 1] + 0.4 * ads[t - 1]
    y = 20 + heat**2 + 5 * stock + 0.1 * rng.standard_normal(300)
    df = pd.DataFrame({"y": y, "heat": heat, "ads": ads})
    model = ParaRNNForecaster(H, target="y", known_ahead=["heat", "ads"]).fit(df)
    curves = model.effect_curves()
    heat_curve = curves[(curves["column"] == "heat") & (curves["kind"] == "curve")]
    true = heat_curve["at"] ** 2 - df["heat"].median() ** 2
    assert np.abs(heat_curve["effect"] - true).max() < 0.3
    sums = curves[(curves["column"] == "ads") & (curves["kind"] == "cumulated")]
    np.testing.assert_allclose(sums["effect"], 5 * (1 - 0.6 ** np.arange(13)), atol=0.2)
    axes = model.plot_effects()
    assert [ax.get_xlabel() for ax in axes] == ["heat", "ads", "Lag of a change of ads by 1"]
    assert len(model.plot_effects("heat")) == 1


@pytest.mark.slow
def test_curves_by_the_hour():
    rng = np.random.default_rng(0)
    n_rows = 24 * 7 * 6
    index = pd.date_range("2024-01-01", periods=n_rows, freq="h")
    noon = index.hour.to_numpy() == 12
    heat = rng.uniform(-1, 1, n_rows)
    wave = 1 - np.cos(2 * np.pi * index.hour.to_numpy() / 24)
    df = pd.DataFrame({"y": 50 + 4 * wave * heat + 0.1 * rng.normal(size=n_rows), "heat": heat})
    model = ParaRNNForecaster(24, target="y", known_ahead="heat").fit(df.set_index(index))
    assert noon.any()
    curves = model.effect_curves()
    line = curves[(curves["of"] == "") & (curves["kind"] == "curve")]
    assert line["hour"].unique().tolist() == [0, 6, 12, 18]
    for hour, expected in ((0, 0), (6, 4), (12, 8), (18, 4)):
        at = line[line["hour"] == hour]
        assert abs(np.polyfit(at["at"], at["effect"], 1)[0] - expected) < 0.3
    texts = model.plot_effects()[0].get_legend().get_texts()
    assert [text.get_text() for text in texts] == ["0:00", "6:00", "12:00", "18:00"]


def test_pictures_show_components(model):
    axes = model.plot_components(X_future=AHEAD)
    labels = ["Data and fit", "Level", "Trend", "Cycle", "Season", "price"]
    assert [ax.get_ylabel() for ax in axes][:6] == labels
    frame = model.components(X_future=AHEAD)
    np.testing.assert_array_equal(axes[4].get_lines()[0].get_ydata(), frame["season"])
    np.testing.assert_array_equal(axes[0].get_lines()[1].get_ydata(), frame["fit"])
    few = model.plot_components(X_future=AHEAD, last=10)
    assert len(few[1].get_lines()[0].get_ydata()) == 10 + H
    alone = model.plot_components(h=0)
    assert len(alone[1].get_lines()[0].get_ydata()) == len(PAST)
    given = plt.figure().subplots(len(axes))
    assert model.plot_components(X_future=AHEAD, ax=given)[0] is given[0]


def test_pictures_of_a_panel_and_of_targets():
    model, _, ahead = panel_model(factors=False)
    assert model.plot_components(X_future=ahead)[0].get_title("right") == "s0"
    assert model.plot_components(X_future=ahead, series="s2")[0].get_title("right") == "s2"
    with pytest.raises(ValueError, match="s9"):
        model.plot_components(X_future=ahead, series="s9")
    wide = ParaRNNForecaster(H).fit(pd.DataFrame({"a": FRAME["y"], "b": 3 * FRAME["y"]}))
    lines = [wide.plot_components(target=name)[0].get_lines()[0].get_ydata() for name in "ab"]
    np.testing.assert_allclose(lines[1], 3 * lines[0])
    with pytest.raises(ValueError, match="target must be one of"):
        wide.plot_components(target="c")


def test_what_has_no_components_says_what_has(model):
    with pytest.raises(ValueError, match="of the 6 steps ahead"):
        model.components()
    with pytest.raises(ValueError, match="of the 3 steps ahead"):
        model.plot_components(h=3)
    for h in (-1, True, 1.5, "2"):
        with pytest.raises((TypeError, ValueError), match="h must be a positive integer"):
            model.components(h=h, X_future=AHEAD)
    with pytest.raises(ValueError, match="columns must name columns with effects"):
        model.plot_effects("prize")
    nothing = ParaRNNForecaster(
        H, target="y", known_ahead=KNOWN, effects=dict.fromkeys(KNOWN, "none")
    )
    with pytest.raises(ValueError, match="no effects to draw"):
        nothing.fit(PAST).plot_effects()
    trained = ParaRNNForecaster(H, prior=None, hidden_size=4, max_epochs=1).fit(PAST["y"])
    for method in ("components", "plot_components"):
        with pytest.raises(ValueError, match='prior="only"'):
            getattr(trained, method)()
    with pytest.raises(AttributeError, match="that have it are LEMForecaster, .*ParaRNNForecaster"):
        _ = ETS().plot_components
