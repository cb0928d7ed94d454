"""LLVM functions with loops and variables, on top of vector arithmetic."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

from tsrnn.kernels._cpu.vector_ir import Format, VectorCode

TILE_BYTES = 64  # of a vector of units in elementwise work


class Function(VectorCode):
    """A function whose arguments are pointers, then integers of 64 bits.

    `mask` limits loads and stores of vectors while it is set.
    """

    def __init__(self, name: str, fmt: Format, lanes: int, pointers: Sequence[str],
                 sizes: Sequence[str], attributes: str = "") -> None:  # fmt: skip
        super().__init__(fmt, lanes, "v.")
        arguments = [f"ptr noalias %{p}" for p in pointers] + [f"i64 %{size}" for size in sizes]
        self._head = f"define {attributes} void @{name}({', '.join(arguments)}) nounwind"
        self._variables: list[str] = []
        self._labels = 0
        self.mask = ""

    def text(self) -> str:
        """Write the whole function."""
        lines = [self._head + " {", "entry:", *self._variables, *self.lines, "ret void", "}"]
        return "\n".join(lines) + "\n\n"

    def do(self, instruction: str) -> None:
        """Append an instruction without result."""
        self.lines.append(instruction)

    def integer(self, op: str, a: str | int, b: str | int) -> str:
        """``add``, ``sub``, ``mul`` or another operation on integers."""
        return self.emit(f"{op} i64 {a}, {b}")

    def sum(self, *terms: str | int) -> str:
        """Add integers."""
        total = str(terms[0])
        for term in terms[1:]:
            total = self.integer("add", total, term)
        return total

    def variable(self, kind: str = "i64") -> str:
        """Make a variable, to be `set` before it is `get`."""
        self._variables.append(f"%var{len(self._variables)} = alloca {kind}")
        return f"%var{len(self._variables) - 1}"

    def set(self, variable: str, value: str | int, kind: str = "i64") -> None:
        """Assign to a variable."""
        self.do(f"store {kind} {value}, ptr {variable}")

    def get(self, variable: str, kind: str = "i64") -> str:
        """Value of a variable."""
        return self.emit(f"load {kind}, ptr {variable}")

    @contextlib.contextmanager
    def loop(self, condition: Callable[[], str]) -> Iterator[None]:
        """Repeat what is emitted inside while a condition holds."""
        head, body, after = self._new_labels(3)
        self._go_to(head)
        self.do(f"br i1 {condition()}, label %{body}, label %{after}")
        self.do(f"{body}:")
        yield
        self.do(f"br label %{head}")
        self.do(f"{after}:")

    @contextlib.contextmanager
    def when(self, condition: str) -> Iterator[None]:
        """Run what is emitted inside if a condition holds."""
        body, after = self._new_labels(2)
        self.do(f"br i1 {condition}, label %{body}, label %{after}")
        self.do(f"{body}:")
        yield
        self._go_to(after)

    @contextlib.contextmanager
    def up_to(self, stop: str | int, step: str | int = 1, counter: str = "") -> Iterator[str]:
        """Count in steps that fit below `stop`; a given `counter` goes on from where it is."""
        if not counter:
            counter = self.variable()
            self.set(counter, 0)

        def fits() -> str:
            end = self.integer("add", self.get(counter), step)
            return self.emit(f"icmp sle i64 {end}, {stop}")

        with self.loop(fits):
            now = self.get(counter)
            yield now
            self.set(counter, self.integer("add", now, step))

    def _new_labels(self, count: int) -> list[str]:
        self._labels += count
        return [f"label{self._labels - i}" for i in range(count)]

    def _go_to(self, label: str) -> None:
        self.do(f"br label %{label}")
        self.do(f"{label}:")

    def at(self, base: str, *offsets: str | int, kind: str = "") -> str:
        """Address of an element whose index is the sum of some offsets."""
        kind = kind or self.format.name
        return self.emit(f"getelementptr {kind}, ptr {base}, i64 {self.sum(*offsets)}")

    def integer_at(self, base: str, index: str) -> str:
        """Load an integer."""
        return self.emit(f"load i64, ptr {self.at(base, index, kind='i64')}")

    def load(self, address: str) -> str:
        """Load a vector, zero where it is masked."""
        if not self.mask:
            return self.emit(f"load {self.type}, ptr {address}, align {self.format.bytes}")
        return self.emit(
            f"call {self.type} @llvm.masked.load.{self._suffix}(ptr {address}, "
            f"i32 {self.format.bytes}, {self.mask_type} {self.mask}, {self.type} zeroinitializer)"
        )

    def store(self, value: str, address: str) -> None:
        """Store a vector."""
        if not self.mask:
            self.do(f"store {self.type} {value}, ptr {address}, align {self.format.bytes}")
        else:
            self.do(
                f"call void @llvm.masked.store.{self._suffix}({self.type} {value}, "
                f"ptr {address}, i32 {self.format.bytes}, {self.mask_type} {self.mask})"
            )

    def broadcast(self, address: str) -> str:
        """Load one number into every lane."""
        number = self.emit(f"load {self.format.name}, ptr {address}")
        return self.spread(self.format.name, number)

    def spread(self, kind: str, value: str) -> str:
        """Vector of one value."""
        vector = f"<{self.lanes} x {kind}>"
        first = self.emit(f"insertelement {vector} poison, {kind} {value}, i64 0")
        lanes = f"<{self.lanes} x i32> zeroinitializer"
        return self.emit(f"shufflevector {vector} {first}, {vector} poison, {lanes}")

    def first_lanes(self, count: str) -> str:
        """Mask of so many lanes."""
        numbers = ", ".join(f"i64 {i}" for i in range(self.lanes))
        limit = self.spread("i64", count)
        return self.emit(f"icmp slt <{self.lanes} x i64> <{numbers}>, {limit}")

    @property
    def _suffix(self) -> str:
        return f"v{self.lanes}f{8 * self.format.bytes}.p0"

    def declarations(self) -> set[str]:
        """Declare the intrinsics that a function on such vectors may call."""
        kind, mask, suffix = self.type, self.mask_type, self._suffix
        short = suffix.removesuffix(".p0")
        functions = ("sqrt", "fabs", "log", "sin", "cos")
        return {
            f"declare {kind} @llvm.masked.load.{suffix}(ptr, i32, {mask}, {kind})",
            f"declare void @llvm.masked.store.{suffix}({kind}, ptr, i32, {mask})",
            f"declare {kind} @llvm.pow.{short}({kind}, {kind})",
            f"declare {kind} @llvm.fmuladd.{short}({kind}, {kind}, {kind})",
            *(f"declare {kind} @llvm.{name}.{short}({kind})" for name in functions),
            "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
            "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)",
        }
