"""Diebold-Mariano test, with several estimators of the variance of a mean."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import stdtr

DM_VARIANCES = ("rectangular", "bartlett", "cosines")
# Relative size at which a variance, a sum with negative terms, is only rounding error.
_ROUNDING = 1e-12


class DieboldMariano(NamedTuple):
    """Statistic and two-sided p-value of a Diebold-Mariano test.

    Parameters
    ----------
    statistic, p_value : float
        NaN if the difference is constant, or the variance is zero.
    variance : {"rectangular", "bartlett", "cosines"}
        Estimator used; "bartlett" replaces a "rectangular" estimate that is not positive.
    bandwidth : int
        Number of lags of the kernel, or of cosines.

    Examples
    --------
    >>> from tsrnn.contract import diebold_mariano
    >>> test = diebold_mariano([1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.2], overlap=1)
    >>> test.variance, test.bandwidth, test.p_value > 0.05
    ('bartlett', 2, True)
    """

    statistic: float
    p_value: float
    variance: str
    bandwidth: int


def diebold_mariano(
    difference: Sequence[float] | np.ndarray, overlap: int, variance: str = "rectangular"
) -> DieboldMariano:
    r"""Test the hypothesis that the mean difference of losses is zero.

    For n differences :math:`d_t` with autocovariances :math:`\hat\gamma_k` (divisor n) and overlap
    :math:`h` - 1,

    .. math:: DM = \frac{\bar d}{\sqrt{\hat V}} c, \qquad
        c^2 = \frac{n + 1 - 2h + h (h - 1) / n}{n},

    is compared with Student's t of n - 1 degrees of freedom. :math:`\hat V` is

    - "rectangular": :math:`(\hat\gamma_0 + 2 \sum_{k<h} \hat\gamma_k) / n` of Diebold and Mariano;
      :math:`c` corrects its bias (Harvey, Leybourne and Newbold). If it is not positive, "bartlett"
      is used.
    - "bartlett": :math:`(\hat\gamma_0 + 2 \sum_{k \le L} (1 - k / (L + 1)) \hat\gamma_k) / n` of
      Newey and West. L is 0 without overlap, else the larger of the overlap and
      :math:`\lceil n^{1/3} \rceil`, as in statsmodels. :math:`c` was not derived for this estimator
      and serves as a small-sample correction.
    - "cosines": :math:`\hat V = (n B)^{-1} \sum_{j=1}^B \Lambda_j^2` with :math:`\Lambda_j =
      \sqrt{2/n} \sum_t d_t \cos(\pi j (t - 1/2) / n)` and :math:`B = \lfloor 0.41\, n^{2/3}
      \rfloor` (Lazarus et al.), where c = 1 and the degrees of freedom are B.

    Without overlap the first two are the t-test for a mean.

    Parameters
    ----------
    difference : array_like of shape (n,)
    overlap : int
        Number of later observations whose horizon overlaps with that of one; below n - 1.
    variance : {"rectangular", "bartlett", "cosines"}

    Returns
    -------
    DieboldMariano

    References
    ----------
    Diebold, F. X. and Mariano, R. S. (1995). Comparing predictive accuracy. Journal of Business
    & Economic Statistics 13(3), 253-263.

    Harvey, D., Leybourne, S. and Newbold, P. (1997). Testing the equality of prediction mean
    squared errors. International Journal of Forecasting 13(2), 281-291.

    Lazarus, E., Lewis, D. J., Stock, J. H. and Watson, M. W. (2018). HAR inference: recommendations
    for practice. Journal of Business & Economic Statistics 36(4), 541-559.

    Examples
    --------
    >>> from tsrnn.contract import diebold_mariano
    >>> losses = [0.3, 0.2, -0.1, -0.2, 0.1, 0.6, 0.5, 0.2, 0.4, 0.1]
    >>> test = diebold_mariano(losses, overlap=1)
    >>> test.variance, test.bandwidth, round(test.statistic, 3), round(test.p_value, 3)
    ('rectangular', 1, 1.776, 0.109)
    """
    d = np.asarray(difference, dtype=float)
    n, h = len(d), overlap + 1
    centred = d - d.mean()
    lags = newey_west_lags(overlap, n)
    gamma = np.array([centred[k:] @ centred[: n - k] / n for k in range(lags + 1)])
    if not gamma[0] > 0:
        return DieboldMariano(np.nan, np.nan, variance, 0)
    bandwidth, df, correction = overlap, n - 1, (n + 1 - 2 * h + h * (h - 1) / n) / n
    if variance == "rectangular":
        estimate = (gamma[0] + 2 * gamma[1:h].sum()) / n
        if estimate <= _ROUNDING * gamma[0]:
            variance = "bartlett"
    if variance == "bartlett":
        bandwidth, weights = lags, 1 - np.arange(1, lags + 1) / (lags + 1)
        estimate = (gamma[0] + 2 * weights @ gamma[1:]) / n
    elif variance == "cosines":
        # Rate of Lazarus et al. (2018), which balances bias and variance.
        bandwidth = df = max(1, int(0.41 * n ** (2 / 3)))
        angles = np.pi * np.arange(1, bandwidth + 1)[:, None] * (np.arange(n) + 0.5) / n
        estimate = (2 / n) * ((np.cos(angles) @ d) ** 2).mean() / n
        correction = 1.0
    if not estimate > 0:  # a symmetric difference may be orthogonal to the cosines
        return DieboldMariano(np.nan, np.nan, variance, bandwidth)
    statistic = d.mean() / math.sqrt(estimate) * math.sqrt(correction)
    return DieboldMariano(
        float(statistic), float(2 * stdtr(df, -abs(statistic))), variance, bandwidth
    )


def newey_west_lags(overlap: int, n: int) -> int:
    r"""Return the lags of the Bartlett kernel for n observations with overlapping errors.

    Without overlap 0, else :math:`\max(\text{overlap}, \lceil n^{1/3} \rceil)` as in statsmodels.
    With the overlap alone, in steps, the kernel weights would omit part of the variance for any n.
    """
    # Subtract 1e-9, so that rounding of the cube root adds no lag.
    return max(overlap, math.ceil(n ** (1 / 3) - 1e-9)) if overlap else 0
