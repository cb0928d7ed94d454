"""What a baseline remembers of the series: their rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from tsrnn.contract import check_arrays, check_borders, refuse, target_scales
from tsrnn.data import Panel


@dataclass(frozen=True)
class RowsMemory:
    """All rows of every series, one series below the other.

    Attributes
    ----------
    ids : pandas.Index of shape (S,)
    first_times, last_times : ndarray of shape (S,)
    target_scale : ndarray of shape (S, C)
        Standard deviation of each target in the data begun with; 1 where it does not vary.
    values : ndarray of shape (N, C)
    exog : ndarray of shape (N, n)
    indptr : ndarray of shape (S + 1,)
        Series i has the rows indptr[i] to indptr[i + 1].
    """

    ids: pd.Index
    first_times: np.ndarray
    last_times: np.ndarray
    target_scale: np.ndarray
    values: np.ndarray
    exog: np.ndarray
    indptr: np.ndarray

    @classmethod
    def of(cls, panel: Panel) -> RowsMemory:
        """Of the rows of a panel."""
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
        """Where the rows of series i are."""
        return slice(int(self.indptr[i]), int(self.indptr[i + 1]))

    def select(self, which: np.ndarray) -> RowsMemory:
        """Of the series numbered `which`, in that order."""
        which = np.asarray(which)
        if np.array_equal(which, np.arange(len(self.ids))):
            return self
        chosen = replace(
            self,
            ids=self.ids[which],
            first_times=self.first_times[which],
            last_times=self.last_times[which],
            target_scale=self.target_scale[which],
        )
        return chosen._with_rows(self.values, self.exog, self.indptr[which], self.lengths[which])

    def replaced(self, which: np.ndarray, new: RowsMemory) -> RowsMemory:
        """With the series numbered `which` as they stand in `new`; `self` stays as it is."""
        last_times = self.last_times.copy()
        last_times[which] = new.last_times
        starts, lengths = self.indptr[:-1].copy(), self.lengths
        starts[which], lengths[which] = len(self.values) + new.indptr[:-1], new.lengths
        return replace(self, last_times=last_times)._with_rows(
            np.concatenate([self.values, new.values]),
            np.concatenate([self.exog, new.exog]),
            starts,
            lengths,
        )

    def followed_by(self, panel: Panel) -> RowsMemory:
        """With further rows of all series, in the same order."""
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
    ) -> RowsMemory:
        """With the rows of series i being `lengths[i]` ones from `starts[i]` on."""
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        rows = np.arange(indptr[-1]) + np.repeat(starts - indptr[:-1], lengths)
        return replace(self, values=values[rows], exog=exog[rows], indptr=indptr)

    def arrays(self) -> dict[str, np.ndarray]:
        """All of it that files hold; ids and last times are kept elsewhere."""
        return {
            "rows.first_times": np.asarray(self.first_times).astype("int64"),
            "rows.target_scale": self.target_scale,
            "rows.values": self.values,
            "rows.exog": self.exog,
            "rows.indptr": self.indptr,
        }

    @classmethod
    def revived(
        cls,
        arrays: dict[str, np.ndarray],
        ids: pd.Index,
        last_times: np.ndarray,
        widths: tuple[int, int],
    ) -> RowsMemory:
        """The memory of which `arrays` holds the parts, checked.

        `widths` are the numbers of targets and of exogenous columns.

        Raises
        ------
        DamagedFileError
            Naming the array.
        """
        n, n_targets, n_exog = len(ids), *widths
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
        return cls(ids, first_times, last_times, *(arrays[f"rows.{name}"] for name in names))
