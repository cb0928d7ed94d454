"""Triton kernels of recurrences with full matrices: a matrix product a step, in time order.

A program owns BLOCK sequences of one unit and carries their state as tensors (BLOCK, D): D is d
up to a power of two. Arrays are (sequences, T, vector, d), sequences of all units one after the
other; matrices are (K, matrices, D, D), zero outside of d x d.
"""

import triton
import triton.language as tl

from tsrnn.kernels._gpu.kernels import add, choose, constants, load, store, store_zeros

# One compilation serves all sizes with the same D, and all alignments.
_SIZES = ["T", "B", "d"]
_FORWARD = ["inputs", "vectors", "initial", "lengths", "states", "final"]
_BACKWARD = [
    "inputs", "vectors", "initial", "lengths", "states", "g_states", "g_final", "g_inputs",
    "g_products", "operands", "g_vectors", "g_initial",
]  # fmt: skip
# Of a matrix, in shared memory at a time: all tiles on their way are 34 KB at most (d = 256 in
# float64), where the smallest devices have 99.
TILE_BYTES = tl.constexpr(8192)


@triton.jit
def _kept(x, weights, kept, scratch, ROWS: tl.constexpr):
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
def multiply(x, weights, numbers: tl.constexpr, kept, scratch):
    """Products of one operand with some matrices."""
    D: tl.constexpr = x.shape[1]
    FIT: tl.constexpr = 8 * TILE_BYTES // (D * weights.dtype.element_ty.primitive_bitwidth)
    SOME: tl.constexpr = FIT if FIT > 16 else 16  # rows that a product takes at least
    ROWS: tl.constexpr = SOME if SOME < D else D
    operand = _kept(x, weights, kept, scratch, ROWS)
    products = ()
    for i in tl.static_range(len(numbers)):
        products += (_product(operand, weights + numbers[i] * D * D, scratch, ROWS, x.dtype),)
    return products


@triton.jit
def multiply_back(x, weights, numbers: tl.constexpr, kept, scratch):
    """Sum of the products of some operands, each with its own matrix."""
    total = multiply(x[0], weights, (numbers[0],), kept, scratch)[0]
    for i in tl.static_range(1, len(numbers)):
        total += multiply(x[i], weights, (numbers[i],), kept, scratch)[0]
    return total


@triton.jit
def _block(lengths, T, B, d, BLOCK: tl.constexpr, D: tl.constexpr):
    """Place of a program: its unit of K, sequences (BLOCK, 1), units (1, D) of d and lengths.

    Then which of them exist, and the shortest and longest length.
    """
    blocks = tl.cdiv(B, BLOCK)
    k = (tl.program_id(0) // blocks).to(tl.int64)
    row = (tl.program_id(0) % blocks) * BLOCK + tl.arange(0, BLOCK)[:, None]
    exists = row < B
    column = tl.arange(0, D)[None, :]
    b = k * B + row
    length = tl.load(lengths + row, mask=exists, other=0).to(tl.int32)
    shortest = tl.min(tl.min(tl.where(exists, length, T), 1), 0)
    return k, b, column, length, exists & (column < d), shortest, tl.max(tl.max(length, 1), 0)


@triton.jit(do_not_specialize=_SIZES, do_not_specialize_on_alignment=_FORWARD)
def forward(
    inputs,
    vectors,
    initial,
    lengths,
    weights,
    scratch,
    states,
    final,
    T,
    B,
    d,
    STEP: tl.constexpr,
    N: tl.constexpr,
    M: tl.constexpr,
    V: tl.constexpr,
    MATRICES: tl.constexpr,
    REAL: tl.constexpr,
    BLOCK: tl.constexpr,
    D: tl.constexpr,
):
    """States and final state."""
    k, b, column, length, inside, shortest, longest = _block(lengths, T, B, d, BLOCK, D)
    vectors_at = tl.broadcast_to(vectors + k * (V * d) + column, (BLOCK, D))
    w = load(vectors_at, d, inside, V, REAL)
    h = load(initial + b * (N * d) + column, d, inside, N, REAL)
    weights += k * (MATRICES * D * D)
    scratch += tl.program_id(0).to(tl.int64) * (BLOCK * D)
    inputs_at = inputs + b * T * (M * d) + column
    states_at = states + b * T * (N * d) + column
    zeros_at = states_at + shortest.to(tl.int64) * (N * d)
    for t in range(0, longest):
        alive = inside & (t < length)
        u = load(inputs_at, d, alive, M, REAL)
        h = choose(alive, STEP(h, u, w, weights, column < d, scratch), h)
        store(states_at, d, alive, h)
        inputs_at += M * d
        states_at += N * d
    store(final + b * (N * d) + column, d, inside, h)
    store_zeros(zeros_at, N * d, d, length, tl.where(inside, T, 0), shortest, T, h[0], N)


@triton.jit(do_not_specialize=_SIZES, do_not_specialize_on_alignment=_BACKWARD)
def backward(
    inputs,
    vectors,
    initial,
    lengths,
    weights,
    transposed,
    scratch,
    states,
    g_states,
    g_final,
    g_inputs,
    g_products,
    operands,
    g_vectors,
    g_initial,
    T,
    B,
    d,
    VJP: tl.constexpr,
    N: tl.constexpr,
    M: tl.constexpr,
    V: tl.constexpr,
    MATRICES: tl.constexpr,
    PRODUCTS: tl.constexpr,
    OPERANDS: tl.constexpr,
    REAL: tl.constexpr,
    BLOCK: tl.constexpr,
    D: tl.constexpr,
):
    """Gradients of inputs, products, vectors and initial state, and operands to be kept.

    With PRODUCTS = 0 the gradients of products, being those of inputs, are not written.
    """
    k, b, column, length, inside, shortest, longest = _block(lengths, T, B, d, BLOCK, D)
    vectors_at = tl.broadcast_to(vectors + k * (V * d) + column, (BLOCK, D))
    w = load(vectors_at, d, inside, V, REAL)
    g = load(g_final + b * (N * d) + column, d, inside, N, REAL)
    weights += k * (MATRICES * D * D)
    transposed += k * (MATRICES * D * D)
    scratch += tl.program_id(0).to(tl.int64) * (BLOCK * D)
    initial_at = initial + b * (N * d) + column
    zeros = constants(0.0, g[0], N)
    sums = constants(0.0, g[0], V)
    for done in range(0, longest):
        t = longest - 1 - done
        alive = inside & (t < length)
        at = b * T + t
        states_at = states + at * (N * d) + column
        old = load(tl.where(t > 0, states_at - N * d, initial_at), d, alive, N, REAL)
        new = load(states_at, d, alive, N, REAL)
        incoming = load(g_states + at * (N * d) + column, d, alive, N, REAL)
        u = load(inputs + at * (M * d) + column, d, alive, M, REAL)
        total = choose(alive, add(g, incoming), zeros)
        g_old, g_u, g_p, g_w, x = VJP(
            total, old, u, new, w, weights, transposed, column < d, scratch
        )
        g = choose(alive, g_old, g)
        store(g_inputs + at * (M * d) + column, d, alive, g_u)
        if PRODUCTS > 0:
            store(g_products + at * (PRODUCTS * d) + column, d, alive, g_p)
        store(operands + at * (OPERANDS * d) + column, d, alive, x)
        sums = add(sums, g_w)
    store(g_initial + b * (N * d) + column, d, inside, g)
    store(g_vectors + b * (V * d) + column, d, inside, sums)
    at = b * T + shortest
    given = (length, tl.where(inside, T, 0), shortest, T, g[0])
    _zeros(g_inputs + at * (M * d) + column, d, given, M)
    _zeros(g_products + at * (PRODUCTS * d) + column, d, given, PRODUCTS)
    _zeros(operands + at * (OPERANDS * d) + column, d, given, OPERANDS)


@triton.jit
def _zeros(at, d, given, FIELDS: tl.constexpr):
    """Zeros after the end of each sequence."""
    length, limit, shortest, T, like = given
    store_zeros(at, FIELDS * d, d, length, limit, shortest, T, like, FIELDS)
