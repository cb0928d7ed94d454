"""Tests of one-step errors against statsmodels, and what they say of right and wrong models."""

import copy

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chisquare
from sklearn.exceptions import NotFittedError
from statsmodels.stats.diagnostic import acorr_ljungbox, acorr_lm, het_arch
from statsmodels.stats.stattools import jarque_bera
from statsmodels.tsa.stattools import acf

from tsrnn import ARMA, GARCH, VARMA, ParaRNNForecaster, backtest, diagnose

SMALL = {"input_size": 8, "hidden_size": 4, "n_layers": 1, "max_epochs": 1, "random_state": 0}


def moving_average(n, seed=0):
    e = np.random.default_rng(seed).normal(size=n + 1)
    return pd.Series(e[1:] + 0.8 * e[:-1], pd.date_range("2001", periods=n, freq="D"), name="y")


@pytest.fixture(scope="module")
def fitted():
    return ARMA(order=(0, 1)).fit(moving_average(800)[:400])


@pytest.fixture(scope="module")
def later():
    return moving_average(800)[400:]


def loop(model, rows):
    """Errors and deciles of one-step forecasts, the obvious way."""
    model, errors, quantiles = copy.deepcopy(model), [], []
    for t in range(len(rows)):
        made = model.predict(1, level=[20, 40, 60, 80]).iloc[0]
        names = [f"y-lo-{L}" for L in (80, 60, 40, 20)] + ["y"]
        names += [f"y-hi-{L}" for L in (20, 40, 60, 80)]
        errors.append(rows.iloc[t] - made["y"])
        quantiles.append(made[names].to_numpy())
        model.update(rows.iloc[t : t + 1])
    return np.array(errors), np.array(quantiles)


class TestForecaster:
    def test_errors_are_those_of_a_loop(self, fitted, later):
        rows = later[:150]
        found = diagnose(fitted, rows)
        errors, quantiles = loop(fitted, rows)
        np.testing.assert_allclose(found.residuals["residual"], errors)
        bins = (rows.to_numpy()[:, None] > quantiles).sum(1)
        np.testing.assert_array_equal(found.residuals["pit_bin"], bins)
        np.testing.assert_array_equal(found.pit["count"], np.bincount(bins, minlength=10))
        np.testing.assert_allclose(found.pit["density"], np.bincount(bins, minlength=10) / 15)

    def test_a_network_in_one_pass(self):
        y = moving_average(120, 1)
        model = ParaRNNForecaster(horizon=3, **SMALL).fit(y[:90])
        errors, _ = loop(model, y[90:])
        found = diagnose(model, y[90:])
        np.testing.assert_allclose(found.residuals["residual"], errors, rtol=1e-4, atol=1e-5)
        assert found.models == ["ParaRNN"]

    def test_statistics_are_those_of_statsmodels(self, fitted, later):
        found = diagnose(fitted, later, lags=6)
        e, row = found.residuals["residual"].to_numpy(), found.tests.iloc[0]
        box = acorr_ljungbox(e, [6]).iloc[0]
        assert row["ljung_box"] == pytest.approx(box["lb_stat"])
        assert row["ljung_box_pvalue"] == pytest.approx(box["lb_pvalue"])
        arch = het_arch(e, nlags=6, result_object=True)
        assert (row["arch_lm"], row["arch_lm_pvalue"]) == pytest.approx((arch.lm, arch.lmpval))
        assert row["jarque_bera"] == pytest.approx(jarque_bera(e)[0])
        assert (row["n"], row["lags"]) == (400, 6)
        np.testing.assert_allclose(found.acf["acf"], acf(e, nlags=6, fft=False)[1:])
        assert row["pit_pvalue"] == pytest.approx(chisquare(found.pit["count"]).pvalue)

    def test_is_left_as_it_is(self, fitted, later):
        before = fitted.predict(2)
        diagnose(fitted, later)
        pd.testing.assert_series_equal(fitted.predict(2), before)

    @pytest.mark.slow
    def test_panels_wide_frames_and_known_columns(self, later):
        wide = pd.DataFrame({"u": later, "v": later.to_numpy()[::-1]})
        alone = [diagnose(ARMA(order=(1, 0)).fit(wide[c][:300]), wide[c][300:]) for c in "uv"]
        both = diagnose(ARMA(order=(1, 0)).fit(wide[:300]), wide[300:])
        assert list(both.tests.index) == [("ARMA", "u"), ("ARMA", "v")]
        for name, one in zip("uv", alone, strict=True):
            np.testing.assert_allclose(both.tests.loc[("ARMA", name)], one.tests.iloc[0])
        long = wide.rename_axis("ds").melt(ignore_index=False, var_name="unique_id", value_name="y")
        long = long.reset_index()
        past, rest = (long[(long["ds"] < wide.index[300]) == known] for known in (True, False))
        panel = diagnose(ARMA(order=(1, 0)).fit(past), rest)
        np.testing.assert_allclose(panel.tests, both.tests)
        some = diagnose(ARMA(order=(1, 0)).fit(past), rest[rest["unique_id"] == "v"])
        np.testing.assert_allclose(some.tests.loc[("ARMA", "v")], alone[1].tests.iloc[0])
        known = long.assign(x=np.sin(np.arange(len(long))))
        past, rest = (known[(known["ds"] < wide.index[300]) == k] for k in (True, False))
        given = diagnose(ARMA(order=(1, 0), known_ahead="x").fit(past), rest)
        assert given.tests["n"].tolist() == [100, 100]

    def test_several_targets(self, later):
        wide = pd.DataFrame({"u": later, "v": later.shift(-1).bfill().ffill() + 0.1 * later**2})
        found = diagnose(VARMA(order=(1, 0)).fit(wide[:300]), wide[300:])
        assert list(found.tests.index) == [("VARMA", "u"), ("VARMA", "v")]


@pytest.mark.parametrize(
    ("factor", "level"), [(1e-9, 0), (1e9, 0), (1, 1e8), (-1, 1e11), (1e100, 0)]
)
def test_statistics_do_not_depend_on_the_unit_and_have_their_digits_at_any_level(factor, level):
    x = np.random.default_rng(0).normal(size=200)
    e = factor * x + level
    days = pd.date_range("2024-01-01", periods=200)
    frame = pd.DataFrame({"unique_id": "a", "ds": days, "cutoff": days, "y": e, "zero": 0.0})
    row = diagnose(frame, lags=4).tests.iloc[0]
    # The squares of errors with a mean, but for a constant and a factor.
    squares = x**2 if not level else 2 * x + factor * x**2 / level
    expected = (
        acorr_ljungbox(x, [4])["lb_stat"].iloc[0],
        acorr_lm(squares, nlags=4, result_object=True).lm,
        jarque_bera(x)[0],
    )
    got = row[["ljung_box", "arch_lm", "jarque_bera"]].astype(float)
    np.testing.assert_allclose(got, expected, rtol=1e-8 + 1e-14 * level)


class TestVerdicts:
    @pytest.mark.slow
    def test_a_right_model_passes(self):
        n, rejected = 60, {"ljung_box": 0, "arch_lm": 0, "jarque_bera": 0, "pit": 0}
        wide = pd.DataFrame({i: moving_average(900, i) for i in range(n)})
        tests = diagnose(ARMA(order=(0, 1)).fit(wide[:600]), wide[600:]).tests
        for name in rejected:
            share = (tests[f"{name}_pvalue"] < 0.05).mean()
            assert share < 0.05 + 3 * np.sqrt(0.05 * 0.95 / n), name

    def test_a_wrong_mean_and_a_wrong_variance_are_found(self, later):
        wrong = ARMA(order=(1, 0)).fit(moving_average(800)[:400])
        assert diagnose(wrong, later).tests["ljung_box_pvalue"].item() < 1e-3
        loud = later * 2
        assert (
            diagnose(ARMA(order=(0, 1)).fit(moving_average(800)[:400]), loud)
            .tests["pit_pvalue"]
            .item()
            < 1e-6
        )


class TestBacktest:
    def test_first_steps_of_all_models(self, later):
        models = [ARMA(order=(0, 1)), GARCH()]
        frame = backtest(models, later, h=3, n_windows=60, step_size=1, refit=False, level=[80])
        found = diagnose(frame)
        assert found.models == ["ARMA", "GARCH"]
        first = frame.iloc[::3]
        errors = found.residuals.loc[("ARMA", "y"), "residual"]
        np.testing.assert_allclose(errors, first["y"] - first["ARMA"])
        bins = sum(
            (first["y"] > first[c]).astype(int) for c in ("ARMA-lo-80", "ARMA", "ARMA-hi-80")
        )
        np.testing.assert_array_equal(found.residuals.loc[("ARMA", "y"), "pit_bin"], bins)
        counts = np.bincount(bins, minlength=4)
        expected = np.array([0.1, 0.4, 0.4, 0.1]) * 60
        assert found.tests.loc[("ARMA", "y"), "pit"] == pytest.approx(
            chisquare(counts, expected)[0]
        )

    def test_missing_values_are_left_out(self, later):
        y = later[:100].copy()
        y.iloc[[-5, -9]] = np.nan
        frame = backtest(ARMA(order=(0, 1), missing="keep"), y, h=1, n_windows=30, refit=False)
        found = diagnose(frame)
        assert found.tests["n"].item() == 28
        assert np.isfinite(found.tests.drop(columns=["pit", "pit_pvalue"]).to_numpy()).all()

    def test_the_order_of_rows_does_not_matter(self, later):
        frame = backtest(ARMA(order=(0, 1)), later, h=2, n_windows=50, step_size=1, refit=False)
        turned = frame.sample(frac=1, random_state=0)
        np.testing.assert_array_equal(diagnose(turned).tests, diagnose(frame).tests)
        bare = turned.copy()
        bare.attrs = {}
        assert diagnose(bare).steps_apart == 1

    def test_errors_apart_are_said_to_be(self, later):
        frame = backtest(ARMA(order=(0, 1)), later, h=4, n_windows=40, step_size=3, refit=False)
        bare = frame.copy()
        bare.attrs = {}
        assert [diagnose(f).steps_apart for f in (frame, bare)] == [3, 3]
        assert "a lag is 3 steps" in diagnose(frame).summary()
        assert (
            "steps apart"
            not in diagnose(
                backtest(ARMA(order=(0, 1)), later, h=1, n_windows=40, refit=False)
            ).summary()
        )

    def test_columns_of_text_and_flags_are_no_models(self, later):
        frame = backtest(ARMA(order=(0, 1)), later, h=1, n_windows=20, refit=False)
        more = frame.assign(group="a", holiday=True)
        assert diagnose(more).models == ["ARMA"]
        with pytest.raises(ValueError, match="a numeric column of forecasts for each model"):
            diagnose(more.drop(columns="ARMA"))

    def test_few_errors_are_put_into_wider_bins(self, later):
        model = ARMA(order=(0, 1)).fit(moving_average(800)[:400])
        found = diagnose(model, later[:40])
        counts = found.pit["count"].to_numpy().reshape(5, 2).sum(1)
        assert found.tests["pit"].item() == pytest.approx(chisquare(counts).statistic)

    def test_too_few_errors_give_no_tests(self, later):
        found = diagnose(backtest(ARMA(order=(0, 1)), later, h=1, n_windows=4))
        assert found.tests[["ljung_box", "arch_lm", "jarque_bera", "pit"]].isna().all(axis=None)
        assert found.tests["n"].item() == 4
        assert "-" in str(found)


class TestPage:
    def test_by_series(self, fitted, later):
        page = str(diagnose(fitted, later))
        assert "ARMA: 1 series, 400 errors" in page
        assert all(test in page for test in ("Ljung-Box", "ARCH-LM", "Jarque-Bera", "PIT"))
        assert max(map(len, page.splitlines())) <= 77

    def test_of_many_series_gives_shares(self):
        wide = pd.DataFrame({i: moving_average(120, i) for i in range(12)})
        page = diagnose(ARMA(order=(0, 1)).fit(wide[:80]), wide[80:]).summary()
        assert "of 12 series" in page


class TestRefusals:
    @pytest.mark.parametrize(
        ("make", "error", "message"),
        [
            (lambda m, y: (m,), ValueError, "give df, rows that follow"),
            (lambda m, y: (ARMA(), y), NotFittedError, "not fitted yet"),
            (lambda m, y: ("ARMA", y), TypeError, "must be a fitted forecaster of tsrnn or"),
            (lambda m, y: (m, y[5:]), ValueError, "new rows must begin"),
            (lambda m, y: (m, y[:0]), ValueError, "empty"),
            (lambda m, y: (pd.DataFrame({"x": [1]}),), ValueError, "missing unique_id, ds"),
            (lambda m, y: (backtest(m, y, h=1), y), ValueError, "df is for a fitted forecaster"),
            (
                lambda m, y: (backtest(GARCH(), y, h=1, kind="variance"),),
                ValueError,
                "a backtest of variances",
            ),
        ],
    )
    def test_are_said(self, fitted, later, make, error, message):
        with pytest.raises(error, match=message):
            diagnose(*make(fitted, later))

    def test_of_a_missing_value(self, later):
        refusing = ARMA(order=(0, 1), missing="error")
        model, rows = refusing.fit(moving_average(800)[:400]), later[:20].copy()
        rows.iloc[7] = np.nan
        with pytest.raises(ValueError, match=r"no missing values.*2002-02-12"):
            diagnose(model, rows)
        keeping = ARMA(order=(0, 1), missing="keep").fit(moving_average(800)[:400])
        assert diagnose(keeping, rows).tests["n"].item() == 19

    def test_of_other_attributes_is_none(self, fitted, later):
        frame = backtest(fitted, later[:60], h=1, n_windows=20)
        expected = diagnose(frame).tests
        frame.attrs = {"backtest": "of May"}
        pd.testing.assert_frame_equal(diagnose(frame).tests, expected)

    def test_of_lags(self, fitted, later):
        with pytest.raises(ValueError, match="lags must be a positive integer"):
            diagnose(fitted, later, lags=0)

    def test_of_unequal_lengths(self, later):
        long = pd.concat(
            [later.rename("y").rename_axis("ds").reset_index().assign(unique_id=u) for u in "ab"]
        )
        model = ARMA(order=(0, 1)).fit(long[long["ds"] < later.index[300]])
        rest = long[(long["ds"] >= later.index[300])].iloc[:-1]
        with pytest.raises(ValueError, match="'a' has 100, 'b' another number"):
            diagnose(model, rest)
