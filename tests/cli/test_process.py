"""The command line as a process: pipes, signals, imports, exit codes."""

import os
import subprocess
import sys
from importlib.metadata import entry_points, version

import numpy as np
import pandas as pd
import pytest

import tsrnn.cli

HEAVY = {"torch", "lightning", "statsmodels", "arch", "sklearn", "pandas", "numpy", "matplotlib"}
TSRNN = [sys.executable, "-m", "tsrnn.cli"]
WINDOWS = pytest.mark.skipif(os.name == "nt", reason="pipes and signals of Windows are others")


def run(arguments, stdin=None, **options):
    return subprocess.run(
        [*TSRNN, *arguments.split()],
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        encoding="utf-8",
        **options,
    )


@pytest.fixture(scope="module")
def long_csv(tmp_path_factory):
    """Write many short series, whose forecasts do not fit into the buffer of a pipe."""
    path = tmp_path_factory.mktemp("data") / "long.csv"
    days = pd.date_range("2024-01-01", periods=5)
    ids = np.repeat([f"Größe {i}" for i in range(4000)], 5)
    frame = pd.DataFrame({"unique_id": ids, "ds": np.tile(days, 4000), "y": 1.0})
    frame.to_csv(path, index=False, encoding="utf-8")
    return path


def test_the_console_script_is_the_function():
    (script,) = entry_points(group="console_scripts", name="tsrnn")
    assert script.load() is tsrnn.cli.main


@pytest.mark.parametrize("arguments", ["--help", "forecast --help", "models", "--version"])
def test_help_loads_no_heavy_library(arguments):
    code = (
        "import sys, atexit; from tsrnn.cli import main; "
        f"sys.argv = ['tsrnn', *{arguments.split()!r}]; "
        "atexit.register(lambda: print(*sys.modules, file=sys.stderr)); main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout
    assert not HEAVY & set(done.stderr.split())


def test_the_version():
    assert run("--version").stdout == f"tsrnn {version('tsrnn')}\n"


def test_stdin_and_stdout_are_utf_8_and_alone(long_csv):
    plain = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = run("forecast - --model naive --h 1", long_csv.read_text("utf-8"), env=plain)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[1] == "Größe 0,2024-01-06,1.0"
    assert len(done.stdout.splitlines()) == 4001


@pytest.mark.slow
@WINDOWS
def test_a_reader_that_has_seen_enough(long_csv):
    command = [*TSRNN, "forecast", str(long_csv), "--model", "naive", "--h", "9"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"unique_id,ds,Naive\n"
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 0


@pytest.mark.slow
@WINDOWS
def test_an_interrupt(long_csv):
    """By a signal that the process sends itself in the midst of its work."""
    code = (
        "import os, signal, sys, time; from tsrnn.baselines import Naive; "
        "signal.signal(signal.SIGINT, signal.default_int_handler); "  # ignored in the background
        "from tsrnn.cli import main; "
        "Naive.fit = lambda self, df: (os.kill(os.getpid(), signal.SIGINT), time.sleep(30)); "
        f"sys.argv = ['tsrnn', 'forecast', {str(long_csv)!r}, '--model', 'naive']; main()"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


def test_exit_codes(tmp_path):
    assert run("forecast none.csv", cwd=tmp_path).returncode == 1
    assert run("forecast --nonesuch", cwd=tmp_path).returncode == 2
    assert run("models", cwd=tmp_path).returncode == 0
