"""A trained prior network: its file, and its forecasts in the units of the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from scipy.special import ndtri

from tsrnn.prior._file import TrainedNetwork
from tsrnn.prior._network import PROBABILITIES, PriorNetwork, at_probabilities
from tsrnn.prior._structural import (
    SCALES,
    SEASONS,
    TRENDS,
    structural_evidence,
    structural_models,
)

FEWEST_ROWS = 3  # two changes: one has no spread
LONGEST_SEASON = 60  # a state of more effects takes seconds a series
AT_ONCE = 2**23  # forecasts of structural models in memory together
PAST_ROWS, EVERY = 12, 2  # rows before the last one that are forecast, from every second of them
PRIOR_ERRORS = 10.0  # that the learned quantiles count for beside the errors of the series
REFERENCE = 200  # quantiles that stand for the learned distribution
CALIBRATED = 0.8  # probability of the interval whose width the errors of the series correct
TINY = 1e-9  # of rounding in probabilities


@dataclass(frozen=True, eq=False)
class Forecasts:
    """Predictive distributions of h rows of U units.

    Attributes
    ----------
    median : ndarray of shape (U, h)
    quantiles : ndarray of shape (U, 15, h)
        At the probabilities 0.005, 0.025, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5 and those above.
    weights : Series
        Weights of the structural models in the median, in the mean over units and steps.
    state : ndarray of shape (U, D)
        Inputs and recurrent state of the network after the last rows.

    Examples
    --------
    >>> import numpy as np
    >>> from tsrnn.prior import trained_prior
    >>> rows = np.array([[112.0, 118.0, 132.0, 129.0, 121.0, 135.0]])
    >>> forecasts = trained_prior().forecast(rows, np.array([6]), season_length=1, h=3)
    >>> forecasts.median.shape, forecasts.quantiles.shape
    ((1, 3), (1, 15, 3))
    """

    median: np.ndarray
    quantiles: np.ndarray
    weights: pd.Series
    state: np.ndarray

    def at(self, probabilities: Sequence[float]) -> np.ndarray:
        """Quantiles (U, n, h) at n probabilities between 0 and 1."""
        return at_probabilities(self.quantiles, probabilities)

    def at_ranks(self, ranks: np.ndarray) -> np.ndarray:
        """Quantiles (n, U, h) at `ranks` (n, U, h), a probability for each draw, unit and step."""
        scores, known = ndtri(ranks), ndtri(PROBABILITIES)
        right = np.clip(np.searchsorted(known, scores), 1, len(known) - 1)
        weight = (scores - known[right - 1]) / (known[right] - known[right - 1])
        by_step = self.quantiles.swapaxes(1, 2)[None]
        low, high = (
            np.take_along_axis(by_step, place[..., None], -1)[..., 0]
            for place in (right - 1, right)
        )
        return (1 - weight) * low + weight * high


@dataclass(frozen=True, eq=False)
class TrainedPrior(TrainedNetwork):
    """A prior network with its weights, and what it was trained on.

    Attributes
    ----------
    network : PriorNetwork
    size : dict of str to int
        Arguments of the network.
    description : str
        Sentence that names the data it was trained on.

    Examples
    --------
    >>> from tsrnn.prior import trained_prior
    >>> prior = trained_prior()
    >>> prior.n_parameters < 1_000_000
    True
    """

    network: PriorNetwork
    network_class = PriorNetwork
    shipped_file = "prior.safetensors"
    prefix = "prior."
    noun = "prior network"

    @property
    def n_parameters(self) -> int:
        """Number of learned numbers."""
        return sum(parameter.numel() for parameter in self.network.parameters())

    def n_models(self, season_length: int) -> int:
        """Structural models of a series with seasons of some length."""
        return len(SCALES) * len(structural_models(season_length).noise)

    def forecast(
        self, values: np.ndarray, lengths: np.ndarray, season_length: int, h: int
    ) -> Forecasts:
        """Predictive distributions of the h rows after each unit.

        Parameters
        ----------
        values : ndarray of shape (U, T)
            Rows of each unit from the first column on; finite, also after their ends.
        lengths : integer ndarray of shape (U,)
            At least 3.
        season_length : int
            1 for none, at most 60.
        h : int

        Returns
        -------
        Forecasts
        """
        medians, quantiles = np.empty((len(values), h)), np.empty((len(values), 15, h))
        states = np.empty((len(values), self.network.state_size))
        total = np.zeros(self.n_models(season_length))
        # Units of similar lengths run together, so that few rows are padding.
        order = np.argsort(lengths, kind="stable")
        at_once = max(1, AT_ONCE // ((PAST_ROWS // EVERY + 1) * len(total) * max(h, PAST_ROWS)))
        for part in np.array_split(order, -(-len(order) // at_once)):
            part_of = _Part.of(values[part, : lengths[part].max()], lengths[part])
            median, quantile, weights, state = self._predict(part_of, season_length, h)
            medians[part] = median * part_of.unit
            quantiles[part] = quantile * part_of.unit[:, None]
            states[part] = state
            total += weights.sum(0)
        shares = pd.Series(total / len(values), self.names(season_length))
        return Forecasts(medians, quantiles, shares, states)

    @torch.inference_mode()
    def _predict(
        self, part: _Part, season_length: int, h: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        rows = np.arange(part.values.shape[1])
        before = part.lengths[:, None] - 1 - rows  # rows from each to the last one
        origins = (before >= 0) & (before <= PAST_ROWS) & (rows >= FEWEST_ROWS)
        origins &= before % EVERY == 0
        origins |= before == 0
        units, at = np.nonzero(origins)
        # Past errors of as many steps whatever is asked for: widths do not depend on h.
        steps = max(h, PAST_ROWS)
        evidence = structural_evidence(part.values, part.lengths, origins, season_length, steps)
        features, forecasts, deviations, likelihood = (
            torch.from_numpy(array.astype(float)) for array in evidence[:4]
        )
        predictive = self._in_double_precision(
            features,
            torch.from_numpy(units),
            torch.from_numpy(at),
            season_length,
            forecasts,
            deviations,
            likelihood.clamp(min=-1e4),
        )
        last, scale = evidence.last[:, None], evidence.scale[:, None]
        median = last + scale * predictive.median.numpy()
        offsets = scale[:, None] * (predictive.quantiles - predictive.median[:, None]).numpy()
        final = at == part.lengths[units] - 1
        factor = _width_factors(part, units, at, median, offsets)
        median = np.where(part.varies, median[final], last[final])
        offsets = offsets[final] * np.where(part.varies[..., None], factor, 0.0)
        quantiles = median[:, None] + offsets
        weights, state = predictive.weights[final, :, :h].mean(-1), predictive.state[final]
        return median[:, :h], quantiles[..., :h], weights.numpy(), state.numpy()

    def names(self, season_length: int) -> list[str]:
        """Names of the structural models, in the order of their weights."""
        seasons = SEASONS if season_length > 1 else SEASONS[:1]
        return [
            f"{trend.name}, {season.name}, of {scale}"
            for scale in SCALES
            for trend in TRENDS
            for season in seasons
        ]


@dataclass(frozen=True, eq=False)
class _Part:
    """Units that are forecast together, on a scale on which squares neither overflow nor vanish."""

    values: np.ndarray
    lengths: np.ndarray
    unit: np.ndarray

    @classmethod
    def of(cls, values: np.ndarray, lengths: np.ndarray) -> _Part:
        alive = np.arange(values.shape[1]) < lengths[:, None]
        largest = np.abs(np.where(alive, values, 0.0)).max(1, keepdims=True)
        # A power of two: the values keep their digits.
        unit = np.exp2(np.floor(np.log2(np.where(largest > 0, largest, 1.0))))
        last = np.take_along_axis(values, lengths[:, None] - 1, 1)
        return cls(np.where(alive, values, last) / unit, lengths, unit)

    @cached_property
    def varies(self) -> np.ndarray:
        """Units (U, 1) that are not constant."""
        return (self.values != self.values[:, :1]).any(1, keepdims=True)


def _width_factors(
    part: _Part, units: np.ndarray, rows: np.ndarray, median: np.ndarray, offsets: np.ndarray
) -> np.ndarray:
    """Factors (U, 1, 1) of the widths of learned intervals, by errors of the last rows.

    The 80 percent quantile of the errors over the half width of the learned interval, where
    `PRIOR_ERRORS` errors as the learned distribution has them count as well. Errors of step k
    from origins `EVERY` rows apart share innovations: each counts for `EVERY` / k.
    """
    h = PAST_ROWS
    steps = np.arange(1, h + 1)
    ahead = rows[:, None] + steps
    known = ahead < part.lengths[units][:, None]
    actual = part.values[units[:, None], np.minimum(ahead, part.values.shape[1] - 1)]
    error = actual - median[:, :h]
    low, high = (
        int(np.abs(PROBABILITIES - (0.5 + side * CALIBRATED / 2)).argmin()) for side in (-1, 1)
    )
    half = np.where(error > 0, offsets[:, high, :h], -offsets[:, low, :h])
    score = np.where(half > 0, np.abs(error) / np.where(half > 0, half, 1.0), 0.0)
    weight = np.where(known & (half > 0), np.minimum(EVERY / steps, 1.0) / h, 0.0)
    # One row a unit: the errors of its origins, and the reference.
    n_units, first = len(part.lengths), np.searchsorted(units, np.arange(len(part.lengths)))
    place = np.arange(len(units)) - first[units]
    scores = np.zeros((n_units, (PAST_ROWS // EVERY + 1) * h + REFERENCE))
    weights = np.zeros_like(scores)
    columns = place[:, None] * h + steps - 1
    scores[units[:, None], columns], weights[units[:, None], columns] = score, weight
    middle = (np.arange(REFERENCE) + 0.5) / REFERENCE
    scores[:, -REFERENCE:] = ndtri(0.5 + middle / 2) / ndtri(0.5 + CALIBRATED / 2)
    weights[:, -REFERENCE:] = PRIOR_ERRORS / REFERENCE
    order = np.argsort(scores, 1)
    share = np.take_along_axis(weights, order, 1).cumsum(1)
    reached = (share >= CALIBRATED * share[:, -1:] * (1 - TINY)).argmax(1)
    return np.take_along_axis(scores, order, 1)[np.arange(n_units), reached][:, None, None]


def trained_prior(path: str | Path | None = None) -> TrainedPrior:
    """Read a trained prior network.

    Parameters
    ----------
    path : str or Path, optional
        File that `TrainedPrior.save` wrote; by default the network that comes with the package.

    Returns
    -------
    TrainedPrior

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is no prior network.

    Examples
    --------
    >>> from tsrnn.prior import trained_prior
    >>> "M3" in trained_prior().description
    True
    """
    return TrainedPrior.read(path)
