"""A traced cell as two LLVM functions, forward and backward in time.

Arrays are (B, T, field, K), units contiguous. A function runs the sequences
b0..b1 and the units k0..k1: who calls it spreads such ranges over threads. It
takes units in tiles of as many lanes as suit the vector registers and keeps their
state, parameters and parameter gradients there over all of time, so that a step
reads inputs and writes states, and nothing else. Gradients of inputs that all units
share are not computed.
"""

from dataclasses import dataclass, field

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

    Parameters
    ----------
    cell : Cell
    dtype : {"float32", "float64"}

    Returns
    -------
    str
        LLVM assembly of both functions; their arguments are the `POINTERS`, then
        the `SIZES`.

    Raises
    ------
    ValueError
        If the cell uses an operation that has no compiled form; the message names it.
    """
    step, vjp = trace(cell, OPERATIONS)
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
        self.suffix = f"v{self.lanes}f{8 * self.format.bytes}.p0"

    def code(self, stage: str) -> VectorCode:
        return VectorCode(self.format, self.lanes, f"{self.name}.{stage}.")

    def registers(self, kind: str, count: int) -> list[str]:
        return [f"%{self.name}.{kind}{i}" for i in range(count)]

    def address(self, code: VectorCode, base: str, row: str, fields: int, field: int) -> str:
        """Pointer to unit k of `field` in row `row` of an array (rows, fields, K)."""
        # Only the first product moves with time; what is left is one addition a field.
        width = code.emit(f"mul i64 %K, {fields}")
        start = code.emit(f"mul i64 {row}, {width}")
        offset = code.emit(f"mul i64 %K, {field}")
        within = code.emit(f"add i64 {offset}, %{self.name}.k")
        unit = code.emit(f"add i64 {start}, {within}")
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

    def load_fields(self, code: VectorCode, base: str, row: str, count: int) -> list[str]:
        return [self.load(code, self.address(code, base, row, count, i)) for i in range(count)]

    def load_inputs(self, code: VectorCode, row: str) -> list[str]:
        """Input fields of a row: of the tile's units, or one number for all of them."""
        m = self.cell.m
        if not self.cell.shared:
            return self.load_fields(code, "%u", row, m)
        start = code.emit(f"mul i64 {row}, {m}")
        kind, lanes = self.format.name, self.lanes
        inputs = []
        for i in range(m):
            index = code.emit(f"add i64 {start}, {i}")
            pointer = code.emit(f"getelementptr {kind}, ptr %u, i64 {index}")
            number = code.emit(f"load {kind}, ptr {pointer}")
            first = code.emit(f"insertelement {code.type} poison, {kind} {number}, i64 0")
            inputs.append(
                code.emit(
                    f"shufflevector {code.type} {first}, {code.type} poison, "
                    f"<{lanes} x i32> zeroinitializer"
                )
            )
        return inputs

    def store_fields(self, code: VectorCode, base: str, row: str, values: list[str]) -> None:
        for i, value in enumerate(values):
            self.store(code, value, self.address(code, base, row, len(values), i))


@dataclass
class _Sweep:
    """One tile's pass over the steps of a sequence, in four stretches of code.

    `carried` lists the registers that a step takes over from the one before: their
    name, their value before the first step, their value after a step.
    """

    begin: VectorCode
    step: VectorCode
    end: VectorCode
    pad: VectorCode  # runs on the steps after the sequence's end
    carried: list[tuple[str, str, str]] = field(default_factory=list)

    @classmethod
    def of(cls, tile: _Tile) -> "_Sweep":
        return cls(tile.code("begin"), tile.code("step"), tile.code("end"), tile.code("pad"))

    def carry(self, names: list[str], first: list[str], following: list[str]) -> None:
        self.carried += zip(names, first, following, strict=True)

    def blocks(self, name: str) -> str:
        """Write the basic blocks; ``%{name}.i`` counts steps, ``%{name}.padded`` padded ones."""
        phis = [
            f"{register} = phi {self.begin.type} [ {first}, %{name}.begin ], "
            f"[ {following}, %{name}.step ]"
            for register, first, following in self.carried
        ]
        return (
            _block(f"{name}.begin", [*self.begin.lines, f"br label %{name}.test"])
            + _loop(f"{name}.test", f"{name}.step", f"%{name}.i", ("0", f"{name}.begin"),
                    "%length", f"{name}.end", phis, self.step.lines)
            + _block(f"{name}.end", [*self.end.lines, f"br label %{name}.pads"])
            + _loop(f"{name}.pads", f"{name}.pad", f"%{name}.padded", ("%length", f"{name}.end"),
                    "%T", f"{name}.done", [], self.pad.lines)
        )  # fmt: skip


def _loop(
    test: str,
    body: str,
    counter: str,
    start: tuple[str, str],
    stop: str,
    after: str,
    phis: list[str],
    lines: list[str],
) -> str:
    """Blocks that run `lines` for `counter` from `start` to `stop`.

    `start` is its first value and the block that control comes from.
    """
    first, before = start
    head = [
        f"{counter} = phi i64 [ {first}, %{before} ], [ {counter}.next, %{body} ]",
        *phis,
        f"{counter}.more = icmp slt i64 {counter}, {stop}",
        f"br i1 {counter}.more, label %{body}, label %{after}",
    ]
    tail = [f"{counter}.next = add i64 {counter}, 1", f"br label %{test}"]
    return _block(test, head) + _block(body, [*lines, *tail])


def _block(label: str, lines: list[str]) -> str:
    return "\n".join([f"{label}:", *(f"  {line}" for line in lines)]) + "\n"


def _named(prefix: str, values: list[str]) -> dict[str, str]:
    return {f"{prefix}{i}": value for i, value in enumerate(values)}


def _run(code: VectorCode, graph: Graph, values: dict[str, str]) -> list[str]:
    """Emit a graph; returns the registers of its outputs."""
    for op in graph.ops:
        values[op.out] = emit_op(code, op, values)
    return [operand(code, out, values) for out in graph.outputs]


def _forward_tile(tile: _Tile, step: Graph) -> str:
    cell, sweep = tile.cell, _Sweep.of(tile)
    params = tile.load_fields(sweep.begin, "%w", "0", cell.p)
    initial = tile.load_fields(sweep.begin, "%h", "%b", cell.n)
    state = tile.registers("h", cell.n)

    row = sweep.step.emit(f"add i64 %row0, %{tile.name}.i")
    inputs = tile.load_inputs(sweep.step, row)
    values = _named("h", state) | _named("u", inputs) | _named("w", params)
    new = _run(sweep.step, step, values)
    tile.store_fields(sweep.step, "%s", row, new)
    sweep.carry(state, initial, new)

    tile.store_fields(sweep.end, "%final", "%b", state)
    _store_zeros(tile, sweep.pad, "%s", cell.n)
    return sweep.blocks(tile.name)


def _backward_tile(tile: _Tile, vjp: Graph) -> str:
    cell, sweep = tile.cell, _Sweep.of(tile)
    g, s, sums = (
        tile.registers(kind, count) for kind, count in (("g", cell.n), ("s", cell.n), ("a", cell.p))
    )
    params = tile.load_fields(sweep.begin, "%w", "0", cell.p)
    zeros = [sweep.begin.constant(0.0)] * cell.p
    row = _last_step_first(tile, sweep.step)
    previous = _previous_state(tile, sweep.step, row)
    gradients = _backward_step(tile, sweep.step, vjp, row, previous, params, g, s)

    if not cell.shared:
        tile.store_fields(sweep.step, "%g_u", row, gradients[cell.n : cell.n + cell.m])
    added = [
        total if out == 0.0 else sweep.step.binary("add", total, part)
        for total, part, out in zip(
            sums, gradients[cell.n + cell.m :], vjp.outputs[cell.n + cell.m :], strict=True
        )
    ]
    sweep.carry(g, tile.load_fields(sweep.begin, "%g_final", "%b", cell.n), gradients[: cell.n])
    sweep.carry(s, _newest_state(tile, sweep.begin), previous)
    sweep.carry(sums, zeros, added)

    tile.store_fields(sweep.end, "%g_h", "%b", g)
    tile.store_fields(sweep.end, "%g_w", "%b", sums)
    if not cell.shared:
        _store_zeros(tile, sweep.pad, "%g_u", cell.m)
    return sweep.blocks(tile.name)


def _backward_step(
    tile: _Tile,
    code: VectorCode,
    vjp: Graph,
    row: str,
    previous: list[str],
    params: list[str],
    g: list[str],
    s: list[str],
) -> list[str]:
    """Gradients of state, inputs and parameters at one step."""
    incoming = tile.load_fields(code, "%g_s", row, tile.cell.n)
    grads = [code.binary("add", a, b) for a, b in zip(incoming, g, strict=True)]
    needs_inputs = any(name[0] == "u" for name in vjp.reads)
    inputs = tile.load_inputs(code, row) if needs_inputs else []
    given = {"g": grads, "h": previous, "s": s, "u": inputs, "w": params}
    values = {k: v for prefix, list_ in given.items() for k, v in _named(prefix, list_).items()}
    return _run(code, vjp, values)


def _store_zeros(tile: _Tile, code: VectorCode, base: str, count: int) -> None:
    """Zeros in a row after the sequence's end."""
    row = code.emit(f"add i64 %row0, %{tile.name}.padded")
    tile.store_fields(code, base, row, [code.constant(0.0)] * count)


def _last_step_first(tile: _Tile, code: VectorCode) -> str:
    """Row of step t = length - 1 - i, with t in ``%{tile}.t``."""
    last = code.emit("sub i64 %length, 1")
    code.lines.append(f"%{tile.name}.t = sub i64 {last}, %{tile.name}.i")
    return code.emit(f"add i64 %row0, %{tile.name}.t")


def _newest_state(tile: _Tile, code: VectorCode) -> list[str]:
    """State after a sequence's last step; of an empty one any row that can be read."""
    last = code.emit("sub i64 %length, 1")
    last_row = code.emit(f"add i64 %row0, {last}")
    empty = code.emit("icmp eq i64 %length, 0")
    row = code.emit(f"select i1 {empty}, i64 %row0, i64 {last_row}")
    return tile.load_fields(code, "%s", row, tile.cell.n)


def _previous_state(tile: _Tile, code: VectorCode, row: str) -> list[str]:
    """State before step t: of the row before, or the initial state."""
    first = code.emit(f"icmp eq i64 %{tile.name}.t, 0")
    base = code.emit(f"select i1 {first}, ptr %h, ptr %s")
    before = code.emit(f"sub i64 {row}, 1")
    source_row = code.emit(f"select i1 {first}, i64 %b, i64 {before}")
    return tile.load_fields(code, base, source_row, tile.cell.n)


def _function(kind: str, tiles: str, lanes: int) -> str:
    vector = f"<{lanes} x i64>"
    iota = "<" + ", ".join(f"i64 {i}" for i in range(lanes)) + ">"
    spread = f"{vector} poison, <{lanes} x i32> zeroinitializer"
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
  %left.in = insertelement {vector} poison, i64 %left, i64 0
  %left.all = shufflevector {vector} %left.in, {spread}
  %mask = icmp slt {vector} {iota}, %left.all
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
