"""Optima beside those of nested models and of other packages, where there are several maxima."""

import time
import warnings
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from arch import arch_model
from statsmodels.tsa.statespace.sarimax import SARIMAX
from statsmodels.tsa.statespace.tests.results.results_sarimax import wpi1_data

from tsrnn.datasets import (
    load_danish_data,
    load_interest_inflation,
    load_macrodata,
    load_sp500,
    load_wti,
)
from tsrnn.linear import ARMA, CES, GARCH, VARMA, VECMGARCH
from tsrnn.linear._mean import Mean
from tsrnn.linear.vech._fit import candidates
from tsrnn.linear.vech._prepare import prepare
from tsrnn.linear.vech._specification import Specification
from tsrnn.linear.vech._structure import coefficients

ROUNDING = 1e-6
DOW = Path(__file__).parents[2].parent / "shared/data/finance/dji30ret.csv.gz"


def window(load, first, column=0, rows=1000):
    """Returns in percent of some rows."""
    prices = load().iloc[:, column].dropna()
    return (100 * np.log(prices).diff().dropna()).to_numpy()[first : first + rows]


@pytest.fixture(scope="module")
def stocks():
    """Return windows in which searches from one start end at a local maximum."""
    return pd.DataFrame(
        {
            "oil 3000": window(load_wti, 3000),
            "oil 6000": window(load_wti, 6000),
            "index 1500": window(load_sp500, 1500, 4),
        }
    )


@pytest.fixture(scope="module")
def draws():
    """Return series of an ARMA(2, 1), whose larger models have roots that nearly cancel."""
    e, y = np.random.default_rng(0).standard_normal((300, 4)), np.zeros((300, 4))
    for t in range(2, 300):
        y[t] = 1.2 * y[t - 1] - 0.5 * y[t - 2] + e[t] + 0.4 * e[t - 1]
    return pd.DataFrame(y[100:])


class TestGARCH:
    @pytest.mark.few("garch", "egarch")
    @pytest.mark.parametrize("vol", ["garch", "gjr", "egarch"])
    def test_no_nested_model_is_higher(self, stocks, vol):
        highest = {}
        orders = [(1, 0), (1, 1)] if vol == "egarch" else [(1, 1), (1, 2), (2, 1), (2, 2)]
        kinds = ("garch", "gjr") if vol == "gjr" else (vol,)
        for kind in kinds:
            for p, q in orders:
                loglik = GARCH(order=(p, q), vol=kind, mean="zero").fit(stocks).loglik_
                for (other, i, j), inner in highest.items():
                    if other in ("garch", kind) and i <= p and j <= q:
                        assert (loglik >= inner - ROUNDING).all(), (kind, p, q, other, i, j)
                highest[kind, p, q] = loglik

    @pytest.mark.few("garch")
    @pytest.mark.parametrize(("vol", "order"), [("garch", (1, 2)), ("gjr", (2, 2))])
    def test_no_optimum_is_below_that_of_arch(self, stocks, vol, order):
        ours = GARCH(order=order, vol=vol).fit(stocks).loglik_
        for name in stocks:
            p, q = order
            oracle = arch_model(stocks[name], p=p, o=p if vol == "gjr" else 0, q=q, rescale=False)
            theirs = oracle.fit(disp="off", show_warning=False, tol=1e-10).loglikelihood
            assert ours[name] > theirs - 1e-3

    @pytest.mark.slow
    def test_an_arma_mean_is_not_below_simpler_ones_nor_a_maximum_where_its_parts_nearly_cancel(
        self, draws
    ):
        """Of noise, beside other starts on the line where a root of each part is the same."""
        rng = np.random.default_rng(3)
        noise = pd.DataFrame(rng.standard_normal((400, 6)) * rng.uniform(0.5, 2, (400, 1)))
        model = GARCH(mean="arma").fit(noise)
        simpler = GARCH(mean="ar").fit(noise)
        assert (model.loglik_ >= simpler.loglik_ - ROUNDING).all()
        assert (model.params_["ma.L1"].abs() <= 1).all()
        for phi in (-0.9, -0.6, 0.6, 0.9):
            for left in (-0.05, 0.05):
                at = simpler.params_.copy()
                at.insert(2, "ma.L1", left - phi)
                at["y[1]"], at["Const"] = phi, 0.0
                other = GARCH(mean="arma").filter(noise, at)
                assert (model.loglik_ >= other.loglik_ - ROUNDING).all(), (phi, left)

    def test_kinks_of_a_mean_are_looked_beyond(self):
        bills = load_macrodata()["tbilrate"].diff().dropna()
        ours = GARCH(vol="egarch").fit(bills).loglik_.iloc[0]
        oracle = arch_model(bills, vol="EGARCH", p=1, o=1, q=1, rescale=False)
        theirs = oracle.fit(disp="off", show_warning=False, tol=1e-10).loglikelihood
        assert ours > theirs - 1e-6

    def test_starts_are_counted(self, stocks):
        model = GARCH(order=(1, 2)).fit(stocks)
        assert (model.starts_ == 11).all()  # ten of the grid, and the optimum of GARCH(1, 1)
        assert model.agreement_.between(1, 11).all()
        assert "Starts that agree" in str(model.summary("oil 3000"))
        simple = GARCH().fit(stocks)
        assert simple.starts_["index 1500"] == simple.agreement_["index 1500"] == 1
        # A variance that soon forgets may have another maximum, that of one with a long memory.
        assert (simple.starts_[simple.persistence_ < 0.9] == 7).all()
        more = GARCH(order=(1, 2), n_starts=20).fit(stocks)
        assert (more.starts_ == 21).all()
        assert (more.loglik_ >= model.loglik_ - ROUNDING).all()
        given = GARCH().filter(stocks, simple.params_)
        assert (given.starts_ == 0).all()

    @pytest.mark.parametrize("model", [ARMA, GARCH])
    def test_starts_must_be_a_number(self, draws, model):
        with pytest.raises(ValueError, match="n_starts must be"):
            model(order=(1, 1), n_starts=0).fit(draws)


class TestARMA:
    @pytest.mark.slow
    def test_no_nested_model_is_higher(self, draws):
        highest = {}
        for p, q in ((0, 0), (0, 1), (1, 0), (1, 1), (2, 1), (2, 2), (3, 2)):
            loglik = ARMA(order=(p, q)).fit(draws).loglik_
            for (i, j), inner in highest.items():
                if i <= p and j <= q:
                    assert (loglik >= inner - ROUNDING).all(), (p, q, i, j)
            highest[p, q] = loglik

    @pytest.mark.slow
    def test_starts_are_counted(self, draws):
        assert (ARMA(order=(2, 1)).fit(draws).starts_ == 1).all()
        model = ARMA(order=(2, 2)).fit(draws)
        assert (model.starts_ > 2).all()
        assert model.agreement_.between(1, model.starts_).all()
        more = ARMA(order=(1, 1), n_starts=9).fit(draws)
        assert (more.starts_ >= 9).all()

    @pytest.mark.slow
    def test_seasonal_maxima_on_both_sides_of_the_circle(self):
        """Wholesale prices of Greene; Stata's log-likelihood."""
        prices = pd.Series(wpi1_data)
        model = ARMA((0, 0, 0), "c", seasonal_order=(0, 0, 3, 4)).fit(prices)
        assert model.loglik_.iloc[0] == pytest.approx(-407.9580, abs=1e-3)

    @pytest.mark.few("order1", "order2")
    @pytest.mark.parametrize(
        ("order", "seasonal"), [((5, 0, 5), None), ((1, 0, 1), (1, 0, 1, 4)), ((0, 0, 2), None)]
    )
    def test_random_starts_of_statsmodels_are_no_higher(self, order, seasonal):
        y = np.diff(np.random.default_rng(0).standard_normal(41))
        ours = ARMA(order, seasonal_order=seasonal).fit(pd.Series(y)).loglik_.iloc[0]
        oracle = SARIMAX(y, trend="c", order=order, seasonal_order=seasonal or (0, 0, 0, 0))
        rng, ends = np.random.default_rng(1), []
        for _ in range(2):
            start = oracle.transform_params(rng.standard_normal(oracle.k_params))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                ends.append(oracle.fit(start, disp=0, maxiter=50).llf)
        assert ours > max(ends) - 1e-3

    @pytest.mark.few("ARMA(likelihood='conditional', order=(5, 5))")
    @pytest.mark.parametrize(
        ("model", "needed"),
        [
            (ARMA((5, 0, 5)), 22),
            (ARMA((5, 1, 5)), 22),
            (ARMA((5, 5), likelihood="conditional"), 22),
            (ARMA((3, 0, 2), seasonal_order=(1, 0, 1, 4)), 16),
            (ARMA((1, 0, 0), seasonal_order=(0, 1, 1, 12)), 25),
        ],
        ids=str,
    )
    def test_short_series_are_refused_or_fitted_at_once(self, model, needed):
        y = pd.Series(np.random.default_rng(0).standard_normal(needed))
        with pytest.raises(ValueError, match=f"at least {needed} observations.*has {needed - 1}"):
            model.fit(y.iloc[1:])
        begin = time.process_time()
        model.fit(y)
        assert time.process_time() - begin < 8  # some tens of seconds by one order after another


class TestVARMA:
    @pytest.mark.slow
    def test_no_nested_model_is_higher(self):
        rng = np.random.default_rng(0)
        y = pd.DataFrame(np.diff(rng.standard_normal((41, 2)), axis=0), columns=["a", "b"])
        highest = {}
        for p, q in ((0, 1), (1, 0), (1, 1), (2, 1)):
            loglik = VARMA((p, q)).fit(y).loglik_.iloc[0]
            for (i, j), inner in highest.items():
                if i <= p and j <= q:
                    assert loglik >= inner - ROUNDING, (p, q, i, j)
            highest[p, q] = loglik


class TestIdentification:
    @pytest.mark.parametrize(
        ("load", "name"), [(load_interest_inflation, "Dp"), (load_danish_data, "lrm")]
    )
    def test_roots_close_to_the_unit_circle_that_the_likelihood_tells_apart(self, load, name):
        series = load()[name]
        model = ARMA((1, 1)).fit(series)
        assert model.loglik_.iloc[0] > ARMA((0, 0)).fit(series).loglik_.iloc[0] + 10
        assert not any("identified" in text for text in model.messages_.iloc[0])

    def test_noise_is_weakly_identified_at_most(self):
        noise = pd.DataFrame(np.random.default_rng(0).standard_normal((300, 40)))
        model, constant = ARMA((1, 1)).fit(noise), ARMA((0, 0)).fit(noise)
        added = model.loglik_ - constant.loglik_
        said = model.messages_.map(lambda own: any("identified" in text.lower() for text in own))
        assert (added >= -ROUNDING).all()
        assert said[added < 1].all()
        assert not said[added > 3].any()

    def test_the_message_has_the_log_likelihood_that_is_lost(self):
        noise = pd.DataFrame(np.random.default_rng(0).standard_normal((300, 3)))
        model, constant = ARMA((1, 1)).fit(noise), ARMA((0, 0)).fit(noise)
        lost = model.loglik_[0] - constant.loglik_[0]
        text = next(text for text in model.messages_[0] if "Weakly identified" in text)
        assert f"a log-likelihood lower by {lost:.2f} only" in text

    def test_a_series_has_the_same_message_in_a_batch(self):
        noise = pd.DataFrame(np.random.default_rng(1).standard_normal((200, 6)))
        together = ARMA((1, 1)).fit(noise)
        for name in noise:
            alone = ARMA((1, 1)).fit(noise[name]).messages_.iloc[0]
            assert together.messages_[name] == alone


class TestHighestOfRandomStarts:
    """The highest ends of random starts, which fits of earlier versions fell short of."""

    def test_a_common_factor_of_a_varma_at_a_frequency(self):
        """Complex roots of both sides nearly cancel: the fit ended 0.645 lower."""
        noise = np.random.default_rng(5).standard_normal((60, 2))
        model = VARMA((1, 1), freq=1).fit(pd.DataFrame(noise, columns=["a", "b"]))
        assert model.loglik_.iloc[0] >= -146.6178 - 1e-3
        assert model.converged_.iloc[0]

    @pytest.mark.parametrize(
        ("seasonal", "number", "highest"),
        [("simple", 103, -86.1102), ("partial", 186, -84.2716), ("full", 160, -87.5235)],
    )
    def test_narrow_maxima_of_ces(self, seasonal, number, highest):
        """On a face of the region, or along the ridge of a slow level."""
        y = simulated_quarters(200)[number]
        assert CES(seasonal, 4).fit(pd.DataFrame({"y": y})).loglik_.iloc[0] >= highest - 1e-3


def simulated_quarters(n):
    """Quarters (n, 48) with a season that multiplies or adds, in turn."""
    rng, t = np.random.default_rng(1), np.arange(48)
    level = 100 + rng.normal(0.3, 1, (n, len(t))).cumsum(1)
    season = np.cos(np.pi * t / 2 + rng.uniform(0, 6, (n, 1))) * rng.uniform(2, 10, (n, 1))
    product = level * (1 + season / 60)
    values = np.where(np.arange(n)[:, None] % 2, product, level + season)
    return values + rng.normal(0, 1, values.shape)


class TestVech:
    @pytest.mark.slow
    @pytest.mark.skipif(not DOW.exists(), reason="needs the returns of the Dow Jones stocks")
    @pytest.mark.parametrize(
        ("pair", "highest"), [(["IBM", "MSFT"], -4926.167), (["AA", "AXP"], -5840.291)]
    )
    def test_the_highest_of_several_maxima(self, pair, highest):
        """Random starts end 4.9, 32.8 and 39.6 lower as often; C C' has rank one at the highest."""
        returns = 100 * pd.read_csv(DOW, index_col=0)[pair].iloc[-1500:].reset_index(drop=True)
        model = VECMGARCH().fit(returns)
        assert model.loglik_.iloc[0] == pytest.approx(highest, abs=1e-2)
        assert any("rank 1 of 2" in text for text in model.messages_.iloc[0])

    @pytest.mark.few("pair0")
    @pytest.mark.skipif(not DOW.exists(), reason="needs the returns of the Dow Jones stocks")
    @pytest.mark.parametrize(
        ("pair", "first", "highest"),
        [(["MSFT", "JNJ"], 2255, -1900.719), (["DD", "PG"], 107, -1718.566)],
    )
    def test_shocks_and_covariance_that_turn_by_angles_of_their_own(self, pair, first, highest):
        """Without starts for both angles fits ended 6.3 and 3.8 below random starts."""
        returns = 100 * pd.read_csv(DOW, index_col=0)[pair].iloc[first : first + 500]
        model = VECMGARCH().fit(returns.reset_index(drop=True))
        assert model.loglik_.iloc[0] >= highest - 2e-3

    @pytest.mark.few("scalar")
    @pytest.mark.parametrize("structure", ["scalar", "diagonal", "bekk", "full"])
    def test_a_fit_is_a_function_of_the_data(self, structure):
        noise = pd.DataFrame(np.random.default_rng(9).standard_normal((200, 2)), columns=["a", "b"])
        first, *others = [
            VECMGARCH(structure=structure, mean="zero", n_starts=1, random_state=seed).fit(noise)
            for seed in (None, None, 7)
        ]
        for other in others:
            pd.testing.assert_frame_equal(other.params_, first.params_, rtol=0, atol=0)

    @pytest.mark.few("scalar", "diagonal", "full")
    @pytest.mark.parametrize("kind", ["scalar", "diagonal", "bekk", "full"])
    def test_starts_lie_apart(self, kind):
        """Any two differ in the constant, Theta or Phi, so that their agreement counts."""
        spec = Specification(kind, 1, 1, False, Mean("constant"), tuple("abc"), False, 32)
        y = np.random.default_rng(0).standard_normal((300, 3)) @ np.array(
            [[1.0, 0.4, 0.2], [0.0, 0.8, -0.3], [0.0, 0.0, 2.0]]
        )
        rows = candidates(spec, prepare(spec, y))
        models = [coefficients(spec.factors, 3, row) for row in rows]
        flat = [np.concatenate([np.ravel(part) for part in (m.intercept, *m.theta, *m.phi)])
                for m in models]  # fmt: skip
        assert len(rows) >= 4
        assert min(np.abs(a - b).max() for a, b in combinations(flat, 2)) > 0.01

    @pytest.mark.slow
    @pytest.mark.parametrize("seed", [9, 10])
    def test_no_structure_is_below_one_nested_in_it(self, seed):
        noise = np.random.default_rng(seed).standard_normal((150, 2))
        frame = pd.DataFrame(noise, columns=["a", "b"])

        def loglik(structure, order=(1, 1)):
            model = VECMGARCH(order, structure=structure, n_starts=1, random_state=0).fit(frame)
            return model.loglik_.iloc[0]

        scalar, diagonal, bekk = loglik("scalar"), loglik("diagonal"), loglik("bekk")
        assert diagonal >= scalar - ROUNDING
        assert bekk >= scalar - ROUNDING
        assert loglik("full") >= max(diagonal, bekk) - ROUNDING
        assert loglik("scalar", (1, 2)) >= scalar - ROUNDING
