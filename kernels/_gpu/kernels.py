"""Triton kernels in time order: a lane, one unit of one sequence, keeps its state in registers.

The inputs of a block of steps are prefetched during the previous block, since their addresses do
not depend on the recurrence. After the end of a lane's sequence nothing is read or written, and the
state stays. Other kernels share the functions that march over time, on tuples of fields in
registers.
"""

import triton
import triton.language as tl

# One compilation serves all numbers of sequences and steps. The number of units is a constant, for
# constant strides between steps. Arrays need no alignment, since a thread moves one number at a
# time, so that views use the same kernel. No argument may be called `params`: Triton's launcher has
# a variable of that name.

_SIZES = ["T", "lanes"]


@triton.jit
def places(block, lanes, K: tl.constexpr, BLOCK: tl.constexpr):
    """Row and unit of K of each lane of a block, and the mask of existing lanes."""
    first, lane = tl.cast(block, tl.int64) * BLOCK, tl.arange(0, BLOCK)
    if K % BLOCK == 0:
        # All in one row, without masks.
        unit = first % K + lane
        row = tl.zeros_like(unit) + first // K
        inside = tl.full((BLOCK,), True, tl.int1)
    else:
        inside = first + lane < lanes
        row, unit = (first + lane) // K, (first + lane) % K
    return row, unit, inside


@triton.jit
def _lanes(lengths, T, lanes, K: tl.constexpr, BLOCK: tl.constexpr):
    """Sequence, unit and length of each lane, the mask, and the shortest and longest length."""
    b, k, inside = places(tl.program_id(0), lanes, K, BLOCK)
    length = lengths_of(lengths, b, T, inside)
    shortest = tl.min(tl.where(inside, length, T), 0)
    return b, k, length, inside, shortest, tl.max(length, 0)


@triton.jit(do_not_specialize=_SIZES, do_not_specialize_on_alignment=range(6))
def forward(
    inputs,
    parameters,
    initial,
    lengths,
    states,
    final,
    T,
    lanes,
    STEP: tl.constexpr,
    N: tl.constexpr,
    M: tl.constexpr,
    P: tl.constexpr,
    K: tl.constexpr,
    SHARED: tl.constexpr,
    REAL: tl.constexpr,
    KEEP: tl.constexpr,
    BLOCK: tl.constexpr,
    PREFETCH: tl.constexpr,
):
    """States and final state: (B, T, m, K), (p, K), (B, n, K), (B,) to (B, T, n, K), (B, n, K)."""
    b, k, length, inside, shortest, longest = _lanes(lengths, T, lanes, K, BLOCK)
    w = load(parameters + k, K, inside, P, REAL)
    h = load(initial + b * (N * K) + k, K, inside, N, REAL)
    input_row = M if SHARED else M * K
    input_field = 1 if SHARED else K
    inputs_at = inputs + b * T * input_row
    if not SHARED:
        inputs_at += k
    states_at = states + b * T * (N * K) + k
    h = march(
        STEP, h, w, inputs_at, input_row, input_field, states_at, N * K, K, length, longest,
        M, REAL, N if KEEP else 0, PREFETCH,
    )  # fmt: skip
    store(final + b * (N * K) + k, K, inside, h)
    if KEEP:
        states_at += shortest.to(tl.int64) * (N * K)
        limit = tl.where(inside, T, 0)
        store_zeros(states_at, N * K, K, length, limit, shortest, T, h[0], N)


@triton.jit(do_not_specialize=_SIZES, do_not_specialize_on_alignment=range(10))
def backward(
    inputs,
    parameters,
    initial,
    lengths,
    states,
    g_states,
    g_final,
    g_inputs,
    g_params,
    g_initial,
    T,
    lanes,
    VJP: tl.constexpr,
    N: tl.constexpr,
    M: tl.constexpr,
    P: tl.constexpr,
    K: tl.constexpr,
    SHARED: tl.constexpr,
    GIVEN: tl.constexpr,
    REAL: tl.constexpr,
    ONLY_INITIAL: tl.constexpr,
    BLOCK: tl.constexpr,
    PREFETCH: tl.constexpr,
):
    """Gradients of inputs, of params for each sequence (B, p, K), and of the initial state.

    Only the first GIVEN fields of the states have a gradient; that of the final state is optional.
    """
    b, k, length, inside, shortest, longest = _lanes(lengths, T, lanes, K, BLOCK)
    w = load(parameters + k, K, inside, P, REAL)
    g = load_or_zeros(g_final, b * (N * K) + k, K, inside, N, REAL)
    input_row = M if SHARED else M * K
    input_field = 1 if SHARED else K
    last = (longest - 1).to(tl.int64)
    input_at = b * T * input_row + last * input_row
    if not SHARED:
        input_at += k
    row = b * T + last
    g, sums = march_back(
        VJP, g, w, inputs + input_at, g_inputs + input_at, input_row, input_field,
        states + row * (N * K) + k, g_states + row * (GIVEN * K) + k, N * K, K,
        initial + b * (N * K) + k, length, longest, N, M, P, GIVEN, REAL,
        not SHARED and not ONLY_INITIAL, not ONLY_INITIAL, PREFETCH,
    )  # fmt: skip
    store(g_initial + b * (N * K) + k, K, inside, g)
    if not ONLY_INITIAL:
        store(g_params + b * (P * K) + k, K, inside, sums)
    if not SHARED and not ONLY_INITIAL:
        at = g_inputs + b * T * (M * K) + k + shortest.to(tl.int64) * (M * K)
        store_zeros(at, M * K, K, length, tl.where(inside, T, 0), shortest, T, g[0], M)


@triton.jit
def lengths_of(lengths, b, T, inside):
    """Steps of each lane's sequence, T without lengths; 0 outside of the mask."""
    if lengths is None:
        length = tl.where(inside, T, 0)
    else:
        # Lengths on the device are unchecked: a wrong one must not reach outside of arrays.
        # Compared before the cast, which would wrap more than 32 bits.
        length = tl.load(lengths + b, mask=inside, other=0)
        length = tl.minimum(tl.maximum(length, 0), T)
    return length.to(tl.int32)


@triton.jit
def load(at, stride, mask, FIELDS: tl.constexpr, REAL: tl.constexpr):
    """Fields of a row; one, where log, sqrt and division are smooth, in masked-out lanes."""
    values = ()
    for i in tl.static_range(FIELDS):
        values += (tl.load(at + i * stride, mask=mask, other=1.0).to(REAL),)
    return values


@triton.jit
def load_shared(at, stride, mask, FIELDS: tl.constexpr, REAL: tl.constexpr):
    """Fields of a row that another program may have written since the kernel began.

    Bypasses the cache of the multiprocessor, which does not see writes of others.
    """
    values = ()
    for i in tl.static_range(FIELDS):
        value = tl.load(at + i * stride, mask=mask, other=1.0, cache_modifier=".cg")
        values += (value.to(REAL),)
    return values


@triton.jit
def load_or_zeros(array, at, stride, mask, FIELDS: tl.constexpr, REAL: tl.constexpr):
    """Fields of a row of an array; zeros without an array or outside of the mask."""
    if array is None:
        values = constants(0.0, tl.zeros(mask.shape, REAL), FIELDS)
    else:
        read = load(array + at, stride, mask, FIELDS, REAL)
        values = choose(mask, read, constants(0.0, read[0], FIELDS))
    return values


@triton.jit
def store(at, stride, mask, values):
    """Write the fields of a row."""
    for i in tl.static_range(len(values)):
        tl.store(at + i * stride, values[i].to(at.dtype.element_ty), mask=mask)


@triton.jit
def choose(mask, a, b):
    """Fields of a inside the mask, else of b."""
    values = ()
    for i in tl.static_range(len(a)):
        values += (tl.where(mask, a[i], b[i]),)
    return values


@triton.jit
def add(a, b):
    """Sum of fields; b may have only the first ones."""
    values = ()
    for i in tl.static_range(len(a)):
        values += (a[i] + b[i] if i < len(b) else a[i],)
    return values


@triton.jit
def constants(value: tl.constexpr, like, FIELDS: tl.constexpr):
    """A number in every field."""
    values = ()
    for _ in tl.static_range(FIELDS):
        values += (tl.full(like.shape, value, like.dtype),)
    return values


@triton.jit
def store_zeros(at, row, field, length, limit, begin, end, like, FIELDS: tl.constexpr):
    """Zeros from each lane's length to its limit, for steps from `begin`, at `at`, to `end`."""
    zeros = constants(0.0, like, FIELDS)
    for t in range(begin, end):
        store(at, field, (t >= length) & (t < limit), zeros)
        at += row


@triton.jit
def _inputs_ahead(
    at, row, field, t, length, M: tl.constexpr, REAL: tl.constexpr, PREFETCH: tl.constexpr
):
    ahead = ()
    for i in tl.static_range(PREFETCH):
        ahead += (load(at + i * row, field, t + i < length, M, REAL),)
    return ahead


@triton.jit
def march(
    STEP: tl.constexpr,
    state,
    params,
    inputs_at,
    input_row,
    input_field,
    states_at,
    state_row,
    state_field,
    length,
    stop,
    M: tl.constexpr,
    REAL: tl.constexpr,
    KEPT: tl.constexpr,
    PREFETCH: tl.constexpr,
    kept=None,
):
    """State after `length` steps of each lane, at most `stop`.

    KEPT fields are written at every step, or at the first `kept` steps of each lane.
    """
    written = length if kept is None else kept
    now = _inputs_ahead(inputs_at, input_row, input_field, 0, length, M, REAL, PREFETCH)
    for t in range(0, stop, PREFETCH):
        inputs_at += PREFETCH * input_row
        following = _inputs_ahead(
            inputs_at, input_row, input_field, t + PREFETCH, length, M, REAL, PREFETCH
        )
        for i in tl.static_range(PREFETCH):
            alive = t + i < length
            state = choose(alive, STEP(state, now[i], params), state)
            if KEPT > 0:
                store(states_at + i * state_row, state_field, t + i < written, state[:KEPT])
        states_at += PREFETCH * state_row
        now = following
    return state


@triton.jit
def history(
    inputs_at,
    input_row,
    input_field,
    states_at,
    g_states_at,
    state_row,
    state_field,
    initial_at,
    t,
    length,
    N: tl.constexpr,
    M: tl.constexpr,
    GIVEN: tl.constexpr,
    REAL: tl.constexpr,
    PREFETCH: tl.constexpr,
):
    """Old state, inputs and incoming gradient of step t and the steps before it.

    The pointers are at step t. The old state is also read if a lane ended just before a step, as
    the new state of its last step.
    """
    ahead = ()
    for i in tl.static_range(PREFETCH):
        # Compared lane by lane, even if the interpreter has a plain number for t.
        this = tl.zeros_like(length) + (t - i)
        read = (this >= 0) & (this < length)
        before = tl.where(this > 0, states_at - (i + 1) * state_row, initial_at)
        old = load(before, state_field, (this >= 0) & (this <= length) & (length > 0), N, REAL)
        inputs = load(inputs_at - i * input_row, input_field, read, M, REAL)
        incoming = load(g_states_at - i * GIVEN * state_field, state_field, read, GIVEN, REAL)
        ahead += ((old, inputs, incoming),)
    return ahead


@triton.jit
def march_back(
    VJP: tl.constexpr,
    g,
    params,
    inputs_at,
    g_inputs_at,
    input_row,
    input_field,
    states_at,
    g_states_at,
    state_row,
    state_field,
    initial_at,
    length,
    stop,
    N: tl.constexpr,
    M: tl.constexpr,
    P: tl.constexpr,
    GIVEN: tl.constexpr,
    REAL: tl.constexpr,
    OF_INPUTS: tl.constexpr,
    OF_PARAMS: tl.constexpr,
    PREFETCH: tl.constexpr,
):
    """Gradients of the state before the first step and, summed over time, of the parameters.

    The pointers start at step ``stop - 1``. Gradients of inputs are written if OF_INPUTS.
    """
    # If no lane has a step, `stop` is 0 and the pointer is before the array.
    new = load(states_at, state_field, (stop - 1 < length) & (length > 0), N, REAL)
    sums = constants(0.0, g[0], P)
    now = history(
        inputs_at, input_row, input_field, states_at, g_states_at, state_row, state_field,
        initial_at, stop - 1, length, N, M, GIVEN, REAL, PREFETCH,
    )  # fmt: skip
    for done in range(0, stop, PREFETCH):
        inputs_at -= PREFETCH * input_row
        states_at -= PREFETCH * state_row
        g_states_at -= PREFETCH * GIVEN * state_field
        t = stop - 1 - done
        following = history(
            inputs_at, input_row, input_field, states_at, g_states_at, state_row, state_field,
            initial_at, t - PREFETCH, length, N, M, GIVEN, REAL, PREFETCH,
        )  # fmt: skip
        for i in tl.static_range(PREFETCH):
            old, inputs, incoming = now[i]
            this = tl.zeros_like(length) + (t - i)
            alive = (this >= 0) & (this < length)
            total = choose(alive, add(g, incoming), constants(0.0, g[0], N))
            g_old, g_inputs, g_params = VJP(total, old, inputs, new, params)
            g = choose(alive, g_old, g)
            if OF_INPUTS:
                store(g_inputs_at - i * input_row, input_field, alive, g_inputs)
            if OF_PARAMS:
                sums = add(sums, g_params)
            new = old
        g_inputs_at -= PREFETCH * input_row
        now = following
    return g, sums
