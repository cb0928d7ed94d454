"""Results of long runs, a file each: a table is made in pieces, over days and processes.

A run is what its key says, a dict of plain values. Its file has the key, the result, the machine
and the day; it is written when the run ends, in one step, so that what is interrupted leaves
nothing behind. `results/<name of the script>/` beside this file keeps those that the
documentation prints.
"""

from __future__ import annotations

import datetime
import json
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


def read_result(folder: Path, key: Key) -> dict[str, Any] | None:
    """Result of a run, if it was made."""
    file = file_of(folder, key)
    if not file.exists():
        return None
    kept = json.loads(file.read_text(encoding="utf-8"))
    if kept["key"] != dict(key):  # another key of the same name would give its result for this one
        raise ValueError(f"{file} holds the run {kept['key']}; got {dict(key)}")
    return kept["result"] | {"machine": kept["machine"], "date": kept["date"]}


def run_all(
    folder: Path,
    keys: Iterable[Key],
    run: Callable[[Key], dict[str, Any]],
    minutes: float = float("inf"),
) -> None:
    """Make the runs that are missing, in order, and begin none after so many minutes."""
    folder.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    for key in keys:
        if time.perf_counter() - start > 60 * minutes:
            return
        if read_result(folder, key) is not None:
            continue
        begun = time.perf_counter()
        result = run(key)
        kept = {
            "key": dict(key),
            "result": {"seconds": round(time.perf_counter() - begun, 1)} | result,
            "machine": f"{machine()}, {torch.get_num_threads()} threads",
            "date": datetime.date.today().isoformat(),
        }
        file = file_of(folder, key)
        unfinished = file.with_suffix(f".{os.getpid()}")
        unfinished.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
        unfinished.replace(file)
        print(*key.values(), kept["result"], file=sys.stderr, flush=True)
