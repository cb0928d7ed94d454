"""Shares of the output's variance by recurrent block."""

from __future__ import annotations

import torch
from torch import Tensor

from tsrnn.layers import CellStack, RecurrentNetwork, UnequalParaRNN


@torch.no_grad()
def block_shares(network: RecurrentNetwork, x: Tensor) -> list[Tensor]:
    r"""Variance shares (K,) of the blocks of every layer on inputs x (B, T, input_size).

    .. math:: \frac{\sum_o \mathrm{Cov}(z_o - z_o^{(-k)}, z_o)}{\sum_o \mathrm{Var}(z_o)}

    with the network's outputs z, and its outputs :math:`z^{(-k)}` after the states of block k are
    replaced by their mean. In the last layer with a linear aggregation the difference is the
    block's additive part, and the shares sum to 1; elsewhere they need not. A share is negative if
    a block works against the others. Layers without blocks are a `TypeError`.
    """
    rnn = network.rnn
    if not isinstance(rnn, CellStack | UnequalParaRNN):
        raise TypeError(
            "network must have layers of blocks, such as tsrnn.layers.ParaRNN; got "
            f"{type(rnn).__name__} layers, which have none"
        )
    if isinstance(rnn, UnequalParaRNN):
        units = [torch.as_tensor(block) for block in rnn.block_units()]
    else:  # states are ordered by field
        units = list(torch.arange(rnn.hidden_size).view(-1, rnn.n_blocks).T)
    layers = [x if network.input is None else network.input(x)]
    for layer in range(rnn.num_layers):
        layers.append(rnn.run_layer(layer, layers[-1], None)[0])
    # In float64, because sums over all rows and steps would lose small shares in float32.
    output = network.head(layers[-1]).flatten(0, 1).double()
    centred = output - output.mean(0)
    total = centred.square().sum()
    shares = []
    for layer in range(rnn.num_layers):
        share = x.new_empty(rnn.n_blocks, dtype=torch.float64)
        for k, of_block in enumerate(units):
            states = layers[layer + 1].clone()
            states[..., of_block] = states[..., of_block].mean((0, 1))
            for upper in range(layer + 1, rnn.num_layers):
                states = rnn.run_layer(upper, states, None)[0]
            lost = output - network.head(states).flatten(0, 1).double()
            share[k] = (lost * centred).sum() / total
        shares.append(share)
    return shares
