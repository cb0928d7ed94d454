"""The command line in this process, and files for it."""

import io
import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from tsrnn.cli import app
from tsrnn.datasets import load_elnino, load_macrodata

SMALL = ["--set", "max_epochs=1", "--set", "hidden_size=8", "--random-state", "0"]


@pytest.fixture
def tsrnn(tmp_path, monkeypatch):
    """Run a command in an empty folder; a text of arguments is split at spaces."""
    monkeypatch.chdir(tmp_path)

    def run(arguments, stdin=None):
        listed = arguments.split() if isinstance(arguments, str) else list(map(str, arguments))
        return CliRunner().invoke(app, listed, input=stdin, catch_exceptions=False)

    return run


@pytest.fixture
def answer(tsrnn):
    """Run a command that must succeed; give its stdout."""

    def run(arguments, stdin=None):
        done = tsrnn(arguments, stdin)
        assert done.exit_code == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture
def table(answer):
    """Run a command that must succeed; give its stdout, which is CSV, as a frame of texts."""
    return lambda arguments, stdin=None: pd.read_csv(
        io.StringIO(answer(arguments, stdin)), dtype={"unique_id": str}, keep_default_na=False
    )


@pytest.fixture
def document(answer):
    """Run a command with --json that must succeed; give the document."""
    return lambda arguments, stdin=None: json.loads(answer(arguments, stdin), parse_constant=fail)


def fail(constant):
    raise AssertionError(f"{constant} is no JSON")


@pytest.fixture
def refused(tsrnn):
    """Run a command that must fail with exit code 1; give its message."""

    def run(arguments, stdin=None):
        done = tsrnn(arguments, stdin)
        assert (done.exit_code, done.stdout) == (1, "")
        assert "Traceback" not in done.stderr
        last = done.stderr.strip().splitlines()[-1]
        assert last.startswith("error: ")
        return last.removeprefix("error: ")

    return run


@pytest.fixture
def misused(tsrnn):
    """Run a command that must be refused as wrong usage; give the message."""

    def run(arguments, stdin=None):
        done = tsrnn(arguments, stdin)
        assert (done.exit_code, done.stdout) == (2, "")
        return " ".join(done.stderr.split())

    return run


@pytest.fixture(scope="session")
def elnino():
    return load_elnino()[-120:]


@pytest.fixture(scope="session")
def macro():
    return load_macrodata()[["infl", "unemp"]]


@pytest.fixture(scope="session")
def panel():
    """Return three monthly walks, whose ids look like a number, a missing value and a name."""
    draw = np.random.default_rng(0)
    months = pd.date_range("2020-01-01", periods=48, freq="MS")
    parts = [
        pd.DataFrame({"unique_id": name, "ds": months, "y": draw.normal(size=48).cumsum()})
        for name in ("007", "NA", "b")
    ]
    return pd.concat(parts, ignore_index=True)


@pytest.fixture
def files(tmp_path, elnino, macro, panel):
    """Write elnino.csv (one series, wide), macro.csv (wide) and panel.csv (long)."""
    elnino.to_csv(tmp_path / "elnino.csv")
    macro.to_csv(tmp_path / "macro.csv")
    panel.to_csv(tmp_path / "panel.csv", index=False)
    return tmp_path
