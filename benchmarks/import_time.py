"""Seconds of imports, of the help of the command line and of first forecasts, each in a process.

Beside the time on the clock, which other work on the machine lengthens, stand the seconds of the
processor, of the process and of the system for it. Rows above numpy and pandas are less the least
time that these take.

python benchmarks/import_time.py [repeats]
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

BASE, IMPORT = "`import numpy, pandas`", "`import tsrnn`"
PRETRAINED = "first forecast, pretrained"
COMMAND = "`tsrnn forecast data.csv`, pretrained"
ABOVE = " above numpy and pandas"
# Seconds of the processor, which on an idle core are those on the clock.
LIMITS = {IMPORT + ABOVE: 0.3, PRETRAINED + ABOVE: 1.0, COMMAND + ABOVE: 1.0, "`tsrnn --help`": 0.2}


class Seconds(NamedTuple):
    """Seconds of a process: on the clock, and of the processor."""

    clock: float
    processor: float

    def __sub__(self, other: Seconds) -> Seconds:
        return Seconds(self.clock - other.clock, self.processor - other.processor)


def run(arguments: Sequence[str]) -> Seconds:
    """Seconds of a process of this interpreter."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    # Bytecode is kept, as on the machines of users, whatever the environment asks for.
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": ""}
    command = [sys.executable, *arguments]
    subprocess.run(command, capture_output=True, check=True, env=environment)
    clock, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Seconds(clock, sum(after[:2]) - sum(before[:2]))


SERIES = (
    "import numpy, pandas; t = numpy.arange(200); "
    "y = pandas.Series(100 + t / 2 + 20 * numpy.sin(t / 2) + numpy.cos(t * t), "
    "index=pandas.date_range('2000-01', periods=200, freq='MS'), name='y'); "
)
FIRST_FIT, LIGHTNING = "first forecast, trained", "`import torch, lightning.pytorch`"
CLASSICAL = "`tsrnn forecast data.csv --model arma`"
MOST_OVER_LIGHTNING = 4 / 3  # of a first fit, all imports of its own among it


def measured(repeats: int, folder: Path) -> dict[str, list[Seconds]]:
    """Times by what was timed, one of each in turn, so that all see the same load."""
    data = folder / "data.csv"
    run(["-c", SERIES + f"y.rename_axis('ds').to_csv({str(data)!r})"])
    pretrained = "from tsrnn import ParaRNNForecaster; ParaRNNForecaster().fit(y).predict(12)"
    trained = pretrained.replace("r()", "r(prior=None, random_state=0)")
    whole = {
        "`python -c pass`": ["-c", "pass"],
        BASE: ["-c", "import numpy, pandas"],
        IMPORT: ["-c", "import numpy, pandas, tsrnn"],
        "`tsrnn --help`": ["-m", "tsrnn.cli", "--help"],
        "`import torch`": ["-c", "import torch"],
        LIGHTNING: ["-c", "import torch, lightning.pytorch"],
        PRETRAINED: ["-c", SERIES + pretrained],
        COMMAND: ["-m", "tsrnn.cli", "forecast", str(data), "--h", "12"],
        FIRST_FIT: ["-c", SERIES + trained],
        CLASSICAL: ["-m", "tsrnn.cli", "forecast", str(data), "--h", "12", "--model", "arma"],
    }
    for arguments in whole.values() if repeats > 1 else ():
        run(arguments)  # kernels are compiled once on a machine, and modules
    times: dict[str, list[Seconds]] = {name: [] for name in [*whole, *LIMITS]}
    for _ in range(repeats):
        for name, arguments in whole.items():
            times[name].append(run(arguments))
    base = Seconds(*map(min, zip(*times[BASE], strict=True)))
    for name in (IMPORT, PRETRAINED, COMMAND):
        times[name + ABOVE] = [seconds - base for seconds in times[name]]
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("repeats", type=int, nargs="?", default=10)
    parser.add_argument("--smoke", action="store_true", help="once, without limits")
    options = parser.parse_args()
    repeats = 1 if options.smoke else options.repeats
    with tempfile.TemporaryDirectory() as folder:
        times = measured(repeats, Path(folder))
    print("| | clock, least (s) | median (s) | processor, least (s) | limit (s) |")
    print(f"|{' --- |' * 5}")
    for name, values in times.items():
        clock, processor = zip(*values, strict=True)
        shown = f"{min(clock):.3f} | {statistics.median(clock):.3f} | {min(processor):.3f}"
        print(f"| {name} | {shown} | {LIMITS.get(name, '')} |")
    if options.smoke:
        return
    least = {name: min(seconds.processor for seconds in values) for name, values in times.items()}
    for name, limit in LIMITS.items():
        assert least[name] < limit, f"{name} takes {least[name]:.3f} s, over {limit} s"
    ratio = least[FIRST_FIT] / least[LIGHTNING]
    print(f"\nFirst forecast of a trained network over torch and Lightning: {ratio:.2f}")
    assert ratio < MOST_OVER_LIGHTNING, f"over {MOST_OVER_LIGHTNING:.2f}"


if __name__ == "__main__":
    main()
