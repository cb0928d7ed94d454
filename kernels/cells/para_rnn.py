"""The ParaRNN cell of Cai et al. (2026): small dense recurrences side by side."""

from collections.abc import Callable
from functools import lru_cache

import torch
from torch import Tensor

from tsrnn.kernels._cell import Cell, Fields

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "tanh": torch.tanh,
    "relu": torch.relu,
    "identity": lambda x: x,
}


def activation_of(nonlinearity: str) -> Callable[[Tensor], Tensor]:
    """Return the function sigma by its name."""
    if nonlinearity not in ACTIVATIONS:
        raise ValueError(f"nonlinearity must be one of {list(ACTIVATIONS)}; got {nonlinearity!r}")
    return ACTIVATIONS[nonlinearity]


@lru_cache
def para_rnn(block_size: int, nonlinearity: str = "tanh") -> Cell:
    r"""Block of `block_size` = d_s units: :math:`h_t = \sigma(W h_{t-1} + u_t)`.

    Equation (5) of Cai et al. (2026) for one block, with the input projection
    and the bias already in `u_t`. The d_s x d_s matrix W is the cell's
    parameters in row order.

    Parameters
    ----------
    block_size : int
        d_s, at least 1.
    nonlinearity : {"tanh", "relu", "identity"}
        The function sigma.

    Returns
    -------
    Cell
        With n = m = d_s and p = d_s ** 2.

    Raises
    ------
    ValueError
        If the block size is no positive integer or the nonlinearity is unknown.
    """
    if not isinstance(block_size, int) or block_size < 1:
        raise ValueError(f"block_size must be a positive integer; got {block_size!r}")
    d = block_size
    activation = activation_of(nonlinearity)

    def step(h: Fields, u: Fields, w: Fields) -> Fields:
        rows = (w[i * d : (i + 1) * d] for i in range(d))
        return tuple(
            activation(sum((a * b for a, b in zip(row, h, strict=True)), start=u[i]))
            for i, row in enumerate(rows)
        )

    return Cell(f"para_rnn_{nonlinearity}_{d}", n=d, m=d, p=d * d, step=step)
