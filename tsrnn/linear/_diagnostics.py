"""Residuals and fitted values within the data, and tests of standardised residuals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.stats import chi2

from tsrnn.contract import check_is_fitted, flag, positive_integer, unit_index
from tsrnn.data import Panel
from tsrnn.linear._fitted import FittedLinear
from tsrnn.linear._frames import in_shape_of_data


class InSample:
    """Residuals, fitted values and their tests; a part of `LinearForecaster`."""

    fitted_: FittedLinear

    if TYPE_CHECKING:  # of the forecaster

        def _read(self, df: Any) -> Panel: ...

    def residuals(self, standardized: bool = False, df: Any = None) -> Any:
        """One-step forecast errors within the data.

        Parameters
        ----------
        standardized : bool
            Whether to scale them to unit variance (and no correlation between targets) under
            the model.
        df : frame, optional
            Other data than those fitted to.

        Returns
        -------
        frame
            In the shape of the data; a column ``residual`` in a long frame. NaN in rows that
            are missing or that the likelihood does not use.
        """
        standardized = flag("standardized", standardized)
        panel = self._data(df)
        fitted, scaled = self.fitted_.in_sample(panel)
        return in_shape_of_data(
            panel, scaled if standardized else panel.values - fitted, "residual"
        )

    def fittedvalues(self, df: Any = None) -> Any:
        """One-step forecasts within the data.

        Parameters
        ----------
        df : frame, optional
            Other data than those fitted to.

        Returns
        -------
        frame
            In the shape of the data; a column ``fitted`` in a long frame.
        """
        panel = self._data(df)
        return in_shape_of_data(panel, self.fitted_.in_sample(panel)[0], "fitted")

    def diagnostics(self, lags: int | None = None) -> pd.DataFrame:
        """Tests of the standardised residuals of the data fitted to.

        Ljung-Box of the residuals (degrees of freedom lowered by the autoregressive and
        moving average parameters) and of their squares, Engle's LM test for ARCH, Jarque-Bera.

        Parameters
        ----------
        lags : int, optional
            Lags of the tests of dependence. By default min(10, T // 5), and more than the
            ARMA parameters.

        Returns
        -------
        DataFrame
            A row a series and target; statistics and p-values, NaN where residuals are too
            few or do not vary.
        """
        panel = self._data(None)
        return residual_tests(self.fitted_, panel, lags, self.fitted_.family.n_arma)

    def _data(self, df: Any) -> Panel:
        check_is_fitted(self)
        if df is not None:
            return self.fitted_.without_errors(self._read(df))
        if self.fitted_.panel is None:
            raise ValueError(
                "a saved model does not hold the data it was fitted to; call residuals(df=...) or "
                "fittedvalues(df=...) with them, or fit again for tests"
            )
        return self.fitted_.panel


def residual_tests(
    fitted: FittedLinear, panel: Panel, lags: int | None, n_arma: int, target: int | None = None
) -> pd.DataFrame:
    """Tests by series and target, or of one target of a panel of one series."""
    if lags is not None:
        lags = positive_integer("lags", lags)
    chosen = slice(None) if target is None else slice(target, target + 1)
    standardised = fitted.in_sample(panel)[1][:, chosen]
    units = [unit for part in np.split(standardised, panel.indptr[1:-1]) for unit in part.T]
    index = unit_index(panel.layout, panel.ids, multivariate=False)[chosen]
    table = pd.DataFrame(diagnose(units, lags, n_arma), index=index, columns=list(COLUMNS))
    return table.astype({"lags": int})


COLUMNS = (
    "lags",
    "ljung_box",
    "ljung_box_pvalue",
    "ljung_box_squares",
    "ljung_box_squares_pvalue",
    "arch_lm",
    "arch_lm_pvalue",
    "jarque_bera",
    "jarque_bera_pvalue",
    "skewness",
    "kurtosis",
)
AT_ONCE = 2_000_000  # numbers in the regressors of the LM tests of one batch


def diagnose(
    residuals: Sequence[np.ndarray], lags: int | None = None, n_params: int = 0
) -> np.ndarray:
    r"""Test standardised residuals for dependence, ARCH and normality.

    With autocorrelations :math:`r_k` of n residuals, the coefficient of determination
    :math:`R^2` of the regression of squares on m lags of them and a constant, skewness S and
    kurtosis K,

    .. math::
        Q = n (n + 2) \sum_{k=1}^m \frac{r_k^2}{n - k} \to \chi^2(m - k_{arma}), \quad
        LM = (n - m) R^2 \to \chi^2(m), \quad
        JB = \frac{n}{6} \left( S^2 + \frac{(K - 3)^2}{4} \right) \to \chi^2(2):

    Ljung and Box (1978) on the residuals and on their squares (McLeod and Li, 1983), Engle's
    (1982) LM test for ARCH, Jarque and Bera (1980).

    Rows (N, 11) are in the order of `COLUMNS`, NaN where residuals are too few or do not vary;
    tests of dependence close up the gaps of missing residuals. By default m is min(10, n // 5), and
    one more than the `n_params` ARMA parameters where that is more. These lower the degrees of
    freedom of the test of residuals alone, as is right for linear models; approximate for a GARCH.
    """
    kept = [unit[np.isfinite(unit)] for unit in residuals]
    counts = np.array([len(unit) for unit in kept], int)
    table = np.full((len(kept), len(COLUMNS)), np.nan)
    for n in np.unique(counts):
        # statsmodels' default, with at least one degree of freedom left.
        m = max(min(10, n // 5), n_params + 1) if lags is None else lags
        units = np.flatnonzero(counts == n)
        table[units, 0] = m
        if n >= 2 * m + 2:  # Engle's regression has n - m rows and m + 1 columns
            size = max(1, AT_ONCE // (n * m))
            for part in np.split(units, range(size, len(units), size)):
                table[part, 1:] = _tests(np.array([kept[i] for i in part]), m, n_params)
    return table


def _tests(x: np.ndarray, m: int, n_params: int) -> np.ndarray:
    """Columns after the first, for residuals (N, n) without gaps."""
    table = np.full((len(x), len(COLUMNS) - 1), np.nan)
    varies = np.ptp(np.abs(x), 1) > 0
    x = x[varies]
    columns = (
        *_ljung_box(x, m, n_params),
        *_ljung_box(x**2, m, 0),
        *_arch_lm(x**2, m),
        *_jarque_bera(x),
    )
    table[varies] = np.stack(columns, 1)
    return table


def _ljung_box(x: np.ndarray, m: int, n_params: int) -> tuple[np.ndarray, np.ndarray]:
    n, d = x.shape[1], x - x.mean(1, keepdims=True)
    products = [(d[:, k:] * d[:, :-k]).sum(1) ** 2 / (n - k) for k in range(1, m + 1)]
    statistic = n * (n + 2) * sum(products) / (d**2).sum(1) ** 2
    df = m - n_params
    return statistic, chi2.sf(statistic, df) if df > 0 else np.full(len(x), np.nan)


def _arch_lm(squares: np.ndarray, m: int) -> tuple[np.ndarray, np.ndarray]:
    windows = np.lib.stride_tricks.sliding_window_view(squares, m + 1, axis=1)
    centred = windows - windows.mean(1, keepdims=True)
    X, y = centred[..., :m], centred[..., m]
    # The SVD, as lags of few and large squares are collinear.
    basis, sizes, _ = np.linalg.svd(X, full_matrices=False)
    inside = sizes > X.shape[1] * np.finfo(float).eps * sizes[:, :1]
    explained = ((y[:, None] @ basis)[:, 0] ** 2 * inside).sum(1)
    total = (y**2).sum(1)
    share = np.divide(explained, total, out=np.full(len(y), np.nan), where=total > 0)
    statistic = y.shape[1] * share
    return statistic, chi2.sf(statistic, m)


def _jarque_bera(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    d = x - x.mean(1, keepdims=True)
    squares = d**2
    variance = squares.mean(1)
    skewness = (squares * d).mean(1) / variance**1.5
    kurtosis = (squares**2).mean(1) / variance**2
    statistic = x.shape[1] / 6 * (skewness**2 + (kurtosis - 3) ** 2 / 4)
    return statistic, chi2.sf(statistic, 2), skewness, kurtosis
