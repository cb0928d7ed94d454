"""Recurrences with full matrices on the CPU: emitted kernels run on tensors."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from tsrnn.kernels._cell import Cell
from tsrnn.kernels._cpu import compiler, pairwise_sum
from tsrnn.kernels._cpu.buffers import new_empty
from tsrnn.kernels._cpu.flush_ir import entries_ir
from tsrnn.kernels._cpu.threads import run_ranges, split
from tsrnn.kernels._cpu.vector_ir import FORMATS
from tsrnn.kernels._dense.code import TILE_BYTES
from tsrnn.kernels._dense.ir import POINTERS, SIZES, Plan, dense_ir
from tsrnn.kernels._dense.phases import Program
from tsrnn.kernels._dense.product import packed_weights
from tsrnn.kernels._matrix_form import MatrixForm, block_step

SIDE_BY_SIDE = 48  # sequences that share a pass over the matrices
_PARTS_OF_A_BATCH = 4
_WORK_OF_A_VALUE = 256  # multiplications that cost as much as a value does in `split`

_plan = functools.cache(Plan.of)


class _Kernels(NamedTuple):
    forward: Callable[..., None]
    backward: Callable[..., None]


@functools.cache
def kernels_of(form: MatrixForm, dtype: torch.dtype) -> _Kernels:
    source = dense_ir(form, _name(dtype)) + entries_ir(POINTERS, SIZES)
    arguments = {kind: len(names) + len(SIZES) for kind, names in POINTERS.items()}
    return _Kernels(**compiler.load(f"{form.name}.dense", source, arguments))


def forward(
    cell: Cell, inputs: Tensor, params: Tensor, initial: Tensor, lengths: Tensor
) -> tuple[Tensor, Tensor]:
    """States and final state; arguments as in `recurrence`."""
    problem = _Problem.of(cell, inputs, params, initial, lengths)
    states = new_empty(inputs, (*problem.inputs.shape[:2], cell.n))
    final = new_empty(inputs, problem.initial.shape)
    kernel = kernels_of(block_step(cell).form, inputs.dtype).forward
    problem.run(kernel, problem.plan.forward, [states, final])
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
    given = (inputs, initial, lengths, states, g_states, g_final)
    if params.shape[1] == 1:
        return _backward(cell, params, *given)
    # Rearranging many units takes memory: a few sequences at a time.
    g_inputs, g_initial = new_empty(inputs, inputs.shape), new_empty(initial, initial.shape)
    g_params = torch.zeros_like(params)
    size = max(1, -(-len(inputs) // _PARTS_OF_A_BATCH))
    for first in range(0, len(inputs), size):
        rows = slice(first, first + size)
        g_inputs[rows], part, g_initial[rows] = _backward(cell, params, *(t[rows] for t in given))
        g_params += part
    return g_inputs, g_params, g_initial


def _backward(
    cell: Cell,
    params: Tensor,
    inputs: Tensor,
    initial: Tensor,
    lengths: Tensor,
    states: Tensor,
    g_states: Tensor,
    g_final: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    problem = _Problem.of(cell, inputs, params, initial, lengths)
    plan, d, n_vectors = problem.plan, problem.d, len(block_step(cell).form.vectors)
    states, g_states, g_final = (_units_first(t) for t in (states, g_states, g_final))
    rows = states.shape[:2]
    g_inputs = new_empty(inputs, problem.inputs.shape)
    g_products = g_inputs
    if not plan.one_gradient:
        g_products = new_empty(inputs, (*rows, len(plan.traced.factors) * d))
    operands = new_empty(inputs, (*rows, len(plan.traced.vjp.results["x"]) * d))
    g_vectors = new_empty(inputs, (len(states), n_vectors, d))
    g_initial = new_empty(inputs, problem.initial.shape)
    problem.run(
        kernels_of(block_step(cell).form, inputs.dtype).backward,
        plan.backward,
        [states, g_states, g_final, g_inputs, g_products, operands, g_vectors, g_initial],
    )
    g_matrices = _gradients_of_matrices(problem, states, operands, g_products)
    g_params = torch.cat([g_matrices.flatten(1), problem.sum(g_vectors).flatten(1)], 1)
    return problem.units_last(g_inputs), g_params.T.contiguous(), problem.units_last(g_initial)


def _units_first(x: Tensor) -> Tensor:
    """Sequences of all units one after the other: (B, ..., K) to (K * B, ...)."""
    return x.detach().movedim(-1, 0).flatten(0, 1).contiguous()


class _Problem(NamedTuple):
    """Arguments of a recurrence, the sequences of its K units one after the other."""

    plan: Plan
    d: int
    batch: int
    inputs: Tensor  # (K * B, T, m * d)
    matrices: Tensor  # (matrices, K, d, d)
    vectors: Tensor  # (K, vectors, d)
    initial: Tensor  # (K * B, n * d)
    lengths: Tensor  # (K * B,)

    @classmethod
    def of(
        cls, cell: Cell, inputs: Tensor, params: Tensor, initial: Tensor, lengths: Tensor
    ) -> _Problem:
        """Rearrange the arguments of `recurrence`; nothing is copied where K = 1."""
        matrices, vectors = block_step(cell).split(params.detach())
        return cls(
            _plan(block_step(cell).form),
            block_step(cell).size,
            len(inputs),
            _units_first(inputs),
            matrices,
            vectors[..., 0].transpose(0, 1).contiguous(),
            _units_first(initial),
            lengths.repeat(params.shape[1]),
        )

    @property
    def units(self) -> int:
        """K."""
        return self.matrices.shape[1]

    def units_last(self, x: Tensor) -> Tensor:
        """(K * B, ...) to (B, ..., K)."""
        return x.unflatten(0, (self.units, self.batch)).movedim(0, -1).contiguous()

    def sum(self, x: Tensor) -> Tensor:
        """Sum over sequences, (K * B, ...) to (K, ...), always in the same order."""
        return pairwise_sum(x.unflatten(0, (self.units, self.batch)).transpose(0, 1).clone())

    def outer(self, g: Tensor, x: Tensor, shift: int = 0) -> Tensor:
        """Sum of g x' over the rows of the sequences of each unit, x from `shift` rows before."""
        pairs = zip(g.split(self.batch), x.split(self.batch), strict=True)
        flat = [(g.flatten(0, 1)[shift:], x.flatten(0, 1)) for g, x in pairs]
        return torch.stack([(x[: len(g)].T @ g).T for g, x in flat])

    def run(self, kernel: Callable[..., None], program: Program, results: list[Tensor]) -> None:
        """Spread the sequences over threads; `results` are the arguments after `alive`."""
        products = [product for phase in program.phases for product in phase.products]
        packed = packed_weights(self.matrices, products, FORMATS[_name(self.inputs.dtype)])

        def run_range(first: int, last: int, *_: int) -> None:
            for lo, hi in self._pieces(first, last):
                self._run_piece(kernel, program, results, packed[lo // self.batch], lo, hi)

        work = self.inputs.numel() * self.matrices[:, 0, 0].numel() // _WORK_OF_A_VALUE
        run_ranges(run_range, split(len(self.inputs), 1, work))

    def _run_piece(
        self,
        kernel: Callable[..., None],
        program: Program,
        results: list[Tensor],
        packed: Tensor,
        lo: int,
        hi: int,
    ) -> None:
        steps, unit = self.inputs.shape[1], lo // self.batch
        lengths, order = self.lengths[lo:hi].sort(descending=True, stable=True)
        alive = hi - lo - torch.bincount(lengths, minlength=steps + 1).cumsum(0)
        order += lo
        lanes = TILE_BYTES // packed.element_size()
        width = -(-self.d // lanes) * lanes
        stride = program.slots * width + lanes  # no power of two: rows would share cache lines
        memory = packed.new_zeros(hi - lo, stride)
        given = (self.inputs, self.vectors[unit], self.initial, self.lengths, order, alive)
        kernel(
            *(t.data_ptr() for t in (*given, *results, packed, memory)),
            *(steps, self.d, hi - lo, int(lengths[0]), width, stride),
        )

    def _pieces(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """Sequences that run side by side: of one unit, and not too many."""
        while first < last:
            end = min(last, (first // self.batch + 1) * self.batch)
            count = -(-(end - first) // SIDE_BY_SIDE)
            size = -(-(end - first) // count)
            yield first, min(end, first + size)
            first = min(end, first + size)


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _gradients_of_matrices(
    problem: _Problem, states: Tensor, operands: Tensor, g_products: Tensor
) -> Tensor:
    """Sums over sequences and steps of g x', (K, matrices, d, d)."""
    d, unstored = problem.d, problem.plan.traced.vjp.results["x"]
    total = torch.zeros_like(problem.matrices).transpose(0, 1)
    numbered = enumerate(problem.plan.traced.factors)
    for x, group in itertools.groupby(numbered, key=lambda item: item[1][1]):
        members = list(group)
        g = g_products[..., members[0][0] * d : (members[-1][0] + 1) * d]
        if x in unstored:
            sums = problem.outer(g, _field(operands, unstored.index(x), d))
        elif str(x)[0] == "s":
            sums = problem.outer(g, _field(states, int(str(x)[1:]), d))
        else:
            i = int(str(x)[1:])
            sums = _outer_with_old(problem, g, _field(states, i, d), _field(problem.initial, i, d))
        for (_, (matrix, _)), part in zip(members, sums.split(d, 1), strict=True):
            total[:, matrix] += part
    return total


def _field(x: Tensor, i: int, d: int) -> Tensor:
    return x[..., i * d : (i + 1) * d]


def _outer_with_old(problem: _Problem, g: Tensor, states: Tensor, initial: Tensor) -> Tensor:
    """Sums of g_t h_{t-1}', (K, rows, d), without a shifted copy of the states."""
    first = g[:, 0].clone()
    g[:, 0] = 0.0  # the state in the row before is that of another sequence
    sums = problem.outer(g, states, shift=1)
    g[:, 0] = first
    return sums + problem.outer(first[:, None], initial[:, None])
