"""Verification that a program forecasts as its forecaster does."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from tsrnn.contract import level_name
from tsrnn.data import Panel, quote
from tsrnn.export._program import Program
from tsrnn.forecasters import FittedNetworks, RecurrentState

Arrays = Mapping[str, np.ndarray]
Run = Callable[[Arrays], Arrays]  # from inputs by name to outputs by name
SERIES = 32  # compared at most, evenly spaced, so that the check stays fast for many series
# Relative to standard deviation and size: some eighty roundings of float32, the recurrence's type.
TOLERANCE = 1e-5


def verify(run: Run, program: Program, state: RecurrentState) -> None:
    """Compare forecasts after training data, after further rows, and for new series.

    The last training rows serve as further rows and as new series.
    """
    fitted, n_series = program.fitted, len(state.ids)
    chosen = np.unique(np.linspace(0, n_series - 1, min(n_series, SERIES)).astype(int))
    state = state.select(chosen)
    panel, future = _tails_as_panel(fitted, state), _held_future(fitted, state)
    rows, nothing = _padded(state.tail), np.zeros_like(panel.lengths)
    others = state.ids.map(lambda _: None)  # no series has this id
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # shown when the program was made
        memory, further = program.memory_of(state), fitted.advance(state, panel)
        new = replace(fitted.filter(replace(panel, ids=others)), ids=state.ids)
        cases = (
            ("after the data fitted to", rows[:, :1], nothing, memory, state),
            ("after further rows", rows, panel.lengths, memory, further),
            ("of series never seen", rows, panel.lengths, np.zeros_like(memory), new),
        )
        for what, taken, lengths, carried, expected in cases:
            given = {"rows": taken, "lengths": lengths, "memory": carried}
            known = {} if future is None else {"future": future}
            want = fitted.forecast(expected, fitted.horizon, program.levels, future)
            _compare(run(given | known), want, expected, program.levels, what)


def _compare(
    outputs: Arrays, want: Arrays, state: RecurrentState, levels: list[float], what: str
) -> None:
    pairs = [(outputs["forecast"], want[""])]
    for i, level in enumerate(levels):
        name = level_name(level)
        pairs += [(outputs["lower"][..., i], want[f"-lo-{name}"])]
        pairs += [(outputs["upper"][..., i], want[f"-hi-{name}"])]
    deviation = state.scaling.deviation[:, None]
    for ours, theirs in pairs:
        close = np.abs(ours - theirs) <= TOLERANCE * (deviation + np.abs(theirs))
        wrong = ~(close | (ours == theirs) | (np.isnan(ours) & np.isnan(theirs)))
        if wrong.any():
            series, step, _ = np.argwhere(wrong)[0]
            raise RuntimeError(
                f"the exported program does not forecast {what} as the forecaster does: series "
                f"{quote(state.ids[series])}, step {step + 1}, {ours[wrong][0]:g} for "
                f"{theirs[wrong][0]:g}. Nothing was written"
            )


def _padded(tails: list[np.ndarray]) -> np.ndarray:
    """Stack rows of series to (S, T, C + E), NaN after the end of each."""
    rows = np.full((len(tails), max(map(len, tails)), tails[0].shape[1]), np.nan)
    for row, tail in zip(rows, tails, strict=True):
        row[: len(tail)] = tail
    return rows


def _tails_as_panel(fitted: FittedNetworks, state: RecurrentState) -> Panel:
    rows, n_targets = np.vstack(state.tail), fitted.data.n_targets
    lengths = np.array([len(tail) for tail in state.tail])
    return Panel(
        values=rows[:, :n_targets],
        indptr=np.concatenate([[0], np.cumsum(lengths)]),
        ids=state.ids,
        times=np.repeat(state.last_times, lengths),
        exog=rows[:, n_targets:],
        exog_names=fitted.data.exog_names,
        layout=fitted.data.layout,
    )


def _held_future(fitted: FittedNetworks, state: RecurrentState) -> np.ndarray | None:
    """Return columns known ahead (S, h, known), held at their last value."""
    data = fitted.data
    if not data.known_ahead:
        return None
    columns = [data.n_targets + data.exog_names.index(name) for name in data.known_ahead]
    last = np.stack([tail[-1, columns] for tail in state.tail])
    return np.repeat(last[:, None], fitted.horizon, 1)
