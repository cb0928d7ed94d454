"""Recurrences with full matrices on the GPU: Triton kernels run on tensors, without autograd."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from tsrnn.kernels._cell import Cell
from tsrnn.kernels._dense.ir import Plan
from tsrnn.kernels._gpu import _REAL, _SUMS, compiler, dense_emit
from tsrnn.kernels._gpu import dense_kernels as kernels
from tsrnn.kernels._matrix_form import MatrixForm, block_step

BLOCK = 16  # sequences of a program: the fewest that a matrix product takes
LARGEST = 256  # units whose vectors a program keeps in registers
PREFETCHED = 6  # matrices that shared memory has room for, there and back

_plan = functools.cache(Plan.of)


@functools.cache
def functions(form: MatrixForm, dtype: torch.dtype) -> ModuleType:
    """Module of a form's ``step`` and ``vjp``."""
    return compiler.load(f"{form.name}.dense", dense_emit.form_source(form, dtype))


def forward(
    cell: Cell, inputs: Tensor, params: Tensor, initial: Tensor, lengths: Tensor
) -> tuple[Tensor, Tensor]:
    """States and final state; arguments as in `recurrence`."""
    problem = _Problem.of(cell, inputs, params, initial, lengths)
    states = inputs.new_empty(*problem.inputs.shape[:2], cell.n)
    final = torch.empty_like(problem.initial)
    step = functions(problem.form, inputs.dtype).step
    problem.launch(kernels.forward, [problem.transposed()], [states, final], STEP=step)
    return problem.units_last(states), problem.units_last(final)


def backward(
    cell: Cell,
    inputs: Tensor,
    params: Tensor,
    initial: Tensor,
    lengths: Tensor,
    states: Tensor,
    g_states: Tensor,
    g_final: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of inputs, parameters and initial state."""
    problem = _Problem.of(cell, inputs, params, initial, lengths)
    plan = _plan(problem.form)
    given = [_units_first(t) for t in (states, g_states, g_final)]
    rows = problem.inputs.shape[:2]
    products = 0 if plan.one_gradient else len(plan.traced.factors)
    kept = len(plan.traced.vjp.results["x"])
    g_inputs, g_initial = torch.empty_like(problem.inputs), torch.empty_like(problem.initial)
    g_products = inputs.new_empty(*rows, products * problem.d)
    operands = inputs.new_empty(*rows, kept * problem.d)
    n_vectors = len(problem.form.vectors)
    g_vectors = inputs.new_empty(rows[0], n_vectors * problem.d, dtype=_SUMS[inputs.dtype])
    problem.launch(
        kernels.backward, [problem.transposed(), problem.matrices],
        [*given, g_inputs, g_products, operands, g_vectors, g_initial],
        VJP=functions(problem.form, inputs.dtype).vjp, PRODUCTS=products, OPERANDS=kept,
    )  # fmt: skip
    g_products = g_inputs if plan.one_gradient else g_products
    g_matrices = _gradients_of_matrices(problem, given[0], operands, g_products)
    g_vectors = g_vectors.unflatten(0, (problem.units, problem.batch)).sum(1)
    g_params = torch.cat([g_matrices.flatten(1), g_vectors], 1).T.to(params.dtype).contiguous()
    return problem.units_last(g_inputs), g_params, problem.units_last(g_initial)


def _units_first(x: Tensor) -> Tensor:
    """Sequences of all units one after the other: (B, ..., K) to (K * B, ...)."""
    return x.detach().movedim(-1, 0).flatten(0, 1).contiguous()


class _Problem(NamedTuple):
    """Arguments of a recurrence, the sequences of its K units one after the other."""

    form: MatrixForm
    d: int
    units: int
    batch: int
    inputs: Tensor  # (K * B, T, m * d)
    matrices: Tensor  # (K, matrices, D, D): d up to a power of two
    vectors: Tensor  # (K, vectors, d)
    initial: Tensor  # (K * B, n * d)
    lengths: Tensor  # (B,)

    @classmethod
    def of(
        cls, cell: Cell, inputs: Tensor, params: Tensor, initial: Tensor, lengths: Tensor
    ) -> _Problem:
        """Rearrange the arguments of `recurrence`."""
        step = block_step(cell)
        matrices, vectors = step.split(params.detach())
        missing = max(16, 1 << (step.size - 1).bit_length()) - step.size
        return cls(
            step.form,
            step.size,
            params.shape[1],
            len(inputs),
            _units_first(inputs),
            pad(matrices.transpose(0, 1), (0, missing, 0, missing)).contiguous(),
            vectors[..., 0].transpose(0, 1).contiguous(),
            _units_first(initial),
            lengths.contiguous(),
        )

    def transposed(self) -> Tensor:
        """Matrices whose rows are the units that they take."""
        return self.matrices.mT.contiguous()

    def units_last(self, x: Tensor) -> Tensor:
        """(K * B, ...) to (B, ..., K)."""
        return x.unflatten(0, (self.units, self.batch)).movedim(0, -1).contiguous()

    def launch(
        self, kernel: Any, weights: list[Tensor], tensors: list[Tensor], **options: Any
    ) -> None:
        """Run a kernel on the current stream of the tensors' device."""
        programs = -(-self.batch // BLOCK) * self.units
        width, dtype = self.matrices.shape[-1], self.inputs.dtype
        if not programs:
            return
        scratch = self.matrices.new_empty(programs, BLOCK, width)
        # Triton launches on the current device, whatever the tensors' own.
        with torch.cuda.device_of(self.inputs):
            kernel[(programs,)](
                self.inputs, self.vectors, self.initial, self.lengths, *weights, scratch,
                *tensors, self.inputs.shape[1], self.batch, self.d, N=len(self.form.states),
                M=len(self.form.inputs), V=len(self.form.vectors),
                MATRICES=len(self.form.matrices), REAL=_REAL[dtype], BLOCK=BLOCK, D=width,
                num_warps=4 if width <= 16 else 8,
                num_stages=2 if len(self.form.matrices) <= PREFETCHED else 1, **options,
            )  # fmt: skip


def _gradients_of_matrices(
    problem: _Problem, states: Tensor, operands: Tensor, g_products: Tensor
) -> Tensor:
    """Sums over sequences and steps of g x', (K, matrices, d, d)."""
    d, traced = problem.d, _plan(problem.form).traced
    old = torch.cat([problem.initial[:, None], states[:, :-1]], 1)
    known = {"h": old, "s": states}
    unstored = traced.vjp.results["x"]
    shape = (problem.units, len(problem.form.matrices), d, d)
    total = states.new_zeros(shape, dtype=_SUMS[states.dtype])
    for i, (matrix, x) in enumerate(traced.factors):
        name = str(x)
        if x in unstored:
            operand = _field(operands, unstored.index(x), d)
        else:
            operand = _field(known[name[0]], int(name[1:]), d)
        g = _field(g_products, i, d)
        g, operand = (
            t.unflatten(0, (problem.units, problem.batch)).flatten(1, 2) for t in (g, operand)
        )
        total[:, matrix] += g.mT @ operand
    return total


def _field(x: Tensor, i: int, d: int) -> Tensor:
    return x[..., i * d : (i + 1) * d]
