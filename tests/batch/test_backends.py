"""Backends of joblib, those included that give all results at the end only."""

import multiprocessing
from pathlib import Path

import joblib
import pandas as pd
import pytest
from joblib._parallel_backends import ThreadingBackend

from tsrnn.batch import forecast_batches
from tsrnn.data import to_polars

FRAMES = []
FORKS = pytest.mark.skipif(
    multiprocessing.get_start_method() != "fork" or not Path("/proc/self/task").is_dir(),
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


def batches_in_workers(panel, model, out):
    forecast_batches(panel, model, out=out, rows_per_batch=200, n_jobs=2)


def fits_in_workers(panel, model, out):
    FRAMES.append(to_polars(panel))  # no argument, which polars would send: the fork copies it
    joblib.Parallel(n_jobs=2)(joblib.delayed(fit_last)(model) for _ in range(2))


def fit_last(model):
    """Fit to the frame that was there before the fork."""
    return model.fit(FRAMES[-1]).predict(2).shape


@FORKS
@pytest.mark.parametrize("work", [batches_in_workers, fits_in_workers])
def test_forked_workers_refuse_polars_instead_of_waiting(panel, arma, expected, work, tmp_path):
    refused = r"forked after polars .* by 'spawn' or 'forkserver'"
    with (
        joblib.parallel_config(backend="multiprocessing"),
        pytest.raises(RuntimeError, match=refused),
    ):
        work(panel, arma, tmp_path)
