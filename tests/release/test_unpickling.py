"""Nothing in the package runs what a file holds."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
RUNS_CODE = {
    *("eval", "exec", "torch.load", "joblib.load", "np.load", "pd.read_pickle"),
    *(f"{module}.{name}" for module in ("pickle", "marshal") for name in ("load", "loads")),
}
# What a training process sends back to the one that started it, in memory.
# Of weights alone: checkpoints of trainings.
ALLOWED = {
    ("tsrnn/training/_lightning.py", "torch.load"),
    ("tsrnn/prior/_training.py", "torch.load"),
    # Of arrays alone, with allow_pickle=False.
    ("datasets/_images.py", "np.load"),
}


def calls(text):
    """Dotted names of the functions that are called."""
    return {ast.unparse(n.func) for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Call)}


def test_no_file_of_the_package_unpickles():
    paths = [p for room in ("tsrnn", "kernels", "datasets") for p in (ROOT / room).rglob("*.py")]
    found = {
        (path.relative_to(ROOT).as_posix(), name)
        for path in paths
        for name in calls(path.read_text(encoding="utf-8")) & RUNS_CODE
    }
    assert found == ALLOWED


def test_such_calls_are_found():
    assert calls("x = np.load(path)\nf(exec)(eval('1'))") & RUNS_CODE == {"np.load", "eval"}
