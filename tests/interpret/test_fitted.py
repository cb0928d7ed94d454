"""Fitted forecasters are read as their layers are, with the inputs of the sample given by hand."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.exceptions import NotFittedError

from tsrnn import LEMForecaster, LRUForecaster, ParaRNNForecaster, load
from tsrnn.interpret import (
    block_shares,
    gradient_bound,
    hidden_state_bound,
    memory_lengths,
    reconstruct_input,
    recurrence_features,
    time_scales,
    time_steps,
)
from tsrnn.layers import LEM, LRU, Ensemble, RecurrentNetwork

SMALL = {
    "horizon": 2, "hidden_size": 4, "n_layers": 1, "input_size": 6, "multivariate": "joint",
    "max_epochs": 1, "refit": False, "random_state": 0, "linear_path": False,
}  # fmt: skip
PROJECTED = {"preset": "paper"}
VARIANTS = {
    "one layer": {},
    "two layers": {"n_layers": 2},
    "projected": PROJECTED,
    "projected, two layers": {**PROJECTED, "n_layers": 2},
    "a series a target": {"multivariate": "independent"},
}
OF_LEM = [time_steps, time_scales, hidden_state_bound, gradient_bound]
OF_LRU = [memory_lengths, reconstruct_input]
DT = {LEMForecaster: {"dt": 0.5}, LRUForecaster: {}}


@pytest.fixture(scope="module")
def sales():
    """Two targets: two inputs of one network, or two sequences of one input."""
    t = np.arange(80)
    columns = {"a": np.sin(t / 3) + t / 50, "b": np.cos(t / 5)}
    return pd.DataFrame(columns, index=pd.date_range("2010", periods=80, freq="QS"))


@pytest.fixture(scope="module")
def fitted(sales):
    """Fit a forecaster once."""
    made = {}

    def fit(kind, **changes):
        key = (kind, *changes.items())
        if key not in made:
            made[key] = kind(**{**SMALL, **DT[kind], **changes}).fit(sales)
        return made[key]

    return fit


@pytest.fixture(params=VARIANTS.values(), ids=VARIANTS.keys())
def lem(request, fitted):
    return fitted(LEMForecaster, **request.param)


@pytest.fixture(params=VARIANTS.values(), ids=VARIANTS.keys())
def lru(request, fitted):
    return fitted(LRUForecaster, **request.param)


def by_hand(network, x):
    """The layers of a network and their inputs."""
    with torch.no_grad():
        return network.rnn, x if network.input is None else network.input(x)


def same(found, expected):
    if isinstance(found, pd.DataFrame):
        pd.testing.assert_frame_equal(found, expected)
        assert found.attrs == expected.attrs
    else:
        torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)


class TestLEM:
    @pytest.mark.parametrize("function", [time_steps, hidden_state_bound, gradient_bound])
    def test_is_read_along_its_sample(self, lem, function):
        same(function(lem), function(*by_hand(lem.network_, lem.sample_)))

    def test_knows_its_frequency(self, lem):
        layer, x = by_hand(lem.network_, lem.sample_)
        same(time_scales(lem), time_scales(layer, x, freq="QS"))
        assert time_scales(lem).attrs["time_unit"] == "quarters"
        same(time_scales(lem, freq="15min"), time_scales(layer, x, freq="15min"))

    @pytest.mark.parametrize("function", OF_LEM)
    def test_other_inputs_are_those_of_the_network(self, lem, function):
        generator = torch.Generator().manual_seed(0)
        other = torch.randn(3, 9, lem.sample_.shape[-1], generator=generator)
        freq = {"freq": "QS"} if function is time_scales else {}
        expected = function(*by_hand(lem.network_, other), **freq)
        same(function(lem, other), expected)
        same(function(lem.network_, other, **freq), expected)
        layer, one = by_hand(lem.network_, other[0])
        same(function(lem, other[0]), function(layer, one, **freq))

    def test_states_and_lengths_go_with_the_sample(self, lem):
        batch, length, _ = lem.sample_.shape
        layer, x = by_hand(lem.network_, lem.sample_)
        hx = 0.5 * torch.ones(layer.num_layers, batch, layer.state_size)
        lengths = [length - 3, length][:batch]
        same(time_steps(lem, hx=hx), time_steps(layer, x, hx))
        same(time_steps(lem, hx=hx, lengths=lengths), time_steps(layer, x, hx, lengths))
        scales = time_scales(layer, x, hx, lengths, freq="QS", quantiles=[0.5])
        same(time_scales(lem, hx=hx, lengths=lengths, quantiles=[0.5]), scales)

    def test_a_target_goes_with_the_sample(self, lem):
        target = torch.ones(len(lem.sample_), 4)
        layer, x = by_hand(lem.network_, lem.sample_)
        same(gradient_bound(lem, target=target), gradient_bound(layer, x, target))

    def test_nothing_is_left_behind(self, lem):
        before = {name: value.clone() for name, value in lem.network_.state_dict().items()}
        for function in OF_LEM:
            function(lem)
        assert not time_steps(lem).requires_grad
        assert all(torch.equal(before[k], v) for k, v in lem.network_.state_dict().items())
        assert all(p.grad is None for p in lem.network_.parameters())

    def test_the_bounds_hold(self, lem):
        for table in (hidden_state_bound(lem), gradient_bound(lem)):
            assert (table["actual"] <= table["bound"]).all()

    def test_a_saved_forecaster_is_read_as_before(self, fitted, tmp_path):
        model = fitted(LEMForecaster, **PROJECTED)
        model.save(tmp_path / "model")
        same(time_scales(load(tmp_path / "model")), time_scales(model))


class TestLRU:
    def test_memory_has_the_unit_of_the_data(self, lru):
        table = memory_lengths(lru, share=0.1)
        same(table, memory_lengths(lru.network_.rnn, share=0.1, freq="QS"))
        same(memory_lengths(lru.network_, share=0.1, freq="QS"), table)
        assert table.attrs["time_unit"] == "quarters"
        assert memory_lengths(lru, freq=1).attrs["time_unit"] == "steps"

    @pytest.mark.parametrize("steps", [1, 3, None])
    def test_the_sample_is_read_back_from_the_state_after_it(self, lru, steps):
        layer, x = by_hand(lru.network_, lru.sample_ if steps is None else lru.sample_[:, -steps:])
        with torch.no_grad():
            expected = reconstruct_input(layer, layer(x)[1], x.shape[1])
        found = reconstruct_input(lru, steps=steps)
        np.testing.assert_array_equal(found.inputs, expected.inputs)
        assert found.condition_number == expected.condition_number
        assert found.inputs.shape == x.shape
        if steps == 1:  # as many equations as a step of the widest input needs
            atol = 1e-5 * found.condition_number
            np.testing.assert_allclose(found.inputs, x, rtol=0, atol=atol)

    def test_a_state_may_be_given(self, lru):
        layer, x = by_hand(lru.network_, lru.sample_[:, :5])
        with torch.no_grad():
            state = layer(x)[1]
        basis = np.random.default_rng(0).normal(size=(3, 5, x.shape[-1]))
        for model in (lru, lru.network_):
            found = reconstruct_input(model, state, 5, basis=basis)
            expected = reconstruct_input(layer, state, 5, basis=basis)
            np.testing.assert_array_equal(found.inputs, expected.inputs)

    def test_no_more_steps_than_the_sample_has(self, fitted):
        model = fitted(LRUForecaster)
        rows = model.sample_.shape[1]
        with pytest.raises(ValueError, match=f"steps must be at most {rows}, .*; got {rows + 1}"):
            reconstruct_input(model, steps=rows + 1)
        with pytest.raises(ValueError, match="steps must be a positive integer; got 0"):
            reconstruct_input(model, steps=0)


class TestEnsembles:
    @pytest.mark.parametrize("projection", [{}, PROJECTED])
    @pytest.mark.parametrize("function", [time_scales, hidden_state_bound])
    def test_tables_of_lem_are_stacked(self, fitted, function, projection):
        model = fitted(LEMForecaster, n_estimators=2, **projection)
        table = function(model)
        freq = {"freq": "QS"} if function is time_scales else {}
        self.check_stacked(
            table, [function(*by_hand(n, model.sample_), **freq) for n in model.network_.networks]
        )
        same(function(model.network_, model.sample_, **freq), table)

    def test_memories_are_stacked(self, fitted):
        model = fitted(LRUForecaster, n_estimators=2, n_layers=2)
        table = memory_lengths(model)
        alone = [memory_lengths(n.rnn, freq="QS") for n in model.network_.networks]
        self.check_stacked(table, alone)
        assert sorted(set(table["layer"])) == [1, 2]

    @pytest.mark.parametrize("kind", [LEMForecaster, LRUForecaster])
    def test_features_are_numbered_by_network(self, fitted, kind):
        model = fitted(kind, n_estimators=2, n_layers=2)
        features = recurrence_features(model)
        assert sorted(set(features["network"])) == [1, 2]
        shares, _ = features.pop("share"), features.pop("beyond_sample")
        assert features.attrs.pop("sample_length") == 80
        networks = model.network_.networks
        alone = [recurrence_features(n, freq="QS").drop(columns="share") for n in networks]
        self.check_stacked(features, alone)
        if kind is LEMForecaster:
            by_layer = [share.sum() for share in model.block_shares_()]
            keys = [features[name] for name in ("network", "layer", "matrix", "block")]
            first = shares.groupby(keys).first().xs("W_z", level="matrix")
            np.testing.assert_allclose(first.groupby(["network", "layer"]).sum(), by_layer)

    def check_stacked(self, table, alone):
        assert table.columns[0] == "network"
        assert "network" not in alone[0]
        for i, expected in enumerate(alone, start=1):
            found = table[table["network"] == i].drop(columns="network")
            pd.testing.assert_frame_equal(found.reset_index(drop=True), expected)
            assert table.attrs == expected.attrs
        assert len(table) == sum(map(len, alone))

    @pytest.mark.parametrize(
        ("function", "kind"),
        [
            (time_steps, LEMForecaster),
            (gradient_bound, LEMForecaster),
            (reconstruct_input, LRUForecaster),
        ],
    )
    def test_one_network_at_a_time(self, fitted, function, kind):
        model = fitted(kind, n_estimators=2)
        name = function.__name__
        message = f"{name} reads one network; this {kind.__name__} has 2.*of model.network_.netw"
        with pytest.raises(ValueError, match=message):
            function(model)
        with pytest.raises(ValueError, match="this Ensemble has 2. Pass one of model.networks"):
            function(model.network_, model.sample_)

    def test_what_the_message_says_works(self, fitted):
        model = fitted(LEMForecaster, n_estimators=2)
        one = model.network_.networks[1]
        same(time_steps(one, model.sample_), time_steps(*by_hand(one, model.sample_)))

    def test_a_state_is_of_one_network(self, fitted):
        model = fitted(LEMForecaster, n_estimators=2)
        hx = torch.zeros(1, len(model.sample_), 8)
        with pytest.raises(ValueError, match="hx is the state of one network; this LEMForecaster"):
            time_scales(model, hx=hx)

    def test_an_ensemble_of_one_is_a_network(self):
        network = RecurrentNetwork(LEM(1, 2), 1)
        x = torch.zeros(2, 3, 1)
        same(time_steps(Ensemble([network]), x), time_steps(network, x))


class TestRefusals:
    @pytest.mark.parametrize("function", [*OF_LEM, *OF_LRU])
    def test_unfitted(self, function):
        kind = LEMForecaster if function in OF_LEM else LRUForecaster
        message = f"{function.__name__} needs a fitted .* this {kind.__name__} is not .* Call fit"
        with pytest.raises(NotFittedError, match=message):
            function(kind())

    @pytest.mark.parametrize("function", [*OF_LEM, *OF_LRU])
    def test_other_layers(self, function, fitted):
        wanted, other = ("LEM", LRUForecaster) if function in OF_LEM else ("LRU", LEMForecaster)
        message = f"a tsrnn.layers.{wanted}, .*; got {other.__name__} of {other.column_name} layers"
        with pytest.raises(TypeError, match=message):
            function(fitted(other))
        with pytest.raises(TypeError, match="; got the class LEM itself"):
            function(LEM)
        with pytest.raises(TypeError, match="; got the class ParaRNNForecaster itself"):
            function(ParaRNNForecaster)
        with pytest.raises(TypeError, match="; got NoneType"):
            function(None)

    @pytest.mark.parametrize("function", OF_LEM)
    def test_frames_are_not_inputs(self, function, fitted, sales):
        with pytest.raises(TypeError, match=r"got DataFrame\. .*, or leave it out to take the for"):
            function(fitted(LEMForecaster), sales)

    @pytest.mark.parametrize("projection", [{}, PROJECTED])
    def test_inputs_of_another_shape_or_precision(self, projection, fitted):
        model = fitted(LEMForecaster, **projection)
        with pytest.raises(ValueError, match=r"shape \(B, T, 2\) or \(T, 2\) .*got \(1, 5, 4\)"):
            time_steps(model, torch.zeros(1, 5, 4))
        with pytest.raises(ValueError, match="torch.float32 on cpu; got torch.float64"):
            time_steps(model, model.sample_.double())

    def test_a_network_has_no_sample(self, fitted):
        with pytest.raises(TypeError, match="x, the inputs to run over, must be given"):
            time_steps(fitted(LEMForecaster).network_)
        with pytest.raises(TypeError, match="state, as the layer returned it, must be given"):
            reconstruct_input(fitted(LRUForecaster).network_, steps=3)
        with pytest.raises(TypeError, match="must be given with a layer"):
            reconstruct_input(LRU(1, 2))


@pytest.mark.slow
def test_layers_are_read_without_the_forecasters():
    code = (
        "import sys, torch\n"
        "from tsrnn.interpret import memory_lengths, time_steps\n"
        "from tsrnn.layers import LEM, LRU\n"
        "time_steps(LEM(1, 2), torch.zeros(3, 1)), memory_lengths(LRU(1, 2))\n"
        "sys.exit(any(m in sys.modules for m in ('tsrnn.forecasters', 'lightning', 'sklearn')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_shares_are_of_layers_with_blocks():
    network = RecurrentNetwork(LRU(1, 4), 1)
    with pytest.raises(TypeError, match="must have layers of blocks.* got LRU layers"):
        block_shares(network, torch.zeros(2, 5, 1))
