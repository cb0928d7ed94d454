"""Tests of equal accuracy of two models, by Diebold and Mariano."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
from statsmodels.stats.multitest import multipletests
from statsmodels.tsa.stattools import diebold_mariano_test

from tsrnn.evaluation._losses import FEWEST, Observations, newey_west_lags

ALL = "all"
COLUMNS = (
    "step", "model_a", "model_b", "n", "mean_difference", "statistic", "p_value", "p_adjusted",
    "lags", "over",
)  # fmt: skip


def diebold_mariano(observations: Observations | None, models: list[str]) -> pd.DataFrame:
    r"""Test each pair of models at each step, and over all steps together.

    With :math:`d_t` the loss of a less that of b in observation t of n, and h - 1 the overlap of
    observations,

    .. math::
        DM = \frac{\bar d}{\sqrt{\hat V(\bar d)}} \sqrt{\frac{n + 1 - 2h + h (h - 1) / n}{n}},

    with the variance of Newey and West and p-values of Student's t with n - 1 degrees of freedom
    (Harvey, Leybourne and Newbold). Without overlap that is the t-test of a mean.

    Parameters
    ----------
    observations : Observations or None
    models : list of str

    Returns
    -------
    DataFrame
        A row a pair and step, columns ``COLUMNS``; no rows without observations. Statistics are NaN
        where the difference does not vary or there are too few observations. ``p_adjusted``: Holm's
        adjustment over the pairs, for all steps together.

    References
    ----------
    Diebold, F. X. and Mariano, R. S. (1995). Comparing predictive accuracy. Journal of Business
    & Economic Statistics 13(3), 253-263.

    Harvey, D., Leybourne, S. and Newbold, P. (1997). Testing the equality of prediction mean
    squared errors. International Journal of Forecasting 13(2), 281-291.
    """
    if observations is None:
        return pd.DataFrame(columns=list(COLUMNS))
    steps = [*range(1, len(observations.overlap)), ALL]
    pairs = list(combinations(range(len(models)), 2))
    rows = [
        (step, models[a], models[b], *_test(observations, i, a, b), observations.over)
        for i, step in enumerate(steps)
        for a, b in pairs
    ]
    table = pd.DataFrame(rows, columns=[c for c in COLUMNS if c != "p_adjusted"])
    table["step"] = table["step"].astype(object)
    table["p_adjusted"] = np.nan
    tested = (table["step"] == ALL) & table["p_value"].notna()
    if tested.any():
        p_values = table.loc[tested, "p_value"].to_numpy()
        table.loc[tested, "p_adjusted"] = multipletests(p_values, method="holm")[1]
    return table[list(COLUMNS)]


def _test(
    observations: Observations, step: int, a: int, b: int
) -> tuple[int, float, float, float, int]:
    """Number of observations, mean difference, statistic, p-value and lags."""
    losses = observations.losses[:, [a, b], step]
    losses = losses[~np.isnan(losses).any(axis=1)]
    n, overlap = len(losses), int(observations.overlap[step])
    lags = newey_west_lags(overlap, n)
    difference = losses[:, 0] - losses[:, 1]
    mean = float(difference.mean()) if n else np.nan
    if n < max(FEWEST, overlap + 2) or not varies(difference, losses):
        return n, mean, np.nan, np.nan, lags
    # The criterion takes forecasts to their losses, which they are already.
    test = diebold_mariano_test(
        np.zeros(n), *losses.T, criterion=lambda _, loss: loss, lags=lags, horizon=overlap + 1,
        harvey_adj=True,
    )  # fmt: skip
    return n, mean, float(test.statistic), float(test.pvalue), lags


def varies(difference: np.ndarray, losses: np.ndarray) -> bool:
    """Whether a difference of losses varies by more than rounding."""
    return bool(np.ptp(difference) > 1e-12 * np.abs(losses).max())
