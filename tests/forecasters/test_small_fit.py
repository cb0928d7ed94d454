"""What a fit of a short series does once, and that Lightning's loop over batches gives the same."""

import numpy as np
import pandas as pd
import pytest
import torch
from lightning.pytorch.callbacks import Callback, EarlyStopping
from torch.overrides import TorchFunctionMode

from tsrnn import ParaRNNForecaster
from tsrnn.forecasters import _segments
from tsrnn.layers import LAYERS, shapes_only
from tsrnn.training import Epoch, _lightning, parameter_groups, train, train_for


@pytest.fixture
def series():
    rng = np.random.default_rng(0)
    values = np.sin(np.arange(90) / 2) + 0.3 * rng.normal(size=90)
    return pd.Series(values, pd.date_range("2000-01", periods=90, freq="MS"), name="y")


def fit(series, **arguments):
    arguments = {"hidden_size": 8, "max_epochs": 4, "random_state": 0} | arguments
    return ParaRNNForecaster(6, linear_path=False, **arguments).fit(series)


def counted(monkeypatch, owner, name):
    calls, original = [], getattr(owner, name)

    def call(*args):
        calls.append(args)
        return original(*args)

    monkeypatch.setattr(owner, name, call)
    return calls


@pytest.mark.few("False")
@pytest.mark.parametrize("refit", [False, True])
def test_a_callback_that_looks_at_every_step_changes_nothing(series, refit):
    alone, observed = fit(series, refit=refit), fit(series, refit=refit, callbacks=[Callback()])
    assert alone.history_ == observed.history_
    assert alone.best_epochs_ == observed.best_epochs_
    pd.testing.assert_frame_equal(
        pd.DataFrame(alone.predict()), pd.DataFrame(observed.predict()), check_exact=True
    )


@pytest.mark.slow
def test_patience_is_that_of_the_callback_of_lightning(series):
    stopped = fit(series, max_epochs=40, patience=2, refit=False)
    stopping = EarlyStopping("val_loss", patience=2)
    expected = fit(series, max_epochs=40, patience=40, refit=False, callbacks=[stopping])
    assert len(stopped.history_) < 40
    assert stopped.history_ == expected.history_


def test_lightning_takes_an_epoch_for_one_step(series, monkeypatch):
    steps = counted(monkeypatch, _lightning.Task, "training_step")
    model = fit(series, refit=False)
    assert len(steps) == len(model.history_)


def test_a_batch_that_stays_the_same_is_gathered_once(series, monkeypatch):
    gathered = counted(monkeypatch, _segments.StepData, "of")
    origins = counted(monkeypatch, _segments.Origins, "of")
    fit(series, refit=False)
    assert len(gathered) == 1
    assert len(origins) == 2  # those of the batch and those of the validation part


class Lines(Epoch):
    """Two batches of points on a line."""

    def __init__(self):
        self.generator = torch.Generator().manual_seed(0)

    def __len__(self):
        return 2

    def batches(self):
        x = torch.rand(20, 1, generator=self.generator)
        yield from ((half, 100 * half) for half in x.split(10))


def slope(callbacks, trained):
    model = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.ones_(model.weight)
    groups = parameter_groups(model, [], learning_rate=0.5, weight_decay=0.1)

    def loss(batch):
        return (model(batch[0]) - batch[1]).square().mean()

    def validate():
        return abs(float(model.weight.detach()) - 2)

    result = trained(model, Lines(), loss=loss, validate=validate, groups=groups, cb=callbacks)
    return float(model.weight.detach()), result


@pytest.mark.parametrize("callbacks", [[], [Callback()]], ids=["alone", "with a callback"])
def test_long_gradients_are_clipped_as_torch_does(callbacks):
    def planned(model, epoch, *, cb, validate, **task):
        train_for(model, epoch, rates=[0.5, 0.1, 0.2], callbacks=cb, **task)

    model = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.ones_(model.weight)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.5, weight_decay=0.1)
    batches = Lines()
    for rate in (0.5, 0.1, 0.2):
        optimizer.param_groups[0]["lr"] = rate
        for x, y in batches:
            optimizer.zero_grad()
            (model(x) - y).square().mean().backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
    weight, _ = slope(callbacks, planned)
    assert weight == pytest.approx(float(model.weight.detach()), rel=1e-6)


@pytest.mark.parametrize("callbacks", [[], [Callback()]], ids=["alone", "with a callback"])
def test_a_validation_error_that_is_not_finite_ends_a_training_with_patience(callbacks):
    def impatient(model, epoch, *, cb, validate, **task):
        errors = iter([3.0, 2.0, float("nan"), 1.0, 1.0])
        return train(
            model, epoch, validate=lambda: next(errors), max_epochs=4, patience=3, callbacks=cb,
            **task,
        )  # fmt: skip

    _, (history, best_epoch) = slope(callbacks, impatient)
    assert (len(history), best_epoch) == (2, 1)


class Draws(TorchFunctionMode):
    """Counts draws of random numbers."""

    count = 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.count += func in (torch.Tensor.uniform_, torch.Tensor.normal_, torch.randn)
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("name", LAYERS)
def test_shapes_are_built_without_a_draw(name):
    with shapes_only(), Draws() as draws:
        layer = LAYERS[name](8, 8)
        torch.nn.Linear(8, 8)
    assert all(parameter.is_meta for parameter in layer.parameters())
    assert draws.count == 0
