"""The diagonal GRU of Danieli et al. (2025)."""

from tsrnn.kernels._cell import Cell
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
