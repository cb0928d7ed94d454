"""Triton kernels parallel in time: a lane is one chunk of one unit of one sequence.

Chunks of `steps` steps march side by side as lanes of the kernels in time order do, so that a warp
reads units that lie beside each other. What passes between chunks is (B, chunks, fields, K), in the
precision of arithmetic, and a small kernel with all chunks of some units in one program scans it.
No kernel waits for the host: lanes that are done have no steps in the launches that follow.
"""

import triton
import triton.language as tl

from tsrnn.kernels._gpu.kernels import (
    add,
    choose,
    constants,
    history,
    lengths_of,
    load,
    load_or_zeros,
    march,
    march_back,
    places,
    store,
    store_zeros,
)

_SIZES = ["T", "steps", "chunks", "lanes"]


@triton.jit
def _chunks(lengths, T, steps, chunks, lanes, K: tl.constexpr, BLOCK: tl.constexpr):
    """Sequence, chunk and unit of each lane, and whether it exists.

    Then the first step of the chunk, the length of the sequence and the steps that the chunk has.
    """
    piece, k, inside = places(lanes, K, BLOCK)
    b = piece // chunks
    chunk = piece % chunks
    begin = chunk * steps
    whole = lengths_of(lengths, b, T, inside)
    length = tl.minimum(tl.maximum(whole - begin, 0), steps).to(tl.int32)
    return b, chunk, k, inside, begin, whole, length


@triton.jit
def _in_time_order(marked, chunk, T, steps, begin, whole, length):
    """Steps of each lane and the end of its rows, where marked units are left to chunk 0."""
    limit = tl.minimum(T - begin, steps).to(tl.int32)
    length = tl.where(marked, tl.where(chunk == 0, whole, 0), length)
    return length, tl.where(marked, tl.where(chunk == 0, T, 0), limit)


@triton.jit(do_not_specialize=[*_SIZES, "in_order"])
def march_chunks(
    inputs,
    parameters,
    initial,
    lengths,
    starts,
    ends,
    moving,
    residual,
    states,
    final,
    T,
    steps,
    chunks,
    lanes,
    in_order,
    TANGENT: tl.constexpr,
    FIRST: tl.constexpr,
    N: tl.constexpr,
    M: tl.constexpr,
    P: tl.constexpr,
    K: tl.constexpr,
    REAL: tl.constexpr,
    BLOCK: tl.constexpr,
    PREFETCH: tl.constexpr,
):
    """Ends of chunks and their derivatives by the starts; after the FIRST march, states as well.

    The FIRST march starts all chunks but those at the initial state from zero. Later ones march
    where units are `moving`, and raise `residual`, the bits of a number that is not negative, to
    the largest mismatch of an end with the start after it. With `in_order` what is moving runs
    in time order, in the lanes of its first chunks.
    """
    b, chunk, k, inside, begin, whole, length = _chunks(lengths, T, steps, chunks, lanes, K, BLOCK)
    boundary = (b * chunks + chunk) * (N * K) + k
    unit = b * K + k
    counted = inside & (chunk < chunks - 1)
    last = inside & (chunk == chunks - 1)
    if FIRST:
        start = load(initial + b * (N * K) + k, K, inside & (chunk == 0), N, REAL)
        start = choose(chunk == 0, start, constants(0.0, start[0], N))
    else:
        moves = tl.load(moving + unit, mask=inside, other=False)
        ordered = tl.zeros_like(length) + in_order > 0
        marked = moves & ordered
        length, limit = _in_time_order(marked, chunk, T, steps, begin, whole, length)
        length, limit = tl.where(moves, length, 0), tl.where(moves, limit, 0)
        start = load(starts + boundary, K, moves, N, REAL)
        counted = counted & moves & (ordered == 0)
        last = moves & tl.where(ordered, chunk == 0, last)
    w = load(parameters + k, K, inside, P, REAL)
    state = start + _identity(start[0], N)
    states_at = states + (b * T + begin) * (N * K) + k
    reached = march(
        TANGENT, state, w, inputs + (b * T + begin) * (M * K) + k, M * K, K, states_at, N * K, K,
        length, tl.max(length, 0), M, REAL, 0 if FIRST else N, PREFETCH,
    )  # fmt: skip
    ends_at = ends + (b * chunks + chunk) * ((N + N * N) * K) + k
    store(ends_at, K, counted, reached)
    if not FIRST:
        end = reached[:N]
        store(final + b * (N * K) + k, K, last, end)
        mismatch = _mismatch(end, load(starts + boundary + N * K, K, counted, N, REAL))
        bits = mismatch.to(residual.dtype.element_ty, bitcast=True)
        # The order of launches is enough: what is read of it is read by the next one.
        tl.atomic_max(residual + unit, bits, mask=counted, sem="relaxed")
        shortest = tl.min(tl.where(length < limit, length, T), 0)
        zeros_at = states_at + shortest.to(tl.int64) * (N * K)
        store_zeros(zeros_at, N * K, K, length, limit, shortest, tl.max(limit, 0), state[0], N)


@triton.jit
def _identity(like, N: tl.constexpr):
    """N x N matrix by rows, in every lane."""
    values = ()
    for i in tl.static_range(N):
        for j in tl.static_range(N):
            values += constants(1.0 if i == j else 0.0, like, 1)
    return values


@triton.jit
def _mismatch(ends, starts):
    """Largest difference, relative to 1 + |start|; infinite where one is not a number.

    And where |start| is above 1e37: hardware divides by such numbers of single precision to zero.
    """
    largest = tl.zeros_like(ends[0])
    for i in tl.static_range(len(ends)):
        size = 1.0 + tl.abs(starts[i])
        relative = tl.abs(ends[i] - starts[i]) / size
        relative = tl.where((relative == relative) & (size < 1e37), relative, float("inf"))
        largest = tl.maximum(largest, relative)
    return largest


@triton.jit
def _program(K: tl.constexpr, CHUNKS: tl.constexpr, UNITS: tl.constexpr):
    """Sequence of a program, its rows and units (CHUNKS, UNITS), and its units (UNITS,)."""
    groups: tl.constexpr = (K + UNITS - 1) // UNITS
    b = (tl.program_id(0) // groups).to(tl.int64)
    unit = (tl.program_id(0) % groups) * UNITS + tl.arange(0, UNITS)
    k = tl.broadcast_to(unit[None, :], (CHUNKS, UNITS))
    row = tl.broadcast_to(tl.arange(0, CHUNKS)[:, None], (CHUNKS, UNITS))
    return b, row, k, unit


@triton.jit
def _finite(values):
    finite = values[0] - values[0] == 0
    for i in tl.static_range(1, len(values)):
        finite = finite & (values[i] - values[i] == 0)
    return finite


@triton.jit(do_not_specialize=["tolerance", "chunks", "done", "in_order"])
def correct(
    initial,
    starts,
    ends,
    moving,
    residual,
    next_residual,
    passes,
    tolerance,
    chunks,
    done,
    in_order,
    SCAN: tl.constexpr,
    FIRST: tl.constexpr,
    N: tl.constexpr,
    K: tl.constexpr,
    REAL: tl.constexpr,
    CHUNKS: tl.constexpr,
    UNITS: tl.constexpr,
):
    """A Newton step on the boundaries of all units that have not agreed; they are `moving`.

    With `in_order` they are only marked, for a march over the whole sequence. What the march that
    follows does not measure anew keeps its residual.
    """
    b, chunk, k, unit = _program(K, CHUNKS, UNITS)
    at = b * K + unit
    goes = unit < K
    # Compared unit by unit, also where the interpreter has a plain number.
    ordered = tl.zeros_like(unit) + in_order > 0
    left = tl.zeros((UNITS,), REAL)
    if not FIRST:
        left = tl.load(residual + at, mask=goes, other=0.0)
        # What is not finite will not become so by a Newton step: it is left to time order.
        goes = goes & (left > tolerance) & ((left < float("inf")) | ordered)
    tl.store(moving + at, goes, mask=unit < K)
    newton = goes & (ordered == 0)
    # Into another array: a number has copies in several warps, of which one may be late to read.
    tl.store(next_residual + at, tl.where(newton, 0.0, left), mask=unit < K)
    tl.store(passes + at, tl.zeros((UNITS,), tl.int64) + done, mask=newton)
    if tl.max(newton.to(tl.int32), 0) > 0:
        rows = tl.broadcast_to(newton[None, :], (CHUNKS, UNITS))
        row_at = b * chunks + chunk
        first = load(initial + b * (N * K) + k, K, rows & (chunk == 0), N, REAL)
        store(starts + row_at * (N * K) + k, K, rows & (chunk == 0), first)
        counted = rows & (chunk < chunks - 1)
        fields = load(ends + row_at * ((N + N * N) * K) + k, K, counted, N + N * N, REAL)
        end = fields[:N]
        next_at = starts + (row_at + 1) * (N * K) + k
        start = constants(0.0, end[0], N)
        if not FIRST:
            start = load(next_at, K, counted, N, REAL)
        store(next_at, K, counted, _corrected(end, fields[N:], start, counted, SCAN, N))


@triton.jit
def _corrected(ends, jacobians, starts, counted, SCAN: tl.constexpr, N: tl.constexpr):
    """Start of the chunk after each one, after a Newton step on all boundaries.

    Where a product of Jacobians has overflowed, the next chunk starts where this one has ended.
    """
    zeros = constants(0.0, ends[0], N)
    offsets = ()
    for i in tl.static_range(N):
        offsets += (ends[i] - starts[i],)
    # The last chunk has no successor.
    offsets = choose(counted & _finite(offsets), offsets, zeros)
    jacobians = choose(counted & _finite(jacobians), jacobians, constants(0.0, ends[0], N * N))
    maps = SCAN(jacobians + offsets)
    corrected = ()
    for i in tl.static_range(N):
        moved = maps[N * N + i] - offsets[i]
        corrected += (ends[i] + tl.where(moved - moved == 0, moved, 0.0),)
    return corrected


@triton.jit(do_not_specialize=_SIZES)
def adjoints(
    inputs,
    parameters,
    initial,
    lengths,
    states,
    g_states,
    g_final,
    adjoint,
    T,
    steps,
    chunks,
    lanes,
    VJP: tl.constexpr,
    N: tl.constexpr,
    M: tl.constexpr,
    P: tl.constexpr,
    K: tl.constexpr,
    GIVEN: tl.constexpr,
    REAL: tl.constexpr,
    BLOCK: tl.constexpr,
    PREFETCH: tl.constexpr,
):
    """Gradient at each chunk's start and its derivative by the gradient at the end, by columns.

    The gradient at the end is that of the final state for the last chunk, zero for the others.
    """
    b, chunk, k, inside, begin, _, length = _chunks(lengths, T, steps, chunks, lanes, K, BLOCK)
    w = load(parameters + k, K, inside, P, REAL)
    last = inside & (chunk == chunks - 1)
    g = load_or_zeros(g_final, b * (N * K) + k, K, last, N, REAL)
    columns = _identity(g[0], N)
    stop = tl.max(length, 0)
    end = b * T + begin + stop - 1
    inputs_at = inputs + end * (M * K) + k
    states_at, g_states_at = states + end * (N * K) + k, g_states + end * (GIVEN * K) + k
    before = _state_before(states, initial, b, chunk, T, begin, k, N, K)
    new = load(states_at, K, (stop - 1 < length) & (length > 0), N, REAL)
    now = history(
        inputs_at, M * K, K, states_at, g_states_at, N * K, K, before, stop - 1, length, N, M,
        GIVEN, REAL, PREFETCH,
    )  # fmt: skip
    for done in range(0, stop, PREFETCH):
        inputs_at -= PREFETCH * (M * K)
        states_at -= PREFETCH * (N * K)
        g_states_at -= PREFETCH * (GIVEN * K)
        t = stop - 1 - done
        following = history(
            inputs_at, M * K, K, states_at, g_states_at, N * K, K, before, t - PREFETCH, length, N,
            M, GIVEN, REAL, PREFETCH,
        )  # fmt: skip
        for i in tl.static_range(PREFETCH):
            old, u, incoming = now[i]
            this = tl.zeros_like(length) + (t - i)
            alive = (this >= 0) & (this < length)
            g = choose(alive, VJP(add(g, incoming), old, u, new, w)[0], g)
            moved = ()
            for j in tl.static_range(N):
                moved += VJP(columns[j * N : (j + 1) * N], old, u, new, w)[0]
            columns = choose(alive, moved, columns)
            new = old
        now = following
    store(adjoint + (b * chunks + chunk) * ((N + N * N) * K) + k, K, inside, g + columns)


@triton.jit
def _state_before(states, initial, b, chunk, T, begin, k, N: tl.constexpr, K: tl.constexpr):
    """Pointers to the state before the first step of each chunk."""
    before = states + (b * T + begin - 1) * (N * K) + k
    return tl.where(chunk == 0, initial + b * (N * K) + k, before)


@triton.jit(do_not_specialize=["chunks"])
def gradients_at_ends(
    adjoint,
    g_final,
    terminal,
    failed,
    chunks,
    SCAN: tl.constexpr,
    N: tl.constexpr,
    K: tl.constexpr,
    REAL: tl.constexpr,
    CHUNKS: tl.constexpr,
    UNITS: tl.constexpr,
):
    """Gradients at the ends of chunks, a scan from the end of time, and units where it overflowed.

    Row i of a tensor is chunk ``chunks - 1 - i``.
    """
    b, row, k, unit = _program(K, CHUNKS, UNITS)
    chunk = chunks - 1 - row
    inside = (k < K) & (chunk >= 0)
    row_at = adjoint + (b * chunks + chunk) * ((N + N * N) * K) + k
    fields = load(row_at, K, inside, N + N * N, REAL)
    matrix = ()
    for i in tl.static_range(N):
        for j in tl.static_range(N):
            matrix += (fields[N + j * N + i],)
    # Rows that are no chunk come last and change nothing before them.
    g = SCAN(matrix + fields[:N])[N * N :]
    last = load_or_zeros(g_final, b * (N * K) + k, K, inside & (row == 0), N, REAL)
    store(terminal + (b * chunks + chunk) * (N * K) + k, K, inside & (row == 0), last)
    before = inside & (chunk > 0)  # the gradient at its start is that at the end before
    store(terminal + (b * chunks + chunk - 1) * (N * K) + k, K, before, g)
    wrong = tl.max((before & (_finite(g) == 0)).to(tl.int32), 0)
    tl.store(failed + b * K + unit, wrong, mask=unit < K)


@triton.jit(do_not_specialize=_SIZES)
def backward(
    inputs,
    parameters,
    initial,
    lengths,
    states,
    g_states,
    g_final,
    terminal,
    failed,
    g_inputs,
    g_params,
    g_initial,
    T,
    steps,
    chunks,
    lanes,
    VJP: tl.constexpr,
    N: tl.constexpr,
    M: tl.constexpr,
    P: tl.constexpr,
    K: tl.constexpr,
    GIVEN: tl.constexpr,
    REAL: tl.constexpr,
    BLOCK: tl.constexpr,
    PREFETCH: tl.constexpr,
):
    """Gradients of inputs, of params for each chunk (B, chunks, p, K), and of the initial state.

    Units that have `failed`, whose products of Jacobians overflowed, run in time order, in the
    lanes of their first chunks.
    """
    b, chunk, k, inside, begin, whole, length = _chunks(lengths, T, steps, chunks, lanes, K, BLOCK)
    marked = tl.load(failed + b * K + k, mask=inside, other=0) > 0
    length, limit = _in_time_order(marked, chunk, T, steps, begin, whole, length)
    limit = tl.where(inside, limit, 0)
    w = load(parameters + k, K, inside, P, REAL)
    boundary = (b * chunks + chunk) * (N * K) + k
    g = load(terminal + boundary, K, inside & (marked == 0), N, REAL)
    g = choose(marked, load_or_zeros(g_final, b * (N * K) + k, K, marked, N, REAL), g)
    stop = tl.max(length, 0)
    end = b * T + begin + stop - 1
    input_at, state_at = end * (M * K) + k, end * (N * K) + k
    g_states_at = g_states + end * (GIVEN * K) + k
    before = _state_before(states, initial, b, chunk, T, begin, k, N, K)
    g, sums = march_back(
        VJP, g, w, inputs + input_at, g_inputs + input_at, M * K, M * K, K, states + state_at,
        g_states_at, N * K, K, before, length, stop, N, M, P, GIVEN, REAL, True, True, PREFETCH,
    )  # fmt: skip
    store(g_initial + b * (N * K) + k, K, inside & (chunk == 0), g)
    store(g_params + (b * chunks + chunk) * (P * K) + k, K, inside, sums)
    shortest = tl.min(tl.where(length < limit, length, T), 0)
    at = g_inputs + (b * T + begin + shortest) * (M * K) + k
    store_zeros(at, M * K, K, length, limit, shortest, tl.max(limit, 0), g[0], M)
