"""What the estimate of S depends on, and the spread of correlations."""

from __future__ import annotations

import numpy as np

_INTEGRATED = 1e-6  # what a and b may lack of one and S not be told any more


def own_moment(
    driver: np.ndarray, q: np.ndarray, moment: np.ndarray, a: np.ndarray, b: np.ndarray
) -> np.ndarray:
    r"""Influences (T, n, n) of observations on the mean of :math:`u u'`, which S estimates.

    Summed over time the recursion says, up to its ends, that
    :math:`\sum (u u' - S) = \kappa \sum (u u' - Q)` with the `recolouring` kappa. The terms
    on the right are uncorrelated over time.
    """
    outer = driver[:, :, None] * driver[:, None, :]
    kappa = recolouring(a, b)
    centre = moment if kappa == 1.0 else q
    return (outer - centre) * (kappa / len(outer))


def recolouring(a: np.ndarray, b: np.ndarray) -> float:
    r""":math:`\kappa = (1 - \sum b_j) / (1 - \sum a_i - \sum b_j)`; 1 without dynamics.

    Also where a and b sum to one: there is no S to estimate then.
    """
    rest = 1 - a.sum() - b.sum()
    return 1.0 if not a.any() or rest <= _INTEGRATED else float((1 - b.sum()) / rest)


def normal_theory(moment: np.ndarray, steps: int, kappa: float) -> np.ndarray:
    """Minus the inverse covariance (pairs, pairs) of correlations of normal variables."""
    n = len(moment)
    root = np.sqrt(np.diagonal(moment))
    r = moment / np.outer(root, root)
    # By elements (i, j), (k, l) of a covariance matrix of unit diagonal.
    spread = np.einsum("ik,jl->ijkl", r, r) + np.einsum("il,jk->ijkl", r, r)
    rows = scaled(spread.reshape(n * n, n, n), r)
    whole = scaled(rows.T.reshape(-1, n, n), r)
    return -np.linalg.inv(whole) * steps / kappa**2


def scaled(influence: np.ndarray, moment: np.ndarray) -> np.ndarray:
    """Influences (T, pairs) on correlations, of those (T, n, n) on the moment: a linear map."""
    variances = np.diagonal(moment)
    root = np.sqrt(np.outer(variances, variances))
    relative = np.diagonal(influence, axis1=1, axis2=2) / variances
    both = relative[:, :, None] + relative[:, None, :]
    whole = influence / root - 0.5 * (moment / root) * both
    return whole[(slice(None), *np.triu_indices(len(moment), 1))]
