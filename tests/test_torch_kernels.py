"""What rests on matrix products of torch, with those of other processors."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tsrnn.erm import ParaRNNClassifier, ParaRNNRegressor

ROOT = Path(__file__).parents[1]
PROGRAM = """
import runpy, sys
from functools import partial
import numpy as np, torch
from numpy.testing import assert_allclose
import tsrnn

capability, folder = sys.argv[1:]
assert torch.backends.cpu.get_cpu_capability() == capability
for name, rounding in (("rnn", 1e-12), ("regressor", 1e-7), ("classifier", 1e-7)):
    model, X = tsrnn.load(f"{folder}/{name}.tsrnn"), np.load(f"{folder}/{name}.npy")
    for method in ("predict", "predict_proba"):
        if predict := getattr(model, method, None):
            alone = np.concatenate([predict(x[None]) for x in X])
            assert_allclose(alone, predict(X), rtol=0, atol=rounding, err_msg=f"{name}.{method}")
layers = runpy.run_path("tests/layers/test_recurrent.py")
close = partial(torch.testing.assert_close, rtol=0, atol=1e-10)
for name in layers["LAYERS"]:
    layer = layers["drawn"](name)
    for cut in (1, 4, 8):
        layers["test_two_parts_are_the_whole"](name, layer, cut, close)
    for test in ("test_a_sequence_without_a_batch", "test_lengths"):
        layers[test](layer, close)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Regressors and a classifier fitted on this processor, each with samples to predict."""
    folder = tmp_path_factory.mktemp("products")
    small = {"learning_rate": 0.02, "random_state": 0}
    sequences = np.random.default_rng(0).normal(size=(40, 5, 2))
    rows = 3 * np.random.RandomState(0).uniform(size=(20, 3))
    rnn = ParaRNNRegressor(cell="rnn", hidden_size=24, max_epochs=3, **small)
    for name, model, X, y in (
        ("rnn", rnn, sequences, sequences[:, -1, 0]),
        ("regressor", ParaRNNRegressor(hidden_size=8, max_epochs=10, **small), rows, rows[:, 0]),
        (
            "classifier",
            ParaRNNClassifier(hidden_size=8, max_epochs=10, **small),
            rows,
            rows[:, 0].astype(int),
        ),
    ):
        model.fit(X, y).save(folder / f"{name}.tsrnn")
        np.save(folder / f"{name}.npy", X)
    return folder


@pytest.mark.slow
@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="torch has one kind here")
@pytest.mark.parametrize("capability", ["avx2", "default"])
def test_products_of_other_processors(capability, folder):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, capability.upper(), str(folder)],
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
    assert done.returncode == 0, done.stderr
