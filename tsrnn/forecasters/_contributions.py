"""The additive parts of a forecast."""

from __future__ import annotations

from torch import Tensor

from tsrnn.forecasters._model import ForecastModel, Parts


def additive_parts(
    model: ForecastModel, parts: Parts, spread: Tensor, states: Tensor
) -> dict[str, Tensor]:
    """Parts of standardised forecasts by name, each (U, h, C), summing to them.

    Raises
    ------
    ValueError
        If the aggregation is not linear.
    """
    network = model.network
    shape = (model.horizon, model.n_targets)
    scale = spread[:, None, :]
    named = {"level": parts.level}
    if model.linear is not None:
        named["linear path"] = parts.linear.expand_as(parts.level)
    if model.future is not None:
        named["known ahead"] = parts.future.expand_as(parts.level)
    blocks = network.contributions(states)  # (U, K, h C)
    for k in range(blocks.shape[1]):
        named[f"block {k + 1}"] = scale * blocks[:, k].unflatten(-1, shape)
    named["constant"] = scale * network.output.bias.detach().unflatten(0, shape)
    return named
