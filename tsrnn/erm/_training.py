"""Training of a network on samples: scaling, held-out samples, batches and risks."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from tsrnn.erm._sequences import Inputs, Sequences, in_batches
from tsrnn.erm._settings import Settings
from tsrnn.layers import RecurrentNetwork
from tsrnn.training import Epoch

LEAST_MAGNITUDE = 1e-150  # squares of smaller numbers underflow
LEAST_STEPS = 20  # optimiser steps per epoch, so that small samples do not give epochs of one step
MOST_STEPS = 200  # steps per epoch that the default batch size aims at, up to the largest batch
LEAST_BATCH, LARGEST_BATCH = 64, 1024
NUMBERS_AT_ONCE = 4_000_000  # states in memory during predictions: 16 MB in float32
LARGEST = float(np.finfo(np.float32).max)  # networks compute in float32


@dataclass(frozen=True, eq=False)
class Samples:
    """Sequences with encoded targets and weights.

    Targets are (N, k), or (N,) for classes; weights are (N,). With `many_to_many` their first axis
    counts rows.
    """

    sequences: Sequences
    targets: np.ndarray
    weights: np.ndarray | None
    many_to_many: bool

    def counted(self) -> Tensor:
        """Return the positions of samples with a positive weight, in some step if by steps."""
        if self.weights is None:
            return torch.arange(len(self.sequences))
        mask = counted(self.weights, self.sequences, self.many_to_many)
        return torch.from_numpy(np.flatnonzero(mask))

    def part(self, positions: Tensor) -> Samples:
        """Select samples by position, in their order."""
        chosen = np.zeros(len(self.sequences), bool)
        chosen[positions.numpy()] = True
        rows = np.repeat(chosen, self.sequences.lengths)
        of_targets = rows if self.many_to_many else chosen
        sequences = replace(
            self.sequences,
            values=self.sequences.values[rows],
            lengths=self.sequences.lengths[chosen],
        )
        weights = None if self.weights is None else self.weights[of_targets]
        return replace(self, sequences=sequences, targets=self.targets[of_targets], weights=weights)

    def input_scaler(self) -> StandardScaler:
        """Return the scaler of the inputs, with weights of steps or of their samples."""
        weights = self.weights
        if weights is not None and not self.many_to_many:
            weights = np.repeat(weights, self.sequences.lengths)
        return fitted_scaler("X", self.sequences.values, weights)


def fitted_scaler(name: str, values: np.ndarray, weights: np.ndarray | None) -> StandardScaler:
    """Return the scaler of the columns of `values` (rows, columns) over rows of positive weight.

    Constant columns have scale 1. Overflow and underflow of squares raise ValueError.
    """
    if weights is not None:
        values, weights = values[weights > 0], weights[weights > 0]
    with np.errstate(over="ignore", invalid="ignore"):
        scaler = StandardScaler().fit(values, sample_weight=weights)
    if not (np.isfinite(scaler.mean_).all() and np.isfinite(scaler.var_).all()):
        raise ValueError(
            f"the standard deviation of {name} overflows: its largest absolute value is "
            f"{np.abs(values).max():.3g}. Change its unit"
        )
    # A zero variance is right for a constant column; otherwise small squares have underflowed.
    largest = np.abs(values).max(0)
    tiny = (scaler.var_ < np.finfo(float).tiny) & (largest > 0) & (largest < LEAST_MAGNITUDE)
    if (tiny & (values != values[0]).any(0)).any():
        raise ValueError(
            f"the variance of {name} underflows: the largest absolute value of a column is "
            f"{largest[tiny].min():.3g}. Change its unit"
        )
    return scaler


def from_moments(mean: np.ndarray, scale: np.ndarray) -> StandardScaler:
    """Return a fitted scaler with given mean and scale."""
    scaler = StandardScaler()
    scaler.mean_, scaler.scale_, scaler.var_ = mean, scale, scale**2
    scaler.n_features_in_ = len(mean)
    return scaler


def z_scores(values: np.ndarray, scaler: StandardScaler) -> np.ndarray:
    """Return `scaler.transform(values)` bit for bit, without its checks."""
    result: np.ndarray = (values - scaler.mean_) / scaler.scale_
    return result


def scaled(sequences: Sequences, scaler: StandardScaler | None) -> Sequences:
    """Return sequences in the scale of the network; refuse numbers too large for float32."""
    values = sequences.values if scaler is None else z_scores(sequences.values, scaler)
    too_large = np.abs(values) > LARGEST
    if too_large.any():
        row, column = np.argwhere(too_large)[0]
        raise ValueError(
            f"X is too large for the network, whose numbers end at {LARGEST:.3g}: at "
            f"{sequences.where(int(row), True)}, input {column} it is "
            f"{sequences.values[row, column]:.3g}, "
            f"and {values[row, column]:.3g} as the network is to see it. Change its unit, or "
            "look for what is wrong with this value"
        )
    return replace(sequences, values=values)


def hold_out(
    samples: Tensor, settings: Settings, classes: np.ndarray | None, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Return positions of training and held-out samples; the latter need `early_stopping`.

    `classes` (n,) stratify a random split if they have enough samples.
    """
    n = len(samples)
    if not settings.early_stopping:
        return samples, samples[:0]
    if n < 2:
        raise ValueError(
            "early_stopping=True needs a sample to train and one to validate; got n_samples = 1 "
            "of a weight above 0. Give more samples, or set early_stopping=False"
        )
    # Each part has at least one sample.
    size = min(max(1, round(settings.validation_fraction * n)), n - 1)
    if settings.validation_split == "last":
        return samples[: n - size], samples[n - size :]
    seed = int(torch.randint(2**31 - 1, (), generator=generator))
    if classes is not None:
        # scikit-learn stratifies if classes have two samples, and each part room for all classes.
        counts = np.unique(classes, return_counts=True)[1]
        if counts.min() < 2 or min(size, n - size) < len(counts):
            classes = None
    train, held_out = train_test_split(
        np.arange(n), test_size=size, random_state=seed, stratify=classes
    )
    return samples[np.sort(train)], samples[np.sort(held_out)]


def counted(weight: np.ndarray, sequences: Sequences, many_to_many: bool) -> np.ndarray:
    """Return the mask of samples with a positive weight, in some step if weights are of rows."""
    return np.maximum.reduceat(weight, sequences.starts) > 0 if many_to_many else weight > 0


class Batch(NamedTuple):
    """Batch of samples, padded to the longest."""

    x: Tensor  # (B, T, d_in)
    lengths: Tensor | None  # integers, (B,)
    target: Tensor  # (B, k) or (B, T, k)
    weight: Tensor  # (B,) or (B, T)
    # () or (R,), number of targets, whatever their weight; a tensor in batches of many networks, of
    # shape (R,) if the samples of R networks are stacked
    n_targets: int | Tensor
    # (k,), least and largest output of a network among many, or of each sample
    bounds: tuple[Tensor, Tensor] | None = None

    def to(self, device: torch.device) -> Batch:
        """Return the batch of a single network on a device."""
        lengths = None if self.lengths is None else self.lengths.to(device)
        x, target, weight = (part.to(device) for part in (self.x, self.target, self.weight))
        return Batch(x, lengths, target, weight, self.n_targets)


class TrainingData:
    """Stacked samples in the scale of the network; see `Sequences` and `Samples`.

    Weights are scaled to mean 1 over samples with positive weight, or over their steps.
    """

    def __init__(
        self, sequences: Sequences, target: Tensor, weight: np.ndarray | None, many_to_many: bool
    ) -> None:
        self.values = torch.from_numpy(sequences.values.astype(np.float32))
        self.starts = torch.from_numpy(sequences.starts)
        self.lengths = torch.from_numpy(sequences.lengths)
        self.target = target
        self._equal = bool((self.lengths == self.lengths[0]).all())
        self.many_to_many = many_to_many
        self.weight = torch.ones(len(target))
        if weight is not None:
            rows = counted(weight, sequences, many_to_many)
            if many_to_many:
                rows = np.repeat(rows, sequences.lengths)
            # With mean 1 the learning rate does not depend on the unit of the weights.
            self.weight = torch.from_numpy((weight / weight[rows].mean()).astype(np.float32))
            # Targets of weight 0 become 0, since NaN times 0 is NaN.
            ignored = torch.from_numpy(weight == 0).view(-1, *[1] * (target.ndim - 1))
            self.target = target.masked_fill(ignored, 0)

    def batch(self, samples: Tensor) -> Batch:
        """Return the batch of samples by position."""
        if self._equal:  # indexing samples of an array is faster than indexing rows
            parts = (self.values, self.target, self.weight)
            x, target, weight = (part.unflatten(0, (len(self.lengths), -1)) for part in parts)
            if not self.many_to_many:
                target, weight = self.target, self.weight
            weight = weight[samples]
            return Batch(x[samples], None, target[samples], weight, weight.numel())
        lengths = self.lengths[samples]
        steps = torch.arange(int(lengths.max()))
        # Pad by the last row, since causal states do not see it.
        rows = self.starts[samples, None] + torch.minimum(steps, lengths[:, None] - 1)
        equal = bool((lengths == lengths[0]).all())
        target, weight, count = self.target[samples], self.weight[samples], len(samples)
        if self.many_to_many:
            inside = steps < lengths[:, None]
            target, weight = self.target[rows], self.weight[rows] * inside
            count = int(lengths.sum())
        return Batch(self.values[rows], None if equal else lengths, target, weight, count)

    def sample(self, numbers: int) -> Tensor:
        """Return inputs (n, T, d_in) of about `numbers` entries, from samples of median length."""
        length = int(self.lengths.median())
        long_enough = torch.nonzero(self.lengths >= length)[:, 0]
        count = max(1, numbers // (length * self.values.shape[1]))
        chosen = long_enough[:: max(1, len(long_enough) // count)][:count]
        rows = self.starts[chosen, None] + self.lengths[chosen, None] + torch.arange(-length, 0)
        return self.values[rows]


class PooledData:
    """Training data of many networks, each in its scales, with joint batches.

    `bounds` are the least and largest output of each network, or None; `stacked` stacks the samples
    of networks, without a first axis of networks.
    """

    def __init__(self, parts: Sequence[TrainingData], bounds: Sequence[Any], stacked: bool) -> None:
        lengths = [part.lengths for part in parts]
        sequences = Sequences(
            torch.cat([part.values for part in parts]).numpy(),
            torch.cat(lengths).numpy(),
            "list",
            Inputs(parts[0].values.shape[1], False),
        )
        target = torch.cat([part.target for part in parts])
        self._data = TrainingData(sequences, target, None, parts[0].many_to_many)
        self._data.weight = torch.cat([part.weight for part in parts])
        sizes = torch.tensor([len(part) for part in lengths])
        self._first = sizes.cumsum(0) - sizes
        self._bounds, self._stacked = bounds, stacked

    def batch(self, chosen: Sequence[tuple[int, Tensor]]) -> Batch:
        """Return a joint batch, from pairs of the position of a network and of its samples.

        Networks with fewer samples than others are padded by their first one, with weight 0.
        """
        numbers = [number for number, _ in chosen]
        samples = [positions for _, positions in chosen]
        sizes = torch.tensor([positions.shape[0] for positions in samples])
        positions = pad_sequence(samples, batch_first=True) + self._first[numbers, None]
        data = self._data.batch(positions.flatten())
        inside = torch.arange(positions.shape[1]) < sizes[:, None]
        counts = inside.long()
        if self._data.many_to_many:
            counts = counts * self._data.lengths[positions]
            inside = inside[..., None]
        bounds = None
        if self._bounds[0] is not None:
            least, largest = zip(*(self._bounds[number] for number in numbers), strict=True)
            bounds = torch.stack(least), torch.stack(largest)
        weight = data.weight * inside.flatten(0, 1)
        if self._stacked:
            if bounds is not None:
                low, high = (t.repeat_interleave(positions.shape[1], 0) for t in bounds)
                steps = self._data.many_to_many
                bounds = (low[:, None], high[:, None]) if steps else (low, high)
            return data._replace(weight=weight, n_targets=counts.sum(1), bounds=bounds)
        x, target, weight = (
            part.unflatten(0, positions.shape) for part in (data.x, data.target, weight)
        )
        lengths = None if data.lengths is None else data.lengths.view_as(positions)
        return Batch(x, lengths, target, weight, counts.sum(1), bounds)


class SampleEpoch(Epoch):
    """Epoch of passes over samples in random order, with at least `least_steps` steps."""

    def __init__(
        self,
        data: TrainingData,
        samples: Tensor,
        batch_size: int | None,
        generator: torch.Generator,
        least_steps: int = LEAST_STEPS,
    ) -> None:
        self.data, self.samples = data, samples
        needed = -(-len(samples) // MOST_STEPS)
        self.batch_size = batch_size or min(max(LEAST_BATCH, needed), LARGEST_BATCH)
        self.generator, self.least_steps = generator, least_steps

    def __len__(self) -> int:
        return max(-(-len(self.samples) // self.batch_size), self.least_steps)

    def batches(self) -> Iterator[Any]:
        """Yield batches without end, pass after pass over all samples."""
        while True:
            order = torch.randperm(len(self.samples), generator=self.generator)
            yield from map(self.batch, self.samples[order].split(self.batch_size))

    def batch(self, samples: Tensor) -> Any:
        """Return the batch of samples."""
        return self.data.batch(samples)


class NumberedEpoch(SampleEpoch):
    """Epoch of one of many networks, with positions that `PooledData` joins to batches."""

    def __init__(self, number: int, *epoch: Any) -> None:
        super().__init__(*epoch)
        self._number = number

    def batch(self, samples: Tensor) -> tuple[int, Tensor]:
        """Return the position of the network, and the positions of its samples."""
        return self._number, samples


def squared_error(output: Tensor, target: Tensor) -> Tensor:
    """Return squared errors, averaged over outputs."""
    return (output - target).square().mean(-1)


def absolute_error(output: Tensor, target: Tensor) -> Tensor:
    """Return absolute errors, averaged over outputs."""
    return (output - target).abs().mean(-1)


def cross_entropy(output: Tensor, target: Tensor) -> Tensor:
    """Return minus the log probability of the class."""
    return output.logsumexp(-1) - output.gather(-1, target[..., None])[..., 0]


LOSSES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "squared_error": squared_error,
    "absolute_error": absolute_error,
    "log_loss": cross_entropy,
}


@dataclass(frozen=True, eq=False)
class EmpiricalRisk:
    """Weighted mean loss of a batch, which training minimises.

    Weights have mean 1 over the sample, so that batches estimate the weighted risk without bias.
    """

    network: RecurrentNetwork
    loss: str
    reading: str

    def __call__(self, batch: Batch) -> Tensor:
        loss = LOSSES[self.loss](outputs(self.network, batch, self.reading), batch.target)
        return _summed(batch.weight * loss, batch.n_targets) / batch.n_targets


@dataclass(frozen=True, eq=False)
class RiskOfSamples:
    """Weighted mean loss over samples, of truncated outputs."""

    network: RecurrentNetwork
    data: TrainingData
    samples: Tensor
    loss: str
    reading: str
    bounds: tuple[Tensor, Tensor] | None

    def __call__(self) -> float:
        network, total, weight = self.network, 0.0, 0.0
        device = next(network.parameters()).device
        was_training = network.training
        network.eval()
        with torch.no_grad():
            for part in in_parts(self.samples, self.data.lengths, network.hidden_size):
                batch = self.data.batch(part).to(device)
                bounds = self.bounds
                if bounds is not None:
                    bounds = bounds[0].to(device), bounds[1].to(device)
                losses, weights = self.sums(batch._replace(bounds=bounds))
                total += float(losses)
                weight += float(weights)
        network.train(was_training)
        return total / weight if weight else float("nan")

    def of_batch(self, batch: Batch) -> Tensor:
        """Return the weighted mean loss of a batch, with outputs truncated to its bounds."""
        losses, weights = self.sums(batch)
        return losses / weights

    def sums(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the sums of weighted losses and of weights of a batch."""
        output = outputs(self.network, batch, self.reading)
        if batch.bounds is not None:
            output = output.clamp(*batch.bounds)
        loss = LOSSES[self.loss](output, batch.target)
        weighted = _summed(batch.weight * loss, batch.n_targets)
        return weighted, _summed(batch.weight, batch.n_targets)


def _summed(values: Tensor, n_targets: int | Tensor) -> Tensor:
    """Return the sum over the samples of a batch, for each of its networks."""
    if isinstance(n_targets, Tensor) and n_targets.ndim:
        return values.view(len(n_targets), -1).sum(1)
    return values.sum()


@torch.no_grad()
def constant_risk(data: TrainingData, train: Tensor, held_out: Tensor, loss: str) -> float:
    """Return the weighted mean loss of held-out samples under the best constant.

    It is the training mean for squared errors, the median for absolute errors, and the shares of
    classes for the log loss.
    """

    def targets_and_weights(samples: Tensor) -> tuple[Tensor, Tensor]:
        chosen = torch.zeros(len(data.lengths), dtype=torch.bool)
        chosen[samples] = True
        if data.many_to_many:
            chosen = chosen.repeat_interleave(data.lengths)
        return data.target[chosen], data.weight[chosen].double()

    target, weight = targets_and_weights(train)
    if loss == "log_loss":
        constant = torch.bincount(target, weight, int(data.target.max()) + 1).log()
    elif loss == "absolute_error":
        ordered, order = target.double().sort(0)
        # Weighted median of each column: the first value at half of the weight.
        middle = (weight[order].cumsum(0) >= weight.sum() / 2).int().argmax(0)
        constant = ordered.gather(0, middle[None])[0]
    else:
        constant = (weight[:, None] * target).sum(0) / weight.sum()
    target, weight = targets_and_weights(held_out)
    losses = LOSSES[loss](constant.expand(len(target), -1), target)
    return float((weight * losses).sum() / weight.sum())


def outputs(network: RecurrentNetwork, batch: Batch, reading: str) -> Tensor:
    """Return outputs of every step (B, T, k), or of every sample (B, k).

    `reading` selects the states of the last layer for the head: "every" one, the "last", or their
    "mean" or "max" over the steps of a sample.
    """
    return network.head(_states(network, batch, reading))


def _states(network: RecurrentNetwork, batch: Batch, reading: str) -> Tensor:
    """Return the states of the last layer that enter the head, zero after the end of a sample."""
    states, last = network.run(batch.x, lengths=batch.lengths)
    if reading == "last":
        return network.outputs(last[-1])
    if reading == "every":
        return states
    if batch.lengths is None:
        return states.mean(1) if reading == "mean" else states.amax(1)
    if reading == "mean":
        return states.sum(1) / batch.lengths[:, None].to(states.dtype)
    # Mask states after the end: they are zero, which may exceed the maximum.
    outside = torch.arange(states.shape[1], device=states.device) >= batch.lengths[:, None]
    return states.masked_fill(outside[..., None], -torch.inf).amax(1)


def in_parts(samples: Tensor, lengths: Tensor, width: int) -> Iterator[Tensor]:
    """Yield samples in parts with at most `NUMBERS_AT_ONCE` states, longest first."""
    for part in in_batches(lengths[samples].numpy(), width, NUMBERS_AT_ONCE):
        yield samples[torch.from_numpy(part)]


@torch.no_grad()
def all_outputs(network: RecurrentNetwork, data: TrainingData, reading: str) -> np.ndarray:
    """Return outputs of all samples (N, k), or of all rows (rows, k), in float64."""
    # The head runs in float64: in float32 the rounding of a matrix product depends on the number of
    # rows, and so an output on the other samples of the batch.
    memo: dict[int, Any] = {id(network.rnn): nn.Identity()}  # copy the head without the recurrence
    head = copy.deepcopy(network, memo).double().head
    n_outputs = network.output.out_features
    count = len(data.values) if reading == "every" else len(data.lengths)
    values = torch.empty(count, n_outputs, dtype=torch.float64)
    for part in in_parts(torch.arange(len(data.lengths)), data.lengths, network.hidden_size):
        batch = data.batch(part)
        output = head(_states(network, batch, reading).double())
        if reading == "every":
            steps = torch.arange(output.shape[1])
            inside = steps < data.lengths[part, None]
            values[(data.starts[part, None] + steps)[inside]] = output[inside]
        else:
            values[part] = output
    return values.numpy()
