"""Log-likelihood of many standardised units with exact derivatives."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tsrnn.kernels import Lanes, Running, Sums, sums
from tsrnn.linear._optimise import Evaluation
from tsrnn.linear.garch._density import ByShape
from tsrnn.linear.garch._prepare import Presample
from tsrnn.linear.garch._specification import Model

_SCORES = (("l", None),)
_INFORMATION = (("e", "w"), ("log_h", None))


class Curvatures(NamedTuple):
    """Log-likelihood and the matrices of inference, in natural parameters."""

    value: np.ndarray  # (N,)
    gradient: np.ndarray  # (N, k)
    hessian: np.ndarray  # (N, k, k)
    opg: np.ndarray  # outer products of the scores
    information: np.ndarray


class Likelihood:
    """Log-likelihood of N standardised units, whose inputs are in lanes."""

    def __init__(self, model: Model, lanes: Lanes, n_obs: np.ndarray, presample: Presample) -> None:
        self.model, self._n_obs, self._presample = model, n_obs, presample
        self._lanes, self._running = lanes, Running(lanes)
        # The information of a shape parameter needs the derivatives of log h, too.
        self._terms = ("l", "log_h") if model.density.names else ("l",)

    def select(self, units: np.ndarray) -> Likelihood:
        """Likelihood of the given units."""
        presample = self._presample.select(units)
        return Likelihood(self.model, self._lanes.select(units), self._n_obs[units], presample)

    def restricted(self, model: Model) -> RestrictedLikelihood:
        """Likelihood of a model with fewer lags."""
        return RestrictedLikelihood(self, model)

    def evaluate(self, params: np.ndarray, units: np.ndarray, exact: bool) -> Evaluation:
        """Value, gradient and curvature of the given units, for `maximise`."""
        lanes, places = self._running.covering(units)
        # Lanes that are not asked for run along, at the parameters of the first unit.
        copies = np.zeros(lanes.n, dtype=np.int64)
        copies[places] = np.arange(len(units))
        all_params, all_units = params[copies], units[copies]
        if exact:
            totals = self._sums(lanes, all_params, all_units, 2, ("l",))
            curvature = -self._hessian(totals, all_params, all_units)
        else:
            totals = self._sums(lanes, all_params, all_units, 1, self._terms, _INFORMATION)
            curvature = self._information(totals, all_params, all_units)
        parts = *self._score(totals, all_params, all_units), curvature
        return Evaluation(*(part[places] for part in parts))

    def values(self, params: np.ndarray, units: np.ndarray) -> np.ndarray:
        """Values (n,) of the given units, which may repeat, at parameters (n, k)."""
        every = np.array_equal(units, np.arange(self._lanes.n))
        lanes = self._lanes if every else self._lanes.select(units)
        totals = self._sums(lanes, params, units, 0, ("l",))
        return totals.value[0] + self._n_obs[units] * self._constant(params).value

    def curvatures(self, params: np.ndarray) -> Curvatures:
        """Value, gradient and matrices of all units at parameters (N, k)."""
        units = np.arange(len(params))
        products = _INFORMATION + _SCORES
        totals = self._sums(self._lanes, params, units, 2, self._terms, products)
        value, gradient = self._score(totals, params, units)
        opg = self._outer_products(totals, params, units)
        hessian, information = (
            part(totals, params, units) for part in (self._hessian, self._information)
        )
        return Curvatures(value, gradient, hessian, opg, information)

    def _sums(
        self,
        lanes: Lanes,
        params: np.ndarray,
        units: np.ndarray,
        order: int,
        terms: tuple[str, ...],
        products: tuple[tuple[str, str | None], ...] = (),
    ) -> Sums:
        initial = self._presample.select(units).state(params, order, lanes)
        return sums(
            self.model.cell,
            lanes,
            params,
            initial.value,
            terms=terms,
            products=products,
            order=order,
            d_initial=initial.first,
            dd_initial=initial.second,
        )

    def _constant(self, params: np.ndarray) -> ByShape:
        return self.model.density.constant(params[:, self.model.shape_part])

    def _score(
        self, totals: Sums, params: np.ndarray, units: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Value and gradient, with the constant of the density."""
        assert totals.gradient is not None  # of order 1 or 2
        n, constant = self._n_obs[units], self._constant(params)
        gradient = totals.gradient[0].copy()
        gradient[:, self.model.shape_part] += (n * constant.slope)[:, None]
        return totals.value[0] + n * constant.value, gradient

    def _hessian(self, totals: Sums, params: np.ndarray, units: np.ndarray) -> np.ndarray:
        assert totals.hessian is not None  # of order 2
        hessian, shape = totals.hessian[0], self.model.shape_part
        bend = self._n_obs[units] * self._constant(params).bend
        hessian[:, shape, shape] += bend[:, None, None]
        return hessian

    def _outer_products(self, totals: Sums, params: np.ndarray, units: np.ndarray) -> np.ndarray:
        """Sum of outer products of the scores, which include the density's constant."""
        assert totals.gradient is not None
        assert totals.products is not None
        gradient = totals.gradient[0]
        scores = np.zeros_like(gradient)
        scores[:, self.model.shape_part] = self._constant(params).slope[:, None]
        crossed = gradient[:, :, None] * scores[:, None, :]
        square = scores[:, :, None] * scores[:, None, :] * self._n_obs[units][:, None, None]
        return totals.products[-1] + crossed + crossed.swapaxes(1, 2) + square

    def _information(self, totals: Sums, params: np.ndarray, units: np.ndarray) -> np.ndarray:
        """Expected information at the observed variances."""
        assert totals.gradient is not None
        assert totals.products is not None
        shape = self.model.shape_part
        unit = self.model.density.information(params[:, shape])
        residual, log_variance = unit.residual[:, None, None], unit.log_variance[:, None, None]
        information = residual * totals.products[0] + log_variance * totals.products[1]
        if shape.stop > shape.start:
            cross = unit.cross[:, None] * totals.gradient[1]
            information[:, :, shape] += cross[:, :, None]
            information[:, shape, :] += cross[:, None, :]
            information[:, shape, shape] += (self._n_obs[units] * unit.shape)[:, None, None]
        if self.model.vol.even:  # the expectation is zero, although the sample's products are not
            mean, others = self.model.mean_part, slice(self.model.omega, None)
            information[:, mean, others] = 0.0
            information[:, others, mean] = 0.0
        return information


class RestrictedLikelihood(Likelihood):
    """Likelihood of a model with fewer lags, in a larger model with zero coefficients."""

    def __init__(self, whole: Likelihood, model: Model) -> None:
        self._whole, self.model = whole, model
        self._places = np.array([whole.model.names.index(name) for name in model.names])

    def select(self, units: np.ndarray) -> RestrictedLikelihood:
        """Likelihood of the given units."""
        return RestrictedLikelihood(self._whole.select(units), self.model)

    def evaluate(self, params: np.ndarray, units: np.ndarray, exact: bool) -> Evaluation:
        """Value, gradient and curvature of the given units, for `maximise`."""
        at, places = self._whole.evaluate(self._embedded(params), units, exact), self._places
        return Evaluation(at.value, at.gradient[:, places], at.curvature[:, places][:, :, places])

    def values(self, params: np.ndarray, units: np.ndarray) -> np.ndarray:
        """Values (n,) of the given units, which may repeat, at parameters (n, k)."""
        return self._whole.values(self._embedded(params), units)

    def curvatures(self, params: np.ndarray) -> Curvatures:
        """Value, gradient and matrices of all units at parameters (N, k)."""
        at, places = self._whole.curvatures(self._embedded(params)), self._places
        matrices = (
            matrix[:, places][:, :, places] for matrix in (at.hessian, at.opg, at.information)
        )
        return Curvatures(at.value, at.gradient[:, places], *matrices)

    def _embedded(self, params: np.ndarray) -> np.ndarray:
        whole = np.zeros((len(params), len(self._whole.model.names)))
        whole[:, self._places] = params
        return whole
