r"""Paths of a recurrence and their derivatives, for many series, each with its own parameters.

The Gauss-Newton method for a likelihood of prediction errors needs the Jacobian of a path: gradient
and information are products of it. A derivative in one direction follows a recurrence alongside the
original one. Here each series has a vector lane for each direction and one for the path itself,
with the same kernel for both.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch

from tsrnn.kernels._cell import Cell
from tsrnn.kernels._cpu import time_order
from tsrnn.kernels._graph import Graph, GraphStep, Operand, without_unused
from tsrnn.kernels._jets import Jet, jets
from tsrnn.kernels._problem import Problem
from tsrnn.kernels._trace import trace_step

_CACHED = 2**20  # bytes of fields that stay in the second-level cache until their products


class Paths(NamedTuple):
    """Fields of a cell over time, the final memory, and derivatives of both.

    Attributes
    ----------
    fields : ndarray of shape (N, T, n_fields, k + 1)
        The k derivatives, then the value.
    memory : ndarray of shape (N, q, k + 1)
        Likewise.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.kernels import Cell, paths
    >>> total = Cell("total", 1, 1, 0, lambda h, u, w: (h[0] + u[0],), names=(("sum",), ("y",), ()))
    >>> nothing = np.empty((1, 0, 0))
    >>> paths(total, np.ones((1, 3, 1)), np.empty((1, 0)), np.zeros((1, 1)), nothing,
    ...       np.empty((1, 0, 1)), fields=["sum"]).memory
    array([[[3.]]])
    """

    fields: np.ndarray
    memory: np.ndarray


def paths(
    cell: Cell,
    inputs: np.ndarray,
    params: np.ndarray,
    initial: np.ndarray,
    d_params: np.ndarray,
    d_initial: np.ndarray,
    *,
    fields: Sequence[str],
) -> Paths:
    r"""Fields of a cell's state over time, with directional derivatives.

    .. math:: \frac{\partial s_t}{\partial \theta} v + \frac{\partial s_t}{\partial h_0} w

    Parameters
    ----------
    cell : Cell
        With names. The fields of its state that its step reads, its memory, come first.
    inputs : ndarray of shape (N, T, m)
        N series; all arrays are float64.
    params : ndarray of shape (N, p)
    initial : ndarray of shape (N, q)
        Memory before the first step.
    d_params, d_initial : ndarray of shapes (N, k, p) and (N, k, q)
        Directions v and w, k for each series.
    fields : sequence of str
        Fields s.

    Returns
    -------
    Paths

    Raises
    ------
    TypeError
        If an array is not float64.
    ValueError
        If shapes do not fit, a name is unknown, or an operation of the cell has no derivative here.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.kernels import Cell, paths
    >>> def step(state, inputs, params):
    ...     return (params[0] * state[0] + inputs[0],)
    >>> decay = Cell("decay", 1, 1, 1, step, names=(("h",), ("u",), ("a",)))
    >>> ones = np.ones((1, 1, 1))
    >>> paths(decay, np.zeros((1, 3, 1)), np.array([[0.5]]), np.array([[8.0]]), ones, 0 * ones,
    ...       fields=["h"]).fields[0, :, 0]
    array([[8., 4.],
           [8., 2.],
           [6., 1.]])
    """
    given = (params, initial, d_params, d_initial)
    plan = _plan(cell, tuple(fields))
    _check_shapes(cell, plan, inputs, *given, len(fields))
    return _run(plan, cell, inputs, *given, len(fields))


class PathProducts(NamedTuple):
    """Sums over time of products of fields and their derivatives, and the final memory.

    Attributes
    ----------
    products : ndarray of shape (N, k + 1, k + 1)
        Products of the k derivatives and the value of each field with each other, summed over time
        and fields.
    memory : ndarray of shape (N, q, k + 1)
        The k derivatives, then the value.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.kernels import Cell, path_products
    >>> total = Cell("total", 1, 1, 0, lambda h, u, w: (h[0] + u[0],), names=(("sum",), ("y",), ()))
    >>> nothing = np.empty((1, 0, 0))
    >>> sums = path_products(total, np.ones((1, 3, 1)), np.empty((1, 0)), np.zeros((1, 1)), nothing,
    ...                      np.empty((1, 0, 1)), fields=["sum"])
    >>> sums.products.item()
    14.0
    """

    products: np.ndarray
    memory: np.ndarray


def path_products(
    cell: Cell,
    inputs: np.ndarray,
    params: np.ndarray,
    initial: np.ndarray,
    d_params: np.ndarray,
    d_initial: np.ndarray,
    *,
    fields: Sequence[str],
    series: np.ndarray | None = None,
    lengths: np.ndarray | None = None,
) -> PathProducts:
    r"""Gram matrices of the fields of `paths`, computed while these are in the cache.

    .. math:: \sum_t (J_t, s_t)' (J_t, s_t)

    Parameters
    ----------
    cell, params, initial, d_params, d_initial, fields
        As in `paths`.
    inputs : ndarray of shape (S, T, m)
    series : integer ndarray of shape (N,), optional
        Row of `inputs` of each of the N series; by default each has its own.
    lengths : integer ndarray of shape (S,), optional
        Steps of each row of `inputs`; by default all of T.

    Returns
    -------
    PathProducts

    Raises
    ------
    ValueError
        As `paths`.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.kernels import Cell, path_products
    >>> def step(state, inputs, params):
    ...     return (params[0] * state[0] + inputs[0],)
    >>> decay = Cell("decay", 1, 1, 1, step, names=(("h",), ("u",), ("a",)))
    >>> ones = np.ones((1, 1, 1))
    >>> path_products(decay, np.zeros((1, 3, 1)), np.array([[0.5]]), np.array([[8.0]]), ones,
    ...               0 * ones, fields=["h"]).products
    array([[[164.,  54.],
            [ 54.,  21.]]])
    """
    plan = _plan(cell, tuple(fields))
    series = np.arange(len(params)) if series is None else series
    given = (params, initial, d_params, d_initial)
    _check_shapes(cell, plan, inputs, *given, len(fields), len(series))
    n, q, width = len(params), initial.shape[1], d_params.shape[1] + 1
    products, memory = np.empty((n, width, width)), np.empty((n, q, width))
    at_once = max(1, _CACHED // (8 * width * max(1, inputs.shape[1] * len(fields))))
    for begin in range(0, n, at_once):
        part = slice(begin, begin + at_once)
        steps = None if lengths is None else lengths[series[part]]
        # Rows after the end of the longest one are not read.
        longest = inputs.shape[1] if steps is None else int(steps.max())
        chunk = _run(
            plan, cell, inputs[series[part], :longest], params[part], initial[part],
            d_params[part], d_initial[part], len(fields), steps,
        )  # fmt: skip
        table = chunk.fields.reshape(len(chunk.fields), -1, width)
        np.matmul(table.swapaxes(1, 2), table, out=products[part])
        memory[part] = chunk.memory
    return PathProducts(products, memory)


class Variants(NamedTuple):
    """Outputs of a cell along N series under K sets of parameters each, and the final states.

    Attributes
    ----------
    outputs : ndarray of shape (N, T, n_outputs, K)
        Zero after the end of a series.
    final : ndarray of shape (N, n, K)

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.kernels import Cell, variants
    >>> def step(state, inputs, params):
    ...     return (params[0] * state[0] + inputs[0],)
    >>> decay = Cell("shared_decay", 1, 1, 1, step, shared=True)
    >>> rates = np.array([[[0.5, 1.0]]])
    >>> variants(decay, np.ones((1, 3, 1)), rates, np.zeros((1, 1, 2)), np.array([3])).final
    array([[[1.75, 3.  ]]])
    """

    outputs: np.ndarray
    final: np.ndarray


def variants(
    cell: Cell, inputs: np.ndarray, params: np.ndarray, initial: np.ndarray, lengths: np.ndarray
) -> Variants:
    """Outputs of a cell along series, each under several sets of parameters and initial states.

    Their differences give derivatives at the cost of one value each.

    Parameters
    ----------
    cell : Cell
        With shared inputs; outputs are its first fields.
    inputs : ndarray of shape (N, T, m)
        All arrays except the lengths are float64.
    params, initial : ndarrays of shape (N, p, K) and (N, n, K)
    lengths : integer ndarray of shape (N,)
        Rows of each series.

    Returns
    -------
    Variants

    Raises
    ------
    ValueError
        If the inputs are not shared, or shapes do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.kernels import Cell, variants
    >>> total = Cell("shared_sum", 1, 1, 0, lambda h, u, w: (h[0] + u[0],), shared=True)
    >>> variants(total, np.ones((1, 3, 1)), np.empty((1, 0, 1)), np.zeros((1, 1, 1)),
    ...          np.array([2])).outputs[0, :, 0, 0]
    array([1., 2., 0.])
    """
    n, width = len(inputs), initial.shape[2]
    shapes = (n, inputs.shape[1], cell.m), (n, cell.p, width), (n, cell.n, width), (n,)
    given = tuple(part.shape for part in (inputs, params, initial, lengths))
    if not cell.shared or given != shapes:
        raise ValueError(
            f"inputs of cell {cell.name!r} must be shared, and inputs, params, initial and lengths "
            f"of shapes {shapes}; got {given}"
        )
    ends = torch.from_numpy(np.ascontiguousarray(lengths, dtype=np.int64))
    u, w, h = map(torch.from_numpy, (inputs, params, initial))
    problem = Problem(cell, u, w, h, ends)
    return Variants(*(part.numpy() for part in time_order.forward_outputs(problem)))


def _check_shapes(
    cell: Cell, plan: Cell, inputs: np.ndarray, params: np.ndarray, initial: np.ndarray,
    d_params: np.ndarray, d_initial: np.ndarray, n_fields: int, n_series: int | None = None,
) -> None:  # fmt: skip
    q = (plan.n - n_fields) // 2
    rows, steps = (*np.shape(inputs), 0, 0)[:2]
    n, k = rows if n_series is None else n_series, (*np.shape(d_params), 0, 0)[1]
    shapes = {
        "inputs": (inputs, (rows, steps, cell.m)),
        "params": (params, (n, cell.p)),
        "initial": (initial, (n, q)),
        "d_params": (d_params, (n, k, cell.p)),
        "d_initial": (d_initial, (n, k, q)),
    }
    for name, (array, shape) in shapes.items():
        if not isinstance(array, np.ndarray) or array.dtype != np.float64:
            kind = getattr(array, "dtype", type(array).__name__)
            raise TypeError(f"{name} of cell {cell.name!r} must be an array of float64; got {kind}")
        if array.shape != shape:
            raise ValueError(
                f"{name} of cell {cell.name!r} must have shape {shape}; got {array.shape}"
            )


def _run(
    plan: Cell, cell: Cell, inputs: np.ndarray, params: np.ndarray, initial: np.ndarray,
    d_params: np.ndarray, d_initial: np.ndarray, n_fields: int, lengths: np.ndarray | None = None,
) -> Paths:  # fmt: skip
    """Compute paths in one call of the kernel."""
    n, k, q = len(params), d_params.shape[1], initial.shape[1]
    weights, begin = np.empty((n, plan.p, k + 1)), np.empty((n, plan.n, k + 1))
    weights[:, : cell.p] = params[:, :, None]
    weights[:, cell.p : -1, :k] = d_params.swapaxes(1, 2)
    weights[:, cell.p :, k], weights[:, -1, :k] = 0.0, 0.0
    weights[:, -1, k] = 1.0
    # Series often share the directions: one row, copied whole.
    same = d_initial[:1] if d_initial.strides[0] == 0 else d_initial
    rows = np.zeros((len(same), plan.n, k + 1))
    rows[:, n_fields + q :, :k] = same.swapaxes(1, 2)
    begin[:] = rows
    begin[:, n_fields : n_fields + q] = initial[:, :, None]
    ends = None if lengths is None else torch.from_numpy(lengths)
    u, w, h = map(torch.from_numpy, (inputs, weights, begin))
    problem = Problem(plan, u, w, h, ends)
    states, end = (part.numpy() for part in time_order.forward_outputs(problem))
    memory = end[:, -q:] if q else end[:, :0]
    memory[:, :, k] = end[:, n_fields : n_fields + q, k]
    return Paths(states, memory)


@functools.cache
def _plan(cell: Cell, fields: tuple[str, ...]) -> Cell:
    """Cell for one direction, or for the value if its last parameter is 1 instead of 0.

    Its state consists of the requested fields, the memory, and the derivatives of the memory; its
    parameters are those of the cell and their derivatives.
    """
    graph, names = trace_step(cell), cell.field_names[0]
    unknown = [name for name in fields if name not in names]
    if unknown:
        raise ValueError(
            f"{unknown[0]!r} must be a state field of cell {cell.name!r}, one of {names}"
        )
    q = 1 + max((int(name[1:]) for name in graph.reads if name[0] == "h"), default=-1)
    start = len(fields)
    known = {f"h{f}": Jet(f"h{start + f}", {0: f"h{start + q + f}"}) for f in range(q)}
    known |= {f"u{i}": Jet(f"u{i}") for i in range(cell.m)}
    known |= {f"w{i}": Jet(f"w{i}", {0: f"w{cell.p + i}"}) for i in range(cell.p)}
    builder, new = jets(graph, known, 1)
    # A lane of the value has no direction, and its derivative is zero.
    outputs: list[Operand] = []
    for jet in (new[names.index(name)] for name in fields):
        value = builder.mul(f"w{2 * cell.p}", jet.value)
        outputs.append(builder.add(jet.first.get(0, 0.0), value))
    outputs += [jet.value for jet in new[:q]]
    outputs += [jet.first.get(0, 0.0) for jet in new[:q]]
    step = GraphStep(Graph(without_unused(builder.ops, outputs), tuple(outputs)))
    return Cell(
        f"{cell.name}.paths", len(outputs), cell.m, 2 * cell.p + 1, step, shared=True,
        outputs=len(fields),
    )  # fmt: skip
