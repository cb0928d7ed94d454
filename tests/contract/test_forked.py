"""What is fitted in a process is fitted in its forked children, too."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("_forked.py")


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts threads as Linux does")
def test_every_class_is_fitted_in_forked_children(contract):
    # Threads that wait without spinning leave the cores to other tests.
    environment = os.environ | {"OMP_WAIT_POLICY": "passive"}
    environment.pop("OMP_NUM_THREADS", None)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", SCRIPT],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        env=environment,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    fitted = [f"python {name}" for name in contract.examples]
    assert done.stdout.splitlines() == [*fitted, "system ETS", "system ParaRNNForecaster"]
