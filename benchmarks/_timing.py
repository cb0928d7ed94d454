"""Measure and print: medians of repeats in one process, tables in markdown."""

from __future__ import annotations

import argparse
import ctypes
import platform
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

_smoke = False  # of read_options


def option_parser(text: str | None) -> argparse.ArgumentParser:
    """Parser of the command line of a script, which its docstring describes."""
    style = argparse.RawDescriptionHelpFormatter
    return argparse.ArgumentParser(description=text, formatter_class=style)


def read_options(parser: argparse.ArgumentParser, **smallest: Any) -> argparse.Namespace:
    """Options of the command line, and ``--smoke`` for the smallest run that tries the script.

    With it, options that are not given are `smallest`, and `median_ms` calls once.
    """
    global _smoke
    parser.add_argument("--smoke", action="store_true", help="smallest run, to see that it works")
    if parser.parse_known_args()[0].smoke:
        _smoke = True
        parser.set_defaults(**smallest)
    return parser.parse_args()


def median_ms(
    work: Callable[[], object], repeats: int, warm_up: int = 1, fresh: bool = False
) -> float:
    """Median time of a call in milliseconds.

    With `fresh` the result of a call lives until that of the next is there, as in a training
    loop, so that the next one cannot take its memory.
    """
    if _smoke:
        repeats, warm_up = 1, 0
    times, kept = [], None
    for i in range(warm_up + fresh + repeats):
        start = time.perf_counter()
        result = work()
        if i >= warm_up + fresh:
            times.append(1e3 * (time.perf_counter() - start))
        kept = result if fresh else None
        del result
    del kept
    return sorted(times)[len(times) // 2]


def copy_ms_a_byte() -> float:
    """Time to read or write a byte, from a copy of 64 MB by torch."""
    source, target = torch.randn(2**24), torch.empty(2**24)
    return median_ms(lambda: target.copy_(source), 20) / (2 * 4 * 2**24)


def peak_bytes(work: Callable[[], object]) -> int:
    """How far the memory of this process rises above where it stands, on Linux."""
    from tsrnn.kernels._cpu import buffers

    # Memory kept from before would hide what is asked for.
    buffers.idle.clear()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # forget the last peak
    before = _status_bytes("VmRSS")
    kept = work()
    peak = _status_bytes("VmHWM")
    del kept
    return peak - before


def highest_bytes() -> int:
    """The peak of the memory of this process, on Linux."""
    return _status_bytes("VmHWM")


def _status_bytes(field: str) -> int:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return 1024 * int(next(line.split()[1] for line in lines if line.startswith(field)))


def print_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a markdown table."""
    cells = [[str(cell) for cell in row] for row in (header, *rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    lines = ["| " + " | ".join(c.rjust(w) for c, w in zip(row, widths, strict=True)) + " |"
             for row in cells]  # fmt: skip
    lines.insert(1, "| " + " | ".join("-" * (w - 1) + ":" for w in widths) + " |")
    print("\n".join(lines))


def machine() -> str:
    """Model of the processor."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next(line.split(":")[1].strip() for line in file if "model name" in line)
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def print_machine() -> None:
    """Print what the numbers depend on."""
    print(f"{machine()}, {torch.get_num_threads()} threads, torch {torch.__version__}, "
          f"Python {platform.python_version()}")  # fmt: skip
