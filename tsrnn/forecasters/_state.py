"""State of series after their last rows, and the filter that updates it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from tsrnn.contract import SeriesArrays
from tsrnn.data import Panel
from tsrnn.forecasters._model import ForecastModel
from tsrnn.forecasters._scaling import Scaling
from tsrnn.forecasters._units import Units

POSITIONS_AT_ONCE = 2**17  # rows of one batch of units: 32 MB with 64 float32 states
STEPS_AT_ONCE = 4096  # so that at least 32 units run side by side, however long they are

Visit = Callable[[Tensor, Tensor, Tensor], None]


@dataclass(frozen=True, eq=False)
class RecurrentState(SeriesArrays):
    """State of every series after its last row, from which forecasts and updates continue.

    Attributes
    ----------
    ids : pandas.Index of shape (S,)
    fitted : integer ndarray of shape (S,)
        Positions among the series fitted to; -1 for others.
    last_times : ndarray of shape (S,)
    n_rows : integer ndarray of shape (S,)
        Rows seen so far.
    scaling : Scaling
    tail : list of S ndarrays of shape (<= W, C + E)
        Last rows on the original scale.
    hidden : Tensor of shape (layers, U, state_size)
        Hidden state of each unit, ordered by series, then target.

    Examples
    --------
    >>> from tsrnn import ParaRNNForecaster
    >>> from tsrnn.datasets import load_elec_equip
    >>> model = ParaRNNForecaster(horizon=12, hidden_size=4, max_epochs=1, refit=False)
    >>> state = model.fit(load_elec_equip()).state_
    >>> state.n_rows.tolist() == [len(load_elec_equip())], state.units_per_series
    (True, 1)
    """

    ids: pd.Index
    fitted: np.ndarray
    last_times: np.ndarray
    n_rows: np.ndarray
    scaling: Scaling
    tail: list[np.ndarray]
    hidden: Tensor

    @classmethod
    def after(
        cls, panel: Panel, fitted: np.ndarray, scaling: Scaling, hidden: Tensor, window: int
    ) -> RecurrentState:
        """State after a panel; keeps the last `window` rows of each series."""
        end = panel.tail(window)
        rows = np.hstack([end.values, end.exog])
        bounds = zip(end.indptr[:-1], end.indptr[1:], strict=True)
        tail = [rows[low:high].copy() for low, high in bounds]
        return cls(panel.ids, fitted, panel.last_times, panel.lengths, scaling, tail, hidden)

    @property
    def target_scale(self) -> np.ndarray:
        """Standard deviation of each target in the training part, shape (S, C)."""
        return self.scaling.deviation

    @property
    def units_per_series(self) -> int:
        """Number of units of a series: 1, or the number of targets."""
        return self.hidden.shape[1] // len(self.ids)

    @property
    def fitted_units(self) -> np.ndarray:
        """Positions of the units among the units fitted to, (U,); -1 for new series."""
        return np.where(self.fitted[:, None] < 0, -1, self._unit_numbers(self.fitted)).ravel()

    def replaced(self, series: np.ndarray, new: RecurrentState) -> RecurrentState:
        """Replace the series at some positions by the series of `new`."""
        last_times, n_rows, tail = self.last_times.copy(), self.n_rows.copy(), list(self.tail)
        last_times[series], n_rows[series] = new.last_times, new.n_rows
        for i, rows in zip(series, new.tail, strict=True):
            tail[i] = rows
        hidden = self.hidden.clone()
        hidden[:, self._unit_numbers(series).ravel()] = new.hidden
        return replace(self, last_times=last_times, n_rows=n_rows, tail=tail, hidden=hidden)

    def select(self, series: np.ndarray) -> RecurrentState:
        """Select series by position."""
        return replace(
            super().select(series),
            scaling=self.scaling.select(series),
            tail=[self.tail[i] for i in series],
            hidden=self.hidden[:, self._unit_numbers(series).ravel()],
        )

    def rows_with(self, panel: Panel) -> list[np.ndarray]:
        """Last rows of each series, followed by its rows in a panel."""
        rows = np.hstack([panel.values, panel.exog])
        bounds = zip(self.tail, panel.indptr[:-1], panel.indptr[1:], strict=True)
        return [np.vstack([old, rows[low:high]]) for old, low, high in bounds]

    def _unit_numbers(self, series: np.ndarray) -> np.ndarray:
        """Positions of the units of some series, shape (S, G)."""
        per_series = self.units_per_series
        return series[:, None] * per_series + np.arange(per_series)


@torch.no_grad()
def run_filter(
    model: ForecastModel,
    units: Units,
    first: Tensor,
    hidden: Tensor | None = None,
    *,
    begin: Tensor | None = None,
    visit: Visit | None = None,
) -> Tensor:
    """Run the network over every unit, and return its state, shape (layers, U, state_size).

    It begins with row `begin` of each unit, by default the first, in the state `hidden`, by default
    the initial state. From row `first` on, ``visit(rows, unit, states)`` is called with rows (n,),
    the unit of each and the outputs of the last layer after them (n, hidden), on parts of the rows
    in any order.
    """
    begin = units.starts if begin is None else begin
    ends = units.indptr[1:]
    network = model.network
    hidden = (network.initial_state(len(units)) if hidden is None else hidden).clone()
    order = torch.argsort(ends - begin, stable=True)  # units of similar length run together
    while len(order):
        longest = min(int((ends - begin)[order[-1]]), STEPS_AT_ONCE)
        count = max(1, POSITIONS_AT_ONCE // max(longest, 1))
        group, order = order[-count:], order[:-count]
        for offset in range(0, int((ends - begin)[group].max()), STEPS_AT_ONCE):
            start, end = begin[group] + offset, ends[group][:, None]
            lengths = (ends[group] - start).clamp(min=0, max=STEPS_AT_ONCE)
            most = int(lengths.max())
            rows = start[:, None] + torch.arange(most)
            rows = torch.minimum(rows, end - 1)  # the last row, repeated after a unit's end
            x = units.inputs(rows).to(hidden.dtype)
            padded = None if int(lengths.min()) == most else lengths  # no masks without padding
            states, hidden[:, group] = network.run(x, hidden[:, group], padded)
            if visit is not None:
                wanted = rows >= first[group][:, None]
                wanted &= torch.arange(rows.shape[1]) < lengths[:, None]
                if bool(wanted.any()):
                    owner = group[:, None].expand_as(rows)
                    visit(rows[wanted], owner[wanted], states[wanted])
    return hidden
