"""Forecasters on every engine of their recurrence, in training and filter alike."""

import dataclasses
import functools
import io

import pytest

import tsrnn
from tsrnn import LEMForecaster, LRUForecaster, NewtonForecaster, ParaRNNForecaster
from tsrnn.kernels import cells

# A window of some lags and no linear path: forecasts are those of the network.
SMALL = {
    "horizon": 4, "input_size": 8, "hidden_size": 6, "n_layers": 1, "linear_path": False,
    "learning_rate": 0.02, "max_epochs": 1, "refit": False, "random_state": 0,
}  # fmt: skip
UNROLLED = ("auto", "reference", "shooting", "newton", "dense")
LINEAR = ("auto", "reference", "shooting", "newton", "scan")
LARGE = ("auto", "reference", "newton")
FORECASTERS = {
    "rnn": (ParaRNNForecaster, {}, UNROLLED, "sequential"),
    "linear": (ParaRNNForecaster, {"nonlinearity": "identity"}, (*UNROLLED, "scan"), "sequential"),
    "gru": (ParaRNNForecaster, {"cell": "gru", "n_layers": 2}, UNROLLED, "sequential"),
    "lstm": (ParaRNNForecaster, {"cell": "lstm"}, UNROLLED, "sequential"),
    "ordinary": (ParaRNNForecaster, {"hidden_size": 9, "block_size": 9}, LARGE, "dense"),
    "lem": (ParaRNNForecaster, {"cell": "lem", "block_size": 2}, UNROLLED, "sequential"),
    "LEM": (LEMForecaster, {"hidden_size": 9}, LARGE, "dense"),
    "LRU": (LRUForecaster, {}, LINEAR, "sequential"),
    "Newton": (NewtonForecaster, {"n_heads": 2}, UNROLLED, "sequential"),
    "newton-lstm": (
        NewtonForecaster,
        {"cell": "newton-lstm", "n_heads": 3},
        UNROLLED,
        "sequential",
    ),
}


@pytest.fixture(scope="module")
def panel(panel):
    """Return later rows of the series: the loops of "reference" take a while."""
    return panel[panel.groupby("unique_id").cumcount() >= 30].reset_index(drop=True)


@pytest.fixture(scope="module", params=FORECASTERS)
def fits(request, panel, cut):
    """Return a function that fits on an engine, the engines, and the fit in time order."""
    cls, changes, engines, in_order = FORECASTERS[request.param]
    past = cut(panel, 5)[0]

    @functools.cache
    def fit(engine):
        return cls(**(SMALL | changes), engine=engine).fit(past)

    return fit, engines, fit(in_order)


@pytest.mark.few("rnn", "LRU")
def test_forecasts_agree_to_rounding(fits, panel, cut, same):
    fit, engines, in_order = fits
    rows = cut(panel, 5)[1]
    later = from_file(in_order).update(rows).predict(7)
    for engine in engines:
        model = from_file(fit(engine))
        assert model.best_epoch_ == in_order.best_epoch_ > 0
        assert engine_of(model) == engine
        # steps of the optimiser enlarge the rounding of float32
        same(from_file(model).update(rows).predict(7), later, rtol=1e-3)
        model.network_.load_state_dict(in_order.network_.state_dict())
        same(model.predict(panel), in_order.predict(panel), rtol=1e-6)
        past = cut(panel, 5)[0]
        same(model.predict(past, level=[80]).iloc[:, :3], in_order.predict(past), rtol=1e-6)


@pytest.mark.few("rnn", "LRU")
def test_files_hold_the_engine(fits, same):
    fit, _, _ = fits
    model = fit("newton")
    loaded = from_file(model)
    assert loaded.engine == "newton" == engine_of(loaded)
    assert loaded.settings_.options["engine"] == "newton"
    same(loaded.predict(), model.predict(), rtol=0)


def test_auto_is_no_option_of_the_layers(small, wave):
    assert "engine" not in small(max_epochs=1).fit(wave).settings_.options


def engine_of(model):
    network = model.network_
    return (network.networks[0] if hasattr(network, "networks") else network).rnn.engine


def from_file(model):
    """Return a model from its file."""
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    return tsrnn.load(file)


SHARED = {
    "by name": (ParaRNNForecaster, {"cell": "newton-lstm", "n_heads": 2}),
    "an ensemble": (ParaRNNForecaster, {"cell": "gru", "n_estimators": 2}),
    "a network a series": (ParaRNNForecaster, {"cell": "gru", "per_series": True}),
    "blocks, a network a series": (NewtonForecaster, {"n_heads": 2, "per_series": True}),
    "quantiles": (ParaRNNForecaster, {"cell": "lstm", "intervals": "quantile"}),
    "bounded": (NewtonForecaster, {"n_heads": 2, "max_recurrent": 0.3}),
    "a user's cell": (
        ParaRNNForecaster,
        {"cell": dataclasses.replace(cells.para_gru(2), structure="diagonal")},
    ),
}


@pytest.mark.few("by name-shooting", "an ensemble-newton", "quantiles-shooting")
@pytest.mark.parametrize("engine", ["shooting", "newton"])
@pytest.mark.parametrize("name", SHARED)
def test_networks_of_all_kinds_agree_to_rounding(name, engine, panel, cut, same):
    cls, changes = SHARED[name]
    past, rows = cut(panel, 5)
    forecasts = []
    for each in (engine, "sequential"):
        model = cls(**(SMALL | changes), engine=each).fit(past)
        forecasts.append(model.update(rows).predict(7))
    same(*forecasts, rtol=1e-3)  # steps of the optimiser enlarge the rounding of float32


def test_bounds_of_recurrent_parameters_are_kept_in_training_and_files(panel, cut, same):
    past = cut(panel, 5)[0]
    options = {"n_heads": 2, "cell": "newton-lstm", "max_epochs": 3, "learning_rate": 0.1}
    model = NewtonForecaster(**(SMALL | options), max_recurrent=0.05).fit(past)
    loaded = from_file(model)
    assert loaded.max_recurrent == loaded.settings_.options["max_recurrent"] == 0.05
    for each in (model, loaded):
        (matrices,) = each.network_.rnn.recurrent_blocks()
        assert max(matrix.abs().max() for matrix in matrices.values()) == pytest.approx(0.05)
    same(loaded.predict(), model.predict(), rtol=0)
    free = NewtonForecaster(**(SMALL | options)).fit(past)
    assert "max_recurrent" not in free.settings_.options
    (matrices,) = free.network_.rnn.recurrent_blocks()
    assert max(matrix.abs().max() for matrix in matrices.values()) > 0.05


@pytest.mark.parametrize("value", [0, -1, float("nan"), "0.5", True])
def test_bounds_that_are_none(value, wave):
    with pytest.raises(ValueError, match="max_recurrent must be a number greater than 0; got"):
        NewtonForecaster(**SMALL, max_recurrent=value).fit(wave)
