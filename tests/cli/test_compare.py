"""Comparisons of the command line are those of Python."""

import numpy as np
import pandas as pd
import pytest

from tsrnn import ARMA, ParaRNNForecaster, backtest, compare
from tsrnn.baselines import Mean, Naive

pytestmark = pytest.mark.usefixtures("files")

WINDOWS = "--h 2 --windows 24 --step 1 --no-refit --level 80"


@pytest.fixture(scope="module")
def result(panel):
    models = {"arma": ARMA(), "naive": Naive()}
    given = {"h": 2, "n_windows": 24, "step_size": 1, "refit": False, "level": 80}
    return compare(backtest(models, panel.query("unique_id != 'b'"), **given))


@pytest.fixture
def two(files, panel):
    panel.query("unique_id != 'b'").to_csv(files / "two.csv", index=False)


@pytest.fixture
def short(panel, files):
    """Write the first 26 rows of one series, of which two windows leave enough."""
    panel[panel["unique_id"] == "b"][["ds", "y"]].head(26).to_csv(files / "short.csv", index=False)


def test_the_accuracy_and_the_words(tsrnn, two, result):
    done = tsrnn(f"compare two.csv --model arma,naive {WINDOWS}")
    words = "".join(f"{sentence}\n" for sentence in result.words())
    assert done.stdout == f"{result.accuracy.to_string()}\n\n{words}"
    assert [line for line in done.stderr.splitlines() if line.startswith("note: ")] == [
        f"note: {note}" for note in result.notes
    ]


def test_networks_by_series(document, two, panel):
    small = "--set max_epochs=1 --set hidden_size=8 --set per_series=true --random-state 0"
    given = document(f"compare two.csv --model pararnn,naive --h 2 --windows 2 {small} --json")
    assert given["failures"] == []
    model = ParaRNNForecaster(2, max_epochs=1, hidden_size=8, per_series=True, random_state=0)
    models = {"pararnn": model, "naive": Naive()}
    frame = backtest(models, panel.query("unique_id != 'b'"), h=2, n_windows=2)
    accuracy = pd.DataFrame(given["accuracy"]).set_index("model")["MAE"]
    np.testing.assert_allclose(accuracy, compare(frame).accuracy["MAE"], rtol=1e-6)


def test_json(document, two, result):
    given = document(f"compare two.csv --model arma --model naive {WINDOWS} --json")
    assert given["command"] == "compare"
    assert given["models"] == result.models
    assert (given["h"], given["n_series"], given["n_windows"]) == (2, 2, 48)
    assert (given["measure"], given["loss"]) == (result.measure, result.loss)
    assert given["words"] == result.words()
    assert given["notes"] == result.notes
    assert set(given["seconds"]) == {"arma", "naive"}
    assert given["failures"] == []
    for name, table, keys in (
        ("accuracy", result.accuracy.rename_axis("model"), ["model"]),
        ("by_step", result.by_step.rename_axis(["step", "model"]), ["step", "model"]),
        ("confidence_set", result.confidence_set.rename_axis("model"), ["model"]),
    ):
        frame = pd.DataFrame(given[name]).set_index(keys)
        np.testing.assert_allclose(frame.astype(float), table.astype(float), rtol=1e-9)
    tests = pd.DataFrame(given["diebold_mariano"])
    assert tests[["model_a", "model_b"]].equals(result.diebold_mariano[["model_a", "model_b"]])
    np.testing.assert_allclose(tests["p_value"], result.diebold_mariano["p_value"], rtol=1e-6)


@pytest.mark.slow
def test_a_benchmark_in_words(answer, two):
    said = answer(f"compare two.csv --model arma,naive,drift {WINDOWS} --benchmark drift")
    assert "drift" in said.split("\n\n")[1]


def test_the_report_and_the_forecasts(tsrnn, short, files, panel):
    done = tsrnn(
        "compare short.csv --model naive,mean --h 2 --windows 2 --report r.html --out f.csv"
    )
    assert done.exit_code == 0
    assert {"wrote r.html", "wrote 4 rows to f.csv"} <= set(done.stderr.splitlines())
    assert "<html" in (files / "r.html").read_text(encoding="utf-8")
    kept = pd.read_csv(files / "f.csv", parse_dates=["ds", "cutoff"])
    one = pd.read_csv(files / "short.csv", parse_dates=["ds"])
    expected = backtest({"naive": Naive(), "mean": Mean()}, one, h=2, n_windows=2)
    assert list(kept.columns) == list(expected.columns)
    assert kept["cutoff"].tolist() == expected["cutoff"].tolist()
    np.testing.assert_allclose(kept[["naive", "mean"]], expected[["naive", "mean"]])


def test_settings_of_all_and_of_one(document, short, monkeypatch):
    seen = []
    fit = ARMA.fit

    def spy(self, df, y=None):
        seen.append((self.order, self.trend))
        return fit(self, df)

    monkeypatch.setattr(ARMA, "fit", spy)
    models = ["--model", "a=arma", "--model", "b=arma", "--model", "naive"]
    settings = ["--set", "order=[1,0]", "--set", "a.trend=n"]
    given = document(
        ["compare", "short.csv", *models, *settings, "--h", 2, "--windows", 1, "--json"]
    )
    assert sorted(given["models"]) == ["a", "b", "naive"]
    assert seen == [([1, 0], "n"), ([1, 0], None)]


def test_columns_known_ahead_are_for_models_that_take_them(document, tmp_path):
    draw = np.random.default_rng(1)
    x = draw.normal(size=60)
    days = pd.date_range("2024-01-01", periods=60)
    frame = pd.DataFrame({"ds": days, "y": 3 * x + draw.normal(size=60) / 10, "x": x})
    frame.to_csv(tmp_path / "x.csv", index=False)
    given = document("compare x.csv --model arma,mean --known-ahead x --h 2 --windows 3 --json")
    errors = {row["model"]: row["RMSE"] for row in given["accuracy"]}
    assert errors["arma"] < 0.5 < 1 < errors["mean"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--model naive", "Missing option '--h'"),
        ("--h 2", "Missing option '--model'"),
        ("--model naive,naive --h 2", "two models are called 'naive'. Label them: A=naive"),
        ("--model naive --h 2 --set arma.order=1", "arma.order is for no model"),
        ("--model naive --h 2 --set naive.freq=1", "freq has an option of its own"),
        ("--model naive --h 2 --benchmark arma", "'arma' is none of the models naive"),
        ("--model naive --h 2 --loss cubic", "'cubic' is none of squared, absolute"),
        ("--model naive --h 2 --windows 0", "Invalid value for '--windows'"),
        ("--model naive --h 2 --report r.pdf", "must end in .html"),
    ],
)
def test_wrong_usage(misused, options, message):
    assert message in misused(f"compare panel.csv {options}")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--windows 99", "rows"),
        ("--set nonesuch=1", "nonesuch"),
        ("--report no/r.html", "the folder no does not exist"),
    ],
)
def test_what_cannot_be_used(refused, options, message):
    assert message in refused(f"compare panel.csv --model naive,arma --h 2 {options}")
