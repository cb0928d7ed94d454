"""The LSTM, its recurrent matrices block-diagonal: ParaLSTM of Cai et al. (2026)."""

from typing import Any

from torch import sigmoid, tanh

from tsrnn.kernels._cell import Cell
from tsrnn.kernels._matrix_form import MatrixForm


def _step(states: Any, inputs: Any, matrices: Any, vectors: Any) -> tuple[Any, ...]:
    (h, c), (u_i, u_f, u_g, u_o), (W_i, W_f, W_g, W_o) = states, inputs, matrices
    i, f, o = sigmoid(u_i + W_i @ h), sigmoid(u_f + W_f @ h), sigmoid(u_o + W_o @ h)
    g = tanh(u_g + W_g @ h)
    c = f * c + i * g
    return o * tanh(c), c


_FORM = MatrixForm(
    "para_lstm", ("h", "c"), ("u_i", "u_f", "u_g", "u_o"), ("W_i", "W_f", "W_g", "W_o"), _step
)


def para_lstm(block_size: int) -> Cell:
    r"""Block of `block_size` = d_s units of a long short-term memory network.

    .. math::
        i, f, o &= \hat\sigma(W_{i,f,o} h_{t-1} + u_{i,f,o}), \qquad
        g = \tanh(W_g h_{t-1} + u_g), \\
        c_t &= f \odot c_{t-1} + i \odot g, \qquad h_t = o \odot \tanh(c_t)

    Section 5 of Cai et al. (2026): every recurrent matrix is block-diagonal. States
    are h, then c; inputs and matrices are in the order i, f, g, o of
    :class:`torch.nn.LSTM`.

    Parameters
    ----------
    block_size : int
        d_s, at least 1.

    Returns
    -------
    Cell
        With n = 2 d_s, m = 4 d_s and p = 4 d_s ** 2.

    Raises
    ------
    ValueError
        If the block size is no positive integer.

    Examples
    --------
    >>> import torch
    >>> from tsrnn.kernels import cells, recurrence
    >>> cell = cells.para_lstm(2)
    >>> inputs, params = torch.zeros(3, 10, cell.m, 4), torch.zeros(cell.p, 4)
    >>> h, _ = recurrence(cell, inputs, params, outputs_only=True)
    >>> cell.n, h.shape
    (4, torch.Size([3, 10, 2, 4]))
    """
    return _FORM.block(block_size)
