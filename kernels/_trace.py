"""Trace of a cell on scalars: its step and its vector-Jacobian product as flat graphs."""

import contextlib
import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tsrnn.kernels._cell import Cell
from tsrnn.kernels._graph import (
    OPERATIONS,
    Graph,
    GraphStep,
    Op,
    Operand,
    evaluate,
    renamed,
    without_unused,
)
from tsrnn.kernels._matrix_form import BlockStep

_COPIES = {"detach", "alias", "clone", "view"}
_CONSTANTS = {"zeros_like", "ones_like", "full_like", "new_zeros", "new_ones", "new_full"}
_ONE = torch.tensor(1.0, dtype=torch.float64, device="cpu")
_ALL = slice(None)
_ON_MASKS = {
    "where", "masked_fill", "logical_and", "logical_or", "logical_not",
    "bitwise_and", "bitwise_or", "bitwise_not",
}  # fmt: skip
_ARITHMETIC_OPTIONS = {"alpha", "rounding_mode", "approximate"}  # these change the result


class _Recorder(TorchDispatchMode):
    """Records every operation on tensors, including autograd's."""

    def __init__(self, cell: Cell, named: dict[str, torch.Tensor]) -> None:
        super().__init__()
        self._cell = cell
        self.part = "step"  # part being recorded, for messages
        self.ops: list[Op] = []
        self._names = {id(tensor): name for name, tensor in named.items()}
        self._alive: list[object] = list(named.values())  # keeps ids unique

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # switching it off would import torch's compiler, three seconds

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        name = func._schema.name.removeprefix("aten::")
        self._check(func, name, args, kwargs or {})
        result = func(*args, **(kwargs or {}))
        if not isinstance(result, torch.Tensor) or result.ndim:
            raise self._refusal(name, "does not give a scalar; write elementwise functions only")
        self._alive.append(result)
        scalars = [a for a in args if isinstance(a, torch.Tensor | int | float)]
        operands = tuple(self.operand(a) for a in scalars)
        if name not in _CONSTANTS and any(isinstance(a, str) for a in operands):
            self._names[id(result)] = self._note(name, operands)
        return result

    def _check(self, func: Any, name: str, args: Sequence[object], options: dict[str, Any]) -> None:
        """Reject an operation that a graph of scalars cannot express."""
        if name == "_local_scalar_dense":
            raise self._refusal(
                "if or float",
                "asks for the value of a tensor, but the recurrence is compiled once for all "
                "values. Write torch.where(condition, a, b)",
            )
        if torch.Tag.nondeterministic_seeded in func.tags:
            raise self._refusal(name, "draws a random number; pass it in as an input")
        if func._schema.is_mutable:
            raise self._refusal(name, "works in place; write a new value, a = a + b")
        if used := _ARITHMETIC_OPTIONS & options.keys():
            raise self._refusal(name, f"takes {min(used)}; write its formula with + - * /")
        for a in args:
            if not isinstance(a, torch.Tensor):
                continue
            if a.dtype == torch.bool and name not in _ON_MASKS:
                raise self._refusal(
                    name, "computes with a comparison; write torch.where(a > b, c, d)"
                )
            if a.requires_grad and id(a) not in self._names:
                raise self._refusal(name, "has an operand that requires grad; pass it in params")

    def _refusal(self, name: str, why: str) -> ValueError:
        return ValueError(f"{self.part} of cell {self._cell.name!r}: {name} {why}")

    def _note(self, name: str, operands: tuple[Operand, ...]) -> str:
        """Record an operation and name its result; a copy keeps its source's name."""
        if name in _COPIES and isinstance(operands[0], str):
            return operands[0]
        if name == "mul" and 1.0 in operands:
            other = operands[operands[0] == 1.0]
            if isinstance(other, str):
                return other
        self.ops.append(Op(f"v{len(self.ops)}", name, operands))
        return self.ops[-1].out

    def operand(self, value: torch.Tensor | float) -> Operand:
        """Name of a recorded tensor, or the value of a constant."""
        if not isinstance(value, torch.Tensor):
            return float(value)
        return self._names.get(id(value)) or float(value)


_FIRST = {"h": 0.3, "u": 0.32, "w": 0.34, "g": 0.36}


def _scalars(prefix: str, count: int) -> dict[str, torch.Tensor]:
    # Distinct values away from kinks, to trace the general case.
    return {
        f"{prefix}{i}": torch.tensor(
            _FIRST[prefix] + 0.1 * i, dtype=torch.float64, device="cpu", requires_grad=True
        )
        for i in range(count)
    }


class _Trace:
    """A step recorded on scalars, ready to be differentiated under the same recorder."""

    def __init__(self, cell: Cell) -> None:
        self.cell = cell
        parts = _scalars("h", cell.n), _scalars("u", cell.m), _scalars("w", cell.p)
        self._fields = [tuple(part.values()) for part in parts]
        self.cotangents = {name: g.detach() for name, g in _scalars("g", cell.n).items()}
        self.leaves = parts[0] | parts[1] | parts[2]
        self._recorder = _Recorder(cell, self.leaves | self.cotangents)
        with self._recording():
            self._new = cell.step(*self._fields)
        _check_result(cell, self._new)
        self.new = [self._recorder.operand(t) for t in self._new]
        # Before any gradient, so that errors refer to the author's code.
        self.graph(self.new)

    @contextlib.contextmanager
    def _recording(self) -> Iterator[None]:
        try:
            with self._recorder:
                yield
        except RuntimeError as error:
            raise ValueError(
                f"{self._recorder.part} of cell {self.cell.name!r} cannot be traced: {error}"
            ) from error

    def gradients(
        self, leaves: Iterable[str], cotangents: Sequence[torch.Tensor], of: slice = _ALL
    ) -> list[Operand]:
        """Products of cotangents with the derivatives of fields of the new state by leaves."""
        tensors = [self.leaves[name] for name in leaves]
        slopes: list[Operand] = [0.0] * len(tensors)
        # Constant fields of the state contribute nothing.
        pairs = zip(self._new[of], cotangents, strict=True)
        if moving := [(t, g) for t, g in pairs if t.requires_grad]:
            outputs, weights = zip(*moving, strict=True)
            with self._recording():
                gradients = torch.autograd.grad(
                    outputs, tensors, weights, retain_graph=True, allow_unused=True
                )
            slopes = [0.0 if g is None else self._recorder.operand(g) for g in gradients]
        self.graph(slopes)
        return slopes

    def jacobian(self) -> list[Operand]:
        """Entries by rows of the Jacobian given with the cell."""
        assert self.cell.jacobian is not None
        self._recorder.part = "jacobian"
        with self._recording():
            rows = self.cell.jacobian(*self._fields)
        n, name = self.cell.n, self.cell.name
        sizes = (
            [len(row) if isinstance(row, tuple) else type(row).__name__ for row in rows]
            if isinstance(rows, tuple)
            else type(rows).__name__
        )
        if sizes != [n] * n:
            raise ValueError(
                f"jacobian of cell {name!r} must return a tuple of n={n} rows, tuples of {n} "
                f"entries; got {sizes}"
            )
        entries = [entry for row in rows for entry in row]
        for entry in entries:
            if not isinstance(entry, torch.Tensor | int | float):
                raise ValueError(
                    f"entries of the jacobian of cell {name!r} must be tensors or numbers; got "
                    f"{entry!r}"
                )
        operands = [self._recorder.operand(entry) for entry in entries]
        self.graph(operands)
        return operands

    def graph(self, outputs: Sequence[Operand], names: dict[str, Operand] | None = None) -> Graph:
        """Operations that recorded values need, some of these under other names."""
        ops = without_unused(self._recorder.ops, outputs)
        for op in ops:
            if op.name not in OPERATIONS:
                known = sorted(name for name in OPERATIONS if not name.endswith("_backward"))
                raise ValueError(
                    f"cell {self.cell.name!r} uses torch's {op.name!r}, which has no compiled "
                    f"form. Write it with {', '.join(known)}, or use engine='reference'"
                )
        if names:
            ops = tuple(Op(op.out, op.name, renamed(op.args, names)) for op in self._recorder.ops)
            outputs = renamed(outputs, names)
        return Graph(without_unused(ops, outputs), tuple(outputs))


def _check_result(cell: Cell, new: object) -> None:
    if not (isinstance(new, tuple) and len(new) == cell.n):
        came = f"{len(new)} values" if isinstance(new, tuple) else f"a {type(new).__name__}"
        raise ValueError(
            f"step of cell {cell.name!r} must return a tuple of n={cell.n} tensors, the new "
            f"state; got {came}"
        )
    for i, field in enumerate(new):
        if not (isinstance(field, torch.Tensor) and field.is_floating_point()):
            kind = field.dtype if isinstance(field, torch.Tensor) else type(field).__name__
            raise ValueError(
                f"field {i} of the new state of cell {cell.name!r} must be a tensor of floating "
                f"point numbers; got {kind}"
            )


def _anywhere() -> contextlib.ExitStack:
    """Allow recording in any mode of the caller."""
    stack = contextlib.ExitStack()
    stack.enter_context(torch.inference_mode(False))
    stack.enter_context(torch.enable_grad())
    return stack


@functools.cache
def trace_step(cell: Cell) -> Graph:
    """Graph of a cell's step alone; reads ``h0..``, ``u0..`` and ``w0..``, see `trace`."""
    if isinstance(cell.step, GraphStep):
        return cell.step.graph
    with _anywhere():
        traced = _Trace(cell)
        return traced.graph(traced.new)


@functools.cache
def trace(cell: Cell) -> tuple[Graph, Graph]:
    """Graphs of a cell's step and of its vector-Jacobian product.

    Both read ``h0..``, ``u0..`` and ``w0..`` (state, inputs, parameters). The second also reads
    ``g0..``, the gradient of the new state, and ``s0..``, the new state itself: values stored by
    the forward pass are not recomputed, so that for example the derivative of tanh needs no input.
    Its outputs are the gradients of state, inputs and parameters, in this order; those of shared
    inputs are 0. A ValueError names an operation that is not in `OPERATIONS`, or not on scalars.
    """
    with _anywhere():
        traced = _Trace(cell)
        gradients = traced.gradients(traced.leaves, list(traced.cotangents.values()))
        if cell.shared:
            gradients[cell.n : cell.n + cell.m] = [0.0] * cell.m
        stored: dict[str, Operand] = {
            name: f"s{i}"
            for i, name in enumerate(traced.new)
            if isinstance(name, str) and name[0] == "v"
        }
        return traced.graph(traced.new), traced.graph(gradients, stored)


@functools.cache
def trace_jacobian(cell: Cell) -> Graph:
    """Graph of a cell's new state (n outputs) and its Jacobian by the old one (n * n, by rows)."""
    with _anywhere():
        traced = _Trace(cell)
        rows = []
        for i in range(cell.n):
            rows += traced.gradients(list(traced.leaves)[: cell.n], [_ONE], slice(i, i + 1))
        return traced.graph([*traced.new, *rows])


@functools.cache
def trace_newton(cell: Cell) -> Graph:
    """Graph of a cell's new state (n outputs) and the n x n matrix of Newton's iteration, by rows.

    The matrix is the cell's own Jacobian, if any, else the traced one; entries outside of its
    structure are 0. A cell's own Jacobian must be the derivative of its step.
    """
    exact = trace_jacobian(cell)
    if not cell.has_newton_matrix:
        return exact
    n, kept = cell.n, _kept_entries(cell)
    graph = exact
    if cell.jacobian is not None:
        with _anywhere():
            traced = _Trace(cell)
            graph = traced.graph([*traced.new, *traced.jacobian()])
        _check_jacobian(cell, exact, graph, kept)
    matrix = [entry if i in kept else 0.0 for i, entry in enumerate(graph.outputs[n:])]
    outputs = (*graph.outputs[:n], *matrix)
    return Graph(without_unused(graph.ops, outputs), outputs)


def _kept_entries(cell: Cell) -> set[int]:
    """Entries, by rows, of the Jacobian that the cell's structure keeps."""
    return {i * cell.n + j for group in cell.groups for i in group for j in group}


def _check_jacobian(cell: Cell, exact: Graph, graph: Graph, kept: set[int]) -> None:
    """Compare the kept entries of two graphs at random points."""
    generator = torch.Generator().manual_seed(0)  # of its own: the answer is always the same
    names = [f"{prefix}{i}" for prefix, count in (("h", cell.n), ("u", cell.m), ("w", cell.p))
             for i in range(count)]  # fmt: skip
    with torch.device("cpu"):
        normal = torch.randn(32, len(names), generator=generator, dtype=torch.float64)
        # In the other half all are positive, for finite roots and logarithms.
        points = torch.cat([normal, normal.abs()])
        values = dict(zip(names, points.unbind(1), strict=True))
        both = [[x.expand(64) for x in evaluate(each, values)[cell.n :]] for each in (exact, graph)]
    for entry in sorted(kept):
        due, came = both[0][entry], both[1][entry]
        # In float64: rounding is far below the tolerance, errors are far above.
        wrong = due.isfinite() & ~torch.isclose(came, due, rtol=1e-6, atol=1e-9)
        if wrong.any():
            at = int(wrong.nonzero()[0, 0])
            i, j = divmod(entry, cell.n)
            state, inputs, params = cell.field_names
            called = (*state, *inputs, *params)
            place = ", ".join(
                f"{name}={value:.3g}"
                for name, value in zip(called, points[at].tolist(), strict=True)
            )
            raise ValueError(
                f"jacobian of cell {cell.name!r} is not the derivative of its step: entry "
                f"({i}, {j}), of the new {state[i]} by the old {state[j]}, is "
                f"{came[at].item():.6g} at {place}; the step has {due[at].item():.6g}. Correct "
                "it or leave jacobian out; a structure leaves entries out"
            )


@functools.cache
def takes_one_pass(cell: Cell) -> bool:
    """True if one step of Newton's method is exact: a linear cell, with all entries kept."""
    if not is_linear(cell):
        return False
    left_out = set(range(cell.n**2)) - _kept_entries(cell)
    return not left_out or all(trace_jacobian(cell).outputs[cell.n + i] == 0.0 for i in left_out)


@functools.cache
def is_linear(cell: Cell) -> bool:
    """True if a cell is affine in its state, so that its Jacobian does not depend on it."""
    if isinstance(cell.step, BlockStep) and cell.step.size > 2:
        return is_linear(cell.step.form.block(2))  # the formula is the same for all sizes
    graph = trace_jacobian(cell)
    jacobian = without_unused(graph.ops, graph.outputs[cell.n :])
    reads = Graph(jacobian, graph.outputs[cell.n :]).reads
    with torch.device("cpu"):  # also while layers are built on the meta device
        return not any(name.startswith("h") for name in reads) and _is_line(graph, cell)


def _is_line(graph: Graph, cell: Cell) -> bool:
    """True if new states move by their Jacobian, unlike those of sign or step functions."""
    generator = torch.Generator().manual_seed(0)  # of its own: the answer is always the same
    fixed = {
        f"{prefix}{i}": torch.rand((), generator=generator, dtype=torch.float64)
        for prefix, count in (("u", cell.m), ("w", cell.p))
        for i in range(count)
    }
    states = torch.randn(64, cell.n, generator=generator, dtype=torch.float64)
    fields = {f"h{i}": states[:, i] for i in range(cell.n)}
    outputs = [x.expand(64) for x in evaluate(graph, fields | fixed)]
    new, jacobian = torch.stack(outputs[: cell.n], 1), torch.stack(outputs[cell.n :], 1)
    rows = jacobian.unflatten(1, (cell.n, cell.n))
    moved = torch.einsum("bij,bj->bi", rows, states - states[:1])
    # In float64: rounding is far below the tolerance, nonlinearity is far above.
    return torch.allclose(new - new[:1], moved, rtol=1e-6, atol=1e-9)
