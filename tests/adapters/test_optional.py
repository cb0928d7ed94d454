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


@pytest.mark.slow
def test_hierarchies_need_the_library_for_its_reconcilers_alone():
    code = """
import numpy as np, pandas as pd
from tsrnn import hierarchy
from tsrnn.baselines import Mean

class Reconciler:
    def fit_predict(self):
        pass

days = np.arange(40) // 2
frame = pd.DataFrame({"all": "all", "store": [*"ab"] * 20, "ds": days, "y": range(40)})
spec = [["all"], ["all", "store"]]
print(len(hierarchy.reconcile(Mean(), frame, spec, h=1)))
try:
    hierarchy.reconcile(Mean(), frame, spec, h=1, method=Reconciler())
except ImportError as error:
    print(error)
"""
    assert run(code).splitlines() == [
        "3",
        "a reconciler in the place of a name needs hierarchicalforecast: "
        "pip install 'tsrnn[hierarchy]'",
    ]


def test_nothing_is_loaded_unasked():
    code = "import sys, tsrnn; tsrnn.sktime, tsrnn.tuning; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"sktime", "optuna", "torch"} & set(done.stdout.split())
