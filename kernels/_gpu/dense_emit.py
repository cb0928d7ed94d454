"""A matrix form as the text of Triton functions: its step and its derivative, products included.

A vector of the form is a tensor (sequences, units). The functions alternate elementwise phases
and matrix products, in the order that the engine of the CPU has.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from tsrnn.kernels._dense.ir import Plan
from tsrnn.kernels._dense.phases import Program
from tsrnn.kernels._dense.trace import Product
from tsrnn.kernels._gpu.emit import Text, distinct, header, tuple_of
from tsrnn.kernels._graph import Operand
from tsrnn.kernels._matrix_form import MatrixForm

# Arguments of a function: the letter of its values, the argument and the words before its fields.
_STEP = (("h", "state", ""), ("u", "inputs", ""), ("w", "vectors", ""))
_VJP = (("g", "gradient", "g_"), ("h", "state", ""), ("u", "inputs", ""), ("s", "new", "new_"),
        ("w", "vectors", ""))  # fmt: skip
_RESULTS = ("g_h", "g_u", "g_p", "g_w", "x")
_RESERVED = ("vectors", "weights", "transposed", "kept", "scratch", "multiply", "multiply_back")


def form_source(form: MatrixForm, dtype: torch.dtype) -> str:
    """Text of ``step`` and ``vjp``, the vector-Jacobian product of a step.

    Raises
    ------
    ValueError
        If the form uses an operation that has no compiled form.
    """
    plan, text = Plan.of(form), _FormText(form, dtype)
    return (
        header(form.block(1))
        + "from tsrnn.kernels._gpu.dense_kernels import multiply, multiply_back\n"
        + text.program("step", _STEP, plan.forward, ("s",), "weights")
        + text.program("vjp", _VJP, plan.backward, _RESULTS, "weights, transposed")
    )


class _FormText(Text):
    """Functions of one form in one precision."""

    def __init__(self, form: MatrixForm, dtype: torch.dtype) -> None:
        super().__init__(form.block(1), dtype)
        self._fields["w"] = form.vectors

    def program(
        self,
        name: str,
        signature: Sequence[tuple[str, str, str]],
        program: Program,
        results: Sequence[str],
        matrices: str,
    ) -> str:
        """Emit phases and products in order; each kind of results comes back as a tuple."""
        names = {word: word for word in _RESERVED}
        lines = []
        for letter, argument, prefix in signature:
            fields = [distinct(prefix + field, names) for field in self._fields[letter]]
            names |= {f"{letter}{i}": field for i, field in enumerate(fields)}
            if fields:
                lines.append(f"{tuple_of(fields)} = {argument}")
        like = names[f"{signature[0][0]}0"]
        for phase in program.phases:
            for op in phase.ops:
                # A comparison may come again in a later phase.
                names[op.out] = names.get(op.out) or distinct(op.out, names)
                lines.append(f"{names[op.out]} = {self._operation(op, names, like)}")
            for product in phase.products:
                names |= {out: distinct(out, names) for out in product.outs}
                lines.append(self._product(product, names, like))
        returned = [self._tensors(program.results[kind], names, like) for kind in results]
        lines.append(f"return {', '.join(returned)}")
        arguments = ", ".join(argument for _, argument, _ in signature)
        body = "\n".join(f"    {line}" for line in lines)
        head = f"def {name}({arguments}, {matrices}, kept, scratch):"
        return f"\n\n@triton.jit\n{head}\n{body}\n"

    def _product(self, product: Product, names: dict[str, str], like: str) -> str:
        operands = self._tensors(product.operands, names, like)
        numbers = f"{tuple_of([str(number) for number in product.matrices])}, kept, scratch)"
        if product.transposed:
            return f"{names[product.outs[0]]} = multiply_back({operands}, transposed, {numbers}"
        outs = tuple_of([names[out] for out in product.outs])
        return f"{outs} = multiply({operands}[0], weights, {numbers}"

    def _tensors(self, operands: Sequence[Operand], names: dict[str, str], like: str) -> str:
        return tuple_of([self._tensor(operand, names, like) for operand in operands])
