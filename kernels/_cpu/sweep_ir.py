"""A tile's pass over the steps of a sequence, as blocks of LLVM code."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from tsrnn.kernels._cpu.tile_ir import Tile
from tsrnn.kernels._cpu.vector_ir import VectorCode


@dataclass
class Sweep:
    """One tile's pass over the steps of a sequence, in four stretches of code.

    `carried` lists the registers that a step takes over from the one before: their
    name, their value before the first step, their value after a step.
    """

    begin: VectorCode
    step: VectorCode
    end: VectorCode
    pad: VectorCode  # runs on the steps after the sequence's end
    carried: list[tuple[str, str, str]] = field(default_factory=list)

    @classmethod
    def of(cls, tile: Tile) -> "Sweep":
        """Begin the pass of a tile."""
        return cls(tile.code("begin"), tile.code("step"), tile.code("end"), tile.code("pad"))

    def carry(self, names: Sequence[str], first: Sequence[str], following: Sequence[str]) -> None:
        """Keep registers from step to step."""
        self.carried += zip(names, first, following, strict=True)

    def blocks(self, name: str) -> str:
        """Write the basic blocks; ``%{name}.i`` counts steps, ``%{name}.padded`` padded ones."""
        phis = [
            f"{register} = phi {self.begin.type} [ {first}, %{name}.begin ], "
            f"[ {following}, %{name}.step ]"
            for register, first, following in self.carried
        ]
        return (
            block(f"{name}.begin", [*self.begin.lines, f"br label %{name}.test"])
            + _loop(f"{name}.test", f"{name}.step", f"%{name}.i", ("0", f"{name}.begin"),
                    "%length", f"{name}.end", phis, self.step.lines)
            + block(f"{name}.end", [*self.end.lines, f"br label %{name}.pads"])
            + _loop(f"{name}.pads", f"{name}.pad", f"%{name}.padded", ("%length", f"{name}.end"),
                    "%T", f"{name}.done", [], self.pad.lines)
        )  # fmt: skip


def _loop(
    test: str,
    body: str,
    counter: str,
    start: tuple[str, str],
    stop: str,
    after: str,
    phis: Sequence[str],
    lines: Sequence[str],
) -> str:
    """Blocks that run `lines` for `counter` from `start` to `stop`.

    `start` is its first value and the block that control comes from.
    """
    first, before = start
    head = [
        f"{counter} = phi i64 [ {first}, %{before} ], [ {counter}.next, %{body} ]",
        *phis,
        f"{counter}.more = icmp slt i64 {counter}, {stop}",
        f"br i1 {counter}.more, label %{body}, label %{after}",
    ]
    tail = [f"{counter}.next = add i64 {counter}, 1", f"br label %{test}"]
    return block(test, head) + block(body, [*lines, *tail])


def block(label: str, lines: Sequence[str]) -> str:
    """Write a basic block."""
    return "\n".join([f"{label}:", *(f"  {line}" for line in lines)]) + "\n"
