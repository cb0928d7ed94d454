"""The GRU and LSTM of Danieli et al. (2025): gates without mixing, solved in parallel in time."""

from __future__ import annotations

import torch
from torch import nn

from tsrnn.kernels import cells
from tsrnn.layers._checks import check_block_size, check_choice
from tsrnn.layers._initialisation import draw_newton, draw_stable
from tsrnn.layers._stack import CellStack

INITIALISATIONS = ("paper", "stable")


class _NewtonStack(CellStack):
    """Stack of cells whose parameters are drawn as in the appendix of Danieli et al. (2025)."""

    init: str

    @torch.no_grad()
    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        r"""Draw the parameters anew.

        With ``init="paper"`` as in appendix C.1 of Danieli et al. (2025): B is Kaiming
        uniform, which we take with the gain of a linear unit, uniform on
        (-sqrt(3 / in), sqrt(3 / in)); a and c are Xavier Gaussian, normal with variance
        1 / `hidden_size`; b is zero. With ``init="stable"`` recurrent matrices are contractions
        of half-lives short to long, as in `ParaRNN`.
        """
        for layer in range(self.num_layers):
            weight_ih, weight_hh, bias = self.weights(layer)
            params = weight_hh.view(self.cell.p, self.n_blocks)
            if self.init == "stable":
                draw_stable(self.cell, weight_ih, params, bias, generator)
            else:
                draw_newton(weight_ih, params, bias, weight_ih.shape[1], generator)

    def recurrent_parameters(self) -> list[nn.Parameter]:
        """Recurrent matrices, if they start as contractions; else they are small and must grow."""
        return super().recurrent_parameters() if self.init == "stable" else []

    def extra_repr(self) -> str:
        """Sizes, for printing."""
        return f"{self.input_size}, {self.hidden_size}, num_layers={self.num_layers}"


class NewtonGRU(_NewtonStack):
    r"""Stacked GRU whose recurrent matrices are diagonal.

    .. math::
        z_t &= \hat\sigma(a_z \odot h_{t-1} + B_z x_t + b_z), \\
        r_t &= \hat\sigma(a_r \odot h_{t-1} + B_r x_t + b_r), \\
        c_t &= \tanh(a_c \odot r_t \odot h_{t-1} + B_c x_t + b_c), \\
        h_t &= (1 - z_t) \odot h_{t-1} + z_t \odot c_t,

    equation (7a) with (9) of Danieli et al. (2025), their ParaGRU. Units of a layer do not see
    each other; layer l > 1 takes the outputs of all units of layer l - 1 as its x. The
    Jacobian of a step is diagonal, so that Newton's method over all steps at once is cheap:
    on long sequences with few lanes the kernels run parallel in time.

    Parameters
    ----------
    input_size : int
        Number of inputs per step.
    hidden_size : int
        Number of outputs of a layer, its units.
    num_layers : int, default 1
    bias : bool, default True
        Whether b is there.
    dropout : float, default 0
        Probability of dropping an output of a layer but the last, in training.
    init : {"paper", "stable"}, default "paper"
        See `reset_parameters`.
    engine : str, default "auto"
        Engine of `tsrnn.kernels.recurrence` that runs the layers.
    device, dtype
        As in torch.

    Attributes
    ----------
    weight_ih_l{l} : Parameter of shape (3 hidden_size, in)
        B_z, B_r, B_c, stacked by rows.
    weight_hh_l{l} : Parameter of shape (3, 1, 1, hidden_size)
        a_z, a_r, a_c.
    bias_l{l} : Parameter of shape (3 hidden_size,)

    Raises
    ------
    ValueError
        If a size is not a positive integer, or `init` or `dropout` is not legal.

    References
    ----------
    Danieli et al. (2025), "ParaRNN: unlocking parallel training of nonlinear RNNs for large
    language models". They bound the recurrent parameters by clipping: do so with
    ``weight_hh_l0.clamp_`` after each step of the optimiser where it is wanted.

    Examples
    --------
    >>> import torch
    >>> from tsrnn.layers import NewtonGRU
    >>> output, h_n = NewtonGRU(3, 8, num_layers=2)(torch.zeros(5, 20, 3))
    >>> output.shape, h_n.shape
    (torch.Size([5, 20, 8]), torch.Size([2, 5, 8]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *,
        bias: bool = True,
        dropout: float = 0.0,
        init: str = "paper",
        engine: str = "auto",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        check_choice("init", init, INITIALISATIONS)
        super().__init__(
            input_size, hidden_size, num_layers, cells.newton_gru(), bias=bias, dropout=dropout,
            engine=engine, called="cell='newton-gru'", device=device, dtype=dtype,
        )  # fmt: skip
        self.init = init
        self.initialise()


class NewtonLSTM(_NewtonStack):
    r"""Stacked LSTM with coupled gates and peepholes, its recurrent matrices diagonal.

    .. math::
        f_t &= \hat\sigma(A_f h_{t-1} + B_f x_t + c_f \odot c_{t-1} + b_f), \\
        z_t &= \tanh(A_z h_{t-1} + B_z x_t + b_z), \\
        c_t &= f_t \odot c_{t-1} + (1 - f_t) \odot z_t, \\
        o_t &= \hat\sigma(A_o h_{t-1} + B_o x_t + c_o \odot c_t + b_o), \qquad
        h_t = o_t \odot \tanh(c_t),

    equation (7b) with (9) of Danieli et al. (2025), their ParaLSTM, where A = diag(a). With
    ``block_size`` d_s > 1 the A are block-diagonal and d_s units see each other.

    Parameters
    ----------
    input_size : int
        Number of inputs per step.
    hidden_size : int
        Number of outputs h of a layer.
    num_layers : int, default 1
    block_size : int, default 1
        d_s, a divisor of `hidden_size`.
    bias : bool, default True
        Whether b is there.
    dropout : float, default 0
        Probability of dropping an output of a layer but the last, in training.
    init : {"paper", "stable"}, default "paper"
        See `reset_parameters`.
    engine : str, default "auto"
        Engine of `tsrnn.kernels.recurrence` that runs the layers.
    device, dtype
        As in torch.

    Attributes
    ----------
    weight_ih_l{l} : Parameter of shape (3 hidden_size, in)
        B_f, B_z, B_o, stacked; rows of each in the order of states.
    weight_hh_l{l} : Parameter of shape (3 d_s^2 + 2 d_s, K)
        Entries of A_f, A_z, A_o by rows, then c_f, c_o, of K = `hidden_size` / d_s blocks.
    bias_l{l} : Parameter of shape (3 hidden_size,)

    Raises
    ------
    ValueError
        If a size is not a positive integer, `block_size` does not divide `hidden_size`, or
        `init` or `dropout` is not legal.

    Notes
    -----
    The state is (h, c), 2 `hidden_size` numbers a layer, as the pair of
    :class:`torch.nn.LSTM`. State i of block k is number ``i * K + k`` of h and of c.

    References
    ----------
    Danieli et al. (2025), "ParaRNN: unlocking parallel training of nonlinear RNNs for large
    language models".

    Examples
    --------
    >>> import torch
    >>> from tsrnn.layers import NewtonLSTM
    >>> output, h_n = NewtonLSTM(3, 8)(torch.zeros(5, 20, 3))
    >>> output.shape, h_n.shape
    (torch.Size([5, 20, 8]), torch.Size([1, 5, 16]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *,
        block_size: int = 1,
        bias: bool = True,
        dropout: float = 0.0,
        init: str = "paper",
        engine: str = "auto",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        hidden_size, block_size = check_block_size(hidden_size, block_size)
        check_choice("init", init, INITIALISATIONS)
        super().__init__(
            input_size, hidden_size, num_layers, cells.newton_lstm(block_size), bias=bias,
            dropout=dropout, engine=engine, called="cell='newton-lstm'", device=device, dtype=dtype,
        )  # fmt: skip
        self.init = init
        self.initialise()

    def extra_repr(self) -> str:
        """Sizes, for printing."""
        return f"{super().extra_repr()}, block_size={self.block_size}"
