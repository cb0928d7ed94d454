"""What a fitted vech model does: its coefficients, its network, shocks, draws."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from tsrnn.contract import positive_integer
from tsrnn.layers import ParaRNN
from tsrnn.linear._as_rnn import DifferenceEquation, Recursion, padded
from tsrnn.linear._matrices import MatrixForecaster
from tsrnn.linear.vech._algebra import n_variables
from tsrnn.linear.vech._blocks import Linear
from tsrnn.linear.vech._recursion import companion
from tsrnn.linear.vech._specification import Model, Specification
from tsrnn.linear.vech._state import begin, draw, impulse
from tsrnn.linear.vech._structure import natural


class Dynamics(MatrixForecaster):
    """Coefficients, responses, simulation; a part of `VECMGARCH`."""

    def volatility_response(self, shock: Any, h: int = 20, unit: Any = None) -> pd.DataFrame:
        r"""Volatility impulse response (Hafner and Herwartz, 2006).

        .. math:: V_k = E[h_{T+1+k} | e_{T+1} = shock] - E[h_{T+1+k}]

        after the data seen so far: by how much a shock of the next step moves forecasts of the
        covariance k = 1, ..., h steps later. A shock at the root of the next variances leaves
        them where they are.

        Parameters
        ----------
        shock : array_like of shape (n,)
            In the units of the data.
        h : int, default 20
        unit : label, optional
            One of `units_`; not needed where there is one.

        Returns
        -------
        DataFrame
            A row a ``step`` and pair of targets, ``first``, ``second``, ``response``.

        Raises
        ------
        ValueError
            If the shock has another shape, or a unit must be named or has no parameters.
        """
        check_is_fitted(self, "memory_")
        i, spec, h = self._usable(unit), self._specification(), positive_integer("h", h)
        e = _shock_of(shock, spec.n)
        memory = self.memory_.select(np.array([i]))
        now = self._forecasts(memory, 1).covariance[0, 0]
        matrices = impulse(self._model(i), now, e, h)
        rows, columns = np.triu_indices(spec.n)
        targets = np.array(spec.targets, dtype=object)
        return pd.DataFrame(
            {
                "step": np.repeat(np.arange(1, h + 1), len(rows)),
                "first": np.tile(targets[rows], h),
                "second": np.tile(targets[columns], h),
                "response": matrices[:, rows, columns].ravel(),
            }
        )

    def coefficients(self, unit: Any = None) -> dict[str, np.ndarray]:
        """The vech form of any structure, in the units of the data.

        Parameters
        ----------
        unit : label, optional
            One of `units_`; not needed where there is one.

        Returns
        -------
        dict
            ``b`` of shape (N,), ``theta`` of shape (p, N, N), ``phi`` of shape (q, N, N) and
            ``persistence``, the spectral radius that is below one if the covariance is
            stationary.

        Raises
        ------
        ValueError
            If a unit must be named or has no parameters.
        """
        check_is_fitted(self, "memory_")
        model = self._model(self._usable(unit))
        radius = np.abs(np.linalg.eigvals(_of_forecasts(model))).max()
        return {
            "b": model.constant, "theta": model.theta, "phi": model.phi,
            "persistence": np.array(radius),
        }  # fmt: skip

    def recurrent_blocks(self) -> list[dict[str, np.ndarray]]:
        r"""Recurrent matrices of vech H, for `tsrnn.recurrence_features`.

        Returns
        -------
        list of one dict
            "covariance": the companion matrices of :math:`\Theta_i + \Phi_i`, by which forecasts of
            the covariances move, a matrix a fitted unit; "Phi": those of :math:`\Phi_i`, the
            network's own recurrence, by which products of residuals are forgotten. No such entry
            where q is 0.
        """
        models = [self._model(int(i)) for i in np.flatnonzero(self._fitted().fitted)]
        blocks = {"covariance": np.stack([_of_forecasts(model) for model in models])}
        if len(models[0].phi):
            blocks["Phi"] = np.stack([companion(list(model.phi)) for model in models])
        return [blocks]

    def _usable(self, unit: Any) -> int:
        """Number of a unit that has parameters."""
        i = self._unit_number(unit)
        if not self._fitted().fitted[i]:
            raise ValueError(
                f"unit {self.units_[i]!r} could not be fitted and has no parameters; messages_ "
                "says why"
            )
        return i

    def _recursion(self, unit: int) -> Recursion:
        model = self._model(unit)
        r = max(len(model.theta), len(model.phi))
        before = self.memory_.arrays["presample"][unit]
        equation = DifferenceEquation(padded(model.phi, r), padded(model.theta, r), model.constant)
        return Recursion(equation, before, before)

    @classmethod
    def _outputs_of(cls, layer: ParaRNN) -> int:
        return layer.input_size

    @classmethod
    def _named(cls, equation: DifferenceEquation) -> dict[str, float]:
        r, size = equation.recurrent.shape[:2]
        full = natural("full", n_variables(size), r, r, targeting=False)
        values = (equation.intercept, *equation.inputs, *equation.recurrent)
        blocks = [block for block in full.blocks if isinstance(block, Linear)]  # all of them
        found = [block.params(value) for block, value in zip(blocks, values, strict=True)]
        return dict(zip(full.names, np.concatenate(found), strict=True))

    def _draw(
        self,
        params: np.ndarray,
        series: np.ndarray,
        rows: tuple[int, int],
        rng: np.random.Generator,
    ) -> np.ndarray:
        spec, arrays, draws = self._specification(), self.memory_.arrays, []
        for own, i in zip(params, series, strict=True):
            presample = arrays["presample"][i]
            model = spec.model(own, presample)
            state = begin(model, np.zeros((spec.mean.n_lags, spec.n)), presample)
            draws.append(draw(model, state, rng.standard_normal((sum(rows), spec.n)))[rows[1] :])
        return np.stack(draws, 1)

    @abstractmethod
    def _specification(self) -> Specification:
        """The model that the arguments and the data describe."""

    @abstractmethod
    def _model(self, i: int) -> Model:
        """Coefficients of fitted series i."""


def _shock_of(shock: Any, n: int) -> np.ndarray:
    message = f"shock must be {n} finite numbers, one a target; got {shock!r}"
    try:
        e = np.asarray(shock, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(message) from None
    if e.shape != (n,) or not np.isfinite(e).all():
        raise ValueError(message)
    return e


def _of_forecasts(model: Model) -> np.ndarray:
    """Companion matrix of theta + phi."""
    sums = np.zeros((max(len(model.theta), len(model.phi)), *model.theta.shape[1:]))
    sums[: len(model.theta)] += model.theta
    sums[: len(model.phi)] += model.phi
    return companion(list(sums))
