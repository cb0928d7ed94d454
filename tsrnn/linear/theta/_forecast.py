"""Theta models after a state: further rows, means ahead, their variances, and paths."""

from __future__ import annotations

from functools import partial

import numpy as np
import torch

from tsrnn.kernels import Fields, Lanes, paths, sums
from tsrnn.linear.theta._cells import GIVEN, advance, row_cell
from tsrnn.linear.theta._likelihood import with_ends


def after_rows(
    dynamic: bool, params: np.ndarray, states: np.ndarray, values: np.ndarray, lengths: np.ndarray
) -> np.ndarray:
    """States (N, 8) after `lengths` (N,) rows of values (N, T), NaN where missing."""
    lanes = Lanes(with_ends(values, lengths))
    return sums(row_cell(dynamic), lanes, params, states, terms=(), order=0).memory.T


def means_of(
    dynamic: bool, params: np.ndarray, states: np.ndarray, values: np.ndarray
) -> np.ndarray:
    """Means (N, T) of rows after states; NaN in the first rows, which the likelihood skips."""
    n, length = values.shape
    inputs = np.ascontiguousarray(with_ends(values))
    none = (np.zeros((n, 0, size)) for size in (params.shape[1], states.shape[1]))
    rows = paths(row_cell(dynamic), inputs, params, states, *none, fields=("mu",))
    means = rows.fields[:, :, 0, 0].copy()
    means[states[:, :1] + np.arange(length) < GIVEN] = np.nan
    return means


def _columns(array: np.ndarray) -> Fields:
    return torch.from_numpy(np.ascontiguousarray(array.T)).unbind(0)


def expected(dynamic: bool, params: np.ndarray, states: np.ndarray, h: int) -> np.ndarray:
    """Means (N, h) ahead; the dynamic model takes them into the lines of later ones."""
    columns, fields, means = _columns(params)[1:], _columns(states), []
    for _ in range(h):
        fields, mean = advance(dynamic, fields, columns, lambda value: value, 1.0)
        means.append(mean)
    return torch.stack(means, 1).numpy()


def responses(dynamic: bool, params: np.ndarray, states: np.ndarray, h: int) -> np.ndarray:
    """Effects (N, h, h) on the means of steps k of a unit error at step j, the last axis.

    Means are linear in the values, so that effects follow the recursion of the means from zero.
    """
    none = states.copy()
    none[:, [1, 5, 7]] = 0.0  # level, mean and slope
    fields = tuple(field[:, None] for field in _columns(none))
    columns = tuple(column[:, None] for column in _columns(params)[1:])
    shocks, effects = torch.eye(h, dtype=torch.float64), []
    for k in range(h):
        fields, mean = advance(dynamic, fields, columns, partial(torch.add, shocks[k]), 1.0)
        effects.append(mean.expand(len(params), h))
    return torch.stack(effects, 1).numpy()


def variances(
    dynamic: bool, params: np.ndarray, sigma2: np.ndarray, states: np.ndarray, h: int
) -> np.ndarray:
    r"""Variances (N, h) of the rows ahead, exact at known parameters.

    .. math:: \sigma^2 \Big( 1 + \sum_{j<k} w_{kj}^2 \Big)

    with the `responses` w, which equal :math:`\alpha` unless the model is dynamic.
    """
    return sigma2[:, None] * (1 + (responses(dynamic, params, states, h) ** 2).sum(2))


def simulated(
    dynamic: bool, params: np.ndarray, sigma2: np.ndarray, states: np.ndarray, z: np.ndarray
) -> np.ndarray:
    """Paths (N, h, n) with standard normal innovations z (N, h, n)."""
    columns = tuple(column[:, None] for column in _columns(params)[1:])
    fields = tuple(field[:, None] for field in _columns(states))
    errors = torch.from_numpy(np.sqrt(sigma2)[:, None, None] * z)
    rows = []
    for k in range(z.shape[1]):
        fields, mean = advance(dynamic, fields, columns, partial(torch.add, errors[:, k]), 1.0)
        rows.append(mean + errors[:, k])
    return torch.stack(rows, 1).numpy()
