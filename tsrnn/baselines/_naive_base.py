"""What the naive methods have in common."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtrit
from sklearn.utils.validation import check_is_fitted

from tsrnn.baselines._memory import RowsMemory
from tsrnn.baselines._rows import RowsForecaster
from tsrnn.baselines._text import BaselineSummary, series_named
from tsrnn.contract import (
    MOST_STEPS,
    IntervalWarning,
    as_saved,
    integer,
    record,
    refuse,
    warn_user,
    with_intervals,
)
from tsrnn.data import Panel

FEW_ERRORS = 4  # below, not even an interval of 80 percent could be had without a distribution


class NaiveMethod(RowsForecaster):
    """Base of the methods without parameters; not to be used by itself.

    Forecasts follow from the rows alone, so that series never seen are answered as well.
    Intervals take quantiles of Student's t, with the standard deviation of the residuals over
    their degrees of freedom. They are exact, however few rows there are, if errors are normal,
    uncorrelated and of constant variance.
    """

    _guarantee = (
        "Exact, for any number of rows, if the errors are normal, uncorrelated and of constant "
        "variance; none otherwise."
    )

    season_: int

    @property
    def _fewest(self) -> int:
        """Rows that a series must have for a forecast with intervals."""
        return 2

    @property
    def _degrees_lost(self) -> int:
        """Rows of a series less the degrees of freedom of its residuals."""
        return 1

    @abstractmethod
    def _ahead(self, memory: RowsMemory, h: int) -> tuple[np.ndarray, np.ndarray]:
        """Forecasts and their standard errors, each (S, h, C), of series that are long enough."""

    def _known(self, memory: RowsMemory, h: int) -> tuple[np.ndarray, np.ndarray]:
        """Forecasts and their standard errors, NaN of series that are too short."""
        shape = len(memory.ids), h, memory.values.shape[1]
        mean, error = np.full(shape, np.nan), np.full(shape, np.nan)
        long = np.flatnonzero(memory.lengths >= self._fewest)
        if len(long):
            mean[long], error[long] = self._ahead(memory.select(long), h)
        return mean, error

    def _fit_panel(self, panel: Panel) -> RowsMemory:
        # 1 step where the method has no season
        self.season_ = self._season(self.arguments_.as_dict().get("season_length", 1))
        return self._long_enough(RowsMemory.of(panel))

    def _memory_of(self, panel: Panel) -> RowsMemory:
        return self._long_enough(RowsMemory.of(panel))

    def _long_enough(self, memory: RowsMemory) -> RowsMemory:
        short = np.flatnonzero(memory.lengths < self._fewest)
        if not len(short):
            return memory
        which = series_named(self._panel_shape[0], memory.ids[short])
        told = (
            f"{type(self).__name__} needs at least {self._fewest} rows of a series; "
            f"{which} has {memory.lengths[short[0]]}"
        )
        if len(short) == len(memory.ids):
            raise ValueError(f"{told}. Give more rows")
        warn_user(f"{told}. The forecasts of {len(short)} of {len(memory.ids)} series are NaN")
        return memory

    def _forecast(
        self, memory: RowsMemory, h: int, levels: list[float], future: np.ndarray | None
    ) -> dict[str, np.ndarray]:
        mean, error = self._known(memory, h)
        long = np.flatnonzero(memory.lengths >= self._fewest)
        degrees = np.maximum(memory.lengths - self._degrees_lost, 1)
        few = long[degrees[long] < FEW_ERRORS]
        if levels and len(few):
            least = int(degrees[few].min())
            which = series_named(self._panel_shape[0], memory.ids[few])
            warn_user(
                f"the intervals of {which} rest on {least} error{'s' * (least > 1)}: they follow "
                "from the assumption of normal errors alone, which so few cannot question. Give "
                "more rows",
                IntervalWarning,
            )
        quantiles = {level: stdtrit(degrees, 0.5 + level / 200) for level in levels}
        return with_intervals(mean, {p: t[:, None, None] * error for p, t in quantiles.items()})

    def _draw_paths(
        self,
        memory: RowsMemory,
        h: int,
        n: int,
        future: np.ndarray | None,
        rng: np.random.Generator,
    ) -> np.ndarray:
        """Paths (n, S, h, C) with normal errors, whose unknown variance all steps share."""
        mean, error = self._known(memory, h)
        degrees = np.maximum(memory.lengths - self._degrees_lost, 1)
        paths = np.empty((n, *mean.shape))
        for i, length in enumerate(memory.lengths):
            factor = self._factor(int(length), h)
            factor /= np.linalg.norm(factor, axis=1, keepdims=True)
            draws = factor @ rng.standard_normal((n, factor.shape[1], mean.shape[2]))
            # as in the intervals, Student's t: the variance is estimated from so many errors
            paths[:, i] = draws / np.sqrt(rng.chisquare(degrees[i], (n, 1, 1)) / degrees[i])
        return mean + error * paths

    def _factor(self, length: int, h: int) -> np.ndarray:
        """Errors (h, k) of h steps by independent ones, up to scale: those of the steps add up."""
        return np.tri(h)

    def summary(self) -> BaselineSummary:
        """What the forecasts follow from; print the result."""
        check_is_fitted(self, "memory_")
        lengths = self.memory_.lengths
        facts = [f"{len(lengths)} series of {lengths.min()} to {lengths.max()} rows, no parameters"]
        if self.season_ > 1:
            facts.append(f"season of {self.season_} steps")
        return BaselineSummary(type(self).__name__, "\n".join(facts))

    def _header(self) -> dict[str, Any]:
        return {"horizon": self.horizon_, "season": self.season_}

    def _arrays(self) -> dict[str, np.ndarray]:
        return self.memory_.arrays()

    def _revive(
        self,
        header: dict[str, Any],
        arrays: dict[str, np.ndarray],
        ids: pd.Index,
        last_times: np.ndarray,
    ) -> RowsMemory:
        record({"horizon": integer(1, MOST_STEPS), "season": integer(1)})(header, "fitted")
        with as_saved("params"):
            season = self._season(self.arguments_.as_dict().get("season_length", 1))
        if header["season"] != season:
            raise refuse("fitted.season", f"{season}, by season_length and freq", header["season"])
        self.horizon_, self.season_ = header["horizon"], season
        memory = RowsMemory.revived(arrays, ids, last_times, self._widths())
        if memory.lengths.max() < self._fewest:
            required = f"of a series with at least {self._fewest} rows"
            raise refuse("the array 'rows.indptr'", required, memory.indptr[:8].tolist())
        return memory


def root_mean_square(errors: np.ndarray, indptr: np.ndarray, lost: int) -> np.ndarray:
    """Standard deviations (S, 1, C) of errors (N, C), which are 0 where there is none.

    Degrees of freedom are the rows but for `lost` ones.
    """
    squares = np.add.reduceat(errors**2, indptr[:-1])
    return np.sqrt(squares / (np.diff(indptr) - lost)[:, None])[:, None]


def seasonal_differences(values: np.ndarray, indptr: np.ndarray, lag: int) -> np.ndarray:
    """Differences (N, C) to the row `lag` before of the same series; 0 where there is none."""
    differences = np.zeros_like(values)
    differences[lag:] = values[lag:] - values[:-lag]
    number = np.arange(len(values)) - np.repeat(indptr[:-1], np.diff(indptr))
    differences[number < lag] = 0.0
    return differences
