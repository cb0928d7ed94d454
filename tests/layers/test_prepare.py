"""`prepare` compiles all that a layer needs, seen by the machine code kept in a fresh folder."""

import json
import os
import subprocess
import sys

import pytest

CASES = [
    *(f"ParaRNN(2, {d}, 2, 2, bias={bias}, dtype=f64)" for d in (4, 12) for bias in (True, False)),
    "LEM(2, 10, 2, dt=0.7, dtype=f64)",
    "LEM(2, 10, 2, dt=0.7, block_size=2, dtype=f64)",
    "LRU(2, 12, 2, dtype=f64)",
    *(f"{kind}({d}, 12)" for kind in ("NewtonGRU", "NewtonLSTM", "NewtonBlocks") for d in (2, 12)),
]
# In a process of its own: kernels that were loaded once are not looked for in the folder.
CODE = """
import json, os, sys
from pathlib import Path
import torch
from tsrnn import layers

def kept():
    return {str(p) for p in Path(os.environ["TSRNN_CACHE_DIR"]).rglob("*") if p.is_file()}

late = {}
for case in json.loads(sys.argv[1]):
    module = eval(case, {**vars(layers), "f64": torch.float64})
    module.prepare()
    prepared = kept()
    x = torch.zeros(3, 5, module.input_size, dtype=next(module.parameters()).dtype)
    for needs_gradient in (False, True):  # of the inputs: data, or a projection of them
        module(x.requires_grad_(needs_gradient))[0].sum().backward()
        with torch.no_grad():
            module(x)
    late[case] = len(prepared), sorted(kept() - prepared)
print(json.dumps(late))
"""


@pytest.fixture(scope="module")
def late(tmp_path_factory):
    """Number of files kept after `prepare`, and those that came later, of every case."""
    folder = tmp_path_factory.mktemp("cache")
    run = subprocess.run(
        [sys.executable, "-c", CODE, json.dumps(CASES)],
        capture_output=True, text=True, check=True, timeout=600,
        env={**os.environ, "TSRNN_CACHE_DIR": str(folder)},
    )  # fmt: skip
    return json.loads(run.stdout)


@pytest.mark.parametrize("case", CASES)
def test_nothing_is_left_to_compile_after_preparing(late, case):
    count, files = late[case]
    assert count > 0
    assert files == []
