"""A recurrence with full matrices as two LLVM functions, forward and backward in time.

Arrays are (sequences, T, vector, d), units contiguous. A function runs n sequences side by
side, longest first, so that those alive at a step are the first. Each has a row of working
memory (see `Program`) where it keeps its state. A step alternates elementwise phases, which
take units in tiles of a vector's lanes, and matrix products.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

from tsrnn.kernels._cpu.vector_ir import FORMATS, Format, emit_op, operand
from tsrnn.kernels._dense.code import TILE_BYTES, Function
from tsrnn.kernels._dense.phases import Phase, Program, program
from tsrnn.kernels._dense.product import panel_width, product_function
from tsrnn.kernels._dense.trace import OpenForm, Product, open_trace
from tsrnn.kernels._graph import Operand
from tsrnn.kernels._matrix_form import MatrixForm

POINTERS = {
    "forward": ("u", "w", "h", "lengths", "order", "alive", "s", "final", "matrices", "memory"),
    "backward": ("u", "w", "h", "lengths", "order", "alive", "s", "g_s", "g_final",
                 "g_u", "g_p", "x", "g_w", "g_h", "matrices", "memory"),
}  # fmt: skip
SIZES = ("T", "d", "n", "steps", "width", "stride")


class Plan(NamedTuple):
    """Programs of a form, the results that its backward pass writes at every step included."""

    form: MatrixForm
    traced: OpenForm
    forward: Program
    backward: Program

    @classmethod
    def of(cls, form: MatrixForm) -> Plan:
        """Trace and order a form."""
        traced = open_trace(form)
        state = [f"h{i}" for i in range(len(form.states))]
        sums = [f"G{i}" for i in range(len(form.states))]
        sums += [f"A{i}" for i in range(len(form.vectors))]
        return cls(form, traced, program(traced.step, state), program(traced.vjp, sums))

    @property
    def one_gradient(self) -> bool:
        """Whether the gradients of the products are those of the inputs."""
        return self.traced.vjp.results["g_p"] == self.traced.vjp.results["g_u"]


def dense_ir(form: MatrixForm, dtype: str) -> str:
    """LLVM source of ``forward`` and ``backward``; arguments are `POINTERS`, then `SIZES`.

    `steps` is the longest of the n lengths, ``alive[t]`` counts those above t, `width` is d in
    whole tiles and `stride` the distance of rows of working memory.

    Raises
    ------
    ValueError
        If the form uses an operation that has no compiled form.
    """
    plan, fmt = Plan.of(form), FORMATS[dtype]
    functions: list[Function] = [product_function(fmt), _forward(plan, fmt), _backward(plan, fmt)]
    declarations = set[str]().union(*(f.declarations() for f in functions))
    return "".join(f.text() for f in functions) + "\n".join([*sorted(declarations), ""])


class _Pass(Function):
    """A function over time: addresses of what a sequence has at a step."""

    def __init__(self, kind: str, plan: Plan, fmt: Format) -> None:
        super().__init__(kind, fmt, TILE_BYTES // fmt.bytes, POINTERS[kind], SIZES)
        form = plan.form
        self.program: Program = getattr(plan, kind)
        self.forward = kind == "forward"
        self.n, self.m, self.n_vectors = len(form.states), len(form.inputs), len(form.vectors)
        self.b = self.row = self.memory_row = self.k = ""
        self.old = ("", "")  # array and row of the old state

    def slot(self, number: int) -> str:
        """Address of a tile in working memory."""
        return self.at("%memory", self.memory_row, self.integer("mul", "%width", number), self.k)

    def field(self, base: str, row: str, fields: int, number: int) -> str:
        """Address of a tile in an array (rows, fields, d)."""
        first = self.integer("add", self.integer("mul", row, fields), number)
        return self.at(base, self.integer("mul", first, "%d"), self.k)

    def kept(self, number: int) -> str:
        """Load a slot."""
        mask, self.mask = self.mask, ""  # rows are as long as whole tiles
        value = self.load(self.slot(number))
        self.mask = mask
        return value

    def keep(self, value: str, number: int) -> None:
        """Store to a slot."""
        mask, self.mask = self.mask, ""
        self.store(value, self.slot(number))
        self.mask = mask

    def sequences(self, count: str, body: Callable[[], None]) -> None:
        """Run `body` for the first sequences."""
        with self.up_to(count) as r:
            self.b = self.integer_at("%order", r)
            self.memory_row = self.integer("mul", r, "%stride")
            body()

    def tiles(self, body: Callable[[], None]) -> None:
        """Run `body` for tiles of units; the last may be masked."""
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

    def prefetch(self, address: str, fields: int, write: int = 0) -> None:
        """Fetch what the next step takes from an array of so many fields."""
        # With many sequences there are more streams than the processor follows by itself.
        ahead = self.integer("mul", "%d", fields if self.forward else -fields)
        following = self.at(address, ahead)
        self.do(f"call void @llvm.prefetch.p0(ptr {following}, i32 {write}, i32 3, i32 1)")

    def clear_padding(self, arrays: dict[str, int]) -> None:
        """Zeros after the end of a sequence in arrays of so many fields."""
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

    def begin() -> None:
        for i in range(f.n):
            f.keep(f.load(f.field("%h", f.b, f.n, i)), i)

    def end() -> None:
        for i in range(f.n):
            f.store(f.kept(i), f.field("%final", f.b, f.n, i))

    f.sequences("%n", lambda: f.tiles(begin))
    with f.up_to("%steps") as t:
        _step(f, t, {"s": ("%s", f.n)})
    f.sequences("%n", lambda: f.tiles(end))
    f.sequences("%n", lambda: f.clear_padding({"%s": f.n}))
    return f


def _backward(plan: Plan, fmt: Format) -> _Pass:
    f = _Pass("backward", plan, fmt)
    written = {"g_u": ("%g_u", f.m), "g_p": ("%g_p", len(plan.traced.factors))}
    if plan.one_gradient:
        del written["g_p"]
    written["x"] = ("%x", len(plan.traced.vjp.results["x"]))

    def begin() -> None:
        for i in range(f.n):
            f.keep(f.load(f.field("%g_final", f.b, f.n, i)), i)
        for i in range(f.n_vectors):
            f.keep(f.constant(0.0), f.n + i)

    def end() -> None:
        for i in range(f.n):
            f.store(f.kept(i), f.field("%g_h", f.b, f.n, i))
        for i in range(f.n_vectors):
            f.store(f.kept(f.n + i), f.field("%g_w", f.b, f.n_vectors, i))

    f.sequences("%n", lambda: f.tiles(begin))
    with f.up_to("%steps") as i:
        last = f.integer("sub", "%steps", 1)
        _step(f, f.integer("sub", last, i), written)
    f.sequences("%n", lambda: f.tiles(end))
    f.sequences("%n", lambda: f.clear_padding(dict(written.values())))
    return f


def _step(f: _Pass, t: str, written: dict[str, tuple[str, int]]) -> None:
    """All phases of step t; `written` has the array and its fields for results of every step."""
    alive = f.integer_at("%alive", t)
    offset = f.variable()  # of the weights of the next product
    f.set(offset, 0)
    for phase in f.program.phases:
        if _has_work(f.program, phase):
            f.sequences(alive, functools.partial(_phase_of_sequence, f, phase, t, written))
        for product in phase.products:
            _multiply(f, product, alive, offset)


def _has_work(plan: Program, phase: Phase) -> bool:
    return bool(phase.ops or _copies(plan, phase) or phase is plan.phases[-1])


def _copies(plan: Program, phase: Phase) -> list[tuple[Operand, int]]:
    """Operands of products that are not kept where the product reads them, and that slot."""
    operands = [(x, plan.operands[p] + i) for p in phase.products for i, x in enumerate(p.operands)]
    return [(x, slot) for x, slot in operands if plan.homes.get(str(x)) != slot]


def _phase_of_sequence(f: _Pass, phase: Phase, t: str, written: dict[str, tuple[str, int]]) -> None:
    f.row = f.sum(f.integer("mul", f.b, "%T"), t)
    if not f.forward:
        first = f.emit(f"icmp eq i64 {t}, 0")
        base = f.emit(f"select i1 {first}, ptr %h, ptr %s")
        row = f.emit(f"select i1 {first}, i64 {f.b}, i64 {f.integer('sub', f.row, 1)}")
        f.old = (base, row)
    f.tiles(lambda: _tile(f, phase, written))


def _tile(f: _Pass, phase: Phase, written: dict[str, tuple[str, int]]) -> None:
    plan = f.program
    values = {name: _load(f, name) for name in sorted(plan.reads(phase))}
    for op in phase.ops:
        values[op.out] = emit_op(f, op, values)
    made = {op.out for op in phase.ops}
    for name in sorted(made & plan.homes.keys()):
        f.keep(values[name], plan.homes[name])
    for x, slot in _copies(plan, phase):
        f.keep(operand(f, x, values), slot)
    last = phase is plan.phases[-1]
    earlier = {op.out for phase in plan.phases[:-1] for op in phase.ops}
    for result, (base, fields) in written.items():
        for i, x in enumerate(plan.results[result]):
            if x in made or (last and x not in earlier):
                _write(f, operand(f, x, values), base, fields, i)
    if last:
        _carry(f, values)


def _write(f: _Pass, value: str, base: str, fields: int, number: int) -> None:
    address = f.field(base, f.row, fields, number)
    f.prefetch(address, fields, write=1)
    f.store(value, address)


def _carry(f: _Pass, values: dict[str, str]) -> None:
    """Hand state, or its gradient and sums of gradients of vectors, to the next step."""
    for i, x in enumerate(f.program.results["s" if f.forward else "g_h"]):
        f.keep(operand(f, x, values), i)
    for i, x in enumerate(() if f.forward else f.program.results["g_w"]):
        total = f.binary("add", f.kept(f.n + i), operand(f, x, values))
        f.keep(total, f.n + i)


def _load(f: _Pass, name: str) -> str:
    """Load a value that a phase reads."""
    if name in f.program.homes:
        return f.kept(f.program.homes[name])
    kind, i = name[0], int(name[1:])
    if kind == "w":
        return f.load(f.field("%w", "0", f.n_vectors, i))
    base, row, fields = {
        "h": (*f.old, f.n),
        "s": ("%s", f.row, f.n),
        "u": ("%u", f.row, f.m),
        "g": ("%g_s", f.row, f.n),
    }[kind]
    address = f.field(base, row, fields, i)
    f.prefetch(address, fields)
    value = f.load(address)
    return f.binary("add", f.kept(i), value) if kind == "g" else value


def _multiply(f: _Pass, product: Product, rows: str, offset: str) -> None:
    """Run a product; its weights lie where those of the last one end."""
    count = len(product.matrices)
    parts, outs = (count, 1) if product.transposed else (1, count)
    lanes = panel_width(f.format)
    wanted = f.integer("add", f.integer("mul", "%width", outs), lanes - 1)
    panels = f.integer("sdiv", wanted, lanes)
    x, out = (
        f.at("%memory", f.integer("mul", "%width", slot))
        for slot in (f.program.operands[product], f.program.outs[product])
    )
    start = f.get(offset)
    f.do(
        f"call void @product(ptr {x}, ptr {out}, ptr {f.at('%matrices', start)}, i64 %stride, "
        f"i64 {rows}, i64 {parts}, i64 %width, i64 %d, i64 {panels})"
    )
    size = f.integer("mul", f.integer("mul", panels, lanes), f.integer("mul", "%d", parts))
    f.set(offset, f.integer("add", start, size))
