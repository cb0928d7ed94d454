"""Cells that follow from a cell: with its Jacobian, its adjoint, with its input projection."""

from __future__ import annotations

import functools
from collections.abc import Iterable

from torch import Tensor

from tsrnn.kernels._cell import Cell, Fields, Names, registered
from tsrnn.kernels._graph import Graph, evaluate
from tsrnn.kernels._trace import trace, trace_jacobian


def named(**groups: Iterable[Tensor]) -> dict[str, Tensor]:
    """Values of a graph by their names: ``h=(a, b)`` gives h0 and h1."""
    return {
        f"{prefix}{i}": value for prefix, values in groups.items() for i, value in enumerate(values)
    }


def _unique(*groups: Iterable[str]) -> tuple[Names, Names, Names]:
    """Names with an underscore behind those that are taken."""
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


class _TangentStep:
    """``(h, M) -> (f(h), J(h) M)``."""

    def __init__(self, graph: Graph, n: int) -> None:
        self._graph = graph
        self._n = n

    def __call__(self, state: Fields, inputs: Fields, params: Fields) -> Fields:
        n = self._n
        new, jacobian = self._new_and_jacobian(state[:n], inputs, params)
        product = tuple(
            _dot(jacobian[i * n : (i + 1) * n], state[n + j :: n], state[0])
            for i in range(n)
            for j in range(n)
        )
        return (*new, *product)

    def _new_and_jacobian(
        self, h: Fields, u: Fields, w: Fields
    ) -> tuple[list[Tensor], list[Tensor | None]]:
        outputs = evaluate(self._graph, named(h=h, u=u, w=w))
        jacobian = [
            None if name == 0.0 else value
            for name, value in zip(self._graph.outputs[self._n :], outputs[self._n :], strict=True)
        ]
        return outputs[: self._n], jacobian


def _dot(row: Iterable[Tensor | None], column: Iterable[Tensor], like: Tensor) -> Tensor:
    """Sum of products; what is None is zero whatever it meets."""
    terms = [a * b for a, b in zip(row, column, strict=True) if a is not None]
    return sum(terms[1:], start=terms[0]) if terms else like.new_zeros(())


@functools.cache
def tangent(cell: Cell) -> Cell:
    """The cell with a matrix M carried along, n more fields a column: ``M' = J(h, u) M``.

    Started at the identity, M is the derivative of the last state by the first.
    """
    n = cell.n
    state, inputs, params = cell.field_names
    return Cell(
        f"{cell.name}.tangent",
        n + n * n,
        cell.m,
        cell.p,
        _TangentStep(trace_jacobian(cell), n),
        names=_unique(
            state + tuple(f"M_{i}_{j}" for i in range(n) for j in range(n)), inputs, params
        ),
    )


class _AdjointStep:
    """``g_{t-1} = J_t' (g_t + dL/dh_t)`` from the vector-Jacobian product of a cell."""

    def __init__(self, vjp: Graph, n: int, m: int) -> None:
        self._graph = Graph(vjp.ops, vjp.outputs[:n])
        self._n, self._m = n, m

    def __call__(self, state: Fields, inputs: Fields, params: Fields) -> Fields:
        n, m = self._n, self._m
        h, u, s, gs = inputs[:n], inputs[n : n + m], inputs[n + m : -n], inputs[-n:]
        g = tuple(a + b for a, b in zip(state, gs, strict=True))
        return tuple(evaluate(self._graph, named(g=g, h=h, u=u, s=s, w=params)))


@functools.cache
def adjoint(cell: Cell) -> Cell:
    """The backward pass of a cell as a cell: a linear recurrence in the gradient of the state.

    Its inputs are the old state, the inputs, the new state and the gradient that comes in at
    the step, in this order; its parameters are the cell's.
    """
    n, m = cell.n, cell.m
    state, inputs, params = cell.field_names
    return Cell(
        f"{cell.name}.adjoint",
        n,
        3 * n + m,
        cell.p,
        _AdjointStep(trace(cell)[1], n, m),
        names=_unique(
            tuple(f"g_{name}" for name in state),
            (
                *(f"old_{name}" for name in state),
                *inputs,
                *(f"new_{name}" for name in state),
                *(f"in_{name}" for name in state),
            ),
            params,
        ),
    )


class _AffineStep:
    def __init__(self, n: int) -> None:
        self._n = n

    def __call__(self, state: Fields, inputs: Fields, params: Fields) -> Fields:
        n = self._n
        matrix, offset = inputs[: n * n], inputs[n * n :]
        return tuple(
            sum(
                (a * x for a, x in zip(matrix[i * n : (i + 1) * n], state, strict=True)),
                start=offset[i],
            )
            for i in range(n)
        )


@functools.cache
def affine(n: int) -> Cell:
    """Linear recurrence with a matrix of its own at every step: ``x_t = A_t x_{t-1} + b_t``."""
    return Cell(
        f"affine_{n}",
        n,
        n * n + n,
        0,
        _AffineStep(n),
        names=_unique(
            _numbered("x", n),
            tuple(f"A_{i}_{j}" for i in range(n) for j in range(n)) + _numbered("b", n),
            (),
        ),
    )


@functools.cache
def with_projection(cell: Cell, width: int, bias: bool) -> Cell:
    """The cell with W and b among its parameters, after its own: its inputs are x."""

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
    """Key of `with_projection`, without making it: for code that torch compiles."""
    return f"{cell.key}|{width}|{int(bias)}"


def cell_of(key: str) -> Cell:
    """Cell of a key of this process, projected or not."""
    original, *projection = key.split("|")
    cell = registered(original)
    return with_projection(cell, *map(int, projection)) if projection else cell
