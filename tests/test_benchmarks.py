"""Benchmarks use public names, and each has a smallest run, which `make bench-smoke` makes."""

import ast
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"
SCRIPTS = sorted(path.name for path in FOLDER.glob("*.py"))
# These measure what has no public name: passes of a solver, null distributions, kernels of a GPU,
# likelihoods that a random start climbs.
INSIDE = {path.name for path in FOLDER.glob("_starts_*.py")} | {
    "_gpu_bench.py", "_gpu_figures.py", "_gpu_peers.py", "_gpu_rows.py", "_recurrences.py",
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
