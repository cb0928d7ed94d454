"""Blocks of several sizes against one network with a block diagonal matrix, equation (3)."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.layers.test_recurrent import normal
from tsrnn import ParaRNNForecaster, load, recurrence_features
from tsrnn.erm import ParaRNNClassifier, ParaRNNRegressor
from tsrnn.interpret import block_shares
from tsrnn.layers import (
    LRU,
    ParaRNN,
    RecurrentNetwork,
    UnequalParaRNN,
    layer_choice,
    make_layer,
    with_options,
)

SIZES = st.lists(st.integers(1, 4), min_size=1, max_size=4)


def layer(*args, **kwargs):
    torch.manual_seed(0)
    return UnequalParaRNN(*args, **{"dtype": torch.float64, **kwargs})


def torch_rnn(rnn):
    """torch.nn.RNN that computes the same, units in the same order."""
    twin = torch.nn.RNN(
        rnn.input_size, rnn.hidden_size, rnn.num_layers, nonlinearity=rnn.nonlinearity,
        batch_first=True, dtype=torch.float64,
    )  # fmt: skip
    for i in range(rnn.num_layers):
        matrix = torch.zeros(rnn.hidden_size, rnn.hidden_size, dtype=torch.float64)
        blocks = [block for part in rnn.layers[i] for block in part.recurrent_blocks()[0]]
        for units, block in zip(rnn.block_units(), blocks, strict=True):
            matrix[units[:, None], units] = block
        values = {
            "weight_hh": matrix,
            "weight_ih": torch.cat([part.weight_ih_l0 for part in rnn.layers[i]]),
            "bias_ih": torch.cat([part.bias_l0 for part in rnn.layers[i]]),
            "bias_hh": torch.zeros(rnn.hidden_size),
        }
        for name, value in values.items():
            getattr(twin, f"{name}_l{i}").data.copy_(value.detach())
    return twin


@settings(deadline=None, max_examples=20)
@given(
    sizes=SIZES,
    repeats=st.integers(1, 2),
    num_layers=st.integers(1, 3),
    nonlinearity=st.sampled_from(["tanh", "relu"]),
    steps=st.integers(1, 7),
)
def test_it_is_one_network_with_a_block_diagonal_matrix(
    sizes, repeats, num_layers, nonlinearity, steps, assert_close
):
    rnn = layer(2, repeats * sum(sizes), sizes, num_layers, nonlinearity=nonlinearity)
    assert (rnn.n_blocks, rnn.state_size) == (repeats * len(sizes), rnn.hidden_size)
    x, hx = normal(3, steps, 2), normal(num_layers, 3, rnn.hidden_size, seed=1)
    x.requires_grad_()
    output, h_n = rnn(x, hx)
    expected, last = torch_rnn(rnn)(x, hx)
    assert_close(output.detach(), expected.detach())
    assert_close(h_n.detach(), last.detach())
    assert_close(*(torch.autograd.grad(out.square().sum(), x)[0] for out in (output, expected)))
    units = torch.cat(rnn.block_units())
    assert units.sort().values.tolist() == list(range(rnn.hidden_size))


@pytest.mark.parametrize("cell", ["rnn", "gru", "lstm"])
def test_blocks_do_not_meet_within_a_layer(cell, assert_close):
    """Each size by itself is a ParaRNN, of its part of the state."""
    rnn, x = layer(2, 14, (2, 1, 4), cell=cell), normal(3, 9, 2)
    output, h_n = rnn(x)
    alone = [part(x) for part in rnn.layers[0]]
    assert_close(output.detach(), torch.cat([out for out, _ in alone], -1).detach())
    assert_close(h_n.detach(), torch.cat([last for _, last in alone], -1).detach())
    assert [part.block_size for part in rnn.layers[0]] == [1, 2, 4]
    assert torch.equal(rnn.outputs(h_n[-1]), output[:, -1])


def test_one_size_is_a_para_rnn(assert_close):
    rnn, plain = layer(3, 8, [2]), ParaRNN(3, 8, 2, dtype=torch.float64)
    plain.load_state_dict(rnn.layers[0][0].state_dict())
    x = normal(2, 5, 3)
    assert_close(rnn(x)[0].detach(), plain(x)[0].detach())


def test_contributions_add_up(assert_close):
    network = RecurrentNetwork(layer(2, 16, (2, 2, 4)), 3).double()
    states, _ = network.run(normal(2, 5, 2))
    parts = network.contributions(states)
    assert parts.shape == (2, 5, 6, 3)
    assert network.sums_blocks
    assert_close((parts.sum(-2) + network.constant()).detach(), network.head(states).detach())
    with torch.no_grad():  # that of a block depends on its units alone
        states[..., network.rnn.block_units()[5]] = 0
        assert torch.equal(network.contributions(states)[..., :5, :], parts[..., :5, :])
        assert not network.contributions(states)[..., 5, :].any()


def test_features_are_read_by_size():
    rnn = layer(2, 10, (2, 4, 4), 2)
    features = recurrence_features(rnn)
    assert features["matrix"].unique().tolist() == ["W (2 x 2)", "W (4 x 4)"]
    assert rnn.matrix_names == ("W (2 x 2)", "W (4 x 4)")
    moduli = [
        np.abs(np.linalg.eigvals(block.detach().numpy()))
        for parts in rnn.layers for part in parts for block in part.recurrent_blocks()[0]
    ]  # fmt: skip
    orders = features["order"] * np.where(features["type"].str.startswith("C"), 2, 1)
    np.testing.assert_allclose(
        np.sort(np.repeat(features["modulus"], orders)), np.sort(np.concatenate(moduli)), rtol=1e-9
    )
    gated = recurrence_features(layer(2, 6, (2, 4), cell="gru"))
    assert gated["matrix"].nunique() == 6


def test_recurrent_parameters_start_stable():
    rnn = layer(2, 6, (2, 4), 2)
    assert len(rnn.recurrent_parameters()) == 4
    assert layer(2, 6, (2, 4), init="uniform").recurrent_parameters() == []
    rnn.prepare()
    assert "block_size=(2, 4)" in repr(rnn)


SERIES = pd.DataFrame(np.random.default_rng(0).normal(size=(70, 2)), columns=["a", "b"])
SAMPLES = np.random.default_rng(1).normal(size=(16, 5, 2))


@pytest.mark.parametrize("cell", ["rnn", "lstm"])
def test_a_forecaster_of_several_sizes(cell, tmp_path):
    small = {"horizon": 2, "hidden_size": 16, "max_epochs": 2, "refit": False, "random_state": 0}
    model = ParaRNNForecaster(**small, cell=cell, block_size=(2, 2, 4), n_layers=2,
                              n_estimators=2, linear_path=False).fit(SERIES)  # fmt: skip
    assert isinstance(model.network_.networks[0].rnn, UnequalParaRNN)
    assert model.settings_.options["block_size"] == [2, 2, 4]
    model.save(tmp_path / "model.tsrnn")
    loaded = load(tmp_path / "model.tsrnn")
    assert loaded.block_size == (2, 2, 4)
    for other in (loaded, pickle.loads(pickle.dumps(model))):
        assert other.predict(5).equals(model.predict(5))
    assert recurrence_features(model.network_)["network"].nunique() == 2
    rows = SERIES.iloc[:60]
    whole = ParaRNNForecaster(**small, cell=cell, block_size=[4, 2, 2]).fit(rows)
    parts = copy.deepcopy(whole)
    later = SERIES.iloc[60:]
    pd.testing.assert_frame_equal(parts.update(later).predict(3), whole.predict(SERIES, h=3),
                                  rtol=1e-4, atol=1e-5)  # fmt: skip


def test_regressors_of_several_sizes(tmp_path):
    targets = SAMPLES[:, -1, 0]
    model = ParaRNNRegressor(8, block_size=(2, 2, 4), max_epochs=2, random_state=0)
    model.fit(SAMPLES, targets)
    assert isinstance(model.network_.rnn, UnequalParaRNN)
    model.save(tmp_path / "model.tsrnn")
    loaded = load(tmp_path / "model.tsrnn")
    np.testing.assert_array_equal(loaded.predict(SAMPLES), model.predict(SAMPLES))
    classifier = ParaRNNClassifier(8, block_size=[2, 6], cell="gru", max_epochs=1, random_state=0)
    assert classifier.fit(SAMPLES, targets > 0).predict(SAMPLES).shape == (16,)


@pytest.mark.slow
def test_layer_options_of_a_forecaster(tmp_path):
    """Each layer of a transformer recurrent, as the supplement D.2 has it for EigenWorms."""
    small = {"horizon": 2, "hidden_size": 8, "max_epochs": 1, "refit": False, "random_state": 0}
    options = {"recurrent_layer": "all", "update": "joint"}
    model = ParaRNNForecaster(**small, cell="attention", n_layers=3, n_states=2, window=4,
                              layer_options=options).fit(SERIES)  # fmt: skip
    rnn = model.network_.rnn
    assert (len(rnn.recurrent_blocks()), rnn.update) == (3, "joint")
    assert model.layer_options is options
    model.save(tmp_path / "model.tsrnn")
    assert load(tmp_path / "model.tsrnn").predict().equals(model.predict())
    linear = ParaRNNForecaster(**small, cell="lru", layer_options={"r_min": 0.9}).fit(SERIES)
    assert isinstance(linear.network_.rnn, LRU)
    assert linear.network_.rnn.ring.r_min == 0.9
    with pytest.raises(ValueError, match="got 'window'; give window by itself"):
        ParaRNNForecaster(**small, cell="attention", layer_options={"window": 3}).fit(SERIES)
    with pytest.raises(TypeError, match="layer_options must be a dict or None; got 3"):
        ParaRNNForecaster(**small, layer_options=3).fit(SERIES)


def test_choices_with_options():
    choice = with_options(layer_choice("gru", {"block_size": (2, 4)}), {"dropout": 0.1}, "gru", ())
    assert choice.name == "UnequalParaRNN"
    assert choice.options == {"cell": "gru", "block_size": [2, 4], "dropout": 0.1}
    assert make_layer(choice, 3, 12, 2).dropout == 0.1
    assert layer_choice("rnn", {"block_size": np.array([2, 4])}).options["block_size"] == [2, 4]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: layer(2, 9, (2, 4)), ValueError, "hidden_size=9, block_size=(2, 4), of sum 6"),
        (lambda: layer(2, 6, (2, 0)), ValueError, "block_size must be a positive integer; got 0"),
        (lambda: layer(2, 6, ()), TypeError, "a sequence of sizes, one at least; got ()"),
        (lambda: layer(2, 6, 2), TypeError, "Blocks of one size are a ParaRNN"),
        (lambda: layer(2, 6, "24"), TypeError, "a sequence of sizes"),
        (lambda: layer(2, 6, (2, 4), cell="lem"), ValueError, "cell of ParaRNN must be one of"),
        (lambda: layer(2, 6, (2, 4), dropout=1.0), ValueError, "dropout must lie in [0, 1)"),
        (
            lambda: layer_choice("lem", {"block_size": (2, 4)}),
            ValueError,
            "a choice of cell='rnn', 'gru' and 'lstm'; got (2, 4) with cell='lem'",
        ),
        (
            lambda: layer_choice("rnn", {"block_size": (2, "a")}),
            ValueError,
            "block_size must be a positive integer; got 'a'",
        ),
    ],
)
def test_what_is_refused(call, error, message):
    with pytest.raises(error) as caught:
        call()
    assert message in str(caught.value)


def test_shares_of_blocks_of_several_sizes_add_up():
    network = RecurrentNetwork(UnequalParaRNN(1, 16, (2, 2, 4)), output_size=2)
    x = torch.randn(4, 50, 1, generator=torch.Generator().manual_seed(0))
    (shares,) = block_shares(network, x)
    assert shares.shape == (6,)
    assert float(shares.sum()) == pytest.approx(1.0)
    with torch.no_grad():
        parts = network.contributions(network.rnn(x)[0]).flatten(0, 1).double()
    centred = parts.sum(1) - parts.sum(1).mean(0)
    for k in range(6):
        part = parts[:, k] - parts[:, k].mean(0)
        expected = (part * centred).sum() / centred.square().sum()
        assert float(shares[k]) == pytest.approx(float(expected), abs=1e-6)


def test_sizes_may_be_an_array():
    assert UnequalParaRNN(3, 8, np.array([2, 2])).block_size == (2, 2)
