"""Results of a fitted ARMA as frames by unit: responses, roots, autocovariances, simulations."""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtri

from tsrnn.contract import check_fits, positive_integer, real_array, seed_of
from tsrnn.data import quote
from tsrnn.linear._base import MeanForecaster
from tsrnn.linear._frames import by_parameter, given_params
from tsrnn.linear._inference import one_level
from tsrnn.linear.arma import _filter, _seasonal_filter
from tsrnn.linear.arma._filter import filter_form
from tsrnn.linear.arma._likelihood import admissible
from tsrnn.linear.arma._polynomials import inverse_roots
from tsrnn.linear.arma._seasonal import stationary
from tsrnn.linear.arma._specification import Form, Specification, arma_specification

_ROUNDING = 1e-12  # a root this close to the unit circle is on it


class ARMAResults(MeanForecaster):
    """Responses, roots and simulations of a fitted ARMA; a part of `ARMA`."""

    def _spec(self) -> Specification:
        """Specification of the fit; before a fit, of the arguments without regressors."""
        fitted = vars(self).get("fitted_")
        return arma_specification(self.arguments_) if fitted is None else fitted.family.spec

    def impulse_responses(
        self, h: int = 10, level: float = 95, cov_type: str | None = None
    ) -> pd.DataFrame:
        r"""Responses of y to an innovation of one.

        .. math:: \psi(B) = \theta(B) / (\phi(B) (1 - B)^d)

        Parameters
        ----------
        h : int, default 10
            Last step after the innovation.
        level : float
            Coverage of the bands in percent: normal, by the delta method.
        cov_type : str, optional
            Kind of the covariance of the parameters; by default the constructor's.

        Returns
        -------
        DataFrame
            Columns ``response``, ``std_err``, ``lower`` and ``upper``; a row for each unit and
            step. Bands are NaN if AR or MA parameters have no standard error.
        """
        level = one_level(level)
        h = positive_integer("h", h)
        check_fits(f"h={h} steps", 8.0 * h * self.estimates_.params.size, "Take a smaller h")
        params, cov = self.estimates_.params, self._covariance(cov_type)
        psi, errors = recursions(self._spec()).responses_with_errors(self._spec(), params, cov, h)
        half = ndtri(0.5 + level / 200) * errors
        columns = {"response": psi, "std_err": errors, "lower": psi - half, "upper": psi + half}
        frame = by_parameter(self.units_, [str(k) for k in range(h + 1)], columns)
        levels = [frame.index.get_level_values(i) for i in range(frame.index.nlevels - 1)]
        levels.append(pd.Index(np.tile(np.arange(h + 1), len(self.units_))))
        frame.index = pd.MultiIndex.from_arrays(levels, names=[*frame.index.names[:-1], "step"])
        return frame

    def roots(self) -> pd.DataFrame:
        r"""Roots of :math:`\phi(z)` and :math:`\theta(z)`, then those of the seasonal factors.

        Returns
        -------
        DataFrame
            A row for each unit and root (``AR.1``, ..., ``MA.1``, ...): ``real`` and
            ``imaginary``; ``modulus``, above one for a stationary AR and an invertible MA, infinite
            if the last coefficient is zero; ``period`` in rows, infinite for a positive root and 2
            for a negative one; ``half_life`` in rows of the root's effect, infinite on the unit
            circle, NaN inside.
        """
        spec, params, fitted = self._spec(), self.estimates_.params, self.estimates_.fitted
        _, ar, ma, seasonal_ar, seasonal_ma = filter_form(spec).parts(params[fitted, :-1].T)
        of_ar = np.concatenate([inverse_roots(ar), seasonal_roots(seasonal_ar, spec.m)])
        of_ma = np.concatenate([inverse_roots(-ma), seasonal_roots(-seasonal_ma, spec.m)])
        inverse = np.full((len(params), len(of_ar) + len(of_ma)), np.nan, dtype=complex)
        inverse[fitted] = np.concatenate([of_ar, of_ma]).T
        names = [f"AR.{i + 1}" for i in range(len(of_ar))]
        names += [f"MA.{i + 1}" for i in range(len(of_ma))]
        zero = inverse == 0
        with np.errstate(divide="ignore", invalid="ignore"):  # units without parameters
            roots = 1 / np.where(zero, 1, inverse)
            real = np.where(zero, np.inf, roots.real)
            imaginary = np.where(zero, 0.0, roots.imag) + 0.0  # no negative zero
            modulus = np.hypot(real, imaginary)
            period = 2 * np.pi / np.abs(np.arctan2(imaginary, real))
            half_life = np.log(2) / np.log(np.where(modulus > 1 + _ROUNDING, modulus, np.nan))
        columns = {
            "real": real,
            "imaginary": imaginary,
            "modulus": modulus,
            "period": np.where(np.isinf(real), np.nan, period),
            "half_life": np.where(np.abs(modulus - 1) <= _ROUNDING, np.inf, half_life),
        }
        frame = by_parameter(self.units_, names, columns)
        return frame.rename_axis(index={"parameter": "root"})

    def autocovariances(self, h: int) -> pd.DataFrame:
        """Autocovariances of the fitted models at lags 0 to h.

        Parameters
        ----------
        h : int

        Returns
        -------
        DataFrame of shape (h + 1, units)
            Autocovariances of the series without trend and regressors, differenced if d > 0. NaN
            for a unit with a nonstationary AR.
        """
        spec, params, h = self._spec(), self.estimates_.params, positive_integer("h", h)
        check_fits(f"h={h} lags of {len(params)} units", 8.0 * h * len(params), "Take a smaller h")
        values = np.full((len(params), h + 1), np.nan)
        with np.errstate(invalid="ignore"):  # units without parameters
            fine = stationary(filter_form(spec), params[:, :-1])
        fine &= self.estimates_.fitted
        differenced = replace(spec, d=0, D=0, exact=True)
        values[fine] = recursions(spec).model_autocovariances(differenced, params[fine], h)
        return pd.DataFrame(values.T, pd.RangeIndex(h + 1, name="lag"), self.units_)

    def recurrent_blocks(self) -> list[dict[str, np.ndarray]]:
        r"""Recurrent matrices of the fitted units, for `tsrnn.recurrence_features`.

        Returns
        -------
        list of one dict
            "AR": companion matrices (U, p, p) of :math:`\phi`, the transition of forecasts;
            "MA": companion matrices (U, q, q) of :math:`-\theta`, the recurrence by which the
            network forgets its inputs. Absent for an order of zero. A seasonal model has the
            multiplied polynomials with differences: :math:`1 - B^m` has m roots on the unit circle,
            one for each seasonal frequency.

        Raises
        ------
        ValueError
            If both orders are zero.
        """
        spec = self._spec()
        params = self.estimates_.params[self.estimates_.fitted]
        if spec.m:
            phi, theta = (lags.T for lags in _seasonal_filter.whole(spec, params))
            phi = phi[:, : spec.p + spec.m * spec.P + spec.lost]
            theta = theta[:, : spec.q + spec.m * spec.Q]
        else:
            phi, theta = np.split(params[:, spec.n_mean : -1], [spec.p], axis=1)
        blocks = {}
        for name, part in (("AR", phi), ("MA", -theta)):
            n, lags = part.shape
            if lags:
                blocks[name] = np.tile(np.eye(lags, k=1), (n, 1, 1))
                blocks[name][:, :, 0] += part
        if not blocks:
            raise ValueError(
                f"order={self.arguments_.order!r} is white noise and has no recurrence. Fit with p "
                "or q of at least 1"
            )
        return [blocks]

    def simulate(
        self, n: int, params: Any = None, X: Any = None, random_state: Any = None
    ) -> pd.DataFrame:
        """Draw a path of each unit from the model with normal innovations.

        Parameters
        ----------
        n : int
            Number of rows.
        params : Series, dict or array_like, optional
            Parameters of one path ``y`` by name or in order, for a model that need not be fitted;
            by default the estimates of all units.
        X : array_like of shape (n, m), optional
            Regressors of the model, the same for all units.
        random_state : int, numpy random generator or None
            Seed; by default the seed of the fit.

        Returns
        -------
        DataFrame of shape (n, units)
            Paths from the stationary distribution, or with the conditional likelihood from a state
            of zero; with d > 0 from levels of zero.

        Raises
        ------
        ValueError
            If parameters or regressors do not fit.
        """
        n = positive_integer("n", n)
        if params is None:
            rows, units, spec = self.estimates_.params, self.units_, self._spec()
        else:
            units, spec = pd.Index(["y"]), self._spec()
            rows = given_params(params, units, spec.names)
            check_admissible(spec, rows, units)
        m = len(spec.regressors)
        values = np.zeros((n, 0)) if X is None else real_array("X", X)
        if values.shape != (n, m):
            raise ValueError(
                f"X must have shape ({n}, {m}) for the regressors {list(spec.regressors)}; got "
                f"{values.shape}"
            )
        seed = seed_of(self.arguments_.random_state if random_state is None else random_state)
        paths = np.full((len(rows), n), np.nan)
        fitted = np.isfinite(rows).all(1)
        exog = np.broadcast_to(values, (fitted.sum(), n, m)) if m else None
        rng = np.random.default_rng(seed)
        paths[fitted] = recursions(spec).simulate_paths(spec, rows[fitted], n, rng, exog)
        return pd.DataFrame(paths.T, columns=units)


def check_admissible(spec: Specification, params: np.ndarray, units: pd.Index) -> None:
    """Raise a ValueError for parameters (N, k) at which the likelihood is not defined."""
    form = Form(spec.p, spec.q)
    roots = params[:, spec.n_mean : spec.n_mean + form.n_params]
    fine = (params[:, -1] > 0) & admissible(form, roots, spec.exact)
    if spec.m:
        seasonal = Form(spec.P, spec.Q)
        fine &= admissible(seasonal, params[:, -1 - spec.P - spec.Q : -1], spec.exact)
    if not fine.all():
        bad = int(np.flatnonzero(~fine)[0])
        raise ValueError(
            "params must have sigma2 > 0, roots of the MA not inside the unit circle and, for "
            "the exact likelihood, those of the AR outside it; those of "
            f"{quote(units[bad])}, {dict(zip(spec.names, params[bad].tolist(), strict=True))}, do "
            "not"
        )


def recursions(spec: Specification) -> ModuleType:
    """Module with filter, forecasts and draws: cells, or arrays for long seasonal states."""
    return _seasonal_filter if spec.m else _filter


def seasonal_roots(seasonal: np.ndarray, m: int) -> np.ndarray:
    """Inverse roots, complex (m lags, N), of an AR (lags, N) with lags m rows apart."""
    inverse = inverse_roots(seasonal)
    if not len(inverse):
        return inverse
    unity = np.exp(2j * np.pi * np.arange(m) / m)
    roots = inverse[:, None] ** (1 / m) * unity[:, None]
    # Rounding must not give a real root a period.
    roots.imag[np.abs(roots.imag) < _ROUNDING] = 0.0
    return roots.reshape(-1, inverse.shape[1])
