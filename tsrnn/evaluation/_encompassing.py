"""Regressions that ask whether one forecast holds all that another knows."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pandas as pd
from scipy import stats
from statsmodels.regression.linear_model import OLS

from tsrnn.evaluation._forecasts import Forecasts
from tsrnn.evaluation._scale import Scale
from tsrnn.evaluation._units import FEWEST, Units, newey_west_lags

COLUMNS = ("model_a", "model_b", "n", "lambda", "std_err", "p_value", "encompasses")


def encompassing(
    forecasts: Forecasts, units: Units | None, scale: Scale | None, alpha: float
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
    units : Units or None
    scale : Scale or None
    alpha : float

    Returns
    -------
    DataFrame
        A row a pair, columns ``COLUMNS``; n is the number of units. p-values are those of
        Student's t with n - 1 degrees of freedom.

    References
    ----------
    Harvey, D., Leybourne, S. and Newbold, P. (1998). Tests for forecast encompassing. Journal of
    Business & Economic Statistics 16(2), 254-259.
    """
    if units is None:
        return pd.DataFrame(columns=list(COLUMNS))
    errors, unit = _errors(forecasts, units, scale)
    rows = [
        (forecasts.models[a], forecasts.models[b], *_regress(errors[a], errors[b], unit, units))
        for a, b in permutations(range(len(errors)), 2)
    ]
    table = pd.DataFrame(rows, columns=list(COLUMNS[:-1]))
    table["encompasses"] = table["p_value"] >= alpha
    return table


def _errors(
    forecasts: Forecasts, units: Units, scale: Scale | None
) -> tuple[np.ndarray, np.ndarray]:
    """Errors by model, shape (M, n), and the unit of each, rising."""
    errors = forecasts.y - forecasts.point
    if scale is not None and forecasts.n_series > 1:
        errors = errors / np.sqrt(scale.mse[forecasts.series, None])
    known = ~np.isnan(errors).any(axis=0) & (units.of_window >= 0)[:, None]
    unit = np.broadcast_to(units.of_window[:, None], known.shape)[known]
    order = np.argsort(unit, kind="stable")
    return errors[:, known][:, order], np.unique(unit[order], return_inverse=True)[1]


def _regress(
    a: np.ndarray, b: np.ndarray, unit: np.ndarray, units: Units
) -> tuple[int, float, float, float]:
    """Number of units, coefficient, standard error and p-value."""
    n, difference = int(unit[-1]) + 1, a - b
    if n < FEWEST or not np.abs(difference).max() > 1e-12 * np.abs(a).max():
        return n, np.nan, np.nan, np.nan
    if units.over == "series":
        fit = OLS(a, difference).fit(cov_type="cluster", cov_kwds={"groups": unit})
    else:
        lags = newey_west_lags(int(units.overlap[-1]), n)
        kinds = {"time": unit, "maxlags": lags, "use_correction": False, "df_correction": False}
        fit = OLS(a, difference).fit(cov_type="hac-groupsum", cov_kwds=kinds)
    weight, error = float(fit.params[0]), float(fit.bse[0])
    if not error > 1e-12 * abs(weight):
        return n, weight, np.nan, np.nan
    return n, weight, error, float(2 * stats.t.sf(abs(weight) / error, n - 1))
