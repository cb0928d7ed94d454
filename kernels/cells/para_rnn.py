"""The ParaRNN cell of Cai et al. (2026): small dense recurrences side by side."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from tsrnn.kernels._cell import Cell
from tsrnn.kernels._matrix_form import MatrixForm


def _identity(x: Any) -> Any:
    return x


ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "tanh": torch.tanh,
    "relu": torch.relu,
    "identity": _identity,
}


@dataclass(frozen=True)
class _Step:
    nonlinearity: str

    def __call__(self, states: Any, inputs: Any, matrices: Any, vectors: Any) -> tuple[Any, ...]:
        (h,), (u,), (W,) = states, inputs, matrices
        return (ACTIVATIONS[self.nonlinearity](u + W @ h),)


_FORMS = {
    name: MatrixForm(f"para_rnn_{name}", ("h",), ("u",), ("W",), _Step(name))
    for name in ACTIVATIONS
}


def para_rnn(block_size: int, nonlinearity: str = "tanh") -> Cell:
    r"""Block of `block_size` = d_s units: :math:`h_t = \sigma(W h_{t-1} + u_t)`.

    Equation (3) of Cai et al. (2026) for one block of their (7), with the input projection
    and the bias already in `u_t`. The d_s x d_s matrix W is the cell's
    parameters in row order. With ``block_size`` equal to the number of states it is
    the recurrent network of Elman (1990).

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

    Examples
    --------
    >>> import torch
    >>> from tsrnn.kernels import cells, recurrence
    >>> cell = cells.para_rnn(2)
    >>> states, final = recurrence(cell, torch.zeros(3, 10, cell.m, 4), torch.zeros(cell.p, 4))
    >>> states.shape, final.shape
    (torch.Size([3, 10, 2, 4]), torch.Size([3, 2, 4]))
    """
    if nonlinearity not in ACTIVATIONS:
        raise ValueError(f"nonlinearity must be one of {list(ACTIVATIONS)}; got {nonlinearity!r}")
    return _FORMS[nonlinearity].block(block_size)


def linear(dimension: int) -> Cell:
    r"""Linear recurrence :math:`h_t = W h_{t-1} + u_t` of some dimension d.

    Section 2.1 of Cai et al. (2026): ARMA, GARCH and VECM-GARCH are of this form. It is
    `para_rnn` with the identity for sigma.

    Parameters
    ----------
    dimension : int
        d, at least 1.

    Returns
    -------
    Cell
        With n = m = d and p = d ** 2.

    Raises
    ------
    ValueError
        If the dimension is no positive integer.

    Examples
    --------
    >>> import torch
    >>> from tsrnn.kernels import cells, recurrence
    >>> states, _ = recurrence(cells.linear(1), torch.ones(1, 3, 1, 1), torch.tensor([[0.5]]))
    >>> states.flatten()
    tensor([1.0000, 1.5000, 1.7500])
    """
    if not isinstance(dimension, int) or isinstance(dimension, bool) or dimension < 1:
        raise ValueError(f"dimension must be a positive integer; got {dimension!r}")
    return para_rnn(dimension, "identity")
