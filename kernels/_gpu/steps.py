"""Triton functions that march over time, shared by the kernels: tuples of fields in registers.

Inputs of several steps are asked for before the block of steps before them is computed, since
their addresses do not depend on the recurrence. A step is dead where its lane's sequence has
ended: nothing is read or written there, and the state stays.
"""

import triton
import triton.language as tl


@triton.jit
def load(at, stride, mask, FIELDS: tl.constexpr, REAL: tl.constexpr):
    """Fields of a row; one, where log, sqrt and division are smooth, in masked lanes."""
    values = ()
    for i in tl.static_range(FIELDS):
        values += (tl.load(at + i * stride, mask=mask, other=1.0).to(REAL),)
    return values


@triton.jit
def store(at, stride, mask, values):
    """Write the fields of a row."""
    for i in tl.static_range(len(values)):
        tl.store(at + i * stride, values[i].to(at.dtype.element_ty), mask=mask)


@triton.jit
def choose(mask, a, b):
    """Fields of a where the mask holds, else of b."""
    values = ()
    for i in tl.static_range(len(a)):
        values += (tl.where(mask, a[i], b[i]),)
    return values


@triton.jit
def add(a, b):
    """Sum of fields."""
    values = ()
    for i in tl.static_range(len(a)):
        values += (a[i] + b[i],)
    return values


@triton.jit
def constants(value: tl.constexpr, like, FIELDS: tl.constexpr):
    """A number in every field."""
    values = ()
    for _ in tl.static_range(FIELDS):
        values += (tl.full(like.shape, value, like.dtype),)
    return values


@triton.jit
def store_zeros(at, row, field, length, begin, end, inside, like, FIELDS: tl.constexpr):
    """Zeros from step `begin`, where `at` points, to `end`, after each lane's length."""
    zeros = constants(0.0, like, FIELDS)
    for t in range(begin, end):
        store(at, field, inside & (t >= length), zeros)
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
    KEEP: tl.constexpr,
    PREFETCH: tl.constexpr,
):
    """State after `length` steps of each lane, at most `stop`; written at every one if KEEP."""
    now = _inputs_ahead(inputs_at, input_row, input_field, 0, length, M, REAL, PREFETCH)
    for t in range(0, stop, PREFETCH):
        inputs_at += PREFETCH * input_row
        following = _inputs_ahead(
            inputs_at, input_row, input_field, t + PREFETCH, length, M, REAL, PREFETCH
        )
        for i in tl.static_range(PREFETCH):
            alive = t + i < length
            state = choose(alive, STEP(state, now[i], params), state)
            if KEEP:
                store(states_at + i * state_row, state_field, alive, state)
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
    REAL: tl.constexpr,
    PREFETCH: tl.constexpr,
):
    """Old state, inputs and incoming gradient of step t and those before it.

    The pointers are at step t. Where a lane has ended just before a step, the old state is read
    all the same: it is the new state of its last step.
    """
    ahead = ()
    for i in tl.static_range(PREFETCH):
        # Compared lane by lane, also where the interpreter has a plain number for t.
        this = tl.zeros_like(length) + (t - i)
        read = (this >= 0) & (this < length)
        before = tl.where(this > 0, states_at - (i + 1) * state_row, initial_at)
        old = load(before, state_field, (this >= 0) & (this <= length) & (length > 0), N, REAL)
        inputs = load(inputs_at - i * input_row, input_field, read, M, REAL)
        incoming = load(g_states_at - i * state_row, state_field, read, N, REAL)
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
    REAL: tl.constexpr,
    OF_INPUTS: tl.constexpr,
    OF_PARAMS: tl.constexpr,
    PREFETCH: tl.constexpr,
):
    """Gradients of the state before the first step and, summed over time, of the parameters.

    The pointers are at step ``stop - 1``. Gradients of inputs are written if OF_INPUTS.
    """
    new = load(states_at, state_field, stop - 1 < length, N, REAL)
    sums = constants(0.0, g[0], P)
    now = history(
        inputs_at, input_row, input_field, states_at, g_states_at, state_row, state_field,
        initial_at, stop - 1, length, N, M, REAL, PREFETCH,
    )  # fmt: skip
    for done in range(0, stop, PREFETCH):
        inputs_at -= PREFETCH * input_row
        states_at -= PREFETCH * state_row
        g_states_at -= PREFETCH * state_row
        t = stop - 1 - done
        following = history(
            inputs_at, input_row, input_field, states_at, g_states_at, state_row, state_field,
            initial_at, t - PREFETCH, length, N, M, REAL, PREFETCH,
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
