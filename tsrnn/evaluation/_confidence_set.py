"""Model confidence set and tests of superior predictive ability, by the bootstrap."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
from arch.bootstrap import MCS, SPA

from tsrnn.evaluation._diebold_mariano import varies
from tsrnn.evaluation._losses import Observations, newey_west_lags

P_VALUES = ("lower", "consistent", "upper")
_CONSTANT = (
    "The model confidence set is left out: the losses of two models differ by the same number in "
    "every observation."
)


def confidence_set(
    observations: Observations | None, models: list[str], alpha: float, n_boot: int, seed: int
) -> tuple[pd.DataFrame, list[str]]:
    """Models that hold the best one with probability 1 - alpha, in the limit of many observations.

    Parameters
    ----------
    observations : Observations or None
    models : list of str
    alpha : float
    n_boot, seed : int
        Samples of the stationary bootstrap, in blocks as long as observations depend on each other.

    Returns
    -------
    table : DataFrame
        A row a model, ``p_value`` and ``included``; no rows if it could not be computed.
    notes : list of str

    References
    ----------
    Hansen, P. R., Lunde, A. and Nason, J. M. (2011). The model confidence set. Econometrica
    79(2), 453-497.
    """
    nothing = pd.DataFrame({"p_value": [], "included": np.zeros(0, bool)}, _index([]))
    if observations is None or len(models) < 2:
        return nothing, []
    losses, block = _losses_and_block(observations)
    first = _first_equal(losses)
    chosen = np.unique(first)
    p_values = np.ones(len(models))
    if len(chosen) > 1:
        # A difference that does not vary has no variance to divide by.
        pairs = combinations(losses[:, chosen].T, 2)
        if not all(varies(a - b, np.array([a, b])) for a, b in pairs):
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

    Parameters
    ----------
    observations : Observations or None
    models : list of str
    n_boot, seed : int

    Returns
    -------
    DataFrame
        A row a benchmark with the p-values ``lower``, ``consistent`` and ``upper`` of the
        hypothesis that no other model has a smaller expected loss; no rows without observations.
        NaN where no other model differs.

    References
    ----------
    Hansen, P. R. (2005). A test for superior predictive ability. Journal of Business & Economic
    Statistics 23(4), 365-380.
    """
    if observations is None or len(models) < 2:
        return pd.DataFrame(columns=list(P_VALUES), index=_index([]), dtype=float)
    losses, block = _losses_and_block(observations)
    first = _first_equal(losses)
    table = np.full((len(models), 3), np.nan)
    for i in range(len(models)):
        others = losses[:, np.setdiff1d(np.unique(first), first[i])]
        if others.shape[1]:
            test = SPA(losses[:, i], others, block, n_boot, seed=seed)
            test.compute()
            table[i] = test.pvalues[list(P_VALUES)]
    return pd.DataFrame(table, _index(models), list(P_VALUES))


def _losses_and_block(observations: Observations) -> tuple[np.ndarray, int]:
    """Losses over all steps (n, M), and the length of a block."""
    losses = observations.losses[:, :, -1]
    return losses, newey_west_lags(int(observations.overlap[-1]), len(losses)) + 1


def _first_equal(losses: np.ndarray) -> np.ndarray:
    """Number of the first model with the same losses, for each model."""
    return np.array([int((losses == loss[:, None]).all(axis=0).argmax()) for loss in losses.T])


def _index(models: list[str]) -> pd.Index:
    return pd.Index(models, name="model", dtype=object)
