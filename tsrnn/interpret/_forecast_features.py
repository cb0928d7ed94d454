"""Recurrence features of whole forecasts, with level, linear path and network."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from tsrnn.interpret._features import mark_beyond_sample, times
from tsrnn.interpret._fitted import fitted_time_unit
from tsrnn.interpret._realisation import ENOUGH, realise_paths

SEASONS = 3  # in a path: with two, the period of a week in hourly data is a tenth off
FEWEST_STEPS = 12  # of a path
ROUNDING = 1e-9  # standard deviations, rounding differences of constant forecasts


class ForecastPaths(NamedTuple):
    """Forecast paths from many origins, for `forecast_features`.

    Attributes
    ----------
    values : ndarray of shape (M, K, C)
        Deviations from the mean over origins, in standard deviations of each series. K is at
        least the horizon.
    horizon : int
    sample_length : int
        Rows of the longest series.
    linearisation_error : float
        Share of the variance of the forecasts that is lost by linearisation; zero if the paths are
        the forecasts.
    linear : bool
        True if the paths are linearised forecasts.

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
    """Number of steps of the paths for `forecast_features`."""
    return max(horizon, SEASONS * season, FEWEST_STEPS)


def forecast_features(
    model: Any, *, order: int | None = None, tol: float = ENOUGH, at: str = "data"
) -> pd.DataFrame:
    r"""Recurrence features of the whole forecasts of a fitted forecaster.

    Local level, linear path and network form one map from past rows to the next steps. The map is
    linearised by its mean derivative along the data. Its forecasts, over the horizon and at least
    three seasons, are realised as a linear recurrence

    .. math:: \hat y_{t+k} = C x_{t+k|t}, \qquad x_{t+k+1|t} = A x_{t+k|t},

    by the method of Ho and Kalman, see `realise`. The features are the eigenvalues of A: a lasting
    wave of twelve months is a season. Exogenous columns are fixed at their means.

    Parameters
    ----------
    model : fitted forecaster
        Forecaster with a recurrent network. Forecasts of the pretrained prior network are realised
        directly, because they are linear given the weights of its models.
    order : int, optional
        Number of states: two for a wave, one for a decay. By default the smallest number that
        loses at most `tol` of the variance of the forecasts, at most 40.
    tol : float, default 0.01
    at : {"data", "mean"}
        Point of the derivative: averaged along the data, or at the mean of all rows, where the
        network is linear in small deviations.

    Returns
    -------
    DataFrame
        One row per feature by decreasing share, with the columns ``type`` ("R-1", "C-1"),
        ``order``, ``modulus``, ``angle``, ``half_life``, ``period``, ``share`` and
        ``beyond_sample`` of `recurrence_features`. ``share`` refers to the variance of the
        forecasts up to the horizon; shares sum to 1, and are negative for features that work
        against the others.

        Beside those of `recurrence_features`, ``attrs`` has ``realisation_order``,
        ``linearisation_error``, the share of the variance of the forecasts lost by linearisation,
        and ``realisation_error``, the share of the rest lost by the recurrence.

    Raises
    ------
    TypeError
        If the model is no fitted forecaster with a network; `recurrence_features` reads the
        matrices of classical models.
    ValueError
        If the forecasts do not vary, each series has its own network (`for_series` selects one),
        or `order`, `tol` or `at` is illegal.
    sklearn.exceptions.NotFittedError
        If the forecaster has not been fitted.

    Notes
    -----
    A trend is a feature near 1, and cannot be distinguished from a constant level. Half-lives
    longer than the sample are not identified. Series that share a model share one set of features.
    If an error exceeds a tenth, the features describe the forecasts only in part.

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
    # Growth that does not double within the sample cannot be distinguished from modulus 1.
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
