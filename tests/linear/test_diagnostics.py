"""Tests of residuals against statsmodels and plain formulas."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.diagnostic import acorr_ljungbox, het_arch
from statsmodels.stats.stattools import jarque_bera

from tsrnn.linear import _diagnostics
from tsrnn.linear._diagnostics import COLUMNS, diagnose


def table(residuals, **keywords):
    return dict(zip(COLUMNS, diagnose([residuals], **keywords)[0], strict=True))


@pytest.fixture(scope="module")
def residuals():
    return np.random.default_rng(3).standard_t(5, 200)


@pytest.mark.parametrize(
    ("n", "n_params", "expected"), [(200, 0, 10), (30, 0, 6), (200, 12, 13), (30, 6, 7)]
)
def test_default_lags(n, n_params, expected):
    x = np.random.default_rng(0).normal(size=n)
    assert table(x, n_params=n_params)["lags"] == expected


def test_lags_within_the_order_have_no_p_value(residuals):
    made = table(residuals, lags=2, n_params=2)
    assert np.isnan(made["ljung_box_pvalue"])
    assert np.isfinite(made["ljung_box_squares_pvalue"])


def test_missing_residuals_are_left_out(residuals):
    gap = np.insert(residuals, [5, 50], np.nan)
    np.testing.assert_array_equal(diagnose([gap]), diagnose([residuals]))


@given(
    st.integers(0, 40), st.sampled_from(["constant", "signs", "nan", "noise"]), st.integers(1, 12)
)
@settings(max_examples=60, deadline=None)
def test_never_fails(n, kind, lags):
    draw = np.random.default_rng(n)
    x = {
        "constant": np.full(n, 0.3),
        "signs": draw.choice([-1.0, 1.0], n),
        "nan": np.full(n, np.nan),
        "noise": draw.normal(size=n),
    }[kind]
    made = diagnose([x], lags=lags)[0]
    assert made.shape == (len(COLUMNS),)
    enough = kind == "noise" and n >= 2 * lags + 2
    assert np.isfinite(made[1:]).all() == enough


@pytest.mark.parametrize("at_once", [1, 3000, 2_000_000])
def test_many_units_as_statsmodels_one_by_one(monkeypatch, at_once):
    monkeypatch.setattr(_diagnostics, "AT_ONCE", at_once)
    draw = np.random.default_rng(5)
    units = [draw.standard_t(4, n) for n in (80, 3, 50, 80, 0, 50, 81)]
    units[3][[4, 60]] = np.nan
    units[5][:] = 1.0
    units[6][:] = 0.0
    units[6][40] = 5.0  # one square: its lags are all there is to explain it by
    made = diagnose(units, lags=4, n_params=1)
    assert np.isnan(made[[1, 4, 5], 1:]).all()
    for i in (0, 2, 3, 6):
        x = units[i][np.isfinite(units[i])]
        plain, squares = acorr_ljungbox(x, [4], model_df=1), acorr_ljungbox(x**2, [4])
        expected = [
            *plain.to_numpy()[0],
            *squares.to_numpy()[0],
            *het_arch(x, nlags=4, store=True)[:2],
            *jarque_bera(x),
        ]
        np.testing.assert_allclose(made[i, 1:], expected, rtol=1e-9, atol=1e-12)


def test_arch_effects_and_dependence_are_seen():
    draw = np.random.default_rng(8)
    e = draw.normal(size=800)
    h = np.ones(800)
    for t in range(1, 800):
        h[t] = 0.2 + 0.5 * e[t - 1] ** 2 + 0.3 * h[t - 1]
        e[t] *= np.sqrt(h[t])
    made = table(e)
    assert made["arch_lm_pvalue"] < 1e-4
    assert made["ljung_box_squares_pvalue"] < 1e-4
    assert table(np.cumsum(e))["ljung_box_pvalue"] < 1e-10
