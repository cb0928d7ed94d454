"""Exponential smoothing against statsmodels, a plain loop, and simulation."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
from statsmodels.tsa.exponential_smoothing.ets import ETSModel

from tsrnn.linear.ets import ETS

from .examples import ets_peer, ets_values
from .examples import seasonal as quarterly

KINDS = ("none", "add", "mul")
CLASSES = [
    (error, trend, damped, seasonal)
    for error, trend, damped, seasonal in itertools.product(
        ("add", "mul"), KINDS, (False, True), KINDS
    )
    if not (damped and trend == "none")
]
PERIOD = 4


def parameters(error, trend, damped, seasonal):
    """Parameters in the interior of the region, by name."""
    params = {"alpha": 0.3, "beta": 0.1, "gamma": 0.2, "phi": 0.9, "level": 60.0}
    params["trend"] = 0.2 if trend == "add" else 1.004
    lacks = {"beta": trend == "none", "trend": trend == "none", "gamma": seasonal == "none"}
    lacks["phi"] = not damped
    params = {name: value for name, value in params.items() if not lacks.get(name)}
    for i, value in enumerate((0.06, 0.0, -0.05), 1):
        if seasonal != "none":
            params[f"season[{i}]"] = 60 * value if seasonal == "add" else 1 + value
    return params | {"sigma2": 1.5 if error == "add" else 4e-4}


def by_loop(y, error, trend, damped, seasonal, params):
    """Means, final states and log-likelihood by Hyndman's equations, written out."""
    alpha, beta, gamma = (params.get(name, 0.0) for name in ("alpha", "beta", "gamma"))
    phi, level, slope = params.get("phi", 1.0), params["level"], params.get("trend", 0.0)
    season = [params.get(f"season[{i}]", 0.0) for i in range(1, PERIOD)]
    if seasonal != "none":
        season.append((0.0 if seasonal == "add" else PERIOD) - sum(season))
    means, errors = [], []
    for value in y:
        grown = slope**phi if trend == "mul" else phi * slope
        ahead = level * grown if trend == "mul" else level + grown
        if seasonal == "none":
            mean = ahead
        else:
            mean = ahead + season[0] if seasonal == "add" else ahead * season[0]
        e = value - mean if error == "add" else (value - mean) / mean
        r = e if error == "add" else mean * e
        c = season[0] if seasonal == "mul" else 1.0
        if seasonal != "none":
            season = [*season[1:], season[0] + gamma * r / (ahead if seasonal == "mul" else 1.0)]
        slope = grown + beta * r / c / (level if trend == "mul" else 1.0)
        level = ahead + alpha * r / c
        means.append(mean)
        errors.append(e)
    sigma2 = params["sigma2"]
    loglik = -0.5 * np.sum(np.log(2 * np.pi * sigma2) + np.square(errors) / sigma2)
    if error == "mul":
        loglik -= np.log(means).sum()
    return np.array(means), loglik


@pytest.mark.parametrize(("error", "trend", "damped", "seasonal"), CLASSES)
def test_given_parameters_have_the_likelihood_of_the_equations(error, trend, damped, seasonal):
    """`filter` has the log-likelihood, its gradient and the fitted values of a plain loop."""
    series, params = quarterly(48), parameters(error, trend, damped, seasonal)
    means, loglik = by_loop(series.to_numpy(), error, trend, damped, seasonal, params)
    model = ETS(error, trend, seasonal, damped).filter(series, params)
    np.testing.assert_allclose(model.loglik_.iloc[0], loglik, rtol=1e-10)
    np.testing.assert_allclose(model.fittedvalues().to_numpy().ravel(), means, rtol=1e-10)
    gradient = []
    for name, value in params.items():
        step = 1e-5 * (value if name == "sigma2" else max(abs(value), 0.1))
        ends = [
            by_loop(series.to_numpy(), error, trend, damped, seasonal, params | {name: moved})[1]
            for moved in (value + step, value - step)
        ]
        gradient.append((ends[0] - ends[1]) / (2 * step))
    np.testing.assert_allclose(model.estimates_.gradient[0], gradient, rtol=2e-5, atol=2e-4)


@pytest.mark.parametrize(
    ("error", "trend", "damped", "seasonal"), [c for c in CLASSES if c[3] != "mul"]
)
def test_given_parameters_have_the_likelihood_of_statsmodels(error, trend, damped, seasonal):
    """The likelihood is that of statsmodels, its variance the mean square of errors.

    With a multiplicative season statsmodels divides by the level after the row, Hyndman et al. by
    that ahead of it: another model.
    """
    series, params = quarterly(48), parameters(error, trend, damped, seasonal)
    expected = ets_peer(series, error, trend, damped, seasonal).smooth(ets_values(params))
    params["sigma2"] = float(np.mean(np.asarray(expected.resid) ** 2))
    model = ETS(error, trend, seasonal, damped).filter(series, params)
    np.testing.assert_allclose(model.loglik_.iloc[0], expected.llf, rtol=1e-9)


def draw(seed: int) -> pd.Series:
    """Series of one of several kinds: walks, trends, seasons and noise of both kinds."""
    rng, n = np.random.default_rng(seed), 40 + 4 * seed
    t = np.arange(n)
    level = 100 + rng.normal(size=n).cumsum() * (seed % 3) + 0.5 * t * (seed % 2)
    season = 1 + 0.1 * np.cos(np.pi * t / 2) * (seed % 4 > 1)
    values = level * season * (1 + 0.02 * rng.normal(size=n))
    return pd.Series(values, pd.date_range("2000-01", periods=n, freq="QS"), name="y")


PEERS = [("add", "none", False, "none"), ("mul", "add", True, "none"), ("add", "add", False, "add"),
         ("mul", "none", False, "add")]  # fmt: skip


@pytest.mark.few("0", "7", "16")
@pytest.mark.parametrize("seed", range(20))
def test_optima_are_not_below_those_of_statsmodels(seed):
    """In a region of the parameters that is ours."""
    series = draw(seed)
    for error, trend, damped, seasonal in PEERS:
        model = ETS(error, trend, seasonal, damped).set_params(bounds="usual").fit(series)
        peer = ets_peer(series, error, trend, damped, seasonal)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # where its search does not converge
            theirs = peer.fit(disp=False, maxiter=2000)
        gamma = getattr(theirs, "gamma", 0.0)
        if seasonal == "none" or gamma <= 0.9999 * (1 - theirs.alpha):
            assert model.loglik_.item() > theirs.llf - 1e-4


def test_a_trend_that_follows_the_last_rows_is_found_beside_a_slow_one():
    """The likelihood of few rows has a maximum at either end of beta."""
    draw = np.random.default_rng(0)
    slope = 2 + np.cumsum(draw.normal(0, 1, (40, 19)), 1)
    values = 100 + np.cumsum(slope + draw.normal(0, 0.5, slope.shape), 1)
    frame = pd.DataFrame(values.T, index=pd.date_range("1990", periods=19, freq="YS"))
    found = ETS("add", "add", "none", damped=False, bounds="usual").fit(frame).loglik_
    for ours, y in zip(found, values, strict=True):
        peer = ETSModel(y, "add", "add", initialization_method="estimated")
        assert ours > peer.fit(disp=False, maxiter=1000).llf - 1e-4


@pytest.mark.parametrize(("error", "trend", "damped", "seasonal"), PEERS)
def test_missing_rows_have_no_part_in_the_likelihood(error, trend, damped, seasonal):
    """States go on over them; those after the last row are of a plain loop."""
    series, params = quarterly(48), parameters(error, trend, damped, seasonal)
    gaps = [1, 2, 7, 20, 21, 22, 46, 47]
    holes = series.copy()
    holes.iloc[gaps] = np.nan
    model = ETS(error, trend, seasonal, damped=damped, missing="keep").filter(holes, params)
    filled = series.to_numpy().copy()
    for i in gaps:  # what is expected has no error
        filled[i] = by_loop(filled[: i + 1], error, trend, damped, seasonal, params)[0][-1]
    means, loglik = by_loop(filled, error, trend, damped, seasonal, params)
    sigma2 = params["sigma2"]
    nothing = -0.5 * np.log(2 * np.pi * sigma2)
    nothing = nothing * len(gaps) - (np.log(means[gaps]).sum() if error == "mul" else 0.0)
    np.testing.assert_allclose(model.loglik_.item(), loglik - nothing, rtol=1e-10)
    np.testing.assert_allclose(model.fittedvalues().to_numpy().ravel(), means, rtol=1e-10)
    later = by_loop(np.append(filled, 0.0), error, trend, damped, seasonal, params)[0][-1]
    np.testing.assert_allclose(model.predict(1).to_numpy().item(), later, rtol=1e-10)
    assert model.nobs_.item() == 40
    assert model.residuals().isna().sum().item() == len(gaps)


def test_the_choice_does_not_depend_on_the_level_where_no_model_does():
    """Additive models have the criterion of the series near zero, whatever the others have."""
    rng, t = np.random.default_rng(3), np.arange(48)
    y = 20 + 0.5 * t + 4 * np.sin(np.pi * t / 2) + rng.normal(size=48).cumsum()
    y = pd.Series(np.round(64 * y) / 64, pd.date_range("2000", periods=48, freq="QS"))
    near = ETS().fit(y)
    assert near.models_.item() == "ETS(A, A, A)"
    for level in (20, 1e4, 1e6, 1e8):
        far = ETS().fit(y + level)
        assert far.aicc_.item() < near.aicc_.item() + 1e-4
        np.testing.assert_allclose(far.predict(4) - level, near.predict(4), atol=1e-5)
        # Far from zero relative errors are absolute ones over the level.
        assert far.models_.item() in ("ETS(A, A, A)", "ETS(M, A, A)")
