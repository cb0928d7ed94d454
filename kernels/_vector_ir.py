"""Elementwise arithmetic on vectors of lanes as LLVM instructions.

tanh, sigmoid and exp rest on one expm1: x = k ln 2 + r with |r| <= (ln 2) / 2, the
Taylor polynomial of expm1(r) (the first term left out is below half a unit in the
last place), and 2^k by writing k into the exponent. No call and no branch, so all
lanes run at once; NaN stays NaN.
"""

import struct
from dataclasses import dataclass
from math import factorial

from tsrnn.kernels._trace import Op, Operand


@dataclass(frozen=True)
class Format:
    """A floating point format: names in LLVM and the constants of its expm1."""

    name: str
    integer: str
    bytes: int
    bias: int
    mantissa: int
    degree: int
    exp_limit: float
    # ln 2 in two parts, the first with so many trailing zeros that k times it is exact.
    ln2_high: float
    ln2_low: float


FORMATS = {
    "float32": Format(
        "float", "i32", 4, 127, 23, 7, 88.0, float.fromhex("0x1.62e4p-1"), 1.4286068203094173e-06
    ),
    "float64": Format(
        "double", "i64", 8, 1023, 52, 13, 709.0, float.fromhex("0x1.62e42feep-1"),
        1.9082149292705877e-10,
    ),
}  # fmt: skip
LOG2_E = 1.4426950408889634
TANH_LIMIT = 30.0  # tanh(30) is 1 in both formats

_BINARY = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
_COMPARE = {"gt": "ogt", "ge": "oge", "lt": "olt", "le": "ole"}
_INTRINSICS = {"sqrt": "sqrt", "abs": "fabs", "log": "log", "sin": "sin", "cos": "cos"}


class VectorCode:
    """Instructions of one straight stretch of code on vectors of `lanes` values.

    A value is the name of an LLVM register or the text of a constant.
    """

    def __init__(self, fmt: Format, lanes: int, prefix: str) -> None:
        self.format = fmt
        self.lanes = lanes
        self.type = f"<{lanes} x {fmt.name}>"
        self.integer_type = f"<{lanes} x {fmt.integer}>"
        self.mask_type = f"<{lanes} x i1>"
        self.lines: list[str] = []
        self._prefix = prefix

    def emit(self, instruction: str) -> str:
        """Append an instruction and name its result."""
        name = f"%{self._prefix}{len(self.lines)}"
        self.lines.append(f"{name} = {instruction}")
        return name

    def constant(self, value: float) -> str:
        """A number in every lane."""
        if self.format.name == "float":
            value = struct.unpack("f", struct.pack("f", value))[0]
        bits = struct.unpack("<Q", struct.pack("<d", value))[0]
        return self._splat(self.format.name, f"0x{bits:016X}")

    def _splat(self, kind: str, text: str) -> str:
        return "<" + ", ".join([f"{kind} {text}"] * self.lanes) + ">"

    def _integer(self, value: int) -> str:
        return self._splat(self.format.integer, str(value))

    def binary(self, name: str, a: str, b: str) -> str:
        """``add``, ``sub``, ``mul`` or ``div``; a product may fuse with a sum."""
        return self.emit(f"{_BINARY[name]} contract {self.type} {a}, {b}")

    def compare(self, name: str, a: str, b: str) -> str:
        """``gt``, ``ge``, ``lt`` or ``le``, false where a side is NaN."""
        return self.emit(f"fcmp {_COMPARE[name]} {self.type} {a}, {b}")

    def where(self, mask: str, a: str, b: str) -> str:
        """`a` in the lanes of `mask`, else `b`."""
        return self.emit(f"select {self.mask_type} {mask}, {self.type} {a}, {self.type} {b}")

    def intrinsic(self, name: str, *args: str) -> str:
        """A function that LLVM knows by name."""
        typed = ", ".join(f"{self.type} {a}" for a in args)
        suffix = f"v{self.lanes}f{8 * self.format.bytes}"
        return self.emit(f"call {self.type} @llvm.{name}.{suffix}({typed})")

    def clamp(self, x: str, limit: float) -> str:
        """`x` held in [-limit, limit]; NaN passes."""
        high, low = self.constant(limit), self.constant(-limit)
        x = self.where(self.compare("gt", x, high), high, x)
        return self.where(self.compare("lt", x, low), low, x)

    def bounded_expm1(self, x: str) -> str:
        """exp(x) - 1 for |x| within the format's limit."""
        fmt = self.format
        rounder = self.constant(1.5 * 2.0**fmt.mantissa)  # adding it rounds to an integer
        shifted = self.binary("add", self.binary("mul", x, self.constant(LOG2_E)), rounder)
        k = self.binary("sub", shifted, rounder)
        r = self.binary("sub", x, self.binary("mul", k, self.constant(fmt.ln2_high)))
        r = self.binary("sub", r, self.binary("mul", k, self.constant(fmt.ln2_low)))
        poly = self.constant(1 / factorial(fmt.degree))
        for j in range(fmt.degree - 1, 0, -1):
            poly = self.binary("mul", poly, r)
            poly = self.binary("add", poly, self.constant(1 / factorial(j)))
        power = self._power_of_two(shifted)
        tail = self.binary("mul", power, self.binary("mul", poly, r))
        return self.binary("add", self.binary("sub", power, self.constant(1.0)), tail)

    def _power_of_two(self, shifted: str) -> str:
        """2^k, where the low bits of `shifted` hold the integer k."""
        fmt, kind = self.format, self.integer_type
        bits = self.emit(f"bitcast {self.type} {shifted} to {kind}")
        biased = self.emit(f"add {kind} {bits}, {self._integer(fmt.bias)}")
        exponent = self.emit(f"shl {kind} {biased}, {self._integer(fmt.mantissa)}")
        return self.emit(f"bitcast {kind} {exponent} to {self.type}")

    def expm1(self, x: str) -> str:
        """exp(x) - 1, infinite where it overflows."""
        limit = self.format.exp_limit
        inside = self.bounded_expm1(self.clamp(x, limit))
        over = self.compare("gt", x, self.constant(limit))
        return self.where(over, self.constant(float("inf")), inside)

    def exp(self, x: str) -> str:
        """exp(x)."""
        return self.binary("add", self.expm1(x), self.constant(1.0))

    def tanh(self, x: str) -> str:
        """tanh(x) = e / (e + 2) with e = expm1(2 x)."""
        x = self.clamp(x, TANH_LIMIT)
        e = self.bounded_expm1(self.binary("add", x, x))
        return self.binary("div", e, self.binary("add", e, self.constant(2.0)))

    def sigmoid(self, x: str) -> str:
        """1 / (1 + exp(-x))."""
        one = self.constant(1.0)
        return self.binary("div", one, self.binary("add", one, self.exp(self.neg(x))))

    def neg(self, x: str) -> str:
        """-x."""
        return self.emit(f"fneg {self.type} {x}")

    def relu(self, x: str) -> str:
        """max(x, 0); NaN passes."""
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
        """x ** 2."""
        return self.binary("mul", x, x)

    def rsub(self, a: str, b: str) -> str:
        """B - a."""
        return self.binary("sub", b, a)

    def tanh_backward(self, g: str, y: str) -> str:
        """g (1 - y^2)."""
        return self.binary("mul", g, self.binary("sub", self.constant(1.0), self.square(y)))

    def sigmoid_backward(self, g: str, y: str) -> str:
        """g y (1 - y)."""
        slope = self.binary("mul", y, self.binary("sub", self.constant(1.0), y))
        return self.binary("mul", g, slope)

    def threshold_backward(self, g: str, y: str, threshold: str) -> str:
        """G where y exceeds the threshold, else 0."""
        return self.where(self.compare("gt", y, threshold), g, self.constant(0.0))

    def pow(self, x: str, exponent: str) -> str:
        """x ** exponent."""
        return self.intrinsic("pow", x, exponent)


METHODS = (
    "expm1 exp tanh sigmoid neg relu sign reciprocal square rsub pow where "
    "tanh_backward sigmoid_backward threshold_backward"
).split()
OPERATIONS = frozenset([*_BINARY, *_COMPARE, *_INTRINSICS, "sgn", *METHODS])


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


def operand(code: VectorCode, value: Operand, values: dict[str, str]) -> str:
    """Register or constant of an operand of the trace."""
    return values[value] if isinstance(value, str) else code.constant(value)
