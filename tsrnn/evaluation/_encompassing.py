"""Tests of encompassing: whether a forecast holds all the information of another."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pandas as pd
from scipy import stats
from statsmodels.regression.linear_model import OLS

from tsrnn.evaluation._forecasts import Forecasts
from tsrnn.evaluation._losses import FEWEST, Observations, newey_west_lags
from tsrnn.evaluation._scale import Scale

COLUMNS = ("model_a", "model_b", "n", "lambda", "std_err", "p_value", "encompasses")


def encompassing(
    forecasts: Forecasts, observations: Observations | None, scale: Scale | None, alpha: float
) -> pd.DataFrame:
    r"""Regress the error of a on its difference from that of b, for each ordered pair.

    .. math:: e_{a} = \lambda (e_{a} - e_{b}) + u

    over all rows, where :math:`\lambda` is the weight of b in the best combination of both; a
    encompasses b if :math:`\lambda = 0` is not rejected. It takes forecasts to be unbiased. The
    covariance is that of Newey and West, of the sums over steps and series of each window
    (Driscoll and Kraay); over series, that of clusters. In a panel errors are in units of the
    scale of their series.

    Parameters
    ----------
    forecasts : Forecasts
    observations : Observations or None
    scale : Scale or None
    alpha : float

    Returns
    -------
    DataFrame
        A row a pair, columns ``COLUMNS``; n is the number of observations. p-values are those of
        Student's t with n - 1 degrees of freedom.

    References
    ----------
    Harvey, D., Leybourne, S. and Newbold, P. (1998). Tests for forecast encompassing. Journal of
    Business & Economic Statistics 16(2), 254-259.
    """
    if observations is None:
        return pd.DataFrame(columns=list(COLUMNS))
    errors = forecasts.y - forecasts.point
    if scale is not None and forecasts.n_series > 1:
        errors = errors / np.sqrt(scale.mse[forecasts.series, None])
    of_window = observations.of_window[:, None]
    known = ~np.isnan(errors).any(axis=0) & (of_window >= 0)
    group = np.broadcast_to(of_window, known.shape)[known]
    order = np.argsort(group, kind="stable")  # sums of the covariance are over runs of rows
    errors, group = errors[:, known][:, order], np.unique(group[order], return_inverse=True)[1]
    names = forecasts.models
    rows = [
        (names[a], names[b], *_regress(errors[a], errors[b], group, observations))
        for a, b in permutations(range(len(errors)), 2)
    ]
    table = pd.DataFrame(rows, columns=list(COLUMNS[:-1]))
    table["encompasses"] = table["p_value"] >= alpha
    return table


def _regress(
    a: np.ndarray, b: np.ndarray, group: np.ndarray, observations: Observations
) -> tuple[int, float, float, float]:
    """Number of observations, coefficient, standard error and p-value."""
    n, difference = int(group[-1]) + 1, a - b
    # Forecasts that differ by rounding alone have no weights.
    if n < FEWEST or not np.abs(difference).max() > 1e-12 * np.abs(a).max():
        return n, np.nan, np.nan, np.nan
    if observations.over == "series":
        fit = OLS(a, difference).fit(cov_type="cluster", cov_kwds={"groups": group})
    else:
        lags = newey_west_lags(int(observations.overlap[-1]), n)
        kinds = {"time": group, "maxlags": lags, "use_correction": False, "df_correction": False}
        fit = OLS(a, difference).fit(cov_type="hac-groupsum", cov_kwds=kinds)
    weight, error = float(fit.params[0]), float(fit.bse[0])
    if not error > 1e-12 * abs(weight):  # a perfect fit, whose t-statistic is rounding
        return n, weight, np.nan, np.nan
    return n, weight, error, float(2 * stats.t.sf(abs(weight) / error, n - 1))
