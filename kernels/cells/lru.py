"""The linear recurrent unit of Orvieto et al. (2023)."""

from tsrnn.kernels._cell import Cell, Fields


def _step(x: Fields, u: Fields, w: Fields) -> Fields:
    (re, im), (u_re, u_im), (lambda_re, lambda_im) = x, u, w
    return lambda_re * re - lambda_im * im + u_re, lambda_im * re + lambda_re * im + u_im


_CELL = Cell(
    "lru",
    n=2,
    m=2,
    p=2,
    step=_step,
    names=(("x_re", "x_im"), ("u_re", "u_im"), ("lambda_re", "lambda_im")),
)


def lru() -> Cell:
    r"""Complex number :math:`x_k = \lambda x_{k-1} + u_k` as real and imaginary part.

    One entry of the diagonal recurrence of Orvieto et al. (2023), with the projected
    input :math:`B u_k` in the inputs.

    Returns
    -------
    Cell
        With n = m = p = 2.

    Examples
    --------
    >>> import torch
    >>> from tsrnn.kernels import cells, recurrence
    >>> impulse = torch.zeros(1, 4, 2, 1)
    >>> impulse[0, 0, 0] = 1.0
    >>> states, _ = recurrence(cells.lru(), impulse, torch.tensor([[0.0], [1.0]]))
    >>> states[0, :, :, 0].tolist()
    [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]]
    """
    return _CELL
