"""Optima of exponential smoothing, Theta and CES beside those of random starts.

Series without a season are the first yearly ones of M4, where its folder stands beside the
repository, else simulated; those with one are simulated quarters.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from _m4 import FILES, LOCAL_COPY, long_frame, ragged

from tsrnn.linear import CES, ETS, Theta
from tsrnn.linear._optimise import maximise
from tsrnn.linear._samples import Sample
from tsrnn.linear.ces._likelihood import Likelihood as LikelihoodCES
from tsrnn.linear.ces._specification import Components as ComponentsCES
from tsrnn.linear.ces._specification import bounds as bounds_ces
from tsrnn.linear.ets._search import climb
from tsrnn.linear.ets._specification import Components
from tsrnn.linear.ets._start import bounds
from tsrnn.linear.theta._likelihood import ALPHA
from tsrnn.linear.theta._likelihood import Likelihood as LikelihoodTheta

LONGEST = 60  # rows
PERIOD = 4
AT_ONCE = 50  # series, all of whose random starts climb together
NONSEASONAL = (
    ("add", "none", False), ("add", "add", False), ("add", "add", True),
    ("mul", "none", False), ("mul", "add", False), ("mul", "add", True), ("mul", "mul", True),
)  # fmt: skip
SEASONAL = (("add", "add", True, "add"), ("mul", "none", False, "mul"), ("mul", "add", True, "mul"))


def yearly(n: int) -> np.ndarray:
    """Yearly series (n, T) of M4, NaN after their ends; simulated ones where there is no M4."""
    path = LOCAL_COPY / FILES["yearly"][0]
    if path.exists():
        series = ragged(path, None).values()
        rows = [values for values in series if len(values) <= LONGEST][:n]
    else:
        rng = np.random.default_rng(0)
        rows = [100 + rng.normal(0.5, 1, (2, length)).cumsum(1).sum(0) for length in
                rng.integers(15, LONGEST, n)]  # fmt: skip
    table = np.full((len(rows), LONGEST), np.nan)
    for row, values in zip(table, rows, strict=True):
        row[: len(values)] = values
    return table


def quarters(n: int) -> np.ndarray:
    """Simulated quarters (n, T) with a season that multiplies or adds, in turn."""
    rng, t = np.random.default_rng(1), np.arange(48)
    level = 100 + rng.normal(0.3, 1, (n, len(t))).cumsum(1)
    season = np.cos(np.pi * t / 2 + rng.uniform(0, 6, (n, 1))) * rng.uniform(2, 10, (n, 1))
    product = level * (1 + season / 60)
    values = np.where(np.arange(n)[:, None] % 2, product, level + season)
    return values + rng.normal(0, 1, values.shape)


def logliks(model: Any, values: np.ndarray) -> np.ndarray:
    """Log-likelihoods (N,) of the package's fits."""
    frame = long_frame({i: row[np.isfinite(row)] for i, row in enumerate(values)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return model.fit(frame).loglik_.to_numpy()


def highest_ets(
    model: Components, region: str, n_starts: int, values: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Highest log-likelihoods (N,) of climbs from random starts."""
    scaled = model.scaled(Sample(np.arange(len(values)), values))
    lower, upper = bounds(model, region)
    middle = np.nanmean(scaled.values, 1)[:, None] + rng.normal(size=(n_starts, len(values), 1))
    starts = rng.normal(size=(n_starts, len(values), len(lower))) * 0.3
    names = model.recursion.names
    for j, name in enumerate(names):
        if np.isfinite(lower[j]) and np.isfinite(upper[j]):
            starts[:, :, j] = rng.uniform(lower[j], upper[j], starts.shape[:2])
        elif name == "level":
            starts[:, :, j] = middle[:, :, 0]
            if model.positive:
                starts[:, :, j] = scaled.values[:, 0] * rng.uniform(0.5, 1.5, starts.shape[:2])
        elif name == "trend":
            if model.trend == "mul":
                starts[:, :, j] = rng.uniform(0.9, 1.1, starts.shape[:2])
            elif model.positive:
                starts[:, :, j] /= 10
        elif model.seasonal == "mul":
            starts[:, :, j] = rng.uniform(0.8, 1.2, starts.shape[:2])
    best = climb(model, scaled.values, starts, region).best.value
    return best - np.isfinite(values).sum(1) * np.log(scaled.scale)


def highest_theta(
    theta: float | None, dynamic: bool, estimated: bool, n_starts: int, values: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:  # fmt: skip
    """Highest log-likelihoods (N,) of climbs from random alphas."""
    scaled = Sample(np.arange(len(values)), values).sized
    likelihood = LikelihoodTheta(scaled.values, dynamic, theta, estimated)
    series = np.tile(np.arange(len(values)), n_starts)
    ends = maximise(
        likelihood.search_in(series), rng.uniform(*ALPHA, (len(series), 1)), lower=ALPHA[0],
        upper=ALPHA[1], scoring=0, tol=1e-12,
    )  # fmt: skip
    best = ends.value.reshape(n_starts, -1).max(0)
    return best - likelihood.n_obs * np.log(scaled.scale)


def highest_ces(
    model: Any, n_starts: int, values: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Highest log-likelihoods (N,) of climbs from random smoothing parameters."""
    scaled = Sample(np.arange(len(values)), values).sized
    lower, upper = bounds_ces(model)
    series = np.tile(np.arange(len(values)), n_starts)
    starts = rng.uniform(lower, upper, (len(series), len(lower)))
    best = maximise(
        LikelihoodCES(model, scaled.values, series).evaluate, starts, lower=lower, upper=upper,
        scoring=30, tol=1e-8, max_iter=60,
    ).value.reshape(n_starts, -1).max(0)  # fmt: skip
    return best - np.isfinite(values).sum(1) * np.log(scaled.scale)


def cases(
    n_series: int, n_starts: int, only: str = ""
) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Name, log-likelihoods of the package, and the best of random starts, case by case."""
    years, seasons = yearly(n_series), quarters(n_series)

    def best(highest: Any, values: np.ndarray) -> np.ndarray:
        rng = np.random.default_rng(2)
        parts = [
            highest(n_starts, values[i : i + AT_ONCE], rng) for i in range(0, len(values), AT_ONCE)
        ]
        return np.concatenate(parts)

    for name, ours, highest, values in models():
        if re.search(only, name) is None:
            continue
        rows = years if values == "years" else seasons
        yield name, logliks(ours, rows), best(highest, rows)


def models() -> Iterator[tuple[str, Any, Any, str]]:
    """Name, estimator, climb from random starts, and the series they are fitted to."""
    for region, (error, trend, damped, *season) in product(
        ("slow", "usual"), (*NONSEASONAL, *SEASONAL)
    ):
        seasonal, period = (*season, PERIOD) if season else ("none", 1)
        model = Components(error, trend, damped, seasonal, period)
        ours = ETS(error, trend, seasonal, damped, season_length=period, bounds=region)
        highest = partial(highest_ets, model, region)
        yield f"{model.title}, {region}", ours, highest, "quarters" if season else "years"
    for theta, dynamic, estimated in (
        (None, True, False), (None, True, True), (None, False, False), (2.0, False, True),
    ):  # fmt: skip
        how = "estimated" if estimated else "heuristic"
        ours = Theta(theta, dynamic, "none", initialization=how)
        name = f"Theta({theta}, dynamic={dynamic}, {how})"
        yield name, ours, partial(highest_theta, theta, dynamic, estimated), "years"
    for seasonal in ("none", "simple", "partial", "full"):
        model = ComponentsCES(seasonal, 1 if seasonal == "none" else PERIOD)
        highest = partial(highest_ces, model)
        values = "years" if seasonal == "none" else "quarters"
        yield model.title, CES(seasonal, model.period), highest, values
