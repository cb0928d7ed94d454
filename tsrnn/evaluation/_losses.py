"""Losses of forecasts, by window and step, and by observation of the tests of accuracy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tsrnn.data import quote
from tsrnn.evaluation._forecasts import Forecasts
from tsrnn.evaluation._scale import Scale

LOSSES = ("squared", "absolute", "qlike")
OVER = ("auto", "time", "series")
ENOUGH = 20  # observations for "auto" to test
FEWEST = 5  # observations for any test


def qlike(y: np.ndarray, variance: np.ndarray) -> np.ndarray:
    r"""Quasi-likelihood loss of forecasts f of a variance, :math:`\log f + y / f`.

    Patton (2011), Volatility forecast comparison, Journal of Econometrics 160(1), 246-256.
    """
    return np.log(variance) + y / variance


def window_losses(forecasts: Forecasts, loss: str, scale: Scale | None) -> np.ndarray:
    """Losses (M, W, H + 1) by window and step; the last column is the mean over steps.

    In a panel with a scale, squared and absolute losses are divided by the scale of their series.
    NaN where nothing is compared.
    """
    y, point = forecasts.y, forecasts.point
    if loss == "qlike":
        # Rows that are not compared may hold forecasts without a logarithm.
        losses = qlike(y, np.where(np.isnan(y), 1.0, point))
    else:
        error = np.abs(y - point)
        losses = error**2 if loss == "squared" else error
        if scale is not None and forecasts.n_series > 1:
            divisor = scale.mse if loss == "squared" else scale.mae
            losses = losses / divisor[forecasts.series, None]
    known = ~np.isnan(losses)
    count = known.sum(axis=2, keepdims=True)
    total = np.where(known, losses, 0.0).sum(axis=2, keepdims=True)
    return np.concatenate([losses, total / np.where(count > 0, count, np.nan)], axis=2)


def check_variances(forecasts: Forecasts) -> None:
    """Refuse forecasts of a variance that are not positive, and negative actual values."""
    known = forecasts.known
    for name, point in zip(forecasts.models, forecasts.point, strict=True):
        bad = np.argwhere(known & ~(point > 0))
        if len(bad):
            w, step = bad[0]
            raise ValueError(
                f"forecasts of a variance must be positive; {len(bad)} of {name} are not, the "
                f"first of series {quote(forecasts.ids[forecasts.series[w]])}, cutoff "
                f"{forecasts.cutoffs[w]}, step {step + 1}: {point[w, step]:g}"
            )
    negative = int((forecasts.y < 0).sum())
    if negative:
        raise ValueError(
            "actual values of a variance must not be negative, such as squared returns or realised "
            f"variances; {negative} of column 'y' are"
        )


@dataclass(frozen=True, eq=False)
class Observations:
    """Losses of n observations of the tests: windows in order of time, or series.

    `losses` (n, M, H + 1) end with the mean over steps; NaN where an observation lacks a step.
    `overlap` (H + 1,) counts the following observations with correlated errors, as their horizons
    overlap; 0 over series. `of_window` (W,) is the observation of each window; -1 where nothing of
    it is compared.
    """

    over: str
    losses: np.ndarray
    overlap: np.ndarray
    of_window: np.ndarray

    def __len__(self) -> int:
        return len(self.losses)


def choose_observations(
    forecasts: Forecasts, losses: np.ndarray, over: str
) -> tuple[Observations | None, str, list[str]]:
    """Observations of the tests from losses (M, W, H + 1), or the reason for none, and notes."""
    known = ~np.isnan(losses[0, :, -1])
    n_times = len(np.unique(forecasts.time[known]))
    n_series = len(np.unique(forecasts.series[known]))
    if over == "auto":
        if max(n_times, n_series) < ENOUGH:
            possible = [o for o, n in (("time", n_times), ("series", n_series)) if n >= FEWEST]
            why = (
                f"tests need at least {ENOUGH} windows or {ENOUGH} series; there are {n_times} and "
                f"{n_series}"
                + "".join(f'; over="{first}" tests all the same' for first in possible[:1])
            )
            return None, why, []
        # Time before series: series may then err together.
        over = "time" if n_times >= ENOUGH else "series"
    n, noun = (n_times, "windows") if over == "time" else (n_series, "series")
    if n < FEWEST:
        return None, f"tests over {over} need at least {FEWEST} {noun}; there are {n}", []
    code = forecasts.time if over == "time" else forecasts.series
    means, of_window = _means_by(code, losses)
    compared = ~np.isnan(means[:, 0, -1])
    place = np.where(compared, np.cumsum(compared) - 1, -1)
    overlap = np.zeros(forecasts.horizon + 1, dtype=int)
    if over == "time" and forecasts.step_size is not None:
        # The number of later windows that begin before the horizon of this one ends.
        steps = np.append(np.arange(1, forecasts.horizon + 1), forecasts.horizon)
        overlap = -(-steps // forecasts.step_size) - 1
    observations = Observations(over, means[compared], overlap, place[of_window])
    return observations, "", _notes(observations, forecasts, known)


def _means_by(code: np.ndarray, losses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean known losses (n, M, H + 1) by code, and the group (W,) of each window."""
    values, group = np.unique(code, return_inverse=True)
    losses = np.moveaxis(losses, 1, 0)
    known = ~np.isnan(losses)
    total, count = (np.zeros((len(values), *losses.shape[1:])) for _ in range(2))
    np.add.at(total, group, np.where(known, losses, 0.0))
    np.add.at(count, group, known)
    return total / np.where(count > 0, count, np.nan), group


def _notes(observations: Observations, forecasts: Forecasts, known: np.ndarray) -> list[str]:
    """Notes on the evidence of the tests; `known` (W,) marks windows with losses."""
    n, n_series = len(observations), len(np.unique(forecasts.series[known]))
    noun = "windows" if observations.over == "time" else "series"
    notes = []
    if n < ENOUGH:
        notes.append(f"The tests rest on {n} {noun} only; take their p-values with care.")
    if observations.over == "series":
        notes.append(
            f"Tests over series: each of {n} series is one observation, its mean loss over the "
            "windows. They assume that series err independently of each other; with common shocks "
            "they reject too often."
        )
    elif n_series > 1:
        notes.append(
            f"Tests over time: each of {n} windows is one observation, the mean loss over the "
            "series. Series may err together."
        )
        counts = np.bincount(observations.of_window[known], minlength=n)
        if counts.min() < counts.max():
            notes.append(
                f"Windows hold between {counts.min()} and {counts.max()} series; each counts as "
                "one observation."
            )
    if observations.overlap[-1]:
        notes.append(
            f"Windows overlap ({forecasts.horizon} steps every {forecasts.step_size}): the tests "
            "allow for the correlation of neighbours. In simulations those of Diebold and Mariano "
            "at 5 percent reject 5 to 7 percent of true hypotheses with 200 windows, and up to 15 "
            'percent with 50 that overlap by 11; those with dm_variance="cosines" 4 to 6 percent.'
        )
    return notes


def mean_losses(forecasts: Forecasts, losses: np.ndarray) -> np.ndarray:
    """Mean losses (n, M) by series, or by window if there is one series."""
    last = losses[:, :, -1]
    means = last.T if forecasts.n_series == 1 else _means_by(forecasts.series, last)[0]
    return means[~np.isnan(means).any(axis=1)]
