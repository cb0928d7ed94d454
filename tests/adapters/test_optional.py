"""What tsrnn does where sktime, optuna or hierarchicalforecast are not there."""

import subprocess
import sys

import pytest

BLOCKED = """
import sys
from importlib.abc import MetaPathFinder

class Absent(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("sktime", "optuna", "hierarchicalforecast"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
"""


def run(code):
    """Return what the code prints in a fresh interpreter without these."""
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED + code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_rooms_are_there():
    names = run("import tsrnn; print(*tsrnn.sktime.__all__, *tsrnn.tuning.__all__)").split()
    assert {"ParaRNNForecaster", "TsrnnForecaster", "suggest", "objective"} <= set(names)


@pytest.mark.parametrize(
    "line", ["from tsrnn.sktime import ParaRNNForecaster", "tsrnn.sktime.ParaRNNForecaster"]
)
def test_the_adapter_says_what_to_install(line):
    said = run(f"import tsrnn\ntry:\n    {line}\nexcept ImportError as error:\n    print(error)")
    assert said == "tsrnn.sktime.ParaRNNForecaster needs sktime: pip install 'tsrnn[sktime]'"


def test_hierarchies_say_what_to_install():
    code = """
from tsrnn import Croston, hierarchy
try:
    hierarchy.reconcile(Croston(), None, [])
except ImportError as error:
    print(error)
"""
    assert run(code) == (
        "tsrnn.hierarchy.reconcile needs hierarchicalforecast: pip install 'tsrnn[hierarchy]'"
    )


def test_nothing_is_loaded_unasked():
    code = "import sys, tsrnn; tsrnn.sktime, tsrnn.tuning; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"sktime", "optuna", "torch"} & set(done.stdout.split())
