"""The wheel in an environment of its own: it works, and it brings its types along."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SCRIPT = """\
import pandas as pd
from tsrnn import ARMA, ParaRNNForecaster, backtest

frame = pd.DataFrame({"y": [1.0, 2.0]})
arma = ARMA(order=(1, 1))
network = ParaRNNForecaster(horizon=3)
reveal_type(arma)
reveal_type(network)
reveal_type(backtest({"ARMA": arma, "ParaRNN": network}, frame, h=3))
reveal_type(network.fit(frame).update(frame))
ARMA(order="one")
"""
SHOWN = {
    7: "tsrnn.linear.arma._arma.ARMA",
    8: "tsrnn.forecasters._para_rnn.ParaRNNForecaster",
    9: "pandas.core.frame.DataFrame",
    10: "tsrnn.forecasters._para_rnn.ParaRNNForecaster",
}


def test_a_forecaster_of_each_kind_works(run_in, tmp_path):
    said = run_in("-I", HERE / "smoke.py", cwd=tmp_path)
    assert said.splitlines() == [
        "ARMA fitted, saved and loaded",
        "ParaRNNForecaster fitted, saved and loaded",
    ]


def test_the_command_says_how_it_is_used(environment, run, tmp_path):
    said = run(environment[0].with_name("tsrnn"), "--help", cwd=tmp_path)
    assert "Usage: tsrnn" in said


def test_what_the_wheel_asks_for_is_what_there_is(built, run_in, tmp_path):
    install = ("-m", "pip", "install", "--dry-run", "--no-index", "--disable-pip-version-check")
    said = run_in(*install, built[1], cwd=tmp_path)
    assert "Requirement already satisfied: numpy>=2.0" in said
    assert "Collecting" not in said


def test_a_type_checker_sees_the_types_of_the_public_names(environment, tmp_path):
    pytest.importorskip("mypy", reason="mypy checks the types")
    (tmp_path / "script.py").write_text(SCRIPT, encoding="utf-8")
    options = {
        "--python-executable": environment[0],
        "--config-file": ROOT / "pyproject.toml",  # the settings under which the cache was filled
        "--cache-dir": ROOT / ".mypy_cache",
    }
    command = [sys.executable, "-m", "mypy", "script.py"]
    command += [f"{name}={value}" for name, value in options.items()]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    shown = dict(
        re.findall(r'^script.py:(\d+): note: Revealed type is "(.*)"$', said, re.MULTILINE)
    )
    assert {int(line): found for line, found in shown.items()} == SHOWN, said
    assert re.findall(r"^script.py:(\d+): error: .* \[(.*)\]$", said, re.MULTILINE) == [
        ("11", "arg-type")
    ], said
