"""Results of a fitted VARMA model as frames: responses, roots, simulation, forecast covariances."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd
from scipy.special import ndtri

from tsrnn.contract import (
    check_fits,
    check_is_fitted,
    check_levels,
    flag,
    level_name,
    positive_integer,
    seed_of,
)
from tsrnn.data import quote
from tsrnn.linear._base import LinearForecaster
from tsrnn.linear._frames import given_params, tidy
from tsrnn.linear._multivariate import companion, draws_frame, inverse_roots, spectral_radius
from tsrnn.linear.varma._filter import response_errors, responses, simulate_paths
from tsrnn.linear.varma._specification import Shape

if TYPE_CHECKING:
    from tsrnn.linear.varma._varma import VARMAFamily


class VARMAResults(LinearForecaster):
    """Impulse responses, roots, simulation, covariances of forecasts; a part of `VARMA`."""

    def impulse_responses(
        self, h: int | None = None, orthogonalised: bool = False, level: Any = None
    ) -> pd.DataFrame:
        r"""Responses of the targets to a shock, with bands by the delta method.

        .. math:: \Psi_0 = I, \qquad
            \Psi_k = \Theta_k + \sum_{i=1}^{\min(k, p)} \Phi_i \Psi_{k-i}

        (Luetkepohl, 2005, section 11.3), and :math:`\Psi_k L` with :math:`\Sigma = L L'`
        lower triangular if orthogonalised: a shock of one standard deviation to the part of a
        target that earlier targets in the data do not explain.

        Parameters
        ----------
        h : int, optional
            Steps after the shock; `horizon_` by default.
        orthogonalised : bool, default False
        level : float or list of float, optional
            Coverage in percent of pointwise normal bands, with `cov_type`'s covariance.

        Returns
        -------
        DataFrame
            A row for each unit, ``step`` 0 to h, ``impulse`` and ``response``: ``value``, and for
            bands ``lo-95``, ``hi-95``, NaN if parameters have no standard errors.
        """
        check_is_fitted(self)
        shape, params = self._shape, self.estimates_.params
        h = self.horizon_ if h is None else positive_integer("h", h)
        n_values = len(params) * shape.n**2
        check_fits(f"h={h} steps of {n_values} responses", 8.0 * h * n_values, "Take a smaller h")
        scaled = flag("orthogonalised", orthogonalised)
        levels = check_levels(level)
        values = responses(shape, params, h, scaled)
        columns = {"value": values}
        if levels:
            errors = response_errors(shape, params, self._covariance(None), h, scaled)
            for coverage in levels:
                half = ndtri(0.5 + coverage / 200) * errors
                columns[f"lo-{level_name(coverage)}"] = values - half
                columns[f"hi-{level_name(coverage)}"] = values + half
        names = list(self.fitted_.data.layout.target_names)
        index = pd.MultiIndex.from_product(
            [self.units_, range(h + 1), names, names],
            names=[self.units_.name, "step", "impulse", "response"],
        )
        tidy_columns = {name: part.swapaxes(2, 3).ravel() for name, part in columns.items()}
        return self._keyed(pd.DataFrame(tidy_columns, index=index).reset_index())

    def roots(self) -> pd.DataFrame:
        r"""Inverse roots of the autoregressive and the moving-average polynomial.

        Solutions :math:`\lambda` of :math:`\det(\lambda^p I - \Phi_1 \lambda^{p-1} - \dots) = 0`
        and :math:`\det(\lambda^q I + \Theta_1 \lambda^{q-1} + \dots) = 0`, which are eigenvalues
        of the matrices of `recurrent_blocks`. The model is stationary and invertible if all are
        below one in modulus.

        Returns
        -------
        DataFrame
            A row for each unit, ``part`` ("AR" or "MA") and root, largest first: ``real``,
            ``imag``, ``modulus``, and ``period``, the steps of a cycle, inf for a positive root.
        """
        estimates, shape = self.estimates_, self._shape
        fitted = np.flatnonzero(estimates.fitted)
        coefficients = shape.unpack(estimates.params[fitted])
        parts = []
        for name, lags in (("AR", coefficients.ar), ("MA", -coefficients.ma)):
            values = inverse_roots(lags)
            values = np.take_along_axis(values, np.argsort(-np.abs(values), 1, stable=True), 1)
            unit, values = np.repeat(fitted, values.shape[1]), values.ravel()
            angle, no_cycle = np.abs(np.angle(values)), np.full(len(values), np.inf)
            columns = {
                "part": name,
                "real": values.real,
                "imag": values.imag,
                "modulus": np.abs(values),
                "period": np.divide(2 * np.pi, angle, out=no_cycle, where=angle > 0),
            }
            parts.append(pd.DataFrame(columns, index=self.units_[unit]).reset_index())
        frame = pd.concat(parts, ignore_index=True)
        order = np.argsort(self.units_.get_indexer(pd.Index(frame.iloc[:, 0])), kind="stable")
        return self._keyed(frame.iloc[order].reset_index(drop=True))

    def recurrent_blocks(self) -> list[dict[str, np.ndarray]]:
        r"""Recurrent matrices of the fitted units, for `tsrnn.recurrence_features`.

        Returns
        -------
        list of one dict
            "AR", shape (U, n p, n p): companion matrices of :math:`\Phi`, the transition of
            forecasts; "MA", shape (U, n q, n q): companion matrices of :math:`-\Theta`, the
            recurrence :math:`h_t = -\Theta h_{t-1} + (\Phi + \Theta) y_{t-1}` by which the network
            forgets its inputs (Cai et al., 2026, section 2.1). Absent for an order of 0.
        """
        estimates = self.estimates_
        coefficients = self._shape.unpack(estimates.params[estimates.fitted])
        parts = {"AR": coefficients.ar, "MA": -coefficients.ma}
        return [{name: companion(lags) for name, lags in parts.items() if lags.shape[1]}]

    def simulate(self, n: int, params: Any = None, random_state: Any = None) -> pd.DataFrame:
        """Draw series from the model with normal innovations, from a stationary first state.

        Parameters
        ----------
        n : int
            Number of rows.
        params : DataFrame, Series, dict or array_like, optional
            Parameters by name or in order; by default the estimates.
        random_state : int, numpy random generator or None
            Seed; by default the seed of the fit.

        Returns
        -------
        DataFrame
            A column for each target, or for each series and target. A trend counts from the first
            row.

        Raises
        ------
        ValueError
            If an argument is not legal, the autoregression is not stationary, or the model has
            exogenous columns.
        """
        check_is_fitted(self)
        shape, n = self._shape, positive_integer("n", n)
        if shape.n_exog:
            raise ValueError(
                "simulate draws the series alone; this model has exogenous columns "
                f"{quote(list(self.fitted_.data.exog_names))}. Fit one without them"
            )
        estimates = self.estimates_
        values = estimates.params
        if params is not None:
            values = given_params(params, self.units_, estimates.names)
        fitted = np.flatnonzero(np.isfinite(values).all(1))
        radius = spectral_radius(shape.unpack(values[fitted]).ar)
        if (radius >= 1).any():
            raise ValueError(
                "to start from its stationary state, the autoregression must have inverse roots "
                f"below one in modulus; that of {quote(self.units_[fitted[radius.argmax()]])} has "
                f"{radius.max():.4g}"
            )
        y = np.full((len(values), n, shape.n), np.nan)
        seed = seed_of(self.arguments_.random_state if random_state is None else random_state)
        generator = np.random.default_rng(seed)
        y[fitted] = simulate_paths(shape, values[fitted], n, generator)
        names = self.fitted_.data.layout.target_names
        return draws_frame(y.swapaxes(0, 1), self.units_, names)

    def forecast_covariance(self, h: int | None = None, X: Any = None) -> Any:
        """Covariances of the forecast errors, with the parameters taken as known.

        Parameters
        ----------
        h : int, optional
            Number of steps; `horizon_` by default.
        X : frame, optional
            Data to forecast after; by default the data seen so far.

        Returns
        -------
        frame
            In the library of the data. A row for each step and pair of targets: the id and time,
            ``first``, ``second``, ``covariance``.
        """
        check_is_fitted(self)
        fitted, data = self.fitted_, self.fitted_.data
        h = fitted.steps("forecast_covariance", h)
        state = self._state_after(X)
        pairs = len(state.ids) * data.n_targets**2
        check_fits(f"h={h} steps of {pairs} pairs", 8.0 * h * pairs, "Take a smaller h")
        effect = np.zeros((len(state.ids), h, data.n_targets))
        family = cast("VARMAFamily", fitted.family)
        matrices = family.moments(state.arrays, fitted.units_of(state.ids), effect).cov
        times = data.times_ahead(state, h).ravel()
        flat = matrices.reshape(-1, *matrices.shape[2:])
        ids = state.ids.repeat(h)
        return tidy(data.layout, ids, times, flat, "covariance", diagonal=True)

    def _keyed(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Drop the column of units if the data have no ids."""
        return frame if self.fitted_.data.layout.id_col is not None else frame.iloc[:, 1:]

    @property
    def _shape(self) -> Shape:
        return cast("VARMAFamily", self.fitted_.family).shape
