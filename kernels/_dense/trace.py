"""A matrix form on one unit, its matrix products left open: elementwise graphs between products.

The products come into the traced step as inputs, their operands go out as more state. What
`trace` makes of that is all that is elementwise in the recurrence and in its derivative.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from tsrnn.kernels._cell import Cell, Fields
from tsrnn.kernels._graph import Op, Operand
from tsrnn.kernels._matrix_form import MatrixForm
from tsrnn.kernels._trace import trace


class Product(NamedTuple):
    """Matrices times one operand; transposed, the sum of W' x over matrices and operands."""

    matrices: tuple[int, ...]
    operands: tuple[Operand, ...]
    outs: tuple[str, ...]
    transposed: bool = False


class Equations(NamedTuple):
    """Operations and products of one step; results are named by what they are, as ``g_u``."""

    ops: dict[str, Op]
    products: tuple[Product, ...]
    results: dict[str, tuple[Operand, ...]]


class OpenForm(NamedTuple):
    """A traced form: its step, its vector-Jacobian product, and what is multiplied by what.

    Values have the names h0.. (old state), u0.. (inputs), w0.. (vectors), p0.. (matrix
    products), and in the derivative s0.. (new state), g0.. (its gradient) and q0..
    (gradients of operands). The results are s; in the derivative g_h, g_u, g_p, g_w and x,
    the operands that are not among the states.
    """

    step: Equations
    vjp: Equations
    factors: tuple[tuple[int, Operand], ...]  # matrix and operand of every product


@functools.cache
def open_trace(form: MatrixForm) -> OpenForm:
    """Trace a form with open products.

    Raises
    ------
    ValueError
        As `trace`.
    """
    opened = _OpenStep(form, _calls(form))
    factors = [opened.calls[i] for i in _by_matrix(opened.calls)]
    n, m, n_products = len(form.states), len(form.inputs), len(factors)
    n_all = n + len({operand for _, operand in factors})
    step, vjp = trace(Cell(form.name, n_all, m + n_products, len(form.vectors), opened))

    names: dict[str, Operand] = {f"u{m + k}": f"p{k}" for k in range(n_products)}
    names |= {f"g{n + j}": f"q{j}" for j in range(n_all - n)}
    new, operands = _split(_renamed(step.outputs, names), n)
    # The derivative reads new states and operands as stored; of operands only states are.
    stored = {x: f"s{i}" for i, x in enumerate(new) if isinstance(x, str) and x[0] == "v"}
    known = _renamed(operands, stored)
    in_vjp = names | {f"s{n + j}": x for j, x in enumerate(known)}
    g_h, g_u, g_p, g_w = _split(_renamed(vjp.outputs, in_vjp), n_all, m, n_products)
    return OpenForm(
        Equations(_ops(step.ops, names), _products(factors, operands), {"s": new}),
        Equations(
            _ops(step.ops, names | stored) | _ops(vjp.ops, in_vjp),
            _products(factors, known) + _transposed(factors, g_p),
            {"g_h": g_h[:n], "g_u": g_u, "g_p": g_p, "g_w": g_w, "x": _unstored(known)},
        ),
        tuple((matrix, known[operand]) for matrix, operand in factors),
    )


@dataclass(frozen=True)
class _OpenStep:
    """The step of a form as that of a cell with products as inputs and operands as state.

    `calls` has the matrix and the number of the operand of every product in the order of
    their call; the products come in ordered by matrix.
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
    """A matrix that notes what it is multiplied by and gives the next product."""

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
    """New state, and the matrix and operand of every product in the order of their call."""
    multiplied: list[tuple[int, Any]] = []
    matrices = [_OpenMatrix(k, products, multiplied) for k in range(len(form.matrices))]
    return form.run(state, inputs, matrices, vectors), multiplied


def _products(
    factors: Sequence[tuple[int, int]], operands: Sequence[Operand]
) -> tuple[Product, ...]:
    """Products with one operand are one: it is read once for all its matrices."""
    made = []
    for j, operand in enumerate(operands):
        members = [k for k, (_, number) in enumerate(factors) if number == j]
        matrices = tuple(factors[k][0] for k in members)
        made.append(Product(matrices, (operand,), tuple(f"p{k}" for k in members)))
    return tuple(made)


def _transposed(factors: Sequence[tuple[int, int]], g_p: Sequence[Operand]) -> tuple[Product, ...]:
    """Gradients of operands from those of products."""
    made = []
    for j in range(1 + max((number for _, number in factors), default=-1)):
        members = [k for k, (_, number) in enumerate(factors) if number == j]
        matrices = tuple(factors[k][0] for k in members)
        made.append(Product(matrices, tuple(g_p[k] for k in members), (f"q{j}",), True))
    return tuple(made)


def _unstored(operands: Sequence[Operand]) -> tuple[Operand, ...]:
    return tuple(x for x in operands if not (isinstance(x, str) and x[0] in "hs"))


def _renamed(operands: Sequence[Operand], names: Mapping[str, Operand]) -> tuple[Operand, ...]:
    return tuple(names.get(a, a) if isinstance(a, str) else a for a in operands)


def _ops(ops: Sequence[Op], names: Mapping[str, Operand]) -> dict[str, Op]:
    return {op.out: Op(op.out, op.name, _renamed(op.args, names)) for op in ops}


def _split(values: Sequence[Any], *sizes: int) -> list[tuple[Any, ...]]:
    """Parts of the given sizes, and what is left."""
    rest, parts = tuple(values), []
    for size in sizes:
        parts.append(rest[:size])
        rest = rest[size:]
    return [*parts, rest]
