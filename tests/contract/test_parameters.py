"""scikit-learn's protocol of estimators, kept without its base class."""

import copy

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, is_classifier, is_regressor
from sklearn.base import clone as clone_of_scikit_learn
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import estimator_html_repr, get_tags

from tsrnn import ARMA, ETS, GARCH, Combination, ParaRNNForecaster
from tsrnn.baselines import Naive
from tsrnn.contract import Parameters, clone


class Plain(Parameters):
    def __init__(self, b=1, a=None, inner=None):
        self.b, self.a, self.inner = b, a, inner


class Twin(BaseEstimator):
    def __init__(self, b=1, a=None, inner=None):
        self.b, self.a, self.inner = b, a, inner


class Changing(Parameters):
    def __init__(self, a=None):
        self.a = list(a or ())


class Empty(Parameters):
    pass


SERIES = pd.Series(np.arange(30.0))
GIVEN = [{}, {"b": 2}, {"a": "x", "b": [1, 2]}, {"inner": ARMA((2, 1))}, {"a": np.arange(3)}]


@pytest.mark.parametrize("arguments", GIVEN)
def test_arguments_and_print_are_those_of_scikit_learn(arguments):
    ours, theirs = Plain(**arguments), Twin(**arguments)
    assert list(ours.get_params()) == list(theirs.get_params())
    assert list(ours.get_params(deep=False)) == list(theirs.get_params(deep=False))
    assert repr(ours) == repr(theirs).replace("Twin", "Plain").replace("\n" + " " * 5, " ")


def test_arguments_of_inner_estimators_are_set_by_two_names():
    model = Plain(inner=Plain())
    assert model.set_params(inner__inner=Plain(), a=1) is model
    model.set_params(inner__inner__b=7, inner__b=3)
    assert (model.a, model.inner.b, model.inner.inner.b) == (1, 3, 7)
    model.set_params(inner=ARMA(), inner__order=(2, 0))
    assert model.inner.order == (2, 0)


@pytest.mark.parametrize(("name", "valid"), [("c", "a"), ("inner__c", "a"), ("c__b", "inner")])
def test_unknown_arguments_are_named_with_those_there_are(name, valid):
    with pytest.raises(ValueError, match=rf"Invalid parameter 'c' for estimator .*'{valid}'"):
        Plain(inner=Plain()).set_params(**{name: 1})


@pytest.mark.parametrize("clone_it", [clone, clone_of_scikit_learn])
def test_a_clone_shares_nothing_that_changes(clone_it):
    model = Plain(a=[ARMA()], b={"x": np.arange(3)}, inner=Twin(a=[1]))
    model.fitted_ = 1
    other = clone_it(model)
    assert not hasattr(other, "fitted_")
    assert repr(other) == repr(model)
    assert other.a[0] is not model.a[0]
    assert other.b["x"] is not model.b["x"]
    assert other.inner.a is not model.inner.a


@pytest.mark.parametrize("clone_it", [clone, clone_of_scikit_learn])
def test_a_constructor_that_changes_an_argument_is_refused(clone_it):
    with pytest.raises(RuntimeError, match="modifies parameter a"):
        clone_it(Changing([1]))


def test_a_method_for_clones_is_asked():
    class Marked(Plain):
        def __sklearn_clone__(self):
            return "marked"

    assert clone(Marked()) == clone_of_scikit_learn(Marked()) == "marked"
    assert clone(make_pipeline(Plain())).steps[0][1].b == 1


def test_an_estimator_without_arguments_has_none():
    assert Empty().get_params() == {}
    assert repr(clone(Empty())) == "Empty()"


def test_long_prints_are_wrapped_behind_the_name():
    lines = repr(ParaRNNForecaster(12, cell="gru", holidays="DE", calendar=True, n_layers=3,
                                   intervals="quantile")).split("\n")  # fmt: skip
    assert len(lines) == 2
    assert max(map(len, lines)) <= 80
    assert lines[1].startswith(" " * len("ParaRNNForecaster(") + "intervals=")


@pytest.mark.parametrize("model", [ARMA(), ParaRNNForecaster(), Combination({"a": ETS()})])
def test_scikit_learn_takes_forecasters_for_estimators(model):
    assert not is_classifier(model)
    assert not is_regressor(model)
    assert not get_tags(model).target_tags.required
    assert type(model).__name__ in estimator_html_repr(model)
    shown = model._repr_mimebundle_()
    assert type(model).__name__ in shown["text/html"]
    pipeline = Pipeline([("none", FunctionTransformer()), ("model", model)])
    assert type(model).__name__ in repr(pipeline)
    assert clone(pipeline).get_params()["model"] is not model


def test_methods_that_a_class_does_not_offer_are_not_listed():
    assert "predict_variance" not in dir(ETS())
    assert "set_params" in dir(copy.copy(ETS()))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Naive().fit(SERIES).predict(np.int64(0)), "h must be a positive integer; got 0"),
        (lambda: Naive().fit(SERIES).predict(2, level=np.array([80, 150])), "percent; got 150"),
        (lambda: ETS(season_length=np.int64(-1)).fit(SERIES), "positive integer; got -1"),
        (lambda: ARMA(order=(np.int64(-1), 0)).fit(SERIES), r"at least 0; got \(-1, 0\)"),
        (lambda: GARCH(order=(np.int64(0), 0)).fit(SERIES), r"p >= 1; got \(0, 0\)"),
        (lambda: ParaRNNForecaster(learning_rate=np.float64(-1)).fit(SERIES), r"got -1\.0$"),
    ],
)
def test_numbers_of_numpy_are_shown_as_numbers(call, message):
    with pytest.raises(ValueError, match=message):
        call()
