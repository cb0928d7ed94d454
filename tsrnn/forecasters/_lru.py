"""The forecaster of linear recurrent units."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tsrnn.contract import Arguments, flag, number, with_shared_arguments
from tsrnn.forecasters._recurrent import RecurrentForecaster

if TYPE_CHECKING:
    from tsrnn.layers import LayerChoice


@with_shared_arguments
class LRUForecaster(RecurrentForecaster):
    r"""Forecasts by linear recurrences, each followed by a position-wise network.

    The model is that of `ParaRNNForecaster` with other recurrent layers, `tsrnn.layers.LRU`,
    equation (2) of Orvieto et al. (2023):

    .. math:: x_k = \Lambda x_{k-1} + \gamma \odot B u_k, \qquad
        y_k = \hat\phi(\Re[C x_k] + D u_k)

    with complex eigenvalues :math:`\Lambda` inside the unit circle and a perceptron
    :math:`\hat\phi`. Its recurrence features are exact: no function bends the recurrence.

    A pretrained network of this cell forecasts short series, as in `ParaRNNForecaster`: see its
    `prior` and :doc:`/prior_network`.

    Parameters
    ----------
    horizon : int, optional
        Steps forecast directly; by frequency.
    state_units : int, optional
        Complex numbers in the state of a layer; `hidden_size` by default.
    r_min, r_max : float, default 0 and 1
        Radii between which eigenvalues are drawn.
    max_phase : float, default 2 pi
        Largest angle of an eigenvalue, in radians a step.
    mlp : bool, int or sequence of int, default True
        Widths of the inner layers of the perceptron; False for none.
    trainable_recurrence : bool, default True
        With False eigenvalues and B stay as drawn: a random linear network with a trained
        readout.
    constant_input : bool, default False
        True to give one state unit the constant input 1, so that it encodes the time since the
        first row. Its eigenvalue decides how far that reaches: see `r_min`.
    **shared
        As in all forecasters.

    References
    ----------
    Orvieto, De, Gulcehre, Pascanu and Smith (2023), On the Universality of Linear Recurrences
    Followed by Nonlinear Projections.

    Examples
    --------
    >>> from tsrnn import LRUForecaster
    >>> from tsrnn.datasets import load_elec_equip
    >>> model = LRUForecaster(horizon=12, max_epochs=2, random_state=0).fit(load_elec_equip())
    >>> model.predict(3).shape
    (3, 1)
    >>> short = LRUForecaster(horizon=12).fit(load_elec_equip()[:40])
    >>> type(short.fitted_).__name__
    'FittedPrior'
    """

    column_name = "LRU"

    def __init__(
        self,
        horizon: int | None = None,
        *,
        state_units: int | None = None,
        r_min: float = 0.0,
        r_max: float = 1.0,
        max_phase: float = 2 * math.pi,
        mlp: bool | int | Sequence[int] = True,
        trainable_recurrence: bool = True,
        constant_input: bool = False,
        **shared: Any,
    ) -> None:
        super().__init__(horizon, **shared)
        self.state_units = state_units
        self.r_min = r_min
        self.r_max = r_max
        self.max_phase = max_phase
        self.mlp = mlp
        self.trainable_recurrence = trainable_recurrence
        self.constant_input = constant_input

    @classmethod
    def _update_header(cls, header: dict[str, Any]) -> None:
        super()._update_header(header)
        header["params"].setdefault("constant_input", False)

    @staticmethod
    def _cell(arguments: Arguments) -> str:
        return "lru"

    @staticmethod
    def _layer(filled: dict[str, Any]) -> LayerChoice:
        from tsrnn.layers import layer_choice  # torch

        options: dict[str, Any] = {
            name: number(name, filled[name], lowest=0.0, open_=False)
            for name in ("r_min", "r_max", "max_phase")
        }
        mlp = filled["mlp"]  # checked by the layer; files hold Python integers
        widths = list(mlp) if isinstance(mlp, tuple | list) else [mlp]
        widths = [int(width) if isinstance(width, np.integer) else width for width in widths]
        options["mlp"] = widths if isinstance(mlp, tuple | list) else widths[0]
        for name in ("trainable_recurrence", "constant_input"):
            options[name] = flag(name, filled[name])
        return layer_choice("lru", options | {"state_units": filled["state_units"]})
