"""What Triton's compiler makes of the kernels for a GPU: registers, spills, instructions a step.

No GPU is needed: launches stop at the compiler, and the disassembler that comes with Triton reads
the machine code. A step's instructions are those between the branch back of the longest loop and
its target, by the steps that the loop unrolls; loads and stores are those of the loop, by the bits
that a thread moves with one, and barriers those between its warps. A kernel spills where it keeps
registers in memory. Kernels that scan chunks have no loop over steps; where full matrices of more
than 64 units are read a tile at a time, the longest loop may be that over the tiles. Seconds are
those of a first compilation, Triton and ptxas.

``--dtype`` is float32 by default; "tf32" is float32 where torch may multiply in TF32.

``--tree`` compiles the kernels of another clone, for a comparison.
"""

from __future__ import annotations

import argparse
import functools
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

# Cells of more than 8 units a block have full matrices, those of a single block here.
CELLS = ["para_rnn(1)", "para_rnn(2)", "para_gru(2)", "para_lstm(2)", "newton_gru()",
         "newton_lstm()", "lem()", "lru()", "para_rnn(64)", "para_gru(64)", "para_lstm(64)",
         "para_rnn(128)", "para_gru(128)", "para_lstm(128)", "para_rnn(256)",
         "para_gru(256)", "para_rnn(512)"]  # fmt: skip
DTYPES = ("float32", "tf32", "bfloat16", "float64")
TIME_ORDER = ("forward", "backward")
CHUNKED = ("shoot", "adjoints", "gradients_at_ends", "backward")


def note_kernel(
    made: list[dict[str, Any]], name: str, binary: Any, options: dict[str, Any], seconds: float
) -> None:
    """Keep what was compiled, once a kernel and launch."""
    if "D" in options:
        name += f" in {options['PLACE']}, {options['BLOCK']} sequences"
    if name not in [kept["kernel"] for kept in made]:
        steps = options.get("PREFETCH", 1 if "BLOCK" in options else None)
        made.append({"kernel": name, "cubin": binary.asm["cubin"], "steps": steps,
                     "warps": options["num_warps"], "seconds": seconds})  # fmt: skip


def disassembled(cubin: bytes) -> tuple[str, str]:
    """Resources and instructions of machine code."""
    import triton

    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        usage, code = (
            subprocess.run([tool, option, file.name], capture_output=True, text=True, check=True)
            for option in ("-res-usage", "-sass")
        )
    return usage.stdout, code.stdout


def longest_loop(instructions: list[tuple[int, str]], without: str) -> list[str]:
    """Instructions between a branch back and its target, of the longest such `without` a word."""
    best: list[str] = []
    for at, text in instructions:
        found = re.search(r"\bBRA\S* (?:\S+ )?`?\(?(?:0x([0-9a-f]+)|\.L_x_\d+)", text)
        if not found or found.group(1) is None or int(found.group(1), 16) > at:
            continue
        begin = int(found.group(1), 16)
        loop = [text for address, text in instructions if begin <= address <= at]
        if begin < at and len(loop) > len(best) and not any(without in text for text in loop):
            best = loop
    return best


def widths(loop: list[str], kind: str) -> str:
    """Number of loads or stores in a loop by the bits that each moves."""
    found = Counter[str]()
    for text in loop:
        match = re.search(rf"\b{kind}\.E(?:\.(64|128|U16|U8|S8|S16))?", text)
        if match:
            found[(match.group(1) or "32").lstrip("US")] += 1
    return ", ".join(f"{count} x {bits}" for bits, count in found.items())


def row_of(cell: str, made: dict[str, Any]) -> list[object]:
    usage, code = disassembled(made["cubin"])
    registers, stack, local = (
        int(re.search(rf"{word}:(\d+)", usage).group(1))  # type: ignore[union-attr]
        for word in ("REG", "STACK", "LOCAL")
    )
    instructions = [
        (int(match.group(1), 16), match.group(2).strip())
        for match in re.finditer(r"^\s+/\*([0-9a-f]{4,})\*/\s+([^;]*);", code, re.MULTILINE)
    ]
    # The loop over the phases of shooting has barriers, and that over steps inside it none.
    without = "BAR.SYNC" if "shoot" in made["kernel"] else "nothing"
    loop = longest_loop(instructions, without) if made["steps"] else []
    a_step = f"{len(loop) / made['steps']:.0f}" if loop else ""
    barriers = sum("BAR.SYNC" in text for text in loop)
    return [cell, made["kernel"], made["warps"], registers, stack + local, len(instructions),
            a_step, widths(loop, "LDG"), widths(loop, "STG"), barriers,
            f"{made['seconds']:.1f}"]  # fmt: skip


def compile_all(
    names: list[str], units: int, capability: int, block: int | None, precision: str
) -> list[list[object]]:
    import torch
    from _gpu_bench import Compiled, Pretended
    from triton.backends.compiler import GPUTarget
    from triton.runtime import driver

    from tsrnn.kernels import _gpu, cells, is_small
    from tsrnn.kernels._gpu import chunked, dense, dense_kernels, kernels
    from tsrnn.kernels._problem import Problem

    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
    dtype = torch.float32 if precision == "tf32" else getattr(torch, precision)
    driver._active = Pretended(GPUTarget("cuda", capability, 32))
    for launch in ("FORWARD", "BACKWARD", "SHOOTING", "SHOOTING_OF_MANY", "SCAN") if block else ():
        setattr(_gpu, launch, getattr(_gpu, launch)._replace(block=block))
    made: list[dict[str, Any]] = []
    for module, kinds, words in (
        (kernels, TIME_ORDER, "time order"),
        (chunked, (*CHUNKED, "shooting"), "chunks"),
        (dense_kernels, TIME_ORDER, "matrices"),
    ):
        for kind in kinds:
            if hasattr(module, kind):
                note = functools.partial(note_kernel, made, f"{words}: {kind}")
                setattr(module, kind, Compiled(getattr(module, kind), note))
    rows = []
    for name in names:
        made.clear()
        maker, argument = re.fullmatch(r"(\w+)\((\d*)\)", name).groups()  # type: ignore[union-attr]
        cell = getattr(cells, maker)(*map(int, filter(None, [argument])))
        small = is_small(cell)
        steps, chunk, width = (64 * 512, 64, units) if small else (2, 1, 1)
        for batch in (1,) if small else (1, 4096):  # of many sequences, several share a program
            inputs = torch.zeros(batch, steps, cell.m, width, dtype=dtype)
            params, initial = (
                inputs.new_zeros(cell.p, width),
                inputs.new_zeros(batch, cell.n, width),
            )
            problem = Problem(cell, inputs, params, initial)
            engine: Any = _gpu if small else dense
            states, _ = engine.forward(problem)
            engine.backward(problem, states, states, initial)
            if small:
                _gpu.shooting(problem, chunk, 1, 1e-6)
                _gpu.scan_backward(problem, states, states, initial, chunk)
        rows += [row_of(name, one) for one in made]
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cells", nargs="+", default=CELLS, help="such as para_gru(2)")
    parser.add_argument("--dtype", choices=DTYPES, default=DTYPES[0], help="tf32 of full matrices")
    parser.add_argument("--units", type=int, default=64)
    parser.add_argument("--block", type=int, help="lanes of a program, 32 by default")
    parser.add_argument("--capability", type=int, default=90)
    parser.add_argument("--tree", type=Path, help="clone with links to kernels and datasets")
    parser.add_argument("--smoke", action="store_true", help="only the first cell")
    options = parser.parse_args()
    if options.smoke:
        options.cells = CELLS[:1]
    if options.tree:
        sys.path.insert(0, str(options.tree))
    from _timing import print_table

    with tempfile.TemporaryDirectory() as folder:  # nothing from earlier compilations
        os.environ |= {"TRITON_CACHE_DIR": folder, "TSRNN_CACHE_DIR": folder}
        import triton

        print(f"Triton {triton.__version__}, sm_{options.capability}, {options.dtype}, "
              f"{options.units} units\n")  # fmt: skip
        rows = compile_all(
            options.cells, options.units, options.capability, options.block, options.dtype
        )
    header = ["cell", "kernel", "warps", "registers", "spilled bytes", "instructions",
              "of a step", "loads", "stores", "barriers", "seconds"]  # fmt: skip
    print_table(header, rows)


if __name__ == "__main__":
    main()
