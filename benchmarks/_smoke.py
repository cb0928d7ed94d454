"""Smallest runs of scripts, each in a fork of one process that has loaded what they share.

Each prints into a file of its own name in a folder; the output of those that fail is shown.
A fresh interpreter for each would spend half of its time on imports.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import runpy
import sys
import time
import traceback
from pathlib import Path

SHARED = ("tsrnn", "pandas", "torch", "lightning.pytorch")


def load_shared() -> None:
    """Import what most scripts import, the public names of the package among it."""
    for name in SHARED:
        importlib.import_module(name)
    package = importlib.import_module("tsrnn")
    for name in package.__all__:
        with contextlib.suppress(ImportError):  # of packages that are not installed
            getattr(package, name)


def run_script(script: Path, output: Path) -> int:
    """Exit status of a script that runs in this process, a fork, and prints into a file."""
    with output.open("w", encoding="utf-8") as file:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
            os.dup2(file.fileno(), stream.fileno())  # of the processes that it starts, too
        sys.argv = [str(script), "--smoke"]
        status = 0
        try:
            runpy.run_path(str(script.resolve()), run_name="__main__")  # as Python names it
        except SystemExit as end:
            if not (end.code is None or isinstance(end.code, int)):
                print(end.code, file=sys.stderr)
            status = (end.code or 0) if isinstance(end.code, int | None) else 1
        except BaseException:
            traceback.print_exc()
            status = 1
        sys.stdout.flush()
        sys.stderr.flush()
    return status


def run_all(scripts: list[Path], folder: Path, workers: int) -> dict[Path, tuple[int, float]]:
    """Exit status and seconds of each script, as many at a time as there are workers."""
    folder.mkdir(parents=True, exist_ok=True)
    ends: dict[Path, tuple[int, float]] = {}
    waiting, running = list(scripts), dict[int, tuple[Path, float]]()
    while waiting or running:
        while waiting and len(running) < workers:
            script = waiting.pop(0)
            process = os.fork()
            if not process:
                # No clean-up of the parent's is this process's.
                os._exit(run_script(script, folder / f"{script.stem}.txt"))
            running[process] = script, time.perf_counter()
        process, status = os.wait()
        script, start = running.pop(process)
        ends[script] = os.waitstatus_to_exitcode(status), time.perf_counter() - start
    return ends


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scripts", nargs="+", type=Path)
    parser.add_argument("--folder", type=Path, default=Path("build", "smoke"))
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    # A folder before this one in the path: scripts import their neighbours.
    sys.path.insert(0, str(options.scripts[0].resolve().parent))
    load_shared()
    ends = run_all(options.scripts, options.folder, max(options.workers, 1))
    failed = [script for script, (status, _) in ends.items() if status]
    for script in failed:
        text = (options.folder / f"{script.stem}.txt").read_text("utf-8")
        print(f"{script} has failed:\n{text}")
    seconds = sorted(((s, script.name) for script, (_, s) in ends.items()), reverse=True)
    longest = ", ".join(f"{name} {s:.0f}" for s, name in seconds[:5])
    print(f"{len(ends)} benchmarks run; longest, in seconds: {longest}")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
