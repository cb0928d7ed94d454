"""Prediction intervals from the forecast errors of the validation part."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

OWN_ERRORS = 100  # errors of a step that a series needs to have intervals of its own
POOLED_ERRORS = 20_000  # of a step at most, evenly spaced over the units


@dataclass(frozen=True)
class Calibration:
    r"""Scaled forecast errors :math:`(y_{t+k} - \hat y_{t+k}) / s_t` of the validation part.

    Attributes
    ----------
    errors : ndarray of shape (U, n, h, C)
        By unit, origin, step and target; NaN where there is none. One unit, which
        holds all of them, where the units' errors are pooled.
    method : {"conformal", "gaussian"}
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
            If there are too few errors for this level.
        """
        sizes = np.abs(self.errors)
        if len(sizes) == 1:
            return np.repeat(self._width(sizes, level), len(units), 0)
        widths = self._width(sizes, level)[units]
        if np.any(units < 0):
            pooled = sizes.reshape(1, -1, *sizes.shape[2:])
            widths[units < 0] = self._width(pooled, level)
        return widths

    def _width(self, sizes: np.ndarray, level: float) -> np.ndarray:
        counts = np.isfinite(sizes).sum(1)
        if self.method == "gaussian":
            return float(ndtri(0.5 + level / 200)) * np.sqrt(np.nanmean(sizes**2, 1))
        ranks = np.ceil((counts + 1) * (level / 100) - 1e-9).astype(int)
        if np.any(ranks > counts):
            fewest = int(counts.min())
            raise ValueError(
                f"a conformal interval of level {level:g} needs at least "
                f"{math.ceil(level / (100 - level) - 1e-9)} forecast errors of every step; the "
                f"validation part gives {fewest}. Ask for a level of at most "
                f"{math.floor(100 * fewest / (fewest + 1))}, fit with a larger val_size, or use "
                "intervals='gaussian'"
            )
        ordered = np.sort(sizes, axis=1)  # NaN last
        return np.take_along_axis(ordered, (ranks - 1)[:, None], 1)[:, 0]


def calibrate(errors: np.ndarray, method: str) -> Calibration:
    """Pool the errors of all units where the units have few.

    Parameters
    ----------
    errors : ndarray of shape (U, n, h, C)
        NaN where there is none.
    method : {"conformal", "gaussian"}
    """
    fewest = np.isfinite(errors).sum(1).min(initial=OWN_ERRORS)
    if len(errors) > 1 and fewest < OWN_ERRORS:
        errors = errors.reshape(1, -1, *errors.shape[2:])
        errors = errors[:, :: max(1, -(-errors.shape[1] // POOLED_ERRORS))]
    return Calibration(errors, method)


def check_levels(level: Any) -> list[float]:
    """Levels as a list of percentages.

    Raises
    ------
    TypeError, ValueError
        If a level is not a number between 0 and 100.
    """
    if level is None:
        return []
    levels = list(level) if isinstance(level, Sequence | np.ndarray | set) else [level]
    for value in levels:
        if isinstance(value, bool | str) or not isinstance(value, int | float | np.number):
            raise TypeError(f"level must be percentages such as level=[80, 95]; got {level!r}")
        if not 0 < value < 100:
            raise ValueError(f"level must lie strictly between 0 and 100 percent; got {value!r}")
        if value < 1:
            raise ValueError(
                f"level is in percent; for a coverage of {value:g} write {100 * value:g}"
            )
    return levels


def extend(widths: np.ndarray, h: int) -> np.ndarray:
    """Half widths of h steps: those calibrated, then growing with the root of the step.

    Parameters
    ----------
    widths : ndarray of shape (m, horizon, C)
    h : int
    """
    horizon = widths.shape[1]
    if h <= horizon:
        return widths[:, :h]
    warnings.warn(
        f"intervals are calibrated for {horizon} steps; beyond them they grow with the square "
        "root of the step and carry no guarantee. Fit with a larger horizon to calibrate them",
        stacklevel=4,
    )
    growth = np.sqrt(np.arange(horizon + 1, h + 1) / horizon)
    return np.concatenate([widths, widths[:, -1:] * growth[None, :, None]], 1)


def level_name(level: float) -> str:
    """A level as it stands in a column's name: an integer where it is one."""
    return f"{level:g}"
