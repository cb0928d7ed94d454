"""Training examples of the prior network: origins within series and the rows that follow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tsrnn.prior._effects import fit_effects
from tsrnn.prior._structural import Evidence, structural_evidence
from tsrnn.prior._terms import PHASES, ColumnMemory, first_values

if TYPE_CHECKING:
    from torch import Tensor

ORIGINS = 6  # origins of a series: more cost memory and say little more
FEWEST_BEFORE = 4  # rows up to and including an origin
LARGEST_WEIGHT = 5.0  # bound of mean change over seasonal change, the weight that makes losses MASE
FARTHEST = 500.0  # bound of an actual value's distance from the origin, in mean changes
ADAPTING_STEPS = 60  # of fine-tuning: more forget the pretraining
SERIES_RATE = 1e-3  # learning rate of fine-tuning to one series
PANEL_RATE = 3e-4  # to a panel: smaller, since series share the shocks of their years


def window_rows(season_length: int) -> int:
    """Number of last rows that the prior network reads: 100 plus twelve seasons, at most 400."""
    return min(100 + 12 * season_length, 400)


def trained_steps(season_length: int) -> int:
    """Horizon of the training: two seasons, at least 8 and at most 48 rows."""
    return max(8, min(2 * season_length, 48))


@dataclass(frozen=True, eq=False)
class TrainingExamples:
    """Evidence and actual values of series of one season length, in half precision.

    Attributes
    ----------
    season_length : int
    evidence : Evidence
    indptr : integer ndarray of shape (S + 1,)
        Series s has the origins indptr[s] to indptr[s + 1].
    rows : integer ndarray of shape (O,)
        Row of each origin.
    actual : ndarray of shape (O, h)
        Rows after each origin in the units of the evidence, NaN if missing.

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
        """Batch of tensors of the chosen series."""
        import torch  # slow to load, and for training only

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
    """Arguments of the network, actual values (O, h), and weights (O,) of the origins."""

    inputs: tuple[Any, ...]
    actual: Tensor
    weight: Tensor


def training_origins(values: np.ndarray, season_length: int) -> np.ndarray:
    """Rows of the last window of a series (T,) that training may forecast from.

    An origin is the fourth row or later, is followed by at least a third of `trained_steps`, and
    comes after the first change, without which the series has no scale.
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
    """Draw training examples from series.

    Parameters
    ----------
    series : sequence of ndarray
    season_length : int
    rng : numpy random generator
    origins : int or None
        Origins of a series, drawn with probabilities that grow with the root of the row. None for
        the last row only, without actual values.
    columns : sequence of ndarray of shape (T, k), optional
        Columns of each series whose future is known. Their effects, estimated from the rows up to
        an origin, are subtracted, and every origin becomes an example of its own.

    Returns
    -------
    TrainingExamples
        Examples of the series that have a training origin.

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
    return TrainingExamples(
        season_length,
        evidence._replace(
            forecasts=evidence.forecasts.astype(np.float16),
            deviations=evidence.deviations.astype(np.float16),
            # float16 ends at 65,504; weights below exp(-10000) are 0 anyway.
            log_likelihood=np.maximum(evidence.log_likelihood, -1e4).astype(np.float16),
        ),
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
