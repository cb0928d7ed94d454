"""Arguments act at a fit: what is set later changes nothing until the next, in any class."""

import ast
import contextlib
import copy
import inspect
import pickle
import textwrap

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from tsrnn import ARMA
from tsrnn.baselines import SARIMAX, Drift
from tsrnn.contract import Arguments
from tsrnn.erm import deep_ensemble
from tsrnn.evaluation import Combination
from tsrnn.interpret import UninformativeNetworkError
from tsrnn.models import MODELS, model_class

COPIES = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda model: pickle.loads(pickle.dumps(model)),
}


class NoValue:
    """A value that no argument may have."""


def fits_of(model):
    """Return all that a fit has set, which is compared by identity."""
    return {name: value for name, value in vars(model).items() if name not in model.get_params()}


def test_every_class_has_an_example(contract):
    assert {example.cls.__name__ for example in contract.examples.values()} == set(MODELS)


@pytest.mark.few
@pytest.mark.parametrize("name", MODELS)
def test_arguments_are_read_from_the_record_alone(name):
    """In the classes of the package `self.order` stands in `__init__`, and where files are read."""
    cls = model_class(name)
    arguments = set(inspect.signature(cls).parameters)
    found = [
        f"{base.__name__}.{method.name} reads self.{node.attr}: take self.arguments_.{node.attr}"
        for base in cls.__mro__
        if base.__module__.startswith("tsrnn")
        for method in ast.parse(textwrap.dedent(inspect.getsource(base))).body[0].body
        if isinstance(method, ast.FunctionDef) and method.name not in ("__init__", "_from_file")
        for node in ast.walk(method)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
        if isinstance(node.value, ast.Name) and node.value.id == "self" and node.attr in arguments
    ]
    assert found == []


@pytest.mark.few
def test_no_answer_reads_a_constructor_argument(fitted, example, answers, contract):
    for name in inspect.signature(type(fitted)).parameters:
        delattr(fitted, name)
    found = contract.all(fitted, example)
    contract.same({name: found[name] for name in answers}, answers)


def test_all_arguments_set_together(fitted, example, contract):
    expected, others = contract.few(fitted, example), contract.other(fitted)
    for given in (others, dict.fromkeys(others, NoValue())):
        fitted.set_params(**given)
        contract.same(contract.few(fitted, example), expected)
        assert fitted.get_params(deep=False) == given


def test_what_attributes_return_is_not_the_models(fitted, example, contract):
    expected = contract.few(fitted, example)
    for name in dir(type(fitted)):
        if not name.startswith("_") and isinstance(
            inspect.getattr_static(type(fitted), name), property
        ):
            with contextlib.suppress(AttributeError, UninformativeNetworkError):
                spoil(getattr(fitted, name))
    contract.same(contract.few(fitted, example), expected)


def spoil(value):
    """Change in place whatever can be changed."""
    if isinstance(value, list | tuple | set):
        for item in value:
            spoil(item)
    elif isinstance(value, dict):
        spoil(list(value.values()))
    elif isinstance(value, pd.DataFrame):
        spoil([column for _, column in value.items()])
    elif isinstance(value, pd.Series):
        spoil(list(value) if value.dtype == object else value.array.to_numpy(copy=False))
    elif isinstance(value, torch.Tensor):
        value.zero_()
    elif isinstance(value, np.ndarray) and value.dtype != object:
        value.flags.writeable = True
        value[...] = 0
    if isinstance(value, list | dict | set):
        value.clear()


@pytest.mark.few
def test_each_argument_set_alone(original, example, contract):
    expected = contract.forecast(original, example)
    for name, value in contract.other(original).items():
        assert repr(value) != repr(getattr(original, name)), f"{name} is not another one"
        model = copy.copy(original).set_params(**{name: value})
        contract.same(contract.forecast(model, example), expected, name)


@pytest.mark.few
@pytest.mark.parametrize("way", COPIES)
def test_copies_keep_the_fit_and_the_arguments(fitted, example, contract, way):
    expected, others = contract.few(fitted, example), contract.other(fitted)
    found = COPIES[way](fitted.set_params(**others))
    contract.same(contract.few(found, example), expected)
    assert repr(found.get_params(deep=False)) == repr(others)
    assert repr(found.arguments_) == repr(fitted.arguments_)


def test_a_clone_has_the_arguments_and_no_fit(fitted, contract):
    others = contract.other(fitted)
    found = clone(fitted.set_params(**others))
    assert repr(found.get_params(deep=False)) == repr(others)
    assert repr(found.arguments_.as_dict()) == repr(others)
    assert not [name for name in vars(found) if name.endswith("_")]


def test_a_file_has_the_arguments_of_the_fit(fitted, contract):
    before = contract.loaded(fitted)
    after = contract.loaded(fitted.set_params(**contract.other(fitted)))
    assert repr(after.get_params()) == repr(before.get_params())
    assert repr(after.arguments_) == repr(before.arguments_)
    for name in set(before.get_params()) - {*type(fitted).not_saved, "forecasters"}:
        assert before.get_params()[name] == getattr(fitted.arguments_, name), name


def test_a_fit_that_fails_leaves_the_one_before(fitted, example, answers, contract):
    for name in {"missing", "horizon", "random_state", "pooling"} & set(fitted.get_params()):
        model = copy.copy(fitted).set_params(**{name: NoValue()})
        with pytest.raises((TypeError, ValueError), match=name):
            example.fit(model)
        contract.same(contract.few(model, example)["save"], answers["save"], name)


@pytest.mark.few
def test_a_fit_that_fails_at_its_end_leaves_the_one_before(fitted, example, contract, monkeypatch):
    expected, before = contract.few(fitted, example), fits_of(fitted)
    late = "_fit_panel" if example.is_forecaster else "_fit_samples"
    whole = getattr(type(fitted), late)

    def fails(self, *data):
        whole(self, *data)
        raise KeyboardInterrupt

    monkeypatch.setattr(type(fitted), late, fails)
    fitted.set_params(verbose=False)
    with pytest.raises(KeyboardInterrupt):
        example.fit(fitted)
    monkeypatch.undo()
    assert fits_of(fitted) == before
    contract.same(contract.few(fitted, example), expected)


@pytest.mark.few
@pytest.mark.parametrize("way", COPIES)
def test_a_copy_that_goes_on_leaves_the_original(fitted, example, contract, way):
    for one, other in ((fitted, COPIES[way](fitted)), (COPIES[way](fitted), fitted)):
        expected = contract.few(one, example)
        example.goes_on(other)
        contract.same(contract.few(one, example), expected)
    assert repr(contract.content(other)) != repr(expected["save"])


@pytest.mark.few
def test_a_copy_that_is_fitted_anew_leaves_the_original(fitted, example, contract):
    expected, before, shallow = contract.few(fitted, example), fits_of(fitted), copy.copy(fitted)
    new = {"horizon": 2} if example.is_forecaster else {"bound": 0.01}
    example.fit(shallow.set_params(**new))
    assert fits_of(fitted) == before
    contract.same(contract.few(fitted, example), expected)
    name, value = next(iter(new.items()))
    assert getattr(shallow.arguments_, name) == value
    if example.is_forecaster:
        assert shallow.horizon_ == value


class TestMembers:
    """Members of a combination are frozen with it."""

    @pytest.fixture
    def members(self):
        return {"ar": ARMA(order=(1, 0)), "walk": Drift()}

    @pytest.fixture
    def combination(self, members, contract):
        return contract.examples["Combination"].fit(Combination(members, horizon=5))

    def test_arguments_of_given_members_do_not_matter(self, combination, members, contract):
        example = contract.examples["Combination"]
        expected = contract.few(combination, example)
        members["ar"].set_params(order=(2, 1), missing="interpolate", horizon=1)
        members["more"] = Drift()
        contract.same(contract.few(combination, example), expected)

    def test_fitted_members_are_copies(self, combination, contract):
        example = contract.examples["Combination"]
        expected = contract.few(combination, example)
        for member in combination.forecasters_.values():
            member.set_params(missing=NoValue()).update(example.later)
        combination.forecasters_["ar"].fit(example.later)
        combination.forecasters_.clear()
        contract.same(contract.few(combination, example), expected)

    def test_fitted_members_are_as_after_an_update(self, combination, contract):
        example = contract.examples["Combination"]
        member = combination.forecasters_["ar"].update(example.later)
        found = combination.update(example.later).forecasters_["ar"]
        contract.same(found.predict(3, level=80), member.predict(3, level=80))
        contract.same(contract.drawn(found.plot(3)), contract.drawn(member.plot(3)))

    def test_forecasts_after_rows_are_those_of_members_after_an_update(self, contract):
        """A network knows a series without an id by the last row seen."""
        y = pd.Series(np.random.default_rng(0).normal(size=60).cumsum(), name="y")
        network = contract.examples["ParaRNNForecaster"].make()
        network.set_params(known_ahead=None, local_level=False, linear_path=False)
        alone = clone(network).fit(y[:40]).update(y[40:])
        model = Combination([network, Drift()], [1.0, 0.0], horizon=5).fit(y[:40]).update(y[40:])
        copies = model, copy.deepcopy(model), contract.loaded(model)
        for rows in (y[5:40], y[25:], 3 * y):
            expected = alone.predict(rows, h=2)
            for one in copies:
                contract.same(one.predict(rows, h=2), expected)

    def test_a_file_has_the_rows_to_be_drawn_once(self, combination, contract):
        later = contract.examples["Combination"].later
        _, arrays = contract.content(combination.update(later))
        kept = [name for name in arrays if name.endswith("history.values") and len(arrays[name])]
        assert kept == ["history.values"]
        members = contract.loaded(combination).forecasters_
        for name, member in combination.forecasters_.items():
            contract.same(contract.drawn(members[name].plot(3)), contract.drawn(member.plot(3)))

    def test_a_file_of_combined_combinations_has_the_rows_of_an_update(self, contract):
        example = contract.examples["Combination, nested"]
        model = example.fit(example.make()).update(example.later)
        contract.same(contract.loaded(model).predict(3, level=80), model.predict(3, level=80))

    def test_steps_of_a_pipeline(self, contract):
        example = contract.examples["ARMA"]
        pipeline = example.fit(make_pipeline(ARMA(order=(1, 0), horizon=2)))
        expected = pipeline.predict(*example.training)
        pipeline.set_params(arma__order=(2, 1), arma__horizon=3)
        contract.same(pipeline.predict(*example.training), expected)


class TestRecord:
    """`arguments_`, the record of a fit."""

    def test_cannot_be_changed(self):
        found = Arguments({"order": [1, 1], "options": {"dt": 0.5}})
        with pytest.raises(AttributeError, match=r"order=\(2, 1\). Give it to set_params"):
            found.order = (2, 1)
        with pytest.raises(AttributeError, match="'order'"):
            del found.order
        found.order.append(3)
        found.options["dt"] = 1.0
        found.as_dict()["order"].clear()
        assert repr(found) == "Arguments(order=[1, 1], options={'dt': 0.5})"

    @pytest.mark.parametrize("way", COPIES)
    def test_copies(self, way):
        found = COPIES[way](Arguments({"order": (1, 1)}))
        assert found.order == (1, 1)
        with pytest.raises(AttributeError, match="no argument is called 'trend'"):
            _ = found.trend

    def test_is_of_the_arguments_as_they_stand_before_a_fit(self):
        model = ARMA(order=(1, 0))
        assert model.set_params(order=(2, 0)).arguments_.order == (2, 0)

    def test_a_list_changed_in_place_does_not_matter(self, contract):
        example, order = contract.examples["Drift"], [1, 0, 0]
        model = example.fit(SARIMAX(order=order))
        expected = contract.few(model, example)
        order[0] = 0
        contract.same(contract.few(model, example), expected)
        assert example.fit(model).arguments_.order == [0, 0, 0]


def test_filter_takes_the_arguments_as_they_stand(contract):
    """It is a fit at parameters that are given."""
    example = contract.examples["ARMA"]
    model = example.fit(ARMA(order=(1, 0), trend="n"))
    expected = contract.few(model, example)
    model.set_params(order=(0, 1))
    with pytest.raises(ValueError, match="params"):
        model.filter(*example.training, {"ar.L1": 0.5, "sigma2": 1.0})
    contract.same(contract.few(model, example), expected)
    model.filter(*example.training, {"ma.L1": 0.5, "sigma2": 1.0})
    assert list(model.params_) == ["ma.L1", "sigma2"]


@pytest.mark.parametrize("name", ["ARMA", "GARCH", "VARMA", "CCC", "VECMGARCH", "LEMForecaster"])
def test_draws_of_another_seed(contract, name):
    """As `random_state` of the constructor acts at the next fit, those who draw take one."""
    example = contract.examples[name]
    model = example.fit(example.make())
    draw = model.simulate if hasattr(model, "simulate") else model.sample_paths
    first, same, other = (draw(3, random_state=seed) for seed in (None, 0, 1))
    contract.same(first, same)
    assert not first.equals(other)


def test_refits_are_of_the_model_that_was_fitted(contract):
    example = contract.examples["ParaRNNRegressor"]
    model = example.fit(example.make())
    before, after = (
        deep_ensemble(fitted, *example.training, n_estimators=2, random_state=0)
        for fitted in (copy.copy(model), model.set_params(hidden_size=6, bound=None))
    )
    X = example.training[0]
    contract.same(*([one.predict(X) for one in found.members] for found in (after, before)))
