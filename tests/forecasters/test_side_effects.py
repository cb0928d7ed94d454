"""The same random state gives the same forecasts, and nothing outside is changed."""

import logging
import os
import random
import signal
import subprocess
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

MULTIVARIATE_TOO = True
SCRIPT = """
import sys
import numpy as np
import pandas as pd
from tsrnn import ParaRNNForecaster
frame = pd.read_csv("wave.csv", index_col=0, parse_dates=True)
model = ParaRNNForecaster({settings}).fit(frame)
forecast = model.predict(9).to_numpy()
np.save("forecast.npy", forecast)
"""


@pytest.fixture(scope="module")
def process(tmp_path_factory, small, wave):
    """Fit in a fresh process with all warnings shown; the folder it ran in, and its output."""
    folder = tmp_path_factory.mktemp("process")
    wave.to_csv(folder / "wave.csv")
    shown = small().get_params()
    settings = ", ".join(f"{name}={value!r}" for name, value in shown.items())
    done = subprocess.run(
        [sys.executable, "-W", "default", "-c", SCRIPT.format(settings=settings)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    return folder, done


class TestSameRandomState:
    @pytest.mark.few
    def test_twice(self, make, data, fitted_to, same):
        same(make().fit(data).predict(9), fitted_to("data").predict(9), rtol=0)

    @pytest.mark.slow
    def test_in_another_process(self, process, small, wave):
        folder, done = process
        assert done.returncode == 0, done.stderr
        here = small().fit(wave.to_frame()).predict(9).to_numpy()
        np.testing.assert_array_equal(np.load(folder / "forecast.npy"), here)

    @pytest.mark.few("ParaRNN", "ARMA", "ETS", "GARCH", "VARMA", "SARIMAX", "VAR")
    def test_in_threads_whose_filters_survive(self, make, data, single, fitted_to, same):
        frames, before = {"data": data, "single": single}, warnings.filters[:]
        names = [*frames] * 3
        with ThreadPoolExecutor(4) as pool:
            models = list(pool.map(lambda name: make().fit(frames[name]), names))
        assert warnings.filters == before
        for model, name in zip(models, names, strict=True):
            same(model.predict(9), fitted_to(name).predict(9), rtol=0)

    @pytest.mark.few
    def test_whatever_the_global_generators(self, make, single, fitted_to, same):
        expected = fitted_to("single").predict()
        torch.rand(3)
        np.random.rand(3)  # noqa: NPY002
        random.random()
        same(make().fit(single).predict(), expected, rtol=0)


@pytest.mark.where.with_args(lambda entry: entry.draws)
class TestOtherRandomStates:
    def test_none_draws_anew(self, make, single):
        one, other = (make(random_state=None).fit(single).predict() for _ in range(2))
        assert not np.array_equal(one, other)

    def test_another_seed(self, make, single, fitted_to):
        other = make(random_state=1).fit(single).predict()
        assert not np.array_equal(fitted_to("single").predict(), other)

    @pytest.mark.parametrize("kind", [np.random.default_rng, np.random.RandomState])
    def test_generators_are_drawn_from(self, make, single, kind):
        generator = kind(3)
        one, other = (make(random_state=generator).fit(single).predict() for _ in range(2))
        again = make(random_state=kind(3)).fit(single).predict()
        np.testing.assert_array_equal(one, again)
        assert not np.array_equal(one, other)


def surroundings():
    """Return what a fit must not change."""
    loggers = {
        name: (logger.level, logger.handlers[:], logger.filters[:], logger.propagate)
        for name, logger in logging.root.manager.loggerDict.items()
        if isinstance(logger, logging.Logger)
    }
    kind, keys, *rest = np.random.get_state()  # noqa: NPY002
    return {
        "torch": torch.get_rng_state().tolist(),
        "numpy": (kind, keys.tolist(), rest),
        "python": random.getstate(),
        "threads": (torch.get_num_threads(), torch.get_num_interop_threads()),
        "dtype": torch.get_default_dtype(),
        "gradients": torch.is_grad_enabled(),
        "matmul": torch.get_float32_matmul_precision(),
        "cudnn": (torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic),
        "environment": dict(os.environ),
        "signals": {name: signal.getsignal(name) for name in signal.valid_signals()},
        "hooks": (sys.excepthook, sys.displayhook, threading.excepthook),
        "running": threading.active_count(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "filters": warnings.filters[:],
        "root": (logging.root.level, logging.root.handlers[:]),
        "loggers": loggers,
    }


class TestSurroundings:
    @pytest.mark.few
    def test_are_left_alone(self, make, data, fitted_to, cut, tmp_path, monkeypatch, capfd):
        fitted_to("data")  # loads what is loaded lazily
        monkeypatch.chdir(tmp_path)
        capfd.readouterr()
        before = surroundings()
        past, future = cut(data, 6)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = make().fit(past)
            model.predict(6, level=[80])
            if hasattr(model, "predict_rolling"):
                model.predict_rolling(future)
            model.update(future).summary()
        after = surroundings()
        for name, value in before.items():
            assert after[name] == value, name
        assert [str(w.message) for w in caught] == []
        assert list(tmp_path.iterdir()) == []
        assert capfd.readouterr() == ("", "")

    def test_a_fresh_process_is_quiet(self, process):
        folder, done = process
        assert done.stdout == ""
        assert done.stderr == ""
        assert {path.name for path in folder.iterdir()} == {"wave.csv", "forecast.npy"}

    def test_the_bar_is_shown_on_request(self, small, wave, capfd):
        small(verbose=1).fit(wave)
        out, err = capfd.readouterr()
        assert "Training" in out + err
        assert "2/2" in out + err
