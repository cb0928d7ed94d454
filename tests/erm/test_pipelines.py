"""Estimators inside scikit-learn: pipelines, searches, splits."""

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import BaggingRegressor
from sklearn.inspection import permutation_importance
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    StratifiedKFold,
    TimeSeriesSplit,
    cross_val_predict,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from tsrnn.erm import BlockedKFold, ParaRNNClassifier, ParaRNNRegressor

RNG = np.random.default_rng(4)
N = 24
TABLE = RNG.normal(size=(N, 3))
ARRAY = RNG.normal(size=(N, 3, 2))
RAGGED = [RNG.normal(size=(n, 2)) for n in RNG.integers(1, 5, size=N)]
Z = TABLE[:, -1] + 0.1 * RNG.normal(size=N)
LABELS = np.where(np.median(Z) < Z, "up", "down")
SMALL = {"hidden_size": 4, "max_epochs": 1, "random_state": 0}
SAMPLES = {"table": TABLE, "array": ARRAY, "list": RAGGED, "frame": pd.DataFrame(TABLE)}


def regressor(**params):
    return ParaRNNRegressor(**SMALL | params)


def classifier(**params):
    return ParaRNNClassifier(**SMALL | params)


def chosen(X, rows):
    if isinstance(X, list):
        return [X[row] for row in rows]
    return X.iloc[rows] if isinstance(X, pd.DataFrame) else X[rows]


class TestCrossValidation:
    @pytest.mark.parametrize(
        ("cv", "kind"),
        [
            (KFold(2), "list"),
            (TimeSeriesSplit(2), "array"),
            (TimeSeriesSplit(2), "frame"),
            (BlockedKFold(2, h=2), "list"),
            (BlockedKFold(2, h=2), "table"),
        ],
    )
    def test_scores_are_those_of_fits_to_the_parts(self, cv, kind):
        X = SAMPLES[kind]
        expected = [
            regressor().fit(chosen(X, train), Z[train]).score(chosen(X, test), Z[test])
            for train, test in cv.split(TABLE)
        ]
        assert_array_equal(cross_val_score(regressor(), X, Z, cv=cv), expected)

    def test_of_classes(self):
        expected = [
            classifier()
            .fit(chosen(RAGGED, train), LABELS[train])
            .score(chosen(RAGGED, test), LABELS[test])
            for train, test in StratifiedKFold(2).split(TABLE, LABELS)
        ]
        assert_array_equal(cross_val_score(classifier(), RAGGED, LABELS, cv=2), expected)
        found = cross_val_predict(classifier(), RAGGED, LABELS, cv=2, method="predict_proba")
        assert_allclose(found.sum(1), 1.0)
        assert found.shape == (N, 2)

    def test_of_steps_of_sequences(self):
        y = [part.sum(1) for part in RAGGED]
        cv = KFold(2)
        expected = []
        for train, test in cv.split(TABLE):
            model = regressor(many_to_many=True)
            model.fit(chosen(RAGGED, train), chosen(y, train))
            expected.append(model.score(chosen(RAGGED, test), chosen(y, test)))
        found = cross_val_score(regressor(many_to_many=True), RAGGED, y, cv=cv)
        assert_array_equal(found, expected)

    def test_of_classes_of_steps(self):
        y = [np.where(part[:, 0] > 0, "up", "down") for part in RAGGED]
        model = classifier(many_to_many=True)
        assert np.isfinite(cross_val_score(model, RAGGED, y, cv=KFold(2))).all()

    def test_metrics_by_name(self):
        found = cross_val_score(
            regressor(), ARRAY, Z, cv=KFold(2), scoring="neg_mean_squared_error"
        )
        assert (found < 0).all()
        found = cross_val_score(classifier(), ARRAY, LABELS, cv=2, scoring="neg_log_loss")
        assert (found < 0).all()
        found = cross_val_score(classifier(), ARRAY, LABELS, cv=2, scoring="roc_auc")
        assert ((found >= 0) & (found <= 1)).all()


class TestSearches:
    @pytest.mark.parametrize("cv", [TimeSeriesSplit(2), BlockedKFold(2, h=1)])
    def test_a_grid_finds_the_best_mean_score(self, cv):
        search = GridSearchCV(regressor(), {"cell": ["rnn", "gru"]}, cv=cv).fit(RAGGED, Z)
        scores = {
            cell: cross_val_score(regressor(cell=cell), RAGGED, Z, cv=cv).mean()
            for cell in ("rnn", "gru")
        }
        best = max(scores, key=scores.get)
        assert search.best_params_ == {"cell": best}
        assert_allclose(search.best_score_, scores[best])
        again = regressor(**search.best_params_).fit(RAGGED, Z)
        assert_array_equal(search.predict(RAGGED), again.predict(RAGGED))

    @pytest.mark.filterwarnings("ignore:.*treespec")  # scikit-learn resets filters of threads
    def test_in_threads(self):
        grid = {"hidden_size": [2, 4]}
        with parallel_config(backend="threading"):
            found = GridSearchCV(classifier(), grid, cv=2, n_jobs=2).fit(RAGGED, LABELS)
        alone = GridSearchCV(classifier(), grid, cv=2).fit(RAGGED, LABELS)
        for name in ("mean_test_score", "std_test_score"):
            assert_array_equal(found.cv_results_[name], alone.cv_results_[name])

    def test_illegal_arguments_stop_a_search(self):
        search = GridSearchCV(regressor(), {"hidden_size": [5]}, cv=2, error_score="raise")
        with pytest.raises(ValueError, match="hidden_size=5, block_size=2"):
            search.fit(TABLE, Z)


class TestPipelines:
    def test_steps_before_it_are_done_first(self):
        pipeline = make_pipeline(StandardScaler(), regressor()).fit(TABLE, Z)
        scaled = StandardScaler().fit_transform(TABLE)
        assert_array_equal(pipeline.predict(TABLE), regressor().fit(scaled, Z).predict(scaled))

    def test_sequences_go_through_functions(self):
        last = FunctionTransformer(lambda X: [part[-2:] for part in X])
        pipeline = make_pipeline(last, classifier()).fit(RAGGED, LABELS)
        assert pipeline.predict(RAGGED).shape == (N,)
        assert_array_equal(pipeline.classes_, ["down", "up"])

    def test_arguments_inside_are_set_by_name(self):
        pipeline = make_pipeline(StandardScaler(), regressor())
        pipeline.set_params(pararnnregressor__hidden_size=8).fit(TABLE, Z)
        assert pipeline[-1].network_.hidden_size == 8
        search = GridSearchCV(pipeline, {"pararnnregressor__cell": ["rnn", "lem"]}, cv=2)
        assert np.isfinite(search.fit(TABLE, Z).best_score_)

    def test_weights_reach_it(self):
        weights = RNG.uniform(size=N)
        pipeline = make_pipeline(FunctionTransformer(), regressor())
        found = pipeline.fit(TABLE, Z, pararnnregressor__sample_weight=weights).predict(TABLE)
        assert_array_equal(found, regressor().fit(TABLE, Z, weights).predict(TABLE))

    def test_inside_other_estimators(self):
        logs = TransformedTargetRegressor(regressor(), func=np.arcsinh, inverse_func=np.sinh)
        assert logs.fit(TABLE, Z).predict(TABLE).shape == (N,)
        bags = BaggingRegressor(regressor(), n_estimators=2, random_state=0).fit(TABLE, Z)
        assert bags.predict(TABLE).shape == (N,)
        shares = permutation_importance(
            regressor().fit(TABLE, Z), TABLE, Z, n_repeats=2, random_state=0
        )
        assert shares.importances_mean.shape == (3,)


class TestArguments:
    def test_set_params_are_used_in_the_next_fit(self):
        model = regressor().fit(TABLE, Z)
        before = model.predict(TABLE)
        model.set_params(hidden_size=6, block_size=3, nonlinearity="relu")
        assert_array_equal(model.predict(TABLE), before)
        assert model.fit(TABLE, Z).network_.rnn.block_size == 3

    def test_unknown_names_are_refused(self):
        with pytest.raises(ValueError, match="Invalid parameter 'hiden_size'"):
            regressor().set_params(hiden_size=3)
        with pytest.raises(TypeError, match="did you mean 'hidden_size'"):
            ParaRNNRegressor(hiden_size=3)

    @pytest.mark.parametrize("model", [regressor(), classifier()], ids=["regressor", "classifier"])
    def test_all_arguments_are_in_get_params(self, model):
        params = model.get_params()
        assert {"hidden_size", "cell", "bound", "random_state"} <= set(params)
        assert ("loss" in params) == isinstance(model, ParaRNNRegressor)
        assert clone(type(model)(**params)).get_params() == params

    def test_another_kind_of_samples_may_come_next(self):
        model = regressor()
        frame = pd.DataFrame(TABLE, columns=["a", "b", "c"])
        for X in (frame, RAGGED, ARRAY, TABLE):
            assert model.fit(X, Z).predict(X).shape == (N,)
            assert hasattr(model, "feature_names_in_") == (X is frame)
        assert model.n_features_in_ == 3
