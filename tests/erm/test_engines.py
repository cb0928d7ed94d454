"""Regressors and classifiers on every engine of their recurrence."""

import io

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import tsrnn
from tsrnn.erm import ParaRNNClassifier, ParaRNNRegressor

RNG = np.random.default_rng(0)
X = [RNG.normal(size=(steps, 2)) for steps in (3, 9, 1, 70, 5, 5, 12, 2, 8, 4)]
Z = np.array([x.sum() for x in X])
SMALL = {"hidden_size": 6, "max_epochs": 1, "aggregation": "linear", "random_state": 0}
UNROLLED = ("auto", "reference", "shooting", "newton", "dense")
CASES = {
    "rnn": ({"nonlinearity": "relu", "input_projection": True}, UNROLLED),
    "identity": ({"nonlinearity": "identity", "n_layers": 2}, (*UNROLLED, "scan")),
    "gru": ({"cell": "gru"}, UNROLLED),
    "lstm": ({"cell": "lstm"}, UNROLLED),
    "lem": ({"cell": "lem", "hidden_size": 4}, UNROLLED),
    "lru": ({"cell": "lru"}, ("auto", "reference", "shooting", "newton", "scan")),
    "newton-gru": ({"cell": "newton-gru"}, UNROLLED),
    "newton-lstm": ({"cell": "newton-lstm"}, UNROLLED),
}


def from_file(model):
    """Return a model from its file."""
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    return tsrnn.load(file)


@pytest.mark.few("rnn")
@pytest.mark.parametrize("name", CASES)
def test_predictions_agree_to_rounding(name):
    arguments, engines = CASES[name]

    def trained(engine, steps):
        model = ParaRNNRegressor(**SMALL | arguments, engine=engine)
        return model.fit(X, Z) if steps == "twenty" else model.partial_fit(X, Z)

    in_order = {steps: trained("sequential", steps) for steps in ("one", "twenty")}
    for engine in engines:
        # The loop in torch would take seconds for the twenty steps of a fit.
        steps = "one" if engine == "reference" else "twenty"
        model, same = trained(engine, steps), in_order[steps]
        assert model.network_.rnn.engine == engine
        # steps of the optimiser enlarge the rounding of float32
        assert_allclose(model.predict(X), same.predict(X), rtol=1e-3, atol=1e-3)
        model.network_.load_state_dict(same.network_.state_dict())
        assert_allclose(model.predict(X), same.predict(X), rtol=0, atol=1e-5)


def test_classes_by_steps_and_files():
    labels = [np.where(x[:, 0] > 0, "up", "down") for x in X]
    one, other = (
        ParaRNNClassifier(**SMALL, cell="gru", many_to_many=True, engine=engine).fit(X, labels)
        for engine in ("sequential", "newton")
    )
    for ours, theirs in zip(other.predict_proba(X), one.predict_proba(X), strict=True):
        assert_allclose(ours, theirs, atol=1e-3)
    loaded = from_file(other)
    assert loaded.engine == loaded.network_.rnn.engine == "newton"
    for ours, theirs in zip(loaded.predict_proba(X), other.predict_proba(X), strict=True):
        assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"engine": "fast"}, "engine must be one of .* got 'fast'"),
        ({"cell": "gru", "engine": "scan"}, "cell='gru' is not. Use engine='shooting'"),
        ({"cell": "attention", "engine": "newton"}, "must be 'auto' for cell='attention'"),
    ],
)
def test_refusals_come_with_the_fit(arguments, message):
    model = ParaRNNRegressor(**{**SMALL, "hidden_size": 8}, **arguments)
    with pytest.raises(ValueError, match=message):
        model.fit(X, Z)


def test_partial_fit_keeps_its_engine():
    model = ParaRNNRegressor(**SMALL, engine="newton").partial_fit(X, Z)
    model.set_params(engine="shooting")
    with pytest.raises(ValueError, match="engine was 'newton' and is now 'shooting'"):
        model.partial_fit(X, Z)
