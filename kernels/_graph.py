"""Graph of a cell: its straight-line program of scalar operations, as data.

`OPERATIONS` is the whole language. Every code emitter supports all of it, and `evaluate` runs
it on tensors.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

Operand = str | float


@dataclass(frozen=True)
class Op:
    """``out = name(*args)``; an argument is the name of a value or a number."""

    out: str
    name: str
    args: tuple[Operand, ...]


@dataclass(frozen=True)
class Graph:
    """A straight-line program of scalar operations from named inputs to named outputs."""

    ops: tuple[Op, ...]
    outputs: tuple[Operand, ...]

    @property
    def reads(self) -> set[str]:
        """Names of the inputs in use."""
        results = {op.out for op in self.ops}
        used = {a for op in self.ops for a in op.args} | set(self.outputs)
        return {name for name in used if isinstance(name, str) and name not in results}


def without_unused(ops: Sequence[Op], outputs: Iterable[Operand]) -> tuple[Op, ...]:
    """Drop operations that no output needs."""
    needed, kept = set(outputs), []
    for op in reversed(ops):
        if op.out in needed:
            kept.append(op)
            needed.update(op.args)
    return tuple(reversed(kept))


def renamed(operands: Iterable[Operand], names: Mapping[str, Operand]) -> tuple[Operand, ...]:
    """Rename operands that have a new name."""
    return tuple(names.get(a, a) if isinstance(a, str) else a for a in operands)


_ON_TENSORS = (
    "sqrt", "abs", "log", "sin", "cos", "sgn", "sign", "exp", "expm1", "tanh", "sigmoid", "relu",
    "reciprocal", "square", "tanh_backward", "sigmoid_backward", "threshold_backward", "where",
)  # fmt: skip
_ON_NUMBERS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "rsub": lambda a, b: b - a,
    "mul": operator.mul,
    "div": operator.truediv,
    "neg": operator.neg,
    "pow": operator.pow,
    "gt": operator.gt,
    "ge": operator.ge,
    "lt": operator.lt,
    "le": operator.le,
    "eq": operator.eq,
    "ne": operator.ne,
}
COMPARISONS = frozenset(["gt", "ge", "lt", "le", "eq", "ne"])
OPERATIONS = frozenset([*_ON_TENSORS, *_ON_NUMBERS])


def elementwise(name: str) -> Callable[..., Any]:
    """Function of an operation, on anything that torch's functions and operators accept."""
    if name in _ON_NUMBERS:
        return _ON_NUMBERS[name]
    import torch  # not needed to write graphs as code

    function: Callable[..., Any] = getattr(torch, name)
    return function


def evaluate(graph: Graph, values: Mapping[str, Tensor]) -> list[Tensor]:
    """Run a graph on tensors that broadcast, by the names that it reads; autograd follows.

    An output that does not depend on the inputs is a tensor without dimensions.
    """
    import torch

    known = dict(values)
    like = next(iter(known.values()))

    def tensor_of(operand: Operand) -> Tensor:
        return known[operand] if isinstance(operand, str) else like.new_full((), operand)

    for op in graph.ops:
        if op.name in _ON_NUMBERS:
            args = [known[a] if isinstance(a, str) else a for a in op.args]
            known[op.out] = _ON_NUMBERS[op.name](*args)
        elif op.name == "threshold_backward":
            gradient, value, threshold = op.args
            known[op.out] = torch.ops.aten.threshold_backward(
                tensor_of(gradient), tensor_of(value), threshold
            )
        else:
            known[op.out] = getattr(torch.ops.aten, op.name)(*map(tensor_of, op.args))
    return [tensor_of(out) for out in graph.outputs]


class GraphStep:
    """Step of a cell given by a graph of ``h0..``, ``u0..`` and ``w0..``."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def __call__(self, *fields: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        values = {
            f"{prefix}{i}": value
            for prefix, group in zip("huw", fields, strict=True)
            for i, value in enumerate(group)
        }
        return tuple(evaluate(self.graph, values))
