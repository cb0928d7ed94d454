"""The additive parts of a forecast."""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from tsrnn.forecasters._ahead import Ahead
from tsrnn.forecasters._mapping import by_series
from tsrnn.forecasters._memory import Memory


@torch.no_grad()
def additive_parts(ahead: Ahead, best_epochs: list[int]) -> dict[str, Tensor]:
    """Parts of standardised forecasts by name, each (U, h, C), summing to them.

    Networks that were never trained, best in epoch 0, are not taken apart: where there is no
    other, "network" is one part, zero where the model starts as the level or the linear path.

    Parameters
    ----------
    ahead : Ahead
    best_epochs : list of int
        Of each network.
    """
    model, parts, states = ahead.model, ahead.parts, ahead.states
    network = model.network
    shape = (model.horizon, model.n_targets)
    scale = ahead.spread[:, None, :]
    named = {"level": parts.level}
    if model.linear is not None:
        named["linear path"] = parts.linear
    if len(model.futures):
        named["known ahead"] = parts.future
    if not (network.sums_blocks and any(best_epochs)):
        named["network"] = scale * network.head(states).unflatten(-1, shape)
        return named
    blocks = network.contributions(states)  # (U, K, h C), the blocks of network after network
    per_network = blocks.shape[1] // len(best_epochs)
    for k in range(blocks.shape[1]):
        if best_epochs[k // per_network]:
            named[f"block {k + 1}"] = scale * blocks[:, k].unflatten(-1, shape)
    named["constant"] = scale * network.constant().unflatten(0, shape)
    return named


def contribution_frame(
    named: dict[str, Tensor], memory: Memory, names: tuple[str | int, ...], id_name: str
) -> pd.DataFrame:
    """Parts in the units of the data, a row a series, target and step, a column a part."""
    target = memory.scaling.target
    columns = {}
    for name, part in named.items():
        values = by_series(part.numpy(), len(memory.ids)) * target.scale[:, None]
        if name == "level":
            values = values + target.location[:, None]
        columns[name] = np.moveaxis(values, 2, 1).ravel()
    steps = range(1, next(iter(named.values())).shape[1] + 1)
    if len(memory.ids) * len(names) == 1:
        return pd.DataFrame(columns, index=pd.Index(steps, name="step"))
    index = pd.MultiIndex.from_product(
        [memory.ids, names, steps], names=[id_name, "target", "step"]
    )
    return pd.DataFrame(columns, index=index)
