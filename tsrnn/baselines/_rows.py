"""Rows of the series: the state of all baselines, on which their forecasts condition."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from tsrnn.contract import (
    Arguments,
    ClassicalModel,
    FittedData,
    Summary,
    check_arrays,
    check_borders,
    frequency_defaults,
    positive_integer,
    refuse,
    target_scales,
)
from tsrnn.data import Layout, Panel, quote_series

NAMES_SHOWN = 3


@dataclass(frozen=True, eq=False)
class RowsState:
    """State of a baseline: all rows of every series, one series below the other.

    Series i has the rows indptr[i] to indptr[i + 1] of `values` (N, C) and `exog` (N, n).
    `target_scale` (S, C) is the standard deviation of each target in the data fitted to; 1 where it
    does not vary.
    """

    ids: pd.Index
    first_times: np.ndarray
    last_times: np.ndarray
    target_scale: np.ndarray
    values: np.ndarray
    exog: np.ndarray
    indptr: np.ndarray

    @classmethod
    def of(cls, panel: Panel) -> RowsState:
        """State after the rows of a panel."""
        return cls(
            panel.ids,
            panel.times[panel.indptr[:-1]],
            panel.last_times,
            target_scales(panel),
            panel.values,
            panel.exog,
            panel.indptr,
        )

    @property
    def lengths(self) -> np.ndarray:
        """Rows of each series, shape (S,)."""
        return np.diff(self.indptr)

    def rows(self, i: int) -> slice:
        """Slice of the rows of series i."""
        return slice(int(self.indptr[i]), int(self.indptr[i + 1]))

    def select(self, series: np.ndarray) -> RowsState:
        """Select series by position."""
        series = np.asarray(series)
        if np.array_equal(series, np.arange(len(self.ids))):
            return self
        names = ("ids", "first_times", "last_times", "target_scale")
        chosen = replace(self, **{name: getattr(self, name)[series] for name in names})
        return chosen._with_rows(self.values, self.exog, self.indptr[series], self.lengths[series])

    def replaced(self, series: np.ndarray, new: RowsState) -> RowsState:
        """Replace the series at these positions by those of `new`."""
        arrays = {}
        for name in ("first_times", "last_times", "target_scale"):
            arrays[name] = getattr(self, name).copy()
            arrays[name][series] = getattr(new, name)
        starts, lengths = self.indptr[:-1].copy(), self.lengths
        starts[series], lengths[series] = len(self.values) + new.indptr[:-1], new.lengths
        return replace(self, **arrays)._with_rows(
            np.concatenate([self.values, new.values]),
            np.concatenate([self.exog, new.exog]),
            starts,
            lengths,
        )

    def followed_by(self, panel: Panel) -> RowsState:
        """State after further rows of all series, in the same order."""
        counts = np.stack([self.lengths, panel.lengths], 1).ravel()
        here = np.repeat(np.tile([True, False], len(self.ids)), counts)
        values = np.empty((len(here), self.values.shape[1]))
        exog = np.empty((len(here), self.exog.shape[1]))
        values[here], values[~here] = self.values, panel.values
        exog[here], exog[~here] = self.exog, panel.exog
        indptr = self.indptr + panel.indptr
        return replace(self, last_times=panel.last_times, values=values, exog=exog, indptr=indptr)

    def _with_rows(
        self, values: np.ndarray, exog: np.ndarray, starts: np.ndarray, lengths: np.ndarray
    ) -> RowsState:
        """State whose series i has `lengths[i]` rows, from row `starts[i]` on."""
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        rows = np.arange(indptr[-1]) + np.repeat(starts - indptr[:-1], lengths)
        return replace(self, values=values[rows], exog=exog[rows], indptr=indptr)

    def arrays(self) -> dict[str, np.ndarray]:
        """Arrays for a file; its header has ids and last times."""
        return {
            "rows.first_times": np.asarray(self.first_times).astype("int64"),
            "rows.target_scale": self.target_scale,
            "rows.values": self.values,
            "rows.exog": self.exog,
            "rows.indptr": self.indptr,
        }

    @classmethod
    def from_file(
        cls, arrays: dict[str, np.ndarray], data: FittedData, last_times: np.ndarray
    ) -> RowsState:
        """State from the arrays of a file, checked."""
        n, n_targets, n_exog = len(data.ids), data.n_targets, len(data.exog_names)
        shapes = {
            "first_times": ("int64", (n,)),
            "target_scale": ("float64", (n, n_targets)),
            "values": ("float64", (-1, n_targets)),
            "exog": ("float64", (-1, n_exog)),
            "indptr": ("int64", (n + 1,)),
        }
        check_arrays(arrays, {f"rows.{name}": shape for name, shape in shapes.items()})
        n_rows = len(arrays["rows.values"])
        check_borders(arrays["rows.indptr"], n_rows, "rows.indptr")
        if len(arrays["rows.exog"]) != n_rows:
            came = arrays["rows.exog"].shape
            raise refuse("the array 'rows.exog'", f"of the {n_rows} rows of 'rows.values'", came)
        first_times = arrays["rows.first_times"].astype(last_times.dtype)
        names = ("target_scale", "values", "exog", "indptr")
        return cls(data.ids, first_times, last_times, *(arrays[f"rows.{name}"] for name in names))


@dataclass(frozen=True, eq=False)
class FittedRows(ClassicalModel[RowsState]):
    """Base of the fitted baselines: forecasts condition on all rows seen, which are the state."""

    arguments: Arguments
    data: FittedData
    horizon: int

    def filter(self, panel: Panel) -> RowsState:
        return RowsState.of(panel)

    def advance(self, state: RowsState, panel: Panel) -> RowsState:
        return state.followed_by(panel)


def season_steps(season_length: Any, data: FittedData) -> int:
    """Steps of the season; None takes that of the frequency."""
    if season_length is None:
        return frequency_defaults(data.layout).season
    return positive_integer("season_length", season_length)


@dataclass(frozen=True, repr=False)
class BaselineSummary(Summary):
    """Summary of a fitted baseline; print it.

    Attributes
    ----------
    title : str
    text : str
    notes : tuple of str
        Notes on the support of the targets.
    """

    title: str
    text: str
    notes: tuple[str, ...] = ()

    def as_text(self) -> str:
        """Title, text and notes as they are printed."""
        return "\n\n".join([self.title, self.text, *map(textwrap.fill, self.notes)])


def name_series(layout: Layout, ids: Iterable[Any]) -> str:
    """Quote the first few series; "the series" if the data have no ids."""
    return "the series" if layout.id_col is None else quote_series(ids, NAMES_SHOWN)
