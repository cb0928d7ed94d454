"""Decompositions and the strength of seasons against statsmodels and plain formulas."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from statsmodels.tsa.seasonal import STL, seasonal_decompose

from tsrnn.preprocessing import decompose, measure_strength, seasonal_strength, stl

MODELS = {"add": "additive", "mul": "multiplicative"}


def months(n=96, seed=0):
    rng = np.random.default_rng(seed)
    season = np.tile(rng.normal(size=12), n // 12 + 1)[:n]
    values = np.exp(0.01 * np.arange(n) + 0.2 * season + 0.05 * rng.normal(size=n))
    return pd.Series(values, pd.date_range("2010-01", periods=n, freq="MS"), name="sales")


@pytest.mark.parametrize(
    ("n", "period"), [(24, 12), (25, 12), (49, 12), (131, 12), (60, 7), (9, 4), (300, 24), (61, 2)]
)
@pytest.mark.parametrize("seasonal", [11, 7])
def test_stl_of_many_series_is_that_of_statsmodels(n, period, seasonal):
    values = np.random.default_rng(n).normal(size=(4, n)).cumsum(1)
    trend, season = stl(values, period, seasonal)
    for row, T, S in zip(values, trend, season, strict=True):
        fit = STL(row, period=period, seasonal=seasonal, seasonal_deg=0).fit()
        np.testing.assert_allclose(T, fit.trend, atol=1e-10)
        np.testing.assert_allclose(S, fit.seasonal, atol=1e-10)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("period", [12, 5])
def test_the_classical_decomposition_is_that_of_statsmodels(model, period):
    y = months()
    parts = decompose(y, period, method="classical", model=model)
    expected = seasonal_decompose(y, MODELS[model], period=period)
    for name, column in (("trend", "trend"), ("season", "seasonal"), ("remainder", "resid")):
        np.testing.assert_allclose(parts[name], getattr(expected, column), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("method", ["stl", "classical"])
def test_parts_make_up_the_series(method):
    y = months()
    added, multiplied = (decompose(y, method=method, model=model) for model in MODELS)
    middle = slice(6, -6)  # where the classical trend is
    np.testing.assert_allclose(added.sum(axis=1)[middle], y[middle])
    np.testing.assert_allclose(multiplied.prod(axis=1)[middle], y[middle])
    pd.testing.assert_index_equal(added.index, y.index)


def test_a_panel_of_unequal_lengths_is_decomposed_series_by_series():
    first, second = months(), months(50, seed=1)
    long = pd.concat([s.rename_axis("ds").reset_index(name="y").assign(unique_id=name)
                      for name, s in (("a", first), ("b", second))])  # fmt: skip
    parts = decompose(long)
    assert parts.columns.tolist() == ["unique_id", "ds", "trend", "season", "remainder"]
    for name, alone in (("a", first), ("b", second)):
        rows = parts[parts.unique_id == name]
        np.testing.assert_allclose(rows["season"], decompose(alone)["season"], atol=1e-12)
    from_polars = decompose(pl.DataFrame({name: long[name].to_list() for name in long}))
    assert isinstance(from_polars, pl.DataFrame)
    np.testing.assert_array_equal(from_polars["trend"], parts["trend"])


def test_columns_of_a_wide_frame_keep_their_names():
    parts = decompose(pd.DataFrame({"u": months(), "v": months(seed=1)}))
    assert parts.columns.tolist() == [
        f"{u}-{p}" for u in "uv" for p in ("trend", "season", "remainder")
    ]


def test_missing_values_are_bridged_and_have_no_remainder():
    y = months()
    y.iloc[[20, 21]] = np.nan
    parts = decompose(y)
    assert parts["remainder"].isna().sum() == 2
    pd.testing.assert_series_equal(parts["trend"], decompose(y.interpolate())["trend"])


def test_strength_is_its_formula():
    frame = pd.DataFrame({"strong": months(), "noise": np.random.default_rng(0).normal(size=96)})
    strength = seasonal_strength(frame)
    for name in frame:
        fit = STL(frame[name].to_numpy(), period=12, seasonal=11, seasonal_deg=0).fit()
        expected = 1 - fit.resid.var() / (fit.resid + fit.seasonal).var()
        np.testing.assert_allclose(strength[name], max(0.0, expected), rtol=1e-9)


def test_strength_of_constant_short_and_empty_rows_is_zero():
    values = np.full((3, 40), np.nan)
    values[0], values[1, :8] = 5.0, np.arange(8.0)
    assert measure_strength(values, 4).tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"period": 60}, "at least 120 rows; 'sales' has 96"),
        ({"period": 1}, "Give period"),
        ({"method": "x11"}, "method must be"),
        ({"model": "mul"}, "positive values"),
    ],
)
def test_bad_calls_are_refused(arguments, words):
    y = months()
    y.iloc[0] = -1.0
    with pytest.raises(ValueError, match=words):
        decompose(y, **arguments)
