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
from tsrnn.kernels._gpu import _REAL, emit, wide
from tsrnn.kernels._gpu import dense_kernels as kernels
from tsrnn.kernels._gpu.launches import run
from tsrnn.kernels._matrix_form import BlockStep, MatrixForm, block_step
from tsrnn.kernels._problem import Problem
from tsrnn.kernels._program import Product, Program, plan_of

LARGEST = 512  # units of the vectors that a program keeps in registers
PREFETCHED = 6  # products with tiles in flight at a time: shared memory has room for them
TILE_BYTES = 8192  # of a matrix in shared memory at a time, if it is read at every step
# Four-byte numbers of matrices that stay in registers: 192 of the 256 KB of a multiprocessor
# forward, 96 KB backward, where more else is kept.
RESIDENT = {"forward": 49152, "backward": 24576}
# With more sequences than this, or half of it on tensor cores, sequences share programs. On an H200
# this is 10 percent faster for a GRU with 512 and 2,048 sequences, 7 percent slower for an Elman
# network of 128 units with 2,048, and in TF32 two to three times faster for both with 2,048.
RESIDENT_SEQUENCES = 1024
NUMBERS_OF_A_THREAD = 48  # of matrices in registers, if there are enough threads
MOST_WARPS = 8
# Sequences of a program that shares its matrices: at most the rows of a tensor core instruction,
# and fewer if multiprocessors would be left idle.
BLOCK, SMALL_BLOCK, PROGRAMS = 16, 4, 132
VECTOR_BYTES = 8192  # of a vector for all sequences of a program: 32 a thread, of some 20 vectors
# Multiplications a thread and step above which the compiler fails to order the reads of matrices
# in shared memory for low register use.
MOST_MULTIPLIED = 1200
MOST_READ = 32  # bytes a unit read by a backward step of a GRU: 16 sequences fit
READ_AHEAD = 12  # numbers a thread can hold in registers one step early
FARTHEST = 2**31  # distance from a program's first number above which offsets have 64 bits
# Of an H100, for the interpreter and for compilation without a device.
SHARED_MEMORY = 232448


@functools.cache
def functions(form: MatrixForm, dtype: torch.dtype, precision: str = "ieee") -> ModuleType:
    """Module with a form's ``step`` and ``vjp``."""
    return emit.load(f"{form.name}.dense", emit.form_source(form, dtype, precision))


def forward(problem: Problem) -> tuple[Tensor, Tensor]:
    """States and final state."""
    stacked = _Stacked.of(problem)
    states = problem.inputs.new_empty(*stacked.inputs.shape[:2], problem.cell.n)
    final = torch.empty_like(stacked.initial)
    step = functions(stacked.form, problem.inputs.dtype, precision_of(problem.inputs.dtype)).step
    stacked.launch(
        "forward", [stacked.initial], [states, final], plan_of(stacked.form).forward,
        STEP=step, M=len(stacked.form.inputs),
    )  # fmt: skip
    return stacked.units_last(states), stacked.units_last(final)


def backward(
    problem: Problem, states: Tensor, g_states: Tensor, g_final: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of inputs, parameters and initial state.

    `g_states` may hold only the first fields, and `g_final` be None; the rest is zero.
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
        "backward", [],
        [states, old, g_states, None if g_final is None else units_first(g_final), g_rows,
         g_vectors, g_initial],
        back.program, VJP=functions(stacked.form, inputs.dtype, precision_of(inputs.dtype)).vjp,
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
    """Arguments of a recurrence, with the sequences of its K units concatenated."""

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
        """Rearrange (K * B, ...) to (B, ..., K)."""
        return units_last(x, self.units, self.batch)

    def matrices(self, width: int, *, back: bool) -> Tensor:
        """Matrices (K, matrices, D, D) with rows along the summed units: inputs, or outputs."""
        matrices, _ = BlockStep(self.form, self.d).split(self.params)
        matrices = matrices if back else matrices.mT
        missing = width - self.d
        return pad(matrices.transpose(0, 1), (0, missing, 0, missing)).contiguous()

    def product(self, known: Mapping[str, Tensor], product: Product) -> Tensor:
        """Products (K * B, T, matrices * d) of a stored vector with matrices, for all steps.

        Computed in the precision of arithmetic, as in the forward pass.
        """
        matrices, _ = BlockStep(self.form, self.d).split(self.params)
        name = str(product.operands[0])
        x = self.by_units(vector(known[name[0]], int(name[1:]), self.d))
        chosen = torch.cat([matrices[i] for i in product.matrices], 1)
        dtype = wide(x.dtype)
        return (x.to(dtype) @ chosen.to(dtype).mT).view(*self.inputs.shape[:2], chosen.shape[1])

    def by_units(self, x: Tensor) -> Tensor:
        """Rearrange vectors (K * B, T, d) to (K, B * T, d)."""
        return x.unflatten(0, (self.units, self.batch)).flatten(1, 2)

    def launch(
        self,
        kind: str,
        starts: list[Tensor],
        tensors: list[Tensor | None],
        steps: Program,
        **options: Any,
    ) -> None:
        """Run a kernel on the current stream of the tensors' device."""
        dtype, count = self.initial.dtype, len(self.form.matrices)
        if not self.batch:
            return
        width = max(16, 1 << (self.d - 1).bit_length())
        products = [product for phase in steps.phases for product in phase.products]
        m, n = self.inputs.shape[2] // self.d, len(self.form.states)
        # Of inputs, and in the backward pass of old states and incoming gradients.
        fields = m if kind == "forward" else m + n + options["GIVEN"]
        launch = Launch.of(self, kind, products, width, fields)
        programs = -(-self.batch // launch.block) * self.units
        weights = [
            self.matrices(width, back=back) if any(p.transposed == back for p in products) else None
            for back in ((False,) if kind == "forward" else (False, True))
        ]
        scratch = None
        if launch.place == "memory":
            scratch = self.initial.new_empty(programs, launch.block, width)
        # Of the last sequence of a program; 32-bit offsets save registers.
        arrays = [t for t in (self.inputs, *tensors) if t is not None]
        long = launch.block * max(t[0].numel() for t in arrays) >= FARTHEST
        run(
            getattr(kernels, kind), programs,
            [self.inputs, self.params, *starts, self.lengths, *weights, scratch, *tensors],
            (self.inputs.shape[1], self.batch, self.d, self.units), N=len(self.form.states),
            V=len(self.form.vectors), MATRICES=count, REAL=_REAL[dtype], BLOCK=launch.block,
            D=width, PLACE=launch.place, TILE=launch.tile, AHEAD=launch.ahead,
            FULL=self.d == width, LONG=long, num_warps=launch.warps, num_stages=launch.stages,
            **options,
        )  # fmt: skip


class Launch(NamedTuple):
    """Launch parameters: sequences and warps of a program, and the place of its matrices.

    A matrix in memory is read in tiles of `tile` rows; with `ahead`, inputs are prefetched by one
    step.
    """

    block: int
    warps: int
    stages: int
    place: str
    tile: int
    ahead: bool = True

    @classmethod
    def of(
        cls, stacked: _Stacked, kind: str, products: list[Product], width: int, fields: int
    ) -> Launch:
        """Launch for products of vectors of `width` numbers, with `fields` read a step."""
        dtype, sequences = stacked.initial.dtype, stacked.batch * stacked.units
        item = dtype.itemsize
        tensor_cores = precision_of(dtype) == "tf32" or dtype == torch.bfloat16
        kept = {(number, p.transposed) for p in products for number in p.matrices}
        multiplied = sum(len(product.matrices) for product in products)
        words = len(kept) * width * width * (2 if dtype == torch.float64 else 1)
        most = RESIDENT_SEQUENCES // 2 if tensor_cores else RESIDENT_SEQUENCES
        if words <= RESIDENT[kind] and not (stacked.batch >= BLOCK and sequences > most):
            threads = max(2 * width, words // NUMBERS_OF_A_THREAD, 32)
            warps = min(MOST_WARPS, 1 << (-(-threads // 32) - 1).bit_length())
            return cls(1, warps, 1, "registers", width)
        gated_back = kind == "backward" and multiplied > 1
        if tensor_cores:
            # An instruction multiplies 16 rows; 8 stay empty when registers are short.
            block = 8 if gated_back or width > 256 else BLOCK
            warps = 8 if width <= (256 if gated_back else 64) else 16
        else:
            block, warps = min(BLOCK, max(1, VECTOR_BYTES // (width * item))), 8
            if gated_back and fields * item > MOST_READ and width <= 128:
                block = min(block, 8)
            if -(-stacked.batch // block) * stacked.units < PROGRAMS:
                block = min(block, SMALL_BLOCK)
        numbers = max(1, block * width // (32 * warps))
        ahead = numbers * fields <= READ_AHEAD or (tensor_cores and gated_back and width <= 256)
        # Besides matrices: the operand of a product, and buffers to move it between threads.
        needed = len(kept) * width * width * item + 2 * block * width * max(item, 4)
        ordered = tensor_cores or numbers * width * multiplied <= MOST_MULTIPLIED
        if ordered and needed <= shared_memory(stacked.initial.device):
            return cls(block, warps, 1, "shared", width, ahead)
        tile = min(width, max(16, TILE_BYTES // (item * width)))
        stages = 2 if multiplied <= PREFETCHED else 1
        return cls(block, warps, stages, "memory", tile, ahead)


def precision_of(dtype: torch.dtype) -> str:
    """Precision of products for `tl.dot`: TF32 if set in torch."""
    if dtype != torch.float32:
        return "ieee"
    try:
        tf32 = torch.get_float32_matmul_precision() != "highest"
    except RuntimeError:  # set by torch's newer switch, after which the older one fails
        tf32 = torch.backends.cuda.matmul.fp32_precision == "tf32"
    return "tf32" if tf32 else "ieee"


@functools.cache
def shared_memory(device: torch.device) -> int:
    """Maximum bytes of shared memory of a program."""
    if device.type != "cuda":
        return SHARED_MEMORY
    properties: Any = torch.cuda.get_device_properties(device)  # its stub lacks the name
    return int(properties.shared_memory_per_block_optin)


def _gradients_of_matrices(
    stacked: _Stacked, known: Mapping[str, Tensor], g_products: Tensor
) -> Tensor:
    """Sums over sequences and steps of g x', (K, matrices, d, d).

    Vectors are `known` by letter and number, such as "h" for old states; "x" are operands that are
    not states.
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
