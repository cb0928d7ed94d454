"""Seconds of imports, of the help of the command line and of first forecasts, each in a process.

python benchmarks/import_time.py [repeats]
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

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


SERIES = (
    "import numpy, pandas; t = numpy.arange(200); "
    "y = pandas.Series(100 + t / 2 + 20 * numpy.sin(t / 2) + numpy.cos(t * t), "
    "index=pandas.date_range('2000-01', periods=200, freq='MS'), name='y'); "
)
FIRST_FIT, LIGHTNING = "first forecasts of `ParaRNNForecaster`", "`import torch, lightning.pytorch`"
CLASSICAL = "`tsrnn forecast data.csv --model arma`"
MOST_OVER_LIGHTNING = 4 / 3  # of a first fit, all imports of its own among it


def measured(repeats: int, folder: Path) -> dict[str, list[float]]:
    """Times by what was timed, one of each in turn, so that all see the same load."""
    data = folder / "data.csv"
    run(["-c", SERIES + f"y.rename_axis('ds').to_csv({str(data)!r})"])
    fit = (
        "from tsrnn import ParaRNNForecaster; ParaRNNForecaster(random_state=0).fit(y).predict(12)"
    )
    whole = {
        "`python -c pass`": ["-c", "pass"],
        "`import numpy, pandas`": ["-c", "import numpy, pandas"],
        "`tsrnn --help`": ["-m", "tsrnn.cli", "--help"],
        "`import torch`": ["-c", "import torch"],
        LIGHTNING: ["-c", "import torch, lightning.pytorch"],
        FIRST_FIT: ["-c", SERIES + fit],
        CLASSICAL: ["-m", "tsrnn.cli", "forecast", str(data), "--h", "12", "--model", "arma"],
    }
    for name in (FIRST_FIT, CLASSICAL) if repeats > 1 else ():
        run(whole[name])  # kernels are compiled once on a machine
    times: dict[str, list[float]] = {name: [] for name in [*whole, *LIMITS]}
    for _ in range(repeats):
        for name, arguments in whole.items():
            times[name].append(run(arguments)[0])
        times["`import tsrnn` above numpy and pandas"].append(float(run(["-c", ABOVE])[1]))
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("repeats", type=int, nargs="?", default=10)
    parser.add_argument("--smoke", action="store_true", help="once, without limits")
    options = parser.parse_args()
    repeats = 1 if options.smoke else options.repeats
    with tempfile.TemporaryDirectory() as folder:
        times = measured(repeats, Path(folder))
    print(f"| | min (s) | median (s) | limit (s) |\n|{' --- |' * 4}")
    for name, values in times.items():
        low, middle = min(values), statistics.median(values)
        print(f"| {name} | {low:.3f} | {middle:.3f} | {LIMITS.get(name, '')} |")
    if options.smoke:
        return
    for name, limit in LIMITS.items():
        assert min(times[name]) < limit, f"{name} takes {min(times[name]):.3f} s, over {limit} s"
    ratio = min(times[FIRST_FIT]) / min(times[LIGHTNING])
    print(f"\nFirst forecasts over the import of torch and Lightning: {ratio:.2f}")
    assert ratio < MOST_OVER_LIGHTNING, f"over {MOST_OVER_LIGHTNING:.2f}"


if __name__ == "__main__":
    main()
