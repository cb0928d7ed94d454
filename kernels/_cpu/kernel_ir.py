"""A traced cell as LLVM functions, forward and backward in time.

Arrays are (B, T, field, K), units contiguous. A function runs the sequences
b0..b1 and the units k0..k1: the caller spreads such ranges over threads. Units are
processed in tiles that suit the vector registers, with their state, parameters and
parameter gradients in registers over all of time, so that a step only reads inputs
and writes states. Gradients of more parameters than registers hold are added up
after several steps. Gradients of shared inputs are not computed. Parameters are
(R, p, K); sequence b uses set b // per_set.
"""

from collections.abc import Iterable, Mapping, Sequence

from tsrnn.kernels._cell import Cell
from tsrnn.kernels._cpu.tile_ir import Sweep, Tile, block, loop
from tsrnn.kernels._cpu.vector_ir import VectorCode, emit_op, operand
from tsrnn.kernels._graph import Graph, Op, Operand, without_unused
from tsrnn.kernels._trace import trace, trace_step

POINTERS = {
    "forward": ("u", "w", "h", "lengths", "s", "final"),
    "forward_outputs": ("u", "w", "h", "lengths", "s", "final"),
    "forward_final": ("u", "w", "h", "lengths", "final"),
    "backward": ("u", "w", "h", "lengths", "s", "g_s", "g_final", "g_u", "g_w", "g_h"),
    "backward_outputs": ("u", "w", "h", "lengths", "s", "g_s", "g_final", "g_u", "g_w", "g_h"),
    "backward_final": ("u", "w", "h", "lengths", "s", "g_s", "g_final", "g_u", "g_w", "g_h"),
    "backward_initial": ("u", "w", "h", "lengths", "s", "g_s", "g_final", "g_h"),
}
SIZES = ("T", "K", "per_set", "b0", "b1", "k0", "k1")
_MOST_WIDE = 32  # values a unit: with more, spills undo the gain of a wide tile
# Fields and parameters: with more, separate code for whole and masked tiles takes long to compile
# and saves little, since few of many operations are masked.
_MOST_WHOLE = 100
# Gradients of parameters: more sums do not stay in registers, so that a step would read and write
# all of them. Measured: carrying sums pays for 24 parameters (a block of four units), not for the
# 32 of an LSTM.
_MOST_CARRIED = 24
_SUMMED_TOGETHER = 16  # steps: what they leave to be summed stays in the nearest cache
# Enough to hide the latency of an addition; each takes two of the 16 registers of AVX2.
_SUMS_AT_A_TIME = 6


def kernel_ir(cell: Cell, dtype: str, kinds: Sequence[str] = ("forward", "backward")) -> str:
    """LLVM source of some kernels of a cell in `dtype`; arguments are `POINTERS`, then `SIZES`.

    Kinds are "forward", "forward_outputs", "forward_final", "backward", "backward_outputs",
    "backward_final" and "backward_initial". "forward_outputs" writes only the output fields of the
    states, "forward_final" only the final state, "backward_initial" only the gradient of the
    initial state. "backward_outputs" takes a gradient of the output fields only, "backward_final"
    none. A ValueError names an operation without compiled form.
    """
    functions, declarations = [], set[str]()
    for kind in kinds:
        tiles = _tiles(cell, dtype, -1 if kind.startswith("backward") else 1)
        functions.append(_function(kind, tiles, [_body(kind, tile) for tile in tiles]))
        declarations.update(*(tile.code("").declarations(tile.masked) for tile in tiles))
    backward = any("g_w" in POINTERS[kind] for kind in kinds)
    tables = [_table(cell)] if backward and _summed_later(cell) else []
    return "\n".join([_header(cell, dtype), *functions, *tables, *sorted(declarations), ""])


def _header(cell: Cell, dtype: str) -> str:
    """Comments that state the origin of the code."""
    state, inputs, params = (", ".join(names) or "none" for names in cell.field_names)
    return f"""\
; Recurrence of the cell {cell.name} in {dtype}.
; n = {cell.n} state fields: {state}
; m = {cell.m} input fields{" that all units share" * cell.shared}: {inputs}
; p = {cell.p} parameters: {params}
; Of a state field h, new_h is its value after a step, g_h the gradient of that value and g_old_h
; the gradient of the value before the step; of an input or parameter x, g_x is its gradient."""


def _tiles(cell: Cell, dtype: str, direction: int) -> list[Tile]:
    """Tiles in the order in which they cover the units; the last takes the rest."""
    tiles = [Tile(cell, dtype, "part", masked=True, direction=direction)]
    if cell.n + cell.m + cell.p <= _MOST_WHOLE:
        tiles.insert(0, Tile(cell, dtype, "full", direction=direction))
    if cell.n + cell.p <= _MOST_WIDE and cell.m <= _MOST_WIDE:
        tiles.insert(0, Tile(cell, dtype, "wide", vectors=2, direction=direction))
    return tiles


def _body(kind: str, tile: Tile) -> str:
    if kind.startswith("forward"):
        written = {"forward": tile.cell.n, "forward_outputs": tile.cell.n_outputs}.get(kind, 0)
        return _forward_tile(tile, trace_step(tile.cell), written)
    vjp = trace(tile.cell)[1]
    if kind == "backward_initial":
        outputs = vjp.outputs[: tile.cell.n]
        vjp = Graph(without_unused(vjp.ops, outputs), outputs)
    fields = {"backward_outputs": tile.cell.n_outputs, "backward_final": 0}
    return _backward_tile(tile, vjp, fields.get(kind, tile.cell.n))


def _run(
    tile: Tile, code: VectorCode, graph: Graph, values: dict[str, str], results: Iterable[str]
) -> list[str]:
    """Emit a graph with outputs named `results`; return their registers."""
    names = names_of(tile.cell)
    for op in graph.ops:
        code.comment(in_words(op, names))
        values[op.out] = emit_op(code, op, values)
    for result, out in zip(results, graph.outputs, strict=False):
        code.comment(f"{result} = {operand_in_words(out, names)}")
    return [operand(code, out, values) for out in graph.outputs]


def _values(prefix: str, registers: Iterable[str]) -> dict[str, str]:
    return {f"{prefix}{i}": register for i, register in enumerate(registers)}


def _inputs(tile: Tile, code: VectorCode, row: str, graph: Graph) -> dict[str, str]:
    """Input fields of a row that a graph reads."""
    m, reads = tile.cell.m, graph.reads
    load = tile.load_number if tile.cell.shared else tile.load_soon
    read = [i for i in range(m) if f"u{i}" in reads]
    _comment(code, "read", [tile.cell.field_names[1][i] for i in read])
    return {f"u{i}": load(code, "%u", row, m, i) for i in read}


def _comment(code: VectorCode, action: str, names: Sequence[str]) -> None:
    if names:
        code.comment(f"{action} {', '.join(names)}")


def _forward_tile(tile: Tile, step: Graph, written: int) -> str:
    cell, sweep = tile.cell, Sweep.of(tile)
    results = [f"new_{name}" for name in cell.field_names[0]]
    params = tile.load_fields(sweep.begin, "%w", "%set", cell.p)
    initial = tile.load_fields(sweep.begin, "%h", "%b", cell.n)
    state = tile.registers("h", cell.n)

    row = sweep.step.emit(f"add i64 %row0, %{tile.name}.i")
    inputs = _inputs(tile, sweep.step, row, step)
    values = _values("h", state) | inputs | _values("w", params)
    new = _run(tile, sweep.step, step, values, results)
    sweep.carry(state, initial, new)
    if written:
        _comment(sweep.step, "write", results[:written])
        tile.store_fields(sweep.step, "%s", row, new[:written], soon=True)
        _store_zeros(tile, sweep.pad, "%s", written)
    tile.store_fields(sweep.end, "%final", "%b", state)
    return sweep.blocks(tile.name)


def _backward_tile(tile: Tile, vjp: Graph, fields: int) -> str:
    """Gradients of the initial state and, if among the outputs, of inputs and params.

    `given` state fields have an incoming gradient at every step.
    """
    cell, sweep = tile.cell, Sweep.of(tile)
    begin, step, n = sweep.begin, sweep.step, cell.n
    state, inputs, params = cell.field_names
    results = [f"g_old_{name}" for name in state] + [f"g_{name}" for name in inputs + params]
    g, s = tile.registers("g", n), tile.registers("s", n)
    weights = tile.load_fields(begin, "%w", "%set", cell.p)
    # Steps run from the last to the first: t = length - 1 - i.
    last = step.emit("sub i64 %length, 1")
    step.lines.append(f"%{tile.name}.t = sub i64 {last}, %{tile.name}.i")
    row = step.emit(f"add i64 %row0, %{tile.name}.t")

    # Gradient of the new state: of this step plus that of later steps.
    _comment(step, "read and add", [f"g_{name}" for name in state[:fields]])
    incoming = [tile.load_soon(step, "%g_s", row, fields, i) for i in range(fields)]
    total = [step.binary("add", a, b) for a, b in zip(incoming, g, strict=False)] + g[fields:]
    values = _values("g", total) | _values("w", weights) | _inputs(tile, step, row, vjp)
    if any(name[0] in "hs" for name in vjp.reads):
        # The old state is in the row before, or the initial one; it becomes the new state next.
        _comment(step, "read", state)
        first = step.emit(f"icmp eq i64 %{tile.name}.t, 0")
        base = step.emit(f"select i1 {first}, ptr %h, ptr %s")
        before = step.emit(f"sub i64 {row}, 1")
        source_row = step.emit(f"select i1 {first}, i64 %b, i64 {before}")
        old = [tile.load_soon(step, base, source_row, n, i) for i in range(n)]
        # The newest state is in the row of the last step; for an empty sequence any row will do.
        last = begin.emit("sub i64 %length, 1")
        last_row = begin.emit(f"add i64 %row0, {last}")
        empty = begin.emit("icmp eq i64 %length, 0")
        newest = begin.emit(f"select i1 {empty}, i64 %row0, i64 {last_row}")
        sweep.carry(s, tile.load_fields(begin, "%s", newest, n), old)
        values |= _values("h", old) | _values("s", s)
    gradients = _run(tile, step, vjp, values, results)

    sweep.carry(g, tile.load_fields(begin, "%g_final", "%b", n), gradients[:n])
    tile.store_fields(sweep.end, "%g_h", "%b", g)
    if len(gradients) > n:
        if not cell.shared:
            _comment(step, "write", results[n:][: cell.m])
            tile.store_fields(step, "%g_u", row, gradients[n:][: cell.m], soon=True)
            _store_zeros(tile, sweep.pad, "%g_u", cell.m)
        # Gradients of the parameters are added up over time.
        _comment(step, "add up", results[n + cell.m :])
        outputs = vjp.outputs[n + cell.m :]
        if _summed_later(cell):
            _add_up_later(tile, sweep, values)
        else:
            sums = tile.registers("a", cell.p)
            parts = zip(sums, gradients[n + cell.m :], outputs, strict=True)
            added = [x if out == 0.0 else step.binary("add", x, part) for x, part, out in parts]
            sweep.carry(sums, [begin.constant(0.0)] * cell.p, added)
            tile.store_fields(sweep.end, "%g_w", "%b", sums)
    return sweep.blocks(tile.name)


def _summed_later(cell: Cell) -> bool:
    return sum(factors != (0.0,) for factors in _factors(cell)) > _MOST_CARRIED


def _factors(cell: Cell) -> list[tuple[Operand, ...]]:
    """One or two factors of each parameter's gradient at a step."""
    vjp = trace(cell)[1]
    products = {op.out: op.args for op in vjp.ops if op.name == "mul"}
    outputs = vjp.outputs[cell.n + cell.m :]
    return [products.get(out, (out,)) if isinstance(out, str) else (out,) for out in outputs]


def _kept(cell: Cell) -> list[Operand]:
    """Vectors among the factors, and 1 as the second factor of a gradient with only one."""
    factors = (a for term in _factors(cell) for a in term if isinstance(a, str))
    return [*dict.fromkeys(factors), 1.0]


def _terms(cell: Cell) -> list[tuple[int, int, int]]:
    """Parameters with nonzero gradient, and the indices of the two factors in `_kept`."""
    kept, terms = _kept(cell), []
    for i, factors in enumerate(_factors(cell)):
        if factors != (0.0,):
            first, second = (*factors, 1.0)[:2]
            terms.append((i, kept.index(first), kept.index(second)))
    return terms


def _table(cell: Cell) -> str:
    """`_terms` as an array, read in groups of a few sums."""
    numbers = ", ".join(f"i64 {number}" for term in _terms(cell) for number in term)
    return f"@terms = private constant [{3 * len(_terms(cell))} x i64] [{numbers}]"


def _add_up_later(tile: Tile, sweep: Sweep, values: Mapping[str, str]) -> None:
    """Keep the factors of a step's gradients; add their products to the sums after several steps.

    A few sums at a time, in registers, over the steps in order: bit-equal to adding step by step,
    except that a gradient with one factor, such as of a bias, is rounded before it is added.
    """
    name, cell, step, kind = tile.name, tile.cell, sweep.step, sweep.step.type
    terms, kept = _terms(cell), _kept(cell)
    slot = step.emit(f"and i64 %{name}.i, {_SUMMED_TOGETHER - 1}")
    first = step.emit(f"mul i64 {slot}, {len(kept)}")
    for place, factor in enumerate(kept):
        at = step.emit(f"add i64 {first}, {place}")
        address = step.emit(f"getelementptr {kind}, ptr %kept, i64 {at}")
        step.lines.append(f"store {kind} {operand(step, factor, values)}, ptr {address}")
    count = step.emit(f"add i64 {slot}, 1")
    full = step.emit(f"icmp eq i64 {count}, {_SUMMED_TOGETHER}")
    done = step.emit(f"add i64 %{name}.i, 1")
    ended = step.emit(f"icmp eq i64 {done}, %length")
    due = step.emit(f"or i1 {full}, {ended}")
    step.lines.append(f"br i1 {due}, label %{name}.groups, label %{name}.again")
    tile.store_fields(sweep.begin, "%g_w", "%b", [sweep.begin.constant(0.0)] * cell.p)

    # A loop over whole groups, with terms from the table, then the rest.
    whole = len(terms) // _SUMS_AT_A_TIME
    read = tile.code("group.read.")
    start = read.emit(f"mul i64 %{name}.g, {3 * _SUMS_AT_A_TIME}")
    of_group = []
    for i in range(3 * _SUMS_AT_A_TIME):
        at = read.emit(f"add i64 {start}, {i}")
        at = read.emit(f"getelementptr i64, ptr @terms, i64 {at}")
        of_group.append(read.emit(f"load i64, ptr {at}"))
    group = [of_group[i : i + 3] for i in range(0, len(of_group), 3)]
    rest = [[str(number) for number in term] for term in terms[whole * _SUMS_AT_A_TIME :]]
    after = f"{name}.rest" if rest else f"{name}.again"
    turn = f"{name}.group"
    lines, sums = _sums(tile, turn, f"{turn}.again", group, count)
    lines = [*read.lines, *lines]
    sweep.after_step += loop(f"{name}.groups", turn, f"%{name}.g", ("0", f"{name}.step"),
                             str(whole), after, [], lines, f"{turn}.again") + sums  # fmt: skip
    if rest:
        lines, sums = _sums(tile, after, f"{name}.again", rest, count)
        sweep.after_step += block(after, lines) + sums


def _sums(
    tile: Tile, label: str, after: str, terms: Sequence[Sequence[str]], count: str
) -> tuple[list[str], str]:
    """Add up products over `count` steps: lines of the block `label`, and blocks up to `after`.

    A term holds the indices of a parameter and of two kept factors.
    """
    begin, body, end = (tile.code(f"{label}.{part}.") for part in ("begin", "step", "end"))
    addresses = [tile.address(begin, "%g_w", "%b", tile.cell.p, number) for number, *_ in terms]
    sums = [f"%{label}.a{i}" for i in range(len(terms))]
    before = [begin.load(address) for address in addresses]

    def factor(place: str) -> str:
        at = body.once(f"add i64 {first}, {place}")
        address = body.once(f"getelementptr {body.type}, ptr %kept, i64 {at}")
        return body.once(f"load {body.type}, ptr {address}")

    first = body.emit(f"mul i64 %{label}.j, {len(_kept(tile.cell))}")
    added = [
        body.binary("add", total, body.binary("mul", factor(a), factor(b)))
        for total, (_, a, b) in zip(sums, terms, strict=True)
    ]
    for total, address in zip(sums, addresses, strict=True):
        end.store(total, address)
    phis = [
        f"{total} = phi {body.type} [ {old}, %{label} ], [ {new}, %{label}.step ]"
        for total, old, new in zip(sums, before, added, strict=True)
    ]
    return [*begin.lines, f"br label %{label}.test"], (
        loop(f"{label}.test", f"{label}.step", f"%{label}.j", ("0", label), count,
             f"{label}.end", phis, body.lines)
        + block(f"{label}.end", [*end.lines, f"br label %{after}"])
    )  # fmt: skip


def _store_zeros(tile: Tile, code: VectorCode, base: str, count: int) -> None:
    """Write zeros to a row after the end of the sequence."""
    row = code.emit(f"add i64 %row0, %{tile.name}.padded")
    tile.store_fields(code, base, row, [code.constant(0.0)] * count)


def _function(kind: str, tiles: Sequence[Tile], bodies: Sequence[str]) -> str:
    cell, room = tiles[0].cell, ""
    if "g_w" in POINTERS[kind] and _summed_later(cell):
        count = _SUMMED_TOGETHER * len(_kept(cell))
        room = f"\n  %kept = alloca {tiles[0].code('').type}, i64 {count}"
    pointers = ", ".join(f"ptr noalias %{name}" for name in POINTERS[kind])
    sizes = ", ".join(f"i64 %{name}" for name in SIZES)
    *whole, part = tiles
    begun, before = "%k0", "sequence"
    heads: list[str] = []
    for tile in whole:
        heads.append(_whole_tiles(tile, begun, before, f"{tiles[len(heads) + 1].name}.units"))
        begun, before = f"%{tile.name}.k", f"{tile.name}.units"
    heads.append(_masked_tiles(part, begun, before))
    units = "".join(head + body for head, body in zip(heads, bodies, strict=True))
    return f"""
define void @{kind}({pointers}, {sizes}) nounwind {{
entry:{room}
  br label %sequences
sequences:
  %b = phi i64 [ %b0, %entry ], [ %b.next, %sequence.end ]
  %b.more = icmp slt i64 %b, %b1
  br i1 %b.more, label %sequence, label %return
sequence:
  %length.at = getelementptr i64, ptr %lengths, i64 %b
  %length = load i64, ptr %length.at
  %row0 = mul i64 %b, %T
  %set = udiv i64 %b, %per_set
  br label %{tiles[0].name}.units
{units}sequence.end:
  %b.next = add i64 %b, 1
  br label %sequences
return:
  ret void
}}
"""


def _whole_tiles(tile: Tile, begun: str, before: str, after: str) -> str:
    """Loop over the whole tiles from unit `begun` on."""
    name = tile.name
    done = block(f"{name}.done", [f"br label %{name}.units"])
    return done + block(
        f"{name}.units",
        [
            f"%{name}.k = phi i64 [ {begun}, %{before} ], [ %{name}.next, %{name}.done ]",
            f"%{name}.next = add i64 %{name}.k, {tile.lanes}",
            f"%{name}.fits = icmp sle i64 %{name}.next, %k1",
            f"br i1 %{name}.fits, label %{name}.begin, label %{after}",
        ],
    )


def _masked_tiles(tile: Tile, begun: str, before: str) -> str:
    """Loop over the tiles from unit `begun` on; the last may be narrower."""
    name, vector = tile.name, f"<{tile.lanes} x i64>"
    iota = "<" + ", ".join(f"i64 {i}" for i in range(tile.lanes)) + ">"
    done = block(f"{name}.done", [f"br label %{name}.units"])
    return done + block(
        f"{name}.units",
        [
            f"%{name}.k = phi i64 [ {begun}, %{before} ], [ %{name}.next, %{name}.done ]",
            f"%{name}.next = add i64 %{name}.k, {tile.lanes}",
            f"%left = sub i64 %k1, %{name}.k",
            "%any = icmp sgt i64 %left, 0",
            f"%left.in = insertelement {vector} poison, i64 %left, i64 0",
            f"%left.all = shufflevector {vector} %left.in, {vector} poison, "
            f"<{tile.lanes} x i32> zeroinitializer",
            f"%mask = icmp slt {vector} {iota}, %left.all",
            f"br i1 %any, label %{name}.begin, label %sequence.end",
        ],
    )


_SIGNS = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "pow": "**",
    "gt": ">", "ge": ">=", "lt": "<", "le": "<=", "eq": "==", "ne": "!=",
}  # fmt: skip


def names_of(cell: Cell) -> dict[str, str]:
    """Names of the cell's fields by their names in a trace: h0, u0, w0, g0, s0 and so on."""
    state, inputs, params = cell.field_names
    groups = {
        "h": state,
        "u": inputs,
        "w": params,
        "g": [f"g_{name}" for name in state],
        "s": [f"new_{name}" for name in state],
    }
    return {
        f"{prefix}{i}": name for prefix, group in groups.items() for i, name in enumerate(group)
    }


def in_words(op: Op, names: Mapping[str, str]) -> str:
    """Write an operation as a line of Python, with the cell's own names."""
    args = [operand_in_words(a, names) for a in op.args]
    if op.name in _SIGNS:
        return f"{op.out} = {args[0]} {_SIGNS[op.name]} {args[1]}"
    if op.name == "rsub":
        return f"{op.out} = {args[1]} - {args[0]}"
    if op.name == "neg":
        return f"{op.out} = -{args[0]}"
    return f"{op.out} = {op.name}({', '.join(args)})"


def operand_in_words(value: Operand, names: Mapping[str, str]) -> str:
    """Name of a value, or a number."""
    return names.get(value, value) if isinstance(value, str) else repr(value).removesuffix(".0")
