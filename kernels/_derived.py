"""Cells derived from a cell: with its Jacobian, its adjoint, with its input projection."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from tsrnn.kernels._cell import Cell, Fields, Names, registered
from tsrnn.kernels._graph import Graph, Operand, elementwise, evaluate
from tsrnn.kernels._jets import Jet, jets
from tsrnn.kernels._matrix_form import MatrixForm, block_step
from tsrnn.kernels._program import open_trace
from tsrnn.kernels._trace import trace, trace_jacobian, trace_newton


def named(**groups: Iterable[Tensor]) -> dict[str, Tensor]:
    """Number the values of a graph by name: ``h=(a, b)`` gives h0 and h1."""
    return {
        f"{prefix}{i}": value for prefix, values in groups.items() for i, value in enumerate(values)
    }


def _unique(*groups: Iterable[str]) -> tuple[Names, Names, Names]:
    """Make names unique by appending underscores."""
    taken: set[str] = set()

    def free(name: str) -> str:
        while name in taken:
            name += "_"
        taken.add(name)
        return name

    state, inputs, params = (tuple(map(free, group)) for group in groups)
    return state, inputs, params


def _numbered(prefix: str, count: int) -> Names:
    return tuple(f"{prefix}{i}" for i in range(count))


@functools.cache
def tangent(cell: Cell) -> Cell:
    """Extend the state of a cell by columns of a matrix M, n fields each: ``M' = J(h, u) M``.

    From the identity, M becomes the derivative of the last state by the first.
    """
    return _tangent(cell, trace_jacobian(cell))


@functools.cache
def tangent_column(cell: Cell) -> Cell:
    """Block of a matrix form with one column of `tangent`: ``m' = J(h, u) m``.

    The result is a block of a matrix form too, so that its code does not grow with its size.
    """
    block = block_step(cell)
    form = block.form
    columns = (f"m_{name}" for name in form.states)
    states, inputs, matrices = _unique((*form.states, *columns), form.inputs, form.matrices)
    name, step = f"{form.name}.tangent_column", _ColumnStep(form)
    outputs = len(states)
    carrying = MatrixForm(name, states, inputs, matrices, step, form.vectors, outputs)
    return carrying.block(block.size)


@dataclass(frozen=True)
class _ColumnStep:
    """Step of a form, and its derivative in the direction of further states."""

    form: MatrixForm

    def __call__(self, states: Any, inputs: Any, matrices: Any, vectors: Any) -> tuple[Any, ...]:
        n, step = len(self.form.states), open_trace(self.form).step
        # The step takes products as variables p; q are their derivatives.
        products = {
            out: (matrix, product.operands[0])
            for product in step.products
            for matrix, out in zip(product.matrices, product.outs, strict=True)
        }
        variables = {f"h{i}": Jet(f"h{i}", {0: f"m{i}"}) for i in range(n)}
        variables |= {p: Jet(p, {0: f"q{p[1:]}"}) for p in products}
        variables |= {name: Jet(name) for name in named(u=inputs, w=vectors)}
        outputs = (*step.results["s"], *(operand for _, operand in products.values()))
        builder, results = jets(Graph(tuple(step.ops.values()), outputs), variables, 1)
        operands = dict(zip(products, results[n:], strict=True))
        ops = {op.out: op for op in builder.ops}
        known = named(h=states[:n], m=states[n:], u=inputs, w=vectors)

        def value(x: Operand) -> Any:
            if not isinstance(x, str):
                return torch.full_like(states[0], x)
            if x not in known and x in ops:
                args = [value(a) if isinstance(a, str) else a for a in ops[x].args]
                known[x] = elementwise(ops[x].name)(*args)
            elif x not in known:
                product = f"p{x[1:]}"
                operand = operands[product]
                factor = operand.value if x == product else operand.first.get(0, 0.0)
                known[x] = value(factor)
                if factor != 0.0:
                    known[x] = matrices[products[product][0]] @ known[x]
            return known[x]

        new = results[:n]
        return tuple(
            value(x) for x in (*(j.value for j in new), *(j.first.get(0, 0.0) for j in new))
        )


@functools.cache
def newton_tangent(cell: Cell) -> Cell:
    """`tangent` with the matrix of Newton's iteration, which may omit entries of J."""
    return _tangent(cell, trace_newton(cell)) if cell.has_newton_matrix else tangent(cell)


def _tangent(cell: Cell, graph: Graph) -> Cell:
    n = cell.n

    def step(state: Fields, inputs: Fields, params: Fields) -> Fields:
        outputs = evaluate(graph, named(h=state[:n], u=inputs, w=params))
        # Zero entries of J add nothing, whatever their factor in M.
        zero = [entry == 0.0 for entry in graph.outputs[n:]]
        product = []
        for i, j in itertools.product(range(n), repeat=2):
            row = zip(outputs[n + i * n :], state[n + j :: n], zero[i * n :], strict=False)
            terms = [a * b for a, b, is_zero in row if not is_zero]
            total = sum(terms[1:], start=terms[0]) if terms else state[0].new_zeros(())
            product.append(total)
        return (*outputs[:n], *product)

    state, inputs, params = cell.field_names
    entries = tuple(f"M_{i}_{j}" for i in range(n) for j in range(n))
    names = _unique(state + entries, inputs, params)
    return Cell(f"{cell.name}.tangent", n + n * n, cell.m, cell.p, step, names=names)


@functools.cache
def adjoint(cell: Cell) -> Cell:
    """The backward pass of a cell as a cell: a linear recurrence in the gradient of the state.

    ``g_{t-1} = J_t' (g_t + dL/dh_t)``, from the vector-Jacobian product of the cell. Its inputs are
    the old state, the inputs, the new state and the incoming gradient of the step, in this order;
    its parameters are those of the cell.
    """
    n, m, vjp = cell.n, cell.m, trace(cell)[1]
    graph = Graph(vjp.ops, vjp.outputs[:n])

    def step(state: Fields, inputs: Fields, params: Fields) -> Fields:
        h, u, s, incoming = inputs[:n], inputs[n : n + m], inputs[n + m : -n], inputs[-n:]
        g = [a + b for a, b in zip(state, incoming, strict=True)]
        return tuple(evaluate(graph, named(g=g, h=h, u=u, s=s, w=params)))

    state, inputs, params = cell.field_names
    old, new, incoming = ([f"{word}_{name}" for name in state] for word in ("old", "new", "in"))
    names = _unique([f"g_{name}" for name in state], (*old, *inputs, *new, *incoming), params)
    return Cell(f"{cell.name}.adjoint", n, 3 * n + m, cell.p, step, names=names)


@functools.cache
def affine(n: int) -> Cell:
    """Linear recurrence with time-varying matrices: ``x_t = A_t x_{t-1} + b_t``."""

    def step(state: Fields, inputs: Fields, params: Fields) -> Fields:
        rows = [zip(inputs[i * n : (i + 1) * n], state, strict=True) for i in range(n)]
        offsets = inputs[n * n :]
        return tuple(
            sum((a * x for a, x in row), start=b) for row, b in zip(rows, offsets, strict=True)
        )

    matrix = tuple(f"A_{i}_{j}" for i in range(n) for j in range(n))
    names = _unique(_numbered("x", n), matrix + _numbered("b", n), ())
    return Cell(f"affine_{n}", n, n * n + n, 0, step, names=names)


@functools.cache
def with_projection(cell: Cell, width: int, bias: bool) -> Cell:
    """Cell on inputs x, with W and b appended to its parameters."""

    def step(state: Fields, x: Fields, params: Fields) -> Fields:
        of_cell, rest = params[: cell.p], params[cell.p :]
        weights, offsets = rest[: cell.m * width], rest[cell.m * width :]
        inputs = []
        for i in range(cell.m):
            terms = [w * value for w, value in zip(weights[i * width :], x, strict=False)]
            inputs.append(sum(terms[1:], start=terms[0] + offsets[i] if bias else terms[0]))
        return cell.step(state, tuple(inputs), of_cell)

    state, inputs, params = cell.field_names
    weight_names = tuple(f"V_{name}_{j}" for name in inputs for j in range(width))
    return Cell(
        f"{cell.name}_of_{width}{'b' * bias}",
        cell.n,
        width,
        cell.p + cell.m * (width + bias),
        step,
        shared=True,
        outputs=cell.outputs,
        names=_unique(
            state,
            _numbered("x", width),
            params + weight_names + tuple(f"b_{name}" for name in inputs) * bias,
        ),
    )


def projected_key(cell: Cell, width: int, bias: bool) -> str:
    """Key for the cell of `with_projection`, without building it, for code under torch.compile."""
    return f"{cell.key}|{width}|{int(bias)}"


def cell_of(key: str) -> Cell:
    """Cell registered under a key in this process, projected or not."""
    original, *projection = key.split("|")
    cell = registered(original)
    return with_projection(cell, *map(int, projection)) if projection else cell
