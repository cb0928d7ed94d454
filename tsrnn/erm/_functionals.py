"""Functionals of a fitted function of sequences: partial dependence, impulse response, memory."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from tsrnn.contract import flag, number, positive_integer, seed_of
from tsrnn.erm._curves import Functions, channel_of, curve_frame, lag_of_all, level_of, within
from tsrnn.erm._sequences import Sequences, in_batches, read_sequences

__all__ = ["impulse_response", "memory", "partial_dependence"]

_NUMBERS_A_CALL = 2_000_000  # inputs per call of predict: 16 MB in float64
_QUANTILES = np.linspace(0.05, 0.95, 19)  # no extremes, which would stretch the curve


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
    r"""Return the mean prediction with the input at a lag set to a value.

    .. math::

        \bar f(v) = \frac1N \sum_{i=1}^N
        f(x_{i,1}, \dots, x_{i,T_i-j-1}, x_{i,T_i-j} \leftarrow v, x_{i,T_i-j+1}, \dots, x_{i,T_i})

    for lag j, counted back from the newest step. Only the given channel of that step is set.

    Parameters
    ----------
    model : fitted estimator or Refits
        Model of the curve; a band requires refits, from `block_bootstrap` for example.
    X : array of shape (N, T, d_in) or (N, T), DataFrame, or list of N arrays (T_i, d_in)
        Samples over which predictions are averaged.
    lag : int
        Lag j in time steps; 0 is the newest. Every sample must be longer.
    channel : int, default 0
        Position of the input among d_in.
    grid : array_like of shape (G,), optional
        Values v in the units of the input. By default the distinct 5, 10, ..., 95 percent quantiles
        of the values at that lag.
    level : float, default 90
        Level of the band in percent.
    output : int, default 0
        Column of the predictions. For a classifier, the position of a class in `classes_`; its
        curve averages `predict_proba`.

    Returns
    -------
    DataFrame
        One row per value: ``value`` and ``estimate``; with refits also ``lower`` and ``upper``
        (their percentiles) and ``std_error`` (their standard deviation). ``attrs`` describes the
        curve (``functional``, ``xlabel``, ``ylabel``) and the band (``guarantee``).

    Raises
    ------
    ValueError
        If a sample is too short for the lag, the channel or output does not exist, the grid is
        empty or not finite, or the level is not between 0 and 100.
    TypeError
        If the lag, channel or output is no integer.
    sklearn.exceptions.NotFittedError
        If the model is not fitted.

    Notes
    -----
    The value is set independently of the other inputs. If inputs are dependent, as in most time
    series, the sequences lie off their joint distribution, and the curve averages extrapolations of
    the model. It describes the fitted function. It is the mean response to an intervention only if
    the model is correct and there is no confounding.

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
    r"""Return the mean change of the prediction after a shock to the input at a lag.

    .. math::

        r_j = \frac1N \sum_{i=1}^N f(x_i + \delta e_{T_i-j}) - f(x_i), \qquad j = 0, 1, \dots,

    where :math:`\delta` is the size of the shock, and :math:`e_t` is one in the given channel of
    step t and zero elsewhere. For a linear filter :math:`f(x) = \sum_j w_j x_{T-j}` it equals
    :math:`\delta w_j`. With ``persistent=True`` the shock lasts from lag j to the newest step,
    :math:`e_{T_i-j} + \dots + e_{T_i}`. This is the step response, the cumulative sum for a linear
    filter.

    Parameters
    ----------
    model, X, channel, level, output
        As in `partial_dependence`. For a nonlinear function, the response depends on the samples
        and on the size and sign of the shock.
    size : "std" or float, default "std"
        Size of the shock in units of the input, not 0; "std" is the standard deviation of the
        channel over all steps of all samples.
    max_lag : int, optional
        Longest lag in time steps; by default the longest that every sample has.
    persistent : bool, default False
        Keep the shock up to the newest step.

    Returns
    -------
    DataFrame
        One row per lag: ``lag``, ``estimate`` and the band, as in `partial_dependence`. ``attrs``
        also has the ``size``.

    Raises
    ------
    ValueError, TypeError, sklearn.exceptions.NotFittedError
        As in `partial_dependence`; or if the size is 0, not finite, or "std" of a constant channel.

    Notes
    -----
    Only the input at that step changes, and not the later inputs that would follow in the data
    generating process. The response is a property of the fitted function near the observed
    sequences. It differs from the generalised impulse response of a time series model, where a
    shock propagates through the series (Koop, Pesaran and Potter, 1996).

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
            if not persistent:  # restore the copy, since x + shock - shock is only nearly x
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
    r"""Return the share of the variance of predictions due to inputs older than a lag.

    .. math::

        V_j = \frac{\mathrm E\,[f(X) - f(X')]^2}{2 \operatorname{Var} f(X)}, \qquad j = 0, 1, \dots,

    where X' consists of the newest j + 1 steps of X, preceded by the past of another random sample.
    For independent inputs it is the total Sobol index of the inputs at lags > j, in Jansen's
    estimator: their whole contribution to the variance, with interactions. For a linear filter
    :math:`f(x) = \sum_i w_i x_{T-i}` it is :math:`\sum_{i>j} w_i^2 / \sum_i w_i^2`. It is 1 if all
    inputs are replaced (j = -1), and 0 at the longest lag of samples of equal length.

    Parameters
    ----------
    model, X, level, output
        As in `partial_dependence`, with at least 2 samples.
    max_lag : int, optional
        Longest lag j in time steps; by default the longest that two samples have.
    threshold : float, default 0.05
        Share of the variance neglected in the memory length, between 0 and 1.
    n_swaps : int, default 10
        Number of other pasts per sample. The cost is N * n_swaps * (max_lag + 1) predictions per
        fitted function.
    random_state : int, numpy random generator or None
        Randomness of the swaps, which are the same for all lags and refits.

    Returns
    -------
    DataFrame
        One row per lag: ``lag``, ``estimate``, ``monte_carlo_error`` (standard error due to the
        finite number of swaps, given the samples; NaN for one swap) and the band, as in
        `partial_dependence`. ``attrs`` also has ``memory_length``, the smallest lag from which on
        all estimates lie below the threshold (None if the last does not).

    Raises
    ------
    ValueError, TypeError, sklearn.exceptions.NotFittedError
        As in `partial_dependence`; or if there are fewer than two samples, fewer than two have
        `max_lag`, or a fitted function does not vary over the samples.

    Notes
    -----
    If inputs are dependent, as in most time series, a swap creates sequences with a break at lag j
    that the process would not generate. V_j is then no part of a variance decomposition. It
    measures how strongly the fitted function reacts to another past, may exceed 1 and need not
    decrease.

    Shares are not negative, and errors of the fit increase them. Near 0, estimates are biased
    upwards, those of bootstrap refits twice, so that a percentile band lies too high and may
    exclude the estimate. Bands are useful for shares well above 0.

    For samples of unequal lengths, the whole past is swapped, so that X' has the length of the
    donor. Only samples with more than j steps take part; others have no older inputs and
    contribute 0.

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
    spread = 2 * _variance(values)[:, None]  # E[f(X) - f(X')]^2 for independent X and X'
    swaps = []
    for _ in range(positive_integer("n_swaps", n_swaps)):
        order = rng.permutation(len(sequences))  # common to lags and refits, so that they compare
        squares = np.zeros((len(functions), len(lags)))
        for lag in lags:
            # Each sample takes the past of the next one in order, among samples long enough.
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
    """Yield positions among the chosen (default: all) sequences, in batches of bounded memory."""
    lengths = sequences.lengths if chosen is None else sequences.lengths[chosen]
    return in_batches(lengths, sequences.inputs.n_inputs, _NUMBERS_A_CALL)


def _grid_values(grid: Any, sequences: Sequences, lag: int, channel: int) -> np.ndarray:
    if grid is None:
        rows = sequences.starts + sequences.lengths - 1 - lag  # all sequences have this lag
        observed = sequences.values[rows, channel]
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
    """Return the variance of each function over the samples; raise if it is zero."""
    ranges = np.ptp(values, axis=1)
    for i, (extent, largest) in enumerate(zip(ranges, np.abs(values).max(axis=1), strict=True)):
        # A relative tolerance, since equal predictions may differ by rounding.
        if not extent > 1e-12 * largest:
            who = f"refit {i - 1}" if i else "the estimator"
            raise ValueError(
                f"the predictions of {who} do not vary over the samples (range {extent:g}), so "
                "that there is no variance to share out."
            )
    return values.var(axis=1, ddof=1)
