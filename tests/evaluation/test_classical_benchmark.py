"""Parts and measures of the benchmarks on the M competitions against utilsforecast."""

import importlib.util
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from utilsforecast import losses as uf

from tsrnn import Combination
from tsrnn.baselines import Drift, Naive, SeasonalNaive

FOLDER = Path(__file__).parents[2] / "benchmarks"
SERIES = [("a", 40, "quarterly", 4, 8), ("b", 25, "quarterly", 4, 8), ("c", 31, "other", 1, 8)]


@pytest.fixture(scope="module")
def scripts():
    names = ("_competitions", "classical", "short_series", "classical_forecasts")
    folders = [str(FOLDER), str(FOLDER / "prior")]
    sys.path[:0] = folders  # they import each other by their names alone
    try:
        modules = [importlib.import_module(name) for name in names]
    finally:
        for folder in folders:
            sys.path.remove(folder)
        for name in names:
            sys.modules.pop(name, None)
    return SimpleNamespace(**dict(zip(names, modules, strict=True)))


@pytest.fixture(scope="module")
def competitions(scripts):
    return scripts._competitions


@pytest.fixture(scope="module")
def parts(competitions):
    rng, collection = np.random.default_rng(0), []
    for name, n, kind, period, h in SERIES:
        y = 100 + rng.normal(size=n + h).cumsum()
        one = SimpleNamespace(sn=name, x=y[:n], xx=y[n:], type=kind, period=period, h=h)
        collection.append(one)
    return competitions.parts("M0", collection)


def test_parts_have_all_rows_by_frequency(parts):
    quarterly, other = parts
    assert (quarterly.frequency, quarterly.season, quarterly.h) == ("quarterly", 4, 8)
    assert quarterly.train.groupby("unique_id").size().to_dict() == {"a": 40, "b": 25}
    assert quarterly.test.groupby("unique_id").size().to_dict() == {"a": 8, "b": 8}
    begin = quarterly.test.groupby("unique_id")["ds"].min()
    end = quarterly.train.groupby("unique_id")["ds"].max()
    assert (begin == end + pd.offsets.QuarterBegin(startingMonth=1)).all()
    assert other.test["ds"].tolist() == list(range(32, 40))
    assert quarterly.some(1).ids.tolist() == ["a"]
    assert quarterly.some(9).train.equals(quarterly.train)


def run(competitions, model, part):
    forecasts = model.set_params(horizon=part.h).fit(part.train).predict(level=competitions.LEVELS)
    return competitions.Run(forecasts, 1.0)


def test_scores_are_those_of_utilsforecast(scripts, competitions, parts):
    for part in parts:
        made = run(competitions, Drift(), part)
        table = competitions.scores(made, part)
        rows = made.forecasts.merge(part.test, on=["unique_id", "ds"])
        smape = 200 * uf.smape(rows, ["Drift"]).set_index("unique_id")["Drift"]
        mase = uf.mase(rows, ["Drift"], part.season, part.train).set_index("unique_id")["Drift"]
        np.testing.assert_allclose(table["sMAPE"], smape[table.index], rtol=1e-12)
        np.testing.assert_allclose(table["MASE"], mase[table.index], rtol=1e-12)
        mape = 100 * uf.mape(rows, ["Drift"]).set_index("unique_id")["Drift"]
        np.testing.assert_allclose(competitions.percentage_errors(made, part), mape, rtol=1e-12)
        row = scripts.classical.errors_row("Drift", [table], 2.0, len(part.ids))
        n = len(part.ids)
        assert row == ["Drift", str(n), f"{smape.mean():.3f}", f"{mase.mean():.4f}",
                       f"{2000 / n:.2f}", "2.00", ""]  # fmt: skip


def test_coverage_by_step_is_the_share_of_series(scripts, competitions, parts):
    part = parts[0]
    made = run(competitions, Naive(), part)
    rows = made.forecasts.merge(part.test, on=["unique_id", "ds"])
    inside = (rows["Naive-lo-95"] <= rows["y"]) & (rows["y"] <= rows["Naive-hi-95"])
    by_step = inside.groupby(rows.groupby("unique_id").cumcount()).mean()
    row = scripts.classical.intervals_row("Naive", made, part)
    assert row[2] == f"{100 * inside.mean():.1f}"
    assert row[3] == " ".join(f"{100 * by_step[i]:.0f}" for i in (0, 4, 7))


def test_the_median_is_that_of_a_combination(competitions, parts):
    for part in parts:
        members = {"a": Naive(), "b": Drift(), "c": SeasonalNaive(season_length=part.season)}
        made = competitions.median_of(
            [run(competitions, model, part) for model in members.values()]
        )
        whole = run(competitions, Combination(members, combine="median"), part)
        values = whole.forecasts.drop(columns=["unique_id", "ds"])
        np.testing.assert_allclose(made.forecasts[values.columns.str.replace(
            "Combination", competitions.MEDIAN)], values, rtol=1e-13)  # fmt: skip
        assert made.seconds == 3.0


def test_a_row_of_short_series_has_the_means_of_its_parts(scripts, competitions, parts):
    script = scripts.short_series
    measured = [script.measures(run(competitions, Naive(), part), part) for part in parts]
    both = script.measures_row("Naive", measured)
    assert len(both) == len(script.HEADER)
    table = pd.concat([each.table for each in measured])
    assert both[:2] == ["Naive", f"{table['MASE'].mean():.3f}"]
    inside = 100 * table["coverage-95"].mean()
    assert both[script.HEADER.index("covers at 95")] == f"{inside:.1f}"
    steps = (2 * measured[0].steps + measured[1].steps) / 3  # two series and one
    assert both[5] == " ".join(f"{100 * share:.0f}" for share in steps[0])


def test_forecasts_of_peers_are_read_from_their_folder(scripts, parts, tmp_path):
    part, script = parts[0], scripts.short_series
    values = np.arange(2 * 8 * 5.0).reshape(2, 8, 5)
    kept = {"ids": np.array(["b", "a"]), "values": values, "seconds": np.array([1.0, 2.0]),
            "failed": np.array(["", "ValueError: short"])}  # fmt: skip
    np.savez(tmp_path / "m0_quarterly_AutoETS.npz", **kept)
    made = script.peer("AutoETS", tmp_path, part)
    assert (made.seconds, made.stand_ins) == (3.0, 1)
    first = made.forecasts[made.forecasts["unique_id"] == "a"]
    assert first["AutoETS"].tolist() == values[1, :, 0].tolist()
    assert first["AutoETS-hi-95"].tolist() == values[1, :, 4].tolist()
    assert first["ds"].equals(part.test["ds"][:8])
    assert script.peer("AutoETS", tmp_path, part.some(1)).seconds == 2.0


def test_origins_to_train_on_lie_before_the_last_horizon_of_the_training_rows(scripts):
    script, y = scripts.classical_forecasts, np.arange(30.0)
    series = {"long": y, "short": y[:9], "constant": np.ones(30)}
    origins = script.held_out(series, season=1, h=4)
    assert origins.ids == ["long", "long", "short"]  # two thirds of nine rows leave no horizon
    assert [len(history) for history in origins.histories] == [20, 26, 5]
    for history, actual in zip(origins.histories, origins.actual, strict=True):
        np.testing.assert_array_equal(actual, len(history) + np.arange(4))


def test_forecasts_to_train_on_are_those_of_the_combination(scripts, competitions, parts):
    part, script = parts[0], scripts.classical_forecasts
    arrays = script.classical_forecasts(script.official(part))
    members = {
        name: script.model_class(name)(season_length=part.season, random_state=0)
        if name == "ETS"
        else script.model_class(name)(season_length=part.season)
        for name in script.MEMBERS
    }
    whole = run(competitions, Combination(members, combine="median"), part).forecasts
    for array, end in zip(script.ARRAYS, competitions.ENDS, strict=True):
        values = whole[f"Combination{end}"].to_numpy().reshape(2, part.h)
        np.testing.assert_allclose(arrays[array][:, -1], values, rtol=1e-12)
    assert arrays["models"][-1] == "Combination"
    history = arrays["values"][: arrays["indptr"][1]]
    np.testing.assert_array_equal(history, part.train.loc[part.train["unique_id"] == "a", "y"])


def test_optima_are_those_of_statsmodels(scripts, parts):
    script = scripts.classical
    y = parts[0].train["y"].to_numpy()[:40]
    ets = script.ets_optimum(y, "add", "none", False, "none", 1)
    ours = script.ETS("add", "none", "none").fit(pd.Series(y)).loglik_.iloc[0]
    assert ours == pytest.approx(ets, abs=1e-4)
    arma = script.arma_optimum(y, (0, 1, 1))
    ours = script.ARMA(order=(0, 1, 1), trend="n").fit(pd.Series(y)).loglik_.iloc[0]
    assert ours == pytest.approx(arma, abs=1e-4)
