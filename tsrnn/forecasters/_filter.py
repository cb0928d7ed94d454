"""Run a model over whole series, its state carried on, and forecast from chosen rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from tsrnn.forecasters._model import ForecastModel
from tsrnn.forecasters._units import Units

POSITIONS_AT_ONCE = 2**17
STEPS_AT_ONCE = 4096

Visit = Callable[[Tensor, Tensor, Tensor], None]


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
    """Carry the state through every unit.

    Parameters
    ----------
    model : ForecastModel
    units : Units
    first : integer Tensor of shape (U,)
        Row from which on `visit` is called.
    state : Tensor of shape (layers, U, state_size), optional
        State before row `begin`; that of no past by default.
    begin : integer Tensor of shape (U,), optional
        First row to take in; each unit's first by default.
    visit : callable, optional
        ``visit(rows, unit, states)`` with rows (n,), the unit of each and the outputs of the
        last layer after them (n, hidden). Called on parts of the rows, in any order.

    Returns
    -------
    Tensor of shape (layers, U, state_size)
        State after the last row.
    """
    begin = units.starts if begin is None else begin
    ends = units.indptr[1:]
    network = model.network
    if state is None:
        state = network.initial_state(len(units))
    state = state.clone()
    for group in _groups(ends - begin):
        for offset in range(0, int((ends - begin)[group].max()), STEPS_AT_ONCE):
            rows, lengths = _rows(begin[group] + offset, ends[group])
            x = units.inputs(rows).to(state.dtype)
            states, state[:, group] = network.run(x, state[:, group], lengths)
            if visit is not None:
                wanted = rows >= first[group][:, None]
                wanted &= torch.arange(rows.shape[1]) < lengths[:, None]
                if bool(wanted.any()):
                    owner = group[:, None].expand_as(rows)
                    visit(rows[wanted], owner[wanted], states[wanted])
    return state


def _groups(lengths: Tensor) -> Iterator[Tensor]:
    """Units of similar length, together not too large."""
    order = torch.argsort(lengths, stable=True)
    while len(order):
        longest = min(int(lengths[order[-1]]), STEPS_AT_ONCE)
        count = max(1, POSITIONS_AT_ONCE // max(longest, 1))
        yield order[-count:]
        order = order[:-count]


def _rows(begin: Tensor, ends: Tensor) -> tuple[Tensor, Tensor]:
    """Rows (B, L) of a chunk and how many of them are the unit's own."""
    lengths = (ends - begin).clamp(min=0, max=STEPS_AT_ONCE)
    rows = begin[:, None] + torch.arange(int(lengths.max()))
    return torch.minimum(rows, ends[:, None] - 1), lengths
