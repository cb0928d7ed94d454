"""The history of features holds what was there at each epoch, and watching changes nothing."""

import copy
import io
import subprocess
import sys
from types import SimpleNamespace

import lightning.pytorch as pl
import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from lightning.pytorch.callbacks import Callback
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

mpl.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.colors import to_rgba

from tsrnn import ParaRNNForecaster
from tsrnn.interpret import FeatureHistory, jordan_block, recurrence_features
from tsrnn.kernels import Cell
from tsrnn.layers import (
    LEM,
    LRU,
    BlockRecurrentAttention,
    Ensemble,
    NewtonBlocks,
    NewtonGRU,
    ParaRNN,
    RecurrentNetwork,
)
from tsrnn.plotting import plot_feature_history, plot_features


@pytest.fixture(autouse=True)
def _nothing_global_stays():
    generator = torch.get_rng_state()
    yield
    plt.close("all")
    assert torch.equal(torch.get_rng_state(), generator)


def seeded(make):
    """Make a module from its own seed; constructors draw from torch's generator."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return make()


class Regression(pl.LightningModule):
    """A recurrent layer and a linear one, as a user may write it."""

    def __init__(self, rnn):
        super().__init__()
        self.rnn = rnn
        self.output = seeded(lambda: nn.Linear(rnn.hidden_size, 1))

    def training_step(self, batch, _):
        x, y = batch
        return (self.output(self.rnn(x)[0]) - y).square().mean()

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.05)


class Moved(pl.LightningModule):
    """Not trained: an epoch sets its recurrent matrix to one of a list."""

    def __init__(self, rnn, matrices):
        super().__init__()
        self.rnn, self.matrices = rnn, matrices
        self.automatic_optimization = False

    def on_train_epoch_start(self):
        put(self.rnn, self.matrices[self.current_epoch])

    def training_step(self, batch, _):
        return None

    def configure_optimizers(self):
        return None


@torch.no_grad()
def put(rnn, matrix):
    rnn.weight_hh_l0.copy_(torch.as_tensor(matrix)[..., None])


def train(module, *callbacks, epochs=2):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(4, 12, 1, generator=generator)
    names = ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary")
    quiet = dict.fromkeys(names, False)
    trainer = pl.Trainer(accelerator="cpu", max_epochs=epochs, callbacks=[*callbacks], **quiet)
    pairs = TensorDataset(x, x.cumsum(1))
    trainer.fit(module, DataLoader(pairs, batch_size=2, generator=generator))


class Copies(Callback):
    """Keep the module as it was at every epoch."""

    def __init__(self):
        self.modules = []

    def on_train_start(self, trainer, pl_module):
        self.modules.append(copy.deepcopy(pl_module.rnn))

    def on_train_epoch_end(self, trainer, pl_module):
        self.modules.append(copy.deepcopy(pl_module.rnn))


@pytest.fixture(scope="module")
def sales():
    index = pd.date_range("2015-01-01", periods=80, freq="MS")
    draw = np.random.default_rng(0)
    return pd.Series(np.sin(np.arange(80) / 2) + draw.normal(size=80) / 5, index, name="sales")


def forecaster(*callbacks, **changes):
    small = {"horizon": 4, "input_size": 12, "hidden_size": 8, "max_epochs": 2, "refit": False}
    return ParaRNNForecaster(**{"random_state": 0} | small | changes, callbacks=list(callbacks))


class TestKnownAnswers:
    def test_a_matrix_moved_from_r4_to_c2_is_recorded_so(self):
        rnn = seeded(lambda: ParaRNN(1, 4, 4, dtype=torch.float64))
        three = np.zeros((4, 4))
        three[:3, :3], three[3, 3] = jordan_block(0.9, 0.0, 3), 0.5
        put(rnn, jordan_block(0.9, 0.0, 4))
        history = FeatureHistory(freq="h")
        wave = jordan_block(0.8, np.pi / 6, 2)
        train(Moved(rnn, [three, np.diag([0.9, 0.7, 0.5, -0.3]), wave]), history, epochs=3)
        types = history.frame.groupby("epoch")["type"].agg(list)
        assert types.to_dict() == {0: ["R-4"], 1: ["R-3", "R-1"], 2: ["R-1"] * 4, 3: ["C-2"]}
        last = history.frame.iloc[-1]
        assert last["modulus"] == pytest.approx(0.8)
        assert last["period"] == pytest.approx(12.0)
        assert last["half_life"] == pytest.approx(np.log(0.5) / np.log(0.8))
        assert history.frame.attrs == {"time_unit": "hours", "time_step": 1}

    @pytest.mark.parametrize(
        "make",
        [
            lambda: ParaRNN(1, 4, num_layers=2),
            lambda: ParaRNN(1, 6, 6),
            lambda: ParaRNN(1, 4, cell="gru"),
            lambda: ParaRNN(1, 4, cell="lstm"),
            lambda: LEM(1, 4),
            lambda: LRU(1, 4),
            lambda: NewtonGRU(1, 4),
            lambda: NewtonBlocks(1, 8, n_heads=2),
            lambda: BlockRecurrentAttention(1, 8, n_states=2, window=4),
            lambda: RecurrentNetwork(ParaRNN(1, 4), 4),
            lambda: nn.RNN(1, 4, batch_first=True),
        ],
    )
    def test_each_layer_is_read_as_by_hand(self, make):
        history, copies = FeatureHistory(), Copies()
        train(Regression(seeded(make)), history, copies)
        weights = [dict(module.named_parameters()) for module in copies.modules]
        assert any(not torch.equal(old, weights[-1][name]) for name, old in weights[0].items())
        by_hand = [
            recurrence_features(module).assign(training=1, epoch=epoch)
            for epoch, module in enumerate(copies.modules)
        ]
        expected = pd.concat(by_hand, ignore_index=True)
        assert sorted(set(expected["epoch"])) == [0, 1, 2]
        pd.testing.assert_frame_equal(history.frame, expected, check_like=True)

    def test_parts_are_numbered_on_and_read_once(self):
        module = Regression(seeded(lambda: ParaRNN(1, 4, num_layers=2)))
        module.decoder = seeded(lambda: RecurrentNetwork(LEM(1, 4), 1))
        module.same = module.decoder.rnn
        history = FeatureHistory()
        train(module, history, epochs=1)
        start = history.frame.query("epoch == 0 and layer == 3")
        decoder = recurrence_features(module.decoder)
        assert sorted(set(history.frame["layer"])) == [1, 2, 3]
        assert start["matrix"].tolist() == decoder["matrix"].tolist()
        np.testing.assert_array_equal(start["modulus"], decoder["modulus"])  # not trained

    def test_layers_of_an_ensemble_are_numbered_on(self):
        members = [
            seeded(lambda: RecurrentNetwork(ParaRNN(1, 4, num_layers=2), 1)) for _ in range(2)
        ]
        module = Regression(seeded(lambda: ParaRNN(1, 4)))
        module.ensemble = Ensemble(members)
        history = FeatureHistory()
        train(module, history, epochs=1)
        assert sorted(set(history.frame["layer"])) == [1, 2, 3, 4, 5]
        assert "network" not in history.frame
        for name in ("modulus", "angle"):
            found = history.frame.query("epoch == 0 and layer > 1")[name]
            np.testing.assert_array_equal(found, recurrence_features(module.ensemble)[name])

    @pytest.mark.parametrize("every", [np.int64(2), np.int8(2)])
    def test_numpy_integers_are_integers(self, every):
        assert FeatureHistory(every=every).every == 2


class TestForecasters:
    def test_the_forecaster_is_the_same_with_and_without(self, sales):
        history = FeatureHistory()
        watched, alone = forecaster(history).fit(sales), forecaster().fit(sales)
        for name, value in alone.model_.state_dict().items():
            assert torch.equal(watched.model_.state_dict()[name], value), name
        assert watched.history_ == alone.history_
        pd.testing.assert_series_equal(watched.predict(), alone.predict())

    def test_the_best_epoch_is_what_the_fitted_forecaster_has(self, sales):
        history = FeatureHistory(freq="MS")
        model = forecaster(history, linear_path=False).fit(sales)
        assert model.network_active_
        best = history.frame[history.frame["kept"]]
        assert best["epoch"].unique().tolist() == [model.best_epoch_]
        fitted = recurrence_features(model)
        np.testing.assert_array_equal(best["half_life"], fitted["half_life"])
        assert best.attrs.items() < fitted.attrs.items()

    def test_a_network_that_learns_nothing_keeps_its_start(self, sales):
        history = FeatureHistory()
        assert not forecaster(history, learning_rate=30.0).fit(sales).network_active_
        assert history.frame.groupby("epoch")["kept"].first().to_dict() == {
            0: True, 1: False, 2: False
        }  # fmt: skip
        (label,) = plot_feature_history(history.frame)[0, 0].figure.findobj(
            lambda artist: "nothing was learned" in getattr(artist, "get_text", str)()
        )
        assert label.get_text() == "Epoch (0 is kept: nothing was learned)"

    def test_a_refit_keeps_its_last_epoch(self, sales):
        history = FeatureHistory()
        model = forecaster(history, linear_path=False, refit=True).fit(sales)
        again = history.frame[history.frame["training"] == 2]
        assert again.loc[again["kept"], "epoch"].unique().tolist() == [model.best_epoch_]

    def test_networks_and_refits_are_trainings_in_their_order(self, sales):
        history = FeatureHistory()
        model = forecaster(history, n_estimators=2, refit=True, network=True).fit(sales)
        bests = [
            min(
                (e for e in model.history_ if e["network"] == network),
                key=lambda epoch: epoch["val_loss"],
            )["epoch"]
            for network in (1, 2)
        ]
        lasts = history.frame.groupby("training")["epoch"].max()
        assert lasts.to_dict() == {1: 2, 2: 2, 3: bests[0], 4: bests[1]}

    def test_a_second_fit_goes_on(self, sales):
        history = FeatureHistory()
        model = forecaster(history, max_epochs=1).fit(sales)
        model.fit(sales)
        frame = history.frame.drop(columns="training")
        first, second = (frame[history.frame["training"] == i] for i in (1, 2))
        pd.testing.assert_frame_equal(first, second.reset_index(drop=True))


class TestState:
    def test_goes_through_a_checkpoint_that_holds_plain_types(self, sales):
        history, other = FeatureHistory(freq="MS"), FeatureHistory(freq="MS")
        forecaster(history, max_epochs=1, cell="gru").fit(sales)
        stored = io.BytesIO()
        torch.save(history.state_dict(), stored)
        stored.seek(0)
        other.load_state_dict(torch.load(stored, weights_only=True))
        pd.testing.assert_frame_equal(other.frame, history.frame)
        assert other.frame.attrs == history.frame.attrs
        for each in (history, other):
            forecaster(each, max_epochs=1, cell="gru").fit(sales)
        pd.testing.assert_frame_equal(other.frame, history.frame)
        assert history.frame["training"].unique().tolist() == [1, 2]

    def test_without_a_record(self):
        other = FeatureHistory()
        other.load_state_dict(FeatureHistory().state_dict())
        with pytest.raises(ValueError, match="no training was recorded"):
            _ = other.frame

    def test_histories_of_other_settings_are_told_apart(self, sales):
        histories = FeatureHistory(), FeatureHistory(every=2), FeatureHistory(freq="MS")
        forecaster(*histories).fit(sales)
        epochs = [history.frame["epoch"].unique().tolist() for history in histories]
        assert epochs == [[0, 1, 2], [0, 2], [0, 1, 2]]


class TestWhen:
    def test_start_multiples_and_the_last_epoch(self):
        history = FeatureHistory(every=2)
        train(Regression(seeded(lambda: ParaRNN(1, 2))), history, epochs=3)
        assert history.frame["epoch"].unique().tolist() == [0, 2, 3]

    @settings(max_examples=20, deadline=None)
    @given(every=st.integers(1, 7), epochs=st.integers(0, 9), begun=st.integers(0, 5))
    def test_for_any_length_and_wherever_it_begins(self, every, epochs, begun):
        history, module = FeatureHistory(every=every), seeded(lambda: ParaRNN(1, 2))
        history.on_train_start(SimpleNamespace(current_epoch=begun), module)
        for epoch in range(begun, begun + epochs):
            history.on_train_epoch_end(SimpleNamespace(current_epoch=epoch), module)
        history.on_train_end(SimpleNamespace(current_epoch=begun + epochs), module)
        wanted = {epoch for epoch in range(begun + 1, begun + epochs + 1) if epoch % every == 0}
        recorded = history.frame["epoch"].unique().tolist()
        assert recorded == sorted(wanted | {begun, begun + epochs})

    def test_importing_the_room_loads_no_lightning(self):
        code = "import sys, tsrnn.interpret; sys.exit('lightning' in sys.modules)"
        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


class TestRefusals:
    @pytest.mark.parametrize("every", [0, -1, 1.0, True, "2"])
    def test_every(self, every):
        with pytest.raises(ValueError, match="`every` must be a positive whole number of epochs"):
            FeatureHistory(every=every)

    def test_a_module_without_recurrence(self):
        module = Regression(seeded(lambda: nn.LSTM(1, 4, batch_first=True)))
        before = copy.deepcopy(module.state_dict())
        with pytest.raises(ValueError, match="found nothing to read in this Regression"):
            train(module, FeatureHistory())
        assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())

    def test_a_cell_without_matrices(self):
        cell = Cell("mine", n=1, m=1, p=1, step=lambda h, u, a: (a[0] * h[0] + u[0],))
        module = Regression(seeded(lambda: ParaRNN(1, 4, cell=cell)))
        with pytest.raises(ValueError, match="cell 'mine' has no recurrent matrices"):
            train(module, FeatureHistory())

    def test_nothing_recorded(self):
        with pytest.raises(ValueError, match="no training was recorded: pass this FeatureHistory"):
            _ = FeatureHistory().frame


def recorded(matrices, **columns):
    """A frame of one layer whose matrix is the given one at epochs 0, 1, ..."""
    tables = [recurrence_features(m).assign(epoch=i) for i, m in enumerate(matrices)]
    return pd.concat(tables, ignore_index=True).assign(training=1, **columns)


@pytest.fixture
def moved():
    """Three features of types R-2, R-1, C-1, then of R-1 twice and C-2."""
    first, second = np.zeros((5, 5)), np.zeros((6, 6))
    first[:2, :2], first[2, 2] = jordan_block(0.9, 0.0, 2), 0.5
    first[3:, 3:] = jordan_block(0.8, 1.0, 1)
    second[:4, :4], second[4, 4], second[5, 5] = jordan_block(0.9, 1.0, 2), 0.5, 0.2
    return recorded([first, second])


def areas(ax):
    """Heights at each epoch of the areas of a panel, by colour."""
    found = {}
    for area in ax.collections:
        vertices = area.get_paths()[0].vertices
        epochs = np.unique(vertices[:, 0])
        found[tuple(area.get_facecolor()[0])] = [
            np.ptp(vertices[vertices[:, 0] == epoch, 1]) for epoch in epochs
        ]
    return found


def shades(ax):
    """Colours of the types, from the legend."""
    (legend,) = ax.figure.legends
    texts, patches = legend.get_texts(), legend.get_patches()
    return {t.get_text(): p.get_facecolor() for t, p in zip(texts, patches, strict=True)}


class TestPlot:
    def test_areas_are_the_shares(self, moved):
        ax = plot_feature_history(moved)[0, 0]
        colours, drawn = shades(ax), areas(ax)
        assert list(colours) == ["C-1", "C-2", "R-2", "R-1"]
        heights = {kind: drawn[shade] for kind, shade in colours.items()}
        third = 1 / 3
        expected = {"R-1": [third, 2 * third], "R-2": [third, 0], "C-1": [third, 0]}
        for kind, values in (expected | {"C-2": [0, third]}).items():
            np.testing.assert_allclose(heights[kind], values, atol=1e-12)
        assert ax.get_xlim() == (0, 1)

    def test_the_simple_types_lie_outside_and_have_the_full_colours(self, moved):
        ax = plot_feature_history(moved)[0, 0]
        colours = shades(ax)
        assert colours["R-1"] == to_rgba("#0072B2")
        assert colours["C-1"] == to_rgba("#D55E00")
        assert sum(colours["R-2"][:3]) > sum(colours["R-1"][:3])
        lowest, highest = ax.collections[0], ax.collections[-1]
        assert tuple(lowest.get_facecolor()[0]) == colours["R-1"]
        assert tuple(highest.get_facecolor()[0]) == colours["C-1"]
        np.testing.assert_allclose(highest.get_paths()[0].vertices[:, 1].max(), 1.0)

    def test_a_panel_a_matrix_and_layer(self, moved):
        parts = [
            moved.assign(layer=layer, matrix=matrix)
            for layer, matrix in [(1, "W_z"), (1, "W_r"), (2, "W_z")]
        ]
        axes = plot_feature_history(pd.concat(parts))
        titles = [[ax.get_title("left") for ax in row] for row in axes]
        assert titles == [["layer 1, W_z", "layer 2, W_z"], ["layer 1, W_r", ""]]
        assert not axes[1, 1].axison
        axes[0, 0].figure.canvas.draw()

    def test_one_training_is_drawn_the_first_by_default(self, moved):
        later = moved.assign(training=3, epoch=1 - moved["epoch"])
        both = pd.concat([later, moved])
        for number, frame in ((None, moved), (1, moved), (3, later)):
            found, expected = plot_feature_history(both, number), plot_feature_history(frame)
            assert areas(found[0, 0]) == areas(expected[0, 0])
        with pytest.raises(ValueError, match=r"training must be one of .*\[1, 3\]; got 2"):
            plot_feature_history(both, training=2)

    def test_zeros_have_an_area_of_their_own(self):
        ax = plot_feature_history(recorded([np.zeros((2, 2)), np.eye(2) / 2]))[0, 0]
        assert list(shades(ax)) == ["zero", "R-1"]

    def test_what_training_recorded_is_drawn_and_an_epoch_of_it_too(self, sales):
        history = FeatureHistory(freq="MS")
        forecaster(history, cell="gru").fit(sales)
        before = history.frame
        assert plot_feature_history(before).shape == (3, 2)
        pd.testing.assert_frame_equal(before, history.frame)
        plot_features(before[before["epoch"] == 1])

    @pytest.mark.parametrize(
        ("spoil", "error", "message"),
        [
            (lambda f: "history", TypeError, "of a FeatureHistory; got str"),
            (lambda f: f.drop(columns="type"), ValueError, r"lacks the columns \['type'\]"),
            (lambda f: f[f["epoch"] == 1], ValueError, r"at least two epochs .* got \[1\]"),
            (lambda f: f.head(0), ValueError, r"at least two epochs .* got \[\]"),
        ],
    )
    def test_other_frames_are_refused(self, moved, spoil, error, message):
        with pytest.raises(error, match=message):
            plot_feature_history(spoil(moved))
