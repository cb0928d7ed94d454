"""The diagonal GRU and LSTM of Danieli et al. (2025)."""

from typing import Any

from torch import sigmoid, tanh

from tsrnn.kernels._cell import Cell
from tsrnn.kernels._matrix_form import MatrixForm
from tsrnn.kernels.cells.para_gru import para_gru


def newton_gru() -> Cell:
    """GRU with diagonal matrices, (7a) with (9) of Danieli et al. (2025): `para_gru` of size 1.

    Returns
    -------
    Cell
        With n = 1, m = 3 and p = 3.

    Examples
    --------
    >>> from tsrnn.kernels import cells
    >>> cells.newton_gru() == cells.para_gru(1)
    True
    """
    return para_gru(1)


def _step(states: Any, inputs: Any, matrices: Any, vectors: Any) -> tuple[Any, ...]:
    (h, c), (u_f, u_z, u_o), (A_f, A_z, A_o), (C_f, C_o) = states, inputs, matrices, vectors
    f = sigmoid(u_f + A_f @ h + C_f * c)
    z = tanh(u_z + A_z @ h)
    c = f * c + (1 - f) * z
    o = sigmoid(u_o + A_o @ h + C_o * c)
    return o * tanh(c), c


_FORM = MatrixForm(
    "newton_lstm",
    ("h", "c"),
    ("u_f", "u_z", "u_o"),
    ("A_f", "A_z", "A_o"),
    _step,
    vectors=("C_f", "C_o"),
)


def newton_lstm(block_size: int = 1) -> Cell:
    r"""LSTM with coupled forget and input gates and peepholes.

    .. math::
        f &= \hat\sigma(A_f h_{t-1} + C_f c_{t-1} + u_f), \qquad z = \tanh(A_z h_{t-1} + u_z), \\
        c_t &= f \odot c_{t-1} + (1 - f) \odot z, \\
        o &= \hat\sigma(A_o h_{t-1} + C_o c_t + u_o), \qquad h_t = o \odot \tanh(c_t)

    Equation (7b) of Danieli et al. (2025), whose output gate sees the new cell. C is
    diagonal; with ``block_size=1`` A is too, their equation (9).

    Parameters
    ----------
    block_size : int, default 1
        Size of the blocks of A.

    Returns
    -------
    Cell
        With n = 2 d_s, m = 3 d_s and p = 3 d_s ** 2 + 2 d_s; states are h, then c.

    Raises
    ------
    ValueError
        If the block size is no positive integer.

    Examples
    --------
    >>> from tsrnn.kernels import cells
    >>> cell = cells.newton_lstm()
    >>> cell.n, cell.m, cell.p
    (2, 3, 5)
    """
    return _FORM.block(block_size)
