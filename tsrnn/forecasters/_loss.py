"""Losses of forecasts: of the point, or of the distribution around it."""

from __future__ import annotations

from torch import Tensor

from tsrnn.forecasters._model import ForecastModel
from tsrnn.forecasters._units import Units


def losses(
    model: ForecastModel, loss: str, units: Units, rows: Tensor, starts: Tensor, ends: Tensor,
    states: Tensor,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Loss of every forecast from some rows, and which of them have a target.

    Parameters
    ----------
    model : ForecastModel
    loss : {"mse", "mae", "quantile", "student-t"}
    units : Units
    rows, starts, ends : integer Tensors of one shape
        Rows to forecast from, the first row of the unit of each, and the row from which on
        values are not to be used.
    states : Tensor of shape (..., hidden_size)

    Returns
    -------
    loss : Tensor of shape (..., h, C)
        On the standardised scale.
    known : boolean Tensor of shape (..., h, 1)
    """
    forecast = model.parts(units, rows, starts, states).total()
    target, known = model.targets(units, rows, ends)
    error = target - forecast
    if loss == "mse":
        return error.square(), known
    if loss == "mae":
        return error.abs(), known
    return model.distribution_loss(error, units.spread[rows][..., None, :], states), known
