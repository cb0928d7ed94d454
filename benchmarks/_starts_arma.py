"""Optima of ARMA, seasonal ARMA, ARIMA with regressors and VARMA beside those of random starts.

Series are simulated, with roots that nearly cancel or lie on the unit circle among them, or real
ones that the package ships. Every random start is climbed to the end in the same likelihood.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd
from scipy.signal import lfilter

from tsrnn import datasets
from tsrnn.linear import ARMA, VARMA
from tsrnn.linear._multivariate import spectral_radius
from tsrnn.linear._optimise import maximise
from tsrnn.linear.arma._polynomials import from_partial
from tsrnn.linear.arma._prepare import prepare, trend_and_regressors
from tsrnn.linear.arma._seasonal_fit import SeasonalLikelihood, climb_inside
from tsrnn.linear.varma._likelihood import evaluate
from tsrnn.linear.varma._prepare import Sample, fit_scaling
from tsrnn.linear.varma._specification import Coefficients

_SIGNS = (1, -1, 1, -1)  # of phi, theta, Phi and Theta as coefficients of an AR
_ROWS = (40, 80, 120, 200)

Simulator = Callable[[np.random.Generator, int, int], np.ndarray]

# Order and seasonal order of the models of one variable, and the number of regressors.
MODELS = {
    "ARMA(1,1)": ((1, 0, 1), None, 0),
    "ARMA(2,1)": ((2, 0, 1), None, 0),
    "ARMA(0,3)": ((0, 0, 3), None, 0),
    "ARMA(2,2)": ((2, 0, 2), None, 0),
    "ARMA(4,4)": ((4, 0, 4), None, 0),
    "SARMA(0,0)(0,3)[4]": ((0, 0, 0), (0, 0, 3, 4), 0),
    "SARMA(1,1)(1,1)[4]": ((1, 0, 1), (1, 0, 1, 4), 0),
    "SARIMA(0,1,1)(0,1,1)[4]": ((0, 1, 1), (0, 1, 1, 4), 0),
    "ARIMA(1,1,1) with 2 regressors": ((1, 1, 1), None, 2),
}
VECTOR_MODELS = {"VARMA(1,1)": (1, 1), "VARMA(0,1)": (0, 1), "VARMA(2,1)": (2, 1)}


def noise(rng: np.random.Generator, T: int, m: int) -> np.ndarray:
    """White noise, in which every root cancels."""
    return rng.standard_normal(T)


def near_cancelling(rng: np.random.Generator, T: int, m: int) -> np.ndarray:
    """ARMA whose roots almost cancel, at lag one and at the season."""
    e = lfilter([1, -0.75], [1, -0.8], rng.standard_normal(T + 100))
    return lfilter(np.r_[1, np.zeros(m - 1), -0.6], np.r_[1, np.zeros(m - 1), -0.7], e)[100:]


def on_circle(rng: np.random.Generator, T: int, m: int) -> np.ndarray:
    """Series differenced once too often, at lag one or at the season."""
    e = rng.standard_normal(T + m)
    return (np.diff(e) if rng.random() < 0.5 else e[m:] - e[:-m])[:T]


def pairs(rng: np.random.Generator, T: int, m: int) -> np.ndarray:
    """ARMA with complex pairs of roots on both sides."""
    ar, ma = (from_partial(rng.uniform(-0.9, 0.9, (2, 1)))[:, 0] for _ in range(2))
    return lfilter(np.r_[1, -ma], np.r_[1, -ar], rng.standard_normal(T + 100))[100:]


def persistent(rng: np.random.Generator, T: int, m: int) -> np.ndarray:
    """Random walk with a season and noise."""
    season = np.tile(rng.standard_normal(m), T // m + 1)[:T]
    return 0.3 * rng.standard_normal(T).cumsum() + season + rng.standard_normal(T)


def real(rng: np.random.Generator, T: int, m: int) -> np.ndarray:
    """Stretch of a series that the package ships, or of its differences."""
    columns = _shipped()
    values = columns[rng.integers(len(columns))]
    first = rng.integers(max(len(values) - T, 0) + 1)
    return values[first : first + T]


def _shipped() -> list[np.ndarray]:
    loaders = (datasets.load_nile, datasets.load_macrodata, datasets.load_interest_inflation,
               datasets.load_danish_data)  # fmt: skip
    columns = []
    for load in loaders:
        frame = pd.DataFrame(load()).select_dtypes("number")
        for name in frame:
            values = frame[name].dropna().to_numpy(float)
            columns += [part for part in (values, np.diff(values)) if np.ptp(part) > 0]
    return columns


SIMULATORS: tuple[Simulator, ...] = (noise, near_cancelling, on_circle, pairs, persistent, real)


def cases(
    n_series: int, n_starts: int, only: str = ""
) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Log-likelihoods of fits and of random starts, model by model.

    Parameters
    ----------
    n_series : int
        Series of all models together.
    n_starts : int
        Random starts of each series.
    only : str, default ""
        Regular expression that is found in the names of the models to fit.

    Yields
    ------
    name : str
    fitted, random : ndarrays of shape (n,)
        Log-likelihoods of the package's fits, and the highest of the random starts.
    """
    n = max(n_series // (len(MODELS) + len(VECTOR_MODELS)), 1)
    for seed, (name, (order, seasonal, n_exog)) in enumerate(MODELS.items()):
        if re.search(only, name) is None:
            continue
        model = ARMA(order, seasonal_order=seasonal, target="y", freq=1)
        yield name, *_of_one_variable(model, n, n_exog, n_starts, np.random.default_rng(seed))
    for seed, (name, order) in enumerate(VECTOR_MODELS.items()):
        if re.search(only, name) is None:
            continue
        yield name, *_of_two(VARMA(order, freq=1), n, n_starts, np.random.default_rng(100 + seed))


def _of_one_variable(
    model: ARMA, n: int, n_exog: int, n_starts: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    fitted, best = [], []
    for i in range(n):
        T = _ROWS[i // len(SIMULATORS) % len(_ROWS)]
        y = SIMULATORS[i % len(SIMULATORS)](rng, T, 4)
        X = rng.standard_normal((len(y), n_exog))
        frame = pd.DataFrame({"y": y} | {f"x{j}": X[:, j] for j in range(n_exog)})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            fit = model.fit(frame)
        spec = fit.fitted_.family.spec  # type: ignore[attr-defined]
        columns = trend_and_regressors(spec, len(y), X[None] if n_exog else None)
        values, seen = y[None].astype(float), np.ones((1, len(y)), bool)
        prepared, _, _ = prepare(spec, values, seen, columns, gaps=False)
        likelihood, form = SeasonalLikelihood(spec, prepared), prepared.form
        starts = np.tile(prepared.mean, (n_starts, 1))
        starts = np.column_stack([starts + 0.1 * rng.standard_normal(starts.shape),
                                  np.zeros((n_starts, form.n_params - form.n_mean))])  # fmt: skip
        for lags, sign in zip(form.parts(starts.T)[1:], _SIGNS, strict=True):
            lags[:] = sign * from_partial(np.tanh(1.5 * rng.standard_normal(lags.shape)))
        ends = climb_inside(
            lambda params, lanes, own=likelihood: own.evaluate(params, 0 * lanes),
            form, np.ones(starts.shape, bool), starts, max_iter=150,
        )  # fmt: skip
        fitted.append(fit.loglik_.iloc[0])
        best.append(ends.value.max() - prepared.n_obs[0] * np.log(prepared.scale[0]))
    return np.array(fitted), np.array(best)


def _of_two(
    model: VARMA, n: int, n_starts: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    fitted, best = [], []
    for i in range(n):
        T = _ROWS[i // len(SIMULATORS) % len(_ROWS)]
        parts = [SIMULATORS[(i + j) % len(SIMULATORS)](rng, T, 4) for j in range(2)]
        rows = min(map(len, parts))
        y = np.stack([part[:rows] for part in parts], 1) @ [[1.0, 0.5], [0.0, 1.0]]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            fit = model.fit(pd.DataFrame(y, columns=["a", "b"]))
        shape = fit.fitted_.family.shape  # type: ignore[attr-defined]
        sample = Sample(shape, y[None], np.ones((1, rows, 1)), np.zeros((1, 2)), np.array([rows]))
        scaling = fit_scaling(sample)
        standard = scaling.standardised(sample)
        ar, ma = (rng.uniform(-1, 1, (n_starts, lags, 2, 2)) for lags in (shape.p, shape.q))
        for lags in (ar, ma):  # inside of where they are stationary and invertible
            room = rng.uniform(0.3, 0.98, n_starts) / np.maximum(spectral_radius(lags), 0.3)
            powers = np.minimum(room, 1.0)[:, None] ** np.arange(1, lags.shape[1] + 1)
            lags *= powers[..., None, None]
        design = 0.1 * rng.standard_normal((n_starts, 2, 1))
        starts = shape.pack(Coefficients(design, ar, -ma, np.tile(np.eye(2), (n_starts, 1, 1))))
        ends = maximise(
            lambda params, lanes, exact, own=standard: evaluate(
                params, own.select(0 * lanes), exact
            ),
            starts, max_iter=150,
        )  # fmt: skip
        # Ends of which the moving average is not invertible are no estimates.
        inside = spectral_radius(shape.unpack(ends.params).ma) < 1 + 1e-4
        fitted.append(fit.loglik_.iloc[0])
        best.append(np.where(inside, ends.value, -np.inf).max() - scaling.log_scale(standard)[0])
    return np.array(fitted), np.array(best)
