"""Triton kernels of recurrences with full matrices: a matrix product a step, in time order.

A program owns BLOCK sequences of one unit and carries their state as tensors (BLOCK, D), with D
the next power of two of d. Arrays are (sequences, T, vector, d), with the sequences of all units
concatenated; matrices are (K, matrices, D, D), zero outside of d x d, with rows along the summed
units. A program keeps them in one of three places, PLACE:

- "registers", for programs of one sequence;
- "shared": loaded once before the march as operands of `tl.dot`, which the compiler puts into
  shared memory, readable by tensor cores;
- "memory": read again at every step, a tile of ROWS rows at a time.
"""

import triton
import triton.language as tl

from tsrnn.kernels._gpu.kernels import (
    add,
    choose,
    constants,
    lengths_of,
    load,
    load_or_zeros,
    store,
    store_zeros,
)

# One compilation serves all sizes with the same D and launch, and all alignments.
_SIZES = ["T", "B", "d", "K"]
_FORWARD = ["inputs", "parameters", "initial", "lengths", "states", "final"]
_BACKWARD = [
    "inputs", "parameters", "lengths", "states", "old_states", "g_states", "g_final", "g_rows",
    "g_vectors", "g_initial",
]  # fmt: skip


@triton.jit
def multiply(x, weights, numbers: tl.constexpr, kept, tiles, PRECISION: tl.constexpr):
    """Products of one operand with several matrices."""
    products = ()
    if tiles is not None:
        scratch, depth = tiles
        D: tl.constexpr = x.shape[1]
        operand = _stored(x, weights, kept, scratch, depth.shape[0])
        for i in tl.static_range(len(numbers)):
            matrix = weights + numbers[i] * D * D
            products += (_product(operand, matrix, scratch, depth, PRECISION, x.dtype),)
    elif len(weights[numbers[0]].shape) == 3:  # in registers
        operand = tl.where(kept, x, 0.0)[:, :, None]
        for i in tl.static_range(len(numbers)):
            products += (tl.sum(operand * weights[numbers[i]], 1),)
    else:
        operand = tl.where(kept, x, 0.0).to(weights[numbers[0]].dtype)
        for i in tl.static_range(len(numbers)):
            matrix = weights[numbers[i]]
            y = tl.dot(operand, matrix, input_precision=PRECISION, out_dtype=x.dtype)
            products += (tl.where(kept, y, 0.0),)
    return products


@triton.jit
def multiply_loaded(x, weights, numbers: tl.constexpr, kept, tiles, PRECISION: tl.constexpr):
    """Products of an operand that may depend only on loaded values.

    The operand passes through an identity gather: otherwise the compiler would not move it between
    threads, but load and compute it in every thread that needs it.
    """
    if tiles is None and len(weights[numbers[0]].shape) == 3:
        x = tl.gather(x, tl.arange(0, x.shape[1])[None, :], 1)
    return multiply(x, weights, numbers, kept, tiles, PRECISION)


@triton.jit
def multiply_back(x, weights, numbers: tl.constexpr, kept, tiles, PRECISION: tl.constexpr):
    """Sum of products of operands, each with its own matrix."""
    total = multiply(x[0], weights, (numbers[0],), kept, tiles, PRECISION)[0]
    for i in tl.static_range(1, len(numbers)):
        total += multiply(x[i], weights, (numbers[i],), kept, tiles, PRECISION)[0]
    return total


@triton.jit
def _stored(x, weights, kept, scratch, ROWS: tl.constexpr):
    """Operand of a product in the type of its matrix, zero outside of the units.

    With more columns than a tile has rows it goes through memory, as registers cannot be sliced.
    """
    x = tl.where(kept, x, 0.0).to(weights.dtype.element_ty)
    if x.shape[1] > ROWS:
        row = tl.arange(0, x.shape[0])[:, None]
        tl.debug_barrier()  # the previous operand has been read
        tl.store(scratch + row * x.shape[1] + tl.arange(0, x.shape[1])[None, :], x)
        tl.debug_barrier()
    return x


@triton.jit
def _product(x, weights, scratch, depth, PRECISION: tl.constexpr, REAL: tl.constexpr):
    """Operand times a matrix (D, D), in tiles with as many rows as `depth`."""
    D: tl.constexpr = x.shape[1]
    ROWS: tl.constexpr = depth.shape[0]
    column = tl.arange(0, D)[None, :]
    if ROWS == D:
        tile = tl.load(weights + depth[:, None] * D + column)
        result = tl.dot(x, tile, input_precision=PRECISION, out_dtype=REAL)
    else:
        row = tl.arange(0, x.shape[0])[:, None]
        result = tl.zeros(x.shape, REAL)
        for first in range(0, D, ROWS):
            part = tl.load(scratch + row * D + first + depth[None, :])
            tile = tl.load(weights + (first + depth[:, None]) * D + column)
            result = tl.dot(part, tile, result, input_precision=PRECISION, out_dtype=REAL)
    return result


@triton.jit
def _tiles(scratch, BLOCK: tl.constexpr, D: tl.constexpr, TILE: tl.constexpr):
    """Memory of an operand and rows of a tile, for matrices read at every step."""
    return scratch + tl.program_id(0).to(tl.int64) * (BLOCK * D), tl.arange(0, TILE)


@triton.jit
def _block(lengths, T, B, d, BLOCK: tl.constexpr, D: tl.constexpr, FULL: tl.constexpr):
    """Position of a program: unit of K, first sequence, rows (BLOCK, 1) and units (1, D).

    Then the steps of each unit (BLOCK, D) and of its row, 0 outside, and the mask. FULL blocks have
    d = D, and all units of a row share a mask.
    """
    blocks = tl.cdiv(B, BLOCK)
    k = (tl.program_id(0) // blocks).to(tl.int64)
    begin = (tl.program_id(0) % blocks) * BLOCK
    row = tl.arange(0, BLOCK)[:, None]
    column = tl.arange(0, D)[None, :]
    exists = begin + row < B
    inside = tl.broadcast_to(exists, (BLOCK, D))
    if not FULL:
        inside = exists & (column < d)
    length = tl.where(inside, lengths_of(lengths, begin + row, T, exists), 0)
    return k, k * B + begin, row, column, length, tl.where(inside, T, 0), inside


@triton.jit
def _offsets(row, column, steps, width, LONG: tl.constexpr):
    """Offsets (BLOCK, D) of a vector in a program's sequences, of `steps` x `width` numbers each.

    They are fixed, and a pointer to the program's first sequence moves from step to step: pointers
    of all units would take four times the registers of two.
    """
    if LONG:
        row = row.to(tl.int64)
    return row * steps * width + column


@triton.jit
def _extremes(length, limit, T):
    """Shortest and longest length in the mask."""
    shortest = tl.min(tl.min(tl.where(limit > 0, length, T), 1), 0)
    return shortest, tl.max(tl.max(length, 1), 0)


@triton.jit
def _vectors(
    parameters, k, K, d, column, inside, MATRICES: tl.constexpr, V: tl.constexpr, REAL: tl.constexpr
):
    """Vector parameters, for every sequence."""
    at = parameters + (MATRICES * d * d + column).to(tl.int64) * K + k
    return load(tl.broadcast_to(at, inside.shape), d.to(tl.int64) * K, inside, V, REAL)


@triton.jit
def _matrices(
    weights, k, T, MATRICES: tl.constexpr, D: tl.constexpr, REAL: tl.constexpr, PLACE: tl.constexpr
):
    """Matrices of a unit: in registers, (1, D, D), as operands of products, or pointers."""
    if PLACE == "registers":
        # Plus a zero unknown to the compiler, to hide the alignment: else a thread would read and
        # keep four columns at once, and sums over rows would involve more threads.
        at = weights + k * (MATRICES * D * D) + tl.minimum(T, 0)
        at += tl.arange(0, D)[None, :, None] * D + tl.arange(0, D)[None, None, :]
        matrices = ()
        for i in tl.static_range(MATRICES):
            matrices += (tl.load(at + i * D * D).to(REAL),)
    elif PLACE == "shared":
        at = weights + k * (MATRICES * D * D)
        at += tl.arange(0, D)[:, None] * D + tl.arange(0, D)[None, :]
        matrices = ()
        for i in tl.static_range(MATRICES):
            matrices += (tl.load(at + i * D * D),)
    else:
        matrices = weights + k * (MATRICES * D * D)
    return matrices


@triton.jit
def _march(
    STEP: tl.constexpr,
    state,
    params,
    inputs,
    inputs_at,
    states,
    states_at,
    d,
    length,
    stop,
    N: tl.constexpr,
    M: tl.constexpr,
    REAL: tl.constexpr,
    AHEAD: tl.constexpr,
):
    """State after `length` steps of each sequence, at most `stop`, written at every step.

    If AHEAD, inputs are prefetched by one step.
    """
    now = load(inputs + inputs_at, d, length > 0, M, REAL)
    for t in range(0, stop):
        inputs += M * d
        alive = t < length
        if AHEAD:
            following = load(inputs + inputs_at, d, t + 1 < length, M, REAL)
        state = choose(alive, STEP(state, now, params), state)
        store(states + states_at, d, alive, state)
        states += N * d
        now = following if AHEAD else load(inputs + inputs_at, d, t + 1 < length, M, REAL)
    return state


@triton.jit
def _history(
    inputs,
    inputs_at,
    old_states,
    states_at,
    g_states,
    g_states_at,
    d,
    t,
    length,
    N: tl.constexpr,
    M: tl.constexpr,
    GIVEN: tl.constexpr,
    REAL: tl.constexpr,
):
    """Old state, inputs and incoming gradient of step t, at the pointers.

    The old state is also read if a sequence ended just before the step, as the new state of its
    last step.
    """
    # Compared unit by unit, even if the interpreter has a plain number for t.
    this = tl.zeros_like(length) + t
    read = (this >= 0) & (this < length)
    old = load(old_states + states_at, d, (this >= 0) & (this <= length) & (length > 0), N, REAL)
    now = load(inputs + inputs_at, d, read, M, REAL)
    incoming = load(g_states + g_states_at, d, read, GIVEN, REAL)
    return old, now, incoming


@triton.jit
def _march_back(
    VJP: tl.constexpr,
    g,
    params,
    inputs,
    inputs_at,
    g_rows,
    g_rows_at,
    states,
    old_states,
    states_at,
    g_states,
    g_states_at,
    d,
    length,
    stop,
    N: tl.constexpr,
    M: tl.constexpr,
    V: tl.constexpr,
    ROWS: tl.constexpr,
    GIVEN: tl.constexpr,
    REAL: tl.constexpr,
    AHEAD: tl.constexpr,
):
    """Gradients of the state before the first step and, summed over time, of the vectors.

    The pointers start at step ``stop - 1``; rows of gradients are written at every step.
    """
    # If no sequence has a step, `stop` is 0 and the pointers are before the arrays.
    new = load(states + states_at, d, (stop - 1 < length) & (length > 0), N, REAL)
    sums = constants(0.0, g[0], V)
    old, now, incoming = _history(
        inputs, inputs_at, old_states, states_at, g_states, g_states_at, d, stop - 1, length,
        N, M, GIVEN, REAL,
    )  # fmt: skip
    for done in range(0, stop):
        t = stop - 1 - done
        inputs -= M * d
        old_states -= N * d
        g_states -= GIVEN * d
        if AHEAD:
            older, before, incoming_before = _history(
                inputs, inputs_at, old_states, states_at, g_states, g_states_at, d, t - 1, length,
                N, M, GIVEN, REAL,
            )  # fmt: skip
        alive = t < length
        total = choose(alive, add(g, incoming), constants(0.0, g[0], N))
        g_old, g_now, g_vectors = VJP(total, old, now, new, params)
        g = choose(alive, g_old, g)
        store(g_rows + g_rows_at, d, alive, g_now)
        g_rows -= ROWS * d
        sums = add(sums, g_vectors)
        new = old
        if AHEAD:
            old, now, incoming = older, before, incoming_before
        else:
            old, now, incoming = _history(
                inputs, inputs_at, old_states, states_at, g_states, g_states_at, d, t - 1, length,
                N, M, GIVEN, REAL,
            )  # fmt: skip
    return g, sums


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
    PLACE: tl.constexpr,
    TILE: tl.constexpr,
    AHEAD: tl.constexpr,
    FULL: tl.constexpr,
    LONG: tl.constexpr,
):
    """States and final state."""
    k, first, row, column, length, limit, inside = _block(lengths, T, B, d, BLOCK, D, FULL)
    shortest, longest = _extremes(length, limit, T)
    vectors = _vectors(parameters, k, K, d, column, inside, MATRICES, V, REAL)
    if weights is not None:
        weights = _matrices(weights, k, T, MATRICES, D, REAL, PLACE)
    if scratch is not None:
        scratch = _tiles(scratch, BLOCK, D, TILE)
    initial_at = _offsets(row, column, 1, N * d, LONG)
    states_at = _offsets(row, column, T, N * d, LONG)
    states += first * T * (N * d)
    h = load(initial + first * (N * d) + initial_at, d, inside, N, REAL)
    h = _march(
        STEP, h, (vectors, weights, inside, scratch), inputs + first * T * (M * d),
        _offsets(row, column, T, M * d, LONG), states, states_at, d, length, longest, N, M, REAL,
        AHEAD,
    )  # fmt: skip
    store(final + first * (N * d) + initial_at, d, inside, h)
    states += shortest.to(tl.int64) * (N * d)
    store_zeros(states + states_at, N * d, d, length, limit, shortest, T, h[0], N)


@triton.jit(do_not_specialize=_SIZES, do_not_specialize_on_alignment=_BACKWARD)
def backward(
    inputs,
    parameters,
    lengths,
    weights,
    transposed,
    scratch,
    states,
    old_states,
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
    PLACE: tl.constexpr,
    TILE: tl.constexpr,
    AHEAD: tl.constexpr,
    FULL: tl.constexpr,
    LONG: tl.constexpr,
):
    """Gradients of vectors and of the initial state, and at every step rows of ROWS vectors.

    These rows are the gradients of inputs, then of products if different, then kept operands. Only
    the first GIVEN fields of the states have a gradient.
    """
    k, first, row, column, length, limit, inside = _block(lengths, T, B, d, BLOCK, D, FULL)
    shortest, longest = _extremes(length, limit, T)
    vectors = _vectors(parameters, k, K, d, column, inside, MATRICES, V, REAL)
    if weights is not None:
        weights = _matrices(weights, k, T, MATRICES, D, REAL, PLACE)
    if transposed is not None:
        transposed = _matrices(transposed, k, T, MATRICES, D, REAL, PLACE)
    if scratch is not None:
        scratch = _tiles(scratch, BLOCK, D, TILE)
    initial_at = _offsets(row, column, 1, N * d, LONG)
    rows_at = _offsets(row, column, T, ROWS * d, LONG)
    g = load_or_zeros(g_final, first * (N * d) + initial_at, d, inside, N, REAL)
    last = first * T + (longest - 1).to(tl.int64)
    g, sums = _march_back(
        VJP, g, (vectors, weights, transposed, inside, scratch), inputs + last * (M * d),
        _offsets(row, column, T, M * d, LONG), g_rows + last * (ROWS * d), rows_at,
        states + last * (N * d), old_states + last * (N * d),
        _offsets(row, column, T, N * d, LONG), g_states + last * (GIVEN * d),
        _offsets(row, column, T, GIVEN * d, LONG), d, length, longest, N, M, V, ROWS, GIVEN,
        REAL, AHEAD,
    )  # fmt: skip
    store(g_initial + first * (N * d) + initial_at, d, inside, g)
    store(g_vectors + first * (V * d) + _offsets(row, column, 1, V * d, LONG), d, inside, sums)
    g_rows += (first * T + shortest) * (ROWS * d)
    store_zeros(g_rows + rows_at, ROWS * d, d, length, limit, shortest, T, g[0], ROWS)
