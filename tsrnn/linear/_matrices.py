"""Covariance matrices of fitted models, over time and ahead."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, cast

import numpy as np
import pandas as pd

from tsrnn.contract import (
    VARIANCES_OF,
    check_fits,
    check_is_fitted,
    choice,
    positive_integer,
    seed_of,
)
from tsrnn.data import Panel, quoted
from tsrnn.linear._arguments import burn_of
from tsrnn.linear._base import LinearForecaster
from tsrnn.linear._family import Ahead, Arrays, Family, Units, normal_forecasts, of_series
from tsrnn.linear._frames import given_params, tidy
from tsrnn.linear._mean import MeanSpecification
from tsrnn.linear._multivariate import draws_frame, scaled_to_unit_diagonal


class Path(NamedTuple):
    """Errors (T, n) and their conditional covariances (T, n, n) of one series."""

    errors: np.ndarray
    covariances: np.ndarray


class Forecast(NamedTuple):
    """Forecasts of S series."""

    mean: np.ndarray  # (S, h, n)
    covariance: np.ndarray  # (S, h, n, n), of the error of each step
    total: np.ndarray  # (S, h, n, n), of the forecast of y, with the errors of earlier steps

    def of(self, name: str) -> np.ndarray:
        """Covariances of the "residual" or of the "forecast"."""
        return self.covariance if name == "residual" else self.total


class MatrixFamily(Family):
    """Base of the families whose conditional covariance is a matrix.

    A subclass adds `paths`, `forecasts`, `draw` and `draw_ahead`.
    """

    multivariate: ClassVar[bool] = True
    guarantee: ClassVar[str] = (
        "Asymptotic at the first step, the parameters taken as known, if the model is right and "
        "innovations are normal. Later steps are normal with the right variance, too thin in the "
        "tails."
    )

    if TYPE_CHECKING:  # a field or a property of the subclass

        @property
        def n(self) -> int:
            """Number of targets."""

    @abstractmethod
    def paths(self, panel: Panel, units: Units) -> dict[int, Path]:
        """Errors and covariances of the series with parameters, by number in the panel."""

    @abstractmethod
    def forecasts(self, state: Arrays, units: Units, h: int) -> Forecast:
        """Forecasts after a state."""

    @abstractmethod
    def draw(self, units: Units, rows: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
        """Draws (rows[0], N, n) after a burn-in of rows[1]."""

    @abstractmethod
    def draw_ahead(
        self, state: Arrays, units: Units, shape: tuple[int, int], rng: np.random.Generator
    ) -> np.ndarray:
        """Draws (S, n, h, C) after a state, for shape (n, h); all units must have parameters."""

    def forecast(self, state: Arrays, units: Units, ahead: Ahead, levels: list[float]) -> Arrays:
        expected = self.forecasts(state, units, ahead.h)
        # A zero mean has no parameters: it must not become a forecast of a failed series.
        fitted = np.isfinite(units.params).all(1)[:, None, None]
        mean = np.where(fitted, expected.mean, np.nan)
        return normal_forecasts(mean, np.diagonal(expected.total, axis1=2, axis2=3), levels)

    def variances(self, state: Arrays, units: Units, h: int, of: str = "residual") -> np.ndarray:
        """Forecasts (S, h, n) of the diagonal of the covariance."""
        return np.diagonal(self.forecasts(state, units, h).of(of), axis1=2, axis2=3)

    def simulate(
        self, state: Arrays, units: Units, ahead: Ahead, n: int, rng: np.random.Generator
    ) -> np.ndarray:
        fitted = units.fitted
        paths = np.full((n, len(units.params), ahead.h, self.n), np.nan)
        if len(fitted):
            last = of_series(state, fitted)
            drawn = self.draw_ahead(last, units.select(fitted), (n, ahead.h), rng)
            paths[:, fitted] = drawn.swapaxes(0, 1)
        return paths

    def in_sample(
        self, panel: Panel, units: Units, steps: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        fitted, scaled = (np.full_like(panel.values, np.nan) for _ in range(2))
        for i, path in self.paths(panel, units).items():
            rows = _row_slice(panel, i, path)
            fitted[rows] = panel.values[rows] - path.errors
            # In a row with missing values, standardise the observed ones jointly.
            seen = ~np.isnan(path.errors)
            inside = seen[:, :, None] & seen[:, None, :]
            root = np.linalg.cholesky(np.where(inside, path.covariances, np.eye(self.n)))
            whole = np.linalg.solve(root, np.where(seen, path.errors, 0.0)[..., None])[..., 0]
            scaled[rows] = np.where(seen, whole, np.nan)
        return fitted, scaled


class SpecifiedFamily(MatrixFamily):
    """Base of the families that a `MeanSpecification` describes."""

    if TYPE_CHECKING:  # a field of the subclass

        @property
        def spec(self) -> MeanSpecification:
            """Orders, targets and conventions of the model."""

    @property
    def names(self) -> tuple[str, ...]:
        return self.spec.names

    @property
    def n(self) -> int:
        return self.spec.n

    @property
    def n_arma(self) -> int:
        return self.spec.mean.n_lags * self.n

    def notes(self) -> list[str]:
        return self.spec.mean.notes(self.spec.targets)


class MatrixForecaster(LinearForecaster):
    """Base of the models whose conditional covariance is a matrix.

    `_family(arguments, data)` of a subclass returns the family of models that its arguments
    describe, such as a `CovarianceFamily`.

    Parameters
    ----------
    cov_type : {"hessian", "opg", "information", "robust", "bollerslev-wooldridge", \
            "arch-robust"}
        Kind of standard errors.
    intervals : {"model", "conformal"}
        Those of the model, or conformal ones, by errors of rolling forecasts of the last rows.
    horizon, target, known_ahead, static, calendar, holidays, id_col, time_col, freq, missing
        As in all forecasters.
    strict, support, random_state, verbose
        As in all forecasters.

    Examples
    --------
    >>> from tsrnn.linear import ARMA, VECMGARCH, MatrixForecaster
    >>> [issubclass(model, MatrixForecaster) for model in (VECMGARCH, ARMA)]
    [True, False]
    """

    offers: ClassVar[frozenset[str]] = frozenset({"sample_paths", "predict_variance"})

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if not hasattr(cls, "column_name"):  # forecasts of a long frame are named by the class
            cls.column_name = cls.__name__

    def covariances(self, df: Any = None) -> Any:
        """Conditional variances and covariances of the residuals within the data.

        Parameters
        ----------
        df : frame, optional
            Other data than those fitted to.

        Returns
        -------
        frame
            In the library of the data. A row a time and pair of targets: the id and time of the
            data, ``first``, ``second``, ``covariance``; a pair of a target with itself has its
            variance. Rows that the lags of the mean take are left out.
        """
        return self._within(df, "covariance")

    def correlations(self, df: Any = None) -> Any:
        """Conditional correlations of the residuals within the data.

        Parameters
        ----------
        df : frame, optional
            Other data than those fitted to.

        Returns
        -------
        frame
            As for `covariances`, with a column ``correlation`` and pairs of different targets.
        """
        return self._within(df, "correlation")

    def predict_covariances(
        self, h: int | None = None, X: Any = None, *, of: str = "residual"
    ) -> Any:
        r"""Forecasts of variances and covariances of the residuals, or of the errors of forecasts.

        Given the parameters, variances are exact, and so are covariances of a vech model. In a
        DCC, covariances from the second step on follow from the approximate correlations of
        `predict_correlations`.

        Parameters
        ----------
        h : int, optional
            Number of steps; `horizon_` by default.
        X : frame, optional
            Data to forecast after; by default those seen so far.
        of : {"residual", "forecast"}
            Covariance of the residuals :math:`e_{T+k}` given the past; or of the errors of the
            forecast of :math:`y_{T+k}`, :math:`\sum_{j<k} \Psi_j E[H_{T+k-j}]
            \Psi_j'` with the impulse responses :math:`\Psi_j` of the mean. They are the same at the
            first step, and where the mean has no lags.

        Returns
        -------
        frame
            As of `covariances`.
        """
        return self._ahead(h, X, "covariance", choice("of", of, VARIANCES_OF))

    def predict_correlations(self, h: int | None = None, X: Any = None) -> Any:
        r"""Forecasts of correlations, computed from the forecast covariances.

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
        frame
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
            Rows drawn first and dropped. Means with lags begin at zero, covariances of a vech
            model at the presample one, variances of CCC and DCC at their fixed point.
        random_state : int, numpy random generator or None
            By default the argument of the fit.

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
        check_is_fitted(self)
        rows, fitted = (positive_integer("n", n), burn_of(burn)), self.fitted_
        units = Units(fitted.estimates.params, fitted.constants)
        if params is not None:
            values = given_params(params, self.units_, fitted.family.names)
            units = replace(units, params=values)
        usable = units.fitted
        y = np.full((rows[0], len(units.params), fitted.data.n_targets), np.nan)
        if len(usable):
            given = fitted.arguments.random_state if random_state is None else random_state
            rng = np.random.default_rng(seed_of(given))
            y[:, usable] = self._family_of_matrices.draw(units.select(usable), rows, rng)
        return draws_frame(y, self.units_, fitted.data.layout.target_names)

    def _within(self, df: Any, name: str) -> Any:
        panel = self._data(df)
        paths = self._family_of_matrices.paths(panel, self.fitted_.units_of(panel.ids))
        if not paths:
            raise ValueError(
                f"none of the series {quoted(panel.ids)} could be fitted, so that there is no "
                "matrix of theirs; messages_ says why"
            )
        ids = panel.ids[list(paths)].repeat([len(path.errors) for path in paths.values()])
        times = np.concatenate(
            [panel.times[_row_slice(panel, i, path)] for i, path in paths.items()]
        )
        matrices = np.concatenate([path.covariances for path in paths.values()])
        if not len(matrices):
            raise ValueError(
                f"{name}s need rows beyond those that lags of the mean take; the series "
                f"{quoted(panel.ids)} have none. Give longer series"
            )
        return self._tidy(ids, times, matrices, name)

    def _ahead(self, h: int | None, X: Any, name: str, of: str = "residual") -> Any:
        check_is_fitted(self)
        fitted, data = self.fitted_, self.fitted_.data
        h = fitted.steps(f"predict_{name}s", h)
        state = self._state_after(X)
        n_values = len(state.ids) * data.n_targets**2
        check_fits(f"h={h} steps of {n_values} covariances", 8.0 * h * n_values, "Take a smaller h")
        units = fitted.units_of(state.ids)
        matrices = self._family_of_matrices.forecasts(state.arrays, units, h).of(of)
        flat = matrices.reshape(-1, *matrices.shape[2:])
        return self._tidy(state.ids.repeat(h), data.times_ahead(state, h).ravel(), flat, name)

    @property
    def _family_of_matrices(self) -> MatrixFamily:
        return cast(MatrixFamily, self.fitted_.family)

    def _tidy(self, ids: pd.Index, times: np.ndarray, matrices: np.ndarray, name: str) -> Any:
        if name == "correlation":
            matrices = scaled_to_unit_diagonal(matrices)
        layout, diagonal = self.fitted_.data.layout, name == "covariance"
        return tidy(layout, ids, times, matrices, name, diagonal=diagonal)


def _row_slice(panel: Panel, i: int, path: Path) -> slice:
    """Slice of a path of series i in a panel, which ends with the series."""
    end = int(panel.indptr[i + 1])
    return slice(end - len(path.errors), end)
