"""The GRU, its recurrent matrices block-diagonal: ParaGRU of Cai et al. (2026)."""

from typing import Any

from torch import sigmoid, tanh

from tsrnn.kernels._cell import Cell
from tsrnn.kernels._matrix_form import MatrixForm


def _reset_before(states: Any, inputs: Any, matrices: Any, vectors: Any) -> tuple[Any, ...]:
    (h,), (u_z, u_r, u_c), (A_z, A_r, A_c) = states, inputs, matrices
    z, r = sigmoid(u_z + A_z @ h), sigmoid(u_r + A_r @ h)
    c = tanh(u_c + A_c @ (r * h))
    return ((1 - z) * h + z * c,)


def _reset_after(states: Any, inputs: Any, matrices: Any, vectors: Any) -> tuple[Any, ...]:
    (h,), (u_z, u_r, u_c), (A_z, A_r, A_c) = states, inputs, matrices
    z, r = sigmoid(u_z + A_z @ h), sigmoid(u_r + A_r @ h)
    c = tanh(u_c + r * (A_c @ h))
    return ((1 - z) * h + z * c,)


_PARTS = ("h",), ("u_z", "u_r", "u_c"), ("A_z", "A_r", "A_c")
_FORMS = {
    False: MatrixForm("para_gru", *_PARTS, _reset_before),
    True: MatrixForm("para_gru_reset_after", *_PARTS, _reset_after),
}


def para_gru(block_size: int, reset_after: bool = False) -> Cell:
    r"""Block of `block_size` = d_s gated recurrent units.

    .. math::
        z, r &= \hat\sigma(A_{z,r} h_{t-1} + u_{z,r}), \qquad
        c = \tanh(A_c (r \odot h_{t-1}) + u_c), \\
        h_t &= (1 - z) \odot h_{t-1} + z \odot c

    Equation (7a) of Danieli et al. (2025) with block-diagonal matrices, section 5 of Cai
    et al. (2026). With ``block_size=1`` all of them are diagonal, which is the GRU of
    Danieli et al. (9).

    Parameters
    ----------
    block_size : int
        d_s, at least 1.
    reset_after : bool, default False
        Multiply r by :math:`A_c h_{t-1}`, after the matrix product, as in
        :class:`torch.nn.GRU`. That class also gates the old state instead of the candidate
        with z: its z is 1 - z here, and its input and matrix for z have the opposite sign.

    Returns
    -------
    Cell
        With n = d_s, m = 3 d_s and p = 3 d_s ** 2.

    Raises
    ------
    ValueError
        If the block size is no positive integer.

    Examples
    --------
    >>> import torch
    >>> from tsrnn.kernels import cells, recurrence
    >>> cell = cells.para_gru(2)
    >>> states, _ = recurrence(cell, torch.zeros(3, 10, cell.m, 4), torch.zeros(cell.p, 4))
    >>> states.shape
    torch.Size([3, 10, 2, 4])
    """
    return _FORMS[bool(reset_after)].block(block_size)
