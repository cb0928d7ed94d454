"""Sizes of layers: integers of any kind, of which products are taken as integers of Python."""

import numpy as np
import pytest
import torch

from tsrnn.layers import (
    LEM,
    LRU,
    BlockRecurrentAttention,
    NewtonBlocks,
    NewtonGRU,
    NewtonLSTM,
    ParaRNN,
)


@pytest.mark.parametrize(
    ("layer", "sizes"),
    [
        (BlockRecurrentAttention, {"n_states": 20, "window": 20, "n_heads": 4, "block_size": 2}),
        (LEM, {}),
        (LEM, {"block_size": 2}),
        (LRU, {"state_units": 100}),
        (NewtonBlocks, {"expansion": 2, "conv_size": 3, "n_heads": 2}),
        (NewtonGRU, {}),
        (NewtonLSTM, {"block_size": 2}),
        (ParaRNN, {"block_size": 2}),
    ],
)
def test_integers_of_numpy_are_as_those_of_python(layer, sizes):
    """A hundred is an int8; what is computed from it is not."""
    first = {"input_size": 3, "hidden_size": 100, "num_layers": 2}
    ours, theirs = (
        layer(**{name: kind(size) for name, size in (first | sizes).items()})
        for kind in (int, np.int8)
    )
    assert theirs.state_size == ours.state_size
    assert type(theirs.hidden_size) is type(theirs.state_size) is int
    theirs.load_state_dict(ours.state_dict())
    x = torch.ones(2, 5, 3)
    assert torch.equal(theirs(x)[0], ours(x)[0])


def test_true_is_no_layer():
    with pytest.raises(ValueError, match="one of the layers 1 to 2; got True"):
        BlockRecurrentAttention(3, 16, recurrent_layer=True)


def test_a_length_is_a_number():
    with pytest.raises(ValueError, match="above 2; got 'long'"):
        ParaRNN(3, 16, cell="lstm", init="chrono", chrono_length="long")
