"""Prediction intervals from the forecast errors of the validation part, or learned."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
import torch
from scipy.special import ndtri
from torch import Tensor

from tsrnn.contract import IntervalWarning, warn_user
from tsrnn.forecasters._model import ForecastModel
from tsrnn.forecasters._settings import Settings
from tsrnn.forecasters._state import run_filter
from tsrnn.forecasters._units import Units, full_origins, some_units, subset

# Errors of a step that a series needs to have intervals of its own: 99 percent can be guaranteed.
OWN_ERRORS = 100
MOST_ERRORS = 20_000  # of a step: the coverage of 95 percent is then known to 0.15 percent
MOST_ORIGINS = 500_000  # to forecast from, where the errors of all units are one sample

GUARANTEES = {
    "conformal": (
        "Intervals: split conformal, per step, from the forecast errors of the validation part "
        "scaled by the local spread. They cover with the stated probability if these errors and "
        "future ones are exchangeable; for a time series that is an approximation. {errors}"
    ),
    "gaussian": (
        "Intervals: Gaussian, per step, with the root mean square of the forecast errors of the "
        "validation part scaled by the local spread. They hold if the errors are normal."
    ),
    "quantile": (
        "Intervals: quantiles of the forecast errors as functions of the state, learned with the "
        "network. They carry no guarantee; see the validation part or a backtest for coverage."
    ),
    "student-t": (
        "Intervals: Student's t with a scale and degrees of freedom that depend on the state, "
        "learned with the network by maximum likelihood. They hold if errors are of that form "
        "and carry no guarantee otherwise."
    ),
}

Ends = dict[float, tuple[np.ndarray, np.ndarray]]


class ValidationErrors:
    """Errors of the forecasts of validation rows, and of simpler forecasts of the same rows.

    Parameters
    ----------
    model, start : ForecastModel
        Model after training and before.
    units : Units
    split : integer Tensor of shape (U,)
        First validation row of each unit; the row after its last where it has none.
    settings : Settings

    Attributes
    ----------
    scaled : ndarray of shape (U, n, h, C)
        Errors over the local spread at the origin; NaN where the target is unknown or the
        series is constant. Where units have too few for intervals of their own, a sample of
        the errors of all, or of some of many units, as if of one unit.
    state : Tensor of shape (layers, U, state_size)
        State after the last row of each unit.
    """

    def __init__(
        self,
        model: ForecastModel,
        start: ForecastModel,
        units: Units,
        split: Tensor,
        settings: Settings,
    ) -> None:
        self._model, self._start, self._settings = model, start, settings
        self._units, self._split, self._season = units, split, settings.season
        ends = units.indptr[1:]
        self._chosen = some_units(split, ends, MOST_ORIGINS)
        self._pooled = self._pooled_origins()
        longest = int((ends - split).max())
        shape = (len(units), longest) if self._pooled is None else (1, len(self._pooled))
        self.scaled = np.full((*shape, model.horizon, model.n_targets), np.nan, dtype=np.float32)
        self._squares: dict[str, Tensor] = {}
        self._counts: dict[str, Tensor] = {}
        first = split - 1
        if self._pooled is not None:
            first = torch.where(self._chosen, first, ends)
        self.state = run_filter(model, units, first, visit=self._visit)

    def _pooled_origins(self) -> Tensor | None:
        """Rows whose errors serve all units; None where each unit has enough.

        Sampled first: the errors of all rows of many units would not fit in memory.
        """
        split, ends = self._split, self._units.indptr[1:]
        varies = (self._units.spread > 0).numpy()
        last_step = _counts(varies, split - 1, ends - self._model.horizon)
        varying = _counts(varies, split - 1, ends - 1).any(1)
        used = varying & self._chosen.numpy()
        if len(last_step) == 1 or not used.any() or last_step[varying].min() >= OWN_ERRORS:
            return None
        last = torch.where(torch.as_tensor(used), ends, split)
        return full_origins(split - 1, last, 1, most=MOST_ERRORS)[0]

    def _keep(self, rows: Tensor, unit: Tensor, scaled: Tensor) -> None:
        """Keep the scaled errors of some origins, if pooled those of the sample."""
        if self._pooled is None:
            self.scaled[unit, rows - (self._split[unit] - 1)] = scaled.numpy()
            return
        at = torch.searchsorted(self._pooled, rows).clamp(max=len(self._pooled) - 1)
        chosen = self._pooled[at] == rows
        self.scaled[0, at[chosen]] = scaled[chosen].numpy()

    def _visit(self, rows: Tensor, unit: Tensor, states: Tensor) -> None:
        """Errors of the model and of simpler forecasts from some rows."""
        units, model = self._units, self._model
        inside = rows < units.indptr[1:][unit] - 1  # the last row has nothing to forecast
        rows, unit, states = rows[inside], unit[inside], states[inside]
        windows, future = units.at(rows, units.starts[unit]), model.columns_ahead(units, rows)
        forecast = model.parts(windows, states, future).total()
        target, known = model.targets(units, rows, units.indptr[1:][unit])
        spread = windows.spread[:, None, :]
        error = target - forecast
        # Without spread the series is constant, and its errors say nothing about others.
        self._keep(rows, unit, torch.where(known & (spread > 0), error / spread, torch.nan))
        last = units.values[rows][:, None, : model.n_targets]
        self._add("model", error, known)
        level, linear = self._start.linear_forecasts(windows, future)
        if self._settings.local_level:
            self._add("level", target - level, known)
        if self._settings.linear_path:
            self._add("linear path", target - linear, known)
        self._add("last value", target - last, known)
        if self._season > 1:
            # The same season of the last year for all steps, as horizons exceed a season.
            steps = torch.arange(model.horizon) % self._season
            before = rows[:, None] + 1 + steps - self._season
            there = (before >= units.starts[unit][:, None])[..., None]
            values = units.values[before.clamp(min=0)][..., : model.n_targets]
            self._add("seasonal naive", target - values, known & there)

    def _add(self, name: str, error: Tensor, known: Tensor) -> None:
        """Add errors by step to the table, in float64."""
        # In float32 within a part of the rows, in float64 over all parts.
        squares = torch.where(known, error, 0.0).square().sum((0, 2)).double()
        self._squares[name] = self._squares.get(name, 0.0) + squares
        self._counts[name] = self._counts.get(name, 0.0) + known.sum((0, 2)).double()

    def table(self) -> pd.DataFrame:
        """Root mean squared error by step, over each series' naive error on the training part.

        NaN where no target has a value a season before.
        """
        rmse = {
            name: (squares / (self._counts[name] * self._model.n_targets)).sqrt().numpy()
            for name, squares in self._squares.items()
        }
        return pd.DataFrame(rmse, index=pd.RangeIndex(1, self._model.horizon + 1, name="step"))


def _counts(mask: np.ndarray, begin: Tensor, ends: Tensor) -> np.ndarray:
    """Counts (U, C) of a mask (N, C) in the rows from `begin` to before `ends`."""
    bounds = torch.stack([begin, ends], 1).flatten().numpy()
    counts = np.add.reduceat(mask, bounds, dtype=np.int64)[::2]
    return np.where((ends > begin).numpy()[:, None], counts, 0)  # an empty range adds its first row


def calibrate(errors: np.ndarray, method: str) -> Calibration:
    """Calibration by errors (U, n, h, C), pooled where units have few, sampled where many.

    Constant series have none, NaN; where all are constant, so are their forecasts, and every
    error is zero.
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


@dataclass(frozen=True, eq=False)
class Calibration:
    r"""Scaled forecast errors :math:`(y_{t+k} - \hat y_{t+k}) / s_t` of the validation part.

    Attributes
    ----------
    errors : ndarray of shape (U, n, h, C)
        By unit, origin, step and target; NaN where there is none. One unit, which
        holds all of them, where the units' errors are pooled.
    method : {"conformal", "gaussian"} or the name of a learned distribution
        Only the first two have widths.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.forecasters import Calibration
    >>> errors = np.arange(1.0, 10.0).reshape(1, 9, 1, 1)  # of a unit, a step and a target
    >>> Calibration(errors, "conformal").half_widths(80, np.array([0])).tolist()
    [[[8.0]]]
    """

    errors: np.ndarray
    method: str

    @cached_property
    def guarantee(self) -> str:
        """Guarantee of the intervals; of conformal ones, with the largest levels."""
        counts = np.isfinite(self.errors).sum(1)
        fewest = counts[counts.any((1, 2))].min((0, 2))  # a series without errors takes all's
        first, last = int(fewest[0]), int(fewest[-1])
        errors = (
            f"With {first} errors of the first step and {last} of the last, levels of up to "
            f"{100 * first / (first + 1):.3g} and {100 * last / (last + 1):.3g} percent can be "
            "guaranteed, n / (n + 1) of n errors."
        )
        return GUARANTEES[self.method].format(errors=errors)

    def half_widths(self, level: float, units: np.ndarray) -> np.ndarray:
        r"""Half the width of the intervals in units of the local spread.

        "conformal": the :math:`\lceil (n + 1) \, level \rceil`-th smallest of n absolute
        errors. "gaussian": a normal quantile times the errors' root mean square.

        Parameters
        ----------
        level : float
            Coverage in percent.
        units : integer ndarray of shape (m,)
            Units by their position among those fitted to; -1 for others.

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
            If a later step of a unit has too few: its width is that of the last step with enough,
            times the ratio of their root mean squared errors.
        """
        if len(self.errors) == 1:
            widths = np.repeat(self._pooled_width(level), len(units), 0)
        else:
            sizes = np.abs(self.errors[units])
            widths = self._width(sizes, level)
            others = (units < 0) | ~np.isfinite(sizes).any((1, 2, 3))
            if np.any(others):
                widths[others] = self._pooled_width(level)
        return self._filled(widths, level)

    def _width(self, sizes: np.ndarray, level: float) -> np.ndarray:
        """Half widths (U, h, C); NaN where there are too few errors."""
        counts = np.isfinite(sizes).sum(1)
        if self.method == "gaussian":
            squares = np.where(np.isfinite(sizes), sizes, 0.0) ** 2
            mean = squares.sum(1) / np.where(counts > 0, counts, np.nan)
            return float(ndtri(0.5 + level / 200)) * np.sqrt(mean)
        # Less a rounding error, so that 99 errors suffice for 99 percent.
        ranks = np.ceil((counts + 1) * (level / 100) - 1e-9).astype(int)
        if not sizes.shape[1]:
            return np.full(counts.shape, np.nan)
        ordered = np.sort(sizes, axis=1)  # NaN last
        chosen = np.minimum(ranks, sizes.shape[1]) - 1
        widths = np.take_along_axis(ordered, chosen[:, None], 1)[:, 0]
        return np.where(ranks > counts, np.nan, widths)

    @property
    def _pooled(self) -> np.ndarray:
        """Sizes (1, n, h, C) of the errors of all units."""
        return np.abs(self.errors.reshape(1, -1, *self.errors.shape[2:]))

    @cached_property
    def _pooled_widths(self) -> dict[float, np.ndarray]:
        """Widths by level that have been asked for: thousands of errors are sorted once."""
        return {}

    def _pooled_width(self, level: float) -> np.ndarray:
        """Half widths (1, h, C) by the errors of all units."""
        if level not in self._pooled_widths:
            self._pooled_widths[level] = self._width(self._pooled, level)
        return self._pooled_widths[level]

    def _filled(self, widths: np.ndarray, level: float) -> np.ndarray:
        """Widths (m, h, C) with those after the last calibrated step of each unit."""
        enough = np.isfinite(widths).all(2)
        if enough.all():
            return widths
        # by unit: intervals of a series do not depend on which others are asked for
        horizon = enough.shape[1]
        calibrated = np.where(enough.all(1), horizon, enough.argmin(1))
        steps = int(calibrated.min())
        sizes = self._pooled[0]
        counts = np.isfinite(sizes).sum(0)
        if steps == 0:
            errors = int(counts[0].min())
            raise ValueError(
                "the validation part gives no forecast error; fit with a larger val_size"
                if self.method == "gaussian"
                else f"a conformal interval of level {level:g} needs at least "
                f"{math.ceil(level / (100 - level) - 1e-9)} forecast errors; the validation part "
                f"gives {errors}. Ask for a level of at most "
                f"{math.floor(100 * errors / (errors + 1))}, fit with a larger val_size, or use "
                "intervals='gaussian'"
            )
        warn_user(
            f"the validation part calibrates intervals of level {level:g} for {steps} of "
            f"{horizon} steps; later ones are widened by the growth of the root mean squared "
            "error and carry no guarantee. Fit with a larger val_size or ask for a lower level",
            IntervalWarning,
        )
        squares = np.where(np.isfinite(sizes), sizes, 0.0) ** 2
        rmse = np.sqrt(squares.sum(0) / np.maximum(counts, 1))
        # Steps without errors grow as those of a random walk; no width shrinks.
        k = np.arange(1, horizon + 1)[:, None]
        for steps in np.unique(calibrated[calibrated < horizon]).tolist():
            last = rmse[steps - 1]
            growth = np.where(counts > 0, rmse / np.where(last > 0, last, 1.0), np.sqrt(k / steps))
            growth = np.maximum.accumulate(np.maximum(growth[steps:], 1.0))
            short = np.flatnonzero(calibrated == steps)
            widths[short, steps:] = widths[short, steps - 1 : steps] * growth
        return widths


@torch.no_grad()
def learned_bounds(
    model: ForecastModel, states: Tensor, levels: list[float]
) -> dict[float, tuple[np.ndarray, np.ndarray]]:
    """Ends (n, horizon, C) of the intervals of a learned distribution, over the local spread."""
    bounds = {}
    for level in levels:
        ends = model.quantiles(states, (0.5 - level / 200, 0.5 + level / 200)).numpy()
        bounds[level] = (ends[..., 0], ends[..., 1])
    return bounds


def each_end(ends: Ends, change: Callable[[np.ndarray], np.ndarray]) -> Ends:
    """Change both ends of every level."""
    return {level: (change(low), change(high)) for level, (low, high) in ends.items()}


def growth_beyond(horizon: int, h: int) -> np.ndarray:
    """Factors (h,) of half widths: 1 up to `horizon`, then the root of the step over it."""
    if h > horizon:
        warn_user(
            f"intervals are calibrated for {horizon} steps; beyond them they grow with the square "
            "root of the step and carry no guarantee. Fit with a larger horizon to calibrate them",
            IntervalWarning,
        )
    return np.sqrt(np.maximum(np.arange(1, h + 1) / horizon, 1.0))
