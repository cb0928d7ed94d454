"""Matrix product of a few rows by repacked weights: accumulators stay in registers.

Weights are panels of PANEL vectors of output units side by side: (panels, parts, depth, units
of a panel). A product sums over parts, the matrices of a transposed product, and over depth.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from tsrnn.kernels._cpu.compiler import processor
from tsrnn.kernels._cpu.vector_ir import Format
from tsrnn.kernels._dense.code import TILE_BYTES, Function
from tsrnn.kernels._dense.trace import Product

PANEL = 2  # vectors of weights side by side in memory


class Registers(NamedTuple):
    """Vector registers of a processor: their bytes, and how many rows a product takes."""

    bytes: int
    rows: tuple[int, ...]  # PANEL times the first is three quarters of the registers


def registers() -> Registers:
    """Those of the processor that is compiled for."""
    width = processor().register_bytes
    return Registers(width, (12, 8, 4, 2, 1) if width == 64 else (6, 4, 2, 1))


def panel_width(fmt: Format) -> int:
    """Units of output that a panel of weights has."""
    return PANEL * registers().bytes // fmt.bytes


def packed_weights(matrices: Tensor, products: Sequence[Product], fmt: Format) -> Tensor:
    """Weights of some products one after the other, (K, ...), of matrices (count, K, d, d)."""
    none = matrices.new_empty(matrices.shape[1], 0)
    return torch.cat([none, *(_panels(matrices, p, fmt).flatten(1) for p in products)], 1)


def _panels(matrices: Tensor, product: Product, fmt: Format) -> Tensor:
    chosen = matrices[list(product.matrices)].transpose(0, 1)  # (K, matrices, to, from)
    tile, panel = TILE_BYTES // fmt.bytes, panel_width(fmt)
    if product.transposed:
        columns = _padded(chosen.permute(0, 3, 1, 2), tile)  # (K, from, matrices, to)
    else:
        columns = _padded(chosen.transpose(1, 2), tile)  # (K, to, matrices, from)
        columns = columns.transpose(1, 2).flatten(1, 2)[:, :, None]
    return _padded(columns, panel).unflatten(1, (-1, panel)).permute(0, 1, 3, 4, 2)


def _padded(x: Tensor, multiple: int) -> Tensor:
    """Zeros after the second axis up to a multiple."""
    return pad(x, (0, 0, 0, 0, 0, -x.shape[1] % multiple))


def product_function(fmt: Format) -> Function:
    """Function ``product``: out[r] = sum over parts and depth of x[r, part, j] w[panel, part, j].

    Rows of x and out are `stride` apart, parts of x `width`.
    """
    f = Function("product", fmt, registers().bytes // fmt.bytes, ("x", "out", "w"), (
        "stride", "rows", "parts", "width", "depth", "panels"
    ), "internal")  # fmt: skip
    row = f.variable()
    f.set(row, 0)
    per_row = f.integer("mul", "%parts", "%depth")
    f.do(f"%panel.size = mul i64 {per_row}, {PANEL * f.lanes}")
    for rows in registers().rows:
        with f.up_to("%rows", rows, row) as r:
            first = f.integer("mul", r, "%stride")
            panel = f.variable()
            f.set(panel, 0)
            for panels in _widths(rows):
                with f.up_to("%panels", panels, panel) as p:
                    _tile(f, rows, panels, first, p)
    return f


def _widths(rows: int) -> list[int]:
    """Numbers of panels that a tile may have."""
    accumulators = PANEL * registers().rows[0]
    return [panels for panels in (4, 2, 1) if rows * PANEL * panels <= accumulators]


def _tile(f: Function, rows: int, panels: int, first: str, panel: str) -> None:
    columns = range(PANEL * panels)
    sums = [[f.variable(f.type) for _ in columns] for _ in range(rows)]
    for variable in (v for line in sums for v in line):
        f.set(variable, "zeroinitializer", f.type)
    weights = f.at("%w", f.integer("mul", panel, "%panel.size"))
    starts = [f.sum(first, f.integer("mul", "%stride", i)) for i in range(rows)]
    with f.up_to("%parts") as part:
        at = [f.at("%x", start, f.integer("mul", part, "%width")) for start in starts]
        skipped = f.integer("mul", f.integer("mul", part, "%depth"), PANEL * f.lanes)
        inner = f.at(weights, skipped)
        with f.up_to("%depth") as j:
            _multiply_add(f, sums, at, inner, j)
    for line, start in zip(sums, starts, strict=True):
        for c in columns:
            column = f.integer("add", f.integer("mul", panel, PANEL * f.lanes), c * f.lanes)
            f.store(f.get(line[c], f.type), f.at("%out", start, column))


def _multiply_add(
    f: Function, sums: list[list[str]], rows: list[str], weights: str, j: str
) -> None:
    line = f.integer("mul", j, PANEL * f.lanes)
    loaded = []
    for c in range(len(sums[0])):
        panel = f.integer("mul", "%panel.size", c // PANEL)
        loaded.append(f.load(f.at(weights, panel, line, c % PANEL * f.lanes)))
    for variables, row in zip(sums, rows, strict=True):
        x = f.broadcast(f.at(row, j))
        for variable, w in zip(variables, loaded, strict=True):
            f.set(variable, f.binary("add", f.get(variable, f.type), f.binary("mul", x, w)), f.type)
