"""Initialisation schemes of layers."""

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
    """Build modules on the meta device, with shapes but no values, without draws.

    A draw on the meta device has no effect, but the first one loads torch's compiler.
    """
    with torch.device("meta"), _WithoutDraws():
        yield


class _WithoutDraws(TorchFunctionMode):
    """Skip the initialisation of torch's own layers."""

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
    """Draw parameters uniformly on (-bound, bound)."""
    for parameter in parameters:
        parameter.uniform_(-bound, bound, generator=generator)


def draw_linear(linear: nn.Linear, generator: torch.Generator | None) -> None:
    """Draw a linear map uniformly on +-1 / sqrt(in), like :class:`torch.nn.Linear`."""
    draw_uniform(linear.parameters(), linear.in_features**-0.5, generator)


def draw_stable(
    cell: Cell,
    weight_ih: Tensor,
    params: Tensor,
    bias: Tensor | None,
    generator: torch.Generator | None,
    start: str = "stable",
) -> None:
    """Draw recurrent matrices with singular values up to 1, by a scheme `start` of `MATRICES`.

    Other parameters are small, and forget gates are open.
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
            bias.view(cell.m, -1)[forget] = 1.0  # a gate of 0.73, which keeps the past at the start


def _contractions(like: Tensor, generator: torch.Generator | None) -> Tensor:
    """Blocks r Q of shape (K, d_s, d_s), Q orthogonal (Haar), r^2 uniform on [0, 1]."""
    q = _orthogonal(like, generator)
    radius = like.new_empty(len(like)).uniform_(generator=generator).sqrt()
    return radius[:, None, None] * q


def _orthogonal(like: Tensor, generator: torch.Generator | None) -> Tensor:
    """Orthogonal blocks (K, d_s, d_s) from the Haar distribution."""
    q, r = torch.linalg.qr(like.new_empty(like.shape).normal_(generator=generator))
    return q * torch.diagonal(r, dim1=1, dim2=2).sign()[:, None, :]  # Q alone is not Haar


def _identity(like: Tensor, _: torch.Generator | None) -> Tensor:
    """Identity matrices (K, d_s, d_s)."""
    return torch.eye(like.shape[1], dtype=like.dtype, device=like.device).expand_as(like)


# Initial recurrent matrices, with singular values up to 1.
MATRICES: dict[str, Callable[[Tensor, torch.Generator | None], Tensor]] = {
    "stable": _contractions,
    "orthogonal": _orthogonal,
    "identity": _identity,
}


def draw_chrono(cell: Cell, bias: Tensor, length: float, generator: torch.Generator | None) -> None:
    """Draw gate biases for time scales from one step to `length`; other biases are zero."""
    bias.zero_()
    fields = bias.view(cell.m, -1)
    forget, new = gate(cell, "u_f"), gate(cell, "u_i")
    # z of a GRU is an update gate; in a cell without a reset gate u_z is no gate.
    update = gate(cell, "u_z") if gate(cell, "u_r") is not None else None
    for drawn, sign in ((forget, 1.0), (update, -1.0)):
        if drawn is not None:
            lengths = torch.empty_like(fields[drawn])
            lengths.uniform_(1.0, length - 1.0, generator=generator)
            fields[drawn] = sign * lengths.log()
    if forget is not None and new is not None:
        fields[new] = -fields[forget]


def check_chrono(init: str, length: float | None, bias: bool, dt: float | None = None) -> None:
    """Raise unless a legal length is given with init='chrono', and only then.

    The length must exceed 2, or 2 / dt with a time step: its log-uniform distribution starts at 1.
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
    """Draw a projection of `width` inputs Kaiming uniform, parameters (p, K) Xavier normal."""
    draw_uniform([weight], math.sqrt(3 / width), generator)
    params.normal_(0, params.shape[1] ** -0.5, generator=generator)
    if bias is not None:
        bias.zero_()
