"""Parts and measures of the benchmark of defaults against utilsforecast and the accuracy tables."""

import importlib
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from utilsforecast import losses as uf

from tsrnn.baselines import Drift, SeasonalNaive
from tsrnn.evaluation import accuracy

FOLDER = Path(__file__).parents[2] / "benchmarks"
SEASON, H = 4, 6


@pytest.fixture(scope="module")
def scripts():
    names = ("_forecast_tasks", "defaults")
    sys.path.insert(0, str(FOLDER))  # they import each other by their names alone
    before = set(sys.modules)
    try:
        modules = [importlib.import_module(name) for name in names]
    finally:
        sys.path.remove(str(FOLDER))
        for name in set(sys.modules) - before:
            if str(getattr(sys.modules[name], "__file__", "")).startswith(str(FOLDER)):
                del sys.modules[name]
    return SimpleNamespace(**dict(zip(names, modules, strict=True)))


@pytest.fixture(scope="module")
def wide():
    rng = np.random.default_rng(0)
    index = pd.date_range("2000-01-01", periods=100, freq="QS")
    return pd.DataFrame(rng.normal(size=(100, 3)).cumsum(0), index, ["a", "b", "c"])


@pytest.fixture(scope="module")
def last(scripts, wide):
    """Task of one origin."""
    frame = scripts._forecast_tasks.long(wide)
    first = frame["ds"] < wide.index[-H]
    return scripts._forecast_tasks.official(frame[first], frame[~first], SEASON, H, "test")


def origins(task):
    """Return the places of the first and the last row of each forecast, from the first row on."""
    n = task.train.groupby("unique_id").size().iloc[0]
    rows = n + task.future.groupby("unique_id").size().iloc[0]
    return [(i, i + task.h) for i in range(n, rows - task.h + 1, task.step)]


@pytest.mark.parametrize("season", [1, 4, 12, 24])
@pytest.mark.parametrize("n", [60, 100, 731])
def test_parts_follow_each_other_and_origins_meet_all_seasons(scripts, season, n):
    h = 6
    wide = pd.DataFrame({"a": np.arange(n, dtype=float)})
    tasks = {p: scripts._forecast_tasks.rolling(wide, season, h, p) for p in ("validation", "test")}
    for part in tasks.values():
        assert part.train["ds"].max() + 1 == part.future["ds"].min()
        assert 1 <= len(origins(part)) <= scripts._forecast_tasks.ORIGINS
        assert len({i % season for i, _ in origins(part)}) == min(season, len(origins(part)))
    assert tasks["validation"].future["ds"].max() < tasks["test"].future["ds"].min()
    assert tasks["test"].future["ds"].max() == n - 1
    assert len(tasks["test"].future) == n // 5


def test_validation_part_of_a_competition_ends_where_its_test_begins(scripts, wide, last):
    first = scripts._forecast_tasks.official(last.train, last.future, SEASON, H, "validation")
    joined = pd.concat([first.train, first.future]).sort_values(["unique_id", "ds"])
    assert joined.reset_index(drop=True).equals(last.train.reset_index(drop=True))
    assert first.future.groupby("unique_id").size().eq(H).all()


def test_validation_part_leaves_out_series_that_cannot_be_forecast(scripts, wide):
    """Constant, too short, without a last value."""
    wide = wide.assign(b=1.0, d=wide["a"])
    wide.iloc[:85, 2] = np.nan
    wide.iloc[-2 * H - 1, 3] = np.nan
    frame = scripts._forecast_tasks.long(wide)
    first = frame["ds"] < wide.index[-H]
    official = scripts._forecast_tasks.official
    parts = (official(frame[first], frame[~first], SEASON, H, p) for p in ("test", "validation"))
    assert [task.ids.tolist() for task in parts] == [["a", "b", "c", "d"], ["a"]]


def test_rows_after_the_last_known_value_are_no_part_of_the_future(scripts, wide):
    wide = wide.copy()
    wide.iloc[-4:, 0], wide.iloc[-10:-6, 1], wide.iloc[-20:, 2] = np.nan, np.nan, np.nan
    task = scripts._forecast_tasks.rolling(wide, SEASON, H, "test")
    assert task.future.groupby("unique_id").size().to_dict() == {"a": 16, "b": 20}
    assert task.ids.tolist() == ["a", "b"]


def test_short_tasks_have_the_rows_before_their_origins(scripts, wide):
    task = scripts._forecast_tasks.rolling(wide, SEASON, H, "validation")
    short = list(scripts._forecast_tasks.shortened([task], 30))
    assert len(short) == 3 * len(origins(task))
    for each in short:
        name, origin = each.ids[0].split()
        y = wide[name].to_numpy()
        assert each.train["y"].tolist() == y[int(origin) - 30 : int(origin)].tolist()
        assert each.future["y"].tolist() == y[int(origin) : int(origin) + H].tolist()


@pytest.mark.parametrize("model", [SeasonalNaive(season_length=SEASON, horizon=H), Drift()])
def test_measures_are_those_of_accuracy_tables(scripts, last, model):
    judge = scripts.defaults
    run = judge.fitted(lambda task: model)(last)
    table = judge.series_means(last, run)
    forecasts = model.fit(last.train).predict(H, level=judge.LEVELS)
    wanted = accuracy(forecasts, last.future, train=last.train, season_length=SEASON, by="series")
    wanted = wanted.droplevel("model")
    assert table["MASE"].to_numpy() == pytest.approx(wanted["MASE"].to_numpy())
    assert table["sMAPE"].to_numpy() == pytest.approx(wanted["sMAPE"].to_numpy())
    assert table["Winkler"].to_numpy() == pytest.approx(wanted["MSIS-80"].to_numpy())
    thirds = table[["first", "middle", "last"]].mean(axis=1).to_numpy()
    assert thirds / 100 == pytest.approx(wanted["coverage-80"].to_numpy())
    name = forecasts.columns[2]
    frame = forecasts.merge(last.future)
    columns = {"m": [name + end for end in judge.ENDS]}
    check = uf.mqloss(frame, columns, quantiles=judge.DECILES).set_index("unique_id")["m"]
    scale = pd.Series(judge.scales(last))
    assert table["check"].to_numpy() == pytest.approx((2 * check / scale).to_numpy())


def test_rolling_forecasts_are_those_after_updates(scripts, wide):
    """Windows in the order of series and origins, by predictions after the rows before each."""
    judge = scripts.defaults
    task = scripts._forecast_tasks.rolling(wide, SEASON, H, "validation")
    rolled = judge.fitted(lambda task: Drift())(task).windows
    expected = []
    for name, future in task.future.groupby("unique_id"):
        for begin in range(0, len(future) - H + 1, task.step):
            model = Drift().fit(task.train)
            if begin:
                model = model.update(future[:begin])
            frame = model.predict(H, level=80, ids=name)
            actual = future["y"].to_numpy()[begin : begin + H]
            expected.append((name, actual, frame[["Drift-lo-80", "Drift", "Drift-hi-80"]]))
    assert len(expected) == len(rolled.series) > 3
    for i, (name, actual, values) in enumerate(expected):
        assert rolled.series[i] == name
        assert rolled.actual[i] == pytest.approx(actual)
        assert rolled.deciles[i][[0, 4, 8]] == pytest.approx(values.to_numpy().T)


def test_peers_are_fitted_at_each_origin(scripts, wide, monkeypatch):
    """A model that repeats the last row, refused once, has the last values before the origins."""
    judge = scripts.defaults
    task = scripts._forecast_tasks.rolling(wide, SEASON, H, "validation")
    places = {float(y): i for i, y in enumerate(wide["a"])}

    def repeat(name, known, task):
        if name == "odd" and places.get(known[-1]) == origins(task)[1][0] - 1:
            raise RuntimeError("of a kind of its own")
        return np.full((9, task.h), known[-1])

    monkeypatch.setattr(judge, "peer_deciles", repeat)
    run = judge.peer("even", "odd", "third")(task)
    assert run.stand_ins == 1
    wanted = [wide[name].iloc[i - 1] for name in wide for i, _ in origins(task)]
    assert run.windows.deciles[:, 4, 0] == pytest.approx(wanted)


def test_a_task_that_is_refused_is_counted(scripts, last):
    judge = scripts.defaults
    short = last._replace(train=last.train[:5], future=last.future[:H])
    names = judge.FORECASTERS["trained"]
    result = judge.judge([last, short], lambda task: names(task) if len(task.train) < 9 else
                         judge.fitted(lambda task: Drift())(task), owa=True)  # fmt: skip
    assert (result["series"], result["lost"]) == (4, 1)
    assert "a:" in result["refusals"][0]
    assert result["OWA"] > 0
    with pytest.raises(ValueError, match="rows"):
        judge.judge([short], names, owa=False)


@pytest.mark.slow
def test_a_job_ends_by_its_time(scripts, tmp_path):
    judge = scripts.defaults
    options = SimpleNamespace(data=tmp_path, part="validation", limit=None, timeout=1)
    # The imports alone take longer.
    assert judge.job(options, "shipped", "default") == {"error": "timed out after 1 s"}


@pytest.mark.slow
def test_a_job_without_its_data_says_so(scripts, tmp_path):
    judge = scripts.defaults
    options = SimpleNamespace(data=tmp_path, part="validation", limit=None, timeout=100)
    row = judge.job(options, "etth1", "SeasonalNaive")
    assert "No such file" in row["error"]
    assert "etth1" in " | ".join(judge.cells({"collection": "etth1", "forecaster": "x"} | row))
