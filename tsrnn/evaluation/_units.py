"""What the tests count as one observation: a window, or a series."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tsrnn.evaluation._forecasts import Forecasts

OVER = ("auto", "time", "series")
ENOUGH = 20  # units for "auto" to test
FEWEST = 5  # units for any test


@dataclass(frozen=True)
class Units:
    """Losses of n units, windows in order of time or series.

    Attributes
    ----------
    over : {"time", "series"}
    losses : ndarray of shape (n, M, H + 1)
        Last the mean over the steps; NaN where a unit has no row of a step.
    overlap : int ndarray of shape (H + 1,)
        How many of the following units a forecast error may be correlated with because their
        forecasts share part of the future; 0 of series.
    of_window : int ndarray of shape (W,)
        Unit of each window.
    """

    over: str
    losses: np.ndarray
    overlap: np.ndarray
    of_window: np.ndarray

    def __len__(self) -> int:
        return len(self.losses)


def newey_west_lags(overlap: int, n: int) -> int:
    r"""Lags of the Bartlett kernel for n units whose errors overlap.

    None where forecasts do not overlap, else :math:`\max(\text{overlap}, \lceil n^{1/3} \rceil)`,
    as statsmodels takes: with the overlap alone, the weights of the kernel would leave out part
    of the variance however many units there are.
    """
    return max(overlap, math.ceil(n ** (1 / 3) - 1e-9)) if overlap else 0


def choose_units(
    forecasts: Forecasts, losses: np.ndarray, over: str
) -> tuple[Units | None, str, list[str]]:
    """Units of the tests, or why there are none; and notes.

    Parameters
    ----------
    forecasts : Forecasts
    losses : ndarray of shape (M, W, H + 1)
    over : {"auto", "time", "series"}
    """
    known = ~np.isnan(losses[0, :, -1])
    n_times = len(np.unique(forecasts.time[known]))
    n_series = len(np.unique(forecasts.series[known]))
    chosen = _automatic(n_times, n_series) if over == "auto" else over
    if chosen is None:
        return None, _too_few(n_times, n_series), []
    n = n_times if chosen == "time" else n_series
    if n < FEWEST:
        noun = "windows" if chosen == "time" else "series"
        return None, f"tests over {chosen} need at least {FEWEST} {noun}; there are {n}", []
    code = forecasts.time if chosen == "time" else forecasts.series
    units, of_window = np.unique(code, return_inverse=True)
    means = _mean_by(np.moveaxis(losses, 1, 0), of_window, len(units))
    some = ~np.isnan(means[:, 0, -1])
    place = np.where(some, np.cumsum(some) - 1, -1)
    overlap = _overlap(forecasts, chosen)
    found = Units(chosen, means[some], overlap, place[of_window])
    return found, "", _notes(found, forecasts, known)


def _automatic(n_times: int, n_series: int) -> str | None:
    if n_times >= ENOUGH:
        return "time"
    return "series" if n_series >= ENOUGH else None


def _too_few(n_times: int, n_series: int) -> str:
    ask = 'over="time"' if n_times >= FEWEST else 'over="series"' if n_series >= FEWEST else ""
    more = f"; {ask} tests all the same" if ask else ""
    return (
        f"tests need at least {ENOUGH} windows or {ENOUGH} series; there are {n_times} and "
        f"{n_series}{more}"
    )


def _mean_by(values: np.ndarray, code: np.ndarray, n: int) -> np.ndarray:
    """Mean of what is known over the windows of each unit: (W, M, H + 1) to (n, M, H + 1)."""
    known = ~np.isnan(values)
    total, count = np.zeros((n, *values.shape[1:])), np.zeros((n, *values.shape[1:]))
    np.add.at(total, code, np.where(known, values, 0.0))
    np.add.at(count, code, known)
    return total / np.where(count > 0, count, np.nan)


def _overlap(forecasts: Forecasts, over: str) -> np.ndarray:
    """Windows that follow before a forecast of each number of steps is over, less one."""
    steps = np.append(np.arange(1, forecasts.horizon + 1), forecasts.horizon)
    if over == "series" or forecasts.step_size is None:
        return np.zeros_like(steps)
    return -(-steps // forecasts.step_size) - 1


def _notes(units: Units, forecasts: Forecasts, known: np.ndarray) -> list[str]:
    """What the tests rest on; `known` are the windows that have losses."""
    n, n_series = len(units), len(np.unique(forecasts.series[known]))
    noun = "windows" if units.over == "time" else "series"
    notes = []
    if n < ENOUGH:
        notes.append(f"The tests rest on {n} {noun} only; take their p-values with care.")
    if units.over == "series":
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
        notes += _unbalanced(units, known)
    if units.overlap[-1]:
        notes.append(
            f"Windows overlap ({forecasts.horizon} steps every {forecasts.step_size}): the tests "
            "allow for the correlation of neighbours, but in simulations those at 5 percent still "
            "reject 6 to 9 percent of true hypotheses."
        )
    return notes


def _unbalanced(units: Units, known: np.ndarray) -> list[str]:
    counts = np.bincount(units.of_window[known], minlength=len(units))
    if counts.min() == counts.max():
        return []
    return [
        f"Windows hold between {counts.min()} and {counts.max()} series; each counts as one "
        "observation."
    ]


def mean_losses(forecasts: Forecasts, losses: np.ndarray) -> np.ndarray:
    """Mean loss of each series, of each window where there is one series: shape (n, M)."""
    last = losses[:, :, -1]
    if forecasts.n_series == 1:
        means = last.T
    else:
        units, code = np.unique(forecasts.series, return_inverse=True)
        means = _mean_by(last.T, code, len(units))
    return means[~np.isnan(means).any(axis=1)]
