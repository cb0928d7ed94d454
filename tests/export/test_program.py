"""A program computes what `predict` and `update` do, for every kind of forecaster."""

import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tsrnn import LEMForecaster, LRUForecaster, NewtonForecaster, ParaRNNForecaster
from tsrnn.export._program import Program
from tsrnn.export._verify import verify
from tsrnn.kernels import Cell

pytestmark = pytest.mark.usefixtures("plain_scan")
PARA, LEVELS = ParaRNNForecaster, [80.0, 95.0]
DECAY = Cell("decay", 1, 1, 1, lambda h, u, a: (torch.tanh(a[0] * h[0] + u[0]),))

# Class, changes of the small settings, lengths of the series fitted to.
PANELS = {
    "rnn": (PARA, {"n_layers": 2}, [80, 60]),
    "relu": (PARA, {"nonlinearity": "relu"}, [80, 60]),
    "gru": (PARA, {"cell": "gru"}, [80, 60]),
    "lstm": (PARA, {"cell": "lstm", "n_layers": 2}, [80, 60]),
    "full matrices": (PARA, {"cell": "gru", "hidden_size": 12, "block_size": 12}, [80, 60]),
    "own cell": (PARA, {"cell": DECAY}, [80, 60]),
    "LEM": (LEMForecaster, {}, [80, 60]),
    "LRU": (LRUForecaster, {"n_layers": 2}, [80, 60]),
    "Newton": (NewtonForecaster, {"n_layers": 2}, [80, 60]),
    "Newton LSTM": (NewtonForecaster, {"cell": "newton-lstm"}, [80, 60]),
    "ensemble": (PARA, {"n_estimators": 2}, [80, 60]),
    "paper": (PARA, {"preset": "paper", "intervals": "gaussian"}, [80, 60]),
    "no local level": (PARA, {"local_level": False}, [80, 60]),
    "reverts": (PARA, {"input_size": 2, "val_size": 90}, [200, 200]),
    "seasons": (PARA, {"input_size": 28}, [160, 160]),
    "logarithm": (PARA, {"use_boxcox": "log"}, [80, 60]),
    "root": (PARA, {"use_boxcox": 0.5}, [80, 60]),
    "learned quantiles": (PARA, {"intervals": "quantile", "n_estimators": 2}, [80, 60]),
    "intervals of their own": (PARA, {"val_size": 130}, [300, 280]),
    "short": (PARA, {}, [80, 60, 9]),
}


def model_of(kit, name):
    cls, changes, lengths = PANELS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of series that are too short to validate
        return cls(**kit.SMALL | {"max_epochs": 1} | changes).fit(kit.panel(lengths))


def run_of(kit, model, levels=LEVELS):
    """The program as a function, and what it carries of the series fitted to."""
    program = Program(model.fitted_, levels)
    return kit.of_arrays(program), program.memory_of(model.state_)


def nothing(memory):
    """Rows and lengths that take nothing in."""
    return {"rows": np.full((len(memory), 1, 1), np.nan), "lengths": np.zeros(len(memory), int)}


@pytest.mark.few(
    "rnn",
    "lstm",
    "LRU",
    "ensemble",
    "logarithm",
    "learned quantiles",
    "seasons",
    "short",
    "no local level",
)
@pytest.mark.parametrize("name", PANELS)
def test_forecasts_from_memory_and_from_rows(kit, name):
    model = model_of(kit, name)
    run, memory = run_of(kit, model)
    column = model.column_name
    after_fit = kit.predicted(model.predict(level=LEVELS), column, [80, 95])
    kit.assert_forecasts(run(**nothing(memory), memory=memory), after_fit)

    new = kit.panel([40, 5, 23], seed=7, name="new")
    rows, lengths = kit.padded(new, ["y"])
    empty = np.zeros((3, memory.shape[1]))
    of_new = kit.predicted(model.predict(new, level=LEVELS), column, [80, 95])
    kit.assert_forecasts(run(rows=rows, lengths=lengths, memory=empty), of_new)


def test_widths_by_the_sizes_of_the_errors_of_series(kit):
    rough = kit.panel([60] * 12)
    odd = rough["unique_id"].str[1:].astype(int) % 2 == 1
    noise = np.random.default_rng(1).normal(0, 20, len(rough))
    model = PARA(**kit.SMALL).fit(rough.assign(y=rough["y"] + noise * odd))
    assert np.nanmax(model.calibration_.sizes) > 1.2
    run, memory = run_of(kit, model)
    for frame, memory_of in ((None, memory), (kit.panel([40], 7, name="new"), memory[:1] * 0)):
        rows = nothing(memory)
        if frame is not None:
            rows = dict(zip(("rows", "lengths"), kit.padded(frame, ["y"]), strict=True))
        expected = kit.predicted(model.predict(X=frame, level=LEVELS), "ParaRNN", [80, 95])
        kit.assert_forecasts(run(**rows, memory=memory_of), expected)


@pytest.mark.few("LRU", "short")
@pytest.mark.parametrize("name", ["lstm", "LRU", "Newton", "intervals of their own", "short"])
def test_what_comes_after_is_an_update(kit, name):
    model = model_of(kit, name)
    run, memory = run_of(kit, model)
    further = kit.panel([14] * len(memory), seed=3)
    starts = dict(zip(model.state_.ids, model.state_.last_times, strict=True))
    further["ds"] = np.concatenate(
        [pd.date_range(start, periods=15)[1:] for start in starts.values()]
    )
    rows, _ = kit.padded(further, ["y"])
    model.update(further)
    expected = kit.predicted(model.predict(level=LEVELS), model.column_name, [80, 95])
    for t in range(14):
        found = run(rows=rows[:, t : t + 1], lengths=np.ones(len(memory), int), memory=memory)
        memory = found["memory_after"]
    kit.assert_forecasts(found, expected)


@pytest.mark.slow
@settings(
    deadline=None, max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.data())
def test_any_cut_of_the_rows_gives_the_same(kit, cut_model, data):
    run, size = cut_model
    total = data.draw(st.integers(2, 30))
    series = data.draw(st.integers(1, 4))
    new = kit.panel([total] * series, seed=data.draw(st.integers(0, 9)), name="new")
    rows, lengths = kit.padded(new, ["y"])
    whole = run(rows=rows, lengths=lengths, memory=np.zeros((series, size)))
    # The first part sets the scaling: give all of it, then go on from there with more rows.
    more = kit.panel([total] * series, seed=11)["y"].to_numpy().reshape(series, total, 1)
    cut = data.draw(st.integers(0, total))
    taken = run(rows=more, lengths=np.full(series, cut), memory=whole["memory_after"])
    rest = np.concatenate([more[:, cut:], np.full((series, 1, 1), np.nan)], 1)
    parts = run(rows=rest, lengths=np.full(series, total - cut), memory=taken["memory_after"])
    once = run(rows=more, lengths=np.full(series, total), memory=whole["memory_after"])
    np.testing.assert_allclose(parts["forecast"], once["forecast"], rtol=1e-6)
    np.testing.assert_allclose(parts["memory_after"], once["memory_after"], rtol=1e-4, atol=1e-5)


@pytest.fixture(scope="module")
def cut_model(kit):
    model = model_of(kit, "rnn")
    run, memory = run_of(kit, model)
    return run, memory.shape[1]


@pytest.mark.parametrize("multivariate", ["joint", "independent"])
def test_of_several_targets(kit, multivariate):
    df = kit.pair()
    changes = {"target": ["a", "b"], "known_ahead": "known", "multivariate": multivariate}
    model = PARA(**kit.SMALL | changes).fit(df)
    run, memory = run_of(kit, model, [80.0])
    days = pd.date_range(df.index[-1], periods=7)[1:]
    future = pd.DataFrame({"known": np.linspace(90, 110, 6)}, index=days)
    given = {"future": future.to_numpy()[None], "memory": memory, "lengths": np.array([0])}
    found = run(rows=np.zeros((1, 1, 3)), **given)
    expected = model.predict(level=80, X_future=future)
    np.testing.assert_allclose(found["forecast"][0], expected[["a", "b"]], rtol=1e-5)
    lower = expected[["a-lo-80", "b-lo-80"]]
    np.testing.assert_allclose(found["lower"][0, ..., 0], lower, rtol=1e-5)
    more = kit.pair(30, seed=5).set_index(pd.date_range(days[0], periods=30))
    given |= {"lengths": np.array([30]), "memory": memory}
    moved = model.update(more).predict(X_future=future.set_index(days + pd.Timedelta("30D")))
    found = run(rows=more.to_numpy()[None], **given)
    np.testing.assert_allclose(found["forecast"][0], moved[["a", "b"]], rtol=1e-5)


def test_a_constant_series_is_forecast_as_its_constant(kit):
    constant = kit.panel([60], name="constant").assign(y=0.1)
    model = PARA(**kit.SMALL).fit(pd.concat([kit.panel([60]), constant]))
    run, memory = run_of(kit, model, [80.0])
    found = run(**nothing(memory), memory=memory)
    assert (found["forecast"][1] == 0.1).all()
    assert (found["upper"][1] == 0.1).all()
    rows = np.concatenate([np.full((1, 3, 1), 0.1), [[[0.4]]], np.full((1, 20, 1), 0.7)], 1)
    given = {"rows": rows, "lengths": np.array([24]), "memory": memory[1:]}
    days = pd.date_range(constant.ds.iloc[-1], periods=25)[1:]
    further = pd.DataFrame({"unique_id": "constant0", "ds": days, "y": rows[0, :, 0]})
    expected = model.update(further).predict(level=80).iloc[6:]
    kit.assert_forecasts(run(**given), kit.predicted(expected, "ParaRNN", [80]))


def test_rows_of_the_memory_stand_by_themselves(kit):
    model = model_of(kit, "intervals of their own")
    run, memory = run_of(kit, model)
    both = run(**nothing(memory), memory=memory)
    turned = run(**nothing(memory), memory=memory[[1, 0]])
    for name in both:
        np.testing.assert_allclose(turned[name], both[name][[1, 0]], rtol=1e-6)


def test_own_forecasts_as_rows_go_beyond_the_horizon(kit):
    model = model_of(kit, "lstm")
    run, memory = run_of(kit, model, [])
    first = run(**nothing(memory), memory=memory)
    lengths = np.full(len(memory), 6)
    second = run(rows=first["forecast"], lengths=lengths, memory=first["memory_after"])
    expected = kit.predicted(model.predict(12), "ParaRNN", [], h=12).forecast
    joined = np.concatenate([first["forecast"], second["forecast"]], 1)[..., 0]
    np.testing.assert_allclose(joined, expected, rtol=1e-5)


def test_no_rows_and_no_memory_give_no_forecast_and_no_memory(kit):
    model = model_of(kit, "rnn")
    run, memory = run_of(kit, model)
    empty = np.zeros_like(memory)
    found = run(**nothing(memory), memory=empty)
    assert np.isnan(found["forecast"]).all()
    rows, lengths = kit.padded(kit.panel([30, 30], seed=7), ["y"])
    later = run(rows=rows, lengths=lengths, memory=found["memory_after"])
    straight = run(rows=rows, lengths=lengths, memory=empty)
    np.testing.assert_array_equal(later["forecast"], straight["forecast"])


def test_the_check_of_an_export_looks_at_some_of_many_series(kit):
    model = PARA(**kit.SMALL | {"max_epochs": 1}).fit(kit.panel([30] * 40))
    program = Program(model.fitted_, [80.0])
    run, seen = kit.of_arrays(program), []

    def counted(given):
        seen.append(len(given["rows"]))
        return run(**given)

    verify(counted, program, model.state_)
    assert seen == [32] * 3
