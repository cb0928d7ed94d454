"""Forecasts of many series from files."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import tsrnn.batch
from tsrnn import ARMA

pytest.importorskip("polars", reason="forecasts of many series are written by polars")
pytestmark = pytest.mark.usefixtures("files")


@pytest.fixture
def called(monkeypatch):
    """Put a stand-in for `forecast_batches` that keeps its arguments."""
    calls = []

    def stand_in(source, model, **rest):
        calls.append((source, model, rest))
        return SimpleNamespace(n_series=3, n_failed=calls[0][2]["level"][0] - 80)

    monkeypatch.setattr(tsrnn.batch, "forecast_batches", stand_in)
    return calls


def test_the_arguments(called, answer):
    options = "--jobs 2 --rows-per-batch 100 --overwrite --future x --known-ahead p,q"
    answer(f"batch s/*.csv --model arma --out f --h 2 --level 80 {options} --set trend=n")
    ((source, model, rest),) = called
    assert source == "s/*.csv"
    assert (type(model), model.trend, model.known_ahead) == (ARMA, "n", ["p", "q"])
    assert rest == {
        "h": 2,
        "level": [80],
        "out": "f",
        "X_future": "x",
        "n_jobs": 2,
        "rows_per_batch": 100,
        "overwrite": True,
        "verbose": 0,
    }


def test_series_that_fail_are_counted_and_all_of_them_are_an_error(called, document, refused):
    assert document("batch s --model arma --out f --level 81 --json")["n_failed"] == 1
    called.clear()
    assert "no series could be forecast" in refused("batch s --model arma --out f --level 83")


def test_a_folder_of_forecasts(document, answer, files, panel):
    given = document("batch panel.csv --model arma --h 2 --level 80 --out f --json")
    text = given.pop("text")
    del given["version"]
    assert given == {"command": "batch", "out": "f", "n_series": 3, "n_failed": 0}
    assert text.startswith("3 series in 1 partitions")
    forecasts = tsrnn.batch.forecast_batches(
        str(files / "panel.csv"), ARMA(), h=2, level=80, out=files / "g"
    ).forecasts()
    expected = ARMA().fit(panel).predict(2, level=80)
    kept = pd.concat(
        [tsrnn.data.to_pandas(pl_read(path)) for path in sorted((files / "f").rglob("*.parquet"))]
    )
    assert kept["unique_id"].dropna().tolist() == expected["unique_id"].tolist()
    np.testing.assert_allclose(kept["ARMA-hi-80"], expected["ARMA-hi-80"])
    np.testing.assert_allclose(forecasts["ARMA-hi-80"], expected["ARMA-hi-80"])
    assert "3 forecast" in answer("batch panel.csv --model arma --h 2 --level 80 --out f")


def test_a_fitted_model(answer, misused, files):
    answer("forecast panel.csv --h 2 --model arma --save model.tsrnn")
    assert "0 failed" in answer("batch panel.csv --model model.tsrnn --out f --h 2")
    wrong = misused("batch panel.csv --model model.tsrnn --out g --set trend=n --freq MS")
    assert "leave freq, trend out" in wrong


def test_what_cannot_be_used(refused):
    assert "no parquet or CSV file is at 'none'" in refused("batch none --model arma --out f")
    assert "must be fitted before" in refused("batch panel.csv --model pararnn --out f")


def pl_read(path):
    import polars

    return polars.read_parquet(path)
