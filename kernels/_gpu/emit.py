"""A traced cell as the text of Triton functions: its step, its derivative, its tangent.

The functions take and give tuples of tensors of lanes. The kernels that call them over time
are the same for all cells.
"""

import ctypes
from collections.abc import Callable, Iterable, Sequence

import torch

from tsrnn.kernels._cell import Cell
from tsrnn.kernels._derived import tangent
from tsrnn.kernels._graph import Graph, Op, Operand
from tsrnn.kernels._trace import trace

_INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/",
    "gt": ">", "ge": ">=", "lt": "<", "le": "<=", "eq": "==", "ne": "!=",
}  # fmt: skip
_CALLS = {
    "sqrt": "sqrt", "abs": "tl.abs", "log": "tl.log", "sin": "tl.sin", "cos": "tl.cos",
    "exp": "exp", "expm1": "expm1", "tanh": "tanh", "sigmoid": "sigmoid", "relu": "relu",
    "sgn": "sign", "sign": "sign",
}  # fmt: skip
_FORMS: dict[str, Callable[..., str]] = {
    "rsub": lambda a, b: f"{b} - {a}",
    "neg": lambda a: f"-{a}",
    "reciprocal": lambda a: f"1.0 / {a}",
    "square": lambda a: f"{a} * {a}",
    "tanh_backward": lambda g, y: f"{g} * (1.0 - {y} * {y})",
    "sigmoid_backward": lambda g, y: f"{g} * ({y} * (1.0 - {y}))",
    "threshold_backward": lambda g, y, limit: f"tl.where({y} <= {limit}, 0.0, {g})",
}
_POWERS = {1.0: "{0}", 2.0: "{0} * {0}", 3.0: "{0} * {0} * {0}", -1.0: "1.0 / {0}",
           0.5: "sqrt({0})"}  # fmt: skip
_IMPORTED = ("constant", "exp", "expm1", "power", "relu", "sigmoid", "sign", "sqrt", "tanh")
_RESERVED = {"float", "state", "inputs", "params", "new", "gradient", "tl", "triton", *_IMPORTED}


def cell_source(cell: Cell, dtype: torch.dtype) -> str:
    """Text of ``step`` and ``vjp``, the vector-Jacobian product of a step."""
    step, vjp = trace(cell)
    n, m, p = cell.n, cell.m, cell.p
    text = Text(cell, dtype)
    return header(cell) + "".join([
        text.function("step", _STEP, step, (n,)),
        text.function("vjp", _VJP, vjp, (n, m, p)),
    ])  # fmt: skip


def tangent_source(cell: Cell, dtype: torch.dtype) -> str:
    """Text of ``tangent``, a step with its Jacobian product."""
    carried = tangent(cell)
    text = Text(carried, dtype)
    return header(carried) + text.function("tangent", _STEP, trace(carried)[0], (carried.n,))


def affine_source(n: int) -> str:
    """Text of ``scan``: each affine map of n numbers after all maps before it.

    A map is its matrix by rows, then its offset.
    """
    first, second = (_map_names(prefix, n) for prefix in ("first", "second"))
    rows = range(n)
    products = [
        [f"second_{i}_{k} * first_{k}_{j}" for k in rows] for i in rows for j in rows
    ]  # fmt: skip
    offsets = [
        [f"second_{i}", *(f"second_{i}_{k} * first_{k}" for k in rows)] for i in rows
    ]  # fmt: skip
    results = [" + ".join(terms) for terms in (*products, *offsets)]
    return (
        f'"""Affine maps of {n} numbers."""\n\nimport triton\nimport triton.language as tl\n\n\n'
        f"@triton.jit\ndef compose({', '.join((*first, *second))}):\n"
        '    """Apply the first map, then the second."""\n'
        f"    return {tuple_of(results)}\n\n\n"
        '@triton.jit\ndef scan(maps):\n    """Each map after all before it."""\n'
        "    return tl.associative_scan(maps, 0, compose)\n"
    )


def _map_names(prefix: str, n: int) -> list[str]:
    matrix = [f"{prefix}_{i}_{j}" for i in range(n) for j in range(n)]
    return [*matrix, *(f"{prefix}_{i}" for i in range(n))]


# Arguments of a function: the graph's letter, the argument and the words before its fields.
_STEP = (("h", "state", ""), ("u", "inputs", ""), ("w", "params", ""))
_VJP = (("g", "gradient", "g_"), ("h", "state", ""), ("u", "inputs", ""), ("s", "new", "new_"),
        ("w", "params", ""))  # fmt: skip


def header(cell: Cell) -> str:
    parts = zip(("state", "inputs", "params"), cell.field_names, strict=True)
    fields = "\n".join(f"{part}: {' '.join(names) or 'none'}" for part, names in parts)
    return (
        f'"""Cell {cell.name}, written by tsrnn from its trace.\n\n{fields}\n"""\n\n'
        "import triton\nimport triton.language as tl\n\n"
        f"from tsrnn.kernels._gpu.elementary import {', '.join(_IMPORTED)}\n"
    )


class Text:
    """Functions of one cell in one precision."""

    def __init__(self, cell: Cell, dtype: torch.dtype) -> None:
        state, inputs, params = cell.field_names
        self._fields = {"h": state, "g": state, "s": state, "u": inputs, "w": params}
        self._double = dtype == torch.float64

    def function(
        self, name: str, signature: Sequence[tuple[str, str, str]], graph: Graph, parts: tuple
    ) -> str:
        """Emit a graph; its outputs come back as tuples of so many fields, or as one tuple."""
        names: dict[str, str] = {}
        lines = []
        for letter, argument, prefix in signature:
            fields = [distinct(prefix + field, names) for field in self._fields[letter]]
            names |= {f"{letter}{i}": field for i, field in enumerate(fields)}
            if fields:
                lines.append(f"{tuple_of(fields)} = {argument}")
        like = names[f"{signature[0][0]}0"]
        for op in graph.ops:
            names[op.out] = distinct(op.out, names)
            lines.append(f"{names[op.out]} = {self._operation(op, names, like)}")
        outputs = iter([self._tensor(out, names, like) for out in graph.outputs])
        results = [tuple_of([next(outputs) for _ in range(count)]) for count in parts]
        lines.append(f"return {', '.join(results)}")
        arguments = ", ".join(argument for _, argument, _ in signature)
        body = "\n".join(f"    {line}" for line in lines)
        return f"\n\n@triton.jit\ndef {name}({arguments}):\n{body}\n"

    def _operation(self, op: Op, names: dict[str, str], like: str) -> str:
        args = [self._operand(a, names) for a in op.args]
        if op.name in _INFIX:
            return f" {_INFIX[op.name]} ".join(args)
        if op.name == "where":
            values = [self._tensor(a, names, like) for a in op.args[1:]]
            return f"tl.where({args[0]}, {', '.join(values)})"
        if op.name == "pow":
            return self._power(op.args[1], args, names, op.args, like)
        if op.name in _FORMS:
            return _FORMS[op.name](*args)
        return f"{_CALLS[op.name]}({', '.join(args)})"

    def _power(
        self,
        exponent: Operand,
        args: list[str],
        names: dict[str, str],
        operands: Iterable[Operand],
        like: str,
    ) -> str:
        if isinstance(exponent, float) and exponent in _POWERS:
            return _POWERS[exponent].format(args[0])
        return f"power({', '.join(self._tensor(a, names, like) for a in operands)})"

    def _operand(self, value: Operand, names: dict[str, str]) -> str:
        if isinstance(value, str):
            return names[value]
        # Nine digits tell any two numbers of single precision apart.
        text = repr(value if self._double else float(f"{ctypes.c_float(value).value:.9g}"))
        if text in ("inf", "-inf", "nan"):
            return f'float("{text}")'
        return f"({text})" if text[0] == "-" else text

    def _tensor(self, value: Operand, names: dict[str, str], like: str) -> str:
        text = self._operand(value, names)
        return text if isinstance(value, str) else f"constant({text}, {like})"


def distinct(name: str, names: dict[str, str]) -> str:
    taken = _RESERVED | set(names.values())
    while name in taken:
        name += "_"
    return name


def tuple_of(values: Sequence[str]) -> str:
    return f"({', '.join(values)}{',' if len(values) == 1 else ''})"
