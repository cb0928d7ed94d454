"""Frames and small models with known answers."""

from itertools import repeat
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from tsrnn.contract import target_scales, with_intervals, with_shared_arguments
from tsrnn.linear._base import LinearForecaster
from tsrnn.linear._estimates import Estimates
from tsrnn.linear._state import LinearState


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


@with_shared_arguments
class Normal(LinearForecaster):
    """Independent normal values: the smallest model with maximum-likelihood estimates."""

    column_name: ClassVar[str] = "Normal"
    legal_missing: ClassVar[tuple[str, ...]] = ("error", "interpolate", "keep")

    def __init__(self, mean=None, **shared):
        super().__init__(**shared)
        self.mean = mean

    def _state_shapes(self):
        return {"n": ("float64", ())}

    def _param_names(self):
        return ("sigma2",) if self.mean is not None else ("mu", "sigma2")

    def _model_name(self):
        return "Normal"

    def _conventions(self):
        return {"Likelihood": "exact"}

    def _notes(self, unit):
        return ["A note of the model."]

    def _fit_panel(self, panel):
        return self._filter_panel(panel, None)

    def _filter_panel(self, panel, params):
        given = repeat(None) if params is None else params.tolist()
        fits = [self._unit(x, p) for x, p in zip(self._units(panel), given, strict=False)]
        self._set_estimates(_stacked(fits, self._param_names()))
        return self._memory_of(panel)

    def _unit(self, x, given):
        x = x[np.isfinite(x)]
        n = len(x)
        if n < 3 or np.ptp(x) == 0:
            return None
        mu = x.mean() if given is None else given[0]
        mu = mu if self.mean is None else self.mean
        s2 = ((x - mu) ** 2).mean() if given is None else given[-1]
        e = x - mu
        scores = np.column_stack([e / s2, (e**2 / s2 - 1) / (2 * s2)])
        hessian = np.array(
            [[-n / s2, -e.sum() / s2**2], [0.0, n / (2 * s2**2) - (e**2).sum() / s2**3]]
        )
        hessian[1, 0] = hessian[0, 1]
        loglik = -0.5 * (n * np.log(2 * np.pi * s2) + (e**2).sum() / s2)
        free = slice(0, 2) if self.mean is None else slice(1, 2)
        return [mu, s2][free], loglik, n, scores[:, free], hessian[free, free]

    def _units(self, panel):
        return [panel.series(i)[:, c]
                for i in range(panel.n_series) for c in range(panel.values.shape[1])]  # fmt: skip

    def _memory_of(self, panel):
        counts = panel.lengths.astype(float)
        return LinearState(panel.ids, panel.last_times, target_scales(panel), {"n": counts})

    def _advance(self, memory, panel):
        n = memory.arrays["n"] + panel.lengths
        return LinearState(memory.ids, panel.last_times, memory.target_scale, {"n": n})

    def _moments(self, ids):
        """Means and variances (S, C) of the series to which the ids belong."""
        params = self.estimates_.params.reshape(
            len(self.state_.ids), -1, len(self.estimates_.names)
        )
        params = params[self._series_of(ids)]
        mean = params[..., 0] if self.mean is None else np.full_like(params[..., 0], self.mean)
        return mean, params[..., -1]

    def _forecast(self, memory, h, levels, future):
        mean, variance = (np.repeat(m[:, None], h, 1) for m in self._moments(memory.ids))
        widths = {level: norm.ppf(0.5 + level / 200) * np.sqrt(variance) for level in levels}
        return with_intervals(mean, widths)

    def _in_sample(self, panel):
        mean, variance = (np.repeat(m, panel.lengths, 0) for m in self._moments(panel.ids))
        return mean, (panel.values - mean) / np.sqrt(variance)


def _stacked(fits, names):
    which = np.array([i for i, fit in enumerate(fits) if fit is not None], int)
    kept = [fits[i] for i in which]
    n, k = len(kept), len(names)
    scores = [fit[3] for fit in kept]
    hessian = np.array([fit[4] for fit in kept]).reshape(n, k, k)
    made = Estimates(
        names=names,
        params=np.array([fit[0] for fit in kept]).reshape(n, k),
        loglik=np.array([fit[1] for fit in kept]),
        n_obs=np.array([fit[2] for fit in kept], int),
        gradient=np.array([s.sum(0) for s in scores]).reshape(n, k),
        hessian=hessian,
        opg=np.array([s.T @ s for s in scores]).reshape(n, k, k),
        information=None,
        iterations=np.zeros(n, int),
        converged=np.ones(n, bool),
        fixed=np.zeros((n, k), bool),
        messages=((),) * n,
    )
    lost = {i: "the series does not vary." for i in range(len(fits)) if fits[i] is None}
    return made.placed(len(fits), which, lost)


@pytest.fixture(scope="session")
def normal():
    """Return the class of a toy model."""
    return Normal
