"""How far back a fitted function of sequences looks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from tsrnn.contract import number, positive_integer, seed_of
from tsrnn.erm._curves import Functions, LaggedSamples, curve_frame, level_of, within

__all__ = ["memory"]


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
    model : fitted estimator or Refits
        The curve is of the estimator; a band takes refits, as `block_bootstrap` gives.
    X : array of shape (N, T, d_in) or (N, T), DataFrame, or list of N arrays (T_i, d_in)
        Samples, at least 2.
    max_lag : int, optional
        Longest lag j, in time steps; by default the longest that two samples have.
    level : float, default 90
        Of the band, in percent.
    output : int, default 0
        Column of the predictions; of a classifier, whose curve is of `predict_proba`, the place
        of a class in `classes_`.
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
        A row a lag: ``lag``, ``estimate``, ``monte_carlo_error`` (standard error of the estimate
        from the finite number of swaps, the samples given; NaN for one swap) and, of refits,
        ``lower``, ``upper`` (percentiles of the refits) and ``std_error`` (their standard
        deviation). ``attrs`` has ``memory_length``, the smallest lag from which on all estimates
        lie below the threshold (None if the last one does not), and says what the curve is and
        what the band is (``guarantee``).

    Raises
    ------
    ValueError
        If there are fewer than two samples, fewer than two have `max_lag`, the output is not
        there, a fitted function does not vary over the samples, or an argument is out of range.
    TypeError
        If a lag, a count or the output is no whole number.
    sklearn.exceptions.NotFittedError
        If the model is not fitted.

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
    sequences, functions, percent = LaggedSamples(X), Functions(model, output), level_of(level)
    lags = np.arange(_longest(max_lag, sequences) + 1)
    threshold = number("threshold", threshold, lowest=0, open_=True, highest=1)
    rng = np.random.default_rng(seed_of(random_state))
    values = _values(functions, sequences)
    spread = 2 * _variance(values)[:, None]
    swaps = [
        _squares(functions, sequences, values, lags, rng.permutation(len(sequences))) / spread
        for _ in range(positive_integer("n_swaps", n_swaps))
    ]
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


def _longest(max_lag: Any, sequences: LaggedSamples) -> int:
    if len(sequences) < 2:
        raise ValueError("memory needs at least 2 samples, to swap their pasts; got 1.")
    second = int(np.partition(sequences.lengths, -2)[-2])
    why = f", the longest that two samples have: all others have at most {second} steps"
    if sequences.lengths.max() == second:
        why = f", the longest lag of samples of at most {second} steps"
    return second - 1 if max_lag is None else within("max_lag", max_lag, second - 1, why)


def _values(functions: Functions, sequences: LaggedSamples) -> np.ndarray:
    """Values at the samples: (functions, N)."""
    values = np.empty((len(functions), len(sequences)))
    for rows in sequences.batches():
        values[:, rows] = functions(sequences, sequences.steps(rows), rows)
    return values


def _variance(values: np.ndarray) -> np.ndarray:
    """Of each function over the samples; of none zero."""
    ranges = np.ptp(values, axis=1)
    for i, (extent, largest) in enumerate(zip(ranges, np.abs(values).max(axis=1), strict=True)):
        if not extent > 1e-12 * largest:
            who = f"refit {i - 1}" if i else "the estimator"
            raise ValueError(
                f"the predictions of {who} do not vary over the samples (range {extent:g}), so "
                "that there is no variance to share out."
            )
    return values.var(axis=1, ddof=1)


def _squares(
    functions: Functions,
    sequences: LaggedSamples,
    values: np.ndarray,
    lags: np.ndarray,
    order: np.ndarray,
) -> np.ndarray:
    """Mean squared change where each sample has the past of the next in order, by lag."""
    squares = np.zeros((len(functions), len(lags)))
    for lag in lags:
        rows = order[sequences.lengths[order] > lag]
        donors = np.roll(rows, -1)
        for some in sequences.batches(donors):
            block = sequences.steps(donors[some])
            block[:, -1 - lag :] = sequences.steps(rows[some])[:, -1 - lag :]
            changed = functions(sequences, block, donors[some])
            squares[:, lag] += ((changed - values[:, rows[some]]) ** 2).sum(axis=1)
    return squares / len(sequences)
