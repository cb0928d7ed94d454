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

from tsrnn import load

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


@pytest.mark.filterwarnings("ignore::tsrnn.contract.IntervalWarning")
def test_files_of_an_earlier_version_are_read(contract, name, example):
    path = FOLDER / (re.sub(r"[^a-z0-9]+", "-", name.lower()) + ".tsrnn")
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
