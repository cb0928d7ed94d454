"""Measures of accuracy against plain loops over rows."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from utilsforecast import losses as uf

from tsrnn.evaluation import compare

LEVELS = (52.5, 80.0, 95.0)
Z = {52.5: 0.7, 80.0: 1.3, 95.0: 2.0}


def suffix(level):
    return f"{level:g}"


def panel(n_series, n_windows, steps, models=("A", "B"), levels=(), missing=0.0, seed=0, kind=None):
    """Random forecasts, with the scales of the series."""
    rng = np.random.default_rng(seed)
    s, w, h = (i.ravel() for i in np.indices((n_series, n_windows, steps)))
    start = pd.Timestamp("2020-01-01")
    n = len(s)
    frame = pd.DataFrame(
        {
            "unique_id": np.array([f"s{i}" for i in range(n_series)])[s],
            "ds": start + pd.to_timedelta(w * steps + h + 1, unit="D"),
            "cutoff": start + pd.to_timedelta(w * steps, unit="D"),
            "y": rng.normal(size=n) * (1 + s),
        }
    )
    if kind == "variance":
        frame["y"] = frame["y"] ** 2
    for name in models:
        frame[name] = frame["y"] + rng.normal(size=n) * (1 + s)
        if kind == "variance":
            frame[name] = np.exp(rng.normal(size=n))
        for level in levels:
            frame[f"{name}-lo-{suffix(level)}"] = frame[name] - Z[level] * rng.uniform(0, 2, n)
            frame[f"{name}-hi-{suffix(level)}"] = frame[name] + Z[level] * rng.uniform(0, 2, n)
    frame.loc[rng.uniform(size=n) < missing, "y"] = np.nan
    frame.loc[0, "y"] = 1.0
    frame.attrs["backtest"] = {
        "h": steps,
        "kind": kind or "mean",
        "season_length": 7,
        "scale": {
            "unique_id": [f"s{i}" for i in range(n_series)],
            "mae": [1.5 + i for i in range(n_series)],
            "mse": [4.0 + i for i in range(n_series)],
        },
    }
    return frame.sample(frac=1, random_state=seed)


def with_steps(frame):
    order = frame.sort_values(["unique_id", "cutoff", "ds"])
    return order.assign(step=order.groupby(["unique_id", "cutoff"]).cumcount() + 1)


def point_measures(rows, name, scale):
    """Of rows of one series, by the definitions."""
    error = (rows["y"] - rows[name]).to_numpy()
    size = rows["y"].abs() + rows[name].abs()
    mae, rmse = np.mean(np.abs(error)), np.sqrt(np.mean(error**2))
    return {
        "MAE": mae,
        "RMSE": rmse,
        "MASE": mae / scale["mae"],
        "RMSSE": rmse / np.sqrt(scale["mse"]),
        "sMAPE": np.mean(200 * np.abs(error) / size),
    }


def interval_measures(rows, name, levels):
    y, found, pinball = rows["y"].to_numpy(), {}, []
    quantiles = [(0.5, rows[name].to_numpy())]
    for level in levels:
        lo, hi = (rows[f"{name}-{side}-{suffix(level)}"].to_numpy() for side in ("lo", "hi"))
        alpha = 1 - level / 100
        quantiles += [(alpha / 2, lo), (1 - alpha / 2, hi)]
        score = hi - lo + 2 / alpha * (np.maximum(lo - y, 0) + np.maximum(y - hi, 0))
        found[f"Winkler-{suffix(level)}"] = np.mean(score)
        found[f"coverage-{suffix(level)}"] = np.mean((lo <= y) & (y <= hi))
        found[f"width-{suffix(level)}"] = np.mean(hi - lo)
    for q, value in quantiles:
        pinball.append(np.mean(np.where(y >= value, q * (y - value), (1 - q) * (value - y))))
    return found | {"pinball": np.mean(pinball), "CRPS": 2 * np.mean(pinball)}


def expected(rows, name, frame, levels):
    """Means over the series of their measures."""
    facts = frame.attrs["backtest"]["scale"]
    found = []
    for i, series in enumerate(facts["unique_id"]):
        own = rows[(rows["unique_id"] == series) & rows["y"].notna()]
        if len(own):
            scale = {key: facts[key][i] for key in ("mae", "mse")}
            found.append(point_measures(own, name, scale) | (
                interval_measures(own, name, levels) if levels else {}
            ))  # fmt: skip
    return pd.DataFrame(found).mean()


def assert_equal(actual, wanted):
    actual = actual[wanted.index].astype(float)
    np.testing.assert_allclose(actual, wanted, rtol=1e-12, atol=1e-12)


@settings(deadline=None, max_examples=30)
@given(
    n_series=st.integers(1, 4),
    n_windows=st.integers(1, 4),
    steps=st.integers(1, 5),
    n_models=st.integers(1, 4),
    n_levels=st.integers(0, 3),
    missing=st.sampled_from([0.0, 0.3, 0.7]),
    seed=st.integers(0, 10**6),
)
def test_all_tables_agree_with_loops(n_series, n_windows, steps, n_models, n_levels, missing, seed):
    models, levels = [f"M{i}" for i in range(n_models)], LEVELS[:n_levels]
    frame = panel(n_series, n_windows, steps, models, levels, missing, seed)
    result, rows = compare(frame, n_boot=20), with_steps(frame)
    known = rows[rows["y"].notna()]
    for name in models:
        assert_equal(result.accuracy.loc[name], expected(rows, name, frame, levels))
        for step in known["step"].unique():
            here = rows[rows["step"] == step]
            wanted = expected(here, name, frame, levels)
            assert_equal(result.by_step.loc[(step, name)], wanted)
        for series in known["unique_id"].unique():
            here = rows[rows["unique_id"] == series]
            wanted = expected(here, name, frame, levels)
            assert_equal(result.by_series.loc[(series, name)], wanted)
    assert len(result.by_step) == n_models * known["step"].nunique()
    assert len(result.by_series) == n_models * known["unique_id"].nunique()


def test_measures_are_those_of_utilsforecast():
    frame = panel(3, 4, 3, levels=(80.0,), missing=0.3)
    table, rows = compare(frame, n_boot=20).by_series, frame.dropna().drop(columns="cutoff")
    for key, loss, factor in [("MAE", uf.mae, 1), ("RMSE", uf.rmse, 1), ("sMAPE", uf.smape, 200)]:
        wanted = factor * loss(rows, ["A", "B"]).set_index("unique_id")
        found = table[key].unstack("model")[["A", "B"]]
        np.testing.assert_allclose(found, wanted[["A", "B"]], rtol=1e-14)
    wanted = uf.coverage(rows, ["A", "B"], 80).set_index("unique_id")
    found = table["coverage-80"].unstack("model")[["A", "B"]]
    np.testing.assert_allclose(found, wanted[["A", "B"]], rtol=1e-14)
    quantiles = {0.1: "{}-lo-80", 0.5: "{}", 0.9: "{}-hi-80"}
    pinball = [
        uf.quantile_loss(rows, {m: column.format(m) for m in "AB"}, q).set_index("unique_id")
        for q, column in quantiles.items()
    ]
    found = table["pinball"].unstack("model")[["A", "B"]]
    np.testing.assert_allclose(found, sum(p[["A", "B"]] for p in pinball) / 3, rtol=1e-14)


def test_owa_is_the_mean_of_the_ratios_to_the_benchmark():
    table = compare(panel(3, 2, 4, ("A", "Naive2"))).accuracy
    wanted = (table["sMAPE"] / table.loc["Naive2", "sMAPE"]) / 2
    wanted += (table["MASE"] / table.loc["Naive2", "MASE"]) / 2
    np.testing.assert_allclose(table["OWA"], wanted, rtol=1e-14)
    assert table.loc["Naive2", "OWA"] == 1


def test_owa_names_the_model_it_lacks():
    result = compare(panel(2, 2, 2), owa_benchmark="Snaive")
    assert "OWA" not in result.accuracy
    assert "OWA is left out: it needs a model named 'Snaive'; see owa_benchmark=." in result.notes


def test_tables_have_the_order_of_accuracy_and_the_documented_columns():
    frame = panel(3, 3, 2, ("Bad", "Good"), (80.0,))
    frame["Good"] = frame["y"] + 0.01
    result = compare(frame)
    assert list(result.accuracy.index) == result.models == ["Good", "Bad"]
    assert list(result.accuracy.columns) == [
        "MAE", "RMSE", "MASE", "RMSSE", "sMAPE", "pinball", "CRPS", "Winkler-80", "coverage-80",
        "width-80", "MSIS-80",
    ]  # fmt: skip
    assert result.frame is result.accuracy
    assert result.by_step.index.names == ["step", "model"]
    assert list(result.by_step.loc[1].index) == ["Good", "Bad"]
    assert result.by_series.index.names == ["unique_id", "model"]


def test_variances_have_their_own_measures():
    frame = panel(2, 30, 2, ("A", "B"), kind="variance")
    result = compare(frame)
    assert (result.kind, result.loss, result.measure) == ("variance", "qlike", "QLIKE")
    assert list(result.accuracy.columns) == ["QLIKE", "MSE", "MAE"]
    for name in ("A", "B"):
        loss = np.log(frame[name]) + frame["y"] / frame[name]
        wanted = loss.groupby(frame["unique_id"]).mean().mean()
        assert result.accuracy.loc[name, "QLIKE"] == pytest.approx(wanted, rel=1e-12)
        wanted = ((frame["y"] - frame[name]) ** 2).groupby(frame["unique_id"]).mean().mean()
        assert result.accuracy.loc[name, "MSE"] == pytest.approx(wanted, rel=1e-12)
    assert not any("MASE" in note or "OWA" in note for note in result.notes)
    assert compare(frame, loss="squared").measure == "MSE"


def test_train_gives_the_scales_that_attrs_would():
    frame = panel(2, 3, 2)
    frame.attrs = {}
    rng = np.random.default_rng(5)
    days = pd.date_range("2019-12-01", "2020-01-05")
    train = pd.concat(
        pd.DataFrame({"unique_id": f"s{i}", "ds": days, "y": rng.normal(size=len(days))})
        for i in range(2)
    ).sample(frac=1, random_state=0)
    result = compare(frame, train=train, season_length=7)
    for series in ("s0", "s1"):
        own = train[(train["unique_id"] == series) & (train["ds"] <= "2020-01-01")]
        y = own.sort_values("ds")["y"].to_numpy()
        scale = np.mean(np.abs(y[7:] - y[:-7]))
        row = result.by_series.loc[(series, "A")]
        assert row["MASE"] == pytest.approx(row["MAE"] / scale, rel=1e-12)
        scale = np.sqrt(np.mean((y[7:] - y[:-7]) ** 2))
        assert row["RMSSE"] == pytest.approx(row["RMSE"] / scale, rel=1e-12)


def test_without_scales_the_notes_say_what_is_missing():
    frame = panel(2, 3, 2)
    frame.attrs = {}
    result = compare(frame)
    assert list(result.accuracy.columns) == ["MAE", "RMSE", "sMAPE"]
    assert any("train=" in note and "MASE" in note for note in result.notes)


def test_series_of_scale_zero_are_left_out_of_scaled_measures_and_named():
    frame = panel(3, 2, 2)
    frame.attrs["backtest"]["scale"]["mae"][1] = 0.0
    result = compare(frame)
    table = result.by_series["MASE"].unstack("model")
    assert table.loc["s1"].isna().all()
    wanted = table.loc[["s0", "s2"]].mean()
    np.testing.assert_allclose(result.accuracy["MASE"], wanted[result.models], rtol=1e-14)
    assert any("1 series without a positive scale" in n and "s1" in n for n in result.notes)


def test_pinball_uses_the_levels_that_models_have_in_common():
    frame = panel(2, 3, 2, ("A", "B", "C"), (80.0,))
    both = panel(2, 3, 2, ("A", "B", "C"), (80.0, 95.0))
    frame["A-lo-95"], frame["A-hi-95"] = both["A-lo-95"], both["A-hi-95"]
    frame = frame.drop(columns=["C-lo-80", "C-hi-80"])
    result = compare(frame)
    for name in ("A", "B"):
        wanted = expected(with_steps(frame), name, frame, (80.0,))
        assert_equal(result.accuracy.loc[name], wanted)
    assert result.accuracy.loc["C", ["pinball", "CRPS", "Winkler-80"]].isna().all()
    assert np.isfinite(result.accuracy.loc["A", "Winkler-95"])
    assert np.isnan(result.accuracy.loc["B", "Winkler-95"])
    assert any("approximated from 3 quantiles" in note for note in result.notes)
    assert "No intervals: C." in result.notes


def test_rows_without_an_interval_are_left_out_of_the_measures_of_intervals_only():
    frame = panel(1, 6, 2, ("A", "B"), (80.0,))
    gone = frame.index[:3]
    frame.loc[gone, ["A-lo-80", "A-hi-80"]] = np.nan
    result = compare(frame)
    rest = with_steps(frame.drop(gone))
    wanted = pd.Series(interval_measures(rest, "B", (80.0,)))
    assert_equal(result.accuracy.loc["B"], wanted)
    everything = pd.Series(point_measures(frame, "B", {"mae": 1.5, "mse": 4.0}))
    assert_equal(result.accuracy.loc["B"], everything)
    assert any("3 rows in which a model lacks its 80% interval" in n for n in result.notes)


def test_crossing_ends_are_told():
    frame = panel(1, 6, 2, ("A", "B"), (80.0,))
    frame.loc[frame.index[:2], "A-lo-80"] = frame["A-hi-80"].max() + 1
    notes = compare(frame).notes
    assert any(n.startswith("A: the lower end of the 80%") and "2 rows" in n for n in notes)
