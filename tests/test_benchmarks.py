"""Benchmarks use public names, and each has a smallest run, which `make bench-smoke` makes."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"
SCRIPTS = sorted(path.name for path in FOLDER.glob("*.py"))
# These measure what has no public name: passes of a solver, null distributions, kernels of a GPU,
# likelihoods that a random start climbs.
INSIDE = {path.name for path in FOLDER.glob("_starts_*.py")} | {
    "_gpu_bench.py", "_gpu_figures.py", "_gpu_rows.py", "_recurrences.py",
    "_timing.py", "block_size.py", "gpu_static.py", "linearity.py", "lyapunov.py", "newton.py",
    "windows.py",
}  # fmt: skip


def private_names(source):
    """Return private names of tsrnn that are imported or patched."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names = [node.value] if " " not in node.value else []
        else:
            continue
        found += [n for n in names if n.startswith("tsrnn.") and "._" in n.replace(".__", "")]
        found += [n for n in names if n.startswith("unittest.mock")]
    return found


@pytest.mark.parametrize("name", [name for name in SCRIPTS if name not in INSIDE])
def test_no_private_names(name):
    # Of the table of layers torch's takes the place of ours, by a public name.
    allowed = ["unittest.mock.patch"] if name == "erm_fit.py" else []
    assert private_names((FOLDER / name).read_text("utf-8")) == allowed


@pytest.mark.parametrize("name", sorted(n for n in INSIDE if not n.startswith("_starts_")))
def test_exceptions_are_needed(name):
    assert private_names((FOLDER / name).read_text("utf-8"))


@pytest.mark.parametrize(
    "source",
    [
        "from tsrnn.forecasters import _fit",
        "from tsrnn.kernels._newton import iterate",
        "import_module('tsrnn.erm._training')",
        "patch('tsrnn.evaluation._backtest.most_fits_together')",
        "from unittest.mock import patch",
    ],
)
def test_private_names_are_seen(source):
    assert private_names(source)
    assert not private_names("from tsrnn.kernels import recurrence")


@pytest.mark.parametrize("name", [name for name in SCRIPTS if not name.startswith("_")])
def test_every_script_has_a_smallest_run(name):
    source = (FOLDER / name).read_text("utf-8")
    assert "read_options(" in source or '"--smoke"' in source


SMOKE_SCRIPTS = {
    "fine": "import sys\nprint(__name__, sys.argv[1:])",
    "ends": "raise SystemExit(0)",
    "raises": "raise ValueError('no such table')",
    "refuses": "raise SystemExit('give a folder')",
    "killed": "import os\nos.kill(os.getpid(), 9)",
}


class TestSmallestRuns:
    """All scripts run from one process, which tells of those that fail."""

    @pytest.fixture(scope="class")
    @staticmethod
    def run(tmp_path_factory):
        folder = tmp_path_factory.mktemp("scripts")
        scripts = [folder / f"{name}.py" for name in SMOKE_SCRIPTS]
        for script, text in zip(scripts, SMOKE_SCRIPTS.values(), strict=True):
            script.write_text(text)
        # Without the imports, which take longer than all else.
        start = "import _smoke; _smoke.load_shared = lambda: None; _smoke.main()"
        command = [sys.executable, "-c", start, *scripts, "--folder", folder / "out"]
        done = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, timeout=60)
        return done, folder / "out"

    def test_each_runs_as_a_script_at_its_smallest_size(self, run):
        assert (run[1] / "fine.txt").read_text().strip() == "__main__ ['--smoke']"
        assert "5 benchmarks run" in run[0].stdout

    def test_those_that_fail_are_named_with_their_output(self, run):
        assert run[0].returncode == 1
        failed = [line for line in run[0].stdout.splitlines() if "has failed:" in line]
        assert sorted(Path(line.split()[0]).stem for line in failed) == [
            "killed", "raises", "refuses",
        ]  # fmt: skip
        assert "ValueError: no such table" in run[0].stdout
        assert "give a folder" in run[0].stdout
