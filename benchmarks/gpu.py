"""Kernels of a CUDA device beside their floors, torch's own layers, and the loop.

Of Python packages it needs torch, numpy, pandas, llvmlite and Triton alone (``forecaster`` what the
package needs), and Triton a C compiler and Python's headers to launch kernels. It wants a clone
with links ``tsrnn/kernels`` to ``../kernels`` and ``tsrnn/datasets`` to ``../datasets``,
``PYTHONPATH`` set to the clone and ``TSRNN_CACHE_DIR`` to a folder.

Sections run one after the other, each in a process of its own; after a row that ends it, or takes
longer than ``--row-seconds``, another goes on with the next row. Rows print as they come and are
appended to ``--results``, whose tables ``--print-only`` prints. With ``--within`` all is over after
so many seconds, and with ``--sections check:60`` a section after 60 of its own.

- ``check``: states and gradients of cells and engines beside the loop in float64, in units in
  the last place of the largest value.
- ``speed``: ParaRNN, ParaGRU, ParaLSTM and the LRU at six shapes. "Kernels" are replayed as a
  graph of calls on as many inputs as together outgrow the second cache twice, whose results are
  kept, timed by events; a "call" is one of many that wait on the device for each other, as in
  training. The floor is the time to copy the bytes that have to move at the rate of this device:
  forward reads u and writes h, backward reads h and its gradient, and u where gates are computed
  again, and writes the gradient of u. States that are small enough may still be in the second
  cache when they are read. Beside them torch.nn.RNN, GRU and LSTM of one feature: full matrices.
- ``layers``: layers of the package, their input projection included, beside torch.nn.RNN, GRU and
  LSTM, forward and backward.
- ``matrices``: networks with full matrices beside torch.nn.RNN and GRU holding the same numbers:
  each sequence a program of its own, programs shared, and these in TF32.
- ``training``: steps of Adam on a batch of pixels one by one, as of psMNIST, beside torch's layers,
  in float32 and under autocast, with the most memory that was taken.
- ``forecaster``: epochs of `ParaRNNForecaster` on a panel of hours, beside two cores.
- ``host``: calls so small that the host's time is measured, with the backward pass in a thread of
  its own, as torch has it, and in the thread that asks for it.
- ``loop``: cells beside the same step in torch, called step by step, as it is and compiled.
- ``rule``: time order beside chunks of time, around the limits of ``engine="auto"``.
- ``tuning``: launch parameters of the kernels, and lanes of those in chunks.
- ``figures``: timings and memory of Danieli et al. by length and width.

``--compile N`` compiles the kernels of all rows, and does nothing else, in N processes: no device
is touched. ``--rehearse`` runs the same rows with tiny shapes on the CPU; with
``TRITON_INTERPRET=1`` by Triton's interpreter. Its times mean nothing.
"""

from __future__ import annotations

import argparse
import multiprocessing
import subprocess
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import torch
from _gpu_bench import Bench, compile_only
from _gpu_rows import SECTIONS
from _runs import add_run_options, append_run, read_runs

GO_ON = 3  # status of a process whose last row has been written


def named_rows(bench: Bench, section: str) -> list[tuple[str, list[str], str, Any]]:
    """Title and header of the table, name, and what makes it, of every row of a section."""
    return [
        (table.title, table.header, name, make)
        for table in SECTIONS[section](bench)
        for name, make in table.rows
    ]


def run_section(bench: Bench, section: str, first: int, path: Path) -> None:
    """Measure the rows of a section from the first on; print each, and write it to a file."""
    shown, device = None, device_name(bench)
    for title, header, name, make in named_rows(bench, section)[first:]:
        if title != shown:
            print(head(title, header), flush=True)
            shown = title
        start = time.perf_counter()
        try:
            values = make()
            bench.synchronise()
        except Exception as error:  # a device must show all that is wrong in one run
            last = traceback.extract_tb(error.__traceback__)[-1]
            words = str(error).split("\n")[0][:300]
            values = [f"{type(error).__name__}: {words} ({last.name}, line {last.lineno})"]
        seconds = time.perf_counter() - start
        print(f"{line([name, *values])} {seconds:.1f} s", flush=True)
        write(path, section, title, header, [name, *values], seconds, device)
        try:
            bench.synchronise()
        except Exception:  # after an illegal access all that follows in this process fails
            sys.exit(GO_ON)


def head(title: str, header: list[str]) -> str:
    """Beginning of a table in markdown."""
    return f"\n{title}\n\n{line(header)}\n{line(['---'] * len(header))}"


def line(values: list[str]) -> str:
    """Row of a table in markdown."""
    return f"| {' | '.join(values)} |"


def device_name(bench: Bench) -> str:
    return "rehearsal" if bench.how == "rehearse" else torch.cuda.get_device_name()


def write(
    file: Path, section: str, title: str, header: list[str], row: list[str], seconds: float,
    device: str,
) -> None:  # fmt: skip
    """Append a row to the table of results."""
    key = {"section": section, "title": title, "row": row[0]}
    result = {"header": header, "cells": row[1:], "seconds": round(seconds, 2)}
    append_run(file, key, result, device)


def rows_in(file: Path, section: str) -> int:
    """Number of rows of a section that the table has."""
    return sum(run["key"]["section"] == section for run in read_runs(file))


def watch(section: str, seconds: float, options: argparse.Namespace) -> None:
    """Run a section in processes, each until its end, or until a row takes too long."""
    path, deadline = options.results, time.monotonic() + seconds
    bench = Bench("rehearse" if options.rehearse else "measure")
    device = device_name(bench)
    rows = named_rows(bench, section)
    if done := rows_in(path, section):
        print(f"{section}: {done} of {len(rows)} rows are in {path} already", flush=True)
    while done < len(rows):
        command = [sys.executable, __file__, "--section", section, "--first", str(done),
                   "--results", str(path)]  # fmt: skip
        command += ["--rehearse"] * options.rehearse
        child = subprocess.Popen(command)
        moved = time.monotonic()
        while child.poll() is None:
            time.sleep(0.2)
            now, before = time.monotonic(), done
            done = rows_in(path, section)
            moved = now if done > before else moved
            if now > deadline or now - moved > options.row_seconds:
                child.kill()
                child.wait()
        done = rows_in(path, section)
        if time.monotonic() > deadline:
            print(f"{section}: {len(rows) - done} of {len(rows)} rows not reached", flush=True)
            return
        if done < len(rows) and child.returncode != GO_ON:
            title, header, name, _ = rows[done]
            ended = f"ended its process ({child.returncode})"
            print(line([name, ended]), flush=True)
            write(path, section, title, header, [name, ended], time.monotonic() - moved, device)
            done += 1


def compile_row(job: tuple[str, int]) -> tuple[str, float, str]:
    """Compile the kernels of a row: its name, the seconds, and what was wrong."""
    section, number = job
    start = time.perf_counter()
    name, wrong = f"{section} {number}", ""
    try:
        *_, name, make = named_rows(Bench("compile"), section)[number]
        make()
    except Exception as error:
        wrong = f"{type(error).__name__}: {error}".split("\n")[0][:200]
    return name, time.perf_counter() - start, wrong


def begin_compiling(capability: int) -> None:
    """Set a process up that compiles only."""
    torch.set_num_threads(1)
    compile_only(capability)


def compile_ahead(sections: list[str], processes: int, capability: int) -> None:
    """Compile the kernels of all rows."""
    bench = Bench("compile")
    jobs = [
        (section, number)
        for section in sections
        for number in range(len(named_rows(bench, section)))
    ]
    start = time.perf_counter()
    context = multiprocessing.get_context("spawn")
    with context.Pool(processes, begin_compiling, (capability,)) as pool:
        slowest = []
        for name, seconds, wrong in pool.imap_unordered(compile_row, jobs):
            slowest.append((seconds, name))
            if wrong:
                print(line([name, wrong]), flush=True)
    words = ", ".join(f"{name} {seconds:.0f} s" for seconds, name in sorted(slowest)[-3:])
    passed = time.perf_counter() - start
    print(f"{len(jobs)} rows compiled in {passed:.0f} s; slowest: {words}", flush=True)


def print_tables(file: Path) -> None:
    """Print the devices of a table of results, and its rows by section."""
    shown, runs = None, read_runs(file)
    for device in dict.fromkeys(run["machine"] for run in runs):
        print(device)
    for run in runs:
        title, header = run["key"]["title"], run["result"]["header"]
        if title != shown:
            print(head(title, header))
            shown = title
        print(line([run["key"]["row"], *run["result"]["cells"]]))


def limited(asked: str, parser: argparse.ArgumentParser) -> tuple[str, float]:
    """Section of the command line, and the seconds that it may take."""
    name, _, seconds = asked.partition(":")
    try:
        return name, float(seconds or "inf")
    except ValueError:
        parser.error(f"--sections takes names, or names with seconds as speed:60; got {asked}")


def measure(limits: dict[str, float], options: argparse.Namespace) -> None:
    """Run sections, each within its seconds."""
    bench = Bench("rehearse" if options.rehearse else "measure")
    device = device_name(bench)
    print(f"{device}, {1e-9 / bench.a_byte:.2f} TB/s, torch {torch.__version__}", flush=True)
    if others := {run["machine"] for run in read_runs(options.results)} - {device}:
        sys.exit(f"{options.results} holds rows of {', '.join(others)}: give another --results")
    end = time.monotonic() + options.within
    for section, seconds in limits.items():
        left = end - time.monotonic()
        if left > 0:
            watch(section, min(left, seconds), options)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--sections", nargs="+", default=list(SECTIONS), help="name or name:seconds"
    )
    parser.add_argument("--within", type=float, default=7200.0, help="seconds for all sections")
    parser.add_argument("--row-seconds", type=float, default=60.0, help="of a row that is ended")
    add_run_options(parser, "gpu")
    parser.add_argument("--compile", type=int, help="compile only, in so many processes")
    parser.add_argument("--capability", type=int, default=90, help="of the device to compile for")
    parser.add_argument("--rehearse", action="store_true")
    parser.add_argument("--section", help=argparse.SUPPRESS)  # a child: this section alone
    parser.add_argument("--first", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--smoke", action="store_true", help="changes nothing")
    options = parser.parse_args()
    limits = dict(limited(asked, parser) for asked in options.sections)
    if unknown := set(limits) - set(SECTIONS):
        parser.error(f"--sections knows {', '.join(SECTIONS)}; got {', '.join(sorted(unknown))}")
    if options.print_only:
        print_tables(options.results)
        return
    if options.compile:
        compile_ahead(list(limits), options.compile, options.capability)
        return
    if not options.rehearse and not torch.cuda.is_available():
        print("no CUDA device is here; --rehearse runs on the CPU, --compile N compiles")
        return
    if options.section:
        torch.backends.cudnn.allow_tf32 = False  # torch's layers are to compute in float32 as well
        torch.manual_seed(0)
        bench = Bench("rehearse" if options.rehearse else "measure")
        run_section(bench, options.section, options.first, options.results)
        return
    measure(limits, options)


if __name__ == "__main__":
    main()
