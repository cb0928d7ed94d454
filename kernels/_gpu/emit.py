"""A traced cell or matrix form as Triton source, kept in files and loaded.

The functions take and return tuples of tensors of lanes. The kernels that call them over time
are the same for all cells. For a matrix form a vector is a tensor (sequences, units), and the
functions alternate elementwise phases and matrix products. Triton reads a function's source from
its file and has its own cache of machine code.
"""

import ctypes
import functools
import hashlib
import importlib.util
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import NamedTuple

import torch

from tsrnn.kernels._cell import Cell
from tsrnn.kernels._cpu.compiler import cache_dir, write_file
from tsrnn.kernels._derived import newton_tangent
from tsrnn.kernels._graph import Graph, Op, Operand, renamed
from tsrnn.kernels._matrix_form import MatrixForm
from tsrnn.kernels._program import Equations, Product, Program, plan_of, program
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


# Arguments of a function: the letter of its values, the argument, and the prefix of its fields.
_STEP = (("h", "state", ""), ("u", "inputs", ""))
_VJP = (("g", "gradient", "g_"), ("h", "state", ""), ("u", "inputs", ""), ("s", "new", "new_"))
_PARAMS, _VECTORS = (("w", "params", ""),), (("w", "vectors", ""),)
Signature = tuple[tuple[str, str, str], ...]


def cell_source(cell: Cell, dtype: torch.dtype) -> str:
    """Source of ``step`` and ``vjp``, the vector-Jacobian product of a step."""
    step, vjp = trace(cell)
    gradients = (cell.n, cell.m, cell.p)
    return (
        header(cell)
        + graph_function("step", cell, dtype, _STEP, step, (cell.n,))
        + graph_function("vjp", cell, dtype, _VJP, vjp, gradients)
    )


def tangent_source(cell: Cell, dtype: torch.dtype) -> str:
    """Source of ``tangent``, a step with the product of the matrices of Newton's iteration."""
    carried = newton_tangent(cell)
    step = trace(carried)[0]
    return header(carried) + graph_function("tangent", carried, dtype, _STEP, step, (carried.n,))


def affine_source(n: int) -> str:
    """Source of ``scan``: compositions of affine maps of n numbers with all maps before them.

    A map is stored as its matrix by rows, then its offset.
    """
    rows = range(n)
    first, second = (
        [f"{map_}_{i}_{j}" for i in rows for j in rows] + [f"{map_}_{i}" for i in rows]
        for map_ in ("first", "second")
    )
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


def form_source(form: MatrixForm, dtype: torch.dtype, precision: str = "ieee") -> str:
    """Source of ``step`` and ``vjp`` of a matrix form, with its products.

    `precision` of float32 products is passed to ``tl.dot``: "ieee" or "tf32". A ValueError names an
    operation without compiled form.
    """
    plan, back = plan_of(form), backward_of(form)
    products = tuple(out for product in back.before for out in product.outs)
    return (
        header(form.block(1))
        + f"from tsrnn.kernels._gpu.dense_kernels import {', '.join(_MULTIPLY)}\n"
        + _form_function("step", form, dtype, _STEP, plan.forward, "weights", precision, [["s"]])
        + _form_function(
            "vjp", form, dtype, _VJP, back.program, "weights, transposed", precision,
            [["g_h"], ["g_u", *back.kept], ["g_w"]], products,
        )
    )  # fmt: skip


class Backward(NamedTuple):
    """Backward pass of a form on a GPU: a program, and the products computed before it.

    These are products of stored vectors, computed by torch for all steps at once, in float32 with
    the precision of `torch.set_float32_matmul_precision`. The program takes them as further
    inputs. `kept` are the results that it writes besides the gradients of inputs.
    """

    program: Program
    before: tuple[Product, ...]
    kept: tuple[str, ...]


@functools.cache
def backward_of(form: MatrixForm) -> Backward:
    """Split a form's vector-Jacobian product."""
    plan = plan_of(form)
    needed = [product for phase in plan.backward.phases for product in phase.products]
    before = tuple(p for p in needed if not p.transposed and str(p.operands[0])[0] in "hsu")
    outs = [out for product in before for out in product.outs]
    names: dict[str, Operand] = {out: f"u{len(form.inputs) + i}" for i, out in enumerate(outs)}
    ops, products, results = plan.traced.vjp
    rest = Equations(
        {out: Op(out, op.name, renamed(op.args, names)) for out, op in ops.items()},
        tuple(
            product._replace(operands=renamed(product.operands, names))
            for product in products
            if product not in before
        ),
        {kind: renamed(values, names) for kind, values in results.items()},
    )
    kept = ("x",) if plan.one_gradient else ("g_p", "x")
    return Backward(program(rest, ()), before, kept)


def header(cell: Cell) -> str:
    """Docstring and imports of an emitted module."""
    parts = zip(("state", "inputs", "params"), cell.field_names, strict=True)
    fields = "\n".join(f"{part}: {' '.join(names) or 'none'}" for part, names in parts)
    return (
        f'"""Cell {cell.name}, written by tsrnn from its trace.\n\n{fields}\n"""\n\n'
        "import triton\nimport triton.language as tl\n\n"
        f"from tsrnn.kernels._gpu.elementary import {', '.join(_IMPORTED)}\n"
    )


def graph_function(
    name: str,
    cell: Cell,
    dtype: torch.dtype,
    signature: Signature,
    graph: Graph,
    parts: Sequence[int],
) -> str:
    """Function of a graph, which returns tuples of the given sizes, or one tuple."""
    function = _Function(cell, dtype, signature + _PARAMS)
    for op in graph.ops:
        function.operate(op)
    outputs = iter([function.tensor(out) for out in graph.outputs])
    results = [tuple_of([next(outputs) for _ in range(count)]) for count in parts]
    return function.text(name, results)


# Arguments and functions besides those of a cell.
_MULTIPLY = ("multiply", "multiply_loaded", "multiply_back")
_OF_FORMS = ("vectors", "weights", "transposed", "kept", "tiles", *_MULTIPLY)


def _form_function(
    name: str,
    form: MatrixForm,
    dtype: torch.dtype,
    signature: Signature,
    steps: Program,
    matrices: str,
    precision: str,
    parts: Sequence[Sequence[str]],
    more_inputs: tuple[str, ...] = (),
) -> str:
    """Function of phases and products in order, which returns a tuple for each group of kinds.

    Its parameters are the vectors, the matrices, and further arguments of `multiply`.
    """
    fields = {"u": form.inputs + more_inputs, "w": form.vectors}
    function = _Function(form.block(1), dtype, signature + _VECTORS, _OF_FORMS, fields)
    for phase in steps.phases:
        for op in phase.ops:
            function.operate(op)
        for product in phase.products:
            function.multiply(product, precision, loaded=name == "vjp")
    values = [[x for kind in part for x in steps.results[kind]] for part in parts]
    results = [tuple_of(map(function.tensor, part)) for part in values]
    return function.text(name, results, f"vectors, {matrices}, kept, tiles")


class _Function:
    """Writer of a function, in one precision.

    `taken` are words that may not be names of values, `others` the names of inputs and parameters,
    by their letter, that differ from the cell's.
    """

    def __init__(
        self,
        cell: Cell,
        dtype: torch.dtype,
        signature: Signature,
        taken: Sequence[str] = (),
        others: Mapping[str, Sequence[str]] = MappingProxyType({}),
    ) -> None:
        state, inputs, params = cell.field_names
        fields = {"h": state, "g": state, "s": state, "u": inputs, "w": params, **others}
        self._double = dtype == torch.float64
        self._names = {word: word for word in taken}
        self._lines: list[str] = []
        self._arguments = [argument for _, argument, _ in signature]
        for letter, argument, prefix in signature:
            names = [self._distinct(prefix + name) for name in fields[letter]]
            self._names |= {f"{letter}{i}": name for i, name in enumerate(names)}
            if names:
                self._lines.append(f"{tuple_of(names)} = {argument}")
        self._like = self._names[f"{signature[0][0]}0"]

    def _distinct(self, name: str) -> str:
        taken = _RESERVED | set(self._names.values())
        while name in taken:
            name += "_"
        return name

    def operate(self, op: Op) -> None:
        """Write an operation; a comparison may be repeated in a later phase."""
        self._names[op.out] = self._names.get(op.out) or self._distinct(op.out)
        self._lines.append(f"{self._names[op.out]} = {self._operation(op)}")

    def _operation(self, op: Op) -> str:
        args = [self._operand(a) for a in op.args]
        if op.name in _INFIX:
            return f" {_INFIX[op.name]} ".join(args)
        if op.name == "where":
            return f"tl.where({args[0]}, {', '.join(map(self.tensor, op.args[1:]))})"
        if op.name == "pow":
            exponent = op.args[1]
            if isinstance(exponent, float) and exponent in _POWERS:
                return _POWERS[exponent].format(args[0])
            return f"power({', '.join(map(self.tensor, op.args))})"
        if op.name in _FORMS:
            return _FORMS[op.name](*args)
        return f"{_CALLS[op.name]}({', '.join(args)})"

    def multiply(self, product: Product, precision: str, *, loaded: bool) -> None:
        """Write a matrix product; `loaded` if its operand depends only on stored values."""
        for out in product.outs:
            self._names[out] = self._distinct(out)
        outs = [self._names[out] for out in product.outs]
        operands = tuple_of(map(self.tensor, product.operands))
        rest = f"{tuple_of(map(str, product.matrices))}, kept, tiles, '{precision}')"
        if product.transposed:
            self._lines.append(f"{outs[0]} = multiply_back({operands}, transposed, {rest}")
        else:
            multiply = "multiply_loaded" if loaded else "multiply"
            self._lines.append(f"{tuple_of(outs)} = {multiply}({operands}[0], weights, {rest}")

    def _operand(self, value: Operand) -> str:
        if isinstance(value, str):
            return self._names[value]
        # Nine digits distinguish all float32 numbers.
        text = repr(value if self._double else float(f"{ctypes.c_float(value).value:.9g}"))
        if text in ("inf", "-inf", "nan"):
            return f'float("{text}")'
        return f"({text})" if text[0] == "-" else text

    def tensor(self, value: Operand) -> str:
        """Value as a tensor, a number in every lane."""
        text = self._operand(value)
        return text if isinstance(value, str) else f"constant({text}, {self._like})"

    def text(self, name: str, results: Sequence[str], packed: str = "") -> str:
        """The whole function; `packed` names the parts of its parameters if they are a tuple."""
        arguments, lines = self._arguments, [*self._lines, f"return {', '.join(results)}"]
        if packed:
            arguments, lines = [*arguments[:-1], "params"], [f"{packed} = params", *lines]
        body = "\n".join(f"    {line}" for line in lines)
        return f"\n\n@triton.jit\ndef {name}({', '.join(arguments)}):\n{body}\n"


def tuple_of(values: Iterable[str]) -> str:
    """Text of a tuple."""
    values = list(values)
    return f"({', '.join(values)}{',' if len(values) == 1 else ''})"


@functools.cache
def load(name: str, source: str) -> ModuleType:
    """Write the source of functions under ``triton.jit`` to a file and import it as a module."""
    path = source_file(name, source)
    try:
        kept = path.read_text(encoding="utf-8") == source
    except (OSError, UnicodeDecodeError):
        kept = False
    if not kept:
        write_file(path, source.encode())
    name = "tsrnn_triton_" + "".join(c if c.isalnum() else "_" for c in path.stem)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def source_file(name: str, source: str) -> Path:
    """Path of the file for a source."""
    digest = hashlib.sha256(source.encode()).hexdigest()[:20]
    return cache_dir() / f"{name}_{digest}.py"
