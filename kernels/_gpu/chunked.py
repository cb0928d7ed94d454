"""Triton kernels parallel in time: the chunks of a sequence side by side in one program.

A program owns a few units of one sequence. Its tensors are (CHUNKS, UNITS): a row is a chunk of
`STEPS` steps, and marches over them like any other lane.
"""

import triton
import triton.language as tl

from tsrnn.kernels._gpu.kernels import (
    add,
    choose,
    constants,
    history,
    load,
    march,
    march_back,
    store,
)  # fmt: skip

_SIZES = ["T", "K", "steps", "chunks", "max_passes"]
_SHOOTING = [
    "inputs", "parameters", "initial", "states", "final", "passes", "residual", "converged",
]  # fmt: skip
_BACKWARD = [
    "inputs", "parameters", "initial", "states", "g_states", "g_final", "g_inputs", "g_params",
    "g_initial",
]  # fmt: skip


@triton.jit
def _program(K, CHUNKS: tl.constexpr, UNITS: tl.constexpr):
    """Sequence of a program, its units (CHUNKS, UNITS) and where they exist."""
    groups = tl.cdiv(K, UNITS)
    b = (tl.program_id(0) // groups).to(tl.int64)
    k = (tl.program_id(0) % groups) * UNITS + tl.arange(0, UNITS)
    k = tl.broadcast_to(k[None, :], (CHUNKS, UNITS))
    return b, k, k < K


@triton.jit
def _shift(values, first, chunk):
    """Fields of the chunk before; of the first chunk, `first`."""
    before = tl.maximum(chunk - 1, 0)
    shifted = ()
    for i in tl.static_range(len(values)):
        shifted += (tl.where(chunk == 0, first[i], tl.gather(values[i], before, 0)),)
    return shifted


@triton.jit
def _is_finite(values):
    finite = values[0] - values[0] == 0
    for i in tl.static_range(1, len(values)):
        finite = finite & (values[i] - values[i] == 0)
    return finite


@triton.jit
def _identity(like, N: tl.constexpr):
    """N x N matrix by rows, in every lane."""
    values = ()
    for i in tl.static_range(N):
        for j in tl.static_range(N):
            values += constants(1.0 if i == j else 0.0, like, 1)
    return values


@triton.jit
def _mismatch(ends, starts, counted):
    """Largest relative difference of each unit (UNITS,) at the counted boundaries; inf for NaN."""
    largest = tl.zeros_like(ends[0])
    for i in tl.static_range(len(ends)):
        relative = tl.abs(ends[i] - starts[i]) / (1.0 + tl.abs(starts[i]))
        relative = tl.where(relative == relative, relative, float("inf"))
        largest = tl.maximum(largest, tl.where(counted, relative, 0.0))
    return tl.max(largest, 0)


@triton.jit
def _corrected(ends, jacobians, starts, counted, SCAN: tl.constexpr, N: tl.constexpr):
    """Start of the chunk after each one, after a Newton step on all boundaries.

    Where a product of Jacobians has overflowed, the next chunk starts where this one has ended.
    """
    zeros = constants(0.0, ends[0], N)
    offsets = ()
    for i in tl.static_range(N):
        offsets += (ends[i] - starts[i],)
    # The last chunk has no successor, and one without steps has only zeros to agree with.
    offsets = choose(counted & _is_finite(offsets), offsets, zeros)
    jacobians = choose(_is_finite(jacobians), jacobians, constants(0.0, ends[0], N * N))
    maps = SCAN(jacobians + offsets)
    corrected = ()
    for i in tl.static_range(N):
        moved = maps[N * N + i] - offsets[i]
        corrected += (ends[i] + tl.where(moved - moved == 0, moved, 0.0),)
    return corrected


@triton.jit(do_not_specialize=_SIZES, do_not_specialize_on_alignment=_SHOOTING)
def shooting(
    inputs,
    parameters,
    initial,
    states,
    final,
    passes,
    residual,
    converged,
    tolerance,
    T,
    K,
    steps,
    chunks,
    max_passes,
    STEP: tl.constexpr,
    TANGENT: tl.constexpr,
    SCAN: tl.constexpr,
    LINEAR: tl.constexpr,
    N: tl.constexpr,
    M: tl.constexpr,
    P: tl.constexpr,
    REAL: tl.constexpr,
    CHUNKS: tl.constexpr,
    UNITS: tl.constexpr,
    PREFETCH: tl.constexpr,
):
    """Newton's method on the boundaries of chunks, then the states from the starts it found."""
    b, k, inside = _program(K, CHUNKS, UNITS)
    chunk = tl.broadcast_to(tl.arange(0, CHUNKS)[:, None], (CHUNKS, UNITS))
    begin = chunk.to(tl.int64) * steps
    length = tl.where(inside, tl.minimum(tl.maximum(T - begin, 0), steps), 0).to(tl.int32)
    counted = inside & (chunk < chunks - 1)
    w = load(parameters + k, K, inside, P, REAL)
    first = load(initial + b * (N * K) + k, K, inside, N, REAL)
    inputs_at = inputs + (b * T + begin) * (M * K) + k
    states_at = states + (b * T + begin) * (N * K) + k

    identity = _identity(first[0], N)
    following = constants(0.0, first[0], N)  # the start of the chunk after each one
    count = tl.zeros((UNITS,), tl.int64)
    moving = count == 0
    done = 0
    going = 1
    while going > 0:
        starts = _shift(following, first, chunk)
        reached = march(
            TANGENT, starts + identity, w, inputs_at, M * K, K, states_at, N * K, K, length,
            steps, M, REAL, False, PREFETCH,
        )  # fmt: skip
        ends = reached[:N]
        jacobians = reached[N:]
        left = _mismatch(ends, following, counted)
        count += moving.to(tl.int64)
        moving = moving & (left > tolerance) & (left < float("inf"))
        following = _corrected(ends, jacobians, following, counted, SCAN, N)
        done += 1
        # A linear cell is exact after one step, whatever the mismatch was.
        more = max_passes if not LINEAR else 1
        going = tl.max(moving.to(tl.int32), 0) * (done < more).to(tl.int32)

    starts = _shift(following, first, chunk)
    ends = march(
        STEP, starts, w, inputs_at, M * K, K, states_at, N * K, K, length, steps,
        M, REAL, True, PREFETCH,
    )  # fmt: skip
    left = _mismatch(ends, following, counted)
    store(final + b * (N * K) + k, K, inside & (chunk == chunks - 1), ends)
    unit = tl.max(k, 0)
    at = b * K + unit
    tl.store(passes + at, count, mask=unit < K)
    tl.store(residual + at, left.to(residual.dtype.element_ty), mask=unit < K)
    tl.store(converged + at, left <= tolerance, mask=unit < K)


@triton.jit
def _local_adjoint(
    VJP: tl.constexpr,
    g,
    params,
    inputs_at,
    input_row,
    states_at,
    g_states_at,
    state_row,
    K,
    initial_at,
    length,
    stop,
    N: tl.constexpr,
    M: tl.constexpr,
    REAL: tl.constexpr,
):
    """Gradient at a chunk's start, and its derivative by the gradient at its end (by columns)."""
    new = load(states_at, K, stop - 1 < length, N, REAL)
    columns = _identity(g[0], N)
    now = history(
        inputs_at, input_row, K, states_at, g_states_at, state_row, K, initial_at, stop - 1,
        length, N, M, REAL, 1,
    )  # fmt: skip
    for done in range(0, stop):
        inputs_at -= input_row
        states_at -= state_row
        g_states_at -= state_row
        t = stop - 1 - done
        following = history(
            inputs_at, input_row, K, states_at, g_states_at, state_row, K, initial_at, t - 1,
            length, N, M, REAL, 1,
        )  # fmt: skip
        old, inputs, incoming = now[0]
        alive = t < length
        g = choose(alive, VJP(add(g, incoming), old, inputs, new, params)[0], g)
        moved = ()
        for j in tl.static_range(N):
            moved += VJP(columns[j * N : (j + 1) * N], old, inputs, new, params)[0]
        columns = choose(alive, moved, columns)
        new = old
        now = following
    return g, columns


@triton.jit(do_not_specialize=_SIZES, do_not_specialize_on_alignment=_BACKWARD)
def backward(
    inputs,
    parameters,
    initial,
    states,
    g_states,
    g_final,
    g_inputs,
    g_params,
    g_initial,
    T,
    K,
    steps,
    chunks,
    VJP: tl.constexpr,
    SCAN: tl.constexpr,
    N: tl.constexpr,
    M: tl.constexpr,
    P: tl.constexpr,
    REAL: tl.constexpr,
    CHUNKS: tl.constexpr,
    UNITS: tl.constexpr,
    PREFETCH: tl.constexpr,
):
    """Adjoint of all chunks from zero, a scan for the gradients at their ends, then from those.

    Row i of a tensor is chunk ``chunks - 1 - i``: the scan runs from the end of time.
    """
    b, k, inside = _program(K, CHUNKS, UNITS)
    row = tl.broadcast_to(tl.arange(0, CHUNKS)[:, None], (CHUNKS, UNITS))
    chunk = chunks - 1 - row
    inside = inside & (chunk >= 0)
    begin = chunk.to(tl.int64) * steps
    length = tl.where(inside, tl.minimum(T - begin, steps), 0).to(tl.int32)
    w = load(parameters + k, K, inside, P, REAL)
    last = load(g_final + b * (N * K) + k, K, inside, N, REAL)
    end = b * T + begin + steps - 1
    input_at = end * (M * K) + k
    state_at = end * (N * K) + k
    before = states + (b * T + begin - 1) * (N * K) + k
    before = tl.where(chunk == 0, initial + b * (N * K) + k, before)

    zeros = constants(0.0, last[0], N)
    terminal = choose(row == 0, last, zeros)
    g, columns = _local_adjoint(
        VJP, terminal, w, inputs + input_at, M * K, states + state_at, g_states + state_at, N * K,
        K, before, length, steps, N, M, REAL,
    )  # fmt: skip
    matrix = ()
    for i in tl.static_range(N):
        for j in tl.static_range(N):
            matrix += (columns[j * N + i],)
    maps = SCAN(matrix + g)
    terminal = _shift(maps[N * N :], last, row)

    g, sums = march_back(
        VJP, terminal, w, inputs + input_at, g_inputs + input_at, M * K, K, states + state_at,
        g_states + state_at, N * K, K, before, length, steps, N, M, P, REAL, True, True, PREFETCH,
    )  # fmt: skip
    store(g_initial + b * (N * K) + k, K, inside & (chunk == 0), g)
    unit = tl.max(k, 0)
    for i in tl.static_range(P):
        total = tl.sum(tl.where(inside, sums[i], 0.0), 0)
        tl.store(g_params + b * (P * K) + i * K + unit, total, mask=unit < K)
