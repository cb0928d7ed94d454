"""Benchmarks use public names, have a smallest run, and keep results that their pages print."""

import ast
import importlib
import json
import math
import re
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"
SCRIPTS = sorted(path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*.py"))
# These measure what has no public name: passes of a solver, null distributions, kernels of a GPU,
# likelihoods that a random start climbs.
INSIDE = {path.name for path in FOLDER.glob("_starts_*.py")} | {
    "_gpu_bench.py", "_gpu_rows.py", "_recurrences.py",
    "_timing.py", "block_size.py", "gpu_static.py", "linearity.py", "lyapunov.py", "newton.py",
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


@pytest.mark.parametrize(
    "name",
    [name for name in SCRIPTS if not name.startswith(("_", "prior/"))],  # these need files
)
def test_every_script_has_a_smallest_run(name):
    source = (FOLDER / name).read_text("utf-8")
    assert re.search(r"read_(run_)?options\(", source) or '"--smoke"' in source


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


@pytest.fixture(scope="module")
def runs():
    """Return the module that keeps results."""
    sys.path.insert(0, str(FOLDER))  # scripts import each other by their names alone
    try:
        return importlib.import_module("_runs")
    finally:
        sys.path.remove(str(FOLDER))
        for name in ("_runs", "_timing"):
            sys.modules.pop(name, None)


class TestKeptRuns:
    """A table of results has a line a run."""

    def test_only_missing_keys_are_run_in_order(self, runs, tmp_path, capsys):
        file, called = tmp_path / "deep" / "table.jsonl", []

        def run(key):
            called.append(key)
            return {"error": math.inf if key["n"] == 2 else 0.5, "by step": [1, math.nan]}

        keys = [{"n": n, "size": (2, None)} for n in (1, 2, 3)]
        options = Namespace(results=file, minutes=math.inf, print_only=False)
        runs.run_all(options, keys[:2], run)
        runs.run_all(options, keys, run)
        runs.run_all(Namespace(**vars(options) | {"print_only": True}), [{"n": 5}], run)
        assert [key["n"] for key, _ in runs.kept_results(options, [*keys, {"n": 5}])] == [1, 2, 3]
        assert [key["n"] for key in called] == [1, 2, 3]
        assert runs.read_result(file, keys[0])["error"] == 0.5
        second = runs.read_result(file, keys[1])
        assert math.isnan(second["error"])
        assert math.isnan(second["by step"][1])
        assert runs.read_result(file, {"n": 4, "size": (2, None)}) is None
        lines = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
        assert [line["key"]["size"] for line in lines] == [[2, None]] * 3
        assert lines[1]["result"]["error"] is None
        assert set(lines[0]) == {"key", "result", "machine", "commit", "versions", "date"}

    def test_a_later_line_replaces_an_earlier_one(self, runs, tmp_path):
        file = tmp_path / "table.jsonl"
        for value in (1, 2):
            runs.append_run(file, {"a": 1, "b": 2}, {"value": value})
        assert runs.read_result(file, {"b": 2, "a": 1})["value"] == 2
        assert len(runs.read_runs(file)) == 1

    def test_nothing_is_kept_of_a_run_that_fails(self, runs, tmp_path):
        def fail(key):
            raise KeyboardInterrupt

        file = tmp_path / "table.jsonl"
        options = Namespace(results=file, minutes=math.inf, print_only=False)
        with pytest.raises(KeyboardInterrupt):
            runs.run_all(options, [{"n": 1}], fail)
        assert not list(tmp_path.iterdir())

    @pytest.mark.parametrize(
        "damaged",
        ["{", '{"key": {"n": 2}}\n', "[]\n", '{"key": {"n": 2}, "result": {}, "machine": "a", '],
    )
    def test_a_damaged_line_is_named(self, runs, tmp_path, damaged):
        file = tmp_path / "table.jsonl"
        runs.append_run(file, {"n": 1}, {"value": 1})
        with file.open("a", encoding="utf-8") as stream:
            stream.write(damaged)
        with pytest.raises(ValueError, match="line 2 of .*table.jsonl is damaged"):
            runs.read_result(file, {"n": 1})

    def test_processes_append_to_one_table(self, tmp_path):
        file = tmp_path / "table.jsonl"
        start = (
            "import _runs, pathlib, sys; _runs.circumstances = lambda: {'date': '2000-01-01'}\n"
            "for i in range(200):\n"
            "    key = {'process': sys.argv[2], 'n': i}\n"
            "    _runs.append_run(pathlib.Path(sys.argv[1]), key, {'text': 'x' * 5000})"
        )
        processes = [
            subprocess.Popen([sys.executable, "-c", start, file, name], cwd=FOLDER)
            for name in ("a", "b")
        ]
        assert [process.wait(timeout=60) for process in processes] == [0, 0]
        lines = file.read_text("utf-8").splitlines()
        assert len({json.dumps(json.loads(line)["key"]) for line in lines}) == 400

    @pytest.mark.parametrize("name", sorted(p.stem for p in (FOLDER / "results").glob("*.jsonl")))
    def test_tables_of_the_repository_are_whole(self, runs, name):
        file = FOLDER / "results" / f"{name}.jsonl"
        assert (FOLDER / f"{name}.py").exists()
        assert len(runs.read_runs(file)) == len(file.read_text("utf-8").splitlines())


@pytest.mark.slow
def test_pages_print_the_kept_results():
    done = subprocess.run(
        [sys.executable, "_pages.py", "--check"], cwd=FOLDER, capture_output=True, text=True,
        timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "page", sorted(p.stem for p in (FOLDER.parent / "docs/benchmarks").iterdir())
)
def test_every_page_has_a_script(page):
    assert (FOLDER / f"{page}.py").exists()
