"""Test of Brock, Dechert and Scheinkman on the residuals of a linear model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm

from tsrnn.contract import number, positive_integer, seed_of
from tsrnn.linearity._null import linear_model
from tsrnn.linearity._result import LinearityTest

MOST_PAIRED = 5000  # residuals, whose 25 million pairs are compared in each permutation


def bds_test(
    y: Any,
    lags: int | None = None,
    *,
    order: tuple[int, int] | None = None,
    max_dim: int = 3,
    distance: float = 1.5,
    n_bootstrap: int = 499,
    random_state: Any = None,
) -> LinearityTest:
    r"""BDS test of independence of the residuals of a linear model.

    With :math:`C_m` the share of pairs of stretches of m residuals whose values are all within a
    distance :math:`\epsilon`,

    .. math:: w_m = \sqrt{n - m + 1} \, \frac{C_m - C_1^m}{\sigma_m} \to N(0, 1)

    if residuals are independent and identically distributed. p-values are from permutations, as the
    normal limit rejects too often in samples of hundreds.

    Parameters
    ----------
    y, lags, order
        As in `terasvirta_test`.
    max_dim : int, default 3
        Largest dimension m, from 2 on; the test statistic is the largest in absolute value.
    distance : float, default 1.5
        Distance in standard deviations of the residuals.
    n_bootstrap : int, default 499
        Number of permutations.
    random_state : int, numpy random generator or None

    Returns
    -------
    LinearityTest
        The table has rows "m = 2", ... and "largest", with permutation p-values and
        ``p_value_normal``.

    Raises
    ------
    TypeError, ValueError
        If the series or an argument is not legal.

    Notes
    -----
    The null is independence, not linearity of the mean: the test rejects ARCH, and a change of the
    variance, by design. Permutations are valid because statistics of residuals and of innovations
    of a linear model have the same limit (de Lima, 1996). Statistics agree with
    `statsmodels.tsa.stattools.bds`.

    References
    ----------
    Brock, W. A., Scheinkman, J. A., Dechert, W. D., LeBaron, B. (1996). A test for independence
    based on the correlation dimension. Econometric Reviews.
    de Lima, P. J. F. (1996). Nuisance parameter free properties of correlation integral based
    statistics. Econometric Reviews.

    Examples
    --------
    >>> from tsrnn.datasets import bilinear
    >>> from tsrnn.linearity import bds_test
    >>> y, _ = bilinear(200, random_state=0, cross=0.5)
    >>> bds_test(y, lags=1, n_bootstrap=99, random_state=0).p_value
    0.01
    """
    most = positive_integer("max_dim", max_dim)
    if most < 2:
        raise ValueError(f"max_dim must be at least 2; got {most}")
    width = number("distance", distance, lowest=0.0, open_=True)
    draws = positive_integer("n_bootstrap", n_bootstrap)
    rng = np.random.default_rng(seed_of(random_state))
    model = linear_model(y, lags, order, 1)
    e = model.residuals
    if len(e) < 10 * most:
        raise ValueError(
            f"max_dim must be at most a tenth of {len(e)} residuals; got {most}. Take a smaller "
            "one, or give more rows"
        )
    if len(e) > MOST_PAIRED:
        raise ValueError(
            f"the BDS test compares all pairs of at most {MOST_PAIRED:,} residuals; got "
            f"{len(e):,}. Test a part of the series"
        )
    close = closeness(e, width)
    counts = close.sum(1).astype(float)
    observed = bds_statistics(close, counts, most)
    if not np.isfinite(observed).all():
        raise ValueError(
            f"no two residuals, or all, are within distance={distance} standard deviations of each "
            "other, so that the statistic is not defined; take another distance"
        )
    permuted = np.empty((draws, most - 1))
    for b in range(draws):
        order_b = rng.permutation(len(e))
        permuted[b] = bds_statistics(close[order_b][:, order_b], counts[order_b], most)
    # An undefined statistic of a permutation counts for the null.
    sizes, draws_of = np.abs(observed), np.nan_to_num(np.abs(permuted), nan=np.inf)
    p_values = (1 + (draws_of >= sizes).sum(0)) / (draws + 1)
    joint = (1 + (draws_of.max(1) >= sizes.max()).sum()) / (draws + 1)
    table = pd.DataFrame(
        {
            "statistic": [*observed, sizes.max()],
            "df": "-",
            "p_value": [*p_values, joint],
            "p_value_normal": [*(2 * norm.sf(sizes)), np.nan],
        },
        index=pd.Index([*(f"m = {m}" for m in range(2, most + 1)), "largest"], name="form"),
    )
    return LinearityTest(
        test="BDS test of residuals",
        model=model.name,
        statistic=float(sizes.max()),
        df=(),
        p_value=float(joint),
        distribution=f"permutations of residuals, {draws} draws",
        null="innovations are independent and identically distributed",
        alternative="they depend on each other in any way",
        n_obs=len(e),
        nonlinear_lags=most - 1,
        table=table,
        mean_only=False,
        notes=["ARCH and changing variances are reasons for it to reject: it is no test of the "
               "mean alone."],
    )  # fmt: skip


def closeness(x: np.ndarray, distance: float) -> np.ndarray:
    """Mask (n, n) of pairs of values within `distance` standard deviations."""
    return np.abs(x[:, None] - x) < distance * x.std(ddof=1)


def bds_statistics(close: np.ndarray, counts: np.ndarray, max_dim: int) -> np.ndarray:
    """BDS statistics of dimensions 2 to `max_dim` from closeness (n, n) and its row sums (n,)."""
    n, total = len(close), counts.sum()
    c = (total - n) / (n * (n - 1))
    # Share of triples in which two values are close to the third.
    k = ((counts**2).sum() - 3 * total + 2 * n) / (n * (n - 1) * (n - 2))
    statistics, joint = np.empty(max_dim - 1), close
    for m in range(2, max_dim + 1):
        joint = joint[:-1, :-1] & close[m - 1 :, m - 1 :]
        rows = n - m + 1
        pairs = rows * (rows - 1)
        c_m = (np.count_nonzero(joint) - rows) / pairs
        # Dimension one on the same rows as dimension m, without the first m - 1.
        early = 2 * counts[: m - 1].sum() - np.count_nonzero(close[: m - 1, : m - 1])
        c_1 = (total - early - rows) / pairs
        terms = sum(k ** (m - j) * c ** (2 * j) for j in range(1, m))
        variance = 4 * (
            k**m + 2 * terms + (m - 1) ** 2 * c ** (2 * m) - m**2 * k * c ** (2 * m - 2)
        )
        size = np.sqrt(max(variance, 0.0))
        statistics[m - 2] = np.sqrt(rows) * (c_m - c_1**m) / size if size > 0 else np.nan
    return statistics
