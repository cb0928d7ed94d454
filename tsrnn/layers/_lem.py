"""Long expressive memory, a layer whose units learn their time steps."""

import torch
from torch import nn

from tsrnn.kernels import cells
from tsrnn.layers._checks import check_block_size, check_choice, check_sizes
from tsrnn.layers._initialisation import check_chrono, draw_uniform
from tsrnn.layers._stack import CellStack

INITIALISATIONS = ("uniform", "chrono")


class LEM(CellStack):
    r"""Stacked layers of long expressive memory, called like :class:`torch.nn.RNN`, batch first.

    The layer discretises a system of ordinary differential equations with learned time scales,
    equation (3) of Rusch et al. (2022),

    .. math::
        \Delta t_n &= \Delta t \, \hat\sigma(W_1 y_{n-1} + V_1 u_n + b_1), \qquad
        \overline{\Delta t}_n = \Delta t \, \hat\sigma(W_2 y_{n-1} + V_2 u_n + b_2), \\
        z_n &= (1 - \Delta t_n) \odot z_{n-1}
            + \Delta t_n \odot \tanh(W_z y_{n-1} + V_z u_n + b_z), \\
        y_n &= (1 - \overline{\Delta t}_n) \odot y_{n-1}
            + \overline{\Delta t}_n \odot \tanh(W_y z_n + V_y u_n + b_y),

    with the logistic function :math:`\hat\sigma`. The output is y, the u of the next layer. Gate 1
    sets the pace of the fast states z, gate 2 the pace of the slow states y. For
    :math:`\Delta t \le 1` all states stay in [-1, 1].

    The state of a layer is y, then z, 2 `hidden_size` numbers. All parameters learn at one rate:
    `recurrent_parameters` is empty, because states are bounded for any matrices (Proposition 4.1).

    Parameters
    ----------
    input_size : int
        Number of inputs per step.
    hidden_size : int
        Number of outputs d of a layer.
    num_layers : int, default 1
    dt : float, default 1
        Largest time step :math:`\Delta t`. In the paper values from 1 / sqrt(sequence length) to 1
        do well (B.1).
    min_step : float, default 0
        Lower bound of the time steps, at most `dt`: 2**-i with ``dt=1`` in Figure 6 of the paper.
        If equal to `dt`, all steps are `dt` and the gates have no effect, the model without
        multiscale of Table 9.
    block_size : int, optional
        Size d_s of the blocks of the matrices W, a divisor of `hidden_size`. By default the
        matrices are full, as published.
    bias : bool, default True
        True to include the four b.
    dropout : float, default 0
        Probability of dropping an output of a layer except the last, in training.
    init : {"uniform", "chrono"}, default "uniform"
        See `reset_parameters`.
    chrono_length : float, optional
        T_max of ``init="chrono"``: the longest dependency expected, in steps, above 2 / `dt`.
    engine : str, default "auto"
        Engine of `tsrnn.kernels.recurrence` that runs the layers.
    device, dtype
        As in torch.

    Attributes
    ----------
    weight_ih_l{l} : Parameter of shape (4 d, in)
        V_1, V_2, V_z, V_y, stacked by rows. Row ``i * K + k`` of a V belongs to unit i of block k
        of K, 1 by default.
    weight_hh_l{l} : Parameter of shape (4, d_s, d_s, K)
        W_1, W_2, W_z, W_y. Matrix W_1 of block k is ``weight_hh_l0[0, :, :, k]``.
    bias_l{l} : Parameter of shape (4 d,)
        b_1, b_2, b_z, b_y.
    dt, min_step : float

    Raises
    ------
    ValueError
        If a size is not a positive integer, `block_size` does not divide `hidden_size`, `dt` is
        not positive, `min_step` lies outside [0, dt], or the initialisation is unknown or lacks
        an argument.

    References
    ----------
    Rusch, Mishra, Erichson and Mahoney (2022), Long Expressive Memory for Sequence Modeling,
    ICLR. Tallec and Ollivier (2018), Can Recurrent Neural Networks Warp Time?, ICLR.

    Examples
    --------
    >>> import torch
    >>> from tsrnn.layers import LEM
    >>> layer = LEM(3, 16, dt=0.5)
    >>> output, h_n = layer(torch.zeros(8, 100, 3))
    >>> output.shape, h_n.shape
    (torch.Size([8, 100, 16]), torch.Size([1, 8, 32]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *,
        dt: float = 1.0,
        min_step: float = 0.0,
        block_size: int | None = None,
        bias: bool = True,
        dropout: float = 0.0,
        init: str = "uniform",
        chrono_length: float | None = None,
        engine: str = "auto",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        (size,) = check_sizes(hidden_size=hidden_size)
        if block_size is not None:
            _, size = check_block_size(hidden_size, block_size)
        cell = cells.lem(size, dt, min_step)
        check_choice("init", init, INITIALISATIONS)
        check_chrono(init, chrono_length, bias, dt)
        super().__init__(
            input_size, hidden_size, num_layers, cell, bias=bias, dropout=dropout, engine=engine,
            called="cell='lem'", device=device, dtype=dtype,
        )  # fmt: skip
        self.dt = float(dt)
        self.min_step = float(min_step)
        self.init = init
        self.chrono_length = chrono_length
        self.initialise()

    @torch.no_grad()
    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        r"""Draw the parameters anew.

        "uniform": all are uniform on (-1/sqrt(d), 1/sqrt(d)), appendix A of the paper. "chrono",
        appendix B.3: the matrices are the same, and biases are zero, except
        :math:`b_1 \sim -\log U[1, T_{\max} \Delta t - 1]`. At zero input and state, the time scales
        :math:`1 / \Delta t_n` of z are then uniform between :math:`2 / \Delta t` and
        :math:`T_{\max}` steps, and the time scale of y is :math:`2 / \Delta t`.
        """
        draw_uniform(self.parameters(), self.hidden_size**-0.5, generator)
        if self.chrono_length is None:
            return
        for layer in range(self.num_layers):
            bias = self.get_parameter(f"bias_l{layer}")
            bias.zero_()
            fast = bias[: self.hidden_size]
            fast.uniform_(1.0, self.chrono_length * self.dt - 1.0, generator=generator)
            fast.log_().neg_()

    def recurrent_parameters(self) -> list[nn.Parameter]:
        """Empty list, because the state is bounded for any matrices."""
        return []

    def extra_repr(self) -> str:
        """Sizes, for printing."""
        min_step = f", min_step={self.min_step:g}" if self.min_step else ""
        block_size = "" if self.n_blocks == 1 else f", block_size={self.block_size}"
        return (
            f"{self.input_size}, {self.hidden_size}, num_layers={self.num_layers}, "
            f"dt={self.dt:g}{min_step}{block_size}"
        )
