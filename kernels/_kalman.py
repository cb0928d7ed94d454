r"""Kalman filter of structural models with fixed variances, for many models and series at once.

.. math::
    y_t = l_t + c_t + s_{t \bmod m, t} + \varepsilon_t, \qquad
    l_t = l_{t-1} + b_t + \eta_t, \qquad b_t = \phi b_{t-1} + \zeta_t, \qquad
    c_t = \rho c_{t-1} + \xi_t

with m effects s of a season that are random walks. Gains do not depend on the values: they are
computed once for all series observed in the same rows. A missing row only moves the state, so that
arrays hold just the observed rows.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from tsrnn.kernels._cpu import compiler
from tsrnn.kernels._cpu.buffers import empty_array
from tsrnn.kernels._cpu.kalman_ir import EFFECTS, POINTERS, SIZES, TILE, kalman_ir
from tsrnn.kernels._cpu.threads import run_ranges, split

LARGEST_STATE = 128  # fields: covariances of a tile of models, a megabyte, are on the stack


def kalman_gains(
    noise: np.ndarray,
    damping: np.ndarray,
    memory: np.ndarray,
    innovation: np.ndarray,
    moves: np.ndarray,
    effects: np.ndarray,
    covariance: np.ndarray,
    stops: Mapping[int, Callable[[], None]] = MappingProxyType({}),
) -> tuple[np.ndarray, np.ndarray]:
    """Gains and variances of the prediction errors of J models; updates `covariance` in place.

    Parameters
    ----------
    noise, damping, memory : ndarray of shape (J,)
        Variance of the noise, and the coefficients of slope and autoregression.
    innovation : ndarray of shape (3 + m, J)
        Variances of the changes of level, slope, autoregression and the effects of a season.
    moves : integer ndarray of shape (T,)
        Rows since the previous observed row, 0 at a first row with a given state.
    effects : integer ndarray of shape (T,)
        Index of the effect observed in each row, below m.
    covariance : ndarray of shape (3 + m, 3 + m, J)
        Covariances of the states before these rows, overwritten by those after them.
    stops : mapping of int to callable, optional
        Functions by number of rows, called when `covariance` is the one after that row.

    Returns
    -------
    gain : ndarray of shape (tiles, T, 3 + m, 8)
        Change of the state for a unit prediction error in each row, in tiles of eight models, as
        memory is read. The padding of the last tile is meaningless.
    variance : ndarray of shape (T, J)
        Variances of the prediction errors.

    Examples
    --------
    A level that is known as well as an observation moves halfway towards that:

    >>> import numpy as np
    >>> from tsrnn.kernels import kalman_gains
    >>> one, rows, covariance = np.ones(1), np.zeros(1, int), np.zeros((4, 4, 1))
    >>> covariance[0, 0] = 1.0
    >>> gain, variance = kalman_gains(one, one, one, np.zeros((4, 1)), rows, rows, covariance)
    >>> gain[0, 0, 0, 0].item(), variance.item(), covariance[0, 0].item()
    (0.5, 2.0, 0.5)
    """
    n_rows, (size, n_models) = len(moves), innovation.shape
    outside = [row for row in stops if not 0 <= row < n_rows]
    if outside:
        raise ValueError(
            f"stops must be numbers of the {n_rows} rows, from 0 on; got {outside}. Leave these out"
        )
    gain = empty_array((-(-n_models // TILE), n_rows, size, TILE), np.float64)
    variance = np.empty((n_rows, n_models))
    given = (noise, damping, memory, innovation, moves, effects, covariance, gain, variance)
    begin = 0
    for end in sorted({*(row + 1 for row in stops), n_rows}):
        _run("gains", given, 1, gain.size * size, begin, end)
        stops.get(end - 1, _nothing)()
        begin = end
    return gain, variance


def _nothing() -> None:
    """Do nothing at the last row."""


def kalman_errors(
    values: np.ndarray,
    damping: np.ndarray,
    memory: np.ndarray,
    moves: np.ndarray,
    effects: np.ndarray,
    gain: np.ndarray,
    weight: np.ndarray,
    kept: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Weighted prediction errors of L series under J models, and selected states.

    Parameters
    ----------
    values : ndarray of shape (L, T)
        Values less the first level; NaN after the end of a series.
    damping, memory : ndarray of shape (J,)
    moves, effects : integer ndarray of shape (T,)
    gain : ndarray of shape (tiles, R, 3 + m, 8)
        Result of `kalman_gains` for at least T rows.
    weight : ndarray of shape (R, J)
        Factors of the errors, such as one over their standard deviations.
    kept : integer ndarray of shape (L, T)
        Index from 0 of the state to keep after each row; -1 for none.

    Returns
    -------
    error : ndarray of shape (L, T, J)
        Zero after the end of a series. Errors of a series do not depend on other series.
    state : ndarray of shape (n, 3 + m, J)
        The states kept. States before the first row are zero.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.kernels import kalman_errors
    >>> gain, weight, one = np.zeros((1, 2, 4, 8)), np.ones((2, 1)), np.ones(1)
    >>> gain[:, :, 0] = 0.5
    >>> values, moves, effects = np.array([[2.0, 2.0]]), np.array([0, 1]), np.array([0, 0])
    >>> kept = np.array([[-1, 0]])
    >>> error, state = kalman_errors(values, one, one, moves, effects, gain, weight, kept)
    >>> error.ravel().tolist(), state[0, :, 0].tolist()
    ([2.0, 1.0], [1.5, 0.0, 0.0, 0.0])
    """
    n_models, size = len(damping), gain.shape[2]
    error = empty_array((*values.shape, n_models), np.float64)
    state = np.empty((kept.max(initial=-1) + 1, size, n_models))
    given = (values, damping, memory, moves, effects, gain, weight, kept, state)
    _run("errors", (*given, error), len(values), error.size * size)
    return error, state


@functools.cache
def _kernels() -> dict[str, Callable[..., None]]:
    """Compile the kernels, or load them from the cache."""
    arguments = {kind: len(names) + len(SIZES) for kind, names in POINTERS.items()}
    return compiler.load("kalman", kalman_ir() + compiler.entries_ir(POINTERS, SIZES), arguments)


def _run(
    kind: str,
    arrays: tuple[np.ndarray, ...],
    n_series: int,
    work: int,
    begin: int = 0,
    end: int | None = None,
) -> None:
    """Check the arrays of a kernel and run it over all series and models, and rows to `end`."""
    by_name = dict(zip(POINTERS[kind], arrays, strict=True))
    n_models, n_rows = len(by_name["damping"]), len(by_name["moves"])
    _, n_table, size, _ = by_name["gain"].shape
    if size > LARGEST_STATE:
        raise ValueError(
            f"states must have at most {LARGEST_STATE} fields, seasons {LARGEST_STATE - EFFECTS} "
            f"rows; got {size} fields. Give a shorter season"
        )
    of_models, of_table = (n_models,), (max(n_rows, n_table), n_models)
    shapes = {
        "noise": of_models, "damping": of_models, "memory": of_models,
        "innovation": (size, n_models), "covariance": (size, size, n_models),
        "moves": (n_rows,), "effects": (n_rows,), "variance": of_table, "weight": of_table,
        "gain": (-(-n_models // TILE), of_table[0], size, TILE),
        "values": (n_series, n_rows), "kept": (n_series, n_rows),
    }  # fmt: skip
    for name, array in by_name.items():
        dtype = np.int64 if name in ("moves", "effects", "kept") else np.float64
        shape = shapes.get(name, array.shape)
        if array.shape != shape or array.dtype != dtype or not array.flags.c_contiguous:
            raise ValueError(
                f"{name} must be a contiguous array of {np.dtype(dtype)} of shape {shape}; got "
                f"{array.dtype} of shape {array.shape} with strides {array.strides}"
            )
    effects = by_name["effects"]
    if effects.min(initial=0) < 0 or effects.max(initial=0) >= size - EFFECTS:
        raise ValueError(
            f"effects must lie between 0 and {size - EFFECTS - 1}, as states have {size} fields; "
            f"got {effects.min()} to {effects.max()}"
        )
    end = n_rows if end is None else end
    # Elements a row of the arrays that begin at row `begin`.
    per_row = {"moves": 1, "effects": 1, "variance": n_models, "gain": size * TILE}
    addresses = (
        array.ctypes.data + begin * per_row.get(name, 0) * array.itemsize
        for name, array in by_name.items()
    )
    kernel = functools.partial(_kernels()[kind], *addresses, n_table, end - begin, size, n_models)
    run_ranges(kernel, split(n_series, n_models, work))
