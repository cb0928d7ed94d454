"""Partial dependence of a fitted function on its input at a lag."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from tsrnn.erm._curves import (
    Functions,
    LaggedSamples,
    channel_of,
    curve_frame,
    lag_of_all,
    level_of,
)

__all__ = ["partial_dependence"]

_QUANTILES = np.linspace(0.05, 0.95, 19)


def partial_dependence(
    model: Any,
    X: Any,
    *,
    lag: int,
    channel: int = 0,
    grid: Any = None,
    level: float = 90,
    output: int = 0,
) -> pd.DataFrame:
    r"""Mean prediction where the input at a lag is set to a value.

    .. math::

        \bar f(v) = \frac1N \sum_{i=1}^N
        f(x_{i,1}, \dots, x_{i,T_i-j-1}, x_{i,T_i-j} \leftarrow v, x_{i,T_i-j+1}, \dots, x_{i,T_i})

    for lag j, counted from the newest step; only the given channel of that step is set.

    Parameters
    ----------
    model : fitted estimator or Refits
        The curve is of the estimator; a band takes refits, as `block_bootstrap` gives.
    X : array of shape (N, T, d_in) or (N, T), DataFrame, or list of N arrays (T_i, d_in)
        Samples over which it is the mean.
    lag : int
        j, in time steps; 0 is the newest. Every sample must have it.
    channel : int, default 0
        Which of the d_in inputs.
    grid : array_like of shape (G,), optional
        Values v, in the units of the input. By default the 5, 10, ..., 95 percent quantiles of
        the values observed at that lag, each once.
    level : float, default 90
        Of the band, in percent.
    output : int, default 0
        Column of the predictions; of a classifier, whose curve is the mean of `predict_proba`,
        the place of a class in `classes_`.

    Returns
    -------
    DataFrame
        A row a value: ``value``, ``estimate`` and, of refits, ``lower``, ``upper`` (percentiles
        of the refits) and ``std_error`` (their standard deviation). ``attrs`` says what the
        curve is (``functional``, ``xlabel``, ``ylabel``) and what the band is (``guarantee``).

    Raises
    ------
    ValueError
        If a sample is too short for the lag, the channel or the output is not there, the grid is
        empty or not finite, or the level is not between 0 and 100.
    TypeError
        If the lag, the channel or the output is no whole number.
    sklearn.exceptions.NotFittedError
        If the model is not fitted.

    Notes
    -----
    The value is set whatever the other inputs are. Where inputs depend on each other, as in most
    time series, this makes sequences off their joint distribution, and the curve averages over
    what the model extrapolates there. It describes the fitted function; it is the mean response
    to an intervention only if the model is right and nothing else confounds.

    References
    ----------
    Friedman, J. H. (2001). Greedy function approximation: a gradient boosting machine. Annals of
    Statistics 29(5), 1189-1232, Section 8.2.

    Hooker, G., Mentch, L. and Zhou, S. (2021). Unrestricted permutation forces extrapolation.
    Statistics and Computing 31, 82.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from tsrnn.erm import partial_dependence
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> model = LinearRegression().fit(X, X @ [0.25, 0.5, 1.0])
    >>> partial_dependence(model, X - X.mean(axis=0), lag=1, grid=[-1, 0, 1]).round(6).abs()
       value  estimate
    0    1.0       0.5
    1    0.0       0.0
    2    1.0       0.5
    """
    sequences, functions, percent = LaggedSamples(X), Functions(model, output), level_of(level)
    lag, channel = lag_of_all("lag", lag, sequences), channel_of(channel, sequences)
    values = _grid(grid, sequences, lag, channel)
    curves = np.zeros((len(functions), len(values)))
    for rows in sequences.batches():
        block = sequences.steps(rows)
        for i, value in enumerate(values):
            block[:, -1 - lag, channel] = value
            curves[:, i] += functions(sequences, block, rows).sum(axis=1)
    labels = {
        "functional": "partial dependence",
        "xlabel": f"Value at lag {lag}" + _of_channel(channel, sequences),
        "ylabel": f"Mean {functions.name}",
        "lag": lag,
        "channel": channel,
    }
    return curve_frame(model, {"value": values}, curves / len(sequences), percent, labels)


def _grid(grid: Any, sequences: LaggedSamples, lag: int, channel: int) -> np.ndarray:
    if grid is None:
        observed = sequences.at(lag, channel)
        if not np.isfinite(observed).all():
            raise ValueError(
                f"values at lag {lag} of channel {channel} are not all finite and have no "
                "quantiles; give `grid`."
            )
        return np.unique(np.quantile(observed, _QUANTILES))
    values = np.asarray(grid, dtype=float)
    if values.ndim != 1 or not len(values) or not np.isfinite(values).all():
        raise ValueError(
            "grid must be a vector of at least one finite value; got "
            f"{np.array2string(values, threshold=6, edgeitems=2)} of shape {values.shape}."
        )
    return values


def _of_channel(channel: int, sequences: LaggedSamples) -> str:
    return f" of channel {channel}" if sequences.n_channels > 1 else ""
