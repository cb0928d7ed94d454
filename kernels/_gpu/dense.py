"""Recurrences with full matrices on the GPU: Triton kernels run on tensors, without autograd."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from types import ModuleType
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from tsrnn.kernels._dense.cpu import units_first, units_last, vector
from tsrnn.kernels._gpu import _REAL, FUSION, emit, wide
from tsrnn.kernels._gpu import dense_kernels as kernels
from tsrnn.kernels._matrix_form import BlockStep, MatrixForm, block_step
from tsrnn.kernels._problem import Problem
from tsrnn.kernels._program import Product, Program, plan_of

LARGEST = 256  # units whose vectors a program keeps in registers
PREFETCHED = 6  # products whose tiles are on their way at a time: shared memory has room for them
# First guesses, not yet timed on a device. Numbers of matrices that stay in registers, of four
# bytes: 192 KB of the 256 that a multiprocessor has forward, 96 backward, where more else is kept.
RESIDENT = {"forward": 49152, "backward": 24576}
RESIDENT_SEQUENCES = 1024  # beyond, those of a unit share what a program reads of a matrix
NUMBERS_OF_A_THREAD = 48  # of matrices in registers, if there are threads enough
MOST_WARPS = 8
# Sequences of a program that reads matrices at every step: as many as a matrix product of bfloat16
# takes at least, and fewer where they would leave multiprocessors without any.
BLOCK, SMALL_BLOCK, PROGRAMS = 16, 4, 132


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
    stacked.launch(
        "forward", [states, final], plan_of(stacked.form).forward,
        STEP=step, M=len(stacked.form.inputs),
    )  # fmt: skip
    return stacked.units_last(states), stacked.units_last(final)


def backward(
    problem: Problem, states: Tensor, g_states: Tensor, g_final: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of inputs, parameters and initial state.

    Of `g_states` the fields may be the first alone, and `g_final` None: others are zero.
    """
    inputs, params, stacked = problem.inputs, problem.params, _Stacked.of(problem)
    back, d, m = emit.backward_of(stacked.form), stacked.d, problem.cell.m
    states, g_states = units_first(states), units_first(g_states)
    old = torch.cat([stacked.initial[:, None], states[:, :-1]], 1)
    known = {"h": old, "s": states, "u": stacked.inputs}
    if back.before:
        products = [stacked.product(known, product) for product in back.before]
        given = stacked.inputs.to(products[0].dtype)
        stacked = stacked._replace(inputs=torch.cat([given, *products], 2))
    kept = [x for kind in back.kept for x in back.program.results[kind]]
    g_rows = inputs.new_empty(*states.shape[:2], m + len(kept) * d)
    n_vectors = len(stacked.form.vectors)
    g_vectors = inputs.new_empty(len(states), n_vectors * d, dtype=wide(inputs.dtype))
    g_initial = torch.empty_like(stacked.initial)
    stacked.launch(
        "backward",
        [states, g_states, None if g_final is None else units_first(g_final), g_rows, g_vectors,
         g_initial],
        back.program, VJP=functions(stacked.form, inputs.dtype).vjp,
        M=stacked.inputs.shape[2] // d, ROWS=g_rows.shape[2] // d, GIVEN=g_states.shape[2] // d,
    )  # fmt: skip
    g_inputs = g_rows[..., :m]
    g_products = g_rows[..., m:] if "g_p" in back.kept else g_inputs
    known["x"] = g_rows[..., g_rows.shape[2] - d * len(back.program.results["x"]) :]
    g_matrices = _gradients_of_matrices(stacked, known, g_products)
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
    params: Tensor  # (p, K)
    initial: Tensor  # (K * B, n * d)
    lengths: Tensor | None  # (B,)

    @classmethod
    def of(cls, problem: Problem) -> _Stacked:
        """Rearrange the arguments."""
        step = block_step(problem.cell)
        return cls(
            step.form,
            step.size,
            problem.params.shape[1],
            len(problem.inputs),
            units_first(problem.inputs),
            problem.params.detach().contiguous(),
            units_first(problem.initial),
            None if problem.lengths is None else problem.lengths.contiguous(),
        )

    def units_last(self, x: Tensor) -> Tensor:
        """(K * B, ...) to (B, ..., K)."""
        return units_last(x, self.units, self.batch)

    def matrices(self, width: int, *, back: bool) -> Tensor:
        """Matrices (K, matrices, D, D) whose rows are summed over: what they take, or give."""
        matrices, _ = BlockStep(self.form, self.d).split(self.params)
        matrices = matrices if back else matrices.mT
        missing = width - self.d
        return pad(matrices.transpose(0, 1), (0, missing, 0, missing)).contiguous()

    def product(self, known: Mapping[str, Tensor], product: Product) -> Tensor:
        """Products (K * B, T, matrices * d) of a stored vector of all steps with some matrices.

        In the precision of arithmetic, as they are forward.
        """
        matrices, _ = BlockStep(self.form, self.d).split(self.params)
        name = str(product.operands[0])
        x = self.by_units(vector(known[name[0]], int(name[1:]), self.d))
        chosen = torch.cat([matrices[i] for i in product.matrices], 1)
        dtype = wide(x.dtype)
        return (x.to(dtype) @ chosen.to(dtype).mT).view(*self.inputs.shape[:2], chosen.shape[1])

    def by_units(self, x: Tensor) -> Tensor:
        """Vectors of all sequences and steps, (K * B, T, d) to (K, B * T, d)."""
        return x.unflatten(0, (self.units, self.batch)).flatten(1, 2)

    def launch(
        self, kind: str, tensors: list[Tensor | None], steps: Program, **options: Any
    ) -> None:
        """Run a kernel of a program of steps, on the current stream of the tensors' device."""
        dtype, count = self.initial.dtype, len(self.form.matrices)
        if not self.batch:
            return
        width = max(16, 1 << (self.d - 1).bit_length())
        products = [product for phase in steps.phases for product in phase.products]
        kept = {(number, p.transposed) for p in products for number in p.matrices}
        words = len(kept) * width * width * (2 if dtype == torch.float64 else 1)
        weights = [
            self.matrices(width, back=back) if any(p.transposed == back for p in products) else None
            for back in ((False,) if kind == "forward" else (False, True))
        ]
        scratch, sequences = None, self.batch * self.units
        shared = self.batch >= BLOCK and sequences > RESIDENT_SEQUENCES
        if words <= RESIDENT[kind] and not shared:
            block, programs, stages = 1, sequences, 1
            threads = max(2 * width, words // NUMBERS_OF_A_THREAD, 32)
            warps = min(MOST_WARPS, 1 << (-(-threads // 32) - 1).bit_length())
        else:
            few = -(-self.batch // BLOCK) * self.units < PROGRAMS or self.batch <= SMALL_BLOCK
            block = SMALL_BLOCK if few and dtype != torch.bfloat16 else BLOCK
            programs = -(-self.batch // block) * self.units
            multiplied = sum(len(product.matrices) for product in products)
            stages, warps = 2 if multiplied <= PREFETCHED else 1, 4 if width <= 16 else 8
            scratch = self.initial.new_empty(programs, block, width)
        # Triton launches on the current device, whatever the tensors' own.
        with torch.cuda.device_of(self.inputs):
            getattr(kernels, kind)[(programs,)](
                self.inputs, self.params, self.initial, self.lengths, *weights, scratch, *tensors,
                self.inputs.shape[1], self.batch, self.d, self.units, N=len(self.form.states),
                V=len(self.form.vectors), MATRICES=count, REAL=_REAL[dtype], BLOCK=block, D=width,
                num_warps=warps, num_stages=stages, **FUSION, **options,
            )  # fmt: skip


def _gradients_of_matrices(
    stacked: _Stacked, known: Mapping[str, Tensor], g_products: Tensor
) -> Tensor:
    """Sums over sequences and steps of g x', (K, matrices, d, d).

    Vectors are `known` by letter and number, as "h" the old states; "x" are operands that no state
    is.
    """
    d, traced = stacked.d, plan_of(stacked.form).traced
    unstored = traced.vjp.results["x"]
    shape = (stacked.units, len(stacked.form.matrices), d, d)
    total = g_products.new_zeros(shape, dtype=wide(g_products.dtype))
    for i, (matrix, x) in enumerate(traced.factors):
        name = f"x{unstored.index(x)}" if x in unstored else str(x)
        operand = vector(known[name[0]], int(name[1:]), d)
        g = stacked.by_units(vector(g_products, i, d))
        total[:, matrix] += g.mT @ stacked.by_units(operand)
    return total
