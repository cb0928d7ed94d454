"""Results of a fitted GARCH model: variances over time and ahead, persistence, simulation."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import torch

from tsrnn.contract import choice, number, positive_integer, real_array, seed_of
from tsrnn.data import Panel
from tsrnn.linear._arguments import burn_of
from tsrnn.linear._base import LinearForecaster
from tsrnn.linear._frames import given_params, in_shape_of_data
from tsrnn.linear._state import LinearState
from tsrnn.linear.garch._filter import VarianceState, initial_memory
from tsrnn.linear.garch._forecast import expected_variance, simulate_garch, simulated_variance
from tsrnn.linear.garch._inference import (
    half_life,
    persistence,
    resting_variance,
    transition,
    unconditional_variance,
)
from tsrnn.linear.garch._prepare import units_of
from tsrnn.linear.garch._specification import Model, Step

METHODS = ("auto", "analytic", "simulation", "bootstrap")


class VarianceResults(LinearForecaster):
    """Conditional and forecast variances, persistence and simulation; a part of `GARCH`."""

    @property
    def persistence_(self) -> pd.Series:
        r"""Sum of :math:`\alpha_i + \gamma_i / 2` and :math:`\beta_j`; "egarch": of the betas."""
        return self._derived(persistence, "persistence")

    @property
    def half_life_(self) -> pd.Series:
        """Steps in which half a deviation of the (log-)variance from its mean is gone."""
        return self._derived(half_life, "half_life")

    @property
    def unconditional_variance_(self) -> pd.Series:
        """Variance of the residuals; inf where there is none."""
        return self._derived(unconditional_variance, "unconditional_variance")

    def conditional_volatility(self, df: Any = None) -> Any:
        r"""Conditional standard deviations :math:`\sqrt{h_t}` within the data.

        Parameters
        ----------
        df : frame, optional
            Data in place of those fitted to.

        Returns
        -------
        frame
            In the shape of the data; a column ``volatility`` in a long frame. NaN in the first
            rows, which lags of y take out of the likelihood.
        """
        panel = self._data(df)
        volatility = np.sqrt(self._residuals_and_variances(panel)[1])
        return in_shape_of_data(panel, volatility, "volatility")

    def predict_variance(self, h: int | None = None, X: Any = None, method: str = "auto") -> Any:
        """Forecasts of the variance of the residuals.

        Parameters
        ----------
        h : int, optional
            Number of steps; `horizon_` by default.
        X : frame, optional
            Data to forecast after; by default those seen so far.
        method : {"auto", "analytic", "simulation", "bootstrap"}
            Expectations in closed form, which "egarch" has for the first step only; means of
            simulated paths; or of paths with innovations drawn from the standardised
            residuals of the data fitted to. "auto" is "analytic" where that exists.

        Returns
        -------
        frame
            In the shape of the data; a column ``variance`` in a long frame.

        Raises
        ------
        ValueError
            If the method does not exist for this model or horizon.
        """
        return self._variance_frame(h, X, method=choice("method", method, METHODS))

    def news_impact(self, z: Any = None) -> pd.DataFrame:
        r"""Variance after a shock, all before it being at rest (Engle and Ng, 1993).

        Parameters
        ----------
        z : array_like, optional
            Standardised residuals; by default 81 from -4 to 4.

        Returns
        -------
        DataFrame
            :math:`h_{t+1}` with a row a residual and a column a unit, from an :math:`h_t` at
            which the recursion rests: :math:`\omega / (1 - P)` with the persistence P, or its
            exponential for "egarch". NaN for a unit whose recursion does not rest anywhere.
        """
        sizes = np.linspace(-4, 4, 81) if z is None else real_array("z", z).reshape(-1)
        model, params = self._model(), self._fitted().params
        columns = torch.from_numpy(np.array(params.T))[..., None].unbind(0)
        memory = initial_memory(model, params, resting_variance(model, params))
        fields = tuple(torch.from_numpy(np.array(memory.T))[..., None].unbind(0))
        h, _ = model.vol.variance(fields[model.mean.n_ma :])
        e = torch.sqrt(h) * torch.from_numpy(sizes)
        after = Step(model).remembered(fields, e, h, columns)
        variance = model.vol.variance(after[model.mean.n_ma :])[0].numpy()
        return pd.DataFrame(variance.T, index=pd.Index(sizes, name="z"), columns=self.units_)

    def simulate(
        self,
        n: int,
        params: Any = None,
        burn: int = 500,
        variance: float | None = None,
        random_state: Any = None,
    ) -> pd.DataFrame:
        """Draw series from the model.

        Parameters
        ----------
        n : int
            Rows.
        params : Series, dict or array_like, optional
            Parameters by name or in order; by default those fitted, of all units. With them
            the model need not be fitted.
        burn : int, default 500
            Rows drawn before and thrown away.
        variance : float, optional
            Where the variance starts; by default where its recursion rests.
        random_state : int, numpy random generator or None
            By default that of the fit.

        Returns
        -------
        DataFrame
            A column a unit, ``y`` where parameters are given.

        Raises
        ------
        ValueError
            If an argument cannot be used, or the recursion rests nowhere and no variance is
            given.
        """
        n, burn = positive_integer("n", n), burn_of(burn)
        if variance is not None:
            variance = number("variance", variance, lowest=0, open_=True)
        model = self._model()
        units = pd.Index(["y"]) if params is not None else self.units_
        rows = self._fitted().params if params is None else given_params(params, units, model.names)
        start = resting_variance(model, rows) if variance is None else np.full(len(rows), variance)
        if not (np.isfinite(start) | np.isnan(rows).any(1)).all():
            raise ValueError(
                "variance must be given to start from: with a persistence of one or more, the "
                "recursion rests nowhere"
            )
        given = self.arguments_.random_state if random_state is None else random_state
        generator = np.random.default_rng(seed_of(given))
        state = VarianceState(
            initial_memory(model, rows, start), np.zeros((len(rows), model.mean.n_dropped))
        )
        shape = (n + burn, 1)
        z = np.full((len(rows), *shape), np.nan)
        for i in np.flatnonzero(np.isfinite(rows).all(1)):
            z[i] = model.density.draw(generator, shape, rows[i : i + 1, model.shape_part])[0]
        y = simulate_garch(model, rows, state, z).y[:, burn:, 0]
        return pd.DataFrame(y.T, columns=units)

    def recurrent_blocks(self) -> list[dict[str, np.ndarray]]:
        r"""Recurrent matrices of the variances, for `tsrnn.recurrence_features`.

        Returns
        -------
        list of one dict
            "variance", shape (U, r, r) with r = max(p, q): the companion matrix of
            :math:`\alpha_i + \gamma_i / 2 + \beta_i`, by which forecasts of the variance move
            ("egarch": of :math:`\beta_i`, by which the logarithm does); for orders (1, 1) it is the
            persistence. "beta": that of :math:`\beta_i`, the network's own recurrence, by which
            squared residuals are forgotten. No such entry where q is 0, and for "egarch".
        """
        model, estimates = self._model(), self._fitted()
        params = estimates.params[estimates.fitted]
        blocks = {"variance": transition(model, params)[0]}
        if model.q and not model.vol.log:
            beta = np.tile(np.eye(model.q, k=1), (len(params), 1, 1))
            beta[:, :, 0] += params[:, model.beta]
            blocks["beta"] = beta
        return [blocks]

    def _residual_variances(self, memory: LinearState, h: int, method: str = "auto") -> np.ndarray:
        """Forecasts (S, h, C) of variances."""
        variance = self._variances(memory, h, method)
        return variance.reshape(len(memory.ids), -1, h).swapaxes(1, 2)

    def _variances(self, memory: LinearState, h: int, method: str) -> np.ndarray:
        """Forecasts (S C, h) of variances."""
        model, params, state = self._model(), self._params_of(memory.ids), state_of(memory)
        closed = h == 1 or not model.vol.log
        if method == "analytic" and not closed:
            raise ValueError(
                "vol='egarch' has no analytic forecasts of variances beyond the first step; take "
                "method='simulation' or 'bootstrap'"
            )
        if method in ("auto", "analytic") and closed:
            return expected_variance(model, params, state, h)
        shape = h, positive_integer("n_simulations", self.arguments_.n_simulations)
        seed = seed_of(self.arguments_.random_state)
        if method != "bootstrap":
            return simulated_variance(model, params, state, shape, seed)
        panel = self._data(None)
        residuals = units_of(panel, self._in_sample(panel)[1], fill=np.nan)[0]
        by_series = residuals.reshape(len(self.state_.ids), -1, residuals.shape[1])
        chosen = by_series[self._series_of(memory.ids)].reshape(len(params), -1)
        return simulated_variance(model, params, state, shape, seed, chosen)

    def _derived(self, function: Callable[[Model, np.ndarray], np.ndarray], name: str) -> pd.Series:
        params = self._fitted().params
        fitted = np.isfinite(params).all(1)
        values = np.full(len(params), np.nan)
        values[fitted] = function(self._model(), params[fitted])
        return self._series(values, name)

    @abstractmethod
    def _model(self) -> Model:
        """Model of the arguments."""

    @abstractmethod
    def _params_of(self, ids: pd.Index) -> np.ndarray:
        """Parameters (S C, k) of the units of some series."""

    @abstractmethod
    def _residuals_and_variances(self, panel: Panel) -> tuple[np.ndarray, np.ndarray]:
        """Residuals and conditional variances, each (rows, C), at the estimates."""


def state_of(memory: LinearState) -> VarianceState:
    """State of all units of a memory."""
    arrays = (memory.arrays[name] for name in VarianceState._fields)
    return VarianceState(*(a.reshape(a.shape[0] * a.shape[1], a.shape[2]) for a in arrays))
