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
    """Log-likelihood and all matrices of inference, in natural parameters."""

    value: np.ndarray
    gradient: np.ndarray
    hessian: np.ndarray
    opg: np.ndarray
    information: np.ndarray


class Likelihood:
    """Log-likelihood of N units, their inputs in lanes, in parameters of standardised series."""

    def __init__(self, model: Model, lanes: Lanes, n_obs: np.ndarray, presample: Presample) -> None:
        self.model, self._n_obs, self._presample = model, n_obs, presample
        self._lanes, self._running = lanes, Running(lanes)

    def select(self, units: np.ndarray) -> Likelihood:
        """Likelihood of some units, by number."""
        presample = self._presample.select(units)
        return Likelihood(self.model, self._lanes.select(units), self._n_obs[units], presample)

    def evaluate(self, params: np.ndarray, units: np.ndarray, exact: bool) -> Evaluation:
        """Value, gradient and curvature of some units, as `maximise` asks for them."""
        lanes, places = self._running.covering(units)
        # Lanes that are not asked for run along, at the parameters of the first that is.
        copies = np.zeros(lanes.n, dtype=np.int64)
        copies[places] = np.arange(len(units))
        all_params, all_units = params[copies], units[copies]
        if exact:
            value, gradient, hessian, _ = self._derivatives(lanes, all_params, all_units, 2)
            parts = value, gradient, -hessian
        else:
            parts = self._scoring(lanes, all_params, all_units)
        return Evaluation(*(part[places] for part in parts))

    def values(self, params: np.ndarray, units: np.ndarray) -> np.ndarray:
        """Values (n,) of some units, which may be repeated, at parameters (n, k)."""
        every = np.array_equal(units, np.arange(self._lanes.n))
        lanes = self._lanes if every else self._lanes.select(units)
        totals = self._sums(lanes, params, units, 0, ("l",))
        return totals.value[0] + self._n_obs[units] * self._constant(params).value

    def curvatures(self, params: np.ndarray) -> Curvatures:
        """Value, gradient and matrices of all units at parameters (N, k)."""
        units = np.arange(len(params))
        derivatives = self._derivatives(self._lanes, params, units, 2, _SCORES)
        return Curvatures(*derivatives, self._scoring(self._lanes, params, units)[2])

    def _sums(
        self,
        lanes: Lanes,
        params: np.ndarray,
        units: np.ndarray,
        order: int,
        terms: tuple[str, ...],
        products: tuple[tuple[str, str | None], ...] = (),
    ) -> Sums:
        initial = self._presample.select(units).state(params, order)
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

    def _derivatives(
        self,
        lanes: Lanes,
        params: np.ndarray,
        units: np.ndarray,
        order: int,
        products: tuple[tuple[str, str | None], ...] = (),
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Value, gradient, Hessian and outer product of scores, with the constant."""
        totals = self._sums(lanes, params, units, order, ("l",), products)
        assert totals.gradient is not None
        assert totals.hessian is not None
        n, constant, shape = self._n_obs[units], self._constant(params), self.model.shape_part
        gradient, hessian = totals.gradient[0], totals.hessian[0]
        scores = np.zeros_like(gradient)
        scores[:, shape] = constant.slope[:, None]
        opg = np.empty(0) if totals.products is None else totals.products[0]
        if products:
            crossed = gradient[:, :, None] * scores[:, None, :]
            square = scores[:, :, None] * scores[:, None, :] * n[:, None, None]
            opg = opg + crossed + crossed.swapaxes(1, 2) + square
        hessian[:, shape, shape] += (n * constant.bend)[:, None, None]
        return totals.value[0] + n * constant.value, gradient + n[:, None] * scores, hessian, opg

    def _scoring(
        self, lanes: Lanes, params: np.ndarray, units: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Value, gradient and expected information."""
        shape = self.model.shape_part
        has_shape = shape.stop > shape.start
        terms = ("l", "log_h") if has_shape else ("l",)
        totals = self._sums(lanes, params, units, 1, terms, _INFORMATION)
        assert totals.gradient is not None
        assert totals.products is not None
        n, constant = self._n_obs[units], self._constant(params)
        unit = self.model.density.information(params[:, shape])
        residual, log_variance = unit.residual[:, None, None], unit.log_variance[:, None, None]
        information = residual * totals.products[0] + log_variance * totals.products[1]
        gradient = totals.gradient[0]
        if has_shape:
            cross = unit.cross[:, None] * totals.gradient[1]
            information[:, :, shape] += cross[:, :, None]
            information[:, shape, :] += cross[:, None, :]
            information[:, shape, shape] += (n * unit.shape)[:, None, None]
            gradient[:, shape] += (n * constant.slope)[:, None]
        if self.model.vol.even:  # zero in expectation, which the sample's products are not
            mean, others = self.model.mean_part, slice(self.model.omega, None)
            information[:, mean, others] = 0.0
            information[:, others, mean] = 0.0
        return totals.value[0] + n * constant.value, gradient, information
