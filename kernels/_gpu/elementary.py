"""Elementary functions for emitted Triton code, accurate to a few roundings.

The hardware's base-2 exponential is accurate to 2^-22. In float32 the others use it after a
reduction x = k ln 2 + r, so that the error does not grow with x; the hardware's tanh, accurate to
2^-11, is not used. NaN stays NaN and infinities saturate; some subnormal numbers become zero.
"""

import triton
import triton.language as tl

__all__ = ["constant", "exp", "expm1", "power", "relu", "sigmoid", "sign", "sqrt", "tanh"]

LOG2_E = tl.constexpr(1.4426950408889634)
# ln 2 in two parts, the first with enough trailing zeros for its product with k to be exact.
LN2_HIGH = tl.constexpr(0.69314575)
LN2_LOW = tl.constexpr(1.4286068203094173e-06)
ROUNDER = tl.constexpr(12582912.0)  # 1.5 * 2^23: adding it rounds to an integer
NEAR_ZERO = tl.constexpr(0.5)  # beyond it exp(x) - 1 cancels less than two bits


@triton.jit
def constant(value: tl.constexpr, like):
    """A number in every lane."""
    return tl.full(like.shape, value, like.dtype)


@triton.jit
def _reduced(x):
    """Integer k and exp(r) of x = k ln 2 + r, for finite float32 x."""
    k = (x * LOG2_E + ROUNDER) - ROUNDER
    r = (x - k * LN2_HIGH) - k * LN2_LOW
    return k, tl.exp2(r * LOG2_E)


@triton.jit
def exp(x):
    """Exponential; overflows to infinity, underflows through subnormal numbers to zero."""
    if x.dtype == tl.float64:
        result = tl.exp(x)
    else:
        # Beyond these, exp(x) is infinite and exp(-x) below half the smallest subnormal number.
        x = tl.where(x > 104.0, 104.0, tl.where(x < -104.0, -104.0, x))
        k, mantissa = _reduced(x)
        half = tl.floor(0.5 * k)  # in two factors, since 2^k may overflow when exp(x) does not
        result = mantissa * tl.exp2(half) * tl.exp2(k - half)
    return result


@triton.jit
def _decay(x):
    """exp(-|x|), zero below 2e-38."""
    x = -tl.abs(x)
    if x.dtype == tl.float64:
        result = tl.exp(x)
    else:
        # The last bits of the rounded sum are k, which is added to the exponent.
        rounded = x * LOG2_E + ROUNDER
        k = rounded - ROUNDER
        r = (x - k * LN2_HIGH) - k * LN2_LOW
        bits = tl.exp2(r * LOG2_E).to(tl.int32, bitcast=True)
        bits += rounded.to(tl.int32, bitcast=True) << 23
        # Compared so that NaN stays.
        result = tl.where(x < -86.9, 0.0, bits.to(tl.float32, bitcast=True))
        result = tl.where(x == x, result, x)
    return result


@triton.jit
def expm1(x):
    """exp(x) - 1, near zero by the nested Taylor series."""
    # The next term is 5e-17 and 1e-8 of the first at |x| = 0.5.
    terms: tl.constexpr = 14 if x.dtype == tl.float64 else 8
    series = constant(1.0, x)
    for j in tl.static_range(terms - 1):
        series = 1.0 + series * x * (1.0 / (terms - j))
    return tl.where(tl.abs(x) < NEAR_ZERO, x * series, exp(x) - 1.0)


@triton.jit
def tanh(x):
    """Hyperbolic tangent: an odd polynomial near zero, else 1 - 2 / (exp(2 |x|) + 1)."""
    size = tl.abs(x)
    if x.dtype == tl.float64:
        e = expm1(2.0 * tl.where(size > 30.0, 30.0, size))  # tanh(30) is 1
        result = tl.where(x < 0, -1.0, 1.0) * (e / (e + 2.0))
    else:
        far = 1.0 - 2.0 / (tl.exp2(size * (2.0 * LOG2_E)) + 1.0)
        s = x * x
        tail = 0.133152977 + s * (-0.0523025580 + s * 0.0157394409)
        near = x + x * (s * (-0.333327681 + s * tail))
        # Where they meet, both are within 4.5 half units in the last place.
        result = tl.where(size < 0.55, near, tl.where(x < 0, -far, far))
    return result


@triton.jit
def sigmoid(x):
    """1 / (1 + e) for x >= 0 and e / (1 + e) below, with e = exp(-|x|)."""
    e = _decay(x)
    return tl.where(x < 0, e, 1.0) / (1.0 + e)


@triton.jit
def relu(x):
    """max(x, 0); NaN stays."""
    return tl.where(x < 0, 0.0, x)


@triton.jit
def sign(x):
    """-1, 0 or 1; 0 for NaN."""
    return tl.where(x > 0, 1.0, tl.where(x < 0, -1.0, constant(0.0, x)))


@triton.jit
def sqrt(x):
    """Square root."""
    return tl.sqrt(x) if x.dtype == tl.float64 else tl.sqrt_rn(x)


@triton.jit
def power(x, y):
    """Raise x to y, a negative x to integers only.

    Computed in double precision; the error grows with the logarithm of the result.
    """
    a, b = x.to(tl.float64), y.to(tl.float64)
    size = tl.exp2(b * tl.log2(tl.abs(a)))
    negative = a < 0
    whole = tl.floor(b) == b
    odd = whole & (tl.floor(0.5 * b) != 0.5 * b)
    size = tl.where(negative & odd, -size, size)
    size = tl.where(negative & (a - a == 0) & (whole == 0), float("nan"), size)
    return tl.where((b == 0) | (a == 1), 1.0, size).to(x.dtype)
