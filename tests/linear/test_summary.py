"""The page of a fitted model: its layout is statsmodels', its numbers those of the frames."""

import html
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from statsmodels.tsa.arima.model import ARIMA

from tsrnn.linear._summary import LinearSummary


@pytest.fixture(scope="module")
def summary(normal, draws):
    return normal().fit(draws).summary()


def numbers(line):
    return [float(part) for part in line.split()[1:]]


class TestOfOneUnit:
    def test_has_the_table_of_statsmodels(self, summary, draws):
        oracle = str(ARIMA(draws, order=(0, 0, 0)).fit(cov_type="approx").summary()).splitlines()
        ours = str(summary).splitlines()
        head = next(line for line in oracle if "P>|z|" in line)
        assert head in ours
        rules = {line for line in oracle if set(line) in ({"="}, {"-"}) and len(line) == 78}
        assert rules <= set(ours)
        for name, theirs in (("mu", "const"), ("sigma2", "sigma2")):
            line = next(line for line in ours if line.startswith(f"{name} "))
            other = next(line for line in oracle if line.startswith(f"{theirs} "))
            assert len(line) == len(other)
            np.testing.assert_allclose(numbers(line), numbers(other), atol=0.0021)

    def test_has_the_criteria_of_statsmodels(self, summary, draws):
        oracle = ARIMA(draws, order=(0, 0, 0)).fit()
        for name, value in (("AIC", oracle.aic), ("BIC", oracle.bic), ("HQIC", oracle.hqic)):
            assert re.search(rf"{name}: +{value:.3f}", str(summary))
        assert re.search(r"No. Observations: +120$", str(summary), re.M)
        assert re.search(r"^Series: +y ", str(summary), re.M)

    def test_states_conventions_sample_and_how_it_ended(self, summary):
        text = str(summary)
        for pattern in (
            r"Model: +Normal", r"Sample: +2010-01-01", r"^ +- 2019-12-01",
            r"Covariance Type: +hessian", r"Likelihood: +exact", r"Iterations: +0",
            r"Gradient norm: +\d.\de[-+]\d+", r"Converged: +yes",
            r"\[1\] Standard errors: inverse of minus the Hessian\.", r"\[2\] A note of the model",
        ):  # fmt: skip
            assert re.search(pattern, text, re.M), pattern

    def test_tests_are_those_of_statsmodels(self, summary, draws):
        oracle = ARIMA(draws, order=(0, 0, 0)).fit()
        q = oracle.test_serial_correlation("ljungbox", lags=1)[0]
        jb = oracle.test_normality("jarquebera")[0]
        row = summary.tests.iloc[0]
        made = row[["ljung_box", "ljung_box_pvalue", "jarque_bera", "jarque_bera_pvalue"]]
        np.testing.assert_allclose(made, [*q[:, 0], *jb[:2]], rtol=1e-5)
        assert re.search(rf"Ljung-Box \(L1\) \(Q\): +{q[0, 0]:.2f} +Jarque-Bera", str(summary))

    def test_lines_fit_the_page(self, summary):
        assert max(map(len, str(summary).splitlines())) <= 78

    def test_frames(self, normal, draws):
        model = normal().fit(draws)
        table = model.summary(cov_type="robust").params
        np.testing.assert_array_equal(table["coef"], model.params_.loc["y"])
        ends = model.conf_int(cov_type="robust").loc["y"]
        np.testing.assert_array_equal(table[["lower", "upper"]], ends[["lower", "upper"]])

    def test_formats_are_those_of_one_page(self, summary):
        assert str(summary) == repr(summary) == summary.as_text()
        assert html.unescape(summary.as_html()) == f"<pre>{summary.as_text()}</pre>"
        assert summary._repr_html_() == summary.as_html()
        assert "P&gt;|z|" in summary.as_html()

    def test_fixed_parameters_have_dashes_and_a_line_why(self, normal, normal_with, draws):
        def infer(self, sample, optimum):
            estimates, constants = normal.family_class.infer(self, sample, optimum)
            return replace(estimates, fixed=np.array([[True, False]])), constants

        Bound = normal_with(infer=infer)
        text = str(Bound().fit(draws).summary())
        line = next(line for line in text.splitlines() if line.startswith("mu "))
        assert line.split()[2:] == ["-"] * 5
        assert "\n-: none, as the parameter is on a boundary" in text

    def test_a_singular_covariance_is_said(self, normal, normal_with, draws):
        def infer(self, sample, optimum):
            estimates, constants = normal.family_class.infer(self, sample, optimum)
            return replace(estimates, hessian=np.ones((1, 2, 2))), constants

        Flat = normal_with(infer=infer)
        assert "singular or not positive definite" in str(Flat().fit(draws).summary())

    def test_periods_and_integers(self, normal, draws):
        periods = draws.set_axis(draws.index.to_period("M"))
        assert normal().fit(periods).summary().model["Sample"] == "2010-01"
        steps = draws.reset_index(drop=True)
        assert normal().fit(steps).summary().model[""] == "- 119"


class TestOfManyUnits:
    def test_is_a_table(self, normal, draws_panel):
        model = normal().fit(draws_panel)
        summary = model.summary()
        assert summary.params.index.tolist() == ["a", "b", "c"]
        pd.testing.assert_frame_equal(summary.params[["mu", "sigma2"]], model.params_)
        text = str(summary)
        assert re.search(r"^b +\d+\.\d{4} ", text, re.M)
        assert re.search(r"Fitted: +3 of 3$", text, re.M)
        assert "3 units" in text

    def test_long_ones_are_cut(self, normal, draws):
        frame = pd.DataFrame({f"s{i}": draws + i for i in range(50)})
        text = str(normal().fit(frame).summary())
        shown = re.findall(r"^s(\d+) ", text, re.M)
        assert [int(i) for i in shown] == [*range(10), *range(40, 50)]
        assert "\n...\n" in text
        assert "50 units" in text

    def test_of_one_target_of_one_series(self, normal, draws_panel):
        frame = draws_panel.assign(z=-2 * draws_panel["y"])
        model = normal(target=["y", "z"]).fit(frame)
        summary = model.summary(("b", "z"))
        assert summary.params.loc["mu", "coef"] == model.params_.loc[("b", "z"), "mu"]
        assert summary.tests.index.tolist() == [("b", "z")]
        assert summary.model[""] == "- 2016-08-01"


def page(params, tests=None):
    return LinearSummary("T", {"Model": "M"}, {"AIC": "1.0"}, params, tests, pd.DataFrame(), [])


class TestNumbers:
    @pytest.mark.parametrize(
        ("value", "text"),
        [(0.0, "0.0000"), (1.0761e-7, "1.076e-07"), (0.15313, "0.1531"), (-12345.6, "-1.235e+04")],
    )
    def test_of_any_size_are_seen(self, value, text):
        columns = {"coef": value} | dict.fromkeys(("std err", "z", "P>|z|", "lower", "upper"), 0.5)
        table = pd.DataFrame(columns, index=["omega"])
        line = next(line for line in str(page(table)).splitlines() if line.startswith("omega"))
        assert line.split()[1] == text

    def test_long_names_widen_the_page(self):
        keys = ("coef", "std err", "z", "P>|z|", "lower", "upper")
        name = "L1.e(consumption).investment"
        text = str(page(pd.DataFrame(dict.fromkeys(keys, 0.5), index=[name])))
        widths = {len(line) for line in text.splitlines() if set(line) == {"="}}
        assert widths == {len(name) + 1 + 67}

    def test_tests_of_several_targets_are_a_table(self, normal_with, draws):
        Together = normal_with(
            multivariate=True,
            values_of_units=lambda self, panel: [panel.values.ravel()],
            in_sample=lambda self, panel, units, steps: (panel.values * 0, panel.values),
        )
        frame = pd.DataFrame({"u": draws, "v": draws + draws.mean()})
        summary = Together().fit(frame).summary()
        assert summary.tests.index.tolist() == ["u", "v"]
        assert re.search(r"^jarque_bera_pvalue +\d", str(summary), re.M)
