"""Outputs of a network for samples, their losses, and the bound on them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor

from tsrnn.erm._data import Batch, TrainingData
from tsrnn.layers import RecurrentNetwork

NUMBERS_AT_ONCE = 4_000_000  # states held at a time while predicting

Loss = Callable[[Tensor, Tensor], Tensor]


def squared_error(output: Tensor, target: Tensor) -> Tensor:
    """Mean over outputs of squared errors."""
    return (output - target).square().mean(-1)


def absolute_error(output: Tensor, target: Tensor) -> Tensor:
    """Mean over outputs of absolute errors."""
    return (output - target).abs().mean(-1)


def cross_entropy(output: Tensor, target: Tensor) -> Tensor:
    """Minus the logarithm of the probability of the class."""
    return output.logsumexp(-1) - output.gather(-1, target[..., None])[..., 0]


LOSSES: dict[str, Loss] = {
    "squared_error": squared_error,
    "absolute_error": absolute_error,
    "log_loss": cross_entropy,
}


def outputs(network: RecurrentNetwork, batch: Batch, reading: str) -> Tensor:
    """Outputs of every step (B, T, k), or one of every sample (B, k).

    Parameters
    ----------
    network : RecurrentNetwork
    batch : Batch
    reading : {"every", "last", "mean", "max"}
        What the head is given of the states of the last layer: all, the last, or their mean or
        maximum over the steps of the sample.
    """
    return network.head(_states(network, batch, reading))


def _states(network: RecurrentNetwork, batch: Batch, reading: str) -> Tensor:
    """States of the last layer that the head is given."""
    states, last = network.run(batch.x, lengths=batch.lengths)
    if reading == "last":
        return network.outputs(last[-1])
    return states if reading == "every" else _pooled(states, batch.lengths, reading)


def _pooled(states: Tensor, lengths: Tensor | None, reading: str) -> Tensor:
    """Mean or maximum over steps; states after the end of a sample are zero."""
    if lengths is None:
        return states.mean(1) if reading == "mean" else states.amax(1)
    if reading == "mean":
        return states.sum(1) / lengths[:, None].to(states.dtype)
    outside = torch.arange(states.shape[1], device=states.device) >= lengths[:, None]
    return states.masked_fill(outside[..., None], -torch.inf).amax(1)


class EmpiricalRisk:
    """Weighted mean loss of a batch: what training lowers.

    Weights have mean 1 over the sample, so that steps on batches lower the weighted risk of all.
    """

    def __init__(self, network: RecurrentNetwork, loss: str, reading: str) -> None:
        self._network, self._loss, self._reading = network, loss, reading

    def __call__(self, batch: Batch) -> Tensor:
        loss = LOSSES[self._loss](outputs(self._network, batch, self._reading), batch.target)
        count: Tensor | int = loss.numel()
        if self._reading == "every" and batch.lengths is not None:
            count = batch.lengths.sum()
        return (batch.weight * loss).sum() / count


class RiskOfSamples:
    """Weighted mean loss over some samples, of outputs within their bounds.

    Parameters
    ----------
    network : RecurrentNetwork
    data : TrainingData
    samples : integer Tensor
    loss : str
    reading : str
        See `outputs`.
    bounds : pair of Tensor, optional
        Least and largest output.
    """

    def __init__(
        self,
        network: RecurrentNetwork,
        data: TrainingData,
        samples: Tensor,
        loss: str,
        reading: str,
        bounds: tuple[Tensor, Tensor] | None,
    ) -> None:
        self._network, self._data, self._samples = network, data, samples
        self._loss, self._reading, self._bounds = LOSSES[loss], reading, bounds

    def __call__(self) -> float:
        network, total, weight = self._network, 0.0, 0.0
        device = next(network.parameters()).device
        was_training = network.training
        network.eval()
        with torch.no_grad():
            for part in in_parts(self._samples, self._data.lengths, network.hidden_size):
                batch = self._data.batch(part).to(device)
                output = truncated(outputs(network, batch, self._reading), self._bounds)
                loss = self._loss(output, batch.target)
                total += float((batch.weight * loss).sum())
                weight += float(batch.weight.sum())
        network.train(was_training)
        return total / weight if weight else float("nan")


@torch.no_grad()
def constant_risk(data: TrainingData, train: Tensor, held_out: Tensor, loss: str) -> float:
    """Weighted mean loss of held-out samples, predicted by the best constant of the training ones.

    The mean for squared errors, the median for absolute ones, shares of the classes for the log
    loss.
    """

    def rows(samples: Tensor) -> tuple[Tensor, Tensor]:
        """Targets and weights of some samples, of all their steps if targets are of steps."""
        chosen = torch.zeros(len(data.lengths), dtype=torch.bool)
        chosen[samples] = True
        if data.many_to_many:
            chosen = chosen.repeat_interleave(data.lengths)
        return data.target[chosen], data.weight[chosen].double()

    target, weight = rows(train)
    if loss == "log_loss":
        constant = torch.bincount(target, weight, int(data.target.max()) + 1).log()
    elif loss == "absolute_error":
        ordered, order = target.double().sort(0)
        middle = (weight[order].cumsum(0) >= weight.sum() / 2).int().argmax(0)
        constant = ordered.gather(0, middle[None])[0]
    else:
        constant = (weight[:, None] * target).sum(0) / weight.sum()
    target, weight = rows(held_out)
    losses = LOSSES[loss](constant.expand(len(target), -1), target)
    return float((weight * losses).sum() / weight.sum())


def truncated(output: Tensor, bounds: tuple[Tensor, Tensor] | None) -> Tensor:
    """Outputs moved into their bounds."""
    if bounds is None:
        return output
    least, largest = (bound.to(output.device) for bound in bounds)
    return output.clamp(least, largest)


def in_parts(samples: Tensor, lengths: Tensor, width: int) -> Iterator[Tensor]:
    """Samples in parts whose states fit into `NUMBERS_AT_ONCE`, the longest first."""
    order = samples[lengths[samples].argsort(descending=True, stable=True)]
    while len(order):
        size = max(1, NUMBERS_AT_ONCE // (int(lengths[order[0]]) * width))
        yield order[:size]
        order = order[size:]


@torch.no_grad()
def all_outputs(network: RecurrentNetwork, data: TrainingData, reading: str) -> np.ndarray:
    """Outputs of all samples (N, k), or of all rows (rows, k), in float64.

    The recurrence runs in float32, the head in float64: a product of torch rounds a row by how
    many rows there are, and outputs would depend on the samples beside them in the last digits.
    """
    head = copy.deepcopy(network).double().head
    n_outputs = network.output.out_features
    count = len(data.values) if reading == "every" else len(data.lengths)
    found = torch.empty(count, n_outputs, dtype=torch.float64)
    for part in in_parts(torch.arange(len(data.lengths)), data.lengths, network.hidden_size):
        batch = data.batch(part)
        output = head(_states(network, batch, reading).double())
        if reading == "every":
            steps = torch.arange(output.shape[1])
            inside = steps < data.lengths[part, None]
            found[(data.starts[part, None] + steps)[inside]] = output[inside]
        else:
            found[part] = output
    return found.numpy()
