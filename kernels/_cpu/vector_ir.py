"""Elementwise arithmetic on vectors of lanes as LLVM instructions, and their loads and stores.

tanh, sigmoid, exp and expm1 rest on one reduction: x = k ln 2 + r with
|r| <= (ln 2) / 2, the Taylor polynomial of expm1(r) (the first term left out is below
half a unit in the last place), and 2^k by writing k into the exponent. There are no calls
or branches, so all lanes run at once. NaN stays NaN; values overflow to infinity and
underflow to zero, through subnormal numbers unless these are flushed (see `compiler`).
Errors are below 1.1 units in the last place for exp, 2 for expm1, 2.6 for sigmoid and tanh.

log splits x = 2^k m with m around 1 and sums the series of 2 atanh(s), s = (m - 1) /
(m + 1); its error is below 1 unit in the last place. sin, cos and pow are calls of the C
library, lane by lane.
"""

import ctypes
import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tsrnn.kernels._graph import Op, Operand


@dataclass(frozen=True)
class Format:
    """A floating point format: names in LLVM and the constants of its exponential.

    At `exp_limit` exp(x) has overflowed and exp(-x) has underflowed to zero; at
    `sigmoid_limit` exp(x) is still finite, and its reciprocal subnormal.
    """

    name: str
    integer: str
    bytes: int
    bias: int
    mantissa: int
    degree: int  # of expm1: the next term is 1.5e-8 and 1.2e-17 of the first at |r| = (ln 2) / 2
    exp_limit: float
    sigmoid_limit: float
    # ln 2 in two parts, the first with enough trailing zeros for its product with k to be exact.
    ln2_high: float
    ln2_low: float
    log_terms: int  # of the series of the logarithm: the next is 2e-9 and 7e-19 of the first


FORMATS = {
    "float32": Format(
        "float", "i32", 4, 127, 23, 7, 104.0, 88.0, float.fromhex("0x1.62e4p-1"),
        1.4286068203094173e-06, 4,
    ),
    "float64": Format(
        "double", "i64", 8, 1023, 52, 13, 746.0, 709.0, float.fromhex("0x1.62e42feep-1"),
        1.9082149292705877e-10, 10,
    ),
}  # fmt: skip
TILE_BYTES = 64  # of a value of a tile of units: the widest vector register, a line of cache
LOG2_E = 1.4426950408889634
TANH_LIMIT = 30.0  # tanh(30) is 1 in both formats, and 2^87 of exp(60) a normal number
_LIFT = 64  # exponents by which the smallest subnormal number becomes a normal one

_BINARY = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
_COMPARE = {"gt": "ogt", "ge": "oge", "lt": "olt", "le": "ole", "eq": "oeq", "ne": "une"}
_INTRINSICS = {"sqrt": "sqrt", "abs": "fabs", "sin": "sin", "cos": "cos"}


class VectorCode:
    """Straight-line code on vectors of `lanes` values.

    A value is the name of an LLVM register or the text of a constant. `mask`, if set, limits
    loads and stores.
    """

    mask: str

    def __init__(self, fmt: Format, lanes: int, prefix: str) -> None:
        self.format = fmt
        self.lanes = lanes
        self.type = f"<{lanes} x {fmt.name}>"
        self.integer_type = f"<{lanes} x {fmt.integer}>"
        self.mask_type = f"<{lanes} x i1>"
        self.lines: list[str] = []
        self.mask = ""
        self._suffix = f"v{lanes}f{8 * fmt.bytes}"
        self._prefix = prefix
        self._factors: dict[str, tuple[str, str]] = {}  # of the products
        self._once: dict[str, str] = {}  # registers by instruction

    def emit(self, instruction: str) -> str:
        """Append an instruction and name its result."""
        name = f"%{self._prefix}{len(self.lines)}"
        self.lines.append(f"{name} = {instruction}")
        return name

    def once(self, instruction: str) -> str:
        """`emit` an instruction without side effects, or name its result if already emitted."""
        if instruction not in self._once:
            self._once[instruction] = self.emit(instruction)
        return self._once[instruction]

    def constant(self, value: float) -> str:
        """Write a number into every lane."""
        if self.format.name == "float":
            value = ctypes.c_float(value).value  # rounded; infinite where too large
        return self._splat(self.format.name, _literal(value))

    def _splat(self, kind: str, text: str) -> str:
        return f"splat ({kind} {text})"

    def _integer(self, value: int) -> str:
        return self._splat(self.format.integer, str(value))

    def comment(self, text: str) -> None:
        """Append a comment."""
        self.lines.append(f"; {text}")

    def load(self, address: str) -> str:
        """Load a vector, zero in masked lanes."""
        kind, align = self.type, self.format.bytes
        if not self.mask:
            return self.emit(f"load {kind}, ptr {address}, align {align}")
        return self.emit(
            f"call {kind} @llvm.masked.load.{self._suffix}.p0(ptr {address}, i32 {align}, "
            f"{self.mask_type} {self.mask}, {kind} zeroinitializer)"
        )

    def store(self, value: str, address: str) -> None:
        """Store a vector."""
        kind, align = self.type, self.format.bytes
        if not self.mask:
            self.lines.append(f"store {kind} {value}, ptr {address}, align {align}")
        else:
            self.lines.append(
                f"call void @llvm.masked.store.{self._suffix}.p0({kind} {value}, ptr {address}, "
                f"i32 {align}, {self.mask_type} {self.mask})"
            )

    def broadcast(self, address: str) -> str:
        """Load one number into every lane."""
        number = self.emit(f"load {self.format.name}, ptr {address}")
        return self.spread(self.format.name, number)

    def spread(self, kind: str, value: str) -> str:
        """Vector of copies of one value."""
        vector = f"<{self.lanes} x {kind}>"
        first = self.emit(f"insertelement {vector} poison, {kind} {value}, i64 0")
        lanes = f"<{self.lanes} x i32> zeroinitializer"
        return self.emit(f"shufflevector {vector} {first}, {vector} poison, {lanes}")

    def prefetch(self, address: str, write: bool) -> None:
        """Prefetch a cache line; without effect beyond the end of an array."""
        self.lines.append(
            f"call void @llvm.prefetch.p0(ptr {address}, i32 {int(write)}, i32 3, i32 1)"
        )

    def declarations(self, masked: bool) -> set[str]:
        """Declare the intrinsics used on such vectors."""
        kind, mask, suffix = self.type, self.mask_type, self._suffix
        lines = {
            "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)",
            f"declare {kind} @llvm.pow.{suffix}({kind}, {kind})",
            f"declare {kind} @llvm.fmuladd.{suffix}({kind}, {kind}, {kind})",
        }
        for name in ("sqrt", "fabs", "log", "sin", "cos"):
            lines.add(f"declare {kind} @llvm.{name}.{suffix}({kind})")
        if masked:
            lines.add(f"declare {kind} @llvm.masked.load.{suffix}.p0(ptr, i32, {mask}, {kind})")
            lines.add(f"declare void @llvm.masked.store.{suffix}.p0({kind}, ptr, i32, {mask})")
        return lines

    def binary(self, name: str, a: str, b: str) -> str:
        """``add``, ``sub``, ``mul`` or ``div``; a sum with a product is fused."""
        # The product to fuse is fixed here: LLVM would choose by the width of vectors, so that the
        # bits of a unit would depend on its tile.
        if name in ("add", "sub") and (fused := self._fused(name, a, b)):
            return fused
        result = self.emit(f"{_BINARY[name]} {self.type} {a}, {b}")
        if name == "mul":
            self._factors[result] = (a, b)
        return result

    def _fused(self, name: str, a: str, b: str) -> str | None:
        """Sum or difference as a multiply-add; None where neither side is a product.

        Of two products the later one is fused, as it comes after the other anyway. Without the
        instruction, processors multiply and add, in vectors of every width.
        """
        products = [x for x in (a, b) if x in self._factors]
        if not products:
            return None
        product = max(products, key=lambda x: int(x.removeprefix(f"%{self._prefix}")))
        x, y = self._factors[product]
        rest = b if product == a else a
        if name == "sub" and product == a:
            rest = self.neg(rest)
        elif name == "sub":
            x = self.neg(x)
        return self.intrinsic("fmuladd", x, y, rest)

    def compare(self, name: str, a: str, b: str) -> str:
        """``gt``, ``ge``, ``lt``, ``le`` or ``eq``, false for NaN; or ``ne``."""
        return self.emit(f"fcmp {_COMPARE[name]} {self.type} {a}, {b}")

    def where(self, mask: str, a: str, b: str) -> str:
        """`a` in the lanes of `mask`, else `b`."""
        return self.emit(f"select {self.mask_type} {mask}, {self.type} {a}, {self.type} {b}")

    def intrinsic(self, name: str, *args: str) -> str:
        """Call an LLVM intrinsic by name."""
        typed = ", ".join(f"{self.type} {a}" for a in args)
        return self.emit(f"call {self.type} @llvm.{name}.{self._suffix}({typed})")

    def clamp(self, x: str, limit: float) -> str:
        """Clamp `x` to [-limit, limit]; NaN stays."""
        high, low = self.constant(limit), self.constant(-limit)
        x = self.where(self.compare("gt", x, high), high, x)
        return self.where(self.compare("lt", x, low), low, x)

    def _reduce(self, x: str) -> tuple[str, str]:
        """Split x = k ln 2 + r: k, an integer in the low bits of a float, and expm1(r)."""
        fmt = self.format
        rounder = self.constant(1.5 * 2.0**fmt.mantissa)  # adding it rounds to an integer
        shifted = self.binary("add", self.binary("mul", x, self.constant(LOG2_E)), rounder)
        k = self.binary("sub", shifted, rounder)
        r = self.binary("sub", x, self.binary("mul", k, self.constant(fmt.ln2_high)))
        r = self.binary("sub", r, self.binary("mul", k, self.constant(fmt.ln2_low)))
        rest = self._polynomial(r, [1 / math.factorial(j) for j in range(2, fmt.degree + 1)])
        return shifted, self.binary("add", r, self.binary("mul", self.square(r), rest))

    def _bits(self, x: str) -> str:
        """The bits of a float as an integer."""
        return self.emit(f"bitcast {self.type} {x} to {self.integer_type}")

    def _floats(self, bits: str) -> str:
        """The float of some bits."""
        return self.emit(f"bitcast {self.integer_type} {bits} to {self.type}")

    def _bits_of(self, value: float) -> int:
        """The bits of a number."""
        packed = struct.pack("<f" if self.format.bytes == 4 else "<d", value)
        return int.from_bytes(packed, "little")

    def _integers(self, op: str, a: str, b: str) -> str:
        return self.emit(f"{op} {self.integer_type} {a}, {b}")

    def _power_of_two(self, k: str, more: int = 0) -> str:
        """2^(k + more) for an integer k; the result must be a normal number."""
        fmt = self.format
        biased = self._integers("add", k, self._integer(fmt.bias + more))
        exponent = self._integers("shl", biased, self._integer(fmt.mantissa))
        return self._floats(exponent)

    def bounded_expm1(self, x: str) -> str:
        """exp(x) - 1 if 2^k is a normal number."""
        shifted, tail = self._reduce(x)
        power = self._power_of_two(self._bits(shifted))
        less_one = self.binary("sub", power, self.constant(1.0))
        return self.binary("add", less_one, self.binary("mul", power, tail))

    def _halves(self, shifted: str) -> tuple[str, str]:
        """Integers k1 + k2 = k, each small enough for `_power_of_two`."""
        # The float is 1.5 2^mantissa + k: subtracting the bits of the first part leaves k.
        zero = self._integer(self._bits_of(1.5 * 2.0**self.format.mantissa))
        k = self._integers("sub", self._bits(shifted), zero)
        first = self._integers("ashr", k, self._integer(1))
        return first, self._integers("sub", k, first)

    def _exponential(self, x: str, minus_one: bool) -> str:
        """exp(x), or exp(x) - 1, as 2^k2 (2^k1 (1 + expm1(r)) [- 2^-k2])."""
        shifted, tail = self._reduce(self.clamp(x, self.format.exp_limit))
        first, second = self._halves(shifted)
        power = leading = self._power_of_two(first)
        if minus_one:
            opposite = self._integers("sub", self._integer(0), second)
            leading = self.binary("sub", power, self._power_of_two(opposite))
        mantissa = self.binary("add", leading, self.binary("mul", power, tail))
        return self.binary("mul", mantissa, self._power_of_two(second))

    def expm1(self, x: str) -> str:
        """exp(x) - 1."""
        return self._exponential(x, minus_one=True)

    def exp(self, x: str) -> str:
        """exp(x)."""
        return self._exponential(x, minus_one=False)

    def _polynomial(self, x: str, coefficients: Sequence[float]) -> str:
        """Evaluate by Horner's rule, lowest coefficient first."""
        *rest, value = map(self.constant, coefficients)
        for coefficient in reversed(rest):
            value = self.binary("add", self.binary("mul", value, x), coefficient)
        return value

    def tanh(self, x: str) -> str:
        """tanh(x) = e / (e + 2) with e = expm1(2 x)."""
        x = self.clamp(x, TANH_LIMIT)
        e = self.bounded_expm1(self.binary("add", x, x))
        return self.binary("div", e, self.binary("add", e, self.constant(2.0)))

    def sigmoid(self, x: str) -> str:
        """1 / (1 + exp(-x)); beyond the limit it is 1, or subnormal."""
        shifted, tail = self._reduce(self.clamp(self.neg(x), self.format.sigmoid_limit))
        power = self._power_of_two(self._bits(shifted))
        e = self.binary("add", power, self.binary("mul", power, tail))
        return self.reciprocal(self.binary("add", e, self.constant(1.0)))

    def log(self, x: str) -> str:
        """log(x) = k ln 2 + log(1 + f) with x = 2^k (1 + f), 1 + f between 2^-1/2 and 2^1/2."""
        fmt, zero = self.format, self.constant(0.0)
        subnormal = self.compare("lt", x, self.constant(2.0 ** (1 - fmt.bias)))
        lifted = self.where(subnormal, self.binary("mul", x, self.constant(2.0**_LIFT)), x)
        k, mantissa = self._exponent(lifted)
        k = self.binary("add", k, self.where(subnormal, self.constant(-_LIFT), zero))
        f = self.binary("sub", mantissa, self.constant(1.0))
        correction = self.binary("mul", k, self.constant(fmt.ln2_low))
        small = self.binary("add", self._log1p_less(f), correction)
        value = self.binary("add", self.binary("mul", k, self.constant(fmt.ln2_high)), f)
        # The sum above may round: its error is added to the small terms.
        lost = self.binary("sub", value, self.binary("mul", k, self.constant(fmt.ln2_high)))
        small = self.binary("add", small, self.binary("sub", f, lost))
        value = self.binary("add", value, small)
        infinite = self.compare("eq", x, self.constant(math.inf))
        value = self.where(infinite, x, value)
        at_zero = self.compare("eq", x, zero)
        low = self.where(at_zero, self.constant(-math.inf), self.constant(math.nan))
        return self.where(self.compare("gt", x, zero), value, low)

    def _exponent(self, x: str) -> tuple[str, str]:
        """Split a normal x = 2^k m: k as a float, and m between 2^-1/2 and 2^1/2."""
        fmt = self.format
        shift = self._integer(fmt.mantissa)
        bits = self._bits(x)
        above = self._integers("sub", bits, self._integer(self._bits_of(math.sqrt(0.5))))
        k = self._integers("ashr", above, shift)
        mantissa = self._integers("sub", bits, self._integers("shl", k, shift))
        origin = 1.5 * 2.0**fmt.mantissa
        shifted = self._integers("add", k, self._integer(self._bits_of(origin)))
        return (
            self.binary("sub", self._floats(shifted), self.constant(origin)),
            self._floats(mantissa),
        )

    def _log1p_less(self, f: str) -> str:
        """log(1 + f) - f = -(f^2 / 2 - s (f^2 / 2 + r)), the series of log in s = f / (2 + f)."""
        s = self.binary("div", f, self.binary("add", f, self.constant(2.0)))
        z = self.square(s)
        terms = [2 / (2 * j + 1) for j in range(1, self.format.log_terms + 1)]
        r = self.binary("mul", z, self._polynomial(z, terms))
        half = self.binary("mul", self.constant(0.5), self.square(f))
        product = self.binary("mul", s, self.binary("add", half, r))
        return self.binary("sub", product, half)

    def neg(self, x: str) -> str:
        """-x."""
        return self.emit(f"fneg {self.type} {x}")

    def relu(self, x: str) -> str:
        """max(x, 0); NaN stays."""
        zero = self.constant(0.0)
        return self.where(self.compare("lt", x, zero), zero, x)

    def sign(self, x: str) -> str:
        """-1, 0 or 1."""
        zero = self.constant(0.0)
        positive = self.where(self.compare("gt", x, zero), self.constant(1.0), zero)
        return self.where(self.compare("lt", x, zero), self.constant(-1.0), positive)

    def reciprocal(self, x: str) -> str:
        """1 / x."""
        return self.binary("div", self.constant(1.0), x)

    def square(self, x: str) -> str:
        """Square x."""
        return self.binary("mul", x, x)

    def rsub(self, a: str, b: str) -> str:
        """Subtract a from b."""
        return self.binary("sub", b, a)

    def tanh_backward(self, g: str, y: str) -> str:
        """Gradient of tanh from y = tanh(x): g (1 - y^2)."""
        return self.binary("mul", g, self.binary("sub", self.constant(1.0), self.square(y)))

    def sigmoid_backward(self, g: str, y: str) -> str:
        """Gradient of the sigmoid from its value y: g y (1 - y)."""
        slope = self.binary("mul", y, self.binary("sub", self.constant(1.0), y))
        return self.binary("mul", g, slope)

    def threshold_backward(self, g: str, y: str, threshold: str) -> str:
        """Gradient of relu: 0 if y is at most the threshold, else g."""
        return self.where(self.compare("le", y, threshold), self.constant(0.0), g)

    def pow(self, x: str, exponent: str) -> str:
        """Raise x to a power."""
        return self.intrinsic("pow", x, exponent)


def _literal(value: float) -> str:
    """A number in LLVM's syntax: decimal, with a point."""
    if not math.isfinite(value):
        bits = struct.unpack("<Q", struct.pack("<d", value))[0]
        return f"0x{bits:016X}"
    digits, e, exponent = repr(value).partition("e")
    return digits + ".0" * ("." not in digits) + e + exponent


def emit_op(code: VectorCode, op: Op, values: dict[str, str]) -> str:
    """Emit one traced operation; `values` maps names of the trace to registers."""
    args = [operand(code, a, values) for a in op.args]
    if op.name == "pow" and op.args[1] in (1.0, 2.0):
        return args[0] if op.args[1] == 1.0 else code.square(args[0])
    if op.name in _BINARY:
        return code.binary(op.name, *args)
    if op.name in _COMPARE:
        return code.compare(op.name, *args)
    if op.name in _INTRINSICS:
        return code.intrinsic(_INTRINSICS[op.name], *args)
    return getattr(code, "sign" if op.name == "sgn" else op.name)(*args)


def operand(code: VectorCode, value: Operand, values: Mapping[str, str]) -> str:
    """Register or constant of an operand of the trace."""
    return values[value] if isinstance(value, str) else code.constant(value)
