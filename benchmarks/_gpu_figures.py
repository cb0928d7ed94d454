"""Timings of Danieli et al. (2025), figures 2 (right), 5, 6 and 9: engines by length and width.

Their ParaGRU and ParaLSTM, on sequences of growing length (8, L, 1024) and of growing width
(8, 2048, d): forward, and forward and backward of the sum of squares of the states, in time order,
in chunks of time, by Newton's method on every step in torch (three iterations at most, as theirs),
and by a loop in torch, which is not run beyond 2,048 steps; with the most memory that was taken
beside the inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from _recurrences import draw

from tsrnn.kernels import Cell, _newton, cells, recurrence

BATCH, WIDTH, STEPS = 8, 1024, 2048
LENGTHS = [2**k for k in (7, 9, 11, 13, 15)]
WIDTHS = [256, 4096]
ENGINES = ("sequential", "shooting", "newton", "reference")
ITERATIONS = 3  # of Newton's method on every step
HEADER = ["cell, (B, L, d), engine", "forward us", "and backward us", "peak MB", "and backward"]
Row = tuple[str, Callable[[], list[str]]]


def rows(bench: Any) -> Iterator[Row]:
    """Name of every row, and what measures it."""
    shapes = [(BATCH, steps, WIDTH) for steps in LENGTHS]
    shapes += [(BATCH, STEPS, width) for width in WIDTHS]
    for cell in (cells.newton_gru(), cells.newton_lstm()):
        for shape in shapes:
            for engine in ENGINES:
                if engine != "reference" or shape[1] <= STEPS:
                    yield (
                        f"{cell.name}, {shape}, {engine}",
                        lambda c=cell, s=shape, e=engine: _row(bench, c, s, e),
                    )


def _row(bench: Any, cell: Cell, shape: tuple[int, int, int], engine: str) -> list[str]:
    inputs, params, _ = draw(cell, *bench.shape(*shape), bench.device)
    leaves = [inputs.requires_grad_(), params.requires_grad_()]
    usual, _newton.most_passes = _newton.most_passes, lambda cell: ITERATIONS

    def forward() -> torch.Tensor:
        return recurrence(cell, *leaves, engine=engine)[0]

    def both() -> object:
        return torch.autograd.grad(forward().square().sum(), leaves)

    try:
        repeats = 2 if engine == "reference" else 10
        times = [1e3 * bench.queue_ms(work, repeats) for work in (forward, both)]
        peaks = [bench.peak_mb(work) for work in (forward, both)]
    finally:
        _newton.most_passes = usual
    return [*(f"{t:.0f}" for t in times), *(f"{p:.0f}" for p in peaks)]
