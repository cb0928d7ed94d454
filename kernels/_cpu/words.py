"""Traced operations in words, for who reads emitted code."""

from collections.abc import Mapping

from tsrnn.kernels._cell import Cell
from tsrnn.kernels._graph import Op, Operand

_SIGNS = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "pow": "**",
    "gt": ">", "ge": ">=", "lt": "<", "le": "<=", "eq": "==", "ne": "!=",
}  # fmt: skip


def names_of(cell: Cell) -> dict[str, str]:
    """The cell's own names of what a trace calls h0, u0, w0, g0, s0 and so on."""
    state, inputs, params = cell.field_names
    groups = {
        "h": state,
        "u": inputs,
        "w": params,
        "g": [f"g_{name}" for name in state],
        "s": [f"new_{name}" for name in state],
    }
    return {
        f"{prefix}{i}": name for prefix, group in groups.items() for i, name in enumerate(group)
    }


def in_words(op: Op, names: Mapping[str, str]) -> str:
    """Write an operation as a line of Python, with the cell's own names."""
    args = [operand_in_words(a, names) for a in op.args]
    if op.name in _SIGNS:
        return f"{op.out} = {args[0]} {_SIGNS[op.name]} {args[1]}"
    if op.name == "rsub":
        return f"{op.out} = {args[1]} - {args[0]}"
    if op.name == "neg":
        return f"{op.out} = -{args[0]}"
    return f"{op.out} = {op.name}({', '.join(args)})"


def operand_in_words(value: Operand, names: Mapping[str, str]) -> str:
    """Name of a value, or a number."""
    return names.get(value, value) if isinstance(value, str) else repr(value).removesuffix(".0")
