"""Forecasts of many series from files."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import tsrnn.batch
from tsrnn import ARMA

pytest.importorskip("polars", reason="forecasts of many series are written by polars")
pytestmark = pytest.mark.usefixtures("files")


PROBLEMS = pd.DataFrame(
    [(1, "warning", "odd"), (2, "error", "lost"), (3, "error", "gone")],
    columns=["unique_id", "kind", "message"],
)


@pytest.fixture
def called(monkeypatch):
    """Put a stand-in for `forecast_batches` that keeps its arguments."""
    calls = []

    def stand_in(source, model, **rest):
        calls.append((source, model, rest))
        failed = calls[0][2]["level"][0] - 80
        return SimpleNamespace(n_series=3, n_failed=failed, errors=lambda: PROBLEMS)

    monkeypatch.setattr(tsrnn.batch, "forecast_batches", stand_in)
    return calls


def test_the_arguments(called, answer):
    options = "--jobs 2 --rows-per-batch 100 --overwrite --future x --known-ahead p,q "
    options += "--sep ; --decimal , --missing keep"
    answer(f"batch s/*.csv --model arma --out f --h 2 --level 80 {options} --set trend=n")
    ((source, model, rest),) = called
    assert source == "s/*.csv"
    assert (type(model), model.trend, model.known_ahead) == (ARMA, "n", ["p", "q"])
    assert model.missing == "keep"
    assert rest == {
        "h": 2, "level": [80], "out": "f", "X_future": "x", "n_jobs": 2, "rows_per_batch": 100,
        "overwrite": True, "sep": ";", "decimal": ",", "verbose": 0,
    }  # fmt: skip


def test_series_that_fail_are_counted_and_all_of_them_are_an_error(called, document, refused):
    assert document("batch s --model arma --out f --level 81 --json")["n_failed"] == 1
    called.clear()
    message = refused("batch s --model arma --out f --level 83")
    assert message.startswith("no series could be forecast; the first, 2: lost. All errors")
    assert message.endswith(f"errors are in {Path('f') / 'errors'}")


def test_a_folder_of_forecasts(document, answer, files, panel):
    given = document("batch panel.csv --model arma --h 2 --level 80 --out f --json")
    text = given.pop("text")
    del given["version"]
    assert given == {"command": "batch", "out": "f", "n_series": 3, "n_failed": 0}
    assert text.startswith("3 series in 1 partition")
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
    command = "batch panel.csv --model model.tsrnn --out g"
    wrong = misused(f"{command} --set trend=n --freq MS --id-col shop")
    assert "leave --set, --freq, --id-col out" in wrong
    assert "leave --random-state out" in misused(f"{command} --random-state 0")


def test_the_reason_why_all_series_fail(refused, files):
    (files / "na.csv").write_text("unique_id,ds,y\na,2024-01-01,1\na,2024-01-02,n.a.\n")
    message = refused("batch na.csv --model naive --h 1 --out f")
    assert "the first, 'a': TypeError: the column 'y' must hold numbers; got 'n.a.'" in message
    assert list((files / "f" / "errors").glob("*.parquet"))


def test_what_cannot_be_used(refused):
    assert "no parquet or CSV file is at 'none'" in refused("batch none --model arma --out f")
    assert "must be fitted before" in refused("batch panel.csv --model pararnn --out f")


def pl_read(path):
    import polars

    return polars.read_parquet(path)
