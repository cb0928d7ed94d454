"""On a cluster of two processes, of which one is killed, nothing is lost."""

import os
import signal
import sys
import threading
import time

import joblib
import pytest

from tsrnn.batch import forecast_batches
from tsrnn.data import to_polars

distributed = pytest.importorskip("distributed", reason="needs the extra dask")


@pytest.fixture
def cluster(tmp_path):
    """Return a client of two worker processes with one thread each."""
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            local_directory=tmp_path / "dask",
            silence_logs=50,
        ) as made,
        distributed.Client(made) as client,
    ):
        yield client


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="kills a worker by a signal")
def test_a_killed_worker_loses_nothing(cluster, simulate, arma, tmp_path):
    to_polars(simulate(60, 40)).write_parquet(tmp_path / "source.parquet")
    workers = cluster.run(os.getpid)
    assert len(set(workers.values())) == 2
    victim = next(iter(workers.values()))
    out = tmp_path / "out"

    def kill():
        while len(list(out.glob("forecasts/part-*.parquet"))) < 3:
            time.sleep(0.01)
        os.kill(victim, signal.SIGKILL)

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    with joblib.parallel_config(backend="dask"):
        run = forecast_batches(tmp_path / "source.parquet", arma, out=out, rows_per_batch=80)
    killer.join(timeout=10)
    assert not killer.is_alive()
    assert victim not in cluster.run(os.getpid).values()
    assert (run.n_series, run.n_failed, run.n_partitions) == (60, 0, 30)
    calm = forecast_batches(
        tmp_path / "source.parquet", arma, out=tmp_path / "calm", rows_per_batch=80
    )
    for number in range(30):
        name = f"forecasts/part-{number:05d}.parquet"
        assert (out / name).read_bytes() == (calm.path / name).read_bytes()
