"""Functionals of a fitted function of sequences: partial dependence, responses, memory."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from tsrnn.contract import flag, number, positive_integer, seed_of
from tsrnn.erm._curves import (
    Functions,
    channel_of,
    curve_frame,
    lag_of_all,
    level_of,
    within,
)
from tsrnn.erm._sequences import Sequences, in_batches, read_sequences

__all__ = ["impulse_response", "memory", "partial_dependence"]

_NUMBERS_A_CALL = 2_000_000  # inputs of a call, 16 MB in float64
_QUANTILES = np.linspace(0.05, 0.95, 19)  # the ends of a sample would stretch the curve


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
        One row per value: ``value``, ``estimate`` and, of refits, ``lower``, ``upper`` (percentiles
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
    functions, percent = Functions(model, output), level_of(level)
    sequences = read_sequences(X, functions.model, finite=False)
    lag, channel = lag_of_all("lag", lag, sequences), channel_of(channel, sequences)
    values = _grid_values(grid, sequences, lag, channel)
    curves = np.zeros((len(functions), len(values)))
    for rows in _batches(sequences):
        block = sequences.aligned(rows)
        for i, value in enumerate(values):
            block[:, -1 - lag, channel] = value
            curves[:, i] += functions(sequences, block, rows).sum(axis=1)
    several = sequences.inputs.n_inputs > 1
    labels = {
        "functional": "partial dependence",
        "xlabel": f"Value at lag {lag}" + (f" of channel {channel}" if several else ""),
        "ylabel": f"Mean {functions.name}",
        "lag": lag,
        "channel": channel,
    }
    return curve_frame(model, {"value": values}, curves / len(sequences), percent, labels)


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
    model, X, channel, level, output
        As in `partial_dependence`. Of a nonlinear function the response depends on the samples and
        on the size and sign of the shock.
    size : "std" or float, default "std"
        Shock, in units of the input, not 0; "std" is the standard deviation of the channel over
        all steps of all samples.
    max_lag : int, optional
        Longest lag, in time steps; by default the longest that every sample has.
    persistent : bool, default False
        Whether the shock stays.

    Returns
    -------
    DataFrame
        One row per lag: ``lag``, ``estimate`` and the band, as of `partial_dependence`;
        ``attrs`` has the ``size`` as well.

    Raises
    ------
    ValueError, TypeError, sklearn.exceptions.NotFittedError
        As in `partial_dependence`; if the size is 0, not finite or "std" of a constant channel.

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
    functions, percent = Functions(model, output), level_of(level)
    sequences = read_sequences(X, functions.model, finite=False)
    channel, persistent = channel_of(channel, sequences), flag("persistent", persistent)
    longest = int(sequences.lengths.min()) - 1 if max_lag is None else max_lag
    lags = np.arange(lag_of_all("max_lag", longest, sequences) + 1)
    shock = _shock_size(size, sequences, channel)
    sums = np.zeros((len(functions), len(lags)))
    for rows in _batches(sequences):
        block = sequences.aligned(rows)
        start = functions(sequences, block, rows)
        changes = np.zeros_like(sums)
        for lag in lags:
            before = block[:, -1 - lag, channel].copy()
            block[:, -1 - lag, channel] += shock
            changes[:, lag] = (functions(sequences, block, rows) - start).sum(axis=1)
            if not persistent:  # put back as it was: x + shock - shock is x up to rounding only
                block[:, -1 - lag, channel] = before
        sums += changes
    labels = {
        "functional": "step response" if persistent else "impulse response",
        "xlabel": "Lag (time steps)",
        "ylabel": f"Mean change of {functions.name}",
        "size": shock,
        "channel": channel,
    }
    return curve_frame(model, {"lag": lags}, sums / len(sequences), percent, labels)


def memory(
    model: Any,
    X: Any,
    *,
    max_lag: int | None = None,
    level: float = 90,
    output: int = 0,
    threshold: float = 0.05,
    n_swaps: int = 10,
    random_state: Any = None,
) -> pd.DataFrame:
    r"""Share of the variance of the predictions that comes from inputs older than a lag.

    .. math::

        V_j = \frac{\mathrm E\,[f(X) - f(X')]^2}{2 \operatorname{Var} f(X)}, \qquad j = 0, 1, \dots,

    where X' has the newest j + 1 steps of X and before them the past of another sample drawn at
    random. For independent inputs it is the total Sobol index of the inputs at lags > j, by
    Jansen's estimator: all variance in which they have a part, interactions included. For a
    linear filter :math:`f(x) = \sum_i w_i x_{T-i}` it is
    :math:`\sum_{i>j} w_i^2 / \sum_i w_i^2`. Where everything is replaced (j = -1) it is 1, and at
    the longest lag of samples of one length it is 0.

    Parameters
    ----------
    model, X, level, output
        As in `partial_dependence`; at least 2 samples.
    max_lag : int, optional
        Longest lag j, in time steps; by default the longest that two samples have.
    threshold : float, default 0.05
        Share of the variance that is neglected in the memory length, between 0 and 1.
    n_swaps : int, default 10
        Pasts that each sample is given in turn. The work is that of N * n_swaps * (max_lag + 1)
        predictions, of refits for each of them.
    random_state : int, numpy random generator or None
        Of the samples that pasts are taken from; the same for all lags and refits.

    Returns
    -------
    DataFrame
        One row per lag: ``lag``, ``estimate``, ``monte_carlo_error`` (standard error of the
        estimate from the finite number of swaps, the samples given; NaN for one swap) and the
        band, as of `partial_dependence`. ``attrs`` has ``memory_length`` as well, the smallest lag
        from which on all estimates lie below the threshold (None if the last one does not).

    Raises
    ------
    ValueError, TypeError, sklearn.exceptions.NotFittedError
        As in `partial_dependence`; if there are fewer than two samples, fewer than two have
        `max_lag`, or a fitted function does not vary over the samples.

    Notes
    -----
    If inputs depend on each other, as in most time series, a swap makes sequences that the
    process would not, with a break at lag j, and V_j is no part of a decomposition of variance:
    it says how much the fitted function reacts to another past, can exceed 1 and need not fall.

    A share is not negative and errors of the fit add to it: near 0 the estimate is too large, those
    of bootstrap refits are so twice over, and a percentile band there lies too high and may leave
    the estimate out. Bands are of use for shares well above 0.

    Of samples of unequal lengths the whole past is swapped, its number of steps included, so that
    X' is as long as the sample that the past is from. Only samples with more than j steps are
    swapped, with each other; the others have no inputs older than j and count with 0.

    References
    ----------
    Jansen, M. J. W. (1999). Analysis of variance designs for model output. Computer Physics
    Communications 117(1-2), 35-43.

    Saltelli, A. et al. (2010). Variance based sensitivity analysis of model output. Computer
    Physics Communications 181(2), 259-270, Table 2 (f).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from tsrnn.erm import memory
    >>> X = np.random.default_rng(0).normal(size=(5000, 3))
    >>> model = LinearRegression().fit(X, X @ [0.0, 0.5, 1.0])
    >>> frame = memory(model, X, random_state=0)
    >>> frame["estimate"].round(1).to_list()
    [0.2, 0.0, 0.0]
    >>> frame.attrs["memory_length"]
    1
    """
    functions, percent = Functions(model, output), level_of(level)
    sequences = read_sequences(X, functions.model, finite=False)
    lags = np.arange(_longest_lag(max_lag, sequences) + 1)
    threshold = number("threshold", threshold, lowest=0, open_=True, highest=1)
    rng = np.random.default_rng(seed_of(random_state))
    values = np.empty((len(functions), len(sequences)))
    for rows in _batches(sequences):
        values[:, rows] = functions(sequences, sequences.aligned(rows), rows)
    spread = 2 * _variance(values)[:, None]  # E[f(X) - f(X')]^2 of independent X and X'
    swaps = []
    for _ in range(positive_integer("n_swaps", n_swaps)):
        order = rng.permutation(len(sequences))  # one for all lags and refits, so that they compare
        squares = np.zeros((len(functions), len(lags)))
        for lag in lags:
            # Each sample is given the past of the next in order, among those that have one.
            rows = order[sequences.lengths[order] > lag]
            donors = np.roll(rows, -1)
            for part in _batches(sequences, donors):
                block = sequences.aligned(donors[part])
                block[:, -1 - lag :] = sequences.aligned(rows[part])[:, -1 - lag :]
                changed = functions(sequences, block, donors[part])
                squares[:, lag] += ((changed - values[:, rows[part]]) ** 2).sum(axis=1)
        swaps.append(squares / len(sequences) / spread)
    shares = np.mean(swaps, axis=0)
    error = np.full(len(lags), np.nan)
    if len(swaps) > 1:
        error = np.std([swap[0] for swap in swaps], axis=0, ddof=1) / np.sqrt(len(swaps))
    above = lags[shares[0] >= threshold]
    length = int(above[-1]) + 1 if len(above) else 0
    labels = {
        "functional": "memory",
        "xlabel": "Lag (time steps)",
        "ylabel": f"Variance of the {functions.name}\nfrom older inputs (share)",
        "threshold": threshold,
        "memory_length": length if length < len(lags) else None,
    }
    frame = curve_frame(model, {"lag": lags}, shares, percent, labels)
    frame.insert(2, "monte_carlo_error", error)
    return frame


def _batches(sequences: Sequences, chosen: np.ndarray | None = None) -> Iterator[np.ndarray]:
    """Positions among the chosen sequences, or all, so few at a time that a call stays small."""
    lengths = sequences.lengths if chosen is None else sequences.lengths[chosen]
    return in_batches(lengths, sequences.inputs.n_inputs, _NUMBERS_A_CALL)


def _grid_values(grid: Any, sequences: Sequences, lag: int, channel: int) -> np.ndarray:
    if grid is None:
        observed = sequences.at_lag(lag, channel)
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


def _shock_size(size: Any, sequences: Sequences, channel: int) -> float:
    if isinstance(size, str) and size == "std":
        values = sequences.values[:, channel]
        spread = float(values.std(ddof=1)) if len(values) > 1 else 0.0
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


def _longest_lag(max_lag: Any, sequences: Sequences) -> int:
    if len(sequences) < 2:
        raise ValueError("memory needs at least 2 samples, to swap their pasts; got 1.")
    second = int(np.partition(sequences.lengths, -2)[-2])
    why = f", the longest that two samples have: all others have at most {second} steps"
    if sequences.lengths.max() == second:
        why = f", the longest lag of samples of at most {second} steps"
    return second - 1 if max_lag is None else within("max_lag", max_lag, second - 1, why)


def _variance(values: np.ndarray) -> np.ndarray:
    """Variance of each function over the samples; an error where it is zero."""
    ranges = np.ptp(values, axis=1)
    for i, (extent, largest) in enumerate(zip(ranges, np.abs(values).max(axis=1), strict=True)):
        # Rounding of equal predictions leaves some digits that differ.
        if not extent > 1e-12 * largest:
            who = f"refit {i - 1}" if i else "the estimator"
            raise ValueError(
                f"the predictions of {who} do not vary over the samples (range {extent:g}), so "
                "that there is no variance to share out."
            )
    return values.var(axis=1, ddof=1)
