"""A tile of units: loads, stores, and the pass over the steps of a sequence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tsrnn.kernels._cpu.vector_ir import FORMATS, TILE_BYTES, VectorCode

if TYPE_CHECKING:
    from tsrnn.kernels._cell import Cell

# For AVX2, LLVM compares every load with all others unless something separates them. A prefetch of
# the next load does so for free.
_LOADS_AT_A_TIME = 16
AHEAD = 8  # steps between prefetching a row and using it, to cover the latency of memory


class Tile:
    """Addresses, loads and stores of one tile of units of a cell.

    `name` is the prefix of its registers. A tile has a size of `vectors` times `TILE_BYTES`: with
    more, steps of several tiles overlap. `masked` uses only the lanes in the register ``%mask``.
    Rows are in ascending (1) or descending (-1) order.
    """

    def __init__(
        self,
        cell: Cell,
        dtype: str,
        name: str,
        vectors: int = 1,
        masked: bool = False,
        direction: int = 1,
    ) -> None:
        self.cell = cell
        self.format = FORMATS[dtype]
        self.lanes = vectors * TILE_BYTES // self.format.bytes
        self.name = name
        self.masked = masked
        self.direction = direction

    def code(self, stage: str) -> VectorCode:
        """Begin a stretch of code."""
        code = VectorCode(self.format, self.lanes, f"{self.name}.{stage}.")
        code.mask = "%mask" if self.masked else ""
        return code

    def registers(self, kind: str, count: int) -> list[str]:
        """Names of the registers carried from step to step."""
        return [f"%{self.name}.{kind}{i}" for i in range(count)]

    def load(self, code: VectorCode, base: str, row: str, fields: int, field: int) -> str:
        """Load `field` in row `row` of an array (rows, fields, K)."""
        return code.load(self.address(code, base, row, fields, field))

    def load_soon(self, code: VectorCode, base: str, row: str, fields: int, field: int) -> str:
        """Load a field and prefetch the one `AHEAD` steps later."""
        pointer = self.address(code, base, row, fields, field)
        self._fetch(code, pointer, fields, write=False)
        return code.load(pointer)

    def load_fields(self, code: VectorCode, base: str, row: str, count: int) -> list[str]:
        """Load all fields of a row."""
        fields = []
        for i in range(count):
            pointer = self.address(code, base, row, count, i)
            if i % _LOADS_AT_A_TIME == _LOADS_AT_A_TIME - 1:
                code.prefetch(pointer, write=False)
            fields.append(code.load(pointer))
        return fields

    def load_number(self, code: VectorCode, base: str, row: str, count: int, index: int) -> str:
        """Load one number of an array (rows, count) into every lane."""
        start = code.once(f"mul i64 {row}, {count}")
        at = code.emit(f"add i64 {start}, {index}")
        return code.broadcast(code.emit(f"getelementptr {self.format.name}, ptr {base}, i64 {at}"))

    def store_fields(
        self, code: VectorCode, base: str, row: str, values: Sequence[str], soon: bool = False
    ) -> None:
        """Store all fields of a row; with `soon`, prefetch the row `AHEAD` steps later."""
        for i, value in enumerate(values):
            pointer = self.address(code, base, row, len(values), i)
            if soon:
                self._fetch(code, pointer, len(values), write=True)
            code.store(value, pointer)

    def address(self, code: VectorCode, base: str, row: str, fields: int, field: int | str) -> str:
        """Pointer to unit k of `field` in row `row` of an array (rows, fields, K)."""
        # Written once for all fields of a row, to save the compiler's time.
        width = code.once(f"mul i64 %K, {fields}")
        start = code.once(f"mul i64 {row}, {width}")
        first = code.once(f"add i64 {start}, %{self.name}.k")
        pointer = code.once(f"getelementptr {self.format.name}, ptr {base}, i64 {first}")
        if field == 0:
            return pointer
        offset = code.once(f"mul i64 %K, {field}")
        return code.emit(f"getelementptr {self.format.name}, ptr {pointer}, i64 {offset}")

    def _fetch(self, code: VectorCode, pointer: str, fields: int, write: bool) -> None:
        """Prefetch a field some rows later."""
        # A tile reads one cache line of many rows, which the processor cannot predict.
        distance = code.once(f"mul i64 %K, {self.direction * AHEAD * fields}")
        there = code.emit(f"getelementptr {self.format.name}, ptr {pointer}, i64 {distance}")
        code.prefetch(there, write)
        for start in range(TILE_BYTES, self.lanes * self.format.bytes, TILE_BYTES):
            code.prefetch(code.emit(f"getelementptr i8, ptr {there}, i64 {start}"), write)


@dataclass
class Sweep:
    """One tile's pass over the steps of a sequence, in four stretches of code.

    `carried` lists the registers carried from step to step: name, value before the
    first step, value after a step.
    """

    begin: VectorCode
    step: VectorCode
    end: VectorCode
    pad: VectorCode  # runs on the steps after the sequence's end
    carried: list[tuple[str, str, str]] = field(default_factory=list)
    after_step: str = ""  # blocks between the end of a step and its ``.again``, if any

    @classmethod
    def of(cls, tile: Tile) -> Sweep:
        """Begin the pass of a tile."""
        return cls(tile.code("begin"), tile.code("step"), tile.code("end"), tile.code("pad"))

    def carry(self, names: Sequence[str], first: Sequence[str], following: Sequence[str]) -> None:
        """Keep registers from step to step."""
        self.carried += zip(names, first, following, strict=True)

    def blocks(self, name: str) -> str:
        """Write the basic blocks; ``%{name}.i`` counts steps, ``%{name}.padded`` padded ones."""
        last = f"{name}.again" if self.after_step else f"{name}.step"
        phis = [
            f"{register} = phi {self.begin.type} [ {first}, %{name}.begin ], "
            f"[ {following}, %{last} ]"
            for register, first, following in self.carried
        ]
        return (
            block(f"{name}.begin", [*self.begin.lines, f"br label %{name}.test"])
            + loop(f"{name}.test", f"{name}.step", f"%{name}.i", ("0", f"{name}.begin"),
                   "%length", f"{name}.end", phis, self.step.lines, last)
            + self.after_step
            + block(f"{name}.end", [*self.end.lines, f"br label %{name}.pads"])
            + loop(f"{name}.pads", f"{name}.pad", f"%{name}.padded", ("%length", f"{name}.end"),
                   "%T", f"{name}.done", [], self.pad.lines)
        )  # fmt: skip


def loop(
    test: str,
    body: str,
    counter: str,
    start: tuple[str, str],
    stop: str,
    after: str,
    phis: Sequence[str],
    lines: Sequence[str],
    last: str = "",
) -> str:
    """Blocks that run `lines` for `counter` from `start` to `stop`.

    `start` is its first value and the preceding block; `last` is the block that ends a turn, if
    `lines` begin others.
    """
    first, before = start
    last = last or body
    head = [
        f"{counter} = phi i64 [ {first}, %{before} ], [ {counter}.next, %{last} ]",
        *phis,
        f"{counter}.more = icmp slt i64 {counter}, {stop}",
        f"br i1 {counter}.more, label %{body}, label %{after}",
    ]
    tail = [f"{counter}.next = add i64 {counter}, 1", f"br label %{test}"]
    if last == body:
        return block(test, head) + block(body, [*lines, *tail])
    return block(test, head) + block(body, lines) + block(last, tail)


def block(label: str, lines: Sequence[str]) -> str:
    """Write a basic block."""
    return "\n".join([f"{label}:", *(f"  {line}" for line in lines)]) + "\n"
