"""Several processes train as one with a batch as large as all of theirs."""

import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from lightning.pytorch.callbacks import Callback

from tsrnn import ParaRNNForecaster
from tsrnn.interpret import FeatureHistory
from tsrnn.training import checked_processes

SCRIPT = """
import os
import sys

import test_ddp
import torch

if __name__ == "__main__":
    strategy, out = sys.argv[1:]
    threads, port = torch.get_num_threads(), os.environ.get("MASTER_PORT")
    history = test_ddp.FeatureHistory()
    model = test_ddp.fitted(batch_size=2, strategy=strategy, devices=2, callbacks=[history])
    assert torch.get_num_threads() == threads
    assert "OMP_NUM_THREADS" not in os.environ
    assert strategy == "ddp" or os.environ.get("MASTER_PORT") == port
    rank = os.environ.get("LOCAL_RANK", "0")
    test_ddp.store(f"{out}/{rank}.npz", model)
    history.frame.to_pickle(f"{out}/{rank}.pkl")
"""


def panel():
    """Return a frame of 80 series, of a recurrence that is not linear."""
    noise = np.random.default_rng(0).normal(size=(40, 80))
    y = np.zeros_like(noise)
    for t in range(1, len(y)):
        y[t] = 0.9 * np.tanh(2 * y[t - 1]) + 0.1 * noise[t]
    return pd.DataFrame({
        "unique_id": np.repeat(np.arange(80), 40),
        "ds": np.tile(np.arange(40), 80),
        "y": y.T.ravel(),
    })  # fmt: skip


def fitted(**arguments):
    # All segments are as long, and 80 / 2 batches are as many steps for two processes as
    # 80 / 4 for one: the mean of the two mean losses is the mean loss of both.
    model = ParaRNNForecaster(
        horizon=3, input_size=8, hidden_size=8, n_layers=1, linear_path=False, max_epochs=2,
        random_state=0, freq=1, **arguments,
    )  # fmt: skip
    return model.fit(panel())


def contents(model):
    forecast = model.predict(3, level=[80])
    return {
        "weights": np.concatenate([p.detach().numpy().ravel() for p in model.model_.parameters()]),
        "forecast": forecast.drop(columns=["unique_id", "ds"]).to_numpy(),
        "history": pd.DataFrame(model.history_).to_numpy(),
        "best": np.array(model.best_epoch_),
    }


def store(path, model):
    np.savez(path, **contents(model))


@pytest.fixture(scope="module")
def alone():
    """Contents of the forecaster trained by one process, and how its features went."""
    history = FeatureHistory()
    return contents(fitted(batch_size=4, callbacks=[history])) | {"features": history.frame}


fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")


def run(strategy, folder):
    """Run the script; return what each process found, and what was printed."""
    (folder / "script.py").write_text(SCRIPT)
    kept = {k: v for k, v in os.environ.items() if k not in ("OMP_NUM_THREADS", "MASTER_PORT")}
    done = subprocess.run(
        [sys.executable, "script.py", strategy, "."], cwd=folder, capture_output=True, text=True,
        env=kept | {"PYTHONPATH": os.path.dirname(__file__)}, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = [np.load(path) for path in sorted(folder.glob("*.npz"))]
    return found, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("strategy", "scripts"),
    [
        pytest.param("ddp", 2, marks=pytest.mark.slow),
        pytest.param("ddp_spawn", 1, marks=pytest.mark.slow),
        pytest.param("ddp_fork", 1, marks=[fork, pytest.mark.slow]),
    ],
)
def test_is_one_process_with_twice_the_batch(tmp_path, alone, strategy, scripts):
    found, printed = run(strategy, tmp_path)
    assert printed == ""
    assert len(found) == scripts
    for each in found:
        assert 0 < each["best"] == alone["best"]
        np.testing.assert_allclose(each["weights"], alone["weights"], rtol=0, atol=1e-5)
        np.testing.assert_allclose(each["forecast"], alone["forecast"], rtol=0, atol=1e-5)
        np.testing.assert_allclose(each["history"], alone["history"], rtol=1e-4)
        for name, values in each.items():
            np.testing.assert_array_equal(values, found[0][name])
    wanted = alone["features"]
    for path in tmp_path.glob("*.pkl"):
        came_back = pd.read_pickle(path)
        assert came_back["training"].unique().tolist() == wanted["training"].unique().tolist()
        assert came_back.columns.tolist() == wanted.columns.tolist()
        np.testing.assert_array_equal(came_back["epoch"], wanted["epoch"])
        np.testing.assert_allclose(came_back["modulus"], wanted["modulus"], rtol=0, atol=1e-4)


@fork
def test_one_process_may_have_a_strategy(alone):
    same = contents(fitted(batch_size=4, strategy="ddp_fork", devices=1))
    np.testing.assert_allclose(same["weights"], alone["weights"], rtol=0, atol=1e-6)


class Epochs(Callback):
    """Count epochs, some of them in attributes that are no state."""

    def __init__(self):
        self.count, self.private, self.shape = 0, 0, None

    def on_train_epoch_end(self, trainer, pl_module):
        self.count, self.private = self.count + 1, self.private + 1

    def state_dict(self):
        return {"count": self.count, "table": pd.DataFrame({"count": [self.count]})}

    def load_state_dict(self, state_dict):
        self.count, self.shape = state_dict["count"], state_dict["table"].shape


class Stateless(Callback):
    def load_state_dict(self, state_dict):
        raise AssertionError("it has no state")


@fork
def test_the_state_of_callbacks_comes_back_and_nothing_else():
    epochs = Epochs()
    callbacks = [Stateless(), epochs]
    model = fitted(batch_size=2, strategy="ddp_fork", devices=2, callbacks=callbacks)
    assert epochs.count == len(model.history_) + model.best_epoch_
    assert (epochs.private, epochs.shape) == (0, (1, 1))


@fork
def test_a_training_that_diverges_says_so_in_this_process():
    with pytest.raises(FloatingPointError, match=r"training diverged: the loss was nan in epoch"):
        fitted(learning_rate=1e15, local_level=False, strategy="ddp_fork", devices=2)


@pytest.mark.parametrize(
    ("arguments", "error", "expected"),
    [
        ({"strategy": "dpp"}, ValueError, "strategy must be None or one of ['ddp', "),
        ({"strategy": 2}, ValueError, "got 2"),
        ({"strategy": "ddp", "devices": 0}, ValueError, "devices"),
        ({"strategy": "ddp", "devices": 1.5}, TypeError, "devices"),
        ({"devices": 2}, ValueError, "devices=2 needs a strategy: 'ddp' in a script"),
        ({"strategy": "ddp", "device": "cuda:1"}, ValueError, "Use device='cuda'"),
    ],
)
def test_refusals(arguments, error, expected):
    with pytest.raises(error) as caught:
        checked_processes(**({"strategy": None, "devices": None, "device": "cpu"} | arguments))
    assert expected in str(caught.value)


def test_are_refused_before_anything_is_trained(monkeypatch):
    monkeypatch.setattr("tsrnn.forecasters._fit.estimate", pytest.fail)
    with pytest.raises(ValueError, match="needs a strategy"):
        fitted(devices=2)
