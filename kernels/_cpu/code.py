"""LLVM functions with loops and variables, on top of vector arithmetic."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

from tsrnn.kernels._cpu.vector_ir import Format, VectorCode


class Function(VectorCode):
    """A function with pointer arguments, then 64-bit integer arguments."""

    def __init__(self, name: str, fmt: Format, lanes: int, pointers: Sequence[str],
                 sizes: Sequence[str], attributes: str = "") -> None:  # fmt: skip
        super().__init__(fmt, lanes, "v.")
        arguments = [f"ptr noalias %{p}" for p in pointers] + [f"i64 %{size}" for size in sizes]
        self._head = f"define {attributes} void @{name}({', '.join(arguments)}) nounwind"
        self._variables: list[str] = []
        self._labels = 0

    def text(self) -> str:
        """Write the whole function."""
        lines = [self._head + " {", "entry:", *self._variables, *self.lines, "ret void", "}"]
        return "\n".join(lines) + "\n\n"

    def do(self, instruction: str) -> None:
        """Append an instruction without a result."""
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
        """Declare a variable; `set` it before `get`."""
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
        """Repeat the code emitted inside while a condition holds."""
        head, body, after = self._new_labels(3)
        self._go_to(head)
        self.do(f"br i1 {condition()}, label %{body}, label %{after}")
        self.do(f"{body}:")
        yield
        self.do(f"br label %{head}")
        self.do(f"{after}:")

    @contextlib.contextmanager
    def when(self, condition: str) -> Iterator[None]:
        """Run the code emitted inside if a condition holds."""
        body, after = self._new_labels(2)
        self.do(f"br i1 {condition}, label %{body}, label %{after}")
        self.do(f"{body}:")
        yield
        self._go_to(after)

    @contextlib.contextmanager
    def up_to(self, stop: str | int, step: str | int = 1, counter: str = "") -> Iterator[str]:
        """Count in steps that fit below `stop`; a given `counter` continues from its value."""
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
        """Address of an element by the sum of its offsets."""
        kind = kind or self.format.name
        return self.emit(f"getelementptr {kind}, ptr {base}, i64 {self.sum(*offsets)}")

    def integer_at(self, base: str, index: str) -> str:
        """Load an integer."""
        return self.emit(f"load i64, ptr {self.at(base, index, kind='i64')}")

    def first_lanes(self, count: str) -> str:
        """Mask of the first `count` lanes."""
        numbers = ", ".join(f"i64 {i}" for i in range(self.lanes))
        limit = self.spread("i64", count)
        return self.emit(f"icmp slt <{self.lanes} x i64> <{numbers}>, {limit}")
