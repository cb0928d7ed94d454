"""A trained prior network: its file, and its forecasts in the units of the data."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from scipy.special import ndtri

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
SHIPPED = "prior.safetensors"
UNITS_AT_ONCE = 256  # whose forecasts by all structural models are in memory together
WEIGHTS = "prior."  # before the names of parameters in a file


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
        """Quantiles (U, n, h) at any probabilities between 0 and 1."""
        return at_probabilities(self.quantiles, probabilities)

    def at_ranks(self, ranks: np.ndarray) -> np.ndarray:
        """Quantiles (n, U, h) at a probability for each draw, unit and step."""
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
class TrainedPrior:
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
    size: dict[str, int]
    description: str

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
        """
        medians, quantiles = np.empty((len(values), h)), np.empty((len(values), 15, h))
        states = np.empty((len(values), self.network.state_size), np.float32)
        total = np.zeros(self.n_models(season_length))
        # Units of similar lengths run together, so that few rows are padding.
        order = np.argsort(lengths, kind="stable")
        for part in np.array_split(order, -(-len(order) // UNITS_AT_ONCE)):
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
        origins = np.arange(part.values.shape[1]) == part.lengths[:, None] - 1
        evidence = structural_evidence(part.values, part.lengths, origins, season_length, h)
        forecasts, deviations, likelihood = (
            torch.from_numpy(array.astype(np.float32))
            for array in (evidence.forecasts, evidence.deviations, evidence.log_likelihood)
        )
        predictive = self.network(
            torch.from_numpy(evidence.features),
            torch.arange(len(part.lengths)),
            torch.from_numpy(part.lengths - 1),
            season_length,
            forecasts,
            deviations,
            likelihood.clamp(min=-1e4),
        )
        last, scale = evidence.last[:, None], np.where(part.varies, evidence.scale[:, None], 0.0)
        median = last + scale * predictive.median.numpy().astype(float)
        quantiles = last[:, None] + scale[:, None] * predictive.quantiles.numpy().astype(float)
        weights = predictive.weights.mean(-1).numpy()
        return median, quantiles, weights, predictive.state.numpy()

    def names(self, season_length: int) -> list[str]:
        """Names of the structural models, in the order of their weights."""
        seasons = SEASONS if season_length > 1 else SEASONS[:1]
        return [
            f"{trend.name}, {season.name}, of {scale}"
            for scale in SCALES
            for trend in TRENDS
            for season in seasons
        ]

    def save(self, path: str | Path) -> None:
        """Write a file that `trained_prior` reads.

        Examples
        --------
        >>> import tempfile, pathlib
        >>> from tsrnn.prior import trained_prior
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder) / "prior.safetensors"
        ...     trained_prior().save(path)
        ...     trained_prior(path).description == trained_prior().description
        True
        """
        header = {"size": json.dumps(self.size), "description": self.description}
        save_file(self.network.state_dict(), str(path), header)

    def to_file(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """JSON values and arrays for the file of a forecaster."""
        arrays = {
            WEIGHTS + name: value.numpy() for name, value in self.network.state_dict().items()
        }
        return {"size": self.size, "description": self.description}, arrays

    @staticmethod
    def shapes(size: dict[str, int]) -> dict[str, tuple[str, tuple[int, ...]]]:
        """Types and shapes of the arrays of `to_file`, of a network of some size."""
        with torch.device("meta"):
            network = PriorNetwork(**size)
        return {
            WEIGHTS + name: (str(value.dtype).removeprefix("torch."), tuple(value.shape))
            for name, value in network.state_dict().items()
        }

    @classmethod
    def from_file(cls, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> TrainedPrior:
        """Inverse of `to_file`."""
        network = PriorNetwork(**header["size"])
        weights = {
            name.removeprefix(WEIGHTS): torch.from_numpy(array.copy())
            for name, array in arrays.items()
            if name.startswith(WEIGHTS)
        }
        network.load_state_dict(weights)
        return cls(network.eval().requires_grad_(False), header["size"], header["description"])


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


@lru_cache(maxsize=8)
def trained_prior(path: str | Path | None = None) -> TrainedPrior:
    """Read a trained prior network.

    Parameters
    ----------
    path : str or Path, optional
        File that `TrainedPrior.save` wrote; by default the network that comes with the package.

    Returns
    -------
    TrainedPrior

    Examples
    --------
    >>> from tsrnn.prior import trained_prior
    >>> "M3" in trained_prior().description
    True
    """
    with resources.as_file(resources.files("tsrnn.prior") / SHIPPED) as shipped:
        try:
            with safe_open(str(path or shipped), "pt") as file:
                header = file.metadata() or {}
                weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            size, description = json.loads(header["size"]), header["description"]
        except (KeyError, ValueError) as error:
            raise ValueError(
                f"{path} is no prior network. Give a file that TrainedPrior.save has written"
            ) from error
    network = PriorNetwork(**size)
    network.load_state_dict(weights)
    return TrainedPrior(network.eval().requires_grad_(False), size, description)
