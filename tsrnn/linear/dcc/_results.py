"""What a fitted model of conditional correlation tells of correlations and covariances."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import chi2
from sklearn.utils.validation import check_is_fitted

from tsrnn.contract import positive_integer, seed_of
from tsrnn.data import Panel, future_times
from tsrnn.linear._arguments import burn_of
from tsrnn.linear._base import LinearForecaster
from tsrnn.linear._frames import given_params
from tsrnn.linear._memory import LinearMemory
from tsrnn.linear._multivariate import draws_frame
from tsrnn.linear._tidy import tidy
from tsrnn.linear.dcc._constancy import constancy_statistic
from tsrnn.linear.dcc._draw import draw
from tsrnn.linear.dcc._forecast import Forecast
from tsrnn.linear.dcc._specification import Specification
from tsrnn.linear.dcc._state import Path, State


class CorrelationResults(LinearForecaster):
    """Matrices over time and ahead, simulation, a test; a part of `CCC` and `DCC`."""

    def correlations(self, df: Any = None) -> pd.DataFrame:
        """Conditional correlations within the data.

        Parameters
        ----------
        df : frame, optional
            Data in place of those fitted to.

        Returns
        -------
        DataFrame
            A row a time and pair of targets: the id and time of the data, ``first``,
            ``second``, ``correlation``. Rows that the lags of the mean take are left out.
        """
        return self._matrices(df, "correlation")

    def covariances(self, df: Any = None) -> pd.DataFrame:
        """Conditional variances and covariances of the residuals within the data.

        Parameters
        ----------
        df : frame, optional
            Data in place of those fitted to.

        Returns
        -------
        DataFrame
            As of `correlations`, with a column ``covariance`` and pairs of a target with
            itself, its variance.
        """
        return self._matrices(df, "covariance")

    def predict_correlations(self, h: int | None = None, X: Any = None) -> pd.DataFrame:
        r"""Forecasts of the correlations.

        The first step is exact given the parameters. From the second on, Q is forecast by its
        recursion with :math:`E[u u'] \approx E[Q]` (exact for the corrected model) and scaled to
        a unit diagonal, which is an approximation (Engle and Sheppard, 2001).

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

    def predict_covariances(self, h: int | None = None, X: Any = None) -> pd.DataFrame:
        """Forecasts of variances, which are exact, and covariances of the residuals.

        Correlations are those of `predict_correlations`.

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
            Columns ``statistic``, ``df`` = lags + 1, ``p_value``, a row a series.

        Notes
        -----
        The chi-square limit is that of known parameters. Estimated correlations make the
        constant of the regression close to zero, so that the test rejects a little less often
        than its level says.
        """
        lags = positive_integer("lags", lags)
        panel = self._data(None)
        paths, used, _ = self._paths(panel)
        statistics = np.full(panel.n_series, np.nan)
        for i, path in zip(used, paths, strict=True):
            if len(path.e) > 2 * lags:
                statistics[i] = constancy_statistic(path.e / np.sqrt(path.h), lags)
        df = lags + 1
        columns = {"statistic": statistics, "df": df, "p_value": chi2.sf(statistics, df)}
        return pd.DataFrame(columns, index=self.units_)

    def simulate(self, n: int, params: Any = None, burn: int = 500) -> pd.DataFrame:
        """Draw series from the model, with normal innovations.

        Parameters
        ----------
        n : int
            Rows.
        params : DataFrame, Series, dict or array_like, optional
            Parameters in place of those fitted, by name or in order.
        burn : int, default 500
            Rows drawn before and thrown away. Means with lags begin at zero.

        Returns
        -------
        DataFrame
            A column a target; of several series, a column a series and target. The draws are
            those of `random_state`.

        Raises
        ------
        ValueError
            If an argument cannot be used, parameters are not admissible, or a variance has no
            resting point to start from.
        """
        check_is_fitted(self, "memory_")
        spec, n, burn = self._specification(), positive_integer("n", n), burn_of(burn)
        values = self._fitted().params
        if params is not None:
            values = given_params(params, self.units_, spec.names)
        fitted = np.flatnonzero(np.isfinite(values).all(1))
        beta = self.memory_.arrays["beta"][fitted]
        generator = np.random.default_rng(seed_of(self.random_state))
        y = np.full((n, len(values), spec.n), np.nan)
        y[:, fitted] = draw(spec, spec.parts(values[fitted]), beta, (n, burn), generator)
        return draws_frame(y, self.units_, spec.targets)

    def _matrices(self, df: Any, name: str) -> pd.DataFrame:
        panel = self._data(df)
        paths, used, _ = self._paths(panel)
        if not paths:
            raise ValueError(
                f"none of the series {list(panel.ids)} could be fitted, so that there is no "
                "matrix of theirs; messages_ says why"
            )
        n = len(panel.target_names)
        values = [path.correlation for path in paths]
        if name == "covariance":
            values = [_covariance(path) for path in paths]
        rows = [
            np.arange(panel.indptr[i + 1] - len(path.e), panel.indptr[i + 1])
            for i, path in zip(used, paths, strict=True)
        ]
        ids = panel.ids[used].repeat([len(path.e) for path in paths])
        times = panel.times[np.concatenate(rows)]
        matrices = np.concatenate(values).reshape(-1, n, n)
        return tidy(panel.layout, ids, times, matrices, name, diagonal=name == "covariance")

    def _future_matrices(self, h: int | None, X: Any, name: str) -> pd.DataFrame:
        check_is_fitted(self, "memory_")
        h = self.horizon_ if h is None else positive_integer("h", h)
        memory = self.memory_ if X is None else self._memory_of(self._read(X))
        matrices = getattr(self._forecasts(memory, h), name)
        layout = self._panel_shape[0]
        times = future_times((memory.last_times, self.freq_), h, tz=layout.tz)
        n = matrices.shape[-1]
        return tidy(
            layout, memory.ids.repeat(h), times.ravel(), matrices.reshape(-1, n, n), name,
            diagonal=name == "covariance",
        )  # fmt: skip

    @abstractmethod
    def _specification(self) -> Specification:
        """The model that the arguments and the data describe."""

    @abstractmethod
    def _paths(self, panel: Panel) -> tuple[list[Path], np.ndarray, State]:
        """Paths of the series that have parameters, their numbers, and the state of all."""

    @abstractmethod
    def _forecasts(self, memory: LinearMemory, h: int) -> Forecast:
        """Forecasts after a memory."""


def _covariance(path: Path) -> np.ndarray:
    root = np.sqrt(path.h)
    return root[:, :, None] * path.correlation * root[:, None, :]
