"""Sample paths: whole trajectories of the forecast distribution."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from tsrnn.forecasters._ahead import Ahead
from tsrnn.forecasters._distribution import HEADS
from tsrnn.forecasters._intervals import Calibration
from tsrnn.forecasters._model import ForecastModel

GRID = np.linspace(0.005, 0.995, 100)  # probabilities between which learned quantiles are read


def drawn_paths(
    model: ForecastModel,
    calibration: Calibration,
    ahead: Ahead,
    units: np.ndarray,
    n: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Standardised paths (U, n, h, C): the forecast and errors drawn around it.

    Parameters
    ----------
    model : ForecastModel
    calibration : Calibration
    ahead : Ahead
    units : integer ndarray of shape (U,)
        Their numbers among those fitted to; -1 is a unit never seen.
    n : int
    rng : numpy.random.Generator
    """
    errors = drawn_errors(calibration, units, n, rng)
    if calibration.method in HEADS:
        errors = learned_errors(model, ahead.states.float(), errors, calibration)
    return ahead.parts.total()[:, None].numpy() + ahead.spread.numpy()[:, None, None] * errors


def drawn_errors(
    calibration: Calibration, units: np.ndarray, n: int, rng: np.random.Generator
) -> np.ndarray:
    """Trajectories (U, n, h, C) of the validation part's scaled errors, drawn with replacement.

    All steps of a trajectory come from one origin, so that errors of different steps go together
    as they did there.

    Parameters
    ----------
    calibration : Calibration
    units : integer ndarray of shape (U,)
        -1 is a unit never seen.
    n : int
    rng : numpy.random.Generator

    Raises
    ------
    ValueError
        If the validation part has no origin with errors of all steps.
    """
    errors = calibration.errors
    complete = np.isfinite(errors).all((2, 3))
    pooled = errors[complete]
    if not len(pooled):
        raise ValueError(
            "sample paths are made of validation errors of all steps from one origin; the "
            "validation part has none. Fit with a larger val_size"
        )
    drawn = np.empty((len(units), n, *errors.shape[2:]))
    for i, unit in enumerate(units):
        own = pooled if len(errors) == 1 or unit < 0 else errors[unit][complete[unit]]
        own = own if len(own) else pooled
        drawn[i] = own[rng.integers(len(own), size=n)]
    return drawn


@torch.no_grad()
def learned_errors(
    model: ForecastModel, states: Tensor, drawn: np.ndarray, calibration: Calibration
) -> np.ndarray:
    """Errors (U, n, h, C) of learned distributions, at the ranks that drawn ones have.

    A drawn trajectory says how likely the error of each step was among the validation errors;
    the learned distribution says how large an error of that probability is now.

    Parameters
    ----------
    model : ForecastModel
    states : Tensor of shape (U, hidden_size)
    drawn : ndarray of shape (U, n, h, C)
    calibration : Calibration
    """
    learned = model.quantiles(states, GRID.tolist()).numpy()
    found = np.empty_like(drawn)
    for k, c in np.ndindex(drawn.shape[2:]):
        known = np.sort(calibration.errors[..., k, c][np.isfinite(calibration.errors[..., k, c])])
        below = np.searchsorted(known, drawn[..., k, c], "left")
        upto = np.searchsorted(known, drawn[..., k, c], "right")
        ranks = (below + upto) / (2 * len(known))
        for i in range(len(drawn)):
            found[i, :, k, c] = np.interp(ranks[i], GRID, learned[i, k, c])
    return found
