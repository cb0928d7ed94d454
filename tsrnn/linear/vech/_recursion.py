"""The linear recurrent network of the model: forward for states, backward for adjoints."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from tsrnn.kernels import cells, recurrence

_UNROLLED = 8  # largest dimension that is compiled with its lanes side by side


def states(
    weights: list[np.ndarray], inputs: np.ndarray, before: np.ndarray | None = None
) -> np.ndarray:
    r"""Run :math:`h_t = u_t + \sum_j W_j h_{t-j}`.

    Parameters
    ----------
    weights : list of arrays (N, N)
        W_1, ..., W_q; with none h is u.
    inputs : array of shape (T, N, k)
        u of k sequences side by side.
    before : array of shape (q, N), optional
        States before the first of every sequence, the latest first; zero by default.

    Returns
    -------
    array of shape (T, N, k)
    """
    q = len(weights)
    if q == 0:
        return inputs
    steps, size, lanes = inputs.shape
    fields = inputs
    if q > 1:
        fields = np.zeros((steps, q * size, lanes))
        fields[:, :size] = inputs
    initial = np.zeros((q * size, lanes))
    if before is not None:
        initial += before.reshape(-1, 1)
    run = _side_by_side if q * size <= _UNROLLED else _one_by_one
    return run(companion(weights), fields, initial)[:, :size]


def _side_by_side(matrix: np.ndarray, fields: np.ndarray, initial: np.ndarray) -> np.ndarray:
    """Sequences as units of a layer."""
    params = np.repeat(matrix.reshape(-1, 1), fields.shape[2], 1)
    return _run(matrix, fields[None], params, initial[None])[0].numpy()


def _one_by_one(matrix: np.ndarray, fields: np.ndarray, initial: np.ndarray) -> np.ndarray:
    """Sequences as a batch: a matrix product a step."""
    batch = fields.transpose(2, 0, 1)[..., None]
    result = _run(matrix, batch, matrix.reshape(-1, 1), initial.T[..., None])
    return result[..., 0].permute(1, 2, 0).contiguous().numpy()


def _run(matrix: np.ndarray, fields: np.ndarray, params: np.ndarray, initial: np.ndarray) -> Tensor:
    inputs, weights, start = (
        torch.from_numpy(np.ascontiguousarray(array)) for array in (fields, params, initial)
    )
    return recurrence(cells.linear(len(matrix)), inputs, weights, start)[0]


def adjoints(weights: list[np.ndarray], gradient: np.ndarray) -> np.ndarray:
    r"""Run :math:`\lambda_t = g_t + \sum_j W_j' \lambda_{t+j}` backward over (T, N)."""
    turned = states([matrix.T for matrix in weights], gradient[::-1, :, None].copy())
    return turned[::-1, :, 0]


def companion(weights: list[np.ndarray]) -> np.ndarray:
    """Matrix (q N, q N) that takes (h_{t-1}, ..., h_{t-q}) one step on."""
    q, size = len(weights), len(weights[0])
    matrix = np.eye(q * size, k=-size)
    matrix[:size] = np.hstack(weights)
    return matrix


def lagged(sequence: np.ndarray, lag: int, before: np.ndarray | float = 0.0) -> np.ndarray:
    """A sequence (T, ...) `lag` steps later, with `before` in front."""
    result = np.empty_like(sequence)
    result[:lag] = before
    result[lag:] = sequence[: len(sequence) - lag]
    return result
