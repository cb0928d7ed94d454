"""What a cell is: one step of a recurrence, written as a torch function of scalars."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

Fields = tuple[Tensor, ...]


@dataclass(frozen=True)
class Cell:
    """One unit of a recurrence ``state_t = step(state_{t-1}, inputs_t, params)``.

    A layer is K units side by side that share `step` and own their parameters.
    `step` sees the fields of one unit as tensors of equal shape and combines
    them element by element; its derivative and its compiled form follow from
    tracing it once.

    Parameters
    ----------
    name : str
        Name of the recurrence, used in messages and file names: letters, digits,
        ``_``, ``-`` and ``.`` only.
    n, m, p : int
        Number of state fields, of input fields and of parameters of a unit.
    step : callable
        ``step(state, inputs, params) -> state`` on tuples of n, m and p tensors. It is
        traced once: numbers that it finds outside its arguments are kept as they were.
    shared : bool, default False
        Whether the units have the same inputs: (B, T, m) instead of (B, T, m, K). For
        `projected_recurrence`, which makes such cells.

    Raises
    ------
    ValueError
        If the name or a number of fields is not legal.

    Notes
    -----
    Compiled code belongs to a cell, and cells are equal if all their parts are. Make a
    cell once, at module level or in a cached function, not at every call.

    Examples
    --------
    The linear recurrence ``h_t = a h_{t-1} + u_t``:

    >>> Cell("decay", n=1, m=1, p=1, step=lambda h, u, a: (a[0] * h[0] + u[0],)).name
    'decay'
    """

    name: str
    n: int
    m: int
    p: int
    step: Callable[[Fields, Fields, Fields], Fields]
    shared: bool = False

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[\w.-]+", self.name, re.ASCII):
            raise ValueError(
                f"a cell's name must be of letters, digits, '_', '-' and '.'; got {self.name!r}"
            )
        if self.n < 1 or self.m < 0 or self.p < 0:
            raise ValueError(
                f"cell {self.name!r} needs n >= 1 state fields, m >= 0 input fields and "
                f"p >= 0 parameters; got n={self.n}, m={self.m}, p={self.p}"
            )
