"""A traced cell as two LLVM functions, forward and backward in time.

Arrays are (B, T, field, K), units contiguous. A function runs the sequences
b0..b1 and the units k0..k1: who calls it spreads such ranges over threads. It
takes units in tiles of as many lanes as suit the vector registers and keeps their
state, parameters and parameter gradients there over all of time, so that a step
reads inputs and writes states, and nothing else.
"""

from tsrnn.kernels._cell import Cell
from tsrnn.kernels._trace import Graph, trace
from tsrnn.kernels._vector_ir import FORMATS, OPERATIONS, VectorCode, emit_op, operand

POINTERS = {
    "forward": ("u", "w", "h", "lengths", "s", "final"),
    "backward": ("u", "w", "h", "lengths", "s", "g_s", "g_final", "g_u", "g_w", "g_h"),
}
SIZES = ("T", "K", "b0", "b1", "k0", "k1")


def kernel_ir(cell: Cell, dtype: str) -> str:
    """LLVM source of ``forward`` and ``backward`` for `cell` in `dtype`.

    Raises
    ------
    ValueError
        If the cell uses an operation that has no compiled form; the message names it.
    """
    step, vjp = trace(cell)
    for op in step.ops + vjp.ops:
        if op.name not in OPERATIONS:
            raise ValueError(
                f"cell {cell.name!r} uses torch's {op.name!r}, which has no compiled form. "
                f"Write it with {', '.join(sorted(OPERATIONS))}, or use engine='reference'"
            )
    tiles = [_Tile(cell, dtype, masked) for masked in (False, True)]
    bodies = {
        "forward": "".join(_forward_tile(tile, step) for tile in tiles),
        "backward": "".join(_backward_tile(tile, vjp) for tile in tiles),
    }
    functions = [_function(kind, body, tiles[0].lanes) for kind, body in bodies.items()]
    return "".join(functions) + _declarations(tiles[0])


class _Tile:
    """Addresses, loads and stores of one tile of units; `masked` is the last, partial one."""

    def __init__(self, cell: Cell, dtype: str, masked: bool) -> None:
        self.cell = cell
        self.format = FORMATS[dtype]
        self.lanes = 64 // self.format.bytes
        self.masked = masked
        self.name = "part" if masked else "full"

    def code(self, stage: str) -> VectorCode:
        return VectorCode(self.format, self.lanes, f"{self.name}.{stage}.")

    def address(self, code: VectorCode, base: str, row: str, fields: int, field: int) -> str:
        """Pointer to unit k of `field` in row `row` of an array (rows, fields, K)."""
        start = code.emit(f"mul i64 {row}, {fields}")
        index = code.emit(f"add i64 {start}, {field}")
        offset = code.emit(f"mul i64 {index}, %K")
        unit = code.emit(f"add i64 {offset}, %{self.name}.k")
        return code.emit(f"getelementptr {self.format.name}, ptr {base}, i64 {unit}")

    def load(self, code: VectorCode, pointer: str) -> str:
        kind, align = code.type, self.format.bytes
        if not self.masked:
            return code.emit(f"load {kind}, ptr {pointer}, align {align}")
        return code.emit(
            f"call {kind} @llvm.masked.load.{self.suffix}(ptr {pointer}, i32 {align}, "
            f"{code.mask_type} %mask, {kind} zeroinitializer)"
        )

    def store(self, code: VectorCode, value: str, pointer: str) -> None:
        kind, align = code.type, self.format.bytes
        if self.masked:
            code.lines.append(
                f"call void @llvm.masked.store.{self.suffix}({kind} {value}, ptr {pointer}, "
                f"i32 {align}, {code.mask_type} %mask)"
            )
        else:
            code.lines.append(f"store {kind} {value}, ptr {pointer}, align {align}")

    @property
    def suffix(self) -> str:
        return f"v{self.lanes}f{8 * self.format.bytes}.p0"

    def load_fields(self, code: VectorCode, base: str, row: str, count: int) -> list[str]:
        return [
            self.load(code, self.address(code, base, row, count, i)) for i in range(count)
        ]

    def store_fields(self, code: VectorCode, base: str, row: str, values: list[str]) -> None:
        for i, value in enumerate(values):
            self.store(code, value, self.address(code, base, row, len(values), i))


def _named(prefix: str, values: list[str]) -> dict[str, str]:
    return {f"{prefix}{i}": value for i, value in enumerate(values)}


def _run(code: VectorCode, graph: Graph, values: dict[str, str]) -> list[str]:
    """Emit a graph; returns the registers of its outputs."""
    for op in graph.ops:
        values[op.out] = emit_op(code, op, values)
    return [operand(code, out, values) for out in graph.outputs]


def _block(label: str, lines: list[str]) -> str:
    return "\n".join([f"{label}:", *(f"  {line}" for line in lines)]) + "\n"


def _phis(code: VectorCode, names: list[str], start: tuple[list[str], str],
          again: tuple[list[str], str]) -> list[str]:  # fmt: skip
    (first, first_block), (next_, next_block) = start, again
    return [
        f"{name} = phi {code.type} [ {a}, %{first_block} ], [ {b}, %{next_block} ]"
        for name, a, b in zip(names, first, next_, strict=True)
    ]


def _forward_tile(tile: _Tile, step: Graph) -> str:
    cell, name = tile.cell, tile.name
    begin = tile.code("begin")
    params = tile.load_fields(begin, "%w", "0", cell.p)
    initial = tile.load_fields(begin, "%h", "%b", cell.n)
    state = [f"%{name}.h{i}" for i in range(cell.n)]

    loop = tile.code("step")
    row = loop.emit(f"add i64 %row0, %{name}.t")
    inputs = tile.load_fields(loop, "%u", row, cell.m)
    values = _named("h", state) | _named("u", inputs) | _named("w", params)
    new = _run(loop, step, values)
    tile.store_fields(loop, "%s", row, new)

    pad = tile.code("pad")
    pad_row = pad.emit(f"add i64 %row0, %{name}.tp")
    tile.store_fields(pad, "%s", pad_row, [pad.constant(0.0)] * cell.n)

    end = tile.code("end")
    tile.store_fields(end, "%final", "%b", state)
    head = _phis(loop, state, (initial, f"{name}.begin"), (new, f"{name}.step"))
    return (
        _block(f"{name}.begin", [*begin.lines, f"br label %{name}.test"])
        + _block(
            f"{name}.test",
            [
                f"%{name}.t = phi i64 [ 0, %{name}.begin ], [ %{name}.t.next, %{name}.step ]",
                *head,
                f"%{name}.more = icmp slt i64 %{name}.t, %length",
                f"br i1 %{name}.more, label %{name}.step, label %{name}.end",
            ],
        )
        + _block(
            f"{name}.step",
            [*loop.lines, f"%{name}.t.next = add i64 %{name}.t, 1", f"br label %{name}.test"],
        )
        + _block(f"{name}.end", [*end.lines, f"br label %{name}.pads"])
        + _padding(name, pad)
    )


def _padding(name: str, pad: VectorCode) -> str:
    """Loop over the steps after a sequence's end."""
    return _block(
        f"{name}.pads",
        [
            f"%{name}.tp = phi i64 [ %length, %{name}.end ], [ %{name}.tp.next, %{name}.pad ]",
            f"%{name}.padmore = icmp slt i64 %{name}.tp, %T",
            f"br i1 %{name}.padmore, label %{name}.pad, label %{name}.done",
        ],
    ) + _block(
        f"{name}.pad",
        [*pad.lines, f"%{name}.tp.next = add i64 %{name}.tp, 1", f"br label %{name}.pads"],
    )


def _backward_tile(tile: _Tile, vjp: Graph) -> str:
    cell, name = tile.cell, tile.name
    n, m, p = cell.n, cell.m, cell.p
    begin = tile.code("begin")
    params = tile.load_fields(begin, "%w", "0", p)
    g_final = tile.load_fields(begin, "%g_final", "%b", n)
    last = begin.emit("sub i64 %length, 1")
    last_row = begin.emit(f"add i64 %row0, {last}")
    empty = begin.emit("icmp eq i64 %length, 0")
    safe_row = begin.emit(f"select i1 {empty}, i64 %row0, i64 {last_row}")
    newest = tile.load_fields(begin, "%s", safe_row, n)

    carried = {kind: [f"%{name}.{kind}{i}" for i in range(c)] for kind, c in
               (("g", n), ("s", n), ("a", p))}  # fmt: skip
    loop = tile.code("step")
    row = loop.emit(f"add i64 %row0, %{name}.t")
    incoming = tile.load_fields(loop, "%g_s", row, n)
    grads = [loop.binary("add", a, b) for a, b in zip(incoming, carried["g"], strict=True)]
    previous = _previous_state(tile, loop, row)
    needs_inputs = any(r[0] == "u" for r in vjp.reads)
    inputs = tile.load_fields(loop, "%u", row, m) if needs_inputs else []
    values = (
        _named("g", grads) | _named("h", previous) | _named("s", carried["s"])
        | _named("u", inputs) | _named("w", params)
    )  # fmt: skip
    out = _run(loop, vjp, values)
    tile.store_fields(loop, "%g_u", row, out[n : n + m])
    sums = [
        acc if zero == 0.0 else loop.binary("add", acc, g)
        for acc, g, zero in zip(carried["a"], out[n + m :], vjp.outputs[n + m :], strict=True)
    ]

    pad = tile.code("pad")
    pad_row = pad.emit(f"add i64 %row0, %{name}.tp")
    tile.store_fields(pad, "%g_u", pad_row, [pad.constant(0.0)] * m)
    end = tile.code("end")
    tile.store_fields(end, "%g_h", "%b", carried["g"])
    tile.store_fields(end, "%g_w", "%b", carried["a"])

    names = carried["g"] + carried["s"] + carried["a"]
    start = g_final + newest + [begin.constant(0.0)] * p
    again = out[:n] + previous + sums
    head = _phis(loop, names, (start, f"{name}.begin"), (again, f"{name}.step"))
    return (
        _block(f"{name}.begin", [*begin.lines, f"br label %{name}.test"])
        + _block(
            f"{name}.test",
            [
                f"%{name}.t1 = phi i64 [ %length, %{name}.begin ], [ %{name}.t, %{name}.step ]",
                *head,
                f"%{name}.t = sub i64 %{name}.t1, 1",
                f"%{name}.more = icmp sge i64 %{name}.t, 0",
                f"br i1 %{name}.more, label %{name}.step, label %{name}.end",
            ],
        )
        + _block(f"{name}.step", [*loop.lines, f"br label %{name}.test"])
        + _block(f"{name}.end", [*end.lines, f"br label %{name}.pads"])
        + _padding(name, pad)
    )


def _previous_state(tile: _Tile, code: VectorCode, row: str) -> list[str]:
    """State before step t: of the row before, or the initial state."""
    n = tile.cell.n
    first = code.emit(f"icmp eq i64 %{tile.name}.t, 0")
    base = code.emit(f"select i1 {first}, ptr %h, ptr %s")
    before = code.emit(f"sub i64 {row}, 1")
    source_row = code.emit(f"select i1 {first}, i64 %b, i64 {before}")
    return tile.load_fields(code, base, source_row, n)


def _function(kind: str, tiles: str, lanes: int) -> str:
    iota = "<" + ", ".join(f"i64 {i}" for i in range(lanes)) + ">"
    pointers = ", ".join(f"ptr noalias %{name}" for name in POINTERS[kind])
    sizes = ", ".join(f"i64 %{name}" for name in SIZES)
    return f"""
define void @{kind}({pointers}, {sizes}) nounwind {{
entry:
  br label %sequences
sequences:
  %b = phi i64 [ %b0, %entry ], [ %b.next, %sequence.end ]
  %b.more = icmp slt i64 %b, %b1
  br i1 %b.more, label %sequence, label %return
sequence:
  %length.at = getelementptr i64, ptr %lengths, i64 %b
  %length = load i64, ptr %length.at
  %row0 = mul i64 %b, %T
  br label %units
units:
  %full.k = phi i64 [ %k0, %sequence ], [ %k.next, %full.done ]
  %k.next = add i64 %full.k, {lanes}
  %fits = icmp sle i64 %k.next, %k1
  br i1 %fits, label %full.begin, label %rest
rest:
  %part.k = add i64 %full.k, 0
  %left = sub i64 %k1, %part.k
  %any = icmp sgt i64 %left, 0
  %left.in = insertelement <{lanes} x i64> poison, i64 %left, i64 0
  %left.all = shufflevector <{lanes} x i64> %left.in, <{lanes} x i64> poison, <{lanes} x i32> zeroinitializer
  %mask = icmp slt <{lanes} x i64> {iota}, %left.all
  br i1 %any, label %part.begin, label %sequence.end
{tiles}full.done:
  br label %units
part.done:
  br label %sequence.end
sequence.end:
  %b.next = add i64 %b, 1
  br label %sequences
return:
  ret void
}}
"""


def _declarations(tile: _Tile) -> str:
    """Declare the intrinsics that the source may call."""
    kind, mask = f"<{tile.lanes} x {tile.format.name}>", f"<{tile.lanes} x i1>"
    suffix = f"v{tile.lanes}f{8 * tile.format.bytes}"
    lines = [
        f"declare {kind} @llvm.masked.load.{tile.suffix}(ptr, i32, {mask}, {kind})",
        f"declare void @llvm.masked.store.{tile.suffix}({kind}, ptr, i32, {mask})",
        f"declare {kind} @llvm.pow.{suffix}({kind}, {kind})",
    ]
    for name in ("sqrt", "fabs", "log", "sin", "cos"):
        lines.append(f"declare {kind} @llvm.{name}.{suffix}({kind})")
    return "\n" + "\n".join(lines) + "\n"
