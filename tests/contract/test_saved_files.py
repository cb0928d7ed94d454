"""Files of an earlier version give the forecasts that they gave when they were written.

The folder `saved` has a file of each example of `conftest.py` and its forecasts. They are written
anew with ``TSRNN_WRITE_SAVED=1``, which is right only where files of that version are refused.
"""

import json
import os
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tsrnn import LRUForecaster, ParaRNNRegressor, load
from tsrnn.baselines import Drift
from tsrnn.contract import DamagedFileError, read_file, write_file
from tsrnn.contract._file import FORMAT
from tsrnn.forecasters import RecurrentForecaster

FOLDER = Path(__file__).parent / "saved"
# Networks compute in single precision, whose sums depend on the processor.
NETWORKS, TOLERANCES = ("Forecaster", "Regressor", "nested"), (1e-6, 1e-4)


@pytest.fixture
def name(contract, example):
    return next(name for name, other in contract.examples.items() if other is example)


def forecasts_of(contract, model, example):
    values = contract.forecast(model, example)
    if isinstance(values, pd.DataFrame):
        values = values.drop(columns=["unique_id", "ds"])
    return np.asarray(values).tolist()


@pytest.mark.where.with_args(  # earlier versions had no prior network
    lambda example: (
        not issubclass(example.cls, RecurrentForecaster) or "max_epochs" in example.arguments
    )
)
@pytest.mark.filterwarnings("ignore::tsrnn.contract.IntervalWarning")
def test_files_of_an_earlier_version_are_read(contract, name, example):
    stem = re.sub(r"[^a-z0-9]+", "-", name.lower())
    path = FOLDER / f"{stem}.tsrnn"
    if os.environ.get("TSRNN_WRITE_SAVED"):
        model = example.fit(example.make())
        model.save(path)
        forecasts = json.dumps(forecasts_of(contract, model, example))
        path.with_suffix(".json").write_text(forecasts + "\n")
    expected = json.loads(path.with_suffix(".json").read_text())
    forecasts = forecasts_of(contract, load(path), example)
    if isinstance(expected[0], str):
        assert forecasts == expected
    else:
        tolerance = TOLERANCES[any(word in name for word in NETWORKS)]
        np.testing.assert_allclose(forecasts, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("stem", ["lemforecaster", "lruforecaster", "newtonforecaster"])
def test_networks_of_earlier_versions_were_trained(stem):
    model = load(FOLDER / f"{stem}.tsrnn")
    values = model.get_params()
    assert {values[name] for name in ("prior", "outliers", "season_length")} == {None}
    assert type(model.fitted_).__name__ == "FittedNetworks"


class TestFormat3:
    """Arguments and numbers that files of format 3 had not."""

    @staticmethod
    def older(part, name):
        """Return the change that takes a field from a file."""

        def change(header, arrays):
            del header[part][name]
            header["format"] = 3

        return change

    def test_intervals_are_those_of_the_model(self, contract):
        model = Drift().fit(pd.Series(np.arange(9.0) ** 2))
        loaded = contract.rewritten(model, self.older("params", "intervals"))
        assert loaded.get_params() == model.get_params()
        pd.testing.assert_frame_equal(loaded.predict(level=80), model.predict(level=80))

    def test_the_units_of_pooled_errors_are_one(self, contract):
        y = pd.Series(np.random.default_rng(0).normal(size=60), name="y")
        model = LRUForecaster(
            horizon=2, hidden_size=4, n_layers=1, max_epochs=1, refit=False, random_state=0
        ).fit(y)
        loaded = contract.rewritten(model, self.older("fitted", "pooled_units"))
        assert loaded.interval_guarantee_ == model.interval_guarantee_


class TestFormat2:
    """Arguments that files of format 2 had not, or had elsewhere."""

    X = np.random.default_rng(0).normal(size=(12, 7, 2))

    def file(self, path, **arguments):
        """Write a regressor as format 2 had it; return the regressor."""
        model = ParaRNNRegressor(
            4, cell="attention", n_heads=2, max_epochs=1, random_state=0, **arguments
        ).fit(self.X, self.X[:, -1, 0])
        model.save(path)
        header, arrays = read_file(path)
        params = header["params"]
        del params["engine"]
        options = {name: params.pop(name) for name in ("n_states", "window", "n_heads")}
        params["layer_options"] = {k: v for k, v in options.items() if v is not None}
        write_file(path, header | {"format": 2}, arrays)
        return model

    def test_options_of_the_layer_become_arguments(self, tmp_path):
        model = self.file(tmp_path / "model", window=3)
        loaded = load(tmp_path / "model")
        assert loaded.get_params() == model.get_params() | {"layer_options": {}}
        np.testing.assert_array_equal(loaded.predict(self.X), model.predict(self.X))

    def test_a_network_that_is_built_no_more_is_refused(self, tmp_path):
        self.file(tmp_path / "model", block_size=4)
        with pytest.raises(DamagedFileError, match="block_size must be smaller than hidden_size"):
            load(tmp_path / "model")

    def test_todays_files_lack_nothing(self, tmp_path):
        self.file(tmp_path / "model")
        header, arrays = read_file(tmp_path / "model")
        write_file(tmp_path / "model", header | {"format": FORMAT}, arrays)
        with pytest.raises(DamagedFileError, match="engine"):
            load(tmp_path / "model")
