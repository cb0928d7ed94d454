"""A run that is killed at any moment and begun again ends as one that was not disturbed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tsrnn.batch import forecast_batches
from tsrnn.data import to_polars

SCRIPT = Path(__file__).with_name("_killed.py")
KILLS = int(os.environ.get("TSRNN_KILLS", 8))


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills children that are made by fork")
def test_kills_leave_the_same_bytes(broken, arma, simulate, tmp_path):
    more = simulate(15 * KILLS, 40, seed=2)  # more work than is done before the last kill
    more["unique_id"] = "t" + more["unique_id"]
    table = to_polars(broken).vstack(to_polars(more))
    table.write_parquet(tmp_path / "source.parquet")
    arguments = [tmp_path / "source.parquet", tmp_path / "killed", str(KILLS), "0"]
    done = subprocess.run(
        [sys.executable, SCRIPT, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    killed, at_files, finished = map(int, done.stdout.split())
    assert killed >= KILLS
    assert at_files >= KILLS // 4
    assert finished == 1
    calm = forecast_batches(
        tmp_path / "source.parquet", arma, level=80, out=tmp_path / "calm", rows_per_batch=80
    )
    assert contents(tmp_path / "killed") == contents(calm.path)
    assert calm.n_failed == 3


def contents(folder):
    """Return the bytes of every file of a folder by its name."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}
