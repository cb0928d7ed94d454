"""Blocks of a matrix form as LLVM functions that loop over the units of a block.

The functions take the arrays of `kernel_ir`, (B, T, field, K) with blocks contiguous, in the same
order: blocks in the lanes of a vector, sequence after sequence. Their code does not grow with the
size d of the blocks, which is an argument: states and parameters of a tile of blocks are in working
memory, one vector a value, instead of in registers. A matrix product takes a few rows at a time,
with sums in registers. Products of gradients are added up after several steps.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

from tsrnn.kernels._cpu.compiler import processor
from tsrnn.kernels._cpu.phases_ir import Phases
from tsrnn.kernels._cpu.tile_ir import AHEAD
from tsrnn.kernels._cpu.vector_ir import FORMATS, Format
from tsrnn.kernels._matrix_form import MatrixForm
from tsrnn.kernels._program import Plan, Product, plan_of

POINTERS = {
    "forward": ("u", "w", "h", "lengths", "s", "final"),
    "backward": ("u", "w", "h", "lengths", "s", "g_s", "g_final", "g_u", "g_w", "g_h"),
}
SIZES = ("d", "T", "K", "per_set", "b0", "b1", "k0", "k1")
_SUMMED_TOGETHER = 16  # steps: what they leave to be summed stays in the nearest cache


def rolled_ir(form: MatrixForm, dtype: str, kinds: Sequence[str]) -> str:
    """LLVM source of ``forward``, ``backward`` or both; arguments are `POINTERS`, then `SIZES`.

    A ValueError names an operation without compiled form.
    """
    plan = plan_of(form, every_operand=True)
    functions = [_Blocks(kind, plan, FORMATS[dtype]) for kind in kinds]
    for f in functions:
        (_forward if f.forward else _backward)(f)
    declarations = sorted(functions[0].declarations(masked=True))
    return "".join(f.text() for f in functions) + "\n".join([*declarations, ""])


class _Blocks(Phases):
    """A function over time whose lanes are blocks of one sequence, with loops over vectors."""

    def __init__(self, kind: str, plan: Plan, fmt: Format) -> None:
        super().__init__(kind, plan, fmt, POINTERS[kind], SIZES)
        self.n_matrices = len(plan.form.matrices)
        self.factors = plan.traced.factors
        self.operands = plan.traced.vjp.results["x"]
        self.entries = self.integer("mul", "%d", "%d")
        matrices = self.integer("mul", self.entries, self.n_matrices)
        self.n_weights = self.integer("add", matrices, self.integer("mul", "%d", self.n_vectors))
        self.vectors = matrices  # index of the first weight of the vectors
        self.weights = self.room(self.n_weights)
        self.memory = self.room(self.integer("mul", "%d", self.program.slots))
        # From the last steps: gradients of products, and operands of matrices.
        self.kept_steps = {
            name: self.room(self.integer("mul", "%d", count * _SUMMED_TOGETHER))
            for name, count in (("%g_p", len(self.factors)), ("%x", len(self.operands)))
            if not self.forward
        }
        self.length = ""  # of the sequence
        self.k = self.i = ""  # first block of the tile, and index of a value in its vector
        self.place = ""  # of a step among the kept ones

    def room(self, count: str) -> str:
        """Working memory for some vectors of lanes."""
        return self.emit(f"alloca {self.type}, i64 {count}, align 64")

    def slot(self, number: int) -> str:
        """See `Phases`."""
        return self.vector(self.memory, self.integer("mul", "%d", number), self.i)

    def field(self, base: str, row: str, fields: int, number: int) -> str:
        """See `Phases`: blocks of a value are contiguous."""
        vector = self.integer("add", self.integer("mul", row, fields), number)
        value = self.sum(self.integer("mul", vector, "%d"), self.i)
        if base in self.kept_steps:
            return self.vector(self.kept_steps[base], value)
        return self.at(base, self.integer("mul", value, "%K"), self.k)

    def parameter(self, number: int) -> str:
        """See `Phases`."""
        offset = self.integer("mul", "%d", number)
        return self.load_whole(self.vector(self.weights, self.vectors, offset, self.i))

    def gradient(self, number: int) -> str:
        """See `Phases`."""
        first = self.sum(self.vectors, self.integer("mul", "%d", number), self.i)
        return self.weight_of("%g_w", self.b, first)

    def each_sequence(self, body: Callable[[], None]) -> None:
        """See `Phases`: there is one."""
        body()

    def each_value(self, body: Callable[[], None]) -> None:
        """See `Phases`."""
        with self.up_to("%d") as self.i:
            body()

    def prefetch_later(self, address: str, fields: int, write: bool = False) -> None:
        """See `Phases`."""
        row = self.integer("mul", self.integer("mul", "%d", "%K"), fields)
        ahead = self.integer("mul", row, AHEAD if self.forward else -AHEAD)
        self.prefetch(self.at(address, ahead), write)

    def write(self, value: str, base: str, fields: int, number: int) -> None:
        """See `Phases`."""
        if base in self.kept_steps:
            self.store_whole(value, self.field(base, self.place, fields, number))
        else:
            super().write(value, base, fields, number)

    def multiply(self, product: Product) -> None:
        """See `Phases`: adjacent matrices in memory are taken as one."""
        x, out = (
            self.vector(self.memory, self.integer("mul", "%d", slots[product]))
            for slots in (self.program.operands, self.program.outs)
        )
        for first, matrix, count in _runs(product.matrices):
            weights = self.vector(self.weights, self.integer("mul", self.entries, matrix))
            rows, skipped = self.integer("mul", "%d", count), self.integer("mul", "%d", first)
            if product.transposed:
                self.multiply_transposed(weights, rows, self.vector(x, skipped), out, first > 0)
            else:
                self.multiply_rows(weights, rows, x, self.vector(out, skipped))

    def multiply_rows(self, weights: str, rows: str, x: str, out: str) -> None:
        """Product of rows of d weights with d values."""
        for r, totals in self.few_at_a_time(rows):
            starts = [self.integer("mul", self.sum(r, j), "%d") for j in range(len(totals))]
            with self.up_to("%d") as c:
                value = self.load_whole(self.vector(x, c))
                for total, start in zip(totals, starts, strict=True):
                    self.add_product(total, self.vector(weights, start, c), value)
            for j, total in enumerate(totals):
                self.store_whole(self.get(total, self.type), self.vector(out, r, j))

    def multiply_transposed(self, weights: str, rows: str, x: str, out: str, more: bool) -> None:
        """Sum of rows of d weights, each times a value; added to `out` if `more`."""
        for c, totals in self.few_at_a_time("%d"):
            results = [self.vector(out, c, j) for j in range(len(totals))]
            if more:
                for total, result in zip(totals, results, strict=True):
                    self.set(total, self.load_whole(result), self.type)
            with self.up_to(rows) as r:
                value = self.load_whole(self.vector(x, r))
                start = self.sum(self.integer("mul", r, "%d"), c)
                for j, total in enumerate(totals):
                    self.add_product(total, self.vector(weights, start, j), value)
            for total, result in zip(totals, results, strict=True):
                self.store_whole(self.get(total, self.type), result)

    def vector(self, base: str, *offsets: str | int) -> str:
        """Address of a vector in working memory."""
        return self.at(base, *offsets, kind=self.type)

    def add_product(self, total: str, address: str, value: str) -> None:
        """Add a vector of working memory times a value to a variable."""
        product = self.binary("mul", self.load_whole(address), value)
        self.set(total, self.binary("add", self.get(total, self.type), product), self.type)

    def few_at_a_time(self, count: str) -> Iterator[tuple[str, list[str]]]:
        """Loops over numbers below `count` in groups: the first one, and a zero sum for each."""
        counter = self.variable()
        self.set(counter, 0)
        for size in (8, 4, 2, 1) if processor().register_bytes == 64 else (4, 2, 1):
            total = [self.variable(self.type) for _ in range(size)]
            with self.up_to(count, size, counter) as first:
                for variable in total:
                    self.set(variable, self.constant(0.0), self.type)
                yield first, total

    def each_tile(self, body: Callable[[], None]) -> None:
        """Emit `body` for all sequences and tiles of blocks, with weights in working memory."""
        b, k = self.variable(), self.variable()
        self.set(b, "%b0")
        with self.up_to("%b1", counter=b) as self.b:
            self.length = self.integer_at("%lengths", self.b)
            self.set(k, "%k0")
            with self.loop(lambda: self.emit(f"icmp slt i64 {self.get(k)}, %k1")):
                self.k = self.get(k)
                self.mask = self.first_lanes(self.integer("sub", "%k1", self.k))
                row = self.integer("udiv", self.b, "%per_set")
                with self.up_to(self.n_weights) as i:
                    weight = self.load(self.weight_of("%w", row, i))
                    self.store_whole(weight, self.vector(self.weights, i))
                body()
                self.mask = ""
                self.set(k, self.integer("add", self.k, self.lanes))

    def weight_of(self, base: str, row: str, *numbers: str | int) -> str:
        """Address of a weight in an array (rows, p, K)."""
        first = self.integer("mul", row, self.n_weights)
        return self.at(base, self.integer("mul", self.sum(first, *numbers), "%K"), self.k)

    def clear_padding(self, base: str, fields: int) -> None:
        """Write zeros behind the end of the sequence to an array (rows, fields)."""
        t = self.variable()
        self.set(t, self.length)
        with self.up_to("%T", counter=t) as step:
            row = self.sum(self.integer("mul", self.b, "%T"), step)

            def clear() -> None:
                for i in range(fields):
                    self.store(self.constant(0.0), self.field(base, row, fields, i))

            self.each_value(clear)

    def add_up(self, count: str) -> None:
        """Add gradients of the matrices over the `count` kept steps."""
        of_step = self.integer("mul", "%d", len(self.factors))
        of_operands = self.integer("mul", "%d", len(self.operands))
        numbers = [self.operands.index(x) for _, x in self.factors]
        groups = itertools.groupby(range(len(self.factors)), key=lambda k: numbers[k])
        for number, group in ((number, list(group)) for number, group in groups):
            x = self.vector(self.kept_steps["%x"], self.integer("mul", "%d", number))
            for first, matrix, size in _runs([self.factors[k][0] for k in group]):
                before = self.integer("mul", "%d", group[first])
                g = self.vector(self.kept_steps["%g_p"], before)
                skipped = self.integer("mul", self.entries, matrix)
                with self.up_to(self.integer("mul", "%d", size)) as r:
                    row = self.sum(skipped, self.integer("mul", r, "%d"))
                    for c, total in self.few_at_a_time("%d"):
                        places = [
                            self.weight_of("%g_w", self.b, row, c, j) for j in range(len(total))
                        ]
                        for variable, place in zip(total, places, strict=True):
                            self.set(variable, self.load(place), self.type)
                        with self.up_to(count) as step:
                            at = self.integer("mul", step, of_step)
                            value = self.load_whole(self.vector(g, at, r))
                            at = self.sum(self.integer("mul", step, of_operands), c)
                            for j, variable in enumerate(total):
                                self.add_product(variable, self.vector(x, at, j), value)
                        for variable, place in zip(total, places, strict=True):
                            self.store(self.get(variable, self.type), place)


def _runs(matrices: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Position, first index and count of each run of consecutive matrices."""
    for _, run in itertools.groupby(enumerate(matrices), key=lambda item: item[1] - item[0]):
        members = list(run)
        yield *members[0], len(members)


def _forward(f: _Blocks) -> None:
    def tile() -> None:
        f.each_value(f.begin)
        with f.up_to(f.length) as t:
            f.step(t, {"s": ("%s", f.n)})
        f.each_value(f.end)
        f.clear_padding("%s", f.n)

    f.each_tile(tile)


def _backward(f: _Blocks) -> None:
    written = {
        "g_u": ("%g_u", f.m), "g_p": ("%g_p", len(f.factors)), "x": ("%x", len(f.operands)),
    }  # fmt: skip

    def tile() -> None:
        with f.up_to(f.n_weights) as i:
            f.store(f.constant(0.0), f.weight_of("%g_w", f.b, i))
        f.each_value(f.begin)
        with f.up_to(f.length) as i:
            f.place = f.emit(f"and i64 {i}, {_SUMMED_TOGETHER - 1}")
            done = f.integer("add", i, 1)
            f.step(f.integer("sub", f.length, done), written)
            count = f.integer("add", f.place, 1)
            full = f.emit(f"icmp eq i64 {count}, {_SUMMED_TOGETHER}")
            ended = f.emit(f"icmp eq i64 {done}, {f.length}")
            with f.when(f.emit(f"or i1 {full}, {ended}")):
                f.add_up(count)
        f.each_value(f.end)
        f.clear_padding("%g_u", f.m)

    f.each_tile(tile)
