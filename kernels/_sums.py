r"""Sums over time along a recurrence, with their derivatives, of many series at once.

A log-likelihood is a sum over the steps of a recurrence. Its score, its information matrix and
its Hessian are sums too, of derivatives that follow recurrences of their own. Here all of them
run as one recurrence that is derived from the cell: forward derivatives of the state are state
fields, and so are the sums. Nothing is written but what it ends with, and the compiled kernel
has a series in every lane of its vectors.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from tsrnn.kernels import _cpu
from tsrnn.kernels._cell import Cell
from tsrnn.kernels._graph import Graph, GraphStep, Operand, without_unused
from tsrnn.kernels._jets import Builder, Jet, jets
from tsrnn.kernels._lanes import Lanes
from tsrnn.kernels._trace import trace_step

Pattern = tuple[tuple[int, ...], ...]  # (field, variable) or (field, variable, variable)
Product = tuple[str, str | None]


class Sums(NamedTuple):
    """Sums over time of some fields of a cell and their derivatives by its parameters.

    Attributes
    ----------
    value : ndarray of shape (n_terms, N)
    gradient : ndarray of shape (n_terms, N, p) or None
    hessian : ndarray of shape (n_terms, N, p, p) or None
    products : ndarray of shape (n_products, N, p, p) or None
    memory : ndarray of shape (q, N)
        Fields of the state that its step reads, after the last step.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.kernels import Cell, Lanes, sums
    >>> total = Cell("total", 1, 1, 0, lambda h, u, w: (u[0],), names=(("seen",), ("y",), ()))
    >>> result = sums(total, Lanes(np.ones((2, 5))), np.empty((2, 0)), np.empty((2, 0)),
    ...               terms=["seen"], order=0)
    >>> result.value
    array([[5., 5.]])
    """

    value: np.ndarray
    gradient: np.ndarray | None
    hessian: np.ndarray | None
    products: np.ndarray | None
    memory: np.ndarray


def sums(
    cell: Cell,
    lanes: Lanes,
    params: np.ndarray,
    initial: np.ndarray,
    *,
    terms: Sequence[str],
    products: Sequence[Product] = (),
    order: int = 2,
    d_initial: Mapping[Any, np.ndarray] | None = None,
    dd_initial: Mapping[Any, np.ndarray] | None = None,
) -> Sums:
    r"""Add up fields of a cell's state over time, with derivatives by its parameters.

    .. math:: S = \sum_t s_t, \quad
              \frac{\partial S}{\partial \theta}, \quad
              \frac{\partial^2 S}{\partial \theta \partial \theta'}, \quad
              \sum_t w_t \frac{\partial a_t}{\partial \theta}
              \frac{\partial a_t}{\partial \theta'}

    Parameters
    ----------
    cell : Cell
        With names. The fields of its state that its step reads, its memory, come first.
    lanes : Lanes
        Inputs, m fields a series.
    params : ndarray of shape (N, p)
        Parameters of the cell, different ones for every series.
    initial : ndarray of shape (N, q)
        Memory before the first step.
    terms : sequence of str
        Fields s to add up.
    products : sequence of (str, str or None)
        Fields a and their weights w, fields too; None is a weight of one. With the
        log-likelihood for a this is the outer product of scores.
    order : {0, 1, 2}, default 2
        Highest derivative of the terms. Products need 1.
    d_initial, dd_initial : mapping, optional
        Derivatives (N,) of the initial memory, by (field, parameter) and by (field, parameter,
        parameter), the first not after the second; zero where there is none.

    Returns
    -------
    Sums

    Raises
    ------
    ValueError
        If shapes do not fit, a name is unknown, or the cell does what has no derivative here.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.kernels import Cell, Lanes, sums
    >>> def step(state, inputs, params):
    ...     return inputs[0], (inputs[0] - params[0] * state[0]) ** 2
    >>> errors = Cell("squared", 2, 1, 1, step, names=(("last", "square"), ("y",), ("phi",)))
    >>> result = sums(errors, Lanes(np.array([[1.0, 2.0, 3.0]])), np.array([[0.5]]),
    ...               np.zeros((1, 1)), terms=["square"])
    >>> result.value, result.gradient, result.hessian
    (array([[7.25]]), array([[[-11.]]]), array([[[[10.]]]]))
    """
    slopes: dict[tuple[int, ...], np.ndarray] = {**(d_initial or {}), **(dd_initial or {})}
    plan = _plan(
        cell,
        tuple(terms),
        tuple(products),
        order,
        tuple(sorted(key for key in slopes if len(key) == 2)),
        tuple(sorted(key for key in slopes if len(key) == 3)),
    )
    _check(cell, plan, lanes, params, initial)
    begin = np.zeros((plan.cell.n, lanes.n))
    begin[: cell.p] = params.T
    begin[cell.p : cell.p + plan.memory] = initial.T
    for place, key in enumerate((*plan.first, *plan.second), cell.p + plan.memory):
        begin[place] = slopes.get(key, 0.0)
    end = lanes.unpack(_run(plan.cell, lanes, begin))
    return plan.read(end, cell.p)


def _run(cell: Cell, lanes: Lanes, begin: np.ndarray) -> torch.Tensor:
    blocks, steps = lanes.blocks.shape[:2]
    params = lanes.blocks.new_empty(0, lanes.blocks.shape[-1])
    lengths = torch.full((blocks,), steps, dtype=torch.int64)
    return _cpu.forward(cell, lanes.blocks, params, lanes.pack(begin), lengths, keep=False)[1]


def _check(cell: Cell, plan: _Plan, lanes: Lanes, params: np.ndarray, initial: np.ndarray) -> None:
    for name, array, width in (("params", params, cell.p), ("initial", initial, plan.memory)):
        if array.shape != (lanes.n, width):
            raise ValueError(
                f"{name} of cell {cell.name!r} must have shape {(lanes.n, width)} for {lanes.n} "
                f"series; got {array.shape}"
            )
    if lanes.blocks.shape[2] != cell.m:
        raise ValueError(
            f"lanes for cell {cell.name!r} must have {cell.m} input fields; got "
            f"{lanes.blocks.shape[2]}"
        )


class _Plan(NamedTuple):
    """A cell that adds up, and where in its state everything stands.

    Its fields: the parameters, the memory, first and second derivatives of the memory, then
    the sums of terms, gradients, Hessians and products. `gradient`, `hessian` and `products`
    say for each of theirs which (term or product, variable...) it is.
    """

    cell: Cell
    memory: int
    first: Pattern
    second: Pattern
    terms: int
    gradient: Pattern
    hessian: Pattern
    n_products: int
    products: Pattern
    order: int

    def read(self, end: np.ndarray, p: int) -> Sums:
        """Sums from the last state (n, N)."""
        at = p + self.memory + len(self.first) + len(self.second)
        n = end.shape[1]
        value = end[at : at + self.terms].copy()
        at += self.terms
        gradient = np.zeros((self.terms, n, p))
        for key in self.gradient:
            gradient[key[0], :, key[1]] = end[at]
            at += 1
        hessian = _symmetric(end, at, self.hessian, (self.terms, n, p, p))
        products = _symmetric(
            end, at + len(self.hessian), self.products, (self.n_products, n, p, p)
        )
        return Sums(
            value,
            gradient if self.order > 0 else None,
            hessian if self.order > 1 else None,
            products if self.n_products else None,
            end[p : p + self.memory].copy(),
        )


def _symmetric(end: np.ndarray, at: int, pattern: Pattern, shape: tuple[int, ...]) -> np.ndarray:
    matrices = np.zeros(shape)
    for place, (which, i, j) in enumerate(pattern, at):
        matrices[which, :, i, j] = matrices[which, :, j, i] = end[place]
    return matrices


@functools.cache
def _plan(
    cell: Cell,
    terms: tuple[str, ...],
    products: tuple[Product, ...],
    order: int,
    first: Pattern,
    second: Pattern,
) -> _Plan:
    graph, names = trace_step(cell), cell.field_names[0]
    memory = 1 + max((int(name[1:]) for name in graph.reads if name[0] == "h"), default=-1)
    slope = max(order, 1) if products else order
    first, second = _patterns(graph, cell, memory, slope, first if slope else (), second)
    second = second if order > 1 else ()
    before = _Names(cell.p, memory, first, second)
    builder, new = jets(graph, before.known(cell, order > 0 or bool(products)), slope)
    fields = [names.index(_known(term, names, cell)) for term in terms]
    values = [new[i].value for i in fields]
    gradient = [(k, i) for k, f in enumerate(fields) for i in sorted(new[f].first)] * (order > 0)
    hessian = [(k, *pair) for k, f in enumerate(fields) for pair in sorted(new[f].second)]
    hessian *= order > 1
    added = [
        *values,
        *(new[fields[k]].first[i] for k, i in gradient),
        *(new[fields[k]].second[i, j] for k, i, j in hessian),
    ]
    squares = _products(builder, products, new, names, cell)
    outputs: list[Operand] = [f"h{i}" for i in range(cell.p)]
    outputs += [jet.value for jet in new[:memory]]
    outputs += [new[f].first.get(i, 0.0) for f, i in first]
    outputs += [new[f].second.get((i, j), 0.0) for f, i, j in second]
    start = len(outputs)
    added += squares.values()
    outputs += [builder.add(f"h{start + k}", value) for k, value in enumerate(added)]
    summing = Cell(
        f"{cell.name}.sums{order}",
        len(outputs),
        cell.m,
        0,
        GraphStep(Graph(without_unused(builder.ops, outputs), tuple(outputs))),
    )
    return _Plan(
        summing, memory, first, second, len(fields), tuple(gradient), tuple(hessian),
        len(products), tuple(squares), order,
    )  # fmt: skip


def _known(name: str, names: Sequence[str], cell: Cell) -> str:
    if name not in names:
        raise ValueError(f"{name!r} must be a state field of cell {cell.name!r}, one of {names}")
    return name


def _products(
    builder: Builder,
    products: Sequence[Product],
    new: Sequence[Jet],
    names: Sequence[str],
    cell: Cell,
) -> dict[tuple[int, int, int], Operand]:
    """What is to be added to sums of products, by (product, variable, variable)."""
    found: dict[tuple[int, int, int], Operand] = {}
    for k, (name, weight) in enumerate(products):
        slopes = new[names.index(_known(name, names, cell))].first
        w = 1.0 if weight is None else new[names.index(_known(weight, names, cell))].value
        for i in sorted(slopes):
            weighted = builder.mul(w, slopes[i])
            found |= {(k, i, j): builder.mul(weighted, slopes[j]) for j in sorted(slopes) if i <= j}
    return found


class _Names(NamedTuple):
    """Names of the fields of the summing cell's state."""

    p: int
    memory: int
    first: Pattern
    second: Pattern

    def known(self, cell: Cell, slopes: bool) -> dict[str, Jet]:
        """Jets of all that the graph of the original cell may read."""
        start = self.p + self.memory
        jets_of = {f"h{f}": Jet(f"h{self.p + f}") for f in range(self.memory)}
        for place, (f, i) in enumerate(self.first, start):
            jets_of[f"h{f}"].first[i] = f"h{place}"
        for place, (f, i, j) in enumerate(self.second, start + len(self.first)):
            jets_of[f"h{f}"].second[i, j] = f"h{place}"
        jets_of |= {f"u{i}": Jet(f"u{i}") for i in range(cell.m)}
        one = {i: {i: 1.0} if slopes else {} for i in range(self.p)}
        return jets_of | {f"w{i}": Jet(f"h{i}", dict(one[i])) for i in range(self.p)}


def _patterns(
    graph: Graph, cell: Cell, memory: int, order: int, first: Pattern, second: Pattern
) -> tuple[Pattern, Pattern]:
    """Derivatives of the memory that are ever other than zero."""
    ones: set[tuple[int, int]] = {(f, i) for f, i in first}
    twos: set[tuple[int, ...]] = set(second) if order > 1 else set()
    while True:
        names = _Names(cell.p, memory, tuple(sorted(ones)), tuple(sorted(twos)))
        new = jets(graph, names.known(cell, order > 0), order)[1][:memory]
        more_ones = {(f, i) for f, jet in enumerate(new) for i in jet.first}
        more_twos: set[tuple[int, ...]] = {
            (f, *pair) for f, jet in enumerate(new) for pair in jet.second
        }
        if more_ones <= ones and more_twos <= twos:
            return names.first, names.second
        ones, twos = ones | more_ones, twos | more_twos
