"""Fitted function apart from its estimator: one attribute, frozen, and enough by itself."""

import copy
import inspect
import pickle
from dataclasses import FrozenInstanceError, fields, is_dataclass

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import softmax
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

import tsrnn.training
from tsrnn.contract import Summary
from tsrnn.erm import ParaRNNClassifier, ParaRNNRegressor, SequenceFunction

RNG = np.random.default_rng(5)
ARRAY = RNG.normal(size=(12, 4, 2))
RAGGED = [RNG.normal(size=(n, 2)) for n in (3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8)]
Z = RNG.normal(size=(12, 2))
LABELS = np.array([*"abcabcabcabc"])
SMALL = {"hidden_size": 4, "max_epochs": 1, "random_state": 0}
CASES = {
    "regressor": (ParaRNNRegressor(**SMALL), ARRAY, Z),
    "steps": (ParaRNNRegressor(**SMALL, many_to_many=True), RAGGED, [x[:, 0] for x in RAGGED]),
    "classifier": (ParaRNNClassifier(**SMALL), RAGGED, LABELS),
}


@pytest.fixture(params=CASES)
def case(request):
    model, X, y = CASES[request.param]
    return copy.deepcopy(model), X, y


def flat(values):
    return np.concatenate([*values]) if isinstance(values, list) else values


def test_is_all_that_a_fit_sets(case):
    model, X, y = case
    model.fit(X, y).partial_fit(X, y)
    assert vars(model).keys() - model.get_params().keys() == {"fitted_"}


def test_is_a_sequence_function(case):
    model, X, y = case
    function = model.fit(X, y).fitted_
    asked = [name for name in vars(SequenceFunction) if not name.startswith("_")]
    assert {"arguments", "network", "outputs", "predict", "to_file", "from_file"} == {*asked}
    for name in asked:
        promised = getattr(SequenceFunction, name)
        if inspect.isroutine(promised):
            arguments = [*inspect.signature(promised).parameters]
            given = [*inspect.signature(getattr(type(function), name)).parameters]
            assert given[: len(arguments)] == arguments, name
        assert hasattr(function, name)


def test_needs_no_estimator(case):
    model, X, y = case
    function = pickle.loads(pickle.dumps(model.fit(X, y).fitted_))
    expected = flat(model.predict(X))
    assert_array_equal(flat(function.predict(X)), expected)
    outputs = flat(function.outputs(X))
    if isinstance(model, ParaRNNClassifier):
        assert_array_equal(softmax(outputs, axis=1), model.predict_proba(X))
    else:
        given = model.target_scaler_.inverse_transform(outputs)
        assert_allclose(given.reshape(expected.shape), expected)
    header, arrays = function.to_file()
    restored = type(function).from_file(header, arrays, function.arguments, type(function.targets))
    assert_array_equal(flat(restored.predict(X)), expected)


def test_does_not_change(case):
    model, X, y = case
    function = model.fit(X, y).fitted_
    for part in fields(function):
        with pytest.raises(FrozenInstanceError):
            setattr(function, part.name, None)
    with pytest.raises(AttributeError, match="no setter"):
        model.network_ = None
    model.history_.clear()
    assert len(model.history_) == 1


def test_a_fit_that_fails_leaves_the_same_object(case):
    model, X, y = case
    function = model.fit(X, y).fitted_
    for method in (model.fit, model.partial_fit):
        with pytest.raises(ValueError, match="inconsistent numbers"):
            method(X, y[:3])
        assert model.fitted_ is function


def test_a_partial_fit_leaves_the_function_before(case):
    model, X, y = case
    model.partial_fit(X, y)
    function, other = model.fitted_, copy.copy(model)
    before = copy.deepcopy(function)
    model.partial_fit(X, y)
    assert other.fitted_ is function is not model.fitted_
    assert_array_equal(flat(other.predict(X)), flat(before.predict(X)))
    for one, same in zip(function.network.parameters(), before.network.parameters(), strict=True):
        assert torch.equal(one, same)
    for key, state in before.course.moments.items():
        for name, value in state.items():
            assert torch.equal(value, function.course.moments[key][name])
    # Both go on from there alike.
    assert_array_equal(flat(other.partial_fit(X, y).predict(X)), flat(model.predict(X)))


def test_without_a_fit_there_is_no_attribute(case):
    model, X, y = case
    with pytest.raises(NotFittedError):
        check_is_fitted(model)
    fitted = [name for name in dir(type(model)) if name.endswith("_") and name[0] != "_"]
    assert {"network_", "n_features_in_", "training_risk_"} < {*fitted}
    callables = {"block_shares_"}
    missing = {name for name in fitted if not hasattr(model, name)}
    assert missing == {*fitted} - callables - {"arguments_"}
    check_is_fitted(model.fit(X, y))
    assert {name for name in fitted if not hasattr(model, name)} == {"feature_names_in_"}


def test_dropout_is_drawn_from_the_seed_of_the_fit():
    X, y = np.random.default_rng(0).normal(size=(2, 30, 5))[0][..., None], np.arange(30.0)
    model = ParaRNNRegressor(
        hidden_size=4, n_layers=2, layer_options={"dropout": 0.5}, max_epochs=2, random_state=0
    )
    torch.manual_seed(1)
    before = torch.get_rng_state()
    first = model.fit(X, y).predict(X)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(2)
    np.testing.assert_array_equal(model.fit(X, y).predict(X), first)
    assert not np.array_equal(model.set_params(random_state=1).fit(X, y).predict(X), first)


@pytest.mark.filterwarnings("ignore:GPU available but not used")
def test_generators_of_devices_are_seeded_where_a_fit_runs_on_them_and_restored(monkeypatch):
    """By the calls of torch's own functions, as a machine of tests need not have such a device."""
    restored, seeded = [], []
    fork, train = torch.random.fork_rng, tsrnn.training.train

    def recorded_fork(devices):
        restored.append([*devices])
        return fork(devices=[])

    monkeypatch.setattr(torch.random, "fork_rng", recorded_fork)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "manual_seed_all", seeded.append)
    monkeypatch.setattr("tsrnn.erm._settings.checked_device", lambda device: device)
    monkeypatch.setattr(tsrnn.training, "train", lambda *a, **k: train(*a, **k | {"device": "cpu"}))
    model = ParaRNNRegressor(**SMALL | {"random_state": 7}).fit(ARRAY, Z)
    assert seeded == []
    assert not any(restored)
    restored.clear()
    model.set_params(device="cuda:1").fit(ARRAY, Z)
    assert seeded == [7]
    assert restored[-1] == [0, 1]


def test_a_fit_after_others_is_that_of_a_clone(case):
    """Whatever was fitted and set before."""
    model, X, y = case
    changes = {"hidden_size": 6, "bound": 0.5, "standardize": False, "random_state": 3}
    model.fit(X, y).set_params(**changes).fit(X, y)
    fresh = clone(model).fit(X, y)
    assert_array_equal(flat(model.predict(X)), flat(fresh.predict(X)))
    assert model.history_ == fresh.history_
    assert str(model.summary()) == str(fresh.summary())


def test_arguments_act_at_the_next_fit(case):
    model, X, y = case
    before = flat(model.fit(X, y).predict(X)), model.score(X, y), str(model.summary())
    model.set_params(many_to_many=None, bound=1e-3, pooling="mean", cell="lru", hidden_size=6)
    assert_array_equal(flat(model.predict(X)), before[0])
    assert (model.score(X, y), str(model.summary())) == before[1:]


def test_parts_that_hold_arrays_are_compared_by_identity(case):
    model, X, y = case
    function, other = model.partial_fit(X, y).fitted_, copy.deepcopy(model).fitted_
    for part in fields(function):
        one, same = getattr(function, part.name), getattr(other, part.name)
        if is_dataclass(one) and not isinstance(one, type):
            assert one != same
            assert hash(one) != hash(same)


def test_the_summary_is_a_page(case):
    model, X, y = case
    page = model.fit(X, y).summary()
    assert isinstance(page, Summary)
    assert str(page) == repr(page) == page.as_text()
    assert page.as_html().startswith("<pre>")
