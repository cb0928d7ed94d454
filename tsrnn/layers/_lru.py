"""Linear recurrent unit, a complex diagonal recurrence with a position-wise network."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from numbers import Real
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from tsrnn.kernels import (
    cells,
    check_engine,
    prepare_projected,
    projected_recurrence,
    without_padding,
)
from tsrnn.layers._checks import check_dropout, check_flag, check_sizes, check_tensor_kind
from tsrnn.layers._initialisation import draw_linear
from tsrnn.layers._recurrent import LayeredRecurrent, last_output

LOGARITHMS = ("nu_log", "theta_log", "gamma_log")  # one number per state
READOUT = ("C", "D")  # always trained


class LRU(LayeredRecurrent):
    r"""Stacked linear recurrences, each followed by a position-wise network.

    A layer carries N complex numbers x and computes

    .. math::

        x_k = \Lambda x_{k-1} + \gamma \odot B u_k, \qquad
        y_k = \hat\phi(\Re[C x_k] + D u_k),

    equation (2) of Orvieto et al. and the text after it. Here
    :math:`\Lambda = \operatorname{diag}(\exp(-e^{\nu} + i e^{\theta}))` has all eigenvalues inside
    the unit circle, and :math:`\hat\phi` is a multi-layer perceptron with ReLU. Layer l > 1 takes
    the y of layer l - 1 as its u.

    D, gamma and the parametrisation of :math:`\Lambda` follow the unit of Orvieto et al. (2023); D
    is a full matrix here, because inputs and outputs may differ in number. Like the paper, the
    module has no normalisation layers and no residual connections. With `constant_input` B follows
    equation (15), except that each state that takes u takes all of its columns.

    Parameters
    ----------
    input_size : int
        Number of inputs per step.
    hidden_size : int
        Number of outputs y per step.
    num_layers : int, default 1
    state_units : int, optional
        Number N of complex states; `hidden_size` by default.
    r_min, r_max : float, default 0 and 1
        Radii of the ring on which eigenvalues are drawn uniformly. After k steps a share
        :math:`|\lambda|^k` of an input remains.
    max_phase : float, default 2 pi
        Largest initial angle of the eigenvalues, in radians per step.
    mlp : bool, int or sequence of int, default True
        Widths of the inner layers of :math:`\hat\phi`. True for one of `hidden_size`; with False
        :math:`\hat\phi` is the identity, and the module is linear.
    trainable_recurrence : bool, default True
        With False :math:`\Lambda`, gamma and B are fixed buffers: the random linear network of the
        paper, in which C, D and :math:`\hat\phi` are trained.
    constant_input : bool, default False
        True to give the first state of the first layer the constant input 1 instead of u
        (Proposition 7). It then depends on the number of steps only, which
        :func:`tsrnn.interpret.elapsed_steps` reads from it.
    dropout : float, default 0
        Probability of dropping an output of a layer except the last, in training.
    engine : str, default "auto"
        Engine of `tsrnn.kernels.recurrence` that runs the layers.
    device, dtype
        As in torch.

    Attributes
    ----------
    nu_log_l{l}, theta_log_l{l}, gamma_log_l{l} : Parameter or buffer of shape (N,)
        nu and theta as above, and log gamma.
    B_l{l} : Parameter or buffer of shape (2 N, in)
        Real parts of the N rows of B, then imaginary parts; N - 1 rows in the first layer with
        `constant_input`.
    C_l{l} : Parameter of shape (hidden_size, 2 N)
        Real parts of the N columns of C, then negative imaginary parts, so that the product with
        (Re x, Im x) is Re[C x].
    D_l{l} : Parameter of shape (hidden_size, in)
    mlps : ModuleList
        :math:`\hat\phi` of every layer.
    state_size : int
        2 N + hidden_size, for the real parts of x, its imaginary parts, and y.

    Raises
    ------
    ValueError
        If a size or a width is not a positive integer, a radius, `max_phase` or `dropout` lies
        outside its range, or `constant_input` leaves no state to the inputs.

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
        constant_input: bool = False,
        dropout: float = 0.0,
        engine: str = "auto",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        units = hidden_size if state_units is None else state_units
        input_size, hidden_size, num_layers, units = check_sizes(
            input_size=input_size, hidden_size=hidden_size, num_layers=num_layers, state_units=units
        )
        self.ring = Ring(r_min, r_max, max_phase)
        self.ring.check()
        check_dropout(dropout)
        check_engine(engine, cells.lru(), "cell='lru'")
        check_tensor_kind(device, dtype)
        self.engine = engine
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.state_units = units
        self.state_size = 2 * units + hidden_size
        self.widths = _inner_widths(mlp, hidden_size)
        check_flag("trainable_recurrence", trainable_recurrence)
        self.trainable_recurrence = trainable_recurrence
        check_flag("constant_input", constant_input)
        self.constant_input = bool(constant_input)
        if self.constant_input and units < 2:
            raise ValueError(
                "state_units must be at least 2 with constant_input=True, one of them for the "
                f"constant; got {units}"
            )
        self.dropout = dropout
        for layer in range(num_layers):
            width = input_size if layer == 0 else hidden_size
            shapes: dict[str, tuple[int, ...]] = {
                **dict.fromkeys(LOGARITHMS, (units,)),
                "B": (2 * (units - self._constants(layer)), width),
                "C": (hidden_size, 2 * units),
                "D": (hidden_size, width),
            }
            for name, shape in shapes.items():
                tensor = torch.empty(shape, device=device, dtype=dtype)
                if name in READOUT or trainable_recurrence:
                    self.register_parameter(f"{name}_l{layer}", nn.Parameter(tensor))
                else:
                    self.register_buffer(f"{name}_l{layer}", tensor)
        self.mlps = nn.ModuleList(
            _perceptron(hidden_size, self.widths, device, dtype) for _ in range(num_layers)
        )
        self.initialise()

    @torch.no_grad()
    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        r"""Draw the parameters anew, including fixed recurrences.

        Eigenvalues are uniform on the ring (Lemma 6), and gamma is
        :math:`\sqrt{1 - |\lambda|^2}`. Entries of B are complex normal with variance 1 / in, so
        that states have the variance of white inputs. Entries of C have variance 2 / N, entries of
        D 1 / in. The perceptrons are drawn as in :class:`torch.nn.Linear`.
        """
        for layer in range(self.num_layers):
            tensors = self._tensors(layer)
            logarithms = self.ring.draw(self.state_units, tensors.B.device, generator)
            for name, value in zip(LOGARITHMS, logarithms, strict=True):
                getattr(tensors, name).copy_(value)
            inputs = tensors.B.shape[1]
            for weight, variance in (
                (tensors.B, 0.5 / inputs),  # real and imaginary parts share 1 / in
                (tensors.C, 1 / self.state_units),
                (tensors.D, 1 / inputs),
            ):
                weight.normal_(0.0, math.sqrt(variance), generator=generator)
            for part in self.mlps[layer].modules():
                if isinstance(part, nn.Linear):
                    draw_linear(part, generator)

    def run_layer(
        self, layer: int, x: Tensor, initial: Tensor, lengths: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Outputs (B, T, hidden) and last state of a layer, given x (B, T, in), initial (B, n)."""
        x, tensors = without_padding(x, lengths), self._tensors(layer)
        start = initial[:, : 2 * self.state_units].unflatten(-1, (2, -1))
        states, end = projected_recurrence(
            cells.lru(), x, tensors.input_weights().flatten(0, 1), tensors.constant(),
            tensors.diagonal(), start, lengths, self.engine,
        )  # fmt: skip
        readout = nn.functional.linear(states.flatten(-2), tensors.C)
        readout = readout + nn.functional.linear(x, tensors.D)
        output = without_padding(self.mlps[layer](readout), lengths)
        last = last_output(output, self.outputs(initial), lengths)
        return output, torch.cat([end.flatten(-2), last], -1)

    def outputs(self, states: Tensor) -> Tensor:
        """Output y (..., hidden_size) of states (..., state_size)."""
        return states[..., 2 * self.state_units :]

    def prepare(self, *, verbose: bool = False) -> None:
        """Compile the kernels ahead of their use; with `verbose` report it."""
        for layer in range(self.num_layers):
            weight = self._tensors(layer).B
            if weight.device.type != "cpu":
                return  # kernels of other devices are compiled where they are first used
            prepare_projected(
                cells.lru(), weight.shape[1], bool(self._constants(layer)), weight.dtype,
                self.engine, verbose=verbose,
            )  # fmt: skip

    def recurrent_parameters(self) -> list[nn.Parameter]:
        """Logarithms of nu, theta and gamma of every layer, if they are trained."""
        if not self.trainable_recurrence:
            return []
        layers = range(self.num_layers)
        return [self.get_parameter(f"{name}_l{layer}") for layer in layers for name in LOGARITHMS]

    def eigenvalues(self) -> list[Tensor]:
        """Diagonal of Lambda of every layer, complex tensors (N,) without gradient."""
        layers = range(self.num_layers)
        return [torch.complex(*self._tensors(layer).diagonal().detach()) for layer in layers]

    def recurrent_blocks(self) -> list[Tensor]:
        """Real blocks (N, 2, 2) of every layer, multiplication by the eigenvalues."""
        parts = [(value.real, value.imag) for value in self.eigenvalues()]
        return [torch.stack([a, -b, b, a], -1).unflatten(-1, (2, 2)) for a, b in parts]

    def input_weights(self, layer: int = 0) -> Tensor:
        """Weights gamma B of the inputs, complex (N, in) without gradient, 0 for the constant."""
        return torch.complex(*self._tensors(layer).input_weights().detach())

    def extra_repr(self) -> str:
        """Sizes, for printing."""
        return (
            f"{self.input_size}, {self.hidden_size}, state_units={self.state_units}, "
            f"num_layers={self.num_layers}"
        )

    def _constants(self, layer: int) -> int:
        """Number of states of a layer with a constant input, 0 or 1."""
        return int(self.constant_input and layer == 0)

    def _tensors(self, layer: int) -> LayerTensors:
        return LayerTensors(*(getattr(self, f"{name}_l{layer}") for name in LayerTensors._fields))


class LayerTensors(NamedTuple):
    """Parameters of a layer of N states; real parts of complex numbers precede imaginary parts."""

    nu_log: Tensor  # (N,)
    theta_log: Tensor  # (N,)
    gamma_log: Tensor  # (N,)
    B: Tensor  # (2 N, in); (2 (N - 1), in) with a constant input
    C: Tensor  # (hidden, 2 N), imaginary parts negated
    D: Tensor  # (hidden, in)

    def diagonal(self) -> Tensor:
        """Real and imaginary parts (2, N) of exp(-exp(nu) + i exp(theta))."""
        angle = self.theta_log.exp()
        return torch.stack([angle.cos(), angle.sin()]) * torch.exp(-self.nu_log.exp())

    def input_weights(self) -> Tensor:
        """Real and imaginary parts (2, N, in) of gamma B, zero for the constant."""
        B = self.B.unflatten(0, (2, -1))
        B = nn.functional.pad(B, (0, 0, len(self.gamma_log) - B.shape[1], 0))
        return B * self.gamma_log.exp()[:, None]

    def constant(self) -> Tensor | None:
        """Constant input (2 N,) of real and imaginary parts, if there is one."""
        units = len(self.gamma_log)
        if len(self.B) == 2 * units:
            return None
        return nn.functional.pad(self.gamma_log[:1].exp(), (0, 2 * units - 1))


class Ring(NamedTuple):
    """Ring, or a sector of it, in the complex plane, from which eigenvalues are drawn."""

    r_min: float
    r_max: float
    max_phase: float

    def check(self) -> None:
        """Raise unless the ring lies in the unit disk."""
        for name, value in self._asdict().items():
            if not isinstance(value, Real):
                raise TypeError(f"{name} must be a real number; got {value!r}")
        if not (0 <= self.r_min <= self.r_max <= 1 and self.r_min < 1 and self.r_max > 0):
            raise ValueError(
                "r_min and r_max must satisfy 0 <= r_min <= r_max <= 1, not both 0 and not both 1; "
                f"got r_min={self.r_min}, r_max={self.r_max}"
            )
        if not 0 < self.max_phase <= 2 * math.pi:
            raise ValueError(f"max_phase must lie in (0, 2 pi]; got {self.max_phase}")

    def draw(
        self, count: int, device: torch.device, generator: torch.Generator | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Logarithms of nu, theta and gamma in float64, for eigenvalues uniform on the ring.

        An eigenvalue is exp(-nu + i theta), and gamma is sqrt(1 - |lambda|^2).
        """
        # In float32 a modulus near 1 often rounds to 1, which gives log(0).
        eps = torch.finfo(torch.float64).eps
        uniform = torch.empty(2, count, dtype=torch.float64, device=device)
        area, turn = uniform.uniform_(eps, 1 - eps, generator=generator)
        nu = -0.5 * torch.log(area * (self.r_max**2 - self.r_min**2) + self.r_min**2)
        gamma_log = 0.5 * torch.log(-torch.expm1(-2 * nu))
        return nu.log(), (self.max_phase * turn).log(), gamma_log


def _inner_widths(mlp: bool | int | Sequence[int], hidden_size: int) -> tuple[int, ...]:
    """Widths of the inner layers, from the argument `mlp`."""
    if isinstance(mlp, bool):
        return (hidden_size,) if mlp else ()
    sizes = tuple(mlp) if isinstance(mlp, Sequence) and not isinstance(mlp, str) else (mlp,)
    if not all(isinstance(size, int | np.integer) and size > 0 for size in sizes):
        raise ValueError(
            f"mlp must be True, False, a width or a list of widths, positive integers; got {mlp!r}"
        )
    return tuple(int(size) for size in sizes)


def _perceptron(
    size: int, widths: Sequence[int], device: torch.device | str | None, dtype: torch.dtype | None
) -> nn.Module:
    """Perceptron with ReLU from `size` to `size`; the identity without widths."""
    if not widths:
        return nn.Identity()
    parts: list[nn.Module] = []
    for narrow, wide in itertools.pairwise((size, *widths, size)):
        parts += [nn.Linear(narrow, wide, device=device, dtype=dtype), nn.ReLU()]
    return nn.Sequential(*parts[:-1])
