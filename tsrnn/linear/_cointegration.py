"""Cointegrating relations by reduced-rank regression."""

from __future__ import annotations

import numpy as np
import scipy.linalg


def differences(values: np.ndarray, order: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Differences, lagged levels, and `order` lagged differences side by side."""
    change = np.diff(values, axis=0)
    rows = len(change)
    lagged = [change[order - i : rows - i] for i in range(1, order + 1)]
    short = np.hstack([np.zeros((rows - order, 0)), *lagged])
    return change[order:], values[order:-1], short


def johansen(values: np.ndarray, order: int, rank: int) -> np.ndarray:
    r"""Cointegrating vectors by reduced-rank regression (Johansen, 1988).

    The eigenvectors of :math:`S_{10} S_{00}^{-1} S_{01} v = \lambda S_{11} v` with the largest
    eigenvalues, where S are moments of differences (0) and lagged levels (1) of which
    constants and lagged differences have been partialled out.

    Parameters
    ----------
    values : array of shape (T, n)
    order : int
        Lagged differences.
    rank : int
        Number of relations, between 1 and n - 1.

    Returns
    -------
    array of shape (n, rank)
        The first `rank` rows are the identity.

    Raises
    ------
    ValueError
        If the rank is out of range or levels are collinear.
    """
    n = values.shape[1]
    if not 1 <= rank < n:
        raise ValueError(
            f"coint_rank must lie between 1 and {n - 1} for {n} variables; got {rank}. With rank 0 "
            'take mean="var" of differences, with full rank mean="var" of levels'
        )
    scale = values.std(0)
    scale = np.where(scale > 0, scale, 1.0)
    change, level, short = differences(values / scale, order)
    others = np.hstack([np.ones((len(change), 1)), short])
    r0, r1 = (part - others @ np.linalg.lstsq(others, part, rcond=None)[0]
              for part in (change, level))  # fmt: skip
    s00, s01, s11 = r0.T @ r0, r0.T @ r1, r1.T @ r1
    try:
        _, vectors = scipy.linalg.eigh(s01.T @ np.linalg.solve(s00, s01), s11)
    except np.linalg.LinAlgError:
        raise ValueError(
            "the cointegrating relations cannot be estimated: a variable is constant, or a linear "
            "combination of others. Drop it"
        ) from None
    beta = vectors[:, : -rank - 1 : -1] / scale[:, None]
    return beta @ np.linalg.inv(beta[:rank])
