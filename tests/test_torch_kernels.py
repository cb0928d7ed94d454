"""What rests on matrix products of torch, with those of other processors."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TESTS = (
    "tests/layers/test_lem.py::test_it_satisfies_what_every_recurrent_module_does",
    "tests/erm/test_estimators.py::test_predictions_do_not_depend_on_the_samples_beside_them[rnn]",
    "tests/erm/test_scikit_learn.py",
)
CHECKS = "not scikit_learn or subset_invariance"  # of those of scikit-learn the one that may differ


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="torch has one kind here")
@pytest.mark.parametrize("capability", ["avx2", "default"])
def test_products_of_other_processors(capability):
    options = ("-q", "-x", "-p", "no:cacheprovider", "-k", CHECKS)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *TESTS],
        cwd=ROOT,
        env=os.environ
        | {
            "ATEN_CPU_CAPABILITY": capability,
            "MKL_ENABLE_INSTRUCTIONS": "AVX2" if capability == "avx2" else "SSE4_2",
            "ONEDNN_MAX_CPU_ISA": "AVX2" if capability == "avx2" else "SSE41",
            "OMP_NUM_THREADS": "1",
        },
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
