"""A recurrence with full matrices as LLVM functions: forward, backward, and their matrix product.

Arrays are (sequences, T, vector, d), units contiguous. A function runs n sequences side by
side, longest first, so that those alive at a step are the first. Each keeps its state in a row
of working memory (see `Program`). A step alternates elementwise phases, over units in tiles of a
vector's lanes, and products of a few rows by repacked weights, with accumulators in registers.

Weights are panels of PANEL adjacent vectors of output units: (panels, parts, depth, units of a
panel). A product sums over parts, the matrices of a transposed product, and over depth.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from tsrnn.kernels._cpu.code import Function
from tsrnn.kernels._cpu.compiler import processor
from tsrnn.kernels._cpu.phases_ir import Phases
from tsrnn.kernels._cpu.vector_ir import FORMATS, TILE_BYTES, Format
from tsrnn.kernels._matrix_form import MatrixForm
from tsrnn.kernels._program import Plan, Product, plan_of

POINTERS = {
    "forward": ("u", "w", "h", "lengths", "order", "alive", "s", "final", "matrices", "memory"),
    "backward": ("u", "w", "h", "lengths", "order", "alive", "s", "g_s", "g_final",
                 "g_u", "g_p", "x", "g_w", "g_h", "matrices", "memory"),
}  # fmt: skip
SIZES = ("T", "d", "n", "steps", "width", "stride")


def dense_ir(form: MatrixForm, dtype: str) -> str:
    """LLVM source of ``forward`` and ``backward``; arguments are `POINTERS`, then `SIZES`.

    `steps` is the longest of the n lengths, ``alive[t]`` the number of lengths above t, `width` d
    rounded up to whole tiles and `stride` the distance between rows of working memory. A ValueError
    names an operation without compiled form.
    """
    plan, fmt = plan_of(form), FORMATS[dtype]
    functions: list[Function] = [product_function(fmt), _forward(plan, fmt), _backward(plan, fmt)]
    declarations = set[str]().union(*(f.declarations(masked=True) for f in functions))
    declarations.add("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
    return "".join(f.text() for f in functions) + "\n".join([*sorted(declarations), ""])


class _Pass(Phases):
    """A function over time whose lanes are units, in tiles, for sequences side by side."""

    def __init__(self, kind: str, plan: Plan, fmt: Format) -> None:
        super().__init__(kind, plan, fmt, POINTERS[kind], SIZES)
        self.memory_row = self.k = ""
        self.alive = ""  # number of sequences that have this step
        self.offset = self.variable()  # of the weights of the next product

    def slot(self, number: int) -> str:
        """See `Phases`."""
        return self.at("%memory", self.memory_row, self.integer("mul", "%width", number), self.k)

    def field(self, base: str, row: str, fields: int, number: int) -> str:
        """See `Phases`: units of a vector stand beside each other."""
        first = self.integer("add", self.integer("mul", row, fields), number)
        return self.at(base, self.integer("mul", first, "%d"), self.k)

    def parameter(self, number: int) -> str:
        """See `Phases`."""
        return self.load(self.field("%w", "0", self.n_vectors, number))

    def gradient(self, number: int) -> str:
        """See `Phases`."""
        return self.field("%g_w", self.b, self.n_vectors, number)

    def sequences(self, count: str, body: Callable[[], None]) -> None:
        """Emit `body` for the first sequences."""
        with self.up_to(count) as r:
            self.b = self.integer_at("%order", r)
            self.memory_row = self.integer("mul", r, "%stride")
            body()

    def each_sequence(self, body: Callable[[], None]) -> None:
        """See `Phases`."""
        self.sequences(self.alive, body)

    def each_value(self, body: Callable[[], None]) -> None:
        """See `Phases`: in tiles of units; the last may be masked."""
        counter = self.variable()
        self.set(counter, 0)
        with self.up_to("%d", self.lanes, counter) as self.k:
            body()
        self.k = self.get(counter)
        left = self.integer("sub", "%d", self.k)
        with self.when(self.emit(f"icmp sgt i64 {left}, 0")):
            self.mask = self.first_lanes(left)
            body()
            self.mask = ""

    def prefetch_later(self, address: str, fields: int, write: bool = False) -> None:
        """See `Phases`: of the next step."""
        # Many sequences are more streams than the processor prefetches by itself.
        ahead = self.integer("mul", "%d", fields if self.forward else -fields)
        self.prefetch(self.at(address, ahead), write)

    def begin_step(self, t: str) -> None:
        """Count the sequences that have step t; its products begin with the first weights."""
        self.alive = self.integer_at("%alive", t)
        self.set(self.offset, 0)

    def multiply(self, product: Product) -> None:
        """See `Phases`; the weights of all products are contiguous, in this order."""
        count = len(product.matrices)
        parts, outs = (count, 1) if product.transposed else (1, count)
        lanes = panel_width(self.format)
        wanted = self.integer("add", self.integer("mul", "%width", outs), lanes - 1)
        panels = self.integer("sdiv", wanted, lanes)
        x, out = (
            self.at("%memory", self.integer("mul", "%width", slot))
            for slot in (self.program.operands[product], self.program.outs[product])
        )
        start = self.get(self.offset)
        self.do(
            f"call void @product(ptr {x}, ptr {out}, ptr {self.at('%matrices', start)}, "
            f"i64 %stride, i64 {self.alive}, i64 {parts}, i64 %width, i64 %d, i64 {panels})"
        )
        size = self.integer(
            "mul", self.integer("mul", panels, lanes), self.integer("mul", "%d", parts)
        )
        self.set(self.offset, self.integer("add", start, size))

    def clear_padding(self, arrays: dict[str, int]) -> None:
        """Zeros after the end of a sequence in arrays with the given numbers of fields."""
        length = self.integer_at("%lengths", self.b)
        first = self.sum(self.integer("mul", self.b, "%T"), length)
        rows = self.integer("sub", "%T", length)
        for base, fields in arrays.items():
            step = self.integer("mul", "%d", fields)
            size = self.integer("mul", self.integer("mul", rows, step), self.format.bytes)
            start = self.at(base, self.integer("mul", first, step))
            self.do(f"call void @llvm.memset.p0.i64(ptr {start}, i8 0, i64 {size}, i1 false)")


def _forward(plan: Plan, fmt: Format) -> _Pass:
    f = _Pass("forward", plan, fmt)

    f.sequences("%n", lambda: f.each_value(f.begin))
    with f.up_to("%steps") as t:
        f.begin_step(t)
        f.step(t, {"s": ("%s", f.n)})
    f.sequences("%n", lambda: f.each_value(f.end))
    f.sequences("%n", lambda: f.clear_padding({"%s": f.n}))
    return f


def _backward(plan: Plan, fmt: Format) -> _Pass:
    f = _Pass("backward", plan, fmt)
    written = {"g_u": ("%g_u", f.m), "g_p": ("%g_p", len(plan.traced.factors))}
    if plan.one_gradient:
        del written["g_p"]
    written["x"] = ("%x", len(plan.traced.vjp.results["x"]))

    f.sequences("%n", lambda: f.each_value(f.begin))
    with f.up_to("%steps") as i:
        last = f.integer("sub", "%steps", 1)
        t = f.integer("sub", last, i)
        f.begin_step(t)
        f.step(t, written)
    f.sequences("%n", lambda: f.each_value(f.end))
    f.sequences("%n", lambda: f.clear_padding(dict(written.values())))
    return f


PANEL = 2  # adjacent vectors of weights: a number of x is broadcast once for both


class Registers(NamedTuple):
    """Vector registers of a processor: their bytes, and the rows of a product."""

    bytes: int
    rows: tuple[int, ...]  # PANEL times the first fills three quarters of the registers


def registers() -> Registers:
    """Vector registers of the target processor."""
    width = processor().register_bytes
    return Registers(width, (12, 8, 4, 2, 1) if width == 64 else (6, 4, 2, 1))


def panel_width(fmt: Format) -> int:
    """Output units of a panel of weights."""
    return PANEL * registers().bytes // fmt.bytes


def packed_weights(matrices: Tensor, products: Sequence[Product], fmt: Format) -> Tensor:
    """Weights of products, concatenated (K, ...), from matrices (count, K, d, d)."""
    tile, panel = TILE_BYTES // fmt.bytes, panel_width(fmt)
    weights = [matrices.new_empty(matrices.shape[1], 0)]
    for product in products:
        chosen = matrices[list(product.matrices)].transpose(0, 1)  # (K, matrices, to, from)
        if product.transposed:
            columns = _padded(chosen.permute(0, 3, 1, 2), tile)  # (K, from, matrices, to)
        else:
            columns = _padded(chosen.transpose(1, 2), tile)  # (K, to, matrices, from)
            columns = columns.transpose(1, 2).flatten(1, 2)[:, :, None]
        panels = _padded(columns, panel).unflatten(1, (-1, panel)).permute(0, 1, 3, 4, 2)
        weights.append(panels.flatten(1))
    return torch.cat(weights, 1)


def _padded(x: Tensor, multiple: int) -> Tensor:
    """Pad the second axis with zeros to a multiple."""
    return pad(x, (0, 0, 0, 0, 0, -x.shape[1] % multiple))


def product_function(fmt: Format) -> Function:
    """Function ``product``: out[r] = sum over parts and depth of x[r, part, j] w[panel, part, j].

    Rows of x and out are `stride` apart, parts of x are `width` apart.
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
            # As many panels at a time as there are registers for sums.
            for panels in (p for p in (4, 2, 1) if rows * p <= registers().rows[0]):
                with f.up_to("%panels", panels, panel) as p:
                    _tile(f, rows, panels, first, p)
    return f


def _tile(f: Function, rows: int, panels: int, first: str, panel: str) -> None:
    """Product of a few rows with a few panels, with all sums in registers."""
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
            line = f.integer("mul", j, PANEL * f.lanes)
            loaded = []
            for c in columns:
                skipped = f.integer("mul", "%panel.size", c // PANEL)
                loaded.append(f.load(f.at(inner, skipped, line, c % PANEL * f.lanes)))
            for variables, row in zip(sums, at, strict=True):
                x = f.broadcast(f.at(row, j))
                for variable, w in zip(variables, loaded, strict=True):
                    total, product = f.get(variable, f.type), f.binary("mul", x, w)
                    f.set(variable, f.binary("add", total, product), f.type)
    for variables, start in zip(sums, starts, strict=True):
        for c in columns:
            column = f.integer("add", f.integer("mul", panel, PANEL * f.lanes), c * f.lanes)
            f.store(f.get(variables[c], f.type), f.at("%out", start, column))
