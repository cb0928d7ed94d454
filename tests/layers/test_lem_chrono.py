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
    assert stats.kstest(scaled.numpy(), "uniform").pvalue > 0.01


@pytest.mark.parametrize("block_size", [1, 2])
def test_an_lstm_forgets_at_rates_of_which_the_inverses_are_uniform(block_size):
    bias = fields_of(drawn(ParaRNN, cell="lstm", block_size=block_size))
    assert set(bias) == {"i", "f", "g", "o"}
    assert_uniform(bias["f"].exp(), 1, LENGTH - 1)
    assert torch.equal(bias["i"], -bias["f"])
    assert not torch.cat([bias["g"], bias["o"]]).any()
    memory = 1 / (1 - torch.sigmoid(bias["f"]))  # from 2 to T_max steps
    assert_uniform(memory, 2, LENGTH)


@pytest.mark.parametrize("block_size", [1, 2])
def test_a_gru_lets_the_new_in_at_rates_of_which_the_inverses_are_uniform(block_size):
    bias = fields_of(drawn(ParaRNN, cell="gru", block_size=block_size))
    assert set(bias) == {"z", "r", "c"}
    assert_uniform(1 / torch.sigmoid(bias["z"]), 2, LENGTH)
    assert not torch.cat([bias["r"], bias["c"]]).any()


@pytest.mark.parametrize("dt", [1.0, 0.1])
def test_lem_has_time_steps_of_z_of_which_the_inverses_are_uniform(dt):
    bias = fields_of(drawn(LEM, dt=dt, block_size=1))
    assert set(bias) == {"1", "2", "z", "y"}
    assert_uniform((-bias["1"]).exp(), 1, LENGTH * dt - 1)
    assert_uniform(1 / (dt * torch.sigmoid(bias["1"])), 2 / dt, LENGTH)
    assert not torch.cat([bias["2"], bias["z"], bias["y"]]).any()


def test_a_state_called_z_is_no_gate():
    """Cells of users: the LSTM of Danieli et al. has a forget gate beside a candidate z."""
    layer = ParaRNN(
        3, 4000, cell=cells.newton_lstm(), init="chrono", chrono_length=LENGTH, dtype=torch.float64
    )
    bias = fields_of(layer)
    assert_uniform(bias["f"].exp(), 1, LENGTH - 1)
    assert not torch.cat([bias["z"], bias["o"]]).any()
