r"""Sums over time along a recurrence, with their derivatives, of many series at once.

A log-likelihood is a sum over the steps of a recurrence. Its score, information matrix and Hessian
are sums too, of derivatives that follow their own recurrences. Here one recurrence derived from the
cell computes all of them: forward derivatives of the state are state fields, and so are the sums.
Only the final state is written, and the compiled kernel has one series in each vector lane.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from tsrnn.kernels._cell import Cell
from tsrnn.kernels._cpu import time_order
from tsrnn.kernels._graph import Graph, GraphStep, Operand, without_unused
from tsrnn.kernels._jets import Jet, jets
from tsrnn.kernels._problem import Problem
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
        State fields that the step reads, after the last step.

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
        Parameters of the cell for each series.
    initial : ndarray of shape (N, q)
        Memory before the first step.
    terms : sequence of str
        Fields s to add up.
    products : sequence of (str, str or None)
        Fields a and weights w, also fields; None is a weight of one. For a log-likelihood a,
        these are outer products of scores.
    order : {0, 1, 2}, default 2
        Highest derivative of the terms. Products need 1.
    d_initial, dd_initial : mapping, optional
        Derivatives (N,) of the initial memory, by (field, parameter) and by (field, parameter,
        parameter), the first not after the second; zero if missing.

    Returns
    -------
    Sums

    Raises
    ------
    ValueError
        If shapes do not fit, the order or a name is unknown, or an operation of the cell has no
        derivative here.

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
    if order not in (0, 1, 2):
        raise ValueError(f"order must be 0, 1 or 2; got {order!r}")
    slopes: dict[tuple[int, ...], np.ndarray] = {**(d_initial or {}), **(dd_initial or {})}
    plan = _plan(
        cell,
        tuple(terms),
        tuple(products),
        order,
        tuple(sorted(key for key in slopes if len(key) == 2)),
        tuple(sorted(key for key in slopes if len(key) == 3)),
    )
    _check_arrays(cell, plan, lanes, params, initial)
    begin = np.zeros((plan.cell.n, lanes.n))
    begin[: cell.p] = params.T
    begin[cell.p : cell.p + plan.memory] = initial.T
    for place, key in enumerate((*plan.first, *plan.second), cell.p + plan.memory):
        begin[place] = slopes.get(key, 0.0)
    no_params = lanes.blocks.new_empty(0, lanes.blocks.shape[-1])
    problem = Problem(plan.cell, lanes.blocks, no_params, lanes.pack(begin))
    _, end = time_order.forward(problem, keep=False)
    return plan.read(lanes.unpack(end), cell.p)


def _check_arrays(
    cell: Cell, plan: _Plan, lanes: Lanes, params: np.ndarray, initial: np.ndarray
) -> None:
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
    """A summing cell, and the layout of its state.

    Its fields are the parameters, the memory, first and second derivatives of the memory, then
    the sums of terms, gradients, Hessians and products. `gradient`, `hessian` and `products`
    list the (term or product, variable...) of their entries.
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
        for place, (term, i) in enumerate(self.gradient, at):
            gradient[term, :, i] = end[place]
        at += len(self.gradient)
        hessian = np.zeros((self.terms, n, p, p))
        products = np.zeros((self.n_products, n, p, p))
        for matrices, pattern in ((hessian, self.hessian), (products, self.products)):
            for place, (k, i, j) in enumerate(pattern, at):
                matrices[k, :, i, j] = matrices[k, :, j, i] = end[place]
            at += len(pattern)
        return Sums(
            value,
            gradient if self.order > 0 else None,
            hessian if self.order > 1 else None,
            products if self.n_products else None,
            end[p : p + self.memory].copy(),
        )


@functools.cache
def _plan(
    cell: Cell,
    terms: tuple[str, ...],
    products: tuple[Product, ...],
    order: int,
    first: Pattern,
    second: Pattern,
) -> _Plan:
    """Derive the summing cell; `first` and `second` are derivatives of the initial memory."""
    graph, names = trace_step(cell), cell.field_names[0]

    def field(name: str) -> int:
        if name not in names:
            raise ValueError(
                f"{name!r} must be a state field of cell {cell.name!r}, one of {names}"
            )
        return names.index(name)

    memory = 1 + max((int(name[1:]) for name in graph.reads if name[0] == "h"), default=-1)
    slope = max(order, 1) if products else order
    first, second = _moving(graph, cell, memory, slope, first if slope else (), second)
    second = second if order > 1 else ()
    builder, new = jets(graph, _jets_before(cell, memory, slope, first, second), slope)

    fields = [field(term) for term in terms]
    gradient = [(k, i) for k, f in enumerate(fields) for i in sorted(new[f].first)] * (order > 0)
    hessian = [(k, *pair) for k, f in enumerate(fields) for pair in sorted(new[f].second)]
    hessian *= order > 1
    added = [
        *(new[f].value for f in fields),
        *(new[fields[k]].first[i] for k, i in gradient),
        *(new[fields[k]].second[i, j] for k, i, j in hessian),
    ]
    squares: dict[tuple[int, int, int], Operand] = {}
    for k, (name, weight) in enumerate(products):
        slopes = new[field(name)].first
        w = 1.0 if weight is None else new[field(weight)].value
        for i in sorted(slopes):
            left = builder.mul(w, slopes[i])
            squares |= {(k, i, j): builder.mul(left, slopes[j]) for j in sorted(slopes) if i <= j}
    added += squares.values()

    outputs: list[Operand] = [f"h{i}" for i in range(cell.p)]
    outputs += [jet.value for jet in new[:memory]]
    outputs += [new[f].first.get(i, 0.0) for f, i in first]
    outputs += [new[f].second.get((i, j), 0.0) for f, i, j in second]
    start = len(outputs)
    outputs += [builder.add(f"h{start + k}", value) for k, value in enumerate(added)]
    step = GraphStep(Graph(without_unused(builder.ops, outputs), tuple(outputs)))
    return _Plan(
        Cell(f"{cell.name}.sums{order}", len(outputs), cell.m, 0, step),
        memory, first, second, len(fields), tuple(gradient), tuple(hessian),
        len(products), tuple(squares), order,
    )  # fmt: skip


def _moving(
    graph: Graph, cell: Cell, memory: int, order: int, first: Pattern, second: Pattern
) -> tuple[Pattern, Pattern]:
    """Derivatives of the memory that may be nonzero, from those of the initial memory.

    Each pass propagates them by one step of the recurrence, until none are added.
    """
    ones, twos = set(first), set(second) if order > 1 else set()
    while True:
        first, second = tuple(sorted(ones)), tuple(sorted(twos))
        new = jets(graph, _jets_before(cell, memory, order, first, second), order)[1][:memory]
        more_ones = {(f, i) for f, jet in enumerate(new) for i in jet.first}
        more_twos = {(f, *pair) for f, jet in enumerate(new) for pair in jet.second}
        if more_ones <= ones and more_twos <= twos:
            return first, second
        ones, twos = ones | more_ones, twos | more_twos


def _jets_before(
    cell: Cell, memory: int, order: int, first: Pattern, second: Pattern
) -> dict[str, Jet]:
    """Jets of all inputs of a cell's graph, by names of the summing cell's fields."""
    start = cell.p + memory
    known = {f"h{f}": Jet(f"h{cell.p + f}") for f in range(memory)}
    for place, (f, i) in enumerate(first, start):
        known[f"h{f}"].first[i] = f"h{place}"
    for place, (f, i, j) in enumerate(second, start + len(first)):
        known[f"h{f}"].second[i, j] = f"h{place}"
    known |= {f"u{i}": Jet(f"u{i}") for i in range(cell.m)}
    # Parameters are fields too, with derivative one by themselves.
    return known | {f"w{i}": Jet(f"h{i}", {i: 1.0} if order > 0 else {}) for i in range(cell.p)}


WIDTH = 16  # lanes of a block: a row is two cache lines


class Lanes:
    """Series of one length, packed for kernels, which read row by row.

    Parameters
    ----------
    series : ndarray of float64, shape (N, T, m) or (N, T)
        N series of m input fields. To pad series of unequal lengths, add an input that is 1 where
        y was observed, else 0.

    Attributes
    ----------
    blocks : Tensor of shape (B, T, m, W)
        Series b W + w in lane w of block b; the last series fills the rest.
    n : int
        Number of series N.

    Raises
    ------
    ValueError
        If there is no series or no row.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.kernels import Lanes
    >>> lanes = Lanes(np.arange(6.0).reshape(2, 3))
    >>> lanes.n, lanes.blocks.shape
    (2, torch.Size([1, 3, 1, 2]))
    >>> lanes.unpack(lanes.pack(np.array([[1.0, 2.0]])))
    array([[1., 2.]])
    """

    def __init__(self, series: np.ndarray) -> None:
        series = series[..., None] if series.ndim == 2 else series
        if series.ndim != 3 or 0 in series.shape[:2]:
            raise ValueError(f"series must have shape (N, T, m) with N, T >= 1; got {series.shape}")
        self.n, width = len(series), min(len(series), WIDTH)
        whole, left = divmod(self.n, width)
        # Copied, so as not to keep the caller's array, and just once: it may fill half the memory.
        packed = np.empty((whole + (left > 0), *series.shape[1:], width))
        first = series[: whole * width].reshape(whole, width, *series.shape[1:])
        packed[:whole] = first.transpose(0, 2, 3, 1)
        if left:
            lanes = np.minimum(np.arange(width), left - 1)
            packed[whole] = series[whole * width :][lanes].transpose(1, 2, 0)
        self.blocks = torch.from_numpy(packed)

    def select(self, series: np.ndarray) -> Lanes:
        """Repack a subset of the series."""
        width = self.blocks.shape[3]
        return Lanes(self.blocks.numpy()[series // width, :, :, series % width])

    def pack(self, values: np.ndarray) -> Tensor:
        """Values (f, N) as (B, f, W)."""
        blocks, _, _, width = self.blocks.shape
        padded = np.ascontiguousarray(values)
        if self.n < blocks * width:
            padded = np.empty((len(values), blocks * width))
            padded[:, : self.n] = values
            padded[:, self.n :] = values[:, -1:]
        return (
            torch.from_numpy(padded).view(len(values), blocks, width).transpose(0, 1).contiguous()
        )

    def unpack(self, packed: Tensor) -> np.ndarray:
        """Values (B, f, W) as (f, N)."""
        return packed.transpose(0, 1).reshape(packed.shape[1], -1)[:, : self.n].numpy()


class Running:
    """The series that an iteration still works on.

    They are repacked when fewer than half of the packed series remain; until then all packed
    series are computed, and results of finished ones ignored.

    Parameters
    ----------
    lanes : Lanes
        All series.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.kernels import Lanes, Running
    >>> running = Running(Lanes(np.zeros((40, 3))))
    >>> lanes, places = running.covering(np.array([5, 7]))
    >>> lanes.n, places
    (2, array([0, 1]))
    """

    def __init__(self, lanes: Lanes) -> None:
        self._all = lanes
        self._lanes, self._numbers = lanes, np.arange(lanes.n)

    def covering(self, units: np.ndarray) -> tuple[Lanes, np.ndarray]:
        """Lanes that hold the series `units`, and the positions of these."""
        places = np.searchsorted(self._numbers, units)
        if not np.array_equal(self._numbers.take(places, mode="clip"), units):
            self._lanes, self._numbers = self._all, np.arange(self._all.n)
            places = units
        # With halving, all repacking together reads the series at most once more.
        if 2 * len(units) <= len(self._numbers) and self._lanes.n > WIDTH:
            self._numbers = np.sort(units)
            self._lanes = self._all.select(self._numbers)
            places = np.searchsorted(self._numbers, units)
        return self._lanes, places
