"""The forecaster of long expressive memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tsrnn.contract import Arguments, choice, number, with_shared_arguments
from tsrnn.forecasters._recurrent import RecurrentForecaster

if TYPE_CHECKING:
    from tsrnn.layers import LayerChoice


@with_shared_arguments
class LEMForecaster(RecurrentForecaster):
    r"""Forecasts by long expressive memory, a network whose units learn their own time steps.

    The model is that of `ParaRNNForecaster` with other recurrent layers, `tsrnn.layers.LEM`,
    equation (3) of Rusch et al. (2022):

    .. math::
        z_n = (1 - \Delta t_n) \odot z_{n-1} + \Delta t_n \odot \tanh(W_z y_{n-1} + V_z u_n + b_z),
        \qquad y_n = (1 - \overline{\Delta t}_n) \odot y_{n-1}
        + \overline{\Delta t}_n \odot \tanh(W_y z_n + V_y u_n + b_y)

    with time steps :math:`\Delta t_n, \overline{\Delta t}_n \in (0, \Delta t)` that depend on
    state and input. `tsrnn.interpret.time_scales` and `time_steps` read them from
    a forecaster that was trained on the series.

    A pretrained network of this cell forecasts short series, as in `ParaRNNForecaster`: see its
    `prior` and :doc:`/prior_network`.

    Parameters
    ----------
    horizon : int, optional
        Steps forecast directly; by frequency.
    dt : float, default 1
        The largest time step, in steps of the data.
    min_step : float, default 0
        The smallest time step, at most `dt`; with ``min_step=dt`` no time scales are learned.
    block_size : int, optional
        Size of the blocks of the matrices W. By default they are full, as published.
    init : {"uniform", "chrono"}, default "uniform"
        Start values of the layers, see `tsrnn.layers.LEM`.
    chrono_length : float, optional
        The longest dependency expected, in steps, for ``init="chrono"``.
    **shared
        As in all forecasters.

    References
    ----------
    Rusch, Mishra, Erichson and Mahoney (2022), Long Expressive Memory for Sequence Modeling.

    Examples
    --------
    >>> from tsrnn import LEMForecaster
    >>> from tsrnn.datasets import load_elec_equip
    >>> model = LEMForecaster(horizon=12, max_epochs=2, random_state=0).fit(load_elec_equip())
    >>> model.predict(3).shape
    (3, 1)
    >>> short = LEMForecaster(horizon=12).fit(load_elec_equip()[:40])
    >>> type(short.fitted_).__name__
    'FittedPrior'
    """

    column_name = "LEM"

    def __init__(
        self,
        horizon: int | None = None,
        *,
        dt: float = 1.0,
        min_step: float = 0.0,
        block_size: int | None = None,
        init: str = "uniform",
        chrono_length: float | None = None,
        **shared: Any,
    ) -> None:
        super().__init__(horizon, **shared)
        self.dt = dt
        self.min_step = min_step
        self.block_size = block_size
        self.init = init
        self.chrono_length = chrono_length

    @classmethod
    def _update_header(cls, header: dict[str, Any]) -> None:
        super()._update_header(header)
        header["params"].setdefault("min_step", 0.0)

    @staticmethod
    def _cell(arguments: Arguments) -> str:
        return "lem"

    @staticmethod
    def _layer(filled: dict[str, Any]) -> LayerChoice:
        from tsrnn.layers import layer_choice  # torch

        options = {
            "dt": number("dt", filled["dt"], lowest=0.0, open_=True),
            "min_step": number("min_step", filled["min_step"], lowest=0.0, open_=False),
            "init": choice("init", filled["init"], ("uniform", "chrono")),
            "block_size": filled["block_size"],
            "chrono_length": filled["chrono_length"],
        }
        return layer_choice("lem", options)
