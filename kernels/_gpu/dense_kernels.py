"""Triton kernels of recurrences with full matrices: a matrix product a step, in time order.

A program owns BLOCK sequences of one unit and carries their state as tensors (BLOCK, D): D is d
up to a power of two. Arrays are (sequences, T, vector, d), sequences of all units one after the
other; matrices are (K, matrices, D, D), zero outside of d x d, their rows what is summed over.
Those that fit stay in registers, for programs of one sequence; others are read again at every step,
a tile at a time.
"""

import triton
import triton.language as tl

from tsrnn.kernels._gpu.kernels import (
    lengths_of,
    load,
    load_or_zeros,
    march,
    march_back,
    store,
    store_zeros,
)

# One compilation serves all sizes with the same D and the same launch, and all alignments.
_SIZES = ["T", "B", "d", "K"]
_FORWARD = ["inputs", "parameters", "initial", "lengths", "states", "final"]
_BACKWARD = [
    "inputs", "parameters", "initial", "lengths", "states", "g_states", "g_final", "g_rows",
    "g_vectors", "g_initial",
]  # fmt: skip
# Of a matrix, in shared memory at a time. Tiles of up to six products are on their way there: as
# compiled these take 52 KB of the 99 that the smallest devices have (d = 32 in float64).
TILE_BYTES = tl.constexpr(8192)


@triton.jit
def multiply(x, weights, numbers: tl.constexpr, kept, scratch):
    """Products of one operand with some matrices."""
    products = ()
    if scratch is None:
        operand = tl.where(kept, x, 0.0)[:, :, None]
        for i in tl.static_range(len(numbers)):
            products += (tl.sum(operand * weights[numbers[i]], 1),)
    else:
        D: tl.constexpr = x.shape[1]
        FIT: tl.constexpr = 8 * TILE_BYTES // (D * weights.dtype.element_ty.primitive_bitwidth)
        SOME: tl.constexpr = FIT if FIT > 16 else 16  # rows that a product takes at least
        ROWS: tl.constexpr = SOME if SOME < D else D
        operand = _stored(x, weights, kept, scratch, ROWS)
        for i in tl.static_range(len(numbers)):
            matrix = weights + numbers[i] * D * D
            products += (_product(operand, matrix, scratch, ROWS, x.dtype),)
    return products


@triton.jit
def multiply_loaded(x, weights, numbers: tl.constexpr, kept, scratch):
    """Products of an operand that may be made of what has been loaded alone.

    It is gathered, unit by unit where it is: the compiler would else not move it between threads,
    but load and compute it in all that multiply by it.
    """
    if scratch is None:
        x = tl.gather(x, tl.arange(0, x.shape[1])[None, :], 1)
    return multiply(x, weights, numbers, kept, scratch)


@triton.jit
def multiply_back(x, weights, numbers: tl.constexpr, kept, scratch):
    """Sum of the products of some operands, each with its own matrix."""
    total = multiply(x[0], weights, (numbers[0],), kept, scratch)[0]
    for i in tl.static_range(1, len(numbers)):
        total += multiply(x[i], weights, (numbers[i],), kept, scratch)[0]
    return total


@triton.jit
def _stored(x, weights, kept, scratch, ROWS: tl.constexpr):
    """Operand of a product as its matrix is stored, zero where there is no unit.

    One of more columns than a tile has rows goes through memory: registers cannot be sliced.
    """
    x = tl.where(kept, x, 0.0).to(weights.dtype.element_ty)
    if x.shape[1] > ROWS:
        row = tl.arange(0, x.shape[0])[:, None]
        tl.debug_barrier()  # the operand before has been read
        tl.store(scratch + row * x.shape[1] + tl.arange(0, x.shape[1])[None, :], x)
        tl.debug_barrier()
    return x


@triton.jit
def _product(x, weights, scratch, ROWS: tl.constexpr, REAL: tl.constexpr):
    """Operand times a matrix (D, D), its tiles one after the other."""
    D: tl.constexpr = x.shape[1]
    column = tl.arange(0, D)[None, :]
    depth = tl.arange(0, ROWS)
    if ROWS == D:
        tile = tl.load(weights + depth[:, None] * D + column)
        result = tl.dot(x, tile, input_precision="ieee", out_dtype=REAL)
    else:
        row = tl.arange(0, x.shape[0])[:, None]
        result = tl.zeros(x.shape, REAL)
        for first in range(0, D, ROWS):
            part = tl.load(scratch + row * D + first + depth[None, :])
            tile = tl.load(weights + (first + depth[:, None]) * D + column)
            result = tl.dot(part, tile, result, input_precision="ieee", out_dtype=REAL)
    return result


@triton.jit
def _block(lengths, T, B, d, BLOCK: tl.constexpr, D: tl.constexpr):
    """Place of a program: its unit of K, sequences (BLOCK, 1), units (1, D) of d.

    Then the steps of each unit (BLOCK, D) and of its row, none outside, and which exist.
    """
    blocks = tl.cdiv(B, BLOCK)
    k = (tl.program_id(0) // blocks).to(tl.int64)
    row = (tl.program_id(0) % blocks) * BLOCK + tl.arange(0, BLOCK)[:, None]
    column = tl.arange(0, D)[None, :]
    inside = (row < B) & (column < d)
    length = tl.where(inside, lengths_of(lengths, row, T, row < B), 0)
    return k, k * B + row, column, length, tl.where(inside, T, 0), inside


@triton.jit
def _extremes(length, limit, T):
    """Shortest length of what exists, and the longest."""
    shortest = tl.min(tl.min(tl.where(limit > 0, length, T), 1), 0)
    return shortest, tl.max(tl.max(length, 1), 0)


@triton.jit
def _vectors(
    parameters, k, K, d, column, inside, MATRICES: tl.constexpr, V: tl.constexpr, REAL: tl.constexpr
):
    """Parameters that are vectors, for every sequence."""
    at = parameters + (MATRICES * d * d + column).to(tl.int64) * K + k
    return load(tl.broadcast_to(at, inside.shape), d.to(tl.int64) * K, inside, V, REAL)


@triton.jit
def _matrices(
    weights,
    k,
    T,
    MATRICES: tl.constexpr,
    D: tl.constexpr,
    REAL: tl.constexpr,
    RESIDENT: tl.constexpr,
):
    """Matrices of a unit: in registers, as (1, D, D), or where they are."""
    if RESIDENT:
        # Plus zero, which the compiler does not know: were they aligned to it, a thread would read
        # four columns at once and keep them, and sums over rows would go through more threads.
        at = weights + k * (MATRICES * D * D) + tl.minimum(T, 0)
        at += tl.arange(0, D)[None, :, None] * D + tl.arange(0, D)[None, None, :]
        matrices = ()
        for i in tl.static_range(MATRICES):
            matrices += (tl.load(at + i * D * D).to(REAL),)
    else:
        matrices = weights + k * (MATRICES * D * D)
    return matrices


@triton.jit(do_not_specialize=_SIZES, do_not_specialize_on_alignment=_FORWARD)
def forward(
    inputs,
    parameters,
    initial,
    lengths,
    weights,
    scratch,
    states,
    final,
    T,
    B,
    d,
    K,
    STEP: tl.constexpr,
    N: tl.constexpr,
    M: tl.constexpr,
    V: tl.constexpr,
    MATRICES: tl.constexpr,
    REAL: tl.constexpr,
    BLOCK: tl.constexpr,
    D: tl.constexpr,
):
    """States and final state; matrices are read once where there is no `scratch`."""
    k, b, column, length, limit, inside = _block(lengths, T, B, d, BLOCK, D)
    shortest, longest = _extremes(length, limit, T)
    w = _vectors(parameters, k, K, d, column, inside, MATRICES, V, REAL)
    matrices = weights  # None where there is nothing to multiply
    if weights is not None:
        matrices = _matrices(weights, k, T, MATRICES, D, REAL, scratch is None)
    if scratch is not None:
        scratch += tl.program_id(0).to(tl.int64) * (BLOCK * D)
    h = load(initial + b * (N * d) + column, d, inside, N, REAL)
    states_at = states + b * T * (N * d) + column
    h = march(
        STEP, h, (w, matrices, column < d, scratch), inputs + b * T * (M * d) + column, M * d, d,
        states_at, N * d, d, length, longest, M, REAL, N, 1,
    )  # fmt: skip
    store(final + b * (N * d) + column, d, inside, h)
    states_at += shortest.to(tl.int64) * (N * d)
    store_zeros(states_at, N * d, d, length, limit, shortest, T, h[0], N)


@triton.jit(do_not_specialize=_SIZES, do_not_specialize_on_alignment=_BACKWARD)
def backward(
    inputs,
    parameters,
    initial,
    lengths,
    weights,
    transposed,
    scratch,
    states,
    g_states,
    g_final,
    g_rows,
    g_vectors,
    g_initial,
    T,
    B,
    d,
    K,
    VJP: tl.constexpr,
    N: tl.constexpr,
    M: tl.constexpr,
    V: tl.constexpr,
    MATRICES: tl.constexpr,
    ROWS: tl.constexpr,
    GIVEN: tl.constexpr,
    REAL: tl.constexpr,
    BLOCK: tl.constexpr,
    D: tl.constexpr,
):
    """Gradients of vectors and of the initial state, and at every step rows of ROWS vectors.

    They are the gradients of inputs, then of products where these are others, then operands to be
    kept. Of the states the first GIVEN fields have a gradient.
    """
    k, b, column, length, limit, inside = _block(lengths, T, B, d, BLOCK, D)
    shortest, longest = _extremes(length, limit, T)
    w = _vectors(parameters, k, K, d, column, inside, MATRICES, V, REAL)
    matrices, back = weights, transposed  # None where there is nothing to multiply
    if weights is not None:
        matrices = _matrices(weights, k, T, MATRICES, D, REAL, scratch is None)
    if transposed is not None:
        back = _matrices(transposed, k, T, MATRICES, D, REAL, scratch is None)
    if scratch is not None:
        scratch += tl.program_id(0).to(tl.int64) * (BLOCK * D)
    g = load_or_zeros(g_final, b * (N * d) + column, d, inside, N, REAL)
    last = b * T + (longest - 1).to(tl.int64)
    g, sums = march_back(
        VJP, g, (w, matrices, back, column < d, scratch), inputs + last * (M * d) + column,
        g_rows + last * (ROWS * d) + column, M * d, ROWS * d, d, states + last * (N * d) + column,
        g_states + last * (GIVEN * d) + column, N * d, d, initial + b * (N * d) + column, length,
        longest, N, M, V, GIVEN, REAL, True, True, 1,
    )  # fmt: skip
    store(g_initial + b * (N * d) + column, d, inside, g)
    store(g_vectors + b * (V * d) + column, d, inside, sums)
    rows_at = g_rows + (b * T + shortest) * (ROWS * d) + column
    store_zeros(rows_at, ROWS * d, d, length, limit, shortest, T, g[0], ROWS)
