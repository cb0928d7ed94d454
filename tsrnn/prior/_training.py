"""Training of the network of the prior on series of many collections and on simulated ones."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tsrnn.prior._effects import fit_effects
from tsrnn.prior._network import PROBABILITIES, PriorNetwork
from tsrnn.prior._structural import Evidence, structural_evidence
from tsrnn.prior._terms import PHASES, ColumnMemory, first_values

ORIGINS = 6  # rows of a series that are forecast from: more cost memory and say little more
FEWEST_BEFORE = 4  # rows up to an origin, with it
LARGEST_WEIGHT = 5.0  # of the scale of a series over that of its season: MASE as the loss counts it
LARGEST_LOSS = 30.0  # beyond which a loss grows by a tenth: series whose scale says nothing
BATCH_SIZE = 32  # series of a step
ADAPTING_STEPS = 60  # to given series: more forget the others
SERIES_RATE = 1e-3  # of these to one series
PANEL_RATE = 3e-4  # to many, which share the shocks of their years and seem to say more
FARTHEST = 500.0  # of an actual value from the origin, in mean changes


def window_rows(season_length: int) -> int:
    """Last rows of a series that the prior reads: a hundred and twelve seasons, at most 400.

    Parameters
    ----------
    season_length : int

    Returns
    -------
    int

    Examples
    --------
    >>> from tsrnn.prior import window_rows
    >>> [window_rows(season_length) for season_length in (1, 12, 52)]
    [112, 244, 400]
    """
    return min(100 + 12 * season_length, 400)


def trained_steps(season_length: int) -> int:
    """Steps ahead of the training: two seasons, at least 8 and at most 48.

    Parameters
    ----------
    season_length : int

    Returns
    -------
    int

    Examples
    --------
    >>> from tsrnn.prior import trained_steps
    >>> [trained_steps(season_length) for season_length in (1, 12, 52)]
    [8, 24, 48]
    """
    return max(8, min(2 * season_length, 48))


@dataclass(frozen=True, eq=False)
class TrainingExamples:
    """Evidence of series of one season length and the rows that followed, in half precision.

    Attributes
    ----------
    season_length : int
    evidence : Evidence
    indptr : integer ndarray of shape (S + 1,)
        Series s has the origins indptr[s] to indptr[s + 1].
    rows : integer ndarray of shape (O,)
    actual : ndarray of shape (O, h)
        In the units of the evidence, NaN where there is none.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.prior import TrainingExamples, make_examples
    >>> series = [np.arange(20.0) ** 1.5, np.arange(30.0) ** 0.5]
    >>> examples = make_examples(series, 1, np.random.default_rng(0))
    >>> isinstance(examples, TrainingExamples), len(examples)
    (True, 2)
    """

    season_length: int
    evidence: Evidence
    indptr: np.ndarray
    rows: np.ndarray
    actual: np.ndarray

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def select(self, chosen: np.ndarray) -> Batch:
        """Some series as tensors."""
        counts = np.diff(self.indptr)[chosen]
        origins = np.concatenate([np.arange(*self.indptr[i : i + 2]) for i in chosen])
        rows, evidence = self.rows[origins], self.evidence
        features = evidence.features[chosen, : rows.max() + 1]
        weight = evidence.scale[origins] / evidence.season_scale[origins]
        return Batch(
            (
                torch.from_numpy(features),
                torch.from_numpy(np.repeat(np.arange(len(chosen)), counts)),
                torch.from_numpy(rows),
                self.season_length,
                *(
                    torch.from_numpy(part[origins].astype(np.float32))
                    for part in (evidence.forecasts, evidence.deviations, evidence.log_likelihood)
                ),
            ),
            torch.from_numpy(self.actual[origins]),
            torch.from_numpy(np.clip(weight, 1 / LARGEST_WEIGHT**2, LARGEST_WEIGHT)).float(),
        )


@dataclass(frozen=True, eq=False)
class Batch:
    """Arguments of the network, the rows that followed (O, h), and the weights (O,) of origins."""

    inputs: tuple[Any, ...]
    actual: Tensor
    weight: Tensor


def training_origins(values: np.ndarray, season_length: int) -> np.ndarray:
    """Rows of the last window of a series that training may forecast from.

    From the fourth on, with a third of the trained steps to come, once the series has moved: before
    that it has no scale.

    Parameters
    ----------
    values : ndarray of shape (T,)
    season_length : int

    Returns
    -------
    integer ndarray

    Examples
    --------
    >>> from tsrnn.prior import training_origins
    >>> training_origins([5.0, 5.0, 5.0, 5.0, 6.0, 7.0, 6.0, 8.0], season_length=1)
    array([4, 5])
    """
    h, window = trained_steps(season_length), window_rows(season_length)
    values = np.asarray(values, float)[-(window + h) :]
    last = min(len(values) - 1 - max(1, h // 3), window - 1)
    rows = np.arange(FEWEST_BEFORE - 1, last + 1)
    return rows[np.abs(np.diff(values)).cumsum()[rows - 1] > 0]


def make_examples(
    series: Sequence[np.ndarray],
    season_length: int,
    rng: np.random.Generator,
    origins: int | None = ORIGINS,
    columns: Sequence[np.ndarray] | None = None,
) -> TrainingExamples:
    """Examples of forecasts within series.

    Parameters
    ----------
    series : sequence of ndarray
    season_length : int
    rng : numpy random generator
    origins : int or None
        Rows to forecast from a series, drawn with probabilities that grow with the root of the
        row. None: the last row alone, of which nothing follows.
    columns : sequence of ndarray of shape (T, k), optional
        Columns of each series whose future is known. Their effects, estimated from the rows up to
        an origin, are taken out of the series, and every origin is an example of its own.

    Returns
    -------
    TrainingExamples
        Without the series that do not move before they could be forecast.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.prior import SeriesPrior, make_examples
    >>> series = list(SeriesPrior().sample(4, 30, 1, 0))
    >>> examples = make_examples(series, 1, np.random.default_rng(0), origins=2)
    >>> len(examples), examples.actual.shape
    (4, (8, 8))
    """
    h, window = trained_steps(season_length), window_rows(season_length)
    kept, indptr, rows, ahead = [], [0], [], []
    read = window + (h if origins else 0)
    for number, values in enumerate(series):
        values = values[-read:]
        if origins is None:
            chosen = np.array([min(len(values), window) - 1])
        else:
            candidates = training_origins(values, season_length)
            if not len(candidates):
                continue
            weights = np.sqrt(candidates + 1.0)
            count = min(origins, len(candidates))
            chosen = np.sort(rng.choice(candidates, count, False, weights / weights.sum()))
        parts = [(values, chosen)]
        if columns is not None:
            exog = columns[number][-read:]
            parts = [
                (without_effects(values, exog, row, season_length), np.array([row]))
                for row in chosen
            ]
        for part, of_part in parts:
            kept.append(part)
            indptr.append(indptr[-1] + len(of_part))
            rows.append(of_part)
            padded = np.concatenate([part, np.full(h + 1, np.nan)])
            ahead.append(padded[of_part[:, None] + np.arange(1, h + 1)])
    lengths = np.array([chosen[-1] + 1 for chosen in rows])
    values = np.zeros((len(kept), lengths.max()))
    mask = np.zeros(values.shape, bool)
    for i, (value, chosen) in enumerate(zip(kept, rows, strict=True)):
        values[i] = np.resize(value[: lengths[i]], values.shape[1])
        values[i, lengths[i] :] = value[lengths[i] - 1]
        mask[i, chosen] = True
    evidence = structural_evidence(values, lengths, mask, season_length, h)
    actual = (np.concatenate(ahead) - evidence.last[:, None]) / evidence.scale[:, None]
    half = (part.astype(np.float16) for part in (evidence.forecasts, evidence.deviations))
    forecasts, deviations = half
    likelihood = np.maximum(evidence.log_likelihood, -1e4).astype(np.float16)
    return TrainingExamples(
        season_length,
        evidence._replace(forecasts=forecasts, deviations=deviations, log_likelihood=likelihood),
        np.array(indptr),
        np.concatenate(rows),
        np.clip(actual, -FARTHEST, FARTHEST).astype(np.float32),
    )


def without_effects(
    values: np.ndarray, columns: np.ndarray, origin: int, season_length: int
) -> np.ndarray:
    """Series (T,) less the effects of columns (T, k), estimated from the rows up to `origin`."""
    known, phases = slice(origin + 1), np.zeros((len(values), len(PHASES)))
    names = list(range(columns.shape[1]))
    effects = fit_effects(
        [values[known, None]], [columns[known]], [phases[known]], names, [True] * len(names),
        season_length,
    )  # fmt: skip
    memory = ColumnMemory.before(first_values(columns)[None], effects.n_decays)
    matrix, _, _ = effects.columns(columns, phases, memory, 0)
    return effects.without(values, matrix @ effects.coefficient[0])


def loss(network: PriorNetwork, batch: Batch) -> Tensor:
    """Check loss of all quantiles and absolute error of the median, in units of MASE."""
    forecast = network(*batch.inputs)
    probabilities = torch.tensor(PROBABILITIES, dtype=torch.float32)[:, None]
    known = torch.isfinite(batch.actual)
    actual = torch.where(known, batch.actual, forecast.median.detach())
    beyond = actual[:, None] - forecast.quantiles
    check = 2 * torch.maximum(probabilities * beyond, (probabilities - 1) * beyond)
    losses = check.mean(1) + (actual - forecast.median).abs()
    losses = losses * batch.weight[:, None]
    losses = torch.where(losses > LARGEST_LOSS, 0.9 * LARGEST_LOSS + 0.1 * losses, losses)
    return torch.where(known, losses, 0.0).sum() / known.sum()


def train_network(
    network: PriorNetwork,
    draw: Callable[[int], Sequence[TrainingExamples]],
    *,
    epochs: int,
    learning_rate: float = 2e-3,
    weight_decay: float = 0.02,
    batch_size: int = BATCH_SIZE,
    seed: int = 0,
    checkpoint: Path | None = None,
    report: Callable[[Mapping[str, float]], None] | None = None,
) -> PriorNetwork:
    """Train a network; go on from a checkpoint where there is one.

    Parameters
    ----------
    network : PriorNetwork
    draw : callable
        ``draw(epoch)`` gives the examples of an epoch.
    epochs : int
    learning_rate, weight_decay : float
        Of AdamW; the rate falls by half a cosine to zero.
    batch_size : int
        Series of a step.
    seed : int
    checkpoint : Path, optional
        File of weights, optimiser and epoch, written after each.
    report : callable, optional
        Called after each epoch with its number and the mean loss.

    Returns
    -------
    PriorNetwork
        The same network.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.prior import PriorNetwork, SeriesPrior, make_examples, train_network
    >>> series = list(SeriesPrior().sample(8, 30, 1, 0))
    >>> examples = make_examples(series, 1, np.random.default_rng(0))
    >>> losses = []
    >>> network = PriorNetwork(hidden_size=4, n_layers=1, width=8)
    >>> network = train_network(network, lambda _: [examples], epochs=3, report=losses.append)
    >>> [epoch["epoch"] for epoch in losses]
    [0, 1, 2]
    """
    optimiser = torch.optim.AdamW(network.parameters(), lr=learning_rate, weight_decay=weight_decay)
    first = 0
    if checkpoint is not None and checkpoint.exists():
        saved = torch.load(checkpoint, weights_only=True)
        network.load_state_dict(saved["network"])
        optimiser.load_state_dict(saved["optimiser"])
        first = saved["epoch"] + 1
    for epoch in range(first, epochs):
        rng = np.random.default_rng([seed, epoch])
        collections = draw(epoch)
        batches = [
            (examples, part)
            for examples in collections
            for part in _alike(examples, batch_size, rng)
        ]
        rng.shuffle(batches)  # type: ignore[arg-type]
        total = 0.0
        for number, (examples, part) in enumerate(batches):
            done = (epoch + number / len(batches)) / epochs
            warm = min(1.0, (epoch * len(batches) + number + 1) / 50)
            rate = learning_rate * warm * half_cosine(done)
            total += take_step(network, optimiser, examples.select(part), rate)
        if checkpoint is not None:
            state = {"network": network.state_dict(), "optimiser": optimiser.state_dict()}
            partial = checkpoint.with_suffix(".partial")
            torch.save(state | {"epoch": epoch}, partial)
            partial.replace(checkpoint)
        if report is not None:
            report({"epoch": epoch, "loss": total / len(batches)})
    return network.eval()


def half_cosine(done: float) -> float:
    """Learning rate over the first one, after a share `done` of a training."""
    return 0.5 * (1 + math.cos(math.pi * done))


def take_step(
    network: PriorNetwork, optimiser: torch.optim.Optimizer, batch: Batch, learning_rate: float
) -> float:
    """Take a step of the optimiser; the loss before it."""
    for group in optimiser.param_groups:
        group["lr"] = learning_rate
    optimiser.zero_grad()
    value = loss(network, batch)
    value.backward()
    torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
    optimiser.step()
    return float(value.detach())


def adapt_network(
    network: PriorNetwork, examples: TrainingExamples, learning_rate: float = PANEL_RATE
) -> PriorNetwork:
    """Take a trained network a few small steps towards given series.

    `ADAPTING_STEPS` steps of Adam, which move a weight by hardly more than the learning rate each,
    are a prior at the trained weights: what the series do not say loudly stays as it was learned.
    Batches are drawn with a seed of their own, and there is no dropout: the same examples give the
    same network.

    Parameters
    ----------
    network : PriorNetwork
        Left as it is.
    examples : TrainingExamples
    learning_rate : float
        Of the first step; it falls by half a cosine to zero.

    Returns
    -------
    PriorNetwork
        Another one.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.prior import SeriesPrior, adapt_network, make_examples, trained_prior
    >>> series = list(SeriesPrior().sample(40, 30, 1, 0))
    >>> examples = make_examples(series, 1, np.random.default_rng(0))
    >>> network = trained_prior().network
    >>> adapt_network(network, examples) is network
    False
    """
    rng, waiting = np.random.default_rng(0), np.empty(0, int)
    size = min(BATCH_SIZE, len(examples))
    with torch.inference_mode(False), torch.enable_grad():  # whatever a caller has set
        adapted = copy.deepcopy(network).eval().requires_grad_(True)
        optimiser = torch.optim.Adam(adapted.parameters())
        for step in range(ADAPTING_STEPS):
            if len(waiting) < size:
                waiting = rng.permutation(len(examples))
            chosen, waiting = np.sort(waiting[:size]), waiting[size:]
            rate = learning_rate * half_cosine(step / ADAPTING_STEPS)
            take_step(adapted, optimiser, examples.select(chosen), rate)
        return adapted.requires_grad_(False)


def _alike(examples: TrainingExamples, size: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Batches of series of similar lengths, so that little is padding."""
    lengths = examples.rows[examples.indptr[1:] - 1]
    order = np.argsort(lengths + 12 * rng.random(len(lengths)))
    return [order[first : first + size] for first in range(0, len(order), size)]
