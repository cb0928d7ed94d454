"""Seconds that imports and the help of the command line take, in processes of their own.

python benchmarks/import_time.py [repeats]
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Sequence

LIMITS = {"`import tsrnn` above numpy and pandas": 0.3, "`tsrnn --help`": 0.6}  # seconds

ABOVE = (
    "import time, numpy, pandas; start = time.perf_counter(); "
    "import tsrnn; print(time.perf_counter() - start)"
)


def run(arguments: Sequence[str]) -> tuple[float, str]:
    """Seconds of a process of this interpreter, and what it prints."""
    start = time.perf_counter()
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=True)
    return time.perf_counter() - start, done.stdout


def measured(repeats: int) -> dict[str, list[float]]:
    """Times by what was timed, one of each in turn, so that all see the same load."""
    whole = {
        "`python -c pass`": ["-c", "pass"],
        "`import numpy, pandas`": ["-c", "import numpy, pandas"],
        "`tsrnn --help`": ["-m", "tsrnn.cli", "--help"],
    }
    times: dict[str, list[float]] = {name: [] for name in [*whole, *LIMITS]}
    for _ in range(repeats):
        for name, arguments in whole.items():
            times[name].append(run(arguments)[0])
        times["`import tsrnn` above numpy and pandas"].append(float(run(["-c", ABOVE])[1]))
    return times


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    times = measured(repeats)
    print(f"| | min (s) | median (s) | limit (s) |\n|{' --- |' * 4}")
    for name, values in times.items():
        low, middle = min(values), statistics.median(values)
        print(f"| {name} | {low:.3f} | {middle:.3f} | {LIMITS.get(name, '')} |")
    for name, limit in LIMITS.items():
        assert min(times[name]) < limit, f"{name} takes {min(times[name]):.3f} s, over {limit} s"


if __name__ == "__main__":
    main()
