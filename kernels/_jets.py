"""Forward derivatives of a graph of scalar operations, as a graph of scalar operations.

A `Jet` is a value with its nonzero first and second derivatives by some variables. Every rule below
is the chain rule for one operation of the language of graphs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from tsrnn.kernels._graph import COMPARISONS, Graph, Op, Operand

Pair = tuple[int, int]  # variables in ascending order


@dataclass(frozen=True)
class Jet:
    """A value, and its derivatives by numbered variables and by pairs of them: names or numbers."""

    value: Operand
    first: dict[int, Operand] = field(default_factory=dict)
    second: dict[Pair, Operand] = field(default_factory=dict)


class Builder:
    """Records each operation once, without trivial ones."""

    def __init__(self) -> None:
        self.ops: list[Op] = []
        self._results: dict[tuple[object, ...], str] = {}

    def op(self, name: str, *args: Operand) -> Operand:
        """Name of the result of an operation."""
        key = (name, *args)
        if key not in self._results:
            self.ops.append(Op(f"j{len(self.ops)}", name, args))
            self._results[key] = self.ops[-1].out
        return self._results[key]

    def add(self, a: Operand, b: Operand) -> Operand:
        if isinstance(a, float) and isinstance(b, float):
            return a + b
        if a == 0.0 or b == 0.0:
            return b if a == 0.0 else a
        return self.op("add", a, b)

    def sub(self, a: Operand, b: Operand) -> Operand:
        if isinstance(a, float) and isinstance(b, float):
            return a - b
        if b == 0.0:
            return a
        return self.neg(b) if a == 0.0 else self.op("sub", a, b)

    def mul(self, a: Operand, b: Operand) -> Operand:
        if isinstance(a, float) and isinstance(b, float):
            return a * b
        for factor, rest in ((a, b), (b, a)):
            if factor == 0.0:
                return 0.0
            if factor == 1.0:
                return rest
            if factor == -1.0:
                return self.neg(rest)
        return self.op("mul", a, b)

    def neg(self, a: Operand) -> Operand:
        return -a if isinstance(a, float) else self.op("neg", a)

    def total(self, terms: Iterable[Operand]) -> Operand:
        result: Operand = 0.0
        for term in terms:
            result = self.add(result, term)
        return result


# Slope and bend (first and second derivative) of z = f(x); None for a zero bend.
_UNARY: dict[str, Callable[[Builder, Operand, Operand], tuple[Operand, Operand | None]]] = {
    "neg": lambda b, x, z: (-1.0, None),
    "exp": lambda b, x, z: (z, z),
    "expm1": lambda b, x, z: (b.add(z, 1.0), b.add(z, 1.0)),
    "log": lambda b, x, z: (b.op("reciprocal", x), b.neg(b.op("square", b.op("reciprocal", x)))),
    "sqrt": lambda b, x, z: (b.op("div", 0.5, z), b.op("div", b.op("div", -0.25, z), x)),
    "square": lambda b, x, z: (b.mul(2.0, x), 2.0),
    "reciprocal": lambda b, x, z: (
        b.neg(b.op("square", z)),
        b.mul(2.0, b.mul(z, b.op("square", z))),
    ),
    "abs": lambda b, x, z: (b.op("sgn", x), None),
    "relu": lambda b, x, z: (b.op("where", b.op("gt", x, 0.0), 1.0, 0.0), None),
    "sgn": lambda b, x, z: (0.0, None),
    "sign": lambda b, x, z: (0.0, None),
    "sin": lambda b, x, z: (b.op("cos", x), b.neg(z)),
    "cos": lambda b, x, z: (b.neg(b.op("sin", x)), b.neg(z)),
    "tanh": lambda b, x, z: _slope_and_bend(b, b.sub(1.0, b.op("square", z)), b.mul(-2.0, z)),
    "sigmoid": lambda b, x, z: _slope_and_bend(
        b, b.mul(z, b.sub(1.0, z)), b.sub(1.0, b.mul(2.0, z))
    ),
}


def _slope_and_bend(b: Builder, slope: Operand, factor: Operand) -> tuple[Operand, Operand]:
    return slope, b.mul(slope, factor)


def jets(graph: Graph, known: Mapping[str, Jet], order: int) -> tuple[Builder, list[Jet]]:
    """Run a graph on jets, with derivatives up to `order` 0, 1 or 2.

    `known` has at least the names that the graph reads. Returns the builder that holds the recorded
    operations, and the outputs. A ValueError names an operation without a rule here.
    """
    b = Builder()
    values = dict(known)

    def jet_of(operand: Operand) -> Jet:
        return values[operand] if isinstance(operand, str) else Jet(operand)

    for op in graph.ops:
        values[op.out] = _apply(b, op, [jet_of(a) for a in op.args], order)
    return b, [jet_of(out) for out in graph.outputs]


def _apply(b: Builder, op: Op, args: list[Jet], order: int) -> Jet:
    if op.name in _UNARY:
        (x,) = args
        z = b.neg(x.value) if op.name == "neg" else b.op(op.name, x.value)
        return _chain(b, z, x, *_UNARY[op.name](b, x.value, z), order)
    if op.name in COMPARISONS:
        return Jet(b.op(op.name, *(x.value for x in args)))
    if op.name not in _BINARY:
        raise ValueError(f"no derivatives of second order are known for {op.name!r}")
    return _BINARY[op.name](b, *args, order)


def _chain(b: Builder, z: Operand, x: Jet, slope: Operand, bend: Operand | None, order: int) -> Jet:
    first = {i: b.mul(slope, dx) for i, dx in x.first.items()} if order > 0 else {}
    second: dict[Pair, Operand] = {}
    if order > 1:
        for i, j in _pairs(x, bend is not None):
            bent: Operand = 0.0
            if bend is not None and i in x.first and j in x.first:
                bent = b.mul(bend, b.mul(x.first[i], x.first[j]))
            second[i, j] = b.add(b.mul(slope, x.second.get((i, j), 0.0)), bent)
    return _nonzero(z, first, second)


def _pairs(x: Jet, products: bool) -> list[Pair]:
    """Pairs with a second derivative: those of x, and all pairs of its variables if bent."""
    pairs = set(x.second)
    if products:
        pairs |= {(i, j) for i in x.first for j in x.first if i <= j}
    return sorted(pairs)


def _nonzero(z: Operand, first: dict[int, Operand], second: dict[Pair, Operand]) -> Jet:
    return Jet(
        z,
        {i: value for i, value in first.items() if value != 0.0},
        {pair: value for pair, value in second.items() if value != 0.0},
    )


def _linear(combine: Callable[[Operand, Operand], Operand], x: Jet, y: Jet) -> Jet:
    z = combine(x.value, y.value)
    first = {
        i: combine(x.first.get(i, 0.0), y.first.get(i, 0.0))
        for i in sorted(x.first.keys() | y.first.keys())
    }
    second = {
        pair: combine(x.second.get(pair, 0.0), y.second.get(pair, 0.0))
        for pair in sorted(x.second.keys() | y.second.keys())
    }
    return _nonzero(z, first, second)


def _mul(b: Builder, x: Jet, y: Jet, order: int) -> Jet:
    first = {
        i: b.add(b.mul(x.first.get(i, 0.0), y.value), b.mul(x.value, y.first.get(i, 0.0)))
        for i in sorted(x.first.keys() | y.first.keys())
    }
    second = {}
    if order > 1:
        for i, j in _product_pairs(x, y):
            second[i, j] = b.total([
                b.mul(x.second.get((i, j), 0.0), y.value),
                _crossed(b, x, y, i, j),
                b.mul(x.value, y.second.get((i, j), 0.0)),
            ])  # fmt: skip
    return _nonzero(b.mul(x.value, y.value), first, second)


def _product_pairs(x: Jet, y: Jet) -> list[Pair]:
    crossed = {(min(i, j), max(i, j)) for i in x.first for j in y.first}
    return sorted(x.second.keys() | y.second.keys() | crossed)


def _crossed(b: Builder, x: Jet, y: Jet, i: int, j: int) -> Operand:
    """Second derivative from the products of first derivatives by both variables."""
    product = b.mul(x.first.get(i, 0.0), y.first.get(j, 0.0))
    if i == j:
        return b.mul(2.0, product)
    return b.add(product, b.mul(x.first.get(j, 0.0), y.first.get(i, 0.0)))


def _div(b: Builder, x: Jet, y: Jet, order: int) -> Jet:
    """Quotient z = x / y, from x = z y: z_i y = x_i - z y_i."""
    z = b.op("div", x.value, y.value)
    if not (x.first or y.first or x.second or y.second):
        return Jet(z)
    inverse = b.op("reciprocal", y.value)  # one division for all derivatives
    known = Jet(z)
    for i in sorted(x.first.keys() | y.first.keys()):
        rest = b.sub(x.first.get(i, 0.0), b.mul(z, y.first.get(i, 0.0)))
        known.first[i] = b.mul(inverse, rest)
    second = {}
    if order > 1:
        for i, j in sorted({*_product_pairs(known, y), *x.second}):
            rest = b.sub(x.second.get((i, j), 0.0), _crossed(b, known, y, i, j))
            rest = b.sub(rest, b.mul(z, y.second.get((i, j), 0.0)))
            second[i, j] = b.mul(inverse, rest)
    return _nonzero(z, known.first, second)


def _pow(b: Builder, x: Jet, y: Jet, order: int) -> Jet:
    if isinstance(y.value, str):
        raise ValueError("the exponent of a power must be a number; write exp(b * log(a))")
    n = y.value
    if n == 2.0:  # a product, as pow would call the C library, lane by lane
        return _chain(b, b.op("square", x.value), x, *_UNARY["square"](b, x.value, 0.0), order)
    z = b.op("pow", x.value, n)
    slope = b.mul(n, b.op("pow", x.value, n - 1))
    bend = b.mul(n * (n - 1), b.op("pow", x.value, n - 2))
    return _chain(b, z, x, slope, bend, order)


def _where(b: Builder, mask: Jet, x: Jet, y: Jet, order: int) -> Jet:
    def chosen(a: Operand, c: Operand) -> Operand:
        return a if a == c else b.op("where", mask.value, a, c)

    return _linear(chosen, x, y)


_BINARY: dict[str, Callable[..., Jet]] = {
    "add": lambda b, x, y, order: _linear(b.add, x, y),
    "sub": lambda b, x, y, order: _linear(b.sub, x, y),
    "rsub": lambda b, x, y, order: _linear(b.sub, y, x),
    "mul": _mul,
    "div": _div,
    "pow": _pow,
    "where": _where,
}
