"""Prediction intervals from the forecast errors of the validation part."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from scipy.special import ndtri
from torch import Tensor

from tsrnn.contract import IntervalWarning, warn_user
from tsrnn.forecasters._model import ForecastModel
from tsrnn.forecasters._subset import subset

OWN_ERRORS = 100  # errors of a step that a series needs to have intervals of its own
MOST_ERRORS = 20_000  # of a step, evenly spaced


@dataclass(frozen=True)
class Calibration:
    r"""Scaled forecast errors :math:`(y_{t+k} - \hat y_{t+k}) / s_t` of the validation part.

    Attributes
    ----------
    errors : ndarray of shape (U, n, h, C)
        By unit, origin, step and target; NaN where there is none. One unit, which
        holds all of them, where the units' errors are pooled.
    method : {"conformal", "gaussian"} or the name of a learned distribution
        Only the first two have widths.
    """

    errors: np.ndarray
    method: str

    def half_widths(self, level: float, units: np.ndarray) -> np.ndarray:
        r"""Half the width of the intervals in units of the local spread.

        "conformal": the :math:`\lceil (n + 1) \, level \rceil`-th smallest of n absolute
        errors. "gaussian": a normal quantile times the errors' root mean square.

        Parameters
        ----------
        level : float
            Coverage in percent.
        units : integer ndarray of shape (m,)
            Units asked for; -1 is one never seen.

        Returns
        -------
        ndarray of shape (m, h, C)

        Raises
        ------
        ValueError
            If even the first step has too few errors for this level.

        Warns
        -----
        UserWarning
            If a later step has too few: its width is that of the last step with enough,
            times the ratio of their root mean squared errors.
        """
        sizes = np.abs(self.errors)
        pooled = sizes.reshape(1, -1, *sizes.shape[2:])
        if len(sizes) == 1:
            widths = np.repeat(self._width(sizes, level), len(units), 0)
        else:
            widths = self._width(sizes, level)[units]
            others = (units < 0) | ~np.isfinite(sizes).any((1, 2, 3))[units]
            if np.any(others):
                widths[others] = self._width(pooled, level)
        return self._filled(widths, pooled[0], level)

    def _width(self, sizes: np.ndarray, level: float) -> np.ndarray:
        """Half widths (U, h, C); NaN where there are too few errors."""
        counts = np.isfinite(sizes).sum(1)
        if self.method == "gaussian":
            squares = np.where(np.isfinite(sizes), sizes, 0.0) ** 2
            mean = squares.sum(1) / np.where(counts > 0, counts, np.nan)
            return float(ndtri(0.5 + level / 200)) * np.sqrt(mean)
        ranks = np.ceil((counts + 1) * (level / 100) - 1e-9).astype(int)
        if not sizes.shape[1]:
            return np.full(counts.shape, np.nan)
        ordered = np.sort(sizes, axis=1)  # NaN last
        chosen = np.minimum(ranks, sizes.shape[1]) - 1
        widths = np.take_along_axis(ordered, chosen[:, None], 1)[:, 0]
        return np.where(ranks > counts, np.nan, widths)

    def _filled(self, widths: np.ndarray, sizes: np.ndarray, level: float) -> np.ndarray:
        """Widths (m, h, C) with those after the last calibrated step; sizes are (n, h, C)."""
        enough = np.isfinite(widths).all((0, 2))
        steps = len(enough) if enough.all() else int(np.argmin(enough))
        if steps == len(enough):
            return widths
        counts = np.isfinite(sizes).sum(0)
        if steps == 0:
            raise ValueError(_too_few(level, int(counts[0].min()), self.method))
        warn_user(
            f"the validation part calibrates intervals of level {level:g} for {steps} of "
            f"{len(enough)} steps; later ones are widened by the growth of the root mean squared "
            "error and carry no guarantee. Fit with a larger val_size or ask for a lower level",
            IntervalWarning,
        )
        squares = np.where(np.isfinite(sizes), sizes, 0.0) ** 2
        rmse = np.sqrt(squares.sum(0) / np.maximum(counts, 1))
        last = rmse[steps - 1]
        k = np.arange(1, len(enough) + 1)[:, None]
        growth = np.where(counts > 0, rmse / np.where(last > 0, last, 1.0), np.sqrt(k / steps))
        growth = np.maximum.accumulate(np.maximum(growth[steps:], 1.0))
        return np.concatenate([widths[:, :steps], widths[:, steps - 1 : steps] * growth], 1)


def _too_few(level: float, errors: int, method: str) -> str:
    if method == "gaussian":
        return "the validation part gives no forecast error; fit with a larger val_size"
    return (
        f"a conformal interval of level {level:g} needs at least "
        f"{math.ceil(level / (100 - level) - 1e-9)} forecast errors; the validation part gives "
        f"{errors}. Ask for a level of at most {math.floor(100 * errors / (errors + 1))}, fit "
        "with a larger val_size, or use intervals='gaussian'"
    )


def calibrate(errors: np.ndarray, method: str) -> Calibration:
    """Pool the errors of all units where the units have few, and thin them out where many.

    Parameters
    ----------
    errors : ndarray of shape (U, n, h, C)
        NaN where there is none. Constant series have none; where all are constant, so are
        their forecasts, and every error is zero.
    method : {"conformal", "gaussian"}
    """
    counts = np.isfinite(errors).sum(1)
    if not counts.any():
        errors, counts = np.zeros_like(errors), np.full_like(counts, errors.shape[1])
    varying = counts.any((1, 2))
    if len(errors) > 1 and counts[varying].min() < OWN_ERRORS:
        errors = errors.reshape(1, -1, *errors.shape[2:])
        errors = errors[:, np.isfinite(errors).any((0, 2, 3))]
    if len(errors) == 1:  # a target that never varies, beside others
        errors = np.where(np.isfinite(errors).any((0, 1, 2)), errors, 0.0)
    chosen = subset(errors.shape[1], MOST_ERRORS).numpy()
    return Calibration(np.ascontiguousarray(errors[:, chosen]), method)


@torch.no_grad()
def learned_bounds(
    model: ForecastModel, states: Tensor, levels: list[float]
) -> dict[float, tuple[np.ndarray, np.ndarray]]:
    """Ends of the intervals of a learned distribution, by level, over the local spread.

    Parameters
    ----------
    model : ForecastModel
    states : Tensor of shape (n, hidden_size)
    levels : list of float
        Coverages in percent.

    Returns
    -------
    dict
        Arrays (n, horizon, C), lower and upper.
    """
    bounds = {}
    for level in levels:
        ends = model.quantiles(states, (0.5 - level / 200, 0.5 + level / 200)).numpy()
        bounds[level] = (ends[..., 0], ends[..., 1])
    return bounds


def growth_beyond(horizon: int, h: int) -> np.ndarray:
    """Factors (h,) of half widths: 1 up to `horizon`, then the root of the step over it."""
    if h > horizon:
        warn_user(
            f"intervals are calibrated for {horizon} steps; beyond them they grow with the square "
            "root of the step and carry no guarantee. Fit with a larger horizon to calibrate them",
            IntervalWarning,
        )
    return np.sqrt(np.maximum(np.arange(1, h + 1) / horizon, 1.0))
