"""Mean ranks of models over series, with the test of Friedman and Nemenyi's difference."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats


class Ranks(NamedTuple):
    """Mean ranks over n series or windows, and how far apart they must lie."""

    table: pd.DataFrame
    friedman_p_value: float
    critical_difference: float
    n: int


def rank_models(losses: np.ndarray, models: list[str], alpha: float) -> Ranks:
    r"""Rank models within each series or window; equal losses share the mean rank.

    The smallest loss has rank 1. Mean ranks of k models over n series or windows differ at level
    alpha where they lie at least Nemenyi's

    .. math:: CD = q_\alpha \sqrt{\frac{k (k + 1)}{6 n}}

    apart, with :math:`q_\alpha` the quantile of the studentized range over :math:`\sqrt 2`.

    Parameters
    ----------
    losses : ndarray of shape (n, k)
    models : list of str, length k
    alpha : float

    Returns
    -------
    Ranks
        Its table has a row a model: ``mean_rank``, and ``near_best``, whether it lies within the
        critical difference of the best. Friedman's p-value is NaN for two models, and with no
        difference at all.

    References
    ----------
    Demšar, J. (2006). Statistical comparisons of classifiers over multiple data sets. Journal of
    Machine Learning Research 7, 1-30.
    """
    n, k = losses.shape
    index = pd.Index(models if k > 1 and n > 1 else [], name="model", dtype=object)
    if not len(index):
        nothing = pd.DataFrame({"mean_rank": [], "near_best": np.zeros(0, bool)}, index)
        return Ranks(nothing, np.nan, np.nan, n)
    ranks = stats.rankdata(losses, axis=1)
    mean = ranks.mean(axis=0)
    quantile = float(stats.studentized_range.ppf(1 - alpha, k, np.inf)) / np.sqrt(2)
    difference = float(quantile * np.sqrt(k * (k + 1) / (6 * n)))
    tied = bool((ranks == ranks[:, :1]).all())
    p_value = np.nan if k < 3 or tied else float(stats.friedmanchisquare(*losses.T).pvalue)
    near = mean - mean.min() < difference
    table = pd.DataFrame({"mean_rank": mean, "near_best": near}, index)
    return Ranks(table, p_value, difference, n)
