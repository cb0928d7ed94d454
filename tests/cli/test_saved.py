"""What is told of saved models and of the table of models."""

import inspect

import numpy as np
import pandas as pd
import pytest

import tsrnn
from tsrnn import load, recurrence_features
from tsrnn.cli._models import is_file, settings_of
from tsrnn.contract import Forecaster
from tsrnn.models import MODELS, model_class

SMALL = "--set max_epochs=1 --set hidden_size=8 --random-state 0"
NOT_BY_NAME = {"Combination", "ParaRNNClassifier", "ParaRNNRegressor"}
COMMANDS = {model.command: name for name, model in MODELS.items() if model.command}


@pytest.fixture
def saved(files, answer):
    """Save a small network as model.tsrnn."""
    answer(f"forecast panel.csv --h 3 {SMALL} --set linear_path=false --save model.tsrnn")
    return load(files / "model.tsrnn")


def test_features(answer, saved):
    text = answer("features model.tsrnn")
    table = recurrence_features(saved)
    assert text == f"{table.to_string(index=False)}\n\nhalf_life and period are in months.\n"


def test_features_as_json_and_as_a_file(document, saved, files):
    given = document("features model.tsrnn --json --out f.csv")
    table = recurrence_features(saved)
    assert (given["model"], given["time_unit"], given["time_step"]) == (
        "ParaRNNForecaster",
        "months",
        1,
    )
    frame = pd.DataFrame(given["features"])
    assert list(frame.columns) == list(table.columns)
    assert frame["type"].tolist() == table["type"].tolist()
    np.testing.assert_allclose(frame["modulus"], table["modulus"])
    periods = [float(value) for value in frame["period"]]  # "inf" is text
    np.testing.assert_allclose(periods, table["period"])
    assert len(pd.read_csv(files / "f.csv")) == len(table)


def test_summary(answer, document, saved):
    assert answer("summary model.tsrnn") == str(saved.summary()).rstrip() + "\n"
    given = document("summary model.tsrnn --json")
    assert given["model"] == "ParaRNNForecaster"
    assert given["arguments"]["hidden_size"] == 8
    assert (given["freq"], given["horizon"], given["targets"]) == ("MS", 3, ["y"])
    assert given["series"] == [
        {"id": name, "last_time": "2023-12-01T00:00:00"} for name in ("007", "NA", "b")
    ]
    assert given["summary"] == str(saved.summary())


@pytest.mark.parametrize("command", ["features", "summary"])
def test_files_that_are_none(refused, files, command):
    assert "no saved model at 'none.tsrnn'" in refused(f"{command} none.tsrnn")
    assert "no model saved by tsrnn" in refused(f"{command} panel.csv")


def test_a_network_that_contributes_nothing_has_no_features(refused, answer, files):
    answer(f"forecast panel.csv --h 3 {SMALL} --set learning_rate=30 --save off.tsrnn")
    told = " ".join(refused("features off.tsrnn").split())
    assert "the network of this ParaRNNForecaster has learned nothing" in told
    page = " ".join(answer("summary off.tsrnn").split())
    assert "Forecasts: the local level and the linear path alone." in page


def test_a_model_without_recurrence_has_no_features(refused, answer, files):
    answer("forecast panel.csv --h 1 --model mean --save model.tsrnn")
    assert refused("features model.tsrnn")


def test_the_table_has_every_forecaster(document):
    assert set(COMMANDS.values()) == set(MODELS) - NOT_BY_NAME
    classes = {row["name"]: row["class"] for row in document("models --json")["models"]}
    for command, name in COMMANDS.items():
        cls = model_class(name)
        assert issubclass(cls, Forecaster)
        assert classes[command] == f"{MODELS[name].module}.{cls.__name__}"


def test_names_are_found_in_any_case(answer):
    assert answer("models Auto_ARIMA") == answer("models auto-arima")
    assert answer("models statsmodels_auto_arima").startswith("StatsmodelsAutoARIMA: ")


def test_models_are_listed(answer, document):
    lines = answer("models").splitlines()
    assert [line.split()[0] for line in lines] == list(COMMANDS)
    assert [row["name"] for row in document("models --json")["models"]] == list(COMMANDS)


def test_arguments_of_a_model_are_listed(answer, document, misused):
    legal = list(inspect.signature(tsrnn.ARMA).parameters)
    lines = answer("models arma").splitlines()[1:]
    assert [line.split()[0] for line in lines] == legal
    rows = document("models arma --json")["arguments"]
    assert [row["name"] for row in rows] == legal
    assert rows[0]["default"] == [1, 1]
    assert "there is no model 'x'" in misused("models x")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a=1", 1),
        ("a=0.5", 0.5),
        ("a=true", True),
        ("a=False", False),
        ("a=null", None),
        ("a=None", None),
        ("a=gru", "gru"),
        ('a="1"', "1"),
        ("a=[1, 2]", [1, 2]),
        ("a=x=y", "x=y"),
        ("a=", ""),
    ],
)
def test_values_of_settings(text, value):
    setting = settings_of([text])["a"]
    assert setting == value
    assert type(setting) is type(value)


def test_a_file_is_told_from_a_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "arma").touch()
    (tmp_path / "kept").touch()
    assert not is_file("arma")
    assert is_file("kept")
    assert is_file("none.tsrnn")
