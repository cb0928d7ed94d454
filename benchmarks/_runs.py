"""Results of runs, a table a benchmark, so that a table is filled in pieces, over days.

A line of `results/<script>.jsonl` is a run: its key (a dict of plain values), its result, the
machine and the date; of later ones the commit and the versions of packages as well. A line is
appended by one write when the run ends, so that an interrupted run leaves nothing behind and
several processes share a table. A later line replaces an earlier line with the same key.
Numbers that are not finite are null in the file, since JSON has no others, and NaN when read.
"""

from __future__ import annotations

import argparse
import datetime
import functools
import json
import math
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeVar

import torch
from _timing import machine, print_machine, read_options

RESULTS = Path(__file__).parent / "results"
PACKAGES = ("tsrnn", "numpy", "pandas", "torch", "triton", "statsforecast")
Key = Mapping[str, Any]
AnyKey = TypeVar("AnyKey", bound=Key)


def as_read(key: Key) -> dict[str, Any]:
    """Key after a round trip through JSON; TypeError if JSON has no such value."""
    return json.loads(json.dumps(dict(key), allow_nan=False))


def replace_each(value: Any, function: Callable[[Any], Any]) -> Any:
    """Apply a function to each value inside lists and dicts."""
    if isinstance(value, Mapping):
        return {name: replace_each(part, function) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [replace_each(part, function) for part in value]
    return function(value)


def none_if_not_finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def nan_if_none(value: Any) -> Any:
    return math.nan if value is None else value


def read_runs(file: Path) -> list[dict[str, Any]]:
    """Runs of a table, in the order of their keys' first lines; empty if there is no file."""
    return list(_runs_by_key(file).values())


def read_result(file: Path, key: Key) -> dict[str, Any] | None:
    """Result of a run with its machine and date, or None if the table has no such run."""
    run = _runs_by_key(file).get(_name(as_read(key)))
    return run and run["result"] | {"machine": run["machine"], "date": run["date"]}


def _runs_by_key(file: Path) -> dict[str, dict[str, Any]]:
    if not file.exists():
        return {}
    state = file.stat()
    return _parse(file, state.st_mtime_ns, state.st_size)


@functools.lru_cache(maxsize=4)  # a table is asked for each of its keys
def _parse(file: Path, modified: int, size: int) -> dict[str, dict[str, Any]]:
    runs = {}
    for number, line in enumerate(file.read_text("utf-8").splitlines(keepends=True), 1):
        try:
            if not line.endswith("\n"):  # the next line would be appended to it
                raise ValueError("no end of the line")
            run = json.loads(line)
            run["result"] = replace_each(run["result"], nan_if_none)
            runs[_name(run["key"])] = run
            run["machine"], run["date"]
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"line {number} of {file} is damaged ({error!r}): restore or delete it"
            ) from error
    return runs


def _name(key: Key) -> str:
    return json.dumps(key, sort_keys=True)


def append_run(
    file: Path, key: Key, result: Mapping[str, Any], place: str | None = None
) -> dict[str, Any]:
    """Append a run of this moment to a table, and return its line; `place` names the machine."""
    run = {
        "key": as_read(key),
        "result": replace_each(result, none_if_not_finite),
        "machine": place or f"{machine()}, {torch.get_num_threads()} threads",
    } | circumstances()
    line = json.dumps(run, allow_nan=False).encode() + b"\n"
    file.parent.mkdir(parents=True, exist_ok=True)
    # A write at the end of the file is one step for the system: other processes append too.
    descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        if os.write(descriptor, line) < len(line):
            raise OSError(f"{file}: the disk is full; delete the last line, which is incomplete")
    finally:
        os.close(descriptor)
    return run


@functools.cache
def circumstances() -> dict[str, Any]:
    """Commit of the checkout, versions of packages, and the date."""
    commit = subprocess.run(
        ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"],
        capture_output=True, text=True, check=False,
    ).stdout.strip()  # fmt: skip
    versions = {"Python": platform.python_version()}
    for name in PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return {"commit": commit, "versions": versions, "date": datetime.date.today().isoformat()}


def add_run_options(parser: argparse.ArgumentParser, name: str) -> None:
    """Add the options of a script whose runs are kept in `results/<name>.jsonl`."""
    parser.add_argument("--results", type=Path, default=RESULTS / f"{name}.jsonl",
                        help="table of the runs")  # fmt: skip
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no run after these")
    parser.add_argument("--print-only", action="store_true", help="make no runs")


def read_run_options(
    parser: argparse.ArgumentParser, name: str, threads: int | None = 1, **smallest: Any
) -> argparse.Namespace:
    """Options of a script whose runs are kept; its smallest run only prints them.

    Threads of torch are set, and the machine is printed unless no runs are to be made.
    """
    add_run_options(parser, name)
    parser.add_argument("--threads", type=int, default=threads, help="of torch")
    options = read_options(parser, print_only=True, **smallest)
    if options.threads is not None:
        torch.set_num_threads(options.threads)
    if not options.print_only:
        print_machine()
    return options


def run_all(
    options: argparse.Namespace, keys: Iterable[Key], run: Callable[[Key], dict[str, Any]]
) -> None:
    """Run the keys that the table lacks, in order; none after ``--minutes`` or to print only."""
    keys = [as_read(key) for key in keys]  # a key that JSON cannot hold fails before any run
    start = time.perf_counter()
    for key in [] if options.print_only else keys:
        begun = time.perf_counter()
        if begun - start > 60 * options.minutes:
            return
        if read_result(options.results, key) is not None:
            continue
        result = run(key)
        result = {"seconds": round(time.perf_counter() - begun, 1)} | result
        kept = append_run(options.results, key, result)
        print(*key.values(), kept["result"], file=sys.stderr, flush=True)


def kept_results(
    options: argparse.Namespace, keys: Iterable[AnyKey]
) -> Iterator[tuple[AnyKey, dict[str, Any]]]:
    """Keys that the table has, each with its result."""
    for key in keys:
        if (result := read_result(options.results, key)) is not None:
            yield key, result
