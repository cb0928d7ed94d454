"""Recurrences with full matrices on the CPU: emitted kernels run on tensors."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from tsrnn.kernels._cpu import compiler
from tsrnn.kernels._cpu.buffers import new_empty
from tsrnn.kernels._cpu.compiler import entries_ir
from tsrnn.kernels._cpu.threads import run_ranges, split
from tsrnn.kernels._cpu.time_order import pairwise_sum
from tsrnn.kernels._cpu.vector_ir import FORMATS, TILE_BYTES
from tsrnn.kernels._dense.ir import POINTERS, SIZES, dense_ir, packed_weights
from tsrnn.kernels._matrix_form import MatrixForm, block_step
from tsrnn.kernels._problem import Problem
from tsrnn.kernels._program import Plan, Program, plan_of

# Sequences sharing a pass over the matrices: whole tiles of a product, 4 of 12 rows or 8 of 6.
SIDE_BY_SIDE = 48
_PARTS_OF_A_BATCH = 4  # with many units, a quarter of the sequences is rearranged at a time
_WORK_OF_A_VALUE = 256  # multiplications worth one value in `split`


class _Kernels(NamedTuple):
    forward: Callable[..., None]
    backward: Callable[..., None]


@functools.cache
def kernels_of(form: MatrixForm, dtype: torch.dtype) -> _Kernels:
    """Trace, emit and compile, or load from the cache."""
    source = dense_ir(form, _name(dtype)) + entries_ir(POINTERS, SIZES)
    arguments = {kind: len(names) + len(SIZES) for kind, names in POINTERS.items()}
    return _Kernels(**compiler.load(f"{form.name}.dense", source, arguments))


def forward(problem: Problem) -> tuple[Tensor, Tensor]:
    """States and final state."""
    stacked = _Stacked.of(problem)
    states = new_empty(stacked.inputs, (*stacked.inputs.shape[:2], problem.cell.n))
    final = new_empty(stacked.inputs, stacked.initial.shape)
    kernel = kernels_of(block_step(problem.cell).form, problem.inputs.dtype).forward
    stacked.run(kernel, stacked.plan.forward, [states, final])
    return stacked.units_last(states), stacked.units_last(final)


def backward(
    problem: Problem, states: Tensor, g_states: Tensor, g_final: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of inputs, parameters and initial state."""
    cell, inputs, params, initial, _ = problem
    if params.shape[1] == 1:
        return _backward(problem, states, g_states, g_final)
    # A few sequences at a time, as rearranging many units takes memory.
    given = (inputs, initial, problem.ends, states, g_states, g_final)
    g_inputs, g_initial = new_empty(inputs, inputs.shape), new_empty(initial, initial.shape)
    g_params = torch.zeros_like(params)
    size = max(1, -(-len(inputs) // _PARTS_OF_A_BATCH))
    for first in range(0, len(inputs), size):
        rows = slice(first, first + size)
        u, h, lengths, *rest = (t[rows] for t in given)
        part = Problem(cell, u, params, h, lengths)
        g_inputs[rows], g_part, g_initial[rows] = _backward(part, *rest)
        g_params += g_part
    return g_inputs, g_params, g_initial


def _backward(
    problem: Problem, states: Tensor, g_states: Tensor, g_final: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    stacked = _Stacked.of(problem)
    inputs, form, plan, d = problem.inputs, block_step(problem.cell).form, stacked.plan, stacked.d
    states, g_states, g_final = (units_first(t) for t in (states, g_states, g_final))
    rows = states.shape[:2]
    g_inputs = new_empty(inputs, stacked.inputs.shape)
    g_products = g_inputs
    if not plan.one_gradient:
        g_products = new_empty(inputs, (*rows, len(plan.traced.factors) * d))
    operands = new_empty(inputs, (*rows, len(plan.traced.vjp.results["x"]) * d))
    g_vectors = new_empty(inputs, (len(states), len(form.vectors), d))
    g_initial = new_empty(inputs, stacked.initial.shape)
    stacked.run(
        kernels_of(form, inputs.dtype).backward,
        plan.backward,
        [states, g_states, g_final, g_inputs, g_products, operands, g_vectors, g_initial],
    )
    g_matrices = _gradients_of_matrices(stacked, states, operands, g_products)
    # Summed over sequences in a fixed order, (K * B, ...) to (K, ...).
    g_vectors = g_vectors.unflatten(0, (stacked.units, stacked.batch)).transpose(0, 1)
    g_vectors = pairwise_sum(g_vectors.clone())
    g_params = torch.cat([g_matrices.flatten(1), g_vectors.flatten(1)], 1).T.contiguous()
    return stacked.units_last(g_inputs), g_params, stacked.units_last(g_initial)


def units_first(x: Tensor) -> Tensor:
    """Concatenate the sequences of all units: (B, ..., K) to (K * B, ...)."""
    return x.detach().movedim(-1, 0).flatten(0, 1).contiguous()


def units_last(x: Tensor, units: int, batch: int) -> Tensor:
    """Undo `units_first`."""
    return x.unflatten(0, (units, batch)).movedim(0, -1).contiguous()


class _Stacked(NamedTuple):
    """Arguments of a recurrence, with the sequences of its K units concatenated."""

    plan: Plan
    d: int
    batch: int
    inputs: Tensor  # (K * B, T, m * d)
    matrices: Tensor  # (matrices, K, d, d)
    vectors: Tensor  # (K, vectors, d)
    initial: Tensor  # (K * B, n * d)
    lengths: Tensor  # (K * B,)

    @classmethod
    def of(cls, problem: Problem) -> _Stacked:
        """Rearrange the arguments, without a copy if K = 1."""
        step = block_step(problem.cell)
        matrices, vectors = step.split(problem.params.detach())
        return cls(
            plan_of(step.form),
            step.size,
            len(problem.inputs),
            units_first(problem.inputs),
            matrices,
            vectors[..., 0].transpose(0, 1).contiguous(),
            units_first(problem.initial),
            problem.ends.repeat(problem.params.shape[1]),
        )

    @property
    def units(self) -> int:
        """Number of units K."""
        return self.matrices.shape[1]

    def units_last(self, x: Tensor) -> Tensor:
        """Rearrange (K * B, ...) to (B, ..., K)."""
        return units_last(x, self.units, self.batch)

    def outer(self, g: Tensor, x: Tensor, shift: int = 0) -> Tensor:
        """Sum of g x' over the rows of each unit's sequences, with x from `shift` rows earlier."""
        pairs = zip(g.split(self.batch), x.split(self.batch), strict=True)
        flat = [(g.flatten(0, 1)[shift:], x.flatten(0, 1)) for g, x in pairs]
        return torch.stack([(x[: len(g)].T @ g).T for g, x in flat])

    def run(self, kernel: Callable[..., None], program: Program, results: list[Tensor]) -> None:
        """Spread the sequences over threads; `results` are the arguments after `alive`."""
        products = [product for phase in program.phases for product in phase.products]
        packed = packed_weights(self.matrices, products, FORMATS[_name(self.inputs.dtype)])
        lanes = TILE_BYTES // packed.element_size()
        width = -(-self.d // lanes) * lanes
        stride = program.slots * width + lanes  # no power of two: rows would share cache lines

        def run_range(first: int, last: int, *_: int) -> None:
            for lo, hi in self._pieces(first, last):
                unit = lo // self.batch
                # Longest first, so that those alive at a step are the first.
                lengths, order = self.lengths[lo:hi].sort(descending=True, stable=True)
                steps = self.inputs.shape[1]
                alive = hi - lo - torch.bincount(lengths, minlength=steps + 1).cumsum(0)
                order += lo
                memory = packed.new_zeros(hi - lo, stride)
                given = (self.inputs, self.vectors[unit], self.initial, self.lengths, order, alive)
                kernel(
                    *(t.data_ptr() for t in (*given, *results, packed[unit], memory)),
                    *(steps, self.d, hi - lo, int(lengths[0]), width, stride),
                )

        work = self.inputs.numel() * self.matrices[:, 0, 0].numel() // _WORK_OF_A_VALUE
        run_ranges(run_range, split(len(self.inputs), 1, work))

    def _pieces(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """Groups of sequences of one unit to run side by side."""
        while first < last:
            end = min(last, (first // self.batch + 1) * self.batch)
            count = -(-(end - first) // SIDE_BY_SIDE)
            size = -(-(end - first) // count)
            yield first, min(end, first + size)
            first = min(end, first + size)


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _gradients_of_matrices(
    stacked: _Stacked, states: Tensor, operands: Tensor, g_products: Tensor
) -> Tensor:
    """Sums over sequences and steps of g x', (K, matrices, d, d)."""
    d, unstored = stacked.d, stacked.plan.traced.vjp.results["x"]
    total = torch.zeros_like(stacked.matrices).transpose(0, 1)
    numbered = enumerate(stacked.plan.traced.factors)
    for x, group in itertools.groupby(numbered, key=lambda item: item[1][1]):
        members = list(group)
        g = g_products[..., members[0][0] * d : (members[-1][0] + 1) * d]
        if x in unstored:
            sums = stacked.outer(g, vector(operands, unstored.index(x), d))
        elif str(x)[0] == "s":
            sums = stacked.outer(g, vector(states, int(str(x)[1:]), d))
        else:  # sums of g_t h_{t-1}' without a shifted copy of the states
            i = int(str(x)[1:])
            first = g[:, 0].clone()
            g[:, 0] = 0.0  # the row before belongs to another sequence
            old = vector(states, i, d)
            sums = stacked.outer(g, old, shift=1)
            if not sums.isfinite().all():  # zero times a possibly infinite state
                sums = stacked.outer(g[:, 1:], old[:, :-1])
            g[:, 0] = first
            start = vector(stacked.initial, i, d)
            sums = sums + stacked.outer(first[:, None], start[:, None])
        for (_, (matrix, _)), part in zip(members, sums.split(d, 1), strict=True):
            total[:, matrix] += part
    return total


def vector(x: Tensor, i: int, d: int) -> Tensor:
    """Vector i of d numbers in the last axis of `x`."""
    return x[..., i * d : (i + 1) * d]
