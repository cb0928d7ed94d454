"""Series of few rows, constant, zero, negative: forecasts with intervals, or what is needed."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest

from tsrnn.contract import Classical

pytestmark = pytest.mark.where.with_args(
    lambda example: example.is_forecaster and issubclass(example.cls, Classical)
)
KINDS = {
    "walk": lambda y: 20 + y.cumsum(0),
    "constant": lambda y: np.full_like(y, 7.0),
    "zero": np.zeros_like,
    "zeros between": lambda y: np.where(y > 0, y, 0.0),
    "negative": lambda y: -20 + y,
}
# Of an error: the least rows, or the property of the values that stands in the way.
ADVICE = r"at least \d+|more than \d+|\d+ (rows|observations|values)|constant|var(y|ies|iance)|"
ADVICE += r"positive|equal|too few|demand|collinear"


def frame_of(example, series):
    """Return a long frame of series of some kinds and lengths."""
    draw = np.random.default_rng(0)
    parts = []
    for i, (kind, rows) in enumerate(series):
        y = KINDS[kind](draw.normal(size=(rows, 2)))
        columns = {"y": y[:, 0], "z": y[:, 1], "demand": np.maximum(y[:, 0], 0)}
        days = pd.date_range("2024-01-01", periods=rows)
        parts.append(pd.DataFrame({"unique_id": f"s{i}", "ds": days, **columns}))
    names = [name for name in example.columns if name != "x"]
    return pd.concat(parts, ignore_index=True)[["unique_id", "ds", *names]]


def forecast(example, intervals, series):
    """Return forecasts by series as arrays, of a model without its regressors."""
    arguments = {k: v for k, v in example.arguments.items() if k != "known_ahead"}
    model = example.cls(**arguments)
    if intervals == "conformal":
        model.set_params(intervals=intervals)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        found = model.fit(frame_of(example, series)).predict(h=3, level=[80, 95])
    return {name: rows.iloc[:, 2:].to_numpy(float) for name, rows in found.groupby("unique_id")}


@pytest.mark.few(
    "ARMA-3", "ARMA-4", "ARMA-6", "ETS-3", "ETS-4", "ETS-6", "ETS-10-conformal", "GARCH-4",
    "GARCH-6", "VARMA-4", "VARMA-10", "DCC-4-model", "Naive", "Drift", "SARIMAX-4",
    "StatsmodelsETS-4", "VAR-4", "VAR-10", "CES-4-model", "Theta, one line-3", "Theta, dynamic-6",
    "Croston", "TSB-4", "Combination-4", "AutoARIMA-4", "VECMGARCH-10-model",
    "Combination-10-conformal",
)  # fmt: skip
@pytest.mark.parametrize("intervals", ["model", "conformal"])
@pytest.mark.parametrize("rows", [3, 4, 6, 10])
def test_alone(example, intervals, rows):
    for kind in KINDS:
        found, refusal = None, ""
        try:
            found = forecast(example, intervals, [(kind, rows)])["s0"]
        except ValueError as error:
            refusal = str(error)
        if found is None:
            assert re.search(ADVICE, refusal), f"{kind}: {refusal}"
        elif "predict_variance" in example.cls.offers:  # a variance may be none after so few rows
            assert np.isfinite(found).any(1).all(), kind
        else:
            assert np.isfinite(found).all(), kind


@pytest.mark.where.with_args(lambda example: example.arguments.get("weights") != "inverse-error")
@pytest.mark.few(
    "ARMA", "ETS", "GARCH-model", "VARMA", "DCC-model", "Naive", "SARIMAX", "VAR", "Combination",
    "Croston",
)  # fmt: skip
@pytest.mark.parametrize("intervals", ["model", "conformal"])
def test_beside_others(example, intervals):
    """The long series is forecast whatever the others are."""
    series = [("walk", 60), *((kind, rows) for kind in KINDS for rows in (4, 60))]
    found = forecast(example, intervals, series)
    assert np.isfinite(found["s0"]).all()
