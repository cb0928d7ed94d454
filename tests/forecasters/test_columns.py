"""Columns beside the prior network: known relations, one forecast by all ways, refusals."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from tsrnn import ParaRNNForecaster, load
from tsrnn.contract import DamagedFileError, read_file, write_file
from tsrnn.datasets import load_co2
from tsrnn.forecasters import FittedPrior, FittedWithColumns

H = 6


def autoregression(n_rows, rng):
    rows = np.zeros(n_rows)
    for t in range(1, n_rows):
        rows[t] = 0.8 * rows[t - 1] + rng.standard_normal()
    return rows


def monthly(n_rows=60, seed=0, name=None):
    """Level, season and the effect of a price; `noise` has none."""
    rng = np.random.default_rng(seed)
    t = np.arange(n_rows)
    price, noise = autoregression(n_rows, rng), rng.standard_normal(n_rows)
    y = 50 + 4 * np.sin(2 * np.pi * t / 12) - 5 * price + 0.5 * rng.standard_normal(n_rows).cumsum()
    df = pd.DataFrame(
        {"y": y, "price": price, "noise": noise}, pd.date_range("2015", periods=n_rows, freq="MS")
    )
    if name is None:
        return df
    return df.rename_axis("ds").reset_index().assign(unique_id=name)


FRAME = monthly()
PAST, LATER = FRAME[: -2 * H], FRAME[-2 * H :]
AHEAD = LATER.drop(columns="y")
PANEL = pd.concat([monthly(60, seed, f"s{seed}") for seed in range(4)], ignore_index=True)
KNOWN = ["price", "noise"]


@pytest.fixture(scope="module")
def model():
    return ParaRNNForecaster(H, target="y", known_ahead=KNOWN).fit(PAST)


@pytest.fixture(scope="module")
def later_model():
    """With columns that are not known ahead, of which the last value is in y two rows later."""
    df = FRAME.assign(y=50 + 5 * FRAME["price"].shift(2).bfill() + 0.1 * FRAME["noise"])
    return ParaRNNForecaster(H, target="y").fit(df[: -2 * H]), df


RELATIONS = {
    "the column": lambda first, second: first,
    "the sum of both": lambda first, second: first + second,
    "the column two rows ago": lambda first, second: np.concatenate([first[:2], first[:-2]]),
    "the square": lambda first, second: first**2,
}


@pytest.mark.parametrize("noise", [0.0, 0.5])
@pytest.mark.parametrize("name", RELATIONS)
def test_plain_relations_are_learned(name, noise):
    rng = np.random.default_rng(7)
    n_rows, h = 200, 12
    first, second = autoregression(n_rows + h, rng), autoregression(n_rows + h, rng)
    true = RELATIONS[name](first, second)
    spread = true.std()
    y = true + noise * spread * rng.standard_normal(n_rows + h)
    days = pd.RangeIndex(n_rows + h)
    df = pd.DataFrame({"y": y, "a": first, "b": second}, days)
    model = ParaRNNForecaster(h, target="y", known_ahead=["a", "b"]).fit(df[:n_rows])
    forecast = model.predict(X_future=df[["a", "b"]][n_rows:])["y"].to_numpy()
    error = np.sqrt(np.mean((forecast - true[n_rows:]) ** 2)) / spread
    known = np.column_stack([np.ones(n_rows + h), first, second, true])
    least_squares = known @ np.linalg.lstsq(known[:n_rows], y[:n_rows], rcond=None)[0]
    of_truth = np.sqrt(np.mean((least_squares - true)[n_rows:] ** 2)) / spread
    assert error < 1.2 * of_truth + 0.05 * noise + 0.02


def test_columns_lower_the_error_and_intervals_cover():
    hits, errors, plain_errors = [], [], []
    for seed in range(12):
        df = monthly(66, seed)
        past, later = df[:-H], df[-H:]
        model = ParaRNNForecaster(H, target="y", known_ahead=KNOWN).fit(past)
        forecast = model.predict(X_future=later[KNOWN], level=[80])
        plain = ParaRNNForecaster(H).fit(past["y"]).predict()
        errors.append((forecast["y"] - later["y"]).abs().mean())
        plain_errors.append((plain - later["y"]).abs().mean())
        hits += ((later["y"] > forecast["y-lo-80"]) & (later["y"] < forecast["y-hi-80"])).tolist()
    assert np.mean(errors) < 0.4 * np.mean(plain_errors)
    assert 0.7 < np.mean(hits) < 0.97


def test_the_network_forecasts_what_columns_leave(model):
    assert isinstance(model.fitted_, FittedPrior)
    effects = model.summary().effects
    price = effects[effects["effect of"] == "price"]
    assert abs(price["coef"].item() + 5) < 3 * max(price["std err"].item(), 0.1)
    assert "Effects of columns" in str(model.summary())


def test_contributions_add_up(model):
    parts = model.contributions(X_future=AHEAD[:H])
    np.testing.assert_allclose(parts.sum(axis=1), model.predict(X_future=AHEAD[:H])["y"])
    names = ["level", "trend", "cycle", "season", "network", "price"]
    assert parts.columns[:6].tolist() == names


@pytest.mark.parametrize("factors", [False, True])
def test_contributions_of_a_panel_add_up(factors):
    df = PANEL.assign(y=np.exp(PANEL["y"] / 30)) if factors else PANEL
    model = ParaRNNForecaster(H, known_ahead=KNOWN).fit(df[df["ds"] < "2019"])
    assert model.fitted_.regression.effects.logarithms == factors
    ahead = df[df["ds"] >= "2019"].groupby("unique_id").head(H).drop(columns="y")
    forecast = model.predict(X_future=ahead).sort_values(["unique_id", "ds"])["ParaRNN"]
    parts = model.contributions(X_future=ahead)
    np.testing.assert_allclose(parts.sum(axis=1), forecast, rtol=1e-9)


def test_updates_are_rolling_origins(model):
    rolling = model.predict_rolling(LATER, h=H, level=[80])
    last = rolling[rolling["cutoff"] == rolling["cutoff"].max()].drop(columns="cutoff")
    new = ParaRNNForecaster(H, target="y", known_ahead=KNOWN).fit(PAST).update(LATER[:-H])
    expected = new.predict(X_future=AHEAD[-H:], level=[80])
    np.testing.assert_allclose(last.to_numpy(), expected.to_numpy(), rtol=1e-9)
    first = rolling[rolling["cutoff"] == rolling["cutoff"].min()].drop(columns="cutoff")
    expected = model.predict(X_future=AHEAD[:H], level=[80])
    np.testing.assert_allclose(first.to_numpy(), expected.to_numpy(), rtol=1e-9)


def test_rolling_origins_of_a_panel_of_unequal_lengths():
    cut = PANEL["ds"] >= "2019"
    drop = (PANEL["unique_id"] == "s1") & (PANEL["ds"] >= "2019-09")
    past, later = PANEL[~cut], PANEL[cut & ~drop]
    model = ParaRNNForecaster(H, known_ahead=KNOWN).fit(past)
    rolling = model.predict_rolling(later, h=H)
    for series, n_origins in (("s0", 7), ("s1", 3)):
        own = rolling[rolling["unique_id"] == series]
        assert own["cutoff"].nunique() == n_origins
        rows = later[later["unique_id"] == series]
        moved = ParaRNNForecaster(H, known_ahead=KNOWN).fit(past).update(rows[: n_origins - 1])
        ahead = rows[n_origins - 1 :][:H].drop(columns="y")
        expected = moved.predict(ids=[series], X_future=ahead)["ParaRNN"]
        last = own[own["cutoff"] == own["cutoff"].max()]["ParaRNN"]
        np.testing.assert_allclose(last.to_numpy(), expected.to_numpy(), rtol=1e-9)


@pytest.mark.parametrize("known", [KNOWN, None])
def test_files_forecast_alike(known, tmp_path):
    model = ParaRNNForecaster(H, target="y", known_ahead=known).fit(PAST)
    model.save(tmp_path / "m.tsrnn")
    other = load(tmp_path / "m.tsrnn")
    ahead = {} if known is None else {"X_future": AHEAD[:H]}
    pd.testing.assert_frame_equal(
        other.predict(level=[90], **ahead), model.predict(level=[90], **ahead)
    )
    model.update(LATER[:3])
    other.update(LATER[:3])
    ahead = {} if known is None else {"X_future": AHEAD[3 : 3 + H]}
    pd.testing.assert_frame_equal(other.predict(**ahead), model.predict(**ahead))


@pytest.mark.parametrize(
    "change",
    [
        lambda header: header["fitted"].pop("terms"),
        lambda header: header["fitted"]["terms"][0].update(column=9),
        lambda header: header["fitted"]["terms"][0].update(cycle="moon"),
        lambda header: header["fitted"]["terms"][0].update(lag=40),
        lambda header: header["fitted"].update(logarithms="yes"),
    ],
)
def test_changed_files_are_refused(model, change, tmp_path):
    path = tmp_path / "m.tsrnn"
    model.save(path)
    header, arrays = read_file(path)
    change(header)
    write_file(path, header, arrays)
    with pytest.raises(DamagedFileError):
        load(path)


def test_paths_have_the_quantiles_of_the_intervals(model):
    paths = model.sample_paths(4000, H, X_future=AHEAD[:H], random_state=0)
    draws = paths["y"].to_numpy().reshape(-1, H)
    interval = model.predict(X_future=AHEAD[:H], level=[80])
    spread = (interval["y-hi-80"] - interval["y-lo-80"]).to_numpy()
    for end, share in (("y-lo-80", 0.1), ("y-hi-80", 0.9)):
        quantile = np.quantile(draws, share, axis=0)
        assert np.abs((quantile - interval[end].to_numpy()) / spread).max() < 0.06


def test_columns_not_known_ahead_act_through_their_past(later_model):
    model, df = later_model
    forecast = model.predict()["y"].to_numpy()
    true = df["y"][-2 * H :][:H].to_numpy()
    # Two steps are known from the last rows of the column.
    assert np.abs(forecast[:2] - true[:2]).max() < 1.0
    assert all(term.lag or term.decay for term in model.fitted_.regression.effects.terms)
    rolling = model.predict_rolling(df[-2 * H :], h=H)
    expected = model.update(df[-2 * H : -H]).predict()["y"]
    last = rolling[rolling["cutoff"] == rolling["cutoff"].max()]["y"]
    np.testing.assert_allclose(last.to_numpy(), expected.to_numpy(), rtol=1e-9)


def test_a_column_that_is_constant_so_far_has_no_effect():
    df = PAST.assign(law=0.0)
    ahead = AHEAD[:H].assign(law=1.0)
    model = ParaRNNForecaster(H, target="y", known_ahead=[*KNOWN, "law"]).fit(df)
    plain = ParaRNNForecaster(H, target="y", known_ahead=KNOWN).fit(PAST)
    with_law = model.predict(X_future=ahead)["y"].to_numpy()
    np.testing.assert_allclose(with_law, plain.predict(X_future=AHEAD[:H])["y"].to_numpy())


def test_static_columns_say_nothing_within_a_series():
    sized = PANEL.assign(size=PANEL["unique_id"].str[1:].astype(float))
    past, ahead = sized[sized["ds"] < "2019"], sized[sized["ds"] >= "2019"]
    ahead = ahead.groupby("unique_id").head(H).drop(columns=["y", "size"])
    with_size = ParaRNNForecaster(H, known_ahead=KNOWN, static="size").fit(past)
    without = ParaRNNForecaster(H, known_ahead=KNOWN).fit(past.drop(columns="size"))
    pd.testing.assert_frame_equal(
        with_size.predict(X_future=ahead), without.predict(X_future=ahead)
    )


def test_effects_by_hand(model):
    options = {"target": "y", "known_ahead": KNOWN}
    none = ParaRNNForecaster(H, effects={"price": "none", "noise": "none"}, **options).fit(PAST)
    plain = ParaRNNForecaster(H).fit(PAST["y"]).predict()
    np.testing.assert_allclose(none.predict(X_future=AHEAD[:H])["y"], plain)
    forced = ParaRNNForecaster(H, effects={"noise": "linear"}, **options).fit(PAST)
    assert "noise" in forced.summary().effects["effect of"].tolist()
    smooth = ParaRNNForecaster(H, effects={"price": "smooth"}, **options).fit(PAST)
    assert "price, curve" in smooth.summary().effects["effect of"].tolist()
    with pytest.raises(ValueError, match="which are"):
        ParaRNNForecaster(H, effects={"prize": "linear"}, **options).fit(PAST)


def test_a_new_series_has_the_effects_of_the_mean_one():
    past = PANEL[PANEL["ds"] < "2019"]
    model = ParaRNNForecaster(H, known_ahead=KNOWN).fit(past[past["unique_id"] != "s3"])
    new = past[past["unique_id"] == "s3"]
    ahead = PANEL[(PANEL["unique_id"] == "s3") & (PANEL["ds"] >= "2019")][:H]
    forecast = model.predict(X=new, X_future=ahead.drop(columns="y"))["ParaRNN"]
    own = ParaRNNForecaster(H).fit(new[["unique_id", "ds", "y"]]).predict()["ParaRNN"]
    error = np.abs(forecast.to_numpy() - ahead["y"].to_numpy()).mean()
    # In multiples of its own mean change, which the rows tell to a few percent.
    assert error < np.abs(own.to_numpy() - ahead["y"].to_numpy()).mean()


@pytest.mark.slow
def test_hours_have_their_week_and_the_weather_by_hour():
    rng = np.random.default_rng(0)
    n_rows, h = 24 * 7 * 10, 24
    index = pd.date_range("2024-01-01", periods=n_rows + h, freq="h")
    hour, weekend = index.hour.to_numpy(), index.day_of_week.to_numpy() >= 5
    weather = 15 + 8 * np.sin(2 * np.pi * (hour - 9) / 24) + 3 * rng.standard_normal(1).cumsum()
    weather = weather + np.convolve(rng.standard_normal(n_rows + h), np.ones(24) / 5, "same")
    heat = np.maximum(weather - 18, 0) * (1 + np.sin(2 * np.pi * hour / 24))
    y = np.exp(5 + 0.3 * weekend + 0.05 * heat + 0.02 * rng.standard_normal(n_rows + h))
    df = pd.DataFrame({"y": y, "weather": weather}, index)
    model = ParaRNNForecaster(h, target="y", known_ahead="weather").fit(df[:n_rows])
    labels = model.summary().effects["effect of"].tolist()
    assert "hour of week" in labels
    assert any("by hour" in label for label in labels)
    forecast = model.predict(X_future=df[["weather"]][n_rows:])["y"]
    error = np.abs(np.log(forecast / df["y"][n_rows:])).mean()
    assert error < 0.03  # .016 is the noise


def test_a_network_of_ones_own_is_trained_where_it_is_asked_for():
    small = {"hidden_size": 4, "max_epochs": 1, "target": "y", "known_ahead": KNOWN}
    assert isinstance(ParaRNNForecaster(H, **small).fit(PAST).fitted_, FittedWithColumns)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda ahead: ahead.drop(columns="price"), "price"),
        (lambda ahead: ahead[:-1], "missing are"),
        (lambda ahead: ahead.assign(price=np.inf), "infinite"),
        (lambda ahead: ahead.assign(price="dear"), "price"),
    ],
)
def test_wrong_columns_ahead_are_named(model, change, said):
    with pytest.raises((ValueError, TypeError), match=said):
        model.predict(X_future=change(AHEAD[:H]))


def test_columns_ahead_in_another_order_and_dtype(model):
    usual = model.predict(X_future=AHEAD[:H])
    other = AHEAD[:H][["noise", "price"]].iloc[::-1]
    pd.testing.assert_frame_equal(model.predict(X_future=other), usual)


@pytest.mark.parametrize("n_rows", [3, 4, 8, 20])
def test_very_short_series_with_columns_are_answered(n_rows):
    model = ParaRNNForecaster(H, target="y", known_ahead=KNOWN).fit(FRAME[:n_rows])
    forecast = model.predict(X_future=FRAME[KNOWN][n_rows : n_rows + H], level=[80])
    assert np.isfinite(forecast.to_numpy()).all()
    assert (forecast["y-lo-80"] <= forecast["y"]).all()


@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize("value", [5.0, 0.0])
def test_a_constant_series_stays_as_it_is(alone, value):
    past, later = PANEL[PANEL["ds"] < "2019"], PANEL[PANEL["ds"] >= "2019"]
    constant = past["unique_id"] == "s1"
    past = past.assign(y=past["y"].where(~constant, value))
    past = past[constant] if alone else past
    ahead = later[later["unique_id"].isin(past["unique_id"])].groupby("unique_id").head(H)
    model = ParaRNNForecaster(H, known_ahead=KNOWN).fit(past)
    forecast = model.predict(X_future=ahead.drop(columns="y")).set_index("unique_id")["ParaRNN"]
    np.testing.assert_allclose(forecast["s1"], value)
    if not alone:
        error = np.abs(forecast["s0"].to_numpy() - ahead["y"].to_numpy()[:H]).mean()
        assert error < 2.5


def test_columns_far_from_those_of_the_past_do_not_overflow():
    df = FRAME.assign(y=np.exp(FRAME["y"] / 30))
    model = ParaRNNForecaster(H, target="y", known_ahead=KNOWN).fit(df[: -2 * H])
    assert model.fitted_.regression.effects.logarithms
    for size in (1e6, -1e6):
        forecast = model.predict(X_future=AHEAD[:H].assign(price=size))
        assert np.isfinite(forecast.to_numpy()).all()


@pytest.mark.slow
def test_the_last_of_many_columns_of_hours_has_its_effect():
    rng = np.random.default_rng(0)
    n_rows, h, k = 24 * 40, 24, 12
    index = pd.date_range("2024-01-01", periods=n_rows + h, freq="h")
    rows = rng.standard_normal((n_rows + h, k))
    df = pd.DataFrame(rows, index, [f"x{i}" for i in range(k)])
    df["y"] = 10 + 3 * df["x11"] + 0.3 * rng.standard_normal(n_rows + h)
    names = [f"x{i}" for i in range(k)]
    model = ParaRNNForecaster(h, target="y", known_ahead=names).fit(df[:n_rows])
    forecast = model.predict(X_future=df[names][n_rows:])["y"]
    assert (forecast - df["y"][n_rows:]).abs().mean() < 0.5


def test_units_of_a_new_series_do_not_matter():
    # Series that are alike in multiples of their changes.
    unit = 3.0 ** PANEL["unique_id"].str[1:].astype(int)
    past = PANEL.assign(y=unit * (PANEL["y"] - 60))[PANEL["ds"] < "2019"]
    model = ParaRNNForecaster(H, known_ahead=KNOWN).fit(past[past["unique_id"] != "s3"])
    assert model.fitted_.regression.effects.alike == "changes"
    ahead = PANEL[(PANEL["unique_id"] == "s3") & (PANEL["ds"] >= "2019")][:H].drop(columns="y")
    new = past[past["unique_id"] == "s3"]
    widths = []
    for size in (1.0, 1e-3, 1e3):
        given = new.assign(y=size * new["y"])
        forecast = model.predict(X=given, X_future=ahead, level=[80]).iloc[:, 2:] / size
        widths.append((forecast["ParaRNN-hi-80"] - forecast["ParaRNN-lo-80"]).to_numpy())
    np.testing.assert_allclose(widths[1], widths[0], rtol=1e-6)
    np.testing.assert_allclose(widths[2], widths[0], rtol=1e-6)


def test_shared_coefficients_have_errors():
    rng = np.random.default_rng(0)
    parts = []
    for i in range(20):
        x = rng.standard_normal(30)
        y = 2 * x + 2 * rng.standard_normal(30)
        parts.append(pd.DataFrame({"unique_id": i, "ds": range(30), "y": y, "x": x}))
    table = ParaRNNForecaster(H, known_ahead="x").fit(pd.concat(parts)).summary().effects
    assert 0.03 < table["std err"].item() < 0.5
    assert abs(table["coef"].item() - 2) < 0.3


def test_a_history_of_fewer_rows_is_forecast_from_these():
    z = np.arange(40.0)
    df = pd.DataFrame(
        {"y": 5 + 2 * np.concatenate([[0.0], z[:-1]]), "z": z},
        pd.date_range("2020", periods=40, freq="MS"),
    )
    model = ParaRNNForecaster(H, target="y").fit(df)
    ahead = model.fitted_.exog_ahead(model.state_, H, None)[0, :, 0]
    if model.fitted_.regression.later:
        assert np.abs(ahead - (40 + np.arange(H))).max() < 1.0
    assert np.abs(model.predict()["y"].to_numpy() - (5 + 2 * (39 + np.arange(H)))).max() < 3.0


def test_columns_named_as_other_parts_are_told_apart():
    df = PAST.rename(columns={"price": "network"})
    model = ParaRNNForecaster(H, target="y", known_ahead=["network", "noise"]).fit(df)
    ahead = AHEAD[:H].rename(columns={"price": "network"})
    parts = model.contributions(X_future=ahead)
    assert "network (column)" in parts.columns
    np.testing.assert_allclose(parts.sum(axis=1), model.predict(X_future=ahead)["y"])


def test_effects_of_columns_not_known_ahead_are_late():
    model = ParaRNNForecaster(H, target="y", effects={"price": "linear"})
    with pytest.raises(ValueError, match="not known ahead"):
        model.fit(PAST)
    with pytest.raises(TypeError, match="effects must map"):
        ParaRNNForecaster(H, target="y", known_ahead=KNOWN, effects={"price": 5}).fit(PAST)


def test_columns_too_large_for_a_curve_are_refused():
    df = FRAME.assign(y=FRAME["price"] ** 2)
    model = ParaRNNForecaster(H, target="y", known_ahead=KNOWN).fit(df[: -2 * H])
    assert any(term.knots for term in model.fitted_.regression.effects.terms)
    with pytest.raises(ValueError, match="whose effects are finite"):
        model.predict(X_future=AHEAD[:H].assign(price=1e200))


@pytest.mark.parametrize(
    ("name", "value"),
    [("scale", 0.0), ("coefficient", np.nan), ("widening", -1.0), ("unit", 7), ("size", 0.0)],
)
def test_changed_arrays_are_refused(model, name, value, tmp_path):
    path = tmp_path / "m.tsrnn"
    model.save(path)
    header, arrays = read_file(path)
    array = arrays[f"columns.{name}"].copy()
    array[...] = value
    write_file(path, header, arrays | {f"columns.{name}": array})
    with pytest.raises(DamagedFileError, match=name):
        load(path)


def gaps(df, share, seed=3, columns=("y", "price", "noise")):
    rng = np.random.default_rng(seed)
    hidden = rng.random((len(df), len(columns))) < share
    return df.assign(**{name: df[name].mask(hidden[:, j]) for j, name in enumerate(columns)})


@pytest.mark.parametrize("share", [0.05, 0.2])
def test_missing_values_of_columns_and_target_are_skipped(share, model):
    kept = ParaRNNForecaster(H, target="y", known_ahead=KNOWN, missing="keep")
    effects = kept.fit(gaps(PAST, share)).summary().effects.set_index("effect of")
    price = effects.loc["price"]
    assert abs(price["coef"] + 5) < 4 * price["std err"] + 0.1
    # Without missing values the argument changes nothing.
    whole = kept.fit(PAST).predict(X_future=AHEAD[:H], level=80)
    pd.testing.assert_frame_equal(whole, model.predict(X_future=AHEAD[:H], level=80))


def test_rows_that_lack_a_column_are_rows_that_lack_the_target():
    df = gaps(PAST.assign(y=PAST["y"] + 4 * PAST["noise"]), 0.15, columns=("noise",))
    by_hand = {"noise": "linear", "price": "none"}
    make = ParaRNNForecaster(H, target="y", known_ahead=KNOWN, missing="keep", effects=by_hand)
    ours = make.fit(df).predict(X_future=AHEAD[:H], level=80)
    filled = df.assign(y=df["y"].where(df["noise"].notna()), noise=df["noise"].ffill().bfill())
    # The mean and spread of the column differ, and with them the prior of its coefficient.
    theirs = make.fit(filled).predict(X_future=AHEAD[:H], level=80)
    np.testing.assert_allclose(ours, theirs, rtol=0.01)


@pytest.mark.parametrize("at_end", [0, 3])
def test_missing_rows_at_the_ends_are_further_steps(at_end):
    y = FRAME["y"]
    end = len(y) - at_end
    gappy = y.where((np.arange(len(y)) >= 4) & (np.arange(len(y)) < end))
    ours = ParaRNNForecaster(H, missing="keep").fit(gappy).predict(level=80)
    alone = ParaRNNForecaster(H, missing="keep").fit(y[4:end])
    expected = alone.predict(H + at_end, level=80)[at_end:]
    pd.testing.assert_frame_equal(ours, expected, rtol=1e-9, check_freq=False)
    if at_end:
        moved = alone.update(gappy[end:]).predict(level=80)
        pd.testing.assert_frame_equal(moved, expected, rtol=1e-9, check_freq=False)


def test_updates_over_missing_values_are_rolling_origins(tmp_path):
    past = gaps(PAST, 0.15)
    later = LATER.assign(y=LATER["y"].mask(np.arange(2 * H) == 3))
    model = ParaRNNForecaster(H, target="y", known_ahead=KNOWN, missing="keep").fit(past)
    model.save(tmp_path / "model.tsrnn")
    rolling = model.predict_rolling(later, h=H, level=[80])
    last = rolling[rolling["cutoff"] == rolling["cutoff"].max()].drop(columns="cutoff")
    moved = load(tmp_path / "model.tsrnn").update(later[:-H])
    expected = moved.predict(X_future=AHEAD[-H:], level=[80])
    np.testing.assert_allclose(last.to_numpy(), expected.to_numpy(), rtol=1e-9)


def test_a_lag_of_a_missing_value_is_that_of_the_mean():
    df = FRAME.assign(y=50 + 5 * FRAME["price"].shift(2).bfill() + 0.1 * FRAME["noise"])[: -2 * H]
    hidden = df.assign(price=df["price"].mask(np.arange(len(df)) >= len(df) - 1))
    ours = ParaRNNForecaster(H, target="y", missing="keep").fit(hidden)
    labels = ours.summary().effects["effect of"].tolist()
    assert labels == ["price, lag 2"]
    forecast = ours.predict(3)["y"]
    # The second step needs the value that is missing, the first one does not.
    assert abs(forecast.iloc[0] - 50 - 5 * df["price"].iloc[-2]) < 1
    assert abs(forecast.iloc[1] - 50 - 5 * df["price"].mean()) < 3


def test_columns_that_are_rarely_there_are_left_out():
    df = gaps(PAST, 0.8, columns=("noise",))
    with pytest.warns(UserWarning, match=r"\['noise'\] are missing in too many.* a third"):
        model = ParaRNNForecaster(H, target="y", known_ahead=KNOWN, missing="keep").fit(df)
    assert model.summary().effects["effect of"].tolist() == ["price"]


def test_a_variance_that_rounding_made_negative_is_zero():
    columns = ParaRNNForecaster(H, target="y", known_ahead=KNOWN).fit(PAST)
    fitted, state = columns.fitted_.regression, columns.state_.columns
    wrong = replace(fitted.effects, covariance=0 * fitted.effects.covariance - 1e-20)
    ahead = np.ones((1, H, wrong.scale.size))
    assert (replace(fitted, effects=wrong).variances(state, ahead) == 0).all()


@pytest.mark.parametrize(("lag", "share"), [(0, 0.25), (1, 0.25), (0, 0.35)])
def test_effects_are_found_where_few_rows_have_all_lags(lag, share):
    rng = np.random.default_rng(0)
    columns = pd.DataFrame(rng.normal(size=(100, 2)), columns=KNOWN)
    frame = columns.assign(y=20 + 3 * columns["price"].shift(lag).bfill() + rng.normal(size=100))
    frame = frame.mask((rng.random(frame.shape) < share) & (frame.columns != "y"))
    whole = frame[KNOWN].notna().all(axis=1).rolling(7).sum() == 7
    assert whole.sum() < 5
    model = ParaRNNForecaster(H, target="y", known_ahead=KNOWN, missing="keep").fit(frame)
    effects = model.summary().effects.set_index("effect of")["coef"]
    assert effects["price, lag 1" if lag else "price"] == pytest.approx(3, abs=0.5)
    assert (effects.abs() > 1).sum() == 1


@pytest.mark.parametrize("step", ["MS", "h"])
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_series_that_lacks_a_column_is_named(step):
    parts = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        ds = pd.date_range("2020", periods=80, freq=step)
        price = rng.normal(size=80)
        part = {"unique_id": f"s{seed}", "ds": ds, "y": price + rng.normal(size=80)}
        parts.append(pd.DataFrame(part | {"price": price if seed != 1 else np.nan}))
    make = ParaRNNForecaster(H, known_ahead="price", missing="keep")
    with pytest.raises(ValueError, match=r"'s1'.*observed with all columns.*fill in the columns"):
        make.fit(pd.concat(parts))


def test_what_cannot_be_forecast_over_missing_values_is_named():
    make = ParaRNNForecaster(H, target="y", known_ahead=KNOWN, missing="keep")
    model = make.fit(PAST)
    with pytest.raises(ValueError, match="'price' of X_future must have no missing"):
        model.predict(X_future=AHEAD[:H].mask(AHEAD[:H]["price"] > 0))
    later = LATER.assign(price=LATER["price"].mask(np.arange(2 * H) == H))
    with pytest.raises(ValueError, match=r"the columns \['price'\] have missing ones"):
        model.predict_rolling(later, h=H)
    with pytest.raises(ValueError, match="none of them is observed"):
        model.predict(X=LATER.assign(y=np.nan), X_future=AHEAD[-H:])
    few = PAST.assign(y=PAST["y"].where(np.arange(len(PAST)) < 2))
    with pytest.raises(ValueError, match="needs at least 3 observed rows of a series; there are 2"):
        make.fit(few)
    wide = PAST.assign(z=np.nan)
    with pytest.raises(ValueError, match="there are 0 of 'z'"):
        make.set_params(target=["y", "z"]).fit(wide)
    for others in ({"prior": None}, {"hidden_size": 8}):
        with pytest.raises(ValueError, match='missing="keep" is for the prior network'):
            ParaRNNForecaster(H, target="y", missing="keep", **others).fit(PAST)


def test_a_panel_with_gaps_forecasts_each_series_alike():
    rng = np.random.default_rng(5)
    hidden = (rng.random(len(PANEL)) < 0.1) & (PANEL["unique_id"] != "s2")
    df = PANEL.assign(y=PANEL["y"].mask(hidden))[["unique_id", "ds", "y"]]
    panel = ParaRNNForecaster(H, missing="keep", prior="only").fit(df).predict()
    for name, part in df.groupby("unique_id"):
        alone = ParaRNNForecaster(H, missing="keep", prior="only").fit(part).predict()
        np.testing.assert_allclose(
            panel[panel["unique_id"] == name]["ParaRNN"], alone["ParaRNN"], rtol=1e-9
        )
    # Rows that are not there are inserted, as missing ones.
    dropped = ParaRNNForecaster(H, missing="keep", prior="only").fit(df.dropna()).predict()
    np.testing.assert_allclose(dropped["ParaRNN"], panel["ParaRNN"], rtol=1e-9)


def test_the_right_ones_of_very_many_columns_are_found():
    rng = np.random.default_rng(4)
    n_rows, names = 72, [f"c{i}" for i in range(60)]
    columns = pd.DataFrame(rng.standard_normal((n_rows, 60)), columns=names)
    y = 20 + 3 * columns["c7"] - 2 * columns["c40"] + 0.3 * rng.standard_normal(n_rows)
    df = columns.assign(y=y)
    model = ParaRNNForecaster(H, target="y", known_ahead=names).fit(df[:-H])
    shares = model.summary().effects.groupby("effect of")["share"].sum()
    assert set(shares.nlargest(2).index) == {"c7", "c40"}
    error = model.predict(X_future=df[names][-H:])["y"] - df["y"][-H:]
    assert np.abs(error).mean() < 1.5


def test_a_column_without_any_value_has_no_effect():
    make = ParaRNNForecaster(H, target="y", known_ahead=KNOWN, missing="keep")
    empty = make.fit(PAST.assign(noise=np.nan)).predict(X_future=AHEAD[:H])
    without = ParaRNNForecaster(H, target="y", known_ahead="price").fit(PAST[["y", "price"]])
    pd.testing.assert_frame_equal(empty, without.predict(X_future=AHEAD[["price"]][:H]))


@pytest.mark.parametrize("value", [1e200, -1e300])
def test_columns_ahead_whose_effects_overflow_are_refused(model, value):
    with pytest.raises(ValueError, match="must be of a size whose effects are finite"):
        model.predict(X_future=AHEAD[:H].assign(price=value))


def weekly_co2():
    return load_co2()["1980":"1986"].iloc[:, 0].interpolate()


@pytest.mark.slow
def test_weeks_have_the_time_of_the_year_without_columns(tmp_path):
    y = weekly_co2()
    train, test = y[:-26], y[-26:]
    model = ParaRNNForecaster(26).fit(train)
    forecast = model.predict(level=80)
    # A season of 52 rows that the structural models have, of rows without dates.
    numbered = ParaRNNForecaster(26, season_length=52).fit(train.reset_index(drop=True))
    error, other = (
        np.abs(f["co2"].to_numpy() - test.to_numpy()).mean()
        for f in (forecast, numbered.predict(level=80))
    )
    assert error < 0.5 * other
    assert model.summary().effects["effect of"].tolist() == ["year"]
    parts = model.contributions()
    assert "calendar" in parts
    np.testing.assert_allclose(parts.sum(axis=1), forecast["co2"], rtol=1e-9)
    model.save(tmp_path / "model.tsrnn")
    moved = load(tmp_path / "model.tsrnn").update(test[:5])
    rolling = model.predict_rolling(test[:8], h=3)
    last = rolling[rolling["cutoff"] == rolling["cutoff"].max()]["co2"]
    np.testing.assert_allclose(moved.predict(3), last, rtol=1e-9)
    with pytest.raises(ValueError, match="columns with effects; this forecaster has none"):
        model.effect_curves()


def test_weeks_of_a_year_have_no_effect_of_the_calendar():
    assert ParaRNNForecaster(8).fit(weekly_co2()[:100]).fitted_.regression is None


@pytest.mark.parametrize("amplitude", [0, 3, 10, 30])
def test_the_time_of_the_year_of_days_is_found_whatever_its_size(amplitude):
    days = pd.date_range("2021-01-01", periods=860, freq="D")
    wave = 50 + amplitude * np.sin(2 * np.pi * days.day_of_year.to_numpy() / 365)
    y = pd.Series(wave + np.random.default_rng(0).standard_normal(860), days, name="y")
    model = ParaRNNForecaster(60, prior="only").fit(y[:800])
    assert (model.fitted_.regression is not None) == (amplitude > 0)
    assert np.abs(model.predict().to_numpy() - wave[800:]).mean() < 0.6
