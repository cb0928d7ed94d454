"""Checks of arguments and of data."""

from __future__ import annotations

import math
import numbers
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tsrnn.data import Panel, quote, quote_series, quoted, warn_user

MOST_JOBS = 10_000


def positive_integer(name: str, value: Any) -> int:
    """Return `value` as a positive int; raise if it is none.

    Parameters
    ----------
    name : str
        Of the argument, for the message.
    value : object

    Returns
    -------
    int

    Raises
    ------
    TypeError
        If it is no integer.
    ValueError
        If it is below 1.

    Examples
    --------
    >>> from tsrnn.contract import positive_integer
    >>> positive_integer("horizon", 12)
    12
    >>> positive_integer("horizon", 0)
    Traceback (most recent call last):
        ...
    ValueError: horizon must be a positive integer; got 0
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be a positive integer; got {quote(value)}")
    if value < 1:
        raise ValueError(f"{name} must be a positive integer; got {quote(value)}")
    return int(value)


def job_count(n_jobs: Any) -> int | None:
    """Return the argument `n_jobs`: -1 for all cores, None for the caller's default, never 0."""
    message = (
        f"n_jobs must be a number of processes, -1 for all cores, or None; got {quote(n_jobs)}"
    )
    if n_jobs is None:
        return None
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, numbers.Integral):
        raise TypeError(message)
    if n_jobs == 0:
        raise ValueError(message)
    if abs(int(n_jobs)) > MOST_JOBS:
        raise ValueError(f"n_jobs must be at most {MOST_JOBS:,} processes; got {quote(n_jobs)}")
    return int(n_jobs)


def choice(name: str, value: Any, legal: Sequence[str]) -> str:
    """Return `value` if it is legal; raise with the legal values if not.

    Parameters
    ----------
    name : str
        Of the argument, for the message.
    value : object
    legal : sequence of str

    Returns
    -------
    str

    Raises
    ------
    ValueError
        If it is not legal.

    Examples
    --------
    >>> from tsrnn.contract import choice
    >>> choice("loss", "mse", ["mse", "mae"])
    'mse'
    >>> choice("loss", "rmse", ["mse", "mae"])
    Traceback (most recent call last):
        ...
    ValueError: loss must be one of ('mse', 'mae'); got 'rmse'
    """
    if not isinstance(value, str) or value not in legal:
        raise ValueError(f"{name} must be one of {tuple(legal)}; got {quote(value)}")
    return str(value)


def flag(name: str, value: Any) -> bool:
    """Return `value` as a bool; raise if it is none."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False; got {quote(value)}")
    return bool(value)


def verbosity(value: Any) -> int:
    """Return the argument `verbose` as an int of at least 0."""
    message = f"verbose must be True, False or an integer of at least 0; got {quote(value)}"
    if not isinstance(value, numbers.Integral | np.bool_):
        raise TypeError(message)
    if value < 0:
        raise ValueError(message)
    return int(value)


def number(
    name: str, value: Any, *, lowest: float, open_: bool, highest: float = math.inf
) -> float:
    """Return `value` as a finite float from `lowest` (exclusive if `open_`) to `highest`.

    Parameters
    ----------
    name : str
        Of the argument, for the message.
    value : object
    lowest : float
    open_ : bool
        Refuse `lowest` itself.
    highest : float, optional
        Upper bound; infinite by default.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If it is no number, not finite, or out of range.

    Examples
    --------
    >>> from tsrnn.contract import number
    >>> number("dropout", 0, lowest=0, open_=False, highest=1)
    0.0
    >>> number("learning_rate", 0, lowest=0, open_=True)
    Traceback (most recent call last):
        ...
    ValueError: learning_rate must be a number greater than 0; got 0
    """
    real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not real or not math.isfinite(value) or value < lowest or (open_ and value == lowest):
        bound = f"greater than {lowest:g}" if open_ else f"of at least {lowest:g}"
        raise ValueError(f"{name} must be a number {bound}; got {quote(value)}")
    if value > highest:
        raise ValueError(f"{name} must be a number of at most {highest:g}; got {quote(value)}")
    return float(value)


def real_array(name: str, value: Any) -> np.ndarray:
    """Return `value` as an array of floats; raise if it is none."""
    try:
        return np.asarray(value, float)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} must be numbers, or an array of them; got {quote(value)}"
        ) from error


def seed_of(random_state: Any) -> int:
    """Return a seed; a numpy generator is advanced by one draw, None draws from the system."""
    if random_state is None:
        return int(np.random.default_rng().integers(2**31))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    if isinstance(random_state, bool) or not isinstance(random_state, int | np.integer):
        raise TypeError(
            "random_state must be an integer, a numpy random generator or None; got "
            f"{quote(random_state)}"
        )
    if not 0 <= random_state < 2**63:
        raise ValueError(
            f"random_state must lie between 0 and 2**63 - 1; got {quote(random_state)}"
        )
    return int(random_state)


UNKNOWN = 2**40  # bytes assumed if the system does not report its memory
FEW_BYTES = 2**20  # always available, so not checked
BYTES_OF_A_FORECAST = 32  # float64 of the model, of its inverse transform, in the frame, and a time
CONTROL_GROUP = Path("/sys/fs/cgroup/memory.max")  # memory limit of a container


def check_fits(asked: str, n_bytes: float, advice: str) -> None:
    """Refuse work that needs more memory than this machine has.

    The message begins with `asked`, the request and the amount of data, and ends with `advice`.
    """
    if n_bytes < FEW_BYTES:
        return
    available = _memory()
    if n_bytes > available:
        raise ValueError(
            f"{asked} would take about {_shown(n_bytes)} of memory; this machine has "
            f"{_shown(available)}. {advice}"
        )


def check_steps_fit(h: int, n_series: int, n_values: int, of: str = "") -> None:
    """Refuse forecasts of h steps with `n_values` numbers each that do not fit into memory."""
    check_fits(
        f"{of}h={h} steps of {n_series} series",
        float(h) * n_series * n_values * BYTES_OF_A_FORECAST,
        f"Take a smaller {'n or ' if of else ''}h, or some of the series",
    )


def _memory() -> float:
    """Return the memory available to this process in bytes."""
    try:
        physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return UNKNOWN
    try:
        return min(physical, int(CONTROL_GROUP.read_text()))
    except (OSError, ValueError):  # no container, or one without a limit
        return physical


def _shown(n_bytes: float) -> str:
    """Return a number of bytes as text, to two digits."""
    unit = "TiB" if n_bytes >= 2**40 else "GiB"
    value = n_bytes / (2**40 if unit == "TiB" else 2**30)
    return f"{float(f'{value:.2g}'):,.10g} {unit}"


LARGEST, LEAST = 1e70, 1e-70  # fourth powers, and sums of them, stay within float64


def check_not_too_large(panel: Panel, largest: float = LARGEST) -> None:
    """Refuse values whose differences, squares or fourth powers would overflow.

    The default bound suits models that sum fourth powers.
    """
    # One pass over all values without NaN; columns are searched only if a value is too large.
    ends = [
        (np.fmin.reduce(part, None, initial=0.0), np.fmax.reduce(part, None, initial=0.0))
        for part in (panel.values, panel.exog)
    ]
    if all(-largest <= low and high <= largest for low, high in ends):
        return
    for names, values in _blocks(panel):
        for j in np.flatnonzero((_sizes(panel, values) > largest).any(axis=0)).tolist():
            column = values[:, j]
            rows = np.flatnonzero(np.abs(column) > largest)
            raise ValueError(
                f"values of the column {quote(names[j])} must be at most {largest:g} in size, so "
                f"that no result overflows; larger are {panel.axis.describe(rows)}, the first "
                f"{column[rows[0]]:.3g}. Divide the column by a constant, or replace these values"
            )


def check_not_too_small(panel: Panel) -> None:
    """Refuse series that are not 0, but so small that squares underflow to 0."""
    starts = panel.indptr[:-1]
    # The first value of each series decides most cases cheaply.
    if all((np.abs(values[starts]) >= LEAST).all() for values in (panel.values, panel.exog)):
        return
    for names, values in _blocks(panel):
        sizes = _sizes(panel, values)
        lost = (sizes > 0) & (sizes < LEAST)
        for j in np.flatnonzero(lost.any(axis=0)).tolist():
            small = np.flatnonzero(lost[:, j])
            i = small[0]
            more = f" So it is in {len(small) - 1} more series." if len(small) > 1 else ""
            raise ValueError(
                f"{panel.axis.where(i)}values of the column {quote(names[j])} must reach "
                f"{LEAST:g} in size or be 0, so that their squares are not lost; the largest is "
                f"{sizes[i, j]:.3g}. Multiply the column by a constant.{more}"
            )


def check_complete_cases(panel: Panel) -> None:
    """Refuse exogenous columns whose missing values leave no row with a target to fit to.

    If some series keep such rows, a warning names the other series. The panel is read with
    ``missing="keep"``.
    """
    if not np.isnan(panel.exog).any():
        return
    starts, with_target = panel.indptr[:-1], np.isfinite(panel.values).any(1)
    complete = with_target & np.isfinite(panel.exog).all(1)
    lost = np.flatnonzero(
        np.logical_or.reduceat(with_target, starts) & ~np.logical_or.reduceat(complete, starts)
    )
    if not len(lost):
        return
    observed = np.isfinite(panel.exog[panel.indptr[lost[0]] : panel.indptr[lost[0] + 1]]).any(0)
    unseen = [name for name, any_of in zip(panel.exog_names, observed, strict=True) if not any_of]
    empty = panel.layout.frame_names(unseen)
    if empty:
        kind = "columns" if len(empty) > 1 else "column"
        fault = f"all values of the {kind} {quoted(empty)} are missing (NaN). Drop the {kind}"
    else:
        fault = (
            f"no row has a target and values of all columns {quoted(panel.exog_columns)}. Drop a "
            "column, or fill them in"
        )
    if len(lost) == panel.n_series:
        raise ValueError(f"{panel.axis.where(0)}{fault}")
    warn_user(
        f"{len(lost)} of {panel.n_series} series have no row to fit to, "
        f"{quote_series(panel.ids[lost])}: of the first {fault}, or these series"
    )


def _blocks(panel: Panel) -> list[tuple[Sequence[object], np.ndarray]]:
    """Return names and values of the targets, and of the exogenous columns."""
    return [(panel.target_names, panel.values), (panel.exog_names, panel.exog)]


def _sizes(panel: Panel, values: np.ndarray) -> np.ndarray:
    """Return the largest absolute value of each series and column, (S, n), NaN without values."""
    starts = panel.indptr[:-1]
    return np.fmax(np.fmax.reduceat(values, starts), -np.fmin.reduceat(values, starts))
