"""The table of models, and all that follows from a line of it."""

import io
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

import tsrnn
from tsrnn.baselines import Naive
from tsrnn.cli import app
from tsrnn.contract import Forecaster, classes_with
from tsrnn.datasets import load_nile
from tsrnn.models import MODELS, Model, model_class


class Lagged(Naive):
    """A forecaster from outside the package."""

    def predict_variance(self):
        """Variance that only this class gives."""
        return 1.0


def saved(model):
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    return file


@pytest.mark.parametrize("name", MODELS)
def test_a_class_is_exported_by_its_room(name):
    cls = model_class(name)
    assert (cls.__name__, cls.__module__.startswith(f"{MODELS[name].module}.")) == (name, True)
    assert issubclass(cls, Forecaster) or MODELS[name].command is None


def test_names_on_the_command_line_are_different():
    commands = [model.command for model in MODELS.values() if model.command]
    assert len(set(commands)) == len(commands)


def test_every_model_that_is_no_baseline_is_at_the_top():
    above = {name for name, model in MODELS.items() if model.module != "tsrnn.baselines"}
    assert above <= set(tsrnn.__all__)


def test_the_table_loads_no_class():
    code = "import sys, tsrnn.models; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"numpy", "torch", "tsrnn.forecasters", "tsrnn.linear"} & set(done.stdout.split())


class TestALineOfOnesOwn:
    @pytest.fixture(autouse=True)
    def line(self, monkeypatch):
        monkeypatch.setitem(MODELS, "Lagged", Model(__name__))

    def test_has_files_read(self):
        model = Lagged().fit(load_nile())
        back = tsrnn.load(saved(model))
        assert type(back) is Lagged
        np.testing.assert_array_equal(back.predict(3), model.predict(3))

    def test_names_the_class_in_errors(self):
        assert "Lagged" in classes_with("predict_variance")

    def test_without_it_a_file_is_refused(self, monkeypatch):
        file = saved(Lagged().fit(load_nile()))
        monkeypatch.delitem(MODELS, "Lagged")
        with pytest.raises(ValueError, match="holds a Lagged.*reads ARMA, ArchModel, .*VECMGARCH"):
            tsrnn.load(file)


def test_the_command_line_lists_models_in_the_order_of_the_table():
    lines = CliRunner().invoke(app, ["models"]).output.splitlines()
    expected = [(m.command, name) for name, m in MODELS.items() if m.command]
    assert [(line.split()[0], line.rpartition("(")[2][:-1]) for line in lines] == expected
