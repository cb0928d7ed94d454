"""Biases that spread the memories of gated layers at the start, appendix B.3 of Rusch et al."""

import pytest
import torch
from scipy import stats

from tsrnn.kernels import cells
from tsrnn.layers import LEM, ParaRNN

LENGTH = 300.0


def drawn(make, **options):
    layer = make(3, 4000, init="chrono", chrono_length=LENGTH, dtype=torch.float64, **options)
    layer.reset_parameters(torch.Generator().manual_seed(0))
    return layer


def fields_of(layer):
    """Biases (m, K) of the fields of a layer, by the letters of their gates."""
    _, names, _ = layer.cell.names
    bias = layer.bias_l0.detach().view(layer.cell.m, -1)
    letters = [name.split("_")[1] for name in names]
    return {
        k: bias[[i for i, name in enumerate(letters) if name == k]] for k in dict.fromkeys(letters)
    }


def assert_uniform(values, low, high):
    scaled = (values.flatten() - low) / (high - low)
    assert scaled.min() > -1e-9
    assert scaled.max() < 1 + 1e-9
    assert stats.kstest(scaled.numpy(), "uniform").pvalue > 0.01


# Time steps from the biases of the gate that sets them, which has inverses up to LENGTH.
@pytest.mark.parametrize(
    ("make", "options", "gates", "steps", "shortest"),
    [
        (ParaRNN, {"cell": "lstm", "block_size": 1}, "ifgo", lambda b: torch.sigmoid(-b["f"]), 2),
        (ParaRNN, {"cell": "lstm", "block_size": 2}, "ifgo", lambda b: torch.sigmoid(-b["f"]), 2),
        (ParaRNN, {"cell": "gru", "block_size": 1}, "zrc", lambda b: torch.sigmoid(b["z"]), 2),
        (ParaRNN, {"cell": "gru", "block_size": 2}, "zrc", lambda b: torch.sigmoid(b["z"]), 2),
        (LEM, {"block_size": 1}, "12zy", lambda b: torch.sigmoid(b["1"]), 2),
        (LEM, {"block_size": 1, "dt": 0.1}, "12zy", lambda b: 0.1 * torch.sigmoid(b["1"]), 20),
    ],
)
def test_memories_are_uniform(make, options, gates, steps, shortest):
    layer = drawn(make, **options)
    bias = fields_of(layer)
    assert set(bias) == set(gates)
    assert_uniform(1 / steps(bias), shortest, LENGTH)
    if gates == "ifgo":
        assert torch.equal(bias["i"], -bias["f"])
    others = set(gates) - set("if" if gates == "ifgo" else gates[0])
    assert not torch.cat([bias[gate] for gate in others]).any()
    assert layer.weight_ih_l0.any()
    assert layer.weight_hh_l0.any()


def test_the_second_layer_is_drawn_as_the_first():
    layer = LEM(3, 2000, 2, block_size=1, init="chrono", chrono_length=LENGTH, dtype=torch.float64)
    layer.reset_parameters(torch.Generator().manual_seed(0))
    first, *others = layer.bias_l1.detach().chunk(4)
    assert_uniform(1 / torch.sigmoid(first), 2, LENGTH)
    assert not torch.cat(others).any()
    assert layer.weight_ih_l1.any()
    assert 0 < layer.weight_hh_l1.abs().max() <= layer.hidden_size**-0.5


def test_a_state_called_z_is_no_gate():
    """Cells of users: the LSTM of Danieli et al. has a forget gate beside a candidate z."""
    layer = ParaRNN(
        3, 4000, cell=cells.newton_lstm(), init="chrono", chrono_length=LENGTH, dtype=torch.float64
    )
    bias = fields_of(layer)
    assert_uniform(bias["f"].exp(), 1, LENGTH - 1)
    assert not torch.cat([bias["z"], bias["o"]]).any()
