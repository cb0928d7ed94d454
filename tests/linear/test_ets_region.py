"""Exponential smoothing in the admissible region, and with initial states held."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from statsmodels.tsa.exponential_smoothing.ets import ETSModel

from tsrnn.linear import ETS
from tsrnn.linear.ets._reduced_form import is_admissible, polynomials
from tsrnn.linear.ets._specification import Components

from .examples import seasonal as seasonal_series

SHAPES = [("none", False), ("add", False), ("add", True)]


def quarterly(seed=0):
    return seasonal_series(60, seed, level=80, slope=0.4, wave=7)


def discount_roots(model, alpha, beta, gamma, phi):
    """Return moduli of the eigenvalues of the discount matrix F - g w', written out."""
    m = model.period if model.seasonal != "none" else 0
    size = 2 + m
    F, g, w = np.zeros((size, size)), np.zeros(size), np.zeros(size)
    F[0, :2], F[1, 1], w[:2], g[:2] = [1, phi], phi, [1, phi], [alpha, beta]
    if m:
        F[2, -1], w[-1], g[2] = 1, 1, gamma
        F[3:, 2:-1] = np.eye(m - 1)
    return np.abs(np.linalg.eigvals(F - np.outer(g, w)))


@pytest.mark.parametrize(("trend", "damped"), SHAPES)
@pytest.mark.parametrize("seasonal", ["none", "add"])
def test_the_region_is_that_of_the_discount_matrix(trend, damped, seasonal):
    """All roots but that shared by level and season, which no forecast sees, inside the circle."""
    rng, model = np.random.default_rng(0), Components("add", trend, damped, seasonal, 4)
    model = model if seasonal == "add" else Components("add", trend, damped, seasonal, 1)
    agree = 0
    for _ in range(300):
        alpha, beta, gamma = rng.uniform([-0.5, -0.3, -0.1], [2.2, 2.0, 1.5])
        beta, gamma = beta * (trend != "none"), gamma * (seasonal != "none")
        phi = rng.uniform(0.8, 0.98) if damped else 1.0
        params = np.array([[alpha, beta, gamma, phi]])
        moduli = np.sort(discount_roots(model, alpha, beta, gamma, phi))
        if trend == "none":  # the trend is a state that nothing moves
            moduli = np.delete(moduli, np.abs(moduli - phi).argmin())
        if seasonal == "add":
            moduli = np.delete(moduli, np.abs(moduli - 1).argmin())
        if np.abs(moduli.max() - 1) > 1e-3:
            assert is_admissible(model, params).item() == (moduli.max() < 1)
            agree += moduli.max() < 1
    assert agree > 5


@pytest.mark.parametrize("damped", [False, True])
def test_without_a_season_it_is_that_of_the_inequalities(damped):
    rng, model = np.random.default_rng(1), Components("add", "add", damped, "none", 1)
    for _ in range(500):
        alpha, beta = rng.uniform([-1, -1], [3, 5])
        phi = rng.uniform(0.8, 0.98) if damped else 1.0
        inside = (1 - 1 / phi < alpha < 1 + 1 / phi) and (
            alpha * (phi - 1) < phi * beta < (1 + phi) * (2 - alpha)
        )
        params = np.array([[alpha, beta, 0.0, phi]])
        edge = np.abs(np.roots(polynomials(model, params)[1][0])).max() - 1
        if abs(edge) > 1e-3:
            assert is_admissible(model, params).item() == inside


@pytest.mark.few("none-none-False-add", "add-none-False-mul", "add-add-False-add")
@pytest.mark.parametrize("error", ["add", "mul"])
@pytest.mark.parametrize(("trend", "damped"), SHAPES)
@pytest.mark.parametrize("seasonal", ["none", "add"])
def test_the_optimum_is_not_below_that_of_the_usual_region(error, trend, damped, seasonal):
    for seed in range(1 if seasonal == "add" else 3):
        series = quarterly(seed=seed)
        usual = ETS(error, trend, seasonal, damped=damped, bounds="usual").fit(series)
        model = ETS(error, trend, seasonal, damped=damped, bounds="admissible").fit(series)
        # the barrier costs as much at the most
        assert model.loglik_.item() > usual.loglik_.item() - 5e-3
        assert model.converged_.item()
        row = model.params_.iloc[0]
        params = [[*(row.get(name, 0.0) for name in ("alpha", "beta", "gamma")), row.get("phi", 1)]]
        period = 4 if seasonal == "add" else 1
        kind = Components(error, trend, damped, seasonal, period)
        assert is_admissible(kind, np.array(params)).item()


@pytest.mark.slow
@pytest.mark.parametrize("error", ["add", "mul"])
def test_no_optimum_is_below_that_of_a_smaller_region_or_a_nested_model(error):
    """Of short series, whose likelihoods have several maxima, most of them at bounds."""
    rng, (n, rows) = np.random.default_rng(0), (150, 20)
    steps = rng.normal(0, 1, (rows, n)).cumsum(0) * rng.uniform(0.2, 3, n)
    slopes = rng.normal(0, 0.5, (rows, n)).cumsum(0).cumsum(0) * rng.integers(0, 2, n)
    frame = pd.DataFrame(100 + steps + slopes + rng.normal(size=(rows, n))).iloc[:, ::3]
    shapes = {"N": ("none", False), "A": ("add", False), "Ad": ("add", True)}
    highest = {
        (shape, region): ETS(error, trend, "none", damped, bounds=region, freq=1).fit(frame).loglik_
        for shape, (trend, damped) in shapes.items()
        for region in ("slow", "usual")
    }
    for shape in shapes:
        assert (highest[shape, "slow"] <= highest[shape, "usual"] + 1e-8).all()
    for region in ("slow", "usual"):
        # Of a trend beta is at least alpha / 10000: it contains the level but for that.
        assert (highest["N", region] <= highest["A", region] + 5e-3).all()
    few = frame.iloc[:, :10]
    held = {
        region: ETS(error, "add", "none", True, bounds=region, initialization="heuristic", freq=1)
        .fit(few).loglik_
        for region in ("slow", "usual", "admissible")
    }  # fmt: skip
    assert (held["slow"] <= held["usual"] + 1e-8).all()
    assert (held["usual"] <= held["admissible"] + 1e-8).all()


def test_a_season_and_its_level_alone():
    """A season whose weight is at its bound is that of the starting values: it costs nothing."""
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(
        100 + rng.normal(size=(32, 20)).cumsum(0), pd.date_range("2000", periods=32, freq="QS")
    )
    level = ETS("add", "none", "none").fit(frame).loglik_
    season = ETS("add", "none", "add").fit(frame).loglik_
    assert (level <= season + 5e-3).all()


def test_alpha_above_one_of_a_series_that_swings_back():
    """Of an MA(1) in differences with a positive coefficient alpha is 1 + theta."""
    rng = np.random.default_rng(0)
    e = rng.normal(size=2001)
    series = pd.Series(100 + (e[1:] + 0.4 * e[:-1]).cumsum())
    usual = ETS("add", "none", "none").fit(series)
    model = ETS("add", "none", "none", bounds="admissible").fit(series)
    assert usual.params_["alpha"].item() > 0.999
    assert abs(model.params_["alpha"].item() - 1.4) < 3 * model.bse_["alpha"].item()
    assert "alpha" in usual.messages_.iloc[0][0]
    assert not model.messages_.iloc[0]


@pytest.mark.slow
@pytest.mark.few("1")
@pytest.mark.parametrize("seed", range(3))
def test_the_optimum_with_a_season_is_that_of_another_search(seed):
    """Nelder and Mead's search of smoothing parameters, states held at ours."""
    series = quarterly(seed=seed)
    model = ETS("add", "none", "add", bounds="admissible").fit(series)
    row = model.params_.iloc[0]
    kind = Components("add", "none", False, "add", 4)

    def loss(at):
        params = np.array([[at[0], 0.0, at[1], 1.0]])
        if np.abs(np.roots(polynomials(kind, params)[1][0])).max() >= 1 or at[1] < 1e-4:
            return np.inf
        moved = row.copy()
        moved["alpha"], moved["gamma"] = at
        probe = ETS("add", "none", "add").filter(series, moved)
        moved["sigma2"] = np.mean(probe.residuals().to_numpy() ** 2)
        return 0.5 * len(series) * (np.log(2 * np.pi * moved["sigma2"]) + 1)

    best = minimize(loss, row[["alpha", "gamma"]], method="Nelder-Mead", options={"maxiter": 60})
    assert -best.fun < model.loglik_.item() + 5e-3


class TestHeldStates:
    @pytest.mark.parametrize("seasonal", ["none", "add", "mul"])
    def test_are_no_parameters(self, seasonal):
        series = quarterly()
        model = ETS("mul", "add", seasonal, damped=False, initialization="heuristic").fit(series)
        free = [name for name in ("alpha", "beta", "gamma", "sigma2") if name in model.params_]
        k = len(free)
        np.testing.assert_allclose(model.aic_.item(), 2 * k - 2 * model.loglik_.item())
        held = model.params_.columns.difference(free)
        assert model.bse_[held].isna().all().all()
        text = " ".join(str(model.summary()).split())
        assert "Initial states: by decomposition" in text
        assert "no count by criteria" in text

    def test_the_optimum_is_not_below_that_of_statsmodels(self):
        for seed in range(4):
            series = quarterly(seed=seed)
            model = ETS(
                "add", "add", "none", damped=False, bounds="usual", initialization="heuristic"
            )
            row = model.fit(series).params_.iloc[0]
            peer = ETSModel(
                series, "add", "add", initialization_method="known", initial_level=row["level"],
                initial_trend=row["trend"],
            )  # fmt: skip
            assert model.loglik_.item() > peer.fit(disp=False).llf - 1e-4
            same = peer.smooth(row[["alpha", "beta"]].to_numpy())
            np.testing.assert_allclose(model.loglik_.item(), same.llf, rtol=1e-9)
            assert len(peer.param_names) == 2  # it counts the states as little

    def test_are_below_those_estimated_and_not_compared_with_them(self):
        series, (held, model) = quarterly(), (
            ETS("add", "add", "none", damped=False, initialization=kind)
            for kind in ("heuristic", "estimated")
        )  # fmt: skip
        assert held.fit(series).loglik_.item() < model.fit(series).loglik_.item()
        with pytest.raises(ValueError, match="likelihood"):
            model.lr_test(held)


@pytest.mark.slow
def test_many_series_are_as_each_by_itself():
    frame = pd.DataFrame({name: quarterly(seed=i) for i, name in enumerate("abc")})
    frame.loc[frame.index[:3], "b"] = np.nan
    arguments = {"bounds": "admissible", "missing": "keep"}
    together = ETS("add", "none", "auto", **arguments).fit(frame)
    for name in frame:
        alone = ETS("add", "none", "auto", **arguments).fit(frame[name])
        assert alone.models_.item() == together.models_[name]
        np.testing.assert_allclose(alone.loglik_.item(), together.loglik_[name], atol=1e-5)


def test_products_have_no_admissible_region():
    with pytest.raises(ValueError, match="trends and seasons that are added; got trend='mul'"):
        ETS("mul", "mul", "none", bounds="admissible").fit(quarterly())
    model = ETS(trend="none", bounds="admissible").fit(quarterly())
    assert not any("M)" in title for title in model.candidates_)
