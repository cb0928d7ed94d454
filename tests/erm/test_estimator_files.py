"""Files, pickles and clones of estimators: what comes back predicts the same."""

import pickle

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_array_equal
from sklearn.base import clone

import tsrnn
from tsrnn.erm import ParaRNNClassifier, ParaRNNRegressor
from tsrnn.kernels import Cell
from tsrnn.layers import CELLS

RNG = np.random.default_rng(3)
RAGGED = [RNG.normal(size=(n, 2)) for n in (3, 1, 4, 1, 5, 9, 2, 6)]
STEPS = [part.sum(1) for part in RAGGED]
Z = RNG.normal(size=8)
WORDS = np.array(["up", "down", "level", "up", "down", "level", "up", "up"])
SMALL = {"hidden_size": 4, "max_epochs": 1, "random_state": 0}


def _leaky(h, u, w):
    return (w[0] * h[0] + u[0],)


LEAKY = Cell("leaky_sum", n=1, m=1, p=1, step=_leaky)


def regressor(**params):
    return ParaRNNRegressor(**SMALL | params)


def classifier(**params):
    return ParaRNNClassifier(**SMALL | params)


def saved(model, folder):
    path = folder / "model.safetensors"
    model.save(path)
    return tsrnn.load(path)


def pickled(model, _):
    return pickle.loads(pickle.dumps(model))


WAYS = (saved, pickled)


def assert_same(one, other, X):
    """Equal in all that a user can see."""
    assert type(one) is type(other)
    assert_array_equal(np.hstack(one.predict(X)), np.hstack(other.predict(X)))
    public = {name for name in vars(one) if name.endswith("_")}
    assert public == {name for name in vars(other) if name.endswith("_")}
    for name in ("n_train_", "n_validation_", "history_", "best_epoch_", "n_features_in_"):
        assert getattr(one, name) == getattr(other, name), name
    for name in ("training_risk_", "validation_risk_"):
        mine, others = getattr(one, name), getattr(other, name)
        assert repr(mine) == repr(others)
        if mine is not None:
            assert_array_equal(mine.losses, others.losses)
    assert str(one.summary()) == str(other.summary())


class TestWhatComesBack:
    @pytest.mark.parametrize("cell", CELLS)
    def test_every_cell(self, cell, tmp_path):
        model = regressor(cell=cell).fit(RAGGED, Z)
        for way in WAYS:
            assert_same(model, way(model, tmp_path), RAGGED)

    @pytest.mark.parametrize(
        "params",
        [
            {"many_to_many": True},
            {"many_to_many": True, "early_stopping": False, "loss": "absolute_error"},
            {"standardize": False, "bound": 0.5, "nonlinearity": "relu"},
            {"n_layers": 2, "layer_options": {"dropout": 0.1}, "aggregation": "ffn"},
            {"hidden_size": np.int64(4), "learning_rate": np.float64(0.01), "block_size": 4},
            {"input_projection": True, "init": "uniform", "patience": None},
        ],
    )
    def test_every_argument(self, params, tmp_path):
        model = regressor(**params).fit(RAGGED, STEPS if params.get("many_to_many") else Z)
        for way in WAYS:
            back = way(model, tmp_path)
            assert_same(model, back, RAGGED)
            assert back.get_params() == model.get_params()

    @pytest.mark.parametrize(
        "labels",
        [
            WORDS,
            WORDS.astype(object),
            pd.Series(WORDS),
            pd.Categorical(WORDS),
            WORDS == "up",
            (WORDS == "up").astype(int),
            (WORDS == "up").astype("i1"),
            (WORDS == "up").astype("u8") + 2**60,
            np.where(WORDS == "up", 0.5, -3.0) // 1,
            np.array(["größer", "klein"] * 4),
        ],
        ids=str,
    )
    def test_labels_keep_their_type(self, labels, tmp_path):
        model = classifier().fit(RAGGED, labels)
        backs = [way(model, tmp_path) for way in WAYS]
        for back in backs:
            assert_same(model, back, RAGGED)
            assert_array_equal(back.predict_proba(RAGGED), model.predict_proba(RAGGED))
            assert back.score(RAGGED, labels) == model.score(RAGGED, labels)
        for found in (model, *backs):
            assert_array_equal(found.classes_, np.unique(np.asarray(labels)))
            kind = np.asarray(labels).dtype.kind
            assert found.classes_.dtype.kind == found.predict(RAGGED).dtype.kind == kind
            assert type(found.predict(RAGGED)[0]) is type(np.asarray(labels)[0])

    @pytest.mark.parametrize("shape", [(8,), (8, 1), (8, 2)])
    def test_targets_keep_their_shape(self, shape, tmp_path):
        model = regressor().fit(RAGGED, RNG.normal(size=shape))
        for way in WAYS:
            assert way(model, tmp_path).predict(RAGGED).shape == shape

    def test_columns_of_a_table_keep_their_names(self, tmp_path):
        X = pd.DataFrame(RNG.normal(size=(8, 3)), columns=["a", "b", "c"])
        model = regressor().fit(X, Z)
        for way in WAYS:
            back = way(model, tmp_path)
            assert_array_equal(back.feature_names_in_, ["a", "b", "c"])
            with pytest.raises(ValueError, match="feature names"):
                back.predict(X[["b", "a", "c"]])
            with pytest.raises(ValueError, match="feature names"):
                back.predict(X[["a", "b"]])

    def test_weighted_risks(self, tmp_path):
        model = regressor().fit(RAGGED, Z, np.arange(8.0))
        for way in WAYS:
            back = way(model, tmp_path)
            assert_same(model, back, RAGGED)
            assert_array_equal(back.training_risk_.weights, model.training_risk_.weights)

    def test_it_can_go_on(self, tmp_path):
        model = classifier().fit(RAGGED, WORDS)
        for way in WAYS:
            back = way(model, tmp_path)
            assert back.partial_fit(RAGGED, WORDS).n_train_ == 7 + 8
            back.set_params(cell="gru").fit(RAGGED, Z > 0)
            assert_array_equal(back.classes_, [False, True])

    def test_a_pickle_goes_on_where_it_was(self):
        """With the state of the optimiser, which files do not keep."""
        model = regressor().partial_fit(RAGGED, Z)
        back = pickled(model, None)
        one, other = (m.partial_fit(RAGGED, Z).predict(RAGGED) for m in (model, back))
        assert_array_equal(one, other)


class TestOwnCells:
    def test_a_pickle_has_them(self):
        model = regressor(cell=LEAKY).fit(RAGGED, Z)
        assert_array_equal(pickled(model, None).predict(RAGGED), model.predict(RAGGED))

    def test_a_file_has_not(self, tmp_path):
        model = regressor(cell=LEAKY).fit(RAGGED, Z)
        with pytest.raises(TypeError, match=r"'leaky_sum', whose step is code.*Use pickle"):
            model.save(tmp_path / "model")
        assert not [*tmp_path.iterdir()]


class TestFiles:
    def test_generators_are_not_kept(self, tmp_path):
        model = regressor(random_state=np.random.default_rng(0)).fit(RAGGED, Z)
        back = saved(model, tmp_path)
        assert back.random_state is None
        assert_array_equal(back.predict(RAGGED), model.predict(RAGGED))

    def test_a_file_of_a_class_to_come_is_refused(self, tmp_path, monkeypatch):
        monkeypatch.delitem(tsrnn.models.MODELS, "ParaRNNRegressor")
        with pytest.raises(ValueError, match="holds a ParaRNNRegressor.*Install a newer tsrnn"):
            saved(regressor().fit(RAGGED, Z), tmp_path)

    def test_a_damaged_file_is_refused(self, tmp_path):
        path = tmp_path / "model"
        regressor().fit(RAGGED, Z).save(path)
        path.write_bytes(path.read_bytes()[:-100])
        with pytest.raises(ValueError, match="model"):
            tsrnn.load(path)

    def test_loading_leaves_random_numbers_alone(self, tmp_path):
        model = regressor().fit(RAGGED, Z)
        before = torch.get_rng_state()
        saved(model, tmp_path)
        assert torch.equal(torch.get_rng_state(), before)


class TestClones:
    def test_have_the_arguments_and_no_fit(self):
        model = classifier(layer_options={"dropout": 0.1}, n_layers=2).fit(RAGGED, WORDS)
        copy = clone(model)
        assert copy.get_params() == model.get_params()
        assert not [name for name in vars(copy) if name.endswith("_")]
        assert_array_equal(
            copy.fit(RAGGED, WORDS).predict_proba(RAGGED), model.predict_proba(RAGGED)
        )

    def test_share_their_cell(self):
        assert clone(regressor(cell=LEAKY)).cell == LEAKY


def test_a_partial_fit_with_other_arguments_of_the_network_is_refused(tmp_path):
    rng = np.random.default_rng(0)
    X, z = rng.normal(size=(20, 5, 1)), rng.normal(size=20)
    model = ParaRNNRegressor(4, max_epochs=1, random_state=0).fit(X, z)
    model.set_params(hidden_size=8)
    with pytest.raises(ValueError, match="hidden_size was 4 and is now 8"):
        model.partial_fit(X, z)
    model.set_params(hidden_size=4).partial_fit(X, z).save(tmp_path / "model")
    assert (tsrnn.load(tmp_path / "model").predict(X) == model.predict(X)).all()
    assert "partial fit" in str(model.summary())
