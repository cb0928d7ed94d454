"""Initialisation of the parameters of a layer, each scheme drawing from a generator given."""

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from numbers import Real
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from tsrnn.kernels import Cell
from tsrnn.layers._stack import gate, matrices_of


@contextmanager
def shapes_only() -> Iterator[None]:
    """Build modules whose parameters have shapes and no values, without a draw.

    On torch's meta device a draw does nothing, slowly: the first one loads torch's compiler.

    Yields
    ------
    None

    Examples
    --------
    >>> from tsrnn.layers import ParaRNN, shapes_only
    >>> with shapes_only():
    ...     layer = ParaRNN(3, 16)
    >>> layer.weight_ih_l0.shape, layer.weight_ih_l0.device.type
    (torch.Size([16, 3]), 'meta')
    """
    with torch.device("meta"), _WithoutDraws():
        yield


class _WithoutDraws(TorchFunctionMode):
    """Leave the weights of torch's own layers as they are."""

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        given = kwargs or {}
        if func in (nn.init.kaiming_uniform_, nn.init.uniform_):
            return args[0] if args else given["tensor"]
        return func(*args, **given)


def draw_uniform(
    parameters: Iterable[Tensor], bound: float, generator: torch.Generator | None
) -> None:
    """Draw uniform numbers on (-bound, bound)."""
    for parameter in parameters:
        parameter.uniform_(-bound, bound, generator=generator)


def draw_linear(linear: nn.Linear, generator: torch.Generator | None) -> None:
    """Draw a linear map as :class:`torch.nn.Linear` does: uniform on +-1 / sqrt(in)."""
    draw_uniform(linear.parameters(), linear.in_features**-0.5, generator)


def draw_stable(
    cell: Cell,
    weight_ih: Tensor,
    params: Tensor,
    bias: Tensor | None,
    generator: torch.Generator | None,
    start: str = "stable",
) -> None:
    """Draw recurrent matrices that expand nothing, other parameters small, forget gates open.

    `start` is one of `MATRICES`.
    """
    draw_uniform([weight_ih], 1 / math.sqrt(weight_ih.shape[1]), generator)
    matrices = matrices_of(cell, params)
    for matrix in matrices.values():
        matrix.copy_(MATRICES[start](matrix, generator))
    others = params[sum(matrix[0].numel() for matrix in matrices.values()) :]
    draw_uniform([others], 1 / math.sqrt(max(cell.p, 1)), generator)
    if bias is not None:
        bias.zero_()
        forget = gate(cell, "u_f")
        if forget is not None:
            bias.view(cell.m, -1)[forget] = 1.0  # a gate of 0.73: the past is kept at the start


def _contractions(like: Tensor, generator: torch.Generator | None) -> Tensor:
    """Blocks r Q of shape (K, d_s, d_s): Q orthogonal (Haar), r^2 uniform on [0, 1]."""
    q = _orthogonal(like, generator)
    radius = like.new_empty(len(like)).uniform_(generator=generator).sqrt()
    return radius[:, None, None] * q


def _orthogonal(like: Tensor, generator: torch.Generator | None) -> Tensor:
    """Orthogonal blocks (K, d_s, d_s), uniform over all of them (Haar)."""
    q, r = torch.linalg.qr(like.new_empty(like.shape).normal_(generator=generator))
    return q * torch.diagonal(r, dim1=1, dim2=2).sign()[:, None, :]  # without it Q is not uniform


def _identity(like: Tensor, _: torch.Generator | None) -> Tensor:
    """Identity matrices (K, d_s, d_s)."""
    return torch.eye(like.shape[1], dtype=like.dtype, device=like.device).expand_as(like)


# Starts of recurrent matrices of which no singular value is above 1.
MATRICES: dict[str, Callable[[Tensor, torch.Generator | None], Tensor]] = {
    "stable": _contractions,
    "orthogonal": _orthogonal,
    "identity": _identity,
}


def draw_chrono(cell: Cell, bias: Tensor, length: float, generator: torch.Generator | None) -> None:
    """Draw biases of gates by which units remember from one step to `length`; others are zero."""
    bias.zero_()
    fields = bias.view(cell.m, -1)
    forget, new = gate(cell, "u_f"), gate(cell, "u_i")
    # z of a GRU lets the new in; without a reset gate beside it u_z enters a state of that name.
    update = gate(cell, "u_z") if gate(cell, "u_r") is not None else None
    for drawn, sign in ((forget, 1.0), (update, -1.0)):
        if drawn is not None:
            lengths = torch.empty_like(fields[drawn])
            lengths.uniform_(1.0, length - 1.0, generator=generator)
            fields[drawn] = sign * lengths.log()
    if forget is not None and new is not None:
        fields[new] = -fields[forget]


def check_chrono(init: str, length: float | None, bias: bool, dt: float | None = None) -> None:
    """Raise unless the length comes with the initialisation that needs it, and it alone.

    With a time step `dt` the shortest length is 2 / dt, otherwise 2: the logarithm of the
    distribution's upper end must be positive.
    """
    if init != "chrono":
        if length is not None:
            raise ValueError(
                f"chrono_length is an argument of init='chrono'; got {length!r} with init={init!r}"
            )
        return
    if not bias:
        raise ValueError("init='chrono' draws biases; got bias=False")
    if not isinstance(length, Real) or not 2 < float(length) * (dt or 1) < math.inf:
        least = "2" if dt is None else f"2 / dt = {2 / dt:g}"
        raise ValueError(
            "init='chrono' needs chrono_length, the longest dependency expected in steps, above "
            f"{least}; got {length!r}"
        )


def draw_newton(
    weight: Tensor,
    params: Tensor,
    bias: Tensor | None,
    width: int,
    generator: torch.Generator | None,
) -> None:
    """Draw a projection of `width` inputs Kaiming uniform, parameters (p, K) Xavier Gaussian."""
    draw_uniform([weight], math.sqrt(3 / width), generator)
    params.normal_(0, params.shape[1] ** -0.5, generator=generator)
    if bias is not None:
        bias.zero_()
