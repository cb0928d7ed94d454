"""Covariance of estimates from serially correlated scores, and laws of t-statistics."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from arch.covariance.kernel import Bartlett
from scipy import stats
from scipy.optimize import brentq
from statsmodels.stats.sandwich_covariance import S_hac_simple

COV_TYPES = ("EWC", "HAC", "fixed-b", "HC")
DESCRIPTIONS = {
    "EWC": "equally weighted cosines, {0} of them; t({0})",
    "HAC": "Newey-West, {0} lags of the Bartlett kernel; normal",
    "fixed-b": "Newey-West, {0} lags of the Bartlett kernel; fixed-b",
    "HC": "robust to heteroskedasticity, scores uncorrelated; t",
}
# Draws and steps of Kiefer and Vogelsang's functional: critical values at 5 percent are within one
# percent of the published ones.
DRAWS, STEPS = 10_000, 500


@dataclass(frozen=True, eq=False)
class Covariance:
    """Covariance of estimates and the law of their t-statistics."""

    matrix: np.ndarray  # (k, k)
    cov_type: str
    bandwidth: int  # lags of the Bartlett kernel, or number of cosines; 0 for "HC"
    law: Any  # frozen distribution of scipy, or `FixedB`

    @property
    def bse(self) -> np.ndarray:
        """Standard errors."""
        return np.sqrt(np.diag(self.matrix))

    def critical_value(self, alpha: float) -> float:
        """Bound that the absolute t-statistic exceeds with probability alpha."""
        return float(self.law.ppf(1 - alpha / 2))

    def pvalues(self, t: np.ndarray) -> np.ndarray:
        """Two-sided p-values."""
        return np.asarray(2 * self.law.sf(np.abs(t)))

    def draws(self, n: int, generator: np.random.Generator) -> np.ndarray:
        """Joint draws (n, k) of all t-statistics, for simultaneous bands."""
        scale = self.bse
        correlation = self.matrix / np.outer(scale, scale)
        # Not by Cholesky: with fewer cosines than estimates the matrix is singular.
        values, vectors = np.linalg.eigh(correlation)
        root = vectors * np.sqrt(np.clip(values, 0, None))
        normal = generator.normal(size=(n, len(scale))) @ root.T
        if self.cov_type == "fixed-b":
            return normal / np.sqrt(generator.choice(self.law.variances, n))[:, None]
        if self.cov_type == "HAC":
            return normal
        df = self.law.kwds["df"]
        return normal / np.sqrt(generator.chisquare(df, n) / df)[:, None]


def score_covariance(
    scores: np.ndarray, n_regressors: int, cov_type: str, bandwidth: int | None
) -> Covariance:
    r"""Covariance of the sum of scores :math:`\psi_t` (T, k), each with mean 0.

    EWC (Lazarus et al. 2018), with :math:`B = \lfloor 0.41\, T^{2/3} \rfloor` cosines:

    .. math:: \hat V = \frac{T}{B} \sum_{j=1}^B \Lambda_j \Lambda_j', \qquad
        \Lambda_j = \sqrt{2 / T} \sum_t \psi_t \cos(\pi j (t - 1/2) / T).

    HAC and fixed-b sum autocovariances with weights 1 - l / (L + 1). L is by Newey and West (1994)
    for HAC, :math:`\lfloor 1.3 \sqrt T \rfloor` for fixed-b, and 0 for HC. All are multiplied by
    T / (T - `n_regressors`), like statsmodels' ``use_correction``.
    """
    n = len(scores)
    correction = n / (n - n_regressors)
    if cov_type == "EWC":
        count = int(0.41 * n ** (2 / 3)) if bandwidth is None else bandwidth
        if count > n - 1:
            raise ValueError(f"bandwidth must be below {n}, the rows, for EWC; got {count}")
        angles = np.pi * np.arange(1, count + 1)[:, None] * (np.arange(n) + 0.5) / n
        transforms = np.sqrt(2 / n) * np.cos(angles) @ scores
        matrix = n * transforms.T @ transforms / count
        return Covariance(correction * matrix, cov_type, count, stats.t(df=count))
    if cov_type == "HC":
        law = stats.t(df=n - n_regressors)
        return Covariance(correction * scores.T @ scores, cov_type, 0, law)
    lags = bandwidth
    if lags is None and cov_type == "fixed-b":
        lags = int(1.3 * np.sqrt(n))  # Lazarus et al. (2018), equation (4)
    elif lags is None:
        # Newey and West's rule adds columns, which therefore need one scale.
        standardised = scores / scores.std(axis=0)
        lags = min(int(np.ceil(Bartlett(standardised, center=False).opt_bandwidth)), n - 1)
    if lags > n - 1:
        raise ValueError(f"bandwidth must be below {n}, the rows; got {lags}")
    matrix = correction * S_hac_simple(scores, nlags=lags)
    if cov_type == "HAC":
        return Covariance(matrix, cov_type, lags, stats.norm())
    return Covariance(matrix, cov_type, lags, FixedB(round((lags + 1) / n, 4)))


class FixedB:
    r"""Law of a t-statistic with the Bartlett kernel at bandwidth b T (Kiefer and Vogelsang 2005).

    .. math:: \frac{W(1)}{\sqrt{Q_b}}, \qquad Q_b = \frac2b \Big[ \int_0^1 \tilde B(r)^2 dr
        - \int_0^{1-b} \tilde B(r) \tilde B(r + b) dr \Big],

    with a Brownian bridge :math:`\tilde B` independent of W(1): probabilities are means of normal
    probabilities over draws of Q.
    """

    def __init__(self, b: float) -> None:
        self.variances = bridge_variances(b)

    def sf(self, t: Any) -> np.ndarray:
        """Probability above t."""
        roots = np.sqrt(self.variances)
        return np.array([stats.norm.sf(x * roots).mean() for x in np.ravel(t)]).reshape(np.shape(t))

    def ppf(self, q: float) -> float:
        """Quantile of probability q."""
        return float(brentq(lambda t: 1 - q - self.sf(t), -1e3, 1e3, xtol=1e-10))


@lru_cache(maxsize=64)
def bridge_variances(b: float) -> np.ndarray:
    """Draws of the functional Q of `FixedB`, with a fixed seed."""
    generator = np.random.default_rng(0)
    lag = max(1, round(b * STEPS))
    draws = []
    for _ in range(10):  # in parts, which limits memory to a few megabytes
        walk = generator.normal(size=(DRAWS // 10, STEPS)).cumsum(axis=1) / np.sqrt(STEPS)
        bridge = walk - walk[:, -1:] * np.arange(1, STEPS + 1) / STEPS
        crossed = (bridge[:, lag:] * bridge[:, :-lag]).sum(axis=1)
        draws.append(2 / lag * ((bridge**2).sum(axis=1) - crossed))
    return np.concatenate(draws)
