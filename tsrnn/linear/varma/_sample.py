"""The observations of many units side by side, as the likelihood reads them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tsrnn.linear.varma._shape import Shape


@dataclass(frozen=True, eq=False)
class Sample:
    """Observations of U units, shorter ones padded at the end.

    Parameters
    ----------
    shape : Shape
        Of the model.
    y : array of shape (U, T, n)
        NaN where missing; after a unit's end anything.
    design : array of shape (U, T, n_design)
        Trend and exogenous columns.
    presample : array of shape (U, n)
        What y is taken to be before the first row, under the conditional likelihood.
    rows : integer array of shape (U,)
    """

    shape: Shape
    y: np.ndarray
    design: np.ndarray
    presample: np.ndarray
    rows: np.ndarray

    @cached_property
    def inside(self) -> np.ndarray:
        """Whether each row is one of the unit, (U, T)."""
        return np.arange(self.y.shape[1]) < self.rows[:, None]

    @cached_property
    def is_whole(self) -> bool:
        """Whether no unit is padded."""
        return bool((self.rows == self.y.shape[1]).all())

    @cached_property
    def seen(self) -> np.ndarray:
        """Whether each value is there, (U, T, n)."""
        return ~np.isnan(self.y) & self.inside[..., None]

    @cached_property
    def n_missing(self) -> np.ndarray:
        """Missing entries of each unit."""
        return self.shape.n * self.rows - self.seen.sum((1, 2))

    @property
    def n_obs(self) -> np.ndarray:
        """Rows of each unit in which something was observed."""
        return self.seen.any(2).sum(1)

    @cached_property
    def filled(self) -> np.ndarray:
        """Observations with zero for what is missing or padding, (U, T, n)."""
        return np.where(self.seen, self.y, 0.0)

    @property
    def level(self) -> np.ndarray:
        """Row of the design that the state before the first row is stationary under.

        The second one, where there are two: statsmodels' VARMAX, whose state at the first row is
        (y_1, ...), has it from the intercept that leads to the second row.
        """
        return self.design[np.arange(len(self.rows)), np.minimum(1, self.rows - 1)]

    @cached_property
    def sources(self) -> np.ndarray:
        """What coefficients of the design and of lags 1 to p multiply, (U, T, n_design + p n).

        Under the exact likelihood the rows before the first are part of the unknown state, and
        so is the design of the first row.
        """
        p, steps = self.shape.p, self.y.shape[1]
        design, before = self.design, self.presample
        if self.shape.exact:
            design, before = design.copy(), np.zeros_like(before)
            design[:, 0] = 0.0
        whole = np.concatenate([np.repeat(before[:, None], p, 1), self.filled], 1)
        lags = [whole[:, p - i : p - i + steps] for i in range(1, p + 1)]
        return np.concatenate([design, *lags], 2)

    @cached_property
    def missing(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows and targets of the missing values of the only unit, or none."""
        if not self.n_missing.any():
            return np.empty(0, int), np.empty(0, int)
        if len(self.y) > 1:
            raise ValueError(f"units with missing values come one by one; got {len(self.y)}")
        times, targets = np.nonzero(~self.seen[0, : self.rows[0]])
        return times, targets

    def select(self, units: np.ndarray) -> Sample:
        """Those of some units, without the padding that none of them needs."""
        if len(units) == len(self.y) and (units == np.arange(len(units))).all():
            return self  # with what it has computed
        rows = self.rows[units]
        steps = int(rows.max())
        parts = self.y[units, :steps], self.design[units, :steps], self.presample[units]
        return Sample(self.shape, *parts, rows)


def offsets(shape: Shape, design: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    """Trend and exogenous part w_t (U, T, n) beside the state, which has that of the first row."""
    effect = design @ coefficients.swapaxes(1, 2)
    if shape.exact:
        effect[:, 0] = 0.0
    return effect
