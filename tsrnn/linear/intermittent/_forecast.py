"""Forecasts of intermittent demand: their distribution, a share of zeros and gamma sizes; paths."""

from __future__ import annotations

import numpy as np
import torch
from scipy.special import gammaincinv

from tsrnn.linear.intermittent._likelihood import LARGEST_SHAPE
from tsrnn.linear.intermittent._recursion import advance, occurrence_probability


def probabilities(method: str, params: np.ndarray, memory: np.ndarray) -> np.ndarray:
    """Probability (N,) of demand in the next row."""
    pace, beta = torch.from_numpy(memory[:, 1].copy()), torch.from_numpy(params[:, 1].copy())
    return occurrence_probability(method, pace, beta).clamp(max=1.0).numpy()


def shapes_ahead(params: np.ndarray, chance: np.ndarray, h: int) -> np.ndarray:
    r"""Gamma shapes (N, h) of the size of a demand 1, ..., h rows ahead.

    Sizes are :math:`z \epsilon`, and a demand multiplies the level by :math:`1 + \alpha (\epsilon -
    1)`, with gamma :math:`\epsilon` of mean one and variance 1 / k. The gamma distribution here
    matches the mean :math:`z_t` of a size, and its variance, :math:`z_t^2` times

    .. math:: (1 + 1 / k) (1 + \alpha^2 \pi / k)^{j - 1} - 1

    Shapes are infinite if demands are equal.
    """
    alpha, spread = params[:, 0], np.where(_equal(params), 0.0, 1 / params[:, 4])
    growth = np.log1p(alpha**2 * chance * spread)[:, None] * np.arange(h)
    variance = np.expm1(np.log1p(spread)[:, None] + growth)
    return np.where(variance > 0, 1 / np.where(variance > 0, variance, 1.0), np.inf)


def _equal(params: np.ndarray) -> np.ndarray:
    """Mask (N,) of series whose demands are equal."""
    return params[:, 4] >= LARGEST_SHAPE


def quantiles(share: float, size: np.ndarray, chance: np.ndarray, shapes: np.ndarray) -> np.ndarray:
    """Quantiles (N, h) of demand: zero up to the probability of no demand."""
    inside = np.clip((share - (1 - chance)) / np.maximum(chance, 1e-300), 0.0, 1.0)[:, None]
    positive = np.broadcast_to(inside > 0, shapes.shape)
    ends = np.zeros(shapes.shape)
    shape = shapes[positive]
    varies = np.isfinite(shape)
    k = np.where(varies, shape, 1.0)
    scaled = gammaincinv(k, np.broadcast_to(inside, shapes.shape)[positive]) / k
    scaled[~varies] = 1.0
    ends[positive] = np.broadcast_to(size[:, None], shapes.shape)[positive] * scaled
    return ends


def simulated(
    method: str, params: np.ndarray, memory: np.ndarray, h: int, n: int, rng: np.random.Generator
) -> np.ndarray:
    """Paths (N, h, n) of demand after states.

    Croston's method keeps the probability constant, as its forecasts do: with smoothed intervals
    the mean of 1 / interval would rise with every step.
    """
    size = len(params), n
    adapts = method == "tsb"
    alpha, beta = (
        torch.from_numpy(column[:, None].copy()) for column in (params[:, 0], adapts * params[:, 1])
    )
    start = memory[:, 0], probabilities(method, params, memory)
    states = tuple(torch.from_numpy(field[:, None].copy()).expand(size) for field in start)
    shape, paths = params[:, 4, None], np.empty((len(params), h, n))
    for t in range(h):
        level, chance = (field.numpy() for field in states)
        ratio = rng.standard_gamma(np.broadcast_to(shape, size)) / shape
        ratio[_equal(params)] = 1.0
        # Small shapes underflow to zero, which would mean no demand.
        drawn = level * np.maximum(ratio, np.finfo(float).tiny)
        paths[:, t] = np.where(rng.random(size) < chance, drawn, 0.0)
        states = advance("tsb", states, torch.from_numpy(paths[:, t]), alpha, beta)
    return paths
