"""A fit depends on its arguments and data alone, and what a fitted network hands out is a copy."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone

from tsrnn import LEMForecaster, LRUForecaster, NewtonForecaster, ParaRNNForecaster, load
from tsrnn.data import read_panel
from tsrnn.forecasters import _fitted
from tsrnn.kernels import cells

SIZES = {
    "horizon": 2, "input_size": 4, "hidden_size": 8, "n_layers": 1, "max_epochs": 1,
    "linear_path": False, "random_state": 0,
}  # fmt: skip
# Arguments of a fit, and those set before the next one.
REFITS = {
    "start values": (ParaRNNForecaster, {"init": "uniform"}, {"init": None}),
    "preset": (ParaRNNForecaster, {}, {"preset": "paper"}),
    "rnn to lem": (ParaRNNForecaster, {"init": "stable"}, {"cell": "lem", "init": None}),
    "lem to rnn": (
        ParaRNNForecaster,
        {"cell": "lem", "init": "chrono", "chrono_length": 9.0},
        {"cell": "rnn", "init": None, "chrono_length": None},
    ),
    "lem, chrono": (
        ParaRNNForecaster,
        {"cell": "lem"},
        {"init": "chrono", "chrono_length": 9.0},
    ),
    "lstm to lru": (
        ParaRNNForecaster,
        {"cell": "lstm", "init": "chrono", "chrono_length": 9.0},
        {"cell": "lru", "init": None, "chrono_length": None},
    ),
    "attention": (ParaRNNForecaster, {"init": "uniform"}, {"cell": "attention", "init": None}),
    "newton": (ParaRNNForecaster, {"init": "uniform"}, {"cell": "newton-gru", "init": None}),
    "own cell": (ParaRNNForecaster, {"cell": "lem"}, {"cell": cells.para_gru(2)}),
    "LEM": (LEMForecaster, {}, {"init": "chrono", "chrono_length": 9.0, "block_size": 2}),
    "LRU": (LRUForecaster, {"mlp": False}, {"mlp": (3,), "r_min": 0.5, "state_units": 3}),
    "Newton": (NewtonForecaster, {"n_heads": 2}, {"cell": "newton-lstm", "n_heads": 4}),
}  # fmt: skip


@pytest.mark.few("start values", "rnn to lem", "lstm to lru", "own cell")
@pytest.mark.parametrize(("cls", "first", "then"), REFITS.values(), ids=REFITS)
def test_a_fit_forgets_the_arguments_of_the_one_before(wave, same, cls, first, then):
    again = cls(**SIZES, refit=False, **first).fit(wave).set_params(**then)
    fresh = clone(again).fit(wave)
    assert again.fit(wave).settings_ == fresh.settings_
    same(again.predict(level=80), fresh.predict(level=80), rtol=0)


@pytest.fixture(scope="module")
def fitted():
    rows = 10 + np.sin(np.arange(60)) + np.random.default_rng(0).normal(size=60)
    model = ParaRNNForecaster(**SIZES | {"linear_path": True}, n_estimators=2)
    return model.fit(pd.Series(rows, name="y"))


def test_a_row_is_one_step_of_a_network_copied_once(fitted, monkeypatch):
    copies = []
    step, later = _fitted.Step, pd.Series([10.0, 11.0], pd.RangeIndex(60, 62), name="y")
    monkeypatch.setattr(_fitted, "Step", lambda *parts: copies.append(parts) or step(*parts))
    monkeypatch.setattr(_fitted, "run_filter", None)  # of longer parts
    model = pickle.loads(pickle.dumps(fitted))
    for row in (later[:1], later[1:]):
        model.update(row).predict(level=80)
    assert len(copies) == 1
    assert "step" not in model.fitted_.__getstate__()


SPOIL = {
    "history_": lambda v: v[0].clear() or v.clear(),
    "best_epochs_": lambda v: v.clear(),
    "linear_path_": lambda v: v.clear(),
    "validation_": lambda v: v.insert(0, "other", 1.0),
    "sample_": lambda v: v.zero_(),
    "settings_": lambda v: v.options.clear(),
    "inactive_networks_": lambda v: v.clear(),
}


@pytest.mark.parametrize("name", SPOIL)
def test_attributes_are_copies(fitted, name):
    page, before = str(fitted.summary()), repr(getattr(fitted, name))
    SPOIL[name](getattr(fitted, name))
    assert (repr(getattr(fitted, name)), str(fitted.summary())) == (before, page)


def test_answers_are_copies(fitted):
    page = str(fitted.summary())
    for block in fitted.recurrent_blocks():
        block.zero_()
    fitted.summary().accuracy.insert(0, "other", 1.0)
    assert str(fitted.summary()) == page


@pytest.mark.parametrize("mlp", [np.int64(3), (np.int8(3), 4)])
def test_a_file_holds_widths_of_numpy(wave, tmp_path, same, mlp):
    model = LRUForecaster(**SIZES, refit=False, mlp=mlp).fit(wave)
    model.save(tmp_path / "model.tsrnn")
    same(load(tmp_path / "model.tsrnn").predict(), model.predict(), rtol=0)


@pytest.mark.parametrize("name", ["state_", "calibration_", "fitted_"])
def test_records_of_arrays_are_equal_to_themselves_alone(fitted, name):
    record = getattr(fitted, name)
    assert record == record
    assert record != copy.deepcopy(record)
    assert len({record, record}) == 1
    panel = read_panel(
        fitted._history.frame(np.arange(1), pd.Index([0]), fitted.fitted_.data.layout)
    )
    units, _ = fitted.fitted_.units(fitted.state_, panel)
    assert units != units.to(torch.float64)
    assert fitted.state_.scaling != copy.deepcopy(fitted.state_.scaling)
