"""Frames and small models with known answers."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest

from tsrnn.contract import with_shared_arguments
from tsrnn.linear import ARMA
from tsrnn.linear._base import LinearForecaster
from tsrnn.linear._estimates import Estimates
from tsrnn.linear._family import CannotFitError, Family, normal_forecasts


@pytest.fixture(scope="session")
def draws():
    """Return a monthly Series of independent normal values."""
    values = np.random.default_rng(0).normal(3, 2, 120)
    return pd.Series(values, pd.date_range("2010-01-01", periods=120, freq="MS"), name="y")


@pytest.fixture(scope="session")
def draws_panel(draws):
    """Return a long frame of three monthly series of unequal lengths and scales."""
    parts = [
        pd.DataFrame({"unique_id": name, "ds": draws.index[:n], "y": scale * draws.to_numpy()[:n]})
        for name, scale, n in (("a", 1.0, 120), ("b", 1000.0, 80), ("c", 0.01, 101))
    ]
    return pd.concat(parts, ignore_index=True)


@pytest.fixture(scope="session")
def ols_estimates():
    """Return a function from y (N, T) and X (T, m) to estimates of a normal regression.

    Parameters are the coefficients and sigma2, all in closed form.
    """

    def fit(y, X):
        n_units, T = y.shape
        beta = np.linalg.lstsq(X, y.T, rcond=None)[0].T
        e = y - beta @ X.T
        s2 = (e**2).mean(1)
        m = X.shape[1]
        scores = np.concatenate(
            [
                e[:, :, None] * X / s2[:, None, None],
                ((e**2 / s2[:, None] - 1) / (2 * s2[:, None]))[:, :, None],
            ],
            2,
        )
        hessian = np.zeros((n_units, m + 1, m + 1))
        hessian[:, :m, :m] = -(X.T @ X) / s2[:, None, None]
        cross = -(e @ X) / s2[:, None] ** 2
        hessian[:, :m, m] = hessian[:, m, :m] = cross
        hessian[:, m, m] = T / (2 * s2**2) - (e**2).sum(1) / s2**3
        information = np.zeros_like(hessian)
        information[:, :m, :m] = -hessian[:, :m, :m]
        information[:, m, m] = T / (2 * s2**2)
        return Estimates(
            names=(*(f"x{j + 1}" for j in range(m)), "sigma2"),
            params=np.column_stack([beta, s2]),
            loglik=-T / 2 * (np.log(2 * np.pi * s2) + 1),
            n_obs=np.full(n_units, T),
            gradient=scores.sum(1),
            hessian=hessian,
            opg=scores.swapaxes(1, 2) @ scores,
            information=information,
            iterations=np.ones(n_units, int),
            converged=np.ones(n_units, bool),
            fixed=np.zeros((n_units, m + 1), bool),
            messages=((),) * n_units,
        )

    return fit


@pytest.fixture(scope="session")
def fit_arma():
    """Return a function from arrays to the estimates of an ARMA.

    y (N, T) is NaN where missing and after the end of a series, exog (N, T, m), given (N, k).
    """

    def fit(order, trend, y, exog=None, *, given=None, exact=True):
        n, rows = y.shape
        times = {"unique_id": np.repeat(np.arange(n), rows), "ds": np.tile(np.arange(rows), n)}
        frame = pd.DataFrame(times | {"y": y.ravel()})
        for i in range(0 if exog is None else exog.shape[-1]):
            frame[f"x{i}"] = np.broadcast_to(exog[..., i], y.shape).ravel()
        kinds = ("exact", "keep") if exact else ("conditional", "error")
        model = ARMA(order, trend, kinds[0], missing=kinds[1])
        return (model.fit(frame) if given is None else model.filter(frame, given)).estimates_

    return fit


@dataclass(frozen=True)
class NormalFamily(Family):
    """Independent normal values of one target, their mean known or not."""

    mean: float | None
    n_targets: int

    @property
    def names(self):
        return ("sigma2",) if self.mean is not None else ("mu", "sigma2")

    title = "Normal"
    conventions: ClassVar[dict] = {"Likelihood": "exact"}

    @property
    def state_shapes(self):
        return {"n": ()}

    def notes(self):
        return ["A note of the model."]

    def prepare(self, panel, given):
        for number, x in enumerate(self.values_of_units(panel)):
            yield SimpleNamespace(units=np.array([number]), x=x[np.isfinite(x)]), {}

    def values_of_units(self, panel):
        return [x for i in range(panel.n_series) for x in panel.series(i).T]

    def search(self, sample, verbose):
        if len(sample.x) < 3 or np.ptp(sample.x) == 0:
            raise CannotFitError("the series does not vary")
        mu = sample.x.mean() if self.mean is None else self.mean
        return mu, ((sample.x - mu) ** 2).mean()

    def given(self, sample, params):
        return params[0, 0] if self.mean is None else self.mean, params[0, -1]

    def infer(self, sample, optimum):
        (mu, s2), n = optimum, len(sample.x)
        e = sample.x - mu
        scores = np.column_stack([e / s2, (e**2 / s2 - 1) / (2 * s2)])
        cross = -e.sum() / s2**2
        hessian = [[-n / s2, cross], [cross, n / (2 * s2**2) - (e**2).sum() / s2**3]]
        free = slice(0, 2) if self.mean is None else slice(1, 2)
        scores, hessian = scores[:, free], np.array(hessian)[free, free]
        return Estimates(
            names=self.names,
            params=np.array([[mu, s2]])[:, free],
            loglik=np.array([-0.5 * (n * np.log(2 * np.pi * s2) + (e**2).sum() / s2)]),
            n_obs=np.array([n]),
            gradient=scores.sum(0)[None],
            hessian=hessian[None],
            opg=(scores.T @ scores)[None],
            information=None,
            iterations=np.zeros(1, int),
            converged=np.ones(1, bool),
            fixed=np.zeros((1, len(hessian)), bool),
            messages=((),),
        ), {}

    def filter(self, panel, units, steps):
        return {"n": panel.lengths.astype(float)}

    def advance(self, state, panel, units, steps):
        return {"n": state["n"] + panel.lengths}

    def _moments(self, units):
        """Means and variances (S, C)."""
        params = units.params.reshape(-1, self.n_targets, len(self.names))
        mean = params[..., 0] if self.mean is None else np.full_like(params[..., 0], self.mean)
        return mean, params[..., -1]

    def forecast(self, state, units, ahead, levels):
        moments = (np.repeat(m[:, None], ahead.h, 1) for m in self._moments(units))
        return normal_forecasts(*moments, levels)

    def simulate(self, state, units, ahead, n, rng):
        mean, variance = (m[:, None] for m in self._moments(units))
        return mean + np.sqrt(variance) * rng.normal(size=(n, *mean.shape[:1], ahead.h, 1))

    def in_sample(self, panel, units, steps):
        mean, variance = (np.repeat(m, panel.lengths, 0) for m in self._moments(units))
        return mean, (panel.values - mean) / np.sqrt(variance)


@with_shared_arguments
class Normal(LinearForecaster):
    """Independent normal values: the smallest model with maximum-likelihood estimates."""

    column_name: ClassVar[str] = "Normal"
    family_class = NormalFamily
    legal_missing: ClassVar[tuple[str, ...]] = ("auto", "error", "interpolate", "keep")

    def __init__(self, mean=None, **shared):
        super().__init__(**shared)
        self.mean = mean

    def _family(self, arguments, data):
        return self.family_class(arguments.mean, data.n_targets)


@pytest.fixture(scope="session")
def normal():
    """Return the class of a toy model."""
    return Normal


@pytest.fixture(scope="session")
def normal_with():
    """Return a function from members of the family to a toy model that has them."""

    def make(**members):
        family = type("SpecialFamily", (NormalFamily,), members)
        return type("Special", (Normal,), {"family_class": family})

    return make
