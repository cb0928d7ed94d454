"""What a fitted vech model tells of covariances, over time and ahead."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from tsrnn.contract import positive_integer
from tsrnn.data import Panel, future_times
from tsrnn.linear._base import LinearForecaster
from tsrnn.linear._memory import LinearMemory
from tsrnn.linear._tidy import tidy
from tsrnn.linear.vech._specification import Model, Specification
from tsrnn.linear.vech._state import Forecast, Path


class CovarianceResults(LinearForecaster):
    """Matrices over time and ahead; a part of `VECMGARCH`."""

    def covariances(self, df: Any = None) -> pd.DataFrame:
        """Conditional variances and covariances of the residuals within the data.

        Parameters
        ----------
        df : frame, optional
            Data in place of those fitted to.

        Returns
        -------
        DataFrame
            A row a time and pair of targets: the id and time of the data, ``first``,
            ``second``, ``covariance``. Rows that the lags of the mean take are left out.
        """
        return self._matrices(df, "covariance")

    def correlations(self, df: Any = None) -> pd.DataFrame:
        """Conditional correlations of the residuals within the data.

        Parameters
        ----------
        df : frame, optional
            Data in place of those fitted to.

        Returns
        -------
        DataFrame
            As of `covariances`, with a column ``correlation`` and pairs of different targets.
        """
        return self._matrices(df, "correlation")

    def predict_covariances(self, h: int | None = None, X: Any = None) -> pd.DataFrame:
        """Forecasts of variances and covariances of the residuals, exact given the parameters.

        Parameters
        ----------
        h : int, optional
            Number of steps; `horizon_` by default.
        X : frame, optional
            Data to forecast after; by default those seen so far.

        Returns
        -------
        DataFrame
            As of `covariances`.
        """
        return self._future_matrices(h, X, "covariance")

    def predict_correlations(self, h: int | None = None, X: Any = None) -> pd.DataFrame:
        """Correlations of the forecasts of `predict_covariances`.

        From the second step on they are not the expected correlations: a ratio of
        expectations is not the expectation of the ratio.

        Parameters
        ----------
        h : int, optional
            Number of steps; `horizon_` by default.
        X : frame, optional
            Data to forecast after; by default those seen so far.

        Returns
        -------
        DataFrame
            As of `correlations`.
        """
        return self._future_matrices(h, X, "correlation")

    def _matrices(self, df: Any, name: str) -> pd.DataFrame:
        panel = self._data(df)
        found = {i: path for i, path in enumerate(self._paths(panel)) if path is not None}
        if not found:
            raise ValueError(
                f"none of the series {list(panel.ids)} could be fitted, so that there is no "
                "matrix of theirs; messages_ says why"
            )
        lengths = [len(path.errors) for path in found.values()]
        ends = panel.indptr[1:][list(found)]
        rows = [np.arange(end - length, end) for end, length in zip(ends, lengths, strict=True)]
        ids = panel.ids[list(found)].repeat(lengths)
        matrices = np.concatenate([path.covariances for path in found.values()])
        return self._tidy(ids, panel.times[np.concatenate(rows)], matrices, name)

    def _future_matrices(self, h: int | None, X: Any, name: str) -> pd.DataFrame:
        check_is_fitted(self, "memory_")
        h = self.horizon_ if h is None else positive_integer("h", h)
        memory = self.memory_ if X is None else self._memory_of(self._read(X))
        matrices = self._forecasts(memory, h).covariance
        times = future_times((memory.last_times, self.freq_), h, tz=self._panel_shape[0].tz)
        flat = matrices.reshape(-1, *matrices.shape[2:])
        return self._tidy(memory.ids.repeat(h), times.ravel(), flat, name)

    def _tidy(
        self, ids: pd.Index, times: np.ndarray, matrices: np.ndarray, name: str
    ) -> pd.DataFrame:
        if name == "correlation":
            root = np.sqrt(np.diagonal(matrices, axis1=1, axis2=2))
            matrices = matrices / (root[:, :, None] * root[:, None, :])
        own = name == "covariance"
        return tidy(self._panel_shape[0], ids, times, matrices, name, diagonal=own)

    @abstractmethod
    def _specification(self) -> Specification:
        """The model that the arguments and the data describe."""

    @abstractmethod
    def _model(self, i: int) -> Model:
        """Coefficients of fitted series i."""

    @abstractmethod
    def _paths(self, panel: Panel) -> list[Path | None]:
        """The model run over each series; None for one without parameters."""

    @abstractmethod
    def _forecasts(self, memory: LinearMemory, h: int) -> Forecast:
        """Forecasts after a memory."""
