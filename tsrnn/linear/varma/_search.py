"""The search for the maximum of the likelihood, begun again where one search is not enough."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tsrnn.linear._optimise import Evaluation, Optimum, maximise
from tsrnn.linear.varma._identification import identification
from tsrnn.linear.varma._likelihood import evaluate
from tsrnn.linear.varma._sample import Sample
from tsrnn.linear.varma._shape import Shape
from tsrnn.linear.varma._system import spectral_radius

# Further starts: what the autoregressive and moving average coefficients are multiplied by.
_FURTHER = ((0.5, 0.5), (0.2, 1.0), (0.5, -0.5), (1.0, 0.2))
_SLOW = 8  # iterations of a search that meets nothing but one maximum
_SAME = 1e-4  # log-likelihoods that count as one
# Squared distance in standard errors from which the last step of Newton's method is taken.
_TOLERANCE = 1e-9
EDGE = 1e-4  # distance from the unit circle


class Found(NamedTuple):
    """Where the searches of U units ended.

    Attributes
    ----------
    params : array of shape (U, k)
    iterations : integer array of shape (U,)
        Of the search that won.
    converged : boolean array of shape (U,)
    searches, agreeing : integer arrays of shape (U,)
        How many searches there were, and how many ended at the maximum.
    """

    params: np.ndarray
    iterations: np.ndarray
    converged: np.ndarray
    searches: np.ndarray
    agreeing: np.ndarray


def search(sample: Sample, first: np.ndarray, searches: int, progress: str = "") -> Found:
    """Maximise from starting values (U, k); `progress` is what a bar says, if there is to be one.

    Likelihoods with a moving average have several maxima. A search that is slow, does not
    converge, or ends at the edge of invertibility or where factors cancel is doubted: others
    begin elsewhere, `searches` in all, and the highest end counts.
    """
    shape = sample.shape
    best = _maximise(sample, first, progress)
    units = np.arange(len(first))
    count, agreeing = np.ones_like(units), np.ones_like(units)
    doubtful = units[_doubtful(sample, best)] if shape.q else units[:0]
    starts = _FURTHER[: searches - 1]
    if not (len(doubtful) and starts):
        return Found(best.params, best.iterations, _inside(shape, best), count, agreeing)
    begun = np.concatenate([_drawn_in(shape, first[doubtful], *factors) for factors in starts])
    more = f"{progress}, further starts" if progress else ""
    others = _maximise(sample.select(np.tile(doubtful, len(starts))), begun, more)
    values = np.vstack([best.value[doubtful], others.value.reshape(len(starts), -1)])
    winner = values.argmax(0)
    count[doubtful] = len(values)
    agreeing[doubtful] = (values > values.max(0) - _SAME).sum(0)

    def won(own: np.ndarray, rest: np.ndarray) -> np.ndarray:
        ends = np.concatenate([own[doubtful][None], rest.reshape(len(starts), -1, *own.shape[1:])])
        result = own.copy()
        result[doubtful] = ends[winner, np.arange(len(doubtful))]
        return result

    best = Optimum(*(won(own, rest) for own, rest in zip(best, others, strict=True)))
    return Found(best.params, best.iterations, _inside(shape, best), count, agreeing)


def _maximise(sample: Sample, first: np.ndarray, progress: str) -> Optimum:
    def objective(params: np.ndarray, units: np.ndarray, exact: bool) -> Evaluation:
        return evaluate(params, sample.select(units), exact)

    return maximise(objective, first, tol=_TOLERANCE, progress=progress)


def _doubtful(sample: Sample, best: Optimum) -> np.ndarray:
    coefficients = sample.shape.unpack(best.params)
    doubts = ~best.converged | (best.iterations > _SLOW)
    doubts |= spectral_radius(coefficients.ma) > 1 - EDGE
    if sample.shape.p:
        doubts |= ~identification(sample.shape, coefficients, sample.rows).identified
    return doubts


def _inside(shape: Shape, best: Optimum) -> np.ndarray:
    """Whether a search converged, and to an invertible moving average."""
    return best.converged & (spectral_radius(shape.unpack(best.params).ma) < 1 + EDGE)


def _drawn_in(shape: Shape, first: np.ndarray, ar: float, ma: float) -> np.ndarray:
    """Starting values with smaller coefficients."""
    result = first.copy()
    result[:, shape.at_ar] *= ar
    result[:, shape.at_ma] *= ma
    return result
