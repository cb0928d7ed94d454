"""Triton kernels parallel in time: a lane is one chunk of one unit of one sequence.

Chunks of `steps` steps march side by side like lanes of the kernels in time order, so that a warp
reads adjacent units. Values passed between chunks are (B, chunks, fields, K), in the precision of
arithmetic; a program that holds all chunks of a few units scans them. Newton's iteration is one
launch: its programs wait for each other between marches and scans, and stop when all have agreed.
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
    load_shared,
    march,
    march_back,
    places,
    store,
    store_zeros,
)

# As in `kernels`, the first arguments are arrays; compilation ignores their alignment.
_SIZES = ["T", "steps", "chunks", "lanes"]


@triton.jit
def _chunks(block, lengths, T, steps, chunks, lanes, K: tl.constexpr, BLOCK: tl.constexpr):
    """Sequence, chunk and unit of each lane, and the mask of existing lanes.

    Then the first step of the chunk, the length of the sequence and the steps that the chunk has.
    """
    piece, k, inside = places(block, lanes, K, BLOCK)
    b = piece // chunks
    chunk = piece % chunks
    begin = chunk * steps
    whole = lengths_of(lengths, b, T, inside)
    length = tl.minimum(tl.maximum(whole - begin, 0), steps).to(tl.int32)
    return b, chunk, k, inside, begin, whole, length


@triton.jit
def _in_time_order(marked, chunk, T, steps, begin, whole, length):
    """Steps of each lane and the end of its rows, with marked units left to chunk 0."""
    limit = tl.minimum(T - begin, steps).to(tl.int32)
    length = tl.where(marked, tl.where(chunk == 0, whole, 0), length)
    return length, tl.where(marked, tl.where(chunk == 0, T, 0), limit)


@triton.jit(
    do_not_specialize=[*_SIZES, "tolerance", "most_passes", "phase", "last_phase"],
    do_not_specialize_on_alignment=range(14),
)
def shoot(
    inputs,
    parameters,
    initial,
    lengths,
    starts,
    ends,
    moving,
    residuals,
    counts,
    states,
    final,
    passes,
    residual,
    fell_back,
    T,
    steps,
    chunks,
    lanes,
    tolerance,
    most_passes,
    phase,
    last_phase,
    TANGENT: tl.constexpr,
    SCAN: tl.constexpr,
    N: tl.constexpr,
    M: tl.constexpr,
    P: tl.constexpr,
    K: tl.constexpr,
    REAL: tl.constexpr,
    BLOCK: tl.constexpr,
    PREFETCH: tl.constexpr,
    CHUNKS: tl.constexpr,
    UNITS: tl.constexpr,
):
    """Newton's method on the boundaries of chunks, for a range of phases.

    Phase 0 marches from zero, phase ``2 p - 1`` makes correction p of the boundaries and phase
    ``2 p`` marches from them. When no unit continues after a correction, those that have not agreed
    run in time order, and the method ends. Several phases in one launch need all programs on the
    device at once; phases may also be launched one by one.

    `counts`, zero at first, are the number of programs at a barrier, then for each correction the
    numbers of units moved and of units left to time order. A march writes the one of `residuals`
    that the correction before it has not read.
    """
    programs = tl.num_programs(0)
    sequences = lanes // (chunks * K)
    comes = 0
    while phase <= last_phase:
        # Correction whose units continue: the last one.
        done = phase // 2
        moved = tl.load(counts + 1 + 2 * done, cache_modifier=".cg")
        left = tl.load(counts + 2 + 2 * done, cache_modifier=".cg")
        goes_on = (moved > 0) | (phase < 2)
        measured = residuals + (done % 2) * sequences * K
        if phase % 2 == 0:
            if goes_on | (left > 0):
                marching = moving if goes_on else fell_back
                for block in range(tl.program_id(0), tl.cdiv(lanes, BLOCK), programs):
                    _march_chunks(
                        block, inputs, parameters, initial, lengths, starts, ends, marching,
                        measured, states, final, T, steps, chunks, lanes, phase == 0,
                        goes_on == 0, TANGENT, N, M, P, K, REAL, BLOCK, PREFETCH,
                    )  # fmt: skip
        else:
            if goes_on:
                following = residuals + ((done + 1) % 2) * sequences * K
                groups = sequences * ((K + UNITS - 1) // UNITS)
                for group in range(tl.program_id(0), groups, programs):
                    _correct(
                        group, initial, starts, ends, moving, measured, following,
                        counts + 3 + 2 * done, passes, residual, fell_back, tolerance, chunks,
                        done + 1, most_passes, SCAN, N, K, REAL, CHUNKS, UNITS,
                    )  # fmt: skip
        phase = phase + 1 if goes_on else last_phase + 1
        if phase <= last_phase:
            comes += programs
            _wait_for_all(counts, comes)


@triton.jit
def _wait_for_all(count, comes):
    """Barrier between all programs of a launch: each adds one to `count` and waits for `comes`.

    Writes before the barrier are visible to all programs after it: the first thread releases the
    writes of its program and acquires those of the others, between two barriers of the program.
    """
    tl.debug_barrier()
    came = tl.atomic_add(count, 1, sem="acq_rel", scope="gpu") + 1
    while came < comes:
        came = tl.atomic_add(count, 0, sem="acquire", scope="gpu")
    tl.debug_barrier()


@triton.jit
def _march_chunks(
    block,
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
    first,
    in_order,
    TANGENT: tl.constexpr,
    N: tl.constexpr,
    M: tl.constexpr,
    P: tl.constexpr,
    K: tl.constexpr,
    REAL: tl.constexpr,
    BLOCK: tl.constexpr,
    PREFETCH: tl.constexpr,
):
    """Ends of chunks and their derivatives by the starts, and states after the `first` march.

    The first march starts all chunks from zero, except the first, from the initial state. Later
    ones march only `moving` units, and raise `residual`, the bits of a nonnegative number, to the
    largest mismatch of an end with the next start. With `in_order`, moving units run in time
    order, in the lanes of their first chunks.
    """
    b, chunk, k, inside, begin, whole, length = _chunks(
        block, lengths, T, steps, chunks, lanes, K, BLOCK
    )
    boundary = (b * chunks + chunk) * (N * K) + k
    unit = b * K + k
    # Compared lane by lane, even if the interpreter has a plain number.
    first = tl.zeros_like(length) + first > 0
    ordered = tl.zeros_like(length) + in_order > 0
    # Bypasses the cache of a multiprocessor, to see writes of other programs.
    moves = tl.load(moving + unit, mask=inside & (first == 0), other=False, cache_modifier=".cg")
    moves = inside & (first | moves)
    length, limit = _in_time_order(moves & ordered, chunk, T, steps, begin, whole, length)
    length, limit = tl.where(moves, length, 0), tl.where(moves, limit, 0)
    start = load(initial + b * (N * K) + k, K, moves & first & (chunk == 0), N, REAL)
    start = choose(chunk == 0, start, constants(0.0, start[0], N))
    start = choose(first, start, load_shared(starts + boundary, K, moves & (first == 0), N, REAL))
    w = load(parameters + k, K, inside, P, REAL)
    states_at = states + (b * T + begin) * (N * K) + k
    reached = march(
        TANGENT, start + _identity(start[0], N), w, inputs + (b * T + begin) * (M * K) + k, M * K,
        K, states_at, N * K, K, length, tl.max(length, 0), M, REAL, N, PREFETCH,
        tl.where(first, 0, length),
    )  # fmt: skip
    counted = moves & (ordered == 0) & (chunk < chunks - 1)
    ends_at = ends + (b * chunks + chunk) * ((N + N * N) * K) + k
    store(ends_at, K, counted, reached)
    later = moves & (first == 0)
    end = reached[:N]
    last = tl.where(ordered, chunk == 0, chunk == chunks - 1)
    store(final + b * (N * K) + k, K, later & last, end)
    counted = counted & later
    mismatch = _mismatch(end, load_shared(starts + boundary + N * K, K, counted, N, REAL))
    bits = mismatch.to(residual.dtype.element_ty, bitcast=True)
    # Ordered by the barrier after the phase.
    tl.atomic_max(residual + unit, bits, mask=counted, sem="relaxed")
    limit = tl.where(first, 0, limit)
    shortest = tl.min(tl.where(length < limit, length, T), 0)
    zeros_at = states_at + shortest.to(tl.int64) * (N * K)
    store_zeros(zeros_at, N * K, K, length, limit, shortest, tl.max(limit, 0), start[0], N)


@triton.jit
def _identity(like, N: tl.constexpr):
    """N x N identity by rows, in every lane."""
    values = ()
    for i in tl.static_range(N):
        for j in tl.static_range(N):
            values += constants(1.0 if i == j else 0.0, like, 1)
    return values


@triton.jit
def _mismatch(ends, starts):
    """Largest difference, relative to 1 + |start|; infinite if one is NaN.

    It is infinite for |start| above 1e37 too, since hardware division by such float32 gives zero.
    """
    largest = tl.zeros_like(ends[0])
    for i in tl.static_range(len(ends)):
        size = 1.0 + tl.abs(starts[i])
        relative = tl.abs(ends[i] - starts[i]) / size
        relative = tl.where((relative == relative) & (size < 1e37), relative, float("inf"))
        largest = tl.maximum(largest, relative)
    return largest


@triton.jit
def _program(group, K: tl.constexpr, CHUNKS: tl.constexpr, UNITS: tl.constexpr):
    """Sequence of a group of units, its rows and units (CHUNKS, UNITS), and its units (UNITS,)."""
    groups: tl.constexpr = (K + UNITS - 1) // UNITS
    b = tl.cast(group // groups, tl.int64)
    unit = (group % groups) * UNITS + tl.arange(0, UNITS)
    k = tl.broadcast_to(unit[None, :], (CHUNKS, UNITS))
    row = tl.broadcast_to(tl.arange(0, CHUNKS)[:, None], (CHUNKS, UNITS))
    return b, row, k, unit


@triton.jit
def _finite(values):
    finite = values[0] - values[0] == 0
    for i in tl.static_range(1, len(values)):
        finite = finite & (values[i] - values[i] == 0)
    return finite


@triton.jit
def _correct(
    group,
    initial,
    starts,
    ends,
    moving,
    measured,
    following,
    counts,
    passes,
    residual,
    fell_back,
    tolerance,
    chunks,
    done,
    most_passes,
    SCAN: tl.constexpr,
    N: tl.constexpr,
    K: tl.constexpr,
    REAL: tl.constexpr,
    CHUNKS: tl.constexpr,
    UNITS: tl.constexpr,
):
    """Newton step number `done` on the boundaries of a group's units that have not agreed.

    They are marked `moving`; after `most_passes`, or if not finite, they fall back to time order.
    Residuals that the next march does not measure are kept.
    """
    b, chunk, k, unit = _program(group, K, CHUNKS, UNITS)
    at = b * K + unit
    inside = unit < K
    # Compared unit by unit, even if the interpreter has a plain number.
    number = tl.zeros_like(unit) + done
    first = number == 1
    bits = tl.load(measured + at, mask=inside & (first == 0), other=0, cache_modifier=".cg")
    left = bits.to(REAL, bitcast=True)
    # A Newton step cannot make a value finite.
    goes = first | ((left > tolerance) & (left < float("inf")) & (number <= most_passes))
    goes = inside & goes
    falls = inside & (left > tolerance) & (goes == 0)
    tl.store(moving + at, goes, mask=inside)
    tl.store(fell_back + at, falls, mask=inside)
    tl.store(residual + at, left, mask=inside)
    tl.store(passes + at, number.to(tl.int64), mask=goes)
    # Into another array, since another warp may still have to read its copy.
    tl.store(following + at, tl.where(goes, 0, bits), mask=inside)
    count = tl.sum(goes.to(tl.int32), 0)
    tl.atomic_add(counts, count, sem="relaxed")
    tl.atomic_add(counts + 1, tl.sum(falls.to(tl.int32), 0), sem="relaxed")
    if count > 0:
        rows = tl.broadcast_to(goes[None, :], (CHUNKS, UNITS))
        row_at = b * chunks + chunk
        initial_at = initial + b * (N * K) + k
        counted = rows & (chunk < chunks - 1)
        fields_at = ends + row_at * ((N + N * N) * K) + k
        fields = load_shared(fields_at, K, counted, N + N * N, REAL)
        end = fields[:N]
        next_at = starts + (row_at + 1) * (N * K) + k
        old = tl.broadcast_to((first == 0)[None, :], (CHUNKS, UNITS))
        start = load_shared(next_at, K, counted & old, N, REAL)
        start = choose(old, start, constants(0.0, end[0], N))
        start = _corrected(end, fields[N:], start, counted, SCAN, N)
        tl.debug_barrier()  # all copies of a start have been read
        zeroth = rows & (chunk == 0)
        store(starts + row_at * (N * K) + k, K, zeroth, load(initial_at, K, zeroth, N, REAL))
        store(next_at, K, counted, start)


@triton.jit
def _corrected(ends, jacobians, starts, counted, SCAN: tl.constexpr, N: tl.constexpr):
    """Start of the next chunk, after a Newton step on all boundaries.

    If a product of Jacobians has overflowed, the next chunk starts at the end of this one.
    """
    zeros = constants(0.0, ends[0], N)
    offsets = ()
    for i in tl.static_range(N):
        offsets += (ends[i] - starts[i],)
    # The last chunk has no next.
    offsets = choose(counted & _finite(offsets), offsets, zeros)
    jacobians = choose(counted & _finite(jacobians), jacobians, constants(0.0, ends[0], N * N))
    maps = SCAN(jacobians + offsets)
    corrected = ()
    for i in tl.static_range(N):
        moved = maps[N * N + i] - offsets[i]
        corrected += (ends[i] + tl.where(moved - moved == 0, moved, 0.0),)
    return corrected


@triton.jit(do_not_specialize=_SIZES, do_not_specialize_on_alignment=range(8))
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
    """Gradient at the start of each chunk and its derivative by that at the end, by columns.

    The gradient at the end is that of the final state for the last chunk, zero for the others.
    """
    b, chunk, k, inside, begin, _, length = _chunks(
        tl.program_id(0), lengths, T, steps, chunks, lanes, K, BLOCK
    )
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


@triton.jit(do_not_specialize=["chunks"], do_not_specialize_on_alignment=range(4))
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
    """Gradients at the ends of chunks, by a scan backward in time, and units that overflowed.

    Row i of a tensor is chunk ``chunks - 1 - i``.
    """
    b, row, k, unit = _program(tl.program_id(0), K, CHUNKS, UNITS)
    chunk = chunks - 1 - row
    inside = (k < K) & (chunk >= 0)
    row_at = adjoint + (b * chunks + chunk) * ((N + N * N) * K) + k
    fields = load(row_at, K, inside, N + N * N, REAL)
    matrix = ()
    for i in tl.static_range(N):
        for j in tl.static_range(N):
            matrix += (fields[N + j * N + i],)
    # Rows beyond the chunks come last and change nothing before them.
    g = SCAN(matrix + fields[:N])[N * N :]
    last = load_or_zeros(g_final, b * (N * K) + k, K, inside & (row == 0), N, REAL)
    store(terminal + (b * chunks + chunk) * (N * K) + k, K, inside & (row == 0), last)
    before = inside & (chunk > 0)  # the gradient at its start is that at the previous end
    store(terminal + (b * chunks + chunk - 1) * (N * K) + k, K, before, g)
    wrong = tl.max((before & (_finite(g) == 0)).to(tl.int32), 0)
    tl.store(failed + b * K + unit, wrong, mask=unit < K)


@triton.jit(do_not_specialize=_SIZES, do_not_specialize_on_alignment=range(12))
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

    `failed` units, with overflow in their products of Jacobians, run in time order, in the lanes
    of their first chunks.
    """
    b, chunk, k, inside, begin, whole, length = _chunks(
        tl.program_id(0), lengths, T, steps, chunks, lanes, K, BLOCK
    )
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
        VJP, g, w, inputs + input_at, g_inputs + input_at, M * K, K, states + state_at,
        g_states_at, N * K, K, before, length, stop, N, M, P, GIVEN, REAL, True, True, PREFETCH,
    )  # fmt: skip
    store(g_initial + b * (N * K) + k, K, inside & (chunk == 0), g)
    store(g_params + (b * chunks + chunk) * (P * K) + k, K, inside, sums)
    shortest = tl.min(tl.where(length < limit, length, T), 0)
    at = g_inputs + (b * T + begin + shortest) * (M * K) + k
    store_zeros(at, M * K, K, length, limit, shortest, tl.max(limit, 0), g[0], M)
