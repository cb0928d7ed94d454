"""Forecasters of gated networks and of a user's own cell: whose state exceeds its outputs."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone

import tsrnn
from tsrnn import recurrence_features
from tsrnn.kernels import Cell

# Without the linear path, so that forecasts are those of the network.
NETWORK = {"linear_path": False, "learning_rate": 0.02, "n_layers": 2, "max_epochs": 3}


def _step(state, inputs, params):
    y, z = state
    z = torch.sigmoid(inputs[1]) * z + torch.tanh(inputs[0] + params[0] * y)
    return z / (1 + z * z), z


OWN = Cell("own", n=2, m=2, p=1, step=_step, outputs=1)
CELLS = {"gru": "gru", "lstm": "lstm", "own": OWN}


@pytest.fixture(scope="module", params=CELLS)
def make(request, small):
    return lambda **changes: small(**(NETWORK | {"cell": CELLS[request.param]} | changes))


@pytest.fixture(scope="module")
def early(make, panel, cut):
    """Return a forecaster that has not seen the last nine rows of each series."""
    model = make().fit(cut(panel, 9)[0])
    assert model.best_epoch_ > 0
    return model


class TestState:
    def test_is_all_that_the_cell_carries(self, early):
        fields = {"gru": 1, "lstm": 2}.get(early.cell, 2)
        assert early.state_.hidden.shape == (2, 3, fields * 8)
        assert (early.state_.hidden.abs() > 1e-6).float().mean() > 0.9

    def test_update_equals_the_whole_history(self, early, panel, cut, same):
        model = copy.deepcopy(early).update(cut(panel, 9)[1])
        same(model.predict(6, level=[80]), early.predict(panel, level=[80]), rtol=1e-5)
        same(model.predict(15), early.predict(panel, h=15), rtol=1e-5)

    def test_row_by_row_equals_all_at_once(self, early, panel, cut, same):
        rows = cut(panel, 9)[1]
        one, all_ = copy.deepcopy(early), copy.deepcopy(early).update(rows)
        for step in range(9):
            one.update(rows.groupby("unique_id").nth(step))
        same(one.predict(6), all_.predict(6), rtol=1e-5)

    def test_of_some_series(self, early, panel, cut, same):
        rows = cut(panel, 9)[1]
        some = copy.deepcopy(early).update(rows[rows["unique_id"] == "b"])
        all_ = copy.deepcopy(early).update(rows)
        forecast = some.predict(3).set_index("unique_id")
        same(forecast.loc[["b"]], all_.predict(3).set_index("unique_id").loc[["b"]])
        same(forecast.loc[["a", "c"]], early.predict(3).set_index("unique_id").loc[["a", "c"]])

    def test_rolling_forecasts_are_those_of_updates(self, early, panel, cut, same):
        rows = cut(panel, 9)[1]
        rolled = early.predict_rolling(rows, h=3)
        model = copy.deepcopy(early)
        for step in range(4):
            expected = model.predict(3).reset_index(drop=True)
            chosen = rolled.groupby(["unique_id", "cutoff"], sort=False).ngroup() % 7 == step
            same(rolled[chosen].drop(columns="cutoff").reset_index(drop=True), expected, 1e-5)
            model.update(rows.groupby("unique_id").nth(step))


def test_the_state_of_known_columns_and_of_all_targets_together(small, exog, wide, cut, same):
    past, future = cut(exog, 6)
    model = small(**NETWORK, cell="lstm", known_ahead="x").fit(past)
    ahead = future[["unique_id", "ds", "x"]]
    same(model.predict(past, X_future=ahead), model.predict(X_future=ahead), rtol=1e-5)
    settings = NETWORK | {"multivariate": "joint", "aggregation": "ffn"}
    joint = small(**settings, cell="lstm").fit(wide[:-6])
    same(copy.deepcopy(joint).update(wide[-6:]).predict(), joint.predict(wide), rtol=1e-5)


class TestContract:
    def test_parameters_are_untouched_and_cloned(self, early):
        assert early.get_params()["cell"] is early.cell
        copied = clone(early).set_params(horizon=4)
        assert copied.get_params() == early.get_params() | {"horizon": 4}

    def test_a_random_state_gives_the_same_forecasts(self, early, make, panel, cut, same):
        same(make().fit(cut(panel, 9)[0]).predict(), early.predict(), rtol=0)

    def test_cells_forecast_differently(self, early, small, panel, cut):
        rnn = small(**NETWORK).fit(cut(panel, 9)[0])
        assert not np.allclose(rnn.predict()["ParaRNN"], early.predict()["ParaRNN"], rtol=1e-3)

    def test_parts_sum_to_the_forecast(self, early):
        parts = early.contributions()
        forecast = early.predict()["ParaRNN"].to_numpy()
        np.testing.assert_allclose(parts.sum(axis="columns"), forecast, rtol=1e-9)
        blocks = parts.filter(like="block")
        assert blocks.shape[1] == early.network_.rnn.n_blocks
        assert (blocks.abs().sum() > 0).all()

    @pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
    def test_copies_are_whole(self, early, panel, cut, same, copied):
        model = copied(early).update(cut(panel, 9)[1])
        same(model.predict(), copy.deepcopy(early).update(cut(panel, 9)[1]).predict(), rtol=0)


class TestStorage:
    @pytest.mark.parametrize("cell", ["gru", "lstm"])
    def test_round_trip(self, small, panel, cut, tmp_path, same, cell):
        past, future = cut(panel, 9)
        model = small(**NETWORK, cell=cell).fit(past)
        model.save(tmp_path / "model")
        loaded = tsrnn.load(tmp_path / "model")
        assert loaded.get_params() == model.get_params()
        assert loaded.settings_ == model.settings_
        assert str(loaded.summary()) == str(model.summary())
        same(loaded.update(future).predict(), model.update(future).predict(), rtol=0)

    def test_a_cell_of_ones_own_is_refused(self, small, wave, tmp_path):
        model = small(cell=OWN, max_epochs=1).fit(wave)
        with pytest.raises(TypeError, match="one by name.*the cell 'own', whose step is"):
            model.save(tmp_path / "model")
        assert not list(tmp_path.iterdir())


class TestSummary:
    def test_features_of_every_matrix(self, small, panel):
        model = small(**NETWORK, cell="lstm").fit(panel)
        features = recurrence_features(model)
        assert list(features.columns[:3]) == ["layer", "matrix", "block"]
        assert list(features["matrix"].unique()) == ["W_i", "W_f", "W_g", "W_o"]
        shares = features.groupby(["layer", "block"])["share"]
        assert (shares.nunique() == 1).all()
        np.testing.assert_allclose(shares.first().loc[2].sum(), 1, atol=1e-5)
        one = features.query("layer == 2 and matrix == 'W_f' and block == 3")
        alone = recurrence_features(model.network_.recurrent_blocks()[1]["W_f"][2])
        np.testing.assert_allclose(one["modulus"], alone["modulus"])
        text = str(model.summary())
        assert "Cell:                           lstm" in text
        assert "each recurrent matrix by itself" in text
        assert "Nonlinearity" not in text

    def test_a_cell_without_matrices_has_no_features(self, small, wave):
        model = small(cell=OWN, max_epochs=1).fit(wave)
        summary = model.summary()
        assert summary.network_features is None
        assert "of the network's matrices" not in str(summary)
        assert "Cell:                            own" in str(summary)
        with pytest.raises(ValueError, match="cell 'own' has no recurrent matrices"):
            recurrence_features(model)

    def test_the_plain_network(self, small, wave):
        summary = small(max_epochs=1, network=True).fit(wave).summary()
        assert summary.facts["Nonlinearity"] == "tanh"
        assert summary.facts["Cell"] == "rnn"
        assert "matrix" not in summary.network_features


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cell": "LSTM"}, r"one of \('rnn', .*\) or a tsrnn.kernels.Cell; got 'LSTM'"),
        ({"cell": None}, "got None"),
        ({"cell": "gru", "nonlinearity": "relu"}, "a choice of cell='rnn'; got nonl"),
        ({"cell": OWN, "block_size": 2}, "cell 'own' is the number of its outputs, 1; got 2"),
        ({"cell": "lstm", "block_size": 3}, "multiple of block_size"),
        (
            {"cell": "attention", "hidden_size": 30},
            "of block_size and of n_heads; got hidden_size=30, block_size=2, n_heads=4. "
            "Take hidden_size=32",
        ),
        (
            {"cell": "attention", "block_size": 3},
            "hidden_size=8, block_size=3, n_heads=4. Take .*=12",
        ),
        ({"cell": "attention", "init": "chrono"}, "init is no choice of .*got 'chrono'. Leave it"),
        ({"cell": "attention", "chrono_length": 9.0}, "chrono_length is no choice .*got 9.0. Lea"),
    ],
)
def test_refusals(small, wave, changes, message):
    with pytest.raises(ValueError, match=message):
        small(**changes).fit(wave)


def test_settings_know_the_size_of_an_own_cell(small, wave):
    options = small(cell=OWN, max_epochs=1).fit(wave).settings_.options
    assert (options["cell"], options["block_size"]) == (OWN, 1)


def test_options_of_numpy_are_kept_in_a_file(wave, tmp_path):
    options = {"recurrent_layer": np.int64(1)}
    model = tsrnn.ParaRNNForecaster(
        3, cell="attention", window=4, n_states=2, hidden_size=8, n_layers=1, max_epochs=1,
        prior=None, layer_options=options,
    ).fit(wave)  # fmt: skip
    model.save(tmp_path / "model.tsrnn")
    pd.testing.assert_series_equal(
        tsrnn.load(tmp_path / "model.tsrnn").predict(3), model.predict(3)
    )
