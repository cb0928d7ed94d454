"""Base of the models of conditional correlation behind the forecaster contract."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pandas as pd
from scipy.stats import chi2

from tsrnn.contract import Arguments, choice, positive_integer, with_shared_arguments
from tsrnn.data import Panel
from tsrnn.linear._matrices import MatrixForecaster
from tsrnn.linear._summary import LinearSummary
from tsrnn.linear.dcc._family import CorrelationFamily
from tsrnn.linear.dcc._specification import COVARIANCES
from tsrnn.linear.garch._inference import transition


@with_shared_arguments
class ConditionalCorrelation(MatrixForecaster):
    """Base of `CCC` and `DCC`; not to be used by itself.

    Parameters
    ----------
    order : tuple of int
        Of the variances in a CCC, of the correlations in a DCC.
    vol, mean, mean_order, coint_rank, initial_variance, stationary, cov_type
        As in `CCC`.
    **shared
        All other arguments are those of `CommonArguments`.
    """

    def __init__(
        self,
        order: tuple[int, int] = (1, 1),
        vol: str = "garch",
        mean: str = "constant",
        mean_order: int = 1,
        coint_rank: int = 1,
        initial_variance: str | float = "backcast",
        stationary: bool = True,
        *,
        cov_type: str = "robust",
        **shared: Any,
    ) -> None:
        super().__init__(cov_type=cov_type, **shared)
        self.order = order
        self.vol = vol
        self.mean = mean
        self.mean_order = mean_order
        self.coint_rank = coint_rank
        self.initial_variance = initial_variance
        self.stationary = stationary

    def summary(self, unit: Any = None, cov_type: str | None = None) -> LinearSummary:
        """Everything about one unit, or a table of many; print the result.

        Parameters
        ----------
        unit : label, optional
            One of `units_`; by default the only one, or all in a table.
        cov_type : {"robust", "hessian"}, optional
            Kind of standard errors; that of the constructor by default.
        """
        if cov_type is not None:
            choice("cov_type", cov_type, COVARIANCES)
        return super().summary(unit, cov_type)

    def recurrent_blocks(self) -> list[dict[str, np.ndarray]]:
        r"""Recurrent matrices of variances and correlations, for `tsrnn.recurrence_features`.

        Returns
        -------
        list of one dict
            "variance", shape (S n, r, r): the companion matrices by which forecasts of variances
            move, as those of `GARCH`, series by series and target by target. With dynamic
            correlations "correlation", (S, r, r): that of :math:`a_i + b_i`, by which forecasts of
            :math:`Q` return to its mean.
        """
        estimates = self.estimates_
        spec = cast(CorrelationFamily, self.fitted_.family).spec
        parts = spec.parts(estimates.params[estimates.fitted])
        blocks = {"variance": transition(spec.step.model(), parts.variance_rows)[0]}
        p, q = parts.a.shape[1], parts.b.shape[1]
        if p:
            matrices = np.tile(np.eye(max(p, q), k=1), (len(parts.a), 1, 1))
            matrices[:, :p, 0] += parts.a
            matrices[:, :q, 0] += parts.b
            blocks["correlation"] = matrices
        return [blocks]

    def constant_correlation_test(self, lags: int = 5) -> pd.DataFrame:
        r"""Test of constant against dynamic correlation (Engle and Sheppard, 2001).

        Products :math:`\epsilon_i \epsilon_j` of residuals without variance dynamics and
        correlation are regressed on a constant and their own lags, all pairs together; under
        constant correlations all coefficients are zero.

        Parameters
        ----------
        lags : int, default 5

        Returns
        -------
        DataFrame
            Columns ``statistic``, ``df`` = lags, ``p_value``, a row a series.

        Notes
        -----
        The statistic is that of Engle and Sheppard, who compare it with a chi-square of
        lags + 1 degrees of freedom. The residuals are freed of their own correlations, so that
        the products sum to zero and the constant of the regression is fitted beforehand: lags
        degrees are left. With one more the test rejects too rarely: at a level of 5 percent in
        2.5 percent of samples with five lags, in 1.3 percent with one.
        """
        lags = positive_integer("lags", lags)
        panel = self._data(None)
        paths = self._family_of_matrices.paths(panel, self.fitted_.units_of(panel.ids))
        statistics = np.full(panel.n_series, np.nan)
        for i, path in paths.items():
            if len(path.errors) > 2 * lags:
                scale = np.sqrt(np.diagonal(path.covariances, axis1=1, axis2=2))
                statistics[i] = constancy_statistic(path.errors / scale, lags)
        columns = {"statistic": statistics, "df": lags, "p_value": chi2.sf(statistics, lags)}
        return pd.DataFrame(columns, index=self.units_)

    def _check(self, arguments: Arguments, panel: Panel) -> None:
        # Before the base class, which knows kinds of standard errors that are none of these models.
        choice("cov_type", arguments.cov_type, COVARIANCES)
        super()._check(arguments, panel)


def constancy_statistic(z: np.ndarray, lags: int) -> float:
    r"""Statistic of standardised residuals (T, n), chi-square with as many degrees as lags.

    With :math:`\epsilon_t = R^{-1/2} z_t` and Y the products :math:`\epsilon_i \epsilon_j` of
    all pairs, stacked, the regression :math:`Y_t = \delta_0 + \sum_l \delta_l Y_{t-l}` has
    :math:`\delta = 0` under constant correlations; the statistic is
    :math:`\hat\delta' X' X \hat\delta / \hat\sigma^2`. R is that of z itself, so that Y sums
    to zero: the constant adds nothing to the statistic, and no degree of freedom.
    """
    root = np.sqrt((z**2).mean(0))
    standard = z / root
    values, vectors = np.linalg.eigh(standard.T @ standard / len(z))
    whitened = standard @ (vectors / np.sqrt(values)) @ vectors.T
    rows, columns = np.triu_indices(z.shape[1], 1)
    products = whitened[:, rows] * whitened[:, columns]
    steps = len(products)
    y = products[lags:].ravel()
    regressors = [np.ones_like(y)]
    regressors += [products[lags - i : steps - i].ravel() for i in range(1, lags + 1)]
    x = np.stack(regressors, 1)
    delta = np.linalg.lstsq(x, y, rcond=None)[0]
    fitted = x @ delta
    variance = ((y - fitted) ** 2).sum() / (len(y) - len(delta))
    return float(fitted @ fitted / variance)
