"""Memory of series: the state that a filter carries through their rows, and their last rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from tsrnn.data import Panel
from tsrnn.forecasters._model import ForecastModel
from tsrnn.forecasters._scaling import Scaling, fit_scaling, standardise
from tsrnn.forecasters._settings import Settings
from tsrnn.forecasters._units import Units, units_of

POSITIONS_AT_ONCE = 2**17  # rows of all units that run together, for memory
STEPS_AT_ONCE = 4096

Visit = Callable[[Tensor, Tensor, Tensor], None]


@dataclass(frozen=True)
class Memory:
    """State of every series after its last row: enough to continue, not its whole past.

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
        Last rows, in the units of the data.
    state : Tensor of shape (layers, U, state_size)
        Of each unit: series by series, target by target.

    Examples
    --------
    >>> from tsrnn import ParaRNNForecaster
    >>> from tsrnn.datasets import load_elec_equip
    >>> model = ParaRNNForecaster(horizon=12, hidden_size=4, max_epochs=1, refit=False)
    >>> memory = model.fit(load_elec_equip()).state_
    >>> memory.n_rows.tolist() == [len(load_elec_equip())], memory.units_per_series
    (True, 1)
    """

    ids: pd.Index
    fitted: np.ndarray
    last_times: np.ndarray
    n_rows: np.ndarray
    scaling: Scaling
    tail: list[np.ndarray]
    state: Tensor

    @property
    def target_scale(self) -> np.ndarray:
        """Standard deviation of each target in the training part, (S, C)."""
        return self.scaling.deviation

    @property
    def units_per_series(self) -> int:
        """Units of forecasting of a series: 1, or one a target."""
        return self.state.shape[1] // len(self.ids)

    def replaced(self, series: np.ndarray, new: Memory) -> Memory:
        """Memory with some series, by number, as they stand in `new`."""
        last_times, n_rows, tail = self.last_times.copy(), self.n_rows.copy(), list(self.tail)
        last_times[series], n_rows[series] = new.last_times, new.n_rows
        for i, rows in zip(series, new.tail, strict=True):
            tail[i] = rows
        state = self.state.clone()
        state[:, self._unit_numbers(series)] = new.state
        return replace(self, last_times=last_times, n_rows=n_rows, tail=tail, state=state)

    def select(self, series: np.ndarray) -> Memory:
        """Memory of some series."""
        names = ("ids", "fitted", "last_times", "n_rows")
        return Memory(
            **{name: getattr(self, name)[series] for name in names},
            scaling=self.scaling.select(series),
            tail=[self.tail[i] for i in series],
            state=self.state[:, self._unit_numbers(series)],
        )

    def _unit_numbers(self, series: np.ndarray) -> Tensor:
        """Numbers of the units of some series."""
        per_series = self.units_per_series
        return torch.as_tensor((series[:, None] * per_series + np.arange(per_series)).ravel())


@torch.no_grad()
def run_filter(
    model: ForecastModel,
    units: Units,
    first: Tensor,
    state: Tensor | None = None,
    *,
    begin: Tensor | None = None,
    visit: Visit | None = None,
) -> Tensor:
    """Carry the state through every unit and forecast from chosen rows.

    Parameters
    ----------
    model : ForecastModel
    units : Units
    first : integer Tensor of shape (U,)
        Row from which on `visit` is called.
    state : Tensor of shape (layers, U, state_size), optional
        State before row `begin`; by default that of a series without a past.
    begin : integer Tensor of shape (U,), optional
        First row to run over; by default the first of each unit.
    visit : callable, optional
        ``visit(rows, unit, states)`` with rows (n,), the unit of each and the outputs of the
        last layer after them (n, hidden). Called on parts of the rows, in any order.

    Returns
    -------
    Tensor of shape (layers, U, state_size)
        State after the last row.

    Examples
    --------
    >>> import torch
    >>> from tsrnn import ParaRNNForecaster
    >>> from tsrnn.datasets import load_elec_equip
    >>> from tsrnn.forecasters import continued_units, run_filter
    >>> model = ParaRNNForecaster(horizon=12, hidden_size=4, max_epochs=1, refit=False)
    >>> model = model.fit(load_elec_equip())
    >>> units, _ = continued_units(model.state_, None, model.settings_)
    >>> state = run_filter(model.model_, units.to(torch.float32), units.indptr[1:])
    >>> state.shape == model.state_.state.shape
    True
    """
    begin = units.starts if begin is None else begin
    ends = units.indptr[1:]
    network = model.network
    if state is None:
        state = network.initial_state(len(units))
    state = state.clone()
    order = torch.argsort(ends - begin, stable=True)  # units of similar length run together
    while len(order):
        longest = min(int((ends - begin)[order[-1]]), STEPS_AT_ONCE)
        count = max(1, POSITIONS_AT_ONCE // max(longest, 1))
        group, order = order[-count:], order[:-count]
        for offset in range(0, int((ends - begin)[group].max()), STEPS_AT_ONCE):
            start, end = begin[group] + offset, ends[group][:, None]
            lengths = (ends[group] - start).clamp(min=0, max=STEPS_AT_ONCE)
            rows = start[:, None] + torch.arange(int(lengths.max()))
            rows = torch.minimum(rows, end - 1)  # the last row, repeated after a unit's end
            x = units.inputs(rows).to(state.dtype)
            states, state[:, group] = network.run(x, state[:, group], lengths)
            if visit is not None:
                wanted = rows >= first[group][:, None]
                wanted &= torch.arange(rows.shape[1]) < lengths[:, None]
                if bool(wanted.any()):
                    owner = group[:, None].expand_as(rows)
                    visit(rows[wanted], owner[wanted], states[wanted])
    return state


def memory_of(model: ForecastModel, settings: Settings, panel: Panel, fitted: Memory) -> Memory:
    """Memory after a panel, scaled as in `fitted` for known series, by their rows for others."""
    series, known = _known_series(fitted, panel), fitted.scaling
    scaling = fit_scaling(panel, panel.lengths, settings.season, known.boxcox, known.exog)
    for new, old in (
        (scaling.target.location, known.target.location),
        (scaling.target.scale, known.target.scale),
        (scaling.constant, known.constant),
        (scaling.deviation, known.deviation),
    ):
        new[series >= 0] = old[series[series >= 0]]
    units = units_of(standardise(panel, scaling), panel.indptr, scaling, settings)
    state = run_filter(model, units.to(torch.float32), units.indptr[1:])
    return memory_after(panel, series, scaling, state, settings)


def memory_after(
    panel: Panel, fitted: np.ndarray, scaling: Scaling, state: Tensor, settings: Settings
) -> Memory:
    """Memory after a panel whose state is known.

    Parameters
    ----------
    panel : Panel
    fitted : integer ndarray of shape (S,)
        Positions of its series among those fitted to; -1 for others.
    scaling : Scaling
    state : Tensor of shape (layers, U, state_size)
    settings : Settings

    Returns
    -------
    Memory

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn import ParaRNNForecaster
    >>> from tsrnn.data import read_panel
    >>> from tsrnn.datasets import load_elec_equip
    >>> from tsrnn.forecasters import memory_after
    >>> model = ParaRNNForecaster(horizon=12, hidden_size=4, max_epochs=1, refit=False)
    >>> known = model.fit(load_elec_equip()).state_
    >>> panel = read_panel(load_elec_equip())
    >>> memory = memory_after(panel, np.arange(1), known.scaling, known.state, model.settings_)
    >>> np.array_equal(memory.tail[0], known.tail[0])
    True
    """
    end = panel.tail(settings.input_size)
    rows = np.hstack([end.values, end.exog])
    return Memory(
        ids=panel.ids,
        fitted=fitted,
        last_times=panel.last_times,
        n_rows=panel.lengths,
        scaling=scaling,
        tail=[rows[lo:hi].copy() for lo, hi in zip(end.indptr[:-1], end.indptr[1:], strict=True)],
        state=state,
    )


def carried_on(model: ForecastModel, settings: Settings, memory: Memory, panel: Panel) -> Memory:
    """Memory after further rows of all its series, in the same order."""
    units, begin = continued_units(memory, panel, settings)
    state = run_filter(model, units.to(torch.float32), units.indptr[1:], memory.state, begin=begin)
    tail = [rows[-settings.input_size :].copy() for rows in _joined_tails(memory, panel)]
    n_rows = memory.n_rows + panel.lengths
    return replace(memory, last_times=panel.last_times, n_rows=n_rows, tail=tail, state=state)


def continued_units(
    memory: Memory, panel: Panel | None, settings: Settings
) -> tuple[Units, Tensor]:
    """Units of remembered rows and of the rows of a panel after them.

    Parameters
    ----------
    memory : Memory
    panel : Panel or None
        Further rows of all its series, in the same order; None for no more rows.
    settings : Settings

    Returns
    -------
    units : Units
    first : integer Tensor of shape (U,)
        First new row of each unit.

    Examples
    --------
    >>> from tsrnn import ParaRNNForecaster
    >>> from tsrnn.datasets import load_elec_equip
    >>> from tsrnn.forecasters import continued_units
    >>> model = ParaRNNForecaster(horizon=12, hidden_size=4, max_epochs=1, refit=False)
    >>> memory = model.fit(load_elec_equip()).state_
    >>> units, first = continued_units(memory, None, model.settings_)
    >>> first.tolist() == [len(memory.tail[0])]
    True
    """
    if panel is not None:
        standardise(panel, memory.scaling)  # refuses, by name, rows that are too far
    tail = memory.tail if panel is None else _joined_tails(memory, panel)
    indptr = np.concatenate([[0], np.cumsum([len(part) for part in tail])])
    values = memory.scaling.transform(np.vstack(tail), indptr)
    units = units_of(values, indptr, memory.scaling, settings)
    past = torch.as_tensor([len(part) for part in memory.tail])
    return units, units.starts + past.repeat_interleave(memory.units_per_series)


def _joined_tails(memory: Memory, panel: Panel) -> list[np.ndarray]:
    """Remembered rows of each series and those of `panel` after them."""
    rows = np.hstack([panel.values, panel.exog])
    return [
        np.vstack([old, rows[lo:hi]])
        for old, lo, hi in zip(memory.tail, panel.indptr[:-1], panel.indptr[1:], strict=True)
    ]


def fitted_units(memory: Memory) -> np.ndarray:
    """Positions of the units of a memory among those fitted to.

    Parameters
    ----------
    memory : Memory

    Returns
    -------
    integer ndarray of shape (U,)
        -1 for units of series that were not fitted to.

    Examples
    --------
    >>> from tsrnn import ParaRNNForecaster
    >>> from tsrnn.datasets import load_elec_equip
    >>> from tsrnn.forecasters import fitted_units
    >>> model = ParaRNNForecaster(horizon=12, hidden_size=4, max_epochs=1, refit=False)
    >>> fitted_units(model.fit(load_elec_equip()).state_).tolist()
    [0]
    """
    series, per_series = memory.fitted, memory.units_per_series
    numbers = series[:, None] * per_series + np.arange(per_series)
    return np.where(series[:, None] < 0, -1, numbers).ravel()


def _known_series(memory: Memory, panel: Panel) -> np.ndarray:
    """Positions of a panel's series among those of a memory, shape (S,); -1 for new series.

    A series without an id is the known one if it holds its last row.
    """
    series = memory.ids.get_indexer(panel.ids)
    if panel.layout.id_col is not None:
        return series
    last = memory.tail[0][-1, : panel.values.shape[1]]
    shared = panel.values[panel.times == memory.last_times[0]]
    return series if len(shared) and np.array_equal(shared[0], last) else np.full_like(series, -1)
