"""Record what a cell does to scalars: its step and its vector-Jacobian product as flat graphs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tsrnn.kernels._cell import Cell

Operand = str | float


@dataclass(frozen=True)
class Op:
    """``out = name(*args)``; an argument is the name of a value or a number."""

    out: str
    name: str
    args: tuple[Operand, ...]


@dataclass(frozen=True)
class Graph:
    """A straight line of scalar operations from named inputs to named outputs."""

    ops: tuple[Op, ...]
    outputs: tuple[Operand, ...]

    @property
    def reads(self) -> set[str]:
        """Names of the inputs that are used."""
        made = {op.out for op in self.ops}
        used = {a for op in self.ops for a in op.args} | set(self.outputs)
        return {name for name in used if isinstance(name, str) and name not in made}


_COPIES = {"detach", "alias", "clone", "view"}
_CONSTANTS = {"zeros_like", "ones_like", "full_like"}


class _Recorder(TorchDispatchMode):
    """Notes every operation on tensors under it, autograd's included."""

    def __init__(self, named: dict[str, torch.Tensor]) -> None:
        super().__init__()
        self.ops: list[Op] = []
        self._names = {id(tensor): name for name, tensor in named.items()}
        self._alive: list[object] = list(named.values())  # ids stay unique while they live

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # torch would import its compiler, three seconds, to switch it off

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        result = func(*args, **(kwargs or {}))
        if not isinstance(result, torch.Tensor) or result.ndim:
            raise ValueError(
                f"a cell's step works on scalars element by element, but {func} "
                "made something else; write it with elementwise functions only"
            )
        if kwargs and "alpha" in kwargs:
            raise ValueError("write a + alpha * b instead of torch.add(a, b, alpha=alpha)")
        self._alive.append(result)
        name = func._schema.name.removeprefix("aten::")
        operands = tuple(self._operand(a) for a in args if isinstance(a, torch.Tensor | int | float))
        if name not in _CONSTANTS and any(isinstance(a, str) for a in operands):
            self._names[id(result)] = self._note(name, operands)
        return result

    def _note(self, name: str, operands: tuple[Operand, ...]) -> str:
        """Write an operation down and name its result; a copy keeps its source's name."""
        if name in _COPIES and isinstance(operands[0], str):
            return operands[0]
        self.ops.append(Op(f"v{len(self.ops)}", name, operands))
        return self.ops[-1].out

    def _operand(self, value: torch.Tensor | float) -> Operand:
        if not isinstance(value, torch.Tensor):
            return float(value)
        return self._names.get(id(value)) or float(value)

    def name_of(self, tensor: torch.Tensor) -> Operand:
        """Name of a recorded tensor, or its value where it is a constant."""
        return self._operand(tensor)


def _scalars(prefix: str, count: int) -> dict[str, torch.Tensor]:
    # Values off every kink, different from each other: what is traced is the general case.
    return {
        f"{prefix}{i}": torch.tensor(0.3 + 0.1 * i, dtype=torch.float64, requires_grad=True)
        for i in range(count)
    }


def _without(ops: Sequence[Op], outputs: Iterable[Operand]) -> tuple[Op, ...]:
    """Drop operations that no output needs."""
    needed, kept = set(outputs), []
    for op in reversed(ops):
        if op.out in needed:
            kept.append(op)
            needed.update(op.args)
    return tuple(reversed(kept))


def _renamed(ops: Sequence[Op], names: dict[str, Operand]) -> list[Op]:
    return [
        Op(op.out, op.name, tuple(names.get(a, a) if isinstance(a, str) else a for a in op.args))
        for op in ops
    ]


def _record(cell: Cell) -> tuple[list[Op], list[Operand], list[Operand]]:
    state, inputs, params = _scalars("h", cell.n), _scalars("u", cell.m), _scalars("w", cell.p)
    grads = {name: g.detach() for name, g in _scalars("g", cell.n).items()}
    leaves = state | inputs | params
    with torch.enable_grad(), _Recorder(leaves | grads) as recorder:
        new = cell.step(*(tuple(part.values()) for part in (state, inputs, params)))
        _check_result(cell, new)
        gradients = torch.autograd.grad(
            new, list(leaves.values()), list(grads.values()), allow_unused=True
        )
    return (
        recorder.ops,
        [recorder.name_of(t) for t in new],
        [0.0 if g is None else recorder.name_of(g) for g in gradients],
    )


def _check_result(cell: Cell, new: object) -> None:
    if not (isinstance(new, tuple) and len(new) == cell.n):
        raise ValueError(
            f"step of cell {cell.name!r} must return a tuple of n={cell.n} tensors; got {new!r}"
        )


def trace(cell: Cell) -> tuple[Graph, Graph]:
    """Graphs of a cell's step and of its vector-Jacobian product.

    Both read ``h0..``, ``u0..`` and ``w0..`` (state, inputs, parameters). The
    second also reads ``g0..``, the gradient of the new state, and ``s0..``, the
    new state itself: a value that the forward pass has stored is not computed
    again, so that for example the derivative of tanh needs no input.

    Returns
    -------
    step, vjp : Graph
        Outputs of `vjp` are the gradients of state, inputs and parameters, in this order.

    Raises
    ------
    ValueError
        If the step does anything but elementwise arithmetic on scalars.
    """
    ops, new, gradients = _record(cell)
    step = Graph(_without(ops, new), tuple(new))
    stored: dict[str, Operand] = {
        name: f"s{i}" for i, name in enumerate(new) if isinstance(name, str) and name[0] == "v"
    }
    backward = _renamed(ops, stored)
    outputs = tuple(stored.get(g, g) if isinstance(g, str) else g for g in gradients)
    return step, Graph(_without(backward, outputs), outputs)
