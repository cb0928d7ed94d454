"""Recurrences with full matrices on the GPU: Triton kernels run on tensors, without autograd."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from tsrnn.kernels._dense.cpu import units_first, units_last, vector
from tsrnn.kernels._dense.program import plan_of
from tsrnn.kernels._gpu import _REAL, FUSION, emit, wide
from tsrnn.kernels._gpu import dense_kernels as kernels
from tsrnn.kernels._matrix_form import MatrixForm, block_step
from tsrnn.kernels._problem import Problem

BLOCK = 16  # sequences of a program: the fewest that a matrix product takes
LARGEST = 256  # units whose vectors a program keeps in registers
PREFETCHED = 6  # matrices that shared memory has room for, there and back


@functools.cache
def functions(form: MatrixForm, dtype: torch.dtype) -> ModuleType:
    """Module of a form's ``step`` and ``vjp``."""
    return emit.load(f"{form.name}.dense", emit.form_source(form, dtype))


def forward(problem: Problem) -> tuple[Tensor, Tensor]:
    """States and final state."""
    stacked = _Stacked.of(problem)
    states = problem.inputs.new_empty(*stacked.inputs.shape[:2], problem.cell.n)
    final = torch.empty_like(stacked.initial)
    step = functions(stacked.form, problem.inputs.dtype).step
    stacked.launch(kernels.forward, [stacked.transposed()], [states, final], STEP=step)
    return stacked.units_last(states), stacked.units_last(final)


def backward(
    problem: Problem, states: Tensor, g_states: Tensor, g_final: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of inputs, parameters and initial state."""
    inputs, params, stacked = problem.inputs, problem.params, _Stacked.of(problem)
    plan = plan_of(stacked.form)
    given = [units_first(t) for t in (states, g_states, g_final)]
    rows = stacked.inputs.shape[:2]
    products = 0 if plan.one_gradient else len(plan.traced.factors)
    kept = len(plan.traced.vjp.results["x"])
    g_inputs, g_initial = torch.empty_like(stacked.inputs), torch.empty_like(stacked.initial)
    g_products = inputs.new_empty(*rows, products * stacked.d)
    operands = inputs.new_empty(*rows, kept * stacked.d)
    n_vectors = len(stacked.form.vectors)
    g_vectors = inputs.new_empty(rows[0], n_vectors * stacked.d, dtype=wide(inputs.dtype))
    stacked.launch(
        kernels.backward, [stacked.transposed(), stacked.matrices],
        [*given, g_inputs, g_products, operands, g_vectors, g_initial],
        VJP=functions(stacked.form, inputs.dtype).vjp, PRODUCTS=products, OPERANDS=kept,
    )  # fmt: skip
    g_products = g_inputs if plan.one_gradient else g_products
    g_matrices = _gradients_of_matrices(stacked, given[0], operands, g_products)
    g_vectors = g_vectors.unflatten(0, (stacked.units, stacked.batch)).sum(1)
    g_params = torch.cat([g_matrices.flatten(1), g_vectors], 1).T.to(params.dtype).contiguous()
    return stacked.units_last(g_inputs), g_params, stacked.units_last(g_initial)


class _Stacked(NamedTuple):
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
    def of(cls, problem: Problem) -> _Stacked:
        """Rearrange the arguments."""
        step = block_step(problem.cell)
        matrices, vectors = step.split(problem.params.detach())
        missing = max(16, 1 << (step.size - 1).bit_length()) - step.size
        return cls(
            step.form,
            step.size,
            problem.params.shape[1],
            len(problem.inputs),
            units_first(problem.inputs),
            pad(matrices.transpose(0, 1), (0, missing, 0, missing)).contiguous(),
            vectors[..., 0].transpose(0, 1).contiguous(),
            units_first(problem.initial),
            problem.ends.contiguous(),
        )

    def transposed(self) -> Tensor:
        """Matrices whose rows are the units that they take."""
        return self.matrices.mT.contiguous()

    def units_last(self, x: Tensor) -> Tensor:
        """(K * B, ...) to (B, ..., K)."""
        return units_last(x, self.units, self.batch)

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
                num_stages=2 if len(self.form.matrices) <= PREFETCHED else 1, **FUSION, **options,
            )  # fmt: skip


def _gradients_of_matrices(
    stacked: _Stacked, states: Tensor, operands: Tensor, g_products: Tensor
) -> Tensor:
    """Sums over sequences and steps of g x', (K, matrices, d, d)."""
    d, traced = stacked.d, plan_of(stacked.form).traced
    old = torch.cat([stacked.initial[:, None], states[:, :-1]], 1)
    known = {"h": old, "s": states}
    unstored = traced.vjp.results["x"]
    shape = (stacked.units, len(stacked.form.matrices), d, d)
    total = states.new_zeros(shape, dtype=wide(states.dtype))
    for i, (matrix, x) in enumerate(traced.factors):
        if x in unstored:
            operand = vector(operands, unstored.index(x), d)
        else:
            operand = vector(known[str(x)[0]], int(str(x)[1:]), d)
        g, operand = (
            t.unflatten(0, (stacked.units, stacked.batch)).flatten(1, 2)
            for t in (vector(g_products, i, d), operand)
        )
        total[:, matrix] += g.mT @ operand
    return total
