"""A step of a matrix form as LLVM code: elementwise phases, and matrix products between them.

Subclasses of `Phases` define the layout of arrays and working memory: the lanes of a vector
register hold units of one block in `_dense`, the same unit of many blocks in `rolled_ir`.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence

from tsrnn.kernels._cpu.code import Function
from tsrnn.kernels._cpu.vector_ir import TILE_BYTES, Format, emit_op, operand
from tsrnn.kernels._graph import Operand
from tsrnn.kernels._program import Phase, Plan, Product, Program

Written = Mapping[str, tuple[str, int]]  # results of each step: array and number of fields


class Phases(Function, ABC):
    """A function over time, forward or backward, that runs a program at every step."""

    def __init__(self, kind: str, plan: Plan, fmt: Format, pointers: Sequence[str],
                 sizes: Sequence[str]) -> None:  # fmt: skip
        super().__init__(kind, fmt, TILE_BYTES // fmt.bytes, pointers, sizes)
        form = plan.form
        self.program: Program = getattr(plan, kind)
        self.forward = kind == "forward"
        self.n, self.m, self.n_vectors = len(form.states), len(form.inputs), len(form.vectors)
        self.b = self.row = ""  # sequence, and its row in arrays of all steps
        self.old = ("", "")  # array and row of the old state

    @abstractmethod
    def slot(self, number: int) -> str:
        """Address of a value in working memory."""

    @abstractmethod
    def field(self, base: str, row: str, fields: int, number: int) -> str:
        """Address of a value in an array (rows, fields)."""

    @abstractmethod
    def parameter(self, number: int) -> str:
        """Load a value of a vector of parameters."""

    @abstractmethod
    def gradient(self, number: int) -> str:
        """Address of the gradient of a value of a vector of parameters."""

    @abstractmethod
    def each_sequence(self, body: Callable[[], None]) -> None:
        """Emit `body` for the sequences that have this step."""

    @abstractmethod
    def each_value(self, body: Callable[[], None]) -> None:
        """Emit `body` for all values of a vector, several in the lanes of a register."""

    @abstractmethod
    def multiply(self, product: Product) -> None:
        """Emit a product for the sequences that have this step."""

    @abstractmethod
    def prefetch_later(self, address: str, fields: int, write: bool = False) -> None:
        """Prefetch the values of a later step; `address` lies in an array (rows, fields)."""

    def kept(self, number: int) -> str:
        """Load a slot."""
        return self.load_whole(self.slot(number))

    def keep(self, value: str, number: int) -> None:
        """Store to a slot."""
        self.store_whole(value, self.slot(number))

    def load_whole(self, address: str) -> str:
        """Load a whole vector from working memory."""
        mask = self.mask
        self.mask = ""
        value = self.load(address)
        self.mask = mask
        return value

    def store_whole(self, value: str, address: str) -> None:
        """Store a whole vector to working memory."""
        mask = self.mask
        self.mask = ""
        self.store(value, address)
        self.mask = mask

    def begin(self) -> None:
        """Load the initial state, or the gradient of the final one, and zero the sums."""
        base = "%h" if self.forward else "%g_final"
        for i in range(self.n):
            self.keep(self.load(self.field(base, self.b, self.n, i)), i)
        for i in range(0 if self.forward else self.n_vectors):
            self.keep(self.constant(0.0), self.n + i)

    def end(self) -> None:
        """Store the final state, or the gradients of the initial one and of vectors."""
        base = "%final" if self.forward else "%g_h"
        for i in range(self.n):
            self.store(self.kept(i), self.field(base, self.b, self.n, i))
        for i in range(0 if self.forward else self.n_vectors):
            self.store(self.kept(self.n + i), self.gradient(i))

    def step(self, t: str, written: Written) -> None:
        """Phases of step t; `written` gives the array of each stored result."""
        plan = self.program
        for phase in plan.phases:
            if phase.ops or self._copies(phase) or phase is plan.phases[-1]:
                self.each_sequence(functools.partial(self._run, phase, t, written))
            for product in phase.products:
                self.multiply(product)

    def _run(self, phase: Phase, t: str, written: Written) -> None:
        self.row = self.sum(self.integer("mul", self.b, "%T"), t)
        if not self.forward:  # the old state is in the row before, or the initial one
            first = self.emit(f"icmp eq i64 {t}, 0")
            base = self.emit(f"select i1 {first}, ptr %h, ptr %s")
            before = self.integer("sub", self.row, 1)
            self.old = (base, self.emit(f"select i1 {first}, i64 {self.b}, i64 {before}"))
        self.each_value(lambda: self._phase(phase, written))

    def write(self, value: str, base: str, fields: int, number: int) -> None:
        """Store a result of this step to an array (rows, fields)."""
        address = self.field(base, self.row, fields, number)
        self.prefetch_later(address, fields, write=True)
        self.store(value, address)

    def _copies(self, phase: Phase) -> list[tuple[Operand, int]]:
        """Operands to be copied to the slot where their product reads them."""
        plan = self.program
        operands = [
            (x, plan.operands[p] + i) for p in phase.products for i, x in enumerate(p.operands)
        ]
        return [(x, slot) for x, slot in operands if plan.homes.get(str(x)) != slot]

    def _phase(self, phase: Phase, written: Written) -> None:
        """Operations of a phase on a value, with stores of the results."""
        plan = self.program
        values = {name: self._value(name) for name in sorted(plan.reads(phase))}
        for op in phase.ops:
            values[op.out] = emit_op(self, op, values)
        computed = {op.out for op in phase.ops}
        for name in sorted(computed & plan.homes.keys()):
            self.keep(values[name], plan.homes[name])
        for x, slot in self._copies(phase):
            self.keep(operand(self, x, values), slot)
        last = phase is plan.phases[-1]
        earlier = {op.out for phase in plan.phases[:-1] for op in phase.ops}
        for result, (base, fields) in written.items():
            for i, x in enumerate(plan.results[result]):
                if x in computed or (last and x not in earlier):
                    self.write(operand(self, x, values), base, fields, i)
        if not last:
            return
        # Carried to the next step: the state, or its gradient and gradients of vectors.
        for i, x in enumerate(plan.results["s" if self.forward else "g_h"]):
            self.keep(operand(self, x, values), i)
        for i, x in enumerate(() if self.forward else plan.results["g_w"]):
            total = self.binary("add", self.kept(self.n + i), operand(self, x, values))
            self.keep(total, self.n + i)

    def _value(self, name: str) -> str:
        """Load a value that a phase reads."""
        if name in self.program.homes:
            return self.kept(self.program.homes[name])
        kind, i = name[0], int(name[1:])
        if kind == "w":
            return self.parameter(i)
        base, row, fields = {
            "h": (*self.old, self.n),
            "s": ("%s", self.row, self.n),
            "u": ("%u", self.row, self.m),
            "g": ("%g_s", self.row, self.n),
        }[kind]
        address = self.field(base, row, fields, i)
        self.prefetch_later(address, fields)
        value = self.load(address)
        return self.binary("add", self.kept(i), value) if kind == "g" else value
