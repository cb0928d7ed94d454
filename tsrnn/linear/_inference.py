"""Numbers derived from estimates: standard errors, tests, intervals, criteria."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.special import ndtr, ndtri
from scipy.stats import chi2
from torch import Tensor

from tsrnn.contract import check_levels
from tsrnn.linear._estimates import Estimates


class ChiSquareTest(NamedTuple):
    """A test of each unit.

    Attributes
    ----------
    statistic : array of shape (N,)
    df : int
        Degrees of freedom of the chi-square limit.
    p_value : array of shape (N,)
    """

    statistic: np.ndarray
    df: int
    p_value: np.ndarray


class Criteria(NamedTuple):
    """Information criteria, each of shape (N,); smaller is better."""

    aic: np.ndarray
    bic: np.ndarray
    hqic: np.ndarray


def standard_errors(cov: np.ndarray) -> np.ndarray:
    """Roots of the diagonals (N, k) of covariances (N, k, k); NaN where one is not positive."""
    variances = np.diagonal(cov, axis1=1, axis2=2)
    return np.sqrt(np.where(variances > 0, variances, np.nan))


def z_values(params: np.ndarray, errors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ratios to standard errors and their two-sided normal p-values, each (N, k)."""
    z = params / errors
    return z, 2 * ndtr(-np.abs(z))


def one_level(level: Any) -> float:
    """A coverage in percent.

    Raises
    ------
    ValueError
        If it is several, or no percentage.
    """
    levels = check_levels(level)
    if len(levels) != 1:
        raise ValueError(f"level must be one number, as 95; got {level!r}. Ask for each by itself")
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
        \mathrm{HQIC} = 2k \log \log T - 2 \ell

    with all k parameters counted, as statsmodels and arch do, also those on a boundary.
    """
    k, n = len(estimates.names), np.where(estimates.fitted, estimates.n_obs, np.nan)
    deviance = -2 * estimates.loglik
    return Criteria(
        deviance + 2 * k, deviance + k * np.log(n), deviance + 2 * k * np.log(np.log(n))
    )


def lr_test(restricted: Estimates, unrestricted: Estimates) -> ChiSquareTest:
    r"""Likelihood-ratio test of a model within a larger one, unit by unit.

    .. math:: LR = 2 (\ell_u - \ell_r) \to \chi^2(k_u - k_r)

    The limit holds if the restriction lies inside the parameter space and the larger model is
    identified under it. On a boundary (no ARCH effect: alpha = 0) the limit is a mixture of
    chi-squares and this p-value is too large; where a parameter of the larger model is not
    identified under the restriction (beta when alpha = 0), there is no chi-square limit at all.
    A negative statistic says that the larger model was not fitted to its optimum or does not
    contain the smaller one.

    Parameters
    ----------
    restricted, unrestricted : Estimates
        Of the same units and observations.

    Raises
    ------
    ValueError
        If the larger model has no more parameters.
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


def wald_test(
    params: np.ndarray, cov: np.ndarray, restrictions: np.ndarray, values: np.ndarray
) -> ChiSquareTest:
    r"""Wald test of linear restrictions :math:`R \theta = r`, unit by unit.

    .. math:: W = (R \theta - r)' (R C R')^{-1} (R \theta - r) \to \chi^2(J)

    Parameters
    ----------
    params : array of shape (N, k)
    cov : array of shape (N, k, k)
        Covariance C; a restriction on a parameter that has none gives NaN.
    restrictions : array of shape (J, k)
        R, of full row rank.
    values : array of shape (J,)
        r.

    Raises
    ------
    ValueError
        If R has not k columns or not full row rank.
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
    r"""Derived quantities and their covariance, :math:`J C J'` with exact derivatives J.

    Parameters
    ----------
    function : callable
        From parameters (N, k) to quantities (N, m) in torch, each unit by itself.
    params : array of shape (N, k)
    cov : array of shape (N, k, k)
        A parameter without a covariance (NaN) makes NaN what depends on it, and only that.

    Returns
    -------
    values : array of shape (N, m)
    cov : array of shape (N, m, m)
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
