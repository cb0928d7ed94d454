"""Inference from estimates: covariances, standard errors, tests, intervals, criteria."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.special import ndtr, ndtri
from scipy.stats import chi2
from torch import Tensor

from tsrnn.contract import check_levels, choice
from tsrnn.data import quote
from tsrnn.linear._estimates import Estimates

KINDS = ("hessian", "opg", "information", "robust", "bollerslev-wooldridge", "arch-robust")
DESCRIPTIONS = {
    "hessian": "inverse of minus the Hessian",
    "opg": "inverse of the outer product of the scores",
    "information": "inverse of the expected information",
    "robust": "QMLE sandwich of Hessian and scores",
    "bollerslev-wooldridge": "QMLE sandwich of expected information and scores",
    "arch-robust": "QMLE sandwich, scores centred and divided by T - 1",
}
# Reciprocal condition number, at unit diagonal, below which no digit of an inverse is reliable.
SINGULAR = 1e-12


def covariance(estimates: Estimates, kind: str) -> np.ndarray:
    r"""Covariance matrices (N, k, k) of the estimated parameters.

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

    NaN in rows and columns of fixed parameters, and everywhere for a unit that was not fitted or
    whose matrix is singular or not positive definite.
    """
    check_kind(kind, estimates)
    free = ~estimates.fixed
    inside = free[:, :, None] & free[:, None, :]
    if kind == "opg":
        curvature = estimates.opg
    elif kind in ("information", "bollerslev-wooldridge"):
        assert estimates.information is not None  # by check_kind
        curvature = estimates.information
    else:
        curvature = -estimates.hessian
    bread = _inverse(np.where(inside, curvature, np.eye(free.shape[1])))
    if kind in ("hessian", "opg", "information"):
        return np.where(inside, bread, np.nan)
    meat = estimates.opg
    if kind == "arch-robust":
        n, g = estimates.n_obs[:, None, None].astype(float), estimates.gradient
        meat = (meat - g[:, :, None] * g[:, None, :] / n) * (n / (n - 1))
    return np.where(inside, bread @ np.where(inside, meat, 0.0) @ bread, np.nan)


def check_kind(
    kind: str, estimates: Estimates | None = None, kinds: tuple[str, ...] = KINDS
) -> None:
    """Refuse an unknown kind, or one that the model lacks."""
    kind = choice("cov_type", kind, kinds)
    needs = kind in ("information", "bollerslev-wooldridge")
    if estimates is not None and needs and estimates.information is None:
        raise ValueError(
            f"cov_type={kind!r} needs the expected information, which this model does not have; "
            "take 'hessian', 'opg' or 'robust'"
        )


def no_covariance(estimates: Estimates, cov: np.ndarray) -> np.ndarray:
    """Mask (N,) of fitted units whose free parameters have no covariance."""
    lacking = np.isnan(np.diagonal(cov, axis1=1, axis2=2)) & ~estimates.fixed
    return estimates.fitted & lacking.any(1)


def _inverse(matrices: np.ndarray) -> np.ndarray:
    """Inverses of symmetric matrices (N, k, k); NaN unless positive definite."""
    scale = np.sqrt(np.clip(np.diagonal(matrices, axis1=1, axis2=2), 0.0, None))
    usable = np.isfinite(matrices).all((1, 2)) & (scale > 0).all(1)
    scale = np.where(usable[:, None], scale, 1.0)
    outer = scale[:, :, None] * scale[:, None, :]
    scaled = np.where(usable[:, None, None], matrices / outer, np.eye(matrices.shape[1]))
    values, vectors = np.linalg.eigh((scaled + scaled.swapaxes(1, 2)) / 2)
    usable &= values[:, 0] > SINGULAR * values[:, -1]
    values = np.where(usable[:, None], values, np.nan)
    return (vectors / values[:, None, :]) @ vectors.swapaxes(1, 2) / outer


class ChiSquareTest(NamedTuple):
    """Test of each unit, with a chi-square limit."""

    statistic: np.ndarray  # (N,)
    df: int
    p_value: np.ndarray  # (N,)


class Criteria(NamedTuple):
    """Information criteria, each of shape (N,); smaller is better."""

    aic: np.ndarray
    bic: np.ndarray
    hqic: np.ndarray
    aicc: np.ndarray


def standard_errors(cov: np.ndarray) -> np.ndarray:
    """Roots (N, k) of the diagonals of covariances (N, k, k); NaN unless positive."""
    variances = np.diagonal(cov, axis1=1, axis2=2)
    return np.sqrt(np.where(variances > 0, variances, np.nan))


def z_values(params: np.ndarray, errors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ratios to standard errors and their two-sided normal p-values, each (N, k)."""
    z = params / errors
    return z, 2 * ndtr(-np.abs(z))


def one_level(level: Any) -> float:
    """Check one coverage in percent."""
    levels = check_levels(level)
    if len(levels) != 1:
        advice = ". Ask for each by itself" if levels else ""
        raise ValueError(f"level must be one number, as 95; got {quote(level)}{advice}")
    return levels[0]


def confidence_intervals(
    params: np.ndarray, errors: np.ndarray, level: float
) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper ends (N, k) of normal intervals of a coverage in percent."""
    half = ndtri(0.5 + level / 200) * errors
    return params - half, params + half


def criteria(estimates: Estimates) -> Criteria:
    r"""Information criteria of each unit.

    .. math::
        \mathrm{AIC} = 2k - 2 \ell, \quad \mathrm{BIC} = k \log T - 2 \ell, \quad
        \mathrm{HQIC} = 2k \log \log T - 2 \ell, \quad
        \mathrm{AICc} = \mathrm{AIC} + \frac{2k (k + 1)}{T - k - 1}

    with all k parameters counted, those on a boundary included, as in statsmodels and arch.
    """
    k = len(estimates.names) if estimates.n_params is None else estimates.n_params
    n = np.where(estimates.fitted, estimates.n_obs, np.nan)
    deviance = -2 * estimates.loglik
    aic, left = deviance + 2 * k, n - k - 1
    return Criteria(
        aic,
        deviance + k * np.log(n),
        deviance + 2 * k * np.log(np.log(n)),
        # Infinite from k = T - 1 on, so that such a model is never chosen.
        np.where(left > 0, aic + 2 * k * (k + 1) / np.where(left > 0, left, 1.0), aic + np.inf),
    )


def likelihood_ratio_test(restricted: Estimates, unrestricted: Estimates) -> ChiSquareTest:
    r"""Likelihood-ratio test of nested models of the same units and observations.

    .. math:: LR = 2 (\ell_u - \ell_r) \to \chi^2(k_u - k_r)

    The limit holds if the restriction lies inside the parameter space and the larger model is
    identified under it; `limited` treats the other cases. A negative statistic means that the
    larger model was not fitted to its optimum or does not contain the smaller one.
    """
    df = len(unrestricted.names) - len(restricted.names)
    if df < 1:
        advice = "Call larger.lr_test(smaller)"
        if df == 0:
            advice = "Neither is nested in the other; compare them by aic_ or bic_"
        raise ValueError(
            "the unrestricted model must have more parameters than the restricted one; it has "
            f"{len(unrestricted.names)} and the other {len(restricted.names)}. {advice}"
        )
    statistic = 2 * (unrestricted.loglik - restricted.loglik)
    return ChiSquareTest(statistic, df, chi2.sf(statistic, df))


def linear_restrictions_test(
    params: np.ndarray, cov: np.ndarray, restrictions: np.ndarray, values: np.ndarray
) -> ChiSquareTest:
    r"""Wald test of linear restrictions :math:`R \theta = r`, unit by unit.

    .. math:: W = (R \theta - r)' (R C R')^{-1} (R \theta - r) \to \chi^2(J)

    `restrictions` is R (J, k), of full row rank, `values` r (J,). A restriction on a parameter
    without a covariance gives NaN.
    """
    n, k = params.shape
    if restrictions.ndim != 2 or restrictions.shape[1] != k:
        raise ValueError(
            f"restrictions must have shape (J, {k}), a column a parameter; got {restrictions.shape}"
        )
    rank, df = np.linalg.matrix_rank(restrictions), len(restrictions)
    if rank < df:
        raise ValueError(f"the {df} restrictions must be independent; their rank is {rank}")
    touched = (restrictions != 0).any(0)
    inside = restrictions[:, touched]
    difference = params @ restrictions.T - values
    middle = inside @ cov[:, touched][:, :, touched] @ inside.T
    usable = np.isfinite(middle).all((1, 2)) & np.isfinite(difference).all(1)
    statistic = np.full(n, np.nan)
    solved = np.linalg.solve(middle[usable], difference[usable][..., None])[..., 0]
    statistic[usable] = (difference[usable] * solved).sum(1)
    return ChiSquareTest(statistic, df, chi2.sf(statistic, df))


def delta_method(
    function: Callable[[Tensor], Tensor], params: np.ndarray, cov: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    r"""Derived quantities (N, m) and their covariance (N, m, m), :math:`J C J'` with exact J.

    The function maps parameters (N, k) to quantities in torch, each unit by itself. Quantities
    that depend on a parameter without a covariance are NaN.
    """
    theta = torch.tensor(params, dtype=torch.float64, requires_grad=True)
    values = function(theta)
    rows = [
        torch.autograd.grad(values[:, j].sum(), theta, retain_graph=True)[0]
        for j in range(values.shape[1])
    ]
    jacobian = torch.stack(rows, 1).numpy()
    unknown = np.isnan(np.diagonal(cov, axis1=1, axis2=2))
    known = np.where(unknown[:, :, None] | unknown[:, None, :], 0.0, cov)
    result = jacobian @ known @ jacobian.swapaxes(1, 2)
    lost = ((jacobian != 0) & unknown[:, None, :]).any(2)
    result[lost[:, :, None] | lost[:, None, :]] = np.nan
    return values.detach().numpy(), result
