"""Kalman filter of structural models as LLVM functions: models are lanes, effects a ring.

A state has d = 3 + m fields: level, slope, autoregression and m effects of a season. A row
observes the level, the autoregression and one effect. States and covariances of a tile of
models are in working memory, so that d is an argument and all season lengths share the code.
"""

from __future__ import annotations

from collections.abc import Iterator

from tsrnn.kernels._cpu.code import Function
from tsrnn.kernels._cpu.compiler import processor
from tsrnn.kernels._cpu.tile_ir import AHEAD
from tsrnn.kernels._cpu.vector_ir import FORMATS, TILE_BYTES

# Arrays: noise, damping, memory (J,), innovation (d, J), covariance (d, d, J), gain (tiles, R, d,
# TILE), variance, weight (R, J), values (L, T), error (L, T, J), state (., d, J). Integers: of each
# row (T,) the number of transitions before it, and the index of its effect; of each value (L, T)
# the index of the state kept after it, or a negative number.
POINTERS = {
    "gains": ("noise", "damping", "memory", "innovation", "moves", "effects", "covariance",
              "gain", "variance"),
    "errors": ("values", "damping", "memory", "moves", "effects", "gain", "weight", "kept",
               "state", "error"),
}  # fmt: skip
SIZES = ("R", "T", "d", "J", "b0", "b1", "k0", "k1")  # for series b0 to b1 and models k0 to k1
TILE = TILE_BYTES // FORMATS["float64"].bytes  # models in a vector
LEVEL, SLOPE, CYCLE, EFFECTS = range(4)  # places in a state, the effects last


def kalman_ir() -> str:
    """LLVM source of ``gains`` and ``errors`` in float64; arguments are `POINTERS`, `SIZES`."""
    functions = _gains(), _errors()
    declarations = sorted(functions[0].declarations(masked=True))
    return "".join(f.text() for f in functions) + "\n".join([*declarations, ""])


class _Models(Function):
    """A function whose lanes are models, one tile at a time, with values in working memory."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind, FORMATS["float64"], TILE, POINTERS[kind], SIZES)
        self.k = self.damping = self.memory = ""  # first model of the tile, and coefficients

    def tiles(self) -> Iterator[None]:
        """Loop over the tiles of models."""
        k = self.variable()
        self.set(k, "%k0")
        with self.loop(lambda: self.emit(f"icmp slt i64 {self.get(k)}, %k1")):
            self.k = self.get(k)
            self.mask = self.first_lanes(self.integer("sub", "%k1", self.k))
            self.damping = self.load(self.at("%damping", self.k))
            self.memory = self.load(self.at("%memory", self.k))
            yield
            self.set(k, self.integer("add", self.k, self.lanes))

    def row(self, base: str, *number: str | int) -> str:
        """Address of the tile in a row of an array (rows, J)."""
        return self.at(base, self.integer("mul", self.sum(*number), "%J"), self.k)

    def gain(self, t: str, i: str | int) -> str:
        """Address of the gains of field i in row t, contiguous over the models of a tile."""
        tile = self.integer("mul", self.integer("udiv", self.k, TILE), "%R")
        field = self.sum(self.integer("mul", self.sum(tile, t), "%d"), i)
        return self.at("%gain", field, kind=self.type)

    def room(self, count: str | int) -> str:
        """Working memory for vectors."""
        return self.emit(f"alloca {self.type}, i64 {count}, align 64")

    def read(self, room: str, *place: str | int) -> str:
        """Load a whole vector."""
        address, align = self.at(room, *place, 0, kind=self.type), self.format.bytes
        return self.emit(f"load {self.type}, ptr {address}, align {align}")

    def write(self, value: str, room: str, *place: str | int) -> None:
        """Store a whole vector."""
        address, align = self.at(room, *place, 0, kind=self.type), self.format.bytes
        self.do(f"store {self.type} {value}, ptr {address}, align {align}")

    def total(self, *terms: str) -> str:
        """Add vectors."""
        total = terms[0]
        for term in terms[1:]:
            total = self.binary("add", total, term)
        return total

    def from_effects(self) -> str:
        """Counter starting at the effects."""
        counter = self.variable()
        self.set(counter, EFFECTS)
        return counter

    def effect(self, t: str) -> str:
        """Index in the state of the effect observed in row t."""
        return self.integer("add", self.integer_at("%effects", t), EFFECTS)


def _errors() -> _Models:
    """Weighted prediction errors of series, given the gains, and selected states."""
    f = _Models("errors")
    # Errors of these series stay in registers; the gains of a row are read once for all.
    sizes = (8, 4, 2, 1) if processor().register_bytes == 64 else (4, 2, 1)
    states = f.room(f.integer("mul", "%d", sizes[0]))
    for _ in f.tiles():
        b = f.variable()
        f.set(b, "%b0")
        for size in sizes:
            with f.up_to("%b1", size, b) as first:
                _errors_of(f, states, [f.integer("add", first, i) for i in range(size)])
    return f


def _errors_of(f: _Models, states: str, series: list[str]) -> None:
    """Errors of series side by side, with their states in working memory."""
    rooms = [f.integer("mul", "%d", i) for i in range(len(series))]
    with f.up_to(f.integer("mul", "%d", len(series))) as i:
        f.write(f.constant(0.0), states, i)
    with f.up_to("%T") as t:
        with f.up_to(f.integer_at("%moves", t)):
            for room in rooms:
                slope = f.binary("mul", f.damping, f.read(states, room, SLOPE))
                f.write(f.total(f.read(states, room, LEVEL), slope), states, room, LEVEL)
                f.write(slope, states, room, SLOPE)
                cycle = f.binary("mul", f.memory, f.read(states, room, CYCLE))
                f.write(cycle, states, room, CYCLE)
        effect, weight = f.effect(t), f.load(f.row("%weight", t))
        values = [f.integer("add", f.integer("mul", b, "%T"), t) for b in series]
        errors = []
        for value, room in zip(values, rooms, strict=True):
            y = f.broadcast(f.at("%values", value))
            seen = f.total(*(f.read(states, room, i) for i in (LEVEL, CYCLE, effect)))
            # Rows after the end of a series are NaN and leave the state unchanged.
            known, error = f.compare("eq", y, y), f.binary("sub", y, seen)
            errors.append(f.where(known, error, f.constant(0.0)))
            address = f.row("%error", value)
            f.store(f.binary("mul", weight, errors[-1]), address)
            f.prefetch(f.at(address, f.integer("mul", "%J", AHEAD)), write=True)
        with f.up_to("%d") as i:
            gain = f.read(f.gain(t, i))
            for room, error in zip(rooms, errors, strict=True):
                change = f.binary("mul", gain, error)
                f.write(f.binary("add", f.read(states, room, i), change), states, room, i)
        for value, room in zip(values, rooms, strict=True):
            number = f.integer_at("%kept", value)
            with f.when(f.emit(f"icmp sge i64 {number}, 0")):
                place = f.integer("mul", number, "%d")
                with f.up_to("%d") as i:
                    f.store(f.read(states, room, i), f.row("%state", place, i))


def _gains() -> _Models:
    """Gains and prediction error variances of all rows, and the last covariances."""
    f = _Models("gains")
    covariance = f.room(f.integer("mul", "%d", "%d"))  # its lower triangle
    loading, gain = f.room("%d"), f.room("%d")

    def entry(i: str | int, j: str | int) -> str:
        return f.integer("add", f.integer("mul", "%d", i), j)

    for _ in f.tiles():
        with f.up_to("%d") as k, f.up_to(f.integer("add", k, 1)) as j:
            f.write(f.load(f.row("%covariance", entry(k, j))), covariance, entry(k, j))
        with f.up_to("%T") as t:
            with f.up_to(f.integer_at("%moves", t)):
                _carry(f, covariance)
            # Covariances of all fields with the observed sum.
            effect = f.effect(t)
            for i in (LEVEL, SLOPE, CYCLE):
                places = entry(i, LEVEL), entry(CYCLE, i), entry(effect, i)
                f.write(f.total(*(f.read(covariance, place) for place in places)), loading, i)
            with f.up_to("%d", counter=f.from_effects()) as k:
                below = f.emit(f"icmp sgt i64 {k}, {effect}")
                last = f.emit(f"select i1 {below}, i64 {k}, i64 {effect}")
                first = f.emit(f"select i1 {below}, i64 {effect}, i64 {k}")
                places = entry(k, LEVEL), entry(k, CYCLE), entry(last, first)
                f.write(f.total(*(f.read(covariance, place) for place in places)), loading, k)
            observed = (f.read(loading, place) for place in (LEVEL, CYCLE, effect))
            variance = f.total(*observed, f.load(f.at("%noise", f.k)))
            f.store(variance, f.row("%variance", t))
            with f.up_to("%d") as k:
                f.write(f.binary("div", f.read(loading, k), variance), gain, k)
                f.write(f.read(gain, k), f.gain(t, k))
            with f.up_to("%d") as k:
                factor, room = f.neg(f.read(gain, k)), entry(k, 0)
                with f.up_to(f.integer("add", k, 1)) as j:
                    change = f.binary("mul", factor, f.read(loading, j))
                    changed = f.binary("add", f.read(covariance, room, j), change)
                    f.write(changed, covariance, room, j)
        with f.up_to("%d") as k, f.up_to(f.integer("add", k, 1)) as j:
            value = f.read(covariance, entry(k, j))
            f.store(value, f.row("%covariance", entry(k, j)))
            f.store(value, f.row("%covariance", entry(j, k)))
    return f


def _carry(f: _Models, covariance: str) -> None:
    """Covariances A C A' + Q one row later; A moves level, slope and autoregression."""

    def read(i: int, j: int) -> str:
        return f.read(covariance, f.integer("mul", "%d", i), j)

    def write(value: str, i: int, j: int) -> None:
        f.write(value, covariance, f.integer("mul", "%d", i), j)

    def innovation(i: str | int) -> str:
        return f.load(f.row("%innovation", i))

    with f.up_to("%d", counter=f.from_effects()) as k:
        room = f.integer("mul", "%d", k)
        slope = f.binary("mul", f.damping, f.read(covariance, room, SLOPE))
        f.write(f.total(f.read(covariance, room, LEVEL), slope), covariance, room, LEVEL)
        f.write(slope, covariance, room, SLOPE)
        cycle = f.binary("mul", f.memory, f.read(covariance, room, CYCLE))
        f.write(cycle, covariance, room, CYCLE)
        f.write(f.total(f.read(covariance, room, k), innovation(k)), covariance, room, k)
    # Products of the moved fields: first A C, with the fields before the move.
    slopes = f.binary("mul", f.damping, read(SLOPE, SLOPE))
    level_slope = f.binary("mul", f.damping, f.total(read(SLOPE, LEVEL), slopes))
    level = f.total(read(LEVEL, LEVEL), f.binary("mul", f.damping, read(SLOPE, LEVEL)), level_slope)
    cycle_slope = f.binary("mul", f.damping, read(CYCLE, SLOPE))
    cycle_level = f.binary("mul", f.memory, f.total(read(CYCLE, LEVEL), cycle_slope))
    cycle = f.binary("mul", f.binary("mul", f.memory, f.memory), read(CYCLE, CYCLE))
    write(f.total(level, innovation(LEVEL)), LEVEL, LEVEL)
    write(level_slope, SLOPE, LEVEL)
    write(f.total(f.binary("mul", f.damping, slopes), innovation(SLOPE)), SLOPE, SLOPE)
    write(cycle_level, CYCLE, LEVEL)
    write(f.binary("mul", f.memory, cycle_slope), CYCLE, SLOPE)
    write(f.total(cycle, innovation(CYCLE)), CYCLE, CYCLE)
