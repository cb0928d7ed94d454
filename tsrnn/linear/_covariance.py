"""Covariance matrices of maximum-likelihood estimates, for many units at once."""

from __future__ import annotations

import numpy as np

from tsrnn.contract import choice
from tsrnn.linear._estimates import Estimates

KINDS = (
    "hessian",
    "opg",
    "information",
    "robust",
    "bollerslev-wooldridge",
    "arch-robust",
)
DESCRIPTIONS = {
    "hessian": "inverse of minus the Hessian",
    "opg": "inverse of the outer product of the scores",
    "information": "inverse of the expected information",
    "robust": "QMLE sandwich of Hessian and scores",
    "bollerslev-wooldridge": "QMLE sandwich of expected information and scores",
    "arch-robust": "QMLE sandwich, scores centred and divided by T - 1",
}
# Reciprocal condition number of a matrix scaled to a unit diagonal, below which no digit of its
# inverse can be relied on.
SINGULAR = 1e-12


def covariance(estimates: Estimates, kind: str) -> np.ndarray:
    r"""Covariance matrices of the estimated parameters.

    With the Hessian :math:`H`, the sum of outer products of scores :math:`B` and the expected
    information :math:`I`, each reduced to the parameters that are not fixed:

    ========================= =======================================================
    "hessian"                 :math:`(-H)^{-1}`
    "opg"                     :math:`B^{-1}` (Berndt, Hall, Hall and Hausman, 1974)
    "information"             :math:`I^{-1}`
    "robust"                  :math:`H^{-1} B H^{-1}` (White, 1982)
    "bollerslev-wooldridge"   :math:`I^{-1} B I^{-1}` (Bollerslev and Wooldridge, 1992)
    "arch-robust"             as "robust" with :math:`\tfrac{T}{T - 1} (B - g g' / T)` for B,
                              g the gradient: what the package arch reports
    ========================= =======================================================

    Parameters
    ----------
    estimates : Estimates
    kind : str

    Returns
    -------
    array of shape (N, k, k)
        NaN in rows and columns of fixed parameters, and everywhere for a unit that was not
        fitted or whose matrix is singular or not positive definite.

    Raises
    ------
    ValueError
        If the kind is unknown, or the model has no expected information.
    """
    check_kind(kind, estimates)
    free = ~estimates.fixed
    inside = free[:, :, None] & free[:, None, :]
    bread = _inverse(np.where(inside, _curvature(estimates, kind), np.eye(free.shape[1])))
    if kind in ("hessian", "opg", "information"):
        result = bread
    else:
        result = bread @ np.where(inside, _outer_products(estimates, kind), 0.0) @ bread
    return np.where(inside, result, np.nan)


def check_kind(kind: str, estimates: Estimates | None = None) -> None:
    """Refuse a kind that does not exist, or not for this model.

    Raises
    ------
    ValueError
    """
    kind = choice("cov_type", kind, KINDS)
    needs = kind in ("information", "bollerslev-wooldridge")
    if estimates is not None and needs and estimates.information is None:
        raise ValueError(
            f"cov_type={kind!r} needs the expected information, which this model does not have; "
            "take 'hessian', 'opg' or 'robust'"
        )


def no_covariance(estimates: Estimates, cov: np.ndarray) -> np.ndarray:
    """Whether each unit is fitted, has free parameters and yet no covariance, shape (N,)."""
    lacking = np.isnan(np.diagonal(cov, axis1=1, axis2=2)) & ~estimates.fixed
    return estimates.fitted & lacking.any(1)


def _curvature(estimates: Estimates, kind: str) -> np.ndarray:
    if kind == "opg":
        return estimates.opg
    if kind in ("information", "bollerslev-wooldridge"):
        assert estimates.information is not None  # by check_kind
        return estimates.information
    return -estimates.hessian


def _outer_products(estimates: Estimates, kind: str) -> np.ndarray:
    if kind != "arch-robust":
        return estimates.opg
    n = estimates.n_obs[:, None, None].astype(float)
    g = estimates.gradient
    return (estimates.opg - g[:, :, None] * g[:, None, :] / n) * (n / (n - 1))


def _inverse(matrices: np.ndarray) -> np.ndarray:
    """Inverses of symmetric positive definite (N, k, k); NaN where one is not that."""
    scale = np.sqrt(np.clip(np.diagonal(matrices, axis1=1, axis2=2), 0.0, None))
    usable = np.isfinite(matrices).all((1, 2)) & (scale > 0).all(1)
    scale = np.where(usable[:, None], scale, 1.0)
    outer = scale[:, :, None] * scale[:, None, :]
    scaled = np.where(usable[:, None, None], matrices / outer, np.eye(matrices.shape[1]))
    values, vectors = np.linalg.eigh((scaled + scaled.swapaxes(1, 2)) / 2)
    usable &= values[:, 0] > SINGULAR * values[:, -1]
    values = np.where(usable[:, None], values, np.nan)
    return (vectors / values[:, None, :]) @ vectors.swapaxes(1, 2) / outer
