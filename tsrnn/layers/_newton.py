"""Diagonal GRU and LSTM of Danieli et al. (2025), solved in parallel in time."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import torch
from torch import Tensor, nn

from tsrnn.kernels import cells
from tsrnn.layers._checks import check_block_size, check_choice
from tsrnn.layers._initialisation import draw_newton, draw_stable
from tsrnn.layers._stack import CellStack

INITIALISATIONS = ("paper", "stable")


class _Bounded(torch.autograd.Function):
    """Clamp whose gradient is zero only if a descent step would leave the bounds.

    Descent steps are then projected onto the bounds, and can return from a bound, unlike with
    `torch.clamp`.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(values: Tensor, limit: float) -> Tensor:
        return values.clamp(-limit, limit)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, float], output: Tensor) -> None:
        values, ctx.limit = inputs
        ctx.save_for_backward(values)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None]:  # type: ignore[override]
        (values,) = ctx.saved_tensors
        leaves = (values.abs() >= ctx.limit) & (values * g < 0)
        return torch.where(leaves, torch.zeros_like(g), g), None


def bounded(values: Tensor, limit: float | None) -> Tensor:
    """Clamp recurrent parameters to +-limit, if there is a limit."""
    if limit is None:
        return values
    if torch.is_grad_enabled():
        bounded_values: Tensor = _Bounded.apply(values, limit)
        return bounded_values
    return values.clamp(-limit, limit)


def check_limit(value: Any) -> float | None:
    """Validate `max_recurrent`."""
    if value is None:
        return None
    if not isinstance(value, Real) or isinstance(value, bool) or not 0 < float(value) < math.inf:
        raise ValueError(f"max_recurrent must be a positive number or None; got {value!r}")
    return float(value)


class _NewtonStack(CellStack):
    """Stack of cells with the initialisation and the bounds of Danieli et al. (2025)."""

    init: str
    max_recurrent: float | None

    def weights(self, layer: int) -> tuple[Tensor, Tensor, Tensor | None]:
        """Projection (m K, in), bounded recurrent parameters, and bias of a layer."""
        weight_ih, weight_hh, bias = super().weights(layer)
        return weight_ih, bounded(weight_hh, self.max_recurrent), bias

    @torch.no_grad()
    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        r"""Draw the parameters anew.

        ``init="paper"`` follows appendix C.1 of Danieli et al. (2025): B is Kaiming uniform with
        the gain of a linear unit, on (-sqrt(3 / in), sqrt(3 / in)); a and c are Xavier Gaussian
        with variance 1 / `hidden_size`; b is zero. With ``init="stable"`` recurrent matrices are
        contractions with short to long half-lives, as in `ParaRNN`. Draws beyond `max_recurrent`
        are clamped.
        """
        for layer in range(self.num_layers):
            weight_ih, weight_hh, bias = super().weights(layer)
            params = weight_hh.view(self.cell.p, self.n_blocks)
            if self.init == "stable":
                draw_stable(self.cell, weight_ih, params, bias, generator)
            else:
                draw_newton(weight_ih, params, bias, weight_ih.shape[1], generator)
            params.copy_(bounded(params, self.max_recurrent))  # start within the bounds

    def recurrent_parameters(self) -> list[nn.Parameter]:
        """Recurrent matrices if they start as contractions; others are small and must grow."""
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

    This is the ParaGRU of Danieli et al. (2025), equation (7a) with (9). Units of a layer do not
    interact; layer l > 1 takes the outputs of all units of layer l - 1 as its x. The Jacobian of a
    step is diagonal, which makes Newton's method over all steps cheap: on long sequences with few
    lanes the kernels run in parallel in time.

    To bound the Jacobians, Danieli et al. "clip the norm of a and c", to 0.5 in language models
    (appendix C.1) and to 0.9 in most synthetic tasks (C.2). Here the norm is the largest absolute
    value, the norm of diag(a), and the recurrence runs with a clamped to +-`max_recurrent`. The
    gradient is zero if a descent step would leave the bounds, so that gradient descent equals
    clipping after each step. Momentum may carry a beyond the bound for some steps, while the
    recurrence stays at it. Parity cannot be learned with such a bound.

    Parameters
    ----------
    input_size : int
        Number of inputs per step.
    hidden_size : int
        Number of outputs of a layer, its units.
    num_layers : int, default 1
    bias : bool, default True
        True to include b.
    dropout : float, default 0
        Probability of dropping an output of a layer except the last, in training.
    init : {"paper", "stable"}, default "paper"
        See `reset_parameters`.
    max_recurrent : float, optional
        Bound of the absolute values of a, see Notes; none by default, 0.5 or 0.9 in the paper.
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
        If a size is not a positive integer, or `init`, `dropout` or `max_recurrent` is illegal.

    References
    ----------
    Danieli et al. (2025), "ParaRNN: unlocking parallel training of nonlinear RNNs for large
    language models".

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
        max_recurrent: float | None = None,
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
        self.max_recurrent = check_limit(max_recurrent)
        self.initialise()


class NewtonLSTM(_NewtonStack):
    r"""Stacked LSTM with coupled gates and peepholes, its recurrent matrices diagonal.

    .. math::
        f_t &= \hat\sigma(A_f h_{t-1} + B_f x_t + c_f \odot c_{t-1} + b_f), \\
        z_t &= \tanh(A_z h_{t-1} + B_z x_t + b_z), \\
        c_t &= f_t \odot c_{t-1} + (1 - f_t) \odot z_t, \\
        o_t &= \hat\sigma(A_o h_{t-1} + B_o x_t + c_o \odot c_t + b_o), \qquad
        h_t = o_t \odot \tanh(c_t),

    This is the ParaLSTM of Danieli et al. (2025), see `NewtonGRU`, equation (7b) with (9), where
    A = diag(a). With ``block_size`` d_s > 1 the A are block-diagonal, and the d_s units of a block
    interact.

    The state of a layer is (h, c), 2 `hidden_size` numbers, like the pair of
    :class:`torch.nn.LSTM`. State i of block k has index ``i * K + k`` in h and in c.

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
        True to include b.
    dropout : float, default 0
        Probability of dropping an output of a layer except the last, in training.
    init : {"paper", "stable"}, default "paper"
        See `reset_parameters`.
    max_recurrent : float, optional
        Bound of the absolute values of a and c, as in `NewtonGRU`; for diagonal A only, none by
        default.
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
        If a size is not a positive integer, `block_size` does not divide `hidden_size`, `init`,
        `dropout` or `max_recurrent` is illegal, or `max_recurrent` is given with blocks.

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
        max_recurrent: float | None = None,
        engine: str = "auto",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        hidden_size, block_size = check_block_size(hidden_size, block_size)
        check_choice("init", init, INITIALISATIONS)
        if max_recurrent is not None and block_size > 1:
            raise ValueError(
                "max_recurrent bounds recurrent matrices that are diagonal, of block_size=1; got "
                f"max_recurrent={max_recurrent!r} with block_size={block_size}. Leave it out"
            )
        super().__init__(
            input_size, hidden_size, num_layers, cells.newton_lstm(block_size), bias=bias,
            dropout=dropout, engine=engine, called="cell='newton-lstm'", device=device, dtype=dtype,
        )  # fmt: skip
        self.init = init
        self.max_recurrent = check_limit(max_recurrent)
        self.initialise()

    def extra_repr(self) -> str:
        """Sizes, for printing."""
        return f"{super().extra_repr()}, block_size={self.block_size}"
