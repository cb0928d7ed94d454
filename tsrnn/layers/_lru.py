"""The linear recurrent unit: a complex diagonal recurrence and a network at every step."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from tsrnn.kernels import cells, prepare_projected, without_padding
from tsrnn.layers._checks import check_dropout, check_flag, check_sizes, check_tensor_kind
from tsrnn.layers._lru_init import Ring, draw_normal, draw_ring
from tsrnn.layers._lru_layer import (
    LOGARITHMS,
    LayerTensors,
    last_output,
    real_blocks,
    tensor_shapes,
)
from tsrnn.layers._lru_mlp import draw_mlp, inner_widths, perceptron
from tsrnn.layers._recurrent import Recurrent

READOUT = ("C", "D")  # trained in any case


class LRU(Recurrent):
    r"""Stacked linear recurrences, each followed by a position-wise network.

    A layer carries N complex numbers x and computes

    .. math::

        x_k = \Lambda x_{k-1} + \gamma \odot B u_k, \qquad
        y_k = \hat\phi(\Re[C x_k] + D u_k),

    equation (2) of Orvieto et al. and the text after it, with
    :math:`\Lambda = \operatorname{diag}(\exp(-e^{\nu} + i e^{\theta}))`, which keeps every
    eigenvalue inside the unit circle. :math:`\hat\phi` is a multi-layer perceptron with ReLU, the
    same at every step. Layer l > 1 takes the y of layer l - 1 as its u.

    Parameters
    ----------
    input_size : int
        Number of inputs a step.
    hidden_size : int
        Number of outputs y a step.
    num_layers : int, default 1
    state_units : int, optional
        N, complex numbers in the state; `hidden_size` by default.
    r_min, r_max : float, default 0 and 1
        Radii of the ring on which eigenvalues are drawn uniformly. Close to 1 a state remembers
        for long: after k steps a share :math:`|\lambda|^k` of an input is left.
    max_phase : float, default 2 pi
        Eigenvalues are drawn with an angle from 0 to it, in radians a step.
    mlp : bool, int or sequence of int, default True
        Widths of the inner layers of :math:`\hat\phi`. True is one of `hidden_size`; with False
        :math:`\hat\phi` is the identity, and the whole module linear.
    trainable_recurrence : bool, default True
        With False :math:`\Lambda`, gamma and B stay as they were drawn and are buffers: the random
        linear network of the paper, of which C, D and :math:`\hat\phi` are trained.
    dropout : float, default 0
        Probability of dropping an output of a layer but the last, in training.
    device, dtype
        As in torch.

    Attributes
    ----------
    nu_log_l{l}, theta_log_l{l}, gamma_log_l{l} : Parameter or buffer of shape (N,)
        nu and theta as above, and log gamma.
    B_l{l} : Parameter or buffer of shape (2 N, in)
        Real parts of the N rows of B, then imaginary parts.
    C_l{l} : Parameter of shape (hidden_size, 2 N)
        Real parts of the N columns of C, then imaginary parts with the sign turned, so that it
        times (Re x, Im x) is Re[C x].
    D_l{l} : Parameter of shape (hidden_size, in)
    mlps : ModuleList
        :math:`\hat\phi` of every layer.
    state_size : int
        2 N + hidden_size: the real parts of x, its imaginary parts, and y.

    Raises
    ------
    ValueError
        If a size or a width is no positive integer, or a radius, `max_phase` or `dropout` lies
        outside its range.

    Notes
    -----
    D, gamma and the parametrisation of :math:`\Lambda` are those of the unit of Orvieto et al.
    (2023), which the paper builds on; D is a full matrix here, because inputs and outputs may
    differ in number. The paper leaves normalisation layers and residual connections aside, and
    so does this module. An input that is always 1 beside the others tells the state its own
    position in the sequence, Proposition 7.

    References
    ----------
    Orvieto, De, Gulcehre, Pascanu and Smith (2023), On the Universality of Linear Recurrences
    Followed by Nonlinear Projections, Section 2 and Lemma 6.
    Orvieto et al. (2023), Resurrecting Recurrent Neural Networks for Long Sequences, Section 3.

    Examples
    --------
    >>> import torch
    >>> from tsrnn.layers import LRU
    >>> layer = LRU(input_size=1, hidden_size=8, state_units=16, r_min=0.9)
    >>> output, h_n = layer(torch.randn(3, 100, 1))
    >>> output.shape, h_n.shape
    (torch.Size([3, 100, 8]), torch.Size([1, 3, 40]))
    >>> bool((layer.eigenvalues()[0].abs() > 0.9).all())
    True
    """

    matrix_names = ("Lambda",)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *,
        state_units: int | None = None,
        r_min: float = 0.0,
        r_max: float = 1.0,
        max_phase: float = 2 * math.pi,
        mlp: bool | int | Sequence[int] = True,
        trainable_recurrence: bool = True,
        dropout: float = 0.0,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        units = hidden_size if state_units is None else state_units
        check_sizes(
            input_size=input_size, hidden_size=hidden_size, num_layers=num_layers, state_units=units
        )
        self.ring = Ring(r_min, r_max, max_phase)
        self.ring.check()
        check_dropout(dropout)
        check_tensor_kind(device, dtype)
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.state_units = units
        self.state_size = 2 * units + hidden_size
        self.widths = inner_widths(mlp, hidden_size)
        check_flag("trainable_recurrence", trainable_recurrence)
        self.trainable_recurrence = trainable_recurrence
        self.dropout = dropout
        for layer in range(num_layers):
            self._register(layer, input_size if layer == 0 else hidden_size, device, dtype)
        self.mlps = nn.ModuleList(
            perceptron(hidden_size, self.widths, device, dtype) for _ in range(num_layers)
        )
        self.reset_parameters()

    def _register(
        self,
        layer: int,
        width: int,
        device: torch.device | str | None,
        dtype: torch.dtype | None,
    ) -> None:
        """Room for the parameters of a layer of `width` inputs, or buffers if not trained."""
        for name, shape in tensor_shapes(self.state_units, width, self.hidden_size).items():
            tensor = torch.empty(shape, device=device, dtype=dtype)
            if name in READOUT or self.trainable_recurrence:
                self.register_parameter(f"{name}_l{layer}", nn.Parameter(tensor))
            else:
                self.register_buffer(f"{name}_l{layer}", tensor)

    @torch.no_grad()
    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        r"""Draw the parameters anew, and the recurrences that are not trained.

        Eigenvalues are uniform on the ring (Lemma 6), gamma is
        :math:`\sqrt{1 - |\lambda|^2}`. Entries of B are complex normal with variance 1 / in, so
        that states have the variance of white inputs; those of C have variance 2 / N, D has
        1 / in; the perceptrons are drawn as :class:`torch.nn.Linear`.
        """
        for layer in range(self.num_layers):
            own = self._tensors(layer)
            drawn = draw_ring(self.ring, self.state_units, own.B.device, generator)
            for name, value in drawn._asdict().items():
                getattr(own, name).copy_(value)
            draw_normal(own.B, 0.5 / own.B.shape[1], generator)
            draw_normal(own.C, 1 / self.state_units, generator)
            draw_normal(own.D, 1 / own.D.shape[1], generator)
            draw_mlp(self.mlps[layer], generator)

    def run(self, x: Tensor, hx: Tensor, lengths: Tensor | None) -> tuple[Tensor, Tensor]:
        """See `Recurrent`."""
        final = []
        for layer in range(self.num_layers):
            if layer and self.dropout:
                x = nn.functional.dropout(x, self.dropout, self.training)
            x, last = self.run_layer(layer, x, hx[layer], lengths)
            final.append(last)
        return x, torch.stack(final)

    def run_layer(
        self, layer: int, x: Tensor, initial: Tensor, lengths: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """One layer: x (B, T, in) and initial (B, state) to outputs (B, T, hidden), last state."""
        x, own = without_padding(x, lengths), self._tensors(layer)
        states, end = own.recur(x, initial[:, : 2 * self.state_units], lengths)
        output = without_padding(self.mlps[layer](own.read(states, x)), lengths)
        last = last_output(output, self.outputs(initial), lengths)
        return output, torch.cat([end, last], -1)

    def outputs(self, states: Tensor) -> Tensor:
        """Output y (..., hidden_size) of states (..., state_size)."""
        return states[..., 2 * self.state_units :]

    def prepare(self, *, verbose: bool = False) -> None:
        """Have the compiled kernels ready; with `verbose` say so where they are compiled."""
        for layer in range(self.num_layers):
            weight = self._tensors(layer).B
            if weight.device.type != "cpu":
                return  # kernels of other devices are compiled where they are first used
            prepare_projected(cells.lru(), weight.shape[1], False, weight.dtype, verbose=verbose)

    def recurrent_parameters(self) -> list[nn.Parameter]:
        """Nu, theta and gamma of every layer, as logarithms; none where they are not trained."""
        if not self.trainable_recurrence:
            return []
        layers = range(self.num_layers)
        return [self.get_parameter(f"{name}_l{layer}") for layer in layers for name in LOGARITHMS]

    def eigenvalues(self) -> list[Tensor]:
        """Diagonal of Lambda of every layer: complex tensors of shape (N,), without gradient."""
        layers = range(self.num_layers)
        return [torch.complex(*self._tensors(layer).diagonal().detach()) for layer in layers]

    def recurrent_blocks(self) -> list[Tensor]:
        """Multiplication by every eigenvalue as a real block: (N, 2, 2) for every layer."""
        return [real_blocks(eigenvalue) for eigenvalue in self.eigenvalues()]

    def input_weights(self, layer: int = 0) -> Tensor:
        """What an input adds to the state, gamma B: complex of shape (N, in), without gradient."""
        return torch.complex(*self._tensors(layer).input_weights().detach())

    def extra_repr(self) -> str:
        """Sizes, for printing."""
        return (
            f"{self.input_size}, {self.hidden_size}, state_units={self.state_units}, "
            f"num_layers={self.num_layers}"
        )

    def _tensors(self, layer: int) -> LayerTensors:
        return LayerTensors(*(getattr(self, f"{name}_l{layer}") for name in LayerTensors._fields))
