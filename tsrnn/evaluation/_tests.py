"""Tests of accuracy: Diebold-Mariano, confidence set, SPA, encompassing, mean ranks."""

from __future__ import annotations

from itertools import combinations, permutations
from typing import NamedTuple

import numpy as np
import pandas as pd
from arch.bootstrap import MCS, SPA
from scipy import stats
from statsmodels.regression.linear_model import OLS

from tsrnn.contract import DieboldMariano, diebold_mariano, newey_west_lags
from tsrnn.evaluation._forecasts import Forecasts
from tsrnn.evaluation._losses import FEWEST, Observations
from tsrnn.evaluation._scale import Scale

ALL = "all"  # steps together
ROUNDING = 1e-12  # relative size below which a difference of sums is rounding
PAIRS = (
    "step", "model_a", "model_b", "n", "mean_difference", "statistic", "p_value", "p_adjusted",
    "variance", "bandwidth", "over",
)  # fmt: skip
ORDERED_PAIRS = ("model_a", "model_b", "n", "lambda", "std_err", "p_value", "encompasses")
P_VALUES = ("lower", "consistent", "upper")
_CONSTANT = (
    "The model confidence set is left out: the losses of two models differ by the same number in "
    "every observation."
)


def pairwise_tests(
    observations: Observations | None, models: list[str], variance: str
) -> pd.DataFrame:
    r"""Test each pair of models at each step, and over all steps together.

    The test is `tsrnn.contract.diebold_mariano` of the differences of the losses, with the
    estimator of the variance that is named there. Statistics are NaN where the difference does not
    vary or there are too few observations. ``p_adjusted``: Holm's adjustment over the pairs, for
    all steps together.
    """
    if observations is None:
        return pd.DataFrame(columns=list(PAIRS))
    rows = []
    for i, step in enumerate([*range(1, len(observations.overlap)), ALL]):
        for a, b in combinations(range(len(models)), 2):
            losses = observations.losses[:, [a, b], i]
            losses = losses[~np.isnan(losses).any(axis=1)]
            n, overlap = len(losses), int(observations.overlap[i])
            difference = losses[:, 0] - losses[:, 1]
            mean = float(difference.mean()) if n else np.nan
            test = DieboldMariano(np.nan, np.nan, variance, 0)
            # Harvey's factor is that of a horizon of overlap + 1, and needs more observations.
            if n >= max(FEWEST, overlap + 2) and _varies(difference, losses):
                test = diebold_mariano(difference, overlap, variance)
            numbers = (n, mean, test.statistic, test.p_value, np.nan)
            of_variance = (test.variance, test.bandwidth, observations.over)
            rows.append((step, models[a], models[b], *numbers, *of_variance))
    table = pd.DataFrame(rows, columns=list(PAIRS))
    table["step"] = table["step"].astype(object)
    tested = table.index[(table["step"] == ALL) & table["p_value"].notna()]
    p_values = table.loc[tested, "p_value"].sort_values()
    # Holm's: not `multipletests` of statsmodels, which collects the garbage of the whole process
    adjusted = np.maximum.accumulate(p_values * np.arange(len(p_values), 0, -1))
    table.loc[p_values.index, "p_adjusted"] = np.minimum(adjusted, 1.0)
    return table


def _varies(difference: np.ndarray, losses: np.ndarray) -> bool:
    """Return True if a difference of losses varies by more than rounding."""
    return bool(np.ptp(difference) > ROUNDING * np.abs(losses).max())


def confidence_set(
    observations: Observations | None, models: list[str], alpha: float, n_boot: int, seed: int
) -> tuple[pd.DataFrame, list[str]]:
    """Models that hold the best one with probability 1 - alpha, in the limit of many observations.

    By the stationary bootstrap, in blocks as long as observations depend on each other. A row a
    model, ``p_value`` and ``included``; no rows, and a note, if it could not be computed. Hansen,
    Lunde and Nason (2011), The model confidence set, Econometrica 79(2), 453-497.
    """
    nothing = pd.DataFrame({"p_value": [], "included": np.zeros(0, bool)}, _index([]))
    if observations is None or len(models) < 2:
        return nothing, []
    losses, first, block = _losses_and_block(observations)
    chosen = np.unique(first)
    p_values = np.ones(len(models))
    if len(chosen) > 1:
        # The procedure divides by the variance of differences.
        pairs = combinations(losses[:, chosen].T, 2)
        if not all(_varies(a - b, np.array([a, b])) for a, b in pairs):
            return nothing, [_CONSTANT]
        procedure = MCS(losses[:, chosen], alpha, n_boot, block, seed=seed)
        procedure.compute()
        p_values[chosen] = procedure.pvalues["Pvalue"].sort_index().to_numpy()
    p_values = p_values[first]
    table = {"p_value": p_values, "included": p_values > alpha}
    return pd.DataFrame(table, _index(models)), []


def superior_predictive_ability(
    observations: Observations | None, models: list[str], n_boot: int, seed: int
) -> pd.DataFrame:
    """Test for each model whether any other is better.

    A row a benchmark with the p-values ``lower``, ``consistent`` and ``upper`` of the hypothesis
    that no other model has a smaller expected loss; NaN where no other model differs. Hansen
    (2005), A test for superior predictive ability, J. Business & Economic Statistics 23(4).
    """
    if observations is None or len(models) < 2:
        return pd.DataFrame(columns=list(P_VALUES), index=_index([]), dtype=float)
    losses, first, block = _losses_and_block(observations)
    table = np.full((len(models), 3), np.nan)
    for i in range(len(models)):
        others = losses[:, np.setdiff1d(np.unique(first), first[i])]
        if others.shape[1]:
            test = SPA(losses[:, i], others, block, n_boot, seed=seed)
            test.compute()
            table[i] = test.pvalues[list(P_VALUES)]
    return pd.DataFrame(table, _index(models), list(P_VALUES))


def _losses_and_block(observations: Observations) -> tuple[np.ndarray, np.ndarray, int]:
    """Losses over all steps (n, M), first model with equal losses (M,), and block length.

    Models of the same losses enter the bootstrap once: their difference has no variance.
    """
    losses = observations.losses[:, :, -1]
    first = np.array([int((losses == loss[:, None]).all(axis=0).argmax()) for loss in losses.T])
    # A block holds an observation and all that its errors may be correlated with.
    return losses, first, newey_west_lags(int(observations.overlap[-1]), len(losses)) + 1


def _index(models: list[str]) -> pd.Index:
    return pd.Index(models, name="model", dtype=object)


def encompassing(
    forecasts: Forecasts, observations: Observations | None, scale: Scale | None, alpha: float
) -> pd.DataFrame:
    r"""Regress the error of a on its difference from that of b, for each ordered pair.

    .. math:: e_{a} = \lambda (e_{a} - e_{b}) + u

    over all rows, where :math:`\lambda` is the weight of b in the best combination of both; a
    encompasses b if :math:`\lambda = 0` is not rejected. It takes forecasts to be unbiased. The
    covariance is that of Newey and West, of the sums over steps and series of each window
    (Driscoll and Kraay); over series, that of clusters. In a panel errors are in units of the
    scale of their series. p-values are those of Student's t with n - 1 degrees of freedom, n the
    number of observations. Harvey, Leybourne and Newbold (1998), Tests for forecast encompassing,
    Journal of Business & Economic Statistics 16(2), 254-259.
    """
    if observations is None:
        return pd.DataFrame(columns=list(ORDERED_PAIRS))
    errors = forecasts.y - forecasts.point
    if scale is not None and forecasts.n_series > 1:
        errors = errors / np.sqrt(scale.mse[forecasts.series, None])
    of_window = observations.of_window[:, None]
    known = ~np.isnan(errors).any(axis=0) & (of_window >= 0)
    group = np.broadcast_to(of_window, known.shape)[known]
    order = np.argsort(group, kind="stable")  # sums of the covariance are over runs of rows
    errors, group = errors[:, known][:, order], np.unique(group[order], return_inverse=True)[1]
    n, names, rows = int(group[-1]) + 1, forecasts.models, []
    lags = newey_west_lags(int(observations.overlap[-1]), n)
    for a, b in permutations(range(len(errors)), 2):
        difference = errors[a] - errors[b]
        weight = error = p_value = np.nan
        # Forecasts that differ by rounding alone have no weights.
        if n >= FEWEST and np.abs(difference).max() > ROUNDING * np.abs(errors[a]).max():
            kinds = {
                "time": group,
                "maxlags": lags,
                "use_correction": False,
                "df_correction": False,
            }
            covariance = (
                {"cov_type": "cluster", "cov_kwds": {"groups": group}}
                if observations.over == "series"
                else {"cov_type": "hac-groupsum", "cov_kwds": kinds}
            )
            fit = OLS(errors[a], difference).fit(**covariance)
            weight, error = float(fit.params[0]), float(fit.bse[0])
            if error > ROUNDING * abs(weight):
                p_value = float(2 * stats.t.sf(abs(weight) / error, n - 1))
            else:  # a perfect fit, whose t-statistic is rounding
                error = np.nan
        rows.append((names[a], names[b], n, weight, error, p_value))
    table = pd.DataFrame(rows, columns=list(ORDERED_PAIRS[:-1]))
    table["encompasses"] = table["p_value"] >= alpha
    return table


class Ranks(NamedTuple):
    """Mean ranks over n series or windows, and the critical difference."""

    table: pd.DataFrame
    friedman_p_value: float
    critical_difference: float
    n: int


def rank_models(losses: np.ndarray, models: list[str], alpha: float) -> Ranks:
    r"""Rank models within each of n series or windows, of losses (n, k); ties share the mean rank.

    The smallest loss has rank 1. Mean ranks differ at level alpha where they lie at least Nemenyi's

    .. math:: CD = q_\alpha \sqrt{\frac{k (k + 1)}{6 n}}

    apart, with :math:`q_\alpha` the quantile of the studentized range over :math:`\sqrt 2`. A row
    a model: ``mean_rank``, and ``near_best``, whether it lies within that of the best. Friedman's
    p-value is NaN for two models, and with no difference at all. Demšar (2006), Statistical
    comparisons of classifiers, Journal of Machine Learning Research 7, 1-30.
    """
    n, k = losses.shape
    index = _index(models if k > 1 and n > 1 else [])
    if not len(index):
        nothing = pd.DataFrame({"mean_rank": [], "near_best": np.zeros(0, bool)}, index)
        return Ranks(nothing, np.nan, np.nan, n)
    ranks = stats.rankdata(losses, axis=1)
    mean = ranks.mean(axis=0)
    # Nemenyi's table is of the studentized range with infinitely many degrees of freedom.
    quantile = float(stats.studentized_range.ppf(1 - alpha, k, np.inf)) / np.sqrt(2)
    difference = float(quantile * np.sqrt(k * (k + 1) / (6 * n)))
    tied = bool((ranks == ranks[:, :1]).all())
    p_value = np.nan if k < 3 or tied else float(stats.friedmanchisquare(*losses.T).pvalue)
    near = mean - mean.min() < difference
    table = pd.DataFrame({"mean_rank": mean, "near_best": near}, index)
    return Ranks(table, p_value, difference, n)
