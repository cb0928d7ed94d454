"""Other people's kernels of the recurrences that this package has, in the same run.

None is part of this project: a row whose package is not on the path says so. They are

- accelerated-scan (MIT): x_t = a_t x_{t-1} + b_t, on (B, C, T);
- fla-core (MIT): the same with a_t = exp(g_t), HGRN's, in time order and in chunks;
- flashrnn (Apache 2.0): Elman networks and GRU with full matrices, a call with its changes of
  layout; products of float32 are in TF32 there, ours are not; the GRU has no fused kernel;
- pararnn, the code of Danieli et al. (2025): Newton's method for GRU with diagonal matrices, three
  iterations in one kernel, compiled when it is installed. Their kernel backward gives gradients of
  the states alone, from which torch makes those of inputs and parameters: these are not in its
  times, and are in ours.

A row checks first that both sides compute the same states.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from tsrnn.kernels import Cell, cells, recurrence

LONG = [(64, 512, 1024), (8, 16384, 128), (1, 131072, 64)]
FULL = [(64, 512, 64), (64, 512, 128), (512, 512, 64)]  # (B, T, d): one block of d units
NEWTON = [(8, 512, 1024), (8, 2048, 1024), (8, 8192, 1024)]  # those of figure 5 of Danieli et al.
HEADER = ["peer, (B, T, width)", "ours us", "theirs us", "theirs / ours", "and backward: ours",
          "theirs", "theirs / ours", "largest difference"]  # fmt: skip
# x_t = a_t x_{t-1} + b_t
SCAN = Cell("scan", 1, 2, 0, lambda state, inputs, params: (inputs[0] * state[0] + inputs[1],))
Row = tuple[str, Callable[[], list[str]]]
Runs = tuple[Callable[[], Tensor], Callable[[], Tensor], list[Tensor], list[Tensor]]


def rows(bench: Any) -> Iterator[Row]:
    """Name of every row, and what measures it."""
    for peer, shapes in (
        (accelerated_scan, LONG), (fla_in_time_order, LONG), (fla_in_chunks, LONG),
        (flash_elman, FULL), (flash_gru, FULL), (pararnn_gru, NEWTON),
    ):  # fmt: skip
        for shape in shapes:
            name = f"{peer.__name__.replace('_', ' ')}, {shape}"
            yield name, lambda p=peer, s=shape: compared(bench, p(bench.device, *bench.shape(*s)))


def compared(bench: Any, runs: Runs) -> list[str]:
    """Times of both sides, forward and with backward, and their difference."""
    ours, theirs, our_leaves, their_leaves = runs
    mine, other = ours(), theirs()
    difference = float((mine.detach().float() - other.detach().float()).abs().max())
    size = float(mine.detach().float().abs().max())
    if not difference <= 1e-2 * size:  # of products in TF32
        raise ValueError(f"states differ by {difference:.1e} of {size:.1e}")
    g_mine, g_other = torch.randn_like(mine), torch.randn_like(other)
    times = []
    for forward, leaves, gradient in ((ours, our_leaves, g_mine), (theirs, their_leaves, g_other)):

        def both(forward: Any = forward, leaves: Any = leaves, gradient: Any = gradient) -> object:
            return torch.autograd.grad(forward(), leaves, gradient)

        times.append((1e3 * bench.queue_ms(forward), 1e3 * bench.queue_ms(both)))
    (a, a_both), (b, b_both) = times
    return [f"{a:.0f}", f"{b:.0f}", f"{b / a:.1f}", f"{a_both:.0f}", f"{b_both:.0f}",
            f"{b_both / a_both:.1f}", f"{difference:.0e}"]  # fmt: skip


def _leaf(x: Tensor) -> Tensor:
    return x.detach().contiguous().requires_grad_()


def _linear(device: str, batch: int, steps: int, width: int) -> tuple[Any, Tensor, Tensor, Tensor]:
    """Our run of x_t = a_t x_{t-1} + b_t, its inputs, and log a and b of shape (B, T, K)."""
    decay = torch.rand(batch, steps, width, device=device).sigmoid().log()
    b = torch.randn(batch, steps, width, device=device)
    inputs = _leaf(torch.stack([decay.exp(), b], 2))
    empty = inputs.new_empty(0, width)
    return (
        lambda: recurrence(SCAN, inputs, empty)[0],
        inputs, decay, b,
    )  # fmt: skip


def accelerated_scan(device: str, *shape: int) -> Runs:
    """Scans along the last axis."""
    scan = importlib.import_module("accelerated_scan.scalar").scan
    ours, inputs, decay, b = _linear(device, *shape)
    gates, tokens = (_leaf(x.transpose(1, 2)) for x in (decay.exp(), b))
    return (
        ours,
        lambda: scan(gates, tokens).transpose(1, 2)[:, :, None],
        [inputs],
        [gates, tokens],
    )


def fla_in_time_order(device: str, *shape: int) -> Runs:
    """HGRN's kernel in time order."""
    return _fla("fused_recurrent_hgrn", device, shape)


def fla_in_chunks(device: str, *shape: int) -> Runs:
    """HGRN's kernels in chunks of time."""
    return _fla("chunk_hgrn", device, shape)


def _fla(name: str, device: str, shape: tuple[int, ...]) -> Runs:
    run = getattr(importlib.import_module("fla.ops.hgrn"), name)
    ours, inputs, decay, b = _linear(device, *shape)
    g, x = _leaf(decay), _leaf(b)
    return ours, lambda: run(x, g)[0][:, :, None], [inputs], [g, x]


def flash_elman(device: str, *shape: int) -> Runs:
    """Elman network."""
    batch, steps, d = shape
    run = importlib.import_module("flashrnn").flashrnn
    cell = cells.para_rnn(d)
    u = _leaf(torch.randn(batch, steps, d, 1, device=device))
    w = _leaf(torch.randn(d * d, 1, device=device) / (2 * d**0.5))
    wx = _leaf(u.view(batch, steps, 1, 1, d))
    r = _leaf(w.view(1, 1, d, d))
    bias = _leaf(u.new_zeros(1, 1, d))
    return (
        lambda: recurrence(cell, u, w)[0],
        lambda: run(wx, r, bias, function="elman", **_flash(device))[0][0].transpose(2, 3),
        [u, w],
        [wx, r, bias],
    )


def flash_gru(device: str, *shape: int) -> Runs:
    """GRU whose reset gate comes after the product, as in torch."""
    batch, steps, d = shape
    run = importlib.import_module("flashrnn").flashrnn
    cell = cells.para_gru(d, reset_after=True)
    u = _leaf(torch.randn(batch, steps, 3 * d, 1, device=device))  # z, r, c
    w = _leaf(torch.randn(3 * d * d, 1, device=device) / (2 * d**0.5))
    z, r, c = u.view(batch, steps, 3, 1, d).unbind(2)
    of_z, of_r, of_c = w.view(3, 1, d, d).unbind(0)
    # Their update gate keeps the state; inputs are in the order r, z, c, matrices c, r, z.
    wx = _leaf(torch.stack([r, -z, c], 2))
    matrices = _leaf(torch.stack([of_c, of_r, -of_z]))
    bias = _leaf(u.new_zeros(4, 1, d))
    return (
        lambda: recurrence(cell, u, w)[0],
        lambda: run(wx, matrices, bias, function="gru", **_flash(device, "cuda"))[0][0].transpose(
            2, 3
        ),
        [u, w],
        [wx, matrices, bias],
    )


def _flash(device: str, backend: str = "cuda_fused") -> dict[str, str]:
    """Options of flashrnn: its own loop in torch where there is no device."""
    return {"backend": "vanilla" if device == "cpu" else backend, "dtype": "float32"}


def pararnn_gru(device: str, *shape: int) -> Runs:
    """GRU with diagonal matrices, (z, r, h): their kernels on projected inputs."""
    batch, steps, units = shape
    importlib.import_module("pararnn.rnn_cell.gru_diag_mh")  # loads the operators
    operators: Any = torch.ops.parallel_reduce_cuda
    cell = cells.newton_gru()
    u = _leaf(torch.randn(batch, steps, 3, units, device=device))
    w = _leaf(0.3 * torch.randn(3, units, device=device))
    a, projected = _leaf(w.T), _leaf(u.permute(0, 3, 1, 2))

    class Fused(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Tensor, x: Tensor) -> Tensor:
            states = operators.fused_fwd_gru_diag_mh(a, x)
            ctx.save_for_backward(a, x, states)
            return states

        @staticmethod
        def backward(ctx: Any, gradient: Tensor) -> Any:
            a, x, states = ctx.saved_tensors
            g = operators.fused_bwd_gru_diag_mh(gradient.contiguous(), states, a, x)
            # Their gradients of states alone: those of inputs are products in torch after it.
            return a, g[..., None].expand_as(x)

    return (
        lambda: recurrence(cell, u, w)[0],
        lambda: Fused.apply(a, projected).transpose(1, 2)[:, :, None],
        [u, w],
        [a, projected],
    )
