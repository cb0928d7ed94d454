"""Long expressive memory of Rusch et al. (2022)."""

from dataclasses import dataclass
from numbers import Real
from typing import Any

from torch import relu, sigmoid, tanh

from tsrnn.kernels._cell import Cell
from tsrnn.kernels._matrix_form import MatrixForm


@dataclass(frozen=True)
class _Step:
    dt: float
    min_step: float

    def __call__(self, states: Any, inputs: Any, matrices: Any, vectors: Any) -> tuple[Any, ...]:
        (y, z), (u_1, u_2, u_z, u_y), (W_1, W_2, W_z, W_y) = states, inputs, matrices
        fast = self.clipped(self.dt * sigmoid(u_1 + W_1 @ y))
        slow = self.clipped(self.dt * sigmoid(u_2 + W_2 @ y))
        z = (1 - fast) * z + fast * tanh(u_z + W_z @ y)
        return (1 - slow) * y + slow * tanh(u_y + W_y @ z), z

    def clipped(self, step: Any) -> Any:
        """Clip steps to at least `min_step`, without gradient if clipped."""
        return self.min_step + relu(step - self.min_step) if self.min_step else step


def lem(block_size: int = 1, dt: float = 1.0, min_step: float = 0.0) -> Cell:
    r"""Block of `block_size` = d_s pairs (y, z) of long expressive memory.

    .. math::
        \Delta t_n &= \Delta t \, \hat\sigma(W_1 y_{n-1} + u_1), \qquad
        \overline{\Delta t}_n = \Delta t \, \hat\sigma(W_2 y_{n-1} + u_2), \\
        z_n &= (1 - \Delta t_n) \odot z_{n-1} + \Delta t_n \odot \tanh(W_z y_{n-1} + u_z), \\
        y_n &= (1 - \overline{\Delta t}_n) \odot y_{n-1}
            + \overline{\Delta t}_n \odot \tanh(W_y z_n + u_y)

    Equation (3) of Rusch et al. (2022) with its projected inputs :math:`V u_n + b` in
    the inputs. With `block_size` equal to the number of pairs it is the model as
    published.

    Parameters
    ----------
    block_size : int, default 1
        d_s, at least 1.
    dt : float, default 1
        The largest time step, positive.
    min_step : float, default 0
        Lower bound of time steps, from 0 to `dt`: :math:`2^{-i}` gives the clipping of
        Figure 6 of the paper; `dt` makes all steps equal, the LEM without multiscale of
        its Table 9.

    Returns
    -------
    Cell
        With n = 2 d_s, m = 4 d_s and p = 4 d_s ** 2. States are y, then z; inputs and
        matrices are in the order 1, 2, z, y.

    Raises
    ------
    ValueError
        If the block size is no positive integer, dt is not positive or min_step lies
        outside [0, dt].

    Examples
    --------
    >>> from tsrnn.kernels import cells
    >>> cell = cells.lem(2, dt=0.5)
    >>> cell.n, cell.m, cell.p
    (4, 8, 16)
    """
    if not isinstance(dt, Real) or not 0 < dt < float("inf"):
        raise ValueError(f"dt must be a positive number; got {dt!r}")
    dt = float(dt)  # a fraction, too, is written as a decimal below
    if not isinstance(min_step, Real) or isinstance(min_step, bool) or not 0 <= min_step <= dt:
        raise ValueError(f"min_step must lie between 0 and dt={dt:g}; got {min_step!r}")
    min_step = float(min_step)
    name = "lem" if dt == 1 else f"lem_dt{dt:g}".replace("+", "")
    name += f"_min{min_step:g}".replace("+", "") if min_step else ""
    form = MatrixForm(
        name,
        ("y", "z"),
        ("u_1", "u_2", "u_z", "u_y"),
        ("W_1", "W_2", "W_z", "W_y"),
        _Step(dt, min_step),
    )
    return form.block(block_size)
