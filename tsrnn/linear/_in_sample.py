"""One-step forecasts within the data, what they leave, and tests of that."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from tsrnn.contract import flag, positive_integer, unit_index
from tsrnn.data import Panel
from tsrnn.linear._diagnostics import COLUMNS, diagnose
from tsrnn.linear._frames import in_shape_of_data


class InSample:
    """Residuals, fitted values and their tests; a part of `LinearForecaster`."""

    _panel: Panel | None  # the data fitted to; files do not hold them

    @abstractmethod
    def _in_sample(self, panel: Panel) -> tuple[np.ndarray, np.ndarray]:
        """Fitted values and standardised residuals, each (rows, C), at the estimates.

        NaN in rows that the likelihood does not use, and for units without parameters. The
        panel may hold some of the fitted series, or new rows: see `_series_of`.
        """

    if TYPE_CHECKING:  # of the forecaster

        def _read(self, df: Any) -> Panel: ...

    def _n_arma(self) -> int:
        """Autoregressive and moving average parameters of the mean."""
        return 0

    def residuals(self, standardized: bool = False, df: Any = None) -> Any:
        """One-step forecast errors within the data.

        Parameters
        ----------
        standardized : bool
            Scaled to a variance of one (and no correlation between targets) if the model
            is right.
        df : frame, optional
            Data in place of those fitted to.

        Returns
        -------
        frame
            In the shape of the data; a column ``residual`` in a long frame. NaN in rows that
            are missing or that the likelihood does not use.
        """
        standardized = flag("standardized", standardized)
        panel = self._data(df)
        fitted, scaled = self._in_sample(panel)
        return in_shape_of_data(
            panel, scaled if standardized else panel.values - fitted, "residual"
        )

    def fittedvalues(self, df: Any = None) -> Any:
        """One-step forecasts within the data.

        Parameters
        ----------
        df : frame, optional
            Data in place of those fitted to.

        Returns
        -------
        frame
            In the shape of the data; a column ``fitted`` in a long frame.
        """
        panel = self._data(df)
        return in_shape_of_data(panel, self._in_sample(panel)[0], "fitted")

    def diagnostics(self, lags: int | None = None) -> pd.DataFrame:
        """Tests of the standardised residuals of the data fitted to.

        Ljung-Box of the residuals (degrees of freedom lowered by the autoregressive and
        moving average parameters) and of their squares, Engle's LM test for ARCH, Jarque-Bera.

        Parameters
        ----------
        lags : int, optional
            Lags of the tests of dependence. By default min(10, T // 5), at least one more
            than the parameters taken off.

        Returns
        -------
        DataFrame
            A row a series and target; statistics and p-values, NaN where residuals are too
            few or do not vary.
        """
        return self._tests_of(self._data(None), lags, self._n_arma())

    def _data(self, df: Any) -> Panel:
        check_is_fitted(self, "memory_")
        if df is not None:
            return self._read(df)
        if self._panel is None:
            raise ValueError(
                "a saved model does not hold the data it was fitted to; call residuals(df=...) or "
                "fittedvalues(df=...) with them, or fit again for tests"
            )
        return self._panel

    def _tests_of(
        self, panel: Panel, lags: int | None, n_arma: int, target: int | None = None
    ) -> pd.DataFrame:
        """Tests by series and target, or of one target of a panel of one series."""
        if lags is not None:
            lags = positive_integer("lags", lags)
        chosen = slice(None) if target is None else slice(target, target + 1)
        standardised = self._in_sample(panel)[1][:, chosen]
        units = [unit for part in np.split(standardised, panel.indptr[1:-1]) for unit in part.T]
        index = unit_index(panel.layout, panel.ids, multivariate=False)[chosen]
        table = pd.DataFrame(diagnose(units, lags, n_arma), index=index, columns=list(COLUMNS))
        return table.astype({"lags": int})
