"""Impulse and step responses of a fitted function of sequences."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np
import pandas as pd

from tsrnn.contract import flag
from tsrnn.erm._curves import (
    Functions,
    LaggedSamples,
    channel_of,
    curve_frame,
    lag_of_all,
    level_of,
)

__all__ = ["impulse_response"]


def impulse_response(
    model: Any,
    X: Any,
    *,
    channel: int = 0,
    size: str | float = "std",
    max_lag: int | None = None,
    persistent: bool = False,
    level: float = 90,
    output: int = 0,
) -> pd.DataFrame:
    r"""Mean change of the prediction by a shock to the input at a lag.

    .. math::

        r_j = \frac1N \sum_{i=1}^N f(x_i + \delta e_{T_i-j}) - f(x_i), \qquad j = 0, 1, \dots,

    with :math:`\delta` the size of the shock and :math:`e_t` one in the given channel of step t
    and zero elsewhere. For a linear filter :math:`f(x) = \sum_j w_j x_{T-j}` it is
    :math:`\delta w_j`. With ``persistent=True`` the shock stays from lag j on to the newest step,
    :math:`e_{T_i-j} + \dots + e_{T_i}`: the step response, of a linear filter the cumulative sum.

    Parameters
    ----------
    model : fitted estimator or Refits
        The curve is of the estimator; a band takes refits, as `block_bootstrap` gives.
    X : array of shape (N, T, d_in) or (N, T), DataFrame, or list of N arrays (T_i, d_in)
        Samples over which it is the mean. Of a nonlinear function the response depends on them
        and on the size and sign of the shock.
    channel : int, default 0
        Which of the d_in inputs.
    size : "std" or float, default "std"
        Shock, in units of the input, not 0; "std" is the standard deviation of the channel over
        all steps of all samples.
    max_lag : int, optional
        Longest lag, in time steps; by default the longest that every sample has.
    persistent : bool, default False
        Whether the shock stays.
    level : float, default 90
        Of the band, in percent.
    output : int, default 0
        Column of the predictions; of a classifier, whose curve is of `predict_proba`, the place
        of a class in `classes_`.

    Returns
    -------
    DataFrame
        A row a lag: ``lag``, ``estimate`` and, of refits, ``lower``, ``upper`` (percentiles of
        the refits) and ``std_error`` (their standard deviation). ``attrs`` says what the curve is
        (``functional``, ``xlabel``, ``ylabel``, ``size``) and what the band is (``guarantee``).

    Raises
    ------
    ValueError
        If a sample is too short for the longest lag, the channel or the output is not there, the
        size is 0, not finite or "std" of a constant channel, or the level is not between 0 and
        100.
    TypeError
        If a lag, the channel or the output is no whole number.
    sklearn.exceptions.NotFittedError
        If the model is not fitted.

    Notes
    -----
    Only the input at that step moves, not the later inputs that would follow it in the process
    that made the series. It is a property of the fitted function at sequences near the observed
    ones, and not the generalised impulse response of a time series model, in which a shock runs
    on through the series (Koop, Pesaran and Potter, 1996).

    References
    ----------
    Koop, G., Pesaran, M. H. and Potter, S. M. (1996). Impulse response analysis in nonlinear
    multivariate models. Journal of Econometrics 74(1), 119-147.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from tsrnn.erm import impulse_response
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> model = LinearRegression().fit(X, X @ [0.25, 0.5, 1.0])
    >>> impulse_response(model, X, size=2.0).round(6)
       lag  estimate
    0    0       2.0
    1    1       1.0
    2    2       0.5
    """
    sequences, functions, percent = LaggedSamples(X), Functions(model, output), level_of(level)
    channel, persistent = channel_of(channel, sequences), flag("persistent", persistent)
    longest = int(sequences.lengths.min()) - 1 if max_lag is None else max_lag
    lags = np.arange(lag_of_all("max_lag", longest, sequences) + 1)
    shock = _size(size, sequences, channel)
    sums = np.zeros((len(functions), len(lags)))
    for rows in sequences.batches():
        sums += _changes(functions, sequences, rows, lags, channel, shock, persistent)
    labels = {
        "functional": "step response" if persistent else "impulse response",
        "xlabel": "Lag (time steps)",
        "ylabel": f"Mean change of {functions.name}",
        "size": shock,
        "channel": channel,
    }
    return curve_frame(model, {"lag": lags}, sums / len(sequences), percent, labels)


def _changes(
    functions: Functions,
    sequences: LaggedSamples,
    rows: np.ndarray,
    lags: np.ndarray,
    channel: int,
    shock: float,
    persistent: bool,
) -> np.ndarray:
    """Changes by a shock, summed over samples: (functions, lags)."""
    block = sequences.steps(rows)
    start = functions(sequences, block, rows)
    sums = np.zeros((len(functions), len(lags)))
    for lag in lags:
        before = block[:, -1 - lag, channel].copy()
        block[:, -1 - lag, channel] += shock
        sums[:, lag] = (functions(sequences, block, rows) - start).sum(axis=1)
        if not persistent:
            block[:, -1 - lag, channel] = before
    return sums


def _size(size: Any, sequences: LaggedSamples, channel: int) -> float:
    if isinstance(size, str) and size == "std":
        spread = sequences.spread(channel)
        if not (math.isfinite(spread) and spread > 0):
            raise ValueError(
                f"channel {channel} has the standard deviation {spread:g}, which is no size of a "
                "shock; give `size` as a number."
            )
        return spread
    real = isinstance(size, numbers.Real) and not isinstance(size, bool)
    if not real or not math.isfinite(size) or size == 0:
        raise ValueError(f'size must be "std" or a finite number other than 0; got {size!r}')
    return float(size)
