"""The forecaster of diagonal recurrences in residual blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tsrnn.contract import number, positive_integer, with_shared_arguments
from tsrnn.forecasters._recurrent import RecurrentForecaster

if TYPE_CHECKING:
    from tsrnn.layers import LayerChoice


@with_shared_arguments
class NewtonForecaster(RecurrentForecaster):
    r"""Forecasts by a diagonal GRU or LSTM in residual blocks.

    The model is that of `ParaRNNForecaster` with other recurrent layers, the blocks of Danieli et
    al. (2025), appendix C.1. A block is a causal convolution, a recurrence, a gate and a
    perceptron, each with a residual path. The matrices of the recurrence are diagonal, so that
    Newton's method runs it in parallel over time. See `tsrnn.layers.NewtonBlocks`.

    A pretrained network of this cell forecasts short series, as in `ParaRNNForecaster`: see its
    `prior` and :doc:`/prior_network`.

    Parameters
    ----------
    horizon : int, optional
        Steps forecast directly; by frequency.
    cell : {"newton-gru", "newton-lstm"}
        Recurrence of the blocks.
    conv_size : int, default 4
        Length of the convolution in steps.
    n_heads : int, default 4
        Heads that the layer width is divided into, a divisor of `hidden_size`.
    expansion : int, default 1
        Width of a block, in multiples of `hidden_size`.
    max_recurrent : float, optional
        Bound of the absolute values of the recurrent parameters in training, see
        `tsrnn.layers.NewtonGRU`; none by default. Danieli et al. take 0.5.
    **shared
        As in all forecasters.

    References
    ----------
    Danieli, Rodriguez, Sarabia, Suau and Zappella (2025), ParaRNN: Unlocking Parallel Training of
    Nonlinear RNNs for Large Language Models.

    Examples
    --------
    >>> from tsrnn import NewtonForecaster
    >>> from tsrnn.datasets import load_elec_equip
    >>> model = NewtonForecaster(horizon=12, max_epochs=2, random_state=0).fit(load_elec_equip())
    >>> model.predict(3).shape
    (3, 1)
    >>> short = NewtonForecaster(horizon=12, cell="newton-lstm").fit(load_elec_equip()[:40])
    >>> type(short.fitted_).__name__
    'FittedPrior'
    """

    column_name = "Newton"

    def __init__(
        self,
        horizon: int | None = None,
        *,
        cell: str = "newton-gru",
        conv_size: int = 4,
        n_heads: int = 4,
        expansion: int = 1,
        max_recurrent: float | None = None,
        **shared: Any,
    ) -> None:
        super().__init__(horizon, **shared)
        self.cell = cell
        self.conv_size = conv_size
        self.n_heads = n_heads
        self.expansion = expansion
        self.max_recurrent = max_recurrent

    @classmethod
    def _update_header(cls, header: dict[str, Any]) -> None:
        super()._update_header(header)
        header["params"].setdefault("max_recurrent", None)
        settings = header["fitted"].get("settings")
        options = settings.get("options") if isinstance(settings, dict) else None
        for part in (header["params"], options):  # earlier names of the cells
            if isinstance(part, dict) and part.get("cell") in ("gru", "lstm"):
                part["cell"] = f"newton-{part['cell']}"

    @staticmethod
    def _layer(filled: dict[str, Any]) -> LayerChoice:
        from tsrnn.layers import LayerChoice, check_cell  # torch

        sizes = ("conv_size", "n_heads", "expansion")
        options: dict[str, Any] = {name: positive_integer(name, filled[name]) for name in sizes}
        limit = filled["max_recurrent"]
        if limit is not None:
            options["max_recurrent"] = number("max_recurrent", limit, lowest=0.0, open_=True)
        check_cell(filled["cell"], "NewtonBlocks")
        return LayerChoice("NewtonBlocks", {"cell": filled["cell"], **options})
