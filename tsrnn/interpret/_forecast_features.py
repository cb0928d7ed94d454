"""Recurrence features of whole forecasts: level, linear path and network together."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from tsrnn.interpret._features import mark_beyond_sample, times
from tsrnn.interpret._fitted import fitted_time_unit
from tsrnn.interpret._realisation import ENOUGH, realise_paths

__all__ = ["ForecastPaths", "forecast_features", "path_steps"]

SEASONS = 3  # that paths last at least: with two turns a wave of a week in hours is a tenth off
FEWEST_STEPS = 12  # of a path
ROUNDING = 1e-9  # standard deviations, by which forecasts of a constant differ from each other


class ForecastPaths(NamedTuple):
    """Paths of forecasts from many origins of the data, of which features are read.

    Attributes
    ----------
    values : ndarray of shape (M, K, C)
        Deviations from the mean over origins, in standard deviations of each series. K is at
        least the horizon.
    horizon : int
    sample_length : int
        Rows of the longest series.
    linearisation_error : float
        Share of the variance of the forecasts that linear ones do not have; zero where the paths
        are the forecasts themselves.
    linear : bool
        Whether the paths are those of forecasts made linear.

    Examples
    --------
    >>> from tsrnn import ParaRNNForecaster
    >>> from tsrnn.datasets import load_elnino
    >>> model = ParaRNNForecaster(horizon=12, prior="only").fit(load_elnino())
    >>> paths = model.forecast_paths()
    >>> paths.values.shape, paths.linear
    ((64, 36, 1), False)
    """

    values: np.ndarray
    horizon: int
    sample_length: int
    linearisation_error: float
    linear: bool


def path_steps(horizon: int, season: int) -> int:
    """Steps of the paths that features are read of.

    Parameters
    ----------
    horizon, season : int

    Returns
    -------
    int

    Examples
    --------
    >>> from tsrnn.interpret import path_steps
    >>> [path_steps(4, 1), path_steps(4, 12)]
    [12, 36]
    """
    return max(horizon, SEASONS * season, FEWEST_STEPS)


def forecast_features(
    model: Any, *, order: int | None = None, tol: float = ENOUGH, at: str = "data"
) -> pd.DataFrame:
    r"""Read what a fitted forecaster forecasts, all its parts together, as recurrence features.

    The local level, the linear path and the network are one map of past rows to the next steps.
    It is made linear by its derivative, a mean along the data, and its forecasts, of the horizon
    and three seasons at least, are realised as a linear recurrence

    .. math:: \hat y_{t+k} = C x_{t+k|t}, \qquad x_{t+k+1|t} = A x_{t+k|t},

    by the method of Ho and Kalman, see `realise`. Eigenvalues of A are the features: a wave of
    twelve months that lasts is a season. Columns known ahead and other exogenous ones are kept at
    their means: their effects are apart.

    Parameters
    ----------
    model : fitted forecaster
        With a recurrent network, trained on the series or before. Of the prior network the
        forecasts themselves are realised, which are linear in given weights of its models.
    order : int, optional
        States of the recurrence: a wave takes two, a decay one. By default the fewest that leave
        out at most `tol` of the variance of the forecasts, at most 40.
    tol : float, default 0.01
    at : {"data", "mean"}
        Where the derivative is taken: a mean along the data, or at rows that are all at their
        mean, where the network is linear in small deviations.

    Returns
    -------
    DataFrame
        One row a feature by falling share, with the columns ``type`` ("R-1", "C-1"), ``order``,
        ``modulus``, ``angle``, ``half_life``, ``period``, ``share`` and ``beyond_sample`` as of
        `recurrence_features`. ``share`` is that of the variance of the forecasts up to the
        horizon; shares sum to 1, and are negative where a feature works against the others.

        ``attrs`` has, beside those of `recurrence_features`, the ``realisation_order`` and two
        errors, shares of variance: ``linearisation_error``, of the forecasts that linear ones do
        not have, and ``realisation_error``, of these that the recurrence does not have.

    Raises
    ------
    TypeError
        If the model is no fitted forecaster with a network; classical models have the features
        of their matrices, see `recurrence_features`.
    ValueError
        If the forecasts do not vary, each series has a network of its own (`for_series` gives
        one), or `order`, `tol` or `at` is not legal.
    sklearn.exceptions.NotFittedError
        If the forecaster has not been fitted.

    Notes
    -----
    A trend is a feature near 1 that is not told from a level which stays. Half-lives longer than
    the sample are not identified, as elsewhere. Where several series share a model there is one set
    of features. What a realisation cannot say is stated by its errors: above a tenth, the features
    describe the forecasts in part.

    References
    ----------
    Ho, B. L. and Kalman, R. E. (1966). Effective construction of linear state-variable models
    from input/output functions. Regelungstechnik 14, 545-548.

    Examples
    --------
    >>> from tsrnn import ParaRNNForecaster
    >>> from tsrnn.datasets import load_elnino
    >>> from tsrnn.interpret import forecast_features
    >>> features = forecast_features(ParaRNNForecaster(horizon=12).fit(load_elnino()))
    >>> features["type"][0], round(features["period"][0])
    ('C-1', 12)
    """
    read = getattr(model, "forecast_paths", None)
    if isinstance(model, type) or not callable(read):
        shown = f"the class {model.__name__}" if isinstance(model, type) else type(model).__name__
        raise TypeError(
            "forecast_features reads a fitted forecaster with a network, such as "
            f"ParaRNNForecaster; got {shown}. recurrence_features reads matrices and linear models"
        )
    paths = read(at=at)
    if np.abs(paths.values).max() <= ROUNDING:
        raise ValueError(
            "the forecasts do not vary from origin to origin, so that they have no features"
        )
    realised = realise_paths(paths.values, order=order, tol=tol)
    eigenvalues, parts = realised.parts(paths.horizon)
    total = paths.values[:, : paths.horizon]
    shares = (parts * total).sum((1, 2, 3)) / (parts.sum(0) * total).sum()
    unit = fitted_time_unit(model, None)
    modulus, angle = np.abs(eigenvalues), np.abs(np.angle(eigenvalues))
    half_life, period = times(modulus, angle)
    # Growth that would not double within the sample is not told from a feature that lasts.
    half_life[(modulus > 1) & (half_life > paths.sample_length)] = np.inf
    half_life[(modulus > 1) & np.isfinite(half_life)] = np.nan
    letters = np.where(eigenvalues.imag > 0, "C-1", "R-1")
    features = pd.DataFrame(
        {
            "type": letters,
            "order": 1,
            "modulus": modulus,
            "angle": angle,
            "half_life": half_life * unit.step,
            "period": period * unit.step,
            "share": shares,
        }
    )
    mark_beyond_sample(features, paths.sample_length * unit.step)
    length = features.attrs["sample_length"]
    features = features.sort_values("share", ascending=False, kind="stable", ignore_index=True)
    features.attrs = {
        "time_unit": unit.name,
        "time_step": unit.step,
        "sample_length": length,
        "realisation_order": realised.order,
        "realisation_error": realised.error,
        "linearisation_error": paths.linearisation_error,
        "linear": paths.linear,
    }
    return features
