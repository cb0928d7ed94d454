"""A matrix form as programs: elementwise phases with matrix products between them.

The form is traced on one unit with open products: the traced step takes products as inputs and
returns their operands as additional state. The trace contains all elementwise operations of the
recurrence and its derivative; `program` orders them.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from tsrnn.kernels._cell import Cell, Fields
from tsrnn.kernels._graph import COMPARISONS, Op, Operand, renamed
from tsrnn.kernels._matrix_form import MatrixForm
from tsrnn.kernels._trace import trace


class Plan(NamedTuple):
    """Programs of a form, with the results that its backward pass writes at every step."""

    form: MatrixForm
    traced: OpenForm
    forward: Program
    backward: Program

    @property
    def one_gradient(self) -> bool:
        """True if products and inputs have the same gradients."""
        return self.traced.vjp.results["g_p"] == self.traced.vjp.results["g_u"]


@functools.cache
def plan_of(form: MatrixForm, every_operand: bool = False) -> Plan:
    """Trace and order a form.

    With `every_operand` the backward pass writes all operands of products as its result x, even
    states.
    """
    traced = open_trace(form)
    if every_operand:
        operands = tuple(dict.fromkeys(operand for _, operand in traced.factors))
        vjp = traced.vjp._replace(results=traced.vjp.results | {"x": operands})
        traced = traced._replace(vjp=vjp)
    state = [f"h{i}" for i in range(len(form.states))]
    sums = [f"G{i}" for i in range(len(form.states))]
    sums += [f"A{i}" for i in range(len(form.vectors))]
    return Plan(form, traced, program(traced.step, state), program(traced.vjp, sums))


class Product(NamedTuple):
    """Matrices times one operand, or transposed, the sum of W' x over matrices and operands."""

    matrices: tuple[int, ...]
    operands: tuple[Operand, ...]
    outs: tuple[str, ...]
    transposed: bool = False


class Equations(NamedTuple):
    """Operations and products of one step; results have names such as ``g_u``."""

    ops: dict[str, Op]
    products: tuple[Product, ...]
    results: dict[str, tuple[Operand, ...]]


class OpenForm(NamedTuple):
    """A traced form: its step, its vector-Jacobian product, and the factors of its products.

    Values have the names h0.. (old state), u0.. (inputs), w0.. (vectors), p0.. (matrix
    products), and in the derivative s0.. (new state), g0.. (its gradient) and q0..
    (gradients of operands). The results are s; in the derivative g_h, g_u, g_p, g_w and x,
    the operands that are not among the states.
    """

    step: Equations
    vjp: Equations
    factors: tuple[tuple[int, Operand], ...]  # matrix and operand of each product


def open_trace(form: MatrixForm) -> OpenForm:
    """Trace a form with open products; errors are those of `trace`."""
    opened = _OpenStep(form, _calls(form))
    factors = [opened.calls[i] for i in _by_matrix(opened.calls)]
    n, m, n_products = len(form.states), len(form.inputs), len(factors)
    n_all = n + len({operand for _, operand in factors})
    step, vjp = trace(Cell(form.name, n_all, m + n_products, len(form.vectors), opened))

    names: dict[str, Operand] = {f"u{m + k}": f"p{k}" for k in range(n_products)}
    names |= {f"g{n + j}": f"q{j}" for j in range(n_all - n)}
    new, operands = _split(renamed(step.outputs, names), n)
    # The derivative reads stored new states and operands; only operands that are states are stored.
    stored = {x: f"s{i}" for i, x in enumerate(new) if isinstance(x, str) and x[0] == "v"}
    known = renamed(operands, stored)
    in_vjp = names | {f"s{n + j}": x for j, x in enumerate(known)}
    g_h, g_u, g_p, g_w = _split(renamed(vjp.outputs, in_vjp), n_all, m, n_products)
    unstored = tuple(x for x in known if not (isinstance(x, str) and x[0] in "hs"))

    # Products with the same operand are joined, to read it once for all matrices.
    groups = [[k for k, (_, number) in enumerate(factors) if number == j] for j in range(n_all - n)]
    matrices = [tuple(factors[k][0] for k in group) for group in groups]
    outs = [tuple(f"p{k}" for k in group) for group in groups]
    products, in_derivative = (
        tuple(Product(m, (x,), out) for m, x, out in zip(matrices, multiplied, outs, strict=True))
        for multiplied in (operands, known)
    )
    transposed = tuple(
        Product(m, tuple(g_p[k] for k in group), (f"q{j}",), True)
        for j, (m, group) in enumerate(zip(matrices, groups, strict=True))
    )
    return OpenForm(
        Equations(_ops(step.ops, names), products, {"s": new}),
        Equations(
            _ops(step.ops, names | stored) | _ops(vjp.ops, in_vjp),
            in_derivative + transposed,
            {"g_h": g_h[:n], "g_u": g_u, "g_p": g_p, "g_w": g_w, "x": unstored},
        ),
        tuple((matrix, known[operand]) for matrix, operand in factors),
    )


@dataclass(frozen=True)
class _OpenStep:
    """Step of a form as a cell with products as inputs and operands as state.

    `calls` has the matrix and the index of the operand of each product in the order of calls;
    the products as inputs are ordered by matrix.
    """

    form: MatrixForm
    calls: tuple[tuple[int, int], ...]

    def __call__(self, state: Fields, inputs: Fields, vectors: Fields) -> Fields:
        n, m = len(self.form.states), len(self.form.inputs)
        ordered = zip(_by_matrix(self.calls), inputs[m:], strict=True)
        products = iter([product for _, product in sorted(ordered, key=lambda pair: pair[0])])
        new, multiplied = _run(self.form, state[:n], inputs[:m], vectors, products)
        return (*new, *_distinct([operand for _, operand in multiplied]))


def _by_matrix(calls: Sequence[tuple[int, int]]) -> list[int]:
    return sorted(range(len(calls)), key=lambda i: calls[i][0])


def _calls(form: MatrixForm) -> tuple[tuple[int, int], ...]:
    """Matrix and index of the operand of each product, from a step on numbers."""
    half = torch.full((), 0.5, dtype=torch.float64, device="cpu")
    states, inputs, vectors = (
        tuple(half.clone() for _ in names) for names in (form.states, form.inputs, form.vectors)
    )
    _, multiplied = _run(form, states, inputs, vectors, (half.clone() for _ in itertools.count()))
    operands = [id(x) for x in _distinct([x for _, x in multiplied])]
    return tuple((matrix, operands.index(id(x))) for matrix, x in multiplied)


def _distinct(values: Sequence[Any]) -> list[Any]:
    return list({id(x): x for x in values}.values())


class _OpenMatrix:
    """A matrix that records its operand and returns the next given product."""

    def __init__(self, number: int, products: Iterator[Any], noted: list[tuple[int, Any]]) -> None:
        self._number, self._products, self._noted = number, products, noted

    def __matmul__(self, operand: Any) -> Any:
        self._noted.append((self._number, operand))
        return next(self._products)


def _run(
    form: MatrixForm,
    state: Sequence[Any],
    inputs: Sequence[Any],
    vectors: Sequence[Any],
    products: Iterator[Any],
) -> tuple[tuple[Any, ...], list[tuple[int, Any]]]:
    """New state, and the matrix and operand of each product in the order of calls."""
    multiplied: list[tuple[int, Any]] = []
    matrices = [_OpenMatrix(k, products, multiplied) for k in range(len(form.matrices))]
    return form.run(state, inputs, matrices, vectors), multiplied


def _ops(ops: Sequence[Op], names: Mapping[str, Operand]) -> dict[str, Op]:
    return {op.out: Op(op.out, op.name, renamed(op.args, names)) for op in ops}


def _split(values: Sequence[Any], *sizes: int) -> list[tuple[Any, ...]]:
    """Parts of the given sizes, and the rest."""
    ends = list(itertools.accumulate(sizes))
    return [tuple(values[a:b]) for a, b in zip([0, *ends], [*ends, None], strict=True)]


class Phase(NamedTuple):
    """Elementwise operations, then matrix products."""

    ops: tuple[Op, ...]
    products: tuple[Product, ...]


class Program(NamedTuple):
    """Phases of a step, and the layout of its values in a row of working memory.

    The memory of a sequence is a row of slots of d numbers. `homes` has the slots of values
    that a later phase or a product reads; `operands` and `outs` the first slot of the operands
    and of the results of each product. A slot after the last result of a product is spare.
    """

    phases: tuple[Phase, ...]
    results: dict[str, tuple[Operand, ...]]
    homes: dict[str, int]
    operands: dict[Product, int]
    outs: dict[Product, int]
    slots: int

    def reads(self, phase: Phase) -> set[str]:
        """Values that a phase reads from outside."""
        last = self.results.values() if phase is self.phases[-1] else ()
        wanted = [a for op in phase.ops for a in op.args]
        wanted += [a for product in phase.products for a in product.operands]
        wanted += [a for result in last for a in result]
        return {a for a in wanted if isinstance(a, str)} - {op.out for op in phase.ops}


def program(equations: Equations, carried: Sequence[str]) -> Program:
    """Order equations; `carried` values are in the first slots from step to step."""
    homes, free = {name: i for i, name in enumerate(carried)}, len(carried)
    plan = Program(_phases(equations), equations.results, homes, {}, {}, 0)
    for product in (product for phase in plan.phases for product in phase.products):
        if len(product.operands) == 1 and product.operands[0] in homes:
            plan.operands[product] = homes[str(product.operands[0])]
        else:
            plan.operands[product] = free
            for i, x in enumerate(product.operands):
                if isinstance(x, str) and x[0] == "v":
                    homes.setdefault(x, free + i)
            free += len(product.operands)
        plan.outs[product] = free
        homes.update({name: free + i for i, name in enumerate(product.outs)})
        # A product writes whole panels of units, which may reach into the slot after its results.
        free += len(product.outs) + 1
    for phase in plan.phases:
        for name in sorted(plan.reads(phase)):
            if name[0] == "v" and name not in homes:
                homes[name] = free
                free += 1
    return plan._replace(slots=free)


def _phases(equations: Equations) -> tuple[Phase, ...]:
    """Phases as early as the products allow."""
    order = _Order(equations)
    wanted = [a for result in equations.results.values() for a in result]
    products = order.products_for(wanted)
    last = max([order.phase(a) for a in wanted], default=0)
    computed: set[str] = set()
    phases = []
    for i in range(last + 1):
        now = tuple(p for p in products if order.phase_of(p) == i)
        targets = [a for p in now for a in p.operands]
        targets += [a for a in wanted if order.phase(a) == i]
        ops = order.ops_for(targets, computed)
        # A comparison is not a number to keep: it is recomputed where needed.
        computed |= {op.out for op in ops if op.name not in COMPARISONS}
        phases.append(Phase(ops, now))
    return tuple(phases)


class _Order:
    """Order of operations and products, by their dependencies."""

    def __init__(self, equations: Equations) -> None:
        self._ops = equations.ops
        self._product_of = {out: p for p in equations.products for out in p.outs}
        self._products = equations.products
        self.phase = functools.cache(self._phase)

    def _phase(self, operand: Operand) -> int:
        """First phase in which a value is available."""
        if operand in self._product_of:
            return 1 + self.phase_of(self._product_of[str(operand)])
        op = self._ops.get(operand) if isinstance(operand, str) else None
        return max([self.phase(a) for a in op.args], default=0) if op else 0

    def phase_of(self, product: Product) -> int:
        """First phase after which a product is available."""
        return max(self.phase(a) for a in product.operands)

    def products_for(self, wanted: Iterable[Operand]) -> list[Product]:
        """Products that the values need."""
        seen: set[Operand] = set()
        waiting = list(wanted)
        while waiting:
            operand = waiting.pop()
            if operand in seen:
                continue
            seen.add(operand)
            if operand in self._product_of:
                waiting += self._product_of[str(operand)].operands
            elif operand in self._ops:
                waiting += self._ops[str(operand)].args
        return [p for p in self._products if seen.intersection(p.outs)]

    def ops_for(self, targets: Iterable[Operand], computed: set[str]) -> tuple[Op, ...]:
        """Operations that compute the targets from the known values."""
        needed: set[Operand] = set()
        waiting = list(targets)
        while waiting:
            operand = waiting.pop()
            if operand in self._ops and operand not in computed | needed:
                needed.add(operand)
                waiting += self._ops[str(operand)].args
        return tuple(sorted((self._ops[str(a)] for a in needed), key=lambda op: int(op.out[1:])))
