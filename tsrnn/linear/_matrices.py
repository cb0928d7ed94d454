"""Covariance matrices of fitted models, over time and ahead."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import ndtri
from sklearn.utils.validation import check_is_fitted

from tsrnn.contract import check_fits, positive_integer, seed_of, with_intervals
from tsrnn.data import Panel, future_times
from tsrnn.linear._arguments import burn_of
from tsrnn.linear._base import LinearForecaster
from tsrnn.linear._frames import given_params, tidy
from tsrnn.linear._state import LinearState
from tsrnn.linear._multivariate import draws_frame, scaled_to_unit_diagonal


class Path(NamedTuple):
    """Errors (T, n) and their conditional covariances (T, n, n) of one series."""

    errors: np.ndarray
    covariances: np.ndarray


class Forecast(NamedTuple):
    """Forecasts of S series.

    Attributes
    ----------
    mean : array of shape (S, h, n)
    covariance : array of shape (S, h, n, n)
        Of the error of each step.
    total : array of shape (S, h, n, n)
        Covariance of the forecast of y, with errors of the steps before.
    """

    mean: np.ndarray
    covariance: np.ndarray
    total: np.ndarray


class MatrixForecaster(LinearForecaster):
    """Base of the models whose conditional covariance is a matrix; not to be used by itself.

    A subclass answers in addition `_paths`, `_forecasts`, `_draw` and `_draw_ahead`.
    """

    multivariate: ClassVar[bool] = True
    _guarantee: ClassVar[str] = (
        "Asymptotic at the first step, the parameters taken as known, if the model is right and "
        "innovations are normal. Later steps are normal with the right variance, too thin in the "
        "tails."
    )

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
            ``second``, ``covariance``; a pair of a target with itself has its variance. Rows
            that the lags of the mean take are left out.
        """
        return self._within(df, "covariance")

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
        return self._within(df, "correlation")

    def predict_covariances(self, h: int | None = None, X: Any = None) -> pd.DataFrame:
        """Forecasts of variances and covariances of the residuals.

        Given the parameters variances are exact, and so are covariances of a vech model. In a
        DCC, covariances from the second step on are made of the correlations that
        `predict_correlations` approximates.

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
        return self._ahead(h, X, "covariance")

    def predict_correlations(self, h: int | None = None, X: Any = None) -> pd.DataFrame:
        r"""Forecasts of correlations, those of the forecast covariances.

        The first step is exact given the parameters. From the second on they are not the
        expected correlations: a ratio of expectations is not the expectation of the ratio. In a
        DCC, Q is forecast by its recursion with :math:`E[u u'] \approx E[Q]` (exact for the
        corrected model) and scaled to a unit diagonal (Engle and Sheppard, 2001).

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
        return self._ahead(h, X, "correlation")

    def simulate(
        self, n: int, params: Any = None, burn: int = 500, random_state: Any = None
    ) -> pd.DataFrame:
        """Draw series from the model, with normal innovations.

        Parameters
        ----------
        n : int
            Rows.
        params : DataFrame, Series, dict or array_like, optional
            Parameters in place of those fitted, by name or in order.
        burn : int, default 500
            Rows drawn before and thrown away. Means with lags begin at zero, covariances of a
            vech model at the presample one, variances of CCC and DCC where they rest.
        random_state : int, numpy random generator or None
            By default that of the fit.

        Returns
        -------
        DataFrame
            A column a target; of several series, a column a series and target.

        Raises
        ------
        ValueError
            If an argument cannot be used, parameters are not admissible, a covariance is not
            positive definite, or a variance has no resting point to start from.
        """
        check_is_fitted(self, "fitted_")
        rows = positive_integer("n", n), burn_of(burn)
        values, targets = self._fitted().params, self._panel_shape[0].target_names
        if params is not None:
            values = given_params(params, self.units_, self._fitted().names)
        usable = np.flatnonzero(np.isfinite(values).all(1))
        y = np.full((rows[0], len(values), len(targets)), np.nan)
        if len(usable):
            given = self.arguments_.random_state if random_state is None else random_state
            rng = np.random.default_rng(seed_of(given))
            y[:, usable] = self._draw(values[usable], usable, rows, rng)
        return draws_frame(y, self.units_, targets)

    @abstractmethod
    def _paths(self, panel: Panel) -> dict[int, Path]:
        """The model run over the series that have parameters, by their number in the panel."""

    @abstractmethod
    def _forecasts(self, memory: LinearState, h: int) -> Forecast:
        """Forecasts after a memory."""

    @abstractmethod
    def _draw(
        self,
        params: np.ndarray,
        series: np.ndarray,
        rows: tuple[int, int],
        rng: np.random.Generator,
    ) -> np.ndarray:
        """Draws (rows[0], K, n) after a burn-in of rows[1], of fitted series by number."""

    @abstractmethod
    def _draw_ahead(
        self, memory: LinearState, h: int, n: int, rng: np.random.Generator
    ) -> np.ndarray:
        """Draws (S, n, h, C) of what follows a memory of fitted series."""

    def _draw_paths(
        self,
        memory: LinearState,
        h: int,
        n: int,
        future: np.ndarray | None,
        rng: np.random.Generator,
    ) -> np.ndarray:
        """Paths (n, S, h, C) with normal innovations from the state on."""
        params = self._fitted().params[self._series_of(memory.ids)]
        usable = np.flatnonzero(np.isfinite(params).all(1))
        paths = np.full((n, len(params), h, memory.target_scale.shape[1]), np.nan)
        if len(usable):
            paths[:, usable] = self._draw_ahead(memory.select(usable), h, n, rng).swapaxes(0, 1)
        return paths

    def _forecast(
        self, memory: LinearState, h: int, levels: list[float], future: np.ndarray | None
    ) -> dict[str, np.ndarray]:
        ahead = self._forecasts(memory, h)
        root = np.sqrt(np.diagonal(ahead.total, axis1=2, axis2=3))
        return with_intervals(
            ahead.mean, {level: ndtri(0.5 + level / 200) * root for level in levels}
        )

    def _residual_variances(self, memory: LinearState, h: int) -> np.ndarray:
        """Forecasts (S, h, n) of the diagonal of the covariance."""
        return np.diagonal(self._forecasts(memory, h).covariance, axis1=2, axis2=3)

    def _in_sample(self, panel: Panel) -> tuple[np.ndarray, np.ndarray]:
        fitted, scaled = (np.full_like(panel.values, np.nan) for _ in range(2))
        for i, path in self._paths(panel).items():
            rows = _row_slice(panel, i, path)
            fitted[rows] = panel.values[rows] - path.errors
            root = np.linalg.cholesky(path.covariances)
            scaled[rows] = np.linalg.solve(root, path.errors[..., None])[..., 0]
        return fitted, scaled

    def _within(self, df: Any, name: str) -> pd.DataFrame:
        panel = self._data(df)
        paths = self._paths(panel)
        if not paths:
            raise ValueError(
                f"none of the series {list(panel.ids)} could be fitted, so that there is no "
                "matrix of theirs; messages_ says why"
            )
        ids = panel.ids[list(paths)].repeat([len(path.errors) for path in paths.values()])
        times = np.concatenate(
            [panel.times[_row_slice(panel, i, path)] for i, path in paths.items()]
        )
        matrices = np.concatenate([path.covariances for path in paths.values()])
        return self._tidy(ids, times, matrices, name)

    def _ahead(self, h: int | None, X: Any, name: str) -> pd.DataFrame:
        check_is_fitted(self, "fitted_")
        h = self.horizon_ if h is None else positive_integer("h", h)
        memory = self.state_ if X is None else self._memory_of(self._read(X))
        n_values = len(memory.ids) * len(self._panel_shape[0].target_names) ** 2
        check_fits(f"h={h} steps of {n_values} covariances", 8.0 * h * n_values, "Take a smaller h")
        matrices = self._forecasts(memory, h).covariance
        times = future_times((memory.last_times, self.freq_), h, tz=self._panel_shape[0].tz)
        flat = matrices.reshape(-1, *matrices.shape[2:])
        return self._tidy(memory.ids.repeat(h), times.ravel(), flat, name)

    def _tidy(
        self, ids: pd.Index, times: np.ndarray, matrices: np.ndarray, name: str
    ) -> pd.DataFrame:
        if name == "correlation":
            matrices = scaled_to_unit_diagonal(matrices)
        layout, diagonal = self._panel_shape[0], name == "covariance"
        return tidy(layout, ids, times, matrices, name, diagonal=diagonal)


def _row_slice(panel: Panel, i: int, path: Path) -> slice:
    """Rows of a path of series i in a panel: the last ones of the series."""
    end = int(panel.indptr[i + 1])
    return slice(end - len(path.errors), end)
