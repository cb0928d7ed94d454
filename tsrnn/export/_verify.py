"""Verification that a program forecasts what its forecaster does."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping

import numpy as np
import torch

from tsrnn.contract import level_name
from tsrnn.data import Panel
from tsrnn.export._carried import carried_by
from tsrnn.export._program import Program
from tsrnn.forecasters import (
    Memory,
    RecurrentForecaster,
    fit_scaling,
    memory_after,
    run_filter,
    standardise,
    units_of,
)

Arrays = Mapping[str, np.ndarray]
Run = Callable[[Arrays], Arrays]  # from inputs by name to outputs by name
SERIES = 32  # at most, of those fitted to, evenly spaced
TOLERANCE = 1e-5  # of standard deviation and size: the recurrence is in float32


def verify(run: Run, program: Program, forecaster: RecurrentForecaster) -> None:
    """Compare after the data fitted to, and after their last rows taken as further ones and new.

    Raises
    ------
    RuntimeError
        If forecasts differ.
    """
    n_series = len(forecaster.state_.ids)
    chosen = np.unique(np.linspace(0, n_series - 1, min(n_series, SERIES)).astype(int))
    memory = forecaster.state_.select(chosen)
    panel = _tails_as_panel(forecaster, memory)
    rows, nothing = _padded(memory.tail), np.zeros_like(panel.lengths)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # said when the program was made
        fitted = carried_by(forecaster, program.shape, program.levels, memory)
        further, new = forecaster._advance(memory, panel), _memory_of_new(forecaster, panel)
        cases = (
            ("after the data fitted to", rows[:, :1], nothing, fitted, memory),
            ("after further rows", rows, panel.lengths, fitted, further),
            ("of series never seen", rows, panel.lengths, np.zeros_like(fitted), new),
        )
        future = _held_future(program, memory)
        for what, taken, lengths, carried, expected in cases:
            given = {"rows": taken, "lengths": lengths, "memory": carried}
            known = {} if future is None else {"future": future}
            h, levels = forecaster.horizon_, program.levels
            want = forecaster._forecast(expected, h, levels, future)
            _compare(run(given | known), want, expected, levels, what)


def _compare(outputs: Arrays, want: Arrays, memory: Memory, levels: list[float], what: str) -> None:
    pairs = [(outputs["forecast"], want[""])]
    for i, level in enumerate(levels):
        name = level_name(level)
        pairs += [(outputs["lower"][..., i], want[f"-lo-{name}"])]
        pairs += [(outputs["upper"][..., i], want[f"-hi-{name}"])]
    deviation = memory.scaling.deviation[:, None]
    for ours, theirs in pairs:
        close = np.abs(ours - theirs) <= TOLERANCE * (deviation + np.abs(theirs))
        wrong = ~(close | (ours == theirs) | (np.isnan(ours) & np.isnan(theirs)))
        if wrong.any():
            series, step, _ = np.argwhere(wrong)[0]
            raise RuntimeError(
                f"the exported program does not forecast {what} as the forecaster does: series "
                f"{memory.ids[series]!r}, step {step + 1}, {ours[wrong][0]:g} for "
                f"{theirs[wrong][0]:g}. Nothing was written"
            )


def _padded(tails: list[np.ndarray]) -> np.ndarray:
    """Rows (S, T, C + E) of series, NaN after the end of each."""
    rows = np.full((len(tails), max(map(len, tails)), tails[0].shape[1]), np.nan)
    for row, tail in zip(rows, tails, strict=True):
        row[: len(tail)] = tail
    return rows


def _tails_as_panel(forecaster: RecurrentForecaster, memory: Memory) -> Panel:
    layout, exog_names = forecaster._panel_shape
    rows, n_targets = np.vstack(memory.tail), memory.scaling.constant.shape[1]
    lengths = np.array([len(tail) for tail in memory.tail])
    return Panel(
        values=rows[:, :n_targets],
        indptr=np.concatenate([[0], np.cumsum(lengths)]),
        ids=memory.ids,
        times=np.repeat(memory.last_times, lengths),
        exog=rows[:, n_targets:],
        exog_names=exog_names,
        layout=layout,
    )


def _memory_of_new(forecaster: RecurrentForecaster, panel: Panel) -> Memory:
    """Memory of the rows of a panel whose series are taken as never seen."""
    settings, known = forecaster.settings_, forecaster.state_.scaling
    scaling = fit_scaling(panel, panel.lengths, settings.season, known.boxcox, known.exog)
    units = units_of(standardise(panel, scaling), panel.indptr, scaling, settings)
    state = run_filter(forecaster.model_, units.to(torch.float32), units.indptr[1:])
    return memory_after(panel, np.full(panel.n_series, -1), scaling, state, settings)


def _held_future(program: Program, memory: Memory) -> np.ndarray | None:
    """Columns known ahead (S, h, known), held at their last value."""
    if not program.model.known:
        return None
    n_targets = memory.scaling.constant.shape[1]
    columns = [i - program.model.n_targets + n_targets for i in program.model.known]
    last = np.stack([tail[-1, columns] for tail in memory.tail])
    return np.repeat(last[:, None], program.settings.horizon, 1)
