"""Triton kernels in time order: a lane, one unit of one sequence, keeps its state in registers."""

import triton
import triton.language as tl

from tsrnn.kernels._gpu.steps import (
    load,
    march,
    march_back,
    store,
    store_zeros,
)

# One compilation serves all sizes and alignments. No argument may be called `params`: Triton's
# launcher has a variable of that name.
_SIZES = ["T", "K", "lanes"]
_FORWARD = ["inputs", "parameters", "initial", "lengths", "states", "final"]
_BACKWARD = [
    "inputs", "parameters", "initial", "lengths", "states", "g_states", "g_final", "g_inputs",
    "g_params", "g_initial",
]  # fmt: skip


@triton.jit
def _lanes(lengths, T, K, lanes, BLOCK: tl.constexpr):
    """Sequence and unit of each lane, its length, where lanes exist, the shortest and longest."""
    lane = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = lane < lanes
    b = lane // K
    length = tl.load(lengths + b, mask=inside, other=0).to(tl.int32)
    shortest = tl.min(tl.where(inside, length, T), 0)
    return b, lane - b * K, length, inside, shortest, tl.max(length, 0)


@triton.jit(do_not_specialize=_SIZES, do_not_specialize_on_alignment=_FORWARD)
def forward(
    inputs,
    parameters,
    initial,
    lengths,
    states,
    final,
    T,
    K,
    lanes,
    STEP: tl.constexpr,
    N: tl.constexpr,
    M: tl.constexpr,
    P: tl.constexpr,
    SHARED: tl.constexpr,
    REAL: tl.constexpr,
    KEEP: tl.constexpr,
    BLOCK: tl.constexpr,
    PREFETCH: tl.constexpr,
):
    """States and final state: (B, T, m, K), (p, K), (B, n, K), (B,) to (B, T, n, K), (B, n, K)."""
    b, k, length, inside, shortest, longest = _lanes(lengths, T, K, lanes, BLOCK)
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
        M, REAL, KEEP, PREFETCH,
    )  # fmt: skip
    store(final + b * (N * K) + k, K, inside, h)
    if KEEP:
        states_at += shortest.to(tl.int64) * (N * K)
        store_zeros(states_at, N * K, K, length, shortest, T, inside, h[0], N)


@triton.jit(do_not_specialize=_SIZES, do_not_specialize_on_alignment=_BACKWARD)
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
    K,
    lanes,
    VJP: tl.constexpr,
    N: tl.constexpr,
    M: tl.constexpr,
    P: tl.constexpr,
    SHARED: tl.constexpr,
    REAL: tl.constexpr,
    ONLY_INITIAL: tl.constexpr,
    BLOCK: tl.constexpr,
    PREFETCH: tl.constexpr,
):
    """Gradients of inputs, of params for each sequence (B, p, K), and of the initial state."""
    b, k, length, inside, shortest, longest = _lanes(lengths, T, K, lanes, BLOCK)
    w = load(parameters + k, K, inside, P, REAL)
    g = load(g_final + b * (N * K) + k, K, inside, N, REAL)
    input_row = M if SHARED else M * K
    input_field = 1 if SHARED else K
    last = (longest - 1).to(tl.int64)
    input_at = b * T * input_row + last * input_row
    if not SHARED:
        input_at += k
    row_at = b * T * (N * K) + k + last * (N * K)
    g, sums = march_back(
        VJP, g, w, inputs + input_at, g_inputs + input_at, input_row, input_field,
        states + row_at, g_states + row_at, N * K, K, initial + b * (N * K) + k, length, longest,
        N, M, P, REAL, not SHARED and not ONLY_INITIAL, not ONLY_INITIAL, PREFETCH,
    )  # fmt: skip
    store(g_initial + b * (N * K) + k, K, inside, g)
    if not ONLY_INITIAL:
        store(g_params + b * (P * K) + k, K, inside, sums)
    if not SHARED and not ONLY_INITIAL:
        at = g_inputs + b * T * (M * K) + k + shortest.to(tl.int64) * (M * K)
        store_zeros(at, M * K, K, length, shortest, T, inside, g[0], M)
