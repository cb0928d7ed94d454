"""Results of long runs, a file each: a table is made in pieces, over days and processes.

A run is what its key says, a dict of plain values. Its file has the key, the result, the machine
and the day; it is written when the run ends, in one step, so that what is interrupted leaves
nothing behind. Numbers that are not finite are null in it, as JSON has no others, and NaN when they
are read back. `results/<name of the script>/` beside this file keeps those that the documentation
prints.
"""

from __future__ import annotations

import datetime
import json
import math
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from _timing import machine

RESULTS = Path(__file__).parent / "results"
Key = Mapping[str, Any]


def file_of(folder: Path, key: Key) -> Path:
    """File of a run: the values of its key, in their order."""
    words = (re.sub(r"[^\w.+]+", "_", str(value)) for value in key.values())
    return folder / ("-".join(words) + ".json")


def as_read(key: Key) -> dict[str, Any]:
    """Key as JSON gives it back, tuples as lists; TypeError where JSON has no such value."""
    return json.loads(json.dumps(dict(key), allow_nan=False))


def replace_each(value: Any, function: Callable[[Any], Any]) -> Any:
    """Lists and dicts with the function of each value inside."""
    if isinstance(value, Mapping):
        return {name: replace_each(part, function) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [replace_each(part, function) for part in value]
    return function(value)


def none_if_not_finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def nan_if_none(value: Any) -> Any:
    return math.nan if value is None else value


def read_result(folder: Path, key: Key) -> dict[str, Any] | None:
    """Result of a run, if it was made; NaN for numbers that were not finite."""
    key = as_read(key)
    file = file_of(folder, key)
    if not file.exists():
        return None
    try:
        kept = json.loads(file.read_text(encoding="utf-8"))
        known, result = kept["key"], replace_each(kept["result"], nan_if_none)
        result |= {"machine": kept["machine"], "date": kept["date"]}
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{file} is damaged ({error!r}): restore or delete it") from error
    if known != key:  # another key of the same name would give its result for this one
        raise ValueError(f"{file} holds the run {known}; got {key}")
    return result


def run_all(
    folder: Path,
    keys: Iterable[Key],
    run: Callable[[Key], dict[str, Any]],
    minutes: float = float("inf"),
) -> None:
    """Make the runs that are missing, in order, and begin none after so many minutes."""
    keys = [as_read(key) for key in keys]  # what JSON does not have ends here, before any run
    folder.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    for key in keys:
        if time.perf_counter() - start > 60 * minutes:
            return
        if read_result(folder, key) is not None:
            continue
        begun = time.perf_counter()
        result = run(key)
        result = {"seconds": round(time.perf_counter() - begun, 1)} | result
        kept = {
            "key": key,
            "result": replace_each(result, none_if_not_finite),
            "machine": f"{machine()}, {torch.get_num_threads()} threads",
            "date": datetime.date.today().isoformat(),
        }
        file = file_of(folder, key)
        unfinished = file.with_suffix(f".{os.getpid()}")
        unfinished.write_text(json.dumps(kept, indent=1, allow_nan=False) + "\n", "utf-8")
        unfinished.replace(file)
        print(*key.values(), kept["result"], file=sys.stderr, flush=True)
