"""Backends of joblib, those included that give all results at the end only."""

import os
import select
import signal
from pathlib import Path

import joblib
import pandas as pd
import pytest
from joblib._parallel_backends import ThreadingBackend

from tsrnn.batch import forecast_batches
from tsrnn.data import to_polars

FORKS = pytest.mark.skipif(
    not hasattr(os, "fork") or not Path("/proc/self/task").is_dir(),
    reason="about forks, and threads as Linux lists them",
)


class AtTheEnd(ThreadingBackend):
    """Threads whose results cannot be had one by one, as of Ray."""

    supports_return_generator = False


@pytest.fixture(scope="module")
def expected(panel, arma, tmp_path_factory):
    """Return the forecasts of this process."""
    out = tmp_path_factory.mktemp("alone")
    return forecast_batches(panel, arma, out=out, rows_per_batch=200).forecasts()


@pytest.fixture(params=["threading", "at the end", "ray"])
def backend(request):
    """Give the name of a backend that is registered."""
    if request.param == "ray":
        ray = pytest.importorskip("ray")
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
        pytest.importorskip("ray.util.joblib").register_ray()
        yield request.param
        ray.shutdown()
    else:
        joblib.register_parallel_backend("at the end", AtTheEnd)
        yield request.param


def test_forecasts_are_those_of_one_process(panel, arma, backend, expected, tmp_path):
    with joblib.parallel_config(backend=backend):
        run = forecast_batches(panel, arma, out=tmp_path, rows_per_batch=200, n_jobs=2)
    assert (run.n_series, run.n_failed, run.n_partitions) == (24, 0, 5)
    pd.testing.assert_frame_equal(run.forecasts(), expected)


def test_an_error_of_the_iterator_comes_through_at_the_end(panel, arma, tmp_path):
    def frames():
        yield panel[:400]
        raise OSError("the database is gone")

    joblib.register_parallel_backend("at the end", AtTheEnd)
    with joblib.parallel_config(backend="at the end"), pytest.raises(OSError, match="is gone"):
        forecast_batches(frames(), arma, out=tmp_path, n_jobs=2)
    assert len(list(Path(tmp_path / "forecasts").iterdir())) == 1


@FORKS
def test_workers_that_are_forked_are_refused(panel, arma, tmp_path, monkeypatch):
    monkeypatch.setenv("JOBLIB_START_METHOD", "fork")  # the default up to Python 3.13
    with (
        joblib.parallel_config(backend="multiprocessing"),
        pytest.raises(ValueError, match=r"'multiprocessing' .* Use the backend 'loky'"),
    ):
        forecast_batches(panel, arma, out=tmp_path, n_jobs=2)


@FORKS
@pytest.mark.parametrize("kind", ["frame", "file"])
def test_polars_is_refused_in_a_fork_after_it_was_used(panel, arma, expected, kind, tmp_path):
    table, path = to_polars(panel), tmp_path / "all.parquet"
    table.write_parquet(path)
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            arma.fit(table if kind == "frame" else path)
        except Exception as error:
            os.write(write, repr(error).encode())
        os._exit(0)
    os.close(write)
    answered, _, _ = select.select([read], [], [], 60)
    if not answered:
        os.kill(child, signal.SIGKILL)
    said = os.read(read, 1000).decode()
    os.close(read)
    os.waitpid(child, 0)
    assert said.startswith("RuntimeError")
    assert "forked after polars had started its threads" in said
    assert "'spawn' or 'forkserver'" in said
