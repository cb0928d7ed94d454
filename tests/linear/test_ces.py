"""Complex exponential smoothing against a loop in complex arithmetic, a peer, and simulation."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from tsrnn import load, recurrence_features
from tsrnn.contract import IntervalWarning
from tsrnn.linear.ces import CES
from tsrnn.linear.ces._specification import Components, bounds, to_natural

from .examples import AIRLINE
from .examples import seasonal as seasonal_series

M = 4  # rows of a season
PARAMS = {
    "none": {"alpha0": 1.4, "alpha1": 1.02},
    "simple": {"alpha0": 1.3, "alpha1": 0.97},
    "partial": {"alpha0": 1.5, "alpha1": 0.99, "beta0": 0.2},
    "full": {"alpha0": 1.2, "alpha1": 1.01, "beta0": 1.1, "beta1": 0.95},
}
SEASONS = tuple(PARAMS)


def quarterly(n=50, seed=0):
    return seasonal_series(n, seed)


def with_gaps(series: pd.Series) -> pd.Series:
    gaps = series.copy()
    gaps.iloc[[3, 10, 11, 30]] = np.nan
    return gaps


def model_of(seasonal: str, **arguments) -> CES:
    return CES(seasonal, season_length=M if seasonal != "none" else 1, **arguments)


def given_params(seasonal: str, sigma2: float = 1.5) -> dict[str, float]:
    return PARAMS[seasonal] | {"sigma2": sigma2}


class Loop:
    """The model in complex arithmetic, row by row, states in a list by lag.

    A pair follows z' = a (y + i e) + (1 + i - a) z, where the real part of z is the forecast and e
    the error with which y differs from it (Svetunkov et al., 2022, equation 3).
    """

    def __init__(self, seasonal, params, m=M):
        self.seasonal, self.m = seasonal, m if seasonal != "none" else 1
        self.alpha = complex(params["alpha0"], params["alpha1"])
        self.beta = complex(params.get("beta0", 0), params.get("beta1", 0))

    def pair(self, weight, z, e):
        return weight * (z.real + e + 1j * e) + (1 + 1j - weight) * z

    def next_season(self, z, e):
        if self.seasonal == "partial":
            return z + self.beta.real * e
        return self.pair(self.alpha if self.seasonal == "simple" else self.beta, z, e)

    def run(self, y, level, season):
        """Errors and means along rows, NaN where nothing is observed, and the states after them."""
        season, errors, means = list(season), [], []
        for value in y:
            mean = (level.real if level is not None else 0.0) + (season[0].real if season else 0.0)
            e = 0.0 if np.isnan(value) else value - mean
            if level is not None:
                level = self.pair(self.alpha, level, e)
            if season:
                season = [*season[1:], self.next_season(season[0], e)]
            errors.append(e)
            means.append(mean)
        return np.array(errors), np.array(means), level, season

    def turned(self, level, season):
        """States with which the rows are run over in reverse: a row on, without an error."""
        level = None if level is None else self.pair(self.alpha, level, 0.0)
        return level, [self.next_season(z, 0.0) for z in reversed(season)]

    def rough(self, y):
        m, first = self.m, y[: 10 if self.seasonal == "none" else self.m]
        level, season = np.nanmean(first), []
        if self.seasonal == "simple":
            start = np.where(np.isnan(first), level, first)
            return None, list(start * (1 + 1j / 1.1))
        if self.seasonal in ("partial", "full"):
            weights = np.ones(m + 1)
            weights[[0, -1]] = 0.5
            trend = np.convolve(y, weights / m, "valid")
            rest = np.full(len(y), np.nan)
            rest[m // 2 : -(m // 2)] = y[m // 2 : -(m // 2)] - trend
            season = np.array([np.nanmean(rest[i::m]) for i in range(m)])
            season = list((season - season.mean()) * (1 + 1j / 1.1 * (self.seasonal == "full")))
        return level * (1 + 1j / 1.1), season

    def start(self, y):
        states = self.rough(y)
        for rows in (y, y[::-1]):
            *_, level, season = self.run(rows, *states)
            states = self.turned(level, season)
        return states

    def loglik(self, y, sigma2=None):
        errors = self.run(y, *self.start(y))[0]
        n, square = np.isfinite(y).sum(), np.sum(errors**2)
        sigma2 = square / n if sigma2 is None else sigma2
        return -0.5 * (n * np.log(2 * np.pi * sigma2) + square / sigma2)


class TestGivenParameters:
    @pytest.mark.parametrize("gaps", [False, True])
    @pytest.mark.parametrize("n", [50, 51, 54])
    @pytest.mark.parametrize("seasonal", SEASONS)
    def test_everything_is_that_of_the_loop(self, seasonal, n, gaps):
        """Log-likelihood, fitted values and forecasts, of whole and of broken seasons."""
        series = with_gaps(quarterly(n)) if gaps else quarterly(n)
        y, params = series.to_numpy(), given_params(seasonal)
        loop = Loop(seasonal, params)
        model = model_of(seasonal, missing="keep").filter(series, params)
        np.testing.assert_allclose(model.loglik_.iloc[0], loop.loglik(y, 1.5), rtol=1e-10)
        _, means, *states = loop.run(y, *loop.start(y))
        np.testing.assert_allclose(model.fittedvalues().to_numpy().ravel(), means, rtol=1e-9)
        ahead = loop.run(np.full(9, np.nan), *states)[1]
        np.testing.assert_allclose(model.predict(9).to_numpy().ravel(), ahead, rtol=1e-9)

    @pytest.mark.parametrize("seasonal", SEASONS)
    def test_derivatives_are_those_of_the_loop(self, seasonal):
        """Gradient and Hessian in the units of the data, by differences."""
        series, params = quarterly(), given_params(seasonal)
        estimates = model_of(seasonal).filter(series, params).estimates_
        names, y = list(params), series.to_numpy()
        at = np.array([params[name] for name in names])

        def loglik(values):
            inner = dict(zip(names, values, strict=True))
            return Loop(seasonal, inner).loglik(y, inner["sigma2"])

        steps = np.diag(2e-4 * np.maximum(np.abs(at), 0.5))
        gradient = [(loglik(at + s) - loglik(at - s)) / (2 * s.sum()) for s in steps]
        np.testing.assert_allclose(estimates.gradient[0], gradient, rtol=1e-4, atol=1e-3)
        hessian = [
            [
                (loglik(at + s + r) - loglik(at + s - r) - loglik(at - s + r) + loglik(at - s - r))
                / (4 * s.sum() * r.sum())
                for r in steps
            ]
            for s in steps
        ]
        scale = np.abs(np.diag(hessian)) ** 0.5
        difference = (estimates.hessian[0] - hessian) / (scale[:, None] * scale)
        assert np.abs(difference).max() < 1e-3

    # Parameters, sum of squared errors and forecasts 1, 2, 6 and 12 months ahead of statsforecast
    # 2.1.1, AutoCES(12, model=...).
    @pytest.mark.parametrize(
        ("seasonal", "params", "square", "ahead"),
        [
            ("none", (1.7999999999999998, 0.9839288711547911), 186054.23909743578,
             (425.4909760014248, 418.2376632985754, 404.30074367732374, 383.4355028550898)),
            ("simple", (1.8, 1.1939023703336713), 59602.83624822575,
             (445.9959190535642, 422.5180963964441, 582.5258965218703, 494.7745368904883)),
            ("partial", (1.8, 1.0078683310352061, 0.7258207103754214), 29558.921120009483,
             (452.3481792126006, 445.4566536468362, 590.8364035761036, 454.5886143852217)),
            ("full", (1.27342365872632, 1.0094040578540509, 1.4996704014704592, 1.1318820823256803),
             19563.67676650253,
             (453.0182204709515, 429.322917650295, 586.4556074966372, 481.60915663301245)),
        ],
    )  # fmt: skip
    def test_forecasts_are_those_of_statsforecast(self, seasonal, params, square, ahead):
        series = pd.Series(AIRLINE, name="y")
        length = 1 if seasonal == "none" else 12
        model = CES(seasonal, season_length=length).filter(series, [*params, square / 144])
        forecasts = model.predict(12).to_numpy().ravel()[[0, 1, 5, 11]]
        np.testing.assert_allclose(forecasts, ahead, rtol=1e-9)
        squares = (model.residuals().to_numpy() ** 2).sum()
        np.testing.assert_allclose(squares, square, rtol=1e-9)


class TestFit:
    @pytest.mark.parametrize("seasonal", SEASONS)
    def test_no_other_optimum_is_higher(self, seasonal):
        """Against a simplex search of the loop's likelihood, kept in the same region."""
        series = quarterly(40, seed=3)
        components = Components(seasonal, M if seasonal != "none" else 1)
        lower, upper = bounds(components)

        def objective(inner):
            natural = to_natural(components, np.clip(inner, lower, upper)[None])[0][0]
            params = dict(zip(components.names, natural, strict=False))
            return -Loop(seasonal, params).loglik(series.to_numpy())

        start = lower + np.array([0.5, 0.6, 0.1, 0.55][: len(lower)]) * (upper - lower)
        if seasonal == "full":
            start[2] = 0.1
        options = {"maxiter": 400, "xatol": 1e-4, "fatol": 1e-6}
        best = minimize(objective, start, method="Nelder-Mead", options=options).fun
        model = model_of(seasonal).fit(series)
        assert model.converged_.all()
        assert model.loglik_.iloc[0] > -best - 1e-4

    def test_gradient_is_zero_inside_the_region(self):
        model = CES("none").fit(quarterly(80, seed=5))
        assert not model.estimates_.fixed.any()
        np.testing.assert_allclose(model.estimates_.gradient, 0, atol=1e-3)
        assert (model.bse_.to_numpy() > 0).all()

    def test_the_choice_has_the_lowest_criterion(self):
        frame = pd.concat(
            [quarterly(n, seed).rename(str(seed)) for seed, n in enumerate((50, 33, 47))], axis=1
        )
        auto = CES(missing="keep").fit(frame)
        assert (auto.candidates_.idxmin(axis=1) == auto.models_).all()
        for seasonal in SEASONS:
            single = model_of(seasonal, missing="keep").fit(frame)
            k, n = single.estimates_.n_params, single.nobs_
            aicc = -2 * single.loglik_ + 2 * k + 2 * k * (k + 1) / (n - k - 1)
            title = f"CES({seasonal})"
            # A model that cannot win is not searched to its end.
            assert (auto.candidates_[title] >= aicc - 1e-6).all()
            won = (auto.models_ == title).to_numpy()
            np.testing.assert_allclose(auto.candidates_[title][won], aicc[won], rtol=1e-8)
            forecasts = single.predict(5).loc[:, won], auto.predict(5).loc[:, won]
            np.testing.assert_allclose(*forecasts, rtol=1e-4)

    def test_series_too_short_for_a_season_have_none(self):
        """Also read from a file."""
        frame = pd.DataFrame({"long": quarterly(40), "short": quarterly(40)[:9]})
        model, file = CES(missing="keep").fit(frame), io.BytesIO()
        assert model.models_["short"] == "CES(none)"
        assert np.isinf(model.candidates_.loc["short", "CES(partial)"])
        assert np.isfinite(model.candidates_.loc["long"]).all()
        model.save(file)
        file.seek(0)
        copy = load(file)
        pd.testing.assert_frame_equal(copy.predict(4, level=[80]), model.predict(4, level=[80]))
        pd.testing.assert_series_equal(copy.models_, model.models_)
        pd.testing.assert_frame_equal(copy.candidates_, model.candidates_)
        assert "CES(none)" in str(copy.summary("short"))

    @pytest.mark.slow
    @settings(max_examples=15, deadline=None)
    @given(
        n=st.integers(1, 40), m=st.integers(1, 5), missing=st.floats(0, 0.4),
        seed=st.integers(0, 99), seasonal=st.sampled_from(("auto", *SEASONS)),
    )  # fmt: skip
    def test_any_series_is_fitted_or_refused(self, n, m, missing, seed, seasonal):
        rng = np.random.default_rng(seed)
        y = rng.normal(3, 1, n).cumsum()
        y[1:][rng.random(n - 1) < missing] = np.nan
        model, refusal = CES(seasonal, season_length=m, missing="keep"), ""
        try:
            model.fit(pd.Series(y, name="y"))
        except ValueError as error:
            refusal = str(error)
        if refusal:
            assert any(words in refusal for words in ("needs", "constant", "at least"))
            return
        assert np.isfinite(model.predict(7, level=[90]).to_numpy()).all()
        assert np.isfinite(model.loglik_).all()

    def test_a_bad_series_among_others_is_named(self):
        frame = pd.DataFrame({"a": quarterly(30), "short": np.nan, "b": quarterly(30, 1)})
        frame.iloc[:5, 1] = [1.0, 3, 2, 4, 2]
        with pytest.warns(UserWarning, match="1 of 3 units could not be fitted, 'short'"):
            model = CES(season_length=M, missing="keep").fit(frame)
        assert model.params_.loc[["a", "b"]].notna().all(axis=None)
        assert "at least 7 observations" in model.messages_["short"][0]
        assert model.predict(3)[["a", "b"]].notna().all(axis=None)

    def test_a_series_that_a_model_fits_exactly(self):
        """A constant and a season that repeats itself go on, beside series that vary."""
        repeated = np.tile([4.0, 1.0, 7.0, 2.0], 8)[:30]
        frame = pd.DataFrame({"a": quarterly(30), "constant": 3.0, "season": repeated})
        model = CES(season_length=M).fit(frame)
        alone = CES(season_length=M).fit(frame["a"])
        np.testing.assert_allclose(model.loglik_["a"], alone.loglik_.item(), rtol=1e-9)
        with pytest.warns(IntervalWarning, match="no width"):
            forecasts = model.predict(4, level=[80])
        np.testing.assert_allclose(forecasts["constant"], 3.0)
        np.testing.assert_allclose(forecasts["season"], [7.0, 2.0, 4.0, 1.0])
        np.testing.assert_allclose(forecasts["season-hi-80"], [7.0, 2.0, 4.0, 1.0])
        assert model.models_["constant"] == "CES(none)"
        for name in ("constant", "season"):
            assert "exactly" in model.messages_[name][0]
            assert model.bse_.loc[name].isna().all()
            assert str(model.summary(name))

    @pytest.mark.parametrize(
        ("arguments", "rows", "words"),
        [
            ({}, 5, "CES\\(none\\) needs at least 7 observations; the series has 5"),
            ({"seasonal": "full", "season_length": 12}, 20, "needs at least 24 observations"),
            ({"seasonal": "partial"}, 40, "needs a season of at least two rows"),
            ({"seasonal": "additive"}, 40, "seasonal must be one of"),
            ({"season_length": 0}, 40, "season_length must be a positive integer"),
        ],
    )
    def test_refusals(self, arguments, rows, words):
        series = pd.Series(quarterly(40).to_numpy()[:rows], name="y")
        with pytest.raises(ValueError, match=words):
            CES(**arguments).fit(series)

    @pytest.mark.parametrize(
        ("model", "params", "words"),
        [
            (CES(season_length=M), [1.3, 1.0, 1.2, 1.0, 1.0], "Name seasonal"),
            (CES("none"), [1.3, 1.0, -1.0], "sigma2 must be positive"),
        ],
    )
    def test_parameters_that_are_refused(self, model, params, words):
        with pytest.raises(ValueError, match=words):
            model.filter(quarterly(), params)

    @pytest.mark.slow
    @settings(max_examples=8, deadline=None)
    @given(scale=st.sampled_from((1e-6, 1e-2, 1e3, 1e9)), seasonal=st.sampled_from(SEASONS))
    def test_the_scale_of_a_series_is_that_of_its_forecasts(self, scale, seasonal):
        series = quarterly(40, seed=1)
        one, other = (model_of(seasonal).fit(y) for y in (series, scale * series))
        np.testing.assert_allclose(
            other.predict(6, level=[80]), scale * one.predict(6, level=[80]), rtol=1e-5
        )
        shift = len(series) * np.log(scale)
        np.testing.assert_allclose(other.loglik_ + shift, one.loglik_, atol=1e-6)


@settings(max_examples=40, deadline=None)
@given(share=st.floats(0, 1), a1=st.floats(0, 1), seasonal=st.sampled_from(("none", "simple")))
def test_the_search_stays_where_states_are_forgotten(share, a1, seasonal):
    """Discount matrices have their eigenvalues inside the unit circle."""
    model = Components(seasonal, M if seasonal == "simple" else 1)
    lower, upper = bounds(model)
    inner = lower + np.array([[share, a1]]) * (upper - lower)
    matrix = model.discount(to_natural(model, inner)[0])[0]
    assert np.abs(np.linalg.eigvals(matrix)).max() < 1


class TestStates:
    @pytest.mark.parametrize("seasonal", ["auto", *SEASONS])
    def test_update_is_filtering_over_all_rows(self, seasonal):
        series = with_gaps(quarterly(53))
        model = CES(seasonal, M if seasonal != "none" else 1, missing="keep").fit(series[:41])
        expected = model.predict(series, h=6, level=[80])
        for rows in (series[41:42], series[42:47], series[47:]):
            model.update(rows)
        pd.testing.assert_frame_equal(model.predict(h=6, level=[80]), expected)

    @pytest.mark.parametrize("seasonal", SEASONS)
    def test_variances_are_those_of_the_matrices(self, seasonal):
        r"""The sum of squares of w' F^{j-1} g, and the spread of simulated paths."""
        params = given_params(seasonal)
        model = model_of(seasonal, random_state=0).filter(quarterly(), params)
        components = Components(seasonal, M if seasonal != "none" else 1)
        smoothing = np.array([[*PARAMS[seasonal].values(), 0, 0][:4]])
        F, g = components.transition(smoothing)[0], components.gain(smoothing)[0]
        response = [components.measurement @ np.linalg.matrix_power(F, j) @ g for j in range(8)]
        variances = 1.5 * (1 + np.concatenate([[0], np.cumsum(np.square(response))]))
        forecast = model.predict(9, level=[68.26894921370859])
        half = forecast.iloc[:, 2] - forecast.iloc[:, 0]
        np.testing.assert_allclose(half.to_numpy() ** 2, variances, rtol=1e-9)
        paths = model.sample_paths(20_000, h=9, random_state=1)
        spread = paths["y"].groupby(level=0).var()
        np.testing.assert_allclose(spread.to_numpy(), variances, rtol=0.05)

    @pytest.mark.parametrize("seasonal", SEASONS)
    def test_intervals_have_the_degrees_of_freedom_of_a_fit(self, seasonal):
        model = model_of(seasonal).set_params(parameter_uncertainty=False).fit(quarterly())
        forecast = model.predict(1, level=[68.26894921370859])
        variance = (forecast.iloc[0, 2] - forecast.iloc[0, 0]) ** 2
        left = 50 - model.estimates_.n_params[0] + 1
        np.testing.assert_allclose(variance, model.params_["sigma2"].iloc[0] * 50 / left)

    @pytest.mark.parametrize("m", [4, 12])
    @pytest.mark.parametrize("seasonal", SEASONS)
    def test_the_layer_gives_the_fitted_values(self, seasonal, m):
        series = quarterly(60)
        model = CES(seasonal, m if seasonal != "none" else 1).fit(series)
        inputs = torch.tensor(series.to_numpy())[None, :, None]
        with torch.no_grad():
            output, _ = model.to_rnn()(inputs, model.rnn_start())
        means = np.append(model.rnn_start()[0, 0, 0], output[0, :, 0])
        np.testing.assert_allclose(means[:-1], model.fittedvalues().to_numpy().ravel(), rtol=1e-6)
        np.testing.assert_allclose(means[-1], model.predict(1).iloc[0].item(), rtol=1e-6)

    def test_a_season_is_on_the_unit_circle(self):
        """The transition of a partial season has the m-th roots of one, and the level's pair."""
        model = CES("partial", 12).filter(quarterly(60), [1.5, 0.97, 0.1, 1.0])
        table = recurrence_features(model)
        table = table[table["matrix"] == "partial transition"]
        circle = table[np.isclose(table["modulus"], 1, atol=1e-6)]
        assert len(circle) == 7  # frequencies 0 and pi, and five pairs between them
        level = table["modulus"][~np.isclose(table["modulus"], 1, atol=1e-6)]
        pair = np.abs(np.linalg.eigvals([[1, -0.03], [1, -0.5]]))
        np.testing.assert_allclose(np.sort(level), np.sort(pair), rtol=1e-8)
