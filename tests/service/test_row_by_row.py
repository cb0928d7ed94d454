"""A row at a time: what `update` with one row and `predict` do, counted."""

import pickle
from functools import partial

import numpy as np
import pandas as pd
import pytest
from statsmodels.tsa.exponential_smoothing.ets import ETSModel
from statsmodels.tsa.statespace import sarimax
from threadpoolctl import ThreadpoolController
from torch.utils._python_dispatch import TorchDispatchMode

from tsrnn import CCC, GARCH, ParaRNNForecaster
from tsrnn.baselines import SARIMAX, Naive, StatsmodelsETS
from tsrnn.data._frequency import Months
from tsrnn.linear.garch._density import Normal
from tsrnn.linear.garch._specification import Model

H, FITTED, ROWS = 6, 120, 130
MONTHS = pd.date_range("2015-01-01", periods=ROWS, freq="MS")
Y = np.cumsum(np.random.default_rng(0).normal(size=(ROWS, 2)), axis=0)
WIDE = pd.DataFrame(Y[:, :1], MONTHS, columns=["y"])
LONG = WIDE.rename_axis("ds").reset_index().assign(unique_id="a")
TWO = pd.DataFrame(np.diff(Y, axis=0, prepend=0.0), MONTHS, columns=["y", "z"])


def stream(model, frame):
    """Update with a row and forecast, row after row; the first rows are for what is kept."""
    model.fit(frame[:FITTED])
    for i in range(FITTED, FITTED + 2):
        model.update(frame[i : i + 1]).predict(H, level=80)
    parts = [frame[i : i + 1] for i in range(FITTED + 2, ROWS)]
    yield
    for part in parts:
        model.update(part).predict(H, level=80)


def calls(monkeypatch, of, name, work):
    """Number of calls of a function while something is done."""
    original, seen = getattr(of, name), []

    def counted(*args, **kwargs):
        seen.append(name)
        return original(*args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(of, name, counted)
        work()
    return len(seen)


def calls_a_row(monkeypatch, of, name, model, frame):
    steps = stream(model, frame)
    next(steps)
    return calls(monkeypatch, of, name, partial(list, steps)) / (ROWS - FITTED - 2)


class TestFrames:
    @pytest.mark.parametrize(("frame", "most"), [(WIDE, 1), (LONG, 3)], ids=["wide", "long"])
    def test_one_frame_is_made_and_a_column_taken_once(self, monkeypatch, frame, most):
        made = partial(calls_a_row, monkeypatch, model=Naive(), frame=frame)
        assert made(pd.DataFrame, "__init__") == 1
        assert made(pd.DataFrame, "__getitem__") == most  # of it, time and ids
        assert made(pd.DataFrame, "drop") == 0

    def test_the_calendar_is_counted_once_a_stretch(self, monkeypatch):
        assert calls_a_row(monkeypatch, Months, "advance", Naive(), WIDE) == 0

    def test_two_streams_of_one_frequency(self):
        one, other = Naive().fit(WIDE[:FITTED]), Naive().fit(WIDE[: FITTED - 30])
        for i in range(8):
            one.update(WIDE[FITTED + i : FITTED + i + 1])
            other.update(WIDE[FITTED - 30 + i : FITTED - 29 + i])
            for model, last in ((one, FITTED + i), (other, FITTED - 30 + i)):
                index = model.predict(H).index
                expected = pd.date_range(MONTHS[last], periods=H + 1, freq="MS")[1:]
                pd.testing.assert_index_equal(index, expected, exact="equiv", check_names=False)
                assert index.freq == expected.freq


class Dispatched(TorchDispatchMode):
    """Number of operations of torch."""

    count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += 1
        return func(*args, **(kwargs or {}))


class TestNetworks:
    @pytest.fixture
    def model(self):
        model = ParaRNNForecaster(horizon=H, hidden_size=4, max_epochs=1, refit=False)
        return model.set_params(random_state=0).fit(WIDE[:FITTED])

    def test_operations_of_a_row(self, model):
        steps = stream(model, WIDE)
        next(steps)
        with Dispatched() as mode:
            list(steps)
        assert mode.count / (ROWS - FITTED - 2) < 150

    def test_the_window_of_an_update_is_that_of_the_forecast(self, model):
        earlier = model.update(WIDE[FITTED : FITTED + 1]).state_
        before = model.fitted_.forecast(earlier, H, [80], None)
        model.update(WIDE[FITTED + 1 : FITTED + 2])
        again = model.fitted_.forecast(earlier, H, [80], None)
        for name, values in before.items():
            np.testing.assert_array_equal(again[name], values)
        copied = pickle.loads(pickle.dumps(model))  # which has no window
        pd.testing.assert_frame_equal(copied.predict(H, level=80), model.predict(H, level=80))

    def test_states_are_ordinary_tensors(self, model):
        model.update(WIDE[FITTED : FITTED + 1])
        assert not model.state_.hidden.is_inference()


class TestClassicalModels:
    @pytest.mark.parametrize("vol", ["garch", "egarch"])
    def test_innovations_are_drawn_once(self, monkeypatch, vol):
        model = GARCH(vol=vol, horizon=H, random_state=0)
        assert calls_a_row(monkeypatch, Normal, "draw", model, TWO[["y"]]) == 0

    def test_many_paths_are_not_kept(self, monkeypatch):
        model = GARCH(horizon=H, random_state=0, n_simulations=50_000)
        assert calls_a_row(monkeypatch, Normal, "draw", model, TWO[["y"]]) == 1

    @pytest.mark.parametrize("model", [GARCH(target="y", horizon=H), CCC(horizon=H)], ids=repr)
    def test_the_cell_is_made_once(self, monkeypatch, model):
        frame = TWO if isinstance(model, CCC) else TWO[["y"]]
        assert calls_a_row(monkeypatch, Model.cell, "func", model, frame) == 0


class TestBaselines:
    def test_a_state_space_is_built_once_a_forecast(self, monkeypatch):
        model = SARIMAX((1, 0, 0), trend="c", horizon=H)
        assert calls_a_row(monkeypatch, sarimax.SARIMAX, "__init__", model, WIDE) == 1

    def test_smoothing_has_no_standard_errors(self, monkeypatch):
        assert calls_a_row(monkeypatch, ETSModel, "loglike", StatsmodelsETS(horizon=H), WIDE) == 1

    def test_the_libraries_with_threads_are_looked_for_once(self, monkeypatch):
        model = SARIMAX((1, 0, 0), horizon=H)
        assert calls_a_row(monkeypatch, ThreadpoolController, "__init__", model, WIDE) == 0
