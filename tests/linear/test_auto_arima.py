"""Automatic ARIMA against statsmodels, a search by plain loops, and bad input."""

from __future__ import annotations

import itertools
import warnings
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from statsmodels.tsa.statespace.sarimax import SARIMAX

from tsrnn import load
from tsrnn.linear import ARMA, AutoARIMA
from tsrnn.linear.arma._fast_filter import innovations
from tsrnn.linear.arma._seasonal import multiplied
from tsrnn.linear.auto_arima._candidates import Candidates, differenced, smallest_root
from tsrnn.linear.auto_arima._differences import choose_differences
from tsrnn.linear.auto_arima._likelihood import Likelihood
from tsrnn.linear.auto_arima._orders import (
    Limits,
    Order,
    criterion_values,
    full,
    neighbours,
    starts,
    stepwise,
)

PERIOD = 4
LIMITS = Limits(2, 2, 1, 1, True, 60)


def quarters(n=64, seed=0, season=3.0):
    """Random walk with a season."""
    rng = np.random.default_rng(seed)
    values = 50 + rng.normal(size=n).cumsum() + season * np.cos(np.pi * np.arange(n) / 2)
    return pd.Series(values, pd.date_range("2000-01", periods=n, freq="QS"), name="y")


def panel(n_series=6, seed=1):
    """Long frame of quarterly series of unequal lengths and scales, with a regressor."""
    rng, parts = np.random.default_rng(seed), []
    for i in range(n_series):
        y = quarters(40 + 7 * i, seed + i, season=i % 3)
        x = rng.normal(size=len(y))
        parts.append(pd.DataFrame(
            {"unique_id": f"s{i}", "ds": y.index, "y": 10.0**i * (y.to_numpy() + 2 * x), "x": x}
        ))  # fmt: skip
    return pd.concat(parts, ignore_index=True)


def chosen_arma(model, place=0, **arguments):
    """ARMA at the orders that were chosen for a unit."""
    p, d, q, P, D, Q, constant = model.fitted_.constants["order"][place].astype(int).tolist()
    m = model.fitted_.family.models.period
    seasonal = (P, D, Q, m) if P + D + Q else None
    trend = "nct"[constant and 1 + d + D]
    return ARMA((p, d, q), trend, seasonal_order=seasonal, **arguments)


def candidates_of(y, d=0, D=0):
    values = np.asarray(y, dtype=float)[None]
    series = differenced(values, None, np.array([d]), np.array([D]), PERIOD)
    return Candidates(series, "aicc", 5)


def ahead_of(frame, n=1, months=3):
    """The last n values of the regressor, some months later."""
    last = frame.groupby("unique_id").tail(n)
    return last.assign(ds=last.ds + pd.DateOffset(months=months))[["unique_id", "ds", "x"]]


class TestOrders:
    def test_neighbours_are_one_step_away_and_within_the_limits(self):
        order = Order(1, 2, 0, 1, True)
        near = list(neighbours(order, LIMITS))
        every = itertools.product(range(3), range(3), range(2), range(2))
        lags = [
            other for other in every
            if (moved := np.subtract(other, order[:4])).any() and np.abs(moved).max() == 1
            and (not moved[:2].any() or not moved[2:].any())
        ]  # fmt: skip
        assert sorted(o[:4] for o in near if o.constant) == sorted(lags)
        assert near[-1] == order._replace(constant=False)

    def test_a_search_by_steps_ends_where_no_neighbour_is_better(self):
        table = np.random.default_rng(0).normal(size=(3, 3, 3, 2, 2, 2))

        def evaluate(pairs):
            return np.array([table[i][order[:4]][int(order.constant)] for i, order in pairs])

        traces = stepwise(evaluate, [LIMITS] * 3, Order(2, 2, 1, 1, True))
        for i, trace in enumerate(traces):
            best = min(trace, key=trace.__getitem__)
            near = [(i, order) for order in neighbours(best, LIMITS)]
            assert trace[best] <= evaluate(near).min()
            assert all(order in trace for order in starts(LIMITS, Order(2, 2, 1, 1, True)))

    def test_a_full_search_fits_all_models_up_to_the_highest_order(self):
        seen = []
        full(lambda pairs: seen.extend(pairs) or np.zeros(len(pairs)), [LIMITS], 3)
        assert len(seen) == len(set(seen))
        assert len(seen) == 2 * sum(
            sum(lags) <= 3 for lags in itertools.product(range(3), range(3), range(2), range(2))
        )

    def test_criteria_are_their_formulas(self):
        loglik, k, n = np.array([-50.0, -50.0]), np.array([3, 3]), np.array([40, 4])
        aicc = criterion_values("aicc", loglik, k, n)
        assert aicc.tolist() == [100 + 6 + 2 * 3 * 4 / 36, np.inf]
        np.testing.assert_allclose(criterion_values("aic", loglik, k, n), 106)
        np.testing.assert_allclose(criterion_values("bic", loglik, k, n), 100 + 3 * np.log(n))


class TestLikelihood:
    @pytest.mark.parametrize("order", [(2, 1, 1, 1), (0, 2, 0, 1), (3, 0, 1, 0), (1, 1, 0, 0)])
    def test_values_and_gradients_are_those_of_the_plain_recursion(self, order):
        rng = np.random.default_rng(0)
        pairs = [(0, Order(*order, constant)) for constant in (True, False)]
        candidates = candidates_of(quarters(), 1, 0)
        lanes = candidates.lanes(pairs)
        params = np.where(lanes.free, rng.uniform(-0.4, 0.4, lanes.free.shape), 0.0)
        at = np.arange(len(pairs))
        evaluation = Likelihood(lanes, 5).evaluate(params, at)
        expected = lanes.exact(params, at)
        np.testing.assert_allclose(evaluation.value, expected.value, rtol=1e-10)
        np.testing.assert_allclose(evaluation.gradient, expected.gradient, atol=2e-3)
        y, _, _, n = lanes.observed(at)
        path = innovations(*multiplied(lanes.form, params), y - params[:, 0])
        square, log_f = (path.v**2 / path.F).sum(0), np.log(path.F).sum(0)
        value = -0.5 * (n * (np.log(2 * np.pi * square / n) + 1) + log_f)
        np.testing.assert_allclose(evaluation.value, value, rtol=1e-10)

    @pytest.mark.parametrize("order", [(2, 1, 1, 1), (3, 0, 0, 2), (0, 0, 2, 0)])
    def test_information_is_that_of_the_concentrated_innovations(self, order):
        candidates = candidates_of(quarters(), 1, 0)
        lanes, at = candidates.lanes([(0, Order(*order, True))]), np.arange(1)
        params = np.random.default_rng(1).uniform(-0.4, 0.4, lanes.free.shape)
        information = Likelihood(lanes, 5).evaluate(params, at).curvature[0]

        def residuals(values):
            y, _, _, _ = lanes.observed(at)
            path = innovations(*multiplied(lanes.form, values), y - values[:, 0])
            return (path.v / np.sqrt(path.F) * np.exp(np.log(path.F).mean(0) / 2))[:, 0]

        steps = 1e-5 * np.eye(params.shape[1])
        J = np.stack([residuals(params + s) - residuals(params - s) for s in steps], 1) / 2e-5
        expected = J.T @ J / (residuals(params) ** 2).mean()
        np.testing.assert_allclose(information, expected, rtol=1e-3, atol=1e-2)

    def test_the_smallest_root_is_that_of_the_multiplied_polynomials(self):
        candidates = candidates_of(quarters())
        lanes = candidates.lanes([(0, Order(2, 1, 1, 1, True))])
        params = np.array([[0.0, 0.4, 0.3, 0.5, 0.6, -0.7]])
        phi, theta = multiplied(lanes.form, params)
        roots = [
            np.roots(np.r_[1, sign * part[:, 0]][::-1]) for sign, part in ((-1, phi), (1, theta))
        ]
        expected = np.abs(np.concatenate(roots)).min()
        np.testing.assert_allclose(smallest_root(lanes.form, params), expected, rtol=1e-8)

    @pytest.mark.parametrize("order", [(1, 1, 0, 1), (0, 1, 1, 0), (2, 0, 0, 0)])
    def test_criteria_are_those_of_statsmodels_after_the_rows_lost(self, order):
        y = quarters().diff().dropna()
        p, q, P, Q = order
        model = SARIMAX(y - y.mean(), order=(p, 0, q), seasonal_order=(P, 0, Q, PERIOD)).fit(disp=0)
        values = candidates_of(y - y.mean())([(0, Order(*order, False))])
        n, k = len(y), sum(order) + 1
        np.testing.assert_allclose(
            values, -2 * model.llf + 2 * k + 2 * k * (k + 1) / (n - k - 1), atol=2e-3
        )


class TestDifferences:
    def test_those_given_are_taken(self):
        values = np.random.default_rng(0).normal(size=(3, 40)).cumsum(1)
        d, D = choose_differences(values, None, PERIOD, (0, 1), (2, 1))
        assert (d.tolist(), D.tolist()) == ([0] * 3, [1] * 3)

    def test_tests_ask_for_a_second_difference_only_where_that_is_allowed(self):
        smooth = quarters(120, season=0.0).cumsum()
        chosen = [AutoARIMA(season_length=1, max_d=d).fit(smooth).orders_.item() for d in (1, 2)]
        assert [order.split(",")[1] for order in chosen] == ["1", "2"]
        assert AutoARIMA(season_length=1).fit(smooth).orders_.item() == chosen[0]

    def test_a_strong_season_is_differenced_first(self):
        y = np.stack([quarters(season=0), quarters(season=9)])
        d, D = choose_differences(y, None, PERIOD, (None, None), (2, 1))
        assert D.tolist() == [0, 1]
        assert d[0] == 1

    def test_regressors_explain_what_is_no_unit_root(self):
        rng = np.random.default_rng(0)
        x = rng.normal(size=(1, 200)).cumsum(1)
        y = 5 * x + rng.normal(size=x.shape)
        arguments = PERIOD, (None, 0), (2, 0)
        assert choose_differences(y, None, *arguments)[0].tolist() == [1]
        assert choose_differences(y, x[:, :, None], *arguments)[0].tolist() == [0]


@pytest.fixture(scope="module")
def frame():
    return panel()


@pytest.fixture(scope="module")
def model(frame):
    return AutoARIMA(known_ahead=["x"], max_p=2, max_q=2).fit(frame)


class TestChosen:
    def test_estimates_and_forecasts_are_those_of_the_model_that_was_chosen(self, model, frame):
        future = ahead_of(frame, 3, 9)
        forecasts = model.predict(h=3, level=[80], X_future=future)
        for place, name in enumerate(model.units_):
            part, ahead = (f[f.unique_id == name] for f in (frame, future))
            alone = chosen_arma(model, place, known_ahead=["x"]).fit(part)
            np.testing.assert_allclose(model.loglik_[name], alone.loglik_[name], atol=1e-4)
            expected = alone.predict(h=3, level=[80], X_future=ahead)
            mine = forecasts[forecasts.unique_id == name]
            np.testing.assert_allclose(mine.iloc[:, 2:], expected.iloc[:, 2:], rtol=2e-3)
            names = alone.params_.columns
            np.testing.assert_allclose(model.bse_.loc[name, names], alone.bse_.loc[name], rtol=0.05)

    def test_absent_parameters_are_left_out_of_the_page(self, model, frame):
        assert (model.params_ == 0).any(axis=None)
        name = model.units_[0]
        page = model.summary(name)
        alone = chosen_arma(model, known_ahead=["x"]).fit(frame[frame.unique_id == name])
        assert page.params.index.tolist() == alone.params_.columns.tolist()
        assert model.orders_[name] in str(page)
        assert "AICc" in str(page)

    def test_candidates_begin_with_the_model_that_was_chosen(self, model):
        first = model.candidates_.groupby(level=0, sort=False).first()
        assert first["model"].tolist() == model.orders_.tolist()
        assert np.isfinite(first["aicc"]).all()

    @pytest.mark.slow
    def test_a_full_search_is_not_worse_than_steps(self, frame):
        arguments = {"known_ahead": ["x"], "max_p": 2, "max_q": 2, "max_P": 1, "max_Q": 1}
        steps, every = (
            AutoARIMA(**arguments, max_order=6, stepwise=stepwise).fit(frame).candidates_
            for stepwise in (True, False)
        )
        gain = every.groupby(level=0)["aicc"].min() - steps.groupby(level=0)["aicc"].min()
        assert (gain < 0.1).all()

    def test_update_residuals_file_and_paths(self, model, frame, tmp_path):
        late = frame.groupby("unique_id").tail(4)
        early = frame.drop(late.index)
        updated = AutoARIMA(known_ahead=["x"], max_p=1, max_q=1).fit(early)
        filtered = updated.predict(frame, h=1, X_future=ahead_of(frame))
        updated.update(late)
        np.testing.assert_allclose(
            updated.predict(h=1, X_future=ahead_of(frame))["AutoARIMA"], filtered["AutoARIMA"]
        )
        updated.save(tmp_path / "a.tsrnn")
        again = load(tmp_path / "a.tsrnn")
        pd.testing.assert_series_equal(again.orders_, updated.orders_)
        residuals = model.residuals(True)["residual"]
        assert abs(residuals.std() - 1) < 0.2
        paths = model.sample_paths(200, h=1, X_future=ahead_of(frame), random_state=0)
        assert np.isfinite(paths["AutoARIMA"]).all()

    @pytest.mark.slow
    @pytest.mark.filterwarnings("ignore:the likelihood of 1")
    def test_missing_values_are_left_out_of_the_likelihood(self):
        y = quarters(80)
        y.iloc[[0, 30, 31]] = np.nan
        model = AutoARIMA(missing="keep", max_p=1, max_q=1, max_P=1, max_Q=1, d=1, D=0).fit(y)
        alone = chosen_arma(model, missing="keep").fit(y)
        np.testing.assert_allclose(model.loglik_, alone.loglik_, atol=1e-4)
        assert np.isfinite(model.predict(h=2)).all()


class TestBoundary:
    """Series whose season does not change: its moving average ends on the unit circle."""

    @pytest.fixture
    def fixed_season(self):
        rng = np.random.default_rng(0)
        values = np.tile([5.0, -3.0, 1.0, -3.0], 10) + rng.normal(size=40)
        return pd.Series(values, pd.date_range("2000-01", periods=40, freq="QS"), name="y")

    @pytest.mark.slow
    def test_the_model_is_that_of_an_exhaustive_list_of_fits(self, fixed_season):
        limits = {"max_p": 1, "max_q": 0, "max_P": 1, "max_Q": 1}
        model = AutoARIMA(d=0, D=1, stepwise=False, max_order=3, **limits).fit(fixed_season)
        lowest, n = {}, len(fixed_season) - PERIOD
        for p, P, Q, constant in itertools.product(range(2), repeat=4):
            seasonal, trend = (P, 1, Q, PERIOD), "nt"[constant]
            fit = ARMA((p, 0, 0), seasonal_order=seasonal, trend=trend).fit(fixed_season)
            k = p + P + Q + constant + 1
            aicc = -2 * fit.loglik_.iloc[0] + 2 * k + 2 * k * (k + 1) / (n - k - 1)
            lowest[p, 0, 0, P, 1, Q, constant] = aicc
        best = min(lowest, key=lowest.__getitem__)
        assert best[5] == 1
        assert tuple(model.fitted_.constants["order"][0].astype(int)) == best
        assert model.candidates_["aicc"].iloc[0] == pytest.approx(lowest[best], abs=0.02)

    def test_the_boundary_is_named_and_has_no_standard_error(self, fixed_season):
        model = AutoARIMA(d=0, D=1, max_p=0, max_q=0, max_P=0, max_Q=1).fit(fixed_season)
        assert model.orders_.iloc[0].startswith("ARIMA(0,0,0)(0,1,1)[4]")
        assert model.params_["ma.S.L4"].iloc[0] == pytest.approx(-1, abs=1e-3)
        assert any("On the boundary" in text for text in model.messages_.iloc[0])
        assert np.isnan(model.bse_["ma.S.L4"].iloc[0])


class TestBadInput:
    @pytest.mark.slow
    def test_the_others_go_on_where_a_series_cannot_be_fitted(self):
        days = pd.date_range("2000-01", periods=40, freq="QS")
        good = quarters(40).to_numpy()
        columns = {
            "good": good,
            "constant": np.full(40, 3.0),
            "line": np.arange(40.0),
            "zero": np.zeros(40),
            "rare": np.where(np.arange(40) % 9 == 0, 5.0, 0.0),
            "short": np.where(np.arange(40) < 1, good, np.nan),
            "nothing": np.full(40, np.nan),
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            model = AutoARIMA(missing="keep").fit(pd.DataFrame(columns, days))
        assert model.orders_[["good", "rare"]].str.startswith("ARIMA").all()
        forecasts = model.predict(h=4)
        assert forecasts[["good", "rare"]].notna().all(axis=None)
        for name, order, values in (
            ("constant", "ARIMA(0,0,0) with mean", 3.0), ("zero", "ARIMA(0,0,0) with mean", 0.0),
            ("line", "ARIMA(0,1,0) with drift", np.arange(40, 44)),
        ):  # fmt: skip
            assert model.orders_[name] == order
            assert "exactly" in model.messages_[name][0]
            np.testing.assert_allclose(forecasts[name], values, rtol=1e-12)
            assert model.bse_.loc[name].isna().all()
            assert str(model.summary(name))
        for name, words in (("short", "the series has 1"), ("nothing", "the series has 0")):
            assert words in model.messages_[name][0], name
            assert model.params_.loc[name].isna().all()
            assert model.orders_[name] == ""

    def test_a_line_that_is_differenced_twice_goes_on(self):
        model = AutoARIMA(d=2).fit(pd.Series(np.arange(30.0), name="y"))
        np.testing.assert_allclose(model.predict(h=2), [30, 31])

    def test_collinear_regressors_are_named(self):
        frame = panel(2)
        frame["z"] = np.where(frame.unique_id == "s0", 1.0, frame.x**2)
        with pytest.warns(UserWarning, match="left out of 1 of 2 units, 's0'.* 'z', constant or"):
            model = AutoARIMA(known_ahead=["x", "z"], max_p=1, max_q=1, max_P=0, max_Q=0).fit(frame)
        assert (model.params_["z"] == 0).tolist() == [True, False]
        assert model.bse_["z"].isna().tolist() == [True, False]
        assert model.messages_["s1"] == ()

    @pytest.mark.few("5", "7", "9", "17")
    @pytest.mark.parametrize("n", [5, 7, 9, 12, 17])
    def test_short_series_have_small_models(self, n):
        model = AutoARIMA().fit(quarters(n))
        assert model.orders_.iloc[0]
        assert np.isfinite(model.predict(h=5)).all()

    def test_a_season_longer_than_the_series_is_none(self):
        model = AutoARIMA(season_length=52).fit(quarters(40))
        assert "[52]" not in model.orders_.iloc[0]

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            # Of four rows the model without a mean would be chosen, whatever the level.
            ({"n": 4}, "needs at least 5 observations; the series has 4"),
            ({"max_p": -1}, "max_p"),
            ({"max_p": 100}, "max_p must be at most"),
            ({"d": 3}, "d must be at most 2"),
            ({"criterion": "hqic"}, "criterion must be"),
            ({"stepwise": 1}, "stepwise"),
            ({"season_length": 0}, "season_length"),
            ({"season_length": 200}, "when multiplied"),
        ],
    )
    def test_refusals(self, arguments, words):
        arguments = {"n": 64} | arguments
        y = 100 + quarters(arguments.pop("n"))
        with pytest.raises((ValueError, TypeError), match=words):
            AutoARIMA(**arguments).fit(y)

    def test_parameters_cannot_be_given(self):
        with pytest.raises(ValueError, match=r"ARMA\(order"):
            AutoARIMA(season_length=1).filter(quarters(), {"sigma2": 1.0})


@pytest.mark.parametrize("level", [1e8, 1e9])
def test_a_large_level_costs_no_digits(level):
    """The model of a series far from zero is that of the series nearer to it, and has converged."""
    noise, y = np.random.default_rng(0).normal(size=150), np.zeros(150)
    for t in range(1, 150):
        y[t] = 0.5 * y[t - 1] + noise[t]
    near, far = (AutoARIMA().fit(pd.Series(y[50:] + c)) for c in (1e3, level))
    assert far.converged_.all()
    assert far.orders_.tolist() == near.orders_.tolist()
    np.testing.assert_allclose(far.predict(3) - level, near.predict(3) - 1e3, rtol=0, atol=1e-5)


class TestGapsInTheFirstSeason:
    """No order is chosen whose likelihood the gaps leave no observations to begin at."""

    SMALL: ClassVar = {"max_p": 1, "max_q": 1, "max_P": 1, "max_Q": 1, "missing": "keep"}

    @pytest.fixture
    def months(self):
        t, rng = np.arange(96), np.random.default_rng(0)
        index = pd.date_range("2015", periods=96, freq="MS", name="ds")
        return pd.Series(10 * np.sin(2 * np.pi * t / 12) + rng.normal(size=96), index)

    @pytest.mark.few("gaps1")
    @pytest.mark.parametrize("gaps", [[4], [0, 4], [4, 40]])
    def test_the_likelihood_begins_after_them(self, months, gaps):
        months.iloc[gaps] = np.nan
        model = AutoARIMA(**self.SMALL).fit(months)
        assert model.fitted_.constants["order"][0, 4] == 1
        alone = chosen_arma(model, missing="keep").fit(months.iloc[5:])
        assert model.nobs_.iloc[0] == alone.nobs_.iloc[0]
        np.testing.assert_allclose(model.loglik_, alone.loglik_, atol=1e-4)
        np.testing.assert_allclose(model.predict(3), alone.predict(3), atol=1e-3)
        assert f"before them: {4 - gaps.index(4)}" in model.messages_.iloc[0][0]
        assert (model.bse_.sigma2 > 0).all()

    @pytest.mark.slow
    def test_columns_and_panels(self, months):
        """In the target and in a column, of one series of a panel."""
        long = pd.concat([
            pd.DataFrame({"unique_id": name, "ds": months.index, "y": months + level})
            for name, level in [("a", 0.0), ("b", 5.0), ("c", 9.0)]
        ], ignore_index=True)  # fmt: skip
        long["x"] = np.random.default_rng(1).normal(size=len(long))
        long["y"] += 2 * long["x"]
        long.loc[4, "y"] = np.nan
        long.loc[96 + 6, "x"] = np.nan
        model = AutoARIMA(known_ahead="x", **self.SMALL).fit(long)
        assert model.fitted_.constants["order"][:, 4].tolist() == [1, 1, 1]
        assert np.isfinite(model.loglik_).all()
        left_out = [any("before them" in text for text in unit) for unit in model.messages_]
        assert left_out == [True, True, False]
        forecast = model.predict(1, X_future=ahead_of(long, months=1))
        assert np.isfinite(forecast["AutoARIMA"]).all()

    @pytest.mark.slow
    @pytest.mark.parametrize("last", [96, 80])
    def test_without_a_complete_season_the_season_is_left_to_lags(self, months, last):
        months.iloc[2:last:10] = np.nan
        model = AutoARIMA(**self.SMALL).fit(months)
        assert model.fitted_.constants["order"][0, 4] == 0
        assert model.nobs_.iloc[0] >= months.count() - 1
        assert any("no seasonal difference was taken" in m for m in model.messages_.iloc[0])

    def test_a_difference_that_is_asked_for(self, months):
        months.iloc[2::10] = np.nan
        with pytest.raises(ValueError, match="begins at 12 observations in a row, which this"):
            AutoARIMA(D=1, **self.SMALL).fit(months)
