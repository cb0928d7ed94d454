"""Replicates trained in one pass, against each trained by itself."""

import copy
from typing import NamedTuple

import pytest
import torch
from torch import Tensor, nn

from tsrnn.layers import ParaRNN, RecurrentNetwork
from tsrnn.training import (
    Epoch,
    parameter_groups,
    stack_batches,
    train,
    train_for,
    train_replicates,
    train_replicates_for,
)

R, T = 5, 24


class Batch(NamedTuple):
    x: Tensor
    y: Tensor
    lengths: Tensor | None = None


class Rows(Epoch):
    """Batches of four of some sequences, drawn anew in every epoch."""

    def __init__(self, x, y, seed, steps):
        self.x, self.y, self.steps = x, y, steps
        self.generator = torch.Generator().manual_seed(seed)

    def __len__(self):
        return self.steps

    def batches(self):
        while True:
            rows = torch.randperm(len(self.x), generator=self.generator)[:4]
            yield Batch(self.x[rows], self.y[rows])


class Case:
    """Models with their data; `loss` and `validate` compute with the first of some models."""

    def __init__(self, dtype, steps=(3,) * R, noise=1.0):
        torch.manual_seed(0)
        self.models = [RecurrentNetwork(ParaRNN(1, 8, num_layers=2), 1).to(dtype) for _ in range(R)]
        for model in self.models:
            model.register_buffer("shift", torch.randn(1, dtype=dtype))
        x = torch.randn(R, 16, T, 1, dtype=dtype)
        y = x.roll(1, 2) * torch.linspace(-2, 2, R)[:, None, None, None].to(dtype)
        y = y + noise * torch.randn_like(y)
        self.epochs = [Rows(x[r, :10], y[r, :10], r, steps[r]) for r in range(R)]
        self.held_out = [Batch(x[r, 10:], y[r, 10:]) for r in range(R)]

    def copy(self):
        return copy.deepcopy(self)

    def groups(self, model, rate=0.05):
        return parameter_groups(model, model.recurrent_parameters(), rate, weight_decay=0.01)

    def loss(self, model):
        return lambda batch: (model(batch.x)[0] + model.shift - batch.y).square().mean()

    def validate(self, model, r):
        def error():
            with torch.no_grad():
                return float(self.loss(model)(self.held_out[r]))

        return error

    def one_by_one(self, rates, **kwargs):
        return [
            train(
                model, self.epochs[r], loss=self.loss(model), validate=self.validate(model, r),
                groups=self.groups(model, rates[r]), **kwargs,
            )
            for r, model in enumerate(self.models)
        ]  # fmt: skip

    def stacked_loss(self, batch):
        """Losses of all replicates, whose parameters have a first axis and sequences have none."""
        model = self.models[0]
        outputs = model(batch.x.flatten(0, 1))[0].view_as(batch.y)
        return (outputs + model.shift[:, None, None] - batch.y).square().mean((1, 2, 3))

    def in_one_pass(self, rates, stacked=False, **kwargs):
        loss = self.stacked_loss if stacked else self.loss(self.models[0])
        return train_replicates(
            self.models, self.epochs, loss=loss, validate=loss, held_out=self.held_out,
            stacked=stacked,
            groups=[self.groups(m, rate) for m, rate in zip(self.models, rates, strict=True)],
            **kwargs,
        )  # fmt: skip


def assert_same_weights(models, others, rounding):
    for r, (model, other) in enumerate(zip(models, others, strict=True)):
        for (name, p), q in zip(model.named_parameters(), other.parameters(), strict=True):
            torch.testing.assert_close(p, q, rtol=rounding, atol=rounding, msg=f"{name} of {r}")


RATES = [0.05, 0.2, 0.01, 0.1, 0.02]


@pytest.mark.few("dtype1-1e-08-3-equal", "dtype0-0.001-3-unequal")
@pytest.mark.parametrize("steps", [(3,) * R, (3, 1, 2, 3, 5)], ids=["equal", "unequal"])
@pytest.mark.parametrize("patience", [3, None])
@pytest.mark.parametrize(("dtype", "rounding"), [(torch.float32, 1e-3), (torch.float64, 1e-8)])
def test_is_training_one_by_one(dtype, rounding, patience, steps):
    alone = Case(dtype, steps)
    arguments = {"max_epochs": 30, "patience": patience}
    expected = alone.one_by_one(RATES, **arguments)
    assert len({best for _, best in expected}) > 1  # replicates end at different times
    for at_once, stacked in ((2, False), (256, False), (2, True), (256, True)):
        case = Case(dtype, steps)
        results = case.in_one_pass(RATES, stacked, at_once=at_once, **arguments)
        for (history, best_epoch), result in zip(expected, results, strict=True):
            assert result.failure is None
            assert result.best_epoch == best_epoch
            assert len(result.history) == len(history)
            for entry, other in zip(result.history, history, strict=True):
                assert entry == pytest.approx(other, rel=rounding)
        assert_same_weights(case.models, alone.models, rounding)
        for epoch, other in zip(case.epochs, alone.epochs, strict=True):
            assert torch.equal(epoch.generator.get_state(), other.generator.get_state())


def test_planned_rates_are_those_of_training_one_by_one():
    case = Case(torch.float64, (3, 1, 2, 3, 5))
    alone = case.copy()
    plans = [[0.05] * 4, [], [0.2, 0.1, 0.05], [0.01], [0.02, 0.02]]
    for r, model in enumerate(alone.models):
        train_for(
            model, alone.epochs[r], loss=alone.loss(model), groups=alone.groups(model),
            rates=plans[r],
        )  # fmt: skip
    results = train_replicates_for(
        case.models, case.epochs, loss=case.loss(case.models[0]),
        groups=[case.groups(model) for model in case.models], rates=plans,
    )  # fmt: skip
    assert [result.best_epoch for result in results] == [4, 0, 3, 1, 2]
    assert_same_weights(case.models, alone.models, 1e-9)


def test_smallest_rate_ends_a_replicate():
    case = Case(torch.float64)
    alone = case.copy()
    rates = [4e-6, 1e-7, 0.05, 0.05, 0.05]
    arguments = {"max_epochs": 25, "patience": None}
    lengths = [len(history) for history, _ in alone.one_by_one(rates, **arguments)]
    assert lengths[1] < 3  # negligible from the start
    results = case.in_one_pass(rates, **arguments)
    assert [len(result.history) for result in results] == lengths


def test_a_replicate_that_diverges_fails_alone():
    case = Case(torch.float64)
    case.epochs[2].y = case.epochs[2].y.clone()
    case.epochs[2].y[:] = torch.nan
    before = copy.deepcopy(case.models[2].state_dict())
    alone = case.copy()
    with pytest.raises(FloatingPointError) as raised:
        alone.one_by_one(RATES, max_epochs=4, patience=None)
    results = case.in_one_pass(RATES, max_epochs=4, patience=None)
    assert str(results[2].failure) == str(raised.value)
    assert results[2].best_epoch == 0
    assert [result.failure is None for result in results] == [True, True, False, True, True]
    assert all(torch.equal(before[name], v) for name, v in case.models[2].state_dict().items())
    assert_same_weights(case.models[:2], alone.models[:2], 1e-9)


def test_stopped_replicates_leave_the_stack():
    case = Case(torch.float64)
    sizes = []

    def stack(batches):
        sizes.append(len(batches))
        return stack_batches(batches)

    results = case.in_one_pass([1e-7] * 3 + [0.05] * 2, max_epochs=6, patience=None, collate=stack)
    lengths = [len(result.history) for result in results]
    assert lengths[:3] == [1, 1, 1]
    assert lengths[3:] == [6, 6]
    assert set(sizes[4:]) == {2}  # after the validation parts and the three steps of an epoch


def test_replicates_that_wait_take_the_places_of_those_that_have_ended():
    case = Case(torch.float64)
    alone = case.copy()
    plans, sizes = [[0.05] * n for n in (6, 1, 2, 1, 2)], []
    for r, model in enumerate(alone.models):
        train_for(
            model, alone.epochs[r], loss=alone.loss(model), groups=alone.groups(model),
            rates=plans[r],
        )  # fmt: skip

    def stack(batches):
        sizes.append(len(batches))
        return stack_batches(batches)

    train_replicates_for(
        case.models, case.epochs, loss=case.loss(case.models[0]), at_once=2, collate=stack,
        groups=[case.groups(model) for model in case.models], rates=plans,
    )  # fmt: skip
    assert sizes == [2] * 6 * 3  # three steps an epoch: no more epochs than the longest has
    assert_same_weights(case.models, alone.models, 1e-9)


def test_parameters_that_need_no_gradient_stay_in_their_replicate():
    case = Case(torch.float64)
    names = {1: ["output.bias"], 3: ["rnn.weight_hh_l1", "rnn.bias_l0"]}  # with and without decay
    for r, of_model in names.items():
        for name in of_model:
            case.models[r].get_parameter(name).requires_grad_(False)
    before, alone = copy.deepcopy(case.models), case.copy()
    arguments = {"max_epochs": 4, "patience": None}
    alone.one_by_one(RATES, **arguments)
    for stacked in (False, True):
        trained = case.copy()
        trained.in_one_pass(RATES, stacked, **arguments)
        assert_same_weights(trained.models, alone.models, 1e-8)
        for r, of_model in names.items():
            for name in of_model:
                kept, given = trained.models[r].get_parameter(name), before[r].get_parameter(name)
                assert torch.equal(kept, given)


def test_stacked_replicates_need_no_vmap(monkeypatch):
    case = Case(torch.float64)
    mapped = case.copy()
    arguments = {"max_epochs": 1, "patience": None}
    mapped.in_one_pass(RATES, **arguments)
    monkeypatch.setattr(torch, "vmap", None)
    results = case.in_one_pass(RATES, stacked=True, **arguments)
    assert [len(result.history) for result in results] == [1] * R
    assert_same_weights(case.models, mapped.models, 1e-8)


def test_modes_and_models_are_left_as_they_were():
    case = Case(torch.float32)
    modes = []
    loss = case.loss(case.models[0])

    def noted(batch):
        modes.append(case.models[0].training)
        return loss(batch)

    case.models[0].eval()
    train_replicates(
        case.models, case.epochs, loss=noted, validate=noted, held_out=case.held_out,
        groups=[case.groups(model) for model in case.models], max_epochs=1, patience=None,
    )  # fmt: skip
    assert modes == [False, True, True, True, False]
    assert not case.models[0].training
    assert all(isinstance(p, nn.Parameter) for p in case.models[0].parameters())


def test_models_of_another_shape_are_refused():
    case = Case(torch.float32)
    case.models[3] = RecurrentNetwork(ParaRNN(1, 4), 1)
    with pytest.raises(ValueError, match=r"models\[3\] differ"):
        case.in_one_pass(RATES, max_epochs=1, patience=None)


def test_batches_of_other_shapes_are_refused():
    case = Case(torch.float32)
    case.held_out[1] = Batch(torch.zeros(2, T, 1), torch.zeros(2, T, 1))
    with pytest.raises(ValueError, match=r"got \(2, 24, 1\) and \(6, 24, 1\)\. Pad them"):
        case.in_one_pass(RATES, max_epochs=1, patience=None)
